/* gpu_registers.c - how many registers a thread of a placed program needs. */
#include "gpu_place.h"

enum { SLACK = 24 }; /* for what is no tile */

static uint32_t registers_of(const bb_gpu_placer *w, uint32_t tile) {
  const bb_tile *t = &w->p->tile[tile];
  uint32_t threads = 128 * w->groups, size = t->rows * t->cols;
  if (t->place == BB_PLACE_SHARED) return 0;
  if (t->rows && t->cols) {
    uint32_t each = (size + threads - 1) / threads;
    return t->place == BB_PLACE_LEFT ? each / 2 : t->dtype == BB_I64 ? 2 * each : each;
  }
  return t->cols ? t->cols / 4 : t->rows ? 2 * (bb_gpu_group_rows(w) / BB_GPU_GROUP_ROWS) : 1;
}

static bool is_long(const bb_expr *x) {
  if (x->op == BB_X_ERF || x->op == BB_X_LOG || x->op == BB_X_SIN || x->op == BB_X_ATAN ||
      x->op == BB_X_COS)
    return true;
  if (x->op == BB_X_POW && x->a[0]->op != BB_X_CONST && x->a[1]->op != BB_X_CONST) return true;
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++)
    if (is_long(x->a[i])) return true;
  return false;
}

typedef struct longest {
  const bb_tile_program *p;
  bool is;
} longest;

/* Functions that are computed by many operations want registers of their own, beside a block's. */
static void find_long(void *user, bb_tile_body *body, uint32_t at) {
  longest *l = user;
  const bb_tile_stmt *s = body->stmt[at];
  bool block = s->kind == BB_TILE_MAP && l->p->tile[s->result].rows && l->p->tile[s->result].cols;
  l->is |= block && is_long(s->expr);
}

bool bb_gpu_has_long(const bb_gpu_placer *w) {
  longest l = {w->p, false};
  bb_tile_walk(&w->p->body, find_long, &l);
  return l.is;
}

/* Is the tile made behind the loop, where parts are merged and each block has some elements at a time? */
static bool is_behind_parts(const bb_gpu_placer *w, uint32_t tile) {
  if (!w->g->split || !w->serial) return false;
  for (uint32_t i = 0; i <= w->at; i++)
    if (bb_tile_writes(w->core->stmt[i], tile)) return false;
  return true;
}

uint32_t bb_gpu_registers_in_flight(const bb_gpu_placer *w) {
  uint32_t sum = 0;
  for (uint32_t i = 0; w->serial && i < w->serial->body.count; i++) {
    const bb_tile_stmt *s = w->serial->body.stmt[i];
    const bb_tile *t = s->kind == BB_TILE_LOAD ? &w->p->tile[s->result] : NULL;
    if (t && !t->rows && t->cols && t->place == BB_PLACE_REGISTERS)
      sum += 3 * registers_of(w, s->result) / 2;
  }
  return sum;
}

/* A loop with stages runs beside the end of one result and the begin of the next: there all tiles are needed at once. */
uint32_t bb_gpu_registers_needed(const bb_gpu_placer *w) {
  uint32_t sum = 0, slack = SLACK + (bb_gpu_has_long(w) ? SLACK : 0);
  uint32_t *size = BB_NEW(w->p->home->arena, uint32_t, w->p->tiles + 1);
  for (uint32_t t = 0; t < w->p->tiles; t++) {
    if (!bb_tile_writers(&w->p->body, t) || is_behind_parts(w, t)) continue;
    if (w->serial && bb_tile_is_early_vector(w->p, w->core, w->at, t)) continue;
    size[t] = registers_of(w, t);
    sum += size[t];
  }
  return slack + (w->staged || !w->serial ? sum : bb_tile_most_live(w->p, w->core, size));
}
