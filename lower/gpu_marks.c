/* gpu_marks.c - iterations of a serial loop that a mask from memory leaves nothing to do, marked before.
 *
 * Where a mask is data (documents, padding, lengths: whatever a selection asks of tiles that are loaded), no interval of
 * the loop's variable says where it holds.  If an iteration in which it holds nowhere provably changes nothing
 * (bounds_idle.c), a nest of its own, before the others, asks once for each block of the mask whether it holds anywhere,
 * and the loop takes the iterations that are marked:
 *
 *   parallel a = 0 to M step 128 {                          alike for all heads: made once
 *     parallel b = 0 to N step 64 {
 *       q = load DQ[a:128]; k = load DK[b:64]; mask = q==k; any = any(mask); store marks[a/128, b/64] = any
 *     } }
 *   parallel h = 0 to H step 1 {
 *     parallel i = 0 to M step 128 { ... serial j = 0 to N step 64 where marks[i/128, j/64] { ... } } }
 *
 * The processor asks in the loop itself (bounds_data.c): its blocks are small, and nothing runs ahead of it.
 */
#include "bounds_parts.h"
#include "gpu_marks.h"

#include <string.h>

enum { DEPTH = BB_GPU_MASK_LOOPS, MADE_FROM = 32 };

typedef struct marking {
  bb_gpu *g;
  bb_bounds b;
  /* Bodies around the loop's and that, outermost first; the statement of each that the next stands in, of the last: the
   * mask's.  Loops: of body i, which stands in loop i - 1. */
  uint32_t depth, at[DEPTH + 1];
  bb_tile_body *body[DEPTH + 1];
  bb_tile_loop *loop[DEPTH];
  /* The mask at hand: its loads and maps, those before that others read, and which of the loops' variables it has. */
  uint32_t stmts, stmt_capacity;
  const bb_tile_stmt **stmt;
  bool uses[DEPTH];
  bool vectors; /* no block is loaded for it */
} marking;

/* --- what a mask is made of --- */

/* The one statement that makes a tile, if it stands before where the mask stands; NULL: there is none such. */
static const bb_tile_stmt *maker_of(const marking *m, uint32_t tile) {
  if (bb_tile_writers(&m->g->p->body, tile) != 1) return NULL;
  for (uint32_t d = 0; d <= m->depth; d++)
    for (uint32_t i = 0; i < m->at[d]; i++)
      if (m->body[d]->stmt[i]->result == tile) return m->body[d]->stmt[i];
  return NULL;
}

static void note_index(marking *m, const bb_expr *index, uint32_t base) {
  for (uint32_t d = 0; index && d < m->depth; d++)
    m->uses[d] |= bb_expr_uses_arg(index, base + m->loop[d]->variable);
}

static bool is_known(const marking *m, const bb_tile_stmt *s) {
  for (uint32_t i = 0; i < m->stmts; i++)
    if (m->stmt[i] == s) return true;
  return false;
}

/* Whether the tile can be made without the loop's products; notes what it takes. */
static bool gather(marking *m, uint32_t tile) {
  const bb_tile_stmt *s = maker_of(m, tile);
  if (!s || s->stretches || (s->kind != BB_TILE_LOAD && s->kind != BB_TILE_MAP)) return false;
  if (is_known(m, s)) return true;
  if (m->stmts == MADE_FROM) return false;
  for (uint32_t i = 0; i < s->operands; i++)
    if (!gather(m, s->operand[i])) return false;
  const bb_tile_view *view = s->kind == BB_TILE_LOAD ? &m->g->p->view[s->view] : NULL;
  if (view && (view->written || view->scratch)) return false; /* what the kernel makes itself */
  for (uint32_t i = 0; view && i < view->rank; i++) note_index(m, s->range[i].start, 0);
  for (uint32_t i = 0; i < 2; i++) note_index(m, s->at[i], 0);
  for (uint32_t d = 0; !view && d < m->depth; d++) /* places are asked by coordinates */
    if (bb_expr_uses_arg(s->expr, BB_TILE_VARIABLE + m->loop[d]->variable)) return false;
  if (view && bb_tile_is_block(&m->g->p->tile[s->result])) m->vectors = false;
  BB_GROW(m->b.scratch, m->stmt, m->stmt_capacity, m->stmts + 1u);
  m->stmt[m->stmts++] = s;
  return true;
}

