/* algebra_values.c - evaluates chains as written, and products along random bracketings. */
#include "algebra_values.h"

#include <math.h>
#include <string.h>

enum { ARGS = 256 };

uint64_t random_bits(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

double random_unit(uint64_t *state) {
  return (double)(random_bits(state) >> 11) * 0x1p-53;
}

static double random_value(uint64_t *state, char fact) {
  double value = 6 * random_unit(state) - 3;
  return fact == '.' ? value : fact == '+' ? fabs(value) + 0.05 : fabs(value);
}

static bool is_index(const char *names, uint32_t which) {
  for (; which && *names; names++) which -= *names == ' ';
  return names[0] == 'i' && (names[1] == ' ' || !names[1]);
}

sample random_sample(bb_program *program, const algebra_case *c, uint64_t *state, uint32_t count) {
  bb_chain chain = case_chain(program, c);
  sample s = {.count = count, .stride = chain.elements};
  s.element = BB_NEW(program->arena, double, count *chain.elements + 1);
  double *fixed = BB_NEW(program->arena, double, chain.fixed + 1);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < chain.elements; k++)
      s.element[i * s.stride + k] = is_index(c->elements, k) ? i : random_value(state, c->facts[k]);
  for (uint32_t k = 0; k < chain.fixed; k++)
    fixed[k] = random_value(state, c->facts[chain.elements + k]);
  s.fixed = fixed;
  return s;
}

static bb_expr_env environment(const bb_program *program, const sample *s, const double *arg,
                               int64_t *extent) {
  for (uint32_t d = 0; d < program->dims; d++) extent[d] = s->count;
  return (bb_expr_env){.arg = arg, .dim_extent = extent};
}

static void set_element(double *arg, const bb_chain *chain, const sample *s, uint32_t i) {
  memcpy(arg, s->element + i * s->stride, s->stride * sizeof *arg);
  memcpy(arg + chain->elements, s->fixed, chain->fixed * sizeof *arg);
}

void run_chain(bb_program *program, const bb_chain *chain, const sample *s, double *result) {
  double arg[ARGS] = {0};
  int64_t extent[8];
  bb_expr_env env = environment(program, s, arg, extent);
  uint32_t at = chain->elements + chain->fixed, out = 0;
  for (uint32_t f = 0; f < chain->folds; f++) {
    const bb_chain_fold *fold = &chain->fold[f];
    const bb_monoid *monoid = bb_monoid_get(fold->fold);
    double acc[2];
    bb_monoid_empty(monoid, acc);
    for (uint32_t i = 0; i < s->count; i++) {
      set_element(arg, chain, s, i);
      double term[2] = {bb_expr_eval(fold->term, &env), 0};
      if (fold->payload) term[1] = bb_expr_eval(fold->payload, &env);
      bb_monoid_combine(monoid, acc, term);
    }
    for (uint32_t k = 0; k < monoid->components; k++) result[out++] = arg[at++] = acc[k];
  }
}

typedef struct runner {
  const bb_product *p;
  const sample *s;
  bb_expr_env env;
  double *arg;
  const bb_expr **lift, **combine;
  uint64_t *state;
} runner;

static void combine(runner *r, double *into, const double *left, const double *right) {
  const bb_product *p = r->p;
  memcpy(r->arg + p->own, left, p->count * sizeof *left);
  memcpy(r->arg + p->renewed, right, p->count * sizeof *right);
  double value[BB_PRODUCT_COMPONENTS];
  for (uint32_t j = 0; j < p->count; j++) value[j] = bb_expr_eval(r->combine[j], &r->env);
  memcpy(into, value, p->count * sizeof *into);
}

static void part(runner *r, uint32_t from, uint32_t to, double *value) {
  const bb_product *p = r->p;
  uint32_t cut = to - from > 1 ? from + 1 : to;
  if (r->state && to - from > 1)
    cut = from + (uint32_t)(random_bits(r->state) % (to - from + 1)); /* an end: an empty part */
  if (!r->state && to > from) cut = to - 1;
  if (from == to) {
    for (uint32_t j = 0; j < p->count; j++) value[j] = p->component[j].empty;
    return;
  }
  if (to - from == 1 && (!r->state || random_unit(r->state) < 0.8)) {
    set_element(r->arg, &p->chain, r->s, from);
    for (uint32_t j = 0; j < p->count; j++) value[j] = bb_expr_eval(r->lift[j], &r->env);
    return;
  }
  double left[BB_PRODUCT_COMPONENTS], right[BB_PRODUCT_COMPONENTS];
  part(r, from, cut, left);
  part(r, cut, to, right);
  combine(r, value, left, right);
}

void run_product(bb_program *program, const bb_product *product, const sample *s, uint64_t *state,
                 round_function *round, double *result) {
  double arg[ARGS] = {0}, value[BB_PRODUCT_COMPONENTS];
  int64_t extent[8];
  runner r = {.p = product, .s = s, .arg = arg, .state = state};
  r.env = environment(program, s, arg, extent);
  r.env.round = round;
  r.lift = bb_product_lift(program, product);
  r.combine = bb_product_combine(program, product);
  part(&r, 0, s->count, value);
  memcpy(arg + product->own, value, product->count * sizeof *value);
  for (uint32_t f = 0, out = 0; f < product->chain.folds; f++) {
    result[out++] = bb_expr_eval(product->result[f].finish, &r.env);
    if (product->chain.fold[f].payload) result[out++] = value[product->result[f].component + 1];
  }
}
