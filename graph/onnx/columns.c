/* columns.c - Col2Im: blocks of an image added up where they stand, which is a transposed convolution with the weights that
 * put each element of a block in its place; and ReverseSequence, a gather.
 */
#include "convert.h"
#include "formula.h"

#include <string.h>

enum { MOST_AXES = 5 };

/* [elements of a block, 1, block...]: 1 where an element stands, 0 elsewhere. */
static bb_onnx_value *places(const bb_onnx_node *n, uint32_t axes, const int64_t *block,
                             int64_t count, bb_dtype dtype) {
  bb_program *p = n->m->program;
  const bb_extent *shape[MOST_AXES + 2] = {bb_onnx_number(n->m, count), bb_onnx_number(n->m, 1)};
  for (uint32_t a = 0; a < axes; a++) shape[a + 2] = bb_onnx_number(n->m, block[a]);
  const bb_onnx_value like = {.dtype = BB_I64, .rank = axes + 2, .shape = shape};
  const bb_expr *at = bb_expr_const(p, BB_I64, 0);
  for (uint32_t a = 0; a < axes; a++)
    at = f_add(p, f_mul(p, at, f_num(p, at, (double)block[a])),
               bb_onnx_index_along(n->m, &like, a + 2));
  const bb_expr *here = f_eq(p, at, bb_onnx_index_along(n->m, &like, 0));
  const bb_expr *one = bb_expr_const(p, dtype, 1);
  return bb_onnx_value_of_form(n->m, f_select(p, here, one, f_num(p, one, 0)), axes + 2, shape);
}

/* How many blocks stand along an axis of the image, and elements behind what the last one reaches. */
static int64_t blocks_along(const bb_onnx_node *n, uint32_t axes, uint32_t a, int64_t image,
                            int64_t block, int64_t *rest) {
  static const char *const names[] = {"strides", "dilations", "pads"};
  int64_t given[3] = {1, 1, 0};
  const int64_t limit = (int64_t)1 << 30;
  for (uint32_t i = 0; i < 3; i++) {
    uint32_t count;
    const int64_t *list = bb_onnx_ints(n, names[i], &count);
    if (list && count != axes * (i == 2 ? 2 : 1))
      bb_onnx_refuse(n, "%s has %u numbers for %u axes", names[i], count, axes);
    if (!list) continue;
    bool sane = list[a] >= (i != 2) && list[a] < limit &&
                (i != 2 || (list[a + axes] >= 0 && list[a + axes] < limit));
    if (!sane) bb_onnx_refuse(n, "%s are out of range", names[i]);
    given[i] = list[a] + (i == 2 ? list[a + axes] : 0);
  }
  bool sane = image >= 1 && image < limit && block >= 1 && block < limit;
  int64_t room = sane ? image + given[2] - given[1] * (block - 1) - 1 : -1;
  if (room < 0) bb_onnx_refuse(n, "a block is larger than axis %u of the image", a);
  *rest = room % given[0];
  return room / given[0] + 1;
}

/* The node with an attribute more: what a transposed convolution makes of each axis beyond what its last block reaches. */
static const bb_onnx_node *with_rest(const bb_onnx_node *n, uint32_t axes, int64_t *rest) {
  bb_arena *arena = n->m->program->arena;
  bb_onnx_node *other = BB_NEW(n->m->arena, bb_onnx_node, 1);
  Onnx__NodeProto *proto = BB_NEW(arena, Onnx__NodeProto, 1);
  Onnx__AttributeProto *more = BB_NEW(arena, Onnx__AttributeProto, 1);
  int64_t *copy = BB_NEW(arena, int64_t, axes);
  memcpy(copy, rest, axes * sizeof *copy);
  onnx__attribute_proto__init(more);
  more->name = bb_arena_text(arena, "output_padding", strlen("output_padding"));
  more->has_type = true;
  more->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  more->n_ints = axes;
  more->ints = copy;
  *proto = *n->proto;
  proto->attribute = BB_NEW(arena, Onnx__AttributeProto *, proto->n_attribute + 1);
  if (proto->n_attribute)
    memcpy(proto->attribute, n->proto->attribute, proto->n_attribute * sizeof *proto->attribute);
  proto->attribute[proto->n_attribute++] = more;
  *other = *n;
  other->proto = proto;
  return other;
}

