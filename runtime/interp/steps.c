/* steps.c - plans: candidates and the misc nodes between them, in order. */
#include "../model/solve.h"
#include "machine.h"

#include <string.h>

/* --- misc nodes --- */

/* The extent of an axis; -1: one of its symbols is not known. */
static int64_t extent_of(const bb_run *run, const bb_extent *extent) {
  for (uint32_t k = 0; k < extent->count; k++)
    if (!run->options->symbol || run->options->symbol[extent->symbol[k]] < 0) return -1;
  return bb_extent_bind((bb_program *)run->program, extent, run->options->symbol);
}

/* The shape of one operand or result: the model's where it is known, else one axis for each dim.  Of a result the node may
 * have yet to tell what is not known. */
static void shape_of_port(bb_run *run, const char *place, const bb_misc_port *port, bool told,
                          bb_misc_value *value) {
  if (port->rank > 8) bb_fail(run->ctx, BB_ERROR_UNSUPPORTED, "%s: more than 8 axes", place);
  value->dtype = port->dtype;
  value->rank = port->rank;
  for (uint32_t i = 0; i < port->rank; i++) {
    value->shape[i] = extent_of(run, port->shape[i]);
    if (value->shape[i] < 0 && !told)
      bb_fail(run->ctx, BB_ERROR_ARGUMENT, "%s: an extent is not known", place);
  }
}

static size_t count_of(bb_run *run, const bb_misc_value *value) {
  size_t count = 1;
  bool empty = false;
  for (uint32_t i = 0; i < value->rank; i++) {
    empty |= value->shape[i] == 0;
    if (value->shape[i] < 0 || __builtin_mul_overflow(count, (size_t)value->shape[i], &count))
      bb_fail(run->ctx, BB_ERROR_MEMORY, "an operand of a misc node is too large to hold");
  }
  return empty ? 0 : count;
}

/* A port made from a type, for hand-made programs: its levels in order. */
static bb_misc_port port_of_type(bb_run *run, const bb_type *type) {
  bb_dim *axis = BB_NEW(run->scratch, bb_dim, type->rank);
  const bb_extent **shape = BB_NEW(run->scratch, const bb_extent *, type->rank);
  for (uint32_t i = 0; i < type->rank; i++) {
    axis[i] = type->level[i].dim;
    shape[i] = run->program->dim[axis[i]].extent;
  }
  return (bb_misc_port){.dtype = type->item.dtype,
                        .rank = type->rank,
                        .shape = shape,
                        .axes = type->rank,
                        .axis = axis};
}

static bb_misc_port port_of_tensor(const bb_tensor *tensor) {
  return (bb_misc_port){.dtype = tensor->dtype,
                        .rank = tensor->rank,
                        .shape = tensor->shape,
                        .axes = tensor->axes,
                        .axis = tensor->axis};
}

typedef struct call {
  bb_run *run;
  const bb_misc *misc;
  const char *place;
  uint32_t nin, nout;
  bb_misc_value *in, *out;
} call;

static bool is_absent(uint32_t count, const bb_misc_port *port, uint32_t i) {
  return port && i < count && port[i].absent;
}

/* Ports of the model, absent ones included, for `present` operands of the node. */
static uint32_t ports_of(bb_run *run, const char *place, uint32_t count, const bb_misc_port *port,
                         uint32_t present) {
  if (!port) return present;
  uint32_t there = 0;
  for (uint32_t i = 0; i < count; i++) there += !port[i].absent;
  if (there != present)
    bb_fail(run->ctx, BB_ERROR_INTERNAL, "%s: ports and operands differ in number", place);
  return count;
}

static call begin_call(bb_run *run, const bb_misc *misc, const char *place, uint32_t nin,
                       uint32_t nout) {
  call c = {.run = run, .misc = misc, .place = place};
  c.nin = ports_of(run, place, misc->nin, misc->in, nin);
  c.nout = ports_of(run, place, misc->nout, misc->out, nout);
  c.in = BB_NEW(run->scratch, bb_misc_value, c.nin);
  c.out = BB_NEW(run->scratch, bb_misc_value, c.nout);
  return c;
}

static void give_operand(call *c, uint32_t i, const bb_misc_port *port, double *data,
                         size_t count) {
  shape_of_port(c->run, c->place, port, false, &c->in[i]);
  if (count_of(c->run, &c->in[i]) != count)
    bb_fail(c->run->ctx, BB_ERROR_INTERNAL, "%s: operand %u has %zu elements, its shape wants %zu",
            c->place, i, count, count_of(c->run, &c->in[i]));
  c->in[i].data = data;
}

typedef struct kernel_call {
  bb_misc_kernel *kernel;
  call *call;
} kernel_call;

