/* tile_verify.c - the laws of tile programs: shapes, types, scopes, values that are there before they
 * are read, loops that may run in parallel, stages that keep the order of what depends.
 */
#include "tile.h"

#include <string.h>

enum { EVERYWHERE = 0xff };

typedef struct verifier {
  const bb_tile_program *p;
  bb_arena *scratch;
  const bb_tile_stmt *stmt; /* at which something is wrong */
  const char *wrong;
  bool *scope;       /* by variable */
  uint8_t *defined;  /* by tile: in which stretches of the loop it has been written, a bit each */
  uint8_t stretches; /* in which the statement runs */
} verifier;

static bool breaks(verifier *v, bool broken, const char *law) {
  if (broken && !v->wrong) v->wrong = law;
  return v->wrong != NULL;
}

/* --- declarations --- */

static bool index_in_scope(const verifier *v, bb_tile_index index) {
  if (index->op == BB_X_SELECT && index->a[0]->op == BB_X_LE)
    return index_in_scope(v, index->a[0]->a[0]) && index_in_scope(v, index->a[0]->a[1]) &&
           index_in_scope(v, index->a[1]) && index_in_scope(v, index->a[2]);
  if (index->dtype != BB_I64) return false;
  if (index->op == BB_X_ARG) return index->index < v->p->variables && v->scope[index->index];
  if (index->op == BB_X_COORD || index->op == BB_X_EXTENT || index->op == BB_X_SYMBOL) return false;
  for (uint32_t i = 0; i < bb_expr_op_arity(index->op); i++)
    if (!index_in_scope(v, index->a[i])) return false;
  return true;
}

static bool condition_in_scope(const verifier *v, const bb_expr *e) {
  if (e->op == BB_X_CONST) return true;
  if (e->dtype != BB_BOOL) return index_in_scope(v, e);
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++)
    if (!condition_in_scope(v, e->a[i])) return false;
  return true;
}

/* Parts know of each other's components and of nothing else: they have no place. */
static bool combines_parts_alone(const bb_expr *e) {
  if (e->op == BB_X_COORD || e->op == BB_X_EXTENT || e->op == BB_X_SYMBOL) return false;
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++)
    if (!combines_parts_alone(e->a[i])) return false;
  return true;
}

static void check_declarations(verifier *v) {
  const bb_tile_program *p = v->p;
  for (uint32_t i = 0; i < p->views; i++)
    for (uint32_t k = 0; k < p->view[i].rank; k++) {
      breaks(v, !index_in_scope(v, p->view[i].extent[k]),
             "a view's extent depends on extents only");
      if (p->view[i].strided)
        breaks(v, !index_in_scope(v, p->view[i].stride[k]),
               "a view's stride depends on extents only");
    }
  for (uint32_t i = 0; i < p->views; i++)
    breaks(v, p->view[i].scratch && !p->view[i].written, "scratch is written before it is read");
  for (uint32_t i = 0; i < p->views; i++) {
    const bb_tile_view *view = &p->view[i];
    breaks(v, view->padded && (view->written || view->panels), "a padded view is only read");
    if (!view->panels || breaks(v, view->rank < 2 || view->strided, "panels are dense blocks"))
      continue;
    bb_tile_index along = view->extent[view->rank - 1];
    breaks(v, along->op != BB_X_CONST || (int64_t)along->number % bb_tile_panel(view->dtype) != 0,
           "a block of panels has whole ones");
  }
  for (uint32_t i = 0; i < p->tiles; i++) {
    const bb_tile *t = &p->tile[i];
    bool shared = t->place == BB_PLACE_SHARED;
    breaks(v, t->buffers < 1 || (t->buffers > 1 && !shared), "only shared tiles have buffers");
    breaks(v, t->place != BB_PLACE_REGISTERS && (!t->rows || !t->cols) && !shared,
           "a left operand is a block");
    breaks(v, t->partial && (shared || !t->rows == !t->cols || t->dtype != BB_F32),
           "what lanes hold parts of is an f32 vector in registers");
  }
  for (uint32_t i = 0; i < p->monoids; i++) {
    breaks(v, p->monoid[i]->components == 0, "a monoid without components");
    for (uint32_t k = 0; k < p->monoid[i]->components; k++)
      breaks(v, !combines_parts_alone(p->monoid[i]->combine[k]),
             "how parts combine depends on the parts alone");
  }
}

