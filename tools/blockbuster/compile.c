/* compile.c - blockbuster compile: a model as a folder that runs where there is no compiler.
 */
#include "tool.h"

#include "bench.h"

#include <string.h>

/* What a model is compiled with, in memory or to a folder. */
static bb_compile_options compile_options(const settings *set) {
  return (bb_compile_options){
      .version = BB_VERSION, .blocks = set->blocks, .block = set->block, .device = set->device};
}

int take_model(tool *t, bb_model **model) {
  if (t->model) {
    *model = bb_model_hold(t->model);
    return EXIT_GOOD;
  }
  bb_compile_options options = compile_options(t->set);
  if (t->set->no_cache) options.cache = "";
  return report(t, bb_program_compile(t->program, &options, model));
}

static bool is_target(const char *name) {
  return strcmp(name, "cpu") == 0 || strncmp(name, "sm_", 3) == 0 || strncmp(name, "gfx", 3) == 0;
}

/* Which program runs where, if there are several. */
static bool region_of_model(const void *of, uint32_t index, bb_region_info *info) {
  return bb_model_get_region(of, index, info);
}

static void print_programs(const bb_model *model) {
  bb_variant_info info;
  if (!bb_model_get_variant(model, 1, &info)) return;
  for (uint32_t i = 0; bb_model_get_variant(model, i, &info); i++) print_program(model, i);
  print_regions(region_of_model, model);
}

int compile_main(tool *t) {
  const settings *set = t->set;
  bb_compile_options options = compile_options(set);
  bb_model *model;
  bb_model_info info;
  if (!set->output) {
    fprintf(stderr, "blockbuster compile: -o DIR is missing\n");
    return EXIT_WRONG_CALL;
  }
  if (set->target && !is_target(set->target)) {
    fprintf(stderr,
            "blockbuster compile: there is no target %s: only cpu, and GPUs as sm_80, sm_90a, "
            "gfx90a, gfx942\n",
            set->target);
    return EXIT_WRONG_CALL;
  }
  bool gpu = is_gpu(set->device) || (set->target && strcmp(set->target, "cpu") != 0);
  bool source = gpu && !set->device;
  if (gpu && set->blocks) {
    fprintf(stderr, "blockbuster compile: blocks of a GPU's kernels are as large as fits\n");
    return EXIT_WRONG_CALL;
  }
  int code = advance(t, BB_STAGE_FUSED, NULL);
  if (source) {
    if (code == EXIT_GOOD)
      code = report(t, bb_program_write_kernels(t->program, set->target, set->output));
    if (code == EXIT_GOOD) printf("%s: source for %s\n", set->output, set->target);
    return code;
  }
  if (gpu && set->target) options.device = set->target;
  if (code == EXIT_GOOD) code = report(t, bb_program_compile_to(t->program, &options, set->output));
  if (gpu && set->target) { /* which need not be here */
    if (code == EXIT_GOOD) printf("%s: for %s, %s\n", set->output, set->device, set->target);
    return code;
  }
  if (code == EXIT_GOOD)
    code = report(t, bb_model_load_on(t->context, set->output, set->device, &model));
  if (code != EXIT_GOOD) return code;
  bb_model_get_info(model, &info);
  printf("%s: for %s, %llu bytes of constants\n", set->output, info.device,
         (unsigned long long)info.constant_bytes);
  print_nodes(&info, interpreted_nodes(model));
  print_programs(model);
  bb_model_release(model);
  return EXIT_GOOD;
}
