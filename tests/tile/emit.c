/* emit.c - writes what a tile program becomes on a target: emit FILE.tile [SOURCE.cu LAUNCH.json]; without
 * files, the source goes to standard output. */
#include "lower/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
  const char *path, *text;
  const char *source, *launch;
} job;

static void write_file(const char *path, const char *data, size_t length) {
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(data, 1, length, f) != length || fclose(f) != 0) {
    fprintf(stderr, "emit: cannot write %s\n", path);
    exit(2);
  }
}

static void emit(bb_context *ctx, void *argument) {
  const job *j = argument;
  bb_buffer source = {.arena = bb_scratch(ctx)}, launch = {.arena = source.arena};
  bb_tile_program *p = bb_tile_parse(ctx, j->path, j->text, strlen(j->text));
  bb_emit_sm90(p, &source, &launch, NULL);
  if (j->source) {
    write_file(j->source, source.data, source.length);
    write_file(j->launch, launch.data, launch.length);
  } else {
    fwrite(source.data, 1, source.length, stdout);
  }
  bb_program_destroy(p->home);
}

int main(int argc, char **argv) {
  static char text[1 << 20];
  FILE *f = argc == 2 || argc == 4 ? fopen(argv[1], "rb") : NULL;
  if (!f) {
    fprintf(stderr, "usage: emit FILE.tile [SOURCE.cu LAUNCH.json]\n");
    return 2;
  }
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  bb_context *ctx;
  job j = {argv[1], text, argc == 4 ? argv[2] : NULL, argc == 4 ? argv[3] : NULL};
  if (bb_context_create(NULL, &ctx) != BB_OK) return 2;
  bb_status status = bb_protect(ctx, emit, &j);
  if (status != BB_OK) fprintf(stderr, "emit: %s\n", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status == BB_OK ? 0 : 3;
}
