/* npy.c - numpy's .npy format: a magic string, a version, a Python dict literal that gives element
 * type, order and shape, then the elements.
 */
#include "npy.h"
#include "interp/interp.h"

#include <string.h>

static const struct {
  const char *descr;
  size_t bytes;
  char kind;
} types[] = {
#define BB_NPY_TYPE(id, descr, bytes, kind) [BB_NPY_##id] = {descr, bytes, kind},
#include "npy_type.def"
#undef BB_NPY_TYPE
};

char bb_npy_kind(bb_npy_type type) {
  return types[type].kind;
}

size_t bb_npy_bytes(bb_npy_type type) {
  return types[type].bytes;
}

const char *bb_npy_name(bb_npy_type type) {
  static const char *const names[] = {
#define BB_NPY_TYPE(id, descr, bytes, kind) [BB_NPY_##id] = bytes == 1 ? "|" descr : "<" descr,
#include "npy_type.def"
#undef BB_NPY_TYPE
  };
  return names[type];
}

/* --- the header --- */

static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
enum { MOST_AXES = 64, MOST_HEADER = 1 << 20 };

bool bb_npy_has_magic(const uint8_t *bytes, size_t size) {
  return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

typedef struct header {
  const char *at, *end;
  const char *error; /* the first one */
  bb_npy_type type;
  bool swapped, fortran;
  uint32_t rank;
  int64_t shape[MOST_AXES];
} header;

static void fail(header *h, const char *what) {
  if (!h->error) h->error = what;
}

static void skip_blanks(header *h) {
  while (h->at < h->end && (*h->at == ' ' || *h->at == '\t' || *h->at == '\n' || *h->at == '\r'))
    h->at++;
}

static bool accept(header *h, char c) {
  skip_blanks(h);
  if (h->error || h->at == h->end || *h->at != c) return false;
  h->at++;
  return true;
}

static void expect(header *h, char c) {
  if (!accept(h, c)) fail(h, "its header is no dict of descr, fortran_order and shape");
}

/* A string literal; without escapes, which numpy never writes here. */
static size_t parse_string(header *h, const char **text) {
  skip_blanks(h);
  char quote = h->at < h->end && *h->at == '"' ? '"' : '\'';
  expect(h, quote);
  const char *begin = h->at;
  while (h->at < h->end && *h->at != quote && *h->at != '\\') h->at++;
  *text = begin;
  size_t length = (size_t)(h->at - begin);
  expect(h, quote);
  return length;
}

static bool accept_word(header *h, const char *word) {
  skip_blanks(h);
  size_t length = strlen(word);
  if (h->error || (size_t)(h->end - h->at) < length || memcmp(h->at, word, length) != 0)
    return false;
  h->at += length;
  return true;
}

static void parse_descr(header *h) {
  const char *text;
  skip_blanks(h);
  if (h->at < h->end && *h->at == '[') {
    fail(h, "it is a structured array");
    return;
  }
  size_t length = parse_string(h, &text);
  if (h->error) return;
  for (uint32_t i = 0; i < BB_NPY_TYPE_COUNT; i++) {
    size_t n = strlen(types[i].descr);
    bool ordered = length == n + 1 && strchr("<>|=", text[0]) && text[0];
    if (!ordered || memcmp(text + 1, types[i].descr, n) != 0) continue;
    h->type = (bb_npy_type)i;
    h->swapped = text[0] == '>';
    return;
  }
  fail(h, "its element type is not one of f8 f4 f2 bf16 (V2) i8 i4 i2 i1 u8 u4 u2 u1 b1");
}

static void parse_extent(header *h) {
  int64_t value = 0;
  skip_blanks(h);
  const char *begin = h->at;
  for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, *h->at - '0', &value))
      fail(h, "its shape is too large");
  if (h->at == begin) fail(h, "its shape is no tuple of extents");
  accept(h, 'L'); /* numbers as Python 2 wrote them */
  if (h->rank == MOST_AXES) fail(h, "it has more than 64 axes");
  if (!h->error) h->shape[h->rank++] = value;
}

