/* emit_c_sweep.c - elementwise statements in C: loops over the elements of tiles, and the fold of what one
 * of them makes in the same loops.
 */
#include "code.h"
#include "emit_c_parts.h"
#include "tile_edit.h"

#include <math.h>
#include <string.h>

static bb_arena *arena(const bb_c *c) {
  return c->out->arena;
}

/* Loops over the elements of a statement, the inner one along neighbours in memory. */
typedef struct sweep {
  uint32_t lines, along;           /* 0: that loop is not there */
  const char *of_lines, *of_along; /* how often they run, as C expressions */
  const char *line, *at;
  bool turned;
} sweep;

static sweep sweep_of(const bb_tile *shape, bool turned) {
  if (turned) return (sweep){shape->cols, shape->rows, NULL, NULL, "c", "r", true};
  return (sweep){shape->rows, shape->cols, NULL, NULL, "r", "c", false};
}

/* Operands that lack the axis of the inner loop are read once for each line. */
static void read_once(bb_c *c, const bb_tile_stmt *s, const sweep *w, const char **operand) {
  for (uint32_t i = 0; i < s->operands; i++) {
    const bb_tile *o = &c->p->tile[s->operand[i]];
    operand[i] = bb_c_at(c, s->operand[i], "r", "c");
    if (!w->along || (w->turned ? o->rows : o->cols) || !bb_expr_uses_arg(s->expr, i)) continue;
    uint32_t k = c->temporaries++;
    bb_c_line(c, "const %s x%u = %s;", bb_c_element(c, o->dtype), k, operand[i]);
    operand[i] = bb_arena_printf(arena(c), "x%u", k);
  }
}

static const char *place(bb_c *c, const bb_tile_stmt *s, uint32_t axis) {
  const char *name = axis ? "c" : "r";
  return s->at[axis] ? bb_arena_printf(arena(c), "(%s + %s)", bb_c_index(c, s->at[axis]), name)
                     : name;
}

uint32_t bb_c_whole(uint32_t along) {
  return along > 2 ? (along + 7) / 8 * 8 : along;
}

/* Have all tiles of a statement room for whole vectors along the inner loop? */
static bool has_room(const bb_c *c, const bb_tile_stmt *s, bool rows) {
  for (uint32_t i = 0; i < s->operands; i++) {
    const bb_tile *o = &c->p->tile[s->operand[i]];
    const bb_c_tile *held = &c->tile[s->operand[i]];
    if ((rows ? o->rows : o->cols) && (held->window || held->panels)) return false;
  }
  return true;
}

static bb_axis lines_axis(const sweep *w) {
  return w->turned ? BB_AXIS_COL : BB_AXIS_ROW;
}

static bb_axis along_axis(const sweep *w) {
  return w->turned ? BB_AXIS_ROW : BB_AXIS_COL;
}

/* Loops over what is there; one along vectors ends in whole ones, which is longer than its tile. */
static void find_ends(bb_c *c, const bb_tile_stmt *s, sweep *w) {
  bb_axis inner = w->along ? along_axis(w) : lines_axis(w);
  const char *end = (has_room(c, s, w->along ? w->turned : true) ? bb_c_whole_count
                                                                 : bb_c_count)(c, s->result, inner);
  w->of_along = w->along ? end : NULL;
  w->of_lines = w->along ? bb_c_count(c, s->result, lines_axis(w)) : end;
}

static bool is_result(const bb_tile_stmt *s, const bb_expr *e) {
  return e->op == BB_X_ARG && e->index < s->operands && s->operand[e->index] == s->result;
}

/* Is it the same for all of a line? */
static bool is_of_line(const bb_c *c, const bb_tile_stmt *s, const sweep *w, const bb_expr *e) {
  for (uint32_t i = 0; i < s->operands; i++) {
    const bb_tile *o = &c->p->tile[s->operand[i]];
    if ((w->turned ? o->rows : o->cols) && bb_expr_uses_arg(e, i)) return false;
  }
  return !e->coord;
}

