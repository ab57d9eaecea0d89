/* listing.c - a block program in the paper's notation: forall, for, load, store.
 *
 * An item that a list holds is loaded just before its first use, in the body where it became an item;
 * it is stored as soon as it is made.  A map that folds is a serial `for`, any other a `forall`.
 * Statements stand in topological order, the older node first.
 *
 * A list that is no program tensor is a buffer, I1, I2, ...  Its indices are the loops around it on
 * which it depends, and the outermost loop, which is spread over processors: a value that an extended
 * map computes again in every iteration goes to the same place every time.
 */
#include "fuse.h"
#include "listing_lines.h"
#include "listing_loops.h"

#include "../graph/text_name.h"

#include <string.h>

/* Where an output of a body goes. */
typedef struct sink {
  const bb_out *out; /* of the map around; NULL at the root */
  uint32_t count;
  bb_listed *to;     /* memory */
  const char *total; /* FOLD: the temporary that it is folded into, once it has a name */
  bool folded;       /* FOLD, component 0: the line stands */
} sink;

/* One level as it is printed. */
typedef struct body {
  bb_listing *l;
  const bb_graph *graph;
  bb_listed **value;   /* by node and port */
  sink *sink;          /* by output */
  uint32_t *output_of; /* by node: the number of an OUTPUT */
} body;

/* --- text --- */

static void store(bb_listing *l, const char *name, const sink *to) {
  for (uint32_t i = 0; i < to->count; i++) {
    bb_listing_indent(l);
    bb_put(l->out, "store(%s,", name);
    bb_listing_put_place(l, &to->to[i]);
    bb_put(l->out, ")\n");
  }
}

/* --- places --- */

static bb_listed *place_of(const body *b, bb_value value) {
  return &b->value[value.node][value.port];
}

/* A value as a temporary: loaded if it lies in memory. */
static const char *as_temporary(body *b, bb_value value) {
  bb_listed *at = place_of(b, value);
  if (at->temporary) return at->name;
  const char *name = bb_listing_temporary(b->l);
  bb_listing_indent(b->l);
  bb_put(b->l->out, "%s = load(", name);
  bb_listing_put_place(b->l, at);
  bb_put(b->l->out, ")\n");
  at->temporary = true;
  at->name = name;
  at->slots = 0;
  return name;
}

/* --- what becomes of a value --- */

static const sink *sink_of(const body *b, bb_use use) {
  return &b->sink[b->output_of[use.node]];
}

static bool is_output(const body *b, bb_use use) {
  return bb_node_get(b->graph, use.node)->kind == BB_NODE_OUTPUT;
}

static bool folds(const sink *s) {
  return s->out && s->out->mode == BB_OUT_FOLD;
}

/* The result of the rest of a loop that goes on from a list, a use of which is given. */
static bb_value resumed_by(const body *b, bb_use use) {
  const bb_node *node = bb_node_get(b->graph, use.node);
  for (uint32_t i = 0; i < node->nout && node->kind == BB_NODE_MAP; i++)
    if (node->out[i].resumes == use.port + 1 && node->out[i].type->rank)
      return (bb_value){use.node, i};
  return (bb_value){BB_NONE, 0};
}

static void add_memory(const body *b, bb_value value, sink *all, uint32_t *capacity) {
  for (bb_use u = bb_first_use(b->graph, value); u.node != BB_NONE; u = bb_next_use(b->graph, u)) {
    bb_value rest = resumed_by(b, u);
    if (rest.node != BB_NONE) add_memory(b, rest, all, capacity);
    if (!is_output(b, u) || folds(sink_of(b, u))) continue;
    const sink *s = sink_of(b, u);
    BB_GROW(b->l->arena, all->to, *capacity, (size_t)all->count + s->count);
    for (uint32_t k = 0; k < s->count; k++) all->to[all->count++] = s->to[k];
  }
}

/* All the memory that a value goes to as it is. */
static sink memory_of(const body *b, bb_value value) {
  sink all = {0};
  uint32_t capacity = 0;
  add_memory(b, value, &all, &capacity);
  return all;
}

