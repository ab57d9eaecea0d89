/* verify.h - the laws of each stage.  The verifier names the node and the law that it breaks.
 */
#ifndef BB_GRAPH_VERIFY_H
#define BB_GRAPH_VERIFY_H

#include "program.h"

/* NULL if every law holds, else a message in `scratch` of the form
 * "node 17 (map over N) port out 2: law collect-axis: ..." */
const char *bb_verify_graph(const bb_program *program, const bb_graph *root, bb_arena *scratch);
const char *bb_verify_program(const bb_program *program, bb_arena *scratch);

/* Fails the context with BB_ERROR_INTERNAL when a law is broken; does nothing unless ctx->verify
 * is set or `always`. `after` names the stage or rewrite that ran. */
void bb_verify_or_fail(const bb_program *program, const bb_graph *root, const char *after,
                       bool always);

#endif