/* What leaves some lines of its result as they are does nothing there; gives what the others become.  A sum that is
 * renewed where a maximum rises meets fewer and fewer such lines. */
static const bb_expr *leave_lines(bb_c *c, const bb_tile_stmt *s, const sweep *w,
                                  const char *const *operand) {
  const bb_expr *e = s->expr;
  if (!w->along || e->op != BB_X_SELECT || !is_result(s, e->a[1]) || !is_of_line(c, s, w, e->a[0]))
    return e;
  bb_c_line(c, "if (%s) continue;", bb_c_expression(c, e->a[0], operand, NULL, NULL));
  return e->a[2];
}

/* --- lanes --- */

/* Elements that are folded side by side, each into its own; the tile's vectors must make whole ones.  Four of the widest
 * vectors, a whole line of most tiles, hide what each waits for; lanes that become one in the end are at most 32. */
enum { LANES = 32, FEW_LANES = 16, WIDE_LANES = 64 };

/* Has the device library vectors of their exps?  Of 64 bytes of all, of 32 of those at most 0. */
static bool has_exps(const bb_c *c, const bb_expr *exp) {
  return c->vector_bytes == 64 || (c->vector_bytes == 32 && bb_c_is_below(c, exp));
}

/* An exp of single precision that has no other one inside, and vectors of its own; NULL: there is none. */
static const bb_expr *inner_exp(const bb_c *c, const bb_expr *expr) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(arena(c), expr, &count);
  for (uint32_t i = 0; i < count; i++)
    if (node[i]->op == BB_X_EXP && strcmp(bb_c_suffix(c, node[i]->dtype), "f32") == 0 &&
        has_exps(c, node[i]))
      return node[i];
  return NULL;
}

typedef struct replacement {
  const bb_expr *node, *by;
} replacement;

static const bb_expr *replace(void *user, bb_program *program, const bb_expr *node,
                              const bb_expr *const a[3]) {
  const replacement *r = user;
  return node == r->node ? r->by : bb_expr_rebuild(program, node, a);
}

/* A loop over lanes whose body is being written, apart. */
typedef struct lane_loop {
  bb_buffer *out, code;
} lane_loop;

static void begin_lanes(bb_c *c, lane_loop *loop, uint32_t lanes) {
  bb_c_line(c, lanes > FEW_LANES ? "BB_VECTOR" : "BB_SHORT_VECTOR");
  bb_c_line(c, "for (int64_t l = 0; l < %u; l++) {", lanes);
  c->indent++;
  loop->out = c->out;
  loop->code = (bb_buffer){.arena = arena(c)};
  c->out = &loop->code;
}

static void end_lanes(bb_c *c, lane_loop *loop, const sweep *w) {
  c->out = loop->out;
  bb_code_declare(&loop->code, w->at, c->indent, "const int64_t %s = first + l;", w->at);
  bb_put_bytes(c->out, loop->code.data, loop->code.length);
  c->indent--;
  bb_c_line(c, "}");
}

/* An exp as 2^(expr by), which takes fewer multiply-adds and none for a factor; by 0: it stays one of `expr`. */
typedef struct power {
  const bb_expr *expr;
  double by;
} power;

/* Of what is at most 0 the product's rounding reaches a result no more than that of the difference which it is of does. */
static power power_of(const bb_c *c, const bb_expr *exp) {
  const bb_expr *x = exp->a[0];
  if (c->p->home->strict || !bb_c_is_below(c, exp)) return (power){x, 0};
  bool scaled = x->op == BB_X_MUL && x->a[1]->op == BB_X_CONST && x->a[1]->number > 0;
  return scaled ? (power){x->a[0], M_LOG2E * x->a[1]->number} : (power){x, M_LOG2E};
}

/* Vectors have exps of their own, which compilers do not make of plain loops: what they take is computed before for
 * all lanes.  Gives what is left, in which they are operands.  most: as of put_lanes(). */