static bool uses_coord(const bb_expr *e, uint32_t axis) {
  if (e->op == BB_X_COORD) return e->index == axis;
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++)
    if (uses_coord(e->a[i], axis)) return true;
  return false;
}

/* Loops from 0 to an extent, a constant step at a time. */
static bool is_countable(const marking *m, const bb_tile_loop *loop) {
  const bb_tile_stretch *s = &loop->stretch[0];
  if (loop->stretches != 1 || !s->to || !bb_expr_is_number(s->from, 0) ||
      loop->step->op != BB_X_CONST)
    return false;
  for (uint32_t d = 0; d < m->depth; d++)
    if (bb_expr_uses_arg(s->to, m->loop[d]->variable)) return false;
  return true;
}

/* Is it asked of data, and worth a look before?  Where each block of it is looked at once only, it is not. */
static bool is_data(marking *m, const bb_tile_stmt *s, const bb_expr *condition) {
  m->stmts = 0;
  m->vectors = true;
  memset(m->uses, 0, sizeof m->uses);
  for (uint32_t i = 0; i < s->operands; i++)
    if (bb_expr_uses_arg(condition, i) && !gather(m, s->operand[i])) return false;
  if (!m->stmts) return false;
  for (uint32_t axis = 0; axis < 2; axis++)
    if (uses_coord(condition, axis ? BB_COORD_COL : BB_COORD_ROW)) note_index(m, s->at[axis], 0);
  for (uint32_t d = 0; d < m->depth; d++)
    if (bb_expr_uses_arg(condition, BB_TILE_VARIABLE + m->loop[d]->variable)) return false;
  bool alike = m->vectors;
  for (uint32_t d = 0; d + 1 < m->depth; d++) {
    alike |= !m->uses[d];
    if (m->uses[d] && (!m->loop[d]->parallel || !is_countable(m, m->loop[d]))) return false;
  }
  return alike && m->uses[m->depth - 1] && is_countable(m, m->loop[m->depth - 1]);
}

/* --- the nest --- */

static bb_tile_index count_of(bb_program *home, const bb_tile_loop *loop) {
  bb_tile_index more = bb_expr_const(home, BB_I64, loop->step->number - 1);
  if (loop->step->number == 1) return loop->stretch[0].to;
  return bb_expr_make(home, BB_X_DIV, bb_expr_make(home, BB_X_ADD, loop->stretch[0].to, more, NULL),
                      loop->step, NULL);
}

static bb_tile_index place_of(bb_program *home, const bb_tile_loop *loop, uint32_t variable,
                              bool last) {
  bb_tile_index at = bb_expr_arg(home, BB_I64, variable);
  return loop->step->number == 1 && !last ? at : bb_expr_make(home, BB_X_DIV, at, loop->step, NULL);
}

/* A view with a mark for each block, of a row in eights, and how the loop finds its own. */
static void add_view(marking *m, bb_tile_loop *loop) {
  bb_tile_program *p = m->g->p;
  bb_tile_index *place = BB_NEW(p->home->arena, bb_tile_index, DEPTH);
  bb_tile_view view = {.dtype = BB_BOOL, .written = true, .scratch = true};
  view.name = bb_arena_printf(p->home->arena, "marks%u", p->views);
  for (uint32_t d = 0; d < m->depth; d++) {
    if (!m->uses[d]) continue;
    place[view.rank] = place_of(p->home, m->loop[d], m->loop[d]->variable, d + 1 == m->depth);
    view.extent[view.rank++] = count_of(p->home, m->loop[d]);
  }
  bb_tile_index *row = &view.extent[view.rank - 1], eight = bb_expr_const(p->home, BB_I64, 8);
  *row = bb_expr_make(p->home, BB_X_ADD, *row, bb_expr_const(p->home, BB_I64, 7), NULL);
  *row = bb_expr_make(p->home, BB_X_DIV, *row, eight, NULL);
  *row = bb_expr_make(p->home, BB_X_MUL, *row, eight, NULL);
  loop->marked = place;
  loop->marks = bb_tile_add_view(p, &view);
}

