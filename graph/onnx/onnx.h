/* onnx.h - reads an ONNX model into an array program.
 *
 * Opsets 13 to 28 of the default domain, com.microsoft where exports use it, model-local functions,
 * weights inside the file or beside it.  Every operator has one row in operator.def; those without
 * a row or a reference kernel are refused, all of them in one message.
 */
#ifndef BB_GRAPH_ONNX_H
#define BB_GRAPH_ONNX_H

#include "../array/array.h"

/* Reads the model file `path` and sets program->array.  External data is looked up beside the file
 * and nowhere else.  The file stays mapped as long as the program lives.  Fails the context with
 * BB_ERROR_INPUT or BB_ERROR_UNSUPPORTED and the names of the nodes at fault. */
bb_array *bb_onnx_read(bb_program *program, const char *path);

/* The same for a model in memory; `folder` holds its external data (NULL: there is none).  The
 * bytes are not needed after the call. */
bb_array *bb_onnx_read_bytes(bb_program *program, const void *bytes, size_t length,
                             const char *folder);

/* What the reader supports, for `info` and the documentation. */
typedef struct bb_onnx_operator {
  const char *domain; /* "" is ai.onnx */
  const char *name;
  uint32_t since; /* first opset, from 13 on, with the form that this row reads */
  bool misc;      /* runs as a reference kernel, not as a block program */
} bb_onnx_operator;

/* Row `index` of the table, false beyond its end. */
bool bb_onnx_operator_get(uint32_t index, bb_onnx_operator *row);

#endif
