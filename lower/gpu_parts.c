/* gpu_parts.c - a loop that sums, run in parts by blocks of a cluster, or by warps, whose sums are merged behind it: what it
 * carries, the tuple by which parts are joined, and the loop over them.
 */
#include "gpu_parts.h"

#include <math.h>

/* --- the tuple --- */

/* What the loop carries: the pivot, sums scaled with it, and sums of their own. */
void bb_parts_find_carried(bb_parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  q->pivots = bb_gpu_find_rolling(q->g, q->core, q->loop, &q->rolling);
  for (uint32_t t = 0; t < p->tiles; t++) {
    bool carried = false, written = false;
    for (uint32_t i = 0; i < body->count; i++) {
      if (!written) carried |= bb_tile_reads(body->stmt[i], t);
      written |= bb_tile_writes(body->stmt[i], t);
    }
    if (!carried || !written) continue;
    if (q->count == BB_TILE_OPERANDS) bb_gpu_refuse(q->g, "a loop that carries too many tiles");
    q->tile[q->count++] = t;
  }
  if (!q->count) bb_gpu_refuse(q->g, "a loop that carries nothing");
}

static bool is_scaled(const bb_parts *q, uint32_t tile) {
  for (uint32_t k = 0; q->pivots && k < q->rolling.scales; k++)
    if (q->rolling.scaled[k] == tile) return true;
  return false;
}

/* Is a carried tile only added to? */
static bool is_sum(const bb_parts *q, uint32_t tile) {
  const bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool writes = bb_tile_writes(s, tile), reads = bb_tile_reads(s, tile);
    if (!writes && reads) return false;
    if (!writes) continue;
    if (s->kind == BB_TILE_DOT && s->accumulate) continue;
    if (s->kind != BB_TILE_MAP) return false;
    const bb_expr *e = bb_tile_named(q->g->p, s);
    const bb_expr *own = bb_tile_name(q->g->p, tile);
    bool plain = e->op == BB_X_ADD && (e->a[0] == own) != (e->a[1] == own) &&
                 !bb_tile_names(e->a[e->a[0] == own ? 1 : 0], tile);
    if (!plain) return false;
  }
  return true;
}

/* The tuple of what a part leaves: (max, t a + t' a', t + t'). */
static const bb_tile_monoid *make_monoid(bb_parts *q) {
  bb_tile_program *p = q->g->p;
  bb_program *home = p->home;
  bb_tile_monoid *m = BB_NEW(home->arena, bb_tile_monoid, 1);
  double *empty = BB_NEW(home->arena, double, BB_TILE_OPERANDS);
  const bb_expr **combine = BB_NEW(home->arena, const bb_expr *, BB_TILE_OPERANDS);
  uint32_t n = q->count, r = 0;
  while (q->pivots && r < n && q->tile[r] != q->rolling.r) r++;
  *m = (bb_tile_monoid){bb_arena_printf(home->arena, "m%u", p->monoids), n, empty, combine};
  const bb_expr *old[2] = {bb_expr_arg(home, BB_F32, r), bb_expr_arg(home, BB_F32, n + r)};
  const bb_expr *both = bb_expr_make(home, BB_X_MAX, old[0], old[1], NULL);
  for (uint32_t k = 0; k < n; k++) {
    const bb_expr *part[2] = {bb_expr_arg(home, BB_F32, k), bb_expr_arg(home, BB_F32, n + k)};
    if (q->pivots && k == r) {
      combine[k] = both;
      empty[k] = -INFINITY;
      continue;
    }
    if (!is_scaled(q, q->tile[k]) && !is_sum(q, q->tile[k]))
      bb_gpu_refuse(q->g, "a loop that carries what is no sum");
    for (uint32_t i = 0; i < 2 && is_scaled(q, q->tile[k]); i++) {
      const bb_expr *a = bb_tile_replace(p, q->rolling.factor, q->rolling.fresh, both);
      a = bb_tile_replace(p, a, q->rolling.r, old[i]);
      part[i] = bb_expr_make(home, BB_X_MUL, part[i], a, NULL);
    }
    combine[k] = bb_expr_make(home, BB_X_ADD, part[0], part[1], NULL);
  }
  bb_tile_add_monoid(p, m);
  return m;
}

void bb_parts_find(bb_parts *q) {
  bb_parts_find_carried(q);
  q->monoid = make_monoid(q);
  q->inside = q->loop + 1;
}

void bb_parts_settle(bb_parts *q) {
  bb_tile_program *p = q->g->p;
  for (uint32_t i = 0; i < q->core->count; i++) {
    bb_tile_stmt *s = q->core->stmt[i];
    if (!bb_tile_is_copy(s) || !p->tile[s->operand[0]].partial) continue;
    for (uint32_t k = 0; k < q->count; k++)
      if (q->tile[k] == s->operand[0]) q->tile[k] = s->result;
    q->inside = i + 1;
  }
}

void bb_parts_turn(bb_parts *q) {
  bb_tile_body *all = &q->g->p->body;
  for (uint32_t i = q->inside; i < q->core->count; i++) {
    bb_tile_stmt *s = q->core->stmt[i];
    if (s->kind != BB_TILE_TRANSPOSE || bb_tile_writers(all, s->result) != 1) continue;
    for (uint32_t k = 0; k < q->count; k++) {
      if (q->tile[k] != s->operand[0] || bb_tile_readers(all, q->tile[k]) != 1) continue;
      bb_tile_remove(q->core, i);
      bb_tile_insert(q->g->p, q->core, q->inside++, s);
      q->tile[k] = s->result;
    }
  }
}

