/* plan_read.c - a plan from its text, plan.json.
 *
 * The text may come from a file: every number is held against its bounds before it is used, here as
 * far as it is about the text, in bb_plan_verify() as far as it is about the plan.
 */
#include "plan_text.h"

#include <string.h>

typedef struct reader {
  bb_json_source from;
  bb_arena *arena;
  bb_plan *plan;
} reader;

/* --- members of an object --- */

static const char *text_of(const reader *r, const bb_json *object, const char *name) {
  return bb_json_member(&r->from, object, name, BB_JSON_TEXT)->text;
}

static const char *optional_text(const bb_json *object, const char *name) {
  const bb_json *found = bb_json_get(object, name);
  return found && found->kind == BB_JSON_TEXT ? found->text : NULL;
}

static bool flag(const bb_json *object, const char *name) {
  const bb_json *found = bb_json_get(object, name);
  return found && found->kind == BB_JSON_BOOL && found->number != 0;
}

/* --- parts --- */

/* 5, or [5, 0, 1] for 5 times symbols 0 and 1. */
static const bb_extent *read_extent(const reader *r, const bb_json *json) {
  bb_extent *extent = BB_NEW(r->arena, bb_extent, 1);
  const bb_json *first = json->kind == BB_JSON_LIST ? json->first : json;
  extent->factor = bb_json_whole(&r->from, first, "extent", 0, INT64_MAX);
  if (json->kind != BB_JSON_LIST) return extent;
  uint32_t *symbol = BB_NEW(r->arena, uint32_t, json->count);
  for (const bb_json *s = first->next; s; s = s->next)
    symbol[extent->count++] =
        (uint32_t)bb_json_whole(&r->from, s, "extent", 0, (int64_t)r->plan->symbols - 1);
  extent->symbol = symbol;
  return extent;
}

static const bb_extent *const *read_shape(const reader *r, const bb_json *object, const char *name,
                                          uint32_t most, uint32_t *rank) {
  const bb_json *list = bb_json_member(&r->from, object, name, BB_JSON_LIST);
  if (list->count > most) bb_json_refuse(&r->from, name);
  const bb_extent **shape = BB_NEW(r->arena, const bb_extent *, list->count);
  uint32_t i = 0;
  for (const bb_json *e = list->first; e; e = e->next) shape[i++] = read_extent(r, e);
  *rank = list->count;
  return shape;
}

static bb_formula read_formula(const reader *r, const bb_json *json, uint32_t variables) {
  bb_formula formula = {0};
  if (!json || json->kind != BB_JSON_TEXT ||
      !bb_formula_parse(r->arena, json->text, variables, &formula))
    bb_json_refuse(&r->from, "formula");
  return formula;
}

static bb_dtype read_dtype(const reader *r, const bb_json *object) {
  bb_dtype dtype;
  const char *name = text_of(r, object, "type");
  if (!bb_dtype_parse(name, strlen(name), &dtype)) bb_json_refuse(&r->from, "type");
  return dtype;
}

static void read_symbols(reader *r, const bb_json *top) {
  bb_plan *p = r->plan;
  const bb_json *list = bb_json_member(&r->from, top, "symbols", BB_JSON_LIST);
  uint32_t caches = bb_json_member(&r->from, top, "caches", BB_JSON_LIST)->count;
  p->extents = list->count;
  p->symbol = BB_NEW(r->arena, const char *, list->count + 2 * (size_t)caches + 1);
  bb_formula *derived = BB_NEW(r->arena, bb_formula, list->count + 2 * (size_t)caches + 1);
  for (const bb_json *s = list->first; s; s = s->next)
    p->symbol[p->symbols++] = text_of(r, s, "name");
  for (uint32_t i = 0; i < 2 * caches; i++) p->symbol[p->symbols++] = "room";
  bb_formula *most = BB_NEW(r->arena, bb_formula, list->count + 2 * (size_t)caches + 1);
  uint32_t i = 0;
  for (const bb_json *s = list->first; s; s = s->next, i++) {
    if (bb_json_get(s, "is")) derived[i] = read_formula(r, bb_json_get(s, "is"), p->symbols);
    if (bb_json_get(s, "most")) most[i] = read_formula(r, bb_json_get(s, "most"), p->symbols);
  }
  p->derived = derived;
  p->most = most;
}

