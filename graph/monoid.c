/* monoid.c - basic monoids, tuples interned in their program, and folding of one element. */
#include "intern.h"
#include "program.h"
#include "tables.h"
#include "text_name.h"

#include <math.h>
#include <string.h>

static const bb_monoid monoids[] = {
#define BB_MONOID(id, name, components, symbol, commutative, row)                                  \
  [BB_MONOID_##id] = {BB_MONOID_##id, name, name, components, symbol, commutative, true, NULL},
#include "monoid.def"
#undef BB_MONOID
};

const bb_monoid *bb_monoid_get(bb_monoid_id id) {
  return &monoids[id];
}

const bb_monoid *bb_monoid_find(const char *name, size_t length) {
  for (uint32_t i = 0; i < BB_MONOID_COUNT; i++)
    if (strlen(monoids[i].name) == length && memcmp(monoids[i].name, name, length) == 0)
      return &monoids[i];
  return NULL;
}

static const bb_op row_ops[] = {
#define BB_MONOID(id, name, components, symbol, commutative, row) [BB_MONOID_##id] = BB_OP_##row,
#include "monoid.def"
#undef BB_MONOID
};

bb_op bb_monoid_row_op(bb_monoid_id id) {
  return id < BB_MONOID_COUNT ? row_ops[id] : BB_OP_COUNT;
}

bb_monoid_id bb_monoid_of_row_op(bb_op op) {
  uint32_t id = 0;
  while (id < BB_MONOID_COUNT && row_ops[id] != op) id++;
  return (bb_monoid_id)id;
}

/* --- interning --- */

uint64_t bb_monoid_hash(const void *object) {
  const bb_monoid *m = object;
  uint64_t hash = m->components;
  for (uint32_t k = 0; k < m->components; k++) {
    const bb_monoid_component *c = &m->component[k];
    uint64_t key[8] = {hash,
                       c->dtype,
                       c->fold,
                       bb_bits_of(c->empty),
                       c->combine->id,
                       c->repair ? c->repair->id + 1u : 0,
                       bb_bits_of(c->low),
                       bb_bits_of(c->high)};
    hash = bb_hash_bytes(key, sizeof key, 0);
  }
  return hash;
}

bool bb_monoid_equal(const void *left, const void *right) {
  const bb_monoid *a = left, *b = right;
  if (a->components != b->components) return false;
  for (uint32_t k = 0; k < a->components; k++) {
    const bb_monoid_component *x = &a->component[k], *y = &b->component[k];
    if (x->dtype != y->dtype || x->fold != y->fold ||
        bb_bits_of(x->empty) != bb_bits_of(y->empty) || x->combine != y->combine ||
        x->repair != y->repair || bb_bits_of(x->low) != bb_bits_of(y->low) ||
        bb_bits_of(x->high) != bb_bits_of(y->high))
      return false;
  }
  return true;
}

uint32_t bb_monoid_count(const bb_program *program) {
  return program->monoids;
}

const bb_monoid *bb_monoid_at(const bb_program *program, uint32_t index) {
  return program->monoid[index];
}

const bb_monoid *bb_monoid_named(const bb_program *program, const char *name, size_t length) {
  for (uint32_t i = 0; i < program->monoids; i++) {
    const char *own = program->monoid[i]->name;
    if (strlen(own) == length && memcmp(own, name, length) == 0) return program->monoid[i];
  }
  return NULL;
}

/* --- names --- */

enum { NAME_LENGTH = 64 };

/* Letters, digits and _, no word of the text form: so that a name prints as it is. */
static const char *clean_name(bb_arena *arena, const char *wish, const char *without) {
  if (!wish || !*wish) wish = without;
  size_t length = strlen(wish);
  char *name = bb_arena_text(arena, wish, length < NAME_LENGTH ? length : NAME_LENGTH);
  for (char *at = name; *at; at++)
    if (*at == '.' || !bb_is_name_char(*at)) *at = '_';
  return bb_name_is_plain(name) ? name : bb_arena_printf(arena, "%s_%s", without, name);
}

static bool is_taken(const bb_program *program, const char *name) {
  size_t length = strlen(name);
  return bb_monoid_find(name, length) || bb_monoid_named(program, name, length);
}

void bb_monoid_name(bb_program *program, bb_monoid *tuple) {
  tuple->name = tuple->wish;
  for (uint32_t n = 2; is_taken(program, tuple->name); n++)
    tuple->name = bb_arena_printf(program->arena, "%s_%u", tuple->wish, n);
  tuple->symbol = bb_arena_printf(program->arena, "%s=", tuple->name);
}

/* The names of components, made different where they are not. */
static void name_components(bb_program *program, uint32_t count, bb_monoid_component *component) {
  for (uint32_t k = 0; k < count; k++) {
    const char *clean = clean_name(program->arena, component[k].name, "c"), *name = clean;
    for (uint32_t j = 0, n = 2; j < k; j++) {
      if (strcmp(component[j].name, name) != 0) continue;
      name = bb_arena_printf(program->arena, "%s_%u", clean, n++);
      j = UINT32_MAX; /* look at all of them again */
    }
    component[k].name = name;
  }
}

/* --- making --- */

static const bb_monoid *add_tuple(bb_program *program, const char *name, bb_monoid made,
                                  const bb_monoid_component *component) {
  bb_arena *arena = program->arena;
  bb_monoid_component *copy = BB_NEW(arena, bb_monoid_component, made.components);
  memcpy(copy, component, made.components * sizeof *copy);
  name_components(program, made.components, copy);
  bb_monoid *monoid = BB_NEW(arena, bb_monoid, 1);
  *monoid = made;
  monoid->component = copy;
  monoid->wish = clean_name(arena, name, "tuple");
  bb_monoid_name(program, monoid);
  bb_intern_add(program->monoid_set, monoid);
  BB_GROW(arena, program->monoid, program->monoid_capacity, (size_t)program->monoids + 1);
  program->monoid[program->monoids++] = monoid;
  if (!monoid->proved)
    bb_log(program->ctx, BB_LOG_WARNING,
           "monoid %s: that its combine is associative was tested on random values, not proved",
           monoid->name);
  return monoid;
}

/* Found, or made if all laws hold; else NULL and the law that is broken. */
static const bb_monoid *find_or_add(bb_program *program, const char *name, bb_monoid key,
                                    bb_arena *scratch, const char **broken) {
  bool sound = key.components > 0 && key.components <= BB_MONOID_COMPONENTS;
  for (uint32_t k = 0; sound && k < key.components; k++) sound = key.component[k].combine != NULL;
  const bb_monoid *found = sound ? bb_intern_find(program->monoid_set, &key) : NULL;
  if (found) return found;
  *broken = bb_monoid_check(program, &key, scratch);
  return *broken ? NULL : add_tuple(program, name, key, key.component);
}

/* Has every component that component k reads its empty value in one part?  Others may have more axes
 * than k has. */
static const bb_expr *is_empty(bb_program *program, const bb_monoid *m, uint32_t k, uint32_t side) {
  const bb_expr *all = NULL;
  for (uint32_t j = 0; j < m->components; j++) {
    if (!bb_monoid_reads(m, k, j)) continue;
    const bb_monoid_component *c = &m->component[j];
    const bb_expr *own = bb_expr_arg(program, c->dtype, side * m->components + j);
    const bb_expr *one =
        isnan(c->empty)
            ? bb_expr_make(program, BB_X_ISNAN, own, NULL, NULL)
            : bb_expr_make(program, BB_X_EQ, own, bb_expr_const(program, c->dtype, c->empty), NULL);
    all = all ? bb_expr_make(program, BB_X_AND, all, one, NULL) : one;
  }
  return all;
}

/* left.k + right.k and such need no guard. */
static bool is_plain(const bb_expr *combine) {
  bb_expr_op op = combine->op;
  bool either_way = op == BB_X_ADD || op == BB_X_MUL || op == BB_X_MAX || op == BB_X_MIN ||
                    op == BB_X_AND || op == BB_X_OR;
  return either_way && combine->a[0]->op == BB_X_ARG && combine->a[1]->op == BB_X_ARG;
}

/* The same function with the empty element by selection: no arithmetic sees its infinities. */
static void guard(bb_program *program, const bb_monoid *m, bb_monoid_component *guarded) {
  for (uint32_t k = 0; k < m->components; k++) {
    const bb_monoid_component *c = &m->component[k];
    guarded[k] = *c;
    if (is_plain(c->combine)) continue;
    const bb_expr *a = bb_expr_arg(program, c->dtype, k);
    const bb_expr *b = bb_expr_arg(program, c->dtype, m->components + k);
    const bb_expr *right = is_empty(program, m, k, 1), *left = is_empty(program, m, k, 0);
    const bb_expr *either = bb_expr_make(program, BB_X_SELECT, right, a, c->combine);
    guarded[k].combine = bb_expr_make(program, BB_X_SELECT, left, b, either);
  }
}

/* The components, "any value" said in one way: bounds that are equal, 0 and -0 among them, say it. */
static const bb_monoid_component *plain_bounds(bb_arena *scratch, uint32_t count,
                                               const bb_monoid_component *component) {
  bb_monoid_component *plain = BB_NEW(scratch, bb_monoid_component, count);
  for (uint32_t k = 0; k < count; k++) {
    plain[k] = component[k];
    if (plain[k].low == plain[k].high) plain[k].low = plain[k].high = 0;
  }
  return plain;
}

const bb_monoid *bb_monoid_try(bb_program *program, const char *name, uint32_t count,
                               const bb_monoid_component *component, bool proved,
                               const char **broken) {
  bb_arena *scratch = bb_scratch(program->ctx);
  component = plain_bounds(scratch, count, component);
  bb_monoid key = {.id = BB_MONOID_TUPLE,
                   .name = name ? name : "tuple",
                   .components = count,
                   .proved = proved,
                   .component = component};
  *broken = NULL;
  const bb_monoid *found = find_or_add(program, name, key, scratch, broken);
  bool guardable = !found && count > 0 && count <= BB_MONOID_COMPONENTS;
  for (uint32_t k = 0; guardable && k < count; k++)
    guardable = component[k].combine && component[k].combine->dtype == component[k].dtype;
  if (guardable) {
    bb_monoid_component guarded[BB_MONOID_COMPONENTS];
    guard(program, &key, guarded);
    key.component = guarded;
    found = find_or_add(program, name, key, scratch, broken);
  }
  if (!found) *broken = bb_arena_printf(program->arena, "%s", *broken);
  bb_scratch_end(scratch);
  return found;
}

const bb_monoid *bb_monoid_make(bb_program *program, const char *name, uint32_t count,
                                const bb_monoid_component *component, bool proved) {
  const char *broken;
  const bb_monoid *made = bb_monoid_try(program, name, count, component, proved, &broken);
  if (!made) bb_fail(program->ctx, BB_ERROR_INPUT, "monoid %s: %s", name ? name : "tuple", broken);
  return made;
}

void bb_monoid_keep_proof(bb_program *program, const bb_monoid *monoid, const char *proof) {
  for (uint32_t i = 0; i < program->monoids; i++)
    if (program->monoid[i] == monoid && !monoid->proof)
      program->monoid[i]->proof = bb_arena_printf(program->arena, "%s", proof);
}

/* Of another program. */
static const bb_expr *same_leaf(void *user, const bb_expr *leaf) {
  bb_program *program = user;
  if (leaf->op == BB_X_ARG) return bb_expr_arg(program, leaf->dtype, leaf->index);
  return bb_expr_const(program, leaf->dtype, leaf->number);
}

const bb_monoid *bb_monoid_copy(bb_program *program, const bb_monoid *monoid) {
  if (!monoid || !monoid->component) return monoid;
  for (uint32_t i = 0; i < program->monoids; i++)
    if (program->monoid[i] == monoid) return monoid;
  bb_monoid_component component[BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < monoid->components; k++) {
    component[k] = monoid->component[k];
    component[k].combine = bb_expr_map_leaves(program, component[k].combine, same_leaf, program);
    if (component[k].repair)
      component[k].repair = bb_expr_map_leaves(program, component[k].repair, same_leaf, program);
  }
  const bb_monoid *made =
      bb_monoid_make(program, monoid->name, monoid->components, component, monoid->proved);
  if (monoid->proof) bb_monoid_keep_proof(program, made, monoid->proof);
  return made;
}

/* --- one element --- */

void bb_monoid_empty(const bb_monoid *monoid, double *acc) {
  switch (monoid->id) {
  case BB_MONOID_SUM: acc[0] = 0; break;
  case BB_MONOID_PROD: acc[0] = 1; break;
  case BB_MONOID_MAX: acc[0] = -INFINITY; break;
  case BB_MONOID_MIN: acc[0] = INFINITY; break;
  case BB_MONOID_FIRST: acc[0] = NAN; break;
  case BB_MONOID_ARGMAX:
  case BB_MONOID_ARGMAX_LAST: acc[0] = -INFINITY, acc[1] = -1; break;
  case BB_MONOID_ARGMIN:
  case BB_MONOID_ARGMIN_LAST: acc[0] = INFINITY, acc[1] = -1; break;
  case BB_MONOID_TUPLE:
    for (uint32_t k = 0; k < monoid->components; k++) acc[k] = monoid->component[k].empty;
    break;
  }
}

/* Does (b) take the place of (a)?  The empty element has index -1 and always gives way; a NaN beats
 * every number; among equals the first or the last index stays, whatever the order of folding. */
static bool replaces(bool largest, bool last, const double *a, const double *b) {
  if (b[1] < 0) return false;
  if (a[1] < 0) return true;
  bool nan_a = isnan(a[0]), nan_b = isnan(b[0]);
  if (nan_a != nan_b) return nan_b;
  if (nan_a || a[0] == b[0]) return last ? b[1] > a[1] : b[1] < a[1];
  return largest ? b[0] > a[0] : b[0] < a[0];
}

static bool keeps_largest(bb_monoid_id id) {
  return id == BB_MONOID_ARGMAX || id == BB_MONOID_ARGMAX_LAST;
}
static bool keeps_last(bb_monoid_id id) {
  return id == BB_MONOID_ARGMAX_LAST || id == BB_MONOID_ARGMIN_LAST;
}

static void combine_tuple(const bb_monoid *monoid, double *acc, const double *term) {
  double arg[2 * BB_MONOID_COMPONENTS];
  uint32_t n = monoid->components;
  memcpy(arg, acc, n * sizeof *arg);
  memcpy(arg + n, term, n * sizeof *arg);
  bb_expr_env env = {.arg = arg};
  for (uint32_t k = 0; k < n; k++) acc[k] = bb_expr_eval(monoid->component[k].combine, &env);
}

void bb_monoid_combine(const bb_monoid *monoid, double *acc, const double *term) {
  switch (monoid->id) {
  case BB_MONOID_SUM: acc[0] += term[0]; return;
  case BB_MONOID_PROD: acc[0] *= term[0]; return;
  case BB_MONOID_MAX: acc[0] = isnan(acc[0]) || acc[0] > term[0] ? acc[0] : term[0]; return;
  case BB_MONOID_MIN: acc[0] = isnan(acc[0]) || acc[0] < term[0] ? acc[0] : term[0]; return;
  case BB_MONOID_FIRST: acc[0] = isnan(acc[0]) ? term[0] : acc[0]; return;
  case BB_MONOID_TUPLE: combine_tuple(monoid, acc, term); return;
  default: break;
  }
  if (replaces(keeps_largest(monoid->id), keeps_last(monoid->id), acc, term))
    acc[0] = term[0], acc[1] = term[1];
}

/* --- as expressions --- */

/* replaces() as an expression of (value, index) at ARGs 0, 1 and 2, 3. */
static const bb_expr *replaces_expr(bb_program *p, bb_monoid_id id, const bb_dtype *dtype) {
  const bb_expr *a = bb_expr_arg(p, dtype[0], 0), *b = bb_expr_arg(p, dtype[0], 2);
  const bb_expr *at_a = bb_expr_arg(p, dtype[1], 1), *at_b = bb_expr_arg(p, dtype[1], 3);
  const bb_expr *zero = bb_expr_const(p, dtype[1], 0);
  const bb_expr *nan_a = bb_expr_make(p, BB_X_ISNAN, a, NULL, NULL);
  const bb_expr *nan_b = bb_expr_make(p, BB_X_ISNAN, b, NULL, NULL);
  const bb_expr *earlier = keeps_last(id) ? bb_expr_make(p, BB_X_LT, at_a, at_b, NULL)
                                          : bb_expr_make(p, BB_X_LT, at_b, at_a, NULL);
  const bb_expr *better = keeps_largest(id) ? bb_expr_make(p, BB_X_LT, a, b, NULL)
                                            : bb_expr_make(p, BB_X_LT, b, a, NULL);
  const bb_expr *tied = bb_expr_make(p, BB_X_OR, nan_a, bb_expr_make(p, BB_X_EQ, a, b, NULL), NULL);
  const bb_expr *among = bb_expr_make(p, BB_X_SELECT, tied, earlier, better);
  const bb_expr *differ = bb_expr_make(p, BB_X_XOR, nan_a, nan_b, NULL);
  const bb_expr *full = bb_expr_make(p, BB_X_SELECT, differ, nan_b, among);
  const bb_expr *left_empty = bb_expr_make(p, BB_X_LT, at_a, zero, NULL);
  const bb_expr *right_full = bb_expr_make(p, BB_X_LE, zero, at_b, NULL);
  return bb_expr_make(p, BB_X_AND, right_full, bb_expr_make(p, BB_X_OR, left_empty, full, NULL),
                      NULL);
}

const bb_expr *bb_monoid_expr(bb_program *program, const bb_monoid *monoid, uint32_t k,
                              const bb_dtype *dtype) {
  if (monoid->component) return monoid->component[k].combine;
  const bb_expr *a = bb_expr_arg(program, dtype[k], k);
  const bb_expr *b = bb_expr_arg(program, dtype[k], monoid->components + k);
  switch (monoid->id) {
  case BB_MONOID_SUM: return bb_expr_make(program, BB_X_ADD, a, b, NULL);
  case BB_MONOID_PROD: return bb_expr_make(program, BB_X_MUL, a, b, NULL);
  case BB_MONOID_MAX: return bb_expr_make(program, BB_X_MAX, a, b, NULL);
  case BB_MONOID_MIN: return bb_expr_make(program, BB_X_MIN, a, b, NULL);
  case BB_MONOID_FIRST:
    return bb_expr_make(program, BB_X_SELECT, bb_expr_make(program, BB_X_ISNAN, a, NULL, NULL), b,
                        a);
  default:
    return bb_expr_make(program, BB_X_SELECT, replaces_expr(program, monoid->id, dtype), b, a);
  }
}

bool bb_monoid_reads(const bb_monoid *monoid, uint32_t k, uint32_t j) {
  if (k == j || !monoid->component) return true;
  const bb_expr *combine = monoid->component[k].combine;
  return bb_expr_uses_arg(combine, j) || bb_expr_uses_arg(combine, monoid->components + j);
}
