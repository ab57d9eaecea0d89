/* convert.c - blockbuster convert: a model as text, at any stage.
 */
#include "tool.h"

int convert_main(tool *t) {
  bb_stage stage = t->set->stage < 0 ? BB_STAGE_BLOCK : (bb_stage)t->set->stage;
  if (stage < bb_program_stage(t->program)) {
    fprintf(stderr, "blockbuster: %s is at stage %s already, beyond %s\n", t->set->model,
            bb_stage_name(bb_program_stage(t->program)), bb_stage_name(stage));
    return EXIT_WRONG_CALL;
  }
  int code = advance(t, stage, NULL);
  if (code == EXIT_GOOD) code = report(t, write_program(t->program, t->set->output));
  return code;
}
