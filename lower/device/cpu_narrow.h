/* cpu_narrow.h - floats of 16 bits in memory: vectors and lines of them made wide and narrow.
 */

enum { BB_WIDE_LANES = BB_VECTOR_BYTES / 4 };
typedef float bb_wide __attribute__((vector_size(BB_VECTOR_BYTES)));
typedef uint32_t bb_wide_bits __attribute__((vector_size(BB_VECTOR_BYTES)));
typedef uint16_t bb_half __attribute__((vector_size(BB_VECTOR_BYTES / 2), aligned(2), may_alias));
typedef float bb_wide_loose __attribute__((vector_size(BB_VECTOR_BYTES), aligned(4), may_alias));

#if BB_VECTOR_BYTES == 64 || (BB_VECTOR_BYTES == 32 && defined(__F16C__))
BB_INLINE bb_wide bb_vector_from_f16(const uint16_t *from) {
  bb_wide to;
  __asm__("vcvtph2ps %1, %0" : "=v"(to) : "m"(*(const bb_half *)from));
  return to;
}
/* To the nearest, the even one of two. */
BB_INLINE void bb_vector_to_f16(uint16_t *to, const float *from) {
  __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(bb_half *)to) : "v"(*(const bb_wide_loose *)from));
}
#else
BB_INLINE bb_wide bb_vector_from_f16(const uint16_t *from) {
  bb_wide to;
  for (int l = 0; l < BB_WIDE_LANES; l++) to[l] = bb_from_f16(from[l]);
  return to;
}
BB_INLINE void bb_vector_to_f16(uint16_t *to, const float *from) {
  for (int l = 0; l < BB_WIDE_LANES; l++) to[l] = bb_to_f16(from[l]);
}
#endif

BB_INLINE bb_wide bb_vector_from_bf16(const uint16_t *from) {
  bb_wide_bits bits = __builtin_convertvector(*(const bb_half *)from, bb_wide_bits) << 16;
  bb_wide to;
  memcpy(&to, &bits, sizeof to);
  return to;
}
BB_INLINE void bb_vector_to_bf16(uint16_t *to, const float *from) {
  BB_VECTOR
  for (int l = 0; l < BB_WIDE_LANES; l++) to[l] = bb_to_bf16(from[l]);
}

/* Neighbours, one line of n. */
#define BB_LINES(kind)                                                                             \
  BB_INLINE void bb_widen_##kind(float *to, const uint16_t *from, int64_t n) {                     \
    const int64_t whole = n / BB_WIDE_LANES * BB_WIDE_LANES;                                       \
    for (int64_t i = 0; i < whole; i += BB_WIDE_LANES)                                             \
      *(bb_wide_loose *)(to + i) = bb_vector_from_##kind(from + i);                                \
    for (int64_t i = whole; i < n; i++) to[i] = bb_from_##kind(from[i]);                           \
  }                                                                                                \
  BB_INLINE void bb_narrow_##kind(uint16_t *to, const float *from, int64_t n) {                    \
    const int64_t whole = n / BB_WIDE_LANES * BB_WIDE_LANES;                                       \
    for (int64_t i = 0; i < whole; i += BB_WIDE_LANES) bb_vector_to_##kind(to + i, from + i);      \
    for (int64_t i = whole; i < n; i++) to[i] = bb_to_##kind(from[i]);                             \
  }
BB_LINES(f16)
BB_LINES(bf16)
#undef BB_LINES
