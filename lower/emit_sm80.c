/* emit_sm80.c - what kernels for sm_80 and later GPUs say otherwise than those for sm_90a: all threads copy, piece by piece, where
 * there a copy engine does, and every warp makes the products of its own rows, which have ended when they are said.
 *
 * What a serial loop loads lies in buffers that take turns: an iteration begins when its own copies are there and all threads have
 * ended the one before, whose buffer is then filled for a later one.  Everything between products is as for sm_90a (emit_sm90.h).
 */
#include "emit_sm90.h"
#include "infix.h"

bool bb_cuda80_turns(const bb_cuda *e, uint32_t tile) {
  for (uint32_t i = 0; e->serial && i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (s->kind == BB_TILE_LOAD && s->result == tile) return e->tile[tile].ring;
  }
  return false;
}

void bb_cuda80_check(bb_cuda *e) {
  if (e->cluster || e->warps) bb_cuda_refuse(e, NULL, "a loop over a cluster or over warps");
  if (e->p->turns || e->stages) bb_cuda_refuse(e, NULL, "products in turns, or in stages");
  for (uint32_t i = 0; i < e->grids; i++)
    if (e->grid[i]->persistent || e->grid[i]->queue || e->grid[i]->pairs)
      bb_cuda_refuse(e, NULL, "blocks of several tiles, or in pairs");
  for (uint32_t t = 0; t < e->p->tiles; t++) {
    uint32_t buffers = e->p->tile[t].buffers;
    if (!bb_cuda80_turns(e, t)) continue;
    if (buffers < 2 || (e->turns && e->turns != buffers))
      bb_cuda_refuse(e, NULL, "a loop that loads into other than two or more buffers, alike");
    e->turns = buffers;
  }
}

/* --- copies --- */

/* Of a tile's rows or columns: elements from one to the next, and how many there are from the tile's first on. */
typedef struct side {
  const char *step, *left;
} side;

static side side_of(bb_cuda *e, const bb_tile_stmt *s, bb_axis axis) {
  const bb_tile_view *view = &e->p->view[s->view];
  bb_tile_index stride = bb_expr_const(e->p->home, BB_I64, 1);
  side found = {NULL, NULL};
  for (uint32_t i = view->rank; i-- > 0;) {
    const bb_tile_range *r = &s->range[i];
    if (r->size && r->axis == axis) {
      if (found.step) bb_cuda_refuse(e, s, "a tile along several axes of its view");
      found.step = bb_cuda_index(e, view->strided ? view->stride[i] : stride, NULL);
      found.left = bb_infix(e->arena, bb_cuda_index(e, view->extent[i], NULL), "-",
                            bb_cuda_index(e, r->start, NULL));
    }
    stride = bb_expr_make(e->p->home, BB_X_MUL, stride, view->extent[i], NULL);
  }
  if (!found.step) bb_cuda_refuse(e, s, "a copied tile without rows or columns");
  return found;
}

/* The tile's first element in memory, its rows and columns; refuses columns that do not lie side by side. */
static const char *begin_of(bb_cuda *e, const bb_tile_stmt *s, side *rows, side *cols) {
  const bb_tile_view *view = &e->p->view[s->view];
  const bb_tile_range *last = &s->range[view->rank - 1];
  bb_tile_index by = view->strided ? view->stride[view->rank - 1] : NULL;
  if (!last->size || last->axis != BB_AXIS_COL || (by && (by->op != BB_X_CONST || by->number != 1)))
    bb_cuda_refuse(e, s, "a tile whose columns do not lie side by side");
  *rows = side_of(e, s, BB_AXIS_ROW);
  *cols = side_of(e, s, BB_AXIS_COL);
  const char *inside, *at = bb_cuda_offset(e, s, "0", "0", &inside);
  return bb_arena_printf(e->arena, "p.%s + %s", bb_cuda_view_name(e, s->view), at);
}

