/* emit_sm90_list.c - the lists of a core, and the code of each: in the warps that compute, and in the
 * copier, which loads in the order in which they will wait.
 */
#include "emit_sm90.h"

static void add(bb_cuda *e, bb_cuda_item *item, uint32_t *count, const bb_tile_stmt *stmt, bool old,
                const char *when) {
  if (*count == BB_CUDA_ITEMS) bb_cuda_refuse(e, stmt, "a list too long");
  item[(*count)++] = (bb_cuda_item){stmt, old, when};
}

static void add_list(bb_cuda *e, bb_cuda_item *item, uint32_t *count, const bb_cuda_list *list,
                     bool old) {
  for (uint32_t i = 0; i < list->count; i++) add(e, item, count, list->stmt[i], old, NULL);
}

/* Is it a map of what lies in registers?  Nothing waits for it, nothing is freed behind it. */
static bool is_of_registers(const bb_cuda *e, const bb_tile_stmt *s) {
  bool is = s->kind == BB_TILE_MAP && e->p->tile[s->result].place == BB_PLACE_REGISTERS;
  for (uint32_t i = 0; i < s->operands; i++)
    is = is && e->p->tile[s->operand[i]].place == BB_PLACE_REGISTERS;
  return is;
}

bool bb_cuda_may_be_one(const bb_cuda *e, uint32_t stretch, uint32_t other) {
  bool may = true;
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    bool differ = s->stretches && (s->stretches >> stretch & 1) != (s->stretches >> other & 1);
    may = may && (!differ || is_of_registers(e, s));
  }
  return may;
}

/* Whether a statement runs in the stretch at hand, as text; NULL: in all of them. */
static const char *when_of(const bb_cuda *e, const bb_tile_stmt *s, bb_cuda_stretches at) {
  uint32_t all = ((1u << at.count) - 1) << at.first, in = s->stretches & all, out = all & ~in;
  if (!s->stretches || !out) return NULL;
  if (!(in & (in - 1))) return bb_arena_printf(e->arena, "%s == %d", at.part, __builtin_ctz(in));
  if (!(out & (out - 1))) return bb_arena_printf(e->arena, "%s != %d", at.part, __builtin_ctz(out));
  return bb_arena_printf(e->arena, "%#x >> %s & 1", in, at.part);
}

/* Statements of the serial loop: of stage 0 in some stretches, or of the later stage. */
static void add_stage(bb_cuda *e, bb_cuda_item *item, uint32_t *count, bool late,
                      bb_cuda_stretches at) {
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (late && s->stage && s->stretches)
      bb_cuda_refuse(e, s, "a late statement of some stretches only");
    if ((s->stage > 0) != late) continue;
    if (!late && s->stretches && !(s->stretches >> at.first & ((1u << at.count) - 1))) continue;
    add(e, item, count, s, late, when_of(e, s, at));
  }
}

static const bb_cuda_item *items_of(bb_cuda *e, bb_cuda_place place, bb_cuda_stretches stretches,
                                    uint32_t *count) {
  bb_cuda_item *item = BB_NEW(e->arena, bb_cuda_item, BB_CUDA_ITEMS);
  *count = 0;
  if (place == BB_LIST_STEADY || place == BB_LIST_JOIN || place == BB_LIST_END)
    add_stage(e, item, count, true, stretches);
  if (place == BB_LIST_JOIN || place == BB_LIST_END) add_list(e, item, count, &e->after, true);
  if (place == BB_LIST_JOIN || place == BB_LIST_BEGIN) add_list(e, item, count, &e->before, false);
  if (place != BB_LIST_END) add_stage(e, item, count, false, stretches);
  return item;
}

/* --- code --- */

static const char *refill_of(const bb_cuda *e, uint32_t tile) {
  return bb_arena_printf(e->arena, "refill_%s();", e->tile[tile].name);
}

/* Is act i a warp's product, and the next the release of its left operand? */
static bool is_read_at_once(const bb_cuda *e, uint32_t acts, const bb_cuda_act *a, uint32_t i,
                            const bb_cuda_item *item) {
  const bb_tile_stmt *s = item[a[i].item].stmt;
  return e->warps && a[i].kind == BB_ACT_RUN && s->kind == BB_TILE_DOT && i + 1 < acts &&
         a[i + 1].kind == BB_ACT_RELEASE && a[i + 1].tile == s->operand[0];
}

static void put_run(bb_cuda *e, const bb_cuda_item *item) {
  if (item->when) {
    bb_cuda_line(e, "if (%s) {", item->when);
    e->depth++;
  }
  bb_cuda_stmt(e, item->stmt);
  if (item->when) {
    e->depth--;
    bb_cuda_line(e, "}");
  }
}

