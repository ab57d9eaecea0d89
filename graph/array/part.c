/* part.c - values joined only to be folded or taken apart again stay apart.
 *
 *   c = concat(a, b);  s = sum f(c);  p = slice of f(c) that lies in a
 *   ==>  s = sum f(a) + sum f(b);  p = slice of f(a)
 *
 * So a column that is put beside the scores of attention and dropped behind its softmax is one more
 * term of the sum, and the scores never exist as a whole.  A region starts at a concat of something
 * computed and reaches through elementwise ops; it is taken only if every use of it is a fold along
 * the joined axis or a slice inside one part, and no operand along that axis would have to be cut that
 * is not in memory.  Reassociates sums and products.
 */
#include "array.h"

#include <string.h>

enum { PARTS = 8 };

typedef struct region {
  const bb_array *array;
  const bb_array_node *join;
  uint32_t axis;         /* counted from the last */
  int64_t at[PARTS + 1]; /* where each part begins along it */
  bool *inside;          /* by value */
  bool ends;             /* some fold or slice was met */
} region;

typedef struct rebuilding {
  bb_array *array;
  bb_arena *scratch;
  const region **region; /* by old node: what it is in, or NULL */
  uint32_t **part;       /* by value of a region: its parts */
} rebuilding;

static bb_expr_op combine_of(bb_monoid_id fold) {
  switch (fold) {
  case BB_MONOID_SUM: return BB_X_ADD;
  case BB_MONOID_PROD: return BB_X_MUL;
  case BB_MONOID_MAX: return BB_X_MAX;
  case BB_MONOID_MIN: return BB_X_MIN;
  default: return BB_X_CONST;
  }
}

/* --- which regions --- */

static const bb_array_value *value_of(const region *r, uint32_t value) {
  return &r->array->value[value];
}

/* The extent along the joined axis; 1 of what lacks it. */
static int64_t width_of(const region *r, uint32_t value) {
  const bb_array_value *v = value_of(r, value);
  return v->rank <= r->axis ? 1 : bb_extent_value(v->shape[v->rank - 1 - r->axis]);
}

static uint32_t axis_in(const region *r, uint32_t value) {
  return value_of(r, value)->rank - 1 - r->axis;
}

static uint32_t part_of(const region *r, int64_t first, int64_t last) {
  for (uint32_t k = 0; k < r->join->nin; k++)
    if (r->at[k] <= first && last < r->at[k + 1]) return k;
  return BB_NONE;
}

static bool spreads_or_is_stored(const region *r, uint32_t value) {
  const bb_array_value *v = value_of(r, value);
  return width_of(r, value) == 1 || v->is_input || v->data;
}

/* May a node that reads the region be in it, or end it? */
static bool admits(region *r, const bb_array_node *node) {
  if (node->op == BB_A_MISC) return false; /* whose first operand may be absent */
  uint32_t axis = axis_in(r, node->in[0]);
  switch (node->op) {
  case BB_A_ELEMENTWISE:
    for (uint32_t i = 0; i < node->nin; i++)
      if (!r->inside[node->in[i]] && !spreads_or_is_stored(r, node->in[i])) return false;
    r->inside[node->out[0]] = true;
    return true;
  case BB_A_REDUCE:
    r->ends = true;
    return node->nin == 1 && node->count == 2 && node->ints[1] == axis &&
           combine_of(node->monoid->id) != BB_X_CONST;
  case BB_A_SLICE:
    r->ends = true;
    return node->ints[0] == axis && node->ints[2] > 0 &&
           part_of(r, node->ints[1], node->ints[1] + node->ints[2] * (node->ints[3] - 1)) !=
               BB_NONE;
  default: return false;
  }
}

static bool reads(const region *r, const bb_array_node *node) {
  for (uint32_t i = 0; i < node->nin; i++)
    if (node->in[i] != BB_NONE && r->inside[node->in[i]]) return true;
  return false;
}

static bool begins(region *r) {
  const bb_array_node *join = r->join;
  const bb_array_value *v = value_of(r, join->out[0]);
  bool computed = false;
  if (join->nin > PARTS) return false;
  r->axis = v->rank - 1 - (uint32_t)join->ints[0];
  for (uint32_t k = 0; k < join->nin; k++) {
    int64_t width = width_of(r, join->in[k]);
    uint32_t maker = value_of(r, join->in[k])->producer;
    if (width < 0) return false;
    r->at[k + 1] = r->at[k] + width;
    computed |= maker != BB_NONE && r->array->node[maker].op != BB_A_BROADCAST &&
                r->array->node[maker].op != BB_A_MISC;
  }
  r->inside[join->out[0]] = true;
  return computed;
}

/* Notes the region that starts at the node, if there is one. */
static void find_region(rebuilding *b, uint32_t start) {
  const bb_array *array = b->array;
  region *r = BB_NEW(b->scratch, region, 1);
  r->array = array;
  r->join = &array->node[start];
  r->inside = BB_NEW(b->scratch, bool, array->values);
  uint32_t *member = BB_NEW(b->scratch, uint32_t, array->nodes), members = 0;
  if (b->region[start] || !begins(r)) return;
  for (uint32_t i = start + 1; i < array->nodes; i++) {
    if (array->node[i].removed || !reads(r, &array->node[i])) continue;
    if (b->region[i] || !admits(r, &array->node[i])) return;
    member[members++] = i;
  }
  for (uint32_t o = 0; o < array->outputs; o++)
    if (r->inside[array->output[o]]) return;
  if (!r->ends) return;
  b->region[start] = r;
  for (uint32_t i = 0; i < members; i++) b->region[member[i]] = r;
}

/* --- parts --- */

typedef struct shift {
  const region *r;
  uint32_t part;
} shift;

