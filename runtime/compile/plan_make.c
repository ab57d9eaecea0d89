/* plan_make.c - from a fused program to a plan: its arrays, its steps, and the source of its kernels.
 *
 * Names of the model go into the plan as text and nowhere else: kernels know arrays by number.
 */
#include "plan_make.h"

#include "../../fuse/fuse.h"
#include "../../lower/constant.h"
#include "../../lower/emit_c.h"

#include <string.h>

typedef struct maker {
  bb_program *program;
  bb_context *ctx;
  bb_arena *arena;
  const bb_draft_options *options;
  bb_plan *plan;
  bb_buffer refused;
  uint32_t capacity, step_capacity, tensor_capacity;
  bb_buffer *source;            /* by kernel, under one name for all, so that equal ones are seen */
  const bb_tile_program **tile; /* by kernel */
  bool *used;                   /* by tensor */
  bb_room *room;                /* by tensor */
} maker;

/* --- run-time extents --- */

/* An extent that is no product of symbols is a symbol whose name says what it is. */
static bb_formula derived(maker *m, const char *name) {
  const char *text = name, *end = name + strlen(name), *error;
  const bb_expr *e = bb_expr_parse(m->program, &text, end, NULL, NULL, &error);
  if (!e || text != end || e->op == BB_X_SYMBOL) return (bb_formula){0};
  return bb_formula_of(m->program, m->arena, e);
}

/* Parsing a name may add a symbol: only those that the program had are the plan's, and then the rooms
 * of its caches. */
static void make_symbols(maker *m) {
  bb_plan *plan = m->plan;
  bb_plan_cache *cache = BB_NEW(m->arena, bb_plan_cache, m->program->steps + 1);
  plan->caches = bb_caches_find(m->program, m->arena, cache, &m->room);
  plan->cache = cache;
  plan->extents = m->program->symbols;
  plan->symbols = plan->extents + 2 * plan->caches;
  plan->symbol = BB_NEW(m->arena, const char *, plan->symbols + 1);
  bb_formula *formula = BB_NEW(m->arena, bb_formula, plan->symbols + 1);
  for (uint32_t i = 0; i < plan->extents; i++) {
    plan->symbol[i] = m->program->symbol[i];
    formula[i] = derived(m, plan->symbol[i]);
    for (uint32_t k = 0; k < formula[i].count; k++)
      if (formula[i].term[k].op == BB_T_VARIABLE && formula[i].term[k].number >= plan->extents)
        formula[i] = (bb_formula){0};
  }
  plan->derived = formula;
}

static bool is_known(uint32_t rank, const bb_extent *const *shape) {
  for (uint32_t i = 0; i < rank; i++)
    if (shape[i]->count) return false;
  return true;
}

/* --- arrays --- */

static const bb_extent *const *extents_of(maker *m, uint32_t axes, const bb_dim *axis) {
  const bb_extent **extent = BB_NEW(m->arena, const bb_extent *, axes + 1);
  for (uint32_t i = 0; i < axes; i++) extent[i] = m->program->dim[axis[i]].extent;
  return extent;
}

/* Callers see the model's shapes; other arrays have those of their dims. */
static void make_tensors(maker *m) {
  bb_plan *plan = m->plan;
  plan->tensors = m->program->tensors;
  m->tensor_capacity = plan->tensors + 1;
  plan->tensor = BB_NEW(m->arena, bb_plan_tensor, m->tensor_capacity);
  m->used = BB_NEW(m->arena, bool, plan->tensors + 1);
  for (uint32_t i = 0; i < plan->tensors; i++) {
    const bb_tensor *from = &m->program->tensor[i];
    bb_plan_tensor *t = &plan->tensor[i];
    bool shown = from->role == BB_TENSOR_INPUT || from->role == BB_TENSOR_OUTPUT;
    *t = (bb_plan_tensor){
        .name = shown ? from->name : NULL, .dtype = from->dtype, .role = from->role};
    t->rank = shown ? from->rank : from->axes;
    t->shape = shown ? from->shape : extents_of(m, from->axes, from->axis);
    if (t->rank > BB_PLAN_RANK)
      bb_fail(m->ctx, BB_ERROR_UNSUPPORTED, "array \"%s\" has more than %d axes", from->name,
              BB_PLAN_RANK);
  }
}

