/* cpu_beside.h - a product of floats, and other work that runs beside it.  Part of cpu.h, where vectors have 64 bytes.
 *
 * Exps, sums and comparisons have units of their own for the most part, which idle while a product runs, as those of multiply-adds do while
 * that work runs alone.  What stands between BB_BESIDE and BB_BESIDE_END runs once in each turn of the product, which is some steps of
 * k for a group of rows, and then until all is done: there are `units` of work that must not touch what the product reads or writes,
 * one of which runs where bb_beside_is_due(), and `followers` units of work on rows that the product has made, where
 * bb_beside_follows().
 *
 * The sums, six rows of a panel of four vectors, are bound to registers: what a compiler would make of other work among them is to
 * move all of them to memory and back.  They are made in the order of cpu_product.h, to the last bit.
 */
#if BB_VECTOR_BYTES == 64

enum { BB_BESIDE_ROWS = 6, BB_BESIDE_WIDTH = 64, BB_BESIDE_PANELS = 4, BB_BESIDE_TURN = 4 };

typedef float bb_beside_vector __attribute__((vector_size(64)));
typedef float bb_beside_loose __attribute__((vector_size(64), aligned(4), may_alias));

/* to[m][n] (+)= a b'.  `rows`: whether a group of rows is at hand, or what is left of the units alone. */
typedef struct bb_beside {
  float *result, *to, *edge;
  const float *a, *block, *lines, *panel;
  int64_t pitch, line, line_col, m, n, k; /* line, line_col: strides of a as they are given */
  int64_t a_row, a_col;                   /* in a group of its rows */
  int64_t each;                           /* groups of rows of a panel */
  int64_t group, groups;                  /* of the product's groups of rows */
  int64_t reach;                          /* as bb_beside_of() has it */
  int64_t depth, turns;                   /* of the group at hand: how much of k, and in turns */
  int64_t made;                           /* rows, of one panel */
  int64_t due; /* grows by `units` in each turn: one is due whenever it reaches the turns of all */
  int64_t all; /* of the product's turns */
  int64_t unit, units, follower, followers; /* the next one, and how many there are */
  bool add, rows;
} bb_beside;

/* How much of k the next group of rows takes, in whole turns but for the last. */
BB_INLINE int64_t bb_beside_depth(const bb_beside *d, int64_t group) {
  const int64_t past = d->reach + (group % d->each + 1) * BB_BESIDE_ROWS - 1;
  return bb_min(d->k, (bb_max(past, 0) + BB_BESIDE_TURN - 1) / BB_BESIDE_TURN * BB_BESIDE_TURN);
}

/* Row i of a takes what lies before place reach + i, or a little more: there are zeros behind.  `panel` has room for b, packed, and for
 * BB_BESIDE_ROWS rows of a panel behind so many as it may have.  Rows of a that are bundles are shared out as cpu_product.h does, and so are
 * others: fewer than nine that make no group leave that to it. */
BB_INLINE bb_beside bb_beside_of(float *to, int64_t pitch, const float *a, int64_t a_row,
                                 int64_t a_col, const float *b, int64_t b_row, int64_t b_col,
                                 int64_t m, int64_t n, int64_t k, bool add, float *panel,
                                 int64_t reach, int64_t units, int64_t followers) {
  const bool packed = b_row == 1 && b_col == BB_BESIDE_WIDTH && n == BB_BESIDE_WIDTH;
  const int64_t rest = m % BB_BESIDE_ROWS, fewer = m > 0 && (rest == 1 || rest == 2);
  bb_beside d = {.result = to,
                 .edge = panel + BB_BESIDE_PANELS * k * BB_BESIDE_WIDTH,
                 .lines = a,
                 .block = b,
                 .pitch = pitch,
                 .line = a_row,
                 .line_col = a_col,
                 .a_row = a_col == BB_BUNDLED ? 1 : a_row,
                 .a_col = a_col == BB_BUNDLED ? BB_BESIDE_ROWS : a_col,
                 .m = m,
                 .n = n,
                 .k = k,
                 .reach = reach,
                 .units = units,
                 .followers = followers,
                 .add = add};
  if (!packed) {
    bb_pack_block_f32(panel, b, b_row, b_col, n, k);
    d.block = panel;
  }
  d.each = m >= BB_BESIDE_ROWS ? m / BB_BESIDE_ROWS - fewer : 0;
  d.groups = d.each * (n / BB_BESIDE_WIDTH);
  for (int64_t i = 0; i < d.groups; i++) d.all += bb_beside_depth(&d, i) / BB_BESIDE_TURN;
  return d;
}

