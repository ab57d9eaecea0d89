/* emit_c.c - kernels in C: nests as functions, their tasks, and where tiles and lists lie in memory. */
#include "bounds.h"
#include "code.h"
#include "emit_c_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void bb_c_refuse(const bb_c *c, const char *what) {
  bb_fail(c->p->home->ctx, BB_ERROR_UNSUPPORTED, "no kernel for %s: %s",
          c->target ? c->target : "the CPU", what);
}

void bb_c_line(bb_c *c, const char *format, ...) {
  va_list arguments;
  bb_put(c->out, "%*s", (int)(2 * c->indent), "");
  va_start(arguments, format);
  bb_put_vprintf(c->out, format, arguments);
  va_end(arguments);
  bb_put(c->out, "\n");
}

/* --- how tiles are held --- */

typedef void visit(bb_c *c, const bb_tile_stmt *s, void *user);

static void walk(bb_c *c, const bb_tile_body *body, visit *function, void *user) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    function(c, s, user);
    if (s->kind == BB_TILE_LOOP) walk(c, &s->loop->body, function, user);
    walk(c, &s->body, function, user);
  }
}

static int64_t size_of(const bb_c *c, bb_dtype dtype) {
  const char *name = bb_c_element(c, dtype);
  return name[0] == 'f' ? 4 : name[0] == 'u' ? 1 : name[3] == '3' ? 4 : 8;
}

bool bb_c_passes(const bb_c *c, uint32_t tile) {
  return tile < c->strips.tiles && c->strips.passes[tile];
}

int64_t bb_c_tile_elements(const bb_c *c, uint32_t tile) {
  return bb_c_tile_bytes(c, tile) / size_of(c, c->p->tile[tile].dtype);
}

static int64_t all_bytes(const bb_c *c, uint32_t tile) {
  return bb_c_tile_bytes(c, tile) * (bb_c_passes(c, tile) ? c->strips.count : 1);
}

/* Of a tile, whole lines of a cache. */
int64_t bb_c_tile_bytes(const bb_c *c, uint32_t tile) {
  const bb_tile *t = &c->p->tile[tile];
  const bb_c_tile *held = &c->tile[tile];
  int64_t count = t->rows + t->cols ? t->rows + t->cols : 1;
  if (t->rows && t->cols) count = (int64_t)(held->turned ? t->cols : t->rows) * held->pitch;
  return (count * size_of(c, t->dtype) + 63) / 64 * 64;
}

static void use_tile(bb_c *c, uint32_t tile) {
  if (tile == BB_NONE || c->tile[tile].used) return;
  uint32_t over = c->tile[tile].over;
  use_tile(c, over);
  c->tile[tile].used = true;
  c->tile[tile].offset = over == BB_NONE ? c->bytes : c->tile[over].offset;
  if (over == BB_NONE && !c->tile[tile].panels) c->bytes += all_bytes(c, tile);
  const bb_tile *t = &c->p->tile[tile];
  c->tile[tile].copy = c->bytes;
  if (c->tile[tile].bundled)
    c->bytes += ((int64_t)t->rows * t->cols * size_of(c, t->dtype) + 63) / 64 * 64;
  else if (bb_c_is_ahead(c, tile))
    c->bytes += bb_c_ahead_bytes(c, tile) * (bb_c_passes(c, tile) ? c->strips.count : 1);
}

static void place_carried(bb_c *c, const bb_c_nest *n) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < c->p->tiles; i++) c->tile[i].used = c->tile[i].carried = false;
  for (uint32_t i = 0; i < n->carried; i++) {
    bb_c_tile *held = &c->tile[n->carry[i]];
    held->carried = held->used = true;
    held->offset = bytes;
    bytes += all_bytes(c, n->carry[i]);
  }
}

