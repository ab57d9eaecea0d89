/* monoid_check.c - the laws of a tuple, proved where plain algebra does it and tested elsewhere.
 *
 * A tuple is held to be well formed (combine reads both parts' components and nothing else), its
 * empty element to be neutral, its combine to be associative.  Associative by proof: every component
 * is folded by itself with a basic function, or the caller proved it (a derived product).  Else by
 * test: random tuples, among them empty ones and ties, bracketed both ways.  Commutative: by proof
 * alone, both orders brought to one form under every outcome of the selections.
 */
#include "program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct checker {
  bb_program *program;
  const bb_monoid *monoid;
  uint32_t n;
  bb_arena *scratch;
  uint64_t random;
} checker;

/* --- well formed --- */

static const char *check_expr(checker *c, const bb_expr *expr, const char *name, const char *what) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(c->scratch, expr, &count);
  for (uint32_t i = 0; i < count; i++) {
    if (bb_expr_op_arity(node[i]->op) > 0 || node[i]->op == BB_X_CONST) continue;
    if (node[i]->op != BB_X_ARG)
      return bb_arena_printf(
          c->scratch,
          "the %s of %s reads an extent, a symbol or a coordinate; what is equal "
          "in every part is a component folded by first",
          what, name);
    if (node[i]->index >= 2 * c->n)
      return bb_arena_printf(c->scratch, "the %s of %s reads component %u of %u", what, name,
                             node[i]->index, 2 * c->n);
    bb_dtype own = c->monoid->component[node[i]->index % c->n].dtype;
    if (node[i]->dtype != own)
      return bb_arena_printf(c->scratch, "the %s of %s reads %s as %s, which is %s", what, name,
                             c->monoid->component[node[i]->index % c->n].name,
                             bb_dtype_name(node[i]->dtype), bb_dtype_name(own));
  }
  return NULL;
}

static const char *check_form(checker *c) {
  if (c->n == 0 || c->n > BB_MONOID_COMPONENTS)
    return bb_arena_printf(c->scratch, "%u components, not 1 to %d", c->n, BB_MONOID_COMPONENTS);
  for (uint32_t k = 0; k < c->n; k++) {
    const bb_monoid_component *own = &c->monoid->component[k];
    const char *name = own->name ? own->name : "a component";
    if (!own->combine) return bb_arena_printf(c->scratch, "%s has no combine", name);
    if (own->combine->dtype != own->dtype)
      return bb_arena_printf(c->scratch, "the combine of %s gives %s, not %s", name,
                             bb_dtype_name(own->combine->dtype), bb_dtype_name(own->dtype));
    const char *wrong = check_expr(c, own->combine, name, "combine");
    if (!wrong && own->repair) wrong = check_expr(c, own->repair, name, "repair");
    if (wrong) return wrong;
    if (own->repair && (unsigned)own->fold >= BB_MONOID_COUNT)
      return bb_arena_printf(c->scratch, "%s has a repair and no fold", name);
    if ((unsigned)own->fold > BB_MONOID_COUNT)
      return bb_arena_printf(c->scratch, "%s has no such fold", name);
    if (isnan(own->low) || isnan(own->high) || own->low > own->high)
      return bb_arena_printf(c->scratch, "%s has no values", name);
  }
  return NULL;
}

/* --- one form of equal expressions --- */

static int by_id(const void *a, const void *b) {
  uint32_t x = (*(const bb_expr *const *)a)->id, y = (*(const bb_expr *const *)b)->id;
  return x < y ? -1 : x > y;
}

static void gather(bb_arena *scratch, const bb_expr *expr, bb_expr_op op, uint32_t *count,
                   uint32_t *capacity, const bb_expr ***list) {
  if (expr->op == op && expr->dtype == expr->a[0]->dtype && expr->dtype == expr->a[1]->dtype) {
    gather(scratch, expr->a[0], op, count, capacity, list);
    gather(scratch, expr->a[1], op, count, capacity, list);
    return;
  }
  BB_GROW(scratch, *list, *capacity, (size_t)*count + 1);
  (*list)[(*count)++] = expr;
}

