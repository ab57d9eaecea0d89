/* misc_recurrent.c - the reference kernel of recurrences whose steps have gates: each step takes what the inputs add to
 * every gate, and the state that the step before left.
 *
 * Operands: what the inputs add [steps, directions, batch, gates * H]; the matrix of states [directions, gates * H, H];
 * biases of the states [directions, gates * H], lengths [batch], first states and first memories [directions, batch, H],
 * peepholes [directions, 3 * H], all of which may be absent.  Results: the states [steps, directions, batch, H], the last
 * ones, and with four gates the last memories.  Gates stand in ONNX's order: input, output, forget, memory (4); update,
 * reset, state (3); state (1).
 */
#include "misc.h"

#include <math.h>
#include <string.h>

enum { MOST_FUNCTIONS = 6 };

typedef struct recurrence {
  const bb_misc_value *inputs, *matrix, *bias, *length, *first, *memory, *peephole;
  int64_t steps, directions, batch, gates, width; /* width: H */
  int64_t function[MOST_FUNCTIONS], each;         /* functions of a direction */
  double clip;
  bool reverse, coupled, linear_first;
  double *sum, *h, *c, *scratch; /* of one sequence */
} recurrence;

/* --- one step --- */

static double apply(int64_t function, double x) {
  switch (function) {
  case 0: return 1 / (1 + exp(-x));
  case 1: return tanh(x);
  case 2: return x > 0 || isnan(x) ? x : 0;
  case 3: return fmax(0, fmin(1, 0.2 * x + 0.5));
  case 4: return x / (1 + fabs(x));
  default: return x;
  }
}

static double clipped(const recurrence *r, double x) {
  if (!(r->clip > 0)) return x;
  return x > r->clip ? r->clip : x < -r->clip ? -r->clip : x;
}

static double function_of(const recurrence *r, int64_t d, int64_t which, double x) {
  return apply(r->function[d * r->each + which], clipped(r, x));
}

