/* layout.c - what a session works out when shapes change: run-time extents, the memory that passes
 * between steps, and the numbers that kernels are called with.
 *
 * Arrays of the workspace are placed from the largest to the smallest, each at the lowest place that
 * no array alive at the same steps has: neighbours in time share memory.
 */
#include "session.h"
#include "solve.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 }; /* where a lent workspace is to begin */

/* --- run-time extents --- */

static const char *shape_text(bb_session *s, const bb_plan_tensor *t) {
  bb_buffer text = {.arena = bb_scratch(s->ctx)};
  for (uint32_t i = 0; i < t->rank; i++) {
    const bb_extent *e = t->shape[i];
    bb_put(&text, i ? ", " : "");
    if (e->factor != 1 || !e->count) bb_put(&text, "%lld", (long long)e->factor);
    for (uint32_t k = 0; k < e->count; k++)
      bb_put(&text, "%s%s", k || e->factor != 1 ? "*" : "", s->model->plan->symbol[e->symbol[k]]);
  }
  return text.data ? text.data : "";
}

static _Noreturn void refuse_shape(bb_session *s, uint32_t tensor) {
  const bb_plan *p = s->model->plan;
  const bb_plan_tensor *t = &p->tensor[tensor];
  bb_buffer have = {.arena = bb_scratch(s->ctx)};
  for (uint32_t i = 0; i < t->rank; i++)
    bb_put(&have, "%s%lld", i ? ", " : "", (long long)s->bound[tensor].shape[i]);
  bb_buffer known = {.arena = have.arena};
  for (uint32_t i = 0; i < p->symbols; i++)
    if (s->symbol[i] >= 0)
      bb_put(&known, "%s%s = %lld", known.length ? ", " : " where ", p->symbol[i],
             (long long)s->symbol[i]);
  bb_fail(s->ctx, BB_ERROR_INPUT, "%s \"%s\": shape [%s] does not fit [%s]%s",
          t->role == BB_TENSOR_INPUT ? "input" : "output", t->name, have.data ? have.data : "",
          shape_text(s, t), known.length ? known.data : "");
}

static void find_extents(bb_session *s) {
  const bb_plan *p = s->model->plan;
  if (p->symbols) memcpy(s->symbol, s->preset, p->symbols * sizeof *s->symbol);
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t t = 0; t < p->tensors; t++) {
      const bb_plan_tensor *tensor = &p->tensor[t];
      if (tensor->role != BB_TENSOR_INPUT) continue;
      if (!s->bound[t].given)
        bb_fail(s->ctx, BB_ERROR_ARGUMENT, "input \"%s\" is not bound", tensor->name);
      for (uint32_t i = 0; i < tensor->rank; i++)
        if (!bb_extent_solve(tensor->shape[i], s->bound[t].shape[i], s->symbol, &progress))
          refuse_shape(s, t);
    }
    progress |= bb_plan_derive(s->ctx, p, s->symbol);
  }
}

/* --- arrays --- */

/* The bytes that a bound array spans; false: none. */
static bool span_of(const bb_session *s, uint32_t tensor, uintptr_t *from, uintptr_t *to) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  const bb_bound *b = &s->bound[tensor];
  int64_t low = 0, high = 0, element = bb_dtype_bytes(t->dtype);
  if (!b->given || !b->data) return false;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (b->shape[i] == 0) return false;
    int64_t reach = (b->shape[i] - 1) * b->stride[i];
    *(reach < 0 ? &low : &high) += reach;
  }
  *from = (uintptr_t)b->data + (uintptr_t)(low * element);
  *to = (uintptr_t)b->data + (uintptr_t)((high + 1) * element);
  return true;
}

bool bb_session_note_sharing(bb_session *s) {
  const bb_model *m = s->model;
  bool changed = false;
  for (uint32_t o = 0; o < m->sides[BB_OUTPUT]; o++) {
    uint32_t out = m->side[BB_OUTPUT][o];
    uintptr_t from, to, first, last;
    bool shares = false;
    for (uint32_t i = 0; i < m->sides[BB_INPUT] && !shares; i++)
      shares = span_of(s, out, &from, &to) && span_of(s, m->side[BB_INPUT][i], &first, &last) &&
               from < last && first < to && !bb_session_grows(s, out, m->side[BB_INPUT][i]);
    changed |= shares != s->bound[out].shares;
    s->bound[out].shares = shares;
  }
  return changed;
}

