/* host.cpp - what threads of a GPU are, on the processor: fibers, and what they have in common (host.hpp). */
#include "host.hpp"

#include <stdio.h>
#include <sys/mman.h>

bb_host bb_here;
static struct bb_farewell {
  ~bb_farewell() {
    if (bb_here.stack) munmap(bb_here.stack, (size_t)BB_FIBERS * BB_STACK);
  }
} bb_when_unloaded;
alignas(1024) static unsigned char bb_room[BB_SHARED];
unsigned char *bb_shared = bb_room;
float bb_given[BB_FIBERS][2][8], bb_operand[BB_FIBERS / 32][2][16][16];

static __attribute__((noinline)) void bb_take_turn() {
  __builtin_longjmp(bb_here.turn, 1);
}
__attribute__((noinline)) void bb_sync() {
  if (__builtin_setjmp(bb_here.fiber[bb_here.me]) == 0) bb_take_turn();
}
bool bb_any(bool mine) {
  bool any = false;
  bb_here.flag[bb_here.thread] = mine;
  bb_sync();
  for (int i = 0; i < bb_here.threads; i++) any |= bb_here.flag[i];
  bb_sync();
  return any;
}
float bb_from_f16(uint16_t bits) {
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  if (exponent == 31) return bb_float(sign | 0x7f800000 | fraction << 13);
  if (exponent) return bb_float(sign | (exponent + 112) << 23 | fraction << 13);
  float value = (float)fraction * 0x1p-24f;
  return sign ? -value : value;
}
uint16_t bb_to_f16(float value) {
  uint32_t bits = bb_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (rest >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more */
  if (rest < 0x38800000) /* subnormal: adding 0.5 leaves the multiples of 2^-24 */
    return (uint16_t)(sign | (bb_bits(bb_float(rest) + 0.5f) - 0x3f000000));
  rest += 0xfff + (rest >> 13 & 1);
  return (uint16_t)(sign | (rest - 0x38000000) >> 13);
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

__attribute__((noinline)) void bb_go_on(int fiber) {
  bb_here.me = fiber;
  if (__builtin_setjmp(bb_here.turn) == 0) bb_resume(fiber);
}

bool bb_is_whole(const unsigned char *memory) {
  for (size_t i = bb_here.shared; i < BB_SHARED; i++)
    if (memory[i] != 0xff) {
      fprintf(stderr, "host.hpp: byte %zu of %zu of shared memory is written\n", i, bb_here.shared);
      return false;
    }
  return true;
}

void bb_begin(void (*body)(const void *), const void *call, int64_t blocks, int threads,
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

int bb_run(void (*body)(const void *), const void *call, int64_t blocks, int threads,
           unsigned shared) {
  int bad = 0;
  bb_begin(body, call, blocks, threads, shared);
  for (bb_here.block = 0; bb_here.block < blocks && !bad; bb_here.block++) bad = bb_run_block();
  return bad;
}
