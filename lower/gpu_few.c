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
#include "gpu.h"

#include "gpu_rolling.h"

#include <math.h>

enum { WARPS = 4, MOST_SPLITS = 8, SPLIT_ROWS = 8, SHARED_BYTES = 100 * 1024 };
/* By a group: the blocks that fill the processors, one each where a thread holds many registers, or two. */
enum { BLOCKS = 132, MOST_BUFFERS = 10, LIGHT = 64, COPIER_REGISTERS = 40, THREADS = 128 };

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
  const bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_LOAD) return;
  bool product = true;
  for (uint32_t i = 0; i < body->count; i++)
    for (uint32_t k = 0; k < body->stmt[i]->operands; k++)
      if (body->stmt[i]->operand[k] == s->result && body->stmt[i]->kind != BB_TILE_DOT)
        product = false;
  t->operand[s->result] = product;
}

static void turn(bb_gpu *g) {
  turning t = {g->p, BB_NEW(g->p->home->arena, bool, g->p->tiles + 1)};
  bb_tile_walk(&g->p->body, find_operand, &t);
  for (uint32_t i = 0; i < g->p->tiles; i++) {
    bb_tile *tile = &g->p->tile[i];
    uint32_t rows = tile->rows;
    if (t.operand[i]) continue;
    tile->rows = tile->cols;
    tile->cols = rows;
  }
  bb_tile_walk(&g->p->body, turn_stmt, &t);
}

/* --- parts that are merged --- */

typedef struct parts {
  bb_gpu *g;
  bb_tile_body *core;
  uint32_t loop; /* the serial loop's place in it */
  bb_rolling rolling;
  bool pivots; /* sums are relative to rolling.r */
  uint32_t count, tile[BB_TILE_OPERANDS];
  uint32_t inside; /* statements of the core that every part runs */
  const bb_tile_monoid *monoid;
} parts;

/* What the loop carries: the pivot, sums scaled with it, and sums of their own. */
static void find_parts(parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  q->pivots = bb_gpu_find_rolling(q->g, q->core, q->loop, &q->rolling);
  for (uint32_t t = 0; t < p->tiles; t++) {
    bool carried = false, written = false;
    for (uint32_t i = 0; i < body->count; i++) {
      if (!written) carried |= bb_tile_reads(body->stmt[i], t);
      written |= bb_tile_writes(body->stmt[i], t);
    }
    if (!carried || !written) continue;
    if (q->count == BB_TILE_OPERANDS) bb_gpu_refuse(q->g, "a loop that carries too many tiles");
    q->tile[q->count++] = t;
  }
  if (!q->count) bb_gpu_refuse(q->g, "a loop that carries nothing");
}

static bool is_scaled(const parts *q, uint32_t tile) {
  for (uint32_t k = 0; q->pivots && k < q->rolling.scales; k++)
    if (q->rolling.scaled[k] == tile) return true;
  return false;
}

/* Is a carried tile only added to? */
static bool is_sum(const parts *q, uint32_t tile) {
  const bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool writes = bb_tile_writes(s, tile), reads = bb_tile_reads(s, tile);
    if (!writes && reads) return false;
    if (!writes) continue;
    if (s->kind == BB_TILE_DOT && s->accumulate) continue;
    if (s->kind != BB_TILE_MAP) return false;
    const bb_expr *e = bb_tile_named(q->g->p, s);
    const bb_expr *own = bb_tile_name(q->g->p, tile);
    bool plain = e->op == BB_X_ADD && (e->a[0] == own) != (e->a[1] == own) &&
                 !bb_tile_names(e->a[e->a[0] == own ? 1 : 0], tile);
    if (!plain) return false;
  }
  return true;
}

/* The tuple of what a part leaves: (max, t a + t' a', t + t'). */
static const bb_tile_monoid *make_monoid(parts *q) {
  bb_tile_program *p = q->g->p;
  bb_program *home = p->home;
  bb_tile_monoid *m = BB_NEW(home->arena, bb_tile_monoid, 1);
  double *empty = BB_NEW(home->arena, double, BB_TILE_OPERANDS);
  const bb_expr **combine = BB_NEW(home->arena, const bb_expr *, BB_TILE_OPERANDS);
  uint32_t n = q->count, r = 0;
  while (q->pivots && r < n && q->tile[r] != q->rolling.r) r++;
  *m = (bb_tile_monoid){bb_arena_printf(home->arena, "m%u", p->monoids), n, empty, combine};
  const bb_expr *old[2] = {bb_expr_arg(home, BB_F32, r), bb_expr_arg(home, BB_F32, n + r)};
  const bb_expr *both = bb_expr_make(home, BB_X_MAX, old[0], old[1], NULL);
  for (uint32_t k = 0; k < n; k++) {
    const bb_expr *part[2] = {bb_expr_arg(home, BB_F32, k), bb_expr_arg(home, BB_F32, n + k)};
    if (q->pivots && k == r) {
      combine[k] = both;
      empty[k] = -INFINITY;
      continue;
    }
    if (!is_scaled(q, q->tile[k]) && !is_sum(q, q->tile[k]))
      bb_gpu_refuse(q->g, "a loop that carries what is no sum");
    for (uint32_t i = 0; i < 2 && is_scaled(q, q->tile[k]); i++) {
      const bb_expr *a = bb_tile_replace(p, q->rolling.factor, q->rolling.fresh, both);
      a = bb_tile_replace(p, a, q->rolling.r, old[i]);
      part[i] = bb_expr_make(home, BB_X_MUL, part[i], a, NULL);
    }
    combine[k] = bb_expr_make(home, BB_X_ADD, part[0], part[1], NULL);
  }
  bb_tile_add_monoid(p, m);
  return m;
}

