/* tile_interpret.c - what a tile program means: its statements one after another, in doubles that are
 * rounded to the tile's type.  The yardstick of every emitter; schedules are not looked at.
 */
#include "../runtime/interp/interp.h"
#include "tile.h"

#include <math.h>
#include <string.h>

typedef struct machine {
  const bb_tile_program *p;
  const bb_tile_binding *b;
  bb_arena *arena;
  double *variable;
  int64_t *symbol;
  double **tile; /* rows * cols each, 1 for an axis it lacks */
  double **view; /* the binding's, and scratch */
} machine;

static size_t count_of(const bb_tile *t) {
  return (size_t)bb_tile_rows(t) * bb_tile_cols(t);
}

static void set(const machine *m, uint32_t tile, size_t at, double value) {
  m->tile[tile][at] = m->b->exact && bb_dtype_is_float(m->p->tile[tile].dtype)
                          ? value
                          : bb_round_to(m->p->tile[tile].dtype, value);
}

static void run_body(machine *m, const bb_tile_body *body, uint32_t stretch);

/* --- memory --- */

static void extents_of(const bb_tile_view *view, const double *variable, int64_t *extent,
                       int64_t *stride) {
  int64_t step = 1;
  for (uint32_t i = view->rank; i-- > 0;) {
    extent[i] = bb_tile_index_value(view->extent[i], variable);
    stride[i] = view->strided ? bb_tile_index_value(view->stride[i], variable) : step;
    step *= extent[i];
  }
}

size_t bb_tile_view_count(const bb_tile_program *p, uint32_t view, const int64_t *value) {
  bb_arena *scratch = bb_scratch(p->home->ctx);
  double *variable = BB_NEW(scratch, double, p->variables + 1);
  int64_t extent[BB_TILE_RANK], stride[BB_TILE_RANK], last = 0;
  for (uint32_t i = 0; i < p->extents; i++) variable[i] = (double)value[i];
  extents_of(&p->view[view], variable, extent, stride);
  for (uint32_t i = 0; i < p->view[view].rank; i++) {
    if (extent[i] <= 0) last = -1;
    if (last >= 0) last += (extent[i] - 1) * stride[i];
  }
  bb_scratch_end(scratch);
  return (size_t)(last + 1);
}

/* Where element (row, col) of the statement's tile lies in its view; NULL: beyond the extents. */
static double *element(const machine *m, const bb_tile_stmt *s, const int64_t *extent,
                       const int64_t *stride, const int64_t *start, uint32_t row, uint32_t col) {
  const bb_tile_view *view = &m->p->view[s->view];
  bool two = bb_tile_has_two_rows(s, view->rank);
  int64_t offset = 0;
  for (uint32_t i = view->rank; i-- > 0;) {
    const bb_tile_range *r = &s->range[i];
    bool is_row = r->size && r->axis == BB_AXIS_ROW;
    int64_t at = start[i] + (!r->size ? 0 : !is_row ? col : two ? row % r->size : row);
    if (two && is_row) row /= r->size;
    if (at < 0 || at >= extent[i]) return NULL;
    offset += at * stride[i];
  }
  return two && row ? NULL : m->view[s->view] + offset;
}

static void run_memory(machine *m, const bb_tile_stmt *s) {
  uint32_t tile = s->kind == BB_TILE_LOAD ? s->result : s->operand[0];
  const bb_tile *t = &m->p->tile[tile];
  const bb_tile_view *view = &m->p->view[s->view];
  int64_t extent[BB_TILE_RANK], stride[BB_TILE_RANK], start[BB_TILE_RANK];
  extents_of(view, m->variable, extent, stride);
  for (uint32_t i = 0; i < view->rank; i++)
    start[i] = bb_tile_index_value(s->range[i].start, m->variable);
  for (uint32_t r = 0; r < bb_tile_rows(t); r++)
    for (uint32_t c = 0; c < bb_tile_cols(t); c++) {
      double *place = element(m, s, extent, stride, start, r, c);
      size_t at = (size_t)r * bb_tile_cols(t) + c;
      if (s->kind == BB_TILE_LOAD)
        set(m, tile, at, place ? *place : s->pad);
      else if (place)
        *place = m->tile[tile][at];
    }
}

/* --- arithmetic --- */

