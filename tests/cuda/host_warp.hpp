/* host_warp.hpp - the instructions of a warp on the processor: for kernels over sm80.cuh and sm90.cuh, in tests (host.hpp includes it).
 *
 * A copy that is asked for comes as late as it may: when it is waited for.
 */
/* What every lane gives; the lanes of this warp. */
static uint32_t tl_given[BB_FIBERS][6];
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
static inline bool __any_sync(unsigned, bool mine) {
  bool any = false;
  tl_given[bb_here.me][0] = mine;
  __syncwarp();
  for (int i = 0; i < TL_WARP; i++) any |= tl_lanes()[i][0] != 0;
  __syncwarp();
  return any;
}

namespace tl {
typedef uint32_t u32;
typedef unsigned long long u64;
typedef uint16_t u16;

TL_DEV u32 address(const void *p) {
  return (u32)((const unsigned char *)p - bb_shared);
}
TL_DEV void named_sync(int id, int threads) {
  tl_meet(&tl_block().name[id], threads, true, "named barrier", id);
}
TL_DEV void named_arrive(int id, int threads) {
  tl_meet(&tl_block().name[id], threads, false, "named barrier", id);
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
static void touch(u32 at, bool writes, u32 bytes);
#else
TL_DEV void touch(u32, bool, u32) {}
#endif

template <class T> TL_DEV T at(u32 a) {
  T value;
  memcpy(&value, bb_shared + a, sizeof value);
  return value;
}
/* Element (row, col) of matrix i, whose rows begin where lanes 8 i to 8 i + 7 say. */
TL_DEV u32 element(int i, int row, int col) {
  return at<u16>(tl_lanes()[8 * i + row][0] + 2 * col);
}
template <bool Turned> static void load_matrices(u32 a, u32 *r) {
  const int lane = bb_here.thread % TL_WARP, row = lane / 4, col = lane % 4 * 2;
  tl_given[bb_here.me][0] = a;
  touch(a, false, 16);
  __syncwarp();
  for (int i = 0; i < 4; i++)
    r[i] = Turned ? element(i, col, row) | element(i, col + 1, row) << 16
                  : element(i, row, col) | element(i, row, col + 1) << 16;
  __syncwarp();
}
TL_DEV void load_matrix(u32 a, u32 &r0, u32 &r1, u32 &r2, u32 &r3) {
  u32 r[4];
  load_matrices<false>(a, r);
  r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
}
TL_DEV void load_matrix_transposed(u32 a, u32 &r0, u32 &r1, u32 &r2, u32 &r3) {
  u32 r[4];
  load_matrices<true>(a, r);
  r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
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

struct asked {
  u32 to;
  const u16 *from;
  int bytes;
  bool ends; /* a group does here */
};
static std::vector<asked> asked_for[BB_FIBERS];
static const tl_with asked_anew = tl_more{[] {
  for (std::vector<asked> &a : asked_for) a.clear();
}};

TL_DEV void copy_piece(u32 to, const u16 *from, int bytes) {
  asked_for[bb_here.me].push_back({to, from, bytes, false});
}
TL_DEV void copy_piece(u32 to, const u16 *from) {
  copy_piece(to, from, 16);
}
TL_DEV void copies_end() {
  asked_for[bb_here.me].push_back({0, nullptr, 0, true});
}
template <int N> static void copies_wait() {
  std::vector<asked> &all = asked_for[bb_here.me];
  int groups = -N;
  size_t i = 0;
  for (const asked &a : all) groups += a.ends;
  for (; groups > 0; i++) {
    if (all[i].ends) groups--;
    if (all[i].ends) continue;
    memset(bb_shared + all[i].to, 0, 16);
    memcpy(bb_shared + all[i].to, all[i].from, (size_t)all[i].bytes);
  }
  all.erase(all.begin(), all.begin() + (long)i);
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
TL_DEV u32 bf16_bits(float x) {
  u32 bits = bb_bits(x);
  return x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
TL_DEV u32 pack_bf16(float lo, float hi) {
  return bf16_bits(lo) | bf16_bits(hi) << 16;
}

/* --- products --- */

TL_DEV float half_of(u32 pair, int high, bool bf) {
  u16 bits = (u16)(high ? pair >> 16 : pair);
  return bf ? float_bf16(bits) : float_f16(bits);
}
/* PTX's tables for mma.m16n8k16 and movmatrix say which lane holds what. */
static void multiply(bool bf, float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  const u32 mine[6] = {a0, a1, a2, a3, b0, b1};
  const int lane = bb_here.thread % TL_WARP;
  memcpy(tl_given[bb_here.me], mine, sizeof mine);
  __syncwarp();
  for (int e = 0; e < 4; e++) {
    const int row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
    for (int k = 0; k < 16; k++) {
      const u32 a = tl_lanes()[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
      const u32 b = tl_lanes()[col * 4 + k % 8 / 2][4 + k / 8];
      d[e] += half_of(a, k & 1, bf) * half_of(b, k & 1, bf);
    }
  }
  __syncwarp();
}
TL_DEV void mma_f16(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  multiply(false, d, a0, a1, a2, a3, b0, b1);
}
TL_DEV void mma_bf16(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  multiply(true, d, a0, a1, a2, a3, b0, b1);
}
TL_DEV u32 transpose_8x8(u32 x) {
  const int lane = bb_here.thread % TL_WARP, row = lane / 4, col = lane % 4 * 2;
  u32 y = 0;
  tl_given[bb_here.me][0] = x;
  __syncwarp();
  for (int i = 0; i < 2; i++)
    y |= (tl_lanes()[(col + i) * 4 + row / 2][0] >> row % 2 * 16 & 0xffff) << i * 16;
  __syncwarp();
  return y;
}
} // namespace tl
