/* value.c - values of the interpreter: strided windows, the stacks they live in, walking them. */
#include "machine.h"

#include <string.h>

/* --- stacks --- */

enum { FIRST_CHUNK = 4096 };

double *bb_stack_alloc(bb_stack *stack, size_t count) {
  while (stack->current < stack->chunks) {
    struct bb_stack_chunk *chunk = &stack->chunk[stack->current];
    if (count <= chunk->size - stack->used) {
      double *memory = chunk->data + stack->used;
      stack->used += count;
      return memory;
    }
    stack->current++;
    stack->used = 0;
  }
  size_t size = stack->chunks ? stack->chunk[stack->chunks - 1].size * 2 : FIRST_CHUNK;
  if (size < count) size = count;
  BB_GROW(stack->arena, stack->chunk, stack->capacity, stack->chunks + 1u);
  double *memory = BB_NEW(stack->arena, double, size);
  stack->chunk[stack->chunks] = (struct bb_stack_chunk){memory, size};
  stack->current = stack->chunks++;
  stack->used = count;
  return memory;
}

bb_stack_mark bb_stack_save(const bb_stack *stack) {
  return (bb_stack_mark){stack->current, stack->used};
}

void bb_stack_restore(bb_stack *stack, bb_stack_mark mark) {
  stack->current = mark.chunk;
  stack->used = mark.used;
}

/* --- shapes --- */

size_t bb_datum_count(bb_context *ctx, const bb_datum *datum) {
  size_t count = 1;
  bool empty = datum->row.length == 0 || datum->col.length == 0;
  bool overflow = __builtin_mul_overflow(count, (size_t)datum->row.length, &count) ||
                  __builtin_mul_overflow(count, (size_t)datum->col.length, &count);
  for (uint32_t i = 0; i < datum->type->rank; i++) {
    empty |= datum->level[i].length == 0;
    overflow |= __builtin_mul_overflow(count, (size_t)datum->level[i].length, &count);
  }
  if (empty) return 0;
  if (overflow || count > SIZE_MAX / 2 / sizeof(double))
    bb_fail(ctx, BB_ERROR_MEMORY, "a value of the program is too large to hold");
  return count;
}

static void set_strides(bb_datum *datum) {
  int64_t stride = 1;
  bb_span *inner_first[2] = {&datum->col, &datum->row};
  for (uint32_t i = 0; i < datum->type->rank + 2; i++) {
    bb_span *span = i < 2 ? inner_first[i] : &datum->level[datum->type->rank + 1 - i];
    span->stride = span->length == 1 ? 0 : stride;
    stride *= span->length;
  }
}

void bb_datum_alloc(bb_context *ctx, bb_datum *datum, bb_stack *stack) {
  size_t count = bb_datum_count(ctx, datum);
  if (count) set_strides(datum);
  datum->data = bb_stack_alloc(stack, count);
}

void bb_datum_alloc_in(bb_context *ctx, bb_datum *datum, bb_arena *arena) {
  size_t count = bb_datum_count(ctx, datum);
  if (count) set_strides(datum);
  datum->data = BB_NEW(arena, double, count);
}

void bb_datum_shape(bb_datum *datum, const bb_datum *from) {
  for (uint32_t i = 0; i < datum->type->rank; i++) datum->level[i] = from->level[i];
  datum->row = from->row;
  datum->col = from->col;
  datum->row_start = from->row_start;
  datum->col_start = from->col_start;
}

bool bb_datum_same_shape(const bb_datum *a, const bb_datum *b) {
  if (a->type->rank != b->type->rank || a->row.length != b->row.length ||
      a->col.length != b->col.length)
    return false;
  for (uint32_t i = 0; i < a->type->rank; i++)
    if (a->level[i].length != b->level[i].length) return false;
  return true;
}

/* --- walking --- */

void bb_datum_walk(const bb_datum *dst, const bb_datum *src, bb_row_function *row, void *user) {
  int64_t index[BB_INTERP_LEVELS + 1] = {0};
  bool column = dst->col.length == 1; /* one long run along the row axis instead */
  const bb_span *run_dst = column ? &dst->row : &dst->col,
                *run_src = column ? &src->row : &src->col;
  uint32_t outer = dst->type->rank + !column; /* the levels, and the row axis if runs are columns */
  bool empty = dst->row.length == 0 || dst->col.length == 0;
  for (uint32_t i = 0; i < dst->type->rank; i++) empty |= dst->level[i].length == 0;
  if (empty) return;
  double *to = dst->data;
  const double *from = src->data;
  for (;;) {
    row(user, to, from, run_dst->length, run_dst->stride, run_src->stride);
    uint32_t axis = outer;
    for (;;) {
      if (axis-- == 0) return;
      bool is_row = axis == dst->type->rank;
      const bb_span *d = is_row ? &dst->row : &dst->level[axis];
      const bb_span *s = is_row ? &src->row : &src->level[axis];
      to += d->stride;
      from += s->stride;
      if (++index[axis] < d->length) break;
      to -= d->stride * d->length;
      from -= s->stride * d->length;
      index[axis] = 0;
    }
  }
}

static void copy_row(void *user, double *dst, const double *src, int64_t count, int64_t dst_stride,
                     int64_t src_stride) {
  (void)user;
  if (dst_stride == 1 && src_stride == 1) {
    memcpy(dst, src, (size_t)count * sizeof *dst);
    return;
  }
  for (int64_t i = 0; i < count; i++) dst[i * dst_stride] = src[i * src_stride];
}

void bb_datum_copy(const bb_datum *dst, const bb_datum *src) {
  bb_datum_walk(dst, src, copy_row, NULL);
}

static void fill_row(void *user, double *dst, const double *src, int64_t count, int64_t dst_stride,
                     int64_t src_stride) {
  (void)src, (void)src_stride;
  for (int64_t i = 0; i < count; i++) dst[i * dst_stride] = *(const double *)user;
}

void bb_datum_fill(const bb_datum *dst, double value) {
  bb_datum_walk(dst, dst, fill_row, &value);
}
