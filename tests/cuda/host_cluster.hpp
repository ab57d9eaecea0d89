/* host_cluster.hpp - what the parts of the host know of a cluster's threads, of its barriers, and of boxes: each in the .cpp of its name. */
#pragma once

#define TL_HOST
#define TL_GROUPS
#include "host.hpp"

#include <deque>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>

/* --- a cluster --- */

enum { TL_NAMES = 16, TL_BLOCKS = 16 };

typedef std::vector<int> tl_waiting; /* fibers */

struct tl_meeting {
  int here = 0, threads = 0; /* of so many */
  tl_waiting waiting;
};
struct tl_block_state {
  unsigned char *memory;
  int left; /* threads that have not ended */
  tl_meeting name[TL_NAMES], warp[BB_FIBERS / TL_WARP];
};
struct tl_thread_state {
  const char *waits_for; /* NULL: it does not */
  int number;            /* of what it waits for */
  std::string (*tell)(int number);
};
struct tl_cluster_state {
  int first, blocks; /* its first block; how many */
  tl_block_state block[TL_BLOCKS];
  tl_thread_state thread[BB_FIBERS];
  tl_meeting all;
  int times;            /* that all have come */
  int knows[BB_FIBERS]; /* a thread knows that all have come so many times */
  /* 1 + after how many times a thread has come to the cluster's barrier, and has not waited; 0: it has not come */
  int came_at[BB_FIBERS];
  std::deque<int> ready;
  uint64_t order; /* 0: as they come */
  bool runs, bad; /* does a thread? */
  ~tl_cluster_state() {
    for (tl_block_state &b : block) free(b.memory);
  }
};
extern tl_cluster_state tl_cluster;

/* What else a block's threads use: told when a cluster begins and ends, when a thread or a block has ended, and when nobody
 * can go on: true if that helped. */
struct tl_more {
  void (*begin)();
  void (*thread_ends)();
  void (*block_ends)(int rank);
  bool (*goes_on)();
};
struct tl_with { /* as a static object */
  tl_with(const tl_more &more);
};

static inline int tl_rank() {
  return bb_here.me / bb_here.threads;
}
static inline tl_block_state &tl_block() {
  return tl_cluster.block[tl_rank()];
}

uint64_t tl_draw();
void tl_wait(tl_waiting *list, const char *what, int number, std::string (*tell)(int));
void tl_wake(tl_waiting *list);
void tl_come(); /* to the cluster's barrier */
void tl_wait_for_all();
void tl_meet_all();

namespace tl {
/* --- barriers --- */

struct barrier {
  int number, block, maker; /* the thread that made it */
  u32 at;                   /* its byte in shared memory */
  bool shown;               /* to others than its maker */
  int count, pending, bytes;
  u32 phase;
  tl_waiting waiting;
};
extern std::deque<barrier> barriers;
extern std::vector<u32> seen[BB_FIBERS]; /* by barrier: phases that a thread knows to be complete */

/* `block`: of the cluster, in whose memory it lies where this block has `b`. */
barrier *barrier_of(const u64 *b, int block, const char *who);
void complete(barrier *b);

/* --- memory that copies and products share with threads --- */

struct range {
  u32 from, to;
};
TL_DEV bool meets(range a, range b) {
  return a.from < b.to && b.from < a.to;
}
/* Bits 4 to 6 of an address are crossed with bits 7 to 9. */
TL_DEV u32 swizzled(u32 a) {
  return a ^ (a >> 3 & 0x70);
}
void check_fence(range r, const char *who);
void check_read(range r, const char *who);
/* Products that run: 0: none reads there, or 1 + the thread that began it. */
int product_reads(int block, range r);
} // namespace tl
