/* recurrent_loops.c - the loops of recurrent.h: products of few rows with packed panels, and gates.
 *
 * Compiled once for every instruction set that is tried; LOOPS is the name of the result.  Each sum runs over the state in order,
 * in a lane of its own, however many rows are taken together.
 */
#include "recurrent.h"

#include <math.h>
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

#ifdef __clang__
#define STRAIGHT _Pragma("clang loop unroll(full)")
#else
#define STRAIGHT _Pragma("GCC unroll 16")
#endif

/* ROWS: sequences at once.  BESIDE: groups of 16 columns at once that registers hold the sums of, beside what they are made
 * of; it divides both widths of a panel. */
#if defined(__AVX512F__)
enum { BYTES = 64, ROWS = 6 };
#define BESIDE(rows, columns) ((columns) / GROUP)
#elif defined(__AVX2__)
enum { BYTES = 32, ROWS = 6 };
#define BESIDE(rows, columns) ((rows) == 1 ? (columns) / GROUP : (rows) == 2 ? (columns) / 32 : 1)
#else
#ifdef __x86_64__
enum { BYTES = 16, ROWS = 3 };
#else
enum { BYTES = 16, ROWS = 6 };
#endif
#define BESIDE(rows, columns) ((rows) == 1 ? (columns) / 32 : 1)
#endif
enum {
  LANES = BYTES / 4,
  GROUP = BB_RECURRENT_LANES,
  COLUMNS = BB_RECURRENT_COLUMNS,
  MOST_ROWS = 6,
  ACROSS = GROUP / LANES,       /* vectors of a group */
  LARGEST = MOST_ROWS * COLUMNS /* lanes of a strip */
};
typedef float vector __attribute__((vector_size(BYTES)));
typedef float loose __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias));

/* --- products --- */

/* Some groups of a panel's columns, `far` floats apart, for `rows` states; constants, so that the sums stay in registers. */
BB_INLINE void strip(const float *const *from, const float *matrix, int64_t depth, float *sum,
                     const int64_t *apart, const int rows, const int groups) {
  vector s[MOST_ROWS][COLUMNS / LANES];
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

/* Group g of the columns goes to sum + apart[g], row by row. */
typedef void product(const float *const *from, const float *matrix, int64_t depth, float *sum,
                     const int64_t *apart);
#define PRODUCT(rows, columns)                                                                     \
  static __attribute__((noinline)) void product_##rows##_##columns(                                \
      const float *const *from, const float *matrix, int64_t depth, float *sum,                    \
      const int64_t *apart) {                                                                      \
    for (int64_t g = 0; g < (columns) / GROUP; g += BESIDE(rows, columns))                         \
      strip(from, matrix + g * depth * GROUP, depth, sum, apart + g, rows, BESIDE(rows, columns)); \
  }
#define PRODUCTS(columns)                                                                          \
  PRODUCT(1, columns)                                                                              \
  PRODUCT(2, columns)                                                                              \
  PRODUCT(3, columns)                                                                              \
  PRODUCT(4, columns)                                                                              \
  PRODUCT(5, columns)                                                                              \
  PRODUCT(6, columns)
PRODUCTS(48)
PRODUCTS(64)

static product *const product_by[2][MOST_ROWS + 1] = {
    {0, product_1_48, product_2_48, product_3_48, product_4_48, product_5_48, product_6_48},
    {0, product_1_64, product_2_64, product_3_64, product_4_64, product_5_64, product_6_64}};

/* --- gates: `n` lanes of each, a multiple of GROUP --- */

