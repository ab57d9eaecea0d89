/* plan.c - instantiates the levels of a block program for one run, and gives every loop its blocks.
 *
 * Block sizes belong to loops, not to dims.  A blocked axis of an item comes from exactly one loop
 * around it and leaves that loop only as a list that is stored unblocked and can be split anew, so
 * two loops over one dim may differ.  They must agree only where a list has one element for each
 * block: partial results along a dim that the item has no axis for.  Every loop and every list level
 * is a variable here; what must agree is united.
 */
#include "machine.h"

#include "../../graph/intern.h"

enum { DEEPEST = 200, DEFAULT_BLOCK = 64 };

typedef struct tie {
  uint32_t parent;
  bb_dim dim;
  bool unit;      /* a list of partial results in a tensor: blocks of one element */
  int64_t wanted; /* of a root: elements, as the program says */
  int64_t block;  /* of a root: elements, once known */
} tie;

typedef struct planner {
  bb_run *run;
  uint32_t ties, capacity;
  tie *tie;
  uint32_t depth;
  bb_dim around[DEEPEST + 2]; /* dims of the maps around, outermost first */
} planner;

/* --- ties --- */

static uint32_t new_tie(planner *p, bb_dim dim) {
  BB_GROW(p->run->scratch, p->tie, p->capacity, p->ties + 1u);
  p->tie[p->ties] = (tie){.parent = p->ties, .dim = dim};
  return p->ties++;
}

static uint32_t find(planner *p, uint32_t t) {
  while (p->tie[t].parent != t) t = p->tie[t].parent = p->tie[p->tie[t].parent].parent;
  return t;
}

static void unite(planner *p, uint32_t a, uint32_t b) {
  a = find(p, a);
  b = find(p, b);
  if (a == b) return;
  if (a > b) { /* the earlier one stays, so that a run can be repeated */
    uint32_t swap = a;
    a = b;
    b = swap;
  }
  p->tie[b].parent = a;
  p->tie[a].unit |= p->tie[b].unit;
  if (!p->tie[a].wanted) p->tie[a].wanted = p->tie[b].wanted;
}

/* One variable for each level; those of levels that chunk an item axis stand alone. */
static uint32_t new_value_ties(planner *p, const bb_type *type) {
  uint32_t first = p->ties;
  for (uint32_t i = 0; i < type->rank; i++) new_tie(p, type->level[i].dim);
  return first;
}

typedef struct tied_value {
  const bb_type *type;
  uint32_t first;
} tied_value;

static tied_value out_value(const bb_instance *at, bb_value value) {
  return (tied_value){bb_type_of(at->graph, value), at->node[value.node].tie[value.port]};
}

/* The lists of partial results that two values share: `a` lacks level `skip` of `b` (BB_WHOLE: none). */
static void unite_values(planner *p, tied_value a, tied_value b, uint32_t skip) {
  for (uint32_t i = 0, j = 0; i < a.type->rank && j < b.type->rank; i++, j++) {
    if (j == skip && ++j == b.type->rank) return;
    if (a.type->level[i].axis == BB_AXIS_NONE) unite(p, a.first + i, b.first + j);
  }
}

static void unite_loop(planner *p, uint32_t loop, tied_value list, uint32_t level) {
  if (list.type->level[level].axis == BB_AXIS_NONE) unite(p, loop, list.first + level);
}

/* The lists that `part` has of those of `whole`, in order: components of a tuple may lack some. */
static void unite_common(planner *p, tied_value whole, tied_value part) {
  for (uint32_t i = 0, j = 0; i < whole.type->rank && j < part.type->rank; i++) {
    const bb_level *a = &whole.type->level[i], *b = &part.type->level[j];
    if (a->dim != b->dim || a->axis != b->axis) continue;
    if (a->axis == BB_AXIS_NONE) unite(p, whole.first + i, part.first + j);
    j++;
  }
}

static void tie_components(planner *p, const bb_monoid *monoid, const tied_value *component) {
  for (uint32_t k = 0; k < monoid->components; k++)
    for (uint32_t j = 0; j < monoid->components; j++)
      if (j != k && bb_monoid_reads(monoid, k, j)) unite_common(p, component[k], component[j]);
}