static double value_at(const machine *m, uint32_t tile, uint32_t row, uint32_t col) {
  const bb_tile *t = &m->p->tile[tile];
  return m->tile[tile][(t->rows ? row : 0) * (size_t)bb_tile_cols(t) + (t->cols ? col : 0)];
}

static void run_map(machine *m, const bb_tile_stmt *s) {
  bb_tile shape = m->p->tile[s->result];
  double base[2] = {0, 0};
  double *argument = BB_NEW(m->arena, double, BB_TILE_VARIABLE + m->p->variables);
  bool any = false;
  memcpy(argument + BB_TILE_VARIABLE, m->variable, m->p->variables * sizeof *argument);
  for (uint32_t i = 0; s->kind == BB_TILE_ANY && i < s->operands; i++) {
    const bb_tile *t = &m->p->tile[s->operand[i]];
    if (t->rows) shape.rows = t->rows;
    if (t->cols) shape.cols = t->cols;
  }
  for (uint32_t i = 0; i < 2; i++)
    if (s->at[i]) base[i] = (double)bb_tile_index_value(s->at[i], m->variable);
  double *result = BB_NEW(m->arena, double, count_of(&shape)); /* operands may be the result */
  for (uint32_t r = 0; r < bb_tile_rows(&shape); r++)
    for (uint32_t c = 0; c < bb_tile_cols(&shape); c++) {
      for (uint32_t i = 0; i < s->operands; i++) argument[i] = value_at(m, s->operand[i], r, c);
      bb_expr_env env = {.arg = argument, .coord_row = base[0] + r, .coord_col = base[1] + c};
      env.round = m->b->exact ? NULL : bb_round_to;
      double symbol[BB_TILE_OPERANDS * 4];
      for (uint32_t i = 0; i < m->p->home->symbols && i < sizeof symbol / sizeof *symbol; i++)
        symbol[i] = (double)m->symbol[i];
      env.symbol = symbol;
      result[(size_t)r * bb_tile_cols(&shape) + c] = bb_expr_eval(s->expr, &env);
      any |= result[(size_t)r * bb_tile_cols(&shape) + c] != 0;
    }
  if (s->kind == BB_TILE_ANY) {
    m->tile[s->result][0] = any;
    return;
  }
  for (size_t i = 0; i < count_of(&shape); i++) set(m, s->result, i, result[i]);
}

/* A tile as an operand: from one row and from one column to the next. */
typedef struct operand {
  const double *at;
  size_t row, col;
} operand;

static operand operand_of(const machine *m, uint32_t tile, bool transposed) {
  const bb_tile *t = &m->p->tile[tile];
  size_t row = t->rows ? bb_tile_cols(t) : 0, col = t->cols ? 1 : 0;
  return transposed ? (operand){m->tile[tile], col, row} : (operand){m->tile[tile], row, col};
}

static void run_dot(machine *m, const bb_tile_stmt *s) {
  const bb_tile *a = &m->p->tile[s->operand[0]], *c = &m->p->tile[s->result];
  operand left = operand_of(m, s->operand[0], s->transposed[0]);
  operand right = operand_of(m, s->operand[1], s->transposed[1]);
  uint32_t depth = s->transposed[0] ? a->rows : a->cols;
  for (uint32_t i = 0; i < bb_tile_rows(c); i++)
    for (uint32_t j = 0; j < bb_tile_cols(c); j++) {
      size_t at = (size_t)i * bb_tile_cols(c) + j;
      const double *x = left.at + i * left.row, *y = right.at + j * right.col;
      double sum = s->accumulate ? m->tile[s->result][at] : 0;
      for (uint32_t k = 0; k < depth; k++) sum += x[k * left.col] * y[k * right.row];
      set(m, s->result, at, sum);
    }
}

static void run_transpose(machine *m, const bb_tile_stmt *s) {
  const bb_tile *result = &m->p->tile[s->result];
  for (uint32_t r = 0; r < bb_tile_rows(result); r++)
    for (uint32_t c = 0; c < bb_tile_cols(result); c++)
      set(m, s->result, (size_t)r * bb_tile_cols(result) + c, value_at(m, s->operand[0], c, r));
}

