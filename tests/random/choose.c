/* choose.c - which values an operation works on: late ones, or new inputs. */
#include "build.h"

shape shape_of(const generator *g, uint32_t value) {
  const bb_type *type = pooled_type(g, value);
  shape s = {.row = type->item.row, .col = type->item.col};
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->level[i].axis == BB_AXIS_NONE) s.outer_dim[s.outer++] = type->level[i].dim;
  return s;
}

bool shape_has_outer(const shape *s, bb_dim dim) {
  for (uint32_t i = 0; i < s->outer; i++)
    if (s->outer_dim[i] == dim) return true;
  return false;
}

bool outer_within(const shape *a, const shape *b) {
  for (uint32_t i = 0; i < a->outer; i++)
    if (!shape_has_outer(b, a->outer_dim[i])) return false;
  return true;
}

bb_dim any_blocked(generator *g) {
  return g->blocked_dim[random_below(&g->random, g->blocked)];
}

static bb_dtype any_float(generator *g) {
  static const bb_dtype dtype[] = {BB_F32, BB_F32, BB_F32, BB_F32, BB_F16, BB_BF16};
  return dtype[random_below(&g->random, 6)];
}

static bool is_float(const generator *g, uint32_t value) {
  return bb_dtype_is_float(pooled_type(g, value)->item.dtype);
}

/* A new input of the shape, perhaps without some of its outer dims. */
uint32_t input_like(generator *g, shape s, bb_dtype dtype) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < s.outer; i++)
    if (random_chance(&g->random, g->products ? 80 : 70)) s.outer_dim[kept++] = s.outer_dim[i];
  return input_new(g, dtype, kept, s.outer_dim, s.row, s.col);
}

uint32_t block_new(generator *g) {
  shape s = {.outer = g->enumerated, .row = any_blocked(g), .col = any_blocked(g)};
  for (uint32_t i = 0; i < s.outer; i++) s.outer_dim[i] = g->enumerated_dim[i];
  return input_like(g, s, any_float(g));
}

/* A value with these axes and outer dims among those of s: a late one, or a new input. */
uint32_t value_like(generator *g, const shape *s) {
  for (uint32_t i = g->count; i-- > 0;) {
    shape t = shape_of(g, i);
    bool fits = t.row == s->row && t.col == s->col && outer_within(&t, s) && is_float(g, i);
    fits &= !g->pool[i].inner;
    if (fits && !g->pool[i].taken && random_chance(&g->random, 50)) return i;
  }
  return input_like(g, *s, any_float(g));
}

/* A float value with a col axis (and a row axis), mostly a late one. */
uint32_t value_any(generator *g, bool block) {
  for (uint32_t i = g->count; i-- > 0;) {
    const bb_type *type = pooled_type(g, i);
    bool fits = type->item.col != BB_NO_DIM && (!block || type->item.row != BB_NO_DIM);
    if (fits && is_float(g, i) && !g->pool[i].taken && !g->pool[i].inner &&
        random_chance(&g->random, 60))
      return i;
  }
  return block_new(g);
}

uint32_t value_item(generator *g, bool floats) {
  for (uint32_t i = g->count; i-- > 0;)
    if (is_float(g, i) == floats && !g->pool[i].inner && random_chance(&g->random, 50)) return i;
  if (floats) return block_new(g);
  static const bb_dtype dtype[] = {BB_I32, BB_I64, BB_BOOL};
  shape s = {.outer = g->enumerated, .row = any_blocked(g), .col = any_blocked(g)};
  for (uint32_t i = 0; i < s.outer; i++) s.outer_dim[i] = g->enumerated_dim[i];
  if (random_chance(&g->random, 25)) s.row = BB_NO_DIM;
  return input_like(g, s, dtype[random_below(&g->random, 3)]);
}