static void tie_reduce(planner *p, const bb_instance *at, uint32_t index) {
  const bb_node *node = bb_node_get(at->graph, index);
  tied_value component[BB_MONOID_COMPONENTS];
  if (!node->monoid || node->nin != node->monoid->components || node->nin > BB_MONOID_COMPONENTS)
    bb_run_refuse(p->run, node, "a reduction has one operand and one result for each component");
  for (uint32_t i = 0; i < node->nin; i++) {
    tied_value in = out_value(at, node->in[i].src), first = out_value(at, node->in[0].src);
    unite(p, in.first + node->in[i].level, first.first + node->in[0].level);
    uint32_t skip = node->reduce == BB_REDUCE_FOLD ? node->in[i].level : BB_WHOLE;
    if (i >= node->nout) continue;
    component[i] = (tied_value){node->out[i].type, at->node[index].tie[i]};
    unite_values(p, component[i], in, skip);
  }
  if (node->nout == node->nin) tie_components(p, node->monoid, component);
}

/* The first iteration and the rest of a loop have the same blocks, and so do loops in them whose
 * results stand in one list. */
static void tie_peeled(planner *p, const bb_instance *at, uint32_t index) {
  const bb_node *node = bb_node_get(at->graph, index);
  for (uint32_t i = 0; i < node->nout && node->part == BB_PART_REST; i++) {
    uint32_t in = node->out[i].resumes - 1;
    if (in >= node->nin) continue;
    uint32_t first = node->in[in].src.node;
    if (bb_node_get(at->graph, first)->dim == node->dim)
      unite(p, at->node[index].loop, at->node[first].loop);
    tied_value result = {node->out[i].type, at->node[index].tie[i]};
    unite_values(p, result, out_value(at, node->in[in].src), BB_WHOLE);
  }
}

static void tie_map(planner *p, const bb_instance *at, uint32_t index) {
  const bb_node *node = bb_node_get(at->graph, index);
  const bb_instance *inner = at->node[index].inner;
  uint32_t loop = at->node[index].loop;
  for (uint32_t i = 0; i < node->nin; i++) {
    tied_value outside = out_value(at, node->in[i].src);
    tied_value inside = out_value(inner, (bb_value){inner->graph->input[i], 0});
    unite_values(p, inside, outside, node->in[i].level);
    if (node->in[i].level != BB_WHOLE) unite_loop(p, loop, outside, node->in[i].level);
  }
  for (uint32_t o = 0; o < node->nout; o++) {
    tied_value outside = {node->out[o].type, at->node[index].tie[o]};
    tied_value inside = out_value(inner, bb_src(inner->graph, inner->graph->output[o], 0));
    bool collect = node->out[o].mode == BB_OUT_COLLECT;
    unite_values(p, inside, outside, collect ? 0 : BB_WHOLE);
    if (collect) unite_loop(p, loop, outside, 0);
  }
  for (uint32_t o = 0; o < node->nout; o++) {
    const bb_monoid *fold = node->out[o].mode == BB_OUT_FOLD ? node->out[o].fold : NULL;
    if (!fold || node->out[o].component || fold->components > node->nout - o) continue;
    tied_value component[BB_MONOID_COMPONENTS];
    for (uint32_t k = 0; k < fold->components && k < BB_MONOID_COMPONENTS; k++)
      component[k] = (tied_value){node->out[o + k].type, at->node[index].tie[o + k]};
    tie_components(p, fold, component);
  }
}

/* A value in memory outside the block program: its lists of partial results have an element for
 * each index. */
static void tie_tensor(planner *p, const bb_program *program, tied_value v) {
  for (uint32_t i = 0; i < v.type->rank; i++)
    if (v.type->level[i].axis == BB_AXIS_NONE && bb_dim_get(program, v.type->level[i].dim)->blocked)
      p->tie[find(p, v.first + i)].unit = true;
}

/* --- instances --- */

static void check_type(planner *p, const bb_node *node, const bb_type *type) {
  if (!type) bb_run_refuse(p->run, node, "an out-port has no type");
  if (type->rank > BB_INTERP_LEVELS) bb_run_refuse(p->run, node, "a type of more than 64 lists");
}

