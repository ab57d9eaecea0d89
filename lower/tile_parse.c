/* tile_parse.c - tile programs from text.
 *
 *   program    tile NAME 1  declaration...  statement...        # starts a comment
 *   declaration  extent NAME, ...                               run-time arguments, i64
 *            | view|output|scratch NAME : dtype[index, ...] [by [index, ...]] [panels] [padded]   by: strides
 *            | monoid NAME (number, ...) = (expr, ...)           the empty part; how parts combine: $k is
 *                                                               component k left, $(n + k) right
 *            | tile NAME : dtype[INT|_, INT|_] [left | shared INT] [partial]
 *            | roles [groups INT] [copier INT] [registers INT] [turns]
 *   statement  [in INT, ... :] bare [at (index|_, index|_)] [@ stage INT]
 *   bare       TILE = load VIEW[range, ...] [else number]
 *            | store VIEW[range, ...] = TILE
 *            | TILE = expr                                       over tiles, extents, loop variables
 *            | TILE = any(expr)
 *            | TILE = dot(TILE['], TILE[']) | TILE += dot(...)   ' transposed
 *            | TILE = transpose(TILE)
 *            | TILE = fold MONOID(TILE) over row|col             the axis that goes
 *            | TILE, TILE = fold MONOID(TILE) over row|col below index      values and their places
 *            | TILE = scan MONOID(TILE) over row|col
 *            | TILE = scan_exclusive MONOID(TILE) over row|col   without the element itself
 *            | if TILE { statement... }
 *            | when condition { statement... }                a comparison of indices
 *            | serial NAME = stretch [then stretch]... step index [down] [commutes]
 *              [where VIEW[index, ...] [anywhere]] { statement... }   iterations whose mark is not 0
 *            | parallel NAME = stretch [then stretch]... step index [down] [merge MONOID (TILE, ...)]
 *              [@ [grid|cluster|warps] [persistent] [queue] [rotate] [pairs]] { statement... }
 *   stretch    index to index | index                          the latter once, not of a parallel loop
 *   range      index | index:INT [row|col]                      rows come first; two of rows: the second's within the first's
 *   index      an integer expression of extents and loop variables
 *
 * Expressions: graph/expr_text.c.
 */
#include "../graph/text_form.h"
#include "tile.h"

#include <string.h>

typedef struct parser {
  bb_reader *r;
  bb_tile_program *p;
  bb_table *tile, *view, *variable, *monoid;
  uint32_t depth;
  bb_tile_stmt *stmt; /* whose expression is read */
} parser;

/* Expressions name tiles and variables alike. */
static bool is_taken(const parser *t, const bb_table *table, const char *name) {
  const bb_table *other = table == t->tile ? t->variable : table == t->variable ? t->tile : NULL;
  return other && bb_table_find(other, name, strlen(name)) != BB_NONE;
}

static const char *read_new_name(parser *t, bb_table *table, uint32_t value, const char *what) {
  const char *place = t->r->token.start, *name = bb_read_name(t->r, what);
  if (!bb_tile_name_is_good(name) || is_taken(t, table, name))
    bb_read_fail(t->r, place, "%s cannot be the name of %s", name, what);
  if (!bb_table_add(table, name, strlen(name), value))
    bb_read_fail(t->r, place, "a second %s", name);
  return name;
}

static uint32_t read_known(parser *t, bb_table *table, const char *what) {
  const char *place = t->r->token.start, *name = bb_read_name(t->r, what);
  uint32_t found = bb_table_find(table, name, strlen(name));
  if (found == BB_NONE) bb_read_fail(t->r, place, "%s is no %s", name, what);
  return found;
}

/* --- expressions --- */

static const bb_expr *find_variable(void *user, const char *name, size_t length) {
  parser *t = user;
  uint32_t found = bb_table_find(t->variable, name, length);
  return found == BB_NONE ? NULL : bb_expr_arg(t->p->home, BB_I64, found);
}