/* Coordinates along the joined axis are those in the whole. */
static const bb_expr *shifted(void *user, const bb_expr *leaf) {
  const shift *s = user;
  bb_program *p = s->r->array->program;
  const bb_expr *first = bb_expr_const(p, BB_I64, (double)s->r->at[s->part]);
  if (leaf->op != BB_X_COORD || leaf->index != BB_COORD_AXIS + s->r->axis) return leaf;
  if (s->r->at[s->part + 1] - s->r->at[s->part] == 1) return first;
  return bb_expr_make(p, BB_X_ADD, leaf, first, NULL);
}

static uint32_t operand_part(rebuilding *b, const region *r, const char *name, uint32_t value,
                             uint32_t k) {
  if (r->inside[value]) return b->part[value][k];
  if (width_of(r, value) == 1) return value;
  return bb_array_slice(b->array, name, value, axis_in(r, value), r->at[k], 1,
                        r->at[k + 1] - r->at[k]);
}

static void cut_elementwise(rebuilding *b, const region *r, const bb_array_node *node) {
  uint32_t *in = BB_NEW(b->scratch, uint32_t, node->nin);
  b->part[node->out[0]] = BB_NEW(b->scratch, uint32_t, r->join->nin);
  for (uint32_t k = 0; k < r->join->nin; k++) {
    shift s = {r, k};
    for (uint32_t i = 0; i < node->nin; i++) in[i] = operand_part(b, r, node->name, node->in[i], k);
    const bb_expr *expr = bb_expr_map_leaves(b->array->program, node->expr, shifted, &s);
    b->part[node->out[0]][k] = bb_array_elementwise(b->array, node->name, expr, node->nin, in);
  }
}

static uint32_t fold_part(rebuilding *b, const bb_array_node *node, uint32_t part) {
  const bb_array_value v = b->array->value[part], out = b->array->value[node->out[0]];
  bool one = bb_extent_value(v.shape[node->ints[1]]) == 1;
  if (one && node->ints[0]) return part;
  if (one) return bb_array_reshape(b->array, node->name, part, out.rank, out.shape);
  return bb_array_reduce(b->array, node->name, node->monoid, part, 1, &node->ints[1],
                         node->ints[0] != 0);
}

/* An elementwise node that makes the value of an old one. */
static void append_elementwise(bb_array *array, const bb_array_node *old, const bb_expr *expr,
                               uint32_t count, const uint32_t *from) {
  uint32_t *in = BB_NEW(array->program->arena, uint32_t, count);
  memcpy(in, from, count * sizeof *in);
  bb_array_append(array, (bb_array_node){.op = BB_A_ELEMENTWISE,
                                         .name = old->name,
                                         .nin = count,
                                         .nout = 1,
                                         .in = in,
                                         .out = old->out,
                                         .expr = expr});
}

static void cut_fold(rebuilding *b, const region *r, const bb_array_node *node) {
  bb_program *p = b->array->program;
  bb_dtype dtype = b->array->value[node->out[0]].dtype;
  uint32_t in[PARTS];
  const bb_expr *all = NULL;
  for (uint32_t k = 0; k < r->join->nin; k++) {
    const bb_expr *part = bb_expr_arg(p, dtype, k);
    in[k] = fold_part(b, node, b->part[node->in[0]][k]);
    all = all ? bb_expr_make(p, combine_of(node->monoid->id), all, part, NULL) : part;
  }
  append_elementwise(b->array, node, all, r->join->nin, in);
}

static void cut_slice(rebuilding *b, const region *r, bb_array_node node) {
  bb_array *array = b->array;
  int64_t first = node.ints[1], step = node.ints[2], length = node.ints[3];
  uint32_t k = part_of(r, first, first + step * (length - 1)), part = b->part[node.in[0]][k];
  if (length == r->at[k + 1] - r->at[k]) {
    const bb_expr *same = bb_expr_arg(array->program, array->value[part].dtype, 0);
    append_elementwise(array, &node, same, 1, &part);
    return;
  }
  int64_t *ints = BB_NEW(array->program->arena, int64_t, 4);
  memcpy(ints, node.ints, 4 * sizeof *ints);
  ints[1] = first - r->at[k];
  node.ints = ints;
  node.in = BB_NEW(array->program->arena, uint32_t, 1);
  node.in[0] = part;
  bb_array_append(array, node);
}

static void cut(rebuilding *b, const region *r, const bb_array_node *node) {
  switch (node->op) {
  case BB_A_CONCAT: b->part[node->out[0]] = node->in; break;
  case BB_A_ELEMENTWISE: cut_elementwise(b, r, node); break;
  case BB_A_REDUCE: cut_fold(b, r, node); break;
  default: cut_slice(b, r, *node); break;
  }
}

void bb_array_part(bb_array *array) {
  bb_arena *scratch = bb_scratch(array->program->ctx);
  uint32_t nodes = array->nodes, found = 0;
  const bb_array_node *node = array->node;
  rebuilding b = {.array = array,
                  .scratch = scratch,
                  .region = BB_NEW(scratch, const region *, nodes),
                  .part = BB_NEW(scratch, uint32_t *, array->values)};
  for (uint32_t i = 0; i < nodes; i++)
    if (!node[i].removed && node[i].op == BB_A_CONCAT) find_region(&b, i);
  for (uint32_t i = 0; i < nodes; i++) found += b.region[i] != NULL;
  if (found) {
    array->nodes = array->node_capacity = 0;
    array->node = NULL;
  }
  for (uint32_t i = 0; i < nodes && found; i++) {
    if (b.region[i])
      cut(&b, b.region[i], &node[i]);
    else if (!node[i].removed)
      bb_array_append(array, node[i]);
  }
  bb_scratch_end(scratch);
}
