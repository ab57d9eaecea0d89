/* cpu_lanes.h - vectors of f32 that stay in registers through a loop.  Part of cpu.h.
 *
 * The memory that one comes from is aligned as an f32 is.  Vectors that are wider than the processor's are several of them.
 */
#pragma GCC diagnostic ignored "-Wpsabi" /* such vectors pass between inline functions alone */
#define BB_EVEN_16 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31
#define BB_EVEN_8 0, 2, 4, 6, 9, 11, 13, 15
#define BB_EVEN_4 0, 2, 5, 7
#define BB_LANES_OF(n)                                                                                               \
  typedef float bb_lanes##n __attribute__((vector_size(n * 4)));                                                     \
  typedef int32_t bb_truths##n __attribute__((vector_size(n * 4)));                                                  \
  BB_INLINE bb_lanes##n bb_lanes##n##_from(const float *from) {                                                      \
    bb_lanes##n to;                                                                                                  \
    memcpy(&to, from, sizeof to);                                                                                    \
    return to;                                                                                                       \
  }                                                                                                                  \
  /* Those in even places of twice as many: the second half begins one place earlier, and its odd ones are taken. */ \
  BB_INLINE bb_lanes##n bb_lanes##n##_even(const float *from) {                                                      \
    return __builtin_shufflevector(bb_lanes##n##_from(from), bb_lanes##n##_from(from + n - 1),                       \
                                   BB_EVEN_##n);                                                                     \
  }                                                                                                                  \
  /* from[0], from[step], ...; nothing behind the last of them is read. */                                           \
  BB_INLINE bb_lanes##n bb_lanes##n##_every(const float *from, int64_t step) {                                       \
    bb_lanes##n to;                                                                                                  \
    if (step == 1) return bb_lanes##n##_from(from);                                                                  \
    if (step == 2) return bb_lanes##n##_even(from);                                                                  \
    for (int i = 0; i < n; i++) to[i] = from[i * step];                                                              \
    return to;                                                                                                       \
  }                                                                                                                  \
  BB_INLINE bb_lanes##n bb_lanes##n##_of(float all) {                                                                \
    return all - (bb_lanes##n){0};                                                                                   \
  }                                                                                                                  \
  BB_INLINE void bb_lanes##n##_to(float *to, bb_lanes##n from) {                                                     \
    memcpy(to, &from, sizeof from);                                                                                  \
  }                                                                                                                  \
  BB_INLINE bb_lanes##n bb_lanes##n##_one(bb_truths##n first, bb_lanes##n a, bb_lanes##n b) {                        \
    return (bb_lanes##n)(((bb_truths##n)a & first) | ((bb_truths##n)b & ~first));                                    \
  }
BB_LANES_OF(16)
BB_LANES_OF(8)
BB_LANES_OF(4)
#undef BB_LANES_OF

/* Those in even places of 16, as one instruction of two halves gives them: of the first 8 the first two, of the others
 * likewise, then the rest.  And the order of the array, of what was made of such. */
BB_INLINE bb_lanes8 bb_lanes8_paired(const float *from) {
  return __builtin_shufflevector(bb_lanes8_from(from), bb_lanes8_from(from + 7), 0, 2, 9, 11, 4, 6,
                                 13, 15);
}
BB_INLINE bb_lanes8 bb_lanes8_in_order(bb_lanes8 paired) {
  typedef double bb_pairs __attribute__((vector_size(32)));
  const bb_pairs pairs = (bb_pairs)paired;
  return (bb_lanes8)__builtin_shufflevector(pairs, pairs, 0, 2, 1, 3);
}

/* A vector that several sums take stays in a register: a compiler would load it anew for each, which is as dear as a sum. */
#define BB_SHARED_OF(n)                                                                            \
  BB_INLINE bb_lanes##n bb_lanes##n##_shared(const float *from) {                                  \
    typedef struct bb_place##n {                                                                   \
      float at[n];                                                                                 \
    } bb_place##n;                                                                                 \
    bb_lanes##n to;                                                                                \
    __asm__("vmovups %1, %0" : "=v"(to) : "m"(*(const bb_place##n *)from));                        \
    return to;                                                                                     \
  }
#define BB_SHARED_AS_ALL(n)                                                                        \
  BB_INLINE bb_lanes##n bb_lanes##n##_shared(const float *from) {                                  \
    return bb_lanes##n##_from(from);                                                               \
  }
#ifdef __AVX512F__
BB_SHARED_OF(16)
#else
BB_SHARED_AS_ALL(16)
#endif
#ifdef __AVX__
BB_SHARED_OF(8)
BB_SHARED_OF(4)
#else
BB_SHARED_AS_ALL(8)
BB_SHARED_AS_ALL(4)
#endif
#undef BB_SHARED_OF
#undef BB_SHARED_AS_ALL

/* The greater and the smaller of two; NaN where one of them is.  Where either is, processors give the second one: so the first
 * is asked. */
#define BB_CHOOSE(n, name, is)                                                                     \
  BB_INLINE bb_lanes##n bb_lanes##n##_##name(bb_lanes##n a, bb_lanes##n b) {                       \
    return bb_lanes##n##_one((a is b) | (a != a), a, b);                                           \
  }
BB_CHOOSE(4, max, >)
BB_CHOOSE(4, min, <)
#ifdef __AVX512F__
#define BB_CHOOSE_16(name, is)                                                                     \
  BB_INLINE bb_lanes16 bb_lanes16_##name(bb_lanes16 a, bb_lanes16 b) {                             \
    bb_lanes16 one;                                                                                \
    uint16_t odd;                                                                                  \
    __asm__("v" #name "ps %2, %1, %0" : "=v"(one) : "v"(a), "v"(b));                               \
    __asm__("vcmpps $3, %1, %1, %0" : "=k"(odd) : "v"(a)); /* unordered */                         \
    __asm__("vmovaps %1, %0%{%2%}" : "+v"(one) : "v"(a), "Yk"(odd));                               \
    return one;                                                                                    \
  }
#else
#define BB_CHOOSE_16(name, is) BB_CHOOSE(16, name, is)
#endif
#ifdef __AVX__
#define BB_CHOOSE_8(name, is)                                                                      \
  BB_INLINE bb_lanes8 bb_lanes8_##name(bb_lanes8 a, bb_lanes8 b) {                                 \
    bb_lanes8 one, odd;                                                                            \
    __asm__("v" #name "ps %2, %1, %0" : "=x"(one) : "x"(a), "x"(b));                               \
    __asm__("vcmpps $3, %1, %1, %0" : "=x"(odd) : "x"(a)); /* unordered */                         \
    __asm__("vblendvps %2, %1, %0, %0" : "+x"(one) : "x"(a), "x"(odd));                            \
    return one;                                                                                    \
  }
#else
#define BB_CHOOSE_8(name, is) BB_CHOOSE(8, name, is)
#endif
BB_CHOOSE_16(max, >)
BB_CHOOSE_16(min, <)
BB_CHOOSE_8(max, >)
BB_CHOOSE_8(min, <)
#undef BB_CHOOSE_16
#undef BB_CHOOSE_8
#undef BB_CHOOSE
#undef BB_EVEN_16
#undef BB_EVEN_8
#undef BB_EVEN_4
