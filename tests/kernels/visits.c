/* visits.c - runs the loops of a tile program without its statements. */
#include "visits.h"

#include <string.h>

enum { MASKS = 16 };

typedef struct walk {
  const bb_tile_program *p;
  bb_arena *arena;
  double *arg;    /* as expressions of statements have them; variables from BB_TILE_VARIABLE on */
  double *symbol; /* by index */
  bb_visits *visits;
} walk;

static double *variables(const walk *w) {
  return w->arg + BB_TILE_VARIABLE;
}

/* A condition over the places of a statement's tile. */
typedef struct mask {
  const bb_tile_stmt *stmt;
  const bb_expr *condition;
  bool inverse; /* it holds where the condition does not */
} mask;

static bool runs(const bb_tile_stmt *s, uint32_t stretch) {
  return !s->stretches || s->stretches >> stretch & 1;
}

static bool asks_tiles(const bb_expr *e) {
  if (e->op == BB_X_ARG && e->index < BB_TILE_OPERANDS) return true;
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++)
    if (asks_tiles(e->a[i])) return true;
  return false;
}

/* Those that statements of a body ask in a stretch; BB_NONE: in any. */
static uint32_t masks_of(const walk *w, const bb_tile_body *body, uint32_t stretch, mask *list) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_MAP || (stretch != BB_NONE && !runs(s, stretch))) continue;
    uint32_t count;
    const bb_expr **node = bb_expr_postorder(w->arena, s->expr, &count);
    for (uint32_t k = 0; k < count && found < MASKS; k++) {
      const bb_expr *c = node[k]->op == BB_X_SELECT ? node[k]->a[0] : NULL;
      if (!c || !c->coord || asks_tiles(c)) continue;
      uint32_t same = 0;
      while (same < found && (list[same].condition != c || list[same].stmt->at[0] != s->at[0] ||
                              list[same].stmt->at[1] != s->at[1]))
        same++;
      bool inverse = node[k]->a[1]->op == BB_X_CONST && node[k]->a[2]->op != BB_X_CONST;
      list[same] = (mask){s, c, inverse};
      found += same == found;
    }
  }
  return found;
}

/* In how many elements of its tile it holds; *all: how many there are. */
static uint32_t held(const walk *w, const mask *m, uint32_t *all) {
  const bb_tile *t = &w->p->tile[m->stmt->result];
  uint32_t rows = t->rows ? t->rows : 1, cols = t->cols ? t->cols : 1, count = 0;
  int64_t at[2] = {0, 0};
  for (uint32_t k = 0; k < 2; k++)
    if (m->stmt->at[k]) at[k] = bb_tile_index_value(m->stmt->at[k], variables(w));
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t c = 0; c < cols; c++) {
      bb_expr_env env = {.arg = w->arg,
                         .coord_row = (double)(at[0] + r),
                         .coord_col = (double)(at[1] + c),
                         .symbol = w->symbol};
      count += (bb_expr_eval(m->condition, &env) != 0) != m->inverse;
    }
  *all = rows * cols;
  return count;
}

/* The block at hand. */
static void visit(const walk *w, const bb_tile_body *body, uint32_t stretch) {
  mask all[MASKS], asked[MASKS];
  uint32_t masks = masks_of(w, body, BB_NONE, all), asks = masks_of(w, body, stretch, asked);
  bool idle = false, everywhere = true;
  for (uint32_t i = 0; i < masks; i++) {
    uint32_t elements, count = held(w, &all[i], &elements);
    idle |= count == 0;
    everywhere &= count == elements;
  }
  if (!masks) return;
  w->visits->blocks++;
  w->visits->idle += idle;
  w->visits->held += everywhere && asks > 0;
  w->visits->left_off += asks < masks;
}

static void walk_body(const walk *w, const bb_tile_body *body, uint32_t stretch) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (!runs(s, stretch)) continue;
    walk_body(w, &s->body, stretch);
    for (uint32_t k = 0; s->loop && k < s->loop->stretches; k++) {
      double *variable = variables(w);
      int64_t step = bb_tile_index_value(s->loop->step, variable),
              from = bb_tile_index_value(s->loop->stretch[k].from, variable), to = from + 1;
      if (s->loop->stretch[k].to) to = bb_tile_index_value(s->loop->stretch[k].to, variable);
      for (int64_t at = from; at < to; at += step) {
        variable[s->loop->variable] = (double)at;
        if (!s->loop->parallel) visit(w, &s->loop->body, k);
        walk_body(w, &s->loop->body, k);
      }
    }
  }
}

void bb_visits_add(const bb_tile_program *p, const int64_t *extent, bb_visits *visits) {
  walk w = {.p = p, .arena = bb_scratch(p->home->ctx), .visits = visits};
  w.arg = BB_NEW(w.arena, double, BB_TILE_VARIABLE + p->variables + 1);
  w.symbol = BB_NEW(w.arena, double, p->home->symbols + 1);
  for (uint32_t i = 0; i < p->extents; i++) variables(&w)[i] = (double)extent[i];
  for (uint32_t s = 0; s < p->home->symbols; s++)
    for (uint32_t i = 0; i < p->extents; i++)
      if (strcmp(p->variable[i], p->home->symbol[s]) == 0) w.symbol[s] = (double)extent[i];
  walk_body(&w, &p->body, 0);
  bb_scratch_end(w.arena);
}