/* Statements that run as one leave the tile between them out. */
static bool is_named(const bb_c *c, uint32_t tile, const bb_buffer *code) {
  const char *whole = bb_c_passes(c, tile) ? "_all" : "";
  return bb_code_names(code, bb_arena_printf(c->out->arena, "t%u%s", tile, whole));
}

/* Gives memory to what the code names. */
static void use_tiles(bb_c *c, const bb_tile_stmt *s, void *code) {
  uint32_t touched[BB_TILE_OPERANDS + 2] = {s->result, s->second};
  for (uint32_t i = 0; i < s->operands; i++) touched[2 + i] = s->operand[i];
  for (uint32_t i = 0; i < s->operands + 2; i++)
    if (touched[i] != BB_NONE && !c->tile[touched[i]].used && is_named(c, touched[i], code))
      use_tile(c, touched[i]);
}

static void note_view(bb_c *c, const bb_tile_stmt *s, void *user) {
  (void)user;
  if (s->view != BB_NONE) c->view[s->view] = true;
}

static void note_home(bb_c *c, const bb_tile_stmt *s, void *user) {
  const bb_c_nest *nest = user;
  uint32_t at = c->nest;
  if (s->view == BB_NONE) return;
  uint32_t *home = &c->home[s->view];
  if (*home != 0 && *home != at + 1) {
    bool pair = at && *home == at && nest[at].shared && nest[at].first == nest[at - 1].first;
    c->apart[s->view] =
        pair || (*home == BB_NONE && c->apart[s->view] == &nest[at - 1]) ? &nest[at - 1] : NULL;
    *home = BB_NONE;
    return;
  }
  *home = at + 1;
}

static bool is_private(const bb_c *c, uint32_t view) {
  return c->home[view] != BB_NONE;
}

/* --- memory --- */

/* Bytes of a list of scratch memory, as a C expression of the extents. */
static const char *bytes_of(bb_c *c, uint32_t view) {
  const bb_tile_view *v = &c->p->view[view];
  const char *text = NULL;
  for (uint32_t i = 0; i < v->rank; i++) {
    const char *extent = bb_c_index(c, v->extent[i]);
    text = text ? bb_arena_printf(c->out->arena, "%s * %s", text, extent) : extent;
  }
  return bb_arena_printf(c->out->arena, "BB_ALIGN(%s * (int64_t)sizeof(%s))", text ? text : "1",
                         bb_c_stored(c, v->dtype));
}

/* Declares the extents that a function's code asks for. */
void bb_c_declare_extents(const bb_c *c, bb_buffer *code, const char *from) {
  for (uint32_t i = c->p->extents; i-- > 0;)
    bb_code_declare(code, bb_arena_printf(code->arena, "e%u", i), 1, "const int64_t e%u = %s[%u];",
                    i, from, i);
}

/* static int64_t NAME(const int64_t *extent): what `value` says, after its extents. */
static void put_size(bb_c *c, const char *name, const char *value) {
  bb_buffer code = {.arena = c->out->arena};
  bb_put(&code, "  return %s;\n", value);
  bb_c_declare_extents(c, &code, "extent");
  bb_c_line(c, "static int64_t %s(const int64_t *extent) {", name);
  if (!bb_code_names(&code, "extent")) bb_put(c->out, "  (void)extent;\n");
  bb_put_bytes(c->out, code.data, code.length);
  bb_c_line(c, "}\n");
}

static const char *trips(bb_c *c, const bb_tile_loop *l) {
  const char *from = bb_c_index(c, l->stretch[0].from), *to = bb_c_index(c, l->stretch[0].to);
  const char *step = bb_c_index(c, l->step);
  return bb_arena_printf(c->out->arena, "bb_max(0, (%s - %s + %s - 1) / %s)", to, from, step, step);
}

static const char *tasks_of(bb_c *c, const bb_c_nest *n, uint32_t loops) {
  const char *tasks = loops ? trips(c, n->loop[0]) : "1";
  for (uint32_t k = 1; k < loops; k++)
    tasks = bb_arena_printf(c->out->arena, "%s * %s", tasks, trips(c, n->loop[k]));
  return tasks;
}

