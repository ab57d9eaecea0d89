/* info.c - blockbuster info: what a model consists of and what of it runs unfused.
 */
#include "tool.h"

#include <string.h>

/* A list printed in pieces: what stands before the next element. */
typedef struct list {
  const char *before;
} list;

static void print_op(void *user, const char *op, uint32_t count, bool misc) {
  list *l = user;
  printf("%s%u %s%s", l->before, count, op, misc ? " (misc)" : "");
  l->before = ", ";
}

static void print_misc(void *user, const char *node, const char *op) {
  (void)user;
  printf("misc: %s%s%s\n", op, *node ? " " : "", node);
}

static void print_misc_json(void *user, const char *node, const char *op) {
  list *l = user;
  printf("%s{\"name\": ", l->before);
  put_json_text(stdout, node);
  printf(", \"op\": ");
  put_json_text(stdout, op);
  printf("}");
  l->before = ", ";
}

static void print_op_json(void *user, const char *op, uint32_t count, bool misc) {
  list *l = user;
  printf("%s{\"op\": ", l->before);
  put_json_text(stdout, op);
  printf(", \"count\": %u, \"misc\": %s}", count, misc ? "true" : "false");
  l->before = ", ";
}

static uint32_t count_copies(const tool *t) {
  bb_candidate_info c;
  uint32_t copies = 0;
  for (uint32_t i = 0; bb_program_get_candidate(t->program, i, &c); i++) copies += c.copies;
  return copies;
}

static void print_candidates(const tool *t) {
  bb_candidate_info c;
  for (uint32_t i = 0; bb_program_get_candidate(t->program, i, &c); i++) {
    bb_snapshot_info s;
    printf("%s: %u op%s", c.name, c.nodes, c.nodes == 1 ? "" : "s");
    if (bb_program_get_snapshot(t->program, (bb_graph_id){i, BB_SNAPSHOT_CHOSEN}, &s))
      printf(", snapshot %u of %u, %.6g operations, %.6g bytes buffered", c.chosen, c.snapshots,
             s.operations, s.buffered);
    if (c.copies) printf(", a copy");
    if (c.once) printf(", once at load");
    printf("\n");
  }
}

static void print_coverage(const bb_program_info *p) {
  printf("%u of %u nodes run as misc", p->misc, p->nodes);
  if (p->stage == BB_STAGE_FUSED) {
    uint32_t kernels = p->kernels - p->kernels_once;
    printf(", %u in %u kernel%s", p->nodes - p->misc, kernels, kernels == 1 ? "" : "s");
    if (p->kernels_once)
      printf(" and %u that run%s once at load", p->kernels_once, p->kernels_once == 1 ? "s" : "");
  }
  printf("\n");
}

static int print_text(tool *t, const bb_program_info *p) {
  list l = {"ops: "};
  printf("%s: stage %s, %u inputs, %u outputs, %u constants of %llu bytes\n", p->name,
         bb_stage_name(p->stage), p->inputs, p->outputs, p->constants,
         (unsigned long long)p->constant_bytes);
  int code = report(t, bb_program_visit_ops(t->program, print_op, &l));
  if (code != EXIT_GOOD) return code;
  printf("\n");
  print_candidates(t);
  code = report(t, bb_program_visit_misc(t->program, print_misc, NULL));
  if (code == EXIT_GOOD) print_coverage(p);
  return code;
}

static void print_candidates_json(const tool *t) {
  bb_candidate_info c;
  for (uint32_t i = 0; bb_program_get_candidate(t->program, i, &c); i++) {
    bb_snapshot_info s = {0, -1, -1};
    bb_program_get_snapshot(t->program, (bb_graph_id){i, BB_SNAPSHOT_CHOSEN}, &s);
    printf(
        "%s\n  {\"name\": \"%s\", \"nodes\": %u, \"once\": %s, \"copies\": %s, \"snapshots\": %u",
        i ? "," : "", c.name, c.nodes, c.once ? "true" : "false", c.copies ? "true" : "false",
        c.snapshots);
    if (s.operations >= 0)
      printf(", \"chosen\": %u, \"operations\": %.17g, \"buffered\": %.17g", c.chosen, s.operations,
             s.buffered);
    printf("}");
  }
}

static int print_json(tool *t, const bb_program_info *p) {
  char hash[33];
  printf("{\"name\": ");
  put_json_text(stdout, p->name);
  printf(", \"stage\": \"%s\", \"inputs\": %u, \"outputs\": %u, \"constants\": %u, "
         "\"constant_bytes\": %llu,\n \"nodes\": %u, \"kernels\": %u, \"kernels_once\": %u, "
         "\"copies\": %u",
         bb_stage_name(p->stage), p->inputs, p->outputs, p->constants,
         (unsigned long long)p->constant_bytes, p->nodes, p->kernels, p->kernels_once,
         count_copies(t));
  if (bb_program_get_hash(t->program, hash) == BB_OK) printf(", \"hash\": \"%s\"", hash);
  printf(",\n \"misc\": [");
  int code = report(t, bb_program_visit_misc(t->program, print_misc_json, &(list){""}));
  printf("],\n \"ops\": [");
  if (code == EXIT_GOOD)
    code = report(t, bb_program_visit_ops(t->program, print_op_json, &(list){""}));
  printf("],\n \"candidates\": [");
  print_candidates_json(t);
  printf("]}\n");
  return code;
}

/* The file is opened before anything is measured: what cannot be written is said at once. */
static int describe_machine(tool *t) {
  output out;
  if (!output_open(&out, t->set->output)) return EXIT_REFUSED;
  bb_status status = t->set->measure
                         ? bb_machine_measure_and_write(t->context, write_to_file, out.file)
                         : bb_machine_write(t->context, t->set->machine, write_to_file, out.file);
  int code = report(t, status);
  if (!output_close(&out, status == BB_OK) && code == EXIT_GOOD) code = EXIT_REFUSED;
  return code;
}

int info_main(tool *t) {
  bb_program_info info;
  if (!t->set->model) return describe_machine(t);
  if (t->set->output) {
    fprintf(stderr, "blockbuster info: -o is for descriptions of machines\n");
    return EXIT_WRONG_CALL;
  }
  bb_stage stage = t->set->stage < 0 ? BB_STAGE_FUSED : (bb_stage)t->set->stage;
  int code = advance(t, stage, NULL);
  if (code != EXIT_GOOD) return code;
  bb_program_get_info(t->program, &info);
  return t->set->json ? print_json(t, &info) : print_text(t, &info);
}
