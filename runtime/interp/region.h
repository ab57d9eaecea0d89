/* region.h - where regions of interest look at a map, one axis at a time: a region is cut into bins, a bin into samples, and
 * a sample lies between two elements.  Reference and native kernels share this, since the last digit decides how many
 * samples there are and which are inside.
 *
 * Numbers are rounded as the type of the corners is: floats, or doubles where `wide` says so.
 */
#ifndef BB_INTERP_REGION_H
#define BB_INTERP_REGION_H

#include "misc.h"

enum { BB_REGION_SAMPLES = 1024 }; /* most that a model may ask for along an axis of a bin */

/* What the node says of all regions. */
typedef struct bb_regions {
  int64_t bins[2];      /* high, wide */
  int64_t samples;      /* along each axis of a bin; 0: as many as the bin is long */
  double scale;         /* of corners */
  bool max, half, wide; /* half: elements lie in the middle of what corners count */
} bb_regions;

/* A region along one axis. */
typedef struct bb_region {
  double first, bin,
      samples; /* where it begins, how long a bin is, how many samples that has; may be less than 1 */
  int64_t extent; /* of the map */
  bool wide;
} bb_region;

/* What lies before and behind a sample, and what part each has. */
typedef struct bb_region_sample {
  int64_t at[2];
  double part[2];
} bb_region_sample;

/* Attributes of a RoiAlign; fails where they are out of range. */
void bb_regions_read(const bb_kernel *k, bb_regions *r);
/* A region's corners (x, y, x, y) along axis 0, y, or 1, x.  False: it is too large for samples to be told apart. */
bool bb_region_along(const bb_regions *r, int axis, const double *corner, int64_t extent,
                     bb_region *region);
/* Samples *from .. *to - 1 of a bin may be inside the map: at most as many as the model asks for, or 2 * extent + 8. */
void bb_region_span(const bb_region *r, int64_t bin, int64_t *from, int64_t *to);
/* False: it is outside the map. */
bool bb_region_at(const bb_region *r, int64_t bin, int64_t sample, bb_region_sample *s);

#endif
