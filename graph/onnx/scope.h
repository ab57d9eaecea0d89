/* scope.h - where a node stands: a graph, a branch, or the body of a function being inlined. */
#ifndef BB_ONNX_SCOPE_H
#define BB_ONNX_SCOPE_H

#include "import.h"

struct bb_onnx_frame {
  const bb_onnx_frame *outer; /* the graph a branch stands in; for attributes, also the call's */
  const bb_onnx_node *call;   /* a function's body: the node that calls it */
  const Onnx__FunctionProto *function;
  uint32_t defaults; /* of the function's attributes */
  Onnx__AttributeProto **fallback;
  size_t imports; /* opsets, in a function its own */
  Onnx__OperatorSetIdProto **import;
  bb_intern *names; /* of name_entry: the values defined so far */
  uint32_t depth;   /* of inlining */
};

typedef struct bb_onnx_name {
  const char *name;
  bb_onnx_value *value; /* NULL: an optional input that was left out */
  uint32_t node;        /* in a table of producers */
} bb_onnx_name;

typedef Onnx__NodeProto *const *bb_onnx_nodes;

static inline const char *bb_onnx_text_of(const char *text) {
  return text ? text : "";
}

/* --- order.c --- */

/* A table of names, empty. */
bb_intern *bb_onnx_names(bb_onnx *m);
/* What a name stands for in a frame, or around it if it is a branch; NULL: nothing. */
const bb_onnx_name *bb_onnx_lookup(const bb_onnx_frame *frame, const char *name);
/* Refuses a name that is taken. */
void bb_onnx_define(bb_onnx *m, const bb_onnx_frame *frame, const char *name, bb_onnx_value *value);
/* What messages call a node: its name, or its first output's where it has none. */
const char *bb_onnx_node_label(bb_onnx *m, const Onnx__NodeProto *proto);
/* The nodes that the wanted values need, producers first; gives their number. */
uint32_t bb_onnx_sort(bb_onnx *m, const bb_onnx_frame *frame, bb_onnx_nodes node, size_t count,
                      size_t wanted, const char *const *want, uint32_t **sorted);

/* --- scope.c --- */

void bb_onnx_note_functions(bb_onnx *m);
/* Counts a node, or a graph within one that is converted again; refuses more than a model may
 * have. */
void bb_onnx_count_node(const bb_onnx_node *n);
/* Converts what the wanted values need; they are then defined in the frame. */
void bb_onnx_convert_nodes(bb_onnx *m, const bb_onnx_frame *frame, bb_onnx_nodes node, size_t count,
                           size_t wanted, const char *const *want);

#endif
