/* gpu_few.c - results of few rows: a loop over what is folded, spread over warps and over the blocks of a
 * cluster, each with a part that is merged at the end.
 *
 * A product of eight rows would leave most of a warp group idle.  So the program is turned: every tile lies
 * transposed, c = a b becomes c' = b' a', and what was folded over columns is folded over rows, of which a
 * warp's product has 16.  Each warp copies for itself.
 *
 *   serial n = 0 to N step 16 { ... }    becomes
 *   parallel split { parallel warp { begin; serial n = of this split and warp { ... } } } merged; end
 *
 * Where all products of the loop are summed and their operands loaded, as they are where what is contracted is what
 * is folded, a warp group makes them from shared memory: operands lie as memory does, only results are turned,
 * and vectors that the loop sums beside them are, behind it.
 */
#include "gpu_parts.h"

#include <math.h>

/* The blocks that fill the processors, one each: with more, each has less of its memory's time and all end later. */
enum { BLOCKS = 132, MOST_SPLITS = 8 };
enum { WARPS = 4, SPLIT_ROWS = 8, SHARED_BYTES = 100 * 1024 };
/* By warp groups. */
enum { GROUP_BYTES = 200 * 1024, MOST_BUFFERS = 10, COPIER_REGISTERS = 40 };

/* --- turning --- */

static const bb_expr *turn_leaf(void *user, const bb_expr *leaf) {
  bb_program *home = user;
  if (leaf->op != BB_X_COORD || leaf->index > BB_COORD_COL) return leaf;
  return bb_expr_coord(home, leaf->index == BB_COORD_ROW ? BB_COORD_COL : BB_COORD_ROW);
}

static bb_axis turned(bb_axis axis) {
  return axis == BB_AXIS_ROW ? BB_AXIS_COL : axis == BB_AXIS_COL ? BB_AXIS_ROW : axis;
}

typedef struct turning {
  bb_tile_program *p;
  bool *operand; /* by tile: loaded for products, and left as it lies */
} turning;

static void turn_stmt(void *user, bb_tile_body *body, uint32_t at) {
  const turning *t = user;
  bb_tile_stmt *s = body->stmt[at];
  bool memory = s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE;
  uint32_t held = s->kind == BB_TILE_STORE ? s->operand[0] : s->result;
  for (uint32_t i = 0; memory && !t->operand[held] && i < t->p->view[s->view].rank; i++)
    s->range[i].axis = turned(s->range[i].axis);
  if (s->kind == BB_TILE_FOLD || s->kind == BB_TILE_SCAN) s->axis = turned(s->axis);
  if (s->kind == BB_TILE_MAP || s->kind == BB_TILE_ANY)
    s->expr = bb_expr_map_leaves(t->p->home, s->expr, turn_leaf, t->p->home);
  bb_tile_index row = s->at[0];
  s->at[0] = s->at[1];
  s->at[1] = row;
  if (s->kind != BB_TILE_DOT) return;
  uint32_t left = s->operand[0];
  bool flip = s->transposed[0] != t->operand[left];
  s->operand[0] = s->operand[1];
  s->transposed[0] = s->transposed[1] != t->operand[s->operand[0]];
  s->operand[1] = left;
  s->transposed[1] = flip;
}

static void find_operand(void *user, bb_tile_body *body, uint32_t at) {
  const turning *t = user;
  if (body->stmt[at]->kind == BB_TILE_LOAD) t->operand[body->stmt[at]->result] = true;
}

static void find_other_reader(void *user, bb_tile_body *body, uint32_t at) {
  const turning *t = user;
  const bb_tile_stmt *s = body->stmt[at];
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->kind != BB_TILE_DOT) t->operand[s->operand[i]] = false;
}

