/* held.c - a block that a loop loaded or stored last, and that the loop behind it wants first, stays where it is.
 *
 *   serial i { t = load x[i, ...]; sum += ... t }       serial i { t = load x[i, ...]; sum += ... t }
 *   ...                                            ==>  ...
 *   serial k { u = load x[k, ...]; ... u ... }          serial k { t = load x[k, ...]; ... t ... }
 *
 * and the same where the first one is t = ...; store y[i, ...] = t.
 *
 * A row that is folded and then scaled is read twice; most often it is one block, both loops run once, and the second load,
 * which all threads would wait for, gives what the first one gave, or what was stored: view and tile are of one type.  Where that
 * is so is seen when the kernel runs (bb_tile_is_held()).  Loops of a task that have others beside them run one after the other,
 * parallel ones, too.  Around the array a tile that was stored has anything: see bb_tile_is_bare().
 */
#include "held.h"

#include "tile_edit.h"

/* A statement that writes the tile, and the load or store that says where its block lies; the loop that it stands in, and where
 * that one stands: the body of a task. */
typedef struct site {
  bb_tile_stmt *stmt;
  const bb_tile_stmt *block; /* NULL: it lies nowhere */
  /* NULL: none, or one within another of the task, whose iterations are of other blocks. */
  const bb_tile_loop *loop;
  const bb_tile_body *around;
} site;

typedef struct writers {
  const bb_tile_program *p;
  uint32_t tile, count, loads;
  site first;
  bool
      alike; /* all are loads of one block, each in a loop of its own; or so are all but the first loop's, which stores there */
} writers;

static bool is_load(const site *s) {
  return s->stmt->kind == BB_TILE_LOAD;
}

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
  const bb_tile_stmt *s = a->block, *t = b->block;
  const bb_tile_view *view = &p->view[s->view];
  bb_tile_index variable = bb_expr_arg(p->home, BB_I64, a->loop->variable);
  if (s->view != t->view) return false;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *m = &s->range[i], *n = &t->range[i];
    if (m->size != n->size || m->axis != n->axis ||
        m->start != bb_tile_index_replace(p, n->start, b->loop->variable, variable))
      return false;
  }
  return true;
}

static bool same_block(const bb_tile_program *p, const site *a, const site *b) {
  return (!is_load(a) || a->stmt->pad == b->stmt->pad) && same_place(p, a, b);
}

typedef struct touching {
  const bb_tile_program *p;
  uint32_t view, loads, stores;
} touching;

static void count_touch(void *user, bb_tile_body *body, uint32_t at) {
  touching *t = user;
  const bb_tile_stmt *s = body->stmt[at];
  if (s->view != t->view) return;
  t->loads += s->kind == BB_TILE_LOAD;
  t->stores += s->kind == BB_TILE_STORE;
}

/* Loads and stores of a view, all there are. */
static touching touches_of(const bb_tile_program *p, uint32_t view) {
  touching t = {.p = p, .view = view};
  bb_tile_body all = p->body;
  bb_tile_walk(&all, count_touch, &t);
  return t;
}

/* What puts into memory what statement `at` of a body makes, whenever that runs, and nothing else writes there; somebody reads it.
 * NULL: there is none. */
static const bb_tile_stmt *store_of(const bb_tile_program *p, const bb_tile_body *body, uint32_t at,
                                    uint32_t tile) {
  for (uint32_t i = at + 1; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_STORE || s->operand[0] != tile) continue;
    uint32_t made = body->stmt[at]->stretches;
    bool whenever = !s->stretches || (made && !(made & ~s->stretches));
    touching t = touches_of(p, s->view);
    if (whenever && t.loads && t.stores == 1) return s;
  }
  return NULL;
}

/* Is it made in the loop that made it first, before that stores it? */
static bool is_remade(const writers *w, const site *here) {
  return !is_load(&w->first) && here->loop == w->first.loop && here->block == w->first.block;
}

static void note(writers *w, const site *here) {
  bool alone = here->block && here->loop && !repeats(here->loop);
  w->loads += is_load(here);
  if (!w->count++) {
    const bb_tile_view *view = here->block ? &w->p->view[here->block->view] : NULL;
    w->first = *here;
    w->alike = alone && (!is_load(here) || (!view->written && !view->scratch));
    return;
  }
  bool again = alone && is_load(here) && here->around == w->first.around &&
               here->loop != w->first.loop && same_block(w->p, &w->first, here);
  w->alike = w->alike && (again || is_remade(w, here));
}

static bool is_left(const writers *w) {
  return w->count && w->alike && w->loads && !is_load(&w->first);
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
    site here = {s, NULL, in->loop, in->around}, none = {0};
    if (s->result == w->tile || s->second == w->tile) {
      if (here.loop) here.block = is_load(&here) ? s : store_of(w->p, body, i, w->tile);
      note(w, &here);
    }
    find(w, &s->body, &none, WITHIN);
    if (!s->loop) continue;
    site within = {NULL, NULL, d == TASKS ? s->loop : NULL, body};
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
  return is_left(&w) || (w.loads > 1 && w.alike);
}

