/* text_print_array.c - array programs as text.
 *
 * A value is called by its name in the model where no other value has it, else %0, %1, ... in the
 * order of the text.
 */
#include "text_form.h"
#include "text_number.h"

#include <string.h>

typedef struct writer {
  bb_writer *w;
  const bb_array *array;
  const bool *used;   /* by value: an input, an operand, a result or an output */
  const char **label; /* by value, once it has one */
  bb_table *names;    /* names of used values; a value, or BB_NONE - 1 when several have it */
  uint32_t anonymous;
} writer;

enum { SHARED = BB_NONE - 1 };

static void use(bool *used, uint32_t value) {
  if (value != BB_NONE) used[value] = true;
}

const bool *bb_array_used(const bb_array *array, bb_arena *scratch) {
  if (!array) return NULL;
  bool *used = BB_NEW(scratch, bool, array->values);
  for (uint32_t i = 0; i < array->inputs; i++) use(used, array->input[i]);
  for (uint32_t i = 0; i < array->outputs; i++) use(used, array->output[i]);
  for (uint32_t n = 0; n < array->nodes; n++) {
    const bb_array_node *node = &array->node[n];
    if (node->removed) continue;
    for (uint32_t i = 0; i < node->nin; i++) use(used, node->in[i]);
    for (uint32_t i = 0; i < node->nout; i++) use(used, node->out[i]);
  }
  return used;
}

static bool is_shared(const writer *a, const char *name) {
  return bb_table_find(a->names, name, strlen(name)) == SHARED;
}

static void find_names(writer *a) {
  bb_arena *scratch = a->w->scratch;
  bb_table *once = bb_table_create(scratch);
  a->label = BB_NEW(scratch, const char *, a->array->values);
  a->names = bb_table_create(scratch);
  for (uint32_t i = 0; i < a->array->values; i++) {
    const char *name = a->array->value[i].name;
    if (!a->used[i] || !name || bb_table_add(once, name, strlen(name), i)) continue;
    bb_table_add(a->names, name, strlen(name), SHARED);
  }
}

/* The name by which the text calls a value; the first call, in the order of the text, settles it.
 */
static const char *label(writer *a, uint32_t value) {
  if (value == BB_NONE) return "none";
  if (a->label[value]) return a->label[value];
  bb_buffer text = {.arena = a->w->scratch};
  const char *name = a->array->value[value].name;
  if (name && !is_shared(a, name))
    bb_put_name(&text, name);
  else
    bb_put(&text, "%%%u", a->anonymous++);
  return a->label[value] = text.data;
}

/* Where a value is defined, a name it shares with others is told beside its label. */
static void write_definition(writer *a, uint32_t value) {
  bb_put(a->w->out, "%s", label(a, value));
  if (value == BB_NONE) return;
  const char *name = a->array->value[value].name;
  if (!name || !is_shared(a, name)) return;
  bb_put(a->w->out, " as ");
  bb_put_quoted(a->w->out, name);
}

static void write_factors(writer *a, const bb_array_value *value) {
  bb_buffer *out = a->w->out;
  if (!value->factors) return;
  bb_put(out, " dims [");
  for (uint32_t i = 0; i < value->rank; i++) {
    if (i) bb_put(out, ",");
    if (value->factors[i] == 0) bb_put(out, "1");
    for (uint32_t k = 0; k < value->factors[i]; k++) {
      if (k) bb_put(out, "*");
      bb_put_name(out, a->w->program->dim[value->factor[i][k]].name);
    }
  }
  bb_put(out, "]");
}

static void write_type(writer *a, uint32_t value) {
  const bb_array_value *v = &a->array->value[value];
  bb_put(a->w->out, " : ");
  bb_write_shape(a->w, v->dtype, v->rank, v->shape);
  write_factors(a, v);
}

/* --- ops --- */

static void write_operands(writer *a, const bb_array_node *node) {
  for (uint32_t i = 0; i < node->nin; i++)
    bb_put(a->w->out, "%s%s", i ? ", " : "", label(a, node->in[i]));
}