/* --- spreading --- */

static bb_tile_index number(const parts *q, int64_t value) {
  return bb_expr_const(q->g->p->home, BB_I64, (double)value);
}

static bb_tile_index make(const parts *q, bb_expr_op op, bb_tile_index a, bb_tile_index b) {
  return bb_expr_make(q->g->p->home, op, a, b, NULL);
}

/* Iterations of the loops over the grid. */
static bb_tile_index grid_blocks(const parts *q) {
  bb_tile_index blocks = number(q, 1);
  for (bb_tile_body *body = &q->g->p->body; body != q->core; body = &body->stmt[0]->loop->body) {
    const bb_tile_loop *loop = body->stmt[0]->loop;
    bb_tile_index trips = make(q, BB_X_SUB, loop->stretch[0].to, loop->stretch[0].from);
    if (loop->step->op != BB_X_CONST || loop->step->number != 1)
      trips =
          make(q, BB_X_DIV, make(q, BB_X_ADD, trips, make(q, BB_X_SUB, loop->step, number(q, 1))),
               loop->step);
    blocks = blocks->op == BB_X_CONST ? trips : make(q, BB_X_MUL, blocks, trips);
  }
  return blocks;
}

/* How many parts: all splits where the grid alone leaves processors idle or its blocks are long. */
static bb_tile_index splits(const parts *q, bb_tile_index length) {
  bb_tile_index blocks = grid_blocks(q);
  bb_tile_index short_ones =
      make(q, BB_X_MAX, make(q, BB_X_MUL, number(q, SPLIT_ROWS), blocks), number(q, SPLIT_ROWS));
  bb_tile_index times = make(q, BB_X_DIV, make(q, BB_X_SUB, length, number(q, 1)), short_ones);
  bb_tile_index more = make(q, BB_X_MUL, number(q, MOST_SPLITS - 1), times);
  return make(q, BB_X_MIN, number(q, MOST_SPLITS), make(q, BB_X_ADD, number(q, 1), more));
}

static bb_tile_stmt *loop_over(parts *q, bb_tile_index to, bb_tile_spread spread) {
  bb_tile_program *p = q->g->p;
  bb_tile_stmt *s = bb_tile_stmt_new(p, BB_TILE_LOOP);
  *s->loop = (bb_tile_loop){.parallel = true, .spread = spread, .stretches = 1, .merge = q->monoid};
  s->loop->variable =
      bb_tile_add_variable(p, bb_arena_printf(p->home->arena, "i%u", p->variables), false);
  s->loop->step = number(q, 1);
  s->loop->stretch[0] = (bb_tile_stretch){number(q, 0), to};
  for (uint32_t k = 0; k < q->count; k++) s->loop->merged[k] = q->tile[k];
  return s;
}

