/* draw.c - block programs in Graphviz's dot language.
 *
 * A map is a cluster.  Its ports are small nodes on the inside: filled where a list is taken apart
 * or put together, hollow where a value is taken whole or is the same in every iteration, and a
 * folded out-port shows its operation.  So an edge is drawn once per level, buffered or not.
 */
#include "draw.h"

#include <string.h>

typedef struct drawing {
  bb_buffer *out;
  const bb_picture *picture;
  const bb_ids *ids;
} drawing;

static void indent(drawing *d, uint32_t depth) {
  bb_put(d->out, "%*s", (int)(2 * depth + 2), "");
}

static const char *label_of(drawing *d, const bb_node *node) {
  bb_buffer label = {.arena = d->out->arena};
  bb_put_node_label(&label, d->picture->program, node);
  if (label.length > 60) memcpy(label.data + 57, "...", 4);
  return label.data ? label.data : "";
}

static const char *type_of(drawing *d, const bb_type *type) {
  bb_buffer text = {.arena = d->out->arena};
  bb_put_type(&text, d->picture->program, type);
  return text.data;
}

static bool is_closed(const drawing *d, uint32_t depth) {
  return d->picture->collapse && depth + 1 >= d->picture->collapse;
}

static void put_attribute(drawing *d, const char *name, const char *text) {
  bb_put(d->out, " %s=", name);
  bb_put_picture_text(d->out, text, false);
}

static const char *tensor_fill(const drawing *d, const bb_node *node) {
  if (node->tensor == BB_NONE) return "white";
  switch (d->picture->program->tensor[node->tensor].role) {
  case BB_TENSOR_INPUT: return "#d8e8f8";
  case BB_TENSOR_OUTPUT: return "#d8f0d8";
  case BB_TENSOR_CONSTANT: return "#ececec";
  default: return "#f4ecd8";
  }
}

/* Names of the functional ops inside a map, for a map that is drawn closed. */
static void put_summary(bb_buffer *out, const bb_graph *graph, uint32_t *count) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_MAP) put_summary(out, node->inner, count);
    if (node->kind != BB_NODE_FUNC && node->kind != BB_NODE_REDUCE) continue;
    if ((*count)++ < 6)
      bb_put(out, "\n%s", node->kind == BB_NODE_REDUCE ? "reduce" : bb_op_get(node->op)->name);
  }
}

static void draw_closed_map(drawing *d, const bb_node *node) {
  bb_buffer label = {.arena = d->out->arena};
  uint32_t count = 0;
  static const char *const part[] = {"", ", first", ", rest", ", a chunk"};
  bb_put(&label, "map %s%s", bb_dim_get(d->picture->program, node->dim)->name, part[node->part]);
  put_summary(&label, node->inner, &count);
  if (count > 6) bb_put(&label, "\n... %u more", count - 6);
  bb_put(d->out, "shape=box style=\"rounded,filled\" fillcolor=\"#f0f0fa\"");
  put_attribute(d, "label", label.data);
}

static void draw_node(drawing *d, const bb_node *node, uint32_t depth) {
  bool marked = bb_is_marked(d->picture, node);
  indent(d, depth);
  bb_put(d->out, "%s [", bb_id_of(d->ids, node));
  switch (node->kind) {
  case BB_NODE_INPUT:
  case BB_NODE_OUTPUT:
    bb_put(d->out, "shape=%s style=filled fillcolor=\"%s\"",
           node->kind == BB_NODE_INPUT ? "invhouse" : "house", tensor_fill(d, node));
    break;
  case BB_NODE_REDUCE: bb_put(d->out, "shape=ellipse style=filled fillcolor=\"#fff4d6\""); break;
  case BB_NODE_VIEW: bb_put(d->out, "shape=note style=filled fillcolor=white"); break;
  case BB_NODE_MISC:
    bb_put(d->out, "shape=box style=\"filled,dashed\" fillcolor=\"#f8d8d8\"");
    break;
  case BB_NODE_MAP: draw_closed_map(d, node); break;
  default: bb_put(d->out, "shape=box style=filled fillcolor=white"); break;
  }
  if (node->kind != BB_NODE_MAP) put_attribute(d, "label", label_of(d, node));
  if (node->name) put_attribute(d, "tooltip", node->name);
  if (marked) bb_put(d->out, " color=\"#e07000\" penwidth=2.5");
  bb_put(d->out, "];\n");
}

/* --- ports --- */

static void draw_in_port(drawing *d, const bb_node *map, uint32_t port, uint32_t depth) {
  const bb_node *node = map->inner->node[map->inner->input[port]];
  bool whole = map->in[port].level == BB_WHOLE;
  if (node->out[0].first.node == BB_NONE) return;
  indent(d, depth);
  bb_put(
      d->out,
      "%s [shape=circle width=0.12 height=0.12 fixedsize=true label=\"\" style=filled fillcolor=%s",
      bb_id_of(d->ids, node), whole ? "white" : "black");
  put_attribute(d, "tooltip", whole ? "whole" : "iterated");
  bb_put(d->out, "];\n");
}

