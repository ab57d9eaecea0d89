/* emit_c_nest.c - nests: which loops of a tile program become tasks.
 *
 * Where the outer loops alone make too few tasks, a loop that ends their body makes more of them.  What stands
 * before it is then either done by each task anew, or by a nest of its own, once, which hands on what
 * the tasks of the next one read: vectors in memory that all share, and lists.
 */
#include "emit_c_parts.h"

#include <math.h>
#include <string.h>

static bool is_spread(const bb_tile_stmt *s) {
  return s->kind == BB_TILE_LOOP && s->loop->spread != BB_SPREAD_NONE && s->loop->stretches == 1;
}

/* Fewer tasks than FEW leave threads idle; fewer than MANY leave some idle in the end. */
enum { FEW_TASKS = 8, MANY_TASKS = 32, UNKNOWN_TRIPS = 16 };

/* What a task should take at least, in vector operations. */
enum { LITTLE_WORK = 4 };

static double known_trips(const bb_tile_loop *l) {
  bb_tile_index from = l->stretch[0].from, to = l->stretch[0].to;
  bool known = to && from->op == BB_X_CONST && to->op == BB_X_CONST && l->step->op == BB_X_CONST;
  return known ? ceil((to->number - from->number) / l->step->number) : UNKNOWN_TRIPS;
}

/* About how many vector operations a body takes. */
static double work_of(const bb_c *c, const bb_tile_body *body) {
  double work = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    work += work_of(c, &s->body);
    if (s->loop) work += known_trips(s->loop) * work_of(c, &s->loop->body);
    uint32_t tile = s->result != BB_NONE ? s->result : s->operands ? s->operand[0] : BB_NONE;
    if (tile != BB_NONE)
      work += bb_tile_elements(&c->p->tile[tile]) *
              (s->kind == BB_TILE_DOT ? bb_c_depth(c->p, s) : 2) / 8;
    if (s->kind == BB_TILE_FOLD) work += bb_tile_elements(&c->p->tile[s->operand[0]]) / 8;
  }
  return work;
}

static bool has(const bb_tile_body *body, bb_tile_kind kind) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind == kind || has(&s->body, kind) || (s->loop && has(&s->loop->body, kind)))
      return true;
  }
  return false;
}

static bool depends_on_loops(const bb_c_nest *n, bb_tile_index index) {
  for (uint32_t k = 0; index && k < n->loops; k++)
    if (bb_expr_uses_arg(index, n->loop[k]->variable)) return true;
  return false;
}

static double tasks_of(const bb_c_nest *n) {
  double tasks = 1;
  for (uint32_t k = 0; k < n->loops; k++) tasks *= known_trips(n->loop[k]);
  return tasks;
}

static bb_tile_body all_but_last(const bb_tile_body *body) {
  return (bb_tile_body){body->count - 1, body->stmt};
}

/* A loop that ends a body, whose iterations may be tasks; `again`: even if each does anew what stands
 * before it. */
static const bb_tile_loop *ending_loop(const bb_c_nest *n, bool again) {
  if (!n->body->count || n->loops == BB_TILE_OPERANDS || tasks_of(n) >= MANY_TASKS) return NULL;
  const bb_tile_stmt *last = n->body->stmt[n->body->count - 1];
  const bb_tile_body before = all_but_last(n->body);
  if (last->kind != BB_TILE_LOOP) return NULL;
  const bb_tile_loop *l = last->loop;
  bool may = l->parallel && l->stretches == 1 && l->stretch[0].to && known_trips(l) > 1 &&
             !depends_on_loops(n, l->stretch[0].from) && !depends_on_loops(n, l->stretch[0].to) &&
             has(&l->body, BB_TILE_DOT);
  if (again) may &= !has(&before, BB_TILE_DOT) && !has(&before, BB_TILE_STORE);
  return may ? l : NULL;
}

