/* device_library.h - of the device tile library, what a source uses.
 *
 * Kernels name a few of the library's 300 functions, and a compiler takes longer to read all of them than to compile a
 * small kernel.  The library is preprocessed once; then every source gets the declarations that it names, those that
 * these name, and the macros that the source names itself.  Nothing here knows what the library has.
 */
#ifndef BB_CPU_DEVICE_LIBRARY_H
#define BB_CPU_DEVICE_LIBRARY_H

#include "../../graph/context.h"

/* Text in `arena`, NUL-terminated: declarations in the library's order, then macros.
 * library: what a compiler's -E -dD -P made of it (`length` characters); source: C that includes what is returned, NUL-terminated.
 * Whole where the library cannot be taken apart, or the source uses a macro that pastes names. */
const char *bb_cpu_library_for(bb_arena *arena, const char *library, size_t length,
                               const char *source);

#endif
