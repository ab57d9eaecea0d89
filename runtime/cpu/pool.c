/* pool.c - a few threads that take tasks from a counter.
 *
 * The counter, a ticket, says in its upper half which round of work it counts and in its lower half which task is next.
 * A thread takes tasks by raising the ticket that it has looked at: if that succeeds, the round is the one whose
 * function it has read, and the round cannot end before the tasks are done.  Nobody waits for a thread that took none:
 * one that wakes up late finds the round over.  Between rounds, while the function changes, the round is odd.
 *
 * To raise it takes as long as the line that it lies in takes from one processor to another, which is longer than a short
 * task: a thread takes a share of what is left, less and less of it, so that all end at about the same time.
 *
 * A thread that has nothing to do looks for work for some time, since nests follow each other closely, and then sleeps.
 */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 256, LOOKS = 16000, PATIENCE = 2000 };
static const int64_t most_tasks = INT32_MAX; /* of a round */

struct bb_pool {
  bb_context *ctx;
  uint32_t threads, started;
  pthread_t thread[MOST_THREADS];
  pthread_mutex_t lock;
  pthread_cond_t work;
  atomic_uint asleep;
  atomic_bool ends;
  char apart[64]; /* what all threads write, on lines of its own */
  _Atomic uint64_t ticket;
  _Atomic int64_t first, tasks; /* of this round */
  _Atomic(bb_task *) function;
  _Atomic(void *) user;
  char apart_too[64];
  _Atomic int64_t left; /* tasks of this round that are not done */
};

typedef struct worker {
  bb_pool *pool;
  uint32_t number;
} worker;

static uint32_t round_of(uint64_t ticket) {
  return (uint32_t)(ticket >> 32);
}

/* How many tasks a thread takes at once of so many that are left. */
static int64_t share_of(int64_t left, int64_t threads) {
  const int64_t shares = 16; /* of each thread's part */
  int64_t share = left / (threads * shares);
  return share ? share : 1;
}

/* Until the round that was looked at has no more. */
static void take_tasks(bb_pool *p, uint32_t number) {
  int64_t done = 0;
  uint64_t ticket = atomic_load(&p->ticket);
  while (round_of(ticket) % 2 == 0) {
    int64_t task = (uint32_t)ticket, tasks = atomic_load(&p->tasks);
    if (task >= tasks) break;
    int64_t share = share_of(tasks - task, p->threads);
    bb_task *function = atomic_load_explicit(&p->function, memory_order_relaxed);
    void *user = atomic_load_explicit(&p->user, memory_order_relaxed);
    int64_t first = atomic_load_explicit(&p->first, memory_order_relaxed);
    if (!atomic_compare_exchange_weak(&p->ticket, &ticket, ticket + (uint64_t)share)) continue;
    for (int64_t i = 0; i < share; i++) function(user, first + task + i, number);
    done += share;
    ticket = atomic_load(&p->ticket);
  }
  if (done) atomic_fetch_sub(&p->left, done);
}

static inline void breathe(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/* Is there a round that this thread has not seen the end of? */
static bool is_news(bb_pool *p, uint32_t seen) {
  uint32_t round = round_of(atomic_load(&p->ticket));
  return (round % 2 == 0 && round != seen) || atomic_load(&p->ends);
}

static void await(bb_pool *p, uint32_t seen) {
  for (int i = 0; i < LOOKS; i++) {
    if (is_news(p, seen)) return;
    breathe();
  }
  pthread_mutex_lock(&p->lock);
  atomic_fetch_add(&p->asleep, 1);
  while (!is_news(p, seen)) pthread_cond_wait(&p->work, &p->lock);
  atomic_fetch_sub(&p->asleep, 1);
  pthread_mutex_unlock(&p->lock);
}

static void *work(void *argument) {
  worker w = *(worker *)argument;
  free(argument);
  uint32_t seen = 0;
  for (;;) {
    await(w.pool, seen);
    if (atomic_load(&w.pool->ends)) return NULL;
    seen = round_of(atomic_load(&w.pool->ticket)) & ~1u;
    take_tasks(w.pool, w.number);
  }
}

uint32_t bb_pool_processors(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : (uint32_t)count;
}

/* Threads that cannot be started are done without. */
bb_pool *bb_pool_create(bb_context *ctx, uint32_t threads) {
  bb_pool *p = bb_resize(ctx, NULL, 0, sizeof *p);
  p->ctx = ctx;
  p->threads = threads ? threads : bb_pool_processors();
  if (p->threads > MOST_THREADS) p->threads = MOST_THREADS;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->work, NULL);
  for (uint32_t i = 1; i < p->threads; i++) {
    worker *w = malloc(sizeof *w);
    if (w) *w = (worker){p, i};
    if (!w || pthread_create(&p->thread[p->started], NULL, work, w) != 0) {
      free(w);
      break;
    }
    p->started++;
  }
  p->threads = p->started + 1;
  return p;
}

