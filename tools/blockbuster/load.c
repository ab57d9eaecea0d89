/* load.c - reading the model and taking it to a stage, with dumps of phases and progress.
 */
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { USUAL_PROGRAMS = 4 };

static void clear_progress(tool *t) {
  if (t->progress) fprintf(stderr, "\r\033[K");
  t->progress = false;
}

int report(tool *t, bb_status status) {
  clear_progress(t);
  if (status == BB_OK) return EXIT_GOOD;
  const char *message = bb_context_message(t->context);
  const char *whose = status == BB_ERROR_INTERNAL ? "internal error: " : ""; /* not the model's */
  if (*message) fprintf(stderr, "blockbuster: %s%s\n", whose, message);
  switch (status) {
  case BB_ERROR_MISMATCH: return EXIT_DIFFERENT;
  case BB_ERROR_ARGUMENT: return EXIT_WRONG_CALL;
  default: return EXIT_REFUSED;
  }
}

double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int load(tool *t) {
  const settings *set = t->set;
  struct stat status;
  double began = seconds_now();
  int code;
  if (stat(set->model, &status) != 0 || !S_ISDIR(status.st_mode)) {
    code = report(t, bb_program_read(t->context, set->model, &t->program));
  } else if (set->command == RUN || set->command == BENCH) {
    code = report(t, bb_model_load_on(t->context, set->model, set->device, &t->model));
  } else {
    fprintf(stderr, "blockbuster: %s is a folder: run and bench take a compiled one\n", set->model);
    code = EXIT_REFUSED;
  }
  t->seconds = seconds_now() - began;
  return code;
}

static bool is_named(const char *option, const char *name) {
  return option && strcmp(option, name) == 0;
}

bool is_gpu(const char *device) {
  size_t length = device ? strcspn(device, ":") : 0;
  return (length == 4 && strncmp(device, "cuda", 4) == 0) ||
         (length == 3 && strncmp(device, "hip", 3) == 0);
}

/* Does the call end in kernels?  Rewrites are numbered as those by counts are. */
static bool wants_fast_kernels(const tool *t) {
  const settings *set = t->set;
  if (set->stop_after || bb_program_stage(t->program) == BB_STAGE_FUSED) return false;
  if (set->command == BENCH || set->command == COMPILE) return true;
  return set->command == RUN && !set->interpret && (set->kernels || !set->float64);
}

const char *priced_machine(const settings *set) {
  return is_named(set->machine, "counts") ? NULL : set->machine;
}

/* Whose prices choose kernels: NULL, nobody's. */
static const char *machine_of(const tool *t, const char *machine) {
  if (is_named(machine, "counts")) return NULL;
  if (machine || !wants_fast_kernels(t)) return machine;
  if (t->set->target && !is_named(t->set->target, "cpu")) return t->set->target;
  return is_gpu(t->set->device) ? t->set->device : "";
}

/* A folder is for whatever extents come; where ranges are told, it is about them.  Kernels for GPUs are cut by extents at each
 * launch, and take long to compile: more than one program is for those who ask. */
static uint32_t programs_wanted(const settings *set) {
  bool cpu = (!set->target || is_named(set->target, "cpu")) && !is_gpu(set->device);
  if (set->programs) return set->programs;
  return set->ranges || (set->command == COMPILE && cpu) ? USUAL_PROGRAMS : 1;
}

bb_advance_options advance_options(const settings *set) {
  return (bb_advance_options){.version = BB_VERSION,
                              .cuts = set->cuts,
                              .cut = set->cut,
                              .no_extend = set->no_extend,
                              .peel = set->peel,
                              .naive = set->naive,
                              .strict = set->strict,
                              .stop_after = set->stop_after,
                              .disabled_rules = set->disabled,
                              .fold = set->fold,
                              .chunks = set->chunks,
                              .machine = set->machine,
                              .dims = set->dims,
                              .dim = set->dim,
                              .programs = programs_wanted(set),
                              .ranges = set->ranges,
                              .range = set->range};
}

/* One call of advance(): who else observes it. */
typedef struct journey {
  tool *t;
  const bb_advance_options *more;
  uint32_t phases;
  time_t shown; /* when progress was shown last */
  bool dump_failed;
} journey;

/* DIR/2-partition.bb: the number is the place on the road, so that a resumed program dumps under
 * the same names. */
