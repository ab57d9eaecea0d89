/* import.h - what the files of the ONNX reader share.
 *
 * A value of the model is kept in the cheapest form that is known of it, and becomes a value of
 * the array program only when an operator needs it as a tensor:
 *   element: a small tensor whose elements are scalar expressions of run-time extents (shape
 *            arithmetic);
 *   form:    a closed form of its coordinates (ranges, masks, fills, scalar constants), which
 *            elementwise operators take in as an expression;
 *   id:      a value of the array program.
 * A form never names the coordinate of an axis of extent 1, so broadcasting leaves it as it is.
 */
#ifndef BB_ONNX_IMPORT_H
#define BB_ONNX_IMPORT_H

#include "../array/array.h"
#include "../intern.h"
#include "../tables.h"
#include "onnx.pb-c.h"

enum {
  BB_ONNX_OPSET_FIRST = 7,
  BB_ONNX_OPSET_OPERANDS = 13, /* what older.def has is otherwise before it */
  BB_ONNX_OPSET_LAST = 28,
  BB_ONNX_IR_FIRST = 3,
  BB_ONNX_IR_LAST = 14,
  BB_ONNX_RANK = 16,     /* most axes of a tensor of the model */
  BB_ONNX_STEPS = 1024,  /* most steps that are converted one by one */
  BB_ONNX_ELEMENTS = 256 /* most elements that are tracked one by one */
};

typedef struct bb_onnx_value {
  const char *name;
  bb_dtype dtype;
  /* the model's type: integers of few bits are computed with as wider ones, within its range */
  bb_dtype stored;
  /* of an element of the model's type, one that only constants have (int4, float8...); 0: any
   * other type */
  uint32_t bits;
  uint32_t rank;
  const bb_extent *const *shape;
  uint32_t id;         /* BB_NONE: not in the array program yet */
  const bb_expr *form; /* NULL: none known */
  uint32_t elements;
  const bb_expr *const *element; /* row-major; NULL: none known */
  const void *data;              /* a tensor of the file: its bytes */
  size_t bytes;
  bool unsupported; /* made by an operator that has no converter */
} bb_onnx_value;

typedef struct bb_onnx_frame bb_onnx_frame; /* scope.c: a graph or function body */

typedef struct bb_onnx {
  bb_program *program;
  bb_context *ctx;
  bb_array *array;
  bb_arena *arena;    /* dies with the import */
  const char *folder; /* of external data; NULL: none */
  const Onnx__ModelProto *model;
  bb_intern *functions; /* scope.c */
  uint32_t unsupported; /* operators refused so far */
  bb_buffer refusals;
  uint32_t symbols;                /* made for extents without a name */
  struct bb_onnx_matrix *matrices; /* fourier.c: those of transforms, the latest first */
  struct bb_onnx_tie *ties;    /* tie.c: names that stand for another extent, the latest first */
  struct bb_onnx_exact *exact; /* exact.c: quotients that are whole, the latest first */
  bool again;                  /* a tie was found: the import begins anew */
  bool clamps; /* some slice has a length that depends on whether its axis is too short (slice.c) */
  bool at_word;  /* none may: with such lengths the model cannot be converted */
  bool cuts;     /* some length is cut to a number by the model (elementwise.c) */
  bool uncut;    /* none may */
  bool divides;  /* some reshape's open axis is a quotient of names (view.c) */
  bool in_place; /* none may: numbers of a shape are the lengths of axes in their place */
  struct bb_onnx_bound *bounds; /* bound.c: how much names are at least */
  struct bb_onnx_found *found;  /* found.c: places that were looked for, the latest first */
  bool learned;                 /* a bound that the import did not begin with */
  uint32_t nodes;               /* converted so far, inlined bodies included */
} bb_onnx;

struct bb_onnx_row;

