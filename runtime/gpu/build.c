/* build.c - a model's code for a GPU from its source: images of all kernels, one after the other, and the text. */
#include "make.h"

#include <string.h>

static const char **sources_of(const bb_gpu_made *made, bb_arena *arena) {
  const bb_gpu_kernels *k = made->kernels;
  const char **source = BB_NEW(arena, const char *, k->images + 1);
  for (uint32_t i = 0; i < made->owns; i++) source[i] = made->own[i];
  source[k->moves] = made->moves;
  if (k->plain != BB_NONE) source[k->plain] = made->plain;
  return source;
}

static void close_compiler(void *compiler) {
  bb_gpu_library_close(((bb_gpu_compiler *)compiler)->library);
}

bb_gpu_code *bb_gpu_build(bb_context *ctx, const bb_gpu_target *target, bb_gpu_made *made,
                          const bb_plan *plan, const char *cache, bb_arena *arena) {
  static const char zeros[BB_GPU_IMAGE_LINE];
  bb_gpu_kernels *k = made->kernels;
  bb_gpu_compiler *compiler = BB_NEW(arena, bb_gpu_compiler, 1);
  uint64_t *offset = BB_NEW(arena, uint64_t, k->images + 1);
  uint64_t *size = BB_NEW(arena, uint64_t, k->images + 1);
  bb_gpu_code *code = BB_NEW(arena, bb_gpu_code, 1);
  bb_buffer images = {.arena = arena}, text = {.arena = arena};
  compiler->toolchain = bb_gpu_toolchain_of(target->api);
  compiler->cache = cache;
  bb_defer(ctx, close_compiler, compiler);
  const bb_gpu_image *image =
      bb_gpu_compile_all(ctx, compiler, target->name, k->images, sources_of(made, arena), arena);
  for (uint32_t i = 0; i < k->images; i++) {
    offset[i] = images.length;
    size[i] = image[i].size;
    bb_put_bytes(&images, image[i].data, image[i].size);
    bb_put_bytes(&images, zeros, (size_t)(-images.length % BB_GPU_IMAGE_LINE));
  }
  k->offset = offset;
  k->size = size;
  bb_gpu_code_write(&text, k, plan);
  *code =
      (bb_gpu_code){text.data, text.length, images.data, images.length, compiler->library != NULL};
  bb_undefer(ctx, compiler);
  close_compiler(compiler);
  return code;
}
