/* folder_write.c - a compiled program as a folder: made beside its place, then moved there whole. */
#define _GNU_SOURCE /* renameat2 */
#include "../cpu/cpu.h"
#include "../device.h"
#include "../model/folder.h"
#include "plan_make.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct target {
  bb_context *ctx;
  bb_arena *arena;
  const char *folder; /* without slashes at its end */
  char *making;       /* beside it; its name is the caller's to free */
} target;

static _Noreturn void fail_io(const target *t, const char *path) {
  bb_fail(t->ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
}

static const char *inside(const target *t, const char *name) {
  return bb_arena_printf(t->arena, "%s/%s", t->making, name);
}

/* --- its files --- */

/* A plan's constants, each where the plan says. */
static bool put_constants(FILE *file, const bb_draft *draft) {
  static const char zeros[64];
  bool good = true;
  for (uint32_t i = 0; i < draft->plan->tensors && good; i++) {
    const bb_plan_tensor *t = &draft->plan->tensor[i];
    if (t->role != BB_TENSOR_CONSTANT || !t->bytes) continue;
    size_t fill = (size_t)(-t->bytes % 64);
    good = fwrite(draft->data[i], 1, t->bytes, file) == t->bytes &&
           fwrite(zeros, 1, fill, file) == fill;
  }
  return good;
}

/* Others may read it, nobody else may write it, whatever the umask. */
static void write_file(const target *t, const char *name, const bb_buffer *text,
                       const bb_draft *draft) {
  const char *path = inside(t, name);
  FILE *file = fopen(path, "wb");
  bool good = file != NULL;
  if (good && text) good = fwrite(text->data, 1, text->length, file) == text->length;
  if (good && draft) good = put_constants(file, draft);
  if (file) good &= fclose(file) == 0;
  if (!good || chmod(path, 0644) != 0) fail_io(t, path);
}

static const char *hash_of(const target *t, const char *path) {
  XXH3_state_t state;
  XXH128_canonical_t sum;
  char bytes[1 << 14];
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  FILE *file = fopen(path, "rb");
  for (size_t got; file && (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
    XXH3_128bits_update(&state, bytes, got);
  bool good = file && !ferror(file);
  if (file) fclose(file);
  if (!good) fail_io(t, path);
  XXH128_canonicalFromHash(&sum, XXH3_128bits_digest(&state));
  bb_buffer text = {.arena = t->arena};
  for (size_t i = 0; i < sizeof sum.digest; i++) bb_put(&text, "%02x", sum.digest[i]);
  return text.data;
}

static void fill(const target *t, bb_draft *draft) {
  bb_buffer plan = {.arena = t->arena};
  if (draft->plan->kernels) {
    const char *code = inside(t, bb_cpu_device.binary);
    bb_cpu_build(t->ctx, draft->source, draft->length, t->making);
    if (chmod(code, 0644) != 0 || chmod(inside(t, "kernels.c"), 0644) != 0) fail_io(t, code);
    bb_cpu_tidy_folder(t->making);
    draft->plan->code = hash_of(t, code);
  }
  if (draft->plan->data_bytes) {
    write_file(t, BB_FOLDER_DATA, NULL, draft);
    draft->plan->sum = hash_of(t, inside(t, BB_FOLDER_DATA));
  }
  bb_plan_write(&plan, draft->plan);
  write_file(t, BB_FOLDER_PLAN, &plan, NULL);
}

/* --- its place --- */

/* Nothing there, an empty folder, or one that was written before: nothing of anybody else's. */
static bool may_be_replaced(const target *t, bool *exists) {
  DIR *dir = opendir(t->folder);
  bool good = dir || errno == ENOENT;
  *exists = dir != NULL;
  for (struct dirent *d; dir && good && (d = readdir(dir));)
    good =
        strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 || bb_cpu_folder_has(d->d_name);
  if (dir) closedir(dir);
  return good;
}

/* The folder that was there takes the other's name, and is removed under it. */
static void move(const target *t, bool exists) {
  if (chmod(t->making, 0755) != 0) fail_io(t, t->making);
  if (!exists || rmdir(t->folder) == 0) {
    if (rename(t->making, t->folder) != 0) fail_io(t, t->folder);
    return;
  }
  if (renameat2(AT_FDCWD, t->making, AT_FDCWD, t->folder, RENAME_EXCHANGE) != 0)
    fail_io(t, t->folder);
  bb_cpu_remove_folder(t->making);
}

static void remove_making(void *folder) {
  bb_cpu_remove_folder(folder);
  free(folder);
}

void bb_folder_write(bb_context *ctx, bb_draft *draft, const char *folder) {
  target t = {.ctx = ctx, .arena = bb_scratch(ctx)};
  size_t length = strlen(folder);
  while (length > 1 && folder[length - 1] == '/') length--;
  t.folder = bb_arena_text(t.arena, folder, length);
  bool exists;
  if (!may_be_replaced(&t, &exists))
    bb_fail(ctx, BB_ERROR_ARGUMENT, "%s is there and is no compiled model", folder);
  t.making = strdup(bb_arena_printf(t.arena, "%s.making-XXXXXX", t.folder));
  if (!t.making) bb_fail(ctx, BB_ERROR_MEMORY, "out of memory");
  if (!mkdtemp(t.making)) {
    free(t.making);
    fail_io(&t, folder);
  }
  bb_defer(ctx, remove_making, t.making);
  fill(&t, draft);
  move(&t, exists);
  bb_undefer(ctx, t.making);
  free(t.making);
  bb_scratch_end(t.arena);
}
