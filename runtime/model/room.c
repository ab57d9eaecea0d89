/* room.c - caches that grow in place: outputs that are an input with more behind it, both in one array of the
 * caller's that has room along the cache's axis.  Kernels get the room as an argument, so nothing is
 * moved, and the step that brings both together finds the first part in its place.
 */
#include "session.h"

#include <string.h>

int64_t bb_room_of(const bb_bound *b, uint32_t rank, uint32_t axis) {
  int64_t step = 1, room = 0;
  for (uint32_t i = rank; i-- > axis;) {
    if (b->shape[i] > 1 && b->stride[i] != step) return 0;
    if (i > axis) step *= b->shape[i];
  }
  for (uint32_t i = axis; i-- > 0;) {
    if (b->shape[i] == 1) continue;
    if (!room) {
      if (step <= 0 || b->stride[i] % step) return 0;
      room = b->stride[i] / step;
      if (room < b->shape[axis] || room == 0) return 0;
      step *= room;
    }
    if (b->stride[i] != step) return 0;
    step *= b->shape[i];
  }
  return room;
}

/* By the number of its room; NULL: it is no end of a cache. */
static const bb_plan_cache *cache_of(const bb_session *s, uint32_t output) {
  const bb_plan *p = s->model->plan;
  uint32_t room = p->tensor[output].room;
  return room == BB_NONE ? NULL : &p->cache[(room - p->extents) / 2];
}

bool bb_session_grows(const bb_session *s, uint32_t output, uint32_t input) {
  const bb_bound *in = &s->bound[input], *out = &s->bound[output];
  const bb_plan_cache *cache = cache_of(s, output);
  if (!cache || cache->input != input || in->data != out->data || in->strided || out->strided)
    return false;
  for (uint32_t i = 0; i <= cache->axis; i++)
    if (in->shape[i] > 1 && in->stride[i] != out->stride[i]) return false;
  return true;
}

void bb_session_find_rooms(bb_session *s) {
  const bb_plan *p = s->model->plan;
  for (uint32_t i = 0; i < 2 * p->caches; i++) {
    uint32_t tensor = i % 2 ? p->cache[i / 2].output : p->cache[i / 2].input;
    const bb_plan_tensor *t = &p->tensor[tensor];
    const bb_bound *bound = &s->bound[tensor];
    int64_t extent;
    if (!bb_plan_extent(t->shape[t->room_axis], s->symbol, &extent))
      bb_fail(s->ctx, BB_ERROR_ARGUMENT, "\"%s\": the extent of axis %u is not known", t->name,
              t->room_axis);
    bool apart = bound->given && bound->room && !bb_bound_is_staged(bound);
    s->symbol[t->room] = apart ? bound->room : extent;
  }
}

/* --- the public calls --- */

bool bb_model_get_cache(const bb_model *m, uint32_t index, bb_cache_info *info) {
  const bb_plan *p = m->plan;
  if (index >= p->caches) return false;
  const bb_plan_cache *cache = &p->cache[index];
  *info = (bb_cache_info){.axis = cache->axis};
  while (m->side[BB_INPUT][info->input] != cache->input) info->input++;
  while (m->side[BB_OUTPUT][info->output] != cache->output) info->output++;
  return true;
}

typedef struct cache_call {
  bb_session *session;
  uint32_t index;
  const bb_tensor_view *view;
  int64_t used;
  const bb_setting *extent;
} cache_call;

/* A cache's input, of whose output so much is there. */
static void see_used(const bb_session *s, const bb_plan_cache *cache, const bb_bound *out,
                     int64_t used, bb_bound *in) {
  *in = *out;
  in->open = false;
  in->most = 0;
  in->shape[cache->axis] = used;
  bb_session_see(s, cache->input, in);
  bb_session_meet(s, cache->input, in);
  /* one element lies in a row, however far the next one is: other strides say themselves where it lies */
  if (!in->strided && !out->strided) in->room = out->room;
}