static double neutral_of(bb_expr_op op) {
  switch (op) {
  case BB_X_MUL: return 1;
  case BB_X_MAX: return -INFINITY;
  case BB_X_MIN: return INFINITY;
  default: return 0;
  }
}

/* a op b in order, without what is neutral; x+0 is x but for the sign of a zero. */
static const bb_expr *ordered(checker *c, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  const bb_expr **list = NULL;
  uint32_t count = 0, capacity = 0;
  const bb_expr *whole = bb_expr_make(c->program, op, a, b, NULL);
  if (whole->op != op) return whole;
  gather(c->scratch, whole, op, &count, &capacity, &list);
  qsort(list, count, sizeof *list, by_id);
  const bb_expr *result = NULL;
  bool idempotent = op == BB_X_MAX || op == BB_X_MIN;
  for (uint32_t i = 0; i < count; i++) {
    bool typed = list[i]->dtype == whole->dtype;
    if (typed && bb_expr_is_number(list[i], neutral_of(op)) && (result || i + 1 < count)) continue;
    if (idempotent && i && list[i] == list[i - 1]) continue;
    result = result ? bb_expr_make(c->program, op, result, list[i], NULL) : list[i];
  }
  return result;
}

static bool is_swappable(bb_expr_op op) {
  return op == BB_X_ADD || op == BB_X_MUL || op == BB_X_MAX || op == BB_X_MIN;
}

/* (x-y)**2 is (y-x)**2. */
static const bb_expr *even_power(checker *c, const bb_expr *base, const bb_expr *power) {
  bool even = power->op == BB_X_CONST && fmod(power->number, 2) == 0;
  if (even && base->op == BB_X_SUB && base->a[0]->id > base->a[1]->id)
    base = bb_expr_make(c->program, BB_X_SUB, base->a[1], base->a[0], NULL);
  return bb_expr_make(c->program, BB_X_POW, base, power, NULL);
}

/* The expression with ARGs replaced (NULL: kept), operands of + * max min put in order.  A select
 * whose condition stands in known[] is decided. */
typedef struct known {
  uint32_t count;
  const bb_expr *condition[16];
  bool holds[16];
} known;

static const bb_expr *form(checker *c, const bb_expr *expr, const bb_expr *const *with,
                           const known *k) {
  if (expr->op == BB_X_ARG) return with && with[expr->index] ? with[expr->index] : expr;
  if (bb_expr_op_arity(expr->op) == 0) return expr;
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < bb_expr_op_arity(expr->op); i++) {
    a[i] = form(c, expr->a[i], with, k);
    if (i || expr->op != BB_X_SELECT) continue;
    for (uint32_t j = 0; k && j < k->count; j++)
      if (k->condition[j] == a[0]) return form(c, expr->a[k->holds[j] ? 1 : 2], with, k);
    if (a[0]->op == BB_X_CONST) return form(c, expr->a[a[0]->number != 0 ? 1 : 2], with, k);
  }
  if (expr->op == BB_X_CAST) return bb_expr_cast(c->program, expr->dtype, a[0]);
  if (is_swappable(expr->op)) return ordered(c, expr->op, a[0], a[1]);
  if (expr->op == BB_X_POW) return even_power(c, a[0], a[1]);
  if (expr->op == BB_X_SELECT && a[1] == a[2]) return a[1];
  return bb_expr_make(c->program, expr->op, a[0], a[1], a[2]);
}

/* Trees of shared nodes grow exponentially when they are walked as trees. */
static bool is_walkable(const bb_expr *expr, uint32_t *budget) {
  if (*budget == 0 || expr->depth > 100) return false;
  --*budget;
  for (uint32_t i = 0; i < bb_expr_op_arity(expr->op); i++)
    if (!is_walkable(expr->a[i], budget)) return false;
  return true;
}

