/* repair_lower.c - components of a product as ops on items: what one block adds, and the results.
 *
 * A component's term is an expression of elements.  What folds along the columns of an item becomes an
 * elementwise op and a row op; what came from a product is split into factors of its two operands, so that
 * sum exp(x-m)*v stays dot(exp(x-m), v), however the algebra writes it.
 */
#include "repair.h"

#include <math.h>

enum { PAIRS = 16 };

/* Whose rows an expression has: those of the elements, those of a product's other operand. */
enum { MAIN = 1, OTHER = 2, COLS = 4 };

/* left(i,k) * right(j,k); NULL is 1. */
typedef struct pair {
  const bb_expr *left, *right;
} pair;

typedef struct pairs {
  uint32_t count;
  pair pair[PAIRS];
} pairs;

typedef struct point {
  struct point *next;
  const bb_expr *expr;
  bool along;
  bb_dtype dtype;
  bb_value value;
} point;

typedef struct lowering {
  bb_repair *r;
  uint32_t rows[BB_PRODUCT_COMPONENTS]; /* MAIN, OTHER of what each component's term reads */
  uint32_t axes[BB_PRODUCT_COMPONENTS]; /* of each component's value */
  bb_graph *body;
  bb_value *component;
  point *made;
} lowering;

static const bb_repair_leaf *leaf_of(const bb_repair *r, uint32_t arg) {
  for (uint32_t i = 0; i < r->leaves; i++)
    if (r->leaf[i].arg == arg) return &r->leaf[i];
  return NULL;
}

/* --- factors --- */

static uint32_t rows_of(const lowering *l, const bb_expr *expr) {
  const bb_product *p = l->r->product;
  uint32_t rows = 0;
  for (uint32_t i = 0; i < p->own; i++) {
    if (!bb_expr_uses_arg(expr, i)) continue;
    const bb_repair_leaf *leaf = leaf_of(l->r, i);
    if (leaf->coord == BB_NONE ? leaf->item.row != BB_NO_DIM : leaf->coord == BB_COORD_ROW)
      rows |= leaf->other ? OTHER : MAIN;
  }
  for (uint32_t j = 0; j < p->count; j++)
    if (bb_expr_uses_arg(expr, p->own + j)) rows |= l->rows[j];
  return rows;
}

static const bb_expr *make(const lowering *l, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(l->r->program, op, a, b, NULL);
}

static const bb_expr *number(const lowering *l, double value) {
  return bb_expr_const(l->r->program, BB_F32, value);
}

static const bb_expr *times(const lowering *l, const bb_expr *a, const bb_expr *b) {
  return !a ? b : !b ? a : make(l, BB_X_MUL, a, b);
}

static bool add_pair(pairs *list, const bb_expr *left, const bb_expr *right) {
  if (list->count == PAIRS) return false;
  list->pair[list->count++] = (pair){left, right};
  return true;
}

static bool split(const lowering *l, const bb_expr *expr, pairs *list);

static bool split_sum(const lowering *l, const bb_expr *expr, pairs *list) {
  uint32_t first;
  if (!split(l, expr->a[0], list)) return false;
  first = list->count;
  if (!split(l, expr->a[1], list)) return false;
  for (uint32_t i = first; i < list->count && expr->op == BB_X_SUB; i++) {
    pair *p = &list->pair[i];
    const bb_expr **side = p->left || !p->right ? &p->left : &p->right;
    *side = *side ? make(l, BB_X_NEG, *side, NULL) : number(l, -1);
  }
  return true;
}

static bool split_product(const lowering *l, const bb_expr *expr, pairs *list) {
  pairs a = {0}, b = {0};
  if (!split(l, expr->a[0], &a) || !split(l, expr->a[1], &b)) return false;
  for (uint32_t i = 0; i < a.count; i++)
    for (uint32_t k = 0; k < b.count; k++)
      if (!add_pair(list, times(l, a.pair[i].left, b.pair[k].left),
                    times(l, a.pair[i].right, b.pair[k].right)))
        return false;
  return true;
}

static const bb_expr *over(const lowering *l, const bb_expr *a, const bb_expr *b) {
  return make(l, BB_X_DIV, a ? a : number(l, 1), b);
}

