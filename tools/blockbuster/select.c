/* select.c - blockbuster select: which kernels are cheapest on a machine, what each costs, and why.
 */
#include "bench.h"

#include <string.h>

/* Room for one number in words; several calls of one printf() need one each. */
typedef struct words {
  char text[32];
} words;

static words in_units(double value, const char *const *unit, uint32_t units, double step) {
  words w;
  uint32_t i = 0;
  while (i + 1 < units && value >= step * 0.9995) value /= step, i++;
  snprintf(w.text, sizeof w.text, "%.3g %s", value, unit[i]);
  return w;
}

static words seconds(double value) {
  static const char *const unit[] = {"ns", "us", "ms", "s"};
  return in_units(value * 1e9, unit, 4, 1000);
}

static words bytes(double value) {
  static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
  return in_units(value, unit, 5, 1000);
}

static words operations(double value) {
  static const char *const unit[] = {"op", "kop", "Mop", "Gop", "Top"};
  return in_units(value, unit, 5, 1000);
}

/* --- the table --- */

static void print_way(const bb_way_info *way) {
  printf("snapshot %u", way->snapshot);
  for (uint32_t i = 0; i < way->blocks; i++)
    printf("%s%s=%g", i ? "," : ", blocks ", way->block[i].dim, way->block[i].elements);
  if (way->parts > 1) printf(", fold over %s in %u parts", way->fold, way->parts);
}

static void print_kernel(const char *name, bool once, const bb_bill_info *bill, double total) {
  const bb_way_info *way = &bill->chosen;
  printf("%-6s %9s", name, seconds(way->seconds).text);
  if (once)
    printf("   once");
  else
    printf(" %4.0f %%", 100 * way->seconds / total);
  printf("  %-7s %9s %9s %9s %9s %7.4g %5.4g %3.0f %%\n", way->bound, bytes(way->memory_bytes).text,
         operations(way->dot).text, operations(way->vector).text, operations(way->special).text,
         way->instances, way->waves, 100 * way->repeated);
  printf("       ");
  print_way(way);
  printf("\n");
  if (bill->has_second) {
    printf("       next: ");
    print_way(&bill->second);
    printf(": %s (%s)\n", seconds(bill->second.seconds).text, bill->second.bound);
  }
  if (bill->again > 0)
    printf("       computes again what %u piece%s elsewhere give\n", bill->again,
           bill->again == 1 ? "" : "s");
  if (bill->apart_seconds > 0)
    printf("       its %u pieces cost %s apart, %s joined\n", bill->pieces,
           seconds(bill->apart_seconds).text, seconds(bill->joined_seconds).text);
}

static void print_head(const tool *t, const bb_selection_info *s) {
  bb_setting extent;
  printf("%s: %s, %u units", s->machine, s->target, s->units);
  for (uint32_t i = 0; bb_program_get_assumed(t->program, i, &extent); i++)
    printf("%s%s=%lld", i ? "," : "; extents ", extent.name, (long long)extent.value);
  printf("\n%-6s %9s %6s  %-7s %9s %9s %9s %9s %7s %5s %5s\n", "kernel", "time", "share", "bound",
         "memory", "dot", "vector", "special", "grid", "waves", "again");
}

static void print_table(tool *t, const bb_selection_info *s) {
  bb_candidate_info c;
  bb_bill_info bill;
  uint32_t kernels = 0;
  print_head(t, s);
  for (uint32_t i = 0; bb_program_get_candidate(t->program, i, &c); i++) {
    if (!bb_program_get_bill(t->program, i, &bill)) continue;
    kernels += !c.once;
    print_kernel(c.name, c.once, &bill, s->seconds);
  }
  printf("%u kernel%s, %s; of %u pieces, %u kernels considered, %u priced\n", kernels,
         kernels == 1 ? "" : "s", seconds(s->seconds).text, s->pieces, s->considered, s->priced);
  if (s->inexact) printf("perhaps not the cheapest cover: %s\n", s->inexact);
}

static uint32_t count_programs(bb_program *program) {
  uint32_t count = 0;
  while (bb_program_show_variant(program, count)) count++;
  bb_program_show_variant(program, 0);
  return count;
}

