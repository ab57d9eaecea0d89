/* schedule_io.c - inputs and outputs of a kernel: windows on program tensors.
 *
 * A piece of an access is a view of its tensor from some element on, with strides of its own.  A
 * joined input is brought together in scratch memory first, a joined output taken apart at the end.
 */
#include "build.h"

#include <stdlib.h>

/* --- the axes of a type --- */

typedef struct slot {
  bb_dim dim;
  uint8_t name;
  bool taken;
} slot;

typedef struct slots {
  uint32_t count;
  slot slot[BB_TILE_RANK + 2];
} slots;

/* The levels, outermost first, then axes of the item that no level cuts. */
static void slots_of(bb_build *b, const bb_node *node, const bb_type *type, slots *s) {
  bool row = type->item.row != BB_NO_DIM, col = type->item.col != BB_NO_DIM;
  s->count = 0;
  if (type->rank > BB_TILE_RANK) bb_build_refuse(b, node, "a value of too many levels");
  for (uint32_t i = 0; i < type->rank; i++) {
    bb_axis axis = type->level[i].axis;
    uint8_t name = axis == BB_AXIS_ROW   ? BB_SLOT_ROW
                   : axis == BB_AXIS_COL ? BB_SLOT_COL
                                         : (uint8_t)i;
    s->slot[s->count++] = (slot){type->level[i].dim, name, false};
    row &= axis != BB_AXIS_ROW;
    col &= axis != BB_AXIS_COL;
  }
  if (row || col) bb_build_refuse(b, node, "an item with an axis that no list cuts");
}

static uint8_t take_slot(slots *s, bb_dim dim) {
  for (uint32_t i = 0; i < s->count; i++) {
    if (s->slot[i].dim != dim || s->slot[i].taken) continue;
    s->slot[i].taken = true;
    return s->slot[i].name;
  }
  return BB_SLOT_NONE;
}

/* --- pieces --- */

/* The identity, for a node without access. */
static bb_piece whole_tensor(bb_build *b, uint32_t tensor) {
  const bb_tensor *t = &b->program->tensor[tensor];
  bb_index *index = BB_NEW(b->arena, bb_index, t->axes);
  for (uint32_t i = 0; i < t->axes; i++) index[i] = (bb_index){BB_INDEX_DIM, t->axis[i], 0, 1};
  return (bb_piece){.source = tensor, .rank = t->axes, .index = index};
}

/* What an axis of a tensor counts in memory. */
static bb_tile_index held(bb_build *b, uint32_t tensor, uint32_t axis) {
  const bb_schedule_options *options = b->sites.options;
  const bb_room *room = options && options->room ? &options->room[tensor] : NULL;
  if (room && room->given && room->axis == axis) return bb_index_symbol(b, BB_ROOM + room->number);
  return bb_index_extent(b, b->program->tensor[tensor].axis[axis]);
}

/* --- padded axes --- */

static void add_axis(bb_build *b, const bb_node *node, bb_tile_index extent, bb_tile_index stride,
                     uint8_t along, bb_tile_view *view, bb_window *window) {
  if (view->rank == BB_TILE_RANK) bb_build_refuse(b, node, "a tensor of too many axes");
  view->extent[view->rank] = extent;
  view->stride[view->rank] = stride;
  window->slot[view->rank] = along;
  window->at[view->rank++] = bb_index_number(b, 0);
}

static bool is_enumerated(uint8_t name) {
  return name < BB_SLOT_COL;
}

/* All of an axis of an array, of which `index` takes elements, some of them outside.  Blocks lie along it element by element:
 * where they take every n-th, the axis is cut in two, and has n places where they begin. */
