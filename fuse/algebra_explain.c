/* algebra_explain.c - a product in words: g, h, both conditions, the recurrence, split-k. */
#include "algebra.h"

#include <string.h>

enum { COPIES = 5 }; /* own, renewed, and the arbitrary values of the proofs */

typedef struct writer {
  bb_buffer *out;
  bb_program *program;
  const bb_product *p;
  uint32_t names;
  const char **name;
} writer;

static const char *suffixed(writer *w, const char *name, const char *suffix) {
  return bb_arena_printf(w->program->arena, "%s%s", name, suffix);
}

static void name_arguments(writer *w) {
  static const char *suffix[COPIES] = {"", "'", ".t", ".u", ".n"};
  const bb_product *p = w->p;
  w->names = p->own + COPIES * p->count;
  w->name = BB_NEW(w->program->arena, const char *, w->names);
  for (uint32_t i = 0; i < p->own; i++) w->name[i] = p->chain.name[i];
  for (uint32_t copy = 0; copy < COPIES; copy++)
    for (uint32_t j = 0; j < p->count; j++)
      w->name[p->own + copy * p->count + j] = suffixed(w, p->component[j].name, suffix[copy]);
}

static void put(writer *w, const bb_expr *expr) {
  bb_expr_print(w->out, w->program, expr, BB_EXPR_TEXT, w->names, w->name);
}

/* With own components called by another suffix, and renewed ones by their plain names. */
static void put_part(writer *w, const bb_expr *expr, const char *suffix) {
  const bb_product *p = w->p;
  writer part = *w;
  part.name = BB_NEW(w->program->arena, const char *, w->names);
  memcpy(part.name, w->name, w->names * sizeof *part.name);
  for (uint32_t j = 0; j < p->count; j++) {
    part.name[p->own + j] = suffixed(w, p->component[j].name, suffix);
    part.name[p->renewed + j] = p->component[j].name;
  }
  put(&part, expr);
}

static const char *fold_name(bb_monoid_id fold) {
  return bb_monoid_get(fold)->name;
}

/* --- the chain --- */

static void put_chain(writer *w) {
  const bb_chain *chain = &w->p->chain;
  writer inner = *w; /* results of earlier folds by their own names */
  uint32_t outer = chain->elements + chain->fixed;
  inner.names = outer + 2 * chain->folds;
  inner.name = BB_NEW(w->program->arena, const char *, inner.names);
  for (uint32_t i = 0; i < outer; i++) inner.name[i] = chain->name[i];
  bb_put(w->out, "chain of %u dependent reductions\n", chain->folds);
  uint32_t at = outer;
  for (uint32_t i = 0; i < chain->folds; i++) {
    const bb_chain_fold *f = &chain->fold[i];
    bb_put(w->out, "  %s = %s of ", f->name, fold_name(f->fold));
    put(&inner, f->term);
    if (f->payload) {
      bb_put(w->out, " with ");
      put(&inner, f->payload);
    }
    bb_put(w->out, "\n");
    inner.name[at++] = f->name;
    if (f->payload) inner.name[at++] = suffixed(w, f->name, "_at");
  }
}

/* --- components and proofs --- */

static void put_step(writer *w, const bb_proof_step *s) {
  static const char *title[] = {[BB_PROOF_REPLACES] = "(i)  h(g(r,c),r,r') = g(r',c)",
                                [BB_PROOF_DISTRIBUTES] = "(ii) h over",
                                [BB_PROOF_LINEAR] = "h is that linear form",
                                [BB_PROOF_FINISHES] = "finishes g",
                                [BB_PROOF_GUARDED] = "guarded, over the reals",
                                [BB_PROOF_DEFINED] = "has a value at every partial r"};
  bb_monoid_id fold = s->result ? w->p->chain.fold[s->index].fold : w->p->component[s->index].fold;
  bool at_end = s->result && s->kind == BB_PROOF_DEFINED;
  bb_put(w->out, "    %s", at_end ? "has a value at the r of the whole" : title[s->kind]);
  if (s->kind == BB_PROOF_DISTRIBUTES) bb_put(w->out, " %s", fold_name(fold));
  bb_put(w->out, ": ");
  put(w, s->left);
  if (s->kind != BB_PROOF_DEFINED) {
    bb_put(w->out, " = ");
    put(w, s->right);
  }
  bb_put(w->out, "   [%s%s]\n", s->by, s->holds ? "" : ": NOT PROVED");
}

static void put_steps(writer *w, bool result, uint32_t index) {
  for (uint32_t i = 0; i < w->p->steps; i++) {
    const bb_proof_step *s = &w->p->step[i];
    if (s->result == result && s->index == index) put_step(w, s);
  }
}

static void put_folds_used(writer *w, uint64_t uses) {
  const char *comma = "";
  for (uint32_t i = 0; i < w->p->count; i++) {
    if (!(uses >> i & 1)) continue;
    bb_put(w->out, "%s%s", comma, w->p->component[i].name);
    comma = ", ";
  }
}