/* What later stages take for granted of ports; the rest is checked where it is used. */
static void check_map(planner *p, const bb_node *node) {
  if (!node->inner || node->inner->ninputs != node->nin || node->inner->noutputs != node->nout)
    bb_run_refuse(p->run, node, "the ports of a map are not those of its inner level");
  for (uint32_t o = 0; o < node->nout; o++)
    if (node->out[o].mode == BB_OUT_COLLECT && node->out[o].type->rank == 0)
      bb_run_refuse(p->run, node, "a collected value is no list");
}

static void check_func(planner *p, const bb_node *node) {
  if ((unsigned)node->op >= BB_OP_COUNT) bb_run_refuse(p->run, node, "no such op");
  const bb_op_info *info = bb_op_get(node->op);
  bool fits = node->nout == bb_op_results(node->op, node->nin);
  if (info->arity >= 0)
    fits &= node->nin == (uint32_t)info->arity;
  else if (bb_op_has_monoid(node->op))
    fits &= node->rows && node->rows->components == node->nin;
  else
    fits &= node->expr && node->expr->arg_count <= node->nin;
  if (!fits)
    bb_run_refuse(p->run, node, "a functional op with operands or results too few or too many");
}

static void check_inputs(planner *p, const bb_instance *at, const bb_node *node) {
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_value src = node->in[i].src;
    if (src.node >= at->graph->count || src.port >= at->graph->node[src.node]->nout)
      bb_run_refuse(p->run, node, "an in-port is not connected");
    bool levels = node->kind == BB_NODE_REDUCE || node->kind == BB_NODE_MAP;
    if (levels && !(node->kind == BB_NODE_MAP && node->in[i].level == BB_WHOLE) &&
        node->in[i].level >= bb_type_of(at->graph, src)->rank)
      bb_run_refuse(p->run, node, "an in-port names a level that its value lacks");
  }
}

static void make_outs(planner *p, bb_instance_node *at, const bb_node *node) {
  bb_arena *scratch = p->run->scratch;
  at->in = BB_NEW(scratch, bb_datum *, node->nin);
  at->out = BB_NEW(scratch, bb_datum, node->nout);
  at->tie = BB_NEW(scratch, uint32_t, node->nout);
  for (uint32_t o = 0; o < node->nout; o++) {
    const bb_type *type = node->out[o].type;
    check_type(p, node, type);
    at->out[o] = (bb_datum){.type = type, .row = {1, 0}, .col = {1, 0}};
    at->out[o].level = BB_NEW(scratch, bb_span, type->rank);
    for (uint32_t i = 0; i < type->rank; i++) at->out[o].level[i] = (bb_span){1, 0};
    at->tie[o] = new_value_ties(p, type);
  }
}

static bb_instance *instantiate(planner *p, const bb_graph *graph, uint32_t depth);

/* The maps that number the chunks of a map that stands at `depth`. */
static const uint32_t *find_chunks(planner *p, const bb_node *node, uint32_t depth) {
  uint32_t *chunk = BB_NEW(p->run->scratch, uint32_t, bb_chunk_depth(node)), at = depth;
  for (uint32_t i = bb_chunk_depth(node); i-- > 0; chunk[i] = at) {
    do
      if (at-- == 0) bb_run_refuse(p->run, node, "no map numbers its chunks");
    while (p->around[at] != node->chunk->dim[i]);
  }
  return chunk;
}

