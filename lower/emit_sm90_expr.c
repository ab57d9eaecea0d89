/* emit_sm90_expr.c - expressions as CUDA: indices, and maps at one element of a fragment. */
#include "emit_sm90.h"
#include "infix.h"

#include <math.h>
#include <string.h>

typedef struct writer {
  const bb_cuda *e;
  bb_buffer out;
  const char *const *variable; /* indices */
  const bb_tile_stmt *stmt;    /* maps: what arguments and coordinates are */
  const char *element;
  bb_layout layout;
  uint32_t ct, rows, cols;
  bool compared; /* what is written next is compared, and nothing else */
} writer;

static void put(writer *w, const bb_expr *x);

static void put_const(writer *w, const bb_expr *x) {
  if (x->dtype == BB_BOOL)
    bb_put(&w->out, "%s", x->number != 0 ? "true" : "false");
  else if (!bb_dtype_is_float(x->dtype))
    bb_put(&w->out, "%lld", (long long)x->number);
  else if (isnan(x->number))
    bb_put(&w->out, "TL_NAN");
  else if (isinf(x->number))
    bb_put(&w->out, x->number < 0 ? "-TL_INF" : "TL_INF");
  else
    bb_put(&w->out, fabs(x->number) < 1e9 && x->number == rint(x->number) ? "%.1ff" : "%.9gf",
           x->number);
}

static void put_call(writer *w, const char *name, const bb_expr *x) {
  bb_put(&w->out, "%s(", name);
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) {
    if (i) bb_put(&w->out, ", ");
    put(w, x->a[i]);
  }
  bb_put(&w->out, ")");
}

static const char *text_of(const writer *w, const bb_expr *x) {
  writer own = *w;
  own.out = (bb_buffer){.arena = w->e->arena};
  put(&own, x);
  return own.out.data;
}

/* Is it made of what the statement reads, not of where its elements lie alone? */
static bool reads_tiles(const bb_expr *x) {
  bool reads = x->op == BB_X_ARG && x->index < BB_TILE_VARIABLE;
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) reads |= reads_tiles(x->a[i]);
  return reads;
}

/* A compiler makes one operation of a sum and the product on its left.  The other product it makes by itself: that of places alone,
 * which elements along a diagonal have in common. */
static bool stands_better_second(const bb_expr *x) {
  return x->op == BB_X_ADD && bb_dtype_is_float(x->dtype) && x->a[0]->op == BB_X_MUL &&
         x->a[1]->op == BB_X_MUL && !reads_tiles(x->a[0]) && reads_tiles(x->a[1]);
}

static void put_infix(writer *w, const char *op, const bb_expr *x) {
  bool turned = stands_better_second(x);
  bb_put(&w->out, "%s",
         bb_infix(w->e->arena, text_of(w, x->a[turned]), op, text_of(w, x->a[!turned])));
}

static void put_named(writer *w, const char *name, const bb_expr *x) {
  bb_put(&w->out, "%s(", name);
  put(w, x);
  bb_put(&w->out, ")");
}

static void put_power(writer *w, const bb_expr *x) {
  if (bb_expr_is_number(x->a[0], 2))
    put_named(w, "tl::exp2", x->a[1]);
  else if (bb_expr_is_number(x->a[1], 2))
    put_named(w, "tl::square", x->a[0]);
  else if (bb_expr_is_number(x->a[1], 3))
    put_named(w, "tl::cube", x->a[0]);
  else if (bb_expr_is_number(x->a[1], -0.5))
    put_named(w, "rsqrtf", x->a[0]);
  else if (bb_expr_is_number(x->a[1], 0.5))
    put_named(w, "sqrtf", x->a[0]);
  else
    put_call(w, "powf", x);
}

/* Of a multiple, that is 2 log2 e times as much at once. */
static void put_tanh(writer *w, const bb_expr *x) {
  bb_program *home = w->e->p->home;
  const bb_expr *a = x->a[0];
  uint32_t k = a->op == BB_X_MUL && a->a[0]->op == BB_X_CONST ? 0 : 1;
  if (a->op != BB_X_MUL || a->a[k]->op != BB_X_CONST || x->dtype != BB_F32) {
    put_call(w, "tl::tanh", x);
    return;
  }
  const bb_expr *factor = bb_expr_const(home, BB_F32, a->a[k]->number * 2 * M_LOG2E);
  put_named(w, "tl::tanh_by_power", bb_expr_make(home, BB_X_MUL, a->a[1 - k], factor, NULL));
}

static void put_cast(writer *w, const bb_expr *x) {
  switch (x->dtype) {
  case BB_F16: put_named(w, "tl::round_f16", x->a[0]); break;
  case BB_BF16: put_named(w, "tl::round_bf16", x->a[0]); break;
  case BB_F32:
  case BB_F64: put_named(w, "float", x->a[0]); break;
  case BB_BOOL: put_named(w, "bool", x->a[0]); break;
  case BB_U32:
  case BB_U16:
  case BB_I16:
  case BB_U8:
  case BB_I8: bb_cuda_refuse(w->e, w->stmt, "an integer of few bits"); break;
  case BB_I64: put_named(w, w->stmt ? "(long long)" : "int", x->a[0]); break;
  default: put_named(w, "int", x->a[0]); break;
  }
}

