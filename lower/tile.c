/* tile.c - tile programs as data: making them, comparing them. */
#include "tile.h"
#include "../graph/text_name.h"

#include <string.h>

bool bb_tile_name_is_good(const char *name) {
  static const char *const words[] = {
      "view",           "tile",     "monoid",  "roles",  "parallel", "serial",    "load",
      "store",          "dot",      "any",     "if",     "when",     "merge",     "to",
      "then",           "down",     "over",    "else",   "by",       "left",      "shared",
      "stage",          "grid",     "cluster", "warps",  "queue",    "rotate",    "turns",
      "groups",         "copier",   "extent",  "output", "fold",     "transpose", "scan",
      "scan_exclusive", "in",       "scratch", "below",  "at",       "registers", "partial",
      "persistent",     "commutes", "panels",  "pairs",  "where",    "anywhere",  "padded"};
  for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i], name) == 0) return false;
  return bb_name_is_plain(name) && !strchr(name, '.');
}

bb_tile_program *bb_tile_create(bb_program *home, const char *name) {
  bb_tile_program *p = BB_NEW(home->arena, bb_tile_program, 1);
  p->home = home;
  p->name = bb_arena_text(home->arena, name, strlen(name));
  return p;
}

uint32_t bb_tile_add_variable(bb_tile_program *p, const char *name, bool extent) {
  BB_GROW(p->home->arena, p->variable, p->variable_capacity, p->variables + 1);
  const char *end = bb_tile_name_is_good(name) ? "" : "_"; /* i8, i32: types */
  p->variable[p->variables] = bb_arena_printf(p->home->arena, "%s%s", name, end);
  p->extents += extent;
  return p->variables++;
}

uint32_t bb_tile_add_view(bb_tile_program *p, const bb_tile_view *view) {
  BB_GROW(p->home->arena, p->view, p->view_capacity, p->views + 1);
  p->view[p->views] = *view;
  p->view[p->views].name = bb_arena_text(p->home->arena, view->name, strlen(view->name));
  return p->views++;
}

uint32_t bb_tile_add(bb_tile_program *p, const bb_tile *tile) {
  BB_GROW(p->home->arena, p->tile, p->tile_capacity, p->tiles + 1);
  p->tile[p->tiles] = *tile;
  p->tile[p->tiles].name = bb_arena_text(p->home->arena, tile->name, strlen(tile->name));
  return p->tiles++;
}

void bb_tile_add_monoid(bb_tile_program *p, const bb_tile_monoid *monoid) {
  BB_GROW(p->home->arena, p->monoid, p->monoid_capacity, p->monoids + 1);
  p->monoid[p->monoids++] = monoid;
}

bb_tile_stmt *bb_tile_append(bb_tile_program *p, bb_tile_body *body, bb_tile_kind kind) {
  bb_arena *arena = p->home->arena;
  bb_tile_stmt *stmt = BB_NEW(arena, bb_tile_stmt, 1);
  stmt->kind = kind;
  stmt->result = stmt->second = stmt->view = BB_NONE;
  if (kind == BB_TILE_LOOP) stmt->loop = BB_NEW(arena, bb_tile_loop, 1);
  if ((body->count & (body->count - 1)) == 0) { /* full: 0, 1, 2, 4, ... */
    bb_tile_stmt **more = BB_NEW(arena, bb_tile_stmt *, body->count ? 2 * body->count : 1);
    if (body->count) memcpy(more, body->stmt, body->count * sizeof *more);
    body->stmt = more;
  }
  body->stmt[body->count++] = stmt;
  return stmt;
}

uint32_t bb_tile_nests_before(const bb_tile_program *p) {
  for (uint32_t i = 0; i < p->body.count; i++) {
    const bb_tile_loop *loop = p->body.stmt[i]->loop;
    if (!loop || loop->spread != BB_SPREAD_GRID || loop->merge) return 0;
  }
  return p->body.count ? p->body.count - 1 : 0;
}

bb_tile_program bb_tile_part(const bb_tile_program *p, uint32_t from, uint32_t to) {
  bb_tile_program part = *p;
  part.body = (bb_tile_body){to - from, p->body.stmt + from};
  return part;
}

int64_t bb_tile_index_value(bb_tile_index index, const double *variable) {
  return (int64_t)bb_expr_eval(index, &(bb_expr_env){.arg = variable});
}

bool bb_tile_equal(const bb_tile_program *a, const bb_tile_program *b) {
  bb_arena *scratch = bb_scratch(a->home->ctx);
  bb_buffer left = {.arena = scratch}, right = {.arena = scratch};
  bb_tile_print(&left, a);
  bb_tile_print(&right, b);
  bool equal = left.length == right.length && memcmp(left.data, right.data, left.length) == 0;
  bb_scratch_end(scratch);
  return equal;
}
