/* run.c - runs the levels of a block program: nodes in topological order, maps by iterations. */
#include "machine.h"

#include <string.h>

/* --- the loop of a map --- */

typedef struct loop {
  bb_run *run;
  const bb_node *node;
  bb_instance_node *at;
  const bb_instance *inner;
  uint32_t depth;               /* of the level the map stands in */
  int64_t extent, block, count; /* iterations */
} loop;

static void run_level(bb_run *run, bb_instance *at, uint32_t depth);

/* The inner values of out-ports. */
static bb_datum *result_of(const loop *l, uint32_t port) {
  uint32_t output = l->inner->graph->output[port];
  return l->inner->node[output].in[0];
}

static void take_block(const loop *l, bb_span *span, int64_t *start, bb_datum *in, int64_t i) {
  if (span->length != l->extent)
    bb_run_refuse(l->run, l->node, "a list over another extent is iterated");
  int64_t first = i * l->block, left = l->extent - first;
  span->length = left < l->block ? left : l->block;
  in->data += first * span->stride;
  *start += first;
}

/* What an iterated in-port gets: element i of the list.  Of an empty list the ghost iteration (i <
 * 0) gets an empty block, or zeros. */
static void bind_element(const loop *l, uint32_t port, int64_t i) {
  const bb_datum *list = l->at->in[port];
  uint32_t level = l->node->in[port].level;
  bb_datum *in = &l->inner->node[l->inner->graph->input[port]].out[0];
  bb_span *span = in->level;
  const bb_type *type = in->type;
  if (type->rank + 1 != list->type->rank)
    bb_run_refuse(l->run, l->node, "an in-port has the wrong type");
  *in = *list;
  in->type = type;
  in->level = span;
  for (uint32_t from = 0, to = 0; from < list->type->rank; from++)
    if (from != level) span[to++] = list->level[from];
  bb_axis axis = list->type->level[level].axis;
  if (axis == BB_AXIS_ROW) take_block(l, &in->row, &in->row_start, in, i < 0 ? 0 : i);
  if (axis == BB_AXIS_COL) take_block(l, &in->col, &in->col_start, in, i < 0 ? 0 : i);
  if (axis != BB_AXIS_NONE) return;
  if (list->level[level].length != l->count)
    bb_run_refuse(l->run, l->node, "a list of another length is iterated");
  if (i >= 0) {
    in->data += i * list->level[level].stride;
    return;
  }
  in->data = l->run->zero;
  in->row.stride = in->col.stride = 0;
  for (uint32_t k = 0; k < type->rank; k++) span[k].stride = 0;
}

static void bind_whole(const loop *l, uint32_t port) {
  const bb_datum *value = l->at->in[port];
  bb_datum *in = &l->inner->node[l->inner->graph->input[port]].out[0];
  const bb_type *type = in->type;
  bb_span *span = in->level;
  if (type->rank != value->type->rank)
    bb_run_refuse(l->run, l->node, "an in-port has the wrong type");
  *in = *value;
  in->type = type;
  in->level = span;
  for (uint32_t k = 0; k < type->rank; k++) span[k] = value->level[k];
}

static void iterate(const loop *l, int64_t i) {
  l->run->index[l->depth] = i < 0 ? 0 : i;
  for (uint32_t port = 0; port < l->node->nin; port++) {
    if (l->node->in[port].level == BB_WHOLE) {
      bind_whole(l, port);
      continue;
    }
    bind_element(l, port, i);
    const bb_datum *in = &l->inner->node[l->inner->graph->input[port]].out[0];
    if (in->type->rank == 0) bb_count_read(l->run, in);
  }
  run_level(l->run, l->at->inner, l->depth + 1);
}

/* --- out-ports --- */

/* An out-port's value, shaped after the first inner one. */
static void make_out(const loop *l, uint32_t port) {
  const bb_out *how = &l->node->out[port];
  bb_datum *out = &l->at->out[port];
  const bb_datum *inner = result_of(l, port);
  bool collect = how->mode == BB_OUT_COLLECT;
  if (out->type->rank != inner->type->rank + collect)
    bb_run_refuse(l->run, l->node, "an out-port has the wrong type");
  for (uint32_t k = 0; k < inner->type->rank; k++) out->level[k + collect] = inner->level[k];
  out->row = inner->row;
  out->col = inner->col;
  out->row_start = inner->row_start;
  out->col_start = inner->col_start;
  if (collect) {
    bb_axis axis = out->type->level[0].axis;
    out->level[0] = (bb_span){axis == BB_AXIS_NONE ? l->count : 1, 0};
    if (axis == BB_AXIS_ROW) out->row.length = l->extent, out->row_start = 0;
    if (axis == BB_AXIS_COL) out->col.length = l->extent, out->col_start = 0;
  }
  bb_datum_alloc(l->run->ctx, out, &l->run->stack[l->depth]);
}