/* A list as it stands in memory, or a temporary. */
static const char *text_of(bb_listing *l, const bb_listed *at) {
  if (at->temporary) return at->name;
  bb_buffer text = {.arena = l->arena}, *out = l->out;
  l->out = &text;
  bb_listing_put_place(l, at);
  l->out = out;
  return text.data;
}

/* total += text, for one fold; all components of one fold are printed with the first of them. */
static void put_fold(body *b, uint32_t output, const char *const *term) {
  bb_listing *l = b->l;
  const bb_monoid *monoid = b->sink[output].out->fold;
  for (uint32_t c = 0; c < monoid->components; c++) {
    sink *s = &b->sink[output + c];
    if (!s->total) s->total = s->out->type->rank ? text_of(l, &s->to[0]) : bb_listing_temporary(l);
  }
  bb_listing_indent(l);
  for (uint32_t c = 0; c < monoid->components; c++)
    bb_put(l->out, "%s%s", c ? "," : "", b->sink[output + c].total);
  bb_put(l->out, " %s ", monoid->symbol);
  for (uint32_t c = 0; c < monoid->components; c++) bb_put(l->out, "%s%s", c ? "," : "", term[c]);
  bb_put(l->out, "\n");
}

/* Folds a value that has just been made, where it is the last component of a fold to be. */
static void fold_value(body *b, uint32_t output) {
  const bb_out *out = b->sink[output].out;
  uint32_t first = output - out->component;
  if (b->sink[first].folded) return;
  const char **term = BB_NEW(b->l->arena, const char *, out->fold->components);
  for (uint32_t c = 0; c < out->fold->components; c++) {
    const bb_listed *at = place_of(b, bb_src(b->graph, b->graph->output[first + c], 0));
    bool list = b->sink[first + c].out->type->rank > 0;
    if (list ? !at->name && !at->buffer : !at->name || !at->temporary) return;
    term[c] = text_of(b->l, at);
  }
  put_fold(b, first, term);
  b->sink[first].folded = true;
}

/* Folds a value in all the folds it goes to. */
static void fold_everywhere(body *b, bb_value value) {
  for (bb_use u = bb_first_use(b->graph, value); u.node != BB_NONE; u = bb_next_use(b->graph, u))
    if (is_output(b, u) && folds(sink_of(b, u))) fold_value(b, b->output_of[u.node]);
}

/* A value has become a temporary: stores and folds it. */
static void deliver(body *b, bb_value value) {
  const char *name = place_of(b, value)->name;
  sink memory = memory_of(b, value);
  store(b->l, name, &memory);
  fold_everywhere(b, value);
}

/* --- functional ops --- */

/* A lone elementwise op whose user is also applied to its operand, in this body: the two stand side
 * by side, row_sum(t1) and row_sum(t1**2), and the op is printed inside its user. */
static bool stands_inside(const body *b, uint32_t index) {
  const bb_graph *graph = b->graph;
  const bb_node *node = bb_node_get(graph, index);
  if (node->kind != BB_NODE_FUNC || node->op != BB_OP_ELEMENTWISE || node->nin != 1) return false;
  bb_use use = bb_first_use(graph, (bb_value){index, 0});
  if (use.node == BB_NONE || bb_next_use(graph, use).node != BB_NONE) return false;
  const bb_node *user = bb_node_get(graph, use.node);
  if (user->kind != BB_NODE_FUNC || user->op == BB_OP_ELEMENTWISE || user->nin != 1) return false;
  for (bb_use u = bb_first_use(graph, node->in[0].src); u.node != BB_NONE;
       u = bb_next_use(graph, u)) {
    const bb_node *other = bb_node_get(graph, u.node);
    if (other->kind == BB_NODE_FUNC && other->op == user->op) return true;
  }
  return false;
}

static const char *func_text(body *b, uint32_t index);

static const char *operand_text(body *b, bb_value value) {
  return stands_inside(b, value.node) ? func_text(b, value.node) : as_temporary(b, value);
}

