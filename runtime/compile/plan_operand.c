/* plan_operand.c - steps of a plan that are reference kernels: which parts of which arrays their operands
 * are.
 */
#include "plan_maker.h"

static const bb_expr *stride_expr(bb_maker *m, uint32_t tensor, uint32_t axis) {
  const bb_tensor *t = &m->program->tensor[tensor];
  const bb_room *room = &m->room[tensor];
  const bb_expr *product = bb_expr_const(m->program, BB_I64, 1);
  for (uint32_t i = axis + 1; i < t->axes; i++) {
    const bb_extent *e = m->program->dim[t->axis[i]].extent;
    if (room->given && room->axis == i) {
      const bb_expr *held = bb_expr_arg(m->program, BB_I64, m->plan->extents + room->number);
      product = bb_expr_make(m->program, BB_X_MUL, product, held, NULL);
      continue;
    }
    product = bb_expr_make(m->program, BB_X_MUL, product,
                           bb_expr_const(m->program, BB_I64, (double)e->factor), NULL);
    for (uint32_t k = 0; k < e->count; k++)
      product = bb_expr_make(m->program, BB_X_MUL, product,
                             bb_expr_symbol(m->program, e->symbol[k]), NULL);
  }
  return product;
}

static const bb_expr *scaled(bb_maker *m, const bb_expr *e, int64_t by) {
  return bb_expr_make(m->program, BB_X_MUL, e, bb_expr_const(m->program, BB_I64, (double)by), NULL);
}

/* The k-th index over a dim belongs to the k-th axis over it. */
static void make_piece(bb_maker *m, const bb_misc_port *port, const bb_piece *from,
                       bb_plan_piece *piece) {
  const bb_expr *offset = bb_expr_const(m->program, BB_I64, 0);
  bb_formula *stride = BB_NEW(m->arena, bb_formula, port->axes + 1);
  bb_formula none = bb_formula_of(m->program, m->arena, offset);
  bool *taken = BB_NEW(m->arena, bool, port->axes + 1);
  for (uint32_t i = 0; i < port->axes; i++) stride[i] = none;
  for (uint32_t i = 0; i < from->rank; i++) {
    const bb_index *index = &from->index[i];
    const bb_expr *step = stride_expr(m, from->source, i);
    bool whole = index->kind == BB_INDEX_DIM;
    if (!whole)
      offset = bb_expr_make(m->program, BB_X_ADD, offset, scaled(m, step, index->start), NULL);
    for (uint32_t k = 0; k < bb_index_dims(index); k++) {
      uint32_t axis = 0;
      bb_dim dim = bb_index_dim(index, k);
      while (axis < port->axes && (taken[axis] || port->axis[axis] != dim)) axis++;
      if (axis == port->axes)
        bb_fail(m->ctx, BB_ERROR_UNSUPPORTED, "an operand read along a dim that it lacks");
      taken[axis] = true;
      stride[axis] = bb_formula_of(m->program, m->arena,
                                   whole ? step : scaled(m, step, k ? index->by : index->step));
    }
  }
  uint32_t tensor = bb_maker_tensor(m, from->source);
  bb_maker_note_used(m, tensor);
  *piece = (bb_plan_piece){.tensor = tensor,
                           .offset = bb_formula_of(m->program, m->arena, offset),
                           .stride = stride,
                           .first = from->first,
                           .length = from->length};
}

bool bb_operand_is_whole(const bb_program *program, const bb_misc_port *port,
                         const bb_access *access) {
  const bb_piece *piece = &access->piece[0];
  const bb_tensor *t = &program->tensor[piece->source];
  if (access->count != 1 || access->joined != BB_NO_DIM || port->axes != t->axes) return false;
  for (uint32_t i = 0; i < t->axes; i++)
    if (piece->index[i].kind != BB_INDEX_DIM || piece->index[i].dim != port->axis[i] ||
        program->dim[t->axis[i]].extent != program->dim[port->axis[i]].extent)
      return false;
  return true;
}

bool bb_step_is_renaming(const bb_program *program, const bb_step *step) {
  if (step->candidate != BB_NONE || !bb_misc_is_copy(step->misc) || !step->misc->in) return false;
  return program->tensor[step->in[0]->piece[0].source].role == BB_TENSOR_LOCAL &&
         program->tensor[step->out[0]].role == BB_TENSOR_LOCAL &&
         bb_operand_is_whole(program, step->misc->in, step->in[0]);
}

