/* native_order.c - the native kernel of TopK: the first elements of lines, in order.
 *
 * Threads share lines, or parts of lines where these are few and long: each has the first of its part, of which the first are those
 * of the line.  Lines whose elements lie apart are brought together, neighbours at once.
 */
#include "native.h"
#include "order.h"

#include <string.h>

enum { BAND = 16, APART = 1 << 14, MOST_PARTS = 64 }; /* lines side by side; elements of a part */

typedef uint32_t __attribute__((may_alias)) word; /* an element of either type */

/* What one thread works with. */
typedef struct room {
  bb_ranked *ranked;
  word *band; /* lines that lie apart, one after the other */
} room;

typedef struct lines {
  bb_order_loops *loops;
  bool floats, largest;
  size_t extent, kept, inner; /* elements of a line lie `inner` apart, in results, too */
  size_t bands, parts;        /* of the lines between two of the axis; of each line */
  const word *from;
  word *value; /* NULL: absent */
  int64_t *index;
  bb_ranked *first; /* of parts, `kept` of each */
  room *room;       /* by thread */
} lines;

/* --- lines --- */

static const bb_ranked *first_of(const lines *l, const word *line, size_t extent, room *own) {
  const bb_order_line what = {line, l->floats, l->largest, extent, l->kept};
  return l->loops(&what, own->ranked);
}

/* Results `inner` apart of a line that is dense. */
static void put_line(const lines *l, const bb_ranked *first, const word *line, size_t to) {
  for (size_t e = 0; e < l->kept; e++, to += l->inner) {
    const uint32_t at = (uint32_t)first[e];
    if (l->value) l->value[to] = line[at];
    if (l->index) l->index[to] = at;
  }
}

static void bring_together(const lines *l, const word *from, size_t count, word *to) {
  for (size_t e = 0; e < l->extent; e++, from += l->inner)
    for (size_t i = 0; i < count; i++) to[i * l->extent + e] = from[i];
}

/* Lines that lie side by side. */
static void put_band(const lines *l, size_t band, room *own) {
  const size_t outer = band / l->bands, i = band % l->bands * BAND;
  const size_t count = l->inner - i < BAND ? l->inner - i : BAND;
  const word *line = l->from + outer * l->extent * l->inner + i;
  const size_t to = outer * l->kept * l->inner + i;
  if (l->inner > 1) {
    bring_together(l, line, count, own->band);
    line = own->band;
  }
  for (size_t k = 0; k < count; k++, line += l->extent)
    put_line(l, first_of(l, line, l->extent, own), line, to + k);
}

static void put_bands(void *user, size_t from, size_t to, uint32_t thread) {
  const lines *l = user;
  for (size_t band = from; band < to; band++) put_band(l, band, &l->room[thread]);
}

/* --- parts of lines --- */

static size_t begin_of(const lines *l, size_t part) {
  return l->extent / l->parts * part + (part < l->extent % l->parts ? part : l->extent % l->parts);
}

static void find_parts(void *user, size_t from, size_t to, uint32_t thread) {
  const lines *l = user;
  for (size_t task = from; task < to; task++) {
    const size_t part = task % l->parts, begin = begin_of(l, part);
    const word *line = l->from + task / l->parts * l->extent + begin;
    const bb_ranked *first = first_of(l, line, begin_of(l, part + 1) - begin, &l->room[thread]);
    for (size_t e = 0; e < l->kept; e++) l->first[task * l->kept + e] = first[e] + begin;
  }
}

/* The first of two lists that are sorted. */
static void merge(const bb_ranked *a, const bb_ranked *b, size_t kept, bb_ranked *to) {
  for (size_t e = 0; e < kept; e++) to[e] = *a < *b ? *a++ : *b++;
}

static void put_parts(const lines *l, size_t line) {
  const bb_ranked *found = l->first + line * l->parts * l->kept;
  bb_ranked *merged = l->room[0].ranked, *other = merged + l->kept;
  memcpy(merged, found, l->kept * sizeof *found);
  for (size_t part = 1; part < l->parts; part++) {
    merge(merged, found + part * l->kept, l->kept, other);
    bb_ranked *last = merged;
    merged = other;
    other = last;
  }
  put_line(l, merged, l->from + line * l->extent, line * l->kept);
}

/* As many as there are threads for, where each is long and leaves most of it out; 1: lines are not divided. */
static size_t parts_of(const lines *l, size_t count, size_t threads) {
  if (l->inner > 1 || count >= threads) return 1;
  size_t parts = (2 * threads + count - 1) / count, most = l->extent / APART;
  if (l->kept && most > l->extent / (16 * l->kept)) most = l->extent / (16 * l->kept);
  if (parts > most) parts = most;
  if (parts > MOST_PARTS) parts = MOST_PARTS;
  return parts ? parts : 1;
}

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

static void put_lines(const bb_native_call *call, lines *l, size_t outer) {
  const size_t threads = call->class->threads(call->queue), count = outer * l->inner;
  l->bands = (l->inner + BAND - 1) / BAND;
  l->parts = parts_of(l, count, threads);
  l->room = BB_NEW(call->arena, room, threads);
  for (size_t t = 0; t < threads; t++) {
    l->room[t].ranked = BB_NEW(call->arena, bb_ranked, bb_order_room(l->extent));
    if (l->inner > 1) l->room[t].band = BB_NEW(call->arena, word, BAND * l->extent + 1);
  }
  if (l->parts == 1) {
    const size_t each = APART / 4 / (l->extent * (l->inner < BAND ? l->inner : BAND) + 1) + 1;
    bb_native_share(call, outer * l->bands, each, put_bands, l);
    return;
  }
  l->first = BB_NEW(call->arena, bb_ranked, count * l->parts * l->kept);
  bb_native_share(call, count * l->parts, 1, find_parts, l);
  for (size_t line = 0; line < count; line++) put_parts(l, line);
}

bool bb_order_run(const bb_native_call *call, bb_order_loops *loops) {
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
  lines l = {.loops = loops,
             .floats = data->dtype == BB_F32,
             .largest = bb_native_int(call, "largest", 1) != 0,
             .extent = (size_t)data->shape[along],
             .kept = (size_t)kept,
             .inner = bb_native_product(along + 1, data->rank, data->shape),
             .from = data->data,
             .value = call->out[0].absent ? NULL : call->out[0].data,
             .index = call->nout < 2 || call->out[1].absent ? NULL : call->out[1].data};
  const size_t outer = bb_native_product(0, along, data->shape);
  if (kept && outer && l.inner) put_lines(call, &l, outer);
  return true;
}

/* --- the processor --- */

bb_order_loops *bb_order_loops_here(void) {
  bb_order_loops *loops = bb_order_loops_plain;
#ifdef __x86_64__
  if (bb_native_set() != BB_SET_PLAIN) loops = bb_order_loops_avx2;
#endif
  return loops;
}

bool bb_native_top_k(const bb_native_call *call) {
  return bb_order_run(call, bb_order_loops_here());
}