static const char *func_text(body *b, uint32_t index) {
  const bb_node *node = bb_node_get(b->graph, index);
  const char **arg = BB_NEW(b->l->arena, const char *, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) arg[i] = operand_text(b, node->in[i].src);
  bb_buffer text = {.arena = b->l->arena};
  if (node->op == BB_OP_ELEMENTWISE) {
    bb_expr_print(&text, b->l->program, node->expr, BB_EXPR_LISTING, node->nin, arg);
    return text.data;
  }
  bb_put(&text, "%s", bb_op_get(node->op)->name);
  if (bb_op_has_monoid(node->op)) bb_put(&text, "[%s]", node->rows->name);
  bb_put(&text, "(");
  for (uint32_t i = 0; i < node->nin; i++) bb_put(&text, "%s%s", i ? "," : "", arg[i]);
  bb_put(&text, ")");
  return text.data;
}

/* The fold, of one component, that is the only use of a value; else BB_NONE. */
static uint32_t only_fold(const body *b, bb_value value) {
  bb_use use = bb_first_use(b->graph, value);
  if (use.node == BB_NONE || bb_next_use(b->graph, use).node != BB_NONE) return BB_NONE;
  if (!is_output(b, use) || !folds(sink_of(b, use))) return BB_NONE;
  return sink_of(b, use)->out->fold->components == 1 ? b->output_of[use.node] : BB_NONE;
}

static void print_func(body *b, uint32_t index) {
  const bb_node *node = bb_node_get(b->graph, index);
  if (stands_inside(b, index)) return;
  const char *text = func_text(b, index);
  uint32_t fold = node->nout == 1 ? only_fold(b, (bb_value){index, 0}) : BB_NONE;
  if (fold != BB_NONE) {
    put_fold(b, fold, &text);
    return;
  }
  for (uint32_t i = 0; i < node->nout; i++)
    b->value[index][i] = (bb_listed){.temporary = true, .name = bb_listing_temporary(b->l)};
  bb_listing_indent(b->l);
  for (uint32_t i = 0; i < node->nout; i++)
    bb_put(b->l->out, "%s%s", i ? "," : "", b->value[index][i].name);
  bb_put(b->l->out, " = %s\n", text);
  for (uint32_t i = 0; i < node->nout; i++) deliver(b, (bb_value){index, i});
}

/* --- reductions: a loop over a list, inside loops over the lists that stay --- */

static void print_terms(body *b, uint32_t index, const bb_listed *from, uint32_t level,
                        sink *results) {
  bb_listing *l = b->l;
  const bb_node *node = bb_node_get(b->graph, index);
  const bb_type *type = bb_type_of(b->graph, node->in[0].src);
  bool scan = node->reduce != BB_REDUCE_FOLD, before = node->reduce == BB_REDUCE_SCAN_EXCLUSIVE;
  const char **total = BB_NEW(l->arena, const char *, node->nin);
  const char **term = BB_NEW(l->arena, const char *, node->nin);
  const char *loop = bb_listing_open(l, "for", type->level[node->in[0].level].dim, NULL);
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_listed at = bb_listing_fix(l, &from[i], level, loop);
    term[i] = bb_listing_temporary(l);
    bb_listing_indent(l);
    bb_put(l->out, "%s = load(", term[i]);
    bb_listing_put_place(l, &at);
    bb_put(l->out, ")\n");
  }
  for (uint32_t i = 0; i < node->nin; i++) {
    total[i] = bb_listing_temporary(l);
    for (uint32_t k = 0; scan && k < results[i].count; k++)
      results[i].to[k] = bb_listing_fix(l, &results[i].to[k], level, loop);
    if (before) store(l, total[i], &results[i]);
  }
  bb_listing_indent(l);
  for (uint32_t i = 0; i < node->nin; i++) bb_put(l->out, "%s%s", i ? "," : "", total[i]);
  bb_put(l->out, " %s ", node->monoid->symbol);
  for (uint32_t i = 0; i < node->nin; i++) bb_put(l->out, "%s%s", i ? "," : "", term[i]);
  bb_put(l->out, "\n");
  if (scan && !before)
    for (uint32_t i = 0; i < node->nin; i++) store(l, total[i], &results[i]);
  l->depth--;
  for (uint32_t i = 0; i < node->nin && !scan; i++) {
    if (node->out[i].type->rank)
      store(l, total[i], &results[i]);
    else
      b->value[index][i] = (bb_listed){.temporary = true, .name = total[i]};
  }
}

