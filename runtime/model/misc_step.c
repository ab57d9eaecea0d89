/* misc_step.c - a step that is no kernel of the device, but a reference kernel or interpreted: operands
 * gathered as doubles, the kernel, results rounded and stored.
 *
 * They take memory as they go.  The lab gives it to them from a context of its own, whose
 * allocator keeps what is freed and hands it out again: runs with one shape ask for the same blocks in
 * the same order, so that all but the first find them.  Some operators have a kernel that works on
 * elements as they lie (native.h), and need none of that.
 */
#include "model.h"
#include "native.h"
#include "session.h"
#include "steps.h"

#include "../interp/interp.h"

#include <stdlib.h>
#include <string.h>

typedef struct block {
  struct block *next;
  size_t size;
} block;

struct bb_lab {
  bb_context *outer, *inner;
  block *spare;
  const bb_model *model;
  bb_interpreted **program; /* by step; NULL: not read yet, or there is none */
  bb_native_kept *kept;     /* by step: what native kernels made of constants */
};

/* --- memory that is kept --- */

enum { HEAD = 64 };
_Static_assert(sizeof(block) <= HEAD, "a block's head stands in the line before it");

static void *take_block(bb_lab *lab, size_t size) {
  for (block **link = &lab->spare; *link; link = &(*link)->next) {
    if ((*link)->size != size) continue;
    block *found = *link;
    *link = found->next;
    return (char *)found + HEAD;
  }
  block *made = lab->outer->allocator.resize(lab->outer->allocator.user, NULL, 0, size + HEAD);
  if (!made) return NULL;
  made->size = size;
  return (char *)made + HEAD;
}

static void *resize_kept(void *user, void *pointer, size_t old_size, size_t new_size) {
  bb_lab *lab = user;
  void *memory = NULL;
  if (new_size) {
    memory = take_block(lab, new_size);
    if (!memory) return NULL;
    if (pointer) memcpy(memory, pointer, old_size < new_size ? old_size : new_size);
  }
  if (pointer) {
    block *freed = (block *)((char *)pointer - HEAD);
    freed->next = lab->spare;
    lab->spare = freed;
  }
  return memory;
}

static void destroy_cleanup(void *lab) {
  bb_lab_destroy(lab);
}

bb_lab *bb_lab_create(bb_context *ctx, const bb_model *model) {
  bb_lab *lab = bb_resize(ctx, NULL, 0, sizeof *lab);
  lab->outer = ctx;
  lab->model = model;
  bb_defer(ctx, destroy_cleanup, lab);
  bb_context_options options = {.version = BB_VERSION, .allocator = {resize_kept, lab}};
  if (bb_context_create(&options, &lab->inner) != BB_OK)
    bb_fail(ctx, BB_ERROR_MEMORY, "out of memory");
  lab->program = bb_resize(ctx, NULL, 0, model->plan->steps * sizeof *lab->program);
  lab->kept = bb_resize(ctx, NULL, 0, model->plan->steps * sizeof *lab->kept);
  bb_undefer(ctx, lab);
  return lab;
}

void bb_lab_destroy(bb_lab *lab) {
  if (!lab) return;
  bb_context *ctx = lab->outer;
  uint32_t steps = lab->model->plan->steps;
  for (uint32_t i = 0; lab->program && i < steps; i++)
    if (lab->program[i]) lab->model->interpreter->close(lab->program[i]);
  if (lab->program) bb_resize(ctx, lab->program, steps * sizeof *lab->program, 0);
  for (uint32_t i = 0; lab->kept && i < steps; i++)
    if (lab->kept[i].memory) bb_resize(lab->inner, lab->kept[i].memory, lab->kept[i].bytes, 0);
  if (lab->kept) bb_resize(ctx, lab->kept, steps * sizeof *lab->kept, 0);
  if (lab->inner) bb_context_destroy(lab->inner);
  while (lab->spare) {
    block *gone = lab->spare;
    lab->spare = gone->next;
    ctx->allocator.resize(ctx->allocator.user, gone, gone->size + HEAD, 0);
  }
  bb_resize(ctx, lab, sizeof *lab, 0);
}

