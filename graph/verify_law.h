/* verify_law.h - what the files of the verifier share.
 */
#ifndef BB_GRAPH_VERIFY_LAW_H
#define BB_GRAPH_VERIFY_LAW_H

#include "verify.h"

typedef enum bb_law {
#define BB_LAW(id, name, text) BB_LAW_##id,
#include "law.def"
#undef BB_LAW
  BB_LAW_COUNT
} bb_law;

const char *bb_law_name(bb_law law);

typedef struct bb_verifier {
  const bb_program *program;
  bb_arena *scratch;
  const char *message; /* NULL while all laws hold */
} bb_verifier;

/* Where a law is broken.  port: BB_NONE: the node as a whole. */
typedef struct bb_place {
  const bb_node *node; /* NULL: see text */
  uint32_t port;
  bool out;
  const char *text;
} bb_place;

/* Notes the message; gives false, so that checks read `return bb_law_broken(...)`. */
bool bb_law_broken(bb_verifier *v, bb_law law, bb_place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static inline bb_place bb_at_node(const bb_node *node) {
  return (bb_place){.node = node, .port = BB_NONE};
}
static inline bb_place bb_at_in(const bb_node *node, uint32_t port) {
  return (bb_place){.node = node, .port = port};
}
static inline bb_place bb_at_out(const bb_node *node, uint32_t port) {
  return (bb_place){.node = node, .port = port, .out = true};
}

/* The nodes of a level in topological order, or NULL once a law is broken. */
uint32_t *bb_verify_structure(bb_verifier *v, const bb_graph *graph, bool root);

/* Which outputs of a level change with the loop of the k-th map around it, given which of its
 * inputs do?  Exact to the port: what a map gives may depend on some of its in-ports only. */
bool *bb_verify_varying(bb_arena *scratch, const bb_graph *graph, const bool *input, uint32_t k);

/* Each gives false once a law is broken. */
bool bb_verify_levels(bb_verifier *v, const bb_graph *root);
/* Of an INPUT, OUTPUT or VIEW node of the root, whose value has `type`. */
bool bb_verify_access(bb_verifier *v, const bb_graph *root, const bb_node *node,
                      const bb_type *type);
bool bb_verify_array(bb_verifier *v);
/* An expression; `dtype` of its operands. */
bool bb_verify_expr(bb_verifier *v, bb_place place, const bb_expr *expr, uint32_t count,
                    const bb_dtype *dtype);

/* Is it a monoid of this program, under the laws of monoids? */
bool bb_verify_monoid(bb_verifier *v, bb_place place, const bb_monoid *monoid);
/* One component of what a monoid folds: the value's type, and the list of it that is folded, or
 * BB_WHOLE. */
typedef struct bb_folded {
  const bb_type *type;
  uint32_t skip;
} bb_folded;
bool bb_verify_folded(bb_verifier *v, bb_place place, const bb_monoid *monoid,
                      const bb_folded *folded);

#endif
