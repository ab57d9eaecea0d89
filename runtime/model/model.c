/* model.c - compiled models: made of a plan, kernels and constants; shared by counting holders. */
#include "model.h"

#include "plan_text.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* --- describing --- */

static const char *extent_text(bb_plan *p, const bb_extent *e) {
  bb_buffer text = {.arena = p->arena};
  if (e->factor != 1) bb_put(&text, "%lld*", (long long)e->factor);
  for (uint32_t i = 0; i < e->count; i++)
    bb_put(&text, "%s%s", i ? "*" : "", p->symbol[e->symbol[i]]);
  return text.data;
}

static void describe(bb_model *m) {
  bb_plan *p = m->plan;
  m->info = BB_NEW(p->arena, bb_tensor_info, p->tensors + 1);
  for (uint32_t side = 0; side < 2; side++)
    m->side[side] = BB_NEW(p->arena, uint32_t, p->tensors + 1);
  for (uint32_t t = 0; t < p->tensors; t++) {
    const bb_plan_tensor *tensor = &p->tensor[t];
    bool input = tensor->role == BB_TENSOR_INPUT;
    if (!input && tensor->role != BB_TENSOR_OUTPUT) continue;
    bb_side side = input ? BB_INPUT : BB_OUTPUT;
    m->side[side][m->sides[side]++] = t;
    int64_t *shape = BB_NEW(p->arena, int64_t, tensor->rank + 1);
    const char **extent = BB_NEW(p->arena, const char *, tensor->rank + 1);
    for (uint32_t i = 0; i < tensor->rank; i++) {
      bool known = tensor->shape[i]->count == 0;
      shape[i] = known ? tensor->shape[i]->factor : -1;
      if (!known) extent[i] = extent_text(p, tensor->shape[i]);
    }
    m->info[t] = (bb_tensor_info){tensor->name, tensor->dtype, tensor->rank, shape, extent};
  }
}

bb_region_info *bb_plan_regions(const bb_plan_table *table, const char *const *symbol,
                                bb_arena *arena) {
  bb_region_info *region = BB_NEW(arena, bb_region_info, table->cells);
  for (uint32_t cell = 0; cell < table->cells; cell++) {
    bb_extent_span *span = BB_NEW(arena, bb_extent_span, table->axes + 1);
    uint32_t rest = cell;
    for (uint32_t a = table->axes; a-- > 0;) {
      const bb_plan_axis *axis = &table->axis[a];
      uint32_t i = rest % axis->stretches;
      span[a] = (bb_extent_span){.name = symbol[axis->symbol],
                                 .first = i ? axis->limit[i - 1] + 1 : 0,
                                 .last = i + 1 < axis->stretches ? axis->limit[i] : -1};
      rest /= axis->stretches;
    }
    region[cell] = (bb_region_info){table->cell[cell], table->axes, span};
  }
  return region;
}

static void describe_variants(bb_model *m) {
  bb_plan *p = m->plan;
  bb_setting **at = BB_NEW(p->arena, bb_setting *, p->variants);
  for (uint32_t v = 0; v < p->variants; v++) {
    at[v] = BB_NEW(p->arena, bb_setting, p->extents + 1);
    for (uint32_t i = 0; i < p->extents; i++)
      at[v][i] = (bb_setting){p->symbol[i], p->chosen_at[v][i]};
  }
  m->chosen_at = at;
  m->region = bb_plan_regions(&p->table, p->symbol, p->arena);
}

/* --- constants --- */

typedef struct opened_queue {
  const bb_device_class *class;
  bb_queue *queue;
} opened_queue;

static void *map_data(const bb_model *m, bb_context *ctx, const bb_model_parts *parts) {
  void *data = mmap(NULL, m->data_bytes, PROT_READ, MAP_PRIVATE, parts->data_file, 0);
  if (data == MAP_FAILED)
    bb_fail(ctx, BB_ERROR_IO, "%s: the constants do not map: %s", parts->place, strerror(errno));
  return data;
}

