/* again.c - what was computed under a fold, and is wanted again behind it, stays in its tile.
 *
 *   e = exp(x - m)                        e = exp(x - m)
 *   s = fold sum e               ==>      s = fold sum e
 *   y = exp(x - m) / s                    y = e / s
 *
 * Where a loop has one iteration its block is all there is, and the loop behind it, which has the same operands, makes the same of them.
 * Such a part of an expression has to be a function that takes longer than to write a block and read it again, of a block of the same
 * shape; between the two nothing that it is made of is written.  First names that are copies become what they are copies of.
 */
#include "again.h"

#include "tile_edit.h"

/* --- copies --- */

/* The tile that a statement copies as it is, both written once; BB_NONE: it does something else. */
static uint32_t original_of(bb_tile_program *p, const bb_tile_stmt *s) {
  if (!bb_tile_is_copy(s) || s->stretches) return BB_NONE;
  uint32_t from = s->operand[s->expr->index];
  bool one = bb_tile_writers(&p->body, s->result) == 1 && bb_tile_writers(&p->body, from) == 1;
  return one && bb_tile_have_one_form(&p->tile[s->result], &p->tile[from]) ? from : BB_NONE;
}

/* Both stand in one body: nothing reads the copy before it is made, or where the original is not there. */
static bool is_made_before(const bb_tile_body *body, uint32_t at, uint32_t tile) {
  for (uint32_t i = 0; i < at; i++)
    if (body->stmt[i]->result == tile && !body->stmt[i]->stretches) return true;
  return false;
}

/* A number that the copy is written over, before anything reads it; BB_NONE: there is none. */
static uint32_t number_before(const bb_tile_body *body, uint32_t at) {
  const bb_tile_stmt *copy = body->stmt[at];
  double number;
  for (uint32_t i = at; bb_tile_is_copy(copy) && !copy->stretches && i-- > 0;) {
    const bb_tile_stmt *s = body->stmt[i];
    if (!bb_tile_touches(s, copy->result)) continue;
    bool over =
        bb_tile_is_constant(s, &number) && !s->stretches && !bb_tile_reads(copy, copy->result);
    return over ? i : BB_NONE;
  }
  return BB_NONE;
}

static void rename_copies(bb_tile_program *p, bb_tile_body *body) {
  for (uint32_t i = body->count; i-- > 0;) {
    bb_tile_stmt *s = body->stmt[i];
    rename_copies(p, &s->body);
    if (s->loop) rename_copies(p, &s->loop->body);
    uint32_t number = number_before(body, i);
    if (number != BB_NONE) bb_tile_remove(body, number), i--;
    uint32_t from = original_of(p, s);
    if (from == BB_NONE || !is_made_before(body, i, from)) continue;
    bb_tile_remove(body, i);
    bb_tile_rename(&p->body, s->result, from);
  }
}

/* --- parts --- */

static bool is_costly_op(bb_expr_op op) {
  switch (op) {
  case BB_X_EXP:
  case BB_X_LOG:
  case BB_X_TANH:
  case BB_X_ERF:
  case BB_X_SIN:
  case BB_X_COS:
  case BB_X_ATAN:
  case BB_X_POW: return true;
  default: return false;
  }
}

/* Parts that an expression shares are looked at once: as a tree it may double with each. */
static bool is_costly(const bb_tile_program *p, const bb_expr *e) {
  bb_arena *scratch = bb_scratch(p->home->ctx);
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(scratch, e, &count);
  bool is = false;
  for (uint32_t i = 0; i < count && !is; i++) is = is_costly_op(node[i]->op);
  bb_scratch_end(scratch);
  return is;
}

/* May others read what it computes, as it computes it? */
static bool may_be_kept(bb_tile_program *p, const bb_tile_stmt *s) {
  const bb_tile *t = &p->tile[s->result];
  return s->kind == BB_TILE_MAP && !s->stretches && !s->stage && bb_tile_is_block(t) &&
         t->place == BB_PLACE_REGISTERS && !t->partial && s->expr->dtype == t->dtype &&
         t->dtype != BB_F16 && t->dtype != BB_BF16 && !bb_tile_reads(s, s->result) &&
         bb_tile_writers(&p->body, s->result) == 1 && is_costly(p, s->expr);
}

typedef struct part {
  const bb_expr *expr, *name;
} part;

static const bb_expr *replace(void *user, bb_program *program, const bb_expr *node,
                              const bb_expr *const a[3]) {
  const part *of = user;
  return node == of->expr ? of->name : bb_expr_rebuild(program, node, a);
}

static bool is_alike(const bb_tile_program *p, const bb_tile_stmt *a, const bb_tile_stmt *b) {
  const bb_tile *x = &p->tile[a->result], *y = &p->tile[b->result];
  return b->kind == BB_TILE_MAP && x->rows == y->rows && x->cols == y->cols &&
         (!a->expr->coord || (a->at[0] == b->at[0] && a->at[1] == b->at[1]));
}

/* Into the statements behind it, as long as its operands are what they were. */
static void share(bb_tile_program *p, const bb_tile_body *body, uint32_t at) {
  const bb_tile_stmt *from = body->stmt[at];
  part of = {bb_tile_named(p, from), bb_tile_name(p, from->result)};
  bool same = true;
  for (uint32_t i = at + 1; same && i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    if (is_alike(p, from, s)) {
      const bb_expr *named = bb_tile_named(p, s),
                    *now = bb_expr_rewrite(p->home, named, replace, &of);
      if (now != named) bb_tile_set(p, s, now);
    }
    for (uint32_t k = 0; k < from->operands; k++) same &= !bb_tile_writes(s, from->operand[k]);
  }
}

static void share_all(bb_tile_program *p, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    share_all(p, &s->body);
    if (s->loop) share_all(p, &s->loop->body);
    if (s->result != BB_NONE && may_be_kept(p, s)) share(p, body, i);
  }
}

void bb_tile_share_again(bb_tile_program *program) {
  rename_copies(program, &program->body);
  share_all(program, &program->body);
}
