/* twin.c - equal candidates: one is the other with different dims and tensors.
 *
 * Two graphs match if walking both in the order of their nodes finds the same structure and maps the
 * dims and tensors of one onto those of the other, one to one.  That is stricter than isomorphism:
 * a pair that is missed only costs time.
 */
#include "flow.h"

#include <string.h>

/* A one-to-one map of numbers, emptied in time proportional to what it holds. */
typedef struct pairing {
  uint32_t capacity, *there, *back; /* BB_NONE: not met */
  uint32_t pairs, pair_capacity, *first;
} pairing;

struct bb_twin {
  bb_program *program;
  bb_arena *arena;   /* of the pairings */
  bb_arena *scratch; /* of one match */
  pairing dims, tensors;
};

static void pairing_reset(bb_twin *t, pairing *p, uint32_t size) {
  for (; p->pairs; p->pairs--) {
    uint32_t a = p->first[p->pairs - 1];
    p->back[p->there[a]] = BB_NONE;
    p->there[a] = BB_NONE;
  }
  uint32_t old = p->capacity, room = old;
  BB_GROW(t->arena, p->there, p->capacity, size);
  BB_GROW(t->arena, p->back, room, size);
  if (p->capacity == old) return;
  memset(p->there + old, 0xFF, (p->capacity - old) * sizeof *p->there);
  memset(p->back + old, 0xFF, (room - old) * sizeof *p->back);
}

/* May a and b be a pair?  *fresh: they are none yet. */
static bool pairing_agrees(const pairing *p, uint32_t a, uint32_t b, bool *fresh) {
  *fresh = p->there[a] == BB_NONE && p->back[b] == BB_NONE;
  return *fresh || (p->there[a] == b && p->back[b] == a);
}

static void pairing_add(bb_twin *t, pairing *p, uint32_t a, uint32_t b) {
  BB_GROW(t->arena, p->first, p->pair_capacity, (size_t)p->pairs + 1);
  p->first[p->pairs++] = a;
  p->there[a] = b;
  p->back[b] = a;
}

static bool pair_dims(bb_twin *t, bb_dim a, bb_dim b) {
  if (a == BB_NO_DIM || b == BB_NO_DIM) return a == b;
  bool fresh, agrees = pairing_agrees(&t->dims, a, b, &fresh);
  if (!fresh) return agrees;
  const bb_dim_info *x = bb_dim_get(t->program, a), *y = bb_dim_get(t->program, b);
  if (x->extent != y->extent || x->blocked != y->blocked) return false;
  pairing_add(t, &t->dims, a, b);
  return true;
}

static bool pair_types(bb_twin *t, const bb_type *a, const bb_type *b) {
  if (a->rank != b->rank || a->item.dtype != b->item.dtype ||
      !pair_dims(t, a->item.row, b->item.row) || !pair_dims(t, a->item.col, b->item.col))
    return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->level[i].axis != b->level[i].axis || !pair_dims(t, a->level[i].dim, b->level[i].dim))
      return false;
  return true;
}

static bool pair_exprs(bb_twin *t, const bb_expr *a, const bb_expr *b) {
  if (!a || !b) return a == b;
  if (a->op != b->op || a->dtype != b->dtype || a->index != b->index ||
      memcmp(&a->number, &b->number, sizeof a->number) != 0 || a->depth != b->depth ||
      !pair_dims(t, a->dim, b->dim))
    return false;
  for (int i = 0; i < 3; i++)
    if (!pair_exprs(t, a->a[i], b->a[i])) return false;
  return true;
}

static bool pair_tensors(bb_twin *t, uint32_t a, uint32_t b) {
  bool fresh, agrees = pairing_agrees(&t->tensors, a, b, &fresh);
  if (!fresh) return agrees;
  const bb_tensor *x = &t->program->tensor[a], *y = &t->program->tensor[b];
  if (x->dtype != y->dtype || x->axes != y->axes || x->once != y->once ||
      (x->role == BB_TENSOR_CONSTANT) != (y->role == BB_TENSOR_CONSTANT))
    return false;
  for (uint32_t i = 0; i < x->axes; i++)
    if (bb_dim_get(t->program, x->axis[i])->extent != bb_dim_get(t->program, y->axis[i])->extent)
      return false;
  pairing_add(t, &t->tensors, a, b);
  return true;
}