static void pad_axis(bb_build *b, const bb_node *node, slots *s, const bb_index *index,
                     bb_tile_index extent, bb_tile_index stride, bb_tile_view *view,
                     bb_window *window) {
  struct bb_window_reach reach = {.slot = {BB_SLOT_NONE, BB_SLOT_NONE}, .parts = 1};
  uint8_t along = BB_SLOT_NONE;
  for (uint32_t k = 0; k < bb_index_dims(index); k++) {
    uint8_t name = take_slot(s, bb_index_dim(index, k));
    if (name == BB_SLOT_NONE) bb_build_refuse(b, node, "an index over a dim that the value lacks");
    reach.by[k] = k ? index->by : index->step;
    if (is_enumerated(name))
      reach.slot[k] = name;
    else if (k == 0 && reach.by[0] > 0)
      along = name;
    else
      bb_build_refuse(b, node, "a padded axis that a block lies along against its order");
  }
  int64_t parts = along == BB_SLOT_NONE ? 1 : reach.by[0], first = index->start, begin = 0;
  if (parts > 1) {
    if (extent->op != BB_X_CONST || (int64_t)extent->number % parts || reach.by[1] < 0)
      bb_build_refuse(b, node, "a padded axis whose length its blocks' step does not divide");
    /* Quotients of what is below 0 would be rounded up. */
    while (first < 0) first += parts, begin--;
  }
  reach.parts = parts;
  reach.from = bb_index_number(b, first);
  bb_window_pad *pad = window->pad;
  pad->axis[view->rank] = reach;
  bb_tile_index whole = parts > 1 ? bb_index_number(b, (int64_t)extent->number / parts) : extent;
  add_axis(b, node, whole, bb_index_times(b, stride, bb_index_number(b, parts)), along, view,
           window);
  window->at[view->rank - 1] = bb_index_number(b, begin);
  if (parts == 1) return;
  reach.rest = true;
  pad->axis[view->rank] = reach;
  add_axis(b, node, bb_index_number(b, parts), stride, BB_SLOT_NONE, view, window);
}

/* A window of `type` on a piece.  covered: whether every axis of the type is one of the piece's. */
static bb_build_value piece_window(bb_build *b, const bb_node *node, const bb_type *type,
                                   const bb_piece *piece, bb_dim joined, bool written,
                                   bool *covered) {
  const bb_tensor *t = &b->program->tensor[piece->source];
  bb_build_value value = {.type = type, .kind = BB_BUILD_WINDOW};
  bb_tile_view view = {.name =
                           bb_arena_printf(b->arena, "%c%u", written ? 'y' : 'x', b->tile->views),
                       .dtype = t->dtype,
                       .strided = true,
                       .written = written};
  slots s;
  slots_of(b, node, type, &s);
  if (piece->rank != t->axes)
    bb_build_refuse(b, node, "an access with an index too few or too many");
  if (piece->padded) {
    view.padded = true;
    value.window.pad = BB_NEW(b->arena, bb_window_pad, 1);
    value.window.pad->fill = piece->fill;
  }
  bb_tile_index *stride = BB_NEW(b->arena, bb_tile_index, t->axes + 1u);
  stride[t->axes] = bb_index_number(b, 1);
  for (uint32_t i = t->axes; i-- > 0;)
    stride[i] = bb_index_times(b, stride[i + 1], held(b, piece->source, i));
  bb_tile_index offset = bb_index_number(b, 0);
  for (uint32_t i = 0; i < t->axes; i++) {
    const bb_index *index = &piece->index[i];
    if (piece->padded && index->kind != BB_INDEX_DIM) {
      pad_axis(b, node, &s, index, bb_index_extent(b, t->axis[i]), stride[i + 1], &view,
               &value.window);
      continue;
    }
    bool range = index->kind != BB_INDEX_DIM;
    if (range)
      offset = bb_index_add(b, offset,
                            bb_index_times(b, stride[i + 1], bb_index_number(b, index->start)));
    uint8_t name[2] = {BB_SLOT_NONE, BB_SLOT_NONE};
    for (uint32_t k = 0; k < bb_index_dims(index); k++) {
      name[k] = take_slot(&s, bb_index_dim(index, k));
      if (name[k] == BB_SLOT_NONE)
        bb_build_refuse(b, node, "an index over a dim that the value lacks");
    }
    uint32_t dims = bb_index_dims(index);
    /* Neighbours last: places, but where they lie farther apart than taps. */
    bool far = dims > 1 && llabs(index->step) > llabs(index->by);
    for (uint32_t n = dims; n-- > 0;) {
      uint32_t k = far ? dims - 1 - n : n;
      if (view.rank == BB_TILE_RANK) bb_build_refuse(b, node, "a tensor of too many axes");
      bb_dim dim = bb_index_dim(index, k);
      view.extent[view.rank] =
          dim == joined ? bb_index_number(b, piece->length) : bb_index_extent(b, dim);
      view.stride[view.rank] = stride[i + 1];
      if (range)
        view.stride[view.rank] =
            bb_index_times(b, stride[i + 1], bb_index_number(b, k ? index->by : index->step));
      value.window.slot[view.rank] = name[k];
      value.window.at[view.rank++] = bb_index_number(b, 0);
    }
  }
  if (view.rank == 0) { /* one element */
    view.extent[0] = view.stride[0] = bb_index_number(b, 1);
    value.window.slot[0] = BB_SLOT_NONE;
    value.window.at[view.rank++] = bb_index_number(b, 0);
  }
  *covered = true;
  for (uint32_t i = 0; i < s.count; i++) *covered &= s.slot[i].taken || s.slot[i].dim == joined;
  value.window.view = bb_tile_add_view(b->tile, &view);
  BB_GROW(b->arena, b->argument, b->argument_capacity, b->tile->views);
  b->argument[value.window.view] = (bb_kernel_argument){piece->source, offset};
  return value;
}

