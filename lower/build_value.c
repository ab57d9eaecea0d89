/* build_value.c - values of the scheduler: windows on views, tiles loaded from them and stored, and
 * what stands in tiles beyond the extents. */
#include "build.h"

#include <string.h>

/* --- elements of lists --- */

bb_tile_index bb_window_start(bb_build *b, const bb_window *window, uint32_t axis) {
  bb_tile_index at = window->at[axis];
  const struct bb_window_reach *reach = window->pad ? &window->pad->axis[axis] : NULL;
  if (!reach || !reach->from) return at;
  if (reach->parts == 1) return bb_index_add(b, at, reach->from);
  bb_tile_index parts = bb_index_number(b, reach->parts);
  bb_tile_index whole = bb_expr_make(b->program, BB_X_DIV, reach->from, parts, NULL);
  if (!reach->rest) return bb_index_add(b, at, whole);
  whole = bb_expr_make(b->program, BB_X_MUL, whole, parts, NULL);
  return bb_index_add(b, at, bb_expr_make(b->program, BB_X_SUB, reach->from, whole, NULL));
}

/* The element of a level is known: places and taps along padded axes. */
static bb_window_pad *pad_element(bb_build *b, const bb_window_pad *pad, uint32_t rank,
                                  uint8_t level, const bb_build_loop *loop) {
  bb_window_pad *made = BB_NEW(b->arena, bb_window_pad, 1);
  *made = *pad;
  for (uint32_t i = 0; i < rank; i++)
    for (uint32_t k = 0; k < 2 && made->axis[i].from; k++) {
      struct bb_window_reach *reach = &made->axis[i];
      if (reach->slot[k] == level) {
        bb_tile_index far = bb_index_times(b, bb_index_number(b, reach->by[k]), loop->element);
        reach->from = bb_index_add(b, reach->from, far);
        reach->slot[k] = BB_SLOT_NONE;
      } else if (reach->slot[k] < BB_SLOT_COL && reach->slot[k] > level) {
        reach->slot[k]--;
      }
    }
  return made;
}

bb_build_value bb_value_element(bb_build *b, const bb_node *node, const bb_build_value *list,
                                uint32_t level, const bb_build_loop *loop) {
  bb_build_value made = *list;
  if (list->kind != BB_BUILD_WINDOW) bb_build_refuse(b, node, "a list that lies nowhere");
  bb_axis axis = list->type->level[level].axis;
  made.type = bb_type_element(b->program, list->type, level);
  if (axis == BB_AXIS_ROW) made.row = loop;
  if (axis == BB_AXIS_COL) made.col = loop;
  uint8_t taken = axis == BB_AXIS_ROW   ? BB_SLOT_ROW
                  : axis == BB_AXIS_COL ? BB_SLOT_COL
                                        : (uint8_t)level;
  for (uint32_t i = 0; i < b->tile->view[made.window.view].rank; i++) {
    uint8_t *slot = &made.window.slot[i];
    if (*slot == taken) {
      bb_tile_index by = axis == BB_AXIS_NONE ? loop->element : loop->start;
      made.window.at[i] = bb_index_add(b, made.window.at[i], by);
      if (axis == BB_AXIS_NONE) *slot = BB_SLOT_NONE;
    } else if (*slot<BB_SLOT_COL && * slot> level) {
      --*slot;
    }
  }
  if (made.window.pad && axis == BB_AXIS_NONE)
    made.window.pad =
        pad_element(b, made.window.pad, b->tile->view[made.window.view].rank, taken, loop);
  return made;
}

/* --- scratch memory --- */

void bb_value_know_cuts(bb_build_value *list, const bb_build_value *from) {
  bool row = true, col = true;
  for (uint32_t i = 0; i < list->type->rank; i++) {
    row &= list->type->level[i].axis != BB_AXIS_ROW;
    col &= list->type->level[i].axis != BB_AXIS_COL;
  }
  if (row) list->row = from->row;
  if (col) list->col = from->col;
}

/* The slot of a type's level. */
static uint8_t slot_of_level(const bb_type *type, uint32_t level) {
  bb_axis axis = type->level[level].axis;
  return axis == BB_AXIS_ROW ? BB_SLOT_ROW : axis == BB_AXIS_COL ? BB_SLOT_COL : (uint8_t)level;
}

