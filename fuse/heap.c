/* heap.c - heaps of the nodes of a scope, least first in the scope's topological order.
 *
 * Labels may be dealt anew while nodes wait here: that keeps their relative order, so the heap
 * stays one.  A node that really moves is taken out before and put back after.
 */
#include "scope.h"

static void set(bb_heap *heap, uint32_t i, uint32_t node) {
  heap->at[i] = node;
  heap->slot[node] = i + 1;
}

static void sift_up(const bb_scope *scope, bb_heap *heap, uint32_t i, uint32_t node) {
  for (; i > 0 && bb_scope_before(scope, node, heap->at[(i - 1) / 2]); i = (i - 1) / 2)
    set(heap, i, heap->at[(i - 1) / 2]);
  set(heap, i, node);
}

static void sift_down(const bb_scope *scope, bb_heap *heap, uint32_t i, uint32_t node) {
  for (uint32_t child; (child = 2 * i + 1) < heap->count; i = child) {
    if (child + 1 < heap->count && bb_scope_before(scope, heap->at[child + 1], heap->at[child]))
      child++;
    if (!bb_scope_before(scope, heap->at[child], node)) break;
    set(heap, i, heap->at[child]);
  }
  set(heap, i, node);
}

void bb_heap_push(bb_scope *scope, bb_heap *heap, uint32_t node) {
  if (bb_heap_has(heap, node)) return;
  BB_GROW(scope->arena, heap->slot, heap->slots, (size_t)node + 1);
  BB_GROW(scope->arena, heap->at, heap->capacity, (size_t)heap->count + 1);
  sift_up(scope, heap, heap->count++, node);
}

void bb_heap_remove(bb_scope *scope, bb_heap *heap, uint32_t node) {
  if (!bb_heap_has(heap, node)) return;
  uint32_t i = heap->slot[node] - 1, last = heap->at[--heap->count];
  heap->slot[node] = 0;
  if (i == heap->count) return;
  if (i > 0 && bb_scope_before(scope, last, heap->at[(i - 1) / 2]))
    sift_up(scope, heap, i, last);
  else
    sift_down(scope, heap, i, last);
}

uint32_t bb_heap_pop(bb_scope *scope, bb_heap *heap) {
  if (!heap->count) return BB_NONE;
  uint32_t top = heap->at[0];
  bb_heap_remove(scope, heap, top);
  return top;
}
