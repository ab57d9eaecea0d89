/* emit_c_share.c - tiles that take over the memory of others.
 *
 * An elementwise statement may write where an operand lay that nobody reads any more: what a chain of them
 * works on stays in a cache that would not hold a copy for each link.
 */
#include "emit_c_parts.h"

#include <string.h>

typedef struct use {
  const bb_tile_body *body; /* all statements that touch the tile stand in it; NULL: in several */
  uint32_t touched;
} use;

static void note(use *all, uint32_t tile, const bb_tile_body *body) {
  if (tile == BB_NONE) return;
  use *u = &all[tile];
  if (u->touched++ == 0)
    u->body = body;
  else if (u->body != body)
    u->body = NULL;
}

static void find_uses(const bb_tile_body *body, use *all) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    note(all, s->result, body);
    note(all, s->second, body);
    for (uint32_t k = 0; k < s->operands; k++) note(all, s->operand[k], body);
    find_uses(&s->body, all);
    if (s->loop) find_uses(&s->loop->body, all);
  }
}

static bool reads(const bb_tile_stmt *s, uint32_t tile) {
  for (uint32_t k = 0; k < s->operands; k++)
    if (s->operand[k] == tile) return true;
  return s->kind == BB_TILE_DOT && s->accumulate && s->result == tile;
}

static bool touches(const bb_tile_stmt *s, uint32_t tile) {
  return s->result == tile || s->second == tile || reads(s, tile);
}

static bool together(const bb_tile_stmt *a, const bb_tile_stmt *b) {
  return !a->stretches || !b->stretches || (a->stretches & b->stretches);
}

/* In every iteration `tile` is written before it is read, and not touched after statement `at`. */
static bool ends(const bb_tile_body *body, uint32_t at, uint32_t tile) {
  bool begun = false;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (!together(s, body->stmt[at]) || !touches(s, tile)) continue;
    if (!begun && (reads(s, tile) || i >= at)) return false;
    begun = true;
    if (i > at) return false;
  }
  return begun;
}

/* Statement `at` is the first to touch the tile it writes. */
static bool begins(const bb_tile_body *body, uint32_t at, uint32_t tile) {
  for (uint32_t i = 0; i <= at; i++)
    if (together(body->stmt[i], body->stmt[at]) && touches(body->stmt[i], tile)) return i == at;
  return false;
}

uint32_t bb_c_owner(const bb_c *c, uint32_t tile) {
  while (c->tile[tile].over != BB_NONE) tile = c->tile[tile].over;
  return tile;
}

static bool same_shape(const bb_c *c, uint32_t x, uint32_t y) {
  const bb_tile *a = &c->p->tile[x], *b = &c->p->tile[y];
  return a->rows == b->rows && a->cols == b->cols && a->rows && a->cols &&
         strcmp(bb_c_element(c, a->dtype), bb_c_element(c, b->dtype)) == 0 &&
         c->tile[x].turned == c->tile[y].turned && c->tile[x].pitch == c->tile[y].pitch;
}

/* All statements that write the tile can take the operand's memory over, in their stretches. */
static bool may_take(const bb_c *c, const use *all, const bb_tile_body *body, uint32_t result,
                     uint32_t operand) {
  if (all[operand].body != body || all[result].body != body || result == operand) return false;
  if (c->tile[operand].window || c->tile[result].window || !same_shape(c, result, operand))
    return false;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->result != result) continue;
    if (s->kind != BB_TILE_MAP || !reads(s, operand)) return false;
    if (!begins(body, i, result) || !ends(body, i, operand)) return false;
  }
  return true;
}

static void share_in(bb_c *c, const use *all, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    share_in(c, all, &s->body);
    if (s->loop) share_in(c, all, &s->loop->body);
    if (s->kind != BB_TILE_MAP || c->tile[s->result].over != BB_NONE) continue;
    for (uint32_t k = 0; k < s->operands; k++) {
      if (c->tile[s->operand[k]].taken || !may_take(c, all, body, s->result, s->operand[k]))
        continue;
      c->tile[s->result].over = bb_c_owner(c, s->operand[k]);
      c->tile[s->operand[k]].taken = true;
      break;
    }
  }
}

void bb_c_share(bb_c *c) {
  bb_arena *arena = c->out->arena;
  use *all = BB_NEW(arena, use, c->p->tiles + 1);
  for (uint32_t i = 0; i < c->p->tiles; i++) c->tile[i].over = BB_NONE;
  find_uses(&c->p->body, all);
  share_in(c, all, &c->p->body);
}
