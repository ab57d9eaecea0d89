/* recurrent.c - LSTM, GRU and RNN: what the inputs of all steps are multiplied with is a product like any other; the steps
 * one after the other, each with what the one before left, are a misc node's.
 */
#include "convert.h"
#include "formula.h"

#include <string.h>

enum { X, W, R, B, LENGTHS, FIRST_H, FIRST_C, PEEPHOLE, MOST_DIRECTIONS = 2, MOST_FUNCTIONS = 6 };

/* Of a step. */
static uint32_t gates(const bb_onnx_node *n) {
  return strcmp(n->row->name, "LSTM") == 0 ? 4 : strcmp(n->row->name, "GRU") == 0 ? 3 : 1;
}

/* --- attributes --- */

/* How many directions there are, by the attribute. */
static int64_t directions(const bb_onnx_node *n) {
  const char *text = bb_onnx_text(n, "direction", "forward");
  bool both = strcmp(text, "bidirectional") == 0;
  if (!both && strcmp(text, "forward") != 0 && strcmp(text, "reverse") != 0)
    bb_onnx_refuse(n, "direction is %s", bb_onnx_quote(n->m->arena, text));
  return both ? 2 : 1;
}

/* The functions of a step as numbers of the reference kernel's; false: one of them is reported as unsupported. */
static bool read_functions(bb_onnx_node *n, uint32_t each, int64_t *function) {
  static const char *const known[] = {"Sigmoid",     "Tanh",     "Relu",
                                      "HardSigmoid", "Softsign", "Affine"};
  static const int64_t usual[] = {0, 1, 1};
  uint32_t count = (uint32_t)directions(n) * each, all = sizeof known / sizeof *known, given;
  const char *const *name = bb_onnx_texts(n, "activations", &given);
  if (bb_onnx_has(n, "activation_alpha") || bb_onnx_has(n, "activation_beta")) {
    bb_onnx_unsupported(n, "activation_alpha or activation_beta");
    return false;
  }
  if (name && given != count) bb_onnx_refuse(n, "activations has %u names, not %u", given, count);
  for (uint32_t i = 0; i < count; i++) {
    function[i] = each == 1 ? 1 : usual[i % each];
    if (!name) continue;
    uint32_t k = 0;
    while (k < all && strcmp(known[k], name[i]) != 0) k++;
    if (k == all) {
      bb_onnx_unsupported(n, "activation %s", bb_onnx_quote(n->m->arena, name[i]));
      return false;
    }
    function[i] = k;
  }
  return true;
}

/* --- operands --- */

/* v with the axes that a shape names, [directions, ...]; NULL stays NULL. */
static bb_onnx_value *checked(const bb_onnx_node *n, uint32_t i, uint32_t rank,
                              const bb_extent *const *shape) {
  bb_onnx_value *v = bb_onnx_operand(n, i);
  if (!v) return NULL;
  bool fits = v->rank == rank;
  for (uint32_t a = 0; fits && a < rank; a++) fits = bb_onnx_same_extent(n, v->shape[a], shape[a]);
  if (!fits)
    bb_onnx_refuse(n, "input %u has shape %s, which does not fit the others", i,
                   bb_onnx_shape_text(n->m, v));
  return v;
}

/* One half of the biases [directions, 2 * width]: of the inputs, or of the states. */
static bb_onnx_value *half(const bb_onnx_node *n, bb_onnx_value *biases, bool second,
                           int64_t width) {
  return bb_onnx_slice(n, biases, 1, second ? width : 0, 1, width);
}

/* [steps, directions, batch, width]: what the inputs add to each gate, with their bias. */
static bb_onnx_value *projected(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *bias) {
  enum { STEP, BATCH, INPUT, DIRECTION, WIDTH };
  static const int64_t of_x[] = {STEP, BATCH, INPUT}, of_w[] = {DIRECTION, WIDTH, INPUT},
                       of_y[] = {STEP, DIRECTION, BATCH, WIDTH};
  bb_onnx_value *w = n->in[W];
  bb_onnx_value *y = bb_onnx_contract(n, x, w, of_x, of_w, 4, of_y);
  if (!bias) return y;
  const bb_extent *shape[3] = {w->shape[0], bb_onnx_number(n->m, 1), w->shape[1]};
  return bb_onnx_binary_map(n, BB_X_ADD, y, bb_onnx_reshape(n, bias, 3, shape));
}

/* --- the node --- */

