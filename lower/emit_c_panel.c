/* emit_c_panel.c - blocks of constants as the CPU's products take them.
 *
 * A product holds vectors of its result; along them lie the elements of one operand, which it packs into panels
 * (device/cpu_product.h).  Where that operand is a block of a constant, it is packed once, at load: the part copies
 * each block that a load asks for, filled as the load fills it, into a view of panels.  It takes the
 * constant's size in memory again.  Integers are packed as bytes where they turn out to be some, behind what says so: for that a
 * block has a row more (device/cpu_byte_product.h).
 */
#include "constant.h"
#include "emit_c_parts.h"
#include "tile_edit.h"

#include <string.h>

/* Blocks may take up so many times what the constant does (a fourth of a vector is there), or so many elements. */
enum { MOST_ROOM = 4, SMALL_ROOM = 1 << 16 };

typedef struct finding {
  const bb_c *c;
  uint32_t tile;
  bb_tile_stmt *load;
  uint32_t writers, users; /* statements that write it, that read it */
  bool by_row;             /* vectors lie along its rows */
  bool fits;
} finding;

/* Every reader is a product. */
static void note_product(void *user, bb_tile_body *body, uint32_t at) {
  finding *f = user;
  bb_tile_stmt *s = body->stmt[at];
  if (s->result == f->tile) f->writers++;
  if (s->kind == BB_TILE_LOAD && s->result == f->tile) f->load = s;
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->operand[i] == f->tile) f->fits &= s->kind == BB_TILE_DOT;
}

/* Every product has it on its vector side, always the same way. */
static void note_use(void *user, bb_tile_body *body, uint32_t at) {
  finding *f = user;
  const bb_tile_stmt *s = body->stmt[at];
  for (uint32_t i = 0; i < s->operands; i++) {
    if (s->operand[i] != f->tile) continue;
    uint32_t side = f->c->tile[s->result].turned ? 0 : 1;
    bool by_row = (side == 0) != s->transposed[side];
    f->fits &= i == side && (!f->users || by_row == f->by_row) && s->operand[0] != s->operand[1];
    f->by_row = by_row;
    f->users++;
  }
}

/* The loops around the load, from the outermost on; false: it may not run. */
static bool find_around(const bb_tile_body *body, const bb_tile_stmt *load,
                        const bb_tile_loop **around, uint32_t *count, bool *found) {
  for (uint32_t i = 0; i < body->count && !*found; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s == load) *found = true;
    if (!find_around(&s->body, load, around, count, found) || (*found && s != load)) return false;
    if (!s->loop || *found) continue;
    around[(*count)++] = s->loop;
    if (!find_around(&s->loop->body, load, around, count, found)) return false;
    if (!*found) --*count;
  }
  return true;
}

/* Those that its indices name; false: it may not run, or their values are not known. */
static bool find_loops(const bb_tile_program *p, const bb_tile_stmt *load, bb_part_loops *loops) {
  bb_arena *arena = p->home->arena;
  const bb_tile_loop **around = BB_NEW(arena, const bb_tile_loop *, p->variables + 1);
  bool *named = BB_NEW(arena, bool, p->variables + 1), found = false;
  uint32_t count = 0;
  if (!find_around(&p->body, load, around, &count, &found) || !found) return false;
  for (uint32_t i = 0; i < count; i++) named[i] = bb_tile_load_varies(p, load, around[i]->variable);
  return bb_part_find_loops(p, around, named, count, 2, loops);
}

static double elements_of(const bb_tile_view *view) {
  double count = 1;
  for (uint32_t i = 0; i < view->rank; i++) count *= view->extent[i]->number;
  return count;
}

static bool is_number_view(const bb_tile_view *view) {
  for (uint32_t i = 0; i < view->rank; i++)
    if (view->extent[i]->op != BB_X_CONST) return false;
  return true;
}

