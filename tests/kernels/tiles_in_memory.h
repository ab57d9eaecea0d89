/* tiles_in_memory.h - the tiles of lower/device/cpu_tiles.h as arrays: for processors with AVX-512 and without units for them.  Included
 * before the device library, where __AMX_TILE__ and __AMX_BF16__ are defined.
 */
#ifndef TILES_IN_MEMORY_H
#define TILES_IN_MEMORY_H

#include <stdint.h>
#include <string.h>

typedef union tile_in_memory {
  float sum[16][16];
  uint16_t
      half[16][32]; /* bf16: of the right operand line k has numbers 2k and 2k + 1 of each column */
} tile_in_memory;

static __attribute__((unused)) __thread tile_in_memory tile_in_memory_of[8];

static inline float tile_number(uint16_t bf16) {
  uint32_t bits = (uint32_t)bf16 << 16;
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* As the unit sums: first and second numbers of pairs by themselves, from zero. */
static inline __attribute__((unused)) void tile_dot(tile_in_memory *sum, const tile_in_memory *a,
                                                    const tile_in_memory *b) {
  for (int i = 0; i < 16; i++) {
    float part[2][16] = {{0}};
    for (int k = 0; k < 32; k++)
      for (int j = 0; j < 16; j++)
        part[k % 2][j] += tile_number(a->half[i][k]) * tile_number(b->half[k / 2][2 * j + k % 2]);
    for (int j = 0; j < 16; j++) sum->sum[i][j] += part[0][j] + part[1][j];
  }
}

static inline __attribute__((unused)) void tile_store(const tile_in_memory *from, float *to,
                                                      int64_t pitch) {
  for (int i = 0; i < 16; i++) memcpy(to + i * pitch, from->sum[i], sizeof from->sum[i]);
}

#define BB_TILE_LOAD(tile, from) memcpy(&tile_in_memory_of[tile], from, sizeof(tile_in_memory))
#define BB_TILE_STORE(tile, to, pitch) tile_store(&tile_in_memory_of[tile], to, pitch)
#define BB_TILE_ZERO(tile) memset(&tile_in_memory_of[tile], 0, sizeof(tile_in_memory))
#define BB_TILE_DOT(sum, a, b)                                                                     \
  tile_dot(&tile_in_memory_of[sum], &tile_in_memory_of[a], &tile_in_memory_of[b])

static inline __attribute__((unused)) void bb_tiles_begin(void) {}
static inline __attribute__((unused)) void bb_tiles_end(void) {}

#endif
