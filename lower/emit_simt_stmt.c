/* emit_simt_stmt.c - statements of a tile program as calls of the plain device library. */
#include "emit_simt_parts.h"
#include "held.h"

#include <inttypes.h>
#include <math.h>

/* MEETING: bytes, for a value of each warp, of any type. */
enum { DEPTH = 64, PIECE = 4, MEETING = 16 * 16 };

static bb_arena *arena(const bb_simt *s) {
  return s->c.out->arena;
}

static const bb_tile *tile_of(const bb_simt *s, uint32_t tile) {
  return &s->c.p->tile[tile];
}

static uint32_t size_of(const bb_simt *s, bb_dtype dtype) {
  if (bb_dtype_is_float(dtype)) return s->c.exact || dtype == BB_F64 ? 8 : 4;
  return (uint32_t)bb_dtype_bytes(dtype);
}

static void want_shared(bb_simt *s, uint64_t bytes) {
  if (bytes > s->most_shared) bb_c_refuse(&s->c, "a tile is larger than shared memory");
  if (bytes > s->shared) s->shared = (uint32_t)bytes;
}

/* "TY, TX, TV, rows, cols" */
static const char *shape(const bb_simt *s, const bb_tile *t) {
  return bb_arena_printf(arena(s), "TY, TX, TV, %u, %u", t->rows, t->cols);
}

/* --- elementwise --- */

/* Element (i, j) of a thread's part of `of`, in a tile that may lack an axis. */
static const char *element(const bb_simt *s, uint32_t tile) {
  const bb_tile *t = tile_of(s, tile);
  uint32_t ct = bb_simt_parts(t->cols, s->tx);
  if (t->rows && t->cols) return bb_arena_printf(arena(s), "t%u[i * %u + j]", tile, ct);
  if (!t->rows && !t->cols) return bb_arena_printf(arena(s), "t%u[0]", tile);
  return bb_arena_printf(arena(s), "t%u[%s]", tile, t->rows ? "i" : "j");
}

static const char *column(const bb_simt *s, uint32_t cols) {
  return bb_arena_printf(arena(s), "bb_col<TX, TV, %u>(tx, j)", cols);
}

/* Where an element of a tile of that shape lies; one without the axis where it begins. */
static const char *place(bb_simt *s, const bb_tile_stmt *stmt, const bb_tile *t, uint32_t axis) {
  const char *name = axis ? column(s, t->cols) : "(ty + TY * i)";
  if (axis ? !t->cols : !t->rows) name = "0";
  if (!stmt->at[axis]) return name;
  return bb_arena_printf(arena(s), "(%s + %s)", bb_c_index(&s->c, stmt->at[axis]), name);
}

/* ANY asks what is inside the tile alone. */
static const char *inside(const bb_simt *s, const bb_tile *t) {
  const char *text = "";
  if (t->rows % s->ty) text = bb_arena_printf(arena(s), "ty + TY * i < %u && ", t->rows);
  if (t->cols % s->tx)
    text = bb_arena_printf(arena(s), "%s%s < %u && ", text, column(s, t->cols), t->cols);
  return text;
}

/* Each thread's part of a sum becomes the sum. */
static bool is_whole(const bb_simt *s, const bb_tile_stmt *stmt) {
  return stmt->kind == BB_TILE_MAP && stmt->operands == 1 &&
         tile_of(s, stmt->operand[0])->partial && !tile_of(s, stmt->result)->partial;
}

static uint32_t parts_of(const bb_simt *s, uint32_t tile) {
  const bb_tile *t = tile_of(s, tile);
  return bb_simt_parts(t->rows, s->ty) * bb_simt_parts(t->cols, s->tx);
}

/* next: another one right behind it, or NULL: threads meet once for both. */
static void whole(bb_simt *s, const bb_tile_stmt *stmt, const bb_tile_stmt *next) {
  const char *also =
      next ? bb_arena_printf(arena(s), ", t%u, t%u", next->result, next->operand[0]) : "";
  want_shared(s, MEETING * (parts_of(s, stmt->result) + (next ? parts_of(s, next->result) : 0)));
  bb_c_line(&s->c, "bb_whole<TY, TX>(t%u, t%u%s);", stmt->result, stmt->operand[0], also);
}

