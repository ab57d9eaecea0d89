/* choose.c - fuses candidates into kernels and chooses a snapshot of each.
 *
 * The rules without extension see a whole candidate.  What they leave apart stays apart: the
 * candidate is split there into kernels, and map extension, which pulls everything around a map into
 * it, is tried inside each kernel alone.  So a snapshot is as large as one kernel, and their number
 * does not multiply.  A candidate of a few small kernels is tried as one first.
 */
#include "choose.h"
#include "../graph/hash.h"
#include "../graph/intern.h"

#include <math.h>
#include <string.h>

enum {
  SYMBOL_GUESS = 1024,
  REPAIR = 12,  /* the rule that makes products of dependent folds */
  BALANCE = 16, /* operations that a machine does in the time in which it moves a byte: 10 to 40 */
  LAUNCH = 1 << 25, /* and in the time between two kernels */
  JOINED = 6        /* kernels that are tried as one, at most */
};

/* A candidate or kernel that later ones are held against. */
typedef struct known {
  uint64_t shape; /* of its root level alone */
  bb_hash hash;
  bool hashed;
  uint32_t index;
  bb_graph *fused; /* candidates: what became of it */
} known;

/* The first of each shape, and the first of each hash among those that share a shape: what is like
 * nothing else, as the one large candidate of a long model is, need not be hashed. */
typedef struct repertoire {
  bb_intern *shapes, *hashes; /* of `known` */
} repertoire;

typedef struct chooser {
  bb_program *program;
  const bb_choose_options *options;
  bb_fuse_options fuse; /* what bb_fuse() gets */
  const bb_fuse_options *given;
  bb_carving made;
  repertoire candidates, kernels;
  bb_twin *twin;
  bb_arena *bills;   /* where prices are kept */
  uint32_t applied;  /* rewrites so far, over all candidates */
  uint32_t base;     /* rewrites of the candidate before this call of bb_fuse() */
  uint32_t seen;     /* rewrites of this call */
  bool fresh_kernel; /* its first snapshot repeats the candidate's, unless it is rewritten */
  bool dear;         /* extensions that cost a product again are taken too */
  bool refused;      /* one was not taken */
  bool apart;        /* no extension at the top */
  bool one_map;      /* of a kernel's snapshots only those with one map at the top are chosen */
} chooser;

static uint64_t known_shape(const void *object) {
  return ((const known *)object)->shape;
}

static bool same_shape(const void *a, const void *b) {
  return ((const known *)a)->shape == ((const known *)b)->shape;
}

static uint64_t known_hash(const void *object) {
  return ((const known *)object)->hash.low;
}

static bool same_hash(const void *a, const void *b) {
  return memcmp(&((const known *)a)->hash, &((const known *)b)->hash, sizeof(bb_hash)) == 0;
}

static repertoire repertoire_start(bb_arena *arena) {
  return (repertoire){bb_intern_create(arena, known_shape, same_shape),
                      bb_intern_create(arena, known_hash, same_hash)};
}

/* --- the policy of map extension --- */

static bool contains_dot(const bb_graph *graph, uint32_t n) {
  const bb_node *node = graph->node[n];
  if (node->kind == BB_NODE_FUNC) return node->op == BB_OP_DOT;
  if (node->kind != BB_NODE_MAP) return false;
  for (uint32_t i = 0; i < node->inner->count; i++)
    if (contains_dot(node->inner, i)) return true;
  return false;
}

/* Extension of a map over rows would run a product around it again for every block of rows. */
static bool extension_is_cheap(void *user, const bb_graph *level, uint32_t map) {
  const bb_node *node = level->node[map];
  chooser *c = user;
  bool over_rows = false, top = level->noutputs && level->node[level->output[0]]->access;
  if (c->apart && top) return false;
  for (uint32_t p = 0; p < node->nout; p++)
    over_rows |= node->out[p].mode == BB_OUT_COLLECT && node->out[p].axis == BB_AXIS_ROW;
  for (uint32_t i = 0; over_rows && !c->dear && i < level->count; i++) {
    if (i == map || !contains_dot(level, i)) continue;
    c->refused = true;
    return false;
  }
  return true;
}

/* --- fusing --- */