/* Of a padded view: how many rows lie before it, as a last argument; there are none where a single index is outside. */
static const char *rows_before(bb_cuda *e, const bb_tile_stmt *s, side *rows) {
  const bb_tile_view *view = &e->p->view[s->view];
  const char *before = "", *inside = NULL;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &s->range[i];
    const char *start = bb_cuda_index(e, r->start, NULL);
    if (r->size && r->axis == BB_AXIS_ROW) before = bb_arena_printf(e->arena, ", -(%s)", start);
    bool begins = r->start->op == BB_X_ARG || (r->start->op == BB_X_CONST && r->start->number >= 0);
    if (r->size && r->axis == BB_AXIS_COL && !begins)
      bb_cuda_refuse(e, s, "a copied tile whose columns may begin before an array");
    if (r->size) continue;
    const char *there = bb_arena_printf(e->arena, "%s >= 0 && %s < %s", start, start,
                                        bb_cuda_index(e, view->extent[i], NULL));
    inside = inside ? bb_arena_printf(e->arena, "%s && %s", inside, there) : there;
  }
  if (inside) rows->left = bb_arena_printf(e->arena, "%s ? %s : 0", inside, rows->left);
  return before;
}

/* By all threads, to a buffer in shared memory. */
static void put_copy(bb_cuda *e, const bb_tile_stmt *s, const char *to) {
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  side rows, cols;
  const char *from = begin_of(e, s, &rows, &cols);
  if (s->pad != 0) bb_cuda_refuse(e, s, "a copied tile is padded with zeros");
  const char *before = e->p->view[s->view].padded ? rows_before(e, s, &rows) : "";
  bb_cuda_line(e, "tl::copy_tile<%u, %u, %u%s>(my_thread, %s, %s, %s, %s, %s%s);", e->threads,
               t->rows, t->cols, *before ? ", true" : "", to, from, rows.step, rows.left, cols.left,
               before);
}

void bb_cuda80_copies(bb_cuda *e, const bb_cuda_list *list) {
  bool any = false;
  for (uint32_t i = 0; i < list->count; i++) {
    if (!bb_cuda_is_copied(e, list->stmt[i])) continue;
    put_copy(e, list->stmt[i], bb_cuda_buffer(e, list->stmt[i]->result));
    any = true;
  }
  if (any) bb_cuda_line(e, "tl::copies_end();");
}

/* The bounds of stretch k, and its first iteration. */
static void put_stretch(bb_cuda *e, uint32_t k) {
  const bb_tile_stretch *s = &e->serial->stretch[k];
  const bb_cuda_stretch all = {"ahead", "first", "end"};
  const char *step = bb_cuda_index(e, e->serial->step, NULL), *begin = "first";
  if (e->serial->down) {
    const char *trips = bb_infix_trips(e->arena, "first", "end", step);
    begin = bb_arena_printf(e->arena, "first + (%s - 1) * (%s)", trips, step);
  }
  bb_cuda_line(e, "case %u:", k);
  bb_cuda_line(e, "  first = %s;", bb_cuda_index(e, s->from, NULL));
  bb_cuda_line(e, "  end = %s;", s->to ? bb_cuda_index(e, s->to, NULL) : "first + 1");
  if (s->to && e->marks) begin = bb_cuda_marked_first(e, &all, NULL);
  bb_cuda_line(e, "  ahead = %s;", s->to ? begin : "first");
  bb_cuda_line(e, "  break;");
}

/* go_ahead(): the next iteration to load for, over all stretches, and whether there is one. */
static void put_walk(bb_cuda *e) {
  const bb_cuda_stretch all = {"ahead", "first", "end"};
  const char *step = bb_cuda_index(e, e->serial->step, NULL);
  const char *next = bb_infix(e->arena, "ahead", e->serial->down ? "-" : "+", step);
  if (e->marks) {
    bb_cuda_put_marks(e);
    next = bb_cuda_marked_next(e, &all);
  }
  bb_cuda_line(e, "int first = 0, end = 0, ahead = %s, stretch = 0;", e->serial->down ? "-1" : "0");
  bb_cuda_line(e, "auto is_there = [&]() { return ahead %s; };",
               e->serial->down ? ">= first" : "< end");
  bb_cuda_line(e, "auto go_ahead = [&]() {");
  e->depth++;
  bb_cuda_line(e, "if (is_there()) ahead = %s;", next);
  bb_cuda_line(e, "while (!is_there() && stretch < %u) {", e->serial->stretches);
  e->depth++;
  bb_cuda_line(e, "switch (stretch++) {");
  for (uint32_t k = 0; k < e->serial->stretches; k++) put_stretch(e, k);
  bb_cuda_line(e, "}");
  e->depth--;
  bb_cuda_line(e, "}");
  bb_cuda_line(e, "return is_there();");
  e->depth--;
  bb_cuda_line(e, "};");
}

