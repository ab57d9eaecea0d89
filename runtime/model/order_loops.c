/* order_loops.c - the loops of order.h.
 *
 * An element and its index are one number: no two are equal, and of equal elements the one with the lower index comes first.  Few of many:
 * elements that lie a number of lanes apart have one greatest, and of so many greatest the one that comes last among those that are
 * kept says which of all elements may be; those are few, mostly, and sorted.  Others are sorted by digits.
 *
 * Compiled once for every instruction set that is tried; LOOPS is the name of the result.
 */
#include "order.h"

#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* NaN is more than all numbers, and zeros are one. */
INLINE uint32_t rank_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return UINT32_MAX;
  if (x == 0) return 0x80000000;
  return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

INLINE uint32_t rank_i32(int32_t x) {
  return (uint32_t)x ^ 0x80000000;
}

/* --- sorting --- */

enum { FEW = 48, DIGITS = 4, DIGIT = 256 };

/* Each to where as many are less: no branch is guessed wrong. */
static bb_ranked *place_each(const bb_ranked *line, bb_ranked *room, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const bb_ranked x = line[i];
    size_t at = 0;
    for (size_t k = 0; k < count; k++) at += line[k] < x;
    room[at] = x;
  }
  return room;
}

/* By the digits of ranks, the least first: each pass leaves equal ones in their order, which is at first that of indices. */
static bb_ranked *sort_digits(bb_ranked *line, bb_ranked *room, size_t count) {
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
    bb_ranked *sorted = room;
    room = line;
    line = sorted;
  }
  return line;
}

/* In order of their indices before; room: for as many more; gives where the sorted ones lie. */
static bb_ranked *sort(bb_ranked *line, bb_ranked *room, size_t count) {
  return count <= FEW ? place_each(line, room, count) : sort_digits(line, room, count);
}

/* Of a heap whose root is its greatest, where the one at `at` may be out of place. */
static void sift(bb_ranked *heap, size_t count, size_t at) {
  const bb_ranked x = heap[at];
  for (size_t next; (next = 2 * at + 1) < count; at = next) {
    if (next + 1 < count && heap[next + 1] > heap[next]) next++;
    if (x >= heap[next]) break;
    heap[at] = heap[next];
  }
  heap[at] = x;
}

/* Each leaves the place of the root, which is the greatest, for its own. */
static void sort_heap(bb_ranked *heap, size_t count) {
  while (count > 1) {
    const bb_ranked last = heap[0];
    heap[0] = heap[--count];
    heap[count] = last;
    sift(heap, count, 0);
  }
}

/* The first `kept` of many, sorted, where they begin: a heap whose root comes last, which most others do not enter. */
static void keep_first(bb_ranked *line, size_t count, size_t kept) {
  for (size_t at = kept / 2; at-- > 0;) sift(line, kept, at);
  for (size_t i = kept; i < count; i++) {
    if (line[i] >= line[0]) continue;
    line[0] = line[i];
    sift(line, kept, 0);
  }
  sort_heap(line, kept);
}

/* --- few of many --- */

enum { LANES = 32, LANES_EACH = 4, MOST_COUNTED = 64, SHARE = 8 };

/* Lanes for so many that are kept; 0: they are not few. */
static size_t lanes_of(const bb_order_line *l) {
  const size_t lanes = (LANES_EACH * l->kept + LANES - 1) / LANES * LANES;
  return l->kept && l->kept <= l->extent / SHARE && lanes <= l->extent ? lanes : 0;
}

/* One code for both orders: elements are turned so that the greatest comes first, floats by a factor, integers bit by bit. */
#define TURN_f32(x) ((x)*turn)
#define TURN_i32(x) ((x) ^ turn)

