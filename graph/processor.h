/* processor.h - what the processor of this process has that the system is asked for.
 */
#ifndef BB_GRAPH_PROCESSOR_H
#define BB_GRAPH_PROCESSOR_H

#include <stdbool.h>

/* Units that multiply tiles of bf16 (AMX), which this process may use: asks for the permission,
 * which all of its threads have from then on. */
bool bb_processor_has_tiles(void);
/* Units that sum products of bytes in vectors of the widest floats (VNNI). */
bool bb_processor_has_bytes(void);

#endif