static void close_queue(void *queue) {
  const opened_queue *q = queue;
  q->class->queue_close(q->queue);
}

/* data: by tensor. */
static void copy_data(bb_model *m, bb_context *ctx, const void *const *data) {
  bb_arena *arena = bb_scratch(ctx);
  opened_queue *q = BB_NEW(arena, opened_queue, 1);
  bb_queue_options options = {.threads = 1};
  m->data = m->class->allocate(m->device, m->home, m->data_bytes);
  *q = (opened_queue){m->class, m->class->queue_open(m->device, ctx, &options)};
  bb_defer(ctx, close_queue, q);
  for (uint32_t t = 0; t < m->plan->tensors; t++) {
    const bb_plan_tensor *tensor = &m->plan->tensor[t];
    if (tensor->role == BB_TENSOR_CONSTANT && tensor->bytes)
      m->class->copy(q->queue, ctx, BB_COPY_IN, (char *)m->data + tensor->offset, data[t],
                     tensor->bytes);
  }
  m->class->queue_wait(q->queue, ctx);
  bb_undefer(ctx, q);
  close_queue(q);
  bb_scratch_end(arena);
}

typedef struct mapped {
  void *data;
  size_t bytes;
} mapped;

static void unmap(void *argument) {
  const mapped *it = argument;
  munmap(it->data, it->bytes);
}

/* Of a file, into memory that is not the processor's. */
static void copy_file(bb_model *m, bb_context *ctx, const bb_model_parts *parts) {
  const bb_plan *p = m->plan;
  bb_arena *arena = bb_scratch(ctx);
  mapped *file = BB_NEW(arena, mapped, 1);
  const void **data = BB_NEW(arena, const void *, p->tensors + 1);
  *file = (mapped){map_data(m, ctx, parts), m->data_bytes};
  bb_defer(ctx, unmap, file);
  for (uint32_t t = 0; t < p->tensors; t++)
    if (p->tensor[t].role == BB_TENSOR_CONSTANT) data[t] = (char *)file->data + p->tensor[t].offset;
  copy_data(m, ctx, data);
  bb_undefer(ctx, file);
  unmap(file);
  bb_scratch_end(arena);
}

static void place_data(bb_model *m, bb_context *ctx, const bb_model_parts *parts) {
  bb_plan *p = m->plan;
  m->data_bytes = p->data_bytes;
  m->mapped = m->data_bytes && !parts->data && m->class->host;
  if (m->mapped)
    m->data = map_data(m, ctx, parts);
  else if (m->data_bytes && parts->data)
    copy_data(m, ctx, parts->data);
  else if (m->data_bytes)
    copy_file(m, ctx, parts);
  m->once = BB_NEW(p->arena, void *, p->tensors + 1);
  for (uint32_t t = 0; t < p->tensors; t++) {
    const bb_plan_tensor *tensor = &p->tensor[t];
    size_t count;
    if (tensor->role == BB_TENSOR_CONSTANT) m->once[t] = (char *)m->data + tensor->offset;
    if (!tensor->once) continue;
    if (!bb_plan_count(tensor->rank, tensor->shape, NULL, &count))
      bb_fail(ctx, BB_ERROR_MEMORY, "%s: an array is too large to hold", parts->place);
    m->once[t] = m->class->allocate(m->device, m->home, count * bb_dtype_bytes(tensor->dtype));
  }
}

/* --- the machine --- */

/* Words of `need` that `have` lacks. */
static const char *lacks(bb_arena *arena, const char *need, const char *have) {
  bb_buffer missing = {.arena = arena};
  while (*need) {
    size_t length = strcspn(need, " ");
    const char *at = have;
    while (*at && (strcspn(at, " ") != length || memcmp(at, need, length) != 0)) {
      at += strcspn(at, " ");
      at += *at == ' ';
    }
    if (!*at) bb_put(&missing, "%s%.*s", missing.length ? " " : "", (int)length, need);
    need += length;
    need += *need == ' ';
  }
  return missing.data;
}

