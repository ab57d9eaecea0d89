/* held.c - a block that a loop loaded last, and that the loop behind it wants first, stays where it is.
 *
 *   serial i { t = load x[i, ...]; sum += ... t }       serial i { t = load x[i, ...]; sum += ... t }
 *   ...                                            ==>  ...
 *   serial k { u = load x[k, ...]; ... u ... }          serial k { t = load x[k, ...]; ... t ... }
 *
 * A row that is folded and then scaled is read twice; most often it is one block, both loops run once, and the second load,
 * which all threads would wait for, gives what the first one gave.  Where that is so is seen when the kernel runs
 * (bb_tile_is_held()).  Loops of a task that have others beside them run one after the other, parallel ones, too.
 */
#include "held.h"

#include "tile_edit.h"

/* A statement that writes the tile; the loop that it stands in, and where that one stands: the body of a task. */
typedef struct site {
  bb_tile_stmt *stmt;
  /* NULL: none, or one within another of the task, whose iterations are of other blocks. */
  const bb_tile_loop *loop;
  const bb_tile_body *around;
} site;

typedef struct writers {
  const bb_tile_program *p;
  uint32_t tile, count;
  site first;
  bool alike; /* all are loads of one block, each in a loop of its own */
} writers;

/* More than one iteration, whatever the extents are?  Then the last one's block is no other loop's first. */
static bool repeats(const bb_tile_loop *l) {
  bb_tile_index from = l->stretch[0].from, to = l->stretch[0].to;
  if (l->stretches != 1 || !to || from->op != BB_X_CONST || to->op != BB_X_CONST ||
      l->step->op != BB_X_CONST)
    return false;
  return to->number - from->number > l->step->number;
}

/* But for what lies around the array. */
static bool same_place(const bb_tile_program *p, const site *a, const site *b) {
  const bb_tile_stmt *s = a->stmt, *t = b->stmt;
  const bb_tile_view *view = &p->view[s->view];
  bb_tile_index variable = bb_expr_arg(p->home, BB_I64, a->loop->variable);
  if (s->view != t->view || view->written || view->scratch) return false;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *m = &s->range[i], *n = &t->range[i];
    if (m->size != n->size || m->axis != n->axis ||
        m->start != bb_tile_index_replace(p, n->start, b->loop->variable, variable))
      return false;
  }
  return true;
}

static bool same_block(const bb_tile_program *p, const site *a, const site *b) {
  return a->stmt->pad == b->stmt->pad && same_place(p, a, b);
}

static void note(writers *w, const site *here) {
  bool alone = here->stmt->kind == BB_TILE_LOAD && here->loop && !repeats(here->loop);
  if (!w->count++) {
    w->first = *here;
    w->alike = alone;
    return;
  }
  w->alike = w->alike && alone && here->around == w->first.around && here->loop != w->first.loop &&
             same_block(w->p, &w->first, here);
}

/* A body of the program, of loops whose iterations are tasks, or of a task; or one within a task. */
typedef enum depth { PROGRAM, TASKS, WITHIN } depth;

/* Loops of nothing but a loop are tasks together. */
static depth below(depth d, const bb_tile_body *body, const bb_tile_loop *loop) {
  bool tasks = loop->parallel && (d == PROGRAM || (d == TASKS && body->count == 1));
  return tasks ? TASKS : WITHIN;
}

static void find(writers *w, const bb_tile_body *body, const site *in, depth d) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    site here = {s, in->loop, in->around}, none = {0};
    if (s->result == w->tile || s->second == w->tile) note(w, &here);
    find(w, &s->body, &none, WITHIN);
    if (!s->loop) continue;
    site within = {NULL, d == TASKS ? s->loop : NULL, body};
    find(w, &s->loop->body, &within, below(d, body, s->loop));
  }
}

static writers writers_of(const bb_tile_program *p, uint32_t tile) {
  writers w = {.p = p, .tile = tile};
  find(&w, &p->body, &(site){0}, PROGRAM);
  return w;
}

bool bb_tile_is_held(const bb_tile_program *p, uint32_t tile) {
  writers w = writers_of(p, tile);
  return w.count > 1 && w.alike;
}

/* Do loops that read the tile load it first, and nothing else reads it? */
static bool is_theirs(const writers *w) {
  for (uint32_t i = 0; i < w->first.around->count; i++) {
    const bb_tile_stmt *s = w->first.around->stmt[i];
    const bb_tile_body *body = s->loop ? &s->loop->body : NULL;
    uint32_t k = 0;
    if (!bb_tile_reads(s, w->tile)) continue;
    while (body && k < body->count && !bb_tile_reads(body->stmt[k], w->tile) &&
           body->stmt[k]->result != w->tile)
      k++;
    if (!body || k == body->count || body->stmt[k]->result != w->tile) return false;
  }
  return true;
}

/* Does what a load gives for elements around the array reach more than elements around one?  Of each element, maps make an
 * element, and a store leaves out those that are not there. */
static bool pad_matters(bb_tile_program *p, const site *load) {
  bb_arena *scratch = bb_scratch(p->home->ctx);
  bb_tile_body body = load->loop->body;
  bool matters = p->view[load->stmt->view].padded, *made = BB_NEW(scratch, bool, p->tiles + 1);
  made[load->stmt->result] = true;
  for (uint32_t i = 0; i < body.count && !matters; i++) {
    const bb_tile_stmt *s = body.stmt[i];
    bool reads = false;
    for (uint32_t t = 0; t < p->tiles; t++) reads |= made[t] && bb_tile_reads(s, t);
    if (!reads) continue;
    matters = s->kind != BB_TILE_MAP && s->kind != BB_TILE_STORE;
    if (s->kind == BB_TILE_MAP) made[s->result] = true;
  }
  for (uint32_t t = 0; t < p->tiles && !matters; t++)
    matters = made[t] && (bb_tile_readers(&p->body, t) != bb_tile_readers(&body, t) ||
                          bb_tile_writers(&body, t) != 1);
  bb_scratch_end(scratch);
  return matters;
}

void bb_tile_hold(bb_tile_program *p) {
  for (uint32_t a = 0; a < p->tiles; a++) {
    writers w = writers_of(p, a);
    if (!w.count || !w.alike || !is_theirs(&w)) continue;
    for (uint32_t b = a + 1; b < p->tiles; b++) {
      writers v = writers_of(p, b);
      if (v.count != 1 || !v.alike || !is_theirs(&v) ||
          !bb_tile_have_one_form(&p->tile[a], &p->tile[b]) || v.first.around != w.first.around ||
          v.first.loop == w.first.loop || !same_place(p, &w.first, &v.first))
        continue;
      if (v.first.stmt->pad != w.first.stmt->pad) {
        if (pad_matters(p, &v.first)) continue;
        v.first.stmt->pad = w.first.stmt->pad;
      }
      bb_tile_rename(&p->body, b, a);
    }
  }
}