/* One axis more, of a level's elements or, where they are cut into blocks elsewhere, of the blocks. */
static void add_level(bb_build *b, const bb_type *type, uint32_t level, uint32_t tie,
                      bb_tile_view *view, bb_build_value *value) {
  bb_tile_index extent = bb_index_extent(b, type->level[level].dim);
  int64_t block = bb_site_block(&b->sites, tie);
  if (type->level[level].axis == BB_AXIS_NONE && block > 1) {
    bb_tile_index more = bb_index_add(b, extent, bb_index_number(b, block - 1));
    extent = bb_expr_make(b->program, BB_X_DIV, more, bb_index_number(b, block), NULL);
  }
  view->extent[view->rank] = extent;
  value->window.slot[view->rank] = slot_of_level(type, level);
  value->window.at[view->rank++] = bb_index_number(b, 0);
}

bb_build_value bb_value_scratch(bb_build *b, const bb_type *type, const uint32_t *tie) {
  bb_build_value value = {.type = type, .kind = BB_BUILD_WINDOW, .depth = b->depth};
  bb_tile_view view = {.name = bb_arena_printf(b->arena, "s%u", b->tile->views),
                       .dtype = type->item.dtype,
                       .written = true,
                       .scratch = true};
  const bb_schedule_options *o = b->sites.options;
  static const bb_axis in_turn[] = {BB_AXIS_NONE, BB_AXIS_ROW, BB_AXIS_COL};
  bool whole[] = {false, type->item.row != BB_NO_DIM, type->item.col != BB_NO_DIM}; /* in turn */
  for (uint32_t i = 0; i < type->rank; i++) {
    whole[1] &= type->level[i].axis != BB_AXIS_ROW;
    whole[2] &= type->level[i].axis != BB_AXIS_COL;
  }
  if (type->rank + whole[1] + whole[2] > BB_TILE_RANK)
    bb_build_refuse(b, NULL, "a list of too many levels");
  /* Items lie whole, side by side, row after row; for the passes behind a raw program as the levels go. */
  bool raw = o && o->raw;
  for (uint32_t i = 0; raw && i < type->rank; i++) add_level(b, type, i, tie[i], &view, &value);
  for (uint32_t turn = 0; turn < 3; turn++) {
    for (uint32_t i = 0; !raw && i < type->rank; i++)
      if (type->level[i].axis == in_turn[turn]) add_level(b, type, i, tie[i], &view, &value);
    if (!whole[turn]) continue;
    /* An axis of the item that no level cuts is as long as the block of the loop around, which is known
     * once something is stored: see give_ranges(). */
    view.extent[view.rank] = bb_index_number(b, 0);
    value.window.slot[view.rank] = turn == 2 ? BB_SLOT_COL : BB_SLOT_ROW;
    value.window.at[view.rank++] = bb_index_number(b, 0);
  }
  if (view.rank == 0) { /* a single element */
    view.extent[view.rank] = bb_index_number(b, 1);
    value.window.slot[view.rank] = BB_SLOT_NONE;
    value.window.at[view.rank++] = bb_index_number(b, 0);
  }
  value.window.view = bb_tile_add_view(b->tile, &view);
  BB_GROW(b->arena, b->argument, b->argument_capacity, b->tile->views);
  b->argument[value.window.view] = (bb_kernel_argument){BB_NONE, NULL};
  return value;
}

/* --- loads and stores --- */

static bool same_window(bb_build *b, const bb_window *x, const bb_window *y) {
  if (x->view != y->view) return false;
  for (uint32_t i = 0; i < b->tile->view[x->view].rank; i++)
    if (x->slot[i] != y->slot[i] || bb_window_start(b, x, i) != bb_window_start(b, y, i))
      return false;
  return true;
}

bool bb_value_same_place(bb_build *b, const bb_build_value *x, const bb_build_value *y) {
  return x->kind == BB_BUILD_WINDOW && y->kind == BB_BUILD_WINDOW &&
         same_window(b, &x->window, &y->window);
}

static void know_extent(bb_build *b, uint32_t view, uint32_t axis, const bb_build_loop *loop) {
  bb_tile_view *v = &b->tile->view[view];
  bool unknown = v->scratch && v->extent[axis]->op == BB_X_CONST && v->extent[axis]->number == 0;
  if (unknown && loop) v->extent[axis] = bb_index_number(b, loop->block);
}

