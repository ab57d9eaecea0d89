/* hash.c - the Merkle hash of a block program; see hash.h for what enters it.
 *
 * A node's hash covers its kind, attributes, types and the hashes of its operands; a level's hash
 * those of its inputs and outputs in order and how many nodes it has.  Dims, symbols and tensors
 * are numbered as they are met, in a walk that depends on structure alone: inputs in order, then the
 * operands of the outputs, each after its own operands.  One visit for every node and port.
 */
#include "hash.h"
#include "intern.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Words on their way into a hash. */
typedef struct words {
  uint64_t *word;
  uint32_t count, capacity;
} words;

/* What counts by order of appearance. */
typedef enum name_kind { DIM, SYMBOL, TENSOR, NAMES } name_kind;

typedef struct number {
  name_kind kind;
  uint32_t index, order;
} number;

typedef struct hasher {
  const bb_program *program;
  bb_arena *arena;
  words node;         /* reused for every node */
  bb_intern *numbers; /* of what was met */
  uint32_t met[NAMES];
} hasher;

static void put(hasher *h, words *w, uint64_t word) {
  BB_GROW(h->arena, w->word, w->capacity, (size_t)w->count + 1);
  w->word[w->count++] = word;
}

static void put_hash(hasher *h, words *w, bb_hash hash) {
  put(h, w, hash.low);
  put(h, w, hash.high);
}

static void put_text(hasher *h, words *w, const char *text) {
  size_t length = text ? strlen(text) : 0;
  put(h, w, length);
  put(h, w, text ? bb_hash_bytes(text, length, 0) : 0);
  put(h, w, text ? bb_hash_bytes(text, length, 1) : 0);
}

static void put_double(hasher *h, words *w, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put(h, w, bits);
}

static bb_hash finish(const words *w) {
  XXH128_hash_t hash = XXH3_128bits(w->word, w->count * sizeof *w->word);
  return (bb_hash){hash.low64, hash.high64};
}

/* --- what is numbered by first appearance --- */

static uint64_t hash_number(const void *object) {
  const number *n = object;
  return (((uint64_t)n->kind << 32 | n->index) * UINT64_C(0x9E3779B97F4A7C15)) >> 20;
}

static bool same_number(const void *left, const void *right) {
  const number *a = left, *b = right;
  return a->kind == b->kind && a->index == b->index;
}

/* Puts the order in which a dim, symbol or tensor appeared; true if it is new. */
static bool put_number(hasher *h, words *w, name_kind kind, uint32_t index) {
  const number key = {kind, index, 0}, *found = bb_intern_find(h->numbers, &key);
  put(h, w, found ? found->order : h->met[kind]);
  if (found) return false;
  number *fresh = BB_NEW(h->arena, number, 1);
  *fresh = (number){kind, index, h->met[kind]++};
  bb_intern_add(h->numbers, fresh);
  return true;
}

static void put_extent(hasher *h, words *w, const bb_extent *extent) {
  put(h, w, (uint64_t)extent->factor);
  put(h, w, extent->count);
  for (uint32_t i = 0; i < extent->count; i++) put_number(h, w, SYMBOL, extent->symbol[i]);
}

static void put_dim(hasher *h, words *w, bb_dim dim) {
  if (dim >= h->program->dims) {
    put(h, w, BB_NO_DIM);
    return;
  }
  if (!put_number(h, w, DIM, dim)) return;
  put(h, w, h->program->dim[dim].blocked);
  put_extent(h, w, h->program->dim[dim].extent);
}

static void put_tensor(hasher *h, words *w, uint32_t tensor) {
  if (tensor >= h->program->tensors) {
    put(h, w, BB_NONE);
    return;
  }
  if (!put_number(h, w, TENSOR, tensor)) return;
  const bb_tensor *t = &h->program->tensor[tensor];
  put(h, w, t->dtype);
  put(h, w, t->axes);
  for (uint32_t i = 0; i < t->axes; i++) put_dim(h, w, t->axis[i]);
}

static void put_type(hasher *h, words *w, const bb_type *type) {
  put(h, w, type ? type->rank + 1 : 0);
  if (!type) return;
  for (uint32_t i = 0; i < type->rank; i++) {
    put_dim(h, w, type->level[i].dim);
    put(h, w, type->level[i].axis);
  }
  put(h, w, type->item.dtype);
  put_dim(h, w, type->item.row);
  put_dim(h, w, type->item.col);
}

/* --- attributes --- */

/* Where the children of expressions stand in a post-order. */
typedef struct place {
  const bb_expr *expr;
  uint32_t index;
} place;

static uint64_t hash_place(const void *object) {
  return (((const place *)object)->expr->id * UINT64_C(0x9E3779B97F4A7C15)) >> 20;
}

static bool same_place(const void *a, const void *b) {
  return ((const place *)a)->expr == ((const place *)b)->expr;
}

static void put_leaf(hasher *h, words *w, const bb_expr *leaf) {
  switch (leaf->op) {
  case BB_X_CONST: put_double(h, w, leaf->number); break;
  case BB_X_EXTENT: put_dim(h, w, leaf->dim); break;
  case BB_X_SYMBOL: put_number(h, w, SYMBOL, leaf->index); break;
  default: put(h, w, leaf->index);
  }
}

