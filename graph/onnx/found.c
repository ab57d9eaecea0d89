/* found.c - results as long as data decides: places of elements that are not zero, and what a condition keeps.
 *
 * The length is an extent of its own that the misc node tells in a run (bb_misc_tells), none among them, and at most what it looks
 * through.  Where the elements are known it is a number, and where none is zero the places are the coordinates.
 */
#include "convert.h"
#include "formula.h"

#include <string.h>

enum { MOST_ASKED = 1 << 16 }; /* boxes of one class, where it is not known how many there are */

typedef struct bb_onnx_found {
  struct bb_onnx_found *next;
  uint32_t of; /* the value looked through */
  bb_onnx_value *places;
} bb_onnx_found;

const bb_extent *bb_onnx_told(bb_onnx *m, const bb_extent *most) {
  const bb_extent *count = bb_onnx_fresh(m, "count");
  m->program->most[count->symbol[0]] = most;
  return count;
}

/* Of an extent of its own alone; and texts name what it is at most before it. */
void bb_onnx_told_within(bb_onnx *m, const bb_extent *extent, const bb_extent *most) {
  bb_program *p = m->program;
  uint32_t count, symbol = extent->count ? extent->symbol[0] : BB_NONE;
  bool told = false, before = true;
  if (extent->factor != 1 || extent->count != 1 || p->most[symbol]) return;
  const bb_expr **node = bb_expr_postorder(m->arena, bb_onnx_extent_meaning(m, extent), &count);
  for (uint32_t i = 0; i < count; i++)
    told |= node[i]->op == BB_X_SYMBOL && p->most[node[i]->index];
  for (uint32_t k = 0; k < most->count; k++) before &= most->symbol[k] < symbol;
  if (told && before) p->most[symbol] = most;
}

/* Is one value made as another is?  Models ask for the places of one mask again and again.  looks: that are left. */
static bool is_same(const bb_array *array, uint32_t a, uint32_t b, uint32_t *looks) {
  if (a == b) return true;
  const bb_array_value *v = &array->value[a], *w = &array->value[b];
  if (v->producer == BB_NONE || w->producer == BB_NONE || !*looks) return false;
  --*looks;
  const bb_array_node *x = &array->node[v->producer], *y = &array->node[w->producer];
  bool same = x->op == BB_A_ELEMENTWISE && y->op == BB_A_ELEMENTWISE && x->expr == y->expr &&
              x->nin == y->nin && v->port == w->port;
  for (uint32_t i = 0; same && i < x->nin; i++) same = is_same(array, x->in[i], y->in[i], looks);
  return same;
}

static bb_onnx_value *of_ints(bb_onnx *m, uint32_t rows, size_t columns, const int64_t *number) {
  const bb_extent *shape[2] = {bb_onnx_number(m, rows), bb_onnx_number(m, (int64_t)columns)};
  size_t count = rows * columns;
  if (count > BB_ONNX_ELEMENTS) {
    bb_onnx_value *v = bb_onnx_value_new(m, BB_I64, 2, shape);
    v->data = number;
    v->bytes = count * sizeof *number;
    return v;
  }
  const bb_expr **element = BB_NEW(m->arena, const bb_expr *, count);
  for (size_t i = 0; i < count; i++)
    element[i] = bb_expr_const(m->program, BB_I64, (double)number[i]);
  return bb_onnx_value_of_elements(m, BB_I64, 2, shape, (uint32_t)count, element);
}

/* Where elements are known: [rank, count]. */
static bb_onnx_value *known_places(const bb_onnx_node *n, const bb_onnx_value *v) {
  bb_onnx *m = n->m;
  size_t count, found = 0;
  const double *number = bb_onnx_known_numbers(n, v, &count);
  for (size_t i = 0; number && i < count; i++) found += number[i] != 0;
  if (!number || !found) return NULL;
  int64_t *place = bb_arena_array(m->program->arena, found * v->rank, sizeof *place);
  for (size_t i = 0, at = 0; i < count; i++) {
    if (number[i] == 0) continue;
    size_t rest = i;
    for (uint32_t a = v->rank; a-- > 0;) {
      size_t extent = (size_t)bb_extent_value(v->shape[a]);
      place[a * found + at] = (int64_t)(rest % extent);
      rest /= extent;
    }
    at++;
  }
  return of_ints(m, v->rank, found, place);
}

