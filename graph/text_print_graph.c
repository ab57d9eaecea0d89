/* text_print_graph.c - block programs as text: levels, candidates, steps.
 *
 * A value is called by its node's serial, %17, and by its port where that is not the first, %17.1;
 * so the ids of pictures and traces stand in the text and survive it.
 */
#include "text_form.h"
#include "text_number.h"

#include <string.h>

/* How a value of the level is called. */
static const char *label(bb_writer *w, const bb_graph *graph, bb_value value) {
  if (value.node == BB_NONE) return "none";
  uint32_t serial = graph->node[value.node]->serial;
  return value.port ? bb_arena_printf(w->scratch, "%%%u.%u", serial, value.port)
                    : bb_arena_printf(w->scratch, "%%%u", serial);
}

static const char **operand_labels(bb_writer *w, const bb_graph *graph, const bb_node *node) {
  const char **names = BB_NEW(w->scratch, const char *, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) names[i] = label(w, graph, node->in[i].src);
  return names;
}

static const bb_type *operand_type(const bb_graph *graph, const bb_node *node, uint32_t port) {
  bb_value src = node->in[port].src;
  return src.node == BB_NONE ? NULL : bb_type_of(graph, src);
}

/* --- types that follow from others are not printed --- */

static bool same_item(const bb_item *a, const bb_item *b) {
  return a->dtype == b->dtype && a->row == b->row && a->col == b->col;
}

/* Is `element` what the list level `level` of `type` holds? */
static bool is_element(const bb_type *element, const bb_type *type, uint32_t level) {
  if (!element || !type) return element == type;
  if (level == BB_WHOLE) return element == type;
  if (level >= type->rank || element->rank + 1 != type->rank) return false;
  for (uint32_t i = 0; i < element->rank; i++)
    if (!bb_level_equal(element->level[i], type->level[i + (i >= level)])) return false;
  return same_item(&element->item, &type->item);
}

static bool is_list(const bb_type *list, const bb_type *element, bb_level level) {
  return list && element && is_element(element, list, 0) && bb_level_equal(list->level[0], level);
}

static bool func_types_follow(bb_writer *w, const bb_graph *graph, const bb_node *node) {
  bb_item *in = BB_NEW(w->scratch, bb_item, node->nin), out[BB_OP_RESULTS];
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_type *type = operand_type(graph, node, i);
    if (!type || type->rank) return false;
    in[i] = type->item;
  }
  if (bb_op_infer(node->op, node->expr, node->nin, in, out)) return false;
  if (node->nout != bb_op_results(node->op, node->nin)) return false;
  for (uint32_t i = 0; i < node->nout; i++) {
    const bb_type *type = node->out[i].type;
    if (!type || type->rank || !same_item(&type->item, &out[i])) return false;
  }
  return true;
}

static bool reduce_types_follow(const bb_graph *graph, const bb_node *node) {
  if (node->nin != node->nout) return false;
  for (uint32_t i = 0; i < node->nout; i++) {
    uint32_t level = node->reduce == BB_REDUCE_FOLD ? node->in[i].level : BB_WHOLE;
    if (!is_element(node->out[i].type, operand_type(graph, node, i), level)) return false;
  }
  return true;
}

static void write_types(bb_writer *w, const bb_node *node) {
  for (uint32_t i = 0; i < node->nout; i++) {
    bb_put(w->out, i ? ", " : " : ");
    bb_write_type(w, node->out[i].type);
  }
}

/* --- one node each --- */

static void write_source(bb_writer *w, const bb_graph *graph, const bb_in *in) {
  bb_put(w->out, "%s", label(w, graph, in->src));
  if (in->level != BB_WHOLE) bb_put(w->out, "[%u]", in->level);
}

static void write_func(bb_writer *w, const bb_graph *graph, const bb_node *node) {
  const char **names = operand_labels(w, graph, node);
  if (node->op == BB_OP_ELEMENTWISE && node->expr) {
    bb_dtype *dtype = BB_NEW(w->scratch, bb_dtype, node->nin);
    for (uint32_t i = 0; i < node->nin; i++) {
      const bb_type *type = operand_type(graph, node, i);
      dtype[i] = type ? type->item.dtype : BB_F32;
    }
    bb_write_elementwise(w, node->expr, node->nin, names, dtype);
  } else {
    bb_put(w->out, "%s", bb_op_get(node->op)->name);
    if (bb_op_has_monoid(node->op)) bb_put(w->out, " %s", node->rows ? node->rows->name : "none");
    bool wide = node->op == BB_OP_DOT && node->expr;
    if (wide) bb_put(w->out, " %s", bb_dtype_name(node->expr->dtype));
    bb_put(w->out, "(");
    for (uint32_t i = 0; i < node->nin; i++) bb_put(w->out, "%s%s", i ? ", " : "", names[i]);
    bb_put(w->out, ")");
    if (node->expr && !wide) {
      bb_put(w->out, " past ");
      bb_expr_print(w->out, w->program, node->expr, BB_EXPR_TEXT, 0, NULL);
    }
  }
  if (!func_types_follow(w, graph, node)) write_types(w, node);
}

