/* emit_sm90_beside.c - two products of a warp group that have their left operand in common: where their right operands lie
 * one behind the other in shared memory, they are one operand of twice the rows, and one instruction makes both.
 * The left operand is read once, and the product unit is busy for twice as long.
 */
#include "emit_sm90.h"
#include "tile_edit.h"

enum { WIDEST = 256 };

static bool is_alike(const bb_tile *a, const bb_tile *b) {
  return bb_tile_have_one_form(a, b) && a->place == b->place && a->buffers == b->buffers;
}

static bool is_free(const bb_cuda_tile *t) {
  return t->ring && t->parts == 1 && !t->beside && !t->behind;
}

/* Do the columns or rows of a second operand go on where the first one's end?  Pieces of 64 columns lie one behind the
 * other, each with all rows: along rows there may be one only, and along columns all are whole. */
static bool goes_on(const bb_tile *t, bool transposed) {
  return transposed ? t->cols <= 64 : t->cols % 64 == 0;
}

static bool may_be_one(const bb_cuda *e, const bb_tile_stmt *a, const bb_tile_stmt *b) {
  const bb_tile *tile = e->p->tile;
  return bb_cuda_is_async(e, a) && bb_cuda_is_async(e, b) && a->operand[0] == b->operand[0] &&
         tile[a->operand[0]].place == BB_PLACE_SHARED && a->operand[1] != b->operand[1] &&
         a->result != b->result && a->transposed[0] == b->transposed[0] &&
         a->transposed[1] == b->transposed[1] && a->accumulate == b->accumulate &&
         a->stage == b->stage && a->stretches == b->stretches &&
         is_alike(&tile[a->operand[1]], &tile[b->operand[1]]) &&
         goes_on(&tile[a->operand[1]], a->transposed[1]) &&
         tile[a->result].cols + tile[b->result].cols <= WIDEST;
}

const bb_tile_stmt *bb_cuda_second(const bb_cuda *e, const bb_tile_stmt *stmt) {
  if (!bb_cuda_is_async(e, stmt) || !e->tile[stmt->operand[1]].beside) return NULL;
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (s->kind == BB_TILE_DOT && s->operand[1] == e->tile[stmt->operand[1]].beside - 1 &&
        may_be_one(e, stmt, s))
      return s;
  }
  return NULL;
}

void bb_cuda_find_beside(bb_cuda *e) {
  for (uint32_t i = 0; e->serial && i < e->serial->body.count; i++) {
    const bb_tile_stmt *a = e->serial->body.stmt[i];
    for (uint32_t k = i + 1; a->kind == BB_TILE_DOT && k < e->serial->body.count; k++) {
      const bb_tile_stmt *b = e->serial->body.stmt[k];
      if (b->kind != BB_TILE_DOT || !may_be_one(e, a, b)) continue;
      bb_cuda_tile *first = &e->tile[a->operand[1]], *next = &e->tile[b->operand[1]];
      if (!is_free(first) || !is_free(next)) continue;
      first->beside = 1 + b->operand[1];
      next->behind = true;
    }
  }
}
