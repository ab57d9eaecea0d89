/* access.c - interned views. */
#include "program.h"
#include "intern.h"
#include "tables.h"

#include <string.h>

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

uint64_t bb_access_hash(const void *object) {
  const bb_access *access = object;
  uint64_t hash = mix(access->joined, access->count);
  for (uint32_t p = 0; p < access->count; p++) {
    const bb_piece *piece = &access->piece[p];
    hash = mix(mix(hash, piece->source), piece->rank);
    hash = mix(mix(hash, (uint64_t)piece->first), (uint64_t)piece->length);
    hash = mix(hash, piece->padded);
    for (uint32_t i = 0; i < piece->rank; i++) {
      const bb_index *index = &piece->index[i];
      hash = mix(mix(hash, index->kind), index->dim);
      hash = mix(mix(hash, (uint64_t)index->start), (uint64_t)index->step);
      hash = mix(mix(hash, index->tap), (uint64_t)index->by);
    }
  }
  return hash;
}

bool bb_piece_same_fill(const bb_piece *a, const bb_piece *b) {
  return a->padded == b->padded && (!a->padded || memcmp(&a->fill, &b->fill, sizeof a->fill) == 0);
}

bool bb_piece_has_windows(const bb_piece *piece) {
  for (uint32_t i = 0; i < piece->rank; i++)
    if (piece->index[i].kind == BB_INDEX_WINDOW) return true;
  return false;
}

bool bb_access_is_padded(const bb_access *access) {
  for (uint32_t p = 0; p < access->count; p++)
    if (access->piece[p].padded) return true;
  return false;
}

static bool piece_equal(const bb_piece *a, const bb_piece *b) {
  if (a->source != b->source || a->rank != b->rank || a->first != b->first ||
      a->length != b->length || !bb_piece_same_fill(a, b))
    return false;
  for (uint32_t i = 0; i < a->rank; i++) {
    const bb_index *x = &a->index[i], *y = &b->index[i];
    if (x->kind != y->kind || x->dim != y->dim || x->start != y->start || x->step != y->step ||
        x->tap != y->tap || x->by != y->by)
      return false;
  }
  return true;
}

bool bb_access_equal(const void *left, const void *right) {
  const bb_access *a = left, *b = right;
  if (a->joined != b->joined || a->count != b->count) return false;
  for (uint32_t p = 0; p < a->count; p++)
    if (!piece_equal(&a->piece[p], &b->piece[p])) return false;
  return true;
}

/* Fields that a kind does not use are set to one value, so that equal views compare equal. */
static bb_access *canonical(bb_arena *arena, const bb_access *access) {
  bb_access *copy = BB_NEW(arena, bb_access, 1);
  bb_piece *pieces = BB_NEW(arena, bb_piece, access->count);
  for (uint32_t p = 0; p < access->count; p++) {
    const bb_piece *piece = &access->piece[p];
    bb_index *index = BB_NEW(arena, bb_index, piece->rank);
    for (uint32_t i = 0; i < piece->rank; i++) {
      index[i] = piece->index[i];
      if (index[i].kind == BB_INDEX_FIXED) index[i].dim = BB_NO_DIM, index[i].step = 0;
      if (index[i].kind == BB_INDEX_DIM) index[i].start = 0, index[i].step = 1;
      if (index[i].kind != BB_INDEX_WINDOW) index[i].tap = BB_NO_DIM, index[i].by = 0;
    }
    pieces[p] = *piece;
    pieces[p].index = index;
    if (access->joined == BB_NO_DIM) pieces[p].first = pieces[p].length = 0;
    if (!piece->padded) pieces[p].fill = 0;
  }
  *copy = (bb_access){.joined = access->joined, .count = access->count, .piece = pieces};
  return copy;
}

/* Kernels that are only priced ask for the same few accesses over and over: those that are there take no memory. */
const bb_access *bb_access_make(bb_program *program, const bb_access *access) {
  bb_arena *scratch = bb_scratch(program->ctx);
  const bb_access *wanted = canonical(scratch, access);
  const bb_access *found = bb_intern_find(program->accesses, wanted);
  if (!found) {
    found = canonical(program->arena, access);
    bb_intern_add(program->accesses, found);
  }
  bb_scratch_end(scratch);
  return found;
}
