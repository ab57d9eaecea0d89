/* misc_pick.c - misc nodes on a GPU that pick elements by what they are (lower/device/pick.cuh): which of them its kernels take, and what
 * these are called with.
 */
#include "misc_parts.h"

/* As pick.cuh has them. */
enum { WARPS = 8, SHORT = 256, SHARED = 5376, TILE = 2048, ALONE = 4 * TILE };

/* --- what is taken --- */

/* Both results are there: long lines are sorted in them. */
static const char *top_types(const bb_gpu_misc *m, bb_arena *arena) {
  const bb_plan_step *s = m->step;
  if (m->operands != 2 || s->nout != 2 || s->in[1].dtype != BB_I64) return NULL;
  if (s->out[0].dtype != s->in[0].dtype || s->out[1].dtype != BB_I64) return NULL;
  uint32_t bytes = bb_dtype_bytes(s->in[0].dtype);
  return bb_arena_printf(arena, "uint%u_t, uint%u_t", 8 * bytes, bytes == 8 ? 64 : 32);
}

/* Results are [axes, the extent that the step tells]. */
static const char *places_types(const bb_gpu_misc *m, bb_arena *arena) {
  const bb_plan_operand *out = &m->step->out[0];
  if (m->operands != 1 || m->step->nout != 1 || m->step->tells == BB_NONE) return NULL;
  if (out->dtype != BB_I64 || out->rank != 2) return NULL;
  const bb_extent *found = out->shape[1];
  if (found->factor != 1 || found->count != 1 || found->symbol[0] != m->step->tells) return NULL;
  return bb_arena_printf(arena, "uint%u_t", 8 * (uint32_t)bb_dtype_bytes(m->step->in[0].dtype));
}

const char *bb_gpu_pick_types(const bb_gpu_misc *m, bb_arena *arena) {
  return m->kind == BB_GPU_TOP ? top_types(m, arena) : places_types(m, arena);
}

/* --- words --- */

static uint64_t ones_of(bb_dtype dtype) {
  return ~(uint64_t)0 >> (64 - 8 * bb_dtype_bytes(dtype));
}

static bool has_sign(bb_dtype dtype) {
  return bb_dtype_is_float(dtype) || dtype == BB_I64 || dtype == BB_I32 || dtype == BB_I16 ||
         dtype == BB_I8;
}

static uint64_t sign_of(bb_dtype dtype) {
  return has_sign(dtype) ? ones_of(dtype) / 2 + 1 : 0;
}

static uint64_t infinity_of(bb_dtype dtype) {
  switch (dtype) {
  case BB_F64: return 0x7ff0000000000000;
  case BB_F32: return 0x7f800000;
  case BB_F16: return 0x7c00;
  case BB_BF16: return 0x7f80;
  default: return 0;
  }
}

/* --- arguments --- */

static int64_t product(const bb_gpu_array *a, uint32_t from, uint32_t to) {
  int64_t count = 1;
  for (uint32_t i = from; i < to; i++) count *= a->extent[i];
  return count;
}

/* What is kept of lines, which the results' shapes say as well, is their extent along the axis; all else is as in the operand. */
static bool bind_top(const bb_gpu_binding *b, const bb_gpu_array *in, const bb_gpu_array *out,
                     bb_gpu_pointer fault, bb_gpu_misc_call_of *call) {
  const bb_gpu_array *data = &in[0];
  const bb_misc *misc = b->misc->step->misc;
  bb_dtype dtype = b->misc->step->in[0].dtype;
  int64_t axis = bb_gpu_integer(misc, "axis", -1);
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= data->rank || product(&in[1], 0, in[1].rank) != 1) return false;
  for (uint32_t r = 0; r < 2; r++) {
    if (out[r].rank != data->rank) return false;
    for (uint32_t i = 0; i < data->rank; i++)
      if (i != axis && out[r].extent[i] != data->extent[i]) return false;
  }
  int64_t extent = data->extent[axis], kept = out[0].extent[axis];
  if (kept != out[1].extent[axis] || kept > extent) return false;
  if (extent > UINT32_MAX) bb_gpu_misc_refuse(b, "a line has more elements than 32 bits count");
  int64_t inner = product(data, (uint32_t)axis + 1, data->rank);
  int64_t lines = product(data, 0, (uint32_t)axis) * inner;
  bool is_short = extent <= SHORT;
  call->bytes = sizeof call->as.top;
  call->threads = (is_short ? (lines + WARPS - 1) / WARPS : lines) * BB_GPU_THREADS;
  call->shared = is_short ? 0 : SHARED;
  call->as.top.data = data->data, call->as.top.many = in[1].data;
  call->as.top.out = out[0].data, call->as.top.place = out[1].data, call->as.top.fault = fault;
  call->as.top.lines = lines, call->as.top.extent = extent;
  call->as.top.inner = inner, call->as.top.kept = kept;
  call->as.top.sign = sign_of(dtype), call->as.top.infinity = infinity_of(dtype);
  call->as.top.ones = ones_of(dtype);
  call->as.top.flip = bb_gpu_integer(misc, "largest", 1) ? 0 : ones_of(dtype);
  return true;
}

int64_t bb_gpu_pick_blocks(const bb_gpu_machine *machine, int64_t total) {
  int64_t most = (int64_t)machine->processors * 4, tiles = (total + TILE - 1) / TILE;
  if (total <= ALONE) return 1;
  int64_t each = (tiles + most - 1) / most;
  return (tiles + each - 1) / each;
}

/* A block without elements says that there are none. */
static bool bind_places(const bb_gpu_binding *b, const bb_gpu_array *in, const bb_gpu_array *out,
                        bb_gpu_misc_call_of *call) {
  bb_dtype dtype = b->misc->step->in[0].dtype;
  int64_t total = product(&in[0], 0, in[0].rank), tiles = (total + TILE - 1) / TILE;
  int64_t blocks = bb_gpu_pick_blocks(b->machine, total);
  if (out->extent[0] != in[0].rank) return false;
  call->bytes = sizeof call->as.places;
  call->threads = blocks * BB_GPU_THREADS;
  call->shared = WARPS * sizeof(int64_t);
  call->as.places.data = in[0].data, call->as.places.out = out->data;
  call->as.places.total = total, call->as.places.rank = in[0].rank;
  call->as.places.span = (tiles + blocks - 1) / blocks * TILE;
  call->as.places.most = out->extent[1];
  call->as.places.mask = bb_dtype_is_float(dtype) ? ones_of(dtype) / 2 : ones_of(dtype);
  for (uint32_t i = 0; i < in[0].rank; i++) call->as.places.shape[i] = in[0].extent[i];
  return true;
}

bool bb_gpu_pick_bind(const bb_gpu_binding *b, const bb_gpu_array *in, const bb_gpu_array *out,
                      bb_gpu_pointer fault, bb_gpu_misc_call_of *call) {
  return b->misc->kind == BB_GPU_TOP ? bind_top(b, in, out, fault, call)
                                     : bind_places(b, in, out, call);
}
