/* fuse.c - blockbuster fuse: rewrites, snapshots, and why two nodes did not fuse.
 */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

/* The trace as it comes, and of each candidate the rules in order: "1x6, 4, 3, S". */
typedef struct tracer {
  const settings *set;
  FILE *out;
  bool several;       /* more than one candidate: summaries say whose they are */
  char label[64];     /* the candidate or kernel at hand */
  char candidate[64]; /* the candidate at hand */
  char *summary;      /* of it */
  size_t length;
  uint32_t rule, run; /* the latest rule, and how often it has come in a row */
  uint32_t rewrites;
  char both[160], last_a[160], last_b[160]; /* --why: the latest rewrites that took its nodes */
} tracer;

static void append(tracer *t, const char *text) {
  size_t more = strlen(text);
  char *grown = realloc(t->summary, t->length + more + 3);
  if (!grown) return; /* the summary is cut short, the lines are there */
  t->summary = grown;
  if (t->length) {
    memcpy(t->summary + t->length, ", ", 2);
    t->length += 2;
  }
  memcpy(t->summary + t->length, text, more + 1);
  t->length += more;
}

/* A rule that came three times or more in a row is written once, with its number of times. */
static void close_run(tracer *t) {
  char text[32];
  if (t->run > 2) {
    snprintf(text, sizeof text, "%ux%u", t->rule, t->run);
    append(t, text);
  } else {
    snprintf(text, sizeof text, "%u", t->rule);
    for (; t->run; t->run--) append(t, text);
  }
  t->run = 0;
}

static void finish_candidate(tracer *t) {
  close_run(t);
  if (t->summary && t->set->trace) {
    if (t->several)
      fprintf(t->out, "summary %s: %s\n", t->candidate, t->summary);
    else
      fprintf(t->out, "summary: %s\n", t->summary);
  }
  free(t->summary);
  t->summary = NULL;
  t->length = 0;
}

/* Kernels of a candidate go on with its summary. */
static void on_begin(void *user, const char *name, const char *same) {
  tracer *t = user;
  bool kernel = name[0] == 'k';
  if (!kernel) {
    finish_candidate(t);
    snprintf(t->candidate, sizeof t->candidate, "%s", name);
  }
  snprintf(t->label, sizeof t->label, "%s", name);
  if (same && t->set->trace) fprintf(t->out, "%s is fused as %s\n", name, same);
}

/* Of --why: rewrites that took one of its nodes, or both. */
static void note_pair(tracer *t, const bb_rewrite *rewrite) {
  char text[160];
  bool a = false, b = false;
  for (uint32_t i = 0; i < rewrite->nodes; i++) {
    a |= rewrite->node[i] == t->set->pair.a;
    b |= rewrite->node[i] == t->set->pair.b;
  }
  if (!a && !b) return;
  snprintf(text, sizeof text, "step %u, rule %u (%s) at %s", rewrite->step, rewrite->rule,
           rewrite->rule_name, *rewrite->level ? rewrite->level : "the top");
  if (a && b) memcpy(t->both, text, sizeof text);
  if (a) memcpy(t->last_a, text, sizeof text);
  if (b) memcpy(t->last_b, text, sizeof text);
}

static void on_rewrite(void *user, const bb_rewrite *rewrite) {
  tracer *t = user;
  if (rewrite->rule == 0) {
    close_run(t);
    append(t, "S");
    if (t->set->trace) fprintf(t->out, "step %u %s: snapshot\n", rewrite->step, t->label);
    return;
  }
  if (rewrite->rule != t->rule) close_run(t);
  t->rule = rewrite->rule;
  t->run++;
  t->rewrites++;
  if (t->set->why) note_pair(t, rewrite);
  if (!t->set->trace) return;
  fprintf(t->out, "step %u %s: rule %u", rewrite->step, t->label, rewrite->rule);
  if (rewrite->variant) fputc(rewrite->variant, t->out);
  fprintf(t->out, " (%s) at %s: nodes", rewrite->rule_name,
          *rewrite->level ? rewrite->level : "the top");
  for (uint32_t i = 0; i < rewrite->nodes; i++) fprintf(t->out, " %u", rewrite->node[i]);
  fputc('\n', t->out);
}

/* --- snapshots --- */

