/* gpu_split.c - a placed program whose grid would leave processors idle: the fold of each result, in parts by the
 * blocks of a cluster, which merge them in each other's memory.
 *
 *   parallel m { parallel n { begin; serial k { sums }; end } }    becomes
 *   parallel m { parallel n { parallel split { begin; serial k = of this split { sums } } merged; end } }
 */
#include "gpu_parts.h"

/* That fill the processors, one each: of those that share a cluster's memories some stay idle, where these are more than two. */
enum { BLOCKS = 120, BLOCKS_BY_TWOS = 132 };

void bb_gpu_split(bb_gpu *g) {
  bb_parts q = {.g = g, .core = &g->p->body};
  while (q.core->count == 1 && q.core->stmt[0]->loop && q.core->stmt[0]->loop->parallel)
    q.core = &q.core->stmt[0]->loop->body;
  while (q.loop < q.core->count && !q.core->stmt[q.loop]->loop) q.loop++;
  if (q.loop == q.core->count) bb_gpu_refuse(g, "parts of what is no loop");
  const bb_tile_loop *loop = q.core->stmt[q.loop]->loop;
  if (loop->stretches != 1 || loop->step->op != BB_X_CONST || !loop->commutes)
    bb_gpu_refuse(g, "parts of a loop that keeps its order");
  for (uint32_t i = 0; i < loop->body.count; i++)
    if (loop->body.stmt[i]->stage) bb_gpu_refuse(g, "parts of a loop with stages");
  bb_parts_find(&q);
  bb_parts_settle(&q);
  bb_parts_turn(&q);
  bb_parts_split(&q, BLOCKS, BLOCKS_BY_TWOS, g->split);
}
