/* emit_sm90_edge.c - loads of rows of which some lie beyond an array.
 *
 * The copy engine fills what is beyond with zeros, and takes several times as long for such a row as for one that is
 * there: a product of 33 rows by tiles of 64 took half as long again as one of 64.  Rows along a loop over the grid need
 * no zeros where what is made of them is stored along it, too, and nowhere else: whatever they hold.  So the last block
 * along it asks for a box of fewer rows: how many an extent leaves is known at the launch, which makes a map for them.
 */
#include "affine.h"
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

/* --- where rows begin and end --- */

static const bb_tile_loop *grid_of(const bb_cuda *e, bb_tile_index variable) {
  for (uint32_t k = 0; variable->op == BB_X_ARG && k < e->grids; k++)
    if (e->grid[k]->variable == variable->index && e->grid[k] != e->split) return e->grid[k];
  return NULL;
}

static bool ends_at(bb_tile_index to, bb_tile_index extent) {
  return to == extent || (to->op == BB_X_MIN && (to->a[0] == extent || to->a[1] == extent));
}

/* --- where they go --- */

/* Which tiles' rows and columns come from those of one tile, statement by statement. */
typedef struct flow {
  const bb_cuda *e;
  uint32_t tile;
  bb_tile_index variable, extent; /* what its rows lie along */
  bool *along[2];
  bool wrong; /* what is there goes into what is not along it */
} flow;

static bool has_axis(const flow *f, uint32_t tile, uint32_t axis) {
  return axis ? f->e->p->tile[tile].cols > 0 : f->e->p->tile[tile].rows > 0;
}

/* Of a load or store: does that axis of its tile begin where the loop stands, and end with the same extent? */
static bool is_there(const flow *f, const bb_tile_stmt *s, uint32_t axis) {
  const bb_tile_view *view = &f->e->p->view[s->view];
  for (uint32_t i = 0; i < view->rank; i++)
    if (s->range[i].size && (s->range[i].axis == BB_AXIS_COL) == (axis == 1))
      return s->range[i].start == f->variable && view->extent[i] == f->extent;
  return false;
}

/* What an axis of the statement's result has from one of an operand; of a product, a fold or a scan the axis that is summed
 * along has nothing to go to. */
static void follow_operand(flow *f, const bb_tile_stmt *s, uint32_t i, uint32_t axis, bool *made) {
  bool folds = s->kind == BB_TILE_FOLD || s->kind == BB_TILE_SCAN;
  uint32_t to = axis;
  if (!f->along[axis][s->operand[i]]) return;
  if (s->kind == BB_TILE_STORE) f->wrong |= !is_there(f, s, axis);
  if (s->kind == BB_TILE_TRANSPOSE) to = !axis;
  if (folds) f->wrong |= (s->axis == BB_AXIS_COL) == (axis == 1);
  if (s->kind == BB_TILE_DOT) {
    to = i;
    f->wrong |= axis != (s->transposed[i] ? !i : i);
  }
  if (s->result == BB_NONE || s->kind == BB_TILE_ANY) return; /* an answer is one for all rows */
  f->wrong |= !has_axis(f, s->result, to);
  made[to] = true;
}

static void follow_merge(flow *f, const bb_tile_loop *loop) {
  for (uint32_t i = 0; i < loop->merge->components; i++)
    for (uint32_t k = 0; k < loop->merge->components; k++)
      for (uint32_t axis = 0; axis < 2; axis++)
        f->along[axis][loop->merged[k]] |=
            f->along[axis][loop->merged[i]] && has_axis(f, loop->merged[k], axis);
}

static void follow_body(flow *f, const bb_tile_body *body, bool always);

/* Until what the end of an iteration hands on is known at its begin. */
static void follow_loop(flow *f, const bb_tile_loop *loop) {
  uint32_t tiles = f->e->p->tiles;
  bool *before = BB_NEW(f->e->arena, bool, 2 * tiles + 1), grows = true;
  while (grows) {
    grows = false;
    for (uint32_t i = 0; i < 2 * tiles; i++) before[i] = f->along[i / tiles][i % tiles];
    follow_body(f, &loop->body, true);
    for (uint32_t i = 0; i < 2 * tiles; i++) {
      grows |= f->along[i / tiles][i % tiles] && !before[i];
      f->along[i / tiles][i % tiles] |= before[i];
    }
  }
  if (loop->merge) follow_merge(f, loop);
}

/* always: its statements run whenever what is around them does. */
static void follow_body(flow *f, const bb_tile_body *body, bool always) {
  for (uint32_t at = 0; at < body->count; at++) {
    const bb_tile_stmt *s = body->stmt[at];
    bool made[2] = {s->kind == BB_TILE_LOAD && s->result == f->tile, false};
    for (uint32_t i = 0; i < s->operands; i++)
      for (uint32_t axis = 0; axis < 2; axis++) follow_operand(f, s, i, axis, made);
    if (made[0] && s->kind == BB_TILE_LOAD) f->wrong |= !is_there(f, s, 0);
    bool anew = always && !s->stretches && !s->accumulate;
    for (uint32_t axis = 0; axis < 2 && s->result != BB_NONE; axis++) {
      f->along[axis][s->result] = made[axis] || (!anew && f->along[axis][s->result]);
      if (s->second != BB_NONE) f->along[axis][s->second] |= made[axis];
    }
    follow_body(f, &s->body, false);
    if (s->loop) follow_loop(f, s->loop);
  }
}

/* Does what is made of a tile's rows stay along the loop that they lie along? */
static bool stays(const bb_cuda *e, uint32_t tile, bb_tile_index variable, bb_tile_index extent) {
  flow f = {.e = e, .tile = tile, .variable = variable, .extent = extent};
  for (uint32_t axis = 0; axis < 2; axis++) f.along[axis] = BB_NEW(e->arena, bool, e->p->tiles + 1);
  follow_body(&f, &e->p->body, true);
  return !f.wrong;
}

/* --- */

/* May rows be beyond the array, in a load that is made again and again? */
static bool has_edge(const bb_cuda *e, const bb_tile_stmt *load) {
  if (!bb_cuda_is_copied(e, load) || e->sm80 || e->warps) return false;
  const bb_cuda_tile *t = &e->tile[load->result];
  uint32_t axis = row_axis(e, load), rows = e->p->tile[load->result].rows;
  if (bb_tile_has_two_rows(load, e->p->view[load->view].rank)) return false;
  if (t->mated || e->map[t->map].fold > 1 || axis == BB_NONE || box_rows(e, load) <= 8)
    return false;
  bb_tile_index extent = e->p->view[load->view].extent[axis], start = load->range[axis].start;
  if (extent->op == BB_X_CONST && (int64_t)extent->number % rows == 0) return false;
  const bb_tile_loop *loop = grid_of(e, start);
  return loop && bb_affine_is_multiple(start, rows, e->grid, e->grids) &&
         ends_at(loop->stretch[0].to, extent) && stays(e, load->result, start, extent);
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
  const bb_tile *t = &e->p->tile[load->result];
  uint32_t bytes = bb_tile_shared_bytes(t) / t->rows, rows = box_rows(e, load);
  uint32_t rank = e->p->view[load->view].rank;
  if (bb_tile_has_two_rows(load, rank)) rows = bb_tile_rows_taken(load, rank);
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
