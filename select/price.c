/* price.c - the price of a nest: what is known before block sizes are; the rest is price_points.c's.
 */
#include "price.h"

#include <math.h>
#include <string.h>

const char *bb_bound_name(bb_bound bound) {
  static const char *const names[] = {
      [BB_BOUND_MEMORY] = "memory", [BB_BOUND_CACHE] = "cache",   [BB_BOUND_LOCAL] = "local",
      [BB_BOUND_DOT] = "dot",       [BB_BOUND_VECTOR] = "vector", [BB_BOUND_SPECIAL] = "special",
      [BB_BOUND_START] = "start",
  };
  return names[bound];
}

enum { BLOCK = 256 }; /* a loop of at most so many elements is one block, and none */

static bool is_cut(const bb_pricing *p, uint32_t loop) {
  double most_once = p->nest->loop[loop].size == BB_NONE ? 1 : BLOCK;
  return p->loop_extent[loop] > most_once;
}

/* Does a loop that runs in turn load or store for itself, around another one with products? */
static bool has_loop_in_loop(const bb_pricing *p) {
  const bb_nest *nest = p->nest;
  bool own[BB_NEST_LOOPS] = {false};
  for (uint32_t i = 0; i < nest->terms; i++) {
    const bb_nest_term *t = &nest->term[i];
    if (t->loop != BB_NONE && (t->kind == BB_NEST_LOAD || t->kind == BB_NEST_STORE))
      own[t->loop] |= !nest->loop[t->loop].grid && is_cut(p, t->loop);
  }
  for (uint32_t i = 0; i < nest->terms; i++) {
    const bb_nest_term *t = &nest->term[i];
    bool within = false; /* of a loop inside of k */
    for (uint32_t k = t->kind == BB_NEST_DOT ? t->loop : BB_NONE; k != BB_NONE;
         k = nest->loop[k].parent) {
      if (own[k] && within) return true;
      within |= is_cut(p, k);
    }
  }
  return false;
}

/* Do two loops stand one behind the other, one of them with products? */
static bool has_loops_in_a_row(const bb_pricing *p) {
  const bb_nest *nest = p->nest;
  bool dot[BB_NEST_LOOPS] = {false}, cut[BB_NEST_LOOPS] = {false};
  for (uint32_t i = 0; i < nest->terms; i++)
    if (nest->term[i].kind == BB_NEST_DOT && nest->term[i].loop != BB_NONE)
      dot[nest->term[i].loop] = true;
  for (uint32_t i = nest->loops; i-- > 0;) { /* what is inside of a loop comes behind it */
    uint32_t parent = nest->loop[i].parent;
    cut[i] |= p->loop_extent[i] > BLOCK;
    if (parent == BB_NONE) continue;
    dot[parent] |= dot[i];
    cut[parent] |= cut[i];
  }
  for (uint32_t i = 0; i < nest->loops; i++)
    for (uint32_t k = 0; k < i; k++) {
      bool beside = nest->loop[i].parent == nest->loop[k].parent && nest->loop[i].parent != BB_NONE;
      if (beside && cut[i] && cut[k] && (dot[i] || dot[k])) return true;
    }
  return false;
}

/* Results on their side: what is read of the right operand beside has room. */
static bool has_few_rows(const bb_pricing *p, const bb_nest_term *dot) {
  enum { FEW = 64 };
  return dot->axis[0] == BB_NONE || p->size_extent[dot->axis[0]] <= FEW;
}

/* Units of their own make the products of one loop, of right operands that are loaded: what passes lists between loops, computes
 * such an operand or, but for few rows, something else of it, or has a loop behind another or within one is for plain threads. */
static bool is_for_plain_threads(const bb_pricing *p) {
  for (uint32_t i = 0; i < p->nest->terms; i++) {
    const bb_nest_term *term = &p->nest->term[i];
    if (term->kind == BB_NEST_LIST_STORE) return true;
    if (term->kind == BB_NEST_DOT && (term->made || (term->shared && !has_few_rows(p, term))))
      return true;
  }
  return has_loops_in_a_row(p) || has_loop_in_loop(p);
}

/* Is nothing in blocks, but loops over single elements? */
static bool is_of_scalars(const bb_nest *nest) {
  for (uint32_t i = 0; i < nest->terms; i++)
    for (int a = 0; a < 3; a++)
      if (nest->term[i].axis[a] != BB_NONE) return false;
  return true;
}

static bool has_products(const bb_nest *nest) {
  for (uint32_t i = 0; i < nest->terms; i++)
    if (nest->term[i].kind == BB_NEST_DOT) return true;
  return false;
}

bb_pricing bb_pricing_bind(const bb_nest *nest, const bb_machine *machine, const double *extent,
                           bb_arena *arena) {
  bb_pricing p = {.nest = nest,
                  .machine = machine,
                  .size_extent = BB_NEW(arena, double, nest->sizes),
                  .loop_extent = BB_NEW(arena, double, nest->loops),
                  .room = BB_NEW(arena, double, (size_t)nest->classes *BB_PRICE_MANY)};
  for (uint32_t i = 0; i < nest->loops; i++) p.grid |= (uint64_t)nest->loop[i].grid << i;
  p.stops = strcmp(machine->target, "cpu") == 0;
  p.stays = !has_products(nest);
  p.holds = machine->register_bytes > 0 && p.stays;
  for (uint32_t i = 0; i < nest->sizes; i++) p.size_extent[i] = extent[nest->size[i].dim];
  for (uint32_t i = 0; i < nest->loops; i++) p.loop_extent[i] = extent[nest->loop[i].dim];
  p.plain = machine->grain_wide > 0 && is_for_plain_threads(&p);
  p.scalars = machine->grain_wide > 0 && is_of_scalars(nest);
  return p;
}

static bb_price_points *points_here(void) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return bb_price_points_avx512;
  if (__builtin_cpu_supports("avx2")) return bb_price_points_avx2;
#endif
  return bb_price_points_plain;
}

void bb_price_tiling(const bb_pricing *pricing, const bb_tiling *tiling, bool force,
                     bb_price *price) {
  bb_tilings one = {.count = 1, .stride = 1, .block = tiling->block};
  double seconds;
  one.fold = tiling->fold;
  one.split = tiling->split;
  points_here()(pricing, &one, force, &seconds, price);
}

void bb_price_seconds(const bb_pricing *pricing, const bb_tilings *tilings, bool force,
                      double *seconds) {
  points_here()(pricing, tilings, force, seconds, NULL);
}
