/* safety_plain.c - products that need no halves after all.
 *
 *   s == 0 ? s : s exp((e - m) / 2) exp((e - m) / 2)   ==>   s (m == -inf ? 0 : exp(e - m))
 *
 * What leaves a program is multiplied back by halves, as an exponent beyond what the type holds may meet a small s.  Where m is the greatest of
 * what e is one of, the exponent is 0 at most; and what a fold over those made of each e is this very exp, which need not be computed
 * again.  Whether it is so, and what underflows does no harm, is asked of the program as it would be.
 */
#include "safety_pair.h"

typedef struct change {
  bb_node *node;
  const bb_expr *before;
} change;

typedef struct changes {
  bb_program *program;
  bb_arena *arena;
  uint32_t count, capacity;
  change *change;
} changes;

static bool is_product(const bb_expr *e, const bb_expr **left, const bb_expr **right) {
  *left = e->a[0], *right = e->a[1];
  return e->op == BB_X_MUL;
}

/* The e - m of an exp of its half; NULL: it is something else. */
static const bb_expr *whole_of(const bb_expr *half) {
  const bb_expr *by, *whole;
  if (half->op == BB_X_CAST) half = half->a[0];
  if (half->op != BB_X_EXP || !is_product(half->a[0], &by, &whole)) return NULL;
  return bb_expr_is_number(by, 0.5) && whole->op == BB_X_SUB ? whole : NULL;
}

static const bb_expr *plain(void *user, bb_program *p, const bb_expr *node,
                            const bb_expr *const a[3]) {
  const bb_expr *made = bb_expr_rebuild(p, node, a), *s, *inner, *half, *again, *e;
  (void)user;
  if (made->op != BB_X_SELECT || !is_product(made->a[2], &inner, &half) ||
      !is_product(inner, &s, &again) || again != half || made->a[1] != s ||
      made->a[0]->op != BB_X_EQ || made->a[0]->a[0] != s ||
      !bb_expr_is_number(made->a[0]->a[1], 0) || (e = whole_of(half)) == NULL)
    return made;
  const bb_expr *exp = bb_expr_make(p, BB_X_EXP, e, NULL, NULL), *m = e->a[1];
  const bb_expr *none = bb_expr_make(p, BB_X_EQ, m, bb_expr_const(p, m->dtype, -INFINITY), NULL);
  exp = bb_expr_make(p, BB_X_SELECT, none, bb_expr_const(p, e->dtype, 0), exp);
  if (exp->dtype != s->dtype) exp = bb_expr_cast(p, s->dtype, exp);
  return bb_expr_make(p, BB_X_MUL, s, exp, NULL);
}

static void change_all(changes *c, bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    bb_node *node = bb_node_get(graph, i);
    if (node->kind == BB_NODE_MAP) change_all(c, node->inner);
    if (node->kind != BB_NODE_FUNC || node->op != BB_OP_ELEMENTWISE) continue;
    const bb_expr *now = bb_expr_rewrite(c->program, node->expr, plain, NULL);
    if (now == node->expr) continue;
    BB_GROW(c->arena, c->change, c->capacity, c->count + 1u);
    c->change[c->count++] = (change){node, node->expr};
    node->expr = now;
  }
}

void bb_safe_plain_products(bb_program *program, bb_graph *graph) {
  bb_arena *scratch = bb_scratch(program->ctx);
  changes c = {.program = program, .arena = scratch};
  change_all(&c, graph);
  if (c.count) {
    bb_safety *asked = bb_safety_create(program, scratch);
    bb_safety_learn(asked, graph);
    bool unsafe = bb_safe_graph_has_unsafe(asked, graph);
    for (uint32_t i = 0; unsafe && i < c.count; i++) c.change[i].node->expr = c.change[i].before;
  }
  bb_scratch_end(scratch);
}