static void make_node(planner *p, bb_instance *at, uint32_t index, uint32_t depth) {
  const bb_node *node = bb_node_get(at->graph, index);
  bb_instance_node *made = &at->node[index];
  make_outs(p, made, node);
  check_inputs(p, at, node);
  for (uint32_t i = 0; i < node->nin; i++)
    made->in[i] = &at->node[node->in[i].src.node].out[node->in[i].src.port];
  switch (node->kind) {
  case BB_NODE_FUNC:
    check_func(p, node);
    made->cost =
        node->op == BB_OP_ELEMENTWISE ? bb_expr_cost(node->expr) : bb_op_get(node->op)->cost;
    if (node->op == BB_OP_ELEMENTWISE)
      made->formula = bb_formula_compile(p->run, node->expr, false);
    for (uint32_t i = 0; i < node->nin; i++)
      if (made->in[i]->type->rank)
        bb_run_refuse(p->run, node, "a functional op takes items, not lists");
    break;
  case BB_NODE_MAP:
    check_map(p, node);
    made->chunk = find_chunks(p, node, depth);
    p->around[depth] = node->dim;
    made->loop = new_tie(p, node->dim);
    p->tie[made->loop].wanted = node->block;
    made->inner = instantiate(p, node->inner, depth + 1);
    tie_map(p, at, index);
    tie_peeled(p, at, index);
    break;
  case BB_NODE_REDUCE:
    made->cost = 1;
    tie_reduce(p, at, index);
    break;
  default:
    if (depth) break; /* in- and out-ports of maps: see tie_map() */
    for (uint32_t i = 0; i < node->nin; i++)
      tie_tensor(p, p->run->program, out_value(at, node->in[i].src));
    for (uint32_t o = 0; o < node->nout; o++)
      tie_tensor(p, p->run->program, (tied_value){node->out[o].type, made->tie[o]});
  }
}

static bb_instance *instantiate(planner *p, const bb_graph *graph, uint32_t depth) {
  bb_run *run = p->run;
  if (depth > DEEPEST) bb_fail(run->ctx, BB_ERROR_UNSUPPORTED, "maps nested more than 200 deep");
  if (depth > p->depth) p->depth = depth;
  bb_instance *at = BB_NEW(run->scratch, bb_instance, 1);
  at->graph = graph;
  at->order = BB_NEW(run->scratch, uint32_t, graph->live);
  at->node = BB_NEW(run->scratch, bb_instance_node, graph->count);
  at->count = bb_topological_order(graph, run->scratch, at->order);
  if (at->count < graph->live) bb_fail(run->ctx, BB_ERROR_INTERNAL, "a level has a cycle");
  for (uint32_t i = 0; i < at->count; i++) make_node(p, at, at->order[i], depth);
  return at;
}

/* --- block sizes --- */

/* Mostly blocks that do not divide; never so small that a long loop crawls. */
static int64_t drawn_block(uint64_t seed, uint32_t key, int64_t extent) {
  uint64_t random = bb_hash_number(bb_hash_number(seed) ^ key);
  int64_t least = extent / 16 + 1, most = extent + 2;
  return least + (int64_t)(random % (uint64_t)(most - least + 1));
}

static int64_t block_of(planner *p, uint32_t loop) {
  const bb_interp_options *options = p->run->options;
  tie *root = &p->tie[find(p, loop)];
  if (root->block) return root->block;
  bb_dim dim = p->tie[loop].dim;
  int64_t given = options->block ? options->block[dim] : 0;
  root->block = given > 0 ? given : root->wanted ? root->wanted : DEFAULT_BLOCK;
  if (options->loop_seed)
    root->block =
        drawn_block(options->loop_seed, (uint32_t)(root - p->tie), bb_run_extent(p->run, dim));
  if (root->unit) root->block = 1;
  return root->block;
}

static void give_blocks(planner *p, bb_instance *at) {
  for (uint32_t i = 0; i < at->count; i++) {
    const bb_node *node = bb_node_get(at->graph, at->order[i]);
    bb_instance_node *made = &at->node[at->order[i]];
    if (node->kind != BB_NODE_MAP) continue;
    bool blocked = bb_dim_get(p->run->program, node->dim)->blocked;
    made->block = blocked ? block_of(p, made->loop) : 1;
    give_blocks(p, made->inner);
  }
}

bb_instance *bb_plan_make(bb_run *run, const bb_graph *root) {
  planner p = {.run = run};
  bb_instance *at = instantiate(&p, root, 0);
  give_blocks(&p, at);
  run->depths = p.depth + 1;
  run->stack = BB_NEW(run->scratch, bb_stack, run->depths);
  run->index = BB_NEW(run->scratch, int64_t, run->depths);
  for (uint32_t i = 0; i < run->depths; i++) run->stack[i].arena = run->scratch;
  return at;
}
