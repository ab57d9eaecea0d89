/* case.c - one random case: dims and symbols, program inputs and their data, outputs. */
#include "build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* splitmix64 */
uint64_t random_next(random_state *random) {
  uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

uint32_t random_below(random_state *random, uint32_t bound) {
  return (uint32_t)((random_next(random) >> 32) * bound >> 32);
}

bool random_chance(random_state *random, uint32_t percent) {
  return random_below(random, 100) < percent;
}

double random_real(random_state *random, double low, double high) {
  return low + (high - low) * (double)(random_next(random) >> 11) * 0x1p-53;
}

/* --- dims --- */

static const bb_extent *extent_new(generator *g, int64_t value) {
  if (random_chance(&g->random, 60) || g->program->symbols == SYMBOL_MAX)
    return bb_extent_number(g->program, value);
  char name[16];
  snprintf(name, sizeof name, "s%u", g->program->symbols);
  const bb_extent *extent = bb_extent_symbol(g->program, name);
  g->symbol[extent->symbol[0]] = value;
  return extent;
}

static bb_dim dim_new(generator *g, const char *name, int64_t extent, bool blocked) {
  bb_dim dim = bb_dim_add(g->program, name, extent_new(g, extent), blocked);
  g->extent[dim] = extent;
  return dim;
}

static void dims_new(generator *g) {
  static const char *const blocked[] = {"M", "N", "K", "L"}, *const enumerated[] = {"B", "H"};
  g->blocked = 1 + random_below(&g->random, DIM_MAX);
  g->enumerated = random_below(&g->random, OUTER_MAX + 1);
  if (g->products && g->enumerated == 0) g->enumerated = random_below(&g->random, OUTER_MAX + 1);
  for (uint32_t i = 0; i < g->blocked; i++)
    g->blocked_dim[i] = dim_new(g, blocked[i], 1 + random_below(&g->random, 9), true);
  for (uint32_t i = 0; i < g->enumerated; i++)
    g->enumerated_dim[i] = dim_new(g, enumerated[i], 1 + random_below(&g->random, 3), false);
}

/* --- program tensors --- */

static void shuffle(generator *g, uint32_t count, bb_dim *dim) {
  for (uint32_t i = count; i > 1; i--) {
    uint32_t j = random_below(&g->random, i);
    bb_dim swap = dim[i - 1];
    dim[i - 1] = dim[j];
    dim[j] = swap;
  }
}

/* An axis of the tensor as the program reads it: all of a dim, or a piece of a longer axis.  *axis
 * goes from the dim that is read to the dim of the tensor. */
static bb_index index_new(generator *g, bb_dim *axis, bool may_cut) {
  bb_index index = {.kind = BB_INDEX_DIM, .dim = *axis};
  if (!may_cut || !random_chance(&g->random, 10)) return index;
  int64_t extent = g->extent[*axis];
  index.kind = BB_INDEX_RANGE;
  index.step = random_chance(&g->random, 30) ? -1 : 1 + (int64_t)random_below(&g->random, 2);
  index.start = index.step < 0 ? extent : random_below(&g->random, 3);
  int64_t whole = index.step < 0 ? extent + 2 : index.start + extent * index.step + 1;
  *axis = bb_dim_add(g->program, "W", bb_extent_number(g->program, whole), false);
  g->extent[*axis] = whole;
  return index;
}

/* Binds a tensor of these axes to an INPUT or OUTPUT node. */
static void tensor_bind(generator *g, uint32_t node, bb_tensor tensor, uint32_t axes,
                        bb_dim *axis) {
  bb_index index[DEPTH_MAX + 1];
  const bb_extent *extents[DEPTH_MAX + 1];
  bool input = tensor.role != BB_TENSOR_OUTPUT;
  for (uint32_t i = 0; i < axes; i++) index[i] = index_new(g, &axis[i], input);
  if (input && axes < DEPTH_MAX && random_chance(&g->random, 8)) {
    axis[axes] = bb_dim_add(g->program, "F", bb_extent_number(g->program, 3), false);
    g->extent[axis[axes]] = 3;
    index[axes] = (bb_index){.kind = BB_INDEX_FIXED, .dim = BB_NO_DIM, .start = 1};
    axes++;
  }
  for (uint32_t i = 0; i < axes; i++) extents[i] = bb_dim_get(g->program, axis[i])->extent;
  tensor.rank = tensor.axes = axes;
  tensor.shape = extents;
  tensor.axis = axis;
  bb_piece piece = {.rank = axes, .index = index};
  piece.source = bb_tensor_add(g->program, &tensor);
  bb_access access = {.joined = BB_NO_DIM, .count = 1, .piece = &piece};
  bb_node_get(g->root, node)->tensor = piece.source;
  bb_node_get(g->root, node)->access = bb_access_make(g->program, &access);
}

/* The dims of a value's lists, outermost first. */
static uint32_t dims_of(const bb_type *type, bb_dim *dim) {
  for (uint32_t i = 0; i < type->rank; i++) dim[i] = type->level[i].dim;
  return type->rank;
}

const bb_type *pooled_type(const generator *g, uint32_t value) {
  return bb_type_of(g->root, g->pool[value].at);
}

uint32_t pool_add(generator *g, bb_value at, double bound, bool exact) {
  if (g->count == POOL_MAX) bb_fail(g->program->ctx, BB_ERROR_INTERNAL, "the pool is full");
  g->pool[g->count] = (pooled){.at = at, .bound = bound, .exact = exact};
  return g->count++;
}

static double datum(random_state *random, bb_dtype dtype) {
  if (dtype == BB_BOOL) return random_below(random, 2);
  if (!bb_dtype_is_float(dtype)) return (double)random_below(random, 4) - 1;
  return bb_round_to(dtype, random_real(random, -1, 1));
}

uint32_t input_of(generator *g, bb_item item, uint32_t rank, const bb_level *level) {
  const bb_type *type = bb_type_make(g->program, item, rank, level);
  bb_value at = bb_input_add(g->root, type);
  bb_dim axis[DEPTH_MAX + 1];
  uint32_t axes = dims_of(type, axis);
  if (random_chance(&g->random, 30)) shuffle(g, axes, axis);
  char name[24];
  snprintf(name, sizeof name, "in%u", g->program->tensors);
  bool constant = random_chance(&g->random, 35);
  if (g->constants != PERHAPS) constant = g->constants == ALWAYS;
  for (uint32_t i = 0; i < axes; i++)
    constant &= bb_dim_get(g->program, axis[i])->extent->count == 0;
  bb_tensor tensor = {.name = name, .dtype = item.dtype};
  tensor.role = constant ? BB_TENSOR_CONSTANT : BB_TENSOR_INPUT;
  tensor_bind(g, at.node, tensor, axes, axis);
  return pool_add(g, at, bb_dtype_is_float(item.dtype) ? 1 : 2, true);
}

uint32_t input_new(generator *g, bb_dtype dtype, uint32_t outer, const bb_dim *outer_dim,
                   bb_dim row, bb_dim col) {
  bb_level level[DEPTH_MAX];
  uint32_t rank = 0;
  if (row != BB_NO_DIM && g->rows_first) level[rank++] = (bb_level){row, BB_AXIS_ROW};
  for (uint32_t i = 0; i < outer; i++) level[rank++] = (bb_level){outer_dim[i], BB_AXIS_NONE};
  if (row != BB_NO_DIM && !g->rows_first) level[rank++] = (bb_level){row, BB_AXIS_ROW};
  if (col != BB_NO_DIM) level[rank++] = (bb_level){col, BB_AXIS_COL};
  if (rank > 1 && random_chance(&g->random, g->products ? 18 : 10)) {
    uint32_t i = random_below(&g->random, rank - 1);
    bb_level swap = level[i];
    level[i] = level[i + 1];
    level[i + 1] = swap;
  }
  return input_of(g, (bb_item){dtype, row, col}, rank, level);
}

/* --- the case --- */

/* Every value that nothing uses is an output, and now and then one that is used. */
static void outputs_add(generator *g) {
  uint32_t added = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    bb_value at = g->pool[i].at;
    if (bb_node_get(g->root, at.node)->kind == BB_NODE_INPUT) continue;
    bool used = bb_use_count(g->root, at) > 0;
    if (g->pool[i].inner || g->pool[i].unread) continue;
    if (used && !random_chance(&g->random, 12)) continue;
    const bb_type *type = bb_type_of(g->root, at);
    bb_dim axis[DEPTH_MAX + 1];
    uint32_t axes = dims_of(type, axis);
    char name[24];
    snprintf(name, sizeof name, "out%u", added++);
    bb_tensor tensor = {.name = name, .dtype = type->item.dtype, .role = BB_TENSOR_OUTPUT};
    tensor_bind(g, bb_output_add(g->root, at), tensor, axes, axis);
  }
}