static void run_fold(machine *m, const bb_tile_stmt *s) {
  const bb_tile *t = &m->p->tile[s->operand[0]];
  bool rows = s->axis == BB_AXIS_ROW;
  uint32_t stay = rows ? bb_tile_cols(t) : bb_tile_rows(t),
           go = rows ? bb_tile_rows(t) : bb_tile_cols(t);
  bool places = s->second != BB_NONE;
  int64_t first = places ? bb_tile_index_value(s->at[rows ? 0 : 1], m->variable) : 0;
  int64_t limit = places ? bb_tile_index_value(s->limit, m->variable) : 0;
  for (uint32_t i = 0; i < stay; i++) {
    double sum[2], x[2];
    bb_monoid_empty(s->monoid, sum);
    sum[0] = bb_monoid_empty_held(t->dtype, sum[0]);
    for (uint32_t k = 0; k < go && (!places || first + k < limit); k++) {
      x[0] = rows ? value_at(m, s->operand[0], k, i) : value_at(m, s->operand[0], i, k);
      x[1] = (double)(first + k);
      bb_monoid_combine(s->monoid, sum, x);
    }
    set(m, s->result, i, sum[0]);
    if (places) set(m, s->second, i, sum[1]);
  }
}

static void run_scan(machine *m, const bb_tile_stmt *s) {
  const bb_tile *t = &m->p->tile[s->operand[0]];
  bool rows = s->axis == BB_AXIS_ROW;
  uint32_t stay = rows ? bb_tile_cols(t) : bb_tile_rows(t),
           go = rows ? bb_tile_rows(t) : bb_tile_cols(t);
  for (uint32_t i = 0; i < stay; i++) {
    double sum;
    bb_monoid_empty(s->monoid, &sum);
    for (uint32_t k = 0; k < go; k++) {
      uint32_t r = rows ? k : i, c = rows ? i : k;
      size_t to = (size_t)r * bb_tile_cols(t) + c;
      double x = value_at(m, s->operand[0], r, c);
      if (s->before) set(m, s->result, to, sum);
      bb_monoid_combine(s->monoid, &sum, &x);
      if (!s->before) set(m, s->result, to, sum);
    }
  }
}

/* --- loops --- */

/* merged = merged * what the iteration left, component by component. */
static void combine(machine *m, const bb_tile_loop *loop, double *const *left) {
  const bb_tile_monoid *monoid = loop->merge;
  uint32_t n = monoid->components;
  bb_tile whole = {.rows = 0, .cols = 0};
  double **result = BB_NEW(m->arena, double *, n);
  for (uint32_t k = 0; k < n; k++) {
    whole = m->p->tile[loop->merged[k]];
    result[k] = BB_NEW(m->arena, double, count_of(&whole));
    for (uint32_t r = 0; r < bb_tile_rows(&whole); r++)
      for (uint32_t c = 0; c < bb_tile_cols(&whole); c++) {
        double argument[2 * BB_TILE_OPERANDS];
        for (uint32_t i = 0; i < n; i++) {
          const bb_tile *t = &m->p->tile[loop->merged[i]];
          argument[i] = left[i][(t->rows ? r : 0) * (size_t)bb_tile_cols(t) + (t->cols ? c : 0)];
          argument[n + i] = value_at(m, loop->merged[i], r, c);
        }
        bb_expr_env env = {.arg = argument, .round = m->b->exact ? NULL : bb_round_to};
        result[k][(size_t)r * bb_tile_cols(&whole) + c] = bb_expr_eval(monoid->combine[k], &env);
      }
  }
  for (uint32_t k = 0; k < n; k++)
    memcpy(left[k], result[k], count_of(&m->p->tile[loop->merged[k]]) * sizeof(double));
}

/* A mark that is not there, or was never made, leaves nothing out. */
static bool is_passed_over(const machine *m, const bb_tile_loop *loop) {
  const bb_tile_view *view = &m->p->view[loop->marks];
  int64_t extent[BB_TILE_RANK], stride[BB_TILE_RANK], offset = 0;
  extents_of(view, m->variable, extent, stride);
  for (uint32_t i = 0; i < view->rank; i++) {
    int64_t at = bb_tile_index_value(loop->marked[i], m->variable);
    if (at < 0 || at >= extent[i]) return false;
    offset += at * stride[i];
  }
  return m->view[loop->marks][offset] == 0;
}

