/* misc_region.c - reference kernels that look at regions of interest of a map: averages and maxima of bins.
 */
#include "region.h"

#include <math.h>
#include <string.h>

/* --- one axis --- */

enum { TOLD_APART = 1 << 22 }; /* samples of a bin: floats still hold halves of their numbers */

static double rounded(bool wide, double number) {
  return wide ? number : (double)(float)number;
}

bool bb_region_along(const bb_regions *r, int axis, const double *corner, int64_t extent,
                     bb_region *region) {
  const bool wide = r->wide;
  const double half = r->half ? 0.5 : 0, bins = (double)r->bins[axis];
  double first = rounded(wide, rounded(wide, corner[1 - axis] * r->scale) - half);
  double last = rounded(wide, rounded(wide, corner[3 - axis] * r->scale) - half);
  double length = rounded(wide, last - first);
  if (!r->half && length < 1) length = 1;
  double bin = rounded(wide, length / bins);
  *region = (bb_region){.first = first, .bin = bin, .extent = extent, .wide = wide};
  region->samples = r->samples ? (double)r->samples : ceil(bin);
  return !(region->samples > TOLD_APART);
}

/* As many as a bin is long are at least half an element apart. */
void bb_region_span(const bb_region *r, int64_t bin, int64_t *from, int64_t *to) {
  const double step = r->bin / r->samples, extent = (double)r->extent;
  *from = 0;
  *to = r->samples > 0 ? (int64_t)r->samples : 0;
  if (r->samples <= 2 * extent + 8 || !(step > 0.25)) return;
  double begin = r->first + (double)bin * r->bin;
  double before = floor((-1 - begin) / step) - 2, behind = ceil((extent - begin) / step) + 2;
  *from = before > 0 ? (int64_t)fmin(before, r->samples) : 0;
  *to = behind > (double)*from ? (int64_t)fmin(behind, r->samples) : *from;
}

bool bb_region_at(const bb_region *r, int64_t bin, int64_t sample, bb_region_sample *s) {
  const bool wide = r->wide;
  double begin = rounded(wide, r->first + rounded(wide, (double)bin * r->bin));
  double within = rounded(wide, rounded(wide, ((double)sample + 0.5) * r->bin) / r->samples);
  double at = rounded(wide, begin + within), last = (double)r->extent - 1;
  if (r->extent < 1 || !(at >= -1 && at <= (double)r->extent)) return false;
  at = fmin(fmax(at, 0), last);
  s->at[0] = (int64_t)at;
  s->at[1] = s->at[0] + (s->at[0] < r->extent - 1);
  s->part[1] = rounded(wide, at - (double)s->at[0]);
  s->part[0] = rounded(wide, 1 - s->part[1]);
  return true;
}

/* --- all of them --- */

static _Noreturn void refuse(const bb_kernel *k, const char *what) {
  bb_fail(k->ctx, BB_ERROR_INPUT, "%s", what);
}

static bool is_sane(int64_t bins) {
  return bins > 0 && bins < (int64_t)1 << 30;
}

void bb_regions_read(const bb_kernel *k, bb_regions *r) {
  const char *mode = bb_misc_text(k, "mode", "avg");
  const char *corners = bb_misc_text(k, "coordinate_transformation_mode", "half_pixel");
  *r = (bb_regions){.bins = {bb_misc_int(k, "output_height", 1), bb_misc_int(k, "output_width", 1)},
                    .samples = bb_misc_int(k, "sampling_ratio", 0),
                    .scale = bb_misc_float(k, "spatial_scale", 1),
                    .max = strcmp(mode, "max") == 0,
                    .half = strcmp(corners, "half_pixel") == 0};
  if (!r->max && strcmp(mode, "avg") != 0) refuse(k, "its mode is unknown");
  if (!r->half && strcmp(corners, "output_half_pixel") != 0)
    refuse(k, "its coordinate_transformation_mode is unknown");
  if (!is_sane(r->bins[0]) || !is_sane(r->bins[1])) refuse(k, "its output is out of range");
  if (r->samples < 0 || r->samples > BB_REGION_SAMPLES)
    refuse(k, "its sampling_ratio is out of range");
}

/* Which image a region is of. */
static int64_t image_of(const bb_kernel *k, int64_t region, double image, int64_t images) {
  if (!(image >= 0 && image < (double)images) || image != floor(image))
    bb_fail(k->ctx, BB_ERROR_INPUT, "region %lld is of image %g, of %lld", (long long)region, image,
            (long long)images);
  return (int64_t)image;
}

static bool are_known(const double *corner) {
  return !isnan(corner[0]) && !isnan(corner[1]) && !isnan(corner[2]) && !isnan(corner[3]);
}

/* Maxima are NaN where one number is. */
static double larger(double a, double b) {
  return isnan(a) || a > b ? a : b;
}

