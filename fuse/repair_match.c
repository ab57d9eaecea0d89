/* repair_match.c - which two maps make a chain of dependent folds, and which folds are in it. */
#include "repair.h"

#include "../rules/merge.h"

const char bb_repair_no_pair[] =
    "the map takes no fold of a map over the same dim, or a function of one";

const char bb_repair_no_fold[] =
    "nothing that the second map folds depends on the first one's folds";

enum { WALK = 256 }; /* ops looked at between two maps */

/* --- between the maps --- */

static const bb_node *node_at(const bb_repair *r, bb_value value) {
  return bb_node_get(r->graph, value.node);
}

/* The last map over `dim` before which `best` stands whose fold a value is a function of, through
 * ops on items alone; folds of maps from `limit` on do not count. */
static uint32_t last_fold(bb_repair *r, bb_value value, bb_dim dim, uint64_t limit, uint32_t best) {
  const bb_node *node = node_at(r, value);
  const bb_place *place = r->scope->place;
  if (node->kind == BB_NODE_MAP) {
    bool fits = node->dim == dim && node->out[value.port].mode == BB_OUT_FOLD &&
                place[value.node].label < limit;
    return fits && (best == BB_NONE || place[best].label < place[value.node].label) ? value.node
                                                                                    : best;
  }
  if (node->kind != BB_NODE_FUNC || r->walked++ >= WALK) return best;
  for (uint32_t i = 0; i < node->nin; i++) best = last_fold(r, node->in[i].src, dim, limit, best);
  return best;
}

static bool waits(bb_repair *r, bb_value value) {
  const bb_node *node = node_at(r, value);
  if (node->kind == BB_NODE_MAP)
    return node->dim == node_at(r, (bb_value){r->v, 0})->dim &&
           node->out[value.port].mode == BB_OUT_FOLD;
  if (node->kind == BB_NODE_INPUT) return r->outer && bb_repair_waits_outside(r, value);
  bool any = false;
  for (uint32_t i = 0; i < node->nin && !any && r->walked++ < WALK; i++)
    any = waits(r, node->in[i].src);
  return any;
}

bool bb_repair_waits(bb_repair *r, bb_value value) {
  r->walked = 0;
  return waits(r, value);
}

/* Does a value that V takes depend on U?  Then it must do so through functions of U's folds alone,
 * which are noted. */
static bool depends(bb_repair *r, bb_value value, uint64_t *folds) {
  const bb_node *node = node_at(r, value);
  if (value.node == r->u) {
    if (node->out[value.port].mode != BB_OUT_FOLD)
      bb_repair_refuse(r, "what the first map collects passes through a third node to the second");
    else if (value.port < 64)
      *folds |= 1ull << value.port;
    else
      bb_repair_refuse(r, "the first map has too many results");
    return true;
  }
  if (node->kind != BB_NODE_FUNC) {
    bool reached = bb_scope_reaches(r->scope, r->u, value.node, false);
    if (reached)
      bb_repair_refuse(r, "a path leads from the first map to the second through a node that is no "
                          "elementwise function of its folds");
    return reached;
  }
  bool any = false;
  if (r->walked++ >= WALK) {
    bb_repair_refuse(r, "too many ops stand between the two maps");
    return true;
  }
  for (uint32_t i = 0; i < node->nin && !r->why; i++) any |= depends(r, node->in[i].src, folds);
  return any;
}

/* --- what depends on what inside a body --- */

static uint64_t port_bit(uint32_t port) {
  return 1ull << (port < 63 ? port : 63);
}

/* Marks the out-ports of a body's nodes that depend on its marked inputs, or on what is marked
 * already. */
static void mark_body(const bb_repair *r, const bb_graph *body, const bool *input, uint64_t *mark) {
  bb_arena *scratch = bb_scratch(r->program->ctx);
  uint32_t *order = BB_NEW(scratch, uint32_t, body->live);
  uint32_t count = bb_topological_order(body, scratch, order);
  for (uint32_t i = 0; i < body->ninputs; i++)
    if (input[i]) mark[body->input[i]] = UINT64_MAX;
  for (uint32_t k = 0; k < count; k++) {
    const bb_node *node = bb_node_get(body, order[k]);
    bool *in = BB_NEW(scratch, bool, node->nin), any = false;
    for (uint32_t i = 0; i < node->nin; i++) {
      bb_value src = node->in[i].src;
      any |= in[i] = (mark[src.node] & port_bit(src.port)) != 0;
    }
    if (!any) continue;
    if (node->kind != BB_NODE_MAP) {
      mark[order[k]] = UINT64_MAX;
      continue;
    }
    uint64_t *inner = BB_NEW(scratch, uint64_t, node->inner->count);
    mark_body(r, node->inner, in, inner);
    for (uint32_t p = 0; p < node->nout; p++) {
      bb_value src = bb_src(node->inner, node->inner->output[p], 0);
      if (inner[src.node] & port_bit(src.port)) mark[order[k]] |= port_bit(p);
    }
  }
  bb_scratch_end(scratch);
}

