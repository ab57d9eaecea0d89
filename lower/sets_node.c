/* sets_node.c - affine expressions of isl's as nodes of an answer. */
#include "sets_parts.h"

#include <isl/aff.h>
#include <isl/val.h>

#include <math.h>
#include <string.h>

/* --- nodes --- */

uint32_t bb_sets_put_node(bb_sets *s, const bb_sets_node *node) {
  bb_sets_answer *a = s->answer;
  for (uint32_t i = 0; i < a->nodes; i++)
    if (memcmp(&a->node[i], node, sizeof *node) == 0) return i;
  if (a->nodes == BB_SETS_NODES) return BB_SETS_NONE;
  a->node[a->nodes] = *node;
  return a->nodes++;
}

/* So that nodes that are alike have the same bytes. */
bb_sets_node bb_sets_new_node(bb_sets_kind kind) {
  bb_sets_node node;
  memset(&node, 0, sizeof node);
  node.kind = kind;
  return node;
}

uint32_t bb_sets_put_number(bb_sets *s, int64_t value) {
  bb_sets_node node = bb_sets_new_node(BB_SETS_SUM);
  node.number = value;
  return bb_sets_put_node(s, &node);
}

uint32_t bb_sets_put_two(bb_sets *s, bb_sets_kind kind, uint32_t a, uint32_t b) {
  bb_sets_node node = bb_sets_new_node(kind);
  if (a == BB_SETS_NONE || b == BB_SETS_NONE || a == b) return a == b ? a : BB_SETS_NONE;
  node.a = a;
  node.b = b;
  return bb_sets_put_node(s, &node);
}

/* --- affine expressions --- */

/* A bb_sets_whole number, of a size that leaves room. */
bool bb_sets_whole(isl_val *v, int64_t *out) {
  bool is = isl_val_is_int(v) == isl_bool_true && fabs(isl_val_get_d(v)) < 0x1p50;
  if (is) *out = isl_val_get_num_si(v);
  isl_val_free(v);
  return is;
}

/* Is the expression never negative where the context holds? */
static bool is_positive(bb_sets *s, isl_aff *aff) {
  isl_set *below = isl_set_from_basic_set(isl_aff_neg_basic_set(isl_aff_copy(aff)));
  if (!bb_sets_is(s, isl_set_is_params(below))) below = isl_set_params(below);
  below = isl_set_intersect(below, isl_set_copy(s->context));
  bool none = bb_sets_is(s, isl_set_is_empty(below));
  isl_set_free(below);
  return none;
}

static bool add_term(bb_sets_node *node, int64_t by, uint32_t of) {
  if (by == 0) return true;
  if (node->terms == BB_SETS_TERMS) return false;
  node->by[node->terms] = by;
  node->of[node->terms++] = of;
  return true;
}

/* Does it depend on k, as a part of a division? */
static bool names_iteration(bb_sets *s, isl_aff *aff) {
  isl_size in = isl_aff_dim(aff, isl_dim_in);
  return in > 0 && bb_sets_is(s, isl_aff_involves_dims(aff, isl_dim_in, 0, (unsigned)in));
}

/* The numerator of an expression, and its denominator.  more: added to it. */
uint32_t bb_sets_put_numerator(bb_sets *s, isl_aff *aff, int64_t more, int64_t *denominator) {
  bb_sets_node node = bb_sets_new_node(BB_SETS_SUM);
  isl_val *d = isl_aff_get_denominator_val(aff);
  bool good =
      !names_iteration(s, aff) && bb_sets_whole(isl_val_copy(d), denominator) &&
      bb_sets_whole(isl_val_mul(isl_aff_get_constant_val(aff), isl_val_copy(d)), &node.number);
  node.number += more;
  const enum isl_dim_type type[] = {isl_dim_param, isl_dim_div};
  for (uint32_t t = 0; t < 2; t++) {
    isl_size count = isl_aff_dim(aff, type[t]);
    for (isl_size i = 0; good && i < count; i++) {
      int64_t by;
      good = bb_sets_whole(
          isl_val_mul(isl_aff_get_coefficient_val(aff, type[t], i), isl_val_copy(d)), &by);
      uint32_t of = (uint32_t)i;
      if (good && by && t == 1) {
        isl_aff *div = isl_aff_get_div(aff, i);
        of = bb_sets_put_floor(s, div, false);
        isl_aff_free(div);
        good = of != BB_SETS_NONE;
        of += BB_SETS_PARAMETERS;
      }
      good = good && add_term(&node, by, of);
    }
  }
  isl_val_free(d);
  return good ? bb_sets_put_node(s, &node) : BB_SETS_NONE;
}

/* Rounded down.  loose: what it is where the numerator is negative does not matter. */
uint32_t bb_sets_put_floor(bb_sets *s, isl_aff *aff, bool loose) {
  int64_t denominator;
  uint32_t top = bb_sets_put_numerator(s, aff, 0, &denominator);
  if (top == BB_SETS_NONE || denominator == 1) return top;
  bb_sets_node node = bb_sets_new_node(BB_SETS_FLOOR);
  node.a = top;
  node.number = denominator;
  node.positive = loose || is_positive(s, aff);
  return bb_sets_put_node(s, &node);
}

/* Rounded up.  Negative ones are not told apart: no iteration is below 0. */
uint32_t bb_sets_put_ceiling(bb_sets *s, isl_aff *aff) {
  int64_t denominator;
  uint32_t top = bb_sets_put_numerator(s, aff, 0, &denominator);
  if (top == BB_SETS_NONE || denominator == 1) return top;
  bb_sets_node node = bb_sets_new_node(BB_SETS_FLOOR);
  node.a = bb_sets_put_numerator(s, aff, denominator - 1, &denominator);
  node.number = denominator;
  node.positive = true;
  return node.a == BB_SETS_NONE ? BB_SETS_NONE : bb_sets_put_node(s, &node);
}

/* One more, or one less: of a bound on one side, the bound beyond it on the other. */
uint32_t bb_sets_put_beyond(bb_sets *s, uint32_t at, int64_t by) {
  if (at == BB_SETS_NONE) return BB_SETS_NONE;
  bb_sets_node node = s->answer->node[at];
  if (node.kind == BB_SETS_SELECT) return BB_SETS_NONE;
  if (node.kind == BB_SETS_MIN || node.kind == BB_SETS_MAX)
    return bb_sets_put_two(s, node.kind, bb_sets_put_beyond(s, node.a, by),
                           bb_sets_put_beyond(s, node.b, by));
  if (node.kind == BB_SETS_FLOOR) {
    bb_sets_node top = s->answer->node[node.a];
    top.number += by * node.number;
    node.a = bb_sets_put_node(s, &top);
    node.positive = by > 0;
    return node.a == BB_SETS_NONE ? BB_SETS_NONE : bb_sets_put_node(s, &node);
  }
  node.number += by;
  return bb_sets_put_node(s, &node);
}
