/* vector.c - loops over scalars take many at a time.
 *
 *     parallel i = 0 to n step 1 {              parallel i = 0 to n step 128 {
 *       t = f(i)                        ==>       t = f(i + col)
 *       store y[..., i] = t                       store y[..., i:128] = t
 *     }                                         }
 *
 * What no operator cuts into blocks, as indices that are computed and arrays that are filled, would be a block of threads
 * for each element.
 */
#include "vector.h"

enum { FEWEST = 32, MANY = 128, MOST = 256, MOST_LOOPS = 8 };

typedef struct vectors {
  bb_tile_program *p;
  uint32_t variable, cols;
  bb_tile_index to;
  uint32_t *vector; /* by tile: what it becomes; BB_NONE: it stays a scalar */
} vectors;

static bool is_variable(const vectors *v, bb_tile_index index) {
  return index->op == BB_X_ARG && index->index == v->variable;
}

static bool is_scalar(const vectors *v, uint32_t tile) {
  return !v->p->tile[tile].rows && !v->p->tile[tile].cols;
}

/* The axis of a load or store that the variable alone runs over; BB_NONE: none, and none has it.  False: it cannot be
 * a vector. */
static bool find_axis(const vectors *v, const bb_tile_stmt *s, uint32_t *axis) {
  const bb_tile_view *view = &v->p->view[s->view];
  *axis = BB_NONE;
  for (uint32_t a = 0; a < view->rank; a++) {
    if (s->range[a].size || !s->range[a].start) return false;
    if (!bb_expr_uses_arg(s->range[a].start, v->variable)) continue;
    bool last = a + 1 == view->rank && (!view->strided || bb_expr_is_number(view->stride[a], 1));
    if (!last || !is_variable(v, s->range[a].start) || view->extent[a] != v->to) return false;
    *axis = a;
  }
  return true;
}

static bool can_be_vector(const vectors *v, const bb_tile_stmt *s, const bool *made) {
  uint32_t axis;
  if (s->stage || s->stretches) return false;
  for (uint32_t i = 0; i < s->operands; i++)
    if (!is_scalar(v, s->operand[i])) return false;
  switch (s->kind) {
  case BB_TILE_LOAD: return is_scalar(v, s->result) && find_axis(v, s, &axis);
  case BB_TILE_MAP: return is_scalar(v, s->result) && !s->at[0] && !s->at[1];
  case BB_TILE_STORE: return find_axis(v, s, &axis) && axis != BB_NONE && made[s->operand[0]];
  default: return false;
  }
}

static bool is_plain(const bb_tile_loop *l) {
  return l->parallel && l->spread == BB_SPREAD_GRID && !l->merge && l->stretches == 1 &&
         !l->persistent && l->stretch[0].to && bb_expr_is_number(l->stretch[0].from, 0) &&
         bb_expr_is_number(l->step, 1);
}

/* Only loads, maps and stores of scalars, and what is stored a map has made. */
static bool is_for_vectors(const vectors *v, const bb_tile_body *body, bb_arena *scratch) {
  bool *made = BB_NEW(scratch, bool, v->p->tiles), stores = false;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (!can_be_vector(v, s, made)) return false;
    if (s->kind == BB_TILE_MAP) made[s->result] = true;
    stores |= s->kind == BB_TILE_STORE;
  }
  return stores;
}

static const bb_expr *column(void *user, const bb_expr *leaf) {
  const vectors *v = user;
  bool is = leaf->op == BB_X_ARG && leaf->index == BB_TILE_VARIABLE + v->variable;
  return is ? bb_expr_coord(v->p->home, BB_COORD_COL) : leaf;
}

static uint32_t vector_of(vectors *v, uint32_t tile) {
  bb_tile made = v->p->tile[tile];
  made.name = bb_arena_printf(v->p->home->arena, "t%u", v->p->tiles);
  made.cols = v->cols;
  return v->vector[tile] = bb_tile_add(v->p, &made);
}

static void make_vector(vectors *v, bb_tile_stmt *s) {
  uint32_t axis = BB_NONE;
  for (uint32_t i = 0; i < s->operands; i++)
    if (v->vector[s->operand[i]] != BB_NONE) s->operand[i] = v->vector[s->operand[i]];
  if (s->kind != BB_TILE_MAP) find_axis(v, s, &axis);
  if (axis != BB_NONE) {
    s->range[axis].size = v->cols;
    s->range[axis].axis = BB_AXIS_COL;
  }
  if (s->kind == BB_TILE_MAP) {
    if (bb_expr_uses_arg(s->expr, BB_TILE_VARIABLE + v->variable))
      s->at[1] = bb_expr_arg(v->p->home, BB_I64, v->variable);
    s->expr = bb_expr_map_leaves(v->p->home, s->expr, column, v);
  }
  if (s->kind == BB_TILE_MAP || (s->kind == BB_TILE_LOAD && axis != BB_NONE))
    s->result = vector_of(v, s->result);
  else if (s->kind == BB_TILE_LOAD)
    v->vector[s->result] = BB_NONE;
}

static uint32_t columns_of(bb_tile_index to) {
  if (to->op != BB_X_CONST) return MANY;
  uint32_t cols = FEWEST;
  while (cols < MOST && cols < to->number) cols *= 2;
  return cols;
}

/* The loops within each other around a body, outermost first. */
typedef struct nest {
  uint32_t loops;
  bb_tile_loop *loop[MOST_LOOPS];
} nest;

/* Along the loop over what lies side by side. */
static void make_vectors(bb_tile_program *p, const nest *n, const bb_tile_body *body) {
  bb_arena *scratch = bb_scratch(p->home->ctx);
  for (uint32_t k = n->loops; k-- > 0;) {
    bb_tile_loop *l = n->loop[k];
    vectors v = {.p = p, .variable = l->variable, .to = l->stretch[0].to};
    bool inside = false; /* another loop's end depends on it */
    for (uint32_t i = k + 1; i < n->loops; i++)
      inside |= bb_expr_uses_arg(n->loop[i]->stretch[0].to, v.variable);
    if (inside || !is_for_vectors(&v, body, scratch)) continue;
    v.cols = columns_of(v.to);
    uint32_t tiles = p->tiles;
    v.vector = BB_NEW(scratch, uint32_t, tiles);
    for (uint32_t t = 0; t < tiles; t++) v.vector[t] = BB_NONE;
    for (uint32_t i = 0; i < body->count; i++) make_vector(&v, body->stmt[i]);
    l->step = bb_expr_const(p->home, BB_I64, v.cols);
    break;
  }
  bb_scratch_end(scratch);
}

static void look_into(bb_tile_program *p, bb_tile_body *body, nest n) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_LOOP) continue;
    nest inner = body->count == 1 && n.loops < MOST_LOOPS ? n : (nest){0};
    if (is_plain(s->loop))
      inner.loop[inner.loops++] = s->loop;
    else
      inner.loops = 0;
    make_vectors(p, &inner, &s->loop->body);
    look_into(p, &s->loop->body, inner);
  }
}

void bb_tile_vectors(bb_tile_program *p) {
  look_into(p, &p->body, (nest){0});
}
