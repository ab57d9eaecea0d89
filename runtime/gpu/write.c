/* write.c - a fused program's kernels for a GPU that is not here: their source, to be read or compiled elsewhere. */
#include "../compile/plan_make.h"
#include "code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct folder {
  bb_context *ctx;
  bb_arena *arena;
  const char *path;
} folder;

static void write_file(const folder *f, const char *name, const char *text) {
  const char *path = bb_arena_printf(f->arena, "%s/%s", f->path, name);
  FILE *file = fopen(path, "w");
  bool good = file && fputs(text, file) >= 0;
  if (file && fclose(file) != 0) good = false;
  if (!good) bb_fail(f->ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
}

/* --- launches --- */

static void put_launch(bb_buffer *out, const char *file, const char *function, uint32_t threads,
                       uint32_t shared) {
  bb_put(out, "%s\n  {\"file\": \"%s\", \"function\": \"%s\", \"threads\": %u, \"shared\": %u}",
         out->length > 1 ? "," : "", file, function, threads, shared);
}

static void put_launches(bb_buffer *out, bb_arena *arena, const bb_gpu_made *made,
                         const char *plain, const char *const *own) {
  uint32_t owns = 0, plains = 0; /* numbers follow each other */
  bb_put(out, "[");
  for (uint32_t i = 0; i < made->kernels; i++)
    for (uint32_t k = 0; k < made->kernel[i].count; k++) {
      const bb_gpu_made_way *w = &made->kernel[i].way[k];
      const bb_sm90_launch *p = &w->own.plan;
      if (w->from->own && w->source == owns) {
        put_launch(out, own[owns], p->kernel, p->threads, p->shared);
        owns++;
      }
      if (w->from->own || w->source != plains) continue;
      for (uint32_t n = 0; n < w->plain.plan.nests; n++)
        put_launch(out, plain, bb_gpu_function(arena, plains, n), w->plain.plan.nest[n].threads,
                   w->plain.plan.nest[n].shared);
      plains++;
    }
  bb_put(out, "\n]\n");
}

/* --- everything --- */

static void put_files(const folder *f, const bb_gpu_api *api, const bb_gpu_made *made) {
  bb_buffer launches = {.arena = f->arena};
  bb_gpu_headers header = bb_gpu_headers_of(api);
  const char *plain = bb_arena_printf(f->arena, "kernels.%s", api->suffix);
  const char **own = BB_NEW(f->arena, const char *, made->owns + 1);
  for (uint32_t i = 0; i < made->owns; i++) {
    own[i] = bb_arena_printf(f->arena, "kernel%u.%s", i, api->suffix);
    write_file(f, own[i], made->own[i]);
  }
  if (made->plain) write_file(f, plain, made->plain);
  for (int i = 0; i < header.count; i++) write_file(f, header.name[i], header.text[i]);
  put_launches(&launches, f->arena, made, plain, own);
  write_file(f, "launches.json", launches.data);
}

static void unmake(void *made) {
  bb_gpu_unmake(made);
}

void bb_gpu_write(bb_program *program, const char *name, const char *path) {
  bb_context *ctx = program->ctx;
  bb_arena *arena = bb_scratch(ctx);
  const bb_gpu_api *api = bb_gpu_find_target(name);
  const bb_machine *machine = bb_gpu_suppose(arena, name);
  if (!machine) bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no target %s", name);
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
  bb_gpu_target target = {.api = api,
                          .name = name,
                          .units = api->own && strcmp(name, api->own) == 0,
                          .processors = (int)machine->units,
                          .shared = bb_gpu_shared((uint32_t)machine->local_bytes)};
  bb_draft *draft = bb_draft_make(program, &(bb_draft_options){.target = &target}, arena);
  bb_gpu_made *made = BB_NEW(arena, bb_gpu_made, 1);
  bb_gpu_make(ctx, &target, draft->gpu, draft->plan, arena, made);
  bb_defer(ctx, unmake, made);
  put_files(&(folder){ctx, arena, path}, api, made);
  bb_undefer(ctx, made);
  bb_gpu_unmake(made);
  bb_scratch_end(arena);
}
