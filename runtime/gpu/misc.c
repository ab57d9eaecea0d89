/* misc.c - misc nodes on a GPU: which kernel, and what it is called with. */
#include "misc.h"

#include "../interp/interp.h"

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
  const bb_access *access;
  uint32_t tensor; /* BB_NONE: put together in scratch, `at` so many bytes from its begin */
  bb_dtype dtype;
  size_t at;
  const char *name; /* of the kernel that copies */
  void *function;
  copy_call
      *copy; /* for each piece; `data`, `out`: bytes from the begin of the tensor, of scratch */
} operand;

struct bb_gpu_misc {
  bb_program *program;
  const bb_step *step;
  kind kind;
  const char *name;
  void *function;
  uint32_t operands;
  operand operand[OPERANDS];
  int64_t total;
  union {
    gather_call gather;
    along_call along;
    window_call window;
  } call;
};

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

/* A tensor, all of it, in the order in which it lies. */
static bool is_whole(const bb_program *program, const bb_misc_port *port, const bb_access *access) {
  const bb_piece *piece = &access->piece[0];
  const bb_tensor *t = &program->tensor[piece->source];
  if (access->count != 1 || access->joined != BB_NO_DIM) return false;
  if (port && port->axes != t->axes) return false;
  for (uint32_t i = 0; i < t->axes; i++)
    if (piece->index[i].kind != BB_INDEX_DIM || piece->index[i].dim != t->axis[i]) return false;
  for (uint32_t i = 0; port && i < t->axes; i++)
    if (port->axis[i] != t->axis[i]) return false;
  return true;
}

static const bb_misc_port *port_of(const bb_gpu_misc *m, uint32_t i) {
  return m->step->misc->in ? &m->step->misc->in[i] : NULL;
}

static bool find_operands(bb_gpu_misc *m) {
  const bb_misc *misc = m->step->misc;
  m->operands = m->step->nin;
  if (m->operands > OPERANDS || m->step->nout != 1) return false;
  for (uint32_t i = 0; misc->in && i < misc->nin; i++)
    if (misc->in[i].absent && i < m->operands) return false;
  for (uint32_t i = 0; i < m->operands; i++) {
    operand *o = &m->operand[i];
    o->access = m->step->in[i];
    o->tensor = o->access->piece[0].source;
    o->dtype = m->program->tensor[o->tensor].dtype;
    if (is_whole(m->program, port_of(m, i), o->access)) continue;
    if (!port_of(m, i) || port_of(m, i)->axes > AXES) return false;
    o->tensor = BB_NONE;
  }
  return true;
}

