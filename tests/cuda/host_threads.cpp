/* host_threads.cpp - threads of the blocks of a cluster: who runs, who waits, for what (host_threads.hpp). */
#include "host_cluster.hpp"

#include <stdarg.h>

tl_cluster_state tl_cluster;

/* A function's, so that it is there when other files' objects are made. */
static std::vector<tl_more> &tl_others() {
  static std::vector<tl_more> others;
  return others;
}
tl_with::tl_with(const tl_more &more) {
  tl_others().push_back(more);
}

void tl_fault(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "host: block %d, thread %d: ", tl_cluster.first + tl_rank(), bb_here.thread);
  vfprintf(stderr, format, list);
  fprintf(stderr, "\n");
  va_end(list);
  tl_cluster.bad = true;
  if (tl_cluster.runs) bb_sync();
}

uint64_t tl_draw() {
  tl_cluster.order ^= tl_cluster.order << 13;
  tl_cluster.order ^= tl_cluster.order >> 7;
  tl_cluster.order ^= tl_cluster.order << 17;
  return tl_cluster.order;
}

void tl_wait(tl_waiting *list, const char *what, int number, std::string (*tell)(int)) {
  list->push_back(bb_here.me);
  tl_cluster.thread[bb_here.me] = {what, number, tell};
  bb_sync();
  tl_cluster.thread[bb_here.me].waits_for = NULL;
}
void tl_wake(tl_waiting *list) {
  for (int f : *list) tl_cluster.ready.push_back(f);
  list->clear();
}

/* --- meetings --- */

/* Who does not wait has only come. */
static void tl_meet(tl_meeting *m, int threads, bool waits, const char *what, int number) {
  if (m->here == 0) m->threads = threads;
  if (m->threads != threads)
    tl_fault("%s %d is of %d threads, and of %d", what, number, threads, m->threads);
  if (++m->here == threads) {
    m->here = 0;
    tl_wake(&m->waiting);
  } else if (waits) {
    tl_wait(&m->waiting, what, number, NULL);
  }
}
void tl_named_sync(int id, int threads) {
  tl_meet(&tl_block().name[id], threads, true, "named barrier", id);
}
void tl_named_arrive(int id, int threads) {
  tl_meet(&tl_block().name[id], threads, false, "named barrier", id);
}
void __syncwarp() {
  const int warp = bb_here.thread / TL_WARP;
  tl_meet(&tl_block().warp[warp], TL_WARP, true, "the rest of warp", warp);
}
void __syncthreads() {
  tl_meet(&tl_block().name[0], bb_here.threads, true, "named barrier", 0);
}
/* All of the cluster that have not ended: are they here? */
static void tl_count_all() {
  int left = 0;
  for (int i = 0; i < tl_cluster.blocks; i++) left += tl_cluster.block[i].left;
  if (!tl_cluster.all.here || tl_cluster.all.here < left) return;
  tl_cluster.all.here = 0;
  tl_cluster.times++;
  tl_wake(&tl_cluster.all.waiting);
}
void tl_come() {
  int *const came = &tl_cluster.came_at[bb_here.me];
  if (*came) tl_fault("the thread comes to the cluster's barrier again, and has not waited there");
  *came = 1 + tl_cluster.times;
  tl_cluster.all.here++;
  tl_count_all();
}
void tl_wait_for_all() {
  int *const came = &tl_cluster.came_at[bb_here.me];
  if (!*came) tl_fault("the thread waits at the cluster's barrier, to which it has not come");
  while (*came == 1 + tl_cluster.times)
    tl_wait(&tl_cluster.all.waiting, "all of the cluster,", tl_cluster.first, NULL);
  *came = 0;
  tl_cluster.knows[bb_here.me] = tl_cluster.times;
}
void tl_meet_all() {
  tl_come();
  tl_wait_for_all();
}

/* --- launches --- */

static void tl_end_thread() {
  for (const tl_more &o : tl_others())
    if (o.thread_ends) o.thread_ends();
  if (tl_cluster.came_at[bb_here.me])
    tl_fault("the thread ends and has not waited at the cluster's barrier");
  tl_block().left--;
  tl_count_all();
  if (tl_block().left) return;
  for (const tl_more &o : tl_others())
    if (o.block_ends) o.block_ends(tl_rank());
  if (!bb_is_whole(tl_block().memory)) tl_cluster.bad = true;
  memset(tl_block().memory, 0xff, BB_SHARED);
}

