/* run.c - blockbuster run: a model on arrays, and a comparison of what comes out.
 */
#include "bench.h"

#include <string.h>

static int check_call(const tool *t) {
  const settings *set = t->set;
  bool gpu = is_gpu(set->device);
  if (set->device && !gpu && strcmp(set->device, "cpu") != 0) {
    fprintf(stderr, "blockbuster: there is no device %s: only cpu, cuda and hip\n", set->device);
    return EXIT_WRONG_CALL;
  }
  if (gpu && (set->unfused || set->interpret || set->float64)) {
    fprintf(
        stderr,
        "blockbuster: a GPU runs kernels, of a model that is fused, in the model's precision\n");
    return EXIT_WRONG_CALL;
  }
  if (set->kernels && (set->unfused || set->interpret)) {
    fprintf(stderr, "blockbuster: %s has no kernels\n",
            set->interpret ? "--interpret" : "--unfused");
    return EXIT_WRONG_CALL;
  }
  if (t->model && (set->interpret || set->unfused || set->float64)) {
    fprintf(stderr, "blockbuster: %s is compiled: it runs by its kernels\n", set->model);
    return EXIT_WRONG_CALL;
  }
  return EXIT_GOOD;
}

static int read_arrays(tool *t, const char *path, bb_arrays **arrays) {
  return report(t, path ? bb_arrays_read(t->context, path, arrays)
                        : bb_arrays_create(t->context, arrays));
}

static void print_counts(bool kernels, const bb_run_counts *counts) {
  if (kernels) {
    printf("%u nodes in %u kernels (%u different), %u run as misc, %u interpreted\n", counts->fused,
           counts->kernels, counts->sources, counts->misc, counts->interpreted);
    return;
  }
  printf("%.6g operations, %.6g bytes read and %.6g written over buffered edges\n",
         counts->operations, counts->buffered_read, counts->buffered_written);
}

static int print_shapes(tool *t, const bb_result *result) {
  bb_arrays *arrays;
  bb_array_view view;
  int code = report(t, bb_result_get_arrays(result, &arrays));
  if (code != EXIT_GOOD) return code;
  for (uint32_t i = 0; bb_arrays_get(arrays, i, &view); i++) {
    printf("%s: %s [", view.name, view.type);
    for (uint32_t a = 0; a < view.rank; a++)
      printf("%s%lld", a ? ", " : "", (long long)view.shape[a]);
    printf("]\n");
  }
  bb_arrays_destroy(arrays);
  return EXIT_GOOD;
}

static int write_outputs(tool *t, const bb_result *result) {
  bb_arrays *arrays;
  int code = report(t, bb_result_get_arrays(result, &arrays));
  if (code != EXIT_GOOD) return code;
  code = report(t, bb_arrays_write(arrays, t->set->output));
  bb_arrays_destroy(arrays);
  return code;
}

static void print_json(const tool *t, bool good, const bb_result *result,
                       const bb_run_counts *counts) {
  printf("{\"good\": %s, ", good ? "true" : "false");
  if (t->model)
    printf("\"program\": %u, \"programs\": %u, ", bb_result_get_variant(result),
           programs_of(t->model));
  if (bb_result_by_kernels(result))
    printf("\"nodes\": {\"fused\": %u, \"misc\": %u, \"interpreted\": %u, \"kernels\": %u, "
           "\"different\": %u}}\n",
           counts->fused, counts->misc, counts->interpreted, counts->kernels, counts->sources);
  else
    printf("\"operations\": %.17g, \"buffered_read\": %.17g, \"buffered_written\": %.17g}\n",
           counts->operations, counts->buffered_read, counts->buffered_written);
}

/* What is to be done with a finished run. */
static int judge(tool *t, const bb_result *result, const bb_arrays *expect) {
  bb_run_counts counts;
  int code = EXIT_GOOD;
  bb_result_get_counts(result, &counts);
  if (t->set->output) code = write_outputs(t, result);
  if (code != EXIT_GOOD) return code;
  if (expect)
    code = report(t, bb_result_compare(result, expect, t->set->tolerance,
                                       t->set->json ? NULL : write_to_file, stdout));
  else if (!t->set->output && !t->set->json)
    code = print_shapes(t, result);
  if (t->set->json) print_json(t, code == EXIT_GOOD, result, &counts);
  if (t->set->counts && !t->set->json) print_counts(bb_result_by_kernels(result), &counts);
  if (t->model && !t->set->json && programs_of(t->model) > 1)
    print_program(t->model, bb_result_get_variant(result));
  return code;
}

static bool has_inputs(const tool *t) {
  bb_program_info info;
  if (!t->program) return false;
  bb_program_get_info(t->program, &info);
  return info.inputs > 0;
}

static int run(tool *t, const bb_arrays *inputs, const bb_arrays *expect) {
  const settings *set = t->set;
  bb_run_options options = {.version = BB_VERSION,
                            .float64 = set->float64,
                            .blocks = set->blocks,
                            .block = set->block,
                            .symbols = set->symbols,
                            .symbol = set->symbol,
                            .mode = set->kernels     ? BB_RUN_KERNELS
                                    : set->interpret ? BB_RUN_INTERPRET
                                                     : BB_RUN_BEST,
                            .threads = set->threads,
                            .device = set->device};
  bb_result *result;
  int code = report(t, t->model ? bb_model_run(t->context, t->model, inputs, &options, &result)
                                : bb_program_run(t->program, inputs, &options, &result));
  if (code == EXIT_REFUSED && !set->inputs && has_inputs(t))
    fprintf(stderr, "blockbuster: --inputs FILE (.npz) gives the inputs\n");
  if (code != EXIT_GOOD) return code;
  code = judge(t, result, expect);
  bb_result_destroy(result);
  return code;
}

int run_main(tool *t) {
  const settings *set = t->set;
  bb_arrays *inputs = NULL, *expect = NULL;
  bb_stage stage = set->unfused ? BB_STAGE_BLOCK : BB_STAGE_FUSED;
  if (set->stage > BB_STAGE_ARRAY) stage = (bb_stage)set->stage;
  int code = check_call(t);
  if (code == EXIT_GOOD) code = read_arrays(t, set->inputs, &inputs);
  if (code == EXIT_GOOD && set->expect) code = read_arrays(t, set->expect, &expect);
  if (code == EXIT_GOOD && t->program && set->inputs) code = expect_inputs(t, inputs);
  if (code == EXIT_GOOD && t->program) code = advance(t, stage, NULL);
  if (code == EXIT_GOOD) code = run(t, inputs, expect);
  bb_arrays_destroy(expect);
  bb_arrays_destroy(inputs);
  return code;
}