/* The elements of a whole value from `first` on along the joined dim. */
static bb_build_value moved(bb_build *b, const bb_build_value *whole, bb_dim joined,
                            int64_t first) {
  bb_build_value part = *whole;
  uint32_t level = 0;
  while (level < whole->type->rank && whole->type->level[level].dim != joined) level++;
  if (level == whole->type->rank) bb_build_refuse(b, NULL, "a value without the joined dim");
  bb_axis axis = whole->type->level[level].axis;
  uint8_t name = axis == BB_AXIS_ROW   ? BB_SLOT_ROW
                 : axis == BB_AXIS_COL ? BB_SLOT_COL
                                       : (uint8_t)level;
  for (uint32_t i = 0; i < b->tile->view[part.window.view].rank; i++)
    if (part.window.slot[i] == name)
      part.window.at[i] = bb_index_add(b, part.window.at[i], bb_index_number(b, first));
  return part;
}

/* Does `next` lie behind `piece` in memory as it lies along the joined dim?  Elements of an axis, of each all of the one after it. */
static bool continues(const bb_build *b, const bb_piece *piece, const bb_piece *next,
                      bb_dim joined) {
  const bb_tensor *t = &b->program->tensor[piece->source];
  uint32_t axis = BB_NONE;
  if (next->source != piece->source || next->rank != piece->rank || piece->padded || next->padded)
    return false;
  for (uint32_t i = 0; i < piece->rank; i++) {
    const bb_index *x = &piece->index[i], *y = &next->index[i];
    if (x->kind == y->kind && x->dim == y->dim && x->start == y->start && x->step == y->step &&
        x->tap == y->tap && x->by == y->by)
      continue;
    if (axis != BB_NONE || x->kind != BB_INDEX_FIXED || y->kind != BB_INDEX_FIXED) return false;
    axis = i;
  }
  if (axis == BB_NONE || axis + 1 >= piece->rank) return false;
  const bb_index *along = &piece->index[axis + 1];
  const bb_schedule_options *options = b->sites.options;
  const bb_room *room = options && options->room ? &options->room[piece->source] : NULL;
  if (room && room->given && room->axis == axis + 1) return false;
  int64_t extent = bb_extent_value(b->program->dim[t->axis[axis + 1]].extent);
  bool whole = bb_index_over(along, joined) && along->kind != BB_INDEX_WINDOW && extent > 0 &&
               (along->kind == BB_INDEX_DIM || (along->start == 0 && along->step == 1));
  return whole && next->length == extent && piece->length % extent == 0 &&
         next->index[axis].start == piece->index[axis].start + piece->length / extent;
}

