/* program_key.h - what decides what a program becomes, as text for keys of what is kept on disk.
 */
#ifndef BB_PROGRAM_KEY_H
#define BB_PROGRAM_KEY_H

#include "../../graph/program.h"

/* What made the program that compiles: what another build has kept is not this one's. */
void bb_key_put_build(bb_buffer *out, const char *what);

/* A program as it stands: its text, and the values of constants that analyses look at, which the text names by place only. */
void bb_key_put_program(bb_buffer *out, const bb_program *program);

#endif
