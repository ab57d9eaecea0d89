/* wire.c - checks the encoding of a model before protobuf-c builds messages from it.
 *
 * protobuf-c recurses without a limit, cuts strings at NUL, takes any bytes for text and says
 * nothing about where an encoding breaks.  So the bytes are walked once with the generated
 * descriptors; what passes has bounded depth, UTF-8 text without NUL, no singular field twice, and
 * every length inside its message.  What does not is refused with its path: graph.node[3].name.
 */
#include "import.h"

enum { DEPTH_LIMIT = 64, FIELD_LIMIT = 64 };

typedef struct place {
  const struct place *outer;
  const char *field;
  uint32_t index;
  bool repeated;
} place;

typedef struct scanner {
  bb_context *ctx;
  const uint8_t *start;
} scanner;

static void put_place(bb_buffer *out, const place *at) {
  if (!at) return;
  put_place(out, at->outer);
  if (out->length) bb_put(out, ".");
  bb_put(out, "%s", at->field);
  if (at->repeated) bb_put(out, "[%u]", at->index);
}

_Noreturn static void refuse(const scanner *s, const place *at, const uint8_t *p,
                             const char *what) {
  bb_buffer out = {.arena = bb_scratch(s->ctx)};
  put_place(&out, at);
  bb_fail(s->ctx, BB_ERROR_INPUT, "not a readable ONNX model: %s%s%s at byte %zu",
          out.length ? out.data : "", out.length ? ": " : "", what, (size_t)(p - s->start));
}

static uint64_t varint(const scanner *s, const place *at, const uint8_t **p, const uint8_t *end) {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < 70; shift += 7) {
    if (*p == end) refuse(s, at, *p, "cut short");
    uint8_t byte = *(*p)++;
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  refuse(s, at, *p, "a number of more than ten bytes");
}

/* The length of the UTF-8 sequence at p, 0 if there is none. */
static uint32_t sequence(const uint8_t *p, const uint8_t *end) {
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  if (*p < 0x80) return *p != 0;
  uint32_t length = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
  if (*p < 0xc2 || *p > 0xf4 || (size_t)(end - p) < length) return 0;
  uint32_t code = *p & (0xff >> (length + 1));
  for (uint32_t i = 1; i < length; i++) {
    if ((p[i] & 0xc0) != 0x80) return 0;
    code = code << 6 | (p[i] & 0x3f);
  }
  bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[length] || code > 0x10ffff || surrogate ? 0 : length;
}

static void check_text(const scanner *s, const place *at, const uint8_t *p, const uint8_t *end) {
  while (p < end) {
    uint32_t length = sequence(p, end);
    if (!length) refuse(s, at, p, *p ? "text that is not UTF-8" : "text with a zero byte");
    p += length;
  }
}

/* Moves past a value of a wire type without a length; false for the types with one. */
static bool skip_plain(const scanner *s, const place *at, uint32_t wire, const uint8_t **p,
                       const uint8_t *end) {
  size_t size = wire == 1 ? 8 : wire == 5 ? 4 : 0;
  if (wire == 2) return false;
  if (wire == 0) {
    varint(s, at, p, end);
    return true;
  }
  if (!size) refuse(s, at, *p, "a field of unknown encoding");
  if ((size_t)(end - *p) < size) refuse(s, at, *p, "cut short");
  *p += size;
  return true;
}

/* The wire type that a field's type is written with. */
static uint32_t wire_of(const ProtobufCFieldDescriptor *field) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_FLOAT:
  case PROTOBUF_C_TYPE_FIXED32:
  case PROTOBUF_C_TYPE_SFIXED32: return 5;
  case PROTOBUF_C_TYPE_DOUBLE:
  case PROTOBUF_C_TYPE_FIXED64:
  case PROTOBUF_C_TYPE_SFIXED64: return 1;
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_BYTES:
  case PROTOBUF_C_TYPE_MESSAGE: return 2;
  default: return 0;
  }
}

static void scan(const scanner *s, const place *outer, const uint8_t *p, const uint8_t *end,
                 const ProtobufCMessageDescriptor *message, uint32_t depth) {
  uint32_t seen[FIELD_LIMIT] = {0};
  if (depth > DEPTH_LIMIT) refuse(s, outer, p, "messages nested too deeply");
  while (p < end) {
    uint64_t tag = varint(s, outer, &p, end);
    uint32_t wire = tag & 7, number = (uint32_t)(tag >> 3);
    if (!number || tag >> 32) refuse(s, outer, p, "a field number out of range");
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message, number);
    place at = {outer, field ? field->name : "unknown field", number,
                !field || field->label == PROTOBUF_C_LABEL_REPEATED};
    if (field) {
      size_t slot = (size_t)(field - message->fields);
      at.index = slot < FIELD_LIMIT ? seen[slot]++ : 0;
      if (at.index && !at.repeated) refuse(s, &at, p, "a field given twice");
      bool packed = at.repeated && wire == 2;
      if (wire != wire_of(field) && !packed) refuse(s, &at, p, "a value of the wrong type");
    }
    if (skip_plain(s, &at, wire, &p, end)) continue;
    uint64_t length = varint(s, &at, &p, end);
    if (length > (uint64_t)(end - p)) refuse(s, &at, p, "cut short");
    const uint8_t *next = p + length;
    if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
      scan(s, &at, p, next, field->descriptor, depth + 1);
    if (field && field->type == PROTOBUF_C_TYPE_STRING) check_text(s, &at, p, next);
    p = next;
  }
}

void bb_onnx_check_wire(bb_context *ctx, const void *bytes, size_t length,
                        const ProtobufCMessageDescriptor *message) {
  scanner s = {ctx, bytes};
  scan(&s, NULL, bytes, (const uint8_t *)bytes + length, message, 0);
}

static void *allocate(void *arena, size_t size) {
  return bb_arena_alloc(arena, size);
}

/* What protobuf-c gives back stays in the arena until the arena goes. */
static void release(void *arena, void *pointer) {
  (void)arena;
  (void)pointer;
}

void *bb_onnx_unpack(bb_arena *arena, const void *bytes, size_t length,
                     const ProtobufCMessageDescriptor *message) {
  ProtobufCAllocator allocator = {allocate, release, arena};
  bb_context *ctx = bb_arena_context(arena);
  bb_onnx_check_wire(ctx, bytes, length, message);
  void *result = protobuf_c_message_unpack(message, &allocator, length, bytes);
  if (!result)
    bb_fail(ctx, BB_ERROR_INPUT, "not a readable ONNX model: bad %s", message->short_name);
  return result;
}