static sink memory_or_buffer(body *b, bb_value value, uint64_t loops);

static void print_reduce(body *b, uint32_t index) {
  bb_listing *l = b->l;
  const bb_node *node = bb_node_get(b->graph, index);
  const bb_type *type = bb_type_of(b->graph, node->in[0].src);
  bb_listed *from = BB_NEW(l->arena, bb_listed, node->nin);
  sink *results = BB_NEW(l->arena, sink, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) {
    from[i] = *place_of(b, node->in[i].src);
    if (node->out[i].type->rank) {
      sink memory = memory_or_buffer(b, (bb_value){index, i}, from[i].loops);
      results[i] = memory;
      results[i].to = BB_NEW(l->arena, bb_listed, memory.count);
      memcpy(results[i].to, memory.to, memory.count * sizeof *memory.to);
    }
  }
  uint32_t around = l->depth, level = node->in[0].level;
  for (uint32_t k = 0; k < type->rank; k++) {
    if (k == node->in[0].level) continue;
    const char *loop = bb_listing_open(l, "forall", type->level[k].dim, NULL);
    uint32_t open = k < node->in[0].level ? 0 : 1;
    bool scan = node->reduce != BB_REDUCE_FOLD;
    for (uint32_t i = 0; i < node->nin; i++) {
      from[i] = bb_listing_fix(l, &from[i], open, loop);
      for (uint32_t s = 0; s < results[i].count; s++)
        results[i].to[s] = bb_listing_fix(l, &results[i].to[s], scan ? open : 0, loop);
    }
    if (k < node->in[0].level) level--;
  }
  print_terms(b, index, from, level, results);
  l->depth = around;
  for (uint32_t i = 0; i < node->nout; i++)
    if (!node->out[i].type->rank) deliver(b, (bb_value){index, i});
}

/* --- maps --- */

/* The memory of a list: what it is stored to, or a buffer of its own. */
static sink memory_or_buffer(body *b, bb_value value, uint64_t loops) {
  sink memory = memory_of(b, value);
  if (!memory.count) {
    memory.count = 1;
    memory.to = BB_NEW(b->l->arena, bb_listed, 1);
    memory.to[0] = bb_listing_buffer(b->l, bb_type_of(b->graph, value), loops);
  }
  *place_of(b, value) = memory.to[0];
  place_of(b, value)->loops = loops;
  return memory;
}

static void print_body(bb_listing *l, const bb_graph *graph, const bb_listed *input, sink *sinks);

static bool is_serial(const bb_node *map) {
  for (uint32_t i = 0; i < map->nout; i++)
    if (map->out[i].mode == BB_OUT_FOLD) return true;
  return false;
}

/* The rest of a loop writes to where its first iteration did. */
static sink resumed_sink(body *b, uint32_t index, uint32_t port) {
  const bb_node *node = bb_node_get(b->graph, index);
  bb_value value = {index, port};
  bb_listed *made = place_of(b, node->in[node->out[port].resumes - 1].src);
  *place_of(b, value) = *made;
  if (!node->out[port].type->rank) return (sink){.total = made->name};
  sink memory = memory_of(b, value);
  return memory.count ? memory : (sink){.count = 1, .to = made};
}

