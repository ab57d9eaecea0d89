/* misc_bind.c - what the kernels of misc nodes are called with. */
#include "misc_parts.h"

#include <string.h>

enum {
  LANES = 32,
  TURNS = 16,      /* at most, by one thread */
  ENOUGH = 1 << 15 /* threads: fewer would wait for memory with nobody beside them */
};

static const int64_t *integers(const bb_misc *misc, const char *name, uint32_t count) {
  const bb_attribute *a = bb_gpu_attribute(misc, name);
  return a && a->kind == BB_ATTR_INTS && a->count == count ? a->ints : NULL;
}

static int64_t product(const bb_gpu_array *a, uint32_t from, uint32_t to) {
  int64_t count = 1;
  for (uint32_t i = from; i < to; i++) count *= a->extent[i];
  return count;
}

static bool find_axis(const bb_misc *misc, uint32_t rank, uint32_t *axis) {
  int64_t along = bb_gpu_integer(misc, "axis", 0);
  if (along < 0) along += rank;
  *axis = (uint32_t)along;
  return along >= 0 && along < rank;
}

static bool bind_gather(const bb_misc *misc, const bb_gpu_array *in, const bb_gpu_array *out,
                        bb_gpu_pointer fault, bb_gpu_misc_call_of *call) {
  const bb_gpu_array *data = &in[0], *index = &in[1];
  uint32_t axis;
  if (!find_axis(misc, data->rank, &axis)) return false;
  int64_t count = product(index, 0, index->rank), inner = product(data, axis + 1, data->rank);
  int64_t total = product(data, 0, axis) * count * inner;
  call->threads = call->as.gather.total = total;
  call->bytes = sizeof call->as.gather;
  call->as.gather.data = data->data, call->as.gather.index = index->data;
  call->as.gather.out = out->data, call->as.gather.fault = fault;
  call->as.gather.count = count, call->as.gather.inner = inner;
  call->as.gather.extent = data->extent[axis];
  return total == product(out, 0, out->rank) && (data->extent[axis] > 0 || total == 0);
}

/* Axes of what comes out: one that both operands step along as along the one before is one with it. */
static void bind_axes(const bb_gpu_array *data, const bb_gpu_array *index, uint32_t axis,
                      bb_gpu_misc_call_of *call) {
  int64_t *shape = call->as.along.shape, rank = 0;
  int64_t *data_step = call->as.along.data_steps, *index_step = call->as.along.index_steps;
  for (uint32_t i = 0; i < index->rank; i++) {
    int64_t extent = index->extent[i], of_index = index->stride[i];
    int64_t of_data = i == axis ? 0 : data->stride[i];
    if (extent == 1) continue;
    bool joins = rank > 0 && data_step[rank - 1] == extent * of_data &&
                 index_step[rank - 1] == extent * of_index;
    if (!joins) shape[rank++] = 1;
    shape[rank - 1] *= extent;
    data_step[rank - 1] = of_data, index_step[rank - 1] = of_index;
  }
  call->as.along.rank = rank;
}

/* The last axis is the run.  As few threads side by side as make one in a span, but neighbours in memory to each other. */
static void bind_run(bb_gpu_misc_call_of *call) {
  int64_t rank = call->as.along.rank, run = rank ? call->as.along.shape[rank - 1] : 1, width = 1;
  if (rank) {
    call->as.along.data_step = call->as.along.data_steps[rank - 1];
    call->as.along.index_step = call->as.along.index_steps[rank - 1];
    call->as.along.rank = rank - 1;
  }
  while (width < BB_GPU_THREADS && width < run && (width < LANES || width * BB_GPU_SPAN < run))
    width *= 2;
  call->as.along.run = run, call->as.along.width = width;
  call->as.along.spans = run / (width * BB_GPU_SPAN) + (run % (width * BB_GPU_SPAN) > 0);
}

static int64_t size_of(int64_t step) {
  return step < 0 ? -step : step;
}

/* Does every offset within a run fit in 32 bits?  bb_misc_along() of misc.cuh asks the same. */
static bool is_near(const bb_gpu_misc_call_of *call) {
  int64_t padded = call->as.along.spans * call->as.along.width * BB_GPU_SPAN;
  int64_t far =
      padded * (1 + size_of(call->as.along.data_step) + size_of(call->as.along.index_step)) +
      call->as.along.extent * (1 + size_of(call->as.along.step));
  return far >> 31 == 0;
}

/* Indices that are the same along the outermost axis: a thread that has looked at some makes several of what they are for, if there
 * are threads enough.  That axis is none of the rows' then. */
static void bind_again(int64_t lanes, bb_gpu_misc_call_of *call) {
  int64_t *shape = call->as.along.shape, rank = call->as.along.rank, turns = 1;
  int64_t *data_step = call->as.along.data_steps, *index_step = call->as.along.index_steps;
  if (!rank || index_step[0] != 0 || !is_near(call)) return;
  while (turns < TURNS && turns * 2 <= shape[0] && lanes / (turns * 2) >= ENOUGH) turns *= 2;
  if (turns == 1) return;
  int64_t again = shape[0], rows = call->as.along.rows / again;
  call->kernel = 1;
  call->as.along.again = again, call->as.along.turns = turns;
  call->as.along.data_again = data_step[0], call->as.along.out_again = rows * call->as.along.run;
  call->as.along.rows = rows;
  for (int64_t i = 1; i < rank; i++)
    shape[i - 1] = shape[i], data_step[i - 1] = data_step[i], index_step[i - 1] = index_step[i];
  call->as.along.rank = rank - 1;
  call->threads = lanes / again * ((again + turns - 1) / turns);
}

