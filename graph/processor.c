/* processor.c - what the processor of this process has that the system is asked for. */
#define _GNU_SOURCE
#include "processor.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kernels have both by vectors of AVX-512 as well. */
static bool has_instructions(void) {
  enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, OSXSAVE = 1 << 27 };
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE)) return false;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) && (d & AMX_TILE);
}

bool bb_processor_has_tiles(void) {
  enum { ASK = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
  return has_instructions() && syscall(SYS_arch_prctl, ASK, TILES) == 0;
}

bool bb_processor_has_bytes(void) {
  enum { AVX512_VNNI = 1 << 11, AVX_VNNI = 1 << 4 };
  unsigned a, b, c, d;
  if (!__builtin_cpu_supports("avx2")) return false;
  if (__builtin_cpu_supports("avx512f"))
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & AVX512_VNNI);
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & AVX_VNNI);
}
#else
bool bb_processor_has_tiles(void) {
  return false;
}

bool bb_processor_has_bytes(void) {
  return false;
}
#endif
