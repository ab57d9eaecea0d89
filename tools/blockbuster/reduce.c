/* reduce.c - blockbuster reduce: a small program that still fails, from a large one.
 *
 * It fails if its kernels crash, break a law, or differ from the interpreter in float64 on inputs that are drawn;
 * or, with --command, if that command says so.  Values become the only output or an input, as long as
 * what is left fails: first the end is sought, then what stands before it is cut off.
 */
#include "reduce.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AXES = 16, GUESS = 7, SECONDS = 120 };

/* --- does it fail? --- */

/* In a child: 0 it does not, 1 it does. */
static bool draw_inputs(bb_context *context, const bb_model *model, bb_arrays *arrays) {
  bb_tensor_info info;
  bb_setting extent[AXES];
  bb_extent_info e;
  uint32_t extents = 0;
  for (uint32_t i = 0; extents < AXES && bb_model_get_extent(model, i, &e); i++)
    if (!e.follows) extent[extents++] = (bb_setting){e.name, GUESS + i};
  for (uint32_t i = 0; bb_model_get_tensor(model, BB_INPUT, i, &info); i++) {
    int64_t shape[AXES];
    if (bb_model_get_shape(context, model, BB_INPUT, i, extents, extent, shape) != BB_OK)
      return false;
    size_t count = 1, bytes = element_bytes(info.dtype);
    for (uint32_t a = 0; a < info.rank; a++) count *= (size_t)shape[a];
    void *data = draw_elements(info.dtype, count);
    bb_array_view view = {.name = info.name,
                          .type = numpy_type(info.dtype),
                          .rank = info.rank,
                          .shape = shape,
                          .bytes = count * bytes,
                          .data = data};
    bool good = data && bb_arrays_add(arrays, &view) == BB_OK;
    free(data);
    if (!good) return false;
  }
  return true;
}

static int try_it(const char *text) {
  bb_context *context;
  bb_program *program;
  bb_model *model;
  bb_arrays *inputs, *want;
  bb_result *exact, *got;
  bb_run_options interpret = {.version = BB_VERSION, .mode = BB_RUN_INTERPRET, .float64 = true};
  bb_compile_options options = {.version = BB_VERSION, .cache = ""};
  if (bb_context_create(NULL, &context) != BB_OK) return 0;
  bb_status status = bb_program_parse(context, "reduced.bb", text, strlen(text), &program);
  if (!status) status = bb_program_advance(program, BB_STAGE_FUSED, NULL);
  if (!status) status = bb_program_compile(program, &options, &model);
  if (!status) status = bb_arrays_create(context, &inputs);
  if (!status && !draw_inputs(context, model, inputs)) return 0;
  if (!status) status = bb_program_run(program, inputs, &interpret, &exact);
  if (!status) status = bb_result_get_arrays(exact, &want);
  if (!status) status = bb_model_run(context, model, inputs, NULL, &got);
  if (!status) status = bb_result_compare(got, want, -1, NULL, NULL);
  return status == BB_ERROR_MISMATCH || status == BB_ERROR_INTERNAL;
}

static void child(const char *command, const char *text) {
  alarm(SECONDS);
  if (!command) _exit(try_it(text));
  char path[] = "/tmp/blockbuster-reduce-XXXXXX";
  int file = mkstemp(path);
  size_t length = strlen(text);
  int code = 1;
  if (file >= 0 && write(file, text, length) == (ssize_t)length) {
    char *call;
    size_t size = strlen(command) + sizeof path + 16;
    if ((call = malloc(size)) && snprintf(call, size, "set -- %s; %s", path, command) > 0)
      code = system(call);
    unlink(path);
  }
  _exit(code == 0);
}

static bool fails(const settings *set, const lines *all) {
  size_t size = 1;
  for (uint32_t i = 0; i < all->count; i++) size += strlen(all->line[i].text) + 1;
  char *text = malloc(size), *at = text;
  if (!text) return false;
  for (uint32_t i = 0; i < all->count; i++)
    at += snprintf(at, size - (size_t)(at - text), "%s\n", all->line[i].text);
  int status = 0;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) child(set->run_command, text);
  free(text);
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return false;
  return WIFSIGNALED(status) ? WTERMSIG(status) != SIGALRM : WEXITSTATUS(status) == 1;
}

/* --- making it smaller --- */

typedef struct reduction {
  const settings *set;
  lines now;
  uint32_t tries;
} reduction;

