/* schedule_acc.c - what the iterations of a map fold: accumulators in tiles, or in memory for lists. */
#include "schedule_parts.h"

#include <string.h>

static void fill_item(bb_build *b, void *user, uint32_t count, const bb_build_value *item) {
  (void)count;
  const bb_build_value *value = &item[0];
  uint32_t tile = bb_build_tile(b, value->type->item.dtype, value->row, value->col, b->depth);
  bb_build_constant(b, tile, b->depth, *(const double *)user);
  bb_value_store(b, value, tile, b->depth);
}

/* Has a value's item an axis that a loop further out cuts, and that none of its lists do? */
static bool is_cut_outside(const bb_type *type) {
  bool row = type->item.row != BB_NO_DIM, col = type->item.col != BB_NO_DIM;
  for (uint32_t i = 0; i < type->rank; i++) {
    row &= type->level[i].axis != BB_AXIS_ROW;
    col &= type->level[i].axis != BB_AXIS_COL;
  }
  return type->rank && (row || col);
}

/* An accumulator begins empty, or as what the first iteration left.  An item's axes are those of what
 * is folded into it, which is not known yet: lists of items that loops further out cut begin in
 * bb_schedule_begin_late(). */
void bb_schedule_begin_fold(bb_build *b, map *m, uint32_t port) {
  const bb_out *how = &m->node->out[port];
  bb_build_value *out = result(m, port);
  const bb_build_value *first = resumed(m, port);
  double empty = bb_monoid_empty_of(how->fold, how->component);
  bb_nest nest = out_nest(m, port);
  if (how->type->rank == 0) {
    bb_dtype dtype = bb_build_sum_dtype(how->type->item.dtype);
    m->acc[port] = m->outer->into[m->index][port];
    if (m->acc[port] != BB_NONE) return;
    uint32_t acc = bb_build_tile(b, dtype, NULL, NULL, b->depth);
    m->acc[port] = acc;
    if (!first) {
      bb_build_constant(b, acc, b->depth, empty);
      return;
    }
    uint32_t tile = bb_tile_as(b, bb_value_tile(b, m->node, first), dtype);
    bb_build_map_into(b, acc, b->depth, bb_expr_arg(b->program, dtype, 0), 1, &tile);
    return;
  }
  if (out->kind == BB_BUILD_NOTHING) *out = bb_value_scratch(b, how->type, m->at->tie[port]);
  out->depth = b->depth;
  out->type = how->type;
  if (first)
    bb_value_know_cuts(out, first), bb_value_copy(b, m->node, out, first, &nest);
  else if (!is_cut_outside(how->type))
    bb_each_item(b, m->node, 1, out, &nest, fill_item, &empty);
}

/* Fills lists whose items' axes are known now that the loop has been lowered, in front of it. */
void bb_schedule_begin_late(bb_build *b, const map *m, uint32_t port) {
  const bb_out *how = &m->node->out[port];
  if (how->mode != BB_OUT_FOLD || !is_cut_outside(how->type) || resumed(m, port)) return;
  double empty = bb_monoid_empty_of(how->fold, how->component);
  bb_nest nest = out_nest(m, port);
  bb_tile_body *body = &b->frame[b->depth].body;
  uint32_t before = body->count;
  bb_each_item(b, m->node, 1, result(m, port), &nest, fill_item, &empty);
  uint32_t made = body->count - before;
  bb_tile_stmt **moved = BB_NEW(b->arena, bb_tile_stmt *, made);
  memcpy(moved, body->stmt + before, made * sizeof *moved);
  memmove(body->stmt + m->start + made, body->stmt + m->start, (before - m->start) * sizeof *moved);
  memcpy(body->stmt + m->start, moved, made * sizeof *moved);
}

