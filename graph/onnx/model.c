/* model.c - from a file to an array program: versions, the graph, and what could not be converted. */
#include "onnx.h"
#include "import.h"

#include <string.h>

static void check_versions(bb_context *ctx, const Onnx__ModelProto *model) {
  if (model->ir_version < BB_ONNX_IR_FIRST || model->ir_version > BB_ONNX_IR_LAST)
    bb_fail(ctx, BB_ERROR_INPUT, "the model has IR version %lld; %d to %d are read",
            (long long)model->ir_version, BB_ONNX_IR_FIRST, BB_ONNX_IR_LAST);
  for (size_t i = 0; i < model->n_opset_import; i++) {
    const Onnx__OperatorSetIdProto *set = model->opset_import[i];
    bool standard = !set->domain || !set->domain[0] || strcmp(set->domain, "ai.onnx") == 0;
    bool read = set->version >= BB_ONNX_OPSET_FIRST && set->version <= BB_ONNX_OPSET_LAST;
    if (standard && !read)
      bb_fail(ctx, BB_ERROR_INPUT, "the model uses opset %lld; %d to %d are read",
              (long long)set->version, BB_ONNX_OPSET_FIRST, BB_ONNX_OPSET_LAST);
  }
  if (!model->graph) bb_fail(ctx, BB_ERROR_INPUT, "the model has no graph");
}

static void import(bb_context *ctx, void *argument) {
  (void)ctx;
  bb_onnx *m = argument;
  m->array = bb_array_create(m->program);
  bb_onnx_import_graph(m);
}

/* What is taken for granted once a model cannot be converted without. */
typedef struct granted {
  bool at_word, uncut, in_place;
} granted;

/* With what was found out of names, unless they may now mean something else. */
static void begin_anew(bb_onnx *m, bool keep, granted g) {
  bb_onnx fresh = {.program = m->program, .ctx = m->ctx, .arena = m->arena, .folder = m->folder};
  if (keep) fresh.ties = m->ties, fresh.bounds = m->bounds;
  fresh.model = m->model;
  fresh.refusals.arena = m->arena;
  fresh.at_word = g.at_word;
  fresh.uncut = g.uncut;
  fresh.in_place = g.in_place;
  *m = fresh;
  bb_array_drop(m->program);
  bb_program_clear(m->program);
}

/* Again for every extent that turns out to be another one, where it was found only on the way how much one is at least, and once more from the start where lengths of slices that
 * depend on whether an axis is too short fit nothing: they are then taken at their word.  Likewise where lengths that the model cuts to a number do, or open axes of reshapes
 * are quotients that fit nothing. */
static void import_until_tied(bb_onnx *m) {
  bb_context *ctx = m->ctx;
  for (;;) {
    bb_status status = bb_protect(ctx, import, m);
    if (status == BB_OK && !m->unsupported) return;
    bool input = status == BB_OK || status == BB_ERROR_INPUT || status == BB_ERROR_UNSUPPORTED;
    if (m->again || (m->learned && input)) {
      begin_anew(m, true, (granted){m->at_word, m->uncut, m->in_place});
    } else if (m->clamps && input) {
      bb_log(ctx, BB_LOG_INFO, "slices are taken at their word, axes to be as long as they say");
      begin_anew(m, false, (granted){true, m->uncut, m->in_place});
    } else if (m->cuts && input) {
      bb_log(ctx, BB_LOG_INFO, "lengths that the model cuts to a number are no more than that");
      begin_anew(m, false, (granted){m->at_word, true, m->in_place});
    } else if (m->divides && input) {
      bb_log(ctx, BB_LOG_INFO,
             "numbers of shapes are taken for the lengths of axes in their place");
      begin_anew(m, false, (granted){.in_place = true});
    } else if (status == BB_OK) {
      return;
    } else {
      bb_fail(ctx, status, "%s", bb_context_message(ctx));
    }
  }
}

bb_array *bb_onnx_read_bytes(bb_program *program, const void *bytes, size_t length,
                             const char *folder) {
  bb_context *ctx = program->ctx;
  bb_arena *arena = bb_scratch(ctx);
  bb_onnx m = {.program = program, .ctx = ctx, .arena = arena, .folder = folder};
  m.refusals.arena = arena;
  /* Names and weights of the message are used by the program. */
  m.model = bb_onnx_unpack(program->arena, bytes, length, &onnx__model_proto__descriptor);
  check_versions(ctx, m.model);
  import_until_tied(&m);
  if (m.unsupported)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%u node%s of the model cannot be converted:%s",
            m.unsupported, m.unsupported == 1 ? "" : "s", m.refusals.data);
  program->array = m.array;
  program->stage = BB_STAGE_ARRAY;
  bb_scratch_end(arena);
  return program->array;
}

bb_array *bb_onnx_read(bb_program *program, const char *path) {
  uint64_t length;
  const void *bytes = bb_program_map_whole(program, path, &length);
  const char *slash = strrchr(path, '/');
  bb_arena *arena = program->arena;
  const char *folder = !slash          ? "."
                       : slash == path ? "/"
                                       : bb_arena_text(arena, path, (size_t)(slash - path));
  return bb_onnx_read_bytes(program, bytes, (size_t)length, folder);
}
