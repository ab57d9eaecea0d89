/* scalar.c - interning terms, their ranges, and substitution of index variables. */
#include "scalar.h"

#include <string.h>

struct bb_scalar_memo {
  uint32_t walk;
  const bb_scalar *result;
};

/* --- the set --- */

static uint64_t term_hash(const void *object) {
  const bb_scalar *t = object;
  uint64_t bits, key[12] = {t->kind, t->op, t->dtype, t->fold};
  memcpy(&bits, &t->number, sizeof bits);
  key[4] = bits;
  key[5] = (uintptr_t)t->source;
  key[6] = (uint64_t)t->serial << 32 | t->var;
  key[7] = (uint64_t)t->block << 32 | t->count;
  for (uint32_t i = 0; i < 3; i++) key[8 + i] = t->a[i] ? t->a[i]->id + 1u : 0;
  key[11] = t->count ? bb_hash_bytes(t->index, t->count, 0) : 0;
  return bb_hash_bytes(key, sizeof key, 0);
}

static bool term_equal(const void *left, const void *right) {
  const bb_scalar *a = left, *b = right;
  return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->fold == b->fold &&
         memcmp(&a->number, &b->number, sizeof a->number) == 0 && a->source == b->source &&
         a->serial == b->serial && a->var == b->var && a->block == b->block &&
         a->count == b->count && a->a[0] == b->a[0] && a->a[1] == b->a[1] && a->a[2] == b->a[2] &&
         (!a->count || memcmp(a->index, b->index, a->count) == 0);
}

bb_scalars *bb_scalars_create(bb_program *program, bb_arena *arena) {
  bb_scalars *t = BB_NEW(arena, bb_scalars, 1);
  *t = (bb_scalars){.program = program, .arena = arena};
  for (uint32_t i = 0; i < program->tensors; i++) t->halves |= program->tensor[i].dtype == BB_F16;
  t->set = bb_intern_create(arena, term_hash, term_equal);
  return t;
}

/* --- ranges --- */

/* One operator on ranges: a stand-in expression says which operands are the same. */
static bb_range apply_range(const bb_scalar *term) {
  static const bb_expr stand_in[3];
  const bb_range_env env = {.real = true};
  bb_expr expr = {.op = term->op, .dtype = term->dtype};
  bb_range a[3] = {{0}};
  for (uint32_t i = 0; i < 3 && term->a[i]; i++) {
    expr.a[i] = i && term->a[i] == term->a[0] ? expr.a[0] : &stand_in[i];
    a[i] = term->a[i]->range;
  }
  return bb_range_apply(&env, &expr, a[0], a[1], a[2]);
}

/* Of a running fold without the element itself: that of none is what is empty. */
static bb_range range_before(const bb_scalar *term) {
  bb_range range = bb_range_fold(term->fold, term->a[0]->range);
  double empty;
  bb_monoid_empty(bb_monoid_get(term->fold), &empty);
  range.lo = fmin(range.lo, empty);
  range.hi = fmax(range.hi, empty);
  range.nonzero &= empty != 0;
  return range;
}

static bool is_running(const bb_scalar *term) {
  return term->kind == BB_SCALAR_SCAN || term->kind == BB_SCALAR_BEFORE;
}

static bb_range range_of(const bb_scalar *term) {
  switch (term->kind) {
  case BB_SCALAR_APPLY: return apply_range(term);
  case BB_SCALAR_FOLD:
  case BB_SCALAR_PART:
  case BB_SCALAR_SCAN: return bb_range_fold(term->fold, term->a[0]->range);
  case BB_SCALAR_BEFORE: return range_before(term);
  default: return term->range;
  }
}

/* --- making --- */

bool bb_is_exp(bb_expr_op op, bb_dtype dtype, bool base_is_constant, double base) {
  if (!bb_dtype_is_float(dtype)) return false; /* a power of integers saturates */
  return op == BB_X_EXP || (op == BB_X_POW && base_is_constant && base > 0 && base != 1);
}

bb_exp *bb_exp_of(bb_scalars *t, uint32_t exp) {
  uint32_t i = exp - 1;
  while (t->exp[i].same != i) i = t->exp[i].same;
  return &t->exp[i];
}

uint32_t bb_exp_add(bb_scalars *t) {
  BB_GROW(t->arena, t->exp, t->exp_capacity, (size_t)t->exps + 1);
  t->exp[t->exps] = (bb_exp){.same = t->exps, .tied = t->exps};
  return ++t->exps;
}

