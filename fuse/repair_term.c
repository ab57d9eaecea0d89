/* repair_term.c - the terms of dependent folds as scalar expressions, and the product of the chain.
 *
 * A term is traced back from what is folded through elementwise ops, from V's body into U's where
 * U collects what V iterates, and through the ops between the maps.  Where it reaches a fold of the chain
 * it reads that result; anything else that it reaches is a leaf.  A leaf is taken as large as
 * possible, so that the block's own ops are kept: the chain of a softmax is max x, sum exp(x - m)
 * whatever x is made of.  If such a chain is refused, the leaves are opened down to what no
 * elementwise op makes: max(2*t), sum exp(t*2 - m) share t only then.
 */
#include "repair.h"

#include <math.h>
#include <string.h>

typedef struct bb_trace {
  struct bb_trace *next;
  uint32_t map; /* U, V, or BB_NONE: the level around */
  bb_value value;
  bool other;
  const bb_expr *expr;    /* ARGs: results, then leaves */
  const bb_expr *guarded; /* the same with what the program says of infinite maxima */
  bool reads;             /* a result of the chain */
  uint32_t guards;        /* results whose infinities it says something of */
} bb_trace;

/* Terms that are nested deeper are left alone: what is derived of them has to be walked, too. */
enum { VALUES = 200, NODES = 400, DEPTH = 2 * BB_EXPR_JOINED };

typedef struct tracer {
  bb_repair *r;
  uint32_t fold; /* at work */
  uint32_t values;
} tracer;

static const bb_trace *trace(tracer *t, bool second, bb_value value, bool other);

static const bb_trace *refuse(tracer *t, const char *why) {
  bb_repair_refuse(t->r, why);
  return NULL;
}

/* --- leaves --- */

/* Floats of any width are "the working precision" to the algebra. */
static const bb_expr *leaf_arg(const bb_repair *r, uint32_t leaf) {
  bb_dtype dtype = r->leaf[leaf].coord == BB_NONE ? r->leaf[leaf].item.dtype : BB_I64;
  if (bb_dtype_is_float(dtype)) dtype = BB_F32;
  return bb_expr_arg(r->program, dtype, BB_REPAIR_RESULTS + leaf);
}

static uint32_t find_leaf(bb_repair *r, const bb_repair_leaf *key) {
  for (uint32_t i = 0; i < r->leaves; i++) {
    const bb_repair_leaf *l = &r->leaf[i];
    if (l->map == key->map && bb_value_equal(l->value, key->value) && l->coord == key->coord &&
        l->other == key->other)
      return i;
  }
  if (r->leaves == BB_REPAIR_LEAVES) {
    bb_repair_refuse(r, "the terms read too many values");
    return 0;
  }
  r->leaf[r->leaves] = *key;
  r->leaf[r->leaves].arg = BB_NONE;
  return r->leaves++;
}

static bb_trace *keep(tracer *t, uint32_t map, bb_value value, bool other, const bb_expr *expr) {
  bb_trace *made = BB_NEW(t->r->arena, bb_trace, 1);
  *made = (bb_trace){t->r->trace, map, value, other, expr, expr, bb_repair_reads_results(expr), 0};
  t->r->trace = made;
  return made;
}

static const bb_trace *found(const tracer *t, uint32_t map, bb_value value, bool other) {
  const bb_trace *at = t->r->trace;
  while (at && !(at->map == map && bb_value_equal(at->value, value) && at->other == other))
    at = at->next;
  return at;
}

static const bb_trace *leaf_value(tracer *t, uint32_t map, bb_value value, const bb_type *type,
                                  bool other, bool fixed) {
  if (type->rank) return refuse(t, "a term reads a list");
  bool rows = type->item.row != BB_NO_DIM;
  bb_repair_leaf key = {.map = map,
                        .value = value,
                        .coord = BB_NONE,
                        .other = other && rows,
                        .fixed = fixed,
                        .item = type->item};
  return keep(t, map, value, other, leaf_arg(t->r, find_leaf(t->r, &key)));
}

