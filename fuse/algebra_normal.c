/* algebra_normal.c - exact fractions, and sums of monomials with hash-consing. */
#include "algebra_normal.h"

#include "../graph/intern.h"

#include <stdlib.h>
#include <string.h>

enum { WORK_LIMIT = 200000, TERM_LIMIT = 1500 };

void bb_normal_give_up(bb_algebra *al, const char *why) {
  if (!al->gave_up) al->gave_up = why;
}

/* --- fractions --- */

static __int128 gcd128(__int128 a, __int128 b) {
  while (b) {
    __int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

bb_ratio bb_ratio_make(bb_algebra *al, __int128 num, __int128 den) {
  if (den < 0) num = -num, den = -den;
  if (den == 0) {
    bb_normal_give_up(al, "a division by the constant zero");
    return (bb_ratio){0, 1};
  }
  __int128 g = gcd128(num, den);
  num /= g;
  den /= g;
  if (num > INT64_MAX || num < -INT64_MAX || den > INT64_MAX) {
    bb_normal_give_up(al, "coefficients that do not fit 64 bits");
    return (bb_ratio){0, 1};
  }
  return (bb_ratio){(int64_t)num, (int64_t)den};
}

bb_ratio bb_ratio_add(bb_algebra *al, bb_ratio a, bb_ratio b) {
  if (a.den == 1 && b.den == 1) return bb_ratio_make(al, (__int128)a.num + b.num, 1);
  /* Each product is below 2^126. */
  return bb_ratio_make(al, (__int128)a.num * b.den + (__int128)b.num * a.den,
                       (__int128)a.den * b.den);
}

bb_ratio bb_ratio_multiply(bb_algebra *al, bb_ratio a, bb_ratio b) {
  return bb_ratio_make(al, (__int128)a.num * b.num, (__int128)a.den * b.den);
}

/* --- order and hashing --- */

static int compare_factors(const bb_term *a, const bb_term *b) {
  for (uint32_t i = 0; i < a->count && i < b->count; i++) {
    const bb_factor *f = &a->factor[i], *g = &b->factor[i];
    if (f->atom->id != g->atom->id) return f->atom->id < g->atom->id ? -1 : 1;
    __int128 left = (__int128)f->power.num * g->power.den;
    __int128 right = (__int128)g->power.num * f->power.den;
    if (left != right) return left > right ? -1 : 1;
  }
  return a->count == b->count ? 0 : a->count > b->count ? -1 : 1;
}

static int compare_terms(const void *a, const void *b) {
  return compare_factors(a, b);
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

static uint64_t normal_hash(const void *object) {
  const bb_normal *a = object;
  uint64_t hash = a->count;
  for (uint32_t i = 0; i < a->count; i++) {
    const bb_term *t = &a->term[i];
    hash = mix(mix(hash, (uint64_t)t->k.num), (uint64_t)t->k.den);
    for (uint32_t f = 0; f < t->count; f++) {
      hash = mix(hash, t->factor[f].atom->id);
      hash = mix(mix(hash, (uint64_t)t->factor[f].power.num), (uint64_t)t->factor[f].power.den);
    }
  }
  return hash;
}

static bool ratio_equal(bb_ratio a, bb_ratio b) {
  return a.num == b.num && a.den == b.den;
}

static bool normal_equal(const void *left, const void *right) {
  const bb_normal *a = left, *b = right;
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (!ratio_equal(a->term[i].k, b->term[i].k) || compare_factors(&a->term[i], &b->term[i]))
      return false;
  return true;
}

static uint64_t atom_hash(const void *object) {
  const bb_atom *a = object;
  uint64_t hash = mix(mix(mix(a->kind, a->op), a->dtype), 0);
  for (int i = 0; i < 3; i++) hash = mix(hash, a->a[i] ? a->a[i]->id + 1u : 0);
  return mix(hash, a->kind == BB_ATOM_LEAF ? a->expr->id : 0);
}

static bool atom_equal(const void *left, const void *right) {
  const bb_atom *a = left, *b = right;
  return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->a[0] == b->a[0] &&
         a->a[1] == b->a[1] && a->a[2] == b->a[2] &&
         (a->kind != BB_ATOM_LEAF || a->expr == b->expr);
}

const bb_atom *bb_normal_intern_atom(bb_algebra *al, bb_atom key) {
  const bb_atom *found = bb_intern_find(al->atoms, &key);
  if (found) return found;
  bb_atom *atom = BB_NEW(al->arena, bb_atom, 1);
  *atom = key;
  atom->id = al->atoms->count;
  bb_intern_add(al->atoms, atom);
  return atom;
}

/* --- making --- */

static bool is_infinite(const bb_term *t) {
  for (uint32_t i = 0; i < t->count; i++) {
    const bb_expr *e = t->factor[i].atom->kind == BB_ATOM_LEAF ? t->factor[i].atom->expr : NULL;
    if (e && e->op == BB_X_CONST && (e->number - e->number != 0)) return true;
  }
  return false;
}

/* Sorts, merges and interns a list of terms whose factors are settled; the list is overwritten. */
static const bb_normal *collect(bb_algebra *al, bb_term *term, uint32_t count) {
  al->work += count;
  if (al->work > WORK_LIMIT || count > TERM_LIMIT) bb_normal_give_up(al, "too many terms");
  if (al->gave_up) return al->zero;
  if (count > 1) qsort(term, count, sizeof *term, compare_terms);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count;) {
    bb_term sum = term[i++];
    while (i < count && !compare_factors(&sum, &term[i]))
      sum.k = bb_ratio_add(al, sum.k, term[i++].k);
    if (sum.k.num) term[kept++] = sum;
  }
  if (al->gave_up) return al->zero;
  bb_normal key = {.count = kept, .term = term};
  const bb_normal *found = bb_intern_find(al->normals, &key);
  if (found) return found;
  bb_normal *made = BB_NEW(al->arena, bb_normal, 1);
  *made = (bb_normal){.id = al->normals->count, .count = kept, .term = term};
  for (uint32_t i = 0; i < kept; i++) {
    made->infinite |= is_infinite(&term[i]);
    for (uint32_t f = 0; f < term[i].count; f++) made->deps |= term[i].factor[f].atom->deps;
  }
  bb_intern_add(al->normals, made);
  return made;
}

typedef struct list {
  uint32_t count, capacity;
  bb_term *term;
} list;

static void push(bb_algebra *al, list *l, bb_term term) {
  BB_GROW(al->arena, l->term, l->capacity, l->count + 1);
  l->term[l->count++] = term;
}

static void push_all(bb_algebra *al, list *l, const bb_normal *a) {
  for (uint32_t i = 0; i < a->count; i++) push(al, l, a->term[i]);
}

static bool whole_positive(bb_ratio p) {
  return p.num >= p.den;
}

static bb_ratio floor_of(bb_ratio p) {
  int64_t whole = p.num / p.den - (p.num % p.den < 0);
  return (bb_ratio){whole, 1};
}

/* The part of a factor's power that multiplies out: whole powers of sums, even powers of absolute
 * values, all but the first power of a predicate.  0: settled. */
static bb_ratio unsettled(bb_factor f) {
  bb_ratio none = {0, 1};
  if (f.atom->kind == BB_ATOM_SUM) return whole_positive(f.power) ? floor_of(f.power) : none;
  if (f.atom->predicate && f.power.num > 0 && !(f.power.num == 1 && f.power.den == 1))
    return (bb_ratio){f.power.num - f.power.den, f.power.den};
  if (f.atom->kind != BB_ATOM_ABS || f.power.den != 1) return none;
  int64_t odd = ((f.power.num % 2) + 2) % 2;
  return (bb_ratio){f.power.num - odd, 1};
}

/* A term whose powers may be unsettled, appended to a list. */
static void push_settled(bb_algebra *al, list *l, bb_term t) {
  for (uint32_t i = 0; i < t.count && !al->gave_up; i++) {
    bb_ratio out = unsettled(t.factor[i]);
    if (!out.num) continue;
    bb_factor *rest = BB_NEW(al->arena, bb_factor, t.count);
    memcpy(rest, t.factor, t.count * sizeof *rest);
    rest[i].power = bb_ratio_add(al, rest[i].power, (bb_ratio){-out.num, out.den});
    uint32_t count = t.count;
    if (!rest[i].power.num) {
      memmove(rest + i, rest + i + 1, (t.count - i - 1) * sizeof *rest);
      count--;
    }
    list kept = {0};
    push_settled(al, &kept, (bb_term){t.k, count, rest});
    const bb_normal *left = collect(al, kept.term, kept.count);
    if (t.factor[i].atom->predicate)
      push_all(al, l, left);
    else
      push_all(al, l,
               bb_normal_multiply(al, left, bb_normal_power(al, t.factor[i].atom->a[0], out)));
    return;
  }
  push(al, l, t);
}

static bb_term multiply_terms(bb_algebra *al, const bb_term *a, const bb_term *b) {
  bb_factor *factor = BB_NEW(al->arena, bb_factor, a->count + b->count);
  uint32_t count = 0, i = 0, k = 0;
  while (i < a->count || k < b->count) {
    if (k == b->count || (i < a->count && a->factor[i].atom->id < b->factor[k].atom->id)) {
      factor[count++] = a->factor[i++];
    } else if (i == a->count || b->factor[k].atom->id < a->factor[i].atom->id) {
      factor[count++] = b->factor[k++];
    } else {
      bb_ratio power = bb_ratio_add(al, a->factor[i].power, b->factor[k].power);
      if (power.num) factor[count++] = (bb_factor){a->factor[i].atom, power};
      i++, k++;
    }
  }
  return (bb_term){bb_ratio_multiply(al, a->k, b->k), count, factor};
}

const bb_normal *bb_normal_multiply(bb_algebra *al, const bb_normal *a, const bb_normal *b) {
  if (a == al->one) return b;
  if (b == al->one) return a;
  if ((uint64_t)a->count * b->count > TERM_LIMIT) bb_normal_give_up(al, "too many terms");
  list l = {0};
  for (uint32_t i = 0; i < a->count && !al->gave_up; i++)
    for (uint32_t k = 0; k < b->count && !al->gave_up; k++)
      push_settled(al, &l, multiply_terms(al, &a->term[i], &b->term[k]));
  return collect(al, l.term, l.count);
}

/* Powers add before they settle: (1+x)**-1 * (1+x) is 1, which the product of the expanded sum with
 * each term would not show. */
const bb_normal *bb_normal_multiply_power(bb_algebra *al, const bb_normal *a, const bb_atom *atom,
                                          bb_ratio power) {
  bb_factor factor = {atom, power};
  bb_term by = {{1, 1}, 1, &factor};
  list l = {0};
  for (uint32_t i = 0; i < a->count && !al->gave_up; i++)
    push_settled(al, &l, multiply_terms(al, &a->term[i], &by));
  return collect(al, l.term, l.count);
}

const bb_normal *bb_normal_add(bb_algebra *al, const bb_normal *a, const bb_normal *b) {
  if (!a->count) return b;
  if (!b->count) return a;
  list l = {0};
  push_all(al, &l, a);
  push_all(al, &l, b);
  return collect(al, l.term, l.count);
}

const bb_normal *bb_normal_scale(bb_algebra *al, const bb_normal *a, bb_ratio k) {
  return bb_normal_multiply(al, a, bb_normal_number(al, k));
}

const bb_normal *bb_normal_subtract(bb_algebra *al, const bb_normal *a, const bb_normal *b) {
  return a == b ? al->zero : bb_normal_add(al, a, bb_normal_scale(al, b, (bb_ratio){-1, 1}));
}

const bb_normal *bb_normal_number(bb_algebra *al, bb_ratio k) {
  list l = {0};
  if (k.num) push(al, &l, (bb_term){.k = k});
  return collect(al, l.term, l.count);
}

const bb_normal *bb_normal_integer(bb_algebra *al, int64_t k) {
  return bb_normal_number(al, (bb_ratio){k, 1});
}

const bb_normal *bb_normal_atom(bb_algebra *al, const bb_atom *atom, bb_ratio power) {
  if (!power.num) return al->one;
  bb_factor *factor = BB_NEW(al->arena, bb_factor, 1);
  *factor = (bb_factor){atom, power};
  list l = {0};
  push_settled(al, &l, (bb_term){{1, 1}, 1, factor});
  return collect(al, l.term, l.count);
}

const bb_normal *bb_normal_of_term(bb_algebra *al, const bb_term *term) {
  list l = {0};
  push(al, &l, *term);
  return collect(al, l.term, 1);
}

const bb_normal *bb_normal_without(bb_algebra *al, const bb_term *term, uint32_t factor) {
  bb_factor *rest = BB_NEW(al->arena, bb_factor, term->count);
  uint32_t count = 0;
  for (uint32_t i = 0; i < term->count; i++)
    if (i != factor) rest[count++] = term->factor[i];
  return bb_normal_of_term(al, &(bb_term){term->k, count, rest});
}

bool bb_normal_is_number(const bb_normal *a, bb_ratio *k) {
  *k = a->count ? a->term[0].k : (bb_ratio){0, 1};
  return a->count == 0 || (a->count == 1 && a->term[0].count == 0);
}

/* The power of an atom in a term, 0 if absent. */
static bb_ratio power_in(const bb_term *t, const bb_atom *atom) {
  for (uint32_t i = 0; i < t->count; i++)
    if (t->factor[i].atom == atom) return t->factor[i].power;
  return (bb_ratio){0, 1};
}

static bool less(bb_ratio a, bb_ratio b) {
  return (__int128)a.num * b.den < (__int128)b.num * a.den;
}

/* Atoms of every term count with their least power, atoms of some terms only if that is negative:
 * x + 1/x is 1/x * (x**2 + 1). */
const bb_normal *bb_normal_content(bb_algebra *al, const bb_normal *a) {
  const bb_normal *content = al->one;
  if (!a->count) return content;
  for (uint32_t i = 0; i < a->count; i++) {
    for (uint32_t f = 0; f < a->term[i].count; f++) {
      const bb_atom *atom = a->term[i].factor[f].atom;
      bb_ratio least = a->term[i].factor[f].power;
      bool seen = false;
      for (uint32_t k = 0; k < a->count; k++) {
        bb_ratio p = power_in(&a->term[k], atom);
        seen |= k < i && p.num;
        if (less(p, least)) least = p;
      }
      if (!seen && least.num && !atom->predicate)
        content = bb_normal_multiply(al, content, bb_normal_atom(al, atom, least));
    }
  }
  bb_ratio k = a->term[0].k;
  return bb_normal_scale(al, content, (bb_ratio){k.num < 0 ? -k.num : k.num, k.den});
}

/* --- the workspace --- */

typedef struct memo {
  const bb_expr *expr;
  const bb_normal *value;
} memo;

static uint64_t memo_hash(const void *object) {
  return mix(0, ((const memo *)object)->expr->id);
}
static bool memo_equal(const void *a, const void *b) {
  return ((const memo *)a)->expr == ((const memo *)b)->expr;
}

bb_algebra *bb_algebra_begin(bb_program *program, bb_arena *arena, bool strict) {
  bb_algebra *al = BB_NEW(arena, bb_algebra, 1);
  *al = (bb_algebra){.program = program, .arena = arena, .strict = strict};
  al->normals = bb_intern_create(arena, normal_hash, normal_equal);
  al->atoms = bb_intern_create(arena, atom_hash, atom_equal);
  al->memo = bb_intern_create(arena, memo_hash, memo_equal);
  bb_normal *zero = BB_NEW(arena, bb_normal, 1);
  bb_intern_add(al->normals, zero);
  al->zero = zero;
  al->one = bb_normal_integer(al, 1);
  return al;
}

void bb_algebra_arg(bb_algebra *al, uint32_t index, uint32_t deps, bb_range range) {
  uint32_t capacity = al->arg_capacity;
  BB_GROW(al->arena, al->deps, capacity, index + 1);
  BB_GROW(al->arena, al->range, al->arg_capacity, index + 1);
  for (; al->args <= index; al->args++) {
    al->deps[al->args] = BB_DEP_FIXED;
    al->range[al->args] = BB_RANGE_ANY;
  }
  al->deps[index] = (uint8_t)deps;
  al->range[index] = range;
}
