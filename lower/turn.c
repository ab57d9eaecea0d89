/* turn.c - blocks whose rows lie side by side in memory are taken with rows for columns.
 *
 * Threads beside each other take columns beside each other. A block that is copied, or computed element by element, means
 * the same turned around, and is turned where more of what it is loaded from and stored to has its rows last.
 */
#include "turn.h"

typedef struct turning {
  bb_tile_program *p;
  bool good;             /* only loads, maps and stores */
  uint32_t rows, cols;   /* loads and stores of blocks whose rows, whose columns lie side by side */
  const uint32_t *nests; /* by tile: how many nests use it */
} turning;

static bool is_memory(const bb_tile_stmt *s) {
  return s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE;
}

static void look_at(turning *t, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool known = s->kind == BB_TILE_LOOP || s->kind == BB_TILE_MAP || is_memory(s);
    t->good &=
        known && !(s->loop && s->loop->merge) && (s->result == BB_NONE || t->nests[s->result] == 1);
    for (uint32_t k = 0; k < s->operands; k++) t->good &= t->nests[s->operand[k]] == 1;
    if (s->loop) look_at(t, &s->loop->body);
    if (!is_memory(s)) continue;
    const bb_tile_view *view = &t->p->view[s->view];
    uint32_t blocks = 0;
    for (uint32_t a = 0; a < view->rank; a++) blocks += s->range[a].size > 0;
    if (view->panels || blocks != 2) continue;
    const bb_tile_range *last = &s->range[view->rank - 1];
    if (last->size) *(last->axis == BB_AXIS_ROW ? &t->rows : &t->cols) += 1;
  }
}

static bb_axis across(bb_axis axis) {
  return axis == BB_AXIS_ROW ? BB_AXIS_COL : axis == BB_AXIS_COL ? BB_AXIS_ROW : axis;
}

static const bb_expr *turned_leaf(void *user, const bb_expr *leaf) {
  bb_program *home = user;
  if (leaf->op != BB_X_COORD) return leaf;
  if (leaf->index == BB_COORD_ROW) return bb_expr_coord(home, BB_COORD_COL);
  return leaf->index == BB_COORD_COL ? bb_expr_coord(home, BB_COORD_ROW) : leaf;
}

static void turn_body(turning *t, bb_tile_body *body, bool *turned) {
  bb_tile_program *p = t->p;
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    if (s->loop) turn_body(t, &s->loop->body, turned);
    for (uint32_t a = 0; is_memory(s) && a < p->view[s->view].rank; a++)
      if (s->range[a].size) s->range[a].axis = across(s->range[a].axis);
    if (s->kind == BB_TILE_MAP) {
      bb_tile_index row = s->at[0];
      s->at[0] = s->at[1];
      s->at[1] = row;
      s->expr = bb_expr_map_leaves(p->home, s->expr, turned_leaf, p->home);
    }
    if (s->result == BB_NONE || turned[s->result]) continue;
    bb_tile *tile = &p->tile[s->result];
    uint32_t rows = tile->rows;
    tile->rows = tile->cols;
    tile->cols = rows;
    turned[s->result] = true;
  }
}

/* Each nest that uses a tile counts once. */
static void count_uses(const bb_tile_body *body, uint32_t nest, uint32_t *last, uint32_t *nests) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    for (uint32_t k = 0; k <= s->operands; k++) {
      uint32_t tile = k < s->operands ? s->operand[k] : s->result;
      if (tile == BB_NONE || last[tile] == nest) continue;
      last[tile] = nest;
      nests[tile]++;
    }
    count_uses(&s->body, nest, last, nests);
    if (s->loop) count_uses(&s->loop->body, nest, last, nests);
  }
}

bool bb_tile_turn(bb_tile_program *p) {
  bb_arena *scratch = bb_scratch(p->home->ctx);
  uint32_t *last = BB_NEW(scratch, uint32_t, p->tiles + 1),
           *nests = BB_NEW(scratch, uint32_t, p->tiles + 1);
  bool *turned = BB_NEW(scratch, bool, p->tiles + 1), last_turns = false;
  for (uint32_t i = 0; i < p->body.count; i++)
    count_uses(&(bb_tile_body){1, p->body.stmt + i}, i + 1, last, nests);
  for (uint32_t i = 0; i < p->body.count; i++) {
    turning t = {.p = p, .good = true, .nests = nests};
    bb_tile_body nest = {1, p->body.stmt + i};
    look_at(&t, &nest);
    last_turns = t.good && t.rows > t.cols;
    if (last_turns) turn_body(&t, &nest, turned);
  }
  bb_scratch_end(scratch);
  return last_turns;
}
