/* verify_graph.c - the laws of levels: structure, types, and which loop binds each axis of an item.
 *
 * An axis of an item is either chunked by a list of its type, or bound: one enclosing map's loop
 * walks its chunks.  Types do not say which loop, so it is derived here: iterating a list that
 * chunks an axis binds it to that map, collecting turns it into a list again.  Operands of one op must
 * have common axes bound by one loop, else blocks of different places would be combined.
 */
#include "verify_law.h"

#include <string.h>

/* Of one axis: none, chunked by a list, or bound by the loop at depth - BOUND (0: outermost). */
enum { NO_AXIS, LISTED, BOUND };

typedef struct binding {
  uint32_t row, col;
} binding;

/* A level under examination; levels around it by `outer`. */
typedef struct level {
  bb_verifier *v;
  const bb_graph *graph;
  const struct level *outer;
  const bb_node *map;    /* whose inner level it is; NULL: the root */
  uint32_t depth;        /* maps around it */
  const uint32_t *order; /* of the live nodes */
  uint32_t *base;        /* by node: where its out-ports begin in bound[] */
  binding *bound;        /* by out-port */
} level;

static const bb_type *in_type(const level *l, const bb_node *node, uint32_t port) {
  return bb_type_of(l->graph, node->in[port].src);
}

static binding *bound_of(const level *l, bb_value value) {
  return &l->bound[l->base[value.node] + value.port];
}

/* --- types --- */

static bool check_item_axis(level *l, bb_place place, bb_dim dim) {
  const bb_program *program = l->v->program;
  if (dim == BB_NO_DIM) return true;
  if (dim >= program->dims)
    return bb_law_broken(l->v, BB_LAW_TYPED, place, "an axis without a dim");
  if (!program->dim[dim].blocked)
    return bb_law_broken(l->v, BB_LAW_ENUMERATED_ITEM, place, "%s is enumerated",
                         program->dim[dim].name);
  return true;
}

static bool check_type(level *l, bb_place place, const bb_type *type) {
  const bb_program *program = l->v->program;
  if (!type) return bb_law_broken(l->v, BB_LAW_TYPED, place, "it has no type");
  if (!check_item_axis(l, place, type->item.row) || !check_item_axis(l, place, type->item.col))
    return false;
  uint32_t rows = 0, cols = 0;
  for (uint32_t i = 0; i < type->rank; i++) {
    bb_level list = type->level[i];
    if (list.dim >= program->dims)
      return bb_law_broken(l->v, BB_LAW_TYPED, place, "list %u has no dim", i);
    if (list.axis == BB_AXIS_NONE) continue;
    bb_dim dim = list.axis == BB_AXIS_ROW ? type->item.row : type->item.col;
    uint32_t *count = list.axis == BB_AXIS_ROW ? &rows : &cols;
    if (dim != list.dim || ++*count > 1)
      return bb_law_broken(l->v, BB_LAW_LEVEL_AXIS, place, "list %u over %s", i,
                           program->dim[list.dim].name);
  }
  return true;
}

/* Is `element` the element of list `at` of `type` (BB_WHOLE: type itself)? */
static bool is_element(const bb_type *element, const bb_type *type, uint32_t at) {
  if (at == BB_WHOLE) return element == type;
  if (at >= type->rank || element->rank + 1 != type->rank) return false;
  for (uint32_t i = 0; i < element->rank; i++)
    if (!bb_level_equal(element->level[i], type->level[i + (i >= at)])) return false;
  return element->item.dtype == type->item.dtype && element->item.row == type->item.row &&
         element->item.col == type->item.col;
}

/* What a type alone says about its axes; an axis that no list chunks is BOUND there. */
static binding listed_axes(const bb_type *type) {
  binding b = {type->item.row == BB_NO_DIM ? NO_AXIS : BOUND,
               type->item.col == BB_NO_DIM ? NO_AXIS : BOUND};
  for (uint32_t i = 0; i < type->rank; i++) {
    if (type->level[i].axis == BB_AXIS_ROW) b.row = LISTED;
    if (type->level[i].axis == BB_AXIS_COL) b.col = LISTED;
  }
  return b;
}

/* A value that comes from global memory. */
static bool check_whole(level *l, uint32_t at) {
  const bb_node *node = l->graph->node[at];
  for (uint32_t i = 0; i < node->nout; i++) {
    binding b = listed_axes(node->out[i].type);
    if (b.row == BOUND || b.col == BOUND)
      return bb_law_broken(l->v, BB_LAW_LISTED_AXES, bb_at_out(node, i), "its %s axis has no list",
                           b.row == BOUND ? "row" : "col");
    *bound_of(l, (bb_value){at, i}) = b;
  }
  return true;
}

