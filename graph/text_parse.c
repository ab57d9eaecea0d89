/* text_parse.c - the parts that programs of every stage share, from text: extents, shapes, types,
 * accesses, tensors.  The grammar stands in text.c.
 */
#include "text_form.h"

#include <string.h>

void bb_read_list_add(bb_reader *r, bb_read_list *list, uint32_t item) {
  BB_GROW(r->scratch, list->item, list->capacity, (size_t)list->count + 1);
  list->item[list->count++] = item;
}

/* --- extents and shapes --- */

typedef struct product {
  bb_program *program;
  const bb_extent *a, *b, *result;
} product;

static void multiply(bb_context *ctx, void *argument) {
  (void)ctx;
  product *p = argument;
  p->result = bb_extent_multiply(p->program, p->a, p->b);
}

static const bb_extent *read_factor(bb_reader *r) {
  const char *place = r->token.start;
  if (r->token.kind == BB_TOKEN_NUMBER) return bb_extent_number(r->program, bb_read_integer(r));
  const char *name = bb_read_name(r, "an extent");
  if (bb_symbol_find(r->program, name) == UINT32_MAX)
    bb_read_fail(r, place, "%s is not declared: dim %s", name, name);
  return bb_extent_symbol(r->program, name);
}

const bb_extent *bb_read_extent(bb_reader *r) {
  const char *place = r->token.start;
  enum { FACTORS = 64 };
  const bb_extent *extent = read_factor(r);
  for (uint32_t n = 1; bb_read_accept(r, "*"); n++) {
    if (n == FACTORS) bb_read_fail(r, place, "an extent of more than %d factors", FACTORS);
    product p = {.program = r->program, .a = extent, .b = read_factor(r)};
    bb_read_protected(r, place, multiply, &p);
    extent = p.result;
  }
  return extent;
}

bb_dtype bb_read_dtype(bb_reader *r) {
  bb_dtype dtype;
  if (r->token.kind != BB_TOKEN_NAME || !bb_dtype_parse(r->token.name, r->token.length, &dtype))
    bb_read_fail_expected(r, "an element type such as f32");
  bb_read_next(r);
  return dtype;
}

bb_shape bb_read_shape(bb_reader *r) {
  const bb_extent **extent = NULL;
  uint32_t capacity = 0;
  bb_shape shape = {.dtype = bb_read_dtype(r)};
  bb_read_expect(r, "[");
  while (!bb_read_accept(r, "]")) {
    if (shape.rank) bb_read_expect(r, ",");
    BB_GROW(r->scratch, extent, capacity, shape.rank + 1u);
    extent[shape.rank++] = bb_read_extent(r);
  }
  shape.extent = BB_NEW(r->program->arena, const bb_extent *, shape.rank);
  if (shape.rank) memcpy(shape.extent, extent, shape.rank * sizeof *extent);
  return shape;
}

bb_dim bb_read_dim(bb_reader *r) {
  const char *place = r->token.start, *name = bb_read_name(r, "a dim");
  bb_dim dim = bb_dim_find(r->program, name, strlen(name));
  if (dim == BB_NO_DIM) bb_read_fail(r, place, "there is no dim %s", name);
  return dim;
}

const bb_dim *bb_read_dim_list(bb_reader *r, uint32_t *count) {
  bb_read_list list = {0};
  bb_read_expect(r, "[");
  while (!bb_read_accept(r, "]")) {
    if (list.count) bb_read_expect(r, ",");
    bb_read_list_add(r, &list, bb_read_dim(r));
  }
  bb_dim *dims = BB_NEW(r->program->arena, bb_dim, list.count);
  if (list.count) memcpy(dims, list.item, list.count * sizeof *dims);
  *count = list.count;
  return dims;
}

/* --- types of block programs --- */

static bb_dim read_item_dim(bb_reader *r) {
  if (r->token.kind == BB_TOKEN_NAME && strcmp(r->token.name, "_") == 0) {
    bb_read_next(r);
    return BB_NO_DIM;
  }
  return bb_read_dim(r);
}

bb_axis bb_read_axis(bb_reader *r) {
  if (bb_read_accept(r, "row")) return BB_AXIS_ROW;
  if (bb_read_accept(r, "col")) return BB_AXIS_COL;
  bb_read_expect(r, "none");
  return BB_AXIS_NONE;
}

