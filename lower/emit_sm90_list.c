/* emit_sm90_list.c - the lists of a core, and the code of each: in the warps that compute, and in the
 * copier, which loads in the order in which they will wait.
 */
#include "emit_sm90.h"

static void add(bb_cuda *e, bb_cuda_item *item, uint32_t *count, const bb_tile_stmt *stmt,
                bool old) {
  if (*count == 96) bb_cuda_refuse(e, stmt, "a list too long");
  item[(*count)++] = (bb_cuda_item){stmt, old};
}

static void add_list(bb_cuda *e, bb_cuda_item *item, uint32_t *count, const bb_cuda_list *list,
                     bool old) {
  for (uint32_t i = 0; i < list->count; i++) add(e, item, count, list->stmt[i], old);
}

/* Statements of the serial loop: of stage 0 in a stretch, or of the later stage. */
static void add_stage(bb_cuda *e, bb_cuda_item *item, uint32_t *count, bool late,
                      uint32_t stretch) {
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (late && s->stage && s->stretches)
      bb_cuda_refuse(e, s, "a late statement of some stretches only");
    if ((s->stage > 0) != late) continue;
    if (!late && s->stretches && !(s->stretches >> stretch & 1)) continue;
    add(e, item, count, s, late);
  }
}

static const bb_cuda_item *items_of(bb_cuda *e, bb_cuda_place place, uint32_t stretch,
                                    uint32_t *count) {
  bb_cuda_item *item = BB_NEW(e->arena, bb_cuda_item, 96);
  *count = 0;
  if (place == BB_LIST_STEADY || place == BB_LIST_JOIN || place == BB_LIST_END)
    add_stage(e, item, count, true, 0);
  if (place == BB_LIST_JOIN || place == BB_LIST_END) add_list(e, item, count, &e->after, true);
  if (place == BB_LIST_JOIN || place == BB_LIST_BEGIN) add_list(e, item, count, &e->before, false);
  if (place != BB_LIST_END) add_stage(e, item, count, false, stretch);
  return item;
}

/* --- code --- */

static void put_act(bb_cuda *e, const bb_cuda_act *a, const bb_cuda_item *item) {
  const bb_cuda_tile *t = &e->tile[a->tile];
  const char *at = e->warps ? "[my_warp]" : "";
  switch (a->kind) {
  case BB_ACT_ARRIVED:
    bb_cuda_line(e, "tl::ring_wait(sync.%s%s, %s_ring);", t->name, at, t->name);
    break;
  case BB_ACT_RUN: bb_cuda_stmt(e, item[a->item].stmt); break;
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
      bb_cuda_line(e, "refill_%s();", t->name);
    else
      bb_cuda_line(e, "tl::ring_release(sync.%s, %s_ring);", t->name, t->name);
    break;
  case BB_ACT_TAKE: bb_cuda_line(e, "tl::named_sync(1 + group, 256);"); break;
  case BB_ACT_PASS: bb_cuda_line(e, "tl::named_arrive(2 - group, 256);"); break;
  }
}

static void put_copy(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *t = &e->p->tile[s->result];
  const char *name = e->tile[s->result].name;
  uint32_t bytes = t->rows * t->cols * 2;
  bb_cuda_line(e, "tl::ring_claim(sync.%s, %s_ring, %u);", name, name, bytes);
  bb_cuda_load(e, s,
               bb_arena_printf(e->arena, "tile_memory + %u + %s_ring.at * %u",
                               e->tile[s->result].offset, name, bytes),
               bb_arena_printf(e->arena, "&sync.%s.full[%s_ring.at]", name, name));
  bb_cuda_line(e, "%s_ring.next();", name);
}

static void put_list(bb_cuda *e, uint32_t count, const bb_cuda_item *item, bool turns,
                     bool copier) {
  uint32_t acts;
  const bb_cuda_act *a = bb_cuda_order(e, count, item, turns, &acts);
  const char **now = e->variable;
  for (uint32_t i = 0; i < acts; i++) {
    e->variable = item[a[i].item].old ? e->old_variable : now;
    if (!copier)
      put_act(e, &a[i], item);
    else if (a[i].kind == BB_ACT_ARRIVED)
      put_copy(e, item[a[i].item].stmt);
    e->variable = now;
  }
}

void bb_cuda_list_code(bb_cuda *e, bb_cuda_place place, uint32_t stretch, bool copier) {
  uint32_t count;
  const bb_cuda_item *item = items_of(e, place, stretch, &count);
  bool turns = e->p->turns && (place == BB_LIST_STEADY || place == BB_LIST_JOIN);
  put_list(e, count, item, turns, copier);
}

void bb_cuda_run_list(bb_cuda *e, const bb_cuda_list *list) {
  bb_cuda_item item[96];
  uint32_t count = 0;
  add_list(e, item, &count, list, false);
  put_list(e, count, item, false, false);
}