/* --- tiles of a statement --- */

static void check_reads(verifier *v, const bb_tile_stmt *s) {
  for (uint32_t i = 0; i < s->operands; i++)
    breaks(v, v->stretches & ~v->defined[s->operand[i]],
           "a tile is read before it is sure to be written");
  if (s->accumulate)
    breaks(v, v->stretches & ~v->defined[s->result], "a sum is added to before it is set");
}

static void check_ranges(verifier *v, const bb_tile_stmt *s, const bb_tile *tile) {
  const bb_tile_view *view = &v->p->view[s->view];
  uint32_t axes[3] = {0, 0, 0};
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &s->range[i];
    breaks(v, !index_in_scope(v, r->start), "an index uses a variable of another loop");
    if (!r->size) continue;
    axes[r->axis]++;
    bool several = r->axis == BB_AXIS_ROW && bb_tile_has_two_rows(s, view->rank);
    breaks(v, !several && r->size != (r->axis == BB_AXIS_ROW ? tile->rows : tile->cols),
           "a range is as long as the tile's axis");
  }
  bool two = tile->rows && axes[BB_AXIS_ROW] == 2;
  breaks(v, two && bb_tile_rows_taken(s, view->rank) > tile->rows,
         "two ranges of rows are no more than the tile has");
  breaks(v,
         (!two && axes[BB_AXIS_ROW] != (tile->rows > 0)) || axes[BB_AXIS_COL] != (tile->cols > 0),
         "every axis of the tile has one range, or its rows two");
  breaks(v, view->dtype != tile->dtype, "view and tile hold the same type");
  for (uint32_t i = view->panels && view->rank >= 2 ? view->rank - 2 : view->rank; i < view->rank;
       i++)
    breaks(v,
           !s->range[i].size || s->range[i].start->op != BB_X_CONST ||
               s->range[i].start->number != 0,
           "a block of panels is taken from its begin");
}

/* Degree of a partial sum in expr: 0 none, 1 linear, 2 anything else. */
static uint32_t degree(const verifier *v, const bb_tile_stmt *s, const bb_expr *e) {
  uint32_t d[3] = {0, 0, 0};
  if (e->op == BB_X_ARG && e->index >= BB_TILE_VARIABLE) return 0;
  if (e->op == BB_X_ARG) return v->p->tile[s->operand[e->index]].partial;
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++) d[i] = degree(v, s, e->a[i]);
  if (!d[0] && !d[1] && !d[2]) return 0;
  switch (e->op) {
  case BB_X_ADD:
  case BB_X_SUB: return d[0] == 1 && d[1] == 1 ? 1 : 2;
  case BB_X_MUL: return d[0] + d[1] == 1 ? 1 : 2;
  case BB_X_DIV: return d[0] == 1 && d[1] == 0 ? 1 : 2;
  case BB_X_NEG: return d[0] == 1 ? 1 : 2;
  case BB_X_SELECT: return d[0] == 0 && d[1] == 1 && d[2] == 1 ? 1 : 2;
  default: return 2;
  }
}

static void check_partial(verifier *v, const bb_tile_stmt *s) {
  uint32_t d = 0;
  for (uint32_t i = 0; i < s->operands; i++) d |= v->p->tile[s->operand[i]].partial;
  if (d) d = degree(v, s, s->expr); /* short ones: parts of sums are set, scaled and added */
  bool zero = s->expr->op == BB_X_CONST && s->expr->number == 0;
  if (v->p->tile[s->result].partial)
    breaks(v, d != 1 && !zero, "parts of a sum are set to zero, scaled and added, nothing else");
  else
    breaks(v, d != 0 && s->expr->op != BB_X_ARG, "parts of a sum are copied before they are used");
}