static void open_device(bb_model *m, bb_context *ctx, const bb_model_parts *parts) {
  m->class = parts->class ? parts->class : bb_device_find(m->plan->device);
  m->number = parts->number;
  if (!m->class)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%s: compiled for %s, which this library does not run",
            parts->place, m->plan->device);
  m->device = m->class->open(m->home, m->number);
  const char *have = m->class->features(m->device, m->plan->arena), *need = m->plan->features;
  if (m->class->serves && !m->class->serves(m->device, need))
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%s: compiled for %s, and %s:%u is %s", parts->place, need,
            m->class->name, m->number, have);
  const char *missing = m->class->serves ? NULL : lacks(m->plan->arena, need, have);
  if (missing)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%s: compiled for a machine with %s, which this one lacks",
            parts->place, missing);
  if (m->plan->kernels || m->class->runs)
    m->module = m->class->load(m->device, m->home, &parts->code, m->plan);
  if (m->module && m->class->compiled && m->class->compiled(m->module)) m->cached = false;
}

bool bb_model_launches(const bb_model *m, uint32_t step) {
  if (m->plan->step[step].kernel != BB_NONE) return true;
  return m->plan->step[step].misc && m->class->runs && m->class->runs(m->module, step);
}

/* --- making --- */

static void check_steps(const bb_model *m, bb_context *ctx, const bb_model_parts *parts) {
  for (uint32_t i = 0; i < m->plan->steps && !m->interpreter; i++)
    if (m->plan->step[i].program)
      bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%s: %s has no kernel, and there is no interpreter here",
              parts->place, m->plan->step[i].name);
}

static void destroy(bb_model *m) {
  bb_context *home = m->home;
  for (uint32_t t = 0; m->plan && m->once && t < m->plan->tensors; t++) {
    const bb_plan_tensor *tensor = &m->plan->tensor[t];
    size_t count;
    if (!tensor->once || !m->once[t]) continue;
    bb_plan_count(tensor->rank, tensor->shape, NULL, &count);
    m->class->release(m->device, m->once[t], count * bb_dtype_bytes(tensor->dtype));
  }
  if (m->module) m->class->unload(m->module);
  if (m->mapped && m->data)
    munmap(m->data, m->data_bytes);
  else if (m->data)
    m->class->release(m->device, m->data, m->data_bytes);
  if (m->device) m->class->close(m->device);
  if (m->plan) bb_arena_destroy(m->plan->arena);
  bb_resize(home, m, sizeof *m, 0);
  bb_context_destroy(home);
}

typedef struct making {
  const bb_model_parts *parts;
  bb_context *home;
  bb_model *model;
} making;

/* On the model's own context, which nobody else uses. */
static void make_body(bb_context *home, void *argument) {
  making *call = argument;
  bb_model *m = call->model = bb_resize(home, NULL, 0, sizeof *m);
  atomic_init(&m->holders, 1);
  m->home = home;
  m->cached = call->parts->cached;
  m->interpreter = call->parts->interpreter;
  bb_arena *arena = bb_scratch(home);
  m->plan = bb_plan_read(arena, call->parts->text, call->parts->length);
  bb_undefer(home, arena);
  check_steps(m, home, call->parts);
  open_device(m, home, call->parts);
  place_data(m, home, call->parts);
  describe(m);
  describe_variants(m);
  bb_session_run_once(home, m);
}

