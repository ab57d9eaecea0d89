/* host_warp.hpp - the instructions of a warp on the processor: for kernels over sm80.cuh and sm90.cuh, in tests (host.hpp includes it).
 *
 * A copy that is asked for comes as late as it may: when it is waited for.
 */
#pragma once

/* What every lane gives; the lanes of this warp. */
extern uint32_t tl_given[BB_FIBERS][6];
static inline uint32_t (*tl_lanes())[6] {
  return tl_given + bb_here.me / TL_WARP * TL_WARP;
}
template <class T> static inline T tl_from(T value, int lane) {
  T got;
  static_assert(sizeof value == 4, "a word");
  memcpy(tl_given[bb_here.me], &value, 4);
  __syncwarp();
  memcpy(&got, tl_lanes()[lane], 4);
  __syncwarp();
  return got;
}
template <class T> static inline T __shfl_sync(unsigned, T value, int lane) {
  return tl_from(value, lane % TL_WARP);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T value, int across) {
  return tl_from(value, (bb_here.thread ^ across) % TL_WARP);
}
bool __any_sync(unsigned, bool mine);

namespace tl {
typedef uint32_t u32;
typedef unsigned long long u64;
typedef uint16_t u16;

TL_DEV u32 address(const void *p) {
  return (u32)((const unsigned char *)p - bb_shared);
}
TL_DEV void named_sync(int id, int threads) {
  tl_named_sync(id, threads);
}
TL_DEV void named_arrive(int id, int threads) {
  tl_named_arrive(id, threads);
}
TL_DEV void fence_device() {}
TL_DEV bool is_last(unsigned *done, int blocks) {
  bool last = *done == (unsigned)blocks - 1;
  *done = last ? 0 : *done + 1;
  return last;
}

/* --- shared memory --- */

/* What threads themselves read or write there; host_copy.hpp knows what is amiss with it. */
#ifdef TL_GROUPS
void touch(u32 at, bool writes, u32 bytes);
#else
TL_DEV void touch(u32, bool, u32) {}
#endif

template <class T> TL_DEV T at(u32 a) {
  T value;
  memcpy(&value, bb_shared + a, sizeof value);
  return value;
}
/* Four matrices of 8 x 8, whose rows begin where lanes say: lane 8 i + r for row r of matrix i. */
void load_matrices(bool turned, u32 a, u32 *r);
template <bool Turned> TL_DEV void load_matrices(u32 a, u32 &r0, u32 &r1, u32 &r2, u32 &r3) {
  u32 r[4];
  touch(a, false, 16);
  load_matrices(Turned, a, r);
  r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
}
TL_DEV void load_matrix(u32 a, u32 &r0, u32 &r1, u32 &r2, u32 &r3) {
  load_matrices<false>(a, r0, r1, r2, r3);
}
TL_DEV void load_matrix_transposed(u32 a, u32 &r0, u32 &r1, u32 &r2, u32 &r3) {
  load_matrices<true>(a, r0, r1, r2, r3);
}
TL_DEV uint4 load_piece(u32 a) {
  touch(a, false, 16);
  return at<uint4>(a);
}
TL_DEV void store_piece(u32 to, uint4 v) {
  touch(to, true, sizeof v);
  memcpy(bb_shared + to, &v, sizeof v);
}
TL_DEV void store_word(u32 to, u32 v) {
  touch(to, true, sizeof v);
  memcpy(bb_shared + to, &v, sizeof v);
}

/* --- copies --- */

void copy_piece(u32 to, const u16 *from, int bytes);
TL_DEV void copy_piece(u32 to, const u16 *from) {
  copy_piece(to, from, 16);
}
void copies_end();
void copies_wait(int groups); /* until so many are left */
template <int N> TL_DEV void copies_wait() {
  copies_wait(N);
}

template <class T, int N> TL_DEV void pin(T (&)[N]) {}
template <int N> TL_DEV void renew(u32 (&d)[N], int nothing) {
  for (int i = 0; i < N; i++) d[i] ^= (u32)nothing;
}

/* --- arithmetic --- */

template <class A, class B> TL_DEV float divide(A x, B y) {
  return (float)x / (float)y;
}
TL_DEV float exp2(float x) {
  return exp2f(x);
}
TL_DEV float sin_of_turn(float x) {
  return sinf(x);
}
TL_DEV float cos_of_turn(float x) {
  return cosf(x);
}
TL_DEV float recip(float x) {
  return 1 / x;
}
TL_DEV float float_f16(u16 x) {
  return bb_from_f16(x);
}
TL_DEV float float_bf16(u16 x) {
  return bb_float((u32)x << 16);
}
TL_DEV u32 pack_f16(float lo, float hi) {
  return bb_to_f16(lo) | (u32)bb_to_f16(hi) << 16;
}
u32 pack_bf16(float lo, float hi);

/* --- products --- */

void multiply(bool bf, float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1);
TL_DEV void mma_f16(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  multiply(false, d, a0, a1, a2, a3, b0, b1);
}
TL_DEV void mma_bf16(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  multiply(true, d, a0, a1, a2, a3, b0, b1);
}
u32 transpose_8x8(u32 x);
} // namespace tl