static bool dump(const char *folder, const char *phase, const bb_program *program) {
  static const char *const road[] = {"read", "simplify", "convert", "partition", "choose"};
  char path[4096];
  uint32_t place = 0;
  while (place < 4 && strcmp(road[place], phase) != 0) place++;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    fprintf(stderr, "blockbuster: %s: %s\n", folder, strerror(errno));
    return false;
  }
  int length = snprintf(path, sizeof path, "%s/%u-%s.bb", folder, place, phase);
  return length > 0 && (size_t)length < sizeof path && write_program(program, path) == BB_OK;
}

static void on_phase(void *user, const char *phase, const bb_program *program) {
  journey *j = user;
  if (j->t->set->dump && !j->dump_failed) j->dump_failed = !dump(j->t->set->dump, phase, program);
  if (j->more && j->more->phase) j->more->phase(j->more->user, phase, program);
}

static void on_begin(void *user, const char *candidate, const char *same) {
  journey *j = user;
  time_t now = time(NULL);
  if (!j->t->set->quiet && now != j->shown && isatty(STDERR_FILENO)) {
    fprintf(stderr, "\r\033[Kfusing %s", candidate);
    fflush(stderr);
    j->t->progress = true;
  }
  j->shown = now;
  if (j->more && j->more->begin) j->more->begin(j->more->user, candidate, same);
}

static void on_rewrite(void *user, const bb_rewrite *rewrite) {
  journey *j = user;
  if (j->more && j->more->rewrite) j->more->rewrite(j->more->user, rewrite);
}

int advance(tool *t, bb_stage stage, const bb_advance_options *more) {
  journey j = {.t = t, .more = more, .shown = time(NULL)};
  bb_advance_options options = more ? *more : advance_options(t->set);
  if (t->set->dump && bb_program_stage(t->program) == BB_STAGE_ARRAY &&
      !dump(t->set->dump, "read", t->program))
    return report(t, BB_ERROR_IO);
  options.machine = machine_of(t, options.machine);
  if (t->extents) {
    options.dims = t->extents;
    options.dim = t->extent;
  }
  options.phase = on_phase;
  options.begin = on_begin;
  options.rewrite = on_rewrite;
  options.user = &j;
  int code = report(t, bb_program_advance(t->program, stage, &options));
  if (code == EXIT_GOOD && j.dump_failed) {
    fprintf(stderr, "blockbuster: phases could not be written to %s\n", t->set->dump);
    code = EXIT_REFUSED;
  }
  return code;
}

/* --- extents that inputs bring --- */

/* Of 17 and more the next power of two: what was found cheapest for a length is found again for the next. */
static int64_t rounded(int64_t value) {
  int64_t power = 32;
  if (value <= 16) return value > 0 ? value : 1;
  while (power < value && power < (int64_t)1 << 40) power *= 2;
  return power;
}

/* What the command line says stands. */
static void add_extent(void *user, const bb_setting *extent) {
  tool *t = user;
  for (uint32_t i = 0; i < t->extents; i++)
    if (strcmp(t->extent[i].name, extent->name) == 0) return;
  if (t->extents < MOST_SETTINGS)
    t->extent[t->extents++] = (bb_setting){extent->name, rounded(extent->value)};
}

/* Kernels are from now on chosen for the extents that these inputs have. */
int expect_inputs(tool *t, const bb_arrays *inputs) {
  if (!wants_fast_kernels(t) || is_named(t->set->machine, "counts")) return EXIT_GOOD;
  int code = advance(t, BB_STAGE_PARTITION, NULL);
  if (code != EXIT_GOOD) return code;
  t->extents = t->set->dims;
  memcpy(t->extent, t->set->dim, sizeof t->extent);
  return report(t, bb_program_visit_extents(t->program, inputs, add_extent, t));
}

bool find_candidate(tool *t, uint32_t *index) {
  bb_candidate_info info;
  const char *wanted = t->set->candidate;
  char *end = NULL;
  unsigned long number = wanted ? strtoul(wanted, &end, 10) : 0;
  bool is_number = wanted && end && *wanted && !*end;
  for (uint32_t i = 0; bb_program_get_candidate(t->program, i, &info); i++) {
    bool hit = wanted ? strcmp(info.name, wanted) == 0 || (is_number && number == i) : !info.once;
    if (!hit) continue;
    *index = i;
    return true;
  }
  if (wanted) {
    fprintf(stderr, "blockbuster: there is no candidate %s; blockbuster info lists them\n", wanted);
    return false;
  }
  *index = 0;
  return true;
}
