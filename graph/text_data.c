/* text_data.c - constants in text: numbers inline, or a place in a data file. */
#include "text_form.h"
#include "text_number.h"
#include "interp/interp.h"

#include <math.h>
#include <string.h>

/* Up to so many bytes a constant is printed in full even where there is a data file. */
enum { INLINE_BYTES = 256 };

bool bb_data_is_large(size_t bytes) {
  return bytes > INLINE_BYTES;
}

/* --- writing --- */

/* The element's bytes as an unsigned number: the hexadecimal form. */
static uint64_t bits_of(bb_dtype dtype, const void *element) {
  const unsigned char *byte = element;
  uint64_t bits = 0;
  for (uint32_t i = bb_dtype_bytes(dtype); i-- > 0;) bits = bits << 8 | byte[i];
  return bits;
}

static void print_integer(bb_buffer *out, bb_dtype dtype, const void *element) {
  uint64_t bits = bits_of(dtype, element);
  if (dtype == BB_I64)
    bb_put(out, "%lld", (long long)bits);
  else if (dtype == BB_I32)
    bb_put(out, "%d", (int32_t)bits);
  else if (bb_dtype_is_stored(dtype))
    bb_put(out, "%.0f", bb_dtype_wrap(dtype, (double)bits));
  else
    bb_put(out, bits > 1 ? "0x%02x" : "%u", (unsigned)bits);
}

void bb_data_print(bb_buffer *out, bb_dtype dtype, const void *element) {
  if (!bb_dtype_is_float(dtype)) {
    print_integer(out, dtype, element);
    return;
  }
  double value;
  unsigned char back[8] = {0};
  bb_interp_load(dtype, element, 1, &value);
  if (isnan(value)) value = NAN;
  bb_interp_store(dtype, &value, 1, back);
  if (memcmp(back, element, bb_dtype_bytes(dtype)) == 0)
    bb_put_number(out, value, dtype);
  else
    bb_put(out, "0x%llx", (unsigned long long)bits_of(dtype, element));
}

void bb_write_data(bb_writer *w, bb_dtype dtype, const void *data, size_t bytes) {
  if (w->data_name && bb_data_is_large(bytes)) {
    bb_put(w->out, "file(");
    bb_put_quoted(w->out, w->data_name);
    bb_put(w->out, ", %llu, %zu)", (unsigned long long)w->data_offset, bytes);
    w->data_offset += (bytes + BB_DATA_ALIGN - 1) / BB_DATA_ALIGN * BB_DATA_ALIGN;
    return;
  }
  const char *at = data;
  uint32_t size = bb_dtype_bytes(dtype);
  bb_put(w->out, "[");
  for (size_t i = 0; i < bytes / size; i++) {
    if (i) bb_put(w->out, i % 16 ? ", " : ",\n  ");
    bb_data_print(w->out, dtype, at + i * size);
  }
  bb_put(w->out, "]");
}

/* --- reading --- */

static uint64_t read_bits(bb_reader *r, bb_dtype dtype) {
  uint64_t bits = 0;
  uint32_t digits = 0;
  for (const char *at = r->token.digits + 2; at < r->token.digits_end; at++, digits++) {
    char c = *at;
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 || digits >= 2 * bb_dtype_bytes(dtype))
      bb_read_fail(r, r->token.start, "the bits of %s are up to %u hexadecimal digits",
                   bb_dtype_name(dtype), 2 * bb_dtype_bytes(dtype));
    bits = bits << 4 | (uint64_t)digit;
  }
  bb_read_next(r);
  return bits;
}

static void read_float(bb_reader *r, bb_dtype dtype, unsigned char *element) {
  const char *start = r->token.start;
  double value = bb_read_double(r), back;
  bb_interp_store(dtype, &value, 1, element);
  bb_interp_load(dtype, element, 1, &back);
  if (isinf(back) && !isinf(value))
    bb_read_fail(r, start, "a number too large for %s", bb_dtype_name(dtype));
}

