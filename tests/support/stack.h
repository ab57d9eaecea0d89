/* stack.h - a model of n transformer blocks that differ in shapes and constants and share one mask
 * and one rotary table: what long conversions are measured and failed on.
 */
#ifndef BB_TESTS_STACK_H
#define BB_TESTS_STACK_H

#include "model.h"

/* The bytes of an ONNX model with input x[1, 24, 32] and output y of the same shape. */
bb_buffer stack_model(bb_arena *arena, uint32_t blocks);

#endif