static void write_reduce(bb_writer *w, const bb_graph *graph, const bb_node *node) {
  static const char *const mode[] = {[BB_REDUCE_FOLD] = "reduce",
                                     [BB_REDUCE_SCAN] = "scan",
                                     [BB_REDUCE_SCAN_EXCLUSIVE] = "scan_exclusive"};
  bb_put(w->out, "%s %s(", mode[node->reduce], node->monoid->name);
  for (uint32_t i = 0; i < node->nin; i++) {
    if (i) bb_put(w->out, ", ");
    write_source(w, graph, &node->in[i]);
  }
  bb_put(w->out, ")");
  if (!reduce_types_follow(graph, node)) write_types(w, node);
}

/* Do the pieces name operands 0, 1, 2 ... in order, each first at its turn, none like another? */
static bool view_is_plain(bb_writer *w, const bb_node *node, const char *const *names) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < node->access->count; i++) {
    uint32_t source = node->access->piece[i].source;
    if (source > seen) return false;
    if (source == seen) seen++;
  }
  bb_table *table = bb_table_create(w->scratch);
  for (uint32_t i = 0; i < node->nin; i++)
    if (!bb_table_add(table, names[i], strlen(names[i]), i)) return false;
  return seen == node->nin;
}

static void write_view(bb_writer *w, const bb_graph *graph, const bb_node *node) {
  const char **names = operand_labels(w, graph, node);
  bb_put(w->out, "view ");
  if (!node->access || !view_is_plain(w, node, names)) {
    bb_put(w->out, "of (");
    for (uint32_t i = 0; i < node->nin; i++) {
      bb_put(w->out, "%s%s", i ? ", " : "", names[i]);
      names[i] = bb_arena_printf(w->scratch, "&%u", i);
    }
    bb_put(w->out, ") ");
  }
  bb_write_access(w, node->access, names);
  write_types(w, node);
}

static const char *tensor_label(bb_writer *w, uint32_t tensor) {
  return tensor < w->program->tensors ? w->tensor[tensor] : "none";
}

/* The tensor and how it is read: X[M,K], or X of join ... */
static void write_tensor_access(bb_writer *w, const bb_node *node) {
  const bb_access *access = node->access;
  bool plain = access && access->count == 1 && access->joined == BB_NO_DIM &&
               access->piece[0].source == node->tensor;
  if (!plain) bb_put(w->out, "%s of ", tensor_label(w, node->tensor));
  bb_write_access(w, access, w->tensor);
}

/* --- maps --- */

static void write_map_inputs(bb_writer *w, const bb_graph *graph, const bb_node *node) {
  const bb_graph *inner = node->inner;
  bb_put(w->out, "(");
  for (uint32_t i = 0; i < node->nin && i < inner->ninputs; i++) {
    bb_value value = {inner->input[i], 0};
    const bb_type *type = bb_type_of(inner, value);
    bb_put(w->out, "%s%s", i ? ", " : "", label(w, inner, value));
    if (!is_element(type, operand_type(graph, node, i), node->in[i].level)) {
      bb_put(w->out, " : ");
      bb_write_type(w, type);
    }
    bb_put(w->out, " = ");
    write_source(w, graph, &node->in[i]);
  }
  bb_put(w->out, ")");
}

