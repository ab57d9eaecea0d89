/* emit_sm90_edge.c - loads of rows of which some lie beyond an array.
 *
 * The copy engine fills what is beyond with zeros, and takes several times as long for such a row as for one that is
 * there: a product of 33 rows by tiles of 64 took half as long again as one of 64.  Rows along a loop over the grid need
 * no zeros, as what is made of them is stored nowhere, whatever they hold.  So the last block along it asks for a box of
 * fewer rows: how many an extent leaves is known at the launch, which makes a map for them.
 */
#include "emit_sm90.h"
#include "infix.h"

/* Where the rows of a load's tile are among the axes of its view. */
static uint32_t row_axis(const bb_cuda *e, const bb_tile_stmt *load) {
  for (uint32_t i = 0; i < e->p->view[load->view].rank; i++)
    if (load->range[i].size && load->range[i].axis == BB_AXIS_ROW) return i;
  return BB_NONE;
}

static uint32_t box_rows(const bb_cuda *e, const bb_tile_stmt *load) {
  return e->p->tile[load->result].rows / e->tile[load->result].parts;
}

static bool is_over_grid(const bb_cuda *e, bb_tile_index start) {
  for (uint32_t k = 0; k < e->grids; k++)
    if (start->op == BB_X_ARG && start->index == e->grid[k]->variable)
      return e->grid[k] != e->split;
  return false;
}

/* May rows be beyond the array, in a load that is made again and again? */
static bool has_edge(const bb_cuda *e, const bb_tile_stmt *load) {
  if (!bb_cuda_is_copied(e, load) || e->sm80 || e->warps) return false;
  const bb_cuda_tile *t = &e->tile[load->result];
  uint32_t axis = row_axis(e, load);
  if (t->mated || e->map[t->map].fold > 1 || axis == BB_NONE) return false;
  bb_tile_index extent = e->p->view[load->view].extent[axis];
  bool whole = extent->op == BB_X_CONST && (int64_t)extent->number % box_rows(e, load) == 0;
  return !whole && box_rows(e, load) > 8 && is_over_grid(e, load->range[axis].start);
}

void bb_cuda_find_edges(bb_cuda *e) {
  for (uint32_t i = 0; e->serial && i < e->serial->body.count; i++) {
    const bb_tile_stmt *load = e->serial->body.stmt[i];
    if (has_edge(e, load)) e->tile[load->result].edge = bb_cuda_add_edge(e, load);
  }
}

/* Rows that are there from `row` of the tile on. */
static const char *rows_left(const bb_cuda *e, const bb_tile_stmt *load, uint32_t row) {
  uint32_t axis = row_axis(e, load);
  const char *start = bb_cuda_index(e, load->range[axis].start, NULL);
  const char *extent = bb_cuda_index(e, e->p->view[load->view].extent[axis], NULL);
  if (row) start = bb_infix(e->arena, start, "+", bb_arena_printf(e->arena, "%u", row));
  return bb_infix(e->arena, extent, "-", start);
}

const char *bb_cuda_load_bytes(const bb_cuda *e, const bb_tile_stmt *load, uint32_t row) {
  uint32_t bytes = 2 * e->p->tile[load->result].cols, rows = box_rows(e, load);
  if (!e->tile[load->result].edge) return bb_arena_printf(e->arena, "%u", bytes * rows);
  return bb_arena_printf(e->arena, "%u * tl::edge<%u>(%s)", bytes, rows, rows_left(e, load, row));
}

const char *bb_cuda_box(bb_cuda *e, const bb_tile_stmt *load, uint32_t row) {
  const bb_cuda_tile *t = &e->tile[load->result];
  const char *whole = bb_arena_printf(e->arena, "&p.%s", e->map[t->map].name);
  if (!t->edge) return whole;
  const char *left = rows_left(e, load, row);
  if (t->parts > 1) bb_cuda_line(e, "if (%s > 0)", left);
  return bb_arena_printf(e->arena, "%s < %u ? &p.%s : %s", left, box_rows(e, load),
                         e->map[t->edge - 1].name, whole);
}