static void give_ranges(bb_build *b, const bb_build_value *value, bb_tile_stmt *stmt) {
  stmt->view = value->window.view;
  for (uint32_t i = 0; i < b->tile->view[stmt->view].rank; i++) {
    if (value->window.slot[i] == BB_SLOT_ROW) know_extent(b, stmt->view, i, value->row);
    if (value->window.slot[i] == BB_SLOT_COL) know_extent(b, stmt->view, i, value->col);
  }
  for (uint32_t i = 0; i < b->tile->view[stmt->view].rank; i++) {
    uint8_t slot = value->window.slot[i];
    bb_tile_range *range = &stmt->range[i];
    range->start = bb_window_start(b, &value->window, i);
    if ((slot == BB_SLOT_ROW && !value->row) || (slot == BB_SLOT_COL && !value->col))
      bb_build_refuse(b, NULL, "an item with an axis that no loop cuts");
    if (slot == BB_SLOT_ROW)
      *range = (bb_tile_range){range->start, (uint32_t)value->row->block, BB_AXIS_ROW};
    if (slot == BB_SLOT_COL)
      *range = (bb_tile_range){range->start, (uint32_t)value->col->block, BB_AXIS_COL};
  }
}

static const bb_expr *both(const bb_build *b, const bb_expr *x, const bb_expr *y) {
  return x && y && x != y ? bb_expr_make(b->program, BB_X_AND, x, y, NULL) : x ? x : y;
}

/* A condition that holds where the loops around a value's window are not empty; NULL: always. */
static const bb_expr *is_there(bb_build *b, const bb_build_value *value) {
  const bb_expr *there = NULL;
  for (uint32_t i = 0; i < b->tile->view[value->window.view].rank; i++)
    there = both(b, there, bb_build_element_is_there(b, bb_window_start(b, &value->window, i)));
  return there;
}

static void check_item(bb_build *b, const bb_node *node, const bb_build_value *value) {
  const bb_item *item = &value->type->item;
  if (value->type->rank) bb_build_refuse(b, node, "a list where an item is wanted");
  if ((item->row != BB_NO_DIM && !value->row) || (item->col != BB_NO_DIM && !value->col))
    bb_build_refuse(b, node, "an item with an axis that no loop cuts");
}

static bool has_slot(const bb_build *b, const bb_build_value *value, uint8_t slot) {
  for (uint32_t i = 0; i < b->tile->view[value->window.view].rank; i++)
    if (value->window.slot[i] == slot) return true;
  return false;
}

/* One block may hold the extent in two loops, and be larger in one of them. */
static bool same_size(const bb_build *b, uint32_t tile, const bb_build_loop *row,
                      const bb_build_loop *col) {
  const bb_tile *t = &b->tile->tile[tile];
  return t->rows == (row ? row->block : 0) && t->cols == (col ? col->block : 0);
}

/* What a loop that is empty has no element of is not read: zeros stand there. */
static bb_tile_stmt *load_stmt(bb_build *b, const bb_build_value *value, uint32_t tile,
                               uint32_t depth) {
  const bb_expr *there = is_there(b, value);
  if (!there) return bb_build_stmt(b, depth, BB_TILE_LOAD);
  bb_build_constant(b, tile, depth, 0);
  bb_tile_stmt *when = bb_build_stmt(b, depth, BB_TILE_WHEN);
  when->expr = there;
  return bb_tile_append(b->tile, &when->body, BB_TILE_LOAD);
}

/* What stands beyond an extent is the fill where the axis is all of the array's, and not known where windows reach over its end. */
static void know_pad(const bb_build *b, const bb_window *window, bb_tile_fact *fact) {
  fact->chosen = true;
  fact->load->pad = fact->fill[0] = fact->fill[1] = window->pad->fill;
  for (uint32_t i = 0; i < b->tile->view[window->view].rank; i++) {
    if (!window->pad->axis[i].from) continue;
    if (window->slot[i] == BB_SLOT_ROW) fact->known[0] = false;
    if (window->slot[i] == BB_SLOT_COL) fact->known[1] = false;
  }
}

