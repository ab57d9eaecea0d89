/* draw_json.c - block programs as JSON: what a picture shows, for programs that read it.
 *
 * {"title", "graph": {"nodes": [{"id", "serial", "kind", "label", "marked", "in", "out", ...}]}}; a
 * map also has "dim" and "graph", the level inside, whose nodes "inputs" and "outputs" are its ports.
 */
#include "draw.h"

static void put_json_level(bb_buffer *out, const bb_picture *picture, const bb_ids *ids,
                           const bb_graph *graph);

static const char *const kinds[] = {
    [BB_NODE_INPUT] = "input", [BB_NODE_OUTPUT] = "output", [BB_NODE_FUNC] = "func",
    [BB_NODE_MAP] = "map",     [BB_NODE_REDUCE] = "reduce", [BB_NODE_VIEW] = "view",
    [BB_NODE_MISC] = "misc",
};

static void put_label(bb_buffer *out, const bb_picture *picture, const bb_node *node) {
  bb_buffer label = {.arena = out->arena};
  bb_put_node_label(&label, picture->program, node);
  bb_put_picture_text(out, label.data ? label.data : "", true);
}

static void put_type(bb_buffer *out, const bb_picture *picture, const bb_type *type) {
  bb_buffer text = {.arena = out->arena};
  bb_put_type(&text, picture->program, type);
  bb_put_picture_text(out, text.data, true);
}

static void put_in(bb_buffer *out, const bb_ids *ids, const bb_graph *graph, bb_use use) {
  const bb_node *node = graph->node[use.node];
  const bb_in *in = &node->in[use.port];
  bb_put(out, "{\"from\": \"%s\", \"port\": %u, \"buffered\": %s",
         bb_id_of(ids, graph->node[in->src.node]), in->src.port,
         bb_edge_is_buffered(graph, use) ? "true" : "false");
  if (node->kind == BB_NODE_MAP && in->level == BB_WHOLE) bb_put(out, ", \"whole\": true");
  if (in->level != BB_WHOLE) bb_put(out, ", \"level\": %u", in->level);
  bb_put(out, "}");
}

static void put_out(bb_buffer *out, const bb_picture *picture, const bb_node *node, uint32_t port) {
  static const char *const modes[] = {"collected", "folded", "invariant"};
  bb_put(out, "{\"type\": ");
  put_type(out, picture, node->out[port].type);
  if (node->kind == BB_NODE_MAP) bb_put(out, ", \"mode\": \"%s\"", modes[node->out[port].mode]);
  bb_put(out, "}");
}

static void put_node(bb_buffer *out, const bb_picture *picture, const bb_ids *ids,
                     const bb_graph *graph, uint32_t n) {
  const bb_node *node = graph->node[n];
  bb_put(out, "{\"id\": \"%s\", \"serial\": %u, \"kind\": \"%s\", \"label\": ", bb_id_of(ids, node),
         node->serial, kinds[node->kind]);
  put_label(out, picture, node);
  if (bb_is_marked(picture, node)) bb_put(out, ", \"marked\": true");
  bb_put(out, ", \"in\": [");
  for (uint32_t p = 0; p < node->nin; p++) {
    if (p) bb_put(out, ", ");
    put_in(out, ids, graph, (bb_use){n, p});
  }
  bb_put(out, "], \"out\": [");
  for (uint32_t p = 0; p < node->nout; p++) {
    if (p) bb_put(out, ", ");
    put_out(out, picture, node, p);
  }
  bb_put(out, "]");
  if (node->kind == BB_NODE_MAP) {
    bb_put(out, ", \"dim\": ");
    put_label(out, picture, node);
    bb_put(out, ", \"graph\": ");
    put_json_level(out, picture, ids, node->inner);
  }
  bb_put(out, "}");
}

static void put_list(bb_buffer *out, const bb_ids *ids, const bb_graph *graph, const char *name,
                     uint32_t count, const uint32_t *node) {
  bb_put(out, "\"%s\": [", name);
  for (uint32_t i = 0; i < count; i++)
    bb_put(out, "%s\"%s\"", i ? ", " : "", bb_id_of(ids, graph->node[node[i]]));
  bb_put(out, "], ");
}

static void put_json_level(bb_buffer *out, const bb_picture *picture, const bb_ids *ids,
                           const bb_graph *graph) {
  const char *separator = "";
  bb_put(out, "{");
  put_list(out, ids, graph, "inputs", graph->ninputs, graph->input);
  put_list(out, ids, graph, "outputs", graph->noutputs, graph->output);
  bb_put(out, "\"nodes\": [");
  for (uint32_t i = 0; i < graph->count; i++) {
    if (graph->node[i]->kind == BB_NODE_REMOVED) continue;
    bb_put(out, "%s\n", separator);
    put_node(out, picture, ids, graph, i);
    separator = ",";
  }
  bb_put(out, "]}");
}

void bb_draw_json(bb_buffer *out, const bb_picture *picture, const bb_ids *ids) {
  bb_put(out, "{\"title\": ");
  bb_put_picture_text(out, picture->title, true);
  bb_put(out, ", \"graph\": ");
  put_json_level(out, picture, ids, picture->graph);
  bb_put(out, "}\n");
}
