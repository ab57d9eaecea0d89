/* host_threads.hpp - threads of the blocks of a cluster on the processor: for kernels over warp.cuh, in tests (host.hpp includes it).
 *
 * Fibers run until they wait for something, and again when it has come; of those that can go on, one after the other, or, where
 * FAKE_ORDER is a number, drawn from it.  Where none can, and nothing that was asked for is on its way, the kernel is wrong: who waits
 * for what is said, a line for each warp.
 */
#pragma once

#define TL_DEV static inline
#define TL_UNROLL
#define TL_UNROLL_FOURS
#define TL_ROLLED
#define TL_INF INFINITY
#define TL_NAN NAN
#define __device__
#define __forceinline__

struct uint4 {
  unsigned x, y, z, w;
};
struct float4 {
  float x, y, z, w;
};
struct tl_index {
  int x;
};
#define threadIdx (tl_index{bb_here.thread})
#define blockIdx (tl_index{(int)bb_here.block})
#define gridDim (tl_index{(int)bb_here.blocks})

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
static inline int min(int a, int b) {
  return a < b ? a : b;
}
static inline int max(int a, int b) {
  return a > b ? a : b;
}
static inline long long min(long long a, long long b) {
  return a < b ? a : b;
}
static inline long long max(long long a, long long b) {
  return a > b ? a : b;
}
static inline int __ffsll(long long bits) {
  return bits ? __builtin_ctzll((unsigned long long)bits) + 1 : 0;
}
static inline int __clzll(long long bits) {
  return bits ? __builtin_clzll((unsigned long long)bits) : 64;
}
static inline float rsqrtf(float x) {
  return 1 / sqrtf(x);
}
static inline float __uint_as_float(unsigned bits) {
  return bb_float(bits);
}
/* Says what is wrong and ends the launch: of those who call it none goes on. */
void tl_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
template <class T> static inline T __ldg(const T *from) {
  if ((size_t)from % sizeof(T)) tl_fault("%zu bytes are read at %p", sizeof(T), (const void *)from);
  return *from;
}
template <> inline bool __ldg(const bool *) = delete; // as the device has none
static inline unsigned atomicInc(unsigned *counter, unsigned most) {
  unsigned old = *counter;
  *counter = old >= most ? 0 : old + 1;
  return old;
}

enum { TL_WARP = 32 };

void tl_named_sync(int id, int threads);
void tl_named_arrive(int id, int threads); /* and does not wait */
void __syncwarp();
void __syncthreads();
int tl_run(void (*body)(const void *), const void *call, int64_t blocks, int threads,
           unsigned shared, int cluster);

#define TL_SHARED(name) unsigned char *const name = bb_shared
#define TL_KERNEL(name, ...)                                                                       \
  static void name##_of(const Params &p);                                                          \
  static void name##_body(const void *call) {                                                      \
    name##_of(*(const Params *)call);                                                              \
  }                                                                                                \
  extern "C" __attribute__((visibility("default"))) const size_t name##_bytes = sizeof(Params);    \
  extern "C" __attribute__((visibility("default"))) int name(                                      \
      const void *call, int64_t blocks, int threads, unsigned shared, int cluster) {               \
    const int most[] = {__VA_ARGS__};                                                              \
    return threads > most[0] ? 1 : tl_run(name##_body, call, blocks, threads, shared, cluster);    \
  }                                                                                                \
  static void name##_of(const Params &p)