static const bb_expr *put_exps(bb_c *c, const bb_tile_stmt *s, const sweep *w, const bb_expr *expr,
                               uint32_t lanes, uint32_t most, const char **operand) {
  const bb_expr *left = expr, *exp;
  uint32_t operands = s->operands;
  if (lanes % FEW_LANES) return left;
  for (; operands < BB_TILE_OPERANDS && (exp = inner_exp(c, left)) != NULL; operands++) {
    uint32_t k = c->temporaries++;
    bb_c_line(c, "float x%u[%u];", k, lanes);
    lane_loop loop;
    begin_lanes(c, &loop, lanes);
    const power of = power_of(c, exp);
    const char *value = bb_c_exponent(c, of.expr, operand, place(c, s, 0), place(c, s, 1));
    if (most) value = bb_arena_printf(arena(c), "%s < %u ? %s : 0", w->at, most, value);
    bb_c_line(c, "x%u[l] = %s;", k, value);
    end_lanes(c, &loop, w);
    if (of.by != 0)
      bb_c_line(c, "bb_powers_below_f32(x%u, %.9gf, %u);", k, of.by, lanes);
    else
      bb_c_line(c, "bb_exps_%sf32(x%u, %u);", bb_c_is_below(c, exp) ? "below_" : "", k, lanes);
    operand[operands] = bb_arena_printf(arena(c), "x%u[l]", k);
    replacement r = {exp, bb_expr_arg(c->p->home, exp->dtype, operands)};
    left = bb_expr_rewrite(c->p->home, left, replace, &r);
  }
  return left;
}

/* --- maps --- */

/* Loops over lanes of lines that whole ones make, where exps are computed for all of them (put_exps()); 0: there are none. */
static uint32_t lanes_of_map(const bb_c *c, const sweep *w, const bb_expr *expr) {
  bool all = w->along && strcmp(w->of_along, bb_arena_printf(arena(c), "%u", w->along)) == 0;
  if (!all || !inner_exp(c, expr)) return 0;
  return w->along % LANES == 0 ? LANES : 0;
}

static void put_map_lanes(bb_c *c, const bb_tile_stmt *s, const sweep *w, const bb_expr *expr,
                          uint32_t lanes, const char **operand, const char *to) {
  bb_c_line(c, "for (int64_t first = 0; first < %u; first += %u) {", w->along, lanes);
  c->indent++;
  const bb_expr *left = put_exps(c, s, w, expr, lanes, 0, operand);
  lane_loop loop;
  begin_lanes(c, &loop, lanes);
  bb_c_line(c, "%s = %s;", to, bb_c_expression(c, left, operand, place(c, s, 0), place(c, s, 1)));
  end_lanes(c, &loop, w);
  c->indent--;
  bb_c_line(c, "}");
}

/* to: where element (r, c) goes. */
static void put_map(bb_c *c, const bb_tile_stmt *s, const sweep *w, const char *to) {
  const char *operand[BB_TILE_OPERANDS];
  if (w->lines > 1 && !w->along) bb_c_line(c, "BB_VECTOR");
  if (w->lines)
    bb_c_line(c, "for (int64_t %s = 0; %s < %s; %s++) {", w->line, w->line, w->of_lines, w->line);
  c->indent += w->lines > 0;
  read_once(c, s, w, operand);
  const bb_expr *expr = w->lines ? leave_lines(c, s, w, operand) : s->expr;
  uint32_t lanes = lanes_of_map(c, w, expr);
  if (lanes) {
    put_map_lanes(c, s, w, expr, lanes, operand, to);
  } else {
    if (w->along > 1) bb_c_line(c, "BB_VECTOR");
    if (w->along)
      bb_c_line(c, "for (int64_t %s = 0; %s < %s; %s++) {", w->at, w->at, w->of_along, w->at);
    c->indent += w->along > 0;
    bb_c_line(c, "%s = %s;", to, bb_c_expression(c, expr, operand, place(c, s, 0), place(c, s, 1)));
    c->indent -= w->along > 0;
  }
  c->indent -= w->lines > 0;
  bool both = w->lines && w->along && !lanes;
  if (w->lines || (w->along && !lanes)) bb_c_line(c, both ? "}}" : "}");
}