static int print_snapshots(tool *t, uint32_t c, const bb_candidate_info *info, FILE *out) {
  for (uint32_t s = 0; s < info->snapshots; s++) {
    bb_snapshot_info snapshot;
    bb_graph_id id = {c, s};
    bb_program_get_snapshot(t->program, id, &snapshot);
    fprintf(out, "snapshot %u: after %u rewrites, %.6g operations, %.6g bytes buffered%s\n", s,
            snapshot.step, snapshot.operations, snapshot.buffered,
            s == info->chosen ? ", chosen" : "");
    bb_status status = bb_program_write_listing(t->program, id, write_to_file, out);
    if (status != BB_OK) return report(t, status);
    fputc('\n', out);
  }
  return EXIT_GOOD;
}

static int print_repairs(tool *t, uint32_t c, const bb_candidate_info *info, FILE *out) {
  fprintf(out, "repairs of %s:\n", info->name);
  bb_status status = bb_program_write_repairs(t->program, (bb_graph_id){c, BB_SNAPSHOT_CHOSEN},
                                              write_to_file, out);
  if (status != BB_OK) return report(t, status);
  fputc('\n', out);
  return EXIT_GOOD;
}

static void explain_misc(void *user, const char *node, const char *op) {
  fprintf(user, "not repaired: %s (%s) takes its operand whole: no fold of its parts is known\n",
          node, op);
}

static int print_explanations(tool *t, uint32_t wanted, FILE *out) {
  bb_candidate_info info;
  int code = EXIT_GOOD;
  for (uint32_t c = 0; code == EXIT_GOOD && bb_program_get_candidate(t->program, c, &info); c++)
    if (!t->set->candidate || c == wanted) code = print_repairs(t, c, &info, out);
  if (code != EXIT_GOOD || t->set->candidate) return code;
  return report(t, bb_program_visit_misc(t->program, explain_misc, out));
}

/* What runs, where it is not the chosen snapshot as that stands above. */
static int print_safe(tool *t, uint32_t c, const bb_candidate_info *info, FILE *out) {
  bb_selection_info selection;
  if (!info->safe) return EXIT_GOOD;
  fprintf(out, "kernel %s: snapshot %u ", info->name, info->chosen);
  if (bb_program_get_selection(t->program, &selection))
    fprintf(out, "as chosen for %s\n", selection.machine);
  else
    fprintf(out, "made safe\n");
  fprintf(out, "%s", info->exps ? info->exps : "");
  bb_status status =
      bb_program_write_listing(t->program, (bb_graph_id){c, BB_SNAPSHOT_RUNS}, write_to_file, out);
  if (status != BB_OK) return report(t, status);
  fputc('\n', out);
  return EXIT_GOOD;
}

static int print_listings(tool *t, uint32_t wanted, FILE *out) {
  bb_candidate_info info, second;
  bool several = bb_program_get_candidate(t->program, 1, &second);
  for (uint32_t c = 0; bb_program_get_candidate(t->program, c, &info); c++) {
    if (t->set->candidate && c != wanted) continue;
    if (several) fprintf(out, "kernel %s%s:\n", info.name, info.once ? " (once, at load)" : "");
    int code = print_snapshots(t, c, &info, out);
    if (code == EXIT_GOOD) code = print_safe(t, c, &info, out);
    if (code != EXIT_GOOD) return code;
  }
  return EXIT_GOOD;
}

static void print_table(tool *t, uint32_t wanted, uint32_t rewrites, FILE *out) {
  bb_candidate_info info;
  fprintf(out, "%-8s %9s %6s %13s %15s\n", "kernel", "snapshots", "chosen", "operations",
          "bytes buffered");
  for (uint32_t c = 0; bb_program_get_candidate(t->program, c, &info); c++) {
    bb_snapshot_info s = {0};
    if (t->set->candidate && c != wanted) continue;
    bb_program_get_snapshot(t->program, (bb_graph_id){c, BB_SNAPSHOT_CHOSEN}, &s);
    fprintf(out, "%-8s %9u %6u %13.6g %15.6g%s\n", info.name, info.snapshots, info.chosen,
            s.operations, s.buffered, info.once ? "  once, at load" : "");
  }
  bb_program_info program;
  bb_program_get_info(t->program, &program);
  fprintf(out, "%u rewrites, %u kernel%s\n", rewrites, program.kernels,
          program.kernels == 1 ? "" : "s");
}