/* What is rounded only to be stored is rounded by the store. */
static const bb_expr *unrounded(const bb_simt *s, const bb_tile_stmt *stmt) {
  const bb_expr *x = stmt->expr;
  bool rounds = x->op == BB_X_CAST && bb_c_is_narrow(&s->c, x->dtype) && x->a[0]->dtype == BB_F32;
  return rounds && !s->computes[stmt->result] ? x->a[0] : x;
}

static void map(bb_simt *s, const bb_tile_stmt *stmt) {
  bb_c *c = &s->c;
  bb_tile t = *tile_of(s, stmt->result);
  const char *operand[BB_TILE_OPERANDS];
  bool any = stmt->kind == BB_TILE_ANY;
  for (uint32_t i = 0; i < stmt->operands; i++) {
    const bb_tile *o = tile_of(s, stmt->operand[i]);
    operand[i] = element(s, stmt->operand[i]);
    if (any && o->rows) t.rows = o->rows;
    if (any && o->cols) t.cols = o->cols;
  }
  uint32_t rt = bb_simt_parts(t.rows, s->ty), ct = bb_simt_parts(t.cols, s->tx);
  if (any) bb_c_line(c, "{ bool any%u = false;", stmt->result);
  bb_c_line(c, "BB_EACH(i, %u) BB_EACH(j, %u) {", rt, ct);
  c->indent++;
  const char *value =
      bb_c_expression(c, unrounded(s, stmt), operand, place(s, stmt, &t, 0), place(s, stmt, &t, 1));
  if (any)
    bb_c_line(c, "any%u |= %s(%s) != 0;", stmt->result, inside(s, &t), value);
  else
    bb_c_line(c, "%s = %s;", element(s, stmt->result), value);
  c->indent--;
  bb_c_line(c, "}");
  if (any) bb_c_line(c, "t%u[0] = bb_any(any%u); }", stmt->result, stmt->result);
}

/* --- memory --- */

typedef struct window {
  const char *from, *row, *col, *rows, *cols;
  const char *begin[2]; /* of a padded view: rows and columns before it */
  const char *there;    /* of a padded view: whether single indices are inside; NULL: always */
} window;

static void note_pad(bb_simt *s, const bb_tile_range *r, const char *extent, window *w) {
  const char *start = bb_c_index(&s->c, r->start);
  if (r->size) {
    w->begin[r->axis == BB_AXIS_COL] =
        bb_arena_printf(arena(s), "bb_clip(0, %u, -(%s))", r->size, start);
    return;
  }
  const char *inside = bb_arena_printf(arena(s), "%s >= 0 && %s < %s", start, start, extent);
  w->there = w->there ? bb_arena_printf(arena(s), "%s && %s", w->there, inside) : inside;
}

/* Of what runs along an axis: its stride, and how many indices are inside the extent. */
static window window_of(bb_simt *s, const bb_tile_stmt *stmt) {
  bb_c *c = &s->c;
  const bb_tile_view *view = &c->p->view[stmt->view];
  window w = {bb_arena_printf(arena(s), "v%u", stmt->view), "0", "0", "1", "1", {"0", "0"}, NULL};
  bb_tile_index stride[BB_TILE_RANK], dense = bb_expr_const(c->p->home, BB_I64, 1);
  if (bb_tile_has_two_rows(stmt, view->rank)) bb_c_refuse(c, "two ranges along the rows of a tile");
  for (uint32_t i = view->rank; i-- > 0;) {
    stride[i] = view->strided ? view->stride[i] : dense;
    dense = bb_expr_make(c->p->home, BB_X_MUL, dense, view->extent[i], NULL);
  }
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &stmt->range[i];
    bb_tile_index at = bb_expr_make(c->p->home, BB_X_MUL, r->start, stride[i], NULL);
    const char *by = bb_c_index(c, stride[i]);
    if (at->op != BB_X_CONST || at->number != 0)
      w.from = bb_arena_printf(arena(s), "%s + %s", w.from, bb_c_index(c, at));
    if (view->padded) note_pad(s, r, bb_c_index(c, view->extent[i]), &w);
    if (!r->size) continue;
    const char *count = bb_arena_printf(arena(s), "bb_clip(%s, %u, %s)", bb_c_index(c, r->start),
                                        r->size, bb_c_index(c, view->extent[i]));
    if (r->axis == BB_AXIS_ROW)
      w.row = by, w.rows = count;
    else
      w.col = by, w.cols = count;
  }
  return w;
}

static const char *pad_of(bb_simt *s, const bb_tile_stmt *stmt) {
  bb_dtype dtype = tile_of(s, stmt->result)->dtype;
  return bb_c_expression(&s->c, bb_expr_const(s->c.p->home, dtype, stmt->pad), NULL, NULL, NULL);
}

