/* verify_access.c - the laws of accesses: how inputs, outputs and views read and store. */
#include "verify_law.h"

#include "../runtime/interp/interp.h"

#include <math.h>

/* The axes of a source of an access. */
typedef struct axes {
  uint32_t count;
  bb_dim *dim;
  bb_dtype dtype;
} axes;

static bb_place at_piece(bb_verifier *v, const bb_node *node, uint32_t piece) {
  bb_place place = bb_at_node(node);
  place.text = bb_arena_printf(v->scratch, "piece %u", piece);
  return place;
}

static bool source_axes(bb_verifier *v, const bb_graph *root, const bb_node *node, uint32_t at,
                        axes *source) {
  uint32_t which = node->access->piece[at].source;
  bool view = node->kind == BB_NODE_VIEW;
  if (which >= (view ? node->nin : v->program->tensors))
    return bb_law_broken(v, BB_LAW_ACCESS, at_piece(v, node, at), "there is no source %u", which);
  const bb_type *type = view ? bb_type_of(root, node->in[which].src) : NULL;
  const bb_tensor *tensor = view ? NULL : &v->program->tensor[which];
  source->count = view ? type->rank : tensor->axes;
  source->dtype = view ? type->item.dtype : tensor->dtype;
  source->dim = BB_NEW(v->scratch, bb_dim, source->count);
  for (uint32_t i = 0; i < source->count; i++)
    source->dim[i] = view ? type->level[i].dim : tensor->axis[i];
  return true;
}

static int64_t extent_of(const bb_verifier *v, bb_dim dim) {
  return bb_extent_value(v->program->dim[dim].extent);
}

/* Every element of every window lies in an axis of `extent` (-1: not known); anywhere, if the axis is padded. */
static bool windows_in_range(const bb_index *index, int64_t places, int64_t taps, int64_t extent,
                             bool padded) {
  int64_t along[2] = {index->step, index->by}, count[2] = {places, taps}, low, high;
  if (index->step == 0 || index->by == 0 || (index->start < 0 && !padded)) return false;
  if (places == 0 || taps == 0) return true;
  low = high = index->start;
  for (int k = 0; k < 2; k++) {
    int64_t far;
    if (count[k] < 0) return true; /* known only at run time */
    if (__builtin_mul_overflow(along[k], count[k] - 1, &far) ||
        __builtin_add_overflow(far < 0 ? low : high, far, far < 0 ? &low : &high))
      return false;
  }
  return padded || (low >= 0 && (extent < 0 || high < extent));
}

/* start + step * (length - 1) and start itself lie in an axis of `extent` (-1: not known); anywhere, if it is padded. */
static bool in_range(const bb_index *index, int64_t length, int64_t extent, bool padded) {
  int64_t last = index->start;
  bool begins = index->start >= 0 && (extent < 0 || index->start < extent || length == 0);
  if (!begins && !padded) return false;
  if (index->kind == BB_INDEX_FIXED) return true;
  if (index->step == 0) return false;
  if (length <= 0) return true; /* none, or known only at run time */
  if (__builtin_mul_overflow(index->step, length - 1, &last) ||
      __builtin_add_overflow(last, index->start, &last))
    return false;
  return padded || (last >= 0 && (extent < 0 || last < extent));
}

static bool check_index(bb_verifier *v, const bb_node *node, uint32_t at, uint32_t i,
                        const axes *source) {
  const bb_access *access = node->access;
  const bb_piece *piece = &access->piece[at];
  const bb_index *index = &piece->index[i];
  int64_t axis = extent_of(v, source->dim[i]);
  for (uint32_t k = 0; k < bb_index_dims(index); k++)
    if (bb_index_dim(index, k) >= v->program->dims)
      return bb_law_broken(v, BB_LAW_ACCESS, at_piece(v, node, at), "index %u has no dim", i);
  bool joined = access->joined != BB_NO_DIM && bb_index_over(index, access->joined);
  if (index->kind == BB_INDEX_WINDOW && (joined || node->kind == BB_NODE_OUTPUT))
    return bb_law_broken(v, BB_LAW_ACCESS, at_piece(v, node, at),
                         "index %u is a window, which nothing is joined along or stored to", i);
  if (index->kind == BB_INDEX_DIM && !joined &&
      v->program->dim[index->dim].extent != v->program->dim[source->dim[i]].extent)
    return bb_law_broken(v, BB_LAW_ACCESS, at_piece(v, node, at),
                         "index %u is over %s, which is not as long as %s", i,
                         v->program->dim[index->dim].name, v->program->dim[source->dim[i]].name);
  if (index->kind == BB_INDEX_DIM) {
    if (!joined || axis < 0 || axis == piece->length) return true;
    return bb_law_broken(v, BB_LAW_ACCESS_RANGE, at_piece(v, node, at),
                         "index %u takes %lld of %lld elements", i, (long long)piece->length,
                         (long long)axis);
  }
  int64_t length = index->kind == BB_INDEX_FIXED ? 1
                   : joined                      ? piece->length
                                                 : extent_of(v, index->dim);
  if (index->kind == BB_INDEX_WINDOW
          ? windows_in_range(index, length, extent_of(v, index->tap), axis, piece->padded)
          : in_range(index, length, axis, piece->padded))
    return true;
  return bb_law_broken(v, BB_LAW_ACCESS_RANGE, at_piece(v, node, at),
                       "index %u leaves axis %s of %lld", i, v->program->dim[source->dim[i]].name,
                       (long long)axis);
}