/* The coordinates of a row none of whose elements is zero. */
static bb_onnx_value *all_places(bb_onnx *m, const bb_onnx_value *v) {
  bool filled = v->rank == 1 && v->form && v->form->op == BB_X_CONST && v->form->number != 0;
  if (!filled) return NULL;
  const bb_extent *shape[2] = {bb_onnx_number(m, 1), v->shape[0]};
  return bb_onnx_value_of_form(m, bb_onnx_index_along(m, v, 0), 2, shape);
}

static bb_onnx_value *places_of(const bb_onnx_node *n, bb_onnx_value *v) {
  bb_onnx *m = n->m;
  if (!v->rank) bb_onnx_refuse(n, "places in a scalar, which has no axes");
  bb_onnx_value *places = all_places(m, v);
  if (!places) places = known_places(n, v);
  if (places) return places;
  uint32_t id = bb_onnx_id(n, v);
  for (const bb_onnx_found *f = m->found; f; f = f->next) {
    uint32_t looks = 64;
    if (is_same(m->array, f->of, id, &looks)) return f->places;
  }
  const bb_extent *shape[2] = {bb_onnx_number(m, v->rank),
                               bb_onnx_told(m, bb_onnx_product(m, v->rank, v->shape))};
  bb_misc kernel = {.domain = "", .op = "NonZero", .version = 13};
  places = bb_onnx_value_new(m, BB_I64, 2, shape);
  bb_onnx_misc_node(n, &kernel, 1, &v, 1, &places);
  bb_onnx_found *found = BB_NEW(m->arena, bb_onnx_found, 1);
  *found = (bb_onnx_found){m->found, id, places};
  m->found = found;
  return places;
}

void bb_onnx_non_zero(bb_onnx_node *n) {
  n->out[0] = places_of(n, n->in[0]);
}

/* What stands where the condition holds, along an axis or of all elements. */
void bb_onnx_compress(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *v = n->in[0], *keep = n->in[1];
  uint32_t axis = 0;
  if (keep->dtype != BB_BOOL || keep->rank != 1)
    bb_onnx_refuse(n, "a condition %s of type %s", bb_onnx_shape_text(m, keep),
                   bb_dtype_name(keep->stored));
  if (bb_onnx_has(n, "axis")) {
    axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", 0), v->rank);
  } else {
    const bb_extent *all = bb_onnx_product(m, v->rank, v->shape);
    v = bb_onnx_reshape(n, v, 1, &all);
  }
  bb_onnx_value *places = places_of(n, keep);
  places = bb_onnx_reshape(n, places, 1, &places->shape[1]);
  n->out[0] = bb_onnx_gather_along(n, v, axis, places);
}

static const bb_attribute *ints_of(bb_onnx *m, const char *a, int64_t x, const char *b, int64_t y) {
  bb_attribute *attribute = BB_NEW(m->program->arena, bb_attribute, 2);
  attribute[0] = (bb_attribute){.name = a, .kind = BB_ATTR_INT, .i = x};
  attribute[1] = (bb_attribute){.name = b, .kind = BB_ATTR_INT, .i = y};
  return attribute;
}

