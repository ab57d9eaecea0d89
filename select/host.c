/* host.c - the machine that this process runs on, as far as the system tells: nothing is timed.
 */
#define _GNU_SOURCE
#include "../graph/processor.h"
#include "machine.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

uint32_t bb_host_units(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count < 1 ? 1 : count > BB_HOST_UNITS ? BB_HOST_UNITS : (uint32_t)count;
}

uint32_t bb_host_vector_bytes(void) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx")) return 32;
#endif
  return 16;
}

/* A number, and K or M behind it, in a file of the first processor's cache; 0: there is none. */
static double cache_file(int index, const char *name) {
  char path[96], unit = 0;
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  long number = 0;
  int read = fscanf(file, "%ld%c", &number, &unit);
  fclose(file);
  if (read < 1 || number < 0) return 0;
  return (double)number * (unit == 'K' ? 1024 : unit == 'M' ? 1048576 : 1);
}

/* The kernel knows what a processor shares; the C library may tell all that a package has, 320 MB where a
 * processor reaches 32. */
double bb_host_cache(int level, double otherwise) {
  enum { INDICES = 8 };
  for (int i = 0; i < INDICES; i++) {
    if (cache_file(i, "level") != level) continue;
    double size = cache_file(i, "size");
    if (size > 0) return size;
  }
  long size = sysconf(level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE);
  return size > 0 ? (double)size : otherwise;
}

/* Vectors so many times as wide do as much more at once. */
static void take_vectors(bb_machine *machine, double times) {
  machine->vector_bytes *= times;
  machine->grain_col *= times;
  machine->special *= times;
  double *const rate[] = {&machine->dot_f64,    &machine->dot_f32,    &machine->dot_f16,
                          &machine->vector_f64, &machine->vector_f32, &machine->vector_f16};
  for (size_t i = 0; i < sizeof rate / sizeof *rate; i++) *rate[i] *= times;
}

double bb_host_bytes_rate(double dot_f32) {
  enum { BYTES_IN_A_FLOAT = 4 };
  return bb_processor_has_bytes() ? BYTES_IN_A_FLOAT * dot_f32 : 0;
}

const bb_machine *bb_machine_host(bb_arena *arena) {
  const bb_machine *assumed = bb_machine_get(0);
  bb_machine *machine = BB_NEW(arena, bb_machine, 1);
  *machine = *assumed;
  machine->name = "host";
  machine->units = bb_host_units();
  machine->cache_bytes = bb_host_cache(3, assumed->cache_bytes);
  machine->local_bytes = bb_host_cache(2, assumed->local_bytes);
  take_vectors(machine, bb_host_vector_bytes() / assumed->vector_bytes);
  machine->dot_i32 = bb_host_bytes_rate(machine->dot_f32);
  return machine;
}
