/* count.c - what the paper counts: bytes over buffered edges, operations, passes over tensors.
 *
 * An item is read from memory when a map takes it out of a list, and written when a map collects
 * it; lists that are reduced or folded as a whole are read, and the folded list is read and written
 * again by every combination.  What stays an item inside a loop costs nothing.  Views are free.
 */
#include "machine.h"

static double bytes_of(const bb_datum *datum, double *elements) {
  *elements = (double)datum->row.length * (double)datum->col.length;
  for (uint32_t i = 0; i < datum->type->rank; i++) *elements *= (double)datum->level[i].length;
  return *elements * bb_dtype_bytes(datum->type->item.dtype);
}

void bb_count_read(bb_run *run, const bb_datum *datum) {
  if (!run->counts || run->silent) return;
  double elements;
  run->counts->buffered_read += bytes_of(datum, &elements);
  if (!run->counts->passes || !datum->origins) return;
  for (uint32_t i = 0; i < datum->origins->count; i++) {
    const bb_origin *origin = &datum->origins->origin[i];
    double held = (double)bb_run_tensor_count(run, origin->tensor);
    if (held > 0) run->counts->passes[origin->tensor] += elements * origin->share / held;
  }
}

void bb_count_written(bb_run *run, const bb_datum *datum) {
  if (!run->counts || run->silent) return;
  double elements;
  run->counts->buffered_written += bytes_of(datum, &elements);
}

void bb_count_operations(bb_run *run, double operations) {
  if (run->counts && !run->silent) run->counts->operations += operations;
}