static void write_out_port(bb_writer *w, const bb_node *map, uint32_t port) {
  const bb_graph *inner = map->inner;
  const bb_out *out = &map->out[port];
  bb_value value = inner->node[inner->output[port]]->in[0].src;
  const bb_type *type = value.node == BB_NONE ? NULL : bb_type_of(inner, value);
  bool follows = is_element(out->type, type, BB_WHOLE);
  if (out->mode == BB_OUT_INVARIANT) bb_put(w->out, "invariant ");
  if (out->mode == BB_OUT_FOLD) {
    bb_put(w->out, "fold %s ", out->fold ? out->fold->name : "none");
    if (out->component) bb_put(w->out, "%u ", out->component);
  }
  bb_put(w->out, "%s", label(w, inner, value));
  if (out->mode == BB_OUT_COLLECT) {
    bb_axis usual = type ? bb_level_default_axis(map->dim, &type->item, 0, NULL) : BB_AXIS_NONE;
    static const char *const axis[] = {"none", "row", "col"};
    if (out->axis != usual) bb_put(w->out, " by %s", axis[out->axis]);
    follows = is_list(out->type, type, (bb_level){map->dim, out->axis});
  }
  if (out->resumes && out->resumes <= inner->ninputs)
    bb_put(w->out, " resumes %s", label(w, inner, (bb_value){inner->input[out->resumes - 1], 0}));
  if (follows) return;
  bb_put(w->out, " : ");
  bb_write_type(w, out->type);
}

static void write_body(bb_writer *w, const bb_graph *graph, uint32_t depth);

static void write_map(bb_writer *w, const bb_graph *graph, const bb_node *node, uint32_t depth) {
  static const char *const part[] = {" ", " first ", " rest ", " chunk ["};
  const bb_graph *inner = node->inner;
  bb_put(w->out, "map ");
  bb_put_name(w->out, w->program->dim[node->dim].name);
  bb_put(w->out, "%s", part[node->part]);
  for (uint32_t i = 0; i < bb_chunk_depth(node); i++) {
    if (i) bb_put(w->out, ",");
    bb_put_name(w->out, w->program->dim[node->chunk->dim[i]].name);
  }
  if (node->part == BB_PART_CHUNK) bb_put(w->out, "] ");
  if (node->block) bb_put(w->out, "block %u ", node->block);
  write_map_inputs(w, graph, node);
  bb_put(w->out, " {\n");
  write_body(w, inner, depth + 1);
  bb_write_indent(w, depth + 1);
  bb_put(w->out, "yield ");
  for (uint32_t i = 0; i < node->nout && i < inner->noutputs; i++) {
    if (i) bb_put(w->out, ", ");
    write_out_port(w, node, i);
  }
  bb_put(w->out, "\n");
  bb_write_indent(w, depth);
  bb_put(w->out, "}");
}

/* --- levels --- */

static void write_node(bb_writer *w, const bb_graph *graph, uint32_t index, uint32_t depth) {
  const bb_node *node = graph->node[index];
  bb_write_indent(w, depth);
  for (uint32_t i = 0; i < node->nout; i++)
    bb_put(w->out, "%s%s", i ? ", " : "", label(w, graph, (bb_value){index, i}));
  if (node->kind == BB_NODE_MAP && !node->nout) bb_put(w->out, "%%%u", node->serial);
  bb_put(w->out, node->nout || node->kind == BB_NODE_MAP ? " = " : "");
  switch (node->kind) {
  case BB_NODE_INPUT:
    bb_put(w->out, "input ");
    write_tensor_access(w, node);
    write_types(w, node);
    break;
  case BB_NODE_OUTPUT:
    bb_put(w->out, "output ");
    write_tensor_access(w, node);
    bb_put(w->out, " = %s", label(w, graph, node->in[0].src));
    break;
  case BB_NODE_FUNC: write_func(w, graph, node); break;
  case BB_NODE_MAP: write_map(w, graph, node, depth); break;
  case BB_NODE_REDUCE: write_reduce(w, graph, node); break;
  case BB_NODE_VIEW: write_view(w, graph, node); break;
  case BB_NODE_MISC:
    bb_write_misc(w, node->misc, node->nin, operand_labels(w, graph, node));
    write_types(w, node);
    break;
  case BB_NODE_REMOVED: break;
  }
  if (node->name) {
    bb_put(w->out, " @ ");
    bb_put_quoted(w->out, node->name);
  }
  bb_put(w->out, "\n");
}

/* The nodes between the inputs and the outputs of a level, operands first. */
static void write_body(bb_writer *w, const bb_graph *graph, uint32_t depth) {
  bb_arena *scratch = bb_scratch(w->program->ctx), *outer = w->scratch;
  w->scratch = scratch; /* a level's labels die with it */
  uint32_t *order = BB_NEW(scratch, uint32_t, graph->live);
  uint32_t count = bb_topological_order(graph, scratch, order);
  bool *done = BB_NEW(scratch, bool, graph->count);
  for (uint32_t i = 0; i < count; i++) done[order[i]] = true;
  for (uint32_t i = 0; i < graph->count; i++) /* a cycle breaks the laws; it prints all the same */
    if (!done[i] && graph->node[i]->kind != BB_NODE_REMOVED) order[count++] = i;
  for (uint32_t i = 0; i < count; i++) {
    bb_kind kind = graph->node[order[i]]->kind;
    if (kind != BB_NODE_INPUT && kind != BB_NODE_OUTPUT) write_node(w, graph, order[i], depth);
  }
  w->scratch = outer;
  bb_scratch_end(scratch);
}

