/* formula.c - scalar expressions evaluated over whole items: compiled once to a program of steps in
 * postorder, each step run over a stretch of elements at a time.
 *
 * bb_expr_eval() says what every step computes; a test holds the two against each other.
 */
#include "machine.h"
#include "../../graph/intern.h"

#include <math.h>
#include <string.h>

enum { STRETCH = 256 };

typedef struct step {
  const bb_expr *expr;
  uint32_t a[3]; /* steps */
} step;

struct bb_formula {
  bool accumulator;
  uint32_t steps;
  const step *step;
};

/* --- compiling --- */

typedef struct compiled {
  const bb_expr *expr;
  uint32_t step;
} compiled;

typedef struct compiler {
  bb_arena *arena;
  bb_intern *seen;
  uint32_t steps, capacity;
  step *step;
} compiler;

static uint64_t hash_compiled(const void *object) {
  return ((const compiled *)object)->expr->id * 0x9E3779B97F4A7C15u >> 16;
}

static bool same_compiled(const void *a, const void *b) {
  return ((const compiled *)a)->expr == ((const compiled *)b)->expr;
}

static uint32_t compile(compiler *c, const bb_expr *expr) {
  const compiled *found = bb_intern_find(c->seen, &(compiled){.expr = expr});
  if (found) return found->step;
  step made = {.expr = expr};
  for (uint32_t i = 0; i < bb_expr_op_arity(expr->op); i++) made.a[i] = compile(c, expr->a[i]);
  BB_GROW(c->arena, c->step, c->capacity, c->steps + 1u);
  c->step[c->steps] = made;
  compiled *entry = BB_NEW(c->arena, compiled, 1);
  *entry = (compiled){expr, c->steps};
  bb_intern_add(c->seen, entry);
  return c->steps++;
}

const bb_formula *bb_formula_compile(bb_run *run, const bb_expr *expr, bool accumulator) {
  compiler c = {.arena = run->scratch};
  c.seen = bb_intern_create(run->scratch, hash_compiled, same_compiled);
  compile(&c, expr);
  bb_formula *formula = BB_NEW(run->scratch, bb_formula, 1);
  *formula = (bb_formula){accumulator, c.steps, c.step};
  return formula;
}

/* --- steps over a stretch --- */

static double round_half_even(double x) {
  return rint(x); /* the library never changes the rounding mode */
}

static int64_t whole(double x) {
  return isnan(x) ? 0 : x < -0x1p63 ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}

static double divide_integers(double a, double b) {
  return b == 0 ? 0 : trunc(a / b);
}