/* --- operands --- */

typedef struct call {
  bb_lab *lab;
  bb_arena *arena;
  const bb_plan_step *step;
  const bb_plan_tensor *tensor;
  int64_t *symbol;
  void *const *data;
  const bb_device_class *class;
  bb_queue *queue;
  bb_misc_value *in, *out;
} call;

static void shape_of(const call *c, const bb_plan_operand *o, bb_misc_value *value) {
  value->dtype = o->dtype;
  value->rank = o->rank;
  for (uint32_t i = 0; i < o->rank; i++)
    if (!bb_plan_extent(o->shape[i], c->symbol, &value->shape[i]))
      bb_fail(c->lab->inner, BB_ERROR_ARGUMENT, "an extent is not known");
}

/* How much room the array has along the axis of its cache; 0: it is dense. */
static int64_t room_of(const call *c, uint32_t tensor) {
  uint32_t symbol = c->tensor[tensor].room;
  return symbol == BB_NONE ? 0 : c->symbol[symbol];
}

static size_t count_of(const call *c, uint32_t rank, const bb_extent *const *shape) {
  size_t count;
  if (!bb_plan_count(rank, shape, c->symbol, &count))
    bb_fail(c->lab->inner, BB_ERROR_MEMORY, "an operand is too large to hold");
  return count;
}

static int64_t number(const call *c, const bb_formula *formula) {
  int64_t value;
  if (bb_formula_is_open(formula, c->symbol) || !bb_formula_value(formula, c->symbol, &value))
    bb_fail(c->lab->inner, BB_ERROR_INPUT, "an operand is too large to address");
  return value;
}

typedef struct walk {
  uint32_t axes;
  int64_t extent[BB_PLAN_RANK], stride[BB_PLAN_RANK], to[BB_PLAN_RANK];
  bb_dtype dtype;
  const char *from;
  int64_t first; /* element of the operand that this piece begins with */
} walk;

static void load_axis(const walk *w, uint32_t axis, const char *from, double *to) {
  size_t element = bb_dtype_bytes(w->dtype);
  if (axis + 1 >= w->axes && (w->axes == 0 || w->stride[axis] == 1)) {
    bb_interp_load(w->dtype, from, w->axes ? (size_t)w->extent[axis] : 1, to);
    return;
  }
  for (int64_t i = 0; i < w->extent[axis]; i++) {
    const char *at = from + i * w->stride[axis] * (int64_t)element;
    if (axis + 1 == w->axes)
      bb_interp_load(w->dtype, at, 1, to + i);
    else
      load_axis(w, axis + 1, at, to + i * w->to[axis]);
  }
}

/* One piece of an operand: its share of the joined axis, or all; false: it has no elements. */
static bool walk_piece(const call *c, const bb_plan_operand *o, const bb_plan_piece *piece,
                       walk *made) {
  walk w = {.axes = o->axes, .dtype = o->dtype};
  int64_t step = 1;
  for (uint32_t i = o->axes; i-- > 0;) {
    if (!bb_plan_extent(o->extent[i], c->symbol, &w.extent[i]))
      bb_fail(c->lab->inner, BB_ERROR_ARGUMENT, "an extent is not known");
    w.stride[i] = number(c, &piece->stride[i]);
    w.to[i] = step;
    step *= w.extent[i];
  }
  if (o->joined != BB_NONE) {
    if (piece->first > w.extent[o->joined] - piece->length)
      bb_fail(c->lab->inner, BB_ERROR_INTERNAL, "a part lies beyond its operand");
    w.extent[o->joined] = piece->length;
    w.first = piece->first * w.to[o->joined];
  }
  for (uint32_t i = 0; i < o->axes; i++)
    if (w.extent[i] == 0) return false;
  w.from = (const char *)c->data[piece->tensor] +
           number(c, &piece->offset) * (int64_t)bb_dtype_bytes(o->dtype);
  *made = w;
  return true;
}