/* --- functional ops --- */

static bool check_coord(level *l, const bb_node *node, const bb_expr *coord) {
  uint32_t which = coord->index;
  const bb_item *item = &node->out[0].type->item;
  if (which == BB_COORD_ROW || which == BB_COORD_COL) {
    if ((which == BB_COORD_ROW ? item->row : item->col) != BB_NO_DIM) return true;
    return bb_law_broken(l->v, BB_LAW_COORD_AXIS, bb_at_node(node), "no operand has a %s axis",
                         which == BB_COORD_ROW ? "row" : "col");
  }
  if (which < BB_COORD_MAP || which >= BB_COORD_AXIS)
    return bb_law_broken(l->v, BB_LAW_EXPR_LEAVES, bb_at_node(node), "coordinate %u", which);
  const level *outer = l;
  for (uint32_t k = which - BB_COORD_MAP; k && outer; k--) outer = outer->outer;
  if (!outer || !outer->map)
    return bb_law_broken(l->v, BB_LAW_COORD_MAP, bb_at_node(node),
                         "there are only %u maps around it", l->depth);
  const bb_dim_info *dim = &l->v->program->dim[outer->map->dim];
  if (dim->blocked)
    return bb_law_broken(l->v, BB_LAW_COORD_MAP, bb_at_node(node), "the map over %s is blocked",
                         dim->name);
  return true;
}

bool bb_verify_expr(bb_verifier *v, bb_place place, const bb_expr *expr, uint32_t count,
                    const bb_dtype *dtype) {
  uint32_t nodes;
  const bb_expr **node = bb_expr_postorder(v->scratch, expr, &nodes);
  for (uint32_t i = 0; i < nodes; i++) {
    const bb_expr *leaf = node[i];
    if (leaf->op == BB_X_ARG && leaf->index >= count)
      return bb_law_broken(v, BB_LAW_EXPR_ARGS, place, "argument %u of %u", leaf->index, count);
    if (leaf->op == BB_X_ARG && leaf->dtype != dtype[leaf->index])
      return bb_law_broken(v, BB_LAW_EXPR_ARGS, place, "argument %u is %s, its operand %s",
                           leaf->index, bb_dtype_name(leaf->dtype),
                           bb_dtype_name(dtype[leaf->index]));
    if (leaf->op == BB_X_EXTENT && leaf->dim >= v->program->dims)
      return bb_law_broken(v, BB_LAW_EXPR_LEAVES, place, "the extent of no dim");
    if (leaf->op == BB_X_SYMBOL && leaf->index >= v->program->symbols)
      return bb_law_broken(v, BB_LAW_EXPR_LEAVES, place, "no symbol");
    for (uint32_t k = 0; k < bb_expr_op_arity(leaf->op); k++)
      if (bb_dtype_is_stored(leaf->a[k]->dtype) && leaf->op != BB_X_CAST &&
          !(leaf->op == BB_X_SELECT && k && leaf->a[k]->dtype == leaf->dtype))
        return bb_law_broken(v, BB_LAW_EXPR_STORED, place, "%s of %s", bb_expr_op_name(leaf->op),
                             bb_dtype_name(leaf->a[k]->dtype));
  }
  return true;
}

static bool check_expr(level *l, const bb_node *node) {
  bb_arena *scratch = l->v->scratch;
  bb_dtype *dtype = BB_NEW(scratch, bb_dtype, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) dtype[i] = in_type(l, node, i)->item.dtype;
  if (!bb_verify_expr(l->v, bb_at_node(node), node->expr, node->nin, dtype)) return false;
  if (!bb_expr_uses_coord(node->expr)) return true;
  uint32_t nodes;
  const bb_expr **leaf = bb_expr_postorder(scratch, node->expr, &nodes);
  for (uint32_t i = 0; i < nodes; i++)
    if (leaf[i]->op == BB_X_COORD && !check_coord(l, node, leaf[i])) return false;
  return true;
}

/* One axis of two operands: it may be missing in either. */
static bool unite(level *l, const bb_node *node, uint32_t *axis, uint32_t other, const char *name) {
  if (*axis != NO_AXIS && other != NO_AXIS && *axis != other)
    return bb_law_broken(l->v, BB_LAW_BOUND_AXES, bb_at_node(node), "two loops bind the %s axis",
                         name);
  if (other != NO_AXIS) *axis = other;
  return true;
}

