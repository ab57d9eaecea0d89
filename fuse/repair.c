/* repair.c - Rule 12: repair dependent reductions.
 *
 *      |  \                         |
 *   [ N: f ] r = fold            [ N: f; g(r of the block) ]   fold of a product monoid
 *      |    \                       |
 *      |   e(r)          ==>     finish
 *      |    /                       |
 *   [ N: g ] fold                 e(r) ...
 *      |
 *
 * The second map takes r, or elementwise functions e of it, whole: it waits until the first one is
 * through.  Afterwards one map makes, in each iteration, the components of that block alone, its own r in
 * the place of r, and folds them with the product monoid that the algebra derives and proves; what the
 * folds were is finished behind the map.  The chain is read anew from the body each time, the components
 * of an earlier repair being folds like others: so a chain of any length is repaired link by link, in
 * whatever order its maps meet, and a program that was written to a file in between goes on just so.
 *
 * The anchor is the second map; of the maps whose folds it takes, the last that may be fused is taken.
 *
 * Conditions:
 * - both run over the same dim, all iterations, both at load or both not;
 * - the second takes folds of the first, or elementwise functions of them, whole; what the first
 *   collects it iterates; and no other path leads from the first to the second;
 * - what depends on the folds in the second map is folded (a): a list of such values would hold those of
 *   a fold that is not through.  Or it is collected for maps over the same dim that iterate it, and
 *   elementwise ops make it (b): then it is computed once more in a map of its own, which Rule 1 can fuse
 *   with those; for folds and list alike nothing is stored any more that was not before;
 * - the algebra derives a product monoid and proves it (algebra.h), and its components can be said with
 *   ops on blocks.
 *
 * Reassociating: equal over the reals.  Lowers: maps that fold and wait for a fold
 * over the same dim.
 * Near misses: an output that depends on r is collected; another path; a fold that no repair exists for.
 */
#include "repair.h"

#include "../graph/prune.h"
#include "../rules/merge.h"

bool bb_repair_is_read(const bb_repair *r, const bb_repair_fold *fold) {
  bool read = false;
  uint32_t count = fold->port == BB_NONE ? 0 : bb_monoid_get(fold->fold)->components;
  for (uint32_t k = 0; k < count; k++) {
    bb_use u = bb_first_use(r->graph, (bb_value){bb_repair_map(r, fold->second), fold->port + k});
    for (; u.node != BB_NONE; u = bb_next_use(r->graph, u)) read |= u.node != r->v;
  }
  return read;
}

bool bb_repair_read(bb_repair *r, bb_match *match) {
  bb_scope *scope = match->scope;
  r->scope = scope;
  r->graph = scope->graph;
  r->program = scope->graph->program;
  if (!bb_repair_find(r, match)) return false;
  if (bb_repair_is_nest(r)) return r->owned ? bb_repair_enter(r) : bb_repair_try_nest(r);
  return bb_repair_derive(r) && bb_repair_monoid(r);
}

static bool match(bb_match *match) {
  const bb_node *node = bb_node_get(match->scope->graph, match->anchor);
  if (node->kind != BB_NODE_MAP) return bb_miss(match, "not a map");
  if (match->dim != BB_NO_DIM && match->dim != node->dim)
    return bb_miss(match, "the map runs over another dim");
  bb_repair r = {.arena = bb_scratch(match->scope->graph->program->ctx)};
  bool found = bb_repair_read(&r, match);
  uint32_t pair[2] = {r.u, r.v};
  bb_scratch_end(r.arena);
  return found ? bb_hit(match, r.splits ? 'b' : 'a', 2, pair) : bb_miss(match, r.why);
}

/* --- the maps become one --- */

/* Uses of what the chain folds, by other nodes than the maps. */
typedef struct reader {
  bb_use use;
  uint32_t fold, which;
} reader;

typedef struct readers {
  uint32_t count, capacity;
  reader *at;
} readers;

static readers find_readers(const bb_repair *r) {
  readers all = {0};
  for (uint32_t i = 0; i < r->folds; i++) {
    const bb_repair_fold *f = &r->fold[i];
    uint32_t pair = f->port == BB_NONE ? 0 : bb_monoid_get(f->fold)->components;
    for (uint32_t k = 0; k < pair; k++) {
      bb_value value = {bb_repair_map(r, f->second), f->port + k};
      for (bb_use u = bb_first_use(r->graph, value); u.node != BB_NONE;
           u = bb_next_use(r->graph, u)) {
        if (u.node == r->v) continue;
        BB_GROW(r->arena, all.at, all.capacity, (size_t)all.count + 1);
        all.at[all.count++] = (reader){u, i, k};
      }
    }
  }
  return all;
}

