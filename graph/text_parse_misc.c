/* text_parse_misc.c - misc nodes from text: their attributes and the shapes of their ports. */
#include "text_form.h"

#include <string.h>

/* --- attributes --- */

static bool is_float(const bb_reader *r) {
  if (bb_read_is(r, "inf") || bb_read_is(r, "nan")) return true;
  for (const char *at = r->token.digits; at && at < r->token.digits_end; at++)
    if (*at == '.' || *at == 'e' || *at == 'E') return true;
  return false;
}

/* Is the number that comes, perhaps behind a minus, a float? */
static bool float_comes(bb_reader *r) {
  if (!bb_read_is(r, "-")) return is_float(r);
  const char *start = r->token.start;
  bb_read_next(r);
  bool result = is_float(r);
  bb_read_from(r, start);
  return result;
}

static void read_number_list(bb_reader *r, bb_attribute *attribute, bool floats) {
  int64_t *ints = NULL;
  double *doubles = NULL;
  uint32_t capacity = 0;
  bb_read_expect(r, "[");
  while (!bb_read_accept(r, "]")) {
    if (attribute->count) bb_read_expect(r, ",");
    if (attribute->count == 0 && !floats) floats = float_comes(r);
    if (floats) {
      BB_GROW(r->program->arena, doubles, capacity, (size_t)attribute->count + 1);
      doubles[attribute->count++] = bb_read_double(r);
    } else {
      BB_GROW(r->program->arena, ints, capacity, (size_t)attribute->count + 1);
      ints[attribute->count++] = bb_read_integer(r);
    }
  }
  attribute->kind = floats ? BB_ATTR_FLOATS : BB_ATTR_INTS;
  attribute->ints = ints;
  attribute->floats = doubles;
}

static bb_attribute read_attribute(bb_reader *r) {
  bb_attribute attribute = {.name = bb_read_kept(r, bb_read_name(r, "the name of an attribute"))};
  bb_read_expect(r, "=");
  if (r->token.kind == BB_TOKEN_QUOTED) {
    attribute.kind = BB_ATTR_TEXT;
    attribute.text = bb_read_kept(r, bb_read_name(r, "a text"));
  } else if (bb_read_is(r, "[")) {
    read_number_list(r, &attribute, false);
  } else if (bb_read_accept(r, "float")) {
    read_number_list(r, &attribute, true);
  } else if (float_comes(r)) {
    attribute.kind = BB_ATTR_FLOAT;
    attribute.f = bb_read_double(r);
  } else {
    attribute.kind = BB_ATTR_INT;
    attribute.i = bb_read_integer(r);
  }
  return attribute;
}

static void read_attributes(bb_reader *r, bb_misc *misc) {
  bb_attribute *list = NULL;
  uint32_t capacity = 0;
  if (!bb_read_accept(r, "{")) return;
  while (!bb_read_accept(r, "}")) {
    if (misc->count) bb_read_expect(r, ",");
    BB_GROW(r->program->arena, list, capacity, (size_t)misc->count + 1);
    list[misc->count++] = read_attribute(r);
  }
  misc->attribute = list;
}

/* --- ports --- */

static const bb_misc_port *read_ports(bb_reader *r, uint32_t *count) {
  bb_misc_port *list = NULL;
  uint32_t capacity = 0;
  bb_read_expect(r, "(");
  while (!bb_read_accept(r, ")")) {
    if (*count) bb_read_expect(r, ",");
    BB_GROW(r->program->arena, list, capacity, (size_t)*count + 1);
    bb_misc_port *port = &list[(*count)++];
    port->absent = bb_read_accept(r, "absent");
    if (port->absent) continue;
    bb_shape shape = bb_read_shape(r);
    port->dtype = shape.dtype;
    port->rank = shape.rank;
    port->shape = shape.extent;
    if (bb_read_accept(r, "dims")) port->axis = bb_read_dim_list(r, &port->axes);
  }
  return list ? list : BB_NEW(r->program->arena, bb_misc_port, 1);
}

const bb_misc *bb_read_misc(bb_reader *r, bb_read_source *operand, void *user,
                            bb_read_list *operands) {
  bb_misc *misc = BB_NEW(r->program->arena, bb_misc, 1);
  misc->domain = "";
  misc->op = bb_read_kept(r, bb_read_name(r, "the operator of a misc node"));
  if (bb_read_accept(r, ":")) {
    misc->domain = misc->op;
    misc->op = bb_read_kept(r, bb_read_name(r, "the operator of a misc node"));
  }
  misc->version = bb_read_index(r, UINT32_MAX, "the version");
  bb_read_expect(r, "(");
  while (!bb_read_accept(r, ")")) {
    if (operands->count) bb_read_expect(r, ",");
    bb_read_list_add(r, operands, operand(user, r));
  }
  read_attributes(r, misc);
  if (!bb_read_accept(r, "of")) return misc;
  misc->in = read_ports(r, &misc->nin);
  bb_read_expect(r, "->");
  misc->out = read_ports(r, &misc->nout);
  return misc;
}
