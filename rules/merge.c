/* merge.c - makes one map of two.
 *
 * The lighter of the two moves into the heavier, so that a long chain of maps fuses in near-linear time
 * whichever end grows.  Equal in-ports (same source, same level) become one; an out-port that only fed
 * the other map goes away.
 */
#include "merge.h"

#include <stdlib.h>
#include <string.h>

bool bb_both_whole(const bb_graph *graph, uint32_t a, uint32_t b) {
  return bb_node_get(graph, a)->part == BB_PART_ALL && bb_node_get(graph, b)->part == BB_PART_ALL;
}

bool bb_same_time(const bb_scope *scope, uint32_t a, uint32_t b) {
  return bb_scope_constant(scope, a) == bb_scope_constant(scope, b);
}

bool bb_passes_elements(const bb_graph *graph, uint32_t from, uint32_t to, const char **why) {
  const bb_node *source = bb_node_get(graph, from), *user = bb_node_get(graph, to);
  for (uint32_t i = 0; i < user->nin; i++) {
    if (user->in[i].src.node != from) continue;
    if (source->out[user->in[i].src.port].mode != BB_OUT_COLLECT) {
      *why = "the second map needs a fold of the first, complete";
      return false;
    }
    if (user->in[i].level != 0) {
      *why = user->in[i].level == BB_WHOLE ? "the second map takes the list of the first whole"
                                           : "the second map iterates an inner level of the list";
      return false;
    }
  }
  return true;
}

/* --- which one moves --- */

/* In-ports, inner nodes and uses of a map: what moving it would touch; counted up to a limit. */
static uint32_t weigh(const bb_graph *graph, uint32_t map, uint32_t limit) {
  const bb_node *node = bb_node_get(graph, map);
  uint32_t weight = node->nin + node->inner->live;
  for (uint32_t i = 0; i < node->nout; i++)
    for (bb_use u = node->out[i].first; u.node != BB_NONE && weight < limit;
         u = bb_next_use(graph, u))
      weight++;
  return weight;
}

/* Counting stops where the lighter one ends, or this would be what takes time. */
static bool first_is_lighter(const bb_graph *graph, uint32_t first, uint32_t second) {
  for (uint32_t limit = 16;; limit *= 4) {
    uint32_t a = weigh(graph, first, limit), b = weigh(graph, second, limit);
    if (a < limit || b < limit || limit >= UINT32_MAX / 4) return a < b;
  }
}

/* --- ports --- */

/* The in-port of a map that is fed so; looked for among its ports and among the uses at once. */
static uint32_t equal_port(const bb_graph *graph, uint32_t map, bb_value src, uint32_t level) {
  const bb_node *node = bb_node_get(graph, map);
  bb_use use = bb_first_use(graph, src);
  for (uint32_t i = 0; i < node->nin && use.node != BB_NONE; i++) {
    if (bb_value_equal(node->in[i].src, src) && node->in[i].level == level) return i;
    if (use.node == map && node->in[use.port].level == level) return use.port;
    use = bb_next_use(graph, use);
  }
  return BB_NONE;
}

/* What in-port `port` of the map that moves becomes inside the one that stays. */
static bb_value inside(bb_graph *graph, uint32_t stays, uint32_t moves, uint32_t port) {
  const bb_in in = bb_node_get(graph, moves)->in[port];
  bb_graph *inner = bb_node_get(graph, stays)->inner;
  if (in.src.node == stays) return bb_src(inner, inner->output[in.src.port], 0);
  uint32_t equal = equal_port(graph, stays, in.src, in.level);
  if (equal != BB_NONE) return (bb_value){inner->input[equal], 0};
  const bb_graph *from = bb_node_get(graph, moves)->inner;
  const bb_type *type = bb_type_of(from, (bb_value){from->input[port], 0});
  bb_in_add(graph, stays, in.src, in.level);
  bb_value input = bb_input_add(inner, type);
  bb_node_get(inner, input.node)->serial = bb_node_get(from, from->input[port])->serial;
  return input;
}

/* Is a component of the fold that this port belongs to used? */
static bool is_used(const bb_graph *graph, uint32_t map, uint32_t port) {
  const bb_node *node = bb_node_get(graph, map);
  const bb_out *out = &node->out[port];
  uint32_t first = port, count = 1;
  if (out->mode == BB_OUT_FOLD) first -= out->component, count = out->fold->components;
  for (uint32_t i = first; i < first + count && i < node->nout; i++)
    if (node->out[i].first.node != BB_NONE) return true;
  return false;
}

static void move_output(bb_graph *graph, uint32_t stays, uint32_t moves, uint32_t port,
                        bb_value value) {
  const bb_out from = bb_node_get(graph, moves)->out[port];
  uint32_t to = bb_out_add(graph, stays, from.type);
  bb_out *out = &bb_node_get(graph, stays)->out[to];
  out->mode = from.mode;
  out->axis = from.axis;
  out->fold = from.fold;
  out->component = from.component;
  bb_output_add(bb_node_get(graph, stays)->inner, value);
  bb_replace_uses(graph, (bb_value){moves, port}, (bb_value){stays, to});
}

