/* tie.c - extents that an operator needs to be one, though the model names them apart.
 *
 * Exporters give every input names of its own, or leave a name where the same extent is a number
 * elsewhere.  Where an operator makes two of them one, the name declared later stands for the other,
 * and the import begins again, so that every shape is written with one extent from the start.  So it is with
 * sums of names: where past_key + 1 meets past_value + 1, two names are one; where the length of a mask meets
 * past + new, its name stands for the sum.  Where what is left of an axis when it is halved and doubled meets the axis
 * itself, or a shape cuts an axis into pairs, its name stands for twice another.  When the program runs, an input with other
 * extents is refused as any wrong shape is.
 */
#include "import.h"

#include <math.h>
#include <string.h>

typedef struct bb_onnx_tie {
  struct bb_onnx_tie *next;
  const char *name; /* of a dim_param */
  const char
      *meant; /* what it stands for: a sum of numbers and names, which ties may be for, too */
} bb_onnx_tie;

/* The name of an extent that an input declares by a word; NULL: it is none. */
static const char *declared_name(const bb_onnx *m, const bb_extent *extent) {
  if (extent->factor != 1 || extent->count != 1) return NULL;
  const char *name = m->program->symbol[extent->symbol[0]];
  for (uint32_t i = 0; i < m->array->inputs; i++) {
    const bb_array_value *input = &m->array->value[m->array->input[i]];
    for (uint32_t a = 0; a < input->rank; a++)
      if (input->shape[a]->count == 1 && input->shape[a]->symbol[0] == extent->symbol[0])
        return strpbrk(name, "+-*/() ") ? NULL : name;
  }
  return NULL;
}

const bb_extent *bb_onnx_tied(bb_onnx *m, const char *name) {
  for (const bb_onnx_tie *tie = m->ties; tie; tie = tie->next) {
    if (strcmp(tie->name, name) != 0) continue;
    const bb_extent *meant = bb_onnx_sum_extent(m, tie->meant);
    if (!meant) bb_fail(m->ctx, BB_ERROR_INPUT, "extent %s would have to be %s", name, tie->meant);
    return meant;
  }
  return bb_extent_symbol(m->program, name);
}

/* `name`, and `meant` if it is a name, is of the program, which the next import clears. */
static _Noreturn void tie(const bb_onnx_node *n, const char *name, const char *meant) {
  bb_onnx *m = n->m;
  bb_onnx_tie *t = BB_NEW(m->arena, bb_onnx_tie, 1);
  *t = (bb_onnx_tie){.next = m->ties,
                     .name = bb_arena_text(m->arena, name, strlen(name)),
                     .meant = bb_arena_text(m->arena, meant, strlen(meant))};
  m->ties = t;
  m->again = true;
  bb_log(m->ctx, BB_LOG_INFO, "node %s: extent %s is %s", n->name, name, meant);
  bb_fail(m->ctx, BB_ERROR_INPUT, "node %s: extents meet", n->name);
}

static _Noreturn void tie_to_number(const bb_onnx_node *n, const char *name, int64_t number) {
  tie(n, name, bb_arena_printf(n->m->arena, "%lld", (long long)number));
}

/* --- sums --- */

/* The one term, once, that a sum has besides its number; NULL: it has others. */
static const bb_expr *only_term(const bb_onnx_sum *s) {
  const bb_expr *found = NULL;
  for (uint32_t i = 0; i < s->terms; i++) {
    if (s->times[i] == 0) continue;
    if (found || s->times[i] != 1) return NULL;
    found = s->term[i];
  }
  return found;
}

/* A name that has to be a multiple of k stands for k times another; a quotient that has to be one, of a name by a number and
 * rounded, is made exact first. */
static void tie_to_multiple(const bb_onnx_node *n, const bb_expr *term, double k) {
  bb_onnx *m = n->m;
  for (uint32_t depth = 0; term && term->op == BB_X_DIV && depth < 8; depth++) {
    bb_onnx_sum of = {0};
    if (term->a[1]->op != BB_X_CONST || !bb_onnx_sum_add(m, &of, term->a[0], 1)) return;
    k = term->a[1]->number;
    term = only_term(&of);
  }
  if (!term || term->op != BB_X_SYMBOL || !(k >= 2 && k < 1 << 20)) return;
  const char *text = m->program->symbol[term->index];
  const char *name = declared_name(m, bb_extent_symbol(m->program, text));
  const char *part = bb_arena_printf(m->arena, "%s_by%d", text, (int)k);
  while (bb_symbol_find(m->program, part) != BB_NONE) part = bb_arena_printf(m->arena, "%s_", part);
  if (name) tie(n, name, bb_arena_printf(m->arena, "%d*%s", (int)k, part));
}