/* Pieces from number *p on that are one stretch of memory, as one; *p is the last of them. */
static bb_piece stretch_of(const bb_build *b, const bb_access *access, uint32_t *p) {
  bb_piece all = access->piece[*p];
  while (*p + 1 < access->count && continues(b, &all, &access->piece[*p + 1], access->joined))
    all.length += access->piece[++*p].length;
  return all;
}

/* Is a piece worth a round of all threads?  Small ones one thread brings, one after the other. */
static bool is_worth_threads(const bb_build *b, const bb_type *type, bb_dim joined,
                             const bb_piece *piece) {
  const double worth = 1 << 15;
  double elements = 1;
  for (uint32_t i = 0; i < type->rank; i++) {
    bb_dim dim = type->level[i].dim;
    int64_t extent = bb_extent_value(b->program->dim[dim].extent);
    if (dim != joined && extent < 0) return true;
    elements *= (double)(dim == joined ? piece->length : extent);
  }
  return elements >= worth;
}

/* --- inputs --- */

bb_build_value bb_schedule_input(bb_build *b, const bb_node *node, const uint32_t *tie) {
  const bb_type *type = node->out[0].type;
  const bb_access *access = node->access;
  bool covered;
  if (!access || access->joined == BB_NO_DIM) {
    bb_piece piece = access ? access->piece[0] : whole_tensor(b, node->tensor);
    return piece_window(b, node, type, &piece, BB_NO_DIM, false, &covered);
  }
  bb_build_value whole = bb_value_scratch(b, type, tie);
  /* Nests one after the other: a piece's last block may reach into the next piece. */
  for (uint32_t p = 0; p < access->count; p++) {
    bb_piece piece = stretch_of(b, access, &p);
    bb_build_value from = piece_window(b, node, type, &piece, access->joined, false, &covered);
    bb_build_value to = moved(b, &whole, access->joined, piece.first);
    bb_nest nest = {tie, is_worth_threads(b, type, access->joined, &piece), access->joined,
                    bb_index_number(b, piece.length)};
    bb_value_copy(b, node, &to, &from, &nest);
  }
  return whole;
}

/* --- outputs --- */

bb_build_value bb_output_window(bb_build *b, const bb_node *node, const bb_type *type) {
  const bb_access *access = node->access;
  if (access && access->joined != BB_NO_DIM) return (bb_build_value){0};
  bb_piece piece = access ? access->piece[0] : whole_tensor(b, node->tensor);
  bool covered;
  bb_build_value value = piece_window(b, node, type, &piece, BB_NO_DIM, true, &covered);
  if (!covered) bb_build_refuse(b, node, "an output without a place for every element");
  return value;
}

void bb_schedule_output(bb_build *b, const bb_node *node, const bb_build_value *value,
                        const uint32_t *tie) {
  const bb_access *access = node->access;
  if (!access || access->joined == BB_NO_DIM) {
    bb_build_value to = bb_output_window(b, node, value->type);
    bb_nest nest = {tie, true, BB_NO_DIM, NULL};
    bb_value_copy(b, node, &to, value, &nest);
    return;
  }
  for (uint32_t p = 0; p < access->count; p++) {
    const bb_piece *piece = &access->piece[p];
    bool covered;
    bb_build_value to = piece_window(b, node, value->type, piece, access->joined, true, &covered);
    if (!covered) bb_build_refuse(b, node, "an output without a place for every element");
    bb_build_value from = moved(b, value, access->joined, piece->first);
    bb_nest nest = {tie, true, access->joined, bb_index_number(b, piece->length)};
    bb_value_copy(b, node, &to, &from, &nest);
  }
}

/* --- joined inputs that are only written elsewhere --- */

