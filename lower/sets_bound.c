/* sets_bound.c - the bounds of an interval of iterations, as the least of greatest values that parameters give.
 *
 * isl has an interval in parts, each the iterations above some values and below others.  Mostly its iterations are
 * those above the least of the parts' lower bounds and below the greatest of their upper ones, which is checked.  Where it is
 * not - an interval that is empty for some parameters, or jumps - the values are chosen by conditions.
 */
#include "sets_parts.h"

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/map.h>
#include <isl/val.h>

enum { CASES = 4, PARTS = 8 };

/* Beyond every iteration of a domain whose parameters are below BB_SETS_MOST. */
static const int64_t far = (int64_t)BB_SETS_MOST << 8;

/* --- an interval's sides --- */

/* The bounds on one side of one part. */
typedef struct side {
  bb_sets *s;
  bool upper, guards, failed;
  isl_basic_set *set; /* what fulfils them */
  uint32_t node;      /* their greatest, or least */
} side;

/* What the constraint says of one side, if it says something: aff >= 0. */
static isl_aff *as_bound(side *d, isl_constraint *c) {
  bool equal = bb_sets_is(d->s, isl_constraint_is_equality(c));
  isl_aff *aff = isl_constraint_get_aff(c);
  isl_val *by = isl_aff_get_coefficient_val(aff, isl_dim_in, 0);
  int sign = isl_val_sgn(by);
  isl_val_free(by);
  if (sign ==
      0) { /* k <= g for g >= 0 of parameters: the same where k is 0 alone, which is checked as all is */
    if (d->guards && d->upper && !equal) return isl_aff_add_coefficient_si(aff, isl_dim_in, 0, -1);
    isl_aff_free(aff);
    return NULL;
  }
  if ((sign < 0) == d->upper) return aff;
  if (equal) return isl_aff_neg(aff);
  isl_aff_free(aff);
  return NULL;
}

static isl_stat note_bound(isl_constraint *c, void *user) {
  side *d = user;
  isl_aff *aff = as_bound(d, c);
  isl_constraint_free(c);
  if (!aff) return isl_stat_ok;
  c = isl_inequality_from_aff(aff);
  aff = isl_constraint_get_bound(c, isl_dim_set, 0);
  uint32_t node = d->upper ? bb_sets_put_floor(d->s, aff, false) : bb_sets_put_ceiling(d->s, aff);
  isl_aff_free(aff);
  bool first = d->node == BB_SETS_NONE;
  d->node =
      first ? node : bb_sets_put_two(d->s, d->upper ? BB_SETS_MIN : BB_SETS_MAX, d->node, node);
  d->failed |= d->node == BB_SETS_NONE;
  d->set = isl_basic_set_add_constraint(d->set, c);
  return isl_stat_ok;
}

typedef struct sides {
  bb_sets *s;
  bool upper, guards, failed;
  uint32_t count;
  isl_set *set[PARTS];
  uint32_t node[PARTS];
} sides;

static isl_stat note_side(isl_basic_set *part, void *user) {
  sides *all = user;
  side one = {all->s, all->upper, all->guards, false, NULL, BB_SETS_NONE};
  one.set = isl_basic_set_universe(isl_basic_set_get_space(part));
  if (isl_basic_set_foreach_constraint(part, note_bound, &one) < 0) all->s->failed = true;
  isl_basic_set_free(part);
  all->failed |= one.failed || one.node == BB_SETS_NONE || all->count == PARTS;
  if (all->count == PARTS)
    isl_basic_set_free(one.set);
  else {
    all->node[all->count] = one.node;
    all->set[all->count++] = isl_set_from_basic_set(one.set);
  }
  return isl_stat_ok;
}

static void drop(sides *all, uint32_t i) {
  isl_set_free(all->set[i]);
  all->count--;
  all->set[i] = all->set[all->count];
  all->node[i] = all->node[all->count];
}

/* Where the context holds. */
static bool is_within(bb_sets *s, isl_set *x, isl_set *y) {
  x = isl_set_intersect_params(isl_set_copy(x), isl_set_copy(s->context));
  bool is = bb_sets_is(s, isl_set_is_subset(x, y));
  isl_set_free(x);
  return is;
}