/* Data depends on the seed and the tensor only, so that it is the same for a smaller size. */
static void tensor_fill(generator *g, uint64_t seed, uint32_t number, bb_interp_tensor *bound) {
  bb_program *p = g->program;
  bb_tensor *tensor = &p->tensor[number];
  size_t count = 1;
  for (uint32_t i = 0; i < tensor->axes; i++) count *= (size_t)g->extent[tensor->axis[i]];
  random_state random = {seed * UINT64_C(0x100000001b3) + number};
  double *data = BB_NEW(p->arena, double, count);
  for (size_t i = 0; i < count; i++) data[i] = datum(&random, tensor->dtype);
  *bound = (bb_interp_tensor){data, count};
  if (tensor->role != BB_TENSOR_CONSTANT) return;
  tensor->bytes = count * bb_dtype_bytes(tensor->dtype);
  void *bytes = bb_arena_alloc(p->arena, tensor->bytes);
  bb_interp_store(tensor->dtype, data, count, bytes);
  tensor->data = bytes;
}

/* Blocks of one size, mostly with a shorter one at the end: three of them show what more would. */
static int64_t block_of(generator *g, int64_t extent) {
  int64_t block = 1 + random_below(&g->random, 5), least = (extent + BLOCKS_MAX - 1) / BLOCKS_MAX;
  return block < least ? least : block;
}

