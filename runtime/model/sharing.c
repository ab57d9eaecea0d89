/* sharing.c - which outputs lie over memory of inputs.  Those are written after the last step, but for both ends of a cache that
 * grows in place.
 *
 * Arrays are looked at in the order of memory.  That order is kept: from one call to the next it hardly changes, and
 * nearly sorted spans are sorted in one pass.
 */
#include "session.h"

static void find_span(const bb_session *s, bb_span *span) {
  const bb_plan_tensor *t = &s->model->plan->tensor[span->tensor];
  const bb_bound *b = &s->bound[span->tensor];
  int64_t low = 0, high = 0, element = bb_dtype_bytes(t->dtype);
  span->from = span->to = 0;
  if (!b->given || !b->data) return;
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t extent = b->open && i == t->room_axis ? b->most : b->shape[i];
    if (extent == 0) return;
    int64_t reach = (extent - 1) * b->stride[i];
    *(reach < 0 ? &low : &high) += reach;
  }
  span->from = (uintptr_t)b->data + (uintptr_t)(low * element);
  span->to = (uintptr_t)b->data + (uintptr_t)((high + 1) * element);
}

/* By where they begin. */
static void sort_spans(uint32_t count, bb_span *span) {
  for (uint32_t i = 1; i < count; i++) {
    bb_span moving = span[i];
    uint32_t at = i;
    for (; at && span[at - 1].from > moving.from; at--) span[at] = span[at - 1];
    span[at] = moving;
  }
}

static bool is_input(const bb_session *s, const bb_span *span) {
  return s->model->plan->tensor[span->tensor].role == BB_TENSOR_INPUT;
}

/* `over`: an input, or NULL. */
static bool meets(const bb_session *s, const bb_span *out, const bb_span *over) {
  return over && over->from < out->to && out->from < over->to &&
         !bb_session_grows(s, out->tensor, over->tensor);
}

bool bb_session_note_sharing(bb_session *s) {
  uint32_t count = s->model->sides[BB_INPUT] + s->model->sides[BB_OUTPUT];
  const bb_span *span = s->span;
  const bb_span *far[2] = {
      NULL, NULL}; /* inputs so far that reach furthest, as one may be the end of a cache */
  bool changed = false;
  for (uint32_t i = 0; i < count; i++) find_span(s, &s->span[i]);
  sort_spans(count, s->span);
  for (uint32_t i = 0; i < count; i++) {
    if (is_input(s, &span[i])) {
      bool furthest = !far[0] || span[i].to > far[0]->to;
      if (furthest) far[1] = far[0];
      if (furthest || !far[1] || span[i].to > far[1]->to) far[!furthest] = &span[i];
      continue;
    }
    bool shares = meets(s, &span[i], far[0]) || meets(s, &span[i], far[1]);
    for (uint32_t k = i + 1; k < count && span[k].from < span[i].to && !shares; k++)
      shares = is_input(s, &span[k]) && meets(s, &span[i], &span[k]);
    bb_bound *bound = &s->bound[span[i].tensor];
    changed |= shares != bound->shares;
    bound->shares = shares;
  }
  if (changed) s->changed = BB_ALL_SYMBOLS;
  return changed;
}
