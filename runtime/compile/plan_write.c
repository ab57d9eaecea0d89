/* plan_write.c - a plan as text: plan.json of a compiled folder (read by plan_read.c). */
#include "plan_make.h"

#include "../model/plan_text.h"

#include <inttypes.h>
#include <math.h>

/* Members of an object or list: `first` says whether a comma stands before. */
static void next(bb_buffer *out, bool *first) {
  bb_put(out, "%s", *first ? "" : ", ");
  *first = false;
}

static void put_text(bb_buffer *out, const char *name, const char *text) {
  bb_put(out, "\"%s\": ", name);
  bb_json_put(out, text);
}

static void put_extent(bb_buffer *out, const bb_extent *e) {
  if (!e->count) {
    bb_put(out, "%" PRId64, e->factor);
    return;
  }
  bb_put(out, "[%" PRId64, e->factor);
  for (uint32_t i = 0; i < e->count; i++) bb_put(out, ", %u", e->symbol[i]);
  bb_put(out, "]");
}

static void put_shape(bb_buffer *out, const char *name, uint32_t rank,
                      const bb_extent *const *shape) {
  bb_put(out, "\"%s\": [", name);
  for (uint32_t i = 0; i < rank; i++) {
    bb_put(out, "%s", i ? ", " : "");
    put_extent(out, shape[i]);
  }
  bb_put(out, "]");
}

static void put_formula(bb_buffer *out, const char *name, const bb_formula *formula) {
  bb_put(out, "\"%s\": \"", name);
  bb_formula_print(out, formula);
  bb_put(out, "\"");
}

