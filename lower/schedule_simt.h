/* schedule_simt.h - block sizes for kernels whose tiles lie in the registers of plain threads. */
#ifndef BB_LOWER_SCHEDULE_SIMT_H
#define BB_LOWER_SCHEDULE_SIMT_H

#include "schedule.h"

/* As bb_schedule(), for emit_simt.h: the largest blocks that leave tiles in registers and the processors of
 * a device something to do each.  block: sizes to begin with, per dim, 0 or NULL: by the dims' use.  room: as in
 * bb_schedule_options. */
const bb_kernel *bb_schedule_simt(bb_program *program, const bb_graph *graph, const char *name,
                                  const int64_t *block, uint32_t processors, const bb_room *room);

#endif
