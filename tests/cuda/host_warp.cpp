/* host_warp.cpp - the instructions of a warp on the processor (host_warp.hpp). */
#include "host_cluster.hpp"

uint32_t tl_given[BB_FIBERS][6];

bool __any_sync(unsigned, bool mine) {
  bool any = false;
  tl_given[bb_here.me][0] = mine;
  __syncwarp();
  for (int i = 0; i < TL_WARP; i++) any |= tl_lanes()[i][0] != 0;
  __syncwarp();
  return any;
}

namespace tl {
/* Element (row, col) of matrix i, whose rows begin where lanes 8 i to 8 i + 7 say. */
TL_DEV u32 element(int i, int row, int col) {
  return at<u16>(tl_lanes()[8 * i + row][0] + 2 * col);
}
void load_matrices(bool turned, u32 a, u32 *r) {
  const int lane = bb_here.thread % TL_WARP, row = lane / 4, col = lane % 4 * 2;
  tl_given[bb_here.me][0] = a;
  __syncwarp();
  for (int i = 0; i < 4; i++)
    r[i] = turned ? element(i, col, row) | element(i, col + 1, row) << 16
                  : element(i, row, col) | element(i, row, col + 1) << 16;
  __syncwarp();
}

struct asked {
  u32 to;
  const u16 *from;
  int bytes;
  bool ends; /* a group does here */
};
static std::vector<asked> asked_for[BB_FIBERS];
static const tl_with asked_anew = tl_more{[] {
                                            for (std::vector<asked> &a : asked_for) a.clear();
                                          },
                                          NULL, NULL, NULL};

void copy_piece(u32 to, const u16 *from, int bytes) {
  asked_for[bb_here.me].push_back({to, from, bytes, false});
}
void copies_end() {
  asked_for[bb_here.me].push_back({0, nullptr, 0, true});
}
void copies_wait(int left) {
  std::vector<asked> &all = asked_for[bb_here.me];
  int groups = -left;
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

static u32 bf16_bits(float x) {
  u32 bits = bb_bits(x);
  return x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
u32 pack_bf16(float lo, float hi) {
  return bf16_bits(lo) | bf16_bits(hi) << 16;
}

static float half_of(u32 pair, int high, bool bf) {
  u16 bits = (u16)(high ? pair >> 16 : pair);
  return bf ? float_bf16(bits) : float_f16(bits);
}
/* PTX's tables for mma.m16n8k16 and movmatrix say which lane holds what. */
void multiply(bool bf, float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
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
u32 transpose_8x8(u32 x) {
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