static void turn(bb_gpu *g) {
  turning t = {g->p, BB_NEW(g->p->home->arena, bool, g->p->tiles + 1)};
  bb_tile_walk(&g->p->body, find_operand, &t);
  bb_tile_walk(&g->p->body, find_other_reader, &t);
  for (uint32_t i = 0; i < g->p->tiles; i++) {
    bb_tile *tile = &g->p->tile[i];
    uint32_t rows = tile->rows;
    if (t.operand[i]) continue;
    tile->rows = tile->cols;
    tile->cols = rows;
  }
  bb_tile_walk(&g->p->body, turn_stmt, &t);
}

/* --- spreading --- */

/* How many parts: as many as processors are left for, but of long loops alone. */
static bb_tile_index splits(const bb_parts *q, bb_tile_index length) {
  bb_tile_index blocks = bb_parts_make(q, BB_X_MAX, bb_parts_grid_blocks(q), bb_parts_number(q, 1));
  bb_tile_index times =
      bb_parts_make(q, BB_X_DIV, bb_parts_make(q, BB_X_SUB, length, bb_parts_number(q, 1)),
                    bb_parts_make(q, BB_X_MUL, bb_parts_number(q, SPLIT_ROWS), blocks));
  bb_tile_index most =
      bb_parts_make(q, BB_X_MIN, bb_parts_number(q, MOST_SPLITS),
                    bb_parts_make(q, BB_X_DIV, bb_parts_number(q, BLOCKS), blocks));
  bb_tile_index count = bb_parts_make(q, BB_X_MIN, most, bb_parts_make(q, BB_X_MUL, most, times));
  return bb_parts_make(q, BB_X_MAX, count, bb_parts_number(q, 1));
}

/* The loop takes blocks first + warp, first + warp + WARPS, ... of its split. */
static void spread(bb_parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_loop *serial = q->core->stmt[q->loop]->loop;
  bb_tile_index step = serial->step, to = serial->stretch[0].to;
  bb_parts_leave(q);
  bb_tile_index blocks = bb_parts_make(
      q, BB_X_DIV, bb_parts_make(q, BB_X_ADD, to, bb_parts_number(q, (int64_t)step->number - 1)),
      step);
  bb_tile_index count = splits(q, to);
  bb_tile_stmt *split = bb_parts_loop(q, count, BB_SPREAD_CLUSTER);
  bb_tile_stmt *warp = bb_parts_loop(q, bb_parts_number(q, WARPS), BB_SPREAD_WARPS);
  bb_tile_index i = bb_expr_arg(p->home, BB_I64, split->loop->variable);
  bb_tile_index w = bb_expr_arg(p->home, BB_I64, warp->loop->variable);
  bb_tile_index first = bb_parts_make(q, BB_X_DIV, bb_parts_make(q, BB_X_MUL, blocks, i), count);
  bb_tile_index end = bb_parts_make(
      q, BB_X_DIV,
      bb_parts_make(q, BB_X_MUL, blocks, bb_parts_make(q, BB_X_ADD, i, bb_parts_number(q, 1))),
      count);
  serial->stretch[0].from = bb_parts_make(q, BB_X_MUL, bb_parts_make(q, BB_X_ADD, first, w), step);
  serial->stretch[0].to = bb_parts_make(q, BB_X_MUL, end, step);
  serial->step = bb_parts_number(q, WARPS * (int64_t)step->number);
  bb_tile_body after = {0};
  for (uint32_t k = 0; k < q->core->count; k++) {
    bb_tile_push(p, k < q->inside ? &warp->loop->body : &after, q->core->stmt[k]);
  }
  bb_tile_push(p, &split->loop->body, warp);
  *q->core = (bb_tile_body){0};
  bb_tile_push(p, q->core, split);
  for (uint32_t k = 0; k < after.count; k++) bb_tile_push(p, q->core, after.stmt[k]);
  q->core = &warp->loop->body;
}

/* --- by a warp group --- */

static void swap_sides(bb_tile *tile) {
  uint32_t rows = tile->rows;
  tile->rows = tile->cols;
  tile->cols = rows;
}

static bool is_loaded(const bb_tile_body *body, uint32_t tile) {
  for (uint32_t i = 0; i < body->count; i++)
    if (body->stmt[i]->result == tile) return body->stmt[i]->kind == BB_TILE_LOAD;
  return false;
}

