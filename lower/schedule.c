/* schedule.c - levels and maps of a block program as loops of a tile program. */
#include "again.h"
#include "bounds.h"
#include "divide.h"
#include "forward.h"
#include "inline.h"
#include "rows.h"
#include "schedule_parts.h"
#include "tile_edit.h"

#include <string.h>

static void lower_nodes(bb_build *b, level *l, bool spread);

static level new_level(bb_build *b, const bb_site *site) {
  level l = {.site = site};
  l.value = BB_NEW(b->arena, bb_build_value *, site->graph->count);
  l.into = BB_NEW(b->arena, uint32_t *, site->graph->count);
  l.component = BB_NEW(b->arena, uint32_t, site->graph->count);
  for (uint32_t i = 0; i < site->graph->count; i++) {
    uint32_t ports = bb_node_get(site->graph, i)->nout;
    l.value[i] = BB_NEW(b->arena, bb_build_value, ports);
    l.into[i] = BB_NEW(b->arena, uint32_t, ports);
    for (uint32_t port = 0; port < ports; port++) l.into[i][port] = BB_NONE;
    l.component[i] = BB_NONE;
  }
  return l;
}

static bb_nest nest_of(const level *l, bb_value v) {
  return (bb_nest){l->site->node[v.node].tie[v.port], false, BB_NO_DIM, NULL};
}

/* --- maps --- */

/* Every iteration is on its own, but for what all of them make alike. */
static bool is_parallel(const bb_node *node) {
  if (node->part != BB_PART_ALL) return false;
  for (uint32_t o = 0; o < node->nout; o++)
    if (node->out[o].mode == BB_OUT_FOLD) return false;
  return true;
}

/* Iterations hand on nothing but what they fold, in any order. */
static bool commutes(const bb_node *node) {
  for (uint32_t o = 0; o < node->nout; o++)
    if (node->out[o].mode == BB_OUT_FOLD && !node->out[o].fold->commutative) return false;
  return node->part == BB_PART_ALL;
}

/* A level that is nothing but a map, each of whose results is collected once. */
static const bb_node *only_map(const bb_graph *graph, uint32_t *index) {
  const bb_node *only = NULL;
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind == BB_NODE_REMOVED || node->kind == BB_NODE_INPUT ||
        node->kind == BB_NODE_OUTPUT)
      continue;
    if (node->kind != BB_NODE_MAP || only) return NULL;
    only = node;
    *index = i;
  }
  for (uint32_t o = 0; only && o < graph->noutputs; o++) {
    bb_value v = bb_src(graph, graph->output[o], 0);
    if (v.node != *index || bb_use_count(graph, v) != 1) return NULL;
  }
  return only;
}

/* --- out-ports --- */

/* Does a spread loop's first iteration suffice to store what all make alike?  It goes to memory outside the
 * kernel, and no iteration reads it there. */
static bool is_stored_once(const bb_build *b, const map *m, uint32_t port) {
  const bb_build_value *out = result(m, port);
  const bb_graph *graph = m->inner.site->graph;
  bb_value v = inner_source(m, port);
  return m->node->out[port].type->rank > 0 && out->kind == BB_BUILD_WINDOW &&
         !b->tile->view[out->window.view].scratch &&
         bb_node_get(graph, v.node)->kind == BB_NODE_MAP && bb_use_count(graph, v) == 1;
}

/* Is it an item that goes to memory outside the kernel as it is made? */
static bool is_item_outside(const bb_build *b, const map *m, uint32_t port) {
  const bb_build_value *out = result(m, port);
  return m->node->out[port].type->rank == 0 && out->kind == BB_BUILD_WINDOW &&
         !b->tile->view[out->window.view].scratch;
}

/* Gives what all iterations of a spread loop make alike a place that the first one stores into; the others
 * make it for themselves alone. */
static bool place_alike(bb_build *b, const map *m, uint32_t port) {
  const bb_schedule_options *o = b->sites.options;
  bb_build_value *out = result(m, port);
  if (!m->options.spread) return false;
  if (o && o->raw) return is_item_outside(b, m, port);
  if (is_stored_once(b, m, port)) return true;
  if (!o || !o->alike) return false;
  if (out->kind == BB_BUILD_NOTHING)
    *out = bb_value_scratch(b, m->node->out[port].type, m->at->tie[port]);
  return out->kind == BB_BUILD_WINDOW;
}

