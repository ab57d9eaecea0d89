/* rule_test.c - golden pairs: for each rule programs where it fires, and near misses where it must not.
 *
 * usage: rule_test [--write] FILE.bb ...
 *
 * A file says in its comments which rule it is about and what must happen:
 *
 *   #! rule 4
 *   #! fires                                 the program becomes that of FILE.out
 *   #! misses 21 30: the scale changes ...   it stays, and that is why nodes 21 and 30 do not match
 *
 * Only that rule is enabled.  Both engines must do the same, the verifier must accept the result, and
 * the interpreter must give the same outputs before and after.  --write writes FILE.out.
 */
#include "../../fuse/fuse.h"
#include "../../graph/text.h"
#include "../../graph/verify.h"
#include "../../runtime/interp/interp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
  const char *path;
  bool write;
} job;

static char *read_file(bb_arena *arena, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) bb_fail(bb_arena_context(arena), BB_ERROR_IO, "%s cannot be read", path);
  char *text = bb_arena_alloc(arena, 1 << 16);
  size_t length = fread(text, 1, (1 << 16) - 1, file);
  fclose(file);
  text[length] = 0;
  return text;
}

/* The rest of the line after "#! word ", or NULL. */
static const char *directive(bb_arena *arena, const char *text, const char *word) {
  char *key = bb_arena_printf(arena, "#! %s", word);
  const char *at = strstr(text, key);
  if (!at) return NULL;
  at += strlen(key);
  while (*at == ' ') at++;
  return bb_arena_text(arena, at, strcspn(at, "\n"));
}

/* --- running --- */

static double element(uint32_t tensor, size_t i) {
  return sin((double)(i + 1) * (1.3 + 0.7 * tensor)) * 2;
}

static bb_interp_tensor *interpret(const bb_program *p, const bb_graph *root, bb_arena *arena) {
  bb_interp_tensor *tensor = BB_NEW(arena, bb_interp_tensor, p->tensors);
  int64_t *block = BB_NEW(arena, int64_t, p->dims);
  for (uint32_t d = 0; d < p->dims; d++) block[d] = 2;
  for (uint32_t t = 0; t < p->tensors; t++) {
    if (p->tensor[t].role == BB_TENSOR_OUTPUT) continue;
    tensor[t].count = 1;
    for (uint32_t a = 0; a < p->tensor[t].rank; a++)
      tensor[t].count *= (size_t)bb_extent_value(p->tensor[t].shape[a]);
    tensor[t].data = BB_NEW(arena, double, tensor[t].count);
    for (size_t i = 0; i < tensor[t].count; i++) tensor[t].data[i] = element(t, i);
  }
  bb_interp_options options = {.float64 = true, .block = block};
  bb_interp_graph(p, root, &options, tensor, arena, NULL);
  return tensor;
}

static void compare(const bb_program *p, const bb_interp_tensor *a, const bb_interp_tensor *b) {
  for (uint32_t t = 0; t < p->tensors; t++)
    for (size_t i = 0; p->tensor[t].role == BB_TENSOR_OUTPUT && i < a[t].count; i++)
      if (!(fabs(a[t].data[i] - b[t].data[i]) <= 1e-10 * (1 + fabs(a[t].data[i]))))
        bb_fail(p->ctx, BB_ERROR_MISMATCH, "output %s element %zu is %g, not %g", p->tensor[t].name,
                i, b[t].data[i], a[t].data[i]);
}

/* --- fusing --- */

typedef struct run {
  bb_program *program;
  uint32_t fired;
  const char *result; /* as text */
} run;

static void on_event(void *user, const bb_trace_event *event, const bb_graph *root) {
  (void)root;
  ((run *)user)->fired += !event->snapshot;
}

