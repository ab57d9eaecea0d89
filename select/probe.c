/* probe.c - a kernel of pieces as a block program of its own, and as a key.
 *
 * A key is a sequence of words: for each node what it is, with its dims numbered as the kernel meets
 * them, where its operands come from, and which of its values leave.  What a node is does not change
 * while a flow is cut, so it is put in words and given a number once.
 */
#include "pieces.h"
#include "../graph/hash.h"
#include "../graph/intern.h"

#include <string.h>

/* --- keys --- */

typedef struct words {
  uint32_t count, capacity;
  uint64_t *word;
} words;

/* What a node is, but for its dims. */
typedef struct shape {
  uint64_t hash;
  uint32_t words, number;
  const uint64_t *word;
} shape;

typedef struct met {
  uint32_t count, capacity;
  bb_dim *dim;
} met;

struct bb_keys {
  const bb_program *program;
  bool layouts;
  bb_arena *arena, *scratch;
  bb_intern *shapes;
  const bb_pieces *pieces;
  const shape **shape_of; /* by node of the flow; NULL: not yet asked for */
  met *dims_of;           /* by node: its dims, as it meets them */
  words node;             /* reused */
  bb_piece_key key;
  uint32_t *dim_stamp, *dim_number, dim_capacity, number_capacity, stamp, dims;
  uint32_t *value_stamp, *value_number, stamp_capacity, value_capacity, values;
};

static uint64_t shape_hash(const void *object) {
  return ((const shape *)object)->hash;
}

static bool shape_equal(const void *left, const void *right) {
  const shape *a = left, *b = right;
  return a->words == b->words && memcmp(a->word, b->word, a->words * sizeof *a->word) == 0;
}

bb_keys *bb_keys_create(const bb_program *program, bool layouts, bb_arena *arena) {
  bb_keys *keys = BB_NEW(arena, bb_keys, 1);
  *keys = (bb_keys){.program = program, .layouts = layouts, .arena = arena};
  keys->shapes = bb_intern_create(arena, shape_hash, shape_equal);
  return keys;
}

void bb_keys_begin(bb_keys *keys, const bb_pieces *pieces) {
  uint32_t nodes = pieces->flow->graph->count;
  keys->pieces = pieces;
  keys->shape_of = BB_NEW(keys->arena, const shape *, nodes);
  keys->dims_of = BB_NEW(keys->arena, met, nodes);
}

static void put(bb_keys *keys, uint64_t word) {
  words *w = &keys->node;
  BB_GROW(keys->arena, w->word, w->capacity, (size_t)w->count + 1);
  w->word[w->count++] = word;
}

static void put_dim(bb_keys *keys, met *m, bb_dim dim) {
  uint32_t i = 0;
  while (i < m->count && m->dim[i] != dim) i++;
  if (i == m->count) {
    BB_GROW(keys->arena, m->dim, m->capacity, (size_t)m->count + 1);
    m->dim[m->count++] = dim;
  }
  put(keys, i);
}

static void put_type(bb_keys *keys, met *m, const bb_type *type) {
  put(keys, (uint64_t)type->item.dtype << 32 | type->rank);
  put_dim(keys, m, type->item.row);
  put_dim(keys, m, type->item.col);
  for (uint32_t i = 0; i < type->rank; i++) {
    put_dim(keys, m, type->level[i].dim);
    put(keys, type->level[i].axis);
  }
}

static void put_node(bb_keys *keys, met *m, const bb_graph *graph, uint32_t n);

static void put_level(bb_keys *keys, met *m, const bb_graph *graph) {
  uint32_t *order = BB_NEW(keys->arena, uint32_t, graph->count), count = 0;
  for (uint32_t i = 0; i < graph->count; i++)
    if (graph->node[i]->kind != BB_NODE_REMOVED) order[i] = count++;
  put(keys, count);
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REMOVED) continue;
    put_node(keys, m, graph, i);
    for (uint32_t p = 0; p < node->nin; p++)
      put(keys, (uint64_t)order[node->in[p].src.node] << 32 | node->in[p].src.port);
  }
  for (uint32_t i = 0; i < graph->ninputs; i++) put(keys, order[graph->input[i]]);
  for (uint32_t i = 0; i < graph->noutputs; i++) put(keys, order[graph->output[i]]);
}

