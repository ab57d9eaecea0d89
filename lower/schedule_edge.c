/* schedule_edge.c - a kernel at block sizes that suit the masks in it.
 */
#include "build.h"
#include "emit_c.h"
#include "schedule.h"

/* Does a mask run across a block, or otherwise than along an extent? */
static bool is_across(const bb_tile_program *p, const bb_expr *condition) {
  uint32_t count;
  bb_arena *scratch = bb_scratch(p->home->ctx);
  const bb_expr **node = bb_expr_postorder(scratch, condition, &count);
  bool row = false, col = false, variable = false;
  for (uint32_t i = 0; i < count; i++) {
    row |= node[i]->op == BB_X_COORD && node[i]->index == BB_COORD_ROW;
    col |= node[i]->op == BB_X_COORD && node[i]->index == BB_COORD_COL;
    variable |= node[i]->op == BB_X_ARG && node[i]->index >= BB_TILE_VARIABLE + p->extents;
  }
  bb_scratch_end(scratch);
  return variable || (row && col);
}

static bool has_mask(const bb_tile_program *p, const bb_expr *expr) {
  uint32_t count;
  bb_arena *scratch = bb_scratch(p->home->ctx);
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  bool has = false;
  for (uint32_t i = 0; i < count && !has; i++)
    has = node[i]->op == BB_X_SELECT && node[i]->a[0]->coord && is_across(p, node[i]->a[0]);
  bb_scratch_end(scratch);
  return has;
}

/* Is a loop cut where a mask begins to hold, or ceases to?  At the end of an extent there is one block of it, which
 * prices know; but where blocks lie in registers (`all`), two bodies of large ones have no room. */
static bool is_cut(const bb_tile_program *p, const bb_tile_body *body, bool all) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind == BB_TILE_MAP && s->stretches && has_mask(p, s->expr)) return true;
    if (all && s->loop && s->loop->stretches > 1) return true;
    if (is_cut(p, &s->body, all) || (s->loop && is_cut(p, &s->loop->body, all))) return true;
  }
  return false;
}

/* Blocks on the edge of a mask are computed whole: where there are such, large ones, whose price knows
 * nothing of masks, do more than small ones save.  Strips of large ones are left out where they lie beyond the
 * edge: then what a loop folds decides how much is computed in vain, unless strips end where the mask does. */
enum { MOST_AT_EDGES = 64, MOST_IN_STRIPS = 256, MOST_FOLDED = 64 };

static void limit_folded(const bb_graph *graph, int64_t *limit) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind != BB_NODE_MAP) continue;
    for (uint32_t o = 0; o < node->nout; o++)
      if (node->out[o].mode == BB_OUT_FOLD) limit[node->dim] = MOST_FOLDED;
    limit_folded(node->inner, limit);
  }
}

const bb_kernel *bb_schedule(bb_program *program, const bb_graph *graph, const char *name,
                             const bb_schedule_options *options) {
  const bb_kernel *made = bb_schedule_blocks(program, graph, name, options);
  bool strips = options && options->strips;
  if ((options && (options->raw || options->most)) ||
      !is_cut(made->tile, &made->tile->body, !strips))
    return made;
  bb_schedule_options smaller = options ? *options : (bb_schedule_options){0};
  if (smaller.strips) {
    int64_t *limit = BB_NEW(program->arena, int64_t, program->dims + 1);
    limit_folded(graph, limit);
    bb_schedule_options large = smaller;
    bool ends;
    large.most = MOST_IN_STRIPS;
    made = bb_schedule_blocks(program, graph, name, &large);
    if (bb_c_has_strips(made->tile, smaller.strips, &ends) && ends) return made;
    large.limit = limit;
    made = bb_schedule_blocks(program, graph, name, &large);
    if (bb_c_has_strips(made->tile, smaller.strips, &ends)) return made;
  }
  smaller.most = MOST_AT_EDGES;
  return bb_schedule_blocks(program, graph, name, &smaller);
}
