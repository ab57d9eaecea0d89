/* exact.c - quotients of extents that a model needs to be whole: what is left for the open axis of a reshape of names.
 *
 * Of [B,S] as [-1,64] either name may have the factor, or both a part of it, so neither is made a multiple: the open axis is
 * B*S/64 elements, and a run in which that is not whole is refused.  Where such an axis meets another, B*S/64 = B tells more,
 * and names are tied then (tie.c).
 */
#include "formula.h"
#include "import.h"

typedef struct bb_onnx_exact {
  struct bb_onnx_exact *next;
  const bb_extent *quotient, *of, *by; /* quotient: a symbol */
} bb_onnx_exact;

/* by * (of / by), rounded down, is of or less: what lies behind it becomes an extent, which no run may have negative. */
static void check_in_runs(bb_onnx *m, const bb_expr *quotient, const bb_extent *of,
                          const bb_extent *by) {
  const bb_expr *whole = bb_onnx_tidy_make(m, BB_X_MUL, bb_onnx_extent_expr(m, by), quotient);
  bb_onnx_expr_extent(m, bb_onnx_tidy_make(m, BB_X_SUB, whole, bb_onnx_extent_meaning(m, of)));
}

static void note(bb_onnx *m, const bb_extent *quotient, const bb_extent *of, const bb_extent *by) {
  for (const bb_onnx_exact *e = m->exact; e; e = e->next)
    if (e->quotient == quotient) return;
  bb_onnx_exact *e = BB_NEW(m->arena, bb_onnx_exact, 1);
  *e = (bb_onnx_exact){.next = m->exact, .quotient = quotient, .of = of, .by = by};
  m->exact = e;
}

const bb_extent *bb_onnx_exact_quotient(bb_onnx *m, const bb_extent *of, const bb_extent *by) {
  const bb_extent *both = bb_onnx_common_extent(m, of, by);
  of = bb_extent_divide(m->program, of, both);
  by = bb_extent_divide(m->program, by, both);
  const bb_expr *quotient =
      bb_onnx_tidy_make(m, BB_X_DIV, bb_onnx_extent_meaning(m, of), bb_onnx_extent_meaning(m, by));
  const bb_extent *extent = bb_onnx_expr_extent(m, quotient);
  if (!extent) return NULL;
  check_in_runs(m, quotient, of, by);
  if (extent->count == 1 && extent->factor == 1) note(m, extent, of, by);
  return extent;
}

bool bb_onnx_exact_where(bb_onnx *m, const bb_extent *whole, const bb_extent *parts) {
  bb_program *p = m->program;
  for (uint32_t i = 0; i < parts->count; i++) {
    const bb_expr *part = bb_expr_symbol(p, parts->symbol[i]),
                  *meant = bb_onnx_symbol_meaning(m, part);
    if (!meant || meant->op != BB_X_DIV) continue;
    const bb_extent *of = bb_onnx_expr_extent(m, meant->a[0]),
                    *by = bb_onnx_expr_extent(m, meant->a[1]),
                    *quotient = bb_onnx_expr_extent(m, part);
    if (!of || !by || !by->factor || !quotient) continue;
    const bb_extent *rest = bb_extent_divide(p, parts, quotient);
    if (bb_extent_multiply(p, whole, by) != bb_extent_multiply(p, rest, of)) continue;
    check_in_runs(m, part, of, by);
    note(m, quotient, of, by);
    return true;
  }
  return false;
}

const bb_extent *bb_onnx_whole_extent(bb_onnx *m, const bb_extent *extent) {
  bb_program *p = m->program;
  for (const bb_onnx_exact *e = m->exact; e; e = e->next)
    for (;;) {
      const bb_extent *rest = extent->factor ? bb_extent_divide(p, extent, e->quotient) : NULL;
      if (rest) rest = bb_extent_divide(p, rest, e->by);
      if (!rest) break;
      extent = bb_extent_multiply(p, rest, e->of);
    }
  return extent;
}

bool bb_onnx_multiply_out(bb_onnx *m, const bb_extent **a, const bb_extent **b) {
  bb_program *p = m->program;
  bool any = false;
  for (const bb_onnx_exact *e = m->exact; e; e = e->next) /* those made of others before these */
    for (int side = 0; side < 2; side++)
      for (;;) {
        const bb_extent **x = side ? b : a, **y = side ? a : b;
        const bb_extent *rest = (*x)->factor ? bb_extent_divide(p, *x, e->quotient) : NULL;
        if (!rest) break;
        *x = bb_extent_multiply(p, rest, e->of);
        *y = bb_extent_multiply(p, *y, e->by);
        any = true;
      }
  return any;
}
