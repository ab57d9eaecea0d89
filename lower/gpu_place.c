/* gpu_place.c - where tiles live and which warps do what, for a target whose products are made by warp
 * groups from shared memory and whose copies run by themselves.
 *
 * Loaded operands of products lie in shared memory, in as many buffers as fit; a left operand that is
 * computed, or that a loop reads again and again, in registers.  A product that waits for another of its
 * iteration runs a stage behind.  Registers and memory are counted before anything is emitted.
 */
#include "gpu_place.h"

#include "affine.h"

#include <math.h>

enum {
  SHARED_BYTES = 227 * 1024, /* that a block of warp groups may have */
  REGISTERS = 65536,         /* of a processor */
  MOST_REGISTERS = 255,      /* of a thread */
  MOST_OF_GROUPS = 240,      /* of a group's */
  KEPT_BYTES = 1024,         /* what a processor keeps of each block's for itself */
  EXCHANGE_BYTES = 2048,     /* for what threads tell each other */
  MOST_BUFFERS = 6,
  PIECES_BYTES = 256, /* of each row, for results that leave in pieces */
};

/* --- the nest --- */

static void find_core(bb_gpu_placer *w) {
  bb_tile_body *body = &w->p->body;
  for (;;) {
    bb_tile_loop *inner = NULL;
    for (uint32_t i = 0; i < body->count; i++)
      if (body->stmt[i]->loop && body->stmt[i]->loop->parallel) inner = body->stmt[i]->loop;
    if (!inner) break;
    if (body->count != 1) bb_gpu_refuse(w->g, "statements beside a loop over the grid");
    body = &inner->body;
  }
  w->core = body;
  for (w->at = 0; w->at < body->count && !body->stmt[w->at]->loop; w->at++) continue;
  w->serial = w->at < body->count ? body->stmt[w->at]->loop : NULL;
  for (uint32_t i = w->at + 1; i < body->count; i++)
    if (body->stmt[i]->loop) bb_gpu_refuse(w->g, "a loop behind another");
  for (uint32_t i = 0; w->serial && i < w->serial->body.count; i++)
    if (w->serial->body.stmt[i]->loop) bb_gpu_refuse(w->g, "a loop within a serial one");
}

/* Loads that are the same in every iteration go before the loop. */
static void hoist_loads(bb_gpu_placer *w) {
  bb_tile_body *body = w->serial ? &w->serial->body : NULL;
  for (uint32_t i = 0; body && i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    bool varies = s->kind != BB_TILE_LOAD || s->stretches ||
                  bb_tile_load_varies(w->p, s, w->serial->variable);
    if (varies || bb_tile_writers(&w->p->body, s->result) != 1) continue;
    bb_tile_remove(body, i--);
    bb_tile_insert(w->p, w->core, w->at++, s);
  }
}

/* --- orientation --- */

typedef struct reading {
  uint32_t tile;
  bool other; /* than by a product */
} reading;

static void find_other(void *user, bb_tile_body *body, uint32_t at) {
  reading *r = user;
  const bb_tile_stmt *s = body->stmt[at];
  for (uint32_t i = 0; i < s->operands; i++)
    r->other |= s->operand[i] == r->tile && s->kind != BB_TILE_DOT;
}

static void turn_operand(void *user, bb_tile_body *body, uint32_t at) {
  const reading *r = user;
  bb_tile_stmt *s = body->stmt[at];
  for (uint32_t i = 0; s->kind == BB_TILE_DOT && i < 2; i++)
    if (s->operand[i] == r->tile) s->transposed[i] = !s->transposed[i];
}

/* A tile is copied along the last axis of its view: that becomes its columns. */
static void orient(void *user, bb_tile_body *body, uint32_t at) {
  bb_gpu_placer *w = user;
  bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_LOAD) return;
  w->loaded[s->result] = true;
  const bb_tile_view *view = &w->p->view[s->view];
  bb_tile *t = &w->p->tile[s->result];
  bb_tile_range *last = &s->range[view->rank - 1];
  reading r = {.tile = s->result};
  bb_tile_walk(&w->p->body, find_other, &r);
  if (!last->size || last->axis != BB_AXIS_ROW || r.other) return;
  for (uint32_t i = 0; i < view->rank; i++)
    if (s->range[i].size)
      s->range[i].axis = s->range[i].axis == BB_AXIS_ROW ? BB_AXIS_COL : BB_AXIS_ROW;
  uint32_t rows = t->rows;
  t->rows = t->cols;
  t->cols = rows;
  bb_tile_walk(&w->p->body, turn_operand, &r);
}