/* Of x / (j * k), a quotient of the quotient d = x / j by k: d.  `quotient` is by a number, a multiple of k. */
static const bb_expr *quotient_of(bb_onnx *m, const bb_expr *quotient, double k) {
  const bb_expr *by = quotient->a[1];
  return bb_onnx_tidy_make(m, BB_X_DIV, quotient->a[0],
                           bb_expr_const(m->program, by->dtype, by->number / k));
}

static bool is_by_multiple(const bb_expr *e, double k) {
  return e->op == BB_X_DIV && e->a[1]->op == BB_X_CONST && k >= 2 && e->a[1]->number >= k &&
         fmod(e->a[1]->number, k) == 0;
}

/* Where k * (d / k), d/k rounded down, has to be d or less than k below it: what is left of d has to be a multiple of k. */
static void tie_multiple(const bb_onnx_node *n, const bb_onnx_sum *s) {
  bb_onnx *m = n->m;
  for (uint32_t i = 0; i < s->terms; i++) {
    double k = fabs(s->times[i]), sign = s->times[i] < 0 ? -1 : 1;
    if (!is_by_multiple(s->term[i], k)) continue;
    bb_onnx_sum rest = {.number = -sign * s->number}, more;
    for (uint32_t t = 0; t < s->terms; t++)
      if (t != i && !bb_onnx_sum_add(m, &rest, s->term[t], -sign * s->times[t])) return;
    more = rest;
    if (!bb_onnx_sum_add(m, &more, quotient_of(m, s->term[i], k), -1)) return;
    bool fits = -more.number >= 0 && -more.number < k && fmod(rest.number, k) == 0;
    for (uint32_t t = 0; t < more.terms; t++) fits &= more.times[t] == 0;
    if (fits) tie_to_multiple(n, only_term(&rest), k);
  }
}

/* What is left of the difference of two sums: names that stand alone on either side, each `times` times. */
typedef struct difference {
  const char *name[2][BB_ONNX_TERMS];
  uint32_t count[2];
  double times, number; /* the number is on the first side */
} difference;

/* False: something else than declared names is left, or they are there in unlike numbers. */
static bool read_difference(bb_onnx *m, const bb_onnx_sum *s, difference *d) {
  *d = (difference){.number = s->number};
  for (uint32_t i = 0; i < s->terms; i++) {
    if (s->times[i] == 0) continue;
    bool second = s->times[i] < 0;
    if (s->term[i]->op != BB_X_SYMBOL || (d->times && fabs(s->times[i]) != d->times)) return false;
    const char *text = m->program->symbol[s->term[i]->index];
    d->times = fabs(s->times[i]);
    text = declared_name(m, bb_extent_symbol(m->program, text));
    if (!text) return false;
    d->name[second][d->count[second]++] = text;
  }
  return true;
}

/* The only name of one side stands for the other side's names and number, of which there is at least as much as nothing. */
static void tie_to_sum(const bb_onnx_node *n, const difference *d, bool side) {
  uint32_t others = d->count[!side];
  double number = side ? d->number : -d->number;
  if (d->count[side] != 1 || others == 0 || d->times != 1 || others + number < 0) return;
  if (number != (double)(int64_t)number) return;
  bb_buffer sum = {.arena = n->m->arena};
  for (uint32_t i = 0; i < others; i++) bb_put(&sum, i ? " + %s" : "%s", d->name[!side][i]);
  if (number) bb_put(&sum, number > 0 ? " + %.0f" : " - %.0f", fabs(number));
  tie(n, d->name[side][0], sum.data);
}

/* Makes two sums one by what is left of their difference: a name and a number, as many names of one as of the other, in
 * the order in which they are declared, or a name and a sum. */