static void map(bb_c *c, const bb_tile_stmt *s) {
  sweep w = sweep_of(&c->p->tile[s->result], c->tile[s->result].turned);
  find_ends(c, s, &w);
  put_map(c, s, &w, bb_c_at(c, s->result, "r", "c"));
}

void bb_c_map_to(bb_c *c, const bb_tile_stmt *s, const char *to, const char *rows) {
  sweep w = sweep_of(&c->p->tile[s->result], false);
  w.of_lines = rows;
  w.of_along = bb_arena_printf(arena(c), "%u", w.along);
  put_map(c, s, &w, to);
}

/* Over the union of the operands, up to the first line in which it holds. */
static void any(bb_c *c, const bb_tile_stmt *s) {
  bb_tile shape = {0};
  const char *operand[BB_TILE_OPERANDS];
  bool turned = false;
  for (uint32_t i = 0; i < s->operands; i++) {
    const bb_tile *o = &c->p->tile[s->operand[i]];
    if (o->rows) shape.rows = o->rows;
    if (o->cols) shape.cols = o->cols;
    turned |= c->tile[s->operand[i]].turned;
  }
  sweep w = sweep_of(&shape, turned);
  bb_c_line(c, "{ uint8_t any = 0;");
  bb_c_line(c, "for (int64_t %s = 0; %s < %u && !any; %s++) {", w.line, w.line,
            w.lines ? w.lines : 1, w.line);
  c->indent++;
  read_once(c, s, &w, operand);
  if (w.along > 1) bb_c_line(c, "BB_VECTOR");
  bb_c_line(c, "for (int64_t %s = 0; %s < %u; %s++) {", w.at, w.at, w.along ? w.along : 1, w.at);
  c->indent++;
  bb_c_line(c, "any |= %s;", bb_c_expression(c, s->expr, operand, place(c, s, 0), place(c, s, 1)));
  c->indent -= 2;
  bb_c_line(c, "}} t%u[0] = any; }", s->result);
}

/* MAP and ANY. */
void bb_c_map(bb_c *c, const bb_tile_stmt *s) {
  (s->kind == BB_TILE_ANY ? any : map)(c, s);
}

/* --- with a fold --- */

const char *bb_c_monoid(const bb_c *c, const bb_monoid *monoid) {
  switch (monoid->id) {
  case BB_MONOID_SUM: return "sum";
  case BB_MONOID_PROD: return "prod";
  case BB_MONOID_MAX: return "max";
  case BB_MONOID_MIN: return "min";
  default: bb_c_refuse(c, "a fold of a tile by this monoid");
  }
}

static uint32_t lanes_for(const bb_c *c, uint32_t along, bool apart) {
  if (apart && c->vector_bytes == 64 && along % WIDE_LANES == 0) return WIDE_LANES;
  for (uint32_t lanes = LANES; lanes; lanes -= 8)
    if (along % lanes == 0) return lanes;
  return 0;
}

/* gcc makes one instruction of a comparison that is false for NaN, and four of one that is not: which lanes
 * have met a NaN is noted beside such a fold. */
static bool is_extremum(const bb_tile_stmt *fold) {
  return fold->monoid->id == BB_MONOID_MAX || fold->monoid->id == BB_MONOID_MIN;
}

/* Has what a MAP makes to be written, beside being folded?  Not a copy of what lies in the same memory. */
static bool is_kept(const bb_c *c, const bb_tile_stmt *s) {
  bool there = bb_tile_is_copy(s) && bb_c_owner(c, s->result) == bb_c_owner(c, s->operand[0]);
  return c->tile[s->result].readers > 1 && !there;
}