void bb_gpu_orient(bb_gpu *g) {
  bb_gpu_placer w = {.g = g, .p = g->p};
  w.loaded = BB_NEW(g->p->home->arena, bool, g->p->tiles + 1);
  bb_tile_walk(&g->p->body, orient, &w);
}

void bb_gpu_hoist(bb_gpu *g, bb_tile_body *core, uint32_t *loop) {
  bb_gpu_placer w = {
      .g = g, .p = g->p, .core = core, .at = *loop, .serial = core->stmt[*loop]->loop};
  hoist_loads(&w);
  *loop = w.at;
}

/* --- stages --- */

static bool ties(const bb_tile_stmt *a, const bb_tile_stmt *b, uint32_t tile) {
  bool a_writes = bb_tile_writes(a, tile), b_writes = bb_tile_writes(b, tile);
  return (a_writes && (b_writes || bb_tile_reads(b, tile))) || (b_writes && bb_tile_reads(a, tile));
}

/* Does what would run a stage earlier wait for a late product? */
static bool is_awaited(const bb_gpu_placer *w, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++)
    for (uint32_t k = i + 1; body->stmt[i]->stage && k < body->count; k++)
      for (uint32_t t = 0; t < w->p->tiles; t++)
        if (body->stmt[k]->stage == 0 && ties(body->stmt[i], body->stmt[k], t)) return true;
  return false;
}

/* Marks what depends on a product of the same iteration. */
static void find_stages(bb_gpu_placer *w) {
  bb_tile_body *body = &w->serial->body;
  bool *after = BB_NEW(w->p->home->arena, bool, w->p->tiles + 1);
  uint32_t products = 0, late = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    bool reads = false;
    for (uint32_t t = 0; t < w->p->tiles; t++) reads |= after[t] && bb_tile_reads(s, t);
    if (s->kind == BB_TILE_DOT) {
      reads = after[s->operand[0]] || after[s->operand[1]];
      products++;
      if (reads) s->stage = 1, late++;
      if (!s->accumulate) after[s->result] = true;
      continue;
    }
    for (uint32_t t = 0; reads && t < w->p->tiles; t++) after[t] |= bb_tile_writes(s, t);
  }
  w->staged = late > 0 && products > late && w->serial->stretches > 1 &&
              !w->serial->stretch[0].to && !w->g->warps && !is_awaited(w, body);
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    if (!w->staged) s->stage = 0;
    if (!w->staged || s->kind != BB_TILE_LOAD) continue;
    bool early = false;
    for (uint32_t k = 0; k < body->count; k++)
      early |= bb_tile_reads(body->stmt[k], s->result) && body->stmt[k]->stage == 0;
    s->stage = early ? 0 : 1;
  }
}

/* --- places --- */

static void place_operands(void *user, bb_tile_body *body, uint32_t at) {
  bb_gpu_placer *w = user;
  const bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_DOT) return;
  for (uint32_t i = 0; i < 2; i++) {
    bb_tile *t = &w->p->tile[s->operand[i]];
    if (w->loaded[s->operand[i]])
      t->place = BB_PLACE_SHARED;
    else if (i == 0 && !s->transposed[0])
      t->place = BB_PLACE_LEFT;
    else
      bb_gpu_refuse(w->g, "a right operand that is computed");
  }
  const bb_tile *c = &w->p->tile[s->result];
  if (c->rows % bb_gpu_group_rows(w))
    bb_gpu_refuse(w->g, "a product of other rows than groups have");
  if (w->groups && w->groups != c->rows / bb_gpu_group_rows(w))
    bb_gpu_refuse(w->g, "products of different numbers of rows");
  w->groups = c->rows / bb_gpu_group_rows(w);
  if (c->cols % 8 || c->cols > 256) bb_gpu_refuse(w->g, "a product of so many columns");
}

typedef struct beside {
  bb_gpu_placer *w;
  const bb_tile_body *body; /* of its load */
  uint32_t tile;
  bool fits;
} beside;

