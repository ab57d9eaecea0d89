/* dot.c - blockbuster dot: pictures of graphs.
 */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

/* A drawing in memory: open_memstream() makes it. */
typedef struct memory {
  char *text;
  size_t length;
  FILE *file;
} memory;

static bool memory_open(memory *m) {
  *m = (memory){0};
  m->file = open_memstream(&m->text, &m->length);
  if (!m->file) fprintf(stderr, "blockbuster: out of memory\n");
  return m->file;
}

static int draw(tool *t, bb_graph_id id, bb_drawing drawing, FILE *to) {
  bb_draw_options options = {
      .version = BB_VERSION, .drawing = drawing, .collapse = (uint32_t)t->set->collapse};
  if (t->set->step < 0)
    return report(t, bb_program_write_drawing(t->program, id, &options, write_to_file, to));
  bb_advance_options advance = advance_options(t->set);
  return report(t, bb_program_write_step(t->program, (uint32_t)t->set->step, &advance, &options,
                                         write_to_file, to));
}

static int draw_to_file(tool *t, bb_graph_id id, bb_drawing drawing, const char *name) {
  output out;
  if (!output_open(&out, name)) return EXIT_REFUSED;
  int code = draw(t, id, drawing, out.file);
  if (!output_close(&out, code == EXIT_GOOD) && code == EXIT_GOOD) code = EXIT_REFUSED;
  return code;
}

static int draw_picture(tool *t, bb_graph_id id, const char *format) {
  memory m;
  if (!memory_open(&m)) return EXIT_REFUSED;
  int code = draw(t, id, BB_DRAW_DOT, m.file);
  fclose(m.file);
  if (code == EXIT_GOOD && !run_graphviz(m.text, m.length, format, t->set->output))
    code = EXIT_REFUSED;
  free(m.text);
  return code;
}

/* The JSON goes beside the picture; a picture's step must then be taken from a fresh program, since
 * drawing a step fuses it. */
static int draw_json(tool *t, bb_graph_id id) {
  if (!t->set->output) return draw(t, id, BB_DRAW_JSON, stdout);
  char *name = with_ending(t->set->output, ".json");
  int code = name ? draw_to_file(t, id, BB_DRAW_JSON, name) : EXIT_REFUSED;
  free(name);
  return code;
}

/* The stage whose graphs are wanted. */
static bb_stage wanted_stage(const settings *set) {
  if (set->stage >= 0) return (bb_stage)set->stage;
  if (set->step >= 0) return BB_STAGE_PARTITION;
  return set->unfused ? BB_STAGE_BLOCK : BB_STAGE_FUSED;
}

static int choose_graph(tool *t, bb_graph_id *id) {
  *id = (bb_graph_id){0, BB_SNAPSHOT_CHOSEN};
  if (t->set->unfused) id->snapshot = BB_SNAPSHOT_UNFUSED;
  if (t->set->snapshot >= 0) id->snapshot = (uint32_t)t->set->snapshot;
  bb_program_info info;
  bb_program_get_info(t->program, &info);
  if (info.stage < BB_STAGE_PARTITION || t->set->step >= 0) return EXIT_GOOD;
  if (!find_candidate(t, &id->candidate)) return EXIT_WRONG_CALL;
  bb_candidate_info candidate;
  if (!t->set->candidate && !t->set->quiet && info.candidates > 1 &&
      bb_program_get_candidate(t->program, id->candidate, &candidate))
    fprintf(stderr, "blockbuster: drawing %s, one of %u; --candidate takes another\n",
            candidate.name, info.candidates);
  return EXIT_GOOD;
}

static int prepare(tool *t, bb_graph_id *id) {
  int code = advance(t, wanted_stage(t->set), NULL);
  return code == EXIT_GOOD ? choose_graph(t, id) : code;
}

int dot_main(tool *t) {
  bb_graph_id id;
  const char *name = t->set->output;
  int code = prepare(t, &id);
  if (code != EXIT_GOOD) return code;
  if (t->set->json && !name) return draw_json(t, id);
  if (!name || has_ending(name, ".dot") || has_ending(name, ".gv"))
    code = draw_to_file(t, id, BB_DRAW_DOT, name);
  else if (has_ending(name, ".svg") || has_ending(name, ".png"))
    code = draw_picture(t, id, strrchr(name, '.') + 1);
  else {
    fprintf(stderr, "blockbuster: %s: a picture is .dot, .svg or .png\n", name);
    return EXIT_WRONG_CALL;
  }
  if (code != EXIT_GOOD || !t->set->json) return code;
  if (t->set->step >= 0) {
    bb_program_destroy(t->program);
    t->program = NULL;
    code = load(t);
    if (code == EXIT_GOOD) code = prepare(t, &id);
  }
  return code == EXIT_GOOD ? draw_json(t, id) : code;
}