/* Lane l of the line at hand: the element, where it is kept if others read it, and where it is folded into.
 * Short loops of constant length are made straight before they can become vectors, unless told not to.  most: not 0: lanes
 * from there on have no element, and hold what a fold begins with. */
static void put_lanes(bb_c *c, const bb_tile_stmt *s, const bb_tile_stmt *fold, const sweep *w,
                      uint32_t lanes, uint32_t most, const char **operand) {
  const bb_tile *t = &c->p->tile[s->result];
  const bb_expr *expr = put_exps(c, s, w, s->expr, lanes, most, operand);
  lane_loop loop;
  begin_lanes(c, &loop, lanes);
  const char *value = bb_c_expression(c, expr, operand, place(c, s, 0), place(c, s, 1));
  if (most)
    value = bb_arena_printf(arena(c), "%s < %u ? %s : bb_first_%s_%s", w->at, most, value,
                            bb_c_monoid(c, fold->monoid), bb_c_suffix(c, t->dtype));
  bb_c_line(c, "const %s made = %s;", bb_c_element(c, t->dtype), value);
  if (is_kept(c, s)) bb_c_line(c, "%s = made;", bb_c_at(c, s->result, "r", "c"));
  bb_c_line(c, "lane[l] = bb_%s_%s_%s(lane[l], made);", is_extremum(fold) ? "over" : "next",
            bb_c_monoid(c, fold->monoid), bb_c_suffix(c, t->dtype));
  if (is_extremum(fold)) bb_c_line(c, "odd[l] |= -(made != made);");
  end_lanes(c, &loop, w);
}

static void put_empty_lanes(bb_c *c, const bb_tile_stmt *fold, const bb_tile *t, uint32_t lanes) {
  bb_c_line(c, "%s lane[%u];", bb_c_element(c, t->dtype), lanes);
  bb_c_line(c, "for (int64_t l = 0; l < %u; l++) lane[l] = bb_first_%s_%s;", lanes,
            bb_c_monoid(c, fold->monoid), bb_c_suffix(c, t->dtype));
  if (!is_extremum(fold)) return;
  bb_c_line(c, "int%d_t odd[%u];", c->exact ? 64 : 32, lanes);
  bb_c_line(c, "for (int64_t l = 0; l < %u; l++) odd[l] = 0;", lanes);
}

static void put_odd_lanes(bb_c *c, const bb_tile_stmt *fold, uint32_t lanes) {
  if (is_extremum(fold))
    bb_c_line(c, "for (int64_t l = 0; l < %u; l++) lane[l] = odd[l] ? NAN : lane[l];", lanes);
}

/* Operands of the lanes alone are read once for all columns. */
static void hold_lanes(bb_c *c, const bb_tile_stmt *s, uint32_t lanes, uint32_t most,
                       const char **held) {
  for (uint32_t i = 0; i < s->operands; i++) {
    const bb_tile *o = &c->p->tile[s->operand[i]];
    held[i] = NULL;
    if (!o->rows || o->cols || !bb_expr_uses_arg(s->expr, i)) continue;
    uint32_t k = c->temporaries++;
    bb_c_line(c, "%s x%u[%u];", bb_c_element(c, o->dtype), k, lanes);
    const char *value = bb_c_at(c, s->operand[i], "(first + l)", "0");
    if (most) value = bb_arena_printf(arena(c), "first + l < %u ? %s : 0", most, value);
    bb_c_line(c, "for (int64_t l = 0; l < %u; l++) x%u[l] = %s;", lanes, k, value);
    held[i] = bb_arena_printf(arena(c), "x%u[l]", k);
  }
}

