/* recurrent_loops.c - the loops of recurrent.h: products of few rows with packed panels, and gates.
 *
 * Compiled once for every instruction set that is tried; LOOPS is the name of the result.  Each sum runs over the state in order,
 * in a lane of its own, however many rows are taken together.
 */
#include "recurrent.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* What cpu_math.h takes from its surroundings: functions of numbers, which become vector code here. */
#define BB_INLINE static inline __attribute__((always_inline, unused))
#define BB_VECTOR
#ifdef __AVX512F__
#define BB_VECTOR_BYTES 64
#define BB_STRAIGHT
enum { BB_WIDE_LANES = 16 };
typedef float bb_wide __attribute__((vector_size(64)));
typedef float bb_wide_loose __attribute__((vector_size(64), aligned(sizeof(float)), may_alias));
#else
#define BB_VECTOR_BYTES 16
#endif
BB_INLINE uint32_t bb_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
BB_INLINE float bb_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
#include "../../lower/device/cpu_math.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif
/* Sanitizers check each lane: unrolled, that takes a compiler minutes. */
#if __has_feature(address_sanitizer)
#define STRAIGHT
#elif defined(__clang__)
#define STRAIGHT _Pragma("clang loop unroll(full)")
#else
#define STRAIGHT _Pragma("GCC unroll 16")
#endif

/* ROWS: sequences at once.  BESIDE: groups of 16 columns at once that registers hold the sums of, beside what they are made
 * of. */
#if defined(__AVX512F__)
#define BYTES 64
#define BESIDE(rows) 4
#elif defined(__AVX2__)
#define BYTES 32
#define BESIDE(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#else
#define BYTES 16
#define BESIDE(rows) ((rows) == 1 ? 2 : 1)
#endif
#if BYTES == 16 && defined(__x86_64__) /* which has 16 registers of them */
#define ROWS 3
#else
#define ROWS 6
#endif
enum {
  LANES = BYTES / 4,
  GROUP = BB_RECURRENT_LANES,
  COLUMNS = BB_RECURRENT_COLUMNS,
  ACROSS = GROUP / LANES,  /* vectors of a group */
  LARGEST = ROWS * COLUMNS /* lanes of a strip */
};
typedef float vector __attribute__((vector_size(BYTES)));
typedef float loose __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias));
/* A group of lanes, of however many vectors. */
typedef float group __attribute__((vector_size(GROUP * 4), aligned(sizeof(float)), may_alias));
#define AT(lane) (*(group *)(lane))
#define FROM(lane) (*(const group *)(lane))
#define SMALL static __attribute__((noinline))

/* --- products --- */

/* Some groups of a panel's columns, `far` floats apart, for `rows` states; constants, so that the sums stay in registers. */
BB_INLINE void strip(const float *const *from, const float *matrix, int64_t depth, float *sum,
                     const int64_t *apart, const int rows, const int groups) {
  vector s[ROWS][COLUMNS / LANES];
  const int vectors = groups * ACROSS;
  const int64_t far = depth * GROUP;
  STRAIGHT
  for (int i = 0; i < rows; i++) STRAIGHT
  for (int v = 0; v < vectors; v++) s[i][v] = (vector){0};
  for (int64_t k = 0; k < depth; k++, matrix += GROUP) {
    vector with[COLUMNS / LANES];
    STRAIGHT
    for (int v = 0; v < vectors; v++)
      with[v] = *(const loose *)(matrix + v / ACROSS * far + v % ACROSS * LANES);
    STRAIGHT
    for (int i = 0; i < rows; i++) {
      vector x = from[i][k] - (vector){0};
      STRAIGHT
      for (int v = 0; v < vectors; v++) s[i][v] += x * with[v];
    }
  }
  STRAIGHT
  for (int i = 0; i < rows; i++) STRAIGHT
  for (int v = 0; v < vectors; v++)
    *(loose *)(sum + apart[v / ACROSS] + i * GROUP + v % ACROSS * LANES) = s[i][v];
}

