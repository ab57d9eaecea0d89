/* repair_nest.c - chains whose folds run over loops inside loops.
 *
 * A statistic over channels, rows and columns is a fold of folds of folds: its second map waits for a
 * fold over all of them.  The bodies of two such maps become one as if the part that one iteration
 * folds were the whole, and the loops inside are a pair of maps like any other, down to the innermost.
 * What that pair folds with a product monoid are components of its part; the loops around fold those of
 * all parts with the same monoid, and what the folds were is finished behind the outermost.
 *
 *   [ G: [ N: f ] f ] r                [ G: [ N: f; g(r of the block) ] product ] product
 *   [ G: [ N: g(r) ] g ]        ==>    finish
 *
 * A match may edit nothing, so that it tries all this on a copy of the level.
 */
#include "repair.h"

#include "../graph/prune.h"
#include "../rules/merge.h"

/* --- which folds are folds of an inner map --- */

/* The inner map's out-port that a fold passes on; its node is BB_NONE if it is no such fold. */
static bb_value passed_on(const bb_repair *r, const bb_repair_fold *f) {
  const bb_value none = {BB_NONE, 0};
  if (f->port == BB_NONE) return none;
  bb_value value = bb_repair_folded(r, f->second, f->port);
  const bb_node *node = bb_node_get(bb_repair_body(r, f->second), value.node);
  if (node->kind != BB_NODE_MAP) return none;
  const bb_out *outer = &bb_node_get(r->graph, bb_repair_map(r, f->second))->out[f->port];
  const bb_out *out = &node->out[value.port];
  bool same =
      out->mode == BB_OUT_FOLD && out->fold == outer->fold && out->component == outer->component;
  return same ? value : none;
}

/* The map inside U and the map inside V whose folds all folds of the chain are. */
static bool inner_maps(const bb_repair *r, uint32_t *map) {
  map[0] = map[1] = BB_NONE;
  for (uint32_t i = 0; i < r->folds; i++) {
    bool second = r->fold[i].second;
    uint32_t inner = passed_on(r, &r->fold[i]).node;
    if (inner == BB_NONE || (map[second] != BB_NONE && map[second] != inner)) return false;
    map[second] = inner;
  }
  return map[0] != BB_NONE && map[1] != BB_NONE &&
         bb_node_get(bb_repair_body(r, false), map[0])->dim ==
             bb_node_get(bb_repair_body(r, true), map[1])->dim;
}

bool bb_repair_is_nest(const bb_repair *r) {
  uint32_t map[2];
  return inner_maps(r, map);
}

/* --- one level down --- */

static uint32_t place_of(const bb_repair *inner, bool second, uint32_t port) {
  for (uint32_t i = 0; i < inner->folds; i++)
    if (inner->fold[i].second == second && inner->fold[i].port == port) return i;
  return BB_NONE;
}

static const bb_expr *length_around(const bb_repair *r) {
  const bb_expr *here = bb_expr_extent_name(r->program, bb_node_get(r->graph, r->u)->dim);
  return bb_repair_around(r, here);
}

/* Makes one map of U and V; gives the scope of its body, and where V's inner map is now. */
static bb_scope *join(bb_repair *r, uint32_t *second) {
  bb_value moved = {*second, 0};
  bb_repair_copy_functions(r);
  bb_merge_into_first(r->graph, r->u, r->v, 1, &moved);
  *second = moved.node;
  bb_graph *body = bb_map_own(r->graph, r->u);
  bb_map_own(body, moved.node);
  bb_journal *journal = body->journal; /* somebody else's: this scope only answers questions */
  bb_scope *scope = bb_scope_create(r->arena, r->scope, r->u, body);
  body->journal = journal;
  return scope;
}