/* --- elementwise ops --- */

typedef struct operands {
  tracer *t;
  const bb_expr *const *with;
  bool other, outside;
} operands;

static const bb_expr *replace_leaf(void *user, const bb_expr *leaf) {
  operands *o = user;
  if (leaf->op == BB_X_ARG) return o->with[leaf->index];
  if (leaf->op != BB_X_COORD) return leaf;
  bool of_map = leaf->index >= BB_COORD_MAP;
  if (of_map && o->outside)
    bb_repair_refuse(o->t->r, "an index of a loop is read between the maps");
  bb_repair_leaf key = {.map = BB_NONE,
                        .value = {BB_NONE, 0},
                        .coord = leaf->index,
                        .other = o->other && leaf->index == BB_COORD_ROW};
  return leaf_arg(o->t->r, find_leaf(o->t->r, &key));
}

static const bb_expr *expr_of(tracer *t, const bb_node *node, const bb_expr *const *with,
                              bool other, bool outside) {
  bb_program *program = t->r->program;
  operands o = {t, with, other, outside};
  if (node->op == BB_OP_ELEMENTWISE)
    return bb_expr_map_leaves(program, node->expr, replace_leaf, &o);
  const bb_expr *made = bb_op_expr(program, node->op, with[0], with[1]);
  bool less = made->op == BB_X_ADD && with[1]->op == BB_X_NEG;
  return less ? bb_expr_make(program, BB_X_SUB, with[0], with[1]->a[0], NULL) : made;
}

static bool is_too_deep(const bb_node *node, const bb_trace *const *in) {
  uint32_t own = node->op == BB_OP_ELEMENTWISE ? node->expr->depth : 2, most = 0;
  for (uint32_t i = 0; i < node->nin; i++)
    if (in[i]->guarded->depth > most) most = in[i]->guarded->depth;
  return own + most > DEPTH;
}

/* The value of an elementwise op on what was traced. */
static const bb_trace *keep_op(tracer *t, uint32_t map, bb_value value, const bb_node *node,
                               const bb_trace *const *in, bool other) {
  bb_repair *r = t->r;
  const bb_expr **with = BB_NEW(r->arena, const bb_expr *, node->nin);
  const bb_expr **guarded = BB_NEW(r->arena, const bb_expr *, node->nin);
  uint32_t guards = 0;
  if (is_too_deep(node, in)) return refuse(t, "the terms are nested too deep");
  for (uint32_t i = 0; i < node->nin; i++) {
    with[i] = in[i]->expr;
    guarded[i] = in[i]->guarded;
    guards |= in[i]->guards;
  }
  const bb_expr *expr = expr_of(t, node, with, other, map == BB_NONE);
  bb_trace *made = keep(t, map, value, other, bb_repair_unguarded(r, expr, &guards));
  made->guarded = expr_of(t, node, guarded, other, map == BB_NONE);
  made->guards = guards;
  return r->why ? NULL : made;
}

/* --- values --- */

static const bb_trace *result_of(tracer *t, uint32_t map, bb_value value, bool other,
                                 const bb_repair_fold *fold, uint32_t which, const bb_item *item) {
  if (other && item->row != BB_NO_DIM)
    return refuse(t, "both operands of a product depend on the fold");
  bool whole = !bb_dtype_is_float(item->dtype), index = which && whole;
  /* Their sums and differences wrap, and -inf is none of them: what holds of numbers does not hold of them. */
  if (whole && !index) return refuse(t, "terms depend on a fold of integers");
  const bb_expr *arg =
      bb_expr_arg(t->r->program, index ? item->dtype : BB_F32, fold->result + which);
  return keep(t, map, value, other, arg);
}