bb_model *bb_model_make(bb_context *ctx, const bb_model_parts *parts) {
  making call = {.parts = parts};
  bb_context_options options = {.version = BB_VERSION,
                                .allocator = ctx->allocator,
                                .log = ctx->log,
                                .log_user = ctx->log_user};
  if (bb_context_create(&options, &call.home) != BB_OK)
    bb_fail(ctx, BB_ERROR_MEMORY, "out of memory");
  bb_status status = bb_protect(call.home, make_body, &call);
  call.home->log = NULL; /* which the model may outlive */
  if (status == BB_OK) return call.model;
  bb_arena *scratch = bb_scratch(ctx);
  const char *message = bb_context_message(call.home);
  message = bb_arena_text(scratch, message, strlen(message));
  if (call.model)
    destroy(call.model);
  else
    bb_context_destroy(call.home);
  bb_fail(ctx, status, "%s", message);
}

bb_model *bb_model_hold(bb_model *m) {
  atomic_fetch_add(&m->holders, 1);
  return m;
}

void bb_model_release(bb_model *m) {
  if (m && atomic_fetch_sub(&m->holders, 1) == 1) destroy(m);
}

/* --- facts --- */

bool bb_model_get_tensor(const bb_model *m, bb_side side, uint32_t index, bb_tensor_info *info) {
  if ((unsigned)side > BB_OUTPUT || index >= m->sides[side]) return false;
  *info = m->info[m->side[side][index]];
  return true;
}

bool bb_model_find_tensor(const bb_model *m, bb_side side, const char *name, uint32_t *index) {
  for (uint32_t i = 0; name && (unsigned)side <= BB_OUTPUT && i < m->sides[side]; i++) {
    if (strcmp(m->info[m->side[side][i]].name, name) != 0) continue;
    *index = i;
    return true;
  }
  return false;
}

bool bb_model_get_extent(const bb_model *m, uint32_t index, bb_extent_info *info) {
  if (index >= m->plan->extents) return false;
  *info = (bb_extent_info){m->plan->symbol[index],
                           m->plan->derived[index].count > 0 || m->plan->most[index].count > 0};
  return true;
}

bool bb_model_get_variant(const bb_model *m, uint32_t index, bb_variant_info *info) {
  const bb_plan *p = m->plan;
  if (index >= p->variants) return false;
  *info = (bb_variant_info){.extents = p->extents, .extent = m->chosen_at[index]};
  for (uint32_t i = 0; i < p->steps; i++) {
    if (p->step[i].once || !(p->step[i].variants >> index & 1)) continue;
    info->steps++;
    info->kernels += p->step[i].kernel != BB_NONE;
  }
  return true;
}

bool bb_model_get_region(const bb_model *m, uint32_t index, bb_region_info *info) {
  if (index >= m->plan->table.cells) return false;
  *info = m->region[index];
  return true;
}

bool bb_model_variant_has(const bb_model *m, uint32_t index, uint32_t step) {
  return index < m->plan->variants && step < m->plan->steps &&
         (m->plan->step[step].variants >> index & 1);
}

typedef struct shape_call {
  const bb_model *model;
  bb_side side;
  uint32_t index, count;
  const bb_setting *extent;
  int64_t *shape;
  uint32_t variant;
} shape_call;

static int64_t *values_of(bb_context *ctx, const shape_call *call, bb_arena *arena) {
  const bb_plan *p = call->model->plan;
  int64_t *value = BB_NEW(arena, int64_t, p->symbols + 1);
  for (uint32_t i = 0; i < p->symbols; i++) value[i] = -1;
  if (call->count) bb_require(ctx, call->extent, "the list of extents");
  for (uint32_t k = 0; k < call->count; k++) {
    const bb_setting *given = &call->extent[k];
    value[bb_plan_find_extent(ctx, p, given->name, given->value)] = given->value;
  }
  bb_plan_derive(ctx, p, value);
  return value;
}

