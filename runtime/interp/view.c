/* view.c - values as views: windows on tensors and on other values, joined where there are several.
 *
 * A source has axes, each a length and a stride.  An index of an access gives every axis a place
 * in the view: an axis of the view's type with that dim, in order where a dim occurs twice.
 */
#include "machine.h"

#include <string.h>

static _Noreturn void refuse(bb_run *run, const bb_node *node, const char *law) {
  const char *place = node ? bb_run_place(run, node) : "a misc step";
  bb_fail(run->ctx, BB_ERROR_INTERNAL, "%s: %s", place, law);
}

enum { MOST_AXES = BB_INTERP_LEVELS + 2 };

/* What a view reads: a tensor by its factored axes, or a value by its levels. */
typedef struct source {
  double *data;
  uint32_t axes;
  bb_span axis[MOST_AXES];
  const bb_origins *origins;
} source;

static void tensor_source(bb_run *run, const bb_node *node, uint32_t tensor, source *s) {
  const bb_tensor *t = &run->program->tensor[tensor];
  if (t->axes > MOST_AXES) refuse(run, node, "a tensor of too many axes");
  s->data = run->tensor[tensor].data;
  s->axes = t->axes;
  int64_t stride = 1;
  for (uint32_t i = t->axes; i-- > 0;) {
    s->axis[i] = (bb_span){bb_run_extent(run, t->axis[i]), stride};
    if (s->axis[i].length) stride *= s->axis[i].length;
  }
  bb_origin *origin = BB_NEW(run->scratch, bb_origin, 1);
  *origin = (bb_origin){tensor, 1};
  bb_origins *origins = BB_NEW(run->scratch, bb_origins, 1);
  *origins = (bb_origins){1, origin};
  s->origins = origins;
}

static void value_source(const bb_datum *value, source *s) {
  s->data = value->data;
  s->axes = value->type->rank;
  s->origins = value->origins;
  for (uint32_t i = 0; i < s->axes; i++) {
    bb_axis axis = value->type->level[i].axis;
    s->axis[i] = axis == BB_AXIS_ROW   ? value->row
                 : axis == BB_AXIS_COL ? value->col
                                       : value->level[i];
  }
}

/* --- the axes of a type --- */

typedef struct slot {
  bb_dim dim;
  bb_span *span;
  bool taken;
} slot;

typedef struct slots {
  uint32_t count;
  slot slot[MOST_AXES];
} slots;

static void add_slot(slots *s, bb_dim dim, bb_span *span) {
  s->slot[s->count++] = (slot){dim, span, false};
}

/* The levels, outermost first, then item axes that no level chunks; all lengths set to whole. */
static void slots_of(bb_run *run, bb_datum *datum, slots *s) {
  const bb_type *type = datum->type;
  bool row = type->item.row != BB_NO_DIM, col = type->item.col != BB_NO_DIM;
  s->count = 0;
  datum->row = datum->col = (bb_span){1, 0};
  datum->row_start = datum->col_start = 0;
  for (uint32_t i = 0; i < type->rank; i++) {
    bb_axis axis = type->level[i].axis;
    datum->level[i] = (bb_span){1, 0};
    add_slot(s, type->level[i].dim,
             axis == BB_AXIS_ROW   ? &datum->row
             : axis == BB_AXIS_COL ? &datum->col
                                   : &datum->level[i]);
    row &= axis != BB_AXIS_ROW;
    col &= axis != BB_AXIS_COL;
  }
  if (row) add_slot(s, type->item.row, &datum->row);
  if (col) add_slot(s, type->item.col, &datum->col);
  for (uint32_t i = 0; i < s->count; i++)
    *s->slot[i].span = (bb_span){bb_run_extent(run, s->slot[i].dim), 0};
}

static bb_span *take_slot(slots *s, bb_dim dim) {
  for (uint32_t i = 0; i < s->count; i++) {
    if (s->slot[i].dim != dim || s->slot[i].taken) continue;
    s->slot[i].taken = true;
    return s->slot[i].span;
  }
  return NULL;
}

/* --- one piece --- */

typedef struct view {
  bb_run *run;
  const bb_node *node;
  bb_dim joined;
} view;

/* Of an index of windows, which may overlap. */
static void place_windows(const view *v, bb_span axis, const bb_index *index, bb_span *place,
                          bb_span *tap, double **data) {
  place->stride = axis.stride * index->step;
  tap->stride = axis.stride * index->by;
  if (place->length == 0 || tap->length == 0) return;
  int64_t low = index->start, high = index->start;
  int64_t far[2] = {(place->length - 1) * index->step, (tap->length - 1) * index->by};
  for (int k = 0; k < 2; k++) *(far[k] < 0 ? &low : &high) += far[k];
  if (low < 0 || high >= axis.length) refuse(v->run, v->node, "a window beyond its axis");
  *data += index->start * axis.stride;
}