/* Those of all parts, but for parts that another one's include. */
static sides find_sides(bb_sets *s, isl_set *x, bool upper, bool guards) {
  sides all = {.s = s, .upper = upper, .guards = guards};
  if (isl_set_foreach_basic_set(x, note_side, &all) < 0) s->failed = true;
  for (uint32_t i = 0; i < all.count; i++)
    for (uint32_t k = 0; k < all.count; k++) {
      if (k == i) continue;
      if (!is_within(s, all.set[i], all.set[k])) continue;
      drop(&all, i--);
      break;
    }
  return all;
}

/* Their union, and the node of the greatest or least. */
static isl_set *together(sides *all, isl_space *space, uint32_t *node) {
  isl_set *x = isl_set_empty(space);
  *node = BB_SETS_NONE;
  for (uint32_t i = 0; i < all->count; i++)
    *node = i == 0 ? all->node[0]
                   : bb_sets_put_two(all->s, all->upper ? BB_SETS_MAX : BB_SETS_MIN, *node,
                                     all->node[i]);
  while (all->count) {
    x = isl_set_union(x, isl_set_copy(all->set[0]));
    drop(all, 0);
  }
  return x;
}

/* The set without what the context says, and what is so in all of the set around it. */
static isl_set *plain(bb_sets *s, isl_set *x, isl_set *around) {
  x = isl_set_copy(x);
  if (around && around != x) x = isl_set_gist(x, isl_set_copy(around));
  x = isl_set_gist_params(x, isl_set_copy(s->context));
  return isl_set_coalesce(isl_set_remove_redundancies(x));
}

/* A bound that is found together from several sets'. */
typedef struct bound {
  bb_sets *s;
  bool upper;
  isl_set *set;  /* what fulfils it */
  uint32_t node; /* BB_SETS_NONE: there is none yet */
} bound;

/* And the set's: where that is all the bound needs, it alone.  Takes `set`. */
static void meet(bound *b, isl_set *set, uint32_t node) {
  if (node == BB_SETS_NONE) {
    isl_set_free(set);
    return;
  }
  if (b->node == BB_SETS_NONE || is_within(b->s, set, b->set))
    b->node = node;
  else if (!is_within(b->s, b->set, set))
    b->node = bb_sets_put_two(b->s, b->upper ? BB_SETS_MIN : BB_SETS_MAX, b->node, node);
  b->set = isl_set_intersect(b->set, set);
}

/* The bound that a set has on this side. */
static void meet_set(bound *b, isl_set *x, bool guards) {
  uint32_t node;
  sides all = find_sides(b->s, x, b->upper, guards);
  bool failed = all.failed;
  isl_set *set = together(&all, isl_set_get_space(x), &node);
  meet(b, set, failed ? BB_SETS_NONE : node);
}

/* What is beyond another set on that side. */
static void meet_neighbour(bound *b, isl_set *x, bool guards) {
  uint32_t node;
  isl_set *set = plain(b->s, x, NULL);
  sides all = find_sides(b->s, set, !b->upper, guards);
  bool failed = all.failed;
  isl_set_free(set);
  set = isl_set_complement(together(&all, isl_set_get_space(x), &node));
  meet(b, set, failed ? BB_SETS_NONE : bb_sets_put_beyond(b->s, node, b->upper ? -1 : 1));
}

/* Which bounds are asked.  within: those that all iterations have are known. */
typedef struct manner {
  bool own, guards, domain, all, neighbours;
  const bb_sets_stretch *within;
} manner;

static bound find_bound(bb_sets *s, isl_set *set, const bb_sets_interval *x, bool upper,
                        const manner *how) {
  bound b = {s, upper, isl_set_universe(isl_set_get_space(set)), BB_SETS_NONE};
  if (how->within) meet(&b, isl_set_copy(s->all), upper ? how->within->last : how->within->from);
  if (how->own) meet_set(&b, set, how->guards);
  if (how->domain || how->all) {
    isl_set *around = plain(s, how->domain ? s->domain : s->all, NULL);
    meet_set(&b, around, false);
    isl_set_free(around);
  }
  isl_set *neighbour = upper ? x->after : x->before;
  if (how->neighbours && neighbour) meet_neighbour(&b, neighbour, how->guards);
  return b;
}