static void load(bb_simt *s, const bb_tile_stmt *stmt) {
  bb_c *c = &s->c;
  const bb_tile *t = tile_of(s, stmt->result);
  window w = window_of(s, stmt);
  const char *pad = pad_of(s, stmt);
  if (c->p->view[stmt->view].padded) {
    const char *rows = w.there ? bb_arena_printf(arena(s), "%s ? %s : 0", w.there, w.rows) : w.rows;
    bb_c_line(c, "bb_load_padded<%s, %s>(t%u, %s, %s, %s, %s, %s, %s, %s, %s);", shape(s, t),
              bb_c_element(c, t->dtype), stmt->result, w.from, w.row, w.col, w.begin[0], w.begin[1],
              rows, w.cols, pad);
    return;
  }
  bb_c_line(c, "bb_load<%s, %s>(t%u, %s, %s, %s, %s, %s, %s);", shape(s, t),
            bb_c_element(c, t->dtype), stmt->result, w.from, w.row, w.col, w.rows, w.cols, pad);
}

/* All are asked for before the first is taken. */
static void load_several(bb_simt *s, uint32_t loads, bb_tile_stmt *const *stmt) {
  bb_c *c = &s->c;
  bb_c_line(c, "{");
  c->indent++;
  for (uint32_t i = 0; i < loads; i++) {
    window w = window_of(s, stmt[i]);
    bool padded = c->p->view[stmt[i]->view].padded;
    const char *rows = w.there ? bb_arena_printf(arena(s), "%s ? %s : 0", w.there, w.rows) : w.rows;
    bb_c_line(c, "const auto in%u = bb_within<%s>(%s, %s, %s, %s);", i, padded ? "true" : "false",
              rows, w.cols, w.begin[0], w.begin[1]);
    const bb_tile *t = tile_of(s, stmt[i]->result);
    bb_c_line(c, "const auto part%u = bb_ask<%s>(%s, %s, %s, in%u, %s);", i, shape(s, t), w.from,
              w.row, w.col, i, pad_of(s, stmt[i]));
  }
  for (uint32_t i = 0; i < loads; i++) bb_c_line(c, "bb_take(t%u, part%u);", stmt[i]->result, i);
  c->indent--;
  bb_c_line(c, "}");
}

/* Does a store leave its tile to loads that alone read its view?  Those wait for it where they have something to do.  Memory of a
 * kernel's own has another task's block next. */
static bool is_waited_for(const bb_simt *s, const bb_tile_stmt *store) {
  bool alone;
  return bb_tile_left_by(s->c.p, store->operand[0], &alone) == store && alone &&
         !s->c.p->view[store->view].scratch;
}

/* What other statements of the nest touch, other threads of the block may. */
static void store(bb_simt *s, const bb_tile_stmt *stmt) {
  const bb_tile *t = tile_of(s, stmt->operand[0]);
  window w = window_of(s, stmt);
  bool alone, back = s->touches[stmt->view] > 1 && !is_waited_for(s, stmt);
  if (back) bb_c_line(&s->c, "bb_sync();");
  bb_c_line(&s->c, "bb_store<%s>(%s, %s, %s, t%u, %s, %s);", shape(s, t), w.from, w.row, w.col,
            stmt->operand[0], w.rows, w.cols);
  if (back) bb_c_line(&s->c, "bb_sync();");
  if (bb_tile_left_by(s->c.p, stmt->operand[0], &alone) == stmt)
    bb_c_line(&s->c, "t%u_at = bb_at(i%u);", stmt->operand[0], s->variable);
}

/* --- by several threads --- */

/* Elements that a product lays down in shared memory, as the device library does: parts of both operands, then
 * what each group of threads has summed. */
static uint64_t product_room(const bb_simt *s, const bb_tile *to, uint32_t depth) {
  uint32_t rows = to->rows ? to->rows : 1, cols = to->cols ? to->cols : 1, rm = PIECE, rn = PIECE;
  uint32_t threads = s->ty * s->tx;
  while ((uint64_t)bb_simt_parts(rows, rm) * bb_simt_parts(cols, rn) > threads)
    if (rn > rm)
      rm *= 2;
    else
      rn *= 2;
  uint64_t down = bb_simt_parts(rows, rm), across = bb_simt_parts(cols, rn);
  uint64_t sums = threads / (down * across) * down * rm * across * rn;
  uint64_t operands = (down * rm + across * rn + 2 * PIECE) * (depth < DEPTH ? depth : DEPTH);
  return operands > sums ? operands : sums;
}