static void run_kernel(bb_context *ctx, void *argument) {
  const kernel_call *k = argument;
  const call *c = k->call;
  k->kernel(ctx, c->run->scratch, c->misc, c->nin, c->in, c->nout, c->out);
}

/* What the model says of result i: kernels that move data only go by it. */
static void expect_result(call *c, uint32_t i, const bb_misc_port *port) {
  bool told = c->run->options->told && bb_misc_tells(c->run->program, c->misc) != BB_NONE;
  shape_of_port(c->run, c->place, port, told, &c->out[i]);
  c->out[i].data = NULL;
}

/* Runs the kernel; its messages get the node's place in front. */
static void run_call(call *c) {
  bb_context *ctx = c->run->ctx;
  kernel_call k = {bb_misc_find(c->misc), c};
  if (!k.kernel)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%s: no reference kernel for %s%s%s", c->place,
            c->misc->domain, c->misc->domain[0] ? "." : "", c->misc->op);
  bb_status status = bb_protect(ctx, run_kernel, &k);
  if (status == BB_ERROR_MEMORY) bb_fail(ctx, status, "%s: out of memory", c->place);
  if (status != BB_OK) {
    const char *why =
        bb_arena_text(c->run->scratch, bb_context_message(ctx), strlen(bb_context_message(ctx)));
    bb_fail(ctx, status, "%s: %s: %s", c->place, c->misc->op, why);
  }
}

/* Puts the extent that the node tells beside those that are known, with what follows from it. */
static void note_told(call *c) {
  bb_run *run = c->run;
  uint32_t symbol = bb_misc_tells(run->program, c->misc);
  if (!run->options->told || symbol == BB_NONE) return;
  int64_t *known = run->options->told;
  for (uint32_t i = 0; i < c->nout; i++)
    for (uint32_t a = 0; !c->misc->out[i].absent && a < c->out[i].rank; a++)
      if (a < c->misc->out[i].rank)
        bb_extent_solve(c->misc->out[i].shape[a], c->out[i].shape[a], known);
  int64_t most = extent_of(run, run->program->most[symbol]);
  if (known[symbol] < 0 || known[symbol] > most)
    bb_fail(run->ctx, BB_ERROR_INTERNAL, "%s: it gives %lld elements, of at most %lld", c->place,
            (long long)known[symbol], (long long)most);
  bb_derive_symbols((bb_program *)run->program, run->program->symbols, known, run->scratch);
  bb_run_bind(run);
}

static void check_result(const call *c, uint32_t i, const bb_misc_port *port, size_t count) {
  bb_misc_value want = {0};
  shape_of_port(c->run, c->place, port, false, &want);
  const bb_misc_value *got = &c->out[i];
  bool same = got->data && got->rank == want.rank && count_of(c->run, got) == count;
  for (uint32_t k = 0; same && k < want.rank; k++) same = got->shape[k] == want.shape[k];
  if (!same)
    bb_fail(c->run->ctx, BB_ERROR_INPUT,
            "%s: result %u of %s has another shape than the model says", c->place, i, c->misc->op);
}

static void round_result(const call *c, uint32_t i, bb_dtype dtype, size_t count) {
  if (c->run->options->float64 && bb_dtype_is_float(dtype)) return;
  for (size_t k = 0; k < count; k++) c->out[i].data[k] = bb_round_to(dtype, c->out[i].data[k]);
}

void bb_run_misc(bb_run *run, const bb_node *node, bb_instance_node *at) {
  const bb_misc *misc = node->misc;
  const char *place = bb_run_place(run, node);
  if (!misc) bb_fail(run->ctx, BB_ERROR_INTERNAL, "%s: a misc node without operator", place);
  call c = begin_call(run, misc, place, node->nin, node->nout);
  for (uint32_t i = 0, k = 0; i < c.nin; i++) {
    if (is_absent(misc->nin, misc->in, i)) continue;
    const bb_datum *value = at->in[k++];
    bb_misc_port port = misc->in ? misc->in[i] : port_of_type(run, value->type);
    size_t count;
    double *data = bb_value_as_dense(run, node, value, port.axes, port.axis, &count);
    bb_count_read(run, value);
    give_operand(&c, i, &port, data, count);
  }
  bb_misc_port *result = BB_NEW(run->scratch, bb_misc_port, c.nout);
  for (uint32_t i = 0, k = 0; i < c.nout; i++) {
    if (is_absent(misc->nout, misc->out, i)) continue;
    result[i] = misc->out ? misc->out[i] : port_of_type(run, at->out[k].type);
    expect_result(&c, i, &result[i]);
    k++;
  }
  run_call(&c);
  for (uint32_t i = 0, k = 0; i < c.nout; i++) {
    if (is_absent(misc->nout, misc->out, i)) continue;
    bb_datum *value = &at->out[k++];
    bb_misc_port port = result[i];
    size_t count = 1;
    for (uint32_t a = 0; a < port.axes; a++) count *= (size_t)bb_run_extent(run, port.axis[a]);
    check_result(&c, i, &port, count);
    round_result(&c, i, port.dtype, count);
    bb_dense_as_value(run, node, c.out[i].data, port.axes, port.axis, value);
    bb_count_written(run, value);
  }
}

