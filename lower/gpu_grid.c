/* gpu_grid.c - the loops around a kernel's core go over the grid: in which order, so that caches hold what neighbours read
 * again, and what blocks take one after the other.
 */
#include "gpu_place.h"

enum {
  /* Blocks of rows that run beside each other, in as many columns as there are processors for. */
  ROWS_TOGETHER = 16,
  L2_BYTES = 32 << 20
};

bool bb_gpu_varies_with(const bb_gpu_placer *w, uint32_t variable) {
  for (uint32_t i = 0; w->serial && i < w->serial->stretches; i++) {
    const bb_tile_stretch *s = &w->serial->stretch[i];
    if (bb_expr_uses_arg(s->from, variable) || (s->to && bb_expr_uses_arg(s->to, variable)))
      return true;
  }
  return false;
}

/* times * product, of extents; times 0: nothing yet */
typedef struct amount {
  double times;
  bb_tile_index product;
} amount;

static amount read_by(const bb_gpu_placer *w, const bb_tile_stmt *load, uint32_t variable) {
  bb_program *home = w->p->home;
  const bb_tile_view *view = &w->p->view[load->view];
  amount a = {(double)bb_dtype_bytes(view->dtype), bb_expr_const(home, BB_I64, 1)};
  for (uint32_t k = 0; k < view->rank; k++) {
    bb_tile_index extent = view->extent[k];
    if (bb_expr_uses_arg(load->range[k].start, variable)) continue;
    if (extent->op == BB_X_CONST)
      a.times *= extent->number;
    else
      a.product = bb_expr_make(home, BB_X_MUL, a.product, extent, NULL);
  }
  return a;
}

/* What one iteration of an outer loop reads again and again in the serial loop, in bytes. */
static bb_tile_index bytes_read(const bb_gpu_placer *w, uint32_t variable) {
  bb_program *home = w->p->home;
  uint32_t count = w->serial->body.count, amounts = 0;
  amount *a = BB_NEW(home->arena, amount, count + 1);
  bb_tile_index most = bb_expr_const(home, BB_I64, 1), sum = NULL;
  for (uint32_t i = 0; i < count; i++) {
    const bb_tile_stmt *load = w->serial->body.stmt[i];
    if (load->kind != BB_TILE_LOAD || !bb_tile_is_block(&w->p->tile[load->result])) continue;
    amount one = read_by(w, load, variable);
    uint32_t k = 0;
    while (k < amounts && a[k].product != one.product) k++;
    a[k] = (amount){a[k].times + one.times, one.product};
    if (k == amounts) amounts++;
  }
  for (uint32_t k = 0; k < amounts; k++) {
    bb_tile_index times = bb_expr_const(home, BB_I64, a[k].times);
    bb_tile_index bytes = bb_expr_make(home, BB_X_MUL, times, a[k].product, NULL);
    sum = sum ? bb_expr_make(home, BB_X_ADD, sum, bytes, NULL) : bytes;
  }
  return sum ? bb_expr_make(home, BB_X_MAX, sum, most, NULL) : most;
}

bb_tile_stmt *bb_gpu_loop_over(bb_gpu_placer *w, bb_tile_index from, bb_tile_index to,
                               bb_tile_index step) {
  const char *name = bb_arena_printf(w->p->home->arena, "i%u", w->p->variables);
  bb_tile_stmt *s = bb_tile_stmt_new(w->p, BB_TILE_LOOP);
  *s->loop = (bb_tile_loop){.parallel = true, .spread = BB_SPREAD_GRID, .stretches = 1};
  s->loop->variable = bb_tile_add_variable(w->p, name, false);
  s->loop->step = step;
  s->loop->stretch[0] = (bb_tile_stretch){from, to};
  return s;
}

/* Iterations of unequal length: the longest first, taken from a queue, but in sections of the outermost
 * loop of which the cache holds what they read again.
 *   outer { ... unequal { core } }  becomes  section { unequal { outer { ... core } } } */