/* Its products are worth tasks of their own though each of them does anew what stands before it. */
static bool is_worth_repeating(const bb_c *c, const bb_c_nest *n, const bb_tile_loop *l) {
  const bb_tile_body before = all_but_last(n->body);
  return (tasks_of(n) < FEW_TASKS ? 2 : 8) * work_of(c, &before) <= work_of(c, &l->body);
}

static const bb_tile_body *joined(const bb_c *c, const bb_tile_body *before, uint32_t count,
                                  const bb_tile_body *after) {
  bb_tile_body *made = BB_NEW(c->out->arena, bb_tile_body, 1);
  made->count = count + after->count;
  made->stmt = BB_NEW(c->out->arena, bb_tile_stmt *, made->count + 1);
  if (count) memcpy(made->stmt, before->stmt, count * sizeof *made->stmt);
  if (after->count) memcpy(made->stmt + count, after->stmt, after->count * sizeof *made->stmt);
  return made;
}

/* --- in two --- */

/* What a nest of its own has to save, or to spread over more tasks, in vector operations of all tasks. */
enum { WORTH_A_NEST = 1 << 17 };

typedef struct touched {
  bool *read, *written; /* by tile */
  bool scratch;         /* a list of the kernel's own */
} touched;

static void note_touched(const bb_c *c, const bb_tile_body *body, touched *t) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    for (uint32_t k = 0; k < s->operands; k++) t->read[s->operand[k]] = true;
    if (s->result != BB_NONE) t->written[s->result] = true;
    if (s->second != BB_NONE) t->written[s->second] = true;
    if (s->view != BB_NONE) t->scratch |= c->p->view[s->view].scratch;
    note_touched(c, &s->body, t);
    if (s->loop) note_touched(c, &s->loop->body, t);
  }
}

static touched touched_by(const bb_c *c, const bb_tile_body *body) {
  touched t = {.read = BB_NEW(c->out->arena, bool, c->p->tiles + 1),
               .written = BB_NEW(c->out->arena, bool, c->p->tiles + 1)};
  note_touched(c, body, &t);
  return t;
}

/* A vector in memory of its own is handed on; what a statement of the body itself loads is loaded again. */
static bool may_pass(const bb_c *c, const bb_tile_body *before, uint32_t tile, bool *again) {
  const bb_tile *t = &c->p->tile[tile];
  *again = false;
  if (!(t->rows && t->cols) && !c->tile[tile].window) return true;
  *again = true;
  for (uint32_t i = 0; i < before->count; i++)
    if (before->stmt[i]->kind == BB_TILE_LOAD && before->stmt[i]->result == tile)
      return c->tile[tile].writers == 1;
  return false;
}

static bool knows_tasks(const bb_c_nest *n) {
  for (uint32_t k = 0; k < n->loops; k++) {
    const bb_tile_stretch *s = &n->loop[k]->stretch[0];
    if (!s->to || s->from->op != BB_X_CONST || s->to->op != BB_X_CONST) return false;
  }
  return true;
}

/* A few tasks become more, of work that nothing would have to do anew. */
static bool spreads(const bb_c *c, const bb_c_nest *n, const bb_tile_loop *l) {
  return tasks_of(n) < FEW_TASKS && knows_tasks(n) &&
         known_trips(l) * tasks_of(n) * work_of(c, &l->body) >= WORTH_A_NEST;
}

/* What is left of a nest's body where the next one does some of it again: not the loads that nothing else here reads. */
static const bb_tile_body *left_of(const bb_c *c, const bb_tile_body *before, const bool *read,
                                   const bb_tile_body *again) {
  bb_tile_body left = {0, BB_NEW(c->out->arena, bb_tile_stmt *, before->count + 1)};
  for (uint32_t i = 0; i < before->count; i++) {
    bool done_again = false;
    for (uint32_t k = 0; k < again->count; k++) done_again |= again->stmt[k] == before->stmt[i];
    if (!done_again || read[before->stmt[i]->result]) left.stmt[left.count++] = before->stmt[i];
  }
  return joined(c, &left, left.count, &(const bb_tile_body){0});
}

