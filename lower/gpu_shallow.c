/* gpu_shallow.c - a product whose depth is one block gets the loop over blocks that others have.
 *
 *     t0 = 0                                     t0 = 0
 *     t1 = load x[i:128, 0:64]                   serial k = 0 to 64 step 64 {
 *     t2 = load w[j:128, 0:64]        ==>          t1 = load x[i:128, k:64]
 *     t0 += dot(t1, t2')                           t2 = load w[j:128, k:64]
 *                                                  t0 += dot(t1, t2')
 *                                                }
 *
 * What loops of products have is then its as well: operands of the next tile are on their way while results leave, and
 * those leave by the copy engine.
 */
#include "gpu.h"

static bool has_loop(const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++)
    if (body->stmt[i]->loop || body->stmt[i]->body.count) return true;
  return false;
}

/* The range of a load over what is summed: all of an axis that is known; NULL: it is another. */
static bb_tile_range *depth_of(const bb_gpu *g, bb_tile_stmt *load, bb_axis axis) {
  const bb_tile_view *view = &g->p->view[load->view];
  for (uint32_t i = 0; i < view->rank; i++) {
    bb_tile_range *r = &load->range[i];
    if (!r->size || r->axis != axis) continue;
    const bool whole =
        bb_expr_is_number(r->start, 0) && bb_expr_is_number(view->extent[i], r->size);
    return whole ? r : NULL;
  }
  return NULL;
}

/* The load that makes a tile for the product alone; BB_NONE: something else does. */
static uint32_t load_of(const bb_gpu *g, const bb_tile_body *core, uint32_t tile) {
  if (bb_tile_writers(&g->p->body, tile) != 1 || bb_tile_readers(&g->p->body, tile) != 1)
    return BB_NONE;
  for (uint32_t i = 0; i < core->count; i++)
    if (core->stmt[i]->kind == BB_TILE_LOAD && core->stmt[i]->result == tile) return i;
  return BB_NONE;
}

static uint32_t lone_dot(const bb_tile_body *core) {
  uint32_t found = BB_NONE;
  for (uint32_t i = 0; i < core->count; i++) {
    if (core->stmt[i]->kind != BB_TILE_DOT) continue;
    if (found != BB_NONE) return BB_NONE;
    found = i;
  }
  return found;
}

void bb_gpu_shallow(bb_gpu *g) {
  bb_tile_program *p = g->p;
  bb_tile_body *core = &p->body;
  while (core->count == 1 && core->stmt[0]->loop && core->stmt[0]->loop->parallel)
    core = &core->stmt[0]->loop->body;
  uint32_t at = lone_dot(core);
  if (has_loop(core) || at == BB_NONE) return;
  bb_tile_stmt *dot = core->stmt[at], *load[2];
  if (!dot->accumulate || dot->stage || dot->operand[0] == dot->operand[1]) return;
  bb_tile_range *depth[2];
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t from = load_of(g, core, dot->operand[k]);
    if (from == BB_NONE || from > at) return;
    load[k] = core->stmt[from];
    depth[k] = depth_of(g, load[k], dot->transposed[k] == (k == 0) ? BB_AXIS_ROW : BB_AXIS_COL);
    if (!depth[k]) return;
  }
  bb_tile_stmt *s = bb_tile_stmt_new(p, BB_TILE_LOOP);
  const uint32_t variable =
      bb_tile_add_variable(p, bb_arena_printf(p->home->arena, "i%u", p->variables), false);
  const bb_tile_index size = bb_expr_const(p->home, BB_I64, depth[0]->size);
  *s->loop = (bb_tile_loop){.variable = variable, .commutes = true, .step = size, .stretches = 1};
  s->loop->stretch[0] = (bb_tile_stretch){bb_expr_const(p->home, BB_I64, 0), size};
  for (uint32_t k = 0; k < 2; k++) depth[k]->start = bb_expr_arg(p->home, BB_I64, variable);
  core->stmt[at] = s;
  for (uint32_t i = at; i-- > 0;)
    if (core->stmt[i] == load[0] || core->stmt[i] == load[1]) bb_tile_remove(core, i);
  for (uint32_t k = 0; k < 2; k++) bb_tile_push(p, &s->loop->body, load[k]);
  bb_tile_push(p, &s->loop->body, dot);
}