/* The loop takes blocks first + warp, first + warp + WARPS, ... of its split. */
static void spread(parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_loop *serial = q->core->stmt[q->loop]->loop;
  bb_tile_index step = serial->step, to = serial->stretch[0].to;
  bb_tile_index blocks =
      make(q, BB_X_DIV, make(q, BB_X_ADD, to, number(q, (int64_t)step->number - 1)), step);
  bb_tile_index count = splits(q, to);
  bb_tile_stmt *split = loop_over(q, count, BB_SPREAD_CLUSTER);
  bb_tile_stmt *warp = loop_over(q, number(q, WARPS), BB_SPREAD_WARPS);
  bb_tile_index i = bb_expr_arg(p->home, BB_I64, split->loop->variable);
  bb_tile_index w = bb_expr_arg(p->home, BB_I64, warp->loop->variable);
  bb_tile_index first = make(q, BB_X_DIV, make(q, BB_X_MUL, blocks, i), count);
  bb_tile_index end =
      make(q, BB_X_DIV, make(q, BB_X_MUL, blocks, make(q, BB_X_ADD, i, number(q, 1))), count);
  serial->stretch[0].from = make(q, BB_X_MUL, make(q, BB_X_ADD, first, w), step);
  serial->stretch[0].to = make(q, BB_X_MUL, end, step);
  serial->step = number(q, WARPS * (int64_t)step->number);
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

/* Sums that lanes hold in parts are made whole before the merge, which then reads the whole ones. */
static void settle(parts *q) {
  bb_tile_program *p = q->g->p;
  bb_gpu_partials(q->g);
  for (uint32_t i = 0; i < q->core->count; i++) {
    bb_tile_stmt *s = q->core->stmt[i];
    if (!bb_tile_is_copy(s) || !p->tile[s->operand[0]].partial) continue;
    for (uint32_t k = 0; k < q->count; k++)
      if (q->tile[k] == s->operand[0]) q->tile[k] = s->result;
    q->inside = i + 1;
  }
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
static void turn_products(parts *q, bool *turned) {
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

static bool is_part(const parts *q, uint32_t tile) {
  for (uint32_t k = 0; k < q->count; k++)
    if (q->tile[k] == tile) return true;
  return false;
}

/* A vector along rows that the loop sums, along columns: for what stands behind the loop. */
static uint32_t turned_vector(parts *q, uint32_t vector, uint32_t *at) {
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
static void turn_end(parts *q, bool *turned) {
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
static void widen_once(parts *q) {
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

static void turn_results(parts *q) {
  bool *turned = BB_NEW(q->g->p->home->arena, bool, q->g->p->tiles + 1);
  if (q->pivots) bb_gpu_refuse(q->g, "sums relative to a pivot");
  turn_products(q, turned);
  turn_end(q, turned);
  widen_once(q);
}

/* Blocks that a processor has room for. */
static uint32_t together(const parts *q) {
  const bb_tile_program *p = q->g->p;
  uint32_t held = 0;
  for (uint32_t t = 0; t < p->tiles; t++)
    if (p->tile[t].place == BB_PLACE_REGISTERS && p->tile[t].dtype == BB_F32)
      held += p->tile[t].rows * p->tile[t].cols / THREADS;
  return held > LIGHT ? 1 : 2;
}

/* As many parts as leave all processors blocks. */
static void split_by_blocks(parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_loop *serial = q->core->stmt[q->loop]->loop;
  bb_tile_index step = serial->step, to = serial->stretch[0].to;
  bb_tile_index blocks =
      make(q, BB_X_DIV, make(q, BB_X_ADD, to, number(q, (int64_t)step->number - 1)), step);
  bb_tile_index each = make(q, BB_X_MAX, grid_blocks(q), number(q, 1));
  bb_tile_index count = make(q, BB_X_DIV, number(q, BLOCKS * together(q)), each);
  count = make(q, BB_X_MIN, number(q, MOST_SPLITS), make(q, BB_X_MAX, count, number(q, 1)));
  bb_tile_stmt *split = loop_over(q, count, BB_SPREAD_CLUSTER);
  bb_tile_index i = bb_expr_arg(p->home, BB_I64, split->loop->variable);
  bb_tile_index first = make(q, BB_X_DIV, make(q, BB_X_MUL, blocks, i), count);
  bb_tile_index end =
      make(q, BB_X_DIV, make(q, BB_X_MUL, blocks, make(q, BB_X_ADD, i, number(q, 1))), count);
  serial->stretch[0].from = make(q, BB_X_MUL, first, step);
  serial->stretch[0].to = make(q, BB_X_MUL, end, step);
  bb_tile_body after = {0};
  for (uint32_t k = 0; k < q->core->count; k++)
    bb_tile_push(p, k < q->inside ? &split->loop->body : &after, q->core->stmt[k]);
  *q->core = (bb_tile_body){0};
  bb_tile_push(p, q->core, split);
  for (uint32_t k = 0; k < after.count; k++) bb_tile_push(p, q->core, after.stmt[k]);
  q->core = &split->loop->body;
}

static void place_for_group(parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  uint32_t bytes = 0, room = 2 * SHARED_BYTES / together(q);
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < body->count; i++) {
      if (body->stmt[i]->kind != BB_TILE_LOAD) continue;
      bb_tile *t = &p->tile[body->stmt[i]->result];
      t->place = BB_PLACE_SHARED;
      if (pass)
        t->buffers = room / bytes < MOST_BUFFERS ? room / bytes : MOST_BUFFERS;
      else
        bytes += t->rows * t->cols * (uint32_t)bb_dtype_bytes(t->dtype);
    }
  if (room / bytes < 2) bb_gpu_refuse(q->g, "blocks of few rows need more shared memory");
  p->groups = 1;
  p->copier_registers = COPIER_REGISTERS;
}

/* --- places --- */

static void place(parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_body *body = NULL;
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < q->core->count; i++)
    if (q->core->stmt[i]->loop) body = &q->core->stmt[i]->loop->body;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_LOAD) continue;
    bb_tile *t = &p->tile[s->result];
    t->place = BB_PLACE_SHARED;
    t->buffers = 2;
    bytes += WARPS * 2 * t->rows * t->cols * bb_dtype_bytes(t->dtype);
  }
  if (bytes > SHARED_BYTES) bb_gpu_refuse(q->g, "tiles of warps need more shared memory");
}

void bb_gpu_few(bb_gpu *g, bool by_group) {
  parts q = {.g = g};
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
  find_parts(&q);
  q.monoid = make_monoid(&q);
  q.inside = q.loop + 1;
  if (by_group)
    turn_results(&q);
  else
    turn(g);
  settle(&q);
  if (by_group) {
    split_by_blocks(&q);
    place_for_group(&q);
  } else {
    spread(&q);
    place(&q);
  }
}
