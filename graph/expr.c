/* expr.c - making, folding and evaluating scalar expressions.  Printing is in expr_text.c. */
#include "program.h"
#include "intern.h"
#include "tables.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  uint32_t arity;
  double cost;
} ops[] = {
#define BB_EXPR(id, name, arity, cost, text) [BB_X_##id] = {name, arity, cost},
#include "expr.def"
#undef BB_EXPR
};

const char *bb_expr_op_name(bb_expr_op op) {
  return ops[op].name;
}
uint32_t bb_expr_op_arity(bb_expr_op op) {
  return ops[op].arity;
}

/* --- interning --- */

uint64_t bb_expr_hash(const void *object) {
  const bb_expr *expr = object;
  uint64_t key[7] = {(uint64_t)expr->op << 32 | expr->dtype,
                     expr->index,
                     expr->dim,
                     bb_bits_of(expr->number),
                     expr->a[0] ? expr->a[0]->id + 1u : 0,
                     expr->a[1] ? expr->a[1]->id + 1u : 0,
                     expr->a[2] ? expr->a[2]->id + 1u : 0};
  return bb_hash_bytes(key, sizeof key, 0);
}

bool bb_expr_equal(const void *left, const void *right) {
  const bb_expr *a = left, *b = right;
  return a->op == b->op && a->dtype == b->dtype && a->index == b->index && a->dim == b->dim &&
         bb_bits_of(a->number) == bb_bits_of(b->number) && a->a[0] == b->a[0] &&
         a->a[1] == b->a[1] && a->a[2] == b->a[2];
}

static void note_facts(bb_expr *expr) {
  expr->depth = 1;
  expr->coord = expr->op == BB_X_COORD;
  expr->cost = ops[expr->op].cost;
  if (expr->op == BB_X_ARG) {
    expr->args = 1ull << (expr->index < 63 ? expr->index : 63);
    expr->arg_count = expr->index + 1;
  }
  for (uint32_t i = 0; i < ops[expr->op].arity; i++) {
    const bb_expr *a = expr->a[i];
    expr->args |= a->args;
    expr->coord |= a->coord;
    if (a->arg_count > expr->arg_count) expr->arg_count = a->arg_count;
    if (a->depth >= expr->depth) expr->depth = a->depth + 1;
    if (i == 0 || (a != expr->a[0] && (i == 1 || a != expr->a[1]))) expr->cost += a->cost;
  }
}

static const bb_expr *intern(bb_program *program, bb_expr key) {
  const bb_expr *found = bb_intern_find(program->exprs, &key);
  if (found) return found;
  bb_expr *expr = BB_NEW(program->arena, bb_expr, 1);
  *expr = key;
  expr->id = program->exprs->count;
  note_facts(expr);
  if (expr->depth > BB_EXPR_DEPTH)
    bb_fail(program->ctx, BB_ERROR_INPUT, "an expression is nested more than %d deep",
            BB_EXPR_DEPTH);
  bb_intern_add(program->exprs, expr);
  return expr;
}

static double rounded_constant(bb_dtype dtype, double value) {
  if (dtype == BB_BOOL) return value != 0;
  return bb_dtype_is_stored(dtype) ? bb_dtype_wrap(dtype, value) : value;
}

const bb_expr *bb_expr_const(bb_program *program, bb_dtype dtype, double value) {
  if (isnan(value)) value = NAN; /* one NaN, so that equal constants are equal */
  return intern(program, (bb_expr){.op = BB_X_CONST,
                                   .dtype = dtype,
                                   .dim = BB_NO_DIM,
                                   .number = rounded_constant(dtype, value)});
}

const bb_expr *bb_expr_arg(bb_program *program, bb_dtype dtype, uint32_t operand) {
  return intern(program,
                (bb_expr){.op = BB_X_ARG, .dtype = dtype, .dim = BB_NO_DIM, .index = operand});
}

const bb_expr *bb_expr_coord(bb_program *program, uint32_t which) {
  return intern(program,
                (bb_expr){.op = BB_X_COORD, .dtype = BB_I64, .dim = BB_NO_DIM, .index = which});
}

const bb_expr *bb_expr_extent(bb_program *program, bb_dim dim) {
  int64_t value = bb_extent_value(program->dim[dim].extent);
  if (value >= 0) return bb_expr_const(program, BB_I64, (double)value);
  return bb_expr_extent_name(program, dim);
}

