/* price_cache.c - prices of a selection, by the text of what was selected. */
#define _GNU_SOURCE
#include "price_cache.h"

#include "../../graph/text.h"
#include "kernel_cache.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const size_t analysed = 1 << 20; /* bytes of a constant: more are not looked at */

/* Prices of another build are not these. */
static void put_build(bb_buffer *out) {
  Dl_info info;
  struct stat file;
  bb_put(out, "prices 2 %u", bb_version());
  if (dladdr((void *)bb_price_key_of, &info) && info.dli_fname && stat(info.dli_fname, &file) == 0)
    bb_put(out, " %lld %lld.%09ld", (long long)file.st_size, (long long)file.st_mtim.tv_sec,
           file.st_mtim.tv_nsec);
  bb_put(out, "\n");
}

static void put_options(bb_buffer *out, const bb_selection_options *options) {
  const bb_fuse_options *fuse = options->choose ? options->choose->fuse : NULL;
  bb_put(out, "rolling %d", options->rolling);
  if (fuse)
    bb_put(out, " fuse %d %d %d %u %llx", fuse->no_extend, fuse->peel, fuse->naive,
           fuse->stop_after, (unsigned long long)fuse->disabled);
  bb_put(out, "\n");
}

/* The text names large constants by place only. */
static void put_constants(bb_buffer *out, const bb_program *program) {
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_tensor *tensor = &program->tensor[t];
    if (tensor->role != BB_TENSOR_CONSTANT || !tensor->data || tensor->bytes > analysed) continue;
    XXH128_hash_t hash = XXH3_128bits(tensor->data, tensor->bytes);
    bb_put(out, "%u %llx%016llx\n", t, (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
  }
}

bb_price_key bb_price_key_of(const bb_program *program, const bb_selection_options *options,
                             bb_arena *arena) {
  bb_buffer out = {.arena = arena};
  put_build(&out);
  put_options(&out, options);
  bb_put(&out, "strict %d\n", program->strict);
  for (uint32_t i = 0; i < program->symbols; i++) bb_put(&out, "%a ", options->symbol[i]);
  bb_machine_print(&out, options->machine);
  put_constants(&out, program);
  bb_text_print(&out, program, "data");
  return (bb_price_key){out.data, out.length};
}

/* An image: the prices, one after the other. */
const bb_prices *bb_prices_recall(bb_context *ctx, bb_arena *arena, const bb_price_key *key) {
  const bb_cache_key by = {key->text, key->length, .quiet = true};
  size_t size;
  const void *image = bb_cache_image(ctx, arena, &by, &size);
  if (!image) return NULL;
  bb_prices *prices = BB_NEW(arena, bb_prices, 1);
  prices->count = (uint32_t)(size / sizeof *prices->seconds);
  double *seconds = BB_NEW(arena, double, prices->count + 1u);
  memcpy(seconds, image, prices->count * sizeof *seconds);
  prices->seconds = seconds;
  return prices;
}

void bb_prices_keep(bb_context *ctx, bb_arena *arena, const bb_price_key *key,
                    const bb_prices *prices) {
  const bb_cache_key by = {key->text, key->length, .quiet = true};
  bb_cache_keep_image(ctx, arena, &by, prices->seconds, prices->count * sizeof *prices->seconds);
}
