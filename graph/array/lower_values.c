/* lower_values.c - values at the root of the block program: inputs and constants, views of computed
 * values, misc nodes and outputs.  None of these moves data but the misc nodes.
 */
#include "lower.h"

#include <string.h>

static bb_role *new_roles(bb_lower *l, uint32_t count, const bb_role *from) {
  bb_role *role = BB_NEW(l->scratch, bb_role, count);
  if (count && from) memcpy(role, from, count * sizeof *role);
  return role;
}

static bool same_roles(uint32_t count, const bb_role *a, const bb_role *b) {
  return !count || memcmp(a, b, count * sizeof *a) == 0;
}

void bb_lower_natural_roles(bb_lower *l, uint32_t count, const uint32_t *dim, bb_role *role) {
  uint32_t blocked = 0;
  for (uint32_t a = count; a-- > 0;) {
    role[a] = BB_ROLE_LOOP;
    if (!bb_lower_blocked(l, dim[a]) || blocked == 2) continue;
    role[a] = blocked++ ? BB_ROLE_ROW : BB_ROLE_COL;
  }
}

/* Does a row axis over the same dim follow a column axis?  Then the k-th index over the dim is not
 * its k-th level, and the item must be turned around instead. */
static bool crosses(bb_lower *l, uint32_t value, const bb_role *role) {
  uint32_t row = BB_NONE, col = BB_NONE;
  for (uint32_t a = 0; a < bb_ix_rank(l->ix, value); a++) {
    if (role[a] == BB_ROLE_ROW) row = a;
    if (role[a] == BB_ROLE_COL) col = a;
  }
  return row != BB_NONE && col != BB_NONE && col < row &&
         bb_ix_axis(l->ix, value, row) == bb_ix_axis(l->ix, value, col);
}

/* Row for column and column for row. */
static bb_role *turned_roles(bb_lower *l, uint32_t count, const bb_role *role) {
  bb_role *turned = new_roles(l, count, role);
  for (uint32_t a = 0; a < count; a++)
    if (role[a] != BB_ROLE_LOOP) turned[a] = role[a] == BB_ROLE_ROW ? BB_ROLE_COL : BB_ROLE_ROW;
  return turned;
}

/* --- types: loops in the order of `order`, then row, then column --- */

static bb_level level_of(bb_lower *l, uint32_t class, bb_role role) {
  static const bb_axis axis[] = {BB_AXIS_NONE, BB_AXIS_ROW, BB_AXIS_COL};
  return (bb_level){bb_lower_dim(l, class, role), axis[role]};
}

static const bb_type *type_of_roles(bb_lower *l, bb_dtype dtype, uint32_t rank, const uint32_t *dim,
                                    const bb_role *role, uint32_t *level) {
  bb_level *levels = BB_NEW(l->scratch, bb_level, rank);
  bb_item item = {dtype, BB_NO_DIM, BB_NO_DIM};
  uint32_t n = 0;
  for (bb_role r = BB_ROLE_LOOP; r <= BB_ROLE_COL; r++)
    for (uint32_t a = 0; a < rank; a++) {
      if (role[a] != r) continue;
      level[a] = n;
      levels[n++] = level_of(l, dim[a], r);
      if (r == BB_ROLE_ROW) item.row = levels[level[a]].dim;
      if (r == BB_ROLE_COL) item.col = levels[level[a]].dim;
    }
  return bb_type_make(l->program, item, rank, levels);
}

/* --- program tensors --- */

static uint32_t add_tensor(bb_lower *l, const char *name, bb_tensor_role role,
                           const bb_array_value *v, uint32_t axes, const uint32_t *class) {
  bb_dim *axis = BB_NEW(l->scratch, bb_dim, axes);
  for (uint32_t a = 0; a < axes; a++) axis[a] = bb_lower_dim(l, class[a], BB_ROLE_ROW);
  return bb_tensor_add(l->program, &(bb_tensor){.name = name ? name : "",
                                                .dtype = v->dtype,
                                                .role = role,
                                                .rank = v->rank,
                                                .shape = v->shape,
                                                .axes = axes,
                                                .axis = axis,
                                                .data = v->data,
                                                .bytes = v->bytes});
}