static uint32_t load(bb_build *b, const bb_build_value *value) {
  bool has_row = has_slot(b, value, BB_SLOT_ROW), has_col = has_slot(b, value, BB_SLOT_COL);
  const bb_build_loop *row = has_row ? value->row : NULL, *col = has_col ? value->col : NULL;
  uint32_t depth = value->depth;
  for (uint32_t i = 0; i < b->tile->view[value->window.view].rank; i++) {
    uint32_t of_index = bb_build_index_depth(b, bb_window_start(b, &value->window, i));
    if (of_index > depth) depth = of_index;
  }
  depth = bb_build_place(b, depth);
  for (uint32_t d = b->floor; d <= depth; d++) {
    bb_build_frame *frame = &b->frame[d];
    for (uint32_t i = 0; i < frame->loads; i++)
      if (same_window(b, &frame->load[i].window, &value->window) &&
          same_size(b, frame->load[i].tile, row, col))
        return frame->load[i].tile;
  }
  uint32_t tile = bb_build_tile(b, value->type->item.dtype, row, col, depth);
  bb_tile_stmt *stmt = load_stmt(b, value, tile, depth);
  stmt->result = tile;
  give_ranges(b, value, stmt);
  bb_tile_fact *fact = &b->fact[tile];
  fact->load = stmt;
  fact->known[0] = fact->known[1] = true;
  if (value->window.pad) know_pad(b, &value->window, fact);
  bb_build_frame *frame = &b->frame[depth];
  BB_GROW(b->arena, frame->load, frame->load_capacity, frame->loads + 1u);
  frame->load[frame->loads].window = value->window;
  frame->load[frame->loads++].tile = tile;
  return tile;
}

uint32_t bb_value_tile(bb_build *b, const bb_node *node, const bb_build_value *value) {
  check_item(b, node, value);
  if (value->kind == BB_BUILD_TILE) return value->tile;
  if (value->kind != BB_BUILD_WINDOW) bb_build_refuse(b, node, "a value that is not there yet");
  uint32_t tile = load(b, value);
  const bb_tile_fact *fact = &b->fact[tile];
  if (fact->row == value->row && fact->col == value->col) return tile;
  /* The view repeats along an axis that it lacks. */
  uint32_t wide = bb_build_tile(b, value->type->item.dtype, value->row, value->col, b->depth);
  bb_build_map_into(b, wide, b->depth, bb_expr_arg(b->program, value->type->item.dtype, 0), 1,
                    &tile);
  return wide;
}

/* What is known of a view's memory holds no more once something is stored there. */
static void forget_loads(bb_build *b, uint32_t view) {
  for (uint32_t d = 0; d <= b->depth; d++) {
    bb_build_frame *frame = &b->frame[d];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < frame->loads; i++)
      if (frame->load[i].window.view != view) frame->load[kept++] = frame->load[i];
    frame->loads = kept;
  }
}

/* By the first of the iterations that all store alike, and not where a loop is empty. */
static bb_tile_stmt *store_stmt(bb_build *b, const bb_build_value *where, uint32_t depth) {
  const bb_expr *when = is_there(b, where);
  for (uint32_t i = 0; i < b->guards; i++) {
    if (b->guard[i].view != where->window.view) continue;
    const bb_expr *at = bb_expr_arg(b->program, BB_I64, b->guard[i].loop->variable);
    when = both(b, when, bb_expr_make(b->program, BB_X_EQ, at, bb_index_number(b, 0), NULL));
  }
  if (!when) return bb_build_stmt(b, depth, BB_TILE_STORE);
  bb_tile_stmt *stmt = bb_build_stmt(b, depth, BB_TILE_WHEN);
  stmt->expr = when;
  return bb_tile_append(b->tile, &stmt->body, BB_TILE_STORE);
}

void bb_value_store(bb_build *b, const bb_build_value *where, uint32_t tile, uint32_t depth) {
  bb_tile_stmt *stmt = store_stmt(b, where, depth);
  stmt->operands = 1;
  stmt->operand[0] = tile;
  give_ranges(b, where, stmt);
  forget_loads(b, stmt->view);
}

/* --- beyond the extents --- */

/* Is the place inside the extent along an axis? */
static const bb_expr *inside(bb_build *b, const bb_build_loop *loop, bb_axis axis) {
  const bb_expr *at = bb_expr_coord(b->program, axis == BB_AXIS_ROW ? BB_COORD_ROW : BB_COORD_COL);
  const bb_expr *limit =
      loop->limit->op == BB_X_CONST
          ? loop->limit
          : bb_expr_arg(b->program, BB_I64, BB_TILE_VARIABLE + loop->limit->index);
  return bb_expr_make(b->program, BB_X_LT, at, limit, NULL);
}