static double dot(const double *a, const double *b, int64_t n) {
  double sum[4] = {0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int j = 0; j < 4; j++) sum[j] += a[i + j] * b[i + j];
  for (; i < n; i++) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Row `row` of the matrix times a state, and its bias. */
static double of_state(const recurrence *r, int64_t d, int64_t row, const double *state) {
  int64_t rows = r->gates * r->width;
  double sum = dot(r->matrix->data + (d * rows + row) * r->width, state, r->width);
  return r->bias ? sum + r->bias->data[d * rows + row] : sum;
}

static void plain_step(const recurrence *r, int64_t d, const double *x) {
  for (int64_t j = 0; j < r->width; j++) r->sum[j] = x[j] + of_state(r, d, j, r->h);
  for (int64_t j = 0; j < r->width; j++) r->h[j] = function_of(r, d, 0, r->sum[j]);
}

static void gated_step(const recurrence *r, int64_t d, const double *x) {
  int64_t n = r->width;
  double *update = r->sum, *reset = r->sum + n, *next = r->sum + 2 * n, *held = r->scratch;
  for (int64_t j = 0; j < 2 * n; j++)
    r->sum[j] = function_of(r, d, 0, x[j] + of_state(r, d, j, r->h));
  for (int64_t j = 0; j < n; j++) held[j] = reset[j] * r->h[j];
  for (int64_t j = 0; j < n; j++) {
    double part = r->linear_first ? reset[j] * of_state(r, d, 2 * n + j, r->h)
                                  : of_state(r, d, 2 * n + j, held);
    next[j] = function_of(r, d, 1, x[2 * n + j] + part);
  }
  for (int64_t j = 0; j < n; j++) r->h[j] = (1 - update[j]) * next[j] + update[j] * r->h[j];
}

/* What gate `gate` of the peepholes sees of a memory. */
static double seen(const recurrence *r, int64_t d, int64_t gate, int64_t j, double memory) {
  return r->peephole ? r->peephole->data[(d * 3 + gate) * r->width + j] * memory : 0;
}

static void memory_step(const recurrence *r, int64_t d, const double *x) {
  int64_t n = r->width;
  for (int64_t j = 0; j < 4 * n; j++) r->sum[j] = x[j] + of_state(r, d, j, r->h);
  for (int64_t j = 0; j < n; j++) {
    double in = function_of(r, d, 0, r->sum[j] + seen(r, d, 0, j, r->c[j]));
    double forget = function_of(r, d, 0, r->sum[2 * n + j] + seen(r, d, 2, j, r->c[j]));
    if (r->coupled) forget = 1 - in;
    r->c[j] = forget * r->c[j] + in * function_of(r, d, 1, r->sum[3 * n + j]);
    double out = function_of(r, d, 0, r->sum[n + j] + seen(r, d, 1, j, r->c[j]));
    r->h[j] = out * apply(r->function[d * r->each + 2], r->c[j]);
  }
}

/* --- sequences --- */

static void start(const recurrence *r, const bb_misc_value *first, int64_t sequence,
                  double *state) {
  for (int64_t j = 0; j < r->width; j++)
    state[j] = first ? first->data[sequence * r->width + j] : 0;
}

static int64_t length_of(const bb_kernel *k, const recurrence *r, int64_t b) {
  if (!r->length) return r->steps;
  double length = r->length->data[b];
  if (!(length >= 0 && length <= (double)r->steps) || length != floor(length))
    bb_fail(k->ctx, BB_ERROR_INPUT, "a sequence of %g steps of %lld", length, (long long)r->steps);
  return (int64_t)length;
}

/* Sequence b in direction d; y: its states, by step. */
static void run_sequence(const bb_kernel *k, const recurrence *r, int64_t d, int64_t b, double *y) {
  int64_t length = length_of(k, r, b), sequence = d * r->batch + b;
  int64_t all = r->directions * r->batch, wide = r->gates * r->width;
  bool backwards = r->reverse || d == 1;
  start(r, r->first, sequence, r->h);
  start(r, r->memory, sequence, r->c);
  for (int64_t t = 0; t < length; t++) {
    int64_t at = backwards ? length - 1 - t : t;
    const double *x = r->inputs->data + (at * all + sequence) * wide;
    if (r->gates == 4)
      memory_step(r, d, x);
    else if (r->gates == 3)
      gated_step(r, d, x);
    else
      plain_step(r, d, x);
    memcpy(y + (at * all + sequence) * r->width, r->h, (size_t)r->width * sizeof *y);
  }
}

/* --- the kernel --- */

static bool has_shape(const bb_misc_value *v, uint32_t rank, const int64_t *shape) {
  return !v || (v->rank == rank && memcmp(v->shape, shape, rank * sizeof *shape) == 0);
}

static void check(const bb_kernel *k, const recurrence *r) {
  int64_t wide = r->gates * r->width;
  const int64_t state[] = {r->directions, r->batch, r->width};
  const int64_t inputs[] = {r->steps, r->directions, r->batch, wide};
  const int64_t matrix[] = {r->directions, wide, r->width};
  const int64_t peephole[] = {r->directions, 3 * r->width};
  bool fits = has_shape(r->inputs, 4, inputs) && has_shape(r->matrix, 3, matrix) &&
              has_shape(r->bias, 2, matrix) && has_shape(r->length, 1, &r->batch) &&
              has_shape(r->first, 3, state) && has_shape(r->memory, 3, state) &&
              has_shape(r->peephole, 2, peephole);
  bool gated = r->gates == 1 || r->gates == 3 || r->gates == 4;
  if (!fits || !gated || r->directions > 2 || r->width < 1)
    bb_fail(k->ctx, BB_ERROR_INPUT, "its operands do not fit each other");
}

void bb_misc_recurrent(const bb_kernel *k) {
  recurrence r = {.inputs = bb_misc_in(k, 0),
                  .matrix = bb_misc_in(k, 1),
                  .bias = bb_misc_optional(k, 2),
                  .length = bb_misc_optional(k, 3),
                  .first = bb_misc_optional(k, 4),
                  .memory = bb_misc_optional(k, 5),
                  .peephole = bb_misc_optional(k, 6),
                  .gates = bb_misc_int(k, "gates", 0),
                  .clip = bb_misc_float(k, "clip", 0),
                  .reverse = bb_misc_int(k, "reverse", 0) != 0,
                  .coupled = bb_misc_int(k, "coupled", 0) != 0,
                  .linear_first = bb_misc_int(k, "linear_before_reset", 0) != 0};
  if (r.inputs->rank != 4 || r.matrix->rank != 3)
    bb_fail(k->ctx, BB_ERROR_INPUT, "its operands have not 4 and 3 axes");
  r.steps = r.inputs->shape[0];
  r.directions = r.inputs->shape[1];
  r.batch = r.inputs->shape[2];
  r.width = r.matrix->shape[2];
  check(k, &r);
  r.each = r.gates == 4 ? 3 : r.gates == 3 ? 2 : 1;
  const int64_t *function = bb_misc_ints(k, "functions", (uint32_t)(r.directions * r.each));
  if (!function) bb_fail(k->ctx, BB_ERROR_INPUT, "attribute functions is missing");
  memcpy(r.function, function, (size_t)(r.directions * r.each) * sizeof *function);
  const int64_t state[] = {r.directions, r.batch, r.width};
  const int64_t all[] = {r.steps, r.directions, r.batch, r.width};
  bb_misc_value *y = bb_misc_out(k, 0, r.inputs->dtype, 4, all);
  bb_misc_value *last = bb_misc_out(k, 1, r.inputs->dtype, 3, state);
  bb_misc_value *memory = r.gates == 4 ? bb_misc_out(k, 2, r.inputs->dtype, 3, state) : NULL;
  double *room = BB_NEW(k->arena, double, (size_t)(r.gates + 3) * (size_t)r.width);
  r.sum = room;
  r.h = room + r.gates * r.width;
  r.c = r.h + r.width;
  r.scratch = r.c + r.width;
  for (int64_t d = 0; d < r.directions; d++)
    for (int64_t b = 0; b < r.batch; b++) {
      size_t at = (size_t)((d * r.batch + b) * r.width), bytes = (size_t)r.width * sizeof(double);
      run_sequence(k, &r, d, b, y->data);
      memcpy(last->data + at, r.h, bytes);
      if (memory) memcpy(memory->data + at, r.c, bytes);
    }
}