/* The tensor of an input or constant, its axes as factored. */
static uint32_t tensor_of(bb_lower *l, uint32_t array_value) {
  if (l->tensor[array_value] != BB_NONE) return l->tensor[array_value];
  const bb_array_value *v = &l->ix->array->value[array_value];
  const bb_ix_list *axes = &l->ix->storage[array_value];
  l->tensor[array_value] = add_tensor(l, v->name, v->data ? BB_TENSOR_CONSTANT : BB_TENSOR_INPUT, v,
                                      axes->count, axes->at);
  return l->tensor[array_value];
}

void bb_lower_tensors(bb_lower *l) {
  bb_array *array = l->ix->array;
  for (uint32_t i = 0; i < array->inputs; i++) tensor_of(l, array->input[i]);
  for (uint32_t o = 0; o < array->outputs; o++) {
    const bb_ix_node *node = &l->ix->node[l->ix->output[o]];
    bb_array_value v = array->value[array->output[o]];
    v.data = NULL, v.bytes = 0;
    l->output[o] =
        add_tensor(l, array->output_name[o], BB_TENSOR_OUTPUT, &v, node->indices, node->dim);
  }
}

/* --- reading --- */

static bb_placed *add_reading(bb_lower *l, uint32_t value, const bb_role *role, bb_value src) {
  bb_placed *p = BB_NEW(l->scratch, bb_placed, 1);
  *p = (bb_placed){.made = true, .src = src, .role = new_roles(l, bb_ix_rank(l->ix, value), role)};
  p->level = BB_NEW(l->scratch, uint32_t, bb_ix_rank(l->ix, value));
  p->next = l->placed[value].next;
  l->placed[value].next = p;
  return p;
}

static bb_placed *find_reading(bb_lower *l, uint32_t value, const bb_role *role) {
  for (bb_placed *p = &l->placed[value]; p; p = p->next)
    if (p->made && same_roles(bb_ix_rank(l->ix, value), p->role, role)) return p;
  return NULL;
}

/* The same value through `p`, its item the other way round. */
static bb_placed *turn(bb_lower *l, uint32_t value, const bb_placed *p, const bb_role *role) {
  bb_placed *other = add_reading(l, value, role, p->src);
  if (bb_ix_rank(l->ix, value))
    memcpy(other->level, p->level, bb_ix_rank(l->ix, value) * sizeof *p->level);
  other->turned = !p->turned;
  return other;
}

static bb_value add_view(bb_lower *l, uint32_t nin, const bb_type *type, const bb_access *access,
                         const char *name) {
  uint32_t at = bb_node_add(l->root, BB_NODE_VIEW, nin, 1);
  bb_node *node = bb_node_get(l->root, at);
  node->out[0].type = type;
  node->access = access;
  node->name = name;
  return (bb_value){at, 0};
}

/* An INPUT node for a source, in the given roles. */
static bb_placed *read_source(bb_lower *l, uint32_t value, const bb_role *role) {
  const bb_ix_value *v = &l->ix->value[value];
  const bb_ix_node *node = &l->ix->node[v->node];
  bb_placed *p = add_reading(l, value, role, (bb_value){BB_NONE, 0});
  const bb_type *type = type_of_roles(l, v->dtype, v->rank, v->dim, role, p->level);
  bb_index *index = BB_NEW(l->scratch, bb_index, node->rank);
  for (uint32_t a = 0, at = 0; a < node->rank; a++) {
    index[a] = node->access[a];
    if (index[a].kind == BB_INDEX_FIXED)
      index[a].dim = BB_NO_DIM;
    else
      index[a].dim = bb_lower_dim(l, v->dim[at], role[at]), at++;
  }
  bb_piece piece = {.source = tensor_of(l, node->tensor), .rank = node->rank, .index = index};
  bb_access access = {.joined = BB_NO_DIM, .count = 1, .piece = &piece};
  p->src = bb_input_add(l->root, type);
  bb_node *input = bb_node_get(l->root, p->src.node);
  input->tensor = piece.source;
  input->access = bb_access_make(l->program, &access);
  input->name = v->name;
  return p;
}

/* A view tells two axes over one dim apart by their order alone.  Do some stand in another order in the operand (its
 * axes' levels) than in the view, whose axis k has level[k], class dim[k] and role[k]?  index: the view's axis of each of
 * the operand's; NULL: the same. */