static bb_tile_index read_index(parser *t) {
  const char *place = t->r->token.start;
  const bb_expr *index = bb_read_index_expr(t->r, find_variable, t);
  if (index->dtype != BB_I64) bb_read_fail(t->r, place, "an index that is no integer");
  return index;
}

static uint32_t add_operand(parser *t, bb_tile_stmt *s, uint32_t tile) {
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->operand[i] == tile) return i;
  if (s->operands == BB_TILE_OPERANDS)
    bb_read_fail(t->r, t->r->token.start, "more than %d operands", BB_TILE_OPERANDS);
  s->operand[s->operands] = tile;
  return s->operands++;
}

static const bb_expr *find_tile(void *user, const char *name, size_t length) {
  parser *t = user;
  uint32_t found = bb_table_find(t->tile, name, length);
  if (found != BB_NONE)
    return bb_expr_arg(t->p->home, t->p->tile[found].dtype, add_operand(t, t->stmt, found));
  found = bb_table_find(t->variable, name, length);
  return found == BB_NONE ? NULL : bb_expr_arg(t->p->home, BB_I64, BB_TILE_VARIABLE + found);
}

static void read_map(parser *t, bb_tile_stmt *s) {
  t->stmt = s;
  s->expr = bb_read_expr(t->r, find_tile, t);
}

static const bb_expr *find_component(void *user, const char *name, size_t length) {
  parser *t = user;
  uint32_t k = 0;
  if (length < 2 || length > 3 || name[0] != '$') return NULL;
  for (size_t i = 1; i < length; i++) {
    if (name[i] < '0' || name[i] > '9') return NULL;
    k = 10 * k + (uint32_t)(name[i] - '0');
  }
  return bb_expr_arg(t->p->home, BB_F32, k);
}

/* --- declarations --- */

static void read_extents(parser *t) {
  if (t->p->variables > t->p->extents)
    bb_read_fail(t->r, t->r->token.start, "an extent after a loop");
  do {
    const char *name = read_new_name(t, t->variable, t->p->variables, "an extent");
    bb_tile_add_variable(t->p, name, true);
    bb_symbol_index(t->p->home, name);
  } while (bb_read_accept(t->r, ","));
}

static uint32_t read_indices(parser *t, bb_tile_index *index) {
  uint32_t count = 0;
  bb_read_expect(t->r, "[");
  while (!bb_read_accept(t->r, "]")) {
    if (count) bb_read_expect(t->r, ",");
    if (count == BB_TILE_RANK)
      bb_read_fail(t->r, t->r->token.start, "more than %d axes", BB_TILE_RANK);
    index[count++] = read_index(t);
  }
  return count;
}

static void read_view(parser *t, bool written, bool scratch) {
  bb_tile_view view = {.written = written, .scratch = scratch};
  view.name = read_new_name(t, t->view, t->p->views, "a view");
  bb_read_expect(t->r, ":");
  view.dtype = bb_read_dtype(t->r);
  view.rank = read_indices(t, view.extent);
  view.strided = bb_read_accept(t->r, "by");
  const char *place = t->r->token.start;
  if (view.strided && read_indices(t, view.stride) != view.rank)
    bb_read_fail(t->r, place, "a view of %u axes has as many strides", view.rank);
  view.panels = bb_read_accept(t->r, "panels");
  view.padded = bb_read_accept(t->r, "padded");
  bb_tile_add_view(t->p, &view);
}

static uint32_t read_size(parser *t) {
  if (bb_read_accept(t->r, "_")) return 0;
  const char *place = t->r->token.start;
  uint32_t size = bb_read_index(t->r, BB_TILE_SIZE, "the size of a tile");
  if (!size) bb_read_fail(t->r, place, "an empty tile");
  return size;
}