/* The nest without the loop that ends its body, and `next` with it; false: they are better one. */
static bool divide(const bb_c *c, bb_c_nest *n, const bb_tile_loop *l, bb_c_nest *next) {
  const bb_tile_body before = all_but_last(n->body);
  touched first = touched_by(c, &before), second = touched_by(c, &l->body);
  uint32_t *carry = BB_NEW(c->out->arena, uint32_t, c->p->tiles + 1), carried = 0;
  bb_tile_body again = {0, BB_NEW(c->out->arena, bb_tile_stmt *, before.count + 1)};
  bool kept = has(&before, BB_TILE_DOT) || has(&before, BB_TILE_STORE); /* never done anew */
  if ((first.scratch || second.scratch || kept) && !spreads(c, n, l)) return false;
  for (uint32_t i = 0; i < c->p->tiles; i++) {
    bool loads;
    if (!first.written[i] || !(second.read[i] || second.written[i])) continue;
    if (second.written[i] || !may_pass(c, &before, i, &loads)) return false;
    if (!loads) carry[carried++] = i;
    for (uint32_t k = 0; k < before.count && loads; k++)
      if (before.stmt[k]->result == i) again.stmt[again.count++] = before.stmt[k];
  }
  double saved = (known_trips(l) - 1) * tasks_of(n) * (work_of(c, &before) - work_of(c, &again));
  if (!kept && (!carried || saved < WORTH_A_NEST)) return false;
  n->carried = carried;
  n->carry = carry;
  *next = *n;
  n->body = left_of(c, &before, first.read, &again);
  next->takes = true;
  next->loop[next->loops++] = l;
  next->body = joined(c, &again, again.count, &l->body);
  return true;
}

/* Loops that end the body become tasks as long as that is worth it. */
static void spread_more(const bb_c *c, bb_c_nest *n) {
  const bb_tile_loop *l;
  while ((l = ending_loop(n, true)) != NULL && is_worth_repeating(c, n, l)) {
    n->loop[n->loops++] = l;
    n->body = joined(c, n->body, n->body->count - 1, &l->body);
  }
}

/* Tasks of a few elements would take longer to hand out than to do: there are enough without the loop, which a compiler makes
 * vectors of. */
static bool does_little(const bb_c *c, const bb_c_nest *n, const bb_tile_stmt *s) {
  return n->loops && tasks_of(n) >= FEW_TASKS && work_of(c, &s->loop->body) < LITTLE_WORK;
}

/* How many nests a loop makes. */
static uint32_t follow(const bb_c *c, bb_c_nest *n, const bb_tile_stmt *s) {
  const bb_tile_loop *l;
  while (n->loops < BB_TILE_OPERANDS && is_spread(s) && !does_little(c, n, s)) {
    n->loop[n->loops++] = s->loop;
    n->body = &s->loop->body;
    if (s->loop->body.count != 1) break;
    s = s->loop->body.stmt[0];
  }
  if (c->target) return 1;
  if ((l = ending_loop(n, false)) != NULL && divide(c, n, l, n + 1)) {
    n[0].shared = n[1].shared = n->loops;
    if (!n->carried) spread_more(c, n);
    return 2;
  }
  spread_more(c, n);
  return 1;
}

uint32_t bb_c_nests(const bb_c *c, bb_c_nest **nests) {
  const bb_tile_body *body = &c->p->body;
  uint32_t count = 0;
  *nests = BB_NEW(c->out->arena, bb_c_nest, 2 * body->count + 1);
  for (uint32_t i = 0; i < body->count; i++) {
    bool spread = is_spread(body->stmt[i]);
    bb_c_nest *last = count ? &(*nests)[count - 1] : NULL;
    if (!spread && last && !last->loops) {
      last->count++;
      continue;
    }
    bb_c_nest *made = &(*nests)[count];
    *made = (bb_c_nest){.first = i, .count = 1};
    count += spread ? follow(c, made, body->stmt[i]) : 1;
  }
  return count;
}