static void combine_items(bb_build *b, void *user, uint32_t count, const bb_build_value *item) {
  const bb_monoid *monoid = user;
  uint32_t n = count / 2, tile[2 * BB_MONOID_COMPONENTS];
  for (uint32_t i = 0; i < count; i++) tile[i] = bb_value_tile(b, NULL, &item[i]);
  /* What was loaded must not be taken for a copy of memory any more. */
  for (uint32_t k = 0; k < n; k++) {
    const bb_tile_fact *fact = &b->fact[tile[k]];
    bb_dtype dtype = b->tile->tile[tile[k]].dtype;
    uint32_t acc = bb_build_tile(b, dtype, fact->row, fact->col, b->depth);
    bb_build_map_into(b, acc, b->depth, bb_expr_arg(b->program, dtype, 0), 1, &tile[k]);
    tile[k] = acc;
  }
  bb_schedule_combine(b, monoid, tile, tile + n);
  for (uint32_t k = 0; k < n; k++) bb_value_store(b, &item[k], tile[k], b->depth);
}

/* Is the iteration at hand the only one, and nothing there before it?  Then what it made is the fold.  Passes behind a raw program
 * look for accumulators. */
static bool is_all(const bb_build *b, const map *m, uint32_t port) {
  const bb_schedule_options *o = b->sites.options;
  return m->loop->single && !m->loop->ghost && !(o && o->raw) && !resumed(m, port) &&
         m->outer->into[m->index][port] == BB_NONE;
}

/* What the accumulator began as, nobody reads then. */
static void take_all(bb_build *b, uint32_t acc, uint32_t term) {
  uint32_t tile = bb_tile_as(b, term, b->tile->tile[acc].dtype);
  bb_build_map_into(b, acc, b->depth, bb_expr_arg(b->program, b->tile->tile[tile].dtype, 0), 1,
                    &tile);
}

/* acc = acc * what this iteration made, for all components of a fold; gives how many there are. */
static uint32_t fold(bb_build *b, map *m, uint32_t port) {
  const bb_monoid *monoid = m->node->out[port].fold;
  uint32_t n = monoid->components, term[BB_MONOID_COMPONENTS];
  if (m->inner.renewal) {
    bb_renewal_settle(b, m->inner.renewal);
    return n;
  }
  if (m->node->out[port].type->rank) {
    bb_build_value value[2 * BB_MONOID_COMPONENTS];
    for (uint32_t k = 0; k < n; k++) {
      value[k] = *result(m, port + k);
      value[n + k] = *inner_result(m, port + k);
      bb_value_know_cuts(&value[k], &value[n + k]);
      value[k].depth = b->depth; /* as this iteration finds it */
      if (value[k].type->rank != value[0].type->rank)
        bb_build_refuse(b, m->node, "components of lists of different shapes");
    }
    bb_nest nest = out_nest(m, port);
    bb_each_item(b, m->node, 2 * n, value, &nest, combine_items, (void *)monoid);
    return n;
  }
  bb_value made = inner_source(m, port);
  if (m->inner.into[made.node][made.port] == m->acc[port]) return n; /* it was added already */
  for (uint32_t k = 0; k < n; k++) {
    const bb_build_value *inner = inner_result(m, port + k);
    term[k] = bb_value_tile(b, m->node, inner);
    bb_tile_shape(b, m->acc[port + k], inner->row, inner->col);
  }
  bool all = true;
  for (uint32_t k = 0; k < n; k++) all &= is_all(b, m, port + k);
  for (uint32_t k = 0; all && k < n; k++) take_all(b, m->acc[port + k], term[k]);
  if (!all) bb_schedule_combine(b, monoid, &m->acc[port], term);
  return n;
}

