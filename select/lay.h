/* lay.h - inside select/: arrays laid out as products read them (lay.c). */
#ifndef BB_SELECT_LAY_H
#define BB_SELECT_LAY_H

#include "flow.h"

/* The axis of the items of `type` that a level over the dim cuts; BB_AXIS_NONE: none does. */
bb_axis bb_lay_axis_over(const bb_type *type, bb_dim dim);
bool bb_lay_has_product(const bb_graph *graph);
/* By tensor: its order is the program's, or a misc node's. */
bool *bb_lay_find_fixed(const bb_program *program, bb_arena *scratch);

void bb_lay_padded(bb_program *program, bb_arena *scratch);    /* lay_padded.c */
void bb_lay_constants(bb_program *program, bb_arena *scratch); /* lay_constants.c */
void bb_lay_locals(bb_program *program, bb_arena *scratch);    /* lay_locals.c */

#endif