/* What the mask is made of, in tiles of its own; the mask, named by them. */
static const bb_expr *put_parts(marking *m, bb_tile_body *body, const bb_expr *named) {
  bb_tile_program *p = m->g->p;
  uint32_t *now = BB_NEW(m->b.scratch, uint32_t, p->tiles + 1);
  for (uint32_t i = 0; i < m->stmts; i++) {
    bb_tile_stmt *s = bb_tile_copy(p, m->stmt[i]);
    for (uint32_t k = 0; k < s->operands; k++) s->operand[k] = now[s->operand[k]];
    uint32_t was = s->result;
    s->result = now[was] = bb_tile_like(p, was, p->tile[was].dtype);
    named = bb_tile_replace(p, named, was, bb_tile_name(p, s->result));
    bb_tile_push(p, body, s);
  }
  return named;
}

static uint32_t add_truth(bb_tile_program *p, const char *what, uint32_t rows, uint32_t cols) {
  bb_tile t = {.dtype = BB_BOOL, .rows = rows, .cols = cols, .buffers = 1};
  t.name = bb_arena_printf(p->home->arena, "%s%u", what, p->tiles);
  return bb_tile_add(p, &t);
}

/* truth = a named condition; what a block is asked, or only scalars. */
static bb_tile_stmt *add_map(marking *m, uint32_t result, const bb_expr *named,
                             const bb_tile_index *at) {
  bb_tile_stmt *map = bb_tile_stmt_new(m->g->p, BB_TILE_MAP);
  map->result = result;
  for (uint32_t i = 0; i < 2; i++)
    if (uses_coord(named, i ? BB_COORD_COL : BB_COORD_ROW)) map->at[i] = at[i];
  bb_tile_set(m->g->p, map, named);
  return map;
}

static void add_any(marking *m, bb_tile_body *body, uint32_t result, const bb_expr *named) {
  bb_tile_stmt *any = bb_tile_stmt_new(m->g->p, BB_TILE_ANY);
  any->result = result;
  bb_tile_set(m->g->p, any, named);
  bb_tile_push(m->g->p, body, any);
}

/* mask = condition; any = any(mask); some = any(!mask), where what is known of ranges does not say it. */
static void put_question(marking *m, bb_tile_body *body, const bb_tile_stmt *s,
                         const bb_expr *condition, bool inverse, uint32_t any, uint32_t some) {
  bb_tile_program *p = m->g->p;
  bb_program *home = p->home;
  bb_tile_stmt asks = *s;
  asks.expr = inverse ? bb_expr_make(home, BB_X_NOT, condition, NULL, NULL) : condition;
  uint32_t rows = uses_coord(condition, BB_COORD_ROW) ? p->tile[s->result].rows : 0;
  uint32_t cols = uses_coord(condition, BB_COORD_COL) ? p->tile[s->result].cols : 0;
  for (uint32_t i = 0; i < s->operands; i++) {
    if (!bb_expr_uses_arg(condition, i)) continue;
    rows |= p->tile[s->operand[i]].rows;
    cols |= p->tile[s->operand[i]].cols;
  }
  const bb_expr *named = put_parts(m, body, bb_tile_named(p, &asks));
  bb_gpu_sure sure = {NULL, NULL};
  if (rows && cols) sure = bb_gpu_surely(m->g, body, named, rows, cols);
  if (sure.never) {
    const bb_expr *open = bb_expr_make(home, BB_X_OR, sure.never, sure.always, NULL);
    bb_tile_stmt *rest = bb_tile_stmt_new(p, BB_TILE_IF);
    rest->operands = 1;
    rest->operand[0] = add_truth(p, "open", 0, 0);
    bb_tile_push(p, body,
                 add_map(m, any, bb_expr_make(home, BB_X_NOT, sure.never, NULL, NULL), s->at));
    bb_tile_push(p, body,
                 add_map(m, some, bb_expr_make(home, BB_X_NOT, sure.always, NULL, NULL), s->at));
    bb_tile_push(
        p, body,
        add_map(m, rest->operand[0], bb_expr_make(home, BB_X_NOT, open, NULL, NULL), s->at));
    bb_tile_push(p, body, rest);
    body = &rest->body;
  }
  bb_tile_stmt *mask = add_map(m, add_truth(p, "mask", rows, cols), named, s->at);
  bb_tile_push(p, body, mask);
  named = bb_tile_name(p, mask->result);
  add_any(m, body, any, named);
  add_any(m, body, some, bb_expr_make(home, BB_X_NOT, named, NULL, NULL));
}

