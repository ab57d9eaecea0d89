/* model.c - ONNX models on the wire: every field is a tag, then a varint, four bytes or a length
 * and bytes.  The numbers are those of onnx.proto.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

/* --- the wire format --- */

static void varint(bb_buffer *out, uint64_t value) {
  uint8_t bytes[10];
  size_t n = 0;
  do {
    bytes[n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value);
  bb_put_bytes(out, (const char *)bytes, n);
}

static void put_int(bb_buffer *out, uint32_t field, int64_t value) {
  varint(out, field << 3);
  varint(out, (uint64_t)value);
}

static void put_bytes(bb_buffer *out, uint32_t field, const void *bytes, size_t length) {
  varint(out, field << 3 | 2);
  varint(out, length);
  bb_put_bytes(out, bytes, length);
}

static void put_text(bb_buffer *out, uint32_t field, const char *text) {
  put_bytes(out, field, text, strlen(text));
}

static void put_message(bb_buffer *out, uint32_t field, const bb_buffer *message) {
  put_bytes(out, field, message->data ? message->data : "", message->length);
}

static void put_float(bb_buffer *out, uint32_t field, float value) {
  varint(out, field << 3 | 5);
  bb_put_bytes(out, (const char *)&value, sizeof value);
}

/* --- names and shapes --- */

model model_start(bb_arena *arena) {
  return (model){.arena = arena, .graph = {.arena = arena}};
}

const char *model_name(model *m) {
  return bb_arena_printf(m->arena, "v%u", m->names++);
}

static void put_dims(bb_buffer *shape, bb_arena *arena, const char *text) {
  while (*text) {
    size_t length = strcspn(text, ",");
    bb_buffer dim = {.arena = arena};
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text + length)
      put_int(&dim, 1, value);
    else
      put_bytes(&dim, 2, text, length);
    put_message(shape, 1, &dim);
    text += length;
    if (*text == ',') text++;
  }
}

static void put_value(model *m, uint32_t field, const char *name, int dtype, const char *dims) {
  bb_buffer shape = {.arena = m->arena}, tensor = {.arena = m->arena};
  bb_buffer type = {.arena = m->arena}, value = {.arena = m->arena};
  put_dims(&shape, m->arena, dims);
  put_int(&tensor, 1, dtype);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_text(&value, 1, name);
  put_message(&value, 2, &type);
  put_message(&m->graph, field, &value);
}

void model_input(model *m, const char *name, int dtype, const char *shape) {
  put_value(m, 11, name, dtype, shape);
}

void model_output(model *m, const char *name, int dtype, const char *shape) {
  put_value(m, 12, name, dtype, shape);
}

/* --- initializers --- */

static const char *put_tensor(model *m, int dtype, uint32_t rank, const int64_t *shape,
                              const void *data, size_t element) {
  const char *name = model_name(m);
  bb_buffer tensor = {.arena = m->arena};
  size_t count = 1;
  for (uint32_t i = 0; i < rank; i++) {
    put_int(&tensor, 1, shape[i]);
    count *= (size_t)shape[i];
  }
  put_int(&tensor, 2, dtype);
  put_text(&tensor, 8, name);
  put_bytes(&tensor, 9, data, count * element);
  put_message(&m->graph, 5, &tensor);
  return name;
}

const char *model_floats(model *m, uint32_t rank, const int64_t *shape, const float *data) {
  return put_tensor(m, MODEL_FLOAT, rank, shape, data, sizeof *data);
}

const char *model_ints(model *m, uint32_t count, const int64_t *data) {
  int64_t shape = count;
  return put_tensor(m, MODEL_INT64, 1, &shape, data, sizeof *data);
}

/* --- nodes --- */

enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_INTS = 7 };

/* One "name=value" of `length` characters. */
static void put_attribute(bb_buffer *node, bb_arena *arena, const char *text, size_t length) {
  bb_buffer attribute = {.arena = arena};
  const char *value = memchr(text, '=', length);
  put_bytes(&attribute, 1, text, (size_t)(value - text));
  value++;
  size_t rest = length - (size_t)(value - text);
  if (memchr(value, ',', rest)) {
    for (const char *p = value; p < text + length;) {
      char *end;
      put_int(&attribute, 8, strtol(p, &end, 10));
      p = end + 1;
    }
    put_int(&attribute, 20, ATTRIBUTE_INTS);
  } else if (text[length - 1] == 'f') {
    put_float(&attribute, 2, strtof(value, NULL));
    put_int(&attribute, 20, ATTRIBUTE_FLOAT);
  } else {
    put_int(&attribute, 3, strtol(value, NULL, 10));
    put_int(&attribute, 20, ATTRIBUTE_INT);
  }
  put_message(node, 5, &attribute);
}

void model_add(model *m, const model_node *node) {
  bb_buffer out = {.arena = m->arena};
  for (uint32_t i = 0; i < node->nin; i++) put_text(&out, 1, node->in[i]);
  for (uint32_t i = 0; i < node->nout; i++) put_text(&out, 2, node->out[i]);
  put_text(&out, 3, bb_arena_printf(m->arena, "%s_%s", node->op, node->out[0]));
  put_text(&out, 4, node->op);
  for (const char *p = node->attributes ? node->attributes : ""; *p;) {
    size_t length = strcspn(p, " ");
    put_attribute(&out, m->arena, p, length);
    p += length + (p[length] == ' ');
  }
  put_message(&m->graph, 1, &out);
}

const char *model_op(model *m, const char *op, const char *attributes, const char *a, const char *b,
                     const char *c) {
  model_node node = {.op = op, .attributes = attributes, .nout = 1, .in = {a, b, c}};
  while (node.nin < 3 && node.in[node.nin]) node.nin++;
  node.out[0] = model_name(m);
  model_add(m, &node);
  return node.out[0];
}

bb_buffer model_finish(model *m, int64_t opset) {
  bb_buffer import = {.arena = m->arena}, out = {.arena = m->arena};
  put_text(&m->graph, 2, "test");
  put_int(&import, 2, opset);
  put_int(&out, 1, 8);
  put_message(&out, 8, &import);
  put_message(&out, 7, &m->graph);
  return out;
}
