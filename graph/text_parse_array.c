/* text_parse_array.c - array programs from text.  Shapes of results come from the builders of
 * array/; a type that the text gives is checked against them.
 */
#include "text_form.h"

#include <stdlib.h>
#include <string.h>

struct bb_array_reader {
  bb_reader *r;
  bb_array *array;
  bb_table *values; /* by the text's name: a plain one as it is, others with their sign */
  uint32_t input_capacity, output_capacity, name_capacity;
};

enum { MAX_RANK = 32, MAX_RESULTS = 1000 };

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

static uint32_t read_value(bb_array_reader *a) {
  bb_reader *r = a->r;
  bool known = r->token.kind == BB_TOKEN_VALUE || bb_read_is_name(r);
  if (!known) bb_read_fail_expected(r, "a value");
  uint32_t value = bb_table_find(a->values, r->token.name, r->token.length);
  if (value == BB_NONE) bb_read_fail(r, r->token.start, "there is no value %s", r->token.name);
  bb_read_next(r);
  return value;
}

static uint32_t read_operand(void *user, bb_reader *r) {
  return bb_read_accept(r, "none") ? BB_NONE : read_value(user);
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

/* --- ops: first what the text says, then one call of a builder --- */

typedef struct op_text {
  bb_array_reader *a;
  const char *place, *name;
  bb_array_op op;
  uint32_t nin;
  uint32_t *in;
  const bb_expr *expr;
  const bb_monoid *monoid;
  uint32_t count; /* axes or perm */
  int64_t ints[MAX_RANK];
  int64_t axis, start, step, length;
  bool keep, exclusive, reverse;
  int64_t labels[3][MAX_RANK];
  uint32_t rank[3];
  const bb_misc *misc;
  bool has_shape;
  bb_shape shape;
  uint32_t result;
} op_text;

static void build(bb_context *ctx, void *argument) {
  (void)ctx;
  op_text *t = argument;
  bb_array *array = t->a->array;
  switch (t->op) {
  case BB_A_ELEMENTWISE:
    t->result = bb_array_elementwise(array, t->name, t->expr, t->nin, t->in);
    break;
  case BB_A_CONTRACT:
    t->result = bb_array_contract(array, t->name, t->in[0], t->in[1], t->labels[0], t->labels[1],
                                  t->rank[2], t->labels[2]);
    break;
  case BB_A_REDUCE:
    t->result = bb_array_reduce(array, t->name, t->monoid, t->in[0], t->count, t->ints, t->keep);
    break;
  case BB_A_ARGREDUCE:
    t->result =
        bb_array_argreduce(array, t->name, t->monoid, t->in[0], (uint32_t)t->ints[0], t->keep);
    break;
  case BB_A_SCAN:
    t->result = bb_array_scan(array, t->name, t->monoid, t->in[0], (uint32_t)t->ints[0],
                              t->exclusive, t->reverse);
    break;
  case BB_A_RESHAPE:
    t->result = bb_array_reshape(array, t->name, t->in[0], t->shape.rank, t->shape.extent);
    break;
  case BB_A_BROADCAST:
    t->result = bb_array_broadcast(array, t->name, t->in[0], t->shape.rank, t->shape.extent);
    break;
  case BB_A_TRANSPOSE: t->result = bb_array_transpose(array, t->name, t->in[0], t->ints); break;
  case BB_A_SLICE:
    t->result = bb_array_slice(array, t->name, t->in[0], (uint32_t)t->ints[0], t->start, t->step,
                               t->length);
    break;
  case BB_A_CONCAT:
    t->result = bb_array_concat(array, t->name, t->nin, t->in, (uint32_t)t->ints[0]);
    break;
  default: break;
  }
}

static uint32_t rank_of(const op_text *t) {
  return t->a->array->value[t->in[0]].rank;
}

/* An axis of the first operand, counted from the last if negative. */
static int64_t read_axis(op_text *t) {
  bb_reader *r = t->a->r;
  const char *place = r->token.start;
  int64_t axis = bb_read_integer(r), rank = rank_of(t);
  if (axis < -rank || axis >= rank)
    bb_read_fail(r, place, "the operand has %lld axes", (long long)rank);
  return axis < 0 ? axis + rank : axis;
}

static void read_int_list(op_text *t, bool axes) {
  bb_reader *r = t->a->r;
  bb_read_expect(r, "[");
  while (!bb_read_accept(r, "]")) {
    if (t->count) bb_read_expect(r, ",");
    if (t->count == MAX_RANK) bb_read_fail(r, r->token.start, "more than %d axes", MAX_RANK);
    int64_t value = axes ? read_axis(t) : bb_read_integer(r);
    t->ints[t->count++] = value;
  }
}

/* Options are words with or without a value, each behind a comma. */
static void read_option(op_text *t) {
  bb_reader *r = t->a->r;
  const char *place = r->token.start;
  bool fold = t->op == BB_A_REDUCE || t->op == BB_A_ARGREDUCE;
  bool one_axis = t->op == BB_A_SCAN || t->op == BB_A_SLICE || t->op == BB_A_CONCAT;
  if (fold && bb_read_accept(r, "keep")) {
    t->keep = true;
  } else if (t->op == BB_A_SCAN && bb_read_accept(r, "exclusive")) {
    t->exclusive = true;
  } else if (t->op == BB_A_SCAN && bb_read_accept(r, "reverse")) {
    t->reverse = true;
  } else if ((fold || one_axis) && bb_read_accept(r, "axis")) {
    bb_read_expect(r, "=");
    if (t->count) bb_read_fail(r, place, "the axes are given twice");
    t->ints[t->count++] = read_axis(t);
  } else if (t->op == BB_A_REDUCE && bb_read_accept(r, "axes")) {
    bb_read_expect(r, "=");
    if (t->count) bb_read_fail(r, place, "the axes are given twice");
    read_int_list(t, true);
  } else if (t->op == BB_A_TRANSPOSE && bb_read_accept(r, "perm")) {
    bb_read_expect(r, "=");
    t->count = 0;
    read_int_list(t, true);
  } else if (t->op == BB_A_SLICE) {
    int64_t *to = bb_read_accept(r, "start")    ? &t->start
                  : bb_read_accept(r, "by")     ? &t->step
                  : bb_read_accept(r, "length") ? &t->length
                                                : NULL;
    if (!to) bb_read_fail(r, place, "expected axis, start, by or length");
    bb_read_expect(r, "=");
    *to = bb_read_integer(r);
  } else {
    bb_read_fail(r, place, "not an option of this operator");
  }
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static void check_options(op_text *t) {
  bb_reader *r = t->a->r;
  bool one_axis =
      t->op == BB_A_ARGREDUCE || t->op == BB_A_SCAN || t->op == BB_A_SLICE || t->op == BB_A_CONCAT;
  if (one_axis && t->count != 1) bb_read_fail(r, t->place, "the axis is missing");
  if (t->op == BB_A_TRANSPOSE && t->count != rank_of(t))
    bb_read_fail(r, t->place, "perm must name all %u axes", rank_of(t));
  if (t->op != BB_A_CONCAT && t->nin != 1) bb_read_fail(r, t->place, "takes one operand");
  if (t->op == BB_A_REDUCE) {
    if (t->count) qsort(t->ints, t->count, sizeof *t->ints, by_value);
    for (uint32_t i = 1; i < t->count; i++)
      if (t->ints[i] == t->ints[i - 1]) bb_read_fail(r, t->place, "an axis is named twice");
  }
}

static bool is_option(const bb_reader *r) {
  static const char *const words[] = {"axis", "axes", "keep",   "exclusive", "reverse",
                                      "perm", "by",   "length", "start"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (bb_read_is(r, words[i])) return true;
  return false;
}

/* (operands, options) */
static void read_operands(op_text *t) {
  bb_reader *r = t->a->r;
  bb_read_list list = {0};
  bb_read_expect(r, "(");
  while (!bb_read_is(r, ")")) {
    if (list.count || t->count) bb_read_expect(r, ",");
    if (is_option(r)) break;
    bb_read_list_add(r, &list, read_value(t->a));
  }
  t->nin = list.count;
  t->in = list.item;
  if (!t->nin) bb_read_fail(r, t->place, "no operand");
  while (!bb_read_is(r, ")")) {
    read_option(t);
    if (!bb_read_is(r, ")")) bb_read_expect(r, ",");
  }
  bb_read_next(r);
  check_options(t);
}

/* --- elementwise --- */

typedef struct operand_names {
  bb_array_reader *a;
  bb_read_list list; /* values, by operand */
  bool listed;       /* the text listed them: $0, $1, ... */
  bb_table *operand; /* by the bytes of a value's number: which operand it is */
} operand_names;

static const bb_expr *argument(operand_names *names, uint32_t operand) {
  const bb_array_value *value = &names->a->array->value[names->list.item[operand]];
  return bb_expr_arg(names->a->r->program, value->dtype, operand);
}

static const bb_expr *look_up(void *user, const char *name, size_t length) {
  operand_names *names = user;
  bb_array_reader *a = names->a;
  if (length > 1 && length < 8 && *name == '$' && names->listed) {
    uint32_t number = 0;
    for (size_t i = 1; i < length; i++) {
      if (name[i] < '0' || name[i] > '9') return NULL;
      number = number * 10 + (uint32_t)(name[i] - '0');
    }
    return number < names->list.count ? argument(names, number) : NULL;
  }
  uint32_t value = bb_table_find(a->values, name, length);
  if (value == BB_NONE) {
    const char *symbol = bb_arena_text(a->r->scratch, name, length);
    uint32_t index = bb_symbol_find(a->r->program, symbol);
    return index == UINT32_MAX ? NULL : bb_expr_symbol(a->r->program, index);
  }
  uint32_t operand = bb_table_find(names->operand, (const char *)&value, sizeof value);
  if (operand == BB_NONE) {
    if (names->listed) return NULL;
    operand = names->list.count;
    bb_read_list_add(a->r, &names->list, value);
    bb_table_add(names->operand, (const char *)&value, sizeof value, operand);
  }
  return argument(names, operand);
}

static void read_elementwise(op_text *t) {
  bb_reader *r = t->a->r;
  operand_names names = {.a = t->a, .operand = bb_table_create(r->scratch)};
  if (bb_read_accept(r, "of")) {
    names.listed = true;
    bb_read_expect(r, "(");
    while (!bb_read_is(r, ")")) {
      if (names.list.count) bb_read_expect(r, ",");
      bb_read_list_add(r, &names.list, read_value(t->a));
    }
    bb_read_next(r);
  }
  t->expr = bb_read_expr(r, look_up, &names);
  t->nin = names.list.count;
  t->in = names.list.item;
}

/* --- contract --- */

static void read_labels(op_text *t, bb_table *labels, uint32_t *count, int side, uint32_t rank) {
  bb_reader *r = t->a->r;
  const char *place = r->token.start;
  uint32_t n = 0;
  bb_read_expect(r, "[");
  while (!bb_read_accept(r, "]")) {
    if (n) bb_read_expect(r, ",");
    if (n == MAX_RANK) bb_read_fail(r, place, "more than %d axes", MAX_RANK);
    const char *name = bb_read_name(r, "a label");
    if (bb_table_add(labels, name, strlen(name), *count)) ++*count;
    t->labels[side][n++] = bb_table_find(labels, name, strlen(name));
  }
  if (rank != BB_NONE && n != rank) bb_read_fail(r, place, "the operand has %u axes", rank);
  t->rank[side] = n;
}

/* (a[m,k], b[n,k] -> [m,n]) */
static void read_contract(op_text *t) {
  bb_reader *r = t->a->r;
  bb_table *labels = bb_table_create(r->scratch);
  uint32_t count = 0;
  t->nin = 2;
  t->in = BB_NEW(r->scratch, uint32_t, 2);
  bb_read_expect(r, "(");
  for (int side = 0; side < 2; side++) {
    if (side) bb_read_expect(r, ",");
    t->in[side] = read_value(t->a);
    read_labels(t, labels, &count, side, t->a->array->value[t->in[side]].rank);
  }
  bb_read_expect(r, "->");
  read_labels(t, labels, &count, 2, BB_NONE);
  bb_read_expect(r, ")");
}

/* --- statements that define results --- */

static void read_misc(op_text *t) {
  bb_read_list list = {0};
  t->misc = bb_read_misc(t->a->r, read_operand, t->a, &list);
  t->nin = list.count;
  t->in = list.item;
}

static void read_op(op_text *t) {
  static const char *const name[] = {
#define BB_ARRAY_OP(id, text, description) [BB_A_##id] = text,
#include "array/array.def"
#undef BB_ARRAY_OP
  };
  bb_reader *r = t->a->r;
  t->place = r->token.start;
  t->step = 1;
  while (t->op < BB_ARRAY_OP_COUNT && !bb_read_is(r, name[t->op])) t->op++;
  if (t->op == BB_ARRAY_OP_COUNT) bb_read_fail_expected(r, "an array operator");
  bb_read_next(r);
  switch (t->op) {
  case BB_A_ELEMENTWISE: read_elementwise(t); return;
  case BB_A_CONTRACT: read_contract(t); return;
  case BB_A_MISC: read_misc(t); return;
  case BB_A_REDUCE:
  case BB_A_ARGREDUCE:
  case BB_A_SCAN: t->monoid = bb_read_monoid(r); break;
  default: break;
  }
  read_operands(t);
}

/* The nodes and values that a builder made bear the node's name. */
static void finish_node(op_text *t, const char *node_name) {
  bb_array *array = t->a->array;
  array->node[array->nodes - 1].name = node_name;
}

static const char *read_node_name(op_text *t, const char *usual) {
  bb_reader *r = t->a->r;
  if (!bb_read_accept(r, "@")) return usual;
  if (bb_read_accept(r, "none")) return NULL;
  return keep(t->a, bb_read_name(r, "the name of a node"));
}

static void add_misc(op_text *t, uint32_t count, const definition *d) {
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

static void add_op(op_text *t, definition d) {
  bb_reader *r = t->a->r;
  const char *place = r->token.start;
  t->name = d.name;
  bool needs_shape = t->op == BB_A_RESHAPE || t->op == BB_A_BROADCAST;
  if (needs_shape) bb_read_expect(r, ":");
  t->has_shape = needs_shape || bb_read_accept(r, ":");
  if (t->has_shape) {
    place = r->token.start;
    t->shape = bb_read_shape(r);
  }
  bb_read_protected(r, t->place, build, t);
  if (t->has_shape) check_type(t->a, place, t->result, &t->shape);
  read_factors(t->a, &t->a->array->value[t->result]);
  finish_node(t, read_node_name(t, d.name));
  define(t->a, d, t->result);
}

static void read_results(bb_array_reader *a, uint32_t count, const definition *d) {
  op_text t = {.a = a};
  read_op(&t);
  if (t.op == BB_A_MISC) {
    add_misc(&t, count, d);
    return;
  }
  if (count != 1 || !d[0].label) bb_read_fail(a->r, d[0].place, "this operator has one result");
  add_op(&t, d[0]);
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
    value = read_value(a);
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
