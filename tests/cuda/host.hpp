/* host.hpp - what threads of a GPU are, on the processor: for kernels over simt.cuh, in tests, and over warp.cuh (host_threads.hpp).
 *
 * The threads of a block are fibers that take turns from barrier to barrier.  Where some are at a barrier and
 * others have ended the kernel is wrong, and says so, as where it writes beyond the shared memory that it was
 * launched with.  BB_LANES says how many threads exchange values without a barrier: 32 or 64.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

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
static bb_host bb_here;
static struct bb_farewell {
  ~bb_farewell() {
    if (bb_here.stack) munmap(bb_here.stack, (size_t)BB_FIBERS * BB_STACK);
  }
} bb_when_unloaded;
alignas(1024) static unsigned char bb_room[BB_SHARED];
static unsigned char *bb_shared = bb_room;

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
static __attribute__((noinline)) void bb_take_turn() {
  __builtin_longjmp(bb_here.turn, 1);
}
static __attribute__((noinline)) void bb_sync() {
  if (__builtin_setjmp(bb_here.fiber[bb_here.me]) == 0) bb_take_turn();
}
BB_DEVICE bool bb_any(bool mine) {
  bool any = false;
  bb_here.flag[bb_here.thread] = mine;
  bb_sync();
  for (int i = 0; i < bb_here.threads; i++) any |= bb_here.flag[i];
  bb_sync();
  return any;
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

BB_DEVICE float bb_from_f16(uint16_t bits) {
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  if (exponent == 31) return bb_float(sign | 0x7f800000 | fraction << 13);
  if (exponent) return bb_float(sign | (exponent + 112) << 23 | fraction << 13);
  float value = (float)fraction * 0x1p-24f;
  return sign ? -value : value;
}
BB_DEVICE uint16_t bb_to_f16(float value) {
  uint32_t bits = bb_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (rest >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more */
  if (rest < 0x38800000) /* subnormal: adding 0.5 leaves the multiples of 2^-24 */
    return (uint16_t)(sign | (bb_bits(bb_float(rest) + 0.5f) - 0x3f000000));
  rest += 0xfff + (rest >> 13 & 1);
  return (uint16_t)(sign | (rest - 0x38000000) >> 13);
}

/* Of every lane what it gives to a product; of every warp both operands, put together by its first lane. */
#if BB_LANES == 64
using bb_unit = bb_mfma;
#else
using bb_unit = bb_mma;
#endif
static float bb_given[BB_FIBERS][2][8], bb_operand[BB_FIBERS / BB_LANES][2][16][16];

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

static void bb_fiber() {
  bb_here.body(bb_here.call);
  bb_here.ended[bb_here.me] = true;
  bb_take_turn();
}

static __attribute__((noinline)) void bb_resume(int fiber) {
  if (bb_here.begun[fiber]) __builtin_longjmp(bb_here.fiber[fiber], 1);
  bb_here.begun[fiber] = true;
  getcontext(&bb_here.first);
  bb_here.first.uc_stack.ss_sp = bb_here.stack + (size_t)fiber * BB_STACK;
  bb_here.first.uc_stack.ss_size = BB_STACK;
  bb_here.first.uc_link = NULL;
  makecontext(&bb_here.first, bb_fiber, 0);
  setcontext(&bb_here.first);
}

/* Until it waits, or its end. */
static __attribute__((noinline)) void bb_go_on(int fiber) {
  bb_here.me = fiber;
  if (__builtin_setjmp(bb_here.turn) == 0) bb_resume(fiber);
}

/* Is what lies behind the block's own still as it was? */
static bool bb_is_whole(const unsigned char *memory) {
  for (size_t i = bb_here.shared; i < BB_SHARED; i++)
    if (memory[i] != 0xff) {
      fprintf(stderr, "host.hpp: byte %zu of %zu of shared memory is written\n", i, bb_here.shared);
      return false;
    }
  return true;
}

static void bb_begin(void (*body)(const void *), const void *call, int64_t blocks, int threads,
                     unsigned shared) {
  enum { KEPT = PROT_READ | PROT_WRITE, OWN = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
  if (!bb_here.stack)
    bb_here.stack = (char *)mmap(NULL, (size_t)BB_FIBERS * BB_STACK, KEPT, OWN, -1, 0);
  bb_here.body = body, bb_here.call = call, bb_here.blocks = blocks, bb_here.threads = threads;
  bb_here.shared = shared;
}

static int bb_run_block() {
  memset(bb_here.begun, 0, sizeof bb_here.begun);
  memset(bb_here.ended, 0, sizeof bb_here.ended);
  memset(bb_shared, 0xff, BB_SHARED); /* whoever reads what nobody wrote gets NaN */
  for (;;) {
    int ended = 0;
    for (int i = 0; i < bb_here.threads; i++) {
      bb_here.thread = i;
      if (!bb_here.ended[i]) bb_go_on(i);
      ended += bb_here.ended[i];
    }
    if (ended == bb_here.threads) return !bb_is_whole(bb_shared);
    if (ended) {
      fprintf(stderr, "host.hpp: %d of %d threads do not reach a barrier\n", ended,
              bb_here.threads);
      return 1;
    }
  }
}

static int bb_run(void (*body)(const void *), const void *call, int64_t blocks, int threads,
                  unsigned shared) {
  int bad = 0;
  bb_begin(body, call, blocks, threads, shared);
  for (bb_here.block = 0; bb_here.block < blocks && !bad; bb_here.block++) bad = bb_run_block();
  return bad;
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
