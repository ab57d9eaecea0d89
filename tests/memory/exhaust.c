/* exhaust.c - fails the allocations of a conversion and fusion one after another.
 *
 * First the model goes from bytes to chosen snapshots with an allocator that counts; then, for
 * every n (for long runs: for every n of a stride, and the first and last hundred), again with the
 * n-th allocation failing, alone or with all after it.  Each such run must end with BB_ERROR_MEMORY
 * (or succeed, where the library can do without), and give back every byte with the size it was
 * asked with.
 *
 * usage: exhaust RUNS MODEL...   (.onnx or .bb; RUNS 0: every allocation)
 */
#include "../support/pipeline.h"

#include "../../graph/onnx/onnx.h"
#include "../../graph/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- an allocator that counts, checks sizes, and fails on demand --- */

typedef struct counter {
  uint64_t calls, fail_at; /* 0: never */
  bool fail_on;            /* and every call after */
  size_t live;
  uint64_t wrong_sizes;
} counter;

enum { HEADER = 16 };

static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  counter *c = user;
  char *base = pointer ? (char *)pointer - HEADER : NULL;
  if (base && *(size_t *)base != old_size) c->wrong_sizes++;
  if (!base && old_size != 0) c->wrong_sizes++;
  if (new_size == 0) {
    c->live -= base ? *(size_t *)base : 0;
    free(base);
    return NULL;
  }
  c->calls++;
  if (c->fail_at && (c->calls == c->fail_at || (c->fail_on && c->calls > c->fail_at))) return NULL;
  char *grown = realloc(base, new_size + HEADER);
  if (!grown) return NULL;
  *(size_t *)grown = new_size;
  c->live += new_size - (pointer ? old_size : 0);
  return grown + HEADER;
}

/* --- one run --- */

static void destroy(void *program) {
  bb_program_destroy(program);
}

static void read_text(bb_context *ctx, const char *path, bb_program **program) {
  bb_program *holder = bb_program_create(ctx, path);
  bb_defer(ctx, destroy, holder);
  uint64_t length;
  const void *text = bb_program_map_whole(holder, path, &length);
  *program = bb_text_parse(ctx, path, text, length);
  bb_defer(ctx, destroy, *program);
}

static void convert(bb_context *ctx, void *argument) {
  const char *path = argument;
  size_t length = strlen(path);
  bb_program *program;
  if (length > 3 && strcmp(path + length - 3, ".bb") == 0) {
    read_text(ctx, path, &program);
  } else {
    program = bb_program_create(ctx, path);
    bb_defer(ctx, destroy, program);
    bb_onnx_read(program, path);
  }
  pipeline(program);
}

static bb_status run(const char *path, counter *c) {
  bb_context_options options = {.version = BB_VERSION, .allocator = {resize, c}};
  bb_context *ctx = NULL;
  bb_status status = bb_context_create(&options, &ctx);
  if (status != BB_OK) return status;
  ctx->spare_most = 0;
  status = bb_protect(ctx, convert, (void *)path);
  if (status != BB_OK && status != BB_ERROR_MEMORY)
    printf("%s: allocation %llu: %s\n", path, (unsigned long long)c->fail_at,
           bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status;
}

/* --- all runs of a model --- */

static bool clean(const char *path, const counter *c, bb_status status) {
  bool good = (status == BB_OK || status == BB_ERROR_MEMORY) && c->live == 0 && c->wrong_sizes == 0;
  if (!good)
    printf("%s: allocation %llu%s failed: %s, %zu bytes leaked, %llu sizes wrong\n", path,
           (unsigned long long)c->fail_at, c->fail_on ? " and all after" : "",
           bb_status_text(status), c->live, (unsigned long long)c->wrong_sizes);
  return good;
}

static bool exhaust(const char *path, uint64_t runs) {
  counter whole = {0};
  bb_status status = run(path, &whole);
  if (status != BB_OK || !clean(path, &whole, status)) return false;
  uint64_t stride = runs == 0 || whole.calls <= runs ? 1 : whole.calls / runs + 1, failed = 0;
  uint64_t tried = 0, refused = 0;
  for (uint64_t n = 1; n <= whole.calls && failed < 5; n++) {
    if (n % stride != 0 && stride > 1 && n > 100 && n + 100 < whole.calls) continue;
    counter c = {.fail_at = n, .fail_on = n % 2};
    status = run(path, &c);
    failed += !clean(path, &c, status);
    refused += status == BB_ERROR_MEMORY;
    tried++;
  }
  printf("%s: %llu of %llu allocations failed in turn, %llu runs refused, %llu wrong\n", path,
         (unsigned long long)tried, (unsigned long long)whole.calls, (unsigned long long)refused,
         (unsigned long long)failed);
  return failed == 0 && refused > 0;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: exhaust RUNS MODEL...\n");
    return 2;
  }
  bool good = true;
  for (int i = 2; i < argc; i++) good &= exhaust(argv[i], strtoull(argv[1], NULL, 10));
  return good ? 0 : 1;
}
