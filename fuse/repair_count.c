/* repair_count.c - sums over masked elements: what they are where no element is let through.
 *
 * select(p, exp(x-m), 0) is 0 where p is false, whatever m is; but the factors of folds leave the sum, and a
 * maximum of nothing, a division by a sum of nothing would make no number of it.  So the chain gets
 * one more fold, how many elements p lets through.  Where there is none, all terms are what the term is with 0 in the
 * place of each selection:
 *   sum select(p, exp(x-m), 0)         is 0
 *   sum select(p, exp(x-m), 0)/(s+1)   is 0/(s+1)
 * which reads no element.  An equal count, as an earlier repair left it, serves again.
 */
#include "repair.h"

/* Where a term may be something else than its rest; both NULL: everywhere, or not known. */
typedef struct masked {
  const bb_expr *let; /* of elements */
  const bb_expr *rest;
  bool beside; /* elements are factors of what is masked: with an infinite one its 0 is no number */
} masked;

static const masked nowhere_known = {NULL, NULL, false};

static const bb_expr *make(const bb_repair *r, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(r->program, op, a, b, NULL);
}

static bool is_number(const bb_expr *expr, double value) {
  return bb_expr_is_number(bb_repair_bare(expr), value);
}

/* Of extrema: beside their values. */
static bool reads_indices(const bb_repair *r, const bb_expr *expr) {
  for (uint32_t i = 0; i < r->folds; i++)
    if (r->fold[i].payload && bb_expr_uses_arg(expr, r->fold[i].result + 1)) return true;
  return false;
}

static masked masked_by(const bb_repair *r, const bb_expr *expr);

static masked of_selection(const bb_repair *r, const bb_expr *expr) {
  bool first = is_number(expr->a[2], 0), second = is_number(expr->a[1], 0);
  if (bb_repair_reads_results(expr->a[0]) || first == second) return nowhere_known;
  const bb_expr *let = first ? expr->a[0] : make(r, BB_X_NOT, expr->a[0], NULL);
  masked inner = masked_by(r, expr->a[first ? 1 : 2]);
  if (inner.let && is_number(inner.rest, 0)) let = make(r, BB_X_AND, let, inner.let);
  return (masked){let, bb_expr_const(r->program, BB_F32, 0), false};
}

/* A masked factor beside another one, which is no element's: 0 times an infinity is no number. */
static masked of_factor(const bb_repair *r, const bb_expr *expr, uint32_t which) {
  const bb_expr *other = expr->a[!which];
  masked m = masked_by(r, expr->a[which]);
  m.beside |= bb_repair_reads_leaves(r, other);
  if (!m.let || !bb_repair_reads_results(other)) return m;
  if (bb_repair_reads_leaves(r, other)) return nowhere_known;
  m.rest = make(r, expr->op, which ? other : m.rest, which ? m.rest : other);
  return m;
}

static masked of_sum(const bb_repair *r, const bb_expr *expr) {
  masked a = masked_by(r, expr->a[0]), b = masked_by(r, expr->a[1]);
  if (!a.let || !b.let) return nowhere_known;
  const bb_expr *let = a.let == b.let ? a.let : make(r, BB_X_OR, a.let, b.let);
  return (masked){let, make(r, expr->op, a.rest, b.rest), a.beside || b.beside};
}

static masked masked_by(const bb_repair *r, const bb_expr *expr) {
  masked m = nowhere_known;
  switch (expr->op) {
  case BB_X_SELECT: return of_selection(r, expr);
  case BB_X_CAST: return masked_by(r, expr->a[0]);
  case BB_X_NEG:
    m = masked_by(r, expr->a[0]);
    if (m.let) m.rest = make(r, BB_X_NEG, m.rest, NULL);
    return m;
  case BB_X_MUL: m = of_factor(r, expr, 0); return m.let ? m : of_factor(r, expr, 1);
  case BB_X_DIV: return of_factor(r, expr, 0);
  case BB_X_ADD:
  case BB_X_SUB: return of_sum(r, expr);
  default: return nowhere_known;
  }
}

/* --- counts in the chain --- */

static const bb_expr *ones(const bb_repair *r, const bb_expr *let) {
  return bb_expr_make(r->program, BB_X_SELECT, let, bb_expr_const(r->program, BB_F32, 1),
                      bb_expr_const(r->program, BB_F32, 0));
}