static bool crossed(bb_lower *l, uint32_t operand_rank, const uint32_t *operand_level,
                    const uint32_t *index, uint32_t rank, const uint32_t *dim, const bb_role *role,
                    const uint32_t *level) {
  for (uint32_t a = 0; a < operand_rank; a++)
    for (uint32_t b = 0; b < operand_rank; b++) {
      uint32_t i = index ? index[a] : a, k = index ? index[b] : b;
      if (i < rank && k < rank && level[i] < level[k] && operand_level[a] > operand_level[b] &&
          bb_lower_dim(l, dim[i], role[i]) == bb_lower_dim(l, dim[k], role[k]))
        return true;
    }
  return false;
}

/* A copy of a value, its axes in the order of the view's axes that they are: index, or, if that is NULL, in their own,
 * and with the roles that they have. */
static const bb_placed *straightened(bb_lower *l, uint32_t value, const uint32_t *index) {
  uint32_t rank = bb_ix_rank(l->ix, value);
  uint32_t *at = BB_NEW(l->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++)
    for (uint32_t b = 0; b < rank; b++) at[a] += index ? index[b] < index[a] : b < a;
  bb_ix_operand in = {.value = value, .index = at};
  return bb_lower_copy(l, &(bb_ix_node){.nin = 1, .in = &in}, 0,
                       index ? NULL : l->placed[value].role);
}

/* Another reading of a computed value: a VIEW that renames dims to aliases or back. */
static bb_placed *read_through_view(bb_lower *l, uint32_t value, const bb_role *role) {
  const bb_ix_value *v = &l->ix->value[value];
  const bb_placed *from = &l->placed[value];
  bb_placed *p = add_reading(l, value, role, from->src);
  const bb_type *type = type_of_roles(l, v->dtype, v->rank, v->dim, role, p->level);
  if (crossed(l, v->rank, from->level, NULL, v->rank, v->dim, role, p->level))
    from = straightened(l, value, NULL);
  bb_index *index = BB_NEW(l->scratch, bb_index, v->rank);
  for (uint32_t a = 0; a < v->rank; a++)
    index[from->level[a]] = (bb_index){BB_INDEX_DIM, bb_lower_dim(l, v->dim[a], role[a]), 0, 1};
  bb_piece piece = {.source = 0, .rank = v->rank, .index = index};
  bb_access access = {.joined = BB_NO_DIM, .count = 1, .piece = &piece};
  p->src = add_view(l, 1, type, bb_access_make(l->program, &access), v->name);
  bb_connect(l->root, p->src.node, 0, from->src);
  return p;
}

bb_placed *bb_lower_fetch(bb_lower *l, uint32_t value, const bb_role *role) {
  uint32_t rank = bb_ix_rank(l->ix, value);
  bb_lower_force(l, value);
  bb_placed *found = find_reading(l, value, role);
  if (found) return found;
  const bb_role *other = turned_roles(l, rank, role);
  if (crosses(l, value, role)) return turn(l, value, bb_lower_fetch(l, value, other), role);
  if (!l->placed[value].made) return read_source(l, value, role);
  found = find_reading(l, value, other);
  if (found) return turn(l, value, found, role);
  return read_through_view(l, value, role);
}

bb_placed *bb_lower_any(bb_lower *l, uint32_t value) {
  bb_lower_force(l, value);
  if (l->placed[value].made) return &l->placed[value];
  bb_role *role = new_roles(l, bb_ix_rank(l->ix, value), NULL);
  bb_lower_natural_roles(l, bb_ix_rank(l->ix, value), l->ix->value[value].dim, role);
  return bb_lower_fetch(l, value, role);
}

void bb_lower_place(bb_lower *l, uint32_t value, bb_value src, const bb_role *role) {
  uint32_t rank = bb_ix_rank(l->ix, value);
  bb_placed *p = &l->placed[value];
  p->made = true;
  p->src = src;
  p->role = new_roles(l, rank, role);
  p->level = BB_NEW(l->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) p->level[a] = a;
}

/* --- slices and joins of computed values --- */