/* A part of an output: elements from `first` on along the joined dim.  False: it has no index over that, or several. */
static bool output_part(bb_build *b, const bb_node *node, const bb_type *type, bb_dim joined,
                        const bb_piece *part, bb_build_value *to) {
  bb_piece piece = node->access ? node->access->piece[0] : whole_tensor(b, node->tensor);
  bb_index *index = BB_NEW(b->arena, bb_index, piece.rank + 1u);
  uint32_t found = 0;
  bool covered;
  for (uint32_t i = 0; i < piece.rank; i++) {
    index[i] = piece.index[i];
    if (!bb_index_over(&index[i], joined)) continue;
    found++;
    if (index[i].kind == BB_INDEX_DIM) index[i].start = 0, index[i].step = 1;
    index[i].kind = BB_INDEX_RANGE;
    index[i].start += index[i].step * part->first;
  }
  piece.index = index;
  piece.length = part->length;
  if (found != 1) return false;
  *to = piece_window(b, node, type, &piece, joined, true, &covered);
  return covered;
}

bool bb_schedule_joined_copy(bb_build *b, const bb_graph *graph, const uint32_t *tie) {
  if (!bb_graph_is_copy(graph)) return false;
  const bb_node *in = bb_node_get(graph, graph->input[0]);
  const bb_node *out = bb_node_get(graph, graph->output[0]);
  const bb_access *access = in->access;
  const bb_type *type = in->out[0].type;
  if (!access || access->joined == BB_NO_DIM || (out->access && out->access->joined != BB_NO_DIM))
    return false;
  for (uint32_t p = 0; p < access->count; p++) {
    bb_piece piece = stretch_of(b, access, &p);
    bool covered;
    bb_build_value to;
    if (!output_part(b, out, type, access->joined, &piece, &to))
      bb_build_refuse(b, out, "an output without a place for every element");
    bb_build_value from = piece_window(b, in, type, &piece, access->joined, false, &covered);
    bb_nest nest = {tie, is_worth_threads(b, type, access->joined, &piece), access->joined,
                    bb_index_number(b, piece.length)};
    bb_value_copy(b, in, &to, &from, &nest);
  }
  return true;
}

/* --- run-time extents --- */

static void add_extent(bb_build *b, const bb_extent *extent, uint32_t symbol) {
  for (uint32_t i = 0; i < b->extents; i++)
    if (b->extent[i] == extent && (extent || b->symbol[i] == symbol)) return;
  BB_GROW(b->arena, b->extent, b->extent_capacity, b->extents + 1u);
  BB_GROW(b->arena, b->symbol, b->symbol_capacity, b->extents + 1u);
  BB_GROW(b->arena, b->used, b->used_capacity, b->extents + 1u);
  b->used[b->extents] = symbol != BB_NONE && symbol >= BB_ROOM;
  b->extent[b->extents] = extent;
  b->symbol[b->extents++] = symbol;
  bb_tile_add_variable(b->tile, bb_arena_printf(b->arena, "e%u", b->extents - 1), true);
}

/* Of the arrays of one input or output, in the order in which they are met: equal kernels stay equal. */
static void add_rooms(bb_build *b, const bb_node *node) {
  const bb_schedule_options *options = b->sites.options;
  uint32_t count = node->access ? node->access->count : 1;
  for (uint32_t i = 0; options && options->room && i < count; i++) {
    const bb_room *room =
        &options->room[node->access ? node->access->piece[i].source : node->tensor];
    if (room->given) add_extent(b, NULL, BB_ROOM + room->number);
  }
}

/* Run-time extents of the program's dims, its scalars, and how much room arrays have come before all
 * loops. */
void bb_schedule_extents(bb_build *b, const bb_graph *graph) {
  for (uint32_t d = 0; d < b->program->dims; d++) {
    const bb_extent *extent = b->program->dim[d].extent;
    if (bb_extent_value(extent) < 0) add_extent(b, extent, BB_NONE);
  }
  for (uint32_t s = 0; s < b->program->symbols; s++) add_extent(b, NULL, s);
  for (uint32_t i = 0; i < graph->ninputs; i++) add_rooms(b, bb_node_get(graph, graph->input[i]));
  for (uint32_t i = 0; i < graph->noutputs; i++) add_rooms(b, bb_node_get(graph, graph->output[i]));
}
