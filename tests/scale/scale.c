/* scale.c - how the cost of conversion and fusion grows with the length of a model.
 *
 * Stacks of n attention and feed-forward blocks go from ONNX bytes to chosen snapshots.  Each
 * quantity y is fitted as y = c n^e by least squares over the logarithms.
 *
 * As a test, what is fitted is work that is the same on every machine and at every run: rules
 * tried and applied, nodes made, bytes asked of the allocator and the most of them held at a time.
 * From 10 blocks on, when the kinds of blocks have come round (the first has a single head), linear
 * work has e = 1; the bound leaves room for arrays that double, and for no logarithm.
 * As a benchmark it is processor time, each stack in a process of its own so that the peak of
 * memory is its own; e over all sizes must not exceed 1.1, nor the first conversion of 1,000 blocks
 * take 5 s or 2 GB.  Caches bend the curve where the program no longer fits them, which the fit from 10
 * blocks on shows.
 *
 * usage: scale [LARGEST]         times
 *        scale --count LARGEST   counts
 */
#include "../support/pipeline.h"
#include "../support/stack.h"

#include "../../graph/onnx/onnx.h"

#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const uint32_t sizes[] = {1, 3, 10, 30, 100, 300, 1000};
enum { SIZES = sizeof sizes / sizeof *sizes, FIRST_COUNTED = 2 };

/* --- one conversion --- */

typedef struct conversion {
  const bb_buffer *bytes;
  uint64_t tries[BB_RULE_NUMBERS], hits[BB_RULE_NUMBERS];
  uint32_t candidates, nodes;
} conversion;

static void convert(bb_context *ctx, void *argument) {
  conversion *c = argument;
  bb_program *program = bb_program_create(ctx, "stack");
  bb_program_defer(program);
  bb_onnx_read_bytes(program, c->bytes->data, c->bytes->length, NULL);
  pipeline_lower(program);
  bb_array_drop(program);
  bb_partition(program, 0, NULL);
  bb_fuse_options fuse = {.tries = c->tries, .hits = c->hits};
  bb_choose(program, &(bb_choose_options){.fuse = &fuse});
  c->candidates = program->candidates;
  c->nodes = program->serial;
}

static void convert_or_exit(bb_context *ctx, conversion *c, uint32_t blocks) {
  if (bb_protect(ctx, convert, c) == BB_OK) return;
  fprintf(stderr, "%u blocks: %s\n", blocks, bb_context_message(ctx));
  _exit(1);
}

/* The slope of log(y) over log(blocks); the values of y stand `stride` apart. */
static double exponent(const uint32_t *blocks, const double *y, uint32_t stride, uint32_t count) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (uint32_t i = 0; i < count; i++) {
    double lx = log(blocks[i]), ly = log(y[i * stride]);
    sx += lx;
    sy += ly;
    sxx += lx * lx;
    sxy += lx * ly;
  }
  return (count * sxy - sx * sy) / (count * sxx - sx * sx);
}

/* --- counted work --- */

typedef enum quantity { TRIES, REWRITES, NODES, BYTES, PEAK, QUANTITIES } quantity;

static const struct {
  const char *name;
  double most; /* exponent */
} quantities[QUANTITIES] = {
    [TRIES] = {"rule tries", 1.02}, [REWRITES] = {"rewrites", 1.02}, [NODES] = {"nodes", 1.02},
    [BYTES] = {"bytes", 1.02},      [PEAK] = {"peak bytes", 1.02},
};

typedef struct ledger {
  size_t asked, live, peak;
} ledger;

static void *counted_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  ledger *l = user;
  l->live += new_size - old_size;
  l->asked += new_size;
  if (l->live > l->peak) l->peak = l->live;
  if (new_size) return realloc(pointer, new_size);
  free(pointer);
  return NULL;
}

/* The counts of one stack, in a context whose allocator keeps the ledger. */
static void count(bb_context *ctx, uint32_t blocks, double *y) {
  bb_buffer bytes = stack_model(bb_scratch(ctx), blocks);
  conversion c = {.bytes = &bytes};
  ledger l = {0};
  bb_context_options options = {.version = BB_VERSION, .allocator = {counted_resize, &l}};
  bb_context *counted;
  if (bb_context_create(&options, &counted) != BB_OK) _exit(1);
  counted->spare_most = 0; /* chunks that go round are not asked for */
  convert_or_exit(counted, &c, blocks);
  bb_context_destroy(counted);
  memset(y, 0, QUANTITIES * sizeof *y);
  for (uint32_t r = 0; r < BB_RULE_NUMBERS; r++) {
    y[TRIES] += (double)c.tries[r];
    y[REWRITES] += (double)c.hits[r];
  }
  y[NODES] = c.nodes;
  y[BYTES] = (double)l.asked;
  y[PEAK] = (double)l.peak;
}

/* Gives the exit status. */
static int test_counts(bb_context *ctx, uint32_t largest) {
  double y[SIZES][QUANTITIES];
  uint32_t n = FIRST_COUNTED;
  int status = 0;
  printf("%8s", "blocks");
  for (quantity q = 0; q < QUANTITIES; q++) printf(" %12s", quantities[q].name);
  for (; n < SIZES && sizes[n] <= largest; n++) {
    count(ctx, sizes[n], y[n]);
    printf("\n%8u", sizes[n]);
    for (quantity q = 0; q < QUANTITIES; q++) printf(" %12.0f", y[n][q]);
    fflush(stdout);
  }
  printf("\n%8s", "exponent");
  for (quantity q = 0; q < QUANTITIES; q++) {
    double e = exponent(sizes + FIRST_COUNTED, &y[FIRST_COUNTED][q], QUANTITIES, n - FIRST_COUNTED);
    printf(" %11.3f%s", e, e > quantities[q].most ? "!" : " ");
    if (!(e <= quantities[q].most)) status = 1;
  }
  printf("\n");
  return status;
}