/* Group g of the columns goes to sum + apart[g], row by row.  A panel has three groups or four. */
typedef void product(const float *const *from, const float *matrix, int64_t depth, int64_t groups,
                     float *sum, const int64_t *apart);
#define GROUPS(rows, beside)                                                                       \
  while (beside <= BESIDE(rows) && (BESIDE(rows) < 4 || beside > 2) && groups >= beside) {         \
    strip(from, matrix, depth, sum, apart, rows, beside);                                          \
    matrix += beside * depth * GROUP;                                                              \
    apart += beside;                                                                               \
    groups -= beside;                                                                              \
  }
#define PRODUCT(rows)                                                                              \
  SMALL void product_##rows(const float *const *from, const float *matrix, int64_t depth,          \
                            int64_t groups, float *sum, const int64_t *apart) {                    \
    GROUPS(rows, 4)                                                                                \
    GROUPS(rows, 3)                                                                                \
    GROUPS(rows, 2)                                                                                \
    GROUPS(rows, 1)                                                                                \
  }
PRODUCT(1)
PRODUCT(2)
PRODUCT(3)
#if ROWS > 3
PRODUCT(4)
PRODUCT(5)
PRODUCT(6)
#define PRODUCTS 0, product_1, product_2, product_3, product_4, product_5, product_6
#else
#define PRODUCTS 0, product_1, product_2, product_3
#endif

static product *const product_by[ROWS + 1] = {PRODUCTS};

/* --- gates: `n` lanes of each, a multiple of GROUP --- */

#define EACH(at, n) for (int64_t at = 0; at < (n); at += GROUP)
/* Of its lanes, in place: what has no vector form in C. */
#define LANE(x, lane, value)                                                                       \
  for (int l = 0; l < GROUP; l++) {                                                                \
    const float x = (lane)[l];                                                                     \
    (lane)[l] = value;                                                                             \
  }

/* Of a group of lanes. */
BB_INLINE void sigmoids(float *lane) {
  float e[GROUP];
  for (int l = 0; l < GROUP; l++) e[l] = -lane[l];
  bb_exps_f32(e, GROUP);
  for (int l = 0; l < GROUP; l++) lane[l] = 1.0f / (1.0f + e[l]);
}

BB_INLINE float hard(float x) {
  float y = 0.2f * x + 0.5f;
  y = y < 1 ? y : 1;
  return y > 0 ? y : 0;
}

SMALL void apply(int64_t function, float *lane, int64_t n) {
  switch (function) {
  case BB_RECURRENT_SIGMOID: EACH(at, n) sigmoids(lane + at); break;
  case BB_RECURRENT_TANH: EACH(at, n) LANE(x, lane + at, bb_tanh_f32(x)) break;
  case BB_RECURRENT_RELU: EACH(at, n) LANE(x, lane + at, x <= 0 ? 0 : x) break;
  case BB_RECURRENT_HARD_SIGMOID: EACH(at, n) LANE(x, lane + at, hard(x)) break;
  case BB_RECURRENT_SOFTSIGN: EACH(at, n) LANE(x, lane + at, x / (1.0f + fabsf(x))) break;
  default: break;
  }
}

SMALL void clip(float most, float *lane, int64_t n) {
  EACH(at, n) {
    LANE(x, lane + at, x > most ? most : x)
    LANE(x, lane + at, x < -most ? -most : x)
  }
}

SMALL void gate(const bb_recurrence *r, uint32_t which, float *lane, int64_t n) {
  if (r->clip > 0) clip(r->clip, lane, n);
  apply(r->function[which], lane, n);
}

/* --- what the sums of some panels make of some sequences' units.  Of each gate there are [groups][rows][GROUP], as of all that
 * is brought beside them --- */

typedef struct portion {
  const bb_recurrence *r;
  const bb_recurrent_part *p;
  const bb_recurrent_row *row;
  int64_t rows, unit, n; /* from which unit on; n: lanes of a gate */
  float *sum;
} portion;