/* What is equal in every iteration is there even where there is none: one runs beyond the extent. */
static void begin_invariant(bb_build *b, map *m, uint32_t port) {
  const bb_dim_info *dim = bb_dim_get(b->program, m->node->dim);
  int64_t extent = bb_extent_value(dim->extent);
  if (!place_alike(b, m, port)) m->options.parallel = m->options.spread = false;
  m->options.once = extent < 1 && m->node->part != BB_PART_REST;
}

/* A tile of the loop's body that is seen after it: the law of tile programs wants it set before. */
static void keep_invariant(bb_build *b, const map *m, const bb_build_value *value) {
  if (m->loop->single) return;
  if (value->kind != BB_BUILD_TILE || b->fact[value->tile].depth < b->depth) return;
  bb_tile_stmt *stmt = bb_build_stmt(b, b->depth - 1, BB_TILE_MAP);
  stmt->result = value->tile;
  stmt->expr = bb_expr_const(b->program, b->tile->tile[value->tile].dtype, 0);
}

static void begin_out(bb_build *b, map *m, uint32_t port) {
  bb_build_value *out = result(m, port);
  out->depth =
      b->depth; /* a place that is given lies further out than what is put there is known */
  switch (m->node->out[port].mode) {
  case BB_OUT_FOLD: bb_schedule_begin_fold(b, m, port); return;
  case BB_OUT_INVARIANT: begin_invariant(b, m, port); return;
  case BB_OUT_COLLECT: break;
  }
  if (out->kind == BB_BUILD_NOTHING)
    *out = bb_value_scratch(b, m->node->out[port].type, m->at->tie[port]);
  const bb_build_value *first = resumed(m, port);
  bb_nest nest = out_nest(m, port);
  out->type = m->node->out[port].type;
  if (first) bb_value_know_cuts(out, first), bb_value_copy(b, m->node, out, first, &nest);
}

/* Where this iteration's element of a collected list lies. */
static bb_build_value slot_of(bb_build *b, const map *m, uint32_t port) {
  return bb_value_element(b, m->node, result(m, port), 0, m->loop);
}

/* Only some iteration stores into a view: none may read what it made there. */
static bool is_guarded(const bb_build *b, const bb_build_value *place) {
  for (uint32_t i = 0; i < b->guards; i++)
    if (b->guard[i].view == place->window.view) return true;
  return false;
}

/* Is it made by iterations that are all alike, of a map that may be spread? */
static bool is_alike(const bb_graph *graph, bb_value v) {
  const bb_node *node = bb_node_get(graph, v.node);
  return node->kind == BB_NODE_MAP && node->out[v.port].mode == BB_OUT_INVARIANT;
}

/* Lists made inside go straight to where they are collected. */
static void pass_places(bb_build *b, map *m) {
  const bb_graph *graph = m->inner.site->graph;
  for (uint32_t port = 0; port < m->node->nout; port++) {
    bb_value v = inner_source(m, port);
    bb_build_value *inner = value_of(&m->inner, v), place = {.kind = BB_BUILD_NOTHING};
    bb_kind kind = bb_node_get(graph, v.node)->kind;
    bool list = bb_type_of(graph, v)->rank > 0;
    if (inner->kind != BB_BUILD_NOTHING || !(list || is_alike(graph, v))) continue;
    if (kind != BB_NODE_MAP && kind != BB_NODE_REDUCE) continue;
    if (m->node->out[port].mode == BB_OUT_COLLECT)
      place = slot_of(b, m, port);
    else if (m->node->out[port].mode == BB_OUT_INVARIANT)
      place = *result(m, port);
    if (place.kind != BB_BUILD_WINDOW) continue;
    if (!is_guarded(b, &place) || bb_use_count(graph, v) == 1) *inner = place;
  }
}

static void bring(bb_build *b, const bb_node *node, const bb_build_value *to,
                  const bb_build_value *from, const bb_nest *nest) {
  if (from->kind == BB_BUILD_NOTHING) bb_build_refuse(b, node, "a value that is not there");
  if (bb_value_same_place(b, to, from)) return;
  if (from->type->rank == 0)
    bb_value_store(b, to, bb_value_tile(b, node, from), b->depth);
  else
    bb_value_copy(b, node, to, from, nest);
}

/* From a task to where the first one leaves it; the places on either side lack the same axes. */
static void bring_alike(bb_build *b, const map *m, uint32_t port, const bb_nest *nest) {
  bb_build_value *place = result(m, port);
  const bb_build_value *inner = inner_result(m, port);
  place->row = inner->row;
  place->col = inner->col;
  bring(b, m->node, place, inner, nest);
}