static void check_output(bb_session *s, uint32_t tensor) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  bb_bound *bound = &s->bound[tensor];
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t extent;
    if (!bb_plan_extent(t->shape[i], s->symbol, &extent))
      bb_fail(s->ctx, BB_ERROR_ARGUMENT, "output \"%s\": the extent of axis %u is not known",
              t->name, i);
    bool open = !bound->given || (bound->open && i == t->room_axis);
    if (bound->open && open && extent > bound->most)
      bb_fail(s->ctx, BB_ERROR_INPUT, "cache \"%s\" has room for %lld along axis %u, not for %lld",
              t->name, (long long)bound->most, i, (long long)extent);
    if (!open && bound->shape[i] != extent) refuse_shape(s, tensor);
    if (open) bound->shape[i] = extent;
  }
}

static bb_home home_of(const bb_session *s, uint32_t tensor) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  const bb_bound *bound = &s->bound[tensor];
  if (!bb_session_has(s, tensor)) return BB_HOME_MODEL;
  if (s->once) return BB_HOME_NONE;
  if (t->within != BB_NONE) return BB_HOME_WITHIN;
  if (t->role == BB_TENSOR_LOCAL || bb_bound_is_staged(bound)) return BB_HOME_WORKSPACE;
  return bound->given ? BB_HOME_CALLER : BB_HOME_OWN;
}

void bb_session_grow(bb_session *s, void **memory, size_t *have, size_t need) {
  const bb_model *m = s->model;
  if (need <= *have) return;
  if (*memory) m->class->release(m->device, *memory, *have);
  *memory = NULL;
  *have = 0;
  *memory = m->class->allocate(m->device, s->ctx, need);
  *have = need;
}

static void check_known(const bb_session *s, const bb_extent *extent) {
  for (uint32_t k = 0; k < extent->count; k++)
    if (s->symbol[extent->symbol[k]] < 0)
      bb_fail(s->ctx, BB_ERROR_ARGUMENT, "the run-time extent %s is not known",
              s->model->plan->symbol[extent->symbol[k]]);
}

static int64_t extent_of(const bb_session *s, const bb_extent *extent) {
  int64_t value;
  check_known(s, extent);
  if (!bb_plan_extent(extent, s->symbol, &value))
    bb_fail(s->ctx, BB_ERROR_MEMORY, "an extent is too large");
  return value;
}

/* What a cache grows by begins where its past ends, and ends where it ends. */
static void size_within(bb_session *s, uint32_t tensor) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  const bb_plan_tensor *whole = &s->model->plan->tensor[t->within];
  int64_t first = extent_of(s, t->first);
  int64_t extent = extent_of(s, t->shape[t->room_axis]);
  if (extent > extent_of(s, whole->shape[t->room_axis]) - first)
    bb_fail(s->ctx, BB_ERROR_INPUT, "\"%s\": %lld elements behind %lld are beyond its end",
            whole->name, (long long)extent, (long long)first);
  size_t row, offset;
  uint32_t inner = t->room_axis + 1;
  for (uint32_t i = inner; i < t->rank; i++) check_known(s, t->shape[i]);
  if (!bb_plan_count(t->rank - inner, t->shape + inner, s->symbol, &row) ||
      __builtin_mul_overflow(row * bb_dtype_bytes(t->dtype), (size_t)first, &offset))
    bb_fail(s->ctx, BB_ERROR_MEMORY, "array \"%s\" is too large to hold", whole->name);
  s->place[tensor].offset = offset;
}

/* to_come: of a run whose arrays may not be bound yet. */
static void size_arrays(bb_session *s, bool to_come) {
  const bb_plan *p = s->model->plan;
  for (uint32_t i = 0; i < p->tensors; i++) {
    const bb_plan_tensor *t = &p->tensor[i];
    bb_place *place = &s->place[i];
    size_t count;
    place->home = home_of(s, i);
    if (place->home == BB_HOME_MODEL || place->home == BB_HOME_NONE) continue;
    if (t->role == BB_TENSOR_OUTPUT && !to_come) check_output(s, i);
    if (t->role == BB_TENSOR_LOCAL && place->first > place->last) {
      place->home = BB_HOME_NONE;
      continue;
    }
    if (place->home == BB_HOME_WITHIN) {
      size_within(s, i);
      continue;
    }
    for (uint32_t a = 0; a < t->rank; a++) check_known(s, t->shape[a]);
    if (!bb_plan_count(t->rank, t->shape, s->symbol, &count))
      bb_fail(s->ctx, BB_ERROR_MEMORY, "array \"%s\" is too large to hold", t->name ? t->name : "");
    place->bytes = count * bb_dtype_bytes(t->dtype);
    if (place->home == BB_HOME_OWN && t->role == BB_TENSOR_OUTPUT)
      bb_session_grow(s, &place->own, &place->own_bytes, place->bytes ? place->bytes : 1);
  }
}