static void give_operand(const call *c, uint32_t i) {
  const bb_plan_operand *o = &c->step->in[i];
  if (o->absent) return;
  bb_misc_value *value = &c->in[i];
  shape_of(c, o, value);
  size_t count = count_of(c, o->axes, o->extent);
  if (count != count_of(c, o->rank, o->shape))
    bb_fail(c->lab->inner, BB_ERROR_INTERNAL, "operand %u has other elements than its shape", i);
  value->data = BB_NEW(c->arena, double, count + 1);
  bool whole = o->whole && !room_of(c, o->piece[0].tensor);
  if (whole) bb_interp_load(o->dtype, c->data[o->piece[0].tensor], count, value->data);
  walk w;
  for (uint32_t k = 0; k < o->pieces && !whole; k++)
    if (walk_piece(c, o, &o->piece[k], &w)) load_axis(&w, 0, w.from, value->data + w.first);
  bb_interp_check(c->lab->inner, "an operand", o->dtype, value->data, count);
}

static void store_result(const call *c, uint32_t i) {
  const bb_plan_operand *o = &c->step->out[i];
  if (o->absent) return;
  bb_misc_value want = {0};
  const bb_misc_value *got = &c->out[i];
  shape_of(c, o, &want);
  bool same = got->data && got->rank == want.rank;
  for (uint32_t k = 0; same && k < want.rank; k++) same = got->shape[k] == want.shape[k];
  if (!same)
    bb_fail(c->lab->inner, BB_ERROR_INPUT, "result %u has another shape than the model says", i);
  uint32_t tensor = o->piece[0].tensor;
  const bb_plan_tensor *t = &c->tensor[tensor];
  int64_t room = room_of(c, tensor);
  size_t count = count_of(c, o->rank, o->shape), run = count, pitch = count;
  if (room && count) {
    run = count_of(c, t->rank - t->room_axis, t->shape + t->room_axis);
    pitch = count_of(c, t->rank - t->room_axis - 1, t->shape + t->room_axis + 1) * (size_t)room;
  }
  char *to = c->data[tensor];
  for (size_t at = 0; at < count; at += run, to += pitch * bb_dtype_bytes(o->dtype))
    bb_interp_store(o->dtype, got->data + at, run, to);
}

/* --- native kernels --- */

/* The elements of an operand one after the other, wherever they lie. */
static void bring_together(const call *c, const bb_plan_operand *o, char *to) {
  size_t element = bb_dtype_bytes(o->dtype), count = count_of(c, o->axes, o->extent);
  if (o->whole && !room_of(c, o->piece[0].tensor)) {
    if (count) memcpy(to, c->data[o->piece[0].tensor], count * element);
    return;
  }
  walk w;
  for (uint32_t k = 0; k < o->pieces; k++)
    if (walk_piece(c, o, &o->piece[k], &w))
      bb_copy_strided(w.axes, w.extent, element, to + w.first * (int64_t)element, w.to, w.from,
                      w.stride);
}

static bool is_constant(const call *c, const bb_plan_operand *o) {
  for (uint32_t k = 0; k < o->pieces; k++) {
    const bb_plan_tensor *t = &c->tensor[o->piece[k].tensor];
    if (t->role != BB_TENSOR_CONSTANT && !t->once) return false;
  }
  return true;
}

/* An array as it lies; false: it has room that does not follow from its shape. */
static bool lay_whole(const call *c, const bb_plan_operand *o, bb_native_array *array) {
  uint32_t tensor = o->piece[0].tensor;
  array->data = c->data[tensor];
  array->room = room_of(c, tensor);
  array->room_axis = c->tensor[tensor].room_axis;
  return !array->room || c->tensor[tensor].rank == o->rank;
}