static bool leaf_is_known(const verifier *v, const bb_tile_stmt *s, const bb_expr *e) {
  switch (e->op) {
  case BB_X_ARG:
    if (e->index < s->operands) return true;
    return e->index >= BB_TILE_VARIABLE && e->index - BB_TILE_VARIABLE < v->p->variables &&
           v->scope[e->index - BB_TILE_VARIABLE];
  case BB_X_COORD: return e->index <= BB_COORD_COL && s->at[e->index];
  case BB_X_EXTENT: return false;
  case BB_X_SYMBOL:
    for (uint32_t i = 0; i < v->p->extents; i++)
      if (strcmp(v->p->variable[i], v->p->home->symbol[e->index]) == 0) return true;
    return false;
  default: return true;
  }
}

static bool leaves_are_known(const verifier *v, const bb_tile_stmt *s) {
  uint32_t count;
  bool known = true;
  bb_arena *scratch = bb_scratch(v->p->home->ctx);
  const bb_expr **node = bb_expr_postorder(scratch, s->expr, &count);
  for (uint32_t i = 0; i < count && known; i++) known = leaf_is_known(v, s, node[i]);
  bb_scratch_end(scratch);
  return known;
}

static void check_map(verifier *v, const bb_tile_stmt *s) {
  const bb_tile *result = &v->p->tile[s->result];
  uint32_t rows = s->kind == BB_TILE_ANY ? 0 : result->rows;
  uint32_t cols = s->kind == BB_TILE_ANY ? 0 : result->cols;
  for (uint32_t i = 0; i < s->operands; i++) {
    const bb_tile *t = &v->p->tile[s->operand[i]];
    if (s->kind == BB_TILE_ANY) { /* over the union of its operands */
      if (!rows) rows = t->rows;
      if (!cols) cols = t->cols;
    }
    breaks(v, (t->rows && t->rows != rows) || (t->cols && t->cols != cols),
           "operands have the result's axes or lack them");
  }
  for (uint32_t i = 0; i < 2; i++)
    breaks(v, s->at[i] && !index_in_scope(v, s->at[i]), "an index uses a variable of another loop");
  breaks(v, !leaves_are_known(v, s),
         "a coordinate says where the tile lies, a variable is of an enclosing loop");
  if (s->kind == BB_TILE_ANY)
    breaks(v, s->expr->dtype != BB_BOOL || result->dtype != BB_BOOL || result->rows || result->cols,
           "any asks a truth and gives one");
  else if (!breaks(v, s->expr->dtype != result->dtype, "a map gives the type of its tile"))
    check_partial(v, s);
}

static void check_dot(verifier *v, const bb_tile_stmt *s) {
  const bb_tile *a = &v->p->tile[s->operand[0]], *b = &v->p->tile[s->operand[1]];
  const bb_tile *c = &v->p->tile[s->result];
  uint32_t m = s->transposed[0] ? a->cols : a->rows, k = s->transposed[0] ? a->rows : a->cols;
  uint32_t n = s->transposed[1] ? b->rows : b->cols, l = s->transposed[1] ? b->cols : b->rows;
  bool narrow = a->dtype == BB_F16 || a->dtype == BB_BF16;
  breaks(v, !k || k != l || c->rows != m || c->cols != n, "a product's shapes fit");
  breaks(v, a->dtype != b->dtype, "a product is of one type");
  breaks(v, c->dtype != (narrow ? BB_F32 : a->dtype), "a narrow product is summed in f32");
}

/* The tile of places that a fold gives beside the values. */
static void check_places(verifier *v, const bb_tile_stmt *s, const bb_tile *result) {
  const bb_tile *place = &v->p->tile[s->second];
  bb_tile_index at = s->at[s->axis == BB_AXIS_ROW ? 0 : 1];
  breaks(v, place->dtype != BB_I64 || place->rows != result->rows || place->cols != result->cols,
         "places are i64 beside the values");
  breaks(v, s->second == s->result, "values and places are two tiles");
  breaks(v, !at || !s->limit || !index_in_scope(v, at) || !index_in_scope(v, s->limit),
         "a place is counted from somewhere, below somewhere");
}