/* Does a device's unit for products, if it has one, take these elements?  Then it lays down parts of both operands, and the
 * result in f32. */
static bool is_narrow(const bb_simt *s, const bb_tile_stmt *stmt) {
  bb_dtype dtype = tile_of(s, stmt->operand[0])->dtype;
  return !s->c.exact && (dtype == BB_F16 || dtype == BB_BF16) &&
         tile_of(s, stmt->operand[1])->dtype == dtype && tile_of(s, stmt->result)->dtype == BB_F32;
}

static uint32_t in_fragments(uint32_t size) {
  enum { FRAGMENT = 16 };
  return (size ? (size + FRAGMENT - 1) / FRAGMENT : 1) * FRAGMENT;
}

static uint64_t fragment_room(const bb_tile *to, uint32_t depth) {
  enum { APART = 8 };
  uint64_t rows = in_fragments(to->rows), cols = in_fragments(to->cols);
  uint64_t part = in_fragments(depth) < DEPTH ? in_fragments(depth) : DEPTH;
  uint64_t operands = 2 * (rows + cols) * (part + APART), result = 4 * rows * cols;
  return operands > result ? operands : result;
}

static void dot(bb_simt *s, const bb_tile_stmt *stmt) {
  const bb_tile *to = tile_of(s, stmt->result), *a = tile_of(s, stmt->operand[0]),
                *b = tile_of(s, stmt->operand[1]);
  uint32_t depth = bb_c_depth(s->c.p, stmt);
  want_shared(s, product_room(s, to, depth) * size_of(s, to->dtype));
  if (is_narrow(s, stmt)) want_shared(s, fragment_room(to, depth));
  bb_c_line(&s->c, "bb_dot<%s, %u, %u, %s, %u, %u, %s, %s>(t%u, t%u, t%u, %s);", shape(s, to),
            a->rows, a->cols, stmt->transposed[0] ? "true" : "false", b->rows, b->cols,
            stmt->transposed[1] ? "false" : "true",
            is_narrow(s, stmt) ? bb_simt_stored(s, a->dtype) : bb_c_element(&s->c, to->dtype),
            stmt->result, stmt->operand[0], stmt->operand[1], stmt->accumulate ? "true" : "false");
}

static const char *monoid_of(const bb_simt *s, const bb_tile_stmt *stmt) {
  const char *type = bb_c_element(&s->c, tile_of(s, stmt->operand[0])->dtype), *name = NULL;
  switch (stmt->monoid->id) {
  case BB_MONOID_SUM: name = "sum"; break;
  case BB_MONOID_PROD: name = "prod"; break;
  case BB_MONOID_MAX: name = "most"; break;
  case BB_MONOID_MIN: name = "least_of"; break;
  default: bb_c_refuse(&s->c, "a fold of a tile by this monoid");
  }
  return bb_arena_printf(arena(s), "bb_%s<%s>", name, type);
}

/* Folds of rows of more threads than a warp has meet in shared memory. */
static void fold(bb_simt *s, const bb_tile_stmt *stmt) {
  const bb_tile *t = tile_of(s, stmt->operand[0]);
  if (stmt->axis != BB_AXIS_COL) bb_c_refuse(&s->c, "a fold along the rows of a tile");
  want_shared(s, MEETING * parts_of(s, stmt->result));
  if (stmt->second == BB_NONE) {
    const char *monoid = monoid_of(s, stmt);
    bool part = tile_of(s, stmt->result)->partial;
    bb_c_line(&s->c, "bb_fold<%s, %s%s>(t%u, t%u, %s());", shape(s, t), part ? "true, " : "false, ",
              monoid, stmt->result, stmt->operand[0], monoid);
    return;
  }
  bb_monoid_id id = stmt->monoid->id;
  bool largest = id == BB_MONOID_ARGMAX || id == BB_MONOID_ARGMAX_LAST;
  bool last = id == BB_MONOID_ARGMAX_LAST || id == BB_MONOID_ARGMIN_LAST;
  bb_c_line(&s->c, "bb_place<%s, %s, %s>(t%u, t%u, t%u, %s, %s);", shape(s, t),
            largest ? "true" : "false", last ? "true" : "false", stmt->result, stmt->second,
            stmt->operand[0], bb_c_index(&s->c, stmt->at[1]), bb_c_index(&s->c, stmt->limit));
}

