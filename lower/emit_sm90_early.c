/* emit_sm90_early.c - what need not wait until earlier launches have ended.
 *
 * A launch may begin before the one before it has ended.  Until that has, it may read nothing that one writes; but what it
 * does not (a product's weights, while its other operand is still being made) may come at once: as much as there are
 * buffers for.  Where that is so of all that it reads, it runs ahead: it lets the next launch begin at once, and waits
 * only where it writes.  Which views those are, and whether it does, is known when the kernel is launched.
 */
#include "emit_sm90.h"

#define AHEAD "p.early >> 31" /* bit BB_AHEAD */

static bool reads_written(const bb_tile_program *p, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    const bb_tile_view *view = s->kind == BB_TILE_LOAD ? &p->view[s->view] : NULL;
    if (view && (view->written || view->scratch)) return true;
    if (reads_written(p, &s->body) || (s->loop && reads_written(p, &s->loop->body))) return true;
  }
  return false;
}

/* Parts that blocks leave in memory, and marks of nests before it, are what an earlier launch may have there, too. */
bool bb_cuda_may_run_ahead(const bb_cuda *e, const bb_tile_program *whole) {
  return !e->sm80 && !e->split && !e->marks && !bb_tile_nests_before(whole) &&
         whole->views <= BB_AHEAD && !reads_written(e->p, &e->p->body);
}

void bb_cuda_put_ahead(bb_cuda *e) {
  if (e->ahead) bb_cuda_line(e, "if (" AHEAD ") tl::let_next(); // it runs ahead");
}

void bb_cuda_put_begin(bb_cuda *e) {
  bb_cuda_line(e, "%stl::after_earlier();", e->ahead ? "if (!(" AHEAD ")) " : "");
}

void bb_cuda_put_write(bb_cuda *e) {
  if (e->ahead) bb_cuda_line(e, "if (" AHEAD ") tl::after_earlier();");
}

/* In the serial loop of the block's first tile, if that is one plain stretch. */
static bool may_be_early(const bb_cuda *e, const bb_tile_stmt *s) {
  const bb_cuda_tile *t = s->kind == BB_TILE_LOAD ? &e->tile[s->result] : NULL;
  return t && t->ring && bb_cuda_copies(e, s->result) && !t->stands && t->parts == 1 &&
         s->view < BB_AHEAD && !s->stretches;
}

static void put_loads(bb_cuda *e, const bb_tile_stmt *load) {
  const bb_tile *t = &e->p->tile[load->result];
  const bb_cuda_tile *c = &e->tile[load->result];
  bb_cuda_line(e, "if (p.early >> %u & 1) {", load->view);
  e->depth++;
  bb_cuda_line(
      e,
      "TL_ROLLED for (int ahead = first; %s_early < %u && ahead < last; ahead += %s, %s_early++) {",
      c->name, t->buffers, bb_cuda_index(e, e->serial->step, NULL), c->name);
  e->depth++;
  bb_cuda_line(e, "tl::barrier_expect(&sync.%s.full[%s_early], %s);", c->name, c->name,
               bb_cuda_load_bytes(e, load, 0));
  bb_cuda_load(
      e, load, 0,
      bb_arena_printf(e->arena, "tile_memory + %u + %s_early * %u", c->offset, c->name, c->stride),
      bb_arena_printf(e->arena, "&sync.%s.full[%s_early]", c->name, c->name));
  e->depth--;
  bb_cuda_line(e, "}");
  e->depth--;
  bb_cuda_line(e, "}");
}

void bb_cuda_early(bb_cuda *e) {
  const bb_tile_stretch *s = e->serial ? &e->serial->stretch[0] : NULL;
  bool plain = s && e->serial->stretches == 1 && s->to && !e->serial->down && !e->stages &&
               !e->marks && !(e->grids && e->grid[0]->rotate);
  bool any = false;
  for (uint32_t i = 0; plain && i < e->serial->body.count; i++) {
    const bb_tile_stmt *load = e->serial->body.stmt[i];
    if (!may_be_early(e, load)) continue;
    any = e->tile[load->result].early = true;
    bb_cuda_line(e, "int %s_early = 0; // buffers that are being filled",
                 e->tile[load->result].name);
  }
  if (any) {
    bb_cuda_line(e, "if (p.early && t < p.tiles) {");
    e->depth++;
    bb_cuda_line(e, "const Place place = place_of(p, t);");
    const char **now = e->variable;
    e->variable = bb_cuda_names_in(e, "place", "ahead");
    bb_cuda_line(e, "const int first = %s, last = %s;", bb_cuda_index(e, s->from, NULL),
                 bb_cuda_index(e, s->to, NULL));
    for (uint32_t i = 0; i < e->serial->body.count; i++)
      if (may_be_early(e, e->serial->body.stmt[i])) put_loads(e, e->serial->body.stmt[i]);
    e->variable = now;
    e->depth--;
    bb_cuda_line(e, "}");
  }
  bb_cuda_put_begin(e);
}