static void read_element(bb_reader *r, bb_dtype dtype, unsigned char *element) {
  const bb_token *t = &r->token;
  uint64_t bits;
  if (t->kind == BB_TOKEN_NUMBER && t->digits_end - t->digits > 2 && t->digits[1] == 'x') {
    bits = read_bits(r, dtype);
  } else if (bb_dtype_is_float(dtype)) {
    read_float(r, dtype, element);
    return;
  } else {
    const char *start = t->start;
    int64_t value = bb_read_integer(r);
    if (dtype == BB_BOOL && (value < 0 || value > 1)) bb_read_fail(r, start, "a bool is 0 or 1");
    if (dtype == BB_I32 && value != (int32_t)value)
      bb_read_fail(r, start, "a number too large for i32");
    if (bb_dtype_is_stored(dtype) && (double)value != bb_dtype_wrap(dtype, (double)value))
      bb_read_fail(r, start, "a number too large for %s", bb_dtype_name(dtype));
    bits = (uint64_t)value;
  }
  for (uint32_t i = 0; i < bb_dtype_bytes(dtype); i++) element[i] = (unsigned char)(bits >> 8 * i);
}

/* [1, 2, ...]: as many as `count` says.  Memory grows with what is read, not with the claim. */
static const void *read_list(bb_reader *r, bb_dtype dtype, uint64_t count) {
  const char *start = r->token.start;
  uint32_t size = bb_dtype_bytes(dtype), capacity = 0;
  unsigned char *data = NULL;
  uint64_t n = 0;
  bb_read_expect(r, "[");
  while (!bb_read_is(r, "]")) {
    if (n) bb_read_expect(r, ",");
    BB_GROW(r->scratch, data, capacity, (n + 1) * size);
    read_element(r, dtype, data + n++ * size);
  }
  bb_read_next(r);
  if (n != count)
    bb_read_fail(r, start, "%llu elements where the shape has %llu", (unsigned long long)n,
                 (unsigned long long)count);
  void *copy = bb_arena_alloc(r->program->arena, (size_t)n * size);
  if (n) memcpy(copy, data, (size_t)n * size);
  return copy;
}

/* A data file lies beside the text or below it: no absolute path, no way up. */
static const char *data_path(bb_reader *r, const char *place, const char *name) {
  bool up = strncmp(name, "../", 3) == 0 || strstr(name, "/../") || strcmp(name, "..") == 0;
  size_t length = strlen(name);
  up |= length > 3 && strcmp(name + length - 3, "/..") == 0;
  if (up || *name == '/' || !*name)
    bb_read_fail(r, place, "a data file must lie beside the text, not at \"%s\"", name);
  const char *slash = strrchr(r->path, '/');
  int folder = slash ? (int)(slash - r->path) + 1 : 0;
  return bb_arena_printf(r->scratch, "%.*s%s", folder, r->path, name);
}

typedef struct mapping {
  bb_reader *r;
  const char *path;
  uint64_t offset, length;
  const void *data;
} mapping;

static void map_file(bb_context *ctx, void *argument) {
  (void)ctx;
  mapping *m = argument;
  m->data = bb_program_map_file(m->r->program, m->path, m->offset, m->length);
}

/* file("name", offset, length) */
static const void *read_file(bb_reader *r, uint64_t bytes) {
  const char *start = r->token.start;
  bb_read_expect(r, "(");
  const char *place = r->token.start, *name = bb_read_name(r, "the name of a data file");
  mapping m = {.r = r, .path = data_path(r, place, name)};
  bb_read_expect(r, ",");
  int64_t offset = bb_read_integer(r);
  bb_read_expect(r, ",");
  int64_t length = bb_read_integer(r);
  bb_read_expect(r, ")");
  if (offset < 0 || length < 0 || (uint64_t)length != bytes)
    bb_read_fail(r, start, "the shape has %llu bytes", (unsigned long long)bytes);
  m.offset = (uint64_t)offset;
  m.length = (uint64_t)length;
  bb_read_protected(r, start, map_file, &m);
  return m.data;
}

const void *bb_read_data(bb_reader *r, bb_dtype dtype, uint32_t rank, const bb_extent *const *shape,
                         size_t *bytes) {
  uint64_t count = 1;
  bool empty = false, large = false;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t extent = bb_extent_value(shape[i]);
    if (extent < 0) bb_read_fail(r, r->token.start, "a constant's shape cannot have symbols");
    empty |= extent == 0;
    large |= extent && __builtin_mul_overflow(count, (uint64_t)extent, &count);
  }
  if (empty) count = 0;
  if (!empty && (large || count > PTRDIFF_MAX / 8))
    bb_read_fail(r, r->token.start, "a constant too large");
  *bytes = (size_t)count * bb_dtype_bytes(dtype);
  if (bb_read_accept(r, "file")) return read_file(r, *bytes);
  return read_list(r, dtype, count);
}