static void print_json(tool *t, uint32_t wanted, uint32_t rewrites, FILE *out) {
  const char *before = "";
  bb_candidate_info info;
  fprintf(out, "{\"rewrites\": %u, \"kernels\": [", rewrites);
  for (uint32_t c = 0; bb_program_get_candidate(t->program, c, &info); c++) {
    if (t->set->candidate && c != wanted) continue;
    fprintf(out, "%s\n  {\"name\": \"%s\", \"once\": %s, \"chosen\": %u, \"snapshots\": [", before,
            info.name, info.once ? "true" : "false", info.chosen);
    for (uint32_t k = 0; k < info.snapshots; k++) {
      bb_snapshot_info s;
      bb_program_get_snapshot(t->program, (bb_graph_id){c, k}, &s);
      fprintf(out, "%s{\"step\": %u, \"operations\": %.17g, \"buffered\": %.17g}", k ? ", " : "",
              s.step, s.operations, s.buffered);
    }
    fprintf(out, "]");
    bb_bill_info bill;
    if (bb_program_get_bill(t->program, c, &bill)) {
      fprintf(out, ", \"runs\": ");
      put_way_json(out, &bill.chosen);
    }
    fprintf(out, "}");
    before = ",";
  }
  fprintf(out, "]}\n");
}

/* Why two nodes did not fuse; a node that is gone was taken by a rewrite, perhaps with the other. */
static int print_why(tool *t, const tracer *trace, FILE *out) {
  bb_node_pair pair = t->set->pair;
  bb_status status = bb_program_write_why(t->program, pair, write_to_file, out);
  if (status == BB_ERROR_ARGUMENT && trace->both[0]) {
    fprintf(out, "nodes %u and %u did fuse: %s\n", pair.a, pair.b, trace->both);
    return EXIT_GOOD;
  }
  int code = report(t, status);
  if (status == BB_ERROR_ARGUMENT && trace->last_a[0])
    fprintf(stderr, "node %u was last part of %s\n", pair.a, trace->last_a);
  if (status == BB_ERROR_ARGUMENT && trace->last_b[0])
    fprintf(stderr, "node %u was last part of %s\n", pair.b, trace->last_b);
  return code;
}

static void print_stats(const uint64_t *tries, const uint64_t *hits, FILE *out) {
  uint32_t number;
  const char *name, *assumes;
  fprintf(out, "%4s %10s %8s  %-12s  %s\n", "rule", "tried", "applied", "assumes", "name");
  for (uint32_t i = 0; bb_rule_get(i, &number, &name, &assumes); i++)
    fprintf(out, "%4u %10llu %8llu  %-12s  %s\n", number, (unsigned long long)tries[number],
            (unsigned long long)hits[number], assumes, name);
}

static bool has_one_candidate(tool *t) {
  bb_program_info info;
  bb_program_get_info(t->program, &info);
  return info.candidates == 1;
}

static int fuse_and_print(tool *t, FILE *out) {
  tracer trace = {.set = t->set, .out = out};
  int code = advance(t, BB_STAGE_PARTITION, NULL);
  if (code != EXIT_GOOD) return code;
  trace.several = !has_one_candidate(t);
  uint64_t tries[BB_RULE_NUMBERS] = {0}, hits[BB_RULE_NUMBERS] = {0};
  bb_advance_options options = advance_options(t->set);
  options.tries = tries;
  options.hits = hits;
  options.begin = on_begin;
  options.rewrite = on_rewrite;
  options.user = &trace;
  code = advance(t, BB_STAGE_FUSED, &options);
  finish_candidate(&trace);
  if (code != EXIT_GOOD) return code;
  uint32_t wanted = 0;
  if (t->set->candidate && !find_candidate(t, &wanted)) return EXIT_WRONG_CALL;
  if (t->set->json) print_json(t, wanted, trace.rewrites, out);
  if (t->set->stats) print_stats(tries, hits, out);
  if (t->set->listing) code = print_listings(t, wanted, out);
  if (code == EXIT_GOOD && t->set->explain) code = print_explanations(t, wanted, out);
  if (code == EXIT_GOOD && t->set->why) code = print_why(t, &trace, out);
  if (!t->set->json && !t->set->listing && !t->set->why && !t->set->trace && !t->set->stats &&
      !t->set->explain)
    print_table(t, wanted, trace.rewrites, out);
  return code;
}

/* With -o the fused program is written there; what is asked for is printed all the same. */
int fuse_main(tool *t) {
  int code = fuse_and_print(t, stdout);
  if (code == EXIT_GOOD && t->set->output)
    code = report(t, write_program(t->program, t->set->output));
  return code;
}