static double modulo(double a, double b) {
  double rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* The least number of 32 bits is its own negative. */
static double negative(bb_dtype dtype, double x) {
  return dtype == BB_I32 && x == INT32_MIN ? x : -x;
}

static double converted(const bb_expr *cast, double x) {
  bool wraps = cast->dtype == BB_I32 && !bb_dtype_is_float(cast->a[0]->dtype);
  return wraps ? (int32_t)(uint32_t)whole(x) : bb_round_to(cast->dtype, x);
}

static void run_unary(const bb_expr *expr, int n, const double *a, double *out) {
#define EACH(value)                                                                                \
  do {                                                                                             \
    for (int i = 0; i < n; i++) out[i] = (value);                                                  \
    return;                                                                                        \
  } while (0)
  switch (expr->op) {
  case BB_X_NEG: EACH(negative(expr->dtype, a[i]));
  case BB_X_ABS: EACH(a[i] < 0 ? negative(expr->dtype, a[i]) : fabs(a[i]));
  case BB_X_SIGN: EACH(isnan(a[i]) ? a[i] : (a[i] > 0) - (a[i] < 0));
  case BB_X_SQRT: EACH(sqrt(a[i]));
  case BB_X_EXP: EACH(exp(a[i]));
  case BB_X_LOG: EACH(log(a[i]));
  case BB_X_SIN: EACH(sin(a[i]));
  case BB_X_COS: EACH(cos(a[i]));
  case BB_X_ATAN: EACH(atan(a[i]));
  case BB_X_TANH: EACH(tanh(a[i]));
  case BB_X_ERF: EACH(erf(a[i]));
  case BB_X_FLOOR: EACH(floor(a[i]));
  case BB_X_CEIL: EACH(ceil(a[i]));
  case BB_X_ROUND: EACH(round_half_even(a[i]));
  case BB_X_NOT: EACH(a[i] == 0);
  case BB_X_ISNAN: EACH(isnan(a[i]));
  case BB_X_ISINF: EACH(isinf(a[i]) != 0);
  case BB_X_CAST:
    if (bb_dtype_is_float(expr->dtype))
      memcpy(out, a, (size_t)n * sizeof *out);
    else
      EACH(converted(expr, a[i]));
    return;
  default: EACH(NAN);
  }
}

/* Squares are everywhere and need no pow(). */
static void run_power(const bb_expr *expr, int n, const double *a, const double *b, double *out) {
  bool integer = !bb_dtype_is_float(expr->dtype);
  if (!integer && expr->a[1]->op == BB_X_CONST && expr->a[1]->number == 2) EACH(a[i] * a[i]);
  for (int i = 0; i < n; i++) out[i] = pow(a[i], b[i]);
  if (integer)
    for (int i = 0; i < n; i++) out[i] = bb_round_to(expr->dtype, out[i]);
}

/* A sum, difference or product of integers, all bits that kernels have of it. */
static uint64_t low_bits(const bb_expr *expr, uint64_t x, uint64_t y) {
  return expr->op == BB_X_ADD ? x + y : expr->op == BB_X_SUB ? x - y : x * y;
}

/* Bits as a number of a type of integers; NaN: no double holds it. */
static double of_bits(bb_dtype dtype, uint64_t bits) {
  double value;
  bb_interp_load(dtype, &bits, 1, &value);
  return value;
}

/* What doubles say too little of, in its type. */
static double wrapped(const bb_expr *expr, double a, double b) {
  return of_bits(expr->dtype, low_bits(expr, (uint64_t)whole(a), (uint64_t)whole(b)));
}

/* False: a result is none that a double holds. */
static bool run_arithmetic(const bb_expr *expr, int n, const double *a, const double *b,
                           double *out) {
  double most = expr->dtype == BB_I32 ? 0x1p31 : 0x1p53;
  switch (expr->op) {
  case BB_X_ADD:
    for (int i = 0; i < n; i++) out[i] = a[i] + b[i];
    break;
  case BB_X_SUB:
    for (int i = 0; i < n; i++) out[i] = a[i] - b[i];
    break;
  default:
    for (int i = 0; i < n; i++) out[i] = a[i] * b[i];
  }
  if (expr->dtype != BB_I32 && expr->dtype != BB_I64) return true;
  bool held = true;
  for (int i = 0; i < n; i++) {
    if (fabs(out[i]) < most) continue;
    out[i] = wrapped(expr, a[i], b[i]);
    held &= !isnan(out[i]);
  }
  return held;
}

static void run_binary(const bb_expr *expr, int n, const double *a, const double *b, double *out) {
  bool integer = !bb_dtype_is_float(expr->dtype);
  switch (expr->op) {
  case BB_X_DIV:
    if (integer) EACH(divide_integers(a[i], b[i]));
    EACH(a[i] / b[i]);
  case BB_X_POW: run_power(expr, n, a, b, out); return;
  case BB_X_MIN: EACH(isnan(a[i]) || isnan(b[i]) ? NAN : a[i] < b[i] ? a[i] : b[i]);
  case BB_X_MAX: EACH(isnan(a[i]) || isnan(b[i]) ? NAN : a[i] > b[i] ? a[i] : b[i]);
  case BB_X_MOD: EACH(integer && b[i] == 0 ? 0 : modulo(a[i], b[i]));
  case BB_X_FMOD: EACH(integer && b[i] == 0 ? 0 : fmod(a[i], b[i]));
  case BB_X_BITS: EACH((double)(whole(a[i]) & whole(b[i])));
  case BB_X_LT: EACH(a[i] < b[i]);
  case BB_X_LE: EACH(a[i] <= b[i]);
  case BB_X_EQ: EACH(a[i] == b[i]);
  case BB_X_NE: EACH(a[i] != b[i]);
  case BB_X_AND: EACH(a[i] != 0 && b[i] != 0);
  case BB_X_OR: EACH(a[i] != 0 || b[i] != 0);
  case BB_X_XOR: EACH((a[i] != 0) != (b[i] != 0));
  default: EACH(NAN);
  }
}

static void run_select(int n, const double *a, const double *b, const double *c, double *out) {
  EACH(a[i] != 0 ? b[i] : c[i]);
#undef EACH
}

/* What a step gives is rounded to: 16 bits by casts, and at the end. */
static bb_dtype precision(const bb_formula *formula, uint32_t number) {
  const bb_expr *expr = formula->step[number].expr;
  bool narrow = bb_dtype_is_float(expr->dtype) && expr->dtype != BB_F64;
  bool inside = formula->accumulator || number + 1 < formula->steps;
  return inside && narrow && expr->op != BB_X_CAST ? BB_F32 : expr->dtype;
}

static void round_stretch(bb_dtype dtype, int n, double *values) {
  switch (dtype) {
  case BB_F64:
  case BB_BOOL: return;
  case BB_F32:
    for (int i = 0; i < n; i++) values[i] = (double)(float)values[i];
    return;
  default:
    for (int i = 0; i < n; i++) values[i] = bb_round_to(dtype, values[i]);
  }
}

/* --- evaluation --- */

typedef struct evaluation {
  bb_run *run;
  const bb_formula *formula;
  const bb_node *node;
  bb_datum *const *in;
  const bb_datum *out;
  uint32_t depth;
  bb_stack *stack;
  double (*value)[STRETCH]; /* by step */
  /* By step: all bits of its values, where a double does not hold one of them (it is NaN); else NULL. */
  uint64_t **bits;
  uint64_t **room; /* by step: for these, once there were any */
} evaluation;

static bool is_uniform_leaf(const bb_expr *expr) {
  return expr->op == BB_X_CONST || expr->op == BB_X_SYMBOL || expr->op == BB_X_EXTENT ||
         (expr->op == BB_X_COORD && expr->index >= BB_COORD_MAP);
}

static double uniform_value(const evaluation *e, const bb_node *node, const bb_expr *expr) {
  bb_run *run = e->run;
  switch (expr->op) {
  case BB_X_CONST:
    return run->options->float64 ? expr->number : bb_round_to(expr->dtype, expr->number);
  case BB_X_SYMBOL:
    if (expr->index >= run->program->symbols || !run->symbol)
      bb_fail(run->ctx, BB_ERROR_INTERNAL, "%s: unknown run-time scalar", bb_run_place(run, node));
    return run->symbol[expr->index];
  case BB_X_EXTENT: return (double)bb_run_extent(run, expr->dim);
  default: break;
  }
  uint32_t outward = expr->index - BB_COORD_MAP;
  if (outward >= e->depth)
    bb_fail(run->ctx, BB_ERROR_INTERNAL, "%s: coord(%u) lies beyond the outermost map",
            bb_run_place(run, node), expr->index);
  return (double)run->index[e->depth - 1 - outward];
}

/* Elements first .. first + n - 1 of the item, counted row by row. */
static void load_operand(const bb_datum *in, int64_t cols, int64_t first, int n, double *out) {
  int64_t r = first / cols, c = first % cols;
  for (int i = 0; i < n;) {
    int run = (int)(cols - c < n - i ? cols - c : n - i);
    const double *from = in->data + r * in->row.stride + c * in->col.stride;
    int64_t stride = in->col.length == 1 ? 0 : in->col.stride;
    for (int k = 0; k < run; k++) out[i + k] = from[k * stride];
    i += run;
    c = 0;
    r++;
  }
}

/* Whether a step cuts integers to so few bits that a double holds them, and nothing but bits is asked of its operand. */
static bool cuts_bits(const bb_expr *expr) {
  return expr->op == BB_X_CAST && (bb_dtype_is_stored(expr->dtype) || expr->dtype == BB_I32);
}

static void refuse_lost(const evaluation *e) {
  bb_fail(e->run->ctx, BB_ERROR_UNSUPPORTED,
          "%s: a result is an integer beyond 2^53 that no double holds",
          bb_run_place(e->run, e->node));
}

/* Whether a step only chooses among numbers: those that no double holds may be what it leaves out. */
static bool chooses(const bb_expr *expr) {
  bool select = expr->op == BB_X_SELECT, extremum = expr->op == BB_X_MIN || expr->op == BB_X_MAX;
  return (select || extremum) && expr->dtype == BB_I64;
}

static uint64_t bits_at(const evaluation *e, uint32_t number, int i) {
  return e->bits[number] ? e->bits[number][i] : (uint64_t)whole(e->value[number][i]);
}

/* All bits of element i of a step that chooses or cuts. */
static uint64_t chosen_bits(const evaluation *e, const step *at, int i) {
  uint64_t b, a = at->expr->op == BB_X_SELECT ? 0 : bits_at(e, at->a[0], i);
  switch (at->expr->op) {
  case BB_X_SELECT: return bits_at(e, at->a[e->value[at->a[0]][i] != 0 ? 1 : 2], i);
  case BB_X_MIN: b = bits_at(e, at->a[1], i); return (int64_t)a < (int64_t)b ? a : b;
  case BB_X_MAX: b = bits_at(e, at->a[1], i); return (int64_t)a > (int64_t)b ? a : b;
  default: return a;
  }
}

static uint64_t *room_for_bits(evaluation *e, uint32_t number) {
  if (!e->room[number]) e->room[number] = (uint64_t *)bb_stack_alloc(e->stack, STRETCH);
  return e->room[number];
}

/* A step of whose operands doubles do not hold all. */
static void run_on_bits(evaluation *e, uint32_t number, int n) {
  const step *at = &e->formula->step[number];
  bool selects = at->expr->op == BB_X_SELECT, held = true;
  if (!(chooses(at->expr) || cuts_bits(at->expr)) || (selects && e->bits[at->a[0]])) refuse_lost(e);
  uint64_t *bits = room_for_bits(e, number);
  for (int i = 0; i < n; i++) {
    bits[i] = chosen_bits(e, at, i);
    e->value[number][i] = of_bits(at->expr->dtype, bits[i]);
    held &= !isnan(e->value[number][i]);
  }
  e->bits[number] = held ? NULL : bits;
}

static void run_pair(evaluation *e, uint32_t number, int n, const double *a, const double *b,
                     double *out) {
  const bb_expr *expr = e->formula->step[number].expr;
  if (expr->op != BB_X_ADD && expr->op != BB_X_SUB && expr->op != BB_X_MUL) {
    run_binary(expr, n, a, b, out);
  } else if (!run_arithmetic(expr, n, a, b, out)) {
    uint64_t *bits = e->bits[number] = room_for_bits(e, number);
    for (int i = 0; i < n; i++)
      bits[i] = low_bits(expr, (uint64_t)whole(a[i]), (uint64_t)whole(b[i]));
  }
}

static void load_coordinate(const bb_datum *out, uint32_t which, int64_t cols, int64_t first, int n,
                            double *values) {
  for (int i = 0; i < n; i++)
    values[i] = which == BB_COORD_ROW ? (double)(out->row_start + (first + i) / cols)
                                      : (double)(out->col_start + (first + i) % cols);
}

static void run_stretch(evaluation *e, int64_t first, int n) {
  int64_t cols = e->out->col.length;
  for (uint32_t s = 0; s < e->formula->steps; s++) {
    const step *at = &e->formula->step[s];
    const bb_expr *expr = at->expr;
    double *out = e->value[s];
    if (is_uniform_leaf(expr)) continue;
    if (expr->op == BB_X_ARG) {
      load_operand(e->in[expr->index], cols, first, n, out);
      continue;
    }
    if (expr->op == BB_X_COORD) {
      load_coordinate(e->out, expr->index, cols, first, n, out);
      continue;
    }
    const double *a = e->value[at->a[0]], *b = e->value[at->a[1]], *c = e->value[at->a[2]];
    bool lost = false;
    e->bits[s] = NULL;
    for (uint32_t k = 0; k < bb_expr_op_arity(expr->op); k++) lost |= e->bits[at->a[k]] != NULL;
    if (lost) {
      run_on_bits(e, s, n);
      continue;
    }
    switch (bb_expr_op_arity(expr->op)) {
    case 1: run_unary(expr, n, a, out); break;
    case 2: run_pair(e, s, n, a, b, out); break;
    default: run_select(n, a, b, c, out);
    }
    if (!e->run->options->float64 && !e->bits[s]) round_stretch(precision(e->formula, s), n, out);
  }
  if (e->bits[e->formula->steps - 1]) refuse_lost(e);
}

void bb_formula_run_on(bb_run *run, const bb_formula *formula, const bb_node *node,
                       bb_datum *const *in, bb_datum *out, bb_stack *stack, uint32_t depth) {
  bb_stack_mark mark = bb_stack_save(stack);
  evaluation e = {run, formula, node, in, out, depth, stack, NULL, NULL, NULL};
  e.value = (double(*)[STRETCH])bb_stack_alloc(stack, (size_t)formula->steps * STRETCH);
  e.bits = (uint64_t **)bb_stack_alloc(stack, formula->steps);
  e.room = (uint64_t **)bb_stack_alloc(stack, formula->steps);
  for (uint32_t s = 0; s < formula->steps; s++) e.bits[s] = e.room[s] = NULL;
  int64_t count = out->row.length * out->col.length;
  for (uint32_t s = 0; s < formula->steps && count; s++) {
    if (!is_uniform_leaf(formula->step[s].expr)) continue;
    double value = uniform_value(&e, node, formula->step[s].expr);
    for (int i = 0; i < STRETCH && i < count; i++) e.value[s][i] = value;
  }
  for (int64_t first = 0; first < count; first += STRETCH) {
    int n = (int)(count - first < STRETCH ? count - first : STRETCH);
    run_stretch(&e, first, n);
    memcpy(out->data + first, e.value[formula->steps - 1], (size_t)n * sizeof *out->data);
  }
  bb_stack_restore(stack, mark);
}

void bb_formula_run(bb_run *run, const bb_formula *formula, const bb_node *node,
                    bb_datum *const *in, bb_datum *out, uint32_t depth) {
  bb_formula_run_on(run, formula, node, in, out, &run->stack[depth], depth);
}
