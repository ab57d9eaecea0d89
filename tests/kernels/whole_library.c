/* whole_library.c - all that kernels of a processor and their products are compiled from (lower/device/cpu.h): for a processor that need not
 * be this one.
 */
#define BB_PRODUCTS_F32
#define BB_PRODUCTS_F64
#define BB_PRODUCTS_I32
#include "bb_cpu.h"