static void read_tensor(const reader *r, const bb_json *json, bb_plan_tensor *tensor) {
  const char *role = text_of(r, json, "role");
  uint32_t k = 0;
  while (k < BB_PLAN_ROLES && strcmp(role, bb_plan_role_name[k]) != 0) k++;
  if (k == BB_PLAN_ROLES) bb_json_refuse(&r->from, "role");
  *tensor = (bb_plan_tensor){.name = optional_text(json, "name"),
                             .dtype = read_dtype(r, json),
                             .role = (bb_tensor_role)k,
                             .room = BB_NONE,
                             .within = BB_NONE,
                             .once = flag(json, "once")};
  tensor->shape = read_shape(r, json, "shape", BB_PLAN_RANK, &tensor->rank);
  bool named = tensor->role == BB_TENSOR_INPUT || tensor->role == BB_TENSOR_OUTPUT;
  if (named && !tensor->name) bb_json_refuse(&r->from, "name");
  if (tensor->role != BB_TENSOR_CONSTANT) return;
  tensor->offset =
      (uint64_t)bb_json_whole(&r->from, bb_json_get(json, "offset"), "offset", 0, INT64_MAX);
  tensor->bytes =
      (uint64_t)bb_json_whole(&r->from, bb_json_get(json, "bytes"), "bytes", 0, INT64_MAX);
}

/* [input, output, axis, fresh] each; fresh: -1 where there is none. */
static void read_caches(reader *r, const bb_json *top) {
  bb_plan *p = r->plan;
  const bb_json *list = bb_json_member(&r->from, top, "caches", BB_JSON_LIST);
  bb_plan_cache *cache = BB_NEW(r->arena, bb_plan_cache, list->count + 1);
  for (const bb_json *c = list->first; c; c = c->next) {
    if (c->kind != BB_JSON_LIST || c->count != 4) bb_json_refuse(&r->from, "caches");
    const bb_json *output = c->first->next;
    bb_plan_cache *made = &cache[p->caches];
    made->input = (uint32_t)bb_json_whole(&r->from, c->first, "caches", 0, (int64_t)p->tensors - 1);
    made->output = (uint32_t)bb_json_whole(&r->from, output, "caches", 0, (int64_t)p->tensors - 1);
    made->axis = (uint32_t)bb_json_whole(&r->from, output->next, "caches", 0, BB_PLAN_RANK);
    int64_t fresh =
        bb_json_whole(&r->from, output->next->next, "caches", -1, (int64_t)p->tensors - 1);
    made->fresh = fresh < 0 ? BB_NONE : (uint32_t)fresh;
    p->caches++;
  }
  p->cache = cache;
  bb_plan_give_rooms(p);
}

/* --- kernels --- */

static void read_kernel(const reader *r, const bb_json *json, bb_plan_step *step) {
  const bb_json *list = bb_json_member(&r->from, json, "arguments", BB_JSON_LIST);
  step->kernel = bb_json_index(&r->from, json, "kernel", r->plan->kernels);
  step->extent = read_shape(r, json, "extents", UINT32_MAX, &step->extents);
  step->operations = read_formula(r, bb_json_get(json, "operations"), step->extents);
  step->listing = optional_text(json, "listing");
  bb_plan_argument *argument = BB_NEW(r->arena, bb_plan_argument, list->count + 1);
  for (const bb_json *a = list->first; a; a = a->next) {
    bb_plan_argument *made = &argument[step->arguments++];
    *made = (bb_plan_argument){.tensor = BB_NONE};
    if (a->kind == BB_JSON_NULL) continue;
    made->tensor = bb_json_index(&r->from, a, "tensor", r->plan->tensors);
    made->offset = read_formula(r, bb_json_get(a, "offset"), step->extents);
    made->written = flag(a, "written");
  }
  step->argument = argument;
}

