/* tile_name.c - what a tile program is called where only a name is seen, as in a profile: what it does, in numbers.
 *
 * It follows from the statements alone, so that equal kernels have one name whichever models they are part of, and no
 * name of a model's reaches source.
 */
#include "tile.h"

typedef struct census {
  uint32_t count[BB_TILE_LOOP + 1]; /* statements by kind */
  bool split;                       /* loops that run apart are combined */
  const bb_tile_stmt *store;        /* the first one */
} census;

static void take(census *c, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    c->count[s->kind]++;
    if (s->kind == BB_TILE_STORE && !c->store) c->store = s;
    take(c, &s->body);
    if (!s->loop) continue;
    c->split |= s->loop->merge != NULL;
    take(c, &s->loop->body);
  }
}

static void put_count(bb_buffer *out, const char *word, uint32_t count) {
  if (count == 1) bb_put(out, "_%s", word);
  if (count > 1) bb_put(out, "_%s%u", word, count);
}

const char *bb_tile_describe(const bb_tile_program *program, const char *prefix, bb_arena *arena) {
  bb_buffer out = {.arena = arena};
  census c = {0};
  take(&c, &program->body);
  bb_put(&out, "%s", prefix);
  put_count(&out, "dot", c.count[BB_TILE_DOT]);
  put_count(&out, "fold", c.count[BB_TILE_FOLD]);
  put_count(&out, "scan", c.count[BB_TILE_SCAN]);
  if (c.split) bb_put(&out, "_split");
  if (c.store) {
    const bb_tile *block = &program->tile[c.store->operand[0]];
    bb_put(&out, "_%ux%u", block->rows ? block->rows : 1, block->cols ? block->cols : 1);
  }
  return out.data;
}
