/* idle.h - what the driver that does nothing was asked for (idle.c). */
#ifndef IDLE_H
#define IDLE_H

#include "../../runtime/gpu/driver.h"

/* By BB_GPU_CALL_..., those that a run may make. */
extern long idle_calls[BB_GPU_CALLS];

#endif