static void lay_down(bb_simt *s, const bb_tile *t) {
  want_shared(s, (uint64_t)(t->rows ? t->rows : 1) * ((t->cols ? t->cols : 1) + 1u) *
                     size_of(s, t->dtype));
}

static void scan(bb_simt *s, const bb_tile_stmt *stmt) {
  const bb_tile *t = tile_of(s, stmt->operand[0]);
  if (stmt->axis != BB_AXIS_COL) bb_c_refuse(&s->c, "a scan along the rows of a tile");
  const char *monoid = monoid_of(s, stmt);
  lay_down(s, t);
  bb_c_line(&s->c, "bb_scan<%s, %s%s>(t%u, t%u, %s());", shape(s, t), monoid,
            stmt->before ? ", true" : "", stmt->result, stmt->operand[0], monoid);
}

static void transpose(bb_simt *s, const bb_tile_stmt *stmt) {
  const bb_tile *t = tile_of(s, stmt->operand[0]);
  lay_down(s, t);
  bb_c_line(&s->c, "bb_transpose<%s>(t%u, t%u);", shape(s, t), stmt->result, stmt->operand[0]);
}

/* --- control --- */

static void body(bb_simt *s, const bb_tile_body *b, uint32_t stretch);

/* How many iterations of a short loop stand one behind the other, so that what they load is on its way at once: as many as a
 * thread has registers for. */
static uint32_t unrolled(const bb_simt *s, const bb_tile_loop *l) {
  enum { SHORT = 8, HELD = 168 };
  const bb_tile_stretch *k = &l->stretch[0];
  if (l->stretches > 1 || !k->to || k->from->op != BB_X_CONST || k->to->op != BB_X_CONST ||
      l->step->op != BB_X_CONST)
    return 1;
  double trips = ceil((k->to->number - k->from->number) / l->step->number);
  uint32_t held = 0;
  for (uint32_t i = 0; i < l->body.count; i++) {
    const bb_tile_stmt *stmt = l->body.stmt[i];
    if (stmt->kind != BB_TILE_LOAD && stmt->kind != BB_TILE_MAP) return 1;
    const bb_tile *t = tile_of(s, stmt->result);
    if (stmt->kind == BB_TILE_LOAD)
      held += bb_simt_parts(t->rows, s->ty) * bb_simt_parts(t->cols, s->tx);
  }
  if (!held || trips < 2 || trips > SHORT) return 1;
  return held * trips <= HELD ? (uint32_t)trips : held * 2 <= HELD ? HELD / held : 1;
}

static void loop(bb_simt *s, const bb_tile_loop *l) {
  bb_c *c = &s->c;
  uint32_t together = unrolled(s, l), around = s->variable;
  if (l->merge) bb_c_refuse(c, "a loop whose iterations are merged");
  for (uint32_t k = 0; k < l->stretches; k++) {
    if (together > 1) bb_c_line(c, "#pragma unroll %u", together);
    bb_c_loop_head(c, l, k);
    c->indent++;
    s->variable = l->variable;
    body(s, &l->body, l->stretches > 1 ? k : BB_NONE);
    c->indent--;
    bb_c_line(c, "}");
  }
  s->variable = around;
}

static void branch(bb_simt *s, const bb_tile_stmt *stmt, const char *condition, uint32_t stretch) {
  bb_c_line(&s->c, "if (%s) {", condition);
  s->c.indent++;
  body(s, &stmt->body, stretch);
  s->c.indent--;
  bb_c_line(&s->c, "}");
}

/* Of a block that the tile has not yet. */
static void load_other(bb_simt *s, const bb_tile_stmt *stmt) {
  bb_c *c = &s->c;
  bool alone;
  const bb_tile_stmt *left = bb_tile_left_by(c->p, stmt->result, &alone);
  bb_c_line(c, "if (t%u_at != i%u) {", stmt->result, s->variable);
  c->indent++;
  if (left && is_waited_for(s, left)) bb_c_line(c, "bb_sync();");
  load(s, stmt);
  bb_c_line(c, "t%u_at = bb_at(i%u);", stmt->result, s->variable);
  c->indent--;
  if (bb_tile_is_bare(c->p, stmt)) {
    window w = window_of(s, stmt);
    bb_c_line(c, "} else {");
    bb_c_line(c, "  bb_surround<%s>(t%u, %s, %s, %s);", shape(s, tile_of(s, stmt->result)),
              stmt->result, w.rows, w.cols, pad_of(s, stmt));
  }
  bb_c_line(c, "}");
}