/* All of a node but where its operands come from.  Expressions and monoids are one for equal ones. */
static void put_node(bb_keys *keys, met *m, const bb_graph *graph, uint32_t n) {
  const bb_node *node = graph->node[n];
  put(keys, (uint64_t)node->kind << 48 | (uint64_t)node->nin << 24 | node->nout);
  for (uint32_t p = 0; p < node->nin; p++) put(keys, node->in[p].level);
  for (uint32_t p = 0; p < node->nout; p++) {
    const bb_out *out = &node->out[p];
    put_type(keys, m, out->type);
    put(keys, (uint64_t)out->mode << 48 | (uint64_t)out->axis << 40 | out->component);
    put(keys, (uint64_t)(uintptr_t)out->fold);
    put(keys, out->resumes);
  }
  if (node->kind == BB_NODE_FUNC) {
    put(keys, node->op);
    put(keys, (uint64_t)(uintptr_t)node->expr);
  }
  if (node->kind == BB_NODE_REDUCE) {
    put(keys, (uint64_t)(uintptr_t)node->monoid);
    put(keys, node->reduce);
  }
  if (node->kind == BB_NODE_MAP) {
    put_dim(keys, m, node->dim);
    put(keys, node->part);
    put_level(keys, m, node->inner);
  }
}

static const shape *shape_of(bb_keys *keys, uint32_t n) {
  if (keys->shape_of[n]) return keys->shape_of[n];
  const bb_graph *graph = keys->pieces->flow->graph;
  keys->node.count = 0;
  put_node(keys, &keys->dims_of[n], graph, n);
  for (uint32_t p = 0; p < graph->node[n]->nin; p++)
    put_type(keys, &keys->dims_of[n], bb_type_of(graph, graph->node[n]->in[p].src));
  shape wanted = {.words = keys->node.count, .word = keys->node.word};
  wanted.hash = bb_hash_bytes(wanted.word, wanted.words * sizeof *wanted.word, 0);
  const shape *found = bb_intern_find(keys->shapes, &wanted);
  if (!found) {
    shape *made = BB_NEW(keys->arena, shape, 1);
    uint64_t *word = BB_NEW(keys->arena, uint64_t, wanted.words);
    memcpy(word, wanted.word, wanted.words * sizeof *word);
    *made = (shape){wanted.hash, wanted.words, keys->shapes->count, word};
    bb_intern_add(keys->shapes, made);
    found = made;
  }
  return keys->shape_of[n] = found;
}

static void put_word(bb_keys *keys, uint64_t word) {
  bb_piece_key *key = &keys->key;
  BB_GROW(keys->arena, key->word, key->capacity, (size_t)key->words + 1);
  key->word[key->words++] = word;
}

/* A dim that the kernel meets for the first time is told by its extent. */
static void put_kernel_dim(bb_keys *keys, bb_dim dim) {
  if (dim == BB_NO_DIM) {
    put_word(keys, UINT64_MAX);
    return;
  }
  bool fresh = keys->dim_stamp[dim] != keys->stamp;
  if (fresh) {
    keys->dim_stamp[dim] = keys->stamp;
    keys->dim_number[dim] = keys->dims++;
  }
  put_word(keys, keys->dim_number[dim]);
  const bb_dim_info *info = bb_dim_get(keys->program, dim);
  if (fresh) put_word(keys, (uint64_t)(uintptr_t)info->extent | info->blocked);
}

static uint32_t level_over(const bb_type *type, bb_dim dim) {
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->level[i].dim == dim) return i;
  return BB_NONE;
}

/* How an input lies in memory: which level each axis of it is, and by what steps. */
static void put_layout(bb_keys *keys, const bb_node *input) {
  const bb_access *access = input->access;
  put_word(keys, access->count);
  for (uint32_t p = 0; p < access->count; p++) {
    const bb_piece *piece = &access->piece[p];
    put_word(keys, (uint64_t)piece->rank << 1 | piece->padded);
    for (uint32_t i = 0; i < piece->rank; i++) {
      const bb_index *index = &piece->index[i];
      put_word(keys, index->kind);
      for (uint32_t k = 0; k < bb_index_dims(index); k++) {
        put_word(keys, level_over(input->out[0].type, bb_index_dim(index, k)));
        put_word(keys, (uint64_t)(k ? index->by : index->step));
      }
    }
  }
}

static void put_operand(bb_keys *keys, bb_value src) {
  const bb_node *maker = keys->pieces->flow->graph->node[src.node];
  uint32_t value = keys->pieces->flow->first_value[src.node] + src.port;
  bool fresh = keys->value_stamp[value] != keys->stamp;
  if (fresh) {
    keys->value_stamp[value] = keys->stamp;
    keys->value_number[value] = keys->values++;
  }
  put_word(keys, keys->value_number[value]);
  if (fresh && keys->layouts && maker->kind == BB_NODE_INPUT && maker->access)
    put_layout(keys, maker);
}