/* --- the folds of the chain --- */

const bb_repair_fold *bb_repair_fold_of(const bb_repair *r, bool second, uint32_t port) {
  for (uint32_t i = 0; i < r->folds; i++)
    if (r->fold[i].second == second && r->fold[i].port == port) return &r->fold[i];
  return NULL;
}

static bool add_fold(bb_repair *r, bool second, uint32_t port, bb_monoid_id fold) {
  bool pair = fold < BB_MONOID_COUNT && bb_monoid_get(fold)->components == 2;
  if (fold >= BB_MONOID_COUNT)
    return bb_repair_refuse(r,
                            "one of the maps folds with a user's function: no law for it is known");
  if (r->folds == BB_REPAIR_FOLDS || r->results + 2 > BB_REPAIR_RESULTS)
    return bb_repair_refuse(r, "the chain has too many folds");
  r->fold[r->folds++] = (bb_repair_fold){
      .second = second,
      .port = port,
      .fold = fold,
      .result = r->results,
      .guards =
          bb_node_get(r->graph, bb_repair_map(r, second))->out[port].fold->id == BB_MONOID_TUPLE
              ? UINT32_MAX
              : 0};
  r->results += pair ? 2 : 1;
  return true;
}

/* Adds a group of neighbouring ports that fold together, which starts at `port`. */
static bool add_group(bb_repair *r, bool second, uint32_t port) {
  const bb_out *out = &bb_node_get(r->graph, bb_repair_map(r, second))->out[port];
  const bb_monoid *monoid = out->fold;
  if (monoid->id != BB_MONOID_TUPLE) return add_fold(r, second, port, monoid->id);
  for (uint32_t k = 0; k < monoid->components; k++) {
    const bb_monoid_component *c = &monoid->component[k];
    if (c->fold == BB_MONOID_FIRST) continue; /* a fixed value: the new monoid sees for itself */
    if (!add_fold(r, second, port + k, c->fold)) return false;
    k += c->fold < BB_MONOID_COUNT && bb_monoid_get(c->fold)->components == 2;
  }
  return true;
}

/* Is any port of the group that starts at `port` marked? */
static bool group_marked(const bb_repair *r, uint32_t port) {
  const bb_out *out = &bb_node_get(r->graph, r->v)->out[port];
  for (uint32_t k = 0; k < out->fold->components; k++)
    if (bb_repair_marked(r, true, bb_repair_folded(r, true, port + k))) return true;
  return false;
}

/* The components of a tuple depend on each other: marks each but the terms of basic folds. */
static void seed_group(bb_repair *r, bool second, uint32_t port) {
  const bb_out *out = &bb_node_get(r->graph, bb_repair_map(r, second))->out[port];
  if (out->fold->id != BB_MONOID_TUPLE) return;
  for (uint32_t k = 0; k < out->fold->components; k++) {
    bb_value value = bb_repair_folded(r, second, port + k);
    if (bb_node_get(bb_repair_body(r, second), value.node)->kind != BB_NODE_INPUT)
      r->mark[second][value.node] |= port_bit(value.port);
  }
}

static bool starts_group(const bb_out *out) {
  return out->mode == BB_OUT_FOLD && out->component == 0;
}

static bool find_first_folds(bb_repair *r, uint64_t used) {
  const bb_node *u = bb_node_get(r->graph, r->u);
  for (uint32_t p = 0; p < u->nout; p++) {
    if (!starts_group(&u->out[p])) continue;
    bool any = false;
    for (uint32_t k = 0; k < u->out[p].fold->components; k++)
      any |= p + k < 64 && used >> (p + k) & 1;
    if (!any) continue;
    if (!add_group(r, false, p)) return false;
    seed_group(r, false, p);
  }
  bb_arena *scratch = bb_scratch(r->program->ctx);
  mark_body(r, u->inner, BB_NEW(scratch, bool, u->nin), r->mark[false]);
  bb_scratch_end(scratch);
  return true;
}

