/* simt_cuda.h - what simt.cuh needs of a GPU of NVIDIA's: threads, barriers, exchanges between them. */
#pragma once

#ifdef __CUDACC_RTC__
using int64_t = long long;
using uint64_t = unsigned long long;
using int32_t = int;
using uint32_t = unsigned;
using uint16_t = unsigned short;
using uint8_t = unsigned char;
using int16_t = short;
using int8_t = signed char;
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <math.h>
#include <stdint.h>
#endif
using bb_8_bytes = uint2;
using bb_16_bytes = uint4;
#define BB_DEVICE __device__ __forceinline__
#define BB_CONSTANT __host__ __device__ constexpr
/* beside: as many blocks as a processor is to have registers for. */
#define BB_KERNEL(name, call_type, threads, beside)                                                \
  extern "C" __global__ void __launch_bounds__(threads, beside) name(const call_type call)
extern __shared__ __align__(16) unsigned char bb_shared[];

#include "fragment.h"

enum { BB_LANES = 32 }; /* that exchange values without a barrier */

BB_DEVICE int bb_thread() {
  return (int)threadIdx.x;
}
BB_DEVICE int64_t bb_block() {
  return blockIdx.x;
}
BB_DEVICE int64_t bb_blocks() {
  return gridDim.x;
}
/* The next launch may begin, which waits for the end of this one. */
BB_DEVICE void bb_let_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
/* Until earlier launches have ended; the next one may begin, which waits here, too. */
BB_DEVICE void bb_after_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
BB_DEVICE void bb_sync() {
  __syncthreads();
}
BB_DEVICE bool bb_any(bool mine) {
  return __syncthreads_or(mine);
}
template <class T> BB_DEVICE T bb_shuffle(T value, int across) {
  return __shfl_xor_sync(~0u, value, across);
}
BB_DEVICE uint8_t bb_shuffle(uint8_t value, int across) {
  return (uint8_t)bb_shuffle((int)value, across);
}
/* A word that other threads may change: `now` where it is still `old`.  What it was. */
BB_DEVICE uint32_t bb_exchange_if(uint32_t *word, uint32_t old, uint32_t now) {
  return atomicCAS(word, old, now);
}
BB_DEVICE uint16_t bb_exchange_if(uint16_t *word, uint16_t old, uint16_t now) {
  return atomicCAS(word, old, now);
}
/* Adds to a word that other threads may change.  What it was. */
BB_DEVICE uint32_t bb_add_to(uint32_t *word, uint32_t more) {
  return atomicAdd(word, more);
}
BB_DEVICE float bb_float(uint32_t bits) {
  return __uint_as_float(bits);
}
BB_DEVICE uint32_t bb_bits(float value) {
  return __float_as_uint(value);
}

BB_DEVICE float bb_from_f16(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
BB_DEVICE uint16_t bb_to_f16(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

#if __CUDA_ARCH__ >= 800
using bb_unit = bb_mma;

/* The result's columns 8 at a time. */
#define BB_MULTIPLY(type, name)                                                                    \
  BB_DEVICE void bb_multiply(float(&to)[8], const type(&a)[8], const type(&b)[8]) {                \
    uint32_t x[4], y[4];                                                                           \
    _Pragma("unroll") for (int i = 0; i < 4; i++) {                                                \
      x[i] = a[2 * i].bits | (uint32_t)a[2 * i + 1].bits << 16;                                    \
      y[i] = b[2 * i].bits | (uint32_t)b[2 * i + 1].bits << 16;                                    \
    }                                                                                              \
    _Pragma("unroll") for (int h = 0; h < 2; h++) asm(                                             \
        "mma.sync.aligned.m16n8k16.row.col.f32." name "." name                                     \
        ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(to[4 * h]),  \
        "+f"(to[4 * h + 1]), "+f"(to[4 * h + 2]), "+f"(to[4 * h + 3]) : "r"(x[0]), "r"(x[1]),      \
        "r"(x[2]), "r"(x[3]), "r"(y[2 * h]), "r"(y[2 * h + 1]));                                   \
  }
BB_MULTIPLY(bb_f16, "f16")
BB_MULTIPLY(bb_bf16, "bf16")
#undef BB_MULTIPLY
#else
using bb_unit = bb_no_unit;
#endif
