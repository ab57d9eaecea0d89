/* view.c - levels as graphs of igraph.
 *
 * igraph reports errors by a handler, keeps a stack of cleanups, and calls a fatal handler that
 * must not return; all three are one for the whole process where it is built without thread-local
 * storage.  So every call goes through guarded(): under a lock, with handlers of ours that neither
 * print nor abort, which are taken back before the lock is given up.
 */
#include "view.h"
#include "program.h"
#include "text_form.h"

#include <igraph.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>

struct bb_view {
  const bb_graph *graph;
  bb_context *ctx;
  uint32_t *vertex; /* by node */
  uint32_t *node;   /* by vertex */
  uint32_t vertices;
  bb_arena *arena;
  bool made;
  igraph_t whole; /* has one vertex more, the root of dominators, without edges */
};

/* --- calling igraph --- */

typedef igraph_error_t igraph_job(void *argument);

static pthread_mutex_t igraph_lock = PTHREAD_MUTEX_INITIALIZER;
static jmp_buf fatal_target; /* used under the lock only */

static void on_fatal(const char *reason, const char *file, int line) {
  (void)reason;
  (void)file;
  (void)line;
  longjmp(fatal_target, 1);
}

static igraph_error_t guarded_job(igraph_job *job, void *argument) {
  if (setjmp(fatal_target)) return IGRAPH_EINTERNAL;
  return job(argument);
}

static igraph_error_t locked(igraph_job *job, void *argument) {
  pthread_mutex_lock(&igraph_lock);
  igraph_error_handler_t *error = igraph_set_error_handler(igraph_error_handler_ignore);
  igraph_warning_handler_t *warning = igraph_set_warning_handler(igraph_warning_handler_ignore);
  igraph_fatal_handler_t *fatal = igraph_set_fatal_handler(on_fatal);
  igraph_error_t code = guarded_job(job, argument);
  igraph_set_fatal_handler(fatal);
  igraph_set_warning_handler(warning);
  igraph_set_error_handler(error);
  pthread_mutex_unlock(&igraph_lock);
  return code;
}

static void guarded(bb_context *ctx, igraph_job *job, void *argument) {
  igraph_error_t code = locked(job, argument);
  if (code == IGRAPH_ENOMEM) bb_fail(ctx, BB_ERROR_MEMORY, "out of memory");
  if (code != IGRAPH_SUCCESS) bb_fail(ctx, BB_ERROR_INTERNAL, "igraph: %s", igraph_strerror(code));
}

/* Vectors over memory of ours: igraph reads them and never resizes them. */
static igraph_vector_int_t over(const igraph_integer_t *data, size_t count) {
  igraph_vector_int_t view = {0};
  igraph_vector_int_view(&view, data, (igraph_integer_t)count);
  return view;
}

/* --- making a view --- */

typedef struct creation {
  igraph_t *whole;
  const igraph_integer_t *edge;
  size_t edges;
  uint32_t vertices;
} creation;

static igraph_error_t create(void *argument) {
  creation *c = argument;
  igraph_vector_int_t edges = over(c->edge, 2 * c->edges);
  return igraph_create(c->whole, &edges, c->vertices, IGRAPH_DIRECTED);
}

static igraph_error_t destroy_graph(void *argument) {
  igraph_destroy(argument);
  return IGRAPH_SUCCESS;
}

static void destroy(void *object) {
  bb_view *view = object;
  if (view->made) locked(destroy_graph, &view->whole);
  bb_arena_destroy(view->arena);
}

static bb_view *empty_view(bb_context *ctx) {
  bb_arena *arena = bb_scratch(ctx);
  bb_view *view = BB_NEW(arena, bb_view, 1);
  *view = (bb_view){.ctx = ctx, .arena = arena};
  bb_undefer(ctx, arena);
  bb_defer(ctx, destroy, view);
  return view;
}

bb_view *bb_view_create(const bb_graph *graph) {
  bb_view *view = empty_view(graph->program->ctx);
  size_t ports = 0, edges = 0;
  view->graph = graph;
  view->vertex = BB_NEW(view->arena, uint32_t, graph->count);
  view->node = BB_NEW(view->arena, uint32_t, graph->live);
  for (uint32_t i = 0; i < graph->count; i++) {
    if (graph->node[i]->kind == BB_NODE_REMOVED) continue;
    view->vertex[i] = view->vertices;
    view->node[view->vertices++] = i;
    ports += graph->node[i]->nin;
  }
  igraph_integer_t *edge = BB_NEW(view->arena, igraph_integer_t, 2 * ports);
  for (uint32_t v = 0; v < view->vertices; v++) {
    const bb_node *node = graph->node[view->node[v]];
    for (uint32_t i = 0; i < node->nin; i++) {
      if (node->in[i].src.node == BB_NONE) continue;
      edge[2 * edges] = view->vertex[node->in[i].src.node];
      edge[2 * edges++ + 1] = v;
    }
  }
  creation c = {&view->whole, edge, edges, view->vertices};
  guarded(view->ctx, create, &c);
  view->made = true;
  return view;
}