/* --- reference kernels --- */

static void read_numbers(const reader *r, const bb_json *list, bb_attribute *a) {
  int64_t *ints = BB_NEW(r->arena, int64_t, list->count + 1);
  double *floats = BB_NEW(r->arena, double, list->count + 1);
  for (const bb_json *n = list->first; n; n = n->next) {
    if (a->kind == BB_ATTR_INTS)
      ints[a->count++] = bb_json_whole(&r->from, n, a->name, INT64_MIN, INT64_MAX);
    else if (n->kind == BB_JSON_NUMBER)
      floats[a->count++] = n->number;
    else
      bb_json_refuse(&r->from, a->name);
  }
  a->ints = ints;
  a->floats = floats;
}

static void read_attribute(const reader *r, const bb_json *json, bb_attribute *a) {
  const bb_json *value;
  a->name = text_of(r, json, "name");
  if ((value = bb_json_get(json, "int"))) {
    a->kind = BB_ATTR_INT;
    a->i = bb_json_whole(&r->from, value, "int", INT64_MIN, INT64_MAX);
  } else if ((value = bb_json_get(json, "float"))) {
    a->kind = BB_ATTR_FLOAT;
    if (value->kind != BB_JSON_NUMBER) bb_json_refuse(&r->from, a->name);
    a->f = value->number;
  } else if ((value = bb_json_get(json, "text"))) {
    a->kind = BB_ATTR_TEXT;
    a->text = text_of(r, json, "text");
  } else if ((value = bb_json_get(json, "ints"))) {
    a->kind = BB_ATTR_INTS;
    read_numbers(r, value, a);
  } else {
    a->kind = BB_ATTR_FLOATS;
    read_numbers(r, bb_json_member(&r->from, json, "floats", BB_JSON_LIST), a);
  }
}

static void read_piece(const reader *r, const bb_json *json, uint32_t axes, bb_plan_piece *piece) {
  const bb_json *strides = bb_json_member(&r->from, json, "strides", BB_JSON_LIST);
  if (strides->count != axes) bb_json_refuse(&r->from, "strides");
  piece->tensor = bb_json_index(&r->from, json, "tensor", r->plan->tensors);
  piece->offset = read_formula(r, bb_json_get(json, "offset"), r->plan->symbols);
  piece->first = bb_json_whole(&r->from, bb_json_get(json, "first"), "first", 0, INT64_MAX);
  piece->length = bb_json_whole(&r->from, bb_json_get(json, "length"), "length", 0, INT64_MAX);
  bb_formula *stride = BB_NEW(r->arena, bb_formula, axes + 1);
  uint32_t i = 0;
  for (const bb_json *s = strides->first; s; s = s->next)
    stride[i++] = read_formula(r, s, r->plan->symbols);
  piece->stride = stride;
}

static void read_operand(const reader *r, const bb_json *json, bb_plan_operand *operand) {
  *operand = (bb_plan_operand){.joined = BB_NONE, .absent = json->kind == BB_JSON_NULL};
  if (operand->absent) return;
  operand->dtype = read_dtype(r, json);
  operand->whole = flag(json, "whole");
  operand->shape = read_shape(r, json, "shape", 8, &operand->rank);
  operand->extent = read_shape(r, json, "axes", BB_PLAN_RANK, &operand->axes);
  if (bb_json_get(json, "joined"))
    operand->joined = bb_json_index(&r->from, json, "joined", operand->axes);
  const bb_json *list = bb_json_member(&r->from, json, "pieces", BB_JSON_LIST);
  bb_plan_piece *piece = BB_NEW(r->arena, bb_plan_piece, list->count + 1);
  for (const bb_json *p = list->first; p; p = p->next)
    read_piece(r, p, operand->axes, &piece[operand->pieces++]);
  operand->piece = piece;
}

