/* on_device.h - runs of a fused program on a device, for tests: compiled, a session, arrays there and back. */
#ifndef ON_DEVICE_H
#define ON_DEVICE_H

#include "../../runtime/bind.h"
#include "../../runtime/compile/compile.h"

enum { ON_DEVICE_RUNS = 3 }; /* step by step, noted and replayed, replayed */

/* Runs it so often with the same arrays; outputs of the last run are bound in `out`, whose inputs are those of `in`.
 * *info says what the model is, *interpreted how many nodes have no kernel.  Fails the program's context. */
void run_on_device(bb_program *program, const char *device, const bb_compile_way *way,
                   const bb_binding *in, bb_binding *out, bb_model_info *info,
                   uint32_t *interpreted);

#endif