static void find_reader_beside(void *user, bb_tile_body *body, uint32_t at) {
  beside *b = user;
  const bb_tile_stmt *s = body->stmt[at];
  if (!bb_tile_reads(s, b->tile) || s->body.count || s->loop) return;
  const bb_tile *t = &b->w->p->tile[b->tile],
                *r = s->result == BB_NONE ? t : &b->w->p->tile[s->result];
  bool left = body == b->w->core && r->place == BB_PLACE_LEFT;
  b->fits &= s->kind == BB_TILE_MAP && body == b->body && (r->dtype == BB_F32 || left) &&
             r->rows == t->rows && r->cols == t->cols;
}

static void place_loads_beside(bb_gpu_placer *w, bb_tile_body *body, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_LOAD) continue;
    bb_tile *t = &w->p->tile[s->result];
    const bb_tile_view *view = &w->p->view[s->view];
    const bb_tile_range *last = &s->range[view->rank - 1];
    bb_tile_index stride = view->strided ? view->stride[view->rank - 1] : NULL;
    beside b = {w, body, s->result, t->place == BB_PLACE_REGISTERS};
    b.fits &= !bb_tile_has_two_rows(s, view->rank) && t->rows == bb_gpu_group_rows(w) * w->groups &&
              t->cols && t->cols % 64 == 0 && (t->dtype == BB_F16 || t->dtype == BB_BF16) &&
              view->rank > 1 && last->size && last->axis == BB_AXIS_COL && s->pad == 0 &&
              (!stride || bb_expr_is_number(stride, 1));
    if (b.fits) bb_tile_walk(&w->p->body, find_reader_beside, &b);
    if (b.fits) t->place = BB_PLACE_SHARED;
  }
}

/* What is loaded beside products' operands, as biases of scores or what an operand is computed from, comes to shared memory, too,
 * where maps read it. */
static void place_beside(bb_gpu_placer *w) {
  if (!w->serial || w->g->warps) return;
  place_loads_beside(w, &w->serial->body, w->serial->body.count);
  place_loads_beside(w, w->core, w->at);
}

/* Without products the rows of what is stored say how many groups there are. */
static void group_by_rows(void *user, bb_tile_body *body, uint32_t at) {
  bb_gpu_placer *w = user;
  const bb_tile_stmt *s = body->stmt[at];
  uint32_t rows = s->kind == BB_TILE_STORE ? w->p->tile[s->operand[0]].rows : 0;
  if (rows && rows % bb_gpu_group_rows(w) == 0) w->groups = rows / bb_gpu_group_rows(w);
}

static void find_exchange(void *user, bb_tile_body *body, uint32_t at) {
  *(bool *)user |= body->stmt[at]->kind == BB_TILE_TRANSPOSE;
}

static uint32_t blocks_beside(const bb_gpu_placer *w) {
  return w->g->blocks ? w->g->blocks : 1;
}

/* Bytes of shared memory for the tiles of a block. */
static uint32_t shared_bytes(const bb_gpu_placer *w) {
  bool exchange = !w->g->warps; /* of groups: their barriers */
  uint32_t all = w->g->warps ? w->g->shared : SHARED_BYTES;
  uint32_t each = (all + KEPT_BYTES) / blocks_beside(w) - KEPT_BYTES;
  bb_tile_walk(&w->p->body, find_exchange, &exchange);
  if (!exchange && !w->g->split) return each;
  return each > EXCHANGE_BYTES ? each - EXCHANGE_BYTES : 0;
}

/* How many registers a thread that computes may have, and one that copies. */
static void give_registers(bb_gpu_placer *w) {
  enum { COPYING = 40, COPYING_BESIDE_THREE = 32 };
  if (w->groups > 3) bb_gpu_refuse(w->g, "more than three warp groups");
  if (!w->g->warps && blocks_beside(w) > 1 && w->groups > 1)
    bb_gpu_refuse(w->g, "several warp groups in a part of a processor");
  w->p->groups = w->groups;
  uint32_t all = REGISTERS / (blocks_beside(w) * 128), most = MOST_REGISTERS;
  if (!w->g->warps) {
    w->p->copier_registers = w->groups == 3 ? COPYING_BESIDE_THREE : COPYING;
    all -= w->p->copier_registers;
    most = MOST_OF_GROUPS;
  }
  uint32_t each = all / w->groups;
  w->p->registers = each > most ? most : each & ~7u;
}

/* Two groups that want about all they have take from a copier what it does without where a loop has no stages.  How many
 * long functions want is not known so well. */