static void put_store(marking *m, bb_tile_body *body, uint32_t view, uint32_t truth,
                      const uint32_t *variable) {
  bb_tile_program *p = m->g->p;
  bb_tile_stmt *store = bb_tile_stmt_new(p, BB_TILE_STORE);
  uint32_t axis = 0;
  for (uint32_t d = 0; d < m->depth; d++)
    if (m->uses[d])
      store->range[axis++].start = place_of(p->home, m->loop[d], variable[d], d + 1 == m->depth);
  store->view = view;
  store->operands = 1;
  store->operand[0] = truth;
  bb_tile_push(p, body, store);
}

/* The loops of the nest, and what each is called. */
static bb_tile_body *put_loops(marking *m, uint32_t *variable) {
  bb_tile_program *p = m->g->p;
  bb_tile_body *to = &m->g->before;
  for (uint32_t d = 0; d < m->depth; d++) {
    if (!m->uses[d]) continue;
    const char *name = bb_arena_printf(p->home->arena, "b%u", p->variables);
    bb_tile_stmt *loop = bb_tile_stmt_new(p, BB_TILE_LOOP);
    variable[d] = bb_tile_add_variable(p, name, false);
    *loop->loop = (bb_tile_loop){.variable = variable[d],
                                 .parallel = true,
                                 .spread = BB_SPREAD_GRID,
                                 .step = m->loop[d]->step,
                                 .stretches = 1,
                                 .stretch = {m->loop[d]->stretch[0]}};
    bb_tile_push(p, to, loop);
    to = &loop->loop->body;
  }
  return to;
}

static void put_nest(marking *m, const bb_tile_stmt *s, const bb_expr *condition, bool inverse) {
  bb_tile_program *p = m->g->p;
  bb_tile_loop *loop = m->loop[m->depth - 1];
  uint32_t variable[DEPTH] = {0}, any = add_truth(p, "any", 0, 0),
           some = add_truth(p, "some", 0, 0);
  bb_tile_stmt asks = *s;
  asks.expr = condition;
  bb_gpu_mask *mask = &m->g->mask[loop->variable];
  mask->condition = bb_tile_named(p, &asks);
  mask->inverse = inverse;
  mask->at[0] = s->at[0], mask->at[1] = s->at[1];
  add_view(m, loop);
  bb_tile_view partly = p->view[loop->marks];
  partly.name = bb_arena_printf(p->home->arena, "partly%u", p->views);
  mask->partly = bb_tile_add_view(p, &partly);
  mask->body = put_loops(m, variable);
  put_question(m, mask->body, s, condition, inverse, any, some);
  for (uint32_t d = 0; d < m->depth; d++) {
    if (!m->uses[d]) continue;
    mask->from[mask->loops] = m->loop[d]->variable;
    mask->to[mask->loops++] = bb_expr_arg(p->home, BB_I64, variable[d]);
    bb_tile_fix(p, mask->body, m->loop[d]->variable, bb_expr_arg(p->home, BB_I64, variable[d]));
  }
  put_store(m, mask->body, loop->marks, any, variable);
  put_store(m, mask->body, mask->partly, some, variable);
}

/* --- which loops --- */

/* Whether an iteration changes nothing where the mask holds nowhere. */
static bool is_idle(marking *m, const bb_tile_stmt *s, const bb_expr *condition, bool inverse) {
  m->b.masks = 1;
  m->b.mask[0] = (bb_mask){.condition = condition, .at = {s->at[0], s->at[1]}, .inverse = inverse};
  return bb_bounds_idle(&m->b, &m->b.mask[0]);
}

