/* emit_sm90_ending.c - what ends a block: where threads load blocks of their own behind the loop, as what is added to a product,
 * that goes part by part, each loaded, computed and stored before the next is asked for.
 *
 * Statement by statement, a loaded block would want as many registers as the product that it is added to.
 */
#include "emit_sm90.h"
#include "tile_edit.h"

/* The same elements of it in the same threads as of the other. */
static bool lies_like(const bb_cuda *e, uint32_t tile, uint32_t other) {
  const bb_cuda_tile *a = &e->tile[tile], *b = &e->tile[other];
  return a->layout == BB_LAYOUT_FRAGMENT && b->layout == BB_LAYOUT_FRAGMENT && a->rt == b->rt &&
         a->ct == b->ct && !a->ring && !a->pieces && !a->added &&
         bb_cuda_tile_of(e, tile)->place == BB_PLACE_REGISTERS;
}

/* Does the statement make, or store, a block from such blocks, each element from what stands at the same place? */
static bool is_ending(const bb_cuda *e, const bb_tile_stmt *s, uint32_t of) {
  bool stores = s->kind == BB_TILE_STORE;
  if (s->kind != BB_TILE_LOAD && s->kind != BB_TILE_MAP && !stores) return false;
  uint32_t made = stores ? s->operand[0] : s->result;
  if (!bb_tile_is_block(bb_cuda_tile_of(e, made)) || !lies_like(e, made, of)) return false;
  for (uint32_t i = 0; i < s->operands; i++) {
    const bb_cuda_tile *c = &e->tile[s->operand[i]];
    bool vector =
        !bb_tile_is_block(bb_cuda_tile_of(e, s->operand[i])) && c->layout == BB_LAYOUT_FRAGMENT;
    if (!vector && !lies_like(e, s->operand[i], of)) return false;
  }
  return true;
}

/* Has a statement something to do with what another makes, a block's, or that one with what it makes? */
static bool are_tied(const bb_tile_stmt *block, const bb_tile_stmt *s) {
  uint32_t made = block->result;
  bool tied = made != BB_NONE && (bb_tile_reads(s, made) || bb_tile_writes(s, made));
  for (uint32_t i = 0; i < block->operands; i++) tied |= bb_tile_writes(s, block->operand[i]);
  return tied;
}

/* Which statements behind the loop go part by part: those from a block's load on, all that follow but what may stand before them.
 * False: there are none. */
static bool find_ending(const bb_cuda *e, bool *ending) {
  const bb_cuda_list *list = &e->after;
  uint32_t from = 0;
  while (from < list->count && (list->stmt[from]->kind != BB_TILE_LOAD ||
                                !is_ending(e, list->stmt[from], list->stmt[from]->result)))
    from++;
  for (uint32_t i = from; i < list->count; i++) {
    const bb_tile_stmt *s = list->stmt[i];
    ending[i] = is_ending(e, s, list->stmt[from]->result);
    if (!ending[i] && s->kind == BB_TILE_STORE) return false;
    for (uint32_t k = from; !ending[i] && k < i; k++)
      if (ending[k] && are_tied(list->stmt[k], s)) return false;
  }
  return from < list->count;
}

void bb_cuda_find_ending(bb_cuda *e) {
  bb_tile_stmt **stmt = BB_NEW(e->arena, bb_tile_stmt *, e->after.count + 1);
  bool *ending = BB_NEW(e->arena, bool, e->after.count + 1);
  uint32_t before = 0, count = 0;
  if (e->stages || e->warps || e->cluster || e->split || !find_ending(e, ending)) return;
  for (uint32_t i = 0; i < e->after.count; i++)
    if (!ending[i]) stmt[before++] = e->after.stmt[i];
  for (uint32_t i = 0; i < e->after.count; i++)
    if (ending[i]) stmt[before + count++] = e->after.stmt[i];
  e->after = (bb_cuda_list){before, stmt};
  e->ending = (bb_cuda_list){count, stmt + before};
}

/* Registers of a block that are loaded before any is needed: enough of them for memory to be busy. */
enum { MOST_AHEAD = 32 };

static uint32_t parts_of(const bb_cuda_tile *t) {
  uint32_t parts = 1;
  while (t->registers % parts || t->registers / parts > MOST_AHEAD) parts++;
  return parts;
}

void bb_cuda_put_ending(bb_cuda *e) {
  if (!e->ending.count) return;
  const bb_cuda_tile *t = &e->tile[e->ending.stmt[0]->result];
  uint32_t parts = parts_of(t);
  bb_cuda_line(e, "TL_UNROLL for (int part = 0; part < %u; part++) {", parts);
  e->depth++;
  e->part = t->registers / parts;
  for (uint32_t i = 0; i < e->ending.count; i++) bb_cuda_stmt(e, e->ending.stmt[i]);
  e->part = 0;
  e->depth--;
  bb_cuda_line(e, "}");
}