/* Of all there are of a list that tasks share. */
static const char *shared_bytes_of(bb_c *c, uint32_t view) {
  const char *one = bytes_of(c, view);
  if (!c->apart[view]) return one;
  return bb_arena_printf(c->out->arena, "%s * %s",
                         tasks_of(c, c->apart[view], c->apart[view]->shared), one);
}

static const char *sum_of_lists(bb_c *c, bool private, const char *first) {
  const char *text = first;
  for (uint32_t i = 0; i < c->p->views; i++) {
    if (!c->p->view[i].scratch || is_private(c, i) != private) continue;
    if (private && c->home[i] != c->nest + 1) continue;
    const char *bytes = private ? bytes_of(c, i) : shared_bytes_of(c, i);
    text = bb_arena_printf(c->out->arena, "%s + %s", text, bytes);
  }
  return text;
}

/* --- a nest's function --- */

/* Which iteration of every spread loop a task is: the innermost loop's go first. */
static void put_task(bb_c *c, const bb_c_nest *n) {
  if (!n->loops) bb_c_line(c, "(void)task;");
  for (uint32_t k = n->loops; k-- > 0;) {
    const bb_tile_loop *l = n->loop[k];
    const char *from = bb_c_index(c, l->stretch[0].from), *step = bb_c_index(c, l->step);
    bb_c_line(c, "const int64_t n%u = %s;", l->variable, trips(c, l));
    if (l->down)
      bb_c_line(c, "const int64_t i%u = %s + (n%u - 1 - task %% n%u) * %s;", l->variable, from,
                l->variable, l->variable, step);
    else
      bb_c_line(c, "const int64_t i%u = %s + task %% n%u * %s;", l->variable, from, l->variable,
                step);
    if (k) bb_c_line(c, "task /= n%u;", l->variable);
  }
}

/* How many tasks each iteration of the loops has that two nests share. */
static const char *tasks_apart(bb_c *c, const bb_c_nest *n) {
  const char *tasks = "1";
  for (uint32_t k = n->shared; k < n->loops; k++)
    tasks = bb_arena_printf(c->out->arena, "%s * %s", tasks, trips(c, n->loop[k]));
  return tasks;
}

static void put_views(bb_c *c, const bb_c_nest *n) {
  bool shared = false, private = false;
  for (uint32_t i = 0; i < c->p->views; i++) {
    const bb_tile_view *v = &c->p->view[i];
    const char *element = bb_c_stored(c, v->dtype);
    if (!v->scratch) {
      if (!c->view[i]) continue;
      bb_c_line(c, "%s%s *const v%u = call->argument[%u];", v->written ? "" : "const ", element, i,
                i);
      continue;
    }
    bool own = is_private(c, i);
    if (own && c->home[i] != c->nest + 1) continue;
    const char *at = own ? "own" : "shared";
    if (c->apart[i] && c->view[i])
      at = bb_arena_printf(c->out->arena, "(shared + task / (%s) * %s)", tasks_apart(c, n),
                           bytes_of(c, i));
    if (own && !private) bb_c_line(c, "char *own = local + %" PRId64 ";", c->bytes);
    if (!own && !shared) bb_c_line(c, "char *shared = call->shared;");
    (own ? (private = true) : (shared = true));
    if (c->view[i]) bb_c_line(c, "%s *const v%u = (%s *)%s;", element, i, element, at);
    bb_c_line(c, "%s += %s;", own ? "own" : "shared", own ? bytes_of(c, i) : shared_bytes_of(c, i));
  }
}