static const bb_plan_operand *read_operands(const reader *r, const bb_json *json, const char *name,
                                            uint32_t *count) {
  const bb_json *list = bb_json_member(&r->from, json, name, BB_JSON_LIST);
  bb_plan_operand *operand = BB_NEW(r->arena, bb_plan_operand, list->count + 1);
  for (const bb_json *o = list->first; o; o = o->next) read_operand(r, o, &operand[(*count)++]);
  return operand;
}

static void read_sides(const reader *r, const bb_json *json, bb_plan_step *step) {
  step->kernel = BB_NONE;
  step->in = read_operands(r, json, "in", &step->nin);
  step->out = read_operands(r, json, "out", &step->nout);
}

static void read_misc(const reader *r, const bb_json *json, bb_plan_step *step) {
  bb_misc *misc = BB_NEW(r->arena, bb_misc, 1);
  const bb_json *list = bb_json_member(&r->from, json, "attributes", BB_JSON_LIST);
  misc->domain = text_of(r, json, "domain");
  misc->op = text_of(r, json, "op");
  if (bb_json_get(json, "tells"))
    step->tells = bb_json_index(&r->from, json, "tells", r->plan->extents);
  misc->version =
      (uint32_t)bb_json_whole(&r->from, bb_json_get(json, "version"), "version", 0, UINT32_MAX);
  bb_attribute *attribute = BB_NEW(r->arena, bb_attribute, list->count + 1);
  for (const bb_json *a = list->first; a; a = a->next)
    read_attribute(r, a, &attribute[misc->count++]);
  misc->attribute = attribute;
  step->misc = misc;
  read_sides(r, json, step);
}

static void read_interpreted(const reader *r, const bb_json *json, bb_plan_step *step) {
  step->listing = text_of(r, json, "listing");
  step->program = text_of(r, json, "program");
  read_sides(r, json, step);
}

/* --- variants --- */

static const bb_json *list_of(const reader *r, const bb_json *json, const char *name) {
  if (!json || json->kind != BB_JSON_LIST) bb_json_refuse(&r->from, name);
  return json;
}

static int64_t *read_whole_numbers(const reader *r, const bb_json *first, uint32_t count,
                                   const char *name) {
  int64_t *number = BB_NEW(r->arena, int64_t, count + 1);
  for (uint32_t i = 0; i < count; i++, first = first->next)
    number[i] = bb_json_whole(&r->from, first, name, 0, INT64_MAX);
  return number;
}

/* [symbol, limit, limit, ...] */
static bb_plan_axis read_axis(const reader *r, const bb_json *json) {
  if (list_of(r, json, "table")->count < 1) bb_json_refuse(&r->from, "table");
  return (bb_plan_axis){
      .symbol =
          (uint32_t)bb_json_whole(&r->from, json->first, "table", 0, (int64_t)r->plan->extents - 1),
      .stretches = json->count,
      .limit = read_whole_numbers(r, json->first->next, json->count - 1, "table")};
}

/* The extents that each was chosen for; the table, whose first list has the axes, the second the cells. */
static void read_variants(reader *r, const bb_json *top) {
  bb_plan *p = r->plan;
  const bb_json *variants = bb_json_member(&r->from, top, "variants", BB_JSON_LIST);
  const bb_json *axes =
      list_of(r, bb_json_member(&r->from, top, "table", BB_JSON_LIST)->first, "table");
  const bb_json *cells = list_of(r, axes->next, "table");
  const int64_t **at = BB_NEW(r->arena, const int64_t *, variants->count + 1);
  for (const bb_json *v = variants->first; v; v = v->next) {
    if (list_of(r, v, "variants")->count != p->extents) bb_json_refuse(&r->from, "variants");
    at[p->variants++] = read_whole_numbers(r, v->first, v->count, "variants");
  }
  bb_plan_axis *axis = BB_NEW(r->arena, bb_plan_axis, axes->count + 1);
  for (const bb_json *a = axes->first; a; a = a->next) axis[p->table.axes++] = read_axis(r, a);
  uint32_t *cell = BB_NEW(r->arena, uint32_t, cells->count + 1);
  for (const bb_json *c = cells->first; c; c = c->next)
    cell[p->table.cells++] = (uint32_t)bb_json_whole(&r->from, c, "table", 0, BB_PLAN_VARIANTS);
  p->chosen_at = at;
  p->table.axis = axis;
  p->table.cell = cell;
  if (p->variants < 1 || p->variants > BB_PLAN_VARIANTS) bb_json_refuse(&r->from, "variants");
}