static bool same_number(double x, double y) {
  return memcmp(&x, &y, sizeof x) == 0 || (x == 0 && y == 0);
}

static void note_fill(bb_tile_fact *fact, uint32_t axis, double fill) {
  uint32_t other = 1 - axis;
  fact->known[axis] = true;
  fact->fill[axis] = fill;
  fact->known[other] &= same_number(fact->fill[other], fill);
}

uint32_t bb_tile_filled(bb_build *b, uint32_t tile, bb_axis axis, double fill) {
  bb_tile_fact *fact = &b->fact[tile];
  const bb_build_loop *loop = axis == BB_AXIS_ROW ? fact->row : fact->col;
  uint32_t which = axis == BB_AXIS_ROW ? 0 : 1;
  bb_dtype dtype = b->tile->tile[tile].dtype;
  if (!loop || loop->clean) return tile;
  fill = bb_monoid_empty_held(dtype, fill);
  bool stands = fact->known[which] && same_number(fact->fill[which], fill);
  bool fresh = !fact->chosen;
  fact->chosen = true;
  if (stands) return tile;
  if (fact->load && fresh) {
    fact->fill[0] = fact->fill[1] = fact->load->pad = fill;
    return tile;
  }
  const bb_expr *expr =
      bb_expr_make(b->program, BB_X_SELECT, inside(b, loop, axis),
                   bb_expr_arg(b->program, dtype, 0), bb_expr_const(b->program, dtype, fill));
  /* In place, unless somebody wants another filling, or the tile is a view's. */
  uint32_t result = tile, depth = fact->depth;
  if (fact->load || fact->known[which])
    result = bb_build_tile(b, dtype, fact->row, fact->col, depth);
  bb_build_map_into(b, result, depth, expr, 1, &tile);
  b->fact[result].chosen = true;
  note_fill(&b->fact[result], which, fill);
  return result;
}

/* --- every item of some values --- */

typedef struct each {
  const bb_node *node;
  bb_item_function *function;
  void *user;
  uint32_t count;
} each;

enum { MOST_VALUES = 66 };

/* nest.parallel: the loops around are spread, or there are none. */
static void each_level(bb_build *b, const each *e, bb_nest nest, const bb_build_value *value) {
  const bb_type *type = value[0].type;
  if (type->rank == 0) {
    e->function(b, e->user, e->count, value);
    return;
  }
  bb_dim dim = type->level[0].dim;
  bb_loop_options options = {.block = bb_site_block(&b->sites, nest.tie[0])};
  options.counts = type->level[0].axis == BB_AXIS_NONE && options.block > 1;
  options.parallel = options.spread = nest.parallel;
  if (dim == nest.joined) {
    options.length = nest.length;
    nest.joined = BB_NO_DIM;
  }
  bb_build_loop *loop = bb_build_begin(b, dim, &options);
  uint32_t floor = b->floor;
  if (options.spread) b->floor = b->depth;
  bb_build_value element[MOST_VALUES];
  for (uint32_t i = 0; i < e->count; i++)
    element[i] = bb_value_element(b, e->node, &value[i], 0, loop);
  nest.tie++;
  nest.parallel &= b->sites.options && b->sites.options->tasks;
  each_level(b, e, nest, element);
  bb_build_end(b, loop, &options);
  b->floor = floor;
}

void bb_each_item(bb_build *b, const bb_node *node, uint32_t count, const bb_build_value *value,
                  const bb_nest *nest, bb_item_function *function, void *user) {
  if (count > MOST_VALUES) bb_build_refuse(b, node, "too many values");
  bb_nest first = *nest;
  first.parallel &= b->depth == 0;
  each_level(b, &(each){node, function, user, count}, first, value);
}

static void copy_item(bb_build *b, void *user, uint32_t count, const bb_build_value *item) {
  (void)count;
  bb_value_store(b, &item[0], bb_value_tile(b, user, &item[1]), b->depth);
}

void bb_value_copy(bb_build *b, const bb_node *node, const bb_build_value *to,
                   const bb_build_value *from, const bb_nest *nest) {
  bb_build_value both[2] = {*to, *from};
  bb_each_item(b, node, 2, both, nest, copy_item, (void *)node);
}
