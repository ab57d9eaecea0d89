/* index.c - the data of the index form: classes, nodes, uses. */
#include "index.h"

#include <string.h>

bb_ix *bb_ix_create(bb_array *array) {
  bb_program *program = array->program;
  bb_ix *ix = BB_NEW(program->drafts, bb_ix, 1);
  ix->program = program;
  ix->arena = program->drafts;
  ix->array = array;
  return ix;
}

/* --- classes --- */

uint32_t bb_ix_class(bb_ix *ix, const bb_extent *extent) {
  BB_GROW(ix->arena, ix->dim, ix->dim_capacity, (size_t)ix->dims + 1);
  ix->dim[ix->dims] = (bb_ix_dim){.same = ix->dims, .extent = extent, .dim = BB_NO_DIM};
  return ix->dims++;
}

uint32_t bb_ix_find(bb_ix *ix, uint32_t class) {
  while (ix->dim[class].same != class) {
    ix->dim[class].same = ix->dim[ix->dim[class].same].same;
    class = ix->dim[class].same;
  }
  return class;
}

void bb_ix_unite(bb_ix *ix, uint32_t a, uint32_t b) {
  a = bb_ix_find(ix, a), b = bb_ix_find(ix, b);
  /* The elder stays, so that names follow the order of the program. */
  if (a < b) ix->dim[b].same = a;
  if (b < a) ix->dim[a].same = b;
  ix->dim[a].whole = ix->dim[b].whole = ix->dim[a].whole || ix->dim[b].whole;
  ix->dim[a].multiplied = ix->dim[b].multiplied = ix->dim[a].multiplied || ix->dim[b].multiplied;
}

/* --- nodes --- */

uint32_t bb_ix_node_add(bb_ix *ix, bb_ix_op op, const char *name, uint32_t nin, uint32_t indices,
                        const uint32_t *dim) {
  BB_GROW(ix->arena, ix->node, ix->node_capacity, (size_t)ix->nodes + 1);
  bb_ix_node *node = &ix->node[ix->nodes];
  *node = (bb_ix_node){.op = op, .name = name, .nin = nin, .indices = indices};
  node->in = BB_NEW(ix->arena, bb_ix_operand, nin);
  for (uint32_t i = 0; i < nin; i++) node->in[i].value = BB_NONE;
  node->dim = BB_NEW(ix->arena, uint32_t, indices);
  if (indices) memcpy(node->dim, dim, indices * sizeof *dim);
  return ix->nodes++;
}

uint32_t bb_ix_result(bb_ix *ix, uint32_t node, bb_dtype dtype, uint32_t rank,
                      const uint32_t *dim) {
  BB_GROW(ix->arena, ix->value, ix->value_capacity, (size_t)ix->values + 1);
  bb_ix_node *n = &ix->node[node];
  bb_ix_value *v = &ix->value[ix->values];
  *v = (bb_ix_value){.name = n->name,
                     .dtype = dtype,
                     .rank = rank,
                     .node = node,
                     .port = n->nout,
                     .first_node = BB_NONE};
  v->dim = BB_NEW(ix->arena, uint32_t, rank);
  if (rank) memcpy(v->dim, dim, rank * sizeof *dim);
  uint32_t *out = BB_NEW(ix->arena, uint32_t, (size_t)n->nout + 1);
  if (n->nout) memcpy(out, n->out, n->nout * sizeof *out);
  out[n->nout++] = ix->values;
  n->out = out;
  return ix->values++;
}

uint32_t bb_ix_add(bb_ix *ix, bb_ix_op op, const char *name, bb_dtype dtype, uint32_t nin,
                   uint32_t rank, uint32_t indices, const uint32_t *dim) {
  uint32_t node = bb_ix_node_add(ix, op, name, nin, indices, dim);
  return bb_ix_result(ix, node, dtype, rank, dim);
}

bb_misc_port bb_ix_port(bb_ix *ix, bb_dtype dtype, uint32_t axes, const uint32_t *class) {
  const bb_extent **shape = BB_NEW(ix->arena, const bb_extent *, axes);
  bb_dim *axis = BB_NEW(ix->arena, bb_dim, axes);
  for (uint32_t a = 0; a < axes; a++) shape[a] = bb_ix_extent(ix, class[a]), axis[a] = class[a];
  return (bb_misc_port){.dtype = dtype, .rank = axes, .shape = shape, .axes = axes, .axis = axis};
}

uint32_t bb_ix_copy_add(bb_ix *ix, const char *name, bb_misc_port from, bb_misc_port to) {
  bb_misc *misc = BB_NEW(ix->arena, bb_misc, 1);
  bb_misc_port *port = BB_NEW(ix->arena, bb_misc_port, 2);
  port[0] = from;
  port[1] = to;
  *misc = (bb_misc){.domain = "",
                    .op = "Reshape",
                    .version = 13,
                    .nin = 1,
                    .nout = 1,
                    .in = port,
                    .out = port + 1};
  uint32_t node = bb_ix_node_add(ix, BB_IX_MISC, name, 1, 0, NULL);
  ix->node[node].misc = misc;
  return bb_ix_result(ix, node, to.dtype, to.axes, to.axis);
}

void bb_ix_mark_coordinates(bb_arena *scratch, const bb_expr *expr, bool *asked) {
  uint32_t count;
  if (!expr->coord) return;
  const bb_expr **e = bb_expr_postorder(scratch, expr, &count);
  for (uint32_t i = 0; i < count; i++)
    if (e[i]->op == BB_X_COORD && e[i]->index >= BB_COORD_AXIS)
      asked[e[i]->index - BB_COORD_AXIS] = true;
}