void bb_view_end(bb_view *view) {
  bb_undefer(view->ctx, view);
  destroy(view);
}

/* --- reachability --- */

typedef struct search {
  const igraph_t *graph;
  const igraph_integer_t *root;
  size_t roots;
  igraph_neimode_t mode;
  igraph_integer_t *order; /* what was met; -1 behind it */
  size_t vertices;
} search;

/* Copies and frees what igraph gave. */
static void take(igraph_vector_int_t *from, igraph_integer_t *to, size_t count) {
  size_t have = (size_t)igraph_vector_int_size(from);
  for (size_t i = 0; i < count; i++) to[i] = i < have ? VECTOR(*from)[i] : -1;
  igraph_vector_int_destroy(from);
}

static igraph_error_t run_search(void *argument) {
  search *s = argument;
  igraph_vector_int_t order, roots = over(s->root, s->roots);
  igraph_error_t code = igraph_vector_int_init(&order, 0);
  if (code != IGRAPH_SUCCESS) return code;
  code = igraph_bfs(s->graph, -1, &roots, s->mode, false, NULL, &order, NULL, NULL, NULL, NULL,
                    NULL, NULL, NULL);
  take(&order, s->order, s->vertices);
  return code;
}

void bb_view_reach(bb_view *view, uint32_t count, const uint32_t *from, bb_direction direction,
                   bool *reached) {
  memset(reached, 0, view->graph->count * sizeof *reached);
  if (count == 0) return;
  bb_arena *scratch = bb_scratch(view->ctx);
  igraph_integer_t *root = BB_NEW(scratch, igraph_integer_t, count);
  igraph_integer_t *order = BB_NEW(scratch, igraph_integer_t, view->vertices);
  for (uint32_t i = 0; i < count; i++) root[i] = view->vertex[from[i]];
  search s = {&view->whole, root,
              count,        direction == BB_DOWNSTREAM ? IGRAPH_OUT : IGRAPH_IN,
              order,        view->vertices};
  guarded(view->ctx, run_search, &s);
  for (uint32_t i = 0; i < view->vertices && order[i] >= 0; i++)
    reached[view->node[order[i]]] = true;
  bb_scratch_end(scratch);
}

bool bb_view_is_convex(bb_view *view, uint32_t count, const uint32_t *set) {
  uint32_t nodes = view->graph->count;
  bb_arena *scratch = bb_scratch(view->ctx);
  bool *down = BB_NEW(scratch, bool, nodes), *up = BB_NEW(scratch, bool, nodes);
  bool *inside = BB_NEW(scratch, bool, nodes), convex = true;
  bb_view_reach(view, count, set, BB_DOWNSTREAM, down);
  bb_view_reach(view, count, set, BB_UPSTREAM, up);
  for (uint32_t i = 0; i < count; i++) inside[set[i]] = true;
  for (uint32_t i = 0; i < nodes; i++) convex &= !down[i] || !up[i] || inside[i];
  bb_scratch_end(scratch);
  return convex;
}

/* --- order and dominators --- */

static igraph_error_t run_sort(void *argument) {
  search *s = argument;
  igraph_vector_int_t order;
  igraph_bool_t acyclic;
  igraph_error_t code = igraph_is_dag(s->graph, &acyclic);
  if (code != IGRAPH_SUCCESS || !acyclic) return code;
  code = igraph_vector_int_init(&order, 0);
  if (code != IGRAPH_SUCCESS) return code;
  code = igraph_topological_sorting(s->graph, &order, IGRAPH_OUT);
  take(&order, s->order, s->vertices);
  return code;
}

bool bb_view_topological(bb_view *view, uint32_t *order) {
  bb_arena *scratch = bb_scratch(view->ctx);
  igraph_integer_t *vertex = BB_NEW(scratch, igraph_integer_t, view->vertices);
  bool acyclic = true;
  memset(vertex, 0xFF, view->vertices * sizeof *vertex);
  search s = {.graph = &view->whole, .order = vertex, .vertices = view->vertices};
  guarded(view->ctx, run_sort, &s);
  for (uint32_t i = 0; i < view->vertices; i++) {
    acyclic &= vertex[i] >= 0;
    if (acyclic) order[i] = view->node[vertex[i]];
  }
  bb_scratch_end(scratch);
  return acyclic;
}