/* Rows that make no group, and columns that make no panel. */
BB_INLINE void bb_beside_rest(const bb_beside *d) {
  const int64_t rows = d->each * BB_BESIDE_ROWS, cols = d->n / BB_BESIDE_WIDTH * BB_BESIDE_WIDTH;
  if (rows && cols < d->n)
    bb_dot_panels_f32(d->result + cols, d->pitch, d->lines, d->line, d->line_col,
                      d->block + cols * d->k, rows, d->n - cols, d->k, d->add, d->edge);
  if (rows < d->m)
    bb_dot_panels_f32(d->result + rows * d->pitch, d->pitch, d->lines + rows * d->line, d->line,
                      d->line_col, d->block, d->m - rows, d->n, d->k, d->add, d->edge);
}

/* The next group of rows; behind the last, what is left of the product, at once, and of the units. */
BB_INLINE bool bb_beside_next(bb_beside *d) {
  d->rows = d->group < d->groups;
  if (d->rows) {
    const int64_t row = d->group % d->each * BB_BESIDE_ROWS;
    const int64_t col = d->group / d->each * BB_BESIDE_WIDTH;
    d->to = d->result + row * d->pitch + col;
    d->a = d->lines + row * d->line;
    d->panel = d->block + col * d->k;
    d->depth = bb_beside_depth(d, d->group);
    d->turns = d->depth / BB_BESIDE_TURN;
    d->made = row;
  } else {
    const int64_t units = d->units - d->unit, followers = d->followers - d->follower;
    if (d->group == d->groups) bb_beside_rest(d);
    d->turns = units > followers ? units : followers;
    d->made = INT64_MAX;
  }
  return d->group++ < d->groups || d->turns > 0;
}

/* Units are spread over the turns of all rows. */
BB_INLINE bool bb_beside_is_due(bb_beside *d) {
  d->due += d->units;
  if (d->unit >= d->units || (d->rows && d->due < d->all)) return false;
  d->due -= d->all;
  return true;
}

/* The next follower is for rows below `end`. */
BB_INLINE bool bb_beside_follows(const bb_beside *d, int64_t end) {
  return d->follower < d->followers && end <= d->made;
}

