/* emit_c_strip.c - rows of blocks, a few at a time.
 *
 * Where one product takes what was computed from another, in a loop, the block between them is written and read
 * several times, and may be larger than the first cache.  If rows (or columns) of all that depends on it
 * do not know each other, the loop's body runs for a strip of them after the other: what lies between the products
 * then has only so many, and its strip, as wide as a panel or a half or quarter of one, is an operand that
 * needs no packing.
 *
 * The program is copied; its blocks along that axis become strips, and what passes from one loop over
 * strips to another is there for each strip (bb_c_strips.passes).
 */
#include "bounds.h"
#include "emit_c_parts.h"
#include "tile_edit.h"

#include <string.h>

enum { LEAST_STRIP = 16, LEAST_BYTES = 1 << 15 };

typedef struct stripping {
  bb_arena *arena;
  bb_tile_program *p;
  bb_c_axes axes;
  uint32_t axis;  /* the class that is cut */
  uint32_t most;  /* of it in a strip */
  uint32_t strip; /* in one, as it is */
  uint32_t variable;
  uint32_t loops; /* over strips, so far */
  uint32_t *seen; /* by tile: the loop that has it, from 1; BB_NONE: several */
} stripping;

static bool has_axis(stripping *w, uint32_t tile, uint32_t k) {
  return bb_c_axis_size(w->p, 2 * tile + k) && bb_c_axis(&w->axes, 2 * tile + k) == w->axis;
}

static bool touches(stripping *w, const bb_tile_stmt *s) {
  bool is = s->result != BB_NONE && (has_axis(w, s->result, 0) || has_axis(w, s->result, 1));
  for (uint32_t i = 0; i < s->operands; i++)
    is |= has_axis(w, s->operand[i], 0) || has_axis(w, s->operand[i], 1);
  return is;
}

/* --- is it worth it, and along which axis? --- */

uint32_t bb_c_panel(uint32_t vector_bytes) {
  return (vector_bytes == 64 ? 4 : 2) * vector_bytes / (uint32_t)sizeof(float);
}

/* Of an axis in a strip; 0: it cannot be cut. */
static uint32_t strip_of(const stripping *w, uint32_t size) {
  for (uint32_t strip = w->most; strip >= LEAST_STRIP; strip /= 2)
    if (size > strip && size % strip == 0) return strip;
  return 0;
}

/* A block between two products of a body, on the vector side of both if rows come first; gives its axis. */
static bool between_products(stripping *w, const bb_tile_body *body) {
  bool *made = BB_NEW(w->arena, bool, w->p->tiles + 1);
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool of_product = false;
    for (uint32_t k = 0; k < s->operands; k++) of_product |= made[s->operand[k]];
    if (s->kind == BB_TILE_DOT && made[s->operand[0]]) {
      const bb_tile *t = &w->p->tile[s->operand[0]];
      uint32_t axis = bb_c_axis(&w->axes, 2 * s->operand[0] + s->transposed[0]);
      w->strip = strip_of(w, bb_c_axis_size(w->p, axis));
      if (t->dtype == BB_F32 && !w->axes.together[axis] && w->strip &&
          (int64_t)t->rows * t->cols * 4 > LEAST_BYTES) {
        w->axis = axis;
        return true;
      }
    }
    if (s->kind == BB_TILE_DOT || (s->kind == BB_TILE_MAP && of_product)) made[s->result] = true;
  }
  return false;
}

static bool find_body(stripping *w, const bb_tile_body *body, bool serial) {
  if (serial && between_products(w, body)) return true;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (find_body(w, &s->body, false)) return true;
    if (s->loop && find_body(w, &s->loop->body, !s->loop->parallel)) return true;
  }
  return false;
}

/* --- the copy --- */

static bool holds_axis(stripping *w, const bb_tile_stmt *s) {
  for (uint32_t i = 0; i < s->body.count; i++)
    if (touches(w, s->body.stmt[i]) || holds_axis(w, s->body.stmt[i])) return true;
  for (uint32_t i = 0; s->loop && i < s->loop->body.count; i++)
    if (touches(w, s->loop->body.stmt[i]) || holds_axis(w, s->loop->body.stmt[i])) return true;
  return false;
}

static bb_tile_index further(stripping *w, bb_tile_index index) {
  return bb_expr_make(w->p->home, BB_X_ADD, index, bb_expr_arg(w->p->home, BB_I64, w->variable),
                      NULL);
}

/* The statement for one strip. */
static void cut(stripping *w, bb_tile_stmt *s) {
  bool memory = s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE;
  uint32_t tile = s->kind == BB_TILE_STORE ? s->operand[0] : s->result;
  for (uint32_t i = 0; memory && i < w->p->view[s->view].rank; i++) {
    bb_tile_range *r = &s->range[i];
    if (!r->size || !has_axis(w, tile, r->axis == BB_AXIS_COL)) continue;
    r->start = further(w, r->start);
    r->size = w->strip;
  }
  for (uint32_t k = 0; k < 2; k++)
    if (s->at[k] && s->result != BB_NONE && has_axis(w, s->result, k))
      s->at[k] = further(w, s->at[k]);
}

static void note_tile(stripping *w, uint32_t tile) {
  if (tile == BB_NONE || !(has_axis(w, tile, 0) || has_axis(w, tile, 1))) return;
  uint32_t *seen = &w->seen[tile];
  *seen = *seen == 0 || *seen == w->loops ? w->loops : BB_NONE;
}

