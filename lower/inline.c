/* inline.c - chains of elementwise statements as one, so that what passes between them stays in registers.
 *
 * A statement whose result is read once, by an elementwise statement of the same shape further down the same
 * body, becomes a part of that one's expression.  What lacks an axis of the reader stays apart: there it is
 * computed once for each row or column (build_map.c).  A copy, and a scaling by a power of two, are done again by each
 * reader: that takes less than to keep what they give, and no rounding can tell the readers apart.  A copy is not made for who
 * stores it.
 */
#include "inline.h"

#include <math.h>

typedef struct uses {
  uint32_t writes, reads;
} uses;

typedef struct inliner {
  bb_tile_program *p;
  uses *tile;
} inliner;

static void count(inliner *n, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    for (uint32_t k = 0; k < s->operands; k++) n->tile[s->operand[k]].reads++;
    if (s->result != BB_NONE) n->tile[s->result].writes++;
    if (s->result != BB_NONE && s->accumulate) n->tile[s->result].reads++;
    if (s->second != BB_NONE) n->tile[s->second].writes++;
    count(n, &s->body);
    if (!s->loop) continue;
    count(n, &s->loop->body);
    for (uint32_t k = 0; s->loop->merge && k < s->loop->merge->components; k++)
      n->tile[s->loop->merged[k]].reads += 2; /* and what is outside */
  }
}

static bool writes(const bb_tile_stmt *s, uint32_t tile) {
  if (s->result == tile || s->second == tile) return true;
  const bb_tile_body *inner[2] = {&s->body, s->loop ? &s->loop->body : &s->body};
  for (int b = 0; b < 2; b++)
    for (uint32_t i = 0; i < inner[b]->count; i++)
      if (writes(inner[b]->stmt[i], tile)) return true;
  return false;
}

static bool reads(const bb_tile_stmt *s, uint32_t tile) {
  for (uint32_t k = 0; k < s->operands; k++)
    if (s->operand[k] == tile) return true;
  return false;
}

static bool is_scaling(const bb_expr *e) {
  int exponent;
  return e->op == BB_X_MUL && e->a[0]->op == BB_X_ARG && e->a[1]->op == BB_X_CONST &&
         fabs(frexp(e->a[1]->number, &exponent)) == 0.5;
}

/* What is only copied: whoever reads the copy may read the original. */
static bool is_copy(const inliner *n, const bb_tile_stmt *s) {
  const bb_tile *to = &n->p->tile[s->result], *from = &n->p->tile[s->operand[0]];
  return s->operands == 1 && s->expr->op == BB_X_ARG && s->expr->index == 0 &&
         to->rows == from->rows && to->cols == from->cols && to->dtype == from->dtype;
}

/* Narrow results are rounded where they are kept. */
static bool may_go(const inliner *n, const bb_tile_stmt *from) {
  if (from->kind != BB_TILE_MAP || from->stretches || from->stage) return false;
  const bb_tile *t = &n->p->tile[from->result];
  return n->tile[from->result].writes == 1 &&
         (n->tile[from->result].reads == 1 || is_scaling(from->expr) || is_copy(n, from)) &&
         t->place == BB_PLACE_REGISTERS && !t->partial && from->expr->dtype == t->dtype &&
         t->dtype != BB_F16 && t->dtype != BB_BF16 && !reads(from, from->result);
}

static bool fits(const inliner *n, const bb_tile_stmt *from, const bb_tile_stmt *into) {
  if (into->kind != BB_TILE_MAP || into->stretches || into->stage) return false;
  if (!bb_expr_may_join(into->expr, from->expr)) return false;
  const bb_tile *a = &n->p->tile[from->result], *b = &n->p->tile[into->result];
  if (a->rows != b->rows || a->cols != b->cols) return false;
  if (from->expr->coord && (from->at[0] != into->at[0] || from->at[1] != into->at[1])) return false;
  /* In place only element by element. */
  for (uint32_t k = 0; k < from->operands; k++) {
    const bb_tile *t = &n->p->tile[from->operand[k]];
    if (from->operand[k] == into->result && (t->rows != b->rows || t->cols != b->cols))
      return false;
  }
  uint32_t together = into->operands - 1;
  for (uint32_t k = 0; k < from->operands; k++) together += !reads(into, from->operand[k]);
  return together <= BB_TILE_OPERANDS;
}

static const bb_expr *operand(inliner *n, bb_tile_stmt *s, uint32_t tile) {
  uint32_t k = 0;
  while (k < s->operands && s->operand[k] != tile) k++;
  if (k == s->operands) s->operand[s->operands++] = tile;
  return bb_expr_arg(n->p->home, n->p->tile[tile].dtype, k);
}

/* `from` becomes a part of `into`, and is done there too. */
static void merge(inliner *n, const bb_tile_stmt *from, bb_tile_stmt *into) {
  bb_tile_stmt made = *into;
  const bb_expr *inner[BB_TILE_OPERANDS] = {0}, *outer[BB_TILE_OPERANDS] = {0};
  made.operands = 0;
  for (uint32_t k = 0; k < into->operands; k++)
    if (into->operand[k] != from->result) outer[k] = operand(n, &made, into->operand[k]);
  for (uint32_t k = 0; k < from->operands; k++) inner[k] = operand(n, &made, from->operand[k]);
  const bb_expr *part = bb_expr_substitute(n->p->home, from->expr, from->operands, inner);
  for (uint32_t k = 0; k < into->operands; k++)
    if (into->operand[k] == from->result) outer[k] = part;
  made.expr = bb_expr_substitute(n->p->home, into->expr, into->operands, outer);
  for (uint32_t k = 0; k < into->operands; k++) n->tile[into->operand[k]].reads--;
  for (uint32_t k = 0; k < made.operands; k++) n->tile[made.operand[k]].reads++;
  *into = made;
}

static void read_original(inliner *n, const bb_tile_stmt *copy, bb_tile_stmt *s) {
  for (uint32_t k = 0; k < s->operands; k++) {
    if (s->operand[k] != copy->result) continue;
    s->operand[k] = copy->operand[0];
    n->tile[copy->result].reads--;
    n->tile[copy->operand[0]].reads++;
  }
}

/* The statement goes into those that read its result; does none need it any more? */
static bool leaves(inliner *n, const bb_tile_body *body, uint32_t at) {
  const bb_tile_stmt *from = body->stmt[at];
  if (!may_go(n, from)) return false;
  bool same = true;
  for (uint32_t i = at + 1; same && n->tile[from->result].reads && i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    if (reads(s, from->result) && fits(n, from, s)) merge(n, from, s);
    if (s->kind == BB_TILE_STORE && is_copy(n, from)) read_original(n, from, s);
    for (uint32_t k = 0; k < from->operands; k++) same &= !writes(s, from->operand[k]);
  }
  if (n->tile[from->result].reads) return false;
  for (uint32_t k = 0; k < from->operands; k++) n->tile[from->operand[k]].reads--;
  return true;
}

static void go(inliner *n, bb_tile_body *body) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    bool gone = leaves(n, body, i);
    go(n, &s->body);
    if (s->loop) go(n, &s->loop->body);
    if (!gone) body->stmt[kept++] = s;
  }
  body->count = kept;
}

void bb_tile_inline(bb_tile_program *program) {
  bb_arena *scratch = bb_scratch(program->home->ctx);
  inliner n = {program, BB_NEW(scratch, uses, program->tiles + 1)};
  count(&n, &program->body);
  go(&n, &program->body);
  bb_scratch_end(scratch);
}
