/* extent.c - extents, and the integer expressions that shape arithmetic makes of them.
 *
 * Every extent is at least 1 (empty tensors are refused), but for what data decides (found.c).  That decides most of the
 * comparisons that exporters leave in a graph, such as Where(shape == -1, 1, shape).
 */
#include "formula.h"

#include <math.h>
#include <string.h>

#define HUGE_INDEX 4.6e18 /* "to the end" in a Slice, about 2^62 */

static const int64_t element_limit = (int64_t)1 << 40;

const bb_extent *bb_onnx_number(bb_onnx *m, int64_t value) {
  return bb_extent_number(m->program, value);
}

bool bb_onnx_is_number(const bb_extent *extent, int64_t value) {
  return bb_extent_value(extent) == value;
}

bool bb_onnx_is_one(const bb_extent *extent) {
  return bb_onnx_is_number(extent, 1);
}

const bb_extent *bb_onnx_product(bb_onnx *m, uint32_t count, const bb_extent *const *extent) {
  const bb_extent *product = bb_onnx_number(m, 1);
  for (uint32_t i = 0; i < count; i++) product = bb_extent_multiply(m->program, product, extent[i]);
  return product;
}

int64_t bb_onnx_count(uint32_t rank, const bb_extent *const *shape) {
  int64_t count = 1;
  for (uint32_t i = 0; i < rank; i++) /* no elements, whatever the other extents are */
    if (bb_extent_value(shape[i]) == 0) return 0;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t value = bb_extent_value(shape[i]);
    if (value < 0 || __builtin_mul_overflow(count, value, &count)) return -1;
  }
  return count;
}

const bb_extent *bb_onnx_fresh(bb_onnx *m, const char *stem) {
  const char *name = bb_arena_printf(m->arena, "%s_%u", stem, m->symbols++);
  return bb_onnx_tied(m, name);
}

void bb_onnx_check_shape(bb_onnx *m, const char *what, bb_dtype dtype, uint32_t rank,
                         const bb_extent *const *shape) {
  int64_t count = bb_dtype_bytes(dtype);
  if (rank > BB_ONNX_RANK)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: rank %u; at most %d is read", what, rank, BB_ONNX_RANK);
  for (uint32_t i = 0; i < rank; i++) {
    if (shape[i]->factor == 0)
      bb_fail(m->ctx, BB_ERROR_INPUT, "%s: axis %u has extent zero", what, i);
    if (__builtin_mul_overflow(count, shape[i]->factor, &count) || count > element_limit)
      bb_fail(m->ctx, BB_ERROR_INPUT, "%s: the tensor is larger than 2^40 bytes", what);
  }
}

/* --- expressions --- */

const bb_expr *bb_onnx_extent_expr(bb_onnx *m, const bb_extent *extent) {
  bb_program *p = m->program;
  const bb_expr *product = bb_expr_const(p, BB_I64, (double)extent->factor);
  for (uint32_t i = 0; i < extent->count; i++)
    product = f_mul(p, product, bb_expr_symbol(p, extent->symbol[i]));
  return product;
}

const bb_expr *bb_onnx_symbol_meaning(bb_onnx *m, const bb_expr *symbol) {
  const char *name = m->program->symbol[symbol->index], *text = name, *wrong;
  if (!strpbrk(name, "+-*/() ")) return NULL;
  const bb_expr *meant = bb_expr_parse(m->program, &text, name + strlen(name), NULL, NULL, &wrong);
  return !meant || *text || meant == symbol ? NULL : meant;
}

const bb_expr *bb_onnx_extent_meaning(bb_onnx *m, const bb_extent *extent) {
  const bb_expr *e = bb_onnx_extent_expr(m, extent);
  const bb_expr *meant = e->op == BB_X_SYMBOL ? bb_onnx_symbol_meaning(m, e) : NULL;
  return meant ? meant : e;
}

const bb_expr *bb_onnx_tidy_make(bb_onnx *m, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_onnx_tidy(m, bb_expr_make(m->program, op, a, b, NULL));
}

