/* sets.h - where masks hold among the iterations of a loop, as sets of integers (isl), and the loop cut there.
 *
 * Everything of isl stays behind this header: questions are texts in isl's notation, answers plain values, so that no
 * memory of isl's is held while something else may fail.  isl never ends the process: an error of its own, a set that
 * is no union of few intervals, or more work than BB_SETS_WORK are all answered by "not cut".
 */
#ifndef BB_LOWER_SETS_H
#define BB_LOWER_SETS_H

#include <stdbool.h>
#include <stdint.h>

enum {
  BB_SETS_MASKS = 16,
  BB_SETS_PARAMETERS = 24,
  BB_SETS_TERMS = 8,
  BB_SETS_NODES = 512,
  BB_SETS_WORK = 1 << 21 /* isl's own count of operations */
};

/* Extents and numbers of iterations are below it. */
#define BB_SETS_MOST ((int64_t)1 << 40)

/* A mask over the tile of iteration k.  Texts are sets "{ [k] : ... }" over the parameters. */
typedef struct bb_sets_mask {
  const char *holds; /* the iterations in which it may hold somewhere */
  const char *fails; /* those in which it may fail somewhere */
  bool idle;         /* an iteration in which it holds nowhere can be left out */
} bb_sets_mask;

typedef struct bb_sets_question {
  uint32_t parameters; /* named p0, p1, ... */
  const char *context; /* what is known of them: "[p0, ...] -> { : ... }" */
  const char *domain;  /* the loop's iterations, from 0 on */
  uint32_t masks;
  bb_sets_mask mask[BB_SETS_MASKS];
  uint32_t most; /* stretches at most, from 1; with 1 none is clean */
} bb_sets_question;

/* Values of integers, by index in `node`. */
typedef enum bb_sets_kind {
  BB_SETS_SUM,    /* number + by[i] times parameter of[i], or node of[i] - BB_SETS_PARAMETERS */
  BB_SETS_FLOOR,  /* a / number, rounded down */
  BB_SETS_MIN,    /* of a and b */
  BB_SETS_MAX,    /* of a and b */
  BB_SETS_SELECT, /* a where c is not negative, else b */
} bb_sets_kind;

typedef struct bb_sets_node {
  bb_sets_kind kind;
  int64_t number;
  uint32_t a, b, c, terms;
  int64_t by[BB_SETS_TERMS];
  uint32_t of[BB_SETS_TERMS];
  bool positive; /* FLOOR: a is never negative, or what it is then does not matter */
} bb_sets_node;

/* Iterations from <= k <= last; none where last < from. */
typedef struct bb_sets_stretch {
  uint32_t from, last;
  bool clean; /* the masks of `clean` below hold everywhere */
} bb_sets_stretch;

typedef struct bb_sets_answer {
  uint32_t stretches; /* ascending, in no iteration twice; 0: nothing was found out */
  bb_sets_stretch stretch[4];
  bool gave_up;   /* an easier question may have an answer */
  uint32_t clean; /* bit i: mask i holds everywhere in the clean stretches */
  uint32_t nodes;
  bb_sets_node node[BB_SETS_NODES];
} bb_sets_answer;

void bb_sets_solve(const bb_sets_question *question, bb_sets_answer *answer);

#endif
