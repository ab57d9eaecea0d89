/* scale.c - how the time of conversion and fusion grows with the length of a model.
 *
 * Stacks of n attention and feed-forward blocks go from ONNX bytes to chosen snapshots, each in a
 * process of its own.  Prints processor time, and the peak of memory, and fits time = c n^e by
 * least squares over the logarithms; fails when e exceeds 1.1 or when 1,000 blocks take 5 s or 2
 * GB.
 *
 * usage: scale [LARGEST]
 */
#include "../support/pipeline.h"
#include "../support/stack.h"

#include "../../graph/onnx/onnx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct measurement {
  uint32_t blocks, candidates;
  double seconds, megabytes;
} measurement;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void destroy(void *program) {
  bb_program_destroy(program);
}

typedef struct conversion {
  const bb_buffer *bytes;
  measurement *result;
} conversion;

static void convert(bb_context *ctx, void *argument) {
  conversion *c = argument;
  bb_program *program = bb_program_create(ctx, "stack");
  bb_defer(ctx, destroy, program);
  bb_onnx_read_bytes(program, c->bytes->data, c->bytes->length, NULL);
  pipeline(program);
  c->result->candidates = program->candidates;
}

/* The least of several runs: short ones are repeated. */
static void measure(bb_context *ctx, void *argument) {
  measurement *m = argument;
  bb_buffer bytes = stack_model(bb_scratch(ctx), m->blocks);
  conversion c = {&bytes, m};
  m->seconds = INFINITY;
  for (double spent = 0; spent < 0.3;) {
    double start = now();
    if (bb_protect(ctx, convert, &c) != BB_OK) {
      fprintf(stderr, "%u blocks: %s\n", m->blocks, bb_context_message(ctx));
      _exit(1);
    }
    double seconds = now() - start;
    spent += seconds;
    m->seconds = fmin(m->seconds, seconds);
  }
}

/* Measures in a child, so that the peak of memory is this stack's alone. */
static bool run(measurement *m) {
  int ends[2], status;
  if (pipe(ends) != 0) return false;
  pid_t child = fork();
  if (child == 0) {
    bb_context *ctx;
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

/* The slope of log(seconds) over log(blocks). */
static double exponent(const measurement *m, uint32_t count) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (uint32_t i = 0; i < count; i++) {
    double x = log(m[i].blocks), y = log(m[i].seconds);
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  return (count * sxy - sx * sy) / (count * sxx - sx * sx);
}

int main(int argc, char **argv) {
  static const uint32_t sizes[] = {1, 3, 10, 30, 100, 300, 1000};
  uint32_t largest = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000, count = 0;
  measurement m[sizeof sizes / sizeof *sizes] = {0};
  printf("%8s %12s %10s %12s\n", "blocks", "candidates", "seconds", "peak MB");
  for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= largest; i++, count++) {
    m[i].blocks = sizes[i];
    if (!run(&m[i])) return 1;
    printf("%8u %12u %10.4f %12.1f\n", m[i].blocks, m[i].candidates, m[i].seconds, m[i].megabytes);
    fflush(stdout);
  }
  if (count < 2) return 0;
  double all = exponent(m, count), tail = count > 4 ? exponent(m + 2, count - 2) : all;
  const measurement *last = &m[count - 1];
  printf("exponent %.3f over all, %.3f from 10 blocks on\n", all, tail);
  return all > 1.1 || tail > 1.1 || last->seconds >= 5 || last->megabytes >= 2048;
}
