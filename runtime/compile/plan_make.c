/* plan_make.c - from a fused program to a plan: its run-time extents, its arrays, its steps in order.
 *
 * Names of the model go into the plan as text and nowhere else: kernels know arrays by number.
 */
#include "plan_maker.h"

#include "../../graph/processor.h"
#include "../cpu/cpu.h"
#include "../variants.h"

#include <string.h>

/* --- run-time extents --- */

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
  bb_formula *most = BB_NEW(m->arena, bb_formula, plan->symbols + 1);
  for (uint32_t i = 0; i < plan->extents; i++) {
    plan->symbol[i] = m->program->symbol[i];
    formula[i] = bb_formula_of_symbol(m->program, m->arena, i);
    most[i] = bb_formula_of_most(m->program, m->arena, i);
  }
  plan->derived = formula;
  plan->most = most;
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

/* What a cache grows by counts as the output does that it lies in. */
static void shape_fresh(bb_maker *m, const bb_plan_cache *cache) {
  bb_plan_tensor *t = &m->plan->tensor[cache->fresh];
  const bb_plan_tensor *out = &m->plan->tensor[cache->output];
  const bb_tensor *from = &m->program->tensor[cache->fresh];
  const bb_extent **shape = BB_NEW(m->arena, const bb_extent *, out->rank);
  for (uint32_t i = 0; i < out->rank; i++) shape[i] = out->shape[i];
  shape[cache->axis] = m->program->dim[from->axis[m->room[cache->fresh].axis]].extent;
  t->rank = out->rank;
  t->shape = shape;
}

/* Callers see the model's shapes; other arrays have those of their dims. */
static void make_tensors(bb_maker *m) {
  bb_plan *plan = m->plan;
  plan->tensors = m->program->tensors;
  m->tensor_capacity = plan->tensors + 1;
  plan->tensor = BB_NEW(m->arena, bb_plan_tensor, m->tensor_capacity);
  m->used = BB_NEW(m->arena, bool, plan->tensors + 1);
  m->same = BB_NEW(m->arena, uint32_t, plan->tensors + 1);
  for (uint32_t i = 0; i < plan->tensors; i++) m->same[i] = i;
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
  for (uint32_t i = 0; i < plan->caches; i++)
    if (plan->cache[i].fresh != BB_NONE) shape_fresh(m, &plan->cache[i]);
  bb_plan_give_rooms(plan);
}

const void *const *bb_constants_of(const bb_program *program, bb_arena *arena) {
  const void **data = BB_NEW(arena, const void *, program->tensors + 1);
  for (uint32_t i = 0; i < program->tensors; i++)
    if (program->tensor[i].role == BB_TENSOR_CONSTANT) data[i] = program->tensor[i].data;
  return data;
}

/* Constants that something reads, one after the other; others are left out. */
static void place_constants(bb_maker *m) {
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
    at += (t->bytes + BB_PLAN_APART - 1) / BB_PLAN_APART * BB_PLAN_APART;
  }
  m->plan->data_bytes = at;
}

/* It is there when the model is loaded, or may be made then. */
bool bb_plan_is_fixed(const bb_plan *plan, uint32_t tensor, bool written) {
  const bb_plan_tensor *t = &plan->tensor[tensor];
  if (!bb_plan_is_known(t->rank, t->shape)) return false;
  return written ? t->role == BB_TENSOR_LOCAL : t->role == BB_TENSOR_CONSTANT || t->once;
}

uint32_t bb_maker_tensor(const bb_maker *m, uint32_t tensor) {
  return tensor < m->program->tensors ? m->same[tensor] : tensor;
}