static void check_fold(verifier *v, const bb_tile_stmt *s) {
  const bb_tile *t = &v->p->tile[s->operand[0]], *result = &v->p->tile[s->result];
  bool rows = s->axis == BB_AXIS_ROW;
  bool places = s->second != BB_NONE;
  breaks(v, s->monoid->components != (places ? 2 : 1) || s->monoid->id == BB_MONOID_TUPLE,
         "a fold gives one value, or one and its place");
  if (places) check_places(v, s, result);
  breaks(v, !(rows ? t->rows : t->cols), "a fold is along an axis that the tile has");
  breaks(v, result->rows != (rows ? 0 : t->rows) || result->cols != (rows ? t->cols : 0),
         "a fold gives the axis that stays");
  breaks(v, result->dtype != t->dtype, "a fold keeps the type");
  breaks(v, result->partial && s->monoid->id != BB_MONOID_SUM, "parts are parts of a sum");
  breaks(v, t->partial, "parts of a sum are copied before they are used");
}

static void check_transpose(verifier *v, const bb_tile_stmt *s) {
  const bb_tile *t = &v->p->tile[s->operand[0]], *result = &v->p->tile[s->result];
  breaks(v, result->rows != t->cols || result->cols != t->rows,
         "a transposed tile has the other shape");
  breaks(v, result->dtype != t->dtype, "a transposed tile keeps the type");
  breaks(v, t->partial || result->partial, "parts of a sum are copied before they are used");
}

static void check_scan(verifier *v, const bb_tile_stmt *s) {
  const bb_tile *t = &v->p->tile[s->operand[0]], *result = &v->p->tile[s->result];
  breaks(v, s->monoid->components != 1, "a scan gives one value");
  breaks(v, !(s->axis == BB_AXIS_ROW ? t->rows : t->cols),
         "a scan is along an axis that the tile has");
  breaks(v, result->rows != t->rows || result->cols != t->cols || result->dtype != t->dtype,
         "a scan keeps shape and type");
  breaks(v, t->partial || result->partial, "parts of a sum are copied before they are used");
}

/* --- loops --- */

static void check_body(verifier *v, const bb_tile_body *body, const bb_tile_loop *in);

static void forget_written(const verifier *v, const bb_tile_body *body, uint8_t *defined) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->result != BB_NONE) defined[s->result] = 0;
    if (s->second != BB_NONE) defined[s->second] = 0;
    forget_written(v, &s->body, defined);
    if (s->loop) forget_written(v, &s->loop->body, defined);
  }
}

static bool uses(const bb_tile_stmt *s, uint32_t tile) {
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->operand[i] == tile) return true;
  if (s->result == tile || s->second == tile) return true;
  for (uint32_t i = 0; i < s->body.count; i++)
    if (uses(s->body.stmt[i], tile)) return true;
  for (uint32_t i = 0; s->loop && i < s->loop->body.count; i++)
    if (uses(s->loop->body.stmt[i], tile)) return true;
  return false;
}

static bool writes(const bb_tile_stmt *s, uint32_t tile) {
  if (s->result == tile || s->second == tile) return true;
  for (uint32_t i = 0; i < s->body.count; i++)
    if (writes(s->body.stmt[i], tile)) return true;
  for (uint32_t i = 0; s->loop && i < s->loop->body.count; i++)
    if (writes(s->loop->body.stmt[i], tile)) return true;
  return false;
}

/* Statements of a later stage run behind the next iterations' earlier stages: what depends keeps its
 * order only if stages do not fall within an iteration, nor rise by two to the next. */
