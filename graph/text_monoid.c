/* text_monoid.c - tuples as text: declared in the program's header, used by name.
 *
 *   monoid NAME [proved] {
 *     m : f32 empty -inf = max(left.m,right.m)
 *     s : f32 empty 0 from 0 to inf = left.s*exp(left.m-max(left.m,right.m))+ ...
 *       fold sum repair self.s*exp(self.m-new.m)
 *     proof "a line for a reader"
 *   }
 */
#include "expr_text.h"
#include "text_form.h"
#include "text_number.h"

#include <string.h>

/* --- printing --- */

static const char *const sides[] = {"left", "right"}, *const ages[] = {"self", "new"};

static void write_expr(bb_writer *w, const bb_monoid *m, const bb_expr *expr,
                       const char *const prefix[2]) {
  const char *name[2 * BB_MONOID_COMPONENTS];
  bb_dtype dtype[2 * BB_MONOID_COMPONENTS];
  for (uint32_t i = 0; i < 2 * m->components; i++) {
    const bb_monoid_component *c = &m->component[i % m->components];
    name[i] = bb_arena_printf(w->scratch, "%s.%s", prefix[i / m->components], c->name);
    dtype[i] = c->dtype;
  }
  bb_expr_print_typed(w->out, w->program, expr, BB_EXPR_TEXT, 2 * m->components, name, dtype);
}

static void write_proof(bb_writer *w, const char *proof) {
  while (proof && *proof) {
    const char *end = strchr(proof, '\n');
    size_t length = end ? (size_t)(end - proof) : strlen(proof);
    bb_put(w->out, "  proof ");
    bb_put_quoted(w->out, bb_arena_printf(w->scratch, "%.*s", (int)length, proof));
    bb_put(w->out, "\n");
    proof += length + (end != NULL);
  }
}

static void write_monoid(bb_writer *w, const bb_monoid *m) {
  bb_put(w->out, "monoid %s%s {\n", m->name, m->proved ? " proved" : "");
  for (uint32_t k = 0; k < m->components; k++) {
    const bb_monoid_component *c = &m->component[k];
    bb_put(w->out, "  %s : %s empty ", c->name, bb_dtype_name(c->dtype));
    bb_put_number(w->out, c->empty, BB_F64);
    if (c->low != c->high) {
      bb_put(w->out, " from ");
      bb_put_number(w->out, c->low, BB_F64);
      bb_put(w->out, " to ");
      bb_put_number(w->out, c->high, BB_F64);
    }
    bb_put(w->out, " = ");
    write_expr(w, m, c->combine, sides);
    if (c->fold != BB_MONOID_TUPLE) bb_put(w->out, " fold %s", bb_monoid_get(c->fold)->name);
    if (c->repair) {
      bb_put(w->out, " repair ");
      write_expr(w, m, c->repair, ages);
    }
    bb_put(w->out, "\n");
  }
  if (w->proofs) write_proof(w, m->proof);
  bb_put(w->out, "}\n");
}

void bb_write_monoids(bb_writer *w) {
  if (w->program->monoids == 0) return;
  const uint32_t *use = bb_monoid_uses(w->program, w->scratch);
  for (uint32_t i = 0; i < w->program->monoids; i++)
    if (use[i] != BB_NONE) write_monoid(w, w->program->monoid[i]);
}

/* --- parsing --- */

/* Components are declared in order, and combine may read all of them: a first pass over the braces
 * takes names and types, a second one the expressions. */
typedef struct declaration {
  bb_reader *r;
  const char *place, *name;
  bool proved;
  uint32_t count;
  bb_monoid_component component[BB_MONOID_COMPONENTS];
  const char *const *prefix; /* of the expression being read */
  const bb_monoid *made;
} declaration;

static const bb_expr *look_up(void *user, const char *name, size_t length) {
  const declaration *d = user;
  for (uint32_t side = 0; side < 2; side++) {
    size_t prefix = strlen(d->prefix[side]);
    if (length <= prefix || memcmp(name, d->prefix[side], prefix) != 0 || name[prefix] != '.')
      continue;
    for (uint32_t k = 0; k < d->count; k++) {
      const char *own = d->component[k].name;
      if (strlen(own) == length - prefix - 1 && memcmp(own, name + prefix + 1, strlen(own)) == 0)
        return bb_expr_arg(d->r->program, d->component[k].dtype, side * d->count + k);
    }
  }
  return NULL;
}

static const char *read_plain_name(bb_reader *r, const char *what) {
  const char *place = r->token.start, *name = bb_read_name(r, what);
  if (!bb_name_is_plain(name) || strchr(name, '.') || strlen(name) > 64)
    bb_read_fail(r, place, "%s is a letter and up to 63 letters, digits and _, no word", what);
  return name;
}