/* c += a b: c' += b' a'. */
static void turn_products(bb_parts *q, bool *turned) {
  bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_DOT) continue;
    uint32_t left = s->operand[0];
    bool flip = s->transposed[0];
    if (!s->accumulate || !is_loaded(body, left) || !is_loaded(body, s->operand[1]))
      bb_gpu_refuse(q->g, "a product of few rows that is no sum of loaded blocks");
    s->operand[0] = s->operand[1];
    s->transposed[0] = !s->transposed[1];
    s->operand[1] = left;
    s->transposed[1] = !flip;
    if (!turned[s->result]) swap_sides(&q->g->p->tile[s->result]);
    turned[s->result] = true;
  }
}

static bool is_part(const bb_parts *q, uint32_t tile) {
  for (uint32_t k = 0; k < q->count; k++)
    if (q->tile[k] == tile) return true;
  return false;
}

/* A vector along rows that the loop sums, along columns: for what stands behind the loop. */
static uint32_t turned_vector(bb_parts *q, uint32_t vector, uint32_t *at) {
  bb_tile_program *p = q->g->p;
  uint32_t made = bb_tile_like(p, vector, p->tile[vector].dtype);
  bb_tile_stmt *s = bb_tile_stmt_new(p, BB_TILE_TRANSPOSE);
  if (p->tile[vector].cols) bb_gpu_refuse(q->g, "a sum along columns of few rows");
  swap_sides(&p->tile[made]);
  p->tile[made].partial = false;
  s->result = made;
  s->operand[0] = vector;
  s->operands = 1;
  bb_tile_insert(p, q->core, (*at)++, s);
  return made;
}

/* What follows the loop, all tiles turned; a vector that it transposes lies right already. */
static void turn_end(bb_parts *q, bool *turned) {
  bb_tile_program *p = q->g->p;
  bb_arena *arena = p->home->arena;
  uint32_t begin = q->loop + 1, tiles = p->tiles;
  turning t = {p, BB_NEW(arena, bool, 2 * tiles + BB_TILE_OPERANDS)};
  for (uint32_t k = 0; k < q->count; k++) {
    uint32_t v = q->tile[k], made = BB_NONE;
    for (uint32_t i = begin; i < q->core->count && !turned[v]; i++) {
      bb_tile_stmt *s = q->core->stmt[i];
      if (!bb_tile_reads(s, v) || s->kind == BB_TILE_TRANSPOSE) continue;
      uint32_t at = begin;
      if (made == BB_NONE) {
        made = turned_vector(q, v, &at);
        begin = at;
        i++;
      }
      bb_tile_body one = {1, &s};
      bb_tile_rename(&one, v, made);
    }
  }
  for (uint32_t i = begin; i < q->core->count; i++) {
    bb_tile_stmt *s = q->core->stmt[i];
    if (s->loop || s->body.count || s->kind == BB_TILE_DOT || s->kind == BB_TILE_SCAN)
      bb_gpu_refuse(q->g, "more than maps and stores behind a loop of few rows");
    if (s->kind == BB_TILE_TRANSPOSE && is_part(q, s->operand[0])) {
      s->kind = BB_TILE_MAP;
      bb_tile_set(p, s, bb_tile_name(p, s->operand[0]));
    } else {
      turn_stmt(&t, q->core, i);
    }
    if (s->result != BB_NONE && s->result < tiles && !turned[s->result]) {
      swap_sides(&p->tile[s->result]);
      turned[s->result] = true;
    }
  }
}

static bool is_plain_widening(const bb_tile_stmt *s) {
  return s->kind == BB_TILE_MAP && s->operands == 1 && s->expr->op == BB_X_CAST &&
         s->expr->a[0]->op == BB_X_ARG;
}

