/* listing_lines.c - lines, loops and names of listings. */
#include "listing_lines.h"

#include <ctype.h>
#include <string.h>

void bb_listing_indent(bb_listing *l) {
  for (uint32_t i = 0; i < l->depth; i++) bb_put(l->out, "  ");
}

void bb_listing_put_memory(bb_listing *l, const bb_listed *at) {
  if (at->buffer && !*at->buffer) *at->buffer = ++l->buffers;
  if (at->buffer)
    bb_put(l->out, "I%u", *at->buffer);
  else
    bb_put(l->out, "%s", at->name);
}

void bb_listing_put_place(bb_listing *l, const bb_listed *at) {
  bb_listing_put_memory(l, at);
  for (uint32_t i = 0; i < at->slots; i++)
    bb_put(l->out, "%s%s", i ? "," : "[", at->slot[i] ? at->slot[i] : ":");
  if (at->slots) bb_put(l->out, "]");
}

const char *bb_listing_temporary(bb_listing *l) {
  return bb_arena_printf(l->arena, "t%u", ++l->temporaries);
}

/* --- loops --- */

static const char *loop_name(bb_listing *l, bb_dim dim) {
  const char *upper = bb_dim_get(l->program, dim)->name;
  char *lower = bb_arena_text(l->arena, upper, strlen(upper));
  for (char *c = lower; *c; c++) *c = (char)tolower((unsigned char)*c);
  const char *name = lower;
  for (uint32_t i = 0, number = 2; i < l->depth; i++) {
    if (strcmp(l->loop[i], name) != 0) continue;
    name = bb_arena_printf(l->arena, "%s%u", lower, number++);
    i = UINT32_MAX; /* look at all of them again */
  }
  return name;
}

/* The variable of the innermost loop over dim. */
static const char *loop_over(const bb_listing *l, bb_dim dim) {
  for (uint32_t i = l->depth; i-- > 0;)
    if (l->loop_dim[i] == dim) return l->loop[i];
  return "?"; /* only in a program that breaks the laws */
}

/* map: whose loop it is; NULL: a reduction's, over all of dim. */
const char *bb_listing_open(bb_listing *l, const char *keyword, bb_dim dim, const bb_node *map) {
  static const char *const range[] = {"range(%s)", "range(0,1)", "range(1,%s)", "chunk(%s)"};
  const char *name = loop_name(l, dim), *extent = bb_dim_get(l->program, dim)->name;
  bb_part part = map ? map->part : BB_PART_ALL;
  bb_listing_indent(l);
  bb_put(l->out, "%s %s in ", keyword, name);
  bb_put_bytes(l->out, range[part], strcspn(range[part], "%"));
  if (part != BB_PART_FIRST) bb_put(l->out, "%s)", extent);
  for (uint32_t i = 0; map && i < bb_chunk_depth(map); i++)
    bb_put(l->out, "[%s]", loop_over(l, map->chunk->dim[i]));
  if (map && map->block) bb_put(l->out, " by %u", map->block);
  bb_put(l->out, ":\n");
  BB_GROW(l->arena, l->loop, l->capacity, (size_t)l->depth + 1);
  BB_GROW(l->arena, l->loop_dim, l->dim_capacity, (size_t)l->depth + 1);
  l->loop_dim[l->depth] = dim;
  l->loop[l->depth++] = name;
  return name;
}

/* The place with its open index number `level` fixed. */
bb_listed bb_listing_fix(bb_listing *l, const bb_listed *at, uint32_t level, const char *index) {
  bb_listed to = *at;
  to.slot = BB_NEW(l->arena, const char *, at->slots);
  for (uint32_t i = 0, open = 0; i < at->slots; i++) {
    to.slot[i] = at->slot[i];
    if (!at->slot[i] && open++ == level) to.slot[i] = index;
  }
  return to;
}

bb_listed bb_listing_buffer(bb_listing *l, const bb_type *type, uint64_t loops) {
  bb_listed at = {.buffer = BB_NEW(l->arena, uint32_t, 1), .loops = loops};
  at.slot = BB_NEW(l->arena, const char *, (size_t)l->depth + type->rank);
  for (uint32_t i = 0; i < l->depth; i++)
    if (i == 0 || (loops >> (i & 63) & 1)) at.slot[at.slots++] = l->loop[i];
  at.slots += type->rank;
  return at;
}
