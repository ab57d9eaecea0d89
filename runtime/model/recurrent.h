/* recurrent.h - between the native kernel of recurrences (native_recurrent.c), which knows sequences and threads, and its
 * loops (recurrent_loops.c), which are compiled for each instruction set.
 *
 * A step is one product of the states with a matrix for all gates, or two where the second takes what the first one's
 * gates left of the states: its parts.  Units of a state are taken by panels, each with the columns of all gates of its part, so
 * that what a step does with gates follows while their sums are near, and panels depend on nothing else of the step: whatever
 * thread has them, the results are the same to the bit.
 */
#ifndef BB_MODEL_RECURRENT_H
#define BB_MODEL_RECURRENT_H

#include <stdbool.h>
#include <stdint.h>

enum {
  BB_RECURRENT_LANES = 16,   /* columns that lie side by side */
  BB_RECURRENT_COLUMNS = 64, /* of a panel, at most */
  BB_RECURRENT_FUNCTIONS = 3,
  BB_RECURRENT_PARTS = 2
};

/* What a gate's sum goes through, by number (misc_recurrent.c). */
typedef enum bb_recurrent_function {
  BB_RECURRENT_SIGMOID,
  BB_RECURRENT_TANH,
  BB_RECURRENT_RELU,
  BB_RECURRENT_HARD_SIGMOID,
  BB_RECURRENT_SOFTSIGN,
  BB_RECURRENT_AFFINE /* with the usual numbers, which change nothing; and whatever is beyond it */
} bb_recurrent_function;

typedef struct bb_recurrent_part {
  int64_t first, gates; /* of the recurrence's, in ONNX's order */
  int64_t units,
      panels;          /* of each panel: of `units` columns for every gate, zero beyond the last */
  const float *matrix; /* [panels][gates * units / LANES][width][LANES] */
  const float *bias;   /* [gates][pitch] */
} bb_recurrent_part;

/* What all sequences of a direction share. */
typedef struct bb_recurrence {
  int64_t width,
      gates;     /* of a state; 4: with a memory, 3: update, reset and state, 1: a state alone */
  int64_t pitch; /* floats from a state to the next: as many as panels have units, or more */
  float clip;    /* 0: none */
  bool coupled, linear_first;
  int64_t function[BB_RECURRENT_FUNCTIONS];
  const float *peephole; /* [3][pitch], or NULL */
  uint32_t parts;
  bb_recurrent_part part[BB_RECURRENT_PARTS];
} bb_recurrence;

/* A sequence's step. */
typedef struct bb_recurrent_row {
  const float *inputs; /* [gates * width]: what they add to each gate */
  float *from;   /* the state before; of these and all below a panel's units are there, whole */
  float *to;     /* the state behind */
  float *memory; /* four gates: before and behind */
  float *update, *held; /* two parts: gate and state between them */
  float *result;        /* [width]: the state behind, once more; NULL: nobody wants it */
} bb_recurrent_row;

/* Panels `first` to `last` - 1 of a part of a step, of so many sequences. */
typedef void bb_recurrent_loops(const bb_recurrence *r, uint32_t part, int64_t first, int64_t last,
                                int64_t rows, const bb_recurrent_row *row);
bb_recurrent_loops bb_recurrent_loops_plain, bb_recurrent_loops_avx2, bb_recurrent_loops_avx512;

/* The best that this processor runs. */
bb_recurrent_loops *bb_recurrent_loops_here(void);

/* The native kernel by such loops.  False: not this case. */
struct bb_native_call;
bool bb_recurrent_run(const struct bb_native_call *call, bb_recurrent_loops *loops);

#endif