/* A value of the level that holds both maps. */
static const bb_trace *trace_level(tracer *t, bb_value value, bool other) {
  bb_repair *r = t->r;
  const bb_trace *known = found(t, BB_NONE, value, other);
  if (known) return known;
  const bb_node *node = bb_node_get(r->graph, value.node);
  const bb_type *type = node->out[value.port].type;
  if (value.node == r->u && node->out[value.port].mode == BB_OUT_FOLD) {
    const bb_out *out = &node->out[value.port];
    const bb_repair_fold *fold = bb_repair_fold_of(r, false, value.port);
    if (fold) return result_of(t, BB_NONE, value, other, fold, 0, &type->item);
    fold = value.port ? bb_repair_fold_of(r, false, value.port - 1) : NULL;
    if (!fold || !out->component) return refuse(t, "a fold is not part of the chain");
    return result_of(t, BB_NONE, value, other, fold, 1, &type->item);
  }
  if (++t->values > VALUES) return refuse(t, "the terms are too large");
  if (node->kind != BB_NODE_FUNC || type->rank)
    return leaf_value(t, BB_NONE, value, type, other, bb_repair_is_fixed(r, value));
  const bb_trace **in = BB_NEW(r->arena, const bb_trace *, node->nin);
  bool reads = false;
  for (uint32_t i = 0; i < node->nin; i++) {
    in[i] = trace_level(t, node->in[i].src, other);
    if (!in[i]) return NULL;
    reads |= in[i]->reads;
  }
  if (!reads) return leaf_value(t, BB_NONE, value, type, other, bb_repair_is_fixed(r, value));
  if (!bb_repair_elementwise(node))
    return refuse(t,
                  bb_arena_printf(r->program->arena, "the fold passes through %s before it is used",
                                  bb_op_get(node->op)->name));
  return keep_op(t, BB_NONE, value, node, in, other);
}

/* The in-port that feeds an input of a body. */
static uint32_t port_of(const bb_graph *body, uint32_t input) {
  uint32_t port = 0;
  while (body->input[port] != input) port++;
  return port;
}

static const bb_trace *trace_input(tracer *t, bool second, bb_value value, bool other) {
  bb_repair *r = t->r;
  const bb_graph *body = bb_repair_body(r, second);
  uint32_t map = bb_repair_map(r, second);
  const bb_in *in = &bb_node_get(r->graph, map)->in[port_of(body, value.node)];
  const bb_type *type = bb_type_of(body, value);
  bool item = in->level == BB_WHOLE && !type->rank;
  if (second && in->src.node == r->u) {
    const bb_out *out = &bb_node_get(r->graph, r->u)->out[in->src.port];
    if (out->mode != BB_OUT_FOLD)
      return trace(t, false, bb_repair_folded(r, false, in->src.port), other);
  }
  if (item) return trace_level(t, in->src, other);
  const bb_node *u = bb_node_get(r->graph, r->u);
  for (uint32_t i = 0; second && i < u->nin; i++)
    if (bb_value_equal(u->in[i].src, in->src) && u->in[i].level == in->level)
      return trace(t, false, (bb_value){u->inner->input[i], 0}, other);
  return leaf_value(t, map, value, type, other, false);
}

static bool same_group(const bb_repair *r, const bb_repair_fold *a, const bb_repair_fold *b) {
  const bb_node *map = bb_node_get(r->graph, bb_repair_map(r, a->second));
  const bb_out *x = &map->out[a->port], *y = &map->out[b->port];
  return a->second == b->second && x->fold->id == BB_MONOID_TUPLE && x->fold == y->fold &&
         a->port - x->component == b->port - y->component;
}