/* One axis of the source under its index; *data moves to the first element. */
static void place_axis(const view *v, slots *s, bb_span axis, const bb_index *index,
                       int64_t piece_length, double **data) {
  if (index->kind == BB_INDEX_FIXED) {
    if (index->start < 0 || index->start >= axis.length)
      refuse(v->run, v->node, "a fixed index beyond its axis");
    *data += index->start * axis.stride;
    return;
  }
  bb_span *span = take_slot(s, index->dim);
  if (!span) refuse(v->run, v->node, "an index over a dim that the view lacks");
  if (index->kind == BB_INDEX_WINDOW) {
    bb_span *tap = take_slot(s, index->tap);
    if (!tap) refuse(v->run, v->node, "an index over a dim that the view lacks");
    if (index->dim == v->joined || index->tap == v->joined)
      refuse(v->run, v->node, "windows along the joined dim");
    place_windows(v, axis, index, span, tap, data);
    return;
  }
  if (index->dim == v->joined) span->length = piece_length;
  if (index->kind == BB_INDEX_DIM) {
    bool part = index->dim == v->joined;
    if (part ? span->length > axis.length : span->length != axis.length)
      refuse(v->run, v->node, "an axis and its dim differ in extent");
    span->stride = axis.stride;
    return;
  }
  int64_t last = 0, n = span->length;
  if (n > 0 && (__builtin_mul_overflow(n - 1, index->step, &last) ||
                __builtin_add_overflow(last, index->start, &last) || index->start < 0 ||
                index->start >= axis.length || last < 0 || last >= axis.length))
    refuse(v->run, v->node, "a range beyond its axis");
  if (n > 0) *data += index->start * axis.stride;
  span->stride = axis.stride * index->step;
}

/* Makes `window`, whose type and level spans are set, see a piece of a source. */
static void see_piece(const view *v, const source *from, const bb_piece *piece, bb_datum *window,
                      bool broadcast) {
  slots s;
  slots_of(v->run, window, &s);
  window->data = from->data;
  window->origins = from->origins;
  if (piece->rank != from->axes) refuse(v->run, v->node, "a view has an index too few or too many");
  for (uint32_t i = 0; i < from->axes; i++)
    place_axis(v, &s, from->axis[i], &piece->index[i], piece->length, &window->data);
  for (uint32_t i = 0; i < s.count; i++) {
    if (s.slot[i].taken) continue;
    if (s.slot[i].dim == v->joined)
      s.slot[i].span->length = piece->length;
    else if (!broadcast)
      refuse(v->run, v->node, "a dim that no index is over");
  }
}

/* Elements first .. first + length - 1 along the joined dim of a whole value. */
static void restrict_to(const view *v, const bb_piece *piece, const bb_datum *whole,
                        bb_datum *part) {
  bb_span *level = part->level;
  *part = *whole;
  part->level = level;
  for (uint32_t k = 0; k < whole->type->rank; k++) level[k] = whole->level[k];
  bb_span *span = NULL;
  const bb_type *type = whole->type;
  for (uint32_t k = 0; k < type->rank && !span; k++)
    if (type->level[k].dim == v->joined)
      span = type->level[k].axis == BB_AXIS_ROW   ? &part->row
             : type->level[k].axis == BB_AXIS_COL ? &part->col
                                                  : &level[k];
  if (!span || piece->first < 0 || piece->length < 0 || piece->length > span->length ||
      piece->first > span->length - piece->length)
    refuse(v->run, v->node, "a piece beyond the joined dim");
  part->data += piece->first * span->stride;
  span->length = piece->length;
}

/* --- padded pieces --- */

typedef struct reach {
  int64_t low, high;
} reach;

/* An axis from its first element, or the first that the index reads before it, to the last. */
static reach reach_of(const view *v, const bb_index *index, bb_span axis, int64_t piece_length) {
  int64_t low = 0, high = axis.length - 1;
  if (index->kind == BB_INDEX_DIM) return (reach){low, high};
  low = high = index->start;
  for (uint32_t k = 0; k < bb_index_dims(index); k++) {
    bb_dim dim = bb_index_dim(index, k);
    int64_t count = dim == v->joined ? piece_length : bb_run_extent(v->run, dim);
    int64_t far = count > 0 ? (count - 1) * (k ? index->by : index->step) : 0;
    *(far < 0 ? &low : &high) += far;
  }
  return (reach){low < 0 ? low : 0, high < axis.length ? axis.length - 1 : high};
}