const bb_extent *bb_onnx_expr_product(bb_onnx *m, const bb_expr *e) {
  if (e->op == BB_X_CONST) {
    bool whole = e->number >= 0 && e->number <= HUGE_INDEX && e->number == floor(e->number);
    return whole ? bb_onnx_number(m, (int64_t)e->number) : NULL;
  }
  if (e->op == BB_X_SYMBOL) return bb_extent_symbol(m->program, m->program->symbol[e->index]);
  if (e->op == BB_X_CAST && !bb_dtype_is_float(e->a[0]->dtype) && !bb_dtype_is_stored(e->dtype))
    return bb_onnx_expr_product(m, e->a[0]);
  if (e->op != BB_X_MUL) return NULL;
  const bb_extent *a = bb_onnx_expr_product(m, e->a[0]),
                  *b = a ? bb_onnx_expr_product(m, e->a[1]) : NULL;
  return b ? bb_onnx_whole_extent(m, bb_extent_multiply(m->program, a, b)) : NULL;
}

const bb_extent *bb_onnx_expr_extent(bb_onnx *m, const bb_expr *e) {
  if (e->op == BB_X_CONST && !(e->number >= 0)) return NULL;
  if (e->op == BB_X_CONST && !(e->number < HUGE_INDEX))
    bb_fail(m->ctx, BB_ERROR_INPUT, "an extent of %g is too large", e->number);
  const bb_extent *product = bb_onnx_expr_product(m, e);
  if (product) return product;
  if (e->op == BB_X_MUL) {
    const bb_extent *a = bb_onnx_expr_extent(m, e->a[0]), *b = bb_onnx_expr_extent(m, e->a[1]);
    return a && b ? bb_onnx_whole_extent(m, bb_extent_multiply(m->program, a, b)) : NULL;
  }
  bb_buffer text = {.arena = m->arena};
  bb_expr_print(&text, m->program, e, BB_EXPR_TEXT, 0, NULL);
  return bb_extent_symbol(m->program, text.data);
}

double bb_onnx_least(bb_onnx *m, const bb_expr *e) {
  if (e->op == BB_X_CONST) return e->number;
  const bb_extent *product = bb_onnx_expr_product(m, e);
  if (product) return bb_onnx_extent_least(m, product);
  const bb_expr *a = e->a[0], *b = e->a[1];
  switch (e->op) {
  case BB_X_ADD: return bb_onnx_least(m, a) + bb_onnx_least(m, b);
  case BB_X_SUB: /* what is left of a beyond its least and another */
    return b->op == BB_X_MIN && (b->a[0] == a || b->a[1] == a) ? 0 : -INFINITY;
  case BB_X_MIN: return fmin(bb_onnx_least(m, a), bb_onnx_least(m, b));
  case BB_X_MAX: return fmax(bb_onnx_least(m, a), bb_onnx_least(m, b));
  case BB_X_DIV: {
    double least = bb_onnx_least(m, a);
    if (!(least >= 0 && bb_onnx_least(m, b) > 0)) return -INFINITY;
    return b->op == BB_X_CONST ? floor(least / b->number) : 0;
  }
  case BB_X_COORD: return 0;
  default: return -INFINITY;
  }
}

/* The greatest value that an expression can have, as far as that is known. */
static double most_of(bb_onnx *m, const bb_expr *e) {
  const bb_expr *a = e->a[0], *b = e->a[1];
  switch (e->op) {
  case BB_X_CONST: return e->number;
  case BB_X_ADD: return most_of(m, a) + most_of(m, b);
  case BB_X_SUB: return most_of(m, a) - bb_onnx_least(m, b);
  case BB_X_MIN: return fmin(most_of(m, a), most_of(m, b));
  case BB_X_MAX: return fmax(most_of(m, a), most_of(m, b));
  default: return INFINITY;
  }
}

static const bb_expr *truth(bb_onnx *m, bool value) {
  return bb_expr_const(m->program, BB_BOOL, value);
}