static void take_results(bb_build *b, map *m) {
  for (uint32_t port = 0; port < m->node->nout; port++) {
    bb_nest nest = nest_of(&m->inner, inner_source(m, port));
    bb_build_value slot;
    switch (m->node->out[port].mode) {
    case BB_OUT_COLLECT:
      slot = slot_of(b, m, port);
      slot.row = inner_result(m, port)->row ? inner_result(m, port)->row : slot.row;
      slot.col = inner_result(m, port)->col ? inner_result(m, port)->col : slot.col;
      bring(b, m->node, &slot, inner_result(m, port), &nest);
      break;
    case BB_OUT_FOLD: port += bb_schedule_fold(b, m, port) - 1; break;
    case BB_OUT_INVARIANT:
      if (m->options.spread)
        bring_alike(b, m, port, &nest);
      else
        keep_invariant(b, m, inner_result(m, port));
      break;
    }
  }
}

/* After the loop: what the level outside sees. */
static void settle(bb_build *b, map *m) {
  for (uint32_t port = 0; port < m->node->nout; port++) {
    bb_build_value *out = result(m, port), *inner = inner_result(m, port);
    const bb_out *how = &m->node->out[port];
    if (how->mode == BB_OUT_INVARIANT && !m->options.spread) {
      bb_build_value place = *out;
      *out = *inner;
      out->depth = b->depth;
      if (out->kind == BB_BUILD_TILE && b->fact[out->tile].depth > b->depth)
        b->fact[out->tile].depth = b->depth; /* what reads it stands behind the loop */
      bb_nest nest = out_nest(m, port);
      if (place.kind == BB_BUILD_WINDOW && how->type->rank) {
        place.type = how->type;
        bb_value_know_cuts(&place, inner);
        bring(b, m->node, &place, out, &nest);
        *out = place;
      }
    }
    bool handed_on = m->outer->into[m->index][port] != BB_NONE; /* as the sum that it is part of */
    if (how->mode == BB_OUT_FOLD && how->type->rank == 0)
      *out = (bb_build_value){
          .kind = BB_BUILD_TILE,
          .depth = b->depth,
          .tile = handed_on ? m->acc[port] : bb_tile_as(b, m->acc[port], how->type->item.dtype),
          .row = b->fact[m->acc[port]].row,
          .col = b->fact[m->acc[port]].col};
    out->type = how->type;
    if (how->mode == BB_OUT_FOLD && how->type->rank) {
      bb_value_know_cuts(out, inner);
      bb_schedule_begin_late(b, m, port);
    }
    if (how->mode != BB_OUT_COLLECT || !inner->type) continue;
    /* Axes of the items that an outer loop cuts. */
    bb_axis cut = how->type->level[0].axis;
    if (cut != BB_AXIS_ROW) out->row = inner->row;
    if (cut != BB_AXIS_COL) out->col = inner->col;
  }
}

static void bind(bb_build *b, map *m) {
  const bb_graph *graph = m->inner.site->graph;
  for (uint32_t i = 0; i < m->node->nin; i++) {
    const bb_build_value *outside = value_of(m->outer, m->node->in[i].src);
    bb_build_value *inside = &m->inner.value[graph->input[i]][0];
    uint32_t at = m->node->in[i].level;
    *inside = at == BB_WHOLE ? *outside : bb_value_element(b, m->node, outside, at, m->loop);
  }
}

static void find_chunk(bb_build *b, map *m) {
  m->options.chunk = bb_build_chunk(b, m->node, &m->options.chunks);
  for (uint32_t o = 0; o < m->node->nout; o++)
    if (m->node->out[o].mode == BB_OUT_INVARIANT)
      bb_build_refuse(b, m->node,
                      "a chunk, which may be empty, leaves what is equal in every iteration");
}

/* But for the passes behind a raw program: there all iterations store it, which is equal and small.  A condition would keep
 * parts from being merged. */
static void guard_invariants(bb_build *b, const map *m) {
  if (b->sites.options && b->sites.options->raw) return;
  for (uint32_t port = 0; m->options.spread && port < m->node->nout; port++) {
    if (m->node->out[port].mode != BB_OUT_INVARIANT) continue;
    BB_GROW(b->arena, b->guard, b->guard_capacity, b->guards + 1u);
    uint32_t view = m->outer->value[m->index][port].window.view;
    b->guard[b->guards++] = (bb_build_guard){view, m->loop};
  }
}