static void borrow_registers(bb_gpu_placer *w) {
  enum { SPARE = 8, FEWEST_COPYING = 24 };
  if (w->g->warps || w->groups != 2 || w->staged || bb_gpu_has_long(w)) return;
  if (bb_gpu_registers_needed(w) + SPARE <= w->p->registers) return;
  w->p->registers = MOST_OF_GROUPS;
  w->p->copier_registers = FEWEST_COPYING;
}

/* Are values of many columns loaded for what parts of folds are computed to?  A thread asks for those of its elements while it combines
 * them, and how many registers that wants is not known so well. */
static bool loads_columns_behind(const bb_gpu_placer *w) {
  enum { MANY = 128 };
  for (uint32_t i = w->at + 1; w->g->split && i < w->core->count; i++) {
    const bb_tile_stmt *s = w->core->stmt[i];
    const bb_tile *t = s->kind == BB_TILE_LOAD ? &w->p->tile[s->result] : NULL;
    if (t && !t->rows && t->cols > MANY) return true;
  }
  return false;
}

/* Groups take no more registers than they want where that leaves some: blocks of the launch behind find room beside a block, and
 * are there when it ends.  Of two groups that is so for what all threads begin with. */
static void spare_registers(bb_gpu_placer *w) {
  enum { FEWEST = 128, SPARE = 32 };
  if (w->g->warps || w->groups > 2 || w->staged || blocks_beside(w) > 1) return;
  if (bb_gpu_has_long(w) || loads_columns_behind(w)) return;
  uint32_t wanted = (bb_gpu_registers_needed(w) + SPARE + 7) & ~7u;
  if (wanted < FEWEST) wanted = FEWEST;
  if (wanted < w->p->registers && (w->groups == 1 || wanted == FEWEST)) w->p->registers = wanted;
}

/* Is the tile made anew in every run of the body, by its first statement to touch it?  That one. */
static uint32_t made_at(const bb_tile_body *body, uint32_t tile) {
  for (uint32_t j = 0; j < body->count; j++) {
    const bb_tile_stmt *s = body->stmt[j];
    bool reads = bb_tile_reads(s, tile);
    if (!reads && !bb_tile_writes(s, tile)) continue;
    return !reads && s->result == tile && !s->stretches ? j : BB_NONE;
  }
  return BB_NONE;
}

static uint32_t last_use(const bb_tile_body *body, uint32_t tile) {
  uint32_t last = 0;
  for (uint32_t j = 0; j < body->count; j++)
    if (bb_tile_reads(body->stmt[j], tile) || bb_tile_writes(body->stmt[j], tile)) last = j;
  return last;
}

static bool only_in(const bb_gpu_placer *w, bb_tile_body *body, uint32_t tile) {
  bb_tile_body *all = &w->p->body;
  return bb_tile_readers(body, tile) == bb_tile_readers(all, tile) &&
         bb_tile_writers(body, tile) == bb_tile_writers(all, tile);
}

static bool is_alike(const bb_tile *a, const bb_tile *b) {
  return bb_tile_have_one_form(a, b) && a->place == BB_PLACE_REGISTERS &&
         b->place == BB_PLACE_REGISTERS && a->partial == b->partial;
}

/* Is the tile made to be stored, and for nobody else?  Then it may leave by a memory of its own. */
static bool is_result(const bb_gpu_placer *w, uint32_t tile) {
  for (uint32_t i = w->at + 1; i < w->core->count; i++) {
    const bb_tile_stmt *s = w->core->stmt[i];
    if (s->kind == BB_TILE_STORE && s->operand[0] == tile)
      return bb_tile_readers(&w->p->body, tile) == 1;
  }
  return false;
}

/* A tile made where another of its form was needed last takes its place: blocks element by element. */
static void reuse_in(bb_gpu_placer *w, bb_tile_body *body, bool results) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    uint32_t t = s->result;
    if (t == BB_NONE || s->kind == BB_TILE_LOAD || s->kind == BB_TILE_DOT) continue;
    if (made_at(body, t) != i || !only_in(w, body, t)) continue;
    bool block = w->p->tile[t].rows && w->p->tile[t].cols;
    if (block && !results && is_result(w, t)) continue;
    for (uint32_t x = 0; x < w->p->tiles; x++) {
      uint32_t made = x == t || w->loaded[x] ? BB_NONE : made_at(body, x);
      if (made == BB_NONE || made >= i || last_use(body, x) > i || !only_in(w, body, x)) continue;
      if (!is_alike(&w->p->tile[t], &w->p->tile[x])) continue;
      if (block && (s->kind != BB_TILE_MAP || (!results && is_result(w, x)))) continue;
      /* the end of an iteration of the grid may run beside the begin of the next */
      bool crosses = body == w->core && w->serial &&
                     (bb_tile_reads(body->stmt[w->at], x) || bb_tile_writes(body->stmt[w->at], x));
      if (crosses) continue;
      bb_tile_rename(&w->p->body, t, x);
      break;
    }
  }
}

