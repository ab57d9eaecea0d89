/* bench_print.c - the figures of a measurement as a table, and as JSON. */
#include "bench.h"

static void print_seconds(double seconds) {
  if (seconds < 1e-3)
    printf("%.3g us", seconds * 1e6);
  else if (seconds < 1)
    printf("%.3g ms", seconds * 1e3);
  else
    printf("%.3g s", seconds);
}

/* 1.5 M and the like, nine wide. */
static void print_count(double value, const char *unit) {
  static const char prefix[] = " kMGT";
  uint32_t k = 0;
  while (value >= 999.5 && k < 4) {
    value /= 1000;
    k++;
  }
  printf("  %6.3g %c%s", value, prefix[k], unit);
}

uint32_t interpreted_nodes(const bb_model *model) {
  uint32_t count = 0;
  bb_step_info step;
  for (uint32_t i = 0; bb_model_get_step(model, i, &step); i++)
    if (!step.op && step.source == UINT32_MAX && bb_model_variant_has(model, 0, i))
      count += step.nodes;
  return count;
}

uint32_t programs_of(const bb_model *model) {
  bb_variant_info info;
  uint32_t count = 0;
  while (bb_model_get_variant(model, count, &info)) count++;
  return count;
}

void print_program(const bb_model *model, uint32_t variant) {
  bb_variant_info info;
  bb_model_get_variant(model, variant, &info);
  printf("program %u of %u, chosen for ", variant, programs_of(model));
  for (uint32_t i = 0; i < info.extents; i++)
    printf("%s%s=%lld", i ? "," : "", info.extent[i].name, (long long)info.extent[i].value);
  printf(": %u step%s, %u of them kernels\n", info.steps, info.steps == 1 ? "" : "s", info.kernels);
}

static void print_span(const bb_extent_span *from, const bb_extent_span *to) {
  printf("%s=%lld..", from->name, (long long)from->first);
  if (to->last >= 0) printf("%lld", (long long)to->last);
}

/* Stretches of the last extent with one program are one line. */
void print_regions(region_function *get, const void *of) {
  enum { LINES = 24 };
  bb_region_info r, next;
  for (uint32_t i = 0, first, lines = 0; get(of, i, &r); i++) {
    uint32_t last = r.extents - 1;
    if (lines++ == LINES) {
      printf("and so on: the plan.json of a compiled folder has the whole table\n");
      return;
    }
    for (first = i; get(of, i + 1, &next); i++)
      if (next.variant != r.variant || next.extent[last].first == 0) break;
    get(of, first, &r);
    get(of, i, &next);
    for (uint32_t k = 0; k < r.extents; k++) {
      if (k) printf(",");
      print_span(&r.extent[k], &next.extent[k]);
    }
    printf(": program %u\n", r.variant);
  }
}

void print_nodes(const bb_model_info *m, uint32_t interpreted) {
  printf("%u node%s in %u kernel%s (%u different), %u run as misc, %u interpreted\n", m->fused,
         m->fused == 1 ? "" : "s", m->kernels, m->kernels == 1 ? "" : "s", m->sources, m->misc,
         interpreted);
}

static void print_step(const figures *f, const step_figures *s) {
  printf("%-12.12s %9.2f us %4.0f %%", s->info.name, s->time.median * 1e6,
         f->run.median > 0 ? 100 * s->time.median / f->run.median : 0);
  if (s->info.op) {
    printf("  reference kernel: %.40s\n", s->info.op);
    return;
  }
  if (s->info.source == UINT32_MAX) {
    printf("  interpreted\n");
    return;
  }
  print_count(s->bytes, "B");
  print_count(s->operations, "op");
  print_count(s->bytes / s->time.median, "B/s");
  print_count(s->operations / s->time.median, "op/s");
  printf("  %4.0f %%\n", 100 * s->ceiling);
}

