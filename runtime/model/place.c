/* place.c - where arrays are in a run, and what launches follow from that.  What lies where it lay, at the extents it had, stays as it
 * was prepared.
 */
#include "session.h"

static void *place_of(const bb_session *s, uint32_t tensor, char *base) {
  const bb_place *place = &s->place[tensor];
  switch (place->home) {
  case BB_HOME_MODEL: return s->model->once[tensor];
  case BB_HOME_CALLER: return s->bound[tensor].data;
  case BB_HOME_OWN: return place->own;
  case BB_HOME_WORKSPACE: return base + place->offset;
  case BB_HOME_WITHIN:
  case BB_HOME_NONE: break;
  }
  return NULL;
}

static void put(bb_session *s, uint32_t tensor, void *at) {
  s->place[tensor].moved = s->data[tensor] != at;
  s->data[tensor] = at;
}

static void find_data(bb_session *s, char *base) {
  const bb_plan *p = s->model->plan;
  for (uint32_t t = 0; t < p->tensors; t++)
    if (s->place[t].home != BB_HOME_WITHIN) put(s, t, place_of(s, t, base));
  for (uint32_t i = 0; i < p->caches; i++) {
    uint32_t t = p->cache[i].fresh;
    if (t != BB_NONE && s->place[t].home == BB_HOME_WITHIN)
      put(s, t, (char *)s->data[p->tensor[t].within] + s->place[t].offset);
  }
}

static bool any_moved(const bb_session *s, uint32_t count, const bb_plan_operand *o) {
  bool moved = false;
  for (uint32_t k = 0; k < count; k++)
    for (uint32_t n = 0; n < o[k].pieces; n++) moved |= s->place[o[k].piece[n].tensor].moved;
  return moved;
}

/* Both ends of a cache begin in one place - where that is no growing in place, the output is staged - and what is fresh lies behind
 * the one, up to the end of the other. */
static bool is_together(const bb_session *s, const bb_plan_cache *c) {
  const bb_plan_tensor *in = &s->model->plan->tensor[c->input];
  const bb_plan_tensor *out = &s->model->plan->tensor[c->output];
  const bb_plan_tensor *fresh = &s->model->plan->tensor[c->fresh];
  int64_t before, behind, all;
  return s->place[c->output].home == BB_HOME_CALLER && s->place[c->fresh].home == BB_HOME_WITHIN &&
         s->data[c->input] == s->data[c->output] &&
         bb_plan_extent(in->shape[c->axis], s->symbol, &before) &&
         bb_plan_extent(fresh->shape[c->axis], s->symbol, &behind) &&
         bb_plan_extent(out->shape[c->axis], s->symbol, &all) && behind == all - before;
}

/* Whether a step has something to do now that had nothing before, or the other way round. */
static bool find_idle(bb_session *s) {
  const bb_plan *p = s->model->plan;
  bool turned = false;
  for (uint32_t i = 0; i < p->steps; i++) {
    if (p->step[i].joins == BB_NONE || !bb_session_takes(s, i)) continue;
    bool idle = is_together(s, &p->cache[p->step[i].joins]);
    turned |= idle != s->ready[i].idle;
    s->ready[i].idle = idle;
  }
  return turned;
}

/* Before anything can fail: what moved is known now alone. */
static void find_stale(bb_session *s, bool all) {
  const bb_plan *p = s->model->plan;
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_plan_step *step = &p->step[i];
    bb_ready *ready = &s->ready[i];
    if (!ready->launched || !bb_session_takes(s, i)) continue;
    bool moved = any_moved(s, step->nin, step->in) || any_moved(s, step->nout, step->out);
    for (uint32_t k = 0; k < step->arguments; k++)
      if (step->argument[k].tensor != BB_NONE) moved |= s->place[step->argument[k].tensor].moved;
    ready->stale |= all || moved;
  }
}

void bb_session_place_own(bb_session *s) {
  bool moved = false;
  for (uint32_t t = 0; t < s->model->plan->tensors; t++) {
    bool own = s->place[t].home == BB_HOME_OWN && s->data[t] != s->place[t].own;
    s->place[t].moved = own;
    if (own) s->data[t] = s->place[t].own;
    moved |= own;
  }
  if (moved) find_stale(s, false);
}

static void find_arguments(bb_session *s, uint32_t number) {
  const bb_plan_step *step = &s->model->plan->step[number];
  const bb_ready *ready = &s->ready[number];
  for (uint32_t k = 0; k < step->arguments; k++)
    if (step->argument[k].tensor != BB_NONE)
      ready->argument[k] = (char *)s->data[step->argument[k].tensor] + ready->offset[k];
}

static void prepare(bb_session *s, uint32_t step, const bb_prepared *before, bool *follows) {
  const bb_device_class *class = s->model->class;
  bb_ready *ready = &s->ready[step];
  find_arguments(s, step);
  bb_launch launch = bb_session_launch(s, step, ready->argument);
  launch.scratch = s->at_scratch;
  if (class->prepare)
    *follows = class->prepare(s->model->module, s->queue, s->ctx, &launch, ready->prepared, before);
  ready->stale = false;
}

/* Anything may be before it. */
void bb_session_prepare_telling(bb_session *s, uint32_t step) {
  bb_ready *ready = &s->ready[step];
  int64_t most = s->symbol[s->model->plan->step[step].tells];
  bool follows;
  if (!ready->launched || (!ready->stale && ready->most == most)) return;
  ready->stale = true; /* should it fail */
  prepare(s, step, NULL, &follows);
  ready->most = most;
}

/* A launch depends on the one before it, too.  What stands behind a step that tells an extent is prepared once that is known. */
void bb_session_prepare_launches(bb_session *s, uint32_t from) {
  const bb_model *m = s->model;
  const bb_prepared *before = NULL;
  bool follows = false;
  for (uint32_t i = from; i < m->plan->steps; i++) {
    bb_ready *ready = &s->ready[i];
    if (!bb_session_takes(s, i) || ready->idle) continue;
    if (m->plan->step[i].tells != BB_NONE) break;
    if (!ready->launched) {
      before = NULL;
      follows = false;
      continue;
    }
    ready->stale |= follows;
    follows = false;
    if (ready->stale) prepare(s, i, before, &follows);
    before = ready->prepared;
  }
}

void bb_session_place(bb_session *s) {
  const bb_device_class *class = s->model->class;
  char *base = bb_session_workspace_memory(s);
  bool moved = s->at_scratch != base + s->arrays;
  s->at_scratch = base + s->arrays;
  s->ran = s->noted = false;
  find_data(s, base);
  find_stale(s, find_idle(s) || moved);
  if (class->equip && class->equip(s->queue, s->ctx)) find_stale(s, true);
  bb_session_prepare_launches(s, 0);
  s->placed = true;
}
