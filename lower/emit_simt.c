/* emit_simt.c - any tile program in CUDA C++: nests as functions, what their threads and lists are. */
#include "code.h"
#include "emit_simt_parts.h"
#include "held.h"
#include "tile_edit.h"

#include <inttypes.h>

/* --- walks --- */

typedef void visit(bb_simt *s, const bb_tile_stmt *stmt);

static void walk(bb_simt *s, const bb_tile_body *body, visit *function) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *stmt = body->stmt[i];
    function(s, stmt);
    if (stmt->kind == BB_TILE_LOOP) walk(s, &stmt->loop->body, function);
    walk(s, &stmt->body, function);
  }
}

static void note_home(bb_simt *s, const bb_tile_stmt *stmt) {
  if (stmt->view == BB_NONE) return;
  uint32_t *home = &s->c.home[stmt->view];
  *home = *home == 0 || *home == s->c.nest + 1 ? s->c.nest + 1 : BB_NONE;
}

static uint32_t bytes_of(const bb_c *c, bb_dtype dtype) {
  return c->exact && bb_dtype_is_float(dtype) ? 8 : (uint32_t)bb_dtype_bytes(dtype);
}

static void use_tile(bb_simt *s, uint32_t tile) {
  if (tile == BB_NONE) return;
  const bb_tile *t = &s->c.p->tile[tile];
  s->c.tile[tile].used = true;
  if (t->rows > s->most_rows) s->most_rows = t->rows;
  if (t->cols > s->most_cols) s->most_cols = t->cols;
}

static void note_uses(bb_simt *s, const bb_tile_stmt *stmt) {
  s->products |= stmt->kind == BB_TILE_DOT;
  s->scans |= stmt->kind == BB_TILE_SCAN;
  s->turns |= stmt->kind == BB_TILE_TRANSPOSE;
  use_tile(s, stmt->result);
  use_tile(s, stmt->second);
  for (uint32_t i = 0; i < stmt->operands; i++) {
    use_tile(s, stmt->operand[i]);
    s->computes[stmt->operand[i]] |= stmt->kind != BB_TILE_STORE;
  }
  if (stmt->view == BB_NONE) return;
  uint32_t bytes = bytes_of(&s->c, s->c.p->view[stmt->view].dtype);
  s->c.view[stmt->view] = true;
  s->touches[stmt->view]++;
  if (bytes < s->least_bytes) s->least_bytes = bytes;
}

/* --- threads --- */

enum {
  THREADS = 256,
  ROWS = 16,
  FEWER_ROWS = 8,
  LANES = 32,
  VECTOR = 16,
  WIDE = 256,
  BESIDE = 1024,  /* threads, of blocks that stream */
  ALONE = 128,    /* tasks that a device has processors for, about one each */
  MOST_HELD = 16, /* elements of a tile, by a thread */
  MOST_SHARED = 227 * 1024
};

static uint32_t power_from(uint32_t size, uint32_t most) {
  uint32_t power = 1;
  while (power < size && power < most) power *= 2;
  return power;
}

static bool are_few(bb_tile_index tasks) {
  return tasks->op == BB_X_CONST && tasks->number <= ALONE;
}

/* Rows of threads as the tallest tile has, and threads of a row as the widest: warps at least.  Where nothing but what is
 * turned goes by shared memory a warp has one row, and a thread as many neighbours in it as come by one load, if it is long; of
 * many short rows a thread takes as many of one, which fewer threads share, where each waits again and again and others run
 * meanwhile, or where tiles are turned: those are as high as wide. */
static void choose_threads(bb_simt *s) {
  bool streams = !s->products && !s->scans && s->least_bytes < VECTOR;
  uint32_t neighbours = VECTOR / (s->least_bytes < 2 ? 2 : s->least_bytes);
  uint32_t lines = s->most_cols / neighbours, even = lines & -lines; /* a power of two */
  bool narrow = streams && ((s->waits && !s->alone) || s->turns) && s->most_cols < WIDE &&
                s->most_rows * even >= LANES && lines > 1 && s->most_cols % (2 * neighbours) == 0 &&
                (uint64_t)s->most_rows * s->most_cols <= 2 * MOST_HELD * THREADS;
  s->tv = narrow || (streams && s->most_cols >= WIDE) ? neighbours : 1;
  s->ty = power_from(s->most_rows, s->products ? ROWS : FEWER_ROWS);
  s->tx = power_from(s->most_cols, THREADS / s->ty);
  if (narrow) {
    s->tx = even;
    s->ty = power_from(s->most_rows, THREADS / s->tx);
  }
  while (s->ty * s->tx < LANES) s->tx *= 2;
}

