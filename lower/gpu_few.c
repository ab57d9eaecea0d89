/* gpu_few.c - results of few rows: a loop over what is folded, spread over warps and over the blocks of a
 * cluster, each with a part that is merged at the end.
 *
 * A product of eight rows would leave most of a warp group idle.  So the program lies on its side (gpu_side.c): what was
 * folded over columns is folded over rows, of which a warp's product has 16.  Each warp copies for itself.
 *
 *   serial n = 0 to N step 16 { ... }    becomes
 *   parallel split { parallel warp { begin; serial n = of this split and warp { ... } } } merged; end
 *
 * Where all products of the loop are summed and their operands loaded, as they are where what is contracted is what
 * is folded, a warp group makes them from shared memory, and only results are on their side.
 */
#include "gpu_parts.h"

#include <math.h>

/* The blocks that fill the processors, one each: with more, each has less of its memory's time and all end later. */
enum { BLOCKS = 132, MOST_SPLITS = 8 };
enum { WARPS = 4, SPLIT_ROWS = 8, SHARED_BYTES = 100 * 1024 };
/* By warp groups. */
enum { GROUP_BYTES = 200 * 1024, MOST_BUFFERS = 10, COPIER_REGISTERS = 40 };

/* --- spreading --- */

/* How many parts: as many as processors are left for, but of long loops alone. */
static bb_tile_index splits(const bb_parts *q, bb_tile_index length) {
  bb_tile_index blocks = bb_parts_make(q, BB_X_MAX, bb_parts_grid_blocks(q), bb_parts_number(q, 1));
  bb_tile_index times =
      bb_parts_make(q, BB_X_DIV, bb_parts_make(q, BB_X_SUB, length, bb_parts_number(q, 1)),
                    bb_parts_make(q, BB_X_MUL, bb_parts_number(q, SPLIT_ROWS), blocks));
  bb_tile_index most =
      bb_parts_make(q, BB_X_MIN, bb_parts_number(q, MOST_SPLITS),
                    bb_parts_make(q, BB_X_DIV, bb_parts_number(q, BLOCKS), blocks));
  bb_tile_index count = bb_parts_make(q, BB_X_MIN, most, bb_parts_make(q, BB_X_MUL, most, times));
  return bb_parts_make(q, BB_X_MAX, count, bb_parts_number(q, 1));
}

/* The loop takes blocks first + warp, first + warp + WARPS, ... of its split. */
static void spread(bb_parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_loop *serial = q->core->stmt[q->loop]->loop;
  bb_tile_index step = serial->step, to = serial->stretch[0].to;
  bb_parts_leave(q);
  bb_tile_index blocks = bb_parts_make(
      q, BB_X_DIV, bb_parts_make(q, BB_X_ADD, to, bb_parts_number(q, (int64_t)step->number - 1)),
      step);
  bb_tile_index count = splits(q, to);
  bb_tile_stmt *split = bb_parts_loop(q, count, BB_SPREAD_CLUSTER);
  bb_tile_stmt *warp = bb_parts_loop(q, bb_parts_number(q, WARPS), BB_SPREAD_WARPS);
  bb_tile_index i = bb_expr_arg(p->home, BB_I64, split->loop->variable);
  bb_tile_index w = bb_expr_arg(p->home, BB_I64, warp->loop->variable);
  bb_tile_index first = bb_parts_make(q, BB_X_DIV, bb_parts_make(q, BB_X_MUL, blocks, i), count);
  bb_tile_index end = bb_parts_make(
      q, BB_X_DIV,
      bb_parts_make(q, BB_X_MUL, blocks, bb_parts_make(q, BB_X_ADD, i, bb_parts_number(q, 1))),
      count);
  serial->stretch[0].from = bb_parts_make(q, BB_X_MUL, bb_parts_make(q, BB_X_ADD, first, w), step);
  serial->stretch[0].to = bb_parts_make(q, BB_X_MUL, end, step);
  serial->step = bb_parts_number(q, WARPS * (int64_t)step->number);
  bb_tile_body after = {0};
  for (uint32_t k = 0; k < q->core->count; k++) {
    bb_tile_push(p, k < q->inside ? &warp->loop->body : &after, q->core->stmt[k]);
  }
  bb_tile_push(p, &split->loop->body, warp);
  *q->core = (bb_tile_body){0};
  bb_tile_push(p, q->core, split);
  for (uint32_t k = 0; k < after.count; k++) bb_tile_push(p, q->core, after.stmt[k]);
  q->core = &warp->loop->body;
}

/* --- by a warp group --- */

/* Iterations of the loop over the grid or of the serial one where its bounds are numbers, else 0. */
static int64_t trips_of(const bb_tile_loop *loop) {
  const bb_tile_stretch *s = &loop->stretch[0];
  if (!s->to || s->from->op != BB_X_CONST || s->to->op != BB_X_CONST ||
      loop->step->op != BB_X_CONST)
    return 0;
  return (int64_t)ceil((s->to->number - s->from->number) / loop->step->number);
}

/* Steps that a block makes of the loop that is about to be split, of few rows, where the weights' extents are numbers; else as many as
 * there may be buffers.  With no more buffers than that two blocks share a processor, and the next launch's bring their weights while
 * this one's compute. */
