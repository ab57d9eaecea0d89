/* host.hpp - what threads of a GPU are, on the processor: for kernels over simt.cuh, in tests, and over warp.cuh (host_threads.hpp).
 *
 * The threads of a block are fibers that take turns from barrier to barrier.  Where some are at a barrier and
 * others have ended the kernel is wrong, and says so, as where it writes beyond the shared memory that it was
 * launched with.  BB_LANES says how many threads exchange values without a barrier: 32 or 64.
 *
 * A kernel sees what is declared here, and so in the other headers; what it calls is compiled once, from the .cpp of the same name, and
 * linked into every kernel.
 */
#pragma once

/* C's own headers, where the library is GNU's: to read what its C++ has around them is a third of compiling a kernel. */
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

#define BB_DEVICE inline __attribute__((always_inline, unused))
#define BB_CONSTANT constexpr

enum { BB_FIBERS = 8192, BB_STACK = 256 << 10, BB_SHARED = 227 << 10 };

#include "fragment.h"

struct bb_8_bytes {
  uint32_t x, y;
};
struct alignas(16) bb_16_bytes {
  uint32_t x, y, z, w;
};

struct bb_host {
  int me; /* the fiber that runs */
  int thread, threads;
  int64_t block, blocks;
  size_t shared;
  void *fiber[BB_FIBERS][5], *turn[5]; /* the compiler's own, which sanitizers leave alone */
  bool begun[BB_FIBERS], ended[BB_FIBERS];
  bool flag[BB_FIBERS];
  alignas(16) unsigned char slot[BB_FIBERS][16];
  ucontext_t first, back;
  char *stack;
  void (*body)(const void *call);
  const void *call;
};
extern bb_host bb_here;
extern unsigned char *bb_shared;

void bb_sync();
bool bb_any(bool mine);
float bb_from_f16(uint16_t bits);
uint16_t bb_to_f16(float value);
/* Is what lies behind the block's own memory still as it was? */
bool bb_is_whole(const unsigned char *memory);
void bb_go_on(int fiber); /* until it waits, or its end */
void bb_begin(void (*body)(const void *), const void *call, int64_t blocks, int threads,
              unsigned shared);
int bb_run(void (*body)(const void *), const void *call, int64_t blocks, int threads,
           unsigned shared);

BB_DEVICE void bb_let_next() {}
BB_DEVICE void bb_after_earlier() {}
BB_DEVICE int bb_thread() {
  return bb_here.thread;
}
BB_DEVICE int64_t bb_block() {
  return bb_here.block;
}
BB_DEVICE int64_t bb_blocks() {
  return bb_here.blocks;
}
template <class T> BB_DEVICE T bb_exchange_if(T *word, T old, T now) {
  __atomic_compare_exchange_n(word, &old, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return old;
}
BB_DEVICE uint32_t bb_add_to(uint32_t *word, uint32_t more) {
  return __atomic_fetch_add(word, more, __ATOMIC_RELAXED);
}
template <class T> BB_DEVICE T bb_shuffle(T value, int across) {
  memcpy(bb_here.slot[bb_here.thread], &value, sizeof value);
  bb_sync();
  memcpy(&value, bb_here.slot[bb_here.thread ^ across], sizeof value);
  bb_sync();
  return value;
}
BB_DEVICE float bb_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
BB_DEVICE uint32_t bb_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Of every lane what it gives to a product; of every warp both operands, put together by its first lane. */
#if BB_LANES == 64
using bb_unit = bb_mfma;
#else
using bb_unit = bb_mma;
#endif
extern float bb_given[BB_FIBERS][2][8], bb_operand[BB_FIBERS / 32][2][16][16];

BB_DEVICE float bb_value(bb_f16 x) {
  return bb_from_f16(x.bits);
}
BB_DEVICE float bb_value(bb_bf16 x) {
  return bb_float((uint32_t)x.bits << 16);
}

template <class E, int R, int N>
static void bb_multiply(float (&to)[R], const E (&a)[N], const E (&b)[N]) {
  const int thread = bb_here.thread, lane = thread % BB_LANES, warp = thread / BB_LANES;
  for (int e = 0; e < N; e++) {
    bb_given[thread][0][e] = bb_value(a[e]);
    bb_given[thread][1][e] = bb_value(b[e]);
  }
  bb_sync();
  float(*left)[16] = bb_operand[warp][0], (*right)[16] = bb_operand[warp][1];
  for (int l = 0; lane == 0 && l < BB_LANES; l++)
    for (int e = 0; e < N; e++) {
      left[bb_unit::a_row(l, e)][bb_unit::a_depth(l, e)] = bb_given[thread + l][0][e];
      right[bb_unit::b_depth(l, e)][bb_unit::b_col(l, e)] = bb_given[thread + l][1][e];
    }
  bb_sync();
  for (int e = 0; e < R; e++)
    for (int k = 0; k < 16; k++)
      to[e] += left[bb_unit::row(lane, e)][k] * right[k][bb_unit::col(lane, e)];
}

#define BB_KERNEL(name, call_type, most, beside)                                                   \
  static void name##_of(const call_type &call);                                                    \
  static void name##_body(const void *call) {                                                      \
    name##_of(*(const call_type *)call);                                                           \
  }                                                                                                \
  extern "C" __attribute__((visibility("default"))) const size_t name##_bytes = sizeof(call_type); \
  extern "C" __attribute__((visibility("default"))) int name(                                      \
      const void *call, int64_t blocks, int threads, unsigned shared, int cluster) {               \
    return threads > most || cluster > 1 ? 1 : bb_run(name##_body, call, blocks, threads, shared); \
  }                                                                                                \
  static void name##_of(const call_type &call)

#ifdef TL_HOST
#include "host_threads.hpp"
#include "host_warp.hpp"
#endif
#ifdef TL_GROUPS
#include "host_barrier.hpp"
#include "host_copy.hpp"
#include "host_group.hpp"
#endif