/* All lengths but the last are told, which is what is left: so parts that are joined again are as long as the axis was. */
void bb_onnx_told_parts(bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, bb_onnx_value *lengths,
                        uint32_t parts) {
  bb_onnx *m = n->m;
  const bb_extent *shape[BB_ONNX_RANK], *all = v->shape[axis];
  const bb_expr *rest = bb_onnx_extent_meaning(m, all);
  bool fits = lengths->dtype == BB_I64 && lengths->rank == 1 &&
              bb_onnx_same_extent(n, lengths->shape[0], bb_onnx_number(m, parts));
  if (!fits) bb_onnx_refuse(n, "%u parts of lengths %s", parts, bb_onnx_shape_text(m, lengths));
  memcpy(shape, v->shape, v->rank * sizeof *shape);
  for (uint32_t i = 0; i < parts; i++) {
    bool last = i + 1 == parts;
    shape[axis] = last ? bb_onnx_expr_extent(m, rest) : bb_onnx_told(m, all);
    if (last && parts > 1) m->program->most[shape[axis]->symbol[0]] = all;
    if (!last) rest = bb_onnx_tidy_make(m, BB_X_SUB, rest, bb_onnx_extent_expr(m, shape[axis]));
    bb_misc kernel = {.domain = "blockbuster", .op = "Part", .version = 1, .count = 2};
    kernel.attribute = ints_of(m, "axis", axis, "index", i);
    bb_onnx_value *out = bb_onnx_value_new(m, v->dtype, v->rank, shape);
    bb_onnx_misc_node(n, &kernel, 2, (bb_onnx_value *[]){v, lengths}, 1, &out);
    if (i < n->nout) n->out[i] = out;
  }
}

/* The one axis along which two shapes differ. */
static bool differs_along(const bb_onnx_value *a, const bb_onnx_value *b, uint32_t *axis) {
  uint32_t differ = 0;
  bool alike = a->dtype == b->dtype && a->stored == b->stored && a->bits == b->bits;
  for (uint32_t i = 0; alike && a->rank == b->rank && i < a->rank; i++)
    if (a->shape[i] != b->shape[i]) {
      *axis = i;
      differ++;
    }
  return differ == 1;
}

/* Numbers of one element each as the lengths of parts. */
static bb_onnx_value *lengths_of(const bb_onnx_node *n, bb_onnx_value *condition, uint32_t parts,
                                 const bb_expr *const (*length)[2]) {
  bb_onnx *m = n->m;
  const bb_extent *one = bb_onnx_number(m, 1);
  bb_onnx_value *part[3];
  for (uint32_t i = 0; i < parts; i++) {
    const bb_expr *chosen =
        f_select(m->program, bb_onnx_arg(n, 0, condition), length[i][0], length[i][1]);
    part[i] = bb_onnx_reshape(n, bb_onnx_map(n, chosen, 1, &condition), 1, &one);
  }
  return bb_onnx_concat(n, parts, part, 0);
}

/* Both lie one behind the other, unless one is empty; a part of them is as long as the condition says. */
bb_onnx_value *bb_onnx_choose_length(const bb_onnx_node *n, bb_onnx_value *condition,
                                     bb_onnx_value *a, bb_onnx_value *b) {
  bb_onnx *m = n->m;
  uint32_t axis;
  if (!differs_along(a, b, &axis)) return NULL;
  const bb_extent *of[2] = {a->shape[axis], b->shape[axis]}, *shape[BB_ONNX_RANK], *most;
  const bb_expr *none = bb_expr_const(m->program, BB_I64, 0);
  const bb_expr *long_a = bb_onnx_extent_meaning(m, of[0]),
                *long_b = bb_onnx_extent_meaning(m, of[1]);
  bool empty[2] = {bb_onnx_is_number(of[0], 0), bb_onnx_is_number(of[1], 0)};
  bool any = empty[0] || empty[1];
  bb_onnx_value *both[2] = {a, b}, *v = empty[0] ? b : a;
  condition = bb_onnx_reshape(n, condition, 0, NULL);
  if (!any) v = bb_onnx_concat(n, 2, both, axis);
  /* skipped, taken, left: by whether the condition holds */
  const bb_expr *length[3][2] = {{none, long_a}, {long_a, long_b}, {long_b, none}};
  most = empty[0] ? of[1] : empty[1] ? of[0] : v->shape[axis];
  if (bb_extent_value(of[0]) >= 0 && bb_extent_value(of[1]) >= 0)
    most = bb_extent_value(of[0]) > bb_extent_value(of[1]) ? of[0] : of[1];
  bb_onnx_value *lengths = lengths_of(n, condition, 3, length);
  memcpy(shape, v->shape, v->rank * sizeof *shape);
  shape[axis] = bb_onnx_told(m, most);
  bb_misc kernel = {.domain = "blockbuster", .op = "Part", .version = 1, .count = 2};
  kernel.attribute = ints_of(m, "axis", axis, "index", 1);
  bb_onnx_value *out = bb_onnx_value_new(m, v->dtype, v->rank, shape);
  bb_onnx_misc_node(n, &kernel, 2, (bb_onnx_value *[]){v, lengths}, 1, &out);
  out->stored = a->stored;
  out->bits = a->bits;
  return out;
}