/* --- kernels --- */

bb_launch bb_session_launch(const bb_session *s, uint32_t number, void *const *argument) {
  const bb_plan_step *step = &s->model->plan->step[number];
  return (bb_launch){.name = step->name,
                     .step = number,
                     .kernel = step->kernel,
                     .extent = s->ready[number].extent,
                     .symbol = s->symbol,
                     .argument = argument,
                     .data = s->data};
}

/* Arguments are offsets yet. */
static void size_launch(bb_session *s, uint32_t number) {
  const bb_model *m = s->model;
  bb_ready *ready = &s->ready[number];
  for (uint32_t i = 0; i < m->plan->step[number].arguments; i++)
    ready->argument[i] = (void *)(uintptr_t)ready->offset[i];
  bb_launch launch = bb_session_launch(s, number, ready->argument);
  size_t scratch = m->class->scratch(m->module, s->queue, s->ctx, &launch, &ready->prepared);
  if (scratch > s->scratch) s->scratch = scratch;
}

/* Offsets follow from the extents, which are those of the run before for most kernels of a decoder. */
static void size_kernel(bb_session *s, uint32_t number) {
  const bb_plan_step *step = &s->model->plan->step[number];
  bb_ready *ready = &s->ready[number];
  int64_t value;
  for (uint32_t i = 0; i < step->extents; i++) {
    if (!bb_plan_extent(step->extent[i], s->symbol, &value))
      bb_fail(s->ctx, BB_ERROR_ARGUMENT, "%s: a run-time extent is not known", step->name);
    ready->known &= ready->extent[i] == value;
    ready->extent[i] = value;
  }
  if (ready->known) return;
  for (uint32_t i = 0; i < step->arguments; i++) {
    const bb_plan_argument *a = &step->argument[i];
    if (a->tensor == BB_NONE) continue;
    if (!bb_formula_value(&a->offset, ready->extent, &value))
      bb_fail(s->ctx, BB_ERROR_INPUT, "%s: an array is too large to address", step->name);
    ready->offset[i] = value * bb_dtype_bytes(s->model->plan->tensor[a->tensor].dtype);
  }
  ready->known = true;
}

void bb_session_measure(const bb_session *s, uint32_t number, double *bytes, double *operations) {
  const bb_plan *p = s->model->plan;
  const bb_plan_step *step = &p->step[number];
  int64_t value;
  size_t count;
  *bytes = *operations = 0;
  if (step->kernel == BB_NONE) return;
  for (uint32_t i = 0; i < step->arguments; i++) {
    uint32_t tensor = step->argument[i].tensor;
    if (tensor == BB_NONE) continue;
    const bb_plan_tensor *t = &p->tensor[tensor];
    bool again = false;
    for (uint32_t k = 0; k < i && !again; k++) again = step->argument[k].tensor == tensor;
    if (!again && bb_plan_count(t->rank, t->shape, s->symbol, &count))
      *bytes += (double)count * bb_dtype_bytes(t->dtype);
  }
  if (bb_formula_value(&step->operations, s->ready[number].extent, &value))
    *operations = (double)value;
}

/* --- the workspace --- */

static size_t line(size_t bytes) {
  return (bytes + BB_PLAN_APART - 1) / BB_PLAN_APART * BB_PLAN_APART;
}

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
  size_t at = s->scratch;
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

static void plan_workspace(bb_session *s) {
  const bb_plan *p = s->model->plan;
  uint32_t count = 0;
  for (uint32_t t = 0; t < p->tensors; t++)
    if (s->place[t].home == BB_HOME_WORKSPACE && s->place[t].bytes) s->order[count++] = t;
  sort_by_size(count, s->order, s->place);
  s->scratch = line(s->scratch ? s->scratch : 1);
  s->workspace = s->scratch;
  for (uint32_t i = 0; i < count; i++) {
    bb_place *it = &s->place[s->order[i]];
    it->offset = lowest(s, i, it);
    if (it->offset + line(it->bytes) > s->workspace) s->workspace = it->offset + line(it->bytes);
  }
}