#define FIRST_OF(suffix, tile, greatest, least)                                                    \
  INLINE bb_ranked ranked_##suffix(bool largest, tile x, size_t e) {                               \
    const uint32_t flip = largest ? UINT32_MAX : 0;                                                \
    return (bb_ranked)(rank_##suffix(x) ^ flip) << 32 | e;                                         \
  }                                                                                                \
  /* NaN is left out, which may be what a lane has nothing but: it has the least of all then. */   \
  INLINE void find_lanes_##suffix(const tile turn, const tile *line, size_t extent,                \
                                  const size_t lanes, tile *first) {                               \
    size_t e = 0;                                                                                  \
    for (size_t i = 0; i < lanes; i++) first[i] = least;                                           \
    for (; e + lanes <= extent; e += lanes)                                                        \
      for (size_t i = 0; i < lanes; i++) {                                                         \
        const tile x = TURN_##suffix(line[e + i]);                                                 \
        first[i] = x > first[i] ? x : first[i];                                                    \
      }                                                                                            \
    for (size_t i = 0; e + i < extent; i++) {                                                      \
      const tile x = TURN_##suffix(line[e + i]);                                                   \
      first[i] = x > first[i] ? x : first[i];                                                      \
    }                                                                                              \
  }                                                                                                \
  /* The kept-th of what lanes have: the least of those that fewer come before. */                 \
  INLINE tile count_lanes_##suffix(const tile *first, const size_t lanes, size_t kept) {           \
    uint32_t before[MOST_COUNTED] = {0};                                                           \
    tile last = greatest;                                                                          \
    for (size_t k = 0; k < lanes; k++)                                                             \
      for (size_t i = 0; i < lanes; i++) before[i] += first[i] < first[k];                         \
    for (size_t i = 0; i < lanes; i++)                                                             \
      if (before[i] < kept && first[i] < last) last = first[i];                                    \
    return last;                                                                                   \
  }                                                                                                \
  static tile last_of_##suffix(const tile turn, const tile *line, size_t extent, size_t lanes,     \
                               size_t kept, bb_ranked *room) {                                     \
    tile counted[MOST_COUNTED], *first = (tile *)(void *)(room + 2 * lanes);                       \
    if (lanes == LANES) {                                                                          \
      find_lanes_##suffix(turn, line, extent, LANES, counted);                                     \
      return count_lanes_##suffix(counted, LANES, kept);                                           \
    }                                                                                              \
    if (lanes <= MOST_COUNTED) {                                                                   \
      find_lanes_##suffix(turn, line, extent, MOST_COUNTED, counted);                              \
      return count_lanes_##suffix(counted, MOST_COUNTED, kept);                                    \
    }                                                                                              \
    find_lanes_##suffix(turn, line, extent, lanes, first);                                         \
    for (size_t i = 0; i < lanes; i++) room[i] = ranked_##suffix(true, first[i], i);               \
    return first[(uint32_t)sort(room, room + lanes, lanes)[kept - 1]];                             \
  }                                                                                                \
  /* Those that do not come after `last`, in their order, and NaN; gives how many. */              \
  static size_t collect_##suffix(bool largest, const tile turn, const tile *line, size_t extent,   \
                                 const tile last, bb_ranked *to) {                                 \
    size_t count = 0;                                                                              \
    for (size_t e = 0; e < extent; e += LANES) {                                                   \
      uint32_t may = 0;                                                                            \
      if (extent - e >= LANES) {                                                                   \
        for (uint32_t i = 0; i < LANES; i++)                                                       \
          may |= TURN_##suffix(line[e + i]) < last ? 0 : 1u << i;                                  \
      } else {                                                                                     \
        for (uint32_t i = 0; i < extent - e; i++)                                                  \
          may |= TURN_##suffix(line[e + i]) < last ? 0 : 1u << i;                                  \
      }                                                                                            \
      for (; may; may &= may - 1) {                                                                \
        const size_t at = e + (size_t)__builtin_ctz(may);                                          \
        to[count++] = ranked_##suffix(largest, line[at], at);                                      \
      }                                                                                            \
    }                                                                                              \
    return count;                                                                                  \
  }                                                                                                \
  static const bb_ranked *first_of_##suffix(const bb_order_line *l, const tile turn,               \
                                            bb_ranked *room) {                                     \
    const tile *line = l->line;                                                                    \
    const size_t lanes = lanes_of(l);                                                              \
    if (!lanes) {                                                                                  \
      for (size_t e = 0; e < l->extent; e++) room[e] = ranked_##suffix(l->largest, line[e], e);    \
      return sort(room, room + l->extent, l->extent);                                              \
    }                                                                                              \
    const tile last = last_of_##suffix(turn, line, l->extent, lanes, l->kept, room);               \
    const size_t count = collect_##suffix(l->largest, turn, line, l->extent, last, room);          \
    if (count <= lanes) return sort(room, room + l->extent, count);                                \
    keep_first(room, count, l->kept); /* many are equal, or NaN */                                 \
    return room;                                                                                   \
  }
FIRST_OF(f32, float, INFINITY, -INFINITY)
FIRST_OF(i32, int32_t, INT32_MAX, INT32_MIN)
#undef FIRST_OF

bb_order_loops LOOPS;

const bb_ranked *LOOPS(const bb_order_line *l, bb_ranked *room) {
  if (l->floats) return first_of_f32(l, l->largest ? 1 : -1, room);
  return first_of_i32(l, l->largest ? 0 : -1, room);
}