typedef struct bb_onnx_node {
  bb_onnx *m;
  const Onnx__NodeProto *proto;
  const struct bb_onnx_node *written; /* read as another operator: the model's node; else NULL */
  const bb_onnx_frame *frame;
  const struct bb_onnx_row *row;
  const char *name;    /* the node's, or made from its first output; printable */
  const char *domain;  /* "" for ai.onnx */
  int64_t version;     /* of the domain, imported where the node stands */
  uint32_t nin, nout;  /* trailing absent ones are not counted */
  bb_onnx_value **in;  /* NULL: absent */
  bb_onnx_value **out; /* set by the converter */
} bb_onnx_node;

typedef void bb_onnx_converter(bb_onnx_node *n);

typedef struct bb_onnx_row {
  const char *domain, *name;
  uint32_t since;
  bb_onnx_converter *convert;
  uint32_t min_in, max_in, max_out;
  int detail; /* what converters shared by several operators tell them apart by */
  bool misc;  /* becomes a reference kernel */
} bb_onnx_row;

/* --- wire.c --- */

/* Refuses an encoding that protobuf-c should not see. */
void bb_onnx_check_wire(bb_context *ctx, const void *bytes, size_t length,
                        const ProtobufCMessageDescriptor *message);
/* Checks and unpacks; the message lives in the arena. */
void *bb_onnx_unpack(bb_arena *arena, const void *bytes, size_t length,
                     const ProtobufCMessageDescriptor *message);

/* --- operator.c --- */

/* The row for an operator at an opset, or NULL. */
const bb_onnx_row *bb_onnx_row_find(const char *domain, const char *name, int64_t version);

/* --- graph.c --- */

/* Converts the model's graph and names the array program's inputs and outputs. */
void bb_onnx_import_graph(bb_onnx *m);
/* Converts a graph that is an attribute of the node where the node stands: its inputs are `in`, its
 * outputs become `out`.  Refuses other numbers of either. */
void bb_onnx_inline_graph(const bb_onnx_node *n, const Onnx__GraphProto *graph, uint32_t inputs,
                          bb_onnx_value *const *in, uint32_t outputs, bb_onnx_value **out);
/* The same in two steps, for a graph that is converted several times: its initializers are read
 * once, into the frame that the first gives. */
const bb_onnx_frame *bb_onnx_open_graph(const bb_onnx_node *n, const Onnx__GraphProto *graph,
                                        uint32_t inputs, uint32_t outputs);
void bb_onnx_convert_graph(const bb_onnx_node *n, const bb_onnx_frame *opened,
                           const Onnx__GraphProto *graph, bb_onnx_value *const *in,
                           bb_onnx_value **out);

/* --- scope.c --- */

/* Converts the node as operator `op` of ai.onnx, as opset `version` has it, on operands in[0..nin)
 * (NULL: absent) with its own attributes; results are `unsupported` where it was reported so. */
void bb_onnx_convert_as(const bb_onnx_node *n, const char *op, int64_t version, uint32_t nin,
                        bb_onnx_value **in, uint32_t nout, bb_onnx_value **out);

/* --- report.c: refusals --- */