static void put_act(bb_cuda *e, const bb_cuda_act *a, const bb_cuda_item *item) {
  const bb_cuda_tile *t = &e->tile[a->tile];
  const char *at = e->warps ? "[my_warp]" : t->parts > 1 ? "[group]" : "";
  if (e->sm80 && a->kind != BB_ACT_RUN) { /* products have ended, and buffers are freed by turns */
    if (a->kind == BB_ACT_ARRIVED) bb_cuda80_arrived(e, a->tile);
    return;
  }
  switch (a->kind) {
  case BB_ACT_ARRIVED:
    bb_cuda_line(e, "tl::ring_wait(sync.%s%s, %s_ring);", t->name, at, t->name);
    break;
  case BB_ACT_RUN: put_run(e, &item[a->item]); break;
  case BB_ACT_WAIT: bb_cuda_line(e, "tl::mma_wait<%u>();", a->count); break;
  case BB_ACT_PIN: {
    const bb_tile_stmt *s = item[a->item].stmt;
    bb_cuda_line(e, "tl::pin(%s);", e->tile[s->result].name);
    if (e->tile[s->operand[0]].layout == BB_LAYOUT_LEFT)
      bb_cuda_line(e, "tl::pin(%s);", e->tile[s->operand[0]].name);
    break;
  }
  case BB_ACT_RELEASE:
    if (e->warps)
      bb_cuda_line(e, "%s", refill_of(e, a->tile));
    else
      bb_cuda_line(e, "tl::ring_release(sync.%s%s, %s_ring%s);", t->name, at, t->name,
                   bb_cuda_mates(e, a->tile));
    break;
  case BB_ACT_BEHIND:
    bb_cuda_line(e, "tl::ring_release_before(sync.%s%s, %s_ring, behind%s);", t->name, at, t->name,
                 bb_cuda_mates(e, a->tile));
    bb_cuda_line(e, "%s_ring.next();", t->name);
    break;
  case BB_ACT_TAKE: bb_cuda_line(e, "tl::named_sync(1 + group, 256);"); break;
  case BB_ACT_PASS: bb_cuda_line(e, "tl::named_arrive(2 - group, 256);"); break;
  }
}

/* Parts from..to-1 of the tile's; the ring goes on behind the last. */
static void put_copy(bb_cuda *e, const bb_tile_stmt *s, uint32_t from, uint32_t to) {
  const bb_tile *t = &e->p->tile[s->result];
  const bb_cuda_tile *c = &e->tile[s->result];
  uint32_t bytes = bb_tile_shared_bytes(t), part = bytes / c->parts;
  for (uint32_t i = from; i < to; i++) {
    const char *sync = c->parts > 1 ? bb_arena_printf(e->arena, "sync.%s[%u]", c->name, i)
                                    : bb_arena_printf(e->arena, "sync.%s", c->name);
    if (c->early) {
      bb_cuda_line(e, "if (%s_early > 0) { // it is on its way", c->name);
      bb_cuda_line(e, "  %s_early--;", c->name);
      bb_cuda_line(e, "} else {");
      e->depth++;
    }
    uint32_t row = i * t->rows / c->parts;
    bb_cuda_line(e, "tl::ring_claim(%s, %s_ring, %s);", sync, c->name,
                 bb_cuda_load_bytes(e, s, row));
    bb_cuda_load(e, s, row,
                 bb_arena_printf(e->arena, "tile_memory + %u + %s_ring.at * %u",
                                 c->offset + i * part, c->name, c->stride),
                 bb_arena_printf(e->arena, "&%s.full[%s_ring.at]", sync, c->name));
    if (c->early) {
      e->depth--;
      bb_cuda_line(e, "}");
    }
  }
  if (to == c->parts) bb_cuda_line(e, "%s_ring.next();", c->name);
}

/* Parts of a tile that the copier has yet to load, and how variables are called there. */
typedef struct late {
  const bb_tile_stmt *load;
  const char **names;
} late;

static void put_late(bb_cuda *e, late *l) {
  if (!l->load) return;
  e->variable = l->names;
  put_copy(e, l->load, 1, e->tile[l->load->result].parts);
  l->load = NULL;
}

/* The copier's code: loads in the order in which they are waited for.  But where a tile comes in parts, one for
 * each group, the first group gets what it waits for next before the others get theirs, if that has
 * not to be freed by them first. */