static void write_elementwise(writer *a, const bb_array_node *node) {
  const char **names = BB_NEW(a->w->scratch, const char *, node->nin);
  bb_dtype *dtype = BB_NEW(a->w->scratch, bb_dtype, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) {
    names[i] = label(a, node->in[i]);
    dtype[i] = a->array->value[node->in[i]].dtype;
  }
  bb_write_elementwise(a->w, node->expr, node->nin, names, dtype);
}

/* Labels are letters in the order of the text; only which are equal matters. */
static void write_labels(writer *a, uint32_t rank, const int64_t *ints, int64_t *known,
                         uint32_t *count) {
  bb_put(a->w->out, "[");
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t k = 0;
    while (k < *count && known[k] != ints[i]) k++;
    if (k == *count) known[(*count)++] = ints[i];
    bb_put(a->w->out, "%s%c", i ? "," : "", 'a' + (int)(k % 26));
    if (k >= 26) bb_put(a->w->out, "%u", k / 26);
  }
  bb_put(a->w->out, "]");
}

static void write_contract(writer *a, const bb_array_node *node) {
  const int64_t *ints = node->ints;
  int64_t *known = BB_NEW(a->w->scratch, int64_t, node->count);
  uint32_t count = 0;
  bb_put(a->w->out, "contract(%s", label(a, node->in[0]));
  write_labels(a, (uint32_t)ints[0], ints + 3, known, &count);
  bb_put(a->w->out, ", %s", label(a, node->in[1]));
  write_labels(a, (uint32_t)ints[1], ints + 3 + ints[0], known, &count);
  bb_put(a->w->out, " -> ");
  write_labels(a, (uint32_t)ints[2], ints + 3 + ints[0] + ints[1], known, &count);
  bb_put(a->w->out, ")");
}

static void write_list(writer *a, const char *word, uint32_t count, const int64_t *ints) {
  bb_put(a->w->out, ", %s=[", word);
  for (uint32_t i = 0; i < count; i++)
    bb_put(a->w->out, "%s%lld", i ? "," : "", (long long)ints[i]);
  bb_put(a->w->out, "]");
}

static void write_fold(writer *a, const bb_array_node *node) {
  const int64_t *ints = node->ints;
  bb_put(a->w->out, "%s(", node->monoid->name);
  write_operands(a, node);
  if (node->op == BB_A_REDUCE && node->count != 2)
    write_list(a, "axes", node->count - 1, ints + 1);
  else
    bb_put(a->w->out, ", axis=%lld", (long long)(node->op == BB_A_REDUCE ? ints[1] : ints[0]));
  if (node->op != BB_A_SCAN && ints[node->op == BB_A_ARGREDUCE]) bb_put(a->w->out, ", keep");
  if (node->op == BB_A_SCAN && ints[1]) bb_put(a->w->out, ", exclusive");
  bb_put(a->w->out, ")");
}

static void write_layout(writer *a, const bb_array_node *node) {
  const int64_t *ints = node->ints;
  bb_put(a->w->out, "(");
  write_operands(a, node);
  if (node->op == BB_A_TRANSPOSE) write_list(a, "perm", node->count, ints);
  if (node->op == BB_A_SLICE)
    bb_put(a->w->out, ", axis=%lld, start=%lld, by=%lld, length=%lld", (long long)ints[0],
           (long long)ints[1], (long long)ints[2], (long long)ints[3]);
  if (node->op == BB_A_WINDOWS) {
    bb_put(a->w->out, ", axis=%lld, start=%lld, by=%lld", (long long)ints[0], (long long)ints[1],
           (long long)ints[2]);
    if (ints[4] >= 0) bb_put(a->w->out, ", length=%lld", (long long)ints[4]);
    bb_put(a->w->out, ", dilation=%lld, taps=%lld", (long long)ints[3], (long long)ints[5]);
  }
  if (node->op == BB_A_PAD) {
    bb_put(a->w->out, ", axis=%lld, start=%lld, fill=", (long long)ints[0], (long long)ints[1]);
    bb_put_number(a->w->out, node->expr->number, BB_F64);
  }
  if (node->op == BB_A_CONCAT) bb_put(a->w->out, ", axis=%lld", (long long)ints[0]);
  bb_put(a->w->out, ")");
}

