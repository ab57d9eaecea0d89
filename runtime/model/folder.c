/* folder.c - loads a compiled folder: checks who could have written it, that its files belong
 * together, and makes a model of them. */
#include "folder.h"

#include "model.h"
#include "plan_text.h"
#include "safe_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct load_call {
  const char *folder;
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

/* Kernels and constants are those that the plan was written with: to the bit. */
static void check_sum(bb_context *ctx, const char *path, const char *hash) {
  bb_file file;
  char text[33];
  const char *problem = bb_file_map(path, &file);
  if (problem) refuse(ctx, path, problem);
  XXH128_canonical_t sum;
  XXH128_canonicalFromHash(&sum, XXH3_128bits(file.bytes, file.size));
  bb_file_unmap(&file);
  for (size_t i = 0; i < sizeof sum.digest; i++)
    for (size_t k = 0; k < 2; k++)
      text[2 * i + k] = "0123456789abcdef"[k ? sum.digest[i] & 15 : sum.digest[i] >> 4];
  text[32] = 0;
  if (strcmp(text, hash) != 0) refuse(ctx, path, "it is not what the plan was written for");
}

/* What the model needs to know before it is made: read apart, as the plan proper is the model's. */
static void load_body(bb_context *ctx, void *argument) {
  load_call *call = argument;
  bb_arena *arena = bb_scratch(ctx);
  opened *files = BB_NEW(arena, opened, 1);
  files->data = -1;
  check_folder(ctx, call->folder);
  bb_defer(ctx, close_files, files);
  const char *path = in_folder(arena, call->folder, BB_FOLDER_PLAN);
  const char *problem = bb_file_map(path, &files->plan);
  if (problem) refuse(ctx, path, problem);
  const bb_plan *plan = bb_plan_read(arena, files->plan.bytes, files->plan.size);
  const bb_device_class *device = bb_device_find(plan->device);
  const char *code =
      plan->kernels && device ? in_folder(arena, call->folder, device->binary) : NULL;
  if (code) check_sum(ctx, code, plan->code);
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
                          .code = {.path = code},
                          .place = call->folder,
                          .cached = true,
                          .data_file = files->data};
  call->model = bb_model_make(ctx, &parts);
  bb_undefer(ctx, files);
  close_files(files);
  bb_scratch_end(arena);
}

bb_status bb_model_load(bb_context *ctx, const char *folder, bb_model **model) {
  load_call call = {.folder = folder};
  bb_status status = bb_protect(ctx, load_body, &call);
  if (status == BB_OK) *model = call.model;
  return status;
}