static bool is_left_out(const bb_repair *r, uint32_t port) {
  uint32_t parts = bb_node_get(r->graph, r->v)->out[port].fold->components;
  return port + parts <= 64 && r->left_out >> port & ((UINT64_C(2) << (parts - 1)) - 1);
}

static bool find_second_folds(bb_repair *r, const bool *input) {
  const bb_node *v = bb_node_get(r->graph, r->v);
  bool *in_chain = BB_NEW(r->arena, bool, v->nout), more = true;
  while (more) { /* a tuple one part of which depends on the folds does so as a whole */
    more = false;
    mark_body(r, v->inner, input, r->mark[true]);
    for (uint32_t p = 0; p < v->nout; p++) {
      if (!starts_group(&v->out[p]) || in_chain[p] || !group_marked(r, p)) continue;
      in_chain[p] = more = true;
      seed_group(r, true, p);
    }
  }
  uint32_t before = r->folds;
  for (uint32_t p = 0; p < v->nout; p++)
    if (in_chain[p] && !is_left_out(r, p) && !add_group(r, true, p)) return false;
  if (r->folds == before) return bb_repair_refuse(r, bb_repair_no_fold);
  for (uint32_t p = 0; p < v->nout; p++) {
    if (v->out[p].mode == BB_OUT_INVARIANT &&
        bb_repair_marked(r, true, bb_repair_folded(r, true, p)))
      return bb_repair_refuse(r, "an output that is equal in every iteration depends on the fold");
  }
  return true;
}

/* --- the pair --- */

/* How V takes what U makes, and what else it takes. */
static bool read_inputs(bb_repair *r, bool *input, uint64_t *used) {
  const bb_node *u = bb_node_get(r->graph, r->u), *v = bb_node_get(r->graph, r->v);
  for (uint32_t i = 0; i < v->nin; i++) {
    bb_value src = v->in[i].src;
    uint64_t folds = 0;
    const bb_out *out = src.node == r->u ? &u->out[src.port] : NULL;
    if (out && out->mode == BB_OUT_COLLECT) {
      if (v->in[i].level != 0)
        return bb_repair_refuse(r, v->in[i].level == BB_WHOLE
                                       ? "the second map takes a list of the first whole"
                                       : "the second map iterates an inner level of a list of the "
                                         "first");
      continue;
    }
    if (out && out->mode == BB_OUT_INVARIANT && v->in[i].level == BB_WHOLE) continue;
    if (out && out->type->rank) return bb_repair_refuse(r, "the first map folds lists");
    input[i] = depends(r, src, &folds);
    *used |= folds;
    if (r->why) return false;
  }
  return true;
}

static bool pair_fits(bb_repair *r) {
  if (!bb_same_time(r->scope, r->u, r->v))
    return bb_repair_refuse(r, "one of the maps is computed once, at load");
  if (!bb_both_whole(r->graph, r->u, r->v))
    return bb_repair_refuse(r, "the first iteration of one of the maps is peeled off");
  const bb_node *v = bb_node_get(r->graph, r->v);
  bool *input = BB_NEW(r->arena, bool, v->nin);
  uint64_t used = 0;
  for (uint32_t s = 0; s < 2; s++)
    r->mark[s] = BB_NEW(r->arena, uint64_t, bb_repair_body(r, s)->count);
  return read_inputs(r, input, &used) && find_first_folds(r, used) && find_second_folds(r, input) &&
         bb_repair_splits(r);
}

static uint32_t find_first(bb_repair *r, bb_dim dim, uint64_t limit) {
  const bb_node *v = bb_node_get(r->graph, r->v);
  uint32_t best = BB_NONE;
  r->walked = 0;
  for (uint32_t i = 0; i < v->nin; i++)
    if (v->in[i].level == BB_WHOLE) best = last_fold(r, v->in[i].src, dim, limit, best);
  return best;
}

bool bb_repair_find(bb_repair *r, bb_match *match) {
  const bb_node *v = bb_node_get(r->graph, match->anchor);
  uint64_t limit = UINT64_MAX;
  r->v = match->anchor;
  while ((r->u = find_first(r, v->dim, limit)) != BB_NONE) {
    limit = r->scope->place[r->u].label;
    if (match->partner != BB_NONE && match->partner != r->u) continue;
    r->why = NULL;
    r->refused = BB_NONE;
    r->folds = r->results = 0;
    if (pair_fits(r)) return true;
  }
  return bb_repair_refuse(r, bb_repair_no_pair);
}
