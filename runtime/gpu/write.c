/* write.c - a fused program's kernels for a GPU that is not here: their source, to be read or compiled elsewhere. */
#include "plan.h"

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

static void put_launches(bb_buffer *out, const bb_gpu_plan *p, uint32_t kernels, const char *plain,
                         const char *const *own) {
  bool *done = BB_NEW(p->arena, bool, p->program->steps + 1);
  bool *written = BB_NEW(p->arena, bool, kernels + 1);
  bb_put(out, "[");
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_gpu_step *s = &p->step[i];
    for (uint32_t w = 0; w < s->ways; w++) {
      const bb_cuda_kernel *k = s->way[w];
      if (!written[k->source])
        put_launch(out, own[k->source], k->plan.kernel, k->plan.threads, k->plan.shared);
      written[k->source] = true;
    }
    if (!s->plain || done[s->source]) continue;
    done[s->source] = true;
    for (uint32_t n = 0; n < s->plain->plan.nests; n++)
      put_launch(out, plain, bb_gpu_function(p->arena, s->source, n),
                 s->plain->plan.nest[n].threads, s->plain->plan.nest[n].shared);
  }
  bb_put(out, "\n]\n");
}

/* --- everything --- */

static void put_files(bb_gpu_plan *p, const bb_gpu_api *api, const folder *f) {
  bb_gpu_texts made;
  bb_buffer launches = {.arena = p->arena};
  bb_gpu_headers header = bb_gpu_headers_of(api);
  const char *plain = bb_arena_printf(p->arena, "kernels.%s", api->suffix);
  bb_gpu_make_steps(p, &(bb_gpu_options){0}, &made);
  const char **own = BB_NEW(p->arena, const char *, made.count + 1);
  for (uint32_t i = 0; i < made.count; i++) {
    own[i] = bb_arena_printf(p->arena, "kernel%u.%s", i, api->suffix);
    write_file(f, own[i], made.own[i]);
  }
  if (made.plain) write_file(f, plain, made.plain);
  for (int i = 0; i < header.count; i++) write_file(f, header.name[i], header.text[i]);
  put_launches(&launches, p, made.count, plain, own);
  write_file(f, "launches.json", launches.data);
}

/* A plan that has no device is never bound. */
void bb_gpu_write(bb_program *program, const char *target, const char *path) {
  bb_context *ctx = program->ctx;
  bb_arena *arena = bb_scratch(ctx);
  const bb_gpu_api *api = bb_gpu_find_target(target);
  const bb_machine *machine = bb_gpu_suppose(arena, target);
  if (!machine) bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no target %s", target);
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
  bb_gpu_plan p = {.program = program,
                   .ctx = ctx,
                   .arena = arena,
                   .target = target,
                   .has_units = api->own && strcmp(target, api->own) == 0};
  p.machine = (bb_gpu_machine){.ctx = ctx,
                               .processors = (int)machine->units,
                               .shared = bb_gpu_shared((uint32_t)machine->local_bytes)};
  put_files(&p, api, &(folder){ctx, arena, path});
  bb_scratch_end(arena);
}
