/* tile_print.c - tile programs to text; tile_parse.c has the grammar. */
#include "../graph/text_number.h"
#include "tile.h"

#include <stdio.h>

typedef struct printer {
  bb_buffer *out;
  const bb_tile_program *p;
} printer;

static void put_index(const printer *w, bb_tile_index index) {
  if (index->op == BB_X_CONST)
    bb_put_number(w->out, index->number, BB_F64);
  else
    bb_expr_print(w->out, w->p->home, index, BB_EXPR_TEXT, w->p->variables, w->p->variable);
}

static void put_expr(const printer *w, const bb_tile_stmt *s) {
  bb_arena *scratch = bb_scratch(w->p->home->ctx);
  uint32_t count = BB_TILE_VARIABLE + w->p->variables;
  const char **name = BB_NEW(scratch, const char *, count);
  for (uint32_t i = 0; i < s->operands; i++) name[i] = w->p->tile[s->operand[i]].name;
  for (uint32_t i = 0; i < w->p->variables; i++) name[BB_TILE_VARIABLE + i] = w->p->variable[i];
  bb_expr_print(w->out, w->p->home, s->expr, BB_EXPR_TEXT, count, name);
  bb_scratch_end(scratch);
}

static void put_indices(const printer *w, uint32_t count, const bb_tile_index *index) {
  bb_put(w->out, "[");
  for (uint32_t i = 0; i < count; i++) {
    if (i) bb_put(w->out, ",");
    put_index(w, index[i]);
  }
  bb_put(w->out, "]");
}

static void put_view(const printer *w, const bb_tile_view *view) {
  const char *what = view->scratch ? "scratch" : view->written ? "output" : "view";
  bb_put(w->out, "%s %s : %s", what, view->name, bb_dtype_name(view->dtype));
  put_indices(w, view->rank, view->extent);
  if (view->strided) {
    bb_put(w->out, " by ");
    put_indices(w, view->rank, view->stride);
  }
  bb_put(w->out, "%s%s\n", view->panels ? " panels" : "", view->padded ? " padded" : "");
}

static void put_size(const printer *w, uint32_t size) {
  if (size)
    bb_put(w->out, "%u", size);
  else
    bb_put(w->out, "_");
}

static void put_tile(const printer *w, const bb_tile *t) {
  bb_put(w->out, "tile %s : %s[", t->name, bb_dtype_name(t->dtype));
  put_size(w, t->rows);
  bb_put(w->out, ",");
  put_size(w, t->cols);
  bb_put(w->out, "]%s", t->place == BB_PLACE_LEFT ? " left" : "");
  if (t->place == BB_PLACE_SHARED) bb_put(w->out, " shared %u", t->buffers);
  bb_put(w->out, t->partial ? " partial\n" : "\n");
}

static void put_monoid(const printer *w, const bb_tile_monoid *m) {
  char text[2 * BB_TILE_OPERANDS][12];
  const char *name[2 * BB_TILE_OPERANDS];
  for (uint32_t i = 0; i < 2 * m->components; i++) {
    snprintf(text[i], sizeof *text, "$%u", i);
    name[i] = text[i];
  }
  bb_put(w->out, "monoid %s (", m->name);
  for (uint32_t i = 0; i < m->components; i++) {
    if (i) bb_put(w->out, ", ");
    bb_put_number(w->out, m->empty[i], BB_F64);
  }
  bb_put(w->out, ") = (");
  for (uint32_t i = 0; i < m->components; i++) {
    if (i) bb_put(w->out, ", ");
    bb_expr_print(w->out, w->p->home, m->combine[i], BB_EXPR_TEXT, 2 * m->components, name);
  }
  bb_put(w->out, ")\n");
}

static void put_loop(const printer *w, const bb_tile_loop *loop) {
  static const char *const spread[] = {"", "grid", "cluster", "warps"};
  bb_put(w->out, "%s %s =", loop->parallel ? "parallel" : "serial", w->p->variable[loop->variable]);
  for (uint32_t i = 0; i < loop->stretches; i++) {
    bb_put(w->out, i ? " then " : " ");
    put_index(w, loop->stretch[i].from);
    if (!loop->stretch[i].to) continue;
    bb_put(w->out, " to ");
    put_index(w, loop->stretch[i].to);
  }
  bb_put(w->out, " step ");
  put_index(w, loop->step);
  if (loop->down) bb_put(w->out, " down");
  if (loop->commutes) bb_put(w->out, " commutes");
  if (loop->marked) {
    bb_put(w->out, " where %s", w->p->view[loop->marks].name);
    put_indices(w, w->p->view[loop->marks].rank, loop->marked);
    bb_put(w->out, loop->anywhere ? " anywhere" : "");
  }
  if (loop->merge) {
    bb_put(w->out, " merge %s (", loop->merge->name);
    for (uint32_t i = 0; i < loop->merge->components; i++)
      bb_put(w->out, "%s%s", i ? ", " : "", w->p->tile[loop->merged[i]].name);
    bb_put(w->out, ")");
  }
  if (loop->spread || loop->rotate || loop->pairs) {
    bb_put(w->out, " @%s%s", loop->spread ? " " : "", spread[loop->spread]);
    bb_put(w->out, "%s%s%s%s", loop->persistent ? " persistent" : "", loop->queue ? " queue" : "",
           loop->rotate ? " rotate" : "", loop->pairs ? " pairs" : "");
  }
}

