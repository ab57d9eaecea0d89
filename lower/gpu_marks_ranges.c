/* gpu_marks_ranges.c - whether a condition holds nowhere or everywhere in a block, from the least and the most of its vectors.
 *
 * Two vectors whose ranges do not meet have no equal elements; a place below all others is below each.  Most blocks of a
 * mask by documents, lengths or places are decided so, by a few numbers instead of all pairs.  Ranges are of whole numbers:
 * an order that has no NaN, and sums that do not round.
 */
#include "gpu_marks.h"

enum { VECTORS = BB_TILE_OPERANDS / 2 };

/* What an expression may be, as expressions of scalars; NULL: not known. */
typedef struct range {
  const bb_expr *least, *most;
} range;

typedef struct ranges {
  bb_gpu *g;
  bb_tile_body *body; /* folds go here */
  uint32_t vectors;   /* that were folded so far: a statement has two operands of each */
  uint32_t rows, cols;
  range *tile; /* by tile: once it is folded */
  uint32_t tiles;
} ranges;

static bb_program *home(const ranges *q) {
  return q->g->p->home;
}

static const bb_expr *make(const ranges *q, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(home(q), op, a, b, NULL);
}

static const bb_expr *truth(const ranges *q, bool is) {
  return bb_expr_const(home(q), BB_BOOL, is);
}

static bool is_false(const bb_expr *e) {
  return bb_expr_is_number(e, 0);
}

static const bb_expr * and (const ranges *q, const bb_expr *a, const bb_expr *b) {
  return is_false(a) || is_false(b) ? truth(q, false) : make(q, BB_X_AND, a, b);
}

static const bb_expr * or (const ranges *q, const bb_expr *a, const bb_expr *b) {
  return is_false(a) ? b : is_false(b) ? a : make(q, BB_X_OR, a, b);
}

/* --- whole numbers --- */

static uint32_t add_tile(bb_tile_program *p, bb_dtype dtype, uint32_t cols) {
  bb_tile t = {.dtype = dtype, .cols = cols, .buffers = 1};
  t.name = bb_arena_printf(p->home->arena, "t%u", p->tiles);
  return bb_tile_add(p, &t);
}

static const bb_tile_stmt *load_of(const ranges *q, uint32_t tile) {
  for (uint32_t i = 0; i < q->body->count; i++)
    if (q->body->stmt[i]->result == tile)
      return q->body->stmt[i]->kind == BB_TILE_LOAD ? q->body->stmt[i] : NULL;
  return NULL;
}

/* Threads fold along columns only: rows are loaded once more as such. */
static uint32_t as_columns(ranges *q, const bb_tile_stmt *load) {
  bb_tile_program *p = q->g->p;
  const bb_tile *t = &p->tile[load->result];
  if (t->cols) return load->result;
  bb_tile_stmt *again = bb_tile_copy(p, load);
  for (uint32_t i = 0; i < p->view[load->view].rank; i++)
    if (again->range[i].size) again->range[i].axis = BB_AXIS_COL;
  again->result = add_tile(p, t->dtype, t->rows);
  bb_tile_push(p, q->body, again);
  return again->result;
}

static const bb_expr *folded(ranges *q, uint32_t tile, bb_monoid_id by) {
  bb_tile_program *p = q->g->p;
  bb_tile_stmt *fold = bb_tile_stmt_new(p, BB_TILE_FOLD);
  fold->operands = 1;
  fold->operand[0] = tile;
  fold->monoid = bb_monoid_get(by);
  fold->axis = BB_AXIS_COL;
  fold->result = add_tile(p, p->tile[tile].dtype, 0);
  bb_tile_push(p, q->body, fold);
  return bb_tile_name(p, fold->result);
}

static range range_of_tile(ranges *q, uint32_t tile) {
  const bb_tile *t = &q->g->p->tile[tile];
  if (bb_dtype_is_float(t->dtype) || t->dtype == BB_BOOL || bb_tile_is_block(t)) return (range){0};
  if (tile >= q->tiles) return (range){0};
  if (!bb_tile_is_vector(t)) {
    const bb_expr *name = bb_tile_name(q->g->p, tile);
    return (range){name, name};
  }
  range *known = &q->tile[tile];
  const bb_tile_stmt *load = load_of(q, tile);
  if (!known->least && load && q->vectors < VECTORS) {
    q->vectors++;
    uint32_t columns = as_columns(q, load);
    *known = (range){folded(q, columns, BB_MONOID_MIN), folded(q, columns, BB_MONOID_MAX)};
  }
  return *known;
}