/* Which loop binds each axis of the results. */
static bool bind_func(level *l, const bb_node *node, binding *result) {
  binding a = node->nin ? *bound_of(l, node->in[0].src) : (binding){NO_AXIS, NO_AXIS};
  binding b = node->nin > 1 ? *bound_of(l, node->in[1].src) : a;
  switch (node->op) {
  case BB_OP_DOT:
    *result = (binding){a.row, b.row};
    return unite(l, node, &a.col, b.col, "contracted");
  case BB_OP_OUTER: *result = (binding){a.row, b.row}; return true;
  case BB_OP_TRANSPOSE: *result = (binding){a.col, a.row}; return true;
  default: break;
  }
  *result = (binding){NO_AXIS, NO_AXIS};
  for (uint32_t i = 0; i < node->nin; i++) {
    b = *bound_of(l, node->in[i].src);
    if (!unite(l, node, &result->row, b.row, "row") || !unite(l, node, &result->col, b.col, "col"))
      return false;
  }
  if (node->out[0].type->item.col == BB_NO_DIM) result->col = NO_AXIS; /* folded by the op */
  return true;
}

static bool check_row_fold(level *l, const bb_node *node) {
  bb_folded folded[BB_OP_RESULTS];
  for (uint32_t i = 0; i < node->nin; i++) folded[i] = (bb_folded){in_type(l, node, i), BB_WHOLE};
  return bb_verify_monoid(l->v, bb_at_node(node), node->rows) &&
         bb_verify_folded(l->v, bb_at_node(node), node->rows, folded);
}

static bool check_func(level *l, uint32_t at) {
  const bb_node *node = l->graph->node[at];
  bb_item *in = BB_NEW(l->v->scratch, bb_item, node->nin), out[BB_OP_RESULTS];
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_type *type = in_type(l, node, i);
    if (type->rank)
      return bb_law_broken(l->v, BB_LAW_OP_OPERANDS, bb_at_in(node, i), "the operand is a list");
    in[i] = type->item;
  }
  if (node->op == BB_OP_ELEMENTWISE && node->expr->arg_count > node->nin)
    return bb_law_broken(l->v, BB_LAW_EXPR_ARGS, bb_at_node(node), "argument %u of %u",
                         node->expr->arg_count - 1, node->nin);
  const char *wrong = bb_op_infer(node->op, node->expr, node->nin, in, out);
  if (wrong) return bb_law_broken(l->v, BB_LAW_OP_OPERANDS, bb_at_node(node), "%s", wrong);
  for (uint32_t i = 0; i < node->nout; i++) {
    const bb_type *type = node->out[i].type;
    if (type->rank || type->item.dtype != out[i].dtype || type->item.row != out[i].row ||
        type->item.col != out[i].col)
      return bb_law_broken(l->v, BB_LAW_OP_RESULT, bb_at_out(node, i),
                           "the rule gives another item");
  }
  if (node->op == BB_OP_ELEMENTWISE && !check_expr(l, node)) return false;
  if (bb_op_has_monoid(node->op) && !check_row_fold(l, node)) return false;
  binding result;
  if (!bind_func(l, node, &result)) return false;
  for (uint32_t i = 0; i < node->nout; i++) *bound_of(l, (bb_value){at, i}) = result;
  return true;
}

/* --- reductions --- */

/* Components that combine reads together have their common axes bound by one loop.  `first` is the
 * value of component 0, the others are its neighbours. */
static bool check_folded_axes(level *l, const bb_node *node, const bb_monoid *monoid,
                              bb_value first) {
  for (uint32_t k = 0; k < monoid->components; k++)
    for (uint32_t j = 0; j < monoid->components; j++) {
      bb_value own = {first.node, first.port + k}, read = {first.node, first.port + j};
      binding a = *bound_of(l, own), b = *bound_of(l, read);
      if (!bb_monoid_reads(monoid, k, j)) continue;
      if (!unite(l, node, &a.row, b.row, "row") || !unite(l, node, &a.col, b.col, "col"))
        return false;
    }
  return true;
}