static void read_tile(parser *t) {
  bb_tile tile = {.buffers = 1};
  tile.name = read_new_name(t, t->tile, t->p->tiles, "a tile");
  bb_read_expect(t->r, ":");
  tile.dtype = bb_read_dtype(t->r);
  bb_read_expect(t->r, "[");
  tile.rows = read_size(t);
  bb_read_expect(t->r, ",");
  tile.cols = read_size(t);
  bb_read_expect(t->r, "]");
  if (bb_read_accept(t->r, "left")) {
    tile.place = BB_PLACE_LEFT;
  } else if (bb_read_accept(t->r, "shared")) {
    tile.place = BB_PLACE_SHARED;
    tile.buffers = bb_read_index(t->r, 64, "the number of buffers");
  }
  tile.partial = bb_read_accept(t->r, "partial");
  bb_tile_add(t->p, &tile);
}

static void read_monoid(parser *t) {
  bb_arena *arena = t->p->home->arena;
  bb_tile_monoid *m = BB_NEW(arena, bb_tile_monoid, 1);
  double *empty = BB_NEW(arena, double, BB_TILE_OPERANDS);
  const bb_expr **combine = BB_NEW(arena, const bb_expr *, BB_TILE_OPERANDS);
  const char *name = read_new_name(t, t->monoid, t->p->monoids, "a monoid");
  *m = (bb_tile_monoid){bb_arena_text(arena, name, strlen(name)), 0, empty, combine};
  bb_read_expect(t->r, "(");
  while (!bb_read_accept(t->r, ")")) {
    if (m->components) bb_read_expect(t->r, ",");
    if (m->components == BB_TILE_OPERANDS)
      bb_read_fail(t->r, t->r->token.start, "more than %d components", BB_TILE_OPERANDS);
    empty[m->components++] = bb_read_double(t->r);
  }
  bb_read_expect(t->r, "=");
  bb_read_expect(t->r, "(");
  for (uint32_t i = 0; i < m->components; i++) {
    if (i) bb_read_expect(t->r, ",");
    const char *place = t->r->token.start;
    combine[i] = bb_read_expr(t->r, find_component, t);
    if (bb_expr_arg_count(combine[i]) > 2 * m->components)
      bb_read_fail(t->r, place, "%u components have no such argument", m->components);
  }
  bb_read_expect(t->r, ")");
  bb_tile_add_monoid(t->p, m);
}

static void read_roles(parser *t) {
  for (;;) {
    if (bb_read_accept(t->r, "groups"))
      t->p->groups = bb_read_index(t->r, 9, "the number of groups");
    else if (bb_read_accept(t->r, "copier"))
      t->p->copier_registers = bb_read_index(t->r, 257, "the number of registers");
    else if (bb_read_accept(t->r, "registers"))
      t->p->registers = bb_read_index(t->r, 257, "the number of registers");
    else if (bb_read_accept(t->r, "turns"))
      t->p->turns = true;
    else
      return;
  }
}

static bool read_declaration(parser *t) {
  if (bb_read_accept(t->r, "extent"))
    read_extents(t);
  else if (bb_read_accept(t->r, "view"))
    read_view(t, false, false);
  else if (bb_read_accept(t->r, "output"))
    read_view(t, true, false);
  else if (bb_read_accept(t->r, "scratch"))
    read_view(t, true, true);
  else if (bb_read_accept(t->r, "monoid"))
    read_monoid(t);
  else if (bb_read_accept(t->r, "tile"))
    read_tile(t);
  else if (bb_read_accept(t->r, "roles"))
    read_roles(t);
  else
    return false;
  return true;
}

/* --- statements --- */

static void read_body(parser *t, bb_tile_body *body);