/* Decides a comparison where every value of the symbols gives the same answer. */
static const bb_expr *tidy_comparison(bb_onnx *m, const bb_expr *e) {
  const bb_expr *a = e->a[0], *b = e->a[1];
  if (a == b) return truth(m, e->op == BB_X_EQ || e->op == BB_X_LE);
  bool a_known = a->op == BB_X_CONST, b_known = b->op == BB_X_CONST;
  double low_a = bb_onnx_least(m, a), low_b = bb_onnx_least(m, b);
  bool above = b_known && low_a > b->number; /* a > b */
  bool below = a_known && a->number < low_b; /* a < b */
  bool not_below = b_known && low_a >= b->number;
  bool not_above = a_known && a->number <= low_b;
  switch (e->op) {
  case BB_X_EQ: return above || below ? truth(m, false) : e;
  case BB_X_NE: return above || below ? truth(m, true) : e;
  case BB_X_LT: return below ? truth(m, true) : not_below ? truth(m, false) : e;
  default: return not_above ? truth(m, true) : above ? truth(m, false) : e;
  }
}

static const bb_expr *tidy_extremum(bb_onnx *m, const bb_expr *e) {
  const bb_expr *a = e->a[0], *b = e->a[1];
  if (a == b) return a;
  if (a->op == BB_X_CONST) {
    const bb_expr *swap = a;
    a = b;
    b = swap;
  }
  if (b->op != BB_X_CONST) return e;
  bool at_least = bb_onnx_least(m, a) >= b->number;
  bool at_most = b->number >= HUGE_INDEX || most_of(m, a) <= b->number;
  if (e->op == BB_X_MAX) return at_least ? a : at_most ? b : e;
  return at_least ? b : at_most ? a : e;
}

/* a + sign * b. */
static const bb_expr *tidy_sum(bb_onnx *m, const bb_expr *e, double sign) {
  bb_onnx_sum s = {0};
  bool fits = bb_onnx_sum_add(m, &s, e->a[0], 1) && bb_onnx_sum_add(m, &s, e->a[1], sign);
  return fits ? bb_onnx_sum_expr(m, &s, e->dtype) : e;
}

const bb_expr *bb_onnx_tidy(bb_onnx *m, const bb_expr *e) {
  bool comparison = e->op == BB_X_EQ || e->op == BB_X_NE || e->op == BB_X_LT || e->op == BB_X_LE;
  if (comparison && !bb_dtype_is_float(e->a[0]->dtype) && !bb_dtype_is_float(e->a[1]->dtype))
    return tidy_comparison(m, e);
  if (e->op == BB_X_SELECT && e->a[1] == e->a[2]) return e->a[1];
  if (bb_dtype_is_float(e->dtype) || e->dtype == BB_BOOL) return e;
  switch (e->op) {
  case BB_X_CAST: return bb_dtype_is_float(e->a[0]->dtype) ? bb_onnx_whole_of_float(m, e) : e;
  case BB_X_ADD: return tidy_sum(m, e, 1);
  case BB_X_SUB: return tidy_sum(m, e, -1);
  case BB_X_MIN:
  case BB_X_MAX: return tidy_extremum(m, e);
  case BB_X_DIV:
  case BB_X_MOD:
  case BB_X_FMOD: return bb_onnx_tidy_quotient(m, e);
  case BB_X_MUL: {
    const bb_extent *product = bb_onnx_expr_product(m, e);
    return product ? bb_onnx_extent_expr(m, product) : e;
  }
  default: return e;
  }
}

/* --- broadcasting --- */

/* The extent of axis `axis` of a result of rank `rank`. */
static const bb_extent *broadcast_axis(const bb_onnx_node *n, uint32_t count,
                                       bb_onnx_value *const *v, uint32_t rank, uint32_t axis) {
  const bb_extent *extent = NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (axis + v[i]->rank < rank) continue;
    const bb_extent *own = v[i]->shape[axis + v[i]->rank - rank];
    if (!extent || bb_onnx_is_one(extent)) {
      extent = own;
    } else if (!bb_onnx_is_one(own) && !bb_onnx_same_extent(n, extent, own)) {
      bb_buffer shapes = {.arena = n->m->arena};
      for (uint32_t k = 0; k < count; k++) {
        bb_put(&shapes, k ? " and " : "");
        bb_onnx_put_shape(&shapes, n->m, v[k]->rank, v[k]->shape);
      }
      bb_onnx_refuse(n, "shapes %s do not broadcast", shapes.data);
    }
  }
  return extent;
}

