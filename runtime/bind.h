/* bind.h - between files of arrays and programs: inputs by name, symbols from shapes, comparison.
 */
#ifndef BB_BIND_H
#define BB_BIND_H

#include "interp/interp.h"
#include "npz.h"

typedef struct bb_binding {
  int64_t *symbol;          /* by symbol of the program; -1: no input says */
  bb_interp_tensor *tensor; /* by program tensor; inputs and constants bound */
} bb_binding;

/* Binds every input of the program to the array of its name, checks rank, extents and kind of
 * element, and finds the symbols' values: what shapes say, and `preset` (by symbol, -1: unknown;
 * NULL: nothing preset) must agree; a symbol that no shape tells is computed when its name is an
 * expression of others ("symbol(S)+1").  Arrays that no input names are ignored.  Fails with
 * BB_ERROR_INPUT naming the input. Everything is in `arena`. */
void bb_bind_inputs(bb_program *program, const bb_npz *npz, const int64_t *preset, bb_arena *arena,
                    bb_binding *binding);
/* Only what the shapes of those inputs that are there tell of the symbols; -1: nothing. */
const int64_t *bb_bind_symbols(bb_program *program, const bb_npz *npz, bb_arena *arena);

typedef struct bb_comparison {
  const char *name;
  bool pass;
  bool missing;        /* the file has no array of this name: nothing was compared, pass is false */
  const char *problem; /* NULL, or why nothing was compared ("shape [2, 3], expected [3, 2]") */
  size_t count, worst; /* elements; the one with the largest error, in row-major order */
  size_t wrong;        /* elements beyond the tolerance */
  double got, want;    /* there */
  double error;        /* |got - want| / (1 + |want|) there; infinity where only one is a NaN */
  double tolerance;
} bb_comparison;

/* Compares every output of the program: passes where |got - want| <= tolerance * (1 + |want|); a
 * NaN equals a NaN.  tolerance < 0: by dtype (1e-4 for f32, exact for integers).  Returns how many
 * comparisons there are, one for each output. */
uint32_t bb_compare_outputs(const bb_program *program, const bb_binding *binding,
                            const bb_npz *want, double tolerance, bb_arena *arena,
                            bb_comparison **comparisons);
double bb_default_tolerance(bb_dtype dtype);

/* "y: 15360 elements, largest error 2.1e-06 at [0, 3, 17] (got ..., want ...)" */
void bb_comparison_print(bb_buffer *out, const bb_program *program, const bb_binding *binding,
                         const bb_comparison *comparison);

const char *bb_shape_text(bb_arena *arena, uint32_t rank, const int64_t *shape); /* "[2, 3]" */

/* The outputs as arrays, to be written. */
bb_npz *bb_outputs_as_npz(const bb_program *program, const bb_binding *binding, bb_arena *arena);

#endif