/* Of a loop over single indices selection may want several at once. */
static void note_join(bb_build *b, const map *m) {
  const bb_schedule_options *o = b->sites.options;
  if (!o || !o->rows || !m->options.spread || m->loop->blocked || m->loop->variable == BB_NONE ||
      m->node->block < 2)
    return;
  BB_GROW(b->arena, b->join, b->join_capacity, b->joins + 1u);
  b->join[b->joins++] = (struct bb_build_join){m->loop->variable, m->node->block};
}

/* spread: iterations of this loop may be tasks of their own. */
static void lower_map(bb_build *b, level *outer, uint32_t index, bool spread) {
  const bb_node *node = bb_node_get(outer->site->graph, index);
  map m = {.node = node, .at = &outer->site->node[index], .outer = outer, .index = index};
  uint32_t only;
  if (b->map_depth + 1 >= BB_BUILD_DEPTH) bb_build_refuse(b, node, "maps nested too deep");
  m.inner = new_level(b, m.at->inner);
  m.acc = BB_NEW(b->arena, uint32_t, node->nout);
  m.options = (bb_loop_options){.block = bb_site_block(&b->sites, m.at->loop), .part = node->part};
  m.options.parallel = is_parallel(node);
  if (node->part == BB_PART_CHUNK) find_chunk(b, &m);
  m.options.spread = spread && m.options.parallel;
  m.options.commutes = commutes(node);
  for (uint32_t port = 0; port < node->nout; port++) begin_out(b, &m, port);
  m.start = b->frame[b->depth].body.count;
  uint32_t floor = b->floor;
  m.loop = bb_build_begin(b, node->dim, &m.options);
  note_join(b, &m);
  uint32_t guards = b->guards;
  guard_invariants(b, &m);
  if (m.options.spread) b->floor = b->depth;
  if (m.options.spread && b->depth == 1) b->frame[0].loads = 0; /* another task's */
  b->map[b->map_depth++] = m.loop;
  bind(b, &m);
  bb_schedule_add_terms(&m);
  bb_schedule_renew_terms(b, &m);
  pass_places(b, &m);
  lower_nodes(b, &m.inner, m.options.spread && only_map(m.at->inner->graph, &only));
  take_results(b, &m);
  b->map_depth--;
  b->guards = guards;
  bb_build_end(b, m.loop, &m.options);
  b->floor = floor;
  settle(b, &m);
}

/* --- levels --- */

static void lower_func(bb_build *b, level *l, uint32_t index) {
  const bb_node *node = bb_node_get(l->site->graph, index);
  const bb_build_value **in = BB_NEW(b->arena, const bb_build_value *, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) in[i] = value_of(l, node->in[i].src);
  if (l->component[index] != BB_NONE) {
    bool used = bb_use_count(l->site->graph, (bb_value){index, 0}) > 1;
    bb_schedule_renewed(b, l->renewal, l->component[index], used, node, in, l->value[index]);
    return;
  }
  b->into = l->into[index][0];
  bb_schedule_func(b, node, in, l->value[index]);
  b->into = BB_NONE;
}

static void lower_reduce(bb_build *b, level *l, uint32_t index) {
  const bb_node *node = bb_node_get(l->site->graph, index);
  const bb_build_value **in = BB_NEW(b->arena, const bb_build_value *, node->nin);
  const uint32_t **tie = BB_NEW(b->arena, const uint32_t *, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_value src = node->in[i].src;
    in[i] = value_of(l, src);
    tie[i] = l->site->node[src.node].tie[src.port];
  }
  for (uint32_t o = 0; o < node->nout; o++)
    l->value[index][o].depth = b->depth; /* as begin_out() */
  bb_schedule_reduce(b, node, &l->site->node[index], in, tie, l->value[index]);
}

/* Outside all loops a tile would belong to no task: what stands there goes to memory. */
static void settle_item(bb_build *b, const bb_node *node, bb_build_value *value,
                        const bb_build_value *place) {
  if (value->kind != BB_BUILD_TILE || b->depth) return;
  bb_build_value to = *place;
  if (to.kind != BB_BUILD_WINDOW) to = bb_value_scratch(b, value->type, NULL);
  bb_value_store(b, &to, bb_value_tile(b, node, value), 0);
  *value = to;
}