/* May a statement that does not know the axis stand before the loop over strips that is being filled? */
static bool may_pass(const bb_tile_loop *loop, const bb_tile_stmt *s) {
  if (s->kind == BB_TILE_LOOP || s->kind == BB_TILE_IF || s->kind == BB_TILE_WHEN ||
      s->kind == BB_TILE_STORE)
    return false;
  for (uint32_t i = 0; i < loop->body.count; i++) {
    const bb_tile_stmt *with = loop->body.stmt[i];
    if (with->kind == BB_TILE_STORE || bb_tile_reads(with, s->result) ||
        (s->second != BB_NONE && bb_tile_reads(with, s->second)))
      return false;
  }
  return true;
}

static bb_tile_stmt *begin_strips(stripping *w, uint32_t size) {
  bb_program *home = w->p->home;
  bb_tile_stmt *s = bb_tile_stmt_new(w->p, BB_TILE_LOOP);
  s->loop->variable = w->variable;
  s->loop->step = bb_expr_const(home, BB_I64, w->strip);
  s->loop->stretches = 1;
  s->loop->stretch[0] =
      (bb_tile_stretch){bb_expr_const(home, BB_I64, 0), bb_expr_const(home, BB_I64, size)};
  w->loops++;
  return s;
}

static bb_tile_body copy(stripping *w, const bb_tile_body *from, uint32_t size) {
  bb_tile_body to = {0};
  bb_tile_stmt *strips = NULL; /* the last statement of `to`, while it may grow */
  for (uint32_t i = 0; i < from->count; i++) {
    const bb_tile_stmt *s = from->stmt[i];
    if (!touches(w, s) || s->kind == BB_TILE_LOOP) {
      bb_tile_stmt *same = BB_NEW(w->arena, bb_tile_stmt, 1);
      *same = *s;
      same->body = copy(w, &s->body, size);
      if (s->loop) {
        same->loop = BB_NEW(w->arena, bb_tile_loop, 1);
        *same->loop = *s->loop;
        same->loop->body = copy(w, &s->loop->body, size);
      }
      bool passes = strips && !holds_axis(w, s) && may_pass(strips->loop, s);
      bb_tile_insert(w->p, &to, passes ? to.count - 1 : to.count, same);
      if (!passes) strips = NULL;
      continue;
    }
    if (!strips) {
      strips = begin_strips(w, size);
      bb_tile_push(w->p, &to, strips);
    }
    bb_tile_stmt *one = bb_tile_copy(w->p, s);
    cut(w, one);
    bb_tile_push(w->p, &strips->loop->body, one);
    note_tile(w, one->result);
    for (uint32_t k = 0; k < one->operands; k++) note_tile(w, one->operand[k]);
  }
  return to;
}

static void resize(stripping *w, uint32_t tile) {
  bb_tile *t = &w->p->tile[tile];
  if (has_axis(w, tile, 0))
    t->rows = w->strip;
  else if (has_axis(w, tile, 1))
    t->cols = w->strip;
}

/* Where a mask confines the blocks of a loop, it confines the strips of those on its edge. */
static void bound_strips(stripping *w, bb_tile_body *body, bb_tile_ends *ends) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    bound_strips(w, &s->body, ends);
    if (!s->loop) continue;
    if (s->loop->variable != w->variable) {
      bound_strips(w, &s->loop->body, ends);
      continue;
    }
    bb_tile_bound_inner(w->p, s->loop);
    if (ends->tile == BB_NONE) *ends = bb_tile_find_ends(w->p, s->loop);
    if (ends->tile != BB_NONE && has_axis(w, ends->tile, 1)) ends->tile = BB_NONE;
  }
}

/* Is it one range of all that is loaded and stored along it? */
static bool is_moved_whole(stripping *w, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool moves = s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE;
    uint32_t tile = s->kind == BB_TILE_STORE ? s->operand[0] : s->result;
    if (moves && bb_tile_has_two_rows(s, w->p->view[s->view].rank) && has_axis(w, tile, 0))
      return false;
    if (!is_moved_whole(w, &s->body) || (s->loop && !is_moved_whole(w, &s->loop->body)))
      return false;
  }
  return true;
}

const bb_tile_program *bb_c_strip(bb_arena *arena, const bb_tile_program *program,
                                  uint32_t vector_bytes, bb_c_strips *strips) {
  bb_tile_program *p = BB_NEW(arena, bb_tile_program, 1);
  *p = *program;
  stripping w = {.arena = arena, .p = p, .most = bb_c_panel(vector_bytes)};
  *strips = (bb_c_strips){.variable = BB_NONE, .ends.tile = BB_NONE};
  w.axes = bb_c_axes_find(arena, p);
  if (!find_body(&w, &p->body, false)) return program;
  uint32_t size = bb_c_axis_size(p, w.axis);
  if (!is_moved_whole(&w, &p->body)) return program;
  p->tile = BB_NEW(arena, bb_tile, p->tiles + 1);
  memcpy(p->tile, program->tile, p->tiles * sizeof *p->tile);
  p->variable = BB_NEW(arena, const char *, p->variables + 1);
  memcpy(p->variable, program->variable, p->variables * sizeof *p->variable);
  w.variable = p->variables;
  p->variable[p->variables++] = "strip";
  w.seen = BB_NEW(arena, uint32_t, p->tiles + 1);
  p->body = copy(&w, &program->body, size);
  *strips = (bb_c_strips){
      w.variable,       w.strip, size / w.strip, p->tiles, BB_NEW(arena, bool, p->tiles + 1),
      {.tile = BB_NONE}};
  for (uint32_t t = 0; t < p->tiles; t++) strips->passes[t] = w.seen[t] == BB_NONE;
  for (uint32_t t = 0; t < p->tiles; t++) resize(&w, t);
  bound_strips(&w, &p->body, &strips->ends);
  return p;
}
