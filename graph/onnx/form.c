/* form.c - closed forms of coordinates through what joins and picks: the places of tokens, from which models make
 * their masks, stay functions of coordinates, and a causal mask one that loops are cut by.
 *
 * Integers and truth values only, but for what is picked from, and of few operators: a form is written out where it
 * is used.
 */
#include "convert.h"

enum { FORM_PARTS = 4, FORM_NODES = 96 };

/* --- putting in order --- */

/* A choice by whether a coordinate is a number, or NULL. */
static const bb_expr *chosen_at(const bb_expr *e) {
  bool fits = e->op == BB_X_SELECT && e->a[0]->op == BB_X_EQ && e->a[0]->a[0]->op == BB_X_COORD &&
              e->a[0]->a[1]->op == BB_X_CONST;
  return fits ? e->a[0] : NULL;
}

typedef struct fixed {
  const bb_expr *coordinate, *number;
} fixed;

static const bb_expr *fix_leaf(void *user, const bb_expr *leaf) {
  const fixed *f = user;
  return leaf == f->coordinate ? f->number : leaf;
}

/* e where the condition holds, which says that a coordinate is a number. */
static const bb_expr *where(bb_program *p, const bb_expr *condition, const bb_expr *e) {
  fixed f = {condition->a[0], condition->a[1]};
  return bb_expr_map_leaves(p, e, fix_leaf, &f);
}

/* A choice that is an operand becomes one of results: what they have in common is seen then. */
static const bb_expr *step(void *user, bb_program *p, const bb_expr *old,
                           const bb_expr *const a[3]) {
  bb_onnx *m = user;
  uint32_t arity = bb_expr_op_arity(old->op);
  if (!arity) return old;
  if (old->op == BB_X_CAST) return bb_expr_cast(p, old->dtype, a[0]);
  const bb_expr *e = bb_onnx_tidy(m, bb_expr_make(p, old->op, a[0], a[1], a[2]));
  if (old->op == BB_X_SELECT) {
    if (!chosen_at(e)) return e;
    const bb_expr *taken = where(p, e->a[0], e->a[1]);
    return bb_onnx_tidy(m, bb_expr_make(p, BB_X_SELECT, e->a[0], taken, e->a[2]));
  }
  for (uint32_t i = 0; i < arity && arity == 2; i++) {
    const bb_expr *at = chosen_at(a[i]);
    if (!at || e->op != old->op) continue;
    const bb_expr *side[2];
    for (uint32_t k = 0; k < 2; k++) {
      const bb_expr *other = k == 0 ? where(p, at, a[!i]) : a[!i];
      const bb_expr *own = a[i]->a[1 + k];
      side[k] = bb_onnx_tidy(m, bb_expr_make(p, old->op, i ? other : own, i ? own : other, NULL));
    }
    return bb_onnx_tidy(m, bb_expr_make(p, BB_X_SELECT, at, side[0], side[1]));
  }
  return e;
}

static bool is_small(bb_onnx *m, const bb_expr *form) {
  uint32_t count;
  bb_expr_postorder(m->arena, form, &count);
  return count <= FORM_NODES;
}

const bb_expr *bb_onnx_form_tidy(bb_onnx *m, const bb_expr *form) {
  if (bb_dtype_is_float(form->dtype) || !bb_expr_uses_coord(form) || !is_small(m, form))
    return form;
  return bb_expr_rewrite(m->program, form, step, m);
}

/* --- moving coordinates --- */

/* What takes the place of each coordinate, counted from the last axis; NULL: it stays. */
typedef struct moving {
  const bb_expr *to[BB_ONNX_RANK];
} moving;

static const bb_expr *move_leaf(void *user, const bb_expr *leaf) {
  const moving *to = user;
  bool moves = leaf->op == BB_X_COORD && leaf->index >= BB_COORD_AXIS &&
               leaf->index < BB_COORD_AXIS + BB_ONNX_RANK;
  const bb_expr *with = moves ? to->to[leaf->index - BB_COORD_AXIS] : NULL;
  return with ? with : leaf;
}

static const bb_expr *moved(bb_onnx *m, const bb_expr *form, moving *to) {
  return bb_expr_map_leaves(m->program, form, move_leaf, to);
}

static const bb_expr *coordinate(bb_onnx *m, uint32_t from_last) {
  return bb_expr_coord(m->program, BB_COORD_AXIS + from_last);
}

static const bb_expr *any_form_of(const bb_onnx_value *v) {
  return v->form ? v->form : bb_onnx_scalar_expr(v);
}

static const bb_expr *form_of(const bb_onnx_value *v) {
  const bb_expr *form = any_form_of(v);
  return form && !bb_dtype_is_float(form->dtype) ? form : NULL;
}