/* A turned tile: lanes are rows, and stay apart.  Nothing is read behind the last row of what lies in an array (most). */
static void sweep_down(bb_c *c, const bb_tile_stmt *s, const bb_tile_stmt *fold, uint32_t lanes,
                       uint32_t most) {
  const bb_tile *t = &c->p->tile[s->result];
  const char *operand[BB_TILE_OPERANDS], *held[BB_TILE_OPERANDS];
  sweep w = sweep_of(t, true);
  if (most)
    bb_c_line(c, "for (int64_t first = 0; first < %u; first += %u) {", most, lanes);
  else
    bb_c_line(c, "for (int64_t first = 0; first < %s; first += %u) {",
              bb_c_whole_count(c, s->result, BB_AXIS_ROW), lanes);
  c->indent++;
  put_empty_lanes(c, fold, t, lanes);
  hold_lanes(c, s, lanes, most, held);
  bb_c_line(c, "for (int64_t c = 0; c < %s; c++) {", bb_c_count(c, s->result, BB_AXIS_COL));
  c->indent++;
  read_once(c, s, &w, operand);
  for (uint32_t i = 0; i < s->operands; i++)
    if (held[i]) operand[i] = held[i];
  put_lanes(c, s, fold, &w, lanes, most, operand);
  c->indent--;
  bb_c_line(c, "}");
  put_odd_lanes(c, fold, lanes);
  if (most && bb_c_whole(most) % lanes) /* the tile ends before the last lanes */
    bb_c_line(c, "for (int64_t l = 0; l < %u && first + l < %u; l++) t%u[first + l] = lane[l];",
              lanes, bb_c_whole(most), fold->result);
  else
    bb_c_line(c, "for (int64_t l = 0; l < %u; l++) t%u[first + l] = lane[l];", lanes, fold->result);
  c->indent--;
  bb_c_line(c, "}");
}

/* Lanes are columns, folded into one in the end. */
static void sweep_along(bb_c *c, const bb_tile_stmt *s, const bb_tile_stmt *fold, uint32_t lanes) {
  const bb_tile *t = &c->p->tile[s->result];
  const char *operand[BB_TILE_OPERANDS];
  sweep w = sweep_of(t, false);
  bb_c_line(c, "for (int64_t r = 0; r < %s; r++) {", bb_c_count(c, s->result, BB_AXIS_ROW));
  c->indent++;
  put_empty_lanes(c, fold, t, lanes);
  read_once(c, s, &w, operand);
  bb_c_line(c, "for (int64_t first = 0; first < %u; first += %u) {", t->cols, lanes);
  c->indent++;
  put_lanes(c, s, fold, &w, lanes, 0, operand);
  c->indent--;
  bb_c_line(c, "}");
  put_odd_lanes(c, fold, lanes);
  bb_c_line(c, "t%u[r] = bb_lanes_%s_%s(lane, %u);", fold->result, bb_c_monoid(c, fold->monoid),
            bb_c_suffix(c, t->dtype), lanes);
  c->indent--;
  bb_c_line(c, "}");
}

bool bb_c_map_and_fold(bb_c *c, const bb_tile_stmt *s, const bb_tile_stmt *fold) {
  if (s->kind != BB_TILE_MAP || fold->kind != BB_TILE_FOLD || fold->operand[0] != s->result)
    return false;
  const bb_tile *t = &c->p->tile[s->result];
  bool turned = c->tile[s->result].turned;
  bool ragged = turned && t->rows % 8 && !has_room(c, s, true);
  uint32_t lanes = lanes_for(c, turned ? bb_c_whole(t->rows) : t->cols, turned);
  /* gcc makes fewer lanes that ask whether they are there straight, one by one */
  if (ragged && lanes && lanes < LANES) lanes = c->tile[s->result].readers > 1 ? 0 : LANES;
  if (!t->rows || !t->cols || !lanes || fold->second != BB_NONE || fold->axis != BB_AXIS_COL ||
      !bb_dtype_is_float(t->dtype))
    return false;
  if (turned)
    sweep_down(c, s, fold, lanes, ragged ? t->rows : 0);
  else
    sweep_along(c, s, fold, lanes);
  return true;
}

