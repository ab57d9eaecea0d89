/* npz.c - archives of arrays: a zip whose members are .npy files.
 *
 * libzip reads and writes the zip; what it allocates itself does not come from the caller's
 * allocator, which it has no way to be given.  Sizes that a file claims are believed only as far as
 * the bytes that are there could bear them out.
 */
#include "npz.h"
#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

/* A deflate stream cannot expand by more than this. */
enum { MOST_EXPANSION = 1040 };

typedef struct reader {
  bb_context *ctx;
  bb_arena *arena, *scratch;
  const char *name;
  zip_t *zip;
  size_t budget; /* bytes that may still be unpacked */
} reader;

static _Noreturn void refuse(const reader *r, const char *member, const char *what) {
  if (member) bb_fail(r->ctx, BB_ERROR_INPUT, "%s: array \"%s\": %s", r->name, member, what);
  bb_fail(r->ctx, BB_ERROR_INPUT, "%s: %s", r->name, what);
}

/* --- members --- */

static void close_member(void *file) {
  zip_fclose(file);
}

static const char *member_name(reader *r, zip_uint64_t index) {
  const char *name = zip_get_name(r->zip, index, ZIP_FL_ENC_RAW);
  if (!name) refuse(r, NULL, "a member has no name");
  size_t length = strlen(name);
  if (length < 4 || strcmp(name + length - 4, ".npy") != 0)
    refuse(r, name, "the member is no .npy file");
  return bb_arena_text(r->arena, name, length - 4);
}

static size_t member_size(reader *r, const char *name, zip_uint64_t index) {
  zip_stat_t stat;
  zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(r->zip, index, 0, &stat) != 0 || (stat.valid & wanted) != wanted)
    refuse(r, name, zip_strerror(r->zip));
  if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) && stat.encryption_method != ZIP_EM_NONE)
    refuse(r, name, "it is encrypted");
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
    refuse(r, name, "it is packed by a method other than deflate");
  size_t expansion = stat.comp_method == ZIP_CM_STORE ? 1 : MOST_EXPANSION;
  if (stat.size / expansion > stat.comp_size || stat.size > r->budget)
    refuse(r, name, "it claims to be larger than its file could hold");
  r->budget -= stat.size;
  return stat.size;
}

static void read_member(reader *r, zip_uint64_t index, bb_npz_array *array) {
  array->name = member_name(r, index);
  size_t size = member_size(r, array->name, index);
  bb_arena *scratch = bb_scratch(r->ctx);
  uint8_t *bytes = bb_arena_alloc(scratch, size + 1);
  zip_file_t *file = zip_fopen_index(r->zip, index, 0);
  if (!file) refuse(r, array->name, zip_strerror(r->zip));
  bb_defer(r->ctx, close_member, file);
  size_t have = 0;
  /* One byte more than there should be: the end is where libzip checks the checksum. */
  while (have <= size) {
    zip_int64_t got = zip_fread(file, bytes + have, size + 1 - have);
    if (got < 0) refuse(r, array->name, zip_error_strerror(zip_file_get_error(file)));
    if (got == 0) break;
    have += (size_t)got;
  }
  if (have != size) refuse(r, array->name, "its size is not what the archive says");
  const char *error = bb_npy_parse(r->arena, bytes, size, array);
  if (error) refuse(r, array->name, error);
  bb_undefer(r->ctx, file);
  zip_fclose(file);
  bb_scratch_end(scratch);
}

/* --- archives --- */

static void discard(void *zip) {
  zip_discard(zip);
}

static void open_archive(reader *r, const void *data, size_t size) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(data, size, 0, &error);
  if (source) r->zip = zip_open_from_source(source, ZIP_RDONLY, &error);
  if (!r->zip) {
    if (source) zip_source_free(source);
    const char *why =
        bb_arena_printf(r->scratch, "no readable .npz archive: %s", zip_error_strerror(&error));
    zip_error_fini(&error);
    refuse(r, NULL, why);
  }
  zip_error_fini(&error);
  bb_defer(r->ctx, discard, r->zip);
}

static const char *stem_of(bb_arena *arena, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t length = strlen(name);
  if (length > 4 && strcmp(name + length - 4, ".npy") == 0) length -= 4;
  return bb_arena_text(arena, name, length);
}