static bb_misc_port port_of(const bb_maker *m, uint32_t tensor) {
  const bb_tensor *t = &m->program->tensor[tensor];
  return (bb_misc_port){
      .dtype = t->dtype, .rank = t->rank, .shape = t->shape, .axes = t->axes, .axis = t->axis};
}

static void make_operand(bb_maker *m, const bb_misc_port *port, const bb_access *access,
                         bb_plan_operand *o) {
  *o = (bb_plan_operand){.whole = bb_operand_is_whole(m->program, port, access),
                         .dtype = port->dtype,
                         .rank = port->rank,
                         .shape = port->shape,
                         .axes = port->axes,
                         .extent = bb_maker_extents(m, port->axes, port->axis),
                         .joined = BB_NONE,
                         .pieces = access->count};
  if (port->rank > 8 || port->axes > BB_PLAN_RANK)
    bb_fail(m->ctx, BB_ERROR_UNSUPPORTED, "an operand of more than 8 axes");
  for (uint32_t i = 0; i < port->axes && access->joined != BB_NO_DIM; i++)
    if (port->axis[i] == access->joined) o->joined = i;
  bb_plan_piece *piece = BB_NEW(m->arena, bb_plan_piece, access->count + 1);
  for (uint32_t i = 0; i < access->count; i++) {
    make_piece(m, port, &access->piece[i], &piece[i]);
    bool pack = o->joined != BB_NONE && !piece[i].length;
    if (pack) piece[i].length = 1;
  }
  o->piece = piece;
}

static void make_result(bb_maker *m, const bb_misc_port *port, uint32_t tensor,
                        bb_plan_operand *o) {
  const bb_tensor *t = &m->program->tensor[tensor];
  bb_index *index = BB_NEW(m->arena, bb_index, t->axes + 1);
  for (uint32_t i = 0; i < t->axes; i++) index[i] = (bb_index){BB_INDEX_DIM, t->axis[i], 0, 1};
  bb_piece piece = {.source = tensor, .rank = t->axes, .index = index};
  bb_misc_port with = *port;
  with.axes = t->axes;
  with.axis = t->axis;
  make_operand(m, &with, &(bb_access){BB_NO_DIM, 1, &piece}, o);
}

void bb_maker_whole(bb_maker *m, uint32_t tensor, bb_plan_operand *operand) {
  bb_misc_port port = port_of(m, tensor);
  const bb_extent **count = BB_NEW(m->arena, const bb_extent *, 1);
  *count = bb_extent_number(m->program, 1);
  for (uint32_t i = 0; i < port.axes; i++)
    *count = bb_extent_multiply(m->program, *count, m->program->dim[port.axis[i]].extent);
  port.rank = 1;
  port.shape = count;
  make_result(m, &port, tensor, operand);
}

void bb_maker_misc(bb_maker *m, const bb_step *from, bb_plan_step *step) {
  const bb_misc *misc = from->misc;
  bb_misc *bare = BB_NEW(m->arena, bb_misc, 1);
  *bare = *misc;
  bare->in = bare->out = NULL;
  bare->nin = bare->nout = 0;
  step->misc = bare;
  step->kernel = BB_NONE;
  step->tells = bb_misc_tells(m->program, misc);
  step->name = from->name ? from->name : "";
  step->nodes = 1;
  step->nin = misc->in ? misc->nin : from->nin;
  step->nout = misc->out ? misc->nout : from->nout;
  bb_plan_operand *in = BB_NEW(m->arena, bb_plan_operand, step->nin + 1);
  bb_plan_operand *out = BB_NEW(m->arena, bb_plan_operand, step->nout + 1);
  for (uint32_t i = 0, k = 0; i < step->nin; i++) {
    in[i].absent = misc->in && misc->in[i].absent;
    if (in[i].absent) continue;
    const bb_access *access = from->in[k++];
    bb_misc_port port = misc->in ? misc->in[i] : port_of(m, access->piece[0].source);
    make_operand(m, &port, access, &in[i]);
  }
  for (uint32_t i = 0, k = 0; i < step->nout; i++) {
    out[i].absent = misc->out && misc->out[i].absent;
    if (out[i].absent) continue;
    uint32_t tensor = from->out[k++];
    bb_misc_port port = misc->out ? misc->out[i] : port_of(m, tensor);
    make_result(m, &port, tensor, &out[i]);
  }
  step->in = in;
  step->out = out;
}