static uint32_t held_of(const bb_simt *s, uint32_t tile) {
  const bb_tile *t = &s->c.p->tile[tile];
  return bb_simt_parts(t->rows, s->ty) * bb_simt_parts(t->cols, s->tx);
}

/* Elements that a thread keeps: of a tile, of all that is loaded together, or of all that stays at hand. */
static uint32_t kept(const bb_simt *s, const bb_tile_body *body) {
  uint32_t most = bb_simt_parts(s->most_rows, s->ty) * bb_simt_parts(s->most_cols, s->tx);
  uint32_t *held = BB_NEW(s->c.p->home->arena, uint32_t, s->c.p->tiles + 1), at_hand = 0;
  for (uint32_t t = 0; t < s->c.p->tiles; t++) {
    held[t] = held_of(s, t);
    if (s->c.tile[t].used && bb_tile_is_held(s->c.p, t)) at_hand += held[t];
  }
  uint32_t together = bb_tile_most_loaded(body, held);
  if (together > most) most = together;
  return at_hand > most ? at_hand : most;
}

/* Loads that are on their way at once are those of all blocks that a processor has: where kernels stream, and a thread
 * holds little, its registers are to be enough for several; for two at least where each waits again and again, or turns
 * tiles.  A block that is alone has them all: its loops' loads, one iteration's beside the next one's, are what is on its
 * way. */
static uint32_t blocks_beside(const bb_simt *s, const bb_tile_body *body) {
  if (s->alone) return 1;
  uint32_t held = kept(s, body), threads = s->ty * s->tx;
  if (s->tv > 1 && held <= MOST_HELD) return (s->turns ? BESIDE / 2 : BESIDE) / threads;
  if (s->tv == 1 || held > 4 * MOST_HELD) return 1;
  bool two = s->turns || s->waits || held > 2 * MOST_HELD;
  return (two ? BESIDE / 2 : BESIDE * 3 / 4) / threads;
}

/* --- memory --- */

static bool is_own(const bb_simt *s, uint32_t view) {
  return s->c.p->view[view].scratch && s->c.home[view] != BB_NONE;
}

static bb_tile_index number(const bb_simt *s, int64_t value) {
  return bb_expr_const(s->c.p->home, BB_I64, (double)value);
}

static bb_tile_index make(const bb_simt *s, bb_expr_op op, bb_tile_index a, bb_tile_index b) {
  return bb_expr_make(s->c.p->home, op, a, b, NULL);
}

/* A list's, in lines of 256. */
static bb_tile_index list_bytes(const bb_simt *s, uint32_t view) {
  const bb_tile_view *v = &s->c.p->view[view];
  enum { LINE = 256 };
  bb_tile_index bytes = number(s, bytes_of(&s->c, v->dtype));
  for (uint32_t i = 0; i < v->rank; i++) bytes = make(s, BB_X_MUL, bytes, v->extent[i]);
  bytes = make(s, BB_X_DIV, make(s, BB_X_ADD, bytes, number(s, LINE - 1)), number(s, LINE));
  return make(s, BB_X_MUL, bytes, number(s, LINE));
}

/* --- a nest's function --- */

static bb_tile_index trips(const bb_simt *s, const bb_tile_loop *l) {
  bb_tile_index span = make(s, BB_X_SUB, l->stretch[0].to, l->stretch[0].from);
  span = make(s, BB_X_ADD, span, make(s, BB_X_SUB, l->step, number(s, 1)));
  return make(s, BB_X_MAX, number(s, 0), make(s, BB_X_DIV, span, l->step));
}