/* Are these all, by their bounds? */
static bool by_bounds(bb_sets *s, const bb_sets_interval *x, const manner *how,
                      bb_sets_stretch *out) {
  bool all_known = how->all || how->within;
  isl_set *set = plain(s, x->set, how->domain ? s->domain : all_known ? s->all : NULL);
  bound low = find_bound(s, set, x, false, how), high = find_bound(s, set, x, true, how);
  isl_set *all = isl_set_intersect(low.set, high.set);
  all = isl_set_intersect_params(all, isl_set_copy(s->context));
  out->from = low.node;
  out->last = high.node;
  bool good = low.node != BB_SETS_NONE && high.node != BB_SETS_NONE &&
              bb_sets_is(s, isl_set_is_equal(all, x->set));
  isl_set_free(all);
  isl_set_free(set);
  return good;
}

/* --- by conditions --- */

typedef struct cases {
  bb_sets *s;
  bool upper, failed;
  uint32_t count, value; /* what it is so far */
  uint32_t end;          /* of all iterations: what `far` stands for */
  isl_aff *aff;          /* of the case at hand */
} cases;

typedef struct conditions {
  bb_sets *s;
  uint32_t least; /* not negative where all hold; BB_SETS_NONE: there are none */
  bool failed;
} conditions;

static isl_stat note_condition(isl_constraint *c, void *user) {
  conditions *d = user;
  isl_aff *aff = isl_constraint_get_aff(c);
  for (int twice = isl_constraint_is_equality(c) == isl_bool_true ? 2 : 1; twice > 0; twice--) {
    int64_t one;
    uint32_t node = bb_sets_put_numerator(d->s, aff, 0, &one);
    d->least = d->least == BB_SETS_NONE ? node : bb_sets_put_two(d->s, BB_SETS_MIN, d->least, node);
    d->failed |= d->least == BB_SETS_NONE;
    aff = isl_aff_neg(aff);
  }
  isl_aff_free(aff);
  isl_constraint_free(c);
  return isl_stat_ok;
}

static bool is_far(isl_aff *aff) {
  int64_t value;
  return isl_aff_is_cst(aff) == isl_bool_true &&
         bb_sets_whole(isl_aff_get_constant_val(aff), &value) && value == far;
}

static isl_stat note_part(isl_basic_set *part, void *user) {
  cases *c = user;
  conditions all = {c->s, BB_SETS_NONE, false};
  bb_sets_node node = bb_sets_new_node(BB_SETS_SELECT);
  node.a = is_far(c->aff) ? c->end
           : c->upper     ? bb_sets_put_floor(c->s, c->aff, false)
                          : bb_sets_put_ceiling(c->s, c->aff);
  node.b = c->value;
  if (isl_basic_set_foreach_constraint(part, note_condition, &all) < 0) c->s->failed = true;
  isl_basic_set_free(part);
  node.c = all.least;
  c->failed |= all.failed || node.a == BB_SETS_NONE || ++c->count > CASES;
  if (!c->failed) c->value = node.c == BB_SETS_NONE ? node.a : bb_sets_put_node(c->s, &node);
  return isl_stat_ok;
}

static isl_stat note_case(isl_set *where, isl_aff *aff, void *user) {
  cases *c = user;
  c->aff = aff;
  where = isl_set_gist(where, isl_set_copy(c->s->context));
  where = isl_set_coalesce(isl_set_remove_redundancies(isl_set_compute_divs(where)));
  if (isl_set_foreach_basic_set(where, note_part, c) < 0) c->s->failed = true;
  isl_set_free(where);
  isl_aff_free(aff);
  return isl_stat_ok;
}

static uint32_t by_cases(bb_sets *s, isl_set *x, bool upper, uint32_t end) {
  isl_pw_aff *all =
      upper ? isl_set_dim_max(isl_set_copy(x), 0) : isl_set_dim_min(isl_set_copy(x), 0);
  cases c = {.s = s, .upper = upper, .end = end};
  c.value = bb_sets_put_number(s, upper ? -1 : 0);
  all = isl_pw_aff_coalesce(all);
  if (isl_pw_aff_foreach_piece(all, note_case, &c) < 0) s->failed = true;
  isl_pw_aff_free(all);
  return c.failed ? BB_SETS_NONE : c.value;
}

