/* pool.c - a few threads that take tasks from counters.
 *
 * Each thread has a part of a round's tasks, neighbours, and a counter of them, a ticket.  It says in its upper half which
 * round of work it counts and in its lower half which task of the part is next.  A thread takes tasks by raising the
 * ticket that it has looked at: if that succeeds, the round is the one whose function it has read, and the round cannot
 * end before the tasks are done.  Nobody waits for a thread that took none: one that wakes up late finds the round over.
 * Between rounds, while the function changes, the rounds of all tickets are odd.
 *
 * A thread begins with its own part, so that from nest to nest and from run to run it meets what its processor's cache
 * holds, and then takes of those of others.  To raise a ticket that another has raised takes as long as the line that it
 * lies in takes from one processor to another, which is longer than a short task: a thread takes a share of what is left,
 * less and less of it, so that all end at about the same time.
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

typedef struct part {
  _Atomic uint64_t ticket;
  char apart[64 - sizeof(uint64_t)]; /* each on a line of its own */
} part;

struct bb_pool {
  bb_context *ctx;
  uint32_t threads, started;
  pthread_t thread[MOST_THREADS];
  pthread_mutex_t lock;
  pthread_cond_t work;
  atomic_uint asleep;
  atomic_bool ends;
  char apart[64];
  _Atomic int64_t first, tasks; /* of this round */
  _Atomic(bb_task *) function;
  _Atomic(void *) user;
  char apart_too[64];   /* what all threads write, on lines of its own */
  _Atomic int64_t left; /* tasks of this round that are not done */
  char apart_again[64];
  part part[MOST_THREADS]; /* of thread 0 always; of the others where they were started */
};

typedef struct worker {
  bb_pool *pool;
  uint32_t number;
} worker;

static uint32_t round_of(uint64_t ticket) {
  return (uint32_t)(ticket >> 32);
}

/* How many tasks a thread takes at once of so many that are left of its part. */
static int64_t share_of(int64_t left) {
  const int64_t shares = 16;
  return left < shares ? 1 : left / shares;
}

/* The first of a thread's part of so many tasks. */
static int64_t begin_of(int64_t tasks, int64_t thread, int64_t threads) {
  return tasks / threads * thread + (tasks % threads < thread ? tasks % threads : thread);
}

/* Of one part, until the round that was looked at has no more; gives how many. */
static int64_t take_of(bb_pool *p, uint32_t owner, uint32_t number) {
  part *of = &p->part[owner];
  int64_t done = 0;
  uint64_t ticket = atomic_load(&of->ticket);
  while (round_of(ticket) % 2 == 0) {
    int64_t tasks = atomic_load(&p->tasks);
    int64_t begin = begin_of(tasks, owner, p->threads);
    int64_t left = begin_of(tasks, owner + 1, p->threads) - begin - (uint32_t)ticket;
    if (left <= 0) break;
    int64_t share = share_of(left);
    bb_task *function = atomic_load_explicit(&p->function, memory_order_relaxed);
    void *user = atomic_load_explicit(&p->user, memory_order_relaxed);
    int64_t first =
        atomic_load_explicit(&p->first, memory_order_relaxed) + begin + (uint32_t)ticket;
    if (!atomic_compare_exchange_weak(&of->ticket, &ticket, ticket + (uint64_t)share)) continue;
    for (int64_t i = 0; i < share; i++) function(user, first + i, number);
    done += share;
    ticket = atomic_load(&of->ticket);
  }
  return done;
}

static void take_tasks(bb_pool *p, uint32_t number) {
  int64_t done = 0;
  for (uint32_t i = 0; i < p->threads; i++) done += take_of(p, (number + i) % p->threads, number);
  if (done) atomic_fetch_sub(&p->left, done);
}

static inline void breathe(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/* Is there a round that this thread has not seen the end of? */
static bool is_news(bb_pool *p, uint32_t seen) {
  uint32_t round = round_of(atomic_load(&p->part[0].ticket));
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
    seen = round_of(atomic_load(&w.pool->part[0].ticket)) & ~1u;
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
  uint64_t round = round_of(atomic_load(&p->part[0].ticket)) + 1u;
  for (uint32_t i = 0; i < p->threads; i++) atomic_store(&p->part[i].ticket, round << 32);
  atomic_store(&p->tasks, tasks); /* seen only after the odd tickets */
  atomic_store_explicit(&p->first, first, memory_order_relaxed);
  atomic_store_explicit(&p->function, function, memory_order_relaxed);
  atomic_store_explicit(&p->user, user, memory_order_relaxed);
  atomic_store_explicit(&p->left, tasks, memory_order_relaxed);
  for (uint32_t i = p->threads; i-- > 0;) /* the first, which tells of the round, last */
    atomic_store(&p->part[i].ticket, (round + 1) << 32);
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
    int64_t share = share_of((b->tasks - task) / b->threads);
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