#define ROW_BY_ROW(o, at, u, i)                                                                    \
  for (int64_t at = 0, u = (o)->unit; at < (o)->n; u += GROUP)                                     \
    for (int64_t i = 0; i < (o)->rows; i++, at += GROUP)

/* The lanes of the portion's units from an array of each sequence's, a member of its row, and back. */
SMALL void bring(const portion *o, size_t member, float *to) {
  ROW_BY_ROW(o, at, u, i) AT(to + at) = FROM(*(float **)((char *)&o->row[i] + member) + u);
}

SMALL void take(const portion *o, size_t member, const float *from) {
  ROW_BY_ROW(o, at, u, i) AT(*(float **)((char *)&o->row[i] + member) + u) = FROM(from + at);
}
#define BRING(o, to, member) bring(o, offsetof(bb_recurrent_row, member), to)
#define TAKE(o, member, from) take(o, offsetof(bb_recurrent_row, member), from)

SMALL void add_biases(const portion *o, int64_t gate_of, float *lane) {
  const float *bias = o->p->bias + gate_of * o->r->pitch;
  ROW_BY_ROW(o, at, u, i) AT(lane + at) += FROM(bias + u);
}

/* What the inputs add to gate `gate_of` of the part, nothing beyond the last unit. */
SMALL void add_inputs(const portion *o, int64_t gate_of, float *lane) {
  const int64_t width = o->r->width;
  ROW_BY_ROW(o, at, u, i) {
    const float *from = o->row[i].inputs + (o->p->first + gate_of) * width + u;
    float edge[GROUP] = {0};
    if (u + GROUP > width) {
      if (u < width) memcpy(edge, from, (size_t)(width - u) * sizeof *edge);
      from = edge;
    }
    AT(lane + at) += FROM(from);
  }
}

/* What gate `which` of the peepholes sees of the memory. */
SMALL void see(const portion *o, int64_t which, const float *memory, float *lane) {
  const float *weight = o->r->peephole + which * o->r->pitch;
  ROW_BY_ROW(o, at, u, i) AT(lane + at) += FROM(weight + u) * FROM(memory + at);
}

static void plain_step(const portion *o) {
  add_inputs(o, 0, o->sum);
  gate(o->r, 0, o->sum, o->n);
  TAKE(o, to, o->sum);
}

static void memory_step(const portion *o) {
  const bb_recurrence *r = o->r;
  const int64_t n = o->n;
  float memory[LARGEST], *in = o->sum, *out = in + n, *forget = out + n, *next = forget + n;
  BRING(o, memory, memory);
  for (int64_t g = 0; g < 4; g++) add_inputs(o, g, o->sum + g * n);
  if (r->peephole) {
    see(o, 0, memory, in);
    see(o, 2, memory, forget);
    gate(r, 0, forget, n);
  }
  gate(r, 0, in, r->peephole ? n : 3 * n);
  gate(r, 1, next, n);
  if (r->coupled) EACH(at, n) AT(forget + at) = 1.0f - FROM(in + at);
  EACH(at, n)
  AT(memory + at) = FROM(forget + at) * FROM(memory + at) + FROM(in + at) * FROM(next + at);
  TAKE(o, memory, memory);
  if (r->peephole) {
    see(o, 1, memory, out);
    gate(r, 0, out, n);
  }
  apply(r->function[2], memory, n);
  EACH(at, n) AT(out + at) *= FROM(memory + at);
  TAKE(o, to, out);
}

/* The state between the one before and the next one. */
SMALL void blend(const portion *o, const float *update, float *next) {
  float before[LARGEST];
  BRING(o, before, from);
  EACH(at, o->n)
  AT(next + at) =
      (1.0f - FROM(update + at)) * FROM(next + at) + FROM(update + at) * FROM(before + at);
  TAKE(o, to, next);
}

