/* native_recurrent.c - recurrences whose steps have gates (interp/misc_recurrent.c says what is computed) in floats of 32 bits,
 * by packed products.
 *
 * The matrix of states is packed for recurrent_loops.c in the first run where it is a constant, else in each.  Directions and
 * groups of sequences depend on nothing of each other: each thread takes some from the first step to the last.  Where
 * there are too few of them for all threads, or a group would read too much for too few sequences, the panels of each step are
 * shared out.  Floats of 16 bits are widened before the first step, and narrowed after the last.
 *
 * Why it is a kernel here and no loop that is lowered: a tile program's tasks have nothing to tell each other before a nest's end, and
 * of a step every state wants all states of the one before.  A nest for each step would be a launch for each, and one task for all
 * steps leaves threads idle where sequences are few.
 */
#include "native.h"
#include "recurrent.h"

#include "../interp/misc.h"

#include <stdint.h>
#include <string.h>

enum {
  INPUTS,
  MATRIX,
  BIAS,
  LENGTH,
  FIRST,
  MEMORY,
  PEEPHOLE,
  OPERANDS, /* as the reference kernel has them */
  STATES = 0,
  LAST,
  LAST_MEMORY,
  RESULTS,
  MOST_DIRECTIONS = 2,
  PADDING = BB_RECURRENT_COLUMNS, /* states are padded to a multiple of it */
  LINE = 64,
  WORTH_SHARING =
      1 << 16,      /* multiplications of a step: below, threads would wait longer than they work */
  NEAR = 200 << 10, /* floats of a matrix that the second cache holds beside the rest */
  ROWS_THAT_HIDE = 8, /* sequences at least of a group that reads a matrix from farther away */
  CHUNK = 4096        /* elements that are converted at once */
};

typedef struct running {
  const bb_native_call *call;
  bb_recurrent_loops *loops;
  int64_t steps, directions, batch, width, gates, pitch;
  bool reverse;
  bb_recurrence direction[MOST_DIRECTIONS];
  const float *inputs;   /* [steps, directions, batch, gates * width] */
  const int32_t *length; /* NULL: all have all steps */
  float *result;         /* [steps, directions, batch, width], or NULL */
  float *state[2]; /* [directions, batch, pitch], as all below: of even steps and of odd ones */
  float *memory, *update, *held;
  bb_recurrent_row *row;         /* [directions, batch]: of this step, those that have one */
  int64_t rows[MOST_DIRECTIONS]; /* of each direction where steps are shared out */
  int64_t parts; /* groups of sequences of a direction, or shares of a step's panels */
  uint32_t part;
} running;

/* --- operands --- */

static size_t count_of(const bb_native_array *a) {
  size_t count = 1;
  for (uint32_t i = 0; i < a->rank; i++) count *= (size_t)a->shape[i];
  return count;
}

/* At the beginning of a line. */
static float *floats(const bb_native_call *call, size_t count) {
  uintptr_t memory = (uintptr_t)bb_arena_array(call->arena, count + LINE, sizeof(float));
  return (float *)((memory + LINE - 1) / LINE * LINE);
}

typedef struct conversion {
  bb_dtype dtype;
  size_t count;
  char *narrow;
  float *wide;
  bool widens;
} conversion;

static void convert_chunk(void *user, int64_t task, uint32_t thread) {
  const conversion *c = user;
  double room[CHUNK];
  size_t at = (size_t)task * CHUNK, n = c->count - at < CHUNK ? c->count - at : CHUNK;
  char *narrow = c->narrow + at * bb_dtype_bytes(c->dtype);
  (void)thread;
  if (c->widens) bb_interp_load(c->dtype, narrow, n, room);
  for (size_t i = 0; c->widens && i < n; i++) c->wide[at + i] = (float)room[i];
  for (size_t i = 0; !c->widens && i < n; i++) room[i] = (double)c->wide[at + i];
  if (!c->widens) bb_interp_store(c->dtype, room, n, narrow);
}

static void convert(const bb_native_call *call, conversion c) {
  call->class->spread(call->queue, (int64_t)((c.count + CHUNK - 1) / CHUNK), convert_chunk, &c);
}