/* Stores the inner value as element i of the list. */
static void collect(const loop *l, uint32_t port, int64_t i) {
  bb_datum *out = &l->at->out[port];
  const bb_datum *inner = result_of(l, port);
  bb_datum slot = *out;
  slot.type = inner->type;
  slot.level = out->level + 1;
  bb_axis axis = out->type->level[0].axis;
  if (axis == BB_AXIS_NONE) slot.data += i * out->level[0].stride;
  if (axis == BB_AXIS_ROW) take_block(l, &slot.row, &slot.row_start, &slot, i);
  if (axis == BB_AXIS_COL) take_block(l, &slot.col, &slot.col_start, &slot, i);
  if (!bb_datum_same_shape(&slot, inner))
    bb_run_refuse(l->run, l->node, "a collected value is not the block of its iteration");
  bb_datum_copy(&slot, inner);
  if (inner->type->rank == 0) bb_count_written(l->run, inner);
}

static uint32_t fold_ports(const loop *l, uint32_t port) {
  const bb_monoid *monoid = l->node->out[port].fold;
  if (!monoid || l->node->out[port].component != 0 || monoid->components > l->node->nout - port ||
      monoid->components > BB_MONOID_COMPONENTS)
    bb_run_refuse(l->run, l->node, "a folded out-port lacks its monoid or its components");
  return monoid->components;
}

static void fold(const loop *l, uint32_t port, bool begins) {
  uint32_t count = fold_ports(l, port);
  bb_datum *acc[BB_MONOID_COMPONENTS], *term[BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < count; k++) {
    acc[k] = &l->at->out[port + k];
    term[k] = result_of(l, port + k);
    bool lists = acc[k]->type->rank > 0;
    if (lists) bb_count_read(l->run, term[k]);
    if (lists && !begins) bb_count_read(l->run, acc[k]);
    if (lists) bb_count_written(l->run, acc[k]);
    if (begins) bb_datum_copy(acc[k], term[k]);
  }
  if (!begins)
    bb_fold_combine(l->run, l->node->out[port].fold, acc, term, &l->run->stack[l->depth + 1]);
}

static void take_results(const loop *l, int64_t i, bool begins) {
  for (uint32_t port = 0; port < l->node->nout; port++) {
    if (begins) make_out(l, port);
    switch (l->node->out[port].mode) {
    case BB_OUT_COLLECT: collect(l, port, i); break;
    case BB_OUT_INVARIANT:
      if (begins) bb_datum_copy(&l->at->out[port], result_of(l, port));
      break;
    case BB_OUT_FOLD: break; /* once all components have their memory */
    }
  }
  for (uint32_t port = 0; port < l->node->nout; port++) {
    if (l->node->out[port].mode != BB_OUT_FOLD) continue;
    fold(l, port, begins);
    port += l->node->out[port].fold->components - 1;
  }
}

/* No iteration: lists are empty, folds are the empty element, and what is equal in every iteration
 * is computed once all the same, since it may be used.  One ghost iteration on empty blocks gives
 * shapes and invariants; it counts nothing. */
static void run_ghost(const loop *l) {
  bb_run *run = l->run;
  bool silent = run->silent;
  bb_stack_mark mark = bb_stack_save(&run->stack[l->depth + 1]);
  run->silent = true;
  iterate(l, -1);
  for (uint32_t port = 0; port < l->node->nout; port++) {
    make_out(l, port);
    if (l->node->out[port].mode == BB_OUT_INVARIANT)
      bb_datum_copy(&l->at->out[port], result_of(l, port));
  }
  for (uint32_t port = 0; port < l->node->nout; port++) {
    if (l->node->out[port].mode != BB_OUT_FOLD) continue;
    uint32_t count = fold_ports(l, port);
    bb_datum *acc[BB_MONOID_COMPONENTS];
    for (uint32_t k = 0; k < count; k++) acc[k] = &l->at->out[port + k];
    bb_fold_empty(l->node->out[port].fold, acc);
    port += count - 1;
  }
  bb_stack_restore(&run->stack[l->depth + 1], mark);
  run->silent = silent;
}