/* --- in units --- */

/* One is a vector of lanes by so many columns: then what they are folded into, which has no register meanwhile, goes to memory less
 * often than what they make. */
enum { UNIT_LANES = FEW_LANES, UNIT_COLUMNS = 2 };

bool bb_c_has_units(const bb_c *c, const bb_tile_stmt *s, const bb_tile_stmt *fold) {
  if (s->kind != BB_TILE_MAP || fold->kind != BB_TILE_FOLD || fold->operand[0] != s->result ||
      fold->second != BB_NONE || fold->axis != BB_AXIS_COL ||
      (is_extremum(fold) && inner_exp(c, s->expr)))
    return false;
  const bb_tile *t = &c->p->tile[s->result];
  bool kept = c->tile[s->result].readers > 1 || !inner_exp(c, s->expr);
  return kept && c->tile[s->result].turned && t->dtype == BB_F32 && t->cols && t->rows &&
         t->rows % UNIT_LANES == 0 && !bb_c_is_live(c, s->result, BB_AXIS_ROW);
}

const char *bb_c_units(bb_c *c, const bb_tile_stmt *s) {
  const bb_tile *t = &c->p->tile[s->result];
  const uint32_t across = t->rows / UNIT_LANES;
  if (!bb_c_is_live(c, s->result, BB_AXIS_COL))
    return bb_arena_printf(arena(c), "%u", across * ((t->cols + UNIT_COLUMNS - 1) / UNIT_COLUMNS));
  return bb_arena_printf(arena(c), "%u * ((%s + %u) / %u)", across,
                         bb_c_count(c, s->result, BB_AXIS_COL), UNIT_COLUMNS - 1, UNIT_COLUMNS);
}

bool bb_c_has_exp(const bb_c *c, const bb_tile_stmt *s) {
  return inner_exp(c, s->expr) != NULL;
}

const char *bb_c_unit_end(bb_c *c, const bb_tile_stmt *s, const char *unit) {
  const uint32_t across = c->p->tile[s->result].rows / UNIT_LANES;
  return bb_arena_printf(arena(c), "%s / %u * %u + %u", unit, across, UNIT_COLUMNS, UNIT_COLUMNS);
}

void bb_c_begin_units(bb_c *c, const bb_tile_stmt *fold) {
  const bb_tile *t = &c->p->tile[fold->result];
  bb_c_line(c, "for (int64_t r = 0; r < %u; r++) t%u[r] = bb_first_%s_%s;", t->rows, fold->result,
            bb_c_monoid(c, fold->monoid), bb_c_suffix(c, t->dtype));
}

/* The elements of a vector that one column makes, in made[]; they stay in memory, too, if others read them. */
static void put_made(bb_c *c, const bb_tile_stmt *s, const sweep *w, const char **operand) {
  const bb_expr *expr = put_exps(c, s, w, s->expr, UNIT_LANES, 0, operand);
  bb_c_line(c, "float made[%u];", UNIT_LANES);
  lane_loop loop;
  begin_lanes(c, &loop, UNIT_LANES);
  bb_c_line(c, "made[l] = %s;", bb_c_expression(c, expr, operand, place(c, s, 0), place(c, s, 1)));
  if (is_kept(c, s)) bb_c_line(c, "%s = made[l];", bb_c_at(c, s->result, "r", "c"));
  end_lanes(c, &loop, w);
}

static void begin_columns(bb_c *c, const bb_tile_stmt *s) {
  const bb_tile *t = &c->p->tile[s->result];
  bb_c_line(c, "BB_STRAIGHT");
  bb_c_line(c, "for (int64_t q = 0; q < %u; q++) {", UNIT_COLUMNS);
  c->indent++;
  bb_c_line(c, "const int64_t c = unit / %u * %u + q;", t->rows / UNIT_LANES, UNIT_COLUMNS);
  if (bb_c_is_live(c, s->result, BB_AXIS_COL) || t->cols % UNIT_COLUMNS)
    bb_c_line(c, "if (q && c >= %s) continue;", bb_c_count(c, s->result, BB_AXIS_COL));
}