static void parse_shape(header *h) {
  expect(h, '(');
  while (!h->error && !accept(h, ')')) {
    parse_extent(h);
    if (accept(h, ',')) continue;
    if (h->rank == 1) fail(h, "its shape is no tuple of extents"); /* (3) is a number */
    expect(h, ')');
    return;
  }
}

static void parse_dict(header *h) {
  enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
  unsigned seen = 0;
  expect(h, '{');
  while (!h->error && !accept(h, '}')) {
    const char *key;
    size_t length = parse_string(h, &key);
    expect(h, ':');
    if (length == 5 && memcmp(key, "descr", 5) == 0) {
      parse_descr(h);
      seen |= DESCR;
    } else if (length == 13 && memcmp(key, "fortran_order", 13) == 0) {
      h->fortran = accept_word(h, "True");
      if (!h->fortran && !accept_word(h, "False")) fail(h, "fortran_order is not True or False");
      seen |= ORDER;
    } else if (length == 5 && memcmp(key, "shape", 5) == 0) {
      h->rank = 0;
      parse_shape(h);
      seen |= SHAPE;
    } else {
      fail(h, "its header has an unknown key");
    }
    if (accept(h, ',')) continue;
    expect(h, '}');
    break;
  }
  skip_blanks(h);
  if (seen != (DESCR | ORDER | SHAPE) || h->at != h->end)
    fail(h, "its header is no dict of descr, fortran_order and shape");
}

/* Where the elements begin; 0 when the header is wrong. */
static size_t parse_header(header *h, const uint8_t *bytes, size_t size) {
  if (!bb_npy_has_magic(bytes, size) || size < 10) {
    fail(h, "it is no .npy file");
    return 0;
  }
  size_t start = bytes[6] == 1 ? 10 : 12, length = bytes[8] | (size_t)bytes[9] << 8;
  if (bytes[6] < 1 || bytes[6] > 3) fail(h, "its .npy version is not 1, 2 or 3");
  if (size < start) fail(h, "it is cut short");
  if (h->error) return 0;
  if (start == 12) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  if (length > MOST_HEADER)
    fail(h, "its header is longer than any numpy writes");
  else if (length > size - start)
    fail(h, "it is cut short");
  if (h->error) return 0;
  h->at = (const char *)bytes + start;
  h->end = h->at + length;
  parse_dict(h);
  return start + length;
}

/* --- the elements --- */

static void swap_bytes(uint8_t *data, size_t count, size_t bytes) {
  for (size_t i = 0; i < count; i++)
    for (size_t a = i * bytes, b = a + bytes - 1; a < b; a++, b--) {
      uint8_t byte = data[a];
      data[a] = data[b];
      data[b] = byte;
    }
}

/* From column-major to row-major: walks the result in order, an odometer gives the source. */
static void copy_fortran(uint8_t *to, const uint8_t *from, const header *h, size_t count,
                         size_t bytes) {
  size_t stride[MOST_AXES], at = 0;
  int64_t index[MOST_AXES] = {0};
  for (uint32_t i = 0; i < h->rank; i++)
    stride[i] = i ? stride[i - 1] * (size_t)h->shape[i - 1] : 1;
  for (size_t n = 0; n < count; n++) {
    memcpy(to + n * bytes, from + at * bytes, bytes);
    for (uint32_t axis = h->rank; axis-- > 0;) {
      at += stride[axis];
      if (++index[axis] < h->shape[axis]) break;
      at -= stride[axis] * (size_t)h->shape[axis];
      index[axis] = 0;
    }
  }
}

static bool count_elements(const header *h, size_t *count) {
  *count = 1;
  bool empty = false;
  for (uint32_t i = 0; i < h->rank; i++) {
    empty |= h->shape[i] == 0;
    if (h->shape[i] && __builtin_mul_overflow(*count, (size_t)h->shape[i], count)) return false;
  }
  if (empty) *count = 0;
  return *count <= SIZE_MAX / 16;
}