/* Constants that something reads, one after the other; others are left out. */
static void place_constants(maker *m, bb_draft *draft) {
  const void **data = BB_NEW(m->arena, const void *, m->plan->tensors + 1);
  uint64_t at = 0;
  for (uint32_t i = 0; i < m->program->tensors; i++) {
    bb_plan_tensor *t = &m->plan->tensor[i];
    const bb_tensor *from = &m->program->tensor[i];
    if (t->role != BB_TENSOR_CONSTANT) continue;
    if (!m->used[i]) {
      t->role = BB_TENSOR_LOCAL;
      continue;
    }
    if (!from->data && from->bytes)
      bb_fail(m->ctx, BB_ERROR_INPUT, "constant \"%s\" has no data", from->name);
    t->offset = at;
    t->bytes = from->bytes;
    data[i] = from->data;
    at += (t->bytes + 63) / 64 * 64;
  }
  m->plan->data_bytes = at;
  draft->data = data;
}

/* It is there when the model is loaded, or may be made then. */
static bool is_fixed(const bb_plan *plan, uint32_t tensor, bool written) {
  const bb_plan_tensor *t = &plan->tensor[tensor];
  if (!is_known(t->rank, t->shape)) return false;
  return written ? t->role == BB_TENSOR_LOCAL : t->role == BB_TENSOR_CONSTANT || t->once;
}

/* --- kernels --- */

typedef struct lowering {
  maker *m;
  const bb_graph *graph;
  bool once;
  const bb_kernel *kernel;
  bb_buffer text;
  bb_formula *offset, operations;
  bb_constant_parts parts;
  bb_buffer *part_text;
  uint32_t *tensor; /* by view */
} lowering;

static void check(bb_context *ctx, const maker *m, const bb_tile_program *tile) {
  const char *broken = bb_tile_verify(tile, m->arena);
  if (broken) bb_fail(ctx, BB_ERROR_INTERNAL, "%s", broken);
}

/* What the kernel makes of arrays that are there at load, as kernels of their own. */
static void take_constants(lowering *l) {
  maker *m = l->m;
  bb_tile_program *tile = l->kernel->tile;
  bool *constant = BB_NEW(m->arena, bool, tile->views + 1);
  for (uint32_t i = 0; i < tile->views; i++) {
    uint32_t tensor = l->kernel->argument[i].tensor;
    constant[i] =
        !l->once && tensor != BB_NONE && !tile->view[i].written && is_fixed(m->plan, tensor, false);
  }
  l->parts = (bb_constant_parts){.arena = m->arena, .constant = constant, .views = tile->views};
  bb_part_constants(tile, &l->parts);
  bb_panel_constants(tile, &l->parts);
  l->part_text = BB_NEW(m->arena, bb_buffer, l->parts.count + 1);
  for (uint32_t i = 0; i < l->parts.count; i++) {
    check(m->ctx, m, l->parts.part[i].tile);
    l->part_text[i].arena = m->arena;
    bb_emit_c(&l->part_text[i], l->parts.part[i].tile, "k", NULL);
  }
}

static void lower(bb_context *ctx, void *argument) {
  lowering *l = argument;
  maker *m = l->m;
  bb_schedule_options options = {.block = m->options->block, .room = m->room};
  l->kernel = bb_schedule(m->program, l->graph, "k", &options);
  const bb_tile_program *tile = l->kernel->tile;
  check(ctx, m, tile);
  take_constants(l);
  check(ctx, m, tile);
  bb_emit_c(&l->text, tile, "k", NULL);
  l->offset = BB_NEW(m->arena, bb_formula, tile->views + 1);
  l->tensor = BB_NEW(m->arena, uint32_t, tile->views + 1);
  for (uint32_t i = 0; i < l->parts.views; i++) {
    l->tensor[i] = l->kernel->argument[i].tensor;
    if (l->tensor[i] != BB_NONE)
      l->offset[i] = bb_formula_of(m->program, m->arena, l->kernel->argument[i].offset);
  }
  for (uint32_t i = l->parts.views; i < tile->views; i++)
    l->offset[i] = bb_formula_of(m->program, m->arena, bb_expr_const(m->program, BB_I64, 0));
  l->operations = bb_operations_of(tile, m->arena);
}