static char *workspace(bb_session *s) {
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

static void size_kernels(bb_session *s) {
  const bb_plan *p = s->model->plan;
  s->scratch = 0;
  for (uint32_t i = 0; i < p->steps; i++)
    if (bb_session_takes(s, i) && bb_model_launches(s->model, i)) {
      if (p->step[i].kernel != BB_NONE) size_kernel(s, i);
      size_launch(s, i);
    }
}

/* Takes the layout that was reserved for the variant, if everything fits there. */
static bool fits_reserve(bb_session *s) {
  const bb_reserve *r = &s->reserve[s->variant];
  uint32_t tensors = s->model->plan->tensors;
  bool fits = r->workspace && s->scratch <= r->scratch;
  for (uint32_t t = 0; t < tensors && fits; t++)
    if (s->place[t].home == BB_HOME_WORKSPACE) fits = s->place[t].bytes <= r->bytes[t];
  for (uint32_t t = 0; t < tensors && fits; t++)
    if (s->place[t].home == BB_HOME_WORKSPACE) s->place[t].offset = r->offset[t];
  if (fits) s->scratch = r->scratch, s->workspace = r->workspace;
  return fits;
}

void bb_session_lay_out(bb_session *s) {
  s->prepared = s->placed = false;
  if (!s->once) {
    find_extents(s);
    uint32_t variant = bb_plan_variant_at(s->model->plan, s->symbol);
    if (variant != s->variant) bb_session_take_variant(s, variant);
    bb_session_find_rooms(s);
  }
  size_arrays(s, false);
  size_kernels(s);
  if (!fits_reserve(s)) {
    s->reserve[s->variant].workspace = 0;
    plan_workspace(s);
  }
  s->prepared = true;
}

static void hold_variant(bb_session *s, uint32_t variant) {
  bb_reserve *r = &s->reserve[variant];
  bb_session_take_variant(s, variant);
  size_arrays(s, true);
  size_kernels(s);
  plan_workspace(s);
  for (uint32_t t = 0; t < s->model->plan->tensors; t++) {
    r->bytes[t] = s->place[t].home == BB_HOME_WORKSPACE ? s->place[t].bytes : 0;
    r->offset[t] = s->place[t].offset;
  }
  r->scratch = s->scratch;
  r->workspace = s->workspace;
  (void)workspace(s);
}

/* Smaller extents may be another variant's, which then needs no more than at these. */
void bb_session_hold(bb_session *s) {
  const bb_plan *p = s->model->plan;
  s->prepared = s->placed = false;
  while (bb_plan_derive(s->ctx, p, s->symbol)) continue;
  bb_session_find_rooms(s);
  size_t most = 0;
  for (uint32_t v = 0; v < p->variants; v++) {
    hold_variant(s, v);
    if (s->workspace > most) most = s->workspace;
  }
  for (uint32_t v = 0; v < p->variants; v++) s->reserve[v].workspace = most;
}

/* --- pointers --- */

static void prepare_launches(bb_session *s, void *scratch) {
  const bb_model *m = s->model;
  s->ran = s->noted = false;
  for (uint32_t i = 0; i < m->plan->steps; i++) {
    if (!bb_session_takes(s, i) || !bb_model_launches(m, i)) continue;
    bb_launch launch = bb_session_launch(s, i, s->ready[i].argument);
    launch.scratch = scratch;
    m->class->prepare(m->module, s->queue, s->ctx, &launch, s->ready[i].prepared);
  }
}

void bb_session_place(bb_session *s) {
  const bb_plan *p = s->model->plan;
  char *base = workspace(s);
  for (uint32_t t = 0; t < p->tensors; t++) {
    bb_place *place = &s->place[t];
    switch (place->home) {
    case BB_HOME_MODEL: s->data[t] = s->model->once[t]; break;
    case BB_HOME_CALLER: s->data[t] = s->bound[t].data; break;
    case BB_HOME_OWN: s->data[t] = place->own; break;
    case BB_HOME_WORKSPACE: s->data[t] = base + place->offset; break;
    case BB_HOME_WITHIN:
    case BB_HOME_NONE: s->data[t] = NULL; break;
    }
  }
  for (uint32_t t = 0; t < p->tensors; t++)
    if (s->place[t].home == BB_HOME_WITHIN)
      s->data[t] = (char *)s->data[p->tensor[t].within] + s->place[t].offset;
  for (uint32_t i = 0; i < p->steps; i++)
    for (uint32_t k = 0; k < p->step[i].arguments; k++) {
      uint32_t tensor = p->step[i].argument[k].tensor;
      if (tensor != BB_NONE && bb_session_takes(s, i))
        s->ready[i].argument[k] = (char *)s->data[tensor] + s->ready[i].offset[k];
    }
  if (s->model->class->prepare) prepare_launches(s, base);
  s->placed = true;
}