static bool may_hold(const bb_gpu_placer *w, const bb_tile_stmt *s) {
  uint32_t t = s->operand[0];
  if (s->kind != BB_TILE_DOT || s->transposed[0] || !w->loaded[t]) return false;
  if (bb_tile_writers(&w->serial->body, t)) return false;
  if (bb_tile_readers(&w->serial->body, t) != bb_tile_readers(&w->p->body, t)) return false;
  uint32_t size = w->p->tile[t].rows * w->p->tile[t].cols / (256 * w->groups);
  size += bb_gpu_registers_in_flight(w);
  return bb_gpu_registers_needed(w) + size <= w->p->registers;
}

/* Is there an operand of the loop's products that is loaded before it, and has no room in registers? */
static bool has_standing(const bb_gpu_placer *w) {
  for (uint32_t i = 0; w->serial && i < w->serial->body.count; i++) {
    const bb_tile_stmt *s = w->serial->body.stmt[i];
    for (uint32_t k = 0; s->kind == BB_TILE_DOT && k < 2; k++) {
      uint32_t t = s->operand[k];
      if (w->loaded[t] && !bb_tile_writers(&w->serial->body, t) && (k || !may_hold(w, s)))
        return true;
    }
  }
  return false;
}

/* A left operand that the loop reads in every iteration is held in registers, where there is room. */
static void hold_left(bb_gpu_placer *w) {
  for (uint32_t i = 0; w->serial && i < w->serial->body.count; i++) {
    bb_tile_stmt *s = w->serial->body.stmt[i];
    if (!may_hold(w, s)) continue;
    uint32_t t = s->operand[0];
    bb_tile_stmt *copy = bb_tile_stmt_new(w->p, BB_TILE_MAP);
    copy->result = bb_tile_like(w->p, t, w->p->tile[t].dtype);
    w->p->tile[copy->result].place = BB_PLACE_LEFT;
    bb_tile_rename(&w->serial->body, t, copy->result);
    bb_tile_set(w->p, copy, bb_tile_name(w->p, t));
    bb_tile_insert(w->p, w->core, w->at++, copy);
  }
}

/* --- shared memory --- */

static uint32_t bytes_of(const bb_tile *t) {
  return (bb_tile_shared_bytes(t) + 1023) & ~1023u;
}

/* Do columns end with a line of shared memory, or with the array? */
static bool fills_lines(const bb_tile *t, const bb_tile_view *view, const bb_tile_range *columns) {
  bb_tile_index extent = view->extent[view->rank - 1];
  return t->cols % 64 == 0 || (bb_expr_is_number(columns->start, 0) && extent->op == BB_X_CONST &&
                               extent->number <= t->cols);
}

/* Results leave through shared memory, if that leaves two buffers for everything that is loaded. */
static void place_stores(bb_gpu_placer *w) {
  for (uint32_t i = 0; i < w->core->count; i++) {
    const bb_tile_stmt *s = w->core->stmt[i];
    if (s->kind != BB_TILE_STORE) continue;
    bb_tile *t = &w->p->tile[s->operand[0]];
    const bb_tile_view *view = &w->p->view[s->view];
    bb_tile_index stride = view->strided ? view->stride[view->rank - 1] : NULL;
    bool fits = !bb_tile_has_two_rows(s, view->rank) && bb_dtype_bytes(t->dtype) == 2 &&
                t->rows == bb_gpu_group_rows(w) * w->groups && t->cols &&
                fills_lines(t, view, &s->range[view->rank - 1]) &&
                s->range[view->rank - 1].axis == BB_AXIS_COL && s->range[view->rank - 1].size &&
                view->rank >= 2 && (i > w->at || !w->serial) &&
                (!stride || (stride->op == BB_X_CONST && stride->number == 1));
    if (fits && bb_tile_readers(&w->p->body, s->operand[0]) == 1) t->place = BB_PLACE_SHARED;
  }
}