static void put_loads(bb_cuda *e) {
  const char **now = e->variable;
  e->variable = bb_cuda_names_in(e, "place", "ahead");
  bb_cuda_line(e, "auto load_ahead = [&](int buffer) {");
  e->depth++;
  bb_cuda_line(e, "if (go_ahead()) {");
  e->depth++;
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (!bb_cuda_is_copied(e, s)) continue;
    if (s->stretches) bb_cuda_line(e, "if (%u >> (stretch - 1) & 1)", s->stretches);
    put_copy(e, s,
             bb_arena_printf(e->arena, "%s_at + buffer * %u", e->tile[s->result].name,
                             e->tile[s->result].stride));
  }
  e->depth--;
  bb_cuda_line(e, "}");
  bb_cuda_line(e, "tl::copies_end();");
  e->depth--;
  bb_cuda_line(e, "};");
  e->variable = now;
}

void bb_cuda80_begin(bb_cuda *e) {
  bb_cuda80_copies(e, &e->before);
  if (!e->turns) return;
  bb_cuda_line(e, "tl::Turns<%u> turns;", e->turns);
  put_walk(e);
  put_loads(e);
  bb_cuda_line(e, "for (int i = 0; i < %u; i++) load_ahead(i);", e->turns - 1);
}

/* As many groups of copies are younger than the one that is waited for as iterations are ahead. */
static void put_wait(bb_cuda *e, uint32_t younger) {
  bb_cuda_line(e, "tl::copies_wait<%u>();", younger);
  bb_cuda_line(e, "__syncthreads();");
}

void bb_cuda80_turn(bb_cuda *e) {
  put_wait(e, e->turns - 2);
  bb_cuda_line(e, "load_ahead(turns.before());");
}

/* Before the loop all its first copies are younger; behind it nothing is. */
void bb_cuda80_arrived(bb_cuda *e, uint32_t tile) {
  bool before = false;
  if (bb_cuda80_turns(e, tile)) return;
  for (uint32_t i = 0; i < e->before.count; i++) before |= e->before.stmt[i]->result == tile;
  put_wait(e, before && e->turns ? e->turns - 1 : 0);
}

void bb_cuda80_put(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *t = bb_cuda_tile_of(e, s->operand[0]);
  side rows, cols;
  const char *to = begin_of(e, s, &rows, &cols);
  bb_cuda_line(e, "tl::put_tile<%u, %u, %u>(%s, %s, my_rows, %s, %s, %s);", t->rows, e->group / 4,
               t->cols, to, bb_cuda_buffer(e, s->operand[0]), rows.step, rows.left, cols.left);
}

/* --- products --- */

void bb_cuda80_dot(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *a = bb_cuda_tile_of(e, s->operand[0]), *b = bb_cuda_tile_of(e, s->operand[1]);
  const bb_cuda_tile *c = &e->tile[s->result];
  uint32_t depth = s->transposed[0] ? a->rows : a->cols;
  if (c->ct % 2 || depth % 16) bb_cuda_refuse(e, s, "a product of other than sixteens");
  const char *bf = a->dtype == BB_BF16 ? "true" : "false";
  const char *bt = s->transposed[1] ? "true" : "false", *at = s->transposed[0] ? "true" : "false";
  if (!s->accumulate)
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) %s[e] = 0.f;", c->registers, c->name);
  if (a->place == BB_PLACE_LEFT)
    bb_cuda_line(e, "tl::add_product<%s, %u, %u, %u, %s>(%s, %s, %s, %u);", bf, c->rt, c->ct,
                 depth / 16, bt, c->name, e->tile[s->operand[0]].name,
                 bb_cuda_buffer(e, s->operand[1]), b->rows);
  else
    bb_cuda_line(e, "tl::add_product<%s, %u, %u, %u, %s, %s>(%s, %s, %u, my_rows, %s, %u);", bf,
                 c->rt, c->ct, depth / 16, at, bt, c->name, bb_cuda_buffer(e, s->operand[0]),
                 a->rows, bb_cuda_buffer(e, s->operand[1]), b->rows);
}
