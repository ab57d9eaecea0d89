/* exhaust.c - fails the allocations of a conversion and fusion one after another.
 *
 * The model goes from bytes to chosen snapshots once.  At every allocation the process forks, and in
 * the child this one fails, alone or with all after it.  Each child must end with BB_ERROR_MEMORY (or
 * succeed, where the library can do without), and give back every byte with the size it was asked with.
 * A few children run beside one another.
 *
 * usage: exhaust [--machine NAME] MODEL...   (.onnx or .bb)
 *   --machine: kernels are chosen by price, extents that a run tells count as 64
 */
#include "../support/pipeline.h"

#include "../../graph/onnx/onnx.h"
#include "../../graph/text.h"
#include "../../runtime/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- an allocator that counts, checks sizes, and fails on demand --- */

enum { HEADER = 16, MOST = 5, BESIDE = 4, REFUSED = 0, DID_WITHOUT = 3, WRONG = 1 };

typedef struct counter {
  uint64_t calls, fail_at; /* 0: none, as in the parent */
  bool fail_on;            /* and every call after */
  size_t live;
  uint64_t wrong_sizes;
  uint64_t refused, wrong; /* children */
  uint32_t running;
  pid_t child[BESIDE];
  uint64_t failing[BESIDE]; /* its allocation */
} counter;

/* A child that has ended. */
static void judge(counter *c) {
  int status = 0;
  pid_t child = waitpid(-1, &status, 0);
  uint32_t i = 0;
  while (i + 1 < c->running && c->child[i] != child) i++;
  bool ended = child > 0 && WIFEXITED(status);
  if (!ended) printf("allocation %llu: the run dies\n", (unsigned long long)c->failing[i]);
  c->refused += ended && WEXITSTATUS(status) == REFUSED;
  c->wrong += !ended || (WEXITSTATUS(status) != REFUSED && WEXITSTATUS(status) != DID_WITHOUT);
  c->child[i] = c->child[--c->running];
  c->failing[i] = c->failing[c->running];
}

/* In the child, the allocation that is to fail is this one. */
static void try_without(counter *c) {
  if (c->running == BESIDE) judge(c);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    c->fail_at = c->calls;
    c->fail_on = c->calls % 2;
    return;
  }
  if (child < 0) {
    printf("allocation %llu: no process for it\n", (unsigned long long)c->calls);
    c->wrong++;
    return;
  }
  c->child[c->running] = child;
  c->failing[c->running++] = c->calls;
}

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
  if (!c->fail_at && c->wrong < MOST) try_without(c);
  if (c->calls == c->fail_at || (c->fail_on && c->calls > c->fail_at)) return NULL;
  char *grown = realloc(base, new_size + HEADER);
  if (!grown) return NULL;
  *(size_t *)grown = new_size;
  c->live += new_size - (pointer ? old_size : 0);
  return grown + HEADER;
}

/* --- one run --- */

static const char *machine; /* NULL: kernels by counts */

static void choose_by_price(bb_program *program) {
  double *symbol = BB_NEW(program->arena, double, program->symbols + 1);
  for (uint32_t s = 0; s < program->symbols; s++) symbol[s] = 64;
  bb_selection_options select = {.machine = bb_machine_find(program->arena, machine),
                                 .symbol = symbol};
  bb_drive(program, BB_STAGE_FUSED, &(bb_drive_options){.select = &select});
}

static void read_text(bb_context *ctx, const char *path, bb_program **program) {
  bb_program *holder = bb_program_create(ctx, path);
  bb_program_defer(holder);
  uint64_t length;
  const void *text = bb_program_map_whole(holder, path, &length);
  *program = bb_text_parse(ctx, path, text, length);
  bb_program_defer(*program);
}

static void convert(bb_context *ctx, void *argument) {
  const char *path = argument;
  size_t length = strlen(path);
  bb_program *program;
  if (length > 3 && strcmp(path + length - 3, ".bb") == 0) {
    read_text(ctx, path, &program);
  } else {
    program = bb_program_create(ctx, path);
    bb_program_defer(program);
    bb_onnx_read(program, path);
  }
  if (machine)
    choose_by_price(program);
  else
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

static bool exhaust(const char *path) {
  counter c = {0};
  bb_status status = run(path, &c);
  bool good = clean(path, &c, status);
  if (c.fail_at) { /* a child */
    fflush(stdout);
    _exit(!good ? WRONG : status == BB_OK ? DID_WITHOUT : REFUSED);
  }
  while (c.running > 0) judge(&c);
  printf("%s: %llu allocations failed in turn, %llu runs refused, %llu wrong\n", path,
         (unsigned long long)c.calls, (unsigned long long)c.refused, (unsigned long long)c.wrong);
  return good && status == BB_OK && c.wrong == 0 && c.refused > 0;
}

int main(int argc, char **argv) {
  int first = argc > 2 && strcmp(argv[1], "--machine") == 0 ? 3 : 1;
  if (argc <= first) {
    fprintf(stderr, "usage: exhaust [--machine NAME] MODEL...\n");
    return 2;
  }
  if (first > 1) machine = argv[2];
  bool good = true;
  for (int i = first; i < argc; i++) good &= exhaust(argv[i]);
  return good ? 0 : 1;
}
