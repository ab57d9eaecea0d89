/* scalar_match.c - is a term an element of what folds go over?
 *
 * The element is found, not tried: the variables of folds that were opened are open in the pattern, and
 * whatever variable of the term stands where one of them does is bound to it.  To put each variable
 * in the place of each would make terms for every choice, a product of as many as folds are nested.
 */
#include "scalar.h"

#include <string.h>

enum { ANY = BB_VARS }; /* no variable yet */

typedef struct attempt {
  bb_scalars *t;
  const bb_scalar_match *m;
  uint32_t walk;
  uint8_t place[BB_VARS]; /* of an open variable: the one it is bound to */
} attempt;

void bb_scalar_match_begin(bb_scalar_match *m, const bb_scalar *term) {
  *m = (bb_scalar_match){.term = term};
}

bool bb_scalar_match_open(bb_scalar_match *m, const bb_scalar *fold) {
  bool part = fold->kind == BB_SCALAR_PART;
  uint64_t bit = UINT64_C(1) << fold->var, known = m->open | m->term->free;
  if (!m->term->free || m->open & bit || (part && !(known >> fold->block & 1))) return false;
  m->open |= bit;
  m->block[fold->var] = part ? (uint8_t)fold->block : ANY;
  return true;
}

void bb_scalar_match_close(bb_scalar_match *m, const bb_scalar *fold) {
  m->open &= ~(UINT64_C(1) << fold->var);
}

/* An element of a block is where the block is. */
static bool put_variable(attempt *a, uint32_t pattern, uint32_t term) {
  while (a->m->open >> pattern & 1 && a->m->block[pattern] != ANY) pattern = a->m->block[pattern];
  if (!(a->m->open >> pattern & 1)) return pattern == term;
  if (a->place[pattern] == ANY && a->m->term->free >> term & 1) a->place[pattern] = (uint8_t)term;
  return a->place[pattern] == term;
}

static bool same_variables(attempt *a, const bb_scalar *pattern, const bb_scalar *term) {
  bool open = pattern->kind == BB_SCALAR_INDEX || pattern->kind == BB_SCALAR_SCAN ||
              pattern->kind == BB_SCALAR_BEFORE;
  if (open ? !put_variable(a, pattern->var, term->var) : pattern->var != term->var) return false;
  if (pattern->kind == BB_SCALAR_PART && !put_variable(a, pattern->block, term->block))
    return false;
  for (uint32_t i = 0; i < pattern->count; i++)
    if (!put_variable(a, pattern->index[i], term->index[i])) return false;
  return true;
}

static bool same_otherwise(const bb_scalar *a, const bb_scalar *b) {
  return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->fold == b->fold &&
         memcmp(&a->number, &b->number, sizeof a->number) == 0 && a->source == b->source &&
         a->serial == b->serial && a->count == b->count;
}

static bool same(attempt *a, const bb_scalar *pattern, const bb_scalar *term) {
  if (!(pattern->free & a->m->open)) return pattern == term;
  const bb_scalar *known = bb_scalar_recall(a->t, a->walk, pattern);
  if (known) return known == term;
  if (!same_otherwise(pattern, term) || !same_variables(a, pattern, term)) return false;
  for (uint32_t i = 0; i < 3; i++)
    if (!pattern->a[i] != !term->a[i] || (pattern->a[i] && !same(a, pattern->a[i], term->a[i])))
      return false;
  bb_scalar_remember(a->t, a->walk, pattern, term);
  return true;
}

bool bb_scalar_match_is(bb_scalars *t, const bb_scalar_match *m, const bb_scalar *pattern) {
  attempt a = {.t = t, .m = m, .walk = bb_scalar_walk_begin(t, pattern)};
  memset(a.place, ANY, sizeof a.place);
  return same(&a, pattern, m->term);
}