/* Of threads that wait for the same the first says so. */
static void tl_tell() {
  std::string said;
  int ended = 0;
  for (int i = 0; i < tl_cluster.blocks; i++) ended += bb_here.threads - tl_cluster.block[i].left;
  fprintf(stderr, "host: nobody can go on (%d threads have ended):\n", ended);
  for (int i = 0; i < tl_cluster.blocks * bb_here.threads; i++) {
    const tl_thread_state *t = &tl_cluster.thread[i];
    char text[200];
    if (bb_here.ended[i]) continue;
    snprintf(text, sizeof text, "block %d warp %d waits for %s %d",
             tl_cluster.first + i / bb_here.threads, i % bb_here.threads / TL_WARP,
             t->waits_for ? t->waits_for : "its turn,", t->number);
    if (said != text)
      fprintf(stderr, "  %s%s (thread %d)\n", text, t->tell ? t->tell(t->number).c_str() : "",
              i % bb_here.threads);
    said = text;
  }
}

static int tl_next() {
  std::deque<int> &ready = tl_cluster.ready;
  if (tl_cluster.order) std::swap(ready[0], ready[tl_draw() % ready.size()]);
  const int fiber = ready[0];
  ready.pop_front();
  return fiber;
}

static bool tl_helped() {
  for (const tl_more &o : tl_others())
    if (o.goes_on && o.goes_on()) return true;
  return false;
}

static int tl_run_cluster() {
  const int fibers = tl_cluster.blocks * bb_here.threads;
  memset(bb_here.begun, 0, sizeof bb_here.begun);
  memset(bb_here.ended, 0, sizeof bb_here.ended);
  tl_cluster.ready.clear();
  tl_cluster.all = {};
  tl_cluster.times = 0;
  memset(tl_cluster.came_at, 0, sizeof tl_cluster.came_at);
  memset(tl_cluster.knows, 0, sizeof tl_cluster.knows);
  for (int i = 0; i < fibers; i++) tl_cluster.ready.push_back(i), tl_cluster.thread[i] = {};
  for (int i = 0; i < tl_cluster.blocks; i++) {
    tl_block_state *b = &tl_cluster.block[i];
    if (!b->memory) b->memory = (unsigned char *)aligned_alloc(1024, BB_SHARED);
    memset(b->memory, 0xff, BB_SHARED); /* whoever reads what nobody wrote gets NaN */
    b->left = bb_here.threads;
    for (tl_meeting &m : b->name) m = {};
    for (tl_meeting &m : b->warp) m = {};
  }
  for (const tl_more &o : tl_others())
    if (o.begin) o.begin();
  for (int left = fibers; left > 0 && !tl_cluster.bad;) {
    if (tl_cluster.ready.empty()) {
      if (tl_helped()) continue;
      if (!tl_cluster.bad) tl_tell();
      return 1;
    }
    const int fiber = tl_next();
    bb_here.thread = fiber % bb_here.threads;
    bb_here.block = tl_cluster.first + fiber / bb_here.threads;
    bb_shared = tl_cluster.block[fiber / bb_here.threads].memory;
    tl_cluster.runs = true;
    bb_go_on(fiber);
    tl_cluster.runs = false;
    if (!bb_here.ended[fiber]) continue;
    left--;
    tl_end_thread();
  }
  return tl_cluster.bad;
}

int tl_run(void (*body)(const void *), const void *call, int64_t blocks, int threads,
           unsigned shared, int cluster) {
  const char *order = getenv("FAKE_ORDER");
  int bad = 0;
  if (cluster < 1 || cluster > TL_BLOCKS || cluster * threads > BB_FIBERS || blocks % cluster ||
      threads % TL_WARP) {
    fprintf(stderr, "host: no clusters of %d of %d blocks of %d threads\n", cluster, (int)blocks,
            threads);
    return 1;
  }
  bb_begin(body, call, blocks, threads, shared);
  tl_cluster.blocks = cluster;
  tl_cluster.bad = false;
  tl_cluster.order = order ? strtoull(order, NULL, 10) * 0x9e3779b97f4a7c15u : 0;
  for (int64_t first = 0; first < blocks && !bad; first += cluster) {
    tl_cluster.first = (int)first;
    bad = tl_run_cluster();
  }
  return bad;
}
