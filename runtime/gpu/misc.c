/* misc.c - misc nodes on a GPU: which kernel, where operands lie, and the launches. */
#include "misc_parts.h"

#include "../model/steps.h"

#include <string.h>

enum { OPERANDS = 3 };

/* --- what a node says --- */

const bb_attribute *bb_gpu_attribute(const bb_misc *misc, const char *name) {
  for (uint32_t i = 0; i < misc->count; i++)
    if (strcmp(misc->attribute[i].name, name) == 0) return &misc->attribute[i];
  return NULL;
}

int64_t bb_gpu_integer(const bb_misc *misc, const char *name, int64_t otherwise) {
  const bb_attribute *a = bb_gpu_attribute(misc, name);
  return a && a->kind == BB_ATTR_INT ? a->i : otherwise;
}

static bb_dtype dtype_of(const bb_gpu_misc *m, uint32_t i) {
  return m->step->in[i].dtype;
}

static bool has_axes(const bb_plan_operand *o) {
  return o->rank <= BB_GPU_AXES && o->axes <= BB_PLAN_RANK;
}

/* The end of a cache that an operand is; NULL: of none. */
static const bb_plan_tensor *end_of(const bb_gpu_misc *m, const bb_plan_operand *o) {
  const bb_plan_tensor *t = &m->plan->tensor[o->piece[0].tensor];
  return t->room == BB_NONE ? NULL : t;
}

/* A result is all of an array.  One with room is the caller's view of it. */
static bool is_result(const bb_gpu_misc *m, const bb_plan_operand *out) {
  if (out->absent || !out->whole || !has_axes(out)) return false;
  const bb_plan_tensor *end = end_of(m, out);
  return !end || (end->rank == out->rank && (m->kind == BB_GPU_JOIN || m->kind == BB_GPU_APPEND));
}