static void lower_node(bb_build *b, level *l, uint32_t index, bool spread) {
  const bb_node *node = bb_node_get(l->site->graph, index);
  bb_build_value *place = BB_NEW(b->arena, bb_build_value, node->nout);
  if (node->nout) memcpy(place, l->value[index], node->nout * sizeof *place);
  switch (node->kind) {
  case BB_NODE_FUNC: lower_func(b, l, index); break;
  case BB_NODE_MAP: lower_map(b, l, index, spread); break;
  case BB_NODE_REDUCE: lower_reduce(b, l, index); break;
  case BB_NODE_INPUT:
    if (!b->depth && !b->map_depth)
      l->value[index][0] = bb_schedule_input(b, node, l->site->node[index].tie[0]);
    return;
  case BB_NODE_VIEW:
  case BB_NODE_MISC: bb_build_refuse(b, node, "views and misc nodes stand outside kernels");
  case BB_NODE_OUTPUT:
  case BB_NODE_REMOVED: return;
  }
  for (uint32_t o = 0; o < node->nout; o++) settle_item(b, node, &l->value[index][o], &place[o]);
}

static void lower_nodes(bb_build *b, level *l, bool spread) {
  for (uint32_t i = 0; i < l->site->count; i++) lower_node(b, l, l->site->order[i], spread);
}

/* A root value lies where its output wants it, when one does: the outputs, by number, that are brought so. */
static bool *place_outputs(bb_build *b, level *l) {
  const bb_graph *graph = l->site->graph;
  bool *brought = BB_NEW(b->arena, bool, graph->noutputs + 1);
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    const bb_node *node = bb_node_get(graph, graph->output[i]);
    bb_value v = node->in[0].src;
    bb_build_value *value = value_of(l, v);
    bb_kind kind = bb_node_get(graph, v.node)->kind;
    if (kind == BB_NODE_INPUT || value->kind != BB_BUILD_NOTHING) continue;
    *value = bb_output_window(b, node, bb_type_of(graph, v));
    value->type = bb_type_of(graph, v);
    brought[i] = value->kind == BB_BUILD_WINDOW;
  }
  return brought;
}

static void lower_root(bb_build *b) {
  level l = new_level(b, b->sites.root);
  const bb_graph *graph = l.site->graph;
  if (graph->ninputs && bb_schedule_joined_copy(b, graph, l.site->node[graph->input[0]].tie[0]))
    return;
  const bool *brought = place_outputs(b, &l);
  lower_nodes(b, &l, true);
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    if (brought[i]) continue;
    const bb_node *node = bb_node_get(graph, graph->output[i]);
    bb_value v = node->in[0].src;
    bb_schedule_output(b, node, value_of(&l, v), l.site->node[v.node].tie[v.port]);
  }
}

/* What is stored and loaded again in one iteration stays in its tile; views are arguments. */
static void forward(bb_build *b) {
  uint32_t views = b->tile->views, *now = BB_NEW(b->arena, uint32_t, views + 1);
  bb_tile_forward(b->tile, b->sites.options && b->sites.options->raw, now);
  for (uint32_t v = 0; v < views; v++)
    if (now[v] != BB_NONE) b->argument[now[v]] = b->argument[v];
}

const bb_kernel *bb_schedule_blocks(bb_program *program, const bb_graph *graph, const char *name,
                                    const bb_schedule_options *options) {
  bb_build *b = BB_NEW(program->arena, bb_build, 1);
  b->program = program;
  b->ctx = program->ctx;
  b->arena = program->arena;
  b->tile = bb_tile_create(program, name);
  b->kernel = BB_NEW(b->arena, bb_kernel, 1);
  b->into = BB_NONE;
  b->sites = (bb_sites){.program = program, .arena = b->arena, .options = options};
  bb_sites_make(&b->sites, graph);
  bb_schedule_extents(b, graph);
  lower_root(b);
  b->tile->body = b->frame[0].body;
  forward(b);
  if (!options || !options->raw) { /* else the passes behind this one do this in their own way */
    if (!program->strict) bb_tile_widen_results(b->tile);
    bb_tile_share_again(b->tile);
    if (!program->strict) bb_tile_scales(b->tile, true);
    bb_tile_inline(b->tile);
    bb_tile_divide(b->tile);
    bb_tile_drop_dead(b->tile); /* components of a tuple that only others were made of */
    bb_tile_bound(b->tile, !program->strict);
    for (uint32_t i = 0; i < b->joins; i++)
      bb_rows_join(b->tile, b->join[i].variable, b->join[i].together);
  }
  b->kernel->tile = b->tile;
  b->kernel->argument = b->argument;
  b->kernel->extent = b->extent;
  b->kernel->symbol = b->symbol;
  b->kernel->used = b->used;
  return b->kernel;
}