/* An iteration where there is none adds nothing. */
uint32_t bb_schedule_fold(bb_build *b, map *m, uint32_t port) {
  if (!m->loop->ghost) return fold(b, m, port);
  bb_tile_body *body = &b->frame[b->depth].body;
  uint32_t before = body->count, n = fold(b, m, port);
  bb_tile_stmt *when = bb_build_stmt(b, b->depth, BB_TILE_WHEN);
  when->expr = bb_expr_make(b->program, BB_X_LT, bb_index_number(b, 0), m->loop->limit, NULL);
  when->body.count = body->count - 1 - before;
  when->body.stmt = BB_NEW(b->arena, bb_tile_stmt *, when->body.count);
  memcpy(when->body.stmt, body->stmt + before, when->body.count * sizeof *body->stmt);
  body->stmt[before] = when;
  body->count = before + 1;
  b->frame[b->depth].loads = 0; /* some were made there */
  return n;
}

/* Is a value a product, or the sum that a map folds from nothing: made by additions to what it begins as? */
static bool is_added_up(const bb_graph *graph, bb_value v) {
  const bb_node *node = bb_node_get(graph, v.node);
  const bb_out *out = &node->out[v.port];
  if (node->kind == BB_NODE_FUNC) return node->op == BB_OP_DOT;
  return node->kind == BB_NODE_MAP && node->part == BB_PART_ALL && out->mode == BB_OUT_FOLD &&
         out->type->rank == 0 && out->fold->id == BB_MONOID_SUM;
}

/* What nobody else takes is added to the sum where it is made: a product, or a sum over another dim, so that one
 * accumulator serves contractions of several. */
void bb_schedule_add_terms(map *m) {
  for (uint32_t port = 0; !m->loop->ghost && port < m->node->nout; port++) {
    const bb_out *how = &m->node->out[port];
    if (how->mode != BB_OUT_FOLD || how->type->rank || how->fold->id != BB_MONOID_SUM) continue;
    const bb_graph *graph = m->inner.site->graph;
    bb_value v = inner_source(m, port);
    if (is_added_up(graph, v) && bb_use_count(graph, v) == 1 &&
        bb_type_of(graph, v)->item.dtype == how->type->item.dtype)
      m->inner.into[v.node][v.port] = m->acc[port];
  }
}

/* Is the term of component i made before that of k? */
static bool is_made_before(const map *m, uint32_t i, uint32_t k) {
  uint32_t first = inner_source(m, i).node, second = inner_source(m, k).node, at = 0;
  const uint32_t *order = m->inner.site->order;
  while (order[at] != first && order[at] != second) at++;
  return order[at] == first;
}

/* Is a map nothing but one product of dependent folds, whose terms are made by a node each, what a
 * repair reads renewed before what it repairs? */
static bool is_renewable(const map *m) {
  const bb_node *node = m->node;
  const bb_graph *graph = m->inner.site->graph;
  if (node->nout == 0 || node->out[0].mode != BB_OUT_FOLD) return false;
  if (node->nout != node->out[0].fold->components || !bb_monoid_is_renewable(node->out[0].fold))
    return false;
  for (uint32_t k = 0; k < node->nout; k++) {
    bb_value v = inner_source(m, k);
    const bb_node *from = bb_node_get(graph, v.node);
    if (node->out[k].type->rank || from->kind != BB_NODE_FUNC || from->nout != 1) return false;
    const bb_expr *repair = node->out[0].fold->component[k].repair;
    for (uint32_t i = 0; i < k; i++) {
      if (inner_source(m, i).node == v.node) return false;
      if (bb_expr_uses_arg(repair, node->nout + i) && !is_made_before(m, i, k)) return false;
    }
  }
  return true;
}

void bb_schedule_renew_terms(bb_build *b, map *m) {
  if (m->loop->ghost || !is_renewable(m)) return;
  bb_renewal *renewal = BB_NEW(b->arena, bb_renewal, 1);
  *renewal = (bb_renewal){m->node->out[0].fold, m->acc, BB_NEW(b->arena, uint32_t, m->node->nout)};
  for (uint32_t k = 0; k < m->node->nout; k++) {
    renewal->fresh[k] = BB_NONE;
    m->inner.component[inner_source(m, k).node] = k;
  }
  m->inner.renewal = renewal;
}