static uint32_t kernel_number(maker *m, const bb_buffer *text, const bb_tile_program *tile) {
  bb_plan *plan = m->plan;
  for (uint32_t i = 0; i < plan->kernels; i++)
    if (m->source[i].length == text->length &&
        memcmp(m->source[i].data, text->data, text->length) == 0)
      return i;
  uint32_t capacity = m->capacity;
  BB_GROW(m->arena, m->source, capacity, plan->kernels + 1u);
  BB_GROW(m->arena, m->tile, m->capacity, plan->kernels + 1u);
  m->source[plan->kernels] = *text;
  m->tile[plan->kernels] = tile;
  return plan->kernels++;
}

static bb_plan_step *add_step(maker *m) {
  BB_GROW(m->arena, m->plan->step, m->step_capacity, m->plan->steps + 1u);
  return &m->plan->step[m->plan->steps++];
}

static void make_extents(maker *m, const bb_kernel *kernel, bb_plan_step *step) {
  step->extents = kernel->tile->extents;
  const bb_extent **extent = BB_NEW(m->arena, const bb_extent *, step->extents + 1);
  for (uint32_t i = 0; i < step->extents; i++) {
    extent[i] = kernel->extent[i];
    if (extent[i]) continue;
    uint32_t *symbol = BB_NEW(m->arena, uint32_t, 1);
    *symbol = kernel->symbol[i];
    if (*symbol >= BB_ROOM) *symbol += m->plan->extents - BB_ROOM;
    bb_extent *own = BB_NEW(m->arena, bb_extent, 1);
    *own = (bb_extent){.factor = 1, .count = 1, .symbol = symbol};
    extent[i] = own;
  }
  step->extent = extent;
}

static void note_used(maker *m, uint32_t tensor) {
  if (tensor < m->program->tensors) m->used[tensor] = true;
}

static void make_arguments(maker *m, const lowering *l, bb_plan_step *step) {
  const bb_kernel *kernel = l->kernel;
  step->arguments = kernel->tile->views;
  bb_plan_argument *argument = BB_NEW(m->arena, bb_plan_argument, step->arguments + 1);
  for (uint32_t i = 0; i < step->arguments; i++) {
    argument[i] = (bb_plan_argument){l->tensor[i], l->offset[i], kernel->tile->view[i].written};
    note_used(m, l->tensor[i]);
  }
  step->argument = argument;
}

/* --- parts of kernels that run at load --- */

static bool same_formula(const bb_formula *a, const bb_formula *b) {
  bool same = a->count == b->count;
  for (uint32_t i = 0; same && i < a->count; i++)
    same = a->term[i].op == b->term[i].op && a->term[i].number == b->term[i].number;
  return same;
}

/* A step before this one that makes the same; BB_NONE: there is none. */
static uint32_t made_before(const maker *m, const bb_plan_step *like) {
  for (uint32_t i = 0; i < m->plan->steps; i++) {
    const bb_plan_step *s = &m->plan->step[i];
    bool same = s->once && s->kernel == like->kernel && s->arguments == like->arguments;
    for (uint32_t k = 0; same && k + 1 < like->arguments; k++)
      same = s->argument[k].tensor == like->argument[k].tensor &&
             same_formula(&s->argument[k].offset, &like->argument[k].offset);
    if (same && like->kernel != BB_NONE) return i;
  }
  return BB_NONE;
}

static uint32_t add_tensor(maker *m, const bb_tile_view *view) {
  bb_plan *plan = m->plan;
  BB_GROW(m->arena, plan->tensor, m->tensor_capacity, plan->tensors + 1u);
  const bb_extent **shape = BB_NEW(m->arena, const bb_extent *, view->rank + 1);
  for (uint32_t i = 0; i < view->rank; i++)
    shape[i] = bb_extent_number(m->program, (int64_t)view->extent[i]->number);
  plan->tensor[plan->tensors] = (bb_plan_tensor){.dtype = view->dtype,
                                                 .role = BB_TENSOR_LOCAL,
                                                 .once = true,
                                                 .rank = view->rank,
                                                 .shape = shape};
  return plan->tensors++;
}