static bb_exp *knot(bb_scalars *t, const bb_exp *exp) {
  uint32_t i = (uint32_t)(exp - t->exp);
  while (t->exp[i].tied != i) i = t->exp[i].tied = t->exp[t->exp[i].tied].tied;
  return &t->exp[i];
}

void bb_exp_condemn(bb_scalars *t, bb_exp *exp, const char *reason) {
  if (!exp->unsafe) exp->unsafe = reason;
  knot(t, exp)->condemned = true;
}

void bb_exp_tie(bb_scalars *t, bb_exp *a, bb_exp *b) {
  bb_exp *x = knot(t, a), *y = knot(t, b);
  if (x == y) return;
  x->condemned |= y->condemned;
  y->tied = (uint32_t)(x - t->exp);
}

void bb_exp_settle(bb_scalars *t, bb_exp *exp) {
  if (!exp->unsafe && knot(t, exp)->condemned) exp->unsafe = "its value meets that of a pair";
}

/* Two records of one exp become one. */
static void unite(bb_scalars *t, uint32_t a, uint32_t b) {
  bb_exp *x = bb_exp_of(t, a), *y = bb_exp_of(t, b);
  if (x == y) return;
  if (!x->unsafe) x->unsafe = y->unsafe;
  if (!x->bound) x->bound = y->bound;
  x->mended &= y->mended;
  bb_exp_tie(t, x, y);
  y->same = (uint32_t)(x - t->exp);
}

/* `exp`: the record that the term shares, if it is an exp or a value mended; 0: none yet. */
static const bb_scalar *make(bb_scalars *t, bb_scalar key, uint32_t exp) {
  const bb_scalar *found = bb_intern_find(t->set, &key);
  if (found) {
    if (exp && found->exp) unite(t, found->exp, exp);
    return found;
  }
  key.exp = exp;
  for (uint32_t i = 0; i < 3 && key.a[i]; i++) {
    key.free |= key.a[i]->free;
    if (key.a[i]->bound > key.bound) key.bound = key.a[i]->bound;
  }
  if (key.kind == BB_SCALAR_INDEX || is_running(&key)) key.free |= 1ull << key.var;
  if (key.kind == BB_SCALAR_FOLD || key.kind == BB_SCALAR_PART) {
    key.free &= ~(1ull << key.var);
    key.bound++;
  }
  if (key.kind == BB_SCALAR_PART) key.free |= 1ull << key.block;
  for (uint32_t i = 0; i < key.count; i++) key.free |= 1ull << key.index[i];
  key.range = range_of(&key);
  key.id = t->count++;
  bool base = key.op == BB_X_POW && key.a[0] && key.a[0]->kind == BB_SCALAR_NUMBER;
  if (key.kind == BB_SCALAR_APPLY &&
      bb_is_exp(key.op, key.dtype, base, base ? key.a[0]->number : 0))
    key.exp = exp ? exp : bb_exp_add(t);
  bb_scalar *made = BB_NEW(t->arena, bb_scalar, 1);
  *made = key;
  bb_intern_add(t->set, made); /* first: a sum of squares is asked for its own norm */
  bb_scalar_find_faults(t, made);
  return made;
}

const bb_scalar *bb_scalar_number(bb_scalars *t, bb_dtype dtype, double number) {
  bb_range range = {.lo = number, .hi = number, .nonzero = number != 0};
  if (isnan(number)) range = BB_RANGE_ANY;
  return make(
      t, (bb_scalar){.kind = BB_SCALAR_NUMBER, .dtype = dtype, .number = number, .range = range},
      0);
}

const bb_scalar *bb_scalar_index(bb_scalars *t, uint32_t var, double last) {
  bb_range range = {.lo = 0, .hi = last};
  return make(
      t,
      (bb_scalar){
          .kind = BB_SCALAR_INDEX, .dtype = BB_I64, .var = var, .number = last, .range = range},
      0);
}

const bb_scalar *bb_scalar_leaf(bb_scalars *t, const bb_scalar *leaf) {
  bb_scalar key = *leaf;
  uint8_t *index = BB_NEW(t->arena, uint8_t, (size_t)key.count + 1);
  if (key.count) memcpy(index, leaf->index, key.count);
  key.kind = BB_SCALAR_LEAF;
  if (key.fault & BB_FAULT_SMALL) key.small = BB_VAR_NEVER;
  key.index = index;
  return make(t, key, 0);
}