static const bb_attribute *attributes(const bb_onnx_node *n, uint32_t each, const int64_t *function,
                                      uint32_t *count) {
  bb_arena *arena = n->m->program->arena;
  bb_attribute *list = BB_NEW(arena, bb_attribute, 6);
  int64_t *copy = BB_NEW(arena, int64_t, MOST_FUNCTIONS);
  uint32_t functions = (uint32_t)directions(n) * each;
  memcpy(copy, function, functions * sizeof *copy);
  list[0] =
      (bb_attribute){.name = "functions", .kind = BB_ATTR_INTS, .count = functions, .ints = copy};
  list[1] = (bb_attribute){.name = "gates", .kind = BB_ATTR_INT, .i = gates(n)};
  list[2] = (bb_attribute){.name = "reverse", .kind = BB_ATTR_INT};
  list[2].i = strcmp(bb_onnx_text(n, "direction", "forward"), "reverse") == 0;
  list[3] = (bb_attribute){.name = "clip", .kind = BB_ATTR_FLOAT, .f = bb_onnx_float(n, "clip", 0)};
  list[4] = (bb_attribute){.name = "coupled", .kind = BB_ATTR_INT};
  list[4].i = bb_onnx_int(n, "input_forget", 0) != 0;
  list[5] = (bb_attribute){.name = "linear_before_reset", .kind = BB_ATTR_INT};
  list[5].i = bb_onnx_int(n, "linear_before_reset", 0) != 0;
  *count = 6;
  return list;
}

/* Exchanges the first axes, so that the batch comes first (or no longer does). */
static bb_onnx_value *turned(const bb_onnx_node *n, bb_onnx_value *v) {
  static const int64_t perm[3] = {1, 0, 2};
  return bb_onnx_transpose(n, v, perm);
}

static void give_results(bb_onnx_node *n, bool batch_first, bb_onnx_value *const *out) {
  static const int64_t perm[4] = {2, 0, 1, 3};
  for (uint32_t i = 0; i < n->nout; i++) {
    n->out[i] = out[i];
    if (batch_first) n->out[i] = i ? turned(n, out[i]) : bb_onnx_transpose(n, out[i], perm);
  }
}

static void check_dtypes(bb_onnx_node *n) {
  static const uint32_t alike[] = {B, FIRST_H, FIRST_C, PEEPHOLE};
  const bb_onnx_value *lengths = bb_onnx_operand(n, LENGTHS);
  bb_onnx_same_dtype(n, 3, n->in);
  for (uint32_t i = 0; i < sizeof alike / sizeof *alike; i++) {
    bb_onnx_value *v = bb_onnx_operand(n, alike[i]);
    if (v) bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){n->in[X], v});
  }
  if (lengths && lengths->stored != BB_I32)
    bb_onnx_refuse(n, "input %u is %s, not i32", LENGTHS, bb_dtype_name(lengths->stored));
}

void bb_onnx_recurrent(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  uint32_t each = gates(n) == 4 ? 3 : gates(n) == 3 ? 2 : 1;
  bool batch_first = bb_onnx_int(n, "layout", 0) != 0;
  int64_t function[MOST_FUNCTIONS];
  bb_onnx_value *x = n->in[X], *r = n->in[R];
  bb_onnx_want_float(n, x);
  check_dtypes(n);
  if (!read_functions(n, each, function)) return;
  if (x->rank != 3 || r->rank != 3) bb_onnx_refuse(n, "inputs 0 and 2 have not 3 axes");
  if (batch_first) x = turned(n, x);
  int64_t hidden = bb_extent_value(r->shape[2]);
  if (hidden < 1 || hidden != bb_onnx_int(n, "hidden_size", hidden))
    bb_onnx_refuse(n, "hidden_size is not that of input 2, %s", bb_onnx_shape_text(m, r));
  const bb_extent *d = bb_onnx_number(m, directions(n)), *h = r->shape[2], *batch = x->shape[1];
  const bb_extent *width = bb_onnx_number(m, gates(n) * hidden);
  const bb_extent *state[3] = {d, batch, h},
                  *given[3] = {batch_first ? batch : d, batch_first ? d : batch, h};
  checked(n, W, 3, (const bb_extent *[]){d, width, x->shape[2]});
  checked(n, R, 3, (const bb_extent *[]){d, width, h});
  bb_onnx_value *biases =
      checked(n, B, 2, (const bb_extent *[]){d, bb_onnx_number(m, 2 * gates(n) * hidden)});
  bb_onnx_value *in[7] = {
      projected(n, x, biases ? half(n, biases, false, gates(n) * hidden) : NULL),
      r,
      biases ? half(n, biases, true, gates(n) * hidden) : NULL,
      checked(n, LENGTHS, 1, &batch),
      checked(n, FIRST_H, 3, given),
      gates(n) == 4 ? checked(n, FIRST_C, 3, given) : NULL,
      gates(n) == 4
          ? checked(n, PEEPHOLE, 2, (const bb_extent *[]){d, bb_onnx_number(m, 3 * hidden)})
          : NULL};
  for (uint32_t i = 4; i < 6; i++)
    if (in[i] && batch_first) in[i] = turned(n, in[i]);
  bb_misc kernel = {.domain = "blockbuster", .op = "Recurrent", .version = 1};
  kernel.attribute = attributes(n, each, function, &kernel.count);
  bb_onnx_value *out[3] = {
      bb_onnx_value_new(m, x->dtype, 4, (const bb_extent *[]){x->shape[0], d, batch, h}),
      bb_onnx_value_new(m, x->dtype, 3, state), bb_onnx_value_new(m, x->dtype, 3, state)};
  bb_onnx_misc_node(n, &kernel, 7, in, gates(n) == 4 ? 3 : 2, out);
  give_results(n, batch_first, out);
}