/* The iterations from those of a set's first, or up to its last. */
static isl_set *from_first(isl_set *x, bool upper) {
  isl_set *first = upper ? isl_set_lexmax(isl_set_copy(x)) : isl_set_lexmin(isl_set_copy(x));
  isl_space *space = isl_set_get_space(x);
  first = isl_set_apply(first, upper ? isl_map_lex_ge(space) : isl_map_lex_le(space));
  if (!upper) return first;
  isl_val *end = isl_val_int_from_si(isl_set_get_ctx(x), far);
  isl_set *there = isl_set_params(isl_set_fix_val(isl_set_copy(x), isl_dim_set, 0, end));
  return isl_set_union(first,
                       isl_set_intersect_params(isl_set_universe(isl_set_get_space(x)), there));
}

/* Are these all, by cases and the bounds of all iterations? */
static bool choose_cases(bb_sets *s, isl_set *x, bb_sets_stretch *out) {
  isl_set *set = plain(s, x, s->domain), *domain = plain(s, s->domain, NULL);
  set = isl_set_upper_bound_val(
      set, isl_dim_set, 0, isl_val_int_from_si(s->ctx, far)); /* where only the domain bounds it */
  set = isl_set_lower_bound_si(set, isl_dim_set, 0, 0);
  bound end = {s, true, isl_set_universe(isl_set_get_space(x)), BB_SETS_NONE};
  meet_set(&end, domain, false);
  bound low = {s, false, from_first(set, false), by_cases(s, set, false, BB_SETS_NONE)};
  bound high = {s, true, from_first(set, true), by_cases(s, set, true, end.node)};
  bool good = low.node != BB_SETS_NONE && high.node != BB_SETS_NONE;
  meet_set(&low, domain, false);
  meet(&high, end.set, end.node);
  out->from = low.node;
  out->last = high.node;
  isl_set *all = isl_set_intersect(low.set, high.set);
  all = isl_set_intersect_params(all, isl_set_copy(s->context));
  good = good && bb_sets_is(s, isl_set_is_equal(all, x));
  isl_set_free(all);
  isl_set_free(set);
  isl_set_free(domain);
  return good && out->from != BB_SETS_NONE && out->last != BB_SETS_NONE;
}

/* All iterations by cases, and in them an interval by its bounds: where that ends as parameters say, and they do not. */
static bool choose_within(bb_sets *s, const bb_sets_interval *x, bb_sets_stretch *out) {
  bb_sets_stretch all;
  if (!choose_cases(s, s->all, &all)) return false;
  const manner ways[] = {{.own = true, .within = &all}, {.neighbours = true, .within = &all}};
  for (uint32_t i = 0; i < sizeof ways / sizeof *ways && !s->failed; i++)
    if (by_bounds(s, x, &ways[i], out)) return true;
  return false;
}

/* --- */

isl_set *bb_sets_side(bb_sets *s, isl_set *set, bool upper) {
  isl_set *x = plain(s, set, NULL);
  uint32_t node;
  sides all = find_sides(s, x, upper, false);
  isl_set *made = together(&all, isl_set_get_space(set), &node);
  isl_set_free(x);
  return made;
}

bool bb_sets_bound(bb_sets *s, const bb_sets_interval *interval, bool choose,
                   bb_sets_stretch *out) {
  static const manner ways[] = {{.own = true},
                                {.own = true, .domain = true},
                                {.own = true, .all = true},
                                {.own = true, .domain = true, .neighbours = true},
                                {.own = true, .all = true, .neighbours = true},
                                {.all = true, .neighbours = true},
                                {.own = true, .domain = true, .guards = true},
                                {.all = true, .neighbours = true, .guards = true}};
  for (uint32_t i = 0; i < sizeof ways / sizeof *ways && !s->failed; i++)
    if (by_bounds(s, interval, &ways[i], out)) return !s->failed;
  return choose && (choose_cases(s, interval->set, out) || choose_within(s, interval, out)) &&
         !s->failed;
}

bool bb_sets_bound_around(bb_sets *s, isl_set *set, bb_sets_stretch *out) {
  isl_set *x = isl_set_from_basic_set(isl_set_simple_hull(plain(s, set, NULL)));
  bb_sets_interval interval = {x, NULL, NULL};
  manner how = {.own = true, .domain = true};
  bound low = find_bound(s, x, &interval, false, &how),
        high = find_bound(s, x, &interval, true, &how);
  out->from = low.node;
  out->last = high.node;
  isl_set_free(low.set);
  isl_set_free(high.set);
  isl_set_free(x);
  return out->from != BB_SETS_NONE && out->last != BB_SETS_NONE && !s->failed;
}
