/* why.c - why two nodes did not fuse: every rule is asked for a match of the two, and says which of
 * its conditions failed first.
 */
#include "engine.h"

enum { PATH = 64 };

/* The way to a node: at each level the node that it is in, last itself. */
typedef struct path {
  uint32_t depth;
  uint32_t node[PATH];
} path;

static bool find(const bb_graph *graph, uint32_t serial, path *to) {
  uint32_t at = to->depth++;
  if (to->depth > PATH) return false;
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    to->node[at] = i;
    if (node->kind == BB_NODE_REMOVED) continue;
    if (node->serial == serial) return true;
    if (node->kind == BB_NODE_MAP && find(node->inner, serial, to)) return true;
    to->depth = at + 1;
  }
  to->depth = at;
  return false;
}

static const char *kind_name(const bb_node *node) {
  switch (node->kind) {
  case BB_NODE_INPUT: return "an input";
  case BB_NODE_OUTPUT: return "an output";
  case BB_NODE_FUNC: return bb_op_get(node->op)->name;
  case BB_NODE_MAP: return "a map";
  case BB_NODE_REDUCE: return "a reduction";
  case BB_NODE_VIEW: return "a view";
  default: return "a reference kernel";
  }
}

static void ask(bb_buffer *out, const bb_rule *rule, bb_scope *scope, uint32_t anchor,
                uint32_t partner) {
  const bb_node *node = bb_node_get(scope->graph, anchor);
  bb_match match = {.scope = scope, .anchor = anchor, .partner = partner, .dim = BB_NO_DIM};
  bb_put(out, "rule %u, %s, at node %u: ", rule->number, rule->name, node->serial);
  if (!(rule->anchors >> node->kind & 1))
    bb_put(out, "it does not start from %s\n", kind_name(node));
  else if (rule->match(&match))
    bb_put(out, "matches\n");
  else
    bb_put(out, "%s\n", match.why ? match.why : "no match");
}

static void ask_all(bb_buffer *out, bb_scope *scope, uint32_t a, uint32_t b) {
  const bb_rule *others[] = {&bb_rule_extend_map, &bb_rule_peel_first_iteration};
  for (uint32_t i = 0; i < bb_rule_count + sizeof others / sizeof *others; i++) {
    const bb_rule *rule = i < bb_rule_count ? bb_rules[i] : others[i - bb_rule_count];
    ask(out, rule, scope, a, b);
    ask(out, rule, scope, b, a);
  }
}

/* Scopes of the levels on the way, the innermost last; they are taken off again afterwards. */
static bb_scope *enter(bb_arena *arena, bb_graph *root, const path *to, uint32_t depth) {
  bb_scope *scope = bb_scope_create(arena, NULL, BB_NONE, root);
  for (uint32_t i = 0; i < depth; i++) {
    bb_graph *inner = bb_node_get(scope->graph, to->node[i])->inner;
    scope = bb_scope_create(arena, scope, to->node[i], inner);
  }
  return scope;
}

static void leave(bb_scope *scope) {
  for (; scope; scope = scope->parent) scope->graph->journal = NULL;
}

static void ask_level(bb_buffer *out, bb_program *program, bb_graph *root, const path *a,
                      const path *b, uint32_t depth) {
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_scope *scope = enter(scratch, root, a, depth);
  uint32_t x = a->node[depth], y = b->node[depth];
  if (depth + 1 < a->depth || depth + 1 < b->depth)
    bb_put(out, "rules match inside one level: the nodes asked for are in nodes %u and %u\n",
           bb_node_get(scope->graph, x)->serial, bb_node_get(scope->graph, y)->serial);
  ask_all(out, scope, x, y);
  leave(scope);
  bb_scratch_end(scratch);
}

void bb_fuse_why(bb_buffer *out, bb_program *program, bb_graph *root, uint32_t serial_a,
                 uint32_t serial_b) {
  path a = {0}, b = {0};
  bool has_a = find(root, serial_a, &a), has_b = find(root, serial_b, &b);
  if (!has_a) bb_put(out, "there is no node %u\n", serial_a);
  if (!has_b) bb_put(out, "there is no node %u\n", serial_b);
  if (!has_a || !has_b) return;
  uint32_t depth = 0;
  while (depth + 1 < a.depth && depth + 1 < b.depth && a.node[depth] == b.node[depth]) depth++;
  if (a.node[depth] != b.node[depth])
    ask_level(out, program, root, &a, &b, depth);
  else if (serial_a == serial_b)
    bb_put(out, "both are node %u\n", serial_a);
  else
    bb_put(out, "node %u is inside node %u\n", a.depth > b.depth ? serial_a : serial_b,
           a.depth > b.depth ? serial_b : serial_a);
}