const bb_type *bb_read_type(bb_reader *r) {
  if (bb_read_accept(r, "?")) return NULL;
  bb_level *level = NULL;
  bool *told = NULL; /* the axis of a level is written */
  uint32_t rank = 0, levels = 0, tolds = 0;
  while (bb_read_accept(r, "[")) {
    BB_GROW(r->scratch, level, levels, rank + 1u);
    BB_GROW(r->scratch, told, tolds, rank + 1u);
    level[rank] = (bb_level){bb_read_dim(r), BB_AXIS_NONE};
    told[rank] = bb_read_accept(r, ":");
    if (told[rank]) level[rank].axis = bb_read_axis(r);
    rank++;
    bb_read_expect(r, "]");
  }
  bb_item item = {bb_read_dtype(r), BB_NO_DIM, BB_NO_DIM};
  if (bb_read_accept(r, "(")) {
    item.row = read_item_dim(r);
    bb_read_expect(r, ",");
    item.col = read_item_dim(r);
    bb_read_expect(r, ")");
  }
  for (uint32_t i = 0; i < rank; i++)
    if (!told[i]) level[i].axis = bb_level_default_axis(level[i].dim, &item, i, level);
  return bb_type_make(r->program, item, rank, level);
}

/* --- accesses --- */

/* +K, -2*K; false: there is none */
static bool read_steps(bb_reader *r, int64_t *step, bb_dim *dim) {
  bool minus = bb_read_is(r, "-");
  if (!bb_read_accept(r, minus ? "-" : "+")) return false;
  *step = 1;
  if (r->token.kind == BB_TOKEN_NUMBER) {
    *step = bb_read_integer(r);
    bb_read_expect(r, "*");
  }
  if (minus) *step = -*step;
  *dim = bb_read_dim(r);
  return true;
}

/* M, 3, 4+K, 4-2*K, 0+2*P+T */
static bb_index read_index(bb_reader *r) {
  if (r->token.kind != BB_TOKEN_NUMBER && !bb_read_is(r, "-"))
    return (bb_index){.kind = BB_INDEX_DIM, .dim = bb_read_dim(r)};
  bb_index index = {.kind = BB_INDEX_FIXED, .dim = BB_NO_DIM, .start = bb_read_integer(r)};
  if (read_steps(r, &index.step, &index.dim)) index.kind = BB_INDEX_RANGE;
  if (index.kind == BB_INDEX_RANGE && read_steps(r, &index.by, &index.tap))
    index.kind = BB_INDEX_WINDOW;
  return index;
}

static bb_piece read_piece(bb_reader *r, bb_read_source *source, void *user) {
  bb_piece piece = {.source = source(user, r)};
  bb_index *index = NULL;
  uint32_t capacity = 0;
  bb_read_expect(r, "[");
  while (!bb_read_accept(r, "]")) {
    if (piece.rank) bb_read_expect(r, ",");
    BB_GROW(r->scratch, index, capacity, piece.rank + 1u);
    index[piece.rank++] = read_index(r);
  }
  piece.index = index;
  piece.padded = bb_read_accept(r, "else");
  if (piece.padded) piece.fill = bb_read_double(r);
  return piece;
}

/* at first to last + 1 */
static void read_span(bb_reader *r, bb_piece *piece) {
  bb_read_expect(r, "at");
  const char *place = r->token.start;
  piece->first = bb_read_integer(r);
  bb_read_expect(r, "to");
  if (__builtin_sub_overflow(bb_read_integer(r), piece->first, &piece->length))
    bb_read_fail(r, place, "a piece too long");
}

const bb_access *bb_read_index_access(bb_reader *r, bb_read_source *source, void *user) {
  bb_access access = {.joined = BB_NO_DIM};
  if (bb_read_accept(r, "none")) return NULL;
  if (!bb_read_accept(r, "join")) {
    bb_piece piece = read_piece(r, source, user);
    access.count = 1;
    access.piece = &piece;
    return bb_access_make(r->program, &access);
  }
  access.joined = bb_read_dim(r);
  bb_piece *pieces = NULL;
  uint32_t capacity = 0;
  bb_read_expect(r, "(");
  while (!bb_read_accept(r, ")")) {
    if (access.count) bb_read_expect(r, ",");
    BB_GROW(r->scratch, pieces, capacity, (size_t)access.count + 1);
    pieces[access.count] = read_piece(r, source, user);
    read_span(r, &pieces[access.count++]);
  }
  access.piece = pieces;
  return bb_access_make(r->program, &access);
}

/* --- tensors --- */

uint32_t bb_read_tensor(bb_reader *r) {
  const char *place = r->token.start;
  if (r->token.kind == BB_TOKEN_TENSOR) {
    r->token.kind = BB_TOKEN_NUMBER;
    return bb_read_index(r, r->program->tensors, "the number of a tensor");
  }
  const char *name = bb_read_name(r, "a tensor");
  uint32_t tensor = bb_table_find(r->tensor, name, strlen(name));
  if (tensor == BB_NONE) bb_read_fail(r, place, "there is no tensor %s", name);
  return tensor;
}

uint32_t bb_read_tensor_source(void *user, bb_reader *r) {
  (void)user;
  return bb_read_tensor(r);
}

