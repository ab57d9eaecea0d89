/* nest_join.c - a loop over single indices of which several may be taken at once, as rows of one block.
 *
 * Rows of an image are blocks of few places.  Where all that differs along the loop has those places as rows, and what products multiply
 * them with does not differ, neighbours are one block of more rows (lower/rows.h): what they share is loaded once for all.
 */
#include "nest_walk.h"

/* Of a block that is longer already nothing more is shared. */
enum { MOST_PLACES = 32 };

static bool is_inside(const bb_nest *nest, uint32_t loop, uint32_t outer) {
  for (; loop != BB_NONE; loop = nest->loop[loop].parent)
    if (loop == outer) return true;
  return false;
}

/* A term of a block of rows: all of the loop's have them, and all that have them are the loop's. */
static bool fits(const bb_nest *nest, const bb_nest_term *t, uint32_t loop, uint32_t rows) {
  bool has = t->axis[0] == rows, inside = is_inside(nest, t->loop, loop);
  if (t->axis[1] == rows || t->axis[2] == rows) return false;
  if (!inside) return !has;
  bool differs = !(t->apart >> loop & 1);
  bool listed = t->kind == BB_NEST_LIST_LOAD || t->kind == BB_NEST_LIST_STORE;
  return differs ? has && !listed : !has && t->kind != BB_NEST_STORE;
}

/* One loop of the grid cuts them, an axis of so many places, whatever the run tells. */
static bool are_places(const bb_nest_walker *w, uint32_t rows) {
  const bb_nest *nest = w->nest;
  uint32_t loops = 0;
  int64_t places = bb_extent_value(bb_dim_get(w->program, nest->size[rows].dim)->extent);
  for (uint32_t i = 0; i < nest->loops; i++) {
    if (nest->loop[i].size != rows) continue;
    if (!nest->loop[i].grid) return false;
    loops++;
  }
  return loops == 1 && !nest->size[rows].whole && places > 0 && places <= MOST_PLACES;
}

static bool may_join(const bb_nest_walker *w, uint32_t loop, uint32_t rows) {
  const bb_nest *nest = w->nest;
  for (uint32_t i = 0; i < nest->terms; i++)
    if (!fits(nest, &nest->term[i], loop, rows)) return false;
  for (uint32_t i = 0; i < nest->classes; i++)
    if (nest->class[i].axis[1] == rows) return false;
  return are_places(w, rows);
}

/* The rows of a product that differs along the loop; BB_NONE: there is none. */
static uint32_t rows_of(const bb_nest *nest, uint32_t loop) {
  for (uint32_t i = 0; i < nest->terms; i++) {
    const bb_nest_term *t = &nest->term[i];
    if (t->kind == BB_NEST_DOT && is_inside(nest, t->loop, loop) && !(t->apart >> loop & 1))
      return t->axis[0];
  }
  return BB_NONE;
}

void bb_nest_find_joined(bb_nest_walker *w) {
  bb_nest *nest = w->nest;
  for (uint32_t i = nest->loops; i-- > 0;) { /* inner ones first: their neighbours lie closer */
    const bb_nest_loop *loop = &nest->loop[i];
    if (!loop->grid || loop->size != BB_NONE || (w->apart >> i & 1) || nest->sizes == BB_NEST_SIZES)
      continue;
    uint32_t rows = rows_of(nest, i);
    if (rows == BB_NONE || !may_join(w, i, rows)) continue;
    nest->joined = i;
    nest->rows = rows;
    nest->together = bb_nest_add_size(w, loop->dim, false);
    return;
  }
}
