/* misc.c - misc nodes on a GPU: which kernel, and what it is called with. */
#include "misc.h"

#include <string.h>

enum { AXES = 8, SPATIAL = 6, THREADS = 256, OPERANDS = 3, LANES = 32 };

typedef enum kind { GATHER, ALONG, CONVOLUTION } kind;

/* As misc.cuh has them. */
typedef struct gather_call {
  bb_gpu_pointer data, index, out, fault;
  int64_t total, count, extent, inner;
} gather_call;

typedef struct along_call {
  bb_gpu_pointer data, index, out, fault;
  int64_t total, rank, axis, shape[AXES], data_shape[AXES];
} along_call;

typedef struct copy_call {
  bb_gpu_pointer data, out;
  int64_t total, rank, extent[AXES], from[AXES], to[AXES];
} copy_call;

typedef struct window_call {
  bb_gpu_pointer data, weight, bias, out;
  int64_t total, groups, channels, maps, axes;
  int64_t in[SPATIAL], places[SPATIAL], kernel[SPATIAL];
  int64_t stride[SPATIAL], dilation[SPATIAL], before[SPATIAL];
} window_call;

typedef struct shape {
  uint32_t rank;
  int64_t extent[AXES];
} shape;

/* A tensor as it lies, or what is put together from pieces. */
typedef struct operand {
  const bb_plan_operand *from;
  const char *name; /* of the kernel that copies; NULL: a tensor as it lies */
  void *function;
} operand;

struct bb_gpu_misc {
  const bb_plan_step *step;
  uint32_t number; /* of the step */
  kind kind;
  const char *name;
  void *function;
  uint32_t operands;
  operand operand[OPERANDS];
};

/* A launch of it for given extents. */
typedef struct binding {
  const bb_gpu_machine *machine;
  const bb_gpu_misc *misc;
  const int64_t *symbol;
  int64_t total;
  union {
    gather_call gather;
    along_call along;
    window_call window;
  } call;
} binding;

/* --- what a node says --- */

static const bb_attribute *attribute(const bb_misc *misc, const char *name) {
  for (uint32_t i = 0; i < misc->count; i++)
    if (strcmp(misc->attribute[i].name, name) == 0) return &misc->attribute[i];
  return NULL;
}

static int64_t integer(const bb_misc *misc, const char *name, int64_t otherwise) {
  const bb_attribute *a = attribute(misc, name);
  return a && a->kind == BB_ATTR_INT ? a->i : otherwise;
}

static const int64_t *integers(const bb_misc *misc, const char *name, uint32_t count) {
  const bb_attribute *a = attribute(misc, name);
  return a && a->kind == BB_ATTR_INTS && a->count == count ? a->ints : NULL;
}

static bool has_axes(const bb_plan_operand *o) {
  return o->rank <= AXES && o->axes <= AXES;
}

static bool find_operands(bb_gpu_misc *m) {
  const bb_plan_step *step = m->step;
  m->operands = step->nin;
  while (m->operands && step->in[m->operands - 1].absent) m->operands--;
  if (m->operands < 2 || m->operands > OPERANDS || step->nout != 1) return false;
  if (step->out[0].absent || !step->out[0].whole || !has_axes(&step->out[0])) return false;
  for (uint32_t i = 0; i < m->operands; i++) {
    m->operand[i].from = &step->in[i];
    if (step->in[i].absent || !has_axes(&step->in[i])) return false;
  }
  return true;
}

static bb_dtype dtype_of(const bb_gpu_misc *m, uint32_t i) {
  return m->operand[i].from->dtype;
}

/* --- making --- */

static const char *word_of(bb_dtype dtype) {
  switch (bb_dtype_bytes(dtype)) {
  case 1: return "uint8_t";
  case 2: return "uint16_t";
  case 4: return "uint32_t";
  default: return "uint64_t";
  }
}

static const char *real_of(bb_dtype dtype) {
  switch (dtype) {
  case BB_F16: return "bb_f16";
  case BB_BF16: return "bb_bf16";
  case BB_F64: return "double";
  default: return "float";
  }
}

static bool is_new(bb_arena *arena, bb_gpu_names *names, const char *name) {
  for (uint32_t i = 0; i < names->count; i++)
    if (strcmp(names->name[i], name) == 0) return false;
  BB_GROW(arena, names->name, names->capacity, names->count + 1u);
  names->name[names->count++] = name;
  return true;
}

typedef struct writer {
  bb_arena *arena;
  bb_gpu_names *names;
  bb_buffer *source;
} writer;