/* A term of a tuple may read the components before it: those of the block alone. */
static const bb_trace *trace_own(tracer *t, bool second, bb_value value, bool other) {
  bb_repair *r = t->r;
  for (uint32_t i = 0; i < t->fold; i++) {
    const bb_repair_fold *f = &r->fold[i];
    if (f->second != second || !same_group(r, f, &r->fold[t->fold])) continue;
    bool pair = bb_monoid_get(f->fold)->components == 2;
    for (uint32_t k = 0; k < 1u + pair; k++) {
      if (!bb_value_equal(bb_repair_folded(r, second, f->port + k), value)) continue;
      const bb_type *type = bb_type_of(bb_repair_body(r, second), value);
      return result_of(t, bb_repair_map(r, second), value, other, f, k, &type->item);
    }
  }
  return NULL;
}

static const bb_trace *trace(tracer *t, bool second, bb_value value, bool other) {
  bb_repair *r = t->r;
  uint32_t map = bb_repair_map(r, second);
  const bb_trace *known = found(t, map, value, other);
  if (known || r->why) return known;
  if (++t->values > VALUES) return refuse(t, "the terms are too large");
  const bb_graph *body = bb_repair_body(r, second);
  const bb_node *node = bb_node_get(body, value.node);
  const bb_trace *own = trace_own(t, second, value, other);
  if (own || r->why) return own;
  if (node->kind == BB_NODE_INPUT) return trace_input(t, second, value, other);
  if (!bb_repair_elementwise(node)) {
    if (bb_repair_marked(r, second, value))
      return refuse(
          t, bb_arena_printf(r->program->arena,
                             "a value that depends on the fold passes through %s before "
                             "it is folded",
                             node->kind == BB_NODE_FUNC ? bb_op_get(node->op)->name : "a loop"));
    return leaf_value(t, map, value, node->out[value.port].type, other, false);
  }
  const bb_trace **in = BB_NEW(r->arena, const bb_trace *, node->nin);
  bool reads = false;
  for (uint32_t i = 0; i < node->nin; i++) {
    in[i] = trace(t, second, node->in[i].src, other);
    if (!in[i]) return NULL;
    reads |= in[i]->reads;
  }
  if (!reads && is_too_deep(node, in))
    return leaf_value(t, map, value, node->out[value.port].type, other, false);
  return keep_op(t, map, value, node, in, other);
}

/* --- terms --- */

static bool product_term(tracer *t, bb_repair_fold *f, const bb_node *dot) {
  bb_repair *r = t->r;
  f->kind = BB_TERM_DOT;
  bool marked[2];
  for (uint32_t i = 0; i < 2; i++) {
    f->operand[i] = dot->in[i].src;
    marked[i] = bb_repair_marked(r, f->second, f->operand[i]);
  }
  f->swapped = marked[1] && !marked[0];
  const bb_trace *main = trace(t, f->second, f->operand[f->swapped], false);
  const bb_trace *side = main ? trace(t, f->second, f->operand[!f->swapped], true) : NULL;
  if (!side) return false;
  f->term = bb_expr_make(r->program, BB_X_MUL, main->expr, side->expr, NULL);
  bb_repair_note_guards(r, f,
                        bb_expr_make(r->program, BB_X_MUL, main->guarded, side->guarded, NULL),
                        main->guards | side->guards);
  return true;
}

static bool read_term(tracer *t, bb_repair_fold *f) {
  bb_repair *r = t->r;
  const bb_graph *body = bb_repair_body(r, f->second);
  bb_value value = bb_repair_folded(r, f->second, f->port);
  const bb_node *node = bb_node_get(body, value.node);
  bool func = node->kind == BB_NODE_FUNC, pair = bb_monoid_get(f->fold)->components == 2;
  f->along = BB_NO_DIM;
  f->dtype = bb_type_of(body, value)->item.dtype;
  if (func && node->op == BB_OP_DOT && f->fold == BB_MONOID_SUM) {
    f->along = bb_type_of(body, node->in[0].src)->item.col;
    f->factor = bb_type_of(body, node->in[0].src)->item.dtype;
    return product_term(t, f, node);
  }
  bool rows = func && node->op == bb_monoid_row_op(f->fold) && value.port == 0;
  f->kind = rows ? BB_TERM_ROWS : BB_TERM_POINT;
  f->operand[0] = rows ? node->in[0].src : value;
  const bb_trace *term;
  if (rows) f->along = bb_type_of(body, f->operand[0])->item.col;
  term = trace(t, f->second, f->operand[0], false);
  if (!term) return false;
  f->term = term->expr;
  bb_repair_note_guards(r, f, term->guarded, term->guards);
  if (!pair) return true;
  bb_value index = bb_repair_folded(r, f->second, f->port + 1);
  if (rows && index.node == value.node && index.port == 1) {
    bb_repair_leaf key = {.map = BB_NONE, .value = {BB_NONE, 0}, .coord = BB_COORD_COL};
    f->payload = leaf_arg(r, find_leaf(r, &key));
    return !r->why;
  }
  const bb_trace *payload = rows ? NULL : trace(t, f->second, index, false);
  if (!payload) return bb_repair_refuse(r, "the index of an extremum is computed");
  f->payload = payload->expr;
  return true;
}