static bool check_reduce(level *l, uint32_t at) {
  const bb_node *node = l->graph->node[at];
  bb_folded folded[BB_MONOID_COMPONENTS];
  if (!bb_verify_monoid(l->v, bb_at_node(node), node->monoid)) return false;
  if (node->nin != node->monoid->components || node->nout != node->nin)
    return bb_law_broken(l->v, BB_LAW_REDUCE_COMPONENTS, bb_at_node(node),
                         "%u operands and %u results for %u components", node->nin, node->nout,
                         node->monoid->components);
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_type *type = in_type(l, node, i), *first = in_type(l, node, 0);
    uint32_t list = node->in[i].level;
    if (list >= type->rank)
      return bb_law_broken(l->v, BB_LAW_REDUCE_LEVEL, bb_at_in(node, i), "there is no list %u",
                           list);
    if (type->level[list].axis != BB_AXIS_NONE ||
        type->level[list].dim != first->level[node->in[0].level].dim)
      return bb_law_broken(l->v, BB_LAW_REDUCE_LEVEL, bb_at_in(node, i), "the list over %s",
                           l->v->program->dim[type->level[list].dim].name);
    bool fold = node->reduce == BB_REDUCE_FOLD;
    if (!is_element(node->out[i].type, type, fold ? list : BB_WHOLE))
      return bb_law_broken(l->v, BB_LAW_REDUCE_RESULT, bb_at_out(node, i), "it has another type");
    *bound_of(l, (bb_value){at, i}) = *bound_of(l, node->in[i].src);
    folded[i] = (bb_folded){type, list};
  }
  return bb_verify_folded(l->v, bb_at_node(node), node->monoid, folded) &&
         check_folded_axes(l, node, node->monoid, (bb_value){at, 0});
}

/* --- maps --- */

static bool check_level(level *l);

/* In-ports give inner inputs their types and bindings. */
static bool enter_map(level *l, const bb_node *node, level *inner) {
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_type *type = in_type(l, node, i);
    bb_value input = {inner->graph->input[i], 0};
    uint32_t list = node->in[i].level;
    binding b = *bound_of(l, node->in[i].src);
    if (list != BB_WHOLE && (list >= type->rank || type->level[list].dim != node->dim))
      return bb_law_broken(l->v, BB_LAW_MAP_LEVEL, bb_at_in(node, i), "%s",
                           list >= type->rank ? "there is no such list"
                                              : "a list over another dim");
    const bb_type *given = bb_type_of(inner->graph, input);
    if (!given || !is_element(given, type, list))
      return bb_law_broken(l->v, BB_LAW_MAP_INNER, bb_at_in(node, i), "it has another type inside");
    bb_axis axis = list == BB_WHOLE ? BB_AXIS_NONE : type->level[list].axis;
    if (axis == BB_AXIS_ROW) b.row = BOUND + l->depth;
    if (axis == BB_AXIS_COL) b.col = BOUND + l->depth;
    *bound_of(inner, input) = b;
  }
  return true;
}

static bool check_collect(level *l, const bb_node *node, uint32_t port, const bb_type *inner,
                          binding *b) {
  const bb_out *out = &node->out[port];
  const bb_type *type = out->type;
  bb_level list = {node->dim, out->axis};
  if (type->rank == 0 || !is_element(inner, type, 0) || !bb_level_equal(type->level[0], list))
    return bb_law_broken(l->v, BB_LAW_MAP_RESULT, bb_at_out(node, port), "it has another type");
  uint32_t here = BOUND + l->depth;
  if ((b->row == here) != (out->axis == BB_AXIS_ROW) ||
      (b->col == here) != (out->axis == BB_AXIS_COL))
    return bb_law_broken(l->v, BB_LAW_COLLECT_AXIS, bb_at_out(node, port),
                         "collected by %s, bound here: %s%s",
                         out->axis == BB_AXIS_ROW   ? "row"
                         : out->axis == BB_AXIS_COL ? "col"
                                                    : "none",
                         b->row == here ? "row " : "", b->col == here ? "col" : "");
  if (out->axis == BB_AXIS_ROW) b->row = LISTED;
  if (out->axis == BB_AXIS_COL) b->col = LISTED;
  return true;
}

static bool check_components(level *l, const bb_node *node, uint32_t port) {
  const bb_out *out = &node->out[port];
  if (!out->fold || out->component >= out->fold->components || port < out->component ||
      port - out->component + out->fold->components > node->nout)
    return bb_law_broken(l->v, BB_LAW_FOLD_COMPONENTS, bb_at_out(node, port), "component %u of %s",
                         out->component, out->fold ? out->fold->name : "nothing");
  bb_folded folded[BB_MONOID_COMPONENTS];
  if (out->component == 0 && !bb_verify_monoid(l->v, bb_at_out(node, port), out->fold))
    return false;
  for (uint32_t i = 0; i < out->fold->components; i++) {
    const bb_out *other = &node->out[port - out->component + i];
    if (other->mode != BB_OUT_FOLD || other->fold != out->fold || other->component != i)
      return bb_law_broken(l->v, BB_LAW_FOLD_COMPONENTS, bb_at_out(node, port),
                           "component %u is not beside it", i);
    folded[i] = (bb_folded){other->type, BB_WHOLE};
  }
  return out->component || bb_verify_folded(l->v, bb_at_out(node, port), out->fold, folded);
}

