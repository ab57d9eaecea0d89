/* native_order.c - the native kernel of TopK: the first elements of lines, in order.
 *
 * An element and its index are one number, the less the earlier it comes: no two are equal, and of equal elements the one with
 * the lower index comes first.  Few of many are held in a heap whose root comes last, which most others do not enter; else
 * all are sorted by digits.
 */
#include "native.h"

#include <string.h>

typedef uint64_t ranked; /* a rank above, the index below */

/* NaN is more than all numbers, and zeros are one. */
static uint32_t rank_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return UINT32_MAX;
  if (x == 0) return 0x80000000;
  return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static uint32_t rank_i32(int32_t x) {
  return (uint32_t)x ^ 0x80000000;
}

/* --- sorting --- */

enum { FEW = 48, DIGITS = 4, DIGIT = 256 };

static void insert_each(ranked *line, size_t count) {
  for (size_t i = 1; i < count; i++) {
    const ranked x = line[i];
    size_t at = i;
    for (; at && line[at - 1] > x; at--) line[at] = line[at - 1];
    line[at] = x;
  }
}

/* By the digits of ranks, the least first: each pass leaves equal ones in their order, which is at first that of indices.
 * room: for as many more; gives where the sorted ones lie. */
static ranked *sort_digits(ranked *line, ranked *room, size_t count) {
  size_t starts[DIGITS][DIGIT] = {0};
  for (size_t i = 0; i < count; i++)
    for (int d = 0; d < DIGITS; d++) starts[d][line[i] >> (32 + 8 * d) & (DIGIT - 1)]++;
  for (int d = 0; d < DIGITS; d++) {
    const int shift = 32 + 8 * d;
    size_t *start = starts[d], sum = 0;
    if (start[line[0] >> shift & (DIGIT - 1)] == count) continue; /* all have the same */
    for (int k = 0; k < DIGIT; k++) {
      const size_t here = start[k];
      start[k] = sum;
      sum += here;
    }
    for (size_t i = 0; i < count; i++) room[start[line[i] >> shift & (DIGIT - 1)]++] = line[i];
    ranked *sorted = room;
    room = line;
    line = sorted;
  }
  return line;
}

/* Of a heap whose root is its greatest, where the one at `at` may be out of place. */
static void sift(ranked *heap, size_t count, size_t at) {
  const ranked x = heap[at];
  for (size_t next; (next = 2 * at + 1) < count; at = next) {
    if (next + 1 < count && heap[next + 1] > heap[next]) next++;
    if (x >= heap[next]) break;
    heap[at] = heap[next];
  }
  heap[at] = x;
}

/* Each leaves the place of the root, which is the greatest, for its own. */
static void sort_heap(ranked *heap, size_t count) {
  while (count > 1) {
    const ranked last = heap[0];
    heap[0] = heap[--count];
    heap[count] = last;
    sift(heap, count, 0);
  }
}

/* --- lines --- */

typedef struct lines {
  size_t extent, kept, inner; /* elements of a line lie `inner` apart, in results, too */
  bool largest;
  ranked *room; /* 2 extent + 1 */
} lines;

