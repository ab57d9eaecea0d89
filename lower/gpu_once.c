/* gpu_once.c - parts of a block's expression that are alike along its rows are computed once for each row.
 *
 *     t = x / sqrt(v / 128 + c)         ==>         r = sqrt(v / 128 + c)
 *                                                   t = x / r
 *
 * where v has no columns.  The compiler of kernels would find that, too, but only in as many copies of the
 * part as a thread has elements, each of which it has to read and to optimise.
 */
#include "gpu.h"

enum { CHEAP = 3 /* additions: less is done again by each element */ };

typedef struct once {
  bb_gpu *g;
  bb_tile_body *body;
  uint32_t at;       /* of the statement in it */
  uint32_t operands; /* that it has at most by now */
  const bb_tile *to; /* what it makes */
  uint32_t parts;
  struct {
    const bb_expr *of, *name;
  } part[BB_TILE_OPERANDS];
} once;

/* Is it of tiles without columns, one at least, and of nothing that counts along the block? */
static bool lacks_columns(const once *o, const bb_expr *e) {
  uint32_t count, tiles = 0;
  if (e->coord) return false;
  const bb_expr **node = bb_expr_postorder(o->g->p->home->arena, e, &count);
  for (uint32_t i = 0; i < count; i++) {
    if (node[i]->op != BB_X_ARG || node[i]->index < BB_TILE_NAMED) continue;
    const bb_tile *t = &o->g->p->tile[node[i]->index - BB_TILE_NAMED];
    if (t->cols || t->place != BB_PLACE_REGISTERS || t->partial) return false;
    tiles++;
  }
  return tiles > 0;
}

static const bb_expr *made_before(once *o, const bb_expr *e) {
  bb_tile_program *p = o->g->p;
  for (uint32_t i = 0; i < o->parts; i++)
    if (o->part[i].of == e) return o->part[i].name;
  if (o->operands == BB_TILE_OPERANDS) return e;
  const bb_expr *name = bb_tile_map_before(p, o->body, o->at++, o->to->rows, 0, e);
  o->operands++;
  o->part[o->parts].of = e;
  return o->part[o->parts++].name = name;
}

/* From the whole down: the largest such parts. */
static const bb_expr *part(once *o, const bb_expr *e) {
  if (e->cost < CHEAP) return e;
  if (e->dtype == BB_F32 && lacks_columns(o, e)) return made_before(o, e);
  const bb_expr *a[3] = {NULL, NULL, NULL};
  bool changed = false;
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++) {
    a[i] = part(o, e->a[i]);
    changed |= a[i] != e->a[i];
  }
  return changed ? bb_expr_rebuild(o->g->p->home, e, a) : e;
}

static void visit(bb_gpu *g, bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    visit(g, &s->body);
    if (s->loop) visit(g, &s->loop->body);
    if (s->kind != BB_TILE_MAP || s->stretches || s->stage) continue;
    const bb_tile to = g->p->tile[s->result];
    if (!to.rows || !to.cols) continue;
    once o = {.g = g, .body = body, .at = i, .operands = s->operands, .to = &to};
    const bb_expr *named = bb_tile_named(g->p, s), *made = part(&o, named);
    if (made != named) bb_tile_set(g->p, s, made);
    i = o.at;
  }
}

void bb_gpu_once(bb_gpu *g) {
  visit(g, &g->p->body);
}
