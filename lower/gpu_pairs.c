/* gpu_pairs.c - blocks of the grid that are neighbours and load in pairs: along which loop, and at which extents
 * (emit_sm90_pairs.c says how).
 */
#include "gpu_place.h"
#include "mates.h"

#include <math.h>

enum {
  /* Blocks go through arrays of at least so many: pairs then spare power, of which there is not enough for all processors, and
   * memory, where the L2 does not hold what others read later.  Less takes them no less time, and longer to begin. */
  PAIRED_BYTES = 8 << 20
};

/* Neighbours along the innermost loop, of blocks that go through the same iterations, read some of the same: as pairs they ask
 * for it once.  Of blocks with one group, which end soon, it takes longer than it spares: two processors have to be free. */
void bb_gpu_pair_plain(bb_gpu_placer *w) {
  bb_tile_body *around = &w->p->body;
  while (&around->stmt[0]->loop->body != w->core) around = &around->stmt[0]->loop->body;
  bb_tile_loop *innermost = around->stmt[0]->loop;
  for (uint32_t i = 0; i < w->serial->body.count; i++) {
    const bb_tile_stmt *s = w->serial->body.stmt[i];
    innermost->pairs |=
        s->kind == BB_TILE_LOAD && !bb_tile_load_varies(w->p, s, innermost->variable);
  }
}

/* What the serial loop cuts blocks from that are the same along a loop: bytes for each place of an extent; NULL: all bytes, as no
 * extent is open. */
typedef struct alike {
  double bytes; /* 0: nothing is the same */
  bb_tile_index extent;
} alike;

static alike alike_along(const bb_gpu_placer *w, uint32_t variable) {
  alike all = {0};
  for (uint32_t i = 0; i < w->serial->body.count; i++) {
    const bb_tile_stmt *load = w->serial->body.stmt[i];
    if (load->kind != BB_TILE_LOAD || !bb_tile_is_block(&w->p->tile[load->result])) continue;
    if (load->stretches) return (alike){0}; /* a block would load what its mate does not */
    if (bb_tile_load_varies(w->p, load, variable)) continue;
    const bb_tile_view *view = &w->p->view[load->view];
    alike one = {(double)bb_dtype_bytes(view->dtype), NULL};
    bool several = false;
    for (uint32_t k = 0; k < view->rank; k++) {
      if (!load->range[k].size) continue;
      bool constant = view->extent[k]->op == BB_X_CONST;
      several |= !constant && one.extent;
      if (constant) one.bytes *= view->extent[k]->number;
      if (!constant) one.extent = view->extent[k];
    }
    if (several || (all.bytes > 0 && one.extent != all.extent)) continue;
    all = (alike){all.bytes + one.bytes, one.extent};
  }
  return all;
}

/* Do loops within one stand where it does? */
static bool is_followed(const bb_gpu_placer *w, bb_tile_stmt *stmt) {
  for (bb_tile_body *body = &stmt->loop->body; body != w->core; body = &body->stmt[0]->loop->body) {
    const bb_tile_loop *inner = body->stmt[0]->loop;
    if (bb_expr_uses_arg(inner->stretch[0].from, stmt->loop->variable) ||
        bb_expr_uses_arg(inner->stretch[0].to, stmt->loop->variable) ||
        bb_expr_uses_arg(inner->step, stmt->loop->variable))
      return true;
  }
  return false;
}

/* The loop over the grid of whose iterations two may be a pair: the innermost that blocks load alike along, and go through
 * the same iterations but for the begin.  NULL: there is none, or blocks go through a part of what they load from. */