static bool can_prove(const checker *c) {
  uint32_t budget = 4000;
  for (uint32_t k = 0; k < c->n; k++)
    if (!is_walkable(c->monoid->component[k].combine, &budget)) return false;
  return true;
}

static const bb_expr *part(checker *c, uint32_t k, uint32_t side) {
  return bb_expr_arg(c->program, c->monoid->component[k].dtype, side * c->n + k);
}

static const bb_expr *empty_value(checker *c, uint32_t k) {
  return bb_expr_const(c->program, c->monoid->component[k].dtype, c->monoid->component[k].empty);
}

/* --- random tuples --- */

static uint64_t draw(checker *c) {
  c->random += 0x9E3779B97F4A7C15u;
  uint64_t x = c->random;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/* Small integers half of the time, so that values tie. */
static double draw_value(checker *c, const bb_monoid_component *own) {
  double low = own->low, high = own->high;
  bool free = low == high, positive = free && c->monoid->proved;
  if (free) low = positive ? 0.5 : -4, high = 4;
  if (low < -1e3) low = high < -1e3 ? high - 8 : -1e3;
  if (high > 1e3) high = low > 1e3 ? low + 8 : 1e3;
  double value = low + (high - low) * ((double)(draw(c) >> 11) * 0x1p-53);
  bool whole = !bb_dtype_is_float(own->dtype) || draw(c) % 2;
  if (whole && ceil(low) <= high) value = fmin(fmax(rint(value), ceil(low)), floor(high));
  return own->dtype == BB_BOOL ? value > 0 : value;
}

static void draw_tuple(checker *c, double *value, bool may_be_empty) {
  bool empty = may_be_empty && draw(c) % 8 == 0;
  for (uint32_t k = 0; k < c->n; k++)
    value[k] = empty ? c->monoid->component[k].empty : draw_value(c, &c->monoid->component[k]);
}

static bool same_value(double a, double b, double tolerance) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b || fabs(a - b) <= tolerance;
}

static const char *put_tuple(checker *c, const double *value) {
  bb_buffer out = {.arena = c->scratch};
  for (uint32_t k = 0; k < c->n; k++) bb_put(&out, "%s%.6g", k ? ", " : "(", value[k]);
  bb_put(&out, ")");
  return out.data;
}

/* --- the empty element --- */

static bool neutral_by_form(checker *c, uint32_t side) {
  const bb_expr *with[2 * BB_MONOID_COMPONENTS] = {NULL};
  for (uint32_t k = 0; k < c->n; k++) with[side * c->n + k] = empty_value(c, k);
  for (uint32_t k = 0; k < c->n; k++)
    if (form(c, c->monoid->component[k].combine, with, NULL) != part(c, k, 1 - side)) return false;
  return true;
}

static const char *neutral_by_test(checker *c, uint32_t side) {
  enum { TRIES = 64 };
  for (uint32_t i = 0; i < TRIES; i++) {
    double value[BB_MONOID_COMPONENTS], empty[BB_MONOID_COMPONENTS], got[BB_MONOID_COMPONENTS];
    if (i)
      draw_tuple(c, value, false);
    else
      bb_monoid_empty(c->monoid, value);
    bb_monoid_empty(c->monoid, empty);
    memcpy(got, side ? value : empty, c->n * sizeof *got);
    bb_monoid_combine(c->monoid, got, side ? empty : value);
    for (uint32_t k = 0; k < c->n; k++)
      if (!same_value(got[k], value[k], 1e-12 * fabs(value[k])))
        return bb_arena_printf(c->scratch,
                               "the empty element is not neutral: %s combined with %s is %s",
                               put_tuple(c, side ? value : empty),
                               put_tuple(c, side ? empty : value), put_tuple(c, got));
  }
  return NULL;
}

static const char *check_neutral(checker *c) {
  bool walk = can_prove(c);
  for (uint32_t side = 0; side < 2; side++) {
    if (walk && neutral_by_form(c, side)) continue;
    const char *wrong = neutral_by_test(c, side);
    if (wrong) return wrong;
  }
  return NULL;
}