bb_npz *bb_npz_parse(bb_arena *arena, const char *name, const void *data, size_t size) {
  bb_context *ctx = bb_arena_context(arena);
  bb_npz *npz = BB_NEW(arena, bb_npz, 1);
  reader r = {.ctx = ctx, .arena = arena, .scratch = bb_scratch(ctx), .name = name};
  if (__builtin_mul_overflow(size, (size_t)MOST_EXPANSION, &r.budget)) r.budget = SIZE_MAX;
  if (size == 0) refuse(&r, NULL, "the file is empty"); /* to libzip an archive without members */
  if (bb_npy_has_magic(data, size)) {
    npz->array = BB_NEW(arena, bb_npz_array, 1);
    npz->array[0].name = stem_of(arena, name);
    const char *error = bb_npy_parse(arena, data, size, &npz->array[0]);
    if (error) refuse(&r, npz->array[0].name, error);
    npz->count = 1;
  } else {
    open_archive(&r, data, size);
    zip_int64_t count = zip_get_num_entries(r.zip, 0);
    if (count < 0 || count > UINT32_MAX / 2) refuse(&r, NULL, "too many members");
    npz->array = BB_NEW(arena, bb_npz_array, (size_t)count);
    for (zip_int64_t i = 0; i < count; i++) {
      read_member(&r, (zip_uint64_t)i, &npz->array[i]);
      npz->count++;
    }
    bb_undefer(ctx, r.zip);
    zip_discard(r.zip);
  }
  bb_scratch_end(r.scratch);
  return npz;
}

static void close_file(void *descriptor) {
  close((int)(intptr_t)descriptor);
}

/* The whole file in `arena`. */
static uint8_t *read_file(bb_context *ctx, bb_arena *arena, const char *path, size_t *size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
  bb_defer(ctx, close_file, (void *)(intptr_t)file);
  struct stat info;
  if (fstat(file, &info) != 0) bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) bb_fail(ctx, BB_ERROR_IO, "%s: not a regular file", path);
  *size = (size_t)info.st_size;
  uint8_t *bytes = bb_arena_alloc(arena, *size);
  for (size_t have = 0; have < *size;) {
    ssize_t got = read(file, bytes + have, *size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
    if (got == 0) bb_fail(ctx, BB_ERROR_IO, "%s: it shrank while being read", path);
    have += (size_t)got;
  }
  bb_undefer(ctx, (void *)(intptr_t)file);
  close(file);
  return bytes;
}

bb_npz *bb_npz_read(bb_arena *arena, const char *path) {
  bb_context *ctx = bb_arena_context(arena);
  bb_arena *scratch = bb_scratch(ctx);
  size_t size;
  const uint8_t *bytes = read_file(ctx, scratch, path, &size);
  bb_npz *npz = bb_npz_parse(arena, path, bytes, size);
  bb_scratch_end(scratch);
  return npz;
}

const bb_npz_array *bb_npz_find(const bb_npz *npz, const char *name) {
  for (uint32_t i = npz->count; i-- > 0;)
    if (strcmp(npz->array[i].name, name) == 0) return &npz->array[i];
  return NULL;
}

/* --- writing --- */

static _Noreturn void fail_writing(bb_context *ctx, const char *path, const char *why) {
  bb_fail(ctx, BB_ERROR_IO, "%s: cannot be written: %s", path, why);
}

static void add_member(bb_context *ctx, bb_arena *scratch, zip_t *zip, const char *path,
                       const bb_npz_array *array) {
  bb_buffer bytes = {.arena = scratch};
  bb_npy_print(&bytes, array);
  const char *name = bb_arena_printf(scratch, "%s.npy", array->name);
  zip_source_t *source = zip_source_buffer(zip, bytes.data, bytes.length, 0);
  if (!source) fail_writing(ctx, path, zip_strerror(zip));
  zip_int64_t index = zip_file_add(zip, name, source, ZIP_FL_OVERWRITE | ZIP_FL_ENC_GUESS);
  if (index < 0) {
    zip_source_free(source);
    fail_writing(ctx, path, zip_strerror(zip));
  }
  const zip_uint16_t first_day = 1 << 5 | 1; /* 1980-01-01 */
  if (zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(zip, (zip_uint64_t)index, 0, first_day, 0) != 0)
    fail_writing(ctx, path, zip_strerror(zip));
}

/* libzip writes a temporary file beside `path` and renames it. */
void bb_npz_write(bb_context *ctx, const char *path, const bb_npz *npz) {
  bb_arena *scratch = bb_scratch(ctx);
  int code;
  if (npz->count == 0) fail_writing(ctx, path, "there is no array to write");
  zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!zip) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const char *why = bb_arena_printf(scratch, "%s", zip_error_strerror(&error));
    zip_error_fini(&error);
    fail_writing(ctx, path, why);
  }
  bb_defer(ctx, discard, zip);
  for (uint32_t i = 0; i < npz->count; i++) add_member(ctx, scratch, zip, path, &npz->array[i]);
  if (zip_close(zip) != 0) fail_writing(ctx, path, zip_strerror(zip));
  bb_undefer(ctx, zip);
  bb_scratch_end(scratch);
}
