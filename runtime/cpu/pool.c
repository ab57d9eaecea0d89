/* pool.c - a few threads that take tasks from a counter.
 *
 * A thread that has nothing to do looks for work for some microseconds, since nests follow each
 * other closely, and then sleeps.
 */
#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 256, LOOKS = 4000 };

struct bb_pool {
  bb_context *ctx;
  uint32_t threads, started;
  pthread_t thread[MOST_THREADS];
  pthread_mutex_t lock;
  pthread_cond_t work;
  atomic_uint round; /* of work; odd numbers are not used */
  atomic_uint busy;  /* threads that have not seen the end of this round */
  atomic_bool ends;
  atomic_llong next;
  int64_t tasks;
  bb_task *function;
  void *user;
};

typedef struct worker {
  bb_pool *pool;
  uint32_t number;
} worker;

static void take_tasks(bb_pool *p, uint32_t number) {
  for (;;) {
    long long task = atomic_fetch_add(&p->next, 1);
    if (task >= p->tasks) return;
    p->function(p->user, task, number);
  }
}

static inline void breathe(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void await(bb_pool *p, uint32_t seen) {
  for (int i = 0; i < LOOKS; i++) {
    if (atomic_load(&p->round) != seen || atomic_load(&p->ends)) return;
    breathe();
  }
  pthread_mutex_lock(&p->lock);
  while (atomic_load(&p->round) == seen && !atomic_load(&p->ends))
    pthread_cond_wait(&p->work, &p->lock);
  pthread_mutex_unlock(&p->lock);
}

static void *work(void *argument) {
  worker w = *(worker *)argument;
  free(argument);
  uint32_t seen = 0;
  for (;;) {
    await(w.pool, seen);
    if (atomic_load(&w.pool->ends)) return NULL;
    seen++;
    take_tasks(w.pool, w.number);
    atomic_fetch_sub(&w.pool->busy, 1);
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

void bb_pool_run(bb_pool *p, int64_t tasks, bb_task *function, void *user) {
  if (tasks <= 1 || p->started == 0) {
    for (int64_t i = 0; i < tasks; i++) function(user, i, 0);
    return;
  }
  p->tasks = tasks;
  p->function = function;
  p->user = user;
  atomic_store(&p->next, 0);
  atomic_store(&p->busy, p->started);
  pthread_mutex_lock(&p->lock);
  atomic_fetch_add(&p->round, 1);
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
  take_tasks(p, 0);
  while (atomic_load(&p->busy)) breathe();
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
  int64_t tasks;
  bb_task *function;
  void *user;
} borrowed;

static void take_borrowed(void *argument, uint32_t number) {
  borrowed *b = argument;
  for (;;) {
    long long task = atomic_fetch_add(&b->next, 1);
    if (task >= b->tasks) return;
    b->function(b->user, task, number);
  }
}

void bb_pool_borrow(bb_parallel_function *parallel, void *parallel_user, uint32_t threads,
                    int64_t tasks, bb_task *function, void *user) {
  borrowed b = {.tasks = tasks, .function = function, .user = user};
  atomic_init(&b.next, 0);
  if (tasks <= 1 || threads <= 1)
    take_borrowed(&b, 0);
  else
    parallel(parallel_user, tasks < threads ? (uint32_t)tasks : threads, take_borrowed, &b);
}