/* What maps of the loop read of a loaded block comes to registers once, in f32, and they read it there. */
static void widen_once(bb_parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  for (uint32_t i = 0; i < body->count; i++) {
    uint32_t loaded = body->stmt[i]->result, wide = BB_NONE;
    if (body->stmt[i]->kind != BB_TILE_LOAD) continue;
    for (uint32_t k = i + 1; k < body->count; k++) {
      bb_tile_stmt *s = body->stmt[k];
      if (s->kind == BB_TILE_DOT || !bb_tile_reads(s, loaded)) continue;
      if (s->kind != BB_TILE_MAP) bb_gpu_refuse(q->g, "a loaded block that is folded as it is");
      if (wide == BB_NONE && is_plain_widening(s)) {
        wide = s->result;
        continue;
      }
      if (wide == BB_NONE) {
        bb_tile_stmt *made = bb_tile_stmt_new(p, BB_TILE_MAP);
        made->result = wide = bb_tile_like(p, loaded, BB_F32);
        bb_tile_set(p, made, bb_expr_cast(p->home, BB_F32, bb_tile_name(p, loaded)));
        bb_tile_insert(p, body, k++, made);
      }
      bb_tile_set(p, s, bb_tile_replace(p, bb_tile_named(p, s), loaded, bb_tile_name(p, wide)));
    }
  }
}

static void turn_results(bb_parts *q) {
  bool *turned = BB_NEW(q->g->p->home->arena, bool, q->g->p->tiles + 1);
  if (q->pivots) bb_gpu_refuse(q->g, "sums relative to a pivot");
  turn_products(q, turned);
  turn_end(q, turned);
  widen_once(q);
}

/* Iterations of the loop over the grid or of the serial one where its bounds are numbers, else 0. */
static int64_t trips_of(const bb_tile_loop *loop) {
  const bb_tile_stretch *s = &loop->stretch[0];
  if (!s->to || s->from->op != BB_X_CONST || s->to->op != BB_X_CONST ||
      loop->step->op != BB_X_CONST)
    return 0;
  return (int64_t)ceil((s->to->number - s->from->number) / loop->step->number);
}

/* Steps that a block makes of the loop that is about to be split, of few rows, where the weights' extents are numbers; else as many as
 * there may be buffers.  With no more buffers than that two blocks share a processor, and the next launch's bring their weights while
 * this one's compute. */
static uint32_t steps_of_block(const bb_parts *q) {
  int64_t steps = trips_of(q->core->stmt[q->loop]->loop), columns = 1;
  for (const bb_tile_body *body = &q->g->p->body; body != q->core;
       body = &body->stmt[0]->loop->body) {
    int64_t trips = trips_of(body->stmt[0]->loop);
    if (trips) columns *= trips;
  }
  int64_t parts = BLOCKS / columns < 1             ? 1
                  : BLOCKS / columns < MOST_SPLITS ? BLOCKS / columns
                                                   : MOST_SPLITS;
  int64_t each = (steps + parts - 1) / parts;
  return steps == 0 || each > MOST_BUFFERS ? MOST_BUFFERS : each < 2 ? 2 : (uint32_t)each;
}

static void place_for_group(bb_parts *q, uint32_t most) {
  bb_tile_program *p = q->g->p;
  bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  uint32_t bytes = 0, groups = 1;
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < body->count; i++) {
      if (body->stmt[i]->kind != BB_TILE_LOAD) continue;
      bb_tile *t = &p->tile[body->stmt[i]->result];
      t->place = BB_PLACE_SHARED;
      if (pass)
        t->buffers = GROUP_BYTES / bytes < most ? GROUP_BYTES / bytes : most;
      else
        bytes += t->rows * t->cols * (uint32_t)bb_dtype_bytes(t->dtype);
    }
  if (GROUP_BYTES / bytes < 2) bb_gpu_refuse(q->g, "blocks of few rows need more shared memory");
  for (uint32_t i = 0; i < body->count; i++)
    if (body->stmt[i]->kind == BB_TILE_DOT) groups = p->tile[body->stmt[i]->result].rows / 64;
  p->groups = groups;
  p->copier_registers = COPIER_REGISTERS;
}