bool bb_repair_enter(bb_repair *r) {
  uint32_t map[2], port[BB_REPAIR_FOLDS];
  inner_maps(r, map);
  for (uint32_t i = 0; i < r->folds; i++) port[i] = passed_on(r, &r->fold[i]).port;
  bb_repair *inner = BB_NEW(r->arena, bb_repair, 1);
  *inner = (bb_repair){.arena = r->arena, .around = length_around(r), .owned = true, .outer = r};
  bb_match match = {.partner = map[0], .anchor = map[1], .dim = BB_NO_DIM};
  match.scope = join(r, &match.anchor);
  bb_map_own(match.scope->graph, match.partner);
  if (!bb_repair_read(inner, &match)) return bb_repair_refuse(r, inner->why);
  if (inner->splits) return bb_repair_refuse(r, "a list inside a loop depends on the fold");
  r->inner = inner;
  for (uint32_t i = 0; i < r->folds; i++) {
    uint32_t at = place_of(inner, r->fold[i].second, port[i]);
    if (at == BB_NONE) return bb_repair_refuse(r, "the loops inside fold something else");
    r->place[i] = inner->inner ? inner->place[at] : at;
  }
  return true;
}

bb_repair *bb_repair_innermost(bb_repair *r) {
  while (r->inner) r = r->inner;
  return r;
}

/* --- fixed values --- */

static bool is_finished_with(const bb_repair *r, uint32_t arg) {
  for (uint32_t i = 0; i < r->folds; i++)
    if (bb_expr_uses_arg(r->product->result[i].finish, arg)) return true;
  return false;
}

/* A value that the body of U takes whole from around it, as it is there. */
static bool lift(const bb_repair *r, const bb_graph *body, bb_value *value) {
  if (bb_node_get(body, value->node)->kind != BB_NODE_INPUT) return false;
  uint32_t port = 0;
  while (body->input[port] != value->node) port++;
  const bb_in *in = &bb_node_get(r->graph, r->u)->in[port];
  *value = in->src;
  return in->level == BB_WHOLE;
}

bool bb_repair_is_fixed(const bb_repair *r, bb_value value) {
  const bb_node *node = bb_node_get(r->graph, value.node);
  if (!r->outer) return true;
  if (node->kind != BB_NODE_FUNC)
    return lift(r->outer, r->graph, &value) && bb_repair_is_fixed(r->outer, value);
  bool fixed = !node->expr || !node->expr->coord;
  for (uint32_t i = 0; i < node->nin && fixed; i++) fixed = bb_repair_is_fixed(r, node->in[i].src);
  return fixed;
}

bool bb_repair_waits_outside(const bb_repair *r, bb_value value) {
  return lift(r->outer, r->graph, &value) && bb_repair_waits(r->outer, value);
}

bool bb_repair_lift(bb_repair *r) {
  if (!r->inner) return true;
  if (!bb_repair_lift(r->inner)) return bb_repair_refuse(r, r->inner->why);
  bb_repair *leaf = bb_repair_innermost(r);
  for (uint32_t i = 0; i < leaf->leaves; i++) {
    bb_repair_leaf *l = &leaf->leaf[i];
    if (l->arg == BB_NONE || !l->fixed || !is_finished_with(leaf, l->arg)) continue;
    if (!lift(r, r->inner->graph, &l->value))
      return bb_repair_refuse(r, "a fixed value that finishes the folds is made inside a loop");
  }
  return true;
}

/* --- trying --- */

/* On a copy of the level, which lives no longer than the match. */
static bool try_copy(bb_repair *r) {
  bb_repair trial = *r;
  trial.graph = bb_graph_copy(r->graph);
  if (r->splits) {
    bb_repair_split(&trial);
    bb_map_prune(trial.graph, r->v);
  }
  bb_match match = {.anchor = r->v, .partner = r->u, .dim = BB_NO_DIM};
  match.scope = bb_scope_create(r->arena, r->scope->parent, r->scope->map, trial.graph);
  trial = (bb_repair){.arena = r->arena, .owned = true, .around = r->around};
  bool good = bb_repair_read(&trial, &match) && bb_repair_lift(&trial);
  return good || bb_repair_refuse(r, trial.why);
}

bool bb_repair_try_nest(bb_repair *r) {
  bb_program *program = r->program;
  bb_arena *levels = program->levels;
  uint32_t serial = program->serial;
  program->levels = r->arena;
  bool good = try_copy(r);
  program->levels = levels;
  program->serial = serial;
  return good;
}