typedef struct copied {
  struct copied *next;
  bb_value from, to;
} copied;

static bool depends_on(const bb_repair *r, bb_value value) {
  const bb_node *node = bb_node_get(r->graph, value.node);
  bool any = value.node == r->u;
  for (uint32_t i = 0; i < node->nin && node->kind == BB_NODE_FUNC && !any; i++)
    any = depends_on(r, node->in[i].src);
  return any;
}

/* A function of U's folds, computed inside V. */
static bb_value copy_inside(bb_repair *r, bb_value value, copied **made) {
  for (copied *at = *made; at; at = at->next)
    if (bb_value_equal(at->from, value)) return at->to;
  const bb_node *node = bb_node_get(r->graph, value.node);
  bb_value to;
  if (value.node == r->u || !depends_on(r, value)) {
    to = bb_map_in(r->graph, r->v, value, BB_WHOLE);
  } else {
    bb_value *in = BB_NEW(r->arena, bb_value, node->nin);
    for (uint32_t i = 0; i < node->nin; i++) in[i] = copy_inside(r, node->in[i].src, made);
    to = bb_func_add(bb_repair_body(r, true), node->op, node->expr, node->nin, in);
  }
  copied *entry = BB_NEW(r->arena, copied, 1);
  *entry = (copied){*made, value, to};
  *made = entry;
  return to;
}

void bb_repair_copy_functions(bb_repair *r) {
  bb_graph *body = bb_repair_body(r, true);
  copied *made = NULL;
  uint32_t count = bb_node_get(r->graph, r->v)->nin;
  for (uint32_t i = count; i-- > 0;) {
    bb_in in = bb_node_get(r->graph, r->v)->in[i];
    if (in.src.node == r->u || !depends_on(r, in.src)) continue;
    bb_value input = {body->input[i], 0}, with = copy_inside(r, in.src, &made);
    bb_replace_uses(body, input, with);
    bb_map_in_remove(r->graph, r->v, i);
  }
}

static void remove_unused(bb_graph *graph, uint32_t node) {
  const bb_node *at = bb_node_get(graph, node);
  if (at->kind != BB_NODE_FUNC) return;
  for (uint32_t p = 0; p < at->nout; p++)
    if (at->out[p].first.node != BB_NONE) return;
  uint32_t nin = at->nin, src[8];
  for (uint32_t i = 0; i < nin && i < 8; i++) src[i] = at->in[i].src.node;
  bb_node_remove(graph, node);
  for (uint32_t i = 0; i < nin && i < 8; i++) remove_unused(graph, src[i]);
}

static void merge(bb_repair *r) {
  bb_value value[BB_REPAIR_LEAVES];
  uint32_t count = 0, leaf[BB_REPAIR_LEAVES];
  bb_repair_copy_functions(r);
  for (uint32_t i = 0; i < r->leaves; i++) {
    r->leaf[i].inside = r->leaf[i].value;
    if (r->leaf[i].arg == BB_NONE || r->leaf[i].map != r->v) continue;
    value[count] = r->leaf[i].value;
    leaf[count++] = i;
  }
  bb_merge_into_first(r->graph, r->u, r->v, count, value);
  for (uint32_t i = 0; i < count; i++) r->leaf[leaf[i]].inside = value[i];
  for (uint32_t i = 0; i < r->leaves; i++) {
    bb_repair_leaf *l = &r->leaf[i];
    if (l->arg != BB_NONE && l->map == BB_NONE && l->coord == BB_NONE)
      l->inside = bb_map_in(r->graph, r->u, l->value, BB_WHOLE);
  }
}

/* --- ports --- */

static bb_value fixed_value(const bb_repair *r, bb_graph *body, const bb_expr *fixed) {
  for (uint32_t i = 0; i < r->leaves && fixed->op == BB_X_ARG; i++)
    if (r->leaf[i].arg == fixed->index) return r->leaf[i].inside;
  const bb_expr *number = bb_expr_cast(r->program, BB_F32, fixed);
  return bb_func_add(body, BB_OP_ELEMENTWISE, number, 0, NULL);
}