/* The elements of an operand as floats; NULL: it is absent. */
static const float *widened(const bb_native_call *call, uint32_t i) {
  if (i >= call->nin || call->in[i].absent) return NULL;
  const bb_native_array *a = &call->in[i];
  if (a->dtype == BB_F32) return a->data;
  size_t count = count_of(a);
  float *wide = floats(call, count);
  convert(call, (conversion){a->dtype, count, a->data, wide, true});
  return wide;
}

/* Where a result's elements go; NULL: nobody wants it. */
static float *wide_result(const bb_native_call *call, uint32_t i) {
  if (i >= call->nout || call->out[i].absent) return NULL;
  const bb_native_array *a = &call->out[i];
  return a->dtype == BB_F32 ? a->data : floats(call, count_of(a));
}

static void narrow_result(const bb_native_call *call, uint32_t i, float *wide) {
  if (!wide || call->out[i].dtype == BB_F32) return;
  const bb_native_array *a = &call->out[i];
  convert(call, (conversion){a->dtype, count_of(a), a->data, wide, false});
}

/* --- panels --- */

/* `from` has the rows of all gates, one after the other. */
static void pack(const bb_recurrence *r, const bb_recurrent_part *p, const float *from, float *to) {
  enum { GROUP = BB_RECURRENT_LANES };
  const int64_t width = r->width;
  for (int64_t panel = 0; panel < p->panels; panel++)
    for (int64_t g = 0; g < p->gates; g++)
      for (int64_t u = 0; u < p->units; u++, to += u % GROUP ? 0 : GROUP * width) {
        const int64_t unit = panel * p->units + u;
        const float *row = from + ((p->first + g) * width + unit) * width;
        for (int64_t k = 0; k < width; k++) to[k * GROUP + u % GROUP] = unit < width ? row[k] : 0;
      }
}

static int64_t columns_of(const bb_recurrent_part *p) {
  return p->panels * p->gates * p->units;
}

/* What the products of a step are, but for their operands. */
static void divide(bb_recurrence *r) {
  static const bb_recurrent_part one = {0, 1, 64}, three = {0, 3, 16}, four = {0, 4, 16},
                                 two[] = {{0, 2, 32}, {2, 1, 64}};
  r->parts = r->gates == 3 && !r->linear_first ? 2 : 1;
  r->part[0] = r->parts == 2 ? two[0] : r->gates == 4 ? four : r->gates == 3 ? three : one;
  r->part[1] = two[1];
  for (uint32_t i = 0; i < r->parts; i++)
    r->part[i].panels = (r->width + r->part[i].units - 1) / r->part[i].units;
}

/* Memory that stays with the step. */
static float *kept_floats(const bb_native_call *call, size_t bytes) {
  bb_native_kept *kept = call->kept;
  if (kept->bytes != bytes) {
    kept->memory = bb_resize(call->ctx, kept->memory, kept->bytes, 0);
    kept->bytes = 0;
    kept->memory = bb_resize(call->ctx, NULL, 0, bytes);
    kept->bytes = bytes;
  }
  return (float *)(((uintptr_t)kept->memory + LINE - 1) / LINE * LINE);
}

/* What can fail comes before memory is kept, which is packed then. */
static void pack_matrices(running *n) {
  const bb_native_call *call = n->call;
  const bb_recurrence *first = &n->direction[0];
  const bool constant = call->in[MATRIX].constant;
  int64_t columns = 0;
  for (uint32_t i = 0; i < first->parts; i++) columns += columns_of(&first->part[i]);
  const size_t count = (size_t)(n->directions * columns * n->width);
  const size_t bytes = count * sizeof(float) + LINE;
  const bool there = constant && call->kept->bytes == bytes;
  const float *matrix = there ? NULL : widened(call, MATRIX);
  float *to = constant ? kept_floats(call, bytes) : floats(call, count);
  for (int64_t d = 0; d < n->directions; d++) {
    bb_recurrence *r = &n->direction[d];
    for (uint32_t i = 0; i < r->parts; i++) {
      r->part[i].matrix = to;
      if (!there) pack(r, &r->part[i], matrix + d * r->gates * r->width * r->width, to);
      to += columns_of(&r->part[i]) * r->width;
    }
  }
}