/* The rest of a loop: an out-port begins as what the first iteration made. */
static void resume(const loop *l, uint32_t port) {
  uint32_t from = l->node->out[port].resumes;
  if (!from || from > l->node->nin)
    bb_run_refuse(l->run, l->node, "the rest of a loop resumes nothing");
  const bb_datum *made = l->at->in[from - 1];
  bb_datum *out = &l->at->out[port];
  for (uint32_t k = 0; k < made->type->rank; k++) out->level[k] = made->level[k];
  out->row = made->row;
  out->col = made->col;
  out->row_start = made->row_start;
  out->col_start = made->col_start;
  bb_datum_alloc(l->run->ctx, out, &l->run->stack[l->depth]);
  bb_datum_copy(out, made);
}

/* The iterations that a map runs: from `first` up to `end`. */
static void find_iterations(const loop *l, int64_t *first, int64_t *end) {
  *first = l->node->part == BB_PART_REST;
  *end = l->node->part == BB_PART_FIRST && l->count ? 1 : l->count;
  if (l->node->part != BB_PART_CHUNK) return;
  int64_t chunks = 1, chunk = 0;
  for (uint32_t i = 0; i < bb_chunk_depth(l->node); i++) {
    int64_t extent = bb_run_extent(l->run, l->node->chunk->dim[i]);
    if (__builtin_mul_overflow(chunks, extent, &chunks) || chunks > UINT32_MAX)
      bb_run_refuse(l->run, l->node, "too many chunks");
    chunk = chunk * extent + l->run->index[l->at->chunk[i]];
  }
  /* Without overflow: count * chunk / chunks. */
  int64_t whole = l->count / chunks, over = l->count % chunks;
  *first = whole * chunk + over * chunk / chunks;
  *end = whole * (chunk + 1) + over * (chunk + 1) / chunks;
}

static void run_map(bb_run *run, const bb_node *node, bb_instance_node *at, uint32_t depth) {
  loop l = {.run = run, .node = node, .at = at, .inner = at->inner, .depth = depth};
  l.extent = bb_run_extent(run, node->dim);
  l.block = at->block;
  l.count = l.extent / l.block + (l.extent % l.block != 0);
  bool rest = node->part == BB_PART_REST;
  for (uint32_t port = 0; rest && port < node->nout; port++) resume(&l, port);
  int64_t first, end;
  find_iterations(&l, &first, &end);
  for (int64_t i = first; i < end; i++) {
    bb_stack_mark mark = bb_stack_save(&run->stack[depth + 1]);
    iterate(&l, i);
    take_results(&l, i, i == first && !rest);
    bb_stack_restore(&run->stack[depth + 1], mark);
  }
  if (first >= end && !rest) run_ghost(&l);
}

/* --- levels --- */

static void run_node(bb_run *run, bb_instance *at, uint32_t index, uint32_t depth) {
  const bb_node *node = bb_node_get(at->graph, index);
  bb_instance_node *made = &at->node[index];
  switch (node->kind) {
  case BB_NODE_FUNC: bb_run_func(run, node, made, depth); return;
  case BB_NODE_MAP: run_map(run, node, made, depth); return;
  case BB_NODE_REDUCE: bb_run_reduce(run, node, made, depth); return;
  case BB_NODE_INPUT:
    if (depth == 0) bb_run_input(run, node, &made->out[0]);
    return; /* inside: bound by the map */
  case BB_NODE_OUTPUT:
    if (depth == 0) bb_run_output(run, node, at, index);
    return; /* inside: read by the map */
  case BB_NODE_VIEW:
  case BB_NODE_MISC:
    if (depth) bb_run_refuse(run, node, "views and misc nodes stand at the root only");
    if (node->kind == BB_NODE_VIEW)
      bb_run_view(run, node, made);
    else
      bb_run_misc(run, node, made);
    return;
  case BB_NODE_REMOVED: return;
  }
}

static void run_level(bb_run *run, bb_instance *at, uint32_t depth) {
  for (uint32_t i = 0; i < at->count; i++) run_node(run, at, at->order[i], depth);
}

void bb_run_graph(bb_run *run, const bb_graph *graph) {
  bb_instance *at = bb_plan_make(run, graph);
  run_level(run, at, 0);
}

/* --- the state --- */

const char *bb_run_place(const bb_run *run, const bb_node *node) {
  if (node->name && node->name[0])
    return bb_arena_printf(run->scratch, "node %u (%s)", node->serial, node->name);
  return bb_arena_printf(run->scratch, "node %u", node->serial);
}