/* types: of the kernel's template, "uint32_t, int64_t".  Returns the kernel's name. */
static const char *put_kernel(const writer *w, const char *body, const char *call,
                              const char *types) {
  char *name = bb_arena_printf(w->arena, "%s_%s", body, types), *to = name;
  for (const char *from = name; *from; from++)
    if (*from != ',') *to++ = (char)(*from == ' ' ? '_' : *from);
  *to = 0;
  if (is_new(w->arena, w->names, name))
    bb_put(w->source, "BB_KERNEL(%s, bb_misc_%s_call, %u, 1) {\n  bb_misc_%s<%s>(call);\n}\n\n",
           name, call, (unsigned)THREADS, body, types);
  return name;
}

static bool put_gather(bb_gpu_misc *m, const writer *w) {
  bb_dtype index = dtype_of(m, 1);
  if (m->operands != 2 || (index != BB_I64 && index != BB_I32)) return false;
  const char *types = bb_arena_printf(w->arena, "%s, %s", word_of(dtype_of(m, 0)),
                                      index == BB_I64 ? "int64_t" : "int32_t");
  const char *body = m->kind == GATHER ? "gather" : "along";
  m->name = put_kernel(w, body, body, types);
  return true;
}

static bool put_window(bb_gpu_misc *m, const writer *w) {
  bb_dtype dtype = dtype_of(m, 0);
  if (!bb_dtype_is_float(dtype) || dtype_of(m, 1) != dtype) return false;
  if (m->operands == 3 && dtype_of(m, 2) != dtype) return false;
  const char *sum = dtype == BB_F64 ? "double" : "float";
  m->name =
      put_kernel(w, "convolve", "window", bb_arena_printf(w->arena, "%s, %s", real_of(dtype), sum));
  return true;
}

static bool find_kind(const bb_misc *misc, kind *found) {
  static const struct {
    const char *op;
    kind kind;
  } known[] = {{"Gather", GATHER}, {"GatherElements", ALONG}, {"Conv", CONVOLUTION}};
  if (misc->domain[0]) return false;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(misc->op, known[i].op) == 0) {
      *found = known[i].kind;
      return true;
    }
  return false;
}

bb_gpu_misc *bb_gpu_misc_make(bb_arena *arena, const bb_plan_step *step, uint32_t number,
                              bb_gpu_names *names, bb_buffer *source) {
  writer w = {arena, names, source};
  bb_gpu_misc *m = BB_NEW(arena, bb_gpu_misc, 1);
  *m = (bb_gpu_misc){.step = step, .number = number};
  if (!find_kind(step->misc, &m->kind) || !find_operands(m)) return NULL;
  if (!(m->kind == CONVOLUTION ? put_window(m, &w) : put_gather(m, &w))) return NULL;
  for (uint32_t i = 0; i < m->operands; i++)
    if (!m->operand[i].from->whole)
      m->operand[i].name = put_kernel(&w, "copy", "copy", word_of(dtype_of(m, i)));
  return m;
}

void bb_gpu_misc_find(bb_context *ctx, const bb_gpu_driver *d, bb_gpu_misc *m, void *module) {
  bb_gpu_must(ctx, d, d->function(&m->function, module, m->name), "finding a kernel");
  for (uint32_t i = 0; i < m->operands; i++) {
    operand *o = &m->operand[i];
    if (o->name)
      bb_gpu_must(ctx, d, d->function(&o->function, module, o->name), "finding a kernel");
  }
}

/* --- extents --- */

static _Noreturn void refuse(const binding *b, const char *why) {
  bb_fail(b->machine->ctx, BB_ERROR_INPUT, "misc node \"%s\": %s: %s", b->misc->step->name,
          b->misc->step->misc->op, why);
}

static int64_t extent_of(const binding *b, const bb_extent *extent) {
  int64_t value;
  if (!bb_plan_extent(extent, b->symbol, &value)) refuse(b, "an extent is not known");
  return value;
}

static int64_t number_of(const binding *b, const bb_formula *formula) {
  int64_t value;
  if (!bb_formula_value(formula, b->symbol, &value))
    refuse(b, "an operand is too large to address");
  return value;
}

static shape shape_of(const binding *b, const bb_plan_operand *o) {
  shape s = {.rank = o->rank};
  for (uint32_t i = 0; i < o->rank; i++) s.extent[i] = extent_of(b, o->shape[i]);
  return s;
}

