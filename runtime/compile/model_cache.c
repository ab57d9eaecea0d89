/* model_cache.c - models for a GPU on disk, by the text of what was chosen. */
#include "model_cache.h"

#include "../variants.h"
#include "program_key.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* --- keys --- */

/* Images know the arguments of launches as the device library of their build has them. */
static void put_library(bb_buffer *out, const bb_gpu_toolchain *toolchain) {
  const bb_gpu_headers header = bb_gpu_headers_of(toolchain);
  XXH64_hash_t hash = 0;
  for (int i = 0; i < header.count; i++)
    hash = XXH3_64bits_withSeed(header.text[i], strlen(header.text[i]), hash);
  bb_put(out, "%llx\n", (unsigned long long)hash);
}

static void put_options(bb_buffer *out, const bb_draft_options *o, const bb_program *program) {
  const bb_gpu_target *t = o->target;
  const bb_gpu_toolchain *toolchain = bb_gpu_toolchain_of(t->api);
  const char *compiler = getenv(toolchain->library.variable);
  put_library(out, toolchain);
  bb_put(out, "%s %s %d %d %u way %u strict %d\n%s\n", t->api->name, t->name, t->units,
         t->processors, t->shared, o->way, program->strict, compiler ? compiler : "");
  for (bb_dim i = 0; o->block && i < program->dims; i++)
    bb_put(out, "%lld ", (long long)o->block[i]);
  bb_put(out, "\n");
}

/* A program of its candidates as they run: not what else could have been chosen. */
static void put_choice(bb_buffer *out, const bb_program *program, const bb_choice *choice) {
  bb_program shown = *program;
  bb_choice runs = *choice;
  runs.candidate = BB_NEW(out->arena, bb_candidate, choice->candidates + 1);
  for (uint32_t i = 0; i < choice->candidates; i++) {
    const bb_candidate *from = &choice->candidate[i];
    bb_snapshot *only = BB_NEW(out->arena, bb_snapshot, 1);
    *only = (bb_snapshot){.graph = bb_candidate_runs(from), .operations = -1, .buffered = -1};
    runs.candidate[i] =
        (bb_candidate){.name = from->name, .once = from->once, .snapshots = 1, .snapshot = only};
  }
  bb_choice_install(&shown, &runs);
  bb_key_put_program(out, &shown);
}

static void put_numbers(bb_buffer *out, uint32_t count, const double *number) {
  for (uint32_t i = 0; i < count; i++) bb_put(out, "%a ", number[i]);
  bb_put(out, "\n");
}

bb_cache_key bb_gpu_model_key(const bb_program *program, const bb_draft_options *options,
                              const char *folder, bb_arena *arena) {
  const struct bb_variants *variants = program->variants;
  const bb_selection_report *report = program->selection;
  bb_choice alone = bb_choice_of(program);
  bb_buffer out = {.arena = arena};
  bb_key_put_build(&out, "model");
  put_options(&out, options, program);
  if (variants) {
    bb_prices regions = bb_regions_written(variants->regions, program->symbols, arena);
    put_numbers(&out, regions.count, regions.seconds);
  } else if (report) {
    put_numbers(&out, report->symbols, report->symbol);
  }
  for (uint32_t v = 0; v < (variants ? variants->regions->count : 1); v++)
    put_choice(&out, program, variants ? &variants->choice[v] : &alone);
  return (bb_cache_key){out.data, out.length, .folder = folder};
}

/* --- images: the code's images, the plan, the code's text; their lengths before them --- */

enum { IMAGES, PLAN, CODE, PARTS };

typedef struct head {
  uint64_t length[PARTS];
} head;

_Static_assert(sizeof(head) <= BB_GPU_IMAGE_LINE, "what follows is aligned");

const bb_gpu_model *bb_gpu_model_recall(bb_context *ctx, bb_arena *arena, const bb_cache_key *key) {
  size_t size;
  head h;
  const char *image = bb_cache_image(ctx, arena, key, &size), *part[PARTS];
  if (!image || size < BB_GPU_IMAGE_LINE) return NULL;
  memcpy(&h, image, sizeof h);
  size_t at = BB_GPU_IMAGE_LINE;
  for (int i = 0; i < PARTS; i++) {
    if (h.length[i] > size - at) return NULL;
    part[i] = image + at;
    at += h.length[i];
  }
  bb_gpu_code *code = BB_NEW(arena, bb_gpu_code, 1);
  bb_gpu_model *model = BB_NEW(arena, bb_gpu_model, 1);
  *code = (bb_gpu_code){part[CODE], h.length[CODE], part[IMAGES], h.length[IMAGES], false};
  *model = (bb_gpu_model){part[PLAN], h.length[PLAN], code};
  return model;
}

void bb_gpu_model_keep(bb_context *ctx, bb_arena *arena, const bb_cache_key *key,
                       const bb_gpu_model *model) {
  const bb_gpu_code *code = model->code;
  const head h = {{[IMAGES] = code->bytes, [PLAN] = model->length, [CODE] = code->length}};
  char line[BB_GPU_IMAGE_LINE] = {0};
  bb_buffer out = {.arena = arena};
  memcpy(line, &h, sizeof h);
  bb_put_bytes(&out, line, sizeof line);
  bb_put_bytes(&out, code->images, code->bytes);
  bb_put_bytes(&out, model->plan, model->length);
  bb_put_bytes(&out, code->text, code->length);
  bb_cache_keep_image(ctx, arena, key, out.data, out.length);
}