void bb_write_graph(bb_writer *w, const bb_graph *graph, uint32_t depth) {
  bb_put(w->out, "{\n");
  for (uint32_t i = 0; i < graph->ninputs; i++) write_node(w, graph, graph->input[i], depth + 1);
  write_body(w, graph, depth + 1);
  for (uint32_t i = 0; i < graph->noutputs; i++) write_node(w, graph, graph->output[i], depth + 1);
  bb_write_indent(w, depth);
  bb_put(w->out, "}\n");
}

void bb_text_print_graph(bb_buffer *out, const bb_program *program, const bb_graph *graph) {
  bb_writer w = bb_writer_begin(out, program, NULL);
  bb_write_graph(&w, graph, 0);
  bb_writer_end(&w);
}

/* --- candidates and steps --- */

static void write_snapshot(bb_writer *w, const bb_snapshot *snapshot) {
  bb_put(w->out, "  snapshot %u ", snapshot->step);
  if (snapshot->operations >= 0) {
    bb_put(w->out, "operations ");
    bb_put_number(w->out, snapshot->operations, BB_F64);
    bb_put(w->out, " ");
  }
  if (snapshot->buffered >= 0) {
    bb_put(w->out, "buffered ");
    bb_put_number(w->out, snapshot->buffered, BB_F64);
    bb_put(w->out, " ");
  }
  bb_write_graph(w, snapshot->graph, 1);
  if (!snapshot->safe) return;
  bb_put(w->out, "  safe ");
  bb_write_graph(w, snapshot->safe, 1);
}

static void write_candidate(bb_writer *w, const bb_candidate *candidate) {
  bb_put(w->out, "candidate ");
  bb_put_name(w->out, candidate->name);
  if (candidate->once) bb_put(w->out, " once");
  if (candidate->chosen != BB_NONE) bb_put(w->out, " chosen %u", candidate->chosen);
  bb_put(w->out, " {\n");
  if (candidate->graph) {
    bb_put(w->out, "  graph ");
    bb_write_graph(w, candidate->graph, 1);
  }
  if (candidate->exps) {
    bb_put(w->out, "  exps ");
    bb_put_quoted(w->out, candidate->exps);
    bb_put(w->out, "\n");
  }
  for (uint32_t i = 0; i < candidate->snapshots; i++) write_snapshot(w, &candidate->snapshot[i]);
  bb_put(w->out, "}\n");
}

/* An access as an operand's name. */
static const char *access_label(bb_writer *w, const bb_access *access) {
  bb_buffer text = {.arena = w->scratch}, *out = w->out;
  w->out = &text;
  bb_write_access(w, access, w->tensor);
  w->out = out;
  return text.data;
}

static void write_step(bb_writer *w, const bb_step *step) {
  const char **in = BB_NEW(w->scratch, const char *, step->nin);
  for (uint32_t i = 0; i < step->nin; i++) in[i] = access_label(w, step->in[i]);
  bb_put(w->out, "step ");
  if (step->candidate == BB_NONE) {
    bb_write_misc(w, step->misc, step->nin, in);
  } else {
    bb_put(w->out, "run %u(", step->candidate);
    for (uint32_t i = 0; i < step->nin; i++) bb_put(w->out, "%s%s", i ? ", " : "", in[i]);
    bb_put(w->out, ")");
  }
  bb_put(w->out, " to (");
  for (uint32_t i = 0; i < step->nout; i++)
    bb_put(w->out, "%s%s", i ? ", " : "", tensor_label(w, step->out[i]));
  bb_put(w->out, ")");
  if (step->name) {
    bb_put(w->out, " @ ");
    bb_put_quoted(w->out, step->name);
  }
  bb_put(w->out, "\n");
}

void bb_write_stages(bb_writer *w) {
  for (uint32_t i = 0; i < w->program->candidates; i++)
    write_candidate(w, &w->program->candidate[i]);
  for (uint32_t i = 0; i < w->program->steps; i++) write_step(w, &w->program->step[i]);
}
