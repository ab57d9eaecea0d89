/* window.h - a window that slides along one axis, shared by axes whose lengths are known as the model is read (window.c) and
 * those whose lengths only a run tells (window_open.c).
 */
#ifndef BB_ONNX_WINDOW_H
#define BB_ONNX_WINDOW_H

#include "convert.h"

/* Extent -1: only a run tells how long the axis is. */
typedef struct bb_window {
  int64_t extent, kernel, stride, dilation, before, after;
} bb_window;

typedef enum bb_window_pads {
  BB_PADS_NOTSET,
  BB_PADS_VALID,
  BB_PADS_SAME_UPPER,
  BB_PADS_SAME_LOWER
} bb_window_pads;

/* --- window_open.c: along an axis that is open --- */

/* How many places a window has; one larger than the axis is refused in the run.  `up`: one that hangs over the end counts, too.
 * NULL: a window may stand in the padding behind the end alone. */
const bb_extent *bb_window_open_places(const bb_onnx_node *n, bb_window w, bb_window_pads pads,
                                       bool up, const bb_extent *axis);
/* Can it be said what windows see? */
bool bb_window_open_told(bb_window w, bb_window_pads pads);
/* The axis with what is padded, so that the first window begins with it and the last one ends in it. */
bb_onnx_value *bb_window_open_sight(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                    bb_window w, bb_window_pads pads, bool up, double fill,
                                    const bb_extent *places);
/* Of how many elements the window at a place sees, at least 1; with the padding, as far as the node asks for it. */
const bb_expr *bb_window_open_count(const bb_onnx_node *n, const bb_expr *place, bb_window w,
                                    bb_window_pads pads, bool with_padding, const bb_extent *axis);
/* What a transposed convolution makes of the axis. */
const bb_extent *bb_window_open_spread(const bb_onnx_node *n, bb_window w, bb_window_pads pads,
                                       int64_t extra, const bb_extent *axis);

#endif
