/* verify_monoid.c - the laws of monoids and of the types of what they fold. */
#include "verify_law.h"

static bool is_known(const bb_program *program, const bb_monoid *monoid) {
  if ((unsigned)monoid->id < BB_MONOID_COUNT) return monoid == bb_monoid_get(monoid->id);
  for (uint32_t i = 0; i < program->monoids; i++)
    if (program->monoid[i] == monoid) return true;
  return false;
}

/* What is interned was examined when it was made. */
bool bb_verify_monoid(bb_verifier *v, bb_place place, const bb_monoid *monoid) {
  if (is_known(v->program, monoid)) return true;
  if (monoid->id != BB_MONOID_TUPLE || !monoid->component)
    return bb_law_broken(v, BB_LAW_MONOID, place, "%s is no monoid of this program", monoid->name);
  bb_monoid copy = *monoid;
  const char *broken = bb_monoid_check((bb_program *)v->program, &copy, v->scratch);
  return !broken || bb_law_broken(v, BB_LAW_MONOID, place, "%s: %s", monoid->name, broken);
}

/* Level `skip` of a type does not count (BB_WHOLE: all do). */
static uint32_t rank_without(const bb_type *type, uint32_t skip) {
  return type->rank - (skip < type->rank);
}
static bb_level level_without(const bb_type *type, uint32_t skip, uint32_t i) {
  return type->level[i + (i >= skip)];
}

/* Has `whole` every axis and, in order, every list that `part` has? */
static bool covers(bb_folded whole, bb_folded part) {
  const bb_item *a = &whole.type->item, *b = &part.type->item;
  if (b->row != BB_NO_DIM && a->row != b->row) return false;
  if (b->col != BB_NO_DIM && a->col != b->col) return false;
  uint32_t found = 0, rank = rank_without(part.type, part.skip);
  for (uint32_t i = 0; i < rank_without(whole.type, whole.skip) && found < rank; i++) {
    bb_level x = level_without(whole.type, whole.skip, i);
    bb_level y = level_without(part.type, part.skip, found);
    found += x.dim == y.dim && x.axis == y.axis;
  }
  return found == rank;
}

bool bb_verify_folded(bb_verifier *v, bb_place place, const bb_monoid *monoid,
                      const bb_folded *folded) {
  for (uint32_t k = 0; k < monoid->components; k++) {
    bb_dtype dtype = folded[k].type->item.dtype;
    if (bb_dtype_is_stored(dtype))
      return bb_law_broken(v, BB_LAW_MONOID_TYPE, place, "%s is only stored", bb_dtype_name(dtype));
    if (monoid->component && monoid->component[k].dtype != dtype)
      return bb_law_broken(v, BB_LAW_MONOID_TYPE, place, "component %s of %s is %s, its value %s",
                           monoid->component[k].name, monoid->name,
                           bb_dtype_name(monoid->component[k].dtype), bb_dtype_name(dtype));
    for (uint32_t j = 0; j < monoid->components; j++)
      if (bb_monoid_reads(monoid, k, j) && !covers(folded[k], folded[j]))
        return bb_law_broken(v, BB_LAW_MONOID_TYPE, place,
                             "component %u of %s reads component %u, which has other axes or lists",
                             k, monoid->name, j);
  }
  return true;
}