/* --- associativity --- */

/* Is every component folded by itself with a function known to be associative? */
static bool is_plain(checker *c) {
  for (uint32_t k = 0; k < c->n; k++) {
    const bb_expr *a = part(c, k, 0), *b = part(c, k, 1), *f = c->monoid->component[k].combine;
    bool swappable = is_swappable(f->op) || f->op == BB_X_AND || f->op == BB_X_OR;
    bool both = swappable && ((f->a[0] == a && f->a[1] == b) || (f->a[0] == b && f->a[1] == a));
    bb_dtype dtype[BB_MONOID_COMPONENTS] = {c->monoid->component[k].dtype};
    const bb_expr *with[2] = {a, b};
    const bb_expr *first = bb_monoid_expr(c->program, bb_monoid_get(BB_MONOID_FIRST), 0, dtype);
    if (!both && f != bb_expr_substitute(c->program, first, 2, with)) return false;
  }
  return true;
}

/* Wrong, or NULL. */
static const char *bracket(checker *c, const double *x, const double *y, const double *z) {
  double left[BB_MONOID_COMPONENTS], right[BB_MONOID_COMPONENTS], tail[BB_MONOID_COMPONENTS];
  size_t bytes = c->n * sizeof *left;
  double scale = 1;
  for (uint32_t k = 0; k < c->n; k++) {
    double size = fabs(x[k]) + fabs(y[k]) + fabs(z[k]);
    if (isfinite(size) && size > scale) scale = size;
  }
  memcpy(left, x, bytes);
  bb_monoid_combine(c->monoid, left, y);
  bb_monoid_combine(c->monoid, left, z);
  memcpy(tail, y, bytes);
  bb_monoid_combine(c->monoid, tail, z);
  memcpy(right, x, bytes);
  bb_monoid_combine(c->monoid, right, tail);
  for (uint32_t k = 0; k < c->n; k++) {
    double size = fabs(left[k]) + fabs(right[k]);
    double tolerance = 1e-7 * (isfinite(size) ? size + scale : scale);
    if (same_value(left[k], right[k], tolerance)) continue;
    return bb_arena_printf(c->scratch,
                           "combine is not associative: of x = %s, y = %s and z = %s, (x y) z is "
                           "%s and x (y z) is %s",
                           put_tuple(c, x), put_tuple(c, y), put_tuple(c, z), put_tuple(c, left),
                           put_tuple(c, right));
  }
  return NULL;
}

static const char *test_associative(checker *c) {
  enum { TRIES = 512 };
  for (uint32_t i = 0; i < TRIES; i++) {
    double x[BB_MONOID_COMPONENTS], y[BB_MONOID_COMPONENTS], z[BB_MONOID_COMPONENTS];
    draw_tuple(c, x, true);
    draw_tuple(c, y, true);
    draw_tuple(c, z, true);
    const char *wrong = bracket(c, x, y, z);
    if (wrong) return wrong;
  }
  return NULL;
}

/* --- commutativity --- */

/* The conditions of selections, one form each. */
static void find_conditions(checker *c, const bb_expr *expr, known *k) {
  for (uint32_t i = 0; i < bb_expr_op_arity(expr->op); i++) find_conditions(c, expr->a[i], k);
  if (expr->op != BB_X_SELECT) return;
  const bb_expr *condition = form(c, expr->a[0], NULL, NULL);
  for (uint32_t i = 0; i < k->count; i++)
    if (k->condition[i] == condition) return;
  if (k->count == 16) return; /* too many: undecided selects differ, and nothing is proved */
  k->condition[k->count++] = condition;
}

/* What a condition that holds says: x == number, one or several. */
static void assume(const bb_expr *condition, const bb_expr **with) {
  if (condition->op == BB_X_AND) {
    assume(condition->a[0], with);
    assume(condition->a[1], with);
  } else if (condition->op == BB_X_EQ) {
    const bb_expr *x = condition->a[0], *value = condition->a[1];
    if (x->op == BB_X_CONST) x = condition->a[1], value = condition->a[0];
    if (x->op == BB_X_ARG && value->op == BB_X_CONST && x->dtype == value->dtype)
      with[x->index] = value;
  }
}