static void cut_in_sections(bb_gpu_placer *w, uint32_t unequal) {
  bb_program *home = w->p->home;
  bb_tile_stmt *outer = w->p->body.stmt[0], *before = outer;
  bb_tile_loop *outermost = outer->loop;
  while (before->loop->body.stmt[0]->loop->variable != unequal) before = before->loop->body.stmt[0];
  bb_tile_stmt *inner = before->loop->body.stmt[0];
  bb_tile_stretch whole = outermost->stretch[0];
  if (outermost->step->op != BB_X_CONST || outermost->step->number != 1) return;
  bb_tile_index one = bb_expr_const(home, BB_I64, 1);
  bb_tile_index many = bb_expr_make(home, BB_X_DIV, bb_expr_const(home, BB_I64, L2_BYTES),
                                    bytes_read(w, outermost->variable), NULL);
  bb_tile_stmt *section =
      bb_gpu_loop_over(w, whole.from, whole.to, bb_expr_make(home, BB_X_MAX, many, one, NULL));
  bb_tile_index from = bb_expr_arg(home, BB_I64, section->loop->variable);
  bb_tile_index end = bb_expr_make(home, BB_X_ADD, from, section->loop->step, NULL);
  outermost->stretch[0] =
      (bb_tile_stretch){from, bb_expr_make(home, BB_X_MIN, end, whole.to, NULL)};
  bb_tile_body core = inner->loop->body;
  before->loop->body = core;
  inner->loop->body = (bb_tile_body){0};
  bb_tile_push(w->p, &inner->loop->body, outer);
  bb_tile_push(w->p, &section->loop->body, inner);
  w->p->body.stmt[0] = section;
  w->core = &before->loop->body;
}

static bool is_plain(const bb_tile_loop *l) {
  return l->stretches == 1 && l->stretch[0].to && l->step->op == BB_X_CONST && !l->down &&
         l->stretch[0].from->op == BB_X_CONST;
}

/* Blocks that run together are neighbours in rows and in columns, so that the cache holds what they read of both:
 *   outer { rows { columns { core } } }  becomes  section { outer { columns { rows of the section { core } } } } */
static void group_rows(bb_gpu_placer *w) {
  bb_program *home = w->p->home;
  bb_tile_body *around = &w->p->body, *inner = around;
  if (inner == w->core || &inner->stmt[0]->loop->body == w->core) return;
  while (&inner->stmt[0]->loop->body.stmt[0]->loop->body != w->core)
    inner = &inner->stmt[0]->loop->body;
  bb_tile_stmt *rows = inner->stmt[0], *columns = rows->loop->body.stmt[0];
  if (!is_plain(rows->loop) || !is_plain(columns->loop) ||
      bb_expr_uses_arg(columns->loop->stretch[0].to, rows->loop->variable))
    return;
  bb_tile_index many = bb_expr_const(home, BB_I64, ROWS_TOGETHER * rows->loop->step->number);
  bb_tile_stretch whole = rows->loop->stretch[0];
  bb_tile_stmt *section = bb_gpu_loop_over(w, whole.from, whole.to, many);
  bb_tile_index from = bb_expr_arg(home, BB_I64, section->loop->variable);
  bb_tile_index end = bb_expr_make(home, BB_X_ADD, from, many, NULL);
  rows->loop->stretch[0] =
      (bb_tile_stretch){from, bb_expr_make(home, BB_X_MIN, end, whole.to, NULL)};
  bb_tile_body core = columns->loop->body;
  columns->loop->body = rows->loop->body;
  columns->loop->body.stmt[0] = rows;
  inner->stmt[0] = columns;
  rows->loop->body = core;
  w->core = &rows->loop->body;
  bb_tile_push(w->p, &section->loop->body, around->stmt[0]);
  around->stmt[0] = section;
}

void bb_gpu_schedule_grid(bb_gpu_placer *w) {
  uint32_t unequal = BB_NONE;
  for (bb_tile_body *body = &w->p->body; body != w->core; body = &body->stmt[0]->loop->body) {
    bb_tile_loop *loop = body->stmt[0]->loop;
    loop->spread = BB_SPREAD_GRID;
    if (!bb_gpu_varies_with(w, loop->variable)) continue;
    unequal = loop->variable;
    loop->down = true;
  }
  if (w->p->body.count == 0 || &w->p->body == w->core) return;
  if (w->serial && !w->staged && unequal == BB_NONE && !w->g->split) group_rows(w);
  if (w->persists) {
    w->p->body.stmt[0]->loop->persistent = true;
    if (w->groups > 1) bb_gpu_pair_plain(w);
  }
  if (!w->staged) return;
  if (unequal != BB_NONE && unequal != w->p->body.stmt[0]->loop->variable)
    cut_in_sections(w, unequal);
  if (w->stands) return;
  bb_gpu_pair_staged(w);
  bb_tile_loop *outermost = w->p->body.stmt[0]->loop;
  outermost->persistent = outermost->rotate = true;
  outermost->queue = unequal != BB_NONE || w->serial->marked;
}