/* The source with as much of the piece's fill around it as its indices see, and the piece that reads there what
 * it reads here. */
static bb_piece pad_source(const view *v, const bb_piece *piece, source *s) {
  bb_run *run = v->run;
  source wide = *s;
  bb_piece moved = *piece;
  bb_index *index = BB_NEW(run->scratch, bb_index, piece->rank);
  int64_t before[MOST_AXES];
  size_t count = 1;
  if (piece->rank != s->axes) refuse(run, v->node, "a view has an index too few or too many");
  for (uint32_t i = s->axes; i-- > 0;) {
    reach seen = reach_of(v, &piece->index[i], s->axis[i], piece->length);
    index[i] = piece->index[i];
    before[i] = -seen.low;
    if (index[i].kind != BB_INDEX_DIM) index[i].start += before[i];
    wide.axis[i] = (bb_span){seen.high - seen.low + 1, (int64_t)count};
    if (__builtin_mul_overflow(count, (size_t)wide.axis[i].length, &count))
      bb_fail(run->ctx, BB_ERROR_MEMORY, "a padded operand is too large to hold");
  }
  wide.data = BB_NEW(run->scratch, double, count);
  for (size_t e = 0; e < count; e++) {
    const double *from = s->data;
    for (uint32_t i = 0; from && i < s->axes; i++) {
      int64_t at = (int64_t)e / wide.axis[i].stride % wide.axis[i].length - before[i];
      from = at >= 0 && at < s->axis[i].length ? from + at * s->axis[i].stride : NULL;
    }
    wide.data[e] = from ? *from : piece->fill;
  }
  moved.index = index;
  *s = wide;
  return moved;
}

/* --- whole views --- */

typedef void make_source(bb_run *run, const bb_node *node, void *user, uint32_t which, source *s);

static void origins_of_pieces(bb_run *run, const bb_origins *const *piece, const double *weight,
                              uint32_t count, bb_datum *out) {
  uint32_t total = 0;
  for (uint32_t p = 0; p < count; p++) total += piece[p] ? piece[p]->count : 0;
  bb_origin *all = BB_NEW(run->scratch, bb_origin, total);
  bb_origins *origins = BB_NEW(run->scratch, bb_origins, 1);
  for (uint32_t p = 0; p < count; p++)
    for (uint32_t i = 0; piece[p] && i < piece[p]->count; i++) {
      all[origins->count] = piece[p]->origin[i];
      all[origins->count++].share *= weight[p];
    }
  origins->origin = all;
  out->origins = origins;
}

/* One piece is a window; several are brought together in memory of the run. */
static void see(bb_run *run, const bb_node *node, const bb_access *access, make_source *make,
                void *user, bb_datum *out) {
  view v = {run, node, access->joined};
  if (access->joined == BB_NO_DIM) {
    if (access->count != 1) refuse(run, node, "a view of several pieces names no joined dim");
    source from;
    make(run, node, user, access->piece[0].source, &from);
    bb_piece piece = access->piece[0];
    if (piece.padded) piece = pad_source(&v, &piece, &from);
    see_piece(&v, &from, &piece, out, true);
    return;
  }
  slots s;
  slots_of(run, out, &s);
  bb_datum_alloc(run->ctx, out, &run->stack[0]);
  const bb_origins **origins = BB_NEW(run->scratch, const bb_origins *, access->count);
  double *weight = BB_NEW(run->scratch, double, access->count);
  double whole = (double)bb_run_extent(run, access->joined);
  for (uint32_t p = 0; p < access->count; p++) {
    bb_span spans[2][BB_INTERP_LEVELS];
    bb_datum window = {.type = out->type, .level = spans[0]}, part = {.level = spans[1]};
    source from;
    make(run, node, user, access->piece[p].source, &from);
    bb_piece piece = access->piece[p];
    if (piece.padded) piece = pad_source(&v, &piece, &from);
    see_piece(&v, &from, &piece, &window, true);
    restrict_to(&v, &access->piece[p], out, &part);
    if (!bb_datum_same_shape(&part, &window)) refuse(run, node, "a piece has another shape");
    bb_datum_copy(&part, &window);
    origins[p] = window.origins;
    weight[p] = whole > 0 ? (double)access->piece[p].length / whole : 0;
  }
  origins_of_pieces(run, origins, weight, access->count, out);
}

static void from_tensor(bb_run *run, const bb_node *node, void *user, uint32_t which, source *s) {
  (void)user;
  bb_run_need_tensor(run, which);
  tensor_source(run, node, which, s);
}