static bool bind_along(const bb_gpu_misc *m, const bb_gpu_array *in, const bb_gpu_array *out,
                       bb_gpu_pointer fault, bb_gpu_misc_call_of *call) {
  const bb_gpu_array *data = &in[0], *index = &in[1];
  uint32_t axis;
  if (!find_axis(m->step->misc, data->rank, &axis) || data->rank != index->rank) return false;
  for (uint32_t i = 0; i < data->rank; i++)
    if (i != axis && index->extent[i] > data->extent[i]) return false;
  call->bytes = sizeof call->as.along;
  memset(&call->as.along, 0, sizeof call->as.along);
  call->as.along.data = data->data, call->as.along.index = index->data;
  call->as.along.out = out->data, call->as.along.fault = fault;
  call->as.along.extent = data->extent[axis], call->as.along.step = data->stride[axis];
  bind_axes(data, index, axis, call);
  bind_run(call);
  int64_t total = product(index, 0, index->rank);
  int64_t run = call->as.along.run;
  call->as.along.rows = run ? total / run : 0;
  call->threads = call->as.along.rows * call->as.along.spans * call->as.along.width;
  if (m->kernel[1].name) bind_again(call->threads, call);
  return total == product(out, 0, out->rank) && (data->extent[axis] > 0 || total == 0);
}

static bool bind_points(const bb_misc *misc, const bb_gpu_array *in, const bb_gpu_array *out,
                        bb_gpu_pointer fault, bb_gpu_misc_call_of *call) {
  const bb_gpu_array *data = &in[0], *index = &in[1];
  int64_t batch = bb_gpu_integer(misc, "batch_dims", 0), total = product(out, 0, out->rank);
  if (!index->rank || batch < 0 || batch >= index->rank) return false;
  int64_t depth = index->extent[index->rank - 1];
  if (batch + depth > data->rank) return false;
  call->bytes = sizeof call->as.points;
  call->as.points.data = data->data, call->as.points.index = index->data;
  call->as.points.out = out->data, call->as.points.fault = fault;
  call->as.points.depth = depth;
  call->as.points.per_batch = product(index, (uint32_t)batch, index->rank - 1);
  call->as.points.inner = product(data, (uint32_t)(batch + depth), data->rank);
  call->threads = call->as.points.total = total;
  for (uint32_t i = 0; i < batch; i++)
    if (index->extent[i] != data->extent[i]) return false;
  for (uint32_t d = 0; d < depth; d++) {
    call->as.points.extent[d] = data->extent[batch + d];
    if (total && data->extent[batch + d] < 1) return false;
  }
  return total == product(index, 0, index->rank - 1) * call->as.points.inner;
}

static bool bind_scatter(const bb_gpu_array *in, const bb_gpu_array *out, bb_gpu_pointer fault,
                         bb_gpu_misc_call_of *call) {
  const bb_gpu_array *index = &in[1], *with = &in[2];
  if (!index->rank || index->extent[index->rank - 1] > out->rank) return false;
  uint32_t depth = (uint32_t)index->extent[index->rank - 1];
  int64_t points = product(index, 0, index->rank - 1), inner = product(out, depth, out->rank);
  call->bytes = sizeof call->as.scatter;
  call->as.scatter.with = with->data, call->as.scatter.index = index->data;
  call->as.scatter.out = out->data, call->as.scatter.fault = fault;
  call->as.scatter.depth = depth;
  call->as.scatter.inner = inner;
  call->threads = call->as.scatter.total = points * inner;
  for (uint32_t d = 0; d < depth; d++) call->as.scatter.extent[d] = out->extent[d];
  return product(with, 0, with->rank) == points * inner;
}

/* Of [batch, heads, rows, width]: how many rows it is from one head to the next; false: they do not lie so. */
static bool pitch_of(const bb_gpu_array *a, int64_t *pitch) {
  int64_t width = a->extent[3];
  *pitch = width ? a->stride[1] / width : 0;
  return a->rank == 4 && a->stride[3] == 1 && a->stride[2] == width &&
         a->stride[1] == *pitch * width && a->stride[0] == a->extent[1] * a->stride[1];
}