/* --- the loop over them --- */

bb_tile_index bb_parts_number(const bb_parts *q, int64_t value) {
  return bb_expr_const(q->g->p->home, BB_I64, (double)value);
}

bb_tile_index bb_parts_make(const bb_parts *q, bb_expr_op op, bb_tile_index a, bb_tile_index b) {
  return bb_expr_make(q->g->p->home, op, a, b, NULL);
}

/* Iterations of the loops over the grid. */
bb_tile_index bb_parts_grid_blocks(const bb_parts *q) {
  bb_tile_index blocks = bb_parts_number(q, 1);
  for (bb_tile_body *body = &q->g->p->body; body != q->core; body = &body->stmt[0]->loop->body) {
    const bb_tile_loop *loop = body->stmt[0]->loop;
    bb_tile_index trips = bb_parts_make(q, BB_X_SUB, loop->stretch[0].to, loop->stretch[0].from);
    if (loop->step->op != BB_X_CONST || loop->step->number != 1)
      trips = bb_parts_make(
          q, BB_X_DIV,
          bb_parts_make(q, BB_X_ADD, trips,
                        bb_parts_make(q, BB_X_SUB, loop->step, bb_parts_number(q, 1))),
          loop->step);
    bool one = blocks->op == BB_X_CONST && blocks->number == 1;
    blocks = one ? trips : bb_parts_make(q, BB_X_MUL, blocks, trips);
  }
  return blocks;
}

static bool is_merged(const bb_parts *q, uint32_t tile) {
  for (uint32_t k = 0; k < q->count; k++)
    if (q->tile[k] == tile) return true;
  return false;
}

void bb_parts_leave(const bb_parts *q) {
  for (uint32_t t = 0; t < q->g->p->tiles; t++) {
    bool inside = false, known = is_merged(q, t);
    for (uint32_t i = 0; i < q->inside; i++) inside |= bb_tile_writes(q->core->stmt[i], t);
    for (uint32_t i = q->inside; inside && !known && i < q->core->count; i++) {
      if (bb_tile_reads(q->core->stmt[i], t))
        bb_gpu_refuse(q->g, "what parts of a sum have is read where they are merged");
      known = bb_tile_writes(q->core->stmt[i], t);
    }
  }
}

bb_tile_stmt *bb_parts_loop(bb_parts *q, bb_tile_index to, bb_tile_spread spread) {
  bb_tile_program *p = q->g->p;
  bb_tile_stmt *s = bb_tile_stmt_new(p, BB_TILE_LOOP);
  *s->loop = (bb_tile_loop){.parallel = true, .spread = spread, .stretches = 1, .merge = q->monoid};
  s->loop->variable =
      bb_tile_add_variable(p, bb_arena_printf(p->home->arena, "i%u", p->variables), false);
  s->loop->step = bb_parts_number(q, 1);
  s->loop->stretch[0] = (bb_tile_stretch){bb_parts_number(q, 0), to};
  for (uint32_t k = 0; k < q->count; k++) s->loop->merged[k] = q->tile[k];
  return s;
}

void bb_parts_split(bb_parts *q, int64_t fill, int64_t fill_by_twos, int64_t most) {
  bb_tile_program *p = q->g->p;
  bb_tile_loop *serial = q->core->stmt[q->loop]->loop;
  bb_tile_index step = serial->step, to = serial->stretch[0].to;
  bb_parts_leave(q);
  bb_tile_index blocks = bb_parts_make(
      q, BB_X_DIV, bb_parts_make(q, BB_X_ADD, to, bb_parts_number(q, (int64_t)step->number - 1)),
      step);
  bb_tile_index each = bb_parts_make(q, BB_X_MAX, bb_parts_grid_blocks(q), bb_parts_number(q, 1));
  bb_tile_index count = bb_parts_make(q, BB_X_DIV, bb_parts_number(q, fill), each);
  if (fill_by_twos > fill) {
    bb_tile_index twos = bb_parts_make(q, BB_X_DIV, bb_parts_number(q, fill_by_twos), each);
    count =
        bb_parts_make(q, BB_X_MAX, count, bb_parts_make(q, BB_X_MIN, twos, bb_parts_number(q, 2)));
  }
  count = bb_parts_make(q, BB_X_MIN, bb_parts_number(q, most),
                        bb_parts_make(q, BB_X_MAX, count, bb_parts_number(q, 1)));
  bb_tile_stmt *split = bb_parts_loop(q, count, BB_SPREAD_CLUSTER);
  bb_tile_index i = bb_expr_arg(p->home, BB_I64, split->loop->variable);
  bb_tile_index first = bb_parts_make(q, BB_X_DIV, bb_parts_make(q, BB_X_MUL, blocks, i), count);
  bb_tile_index end = bb_parts_make(
      q, BB_X_DIV,
      bb_parts_make(q, BB_X_MUL, blocks, bb_parts_make(q, BB_X_ADD, i, bb_parts_number(q, 1))),
      count);
  serial->stretch[0].from = bb_parts_make(q, BB_X_MUL, first, step);
  serial->stretch[0].to = bb_parts_make(q, BB_X_MUL, end, step);
  bb_tile_body after = {0};
  for (uint32_t k = 0; k < q->core->count; k++)
    bb_tile_push(p, k < q->inside ? &split->loop->body : &after, q->core->stmt[k]);
  *q->core = (bb_tile_body){0};
  bb_tile_push(p, q->core, split);
  for (uint32_t k = 0; k < after.count; k++) bb_tile_push(p, q->core, after.stmt[k]);
  q->core = &split->loop->body;
}
