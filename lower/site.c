/* site.c - instantiates the levels of a block program and unites the loops that must have one block
 * size. */
#include "site.h"

#include "../graph/intern.h"

enum { DEEPEST = 200 };

typedef struct bb_tie {
  uint32_t parent;
  bb_dim dim;
  bool
      unit; /* blocks of one element: a list of partial results in a tensor, or columns that are folded
              * by a function of several components */
  int64_t wanted; /* elements, as the program says */
  int64_t block;
} bb_tie;

/* --- ties --- */

uint32_t bb_site_tie(bb_sites *s, bb_dim dim) {
  BB_GROW(s->arena, s->tie, s->capacity, s->ties + 1u);
  s->tie[s->ties] = (bb_tie){.parent = s->ties, .dim = dim};
  return s->ties++;
}

static uint32_t find(bb_sites *s, uint32_t t) {
  while (s->tie[t].parent != t) t = s->tie[t].parent = s->tie[s->tie[t].parent].parent;
  return t;
}

static void unite(bb_sites *s, uint32_t a, uint32_t b) {
  a = find(s, a);
  b = find(s, b);
  if (a == b) return;
  uint32_t low = a < b ? a : b, high = a < b ? b : a;
  s->tie[high].parent = low;
  s->tie[low].unit |= s->tie[high].unit;
  if (!s->tie[low].wanted) s->tie[low].wanted = s->tie[high].wanted;
}

typedef struct tied {
  const bb_type *type;
  const uint32_t *tie; /* by level */
} tied;

static tied tied_value(const bb_site *at, bb_value v) {
  return (tied){bb_type_of(at->graph, v), at->node[v.node].tie[v.port]};
}

/* The lists of partial results that two values share; `a` lacks level `skip` of `b`. */
static void unite_values(bb_sites *s, tied a, tied b, uint32_t skip) {
  for (uint32_t i = 0, j = 0; i < a.type->rank && j < b.type->rank; i++, j++) {
    if (j == skip && ++j == b.type->rank) return;
    if (a.type->level[i].axis == BB_AXIS_NONE) unite(s, a.tie[i], b.tie[j]);
  }
}

static void unite_loop(bb_sites *s, uint32_t loop, tied list, uint32_t level) {
  if (list.type->level[level].axis == BB_AXIS_NONE) unite(s, loop, list.tie[level]);
}

/* The lists that `part` has of those of `whole`, in order: components of a tuple may lack some. */
static void unite_common(bb_sites *s, tied whole, tied part) {
  for (uint32_t i = 0, j = 0; i < whole.type->rank && j < part.type->rank; i++) {
    const bb_level *a = &whole.type->level[i], *b = &part.type->level[j];
    if (a->dim != b->dim || a->axis != b->axis) continue;
    if (a->axis == BB_AXIS_NONE) unite(s, whole.tie[i], part.tie[j]);
    j++;
  }
}

/* The components of a fold whose first one is out-port `first`: what one reads of another is cut alike. */
static void tie_components(bb_sites *s, const bb_site *at, uint32_t index, uint32_t first,
                           const bb_monoid *monoid) {
  const bb_node *node = bb_node_get(at->graph, index);
  for (uint32_t k = 0; k < monoid->components; k++)
    for (uint32_t j = 0; j < monoid->components; j++) {
      if (j == k || !bb_monoid_reads(monoid, k, j)) continue;
      tied whole = {node->out[first + k].type, at->node[index].tie[first + k]};
      tied part = {node->out[first + j].type, at->node[index].tie[first + j]};
      unite_common(s, whole, part);
    }
}