uint32_t bb_pool_threads(const bb_pool *p) {
  return p->threads;
}

static void wake(bb_pool *p, int64_t tasks) {
  uint32_t asleep = atomic_load(&p->asleep);
  if (!asleep) return;
  pthread_mutex_lock(&p->lock);
  if (tasks - 1 >= asleep)
    pthread_cond_broadcast(&p->work);
  else
    for (int64_t i = 1; i < tasks; i++) pthread_cond_signal(&p->work);
  pthread_mutex_unlock(&p->lock);
}

/* Begins a round while nobody has a task. */
static void begin(bb_pool *p, int64_t first, int64_t tasks, bb_task *function, void *user) {
  uint64_t round = round_of(atomic_load(&p->ticket)) + 1u;
  atomic_store(&p->ticket, round << 32);
  atomic_store(&p->tasks, tasks); /* seen only after the odd ticket */
  atomic_store_explicit(&p->first, first, memory_order_relaxed);
  atomic_store_explicit(&p->function, function, memory_order_relaxed);
  atomic_store_explicit(&p->user, user, memory_order_relaxed);
  atomic_store_explicit(&p->left, tasks, memory_order_relaxed);
  atomic_store(&p->ticket, (round + 1) << 32);
  wake(p, tasks);
}

/* Whoever has the last tasks may have lost its processor: it may have this one. */
static void await_end(bb_pool *p) {
  for (int i = 0; atomic_load(&p->left); i++) {
    breathe();
    if (i > PATIENCE) sched_yield();
  }
}

void bb_pool_run(bb_pool *p, int64_t tasks, bb_task *function, void *user) {
  if (tasks <= 1 || p->started == 0) {
    for (int64_t i = 0; i < tasks; i++) function(user, i, 0);
    return;
  }
  for (int64_t first = 0; first < tasks; first += most_tasks) {
    begin(p, first, tasks - first < most_tasks ? tasks - first : most_tasks, function, user);
    take_tasks(p, 0);
    await_end(p);
  }
}

void bb_pool_destroy(bb_pool *p) {
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  atomic_store(&p->ends, true);
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
  for (uint32_t i = 0; i < p->started; i++) pthread_join(p->thread[i], NULL);
  pthread_cond_destroy(&p->work);
  pthread_mutex_destroy(&p->lock);
  bb_resize(p->ctx, p, sizeof *p, 0);
}

/* --- threads of the caller's --- */

typedef struct borrowed {
  atomic_llong next;
  int64_t tasks, threads;
  bb_task *function;
  void *user;
} borrowed;

static void take_borrowed(void *argument, uint32_t number) {
  borrowed *b = argument;
  long long task = atomic_load(&b->next);
  while (task < b->tasks) {
    int64_t share = share_of(b->tasks - task, b->threads);
    if (!atomic_compare_exchange_weak(&b->next, &task, task + share)) continue;
    for (int64_t i = 0; i < share; i++) b->function(b->user, task + i, number);
    task = atomic_load(&b->next);
  }
}

void bb_pool_borrow(bb_parallel_function *parallel, void *parallel_user, uint32_t threads,
                    int64_t tasks, bb_task *function, void *user) {
  borrowed b = {
      .tasks = tasks, .threads = threads ? threads : 1, .function = function, .user = user};
  atomic_init(&b.next, 0);
  if (tasks <= 1 || threads <= 1)
    take_borrowed(&b, 0);
  else
    parallel(parallel_user, tasks < threads ? (uint32_t)tasks : threads, take_borrowed, &b);
}