/* All three gates at once: the state's share of the third is taken by the second. */
static void gated_step(const portion *o) {
  const int64_t n = o->n;
  float *update = o->sum, *reset = update + n, *next = reset + n;
  add_inputs(o, 0, update);
  add_inputs(o, 1, reset);
  gate(o->r, 0, update, 2 * n);
  EACH(at, n) AT(next + at) *= FROM(reset + at);
  add_inputs(o, 2, next);
  gate(o->r, 1, next, n);
  blend(o, update, next);
}

/* Two of them, which say what the third one's product is with. */
static void first_step(const portion *o) {
  const int64_t n = o->n;
  float before[LARGEST], *update = o->sum, *reset = update + n;
  BRING(o, before, from);
  add_inputs(o, 0, update);
  add_inputs(o, 1, reset);
  gate(o->r, 0, update, 2 * n);
  EACH(at, n) AT(reset + at) *= FROM(before + at);
  TAKE(o, update, update);
  TAKE(o, held, reset);
}

static void second_step(const portion *o) {
  float update[LARGEST];
  BRING(o, update, update);
  add_inputs(o, 0, o->sum);
  gate(o->r, 1, o->sum, o->n);
  blend(o, update, o->sum);
}

/* --- panels --- */

typedef void step(const portion *o);

static step *step_of(const bb_recurrence *r, uint32_t part) {
  if (r->gates == 4) return memory_step;
  if (r->gates == 1) return plain_step;
  return r->parts == 1 ? gated_step : part == 0 ? first_step : second_step;
}

/* The states once more, for whoever wants those of all steps. */
static void give(const portion *o) {
  const int64_t units = o->n / o->rows, left = o->r->width - o->unit;
  const size_t bytes = (size_t)(left < units ? left : units) * sizeof(float);
  for (int64_t i = 0; i < o->rows; i++)
    if (o->row[i].result) memcpy(o->row[i].result + o->unit, o->row[i].to + o->unit, bytes);
}

/* How many of so many go next: about as many each time. */
static int64_t next_of(int64_t left, int64_t most) {
  return left >= 2 * most ? most : left > most ? (left + 1) / 2 : left;
}

/* Up to ROWS sequences, and of few of them several panels: gates take long to answer, but many at once. */
static void run_strip(const bb_recurrence *r, uint32_t part, int64_t panel, int64_t panels,
                      int64_t rows, const bb_recurrent_row *row) {
  const bb_recurrent_part *p = &r->part[part];
  const int64_t columns = p->gates * p->units, groups = p->units / GROUP, n = p->units * rows;
  const float *from[ROWS];
  float sum[LARGEST];
  int64_t apart[COLUMNS / GROUP];
  for (int64_t i = 0; i < rows; i++) from[i] = part ? row[i].held : row[i].from;
  for (int64_t g = 0; g < columns / GROUP; g++)
    apart[g] = g / groups * n * panels + g % groups * rows * GROUP;
  for (int64_t k = 0; k < panels; k++)
    product_by[rows](from, p->matrix + (panel + k) * r->width * columns, r->width, columns / GROUP,
                     sum + k * n, apart);
  const portion o = {r, p, row, rows, panel * p->units, n * panels, sum};
  for (int64_t g = 0; g < p->gates; g++) add_biases(&o, g, sum + g * o.n);
  step_of(r, part)(&o);
  if (part + 1 == r->parts) give(&o);
}

void LOOPS(const bb_recurrence *r, uint32_t part, int64_t first, int64_t last, int64_t rows,
           const bb_recurrent_row *row) {
  const int64_t most = rows < ROWS ? ROWS / rows : 1;
  for (int64_t panel = first, panels; panel < last; panel += panels) {
    panels = next_of(last - panel, most);
    for (int64_t i = 0, next; i < rows; i += next)
      run_strip(r, part, panel, panels, next = next_of(rows - i, ROWS), row + i);
  }
}
