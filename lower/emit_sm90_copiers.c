/* emit_sm90_copiers.c - the threads that ask for copies, each the first of a warp.
 *
 * One thread may make all of them, in the order in which the warps that compute wait for them.  For each it waits until a buffer
 * is free, tells the barrier how much will come, and asks: where products are short that takes longer than they do.  So each
 * tile that a loop of products reads has a thread of its own, which goes through the loops by itself.
 */
#include "emit_sm90.h"

enum { COPIERS = 4 }; /* warps of the group that copies */

/* Is the tile of statement `at` of the serial loop copied by one before it, too? */
static bool is_copied_before(const bb_cuda *e, uint32_t at) {
  bb_tile_stmt *const *stmt = e->serial->body.stmt;
  for (uint32_t i = 0; i < at; i++)
    if (bb_cuda_is_copied(e, stmt[i]) && stmt[i]->result == stmt[at]->result) return true;
  return false;
}

static bool has_copies(const bb_cuda *e, const bb_cuda_list *list) {
  for (uint32_t i = 0; i < list->count; i++)
    if (bb_cuda_is_copied(e, list->stmt[i])) return true;
  return false;
}

/* Tiles of the serial loop; the counter of a queue is one thread's, and so is what is copied before and behind the loop. */
void bb_cuda_find_copiers(bb_cuda *e) {
  uint32_t tiles = 0;
  e->copiers = 1;
  if (!e->lags || (e->grids && e->grid[0]->queue)) return;
  if (has_copies(e, &e->before) || has_copies(e, &e->after)) return;
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (!bb_cuda_is_copied(e, s)) continue;
    if (is_copied_before(e, i)) return;
    tiles++;
  }
  if (tiles > 1 && tiles <= COPIERS) e->copiers = tiles;
}

bool bb_cuda_copies(const bb_cuda *e, uint32_t tile) {
  return !e->copied || e->copied == tile + 1;
}

void bb_cuda_put_copiers(bb_cuda *e) {
  uint32_t thread = 0;
  for (uint32_t i = 0; e->copiers > 1 && i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (!bb_cuda_is_copied(e, s)) continue;
    bb_cuda_line(e, "%sif (threadIdx.x == %u) { // copies %s", thread ? "} else " : "", thread,
                 e->tile[s->result].name);
    e->depth++;
    e->copied = s->result + 1;
    bb_cuda_role(e, true);
    e->copied = 0;
    e->depth--;
    thread += 32;
  }
  if (e->copiers == 1) {
    bb_cuda_line(e, "if (threadIdx.x == 0) {");
    e->depth++;
    bb_cuda_role(e, true);
    e->depth--;
  }
  bb_cuda_line(e, "}");
}
