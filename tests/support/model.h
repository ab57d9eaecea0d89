/* model.h - writes ONNX models in memory, straight in the wire format of protobuf, so that tests do
 * not depend on the code that reads it.
 */
#ifndef BB_TESTS_MODEL_H
#define BB_TESTS_MODEL_H

#include "../../graph/context.h"

enum { MODEL_FLOAT = 1, MODEL_INT32 = 6, MODEL_INT64 = 7, MODEL_BOOL = 9 };

typedef struct model {
  bb_arena *arena;
  bb_buffer graph; /* fields of GraphProto, as they are added */
  uint32_t names;
} model;

model model_start(bb_arena *arena);

/* A fresh name. */
const char *model_name(model *m);
/* name[shape]: text such as "2,S,64"; numbers are fixed extents, other words symbols. */
void model_input(model *m, const char *name, int dtype, const char *shape);
void model_output(model *m, const char *name, int dtype, const char *shape);
const char *model_floats(model *m, uint32_t rank, const int64_t *shape, const float *data);
const char *model_ints(model *m, uint32_t count, const int64_t *data); /* an i64 vector */

/* Attributes in text: "axis=-1 epsilon=1e-05f perm=0,2,1,3" (a float ends in f; a lone number in an
 * ints attribute ends in a comma). */
typedef struct model_node {
  const char *op;
  uint32_t nin, nout;
  const char *in[8], *out[8];
  const char *attributes;
} model_node;

void model_add(model *m, const model_node *node);
/* One result under a fresh name, which is returned; unused operands NULL. */
const char *model_op(model *m, const char *op, const char *attributes, const char *a, const char *b,
                     const char *c);

/* The finished ModelProto. */
bb_buffer model_finish(model *m, int64_t opset);

#endif
