/* tile_edit.c - changing tile programs in place. */
#include "tile_edit.h"

#include <string.h>

void bb_tile_walk(bb_tile_body *body, bb_tile_visit *visit, void *user) {
  for (uint32_t i = 0; i < body->count; i++) {
    visit(user, body, i);
    bb_tile_walk(&body->stmt[i]->body, visit, user);
    if (body->stmt[i]->loop) bb_tile_walk(&body->stmt[i]->loop->body, visit, user);
  }
}

/* --- statements --- */

bb_tile_stmt *bb_tile_stmt_new(bb_tile_program *p, bb_tile_kind kind) {
  bb_tile_body holder = {0};
  return bb_tile_append(p, &holder, kind);
}

bb_tile_stmt *bb_tile_copy(bb_tile_program *p, const bb_tile_stmt *stmt) {
  bb_tile_stmt *copy = bb_tile_stmt_new(p, stmt->kind);
  bb_tile_loop *loop = copy->loop;
  *copy = *stmt;
  copy->loop = loop;
  copy->body = (bb_tile_body){0};
  for (uint32_t i = 0; i < stmt->body.count; i++)
    bb_tile_push(p, &copy->body, bb_tile_copy(p, stmt->body.stmt[i]));
  if (!stmt->loop) return copy;
  *loop = *stmt->loop;
  loop->body = (bb_tile_body){0};
  for (uint32_t i = 0; i < stmt->loop->body.count; i++)
    bb_tile_push(p, &loop->body, bb_tile_copy(p, stmt->loop->body.stmt[i]));
  return copy;
}

void bb_tile_push(bb_tile_program *p, bb_tile_body *body, bb_tile_stmt *stmt) {
  bb_tile_append(p, body, BB_TILE_MAP); /* grows the body */
  body->stmt[body->count - 1] = stmt;
}

void bb_tile_insert(bb_tile_program *p, bb_tile_body *body, uint32_t at, bb_tile_stmt *stmt) {
  bb_tile_push(p, body, stmt);
  memmove(body->stmt + at + 1, body->stmt + at, (body->count - 1 - at) * sizeof *body->stmt);
  body->stmt[at] = stmt;
}

void bb_tile_remove(bb_tile_body *body, uint32_t at) {
  body->count--;
  memmove(body->stmt + at, body->stmt + at + 1, (body->count - at) * sizeof *body->stmt);
}

/* --- uses --- */

static bool waits(const bb_tile_body *body, bool serial) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    const bb_tile_loop *l = s->loop;
    if ((serial && s->kind == BB_TILE_LOAD) || waits(&s->body, serial)) return true;
    bool counts = l && !l->parallel && bb_expr_is_number(l->step, 1);
    if (l && waits(&l->body, serial || counts)) return true;
  }
  return false;
}

bool bb_tile_waits(const bb_tile_body *body) {
  return waits(body, false);
}

bool bb_tile_load_varies(const bb_tile_program *p, const bb_tile_stmt *load, uint32_t variable) {
  for (uint32_t i = 0; i < p->view[load->view].rank; i++)
    if (bb_expr_uses_arg(load->range[i].start, variable)) return true;
  return false;
}

bool bb_tile_has_product(const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++)
    if (body->stmt[i]->kind == BB_TILE_DOT) return true;
  return false;
}

bool bb_tile_reads(const bb_tile_stmt *s, uint32_t tile) {
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->operand[i] == tile) return true;
  if (s->accumulate && s->result == tile) return true;
  for (uint32_t i = 0; i < s->body.count; i++)
    if (bb_tile_reads(s->body.stmt[i], tile)) return true;
  if (!s->loop) return false;
  for (uint32_t i = 0; s->loop->merge && i < s->loop->merge->components; i++)
    if (s->loop->merged[i] == tile) return true;
  for (uint32_t i = 0; i < s->loop->body.count; i++)
    if (bb_tile_reads(s->loop->body.stmt[i], tile)) return true;
  return false;
}