void bb_read_tensor_statement(bb_reader *r) {
  static const char *const role[] = {"input", "output", "constant", "local"};
  bb_tensor tensor = {.role = BB_TENSOR_INPUT};
  while (tensor.role <= BB_TENSOR_LOCAL && !bb_read_is(r, role[tensor.role])) tensor.role++;
  if (tensor.role > BB_TENSOR_LOCAL) bb_read_fail_expected(r, "a statement");
  bb_read_next(r);
  tensor.name = bb_read_name(r, "the name of a tensor");
  tensor.once = bb_read_accept(r, "once");
  bb_read_expect(r, ":");
  bb_shape shape = bb_read_shape(r);
  tensor.dtype = shape.dtype;
  tensor.rank = shape.rank;
  tensor.shape = shape.extent;
  if (bb_read_accept(r, "dims")) tensor.axis = bb_read_dim_list(r, &tensor.axes);
  if (bb_read_accept(r, "="))
    tensor.data = bb_read_data(r, shape.dtype, shape.rank, shape.extent, &tensor.bytes);
  uint32_t index = bb_tensor_add(r->program, &tensor);
  bb_table_add(r->tensor, tensor.name, strlen(tensor.name), index);
}

/* --- symbols, dims, expressions --- */

static void declare_symbol(bb_reader *r, const char *place, const char *name) {
  if (bb_symbol_find(r->program, name) != UINT32_MAX)
    bb_read_fail(r, place, "symbol %s is declared twice", name);
  bb_symbol_index(r->program, name);
}

/* Of symbols that stand before it alone, so that each has a number where they have. */
static void read_most(bb_reader *r, uint32_t symbol) {
  const char *place = r->token.start;
  const bb_extent *most = bb_read_extent(r);
  for (uint32_t k = 0; k < most->count; k++)
    if (most->symbol[k] >= symbol)
      bb_read_fail(r, place, "symbol %s is at most what follows from itself",
                   r->program->symbol[symbol]);
  r->program->most[symbol] = most;
}

void bb_read_symbols(bb_reader *r) {
  do {
    const char *place = r->token.start;
    const char *name = bb_read_name(r, "the name of a symbol");
    declare_symbol(r, place, name);
    if (!bb_read_accept(r, "at")) continue;
    bb_read_expect(r, "most");
    read_most(r, bb_symbol_find(r->program, name));
  } while (bb_read_accept(r, ","));
}

static void declare_dim(bb_reader *r, const char *place, const char *name) {
  size_t length = strlen(name);
  bool clean = length <= 64 && bb_is_name_start(*name) && !strchr(name, '.');
  for (const char *at = name; *at; at++) clean &= bb_is_name_char(*at);
  if (!clean)
    bb_read_fail(r, place, "the name of a dim is a letter and up to 63 letters, digits and _");
  if (bb_dim_find(r->program, name, length) != BB_NO_DIM)
    bb_read_fail(r, place, "dim %s is declared twice", name);
  const bb_extent *extent = bb_read_extent(r);
  bool enumerated = bb_read_accept(r, "enumerated");
  if (!enumerated) bb_read_accept(r, "blocked");
  bb_dim_add(r->program, name, extent, !enumerated);
}

/* dim M = extent, or, declaring run-time extents, dim M, N */
void bb_read_dims(bb_reader *r) {
  const char *place = r->token.start, *name = bb_read_name(r, "the name of a dim");
  if (bb_read_accept(r, "=")) {
    declare_dim(r, place, name);
    return;
  }
  declare_symbol(r, place, name);
  if (bb_read_accept(r, ",")) bb_read_symbols(r);
}

/* "an unknown name" also says which. */
static _Noreturn void fail_expression(bb_reader *r, const char *at, const char *wrong) {
  int length = 0;
  while (at + length < r->end && length < 60 && bb_is_name_char(at[length])) length++;
  bool name = strncmp(wrong, "an unknown", 10) == 0 && length > 0;
  bb_read_fail(r, at, "%s%s%.*s", wrong, name ? " " : "", name ? length : 0, at);
}

static const bb_expr *read_by(bb_expr_parser *parse, bb_reader *r, bb_expr_lookup *lookup,
                              void *user) {
  const char *at = r->token.start, *wrong;
  const bb_expr *expr = parse(r->program, &at, r->end, lookup, user, &wrong);
  if (!expr) fail_expression(r, at, wrong);
  bb_read_from(r, at);
  return expr;
}

const bb_expr *bb_read_expr(bb_reader *r, bb_expr_lookup *lookup, void *user) {
  return read_by(bb_expr_parse, r, lookup, user);
}

const bb_expr *bb_read_index_expr(bb_reader *r, bb_expr_lookup *lookup, void *user) {
  return read_by(bb_expr_parse_index, r, lookup, user);
}
