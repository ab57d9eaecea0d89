/* waits.c - which nodes wait for extents that misc nodes tell in a run.
 *
 * A node of such an extent mostly takes what the misc node found.  It may do without - of as many ones as were found the number
 * is all there is - and must not run before it all the same, nor be part of the candidate that the misc node waits for.
 */
#include "flow.h"

#include <string.h>

/* Lists of misc nodes end with BB_NONE; NULL: none. */
struct bb_waits {
  const bb_flow *flow;
  uint32_t symbols, tellers;
  uint32_t **teller; /* by symbol: those that it follows from */
  uint32_t **of;     /* by node: those that it waits for */
  uint32_t *seen;    /* by node: the last search that found it */
  uint32_t searches, count;
  uint32_t *found;
};

static void add(bb_waits *w, uint32_t symbol) {
  const uint32_t *teller = symbol < w->symbols ? w->teller[symbol] : NULL;
  for (; teller && *teller != BB_NONE; teller++) {
    if (w->seen[*teller] == w->searches) continue;
    w->seen[*teller] = w->searches;
    w->found[w->count++] = *teller;
  }
}

static void add_extent(bb_waits *w, const bb_extent *extent) {
  for (uint32_t k = 0; k < extent->count; k++) add(w, extent->symbol[k]);
}

static void add_dim(bb_waits *w, bb_dim dim) {
  if (dim != BB_NO_DIM) add_extent(w, bb_dim_get(w->flow->program, dim)->extent);
}

static void add_expr(bb_waits *w, const bb_expr *e) {
  if (e->op == BB_X_SYMBOL) add(w, e->index);
  if (e->op == BB_X_EXTENT) add_dim(w, e->dim);
  for (int i = 0; i < 3; i++)
    if (e->a[i]) add_expr(w, e->a[i]);
}

static void add_type(bb_waits *w, const bb_type *type) {
  add_dim(w, type->item.row);
  add_dim(w, type->item.col);
  for (uint32_t i = 0; i < type->rank; i++) add_dim(w, type->level[i].dim);
}

static void add_node(bb_waits *w, const bb_node *node) {
  for (uint32_t i = 0; i < node->nout; i++) add_type(w, node->out[i].type);
  if (node->kind == BB_NODE_FUNC && node->expr) add_expr(w, node->expr);
  if (node->kind != BB_NODE_MAP) return;
  add_dim(w, node->dim);
  for (uint32_t i = 0; i < node->inner->count; i++)
    if (node->inner->node[i]->kind != BB_NODE_REMOVED) add_node(w, node->inner->node[i]);
}

uint32_t bb_waits_tellers(const bb_waits *w) {
  return w ? w->tellers : 0;
}

const uint32_t *bb_waits_of(const bb_waits *w, uint32_t node, uint32_t *count) {
  const uint32_t *teller = w ? w->of[node] : NULL;
  for (*count = 0; teller && teller[*count] != BB_NONE;) ++*count;
  return teller;
}

/* --- finding them --- */

static void begin(bb_waits *w) {
  w->searches++;
  w->count = 0;
}

/* What was found, as a list. */
static uint32_t *found(bb_waits *w) {
  if (!w->count) return NULL;
  uint32_t *list = BB_NEW(w->flow->scratch, uint32_t, w->count + 1u);
  memcpy(list, w->found, w->count * sizeof *list);
  list[w->count] = BB_NONE;
  return list;
}

static void find_tellers(bb_waits *w) {
  const bb_program *program = w->flow->program;
  for (uint32_t i = 0; i < w->flow->nodes; i++) {
    uint32_t n = w->flow->order[i];
    const bb_node *node = w->flow->graph->node[n];
    if (node->kind != BB_NODE_MISC || !node->misc) continue;
    uint32_t symbol = bb_misc_tells(program, node->misc);
    begin(w);
    w->found[w->count++] = n;
    if (symbol == BB_NONE) continue;
    w->teller[symbol] = found(w);
    w->tellers++;
  }
}

/* The expression that a symbol's name is; NULL: it is none. */
static const bb_expr *meaning_of(bb_program *program, uint32_t symbol) {
  const char *text = program->symbol[symbol], *end = text + strlen(text), *error;
  if (!bb_symbol_follows(program, symbol)) return NULL;
  return bb_expr_parse(program, &text, end, NULL, NULL, &error);
}

/* A symbol whose name is an expression of others follows from what these follow from.  They may stand behind it: again, until
 * no more is found. */
static void find_followers(bb_waits *w) {
  uint32_t *known = BB_NEW(w->flow->scratch, uint32_t, w->symbols);
  const bb_expr **meaning = BB_NEW(w->flow->scratch, const bb_expr *, w->symbols);
  for (uint32_t s = 0; s < w->symbols; s++) meaning[s] = meaning_of(w->flow->program, s);
  for (bool more = true; more;) {
    more = false;
    for (uint32_t s = 0; s < w->symbols; s++) {
      if (!meaning[s]) continue;
      begin(w);
      add_expr(w, meaning[s]);
      if (w->count == known[s]) continue;
      known[s] = w->count;
      w->teller[s] = found(w);
      more = true;
    }
  }
}

bb_waits *bb_waits_find(const bb_flow *flow) {
  const bb_program *program = flow->program;
  bool any = false;
  for (uint32_t s = 0; s < program->symbols; s++) any |= program->most[s] != NULL;
  if (!any) return NULL;
  bb_waits *w = BB_NEW(flow->scratch, bb_waits, 1);
  *w = (bb_waits){.flow = flow, .symbols = program->symbols};
  w->teller = BB_NEW(flow->scratch, uint32_t *, w->symbols);
  w->of = BB_NEW(flow->scratch, uint32_t *, flow->graph->count);
  w->seen = BB_NEW(flow->scratch, uint32_t, flow->graph->count);
  w->found = BB_NEW(flow->scratch, uint32_t, flow->graph->count);
  find_tellers(w);
  find_followers(w);
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    begin(w);
    w->seen[n] = w->searches; /* not for itself */
    add_node(w, flow->graph->node[n]);
    w->of[n] = found(w);
  }
  return w;
}