static bool find_operands(bb_gpu_misc *m) {
  const bb_plan_step *step = m->step;
  m->operands = step->nin;
  while (m->operands && step->in[m->operands - 1].absent) m->operands--;
  if (!m->operands || step->nout != (m->kind == BB_GPU_TOP ? 2 : 1)) return false;
  for (uint32_t i = 0; i < step->nout; i++)
    if (!is_result(m, &step->out[i])) return false;
  for (uint32_t i = 0; i < m->operands; i++)
    if (step->in[i].absent || !has_axes(&step->in[i])) return false;
  return true;
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

/* types: of the kernel's template, "uint32_t, int64_t". */
static bool set_kernel_of(bb_gpu_misc *m, bb_arena *arena, uint32_t which, const char *body,
                          const char *call, const char *types) {
  char *name = bb_arena_printf(arena, "%s_%s", body, types), *to = name;
  for (const char *from = name; *from; from++)
    if (*from != ',') *to++ = (char)(*from == ' ' ? '_' : *from);
  *to = 0;
  m->kernel[which] = (bb_gpu_misc_kernel){name, body, call, types};
  return true;
}

static bool set_kernel(bb_gpu_misc *m, bb_arena *arena, const char *body, const char *call,
                       const char *types) {
  return set_kernel_of(m, arena, 0, body, call, types);
}

/* Does a plan say of its only piece that an operand is the same along its outermost axis? */
static bool is_alike(const bb_plan_operand *o) {
  if (o->pieces != 1 || o->joined != BB_NONE || o->axes < 2) return false;
  const bb_formula *stride = &o->piece[0].stride[0];
  return stride->count == 1 && stride->term[0].op == BB_T_NUMBER && stride->term[0].number == 0;
}

static bool set_gather(bb_gpu_misc *m, bb_arena *arena) {
  if (m->operands != 2) return false;
  bb_dtype index = dtype_of(m, 1);
  if (index != BB_I64 && index != BB_I32) return false;
  const char *types = bb_arena_printf(arena, "%s, %s", word_of(dtype_of(m, 0)),
                                      index == BB_I64 ? "int64_t" : "int32_t");
  const char *body = m->kind == BB_GPU_GATHER  ? "gather"
                     : m->kind == BB_GPU_ALONG ? "along"
                                               : "points";
  if (m->kind == BB_GPU_ALONG && is_alike(&m->step->in[1]))
    set_kernel_of(m, arena, 1, "again", "along", types);
  return set_kernel(m, arena, body, body, types);
}

/* Sums of 16 bits are rounded one by one, as the reference kernel's. */
static bool set_scatter(bb_gpu_misc *m, bb_arena *arena) {
  const bb_attribute *a = bb_gpu_attribute(m->step->misc, "reduction");
  bool adds = a && a->text && strcmp(a->text, "add") == 0;
  bb_dtype dtype = m->step->out[0].dtype;
  if (m->operands != 3 || dtype_of(m, 0) != dtype || dtype_of(m, 2) != dtype) return false;
  if (dtype_of(m, 1) != BB_I64 && dtype_of(m, 1) != BB_I32) return false;
  if (a && a->text && !adds && strcmp(a->text, "none") != 0) return false;
  if (adds && dtype != BB_F32 && dtype != BB_F16 && dtype != BB_BF16) return false;
  const char *index = dtype_of(m, 1) == BB_I64 ? "int64_t" : "int32_t";
  return set_kernel(
      m, arena, adds ? "scatter_add" : "scatter", "scatter",
      bb_arena_printf(arena, "%s, %s", adds ? real_of(dtype) : word_of(dtype), index));
}

static bool set_window(bb_gpu_misc *m, bb_arena *arena) {
  if (m->operands < 2 || m->operands > 3) return false;
  bb_dtype dtype = dtype_of(m, 0);
  if (!bb_dtype_is_float(dtype) || dtype_of(m, 1) != dtype) return false;
  if (m->operands == 3 && dtype_of(m, 2) != dtype) return false;
  const char *sum = dtype == BB_F64 ? "double" : "float";
  return set_kernel(m, arena, "convolve", "window",
                    bb_arena_printf(arena, "%s, %s", real_of(dtype), sum));
}

static bool set_append(bb_gpu_misc *m, bb_arena *arena) {
  bb_dtype dtype = m->step->out[0].dtype;
  if (m->operands != 3 || dtype_of(m, 0) != dtype || dtype_of(m, 1) != dtype) return false;
  return dtype_of(m, 2) == BB_I64 && set_kernel(m, arena, "append", "append", word_of(dtype));
}

static bool set_pick(bb_gpu_misc *m, bb_arena *arena) {
  const char *types = bb_gpu_pick_types(m, arena);
  const char *body = m->kind == BB_GPU_TOP ? "top" : "places";
  return types && set_kernel(m, arena, body, body, types);
}

/* Moves have no kernel of their own. */
static bool set_moves(bb_gpu_misc *m) {
  for (uint32_t i = 0; i < m->operands && (i == 0 || m->kind == BB_GPU_JOIN); i++)
    if (dtype_of(m, i) != m->step->out[0].dtype) return false;
  return true;
}

static bool find_kind(const bb_misc *misc, bb_gpu_misc_kind *found) {
  static const struct {
    const char *domain, *op;
    bb_gpu_misc_kind kind;
  } known[] = {{"", "Gather", BB_GPU_GATHER},    {"", "GatherElements", BB_GPU_ALONG},
               {"", "GatherND", BB_GPU_POINTS},  {"", "ScatterND", BB_GPU_SCATTER},
               {"", "Conv", BB_GPU_CONVOLUTION}, {"", "Concat", BB_GPU_JOIN},
               {"", "Reshape", BB_GPU_MOVE},     {"blockbuster", "Append", BB_GPU_APPEND},
               {"", "TopK", BB_GPU_TOP},         {"", "NonZero", BB_GPU_PLACES}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(misc->domain, known[i].domain) == 0 && strcmp(misc->op, known[i].op) == 0) {
      *found = known[i].kind;
      return true;
    }
  return false;
}

static bool set(bb_gpu_misc *m, bb_arena *arena) {
  switch (m->kind) {
  case BB_GPU_GATHER:
  case BB_GPU_ALONG:
  case BB_GPU_POINTS: return set_gather(m, arena);
  case BB_GPU_SCATTER: return set_scatter(m, arena);
  case BB_GPU_CONVOLUTION: return set_window(m, arena);
  case BB_GPU_APPEND: return set_append(m, arena);
  case BB_GPU_TOP:
  case BB_GPU_PLACES: return set_pick(m, arena);
  case BB_GPU_JOIN:
  case BB_GPU_MOVE: return set_moves(m);
  }
  return false;
}

bb_gpu_misc *bb_gpu_misc_make(bb_arena *arena, const bb_plan *plan, uint32_t number) {
  bb_gpu_misc *m = BB_NEW(arena, bb_gpu_misc, 1);
  *m = (bb_gpu_misc){.plan = plan, .step = &plan->step[number], .number = number};
  bool good = find_kind(m->step->misc, &m->kind) && find_operands(m) && set(m, arena);
  return good ? m : NULL;
}

const bb_gpu_misc_kernel *bb_gpu_misc_kernel_of(const bb_gpu_misc *m, uint32_t which) {
  return &m->kernel[which];
}

bool bb_gpu_misc_picks(const bb_gpu_misc *m) {
  return m->kind == BB_GPU_TOP || m->kind == BB_GPU_PLACES;
}

void bb_gpu_misc_put(bb_buffer *source, const bb_gpu_misc_kernel *k) {
  bb_put(source, "BB_KERNEL(%s, bb_misc_%s_call, %d, 1) {\n  bb_misc_%s<%s>(call);\n}\n\n", k->name,
         k->call, BB_GPU_THREADS, k->body, k->types);
}

void bb_gpu_misc_find(bb_context *ctx, const bb_gpu_driver *d, bb_gpu_misc *m, void *module,
                      const bb_gpu_mover *mover) {
  m->mover = mover;
  for (uint32_t k = 0; k < BB_GPU_MISC_KERNELS; k++)
    if (m->kernel[k].name)
      bb_gpu_must(ctx, d, d->function(&m->function[k], module, m->kernel[k].name),
                  "finding a kernel");
}

/* --- extents --- */

_Noreturn void bb_gpu_misc_refuse(const bb_gpu_binding *b, const char *why) {
  bb_fail(b->machine->ctx, BB_ERROR_INPUT, "misc node \"%s\": %s: %s", b->misc->step->name,
          b->misc->step->misc->op, why);
}

static int64_t extent_of(const bb_gpu_binding *b, const bb_extent *extent) {
  int64_t value;
  if (!bb_plan_extent(extent, b->symbol, &value)) bb_gpu_misc_refuse(b, "an extent is not known");
  return value;
}

static int64_t number_of(const bb_gpu_binding *b, const bb_formula *formula) {
  int64_t value;
  if (!bb_formula_value(formula, b->symbol, &value))
    bb_gpu_misc_refuse(b, "an operand is too large to address");
  return value;
}

/* Row-major, but for an axis that has more elements in memory than it counts. */
static bb_gpu_array array_of(const bb_gpu_binding *b, const bb_plan_operand *o,
                             const bb_plan_tensor *end) {
  bb_gpu_array a = {.rank = o->rank};
  int64_t step = 1;
  for (uint32_t i = o->rank; i-- > 0;) {
    a.extent[i] = extent_of(b, o->shape[i]);
    a.stride[i] = step;
    step *= end && i == end->room_axis ? b->symbol[end->room] : a.extent[i];
  }
  return a;
}

/* Where an operand is one array, as its node sees it, there is nothing to put together: a part of a cache in its room,
 * where the node's kernel can step over what lies between. */
static bool lies_so(const bb_gpu_binding *b, const bb_plan_operand *o) {
  const bb_plan_tensor *end = end_of(b->misc, o);
  if (!o->whole || !end) return o->whole;
  if (b->misc->kind == BB_GPU_JOIN || b->misc->kind == BB_GPU_APPEND) return end->rank == o->rank;
  return extent_of(b, end->shape[end->room_axis]) == b->symbol[end->room];
}

/* May the node's kernel step through the only piece that there is?  Neither what is spread along an axis nor what lies turned is
 * written out for it then. */
static bool has_steps(const bb_gpu_binding *b, const bb_plan_operand *o, int64_t *step) {
  int64_t extent[BB_PLAN_RANK], stride[BB_PLAN_RANK], shape[BB_PLAN_RANK];
  if (b->misc->kind != BB_GPU_ALONG || o->pieces != 1 || o->joined != BB_NONE) return false;
  for (uint32_t a = 0; a < o->axes; a++) {
    extent[a] = extent_of(b, o->extent[a]);
    stride[a] = number_of(b, &o->piece[0].stride[a]);
  }
  for (uint32_t a = 0; a < o->rank; a++) shape[a] = extent_of(b, o->shape[a]);
  return bb_steps_by(o->axes, extent, stride, o->rank, shape, step);
}

/* --- what is put together --- */

/* Elements of one piece of an operand, and where each goes in a row-major array of all. */
typedef struct piece_axes {
  int64_t extent[BB_PLAN_RANK], from[BB_PLAN_RANK], to[BB_PLAN_RANK];
} piece_axes;

static int64_t whole_of(const bb_gpu_binding *b, const bb_plan_operand *o, piece_axes *p) {
  int64_t total = 1;
  for (uint32_t a = o->axes; a-- > 0; total *= p->extent[a]) {
    p->extent[a] = extent_of(b, o->extent[a]);
    p->to[a] = total;
  }
  return total;
}

static void put_together(const bb_gpu_binding *b, const bb_plan_operand *o, void *const *data,
                         bb_gpu_pointer to, bb_gpu_calls *calls) {
  size_t element = bb_dtype_bytes(o->dtype);
  for (uint32_t k = 0; k < o->pieces; k++) {
    const bb_plan_piece *piece = &o->piece[k];
    piece_axes p;
    int64_t first = 0;
    whole_of(b, o, &p);
    for (uint32_t a = 0; a < o->axes; a++) p.from[a] = number_of(b, &piece->stride[a]);
    if (o->joined != BB_NONE) {
      if (piece->first > p.extent[o->joined] - piece->length)
        bb_gpu_misc_refuse(b, "a part lies beyond its operand");
      p.extent[o->joined] = piece->length;
      first = piece->first * p.to[o->joined];
    }
    int64_t offset = number_of(b, &piece->offset);
    bb_move move = {.from = (const char *)data[piece->tensor] + offset * (int64_t)element,
                    .to = (void *)(uintptr_t)(to + (uint64_t)first * element),
                    .element = element,
                    .rank = o->axes,
                    .extent = p.extent,
                    .from_stride = p.from,
                    .to_stride = p.to};
    bb_gpu_call_move(b->machine, b->misc->mover, &move, calls);
  }
}

static size_t line_of(size_t bytes) {
  enum { LINE = 256 };
  return (bytes + LINE - 1) / LINE * LINE;
}

/* Bytes of scratch that an operand takes; 0: none. */
static size_t room_of(const bb_gpu_binding *b, const bb_plan_operand *o) {
  piece_axes p;
  int64_t step[BB_PLAN_RANK];
  if (lies_so(b, o) || has_steps(b, o, step)) return 0;
  return line_of((size_t)whole_of(b, o, &p) * bb_dtype_bytes(o->dtype));
}

/* Bytes for what each of several blocks counts. */
static size_t room_of_counts(const bb_gpu_binding *b) {
  piece_axes p;
  if (b->misc->kind != BB_GPU_PLACES) return 0;
  int64_t blocks = bb_gpu_pick_blocks(b->machine, whole_of(b, &b->misc->step->in[0], &p));
  return blocks > 1 ? line_of((size_t)blocks * sizeof(int64_t)) : 0;
}

size_t bb_gpu_misc_scratch(const bb_gpu_machine *machine, const bb_gpu_misc *m,
                           const int64_t *symbol) {
  bb_gpu_binding b = {.machine = machine, .misc = m, .symbol = symbol};
  size_t bytes = 0;
  for (uint32_t i = 0; i < m->operands && m->kind != BB_GPU_MOVE; i++)
    bytes += room_of(&b, &m->step->in[i]);
  return bytes + room_of_counts(&b);
}

/* Where operand i lies, put together in scratch from *used on if it must be. */
static bb_gpu_array bring(const bb_gpu_binding *b, uint32_t i, void *const *data, size_t *used,
                          bb_gpu_calls *calls) {
  const bb_plan_operand *o = &b->misc->step->in[i];
  bool so = lies_so(b, o);
  bb_gpu_array a = array_of(b, o, so ? end_of(b->misc, o) : NULL);
  a.data = (bb_gpu_pointer)(uintptr_t)data[o->piece[0].tensor];
  if (so) return a;
  int64_t step[BB_PLAN_RANK];
  if (has_steps(b, o, step)) {
    int64_t offset = number_of(b, &o->piece[0].offset);
    memcpy(a.stride, step, o->rank * sizeof *step);
    a.data += (uint64_t)(offset * (int64_t)bb_dtype_bytes(o->dtype));
    return a;
  }
  a.data = b->machine->scratch + *used;
  *used += room_of(b, o);
  put_together(b, o, data, a.data, calls);
  return a;
}

/* --- launches --- */

static void join(const bb_gpu_binding *b, void *const *data, const bb_gpu_array *out,
                 bb_gpu_calls *calls) {
  size_t used = 0, element = bb_dtype_bytes(b->misc->step->out[0].dtype);
  int64_t axis = bb_gpu_integer(b->misc->step->misc, "axis", 0), at = 0;
  if (axis < 0) axis += out->rank;
  if (axis < 0 || axis >= out->rank) bb_gpu_misc_refuse(b, "there is no such axis");
  for (uint32_t i = 0; i < b->misc->operands; i++) {
    bb_gpu_array in = bring(b, i, data, &used, calls);
    bool fits = in.rank == out->rank && at + in.extent[axis] <= out->extent[axis];
    for (uint32_t a = 0; fits && a < in.rank; a++)
      fits = a == axis || in.extent[a] == out->extent[a];
    if (!fits) bb_gpu_misc_refuse(b, "the operands do not fit each other");
    bb_move move = {
        .from = (void *)(uintptr_t)in.data,
        .to = (void *)(uintptr_t)(out->data + (uint64_t)(at * out->stride[axis]) * element),
        .element = element,
        .rank = in.rank,
        .extent = in.extent,
        .from_stride = in.stride,
        .to_stride = out->stride};
    bb_gpu_call_move(b->machine, b->misc->mover, &move, calls);
    at += in.extent[axis];
  }
  if (at != out->extent[axis]) bb_gpu_misc_refuse(b, "the operands do not fit each other");
}

static void add_kernel(const bb_gpu_binding *b, const bb_gpu_misc_call_of *call,
                       bb_gpu_calls *calls) {
  int64_t blocks = (call->threads + BB_GPU_THREADS - 1) / BB_GPU_THREADS;
  int64_t most = (int64_t)b->machine->processors * 32;
  if (blocks < 1) return;
  bb_gpu_call launch = {.how = {.function = b->misc->function[call->kernel],
                                .threads = BB_GPU_THREADS,
                                .shared = call->shared},
                        .blocks = (uint32_t)(blocks < most ? blocks : most)};
  bb_gpu_add(b->machine, calls, &launch, &call->as, call->bytes);
}

/* Several blocks count what each will put, and then put it. */
static void add_places(const bb_gpu_binding *b, bb_gpu_misc_call_of *call, size_t used,
                       bb_gpu_pointer told, bb_gpu_calls *calls) {
  call->as.places.told = told;
  if (room_of_counts(b)) {
    call->as.places.counts = b->machine->scratch + used;
    call->as.places.counting = 1;
    add_kernel(b, call, calls);
    call->as.places.counting = 0;
  }
  add_kernel(b, call, calls);
}

static void call_kernel(const bb_gpu_binding *b, void *const *data, const bb_gpu_array *out,
                        bb_gpu_pointer fault, bb_gpu_pointer told, bb_gpu_calls *calls) {
  bb_gpu_array in[OPERANDS] = {0};
  bb_gpu_misc_call_of call;
  size_t used = 0;
  bool copied = b->misc->kind == BB_GPU_SCATTER; /* the first operand is where the result is */
  for (uint32_t i = copied; i < b->misc->operands; i++) in[i] = bring(b, i, data, &used, calls);
  if (!bb_gpu_misc_bind(b, in, out, fault, &call))
    bb_gpu_misc_refuse(b, "the operands do not fit each other");
  if (b->misc->kind == BB_GPU_PLACES)
    add_places(b, &call, used, told, calls);
  else
    add_kernel(b, &call, calls);
}

void bb_gpu_misc_call(const bb_gpu_machine *machine, const bb_gpu_misc *m, const int64_t *symbol,
                      void *const *data, bb_gpu_pointer fault, bb_gpu_pointer told,
                      bb_gpu_calls *calls) {
  bb_gpu_binding b = {.machine = machine, .misc = m, .symbol = symbol};
  bb_gpu_array out[BB_GPU_RESULTS];
  for (uint32_t i = 0; i < m->step->nout; i++) {
    const bb_plan_operand *result = &m->step->out[i];
    out[i] = array_of(&b, result, end_of(m, result));
    out[i].data = (bb_gpu_pointer)(uintptr_t)data[result->piece[0].tensor];
  }
  if (m->kind == BB_GPU_JOIN) join(&b, data, out, calls);
  if (m->kind == BB_GPU_MOVE || m->kind == BB_GPU_SCATTER)
    put_together(&b, &m->step->in[0], data, out[0].data, calls);
  if (m->kind != BB_GPU_MOVE && m->kind != BB_GPU_JOIN)
    call_kernel(&b, data, out, fault, told, calls);
}