static void put_component(writer *w, uint32_t j) {
  const bb_component *c = &w->p->component[j];
  if (c->payload) {
    bb_put(w->out, "  %s: carried with %s: ", c->name, w->p->component[j - 1].name);
    put(w, c->term);
    bb_put(w->out, "\n");
    return;
  }
  bb_put(w->out, "  %s: %s of g(r,c) = ", c->name, fold_name(c->fold));
  put(w, c->term);
  if (!c->uses) {
    bb_put(w->out, "; reads no other fold, nothing to repair\n");
    return;
  }
  bb_put(w->out, ", r = (");
  put_folds_used(w, c->uses);
  bb_put(w->out, ")\n");
  if (c->inverse) {
    bb_put(w->out, "    g inverted in c, for the value %s: c = ", c->name);
    put(w, c->inverse);
    bb_put(w->out, "\n");
  }
  bb_put(w->out, "    h(%s,r,r') = ", c->name);
  put(w, c->repair);
  bb_put(w->out, "\n");
  put_steps(w, false, j);
}

static void put_result(writer *w, uint32_t i) {
  const bb_result *r = &w->p->result[i];
  bb_put(w->out, "  %s = ", w->p->chain.fold[i].name);
  put(w, r->finish);
  if (r->pivot) bb_put(w->out, "   (moments about %s)", r->pivot);
  bb_put(w->out, "\n");
  put_steps(w, true, i);
}

/* --- recurrences --- */

static const char *symbol(bb_monoid_id fold) {
  switch (fold) {
  case BB_MONOID_SUM: return " + ";
  case BB_MONOID_PROD: return " * ";
  default: return NULL;
  }
}

static void put_rolling(writer *w) {
  bb_put(w->out, "rolling update, for each c:\n");
  for (uint32_t j = 0; j < w->p->count; j++) {
    const bb_component *c = &w->p->component[j];
    if (c->payload) continue;
    const char *infix = symbol(c->fold);
    bb_put(w->out, "  %s' = ", c->name);
    if (!infix) bb_put(w->out, "%s(", fold_name(c->fold));
    put(w, c->repair);
    bb_put(w->out, "%s", infix ? infix : ", ");
    const bb_product *p = w->p;
    writer at = *w; /* the term reads renewed components */
    at.name = BB_NEW(w->program->arena, const char *, w->names);
    memcpy(at.name, w->name, w->names * sizeof *at.name);
    for (uint32_t k = 0; k < p->count; k++) at.name[p->own + k] = w->name[p->renewed + k];
    put(&at, c->term);
    bb_put(w->out, "%s\n", infix ? "" : ")");
  }
}

static void put_split(writer *w) {
  bb_put(w->out, "split-k, of two parts (each folded by itself):\n");
  for (uint32_t j = 0; j < w->p->count; j++) {
    const bb_component *c = &w->p->component[j];
    if (c->payload) continue;
    const char *infix = symbol(c->fold);
    bb_put(w->out, "  %s = ", c->name);
    if (!infix) bb_put(w->out, "%s(", fold_name(c->fold));
    put_part(w, c->repair, "_1");
    bb_put(w->out, "%s", infix ? infix : ", ");
    put_part(w, c->repair, "_2");
    bb_put(w->out, "%s\n", infix ? "" : ")");
  }
}

void bb_product_explain(bb_buffer *out, bb_program *program, const bb_product *product) {
  writer w = {.out = out, .program = program, .p = product};
  put_chain(&w);
  if (product->refused) {
    bb_put(out, "refused at %s: %s\n", product->chain.fold[product->refused_fold].name,
           product->refused);
    return;
  }
  name_arguments(&w);
  bb_put(out, "one product monoid of %u components%s\n", product->count,
         product->commutative ? ", commutative" : "");
  for (uint32_t j = 0; j < product->count; j++) put_component(&w, j);
  bb_put(out, "results\n");
  for (uint32_t i = 0; i < product->chain.folds; i++) put_result(&w, i);
  put_rolling(&w);
  put_split(&w);
}

const char *bb_product_why_not(bb_program *program, const bb_product *product,
                               const bb_proof_step *step) {
  bb_buffer out = {.arena = program->arena};
  writer w = {.out = &out, .program = program, .p = product};
  name_arguments(&w);
  bool defined = step->kind == BB_PROOF_DEFINED;
  if (defined && step->result && (step->left->op == BB_X_DIV || step->left->op == BB_X_LOG)) {
    put(&w, step->left->a[step->left->op == BB_X_DIV]);
    bb_put(&out, " may be 0 for a part of the elements: terms of both signs may cancel");
  } else if (defined) {
    put(&w, step->left);
    bb_put(&out, " has no value at some partial fold of a non-empty part");
  } else {
    bb_put(&out, "a derived repair could not be proved: ");
    put(&w, step->left);
    bb_put(&out, " = ");
    put(&w, step->right);
  }
  return out.data;
}