/* Do results leave through this tile?  Behind a loop that has ended, which is not the next one's begin, they lie where
 * what it loaded did. */
static bool is_left(const bb_gpu_placer *w, uint32_t tile) {
  bool ended = !w->staged || w->stands;
  for (uint32_t i = w->at + 1; ended && i < w->core->count; i++)
    if (w->core->stmt[i]->kind == BB_TILE_STORE && w->core->stmt[i]->operand[0] == tile)
      return true;
  return false;
}

/* Is the loop one of products alone, of the same length for all of the grid?  Then a block may take several parts of the grid: it
 * loads for the next one while its results leave, which then do so in pieces (emit_sm90_pieces.c). */
static bool may_persist(const bb_gpu_placer *w) {
  if (!w->serial || w->staged || w->stands || w->g->split || w->g->warps || &w->p->body == w->core)
    return false;
  for (uint32_t i = 0; i < w->serial->body.count; i++)
    if (w->serial->body.stmt[i]->kind != BB_TILE_LOAD &&
        w->serial->body.stmt[i]->kind != BB_TILE_DOT)
      return false;
  for (bb_tile_body *body = &w->p->body; body != w->core; body = &body->stmt[0]->loop->body)
    if (bb_gpu_varies_with(w, body->stmt[0]->loop->variable)) return false;
  for (uint32_t i = w->at + 1; i < w->core->count; i++) {
    const bb_tile_stmt *s = w->core->stmt[i], *map = w->core->stmt[i - 1];
    if (s->kind != BB_TILE_STORE || w->p->tile[s->operand[0]].place != BB_PLACE_SHARED) continue;
    if (map->kind != BB_TILE_MAP || map->result != s->operand[0] || !map->operands ||
        bb_expr_uses_coord(map->expr) || bb_tile_writers(&w->p->body, map->result) != 1)
      return false;
  }
  return true;
}

static bool give_buffers(bb_gpu_placer *w) {
  uint32_t fixed = 0, turning = 0, left = 0, pieces = 0;
  w->persists = w->persists && may_persist(w);
  for (uint32_t t = 0; t < w->p->tiles; t++) {
    bb_tile *tile = &w->p->tile[t];
    tile->buffers = 1;
    if (tile->place != BB_PLACE_SHARED || !bb_tile_writers(&w->p->body, t)) continue;
    if (w->serial && bb_tile_writers(&w->serial->body, t))
      turning += bytes_of(tile);
    else if (w->serial && is_left(w, t) && w->persists)
      pieces = tile->rows * PIECES_BYTES; /* all results leave by one memory */
    else if (w->serial && is_left(w, t))
      left += bytes_of(tile);
    else
      fixed += bytes_of(tile);
  }
  fixed += pieces;
  if (left > 2 * turning) fixed += left;
  uint32_t room = shared_bytes(w);
  if (fixed > room || (turning && (room - fixed) / turning < 2)) return false;
  uint32_t buffers = turning ? (room - fixed) / turning : 1;
  if (buffers > (w->staged ? 2 : MOST_BUFFERS)) buffers = w->staged ? 2 : MOST_BUFFERS;
  if (w->persists && fixed + buffers * turning <= room / 2) { /* blocks overlap as they are */
    w->persists = false;
    return give_buffers(w);
  }
  for (uint32_t t = 0; w->serial && t < w->p->tiles; t++)
    if (w->p->tile[t].place == BB_PLACE_SHARED && bb_tile_writers(&w->serial->body, t))
      w->p->tile[t].buffers = buffers;
  return true;
}

static void keep_stores(bb_gpu_placer *w) {
  for (uint32_t i = 0; i < w->core->count; i++)
    if (w->core->stmt[i]->kind == BB_TILE_STORE)
      w->p->tile[w->core->stmt[i]->operand[0]].place = BB_PLACE_REGISTERS;
}

/* Bytes that the copy engine wants arrays' rows to be multiples of, as elements of 16 bits. */
enum { ALIGNED = 8 };

static bool is_aligned(bb_tile_index x) {
  if (x->op == BB_X_CONST) return fmod(x->number, ALIGNED) == 0;
  if (x->op == BB_X_MUL) return is_aligned(x->a[0]) || is_aligned(x->a[1]);
  return x->op == BB_X_ADD && is_aligned(x->a[0]) && is_aligned(x->a[1]);
}