static void check_used(bb_session *s, const bb_plan_cache *cache, int64_t used, int64_t most) {
  if (used < 0 || used > most)
    bb_fail(s->ctx, BB_ERROR_ARGUMENT,
            "cache \"%s\": %lld elements cannot be there along axis %u, which has room for %lld",
            s->model->plan->tensor[cache->output].name, (long long)used, cache->axis,
            (long long)most);
}

/* The input is what is there, the output open: as long as it comes out. */
static void bind_body(bb_context *ctx, void *argument) {
  const cache_call *call = argument;
  bb_session *s = call->session;
  const bb_plan *p = s->model->plan;
  if (call->index >= p->caches)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no cache %u", call->index);
  const bb_plan_cache *cache = &p->cache[call->index];
  const bb_plan_tensor *t = &p->tensor[cache->output];
  const bb_tensor_view *view = call->view;
  if (!view || !view->shape) bb_fail(ctx, BB_ERROR_ARGUMENT, "cache \"%s\": no array", t->name);
  if (view->rank != t->rank)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "cache \"%s\": %u axes, the model wants %u", t->name,
            view->rank, t->rank);
  bb_bound out, in;
  check_used(s, cache, call->used, view->shape[cache->axis]);
  bb_session_view(s, cache->output, view, &out);
  bb_session_meet(s, cache->output, &out);
  out.open = true;
  out.most = view->shape[cache->axis];
  if (!out.room) out.room = out.most;
  see_used(s, cache, &out, call->used, &in);
  bb_session_take(s, cache->output, &out);
  bb_session_take(s, cache->input, &in);
}

bb_status bb_session_bind_cache(bb_session *s, uint32_t index, const bb_tensor_view *view,
                                int64_t used) {
  cache_call call = {.session = s, .index = index, .view = view, .used = used};
  return bb_protect(s->ctx, bind_body, &call);
}

/* The input may have been bound to something else since. */
static bool is_bound(const bb_session *s, const bb_plan_cache *cache) {
  const bb_bound *out = &s->bound[cache->output], *in = &s->bound[cache->input];
  return out->open && in->given && in->data == out->data;
}

static void set_body(bb_context *ctx, void *argument) {
  const cache_call *call = argument;
  bb_session *s = call->session;
  const bb_plan *p = s->model->plan;
  for (uint32_t i = 0; i < p->caches; i++) {
    const bb_plan_cache *cache = &p->cache[i];
    if (!is_bound(s, cache))
      bb_fail(ctx, BB_ERROR_ARGUMENT, "cache \"%s\" is not bound as one array",
              p->tensor[cache->output].name);
    check_used(s, cache, call->used, s->bound[cache->output].most);
  }
  for (uint32_t i = 0; i < p->caches; i++) {
    const bb_plan_cache *cache = &p->cache[i];
    bb_bound in;
    see_used(s, cache, &s->bound[cache->output], call->used, &in);
    bb_session_take(s, cache->input, &in);
  }
}

bb_status bb_session_set_caches(bb_session *s, int64_t used) {
  cache_call call = {.session = s, .used = used};
  return bb_protect(s->ctx, set_body, &call);
}

static void reserve_body(bb_context *ctx, void *argument) {
  const cache_call *call = argument;
  bb_session *s = call->session;
  const bb_plan *p = s->model->plan;
  if (call->index) bb_require(ctx, call->extent, "the list of extents");
  s->prepared = s->placed =
      false; /* also where the call is refused: extents are another's from here on */
  for (uint32_t i = 0; i < p->symbols; i++) s->symbol[i] = i < p->extents ? s->preset[i] : -1;
  for (uint32_t k = 0; k < call->index; k++) {
    const bb_setting *given = &call->extent[k];
    uint32_t i = bb_plan_find_extent(ctx, p, given->name, given->value);
    bb_plan_refuse_told(ctx, p, i);
    s->symbol[i] = given->value;
  }
  bb_session_hold(s);
}

bb_status bb_session_reserve(bb_session *s, uint32_t count, const bb_setting *extent) {
  cache_call call = {.session = s, .index = count, .extent = extent};
  return bb_protect(s->ctx, reserve_body, &call);
}