static void forward_trace(void *user, const bb_trace_event *event, const bb_graph *root) {
  chooser *c = user;
  bb_trace_event shifted = *event;
  shifted.step += c->base;
  if (event->snapshot && c->fresh_kernel && event->step == 0) return;
  c->given->trace(c->given->user, &shifted, root);
}

static bool forward_may_extend(void *user, const bb_graph *level, uint32_t map) {
  chooser *c = user;
  return c->given->may_extend(c->given->user, level, map);
}

static chooser chooser_start(bb_program *program, const bb_choose_options *options,
                             bb_arena *scratch) {
  chooser c = {.program = program,
               .options = options,
               .given = options ? options->fuse : NULL,
               .made = bb_carving_start(program, "k"),
               .candidates = repertoire_start(scratch),
               .kernels = repertoire_start(scratch),
               .twin = bb_twin_create(program, scratch),
               .bills = program->arena};
  if (c.given) c.fuse = *c.given;
  c.fuse.may_extend = c.given && c.given->may_extend ? forward_may_extend : extension_is_cheap;
  c.fuse.trace = c.given && c.given->trace ? forward_trace : NULL;
  return c;
}

static bool rewrites_are_spent(const chooser *c) {
  return c->given && c->given->stop_after && c->applied >= c->given->stop_after;
}

/* Runs the engine on a copy of `graph`; gives its snapshots, one at least. */
static uint32_t fuse(chooser *c, bb_graph *graph, bool no_extend, bb_snapshot **snapshots) {
  bb_graph *root = bb_graph_hold(graph);
  uint32_t count = 0;
  c->seen = 0;
  if (!rewrites_are_spent(c)) {
    c->fuse.user = c;
    c->fuse.applied = &c->seen;
    c->fuse.peel = !no_extend && c->given && c->given->peel;
    c->fuse.no_extend = no_extend || (c->given && c->given->no_extend);
    c->fuse.stop_after = c->given && c->given->stop_after ? c->given->stop_after - c->applied : 0;
    count = bb_fuse(c->program, &root, &c->fuse, snapshots);
    c->applied += c->seen;
  }
  if (count == 0) {
    *snapshots = BB_NEW(c->program->arena, bb_snapshot, 1);
    (*snapshots)[count++] = (bb_snapshot){.graph = root, .operations = -1, .buffered = -1};
  }
  for (uint32_t i = 0; i < count; i++) (*snapshots)[i].step += c->base;
  c->base += c->seen;
  return count;
}

static void begin(const chooser *c, const bb_candidate *candidate, const bb_candidate *same) {
  if (c->options && c->options->begin) c->options->begin(c->options->user, candidate, same);
}

static bool has_two_maps(const bb_graph *graph) {
  uint32_t maps = 0;
  for (uint32_t i = 0; i < graph->count; i++)
    if (graph->node[i]->kind == BB_NODE_MAP && (++maps > 1 || has_two_maps(graph->node[i]->inner)))
      return true;
  return false;
}

/* A kernel without two maps side by side is as fused as can be: extension brings maps together. */
static uint32_t keep(chooser *c, bb_graph *graph, bb_snapshot **snapshots) {
  *snapshots = BB_NEW(c->program->arena, bb_snapshot, 1);
  (*snapshots)[0] =
      (bb_snapshot){.step = c->base, .graph = graph, .operations = -1, .buffered = -1};
  return 1;
}

/* What is dear by count may be cheap by price: the snapshots with every extension, behind those
 * without. */
static void fuse_dearly(chooser *c, bb_candidate *kernel) {
  bb_snapshot *more;
  c->dear = true;
  uint32_t count = fuse(c, kernel->graph, false, &more), cheap = kernel->snapshots;
  c->dear = false;
  bb_snapshot *all = BB_NEW(c->program->arena, bb_snapshot, (size_t)cheap + count);
  memcpy(all, kernel->snapshot, cheap * sizeof *all);
  memcpy(all + cheap, more + 1, (count - 1) * sizeof *all); /* the first is the same */
  kernel->snapshot = all;
  kernel->snapshots = cheap + count - 1;
}

/* --- equal ones --- */

/* Equal graphs have equal shapes: their nodes stand in one order. */
static uint64_t shape_of(const bb_graph *graph) {
  uint64_t shape = graph->live;
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REMOVED) continue;
    uint64_t word = (uint64_t)node->kind << 40 | (uint64_t)node->op << 32;
    shape = (shape ^ (word + (node->nin << 8) + node->nout)) * UINT64_C(0x9E3779B97F4A7C15);
    shape ^= shape >> 29;
  }
  return shape;
}

