/* layout.c - what a session works out when shapes change: run-time extents, sizes of arrays, and the numbers that kernels are
 * called with.  What follows from extents that stayed as they were stays as it was.
 */
#include "session.h"
#include "solve.h"

#include <stdlib.h>
#include <string.h>

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

/* From an input's shape: whether a symbol was found; *open: it may tell more once others are known. */
static bool find_in(bb_session *s, uint32_t tensor, bool *open) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  bool found = false;
  if (!s->bound[tensor].given)
    bb_fail(s->ctx, BB_ERROR_ARGUMENT, "input \"%s\" is not bound", t->name);
  for (uint32_t i = 0; i < t->rank; i++)
    switch (bb_extent_solve(t->shape[i], s->bound[tensor].shape[i], s->symbol)) {
    case BB_SOLVED_WRONG: refuse_shape(s, tensor);
    case BB_SOLVED_AGREES: break;
    case BB_SOLVED_FOUND: found = true; break;
    case BB_SOLVED_OPEN: *open = true; break;
    }
  return found;
}

static void find_extents(bb_session *s) {
  const bb_model *m = s->model;
  const bb_plan *p = m->plan;
  if (p->symbols) memcpy(s->symbol, s->preset, p->symbols * sizeof *s->symbol);
  for (bool found = true, open = true; found && open;) {
    found = open = false;
    for (uint32_t i = 0; i < m->sides[BB_INPUT]; i++)
      found |= find_in(s, m->side[BB_INPUT][i], &open);
    found |= bb_plan_derive(s->ctx, p, s->symbol);
  }
}

/* --- arrays --- */

/* Does the extent follow from one that a step tells? */
static bool is_late(const bb_session *s, const bb_extent *extent) {
  bool late = false;
  for (uint32_t k = 0; k < extent->count; k++) late |= s->model->plan->late[extent->symbol[k]];
  return late;
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
    if (bound->given && is_late(s, t->shape[i]))
      bb_fail(s->ctx, BB_ERROR_ARGUMENT,
              "output \"%s\": the run tells the extent of axis %u: it cannot be bound", t->name, i);
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

static void size_array(bb_session *s, uint32_t tensor) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  bb_place *place = &s->place[tensor];
  bb_home was = place->home;
  size_t count, before = place->bytes;
  place->home = home_of(s, tensor);
  if (t->role == BB_TENSOR_LOCAL && place->home != BB_HOME_MODEL && place->first > place->last)
    place->home = BB_HOME_NONE;
  s->arranged &= place->home == was;
  if (place->home == BB_HOME_MODEL || place->home == BB_HOME_NONE) return;
  if (place->home == BB_HOME_WITHIN) {
    size_within(s, tensor);
    return;
  }
  for (uint32_t a = 0; a < t->rank; a++) check_known(s, t->shape[a]);
  if (!bb_plan_count(t->rank, t->shape, s->symbol, &count))
    bb_fail(s->ctx, BB_ERROR_MEMORY, "array \"%s\" is too large to hold", t->name ? t->name : "");
  place->bytes = count * bb_dtype_bytes(t->dtype);
  s->arranged &= place->home != BB_HOME_WORKSPACE || place->bytes == before;
  if (place->home == BB_HOME_OWN && t->role == BB_TENSOR_OUTPUT)
    bb_session_grow(s, &place->own, &place->own_bytes, place->bytes ? place->bytes : 1);
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

/* Arguments are offsets from where arrays begin. */
static void size_launch(bb_session *s, uint32_t number) {
  const bb_model *m = s->model;
  bb_ready *ready = &s->ready[number];
  for (uint32_t i = 0; i < m->plan->step[number].arguments; i++)
    ready->argument[i] = (void *)(uintptr_t)ready->offset[i];
  bb_launch launch = bb_session_launch(s, number, ready->argument);
  ready->stale = true;
  ready->scratch = m->class->scratch(m->module, s->queue, s->ctx, &launch, &ready->prepared);
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

/* --- all of it --- */

void bb_session_size(bb_session *s, bb_plan_symbols changed, bool to_come) {
  const bb_model *m = s->model;
  const bb_plan *p = m->plan;
  for (uint32_t i = 0; i < m->sides[BB_OUTPUT] && !s->once && !to_come; i++)
    check_output(s, m->side[BB_OUTPUT][i]);
  for (uint32_t i = 0; i < p->tensors; i++)
    if (bb_session_touches(changed, p->tensor[i].follows)) size_array(s, i);
  s->scratch = 0;
  for (uint32_t i = 0; i < p->steps; i++) {
    bb_ready *ready = &s->ready[i];
    if (!ready->launched || !bb_session_takes(s, i)) continue;
    if (bb_session_touches(changed, p->step[i].follows)) {
      if (p->step[i].kernel != BB_NONE) size_kernel(s, i);
      size_launch(s, i);
    }
    if (ready->scratch > s->scratch) s->scratch = ready->scratch;
  }
}

/* Symbols whose values are not those of the last layout. */
static bb_plan_symbols differ(const bb_session *s) {
  bb_plan_symbols all = 0;
  for (uint32_t i = 0; i < s->model->plan->symbols; i++)
    if (s->symbol[i] != s->laid[i]) all |= (bb_plan_symbols)1 << i % 64;
  return all;
}

/* Has all been told that a symbol follows from? */
static bool is_known(const bb_session *s, uint32_t symbol) {
  const bb_plan *p = s->model->plan;
  const bb_formula *from = &p->derived[symbol];
  if (!p->late[symbol] || p->told[symbol]) return !p->late[symbol] || s->told[symbol];
  bool known = true;
  for (uint32_t k = 0; k < from->count && known; k++)
    known = from->term[k].op != BB_T_VARIABLE || is_known(s, (uint32_t)from->term[k].number);
  return known;
}

/* Those that follow from what was told.  Some are of others behind them. */
static void find_followers(bb_session *s) {
  const bb_plan *p = s->model->plan;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < p->symbols; i++) {
      int64_t value;
      if (!p->late[i] || p->told[i] || !is_known(s, i)) continue;
      bool fits = bb_formula_value(&p->derived[i], s->symbol, &value);
      if (!fits || value < 0)
        bb_fail(s->ctx, BB_ERROR_INPUT,
                "an axis, or what is left of one, would have %s = %lld elements", p->symbol[i],
                fits ? (long long)value : -1);
      more |= value != s->symbol[i];
      s->symbol[i] = value;
    }
  }
}