bool bb_repair_is_count(const bb_repair_fold *f) {
  const bb_expr *term = f->term ? bb_repair_bare(f->term) : NULL;
  return f->fold == BB_MONOID_SUM && term && term->op == BB_X_SELECT &&
         !bb_repair_reads_results(term) && is_number(term->a[1], 1) && is_number(term->a[2], 0);
}

/* A product's count has the rows of the operand whose elements are masked. */
static bool of_other_rows(const bb_repair *r, const bb_expr *let) {
  for (uint32_t i = 0; i < r->leaves; i++)
    if (r->leaf[i].other && bb_expr_uses_arg(let, BB_REPAIR_RESULTS + i)) return true;
  return false;
}

static bool add_count(bb_repair *r, uint32_t fold, const bb_expr *let) {
  bb_repair_fold *f = &r->fold[fold];
  const bb_expr *term = ones(r, let);
  for (uint32_t i = 0; i < r->folds; i++) {
    f->counted = r->fold[i].result;
    if (r->fold[i].fold == BB_MONOID_SUM && r->fold[i].term == term) return true;
  }
  if (of_other_rows(r, let))
    return bb_repair_refuse(r, "what a mask lets through depends on both operands of a product");
  if (r->folds == BB_REPAIR_FOLDS || r->results == BB_REPAIR_RESULTS)
    return bb_repair_refuse(r, "the chain has too many folds");
  f->counted = r->results;
  r->fold[r->folds++] = (bb_repair_fold){.port = BB_NONE,
                                         .second = f->second,
                                         .fold = BB_MONOID_SUM,
                                         .kind = f->kind == BB_TERM_DOT ? BB_TERM_ROWS : f->kind,
                                         .result = r->results++,
                                         .dtype = BB_F32,
                                         .along = f->along,
                                         .term = term,
                                         .counted = BB_NONE};
  return true;
}

/* Of a tuple's components: their readers have seen to it. */
static bool of_tuple(const bb_repair *r, const bb_repair_fold *f) {
  const bb_node *map = bb_node_get(r->graph, bb_repair_map(r, f->second));
  return f->port != BB_NONE && map->out[f->port].fold->id == BB_MONOID_TUPLE;
}

/* How many elements the whole has; NULL: one at least. */
static const bb_expr *terms_of(const bb_repair *r) {
  bb_dim dim = bb_node_get(r->graph, r->v)->dim, along = r->fold[0].along;
  const bb_expr *terms = bb_expr_extent_name(r->program, dim);
  if (along != BB_NO_DIM && along != dim)
    terms = make(r, BB_X_MUL, terms, bb_expr_extent_name(r->program, along));
  terms = bb_expr_without_names(r->program, bb_repair_around(r, terms));
  return terms->op == BB_X_CONST && terms->number > 0 ? NULL : terms;
}

/* A count may be 0, as no extremum is infinite over the reals: what the program says of a value there stays, unless the
 * same count says what the whole sum is. */
static bool keeps_guards(bb_repair *r, uint32_t fold) {
  const bb_repair_fold *f = &r->fold[fold];
  for (uint32_t i = 0; i < r->results; i++)
    if (f->kept >> i & 1 && f->counted != i) {
      r->refused = fold;
      return bb_repair_refuse(r, "a value that is said for no elements at all is a part of terms");
    }
  return true;
}

bool bb_repair_count(bb_repair *r) {
  uint32_t folds = r->folds;
  r->terms = terms_of(r);
  for (uint32_t i = 0; i < folds; i++) {
    bb_repair_fold *f = &r->fold[i];
    f->counted = BB_NONE;
    if (f->fold != BB_MONOID_SUM || of_tuple(r, f) || !bb_repair_reads_results(f->term)) continue;
    masked m = masked_by(r, f->term);
    if (!m.let || bb_repair_reads_leaves(r, m.rest) || reads_indices(r, m.rest)) continue;
    if (m.beside && r->program->strict)
      return bb_repair_refuse(r, "what is masked has factors that may be infinite");
    f->rest = m.rest;
    if (!add_count(r, i, m.let)) return false;
  }
  for (uint32_t i = 0; i < folds; i++)
    if (!keeps_guards(r, i)) return false;
  return true;
}