static void read_ranges(parser *t, bb_tile_stmt *s, const bb_tile *tile) {
  s->view = read_known(t, t->view, "view");
  const bb_tile_view *view = &t->p->view[s->view];
  bb_read_expect(t->r, "[");
  bb_axis next = tile && !tile->rows ? BB_AXIS_COL : BB_AXIS_ROW;
  for (uint32_t i = 0; i < view->rank; i++) {
    bb_tile_range *range = &s->range[i];
    if (i) bb_read_expect(t->r, ",");
    range->start = read_index(t);
    if (!bb_read_accept(t->r, ":")) continue;
    range->size = read_size(t);
    range->axis = next;
    if (bb_read_accept(t->r, "row"))
      range->axis = BB_AXIS_ROW;
    else if (bb_read_accept(t->r, "col"))
      range->axis = BB_AXIS_COL;
    next = BB_AXIS_COL;
  }
  bb_read_expect(t->r, "]");
}

/* The tile that is stored stands behind the ranges, whose axes its shape decides. */
static void read_store(parser *t, bb_tile_body *body) {
  bb_tile_stmt *s = bb_tile_append(t->p, body, BB_TILE_STORE);
  const char *place = t->r->token.start;
  read_ranges(t, s, NULL);
  bb_read_expect(t->r, "=");
  s->operand[s->operands++] = read_known(t, t->tile, "tile");
  if (t->p->tile[s->operand[0]].rows) return;
  const char *end = t->r->token.start;
  bb_read_from(t->r, place);
  read_ranges(t, s, &t->p->tile[s->operand[0]]);
  bb_read_from(t->r, end);
}

static void read_dot(parser *t, bb_tile_stmt *s) {
  bb_read_expect(t->r, "(");
  for (uint32_t i = 0; i < 2; i++) {
    if (i) bb_read_expect(t->r, ",");
    s->operand[s->operands++] = read_known(t, t->tile, "tile");
    s->transposed[i] = bb_read_accept(t->r, "'");
  }
  bb_read_expect(t->r, ")");
}

static void read_fold(parser *t, bb_tile_stmt *s) {
  s->monoid = bb_read_monoid(t->r);
  bb_read_expect(t->r, "(");
  s->operand[s->operands++] = read_known(t, t->tile, "tile");
  bb_read_expect(t->r, ")");
  bb_read_expect(t->r, "over");
  s->axis = BB_AXIS_COL;
  if (!bb_read_accept(t->r, "col")) {
    bb_read_expect(t->r, "row");
    s->axis = BB_AXIS_ROW;
  }
  if (s->second == BB_NONE) return;
  bb_read_expect(t->r, "below");
  s->limit = read_index(t);
}

/* TILE = ... */
static void read_assignment(parser *t, bb_tile_body *body) {
  uint32_t result = read_known(t, t->tile, "tile"), second = BB_NONE;
  if (bb_read_accept(t->r, ",")) second = read_known(t, t->tile, "tile");
  bool accumulate = bb_read_accept(t->r, "+");
  bb_read_expect(t->r, "=");
  bb_tile_stmt *s = bb_tile_append(t->p, body, BB_TILE_MAP);
  s->result = result;
  s->second = second;
  s->accumulate = accumulate;
  if (second != BB_NONE && !bb_read_is(t->r, "fold")) bb_read_fail_expected(t->r, "fold");
  if (accumulate && !bb_read_is(t->r, "dot")) bb_read_fail_expected(t->r, "dot");
  if (bb_read_accept(t->r, "dot")) {
    s->kind = BB_TILE_DOT;
    read_dot(t, s);
  } else if (bb_read_accept(t->r, "transpose")) {
    s->kind = BB_TILE_TRANSPOSE;
    bb_read_expect(t->r, "(");
    s->operand[s->operands++] = read_known(t, t->tile, "tile");
    bb_read_expect(t->r, ")");
  } else if (bb_read_accept(t->r, "load")) {
    s->kind = BB_TILE_LOAD;
    read_ranges(t, s, &t->p->tile[result]);
    if (bb_read_accept(t->r, "else")) s->pad = bb_read_double(t->r);
  } else if (bb_read_accept(t->r, "fold")) {
    s->kind = BB_TILE_FOLD;
    read_fold(t, s);
  } else if (bb_read_is(t->r, "scan") || bb_read_is(t->r, "scan_exclusive")) {
    s->kind = BB_TILE_SCAN;
    s->before = bb_read_is(t->r, "scan_exclusive");
    bb_read_next(t->r);
    read_fold(t, s);
  } else if (bb_read_accept(t->r, "any")) {
    s->kind = BB_TILE_ANY;
    bb_read_expect(t->r, "(");
    read_map(t, s);
    bb_read_expect(t->r, ")");
  } else {
    read_map(t, s);
  }
}