/* The level with one vertex more, before all sources. */
typedef struct rooted {
  creation make;
  igraph_t graph;
  igraph_integer_t *dominator; /* by vertex */
} rooted;

static igraph_error_t run_dominators(void *argument) {
  rooted *r = argument;
  r->make.whole = &r->graph;
  igraph_error_t code = create(&r->make);
  if (code != IGRAPH_SUCCESS) return code;
  igraph_vector_int_t dominator;
  code = igraph_vector_int_init(&dominator, 0);
  if (code == IGRAPH_SUCCESS) {
    code =
        igraph_dominator_tree(&r->graph, r->make.vertices - 1, &dominator, NULL, NULL, IGRAPH_OUT);
    take(&dominator, r->dominator, r->make.vertices);
  }
  igraph_destroy(&r->graph);
  return code;
}

/* The level's edges in the direction of flow, then one from the root to each vertex without any. */
static creation rooted_edges(const bb_view *view, bb_direction direction, bb_arena *scratch) {
  uint32_t root = view->vertices;
  size_t ports = 0, edges = 0;
  for (uint32_t v = 0; v < root; v++) ports += view->graph->node[view->node[v]]->nin;
  igraph_integer_t *edge = BB_NEW(scratch, igraph_integer_t, 2 * (ports + root));
  bool *entered = BB_NEW(scratch, bool, root);
  for (uint32_t v = 0; v < root; v++) {
    const bb_node *node = view->graph->node[view->node[v]];
    for (uint32_t i = 0; i < node->nin; i++) {
      if (node->in[i].src.node == BB_NONE) continue;
      uint32_t src = view->vertex[node->in[i].src.node];
      bool down = direction == BB_DOWNSTREAM;
      edge[2 * edges] = down ? src : v;
      edge[2 * edges++ + 1] = down ? v : src;
      entered[down ? v : src] = true;
    }
  }
  for (uint32_t v = 0; v < root; v++) {
    if (entered[v]) continue;
    edge[2 * edges] = root;
    edge[2 * edges++ + 1] = v;
  }
  return (creation){NULL, edge, edges, root + 1};
}

void bb_view_dominators(bb_view *view, bb_direction direction, uint32_t *dominator) {
  bb_arena *scratch = bb_scratch(view->ctx);
  uint32_t root = view->vertices;
  rooted r = {.make = rooted_edges(view, direction, scratch)};
  r.dominator = BB_NEW(scratch, igraph_integer_t, root + 1);
  guarded(view->ctx, run_dominators, &r);
  for (uint32_t i = 0; i < view->graph->count; i++) dominator[i] = BB_NONE;
  for (uint32_t v = 0; v < root; v++)
    if (r.dominator[v] >= 0 && r.dominator[v] != root)
      dominator[view->node[v]] = view->node[r.dominator[v]];
  bb_scratch_end(scratch);
}

/* --- isomorphism --- */

/* A level as a coloured graph: a vertex for each node, out-port and in-port, so that no two edges
 * run side by side; a colour for each label. */
typedef struct coloured {
  igraph_integer_t *edge, *colour;
  size_t edges;
  uint32_t vertices;
} coloured;

typedef struct labels {
  bb_writer w;
  bb_table *table;
  uint32_t count;
  const bb_graph **level; /* representatives of inner levels, each another class */
  uint32_t levels, capacity;
} labels;

static uint32_t colour_of(labels *l, const bb_buffer *label) {
  uint32_t found = bb_table_find(l->table, label->data, label->length);
  if (found != BB_NONE) return found;
  bb_table_add(l->table, label->data, label->length, l->count);
  return l->count++;
}

static uint32_t class_of(labels *l, const bb_graph *inner) {
  for (uint32_t i = 0; i < l->levels; i++)
    if (l->level[i] == inner || bb_view_isomorphic(l->level[i], inner)) return i;
  BB_GROW(l->w.scratch, l->level, l->capacity, (size_t)l->levels + 1);
  l->level[l->levels] = inner;
  return l->levels++;
}

/* Everything of a node but its operands; inputs and outputs also have a place. */
static void put_label(labels *l, const bb_node *node, uint32_t place) {
  bb_buffer *out = l->w.out;
  bb_put(out, "node %d %u %u %u", node->kind, node->nin, node->nout, place);
  if (node->kind != BB_NODE_MAP)
    bb_put(out, " %u %p %p", node->tensor, (const void *)node->access, (const void *)node->misc);
  if (node->kind == BB_NODE_FUNC) bb_put(out, " %d %p", node->op, (const void *)node->expr);
  if (node->kind == BB_NODE_REDUCE) bb_put(out, " %s %d", node->monoid->name, node->reduce);
  if (node->kind == BB_NODE_MAP)
    bb_put(out, " %u %u %u %u", node->dim, node->part, node->block, class_of(l, node->inner));
  for (uint32_t i = 0; i < bb_chunk_depth(node); i++) bb_put(out, " %u", node->chunk->dim[i]);
  for (uint32_t i = 0; i < node->nout; i++)
    bb_put(out, " %p %d %d %s %u", (const void *)node->out[i].type, node->out[i].mode,
           node->out[i].axis, node->out[i].fold ? node->out[i].fold->name : "",
           node->out[i].component);
}