bb_plan_step *bb_maker_step(bb_maker *m) {
  BB_GROW(m->arena, m->plan->step, m->step_capacity, m->plan->steps + 1u);
  bb_plan_step *step = &m->plan->step[m->plan->steps++];
  *step = (bb_plan_step){.tells = BB_NONE}; /* one that was merged may have stood there */
  return step;
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

/* --- variants --- */

/* Whether two kernels that run at load make the same of the same. */
static bool makes_same(const bb_plan_step *a, const bb_plan_step *b) {
  if (!a->once || a->kernel == BB_NONE || a->kernel != b->kernel || a->arguments != b->arguments)
    return false;
  for (uint32_t i = 0; i < a->arguments; i++) {
    const bb_plan_argument *x = &a->argument[i], *y = &b->argument[i];
    if (x->written != y->written || !bb_formula_same(&x->offset, &y->offset) ||
        (!x->written && x->tensor != y->tensor) || (x->tensor == BB_NONE) != (y->tensor == BB_NONE))
      return false;
  }
  return true;
}

/* What another variant has made at load already, the last step need not make again: who reads its results reads those. */
static void merge_once(bb_maker *m) {
  bb_plan *plan = m->plan;
  bb_plan_step *last = &plan->step[plan->steps - 1];
  uint32_t i = 0;
  if (!last->once) return;
  last->variants = bb_plan_all(plan);
  while (i + 1 < plan->steps && !makes_same(&plan->step[i], last)) i++;
  if (i + 1 == plan->steps) return;
  for (uint32_t k = 0; k < last->arguments; k++) {
    uint32_t made = last->argument[k].tensor, there = plan->step[i].argument[k].tensor;
    if (!last->argument[k].written || made == BB_NONE || made == there) continue;
    m->same[made] = there;
    plan->tensor[made].once = false;
  }
  plan->steps--;
}

/* An array within the end of a cache has other rows behind each of its own. */
static bool is_fresh(const bb_plan *plan, uint32_t tensor) {
  for (uint32_t i = 0; i < plan->caches; i++)
    if (plan->cache[i].fresh == tensor) return true;
  return false;
}

/* Both arrays of a renaming are one. */
static bool is_renamed(bb_maker *m, const bb_step *step) {
  if (!bb_step_is_renaming(m->program, step) || m->variants != bb_plan_all(m->plan)) return false;
  uint32_t in = step->in[0]->piece[0].source, out = step->out[0];
  if (is_fresh(m->plan, in) || is_fresh(m->plan, out)) return false;
  m->same[out] = m->same[in];
  return true;
}

static void make_step(bb_maker *m, const bb_choice *choice, uint32_t number) {
  const bb_step *from = &choice->step[number];
  if (is_renamed(m, from)) return;
  if (from->candidate == BB_NONE)
    bb_maker_misc(m, from, bb_maker_step(m));
  else
    bb_maker_kernel(m, &choice->candidate[from->candidate]);
  bb_plan_step *step = &m->plan->step[m->plan->steps - 1];
  step->variants = m->variants;
  mark_once(m->plan, step);
  merge_once(m);
}

/* One node that all variants are at: they were partitioned once. */
static bool is_shared(uint32_t variants, const bb_choice *choice, const uint32_t *at) {
  for (uint32_t v = 0; v < variants; v++) {
    const bb_step *s = &choice[v].step[at[v]], *first = &choice->step[at[0]];
    if (at[v] == choice[v].steps || s->candidate != BB_NONE || s->in != first->in ||
        s->out != first->out || s->misc != first->misc)
      return false;
  }
  return true;
}

/* The kernels of all variants up to the next node between candidates, and that node once. */
static void make_steps(bb_maker *m, uint32_t variants, const bb_choice *choice) {
  uint32_t *at = BB_NEW(m->arena, uint32_t, variants);
  for (bool more = true; more;) {
    more = false;
    for (uint32_t v = 0; v < variants; v++) {
      m->variants = 1u << v;
      for (; at[v] < choice[v].steps && choice[v].step[at[v]].candidate != BB_NONE; at[v]++)
        make_step(m, &choice[v], at[v]);
    }
    m->variants = bb_plan_all(m->plan);
    bool shared = is_shared(variants, choice, at);
    if (shared) make_step(m, choice, at[0]);
    for (uint32_t v = 0; v < variants; v++) {
      if (at[v] == choice[v].steps) continue;
      m->variants = 1u << v;
      if (!shared) make_step(m, &choice[v], at[v]);
      at[v]++;
      more = true;
    }
  }
}

static int64_t *whole_numbers(bb_arena *arena, uint32_t count, const double *number) {
  int64_t *made = BB_NEW(arena, int64_t, count + 1);
  for (uint32_t i = 0; i < count; i++) made[i] = (int64_t)number[i];
  return made;
}

bb_plan_table bb_plan_table_of(const bb_regions *regions, bb_arena *arena) {
  bb_plan_axis *axis = BB_NEW(arena, bb_plan_axis, regions->axes + 1);
  for (uint32_t a = 0; a < regions->axes; a++) {
    const bb_region_axis *from = &regions->axis[a];
    axis[a] = (bb_plan_axis){from->symbol, from->stretches,
                             whole_numbers(arena, from->stretches - 1, from->limit)};
  }
  return (bb_plan_table){regions->axes, regions->cells, axis, regions->cell};
}

/* A program alone is chosen for what its selection says, if there was one. */
static void make_table(bb_maker *m, const bb_regions *regions) {
  static const uint32_t only[1] = {0};
  bb_plan *plan = m->plan;
  const bb_selection_report *report = m->program->selection;
  const int64_t **at = BB_NEW(m->arena, const int64_t *, plan->variants);
  plan->chosen_at = at;
  plan->table = (bb_plan_table){.cells = 1, .cell = only};
  if (!regions) {
    int64_t *extent = BB_NEW(m->arena, int64_t, plan->extents + 1);
    for (uint32_t s = 0; report && s < plan->extents && s < report->symbols; s++)
      extent[s] = (int64_t)report->symbol[s];
    at[0] = extent;
    return;
  }
  for (uint32_t v = 0; v < plan->variants; v++)
    at[v] = whole_numbers(m->arena, plan->extents, regions->symbol[v]);
  plan->table = bb_plan_table_of(regions, m->arena);
}

/* --- the draft --- */

static void put_source(bb_maker *m, bb_draft *draft) {
  bb_buffer out = {.arena = m->arena};
  bb_put(&out, "/* Kernels made by Blockbuster. */\n#include \"" BB_CPU_LIBRARY
               "\"\n\n" BB_CPU_PARTS "\n");
  for (uint32_t i = 0; i < m->plan->kernels; i++) bb_put(&out, "extern BB_KERNEL k%u;\n", i);
  for (uint32_t i = 0; i < m->plan->kernels; i++) {
    bb_put(&out, BB_CPU_PART "%u)\n\n", i);
    bb_emit_c(&out, m->tile[i], bb_arena_printf(m->arena, "k%u", i), &m->emit);
    bb_put(&out, "#endif\n");
  }
  bb_put(&out, BB_CPU_PART "0)\n");
  bb_put(&out,
         "__attribute__((visibility(\"default\"))) const bb_cpu_kernel *const bb_kernels[] = {");
  for (uint32_t i = 0; i < m->plan->kernels; i++) bb_put(&out, "&k%u, ", i);
  bb_put(&out, "0};\n#endif\n");
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
  m.emit.tiles = bb_processor_has_tiles();
  m.plan = BB_NEW(arena, bb_plan, 1);
  const struct bb_variants *variants = program->variants;
  bb_choice alone = bb_choice_of(program);
  *m.plan = (bb_plan){.arena = arena, .name = program->name, .device = "cpu"};
  m.plan->variants = variants ? variants->regions->count : 1;
  if (m.options->target) m.plan->device = m.options->target->api->name;
  m.plan->features = m.plan->code = m.plan->sum = "";
  bb_draft *draft = BB_NEW(arena, bb_draft, 1);
  draft->plan = m.plan;
  make_symbols(&m);
  make_tensors(&m);
  make_table(&m, variants ? variants->regions : NULL);
  make_steps(&m, m.plan->variants, variants ? variants->choice : &alone);
  place_constants(&m);
  draft->data = bb_constants_of(program, arena);
  if (m.options->target)
    put_ways(&m, draft);
  else
    put_source(&m, draft);
  if (m.refused.length) m.refused.data[m.refused.length - 1] = 0; /* the last line's end */
  draft->refused = m.refused.data;
  return draft;
}