static bb_dtype dtype_of(const bb_gpu_misc *m, uint32_t i) {
  return m->operand[i].dtype;
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
    bb_put(w->source, "BB_KERNEL(%s, bb_misc_%s_call, %u) {\n  bb_misc_%s<%s>(call);\n}\n\n", name,
           call, (unsigned)THREADS, body, types);
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
  if (m->operands < 2 || !bb_dtype_is_float(dtype) || dtype_of(m, 1) != dtype) return false;
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

bb_gpu_misc *bb_gpu_misc_make(bb_program *program, const bb_step *step, bb_gpu_names *names,
                              bb_buffer *source) {
  writer w = {program->arena, names, source};
  bb_gpu_misc *m = BB_NEW(program->arena, bb_gpu_misc, 1);
  *m = (bb_gpu_misc){.program = program, .step = step};
  if (!find_kind(step->misc, &m->kind) || !find_operands(m)) return NULL;
  if (!(m->kind == CONVOLUTION ? put_window(m, &w) : put_gather(m, &w))) return NULL;
  for (uint32_t i = 0; i < m->operands; i++)
    if (m->operand[i].tensor == BB_NONE)
      m->operand[i].name = put_kernel(&w, "copy", "copy", word_of(dtype_of(m, i)));
  return m;
}

void bb_gpu_misc_find(const bb_gpu_machine *machine, bb_gpu_misc *m, void *module) {
  const bb_gpu_driver *d = machine->driver;
  bb_gpu_must(machine->ctx, d, d->function(&m->function, module, m->name), "finding a kernel");
  for (uint32_t i = 0; i < m->operands; i++) {
    operand *o = &m->operand[i];
    if (o->name)
      bb_gpu_must(machine->ctx, d, d->function(&o->function, module, o->name), "finding a kernel");
  }
}

/* --- extents --- */

static shape bound(const bb_gpu_misc *m, const bb_misc_port *port, uint32_t tensor,
                   const int64_t *symbol) {
  const bb_tensor *t = &m->program->tensor[tensor];
  uint32_t rank = port ? port->rank : t->rank;
  const bb_extent *const *extent = port ? port->shape : t->shape;
  shape s = {.rank = rank};
  for (uint32_t i = 0; i < rank && i < AXES; i++)
    s.extent[i] = bb_extent_bind(m->program, extent[i], symbol);
  return s;
}

static shape operand_shape(const bb_gpu_misc *m, uint32_t i, const int64_t *symbol) {
  return bound(m, port_of(m, i), m->operand[i].access->piece[0].source, symbol);
}

static int64_t extent_of(const bb_gpu_misc *m, bb_dim dim, const int64_t *symbol) {
  return bb_extent_bind(m->program, m->program->dim[dim].extent, symbol);
}

/* One piece of an operand: where it is read, and where it goes.  The k-th index over a dim belongs to the k-th
 * axis over it. */
static void bind_piece(const bb_gpu_misc *m, const operand *o, const bb_misc_port *port,
                       const bb_piece *piece, const int64_t *symbol, copy_call *c) {
  const bb_tensor *t = &m->program->tensor[piece->source];
  int64_t step = 1, offset = 0, bytes = (int64_t)bb_dtype_bytes(o->dtype);
  bool taken[AXES] = {false};
  for (uint32_t i = piece->rank; i-- > 0; step *= extent_of(m, t->axis[i], symbol)) {
    const bb_index *index = &piece->index[i];
    bool whole = index->kind == BB_INDEX_DIM;
    if (!whole) offset += index->start * step;
    uint32_t axis = port->axes; /* from the last: indices are met in that order, too */
    while (axis-- > 0 && (taken[axis] || port->axis[axis] != index->dim)) continue;
    if (index->kind == BB_INDEX_FIXED || axis == UINT32_MAX) continue;
    taken[axis] = true;
    c->from[axis] = whole ? step : step * index->step;
  }
  c->data = (bb_gpu_pointer)(offset * bytes);
  c->out = o->at;
  if (o->access->joined == BB_NO_DIM) return;
  for (uint32_t a = 0; a < port->axes; a++) {
    if (port->axis[a] != o->access->joined) continue;
    c->extent[a] = piece->length ? piece->length : 1;
    c->out += (bb_gpu_pointer)(piece->first * c->to[a] * bytes);
  }
}

static size_t bind_copies(bb_gpu_misc *m, uint32_t i, const int64_t *symbol, size_t at,
                          bb_arena *arena) {
  operand *o = &m->operand[i];
  const bb_misc_port *port = port_of(m, i);
  copy_call all = {.rank = port->axes, .total = 1};
  o->at = at;
  for (uint32_t a = port->axes; a-- > 0; all.total *= all.extent[a]) {
    all.extent[a] = extent_of(m, port->axis[a], symbol);
    all.to[a] = all.total;
  }
  o->copy = BB_NEW(arena, copy_call, o->access->count);
  for (uint32_t k = 0; k < o->access->count; k++) {
    copy_call *c = &o->copy[k];
    *c = all;
    bind_piece(m, o, port, &o->access->piece[k], symbol, c);
    for (uint32_t a = 0; a < port->axes; a++) c->total = a ? c->total * c->extent[a] : c->extent[a];
  }
  enum { LINE = 256 };
  return at + ((size_t)all.total * bb_dtype_bytes(o->dtype) + LINE - 1) / LINE * LINE;
}

static int64_t product(const shape *s, uint32_t from, uint32_t to) {
  int64_t count = 1;
  for (uint32_t i = from; i < to; i++) count *= s->extent[i];
  return count;
}

static bool bind_gather(bb_gpu_misc *m, const shape *data, const shape *index, const shape *out) {
  int64_t axis = integer(m->step->misc, "axis", 0);
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= data->rank) return false;
  gather_call *c = &m->call.gather;
  *c = (gather_call){.count = product(index, 0, index->rank),
                     .extent = data->extent[axis],
                     .inner = product(data, (uint32_t)axis + 1, data->rank)};
  c->total = product(data, 0, (uint32_t)axis) * c->count * c->inner;
  m->total = c->total;
  return c->total == product(out, 0, out->rank) && (c->extent > 0 || c->total == 0);
}