static void shape_body(bb_context *ctx, void *argument) {
  const shape_call *call = argument;
  const bb_model *m = call->model;
  bb_arena *arena = bb_scratch(ctx);
  if ((unsigned)call->side > BB_OUTPUT || call->index >= m->sides[call->side])
    bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no such input or output");
  const int64_t *value = values_of(ctx, call, arena);
  const bb_plan_tensor *t = &m->plan->tensor[m->side[call->side][call->index]];
  int64_t *shape = BB_NEW(arena, int64_t, t->rank + 1);
  size_t count;
  for (uint32_t i = 0; i < t->rank; i++) {
    for (uint32_t k = 0; k < t->shape[i]->count; k++)
      if (value[t->shape[i]->symbol[k]] < 0)
        bb_fail(ctx, BB_ERROR_ARGUMENT, "\"%s\": the extent of axis %u is not known", t->name, i);
    if (!bb_plan_extent(t->shape[i], value, &shape[i]))
      bb_fail(ctx, BB_ERROR_INPUT, "\"%s\": the extent of axis %u is too large", t->name, i);
  }
  if (!bb_plan_count(t->rank, t->shape, value, &count))
    bb_fail(ctx, BB_ERROR_INPUT, "\"%s\" has more elements than can be counted", t->name);
  memcpy(call->shape, shape, t->rank * sizeof *shape);
  bb_scratch_end(arena);
}

bb_status bb_model_get_shape(bb_context *ctx, const bb_model *model, bb_side side, uint32_t index,
                             uint32_t count, const bb_setting *extent, int64_t *shape) {
  shape_call call = {.model = model,
                     .side = side,
                     .index = index,
                     .count = count,
                     .extent = extent,
                     .shape = shape};
  return bb_protect(ctx, shape_body, &call);
}

static void variant_body(bb_context *ctx, void *argument) {
  shape_call *call = argument;
  const bb_plan *p = call->model->plan;
  bb_arena *arena = bb_scratch(ctx);
  const int64_t *value = values_of(ctx, call, arena);
  for (uint32_t a = 0; a < p->table.axes; a++)
    if (value[p->table.axis[a].symbol] < 0)
      bb_fail(ctx, BB_ERROR_ARGUMENT, "the run-time extent %s is not known",
              p->symbol[p->table.axis[a].symbol]);
  call->variant = bb_plan_variant_at(p, value);
  bb_scratch_end(arena);
}

bb_status bb_model_find_variant(bb_context *ctx, const bb_model *model, uint32_t count,
                                const bb_setting *extent, uint32_t *index) {
  shape_call call = {.model = model, .count = count, .extent = extent};
  bb_status status = bb_protect(ctx, variant_body, &call);
  if (status == BB_OK) *index = call.variant;
  return status;
}

/* Of nodes, kernels: those of the first variant. */
void bb_model_get_info(const bb_model *m, bb_model_info *info) {
  const bb_plan *p = m->plan;
  *info = (bb_model_info){.name = p->name,
                          .device = p->device,
                          .features = p->features,
                          .inputs = m->sides[BB_INPUT],
                          .outputs = m->sides[BB_OUTPUT],
                          .extents = p->extents,
                          .steps = p->steps,
                          .sources = p->kernels,
                          .cached = m->cached};
  for (uint32_t t = 0; t < p->tensors; t++)
    if (p->tensor[t].role == BB_TENSOR_CONSTANT) info->constant_bytes += p->tensor[t].bytes;
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_plan_step *s = &p->step[i];
    if (!(s->variants & 1)) continue;
    info->kernels += s->kernel != BB_NONE;
    if (!s->program) *(s->misc ? &info->misc : &info->fused) += s->nodes;
  }
}

bool bb_model_get_step(const bb_model *m, uint32_t index, bb_step_info *info) {
  if (index >= m->plan->steps) return false;
  const bb_plan_step *s = &m->plan->step[index];
  *info = (bb_step_info){.name = s->name,
                         .listing = s->listing,
                         .op = s->misc ? s->misc->op : NULL,
                         .once = s->once,
                         .nodes = s->nodes,
                         .source = s->kernel};
  return true;
}
