/* region.c - operators that look at regions of interest of a map: reference kernels, since data says where they look.  How many
 * regions there are may be told in a run as well.
 */
#include "convert.h"

#include <math.h>
#include <string.h>

enum { MOST_SAMPLES = 1024, MOST_BINS = 1 << 20 }; /* runtime/interp/region.h */

/* A map [images, channels, high, wide], and `columns` numbers of its type for each region. */
static void want_regions(const bb_onnx_node *n, int64_t columns) {
  const bb_onnx_value *map = n->in[0], *regions = n->in[1];
  bb_onnx_want_float(n, map);
  bb_onnx_same_dtype(n, 2, n->in);
  if (map->rank != 4) bb_onnx_refuse(n, "a map %s has not 4 axes", bb_onnx_shape_text(n->m, map));
  if (regions->rank != 2 ||
      !bb_onnx_same_extent(n, regions->shape[1], bb_onnx_number(n->m, columns)))
    bb_onnx_refuse(n, "regions %s are not %lld numbers each", bb_onnx_shape_text(n->m, regions),
                   (long long)columns);
}

static double scale_of(const bb_onnx_node *n) {
  double scale = bb_onnx_float(n, "spatial_scale", 1);
  if (!(scale > 0 && isfinite(scale))) bb_onnx_refuse(n, "spatial_scale is %g", scale);
  return scale;
}

static int64_t within(const bb_onnx_node *n, const char *name, int64_t value, int64_t least,
                      int64_t most) {
  if (value < least || value > most)
    bb_onnx_refuse(n, "%s is %lld, not %lld to %lld", name, (long long)value, (long long)least,
                   (long long)most);
  return value;
}

/* One of two words. */
static const char *word_of(const bb_onnx_node *n, const char *name, const char *otherwise,
                           const char *other) {
  const char *word = bb_onnx_text(n, name, otherwise);
  if (strcmp(word, otherwise) == 0) return otherwise;
  if (strcmp(word, other) != 0)
    bb_onnx_refuse(n, "%s is %s", name, bb_onnx_quote(n->m->arena, word));
  return other;
}

static void give(bb_onnx_node *n, bb_misc *kernel, uint32_t count, const bb_attribute *attribute,
                 const int64_t *bins) {
  bb_onnx *m = n->m;
  const bb_onnx_value *map = n->in[0];
  const bb_extent *shape[4] = {n->in[1]->shape[0], map->shape[1], bb_onnx_number(m, bins[0]),
                               bb_onnx_number(m, bins[1])};
  bb_attribute *kept = BB_NEW(m->program->arena, bb_attribute, count);
  memcpy(kept, attribute, count * sizeof *kept);
  kernel->domain = "";
  kernel->version = 22;
  kernel->count = count;
  kernel->attribute = kept;
  n->out[0] = bb_onnx_value_new(m, map->dtype, 4, shape);
  bb_onnx_misc_node(n, kernel, n->nin, n->in, 1, n->out);
}

/* Before opset 16 elements lie on what corners count. */
void bb_onnx_region_align(bb_onnx_node *n) {
  const bb_onnx_value *image = n->in[2];
  const bool old = n->version < 16;
  static const char *const where[2] = {"half_pixel", "output_half_pixel"};
  want_regions(n, 4);
  if (image->dtype != BB_I64 || image->rank != 1 ||
      !bb_onnx_same_extent(n, image->shape[0], n->in[1]->shape[0]))
    bb_onnx_refuse(n, "images %s of type %s are not one for each region",
                   bb_onnx_shape_text(n->m, image), bb_dtype_name(image->stored));
  const int64_t bins[2] = {
      within(n, "output_height", bb_onnx_int(n, "output_height", 1), 1, MOST_BINS),
      within(n, "output_width", bb_onnx_int(n, "output_width", 1), 1, MOST_BINS)};
  const int64_t samples =
      within(n, "sampling_ratio", bb_onnx_int(n, "sampling_ratio", 0), 0, MOST_SAMPLES);
  const bb_attribute attribute[] = {
      {.name = "coordinate_transformation_mode",
       .kind = BB_ATTR_TEXT,
       .text = word_of(n, "coordinate_transformation_mode", where[old], where[!old])},
      {.name = "mode", .kind = BB_ATTR_TEXT, .text = word_of(n, "mode", "avg", "max")},
      {.name = "output_height", .kind = BB_ATTR_INT, .i = bins[0]},
      {.name = "output_width", .kind = BB_ATTR_INT, .i = bins[1]},
      {.name = "sampling_ratio", .kind = BB_ATTR_INT, .i = samples},
      {.name = "spatial_scale", .kind = BB_ATTR_FLOAT, .f = scale_of(n)}};
  give(n, &(bb_misc){.op = "RoiAlign"}, 6, attribute, bins);
}

void bb_onnx_region_pool(bb_onnx_node *n) {
  uint32_t count;
  const int64_t *bins = bb_onnx_ints(n, "pooled_shape", &count);
  want_regions(n, 5);
  if (!bins || count != 2) bb_onnx_refuse(n, "pooled_shape is not two numbers");
  int64_t *kept = bb_arena_array(n->m->program->arena, 2, sizeof *kept);
  for (int i = 0; i < 2; i++) kept[i] = within(n, "pooled_shape", bins[i], 1, MOST_BINS);
  const bb_attribute attribute[] = {
      {.name = "pooled_shape", .kind = BB_ATTR_INTS, .count = 2, .ints = kept},
      {.name = "spatial_scale", .kind = BB_ATTR_FLOAT, .f = scale_of(n)}};
  give(n, &(bb_misc){.op = "MaxRoiPool"}, 2, attribute, bins);
}