/* The dims of a piece's indices, and the joined dim, are those of the value's lists. */
static bool check_dims(bb_verifier *v, const bb_node *node, uint32_t at, const bb_type *type) {
  const bb_access *access = node->access;
  const bb_piece *piece = &access->piece[at];
  bb_dim *dim = BB_NEW(v->scratch, bb_dim, 2 * (size_t)piece->rank + 1);
  uint32_t count = 0;
  bool has_joined = access->joined == BB_NO_DIM;
  for (uint32_t i = 0; i < piece->rank; i++) {
    has_joined |= bb_index_over(&piece->index[i], access->joined);
    for (uint32_t k = 0; k < bb_index_dims(&piece->index[i]); k++)
      dim[count++] = bb_index_dim(&piece->index[i], k);
  }
  if (!has_joined) dim[count++] = access->joined; /* pack: each piece one element */
  if (!has_joined && piece->length != 1)
    return bb_law_broken(v, BB_LAW_ACCESS_JOIN, at_piece(v, node, at),
                         "it has no index over the joined dim and covers %lld elements",
                         (long long)piece->length);
  bool same = count == type->rank;
  for (uint32_t i = 0; same && i < type->rank; i++) {
    uint32_t k = 0;
    while (k < count && dim[k] != type->level[i].dim) k++;
    same = k < count;
    if (same) dim[k] = dim[--count];
  }
  if (same) return true;
  return bb_law_broken(v, BB_LAW_ACCESS_TYPE, at_piece(v, node, at),
                       "its dims are not those of the value's lists");
}

static bool check_join(bb_verifier *v, const bb_node *node) {
  const bb_access *access = node->access;
  int64_t reached = 0;
  if (access->joined == BB_NO_DIM) {
    if (access->count == 1) return true;
    return bb_law_broken(v, BB_LAW_ACCESS_JOIN, bb_at_node(node), "%u pieces and no joined dim",
                         access->count);
  }
  if (access->joined >= v->program->dims)
    return bb_law_broken(v, BB_LAW_ACCESS, bb_at_node(node), "the joined dim does not exist");
  for (uint32_t i = 0; i < access->count; i++) {
    const bb_piece *piece = &access->piece[i];
    if (piece->first != reached || piece->length < 0 ||
        __builtin_add_overflow(reached, piece->length, &reached))
      return bb_law_broken(v, BB_LAW_ACCESS_JOIN, at_piece(v, node, i),
                           "it begins at %lld, not at %lld", (long long)piece->first,
                           (long long)reached);
  }
  int64_t extent = extent_of(v, access->joined);
  if (extent >= 0 && extent != reached)
    return bb_law_broken(v, BB_LAW_ACCESS_JOIN, bb_at_node(node),
                         "pieces cover %lld of %lld elements", (long long)reached,
                         (long long)extent);
  return true;
}

static bool check_role(bb_verifier *v, const bb_node *node, uint32_t at) {
  const bb_tensor *tensor = &v->program->tensor[node->access->piece[at].source];
  if (node->kind != BB_NODE_OUTPUT || tensor->role == BB_TENSOR_OUTPUT ||
      tensor->role == BB_TENSOR_LOCAL)
    return true;
  return bb_law_broken(v, BB_LAW_TENSOR_ROLE, at_piece(v, node, at), "it stores into %s",
                       tensor->name);
}

static bool check_fill(bb_verifier *v, const bb_node *node, uint32_t at, bb_dtype dtype) {
  double fill = node->access->piece[at].fill;
  if (node->kind == BB_NODE_OUTPUT)
    return bb_law_broken(v, BB_LAW_ACCESS, at_piece(v, node, at), "nothing is stored to a padding");
  if (isnan(fill) ? bb_dtype_is_float(dtype) : bb_round_to(dtype, fill) == fill) return true;
  return bb_law_broken(v, BB_LAW_ACCESS_TYPE, at_piece(v, node, at), "its fill is no %s",
                       bb_dtype_name(dtype));
}

static bool check_piece(bb_verifier *v, const bb_graph *root, const bb_node *node, uint32_t at,
                        const bb_type *type) {
  axes source = {0};
  const bb_piece *piece = &node->access->piece[at];
  if (!source_axes(v, root, node, at, &source)) return false;
  if (piece->rank != source.count)
    return bb_law_broken(v, BB_LAW_ACCESS, at_piece(v, node, at), "%u indices for %u axes",
                         piece->rank, source.count);
  for (uint32_t i = 0; i < piece->rank; i++)
    if (!check_index(v, node, at, i, &source)) return false;
  if (piece->padded && !check_fill(v, node, at, source.dtype)) return false;
  if (source.dtype != type->item.dtype)
    return bb_law_broken(v, BB_LAW_ACCESS_TYPE, at_piece(v, node, at),
                         "a value of %s, a source of %s", bb_dtype_name(type->item.dtype),
                         bb_dtype_name(source.dtype));
  if (!check_dims(v, node, at, type)) return false;
  return node->kind == BB_NODE_VIEW || check_role(v, node, at);
}

bool bb_verify_access(bb_verifier *v, const bb_graph *root, const bb_node *node,
                      const bb_type *type) {
  if (!node->access || node->access->count == 0)
    return bb_law_broken(v, BB_LAW_ACCESS, bb_at_node(node), "it has no access");
  if (!check_join(v, node)) return false;
  for (uint32_t i = 0; i < node->access->count; i++)
    if (!check_piece(v, root, node, i, type)) return false;
  return true;
}