static void hash_known(chooser *c, known *k, const bb_graph *graph) {
  k->hash = bb_hash_graph(c->program, graph);
  k->hashed = true;
}

/* The earlier one of `all` (candidates, or kernels) that all[index] is a twin of, or NULL; then *mine
 * is what later ones find. */
static const known *find_twin(chooser *c, repertoire *r, const bb_candidate *all, uint32_t index,
                              bb_arena *scratch, known **mine) {
  const bb_graph *graph = all[index].graph;
  known *k = *mine = BB_NEW(r->shapes->arena, known, 1);
  *k = (known){.shape = shape_of(graph), .index = index};
  known *alike = (known *)bb_intern_find(r->shapes, k);
  if (!alike) {
    bb_intern_add(r->shapes, k);
    return NULL;
  }
  if (!alike->hashed) {
    hash_known(c, alike, all[alike->index].graph);
    bb_intern_add(r->hashes, alike);
  }
  hash_known(c, k, graph);
  const known *found = bb_intern_find(r->hashes, k);
  if (!found) bb_intern_add(r->hashes, k);
  bool same = found && bb_twin_match(c->twin, all[found->index].graph, graph, scratch);
  return same ? found : NULL;
}

/* --- kernels --- */

/* Fewer loads and stores are worth a repair's few operations more. */
static double work(const bb_snapshot *s) {
  return s->operations + BALANCE * s->buffered;
}

static uint32_t maps_at_top(const bb_graph *graph) {
  uint32_t maps = 0;
  for (uint32_t i = 0; i < graph->count; i++) maps += graph->node[i]->kind == BB_NODE_MAP;
  return maps;
}

/* The snapshot with the least work; with `one_map`, of those with one map at the top if there are
 * any. */
static uint32_t least_work(const chooser *c, uint32_t count, bb_snapshot *snapshot, bool one_map) {
  uint32_t best = BB_NONE;
  for (uint32_t i = 0; i < count; i++) {
    bb_snapshot *s = &snapshot[i];
    bb_count_graph(c->program, s->graph, SYMBOL_GUESS, &s->operations, &s->buffered);
    if (one_map && maps_at_top(s->graph) != 1) continue;
    if (best == BB_NONE || work(s) < work(&snapshot[best])) best = i;
  }
  return best != BB_NONE || !one_map ? best : least_work(c, count, snapshot, false);
}

static void choose_snapshot(chooser *c, bb_candidate *kernel) {
  kernel->chosen = least_work(c, kernel->snapshots, kernel->snapshot, c->one_map);
  if (c->options && c->options->pricer) bb_pricer_choose(c->options->pricer, kernel, c->bills);
}

static bb_way twin_way(const chooser *c, const bb_way *way) {
  bb_way twin = *way;
  twin.fold = bb_twin_dim(c->twin, way->fold);
  twin.block = BB_NEW(c->bills, struct bb_block_size, way->blocks);
  twin.block_dim = BB_NEW(c->bills, bb_dim, way->blocks);
  for (uint32_t i = 0; i < way->blocks; i++) {
    twin.block_dim[i] = bb_twin_dim(c->twin, way->block_dim[i]);
    twin.block[i].dim = bb_dim_get(c->program, twin.block_dim[i])->name;
    twin.block[i].elements = way->block[i].elements;
  }
  return twin;
}

static const bb_bill *twin_bill(const chooser *c, const bb_bill *bill) {
  bb_bill *twin = BB_NEW(c->bills, bb_bill, 1);
  *twin = *bill;
  twin->best = twin_way(c, &bill->best);
  twin->second = twin_way(c, &bill->second);
  return twin;
}