static void put_ranges(const printer *w, const bb_tile_stmt *s, const bb_tile *tile) {
  const bb_tile_view *view = &w->p->view[s->view];
  bb_put(w->out, "%s[", view->name);
  bb_axis next = tile->rows ? BB_AXIS_ROW : BB_AXIS_COL;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &s->range[i];
    if (i) bb_put(w->out, ", ");
    put_index(w, r->start);
    if (!r->size) continue;
    bb_put(w->out, ":%u", r->size);
    if (r->axis != next) bb_put(w->out, r->axis == BB_AXIS_ROW ? " row" : " col");
    next = BB_AXIS_COL;
  }
  bb_put(w->out, "]");
}

static void put_dot(const printer *w, const bb_tile_stmt *s) {
  bb_put(w->out, "dot(");
  for (uint32_t i = 0; i < 2; i++)
    bb_put(w->out, "%s%s%s", i ? ", " : "", w->p->tile[s->operand[i]].name,
           s->transposed[i] ? "'" : "");
  bb_put(w->out, ")");
}

void bb_tile_print_head(bb_buffer *out, const bb_tile_program *p, const bb_tile_stmt *s) {
  printer w = {out, p};
  if (s->result != BB_NONE) bb_put(out, "%s", p->tile[s->result].name);
  if (s->second != BB_NONE) bb_put(out, ", %s", p->tile[s->second].name);
  if (s->result != BB_NONE) bb_put(out, " %s ", s->accumulate ? "+=" : "=");
  switch (s->kind) {
  case BB_TILE_LOAD:
    bb_put(out, "load ");
    put_ranges(&w, s, &p->tile[s->result]);
    if (s->pad != 0) {
      bb_put(out, " else ");
      bb_put_number(out, s->pad, BB_F64);
    }
    break;
  case BB_TILE_STORE:
    bb_put(out, "store ");
    put_ranges(&w, s, &p->tile[s->operand[0]]);
    bb_put(out, " = %s", p->tile[s->operand[0]].name);
    break;
  case BB_TILE_MAP: put_expr(&w, s); break;
  case BB_TILE_ANY:
    bb_put(out, "any(");
    put_expr(&w, s);
    bb_put(out, ")");
    break;
  case BB_TILE_DOT: put_dot(&w, s); break;
  case BB_TILE_TRANSPOSE: bb_put(out, "transpose(%s)", p->tile[s->operand[0]].name); break;
  case BB_TILE_FOLD:
    bb_put(out, "fold %s(%s) over %s", s->monoid->name, p->tile[s->operand[0]].name,
           s->axis == BB_AXIS_ROW ? "row" : "col");
    if (!s->limit) break;
    bb_put(out, " below ");
    put_index(&w, s->limit);
    break;
  case BB_TILE_SCAN:
    bb_put(out, "scan%s %s(%s) over %s", s->before ? "_exclusive" : "", s->monoid->name,
           p->tile[s->operand[0]].name, s->axis == BB_AXIS_ROW ? "row" : "col");
    break;
  case BB_TILE_IF: bb_put(out, "if %s", p->tile[s->operand[0]].name); break;
  case BB_TILE_WHEN:
    bb_put(out, "when ");
    bb_expr_print(out, p->home, s->expr, BB_EXPR_TEXT, p->variables, p->variable);
    break;
  case BB_TILE_LOOP: put_loop(&w, s->loop); break;
  }
  if (s->at[0] || s->at[1]) {
    bb_put(out, " at (");
    for (uint32_t i = 0; i < 2; i++) {
      if (i) bb_put(out, ", ");
      if (s->at[i])
        put_index(&w, s->at[i]);
      else
        bb_put(out, "_");
    }
    bb_put(out, ")");
  }
  if (s->stage) bb_put(out, " @ stage %u", s->stage);
}

static void put_body(const printer *w, const bb_tile_body *body, uint32_t depth) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bb_put(w->out, "%*s", (int)(2 * depth), "");
    if (s->stretches) {
      const char *comma = "in ";
      for (uint32_t k = 0; k < BB_TILE_STRETCHES; k++) {
        if (!(s->stretches >> k & 1)) continue;
        bb_put(w->out, "%s%u", comma, k);
        comma = ",";
      }
      bb_put(w->out, ": ");
    }
    bb_tile_print_head(w->out, w->p, s);
    if (s->kind == BB_TILE_IF || s->kind == BB_TILE_WHEN || s->kind == BB_TILE_LOOP) {
      bb_put(w->out, " {\n");
      put_body(w, s->kind == BB_TILE_LOOP ? &s->loop->body : &s->body, depth + 1);
      bb_put(w->out, "%*s}", (int)(2 * depth), "");
    }
    bb_put(w->out, "\n");
  }
}

static void put_roles(const printer *w) {
  const bb_tile_program *p = w->p;
  if (!p->groups && !p->copier_registers && !p->registers && !p->turns) return;
  bb_put(w->out, "roles");
  if (p->groups) bb_put(w->out, " groups %u", p->groups);
  if (p->copier_registers) bb_put(w->out, " copier %u", p->copier_registers);
  if (p->registers) bb_put(w->out, " registers %u", p->registers);
  bb_put(w->out, p->turns ? " turns\n" : "\n");
}

void bb_tile_print(bb_buffer *out, const bb_tile_program *p) {
  printer w = {out, p};
  bb_put(out, "tile %s 1\n", p->name);
  for (uint32_t i = 0; i < p->extents; i++)
    bb_put(out, "%s%s", i ? ", " : "extent ", p->variable[i]);
  if (p->extents) bb_put(out, "\n");
  for (uint32_t i = 0; i < p->views; i++) put_view(&w, &p->view[i]);
  for (uint32_t i = 0; i < p->monoids; i++) put_monoid(&w, p->monoid[i]);
  for (uint32_t i = 0; i < p->tiles; i++) put_tile(&w, &p->tile[i]);
  put_roles(&w);
  put_body(&w, &p->body, 0);
}