/* Where the outputs of a map's body go; lists get their memory here. */
static sink *map_sinks(body *b, uint32_t index) {
  bb_listing *l = b->l;
  const bb_node *node = bb_node_get(b->graph, index);
  uint64_t *in = BB_NEW(l->arena, uint64_t, node->nin),
           *loops = BB_NEW(l->arena, uint64_t, node->nout);
  for (uint32_t i = 0; i < node->nin; i++) in[i] = place_of(b, node->in[i].src)->loops;
  bb_listing_loops(l->program, b->graph, index, in, l->depth, loops);
  sink *sinks = BB_NEW(l->arena, sink, node->nout);
  for (uint32_t i = 0; i < node->nout; i++) {
    if (node->part == BB_PART_REST)
      sinks[i] = resumed_sink(b, index, i);
    else if (node->out[i].type->rank)
      sinks[i] = memory_or_buffer(b, (bb_value){index, i}, loops[i]);
    sinks[i].out = &node->out[i];
    b->value[index][i].loops = loops[i];
  }
  return sinks;
}

static void print_map(body *b, uint32_t index) {
  bb_listing *l = b->l;
  const bb_node *node = bb_node_get(b->graph, index);
  for (uint32_t i = 0; i < node->nin; i++)
    if (!bb_type_of(b->graph, node->in[i].src)->rank) as_temporary(b, node->in[i].src);
  sink *sinks = map_sinks(b, index);
  const char *loop = bb_listing_open(l, is_serial(node) ? "for" : "forall", node->dim, node);
  bb_listed *input = BB_NEW(l->arena, bb_listed, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_listed *at = place_of(b, node->in[i].src);
    bool whole = node->in[i].level == BB_WHOLE;
    input[i] = whole ? *at : bb_listing_fix(l, at, node->in[i].level, loop);
    if (!whole) input[i].loops |= bb_loop_bit(l->depth - 1);
  }
  for (uint32_t i = 0; i < node->nout; i++) {
    if (node->out[i].mode != BB_OUT_COLLECT) continue;
    bb_listed *to = BB_NEW(l->arena, bb_listed, sinks[i].count);
    for (uint32_t k = 0; k < sinks[i].count; k++)
      to[k] = bb_listing_fix(l, &sinks[i].to[k], 0, loop);
    sinks[i].to = to;
  }
  print_body(l, node->inner, input, sinks);
  l->depth--;
  for (uint32_t i = 0; i < node->nout; i++) {
    if (node->out[i].type->rank) {
      fold_everywhere(b, (bb_value){index, i});
      continue;
    }
    bb_listed *at = &b->value[index][i];
    at->temporary = true;
    at->name = sinks[i].total;
    deliver(b, (bb_value){index, i});
  }
}

/* --- levels --- */

/* Views and reference kernels stand at the root and work on whole values. */
static void print_whole(body *b, uint32_t index) {
  bb_listing *l = b->l;
  const bb_node *node = bb_node_get(b->graph, index);
  for (uint32_t i = 0; i < node->nout; i++) memory_or_buffer(b, (bb_value){index, i}, 0);
  bb_listing_indent(l);
  for (uint32_t i = 0; i < node->nout; i++) {
    if (i) bb_put(l->out, ",");
    bb_listing_put_memory(l, &b->value[index][i]);
  }
  bb_put(l->out, " = %s(", node->kind == BB_NODE_MISC && node->misc ? node->misc->op : "view");
  for (uint32_t i = 0; i < node->nin; i++) {
    if (i) bb_put(l->out, ",");
    bb_listing_put_memory(l, place_of(b, node->in[i].src));
  }
  bb_put(l->out, ")\n");
}

/* An output fed by an input, which no statement makes. */
static void pass_through(body *b, uint32_t output) {
  bb_value src = bb_src(b->graph, b->graph->output[output], 0);
  if (bb_node_get(b->graph, src.node)->kind != BB_NODE_INPUT) return;
  sink *s = &b->sink[output];
  if (!bb_type_of(b->graph, src)->rank) {
    const char *name = as_temporary(b, src);
    if (folds(s))
      fold_value(b, output);
    else if (s->out && s->out->mode == BB_OUT_INVARIANT)
      s->total = name;
    if (!folds(s)) store(b->l, name, s);
    return;
  }
  if (folds(s)) fold_value(b, output);
  for (uint32_t i = 0; i < s->count && !folds(s); i++) {
    bb_listing_indent(b->l);
    bb_listing_put_place(b->l, &s->to[i]);
    bb_put(b->l->out, " = ");
    bb_listing_put_place(b->l, place_of(b, src));
    bb_put(b->l->out, "\n");
  }
}

