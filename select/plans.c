/* plans.c - programs selected at several extents, kept to be priced at all of them. */
#include "plans.h"

#include <string.h>

static void plan_candidate(bb_quoter *quoter, const bb_candidate *candidate, bb_plan *plan) {
  bb_arena *scratch = bb_scratch(quoter->program->ctx);
  bb_flow *flow = bb_flow_create(quoter->program, candidate->graph, scratch);
  bb_pieces *pieces = bb_pieces_create(flow, scratch);
  bb_cover *cover = bb_quoter_solve(quoter, pieces, scratch);
  for (uint32_t i = 0; i < cover->kernels; i++)
    if (!pieces->cover[cover->kernel[i].node[0]].group)
      bb_quoter_plan(quoter, &cover->kernel[i], plan);
  bb_scratch_end(scratch);
}

static bb_plan *plan_at(bb_plans *p, const double *symbol) {
  bb_arena *scratch = bb_scratch(p->program->ctx);
  bb_plan *plan = BB_NEW(p->arena, bb_plan, 1);
  *plan = (bb_plan){.arena = p->arena};
  p->options.symbol = symbol;
  bb_quoter *quoter = bb_quoter_create(p->program, &p->options, scratch);
  for (uint32_t i = 0; i < p->program->steps; i++) {
    uint32_t candidate = p->program->step[i].candidate;
    if (candidate != BB_NONE) plan_candidate(quoter, &p->program->candidate[candidate], plan);
  }
  bb_scratch_end(scratch);
  return plan;
}

static bool same_kernel(const struct bb_planned *a, const struct bb_planned *b) {
  if (a->way.snapshot != b->way.snapshot || a->way.fold != b->way.fold ||
      a->way.parts != b->way.parts || a->way.blocks != b->way.blocks || !a->nest || !b->nest ||
      a->nest->terms != b->nest->terms || a->nest->loops != b->nest->loops)
    return false;
  for (uint32_t i = 0; i < a->way.blocks; i++)
    if (a->way.block_dim[i] != b->way.block_dim[i] ||
        a->way.block[i].elements != b->way.block[i].elements)
      return false;
  return true;
}

bb_plans bb_plans_start(bb_program *program, const bb_selection_options *options, uint32_t points,
                        const double *const *symbol, bb_arena *arena) {
  bb_plans p = {
      .program = program, .arena = arena, .options = *options, .symbols = program->symbols};
  p.symbol = BB_NEW(arena, double, program->symbols + 1);
  p.options.known = NULL;
  p.options.quotes = p.quotes = bb_quotes_create(program, options, points, symbol, arena);
  p.pricer = bb_pricer_create(program, options->machine, 1, &(const double *){p.symbol}, arena);
  return p;
}

uint32_t bb_plans_add(bb_plans *p, const double *symbol) {
  bb_plan *plan = plan_at(p, symbol);
  for (uint32_t i = 0; i < p->count; i++) {
    uint32_t k = 0;
    if (p->plan[i]->kernels != plan->kernels) continue;
    while (k < plan->kernels && same_kernel(&p->plan[i]->kernel[k], &plan->kernel[k])) k++;
    if (k == plan->kernels) return i;
  }
  BB_GROW(p->arena, p->plan, p->capacity, (size_t)p->count + 1);
  p->plan[p->count] = plan;
  return p->count++;
}

double bb_plans_seconds(bb_plans *p, uint32_t plan, const double *symbol) {
  bb_arena *scratch = bb_scratch(p->program->ctx);
  if (p->symbols) memcpy(p->symbol, symbol, p->symbols * sizeof *symbol);
  p->pricer.point->dims = 0; /* to be worked out anew */
  const double *extents = bb_pricer_extents(&p->pricer, 0);
  double seconds = 0;
  for (uint32_t i = 0; i < p->plan[plan]->kernels; i++) {
    const struct bb_planned *kernel = &p->plan[plan]->kernel[i];
    bb_price price = kernel->way.price;
    if (kernel->nest) {
      bb_pricing pricing = bb_pricing_bind(kernel->nest, p->pricer.machine, extents, scratch);
      pricing.plain |= kernel->way.threads;
      bb_price_tiling(&pricing, &kernel->tiling, true, &price);
    }
    seconds += price.seconds;
  }
  bb_scratch_end(scratch);
  return seconds;
}