static bool region_of_program(const void *of, uint32_t index, bb_region_info *info) {
  return bb_program_get_region(of, index, info);
}

/* One after the other, and which of them runs where, if there are several. */
static void print_tables(tool *t) {
  bb_selection_info s;
  uint32_t programs = count_programs(t->program);
  for (uint32_t i = 0; i < programs; i++) {
    if (programs > 1) printf("%sprogram %u of %u\n", i ? "\n" : "", i, programs);
    bb_program_show_variant(t->program, i);
    bb_program_get_selection(t->program, &s);
    print_table(t, &s);
  }
  bb_program_show_variant(t->program, 0);
  if (programs == 1) return;
  printf("\n");
  print_regions(region_of_program, t->program);
}

/* --- JSON --- */

void put_way_json(FILE *to, const bb_way_info *way) {
  fprintf(to, "{\"seconds\": %.9g, \"bound\": \"%s\", \"snapshot\": %u, \"blocks\": [",
          way->seconds, way->bound, way->snapshot);
  for (uint32_t i = 0; i < way->blocks; i++) {
    fprintf(to, "%s{\"dim\": ", i ? ", " : "");
    put_json_text(to, way->block[i].dim);
    fprintf(to, ", \"elements\": %.17g}", way->block[i].elements);
  }
  fprintf(to, "], \"fold\": ");
  if (way->fold)
    put_json_text(to, way->fold);
  else
    fprintf(to, "null");
  fprintf(to,
          ", \"parts\": %u,\n    \"memory_bytes\": %.17g, \"cache_bytes\": %.17g, \"dot\": %.17g, "
          "\"vector\": %.17g, \"special\": %.17g, \"repeated\": %.6g,\n    \"instances\": %.17g, "
          "\"waves\": %.17g, \"launches\": %u, \"local_bytes\": %.17g, \"register_bytes\": %.17g}",
          way->parts, way->memory_bytes, way->cache_bytes, way->dot, way->vector, way->special,
          way->repeated, way->instances, way->waves, way->launches, way->local_bytes,
          way->register_bytes);
}

static void print_kernel_json(const bb_candidate_info *c, const bb_bill_info *bill) {
  printf("{\"name\": ");
  put_json_text(stdout, c->name);
  printf(", \"once\": %s, \"pieces\": %u, \"again\": %u, \"apart_seconds\": ",
         c->once ? "true" : "false", bill->pieces, bill->again);
  if (bill->apart_seconds > 0)
    printf("%.9g", bill->apart_seconds);
  else
    printf("null");
  printf(", \"joined_seconds\": %.9g", bill->joined_seconds);
  printf(",\n   \"chosen\": ");
  put_way_json(stdout, &bill->chosen);
  printf(",\n   \"runner_up\": ");
  if (bill->has_second)
    put_way_json(stdout, &bill->second);
  else
    printf("null");
  printf("}");
}

static void print_json(tool *t, const bb_selection_info *s) {
  bb_candidate_info c;
  bb_bill_info bill;
  bb_setting extent;
  const char *before = "\n  ";
  printf("{\"machine\": ");
  put_json_text(stdout, s->machine);
  printf(", \"target\": ");
  put_json_text(stdout, s->target);
  printf(", \"units\": %u,\n \"extents\": {", s->units);
  for (uint32_t i = 0; bb_program_get_assumed(t->program, i, &extent); i++) {
    printf("%s", i ? ", " : "");
    put_json_text(stdout, extent.name);
    printf(": %lld", (long long)extent.value);
  }
  printf(
      "},\n \"seconds\": %.9g, \"pieces\": %u, \"considered\": %u, \"priced\": %u, \"states\": %u, "
      "\"exact\": %s,\n \"kernels\": [",
      s->seconds, s->pieces, s->considered, s->priced, s->states, s->inexact ? "false" : "true");
  for (uint32_t i = 0; bb_program_get_candidate(t->program, i, &c); i++) {
    if (!bb_program_get_bill(t->program, i, &bill)) continue;
    printf("%s", before);
    print_kernel_json(&c, &bill);
    before = ",\n  ";
  }
  printf("]");
}

