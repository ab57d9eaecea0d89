/* tie.c - extents that an operator needs to be one, though the model names them apart.
 *
 * Exporters give every input names of its own, or leave a name where the same extent is a number
 * elsewhere.  Where an operator makes two of them one, the name declared later stands for the other,
 * and the import begins again, so that every shape is written with one extent from the start.  So it is with
 * sums of names: where past_key + 1 meets past_value + 1, two names are one.  When the program runs, an input with other
 * extents is refused as any wrong shape is.
 */
#include "import.h"

#include <string.h>

typedef struct bb_onnx_tie {
  struct bb_onnx_tie *next;
  const char *name;  /* of a dim_param */
  const char *other; /* what it stands for; NULL: `number` */
  int64_t number;
} bb_onnx_tie;

/* The name of an extent that an input declares by a word; NULL: it is none. */
static const char *declared_name(const bb_onnx *m, const bb_extent *extent) {
  if (extent->factor != 1 || extent->count != 1) return NULL;
  const char *name = m->program->symbol[extent->symbol[0]];
  for (uint32_t i = 0; i < m->array->inputs; i++) {
    const bb_array_value *input = &m->array->value[m->array->input[i]];
    for (uint32_t a = 0; a < input->rank; a++)
      if (input->shape[a] == extent) return strpbrk(name, "+-*/() ") ? NULL : name;
  }
  return NULL;
}

const bb_extent *bb_onnx_tied(bb_onnx *m, const char *name) {
  for (const bb_onnx_tie *tie = m->ties; tie; tie = tie->next)
    if (strcmp(tie->name, name) == 0)
      return tie->other ? bb_onnx_tied(m, tie->other) : bb_onnx_number(m, tie->number);
  return bb_extent_symbol(m->program, name);
}

static _Noreturn void tie(const bb_onnx_node *n, const char *name, const char *other,
                          int64_t number) {
  bb_onnx *m = n->m;
  bb_onnx_tie *t = BB_NEW(m->arena, bb_onnx_tie, 1);
  *t = (bb_onnx_tie){.next = m->ties, .number = number};
  t->name = bb_arena_text(m->arena, name, strlen(name));
  if (other) t->other = bb_arena_text(m->arena, other, strlen(other));
  m->ties = t;
  m->again = true;
  if (other)
    bb_log(m->ctx, BB_LOG_INFO, "node %s: extents %s and %s are one", n->name, other, name);
  else
    bb_log(m->ctx, BB_LOG_INFO, "node %s: extent %s is %lld", n->name, name, (long long)number);
  bb_fail(m->ctx, BB_ERROR_INPUT, "node %s: extents meet", n->name);
}

/* --- sums --- */

/* Makes two sums one by what is left of their difference: a name and a number, or two names. */
static void tie_sums(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b) {
  bb_onnx *m = n->m;
  bb_onnx_sum s = {0};
  const char *name[2] = {NULL, NULL};
  double times[2] = {0, 0};
  uint32_t left = 0;
  if (!bb_onnx_sum_add(m, &s, bb_onnx_extent_expr(m, a), 1)) return;
  if (!bb_onnx_sum_add(m, &s, bb_onnx_extent_expr(m, b), -1)) return;
  for (uint32_t i = 0; i < s.terms; i++) {
    if (s.times[i] == 0) continue;
    if (left == 2 || s.term[i]->op != BB_X_SYMBOL) return;
    const char *text = m->program->symbol[s.term[i]->index];
    name[left] = declared_name(m, bb_extent_symbol(m->program, text));
    times[left] = s.times[i];
    if (!name[left++]) return;
  }
  double number = left == 1 ? -s.number / times[0] : 0;
  bool equal = left == 2 && s.number == 0 && times[0] == -times[1];
  if (equal) { /* the name declared first stays */
    bool first = bb_symbol_find(m->program, name[0]) < bb_symbol_find(m->program, name[1]);
    tie(n, name[first], name[!first], 0);
  }
  if (left == 1 && number >= 1 && number == (double)(int64_t)number)
    tie(n, name[0], NULL, (int64_t)number);
}

bool bb_onnx_same_extent(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b) {
  if (a == b) return true;
  const char *x = declared_name(n->m, a), *y = declared_name(n->m, b);
  int64_t known = bb_extent_value(x ? b : a);
  if (x && y) {
    bool first = a->symbol[0] < b->symbol[0];
    tie(n, first ? y : x, first ? x : y, 0);
  }
  if ((x || y) && known >= 0) tie(n, x ? x : y, NULL, known);
  tie_sums(n, a, b);
  return false;
}