/* The elements of an operand that is put together; strides of where they go. */
static copy_call whole_copy(const binding *b, const bb_plan_operand *o) {
  copy_call all = {.rank = o->axes, .total = 1};
  for (uint32_t a = o->axes; a-- > 0; all.total *= all.extent[a]) {
    all.extent[a] = extent_of(b, o->extent[a]);
    all.to[a] = all.total;
  }
  return all;
}

/* Where each operand that is put together begins in scratch; returns the bytes of all. */
static size_t place_copies(const binding *b, size_t *at) {
  enum { LINE = 256 };
  size_t bytes = 0;
  for (uint32_t i = 0; i < b->misc->operands; i++) {
    const operand *o = &b->misc->operand[i];
    at[i] = bytes;
    if (!o->name) continue;
    bytes += (size_t)whole_copy(b, o->from).total * bb_dtype_bytes(o->from->dtype);
    bytes = (bytes + LINE - 1) / LINE * LINE;
  }
  return bytes;
}

static int64_t product(const shape *s, uint32_t from, uint32_t to) {
  int64_t count = 1;
  for (uint32_t i = from; i < to; i++) count *= s->extent[i];
  return count;
}

static bool bind_gather(binding *b, const shape *data, const shape *index, const shape *out) {
  int64_t axis = integer(b->misc->step->misc, "axis", 0);
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= data->rank) return false;
  gather_call *c = &b->call.gather;
  *c = (gather_call){.count = product(index, 0, index->rank),
                     .extent = data->extent[axis],
                     .inner = product(data, (uint32_t)axis + 1, data->rank)};
  c->total = product(data, 0, (uint32_t)axis) * c->count * c->inner;
  b->total = c->total;
  return c->total == product(out, 0, out->rank) && (c->extent > 0 || c->total == 0);
}

static bool bind_along(binding *b, const shape *data, const shape *index, const shape *out) {
  int64_t axis = integer(b->misc->step->misc, "axis", 0);
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= data->rank || data->rank != index->rank) return false;
  along_call *c = &b->call.along;
  *c = (along_call){.rank = data->rank, .axis = axis};
  for (uint32_t i = 0; i < data->rank; i++) {
    c->shape[i] = index->extent[i], c->data_shape[i] = data->extent[i];
    if (i != axis && c->shape[i] > c->data_shape[i]) return false;
  }
  b->total = c->total = product(index, 0, index->rank);
  return c->total == product(out, 0, out->rank) && (c->data_shape[axis] > 0 || c->total == 0);
}

/* Padding before an axis, where the attributes leave it to the sizes. */
static int64_t padding(const bb_misc *misc, const window_call *c, uint32_t i) {
  const bb_attribute *a = attribute(misc, "auto_pad");
  const int64_t *pads = integers(misc, "pads", 2 * (uint32_t)c->axes);
  bool upper = a && a->text && strcmp(a->text, "SAME_UPPER") == 0;
  if (!upper && !(a && a->text && strcmp(a->text, "SAME_LOWER") == 0))
    return pads && !(a && a->text && strcmp(a->text, "VALID") == 0) ? pads[i] : 0;
  int64_t reach = (c->kernel[i] - 1) * c->dilation[i] + 1;
  int64_t all = (c->places[i] - 1) * c->stride[i] + reach - c->in[i];
  all = all > 0 ? all : 0;
  return upper ? all / 2 : all - all / 2;
}

static bool bind_window(binding *b, const shape *data, const shape *weight, const shape *out) {
  const bb_misc *misc = b->misc->step->misc;
  window_call *c = &b->call.window;
  uint32_t axes = data->rank < 3 ? 0 : data->rank - 2;
  const int64_t *stride = integers(misc, "strides", axes);
  const int64_t *dilation = integers(misc, "dilations", axes);
  if (!axes || axes > SPATIAL || weight->rank != data->rank || out->rank != data->rank)
    return false;
  *c = (window_call){
      .groups = integer(misc, "group", 1), .channels = weight->extent[1], .axes = axes};
  if (c->groups < 1 || weight->extent[0] % c->groups || data->extent[1] != c->groups * c->channels)
    return false;
  c->maps = weight->extent[0] / c->groups;
  for (uint32_t i = 0; i < axes; i++) {
    c->in[i] = data->extent[2 + i], c->places[i] = out->extent[2 + i];
    c->kernel[i] = weight->extent[2 + i];
    c->stride[i] = stride ? stride[i] : 1, c->dilation[i] = dilation ? dilation[i] : 1;
    c->before[i] = padding(misc, c, i);
  }
  b->total = c->total = product(out, 0, out->rank);
  return out->extent[0] == data->extent[0] && out->extent[1] == weight->extent[0];
}