static void put_kernel_node(bb_keys *keys, uint32_t n, bool stored) {
  const bb_node *node = keys->pieces->flow->graph->node[n];
  put_word(keys, (uint64_t)shape_of(keys, n)->number << 1 | stored);
  for (uint32_t i = 0; i < keys->dims_of[n].count; i++)
    put_kernel_dim(keys, keys->dims_of[n].dim[i]);
  for (uint32_t p = 0; p < node->nin; p++) put_operand(keys, node->in[p].src);
  for (uint32_t p = 0; p < node->nout; p++) put_operand(keys, (bb_value){n, p});
}

static bool leaves(const bb_pieces *pieces, const bb_cover_kernel *kernel, bb_value value);

const bb_piece_key *bb_keys_make(bb_keys *keys, const bb_cover_kernel *kernel) {
  const bb_pieces *pieces = keys->pieces;
  uint32_t values = pieces->flow->values;
  BB_GROW(keys->arena, keys->dim_stamp, keys->dim_capacity, keys->program->dims);
  BB_GROW(keys->arena, keys->dim_number, keys->number_capacity, keys->program->dims);
  BB_GROW(keys->arena, keys->value_stamp, keys->stamp_capacity, values);
  BB_GROW(keys->arena, keys->value_number, keys->value_capacity, values);
  keys->stamp++;
  keys->dims = keys->values = keys->key.words = 0;
  put_word(keys, pieces->cover[kernel->node[0]].group);
  for (uint32_t i = 0; i < kernel->nodes; i++)
    for (uint32_t k = pieces->start[kernel->node[i]]; k < pieces->start[kernel->node[i] + 1]; k++) {
      uint32_t n = pieces->node[k];
      uint64_t stored = 0;
      put_kernel_node(keys, n, kernel->stored[i]);
      for (uint32_t p = 0; p < pieces->flow->graph->node[n]->nout; p++)
        stored = 2 * stored + leaves(pieces, kernel, (bb_value){n, p});
      put_word(keys, stored);
    }
  return &keys->key;
}

/* --- graphs --- */

static bool is_member(const bb_pieces *pieces, const bb_cover_kernel *kernel, uint32_t n,
                      uint32_t *at) {
  for (uint32_t i = 0; i < kernel->nodes; i++)
    if (kernel->node[i] == pieces->of[n]) {
      *at = i;
      return true;
    }
  return false;
}

static bool is_read_outside(const bb_pieces *pieces, const bb_cover_kernel *kernel,
                            bb_value value) {
  const bb_graph *g = pieces->flow->graph;
  uint32_t at;
  for (bb_use u = bb_first_use(g, value); u.node != BB_NONE; u = bb_next_use(g, u))
    if (!bb_is_computed(g->node[u.node]) || !is_member(pieces, kernel, u.node, &at)) return true;
  return false;
}

static bool is_read_by_other_piece(const bb_pieces *pieces, bb_value value) {
  const bb_graph *g = pieces->flow->graph;
  for (bb_use u = bb_first_use(g, value); u.node != BB_NONE; u = bb_next_use(g, u))
    if (pieces->of[u.node] != pieces->of[value.node]) return true;
  return false;
}

/* Is the value stored?  That of a stored piece is, if somebody outside reads it; if nobody outside
 * reads anything of the piece, it is stored for those who compute again what reads it. */
static bool leaves(const bb_pieces *pieces, const bb_cover_kernel *kernel, bb_value value) {
  uint32_t at, piece = pieces->of[value.node];
  if (!is_member(pieces, kernel, value.node, &at) || !kernel->stored[at]) return false;
  if (is_read_outside(pieces, kernel, value)) return true;
  for (uint32_t k = pieces->start[piece]; k < pieces->start[piece + 1]; k++)
    for (uint32_t p = 0; p < pieces->flow->graph->node[pieces->node[k]]->nout; p++)
      if (is_read_outside(pieces, kernel, (bb_value){pieces->node[k], p})) return false;
  return is_read_by_other_piece(pieces, value);
}

typedef struct prober {
  const bb_pieces *pieces;
  const bb_cover_kernel *kernel;
  bb_graph *graph;
  bb_arena *scratch;
  uint32_t sources;
  struct source {
    bb_value value;
    uint32_t node;
  } * source;
  uint32_t source_capacity;
  uint32_t copies, copy_capacity;
  struct copy {
    uint32_t node, made;
  } * copy;
} prober;

bb_probe bb_probe_begin(const bb_program *program) {
  return (bb_probe){program->tensors, program->serial};
}

void bb_probe_end(bb_program *program, bb_probe probe) {
  program->tensors = probe.tensors;
  program->serial = probe.serial;
}