static void print_node(body *b, uint32_t index) {
  switch (bb_node_get(b->graph, index)->kind) {
  case BB_NODE_FUNC: print_func(b, index); break;
  case BB_NODE_MAP: print_map(b, index); break;
  case BB_NODE_REDUCE: print_reduce(b, index); break;
  case BB_NODE_VIEW:
  case BB_NODE_MISC: print_whole(b, index); break;
  default: break;
  }
}

static body make_body(bb_listing *l, const bb_graph *graph, const bb_listed *input, sink *sinks) {
  body b = {.l = l, .graph = graph, .sink = sinks};
  b.value = BB_NEW(l->arena, bb_listed *, graph->count);
  b.output_of = BB_NEW(l->arena, uint32_t, graph->count);
  for (uint32_t i = 0; i < graph->count; i++)
    b.value[i] = BB_NEW(l->arena, bb_listed, bb_node_get(graph, i)->nout);
  for (uint32_t i = 0; i < graph->ninputs; i++) b.value[graph->input[i]][0] = input[i];
  for (uint32_t i = 0; i < graph->noutputs; i++) b.output_of[graph->output[i]] = i;
  return b;
}

/* An item that leaves a map unchanged in every iteration is called the same outside. */
static void name_invariants(body *b) {
  for (uint32_t i = 0; i < b->graph->noutputs; i++) {
    sink *s = &b->sink[i];
    if (!s->out || s->out->mode != BB_OUT_INVARIANT) continue;
    const bb_listed *at = place_of(b, bb_src(b->graph, b->graph->output[i], 0));
    if (at->temporary) s->total = at->name;
  }
}

static void print_body(bb_listing *l, const bb_graph *graph, const bb_listed *input, sink *sinks) {
  body b = make_body(l, graph, input, sinks);
  uint32_t *order = BB_NEW(l->arena, uint32_t, (size_t)graph->live + 1);
  uint32_t count = bb_topological_order(graph, l->arena, order);
  for (uint32_t i = 0; i < count; i++) print_node(&b, order[i]);
  for (uint32_t i = 0; i < graph->noutputs; i++) pass_through(&b, i);
  name_invariants(&b);
}

static bb_listed tensor_place(bb_listing *l, uint32_t tensor, uint32_t rank) {
  bb_buffer name = {.arena = l->arena};
  bb_put_name(&name, l->program->tensor[tensor].name);
  return (bb_listed){
      .name = name.data, .slots = rank, .slot = BB_NEW(l->arena, const char *, rank)};
}

void bb_listing_print(bb_buffer *out, const bb_program *program, const bb_graph *root) {
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_listing l = {.out = out, .program = program, .arena = scratch};
  bb_listed *input = BB_NEW(scratch, bb_listed, root->ninputs);
  sink *sinks = BB_NEW(scratch, sink, root->noutputs);
  for (uint32_t i = 0; i < root->ninputs; i++) {
    const bb_node *node = bb_node_get(root, root->input[i]);
    input[i] = tensor_place(&l, node->tensor, node->out[0].type->rank);
  }
  for (uint32_t i = 0; i < root->noutputs; i++) {
    const bb_node *node = bb_node_get(root, root->output[i]);
    uint32_t rank = bb_type_of(root, node->in[0].src)->rank;
    sinks[i] = (sink){.count = 1, .to = BB_NEW(scratch, bb_listed, 1)};
    sinks[i].to[0] = tensor_place(&l, node->tensor, rank);
  }
  print_body(&l, root, input, sinks);
  bb_scratch_end(scratch);
}