static void read_at(parser *t, bb_tile_stmt *s) {
  bb_read_expect(t->r, "(");
  for (uint32_t i = 0; i < 2; i++) {
    if (i) bb_read_expect(t->r, ",");
    if (!bb_read_accept(t->r, "_")) s->at[i] = read_index(t);
  }
  bb_read_expect(t->r, ")");
}

static void read_merge(parser *t, bb_tile_loop *loop) {
  loop->merge = t->p->monoid[read_known(t, t->monoid, "monoid")];
  bb_read_expect(t->r, "(");
  for (uint32_t i = 0; i < loop->merge->components; i++) {
    if (i) bb_read_expect(t->r, ",");
    loop->merged[i] = read_known(t, t->tile, "tile");
  }
  bb_read_expect(t->r, ")");
}

static void read_spread(parser *t, bb_tile_loop *loop) {
  if (bb_read_accept(t->r, "grid"))
    loop->spread = BB_SPREAD_GRID;
  else if (bb_read_accept(t->r, "cluster"))
    loop->spread = BB_SPREAD_CLUSTER;
  else if (bb_read_accept(t->r, "warps"))
    loop->spread = BB_SPREAD_WARPS;
  loop->persistent = bb_read_accept(t->r, "persistent");
  loop->queue = bb_read_accept(t->r, "queue");
  loop->rotate = bb_read_accept(t->r, "rotate");
  loop->pairs = bb_read_accept(t->r, "pairs");
}

static void read_marks(parser *t, bb_tile_loop *loop) {
  loop->marks = read_known(t, t->view, "view");
  uint32_t rank = t->p->view[loop->marks].rank;
  bb_tile_index *index = BB_NEW(t->p->home->arena, bb_tile_index, rank + 1);
  for (uint32_t i = 0; i < rank; i++) {
    bb_read_expect(t->r, i ? "," : "[");
    index[i] = read_index(t);
  }
  bb_read_expect(t->r, "]");
  loop->marked = index;
  loop->anywhere = bb_read_accept(t->r, "anywhere");
}

static void read_loop(parser *t, bb_tile_body *body, bool parallel) {
  bb_tile_loop *loop = bb_tile_append(t->p, body, BB_TILE_LOOP)->loop;
  loop->parallel = parallel;
  const char *place = t->r->token.start;
  const char *name = bb_read_name(t->r, "a loop variable");
  if (!bb_tile_name_is_good(name) || is_taken(t, t->variable, name) ||
      bb_table_find(t->variable, name, strlen(name)) != BB_NONE)
    bb_read_fail(t->r, place, "%s cannot be the name of a new variable", name);
  bb_read_expect(t->r, "=");
  do {
    if (loop->stretches == BB_TILE_STRETCHES)
      bb_read_fail(t->r, t->r->token.start, "too many stretches");
    bb_tile_stretch *stretch = &loop->stretch[loop->stretches++];
    stretch->from = read_index(t);
    if (!parallel && (bb_read_is(t->r, "then") || bb_read_is(t->r, "step"))) continue;
    bb_read_expect(t->r, "to");
    stretch->to = read_index(t);
  } while (bb_read_accept(t->r, "then"));
  bb_read_expect(t->r, "step");
  loop->step = read_index(t);
  loop->variable = bb_tile_add_variable(t->p, name, false);
  bb_table_add(t->variable, name, strlen(name), loop->variable);
  loop->down = bb_read_accept(t->r, "down");
  if (!parallel) loop->commutes = bb_read_accept(t->r, "commutes");
  if (!parallel && bb_read_accept(t->r, "where")) read_marks(t, loop);
  if (parallel && bb_read_accept(t->r, "merge")) read_merge(t, loop);
  if (parallel && bb_read_accept(t->r, "@")) read_spread(t, loop);
  read_body(t, &loop->body);
}