/* An operand's only piece, for a kernel that steps through what lies in rows; false: it does not, or this does not. */
static bool lay_stepped(const call *c, const bb_plan_operand *o, bb_native_array *array) {
  walk w;
  if (!bb_native_steps(c->step->misc) || o->pieces != 1 || o->joined != BB_NONE ||
      !walk_piece(c, o, &o->piece[0], &w) ||
      !bb_steps_by(w.axes, w.extent, w.stride, array->rank, array->shape, array->step))
    return false;
  const uint32_t last = array->rank - 1;
  array->data = (char *)c->data[o->piece[0].tensor] +
                number(c, &o->piece[0].offset) * (int64_t)bb_dtype_bytes(o->dtype);
  array->steps = array->rank && (array->step[last] == 1 || array->shape[last] == 1);
  return array->steps;
}

/* Operands and results; false: one of them lies as no native kernel takes it.  Operands that are a part of an array, or several, are
 * brought together. */
static bool lay(const call *c, uint32_t count, const bb_plan_operand *operand, bool results,
                bb_native_array *array) {
  for (uint32_t i = 0; i < count; i++) {
    const bb_plan_operand *o = &operand[i];
    bb_misc_value value = {0};
    array[i].absent = o->absent;
    if (o->absent) continue;
    shape_of(c, o, &value);
    array[i].dtype = value.dtype;
    array[i].rank = value.rank;
    memcpy(array[i].shape, value.shape, sizeof array[i].shape);
    array[i].constant = !results && is_constant(c, o);
    if (o->whole && lay_whole(c, o, &array[i])) continue;
    size_t elements = count_of(c, o->axes, o->extent);
    if (results || o->whole || elements != count_of(c, o->rank, o->shape)) return false;
    if (lay_stepped(c, o, &array[i])) continue;
    array[i].data = bb_arena_array(c->arena, elements + 1, bb_dtype_bytes(o->dtype));
    bring_together(c, o, array[i].data);
  }
  return true;
}

/* Elements that only move, from wherever they lie; false: not this case. */
static bool run_move(const call *c) {
  const bb_plan_step *s = c->step;
  const bb_plan_operand *in = &s->in[0], *out = &s->out[0];
  if (strcmp(s->misc->op, "Reshape") != 0 || s->misc->domain[0] || s->nin < 1 || s->nout != 1)
    return false;
  if (in->absent || out->absent || in->dtype != out->dtype) return false;
  if (count_of(c, in->axes, in->extent) != count_of(c, out->rank, out->shape)) return false;
  bring_together(c, in, c->data[out->piece[0].tensor]);
  return true;
}

/* What is told, in place of the most that it can be: arrays are as large as that. */
static void note_told(const call *c, int64_t told) {
  int64_t most = c->symbol[c->step->tells];
  if (told < 0 || told > most)
    bb_fail(c->lab->inner, BB_ERROR_INPUT, "it gives %lld elements, of at most %lld",
            (long long)told, (long long)most);
  c->symbol[c->step->tells] = told;
}

static bool run_native(const call *c) {
  const bb_plan_step *s = c->step;
  if (run_move(c)) return true;
  bb_native_kernel *kernel = bb_native_find(s->misc);
  if (!kernel) return false;
  bb_native_array *in = BB_NEW(c->arena, bb_native_array, s->nin + 1);
  bb_native_array *out = BB_NEW(c->arena, bb_native_array, s->nout + 1);
  if (!lay(c, s->nin, s->in, false, in) || !lay(c, s->nout, s->out, true, out)) return false;
  int64_t told = -1;
  bool ran = kernel(&(bb_native_call){.ctx = c->lab->inner,
                                      .arena = c->arena,
                                      .misc = s->misc,
                                      .nin = s->nin,
                                      .nout = s->nout,
                                      .in = in,
                                      .out = out,
                                      .told = s->tells == BB_NONE ? NULL : &told,
                                      .kept = &c->lab->kept[s - c->lab->model->plan->step],
                                      .class = c->class,
                                      .queue = c->queue});
  if (ran && s->tells != BB_NONE) note_told(c, told);
  return ran;
}