/* Elements, or slices along an axis, without repetition; where each stood, which each was, and how often it stood. */
void bb_onnx_unique(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *v = n->in[0], *out[4];
  const bb_extent *shape[BB_ONNX_RANK];
  const bb_extent *all = bb_onnx_product(m, v->rank, v->shape);
  uint32_t axis = 0, rank = 1;
  if (bb_onnx_has(n, "axis")) {
    axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", 0), v->rank);
    rank = v->rank;
    memcpy(shape, v->shape, rank * sizeof *shape);
    all = v->shape[axis];
  }
  shape[axis] = bb_onnx_told(m, all);
  out[0] = bb_onnx_value_new(m, v->dtype, rank, shape);
  out[1] = bb_onnx_value_new(m, BB_I64, 1, &shape[axis]);
  out[2] = bb_onnx_value_new(m, BB_I64, 1, &all);
  out[3] = bb_onnx_value_new(m, BB_I64, 1, &shape[axis]);
  bb_misc kernel = bb_onnx_own_kernel(n);
  bb_onnx_misc_node(n, &kernel, 1, &v, 4, out);
  for (uint32_t i = 0; i < n->nout; i++) n->out[i] = out[i];
}

/* Of each class in each image the boxes that no better one covers. */
void bb_onnx_best_boxes(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  const bb_onnx_value *boxes = n->in[0], *scores = n->in[1];
  bool fits = boxes->rank == 3 && scores->rank == 3 && bb_onnx_is_number(boxes->shape[2], 4) &&
              bb_onnx_same_extent(n, boxes->shape[0], scores->shape[0]) &&
              bb_onnx_same_extent(n, boxes->shape[1], scores->shape[2]);
  if (!fits)
    bb_onnx_refuse(n, "boxes %s do not fit scores %s", bb_onnx_shape_text(m, boxes),
                   bb_onnx_shape_text(m, scores));
  int64_t number;
  const bb_extent *each = scores->shape[2];
  bool known = n->nin > 2 && n->in[2] && bb_onnx_known_int(n->in[2], &number) && number >= 0;
  int64_t all = bb_extent_value(each), few = all >= 0 ? all : MOST_ASKED; /* more are all of them */
  if (known && number < few) each = bb_onnx_number(m, number ? number : 1);
  const bb_extent *most[3] = {scores->shape[0], scores->shape[1], each};
  const bb_extent *shape[2] = {bb_onnx_told(m, bb_onnx_product(m, 3, most)), bb_onnx_number(m, 3)};
  bb_onnx_misc_result(n, BB_I64, 2, shape);
}

const bb_expr *bb_onnx_count_of(const bb_onnx_node *n, const bb_onnx_value *v) {
  bb_onnx *m = n->m;
  const bb_array *array = m->array;
  if (v->id == BB_NONE || v->dtype != BB_I64 || !v->rank) return NULL;
  uint32_t id = v->id;
  const bb_array_node *cast = NULL;
  while (array->value[id].producer != BB_NONE && !cast) {
    const bb_array_node *node = &array->node[array->value[id].producer];
    bool truth = node->op == BB_A_ELEMENTWISE && node->nin == 1 && node->expr->op == BB_X_CAST &&
                 node->expr->a[0]->op == BB_X_ARG && node->expr->a[0]->dtype == BB_BOOL;
    if (truth)
      cast = node;
    else if (node->op != BB_A_RESHAPE)
      return NULL;
    else
      id = node->in[0];
  }
  if (!cast) return NULL;
  id = cast->in[0];
  while (array->value[id].producer != BB_NONE &&
         array->node[array->value[id].producer].op == BB_A_RESHAPE)
    id = array->node[array->value[id].producer].in[0];
  bb_onnx_value *mask = bb_onnx_value_of_id(m, id);
  return mask->rank ? bb_onnx_extent_expr(m, places_of(n, mask)->shape[1]) : NULL;
}
