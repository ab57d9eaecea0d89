/* write.c - a fused program's kernels for a GPU that is not here: their source, to be read or compiled elsewhere. */
#include "../compile/plan_make.h"
#include "gpu.h"

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

/* "k12_0" is behind "k3_0". */
static bool is_behind(const char *name, const char *last) {
  return !*last || strtoul(name + 1, NULL, 10) > strtoul(last + 1, NULL, 10);
}

static void put_launches(bb_buffer *out, bb_arena *arena, const bb_gpu_made *made,
                         const char *plain, const char *const *own) {
  const bb_gpu_kernels *k = made->kernels;
  bool *put = BB_NEW(arena, bool, k->images + 1); /* by image */
  const char *last = ""; /* functions of plain kernels are numbered as they come */
  bb_put(out, "[");
  for (uint32_t i = 0; i < k->kernels; i++)
    for (uint32_t w = 0; w < k->kernel[i].count; w++) {
      const bb_gpu_way *way = &k->kernel[i].way[w];
      if (way->is_own && !put[way->own.image])
        put_launch(out, own[way->own.image], way->own.name, way->own.threads, way->own.shared);
      if (way->is_own) put[way->own.image] = true;
      for (uint32_t n = 0; n < way->plain.nests && is_behind(way->plain.nest[0].name, last); n++)
        put_launch(out, plain, way->plain.nest[n].name, way->plain.nest[n].threads,
                   way->plain.nest[n].shared);
      if (way->plain.nests && is_behind(way->plain.nest[0].name, last))
        last = way->plain.nest[0].name;
    }
  bb_put(out, "\n]\n");
}

/* --- everything --- */

static void put_files(const folder *f, const bb_gpu_api *api, const bb_gpu_made *made) {
  bb_buffer launches = {.arena = f->arena};
  const bb_gpu_toolchain *toolchain = bb_gpu_toolchain_of(api);
  bb_gpu_headers header = bb_gpu_headers_of(toolchain);
  const char *plain = bb_arena_printf(f->arena, "kernels.%s", toolchain->suffix);
  const char **own = BB_NEW(f->arena, const char *, made->owns + 1);
  for (uint32_t i = 0; i < made->owns; i++) {
    own[i] = bb_arena_printf(f->arena, "kernel%u.%s", i, toolchain->suffix);
    write_file(f, own[i], made->own[i]);
  }
  if (made->plain) write_file(f, plain, made->plain);
  for (int i = 0; i < header.count; i++) write_file(f, header.name[i], header.text[i]);
  put_launches(&launches, f->arena, made, plain, own);
  write_file(f, "launches.json", launches.data);
}

void bb_gpu_write(bb_program *program, const char *name, const char *path) {
  bb_context *ctx = program->ctx;
  bb_arena *arena = bb_scratch(ctx);
  const bb_gpu_api *api = bb_gpu_find_target(name);
  const bb_machine *machine = bb_gpu_suppose(arena, name);
  if (!machine) bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no target %s", name);
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
  bb_gpu_target target = bb_gpu_supposed(machine, name);
  bb_draft *draft = bb_draft_make(program, &(bb_draft_options){.target = &target}, arena);
  bb_gpu_made *made = BB_NEW(arena, bb_gpu_made, 1);
  bb_gpu_make(ctx, &target, draft->gpu, draft->plan, arena, made);
  put_files(&(folder){ctx, arena, path}, api, made);
  bb_scratch_end(arena);
}
