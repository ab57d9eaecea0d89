/* misc.h - what reference kernels share: attributes, results, indices.  Kernels check everything
 * that comes from data; shapes and attributes were checked when the model was read, but programs
 * can also be written by hand.
 */
#ifndef BB_INTERP_MISC_H
#define BB_INTERP_MISC_H

#include "interp.h"

typedef struct bb_kernel {
  bb_context *ctx;
  bb_arena *arena;
  const bb_misc *misc;
  uint32_t nin, nout;
  const bb_misc_value *in;
  bb_misc_value *out;
} bb_kernel;

/* An attribute of the node, `otherwise` where it has none of that name; fails where it is of another kind. */
int64_t bb_misc_int(const bb_kernel *k, const char *name, int64_t otherwise);
double bb_misc_float(const bb_kernel *k, const char *name, double otherwise);
const char *bb_misc_text(const bb_kernel *k, const char *name, const char *otherwise);
/* `count` numbers; NULL when there is no such attribute; fails when there are more or fewer. */
const int64_t *bb_misc_ints(const bb_kernel *k, const char *name, uint32_t count);

/* Operand i; fails when it is absent. */
const bb_misc_value *bb_misc_in(const bb_kernel *k, uint32_t i);
/* NULL when it is absent. */
const bb_misc_value *bb_misc_optional(const bb_kernel *k, uint32_t i);
/* Gives result i its type, shape and zeroed memory. */
bb_misc_value *bb_misc_out(const bb_kernel *k, uint32_t i, bb_dtype dtype, uint32_t rank,
                           const int64_t *shape);

/* The attribute `axis` of an operand, negative ones counted from the end; checked. */
uint32_t bb_misc_axis(const bb_kernel *k, int64_t axis, uint32_t rank);
/* An index from data, negative ones counted from the end; fails naming place and extent. */
int64_t bb_misc_index(const bb_kernel *k, double value, size_t place, int64_t extent);

/* Less than, equal to, or more than 0 as a is to b; NaN is behind all numbers, and equal to itself. */
int bb_misc_order(double a, double b);
size_t bb_misc_product(const bb_kernel *k, uint32_t rank, const int64_t *shape);
/* The next index in row-major order. */
void bb_misc_step(uint32_t rank, const int64_t *shape, int64_t *index);
/* What one step along each axis of a row-major array is worth in elements. */
void bb_dense_strides(uint32_t rank, const int64_t *shape, int64_t *stride);

typedef void bb_misc_body(const bb_kernel *k);
#define BB_MISC(domain, op, body) bb_misc_body body;
#include "misc.def"
#undef BB_MISC

#endif