/* By the first mask that will do. */
static void mark(marking *m, bb_tile_loop *loop) {
  m->b.loop = loop;
  for (uint32_t i = 0; i < loop->body.count && !loop->marked; i++) {
    const bb_tile_stmt *s = loop->body.stmt[i];
    uint32_t count;
    if (s->kind != BB_TILE_MAP) continue;
    m->at[m->depth] = i;
    const bb_expr **node = bb_expr_postorder(m->b.scratch, s->expr, &count);
    for (uint32_t k = 0; k < count && !loop->marked; k++) {
      if (node[k]->op != BB_X_SELECT || !is_data(m, s, node[k]->a[0])) continue;
      for (int inverse = 0; inverse < 2 && !loop->marked; inverse++)
        if (is_idle(m, s, node[k]->a[0], inverse)) put_nest(m, s, node[k]->a[0], inverse);
    }
  }
}

static void walk(marking *m, bb_tile_body *body) {
  m->body[m->depth] = body;
  for (uint32_t i = 0; i < body->count && m->depth < DEPTH; i++) {
    bb_tile_loop *loop = body->stmt[i]->loop;
    if (!loop) continue;
    m->at[m->depth] = i;
    m->loop[m->depth++] = loop;
    walk(m, &loop->body);
    if (!loop->parallel && bb_tile_has_product(&loop->body)) mark(m, loop);
    m->depth--;
  }
}

/* --- iterations in which the mask holds everywhere --- */

/* The place of the selection that the loop's marks are of, and nothing else; the body's count: there is none. */
static uint32_t find_selection(const bb_gpu *g, const bb_tile_loop *loop) {
  const bb_tile_body *body = &loop->body;
  uint32_t at = 0;
  for (; at < body->count; at++) {
    const bb_tile_stmt *s = body->stmt[at];
    if (s->kind != BB_TILE_MAP || s->stretches) continue;
    const bb_expr *e = bb_tile_named(g->p, s), *own = bb_tile_name(g->p, s->result);
    const bb_gpu_mask *mask = &g->mask[loop->variable];
    if (e->op != BB_X_SELECT || e->a[0] != mask->condition || s->at[0] != mask->at[0] ||
        s->at[1] != mask->at[1])
      continue;
    if (e->a[mask->inverse ? 2 : 1] == own) break;
  }
  return at;
}

static void put_if(bb_gpu *g, bb_tile_body *body, uint32_t at, uint32_t asked) {
  bb_tile_stmt *inner = body->stmt[at], *made = bb_tile_stmt_new(g->p, BB_TILE_IF);
  made->operands = 1;
  made->operand[0] = asked;
  bb_tile_push(g->p, &made->body, inner);
  body->stmt[at] = made;
}

/* partly = load ...; if partly { k = load K[j:64] } ... if partly { s = select(q==k, s, -inf) } */
static void leave_out(bb_gpu *g, bb_tile_body *around, uint32_t loop_at) {
  bb_tile_program *p = g->p;
  bb_tile_loop *loop = around->stmt[loop_at]->loop;
  bb_tile_body *body = &loop->body;
  uint32_t at = find_selection(g, loop);
  if (at == body->count) return;
  bb_tile_stmt *selection = body->stmt[at], *load = bb_tile_stmt_new(p, BB_TILE_LOAD);
  load->view = g->mask[loop->variable].partly;
  load->result = add_truth(p, "partly", 0, 0);
  const bb_tile_view *view = &p->view[load->view];
  bb_tile_index *last = &load->range[view->rank - 1].start, one = bb_expr_const(p->home, BB_I64, 1);
  for (uint32_t i = 0; i < view->rank; i++) load->range[i].start = loop->marked[i];
  /* a first iteration that is none may lie beyond the loop's end */
  *last =
      bb_expr_make(p->home, BB_X_MIN, *last,
                   bb_expr_make(p->home, BB_X_SUB, view->extent[view->rank - 1], one, NULL), NULL);
  put_if(g, body, at, load->result);
  for (uint32_t i = 0; i < at; i++) {
    bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_LOAD || s->stretches || !bb_tile_reads(selection, s->result) ||
        bb_tile_readers(&p->body, s->result) != 1 || p->tile[s->result].place == BB_PLACE_SHARED)
      continue;
    /* what is read is written, though nobody looks */
    bb_tile_stmt *nothing = bb_tile_stmt_new(p, BB_TILE_MAP);
    nothing->result = s->result;
    bb_tile_set(p, nothing, bb_expr_const(p->home, p->tile[s->result].dtype, 0));
    bb_tile_insert(p, around, loop_at++, nothing);
    put_if(g, body, i, load->result);
  }
  bb_tile_insert(p, body, 0, load);
}