/* The first of a line: where they lie, sorted. */
#define FIRST_OF(suffix, tile)                                                                     \
  static ranked ranked_##suffix(const lines *l, const tile *from, size_t e) {                      \
    const uint32_t rank = rank_##suffix(from[e * l->inner]);                                       \
    return (ranked)(l->largest ? ~rank : rank) << 32 | e;                                          \
  }                                                                                                \
  /* The first from `e` on that may come before `last`: all may where either is NaN. */            \
  static size_t next_##suffix(const lines *l, const tile *from, size_t e, const tile last) {       \
    if (l->largest)                                                                                \
      while (e < l->extent && from[e * l->inner] <= last) e++;                                     \
    else                                                                                           \
      while (e < l->extent && from[e * l->inner] >= last) e++;                                     \
    return e;                                                                                      \
  }                                                                                                \
  static ranked *first_of_##suffix(const lines *l, const tile *from) {                             \
    ranked *line = l->room;                                                                        \
    const bool few = l->kept <= l->extent / 8;                                                     \
    const size_t held = few ? l->kept : l->extent;                                                 \
    for (size_t e = 0; e < held; e++) line[e] = ranked_##suffix(l, from, e);                       \
    if (!few && held > FEW) return sort_digits(line, line + l->extent, held);                      \
    if (!few) {                                                                                    \
      insert_each(line, held);                                                                     \
      return line;                                                                                 \
    }                                                                                              \
    for (size_t at = held / 2; at-- > 0;) sift(line, held, at);                                    \
    for (size_t e = held; held; e++) {                                                             \
      e = next_##suffix(l, from, e, from[(uint32_t)line[0] * l->inner]);                           \
      if (e >= l->extent) break;                                                                   \
      const ranked x = ranked_##suffix(l, from, e);                                                \
      if (x >= line[0]) continue;                                                                  \
      line[0] = x;                                                                                 \
      sift(line, held, 0);                                                                         \
    }                                                                                              \
    sort_heap(line, held);                                                                         \
    return line;                                                                                   \
  }                                                                                                \
  static void put_line_##suffix(const lines *l, const tile *from, tile *value, int64_t *index) {   \
    const ranked *first = first_of_##suffix(l, from);                                              \
    for (size_t e = 0; e < l->kept; e++) {                                                         \
      const uint32_t at = (uint32_t)first[e];                                                      \
      if (value) value[e * l->inner] = from[at * l->inner];                                        \
      if (index) index[e * l->inner] = at;                                                         \
    }                                                                                              \
  }
FIRST_OF(f32, float)
FIRST_OF(i32, int32_t)
#undef FIRST_OF

/* --- the kernel --- */

static bool is_result(const bb_native_call *call, uint32_t i, bb_dtype dtype, uint32_t axis,
                      int64_t kept) {
  const bb_native_array *data = &call->in[0], *out = &call->out[i];
  if (out->absent) return true;
  if (out->room || out->dtype != dtype || out->rank != data->rank || out->data == data->data)
    return false;
  for (uint32_t a = 0; a < data->rank; a++)
    if (out->shape[a] != (a == axis ? kept : data->shape[a])) return false;
  return true;
}

bool bb_native_top_k(const bb_native_call *call) {
  const bb_native_array *data = &call->in[0], *many = &call->in[1];
  if (call->nin != 2 || call->nout < 1 || call->nout > 2 || call->told) return false;
  if (data->absent || data->room || !data->rank) return false;
  if (data->dtype != BB_F32 && data->dtype != BB_I32) return false;
  if (many->absent || many->room || many->dtype != BB_I64) return false;
  if (bb_native_product(0, many->rank, many->shape) != 1) return false;
  const int64_t kept = *(const int64_t *)many->data;
  int64_t axis = bb_native_int(call, "axis", -1);
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= (int64_t)data->rank) return false;
  const uint32_t along = (uint32_t)axis;
  if (kept < 0 || kept > data->shape[along] || data->shape[along] > UINT32_MAX) return false;
  if (!is_result(call, 0, data->dtype, along, kept)) return false;
  if (call->nout > 1 && !is_result(call, 1, BB_I64, along, kept)) return false;
  lines l = {.extent = (size_t)data->shape[along],
             .kept = (size_t)kept,
             .inner = bb_native_product(along + 1, data->rank, data->shape),
             .largest = bb_native_int(call, "largest", 1) != 0};
  l.room = BB_NEW(call->arena, ranked, 2 * l.extent + 1);
  const size_t outer = kept ? bb_native_product(0, along, data->shape) : 0;
  const char *from = data->data;
  char *value = call->out[0].absent ? NULL : call->out[0].data;
  int64_t *index = call->nout < 2 || call->out[1].absent ? NULL : call->out[1].data;
  for (size_t line = 0; line < outer * l.inner; line++) {
    const size_t o = line / l.inner, i = line % l.inner;
    const size_t at = o * l.extent * l.inner + i, to = o * l.kept * l.inner + i;
    int64_t *places = index ? index + to : NULL;
    char *values = value ? value + to * sizeof(float) : NULL;
    if (data->dtype == BB_F32)
      put_line_f32(&l, (const float *)from + at, (float *)values, places);
    else
      put_line_i32(&l, (const int32_t *)from + at, (int32_t *)values, places);
  }
  return true;
}