static const bb_access *whole(bb_program *program, bb_arena *scratch, const bb_type *type,
                              uint32_t tensor) {
  bb_index *index = BB_NEW(scratch, bb_index, type->rank);
  for (uint32_t i = 0; i < type->rank; i++)
    index[i] = (bb_index){BB_INDEX_DIM, type->level[i].dim, 0, 1};
  bb_piece piece = {.source = tensor, .rank = type->rank, .index = index};
  bb_access access = {.joined = BB_NO_DIM, .count = 1, .piece = &piece};
  return bb_access_make(program, &access);
}

static uint32_t probe_tensor(prober *p, const bb_type *type) {
  bb_program *program = p->graph->program;
  bb_dim *axis = BB_NEW(p->scratch, bb_dim, type->rank);
  const bb_extent **extent = BB_NEW(p->scratch, const bb_extent *, type->rank);
  for (uint32_t i = 0; i < type->rank; i++) {
    axis[i] = type->level[i].dim;
    extent[i] = bb_dim_get(program, axis[i])->extent;
  }
  bb_tensor tensor = {.name = "probe",
                      .dtype = type->item.dtype,
                      .role = BB_TENSOR_LOCAL,
                      .rank = type->rank,
                      .shape = extent,
                      .axes = type->rank,
                      .axis = axis};
  return bb_tensor_add(program, &tensor);
}

/* An input for a value that is made elsewhere. */
static bb_value source_of(prober *p, bb_value value) {
  const bb_graph *from = p->pieces->flow->graph;
  const bb_node *maker = from->node[value.node];
  for (uint32_t i = 0; i < p->sources; i++)
    if (bb_value_equal(p->source[i].value, value)) return (bb_value){p->source[i].node, 0};
  const bb_type *type = bb_type_of(from, value);
  bb_value made = bb_input_add(p->graph, type);
  bb_node *node = p->graph->node[made.node];
  bool input = maker->kind == BB_NODE_INPUT;
  node->tensor = input ? maker->tensor : probe_tensor(p, type);
  node->access = input ? maker->access : whole(p->graph->program, p->scratch, type, node->tensor);
  BB_GROW(p->scratch, p->source, p->source_capacity, (size_t)p->sources + 1);
  p->source[p->sources++] = (struct source){value, made.node};
  return made;
}

static bb_value copy_of(prober *p, bb_value value) {
  for (uint32_t i = 0; i < p->copies; i++)
    if (p->copy[i].node == value.node) return (bb_value){p->copy[i].made, value.port};
  return source_of(p, value);
}

static void copy_node(prober *p, uint32_t n) {
  const bb_node *old = p->pieces->flow->graph->node[n];
  bb_value *src = BB_NEW(p->scratch, bb_value, old->nin);
  for (uint32_t i = 0; i < old->nin; i++) src[i] = copy_of(p, old->in[i].src);
  uint32_t made = bb_node_add_like(p->graph, old);
  for (uint32_t i = 0; i < old->nin; i++) bb_connect(p->graph, made, i, src[i]);
  BB_GROW(p->scratch, p->copy, p->copy_capacity, (size_t)p->copies + 1);
  p->copy[p->copies++] = (struct copy){n, made};
}

bb_graph *bb_probe_graph(const bb_pieces *pieces, const bb_cover_kernel *kernel) {
  bb_program *program = pieces->flow->program;
  const bb_graph *from = pieces->flow->graph;
  prober p = {.pieces = pieces,
              .kernel = kernel,
              .graph = bb_graph_create(program),
              .scratch = bb_scratch(program->ctx)};
  for (uint32_t i = 0; i < kernel->nodes; i++)
    for (uint32_t k = pieces->start[kernel->node[i]]; k < pieces->start[kernel->node[i] + 1]; k++)
      copy_node(&p, pieces->node[k]);
  for (uint32_t i = 0; i < p.copies; i++)
    for (uint32_t port = 0; port < from->node[p.copy[i].node]->nout; port++) {
      if (!leaves(pieces, kernel, (bb_value){p.copy[i].node, port})) continue;
      bb_value value = {p.copy[i].made, port};
      const bb_type *type = bb_type_of(p.graph, value);
      uint32_t n = bb_output_add(p.graph, value);
      bb_node *output = p.graph->node[n];
      output->tensor = probe_tensor(&p, type);
      output->access = whole(program, p.scratch, type, output->tensor);
    }
  bb_scratch_end(p.scratch);
  bb_absorb_transposes(program, p.graph);
  bb_orient_inputs(program, p.graph);
  return p.graph;
}
