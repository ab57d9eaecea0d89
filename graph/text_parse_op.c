/* text_parse_op.c - the ops of array programs from text: their operands and options.
 */
#include "text_array.h"

#include <stdlib.h>
#include <string.h>

/* How many places windows have where that is no number: their shape tells. */
static const bb_extent *open_length(const bb_op_text *t) {
  bool told = t->length < 0 && t->has_shape && t->shape.rank > t->ints[0];
  return told ? t->shape.extent[t->ints[0]] : NULL;
}

void bb_array_build(bb_context *ctx, void *argument) {
  (void)ctx;
  bb_op_text *t = argument;
  bb_array *array = t->a->array;
  t->results = 1;
  switch (t->op) {
  case BB_A_ELEMENTWISE:
    t->result[0] = bb_array_elementwise(array, t->name, t->expr, t->nin, t->in);
    break;
  case BB_A_CONTRACT:
    t->result[0] = bb_array_contract(array, t->name, t->in[0], t->in[1], t->labels[0], t->labels[1],
                                     t->rank[2], t->labels[2]);
    break;
  case BB_A_REDUCE:
    if (t->monoid->component) {
      t->results = t->monoid->components;
      bb_array_reduce_tuple(array, t->name, t->monoid, t->in, t->count, t->ints, t->keep,
                            t->result);
      break;
    }
    t->result[0] = bb_array_reduce(array, t->name, t->monoid, t->in[0], t->count, t->ints, t->keep);
    break;
  case BB_A_ARGREDUCE:
    t->result[0] =
        bb_array_argreduce(array, t->name, t->monoid, t->in[0], (uint32_t)t->ints[0], t->keep);
    break;
  case BB_A_SCAN:
    if (t->monoid->component) {
      t->results = t->monoid->components;
      bb_array_scan_tuple(array, t->name, t->monoid, t->in, (uint32_t)t->ints[0], t->exclusive,
                          t->reverse, t->result);
      break;
    }
    t->result[0] = bb_array_scan(array, t->name, t->monoid, t->in[0], (uint32_t)t->ints[0],
                                 t->exclusive, t->reverse);
    break;
  case BB_A_RESHAPE:
    t->result[0] = bb_array_reshape(array, t->name, t->in[0], t->shape.rank, t->shape.extent);
    break;
  case BB_A_BROADCAST:
    t->result[0] = bb_array_broadcast(array, t->name, t->in[0], t->shape.rank, t->shape.extent);
    break;
  case BB_A_TRANSPOSE: t->result[0] = bb_array_transpose(array, t->name, t->in[0], t->ints); break;
  case BB_A_SLICE:
    t->result[0] = bb_array_slice(array, t->name, t->in[0], (uint32_t)t->ints[0], t->start, t->step,
                                  t->length);
    break;
  case BB_A_WINDOWS:
    t->result[0] = bb_array_windows_of(
        array, t->name, t->in[0], (uint32_t)t->ints[0],
        &(bb_array_windows){t->start, t->step, t->dilation, t->length, t->taps, open_length(t)});
    break;
  case BB_A_PAD:
    t->result[0] = bb_array_pad(array, t->name, t->in[0], (uint32_t)t->ints[0], t->start, t->expr,
                                t->shape.extent[t->ints[0]]);
    break;
  case BB_A_CONCAT:
    t->result[0] = bb_array_concat(array, t->name, t->nin, t->in, (uint32_t)t->ints[0]);
    break;
  default: break;
  }
}

static uint32_t rank_of(const bb_op_text *t) {
  return t->a->array->value[t->in[0]].rank;
}

/* An axis of the first operand, counted from the last if negative. */
static int64_t read_axis(bb_op_text *t) {
  bb_reader *r = t->a->r;
  const char *place = r->token.start;
  int64_t axis = bb_read_integer(r), rank = rank_of(t);
  if (axis < -rank || axis >= rank)
    bb_read_fail(r, place, "the operand has %lld axes", (long long)rank);
  return axis < 0 ? axis + rank : axis;
}

static void read_int_list(bb_op_text *t, bool axes) {
  bb_reader *r = t->a->r;
  bb_read_expect(r, "[");
  while (!bb_read_accept(r, "]")) {
    if (t->count) bb_read_expect(r, ",");
    if (t->count == BB_TEXT_RANK)
      bb_read_fail(r, r->token.start, "more than %d axes", BB_TEXT_RANK);
    int64_t value = axes ? read_axis(t) : bb_read_integer(r);
    t->ints[t->count++] = value;
  }
}