/* Every lane of n, in groups that are vectors. */
#define EACH(l, n)                                                                                 \
  for (int64_t l##_at = 0; l##_at < (n); l##_at += GROUP)                                          \
    for (int64_t l = l##_at; l < l##_at + GROUP; l++)

/* Of a group of lanes. */
BB_INLINE void sigmoids(float *lane) {
  float e[GROUP];
  for (int l = 0; l < GROUP; l++) e[l] = -lane[l];
  bb_exps_f32(e, GROUP);
  for (int l = 0; l < GROUP; l++) lane[l] = 1.0f / (1.0f + e[l]);
}

/* As bb_tanh_f32() has it, but for what it divides: no power here is more than 1. */
BB_INLINE void tanhs(float *lane) {
  float e[GROUP];
  for (int l = 0; l < GROUP; l++) e[l] = -2.0f * fabsf(lane[l]);
  bb_exps_below_f32(e, GROUP);
  for (int l = 0; l < GROUP; l++) {
    float x = lane[l], large = 1.0f - 2.0f * e[l] / (1.0f + e[l]);
    lane[l] = fabsf(x) < 0.625f ? bb_tanh_small_f32(x) : copysignf(large, x);
  }
}

BB_INLINE float hard(float x) {
  float y = 0.2f * x + 0.5f;
  y = y < 1 ? y : 1;
  return y > 0 ? y : 0;
}

static void apply(int64_t function, float *lane, int64_t n) {
  switch (function) {
  case BB_RECURRENT_SIGMOID:
    for (int64_t at = 0; at < n; at += GROUP) sigmoids(lane + at);
    break;
  case BB_RECURRENT_TANH:
    for (int64_t at = 0; at < n; at += GROUP) tanhs(lane + at);
    break;
  case BB_RECURRENT_RELU: EACH(l, n) lane[l] = lane[l] <= 0 ? 0 : lane[l]; break;
  case BB_RECURRENT_HARD_SIGMOID: EACH(l, n) lane[l] = hard(lane[l]); break;
  case BB_RECURRENT_SOFTSIGN: EACH(l, n) lane[l] = lane[l] / (1.0f + fabsf(lane[l])); break;
  default: break;
  }
}

static void clip(float most, float *lane, int64_t n) {
  if (!(most > 0)) return;
  EACH(l, n) lane[l] = lane[l] > most ? most : lane[l] < -most ? -most : lane[l];
}

static void gate(const bb_recurrence *r, uint32_t which, float *lane, int64_t n) {
  clip(r->clip, lane, n);
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

/* The lanes of the portion's units from each sequence's array, and back. */
#define ROW_BY_ROW(o, at, i)                                                                       \
  for (int64_t at = 0, u_##at = (o)->unit; at < (o)->n; u_##at += GROUP)                           \
    for (int64_t i = 0; i < (o)->rows; i++, at += GROUP)
#define BRING(o, to, array)                                                                        \
  ROW_BY_ROW(o, at, i) memcpy((to) + at, (o)->row[i].array + u_at, GROUP * sizeof(float))
#define TAKE(o, array, from)                                                                       \
  ROW_BY_ROW(o, at, i) memcpy((o)->row[i].array + u_at, (from) + at, GROUP * sizeof(float))

static void add_biases(const portion *o, int64_t gate, float *restrict lane) {
  const float *bias = o->p->bias + gate * o->r->pitch;
  ROW_BY_ROW(o, at, i)
  for (int64_t l = 0; l < GROUP; l++) lane[at + l] += bias[u_at + l];
}

/* What the inputs add to gate `gate` of the part, nothing beyond the last unit. */
static void add_inputs(const portion *o, int64_t gate, float *restrict lane) {
  const int64_t width = o->r->width;
  ROW_BY_ROW(o, at, i) {
    const float *from = o->row[i].inputs + (o->p->first + gate) * width + u_at;
    const int64_t there = width - u_at;
    for (int64_t l = 0; l < GROUP && there >= GROUP; l++) lane[at + l] += from[l];
    for (int64_t l = 0; l < there && there < GROUP; l++) lane[at + l] += from[l];
  }
}

/* What gate `which` of the peepholes sees of the memory. */
static void see(const portion *o, int64_t which, const float *restrict memory,
                float *restrict lane) {
  const float *weight = o->r->peephole + which * o->r->pitch;
  ROW_BY_ROW(o, at, i)
  for (int64_t l = 0; l < GROUP; l++) lane[at + l] += weight[u_at + l] * memory[at + l];
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
  if (r->coupled) EACH(l, n) forget[l] = 1.0f - in[l];
  EACH(l, n) memory[l] = forget[l] * memory[l] + in[l] * next[l];
  TAKE(o, memory, memory);
  if (r->peephole) {
    see(o, 1, memory, out);
    gate(r, 0, out, n);
  }
  apply(r->function[2], memory, n);
  EACH(l, n) out[l] *= memory[l];
  TAKE(o, to, out);
}

/* The state between the one before and the next one. */
static void blend(const portion *o, const float *restrict update, float *restrict next) {
  float before[LARGEST];
  BRING(o, before, from);
  EACH(l, o->n) next[l] = (1.0f - update[l]) * next[l] + update[l] * before[l];
  TAKE(o, to, next);
}

/* All three gates at once: the state's share of the third is taken by the second. */
static void gated_step(const portion *o) {
  const int64_t n = o->n;
  float *update = o->sum, *reset = update + n, *next = reset + n;
  add_inputs(o, 0, update);
  add_inputs(o, 1, reset);
  gate(o->r, 0, update, 2 * n);
  EACH(l, n) next[l] *= reset[l];
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
  EACH(l, n) reset[l] *= before[l];
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
  const float *from[MOST_ROWS];
  float sum[LARGEST];
  int64_t apart[COLUMNS / GROUP];
  for (int64_t i = 0; i < rows; i++) from[i] = part ? row[i].held : row[i].from;
  for (int64_t g = 0; g < columns / GROUP; g++)
    apart[g] = g / groups * n * panels + g % groups * rows * GROUP;
  for (int64_t k = 0; k < panels; k++)
    product_by[columns == COLUMNS][rows](from, p->matrix + (panel + k) * r->width * columns,
                                         r->width, sum + k * n, apart);
  const portion o = {r, p, row, rows, panel * p->units, n * panels, sum};
  for (int64_t g = 0; g < p->gates; g++) add_biases(&o, g, sum + g * o.n);
  step_of(r, part)(&o);
  if (part + 1 == r->parts) give(&o);
}

void LOOPS(const bb_recurrence *r, uint32_t part, int64_t first, int64_t last, int64_t rows,
           const bb_recurrent_row *row) {
  const int64_t most = rows < ROWS ? MOST_ROWS / rows : 1;
  for (int64_t panel = first, panels; panel < last; panel += panels) {
    panels = next_of(last - panel, most);
    for (int64_t i = 0, next; i < rows; i += next)
      run_strip(r, part, panel, panels, next = next_of(rows - i, ROWS), row + i);
  }
}