static void make_part(maker *m, lowering *l, uint32_t number, const char *name) {
  const bb_constant_part *part = &l->parts.part[number];
  bb_plan_step step = {.once = true, .listing = "", .arguments = part->tile->views};
  step.name = bb_arena_printf(m->arena, "%s.%u", name, number);
  step.kernel = kernel_number(m, &l->part_text[number], part->tile);
  step.operations = bb_operations_of(part->tile, m->arena);
  bb_plan_argument *argument = BB_NEW(m->arena, bb_plan_argument, step.arguments + 1);
  uint32_t last = step.arguments - 1;
  for (uint32_t i = 0; i < last; i++) {
    argument[i] = (bb_plan_argument){l->tensor[part->view[i]], l->offset[part->view[i]], false};
    note_used(m, argument[i].tensor);
  }
  step.argument = argument;
  uint32_t before = made_before(m, &step);
  if (before == BB_NONE) {
    argument[last] =
        (bb_plan_argument){add_tensor(m, &part->tile->view[last]), l->offset[part->made], true};
    *add_step(m) = step;
  } else {
    argument[last] = m->plan->step[before].argument[last];
  }
  l->tensor[part->made] = argument[last].tensor;
}

static uint32_t count_nodes(const bb_graph *graph) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    count += node->kind == BB_NODE_FUNC || node->kind == BB_NODE_REDUCE;
    if (node->kind == BB_NODE_MAP) count += count_nodes(node->inner);
  }
  return count;
}

static void make_kernel(maker *m, const bb_candidate *candidate) {
  bb_context *ctx = m->ctx;
  lowering l = {.m = m,
                .graph = bb_candidate_runs(candidate),
                .once = candidate->once,
                .text = {.arena = m->arena}};
  bb_plan_step made = {0}, *step = &made;
  step->name = candidate->name;
  step->once = candidate->once;
  step->nodes = count_nodes(l.graph);
  bb_status status = bb_protect(ctx, lower, &l);
  if (status == BB_ERROR_UNSUPPORTED) {
    bb_put(&m->refused, "%s%s: %s", m->refused.length ? "\n" : "", candidate->name,
           bb_context_message(ctx));
    ctx->status = BB_OK;
    step->kernel = BB_NONE;
    *add_step(m) = made;
    return;
  }
  if (status != BB_OK) {
    const char *why = bb_context_message(ctx);
    bb_fail(ctx, status, "%s: %s", candidate->name, bb_arena_text(m->arena, why, strlen(why)));
  }
  bb_buffer listing = {.arena = m->arena};
  bb_listing_print(&listing, m->program, l.graph);
  step->listing = listing.data ? listing.data : "";
  for (uint32_t i = 0; i < l.parts.count; i++) make_part(m, &l, i, candidate->name);
  step->kernel = kernel_number(m, &l.text, l.kernel->tile);
  step->operations = l.operations;
  make_extents(m, l.kernel, step);
  make_arguments(m, &l, step);
  *add_step(m) = made;
}

/* --- reference kernels --- */

static const bb_expr *stride_expr(maker *m, uint32_t tensor, uint32_t axis) {
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

static const bb_expr *scaled(maker *m, const bb_expr *e, int64_t by) {
  return bb_expr_make(m->program, BB_X_MUL, e, bb_expr_const(m->program, BB_I64, (double)by), NULL);
}

/* The k-th index over a dim belongs to the k-th axis over it. */
static void make_piece(maker *m, const bb_misc_port *port, const bb_piece *from,
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
    if (index->kind == BB_INDEX_FIXED) continue;
    uint32_t axis = 0;
    while (axis < port->axes && (taken[axis] || port->axis[axis] != index->dim)) axis++;
    if (axis == port->axes)
      bb_fail(m->ctx, BB_ERROR_UNSUPPORTED, "an operand read along a dim that it lacks");
    taken[axis] = true;
    stride[axis] = bb_formula_of(m->program, m->arena, whole ? step : scaled(m, step, index->step));
  }
  m->used[from->source] = true;
  *piece = (bb_plan_piece){.tensor = from->source,
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
        t->axis[i] != port->axis[i])
      return false;
  return true;
}

static bb_misc_port port_of(const maker *m, uint32_t tensor) {
  const bb_tensor *t = &m->program->tensor[tensor];
  return (bb_misc_port){
      .dtype = t->dtype, .rank = t->rank, .shape = t->shape, .axes = t->axes, .axis = t->axis};
}