/* Is it made of places alone, in 32 bits? */
static bool is_of_places(const bb_expr *x) {
  bool is = x->op != BB_X_CAST && !bb_dtype_is_float(x->dtype);
  if (x->op == BB_X_CONST) is = is && fabs(x->number) <= 0x1p30;
  if (x->op == BB_X_ARG) is = x->index >= BB_TILE_VARIABLE;
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) is = is && is_of_places(x->a[i]);
  return is;
}

/* The lesser or greater of two integers: elements may be of 64 bits, and coordinates beside them are of 32; of coordinates that are only
 * compared with another it is of 32. */
static void put_bound(writer *w, const char *name, const bb_expr *x, bool compared) {
  bool plain = !w->stmt || x->dtype != BB_I64, narrow = compared && is_of_places(x);
  bb_put(&w->out, "%s(", name);
  for (uint32_t i = 0; i < 2; i++) {
    if (i) bb_put(&w->out, ", ");
    w->compared = narrow;
    if (plain || narrow)
      put(w, x->a[i]);
    else
      put_named(w, "(long long)", x->a[i]);
  }
  bb_put(&w->out, ")");
}

static void put_leaf(writer *w, const bb_expr *x) {
  const bb_tile_program *p = w->e->p;
  if (x->op == BB_X_CONST) {
    put_const(w, x);
  } else if (x->op == BB_X_ARG && w->stmt && x->index >= BB_TILE_VARIABLE) {
    uint32_t variable = x->index - BB_TILE_VARIABLE;
    bb_put(&w->out, "%s", w->e->variable[variable]);
  } else if (x->op == BB_X_ARG) {
    if (w->stmt)
      bb_put(&w->out, "%s",
             bb_cuda_element(w->e, w->stmt->operand[x->index], w->element, w->layout, w->ct,
                             w->rows, w->cols));
    else
      bb_put(&w->out, "%s", w->variable[x->index]);
  } else if (x->op == BB_X_SYMBOL) {
    for (uint32_t i = 0; i < p->extents; i++)
      if (strcmp(p->variable[i], p->home->symbol[x->index]) == 0)
        bb_put(&w->out, "p.%s", p->variable[i]);
  } else if (w->layout != BB_LAYOUT_FRAGMENT) {
    bb_cuda_refuse(w->e, w->stmt, "a coordinate beside what is no fragment");
  } else if (x->index == BB_COORD_ROW) {
    if (w->cols)
      bb_put(&w->out, "at_row + 8 * tl::row_of<%u>(%s)", w->ct, w->element);
    else
      bb_put(&w->out, "at_row + 8 * (%s)", w->element);
  } else if (w->rows) {
    bb_put(&w->out, "at_col + tl::col_at<%u>(%s)", w->ct, w->element);
  } else {
    bb_put(&w->out, "at_col + 4 * (%s) - 3 * ((%s) & 1)", w->element, w->element);
  }
}

/* Is it, in the kernel, how many blocks a cluster has?  The launch knows; to divide again takes longer than a copy. */
static bool is_cluster_size(const writer *w, const bb_expr *x) {
  const bb_tile_loop *cluster = w->e->cluster;
  return w->variable == w->e->variable && cluster && x->op != BB_X_CONST &&
         x == cluster->stretch[0].to && cluster->stretch[0].from->op == BB_X_CONST &&
         cluster->stretch[0].from->number == 0 && cluster->step->op == BB_X_CONST &&
         cluster->step->number == 1;
}