static void tie_reduce(bb_sites *s, const bb_site *at, uint32_t index) {
  const bb_node *node = bb_node_get(at->graph, index);
  tied first = tied_value(at, node->in[0].src);
  for (uint32_t i = 0; i < node->nin; i++) {
    tied in = tied_value(at, node->in[i].src);
    unite(s, in.tie[node->in[i].level], first.tie[node->in[0].level]);
    uint32_t skip = node->reduce == BB_REDUCE_FOLD ? node->in[i].level : BB_WHOLE;
    if (i < node->nout)
      unite_values(s, (tied){node->out[i].type, at->node[index].tie[i]}, in, skip);
  }
  tie_components(s, at, index, 0, node->monoid);
}

/* The first iteration and the rest of a loop have the same blocks, and so do loops in them whose results
 * stand in one list. */
static void tie_peeled(bb_sites *s, const bb_site *at, uint32_t index) {
  const bb_node *node = bb_node_get(at->graph, index);
  for (uint32_t o = 0; node->part == BB_PART_REST && o < node->nout; o++) {
    uint32_t in = node->out[o].resumes - 1;
    if (in >= node->nin) continue;
    uint32_t first = node->in[in].src.node;
    if (bb_node_get(at->graph, first)->kind == BB_NODE_MAP &&
        bb_node_get(at->graph, first)->dim == node->dim)
      unite(s, at->node[index].loop, at->node[first].loop);
    tied result = {node->out[o].type, at->node[index].tie[o]};
    unite_values(s, result, tied_value(at, node->in[in].src), BB_WHOLE);
  }
}

static void tie_map(bb_sites *s, const bb_site *at, uint32_t index) {
  const bb_node *node = bb_node_get(at->graph, index);
  const bb_site *inner = at->node[index].inner;
  uint32_t loop = at->node[index].loop;
  for (uint32_t i = 0; i < node->nin; i++) {
    tied outside = tied_value(at, node->in[i].src);
    tied inside = tied_value(inner, (bb_value){inner->graph->input[i], 0});
    unite_values(s, inside, outside, node->in[i].level);
    if (node->in[i].level != BB_WHOLE) unite_loop(s, loop, outside, node->in[i].level);
  }
  for (uint32_t o = 0; o < node->nout; o++) {
    tied outside = {node->out[o].type, at->node[index].tie[o]};
    tied inside = tied_value(inner, bb_src(inner->graph, inner->graph->output[o], 0));
    bool collect = node->out[o].mode == BB_OUT_COLLECT;
    unite_values(s, inside, outside, collect ? 0 : BB_WHOLE);
    if (collect) unite_loop(s, loop, outside, 0);
    if (node->out[o].mode == BB_OUT_FOLD && node->out[o].component == 0)
      tie_components(s, at, index, o, node->out[o].fold);
  }
  tie_peeled(s, at, index);
}

/* Memory outside the kernel: a list of partial results there has an element for each index. */
static void tie_tensor(bb_sites *s, tied v) {
  for (uint32_t i = 0; i < v.type->rank; i++)
    if (v.type->level[i].axis == BB_AXIS_NONE) s->tie[find(s, v.tie[i])].unit = true;
}

/* The loops around a level, innermost first. */
typedef struct around {
  const struct around *outer;
  bb_dim dim;
  uint32_t loop;
} around;

/* A tile has no step for such a fold: the loop that cuts the columns folds them one by one. */
static void tie_columns(bb_sites *s, const bb_graph *graph, const bb_node *node,
                        const around *loops) {
  bool steps = node->op == BB_OP_ROW_FOLD || node->op == BB_OP_ROW_SCAN ||
               node->op == BB_OP_ROW_SCAN_EXCLUSIVE;
  steps = steps && !bb_site_sums(node);
  for (uint32_t i = 0; steps && i < node->nin; i++)
    for (const around *l = loops; l; l = l->outer)
      if (l->dim == bb_type_of(graph, node->in[i].src)->item.col)
        s->tie[find(s, l->loop)].unit = true;
}

/* --- sites --- */