/* Which iteration of every spread loop a task is: the innermost loop's go first. */
static void put_task(bb_simt *s, const bb_c_nest *n) {
  bb_c *c = &s->c;
  if (n->loops) bb_c_line(c, "int64_t rest = task;");
  for (uint32_t k = n->loops; k-- > 0;) {
    const bb_tile_loop *l = n->loop[k];
    const char *from = bb_c_index(c, l->stretch[0].from), *step = bb_c_index(c, l->step);
    const char *many = bb_c_index(c, trips(s, l));
    const char *at = k ? bb_arena_printf(c->out->arena, "rest %% n%u", l->variable) : "rest";
    if (k || l->down) bb_c_line(c, "const int64_t n%u = %s;", l->variable, many);
    if (l->down)
      bb_c_line(c, "const int64_t i%u = %s + (n%u - 1 - %s) * %s;", l->variable, from, l->variable,
                at, step);
    else
      bb_c_line(c, "const int64_t i%u = %s + %s * %s;", l->variable, from, at, step);
    if (k) bb_c_line(c, "rest /= n%u;", l->variable);
  }
}

const char *bb_simt_stored(const bb_simt *s, bb_dtype dtype) {
  if (s->c.exact || (dtype != BB_F16 && dtype != BB_BF16)) return bb_c_stored(&s->c, dtype);
  return dtype == BB_F16 ? "bb_f16" : "bb_bf16";
}

static bb_tile_index put_views(bb_simt *s) {
  bb_c *c = &s->c;
  bb_tile_index own = number(s, 0);
  for (uint32_t i = 0; i < c->p->views; i++) {
    const bb_tile_view *v = &c->p->view[i];
    const char *element = bb_simt_stored(s, v->dtype);
    if (!c->view[i]) continue;
    if (!is_own(s, i)) {
      bb_c_line(c, "%s%s *const v%u = (%s%s *)call.view[%u];",
                v->written || v->scratch ? "" : "const ", element, i,
                v->written || v->scratch ? "" : "const ", element, i);
      continue;
    }
    bb_c_line(c, "%s *const v%u = (%s *)(call.own + bb_block() * call.each + %s);", element, i,
              element, bb_c_index(c, own));
    own = make(s, BB_X_ADD, own, list_bytes(s, i));
  }
  return own;
}

static void put_tiles(bb_simt *s) {
  bb_c *c = &s->c;
  for (uint32_t i = 0; i < c->p->tiles; i++) {
    const bb_tile *t = &c->p->tile[i];
    if (!c->tile[i].used) continue;
    bb_c_line(c, "%s t%u[%u]; // %u x %u", bb_c_element(c, t->dtype), i,
              bb_simt_parts(t->rows, s->ty) * bb_simt_parts(t->cols, s->tx), t->rows, t->cols);
    if (bb_tile_is_held(c->p, i))
      bb_c_line(c, "int t%u_at = BB_NOWHERE; // where its block lies", i);
  }
}

static void forget_uses(bb_simt *s) {
  const bb_tile_program *p = s->c.p;
  for (uint32_t i = 0; i < p->tiles; i++) s->c.tile[i].used = s->computes[i] = false;
  for (uint32_t i = 0; i < p->views; i++) s->c.view[i] = false, s->touches[i] = 0;
  s->most_rows = s->most_cols = 1;
  s->products = s->scans = s->turns = false;
  s->least_bytes = VECTOR;
  s->shared = 0;
}

/* Of what the nest itself has stored?  It stores behind all launches before it. */
static bool is_own_store(const bb_simt *s, const bb_tile_stmt *load) {
  bool alone;
  return bb_tile_left_by(s->c.p, load->result, &alone) != NULL;
}

/* Views that a body loads, as bits.  False: there is one whose writing a launch before may not be seen by, or that has none. */
static bool find_reads(const bb_simt *s, const bb_tile_body *body, uint32_t *reads) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *stmt = body->stmt[i];
    bool loads = stmt->kind == BB_TILE_LOAD && !is_own_store(s, stmt);
    const bb_tile_view *view = loads ? &s->c.p->view[stmt->view] : NULL;
    if (view && (view->written || view->scratch || stmt->view >= BB_AHEAD)) return false;
    if (view) *reads |= 1u << stmt->view;
    if (stmt->loop && stmt->loop->marked) return false;
    if (!find_reads(s, &stmt->body, reads)) return false;
    if (stmt->loop && !find_reads(s, &stmt->loop->body, reads)) return false;
  }
  return true;
}