static void put(writer *w, const bb_expr *x) {
  bool integer = !bb_dtype_is_float(x->dtype), compared = w->compared;
  w->compared = x->op == BB_X_LT || x->op == BB_X_LE;
  for (uint32_t k = 0; k < w->e->grids; k++)
    if (w->e->step_name[k] && x == w->e->grid[k]->step) {
      bb_put(&w->out, "%s", w->e->step_name[k]);
      return;
    }
  if (is_cluster_size(w, x)) {
    bb_put(&w->out, "tl::cluster_size()");
    return;
  }
  switch (x->op) {
  case BB_X_CONST:
  case BB_X_ARG:
  case BB_X_COORD:
  case BB_X_SYMBOL: put_leaf(w, x); break;
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MUL:
  case BB_X_LT:
  case BB_X_LE:
  case BB_X_EQ:
  case BB_X_NE:
  case BB_X_AND:
  case BB_X_OR:
  case BB_X_XOR: put_infix(w, bb_expr_op_name(x->op), x); break;
  case BB_X_DIV:
    if (integer)
      put_infix(w, bb_expr_op_name(x->op), x);
    else
      put_call(w, "tl::divide", x);
    break;
  case BB_X_POW: put_power(w, x); break;
  case BB_X_NEG: put_call(w, "-", x); break;
  case BB_X_NOT: put_call(w, "!", x); break;
  case BB_X_MIN: integer ? put_bound(w, "min", x, compared) : put_call(w, "fminf", x); break;
  case BB_X_MAX: integer ? put_bound(w, "max", x, compared) : put_call(w, "fmaxf", x); break;
  case BB_X_EXP: put_call(w, "tl::exp", x); break;
  case BB_X_SIN: put_call(w, "tl::sin", x); break;
  case BB_X_COS: put_call(w, "tl::cos", x); break;
  case BB_X_ATAN: put_call(w, "atanf", x); break;
  case BB_X_TANH: put_tanh(w, x); break;
  case BB_X_SQRT: put_call(w, "sqrtf", x); break;
  case BB_X_LOG: put_call(w, "logf", x); break;
  case BB_X_ERF: put_call(w, "tl::erf", x); break;
  case BB_X_ABS: put_call(w, integer ? "abs" : "fabsf", x); break;
  case BB_X_ISNAN: put_call(w, "isnan", x); break;
  case BB_X_ISINF: put_call(w, "isinf", x); break;
  case BB_X_SELECT:
    bb_put(&w->out, "(");
    put(w, x->a[0]);
    bb_put(&w->out, " ? ");
    put(w, x->a[1]);
    bb_put(&w->out, " : ");
    put(w, x->a[2]);
    bb_put(&w->out, ")");
    break;
  case BB_X_CAST: put_cast(w, x); break;
  default: bb_cuda_refuse(w->e, w->stmt, "a function without a device form");
  }
}

const char *bb_cuda_index(const bb_cuda *e, bb_tile_index index, const char *const *names) {
  writer w = {.e = e, .out = {.arena = e->arena}, .variable = names ? names : e->variable};
  put(&w, index);
  return w.out.data;
}

const char *bb_cuda_value(const bb_cuda *e, const bb_tile_stmt *stmt, const bb_expr *expr,
                          const char *element, bb_layout layout, uint32_t ct) {
  writer w = {
      .e = e, .out = {.arena = e->arena}, .stmt = stmt, .element = element, .layout = layout};
  w.ct = ct;
  const bb_tile *result = &e->p->tile[stmt->result];
  w.rows = result->rows, w.cols = result->cols;
  for (uint32_t i = 0; stmt->kind == BB_TILE_ANY && i < stmt->operands; i++) {
    const bb_tile *t = &e->p->tile[stmt->operand[i]];
    if (t->rows) w.rows = t->rows;
    if (t->cols) w.cols = t->cols;
  }
  if (e->single) w.rows = w.cols = 1, w.ct = e->single; /* coordinates of a block's element */
  put(&w, expr);
  return w.out.data;
}

const char *bb_cuda_element(const bb_cuda *e, uint32_t tile, const char *element, bb_layout layout,
                            uint32_t ct, uint32_t rows, uint32_t cols) {
  const bb_tile *t = &e->p->tile[tile];
  const bb_cuda_tile *plan = &e->tile[tile];
  if (e->raw && plan->layout == BB_LAYOUT_SHARED && t->rows == rows && t->cols == cols)
    return bb_arena_printf(e->arena,
                           "tl::half_%s(raw_%s[((%s) / 4 & 1) * 2 + ((%s) >> 1 & 1)], (%s) & 1)",
                           bb_cuda_narrow(t->dtype), plan->name, element, element, element);
  if (plan->layout == BB_LAYOUT_SHARED || plan->layout == BB_LAYOUT_LEFT ||
      plan->layout == BB_LAYOUT_RIGHT)
    bb_cuda_refuse(e, NULL, "a map over a tile that lies as an operand");
  if (e->single) return bb_arena_printf(e->arena, "one_%s", plan->name);
  if (!t->rows && !t->cols)
    return t->dtype == BB_BOOL ? plan->name : bb_arena_printf(e->arena, "%s[0]", plan->name);
  if (plan->layout != layout) bb_cuda_refuse(e, NULL, "a map over tiles of different layouts");
  if (t->rows == rows && t->cols == cols)
    return bb_arena_printf(e->arena, "%s[%s]", plan->name, element);
  if (layout == BB_LAYOUT_SPREAD) return bb_arena_printf(e->arena, "%s[0]", plan->name);
  return bb_arena_printf(e->arena, "%s[tl::%s_of<%u>(%s)]", plan->name, t->rows ? "row" : "col", ct,
                         element);
}

/* The members of the kernel's argument: views that are called as another member get a name of their own. */
const char *bb_cuda_view_name(const bb_cuda *e, uint32_t view) {
  static const char *const taken[] = {"parts", "done", "counter", "tiles"};
  const char *name = e->p->view[view].name;
  bool clash = false;
  for (uint32_t i = 0; i < sizeof taken / sizeof *taken; i++) clash |= strcmp(taken[i], name) == 0;
  for (uint32_t i = 0; i < e->p->extents; i++) clash |= strcmp(e->p->variable[i], name) == 0;
  for (uint32_t i = 0; i < e->maps; i++) clash |= strcmp(e->map[i].name, name) == 0;
  return clash ? bb_arena_printf(e->arena, "view%u_%s", view, name) : name;
}
