/* host_barrier.cpp - clusters, registers of roles, and barriers in shared memory on the processor (host_barrier.hpp). */
#include "host_cluster.hpp"

namespace tl {
/* --- registers of a role --- */

enum { REGISTERS = 64 << 10 };
static int registers_of[BB_FIBERS / TL_WARP];         /* of a thread of the warp; 0: as it began */
static tl_waiting for_registers[BB_FIBERS / TL_WARP]; /* by block */

/* Threads begin with equal shares of a processor's registers. */
static int registers_held() {
  const int warps = bb_here.threads / TL_WARP, first = tl_rank() * warps;
  const int share = min(REGISTERS / bb_here.threads / 8 * 8, 255);
  int sum = 0;
  for (int w = 0; w < warps; w++)
    sum += (registers_of[first + w] ? registers_of[first + w] : share) * TL_WARP;
  return sum;
}

static void take_registers(int count) {
  enum { LEAST = 24, MOST = 256 };
  if (count % 8 || count < LEAST || count > MOST) tl_fault("%d registers of a thread", count);
  registers_of[bb_here.me / TL_WARP] = count;
}
void fewer_registers(int count) {
  if (bb_here.thread % TL_WARP == 0) take_registers(count);
  tl_wake(&for_registers[tl_rank()]);
  __syncwarp();
}
/* Waits until others have given theirs away. */
void more_registers(int count) {
  int *mine = &registers_of[bb_here.me / TL_WARP], before = *mine;
  if (bb_here.thread % TL_WARP == 0)
    for (take_registers(count); registers_held() > REGISTERS; *mine = count) {
      *mine = before;
      tl_wait(&for_registers[tl_rank()], "registers, that many", count, NULL);
    }
  __syncwarp();
}

/* --- clusters --- */

int cluster_rank() {
  return tl_rank();
}
int cluster_size() {
  return tl_cluster.blocks;
}
void cluster_sync() {
  tl_meet_all();
}
void cluster_leave() {
  tl_meet_all();
}
void cluster_arrive() {
  tl_come();
}
void cluster_wait() {
  tl_wait_for_all();
}
const float *peer(const float *p, int rank) {
  if (rank < 0 || rank >= tl_cluster.blocks)
    tl_fault("there is no block %d of %d of the cluster", rank, tl_cluster.blocks);
  if (!tl_cluster.block[rank].left)
    tl_fault("the memory of block %d of the cluster, which has ended", rank);
  return (const float *)(tl_cluster.block[rank].memory + address(p));
}

/* --- barriers --- */

std::deque<barrier> barriers;
std::vector<u32> seen[BB_FIBERS];
static const u64 barrier_mark = 0x62617272ull << 32; /* above its number */

static std::string tell_barrier(int number) {
  const barrier &b = barriers[(size_t)number];
  char text[200];
  snprintf(text, sizeof text,
           ", at byte %u of block %d: phase %u, %d of %d arrivals and %d bytes are missing", b.at,
           tl_cluster.first + b.block, b.phase, b.pending, b.count, b.bytes);
  return text;
}

barrier *barrier_of(const u64 *b, int block, const char *who) {
  const u32 at = address(b);
  u64 held;
  if (at % 8 || at >= bb_here.shared) tl_fault("%s: no barrier lies at byte %u", who, at);
  if (!tl_cluster.block[block].left)
    tl_fault("%s: the barrier at byte %u of block %d, which has ended", who, at,
             tl_cluster.first + block);
  memcpy(&held, tl_cluster.block[block].memory + at, sizeof held);
  const u64 number = held - barrier_mark;
  if (number >= barriers.size() || barriers[number].at != at || barriers[number].block != block)
    tl_fault("%s: what lies at byte %u of block %d is no barrier, or somebody wrote there", who, at,
             tl_cluster.first + block);
  barrier *found = &barriers[number];
  if (!found->shown && found->maker != bb_here.me)
    tl_fault("%s: the barrier at byte %u is not made for all to see", who, at);
  return found;
}
void complete(barrier *b) {
  if (b->pending || b->bytes) return;
  b->phase++;
  b->pending = b->count;
  tl_wake(&b->waiting);
}
static void arrive_at(barrier *b, int bytes) {
  enum { MOST_BYTES = (1 << 20) - 1 };
  if (b->pending == 0) tl_fault("one arrival too many%s", tell_barrier(b->number).c_str());
  b->bytes += bytes;
  if (b->bytes > MOST_BYTES)
    tl_fault("more bytes than a barrier counts%s", tell_barrier(b->number).c_str());
  b->pending--;
  complete(b);
}

void barrier_init(u64 *b, int count) {
  const u32 at = address(b);
  if (at % 8 || at + 8 > bb_here.shared)
    tl_fault("a barrier at byte %u of %zu", at, bb_here.shared);
  if (count < 1) tl_fault("a barrier of %d arrivals", count);
  for (const barrier &x : barriers)
    if (x.block == tl_rank() && x.at == at) tl_fault("the barrier at byte %u is made twice", at);
  const u64 held = barrier_mark + barriers.size();
  memcpy(b, &held, sizeof held);
  barriers.push_back(
      {(int)barriers.size(), tl_rank(), bb_here.me, at, false, count, count, 0, 0, {}});
}
void barrier_init_done() {
  for (barrier &b : barriers)
    if (b.maker == bb_here.me) b.shown = true;
}
void barrier_expect(u64 *b, int bytes) {
  arrive_at(barrier_of(b, tl_rank(), "bytes are expected"), bytes);
}
void barrier_arrive(u64 *b) {
  arrive_at(barrier_of(b, tl_rank(), "an arrival"), 0);
}
void barrier_arrive_at_mate(u64 *b) {
  arrive_at(barrier_of(b, tl_rank() ^ 1, "an arrival from another block"), 0);
}
void tell_mate(int *at, int value, u64 *b) {
  barrier *x = barrier_of(b, tl_rank() ^ 1, "a number for another block");
  memcpy(tl_cluster.block[tl_rank() ^ 1].memory + address(at), &value, sizeof value);
  arrive_at(x, 0);
}
/* Until the phase of this parity is complete. */
void barrier_wait(u64 *b, u32 parity) {
  barrier *x = barrier_of(b, tl_rank(), "a wait");
  if (parity > 1) tl_fault("parity %u", parity);
  while ((x->phase & 1) == parity)
    tl_wait(&x->waiting, parity ? "parity 1 of barrier" : "parity 0 of barrier", x->number,
            tell_barrier);
  std::vector<u32> &mine = seen[bb_here.me];
  if (mine.size() < barriers.size()) mine.resize(barriers.size());
  mine[(size_t)x->number] = x->phase;
}
void barrier_wait_cluster(u64 *b, u32 parity) {
  barrier_wait(b, parity);
}

static void end_barriers(int rank) {
  for (const barrier &b : barriers)
    if (b.block == rank && (b.pending != b.count || b.bytes))
      tl_fault("the block ends and a phase is not complete%s", tell_barrier(b.number).c_str());
}
static const tl_with barriers_anew =
    tl_more{[] {
              barriers.clear();
              for (int f = 0; f < tl_cluster.blocks * bb_here.threads; f++) seen[f].clear();
              memset(registers_of, 0, sizeof registers_of);
              for (tl_waiting &w : for_registers) w.clear();
            },
            NULL, end_barriers, NULL};
} // namespace tl