/* Vectors of `width` floats, `pitch` apart; `from` NULL: zeros. */
static const float *spaced(const running *n, const float *from, int64_t vectors) {
  float *to = floats(n->call, (size_t)(vectors * n->pitch));
  for (int64_t g = 0; from && g < vectors; g++)
    memcpy(to + g * n->pitch, from + g * n->width, (size_t)n->width * sizeof *to);
  return to;
}

static void space_vectors(running *n) {
  const float *bias = widened(n->call, BIAS), *peephole = widened(n->call, PEEPHOLE);
  for (int64_t d = 0; d < n->directions; d++) {
    bb_recurrence *r = &n->direction[d];
    const float *all = spaced(n, bias ? bias + d * r->gates * n->width : NULL, r->gates);
    for (uint32_t i = 0; i < r->parts; i++) r->part[i].bias = all + r->part[i].first * n->pitch;
    if (peephole) r->peephole = spaced(n, peephole + d * 3 * n->width, 3);
  }
}

/* --- sequences: numbered by direction and place in the batch --- */

static int64_t length_of(const running *n, int64_t b) {
  return n->length ? n->length[b] : n->steps;
}

static void start(const running *n, const float *first, float *state) {
  for (int64_t s = 0; first && s < n->directions * n->batch; s++)
    memcpy(state + s * n->pitch, first + s * n->width, (size_t)n->width * sizeof *state);
}

/* The sequences of `from` to `to` - 1 of a direction that have a step t; how many these are. */
static int64_t take_step(const running *n, int64_t d, int64_t from, int64_t to, int64_t t) {
  bb_recurrent_row *row = n->row + d * n->batch + from;
  int64_t rows = 0;
  for (int64_t b = from; b < to; b++) {
    const int64_t length = length_of(n, b), sequence = d * n->batch + b;
    if (t >= length) continue;
    const int64_t at = (n->reverse || d == 1) ? length - 1 - t : t;
    const int64_t place = at * n->directions * n->batch + sequence, state = sequence * n->pitch;
    row[rows++] = (bb_recurrent_row){.inputs = n->inputs + place * n->gates * n->width,
                                     .from = n->state[t % 2] + state,
                                     .to = n->state[(t + 1) % 2] + state,
                                     .memory = n->memory + state,
                                     .update = n->update + state,
                                     .held = n->held + state,
                                     .result = n->result ? n->result + place * n->width : NULL};
  }
  return rows;
}

/* A group of sequences, or all of them, from the first step to the last. */
static void run_group(void *user, int64_t task, uint32_t thread) {
  const running *n = user;
  const int64_t d = task / n->parts, g = task % n->parts;
  const int64_t from = n->batch * g / n->parts, to = n->batch * (g + 1) / n->parts;
  const bb_recurrence *r = &n->direction[d];
  (void)thread;
  for (int64_t t = 0, rows; t < n->steps && (rows = take_step(n, d, from, to, t)); t++)
    for (uint32_t i = 0; i < r->parts; i++)
      n->loops(r, i, 0, r->part[i].panels, rows, n->row + d * n->batch + from);
}

/* Some panels of one step. */
static void run_share(void *user, int64_t task, uint32_t thread) {
  const running *n = user;
  const int64_t d = task / n->parts, share = task % n->parts;
  const bb_recurrence *r = &n->direction[d];
  const int64_t panels = r->part[n->part].panels;
  (void)thread;
  n->loops(r, n->part, panels * share / n->parts, panels * (share + 1) / n->parts, n->rows[d],
           n->row + d * n->batch);
}

static void run_shared(running *n) {
  const bb_native_call *call = n->call;
  for (int64_t t = 0; t < n->steps; t++) {
    for (int64_t d = 0; d < n->directions; d++) n->rows[d] = take_step(n, d, 0, n->batch, t);
    if (n->rows[0] == 0) return; /* lengths are those of all directions */
    for (n->part = 0; n->part < n->direction[0].parts; n->part++)
      call->class->spread(call->queue, n->directions * n->parts, run_share, n);
  }
}