/* A list of numbers; all of them where there is none. */
static uint32_t read_parts(const reader *r, const bb_json *step) {
  const bb_json *list = bb_json_get(step, "variants");
  uint32_t set = 0;
  if (!list) return bb_plan_all(r->plan);
  for (const bb_json *v = list_of(r, list, "variants")->first; v; v = v->next)
    set |= 1u << bb_json_whole(&r->from, v, "variants", 0, BB_PLAN_VARIANTS - 1);
  return set;
}

/* --- the plan --- */

static void read_steps(reader *r, const bb_json *top) {
  const bb_json *list = bb_json_member(&r->from, top, "steps", BB_JSON_LIST);
  r->plan->step = BB_NEW(r->arena, bb_plan_step, list->count + 1);
  for (const bb_json *s = list->first; s; s = s->next) {
    bb_plan_step *step = &r->plan->step[r->plan->steps++];
    step->name = text_of(r, s, "name");
    step->tells = BB_NONE;
    step->once = flag(s, "once");
    step->variants = read_parts(r, s);
    step->nodes =
        (uint32_t)bb_json_whole(&r->from, bb_json_get(s, "nodes"), "nodes", 0, UINT32_MAX);
    if (bb_json_get(s, "op"))
      read_misc(r, s, step);
    else if (bb_json_get(s, "program"))
      read_interpreted(r, s, step);
    else
      read_kernel(r, s, step);
  }
}

bb_plan *bb_plan_read(bb_arena *arena, const char *text, size_t length) {
  reader r = {{bb_arena_context(arena), "plan"}, arena, BB_NEW(arena, bb_plan, 1)};
  const char *error;
  size_t at;
  const bb_json *top = bb_json_parse(arena, text, length, &error, &at);
  if (!top) bb_fail(r.from.ctx, BB_ERROR_INPUT, "plan: %s at byte %zu", error, at);
  bb_plan *p = r.plan;
  p->arena = arena;
  if (bb_json_whole(&r.from, bb_json_get(top, "version"), "version", 0, INT64_MAX) !=
      BB_PLAN_VERSION)
    bb_fail(r.from.ctx, BB_ERROR_INPUT, "plan: version %s is not read, only %d",
            bb_json_get(top, "version")->text, BB_PLAN_VERSION);
  p->name = text_of(&r, top, "name");
  p->device = text_of(&r, top, "device");
  p->features = text_of(&r, top, "features");
  p->code = text_of(&r, top, "code");
  p->sum = text_of(&r, top, "sum");
  p->kernels = (uint32_t)bb_json_whole(&r.from, bb_json_get(top, "kernels"), "kernels", 0, 1 << 24);
  p->data_bytes = (uint64_t)bb_json_whole(&r.from, bb_json_get(top, "data"), "data", 0, INT64_MAX);
  read_symbols(&r, top);
  const bb_json *list = bb_json_member(&r.from, top, "tensors", BB_JSON_LIST);
  p->tensor = BB_NEW(arena, bb_plan_tensor, list->count + 1);
  for (const bb_json *t = list->first; t; t = t->next) read_tensor(&r, t, &p->tensor[p->tensors++]);
  read_caches(&r, top);
  read_variants(&r, top);
  read_steps(&r, top);
  const char *broken = bb_plan_verify(p);
  if (broken) bb_fail(r.from.ctx, BB_ERROR_INPUT, "plan: %s", broken);
  bb_plan_find_symbols(p);
  bb_plan_find_joins(p);
  return p;
}
