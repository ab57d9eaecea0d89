/* compile.h - fused programs compiled for the processor.
 */
#ifndef BB_COMPILE_COMPILE_H
#define BB_COMPILE_COMPILE_H

#include "../../graph/program.h"

/* Fails the program's context. */
bb_model *bb_compile(bb_program *program, const bb_compile_options *options);

#endif
