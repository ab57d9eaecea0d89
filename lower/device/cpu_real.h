/* cpu_real.h - the part of the device tile library that is written once for float and double:
 * BB_REAL and BB_SUFFIX say which, BB_ODD is an integer as wide.  Folds along rows, scalar helpers, and what products are called by.
 */

typedef BB_REAL BB_NAME(bb_vector) __attribute__((vector_size(BB_VECTOR_BYTES)));
typedef BB_REAL BB_NAME(bb_loose)
    __attribute__((vector_size(BB_VECTOR_BYTES), aligned(sizeof(BB_REAL)), may_alias));

#define BB_LANES ((int64_t)(BB_VECTOR_BYTES / sizeof(BB_REAL)))

/* NaN wins. */
BB_INLINE BB_REAL BB_NAME(bb_max)(BB_REAL a, BB_REAL b) {
  return ((a > b) | (a != a)) ? a : b;
}
BB_INLINE BB_REAL BB_NAME(bb_min)(BB_REAL a, BB_REAL b) {
  return ((a < b) | (a != a)) ? a : b;
}
/* The same where b is a number, to the last bit: one comparison. */
BB_INLINE BB_REAL BB_NAME(bb_max_number)(BB_REAL a, BB_REAL b) {
  return b >= a ? b : a;
}
BB_INLINE BB_REAL BB_NAME(bb_min_number)(BB_REAL a, BB_REAL b) {
  return b <= a ? b : a;
}
BB_INLINE BB_REAL BB_NAME(bb_sign)(BB_REAL a) {
  return a != a ? a : (BB_REAL)((a > 0) - (a < 0));
}
BB_INLINE BB_REAL BB_NAME(bb_power)(BB_REAL a, BB_REAL b) {
  return (BB_REAL)(sizeof(BB_REAL) == sizeof(float) ? powf((float)a, (float)b) : pow(a, b));
}
/* Sign of the dividend, and of the divisor. */
BB_INLINE BB_REAL BB_NAME(bb_fmod)(BB_REAL a, BB_REAL b) {
  return (BB_REAL)fmod(a, b);
}
BB_INLINE BB_REAL BB_NAME(bb_mod)(BB_REAL a, BB_REAL b) {
  BB_REAL rest = (BB_REAL)fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* --- folds --- */

/* What a fold begins with, and the next element. */
#define BB_STEP(name, start, next)                                                                 \
  static const BB_REAL BB_NAME(bb_first_##name) __attribute__((unused)) = start;                   \
  BB_INLINE BB_REAL BB_NAME(bb_next_##name)(BB_REAL held, BB_REAL x) {                             \
    return next;                                                                                   \
  }
BB_STEP(sum, 0, held + x)
BB_STEP(prod, 1, held *x)
BB_STEP(max, -INFINITY, ((held > x) | (held != held)) ? held : x)
BB_STEP(min, INFINITY, ((held < x) | (held != held)) ? held : x)
#undef BB_STEP

/* The same of what is no NaN. */
BB_INLINE BB_REAL BB_NAME(bb_over_max)(BB_REAL held, BB_REAL x) {
  return held < x ? x : held;
}
BB_INLINE BB_REAL BB_NAME(bb_over_min)(BB_REAL held, BB_REAL x) {
  return held > x ? x : held;
}

/* Lanes, at most 32 and whole vectors of 16 bytes, are folded into one: vectors in halves, then those of the last. */
typedef BB_REAL BB_NAME(bb_quarter) __attribute__((vector_size(16)));
typedef __typeof__((BB_NAME(bb_quarter)){0} < (BB_NAME(bb_quarter)){0}) BB_NAME(bb_answers);

BB_INLINE BB_NAME(bb_quarter)
    BB_NAME(bb_either)(BB_NAME(bb_answers) first, BB_NAME(bb_quarter) a, BB_NAME(bb_quarter) b) {
  return (BB_NAME(bb_quarter))((first & (BB_NAME(bb_answers))a) |
                               (~first & (BB_NAME(bb_answers))b));
}
#define BB_FOLD_HALF(step, next)                                                                   \
  BB_STRAIGHT                                                                                      \
  for (int64_t l = step; l < 2 * step && l < parts; l++) {                                         \
    const BB_NAME(bb_quarter) held = part[l - step], x = part[l];                                  \
    part[l - step] = next;                                                                         \
  }
#define BB_FOLD_LANES(name, with, next)                                                            \
  BB_INLINE BB_REAL BB_NAME(bb_lanes_##name)(const BB_REAL *lane, const int64_t lanes) {           \
    const int64_t each = 16 / sizeof(BB_REAL), parts = lanes / each;                               \
    BB_NAME(bb_quarter) part[32 * sizeof(BB_REAL) / 16];                                           \
    memcpy(part, lane, (size_t)lanes * sizeof *lane);                                              \
    BB_FOLD_HALF(8, next)                                                                          \
    BB_FOLD_HALF(4, next)                                                                          \
    BB_FOLD_HALF(2, next)                                                                          \
    BB_FOLD_HALF(1, next)                                                                          \
    BB_REAL all = part[0][0];                                                                      \
    BB_STRAIGHT                                                                                    \
    for (int64_t l = 1; l < each; l++) all = BB_NAME(bb_##with)(all, part[0][l]);                  \
    return all;                                                                                    \
  }
BB_FOLD_LANES(sum, next_sum, held + x)
BB_FOLD_LANES(prod, next_prod, held *x)
BB_FOLD_LANES(max, next_max, BB_NAME(bb_either)((held > x) | (held != held), held, x))
BB_FOLD_LANES(min, next_min, BB_NAME(bb_either)((held < x) | (held != held), held, x))
/* Of what is no NaN. */
BB_FOLD_LANES(over_max, over_max, BB_NAME(bb_either)(held < x, x, held))
BB_FOLD_LANES(over_min, over_min, BB_NAME(bb_either)(held > x, x, held))
#undef BB_FOLD_LANES
#undef BB_FOLD_HALF

/* Along the columns: lanes take every so many-th column.  The order depends on the width of vectors alone.  So few columns as
 * become one in the end are folded at once: other lanes would hold what a fold begins with. */

#define BB_FOLD_FEW(name)                                                                          \
  for (int64_t i = 0; few && i < rows; i++) {                                                      \
    BB_REAL held = BB_NAME(bb_first_##name);                                                       \
    for (int64_t j = 0; j < cols; j++) held = BB_NAME(bb_next_##name)(held, from[i * stride + j]); \
    to[i] = held;                                                                                  \
  }
#define BB_FOLD_ROWS(name)                                                                         \
  BB_FUNCTION void BB_NAME(bb_fold_##name)(BB_REAL * to, const BB_REAL *from, int64_t stride,      \
                                           int64_t rows, int64_t cols) {                           \
    const bool few = cols <= (int64_t)(16 / sizeof(BB_REAL));                                      \
    BB_FOLD_FEW(name)                                                                              \
    for (int64_t i = 0; !few && i < rows; i++) {                                                   \
      const BB_REAL *row = from + i * stride;                                                      \
      BB_REAL lane[2 * BB_LANES];                                                                  \
      for (int64_t l = 0; l < 2 * BB_LANES; l++) lane[l] = BB_NAME(bb_first_##name);               \
      int64_t j = 0;                                                                               \
      for (; j + 2 * BB_LANES <= cols; j += 2 * BB_LANES)                                          \
        for (int64_t l = 0; l < 2 * BB_LANES; l++) {                                               \
          BB_REAL held = lane[l], x = row[j + l];                                                  \
          lane[l] = BB_NAME(bb_next_##name)(held, x);                                              \
        }                                                                                          \
      for (int64_t l = 0; j < cols; j++, l++) {                                                    \
        BB_REAL held = lane[l], x = row[j];                                                        \
        lane[l] = BB_NAME(bb_next_##name)(held, x);                                                \
      }                                                                                            \
      to[i] = BB_NAME(bb_lanes_##name)(lane, 2 * BB_LANES);                                        \
    }                                                                                              \
  }
BB_FOLD_ROWS(sum)
BB_FOLD_ROWS(prod)
#undef BB_FOLD_ROWS

/* Greatest and least: which lanes have met a NaN is noted beside them, since a comparison that is false for NaN is one instruction,
 * and one that is not four.  Few columns take one vector, of which less becomes one in the end. */
#define BB_EXTREMA_ROWS(name)                                                                      \
  BB_INLINE BB_REAL BB_NAME(bb_row_##name)(const BB_REAL *row, int64_t cols,                       \
                                           const int64_t lanes) {                                  \
    BB_REAL lane[32];                                                                              \
    BB_ODD odd[32], any = 0;                                                                       \
    for (int64_t l = 0; l < lanes; l++) lane[l] = BB_NAME(bb_first_##name), odd[l] = 0;            \
    int64_t j = 0;                                                                                 \
    for (; j + lanes <= cols; j += lanes)                                                          \
      for (int64_t l = 0; l < lanes; l++) {                                                        \
        BB_REAL x = row[j + l];                                                                    \
        lane[l] = BB_NAME(bb_over_##name)(lane[l], x);                                             \
        odd[l] |= -(x != x);                                                                       \
      }                                                                                            \
    const int64_t left = cols - j;                                                                 \
    if (left > 0) BB_VECTOR                                                                        \
    for (int64_t l = 0; l < lanes; l++) {                                                          \
      BB_REAL x = BB_NAME(bb_first_##name);                                                        \
      if (l < left) x = row[j + l];                                                                \
      lane[l] = BB_NAME(bb_over_##name)(lane[l], x);                                               \
      odd[l] |= -(x != x);                                                                         \
    }                                                                                              \
    for (int64_t l = 0; l < lanes; l++) any |= odd[l];                                             \
    return any ? (BB_REAL)NAN : BB_NAME(bb_lanes_over_##name)(lane, lanes);                        \
  }                                                                                                \
  BB_FUNCTION void BB_NAME(bb_fold_##name)(BB_REAL * to, const BB_REAL *from, int64_t stride,      \
                                           int64_t rows, int64_t cols) {                           \
    const bool few = cols <= (int64_t)(16 / sizeof(BB_REAL));                                      \
    BB_FOLD_FEW(name)                                                                              \
    for (int64_t i = 0; !few && i < rows; i++)                                                     \
      to[i] = cols <= 4 * BB_LANES ? BB_NAME(bb_row_##name)(from + i * stride, cols, BB_LANES)     \
                                   : BB_NAME(bb_row_##name)(from + i * stride, cols, 32);          \
  }
BB_EXTREMA_ROWS(max)
BB_EXTREMA_ROWS(min)
#undef BB_EXTREMA_ROWS
#undef BB_FOLD_FEW

/* Along the columns of a turned tile: its lines are folded into one, a few vectors at a time.  BB_NOTE: what is noted of an element
 * beside its lane, and of a lane in the end. */
#define BB_FOLD_DOWN(name, next, BB_BEGIN, BB_NOTE, BB_END)                                        \
  BB_FUNCTION void BB_NAME(bb_fold_down_##name)(BB_REAL * to, const BB_REAL *from, int64_t pitch,  \
                                                int64_t rows, int64_t cols) {                      \
    int64_t i = 0;                                                                                 \
    for (; i + 4 * BB_LANES <= rows; i += 4 * BB_LANES) {                                          \
      BB_REAL lane[4 * BB_LANES];                                                                  \
      BB_BEGIN(4 * BB_LANES)                                                                       \
      for (int64_t l = 0; l < 4 * BB_LANES; l++) lane[l] = BB_NAME(bb_first_##name);               \
      for (int64_t j = 0; j < cols; j++) {                                                         \
        __builtin_prefetch(from + (j + 8) * pitch + i);                                            \
        __builtin_prefetch(from + (j + 8) * pitch + i + 2 * BB_LANES);                             \
        for (int64_t l = 0; l < 4 * BB_LANES; l++) {                                               \
          BB_REAL held = lane[l], x = from[j * pitch + i + l];                                     \
          lane[l] = BB_NAME(next)(held, x);                                                        \
          BB_NOTE                                                                                  \
        }                                                                                          \
      }                                                                                            \
      for (int64_t l = 0; l < 4 * BB_LANES; l++) to[i + l] = BB_END;                               \
    }                                                                                              \
    for (; i < rows; i += BB_LANES) {                                                              \
      const int64_t left = rows - i < BB_LANES ? rows - i : BB_LANES;                              \
      BB_REAL lane[BB_LANES];                                                                      \
      BB_BEGIN(BB_LANES)                                                                           \
      for (int64_t l = 0; l < BB_LANES; l++) lane[l] = BB_NAME(bb_first_##name);                   \
      for (int64_t j = 0; j < cols; j++)                                                           \
        for (int64_t l = 0; l < BB_LANES; l++) {                                                   \
          BB_REAL held = lane[l];                                                                  \
          BB_REAL x = l < left ? from[j * pitch + i + l] : BB_NAME(bb_first_##name);               \
          lane[l] = BB_NAME(next)(held, x);                                                        \
          BB_NOTE                                                                                  \
        }                                                                                          \
      for (int64_t l = 0; l < left; l++) to[i + l] = BB_END;                                       \
    }                                                                                              \
  }
#define BB_NOTHING(lanes)
#define BB_NO_ODD(lanes)                                                                           \
  BB_ODD odd[lanes];                                                                               \
  for (int64_t l = 0; l < lanes; l++) odd[l] = 0;
BB_FOLD_DOWN(sum, bb_next_sum, BB_NOTHING, , lane[l])
BB_FOLD_DOWN(prod, bb_next_prod, BB_NOTHING, , lane[l])
BB_FOLD_DOWN(max, bb_over_max, BB_NO_ODD, odd[l] |= -(x != x);, odd[l] ? (BB_REAL)NAN : lane[l])
BB_FOLD_DOWN(min, bb_over_min, BB_NO_ODD, odd[l] |= -(x != x);, odd[l] ? (BB_REAL)NAN : lane[l])
#undef BB_FOLD_DOWN
#undef BB_NOTHING
#undef BB_NO_ODD

BB_FUNCTION void BB_NAME(bb_prefix_sum)(BB_REAL *to, int64_t pitch, const BB_REAL *from,
                                        int64_t stride, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; i++) {
    BB_REAL sum = 0;
    for (int64_t j = 0; j < cols; j++) to[i * pitch + j] = sum += from[i * stride + j];
  }
}

/* Each element's own prefix is without it. */
BB_FUNCTION void BB_NAME(bb_prefix_before)(BB_REAL *to, int64_t pitch, const BB_REAL *from,
                                           int64_t stride, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; i++) {
    BB_REAL sum = 0;
    for (int64_t j = 0; j < cols; j++) {
      BB_REAL x = from[i * stride + j];
      to[i * pitch + j] = sum;
      sum += x;
    }
  }
}

/* --- products: to[m][n] (+)= a b', b's rows being the columns of `to` --- */

/* `panel` has room for BB_PANELS times k times BB_PANEL elements (cpu_product.h), and as many more as BB_ROWS rows of
 * BB_PANEL.  a_col BB_BUNDLED: `a` lies in bundles, made of a_row columns, of which the product takes the first k. */
BB_PRODUCTS_OF void BB_NAME(bb_dot)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row,
                                    int64_t a_col, const BB_REAL *b, int64_t b_row, int64_t b_col,
                                    int64_t m, int64_t n, int64_t k, bool add, BB_REAL *panel);
/* As bb_dot(), of which row i of a takes what lies before place reach + i, or a little more: there are zeros behind. */
BB_PRODUCTS_OF void BB_NAME(bb_dot_rising)(BB_REAL *to, int64_t pitch, const BB_REAL *a,
                                           int64_t a_row, int64_t a_col, const BB_REAL *b,
                                           int64_t b_row, int64_t b_col, int64_t m, int64_t n,
                                           int64_t k, bool add, BB_REAL *panel, int64_t reach);
/* b: panels, one behind the other, as bb_pack_block() leaves them.  `edge`: BB_ROWS rows of one. */
BB_PRODUCTS_OF void BB_NAME(bb_dot_panels)(BB_REAL *to, int64_t pitch, const BB_REAL *a,
                                           int64_t a_row, int64_t a_col, const BB_REAL *b,
                                           int64_t m, int64_t n, int64_t k, bool add,
                                           BB_REAL *edge);
BB_PRODUCTS_OF void BB_NAME(bb_pack_block)(BB_REAL *panel, const BB_REAL *b, int64_t b_row,
                                           int64_t b_col, int64_t n, int64_t k);
/* Rows of a turned `a` that strips take together, column by column: what a strip reads then lies side by side,
 * and does not push a panel out of the first cache. */
BB_PRODUCTS_OF void BB_NAME(bb_bundle)(BB_REAL *to, const BB_REAL *from, int64_t pitch, int64_t m,
                                       int64_t k);

#ifdef BB_PRODUCTS
#include "bb_cpu_product.h"
#endif

#undef BB_LANES