static void run_iteration(machine *m, const bb_tile_loop *loop, uint32_t stretch, int64_t value,
                          double *const *left) {
  bb_arena *outer = m->arena;
  m->variable[loop->variable] = (double)value;
  if (loop->marked && is_passed_over(m, loop)) return;
  m->arena = bb_scratch(m->p->home->ctx);
  run_body(m, &loop->body, stretch);
  if (loop->merge) combine(m, loop, left);
  bb_scratch_end(m->arena);
  m->arena = outer;
}

static void run_loop(machine *m, const bb_tile_loop *loop) {
  uint32_t n = loop->merge ? loop->merge->components : 0;
  double *left[BB_TILE_OPERANDS];
  for (uint32_t k = 0; k < n; k++) {
    size_t count = count_of(&m->p->tile[loop->merged[k]]);
    left[k] = BB_NEW(m->arena, double, count);
    for (size_t i = 0; i < count; i++) left[k][i] = loop->merge->empty[k];
  }
  int64_t step = bb_tile_index_value(loop->step, m->variable);
  if (step < 1) bb_fail(m->p->home->ctx, BB_ERROR_INPUT, "kernel %s: a step below one", m->p->name);
  for (uint32_t i = 0; i < loop->stretches; i++) {
    int64_t from = bb_tile_index_value(loop->stretch[i].from, m->variable);
    bb_tile_index end = loop->stretch[i].to;
    int64_t to = end ? bb_tile_index_value(end, m->variable) : from + 1;
    int64_t trips = to > from ? (to - from - 1) / step + 1 : 0;
    for (int64_t k = 0; k < trips; k++)
      run_iteration(m, loop, i, from + step * (loop->down ? trips - 1 - k : k), left);
  }
  for (uint32_t k = 0; k < n; k++)
    memcpy(m->tile[loop->merged[k]], left[k],
           count_of(&m->p->tile[loop->merged[k]]) * sizeof(double));
}

static void run_body(machine *m, const bb_tile_body *body, uint32_t stretch) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->stretches && !(s->stretches >> stretch & 1)) continue;
    switch (s->kind) {
    case BB_TILE_LOAD:
    case BB_TILE_STORE: run_memory(m, s); break;
    case BB_TILE_MAP:
    case BB_TILE_ANY: run_map(m, s); break;
    case BB_TILE_DOT: run_dot(m, s); break;
    case BB_TILE_TRANSPOSE: run_transpose(m, s); break;
    case BB_TILE_FOLD: run_fold(m, s); break;
    case BB_TILE_SCAN: run_scan(m, s); break;
    case BB_TILE_IF:
      if (m->tile[s->operand[0]][0] != 0) run_body(m, &s->body, stretch);
      break;
    case BB_TILE_WHEN:
      if (bb_expr_eval(s->expr, &(bb_expr_env){.arg = m->variable}) != 0)
        run_body(m, &s->body, stretch);
      break;
    case BB_TILE_LOOP: run_loop(m, s->loop); break;
    }
  }
}

/* Scratch begins as NaN: a program that reads what it did not write shows. */
static void make_scratch(machine *m) {
  m->view = BB_NEW(m->arena, double *, m->p->views + 1);
  for (uint32_t i = 0; i < m->p->views; i++) {
    if (!m->p->view[i].scratch) {
      m->view[i] = m->b->view[i];
      continue;
    }
    size_t count = bb_tile_view_count(m->p, i, m->b->extent);
    m->view[i] = BB_NEW(m->arena, double, count + 1);
    for (size_t k = 0; k < count; k++) m->view[i][k] = NAN;
  }
}

void bb_tile_interpret(const bb_tile_program *p, const bb_tile_binding *binding) {
  bb_arena *arena = bb_scratch(p->home->ctx);
  machine m = {.p = p, .b = binding, .arena = arena};
  m.variable = BB_NEW(arena, double, p->variables + 1);
  m.symbol = BB_NEW(arena, int64_t, p->home->symbols + 1);
  m.tile = BB_NEW(arena, double *, p->tiles + 1);
  for (uint32_t i = 0; i < p->extents; i++) {
    m.variable[i] = (double)binding->extent[i];
    uint32_t symbol = bb_symbol_find(p->home, p->variable[i]);
    if (symbol < p->home->symbols) m.symbol[symbol] = binding->extent[i];
  }
  for (uint32_t i = 0; i < p->tiles; i++) m.tile[i] = BB_NEW(arena, double, count_of(&p->tile[i]));
  make_scratch(&m);
  run_body(&m, &p->body, 0);
  bb_scratch_end(arena);
}