/* Folds the components; gives their values around the map. */
static void fold_components(bb_repair *r, bb_value *component) {
  bb_graph *body = bb_map_own(r->graph, r->u);
  uint32_t count = r->product->count;
  bb_repair_lower(r, body, component);
  for (uint32_t i = 0; i < r->constants; i++)
    component[count++] = fixed_value(r, body, r->constant[i]);
  for (uint32_t j = 0; j < count; j++)
    component[j] = bb_map_fold(r->graph, r->u, component[j], r->monoid, j);
}

/* The components of the innermost pair, folded by the loops around it too. */
static void fold_nest(bb_repair *r, bb_value *component) {
  const bb_repair *leaf = bb_repair_innermost(r);
  if (!r->inner) {
    merge(r);
    fold_components(r, component);
    return;
  }
  fold_nest(r->inner, component);
  for (uint32_t j = 0; j < leaf->product->count + leaf->constants; j++)
    component[j] = bb_map_fold(r->graph, r->u, component[j], leaf->monoid, j);
}

static bb_value result(bb_repair *leaf, uint32_t fold, uint32_t which, const bb_value *component) {
  return which ? bb_repair_finish_index(leaf, fold, component)
               : bb_repair_finish(leaf, fold, component);
}

static void connect_readers(bb_repair *r, const readers *all, const bb_value *component) {
  bb_value made[BB_REPAIR_FOLDS][2];
  bool is_made[BB_REPAIR_FOLDS][2] = {{false}};
  bb_repair leaf = *bb_repair_innermost(r);
  leaf.graph = r->graph;
  for (uint32_t i = 0; i < all->count; i++) {
    const reader *at = &all->at[i];
    uint32_t fold = r->inner ? r->place[at->fold] : at->fold;
    if (bb_node_get(r->graph, at->use.node)->kind == BB_NODE_REMOVED) continue;
    if (!is_made[at->fold][at->which])
      made[at->fold][at->which] = result(&leaf, fold, at->which, component);
    is_made[at->fold][at->which] = true;
    bb_connect(r->graph, at->use.node, at->use.port, made[at->fold][at->which]);
  }
}

static void find_again(bb_repair *r, const bb_match *match) {
  bb_match again = *match;
  again.partner = match->node[0];
  if (!bb_repair_read(r, &again))
    bb_fail(r->program->ctx, BB_ERROR_INTERNAL, "a repair was lost: %s", r->why);
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  bb_repair r = {.arena = bb_scratch(graph->program->ctx)};
  bb_map_own(graph, match->node[0]);
  bb_map_own(graph, match->node[1]);
  find_again(&r, match);
  if (r.splits) {
    bool nest = bb_repair_is_nest(&r);
    bb_repair_split(&r);
    if (nest) bb_map_prune(graph, r.v);
    r = (bb_repair){.arena = r.arena};
    find_again(&r, match);
  }
  readers all = find_readers(&r);
  uint32_t from[64], froms = 0;
  const bb_node *v = bb_node_get(graph, r.v);
  for (uint32_t i = 0; i < v->nin && froms < 64; i++) from[froms++] = v->in[i].src.node;
  if (bb_repair_is_nest(&r) && !bb_repair_enter(&r))
    bb_fail(graph->program->ctx, BB_ERROR_INTERNAL, "a repair was lost: %s", r.why);
  bb_value component[BB_PRODUCT_COMPONENTS + BB_REPAIR_CONSTANTS];
  fold_nest(&r, component);
  bb_repair_keep_proof(bb_repair_innermost(&r)); /* its values are those of its own level so far */
  bb_repair_lift(&r);
  for (uint32_t i = 0; i < froms; i++) remove_unused(graph, from[i]);
  connect_readers(&r, &all, component);
  bb_map_prune(graph, r.u);
  bb_scratch_end(r.arena);
}

const bb_rule bb_rule_repair_reduction = {
    .number = 12,
    .name = "repair dependent reductions",
    .exactness = BB_REASSOCIATING,
    .lowers = "maps that fold and wait for a fold over the same dim",
    .anchors = 1 << BB_NODE_MAP,
    .wakes = BB_WAKE_SOURCE | BB_WAKE_INSIDE | BB_WAKE_BEHIND,
    .match = match,
    .apply = apply,
};
