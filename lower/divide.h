/* divide.h - blocks are multiplied where they would be divided by rows, columns or a number. */
#ifndef BB_LOWER_DIVIDE_H
#define BB_LOWER_DIVIDE_H

#include "tile.h"

/* In place (divide.c says where, and why no quotient overflows that did not). */
void bb_tile_divide(bb_tile_program *program);

#endif
