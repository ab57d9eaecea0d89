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

#endif
