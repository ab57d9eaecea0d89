/* plan_make.c - from a fused program to a plan: its run-time extents, its arrays, its steps in order.
 *
 * Names of the model go into the plan as text and nowhere else: kernels know arrays by number.
 */
#include "plan_maker.h"

#include <string.h>

/* --- run-time extents --- */

/* An extent that is no product of symbols is a symbol whose name says what it is. */
static bb_formula derived(bb_maker *m, const char *name) {
  const char *text = name, *end = name + strlen(name), *error;
  const bb_expr *e = bb_expr_parse(m->program, &text, end, NULL, NULL, &error);
  if (!e || text != end || e->op == BB_X_SYMBOL) return (bb_formula){0};
  return bb_formula_of(m->program, m->arena, e);
}

/* Parsing a name may add a symbol: only those that the program had are the plan's, and then the rooms
 * of its caches. */
static void make_symbols(bb_maker *m) {
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

bool bb_plan_is_known(uint32_t rank, const bb_extent *const *shape) {
  for (uint32_t i = 0; i < rank; i++)
    if (shape[i]->count) return false;
  return true;
}

/* --- arrays --- */

const bb_extent *const *bb_maker_extents(bb_maker *m, uint32_t axes, const bb_dim *axis) {
  const bb_extent **extent = BB_NEW(m->arena, const bb_extent *, axes + 1);
  for (uint32_t i = 0; i < axes; i++) extent[i] = m->program->dim[axis[i]].extent;
  return extent;
}

/* Callers see the model's shapes; other arrays have those of their dims. */
static void make_tensors(bb_maker *m) {
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
    t->shape = shown ? from->shape : bb_maker_extents(m, from->axes, from->axis);
    if (t->rank > BB_PLAN_RANK)
      bb_fail(m->ctx, BB_ERROR_UNSUPPORTED, "array \"%s\" has more than %d axes", from->name,
              BB_PLAN_RANK);
  }
  bb_plan_give_rooms(plan);
}

/* Constants that something reads, one after the other; others are left out. */
static void place_constants(bb_maker *m, bb_draft *draft) {
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
bool bb_plan_is_fixed(const bb_plan *plan, uint32_t tensor, bool written) {
  const bb_plan_tensor *t = &plan->tensor[tensor];
  if (!bb_plan_is_known(t->rank, t->shape)) return false;
  return written ? t->role == BB_TENSOR_LOCAL : t->role == BB_TENSOR_CONSTANT || t->once;
}

bb_plan_step *bb_maker_step(bb_maker *m) {
  BB_GROW(m->arena, m->plan->step, m->step_capacity, m->plan->steps + 1u);
  return &m->plan->step[m->plan->steps++];
}

/* --- what runs at load --- */

static bool operand_is_fixed(const bb_plan *plan, const bb_plan_operand *o, bool written) {
  if (o->absent) return true;
  bool fixed = bb_plan_is_known(o->rank, o->shape) && bb_plan_is_known(o->axes, o->extent);
  for (uint32_t i = 0; i < o->pieces; i++)
    fixed &= bb_plan_is_fixed(plan, o->piece[i].tensor, written);
  return fixed;
}

/* A step runs at load if all it takes and makes is there then, and of known size. */
static void mark_once(bb_plan *plan, bb_plan_step *step) {
  bool once = step->kernel == BB_NONE || bb_plan_is_known(step->extents, step->extent);
  for (uint32_t i = 0; i < step->arguments; i++)
    if (step->argument[i].tensor != BB_NONE)
      once &= bb_plan_is_fixed(plan, step->argument[i].tensor, step->argument[i].written);
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

static void put_source(bb_maker *m, bb_draft *draft) {
  bb_buffer out = {.arena = m->arena};
  bb_put(&out, "/* Kernels made by Blockbuster. */\n#include \"bb_cpu.h\"\n\n");
  for (uint32_t i = 0; i < m->plan->kernels; i++)
    bb_emit_c(&out, m->tile[i], bb_arena_printf(m->arena, "k%u", i), &m->emit);
  bb_put(&out,
         "__attribute__((visibility(\"default\"))) const bb_cpu_kernel *const bb_kernels[] = {");
  for (uint32_t i = 0; i < m->plan->kernels; i++) bb_put(&out, "&k%u, ", i);
  bb_put(&out, "0};\n");
  draft->source = out.data;
  draft->length = out.length;
}

static void put_ways(bb_maker *m, bb_draft *draft) {
  bb_gpu_draft *ways = BB_NEW(m->arena, bb_gpu_draft, 1);
  *ways = (bb_gpu_draft){m->plan->kernels, m->ways};
  draft->gpu = ways;
}

bb_draft *bb_draft_make(bb_program *program, const bb_draft_options *options, bb_arena *arena) {
  static const bb_draft_options defaults = {0};
  bb_maker m = {.program = program, .ctx = program->ctx, .arena = arena};
  m.options = options ? options : &defaults;
  m.refused.arena = arena;
  m.emit.vector_bytes = bb_host_vector_bytes();
  m.plan = BB_NEW(arena, bb_plan, 1);
  *m.plan = (bb_plan){.arena = arena, .name = program->name, .device = "cpu"};
  if (m.options->target) m.plan->device = m.options->target->api->name;
  m.plan->features = m.plan->code = m.plan->sum = "";
  bb_draft *draft = BB_NEW(arena, bb_draft, 1);
  draft->plan = m.plan;
  make_symbols(&m);
  make_tensors(&m);
  for (uint32_t i = 0; i < program->steps; i++) {
    const bb_step *from = &program->step[i];
    if (from->candidate == BB_NONE)
      bb_maker_misc(&m, from, bb_maker_step(&m));
    else
      bb_maker_kernel(&m, &program->candidate[from->candidate]);
    mark_once(m.plan, &m.plan->step[m.plan->steps - 1]);
  }
  place_constants(&m, draft);
  if (m.options->target)
    put_ways(&m, draft);
  else
    put_source(&m, draft);
  draft->refused = m.refused.data;
  return draft;
}
