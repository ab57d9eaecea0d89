// sm90.cuh - the device tile library for Hopper (sm_90a): what emitted kernels are written in.  Nothing here belongs to one
// kernel; the instructions are in sm90_cuda.cuh.
#pragma once

#define TL_GROUPS  // products of warp groups, barriers and boxes: of a host's header, too
#include "warp.cuh"
#ifndef TL_HOST
#include "sm90_cuda.cuh"
#endif

namespace tl {
// ---- rings of buffers
// A place in a ring of buffers that are filled and emptied in turn.
template <int Buffers> struct Ring {
  int at = 0;
  u32 phase = 0;
  __device__ __forceinline__ void next() { if (++at == Buffers) { at = 0; phase ^= 1; } }
};
template <int Buffers> struct Barriers { u64 full[Buffers], empty[Buffers]; };
template <int Buffers> struct Arrivals { u64 full[Buffers]; };  // of one warp, which knows what it has read
template <int Buffers> TL_DEV void ring_init(Arrivals<Buffers> &b) {
  for (int i = 0; i < Buffers; i++) barrier_init(&b.full[i], 1);
}
template <int Buffers> TL_DEV void ring_init(Barriers<Buffers> &b, int readers) {
  for (int i = 0; i < Buffers; i++) barrier_init(&b.full[i], 1), barrier_init(&b.empty[i], readers);
}
template <int Buffers> TL_DEV void ring_claim(Barriers<Buffers> &b, const Ring<Buffers> &r, int bytes) {  // by the copier
  barrier_wait(&b.empty[r.at], r.phase ^ 1);
  barrier_expect(&b.full[r.at], bytes);
}
template <class B, int Buffers> TL_DEV void ring_wait(B &b, const Ring<Buffers> &r) { barrier_wait(&b.full[r.at], r.phase); }
template <int Buffers> TL_DEV void ring_release(Barriers<Buffers> &b, Ring<Buffers> &r) {  // by every reading warp
  if (lane() == 0) barrier_arrive(&b.empty[r.at]);
  r.next();
}
template <int Buffers> TL_DEV void ring_release_before(Barriers<Buffers> &b, const Ring<Buffers> &r, bool is) {  // the last one, if there is
  if (is && lane() == 0) barrier_arrive(&b.empty[r.at == 0 ? Buffers - 1 : r.at - 1]);
}
// Where mates, the blocks of a cluster, load for each other: what was read here may come again when it was read in all of them.
TL_DEV void barrier_arrive_in_all(u64 *b, int mates) {
  if (lane() == 0) barrier_arrive(b);
  if (lane() == 1 && mates > 1) barrier_arrive_at_mate(b);
}
template <int Buffers> TL_DEV void ring_release(Barriers<Buffers> &b, Ring<Buffers> &r, int mates) {
  barrier_arrive_in_all(&b.empty[r.at], mates);
  r.next();
}
template <int Buffers> TL_DEV void ring_release_before(Barriers<Buffers> &b, const Ring<Buffers> &r, bool is, int mates) {
  if (is) barrier_arrive_in_all(&b.empty[r.at == 0 ? Buffers - 1 : r.at - 1], mates);
}

// The next output tile, handed from the copier to everybody; -1: there is none.
struct Mailbox { u64 full[2], empty[2]; int tile[2]; };
TL_DEV void mailbox_init(Mailbox &m, int readers) {
  for (int i = 0; i < 2; i++) barrier_init(&m.full[i], 1), barrier_init(&m.empty[i], readers);
}
// Of mates the first's copier takes for both, tiles that follow each other; all who read, the mate's copier too, say so at the first's.
TL_DEV void mailbox_put(Mailbox &m, int round, int tile, int mates = 1) {
  barrier_wait(&m.empty[round & 1], (round >> 1 & 1) ^ 1);
  m.tile[round & 1] = tile;
  barrier_arrive(&m.full[round & 1]);
  if (mates > 1) tell_mate(&m.tile[round & 1], tile < 0 ? -1 : tile + 1, &m.full[round & 1]);
}
TL_DEV int mailbox_read(Mailbox &m, int round, int mates) {
  if (mates > 1) barrier_wait_cluster(&m.full[round & 1], round >> 1 & 1);
  else barrier_wait(&m.full[round & 1], round >> 1 & 1);
  return *(volatile int *)&m.tile[round & 1];
}
TL_DEV void mailbox_done(Mailbox &m, int round, int mine) {  // by one thread
  if (mine == 0) barrier_arrive(&m.empty[round & 1]);
  else barrier_arrive_at_mate(&m.empty[round & 1]);
}
TL_DEV int mailbox_get(Mailbox &m, int round, int mates = 1, int mine = 0) {
  int tile = mailbox_read(m, round, mates);
  __syncwarp();
  if (lane() == 0) mailbox_done(m, round, mine);
  return tile;
}
TL_DEV int mailbox_hear(Mailbox &m, int round) {  // by the mate's copier
  int tile = mailbox_read(m, round, 2);
  mailbox_done(m, round, 1);
  return tile;
}
// Rows that a copy brings of a box of Rows, where `left` are there: fewer than all in eights.
template <int Rows> TL_DEV int edge(int left) { return left >= Rows ? Rows : max((left + 7) / 8 * 8, 0); }
// Of so many elements, dealt to blocks some at a time: how many one has.
TL_DEV int dealt(int elements, int each, int rank, int blocks) {
  int mine = 0;
  for (int e = rank * each; e < elements; e += blocks * each) mine += min(each, elements - e);
  return mine;
}

// ---- products of warp groups
// A shared operand, given by its first byte and the bytes from 64 to the next 64 elements along its
// contiguous axis where that is not the contracted one; 8 rows are 1024 bytes.  What lies 16 n bytes behind it: plus n.
TL_DEV u64 operand(u32 a, int next64) { return (u64)((a & 0x3FFFF) >> 4) | (u64)(next64 >> 4) << 16 | 64ull << 32 | 1ull << 62; }
}  // namespace tl