/* A component starts with its name and a colon; expressions have none. */
static void scan_components(declaration *d) {
  bb_reader *r = d->r;
  while (!bb_read_is(r, "}")) {
    if (r->token.kind == BB_TOKEN_END) bb_read_fail_expected(r, "}");
    if (!bb_read_is_name(r)) {
      bb_read_next(r);
      continue;
    }
    const char *start = r->token.start;
    bb_read_next(r);
    if (!bb_read_accept(r, ":")) continue;
    bb_read_from(r, start);
    if (d->count == BB_MONOID_COMPONENTS)
      bb_read_fail(r, start, "more than %d components", BB_MONOID_COMPONENTS);
    bb_monoid_component *c = &d->component[d->count];
    *c = (bb_monoid_component){.fold = BB_MONOID_TUPLE};
    c->name = read_plain_name(r, "the name of a component");
    for (uint32_t k = 0; k < d->count; k++)
      if (strcmp(d->component[k].name, c->name) == 0)
        bb_read_fail(r, start, "component %s is declared twice", c->name);
    bb_read_expect(r, ":");
    c->dtype = bb_read_dtype(r);
    d->count++;
  }
}

static const bb_expr *read_expr(declaration *d, const char *const *prefix) {
  d->prefix = prefix;
  return bb_read_expr(d->r, look_up, d);
}

static void read_component(declaration *d, bb_monoid_component *c) {
  bb_reader *r = d->r;
  bb_read_expect(r, c->name); /* both, and the type, were read before */
  bb_read_expect(r, ":");
  bb_read_dtype(r);
  bb_read_expect(r, "empty");
  c->empty = bb_read_double(r);
  if (bb_read_accept(r, "from")) {
    const char *place = r->token.start;
    c->low = bb_read_double(r);
    bb_read_expect(r, "to");
    c->high = bb_read_double(r);
    if (!(c->low < c->high)) bb_read_fail(r, place, "from a smaller number to a larger one");
  }
  bb_read_expect(r, "=");
  c->combine = read_expr(d, sides);
  if (bb_read_accept(r, "fold")) {
    const char *place = r->token.start;
    c->fold = bb_read_monoid(r)->id;
    if (c->fold == BB_MONOID_TUPLE) bb_read_fail(r, place, "a component folds with a basic monoid");
  }
  if (bb_read_accept(r, "repair")) c->repair = read_expr(d, ages);
}

static void make(bb_context *ctx, void *argument) {
  (void)ctx;
  declaration *d = argument;
  d->made = bb_monoid_make(d->r->program, d->name, d->count, d->component, d->proved);
}

/* A proof stays where it was made; its claim is tested, on values that the monoid may never fold. */
static void doubt(const declaration *d) {
  bb_reader *r = d->r;
  const char *counterexample = bb_monoid_test(r->program, d->made, r->scratch);
  if (counterexample)
    bb_log(r->ctx, BB_LOG_WARNING,
           "monoid %s is declared as proved; on values it may never meet, %s", d->name,
           counterexample);
}

void bb_read_monoid_statement(bb_reader *r) {
  declaration d = {.r = r, .place = r->token.start};
  if (!r->monoid) r->monoid = bb_table_create(r->scratch);
  d.name = read_plain_name(r, "the name of a monoid");
  size_t length = strlen(d.name);
  if (bb_monoid_find(d.name, length) || bb_table_find(r->monoid, d.name, length) != BB_NONE)
    bb_read_fail(r, d.place, "monoid %s is declared twice", d.name);
  d.proved = bb_read_accept(r, "proved");
  bb_read_expect(r, "{");
  const char *start = r->token.start;
  scan_components(&d);
  bb_read_from(r, start);
  for (uint32_t k = 0; k < d.count; k++) read_component(&d, &d.component[k]);
  bb_buffer proof = {.arena = r->scratch};
  while (bb_read_accept(r, "proof")) bb_put(&proof, "%s\n", bb_read_name(r, "a line of a proof"));
  bb_read_expect(r, "}");
  bb_read_protected(r, d.place, make, &d);
  if (proof.length) bb_monoid_keep_proof(r->program, d.made, proof.data);
  if (d.proved) doubt(&d);
  uint32_t number = 0;
  while (r->program->monoid[number] != d.made) number++;
  bb_table_add(r->monoid, d.name, length, number);
}

/* A reader of a part of a program, whose header was read before, finds what the program has. */
static const bb_monoid *declared(const bb_reader *r, const char *name, size_t length) {
  if (!r->monoid) return bb_monoid_named(r->program, name, length);
  uint32_t number = bb_table_find(r->monoid, name, length);
  return number == BB_NONE ? NULL : r->program->monoid[number];
}

const bb_monoid *bb_read_monoid(bb_reader *r) {
  const bb_monoid *monoid = NULL;
  if (r->token.kind == BB_TOKEN_NAME) {
    monoid = bb_monoid_find(r->token.name, r->token.length);
    if (!monoid) monoid = declared(r, r->token.name, r->token.length);
  }
  if (!monoid) bb_read_fail_expected(r, "a monoid such as sum or max");
  bb_read_next(r);
  return monoid;
}