/* --- a step --- */

static void give_operands(call *c) {
  const bb_plan_step *s = c->step;
  c->in = BB_NEW(c->arena, bb_misc_value, s->nin + 1);
  c->out = BB_NEW(c->arena, bb_misc_value, s->nout + 1);
  for (uint32_t i = 0; i < s->nin; i++) give_operand(c, i);
  for (uint32_t i = 0; i < s->nout; i++)
    if (!s->out[i].absent) shape_of(c, &s->out[i], &c->out[i]);
}

/* How long the results of a reference kernel turn out to be. */
static int64_t told_by(const call *c) {
  const bb_plan_step *s = c->step;
  for (uint32_t i = 0; i < s->nout; i++)
    for (uint32_t a = 0; !s->out[i].absent && a < s->out[i].rank; a++) {
      const bb_extent *extent = s->out[i].shape[a];
      if (extent->factor == 1 && extent->count == 1 && extent->symbol[0] == s->tells)
        return c->out[i].shape[a];
    }
  return -1;
}

static void run_reference(call *c) {
  const bb_plan_step *s = c->step;
  bb_misc_kernel *kernel = bb_misc_find(s->misc);
  if (!kernel) bb_fail(c->lab->inner, BB_ERROR_UNSUPPORTED, "no reference kernel");
  give_operands(c);
  kernel(c->lab->inner, c->arena, s->misc, s->nin, c->in, s->nout, c->out);
  if (s->tells != BB_NONE) note_told(c, told_by(c));
  for (uint32_t i = 0; i < s->nout; i++) store_result(c, i);
}

/* Its program is read in the first run: the lab's context is the only one that may use it. */
static void run_interpreted(call *c, bb_context *inner) {
  const bb_interpreter *interpreter = c->lab->model->interpreter;
  const bb_plan_step *s = c->step;
  bb_interpreted **program = &c->lab->program[s - c->lab->model->plan->step];
  if (!*program) *program = interpreter->open(inner, s->program);
  c->arena = bb_scratch(inner);
  give_operands(c);
  interpreter->run(*program, c->arena, c->symbol, c->in, c->out);
  for (uint32_t i = 0; i < s->nout; i++) store_result(c, i);
  bb_scratch_end(c->arena);
}

static void run_body(bb_context *inner, void *argument) {
  call *c = argument;
  if (c->step->program) {
    run_interpreted(c, inner);
    return;
  }
  c->arena = bb_scratch(inner);
  if (!run_native(c)) run_reference(c);
  bb_scratch_end(c->arena);
}

static _Noreturn void refuse(const call *c, bb_context *ctx, bb_status status) {
  const bb_plan_step *step = c->step;
  const char *why = bb_context_message(c->lab->inner);
  if (status == BB_ERROR_MEMORY) bb_fail(ctx, status, "%s: out of memory", step->name);
  if (step->program) bb_fail(ctx, status, "%s: %s", step->name, why);
  bb_fail(ctx, status, "misc node \"%s\": %s: %s", step->name, step->misc->op, why);
}

void bb_lab_run(bb_lab *lab, bb_context *ctx, const bb_lab_call *what) {
  const bb_model *m = lab->model;
  call c = {.lab = lab,
            .step = &m->plan->step[what->step],
            .tensor = m->plan->tensor,
            .symbol = what->symbol,
            .data = what->data,
            .class = m->class,
            .queue = what->queue};
  bb_status status = bb_protect(lab->inner, run_body, &c);
  if (status != BB_OK) refuse(&c, ctx, status);
}
