/* gpu_side.c - products on their side: c = a b becomes c' = b' a', so that what a result has few rows of are columns of
 * what a warp group makes, of which there may be any eight; a group's rows are 64 whatever there are.
 *
 * A loop that sums products of loaded blocks keeps the operands as they lie in memory; only results are turned, and the vectors
 * that the loop sums beside them, behind it.
 */
#include "gpu_parts.h"

static void swap_sides(bb_tile *tile) {
  uint32_t rows = tile->rows;
  tile->rows = tile->cols;
  tile->cols = rows;
}

/* --- all tiles --- */

static const bb_expr *turn_leaf(void *user, const bb_expr *leaf) {
  bb_program *home = user;
  if (leaf->op != BB_X_COORD || leaf->index > BB_COORD_COL) return leaf;
  return bb_expr_coord(home, leaf->index == BB_COORD_ROW ? BB_COORD_COL : BB_COORD_ROW);
}

static bb_axis turned_axis(bb_axis axis) {
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
    s->range[i].axis = turned_axis(s->range[i].axis);
  if (s->kind == BB_TILE_FOLD || s->kind == BB_TILE_SCAN) s->axis = turned_axis(s->axis);
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

void bb_gpu_turn_all(bb_gpu *g) {
  turning t = {g->p, BB_NEW(g->p->home->arena, bool, g->p->tiles + 1)};
  bb_tile_walk(&g->p->body, find_operand, &t);
  bb_tile_walk(&g->p->body, find_other_reader, &t);
  for (uint32_t i = 0; i < g->p->tiles; i++) {
    if (!t.operand[i]) swap_sides(&g->p->tile[i]);
  }
  bb_tile_walk(&g->p->body, turn_stmt, &t);
}

/* --- results --- */

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

void bb_gpu_turn_results(bb_parts *q) {
  bool *turned = BB_NEW(q->g->p->home->arena, bool, q->g->p->tiles + 1);
  if (q->pivots) bb_gpu_refuse(q->g, "sums relative to a pivot");
  turn_products(q, turned);
  turn_end(q, turned);
  widen_once(q);
}

/* --- */

static bool is_between(const bb_tile_body *core, uint32_t from, uint32_t to, uint32_t tile) {
  for (uint32_t i = from; i < to; i++)
    if (bb_tile_reads(core->stmt[i], tile) || bb_tile_writes(core->stmt[i], tile)) return true;
  return false;
}

void bb_parts_defer(bb_gpu *g, bb_tile_body *core, uint32_t *loop) {
  for (uint32_t i = *loop; i-- > 0;) {
    bb_tile_stmt *s = core->stmt[i];
    bb_tile_body *body = &core->stmt[*loop]->loop->body;
    if ((s->kind != BB_TILE_LOAD && s->kind != BB_TILE_MAP) || bb_tile_readers(body, s->result) ||
        bb_tile_writers(body, s->result) || is_between(core, i + 1, *loop, s->result))
      continue;
    bool changes = false;
    for (uint32_t k = 0; k < s->operands; k++) changes |= bb_tile_writers(body, s->operand[k]) > 0;
    if (changes) continue;
    bb_tile_remove(core, i);
    bb_tile_insert(g->p, core, (*loop)--, s);
  }
}

void bb_gpu_side(bb_gpu *g) {
  bb_parts q = {.g = g, .core = &g->p->body};
  while (q.core->count == 1 && q.core->stmt[0]->loop && q.core->stmt[0]->loop->parallel)
    q.core = &q.core->stmt[0]->loop->body;
  while (q.loop < q.core->count && !q.core->stmt[q.loop]->loop) q.loop++;
  if (q.loop == q.core->count || q.core->stmt[q.loop]->loop->stretches != 1)
    bb_gpu_refuse(g, "results on their side without a plain loop");
  bb_parts_defer(g, q.core, &q.loop);
  bb_gpu_orient(g);
  bb_gpu_hoist(g, q.core, &q.loop);
  const bb_tile_body *body = &q.core->stmt[q.loop]->loop->body;
  for (uint32_t i = 0; i < body->count; i++)
    if (body->stmt[i]->kind != BB_TILE_LOAD && body->stmt[i]->kind != BB_TILE_DOT)
      bb_gpu_refuse(g, "results on their side of more than products");
  bb_parts_find_carried(&q);
  bb_gpu_turn_results(&q);
}
