/* emit_sm90_pairs.c - neighbours along a loop of the grid, two by two: what both load alike, each loads half of, for both.
 *
 * A pair is a cluster.  Each of its blocks asks for half of a tile, once it has been read in both memories, and it comes
 * to both: barriers of readers count those of both blocks.  Where neighbours are no pairs at the extents of a launch, its
 * clusters are of one block, which asks for both halves: the code is the same.
 *
 * The second block's loop may begin sooner than the first's (mates.h).  Copiers go through the iterations of both; in the first block
 * the warps that compute pass over what comes for the second alone.  Of a queue the first block's copier takes for both.
 */
#include "emit_sm90.h"
#include "infix.h"
#include "mates.h"
#include "tile_edit.h"

/* Does the second block's loop begin sooner?  The first passes over one iteration's tiles, and has one of its own on the way. */
static bool find_lead(bb_cuda *e, uint32_t at) {
  int lead = bb_mates_lead(e->serial, e->pair, e->grid, at);
  for (uint32_t i = at + 1; i < e->grids; i++) {
    const bb_tile_stretch *s = &e->grid[i]->stretch[0];
    if (bb_expr_uses_arg(s->from, e->pair->variable) || bb_expr_uses_arg(s->to, e->pair->variable))
      bb_cuda_refuse(e, NULL, "pairs of blocks with loops that follow theirs");
    if (bb_mates_lead(e->serial, e->grid[i], e->grid, i)) lead = -1;
  }
  if (lead < 0 || (lead && !e->stages))
    bb_cuda_refuse(e, NULL, "pairs of blocks whose loops differ");
  for (uint32_t i = 0; lead && i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (s->kind == BB_TILE_LOAD && e->tile[s->result].ring &&
        (s->stretches || e->tile[s->result].parts > 1 || e->p->tile[s->result].buffers < 2))
      bb_cuda_refuse(e, s, "pairs of blocks whose loops differ in what they load");
  }
  return lead > 0;
}

void bb_cuda_find_mates(bb_cuda *e) {
  uint32_t at = 0;
  while (at < e->grids && !e->grid[at]->pairs) at++;
  if (at == e->grids) return;
  e->pair = e->grid[at];
  if (!e->copier || !e->serial || e->cluster || e->split)
    bb_cuda_refuse(e, NULL, "pairs of blocks that are clusters already, or have no loop");
  e->leads = find_lead(e, at);
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (s->kind != BB_TILE_LOAD || !e->tile[s->result].ring || s->stretches) continue;
    bb_cuda_tile *t = &e->tile[s->result];
    t->mated = t->parts == 1 && e->p->tile[s->result].rows % 16 == 0 &&
               !bb_tile_load_varies(e->p, s, e->pair->variable);
  }
}

bool bb_cuda_halves_rows(const bb_cuda *e, uint32_t tile) {
  return e->tile[tile].mated && e->p->tile[tile].cols % 128 != 0;
}

void bb_cuda_load_half(bb_cuda *e, const bb_tile_stmt *s, const char *buffer, const char *barrier) {
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  const bb_cuda_map *map = &e->map[e->tile[s->result].map];
  bool rows = bb_cuda_halves_rows(e, s->result);
  uint32_t line = t->rows * 128; /* bytes of 64 columns */
  const char *row = rows ? bb_arena_printf(e->arena, "half * %u", map->rows) : "0";
  bb_cuda_line(e, "for (int half = mine; half < 2; half += mates)");
  if (rows && t->cols <= 64) {
    bb_cuda_line(e, "  tl::copy_box_to_all(mates, %s + half * %u, &p.%s, %s%s);", buffer,
                 map->rows * 128, map->name, barrier, bb_cuda_box_at(e, s, row, "0"));
  } else if (rows) {
    bb_cuda_line(e, "  TL_UNROLL for (int c = 0; c < %u; c += 64)", t->cols);
    bb_cuda_line(e, "    tl::copy_box_to_all(mates, %s + half * %u + c * %u, &p.%s, %s%s);", buffer,
                 map->rows * 128, line / 64, map->name, barrier, bb_cuda_box_at(e, s, row, "c"));
  } else if (t->cols == 128) {
    bb_cuda_line(e, "  tl::copy_box_to_all(mates, %s + half * %u, &p.%s, %s%s);", buffer, line,
                 map->name, barrier, bb_cuda_box_at(e, s, row, "half * 64"));
  } else {
    bb_cuda_line(e, "  TL_UNROLL for (int c = half * %u; c < (half + 1) * %u; c += 64)",
                 t->cols / 2, t->cols / 2);
    bb_cuda_line(e, "    tl::copy_box_to_all(mates, %s + c * %u, &p.%s, %s%s);", buffer, line / 64,
                 map->name, barrier, bb_cuda_box_at(e, s, row, "c"));
  }
}

const char *bb_cuda_mates(const bb_cuda *e, uint32_t tile) {
  return e->tile[tile].mated ? ", mates" : "";
}

void bb_cuda_pass_over(bb_cuda *e, uint32_t stage) {
  for (uint32_t i = 0; e->leads && i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (s->kind != BB_TILE_LOAD || !e->tile[s->result].ring || s->stage != stage) continue;
    const char *name = e->tile[s->result].name;
    bb_cuda_line(e, "TL_ROLLED for (int i = 0; i < alone; i++) { // the mate's alone");
    bb_cuda_line(e, "  tl::ring_wait(sync.%s, %s_ring);", name, name);
    bb_cuda_line(e, "  tl::ring_release(sync.%s, %s_ring%s);", name, name,
                 bb_cuda_mates(e, s->result));
    bb_cuda_line(e, "}");
  }
}

const char **bb_cuda_names_of_both(bb_cuda *e) {
  const char **names = BB_NEW(e->arena, const char *, e->p->variables + 1);
  for (uint32_t i = 0; i < e->p->variables; i++) names[i] = e->variable[i];
  uint32_t along = e->pair->variable;
  names[along] = bb_infix(
      e->arena, names[along], "+",
      bb_infix(e->arena, "(mates - 1 - mine)", "*", bb_cuda_index(e, e->pair->step, NULL)));
  return names;
}
