/* move.c - elements from one layout to another: axes that lie alike on both sides become one, and what lies side by side
 * goes by the largest words that fit.
 */
#include "move.h"

#include "../model/plan.h"

#include <string.h>

enum { AXES = 8, THREADS = 256, PER_PROCESSOR = 32 };
static const char *const word_type[BB_GPU_WORDS] = {"uint8_t", "uint16_t", "uint32_t", "uint64_t",
                                                    "bb_16_bytes"};

/* As misc.cuh has it. */
typedef struct copy_call {
  bb_gpu_pointer data, out;
  int64_t total, rank, extent[AXES], from[AXES], to[AXES];
} copy_call;

/* Innermost axis last. */
typedef struct axes {
  uint32_t rank;
  int64_t extent[BB_PLAN_RANK], from[BB_PLAN_RANK], to[BB_PLAN_RANK];
} axes;

static const char *name_of(bb_arena *arena, uint32_t word) {
  return bb_arena_printf(arena, "move_%u", 1u << word);
}

void bb_gpu_put_moves(bb_buffer *source) {
  bb_put(source, "#include \"misc.cuh\"\n");
  for (uint32_t i = 0; i < BB_GPU_WORDS; i++)
    bb_put(source, "\nBB_KERNEL(%s, bb_misc_copy_call, %d, 1) {\n  bb_misc_copy<%s>(call);\n}\n",
           name_of(source->arena, i), THREADS, word_type[i]);
}

void bb_gpu_find_moves(bb_context *ctx, const bb_gpu_driver *d, void *module, bb_gpu_mover *mover) {
  bb_arena *scratch = bb_scratch(ctx);
  for (uint32_t i = 0; i < BB_GPU_WORDS; i++)
    bb_gpu_must(ctx, d, d->function(&mover->function[i], module, name_of(scratch, i)),
                "finding a kernel");
  bb_scratch_end(scratch);
}

/* False: there are no elements. */
static bool collapse(const bb_move *m, axes *a) {
  a->rank = 0;
  for (uint32_t i = 0; i < m->rank; i++) {
    if (m->extent[i] == 0) return false;
    if (m->extent[i] == 1) continue;
    uint32_t last = a->rank - 1;
    if (a->rank && a->from[last] == m->extent[i] * m->from_stride[i] &&
        a->to[last] == m->extent[i] * m->to_stride[i]) {
      a->extent[last] *= m->extent[i];
    } else {
      last = a->rank++;
      a->extent[last] = m->extent[i];
    }
    a->from[last] = m->from_stride[i];
    a->to[last] = m->to_stride[i];
  }
  if (a->rank == 0) {
    a->extent[0] = a->from[0] = a->to[0] = 1;
    a->rank = 1;
  }
  return true;
}

static bool fits(const bb_move *m, const axes *a, int64_t count) {
  int64_t bytes = count * (int64_t)m->element;
  bool good = a->extent[a->rank - 1] % count == 0 && (uintptr_t)m->from % (uint64_t)bytes == 0 &&
              (uintptr_t)m->to % (uint64_t)bytes == 0;
  for (uint32_t i = 0; i + 1 < a->rank; i++)
    good &= a->from[i] % count == 0 && a->to[i] % count == 0;
  return good;
}

/* Elements that go as one word. */
static int64_t neighbours(const bb_move *m, const axes *a) {
  enum { WIDEST = 16 };
  int64_t count = 1;
  if (a->from[a->rank - 1] != 1 || a->to[a->rank - 1] != 1) return 1;
  while (2 * count * (int64_t)m->element <= WIDEST && fits(m, a, 2 * count)) count *= 2;
  return count;
}

static void widen(axes *a, int64_t count) {
  uint32_t last = a->rank - 1;
  a->extent[last] /= count;
  for (uint32_t i = 0; i < last; i++) {
    a->from[i] /= count;
    a->to[i] /= count;
  }
}

static void call(const bb_gpu_machine *m, void *function, const axes *a, uint32_t first,
                 bb_gpu_pointer from, bb_gpu_pointer to, bb_gpu_calls *calls) {
  copy_call c = {.data = from, .out = to, .total = 1, .rank = a->rank - first};
  for (uint32_t i = first; i < a->rank; i++) {
    c.extent[i - first] = a->extent[i];
    c.from[i - first] = a->from[i];
    c.to[i - first] = a->to[i];
    c.total *= a->extent[i];
  }
  int64_t blocks = (c.total + THREADS - 1) / THREADS, most = (int64_t)m->processors * PER_PROCESSOR;
  bb_gpu_call launch = {.how = {.function = function, .threads = THREADS},
                        .blocks = (uint32_t)(blocks < most ? blocks : most)};
  bb_gpu_add(m, calls, &launch, &c, sizeof c);
}

/* More axes than a kernel has: the outer ones here. */
static void call_all(const bb_gpu_machine *m, void *function, const axes *a, uint32_t first,
                     int64_t word, bb_gpu_pointer from, bb_gpu_pointer to, bb_gpu_calls *calls) {
  if (a->rank - first <= AXES) {
    call(m, function, a, first, from, to, calls);
    return;
  }
  for (int64_t i = 0; i < a->extent[first]; i++)
    call_all(m, function, a, first + 1, word, from + (uint64_t)(i * a->from[first] * word),
             to + (uint64_t)(i * a->to[first] * word), calls);
}

void bb_gpu_call_move(const bb_gpu_machine *m, const bb_gpu_mover *mover, const bb_move *move,
                      bb_gpu_calls *calls) {
  axes a;
  uint32_t word = 0;
  if (!collapse(move, &a)) return;
  bool there = move->from == move->to;
  for (uint32_t i = 0; i < a.rank; i++) there &= a.from[i] == a.to[i];
  if (there) return;
  int64_t count = neighbours(move, &a), bytes = count * (int64_t)move->element;
  widen(&a, count);
  while (1 << word < bytes) word++;
  call_all(m, mover->function[word], &a, 0, bytes, (uintptr_t)move->from, (uintptr_t)move->to,
           calls);
}
