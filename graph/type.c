/* type.c - extents, dims and interned types. */
#include "program.h"
#include "intern.h"
#include "tables.h"

#include <string.h>

/* --- names of symbols and dims --- */

typedef struct table_name {
  const char *name;
  size_t length;
  uint32_t index;
} table_name;

uint64_t bb_table_name_hash(const void *object) {
  const table_name *entry = object;
  return bb_hash_bytes(entry->name, entry->length, 0);
}

bool bb_table_name_equal(const void *left, const void *right) {
  const table_name *a = left, *b = right;
  return a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

static const table_name *new_name(bb_program *program, table_name name) {
  table_name *entry = BB_NEW(program->arena, table_name, 1);
  *entry = name;
  return entry;
}

/* --- extents --- */

uint64_t bb_extent_hash(const void *object) {
  const bb_extent *extent = object;
  return bb_hash_bytes(extent->symbol, extent->count * sizeof *extent->symbol,
                       (uint64_t)extent->factor);
}

bool bb_extent_equal(const void *left, const void *right) {
  const bb_extent *a = left, *b = right;
  return a->factor == b->factor && a->count == b->count &&
         (a->count == 0 || memcmp(a->symbol, b->symbol, a->count * sizeof *a->symbol) == 0);
}

static const bb_extent *intern_extent(bb_program *program, int64_t factor, uint32_t count,
                                      const uint32_t *symbol) {
  bb_extent key = {.factor = factor, .count = factor ? count : 0, .symbol = symbol};
  const bb_extent *found = bb_intern_find(program->extents, &key);
  if (found) return found;
  bb_extent *extent = BB_NEW(program->arena, bb_extent, 1);
  uint32_t *copy = BB_NEW(program->arena, uint32_t, key.count);
  if (symbol && key.count) memcpy(copy, symbol, key.count * sizeof *copy);
  *extent = (bb_extent){.factor = factor, .count = key.count, .symbol = copy};
  bb_intern_add(program->extents, extent);
  return extent;
}

const bb_extent *bb_extent_number(bb_program *program, int64_t value) {
  if (value < 0)
    bb_fail(program->ctx, BB_ERROR_INPUT, "an extent of %lld is negative", (long long)value);
  return intern_extent(program, value, 0, NULL);
}

uint32_t bb_symbol_find(const bb_program *program, const char *name) {
  const table_name key = {name, strlen(name), 0},
                   *found = bb_intern_find(program->symbol_names, &key);
  return found ? found->index : UINT32_MAX;
}

uint32_t bb_symbol_index(bb_program *program, const char *name) {
  uint32_t found = bb_symbol_find(program, name);
  if (found != UINT32_MAX) return found;
  BB_GROW(program->arena, program->symbol, program->symbol_capacity, program->symbols + 1);
  BB_GROW(program->arena, program->most, program->most_capacity, program->symbols + 1);
  const char *copy = bb_arena_text(program->arena, name, strlen(name));
  program->symbol[program->symbols] = copy;
  program->most[program->symbols] = NULL;
  bb_intern_add(program->symbol_names,
                new_name(program, (table_name){copy, strlen(copy), program->symbols}));
  return program->symbols++;
}

bool bb_symbol_follows(const bb_program *program, uint32_t symbol) {
  const char *text = program->symbol[symbol], *end = text + strlen(text), *error;
  if (!strpbrk(text, "(")) return false;
  const bb_expr *e = bb_expr_parse((bb_program *)program, &text, end, NULL, NULL, &error);
  return e && text == end && e->op != BB_X_SYMBOL;
}

const bb_extent *bb_extent_symbol(bb_program *program, const char *name) {
  uint32_t symbol = bb_symbol_index(program, name);
  return intern_extent(program, 1, 1, &symbol);
}

const bb_extent *bb_extent_multiply(bb_program *program, const bb_extent *a, const bb_extent *b) {
  int64_t factor;
  if (__builtin_mul_overflow(a->factor, b->factor, &factor))
    bb_fail(program->ctx, BB_ERROR_INPUT, "an extent is too large: %lld * %lld",
            (long long)a->factor, (long long)b->factor);
  bb_arena *scratch = bb_scratch(program->ctx);
  uint32_t *merged = BB_NEW(scratch, uint32_t, (size_t)a->count + b->count);
  uint32_t n = 0, i = 0, j = 0;
  while (i < a->count || j < b->count) {
    bool left = j == b->count || (i < a->count && a->symbol[i] <= b->symbol[j]);
    merged[n++] = left ? a->symbol[i++] : b->symbol[j++];
  }
  const bb_extent *product = intern_extent(program, factor, n, merged);
  bb_scratch_end(scratch);
  return product;
}

const bb_extent *bb_extent_divide(bb_program *program, const bb_extent *a, const bb_extent *b) {
  if (b->factor == 0 || a->factor % b->factor != 0) return NULL;
  bb_arena *scratch = bb_scratch(program->ctx);
  uint32_t *rest = BB_NEW(scratch, uint32_t, a->count);
  uint32_t n = 0, j = 0;
  for (uint32_t i = 0; i < a->count; i++) {
    if (j < b->count && a->symbol[i] == b->symbol[j])
      j++;
    else
      rest[n++] = a->symbol[i];
  }
  const bb_extent *quotient =
      j == b->count ? intern_extent(program, a->factor / b->factor, n, rest) : NULL;
  bb_scratch_end(scratch);
  return quotient;
}

int64_t bb_extent_value(const bb_extent *extent) {
  return extent->count ? -1 : extent->factor;
}

int64_t bb_extent_bind(bb_program *program, const bb_extent *extent, const int64_t *symbol_value) {
  int64_t value = extent->factor;
  for (uint32_t i = 0; i < extent->count; i++)
    if (__builtin_mul_overflow(value, symbol_value[extent->symbol[i]], &value))
      bb_fail(program->ctx, BB_ERROR_INPUT, "an extent with symbol %s is too large",
              program->symbol[extent->symbol[i]]);
  return value;
}

/* --- dims --- */

/* A name in [A-Za-z_][A-Za-z0-9_]* from anything. */
static char *clean_name(bb_program *program, const char *name) {
  size_t length = name ? strnlen(name, 64) : 0;
  char *clean = bb_arena_alloc(program->arena, length + 2);
  size_t n = 0;
  if (length == 0 || (name[0] >= '0' && name[0] <= '9')) clean[n++] = 'D';
  for (size_t i = 0; i < length; i++) {
    char c = name[i];
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    clean[n++] = word ? c : '_';
  }
  clean[n] = '\0';
  return clean;
}

bb_dim bb_dim_add(bb_program *program, const char *name, const bb_extent *extent, bool blocked) {
  const char *stem = clean_name(program, name);
  table_name key = {stem, strlen(stem), program->dims};
  for (uint32_t n = program->dims; bb_intern_find(program->names, &key); n++) {
    key.name = bb_arena_printf(program->arena, "%s_%u", stem, n);
    key.length = strlen(key.name);
  }
  bb_intern_add(program->names, new_name(program, key));
  BB_GROW(program->arena, program->dim, program->dim_capacity, program->dims + 1);
  program->dim[program->dims] =
      (bb_dim_info){.name = key.name, .extent = extent, .blocked = blocked};
  return program->dims++;
}

bb_dim bb_dim_find(const bb_program *program, const char *name, size_t length) {
  const table_name key = {name, length, 0}, *found = bb_intern_find(program->names, &key);
  return found ? found->index : BB_NO_DIM;
}

const bb_dim_info *bb_dim_get(const bb_program *program, bb_dim dim) {
  return &program->dim[dim];
}

/* --- types --- */

uint64_t bb_type_hash(const void *object) {
  const bb_type *type = object;
  uint64_t hash = type->item.dtype * 31u + type->rank;
  hash = (hash * 0x9E3779B97F4A7C15u) ^ type->item.row;
  hash = (hash * 0x9E3779B97F4A7C15u) ^ type->item.col;
  for (uint32_t i = 0; i < type->rank; i++)
    hash = (hash * 0x9E3779B97F4A7C15u) ^ (type->level[i].dim * 4ull + type->level[i].axis);
  return hash ^ (hash >> 32);
}

bool bb_type_equal(const void *left, const void *right) {
  const bb_type *a = left, *b = right;
  if (a->rank != b->rank || a->item.dtype != b->item.dtype || a->item.row != b->item.row ||
      a->item.col != b->item.col)
    return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->level[i].dim != b->level[i].dim || a->level[i].axis != b->level[i].axis) return false;
  return true;
}