static bool pair_accesses(bb_twin *t, const bb_access *a, const bb_access *b) {
  if (a->count != b->count || !pair_dims(t, a->joined, b->joined)) return false;
  for (uint32_t p = 0; p < a->count; p++) {
    const bb_piece *x = &a->piece[p], *y = &b->piece[p];
    if (x->rank != y->rank || x->first != y->first || x->length != y->length ||
        !bb_piece_same_fill(x, y) || !pair_tensors(t, x->source, y->source))
      return false;
    for (uint32_t i = 0; i < x->rank; i++)
      if (x->index[i].kind != y->index[i].kind || x->index[i].start != y->index[i].start ||
          x->index[i].step != y->index[i].step || x->index[i].by != y->index[i].by ||
          !pair_dims(t, x->index[i].dim, y->index[i].dim) ||
          (x->index[i].kind == BB_INDEX_WINDOW && !pair_dims(t, x->index[i].tap, y->index[i].tap)))
        return false;
  }
  return true;
}

static bool pair_graphs(bb_twin *t, const bb_graph *a, const bb_graph *b);

/* `at` are the indices in b of a's nodes. */
static bool pair_ports(bb_twin *t, const bb_node *a, const bb_node *b, const uint32_t *at) {
  if (a->nin != b->nin || a->nout != b->nout) return false;
  for (uint32_t p = 0; p < a->nin; p++)
    if (at[a->in[p].src.node] != b->in[p].src.node || a->in[p].src.port != b->in[p].src.port ||
        a->in[p].level != b->in[p].level)
      return false;
  for (uint32_t p = 0; p < a->nout; p++)
    if (a->out[p].mode != b->out[p].mode || a->out[p].axis != b->out[p].axis ||
        a->out[p].fold != b->out[p].fold || a->out[p].component != b->out[p].component ||
        !pair_types(t, a->out[p].type, b->out[p].type))
      return false;
  return true;
}

static bool pair_nodes(bb_twin *t, const bb_node *a, const bb_node *b, const uint32_t *at) {
  if (a->kind != b->kind || !pair_ports(t, a, b, at)) return false;
  switch (a->kind) {
  case BB_NODE_FUNC: return a->op == b->op && a->rows == b->rows && pair_exprs(t, a->expr, b->expr);
  case BB_NODE_REDUCE: return a->monoid == b->monoid && a->reduce == b->reduce;
  case BB_NODE_MAP:
    if (a->part != b->part || bb_chunk_depth(a) != bb_chunk_depth(b)) return false;
    for (uint32_t i = 0; i < bb_chunk_depth(a); i++)
      if (!pair_dims(t, a->chunk->dim[i], b->chunk->dim[i])) return false;
    return pair_dims(t, a->dim, b->dim) && pair_graphs(t, a->inner, b->inner);
  default:
    return !a->access == !b->access && (!a->access || pair_accesses(t, a->access, b->access));
  }
}

static bool pair_lists(uint32_t count, const uint32_t *a, const uint32_t *b, const uint32_t *at) {
  for (uint32_t i = 0; i < count; i++)
    if (at[a[i]] != b[i]) return false;
  return true;
}

static bool pair_graphs(bb_twin *t, const bb_graph *a, const bb_graph *b) {
  if (a->live != b->live || a->ninputs != b->ninputs || a->noutputs != b->noutputs) return false;
  uint32_t *at = BB_NEW(t->scratch, uint32_t, a->count), j = 0;
  for (uint32_t i = 0; i < a->count; i++) {
    if (a->node[i]->kind == BB_NODE_REMOVED) continue;
    while (b->node[j]->kind == BB_NODE_REMOVED) j++;
    at[i] = j++;
  }
  for (uint32_t i = 0; i < a->count; i++)
    if (a->node[i]->kind != BB_NODE_REMOVED && !pair_nodes(t, a->node[i], b->node[at[i]], at))
      return false;
  return pair_lists(a->ninputs, a->input, b->input, at) &&
         pair_lists(a->noutputs, a->output, b->output, at);
}