static void put_tiles(bb_c *c, bb_buffer *code) {
  for (uint32_t i = 0; i < c->p->tiles; i++) {
    if (!c->tile[i].used || !is_named(c, i, code)) continue;
    const char *element = bb_c_held(c, i);
    const char *own = c->tile[i].window ? "_own" : bb_c_passes(c, i) ? "_all" : "";
    if (c->tile[i].panels) {
      bb_c_line(c, "const %s *t%u;", element, i);
      continue;
    }
    bb_c_line(c, "%s *const t%u%s = (%s *)(%s + %" PRId64 ");", element, i, own, element,
              c->tile[i].carried ? "carried" : "local", c->tile[i].offset);
    if (c->tile[i].bundled)
      bb_c_line(c, "%s *const t%u_in = (%s *)(local + %" PRId64 ");", element, i, element,
                c->tile[i].copy);
    else if (bb_c_is_ahead(c, i))
      bb_c_line(c, "char *const t%u_in%s = local + %" PRId64 ";", i,
                bb_c_passes(c, i) ? "_all" : "", c->tile[i].copy);
    if (!c->tile[i].window) continue;
    bb_c_line(c, "const %s *t%u = t%u_own;", element, i, i);
    if (bb_code_reads(code, bb_arena_printf(c->out->arena, "t%u_s", i)))
      bb_c_line(c, "int64_t t%u_s = 0;", i);
  }
  if (c->panel) bb_c_line(c, "void *const panel = local + %" PRId64 ";", c->bytes - c->panel);
}

static int64_t carried_bytes(const bb_c *c, const bb_c_nest *n) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < n->carried; i++) bytes += all_bytes(c, n->carry[i]);
  return bytes;
}

/* Memory that all tasks share: lists, then what the first `count` nests hand on, for each task. */
static const char *shared_by(bb_c *c, const bb_c_nest *nest, uint32_t count, const char *first) {
  const char *text = sum_of_lists(c, false, first);
  for (uint32_t i = 0; i < count; i++) {
    if (!nest[i].carried || nest[i].takes) continue;
    text = bb_arena_printf(c->out->arena, "%s + %s * %" PRId64, text,
                           tasks_of(c, &nest[i], nest[i].loops), carried_bytes(c, &nest[i]));
  }
  return text;
}

/* Where tiles lie that pass from one nest to the next: one after the other, for each task of the first. */
static void put_carried(bb_c *c, const bb_c_nest *nest, uint32_t number) {
  const bb_c_nest *n = &nest[number];
  if (!n->carried) return;
  const char *at = shared_by(c, nest, n->takes ? number - 1 : number, "call->shared");
  const char *task = "task";
  if (n->takes) task = bb_arena_printf(c->out->arena, "task / %s", trips(c, n->loop[n->loops - 1]));
  bb_c_line(c, "char *const carried = %s + %s * %" PRId64 ";", at, task, carried_bytes(c, n));
}

static void put_nest(bb_c *c, const bb_c_nest *nest, uint32_t number) {
  const bb_c_nest *n = &nest[number];
  bb_buffer *out = c->out, inner = {.arena = out->arena};
  bb_tile_body body = {n->count, c->p->body.stmt + n->first};
  if (n->loops) body = *n->body;
  c->nest = number;
  c->bytes = c->panel = 0;
  place_carried(c, n);
  for (uint32_t i = 0; i < c->p->views; i++) c->view[i] = false;
  walk(c, &body, note_view, NULL);
  c->out = &inner;
  c->indent = 1;
  put_task(c, n);
  bb_c_body(c, &body);
  walk(c, &body, use_tiles, &inner);
  for (uint32_t i = 0; i < c->twins; i++)
    if (c->twin[i] && !bb_c_passes(c, i) && is_named(c, i + c->twins, &inner))
      use_tile(c, i + c->twins);
  c->bytes += (c->panel + 63) / 64 * 64;
  c->panel = (c->panel + 63) / 64 * 64;
  bb_buffer code = {.arena = out->arena};
  c->out = &code;
  put_views(c, n);
  put_carried(c, nest, number);
  put_tiles(c, &inner);
  bb_put_bytes(&code, inner.data, inner.length);
  bb_c_declare_extents(c, &code, "call->extent");
  c->out = out;
  c->indent = 0;
  bb_c_line(c, "static void %s_%u(const bb_cpu_call *call, int64_t task, char *local) {", c->name,
            number);
  if (!bb_code_names(&code, "local")) bb_put(out, "  (void)local;\n");
  bb_put_bytes(out, code.data, code.length);
  bb_put(out, "}\n\n");
  const char *bytes = bb_arena_printf(out->arena, "%" PRId64, c->bytes);
  bytes = sum_of_lists(c, true, bytes);
  put_size(c, bb_arena_printf(out->arena, "%s_%u_bytes", c->name, number), bytes);
  put_size(c, bb_arena_printf(out->arena, "%s_%u_tasks", c->name, number),
           tasks_of(c, n, n->loops));
}