/* --- the grid --- */

/* Bytes of the serial loop's loads that differ along a loop over the grid. */
static uint32_t bytes_along(const bb_parts *q, uint32_t variable) {
  const bb_tile_program *p = q->g->p;
  const bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_LOAD || !bb_tile_load_varies(p, s, variable)) continue;
    const bb_tile *t = &p->tile[s->result];
    bytes += t->rows * t->cols * (uint32_t)bb_dtype_bytes(t->dtype);
  }
  return bytes;
}

/* Neighbours over the grid have most of what they read in common: the inner one of its last two loops is the one along
 * which less differs. */
static void order_grid(bb_parts *q) {
  bb_tile_body *around = &q->g->p->body;
  if (around == q->core || &around->stmt[0]->loop->body == q->core) return;
  while (&around->stmt[0]->loop->body.stmt[0]->loop->body != q->core)
    around = &around->stmt[0]->loop->body;
  bb_tile_stmt *outer = around->stmt[0], *inner = outer->loop->body.stmt[0];
  const bb_tile_stretch *bounds = &inner->loop->stretch[0];
  if (bb_expr_uses_arg(bounds->from, outer->loop->variable) ||
      bb_expr_uses_arg(bounds->to, outer->loop->variable) ||
      bytes_along(q, outer->loop->variable) >= bytes_along(q, inner->loop->variable))
    return;
  bb_tile_body core = inner->loop->body;
  inner->loop->body = outer->loop->body;
  inner->loop->body.stmt[0] = outer;
  outer->loop->body = core;
  around->stmt[0] = inner;
  q->core = &outer->loop->body;
}

/* --- places --- */

/* Does a product read it?  What maps alone read, as masks, comes to their registers. */
static bool is_operand(const bb_tile_body *body, uint32_t tile) {
  for (uint32_t i = 0; i < body->count; i++)
    if (body->stmt[i]->kind == BB_TILE_DOT && bb_tile_reads(body->stmt[i], tile)) return true;
  return false;
}

static void place(bb_parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_body *body = NULL;
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < q->core->count; i++)
    if (q->core->stmt[i]->loop) body = &q->core->stmt[i]->loop->body;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_LOAD || !is_operand(body, s->result)) continue;
    bb_tile *t = &p->tile[s->result];
    t->place = BB_PLACE_SHARED;
    t->buffers = 2;
    bytes += WARPS * 2 * t->rows * t->cols * bb_dtype_bytes(t->dtype);
  }
  if (bytes > SHARED_BYTES) bb_gpu_refuse(q->g, "tiles of warps need more shared memory");
}

void bb_gpu_few(bb_gpu *g, bool by_group) {
  bb_parts q = {.g = g};
  bb_tile_body *core = &g->p->body;
  while (core->count == 1 && core->stmt[0]->loop && core->stmt[0]->loop->parallel)
    core = &core->stmt[0]->loop->body;
  q.core = core;
  while (q.loop < core->count && !core->stmt[q.loop]->loop) q.loop++;
  if (q.loop == core->count || core->stmt[q.loop]->loop->stretches != 1 ||
      core->stmt[q.loop]->loop->step->op != BB_X_CONST)
    bb_gpu_refuse(g, "few rows without a loop");
  if (!core->stmt[q.loop]->loop->commutes) bb_gpu_refuse(g, "a fold that keeps its order");
  bb_gpu_orient(g);
  bb_gpu_hoist(g, core, &q.loop);
  order_grid(&q);
  bb_parts_find(&q);
  if (by_group)
    turn_results(&q);
  else
    turn(g);
  bb_gpu_partials(g);
  bb_parts_settle(&q);
  bb_parts_turn(&q);
  if (by_group) {
    uint32_t buffers = steps_of_block(&q);
    bb_parts_split(&q, BLOCKS, MOST_SPLITS);
    place_for_group(&q, buffers);
  } else {
    spread(&q);
    place(&q);
  }
}
