/* simt_hip.h - what simt.cuh needs of a GPU of AMD's: threads, barriers, exchanges between them.
 *
 * Of HIP nothing is asked but the language and the functions of <math.h>, which hipRTC and clang bring along; the
 * rest is the compiler's own, the same in both.
 */
#pragma once

/* Headers of hipRTC have these names too, and not the same types in all versions. */
#define int64_t bb_int64
#define uint64_t bb_uint64
#define int32_t bb_int32
#define uint32_t bb_uint32
#define uint16_t bb_uint16
#define uint8_t bb_uint8
#define int16_t bb_int16
#define int8_t bb_int8
using int64_t = long long;
using uint64_t = unsigned long long;
using int32_t = int;
using uint32_t = unsigned;
using uint16_t = unsigned short;
using uint8_t = unsigned char;
using int16_t = short;
using int8_t = signed char;
typedef uint32_t bb_8_bytes __attribute__((ext_vector_type(2)));
typedef uint32_t bb_16_bytes __attribute__((ext_vector_type(4)));
#undef INFINITY
#undef NAN
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

#define BB_DEVICE __device__ inline __attribute__((always_inline))
#define BB_CONSTANT __host__ __device__ constexpr
#define BB_KERNEL(name, call_type, threads, beside)                                                \
  extern "C" __global__ void __attribute__((amdgpu_flat_work_group_size(threads, threads)))        \
  name(const call_type call)
extern __shared__ __attribute__((aligned(16))) unsigned char bb_shared[];

#include "fragment.h"

#ifdef __GFX9__
enum { BB_LANES = 64 }; /* of a wavefront */
#else
enum { BB_LANES = 32 };
#endif

BB_DEVICE int bb_thread() {
  return (int)__builtin_amdgcn_workitem_id_x();
}
BB_DEVICE int64_t bb_block() {
  return __builtin_amdgcn_workgroup_id_x();
}
BB_DEVICE int64_t bb_blocks() {
  return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
}
BB_DEVICE void bb_let_next() {}
BB_DEVICE void bb_after_earlier() { /* they have ended */
}
BB_DEVICE void bb_sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
BB_DEVICE bool bb_any(bool mine) {
  static __shared__ int any;
  bb_sync();
  any = 0;
  bb_sync();
  if (mine) any = 1;
  bb_sync();
  return any;
}
/* A word that other threads may change: `now` where it is still `old`.  What it was. */
template <class T> BB_DEVICE T bb_exchange_if(T *word, T old, T now) {
  __atomic_compare_exchange_n(word, &old, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return old;
}
/* Adds to a word that other threads may change.  What it was. */
BB_DEVICE uint32_t bb_add_to(uint32_t *word, uint32_t more) {
  return __atomic_fetch_add(word, more, __ATOMIC_RELAXED);
}
/* Word by word from the lane's partner. */
template <class T> BB_DEVICE T bb_shuffle(T value, int across) {
  enum { WORDS = (sizeof(T) + 3) / 4 };
  int word[WORDS] = {}, lane = bb_thread() % BB_LANES;
  __builtin_memcpy(word, &value, sizeof value);
  _Pragma("unroll") for (int i = 0; i < WORDS; i++) word[i] =
      __builtin_amdgcn_ds_bpermute((lane ^ across) * 4, word[i]);
  __builtin_memcpy(&value, word, sizeof value);
  return value;
}
BB_DEVICE float bb_float(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
BB_DEVICE uint32_t bb_bits(float value) {
  return __builtin_bit_cast(uint32_t, value);
}

BB_DEVICE float bb_from_f16(uint16_t bits) {
  return (float)__builtin_bit_cast(_Float16, bits);
}
BB_DEVICE uint16_t bb_to_f16(float value) {
  return __builtin_bit_cast(uint16_t, (_Float16)value);
}

#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) ||    \
    defined(__gfx950__)
using bb_unit = bb_mfma;
typedef float bb_f32x4 __attribute__((ext_vector_type(4)));
typedef _Float16 bb_f16x4 __attribute__((ext_vector_type(4)));
typedef short bb_bf16x4 __attribute__((ext_vector_type(4)));

/* gfx90a takes subnormal elements for zeros. */
BB_DEVICE void bb_multiply(float (&to)[4], const bb_f16 (&a)[4], const bb_f16 (&b)[4]) {
  bb_f32x4 sum = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(bb_f16x4, a),
                                                       __builtin_bit_cast(bb_f16x4, b),
                                                       __builtin_bit_cast(bb_f32x4, to), 0, 0, 0);
  __builtin_memcpy(to, &sum, sizeof to);
}
BB_DEVICE void bb_multiply(float (&to)[4], const bb_bf16 (&a)[4], const bb_bf16 (&b)[4]) {
  bb_f32x4 sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
      __builtin_bit_cast(bb_bf16x4, a), __builtin_bit_cast(bb_bf16x4, b),
      __builtin_bit_cast(bb_f32x4, to), 0, 0, 0);
  __builtin_memcpy(to, &sum, sizeof to);
}
#else
using bb_unit = bb_no_unit;
#endif