/* How a program is worked off, and how its tiles lie. */
static void lay_out(bb_c *c, const bb_tile_program *program) {
  bb_arena *arena = c->out->arena;
  program = bb_c_strip(arena, program, c->vector_bytes, &c->strips);
  c->p = program = bb_tile_skip(arena, program, c->strips.variable);
  c->tile = BB_NEW(arena, bb_c_tile, program->tiles + 1);
  c->view = BB_NEW(arena, bool, program->views + 1);
  bb_c_find_live(c);
  bb_c_lay_out(c);
  bb_c_settle_ends(c);
}

bool bb_c_has_strips(const bb_tile_program *program, uint32_t vector_bytes, bool *ends) {
  bb_buffer text = {.arena = bb_scratch(program->home->ctx)};
  bb_c c = {.out = &text, .name = "k", .vector_bytes = vector_bytes};
  lay_out(&c, program);
  *ends = c.strips.ends.tile != BB_NONE;
  bb_scratch_end(text.arena);
  return c.strips.variable != BB_NONE;
}

void bb_emit_c(bb_buffer *out, const bb_tile_program *program, const char *name,
               const bb_emit_options *options) {
  bb_arena *scratch = bb_scratch(program->home->ctx);
  bb_buffer text = {.arena = scratch};
  bb_c c = {.out = &text, .name = name, .exact = options && options->exact};
  c.vector_bytes = options && options->vector_bytes ? options->vector_bytes : 32;
  c.tiles = options && options->tiles && !c.exact && !program->home->strict;
  lay_out(&c, program);
  program = c.p;
  c.home = BB_NEW(scratch, uint32_t, program->views + 1);
  c.apart = BB_NEW(scratch, const bb_c_nest *, program->views + 1);
  bb_c_share(&c);
  bb_c_find_twins(&c);
  program = c.p;
  bb_c_nest *nests;
  uint32_t count = bb_c_nests(&c, &nests);
  for (c.nest = 0; c.nest < count; c.nest++) {
    const bb_c_nest *n = &nests[c.nest];
    bb_tile_body body = {n->count, program->body.stmt + n->first};
    walk(&c, n->loops ? n->body : &body, note_home, nests);
  }
  for (uint32_t i = 0; i < count; i++) put_nest(&c, nests, i);
  const char *shared = shared_by(&c, nests, count, "0");
  put_size(&c, bb_arena_printf(scratch, "%s_shared", name), shared);
  bb_c_line(&c, "static const bb_cpu_nest %s_nests[] = {", name);
  for (uint32_t i = 0; i < count; i++)
    bb_c_line(&c, "  {%s_%u_tasks, %s_%u_bytes, %s_%u},", name, i, name, i, name, i);
  bb_c_line(&c, "};");
  bb_c_line(&c, "BB_KERNEL %s = {%u, %s_nests, %s_shared};\n", name, count, name, name);
  bb_put_bytes(out, text.data, text.length);
  bb_scratch_end(scratch);
}