bool bb_tile_writes(const bb_tile_stmt *s, uint32_t tile) {
  if (s->result == tile || s->second == tile) return true;
  for (uint32_t i = 0; i < s->body.count; i++)
    if (bb_tile_writes(s->body.stmt[i], tile)) return true;
  for (uint32_t i = 0; s->loop && i < s->loop->body.count; i++)
    if (bb_tile_writes(s->loop->body.stmt[i], tile)) return true;
  return false;
}

typedef struct counting {
  uint32_t tile, readers, writers;
} counting;

static void count(void *user, bb_tile_body *body, uint32_t at) {
  counting *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  bool reads = s->accumulate && s->result == c->tile;
  for (uint32_t i = 0; i < s->operands; i++) reads |= s->operand[i] == c->tile;
  for (uint32_t i = 0; s->loop && s->loop->merge && i < s->loop->merge->components; i++)
    reads |= s->loop->merged[i] == c->tile;
  c->readers += reads;
  c->writers += s->result == c->tile || s->second == c->tile;
}

uint32_t bb_tile_writers(bb_tile_body *body, uint32_t tile) {
  counting c = {.tile = tile};
  bb_tile_walk(body, count, &c);
  return c.writers;
}

uint32_t bb_tile_readers(bb_tile_body *body, uint32_t tile) {
  counting c = {.tile = tile};
  bb_tile_walk(body, count, &c);
  return c.readers;
}

typedef struct renaming {
  uint32_t from, to;
} renaming;

static void rename_one(void *user, bb_tile_body *body, uint32_t at) {
  const renaming *r = user;
  bb_tile_stmt *s = body->stmt[at];
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->operand[i] == r->from) s->operand[i] = r->to;
  if (s->result == r->from) s->result = r->to;
  if (s->second == r->from) s->second = r->to;
  for (uint32_t i = 0; s->loop && s->loop->merge && i < s->loop->merge->components; i++)
    if (s->loop->merged[i] == r->from) s->loop->merged[i] = r->to;
}

void bb_tile_rename(bb_tile_body *body, uint32_t from, uint32_t to) {
  bb_tile_walk(body, rename_one, &(renaming){from, to});
}

/* --- expressions --- */

typedef struct editing {
  bb_tile_program *p;
  const bb_tile_stmt *from;
  bb_tile_stmt *to;
  uint32_t tile; /* replaced ... */
  const bb_expr *with;
} editing;

const bb_expr *bb_tile_name(bb_tile_program *p, uint32_t tile) {
  return bb_expr_arg(p->home, p->tile[tile].dtype, BB_TILE_NAMED + tile);
}

static const bb_expr *name_leaf(void *user, const bb_expr *leaf) {
  const editing *e = user;
  bool operand = leaf->op == BB_X_ARG && leaf->index < BB_TILE_VARIABLE;
  return operand ? bb_tile_name(e->p, e->from->operand[leaf->index]) : leaf;
}

const bb_expr *bb_tile_named(bb_tile_program *p, const bb_tile_stmt *stmt) {
  return bb_expr_map_leaves(p->home, stmt->expr, name_leaf, &(editing){.p = p, .from = stmt});
}

static const bb_expr *number_leaf(void *user, const bb_expr *leaf) {
  const editing *e = user;
  bb_tile_stmt *s = e->to;
  if (leaf->op != BB_X_ARG || leaf->index < BB_TILE_NAMED) return leaf;
  uint32_t tile = leaf->index - BB_TILE_NAMED, i = 0;
  while (i < s->operands && s->operand[i] != tile) i++;
  if (i == BB_TILE_OPERANDS)
    bb_fail(e->p->home->ctx, BB_ERROR_UNSUPPORTED, "no kernel: an expression of more than %d tiles",
            BB_TILE_OPERANDS);
  if (i == s->operands) s->operand[s->operands++] = tile;
  return bb_expr_arg(e->p->home, e->p->tile[tile].dtype, i);
}

void bb_tile_set(bb_tile_program *p, bb_tile_stmt *stmt, const bb_expr *named) {
  stmt->operands = 0;
  stmt->expr = bb_expr_map_leaves(p->home, named, number_leaf, &(editing){.p = p, .to = stmt});
}

static const bb_expr *replace_leaf(void *user, const bb_expr *leaf) {
  const editing *e = user;
  return leaf->op == BB_X_ARG && leaf->index == BB_TILE_NAMED + e->tile ? e->with : leaf;
}

