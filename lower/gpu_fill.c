/* gpu_fill.c - masks of blocks that change nothing go: they fill with what is there already, or another mask
 * implies them.
 *
 * A filling is a map tile = select(condition, tile, number).
 */
#include "gpu_mask.h"

#include <math.h>
#include <string.h>

/* --- fillings that change nothing --- */

static const bb_expr *number(const bb_gpu *g, double value) {
  return bb_expr_const(g->p->home, BB_F32, value);
}

/* The expression with each tile other than `tile` that one map of a single operand makes here expanded,
 * so that what that map excludes is known. */
static const bb_expr *expanded(const bb_gpu *g, const bb_tile_body *body, uint32_t at,
                               const bb_expr *e, uint32_t tile) {
  const bb_tile_stmt *s = body->stmt[at];
  for (uint32_t i = 0; i < s->operands; i++) {
    if (s->operand[i] == tile) continue;
    uint32_t k = at;
    while (k > 0 && !bb_tile_writes(body->stmt[k - 1], s->operand[i])) k--;
    if (k == 0) continue;
    const bb_tile_stmt *made = body->stmt[k - 1];
    if (made->kind == BB_TILE_MAP && made->operands == 1 && !bb_expr_uses_coord(made->expr) &&
        made->operand[0] != tile && made->operand[0] != s->operand[i])
      e = bb_tile_replace(g->p, e, s->operand[i], bb_tile_named(g->p, made));
  }
  return e;
}

/* Is an expression a value whatever its tiles are?  Asked for a few numbers of each; one with indices is not said to be. */
static bool always_is(const bb_gpu *g, const bb_expr *e, double value) {
  static const double sample[] = {0, 1, -2.5, 3e30, -3e30, INFINITY, -INFINITY};
  const uint32_t samples = sizeof sample / sizeof *sample;
  uint32_t tile[4], tiles = 0, ways = 1;
  for (uint32_t t = 0; t < g->p->tiles; t++) {
    if (!bb_tile_names(e, t)) continue;
    if (tiles == 4) return false;
    tile[tiles++] = t, ways *= samples;
  }
  for (uint32_t way = 0; way < ways; way++) {
    const bb_expr *x = e;
    for (uint32_t i = 0, rest = way; i < tiles; i++, rest /= samples)
      x = bb_tile_replace(g->p, x, tile[i], number(g, sample[rest % samples]));
    if (x->arg_count > 0 || bb_expr_eval(x, &(bb_expr_env){0}) != value) return false;
  }
  return true;
}

/* Does a load give `fill` where a condition, that the column is below the extent of what is loaded,
 * does not hold? */
static bool fills_beyond(const bb_gpu *g, const bb_tile_stmt *load, const bb_tile_stmt *mask_stmt,
                         const bb_expr *condition, double *fill) {
  if (load->kind != BB_TILE_LOAD || condition->op != BB_X_LT) return false;
  const bb_expr *col = condition->a[0], *limit = condition->a[1];
  if (col->op != BB_X_COORD || col->index != BB_COORD_COL) return false;
  const bb_tile_view *view = &g->p->view[load->view];
  *fill = load->pad;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &load->range[i];
    if (!r->size || r->axis != BB_AXIS_COL) continue;
    bb_tile_index extent = view->extent[i];
    bool same = extent->op == BB_X_CONST ? limit == extent
                                         : extent->op == BB_X_ARG && limit->op == BB_X_ARG &&
                                               limit->index == BB_TILE_VARIABLE + extent->index;
    return same && r->start == mask_stmt->at[1];
  }
  return false;
}

/* Is what the statement before made of a tile that the same condition filled already the filling? */
static bool is_filled(const bb_gpu *g, const bb_tile_body *body, uint32_t at) {
  bb_mask_filling m, earlier;
  if (!bb_mask_fills(g, body->stmt[at], &m) || at == 0) return false;
  uint32_t made = at;
  while (made > 0 && !bb_tile_writes(body->stmt[made - 1], m.tile)) made--;
  if (made-- == 0 || body->stmt[made]->kind != BB_TILE_MAP) return false;
  const bb_tile_stmt *map = body->stmt[made];
  if (bb_expr_uses_coord(map->expr)) return false;
  for (uint32_t i = 0; i < map->operands; i++) {
    uint32_t k = made, x = map->operand[i];
    while (k > 0 && !bb_tile_writes(body->stmt[k - 1], x)) k--;
    if (k > 0 && fills_beyond(g, body->stmt[k - 1], body->stmt[at], m.condition, &earlier.fill)) {
      const bb_expr *pad = bb_expr_const(g->p->home, g->p->tile[x].dtype, earlier.fill);
      const bb_expr *e = expanded(g, body, made, bb_tile_named(g->p, map), x);
      if (always_is(g, bb_tile_replace(g->p, e, x, pad), m.fill)) return true;
    }
    if (k == 0 || !bb_mask_fills(g, body->stmt[k - 1], &earlier)) continue;
    if (earlier.condition != m.condition || body->stmt[k - 1]->at[0] != body->stmt[at]->at[0] ||
        body->stmt[k - 1]->at[1] != body->stmt[at]->at[1])
      continue;
    const bb_expr *e = expanded(g, body, made, bb_tile_named(g->p, map), x);
    if (always_is(g, bb_tile_replace(g->p, e, x, number(g, earlier.fill)), m.fill)) return true;
  }
  return false;
}

/* --- masks that others imply --- */

/* A filling right behind another of the same tile and number, whose condition implies its own. */
static bool is_implied(const bb_gpu *g, const bb_affine_scope *scope, const bb_tile_body *body,
                       uint32_t at) {
  bb_mask_filling m, earlier;
  if (at == 0 || !bb_mask_fills(g, body->stmt[at], &m) ||
      !bb_mask_fills(g, body->stmt[at - 1], &earlier) || earlier.tile != m.tile ||
      memcmp(&earlier.fill, &m.fill, sizeof m.fill) != 0)
    return false;
  bb_mask_linear d = bb_mask_comparison(m.condition, true);
  return d.is && bb_mask_implies(scope, body->stmt[at], earlier.condition, d);
}

static void fill_body(bb_gpu *g, bb_tile_body *body, const bb_tile_loop **scope) {
  bb_affine_scope known = {g->p, scope};
  for (uint32_t at = 0; at < body->count; at++) {
    bb_tile_loop *loop = body->stmt[at]->loop;
    if (loop) scope[loop->variable] = loop;
    if (loop) fill_body(g, &loop->body, scope);
    if (loop) scope[loop->variable] = NULL;
    if (is_filled(g, body, at)) bb_tile_remove(body, at--);
  }
  for (uint32_t at = 0; at < body->count; at++)
    if (is_implied(g, &known, body, at)) bb_tile_remove(body, at--);
}

void bb_gpu_fills(bb_gpu *g) {
  fill_body(g, &g->p->body, bb_mask_scope(g));
}
