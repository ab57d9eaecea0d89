/* algebra_cases.h - chains of reductions written as text, for the tests of fuse/algebra. */
#ifndef BB_TESTS_ALGEBRA_CASES_H
#define BB_TESTS_ALGEBRA_CASES_H

#include "fuse/algebra.h"

typedef struct case_fold {
  const char *name, *fold, *term, *payload;
} case_fold;

typedef struct algebra_case {
  const char *name;
  const char *elements; /* separated by spaces */
  const char *fixed;
  const char
      *facts; /* sign of each element and fixed value: '+' above 0, '.' any, '0' not below 0 */
  case_fold fold[8];
  const char *reason; /* a phrase of the refusal; NULL: derived */
} algebra_case;

extern const algebra_case good_cases[], bad_cases[];
extern const unsigned good_count, bad_count;

/* The chain of a case; ARGs in the order elements, fixed, results; extent(N) is the length. */
bb_chain case_chain(bb_program *program, const algebra_case *c);
/* An expression in the names of a case (results of all folds too). */
const bb_expr *case_expr(bb_program *program, const algebra_case *c, const char *text);

#endif