/* A dim that is not blocked can only be looped over, whatever its operand's role. */
static bb_role *roles_where_blocked(bb_lower *l, uint32_t value, const bb_role *role) {
  uint32_t rank = bb_ix_rank(l->ix, value);
  bb_role *out = new_roles(l, rank, role);
  for (uint32_t a = 0; a < rank; a++)
    if (!bb_lower_blocked(l, bb_ix_axis(l->ix, value, a))) out[a] = BB_ROLE_LOOP;
  return out;
}

/* The indices of one operand of a view: every level of its type reads what the view's axis says. */
static bb_index *indices_of(bb_lower *l, const bb_ix_node *node, uint32_t slot, const bb_placed *in,
                            const bb_role *role) {
  uint32_t rank = bb_ix_rank(l->ix, node->in[slot].value),
           out_rank = bb_ix_rank(l->ix, node->out[0]);
  bb_index *index = BB_NEW(l->scratch, bb_index, rank);
  for (uint32_t a = 0; a < rank; a++) {
    uint32_t k = node->in[slot].index[a];
    bb_index *at = &index[in->level[a]];
    *at = (bb_index){.kind = BB_INDEX_DIM, .dim = BB_NO_DIM, .step = 1};
    if (k < out_rank) at->dim = bb_lower_dim(l, node->dim[k], role[k]);
    if (k != node->at || node->op == BB_IX_JOIN) continue;
    at->start = node->op == BB_IX_PAD ? -node->start : node->start;
    if (node->op == BB_IX_WINDOWS) {
      at->kind = BB_INDEX_WINDOW;
      at->step = node->step, at->by = node->by;
      at->tap = bb_lower_dim(l, node->dim[k + 1], role[k + 1]);
      continue;
    }
    at->kind = k < out_rank ? BB_INDEX_RANGE : BB_INDEX_FIXED;
    at->step = k < out_rank && node->op == BB_IX_SLICE ? node->step : 1;
  }
  return index;
}

static int64_t length_of_piece(bb_lower *l, const bb_ix_node *node, uint32_t slot) {
  uint32_t value = node->in[slot].value;
  for (uint32_t a = 0; a < bb_ix_rank(l->ix, value); a++)
    if (node->in[slot].index[a] == node->at)
      return bb_extent_value(bb_ix_extent(l->ix, bb_ix_axis(l->ix, value, a)));
  return 1;
}

/* Have two of a view's axes one dim? */
static bool repeats_dim(bb_lower *l, const bb_ix_node *node) {
  for (uint32_t a = 0; a < bb_ix_rank(l->ix, node->out[0]); a++)
    for (uint32_t b = 0; b < a; b++)
      if (bb_ix_find(l->ix, node->dim[a]) == bb_ix_find(l->ix, node->dim[b])) return true;
  return false;
}

/* The operand whose roles a view has: of a join, one that is computed and has all of its axes.  BB_NONE: those that are computed have
 * others, or operands could not tell their axes apart by these. */
static uint32_t leading_operand(bb_lower *l, const bb_ix_node *node, const bb_placed *const *in) {
  uint32_t first = BB_NONE;
  if (node->op == BB_IX_SLICE || node->op == BB_IX_PAD) return 0;
  if (node->op != BB_IX_JOIN || repeats_dim(l, node)) return BB_NONE;
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_ix_operand *here = &node->in[i];
    if (l->ix->value[here->value].once || bb_ix_node_of(l->ix, here->value)->op == BB_IX_SOURCE)
      continue;
    if (first == BB_NONE) first = i;
    const bb_ix_operand *lead = &node->in[first];
    uint32_t rank = bb_ix_rank(l->ix, here->value);
    if (rank != bb_ix_rank(l->ix, node->out[0])) return BB_NONE;
    for (uint32_t a = 0; a < rank; a++)
      if (here->index[a] != lead->index[a] || in[i]->role[a] != in[first]->role[a]) return BB_NONE;
  }
  return first;
}

/* The roles of a view's axes: those of its operand; windows are seen as their user likes. */
static bb_role *roles_of_view(bb_lower *l, const bb_ix_node *node, const bb_placed *const *in) {
  uint32_t value = node->out[0], rank = bb_ix_rank(l->ix, value);
  bb_role *role = new_roles(l, rank, NULL);
  if (node->op == BB_IX_WINDOWS && bb_lower_wanted_roles(l, value, role))
    return roles_where_blocked(l, value, role);
  bb_lower_natural_roles(l, rank, node->dim, role);
  uint32_t lead = leading_operand(l, node, in);
  if (lead == BB_NONE) return role;
  for (uint32_t a = 0; a < bb_ix_rank(l->ix, node->in[lead].value); a++)
    if (node->in[lead].index[a] < rank) role[node->in[lead].index[a]] = in[lead]->role[a];
  return roles_where_blocked(l, value, role);
}