/* The first program has the object to itself; others, and where each runs, are lists in it. */
static void print_programs_json(tool *t) {
  bb_selection_info s;
  bb_region_info r;
  uint32_t programs = count_programs(t->program);
  for (uint32_t i = 0; i < programs; i++) {
    if (i) printf(i == 1 ? ",\n \"others\": [\n" : ",\n");
    bb_program_show_variant(t->program, i);
    bb_program_get_selection(t->program, &s);
    print_json(t, &s);
    if (i) printf("}");
  }
  bb_program_show_variant(t->program, 0);
  if (programs > 1) {
    printf("],\n \"regions\": [");
    for (uint32_t i = 0; bb_program_get_region(t->program, i, &r); i++) {
      printf("%s{\"program\": %u", i ? ",\n  " : "\n  ", r.variant);
      for (uint32_t k = 0; k < r.extents; k++) {
        printf(", ");
        put_json_text(stdout, r.extent[k].name);
        printf(": [%lld, ", (long long)r.extent[k].first);
        printf(r.extent[k].last < 0 ? "null]" : "%lld]", (long long)r.extent[k].last);
      }
      printf("}");
    }
    printf("]");
  }
  printf("}\n");
}

/* --- tables over an extent --- */

typedef struct table_printer {
  const char *before; /* the next stretch */
} table_printer;

static void print_stretch(void *user, const bb_table_info *s) {
  char range[48];
  (void)user;
  snprintf(range, sizeof range, "%lld..%lld", (long long)s->from, (long long)s->to);
  printf("%-16s %u kernel%s, %s to %s\n", range, s->kernels, s->kernels == 1 ? "" : "s",
         seconds(s->seconds_from).text, seconds(s->seconds_to).text);
  for (uint32_t k = 0; k < s->kernels; k++) {
    printf("       ");
    print_way(&s->kernel[k]);
    printf("\n");
  }
  if (s->beyond > 0)
    printf("       at %lld: %s, the next %s; at %lld: %s, the next %s\n", (long long)s->to,
           seconds(s->seconds_to).text, seconds(s->next_before).text, (long long)s->to + 1,
           seconds(s->beyond).text, seconds(s->next_beyond).text);
}

static void print_stretch_json(void *user, const bb_table_info *s) {
  table_printer *p = user;
  printf("%s{\"from\": %lld, \"to\": %lld, \"seconds_from\": %.9g, \"seconds_to\": %.9g,\n   "
         "\"beyond\": %.9g, \"next_before\": %.9g, \"next_beyond\": %.9g,\n   \"kernels\": [",
         p->before, (long long)s->from, (long long)s->to, s->seconds_from, s->seconds_to, s->beyond,
         s->next_before, s->next_beyond);
  for (uint32_t k = 0; k < s->kernels; k++) {
    printf("%s", k ? ",\n    " : "");
    put_way_json(stdout, &s->kernel[k]);
  }
  printf("]}");
  p->before = ",\n  ";
}

static int table_main(tool *t, const bb_advance_options *advance) {
  bb_table_options options = {.version = BB_VERSION,
                              .extent = t->set->table,
                              .first = t->set->table_first,
                              .last = t->set->table_last,
                              .advance = advance};
  table_printer printer = {.before = "\n  "};
  if (!t->set->json)
    return report(t, bb_program_visit_table(t->program, &options, print_stretch, &printer));
  printf("{\"extent\": ");
  put_json_text(stdout, t->set->table);
  printf(", \"table\": [");
  int code = report(t, bb_program_visit_table(t->program, &options, print_stretch_json, &printer));
  printf("]}\n");
  return code;
}

int select_main(tool *t) {
  bb_advance_options options = advance_options(t->set);
  if (!options.machine) options.machine = "";
  if (strcmp(options.machine, "counts") == 0) {
    fprintf(stderr, "blockbuster select: counts are no prices\n");
    return EXIT_WRONG_CALL;
  }
  if (t->set->table) return table_main(t, &options);
  int code = advance(t, BB_STAGE_FUSED, &options);
  if (code != EXIT_GOOD) return code;
  (t->set->json ? print_programs_json : print_tables)(t);
  if (t->set->output) code = report(t, write_program(t->program, t->set->output));
  return code;
}