/* The nodes in post-order, children by their place in it. */
static void put_expr(hasher *h, words *w, const bb_expr *expr) {
  if (!expr) {
    put(h, w, 0);
    return;
  }
  bb_arena *scratch = bb_scratch(h->program->ctx);
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  bb_intern *places = bb_intern_create(scratch, hash_place, same_place);
  put(h, w, count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t arity = bb_expr_op_arity(node[i]->op);
    put(h, w, (uint64_t)node[i]->op << 32 | node[i]->dtype);
    if (arity == 0) put_leaf(h, w, node[i]);
    for (uint32_t k = 0; k < arity; k++) {
      const place *child = bb_intern_find(places, &(place){.expr = node[i]->a[k]});
      put(h, w, child->index);
    }
    place *here = BB_NEW(scratch, place, 1);
    *here = (place){node[i], i};
    bb_intern_add(places, here);
  }
  bb_scratch_end(scratch);
}

static void put_access(hasher *h, words *w, const bb_access *access, bool tensors) {
  put(h, w, access ? access->count + 1 : 0);
  if (!access) return;
  put_dim(h, w, access->joined);
  for (uint32_t i = 0; i < access->count; i++) {
    const bb_piece *piece = &access->piece[i];
    if (tensors)
      put_tensor(h, w, piece->source);
    else
      put(h, w, piece->source);
    put(h, w, piece->rank);
    for (uint32_t k = 0; k < piece->rank; k++) {
      const bb_index *index = &piece->index[k];
      put(h, w, index->kind);
      put_dim(h, w, index->kind == BB_INDEX_FIXED ? BB_NO_DIM : index->dim);
      put(h, w, index->kind == BB_INDEX_DIM ? 0 : (uint64_t)index->start);
      bool steps = index->kind == BB_INDEX_RANGE || index->kind == BB_INDEX_WINDOW;
      put(h, w, steps ? (uint64_t)index->step : 0);
      if (index->kind != BB_INDEX_WINDOW) continue;
      put_dim(h, w, index->tap);
      put(h, w, (uint64_t)index->by);
    }
    put(h, w, access->joined == BB_NO_DIM ? 0 : (uint64_t)piece->first);
    put(h, w, access->joined == BB_NO_DIM ? 0 : (uint64_t)piece->length);
    put(h, w, piece->padded);
    if (piece->padded) put_double(h, w, piece->fill);
  }
}

static void put_attribute(hasher *h, words *w, const bb_attribute *attribute) {
  put_text(h, w, attribute->name);
  put(h, w, attribute->kind);
  put(h, w, (uint64_t)attribute->i);
  put_double(h, w, attribute->f);
  put_text(h, w, attribute->text);
  put(h, w, attribute->count);
  for (uint32_t i = 0; i < attribute->count; i++) {
    if (attribute->kind == BB_ATTR_INTS) put(h, w, (uint64_t)attribute->ints[i]);
    if (attribute->kind == BB_ATTR_FLOATS) put_double(h, w, attribute->floats[i]);
  }
}

static void put_ports(hasher *h, words *w, uint32_t count, const bb_misc_port *port) {
  put(h, w, port ? count + 1 : 0);
  for (uint32_t i = 0; port && i < count; i++) {
    put(h, w, port[i].absent);
    if (port[i].absent) continue;
    put(h, w, port[i].dtype);
    put(h, w, port[i].rank);
    for (uint32_t k = 0; k < port[i].rank; k++) put_extent(h, w, port[i].shape[k]);
    put(h, w, port[i].axes);
    for (uint32_t k = 0; k < port[i].axes; k++) put_dim(h, w, port[i].axis[k]);
  }
}

static void put_misc(hasher *h, words *w, const bb_misc *misc) {
  if (!misc) {
    put(h, w, 0);
    return;
  }
  put_text(h, w, misc->domain);
  put_text(h, w, misc->op);
  put(h, w, misc->version);
  put(h, w, misc->count);
  for (uint32_t i = 0; i < misc->count; i++) put_attribute(h, w, &misc->attribute[i]);
  put_ports(h, w, misc->nin, misc->in);
  put_ports(h, w, misc->nout, misc->out);
}

/* What it is, not what it is called. */
static void put_monoid(hasher *h, words *w, const bb_monoid *monoid) {
  put(h, w, monoid ? monoid->id + 1u : 0);
  if (!monoid || !monoid->component) return;
  put(h, w, monoid->components);
  for (uint32_t k = 0; k < monoid->components; k++) {
    const bb_monoid_component *c = &monoid->component[k];
    put(h, w, (uint64_t)c->dtype << 32 | c->fold);
    put_double(h, w, c->empty);
    put_double(h, w, c->low);
    put_double(h, w, c->high);
    put_expr(h, w, c->combine);
    put_expr(h, w, c->repair);
  }
}

/* --- levels --- */

static bb_hash hash_level(hasher *h, const bb_graph *graph);