static range range_of(ranges *q, const bb_expr *e) {
  switch (e->op) {
  case BB_X_CONST: return (range){e, e};
  case BB_X_ARG:
    if (e->index >= BB_TILE_NAMED) return range_of_tile(q, e->index - BB_TILE_NAMED);
    return (range){e, e}; /* an extent */
  case BB_X_COORD: {
    uint32_t size = e->index == BB_COORD_ROW ? q->rows : q->cols;
    return (range){e, make(q, BB_X_ADD, e, bb_expr_const(home(q), BB_I64, (double)size - 1))};
  }
  case BB_X_ADD:
  case BB_X_SUB: {
    range a = range_of(q, e->a[0]), b = range_of(q, e->a[1]);
    bool adds = e->op == BB_X_ADD;
    if (!a.least || !b.least || e->dtype != BB_I64) return (range){0};
    return (range){make(q, e->op, a.least, adds ? b.least : b.most),
                   make(q, e->op, a.most, adds ? b.most : b.least)};
  }
  case BB_X_CAST: {
    range a = range_of(q, e->a[0]);
    if (!a.least || e->dtype != BB_I64) return (range){0};
    return (range){bb_expr_cast(home(q), BB_I64, a.least), bb_expr_cast(home(q), BB_I64, a.most)};
  }
  default: return (range){0};
  }
}

/* --- truths --- */

static bb_gpu_sure compared(ranges *q, const bb_expr *e) {
  bb_gpu_sure none = {truth(q, false), truth(q, false)};
  if (bb_dtype_is_float(e->a[0]->dtype)) return none;
  range a = range_of(q, e->a[0]), b = range_of(q, e->a[1]);
  if (!a.least || !b.least) return none;
  if (e->op == BB_X_LT)
    return (bb_gpu_sure){make(q, BB_X_LE, b.most, a.least), make(q, BB_X_LT, a.most, b.least)};
  if (e->op == BB_X_LE)
    return (bb_gpu_sure){make(q, BB_X_LT, b.most, a.least), make(q, BB_X_LE, a.most, b.least)};
  return (bb_gpu_sure){
      or (q, make(q, BB_X_LT, a.most, b.least), make(q, BB_X_LT, b.most, a.least)),
      and(q, make(q, BB_X_EQ, a.least, a.most),
          and(q, make(q, BB_X_EQ, b.least, b.most), make(q, BB_X_EQ, a.least, b.least)))};
}

static bb_gpu_sure sure_of(ranges *q, const bb_expr *e) {
  bb_gpu_sure none = {truth(q, false), truth(q, false)};
  if (e->op == BB_X_CONST) return (bb_gpu_sure){truth(q, e->number == 0), truth(q, e->number != 0)};
  if (e->op == BB_X_EQ || e->op == BB_X_LT || e->op == BB_X_LE) return compared(q, e);
  if (e->op == BB_X_NOT) {
    bb_gpu_sure a = sure_of(q, e->a[0]);
    return (bb_gpu_sure){a.always, a.never};
  }
  if (e->op == BB_X_AND || e->op == BB_X_OR) {
    bb_gpu_sure a = sure_of(q, e->a[0]), b = sure_of(q, e->a[1]);
    if (e->op == BB_X_AND)
      return (bb_gpu_sure){ or (q, a.never, b.never), and(q, a.always, b.always)};
    return (bb_gpu_sure){and(q, a.never, b.never), or (q, a.always, b.always)};
  }
  return none;
}

bb_gpu_sure bb_gpu_surely(bb_gpu *g, bb_tile_body *body, const bb_expr *named, uint32_t rows,
                          uint32_t cols) {
  ranges q = {.g = g, .body = body, .rows = rows, .cols = cols, .tiles = g->p->tiles};
  q.tile = BB_NEW(home(&q)->arena, range, q.tiles + 1);
  bb_gpu_sure sure = sure_of(&q, named);
  return is_false(sure.never) && is_false(sure.always) ? (bb_gpu_sure){NULL, NULL} : sure;
}
