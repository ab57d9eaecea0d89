/* program.c - a program's tables, its tensors and the files mapped for it. */
#include "program.h"
#include "intern.h"
#include "tables.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct bb_mapping {
  struct bb_mapping *next;
  void *address;
  size_t length;
} bb_mapping;

bb_program *bb_program_create(bb_context *ctx, const char *name) {
  bb_arena *arena = bb_scratch(ctx);
  /* Until the program owns its arena, a failed allocation must free it. */
  bb_program *program = BB_NEW(arena, bb_program, 1);
  program->ctx = ctx;
  program->arena = program->levels = arena;
  program->name = bb_arena_text(arena, name ? name : "", name ? strlen(name) : 0);
  bb_program_clear(program);
  bb_undefer(ctx, arena);
  return program;
}

void bb_program_clear(bb_program *program) {
  bb_arena *arena = program->arena;
  program->dims = program->symbols = program->tensors = program->monoids = 0;
  program->types = bb_intern_create(arena, bb_type_hash, bb_type_equal);
  program->exprs = bb_intern_create(arena, bb_expr_hash, bb_expr_equal);
  program->extents = bb_intern_create(arena, bb_extent_hash, bb_extent_equal);
  program->accesses = bb_intern_create(arena, bb_access_hash, bb_access_equal);
  program->monoid_set = bb_intern_create(arena, bb_monoid_hash, bb_monoid_equal);
  program->names = bb_intern_create(arena, bb_table_name_hash, bb_table_name_equal);
  program->symbol_names = bb_intern_create(arena, bb_table_name_hash, bb_table_name_equal);
}

void bb_program_destroy(bb_program *program) {
  if (!program) return;
  for (bb_mapping *mapping = program->mappings; mapping; mapping = mapping->next)
    munmap(mapping->address, mapping->length);
  bb_arena_destroy(program->drafts);
  bb_arena_destroy(program->arena);
}

static void destroy(void *program) {
  bb_program_destroy(program);
}

/* Operators whose results are as long as data decides: where they stand, others with such an extent have it from them. */
static bool may_tell(const bb_misc *misc) {
  static const char *const tellers[][2] = {
      {"", "NonZero"}, {"", "Unique"}, {"", "NonMaxSuppression"}, {"blockbuster", "Part"}};
  bool may = false;
  for (size_t i = 0; i < sizeof tellers / sizeof *tellers; i++)
    may |= strcmp(misc->domain, tellers[i][0]) == 0 && strcmp(misc->op, tellers[i][1]) == 0;
  return may;
}

static bool has_symbol(uint32_t count, const bb_misc_port *port, uint32_t symbol) {
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t a = 0; !port[i].absent && a < port[i].rank; a++)
      for (uint32_t k = 0; k < port[i].shape[a]->count; k++)
        if (port[i].shape[a]->symbol[k] == symbol) return true;
  return false;
}

uint32_t bb_misc_tells(const bb_program *program, const bb_misc *misc) {
  for (uint32_t s = 0; s < program->symbols && misc->out && may_tell(misc); s++)
    if (program->most[s] && !bb_symbol_follows(program, s) &&
        has_symbol(misc->nout, misc->out, s) && !has_symbol(misc->nin, misc->in, s))
      return s;
  return BB_NONE;
}

void bb_program_defer(bb_program *program) {
  bb_defer(program->ctx, destroy, program);
}

uint32_t bb_tensor_add(bb_program *program, const bb_tensor *tensor) {
  bb_arena *arena = program->arena;
  BB_GROW(arena, program->tensor, program->tensor_capacity, program->tensors + 1);
  bb_tensor *copy = &program->tensor[program->tensors];
  *copy = *tensor;
  copy->name = bb_arena_text(arena, tensor->name, strlen(tensor->name));
  const bb_extent **shape = BB_NEW(arena, const bb_extent *, tensor->rank);
  bb_dim *axis = BB_NEW(arena, bb_dim, tensor->axes);
  if (tensor->rank) memcpy(shape, tensor->shape, tensor->rank * sizeof *shape);
  if (tensor->axes) memcpy(axis, tensor->axis, tensor->axes * sizeof *axis);
  copy->shape = shape;
  copy->axis = axis;
  return program->tensors++;
}

static void close_file(void *descriptor) {
  close((int)(intptr_t)descriptor);
}

/* Opens a regular file and gives its size; the descriptor is deferred. */
static int open_regular(bb_context *ctx, const char *path, uint64_t *size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
  bb_defer(ctx, close_file, (void *)(intptr_t)file);
  struct stat info;
  if (fstat(file, &info) != 0) bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) bb_fail(ctx, BB_ERROR_IO, "%s: not a regular file", path);
  *size = (uint64_t)info.st_size;
  return file;
}

static const void *map_range(bb_program *program, int file, const char *path, uint64_t offset,
                             uint64_t length) {
  if (length == 0) return "";
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = offset / page * page;
  size_t bytes = (size_t)(length + (offset - start));
  bb_mapping *mapping = BB_NEW(program->arena, bb_mapping, 1);
  void *address = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, (off_t)start);
  if (address == MAP_FAILED) bb_fail(program->ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
  *mapping = (bb_mapping){.next = program->mappings, .address = address, .length = bytes};
  program->mappings = mapping;
  return (const char *)address + (offset - start);
}

const void *bb_program_map_file(bb_program *program, const char *path, uint64_t offset,
                                uint64_t length) {
  uint64_t size;
  int file = open_regular(program->ctx, path, &size);
  if (offset > size || length > size - offset)
    bb_fail(program->ctx, BB_ERROR_INPUT,
            "%s: %llu bytes at offset %llu reach beyond its end (%llu bytes)", path,
            (unsigned long long)length, (unsigned long long)offset, (unsigned long long)size);
  const void *data = map_range(program, file, path, offset, length);
  bb_undefer(program->ctx, (void *)(intptr_t)file);
  close(file);
  return data;
}

const void *bb_program_map_whole(bb_program *program, const char *path, uint64_t *length) {
  uint64_t size;
  int file = open_regular(program->ctx, path, &size);
  const void *data = map_range(program, file, path, 0, size);
  bb_undefer(program->ctx, (void *)(intptr_t)file);
  close(file);
  *length = size;
  return data;
}