static void put_nest(bb_simt *s, const bb_c_nest *n, bb_simt_nest *made) {
  bb_c *c = &s->c;
  bb_buffer *out = c->out, inner = {.arena = out->arena}, code = {.arena = out->arena};
  bb_tile_body body = {n->count, c->p->body.stmt + n->first};
  if (n->loops) body = *n->body;
  forget_uses(s);
  walk(s, &body, note_uses);
  s->waits = bb_tile_waits(&body);
  made->tasks = number(s, 1);
  for (uint32_t k = 0; k < n->loops; k++)
    made->tasks = make(s, BB_X_MUL, made->tasks, trips(s, n->loop[k]));
  s->alone = are_few(made->tasks);
  choose_threads(s);
  made->ahead = s->ahead = find_reads(s, &body, &made->reads);
  c->out = &inner;
  c->indent = 2;
  put_task(s, n);
  put_tiles(s);
  bb_simt_body(s, &body);
  c->out = &code;
  c->indent = 1;
  made->own = put_views(s);
  bb_c_line(c, "for (int64_t task = bb_block(); task < call.tasks; task += bb_blocks()) {");
  bb_put_bytes(&code, inner.data, inner.length);
  bb_put(&code, "  }\n");
  if (s->ahead) bb_c_line(c, "if (call.ahead) bb_after_earlier();");
  bb_c_declare_extents(c, &code, "call.extent");
  bb_code_declare(&code, "tx", 1, "const int tx = bb_thread() %% TX;");
  bb_code_declare(&code, "ty", 1, "const int ty = bb_thread() / TX;");
  c->out = out;
  c->indent = 0;
  bb_c_line(c, "BB_KERNEL(%s_%u, %s_call, %u, %u) {", c->name, c->nest, c->name, s->ty * s->tx,
            blocks_beside(s, &body));
  c->indent = 1;
  bb_c_line(c, "enum { TY = %u, TX = %u, TV = %u };", s->ty, s->tx, s->tv);
  bb_c_line(c,
            s->ahead ? "call.ahead ? bb_let_next() : bb_after_earlier();" : "bb_after_earlier();");
  bb_put_bytes(out, code.data, code.length);
  bb_put(out, "}\n\n");
  c->indent = 0;
  made->threads = s->ty * s->tx;
  made->shared = s->shared;
}

static void put_call(bb_simt *s) {
  bb_c *c = &s->c;
  bb_c_line(c, "struct %s_call {", c->name);
  bb_c_line(c, "  int64_t extent[%u];", c->p->extents + 1);
  bb_c_line(c, "  char *view[%u];", c->p->views + 1);
  bb_c_line(c, "  char *own;");
  bb_c_line(c, "  int64_t each, tasks, ahead;");
  bb_c_line(c, "};\n");
}

/* Tiles lie as the statements say: no memory is shared, no rows and columns are exchanged. */
void bb_emit_simt(bb_buffer *out, const bb_tile_program *p, const char *name,
                  const bb_emit_options *options, bb_simt_launch *launch) {
  bb_arena *keep = p->home->arena;
  bb_buffer text = {.arena = keep};
  bb_simt s = {.c = {.out = &text, .p = p, .name = name, .target = "a GPU"}};
  s.c.exact = options && options->exact;
  s.c.slow_division = true;
  s.most_shared = options && options->shared ? options->shared : MOST_SHARED;
  s.c.tile = BB_NEW(keep, bb_c_tile, p->tiles + 1);
  s.c.home = BB_NEW(keep, uint32_t, p->views + 1);
  s.c.view = BB_NEW(keep, bool, p->views + 1);
  s.touches = BB_NEW(keep, uint32_t, p->views + 1);
  s.computes = BB_NEW(keep, bool, p->tiles + 1);
  bb_c_nest *nests;
  uint32_t count = bb_c_nests(&s.c, &nests);
  bb_simt_nest *made = BB_NEW(keep, bb_simt_nest, count + 1);
  bb_tile_index *list = BB_NEW(keep, bb_tile_index, p->views + 1);
  for (s.c.nest = 0; s.c.nest < count; s.c.nest++) {
    bb_tile_body body = {nests[s.c.nest].count, p->body.stmt + nests[s.c.nest].first};
    walk(&s, &body, note_home);
  }
  for (uint32_t i = 0; i < p->views; i++)
    if (p->view[i].scratch && !is_own(&s, i)) list[i] = list_bytes(&s, i);
  put_call(&s);
  for (s.c.nest = 0; s.c.nest < count; s.c.nest++) put_nest(&s, &nests[s.c.nest], &made[s.c.nest]);
  *launch = (bb_simt_launch){count, made, list};
  bb_put_bytes(out, text.data, text.length);
}
