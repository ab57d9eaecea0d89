/* price_cache.c - prices of a selection, by the text of what was selected. */
#include "price_cache.h"

#include "kernel_cache.h"
#include "program_key.h"

#include <string.h>

static void put_options(bb_buffer *out, const bb_selection_options *options) {
  const bb_fuse_options *fuse = options->choose ? options->choose->fuse : NULL;
  bb_put(out, "rolling %d", options->rolling);
  if (fuse)
    bb_put(out, " fuse %d %d %d %u %llx", fuse->no_extend, fuse->peel, fuse->naive,
           fuse->stop_after, (unsigned long long)fuse->disabled);
  bb_put(out, "\n");
}

bb_price_key bb_price_key_of(const bb_program *program, const bb_selection_options *options,
                             bb_arena *arena) {
  bb_buffer out = {.arena = arena};
  bb_key_put_build(&out, "prices");
  put_options(&out, options);
  bb_put(&out, "strict %d\n", program->strict);
  for (uint32_t i = 0; i < program->symbols; i++) bb_put(&out, "%a ", options->symbol[i]);
  bb_machine_print(&out, options->machine);
  bb_key_put_program(&out, program);
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