/* In a product that was derived, a condition of one part alone that its empty element fulfils asks
 * whether that part is empty. */
static bool asks_emptiness(checker *c, const bb_expr *condition, uint32_t side) {
  double arg[2 * BB_MONOID_COMPONENTS];
  if (!c->monoid->proved) return false;
  for (uint32_t k = 0; k < c->n; k++) {
    arg[k] = arg[c->n + k] = c->monoid->component[k].empty;
    if (bb_expr_uses_arg(condition, (1 - side) * c->n + k)) return false;
  }
  bb_expr_env env = {.arg = arg};
  return bb_expr_eval(condition, &env) != 0;
}

static void assume_case(checker *c, const known *k, const bb_expr **with) {
  for (uint32_t i = 0; i < k->count; i++) {
    if (!k->holds[i]) continue;
    for (uint32_t side = 0; side < 2; side++)
      for (uint32_t j = 0; asks_emptiness(c, k->condition[i], side) && j < c->n; j++)
        with[side * c->n + j] = empty_value(c, j);
    assume(k->condition[i], with);
  }
}

/* Do both orders agree where the conditions hold or not as told? */
static bool swaps_in_case(checker *c, const bb_expr *const *combine, const bb_expr *const *swapped,
                          const known *k) {
  const bb_expr *with[2 * BB_MONOID_COMPONENTS] = {NULL};
  assume_case(c, k, with);
  for (uint32_t j = 0; j < c->n; j++) {
    const bb_expr *a = form(c, combine[j], NULL, k), *b = form(c, swapped[j], NULL, k);
    if (form(c, a, with, NULL) != form(c, b, with, NULL)) return false;
  }
  return true;
}

static bool prove_commutative(checker *c) {
  enum { MOST = 8 };
  const bb_expr *swap[2 * BB_MONOID_COMPONENTS], *one[BB_MONOID_COMPONENTS],
      *other[BB_MONOID_COMPONENTS];
  known k = {0};
  for (uint32_t j = 0; j < c->n; j++) {
    swap[j] = part(c, j, 1);
    swap[c->n + j] = part(c, j, 0);
  }
  for (uint32_t j = 0; j < c->n; j++) {
    const bb_expr *combine = c->monoid->component[j].combine;
    one[j] = form(c, combine, NULL, NULL);
    other[j] = form(c, combine, swap, NULL);
    find_conditions(c, one[j], &k);
    find_conditions(c, other[j], &k);
  }
  if (k.count > MOST) return false;
  for (uint32_t bits = 0; bits < 1u << k.count; bits++) {
    for (uint32_t i = 0; i < k.count; i++) k.holds[i] = bits >> i & 1;
    if (!swaps_in_case(c, one, other, &k)) return false;
  }
  return true;
}

/* --- all laws --- */

static checker begin(bb_program *program, const bb_monoid *monoid, bb_arena *scratch) {
  return (checker){.program = program,
                   .monoid = monoid,
                   .n = monoid->components,
                   .scratch = scratch,
                   .random = monoid->components};
}

const char *bb_monoid_test(bb_program *program, const bb_monoid *monoid, bb_arena *scratch) {
  checker c = begin(program, monoid, scratch);
  return test_associative(&c);
}

const char *bb_monoid_check(bb_program *program, bb_monoid *monoid, bb_arena *scratch) {
  checker c = begin(program, monoid, scratch);
  const char *wrong = check_form(&c);
  if (!wrong) wrong = check_neutral(&c);
  if (wrong) return wrong;
  if (!monoid->proved && !(monoid->proved = is_plain(&c))) wrong = test_associative(&c);
  if (wrong) return wrong;
  monoid->commutative = can_prove(&c) && prove_commutative(&c);
  return NULL;
}
