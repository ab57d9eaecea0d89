/* forward.c - what a kernel keeps in memory of its own and reads again in the same iteration stays in its tile.
 *
 *   store s[i, 0:768] = t                 store s[i, 0:768] = t      (gone where nobody else reads s)
 *   ...                             ==>   ...
 *   u = load s[i, 0:768]                  u = t
 *
 * A list that passes between loops lies in scratch memory; where each of them has one iteration, its blocks are whole
 * lists, and memory is a detour.  Both statements take the same block, and between them nothing writes the tile or the
 * list.  Beyond the list's extent a load has its filling, and a tile what it has: only blocks that are known to lie
 * inside are forwarded.  A tile belongs to one task: outside all loops, and into a parallel one, memory is no detour.
 *
 * Threads of a GPU do not see what others wrote before a launch ends, so that for these a kernel's results are forwarded, too, all of them:
 * beyond an extent the filling is chosen.
 */
#include "forward.h"

#include "tile_edit.h"

static bool same_block(const bb_tile_program *p, const bb_tile_stmt *a, const bb_tile_stmt *b) {
  if (a->view != b->view) return false;
  for (uint32_t i = 0; i < p->view[a->view].rank; i++)
    if (a->range[i].start != b->range[i].start || a->range[i].size != b->range[i].size ||
        a->range[i].axis != b->range[i].axis)
      return false;
  return true;
}

/* Does a block lie inside of its list along an axis, whatever the extents are?  A single index does: no loop runs beyond. */
static bool is_within(const bb_tile_program *p, const bb_tile_stmt *s, uint32_t axis) {
  const bb_expr *start = s->range[axis].start, *extent = p->view[s->view].extent[axis];
  return !s->range[axis].size || (start->op == BB_X_CONST && extent->op == BB_X_CONST &&
                                  start->number + s->range[axis].size <= extent->number);
}

static bool is_inside(const bb_tile_program *p, const bb_tile_stmt *s) {
  for (uint32_t i = 0; i < p->view[s->view].rank; i++)
    if (!is_within(p, s, i)) return false;
  return true;
}

/* The loaded block of a tile: the tile where the list is, and the filling beyond. */
static bb_tile_stmt *copy_of(bb_tile_program *p, const bb_tile_stmt *load, uint32_t tile) {
  bb_program *home = p->home;
  bb_dtype dtype = p->tile[tile].dtype;
  bb_tile_stmt *copy = bb_tile_stmt_new(p, BB_TILE_MAP);
  copy->result = load->result;
  copy->operands = 1;
  copy->operand[0] = tile;
  copy->expr = bb_expr_arg(home, dtype, 0);
  for (uint32_t i = 0; i < p->view[load->view].rank; i++) {
    const bb_tile_range *r = &load->range[i];
    if (is_within(p, load, i)) continue;
    const bb_expr *end = bb_tile_index_in_map(p, p->view[load->view].extent[i]);
    const bb_expr *at = bb_expr_coord(home, r->axis == BB_AXIS_ROW ? BB_COORD_ROW : BB_COORD_COL);
    copy->at[r->axis == BB_AXIS_ROW ? 0 : 1] = r->start;
    copy->expr = bb_expr_make(home, BB_X_SELECT, bb_expr_make(home, BB_X_LT, at, end, NULL),
                              copy->expr, bb_expr_const(home, dtype, load->pad));
  }
  return copy;
}

static bool stores(const bb_tile_body *body, uint32_t view) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind == BB_TILE_STORE && s->view == view) return true;
    if (stores(&s->body, view) || (s->loop && stores(&s->loop->body, view))) return true;
  }
  return false;
}

/* The load at a place gives the tile that was stored: one of them serves for both where neither changes. */
static void replace(bb_tile_program *p, bb_tile_body *body, uint32_t at, uint32_t tile) {
  uint32_t loaded = body->stmt[at]->result;
  if (is_inside(p, body->stmt[at]) && bb_tile_writers(&p->body, tile) == 1 &&
      bb_tile_writers(&p->body, loaded) == 1) {
    bb_tile_remove(body, at);
    bb_tile_rename(&p->body, loaded, tile);
    return;
  }
  body->stmt[at] = copy_of(p, body->stmt[at], tile);
}

/* In the statements of a body from `at` on. */
static void forward(bb_tile_program *p, const bb_tile_stmt *stored, bb_tile_body *body,
                    uint32_t at) {
  uint32_t tile = stored->operand[0];
  while (at < body->count) {
    bb_tile_stmt *s = body->stmt[at];
    bb_tile_body self = {1, &body->stmt[at]};
    if (bb_tile_writes(s, tile) || stores(&self, stored->view)) return;
    forward(p, stored, &s->body, 0);
    if (s->loop && !s->loop->parallel) forward(p, stored, &s->loop->body, 0);
    if (s->kind == BB_TILE_LOAD && same_block(p, stored, s) &&
        bb_tile_have_one_form(&p->tile[tile], &p->tile[s->result]))
      replace(p, body, at, tile);
    if (at < body->count && body->stmt[at] == s) at++;
  }
}

static void forward_all(bb_tile_program *p, bb_tile_body *body, bool within, bool results) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool is = s->kind == BB_TILE_STORE && p->tile[s->operand[0]].dtype == p->view[s->view].dtype;
    if (is && within && (p->view[s->view].scratch ? is_inside(p, s) : results))
      forward(p, s, body, i + 1);
    forward_all(p, &body->stmt[i]->body, within, results);
    if (s->loop) forward_all(p, &s->loop->body, true, results);
  }
}

/* --- lists that nobody reads any more --- */

static void find_read(const bb_tile_body *body, bool *read) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind == BB_TILE_LOAD) read[s->view] = true;
    if (s->loop && s->loop->marked) read[s->loop->marks] = true;
    find_read(&s->body, read);
    if (s->loop) find_read(&s->loop->body, read);
  }
}

/* Without stores into lists that are not read, and what then is empty; the other views by their numbers from now on. */
static void keep(bb_tile_body *body, const uint32_t *now) {
  for (uint32_t i = body->count; i-- > 0;) {
    bb_tile_stmt *s = body->stmt[i];
    bool memory = s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE;
    keep(&s->body, now);
    if (s->loop) keep(&s->loop->body, now);
    if (s->loop && s->loop->marked) s->loop->marks = now[s->loop->marks];
    bool empty = s->kind == BB_TILE_WHEN && !s->body.count;
    empty |= s->loop && !s->loop->body.count && !s->loop->merge;
    if (empty || (memory && now[s->view] == BB_NONE))
      bb_tile_remove(body, i);
    else if (memory)
      s->view = now[s->view];
  }
}

static void drop_unread(bb_tile_program *p, uint32_t *now) {
  bool *read = BB_NEW(p->home->arena, bool, p->views + 1);
  uint32_t kept = 0;
  find_read(&p->body, read);
  for (uint32_t v = 0; v < p->views; v++) {
    now[v] = p->view[v].scratch && !read[v] ? BB_NONE : kept;
    if (now[v] != BB_NONE) p->view[kept++] = p->view[v];
  }
  keep(&p->body, now);
  p->views = kept;
}

void bb_tile_forward(bb_tile_program *program, bool results, uint32_t *now) {
  forward_all(program, &program->body, false, results);
  drop_unread(program, now);
}
