/* emit_sm90_pairs.c - neighbours along a loop of the grid, two by two: what both load alike, each loads half of, for both.
 *
 * A pair is a cluster.  Each of its blocks asks for half of the rows, once they have been read in both memories, and they come
 * to both: barriers of readers count those of both blocks.  Where neighbours are no pairs at the extents of a launch, its
 * clusters are of one block, which asks for both halves: the code is the same.
 */
#include "emit_sm90.h"

static bool varies(const bb_tile_program *p, const bb_tile_stmt *load, uint32_t variable) {
  for (uint32_t i = 0; i < p->view[load->view].rank; i++)
    if (bb_expr_uses_arg(load->range[i].start, variable)) return true;
  return false;
}

void bb_cuda_find_mates(bb_cuda *e) {
  uint32_t at = 0;
  while (at < e->grids && !e->grid[at]->pairs) at++;
  if (at == e->grids) return;
  e->pair = e->grid[at];
  if (!e->copier || !e->serial || e->cluster || e->split || e->stages || e->grid[0]->queue)
    bb_cuda_refuse(e, NULL, "pairs of blocks that take turns of their own");
  for (uint32_t k = 0; k < e->serial->stretches; k++)
    for (uint32_t i = at; i < e->grids; i++) {
      const bb_tile_stretch *s = &e->serial->stretch[k];
      if (bb_expr_uses_arg(s->from, e->grid[i]->variable) ||
          (s->to && bb_expr_uses_arg(s->to, e->grid[i]->variable)))
        bb_cuda_refuse(e, NULL, "pairs of blocks whose loops differ");
    }
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (s->kind != BB_TILE_LOAD || !e->tile[s->result].ring || s->stretches) continue;
    bb_cuda_tile *t = &e->tile[s->result];
    t->mated = t->parts == 1 && e->p->tile[s->result].rows % 16 == 0 &&
               !varies(e->p, s, e->pair->variable);
  }
}

void bb_cuda_load_half(bb_cuda *e, const bb_tile_stmt *s, const char *buffer, const char *barrier) {
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  const bb_cuda_map *map = &e->map[e->tile[s->result].map];
  const char *row = bb_arena_printf(e->arena, "half * %u", map->rows);
  bb_cuda_line(e, "for (int half = mine; half < 2; half += mates)");
  if (t->cols > 64) {
    bb_cuda_line(e, "  TL_UNROLL for (int c = 0; c < %u; c += 64)", t->cols);
    bb_cuda_line(e, "    tl::copy_box_to_all(mates, %s + half * %u + c * %u, &p.%s, %s%s);", buffer,
                 map->rows * 128, t->rows * 2, map->name, barrier, bb_cuda_box_at(e, s, row, "c"));
  } else {
    bb_cuda_line(e, "  tl::copy_box_to_all(mates, %s + half * %u, &p.%s, %s%s);", buffer,
                 map->rows * 128, map->name, barrier, bb_cuda_box_at(e, s, row, "0"));
  }
}

const char *bb_cuda_mates(const bb_cuda *e, uint32_t tile) {
  return e->tile[tile].mated ? ", mates" : "";
}