static void unmask_body(bb_gpu *g, bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_loop *loop = body->stmt[i]->loop;
    if (!loop) continue;
    uint32_t count = body->count;
    unmask_body(g, &loop->body);
    if (loop->marked && g->mask) leave_out(g, body, i);
    i += body->count - count;
  }
}

void bb_gpu_unmask(bb_gpu *g) {
  unmask_body(g, &g->p->body);
}

/* --- where such a loop runs, and may begin --- */

/* Does it know a loop that the nest has none like? */
static bool uses_others(const bb_gpu *g, const bb_expr *index, const bb_gpu_mask *mask) {
  for (uint32_t v = g->p->extents; v < g->p->variables; v++) {
    bool own = false;
    for (uint32_t i = 0; i < mask->loops; i++) own |= mask->to[i]->index == v;
    if (!own && bb_expr_uses_arg(index, v)) return true;
  }
  return false;
}

/* n is an iteration of one of the loop's stretches. */
static const bb_expr *is_run(const bb_gpu *g, const bb_tile_loop *loop) {
  bb_program *home = g->p->home;
  bb_tile_index n = bb_expr_arg(home, BB_I64, loop->variable);
  const bb_expr *runs = NULL;
  for (uint32_t i = 0; i < loop->stretches; i++) {
    const bb_tile_stretch *s = &loop->stretch[i];
    const bb_expr *in = bb_expr_make(home, s->to ? BB_X_LE : BB_X_EQ, s->from, n, NULL);
    if (s->to)
      in = bb_expr_make(home, BB_X_AND, in, bb_expr_make(home, BB_X_LT, n, s->to, NULL), NULL);
    runs = runs ? bb_expr_make(home, BB_X_OR, runs, in, NULL) : in;
  }
  return runs;
}

/* Where what runs depends on loops around, the nest asks of nothing else. */
static void bound_nest(bb_gpu *g, const bb_tile_loop *loop) {
  const bb_gpu_mask *mask = &g->mask[loop->variable];
  const bb_expr *runs = is_run(g, loop);
  bool depends = false;
  for (uint32_t i = 0; i + 1 < mask->loops; i++) depends |= bb_expr_uses_arg(runs, mask->from[i]);
  for (uint32_t i = 0; i < mask->loops; i++)
    runs = bb_tile_index_replace(g->p, runs, mask->from[i], mask->to[i]);
  if (!depends || uses_others(g, runs, mask)) return;
  bb_tile_stmt *when = bb_tile_stmt_new(g->p, BB_TILE_WHEN);
  when->expr = runs;
  when->body = *mask->body;
  *mask->body = (bb_tile_body){0};
  bb_tile_push(g->p, mask->body, when);
}

/* Masks of the others that the first iteration has, too, may be asked of any. */
static void settle(void *user, bb_tile_body *body, uint32_t at) {
  bb_tile_loop *loop = body->stmt[at]->loop;
  if (!loop || !loop->marked) return;
  bound_nest(user, loop);
  if (loop->stretch[0].to || !loop->commutes) return;
  loop->anywhere = true;
  for (uint32_t i = 0; i < loop->body.count; i++)
    loop->anywhere &= !loop->body.stmt[i]->stretches || loop->body.stmt[i]->stretches & 1;
}

void bb_gpu_settle_marks(bb_gpu *g) {
  bb_tile_walk(&g->p->body, settle, g);
}

void bb_gpu_marks(bb_gpu *g) {
  if (g->strict) return;
  marking m = {.g = g, .b = {.p = g->p, .skip = true, .stretch = BB_NONE}};
  m.b.scratch = bb_scratch(g->ctx);
  g->mask = BB_NEW(g->p->home->arena, bb_gpu_mask, g->p->variables + 1);
  walk(&m, &g->p->body);
  bb_scratch_end(m.b.scratch);
}
