/* bound.c - how much an extent is at least, by the windows that are taken of it.
 *
 * Windows leave at least one place, or ONNX has no answer: of (S+1)/4 - 1 places it follows that S is 7 or more.  What a model
 * works out of S then has no negative parts, and comes to the same form as the places that it counts.  A run with less is
 * refused.
 */
#include "formula.h"
#include "import.h"

#include <math.h>
#include <string.h>

typedef struct bb_onnx_bound {
  struct bb_onnx_bound *next;
  const char *name;
  double least;
} bb_onnx_bound;

static bb_onnx_bound *bound_of(const bb_onnx *m, const char *name) {
  bb_onnx_bound *bound = m->bounds;
  while (bound && strcmp(bound->name, name) != 0) bound = bound->next;
  return bound;
}

static void learn(bb_onnx *m, const char *name, double least) {
  bb_onnx_bound *bound = bound_of(m, name);
  if (bound && bound->least >= least) return;
  if (!bound) {
    bound = BB_NEW(m->arena, bb_onnx_bound, 1);
    *bound =
        (bb_onnx_bound){.next = m->bounds, .name = bb_arena_text(m->arena, name, strlen(name))};
    m->bounds = bound;
  }
  bound->least = least;
  m->learned = true;
}

/* A name that has to be more than 1 for an expression to be so much; NULL: there is no one name. */
static const bb_expr *name_in(bb_onnx *m, const bb_expr *e, double *least) {
  for (;;) {
    bb_onnx_sum s = {0};
    if (!bb_onnx_sum_add(m, &s, e, 1) || s.terms != 1 || !(s.times[0] > 0)) return NULL;
    *least = ceil((*least - s.number) / s.times[0]);
    if (!(*least > 1 && *least < 1e15)) return NULL;
    e = s.term[0];
    if (e->op == BB_X_SYMBOL) return e;
    if (e->op != BB_X_DIV || e->a[1]->op != BB_X_CONST || !(e->a[1]->number >= 1)) return NULL;
    *least *= e->a[1]->number; /* of at least 1: whichever way it is rounded */
    e = e->a[0];
  }
}

void bb_onnx_has_some(bb_onnx *m, const bb_extent *extent) {
  double least = 1;
  const bb_expr *e = bb_onnx_extent_meaning(m, extent), *name = name_in(m, e, &least);
  if (!name) return;
  bb_onnx_expr_extent(m, bb_onnx_tidy_make(m, BB_X_SUB, e, f_num(m->program, e, 1)));
  learn(m, m->program->symbol[name->index], least);
}

double bb_onnx_extent_least(const bb_onnx *m, const bb_extent *extent) {
  double least = (double)extent->factor;
  for (uint32_t i = 0; i < extent->count; i++) {
    if (m->program->most[extent->symbol[i]]) return 0; /* as many as data decides may be none */
    const bb_onnx_bound *bound = bound_of(m, m->program->symbol[extent->symbol[i]]);
    if (bound) least *= bound->least;
  }
  return least;
}