void bb_onnx_columns(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *x = n->in[0], *y = NULL;
  uint32_t axes, given;
  const int64_t *image = bb_onnx_known_ints(n, n->in[1], &axes);
  const int64_t *block = bb_onnx_known_ints(n, n->in[2], &given);
  bb_onnx_want_float(n, x);
  if (!image || !block) {
    bb_onnx_unsupported(n, "a shape that is computed at run time");
    return;
  }
  if (axes != given || axes < 1 || axes > MOST_AXES || x->rank != 3)
    bb_onnx_refuse(n, "blocks of %u axes of an image of %u in %s", given, axes,
                   bb_onnx_shape_text(m, x));
  const bb_extent *shape[MOST_AXES + 2], *channels;
  int64_t count = 1, rest[MOST_AXES], all = 1;
  for (uint32_t a = 0; a < axes; a++) {
    int64_t blocks = blocks_along(n, axes, a, image[a], block[a], &rest[a]);
    if (__builtin_mul_overflow(count, block[a], &count) ||
        __builtin_mul_overflow(all, blocks, &all))
      bb_onnx_refuse(n, "the blocks are too many");
    shape[a + 2] = bb_onnx_number(m, blocks);
  }
  shape[1] = bb_onnx_number(m, count);
  channels = bb_extent_divide(m->program, x->shape[1], shape[1]);
  if (!channels || !bb_onnx_is_number(x->shape[2], all))
    bb_onnx_refuse(n, "%s are not %lld blocks of %lld elements", bb_onnx_shape_text(m, x),
                   (long long)all, (long long)count);
  shape[0] = bb_extent_multiply(m->program, x->shape[0], channels);
  bb_onnx_value *in[2] = {bb_onnx_reshape(n, x, axes + 2, shape),
                          places(n, axes, block, count, x->dtype)};
  bb_onnx_convert_as(with_rest(n, axes, rest), "ConvTranspose", BB_ONNX_OPSET_OPERANDS, 2, in, 1,
                     &y);
  shape[0] = x->shape[0];
  shape[1] = channels;
  for (uint32_t a = 0; a < axes; a++) shape[a + 2] = bb_onnx_number(m, image[a]);
  n->out[0] = y->unsupported ? y : bb_onnx_reshape(n, y, axes + 2, shape);
}

/* The first elements of each sequence, as many as its length says, in the other order. */
void bb_onnx_reverse_sequence(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  bb_onnx_value *x = n->in[0], *length = n->in[1];
  int64_t time = bb_onnx_int(n, "time_axis", 0), batch = bb_onnx_int(n, "batch_axis", 1);
  bool fits = x->rank >= 2 && time + batch == 1 && time * batch == 0 && length->rank == 1 &&
              bb_onnx_same_extent(n, length->shape[0], x->shape[batch]);
  if (!fits)
    bb_onnx_refuse(n, "lengths %s of %s along axis %lld, batches along %lld",
                   bb_onnx_shape_text(m, length), bb_onnx_shape_text(m, x), (long long)time,
                   (long long)batch);
  const bb_extent *shape[BB_ONNX_RANK];
  for (uint32_t a = 0; a < x->rank; a++) shape[a] = a == batch ? x->shape[a] : bb_onnx_number(m, 1);
  length = bb_onnx_reshape(n, bb_onnx_cast(n, length, BB_I64), x->rank, shape);
  length = bb_onnx_broadcast(n, length, x->rank, x->shape);
  const bb_expr *at = bb_onnx_index_along(m, x, (uint32_t)time), *end = bb_onnx_arg(n, 0, length);
  const bb_expr *back = f_sub(p, f_sub(p, end, f_num(p, end, 1)), at);
  bb_onnx_value *index = bb_onnx_map(n, f_select(p, f_lt(p, at, end), back, at), 1, &length);
  bb_attribute *attribute = BB_NEW(p->arena, bb_attribute, 1);
  *attribute = (bb_attribute){.name = "axis", .kind = BB_ATTR_INT, .i = time};
  bb_misc kernel = {
      .domain = "", .op = "GatherElements", .version = 13, .count = 1, .attribute = attribute};
  n->out[0] = bb_onnx_value_new(m, x->dtype, x->rank, x->shape);
  bb_onnx_misc_node(n, &kernel, 2, (bb_onnx_value *[]){x, index}, 1, n->out);
}