const bb_expr *bb_expr_extent_name(bb_program *program, bb_dim dim) {
  return intern(program, (bb_expr){.op = BB_X_EXTENT, .dtype = BB_I64, .dim = dim});
}

const bb_expr *bb_expr_symbol(bb_program *program, uint32_t symbol) {
  return intern(program,
                (bb_expr){.op = BB_X_SYMBOL, .dtype = BB_I64, .dim = BB_NO_DIM, .index = symbol});
}

/* --- dtypes --- */

/* Two operands of an arithmetic operator: a float wins over an integer, an integer over a bool,
 * and among floats (or integers) the wider one. f16 with bf16 gives f32. */
static bb_dtype join(bb_dtype a, bb_dtype b) {
  if (a == b) return a;
  if (bb_dtype_is_float(a) != bb_dtype_is_float(b)) return bb_dtype_is_float(a) ? a : b;
  if ((a == BB_F16 && b == BB_BF16) || (a == BB_BF16 && b == BB_F16)) return BB_F32;
  return a < b ? a : b; /* dtype.def lists the wider first */
}

static bb_dtype result_dtype(bb_expr_op op, const bb_expr *a, const bb_expr *b, const bb_expr *c) {
  switch (op) {
  case BB_X_LT:
  case BB_X_LE:
  case BB_X_EQ:
  case BB_X_NE:
  case BB_X_NOT:
  case BB_X_ISNAN:
  case BB_X_ISINF: return BB_BOOL;
  case BB_X_SELECT: return join(b->dtype, c->dtype);
  case BB_X_SQRT:
  case BB_X_EXP:
  case BB_X_LOG:
  case BB_X_SIN:
  case BB_X_COS:
  case BB_X_ATAN:
  case BB_X_TANH:
  case BB_X_ERF: return bb_dtype_is_float(a->dtype) ? a->dtype : BB_F32;
  default: return ops[op].arity == 1 ? a->dtype : join(a->dtype, b->dtype);
  }
}

/* --- evaluation of one operator --- */

/* What rounds to 0 keeps its sign. */
static double round_half_even(double x) {
  double down = floor(x), rest = x - down;
  bool up = rest > 0.5 || (rest == 0.5 && fmod(down, 2) != 0);
  return copysign(up ? down + 1 : down, x);
}

static double minimum(double a, double b) {
  return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}
