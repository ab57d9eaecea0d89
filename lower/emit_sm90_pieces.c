/* emit_sm90_pieces.c - results that leave a persistent block piece by piece.
 *
 * While its results leave, a block's copier already loads for its next iteration of the grid's loops: results must not lie where
 * that goes, and have little room elsewhere.  So each warp lays down 64 columns of its 16 rows, sends them off, and lays down
 * the next 64 while those are on their way: two pieces a warp, for all results in turn.
 *
 * What a result is computed from beside products (a residual) comes the same way: the first two pieces of it are asked for before
 * the products are made, and lie where the result's are going to; once such a piece has left, the one after the next is asked for.
 */
#include "emit_sm90.h"
#include "tile_edit.h"

enum { COLUMNS = 64, PIECE = 16 * COLUMNS * 2, TURNING = 2 }; /* PIECE: bytes */

uint32_t bb_cuda_pieces_bytes(const bb_tile *tile) {
  return tile->rows / 16 * TURNING * PIECE;
}

static uint32_t pieces_of(const bb_tile *tile) {
  return (tile->cols + COLUMNS - 1) / COLUMNS;
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

void bb_cuda_find_added(bb_cuda *e) {
  const bb_cuda_list lists[] = {e->before, e->after};
  for (uint32_t k = 0; k < 2 && e->serial && !e->sm80; k++)
    for (uint32_t i = 0; i < lists[k].count; i++) {
      const bb_tile_stmt *load = lists[k].stmt[i];
      if (load->kind != BB_TILE_LOAD || e->p->tile[load->result].place != BB_PLACE_SHARED ||
          bb_tile_readers((bb_tile_body *)&e->p->body, load->result) != 1)
        continue;
      for (uint32_t j = 0; j < e->after.count; j++) {
        const bb_tile_stmt *map = e->after.stmt[j];
        if (map->kind != BB_TILE_MAP || !bb_tile_reads(map, load->result) ||
            e->p->tile[map->result].place != BB_PLACE_SHARED)
          continue;
        if (e->added) bb_cuda_refuse(e, load, "two tiles that come in pieces");
        e->added = load;
        e->tile[load->result].added = true;
      }
    }
}

/* Pieces of a warp that leave before those of a store, and in all. */
static uint32_t pieces_before(const bb_cuda *e, const bb_tile_stmt *store) {
  uint32_t pieces = 0;
  for (uint32_t i = 0; i < e->after.count && e->after.stmt[i] != store; i++) {
    const bb_tile_stmt *s = e->after.stmt[i];
    if (s->kind == BB_TILE_STORE && e->tile[s->operand[0]].pieces)
      pieces += pieces_of(&e->p->tile[s->operand[0]]);
  }
  return pieces;
}

/* The store of the result that is made of what is added. */
static const bb_tile_stmt *store_of_added(const bb_cuda *e) {
  for (uint32_t i = 0; i < e->after.count; i++) {
    const bb_tile_stmt *s = e->after.stmt[i];
    bool leaves = s->kind == BB_TILE_STORE && e->tile[s->operand[0]].pieces;
    if (leaves && bb_tile_reads(map_of(e, s), e->added->result)) return s;
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
                                    map_of(e, s) && bb_tile_readers(all, s->operand[0]) == 1 &&
                                    bb_tile_writers(all, s->operand[0]) == 1;
  }
  const bb_tile_stmt *store = e->added ? store_of_added(e) : NULL;
  if (e->added && (!store || pieces_before(e, NULL) != pieces_of(&e->p->tile[store->operand[0]])))
    bb_cuda_refuse(e, e->added, "a tile in pieces for other than a single result that leaves so");
}

bool bb_cuda_is_odd(const bb_cuda *e) {
  return !e->added && pieces_before(e, NULL) % TURNING != 0;
}

/* The place of the piece that begins at column `c`, in the memory of the calling warp; where its arrival is told. */
static const char *place_of_piece(const bb_cuda *e, uint32_t result, uint32_t first,
                                  const char *c) {
  return bb_arena_printf(e->arena,
                         "tile_memory + %u + my_rows * %u + ((%s) / %u + %u%s) %% %u * %u",
                         e->tile[result].offset, TURNING * PIECE / 16, c, COLUMNS, first % TURNING,
                         bb_cuda_is_odd(e) ? " + odd" : "", TURNING, PIECE);
}

static void ask(bb_cuda *e, uint32_t result, const char *c) {
  const char *told =
      bb_arena_printf(e->arena, "&sync.added[my_rows / 16][(%s) / %u %% %u]", c, COLUMNS, TURNING);
  bb_cuda_line(e, "tl::barrier_expect(%s, %u);", told, PIECE);
  bb_cuda_line(e, "tl::copy_box(%s, &p.%s, %s%s);", place_of_piece(e, result, 0, c),
               e->map[e->tile[e->added->result].map].name, told,
               bb_cuda_box_at(e, e->added, "my_rows", c));
}

void bb_cuda_ask_added(bb_cuda *e) {
  uint32_t result = store_of_added(e)->operand[0], cols = e->p->tile[result].cols;
  bb_cuda_line(e, "if (tl::lane() == 0) {");
  e->depth++;
  bb_cuda_line(e, "tl::put_read(); // the results before have left");
  bb_cuda_line(e, "TL_UNROLL for (int c = 0; c < %u; c += %u) {",
               cols < TURNING * COLUMNS ? cols : TURNING * COLUMNS, COLUMNS);
  e->depth++;
  ask(e, result, "c");
  e->depth--;
  bb_cuda_line(e, "}");
  e->depth--;
  bb_cuda_line(e, "}");
}

void bb_cuda_put_pieces(bb_cuda *e, const bb_tile_stmt *store) {
  const bb_tile_stmt *map = map_of(e, store);
  const bb_tile *t = &e->p->tile[store->operand[0]];
  bb_buffer pairs = {.arena = e->arena};
  uint32_t first = pieces_before(e, store), all = pieces_before(e, NULL);
  bb_cuda_line(e, "TL_UNROLL for (int c = 0; c < %u; c += %u) {", t->cols, COLUMNS);
  e->depth++;
  bb_cuda_line(e, "unsigned char *const piece = %s;",
               place_of_piece(e, store->operand[0], first, "c"));
  if (e->added) {
    bb_cuda_line(e,
                 "tl::barrier_wait(&sync.added[my_rows / 16][c / %u %% %u], added_phase >> c / %u "
                 "%% %u & 1);",
                 COLUMNS, TURNING, COLUMNS, TURNING);
    bb_cuda_line(e, "added_phase ^= 1u << c / %u %% %u;", COLUMNS, TURNING);
  } else {
    bb_cuda_line(e, "if (tl::lane() == 0) tl::put_read<%u>();", TURNING - 1);
    bb_cuda_line(e, "__syncwarp();");
  }
  e->raw = e->added != NULL;
  bb_cuda_pairs(e, map, &pairs, "c / 2 + 8 * k", 4, t->cols / 8);
  e->raw = false;
  const char *steps = bb_arena_printf(e->arena, "%u", COLUMNS / 16);
  if (t->cols % COLUMNS) /* the last one is not full */
    steps = bb_arena_printf(e->arena, "(c + %u <= %u ? %u : %u)", COLUMNS, t->cols, COLUMNS / 16,
                            t->cols % COLUMNS / 16);
  bb_cuda_line(e, "TL_UNROLL for (int k = 0; k < %s; k++) {", steps);
  bb_cuda_line(e, "  const tl::u32 at = tl::address(piece) + tl::piece(16, tl::lane() & 15, 2 * k "
                  "+ (tl::lane() >> 4));");
  if (e->added) {
    const char *raw = bb_arena_printf(e->arena, "raw_%s", e->tile[e->added->result].name);
    bb_cuda_line(e, "  tl::u32 %s[4];", raw);
    bb_cuda_line(e, "  tl::load_matrix(at, %s[0], %s[1], %s[2], %s[3]);", raw, raw, raw, raw);
  }
  bb_cuda_line(e, "  tl::store_matrix(at, %s);", pairs.data);
  bb_cuda_line(e, "}");
  bb_cuda_line(e, "tl::fence_copies();");
  bb_cuda_line(e, "__syncwarp();");
  bb_cuda_line(e, "if (tl::lane() == 0) {");
  bb_cuda_line(e, "  tl::put_box(&p.%s, piece%s);", e->map[e->tile[store->operand[0]].map].name,
               bb_cuda_box_at(e, store, "my_rows", "c"));
  bb_cuda_line(e, "  tl::put_commit();");
  if (e->added && t->cols > TURNING * COLUMNS) {
    e->depth++;
    bb_cuda_line(e, "if (c + %u < %u) {", TURNING * COLUMNS, t->cols);
    e->depth++;
    bb_cuda_line(e, "tl::put_read();");
    ask(e, store->operand[0], bb_arena_printf(e->arena, "c + %u", TURNING * COLUMNS));
    e->depth--;
    bb_cuda_line(e, "}");
    e->depth--;
  }
  bb_cuda_line(e, "}");
  e->depth--;
  bb_cuda_line(e, "}");
  if (bb_cuda_is_odd(e) && first + pieces_of(t) == all) bb_cuda_line(e, "odd ^= 1;");
}
