/* pool.h - threads that run tasks 0 .. tasks - 1 of a function, the caller among them.
 */
#ifndef BB_CPU_POOL_H
#define BB_CPU_POOL_H

#include "../../graph/context.h"

typedef struct bb_pool bb_pool;
typedef void bb_task(void *user, int64_t task, uint32_t thread);

uint32_t bb_pool_processors(void); /* that threads may run on, 1 at least */
bb_pool *bb_pool_create(bb_context *ctx, uint32_t threads);
uint32_t bb_pool_threads(const bb_pool *pool);
void bb_pool_run(bb_pool *pool, int64_t tasks, bb_task *function, void *user);
void bb_pool_destroy(bb_pool *pool);

/* The same on threads of somebody else's, so many at most. */
void bb_pool_borrow(bb_parallel_function *parallel, void *parallel_user, uint32_t threads,
                    int64_t tasks, bb_task *function, void *user);

#endif