static void from_operand(bb_run *run, const bb_node *node, void *user, uint32_t which, source *s) {
  const bb_instance_node *at = user;
  if (which >= node->nin) refuse(run, node, "a piece of an operand that is not there");
  value_source(at->in[which], s);
}

/* The access that a node without one has: every axis of its tensor as it is. */
static const bb_access *access_of(bb_run *run, const bb_node *node) {
  if (node->access) return node->access;
  if (node->tensor >= run->program->tensors) refuse(run, node, "no such tensor");
  const bb_tensor *t = &run->program->tensor[node->tensor];
  bb_index *index = BB_NEW(run->scratch, bb_index, t->axes);
  for (uint32_t i = 0; i < t->axes; i++) index[i] = (bb_index){BB_INDEX_DIM, t->axis[i], 0, 1};
  bb_piece *piece = BB_NEW(run->scratch, bb_piece, 1);
  *piece = (bb_piece){.source = node->tensor, .rank = t->axes, .index = index};
  bb_access *access = BB_NEW(run->scratch, bb_access, 1);
  *access = (bb_access){BB_NO_DIM, 1, piece};
  return access;
}

void bb_run_input(bb_run *run, const bb_node *node, bb_datum *out) {
  see(run, node, access_of(run, node), from_tensor, NULL, out);
  if (out->type->rank == 0) bb_count_read(run, out);
}

void bb_run_view(bb_run *run, const bb_node *node, bb_instance_node *at) {
  if (!node->access || node->nout != 1) refuse(run, node, "a view without access");
  see(run, node, node->access, from_operand, at, &at->out[0]);
}

static void round_row(void *user, double *dst, const double *src, int64_t count, int64_t dst_stride,
                      int64_t src_stride) {
  for (int64_t i = 0; i < count; i++)
    dst[i * dst_stride] = bb_round_to(*(const bb_dtype *)user, src[i * src_stride]);
}

/* Tensors hold values of their dtype: accumulators of narrow floats round here. */
static void store(bb_run *run, const bb_datum *to, const bb_datum *value, bb_dtype dtype) {
  if (run->options->float64)
    bb_datum_copy(to, value);
  else
    bb_datum_walk(to, value, round_row, &dtype);
}

void bb_run_output(bb_run *run, const bb_node *node, bb_instance *at, uint32_t index) {
  const bb_datum *value = at->node[index].in[0];
  const bb_access *access = access_of(run, node);
  view v = {run, node, access->joined};
  if (access->joined == BB_NO_DIM && access->count != 1)
    refuse(run, node, "a view of several pieces names no joined dim");
  for (uint32_t p = 0; p < access->count; p++) {
    const bb_piece *piece = &access->piece[p];
    bb_span spans[2][BB_INTERP_LEVELS];
    bb_datum window = {.type = value->type, .level = spans[0]}, part = {.level = spans[1]};
    source to;
    bb_run_make_tensor(run, piece->source);
    tensor_source(run, node, piece->source, &to);
    see_piece(&v, &to, piece, &window, false);
    if (access->joined == BB_NO_DIM)
      part = *value;
    else
      restrict_to(&v, piece, value, &part);
    if (!bb_datum_same_shape(&window, &part)) refuse(run, node, "the value has another shape");
    store(run, &window, &part, run->program->tensor[piece->source].dtype);
  }
  bb_kind from = bb_node_get(at->graph, node->in[0].src.node)->kind;
  if (from == BB_NODE_INPUT || from == BB_NODE_VIEW) bb_count_read(run, value);
  if (from == BB_NODE_INPUT || from == BB_NODE_VIEW || value->type->rank == 0)
    bb_count_written(run, value);
}

/* --- operands and results of misc nodes --- */

static void dense_source(bb_run *run, const bb_node *node, double *data, uint32_t axes,
                         const bb_dim *axis, source *s, bb_index *index) {
  if (axes > MOST_AXES) refuse(run, node, "an operand of too many axes");
  *s = (source){.data = data, .axes = axes};
  int64_t stride = 1;
  for (uint32_t i = axes; i-- > 0;) {
    s->axis[i] = (bb_span){bb_run_extent(run, axis[i]), stride};
    if (s->axis[i].length) stride *= s->axis[i].length;
    index[i] = (bb_index){BB_INDEX_DIM, axis[i], 0, 1};
  }
}

static double *new_dense(bb_run *run, uint32_t axes, const bb_dim *axis, size_t *count) {
  *count = 1;
  for (uint32_t i = 0; i < axes; i++)
    if (__builtin_mul_overflow(*count, (size_t)bb_run_extent(run, axis[i]), count))
      bb_fail(run->ctx, BB_ERROR_MEMORY, "an operand is too large to hold");
  return BB_NEW(run->scratch, double, *count);
}