/* One bin of one channel: the mean of its samples, where those outside are 0, or the greatest part of an element. */
static double look(const bb_regions *r, const bb_region *axis, const int64_t *bin,
                   const double *map) {
  int64_t from[2], to[2], seen = 0;
  double sum = 0, most = -INFINITY, all = axis[0].samples * axis[1].samples;
  for (int a = 0; a < 2; a++) bb_region_span(&axis[a], bin[a], &from[a], &to[a]);
  for (int64_t i = from[0]; i < to[0]; i++) {
    bb_region_sample s[2];
    if (!bb_region_at(&axis[0], bin[0], i, &s[0])) continue;
    for (int64_t j = from[1]; j < to[1]; j++) {
      if (!bb_region_at(&axis[1], bin[1], j, &s[1])) continue;
      seen++;
      for (int c = 0; c < 4; c++) {
        double part = map[s[0].at[c / 2] * axis[1].extent + s[1].at[c % 2]] * s[0].part[c / 2] *
                      s[1].part[c % 2];
        sum += part;
        most = larger(most, part);
      }
    }
  }
  if (!seen) return 0;
  if (r->max) return (double)seen < all ? larger(most, 0) : most;
  return sum / all;
}

/* map [images, channels, high, wide], corners [regions, 4], image of each: [regions, channels, bins, bins]. */
void bb_misc_region_align(const bb_kernel *k) {
  const bb_misc_value *map = bb_misc_in(k, 0), *corners = bb_misc_in(k, 1),
                      *image = bb_misc_in(k, 2);
  bb_regions r;
  bb_regions_read(k, &r);
  r.wide = corners->dtype == BB_F64;
  bool fits = map->rank == 4 && corners->rank == 2 && corners->shape[1] == 4 && image->rank == 1 &&
              image->shape[0] == corners->shape[0];
  if (!fits) refuse(k, "operands' shapes do not fit each other");
  int64_t channels = map->shape[1], place = map->shape[2] * map->shape[3];
  int64_t shape[4] = {corners->shape[0], channels, r.bins[0], r.bins[1]};
  double *to = bb_misc_out(k, 0, map->dtype, 4, shape)->data;
  for (int64_t i = 0; i < shape[0]; i++) {
    const double *corner = corners->data + 4 * i;
    bb_region axis[2];
    bool known = are_known(corner);
    const double *from =
        map->data + image_of(k, i, image->data[i], map->shape[0]) * channels * place;
    for (int a = 0; a < 2 && known; a++)
      if (!bb_region_along(&r, a, corner, map->shape[2 + a], &axis[a]))
        bb_fail(k->ctx, BB_ERROR_INPUT, "region %lld is too large", (long long)i);
    for (int64_t c = 0; c < channels; c++)
      for (int64_t b = 0; b < shape[2] * shape[3]; b++)
        *to++ =
            known ? look(&r, axis, (int64_t[]){b / shape[3], b % shape[3]}, from + c * place) : NAN;
  }
}

/* --- pools --- */

/* A bin of a region along an axis; corners are whole, and both belong to the region. */
static void bin_along(bool wide, const double *corner, int64_t bins, int64_t bin, int64_t extent,
                      int64_t *from, int64_t *to) {
  double size = rounded(wide, fmax(corner[2] - corner[0] + 1, 1) / (double)bins);
  double low = floor(rounded(wide, (double)bin * size)) + corner[0];
  double high = ceil(rounded(wide, (double)(bin + 1) * size)) + corner[0];
  *from = (int64_t)fmin(fmax(low, 0), (double)extent);
  *to = (int64_t)fmin(fmax(high, 0), (double)extent);
}

static double most_of(const double *map, int64_t wide, const int64_t *from, const int64_t *to) {
  if (from[0] >= to[0] || from[1] >= to[1]) return 0;
  double most = -INFINITY;
  for (int64_t y = from[0]; y < to[0]; y++)
    for (int64_t x = from[1]; x < to[1]; x++) most = larger(most, map[y * wide + x]);
  return most;
}

/* map [images, channels, high, wide], regions [count, 5] of image and corners: [count, channels, bins, bins]. */
void bb_misc_region_pool(const bb_kernel *k) {
  const bb_misc_value *map = bb_misc_in(k, 0), *regions = bb_misc_in(k, 1);
  const int64_t *bins = bb_misc_ints(k, "pooled_shape", 2);
  double scale = bb_misc_float(k, "spatial_scale", 1);
  if (!bins || !is_sane(bins[0]) || !is_sane(bins[1]))
    refuse(k, "its pooled_shape is out of range");
  if (map->rank != 4 || regions->rank != 2 || regions->shape[1] != 5)
    refuse(k, "operands' shapes do not fit each other");
  bool wide = regions->dtype == BB_F64;
  int64_t channels = map->shape[1], place = map->shape[2] * map->shape[3];
  int64_t shape[4] = {regions->shape[0], channels, bins[0], bins[1]};
  double *to = bb_misc_out(k, 0, map->dtype, 4, shape)->data;
  for (int64_t i = 0; i < shape[0]; i++) {
    const double *region = regions->data + 5 * i;
    const double *from = map->data + image_of(k, i, region[0], map->shape[0]) * channels * place;
    double corner[4];
    for (int c = 0; c < 4; c++) corner[c] = round(rounded(wide, region[1 + c] * scale));
    bool known = are_known(corner);
    for (int64_t c = 0; c < channels; c++)
      for (int64_t b = 0; b < shape[2] * shape[3]; b++) {
        int64_t low[2], high[2], bin[2] = {b / shape[3], b % shape[3]};
        for (int a = 0; a < 2 && known; a++)
          bin_along(wide, corner + 1 - a, bins[a], bin[a], map->shape[2 + a], &low[a], &high[a]);
        *to++ = known ? most_of(from + c * place, map->shape[3], low, high) : NAN;
      }
  }
}
