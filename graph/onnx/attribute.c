/* attribute.c - reading the attributes of a node with their types checked. */
#include "import.h"
#include "scope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Onnx__AttributeProto *named(size_t count, Onnx__AttributeProto *const *list,
                                         const char *name) {
  for (size_t i = 0; i < count; i++)
    if (list[i]->name && strcmp(list[i]->name, name) == 0) return list[i];
  return NULL;
}

/* Follows references outward: an attribute of a function's body may name one of the function, whose
 * call may stand in another function's body. */
static const Onnx__AttributeProto *resolve(const bb_onnx_frame *frame,
                                           const Onnx__AttributeProto *attribute) {
  while (attribute && attribute->ref_attr_name && attribute->ref_attr_name[0]) {
    while (frame && !frame->call) frame = frame->outer; /* a branch sees its function's */
    if (!frame) return NULL;
    const char *name = attribute->ref_attr_name;
    const Onnx__AttributeProto *given =
        named(frame->call->proto->n_attribute, frame->call->proto->attribute, name);
    attribute = given ? given : named(frame->defaults, frame->fallback, name);
    frame = given ? frame->call->frame : NULL;
  }
  return attribute;
}

static const Onnx__AttributeProto *find(const bb_onnx_node *n, const char *name) {
  return resolve(n->frame, named(n->proto->n_attribute, n->proto->attribute, name));
}

/* The type as written, or, in models older than the field, the one field that is filled. */
static Onnx__AttributeProto__AttributeType type_of(const Onnx__AttributeProto *a) {
  if (a->has_type && a->type) return a->type;
  if (a->has_i) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  if (a->has_f) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
  if (a->has_s) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  if (a->t) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
  if (a->g) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
  if (a->n_floats) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
  if (a->n_strings) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
  return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
}

const Onnx__AttributeProto *bb_onnx_attribute(const bb_onnx_node *n, const char *name,
                                              Onnx__AttributeProto__AttributeType type) {
  const Onnx__AttributeProto *a = find(n, name);
  if (a && type_of(a) != type) bb_onnx_refuse(n, "attribute %s has the wrong type", name);
  bool empty = a && ((type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR && !a->t) ||
                     (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH && !a->g));
  if (empty) bb_onnx_refuse(n, "attribute %s has no value", name);
  return a;
}

bool bb_onnx_has(const bb_onnx_node *n, const char *name) {
  return find(n, name) != NULL;
}

int64_t bb_onnx_int(const bb_onnx_node *n, const char *name, int64_t otherwise) {
  const Onnx__AttributeProto *a =
      bb_onnx_attribute(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
  return a ? a->i : otherwise;
}

double bb_onnx_float(const bb_onnx_node *n, const char *name, double otherwise) {
  const Onnx__AttributeProto *a =
      bb_onnx_attribute(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
  return a ? (double)a->f : otherwise;
}

const char *bb_onnx_text(const bb_onnx_node *n, const char *name, const char *otherwise) {
  const Onnx__AttributeProto *a =
      bb_onnx_attribute(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
  return a ? bb_arena_text(n->m->arena, (const char *)a->s.data, a->s.len) : otherwise;
}

const int64_t *bb_onnx_ints(const bb_onnx_node *n, const char *name, uint32_t *count) {
  static const int64_t none = 0;
  const Onnx__AttributeProto *a =
      bb_onnx_attribute(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
  *count = a ? (uint32_t)a->n_ints : 0;
  return !a ? NULL : a->n_ints ? a->ints : &none;
}

const char *const *bb_onnx_texts(const bb_onnx_node *n, const char *name, uint32_t *count) {
  const Onnx__AttributeProto *a =
      bb_onnx_attribute(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
  *count = a ? (uint32_t)a->n_strings : 0;
  if (!a) return NULL;
  const char **text = BB_NEW(n->m->arena, const char *, a->n_strings);
  for (size_t i = 0; i < a->n_strings; i++)
    text[i] = bb_arena_text(n->m->arena, (const char *)a->strings[i].data, a->strings[i].len);
  return text;
}

const float *bb_onnx_floats(const bb_onnx_node *n, const char *name, uint32_t *count) {
  static const float none = 0;
  const Onnx__AttributeProto *a =
      bb_onnx_attribute(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
  *count = a ? (uint32_t)a->n_floats : 0;
  return !a ? NULL : a->n_floats ? a->floats : &none;
}

uint32_t bb_onnx_axis(const bb_onnx_node *n, int64_t axis, uint32_t rank) {
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    bb_onnx_refuse(n, "axis %lld is out of range for rank %u", (long long)axis, rank);
  return (uint32_t)(axis < 0 ? axis + rank : axis);
}

static void copy_attribute(bb_arena *arena, const Onnx__AttributeProto *a, bb_attribute *to) {
  switch (type_of(a)) {
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
    to->kind = BB_ATTR_INT;
    to->i = a->i;
    break;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
    to->kind = BB_ATTR_FLOAT;
    to->f = (double)a->f;
    break;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
    to->kind = BB_ATTR_TEXT;
    to->text = bb_arena_text(arena, (const char *)a->s.data, a->s.len);
    break;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS: {
    double *floats = BB_NEW(arena, double, a->n_floats);
    for (size_t i = 0; i < a->n_floats; i++) floats[i] = a->floats[i];
    to->kind = BB_ATTR_FLOATS;
    to->count = (uint32_t)a->n_floats;
    to->floats = floats;
    break;
  }
  default: {
    int64_t *ints = BB_NEW(arena, int64_t, a->n_ints);
    if (a->n_ints) memcpy(ints, a->ints, a->n_ints * sizeof *ints);
    to->kind = BB_ATTR_INTS;
    to->count = (uint32_t)a->n_ints;
    to->ints = ints;
  }
  }
}

const bb_attribute *bb_onnx_attributes(const bb_onnx_node *n, uint32_t *count) {
  bb_arena *arena = n->m->program->arena;
  bb_attribute *list = BB_NEW(arena, bb_attribute, n->proto->n_attribute);
  *count = 0;
  for (size_t i = 0; i < n->proto->n_attribute; i++) {
    const Onnx__AttributeProto *a = resolve(n->frame, n->proto->attribute[i]);
    const char *name = n->proto->attribute[i]->name;
    if (!a || !name) continue;
    Onnx__AttributeProto__AttributeType type = type_of(a);
    bool plain = type <= ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING ||
                 type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS ||
                 type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    if (!plain) bb_onnx_refuse(n, "attribute %s has a type that its operator does not take", name);
    list[*count].name = bb_arena_text(arena, name, strlen(name));
    copy_attribute(arena, a, &list[(*count)++]);
  }
  return list;
}