const bb_extent *const *bb_onnx_broadcast_shapes(const bb_onnx_node *n, uint32_t count,
                                                 bb_onnx_value *const *v, uint32_t *rank) {
  *rank = 0;
  for (uint32_t i = 0; i < count; i++)
    if (v[i]->rank > *rank) *rank = v[i]->rank;
  const bb_extent **shape = BB_NEW(n->m->program->arena, const bb_extent *, *rank);
  for (uint32_t a = 0; a < *rank; a++) shape[a] = broadcast_axis(n, count, v, *rank, a);
  return shape;
}

/* --- dim_param --- */

/* Reads sums and products of names and numbers, as exporters write them: "past + 1", "2*heads". */
typedef struct reader {
  bb_onnx *m;
  const char *p;
  uint32_t depth;
} reader;

enum { PARAM_DEPTH = 32 };

static void skip_spaces(reader *r) {
  while (*r->p == ' ') r->p++;
}

static bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool digit(char c) {
  return c >= '0' && c <= '9';
}

static const bb_expr *read_sum(reader *r);

static const bb_expr *read_atom(reader *r) {
  bb_onnx *m = r->m;
  skip_spaces(r);
  const char *start = r->p;
  if (*r->p == '(' && r->depth < PARAM_DEPTH) {
    r->p++;
    r->depth++;
    const bb_expr *e = read_sum(r);
    r->depth--;
    skip_spaces(r);
    return e && *r->p == ')' ? (r->p++, e) : NULL;
  }
  if (digit(*r->p)) {
    double value = 0;
    while (digit(*r->p) && value < 1e15) value = value * 10 + (*r->p++ - '0');
    return bb_expr_const(m->program, BB_I64, value);
  }
  if (!letter(*r->p)) return NULL;
  while (letter(*r->p) || digit(*r->p) || *r->p == '.') r->p++;
  const char *name = bb_arena_text(m->arena, start, (size_t)(r->p - start));
  return bb_onnx_extent_expr(m, bb_onnx_tied(m, name));
}

static const bb_expr *read_product(reader *r) {
  const bb_expr *e = read_atom(r);
  for (;;) {
    skip_spaces(r);
    char op = *r->p;
    if (!e || (op != '*' && op != '/')) return e;
    r->p += op == '/' && r->p[1] == '/' ? 2 : 1;
    const bb_expr *f = read_atom(r);
    bb_expr_op x = op == '*' ? BB_X_MUL : BB_X_DIV;
    e = f ? bb_onnx_tidy(r->m, bb_expr_make(r->m->program, x, e, f, NULL)) : NULL;
  }
}

static const bb_expr *read_sum(reader *r) {
  const bb_expr *e = read_product(r);
  for (;;) {
    skip_spaces(r);
    char op = *r->p;
    if (!e || (op != '+' && op != '-')) return e;
    r->p++;
    const bb_expr *f = read_product(r);
    bb_expr_op x = op == '+' ? BB_X_ADD : BB_X_SUB;
    e = f ? bb_onnx_tidy(r->m, bb_expr_make(r->m->program, x, e, f, NULL)) : NULL;
  }
}

/* A name of letters, digits and _ from any text; different texts stay different. */
static const char *plain_name(bb_onnx *m, const char *text) {
  bb_buffer out = {.arena = m->arena};
  for (const char *p = text; *p; p++)
    bb_put(&out, letter(*p) || (digit(*p) && p > text) ? "%c" : "_%02x", (unsigned char)*p);
  return out.data;
}

const bb_extent *bb_onnx_sum_extent(bb_onnx *m, const char *text) {
  reader r = {.m = m, .p = text};
  const bb_expr *e = read_sum(&r);
  return e && !*r.p ? bb_onnx_expr_extent(m, e) : NULL;
}

const bb_extent *bb_onnx_param_extent(bb_onnx *m, const char *param) {
  bool word = letter(param[0]);
  for (const char *p = param; word && *p; p++) word = letter(*p) || digit(*p);
  if (word) return bb_onnx_tied(m, param);
  const bb_extent *extent = strlen(param) < 256 ? bb_onnx_sum_extent(m, param) : NULL;
  return extent ? extent : bb_onnx_tied(m, plain_name(m, param));
}