static void tie_sums(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b) {
  bb_onnx *m = n->m;
  bb_onnx_sum s = {0};
  difference d;
  if (!bb_onnx_sum_add(m, &s, bb_onnx_extent_expr(m, a), 1)) return;
  if (!bb_onnx_sum_add(m, &s, bb_onnx_extent_expr(m, b), -1)) return;
  bb_onnx_sum_expr(m, &s, BB_I64); /* sorts it */
  tie_multiple(n, &s);
  if (!read_difference(m, &s, &d)) return;
  if (d.count[0] && d.count[0] == d.count[1] && d.number == 0) { /* the name declared first stays */
    const char *x = d.name[0][0], *y = d.name[1][0];
    bool first = bb_symbol_find(m->program, x) < bb_symbol_find(m->program, y);
    tie(n, first ? y : x, first ? x : y);
  }
  if (d.count[0] + d.count[1] == 1) {
    double number = d.number / (d.count[0] ? -d.times : d.times);
    if (number >= 1 && number == (double)(int64_t)number)
      tie_to_number(n, d.name[!d.count[0]][0], (int64_t)number);
  }
  tie_to_sum(n, &d, d.number > 0);
  tie_to_sum(n, &d, d.number <= 0);
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

const bb_extent *bb_onnx_common_extent(bb_onnx *m, const bb_extent *a, const bb_extent *b) {
  bb_program *p = m->program;
  const bb_extent *both = bb_onnx_number(m, common_divisor(a->factor, b->factor));
  for (uint32_t i = 0, k = 0; i < a->count && k < b->count;) { /* sorted */
    if (a->symbol[i] == b->symbol[k])
      both = bb_extent_multiply(p, both, bb_extent_symbol(p, p->symbol[a->symbol[i]]));
    if (a->symbol[i] == b->symbol[k])
      i++, k++;
    else if (a->symbol[i] < b->symbol[k])
      i++;
    else
      k++;
  }
  return both;
}

/* Are all names of a product such as inputs declare? */
static bool is_declared(bb_onnx *m, const bb_extent *product) {
  for (uint32_t i = 0; i < product->count; i++)
    if (!declared_name(m, bb_extent_symbol(m->program, m->program->symbol[product->symbol[i]])))
      return false;
  return true;
}

/* Where of is by * x, x a name that stands for nothing yet: it is of / by.  Nothing divides both. */
static void tie_to_quotient(const bb_onnx_node *n, const bb_extent *of, const bb_extent *times) {
  bb_onnx *m = n->m;
  if (times->count != 1 || of->count == 0 || !is_declared(m, of) || !is_declared(m, times)) return;
  bb_buffer text = {.arena = m->arena};
  if (of->factor != 1) bb_put(&text, "%lld*", (long long)of->factor);
  for (uint32_t i = 0; i < of->count; i++)
    bb_put(&text, i ? "*%s" : "%s", m->program->symbol[of->symbol[i]]);
  bb_put(&text, "/%lld", (long long)times->factor);
  tie(n, m->program->symbol[times->symbol[0]], text.data);
}

/* Where of / by, which is whole, meets d: of and d * by are one. */
static void tie_quotients(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b) {
  bb_onnx *m = n->m;
  if (!a->factor || !b->factor || !bb_onnx_multiply_out(m, &a, &b)) return;
  bb_onnx_same_product(n, a, b);
  const bb_extent *both = bb_onnx_common_extent(m, a, b);
  a = bb_extent_divide(m->program, a, both);
  b = bb_extent_divide(m->program, b, both);
  tie_to_quotient(n, a, b);
  tie_to_quotient(n, b, a);
}

/* Where a meets x * a, x a name: x is 1. */
static void tie_to_one(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b) {
  if (!a->factor || !b->factor) return;
  const bb_extent *both = bb_onnx_common_extent(n->m, a, b);
  const bb_extent *more = both == a ? b : both == b ? a : NULL;
  const char *name = more ? declared_name(n->m, bb_extent_divide(n->m->program, more, both)) : NULL;
  if (name) tie_to_number(n, name, 1);
}

bool bb_onnx_same_extent(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b) {
  if (a == b) return true;
  const char *x = declared_name(n->m, a), *y = declared_name(n->m, b);
  int64_t known = bb_extent_value(x ? b : a);
  if (x && y) {
    bool first = a->symbol[0] < b->symbol[0];
    tie(n, first ? y : x, first ? x : y);
  }
  if ((x || y) && known >= 1) tie_to_number(n, x ? x : y, known);
  tie_to_one(n, a, b);
  tie_quotients(n, a, b);
  tie_sums(n, a, b);
  return false;
}

/* Where d of one product meets k * (d / k), d/k rounded down, of the other: d has to be a multiple of k. */
static void tie_rounded(const bb_onnx_node *n, const bb_extent *whole, const bb_extent *parts) {
  bb_onnx *m = n->m;
  for (uint32_t i = 0; i < parts->count; i++) {
    const bb_expr *part = bb_expr_symbol(m->program, parts->symbol[i]),
                  *meant = bb_onnx_symbol_meaning(m, part);
    bool number = meant && meant->op == BB_X_DIV && meant->a[1]->op == BB_X_CONST;
    if (!number || !(meant->a[1]->number < 1e15)) continue;
    double k = (double)common_divisor(parts->factor, (int64_t)meant->a[1]->number);
    if (!is_by_multiple(meant, k)) continue;
    const bb_expr *of = quotient_of(m, meant, k);
    const bb_extent *met = bb_onnx_expr_extent(m, of);
    if (met && met->factor && bb_extent_divide(m->program, whole, met)) tie_to_multiple(n, of, k);
  }
}

void bb_onnx_tie_quotient(const bb_onnx_node *n, const bb_extent *a, const bb_extent *by) {
  bb_program *p = n->m->program;
  if (a->factor == 0 || by->factor == 0) return;
  const bb_extent *both = bb_onnx_common_extent(n->m, a, by);
  a = bb_extent_divide(p, a, both);
  by = bb_extent_divide(p, by, both);
  tie_rounded(n, a, by);
  if (by->count == 0 && a->count == 1)
    tie_to_multiple(n, bb_expr_symbol(p, a->symbol[0]), (double)by->factor);
}

/* The names of a shape in the order of its axes, but those of `both`, into left[0..BB_ONNX_RANK); their number, or BB_NONE: there is one
 * that no input declares, or there are more. */
static uint32_t names_left(const bb_onnx_node *n, uint32_t rank, const bb_extent *const *shape,
                           const bb_extent *both, const bb_extent **left) {
  bb_program *p = n->m->program;
  uint32_t count = 0;
  for (uint32_t a = 0; a < rank; a++)
    for (uint32_t i = 0; i < shape[a]->count; i++) {
      const bb_extent *one = bb_extent_symbol(p, p->symbol[shape[a]->symbol[i]]),
                      *rest = bb_extent_divide(p, both, one);
      if (rest)
        both = rest;
      else if (count == BB_ONNX_RANK || !declared_name(n->m, one))
        return BB_NONE;
      else
        left[count++] = one;
    }
  return count;
}

void bb_onnx_tie_shapes(const bb_onnx_node *n, uint32_t from, const bb_extent *const *a,
                        uint32_t to, const bb_extent *const *b) {
  const bb_extent *x = bb_onnx_product(n->m, from, a), *y = bb_onnx_product(n->m, to, b);
  const bb_extent *left[BB_ONNX_RANK], *other[BB_ONNX_RANK];
  if (x->factor != y->factor || x->factor == 0) return;
  const bb_extent *both = bb_onnx_common_extent(n->m, x, y);
  uint32_t count = names_left(n, from, a, both, left);
  if (count == BB_NONE || count == 0 || count != names_left(n, to, b, both, other)) return;
  bb_onnx_same_extent(n, left[0], other[0]);
}

bool bb_onnx_same_product(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b) {
  bb_program *p = n->m->program;
  if (a == b) return true;
  if (a->factor == 0 || b->factor == 0) return false;
  bb_onnx_multiply_out(n->m, &a, &b);
  const bb_extent *both = bb_onnx_common_extent(n->m, a, b);
  a = bb_extent_divide(p, a, both);
  b = bb_extent_divide(p, b, both);
  tie_rounded(n, a, b);
  tie_rounded(n, b, a);
  return bb_onnx_exact_where(n->m, a, b) || bb_onnx_exact_where(n->m, b, a) ||
         bb_onnx_same_extent(n, a, b);
}
