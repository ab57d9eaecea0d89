/* launch.c - launches on a device: kept with their arguments, and issued. */
#include "launch.h"

#include <string.h>

enum { ALIGN = 64 };

void bb_gpu_calls_clear(bb_gpu_calls *calls) {
  calls->before = calls->version;
  calls->had = calls->count;
  calls->differ = !calls->version;
  calls->version = 0;
  calls->count = 0;
  calls->used = 0;
}

void bb_gpu_calls_settle(bb_gpu_calls *calls, uint64_t *versions) {
  bool same = !calls->differ && calls->count == calls->had;
  calls->version = same ? calls->before : ++*versions;
}

/* Whether a call is what was there before. */
static bool is(const bb_gpu_calls *calls, const bb_gpu_call *was, const bb_gpu_call *call,
               const void *argument) {
  return was->how.function == call->how.function && was->how.threads == call->how.threads &&
         was->how.shared == call->how.shared && was->how.cluster == call->how.cluster &&
         was->how.early == call->how.early && was->blocks == call->blocks &&
         was->argument == call->argument && was->length == call->length &&
         memcmp(calls->bytes + was->argument, argument, was->length) == 0;
}

void bb_gpu_add(const bb_gpu_machine *m, bb_gpu_calls *calls, const bb_gpu_call *call,
                const void *argument, size_t bytes) {
  size_t at = (calls->used + ALIGN - 1) / ALIGN * ALIGN;
  if (calls->count == calls->capacity) {
    uint32_t capacity = calls->capacity ? 2 * calls->capacity : 4;
    calls->call = bb_resize(m->ctx, calls->call, calls->capacity * sizeof *calls->call,
                            capacity * sizeof *calls->call);
    calls->capacity = capacity;
  }
  if (at + bytes + ALIGN > calls->room) { /* a structure may end in padding */
    size_t room = 2 * (at + bytes) + ALIGN;
    calls->bytes = bb_resize(m->ctx, calls->bytes, calls->room, room);
    calls->room = room;
  }
  bb_gpu_call added = {.how = call->how, .blocks = call->blocks, .argument = at, .length = bytes};
  calls->differ |=
      calls->count >= calls->had || !is(calls, &calls->call[calls->count], &added, argument);
  memcpy(calls->bytes + at, argument, bytes);
  calls->used = at + bytes;
  calls->call[calls->count++] = added;
}

static int issue(const bb_gpu_driver *d, const bb_gpu_call *c, void *argument, void *stream) {
  void *pointers[] = {argument};
  const bb_gpu_manner *how = &c->how;
  if (!how->cluster && !how->early)
    return d->launch(how->function, c->blocks, 1, 1, how->threads, 1, 1, how->shared, stream,
                     pointers, NULL);
  bb_cuda_attribute attribute[2];
  uint32_t attributes = 0;
  if (how->cluster > 1)
    attribute[attributes++] =
        (bb_cuda_attribute){.id = BB_CUDA_CLUSTER, .value = {how->cluster, 1, 1}};
  if (how->early) attribute[attributes++] = (bb_cuda_attribute){.id = BB_CUDA_EARLY, .value = {1}};
  bb_cuda_launch_config config = {.grid = {c->blocks, 1, 1},
                                  .block = {how->threads, 1, 1},
                                  .shared = how->shared,
                                  .stream = stream,
                                  .attribute = attribute,
                                  .attributes = attributes};
  return d->launch_with(&config, how->function, pointers, NULL);
}

int bb_gpu_try(const bb_gpu_driver *d, const bb_gpu_calls *calls, uint32_t call, void *stream) {
  const bb_gpu_call *c = &calls->call[call];
  return issue(d, c, calls->bytes + c->argument, stream);
}

void bb_gpu_issue(bb_context *ctx, const bb_gpu_driver *d, const bb_gpu_calls *calls, void *stream,
                  const char *name) {
  for (uint32_t i = 0; i < calls->count; i++)
    bb_gpu_must(ctx, d, bb_gpu_try(d, calls, i, stream), name);
}

void bb_gpu_calls_end(bb_context *ctx, bb_gpu_calls *calls) {
  if (calls->call) bb_resize(ctx, calls->call, calls->capacity * sizeof *calls->call, 0);
  if (calls->bytes) bb_resize(ctx, calls->bytes, calls->room, 0);
  *calls = (bb_gpu_calls){0};
}