/* Are rows as far apart as the engine wants, or as those of the result, which it takes as well? */
static bool lies_aligned(const bb_tile_view *view, const bb_tile_view *result) {
  for (uint32_t i = 0; i + 1 < view->rank; i++) {
    bool known = !view->strided || is_aligned(view->stride[i]);
    for (uint32_t k = 0; !known && result->strided && k < result->rank; k++)
      known = view->stride[i] == result->stride[k];
    if (!known) return false;
  }
  return view->strided;
}

static bool is_whole_load(const bb_gpu_placer *w, const bb_tile_stmt *load, const bb_tile *like) {
  const bb_tile_view *view = &w->p->view[load->view];
  const bb_tile *t = &w->p->tile[load->result];
  bb_tile_index stride = view->strided ? view->stride[view->rank - 1] : NULL;
  return !bb_tile_has_two_rows(load, view->rank) && t->rows == like->rows &&
         t->cols == like->cols && bb_dtype_bytes(t->dtype) == 2 && t->dtype == view->dtype &&
         load->pad == 0 && view->rank >= 2 && view->rank <= 5 && load->range[view->rank - 1].size &&
         load->range[view->rank - 1].axis == BB_AXIS_COL &&
         (!stride || (stride->op == BB_X_CONST && stride->number == 1)) &&
         bb_tile_writers(&w->p->body, load->result) == 1 &&
         bb_tile_readers(&w->p->body, load->result) == 1;
}

/* What a persistent block's only result is computed from beside products may come the way that the result leaves, piece by
 * piece, while the loop runs (emit_sm90_pieces.c): it needs no registers till then. */
static void place_added(bb_gpu_placer *w) {
  const bb_tile_stmt *map = NULL, *store = NULL;
  uint32_t results = 0;
  for (uint32_t i = w->at + 1; i < w->core->count; i++) {
    const bb_tile_stmt *s = w->core->stmt[i];
    if (s->kind != BB_TILE_STORE || w->p->tile[s->operand[0]].place != BB_PLACE_SHARED) continue;
    results++;
    map = w->core->stmt[i - 1];
    store = s;
  }
  for (uint32_t i = 0; results == 1 && i < w->core->count; i++) {
    const bb_tile_stmt *load = w->core->stmt[i];
    if (load->kind != BB_TILE_LOAD || !bb_tile_reads(map, load->result)) continue;
    bb_tile *t = &w->p->tile[load->result];
    if (t->place != BB_PLACE_REGISTERS || !is_whole_load(w, load, &w->p->tile[map->result]) ||
        !lies_aligned(&w->p->view[load->view], &w->p->view[store->view]))
      continue;
    t->place = BB_PLACE_SHARED;
    t->buffers = 1;
    return;
  }
}

void bb_gpu_place(bb_gpu *g) {
  bb_gpu_placer w = {.g = g, .p = g->p};
  w.loaded = BB_NEW(g->p->home->arena, bool, g->p->tiles + 1);
  find_core(&w);
  hoist_loads(&w);
  bb_tile_walk(&g->p->body, orient, &w);
  if (w.serial) find_stages(&w);
  bb_tile_walk(&g->p->body, place_operands, &w);
  if (!w.groups) bb_tile_walk(&g->p->body, group_by_rows, &w);
  if (!w.groups) bb_gpu_refuse(g, "neither products nor rows");
  place_beside(&w);
  give_registers(&w);
  reuse_in(&w, w.core, g->split);
  if (w.serial) reuse_in(&w, &w.serial->body, true);
  if (!g->split) place_stores(&w);
  reuse_in(&w, w.core, true); /* those that leave from registers */
  w.stands = has_standing(&w);
  w.persists = true;
  if (!give_buffers(&w)) {
    w.persists = true;
    keep_stores(&w);
    reuse_in(&w, w.core, true);
    if (!give_buffers(&w)) bb_gpu_refuse(g, "tiles need more shared memory than a block has");
  }
  if (w.persists) place_added(&w);
  borrow_registers(&w);
  if (bb_gpu_registers_needed(&w) > g->p->registers)
    bb_gpu_refuse(g, "tiles need more registers than a thread has");
  spare_registers(&w);
  hold_left(&w);
  w.stands = has_standing(&w);
  g->p->turns = w.staged && w.groups == 2;
  bb_gpu_schedule_grid(&w);
}