const char *bb_npy_parse(bb_arena *arena, const uint8_t *bytes, size_t size, bb_npz_array *array) {
  header h = {0};
  size_t start = parse_header(&h, bytes, size), count;
  if (h.error) return h.error;
  if (!count_elements(&h, &count)) return "its shape is too large";
  size_t element = types[h.type].bytes, have = size - start;
  if (have / element < count) return "it has fewer elements than its shape says";
  if (have != count * element) return "it has more bytes than its shape says";
  uint8_t *data = bb_arena_alloc(arena, have);
  if (h.fortran && h.rank > 1)
    copy_fortran(data, bytes + start, &h, count, element);
  else if (have)
    memcpy(data, bytes + start, have);
  if (h.swapped) swap_bytes(data, count, element);
  int64_t *shape = BB_NEW(arena, int64_t, h.rank);
  if (h.rank) memcpy(shape, h.shape, h.rank * sizeof *shape);
  array->type = h.type;
  array->rank = h.rank;
  array->shape = shape;
  array->count = count;
  array->bytes = have;
  array->data = data;
  return NULL;
}

void bb_npy_print(bb_buffer *out, const bb_npz_array *array) {
  bb_buffer dict = {.arena = out->arena};
  bb_put(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", bb_npy_name(array->type));
  for (uint32_t i = 0; i < array->rank; i++)
    bb_put(&dict, "%s%lld", i ? ", " : "", (long long)array->shape[i]);
  bb_put(&dict, "%s), }", array->rank == 1 ? "," : "");
  /* The elements begin at a multiple of 64; a shape long enough to need version 2 has 12 bytes
   * before the dict instead of 10. */
  bool wide = dict.length + 64 > UINT16_MAX;
  size_t before = wide ? 12 : 10, total = (before + dict.length + 1 + 63) / 64 * 64;
  size_t length = total - before;
  uint8_t lead[12] = {[6] = wide ? 2 : 1,
                      [8] = (uint8_t)length,
                      [9] = (uint8_t)(length >> 8),
                      [10] = (uint8_t)(length >> 16),
                      [11] = (uint8_t)(length >> 24)};
  memcpy(lead, magic, sizeof magic);
  bb_put_bytes(out, (const char *)lead, before);
  bb_put_bytes(out, dict.data, dict.length);
  for (size_t i = dict.length + 1; i < length; i++) bb_put_bytes(out, " ", 1);
  bb_put_bytes(out, "\n", 1);
  bb_put_bytes(out, array->data, array->bytes);
}

/* --- as numbers --- */

static void integers(const bb_npz_array *array, double *out) {
#define EACH(T)                                                                                    \
  for (size_t i = 0; i < array->count; i++) out[i] = (double)((const T *)array->data)[i];          \
  break
  switch (array->type) {
  case BB_NPY_I16: EACH(int16_t);
  case BB_NPY_I8: EACH(int8_t);
  case BB_NPY_U64: EACH(uint64_t);
  case BB_NPY_U32: EACH(uint32_t);
  case BB_NPY_U16: EACH(uint16_t);
  case BB_NPY_U8: EACH(uint8_t);
  default: break;
  }
#undef EACH
}

void bb_npz_doubles(const bb_npz_array *array, double *out) {
  switch (array->type) {
  case BB_NPY_F64: bb_interp_load(BB_F64, array->data, array->count, out); break;
  case BB_NPY_F32: bb_interp_load(BB_F32, array->data, array->count, out); break;
  case BB_NPY_F16: bb_interp_load(BB_F16, array->data, array->count, out); break;
  case BB_NPY_BF16: bb_interp_load(BB_BF16, array->data, array->count, out); break;
  case BB_NPY_I64: bb_interp_load(BB_I64, array->data, array->count, out); break;
  case BB_NPY_I32: bb_interp_load(BB_I32, array->data, array->count, out); break;
  case BB_NPY_BOOL: bb_interp_load(BB_BOOL, array->data, array->count, out); break;
  default: integers(array, out);
  }
}