static void put_copies(bb_cuda *e, uint32_t acts, const bb_cuda_act *a, const bb_cuda_item *item) {
  const char **now = e->variable;
  bool *begun = BB_NEW(e->arena, bool, e->p->tiles + 1);
  late before = {NULL, now}, next = before;
  for (uint32_t i = 0; i < acts; i++) {
    if (a[i].kind != BB_ACT_ARRIVED) continue;
    const bb_tile_stmt *load = item[a[i].item].stmt;
    if (!bb_cuda_copies(e, load->result)) continue;
    if (begun[load->result]) put_late(e, &before);
    next.names = e->variable = item[a[i].item].old ? e->old_variable : now;
    put_copy(e, load, 0, 1);
    put_late(e, &before);
    next.load = e->tile[load->result].parts > 1 ? load : NULL;
    before = next;
    begun[load->result] = true;
  }
  put_late(e, &before);
  e->variable = now;
}

/* Does an act only wait for a copy? */
static bool is_arrival(const bb_cuda *e, const bb_cuda_act *a, const bb_cuda_item *item) {
  const bb_tile_stmt *s = item[a->item].stmt;
  bool copied = a->kind == BB_ACT_RUN && s->kind == BB_TILE_LOAD && e->tile[s->result].ring;
  return copied || a->kind == BB_ACT_ARRIVED;
}

/* The place of the product that is made together with act i's, with nothing but arrivals between them; 0: none. */
static uint32_t second_at(const bb_cuda *e, uint32_t acts, const bb_cuda_act *a, uint32_t i,
                          const bb_cuda_item *item) {
  const bb_tile_stmt *second = NULL;
  if (a[i].kind == BB_ACT_RUN) second = bb_cuda_second(e, item[a[i].item].stmt);
  uint32_t k = i + 1;
  while (second && k < acts && is_arrival(e, &a[k], item)) k++;
  bool is = second && k < acts && a[k].kind == BB_ACT_RUN && item[a[k].item].stmt == second &&
            item[a[k].item].old == item[a[i].item].old;
  return is ? k : 0;
}

static void put_list(bb_cuda *e, uint32_t count, const bb_cuda_item *item, bool turns, bool lags,
                     bool copier) {
  uint32_t acts;
  const bb_cuda_act *a = bb_cuda_order(e, count, item, turns, lags, &acts);
  const char **now = e->variable;
  if (copier) put_copies(e, acts, a, item);
  for (uint32_t i = 0; !copier && i < acts; i++) {
    e->variable = item[a[i].item].old ? e->old_variable : now;
    uint32_t second = second_at(e, acts, a, i, item);
    if (is_read_at_once(e, acts, a, i, item)) {
      bb_cuda_warp_dot(e, item[a[i].item].stmt, refill_of(e, a[i + 1].tile)), i++;
    } else if (second) {
      const bb_tile_stmt *first = item[a[i].item].stmt;
      while (++i < second) put_act(e, &a[i], item);
      bb_cuda_both_dots(e, first, item[a[second].item].stmt);
    } else {
      put_act(e, &a[i], item);
    }
    e->variable = now;
  }
}

void bb_cuda_list_code(bb_cuda *e, bb_cuda_place place, bb_cuda_stretches stretches, bool copier) {
  uint32_t count;
  const bb_cuda_item *item = items_of(e, place, stretches, &count);
  bool turns = e->p->turns && (place == BB_LIST_STEADY || place == BB_LIST_JOIN);
  bool lags = e->lags && place == BB_LIST_PLAIN;
  if (e->turns) bb_cuda80_turn(e);
  put_list(e, count, item, turns, lags, copier);
  if (e->turns) bb_cuda_line(e, "turns.next();");
  if (lags && !copier) bb_cuda_line(e, "behind = true;");
}

void bb_cuda_end_lag(bb_cuda *e) {
  bool *done = BB_NEW(e->arena, bool, e->p->tiles + 1);
  bb_cuda_line(e, "tl::mma_wait<0>();");
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (s->kind != BB_TILE_DOT) continue;
    if (!done[s->result]) bb_cuda_line(e, "tl::pin(%s);", e->tile[s->result].name);
    done[s->result] = true;
    for (uint32_t k = 0; k < 2; k++) {
      const char *name = e->tile[s->operand[k]].name;
      if (done[s->operand[k]]) continue;
      done[s->operand[k]] = true;
      bb_cuda_line(e, "tl::ring_release_before(sync.%s, %s_ring, behind%s);", name, name,
                   bb_cuda_mates(e, s->operand[k]));
    }
  }
}

void bb_cuda_run_list(bb_cuda *e, const bb_cuda_list *list, bool copier) {
  bb_cuda_item item[BB_CUDA_ITEMS];
  uint32_t count = 0;
  add_list(e, item, &count, list, false);
  put_list(e, count, item, false, false, copier);
}
