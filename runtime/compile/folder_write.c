/* folder_write.c - a compiled program as a folder: made beside its place, then moved there whole.
 *
 * Who makes one holds a lock on it, which dies with the process: one without is what a killed process left,
 * and goes when the next is made.
 */
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
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct target {
  bb_context *ctx;
  bb_arena *arena;
  const char *folder; /* without slashes at its end */
  const char *cache;  /* as the options name it */
  char *making;       /* beside it; its name is the caller's to free */
  int lock;           /* of `making`; -1: there are none here */
} target;

static const char making_name[] = ".making-XXXXXX";

static _Noreturn void fail_io(const target *t, const char *path) {
  bb_fail(t->ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
}

static const char *inside(const target *t, const char *name) {
  return bb_arena_printf(t->arena, "%s/%s", t->making, name);
}

/* --- its files --- */

/* A plan's constants, each where the plan says. */
static bool put_constants(FILE *file, const bb_draft *draft) {
  static const char zeros[BB_PLAN_APART];
  bool good = true;
  for (uint32_t i = 0; i < draft->plan->tensors && good; i++) {
    const bb_plan_tensor *t = &draft->plan->tensor[i];
    if (t->role != BB_TENSOR_CONSTANT || !t->bytes) continue;
    size_t fill = (size_t)(-t->bytes % BB_PLAN_APART);
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

static const char *digits_of(const target *t, XXH128_hash_t hash) {
  XXH128_canonical_t sum;
  XXH128_canonicalFromHash(&sum, hash);
  bb_buffer text = {.arena = t->arena};
  for (size_t i = 0; i < sizeof sum.digest; i++) bb_put(&text, "%02x", sum.digest[i]);
  return text.data;
}

static const char *hash_of(const target *t, const char *path) {
  XXH3_state_t state;
  char bytes[1 << 14];
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  FILE *file = fopen(path, "rb");
  for (size_t got; file && (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
    XXH3_128bits_update(&state, bytes, got);
  bool good = file && !ferror(file);
  if (file) fclose(file);
  if (!good) fail_io(t, path);
  return digits_of(t, XXH3_128bits_digest(&state));
}

/* Of both files. */
static void write_code(const target *t, bb_plan *plan, const bb_gpu_code *code) {
  bb_buffer text = {
      .arena = t->arena, .data = (char *)(uintptr_t)code->text, .length = code->length};
  bb_buffer images = {
      .arena = t->arena, .data = (char *)(uintptr_t)code->images, .length = code->bytes};
  write_file(t, BB_GPU_LAUNCHES, &text, NULL);
  write_file(t, BB_GPU_IMAGES, &images, NULL);
  plan->code = bb_arena_printf(t->arena, "%s%s", hash_of(t, inside(t, BB_GPU_LAUNCHES)),
                               hash_of(t, inside(t, BB_GPU_IMAGES)));
}

static void fill(const target *t, bb_draft *draft, const bb_gpu_code *gpu) {
  bb_buffer plan = {.arena = t->arena};
  if (gpu) write_code(t, draft->plan, gpu);
  if (draft->plan->kernels && !gpu) {
    const char *code = inside(t, bb_cpu_device.files[0]);
    bb_cpu_build(t->ctx, draft->source, draft->length, t->making, t->cache);
    if (chmod(code, 0644) != 0 || chmod(inside(t, "kernels.c"), 0644) != 0) fail_io(t, code);
    bb_cpu_tidy_folder(t->making);
    draft->plan->code = hash_of(t, code);
  }
  if (draft->plan->data_bytes) {
    write_file(t, BB_FOLDER_DATA, NULL, draft);
    draft->plan->sum = hash_of(t, inside(t, BB_FOLDER_DATA));
  }
  bb_plan_write(&plan, draft->plan);
  plan.length -= strlen("}\n");
  bb_put(&plan, "%s%s%s", BB_FOLDER_HASH, digits_of(t, XXH3_128bits(plan.data, plan.length)),
         BB_FOLDER_HASH_END);
  write_file(t, BB_FOLDER_PLAN, &plan, NULL);
}

/* --- its place --- */

/* Every entry of an open folder is of a compiled one: nothing of anybody else's. */
static bool has_only_ours(DIR *dir) {
  bool good = true;
  for (struct dirent *d; good && (d = readdir(dir));)
    good =
        strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 || bb_cpu_folder_has(d->d_name);
  return good;
}

/* Nothing there, an empty folder, or one that was written before. */
static bool may_be_replaced(const target *t, bool *exists) {
  DIR *dir = opendir(t->folder);
  bool good = dir ? has_only_ours(dir) : errno == ENOENT;
  *exists = dir != NULL;
  if (dir) closedir(dir);
  return good;
}

static void check_replaceable(const target *t, bool *exists) {
  if (!may_be_replaced(t, exists))
    bb_fail(t->ctx, BB_ERROR_ARGUMENT, "%s is there and is no compiled model", t->folder);
}

/* A folder that was there, or came to be there meanwhile, takes the other's name, and is removed under it. */
static void move(const target *t) {
  if (chmod(t->making, 0755) != 0) fail_io(t, t->making);
  while (rename(t->making, t->folder) != 0) {
    bool exists, in_the_way = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
    if (!in_the_way) fail_io(t, t->folder);
    check_replaceable(t, &exists);
    if (!exists) continue; /* it is gone again */
    if (renameat2(AT_FDCWD, t->making, AT_FDCWD, t->folder, RENAME_EXCHANGE) == 0) {
      if (unlink(t->making) != 0) bb_cpu_remove_folder(t->making); /* a link to one, or one */
      return;
    }
    if (errno != ENOENT) fail_io(t, t->folder);
  }
}

/* --- what is being made --- */

static bool is_there(int folder, const char *path) {
  struct stat held, named;
  return fstat(folder, &held) == 0 && lstat(path, &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

static void remove_stale(const target *t, const char *path) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *dir = folder < 0 ? NULL : fdopendir(folder);
  struct stat status;
  if (dir && fstat(folder, &status) == 0 && status.st_uid == geteuid() &&
      flock(folder, LOCK_EX | LOCK_NB) == 0 && is_there(folder, path) && has_only_ours(dir)) {
    bb_log(t->ctx, BB_LOG_INFO, "%s is removed: who made it is gone", path);
    bb_cpu_remove_folder(path);
  }
  if (dir)
    closedir(dir);
  else if (folder >= 0)
    close(folder);
}

static void sweep(const target *t) {
  const char *slash = strrchr(t->folder, '/'), *base = slash ? slash + 1 : t->folder;
  int length = slash ? (int)(slash - t->folder) + 1 : 0;
  const char *parent = length ? bb_arena_text(t->arena, t->folder, (size_t)length) : "";
  size_t prefix = strlen(base), marked = sizeof making_name - sizeof "XXXXXX";
  DIR *dir = opendir(length ? parent : ".");
  for (struct dirent *d; dir && (d = readdir(dir));)
    if (strncmp(d->d_name, base, prefix) == 0 &&
        strncmp(d->d_name + prefix, making_name, marked) == 0 &&
        strlen(d->d_name) == prefix + sizeof making_name - 1)
      remove_stale(t, bb_arena_printf(t->arena, "%s%s", parent, d->d_name));
  if (dir) closedir(dir);
}

/* One that is not locked yet may be swept away: then another. */
static void begin(target *t) {
  do {
    free(t->making);
    t->making = strdup(bb_arena_printf(t->arena, "%s%s", t->folder, making_name));
    if (!t->making) bb_fail(t->ctx, BB_ERROR_MEMORY, "out of memory");
    if (!mkdtemp(t->making)) {
      int error = errno;
      free(t->making);
      errno = error;
      fail_io(t, t->folder);
    }
    if (t->lock >= 0) close(t->lock);
    t->lock = open(t->making, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (t->lock >= 0 ? flock(t->lock, LOCK_EX) == 0 && !is_there(t->lock, t->making)
                        : errno == ENOENT);
}

static void end(void *argument) {
  target *t = argument;
  bb_cpu_remove_folder(t->making);
  free(t->making);
  if (t->lock >= 0) close(t->lock);
}

void bb_folder_write(bb_context *ctx, bb_draft *draft, const bb_gpu_code *code, const char *folder,
                     const char *cache) {
  bb_arena *arena = bb_scratch(ctx);
  target *t = BB_NEW(arena, target, 1); /* end() may run when this frame is gone */
  *t = (target){.ctx = ctx, .arena = arena, .cache = cache, .lock = -1};
  size_t length = strlen(folder);
  while (length > 1 && folder[length - 1] == '/') length--;
  t->folder = bb_arena_text(arena, folder, length);
  bool exists;
  check_replaceable(t, &exists);
  sweep(t);
  begin(t);
  bb_defer(ctx, end, t);
  fill(t, draft, code);
  move(t);
  bb_undefer(ctx, t);
  free(t->making);
  if (t->lock >= 0) close(t->lock);
  bb_scratch_end(arena);
}
