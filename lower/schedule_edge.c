/* schedule_edge.c - a kernel at block sizes that suit the masks in it.
 */
#include "build.h"
#include "schedule.h"

/* Is a loop cut where a mask begins to hold, or ceases to? */
static bool is_cut(const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (is_cut(&s->body) || (s->loop && (s->loop->stretches > 1 || is_cut(&s->loop->body))))
      return true;
  }
  return false;
}

/* Blocks on the edge of a mask are computed whole: where there are such, large ones, whose price knows
 * nothing of masks, do more than small ones save. */
enum { MOST_AT_EDGES = 64 };

const bb_kernel *bb_schedule(bb_program *program, const bb_graph *graph, const char *name,
                             const bb_schedule_options *options) {
  const bb_kernel *made = bb_schedule_blocks(program, graph, name, options);
  if ((options && (options->raw || options->most)) || !is_cut(&made->tile->body)) return made;
  bb_schedule_options smaller = options ? *options : (bb_schedule_options){0};
  smaller.most = MOST_AT_EDGES;
  return bb_schedule_blocks(program, graph, name, &smaller);
}