static void make_operand(maker *m, const bb_misc_port *port, const bb_access *access,
                         bb_plan_operand *o) {
  *o = (bb_plan_operand){.whole = bb_operand_is_whole(m->program, port, access),
                         .dtype = port->dtype,
                         .rank = port->rank,
                         .shape = port->shape,
                         .axes = port->axes,
                         .extent = extents_of(m, port->axes, port->axis),
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

static void make_result(maker *m, const bb_misc_port *port, uint32_t tensor, bb_plan_operand *o) {
  const bb_tensor *t = &m->program->tensor[tensor];
  bb_index *index = BB_NEW(m->arena, bb_index, t->axes + 1);
  for (uint32_t i = 0; i < t->axes; i++) index[i] = (bb_index){BB_INDEX_DIM, t->axis[i], 0, 1};
  bb_piece piece = {.source = tensor, .rank = t->axes, .index = index};
  bb_misc_port with = *port;
  with.axes = t->axes;
  with.axis = t->axis;
  make_operand(m, &with, &(bb_access){BB_NO_DIM, 1, &piece}, o);
}

static void make_misc(maker *m, const bb_step *from, bb_plan_step *step) {
  const bb_misc *misc = from->misc;
  bb_misc *bare = BB_NEW(m->arena, bb_misc, 1);
  *bare = *misc;
  bare->in = bare->out = NULL;
  bare->nin = bare->nout = 0;
  step->misc = bare;
  step->kernel = BB_NONE;
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

/* --- what runs at load --- */

static bool operand_is_fixed(const bb_plan *plan, const bb_plan_operand *o, bool written) {
  if (o->absent) return true;
  bool fixed = is_known(o->rank, o->shape) && is_known(o->axes, o->extent);
  for (uint32_t i = 0; i < o->pieces; i++) fixed &= is_fixed(plan, o->piece[i].tensor, written);
  return fixed;
}

/* A step runs at load if all it takes and makes is there then, and of known size. */
static void mark_once(bb_plan *plan, bb_plan_step *step) {
  bool once = step->kernel == BB_NONE || is_known(step->extents, step->extent);
  for (uint32_t i = 0; i < step->arguments; i++)
    if (step->argument[i].tensor != BB_NONE)
      once &= is_fixed(plan, step->argument[i].tensor, step->argument[i].written);
  for (uint32_t i = 0; i < step->nin; i++) once &= operand_is_fixed(plan, &step->in[i], false);
  for (uint32_t i = 0; i < step->nout; i++) once &= operand_is_fixed(plan, &step->out[i], true);
  step->once = once;
  for (uint32_t i = 0; i < step->arguments; i++)
    if (step->argument[i].written && step->argument[i].tensor != BB_NONE)
      plan->tensor[step->argument[i].tensor].once = once;
  for (uint32_t i = 0; i < step->nout; i++)
    if (!step->out[i].absent) plan->tensor[step->out[i].piece[0].tensor].once = once;
}

/* --- the draft --- */

static void put_source(maker *m, bb_draft *draft) {
  bb_buffer out = {.arena = m->arena};
  bb_put(&out, "/* Kernels made by Blockbuster. */\n#include \"bb_cpu.h\"\n\n");
  for (uint32_t i = 0; i < m->plan->kernels; i++)
    bb_emit_c(&out, m->tile[i], bb_arena_printf(m->arena, "k%u", i), NULL);
  bb_put(&out,
         "__attribute__((visibility(\"default\"))) const bb_cpu_kernel *const bb_kernels[] = {");
  for (uint32_t i = 0; i < m->plan->kernels; i++) bb_put(&out, "&k%u, ", i);
  bb_put(&out, "0};\n");
  draft->source = out.data;
  draft->length = out.length;
}

bb_draft *bb_draft_make(bb_program *program, const bb_draft_options *options, bb_arena *arena) {
  static const bb_draft_options defaults = {0};
  maker m = {.program = program, .ctx = program->ctx, .arena = arena};
  m.options = options ? options : &defaults;
  m.refused.arena = arena;
  m.plan = BB_NEW(arena, bb_plan, 1);
  *m.plan = (bb_plan){.arena = arena, .name = program->name, .device = "cpu"};
  m.plan->features = m.plan->code = m.plan->sum = "";
  bb_draft *draft = BB_NEW(arena, bb_draft, 1);
  draft->plan = m.plan;
  make_symbols(&m);
  make_tensors(&m);
  for (uint32_t i = 0; i < program->steps; i++) {
    const bb_step *from = &program->step[i];
    if (from->candidate == BB_NONE)
      make_misc(&m, from, add_step(&m));
    else
      make_kernel(&m, &program->candidate[from->candidate]);
    mark_once(m.plan, &m.plan->step[m.plan->steps - 1]);
  }
  place_constants(&m, draft);
  put_source(&m, draft);
  draft->refused = m.refused.data;
  return draft;
}
