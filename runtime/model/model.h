/* model.h - a compiled model in memory, and what sessions see of it.
 */
#ifndef BB_MODEL_MODEL_H
#define BB_MODEL_MODEL_H

#include "../device.h"
#include "../interp/interp.h"
#include "plan.h"

#include <stdatomic.h>

/* What runs steps that have no kernel: a hook, for the small library has no interpreter.  Each fails the
 * context of `open`. */
typedef struct bb_interpreted bb_interpreted;
typedef struct bb_interpreter {
  bb_interpreted *(*open)(bb_context *context, const char *program);
  /* symbol: the plan's first.  Values: of the operands and results of the step; results get their data in `arena`. */
  void (*run)(bb_interpreted *step, bb_arena *arena, const int64_t *symbol, const bb_misc_value *in,
              bb_misc_value *out);
  void (*close)(bb_interpreted *step);
} bb_interpreter;

struct bb_model {
  atomic_uint holders;
  bb_context *home; /* memory only: its allocator is that of the context the model was made in */
  bb_plan *plan;
  const bb_device_class *class;
  uint32_t number;                   /* the device's, of its class */
  const bb_interpreter *interpreter; /* NULL: there is none */
  bb_device *device;
  bb_module *module;
  void *data; /* constants: mapped, or memory of the device */
  size_t data_bytes;
  bool mapped, cached;
  void **once;       /* by tensor: constants, and what was computed at load */
  uint32_t *side[2]; /* tensors that are inputs, outputs */
  uint32_t sides[2];
  bb_tensor_info *info;         /* by tensor */
  bb_setting **chosen_at;       /* by variant, then by extent */
  const bb_region_info *region; /* by cell of the table */
};

/* Where a model's parts lie. */
typedef struct bb_model_parts {
  const char *text; /* the plan */
  size_t length;
  const bb_device_class *class; /* NULL: by the plan's name for it */
  uint32_t number;              /* of the device */
  bb_code code;                 /* nothing where there are no kernels */
  bool cached;                  /* bb_model_info */
  const bb_interpreter *interpreter;
  const char *place;       /* for messages */
  int data_file;           /* with the constants, or -1: */
  const void *const *data; /* by tensor of the plan: bytes of each constant */
} bb_model_parts;

/* Fails the context.  Runs what depends on constants only. */
bb_model *bb_model_make(bb_context *context, const bb_model_parts *parts);

/* A session that runs the steps of load time, by model.c alone. */
void bb_session_run_once(bb_context *context, bb_model *model);

/* Whether a step runs on the model's device; else a session's lab runs it. */
bool bb_model_launches(const bb_model *model, uint32_t step);

/* Operands of steps that are no kernels of the device, and how such run (misc_step.c). */
typedef struct bb_lab bb_lab;
bb_lab *bb_lab_create(bb_context *context, const bb_model *model);
void bb_lab_destroy(bb_lab *lab);
typedef struct bb_lab_call {
  uint32_t step;     /* its number */
  int64_t *symbol;   /* what the step tells is put here, where the most that it can be stood */
  void *const *data; /* by tensor: in the processor's memory */
  bb_queue *queue;
} bb_lab_call;
/* Fails the context; keeps what memory it took for the next run. */
void bb_lab_run(bb_lab *lab, bb_context *context, const bb_lab_call *call);

/* On the processor: copies rank axes of elements between layouts; strides in elements. */
void bb_copy_strided(uint32_t rank, const int64_t *shape, size_t element, char *to,
                     const int64_t *to_stride, const char *from, const int64_t *from_stride);

/* Which variant runs where, by cell of the table; names are those of `symbol`, all else is in the arena. */
bb_region_info *bb_plan_regions(const bb_plan_table *table, const char *const *symbol,
                                bb_arena *arena);

#endif