static void run_steps(running *n) {
  const bb_native_call *call = n->call;
  const int64_t threads = call->class->threads(call->queue);
  const int64_t wanted = (threads + n->directions - 1) / n->directions;
  const int64_t matrix = n->gates * n->width * n->width;
  const bool few = n->batch<wanted, far = matrix> NEAR && n->batch < wanted * ROWS_THAT_HIDE;
  n->parts = wanted;
  if (wanted > 1 && (few || far) && n->directions * n->batch * matrix >= WORTH_SHARING) {
    run_shared(n);
    return;
  }
  if (few) n->parts = n->batch;
  call->class->spread(call->queue, n->directions * n->parts, run_group, n);
}

/* What is behind a sequence's end is 0; its last state and memory. */
static void finish(const running *n, float *last, float *memory) {
  const size_t bytes = (size_t)n->width * sizeof(float);
  for (int64_t s = 0; s < n->directions * n->batch; s++) {
    const int64_t length = length_of(n, s % n->batch);
    for (int64_t t = length; n->result && t < n->steps; t++)
      memset(n->result + (t * n->directions * n->batch + s) * n->width, 0, bytes);
    if (last) memcpy(last + s * n->width, n->state[length % 2] + s * n->pitch, bytes);
    if (memory) memcpy(memory + s * n->width, n->memory + s * n->pitch, bytes);
  }
}

/* --- the kernel --- */

static bool has_shape(const bb_native_call *call, uint32_t i, uint32_t rank, const int64_t *shape) {
  if (i >= call->nin || call->in[i].absent) return true;
  const bb_native_array *a = &call->in[i];
  bool alike = i == LENGTH ? a->dtype == BB_I32 : a->dtype == call->in[INPUTS].dtype;
  return alike && !a->room && a->rank == rank && memcmp(a->shape, shape, rank * sizeof *shape) == 0;
}

static bool gives(const bb_native_call *call, uint32_t i, uint32_t rank, const int64_t *shape) {
  if (i >= call->nout || call->out[i].absent) return true;
  const bb_native_array *a = &call->out[i];
  return a->dtype == call->in[INPUTS].dtype && !a->room && a->rank == rank &&
         memcmp(a->shape, shape, rank * sizeof *shape) == 0;
}

/* Whether a result has memory in common with an operand. */
static bool overlaps(const bb_native_call *call) {
  for (uint32_t o = 0; o < call->nout; o++)
    for (uint32_t i = 0; i < call->nin; i++) {
      const bb_native_array *out = &call->out[o], *in = &call->in[i];
      if (out->absent || in->absent) continue;
      uintptr_t a = (uintptr_t)out->data, b = (uintptr_t)in->data;
      if (a < b + count_of(in) * bb_dtype_bytes(in->dtype) &&
          b < a + count_of(out) * bb_dtype_bytes(out->dtype))
        return true;
    }
  return false;
}

/* Sizes and operands that these loops take; all else is the reference kernel's, which says what is wrong. */
static bool read_sizes(running *n) {
  const bb_native_call *call = n->call;
  const bool memory = call->nout > LAST_MEMORY && !call->out[LAST_MEMORY].absent;
  if (call->nin < 2 || call->nin > OPERANDS || call->nout > RESULTS) return false;
  if (memory && n->gates != 4) return false;
  const bb_native_array *x = &call->in[INPUTS], *matrix = &call->in[MATRIX];
  if (x->absent || matrix->absent || x->rank != 4 || matrix->rank != 3) return false;
  if (x->dtype != BB_F32 && x->dtype != BB_F16 && x->dtype != BB_BF16) return false;
  n->steps = x->shape[0], n->directions = x->shape[1], n->batch = x->shape[2];
  n->width = matrix->shape[2];
  if (n->directions < 1 || n->directions > MOST_DIRECTIONS) return false;
  if (n->batch < 1 || n->batch > INT32_MAX / PADDING || n->width < 1 || n->width > INT16_MAX)
    return false;
  n->pitch = (n->width + PADDING - 1) / PADDING * PADDING;
  const int64_t wide = n->gates * n->width;
  const int64_t inputs[] = {n->steps, n->directions, n->batch, wide};
  const int64_t of_states[] = {n->directions, wide, n->width};
  const int64_t state[] = {n->directions, n->batch, n->width};
  const int64_t all[] = {n->steps, n->directions, n->batch, n->width};
  const int64_t peephole[] = {n->directions, 3 * n->width};
  return has_shape(call, INPUTS, 4, inputs) && has_shape(call, MATRIX, 3, of_states) &&
         has_shape(call, BIAS, 2, of_states) && has_shape(call, LENGTH, 1, &n->batch) &&
         has_shape(call, FIRST, 3, state) && has_shape(call, MEMORY, 3, state) &&
         has_shape(call, PEEPHOLE, 2, peephole) && gives(call, STATES, 4, all) &&
         gives(call, LAST, 3, state) && gives(call, LAST_MEMORY, 3, state);
}