static uint32_t steps_of_block(const bb_parts *q) {
  int64_t steps = trips_of(q->core->stmt[q->loop]->loop), columns = 1;
  for (const bb_tile_body *body = &q->g->p->body; body != q->core;
       body = &body->stmt[0]->loop->body) {
    int64_t trips = trips_of(body->stmt[0]->loop);
    if (trips) columns *= trips;
  }
  int64_t parts = BLOCKS / columns < 1             ? 1
                  : BLOCKS / columns < MOST_SPLITS ? BLOCKS / columns
                                                   : MOST_SPLITS;
  int64_t each = (steps + parts - 1) / parts;
  return steps == 0 || each > MOST_BUFFERS ? MOST_BUFFERS : each < 2 ? 2 : (uint32_t)each;
}

static void place_for_group(bb_parts *q, uint32_t most) {
  bb_tile_program *p = q->g->p;
  bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  uint32_t bytes = 0, groups = 1;
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < body->count; i++) {
      if (body->stmt[i]->kind != BB_TILE_LOAD) continue;
      bb_tile *t = &p->tile[body->stmt[i]->result];
      t->place = BB_PLACE_SHARED;
      if (pass)
        t->buffers = GROUP_BYTES / bytes < most ? GROUP_BYTES / bytes : most;
      else
        bytes += t->rows * t->cols * (uint32_t)bb_dtype_bytes(t->dtype);
    }
  if (GROUP_BYTES / bytes < 2) bb_gpu_refuse(q->g, "blocks of few rows need more shared memory");
  for (uint32_t i = 0; i < body->count; i++)
    if (body->stmt[i]->kind == BB_TILE_DOT) groups = p->tile[body->stmt[i]->result].rows / 64;
  p->groups = groups;
  p->copier_registers = COPIER_REGISTERS;
}

/* --- the grid --- */

/* Bytes of the serial loop's loads that differ along a loop over the grid. */
static uint32_t bytes_along(const bb_parts *q, uint32_t variable) {
  const bb_tile_program *p = q->g->p;
  const bb_tile_body *body = &q->core->stmt[q->loop]->loop->body;
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_LOAD || !bb_tile_load_varies(p, s, variable)) continue;
    const bb_tile *t = &p->tile[s->result];
    bytes += t->rows * t->cols * (uint32_t)bb_dtype_bytes(t->dtype);
  }
  return bytes;
}

/* Neighbours over the grid have most of what they read in common: the inner one of its last two loops is the one along
 * which less differs. */
static void order_grid(bb_parts *q) {
  bb_tile_body *around = &q->g->p->body;
  if (around == q->core || &around->stmt[0]->loop->body == q->core) return;
  while (&around->stmt[0]->loop->body.stmt[0]->loop->body != q->core)
    around = &around->stmt[0]->loop->body;
  bb_tile_stmt *outer = around->stmt[0], *inner = outer->loop->body.stmt[0];
  const bb_tile_stretch *bounds = &inner->loop->stretch[0];
  if (bb_expr_uses_arg(bounds->from, outer->loop->variable) ||
      bb_expr_uses_arg(bounds->to, outer->loop->variable) ||
      bytes_along(q, outer->loop->variable) >= bytes_along(q, inner->loop->variable))
    return;
  bb_tile_body core = inner->loop->body;
  inner->loop->body = outer->loop->body;
  inner->loop->body.stmt[0] = outer;
  outer->loop->body = core;
  around->stmt[0] = inner;
  q->core = &outer->loop->body;
}

/* --- places --- */

/* Does a product read it?  What maps alone read, as masks, comes to their registers. */
static bool is_operand(const bb_tile_body *body, uint32_t tile) {
  for (uint32_t i = 0; i < body->count; i++)
    if (body->stmt[i]->kind == BB_TILE_DOT && bb_tile_reads(body->stmt[i], tile)) return true;
  return false;
}

static void place(bb_parts *q) {
  bb_tile_program *p = q->g->p;
  bb_tile_body *body = NULL;
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < q->core->count; i++)
    if (q->core->stmt[i]->loop) body = &q->core->stmt[i]->loop->body;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_LOAD || !is_operand(body, s->result)) continue;
    bb_tile *t = &p->tile[s->result];
    t->place = BB_PLACE_SHARED;
    t->buffers = 2;
    bytes += WARPS * 2 * t->rows * t->cols * bb_dtype_bytes(t->dtype);
  }
  if (bytes > SHARED_BYTES) bb_gpu_refuse(q->g, "tiles of warps need more shared memory");
}

void bb_gpu_few(bb_gpu *g, bool by_group) {
  bb_parts q = {.g = g};
  bb_tile_body *core = &g->p->body;
  while (core->count == 1 && core->stmt[0]->loop && core->stmt[0]->loop->parallel)
    core = &core->stmt[0]->loop->body;
  q.core = core;
  while (q.loop < core->count && !core->stmt[q.loop]->loop) q.loop++;
  if (q.loop == core->count || core->stmt[q.loop]->loop->stretches != 1 ||
      core->stmt[q.loop]->loop->step->op != BB_X_CONST)
    bb_gpu_refuse(g, "few rows without a loop");
  if (!core->stmt[q.loop]->loop->commutes) bb_gpu_refuse(g, "a fold that keeps its order");
  if (by_group) bb_parts_defer(g, core, &q.loop);
  bb_gpu_orient(g);
  bb_gpu_hoist(g, core, &q.loop);
  order_grid(&q);
  bb_parts_find(&q);
  if (by_group)
    bb_gpu_turn_results(&q);
  else
    bb_gpu_turn_all(g);
  bb_gpu_partials(g);
  bb_parts_settle(&q);
  bb_parts_turn(&q);
  if (by_group) {
    uint32_t buffers = steps_of_block(&q);
    bb_parts_split(&q, BLOCKS, BLOCKS, MOST_SPLITS);
    place_for_group(&q, buffers);
  } else {
    spread(&q);
    place(&q);
  }
}
