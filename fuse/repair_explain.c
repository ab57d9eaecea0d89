/* repair_explain.c - the proof of a repair, kept with its monoid, and what a program's reader is told.
 *
 * A proof is written down when the repair is applied, while the chain is known, and goes wherever the
 * monoid goes: into every snapshot that folds with it, into text and back.
 */
#include "repair.h"

#include "fuse.h"

#include <string.h>

/* --- writing a proof down --- */

static const char *dim_name(const bb_repair *r, bb_dim dim) {
  return bb_dim_get(r->program, dim)->name;
}

static void put_leaf(bb_buffer *out, const bb_repair *r, const bb_repair_leaf *l) {
  bb_put(out, "  %s: ", r->product->chain.name[l->arg]);
  if (l->coord != BB_NONE) {
    bb_put(out, "an index of the element\n");
    return;
  }
  bb_dim row = l->item.row, col = l->item.col;
  bb_put(out, "%s", l->fixed ? "the same in every iteration, " : "");
  if (row == BB_NO_DIM && col == BB_NO_DIM)
    bb_put(out, "a number");
  else if (row != BB_NO_DIM && col != BB_NO_DIM)
    bb_put(out, "a block of %s x %s", dim_name(r, row), dim_name(r, col));
  else
    bb_put(out, "a vector of %s", dim_name(r, row != BB_NO_DIM ? row : col));
  const bb_node *node = l->map == BB_NONE
                            ? bb_node_get(r->graph, l->value.node)
                            : bb_node_get(bb_node_get(r->graph, r->u)->inner, l->inside.node);
  if (node->kind == BB_NODE_FUNC)
    bb_put(out, ", made by %s (node %u)", bb_op_get(node->op)->name, node->serial);
  bb_put(out, "\n");
}

void bb_repair_keep_proof(bb_repair *r) {
  if (r->monoid->proof) return;
  bb_buffer out = {.arena = r->program->arena};
  bb_product_explain(&out, r->program, r->product);
  bb_put(&out, "where\n");
  for (uint32_t i = 0; i < r->leaves; i++)
    if (r->leaf[i].arg != BB_NONE) put_leaf(&out, r, &r->leaf[i]);
  bb_monoid_keep_proof(r->program, r->monoid, out.data);
}

/* --- telling --- */

typedef struct teller {
  bb_buffer *out;
  bb_program *program;
  bb_arena *scratch;
  const bb_monoid **told;
  uint32_t count, capacity;
  uint32_t repaired, refused;
} teller;

static void put_indented(bb_buffer *out, const char *text) {
  while (*text) {
    const char *end = strchr(text, '\n');
    int length = end ? (int)(end - text) : (int)strlen(text);
    bb_put(out, "  %.*s\n", length, text);
    text += length + (end != NULL);
  }
}

static bool is_told(teller *t, const bb_monoid *monoid) {
  for (uint32_t i = 0; i < t->count; i++)
    if (t->told[i] == monoid) return true;
  BB_GROW(t->scratch, t->told, t->capacity, (size_t)t->count + 1);
  t->told[t->count++] = monoid;
  return false;
}

static void tell_fold(teller *t, const bb_node *map, const bb_monoid *monoid) {
  bb_put(t->out, "repaired: node %u, a loop over %s, folds (", map->serial,
         bb_dim_get(t->program, map->dim)->name);
  for (uint32_t k = 0; k < monoid->components; k++)
    bb_put(t->out, "%s%s", k ? ", " : "", monoid->component[k].name);
  bb_put(t->out, ") with %s", monoid->name);
  bb_put(t->out, is_told(t, monoid) ? ", as above\n" : "\n");
  t->repaired++;
}

static void tell_folds(teller *t, const bb_node *map) {
  for (uint32_t p = 0; p < map->nout; p++) {
    const bb_out *out = &map->out[p];
    if (out->mode != BB_OUT_FOLD || out->component || !out->fold->proof) continue;
    uint32_t before = t->count;
    tell_fold(t, map, out->fold);
    if (t->count > before) put_indented(t->out, out->fold->proof);
  }
}

/* Why a map is not repaired: for each of its folds that stands in the way, the others left out. */
static void tell_refusals(teller *t, bb_scope *scope, uint32_t n) {
  bb_match match = {.scope = scope, .anchor = n, .partner = BB_NONE, .dim = BB_NO_DIM};
  const bb_node *node = bb_node_get(scope->graph, n);
  uint64_t left_out = 0;
  const char *before = NULL;
  for (bool more = true; more;) {
    bb_repair r = {.arena = bb_scratch(t->program->ctx), .left_out = left_out};
    more = !bb_repair_read(&r, &match) && r.why != bb_repair_no_pair && r.why != bb_repair_no_fold;
    if (more && (!before || strcmp(before, r.why))) {
      bb_put(t->out, "not repaired: node %u, a loop over %s, takes folds over the same dim: %s\n",
             node->serial, bb_dim_get(t->program, node->dim)->name, r.why);
      before = bb_arena_printf(t->scratch, "%s", r.why);
      t->refused++;
    }
    const bb_repair_fold *f = more && r.refused != BB_NONE ? &r.fold[r.refused] : NULL;
    more = f && f->second && f->port < 64;
    if (more) left_out |= UINT64_C(1) << f->port;
    bb_scratch_end(r.arena);
  }
}

static void tell_level(teller *t, bb_scope *scope) {
  for (uint32_t n = scope->first; n != BB_NONE; n = scope->place[n].next) {
    const bb_node *node = bb_node_get(scope->graph, n);
    if (node->kind != BB_NODE_MAP) continue;
    tell_folds(t, node);
    tell_refusals(t, scope, n);
    tell_level(t, bb_scope_create(t->scratch, scope, n, node->inner));
  }
  scope->graph->journal = NULL;
}

void bb_fuse_explain(bb_buffer *out, bb_program *program, bb_graph *root) {
  bb_arena *scratch = bb_scratch(program->ctx);
  teller t = {.out = out, .program = program, .scratch = scratch};
  tell_level(&t, bb_scope_create(scratch, NULL, BB_NONE, root));
  if (!t.repaired && !t.refused) bb_put(out, "no fold waits for another over the same dim\n");
  bb_scratch_end(scratch);
}