#define BB_BESIDE_SUM(row, v, number)                                                              \
  register bb_beside_vector bb_sum_##row##_##v __asm__("zmm" #number);                             \
  __asm__ volatile("vpxord %0, %0, %0" : "=v"(bb_sum_##row##_##v));
#define BB_BESIDE_SUMS(row, first, second, third, fourth)                                          \
  BB_BESIDE_SUM(row, 0, first)                                                                     \
  BB_BESIDE_SUM(row, 1, second)                                                                    \
  BB_BESIDE_SUM(row, 2, third)                                                                     \
  BB_BESIDE_SUM(row, 3, fourth)
#define BB_BESIDE_FMA(row, v)                                                                      \
  __asm__ volatile("vfmadd231ps %2, %1, %0"                                                        \
                   : "+v"(bb_sum_##row##_##v)                                                      \
                   : "v"(bb_with_##v), "v"(bb_x));
#define BB_BESIDE_ROW(row, at)                                                                     \
  __asm__ volatile("vbroadcastss %1, %0" : "=v"(bb_x) : "m"(*(at)));                               \
  BB_BESIDE_FMA(row, 0)                                                                            \
  BB_BESIDE_FMA(row, 1)                                                                            \
  BB_BESIDE_FMA(row, 2)                                                                            \
  BB_BESIDE_FMA(row, 3)
#define BB_BESIDE_STEP                                                                             \
  {                                                                                                \
    const bb_beside_loose *bb_with = (const bb_beside_loose *)bb_b;                                \
    const bb_beside_vector bb_with_0 = bb_with[0], bb_with_1 = bb_with[1], bb_with_2 = bb_with[2], \
                           bb_with_3 = bb_with[3];                                                 \
    bb_beside_vector bb_x;                                                                         \
    BB_BESIDE_ROW(0, bb_a)                                                                         \
    BB_BESIDE_ROW(1, bb_a + bb_d.a_row)                                                            \
    BB_BESIDE_ROW(2, bb_a + 2 * bb_d.a_row)                                                        \
    BB_BESIDE_ROW(3, bb_a3)                                                                        \
    BB_BESIDE_ROW(4, bb_a3 + bb_d.a_row)                                                           \
    BB_BESIDE_ROW(5, bb_a3 + 2 * bb_d.a_row)                                                       \
    bb_a += bb_d.a_col;                                                                            \
    bb_a3 += bb_d.a_col;                                                                           \
    bb_b += BB_BESIDE_WIDTH;                                                                       \
  }
#define BB_BESIDE_STORE(row, v)                                                                    \
  {                                                                                                \
    bb_beside_loose *bb_to = (bb_beside_loose *)(bb_d.to + row * bb_d.pitch) + v;                  \
    if (bb_d.add) bb_sum_##row##_##v += *bb_to;                                                    \
    *bb_to = bb_sum_##row##_##v;                                                                   \
  }
#define BB_BESIDE_STORES(row)                                                                      \
  BB_BESIDE_STORE(row, 0)                                                                          \
  BB_BESIDE_STORE(row, 1)                                                                          \
  BB_BESIDE_STORE(row, 2)                                                                          \
  BB_BESIDE_STORE(row, 3)

/* As bb_beside_of() is called. */
#define BB_BESIDE(...)                                                                             \
  {                                                                                                \
    bb_beside bb_d = bb_beside_of(__VA_ARGS__);                                                    \
    while (bb_beside_next(&bb_d)) {                                                                \
      BB_BESIDE_SUMS(0, 8, 9, 10, 11)                                                              \
      BB_BESIDE_SUMS(1, 12, 13, 14, 15)                                                            \
      BB_BESIDE_SUMS(2, 16, 17, 18, 19)                                                            \
      BB_BESIDE_SUMS(3, 20, 21, 22, 23)                                                            \
      BB_BESIDE_SUMS(4, 24, 25, 26, 27)                                                            \
      BB_BESIDE_SUMS(5, 28, 29, 30, 31)                                                            \
      const float *bb_a = bb_d.a, *bb_a3 = bb_a + 3 * bb_d.a_row, *bb_b = bb_d.panel;              \
      for (int64_t bb_turn = bb_d.turns; bb_turn > 0; bb_turn--) {                                 \
        if (bb_d.rows) {                                                                           \
          BB_BESIDE_STEP                                                                           \
          BB_BESIDE_STEP                                                                           \
          BB_BESIDE_STEP                                                                           \
          BB_BESIDE_STEP                                                                           \
        }
#define BB_BESIDE_END                                                                              \
  }                                                                                                \
  if (!bb_d.rows) continue;                                                                        \
  for (int64_t bb_rest = bb_d.depth % BB_BESIDE_TURN; bb_rest > 0; bb_rest--) BB_BESIDE_STEP       \
  BB_BESIDE_STORES(0)                                                                              \
  BB_BESIDE_STORES(1)                                                                              \
  BB_BESIDE_STORES(2)                                                                              \
  BB_BESIDE_STORES(3)                                                                              \
  BB_BESIDE_STORES(4)                                                                              \
  BB_BESIDE_STORES(5)                                                                              \
  }                                                                                                \
  }
#endif