static void check_stages(verifier *v, const bb_tile_body *body) {
  bool staged = false;
  for (uint32_t i = 0; i < body->count; i++) staged |= body->stmt[i]->stage > 0;
  if (!staged) return;
  for (uint32_t i = 0; i < body->count && !v->wrong; i++)
    for (uint32_t k = 0; k < body->count; k++) {
      const bb_tile_stmt *a = body->stmt[i], *b = body->stmt[k];
      bool tied = false;
      for (uint32_t t = 0; t < v->p->tiles && !tied; t++)
        tied = (writes(a, t) && uses(b, t)) || (writes(b, t) && uses(a, t));
      if (!tied || v->p->tiles == 0) continue;
      v->stmt = b;
      breaks(v, k > i && b->stage < a->stage,
             "a statement runs in an earlier stage than one it depends on");
      breaks(v, k > i && b->stage > a->stage + 1, "a stage lags by more than one iteration");
    }
}

/* Within the loop.  One mark for each iteration, which nothing but what stands before may have made. */
static void check_marks(verifier *v, const bb_tile_loop *loop) {
  const bb_tile_view *view = &v->p->view[loop->marks];
  breaks(v, loop->parallel, "only iterations of serial loops are marked");
  breaks(v, bb_dtype_is_float(view->dtype) || view->rank == 0,
         "a mark is whole, one for each iteration");
  breaks(v, loop->step->op != BB_X_CONST || loop->step->number < 1,
         "marked iterations are a constant step apart");
  for (uint32_t i = 0; i < view->rank && !v->wrong; i++) {
    bb_tile_index at = loop->marked[i];
    bool last = i + 1 == view->rank;
    breaks(v, !index_in_scope(v, at), "an index uses a variable of another loop");
    bool nth = at->op == BB_X_DIV && at->a[0]->op == BB_X_ARG &&
               at->a[0]->index == loop->variable && at->a[1]->op == BB_X_CONST &&
               at->a[1]->number == loop->step->number;
    breaks(v, last ? !nth : bb_expr_uses_arg(at, loop->variable),
           "the last index of a mark counts the loop's steps, and no other does");
  }
}

static void check_loop(verifier *v, const bb_tile_loop *loop, bool outer_serial) {
  breaks(v, !index_in_scope(v, loop->step), "a step depends on what is outside");
  for (uint32_t i = 0; i < loop->stretches; i++)
    breaks(v,
           !index_in_scope(v, loop->stretch[i].from) ||
               (loop->stretch[i].to && !index_in_scope(v, loop->stretch[i].to)),
           "a bound depends on what is outside");
  breaks(v, loop->spread && (!loop->parallel || outer_serial),
         "only outer parallel loops are spread");
  breaks(v, loop->spread && loop->stretches > 1, "a loop that is spread is one stretch");
  breaks(v, loop->persistent && loop->spread != BB_SPREAD_GRID,
         "only the grid's loop is persistent");
  breaks(v, (loop->queue || loop->rotate) && !loop->persistent,
         "only a persistent loop has a queue or rotates");
  breaks(v, loop->pairs && loop->spread != BB_SPREAD_GRID, "only blocks of the grid are pairs");
  if (v->wrong) return;
  for (uint32_t i = 0; loop->merge && i < loop->merge->components; i++)
    breaks(v,
           v->p->tile[loop->merged[i]].place != BB_PLACE_REGISTERS ||
               v->p->tile[loop->merged[i]].partial,
           "what is merged lies whole in registers");
  uint8_t *before = BB_NEW(v->scratch, uint8_t, v->p->tiles + 1);
  const bb_tile_stmt *stmt = v->stmt;
  memcpy(before, v->defined, v->p->tiles);
  for (uint32_t i = 0; i < v->p->tiles; i++)
    if (before[i] != EVERYWHERE) v->defined[i] = 0;
  if (loop->parallel) forget_written(v, &loop->body, v->defined);
  v->scope[loop->variable] = true;
  if (loop->marked) check_marks(v, loop);
  check_body(v, &loop->body, loop);
  v->scope[loop->variable] = false;
  if (v->wrong) return;
  v->stmt = stmt;
  uint8_t *after = v->defined;
  v->defined = before;
  if (loop->parallel) forget_written(v, &loop->body, before);
  for (uint32_t i = 0; loop->merge && i < loop->merge->components; i++) {
    breaks(v, after[loop->merged[i]] != EVERYWHERE, "what is merged is written by every iteration");
    before[loop->merged[i]] = EVERYWHERE;
  }
}