void bb_run_refuse(const bb_run *run, const bb_node *node, const char *law) {
  bb_fail(run->ctx, BB_ERROR_INTERNAL, "%s: %s", bb_run_place(run, node), law);
}

static int64_t bound_extent(const bb_program *program, const bb_extent *extent,
                            const int64_t *symbol) {
  for (uint32_t i = 0; i < extent->count; i++)
    if (!symbol || symbol[extent->symbol[i]] < 0) return -1;
  return bb_extent_bind((bb_program *)program, extent, symbol);
}

void bb_run_bind(bb_run *run) {
  const bb_program *program = run->program;
  const int64_t *value = run->options->symbol;
  for (uint32_t i = 0; i < program->dims; i++)
    run->extent[i] = bound_extent(program, program->dim[i].extent, value);
  for (uint32_t i = 0; i < program->symbols && value; i++) run->symbol[i] = (double)value[i];
}

void bb_run_begin(bb_run *run, const bb_program *program, const bb_interp_options *options,
                  bb_interp_tensor *tensor, bb_arena *arena, bb_interp_counts *counts) {
  bb_context *ctx = program->ctx;
  *run = (bb_run){.program = program,
                  .ctx = ctx,
                  .options = options,
                  .tensor = tensor,
                  .arena = arena,
                  .counts = counts};
  run->scratch = bb_scratch(ctx);
  run->zero = BB_NEW(run->scratch, double, 1);
  run->extent = BB_NEW(run->scratch, int64_t, program->dims);
  run->symbol = BB_NEW(run->scratch, double, program->symbols);
  bb_run_bind(run);
}

int64_t bb_run_extent(const bb_run *run, bb_dim dim) {
  if (dim >= run->program->dims) bb_fail(run->ctx, BB_ERROR_INTERNAL, "an axis without a dim");
  if (run->extent[dim] < 0)
    bb_fail(run->ctx, BB_ERROR_ARGUMENT, "the extent of dim %s is not known",
            run->program->dim[dim].name);
  return run->extent[dim];
}

size_t bb_run_tensor_count(const bb_run *run, uint32_t tensor) {
  const bb_tensor *t = &run->program->tensor[tensor];
  size_t count = 1;
  bool empty = false;
  for (uint32_t i = 0; i < t->axes; i++) {
    int64_t extent = bb_run_extent(run, t->axis[i]);
    empty |= extent == 0;
    if (extent && __builtin_mul_overflow(count, (size_t)extent, &count))
      bb_fail(run->ctx, BB_ERROR_MEMORY, "tensor \"%s\" is too large to hold", t->name);
  }
  return empty ? 0 : count;
}

void bb_run_need_tensor(bb_run *run, uint32_t tensor) {
  if (tensor >= run->program->tensors) bb_fail(run->ctx, BB_ERROR_INTERNAL, "no such tensor");
  const bb_tensor *t = &run->program->tensor[tensor];
  bb_interp_tensor *held = &run->tensor[tensor];
  size_t count = bb_run_tensor_count(run, tensor);
  if (!held->data && t->role == BB_TENSOR_CONSTANT && t->data) {
    if (t->bytes / bb_dtype_bytes(t->dtype) != count)
      bb_fail(run->ctx, BB_ERROR_INPUT, "constant \"%s\" has %zu bytes for %zu elements", t->name,
              t->bytes, count);
    held->data = BB_NEW(run->arena, double, count);
    held->count = count;
    bb_interp_load(t->dtype, t->data, count, held->data);
    bb_interp_check(run->ctx, t->name, t->dtype, held->data, count);
  }
  if (!held->data) bb_fail(run->ctx, BB_ERROR_ARGUMENT, "tensor \"%s\" has no data", t->name);
  if (held->count != count)
    bb_fail(run->ctx, BB_ERROR_ARGUMENT, "tensor \"%s\" has %zu elements, its shape wants %zu",
            t->name, held->count, count);
}

void bb_run_make_tensor(bb_run *run, uint32_t tensor) {
  if (tensor >= run->program->tensors) bb_fail(run->ctx, BB_ERROR_INTERNAL, "no such tensor");
  bb_interp_tensor *held = &run->tensor[tensor];
  if (held->data) return;
  held->count = bb_run_tensor_count(run, tensor);
  held->data = BB_NEW(run->arena, double, held->count);
}