static void read_statement(parser *t, bb_tile_body *body) {
  uint32_t stretches = 0;
  if (bb_read_accept(t->r, "in")) {
    do stretches |= 1u << bb_read_index(t->r, BB_TILE_STRETCHES, "the stretch");
    while (bb_read_accept(t->r, ","));
    bb_read_expect(t->r, ":");
  }
  if (bb_read_accept(t->r, "parallel")) {
    read_loop(t, body, true);
  } else if (bb_read_accept(t->r, "serial")) {
    read_loop(t, body, false);
  } else if (bb_read_accept(t->r, "if")) {
    bb_tile_stmt *s = bb_tile_append(t->p, body, BB_TILE_IF);
    s->operand[s->operands++] = read_known(t, t->tile, "tile");
    read_body(t, &s->body);
  } else if (bb_read_accept(t->r, "when")) {
    bb_tile_stmt *s = bb_tile_append(t->p, body, BB_TILE_WHEN);
    const char *place = t->r->token.start;
    s->expr = bb_read_index_expr(t->r, find_variable, t);
    if (s->expr->dtype != BB_BOOL) bb_read_fail(t->r, place, "a condition that is no comparison");
    read_body(t, &s->body);
  } else if (bb_read_accept(t->r, "store")) {
    read_store(t, body);
  } else {
    read_assignment(t, body);
  }
  bb_tile_stmt *s = body->stmt[body->count - 1];
  s->stretches = stretches;
  if (bb_read_accept(t->r, "at")) read_at(t, s);
  if (!bb_read_accept(t->r, "@")) return;
  bb_read_expect(t->r, "stage");
  s->stage = bb_read_index(t->r, 4, "the stage");
}

static void read_body(parser *t, bb_tile_body *body) {
  bb_read_expect(t->r, "{");
  if (t->depth++ == BB_TEXT_DEPTH)
    bb_read_fail(t->r, t->r->token.start, "more than %d levels", BB_TEXT_DEPTH);
  while (!bb_read_accept(t->r, "}")) read_statement(t, body);
  t->depth--;
}

/* --- the whole --- */

bb_tile_program *bb_tile_parse(bb_context *ctx, const char *path, const char *text, size_t length) {
  bb_program *home = bb_program_create(ctx, "");
  bb_program_defer(home);
  bb_reader r = {.ctx = ctx, .program = home, .path = path, .text = text, .end = text + length};
  r.scratch = bb_scratch(ctx);
  r.tensor = bb_table_create(r.scratch);
  bb_read_from(&r, text);
  bb_read_expect(&r, "tile");
  const char *place = r.token.start, *name = bb_read_name(&r, "the kernel's name");
  if (!bb_tile_name_is_good(name)) bb_read_fail(&r, place, "%s cannot be a kernel's name", name);
  parser t = {.r = &r, .p = bb_tile_create(home, name)};
  t.tile = bb_table_create(r.scratch);
  t.view = bb_table_create(r.scratch);
  t.variable = bb_table_create(r.scratch);
  t.monoid = bb_table_create(r.scratch);
  place = r.token.start;
  if (bb_read_integer(&r) != 1)
    bb_read_fail(&r, place, "this version reads tile programs of version 1 only");
  while (read_declaration(&t)) continue;
  while (r.token.kind != BB_TOKEN_END) read_statement(&t, &t.p->body);
  const char *broken = bb_tile_verify(t.p, r.scratch);
  if (broken) bb_fail(ctx, BB_ERROR_INPUT, "%s: %s", path, broken);
  bb_scratch_end(r.scratch);
  bb_undefer(ctx, home);
  return t.p;
}