static uint32_t up_to(uint32_t size, uint32_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/* The rows and columns of the tile: one is the product's depth, one lies along its vectors. */
static void set_ranges(bb_tile_program *p, const bb_part_loops *loops, const bb_tile *tile,
                       bool by_row, bb_tile_stmt *s) {
  bb_tile_index zero = bb_expr_const(p->home, BB_I64, 0);
  bb_tile_range row = {zero, tile->rows, BB_AXIS_ROW}, col = {zero, tile->cols, BB_AXIS_COL};
  uint32_t k = 0;
  memset(s->range, 0, sizeof s->range);
  for (; k < loops->count; k++) s->range[k].start = bb_part_index(p, loops, k);
  s->range[k++] = by_row ? col : row;
  s->range[k] = by_row ? row : col;
}

static bb_tile_view panels_of(bb_tile_program *p, const bb_part_loops *loops, const bb_tile *tile,
                              bool by_row) {
  bb_program *home = p->home;
  bb_tile_view view = {.dtype = tile->dtype, .panels = true};
  view.name = bb_arena_printf(home->arena, "part%u", p->views);
  for (uint32_t k = 0; k < loops->count; k++)
    view.extent[view.rank++] = bb_expr_const(home, BB_I64, (double)loops->loop[k].trips);
  uint32_t depth = by_row ? tile->cols : tile->rows, along = by_row ? tile->rows : tile->cols;
  view.extent[view.rank++] =
      bb_expr_const(home, BB_I64, depth + (bb_dtype_is_float(tile->dtype) ? 0 : 1));
  view.extent[view.rank++] = bb_expr_const(home, BB_I64, up_to(along, bb_tile_panel(view.dtype)));
  return view;
}

static void lay_out(bb_tile_program *p, bb_constant_parts *parts, const finding *f,
                    const bb_part_loops *loops) {
  bb_tile_view view = panels_of(p, loops, &p->tile[f->tile], f->by_row);
  double room = elements_of(&view);
  if (room > SMALL_ROOM && room > MOST_ROOM * elements_of(&p->view[f->load->view])) return;
  bb_tile_body *body;
  bb_tile_program *part = bb_part_begin(p, loops, &body);
  uint32_t made = bb_tile_add_view(p, &view);
  view.written = true;
  bb_tile_add_view(part, &view);
  bb_tile_push(part, body, bb_tile_copy(part, f->load));
  bb_tile_stmt *store = bb_tile_append(part, body, BB_TILE_STORE);
  store->view = made;
  store->operands = 1;
  store->operand[0] = f->tile;
  set_ranges(p, loops, &p->tile[f->tile], f->by_row, store);
  bb_part_end(parts, part, made);
  f->load->view = made;
  f->load->pad = 0;
  set_ranges(p, loops, &p->tile[f->tile], f->by_row, f->load);
}

static bool may_lie(const bb_tile_program *p, const bb_constant_parts *parts, const finding *f) {
  const bb_tile *t = &p->tile[f->tile];
  if (!f->load || !f->fits || f->writers != 1 || f->load->stretches ||
      f->load->view >= parts->views || !parts->constant[f->load->view] ||
      !is_number_view(&p->view[f->load->view]) ||
      !(bb_dtype_is_float(t->dtype) || t->dtype == BB_I32) || t->rows < 2 || t->cols < 2)
    return false;
  for (uint32_t i = 0; i < p->view[f->load->view].rank; i++)
    if (!bb_index_is_known(p, f->load->range[i].start)) return false;
  return true;
}

void bb_panel_constants(bb_tile_program *p, bb_constant_parts *parts) {
  bb_buffer out = {.arena = p->home->arena};
  bb_c c = {.out = &out, .p = p, .strips.variable = BB_NONE};
  bool any = false;
  for (uint32_t i = 0; i < parts->views; i++) any |= parts->constant[i];
  if (!any) return;
  c.tile = BB_NEW(out.arena, bb_c_tile, p->tiles + 1);
  finding *all = BB_NEW(out.arena, finding, p->tiles + 1);
  for (uint32_t i = 0; i < p->tiles; i++) {
    all[i] = (finding){.c = &c, .tile = i, .fits = true};
    bb_tile_walk(&p->body, note_product, &all[i]);
    c.tile[i].packable = may_lie(p, parts, &all[i]);
  }
  bb_c_lay_out(&c);
  for (uint32_t i = 0; i < p->tiles; i++) {
    bb_part_loops loops = {0};
    if (!c.tile[i].packable) continue;
    bb_tile_walk(&p->body, note_use, &all[i]);
    if (all[i].fits && all[i].users && find_loops(p, all[i].load, &loops))
      lay_out(p, parts, &all[i], &loops);
  }
}