static bb_tile_stmt *find_paired(const bb_gpu_placer *w, alike *loads) {
  bb_tile_stmt *found = NULL;
  if (!bb_expr_is_number(w->serial->stretch[w->serial->stretches - 1].from, 0)) return NULL;
  for (bb_tile_body *body = &w->p->body; body != w->core; body = &body->stmt[0]->loop->body) {
    const bb_tile_loop *loop = body->stmt[0]->loop;
    bool is = loop->stretches == 1 && loop->stretch[0].to && loop->step->op == BB_X_CONST &&
              bb_expr_is_number(loop->stretch[0].from, 0) && !is_followed(w, body->stmt[0]) &&
              bb_mates_lead(w->serial, loop, NULL, 0) >= 0;
    for (bb_tile_body *k = &w->p->body; k != body; k = &k->stmt[0]->loop->body)
      is &= !bb_expr_uses_arg(loop->stretch[0].to, k->stmt[0]->loop->variable);
    alike along = is ? alike_along(w, loop->variable) : (alike){0};
    if (along.bytes > 0) found = body->stmt[0], *loads = along;
  }
  return found;
}

/* 2 where blocks load as much and are an even number; 1 elsewhere.  No number here is greater than an extent: kernels count in 32 bits. */
static bb_tile_index mates_of(const bb_gpu_placer *w, const bb_tile_loop *loop, alike loads) {
  bb_program *home = w->p->home;
  bb_tile_index one = bb_expr_const(home, BB_I64, 1), two = bb_expr_const(home, BB_I64, 2);
  bb_tile_index last = bb_expr_make(home, BB_X_SUB, loop->step, one, NULL);
  bb_tile_index up = bb_expr_make(home, BB_X_ADD, loop->stretch[0].to, last, NULL);
  bb_tile_index count = bb_expr_is_number(loop->step, 1)
                            ? loop->stretch[0].to
                            : bb_expr_make(home, BB_X_DIV, up, loop->step, NULL);
  bb_tile_index twos =
      bb_expr_make(home, BB_X_MUL, bb_expr_make(home, BB_X_DIV, count, two, NULL), two, NULL);
  bb_tile_index even =
      bb_expr_make(home, BB_X_SUB, one, bb_expr_make(home, BB_X_SUB, count, twos, NULL), NULL);
  bb_tile_index enough = bb_expr_const(home, BB_I64, ceil(PAIRED_BYTES / loads.bytes));
  bb_tile_index extent = loads.extent ? loads.extent : one;
  bb_tile_index much =
      bb_expr_make(home, BB_X_MIN, bb_expr_make(home, BB_X_DIV, extent, enough, NULL), one, NULL);
  return bb_expr_make(home, BB_X_ADD, one, bb_expr_make(home, BB_X_MUL, much, even, NULL), NULL);
}

/* Two iterations of a loop stand innermost, as a pair's:
 *   loop { inner { core } }  becomes  twos of loop { inner { two { core } } } */
void bb_gpu_pair_staged(bb_gpu_placer *w) {
  bb_program *home = w->p->home;
  alike loads = {0};
  if (w->g->split || w->groups < 2 || w->serial->marked) return;
  bb_tile_stmt *paired = find_paired(w, &loads);
  if (!paired) return;
  bb_tile_loop *two = paired->loop;
  bb_tile_index mates = mates_of(w, two, loads);
  if (bb_expr_is_number(mates, 1)) return;
  bb_tile_index both = bb_expr_make(home, BB_X_MUL, two->step, mates, NULL);
  bb_tile_stmt *twos = bb_gpu_loop_over(w, two->stretch[0].from, two->stretch[0].to, both);
  bb_tile_index from = bb_expr_arg(home, BB_I64, twos->loop->variable);
  twos->loop->down = two->down;
  two->down = false;
  two->pairs = true;
  two->stretch[0] = (bb_tile_stretch){from, bb_expr_make(home, BB_X_ADD, from, both, NULL)};
  bb_tile_body *around = &w->p->body;
  while (around->stmt[0] != paired) around = &around->stmt[0]->loop->body;
  around->stmt[0] = twos;
  if (w->core == &two->body) {
    bb_tile_push(w->p, &twos->loop->body, paired);
    return;
  }
  bb_tile_body *innermost = &two->body;
  while (&innermost->stmt[0]->loop->body != w->core) innermost = &innermost->stmt[0]->loop->body;
  bb_tile_loop *last = innermost->stmt[0]->loop;
  bb_tile_body core = last->body;
  twos->loop->body = two->body;
  last->body = (bb_tile_body){0};
  bb_tile_push(w->p, &last->body, paired);
  two->body = core;
  w->core = &two->body;
}
