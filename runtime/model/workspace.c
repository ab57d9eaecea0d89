/* workspace.c - where arrays that pass between steps lie: one piece of memory, in which neighbours in time share room.
 *
 * Arrays are placed from the largest to the smallest, each at the lowest place that no array alive at the same steps has.
 * Scratch of kernels lies behind them: one that wants more of it moves no array.
 */
#include "session.h"

enum { LINE = 64 }; /* where a lent workspace is to begin */

static size_t line(size_t bytes) {
  return (bytes + BB_PLAN_APART - 1) / BB_PLAN_APART * BB_PLAN_APART;
}

/* --- arranging --- */

/* Larger ones first, then by number. */
static void sort_by_size(uint32_t count, uint32_t *order, const bb_place *place) {
  for (uint32_t gap = count / 2; gap; gap /= 2)
    for (uint32_t i = gap; i < count; i++) {
      uint32_t moving = order[i], at = i;
      while (at >= gap &&
             (place[order[at - gap]].bytes < place[moving].bytes ||
              (place[order[at - gap]].bytes == place[moving].bytes && order[at - gap] > moving))) {
        order[at] = order[at - gap];
        at -= gap;
      }
      order[at] = moving;
    }
}

static bool meet(const bb_place *a, const bb_place *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset at which a tensor lies beside all that are placed and alive with it.  Each
 * round moves it beyond one of them, so it ends. */
static size_t lowest(const bb_session *s, uint32_t placed, const bb_place *it) {
  size_t at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t i = 0; i < placed; i++) {
      const bb_place *other = &s->place[s->order[i]];
      if (!meet(it, other) || other->offset >= at + line(it->bytes) ||
          at >= other->offset + line(other->bytes))
        continue;
      at = other->offset + line(other->bytes);
      moved = true;
    }
  }
  return at;
}

static size_t held_by(const bb_place *place) {
  return place->home == BB_HOME_WORKSPACE ? place->bytes : 0;
}

/* Anew, as it is kept for the variant. */
static void arrange(bb_session *s) {
  const bb_plan *p = s->model->plan;
  bb_arrangement *a = &s->arrangement[s->variant];
  uint32_t count = 0;
  a->what = BB_ARRANGED_NOT;
  for (uint32_t t = 0; t < p->tensors; t++)
    if (held_by(&s->place[t])) s->order[count++] = t;
  sort_by_size(count, s->order, s->place);
  a->arrays = 0;
  for (uint32_t i = 0; i < count; i++) {
    bb_place *it = &s->place[s->order[i]];
    it->offset = lowest(s, i, it);
    if (it->offset + line(it->bytes) > a->arrays) a->arrays = it->offset + line(it->bytes);
  }
  for (uint32_t t = 0; t < p->tensors; t++) {
    a->bytes[t] = held_by(&s->place[t]);
    a->offset[t] = s->place[t].offset;
  }
  a->what = BB_ARRANGED_FOR_RUN;
}

/* --- kept --- */

/* Whether all that a run needs is as large as it was, or no larger than what is held. */
static bool serves(const bb_session *s, const bb_arrangement *a) {
  uint32_t tensors = s->model->plan->tensors;
  bool at_most = a->what == BB_ARRANGED_AT_MOST;
  bool does = a->what != BB_ARRANGED_NOT && (!at_most || s->scratch <= a->scratch);
  if (s->arranged) return does;
  for (uint32_t t = 0; t < tensors && does; t++) {
    size_t bytes = held_by(&s->place[t]);
    does = at_most ? bytes <= a->bytes[t] : bytes == a->bytes[t];
  }
  return does;
}

static void follow(bb_session *s, const bb_arrangement *a) {
  for (uint32_t t = 0; t < s->model->plan->tensors && !s->arranged; t++)
    if (s->place[t].home == BB_HOME_WORKSPACE) s->place[t].offset = a->offset[t];
}

void bb_session_arrange(bb_session *s) {
  bb_arrangement *a = &s->arrangement[s->variant];
  s->scratch = line(s->scratch ? s->scratch : 1);
  if (serves(s, a))
    follow(s, a);
  else
    arrange(s);
  s->arranged = true;
  s->arrays = a->arrays;
  s->workspace = a->what == BB_ARRANGED_AT_MOST ? a->workspace : a->arrays + s->scratch;
}

/* --- memory --- */

char *bb_session_workspace_memory(bb_session *s) {
  if (!s->lent) {
    bb_session_grow(s, &s->own, &s->own_bytes, s->workspace);
    return s->own;
  }
  char *begin = (char *)(((uintptr_t)s->lent + LINE - 1) & ~(uintptr_t)(LINE - 1));
  if ((size_t)(begin - (char *)s->lent) + s->workspace > s->lent_bytes)
    bb_fail(s->ctx, BB_ERROR_ARGUMENT, "the workspace has %zu bytes, a run needs %zu aligned to %d",
            s->lent_bytes, s->workspace, LINE);
  return begin;
}

static void hold_variant(bb_session *s, uint32_t variant) {
  bb_arrangement *a = &s->arrangement[variant];
  bb_session_take_variant(s, variant);
  bb_session_size(s, BB_ALL_SYMBOLS, true);
  s->scratch = line(s->scratch ? s->scratch : 1);
  arrange(s);
  a->scratch = s->scratch;
  s->workspace = a->workspace = a->arrays + a->scratch;
  (void)bb_session_workspace_memory(s);
}

/* Smaller extents may be another variant's, which then needs no more than at these. */
void bb_session_hold(bb_session *s) {
  const bb_plan *p = s->model->plan;
  s->prepared = s->placed = s->arranged = false;
  s->changed = BB_ALL_SYMBOLS;
  for (uint32_t v = 0; v < p->variants; v++) s->arrangement[v].what = BB_ARRANGED_NOT;
  while (bb_plan_derive(s->ctx, p, s->symbol)) continue;
  bb_session_find_rooms(s);
  size_t most = 0;
  for (uint32_t v = 0; v < p->variants; v++) {
    hold_variant(s, v);
    if (s->workspace > most) most = s->workspace;
  }
  for (uint32_t v = 0; v < p->variants; v++) {
    s->arrangement[v].workspace = most;
    s->arrangement[v].what = BB_ARRANGED_AT_MOST;
  }
}