/* --- leaves as large as possible --- */

/* The leaf that stands for a value with this expression: one in use already, or (with `any`) the value
 * of any op traced. */
static const bb_expr *leaf_for(bb_repair *r, const bb_expr *expr, bool any) {
  for (uint32_t i = 0; i < r->leaves; i++)
    if (r->leaf[i].expr == expr && (any || r->leaf[i].arg != BB_NONE)) return leaf_arg(r, i);
  if (!any) return NULL;
  for (const bb_trace *at = r->trace; at; at = at->next) {
    if (at->expr != expr || at->reads || at->map == BB_NONE) continue;
    const bb_item *item = &bb_type_of(bb_repair_body(r, at->map == r->v), at->value)->item;
    bb_repair_leaf key = {.map = at->map,
                          .value = at->value,
                          .coord = BB_NONE,
                          .other = at->other && item->row != BB_NO_DIM,
                          .item = *item,
                          .expr = expr};
    uint32_t leaf = find_leaf(r, &key);
    r->leaf[leaf].expr = expr;
    return leaf_arg(r, leaf);
  }
  return NULL;
}

static const bb_expr *with_leaves(bb_repair *r, const bb_expr *expr, bool any) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(r->arena, expr, &count);
  const bb_expr **made = BB_NEW(r->arena, const bb_expr *, count);
  if (count > NODES) return expr;
  for (uint32_t i = 0; i < count; i++) {
    const bb_expr *a[3] = {NULL, NULL, NULL};
    for (uint32_t k = 0; k < bb_expr_op_arity(node[i]->op); k++)
      for (uint32_t j = 0; j < i; j++)
        if (node[j] == node[i]->a[k]) a[k] = made[j];
    made[i] = a[0] ? leaf_for(r, node[i], any) : node[i];
    if (made[i]) continue;
    made[i] = node[i]->op == BB_X_CAST ? bb_expr_cast(r->program, node[i]->dtype, a[0])
                                       : bb_expr_make(r->program, node[i]->op, a[0], a[1], a[2]);
  }
  return made[count - 1];
}

static void use_leaves(bb_repair *r, const bb_expr *expr) {
  for (uint32_t i = 0; i < r->leaves; i++)
    if (expr && bb_expr_uses_arg(expr, BB_REPAIR_RESULTS + i)) r->leaf[i].arg = 0;
}

static void choose_leaves(bb_repair *r) {
  for (uint32_t i = 0; i < r->leaves; i++) r->leaf[i].arg = BB_NONE;
  for (uint32_t i = 0; i < r->folds; i++) {
    bb_repair_fold *f = &r->fold[i];
    if (!r->deep) f->term = with_leaves(r, with_leaves(r, f->term, false), true);
    use_leaves(r, f->term);
    use_leaves(r, f->payload);
  }
}

/* --- the chain --- */