static bool bind_along(bb_gpu_misc *m, const shape *data, const shape *index, const shape *out) {
  int64_t axis = integer(m->step->misc, "axis", 0);
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= data->rank || data->rank != index->rank) return false;
  along_call *c = &m->call.along;
  *c = (along_call){.rank = data->rank, .axis = axis};
  for (uint32_t i = 0; i < data->rank; i++) {
    c->shape[i] = index->extent[i], c->data_shape[i] = data->extent[i];
    if (i != axis && c->shape[i] > c->data_shape[i]) return false;
  }
  m->total = c->total = product(index, 0, index->rank);
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

static bool bind_window(bb_gpu_misc *m, const shape *data, const shape *weight, const shape *out) {
  const bb_misc *misc = m->step->misc;
  window_call *c = &m->call.window;
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
  m->total = c->total = product(out, 0, out->rank);
  return out->extent[0] == data->extent[0] && out->extent[1] == weight->extent[0];
}

bool bb_gpu_misc_bind(bb_gpu_misc *m, const int64_t *symbol, bb_arena *arena, size_t *scratch) {
  const bb_misc *misc = m->step->misc;
  *scratch = 0;
  for (uint32_t i = 0; i < m->operands; i++)
    if (m->operand[i].tensor == BB_NONE) *scratch = bind_copies(m, i, symbol, *scratch, arena);
  shape a = operand_shape(m, 0, symbol), b = operand_shape(m, 1, symbol);
  shape out = bound(m, misc->out ? &misc->out[0] : NULL, m->step->out[0], symbol);
  if (a.rank > AXES || b.rank > AXES || out.rank > AXES) return false;
  switch (m->kind) {
  case GATHER: return bind_gather(m, &a, &b, &out);
  case ALONG: return bind_along(m, &a, &b, &out);
  case CONVOLUTION: return bind_window(m, &a, &b, &out);
  }
  return false;
}

/* --- launches --- */

static void launch(const bb_gpu_machine *machine, void *function, int64_t total, void *call) {
  int64_t blocks = (total + THREADS - 1) / THREADS, most = (int64_t)machine->processors * 32;
  if (total < 1) return;
  bb_gpu_start(machine, function, blocks < most ? blocks : most, THREADS, 0, call);
}

/* Where an operand lies, put together if it must be. */
static bb_gpu_pointer bring(const bb_gpu_machine *machine, const operand *o,
                            const bb_gpu_pointer *tensor) {
  if (o->tensor != BB_NONE) return tensor[o->tensor];
  for (uint32_t k = 0; k < o->access->count; k++) {
    copy_call call = o->copy[k];
    call.data += tensor[o->access->piece[k].source];
    call.out += machine->scratch;
    launch(machine, o->function, call.total, &call);
  }
  return machine->scratch + o->at;
}

void bb_gpu_misc_launch(const bb_gpu_machine *machine, const bb_gpu_misc *m,
                        const bb_gpu_pointer *tensor, bb_gpu_pointer fault) {
  bb_gpu_misc with = *m;
  bb_gpu_pointer in[OPERANDS] = {0}, out = tensor[m->step->out[0]];
  for (uint32_t i = 0; i < m->operands; i++) in[i] = bring(machine, &m->operand[i], tensor);
  switch (m->kind) {
  case GATHER:
    with.call.gather.data = in[0], with.call.gather.index = in[1];
    with.call.gather.out = out, with.call.gather.fault = fault;
    break;
  case ALONG:
    with.call.along.data = in[0], with.call.along.index = in[1];
    with.call.along.out = out, with.call.along.fault = fault;
    break;
  case CONVOLUTION:
    with.call.window.data = in[0], with.call.window.weight = in[1];
    with.call.window.bias = in[2], with.call.window.out = out;
    break;
  }
  /* An element of a convolution is a warp's. */
  int64_t threads = m->total * (m->kind == CONVOLUTION ? LANES : 1);
  launch(machine, m->function, threads, &with.call);
}