void bb_dense_as_value(bb_run *run, const bb_node *node, double *data, uint32_t axes,
                       const bb_dim *axis, bb_datum *out) {
  source s;
  bb_index index[MOST_AXES];
  dense_source(run, node, data, axes, axis, &s, index);
  see_piece(&(view){run, node, BB_NO_DIM}, &s, &(bb_piece){.rank = axes, .index = index}, out,
            false);
}

/* A row-major buffer over those axes that are `had`, again for each place of the others. */
static double *spread(bb_run *run, uint32_t axes, const bb_dim *axis, const bool *had,
                      const double *from, size_t *count) {
  double *data = new_dense(run, axes, axis, count);
  int64_t step[MOST_AXES], at[MOST_AXES] = {0}, own = 1, place = 0;
  for (uint32_t i = axes; i-- > 0;) {
    step[i] = had[i] ? own : 0;
    own *= had[i] ? bb_run_extent(run, axis[i]) : 1;
  }
  for (size_t k = 0; k < *count; k++) {
    data[k] = from[place];
    for (uint32_t i = axes; i-- > 0;) {
      place += step[i];
      if (++at[i] < bb_run_extent(run, axis[i])) break;
      place -= step[i] * at[i];
      at[i] = 0;
    }
  }
  return data;
}

/* The axes that are `had`, in order; their number. */
static uint32_t take_had(uint32_t axes, const bb_dim *axis, const bool *had, bb_dim *own) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < axes; i++)
    if (had[i]) own[count++] = axis[i];
  return count;
}

static double *all_as_dense(bb_run *run, const bb_node *node, const bb_datum *value, uint32_t axes,
                            const bb_dim *axis, size_t *count) {
  bb_span level[BB_INTERP_LEVELS];
  bb_datum window = {.type = value->type, .level = level};
  double *data = new_dense(run, axes, axis, count);
  bb_dense_as_value(run, node, data, axes, axis, &window);
  if (!bb_datum_same_shape(&window, value)) refuse(run, node, "the value has another shape");
  bb_datum_copy(&window, value);
  return data;
}

double *bb_value_as_dense(bb_run *run, const bb_node *node, const bb_datum *value, uint32_t axes,
                          const bb_dim *axis, size_t *count) {
  bool had[MOST_AXES] = {false};
  bb_dim own[MOST_AXES] = {0};
  if (axes > MOST_AXES) refuse(run, node, "an operand of too many axes");
  for (uint32_t i = 0; i < axes; i++)
    for (uint32_t k = 0; k < value->type->rank; k++) had[i] |= value->type->level[k].dim == axis[i];
  uint32_t number = take_had(axes, axis, had, own);
  double *data = all_as_dense(run, node, value, number, own, count);
  return number == axes ? data : spread(run, axes, axis, had, data, count);
}

static bool names(const bb_access *access, bb_dim dim) {
  bool does = access->joined == dim;
  for (uint32_t p = 0; p < access->count; p++)
    for (uint32_t i = 0; i < access->piece[p].rank; i++)
      for (uint32_t k = 0; k < bb_index_dims(&access->piece[p].index[i]); k++)
        does |= bb_index_dim(&access->piece[p].index[i], k) == dim;
  return does;
}

double *bb_read_access(bb_run *run, const bb_node *node, const bb_access *access, uint32_t axes,
                       const bb_dim *axis, size_t *count) {
  /* As a value of a type that lists its axes in storage order. */
  bb_level levels[MOST_AXES];
  bb_span spans[BB_INTERP_LEVELS];
  bool had[MOST_AXES] = {false};
  bb_dim own[MOST_AXES] = {0};
  if (axes > BB_INTERP_LEVELS || axes > MOST_AXES) refuse(run, node, "an operand of too many axes");
  for (uint32_t i = 0; i < axes; i++) had[i] = names(access, axis[i]);
  uint32_t number = take_had(axes, axis, had, own);
  for (uint32_t i = 0; i < number; i++) levels[i] = (bb_level){own[i], BB_AXIS_NONE};
  bb_type type = {.item = {BB_F64, BB_NO_DIM, BB_NO_DIM}, .rank = number, .level = levels};
  bb_datum value = {.type = &type, .level = spans};
  see(run, node, access, from_tensor, NULL, &value);
  bb_count_read(run, &value);
  double *data = all_as_dense(run, node, &value, number, own, count);
  return number == axes ? data : spread(run, axes, axis, had, data, count);
}
