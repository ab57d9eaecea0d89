/* machine.h - what a kernel's price depends on: a machine as a table of numbers.
 *
 * A machine has equal units (multiprocessors, compute units, cores) that work at once, a memory, a
 * cache that all units share, and in each unit a local memory for tiles that were loaded and
 * registers for what was computed.  machine_field.def says what each number means and its unit; the
 * files of machines/ hold one machine each, and a machine can be read from a file of the same
 * numbers.
 */
#ifndef BB_SELECT_MACHINE_H
#define BB_SELECT_MACHINE_H

#include "../graph/type.h"

typedef struct bb_machine {
  const char *name;   /* of the description, such as "h200" */
  const char *target; /* what is compiled for: "cpu", "sm_90a", "gfx942", ... */
#define BB_FIELD(id, unit, description) double id;
#include "machine_field.def"
#undef BB_FIELD
} bb_machine;

/* A description that comes with the library: 0 and up; NULL beyond the last. */
const bb_machine *bb_machine_get(uint32_t index);

/* The machine that this process runs on, named "host": what the system tells (processors that the
 * process may use, sizes of caches), else as "cpu" has it, with rates as much higher or lower as
 * its vectors are wider or narrower. */
const bb_machine *bb_machine_host(bb_arena *arena);
enum { BB_HOST_UNITS = 256 };        /* at most */
uint32_t bb_host_units(void);        /* processors that the process may use */
uint32_t bb_host_vector_bytes(void); /* of the widest vectors of floats that its processor has */
/* Of products of bytes, by that of products of f32: bb_machine.dot_i32. */
double bb_host_bytes_rate(double dot_f32);
/* Bytes of the cache of level 2 or 3. */
double bb_host_cache(int level, double otherwise);

/* By name, "host" among them; or, if there is none and it names a file, from there.  NULL: what the
 * environment variable BLOCKBUSTER_MACHINE names, else "host"; so with "".  Fails the context if
 * there is neither or the file is wrong; the message names the line. */
const bb_machine *bb_machine_find(bb_arena *arena, const char *name_or_path);

/* As text: one line a field.  Reads back to an equal machine. */
void bb_machine_print(bb_buffer *out, const bb_machine *machine);
/* `place` is for messages. */
const bb_machine *bb_machine_parse(bb_arena *arena, const char *place, const char *text);

/* Operations a second of one unit: dot (a multiply-add is two) and arithmetic. */
double bb_machine_dot_rate(const bb_machine *machine, bb_dtype dtype);
double bb_machine_vector_rate(const bb_machine *machine, bb_dtype dtype);

#endif