const bb_scalar *bb_scalar_apply(bb_scalars *t, bb_expr_op op, bb_dtype dtype, const bb_scalar *a,
                                 const bb_scalar *b, const bb_scalar *c) {
  bool commutes = op == BB_X_ADD || op == BB_X_MUL || op == BB_X_MAX || op == BB_X_MIN;
  if (commutes && a->id > b->id) {
    const bb_scalar *other = a;
    a = b;
    b = other;
  }
  return make(t, (bb_scalar){.kind = BB_SCALAR_APPLY, .op = op, .dtype = dtype, .a = {a, b, c}}, 0);
}

/* --- what was found of terms --- */

uint32_t bb_scalar_walk_begin(bb_scalars *t, const bb_scalar *top) {
  BB_GROW(t->arena, t->memo, t->memo_capacity, (size_t)top->id + 1);
  return ++t->walks;
}

void bb_scalar_remember(bb_scalars *t, uint32_t walk, const bb_scalar *term,
                        const bb_scalar *result) {
  t->memo[term->id] = (struct bb_scalar_memo){walk, result};
}

const bb_scalar *bb_scalar_recall(const bb_scalars *t, uint32_t walk, const bb_scalar *term) {
  const struct bb_scalar_memo *memo = &t->memo[term->id];
  return memo->walk == walk ? memo->result : NULL;
}

/* --- substitution --- */

static const bb_scalar *substitute(bb_scalars *t, uint32_t walk, const bb_scalar *term,
                                   uint32_t from, uint32_t to) {
  if (!(term->free >> from & 1)) return term;
  const bb_scalar *known = bb_scalar_recall(t, walk, term);
  if (known) return known;
  bb_scalar key = *term;
  key.free = 0;
  key.bound = 0;
  key.small = key.kind == BB_SCALAR_LEAF ? key.small : 0;
  key.exp = 0;
  for (uint32_t i = 0; i < 3 && term->a[i]; i++)
    key.a[i] = substitute(t, walk, term->a[i], from, to);
  if ((key.kind == BB_SCALAR_INDEX || is_running(&key)) && key.var == from) key.var = to;
  if (key.kind == BB_SCALAR_PART && key.block == from) key.block = to;
  if (key.count) {
    uint8_t *index = BB_NEW(t->arena, uint8_t, key.count);
    for (uint32_t i = 0; i < key.count; i++)
      index[i] = (uint8_t)(term->index[i] == from ? to : term->index[i]);
    key.index = index;
  }
  const bb_scalar *result = make(t, key, term->exp);
  bb_scalar_remember(t, walk, term, result);
  return result;
}

const bb_scalar *bb_scalar_substitute(bb_scalars *t, const bb_scalar *term, uint32_t from,
                                      uint32_t to) {
  if (from == to || !(term->free >> from & 1)) return term;
  return substitute(t, bb_scalar_walk_begin(t, term), term, from, to);
}

/* --- folds --- */

const bb_scalar *bb_scalar_fold(bb_scalars *t, bb_scalar_kind kind, bb_monoid_id fold, uint32_t var,
                                const bb_scalar *body) {
  bb_scalar key = {.kind = kind, .dtype = body->dtype, .fold = fold, .var = var, .a = {body}};
  if (is_running(&key)) return make(t, key, 0);
  if (kind == BB_SCALAR_FOLD && body->kind == BB_SCALAR_PART && body->fold == fold &&
      body->block == var && !(body->a[0]->free >> var & 1)) {
    key.a[0] = body->a[0];
    key.var = body->var;
    return make(t, key, 0);
  }
  uint32_t bound = BB_VAR_BOUND + body->bound;
  if (bound >= BB_VARS) { /* folds nested too deep to tell apart */
    bb_scalar leaf = {.dtype = body->dtype, .source = t, .serial = body->id, .range = BB_RANGE_ANY};
    leaf.fault = body->fault;
    leaf.risks = body->risks;
    leaf.risk = body->risk;
    return bb_scalar_leaf(t, &leaf);
  }
  key.a[0] = bb_scalar_substitute(t, body, var, bound);
  key.var = bound;
  key.block = kind == BB_SCALAR_PART ? var : 0;
  return make(t, key, 0);
}