static bool check_invariants(level *l, const bb_node *node, const level *inner) {
  bb_arena *scratch = l->v->scratch;
  bool any = false, *input = BB_NEW(scratch, bool, node->nin);
  for (uint32_t i = 0; i < node->nout; i++) any |= node->out[i].mode == BB_OUT_INVARIANT;
  if (!any) return true;
  for (uint32_t i = 0; i < node->nin; i++) input[i] = node->in[i].level != BB_WHOLE;
  const bool *varies = bb_verify_varying(scratch, inner->graph, input, 0);
  for (uint32_t i = 0; i < node->nout; i++)
    if (node->out[i].mode == BB_OUT_INVARIANT && varies[i])
      return bb_law_broken(l->v, BB_LAW_INVARIANT, bb_at_out(node, i),
                           "it changes from one iteration to the next");
  return true;
}

static bool check_not_collected(level *l, const bb_node *node, uint32_t port, const bb_type *inner,
                                const binding *b) {
  uint32_t here = BOUND + l->depth;
  if (node->out[port].type != inner)
    return bb_law_broken(l->v, BB_LAW_MAP_RESULT, bb_at_out(node, port), "it has another type");
  if (b->row == here || b->col == here)
    return bb_law_broken(l->v, BB_LAW_FOLD_AXIS, bb_at_out(node, port), "its %s axis is bound",
                         b->row == here ? "row" : "col");
  return node->out[port].mode != BB_OUT_FOLD || check_components(l, node, port);
}

/* The rest of a loop goes on from what a map of the first iteration made, port by port. */
static bool check_peel(level *l, const bb_node *node, uint32_t port) {
  const bb_out *out = &node->out[port];
  if (node->part != BB_PART_REST) {
    if (!out->resumes) return true;
    return bb_law_broken(l->v, BB_LAW_PEEL, bb_at_out(node, port), "it resumes another result");
  }
  uint32_t in = out->resumes - 1;
  if (!out->resumes || in >= node->nin || node->in[in].level != BB_WHOLE)
    return bb_law_broken(l->v, BB_LAW_PEEL, bb_at_out(node, port), "it resumes nothing");
  bb_value src = node->in[in].src;
  const bb_node *first = l->graph->node[src.node];
  const bb_out *from = &first->out[src.port];
  if (first->kind != BB_NODE_MAP || first->part != BB_PART_FIRST || first->dim != node->dim ||
      from->type != out->type || from->mode != out->mode || from->fold != out->fold ||
      from->component != out->component)
    return bb_law_broken(l->v, BB_LAW_PEEL, bb_at_out(node, port), "it resumes something else");
  return true;
}

/* The maps around it that number the chunks, from the innermost on outward. */
static bool check_chunk(const level *l, const bb_node *node) {
  if (node->part != BB_PART_CHUNK) return true;
  const level *around = l;
  for (uint32_t i = bb_chunk_depth(node); i-- > 0; around = around->outer) {
    while (around->map && around->map->dim != node->chunk->dim[i]) around = around->outer;
    if (!around->map || around->map->part != BB_PART_ALL ||
        l->v->program->dim[node->chunk->dim[i]].blocked)
      return bb_law_broken(l->v, BB_LAW_CHUNK, bb_at_node(node), "no map around it numbers them");
  }
  if (bb_chunk_depth(node) == 0)
    return bb_law_broken(l->v, BB_LAW_CHUNK, bb_at_node(node), "nothing numbers them");
  for (uint32_t i = 0; i < node->nout; i++)
    if (node->out[i].mode == BB_OUT_COLLECT)
      return bb_law_broken(l->v, BB_LAW_CHUNK, bb_at_out(node, i), "a part of a list");
  return true;
}

