/* cpu_lanes.h - vectors of f32 that stay in registers through a loop.  Part of cpu.h.
 *
 * The memory that one comes from is aligned as an f32 is.  Vectors that are wider than the processor's are several of them.
 */
#define BB_LANES_OF(n)                                                                                \
  typedef float bb_lanes##n __attribute__((vector_size(n * 4)));                                   \
  typedef int32_t bb_truths##n __attribute__((vector_size(n * 4)));                                \
  BB_INLINE bb_lanes##n bb_lanes##n##_from(const float *from) {                                    \
    bb_lanes##n to;                                                                                \
    memcpy(&to, from, sizeof to);                                                                  \
    return to;                                                                                     \
  }                                                                                                \
  BB_INLINE bb_lanes##n bb_lanes##n##_of(float all) {                                              \
    return all - (bb_lanes##n){0};                                                                 \
  }                                                                                                \
  BB_INLINE void bb_lanes##n##_to(float *to, bb_lanes##n from) {                                   \
    memcpy(to, &from, sizeof from);                                                                \
  }                                                                                                \
  BB_INLINE bb_lanes##n bb_lanes##n##_one(bb_truths##n first, bb_lanes##n a, bb_lanes##n b) {      \
    return (bb_lanes##n)(((bb_truths##n)a & first) | ((bb_truths##n)b & ~first));                  \
  }                                                                                                \
  /* NaN where one of them is. */                                                                  \
  BB_INLINE bb_lanes##n bb_lanes##n##_max(bb_lanes##n a, bb_lanes##n b) {                          \
    return bb_lanes##n##_one((a > b) | (a != a), a, b);                                            \
  }                                                                                                \
  BB_INLINE bb_lanes##n bb_lanes##n##_min(bb_lanes##n a, bb_lanes##n b) {                          \
    return bb_lanes##n##_one((a < b) | (a != a), a, b);                                            \
  }
BB_LANES_OF(16)
BB_LANES_OF(8)
BB_LANES_OF(4)
#undef BB_LANES_OF