void print_figures(const figures *f) {
  printf("%s on %s", f->model.name, f->model.device);
  for (uint32_t i = 0; i < f->extents; i++)
    printf("%s%s=%lld", i ? "," : ", ", f->extent[i].name, (long long)f->extent[i].value);
  printf("\nread and fused in ");
  print_seconds(f->read);
  printf(f->model.cached ? ", kernels loaded in " : ", compiled in ");
  print_seconds(f->compile);
  printf(", first run in ");
  print_seconds(f->first);
  printf("\nmedian of %u runs ", f->run.runs);
  print_seconds(f->run.median);
  printf(", 80 %% of them within ");
  print_seconds(f->run.tenth);
  printf(" to ");
  print_seconds(f->run.ninetieth);
  printf(
      "\nstep              time  share     bytes  operations       rate        rate  of ceiling\n");
  for (uint32_t i = 0; i < f->steps; i++)
    if (!f->step[i].info.once && f->step[i].runs) print_step(f, &f->step[i]);
  printf("ceiling: %s with %u units, %.3g byte/s (cache %.3g), %.3g op/s\n", f->ceiling.machine,
         f->ceiling.units, f->ceiling.bytes_per_second, f->ceiling.cache_per_second,
         f->ceiling.operations_per_second);
  print_nodes(&f->model, f->interpreted);
  if (f->variants > 1) print_program(f->of, f->variant);
}

static void print_spread_json(const spread *s) {
  printf("{\"runs\": %u, \"median\": %.9g, \"least\": %.9g, \"p10\": %.9g, \"p90\": %.9g}", s->runs,
         s->median, s->least, s->tenth, s->ninetieth);
}

static void print_step_json(const step_figures *s) {
  printf("{\"name\": ");
  put_json_text(stdout, s->info.name);
  printf(", \"nodes\": %u, \"once\": %s", s->info.nodes, s->info.once ? "true" : "false");
  if (s->info.op) {
    printf(", \"op\": ");
    put_json_text(stdout, s->info.op);
  } else if (s->info.source != UINT32_MAX) {
    printf(", \"source\": %u", s->info.source);
  }
  if (!s->info.once) {
    printf(", \"seconds\": ");
    print_spread_json(&s->time);
  }
  if (!s->info.once && !s->info.op && s->info.source != UINT32_MAX)
    printf(", \"bytes\": %.17g, \"operations\": %.17g, \"ceiling\": %.6g", s->bytes, s->operations,
           s->ceiling);
  printf("}");
}

void print_figures_json(const figures *f) {
  printf("{\"model\": ");
  put_json_text(stdout, f->model.name);
  printf(", \"device\": \"%s\", \"threads\": %u, \"cached\": %s,\n \"extents\": {", f->model.device,
         f->threads, f->model.cached ? "true" : "false");
  for (uint32_t i = 0; i < f->extents; i++) {
    printf("%s", i ? ", " : "");
    put_json_text(stdout, f->extent[i].name);
    printf(": %lld", (long long)f->extent[i].value);
  }
  printf("},\n \"program\": %u, \"programs\": %u", f->variant, f->variants);
  printf(",\n \"read_seconds\": %.9g, \"compile_seconds\": %.9g, \"first_run_seconds\": %.9g,\n"
         " \"seconds\": ",
         f->read, f->compile, f->first);
  print_spread_json(&f->run);
  printf(",\n \"nodes\": {\"fused\": %u, \"misc\": %u, \"interpreted\": %u, \"kernels\": %u, "
         "\"different\": %u},\n"
         " \"ceiling\": {\"machine\": ",
         f->model.fused, f->model.misc, f->interpreted, f->model.kernels, f->model.sources);
  put_json_text(stdout, f->ceiling.machine);
  printf(", \"bytes_per_second\": %.9g, \"cache_bytes\": %.9g, \"cache_per_second\": %.9g, "
         "\"operations_per_second\": %.9g},\n \"steps\": [",
         f->ceiling.bytes_per_second, f->ceiling.cache_bytes, f->ceiling.cache_per_second,
         f->ceiling.operations_per_second);
  const char *before = "\n  ";
  for (uint32_t i = 0; i < f->steps; i++) {
    if (!f->step[i].runs) continue;
    printf("%s", before);
    print_step_json(&f->step[i]);
    before = ",\n  ";
  }
  printf("]}\n");
}
