/* gpu.h - GPUs of NVIDIA's and AMD's: as devices of compiled models, as machines that prices are for, and as targets of
 * source.
 *
 * The driver and the compiler (NVRTC, hipRTC) are loaded when a device is opened, so a program linked with
 * this runs on machines without either; there opening fails with BB_ERROR_UNSUPPORTED and says what is missing.
 */
#ifndef BB_GPU_GPU_H
#define BB_GPU_GPU_H

#include "../../graph/program.h"
#include "../../select/machine.h"
#include "../device.h"
#include "driver.h"

const bb_device_class *bb_gpu_class(const bb_gpu_api *api);
/* One that is open, as what kernels are made for; lives as long as it. */
const bb_gpu_target *bb_gpu_target_of(const bb_device *device);

/* A device as prices see it.  Fails as opening does where there is none. */
const bb_machine *bb_gpu_describe(const bb_gpu_api *api, bb_arena *arena, uint32_t device);

/* What kernels are made for, of a device that such a machine describes. */
bb_gpu_target bb_gpu_supposed(const bb_machine *machine, const char *target);
/* One of which no more is known than its target, such as "gfx942"; NULL: there is no such target. */
const bb_machine *bb_gpu_suppose(bb_arena *arena, const char *target);

/* Writes what a device of that target would be given of a fused program into a folder, which is made if it is not
 * there: the kernels' source, the device library, and launches.json: threads and shared memory of each function's blocks. */
void bb_gpu_write(bb_program *program, const char *target, const char *folder);

#endif