const bb_type *bb_type_make(bb_program *program, bb_item item, uint32_t rank,
                            const bb_level *level) {
  bb_type key = {.item = item, .rank = rank, .level = level};
  const bb_type *found = bb_intern_find(program->types, &key);
  if (found) return found;
  bb_type *type = BB_NEW(program->arena, bb_type, 1);
  bb_level *copy = BB_NEW(program->arena, bb_level, rank);
  if (rank) memcpy(copy, level, rank * sizeof *copy);
  *type = (bb_type){.item = item, .rank = rank, .level = copy};
  bb_intern_add(program->types, type);
  return type;
}

const bb_type *bb_type_element(bb_program *program, const bb_type *type, uint32_t level) {
  if (level >= type->rank)
    bb_fail(program->ctx, BB_ERROR_INTERNAL, "a type of rank %u has no level %u", type->rank,
            level);
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_level *rest = BB_NEW(scratch, bb_level, type->rank);
  for (uint32_t i = 0, n = 0; i < type->rank; i++)
    if (i != level) rest[n++] = type->level[i];
  const bb_type *element = bb_type_make(program, type->item, type->rank - 1, rest);
  bb_scratch_end(scratch);
  return element;
}

const bb_type *bb_type_list(bb_program *program, const bb_type *element, bb_level level) {
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_level *all = BB_NEW(scratch, bb_level, element->rank + 1);
  all[0] = level;
  if (element->rank) memcpy(all + 1, element->level, element->rank * sizeof *all);
  const bb_type *list = bb_type_make(program, element->item, element->rank + 1, all);
  bb_scratch_end(scratch);
  return list;
}

const bb_type *bb_type_of_axes(bb_program *program, bb_dtype dtype, uint32_t count,
                               const bb_dim *dim, bb_dim row, bb_dim col) {
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_level *level = BB_NEW(scratch, bb_level, count);
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++)
    if (dim[i] != row && dim[i] != col) level[n++] = (bb_level){dim[i], BB_AXIS_NONE};
  if (row != BB_NO_DIM) level[n++] = (bb_level){row, BB_AXIS_ROW};
  if (col != BB_NO_DIM) level[n++] = (bb_level){col, BB_AXIS_COL};
  if (n != count)
    bb_fail(program->ctx, BB_ERROR_INTERNAL, "a type's item axes are not among its dims");
  const bb_type *type = bb_type_make(program, (bb_item){dtype, row, col}, n, level);
  bb_scratch_end(scratch);
  return type;
}