static const char *fold_name(const bb_repair *r, uint32_t fold) {
  static const char *const base[] = {
      [BB_MONOID_SUM] = "s",         [BB_MONOID_MAX] = "m",        [BB_MONOID_MIN] = "m",
      [BB_MONOID_PROD] = "p",        [BB_MONOID_ARGMAX] = "a",     [BB_MONOID_ARGMIN] = "a",
      [BB_MONOID_ARGMAX_LAST] = "a", [BB_MONOID_ARGMIN_LAST] = "a"};
  uint32_t number = 1;
  const bb_repair_fold *f = &r->fold[fold];
  const char *name = f->kind == BB_TERM_DOT ? "o" : base[f->fold];
  for (uint32_t i = 0; i < fold; i++) {
    const bb_repair_fold *g = &r->fold[i];
    number += !strcmp(g->kind == BB_TERM_DOT ? "o" : base[g->fold], name);
  }
  return number == 1 ? name : bb_arena_printf(r->program->arena, "%s%u", name, number);
}

/* Elements and fixed values by short names: x, y, z; v of a product's other side; k; i. */
static const char *leaf_name(const bb_repair *r, const bb_repair_leaf *l, uint32_t number) {
  static const char *const element[] = {"x", "y", "z", "u", "w"};
  if (l->coord != BB_NONE)
    return l->coord == BB_COORD_COL   ? "j"
           : l->coord == BB_COORD_ROW ? "i"
                                      : bb_arena_printf(r->program->arena, "i%u", l->coord);
  const char *name = l->fixed ? "k" : l->other ? "v" : NULL;
  if (!name && number < sizeof element / sizeof *element) return element[number];
  if (!name) return bb_arena_printf(r->program->arena, "c%u", number);
  return number ? bb_arena_printf(r->program->arena, "%s%u", name, number + 1) : name;
}

static bb_range leaf_range(bb_repair *r, const bb_repair_leaf *l) {
  bb_range range = BB_RANGE_ANY;
  if (l->coord != BB_NONE) range.lo = 0;
  if (!l->expr) return range;
  bb_range_env env = {.real = true};
  range = bb_range_of(&env, r->program, l->expr);
  range.nan = range.infinite = false;
  return range;
}

static bool divides_by(bb_repair *r, const bb_expr *expr, uint32_t arg) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(r->arena, expr, &count);
  for (uint32_t i = 0; i < count; i++)
    if (node[i]->op == BB_X_DIV && node[i]->a[1]->op == BB_X_ARG && node[i]->a[1]->index == arg)
      return true;
  return false;
}

/* How many elements a fold has; NULL: what a block holds of them is known only when it runs. */
static const bb_expr *length_of(const bb_repair *r) {
  bb_dim dim = bb_node_get(r->graph, r->v)->dim, along = r->fold[0].along;
  bool blocked = bb_dim_get(r->program, dim)->blocked;
  if (along == BB_NO_DIM ? blocked : along != dim) return NULL;
  const bb_expr *here = bb_expr_extent_name(r->program, dim);
  return bb_repair_around(r, here);
}

enum { LONG = 64 };

/* The length and its inverse as names: high powers of the number would not fit a fraction. */
static const bb_expr *name_length(void *user, const bb_expr *leaf) {
  const bb_repair *r = user;
  const bb_expr *length = length_of(r);
  if (!length || leaf->op != BB_X_CONST) return leaf;
  const bb_expr *number = bb_expr_without_names(r->program, length);
  double value = number->op == BB_X_CONST ? number->number : 0;
  if (value < LONG) return leaf;
  bool inverse = leaf->number == 1 / value;
  if (!inverse && leaf->number != value) return leaf;
  const bb_expr *name = bb_expr_cast(r->program, leaf->dtype, length);
  const bb_expr *one = bb_expr_const(r->program, leaf->dtype, 1);
  return inverse ? bb_expr_make(r->program, BB_X_DIV, one, name, NULL) : name;
}