/* All that are used; which is told before the first of them moves, for the others of its fold. */
static void move_outputs(bb_graph *graph, uint32_t stays, uint32_t moves, const bb_value *value,
                         bb_arena *scratch) {
  uint32_t count = bb_node_get(graph, moves)->nout;
  bool *used = BB_NEW(scratch, bool, count);
  for (uint32_t i = 0; i < count; i++) used[i] = is_used(graph, moves, i);
  for (uint32_t i = 0; i < count; i++)
    if (used[i]) move_output(graph, stays, moves, i, value[i]);
}

static int descending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x < y) - (x > y);
}

/* Those of the ports that nobody uses any more.  A fold goes as a whole: which ones go is told before the
 * first does. */
static void drop_unused_outputs(bb_graph *graph, uint32_t map, uint32_t count, const uint32_t *port,
                                bb_arena *scratch) {
  const bb_node *node = bb_node_get(graph, map);
  uint32_t nout = node->nout;
  bool *drop = BB_NEW(scratch, bool, (size_t)nout + 1);
  for (uint32_t i = 0; i < count; i++) {
    const bb_out *out = &node->out[port[i]];
    bool fold = out->mode == BB_OUT_FOLD;
    uint32_t first = fold ? port[i] - out->component : port[i];
    uint32_t parts = fold ? out->fold->components : 1;
    for (uint32_t k = first; k < first + parts && k < nout; k++)
      drop[k] = !is_used(graph, map, port[i]);
  }
  for (uint32_t p = nout; p-- > 0;)
    if (drop[p]) bb_map_out_remove(graph, map, p);
}

/* --- the two directions --- */

/* The second map moves into the first.  `count` values of it are told where they went. */
static void move_second(bb_graph *graph, uint32_t first, uint32_t second, uint32_t count,
                        bb_value *value, bb_arena *scratch) {
  bb_node *node = bb_node_get(graph, second);
  uint32_t nin = node->nin, nout = node->nout, fed = 0;
  bb_value *input = BB_NEW(scratch, bb_value, nin);
  bb_value *output = BB_NEW(scratch, bb_value, (size_t)nout + count);
  for (uint32_t i = 0; i < count; i++) bb_output_add(node->inner, value[i]);
  uint32_t *feeding = BB_NEW(scratch, uint32_t, nin);
  for (uint32_t i = 0; i < nin; i++) {
    input[i] = inside(graph, first, second, i);
    if (node->in[i].src.node == first) feeding[fed++] = node->in[i].src.port;
  }
  bb_graph_splice(bb_node_get(graph, first)->inner, node->inner, input, output);
  move_outputs(graph, first, second, output, scratch);
  if (count) memcpy(value, output + nout, count * sizeof *value);
  bb_node_remove(graph, second);
  drop_unused_outputs(graph, first, fed, feeding, scratch);
}

/* In-ports of the second map that the first one fed get their values from inside. */
static void feed_inside(bb_graph *graph, uint32_t first, uint32_t second, const bb_value *output,
                        bb_arena *scratch) {
  bb_node *from = bb_node_get(graph, first), *to = bb_node_get(graph, second);
  uint32_t count = 0, capacity = 0, *port = NULL;
  for (uint32_t i = 0; i < from->nout; i++)
    for (bb_use u = from->out[i].first; u.node != BB_NONE; u = bb_next_use(graph, u)) {
      if (u.node != second) continue;
      bb_value input = {to->inner->input[u.port], 0};
      bb_replace_uses(to->inner, input, output[i]);
      BB_GROW(scratch, port, capacity, (size_t)count + 1);
      port[count++] = u.port;
    }
  if (count) qsort(port, count, sizeof *port, descending);
  for (uint32_t i = 0; i < count; i++) bb_map_in_remove(graph, second, port[i]);
}

/* The first map moves into the second. */
static void move_first(bb_graph *graph, uint32_t first, uint32_t second, bb_arena *scratch) {
  bb_node *node = bb_node_get(graph, first);
  uint32_t nin = node->nin, nout = node->nout;
  bb_value *input = BB_NEW(scratch, bb_value, nin), *output = BB_NEW(scratch, bb_value, nout);
  for (uint32_t i = 0; i < nin; i++) input[i] = inside(graph, second, first, i);
  bb_graph_splice(bb_node_get(graph, second)->inner, node->inner, input, output);
  feed_inside(graph, first, second, output, scratch);
  move_outputs(graph, second, first, output, scratch);
  bb_node_remove(graph, first);
}

void bb_merge_maps(bb_graph *graph, uint32_t first, uint32_t second) {
  bb_arena *scratch = bb_scratch(graph->program->ctx);
  if (first_is_lighter(graph, first, second)) {
    bb_map_own(graph, second);
    move_first(graph, first, second, scratch);
  } else {
    bb_map_own(graph, first);
    move_second(graph, first, second, 0, NULL, scratch);
  }
  bb_scratch_end(scratch);
}

void bb_merge_into_first(bb_graph *graph, uint32_t first, uint32_t second, uint32_t count,
                         bb_value *value) {
  bb_arena *scratch = bb_scratch(graph->program->ctx);
  bb_map_own(graph, first);
  bb_map_own(graph, second);
  move_second(graph, first, second, count, value, scratch);
  bb_scratch_end(scratch);
}