static random_case make_case(bb_context *ctx, uint64_t seed, uint32_t size, bool lifts,
                             double lift) {
  bb_program *p = bb_program_create(ctx, "random");
  bb_program_defer(p);
  generator *g = BB_NEW(p->arena, generator, 1);
  g->program = p;
  g->random.state = seed;
  g->lifts = lifts;
  g->lift = lift;
  p->stage = BB_STAGE_BLOCK;
  p->root = g->root = bb_graph_create(p);
  g->products = random_chance(&g->random, 50);
  dims_new(g);
  g->rows_first = random_chance(&g->random, g->products ? 50 : 20);
  g->peeled = random_chance(&g->random, 14) && !lifts;
  for (uint32_t i = 0; i < size; i++) generate_operation(g);
  if (!lifts) generate_odd(g);
  random_case result = {.program = p};
  outputs_add(g);
  result.tensor = BB_NEW(p->arena, bb_interp_tensor, p->tensors);
  for (uint32_t t = 0; t < p->tensors; t++)
    if (p->tensor[t].role != BB_TENSOR_OUTPUT) tensor_fill(g, seed, t, &result.tensor[t]);
  result.symbol = BB_NEW(p->arena, int64_t, SYMBOL_MAX);
  memcpy(result.symbol, g->symbol, sizeof g->symbol);
  result.block = BB_NEW(p->arena, int64_t, p->dims);
  for (uint32_t d = 0; d < p->dims; d++) result.block[d] = block_of(g, g->extent[d]);
  return result;
}

random_case random_case_make(bb_context *ctx, uint64_t seed, uint32_t size) {
  return make_case(ctx, seed, size, false, 0);
}

random_case random_case_lifted(bb_context *ctx, uint64_t seed, uint32_t size, double lift) {
  return make_case(ctx, seed, size, true, lift);
}

void random_compare(const bb_program *program, const bb_interp_tensor *got,
                    const bb_interp_tensor *want, const char *what, double number) {
  for (uint32_t t = 0; t < program->tensors; t++) {
    if (program->tensor[t].role != BB_TENSOR_OUTPUT) continue;
    double scale = 1e-3;
    for (size_t i = 0; i < want[t].count; i++) scale = fmax(scale, fabs(want[t].data[i]));
    for (size_t i = 0; i < want[t].count; i++)
      if (!(fabs(got[t].data[i] - want[t].data[i]) <= 1e-9 * scale))
        bb_fail(program->ctx, BB_ERROR_MISMATCH, "%s %g: output %s element %zu is %.17g, not %.17g",
                what, number, program->tensor[t].name, i, got[t].data[i], want[t].data[i]);
  }
}