static uint32_t add_vertex(coloured *c, labels *l, const bb_buffer *label) {
  c->colour[c->vertices] = colour_of(l, label);
  return c->vertices++;
}

static void add_edge(coloured *c, uint32_t from, uint32_t to) {
  c->edge[2 * c->edges] = from;
  c->edge[2 * c->edges++ + 1] = to;
}

static uint32_t *places(const bb_graph *graph, bb_arena *scratch) {
  uint32_t *place = BB_NEW(scratch, uint32_t, graph->count);
  for (uint32_t i = 0; i < graph->ninputs; i++) place[graph->input[i]] = i;
  for (uint32_t i = 0; i < graph->noutputs; i++) place[graph->output[i]] = i;
  return place;
}

static coloured colour(const bb_graph *graph, labels *l, bb_arena *scratch) {
  size_t ports = 0;
  for (uint32_t i = 0; i < graph->count; i++)
    ports += (size_t)graph->node[i]->nin + graph->node[i]->nout + 1;
  coloured c = {.edge = BB_NEW(scratch, igraph_integer_t, 4 * ports),
                .colour = BB_NEW(scratch, igraph_integer_t, ports)};
  uint32_t *first = BB_NEW(scratch, uint32_t, graph->count), *place = places(graph, scratch);
  for (uint32_t i = 0; i < graph->count; i++) { /* a node, then its out-ports */
    if (graph->node[i]->kind == BB_NODE_REMOVED) continue;
    bb_buffer label = {.arena = scratch};
    l->w.out = &label;
    put_label(l, graph->node[i], place[i]);
    first[i] = add_vertex(&c, l, &label);
    for (uint32_t p = 0; p < graph->node[i]->nout; p++) {
      bb_buffer port = {.arena = scratch};
      bb_put(&port, "out %u", p);
      add_edge(&c, first[i], add_vertex(&c, l, &port));
    }
  }
  for (uint32_t i = 0; i < graph->count; i++)
    for (uint32_t p = 0; p < graph->node[i]->nin; p++) {
      const bb_in *in = &graph->node[i]->in[p];
      bb_buffer port = {.arena = scratch};
      bb_put(&port, "in %u %u", p, in->level);
      uint32_t vertex = add_vertex(&c, l, &port);
      add_edge(&c, vertex, first[i]);
      if (in->src.node != BB_NONE) add_edge(&c, first[in->src.node] + 1 + in->src.port, vertex);
    }
  return c;
}

typedef struct comparison {
  const coloured *a, *b;
  igraph_bool_t same;
} comparison;

static igraph_error_t run_comparison(void *argument) {
  comparison *c = argument;
  igraph_t a, b;
  creation make_a = {&a, c->a->edge, c->a->edges, c->a->vertices};
  creation make_b = {&b, c->b->edge, c->b->edges, c->b->vertices};
  igraph_vector_int_t colour_a = over(c->a->colour, c->a->vertices);
  igraph_vector_int_t colour_b = over(c->b->colour, c->b->vertices);
  igraph_error_t code = create(&make_a);
  if (code != IGRAPH_SUCCESS) return code;
  code = create(&make_b);
  if (code == IGRAPH_SUCCESS) {
    code = igraph_isomorphic_vf2(&a, &b, &colour_a, &colour_b, NULL, NULL, &c->same, NULL, NULL,
                                 NULL, NULL, NULL);
    igraph_destroy(&b);
  }
  igraph_destroy(&a);
  return code;
}

bool bb_view_isomorphic(const bb_graph *a, const bb_graph *b) {
  if (a->live != b->live || a->ninputs != b->ninputs || a->noutputs != b->noutputs) return false;
  bb_context *ctx = a->program->ctx;
  bb_arena *scratch = bb_scratch(ctx);
  labels l = {.w = {.program = a->program, .scratch = scratch}};
  l.table = bb_table_create(scratch);
  coloured left = colour(a, &l, scratch), right = colour(b, &l, scratch);
  comparison c = {.a = &left, .b = &right};
  if (left.vertices == right.vertices && left.edges == right.edges)
    guarded(ctx, run_comparison, &c);
  bb_scratch_end(scratch);
  return c.same;
}