const bb_expr *bb_tile_map_before(bb_tile_program *p, bb_tile_body *body, uint32_t at,
                                  uint32_t rows, uint32_t cols, const bb_expr *named) {
  const bb_tile form = {.name = bb_arena_printf(p->home->arena, "t%u", p->tiles),
                        .dtype = named->dtype,
                        .rows = rows,
                        .cols = cols,
                        .place = BB_PLACE_REGISTERS,
                        .buffers = 1};
  bb_tile_stmt *made = bb_tile_stmt_new(p, BB_TILE_MAP);
  made->result = bb_tile_add(p, &form);
  bb_tile_set(p, made, named);
  bb_tile_insert(p, body, at, made);
  return bb_tile_name(p, made->result);
}

const bb_expr *bb_tile_replace(bb_tile_program *p, const bb_expr *named, uint32_t tile,
                               const bb_expr *with) {
  editing e = {.p = p, .tile = tile, .with = with};
  return bb_expr_map_leaves(p->home, named, replace_leaf, &e);
}

bool bb_tile_names(const bb_expr *named, uint32_t tile) {
  return bb_expr_uses_arg(named, BB_TILE_NAMED + tile);
}

bool bb_tile_is_copy(const bb_tile_stmt *s) {
  return s->kind == BB_TILE_MAP && s->expr->op == BB_X_ARG && s->expr->index < s->operands;
}

bool bb_tile_is_constant(const bb_tile_stmt *s, double *value) {
  if (s->kind != BB_TILE_MAP || s->expr->op != BB_X_CONST) return false;
  *value = s->expr->number;
  return true;
}

uint32_t bb_tile_like(bb_tile_program *p, uint32_t tile, bb_dtype dtype) {
  bb_tile t = p->tile[tile];
  t.name = bb_arena_printf(p->home->arena, "t%u", p->tiles);
  t.dtype = dtype;
  t.place = BB_PLACE_REGISTERS;
  t.buffers = 1;
  t.partial = false;
  return bb_tile_add(p, &t);
}

/* --- indices --- */

typedef struct fixing {
  const bb_tile_program *p;
  uint32_t variable;
  bb_tile_index value;
  bb_expr_leaf *index, *map; /* of indices, and of expressions of tiles */
} fixing;

static const bb_expr *fix_index_leaf(void *user, const bb_expr *leaf) {
  const fixing *f = user;
  return leaf->op == BB_X_ARG && leaf->index == f->variable ? f->value : leaf;
}

static const bb_expr *in_map(void *home, const bb_expr *leaf) {
  return leaf->op == BB_X_ARG ? bb_expr_arg(home, leaf->dtype, BB_TILE_VARIABLE + leaf->index)
                              : leaf;
}

const bb_expr *bb_tile_index_in_map(const bb_tile_program *p, bb_tile_index index) {
  return bb_expr_map_leaves(p->home, index, in_map, p->home);
}

static const bb_expr *fix_map_leaf(void *user, const bb_expr *leaf) {
  const fixing *f = user;
  bool is = leaf->op == BB_X_ARG && leaf->index == BB_TILE_VARIABLE + f->variable;
  return is ? bb_tile_index_in_map(f->p, f->value) : leaf;
}

bb_tile_index bb_tile_index_replace(const bb_tile_program *p, bb_tile_index index,
                                    uint32_t variable, bb_tile_index value) {
  fixing f = {.p = p, .variable = variable, .value = value};
  return bb_expr_map_leaves(p->home, index, fix_index_leaf, &f);
}

static bb_tile_index fix_index(fixing *f, bb_tile_index index) {
  return index ? bb_expr_map_leaves(f->p->home, index, f->index, f) : NULL;
}

