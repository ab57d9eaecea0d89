/* fake_map.h - what a tensor map of the tests' driver says: read where boxes are copied (host_copy.hpp). */
#ifndef FAKE_MAP_H
#define FAKE_MAP_H

#include <stdint.h>

enum { FAKE_MAP_RANK = 5, FAKE_MAP_MARK = 0x6d6170 };

/* Innermost axis first; elements of two bytes, and the 128-byte swizzle. */
typedef struct fake_map {
  uint32_t mark, rank;
  uint64_t data;                /* the address of element 0 */
  uint64_t step[FAKE_MAP_RANK]; /* bytes from an element to the next along an axis */
  uint32_t size[FAKE_MAP_RANK]; /* elements along it */
  uint16_t box[FAKE_MAP_RANK];  /* of these so many are copied */
} fake_map;

#endif
