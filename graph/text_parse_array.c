/* text_parse_array.c - array programs from text.  Shapes of results come from the builders of
 * array/; a type that the text gives is checked against them.
 */
#include "text_array.h"

#include <string.h>

enum { MAX_RESULTS = 1000 };

bb_array_reader *bb_array_reader_begin(bb_reader *r) {
  bb_array_reader *a = BB_NEW(r->scratch, bb_array_reader, 1);
  *a = (bb_array_reader){.r = r, .array = bb_array_create(r->program)};
  a->values = bb_table_create(r->scratch);
  r->program->array = a->array;
  return a;
}

static const char *keep(bb_array_reader *a, const char *text) {
  return bb_arena_text(a->r->program->arena, text, strlen(text));
}

/* --- names of values --- */

/* A value where it is defined: how the text calls it, and its name in the model. */
typedef struct definition {
  const char *place, *label, *name;
} definition;

static definition read_definition(bb_array_reader *a) {
  bb_reader *r = a->r;
  definition d = {.place = r->token.start};
  if (r->token.kind == BB_TOKEN_VALUE) {
    d.label = r->token.name;
    bb_read_next(r);
    if (bb_read_accept(r, "as")) d.name = keep(a, bb_read_name(r, "a name"));
  } else if (bb_read_accept(r, "none")) {
    return d;
  } else {
    d.label = d.name = keep(a, bb_read_name(r, "the name of a value"));
  }
  if (bb_table_find(a->values, d.label, strlen(d.label)) != BB_NONE)
    bb_read_fail(r, d.place, "%s is defined twice", d.label);
  return d;
}

static void define(bb_array_reader *a, definition d, uint32_t value) {
  a->array->value[value].name = d.name;
  if (!bb_table_add(a->values, d.label, strlen(d.label), value))
    bb_read_fail(a->r, d.place, "%s is defined twice", d.label);
}

uint32_t bb_array_read_value(bb_array_reader *a) {
  bb_reader *r = a->r;
  bool known = r->token.kind == BB_TOKEN_VALUE || bb_read_is_name(r);
  if (!known) bb_read_fail_expected(r, "a value");
  uint32_t value = bb_table_find(a->values, r->token.name, r->token.length);
  if (value == BB_NONE) bb_read_fail(r, r->token.start, "there is no value %s", r->token.name);
  bb_read_next(r);
  return value;
}

/* --- types --- */

/* dims [M,H*D,1] */
static void read_factors(bb_array_reader *a, bb_array_value *value) {
  bb_reader *r = a->r;
  bb_arena *arena = r->program->arena;
  if (!bb_read_accept(r, "dims")) return;
  uint32_t *factors = BB_NEW(arena, uint32_t, value->rank);
  const bb_dim **factor = BB_NEW(arena, const bb_dim *, value->rank);
  bb_read_expect(r, "[");
  for (uint32_t i = 0; i < value->rank; i++) {
    if (i) bb_read_expect(r, ",");
    if (r->token.kind == BB_TOKEN_NUMBER) {
      if (bb_read_integer(r) != 1) bb_read_fail(r, r->token.start, "an axis without dims is 1");
      continue;
    }
    bb_read_list list = {0};
    do bb_read_list_add(r, &list, bb_read_dim(r));
    while (bb_read_accept(r, "*"));
    factor[i] = memcpy(BB_NEW(arena, bb_dim, list.count), list.item, list.count * sizeof(bb_dim));
    factors[i] = list.count;
  }
  bb_read_expect(r, "]");
  value->factors = factors;
  value->factor = factor;
}

static bool has_shape(const bb_array_value *value, const bb_shape *shape) {
  bool same = value->dtype == shape->dtype && value->rank == shape->rank;
  for (uint32_t i = 0; same && i < shape->rank; i++) same = value->shape[i] == shape->extent[i];
  return same;
}

/* A type behind a result: must be what the operands give. */
static void check_type(bb_array_reader *a, const char *place, uint32_t result,
                       const bb_shape *shape) {
  bb_array_value *value = &a->array->value[result];
  if (has_shape(value, shape)) return;
  bb_buffer text = {.arena = a->r->scratch};
  bb_writer w = {.out = &text, .program = a->r->program};
  bb_write_shape(&w, value->dtype, value->rank, value->shape);
  bb_read_fail(a->r, place, "the result is %s", text.data);
}

/* --- inputs, constants, outputs --- */

static void read_input(bb_array_reader *a) {
  definition d = read_definition(a);
  bb_array *array = a->array;
  bb_arena *arena = a->r->program->arena;
  if (!d.label) bb_read_fail(a->r, d.place, "an input needs a name");
  bb_read_expect(a->r, ":");
  bb_shape shape = bb_read_shape(a->r);
  uint32_t value = bb_array_value_add(array, d.name, shape.dtype, shape.rank, shape.extent);
  read_factors(a, &array->value[value]);
  array->value[value].is_input = true;
  BB_GROW(arena, array->input, a->input_capacity, (size_t)array->inputs + 1);
  array->input[array->inputs++] = value;
  define(a, d, value);
}

static void read_constant(bb_array_reader *a) {
  definition d = read_definition(a);
  if (!d.label) bb_read_fail(a->r, d.place, "a constant needs a name");
  bb_read_expect(a->r, ":");
  bb_shape shape = bb_read_shape(a->r);
  uint32_t value = bb_array_value_add(a->array, d.name, shape.dtype, shape.rank, shape.extent);
  read_factors(a, &a->array->value[value]);
  if (bb_read_accept(a->r, "=")) {
    size_t bytes;
    const void *data = bb_read_data(a->r, shape.dtype, shape.rank, shape.extent, &bytes);
    a->array->value[value].data = data;
    a->array->value[value].bytes = bytes;
  }
  define(a, d, value);
}