static void put_node(hasher *h, words *w, const bb_node *node) {
  put(h, w, (uint64_t)node->kind << 32 | node->nin);
  put(h, w, node->nout);
  switch (node->kind) {
  case BB_NODE_INPUT:
  case BB_NODE_OUTPUT:
    put_tensor(h, w, node->tensor);
    put_access(h, w, node->access, true);
    break;
  case BB_NODE_FUNC:
    put(h, w, node->op);
    put_expr(h, w, node->expr);
    if (bb_op_has_monoid(node->op)) put_monoid(h, w, node->rows);
    break;
  case BB_NODE_MAP:
    put_dim(h, w, node->dim);
    put(h, w, (uint64_t)bb_chunk_depth(node) << 32 | node->part);
    put(h, w, node->block);
    for (uint32_t i = 0; i < bb_chunk_depth(node); i++) put_dim(h, w, node->chunk->dim[i]);
    break;
  case BB_NODE_REDUCE:
    put_monoid(h, w, node->monoid);
    put(h, w, node->reduce);
    break;
  case BB_NODE_VIEW: put_access(h, w, node->access, false); break;
  case BB_NODE_MISC: put_misc(h, w, node->misc); break;
  case BB_NODE_REMOVED: break;
  }
  for (uint32_t i = 0; i < node->nout; i++) {
    const bb_out *out = &node->out[i];
    put_type(h, w, out->type);
    put(h, w, (uint64_t)out->mode << 32 | out->axis);
    put_monoid(h, w, out->fold);
    put(h, w, (uint64_t)out->resumes << 32 | out->component);
  }
}

/* Operands are hashed; `position` is the place among the level's inputs, or BB_NONE. */
static bb_hash hash_node(hasher *h, const bb_graph *graph, const bb_node *node, uint32_t position,
                         const bb_hash *done) {
  bb_hash inner = {0, 0};
  if (node->kind == BB_NODE_MAP) inner = hash_level(h, node->inner);
  words *w = &h->node;
  w->count = 0;
  put(h, w, position);
  put_hash(h, w, inner);
  put_node(h, w, node);
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_value src = node->in[i].src;
    put(h, w, node->in[i].level);
    put(h, w, src.port);
    if (src.node != BB_NONE && src.node < graph->count) put_hash(h, w, done[src.node]);
  }
  return finish(w);
}

/* A level being walked. */
typedef struct walk {
  bb_hash *done;  /* by node */
  uint8_t *state; /* 0 new, 1 on the stack, 2 done */
  uint32_t *stack;
  uint32_t *next; /* by node: the operand to visit next */
} walk;

/* Hashes a node after all it needs; iterative, since a level may be one long chain. */
static void visit(hasher *h, const bb_graph *graph, walk *w, uint32_t root) {
  uint32_t depth = 0;
  if (w->state[root]) return;
  w->stack[depth++] = root;
  w->state[root] = 1;
  while (depth) {
    uint32_t at = w->stack[depth - 1];
    const bb_node *node = graph->node[at];
    if (w->next[at] < node->nin) {
      uint32_t src = node->in[w->next[at]++].src.node;
      if (src == BB_NONE || w->state[src]) continue; /* on the stack: a cycle breaks the laws */
      w->state[src] = 1;
      w->stack[depth++] = src;
      continue;
    }
    w->done[at] = hash_node(h, graph, node, BB_NONE, w->done);
    w->state[at] = 2;
    depth--;
  }
}

static bb_hash hash_level(hasher *h, const bb_graph *graph) {
  bb_arena *scratch = bb_scratch(h->program->ctx);
  walk w = {.done = BB_NEW(scratch, bb_hash, graph->count),
            .state = BB_NEW(scratch, uint8_t, graph->count),
            .stack = BB_NEW(scratch, uint32_t, (size_t)graph->live + 1),
            .next = BB_NEW(scratch, uint32_t, graph->count)};
  words all = {0};
  put(h, &all, graph->live);
  put(h, &all, graph->ninputs);
  put(h, &all, graph->noutputs);
  for (uint32_t i = 0; i < graph->ninputs; i++) {
    uint32_t input = graph->input[i];
    w.done[input] = hash_node(h, graph, graph->node[input], i, w.done);
    w.state[input] = 2;
    put_hash(h, &all, w.done[input]);
  }
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    visit(h, graph, &w, graph->output[i]);
    put_hash(h, &all, w.done[graph->output[i]]);
  }
  bb_scratch_end(scratch);
  return finish(&all);
}

bb_hash bb_hash_graph(const bb_program *program, const bb_graph *graph) {
  bb_arena *own = bb_scratch(program->ctx);
  hasher h = {.program = program, .arena = own};
  h.numbers = bb_intern_create(own, hash_number, same_number);
  bb_hash hash = hash_level(&h, graph);
  bb_scratch_end(own);
  return hash;
}

void bb_hash_text(bb_hash hash, char text[33]) {
  snprintf(text, 33, "%016llx%016llx", (unsigned long long)hash.high, (unsigned long long)hash.low);
}