static bool read_attributes(running *n) {
  const bb_native_call *call = n->call;
  const bb_kernel k = {.ctx = call->ctx, .arena = call->arena, .misc = call->misc};
  n->gates = bb_misc_int(&k, "gates", 0);
  if (n->gates != 1 && n->gates != 3 && n->gates != 4) return false;
  if (!read_sizes(n)) return false;
  n->reverse = bb_misc_int(&k, "reverse", 0) != 0;
  const int64_t each = n->gates == 4 ? 3 : n->gates == 3 ? 2 : 1;
  const int64_t *function = bb_misc_ints(&k, "functions", (uint32_t)(n->directions * each));
  if (!function) return false;
  for (int64_t d = 0; d < n->directions; d++) {
    bb_recurrence *r = &n->direction[d];
    *r = (bb_recurrence){.width = n->width,
                         .gates = n->gates,
                         .pitch = n->pitch,
                         .clip = (float)bb_misc_float(&k, "clip", 0),
                         .coupled = bb_misc_int(&k, "coupled", 0) != 0,
                         .linear_first = bb_misc_int(&k, "linear_before_reset", 0) != 0};
    memcpy(r->function, function + d * each, (size_t)each * sizeof *function);
    divide(r);
  }
  return true;
}

/* False: one of them is no length, which the reference kernel says. */
static bool read_lengths(running *n) {
  const bb_native_call *call = n->call;
  if (LENGTH >= call->nin || call->in[LENGTH].absent) return true;
  n->length = call->in[LENGTH].data;
  for (int64_t b = 0; b < n->batch; b++)
    if (n->length[b] < 0 || n->length[b] > n->steps) return false;
  return true;
}

bool bb_recurrent_run(const bb_native_call *call, bb_recurrent_loops *loops) {
  running n = {.call = call, .loops = loops};
  if (!read_attributes(&n) || !read_lengths(&n) || overlaps(call)) return false;
  const size_t sequences = (size_t)(n.directions * n.batch), states = sequences * (size_t)n.pitch;
  float **array[] = {&n.state[0], &n.state[1], &n.memory, &n.update, &n.held};
  for (size_t i = 0; i < sizeof array / sizeof *array; i++) *array[i] = floats(call, states);
  n.row = BB_NEW(call->arena, bb_recurrent_row, sequences);
  pack_matrices(&n);
  space_vectors(&n);
  n.inputs = widened(call, INPUTS);
  n.result = wide_result(call, STATES);
  start(&n, widened(call, FIRST), n.state[0]);
  start(&n, widened(call, MEMORY), n.memory);
  run_steps(&n);
  float *last = wide_result(call, LAST), *memory = wide_result(call, LAST_MEMORY);
  finish(&n, last, memory);
  narrow_result(call, STATES, n.result);
  narrow_result(call, LAST, last);
  narrow_result(call, LAST_MEMORY, memory);
  return true;
}

/* --- the processor --- */

bb_recurrent_loops *bb_recurrent_loops_here(void) {
  bb_recurrent_loops *loops = bb_recurrent_loops_plain;
#ifdef __x86_64__
  if (bb_native_set() == BB_SET_AVX2) loops = bb_recurrent_loops_avx2;
  if (bb_native_set() == BB_SET_AVX512) loops = bb_recurrent_loops_avx512;
#endif
  return loops;
}

bool bb_native_recurrent(const bb_native_call *call) {
  return bb_recurrent_run(call, bb_recurrent_loops_here());
}
