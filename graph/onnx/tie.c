/* tie.c - extents that an operator needs to be one, though the model names them apart.
 *
 * Exporters give every input names of its own, or leave a name where the same extent is a number
 * elsewhere.  Where an operator makes two of them one, the name declared later stands for the other,
 * and the import begins again, so that every shape is written with one extent from the start.  When
 * the program runs, an input with other extents is refused as any wrong shape is.
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

bool bb_onnx_same_extent(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b) {
  if (a == b) return true;
  const char *x = declared_name(n->m, a), *y = declared_name(n->m, b);
  int64_t known = bb_extent_value(x ? b : a);
  if (x && y) {
    bool first = a->symbol[0] < b->symbol[0];
    tie(n, first ? y : x, first ? x : y, 0);
  }
  if ((x || y) && known >= 0) tie(n, x ? x : y, NULL, known);
  return false;
}