bb_twin *bb_twin_create(bb_program *program, bb_arena *arena) {
  bb_twin *t = BB_NEW(arena, bb_twin, 1);
  *t = (bb_twin){.program = program, .arena = arena};
  return t;
}

bool bb_twin_match(bb_twin *t, const bb_graph *a, const bb_graph *b, bb_arena *scratch) {
  t->scratch = scratch;
  pairing_reset(t, &t->dims, t->program->dims);
  pairing_reset(t, &t->tensors, t->program->tensors);
  return pair_graphs(t, a, b);
}

/* --- turning what became of `a` into what becomes of `b` --- */

bb_dim bb_twin_dim(const bb_twin *t, bb_dim dim) {
  return dim == BB_NO_DIM || t->dims.there[dim] == BB_NONE ? dim : t->dims.there[dim];
}

static uint32_t twin_tensor(const bb_twin *t, uint32_t tensor) {
  return t->tensors.there[tensor] == BB_NONE ? tensor : t->tensors.there[tensor];
}

static const bb_type *twin_type(bb_twin *t, const bb_type *type) {
  bb_level *level = BB_NEW(t->scratch, bb_level, type->rank);
  for (uint32_t i = 0; i < type->rank; i++)
    level[i] = (bb_level){bb_twin_dim(t, type->level[i].dim), type->level[i].axis};
  bb_item item = {type->item.dtype, bb_twin_dim(t, type->item.row), bb_twin_dim(t, type->item.col)};
  return bb_type_make(t->program, item, type->rank, level);
}

static const bb_expr *twin_leaf(void *user, const bb_expr *leaf) {
  bb_twin *t = user;
  return leaf->op == BB_X_EXTENT ? bb_expr_extent(t->program, bb_twin_dim(t, leaf->dim)) : leaf;
}

static const bb_access *twin_access(bb_twin *t, const bb_access *access) {
  bb_piece *piece = BB_NEW(t->scratch, bb_piece, access->count);
  for (uint32_t p = 0; p < access->count; p++) {
    piece[p] = access->piece[p];
    piece[p].source = twin_tensor(t, piece[p].source);
    bb_index *index = BB_NEW(t->scratch, bb_index, piece[p].rank);
    for (uint32_t i = 0; i < piece[p].rank; i++) {
      index[i] = piece[p].index[i];
      index[i].dim = bb_twin_dim(t, index[i].dim);
      if (index[i].kind == BB_INDEX_WINDOW) index[i].tap = bb_twin_dim(t, index[i].tap);
    }
    piece[p].index = index;
  }
  bb_access twin = {bb_twin_dim(t, access->joined), access->count, piece};
  return bb_access_make(t->program, &twin);
}

static const bb_numbering *twin_numbering(bb_twin *t, const bb_numbering *old) {
  bb_numbering *made = BB_NEW(t->program->arena, bb_numbering, 1);
  bb_dim *dim = BB_NEW(t->program->arena, bb_dim, old->count);
  for (uint32_t i = 0; i < old->count; i++) dim[i] = bb_twin_dim(t, old->dim[i]);
  *made = (bb_numbering){old->count, dim};
  return made;
}

static void translate(bb_twin *t, bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    bb_node *node = graph->node[i];
    for (uint32_t p = 0; p < node->nout; p++) node->out[p].type = twin_type(t, node->out[p].type);
    if (node->kind == BB_NODE_FUNC && node->expr)
      node->expr = bb_expr_map_leaves(t->program, node->expr, twin_leaf, t);
    if (node->kind == BB_NODE_MAP) {
      node->dim = bb_twin_dim(t, node->dim);
      if (node->part == BB_PART_CHUNK) node->chunk = twin_numbering(t, node->chunk);
      translate(t, node->inner);
    } else if (node->kind != BB_NODE_FUNC && node->access)
      node->access = twin_access(t, node->access);
    if (bb_node_has_tensor(node)) node->tensor = twin_tensor(t, node->tensor);
  }
}

bb_graph *bb_twin_graph(bb_twin *twin, bb_graph *graph) {
  bb_graph *copy = bb_graph_copy(graph);
  translate(twin, copy);
  return copy;
}