/* Options are words with or without a value, each behind a comma. */
static void read_option(bb_op_text *t) {
  bb_reader *r = t->a->r;
  const char *place = r->token.start;
  bool fold = t->op == BB_A_REDUCE || t->op == BB_A_ARGREDUCE;
  bool cut = t->op == BB_A_SLICE || t->op == BB_A_WINDOWS || t->op == BB_A_PAD;
  bool one_axis = t->op == BB_A_SCAN || t->op == BB_A_CONCAT || cut;
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
  } else if (t->op == BB_A_PAD && bb_read_accept(r, "fill")) {
    bb_read_expect(r, "=");
    t->expr = bb_expr_const(r->program, t->a->array->value[t->in[0]].dtype, bb_read_double(r));
  } else if (cut) {
    bool windows = t->op == BB_A_WINDOWS;
    bool pad = t->op == BB_A_PAD;
    int64_t *to = bb_read_accept(r, "start")                 ? &t->start
                  : !pad && bb_read_accept(r, "by")          ? &t->step
                  : !pad && bb_read_accept(r, "length")      ? &t->length
                  : windows && bb_read_accept(r, "dilation") ? &t->dilation
                  : windows && bb_read_accept(r, "taps")     ? &t->taps
                                                             : NULL;
    if (!to)
      bb_read_fail(r, place, "expected axis, start%s",
                   windows ? ", by, length, dilation or taps"
                   : pad   ? " or fill"
                           : ", by or length");
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

static void check_options(bb_op_text *t) {
  bb_reader *r = t->a->r;
  bool one_axis = t->op == BB_A_ARGREDUCE || t->op == BB_A_SCAN || t->op == BB_A_SLICE ||
                  t->op == BB_A_WINDOWS || t->op == BB_A_PAD || t->op == BB_A_CONCAT;
  if (one_axis && t->count != 1) bb_read_fail(r, t->place, "the axis is missing");
  if (t->op == BB_A_PAD && !t->expr) bb_read_fail(r, t->place, "the fill is missing");
  if (t->op == BB_A_TRANSPOSE && t->count != rank_of(t))
    bb_read_fail(r, t->place, "perm must name all %u axes", rank_of(t));
  if (t->monoid &&
      (t->op == BB_A_ARGREDUCE) != (t->monoid->components == 2 && !t->monoid->component))
    bb_read_fail(r, t->place, "%s gives %s", t->monoid->name,
                 t->op == BB_A_ARGREDUCE ? "no index" : "an index: argreduce");
  uint32_t nin = t->op == BB_A_REDUCE || t->op == BB_A_SCAN ? t->monoid->components : 1;
  if (t->op != BB_A_CONCAT && t->nin != nin)
    bb_read_fail(r, t->place, nin == 1 ? "takes one operand" : "takes %u operands", nin);
  if (t->op == BB_A_REDUCE) {
    if (t->count) qsort(t->ints, t->count, sizeof *t->ints, by_value);
    for (uint32_t i = 1; i < t->count; i++)
      if (t->ints[i] == t->ints[i - 1]) bb_read_fail(r, t->place, "an axis is named twice");
  }
}

static bool is_option(const bb_reader *r) {
  static const char *const words[] = {"axis", "axes",   "keep",  "exclusive", "reverse", "perm",
                                      "by",   "length", "start", "dilation",  "taps",    "fill"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (bb_read_is(r, words[i])) return true;
  return false;
}

/* (operands, options) */
static void read_operands(bb_op_text *t) {
  bb_reader *r = t->a->r;
  bb_read_list list = {0};
  bb_read_expect(r, "(");
  while (!bb_read_is(r, ")")) {
    if (list.count || t->count) bb_read_expect(r, ",");
    if (is_option(r)) break;
    bb_read_list_add(r, &list, bb_array_read_value(t->a));
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

static void read_elementwise(bb_op_text *t) {
  bb_reader *r = t->a->r;
  operand_names names = {.a = t->a, .operand = bb_table_create(r->scratch)};
  if (bb_read_accept(r, "of")) {
    names.listed = true;
    bb_read_expect(r, "(");
    while (!bb_read_is(r, ")")) {
      if (names.list.count) bb_read_expect(r, ",");
      bb_read_list_add(r, &names.list, bb_array_read_value(t->a));
    }
    bb_read_next(r);
  }
  t->expr = bb_read_expr(r, look_up, &names);
  t->nin = names.list.count;
  t->in = names.list.item;
}

/* --- contract --- */

static void read_labels(bb_op_text *t, bb_table *labels, uint32_t *count, int side, uint32_t rank) {
  bb_reader *r = t->a->r;
  const char *place = r->token.start;
  uint32_t n = 0;
  bb_read_expect(r, "[");
  while (!bb_read_accept(r, "]")) {
    if (n) bb_read_expect(r, ",");
    if (n == BB_TEXT_RANK) bb_read_fail(r, place, "more than %d axes", BB_TEXT_RANK);
    const char *name = bb_read_name(r, "a label");
    if (bb_table_add(labels, name, strlen(name), *count)) ++*count;
    t->labels[side][n++] = bb_table_find(labels, name, strlen(name));
  }
  if (rank != BB_NONE && n != rank) bb_read_fail(r, place, "the operand has %u axes", rank);
  t->rank[side] = n;
}

/* (a[m,k], b[n,k] -> [m,n]) */
static void read_contract(bb_op_text *t) {
  bb_reader *r = t->a->r;
  bb_table *labels = bb_table_create(r->scratch);
  uint32_t count = 0;
  t->nin = 2;
  t->in = BB_NEW(r->scratch, uint32_t, 2);
  bb_read_expect(r, "(");
  for (int side = 0; side < 2; side++) {
    if (side) bb_read_expect(r, ",");
    t->in[side] = bb_array_read_value(t->a);
    read_labels(t, labels, &count, side, t->a->array->value[t->in[side]].rank);
  }
  bb_read_expect(r, "->");
  read_labels(t, labels, &count, 2, BB_NONE);
  bb_read_expect(r, ")");
}

/* --- any op --- */

static uint32_t read_operand(void *user, bb_reader *r) {
  return bb_read_accept(r, "none") ? BB_NONE : bb_array_read_value(user);
}

static void read_misc(bb_op_text *t) {
  bb_read_list list = {0};
  t->misc = bb_read_misc(t->a->r, read_operand, t->a, &list);
  t->nin = list.count;
  t->in = list.item;
}

void bb_array_read_op(bb_op_text *t) {
  static const char *const name[] = {
#define BB_ARRAY_OP(id, text, description) [BB_A_##id] = text,
#include "array/array.def"
#undef BB_ARRAY_OP
  };
  bb_reader *r = t->a->r;
  t->place = r->token.start;
  t->step = t->dilation = t->taps = 1;
  t->length = -1;
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