static void write_misc(writer *a, const bb_array_node *node) {
  const char **names = BB_NEW(a->w->scratch, const char *, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) names[i] = label(a, node->in[i]);
  bb_write_misc(a->w, node->misc, node->nin, names);
}

static void write_op(writer *a, const bb_array_node *node) {
  static const char *const name[] = {
#define BB_ARRAY_OP(id, text, description) [BB_A_##id] = text,
#include "array/array.def"
#undef BB_ARRAY_OP
  };
  switch (node->op) {
  case BB_A_ELEMENTWISE: write_elementwise(a, node); return;
  case BB_A_CONTRACT: write_contract(a, node); return;
  case BB_A_MISC: write_misc(a, node); return;
  case BB_A_REDUCE:
  case BB_A_ARGREDUCE:
  case BB_A_SCAN:
    bb_put(a->w->out, "%s ", name[node->op]);
    write_fold(a, node);
    return;
  default:
    bb_put(a->w->out, "%s", name[node->op]);
    write_layout(a, node);
    return;
  }
}

/* The model's name of a node goes without saying when it is that of its result. */
static void write_node_name(writer *a, const bb_array_node *node) {
  const char *result =
      node->nout && node->out[0] != BB_NONE ? a->array->value[node->out[0]].name : NULL;
  if (node->name == result || (node->name && result && strcmp(node->name, result) == 0)) return;
  bb_put(a->w->out, " @ ");
  if (node->name)
    bb_put_quoted(a->w->out, node->name);
  else
    bb_put(a->w->out, "none");
}

static void write_node(writer *a, const bb_array_node *node) {
  for (uint32_t i = 0; i < node->nout; i++) {
    bb_put(a->w->out, i ? ", " : "");
    write_definition(a, node->out[i]);
  }
  bb_put(a->w->out, " = ");
  write_op(a, node);
  for (uint32_t i = 0; i < node->nout; i++) {
    if (node->out[i] == BB_NONE)
      bb_put(a->w->out, " : absent");
    else
      write_type(a, node->out[i]);
  }
  write_node_name(a, node);
  bb_put(a->w->out, "\n");
}

static void write_output(writer *a, uint32_t i) {
  uint32_t value = a->array->output[i];
  const char *name = a->array->output_name[i], *own = a->array->value[value].name;
  bb_put(a->w->out, "output ");
  bb_put_name(a->w->out, name);
  if (!own || strcmp(own, name) != 0 || is_shared(a, own))
    bb_put(a->w->out, " = %s", label(a, value));
  bb_put(a->w->out, "\n");
}

void bb_write_array(bb_writer *w) {
  const bb_array *array = w->program->array;
  writer a = {.w = w, .array = array};
  if (!array) return;
  a.used = bb_array_used(array, w->scratch);
  find_names(&a);
  for (uint32_t i = 0; i < array->inputs; i++) {
    bb_put(w->out, "input ");
    write_definition(&a, array->input[i]);
    write_type(&a, array->input[i]);
    bb_put(w->out, "\n");
  }
  for (uint32_t i = 0; i < array->values; i++) {
    const bb_array_value *v = &array->value[i];
    if (!a.used[i] || v->producer != BB_NONE || v->is_input) continue;
    bb_put(w->out, "constant ");
    write_definition(&a, i);
    write_type(&a, i);
    if (v->data) {
      bb_put(w->out, " = ");
      bb_write_data(w, v->dtype, v->data, v->bytes);
    }
    bb_put(w->out, "\n");
  }
  for (uint32_t n = 0; n < array->nodes; n++)
    if (!array->node[n].removed) write_node(&a, &array->node[n]);
  for (uint32_t i = 0; i < array->outputs; i++) write_output(&a, i);
}
