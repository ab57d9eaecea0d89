/* folder.c - loads a compiled folder: checks who could have written it, that its files belong
 * together, and makes a model of them. */
#include "folder.h"

#include "model.h"
#include "plan_text.h"
#include "safe_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct load_call {
  const char *folder;
  const char *on; /* which of the devices that it is for; NULL: the first */
  bb_model *model;
} load_call;

typedef struct opened {
  bb_file plan;
  int data;
} opened;

static void close_files(void *argument) {
  opened *o = argument;
  bb_file_unmap(&o->plan);
  if (o->data >= 0) close(o->data);
}

static const char *in_folder(bb_arena *arena, const char *folder, const char *name) {
  return bb_arena_printf(arena, "%s/%s", folder, name);
}

static _Noreturn void refuse(bb_context *ctx, const char *path, const char *problem) {
  bb_fail(ctx, BB_ERROR_IO, "%s is refused: %s", path, problem);
}

static void check_folder(bb_context *ctx, const char *folder) {
  struct stat status;
  if (stat(folder, &status) != 0) bb_fail(ctx, BB_ERROR_IO, "%s: %s", folder, strerror(errno));
  if (!S_ISDIR(status.st_mode)) refuse(ctx, folder, "it is no folder");
  const char *problem = bb_unsafe(&status);
  if (problem) refuse(ctx, folder, problem);
}

/* Whether these bytes have the hash that `digits` begins with. */
static bool has_hash(const void *bytes, size_t size, const char *digits) {
  char text[32];
  XXH128_canonical_t sum;
  XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes, size));
  for (size_t i = 0; i < sizeof sum.digest; i++)
    for (size_t k = 0; k < 2; k++)
      text[2 * i + k] = "0123456789abcdef"[k ? sum.digest[i] & 15 : sum.digest[i] >> 4];
  return strncmp(text, digits, sizeof text) == 0;
}

/* Kernels and constants are those that the plan was written with: to the bit.  hash: begins with the file's. */
static void check_sum(bb_context *ctx, const char *path, const char *hash) {
  bb_file file;
  const char *problem = bb_file_map(path, &file);
  if (problem) refuse(ctx, path, problem);
  bool same = has_hash(file.bytes, file.size, hash);
  bb_file_unmap(&file);
  if (!same) refuse(ctx, path, "it is not what the plan was written for");
}

/* The plan is as it was written, where it says what that was. */
static void check_plan(bb_context *ctx, const char *path, const bb_file *plan) {
  enum { DIGITS = 32, BEFORE = sizeof BB_FOLDER_HASH - 1, BEHIND = sizeof BB_FOLDER_HASH_END - 1 };
  if (plan->size < BEFORE + DIGITS + BEHIND) return;
  const char *end = plan->bytes + plan->size, *digits = end - BEHIND - DIGITS;
  if (memcmp(digits - BEFORE, BB_FOLDER_HASH, BEFORE) != 0 ||
      memcmp(end - BEHIND, BB_FOLDER_HASH_END, BEHIND) != 0)
    return;
  if (!has_hash(plan->bytes, plan->size - BEFORE - DIGITS - BEHIND, digits))
    refuse(ctx, path, "it is damaged: it has another hash than it says");
}

typedef struct plan_call {
  bb_arena *arena;
  const bb_file *file;
  const bb_plan *plan;
} plan_call;

static void plan_body(bb_context *ctx, void *argument) {
  plan_call *call = argument;
  (void)ctx;
  call->plan = bb_plan_read(call->arena, call->file->bytes, call->file->size);
}

/* What the file says, in the arena; errors name it. */
static const bb_plan *read_plan(bb_context *ctx, bb_arena *arena, const char *path,
                                const bb_file *file) {
  plan_call call = {arena, file, NULL};
  check_plan(ctx, path, file);
  bb_status status = bb_protect(ctx, plan_body, &call);
  if (status == BB_OK) return call.plan;
  const char *why = bb_context_message(ctx);
  bb_fail(ctx, status, "%s: %s", path, bb_arena_text(arena, why, strlen(why)));
}

/* "cuda:1" is the second. */
static uint32_t number_of(bb_context *ctx, const load_call *call, const bb_plan *plan) {
  size_t length = call->on ? strcspn(call->on, ":") : 0;
  char *end;
  if (!call->on) return 0;
  if (strlen(plan->device) != length || memcmp(plan->device, call->on, length) != 0)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "%s: compiled for %s, which %s is not", call->folder,
            plan->device, call->on);
  if (!call->on[length]) return 0;
  const char *digits = call->on + length + 1;
  unsigned long number = strtoul(digits, &end, 10);
  if (*digits < '0' || *digits > '9' || *end || number > INT32_MAX)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no device %s", call->on);
  return (uint32_t)number;
}

/* What the model needs to know before it is made: read apart, as the plan proper is the model's. */
static void load_body(bb_context *ctx, void *argument) {
  load_call *call = argument;
  bb_arena *arena = bb_scratch(ctx);
  opened *files = BB_NEW(arena, opened, 1);
  files->data = -1;
  bb_require(ctx, call->folder, "the folder");
  check_folder(ctx, call->folder);
  bb_defer(ctx, close_files, files);
  const char *path = in_folder(arena, call->folder, BB_FOLDER_PLAN);
  const char *problem = bb_file_map(path, &files->plan);
  if (problem) refuse(ctx, path, problem);
  const bb_plan *plan = read_plan(ctx, arena, path, &files->plan);
  const bb_device_class *device = bb_device_find(plan->device);
  bool has_code = device && *plan->code;
  for (uint32_t i = 0; i < BB_CODE_FILES && has_code && device->files[i]; i++) {
    if (strlen(plan->code) < 32 * (i + 1)) refuse(ctx, path, "it lacks a hash");
    check_sum(ctx, in_folder(arena, call->folder, device->files[i]), plan->code + 32 * i);
  }
  if (device && plan->kernels && !has_code) refuse(ctx, path, "it lacks a hash");
  if (plan->data_bytes) {
    struct stat status;
    path = in_folder(arena, call->folder, BB_FOLDER_DATA);
    files->data = bb_file_open(path, &status, &problem);
    if (files->data < 0) refuse(ctx, path, problem);
    if ((uint64_t)status.st_size != plan->data_bytes)
      refuse(ctx, path, "it has another size than the plan says");
    check_sum(ctx, path, plan->sum);
  }
  bb_model_parts parts = {.text = files->plan.bytes,
                          .length = files->plan.size,
                          .class = device,
                          .number = number_of(ctx, call, plan),
                          .code = {.folder = call->folder},
                          .place = call->folder,
                          .cached = true,
                          .data_file = files->data};
  if (has_code) parts.code.path = in_folder(arena, call->folder, device->files[0]);
  call->model = bb_model_make(ctx, &parts);
  bb_undefer(ctx, files);
  close_files(files);
  bb_scratch_end(arena);
}

bb_status bb_model_load(bb_context *ctx, const char *folder, bb_model **model) {
  return bb_model_load_on(ctx, folder, NULL, model);
}

bb_status bb_model_load_on(bb_context *ctx, const char *folder, const char *device,
                           bb_model **model) {
  load_call call = {.folder = folder, .on = device};
  bb_status status = bb_protect(ctx, load_body, &call);
  if (status == BB_OK) *model = call.model;
  return status;
}