/* --- plans --- */

static void run_misc_step(bb_run *run, const bb_step *step) {
  const bb_misc *misc = step->misc;
  const char *place =
      bb_arena_printf(run->scratch, "misc node \"%s\"", step->name ? step->name : "");
  call c = begin_call(run, misc, place, step->nin, step->nout);
  for (uint32_t i = 0, k = 0; i < c.nin; i++) {
    if (is_absent(misc->nin, misc->in, i)) continue;
    const bb_access *access = step->in[k++];
    bb_misc_port port = {0};
    if (misc->in)
      port = misc->in[i];
    else if (access->count == 1 && access->piece[0].source < run->program->tensors)
      port = port_of_tensor(&run->program->tensor[access->piece[0].source]);
    size_t count;
    double *data = bb_read_access(run, NULL, access, port.axes, port.axis, &count);
    give_operand(&c, i, &port, data, count);
  }
  bb_misc_port *result = BB_NEW(run->scratch, bb_misc_port, c.nout);
  for (uint32_t i = 0, k = 0; i < c.nout; i++) {
    if (is_absent(misc->nout, misc->out, i)) continue;
    result[i] = misc->out ? misc->out[i] : port_of_tensor(&run->program->tensor[step->out[k]]);
    expect_result(&c, i, &result[i]);
    k++;
  }
  run_call(&c);
  note_told(&c);
  for (uint32_t i = 0, k = 0; i < c.nout; i++) {
    if (is_absent(misc->nout, misc->out, i)) continue;
    uint32_t tensor = step->out[k++];
    const bb_tensor *t = &run->program->tensor[tensor];
    bb_misc_port port = result[i];
    bb_run_make_tensor(run, tensor);
    size_t count = run->tensor[tensor].count;
    check_result(&c, i, &port, count);
    round_result(&c, i, t->dtype, count);
    if (count) memcpy(run->tensor[tensor].data, c.out[i].data, count * sizeof(double));
    if (run->counts) run->counts->buffered_written += (double)count * bb_dtype_bytes(t->dtype);
  }
}

static void forget(bb_run *run, bb_tensor_role role) {
  for (uint32_t i = 0; i < run->program->tensors; i++)
    if (run->program->tensor[i].role == role) run->tensor[i] = (bb_interp_tensor){NULL, 0};
}

void bb_interp_graph(const bb_program *program, const bb_graph *graph,
                     const bb_interp_options *options, bb_interp_tensor *tensor, bb_arena *arena,
                     bb_interp_counts *counts) {
  bb_run run;
  bb_run_begin(&run, program, options, tensor, arena, counts);
  /* What an earlier run left must not pass for a result of this one. */
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    const bb_node *node = bb_node_get(graph, graph->output[i]);
    if (node->tensor < program->tensors) tensor[node->tensor] = (bb_interp_tensor){NULL, 0};
  }
  bb_run_graph(&run, graph);
  bb_scratch_end(run.scratch);
}

/* Every step in a run of its own, so that its memory is released after it. */
void bb_interp_step(const bb_program *program, const bb_step *step,
                    const bb_interp_options *options, bb_interp_tensor *tensor, bb_arena *arena,
                    bb_interp_counts *counts) {
  bb_run run;
  bb_run_begin(&run, program, options, tensor, arena, counts);
  if (step->candidate == BB_NONE) {
    run.stack = BB_NEW(run.scratch, bb_stack, 1);
    run.stack[0].arena = run.scratch;
    run.depths = 1;
    run_misc_step(&run, step);
  } else {
    bb_run_graph(&run, bb_candidate_runs(&program->candidate[step->candidate]));
  }
  bb_scratch_end(run.scratch);
}

void bb_interp_program(const bb_program *program, const bb_interp_options *options,
                       bb_interp_tensor *tensor, bb_arena *arena, bb_interp_counts *counts) {
  bb_run run = {.program = program, .tensor = tensor};
  forget(&run, BB_TENSOR_LOCAL);
  forget(&run, BB_TENSOR_OUTPUT);
  if (program->stage < BB_STAGE_PARTITION) {
    if (!program->root)
      bb_fail(program->ctx, BB_ERROR_ARGUMENT, "the program has no block form yet");
    bb_interp_graph(program, program->root, options, tensor, arena, counts);
    return;
  }
  for (uint32_t i = 0; i < program->steps; i++)
    bb_interp_step(program, &program->step[i], options, tensor, arena, counts);
}