/* --- statements that define results --- */

/* The nodes and values that a builder made bear the node's name. */
static void finish_node(bb_op_text *t, const char *node_name) {
  bb_array *array = t->a->array;
  array->node[array->nodes - 1].name = node_name;
}

static const char *read_node_name(bb_op_text *t, const char *usual) {
  bb_reader *r = t->a->r;
  if (!bb_read_accept(r, "@")) return usual;
  if (bb_read_accept(r, "none")) return NULL;
  return keep(t->a, bb_read_name(r, "the name of a node"));
}

static void add_misc(bb_op_text *t, uint32_t count, const definition *d) {
  bb_reader *r = t->a->r;
  bb_array *array = t->a->array;
  uint32_t *out = BB_NEW(r->scratch, uint32_t, count);
  for (uint32_t i = 0; i < count; i++) {
    out[i] = BB_NONE;
    bb_read_expect(r, ":");
    if (!d[i].label) {
      bb_read_expect(r, "absent");
      continue;
    }
    bb_shape shape = bb_read_shape(r);
    out[i] = bb_array_value_add(array, d[i].name, shape.dtype, shape.rank, shape.extent);
    read_factors(t->a, &array->value[out[i]]);
  }
  uint32_t node = bb_array_node_add(array, BB_A_MISC, NULL, t->nin, t->in, count, out);
  array->node[node].misc = t->misc;
  for (uint32_t i = 0; i < count; i++)
    if (d[i].label) define(t->a, d[i], out[i]);
  finish_node(t, read_node_name(t, d[0].name));
}

/* The types that the text gives of further results, and their names. */
static void define_others(bb_op_text *t, const definition *d) {
  bb_reader *r = t->a->r;
  for (uint32_t i = 1; i < t->results; i++) {
    uint32_t value = t->result[i];
    if (bb_read_accept(r, ":")) {
      const char *place = r->token.start;
      bb_shape shape = bb_read_shape(r);
      check_type(t->a, place, value, &shape);
      read_factors(t->a, &t->a->array->value[value]);
    }
  }
  for (uint32_t i = 1; i < t->results; i++) define(t->a, d[i], t->result[i]);
}

static void add_op(bb_op_text *t, uint32_t count, const definition *d) {
  bb_reader *r = t->a->r;
  const char *place = r->token.start;
  t->name = d[0].name;
  bool needs_shape = t->op == BB_A_RESHAPE || t->op == BB_A_BROADCAST || t->op == BB_A_PAD;
  if (needs_shape) bb_read_expect(r, ":");
  t->has_shape = needs_shape || bb_read_accept(r, ":");
  if (t->has_shape) {
    place = r->token.start;
    t->shape = bb_read_shape(r);
    if (t->op == BB_A_PAD && t->shape.rank <= t->ints[0])
      bb_read_fail(r, place, "a shape without the axis that is padded");
  }
  bb_read_protected(r, t->place, bb_array_build, t);
  if (t->results != count)
    bb_read_fail(r, d[0].place,
                 t->results == 1 ? "this operator has one result" : "it has %u results",
                 t->results);
  if (t->has_shape) check_type(t->a, place, t->result[0], &t->shape);
  read_factors(t->a, &t->a->array->value[t->result[0]]);
  define_others(t, d);
  finish_node(t, read_node_name(t, d[0].name));
  define(t->a, d[0], t->result[0]);
}

static void read_results(bb_array_reader *a, uint32_t count, const definition *d) {
  bb_op_text t = {.a = a};
  bb_array_read_op(&t);
  if (t.op == BB_A_MISC) {
    add_misc(&t, count, d);
    return;
  }
  for (uint32_t i = 0; i < count; i++)
    if (!d[i].label) bb_read_fail(a->r, d[i].place, "a result of this operator has a name");
  add_op(&t, count, d);
}

static void read_definitions(bb_array_reader *a) {
  bb_reader *r = a->r;
  definition *d = NULL;
  uint32_t count = 0, capacity = 0;
  do {
    BB_GROW(r->scratch, d, capacity, (size_t)count + 1);
    d[count++] = read_definition(a);
    if (count > MAX_RESULTS) bb_read_fail(r, d[0].place, "more than %d results", MAX_RESULTS);
  } while (bb_read_accept(r, ","));
  bb_read_expect(r, "=");
  read_results(a, count, d);
}

/* output O, output O = value, or output O = op ... */
static void read_output(bb_array_reader *a) {
  bb_reader *r = a->r;
  const char *place = r->token.start, *name = keep(a, bb_read_name(r, "the name of an output"));
  uint32_t value;
  if (!bb_read_accept(r, "=")) {
    value = bb_table_find(a->values, name, strlen(name));
    if (value == BB_NONE) bb_read_fail(r, place, "there is no value %s", name);
  } else if (r->token.kind == BB_TOKEN_NAME && !bb_name_is_plain(r->token.name)) {
    definition d = {place, name, name};
    read_results(a, 1, &d);
    value = bb_table_find(a->values, name, strlen(name));
  } else {
    value = bb_array_read_value(a);
  }
  bb_array *array = a->array;
  BB_GROW(r->program->arena, array->output, a->output_capacity, (size_t)array->outputs + 1);
  BB_GROW(r->program->arena, array->output_name, a->name_capacity, (size_t)array->outputs + 1);
  array->output_name[array->outputs] = name;
  array->output[array->outputs++] = value;
}

void bb_array_read_statement(bb_array_reader *a) {
  if (bb_read_accept(a->r, "input"))
    read_input(a);
  else if (bb_read_accept(a->r, "constant"))
    read_constant(a);
  else if (bb_read_accept(a->r, "output"))
    read_output(a);
  else
    read_definitions(a);
}