static bb_site *instantiate(bb_sites *s, const bb_graph *graph, uint32_t depth,
                            const around *loops) {
  bb_context *ctx = s->program->ctx;
  if (depth > DEEPEST) bb_fail(ctx, BB_ERROR_UNSUPPORTED, "maps nested more than 200 deep");
  bb_site *at = BB_NEW(s->arena, bb_site, 1);
  at->graph = graph;
  at->order = BB_NEW(s->arena, uint32_t, graph->live);
  at->node = BB_NEW(s->arena, bb_site_node, graph->count);
  at->count = bb_topological_order(graph, s->arena, at->order);
  if (at->count < graph->live) bb_fail(ctx, BB_ERROR_INTERNAL, "a level has a cycle");
  for (uint32_t k = 0; k < at->count; k++) {
    uint32_t index = at->order[k];
    const bb_node *node = bb_node_get(graph, index);
    bb_site_node *made = &at->node[index];
    made->tie = BB_NEW(s->arena, uint32_t *, node->nout);
    for (uint32_t o = 0; o < node->nout; o++) {
      const bb_type *type = node->out[o].type;
      made->tie[o] = BB_NEW(s->arena, uint32_t, type->rank);
      for (uint32_t i = 0; i < type->rank; i++)
        made->tie[o][i] = bb_site_tie(s, type->level[i].dim);
    }
    if (node->kind == BB_NODE_MAP) {
      made->loop = bb_site_tie(s, node->dim);
      s->tie[made->loop].wanted = node->block;
      around inside = {loops, node->dim, made->loop};
      made->inner = instantiate(s, node->inner, depth + 1, &inside);
      tie_map(s, at, index);
    } else if (node->kind == BB_NODE_REDUCE) {
      tie_reduce(s, at, index);
    } else if (node->kind == BB_NODE_FUNC) {
      tie_columns(s, graph, node, loops);
    } else if (depth == 0) {
      for (uint32_t i = 0; i < node->nin; i++) tie_tensor(s, tied_value(at, node->in[i].src));
      for (uint32_t o = 0; o < node->nout; o++)
        tie_tensor(s, (tied){node->out[o].type, made->tie[o]});
    }
  }
  return at;
}

void bb_sites_make(bb_sites *s, const bb_graph *root) {
  s->root = instantiate(s, root, 0, NULL);
}

/* --- block sizes --- */

enum { DEFAULT_BLOCK = 64, DRAWN_MOST = 40 };

/* A block no larger than needed: a multiple of 8 that holds the extent, where that is a number. */
static int64_t clamped(const bb_sites *s, bb_dim dim, int64_t block) {
  int64_t extent = bb_extent_value(bb_dim_get(s->program, dim)->extent);
  if (extent < 0 || extent >= block) return block;
  int64_t padded = (extent + 7) / 8 * 8;
  return padded < 8 ? 8 : padded > block ? block : padded;
}

static int64_t limited(const bb_schedule_options *o, bb_dim dim, int64_t wanted) {
  int64_t limit = o && o->limit ? o->limit[dim] : 0;
  if (o && o->most && wanted > o->most) wanted = o->most;
  return limit && wanted > limit ? limit : wanted;
}

int64_t bb_site_block(bb_sites *s, uint32_t t) {
  const bb_schedule_options *o = s->options;
  bb_dim dim = s->tie[t].dim;
  if (!bb_dim_get(s->program, dim)->blocked) return 1;
  uint32_t at = find(s, t);
  bb_tie *root = &s->tie[at];
  if (root->block) return root->block;
  int64_t given = o && o->block ? o->block[dim] : 0;
  if (given <= 0) given = limited(o, dim, root->wanted);
  root->block = given > 0 ? given : clamped(s, dim, DEFAULT_BLOCK);
  if (o && o->loop_seed)
    root->block = 1 + (int64_t)(bb_hash_number(bb_hash_number(o->loop_seed) ^ at) % DRAWN_MOST);
  if (root->unit) root->block = 1;
  return root->block;
}