static double maximum(double a, double b) {
  return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static double divide(bool integer, double a, double b) {
  if (!integer) return a / b;
  return b == 0 ? 0 : trunc(a / b);
}

static double modulo(bool integer, bool floor_sign, double a, double b) {
  if (integer && b == 0) return 0;
  double rest = fmod(a, b);
  if (floor_sign && rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return rest;
}

static int64_t whole_of(double a) {
  return isnan(a) ? 0 : a < -0x1p63 ? INT64_MIN : a >= 0x1p63 ? INT64_MAX : (int64_t)a;
}

/* Conversion of a float to an integer: toward zero; what does not fit saturates, NaN gives 0. */
static double to_integer(double value, double low, double high) {
  if (isnan(value)) return 0;
  value = trunc(value);
  return value < low ? low : value > high ? high : value;
}

/* Integers wrap. */
static double convert(bb_dtype from, bb_dtype dtype, double value) {
  switch (dtype) {
  case BB_BOOL: return value != 0;
  case BB_I32:
    if (!bb_dtype_is_float(from)) return (int32_t)(uint32_t)whole_of(value);
    return to_integer(value, -2147483648.0, 2147483647.0);
  case BB_I64: return to_integer(value, -9223372036854775808.0, 9223372036854774784.0);
  default: return bb_dtype_is_stored(dtype) ? bb_dtype_wrap(dtype, value) : value;
  }
}

double bb_expr_apply(const bb_expr *expr, double a, double b, double c) {
  bool integer = !bb_dtype_is_float(expr->dtype);
  switch (expr->op) {
  case BB_X_ADD: return a + b;
  case BB_X_SUB: return a - b;
  case BB_X_MUL: return a * b;
  case BB_X_DIV: return divide(integer, a, b);
  case BB_X_POW: return integer ? convert(BB_F64, expr->dtype, pow(a, b)) : pow(a, b);
  case BB_X_NEG: return -a;
  case BB_X_ABS: return fabs(a);
  case BB_X_SIGN: return isnan(a) ? a : (a > 0) - (a < 0);
  case BB_X_SQRT: return sqrt(a);
  case BB_X_EXP: return exp(a);
  case BB_X_LOG: return log(a);
  case BB_X_SIN: return sin(a);
  case BB_X_COS: return cos(a);
  case BB_X_ATAN: return atan(a);
  case BB_X_TANH: return tanh(a);
  case BB_X_ERF: return erf(a);
  case BB_X_FLOOR: return floor(a);
  case BB_X_CEIL: return ceil(a);
  case BB_X_ROUND: return round_half_even(a);
  case BB_X_MIN: return minimum(a, b);
  case BB_X_MAX: return maximum(a, b);
  case BB_X_MOD: return modulo(integer, true, a, b);
  case BB_X_FMOD: return modulo(integer, false, a, b);
  case BB_X_BITS: return (double)(whole_of(a) & whole_of(b));
  case BB_X_LT: return a < b;
  case BB_X_LE: return a <= b;
  case BB_X_EQ: return a == b;
  case BB_X_NE: return a != b;
  case BB_X_AND: return a != 0 && b != 0;
  case BB_X_OR: return a != 0 || b != 0;
  case BB_X_XOR: return (a != 0) != (b != 0);
  case BB_X_NOT: return a == 0;
  case BB_X_SELECT: return a != 0 ? b : c;
  case BB_X_ISNAN: return isnan(a);
  case BB_X_ISINF: return isinf(a) != 0;
  case BB_X_CAST: return convert(expr->a[0]->dtype, expr->dtype, a);
  default: return NAN;
  }
}

double bb_expr_eval(const bb_expr *expr, const bb_expr_env *env) {
  double value[3] = {0, 0, 0};
  switch (expr->op) {
  case BB_X_CONST: value[0] = expr->number; break;
  case BB_X_ARG: return env->arg[expr->index];
  case BB_X_SYMBOL: return env->symbol[expr->index];
  case BB_X_EXTENT: return (double)env->dim_extent[expr->dim];
  case BB_X_COORD:
    if (expr->index == BB_COORD_ROW) return env->coord_row;
    if (expr->index == BB_COORD_COL) return env->coord_col;
    if (expr->index >= BB_COORD_AXIS) return (double)env->axis_index[expr->index - BB_COORD_AXIS];
    return (double)env->map_index[expr->index - BB_COORD_MAP];
  case BB_X_SELECT: {
    const bb_expr *taken = bb_expr_eval(expr->a[0], env) != 0 ? expr->a[1] : expr->a[2];
    value[0] = bb_expr_eval(taken, env);
    break;
  }
  default:
    for (uint32_t i = 0; i < ops[expr->op].arity; i++) value[i] = bb_expr_eval(expr->a[i], env);
    value[0] = bb_expr_apply(expr, value[0], value[1], value[2]);
  }
  return env->round ? env->round(expr->dtype, value[0]) : value[0];
}

/* --- making, with the identities that hold bit for bit --- */

/* The truth value that AND (`neutral`: true), or OR (false), has for an operand that is a constant. */
static const bb_expr *of_truths(double neutral, const bb_expr *a, const bb_expr *b) {
  if (a->op != BB_X_CONST) {
    const bb_expr *other = a;
    a = b, b = other;
  }
  if (a->op != BB_X_CONST || a->dtype != BB_BOOL || b->dtype != BB_BOOL) return NULL;
  return (a->number != 0) == (neutral != 0) ? b : a;
}

/* x*1, 1*x, x/1, x**1, x-0 are x; x+0 is not (-0 + 0 is 0), 0+x neither. */
static const bb_expr *identity(bb_expr_op op, bb_dtype dtype, const bb_expr *a, const bb_expr *b) {
  const bb_expr *kept = NULL;
  if (op == BB_X_MUL && bb_expr_is_number(b, 1)) kept = a;
  if (op == BB_X_MUL && bb_expr_is_number(a, 1)) kept = b;
  if ((op == BB_X_DIV || op == BB_X_POW) && bb_expr_is_number(b, 1)) kept = a;
  if (op == BB_X_SUB && bb_expr_is_number(b, 0) && !signbit(b->number)) kept = a;
  if (op == BB_X_AND || op == BB_X_OR) kept = of_truths(op == BB_X_AND, a, b);
  if (op == BB_X_NEG && a->op == BB_X_NEG) kept = a->a[0];
  if (op == BB_X_NOT && a->op == BB_X_NOT && a->a[0]->dtype == BB_BOOL) kept = a->a[0];
  return kept && kept->dtype == dtype ? kept : NULL;
}

/* Integer arithmetic folds only while doubles are exact; an exp, only while a float holds it: one that does not stays, for the
 * repair of softmax to know it by. */
static bool folds(const bb_expr *key, double value) {
  if (key->op == BB_X_EXP && isfinite(key->a[0]->number))
    return value >= FLT_MIN && value <= FLT_MAX;
  if (key->dtype == BB_I32) return value >= INT32_MIN && value <= INT32_MAX;
  return bb_dtype_is_float(key->dtype) || fabs(value) <= 9007199254740992.0;
}

const bb_expr *bb_expr_make(bb_program *program, bb_expr_op op, const bb_expr *a, const bb_expr *b,
                            const bb_expr *c) {
  bb_expr key = {.op = op, .dim = BB_NO_DIM, .a = {a, b, c}};
  uint32_t arity = ops[op].arity;
  for (uint32_t i = arity; i < 3; i++) key.a[i] = NULL;
  key.dtype = result_dtype(op, a, b, c);
  const bb_expr *same = identity(op, key.dtype, a, b);
  if (same) return same;
  if (op == BB_X_SELECT && a->op == BB_X_CONST) {
    const bb_expr *taken = a->number != 0 ? b : c;
    if (taken->dtype == key.dtype) return taken;
  }
  bool constant = true;
  for (uint32_t i = 0; i < arity; i++) constant &= key.a[i]->op == BB_X_CONST;
  if (constant) {
    double value =
        bb_expr_apply(&key, a->number, arity > 1 ? b->number : 0, arity > 2 ? c->number : 0);
    if (folds(&key, value)) return bb_expr_const(program, key.dtype, value);
  }
  return intern(program, key);
}

const bb_expr *bb_expr_cast(bb_program *program, bb_dtype dtype, const bb_expr *a) {
  if (a->dtype == dtype) return a;
  bool back = a->op == BB_X_CAST && a->a[0]->dtype == dtype && bb_dtype_is_stored(dtype);
  if (back && a->dtype != BB_BOOL && !bb_dtype_is_float(a->dtype)) return a->a[0];
  /* A float constant is folded only into a type that holds it as it is. */
  if (a->op == BB_X_CONST && (dtype == BB_F64 || !bb_dtype_is_float(dtype)))
    return bb_expr_const(program, dtype, convert(a->dtype, dtype, a->number));
  if (a->op == BB_X_CONST && dtype == BB_F32 && (double)(float)a->number == a->number)
    return bb_expr_const(program, dtype, a->number);
  return intern(program, (bb_expr){.op = BB_X_CAST, .dtype = dtype, .dim = BB_NO_DIM, .a = {a}});
}

/* --- walking: expressions are shared, so every walk remembers what it has seen --- */

typedef struct place {
  const bb_expr *expr;
  uint32_t index; /* in the post-order */
} place;

/* Most expressions are small: what was seen is searched, and indexed only when it grows. */
enum { SEARCHED = 24 };

typedef struct walk {
  bb_arena *scratch;
  bb_intern *seen; /* of place; NULL: the nodes are few */
  uint32_t count, capacity;
  const bb_expr **node;
} walk;

static uint64_t hash_place(const void *object) {
  return (((const place *)object)->expr->id * 0x9E3779B97F4A7C15u) >> 20;
}

static bool same_place(const void *a, const void *b) {
  return ((const place *)a)->expr == ((const place *)b)->expr;
}

static uint32_t place_of(const walk *w, const bb_expr *expr) {
  for (uint32_t i = 0; !w->seen && i < w->count; i++)
    if (w->node[i] == expr) return i;
  if (!w->seen) return UINT32_MAX;
  const place *found = bb_intern_find(w->seen, &(place){.expr = expr});
  return found ? found->index : UINT32_MAX;
}

static void remember(walk *w, uint32_t index) {
  place *here = BB_NEW(w->scratch, place, 1);
  *here = (place){w->node[index], index};
  bb_intern_add(w->seen, here);
}

static void index_nodes(walk *w) {
  w->seen = bb_intern_create(w->scratch, hash_place, same_place);
  for (uint32_t i = 0; i < w->count; i++) remember(w, i);
}

static void visit(walk *w, const bb_expr *expr) {
  if (place_of(w, expr) != UINT32_MAX) return;
  for (uint32_t i = 0; i < ops[expr->op].arity; i++) visit(w, expr->a[i]);
  BB_GROW(w->scratch, w->node, w->capacity, w->count + 1);
  w->node[w->count++] = expr;
  if (w->seen)
    remember(w, w->count - 1);
  else if (w->count > SEARCHED)
    index_nodes(w);
}

static walk walk_start(bb_arena *scratch, const bb_expr *expr) {
  walk w = {.scratch = scratch};
  visit(&w, expr);
  return w;
}

const bb_expr **bb_expr_postorder(bb_arena *scratch, const bb_expr *expr, uint32_t *count) {
  walk w = walk_start(scratch, expr);
  *count = w.count;
  return w.node;
}

const bb_expr *bb_expr_rebuild(bb_program *program, const bb_expr *node,
                               const bb_expr *const a[3]) {
  if (a[0] == node->a[0] && a[1] == node->a[1] && a[2] == node->a[2]) return node;
  if (node->op == BB_X_CAST) return bb_expr_cast(program, node->dtype, a[0]);
  return bb_expr_make(program, node->op, a[0], a[1], a[2]);
}

const bb_expr *bb_expr_rewrite(bb_program *program, const bb_expr *expr, bb_expr_step *step,
                               void *user) {
  bb_arena *scratch = bb_scratch(program->ctx);
  walk w = walk_start(scratch, expr);
  const bb_expr **result = BB_NEW(scratch, const bb_expr *, w.count);
  for (uint32_t i = 0; i < w.count; i++) {
    const bb_expr *a[3] = {NULL, NULL, NULL};
    for (uint32_t k = 0; k < ops[w.node[i]->op].arity; k++)
      a[k] = result[place_of(&w, w.node[i]->a[k])];
    result[i] = step(user, program, w.node[i], a);
  }
  const bb_expr *top = result[w.count - 1];
  bb_scratch_end(scratch);
  return top;
}

typedef struct leaves {
  bb_expr_leaf *leaf;
  void *user;
} leaves;

static const bb_expr *map_leaf(void *user, bb_program *program, const bb_expr *node,
                               const bb_expr *const a[3]) {
  const leaves *l = user;
  return ops[node->op].arity ? bb_expr_rebuild(program, node, a) : l->leaf(l->user, node);
}

const bb_expr *bb_expr_map_leaves(bb_program *program, const bb_expr *expr, bb_expr_leaf *leaf,
                                  void *user) {
  return bb_expr_rewrite(program, expr, map_leaf, &(leaves){leaf, user});
}

typedef struct substitution {
  uint32_t count;
  const bb_expr *const *with;
} substitution;

static const bb_expr *substitute_leaf(void *user, const bb_expr *leaf) {
  const substitution *s = user;
  if (leaf->op != BB_X_ARG || leaf->index >= s->count || !s->with[leaf->index]) return leaf;
  return s->with[leaf->index];
}

const bb_expr *bb_expr_substitute(bb_program *program, const bb_expr *expr, uint32_t count,
                                  const bb_expr *const *with) {
  substitution s = {count, with};
  return bb_expr_map_leaves(program, expr, substitute_leaf, &s);
}

static const bb_expr *extent_of(void *user, const bb_expr *leaf) {
  return leaf->op == BB_X_EXTENT ? bb_expr_extent(user, leaf->dim) : leaf;
}

const bb_expr *bb_expr_without_names(bb_program *program, const bb_expr *expr) {
  return bb_expr_map_leaves(program, expr, extent_of, program);
}

bool bb_expr_uses_arg(const bb_expr *expr, uint32_t operand) {
  if (operand < 63) return expr->args >> operand & 1;
  if (expr->op == BB_X_ARG) return expr->index == operand;
  for (uint32_t i = 0; i < ops[expr->op].arity; i++)
    if (expr->a[i]->arg_count > operand && bb_expr_uses_arg(expr->a[i], operand)) return true;
  return false;
}

bool bb_expr_uses_coord(const bb_expr *expr) {
  return expr->coord;
}
uint32_t bb_expr_arg_count(const bb_expr *expr) {
  return expr->arg_count;
}
double bb_expr_cost(const bb_expr *expr) {
  return expr->cost;
}

double bb_expr_distinct_cost(bb_context *ctx, const bb_expr *expr) {
  uint32_t count;
  double cost = 0;
  bb_arena *scratch = bb_scratch(ctx);
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  for (uint32_t i = 0; i < count; i++) cost += ops[node[i]->op].cost;
  bb_scratch_end(scratch);
  return cost;
}
