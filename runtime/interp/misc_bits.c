/* misc_bits.c - the reference kernel that takes the bits of a number for those of another type.
 */
#include "misc.h"

#include <string.h>

/* An integer that stands for fewer bits than its own type has: the low ones of a narrower float. */
void bb_misc_bit_cast(const bb_kernel *k) {
  const bb_misc_value *v = bb_misc_in(k, 0);
  const bb_dtype from = v->dtype, to = k->nout ? k->out[0].dtype : from;
  const size_t count = bb_misc_product(k, v->rank, v->shape);
  const size_t wide = bb_dtype_bytes(from), bytes = bb_dtype_bytes(to);
  const bool floats = bb_dtype_is_float(from) || bb_dtype_is_float(to);
  const bool fits = wide == bytes || !bb_dtype_is_float(wide > bytes ? from : to);
  if (!floats || !fits)
    bb_fail(k->ctx, BB_ERROR_INPUT, "%s has other bits than %s", bb_dtype_name(from),
            bb_dtype_name(to));
  double *out = bb_misc_out(k, 0, to, v->rank, v->shape)->data;
  for (size_t i = 0; i < count; i++) {
    uint64_t bits = 0; /* the first bytes are the low ones */
    bb_interp_store(from, &v->data[i], 1, &bits);
    bb_interp_load(to, &bits, 1, &out[i]);
  }
  bb_interp_check(k->ctx, "the result", to, out, count);
}