static bool bind(binding *b) {
  const bb_gpu_misc *m = b->misc;
  shape data = shape_of(b, m->operand[0].from), other = shape_of(b, m->operand[1].from);
  shape out = shape_of(b, &m->step->out[0]);
  switch (m->kind) {
  case GATHER: return bind_gather(b, &data, &other, &out);
  case ALONG: return bind_along(b, &data, &other, &out);
  case CONVOLUTION: return bind_window(b, &data, &other, &out);
  }
  return false;
}

size_t bb_gpu_misc_scratch(const bb_gpu_machine *machine, const bb_gpu_misc *m,
                           const int64_t *symbol) {
  binding b = {.machine = machine, .misc = m, .symbol = symbol};
  size_t at[OPERANDS];
  return place_copies(&b, at);
}

/* --- launches --- */

static void add(const binding *b, bb_gpu_calls *calls, void *function, int64_t total,
                const void *call, size_t bytes) {
  int64_t blocks = (total + THREADS - 1) / THREADS, most = (int64_t)b->machine->processors * 32;
  if (total < 1) return;
  bb_gpu_call launch = {.function = function,
                        .blocks = (uint32_t)(blocks < most ? blocks : most),
                        .threads = THREADS};
  bb_gpu_add(b->machine, calls, &launch, call, bytes);
}

static bb_gpu_pointer address(void *const *data, uint32_t tensor) {
  return (bb_gpu_pointer)(uintptr_t)data[tensor];
}

/* One piece of an operand: where it is read, and where it goes. */
static copy_call piece_copy(const binding *b, const bb_plan_operand *o,
                            const bb_plan_piece *piece) {
  copy_call c = whole_copy(b, o);
  int64_t bytes = (int64_t)bb_dtype_bytes(o->dtype);
  for (uint32_t a = 0; a < o->axes; a++) c.from[a] = number_of(b, &piece->stride[a]);
  c.data = (bb_gpu_pointer)(number_of(b, &piece->offset) * bytes);
  if (o->joined != BB_NONE) {
    if (piece->first > c.extent[o->joined] - piece->length)
      refuse(b, "a part lies beyond its operand");
    c.extent[o->joined] = piece->length;
    c.out = (bb_gpu_pointer)(piece->first * c.to[o->joined] * bytes);
  }
  c.total = 1;
  for (uint32_t a = 0; a < o->axes; a++) c.total *= c.extent[a];
  return c;
}

/* Where an operand lies, put together if it must be. */
static bb_gpu_pointer bring(const binding *b, const operand *o, size_t at, void *const *data,
                            bb_gpu_calls *calls) {
  if (!o->name) return address(data, o->from->piece[0].tensor);
  for (uint32_t k = 0; k < o->from->pieces; k++) {
    copy_call call = piece_copy(b, o->from, &o->from->piece[k]);
    call.data += address(data, o->from->piece[k].tensor);
    call.out += b->machine->scratch + at;
    add(b, calls, o->function, call.total, &call, sizeof call);
  }
  return b->machine->scratch + at;
}

void bb_gpu_misc_call(const bb_gpu_machine *machine, const bb_gpu_misc *m, const int64_t *symbol,
                      void *const *data, bb_gpu_pointer fault, bb_gpu_calls *calls) {
  binding b = {.machine = machine, .misc = m, .symbol = symbol};
  bb_gpu_pointer in[OPERANDS] = {0}, out = address(data, m->step->out[0].piece[0].tensor);
  size_t at[OPERANDS];
  if (!bind(&b)) refuse(&b, "the operands do not fit each other");
  place_copies(&b, at);
  for (uint32_t i = 0; i < m->operands; i++) in[i] = bring(&b, &m->operand[i], at[i], data, calls);
  switch (m->kind) {
  case GATHER:
    b.call.gather.data = in[0], b.call.gather.index = in[1];
    b.call.gather.out = out, b.call.gather.fault = fault;
    break;
  case ALONG:
    b.call.along.data = in[0], b.call.along.index = in[1];
    b.call.along.out = out, b.call.along.fault = fault;
    break;
  case CONVOLUTION:
    b.call.window.data = in[0], b.call.window.weight = in[1];
    b.call.window.bias = in[2], b.call.window.out = out;
    break;
  }
  /* An element of a convolution is a warp's. */
  int64_t threads = b.total * (m->kind == CONVOLUTION ? LANES : 1);
  add(&b, calls, m->function, threads, &b.call, sizeof b.call);
}
