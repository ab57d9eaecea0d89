/* emit_c_out.c - what is computed last is made where it goes.
 *
 * By way of a tile a block would be written twice, and read once between: where all of its columns are there, and lie side by side, the
 * map's loops write into the array.  What they read at a place is read before it is written, so it may be the same array.
 */
#include "emit_c_parts.h"
#include "tile_edit.h"

/* Columns that vectors make without others behind them. */
enum { FULL = 16 };

typedef struct search {
  uint32_t variable;
  const bb_tile_loop *found;
} search;

static void find_loop(void *user, bb_tile_body *body, uint32_t at) {
  search *s = user;
  const bb_tile_loop *l = body->stmt[at]->loop;
  if (l && l->variable == s->variable) s->found = l;
}

static bool is_multiple(bb_tile_index x, uint32_t of) {
  return x->op == BB_X_CONST && (int64_t)x->number % of == 0;
}

/* Are all elements of a block there along an axis of its view, wherever it begins? */
static bool is_all_there(const bb_c *c, const bb_tile_range *r, bb_tile_index extent) {
  search s = {r->start->op == BB_X_ARG ? r->start->index : BB_NONE, NULL};
  bb_tile_body all = c->p->body;
  if (!is_multiple(extent, r->size)) return false;
  if (bb_expr_is_number(r->start, 0)) return extent->number >= r->size;
  if (s.variable != BB_NONE) bb_tile_walk(&all, find_loop, &s);
  return s.found && s.found->stretches == 1 && is_multiple(s.found->stretch[0].from, r->size) &&
         is_multiple(s.found->step, r->size);
}

/* Does a store bring whole rows to neighbours in memory? */
static bool is_of_rows(const bb_c *c, const bb_tile_stmt *store) {
  const bb_tile_view *view = &c->p->view[store->view];
  uint32_t cols = c->p->tile[store->operand[0]].cols;
  if (cols % FULL || bb_c_is_in_pieces(c, store) || bb_c_is_live(c, store->operand[0], BB_AXIS_COL))
    return false;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &store->range[i];
    if (r->size && r->axis == BB_AXIS_COL)
      return r->size == cols && bb_tile_is_unit(view, i) && is_all_there(c, r, view->extent[i]);
  }
  return false;
}

bool bb_c_map_and_store(bb_c *c, const bb_tile_stmt *made, const bb_tile_stmt *store) {
  bool pair = made->kind == BB_TILE_MAP && store->kind == BB_TILE_STORE &&
              store->operand[0] == made->result && store->stretches == made->stretches;
  if (!pair || c->exact || !bb_tile_is_block(&c->p->tile[made->result])) return false;
  const bb_tile_view *view = &c->p->view[store->view];
  const bb_c_tile *held = &c->tile[made->result];
  bool plain = view->dtype == BB_F32 && c->p->tile[made->result].dtype == BB_F32 && !view->panels;
  if (!plain || held->writers != 1 || held->readers != 1 || held->turned || held->panels ||
      !is_of_rows(c, store))
    return false;
  const char *at = bb_arena_printf(c->out->arena, "*(%s)", bb_c_place(c, store, "r", "c"));
  bb_c_map_to(c, made, at, bb_c_rows_there(c, store));
  return true;
}