/* In one place, and heads equally far apart: what is there stays. */
static bool bind_append(const bb_gpu_array *in, const bb_gpu_array *out, bb_gpu_pointer fault,
                        bb_gpu_misc_call_of *call) {
  const bb_gpu_array *past = &in[0], *rows = &in[1], *length = &in[2];
  int64_t past_pitch, rows_pitch, out_pitch;
  if (past->rank != 4 || rows->rank != 4 || out->rank != 4 || length->rank != 1) return false;
  if (!pitch_of(past, &past_pitch) || !pitch_of(rows, &rows_pitch) || !pitch_of(out, &out_pitch))
    return false;
  int64_t heads = out->extent[0] * out->extent[1];
  bool there = past->data == out->data && (heads == 1 || past_pitch == out_pitch);
  for (uint32_t i = 0; i < 4; i++)
    if (i != 2 && (past->extent[i] != out->extent[i] || rows->extent[i] != out->extent[i]))
      return false;
  call->bytes = sizeof call->as.append;
  call->as.append.past = there ? 0 : past->data;
  call->as.append.rows = rows->data, call->as.append.length = length->data;
  call->as.append.out = out->data, call->as.append.fault = fault;
  call->as.append.batch = out->extent[0], call->as.append.heads = out->extent[1];
  call->as.append.most = out->extent[2], call->as.append.fresh = rows->extent[2];
  call->as.append.width = out->extent[3];
  call->as.append.past_pitch = past_pitch, call->as.append.rows_pitch = rows_pitch;
  call->as.append.out_pitch = out_pitch;
  call->threads = product(there ? rows : out, 0, 4);
  return length->extent[0] == out->extent[0] && past->extent[2] + rows->extent[2] == out->extent[2];
}

/* Padding before an axis, where the attributes leave it to the sizes. */
static int64_t padding(const bb_misc *misc, const bb_gpu_misc_call_of *c, uint32_t i) {
  const bb_attribute *a = bb_gpu_attribute(misc, "auto_pad");
  const int64_t *pads = integers(misc, "pads", 2 * (uint32_t)c->as.window.axes);
  bool upper = a && a->text && strcmp(a->text, "SAME_UPPER") == 0;
  if (!upper && !(a && a->text && strcmp(a->text, "SAME_LOWER") == 0))
    return pads && !(a && a->text && strcmp(a->text, "VALID") == 0) ? pads[i] : 0;
  int64_t reach = (c->as.window.kernel[i] - 1) * c->as.window.dilation[i] + 1;
  int64_t all = (c->as.window.places[i] - 1) * c->as.window.stride[i] + reach - c->as.window.in[i];
  all = all > 0 ? all : 0;
  return upper ? all / 2 : all - all / 2;
}

/* An element is a warp's. */
static bool bind_window(const bb_misc *misc, uint32_t operands, const bb_gpu_array *in,
                        const bb_gpu_array *out, bb_gpu_misc_call_of *c) {
  const bb_gpu_array *data = &in[0], *weight = &in[1];
  uint32_t axes = data->rank < 3 ? 0 : data->rank - 2;
  const int64_t *stride = integers(misc, "strides", axes);
  const int64_t *dilation = integers(misc, "dilations", axes);
  if (!axes || axes > BB_GPU_SPATIAL || weight->rank != data->rank || out->rank != data->rank)
    return false;
  int64_t groups = bb_gpu_integer(misc, "group", 1), channels = weight->extent[1];
  if (groups < 1 || weight->extent[0] % groups || data->extent[1] != groups * channels)
    return false;
  c->bytes = sizeof c->as.window;
  c->as.window.data = data->data, c->as.window.weight = weight->data;
  c->as.window.bias = operands > 2 ? in[2].data : 0, c->as.window.out = out->data;
  c->as.window.groups = groups, c->as.window.channels = channels, c->as.window.axes = axes;
  c->as.window.maps = weight->extent[0] / groups;
  for (uint32_t i = 0; i < axes; i++) {
    c->as.window.in[i] = data->extent[2 + i], c->as.window.places[i] = out->extent[2 + i];
    c->as.window.kernel[i] = weight->extent[2 + i];
    c->as.window.stride[i] = stride ? stride[i] : 1;
    c->as.window.dilation[i] = dilation ? dilation[i] : 1;
    c->as.window.before[i] = padding(misc, c, i);
  }
  c->as.window.total = product(out, 0, out->rank);
  c->threads = c->as.window.total * LANES;
  return out->extent[0] == data->extent[0] && out->extent[1] == weight->extent[0];
}

bool bb_gpu_misc_bind(const bb_gpu_binding *b, const bb_gpu_array *in, const bb_gpu_array *out,
                      bb_gpu_pointer fault, bb_gpu_misc_call_of *call) {
  const bb_misc *misc = b->misc->step->misc;
  *call = (bb_gpu_misc_call_of){0};
  switch (b->misc->kind) {
  case BB_GPU_GATHER: return bind_gather(misc, in, out, fault, call);
  case BB_GPU_ALONG: return bind_along(b->misc, in, out, fault, call);
  case BB_GPU_POINTS: return bind_points(misc, in, out, fault, call);
  case BB_GPU_SCATTER: return bind_scatter(in, out, fault, call);
  case BB_GPU_CONVOLUTION: return bind_window(misc, b->misc->operands, in, out, call);
  case BB_GPU_APPEND: return bind_append(in, out, fault, call);
  case BB_GPU_TOP:
  case BB_GPU_PLACES: return bb_gpu_pick_bind(b, in, out, fault, call);
  case BB_GPU_JOIN:
  case BB_GPU_MOVE: break;
  }
  return false;
}