/* An index counted from the front, wherever it is read: others are counted from the end. */
static bool never_negative(const bb_expr *e) {
  switch (e->op) {
  case BB_X_CONST: return e->number >= 0;
  case BB_X_COORD:
  case BB_X_SYMBOL:
  case BB_X_EXTENT: return true;
  case BB_X_CAST: return !bb_dtype_is_float(e->a[0]->dtype) && never_negative(e->a[0]);
  case BB_X_ADD:
  case BB_X_MUL: return never_negative(e->a[0]) && never_negative(e->a[1]);
  case BB_X_SELECT: return never_negative(e->a[1]) && never_negative(e->a[2]);
  default: return false;
  }
}

/* --- joins and picks --- */

/* Parts of lengths that are numbers, but for the last one's. */
bb_onnx_value *bb_onnx_form_concat(bb_onnx *m, uint32_t count, bb_onnx_value *const *v,
                                   uint32_t axis, const bb_extent *const *shape) {
  bb_program *p = m->program;
  uint32_t rank = v[0]->rank, q = rank - 1 - axis;
  const bb_expr *part[FORM_PARTS], *at = coordinate(m, q);
  double begin[FORM_PARTS], next = 0;
  if (count > FORM_PARTS) return NULL;
  for (uint32_t i = 0; i < count; i++) {
    int64_t length = bb_extent_value(v[i]->shape[axis]);
    part[i] = form_of(v[i]);
    if (!part[i] || part[i]->dtype != v[0]->dtype || (length < 0 && i + 1 < count)) return NULL;
    begin[i] = next;
    next += (double)length;
    moving to = {{NULL}};
    to.to[q] =
        bb_onnx_tidy(m, bb_expr_make(p, BB_X_ADD, at, bb_expr_const(p, BB_I64, -begin[i]), NULL));
    part[i] = moved(m, part[i], &to);
  }
  const bb_expr *form = part[count - 1];
  for (uint32_t i = count - 1; i-- > 0;) {
    bool one = begin[i + 1] == 1; /* the first element alone */
    const bb_expr *limit = bb_expr_const(p, BB_I64, one ? 0 : begin[i + 1]);
    const bb_expr *before = bb_expr_make(p, one ? BB_X_EQ : BB_X_LT, at, limit, NULL);
    form = bb_expr_make(p, BB_X_SELECT, before, part[i], form);
  }
  form = bb_onnx_form_tidy(m, form);
  return is_small(m, form) ? bb_onnx_value_of_form(m, form, rank, shape) : NULL;
}

bb_onnx_value *bb_onnx_form_gather(bb_onnx *m, const bb_onnx_value *v, uint32_t axis,
                                   const bb_onnx_value *index, uint32_t rank,
                                   const bb_extent *const *shape) {
  const bb_expr *form = any_form_of(v), *place = form_of(index);
  uint32_t q = v->rank - 1 - axis;
  if (!form || !place || rank > BB_ONNX_RANK || !never_negative(place)) return NULL;
  moving to = {{NULL}}, within = {{NULL}};
  for (uint32_t k = 0; k < index->rank; k++) within.to[k] = coordinate(m, q + k);
  for (uint32_t k = q + 1; k < v->rank; k++) to.to[k] = coordinate(m, k - 1 + index->rank);
  to.to[q] = moved(m, place, &within);
  form = bb_onnx_form_tidy(m, moved(m, form, &to));
  return is_small(m, form) ? bb_onnx_value_of_form(m, form, rank, shape) : NULL;
}

bb_onnx_value *bb_onnx_form_gather_nd(bb_onnx *m, const bb_onnx_value *v,
                                      const bb_onnx_value *index, uint32_t rank,
                                      const bb_extent *const *shape) {
  const bb_expr *form = form_of(v), *places = form_of(index);
  if (!form || !places || bb_extent_value(index->shape[index->rank - 1]) != (int64_t)v->rank)
    return NULL;
  moving to = {{NULL}};
  for (uint32_t a = 0; a < v->rank; a++) {
    moving row = {{NULL}};
    row.to[0] = bb_expr_const(m->program, BB_I64, a);
    for (uint32_t k = 1; k < index->rank; k++) row.to[k] = coordinate(m, k - 1);
    const bb_expr *place = bb_onnx_form_tidy(m, moved(m, places, &row));
    if (!never_negative(place)) return NULL;
    to.to[v->rank - 1 - a] = place;
  }
  form = bb_onnx_form_tidy(m, moved(m, form, &to));
  return is_small(m, form) ? bb_onnx_value_of_form(m, form, rank, shape) : NULL;
}