static bool split_quotient(const lowering *l, const bb_expr *expr, pairs *list) {
  pairs a = {0};
  uint32_t below = rows_of(l, expr->a[1]);
  if (below == (MAIN | OTHER) || !split(l, expr->a[0], &a)) return false;
  for (uint32_t i = 0; i < a.count; i++) {
    pair p = a.pair[i];
    *(below == OTHER ? &p.right : &p.left) = over(l, below == OTHER ? p.right : p.left, expr->a[1]);
    if (!add_pair(list, p.left, p.right)) return false;
  }
  return true;
}

/* 0, or 0 times factors that the other arm of a selection has too (algebra_guard.c). */
static bool is_zero(const bb_expr *arm) {
  if (arm->op == BB_X_MUL) return is_zero(arm->a[0]) || is_zero(arm->a[1]);
  if (arm->op == BB_X_SELECT) return is_zero(arm->a[1]) && is_zero(arm->a[2]);
  return arm->op == BB_X_CONST && arm->number == 0;
}

/* select(c, t, f) = select(c, 1, 0) * t + select(c, 0, 1) * f, c of one side. */
static bool split_select(const lowering *l, const bb_expr *expr, pairs *list) {
  uint32_t whose = rows_of(l, expr->a[0]);
  if (whose == (MAIN | OTHER)) return false;
  for (uint32_t k = 1; k < 3; k++) {
    pairs part = {0};
    if (is_zero(expr->a[k])) continue;
    if (!split(l, expr->a[k], &part)) return false;
    for (uint32_t i = 0; i < part.count; i++) {
      pair p = part.pair[i];
      const bb_expr **side = whose == OTHER ? &p.right : &p.left;
      const bb_expr *kept = *side ? *side : number(l, 1), *none = number(l, 0);
      *side = bb_expr_make(l->r->program, BB_X_SELECT, expr->a[0], k == 1 ? kept : none,
                           k == 1 ? none : kept);
      if (!add_pair(list, p.left, p.right)) return false;
    }
  }
  return true;
}

/* As a sum of products of a function of one side and a function of the other. */
static bool split(const lowering *l, const bb_expr *expr, pairs *list) {
  uint32_t rows = rows_of(l, expr);
  if (!(rows & OTHER)) return add_pair(list, expr, NULL);
  if (!(rows & MAIN)) return add_pair(list, NULL, expr);
  switch (expr->op) {
  case BB_X_ADD:
  case BB_X_SUB: return split_sum(l, expr, list);
  case BB_X_MUL: return split_product(l, expr, list);
  case BB_X_DIV: return split_quotient(l, expr, list);
  case BB_X_SELECT: return split_select(l, expr, list);
  case BB_X_NEG: {
    uint32_t first = list->count;
    if (!split(l, expr->a[0], list)) return false;
    for (uint32_t i = first; i < list->count; i++)
      list->pair[i].left =
          list->pair[i].left ? make(l, BB_X_NEG, list->pair[i].left, NULL) : number(l, -1);
    return true;
  }
  default: return false;
  }
}

/* --- can it be said? --- */

static const bb_repair_fold *fold_of(const bb_repair *r, uint32_t component) {
  return &r->fold[r->product->component[component].of];
}

/* A value of the body that has the axis which is folded, to spread what lacks it. */
static const bb_repair_leaf *along(const bb_repair *r, bool other) {
  for (uint32_t i = 0; i < r->leaves; i++) {
    const bb_repair_leaf *l = &r->leaf[i];
    if (l->arg != BB_NONE && l->coord == BB_NONE && !l->fixed && l->other == other &&
        l->item.col != BB_NO_DIM)
      return l;
  }
  return other ? NULL : along(r, true);
}

static uint32_t columns_of(const lowering *l, const bb_expr *expr) {
  const bb_product *p = l->r->product;
  uint32_t cols = 0;
  for (uint32_t i = 0; i < p->own; i++) {
    if (!bb_expr_uses_arg(expr, i)) continue;
    const bb_repair_leaf *leaf = leaf_of(l->r, i);
    if (leaf->coord == BB_NONE ? leaf->item.col != BB_NO_DIM : leaf->coord == BB_COORD_COL)
      cols = COLS;
  }
  for (uint32_t j = 0; j < p->count; j++)
    if (bb_expr_uses_arg(expr, p->own + j)) cols |= l->axes[j] & COLS;
  return cols;
}