static const bb_expr *renumber(bb_repair *r, const bb_expr *expr) {
  const bb_expr *with[BB_REPAIR_RESULTS + BB_REPAIR_LEAVES] = {NULL};
  uint32_t outer = r->elements + r->fixed;
  if (!expr) return NULL;
  for (uint32_t i = 0, at = outer; i < r->folds; i++)
    for (uint32_t k = 0; k < bb_monoid_get(r->fold[i].fold)->components; k++)
      with[r->fold[i].result + k] = bb_expr_arg(r->program, BB_F32, at++);
  for (uint32_t i = 0; i < r->leaves; i++)
    if (r->leaf[i].arg != BB_NONE)
      with[BB_REPAIR_RESULTS + i] = bb_expr_arg(r->program, leaf_arg(r, i)->dtype, r->leaf[i].arg);
  expr = bb_expr_substitute(r->program, expr, BB_REPAIR_RESULTS + r->leaves, with);
  return bb_expr_map_leaves(r->program, expr, name_length, r);
}

static void number_leaves(bb_repair *r, const char **name, bb_range *range) {
  uint32_t count = 0;
  for (uint32_t fixed = 0; fixed < 2; fixed++) {
    uint32_t plain = 0, other = 0;
    for (uint32_t i = 0; i < r->leaves; i++) {
      bb_repair_leaf *l = &r->leaf[i];
      if (l->arg == BB_NONE || l->fixed != (bool)fixed) continue;
      name[count] = leaf_name(r, l, l->other ? other : plain);
      other += l->other, plain += !l->other && l->coord == BB_NONE;
      range[count] = leaf_range(r, l);
      for (uint32_t f = 0; f < r->folds && fixed; f++)
        range[count].nonzero |= divides_by(r, r->fold[f].term, BB_REPAIR_RESULTS + i);
      l->arg = count++;
    }
    *(fixed ? &r->fixed : &r->elements) = count - (fixed ? r->elements : 0);
  }
}

static bool derive(bb_repair *r) {
  const char **name = BB_NEW(r->arena, const char *, BB_REPAIR_LEAVES);
  bb_range *range = BB_NEW(r->arena, bb_range, BB_REPAIR_LEAVES);
  choose_leaves(r);
  if (r->why) return false;
  number_leaves(r, name, range);
  bb_chain_fold *fold = BB_NEW(r->arena, bb_chain_fold, r->folds);
  for (uint32_t i = 0; i < r->folds; i++)
    fold[i] = (bb_chain_fold){.name = fold_name(r, i),
                              .fold = r->fold[i].fold,
                              .term = renumber(r, r->fold[i].term),
                              .payload = renumber(r, r->fold[i].payload)};
  bb_chain chain = {.elements = r->elements,
                    .fixed = r->fixed,
                    .folds = r->folds,
                    .name = name,
                    .range = range,
                    .fold = fold,
                    .length = length_of(r)};
  r->product = bb_product_derive(r->program, &chain);
  if (!r->product->refused) return true;
  if (!r->why) r->refused = r->product->refused_fold;
  return bb_repair_refuse(r, r->product->refused);
}

bool bb_repair_derive(bb_repair *r) {
  tracer t = {.r = r};
  for (uint32_t i = 0; i < r->folds; i++) {
    t.fold = i;
    r->refused = i;
    if (!read_term(&t, &r->fold[i])) return false;
    r->refused = BB_NONE;
    if (r->fold[i].along != r->fold[0].along)
      return bb_repair_refuse(r, "the maps fold along different axes");
  }
  if (!bb_repair_count(r)) return false;
  bb_repair *deep = BB_NEW(r->arena, bb_repair, 1);
  *deep = *r;
  if (!bb_repair_pivot(r))
    *r = *deep; /* as they stand: they are elements, or are made safe later */
  *deep = *r;
  deep->deep = true;
  if (derive(r) && bb_repair_lowers(r)) return true;
  if (!derive(deep) || !bb_repair_lowers(deep)) return false;
  *r = *deep;
  return true;
}
