/* random.h - random block programs and what is needed to run them.
 *
 * A case is a function of its seed and size alone, down to the serials of its nodes: two programs
 * made from one seed are equal, and a smaller size gives a prefix of the same program, so that a
 * failure shrinks by trying smaller sizes.  Values stay within a few thousand and no function that
 * is applied to a rounded value jumps, so that a difference means a wrong rewrite, not rounding.
 */
#ifndef BB_TESTS_RANDOM_H
#define BB_TESTS_RANDOM_H

#include "../../runtime/interp/interp.h"

typedef struct random_state {
  uint64_t state;
} random_state;

uint64_t random_next(random_state *random);
uint32_t random_below(random_state *random, uint32_t bound); /* 0 <= result < bound */
bool random_chance(random_state *random, uint32_t percent);
double random_real(random_state *random, double low, double high);

typedef struct random_case {
  bb_program *program;      /* at stage block: program->root is unfused */
  int64_t *symbol;          /* values of the program's symbols */
  int64_t *block;           /* a block size for each dim, most of which divide nothing */
  bb_interp_tensor *tensor; /* inputs and constants are bound */
} random_case;

/* The case of a seed with `size` operations, deferred in the innermost bb_protect(). */
random_case random_case_make(bb_context *ctx, uint64_t seed, uint32_t size);

/* The same with `lift` added to the exponents of weights that are divided by their sums, so that
 * outputs are what they are without it.  Programs with one lift differ in nothing else. */
random_case random_case_lifted(bb_context *ctx, uint64_t seed, uint32_t size, double lift);

/* Fails where an output is off by more than 1e-9 of its largest element; `what` and `number` say in
 * which of several runs. */
void random_compare(const bb_program *program, const bb_interp_tensor *got,
                    const bb_interp_tensor *want, const char *what, double number);

#endif