static run fuse(bb_context *ctx, bb_arena *arena, const char *path, const char *text, uint32_t rule,
                bool naive) {
  run r = {.program = bb_text_parse(ctx, path, text, strlen(text))};
  bb_program_defer(r.program);
  bb_program *p = r.program;
  bb_verify_or_fail(p, p->root, "parsing", true);
  bb_interp_tensor *before = interpret(p, p->root, arena);
  bb_fuse_options options = {.disabled = ~((uint64_t)1 << rule), .naive = naive};
  options.peel = rule == 7;
  options.trace = on_event;
  options.user = &r;
  bb_snapshot *snapshots;
  uint32_t count = bb_fuse(p, &p->root, &options, &snapshots);
  p->root = snapshots[count - 1].graph;
  bb_verify_or_fail(p, p->root, "fusing", true);
  compare(p, before, interpret(p, p->root, arena));
  bb_buffer out = {.arena = arena};
  bb_text_print(&out, p, NULL);
  r.result = out.data;
  return r;
}

/* --- the two kinds of cases --- */

static void check_fires(bb_context *ctx, bb_arena *arena, const job *j, const run *r) {
  if (!r->fired) bb_fail(ctx, BB_ERROR_MISMATCH, "the rule does not fire");
  char *path = bb_arena_text(arena, j->path, strlen(j->path) + 1);
  strcpy(strrchr(path, '.'), ".out");
  if (j->write) {
    FILE *file = fopen(path, "wb");
    if (!file || fputs(r->result, file) < 0 || fclose(file) != 0)
      bb_fail(ctx, BB_ERROR_IO, "%s cannot be written", path);
  } else if (strcmp(read_file(arena, path), r->result) != 0) {
    bb_fail(ctx, BB_ERROR_MISMATCH, "the result is not that of %s but\n%s", path, r->result);
  }
}

static void check_misses(bb_context *ctx, bb_arena *arena, const run *r, uint32_t rule,
                         const char *misses) {
  if (r->fired) bb_fail(ctx, BB_ERROR_MISMATCH, "the rule fires and must not:\n%s", r->result);
  char *rest;
  uint32_t a = (uint32_t)strtoul(misses, &rest, 10), b = (uint32_t)strtoul(rest, &rest, 10);
  bb_buffer why = {.arena = arena};
  bb_fuse_why(&why, r->program, r->program->root, a, b);
  const char *prefix = bb_arena_printf(arena, "rule %u, ", rule), *reason = rest + 2;
  for (const char *line = why.data; line && *line; line = strchr(line, '\n') + 1) {
    size_t length = strcspn(line, "\n"), tail = strlen(reason);
    if (strncmp(line, prefix, strlen(prefix)) == 0 && length > tail + 2 &&
        strncmp(line + length - tail - 2, ": ", 2) == 0 &&
        strncmp(line + length - tail, reason, tail) == 0)
      return;
  }
  bb_fail(ctx, BB_ERROR_MISMATCH, "the reason is not \"%s\":\n%s", reason, why.data);
}

static void check(bb_context *ctx, void *argument) {
  const job *j = argument;
  bb_arena *arena = bb_scratch(ctx);
  const char *text = read_file(arena, j->path), *number = directive(arena, text, "rule ");
  const char *misses = directive(arena, text, "misses ");
  if (!number || (!misses && !directive(arena, text, "fires")))
    bb_fail(ctx, BB_ERROR_ARGUMENT, "the file does not say what must happen");
  uint32_t rule = (uint32_t)strtoul(number, NULL, 10);
  run fast = fuse(ctx, arena, j->path, text, rule, false);
  run naive = fuse(ctx, arena, j->path, text, rule, true);
  if (fast.fired != naive.fired || strcmp(fast.result, naive.result) != 0)
    bb_fail(ctx, BB_ERROR_MISMATCH, "the engines differ");
  if (misses)
    check_misses(ctx, arena, &fast, rule, misses);
  else
    check_fires(ctx, arena, j, &fast);
}

int main(int argc, char **argv) {
  int failed = 0;
  bool write = argc > 1 && strcmp(argv[1], "--write") == 0;
  if (argc < 2 + write) {
    fprintf(stderr, "usage: rule_test [--write] FILE.bb ...\n");
    return 2;
  }
  for (int i = 1 + write; i < argc; i++) {
    bb_context *ctx;
    if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
    job j = {argv[i], write};
    if (bb_protect(ctx, check, &j) != BB_OK) {
      printf("%s: %s\n", argv[i], bb_context_message(ctx));
      failed++;
    }
    bb_context_destroy(ctx);
  }
  return failed != 0;
}