/* Kernels may want more scratch for less, as where there is little to do they share it out: then it is memory of its own.  Whether
 * launches are to be prepared again, those before the step for the next run. */
static bool take_scratch(bb_session *s) {
  bool more = s->model->class->equip && s->model->class->equip(s->queue, s->ctx);
  bool late = s->late_need > s->scratch;
  if (late && (s->at_scratch != s->late || s->late_need > s->late_bytes)) {
    bb_session_grow(s, &s->late, &s->late_bytes, s->late_need);
    s->at_scratch = s->late;
    more = true;
  }
  for (uint32_t i = 0; i < s->model->plan->steps && more; i++) s->ready[i].stale = true;
  return more;
}

/* Has it room where it lies?  What the session itself has grows when it is sized. */
static bool has_room(const bb_session *s, uint32_t tensor, size_t bytes) {
  const bb_place *place = &s->place[tensor];
  if (place->home == BB_HOME_WORKSPACE) return bytes <= s->arrangement[s->variant].bytes[tensor];
  return place->home != BB_HOME_OWN || bytes <= place->own_bytes;
}

static void check_room(const bb_session *s, uint32_t tensor, size_t bytes) {
  if (!has_room(s, tensor, bytes))
    bb_fail(s->ctx, BB_ERROR_UNSUPPORTED,
            "what a run tells makes an array larger than the most that it was laid out for");
}

void bb_session_check_most(const bb_session *s, uint32_t step) {
  const bb_plan *p = s->model->plan;
  const bb_plan_step *telling = &p->step[step];
  for (uint32_t i = 0; i < telling->nout; i++) {
    if (telling->out[i].absent) continue;
    uint32_t tensor = telling->out[i].piece[0].tensor;
    const bb_plan_tensor *t = &p->tensor[tensor];
    size_t count;
    if (!bb_plan_count(t->rank, t->shape, s->symbol, &count))
      bb_fail(s->ctx, BB_ERROR_MEMORY, "array \"%s\" is too large to hold", t->name ? t->name : "");
    check_room(s, tensor, count * bb_dtype_bytes(t->dtype));
  }
}

/* Arrays of the workspace stay where they were laid out, for the most that they can be. */
static void size_again(bb_session *s, bb_plan_symbols changed) {
  const bb_plan *p = s->model->plan;
  size_t scratch = s->scratch;
  bb_session_size(s, changed, true);
  for (uint32_t t = 0; t < p->tensors; t++) check_room(s, t, s->place[t].bytes);
  bb_session_place_own(s);
  for (uint32_t i = 0; i < s->model->sides[BB_OUTPUT] && !s->once; i++)
    check_output(s, s->model->side[BB_OUTPUT][i]);
  s->late_need = s->scratch;
  s->scratch = scratch;
  s->arranged = true;
  memcpy(s->laid, s->symbol, p->symbols * sizeof *s->laid);
}

/* All launches up to a step that tells an extent. */
static void prepare_before(bb_session *s, uint32_t step) {
  bb_session_prepare_launches(s, 0);
  for (uint32_t i = 0; i < step; i++)
    if (s->model->plan->step[i].tells != BB_NONE && bb_session_takes(s, i))
      bb_session_prepare_launches(s, i + 1);
}

void bb_session_follow(bb_session *s, uint32_t step) {
  s->told[s->model->plan->step[step].tells] = true;
  s->prepared = false; /* should anything fail */
  s->changed = BB_ALL_SYMBOLS;
  find_followers(s);
  bb_plan_symbols changed = differ(s);
  if (changed) size_again(s, changed);
  if (take_scratch(s)) prepare_before(s, step);
  bb_session_prepare_launches(s, step + 1);
  s->changed = 0;
  s->prepared = true;
}

void bb_session_lay_out(bb_session *s) {
  const bb_plan *p = s->model->plan;
  s->prepared = s->placed = false;
  if (!s->once) {
    find_extents(s);
    uint32_t variant = bb_plan_variant_at(p, s->symbol);
    if (variant != s->variant) bb_session_take_variant(s, variant);
    bb_session_find_rooms(s);
  }
  bb_plan_symbols changed = s->changed | differ(s);
  s->changed = BB_ALL_SYMBOLS; /* should anything fail */
  if (changed == BB_ALL_SYMBOLS) s->arranged = false;
  bb_session_size(s, changed, false);
  s->late_need = 0;
  bb_session_arrange(s);
  if (p->symbols) memcpy(s->laid, s->symbol, p->symbols * sizeof *s->laid);
  s->changed = 0;
  s->prepared = true;
}
