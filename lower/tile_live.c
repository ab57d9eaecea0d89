/* tile_live.c - which tiles of a straight run of statements with one loop in it are needed, or loaded, where and at once. */
#include "tile_edit.h"

/* The first and the last statement that a tile is needed by; first > last: none. */
typedef struct span {
  uint32_t first, last;
} span;

static span span_of(const bb_tile_body *body, uint32_t tile) {
  span s = {1, 0};
  for (uint32_t i = 0; i < body->count; i++) {
    if (!bb_tile_touches(body->stmt[i], tile)) continue;
    if (s.first > s.last) s.first = i;
    s.last = i;
  }
  return s;
}

bool bb_tile_is_early_vector(const bb_tile_program *p, const bb_tile_body *body, uint32_t at,
                             uint32_t tile) {
  if (bb_tile_is_block(&p->tile[tile])) return false;
  for (uint32_t i = at; i < body->count; i++)
    if (bb_tile_touches(body->stmt[i], tile)) return false;
  return true;
}

/* Beside statement i.  What a map reads for the last time makes room for its result, element by element. */
static bool is_live(const bb_tile_body *body, span s, uint32_t tile, uint32_t i) {
  const bb_tile_stmt *stmt = body->stmt[i];
  if (i < s.first || i > s.last) return false;
  return !(i == s.last && stmt->kind == BB_TILE_MAP && stmt->result != tile);
}

uint32_t bb_tile_most_live(const bb_tile_program *p, const bb_tile_body *body,
                           const uint32_t *size) {
  span *spans = BB_NEW(p->home->arena, span, p->tiles + 1);
  uint32_t most = 0;
  for (uint32_t t = 0; t < p->tiles; t++) spans[t] = span_of(body, t);
  for (uint32_t i = 0; i < body->count; i++) {
    uint32_t sum = 0;
    for (uint32_t t = 0; t < p->tiles; t++)
      if (size[t] && is_live(body, spans[t], t, i)) sum += size[t];
    if (sum > most) most = sum;
  }
  return most;
}

uint32_t bb_tile_most_loaded(const bb_tile_body *body, const uint32_t *size) {
  uint32_t here = 0, most = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    uint32_t inner = bb_tile_most_loaded(s->loop ? &s->loop->body : &s->body, size);
    if (s->kind == BB_TILE_LOAD) here += size[s->result];
    if (inner > most) most = inner;
  }
  return here > most ? here : most;
}