static void statement(bb_simt *s, const bb_tile_stmt *stmt, uint32_t stretch) {
  switch (stmt->kind) {
  case BB_TILE_LOAD:
    if (bb_tile_is_held(s->c.p, stmt->result))
      load_other(s, stmt);
    else
      load(s, stmt);
    return;
  case BB_TILE_STORE: store(s, stmt); return;
  case BB_TILE_MAP: map(s, stmt); return;
  case BB_TILE_ANY: map(s, stmt); return;
  case BB_TILE_DOT: dot(s, stmt); return;
  case BB_TILE_FOLD: fold(s, stmt); return;
  case BB_TILE_SCAN: scan(s, stmt); return;
  case BB_TILE_TRANSPOSE: transpose(s, stmt); return;
  case BB_TILE_LOOP: loop(s, stmt->loop); return;
  case BB_TILE_IF:
    branch(s, stmt, bb_arena_printf(arena(s), "t%u[0]", stmt->operand[0]), stretch);
    return;
  case BB_TILE_WHEN: branch(s, stmt, bb_c_condition(&s->c, stmt), stretch); return;
  }
}

static bool runs(const bb_tile_stmt *stmt, uint32_t stretch) {
  return !stmt->stretches || stretch == BB_NONE || stmt->stretches >> stretch & 1;
}

/* Does a thread hold neighbours, which come together? */
static bool comes_in_lines(const bb_simt *s, const bb_tile_stmt *stmt) {
  uint32_t cols = tile_of(s, stmt->result)->cols;
  return s->tv > 1 && cols && cols % (2 * s->tx) == 0;
}

/* Loads of lines that follow each other from statement i on, as many as a thread has registers for on the way: more of them would
 * leave a processor fewer threads. */
static uint32_t loads_from(const bb_simt *s, const bb_tile_body *b, uint32_t i, uint32_t stretch) {
  uint32_t loads = 0, bytes = 0;
  for (; i + loads < b->count; loads++) {
    const bb_tile_stmt *stmt = b->stmt[i + loads];
    if (stmt->kind != BB_TILE_LOAD || !runs(stmt, stretch) ||
        bb_tile_is_held(s->c.p, stmt->result) || !comes_in_lines(s, stmt))
      break;
    bytes += parts_of(s, stmt->result) * (uint32_t)bb_dtype_bytes(s->c.p->view[stmt->view].dtype);
    if (bytes > BB_SIMT_ASKED) break;
  }
  return loads;
}

static void body(bb_simt *s, const bb_tile_body *b, uint32_t stretch) {
  for (uint32_t i = 0; i < b->count; i++) {
    const bb_tile_stmt *stmt = b->stmt[i], *next = i + 1 < b->count ? b->stmt[i + 1] : NULL;
    if (!runs(stmt, stretch)) continue;
    uint32_t loads = loads_from(s, b, i, stretch);
    if (loads > 1) {
      load_several(s, loads, b->stmt + i);
      i += loads - 1;
      continue;
    }
    if (!is_whole(s, stmt)) {
      statement(s, stmt, stretch);
      continue;
    }
    bool both = next && runs(next, stretch) && is_whole(s, next) &&
                next->operand[0] != stmt->result && next->result != stmt->operand[0] &&
                tile_of(s, next->result)->dtype == tile_of(s, stmt->result)->dtype;
    whole(s, stmt, both ? next : NULL);
    i += both;
  }
}

static bool stores(const bb_tile_body *b) {
  for (uint32_t i = 0; i < b->count; i++) {
    const bb_tile_stmt *stmt = b->stmt[i];
    if (stmt->kind == BB_TILE_STORE || stores(&stmt->body)) return true;
    if (stmt->loop && stores(&stmt->loop->body)) return true;
  }
  return false;
}

void bb_simt_body(bb_simt *s, const bb_tile_body *b) {
  bb_tile_body first = *b, rest;
  first.count = 0;
  while (first.count < b->count && !stores(&(bb_tile_body){1, b->stmt + first.count}))
    first.count++;
  rest = (bb_tile_body){b->count - first.count, b->stmt + first.count};
  body(s, &first, BB_NONE);
  if (s->ahead && rest.count) bb_c_line(&s->c, "if (call.ahead) bb_after_earlier();");
  body(s, &rest, BB_NONE);
}