static void draw_out_port(drawing *d, const bb_node *map, uint32_t port, uint32_t depth) {
  const bb_node *node = map->inner->node[map->inner->output[port]];
  const bb_out *out = &map->out[port];
  indent(d, depth);
  bb_put(d->out, "%s [", bb_id_of(d->ids, node));
  if (out->mode == BB_OUT_FOLD)
    bb_put(d->out,
           "shape=circle width=0.3 height=0.3 fixedsize=true margin=0 fontsize=9 style=filled "
           "fillcolor=\"#fff4d6\" label=\"%s\" tooltip=folded",
           out->fold->symbol);
  else
    bb_put(
        d->out,
        "shape=circle width=0.12 height=0.12 fixedsize=true label=\"\" style=filled fillcolor=%s "
        "tooltip=%s",
        out->mode == BB_OUT_COLLECT ? "black" : "white",
        out->mode == BB_OUT_COLLECT ? "collected" : "invariant");
  bb_put(d->out, "];\n");
}

/* --- edges --- */

/* The dot node at which an edge from an out-port starts: of an open map, the port inside. */
static const char *tail_of(drawing *d, const bb_graph *graph, bb_value src, uint32_t depth) {
  const bb_node *node = graph->node[src.node];
  if (node->kind == BB_NODE_MAP && !is_closed(d, depth))
    node = node->inner->node[node->inner->output[src.port]];
  return bb_id_of(d->ids, node);
}

static void draw_edge(drawing *d, const bb_graph *graph, bb_use use, uint32_t depth) {
  const bb_node *user = graph->node[use.node], *head = user;
  bb_value src = user->in[use.port].src;
  if (user->kind == BB_NODE_MAP && !is_closed(d, depth)) {
    head = user->inner->node[user->inner->input[use.port]];
    if (head->out[0].first.node == BB_NONE) return;
  }
  indent(d, depth);
  bb_put(d->out, "%s -> %s [", tail_of(d, graph, src, depth), bb_id_of(d->ids, head));
  if (bb_edge_is_buffered(graph, use)) bb_put(d->out, "color=red penwidth=2.6 ");
  if (head != user || (user->kind == BB_NODE_OUTPUT && depth > 0))
    bb_put(d->out, "arrowhead=none ");
  bb_put(d->out, "edgetooltip=");
  bb_put_picture_text(d->out, type_of(d, bb_type_of(graph, src)), false);
  bb_put(d->out, "];\n");
}

/* --- levels --- */

static void draw_level(drawing *d, const bb_graph *graph, uint32_t depth);

static void draw_open_map(drawing *d, const bb_node *node, uint32_t depth) {
  indent(d, depth);
  bb_put(d->out, "subgraph cluster_%s {\n", bb_id_of(d->ids, node));
  indent(d, depth + 1);
  bb_put(
      d->out,
      "id=cluster_%s style=rounded labeljust=r labelloc=t fontsize=13 fontname=\"Helvetica-Bold\"",
      bb_id_of(d->ids, node));
  put_attribute(d, "label", label_of(d, node));
  if (bb_is_marked(d->picture, node))
    bb_put(d->out, " color=\"#e07000\" penwidth=2.5");
  else
    bb_put(d->out, " color=\"#606080\"");
  bb_put(d->out, "\n");
  for (uint32_t p = 0; p < node->nin; p++) draw_in_port(d, node, p, depth + 1);
  for (uint32_t p = 0; p < node->nout; p++) draw_out_port(d, node, p, depth + 1);
  draw_level(d, node->inner, depth + 1);
  indent(d, depth);
  bb_put(d->out, "}\n");
}

static void draw_level(drawing *d, const bb_graph *graph, uint32_t depth) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    bool port = node->kind == BB_NODE_INPUT || node->kind == BB_NODE_OUTPUT;
    if (node->kind == BB_NODE_REMOVED || (port && depth > 0)) continue;
    if (node->kind == BB_NODE_MAP && !is_closed(d, depth))
      draw_open_map(d, node, depth);
    else
      draw_node(d, node, depth);
  }
  for (uint32_t i = 0; i < graph->count; i++)
    for (uint32_t p = 0; p < graph->node[i]->nin; p++) draw_edge(d, graph, (bb_use){i, p}, depth);
}

static void draw_dot(bb_buffer *out, const bb_picture *picture, const bb_ids *ids) {
  drawing d = {out, picture, ids};
  bb_buffer title = {.arena = out->arena};
  bb_put(&title, "%s\nbuffered edges are red and thick, ports that take a list whole are hollow",
         picture->title);
  bb_put(out, "digraph blockbuster {\n");
  bb_put(out, "  graph [fontname=Helvetica labelloc=t fontsize=15 nodesep=0.25 ranksep=0.3");
  put_attribute(&d, "label", title.data);
  bb_put(out, "];\n");
  bb_put(out,
         "  node [fontname=Helvetica fontsize=11 height=0.3 width=0.4 margin=\"0.1,0.04\"];\n");
  bb_put(out, "  edge [arrowsize=0.6 color=\"#404040\"];\n");
  draw_level(&d, picture->graph, 0);
  bb_put(out, "}\n");
}

void bb_draw(bb_buffer *out, const bb_picture *picture, bool json) {
  const bb_ids *ids = bb_ids_create(out->arena, picture->graph);
  if (json)
    bb_draw_json(out, picture, ids);
  else
    draw_dot(out, picture, ids);
}