void bb_lower_view(bb_lower *l, bb_ix_node *node) {
  uint32_t value = node->out[0], rank = bb_ix_rank(l->ix, value);
  const bb_ix_value *v = &l->ix->value[value];
  const bb_placed **in = BB_NEW(l->scratch, const bb_placed *, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) in[i] = bb_lower_any(l, node->in[i].value);
  bb_role *role = roles_of_view(l, node, in);
  uint32_t *level = BB_NEW(l->scratch, uint32_t, rank);
  const bb_type *type = type_of_roles(l, v->dtype, rank, v->dim, role, level);
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_ix_operand *operand = &node->in[i];
    if (!crossed(l, bb_ix_rank(l->ix, operand->value), in[i]->level, operand->index, rank,
                 node->dim, role, level))
      continue;
    in[i] = straightened(l, operand->value, operand->index);
    if (node->op != BB_IX_SLICE && node->op != BB_IX_PAD) continue;
    role = roles_of_view(l, node, in);
    type = type_of_roles(l, v->dtype, rank, v->dim, role, level);
  }
  bb_piece *piece = BB_NEW(l->scratch, bb_piece, node->nin);
  int64_t first = 0;
  for (uint32_t i = 0; i < node->nin; i++) {
    piece[i] = (bb_piece){.source = i, .rank = bb_ix_rank(l->ix, node->in[i].value)};
    piece[i].index = indices_of(l, node, i, in[i], role);
    piece[i].padded = node->op == BB_IX_PAD;
    if (piece[i].padded) piece[i].fill = node->expr->number;
    if (node->op != BB_IX_JOIN) continue;
    piece[i].first = first;
    piece[i].length = length_of_piece(l, node, i);
    first += piece[i].length;
  }
  bb_dim joined =
      node->op == BB_IX_JOIN ? bb_lower_dim(l, node->dim[node->at], role[node->at]) : BB_NO_DIM;
  bb_access access = {.joined = joined, .count = node->nin, .piece = piece};
  bb_placed *p = &l->placed[value];
  p->role = role;
  p->level = level;
  p->src = add_view(l, node->nin, type, bb_access_make(l->program, &access), node->name);
  p->made = true;
  for (uint32_t i = 0; i < node->nin; i++) bb_connect(l->root, p->src.node, i, in[i]->src);
}

/* --- misc nodes and outputs --- */

/* Does a dim that occurs twice stand in another order in the value's type than among `index`? */
static bool out_of_order(bb_lower *l, uint32_t value, const uint32_t *index, const bb_placed *p) {
  uint32_t rank = bb_ix_rank(l->ix, value);
  for (uint32_t a = 0; a < rank; a++)
    for (uint32_t b = 0; b < rank; b++)
      if (index[a] < index[b] && p->level[a] > p->level[b] &&
          bb_lower_dim(l, bb_ix_axis(l->ix, value, a), p->role[a]) ==
              bb_lower_dim(l, bb_ix_axis(l->ix, value, b), p->role[b]))
        return true;
  return false;
}

/* The dim of every axis of a port or output, as the value's type has it; of one that the operand of a port lacks, its class's. */
static bb_dim *storage_dims(bb_lower *l, bb_arena *arena, const bb_ix_operand *in,
                            const bb_placed *p, uint32_t axes, const bb_dim *class) {
  bb_dim *dim = BB_NEW(arena, bb_dim, axes);
  for (uint32_t k = 0; k < axes; k++)
    if (!bb_ix_follows(l->ix, in, k)) dim[k] = bb_lower_dim(l, class[k], BB_ROLE_LOOP);
  for (uint32_t a = 0; a < bb_ix_rank(l->ix, in->value); a++)
    dim[in->index[a]] = bb_lower_dim(l, bb_ix_axis(l->ix, in->value, a), p->role[a]);
  return dim;
}