static void define(verifier *v, uint32_t tile, uint32_t stretches) {
  uint8_t all = (uint8_t)((1u << stretches) - 1);
  v->defined[tile] |= v->stretches;
  if (stretches && (v->defined[tile] & all) == all) v->defined[tile] = EVERYWHERE;
}

static void check_stmt(verifier *v, const bb_tile_stmt *s, const bb_tile_loop *in) {
  uint32_t known = in ? in->stretches : 0;
  breaks(v, s->stretches >> known, "the loop has no such stretch");
  breaks(v, s->stage && (!in || in->parallel), "only statements of a serial loop have stages");
  breaks(v, s->kind == BB_TILE_LOOP && (s->stretches || s->stage),
         "a loop within a loop has no stage");
  uint8_t around = v->stretches, *before = NULL;
  if (s->stretches) v->stretches = (uint8_t)s->stretches;
  check_reads(v, s);
  if (v->wrong) return;
  if (s->kind == BB_TILE_IF || s->kind == BB_TILE_WHEN) {
    before = BB_NEW(v->scratch, uint8_t, v->p->tiles + 1);
    memcpy(before, v->defined, v->p->tiles);
  }
  switch (s->kind) {
  case BB_TILE_LOAD: check_ranges(v, s, &v->p->tile[s->result]); break;
  case BB_TILE_STORE:
    check_ranges(v, s, &v->p->tile[s->operand[0]]);
    breaks(v, !v->p->view[s->view].written, "only outputs are stored to");
    break;
  case BB_TILE_MAP:
  case BB_TILE_ANY: check_map(v, s); break;
  case BB_TILE_DOT: check_dot(v, s); break;
  case BB_TILE_TRANSPOSE: check_transpose(v, s); break;
  case BB_TILE_FOLD: check_fold(v, s); break;
  case BB_TILE_SCAN: check_scan(v, s); break;
  case BB_TILE_IF: {
    const bb_tile *t = &v->p->tile[s->operand[0]];
    breaks(v, t->dtype != BB_BOOL || t->rows || t->cols, "if asks one truth");
    check_body(v, &s->body, NULL);
    break;
  }
  case BB_TILE_WHEN:
    breaks(v, s->expr->dtype != BB_BOOL || !condition_in_scope(v, s->expr),
           "a condition compares indices");
    check_body(v, &s->body, NULL);
    break;
  case BB_TILE_LOOP: check_loop(v, s->loop, in && !in->parallel); break;
  }
  if (before)
    v->defined = before;
  else if (s->result != BB_NONE)
    define(v, s->result, known);
  if (!before && s->second != BB_NONE) define(v, s->second, known);
  v->stretches = around;
}

static void check_body(verifier *v, const bb_tile_body *body, const bb_tile_loop *in) {
  for (uint32_t i = 0; i < body->count && !v->wrong; i++) {
    v->stmt = body->stmt[i];
    check_stmt(v, body->stmt[i], in);
  }
  if (in && !in->parallel && !v->wrong) check_stages(v, body);
}

const char *bb_tile_verify(const bb_tile_program *p, bb_arena *scratch) {
  verifier v = {.p = p, .scratch = scratch};
  v.scope = BB_NEW(scratch, bool, p->variables + 1);
  v.defined = BB_NEW(scratch, uint8_t, p->tiles + 1);
  v.stretches = EVERYWHERE;
  memset(v.scope, 1, p->extents);
  check_declarations(&v);
  if (!v.wrong) check_body(&v, &p->body, NULL);
  if (!v.wrong) return NULL;
  bb_buffer message = {.arena = scratch};
  bb_put(&message, "kernel %s: law broken: %s", p->name, v.wrong);
  if (v.stmt) {
    bb_put(&message, ": ");
    bb_tile_print_head(&message, p, v.stmt);
  }
  return message.data;
}