/* --- time --- */

/* Rounds go over all sizes, so that a slow minute of the machine is nobody's own. */
enum { ROUNDS = 3, LEAST_CONVERSIONS = 2 };

typedef struct measurement {
  uint32_t blocks, candidates;
  double first, least; /* seconds */
  double megabytes;
} measurement;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The model's bytes without what they were built in. */
static bb_buffer model_bytes(bb_context *ctx, uint32_t blocks) {
  bb_arena *scratch = bb_arena_create(ctx);
  bb_buffer bytes = stack_model(scratch, blocks), kept = {.arena = bb_scratch(ctx)};
  bb_put_bytes(&kept, bytes.data, bytes.length);
  bb_arena_destroy(scratch);
  return kept;
}

/* Several conversions, short ones many times.  The first one's memory is the system's to give, page by
 * page, and its code is read from the file; from then on the process keeps what it has, whatever its
 * size, and the least time is that of the conversion itself. */
static void measure(bb_context *ctx, void *argument) {
  measurement *m = argument;
  bb_buffer bytes = model_bytes(ctx, m->blocks);
  double spent = 0;
  m->least = INFINITY;
  for (uint32_t i = 0; i < LEAST_CONVERSIONS || spent < 0.1; i++) {
    conversion c = {.bytes = &bytes};
    double start = now();
    convert_or_exit(ctx, &c, m->blocks);
    double seconds = now() - start;
    spent += seconds;
    if (i == 0) m->first = seconds;
    m->least = fmin(m->least, seconds);
    m->candidates = c.candidates;
  }
}

/* Measures in a child, so that the peak of memory is this stack's alone. */
static bool run(measurement *m) {
  int ends[2], status;
  if (pipe(ends) != 0) return false;
  pid_t child = fork();
  if (child == 0) {
    bb_context *ctx;
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_THRESHOLD, INT_MAX);
    if (bb_context_create(NULL, &ctx) != BB_OK || bb_protect(ctx, measure, m) != BB_OK) _exit(1);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    m->megabytes = (double)usage.ru_maxrss / 1024;
    _exit(write(ends[1], m, sizeof *m) != (ssize_t)sizeof *m);
  }
  close(ends[1]);
  bool good = child > 0 && read(ends[0], m, sizeof *m) == (ssize_t)sizeof *m;
  close(ends[0]);
  return waitpid(child, &status, 0) == child && good && status == 0;
}

/* The least of the rounds. */
static bool run_rounds(measurement *m, uint32_t n) {
  for (int round = 0; round < ROUNDS; round++)
    for (uint32_t i = 0; i < n; i++) {
      measurement again = {.blocks = sizes[i]};
      if (!run(&again)) return false;
      if (round == 0) m[i] = again;
      m[i].first = fmin(m[i].first, again.first);
      m[i].least = fmin(m[i].least, again.least);
      m[i].megabytes = fmax(m[i].megabytes, again.megabytes);
    }
  return true;
}

/* Gives the exit status. */
static int measure_times(uint32_t largest) {
  measurement m[SIZES];
  double first[SIZES], least[SIZES];
  uint32_t n = 0;
  while (n < SIZES && sizes[n] <= largest) n++;
  if (!run_rounds(m, n)) return 1;
  printf("%8s %12s %10s %10s %12s\n", "blocks", "kernels", "seconds", "first", "peak MB");
  for (uint32_t i = 0; i < n; i++) {
    first[i] = m[i].first;
    least[i] = m[i].least;
    printf("%8u %12u %10.4f %10.4f %12.1f\n", sizes[i], m[i].candidates, least[i], first[i],
           m[i].megabytes);
  }
  if (n <= FIRST_COUNTED + 1) return 0;
  uint32_t tail = FIRST_COUNTED;
  double all = exponent(sizes, least, 1, n);
  double long_ones = exponent(sizes + tail, least + tail, 1, n - tail);
  printf("exponent %.3f over all, %.3f from 10 blocks on; of first conversions %.3f and %.3f\n",
         all, long_ones, exponent(sizes, first, 1, n),
         exponent(sizes + tail, first + tail, 1, n - tail));
  return all > 1.1 || first[n - 1] >= 5 || m[n - 1].megabytes >= 2048;
}

static void test(bb_context *ctx, void *argument) {
  int *setting = argument;
  *setting = test_counts(ctx, (uint32_t)*setting);
}

int main(int argc, char **argv) {
  bool counts = argc > 2 && strcmp(argv[1], "--count") == 0;
  int last = argc > 1 ? atoi(argv[argc - 1]) : 1000;
  if (!counts) return measure_times((uint32_t)last);
  bb_context *ctx;
  if (bb_context_create(NULL, &ctx) != BB_OK || bb_protect(ctx, test, &last) != BB_OK) return 1;
  bb_context_destroy(ctx);
  return last;
}
