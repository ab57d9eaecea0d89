/* emit_sm90_pieces.c - results that leave a persistent block piece by piece.
 *
 * While its results leave, a block's copier already loads for its next iteration of the grid's loops: results must not lie where
 * that goes, and have little room elsewhere.  So each warp lays down 64 columns of its 16 rows, sends them off, and lays down
 * the next 64 while those are on their way: two pieces a warp.
 */
#include "emit_sm90.h"
#include "tile_edit.h"

enum { COLUMNS = 64, PIECE = 16 * COLUMNS * 2, TURNING = 2 }; /* PIECE: bytes */

uint32_t bb_cuda_pieces_bytes(const bb_tile *tile) {
  return tile->rows / 16 * TURNING * PIECE;
}

/* The map right before a store that makes what is stored, and for nobody else. */
static const bb_tile_stmt *map_of(const bb_cuda *e, const bb_tile_stmt *store) {
  for (uint32_t i = 1; i < e->after.count; i++) {
    const bb_tile_stmt *map = e->after.stmt[i - 1];
    if (e->after.stmt[i] != store) continue;
    bool makes = map->kind == BB_TILE_MAP && map->result == store->operand[0] &&
                 map->operands > 0 && !bb_expr_uses_coord(map->expr);
    return makes ? map : NULL;
  }
  return NULL;
}

void bb_cuda_find_pieces(bb_cuda *e) {
  bool persistent = e->grids && e->grid[0]->persistent && !e->grid[0]->rotate;
  for (uint32_t i = 0; persistent && e->copier && !e->stages && i < e->after.count; i++) {
    const bb_tile_stmt *s = e->after.stmt[i];
    if (s->kind != BB_TILE_STORE) continue;
    const bb_tile *t = &e->p->tile[s->operand[0]];
    bb_tile_body *all = (bb_tile_body *)&e->p->body;
    e->tile[s->operand[0]].pieces = t->place == BB_PLACE_SHARED && t->rows == 64 * e->groups &&
                                    t->cols % COLUMNS == 0 && map_of(e, s) &&
                                    bb_tile_readers(all, s->operand[0]) == 1 &&
                                    bb_tile_writers(all, s->operand[0]) == 1;
  }
}

void bb_cuda_put_pieces(bb_cuda *e, const bb_tile_stmt *store) {
  const bb_tile_stmt *map = map_of(e, store);
  const bb_tile *t = &e->p->tile[store->operand[0]];
  const bb_cuda_tile *c = &e->tile[store->operand[0]];
  bb_buffer pairs = {.arena = e->arena};
  bool even =
      t->cols / COLUMNS % TURNING == 0; /* else the last piece lies where the next one goes */
  bb_cuda_line(e, "TL_UNROLL for (int c = 0; c < %u; c += %u) {", t->cols, COLUMNS);
  e->depth++;
  bb_cuda_line(e,
               "unsigned char *const piece = tile_memory + %u + my_rows * %u + c / %u %% %u * %u;",
               c->offset, TURNING * PIECE / 16, COLUMNS, TURNING, PIECE);
  bb_cuda_line(e, "if (tl::lane() == 0) tl::put_read<%u>();", even ? TURNING - 1 : 0);
  bb_cuda_line(e, "__syncwarp();");
  bb_cuda_pairs(e, map, &pairs, "c / 2 + 8 * k", 4, t->cols / 8);
  bb_cuda_line(e, "TL_UNROLL for (int k = 0; k < %u; k++)", COLUMNS / 16);
  bb_cuda_line(e,
               "  tl::store_matrix(tl::address(piece) + tl::piece(16, tl::lane() & 15, 2 * k + "
               "(tl::lane() >> 4)), %s);",
               pairs.data);
  bb_cuda_line(e, "tl::fence_copies();");
  bb_cuda_line(e, "__syncwarp();");
  bb_cuda_line(e, "if (tl::lane() == 0) {");
  bb_cuda_line(e, "  tl::put_box(&p.%s, piece%s);", e->map[c->map].name,
               bb_cuda_box_at(e, store, "my_rows", "c"));
  bb_cuda_line(e, "  tl::put_commit();");
  bb_cuda_line(e, "}");
  e->depth--;
  bb_cuda_line(e, "}");
}