static void finish_kernel(chooser *c, uint32_t index, bb_arena *scratch) {
  bb_candidate *kernel = &c->made.candidate[index];
  known *mine;
  bool changed = bb_absorb_transposes(c->program, kernel->graph);
  bb_orient_inputs(c->program, kernel->graph);
  const known *same = find_twin(c, &c->kernels, c->made.candidate, index, scratch, &mine);
  const bb_candidate *original = same ? &c->made.candidate[same->index] : NULL;
  begin(c, kernel, original);
  if (original) {
    kernel->snapshots = original->snapshots;
    kernel->snapshot = BB_NEW(c->program->arena, bb_snapshot, original->snapshots);
    memcpy(kernel->snapshot, original->snapshot, original->snapshots * sizeof *kernel->snapshot);
    for (uint32_t i = 0; i < kernel->snapshots; i++)
      kernel->snapshot[i].graph = original->snapshot[i].graph == original->graph
                                      ? bb_graph_hold(kernel->graph)
                                      : bb_twin_graph(c->twin, original->snapshot[i].graph);
    kernel->chosen = original->chosen;
    if (original->bill) kernel->bill = twin_bill(c, original->bill);
    return;
  }
  c->fresh_kernel = true;
  c->refused = false;
  kernel->snapshots = changed || has_two_maps(kernel->graph)
                          ? fuse(c, kernel->graph, false, &kernel->snapshot)
                          : keep(c, kernel->graph, &kernel->snapshot);
  if (c->refused && c->options && c->options->pricer) fuse_dearly(c, kernel);
  choose_snapshot(c, kernel);
}

/* --- candidates --- */

/* Gives what became of it. */
static known *fuse_candidate(chooser *c, uint32_t index, bb_arena *scratch) {
  bb_candidate *candidate = &c->program->candidate[index];
  known *mine;
  const known *same = find_twin(c, &c->candidates, c->program->candidate, index, scratch, &mine);
  begin(c, candidate, same ? &c->program->candidate[same->index] : NULL);
  c->base = 0;
  if (same) {
    mine->fused = bb_twin_graph(c->twin, same->fused);
    return mine;
  }
  bb_snapshot *snapshot;
  c->fresh_kernel = false;
  uint32_t count = fuse(c, candidate->graph, true, &snapshot);
  mine->fused = snapshot[count - 1].graph;
  return mine;
}

/* Of all that is made in fusing, what it comes to stays: a candidate's levels go before it is split,
 * and a kernel's before the next kernel. */
static known *fuse_and_keep(chooser *c, uint32_t index) {
  bb_program *program = c->program;
  bb_arena *scratch = program->levels = bb_scratch(program->ctx);
  known *candidate = fuse_candidate(c, index, scratch);
  candidate->fused = bb_graph_keep(candidate->fused);
  program->levels = program->arena;
  bb_scratch_end(scratch);
  return candidate;
}

static void finish_and_keep(chooser *c, uint32_t index, bb_graph *origin) {
  bb_program *program = c->program;
  bb_arena *outer = program->levels, *scratch = program->levels = bb_scratch(program->ctx);
  finish_kernel(c, index, scratch);
  bb_candidate *kernel = &c->made.candidate[index];
  kernel->origin = origin;
  kernel->graph = bb_graph_keep(kernel->graph);
  for (uint32_t i = 0; i < kernel->snapshots; i++)
    kernel->snapshot[i].graph = bb_graph_keep(kernel->snapshot[i].graph);
  program->levels = outer;
  bb_scratch_end(scratch);
}

/* --- kernels that are cheaper as one --- */

/* The least work of a fused candidate with extension, nothing of it seen or counted. */
static bb_snapshot try_extended(const chooser *c, bb_graph *fused, bool apart) {
  chooser trial = *c;
  bb_fuse_options unseen = c->given ? *c->given : (bb_fuse_options){0};
  bb_snapshot *snapshot;
  unseen.stop_after = 0;
  trial.given = &unseen;
  trial.fuse.trace = NULL;
  trial.fuse.tries = trial.fuse.hits = NULL;
  trial.apart = apart;
  uint32_t count = fuse(&trial, fused, false, &snapshot);
  return snapshot[least_work(c, count, snapshot, !apart)];
}

/* Is a candidate with several maps at the top better off as one kernel?  It is where extension at the
 * top makes one map of them, for no more work than the launches that are saved, as it does where a map
 * around them all hides that they are several. */
static bool is_one_kernel(const chooser *c, const bb_flow *flow, bb_graph *fused) {
  bool asked = c->given && (c->given->no_extend || c->given->may_extend || c->given->stop_after);
  bool priced = c->options && c->options->pricer;
  if (asked || priced || flow->groups < 2 || flow->groups > JOINED) return false;
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    if (flow->group[n] != BB_NONE && (flow->once[n] || !bb_is_computed(fused->node[n])))
      return false;
  }
  bb_snapshot joined = try_extended(c, fused, false), apart = try_extended(c, fused, true);
  double saved = (double)LAUNCH * (flow->groups - 1);
  return maps_at_top(joined.graph) == 1 && work(&joined) <= work(&apart) + saved;
}