static uint32_t axes_of_pairs(const lowering *l, const pairs *list) {
  uint32_t axes = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    if (list->pair[i].left) axes |= rows_of(l, list->pair[i].left) & MAIN;
    if (list->pair[i].right) axes |= rows_of(l, list->pair[i].right) & OTHER;
  }
  return axes;
}

/* The leaf that an argument stands for, of a component's term or of a leaf's expression; NULL: a fold. */
static const bb_repair_leaf *leaf_behind(const bb_repair *r, uint32_t arg, bool of_leaf) {
  if (!of_leaf) return arg < r->product->own ? leaf_of(r, arg) : NULL;
  return arg < BB_REPAIR_RESULTS ? NULL : &r->leaf[arg - BB_REPAIR_RESULTS];
}

/* Is what is narrowed for a product sure to fit the type, as it does in the program?  A norm's scale, which the algebra takes out, may be what
 * brings a stream there.  Narrow values fit, and functions of them; and exps, which the repair of exps keeps within the type
 * (scalar_fault.c). */
static bool fits(const bb_repair *r, const bb_expr *expr, bool of_leaf, bb_dtype narrow) {
  if (expr->op == BB_X_EXP) return true;
  if (expr->op == BB_X_CONST) return fabs(expr->number) <= bb_dtype_largest(narrow);
  if (expr->op == BB_X_ARG) {
    const bb_repair_leaf *leaf = leaf_behind(r, expr->index, of_leaf);
    if (!leaf || leaf->coord != BB_NONE || bb_dtype_has_range(narrow, leaf->item.dtype))
      return true;
    return leaf->expr && leaf->expr->op != BB_X_ARG && fits(r, leaf->expr, true, narrow);
  }
  for (uint32_t i = expr->op == BB_X_SELECT; i < bb_expr_op_arity(expr->op); i++)
    if (!fits(r, expr->a[i], of_leaf, narrow)) return false;
  return true;
}

static bool pairs_fit(const bb_repair *r, const pairs *list, bb_dtype narrow) {
  for (uint32_t i = 0; i < list->count; i++) {
    const pair *p = &list->pair[i];
    if ((p->left && !fits(r, p->left, false, narrow)) ||
        (p->right && !fits(r, p->right, false, narrow)))
      return false;
  }
  return true;
}

static bool lowers(lowering *l, uint32_t j) {
  const bb_repair *r = l->r;
  const bb_component *c = &r->product->component[j];
  const bb_repair_fold *f = fold_of(r, j);
  if (c->payload && f->kind == BB_TERM_ROWS) return true;
  l->rows[j] = l->axes[j] = rows_of(l, c->start);
  if (f->kind == BB_TERM_POINT) {
    l->axes[j] |= columns_of(l, c->start);
    return true;
  }
  for (uint32_t i = 0; i < j; i++)
    if (bb_expr_uses_arg(c->start, r->product->own + i) && l->rows[i] & OTHER) return false;
  if (!along(r, false)) return false;
  pairs list = {0};
  if (f->kind != BB_TERM_DOT) {
    bool spread = !(columns_of(l, c->start) & COLS); /* over the columns of a block, by its rows */
    const bb_repair_leaf *leaf = along(r, false);    /* it gives the sum its rows, too */
    if (spread && leaf->item.row != BB_NO_DIM)
      l->rows[j] = l->axes[j] |= leaf->other ? OTHER : MAIN;
    return !(l->rows[j] & OTHER);
  }
  if (!split(l, c->start, &list)) return false;
  if (!pairs_fit(r, &list, f->factor))
    return bb_repair_refuse(l->r,
                            bb_arena_printf(r->program->arena,
                                            "terms of the component %s may be beyond what %s holds",
                                            c->name, bb_dtype_name(f->factor)));
  l->axes[j] = axes_of_pairs(l, &list);
  return true;
}

/* The axes of what a fold gives. */
static uint32_t axes_of_fold(const bb_repair *r, const bb_repair_fold *f) {
  const bb_graph *body = bb_repair_body(r, f->second);
  const bb_item *item = &bb_type_of(body, f->operand[f->swapped])->item;
  uint32_t axes = item->row != BB_NO_DIM ? MAIN : 0;
  if (f->kind == BB_TERM_POINT && item->col != BB_NO_DIM) axes |= COLS;
  if (f->kind == BB_TERM_DOT && bb_type_of(body, f->operand[!f->swapped])->item.row != BB_NO_DIM)
    axes |= OTHER;
  return axes;
}