static void fix_one(void *user, bb_tile_body *body, uint32_t at) {
  fixing *f = user;
  bb_tile_stmt *s = body->stmt[at];
  bool memory = s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE;
  for (uint32_t i = 0; memory && i < f->p->view[s->view].rank; i++)
    s->range[i].start = fix_index(f, s->range[i].start);
  for (uint32_t i = 0; i < 2; i++) s->at[i] = fix_index(f, s->at[i]);
  s->limit = fix_index(f, s->limit);
  if (s->kind == BB_TILE_WHEN) s->expr = fix_index(f, s->expr);
  if (s->kind == BB_TILE_MAP || s->kind == BB_TILE_ANY)
    s->expr = bb_expr_map_leaves(f->p->home, s->expr, f->map, f);
  if (!s->loop) return;
  s->loop->step = fix_index(f, s->loop->step);
  for (uint32_t i = 0; i < s->loop->stretches; i++) {
    bb_tile_stretch *t = &s->loop->stretch[i];
    *t = (bb_tile_stretch){fix_index(f, t->from), fix_index(f, t->to)};
  }
  if (!s->loop->marked) return;
  uint32_t rank = f->p->view[s->loop->marks].rank;
  bb_tile_index *marked = BB_NEW(f->p->home->arena, bb_tile_index, rank + 1);
  for (uint32_t i = 0; i < rank; i++) marked[i] = fix_index(f, s->loop->marked[i]);
  s->loop->marked = marked;
}

void bb_tile_fix(bb_tile_program *p, bb_tile_body *body, uint32_t variable, bb_tile_index value) {
  fixing f = {p, variable, value, fix_index_leaf, fix_map_leaf};
  bb_tile_walk(body, fix_one, &f);
}

/* --- one more extent --- */

static const bb_expr *later(const fixing *f, const bb_expr *leaf, uint32_t first) {
  bool is = leaf->op == BB_X_ARG && leaf->index >= first + f->variable;
  return is ? bb_expr_arg(f->p->home, leaf->dtype, leaf->index + 1) : leaf;
}

static const bb_expr *later_index_leaf(void *user, const bb_expr *leaf) {
  return later(user, leaf, 0);
}

static const bb_expr *later_map_leaf(void *user, const bb_expr *leaf) {
  return later(user, leaf, BB_TILE_VARIABLE);
}

static void number_later(void *user, bb_tile_body *body, uint32_t at) {
  if (body->stmt[at]->loop) body->stmt[at]->loop->variable++;
  fix_one(user, body, at);
}

uint32_t bb_tile_add_extent(bb_tile_program *p, const char *name) {
  uint32_t at = p->extents;
  fixing f = {p, at, NULL, later_index_leaf, later_map_leaf};
  bb_tile_walk(&p->body, number_later, &f);
  bb_tile_add_variable(p, name, true);
  const char *added = p->variable[p->variables - 1];
  memmove(p->variable + at + 1, p->variable + at, (p->variables - 1 - at) * sizeof *p->variable);
  p->variable[at] = added;
  return at;
}

/* --- what nobody reads any more --- */

static bool is_live(const bb_tile_stmt *s, const bool *live) {
  if (s->result == BB_NONE) return true;
  return live[s->result] || (s->second != BB_NONE && live[s->second]);
}

static void mark_live(const bb_tile_body *body, bool *live, bool *more) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    for (uint32_t k = 0; k < s->operands && is_live(s, live); k++) {
      *more |= !live[s->operand[k]];
      live[s->operand[k]] = true;
    }
    mark_live(&s->body, live, more);
    if (!s->loop) continue;
    for (uint32_t k = 0; s->loop->merge && k < s->loop->merge->components; k++)
      live[s->loop->merged[k]] = true;
    mark_live(&s->loop->body, live, more);
  }
}

static void remove_dead(bb_tile_body *body, const bool *live) {
  for (uint32_t i = body->count; i-- > 0;) {
    bb_tile_stmt *s = body->stmt[i];
    remove_dead(&s->body, live);
    if (s->loop) remove_dead(&s->loop->body, live);
    bool empty = s->loop && !s->loop->body.count && !s->loop->merge;
    if (empty || !is_live(s, live)) bb_tile_remove(body, i);
  }
}

void bb_tile_drop_dead(bb_tile_program *p) {
  bool *live = BB_NEW(p->home->arena, bool, p->tiles + 1);
  for (bool more = true; more;) {
    more = false;
    mark_live(&p->body, live, &more);
  }
  remove_dead(&p->body, live);
}