static void join_groups(bb_flow *flow) {
  for (uint32_t i = 0; i < flow->nodes; i++)
    if (flow->group[flow->order[i]] != BB_NONE) flow->group[flow->order[i]] = 0;
  flow->groups = 1;
}

static void choose_candidate(chooser *c, uint32_t index) {
  bb_program *program = c->program;
  known *candidate = fuse_and_keep(c, index);
  bb_arena *scratch = program->levels = bb_scratch(program->ctx);
  bb_flow *flow = bb_flow_create(program, candidate->fused, scratch);
  uint32_t first = c->made.candidates;
  bb_flow_group_kernels(flow);
  c->one_map = is_one_kernel(c, flow, candidate->fused);
  if (c->one_map) join_groups(flow);
  bb_flow_carve(flow, &c->made);
  for (uint32_t k = first; k < c->made.candidates; k++) finish_and_keep(c, k, candidate->fused);
  c->one_map = false;
  program->levels = program->arena;
  bb_scratch_end(scratch);
}

static void keep_step(chooser *c, const bb_step *step) {
  bb_carving *made = &c->made;
  BB_GROW(c->program->arena, made->step, made->step_capacity, (size_t)made->steps + 1);
  made->step[made->steps++] = *step;
}

void bb_choose_probe(bb_program *program, const bb_choose_options *options, bb_graph *graph,
                     bool alone, bb_arena *scratch, double *seconds, bb_plan *plan) {
  chooser c = chooser_start(program, options, scratch);
  uint32_t points = options->pricer->points;
  bb_snapshot *snapshot;
  c.bills = scratch;
  uint32_t count = fuse(&c, graph, true, &snapshot), kernels = 0;
  bb_flow *flow = bb_flow_create(program, snapshot[count - 1].graph, scratch);
  bb_flow_group_kernels(flow);
  bb_flow_carve(flow, &c.made);
  for (uint32_t k = 0; k < c.made.candidates; k++) kernels += !c.made.candidate[k].once;
  for (uint32_t p = 0; p < points; p++) seconds[p] = kernels > 1 && !alone ? INFINITY : 0;
  if (kernels > 1 && !alone) return;
  for (uint32_t k = 0; k < c.made.candidates; k++) {
    if (c.made.candidate[k].once && kernels > 0) continue;
    finish_kernel(&c, k, scratch);
    for (uint32_t p = 0; p < points; p++) seconds[p] += c.made.candidate[k].bill->seconds[p];
    if (plan) bb_pricer_plan(options->pricer, &c.made.candidate[k], plan);
  }
}

static void choose_all(bb_program *program, const bb_choose_options *options, bool repair) {
  bb_arena *scratch = bb_scratch(program->ctx);
  chooser c = chooser_start(program, options, scratch);
  if (!repair) c.fuse.disabled |= UINT64_C(1) << REPAIR;
  for (uint32_t i = 0; i < program->steps; i++) {
    if (program->step[i].candidate == BB_NONE)
      keep_step(&c, &program->step[i]);
    else
      choose_candidate(&c, program->step[i].candidate);
  }
  bb_carving_install(program, &c.made);
  bb_scratch_end(scratch);
}

/* Folds that Rule 12 has joined may meet exps that are no part of what it derived: apart, they can be made
 * safe as the program can that was given. */
void bb_choose(bb_program *program, const bb_choose_options *options) {
  bb_carving given = {.candidates = program->candidates,
                      .candidate = program->candidate,
                      .steps = program->steps,
                      .step = program->step};
  choose_all(program, options, true);
  if (!bb_make_kernels_safe(program)) {
    bb_log(program->ctx, BB_LOG_INFO, "fused once more, without Rule %d: exps could overflow",
           REPAIR);
    bb_carving_install(program, &given);
    choose_all(program, options, false);
    if (!bb_make_kernels_safe(program))
      bb_log(program->ctx, BB_LOG_WARNING, "a kernel has exps that could overflow");
  }
  program->stage = BB_STAGE_FUSED;
}