/* Does each fold come out with its axes?  What the algebra cancels, as it does weights that are all
 * alike, may have been all that had one; and what it finds to be a number, as sums of weights are 1, has
 * none. */
static bool keeps_axes(const lowering *l) {
  const bb_repair *r = l->r;
  const bb_product *p = r->product;
  for (uint32_t i = 0; i < r->folds; i++) {
    if (!bb_repair_is_read(r, &r->fold[i])) continue;
    uint32_t axes = 0;
    for (uint32_t j = 0; j < p->count; j++)
      if (bb_expr_uses_arg(p->result[i].finish, p->own + j)) axes |= l->axes[j];
    if (axes_of_fold(r, &r->fold[i]) & ~axes) return false;
  }
  return true;
}

bool bb_repair_lowers(bb_repair *r) {
  lowering l = {.r = r};
  for (uint32_t j = 0; j < r->product->count; j++)
    if (!lowers(&l, j))
      return bb_repair_refuse(r, bb_arena_printf(r->program->arena,
                                                 "the component %s has no form in ops on blocks",
                                                 r->product->component[j].name));
  return keeps_axes(&l) || bb_repair_refuse(r, "a fold no longer depends on what gave it an axis");
}

/* --- ops --- */

typedef struct operands {
  const bb_repair *r;
  bb_graph *graph;
  uint32_t count;
  bb_value in[BB_REPAIR_LEAVES + BB_PRODUCT_COMPONENTS];
  const bb_expr *with[BB_REPAIR_LEAVES + 3 * BB_PRODUCT_COMPONENTS];
} operands;

static const bb_expr *operand(operands *o, bb_value value) {
  uint32_t at = 0;
  while (at < o->count && !bb_value_equal(o->in[at], value)) at++;
  if (at == o->count) o->in[o->count++] = value;
  return bb_expr_arg(o->r->program, bb_type_of(o->graph, value)->item.dtype, at);
}

static bool has_axis(const operands *o, bool col) {
  for (uint32_t i = 0; i < o->count; i++) {
    const bb_item *item = &bb_type_of(o->graph, o->in[i])->item;
    if ((col ? item->col : item->row) != BB_NO_DIM) return true;
  }
  return false;
}

/* Of a count: as wide as the widest fold that divides by it. */
static bb_dtype widest(const bb_repair *r) {
  bb_dtype dtype = BB_F32;
  for (uint32_t i = 0; i < r->folds; i++)
    if (r->fold[i].dtype == BB_F64) dtype = BB_F64;
  return dtype;
}

static const bb_expr *wide_number(void *user, const bb_expr *leaf) {
  return leaf->op == BB_X_CONST && leaf->dtype == BB_F32 ? bb_expr_const(user, BB_F64, leaf->number)
                                                         : leaf;
}

/* A function of a count, as sqrt(N) is, would be taken in f32. */
static const bb_expr *wide_operator(void *user, bb_program *program, const bb_expr *node,
                                    const bb_expr *const a[3]) {
  (void)user;
  bool widens = bb_dtype_is_float(node->dtype) && node->op != BB_X_CAST && a[0] && !a[1] &&
                !bb_dtype_is_float(a[0]->dtype);
  const bb_expr *wide[3] = {widens ? bb_expr_cast(program, BB_F64, a[0]) : a[0], a[1], a[2]};
  return bb_expr_rebuild(program, node, wide);
}

const bb_expr *bb_repair_numbers(const bb_repair *r, const bb_expr *expr) {
  expr = bb_expr_without_names(r->program, expr);
  if (widest(r) != BB_F64) return expr;
  expr = bb_expr_map_leaves(r->program, expr, wide_number, r->program);
  return bb_expr_rewrite(r->program, expr, wide_operator, NULL);
}

/* To the algebra a narrowing cast is a note on precision; here values get back the type that what
 * stood in their place had. */