static void end_columns(bb_c *c) {
  c->indent--;
  bb_c_line(c, "}");
}

/* lane[] = what is folded so far of this vector. */
static void begin_fold(bb_c *c, const bb_tile_stmt *fold) {
  bb_c_line(c, "float lane[%u];", UNIT_LANES);
  bb_c_line(c, "BB_SHORT_VECTOR");
  bb_c_line(c, "for (int64_t l = 0; l < %u; l++) lane[l] = t%u[first + l];", UNIT_LANES,
            fold->result);
}

static void end_fold(bb_c *c, const bb_tile_stmt *fold) {
  bb_c_line(c, "BB_SHORT_VECTOR");
  bb_c_line(c, "for (int64_t l = 0; l < %u; l++) t%u[first + l] = lane[l];", UNIT_LANES,
            fold->result);
}

/* Exps need the registers that are left: what they are folded into comes behind, and reads them from memory. */
static void put_exp_unit(bb_c *c, const bb_tile_stmt *s, const bb_tile_stmt *fold, const sweep *w,
                         const char *const *held) {
  const char *operand[BB_TILE_OPERANDS];
  begin_columns(c, s);
  read_once(c, s, w, operand);
  for (uint32_t i = 0; i < s->operands; i++)
    if (held[i]) operand[i] = held[i];
  put_made(c, s, w, operand);
  end_columns(c);
  begin_fold(c, fold);
  begin_columns(c, s);
  bb_c_line(c, "BB_SHORT_VECTOR");
  bb_c_line(c, "for (int64_t l = 0; l < %u; l++) lane[l] = bb_next_%s_f32(lane[l], %s);",
            UNIT_LANES, bb_c_monoid(c, fold->monoid), bb_c_at(c, s->result, "(first + l)", "c"));
  end_columns(c);
  end_fold(c, fold);
}

/* A NaN stays the greatest and the smallest, in three instructions: compilers make five of what says so of a number. */
static void put_plain_unit(bb_c *c, const bb_tile_stmt *s, const bb_tile_stmt *fold, const sweep *w,
                           const char *const *held) {
  const char *operand[BB_TILE_OPERANDS], *monoid = bb_c_monoid(c, fold->monoid);
  begin_fold(c, fold);
  begin_columns(c, s);
  read_once(c, s, w, operand);
  for (uint32_t i = 0; i < s->operands; i++)
    if (held[i]) operand[i] = held[i];
  put_made(c, s, w, operand);
  if (is_extremum(fold)) {
    const char *name = bb_arena_printf(arena(c), "bb_lanes%u", UNIT_LANES);
    bb_c_line(c, "%s_to(lane, %s_%s(%s_from(lane), %s_from(made)));", name, name, monoid, name,
              name);
  } else {
    bb_c_line(c, "BB_SHORT_VECTOR");
    bb_c_line(c, "for (int64_t l = 0; l < %u; l++) lane[l] = bb_next_%s_f32(lane[l], made[l]);",
              UNIT_LANES, monoid);
  }
  end_columns(c);
  end_fold(c, fold);
}

void bb_c_put_unit(bb_c *c, const bb_tile_stmt *s, const bb_tile_stmt *fold) {
  const bb_tile *t = &c->p->tile[s->result];
  const char *held[BB_TILE_OPERANDS];
  sweep w = sweep_of(t, true);
  bb_c_line(c, "const int64_t first = unit %% %u * %u;", t->rows / UNIT_LANES, UNIT_LANES);
  hold_lanes(c, s, UNIT_LANES, 0, held);
  (inner_exp(c, s->expr) ? put_exp_unit : put_plain_unit)(c, s, fold, &w, held);
}
