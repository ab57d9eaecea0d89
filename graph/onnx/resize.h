/* resize.h - interpolation along an axis: its attributes, shared by axes whose lengths are known as
 * the model is read (resize.c) and those whose lengths only a run tells (resize_open.c).
 */
#ifndef BB_ONNX_RESIZE_H
#define BB_ONNX_RESIZE_H

#include "convert.h"

typedef enum bb_interpolation { BB_NEAREST, BB_LINEAR, BB_CUBIC } bb_interpolation;
typedef enum bb_resize_places {
  BB_HALF_PIXEL,
  BB_HALF_PIXEL_SYMMETRIC,
  BB_PYTORCH_HALF_PIXEL,
  BB_ALIGN_CORNERS,
  BB_ASYMMETRIC,
  BB_CROP_AND_RESIZE
} bb_resize_places;
typedef enum bb_resize_rounding {
  BB_PREFER_FLOOR,
  BB_PREFER_CEIL,
  BB_DOWN,
  BB_UP,
  BB_BY_SCALE /* opset 10: up where the result is smaller, else down */
} bb_resize_rounding;

typedef struct bb_resizing {
  bb_interpolation mode;
  bb_resize_places coordinates;
  bb_resize_rounding rounding;
  bool antialias, exclude;
  double cubic, beyond; /* the cubic's coefficient; what stands outside a cropped operand */
} bb_resizing;

/* An axis of which a run tells the length, before or after. */
typedef struct bb_resize_open {
  const bb_extent *to; /* NULL: both lengths are known, or it stays as it is */
  double scale;        /* to / from, where it is a number; 0: it is the quotient of both */
} bb_resize_open;

/* How long an axis becomes by a scale; NULL: that cannot be said as an extent. */
const bb_extent *bb_resize_scaled(bb_onnx *m, const bb_extent *from, double scale);
/* v, in f32 unless elements only move, resized along axis `at`; NULL: reported as unsupported. */
bb_onnx_value *bb_resize_along(bb_onnx_node *n, const bb_resizing *r, bb_onnx_value *v, uint32_t at,
                               const bb_resize_open *a);
/* Each element along axis `at` so many times in a row; a view, whatever the length. */
bb_onnx_value *bb_resize_repeated(const bb_onnx_node *n, bb_onnx_value *v, uint32_t at,
                                  int64_t times);

#endif