static bb_value elementwise(operands *o, const bb_expr *expr, bb_dtype dtype) {
  const bb_product *p = o->r->product;
  expr = bb_expr_substitute(o->r->program, expr, p->own + p->count, o->with);
  expr = bb_repair_numbers(o->r, expr);
  if (expr->dtype != dtype && bb_dtype_is_float(expr->dtype) && bb_dtype_is_float(dtype))
    expr = bb_expr_cast(o->r->program, dtype, expr);
  if (expr->op == BB_X_ARG && o->count == 1) return o->in[0];
  return bb_func_add(o->graph, BB_OP_ELEMENTWISE, expr, o->count, o->in);
}

/* The value of an expression in the body; `spread`: with the axis that is folded. */
static bb_value lower_point(lowering *l, const bb_expr *expr, bool spread, bool other,
                            bb_dtype dtype) {
  bb_repair *r = l->r;
  const bb_product *p = r->product;
  for (point *at = l->made; at; at = at->next)
    if (at->expr == expr && at->along == spread && at->dtype == dtype) return at->value;
  operands o = {.r = r, .graph = l->body};
  bool row = false, col = spread;
  for (uint32_t i = 0; i < p->own; i++) {
    if (!bb_expr_uses_arg(expr, i)) continue;
    const bb_repair_leaf *leaf = leaf_of(r, i);
    if (leaf->coord == BB_NONE) {
      o.with[i] = operand(&o, leaf->inside);
      continue;
    }
    o.with[i] = bb_expr_coord(r->program, leaf->coord);
    row |= leaf->coord == BB_COORD_ROW;
    col |= leaf->coord == BB_COORD_COL;
  }
  for (uint32_t j = 0; j < p->count; j++)
    if (bb_expr_uses_arg(expr, p->own + j)) o.with[p->own + j] = operand(&o, l->component[j]);
  if ((col && !has_axis(&o, true)) || (row && !has_axis(&o, false)) || !o.count)
    operand(&o, along(r, other) ? along(r, other)->inside : leaf_of(r, 0)->inside);
  point *made = BB_NEW(r->arena, point, 1);
  *made = (point){l->made, expr, spread, dtype, elementwise(&o, expr, dtype)};
  l->made = made;
  return made->value;
}

static bb_value lower_rows(lowering *l, bb_monoid_id fold, const bb_expr *expr, bool other,
                           bb_dtype dtype) {
  bb_value in = lower_point(l, expr, true, other, dtype);
  return bb_func_add(l->body, bb_monoid_row_op(fold), NULL, 1, &in);
}

/* factor: the type of what is multiplied. */
static bb_value lower_pair(lowering *l, const pair *p, bb_dtype factor, bb_dtype dtype) {
  if (!p->right) return lower_rows(l, BB_MONOID_SUM, p->left, false, dtype);
  if (!p->left) {
    bb_value rows = lower_rows(l, BB_MONOID_SUM, p->right, true, dtype);
    return bb_func_add(l->body, BB_OP_TRANSPOSE, NULL, 1, &rows);
  }
  bb_value in[2] = {lower_point(l, p->left, true, false, factor),
                    lower_point(l, p->right, true, true, factor)};
  const bb_expr *wide = factor == dtype ? NULL : bb_op_wide_sum(l->r->program, dtype);
  return bb_func_add(l->body, BB_OP_DOT, wide, 2, in);
}

static bb_value lower_product(lowering *l, const bb_expr *expr, bb_dtype factor, bb_dtype dtype) {
  pairs list = {0};
  split(l, expr, &list);
  operands o = {.r = l->r, .graph = l->body};
  const bb_expr *sum = NULL;
  for (uint32_t i = 0; i < list.count; i++) {
    const bb_expr *term = operand(&o, lower_pair(l, &list.pair[i], factor, dtype));
    sum = sum ? make(l, BB_X_ADD, sum, term) : term;
  }
  if (list.count == 1) return o.in[0];
  return bb_func_add(l->body, BB_OP_ELEMENTWISE, sum, o.count, o.in);
}

bb_dtype bb_repair_dtype(const bb_repair *r, uint32_t component) {
  const bb_component *c = &r->product->component[component];
  if (c->payload) return BB_I64;
  return c->term->op == BB_X_CONST ? widest(r) : fold_of(r, component)->dtype;
}

