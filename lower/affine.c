/* affine.c - sums of multiples of variables. */
#include "affine.h"

bb_affine bb_affine_number(int64_t value) {
  return (bb_affine){.is = true, .constant = value};
}

bb_affine bb_affine_variable(uint32_t variable) {
  return (bb_affine){.is = true, .terms = 1, .term = {{variable, 1}}};
}

bb_affine bb_affine_add(bb_affine a, int64_t by, bb_affine b) {
  a.is = a.is && b.is;
  a.constant += by * b.constant;
  for (uint32_t i = 0; i < b.terms; i++) {
    uint32_t k = 0;
    while (k < a.terms && a.term[k].variable != b.term[i].variable) k++;
    if (k == BB_AFFINE_TERMS) return (bb_affine){0};
    if (k == a.terms) {
      a.term[a.terms].variable = b.term[i].variable;
      a.term[a.terms++].by = 0;
    }
    a.term[k].by += by * b.term[i].by;
    if (a.term[k].by == 0) a.term[k] = a.term[--a.terms];
  }
  return a;
}

bb_affine bb_affine_of(bb_tile_index x) {
  bb_affine a, b;
  switch (x->op) {
  case BB_X_CONST: return bb_affine_number((int64_t)x->number);
  case BB_X_ARG: return bb_affine_variable(x->index);
  case BB_X_NEG: return bb_affine_add(bb_affine_number(0), -1, bb_affine_of(x->a[0]));
  case BB_X_ADD:
  case BB_X_SUB:
    a = bb_affine_of(x->a[0]), b = bb_affine_of(x->a[1]);
    return bb_affine_add(a, x->op == BB_X_ADD ? 1 : -1, b);
  case BB_X_MUL:
    a = bb_affine_of(x->a[0]), b = bb_affine_of(x->a[1]);
    if (a.is && a.terms == 0) return bb_affine_add(bb_affine_number(0), a.constant, b);
    if (b.is && b.terms == 0) return bb_affine_add(bb_affine_number(0), b.constant, a);
    return (bb_affine){0};
  default: return (bb_affine){0};
  }
}

bb_tile_index bb_affine_index(bb_tile_program *p, bb_affine a) {
  bb_program *home = p->home;
  bb_tile_index sum = NULL;
  for (uint32_t i = 0; i < a.terms; i++) {
    bb_tile_index x = bb_expr_arg(home, BB_I64, a.term[i].variable);
    int64_t by = a.term[i].by, size = by < 0 ? -by : by;
    if (size != 1)
      x = bb_expr_make(home, BB_X_MUL, bb_expr_const(home, BB_I64, (double)size), x, NULL);
    if (!sum)
      sum = by < 0 ? bb_expr_make(home, BB_X_NEG, x, NULL, NULL) : x;
    else
      sum = bb_expr_make(home, by < 0 ? BB_X_SUB : BB_X_ADD, sum, x, NULL);
  }
  int64_t size = a.constant < 0 ? -a.constant : a.constant;
  bb_tile_index number = bb_expr_const(home, BB_I64, (double)(sum ? size : a.constant));
  if (!sum || a.constant == 0) return sum ? sum : number;
  return bb_expr_make(home, a.constant < 0 ? BB_X_SUB : BB_X_ADD, sum, number, NULL);
}

/* A number that divides every value of the variable; 1 where nothing is known. */
static int64_t multiple_of(const bb_affine_scope *s, uint32_t variable) {
  const bb_tile_loop *loop = s->loop[variable];
  if (!loop || loop->step->op != BB_X_CONST) return 1;
  for (uint32_t i = 0; i < loop->stretches; i++)
    if (loop->stretch[i].from->op != BB_X_CONST || loop->stretch[i].from->number != 0) return 1;
  return (int64_t)loop->step->number;
}

static int64_t floor_to(int64_t x, int64_t step) {
  int64_t rest = x % step;
  return x - (rest < 0 ? rest + step : rest);
}

bb_affine bb_affine_floor_sum(const bb_affine_scope *s, bb_affine a, int64_t step) {
  for (uint32_t i = 0; i < a.terms; i++)
    if (a.term[i].by * multiple_of(s, a.term[i].variable) % step) a.is = false;
  a.constant = floor_to(a.constant, step);
  return a;
}

bb_tile_index bb_affine_floor(const bb_affine_scope *s, bb_affine a, int64_t step) {
  bb_program *home = s->p->home;
  bb_affine sum = bb_affine_floor_sum(s, a, step);
  if (sum.is) return bb_affine_index(s->p, sum);
  bb_tile_index by = bb_expr_const(home, BB_I64, (double)step), x = bb_affine_index(s->p, a);
  return bb_expr_make(home, BB_X_MUL, bb_expr_make(home, BB_X_DIV, x, by, NULL), by, NULL);
}

bool bb_affine_is_multiple(bb_tile_index x, int64_t n, const bb_tile_loop *const *loop,
                           uint32_t loops) {
  bool is[3] = {false};
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++)
    is[i] = bb_affine_is_multiple(x->a[i], n, loop, loops);
  switch (x->op) {
  case BB_X_CONST: return (int64_t)x->number % n == 0;
  case BB_X_ARG:
    for (uint32_t k = 0; k < loops; k++)
      if (loop[k]->variable == x->index)
        return bb_affine_is_multiple(loop[k]->stretch[0].from, n, loop, k) &&
               bb_affine_is_multiple(loop[k]->step, n, loop, k);
    return false;
  case BB_X_MUL: return is[0] || is[1];
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MIN:
  case BB_X_MAX: return is[0] && is[1];
  case BB_X_SELECT: return is[1] && is[2];
  default: return false;
  }
}

/* b - a, with variables replaced by bounds of theirs until a number is left. */
bool bb_affine_at_most(const bb_affine_scope *s, bb_affine a, bb_affine b) {
  bb_affine d = bb_affine_add(b, -1, a);
  for (uint32_t round = 0; d.is && d.terms && round < 8; round++) {
    uint32_t i = 0;
    while (i < d.terms && !s->loop[d.term[i].variable]) i++;
    if (i == d.terms) { /* extents are not negative */
      for (i = 0; i < d.terms; i++)
        if (d.term[i].by < 0) return false;
      break;
    }
    uint32_t v = d.term[i].variable;
    int64_t by = d.term[i].by;
    const bb_tile_loop *loop = s->loop[v];
    if (loop->stretches != 1 || !loop->stretch[0].to) return false;
    bb_affine from = bb_affine_of(loop->stretch[0].from), to = bb_affine_of(loop->stretch[0].to);
    bb_affine least = by > 0 ? from : bb_affine_add(to, 1, bb_affine_number(-1));
    d = bb_affine_add(d, -by, bb_affine_variable(v));
    d = bb_affine_add(d, by, least);
  }
  return d.is && d.constant >= 0;
}