/* A port that outlives the index form. */
static bb_misc_port lasting_port(bb_arena *arena, const bb_misc_port *port) {
  bb_misc_port lasting = *port;
  const bb_extent **shape = BB_NEW(arena, const bb_extent *, port->rank);
  for (uint32_t i = 0; i < port->rank; i++) shape[i] = port->shape[i];
  lasting.shape = shape;
  return lasting;
}

void bb_lower_misc(bb_lower *l, bb_ix_node *node) {
  bb_arena *arena = l->program->arena;
  bb_misc *misc = BB_NEW(arena, bb_misc, 1);
  *misc = *node->misc;
  bb_misc_port *in = BB_NEW(arena, bb_misc_port, misc->nin),
               *out = BB_NEW(arena, bb_misc_port, misc->nout);
  bb_value *src = BB_NEW(l->scratch, bb_value, node->nin);
  for (uint32_t i = 0, slot = 0; i < misc->nin; i++) {
    in[i] = lasting_port(arena, &misc->in[i]);
    if (in[i].absent) continue;
    const bb_ix_operand *operand = &node->in[slot];
    bb_placed *p = bb_lower_any(l, operand->value);
    if (out_of_order(l, operand->value, operand->index, p)) p = bb_lower_copy(l, node, slot, NULL);
    src[slot++] = p->src;
    in[i].axis = storage_dims(l, arena, operand, p, in[i].axes, misc->in[i].axis);
  }
  uint32_t at = bb_node_add(l->root, BB_NODE_MISC, node->nin, node->nout);
  for (uint32_t i = 0, port = 0; i < misc->nout; i++) {
    out[i] = lasting_port(arena, &misc->out[i]);
    if (out[i].absent) continue;
    uint32_t value = node->out[port];
    const bb_ix_value *v = &l->ix->value[value];
    bb_placed *p = &l->placed[value];
    p->role = new_roles(l, v->rank, NULL);
    bb_lower_natural_roles(l, v->rank, v->dim, p->role);
    p->level = BB_NEW(l->scratch, uint32_t, v->rank);
    bb_node_get(l->root, at)->out[port].type =
        type_of_roles(l, v->dtype, v->rank, v->dim, p->role, p->level);
    bb_dim *axis = BB_NEW(arena, bb_dim, v->rank);
    for (uint32_t a = 0; a < v->rank; a++) axis[a] = bb_lower_dim(l, v->dim[a], p->role[a]);
    out[i].axis = axis;
    p->src = (bb_value){at, port++};
    p->made = true;
  }
  misc->in = in, misc->out = out;
  bb_node_get(l->root, at)->misc = misc;
  bb_node_get(l->root, at)->name = node->name;
  for (uint32_t i = 0; i < node->nin; i++) bb_connect(l->root, at, i, src[i]);
}

/* An output is stored by the nest or the reference kernel that computes it; what has none of its own, or is
 * stored already, is copied. */
void bb_lower_output(bb_lower *l, bb_ix_node *node) {
  const bb_ix_operand *in = &node->in[0];
  bb_placed *p = bb_lower_any(l, in->value);
  bb_kind kind = bb_node_get(l->root, p->src.node)->kind;
  bool direct =
      kind == BB_NODE_MAP || kind == BB_NODE_FUNC || kind == BB_NODE_REDUCE || kind == BB_NODE_MISC;
  if (!direct || l->stored[in->value] || out_of_order(l, in->value, in->index, p))
    p = bb_lower_copy(l, node, 0, NULL);
  l->stored[in->value] = true;
  bb_index *index = BB_NEW(l->scratch, bb_index, node->indices);
  const bb_dim *dim = storage_dims(l, l->scratch, in, p, node->indices, node->dim);
  for (uint32_t a = 0; a < node->indices; a++) index[a] = (bb_index){BB_INDEX_DIM, dim[a], 0, 1};
  bb_piece piece = {.source = l->output[node->at], .rank = node->indices, .index = index};
  bb_access access = {.joined = BB_NO_DIM, .count = 1, .piece = &piece};
  uint32_t at = bb_output_add(l->root, p->src);
  bb_node_get(l->root, at)->tensor = piece.source;
  bb_node_get(l->root, at)->access = bb_access_make(l->program, &access);
  bb_node_get(l->root, at)->name = node->name;
}