void bb_repair_lower(bb_repair *r, bb_graph *body, bb_value *component) {
  lowering l = {.r = r, .body = body, .component = component};
  for (uint32_t j = 0; j < r->product->count; j++) {
    const bb_component *c = &r->product->component[j];
    const bb_repair_fold *f = fold_of(r, j);
    bb_dtype dtype = bb_repair_dtype(r, j);
    lowers(&l, j);
    if (f->kind == BB_TERM_DOT)
      component[j] = lower_product(&l, c->start, f->factor, dtype);
    else if (f->kind == BB_TERM_POINT)
      component[j] = lower_point(&l, c->start, false, false, dtype);
    else if (c->payload)
      component[j] = (bb_value){component[j - 1].node, 1};
    else
      component[j] = lower_rows(&l, c->fold, c->start, false, dtype);
  }
}

/* What an expression reads of the components, as they stand in the level around. */
static void read_components(operands *o, const bb_expr *expr, const bb_value *component) {
  const bb_product *p = o->r->product;
  for (uint32_t j = 0; j < p->count; j++)
    if (bb_expr_uses_arg(expr, p->own + j)) o->with[p->own + j] = operand(o, component[j]);
}

bb_value bb_repair_finish(bb_repair *r, uint32_t fold, const bb_value *component) {
  const bb_product *p = r->product;
  const bb_expr *finish = bb_repair_scaled(r, fold, p->result[fold].finish);
  finish = bb_repair_limited(r, fold, finish);
  operands o = {.r = r, .graph = r->graph};
  for (uint32_t i = r->elements; i < p->own; i++)
    if (bb_expr_uses_arg(finish, i)) o.with[i] = operand(&o, leaf_of(r, i)->value);
  read_components(&o, finish, component);
  bb_value value = elementwise(&o, finish, r->fold[fold].dtype);
  if (!r->fold[fold].swapped) return value;
  return bb_func_add(r->graph, BB_OP_TRANSPOSE, NULL, 1, &value);
}

/* The index of the whole's first element (of its last one) if indices are what is carried along; else NULL. */
static const bb_expr *first_index(const bb_repair *r, uint32_t fold) {
  const bb_chain_fold *f = &r->product->chain.fold[fold];
  for (uint32_t i = 0; i < r->leaves; i++) {
    const bb_repair_leaf *l = &r->leaf[i];
    if (l->arg != BB_NONE && bb_expr_uses_arg(f->payload, l->arg) && l->coord == BB_NONE)
      return NULL;
  }
  const bb_expr *length = r->product->chain.length, *one = bb_expr_const(r->program, BB_I64, 1);
  bool last = f->fold == BB_MONOID_ARGMAX_LAST || f->fold == BB_MONOID_ARGMIN_LAST;
  if (!last) return bb_expr_const(r->program, BB_I64, 0);
  return length ? bb_expr_make(r->program, BB_X_SUB, length, one, NULL) : NULL;
}

/* Where a fold that terms are relative to is no number, none of them is: the extremum is the first of them,
 * not what was the extremum before. */
bb_value bb_repair_finish_index(bb_repair *r, uint32_t fold, const bb_value *component) {
  const bb_product *p = r->product;
  uint32_t extremum = p->result[fold].component, index = extremum + 1;
  const bb_expr *finish = p->result[fold].finish, *term = p->component[extremum].term, *none = NULL;
  const bb_expr *first = first_index(r, fold);
  for (uint32_t j = 0; j < p->count; j++) {
    const bb_expr *own = bb_expr_arg(r->program, BB_F32, p->own + j);
    if (j == extremum ||
        !(bb_expr_uses_arg(finish, own->index) || bb_expr_uses_arg(term, own->index)))
      continue;
    const bb_expr *lost = bb_expr_make(r->program, BB_X_ISNAN, own, NULL, NULL);
    none = none ? bb_expr_make(r->program, BB_X_OR, none, lost, NULL) : lost;
  }
  if (!none || !first) return component[index];
  const bb_expr *carried = bb_expr_arg(r->program, BB_I64, p->own + index);
  const bb_expr *value = bb_expr_make(r->program, BB_X_SELECT, none, first, carried);
  operands o = {.r = r, .graph = r->graph};
  read_components(&o, value, component);
  return elementwise(&o, value, BB_I64);
}