static void put_tensor(bb_buffer *out, const bb_plan_tensor *t) {
  bb_put(out, "{");
  if (t->name) {
    put_text(out, "name", t->name);
    bb_put(out, ", ");
  }
  bb_put(out, "\"type\": \"%s\", \"role\": \"%s\", ", bb_dtype_name(t->dtype),
         bb_plan_role_name[t->role]);
  put_shape(out, "shape", t->rank, t->shape);
  if (t->once) bb_put(out, ", \"once\": true");
  if (t->role == BB_TENSOR_CONSTANT)
    bb_put(out, ", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64, t->offset, t->bytes);
  bb_put(out, "}");
}

/* --- kernels --- */

static void put_kernel(bb_buffer *out, const bb_plan_step *s) {
  bb_put(out, ", \"kernel\": %u, ", s->kernel);
  put_shape(out, "extents", s->extents, s->extent);
  bb_put(out, ",\n   \"arguments\": [");
  for (uint32_t i = 0; i < s->arguments; i++) {
    const bb_plan_argument *a = &s->argument[i];
    bb_put(out, "%s", i ? ", " : "");
    if (a->tensor == BB_NONE) {
      bb_put(out, "null");
      continue;
    }
    bb_put(out, "{\"tensor\": %u, ", a->tensor);
    put_formula(out, "offset", &a->offset);
    bb_put(out, "%s}", a->written ? ", \"written\": true" : "");
  }
  bb_put(out, "],\n   ");
  put_formula(out, "operations", &s->operations);
  bb_put(out, ",\n   ");
  put_text(out, "listing", s->listing);
}

/* --- reference kernels --- */

/* JSON has no infinities: numbers beyond its own stand for them. */
static void put_double(bb_buffer *out, double value) {
  if (isinf(value))
    bb_put(out, "%s1e999", value < 0 ? "-" : "");
  else
    bb_put(out, "%.17g", isnan(value) ? 0 : value);
}

static void put_attribute(bb_buffer *out, const bb_attribute *a) {
  bb_put(out, "{");
  put_text(out, "name", a->name);
  bb_put(out, ", ");
  switch (a->kind) {
  case BB_ATTR_INT: bb_put(out, "\"int\": %" PRId64, a->i); break;
  case BB_ATTR_FLOAT:
    bb_put(out, "\"float\": ");
    put_double(out, a->f);
    break;
  case BB_ATTR_TEXT: put_text(out, "text", a->text); break;
  case BB_ATTR_INTS:
    bb_put(out, "\"ints\": [");
    for (uint32_t i = 0; i < a->count; i++) bb_put(out, "%s%" PRId64, i ? ", " : "", a->ints[i]);
    bb_put(out, "]");
    break;
  case BB_ATTR_FLOATS:
    bb_put(out, "\"floats\": [");
    for (uint32_t i = 0; i < a->count; i++) {
      bb_put(out, "%s", i ? ", " : "");
      put_double(out, a->floats[i]);
    }
    bb_put(out, "]");
    break;
  }
  bb_put(out, "}");
}

static void put_piece(bb_buffer *out, const bb_plan_operand *o, const bb_plan_piece *p) {
  bb_put(out, "{\"tensor\": %u, ", p->tensor);
  put_formula(out, "offset", &p->offset);
  bb_put(out, ", \"first\": %" PRId64 ", \"length\": %" PRId64 ", \"strides\": [", p->first,
         p->length);
  for (uint32_t i = 0; i < o->axes; i++) {
    bb_put(out, "%s\"", i ? ", " : "");
    bb_formula_print(out, &p->stride[i]);
    bb_put(out, "\"");
  }
  bb_put(out, "]}");
}

static void put_operand(bb_buffer *out, const bb_plan_operand *o) {
  if (o->absent) {
    bb_put(out, "null");
    return;
  }
  bb_put(out, "{\"type\": \"%s\"%s, ", bb_dtype_name(o->dtype),
         o->whole ? ", \"whole\": true" : "");
  put_shape(out, "shape", o->rank, o->shape);
  bb_put(out, ", ");
  put_shape(out, "axes", o->axes, o->extent);
  if (o->joined != BB_NONE) bb_put(out, ", \"joined\": %u", o->joined);
  bb_put(out, ", \"pieces\": [");
  for (uint32_t i = 0; i < o->pieces; i++) {
    bb_put(out, "%s", i ? ", " : "");
    put_piece(out, o, &o->piece[i]);
  }
  bb_put(out, "]}");
}

static void put_operands(bb_buffer *out, const char *name, uint32_t count,
                         const bb_plan_operand *o) {
  bb_put(out, ",\n   \"%s\": [", name);
  for (uint32_t i = 0; i < count; i++) {
    bb_put(out, "%s", i ? ", " : "");
    put_operand(out, &o[i]);
  }
  bb_put(out, "]");
}

static void put_misc(bb_buffer *out, const bb_plan_step *s) {
  bb_put(out, ", ");
  put_text(out, "domain", s->misc->domain);
  bb_put(out, ", ");
  put_text(out, "op", s->misc->op);
  if (s->tells != BB_NONE) bb_put(out, ", \"tells\": %u", s->tells);
  bb_put(out, ", \"version\": %u, \"attributes\": [", s->misc->version);
  for (uint32_t i = 0; i < s->misc->count; i++) {
    bb_put(out, "%s", i ? ", " : "");
    put_attribute(out, &s->misc->attribute[i]);
  }
  bb_put(out, "]");
}

static void put_interpreted(bb_buffer *out, const bb_plan_step *s) {
  bb_put(out, ", ");
  put_text(out, "listing", s->listing);
  bb_put(out, ",\n   ");
  put_text(out, "program", s->program);
}

/* --- the plan --- */

static void put_symbols(bb_buffer *out, const bb_plan *p) {
  bool first = true;
  bb_put(out, " \"symbols\": [");
  for (uint32_t i = 0; i < p->extents; i++) {
    next(out, &first);
    bb_put(out, "{");
    put_text(out, "name", p->symbol[i]);
    if (p->derived[i].count) {
      bb_put(out, ", ");
      put_formula(out, "is", &p->derived[i]);
    }
    if (p->most[i].count) {
      bb_put(out, ", ");
      put_formula(out, "most", &p->most[i]);
    }
    bb_put(out, "}");
  }
  bb_put(out, "],\n");
}

static void put_numbers(bb_buffer *out, uint32_t count, const int64_t *number) {
  for (uint32_t i = 0; i < count; i++) bb_put(out, "%s%" PRId64, i ? ", " : "", number[i]);
}

static void put_table(bb_buffer *out, const bb_plan *p) {
  const bb_plan_table *t = &p->table;
  bb_put(out, " \"variants\": [");
  for (uint32_t v = 0; v < p->variants; v++) {
    bb_put(out, "%s[", v ? ", " : "");
    put_numbers(out, p->extents, p->chosen_at[v]);
    bb_put(out, "]");
  }
  bb_put(out, "],\n \"table\": [[");
  for (uint32_t a = 0; a < t->axes; a++) {
    bb_put(out, "%s[%u%s", a ? ", " : "", t->axis[a].symbol, t->axis[a].stretches > 1 ? ", " : "");
    put_numbers(out, t->axis[a].stretches - 1, t->axis[a].limit);
    bb_put(out, "]");
  }
  bb_put(out, "], [");
  for (uint32_t i = 0; i < t->cells; i++) bb_put(out, "%s%u", i ? ", " : "", t->cell[i]);
  bb_put(out, "]],\n");
}

/* Nothing where it is part of all. */
static void put_parts(bb_buffer *out, const bb_plan *p, const bb_plan_step *s) {
  bool first = true;
  if (s->variants == bb_plan_all(p)) return;
  bb_put(out, ", \"variants\": [");
  for (uint32_t v = 0; v < p->variants; v++) {
    if (!(s->variants >> v & 1)) continue;
    next(out, &first);
    bb_put(out, "%u", v);
  }
  bb_put(out, "]");
}

void bb_plan_write(bb_buffer *out, const bb_plan *p) {
  bb_put(out, "{\"version\": %d, ", BB_PLAN_VERSION);
  put_text(out, "name", p->name);
  bb_put(out, ",\n ");
  put_text(out, "device", p->device);
  bb_put(out, ", ");
  put_text(out, "features", p->features);
  bb_put(out, ",\n \"kernels\": %u, ", p->kernels);
  put_text(out, "code", p->code);
  bb_put(out, ", ");
  put_text(out, "sum", p->sum);
  bb_put(out, ", \"data\": %" PRIu64 ",\n", p->data_bytes);
  put_symbols(out, p);
  bb_put(out, " \"tensors\": [");
  for (uint32_t i = 0; i < p->tensors; i++) {
    bb_put(out, "%s", i ? ",\n  " : "\n  ");
    put_tensor(out, &p->tensor[i]);
  }
  bb_put(out, "],\n \"caches\": [");
  for (uint32_t i = 0; i < p->caches; i++)
    bb_put(out, "%s[%u, %u, %u, %lld]", i ? ", " : "", p->cache[i].input, p->cache[i].output,
           p->cache[i].axis, p->cache[i].fresh == BB_NONE ? -1ll : (long long)p->cache[i].fresh);
  bb_put(out, "],\n");
  put_table(out, p);
  bb_put(out, " \"steps\": [");
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_plan_step *s = &p->step[i];
    bb_put(out, "%s{", i ? ",\n  " : "\n  ");
    put_text(out, "name", s->name);
    bb_put(out, "%s, \"nodes\": %u", s->once ? ", \"once\": true" : "", s->nodes);
    put_parts(out, p, s);
    if (s->misc)
      put_misc(out, s);
    else if (s->program)
      put_interpreted(out, s);
    else
      put_kernel(out, s);
    if (s->kernel == BB_NONE) {
      put_operands(out, "in", s->nin, s->in);
      put_operands(out, "out", s->nout, s->out);
    }
    bb_put(out, "}");
  }
  bb_put(out, "]}\n");
}
