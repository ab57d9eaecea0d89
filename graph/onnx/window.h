/* window.h - a window that slides along one axis, shared by axes whose lengths are known as the model is read (window.c), those
 * whose lengths only a run tells (window_open.c), and windows that are spread (window_spread.c).
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

/* What windows see: of each axis, padded as it says. */
typedef struct bb_window_sight {
  uint32_t axes; /* spatial */
  bb_window_pads pads;
  bool up;
  double fill; /* of the padding */
  bb_window window[BB_ONNX_RANK];
  int64_t count[BB_ONNX_RANK];   /* places; -1: known only at run time */
  const bb_extent *const *shape; /* of the result */
  const bb_extent *group, *channels, *maps;
} bb_window_sight;

/* --- window.c --- */

/* One attribute value for each of so many spatial axes; NULL: it is absent. */
const int64_t *bb_window_per_axis(const bb_onnx_node *n, const char *name, uint32_t axes);
bb_window_pads bb_window_automatic_pads(const bb_onnx_node *n);
/* The window along spatial axis i, its numbers small enough that no sum of few overflows. */
bb_window bb_window_read(const bb_onnx_node *n, uint32_t i, int64_t kernel);
/* Checks operands of a convolution, whose weights have the input's channels along `in_axis`, and gives the extents of its kernel. */
void bb_window_check_weights(bb_onnx_node *n, uint32_t in_axis, int64_t *kernel);
/* The product of what windows of input 0 see with weights [maps of all groups, channels, tap ...]. */
bb_onnx_value *bb_window_product(const bb_onnx_node *n, const bb_window_sight *s);
/* With input 2, a number for each map, where there is one. */
bb_onnx_value *bb_window_biased(const bb_onnx_node *n, bb_onnx_value *y);

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
/* So many elements of an axis from `start` on, which are there, known or open: in windows of one, which pass through a join of axes that a
 * slice would not. */
bb_onnx_value *bb_window_part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, int64_t start,
                              const bb_extent *length);
/* Of how many elements the window at a place sees, at least 1; with the padding, as far as the node asks for it. */
const bb_expr *bb_window_open_count(const bb_onnx_node *n, const bb_expr *place, bb_window w,
                                    bb_window_pads pads, bool with_padding, const bb_extent *axis);
/* What a transposed convolution makes of the axis. */
const bb_extent *bb_window_open_spread(const bb_onnx_node *n, bb_window w, bb_window_pads pads,
                                       int64_t extra, const bb_extent *axis);

#endif