const bb_tile_stmt *bb_tile_left_by(const bb_tile_program *p, uint32_t tile, bool *alone) {
  writers w = writers_of(p, tile);
  if (!is_left(&w)) return NULL;
  *alone = touches_of(p, w.first.block->view).loads == w.loads;
  return w.first.block;
}

/* Do loops that read the tile write it first, and nothing else reads it? */
static bool is_theirs(const writers *w) {
  for (uint32_t i = 0; i < w->first.around->count; i++) {
    const bb_tile_stmt *s = w->first.around->stmt[i];
    const bb_tile_body *body = s->loop ? &s->loop->body : NULL;
    uint32_t k = 0;
    if (!bb_tile_reads(s, w->tile)) continue;
    while (body && k < body->count && !bb_tile_touches(body->stmt[k], w->tile)) k++;
    if (!body || k == body->count || bb_tile_reads(body->stmt[k], w->tile)) return false;
  }
  return true;
}

/* Does what a load gives for elements around the array reach more than elements around one?  Of each element, maps make an
 * element, and a store leaves out those that are not there.  Its tile is read in its loop alone, or by loops that write it first. */
static bool pad_matters(const bb_tile_program *p, const bb_tile_stmt *load, bb_tile_body body) {
  bb_arena *scratch = bb_scratch(p->home->ctx);
  bb_tile_body all = p->body;
  bool matters = p->view[load->view].padded, *made = BB_NEW(scratch, bool, p->tiles + 1);
  made[load->result] = true;
  for (uint32_t i = 0; i < body.count && !matters; i++) {
    const bb_tile_stmt *s = body.stmt[i];
    bool reads = false;
    for (uint32_t t = 0; t < p->tiles; t++) reads |= made[t] && bb_tile_reads(s, t);
    if (!reads) continue;
    matters = s->kind != BB_TILE_MAP && s->kind != BB_TILE_STORE;
    if (s->kind == BB_TILE_MAP) made[s->result] = true;
  }
  for (uint32_t t = 0; t < p->tiles && !matters; t++) {
    bool elsewhere = t != load->result && bb_tile_readers(&all, t) != bb_tile_readers(&body, t);
    matters = made[t] && (elsewhere || bb_tile_writers(&body, t) != 1);
  }
  bb_scratch_end(scratch);
  return matters;
}

bool bb_tile_is_bare(const bb_tile_program *p, const bb_tile_stmt *load) {
  writers w = writers_of(p, load->result);
  const bb_tile_body *around = w.first.around;
  if (!is_left(&w)) return false;
  if (!is_theirs(&w)) return true;
  for (uint32_t i = 0; i < around->count; i++) {
    bb_tile_loop *loop = around->stmt[i]->loop;
    for (uint32_t k = 0; loop && k < loop->body.count; k++)
      if (loop->body.stmt[k] == load) return pad_matters(p, load, loop->body);
  }
  return true;
}

static bool is_behind(const bb_tile_body *body, const bb_tile_loop *first,
                      const bb_tile_loop *last) {
  uint32_t i = 0;
  while (i < body->count && body->stmt[i]->loop != first) i++;
  while (i < body->count && body->stmt[i]->loop != last) i++;
  return i < body->count;
}

/* Can the load that alone writes a tile write the one that these do? */
static bool joins(const writers *w, const writers *v) {
  const bb_tile_program *p = w->p;
  const site *load = &v->first;
  if (v->count != 1 || !load->block || !load->loop || !is_load(load) || repeats(load->loop))
    return false;
  if (!bb_tile_have_one_form(&p->tile[w->tile], &p->tile[v->tile]) ||
      load->around != w->first.around || load->loop == w->first.loop)
    return false;
  bool behind = is_load(&w->first) || is_behind(load->around, w->first.loop, load->loop);
  return behind && same_place(p, &w->first, load) && is_theirs(v);
}

void bb_tile_hold(bb_tile_program *p) {
  for (uint32_t a = 0; a < p->tiles; a++) {
    writers w = writers_of(p, a);
    if (!w.count || !w.alike || !is_theirs(&w)) continue;
    for (uint32_t b = 0; b < p->tiles; b++) {
      writers v = writers_of(p, b);
      if (a == b || !joins(&w, &v)) continue;
      if (is_load(&w.first) && v.first.stmt->pad != w.first.stmt->pad) {
        if (pad_matters(p, v.first.stmt, v.first.loop->body)) continue;
        v.first.stmt->pad = w.first.stmt->pad;
      }
      bb_tile_rename(&p->body, b, a);
    }
  }
}