void bb_ix_use(bb_ix *ix, uint32_t node, uint32_t slot, uint32_t value, const uint32_t *index) {
  bb_ix_value *v = &ix->value[value];
  bb_ix_operand *in = &ix->node[node].in[slot];
  uint32_t *copy = BB_NEW(ix->arena, uint32_t, v->rank);
  if (v->rank) memcpy(copy, index, v->rank * sizeof *copy);
  *in = (bb_ix_operand){.value = value,
                        .index = copy,
                        .next_node = v->first_node,
                        .next_slot = v->first_slot,
                        .prev_node = BB_NONE};
  if (v->first_node != BB_NONE) {
    bb_ix_operand *next = &ix->node[v->first_node].in[v->first_slot];
    next->prev_node = node;
    next->prev_slot = slot;
  }
  v->first_node = node;
  v->first_slot = slot;
  v->uses++;
}

void bb_ix_unuse(bb_ix *ix, uint32_t node, uint32_t slot) {
  bb_ix_operand *in = &ix->node[node].in[slot];
  if (in->value == BB_NONE) return;
  bb_ix_value *v = &ix->value[in->value];
  if (in->next_node != BB_NONE) {
    bb_ix_operand *next = &ix->node[in->next_node].in[in->next_slot];
    next->prev_node = in->prev_node;
    next->prev_slot = in->prev_slot;
  }
  if (in->prev_node != BB_NONE) {
    bb_ix_operand *prev = &ix->node[in->prev_node].in[in->prev_slot];
    prev->next_node = in->next_node;
    prev->next_slot = in->next_slot;
  } else {
    v->first_node = in->next_node;
    v->first_slot = in->next_slot;
  }
  v->uses--;
  in->value = BB_NONE;
}

void bb_ix_set_operands(bb_ix *ix, uint32_t node, uint32_t nin, const uint32_t *value,
                        const uint32_t *const *index) {
  for (uint32_t i = 0; i < ix->node[node].nin; i++) bb_ix_unuse(ix, node, i);
  ix->node[node].nin = nin;
  ix->node[node].in = BB_NEW(ix->arena, bb_ix_operand, nin);
  for (uint32_t i = 0; i < nin; i++) ix->node[node].in[i].value = BB_NONE;
  for (uint32_t i = 0; i < nin; i++) bb_ix_use(ix, node, i, value[i], index[i]);
}

void bb_ix_sweep(bb_ix *ix, uint32_t node) {
  bb_arena *scratch = bb_scratch(ix->program->ctx);
  uint32_t count = 0, capacity = 0, *stack = NULL;
  BB_GROW(scratch, stack, capacity, 1);
  stack[count++] = node;
  while (count) {
    bb_ix_node *n = &ix->node[stack[--count]];
    bool used = n->removed || n->op == BB_IX_OUTPUT ||
                (n->misc && bb_misc_tells(ix->program, n->misc) != BB_NONE);
    for (uint32_t p = 0; p < n->nout; p++) used |= ix->value[n->out[p]].uses > 0;
    if (used) continue;
    n->removed = true;
    for (uint32_t i = 0; i < n->nin; i++) {
      uint32_t value = n->in[i].value;
      if (value == BB_NONE) continue;
      bb_ix_unuse(ix, (uint32_t)(n - ix->node), i);
      if (ix->released) ix->released(ix->released_user, value);
      BB_GROW(scratch, stack, capacity, (size_t)count + 1);
      if (!ix->value[value].uses) stack[count++] = ix->value[value].node;
    }
  }
  bb_scratch_end(scratch);
}

void bb_ix_replace(bb_ix *ix, uint32_t old, uint32_t with, uint32_t except) {
  bb_arena *scratch = bb_scratch(ix->program->ctx);
  uint32_t *index = BB_NEW(scratch, uint32_t, ix->value[old].rank);
  BB_IX_EACH_USE(ix, old, node, slot) {
    if (node == except) continue;
    if (ix->value[old].rank)
      memcpy(index, ix->node[node].in[slot].index, ix->value[old].rank * sizeof *index);
    bb_ix_unuse(ix, node, slot);
    bb_ix_use(ix, node, slot, with, index);
  }
  bb_scratch_end(scratch);
}

/* Depth first with a stack of its own: programs may be deep. */
uint32_t bb_ix_order(bb_ix *ix, bb_arena *arena, uint32_t **order) {
  uint32_t *list = BB_NEW(arena, uint32_t, ix->nodes), done = 0;
  uint32_t *next = BB_NEW(arena, uint32_t, ix->nodes); /* operand to look at next, + 1 */
  uint32_t *stack = BB_NEW(arena, uint32_t, ix->nodes), depth;
  for (uint32_t i = 0; i < ix->nodes; i++) {
    if (ix->node[i].removed || next[i]) continue;
    stack[0] = i, next[i] = 1, depth = 1;
    while (depth) {
      uint32_t at = stack[depth - 1];
      const bb_ix_node *node = &ix->node[at];
      if (next[at] > node->nin) {
        list[done++] = at;
        depth--;
        continue;
      }
      uint32_t value = node->in[next[at]++ - 1].value;
      if (value == BB_NONE || next[ix->value[value].node]) continue;
      stack[depth++] = ix->value[value].node;
      next[ix->value[value].node] = 1;
    }
  }
  *order = list;
  return done;
}
