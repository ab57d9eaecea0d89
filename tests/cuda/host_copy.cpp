/* host_copy.cpp - copies of boxes on the processor, and what is amiss with memory that they share with threads (host_copy.hpp). */
#include "fake_map.h"
#include "host_cluster.hpp"

#include <algorithm>
#include <set>

namespace tl {
/* --- boxes --- */

struct box {
  fake_map map;
  int at[FAKE_MAP_RANK]; /* its first element */
  int block;             /* of the cluster */
  range memory;
  int barrier;
};
static std::vector<box> coming;
struct arrived_box {
  int block;
  range memory;
  int barrier;
  u32 phase; /* of the barrier, that has to be complete */
  int times; /* that all of the cluster had come to its barrier */
};
static std::vector<arrived_box> arrived;    /* and nobody has written there since */
static std::vector<box> putting[BB_FIBERS]; /* by each thread; block -1: a group ends */
static std::vector<int> putters;            /* those who ever did */

static box box_of(const tensor_map *m, const void *memory, const int *at, int axes) {
  box b = {};
  memcpy(&b.map, m, sizeof b.map);
  if (b.map.mark != FAKE_MAP_MARK) tl_fault("what describes a box is no tensor map");
  if ((int)b.map.rank != axes)
    tl_fault("a box at %d coordinates of a map of %u axes", axes, b.map.rank);
  u32 bytes = 2;
  for (int i = 0; i < axes; i++) b.at[i] = at[i], bytes *= b.map.box[i];
  b.block = tl_rank();
  b.memory = {address(memory), address(memory) + bytes};
  if (b.memory.from % 128 || b.memory.to > bb_here.shared)
    tl_fault("a box of %u bytes at byte %u of %zu of shared memory", bytes, b.memory.from,
             bb_here.shared);
  return b;
}
/* f(its place in shared memory, in the array; NULL: it lies beside it) of every element. */
template <class F> static void each_element(const box &b, F f) {
  int i[FAKE_MAP_RANK] = {0};
  for (u32 to = b.memory.from; to < b.memory.to; to += 2) {
    u64 from = b.map.data;
    bool inside = true;
    for (u32 a = 0; a < b.map.rank; a++) {
      const int64_t at = (int64_t)b.at[a] + i[a];
      inside &= at >= 0 && at < (int64_t)b.map.size[a];
      from += (u64)at * b.map.step[a];
    }
    f(swizzled(to), inside ? (u16 *)from : NULL);
    for (u32 a = 0; a < b.map.rank && ++i[a] == b.map.box[a]; a++) i[a] = 0;
  }
}

/* --- memory that is shared with them --- */

/* Of every 16 bytes of a block's: the thread that wrote there, plus one, and did not fence since. */
static u16 unfenced[TL_BLOCKS][BB_SHARED / 16];
static std::vector<u32> unfenced_by[BB_FIBERS];
/* What each thread read there and did not fence since. */
static std::set<u32> unfenced_reads[BB_FIBERS];

void check_fence(range r, const char *who) {
  const u16 *by = unfenced[tl_rank()];
  for (u32 i = r.from / 16; i < (r.to + 15) / 16; i++)
    if (by[i])
      tl_fault("%s byte %u, which thread %d wrote without a fence", who, 16 * i, by[i] - 1);
}
void fence_copies() {
  for (u32 i : unfenced_by[bb_here.me]) {
    u16 *by = &unfenced[tl_rank()][i];
    if (*by == bb_here.thread + 1) *by = 0;
  }
  unfenced_by[bb_here.me].clear();
  unfenced_reads[bb_here.me].clear();
}

static void check_write(int block, range r, const char *who) {
  for (const box &b : coming)
    if (b.block == block && meets(b.memory, r))
      tl_fault("%s byte %u of block %d, where a box is on its way", who, r.from,
               tl_cluster.first + block);
  for (int t : putters)
    for (const box &b : putting[t])
      if (b.block == block && meets(b.memory, r))
        tl_fault("%s byte %u, which thread %d puts and has not waited for", who, r.from,
                 t % bb_here.threads);
  if (const int reader = product_reads(block, r))
    tl_fault("%s byte %u of block %d, which a product of thread %d reads", who, r.from,
             tl_cluster.first + block, reader - 1);
}
static void forget(int block, range r) {
  for (size_t i = arrived.size(); i-- > 0;)
    if (arrived[i].block == block && meets(arrived[i].memory, r))
      arrived.erase(arrived.begin() + (long)i);
}
void check_read(range r, const char *who) {
  const std::vector<u32> &mine = seen[bb_here.me];
  for (const arrived_box &b : arrived)
    if (b.block == tl_rank() && meets(b.memory, r) &&
        ((size_t)b.barrier >= mine.size() || mine[(size_t)b.barrier] <= b.phase))
      tl_fault("%s byte %u, where a box came that the thread did not wait for", who, r.from);
  for (const box &b : coming)
    if (b.block == tl_rank() && meets(b.memory, r))
      tl_fault("%s byte %u, where a box is on its way", who, r.from);
}
/* A thread's own. */
void touch(u32 at, bool writes, u32 bytes) {
  const range r = {at, at + bytes};
  if (r.to > bb_here.shared) tl_fault("byte %u of %zu of shared memory", at, bb_here.shared);
  if (!writes) {
    unfenced_reads[bb_here.me].insert(at / 16);
    return check_read(r, "a thread reads");
  }
  check_write(tl_rank(), r, "a thread writes");
  forget(tl_rank(), r);
  for (u32 i = at / 16; i < (at + bytes + 15) / 16; i++) {
    unfenced[tl_rank()][i] = (u16)(bb_here.thread + 1);
    unfenced_by[bb_here.me].push_back(i);
  }
}

/* --- copies --- */

/* Copies keep no order with loads of the warp that asks for them. */
static void check_loads(const box &b) {
  const int first = bb_here.me - bb_here.thread % TL_WARP;
  for (int lane = 0; lane < TL_WARP; lane++) {
    const auto read = unfenced_reads[first + lane].lower_bound(b.memory.from / 16);
    if (read != unfenced_reads[first + lane].end() && 16 * *read < b.memory.to)
      tl_fault("a box is to come to byte %u, which lane %d read without a fence", 16 * *read, lane);
  }
}

void ask_for(int mates, void *to, const tensor_map *m, u64 *barrier, const int *at, int axes) {
  box b = box_of(m, to, at, axes);
  if (mates > tl_cluster.blocks) tl_fault("a box for %d blocks of %d", mates, tl_cluster.blocks);
  const int first = mates > 1 ? 0 : tl_rank(), last = mates > 1 ? mates : tl_rank() + 1;
  for (b.block = first; b.block < last; b.block++) {
    b.barrier = barrier_of(barrier, b.block, "a box")->number;
    check_write(b.block, b.memory, "a box is to come to");
    if (b.block == tl_rank()) check_loads(b);
    coming.push_back(b);
  }
}
static void bring(size_t which) {
  const box b = coming[which];
  unsigned char *const memory = tl_cluster.block[b.block].memory;
  barrier *const x = &barriers[(size_t)b.barrier];
  coming.erase(coming.begin() + (long)which);
  each_element(b, [&](u32 to, const u16 *from) {
    const u16 value = from ? *from : 0;
    memcpy(memory + to, &value, 2);
  });
  memset(unfenced[b.block] + b.memory.from / 16, 0,
         (b.memory.to - b.memory.from) / 16 * sizeof **unfenced);
  forget(b.block, b.memory);
  arrived.push_back({b.block, b.memory, b.barrier, x->phase, tl_cluster.times});
  x->bytes -= (int)(b.memory.to - b.memory.from);
  complete(x);
}
/* Of those that somebody waits for one: the youngest, or one that is drawn. */
static bool bring_one() {
  std::vector<size_t> wanted;
  for (size_t i = 0; i < coming.size(); i++)
    if (!barriers[(size_t)coming[i].barrier].waiting.empty()) wanted.push_back(i);
  if (wanted.empty()) return false;
  bring(tl_cluster.order ? wanted[tl_draw() % wanted.size()] : wanted.back());
  return true;
}

/* --- values that are pushed to other blocks --- */

struct parcel {
  int block; /* of the cluster */
  range memory;
  float value[4];
  int barrier;
};
static std::vector<parcel> pushed;

void send(float *to, const float *value, u32 count, u64 *b, u32 there) {
  const int rank = (int)(there >> 24);
  parcel p = {rank, {address(to), address(to) + 4 * count}, {}, 0};
  memcpy(p.value, value, 4 * count);
  if (rank < 0 || rank >= tl_cluster.blocks)
    tl_fault("there is no block %d of %d of the cluster", rank, tl_cluster.blocks);
  if (p.memory.from % (4 * count) || p.memory.to > bb_here.shared)
    tl_fault("values pushed to byte %u of %zu of shared memory", p.memory.from, bb_here.shared);
  if (!tl_cluster.knows[bb_here.me])
    tl_fault("values are pushed to block %d of the cluster, which may not have begun", rank);
  p.barrier = barrier_of(b, rank, "values are pushed")->number;
  check_write(rank, p.memory, "values are pushed to");
  for (const arrived_box &a : arrived)
    if (a.block == rank && meets(a.memory, p.memory) && tl_cluster.knows[bb_here.me] <= a.times)
      tl_fault("values are pushed to byte %u of block %d, which may still read the box there",
               p.memory.from, rank);
  pushed.push_back(p);
}
/* Of one barrier that somebody waits for, all: they come no sooner than they must. */
static bool bring_pushed() {
  size_t first = 0, left = 0;
  while (first < pushed.size() && barriers[(size_t)pushed[first].barrier].waiting.empty()) first++;
  if (first == pushed.size()) return false;
  const int number = pushed[first].barrier;
  barrier *const x = &barriers[(size_t)number];
  for (const parcel &p : pushed) {
    if (p.barrier != number) {
      pushed[left++] = p;
      continue;
    }
    check_write(p.block, p.memory, "pushed values come to");
    memcpy(tl_cluster.block[p.block].memory + p.memory.from, p.value, p.memory.to - p.memory.from);
    x->bytes -= (int)(p.memory.to - p.memory.from);
  }
  pushed.resize(left);
  complete(x);
  return true;
}
static void end_pushed(int rank) {
  for (const parcel &p : pushed)
    if (p.block == rank)
      tl_fault("the block ends and nobody waited for what is pushed to byte %u", p.memory.from);
}

/* --- what is put --- */

void put(const tensor_map *m, const void *from, const int *at, int axes) {
  const box b = box_of(m, from, at, axes);
  check_read(b.memory, "what is put is");
  check_fence(b.memory, "what is put is");
  if (putting[bb_here.me].empty()) putters.push_back(bb_here.me);
  putting[bb_here.me].push_back(b);
}
void put_commit() {
  box end = {};
  end.block = -1;
  if (putting[bb_here.me].empty()) putters.push_back(bb_here.me);
  putting[bb_here.me].push_back(end);
}
void put_read_but(int left) {
  std::vector<box> &all = putting[bb_here.me];
  int groups = -left;
  size_t i = 0;
  for (const box &b : all) groups += b.block < 0;
  for (; groups > 0; i++) {
    if (all[i].block < 0) groups--;
    if (all[i].block < 0) continue;
    each_element(all[i], [&](u32 from, u16 *to) {
      if (to) memcpy(to, bb_shared + from, 2);
    });
  }
  all.erase(all.begin(), all.begin() + (long)i);
  if (i && all.empty()) putters.erase(std::find(putters.begin(), putters.end(), bb_here.me));
}

/* --- */

static void end_copies() {
  if (!putting[bb_here.me].empty()) tl_fault("the thread ends and what it puts has not been read");
}
static void end_boxes(int rank) {
  for (const box &b : coming)
    if (b.block == rank)
      tl_fault("the block ends and nobody waited for the box at byte %u", b.memory.from);
  end_pushed(rank);
}
static bool bring_something() {
  return bring_one() || bring_pushed();
}
static const tl_with copies_anew =
    tl_more{[] {
              coming.clear();
              pushed.clear();
              arrived.clear();
              putters.clear();
              for (int f = 0; f < tl_cluster.blocks * bb_here.threads; f++)
                putting[f].clear(), unfenced_by[f].clear(), unfenced_reads[f].clear();
              memset(unfenced, 0, (size_t)tl_cluster.blocks * sizeof *unfenced);
            },
            end_copies, end_boxes, bring_something};

/* Four matrices of 8 x 8 elements to where lanes 8 i to 8 i + 7 say for matrix i, as fragments hold them. */
void store_matrix(u32 a, u32 r0, u32 r1, u32 r2, u32 r3) {
  const u32 r[4] = {r0, r1, r2, r3};
  const int lane = bb_here.thread % TL_WARP;
  tl_given[bb_here.me][0] = a;
  __syncwarp();
  for (int i = 0; i < 4; i++) store_word(tl_lanes()[8 * i + lane / 4][0] + 4 * (lane & 3), r[i]);
  __syncwarp();
}
} // namespace tl