/* Single indices are taken together where each gives elements of its own. */
static bool check_block(level *l, const bb_node *node) {
  bool each = l->v->program->dim[node->dim].blocked;
  for (uint32_t i = 0; !each && i < node->nout && node->block; i++)
    if (node->out[i].mode != BB_OUT_COLLECT)
      return bb_law_broken(l->v, BB_LAW_MAP_BLOCK, bb_at_node(node), "it has blocks of %u",
                           node->block);
  return true;
}

static bool leave_map(level *l, uint32_t at, level *inner) {
  const bb_node *node = l->graph->node[at];
  if (!check_chunk(l, node)) return false;
  if (!check_block(l, node)) return false;
  for (uint32_t i = 0; i < node->nout; i++) {
    bb_value value = inner->graph->node[inner->graph->output[i]]->in[0].src;
    const bb_type *type = bb_type_of(inner->graph, value);
    binding b = *bound_of(inner, value);
    bool collect = node->out[i].mode == BB_OUT_COLLECT;
    if (collect ? !check_collect(l, node, i, type, &b) : !check_not_collected(l, node, i, type, &b))
      return false;
    if (!check_peel(l, node, i)) return false;
    *bound_of(l, (bb_value){at, i}) = b;
  }
  for (uint32_t i = 0; i < node->nout; i++) {
    const bb_out *out = &node->out[i];
    if (out->mode == BB_OUT_FOLD && out->component == 0 &&
        !check_folded_axes(l, node, out->fold, (bb_value){at, i}))
      return false;
  }
  return check_invariants(l, node, inner);
}

/* Room for what is derived of a level. */
static void open_level(level *l) {
  uint32_t ports = 0;
  l->base = BB_NEW(l->v->scratch, uint32_t, l->graph->count);
  for (uint32_t i = 0; i < l->graph->count; i++) {
    l->base[i] = ports;
    ports += l->graph->node[i]->nout;
  }
  l->bound = BB_NEW(l->v->scratch, binding, ports);
}

static bool check_inner(level *l, uint32_t at, bb_arena *scratch) {
  const bb_node *node = l->graph->node[at];
  bb_arena *kept = l->v->scratch;
  level inner = {.v = l->v, .graph = node->inner, .outer = l, .map = node, .depth = l->depth + 1};
  l->v->scratch = scratch; /* what is derived of a level dies with it */
  inner.order = bb_verify_structure(l->v, inner.graph, false);
  bool holds = inner.order != NULL;
  if (holds) {
    open_level(&inner);
    holds = enter_map(l, node, &inner) && check_level(&inner) && leave_map(l, at, &inner);
  }
  l->v->scratch = kept;
  return holds;
}

static bool check_map(level *l, uint32_t at) {
  bb_arena *scratch = bb_scratch(l->v->program->ctx);
  bool holds = check_inner(l, at, scratch);
  if (!holds) {
    const char *message = l->v->message;
    l->v->message = bb_arena_text(l->v->scratch, message, strlen(message));
  }
  bb_scratch_end(scratch);
  return holds;
}

/* --- levels --- */

static bool check_boundary(level *l, uint32_t at) {
  const bb_node *node = l->graph->node[at];
  if (l->map) return true;
  const bb_type *type = node->kind == BB_NODE_OUTPUT ? in_type(l, node, 0) : node->out[0].type;
  if (node->kind != BB_NODE_OUTPUT && !check_whole(l, at)) return false;
  return bb_verify_access(l->v, l->graph, node, type);
}

static bool check_node(level *l, uint32_t at) {
  const bb_node *node = l->graph->node[at];
  for (uint32_t i = 0; i < node->nout; i++)
    if (!check_type(l, bb_at_out(node, i), node->out[i].type)) return false;
  switch (node->kind) {
  case BB_NODE_INPUT:
  case BB_NODE_OUTPUT:
  case BB_NODE_VIEW: return check_boundary(l, at);
  case BB_NODE_MISC: return check_whole(l, at);
  case BB_NODE_FUNC: return check_func(l, at);
  case BB_NODE_REDUCE: return check_reduce(l, at);
  case BB_NODE_MAP: return check_map(l, at);
  case BB_NODE_REMOVED: break;
  }
  return true;
}

/* Structure has been checked, inputs are bound. */
static bool check_level(level *l) {
  for (uint32_t i = 0; i < l->graph->live; i++)
    if (!check_node(l, l->order[i])) return false;
  return true;
}

bool bb_verify_levels(bb_verifier *v, const bb_graph *root) {
  level l = {.v = v, .graph = root, .order = bb_verify_structure(v, root, true)};
  if (!l.order) return false;
  open_level(&l);
  return check_level(&l);
}