typedef bool edit(lines *all, uint32_t index);

/* Keeps the edit if what is left of it is smaller, or simpler, and fails. */
static bool attempt(reduction *r, edit *change, uint32_t index) {
  lines changed;
  if (!lines_copy(&changed, &r->now)) return false;
  bool good = change(&changed, index);
  if (good) lines_prune(&changed);
  r->tries += good;
  good = good && fails(r->set, &changed);
  if (good) {
    lines_free(&r->now);
    r->now = changed;
  } else {
    lines_free(&changed);
  }
  return good;
}

static bool is_end(const reduction *r, uint32_t index) {
  uint32_t outputs = 0;
  bool here = false;
  for (uint32_t i = 0; i < r->now.count; i++) {
    if (r->now.line[i].kind != OUTPUT) continue;
    outputs++;
    here |= strcmp(r->now.line[i].name, r->now.line[index].name) == 0;
  }
  return here && outputs == 1;
}

/* The first value that fails as the only output: what depends on it mostly fails too, so that halving
 * finds it or one near it. */
static bool seek_end(reduction *r) {
  uint32_t low = 0, high = r->now.count;
  bool any = false;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const line *l = &r->now.line[middle];
    if (l->kind != STATEMENT || !l->name || is_end(r, middle)) {
      low = middle + 1;
      continue;
    }
    if (attempt(r, lines_end_at, middle)) {
      any = true;
      high = middle < r->now.count ? middle : r->now.count;
    } else {
      low = middle + 1;
    }
  }
  return any;
}

static bool cut_all(reduction *r, line_kind kind) {
  bool any = false;
  for (uint32_t i = r->now.count; i-- > 0;) {
    if (i >= r->now.count) i = r->now.count - 1;
    if (r->now.line[i].kind != kind || is_end(r, i)) continue;
    any |= attempt(r, lines_cut, i);
  }
  return any;
}

static bool end_anywhere(reduction *r) {
  for (uint32_t i = 0; i < r->now.count; i++)
    if (r->now.line[i].kind == STATEMENT && r->now.line[i].name && !is_end(r, i) &&
        attempt(r, lines_end_at, i))
      return true;
  return false;
}

static void reduce(reduction *r) {
  seek_end(r);
  do {
    while (cut_all(r, STATEMENT)) continue;
    cut_all(r, CONSTANT);
  } while (end_anywhere(r));
}

/* --- the subcommand --- */

typedef struct text {
  char *bytes;
  size_t length;
} text;

static bool keep_text(void *user, const char *bytes, size_t length) {
  text *t = user;
  char *grown = realloc(t->bytes, t->length + length + 1);
  if (!grown) return false;
  memcpy(grown + t->length, bytes, length);
  t->bytes = grown;
  t->length += length;
  grown[t->length] = 0;
  return true;
}

static int write_result(const reduction *r) {
  output out;
  if (!output_open(&out, r->set->output)) return EXIT_REFUSED;
  bool good = true;
  for (uint32_t i = 0; i < r->now.count; i++)
    good &= fprintf(out.file, "%s\n", r->now.line[i].text) > 0;
  return output_close(&out, good) ? EXIT_GOOD : EXIT_REFUSED;
}

int reduce_main(tool *t) {
  reduction r = {.set = t->set};
  text whole = {0};
  int code = report(t, bb_program_write_text(t->program, NULL, keep_text, &whole));
  if (code == EXIT_GOOD && bb_program_stage(t->program) != BB_STAGE_ARRAY) {
    fprintf(stderr, "blockbuster reduce: an array program is wanted, or a model\n");
    code = EXIT_REFUSED;
  }
  if (code == EXIT_GOOD && !lines_read(&r.now, whole.bytes)) code = EXIT_REFUSED;
  uint32_t before = lines_statements(&r.now);
  if (code == EXIT_GOOD && !fails(t->set, &r.now)) {
    fprintf(stderr, "blockbuster reduce: %s does not fail\n", t->set->model);
    code = EXIT_DIFFERENT;
  }
  if (code == EXIT_GOOD) {
    reduce(&r);
    code = write_result(&r);
    fprintf(stderr, "blockbuster: %u of %u statements left, after %u tries\n",
            lines_statements(&r.now), before, r.tries);
  }
  lines_free(&r.now);
  free(whole.bytes);
  return code;
}