/* Text fit for a message: control characters escaped, quoted, shortened. */
const char *bb_onnx_quote(bb_arena *arena, const char *text);
_Noreturn void bb_onnx_refuse(const bb_onnx_node *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Notes that the node cannot be converted and why (NULL: no such operator); its outputs stay
 * unknown, and so do the results of what uses them. */
void bb_onnx_unsupported(bb_onnx_node *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void bb_onnx_put_shape(bb_buffer *out, const bb_onnx *m, uint32_t rank,
                       const bb_extent *const *shape);
const char *bb_onnx_shape_text(const bb_onnx *m, const bb_onnx_value *v);

/* --- attribute.c --- */

/* The attribute, a reference to a function's own attribute resolved; NULL if absent. */
const Onnx__AttributeProto *bb_onnx_attribute(const bb_onnx_node *n, const char *name,
                                              Onnx__AttributeProto__AttributeType type);
bool bb_onnx_has(const bb_onnx_node *n, const char *name);
int64_t bb_onnx_int(const bb_onnx_node *n, const char *name, int64_t otherwise);
double bb_onnx_float(const bb_onnx_node *n, const char *name, double otherwise);
/* NUL-terminated; lives as long as the import. */
const char *bb_onnx_text(const bb_onnx_node *n, const char *name, const char *otherwise);
/* NULL and *count 0 if absent. */
const int64_t *bb_onnx_ints(const bb_onnx_node *n, const char *name, uint32_t *count);
/* NUL-terminated; they live as long as the import. */
const char *const *bb_onnx_texts(const bb_onnx_node *n, const char *name, uint32_t *count);
const float *bb_onnx_floats(const bb_onnx_node *n, const char *name, uint32_t *count);
/* An axis attribute or value made non-negative; refuses what is out of range. */
uint32_t bb_onnx_axis(const bb_onnx_node *n, int64_t axis, uint32_t rank);
/* The node's attributes as a misc node keeps them, in the program's arena. */
const bb_attribute *bb_onnx_attributes(const bb_onnx_node *n, uint32_t *count);

/* --- tensor.c --- */

/* The element type that an ONNX data type is computed in: narrow integers are widened.  False for
 * what cannot be held (text, complex, uint64), or only as constants (floats of 8 bits and less,
 * integers of 4 and 2). */
bool bb_onnx_dtype(int32_t data_type, bb_dtype *dtype);
/* How inputs and outputs of that type are held. */
bb_dtype bb_onnx_stored(int32_t data_type);
const char *bb_onnx_dtype_name(int32_t data_type);
/* A tensor of the file.  `where` names it in messages. */
bb_onnx_value *bb_onnx_value_of_tensor(bb_onnx *m, const char *name,
                                       const Onnx__TensorProto *tensor, const char *where);
/* --- extent.c: extents and the integers computed from them --- */

/* An extent as an i64 expression of extents and numbers. */
const bb_expr *bb_onnx_extent_expr(bb_onnx *m, const bb_extent *extent);
/* What a symbol says that is no name of the model's but an expression, the extent of a sum; NULL:
 * it is a name. */
const bb_expr *bb_onnx_symbol_meaning(bb_onnx *m, const bb_expr *symbol);
/* The extent as an expression, what it was made of by name where that is a sum: sums of it
 * cancel. */
const bb_expr *bb_onnx_extent_meaning(bb_onnx *m, const bb_extent *extent);
/* The product of extents that an expression is, or NULL. */
const bb_extent *bb_onnx_expr_product(bb_onnx *m, const bb_expr *e);
/* The extent an integer expression is; a sum or another expression of symbols becomes a symbol
 * named by its text.  NULL for a negative number. */
const bb_extent *bb_onnx_expr_extent(bb_onnx *m, const bb_expr *expr);
/* An integer expression in the form that equal extents share; comparisons that hold for every
 * extent of at least 1 are decided. */
const bb_expr *bb_onnx_tidy(bb_onnx *m, const bb_expr *expr);
/* The least value an expression can take, -inf when that is not known. */
double bb_onnx_least(bb_onnx *m, const bb_expr *e);
/* a (op) b, tidied. */
const bb_expr *bb_onnx_tidy_make(bb_onnx *m, bb_expr_op op, const bb_expr *a, const bb_expr *b);
const bb_extent *bb_onnx_number(bb_onnx *m, int64_t value);
const bb_extent *bb_onnx_product(bb_onnx *m, uint32_t count, const bb_extent *const *extent);
/* The extent that a dim_param names: a symbol, or an expression of symbols. */
const bb_extent *bb_onnx_param_extent(bb_onnx *m, const char *param);
/* The extent that a sum of numbers and names is; NULL: the text is none. */
const bb_extent *bb_onnx_sum_extent(bb_onnx *m, const char *text);
/* A symbol of its own, for an extent that the model leaves open. */
const bb_extent *bb_onnx_fresh(bb_onnx *m, const char *stem);
bool bb_onnx_is_one(const bb_extent *extent);
bool bb_onnx_is_number(const bb_extent *extent, int64_t value);
/* numpy's rule for several shapes; refuses those that do not fit. */
const bb_extent *const *bb_onnx_broadcast_shapes(const bb_onnx_node *n, uint32_t count,
                                                 bb_onnx_value *const *v, uint32_t *rank);
/* Refuses zero extents and tensors too large to hold.  `what` names the value. */
void bb_onnx_check_shape(bb_onnx *m, const char *what, bb_dtype dtype, uint32_t rank,
                         const bb_extent *const *shape);
/* Elements of the shape if it is a number, none also where only some extents are known, else -1. */
int64_t bb_onnx_count(uint32_t rank, const bb_extent *const *shape);

/* --- sum.c --- */

/* times[0] * term[0] + ... + number */
enum { BB_ONNX_TERMS = 16 };
typedef struct bb_onnx_sum {
  uint32_t terms;
  const bb_expr *term[BB_ONNX_TERMS];
  double times[BB_ONNX_TERMS], number;
} bb_onnx_sum;
/* Adds an integer expression, times a whole number; false: it has too many terms. */
bool bb_onnx_sum_add(bb_onnx *m, bb_onnx_sum *s, const bb_expr *e, double times);
/* The sum as an expression of an integer type: terms in one order, those that are taken away behind
 * the others, the number last. */
const bb_expr *bb_onnx_sum_expr(bb_onnx *m, bb_onnx_sum *s, bb_dtype dtype);

/* A quotient or a remainder of whole numbers: exact where it is, else in the form that equal ones
 * share. */
const bb_expr *bb_onnx_tidy_quotient(bb_onnx *m, const bb_expr *e);

/* --- tie.c --- */

/* Are two extents the same?  Where one is a name that an input declares, they are made so: then the
 * import begins again with that name bound, and this does not return. */
bool bb_onnx_same_extent(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b);
/* The same of products of extents: what both have aside. */
bool bb_onnx_same_product(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b);
/* The greatest extent that divides both. */
const bb_extent *bb_onnx_common_extent(bb_onnx *m, const bb_extent *a, const bb_extent *b);
/* Where shapes a and b have to be of one size and each names as many extents that the other lacks, these are the same, in the
 * order of the axes: begins again so, or returns. */
void bb_onnx_tie_shapes(const bb_onnx_node *n, uint32_t from, const bb_extent *const *a,
                        uint32_t to, const bb_extent *const *b);
/* Makes a / by whole, where a name that is declared can be a multiple of what is missing: then this does not return. */
void bb_onnx_tie_quotient(const bb_onnx_node *n, const bb_extent *a, const bb_extent *by);
/* The extent of a name: its own symbol, or what it is bound to. */
const bb_extent *bb_onnx_tied(bb_onnx *m, const char *name);

/* --- exact.c --- */

/* of / by, which has to be whole: a run in which it is not is refused.  NULL: it is no extent. */
const bb_extent *bb_onnx_exact_quotient(bb_onnx *m, const bb_extent *of, const bb_extent *by);
/* Are two products one where a quotient that `parts` names is whole?  Then it has to be. */
bool bb_onnx_exact_where(bb_onnx *m, const bb_extent *whole, const bb_extent *parts);
/* by * (of / by) as of, wherever an extent has such a part. */
const bb_extent *bb_onnx_whole_extent(bb_onnx *m, const bb_extent *extent);
/* Two sides of an equation times what their quotients are by: then none is left.  False: there was none. */
bool bb_onnx_multiply_out(bb_onnx *m, const bb_extent **a, const bb_extent **b);

/* --- bound.c --- */

/* An extent that is at least 1 wherever the model has an answer: what its name then is at least is known from here on, and
 * where the import begins again.  A run in which it is 0 is refused. */
void bb_onnx_has_some(bb_onnx *m, const bb_extent *extent);
/* The least that an extent can be. */
double bb_onnx_extent_least(const bb_onnx *m, const bb_extent *extent);

/* --- found.c --- */

/* A symbol of its own for what data decides in a run, at most so much. */
const bb_extent *bb_onnx_told(bb_onnx *m, const bb_extent *most);
/* An extent that is so much at most, wherever it follows from what data decides. */
void bb_onnx_told_within(bb_onnx *m, const bb_extent *extent, const bb_extent *most);
/* The node's results: so many parts of an axis, as long as elements of `lengths` say in a run. */
void bb_onnx_told_parts(bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, bb_onnx_value *lengths,
                        uint32_t parts);
/* a where the condition, of one element, holds, else b, which is longer or shorter along one axis: the result is as long as a run
 * tells; NULL: they differ otherwise. */
bb_onnx_value *bb_onnx_choose_length(const bb_onnx_node *n, bb_onnx_value *condition,
                                     bb_onnx_value *a, bb_onnx_value *b);
/* The sum of all elements of a value that are truth values as integers: as many as there are places of true ones, an extent that
 * shapes may have; NULL: they are none. */
const bb_expr *bb_onnx_count_of(const bb_onnx_node *n, const bb_onnx_value *v);

/* --- ratio.c --- */

/* An i64 that is cast from a float, without floats where it is made of lengths alone: a run in which floats would not hold
 * these is refused. */
const bb_expr *bb_onnx_whole_of_float(bb_onnx *m, const bb_expr *e);

/* --- value.c: values and the operators of array programs on them --- */

/* A value of a type and shape of which nothing is known; one of the array program; one that is an expression of
 * its coordinates; one whose `count` elements are known, each an expression without coordinates. */
bb_onnx_value *bb_onnx_value_new(bb_onnx *m, bb_dtype dtype, uint32_t rank,
                                 const bb_extent *const *shape);
bb_onnx_value *bb_onnx_value_of_id(bb_onnx *m, uint32_t id);
bb_onnx_value *bb_onnx_value_of_form(bb_onnx *m, const bb_expr *form, uint32_t rank,
                                     const bb_extent *const *shape);
bb_onnx_value *bb_onnx_value_of_elements(bb_onnx *m, bb_dtype dtype, uint32_t rank,
                                         const bb_extent *const *shape, uint32_t count,
                                         const bb_expr *const *element);
bb_onnx_value *bb_onnx_scalar(bb_onnx *m, bb_dtype dtype, double number);
/* The value in the array program; made now if it was not there. */
uint32_t bb_onnx_id(const bb_onnx_node *n, bb_onnx_value *v);
/* The one element of a value, if it is known as an expression; else NULL. */
const bb_expr *bb_onnx_scalar_expr(const bb_onnx_value *v);
/* The numbers of a small integer tensor; NULL when one is not known as the model is read.  Refuses
 * other element types. */
const int64_t *bb_onnx_known_ints(const bb_onnx_node *n, const bb_onnx_value *v, uint32_t *count);
bool bb_onnx_known_int(const bb_onnx_value *v, int64_t *value);
/* The elements of a value of which nothing waits for a run; NULL: some do, or there are too many. */
const double *bb_onnx_known_numbers(const bb_onnx_node *n, const bb_onnx_value *v, size_t *count);

/* `expr` of operands v[0..count) (its ARG leaves), broadcast. */
bb_onnx_value *bb_onnx_map(const bb_onnx_node *n, const bb_expr *expr, uint32_t count,
                           bb_onnx_value *const *v);
/* a where the condition, of one element, holds, else b; NULL: they differ in type or shape. */
bb_onnx_value *bb_onnx_choose(const bb_onnx_node *n, bb_onnx_value *condition, bb_onnx_value *a,
                              bb_onnx_value *b);
/* ARG i with the dtype of v. */
const bb_expr *bb_onnx_arg(const bb_onnx_node *n, uint32_t i, const bb_onnx_value *v);
bb_onnx_value *bb_onnx_cast(const bb_onnx_node *n, bb_onnx_value *v, bb_dtype dtype);
bb_onnx_value *bb_onnx_reduce(const bb_onnx_node *n, bb_monoid_id monoid, bb_onnx_value *v,
                              uint32_t count, const int64_t *axes, bool keep);
bb_onnx_value *bb_onnx_contract(const bb_onnx_node *n, bb_onnx_value *a, bb_onnx_value *b,
                                const int64_t *labels_a, const int64_t *labels_b, uint32_t rank,
                                const int64_t *labels_out);

/* --- narrow.c: integers of few bits --- */

/* v with the low bits that a stored type keeps of each element, computed in v's type; any other
 * type: v. */
bb_onnx_value *bb_onnx_wrap(const bb_onnx_node *n, bb_onnx_value *v, bb_dtype stored);
/* The least and the greatest value of a stored integer type, or of so many of its bits; 0: all. */
void bb_onnx_stored_range(bb_dtype stored, uint32_t bits, double *least, double *greatest);
/* Refuses a node that takes elements of types that only constants have, and that ONNX lets no such
 * operator take. */
void bb_onnx_check_few(const bb_onnx_node *n);
/* After conversion: results have the model's types, and their elements fit those. */
void bb_onnx_keep_types(bb_onnx_node *n);

/* --- layout.c: views of values --- */

/* As numpy has them; axes are counted from 0, and what does not fit is refused. */
bb_onnx_value *bb_onnx_reshape(const bb_onnx_node *n, bb_onnx_value *v, uint32_t rank,
                               const bb_extent *const *shape);
bb_onnx_value *bb_onnx_transpose(const bb_onnx_node *n, bb_onnx_value *v, const int64_t *perm);
bb_onnx_value *bb_onnx_broadcast(const bb_onnx_node *n, bb_onnx_value *v, uint32_t rank,
                                 const bb_extent *const *shape);
bb_onnx_value *bb_onnx_slice(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, int64_t start,
                             int64_t step, int64_t length);
/* An axis in windows, which may overlap: it becomes two, places and taps. */
bb_onnx_value *bb_onnx_windows(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                               const bb_array_windows *windows);
/* An axis of which only a run tells the length, with a number before and behind it. */
bb_onnx_value *bb_onnx_pad_along(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                 int64_t before, int64_t after, const bb_expr *fill);
/* The elements from `start` to before `end` by `step`, as numpy has them, whether the axis is as
 * long as a number or a run-time extent; what then lies out of range is refused in the run. */
bb_onnx_value *bb_onnx_part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, int64_t start,
                            int64_t end, int64_t step);
#define BB_ONNX_TO_END ((int64_t)1 << 62)
/* What is known of integers and truth values that are functions of their coordinates (form.c), of
 * the shape given; NULL: nothing.  The index of a gather counts along `axis`, those of the other
 * along all axes. */
const bb_expr *bb_onnx_form_tidy(bb_onnx *m, const bb_expr *form);
bb_onnx_value *bb_onnx_form_concat(bb_onnx *m, uint32_t count, bb_onnx_value *const *v,
                                   uint32_t axis, const bb_extent *const *shape);
bb_onnx_value *bb_onnx_form_gather(bb_onnx *m, const bb_onnx_value *v, uint32_t axis,
                                   const bb_onnx_value *index, uint32_t rank,
                                   const bb_extent *const *shape);
bb_onnx_value *bb_onnx_form_gather_nd(bb_onnx *m, const bb_onnx_value *v,
                                      const bb_onnx_value *index, uint32_t rank,
                                      const bb_extent *const *shape);
bb_onnx_value *bb_onnx_concat(const bb_onnx_node *n, uint32_t count, bb_onnx_value **v,
                              uint32_t axis);
/* Adds axes of extent 1 in front so that the rank is `rank`. */
bb_onnx_value *bb_onnx_lead(const bb_onnx_node *n, bb_onnx_value *v, uint32_t rank);

#endif
