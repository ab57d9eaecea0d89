/* text_print.c - the parts that programs of every stage share, as text: extents, types, accesses,
 * tensors, misc.  The grammar stands in text.c.
 */
#include "expr_text.h"
#include "text_form.h"
#include "text_number.h"

#include <string.h>

void bb_write_indent(bb_writer *w, uint32_t depth) {
  for (uint32_t i = 0; i < depth; i++) bb_put(w->out, "  ");
}

/* --- names of tensors --- */

/* A tensor goes by its name unless an earlier one has it too: then by its number. */
static void name_tensors(bb_writer *w) {
  const bb_program *program = w->program;
  bb_table *names = bb_table_create(w->scratch);
  w->tensor = BB_NEW(w->scratch, const char *, program->tensors);
  for (uint32_t i = 0; i < program->tensors; i++) {
    bb_buffer name = {.arena = w->scratch};
    const char *given = program->tensor[i].name;
    if (bb_table_add(names, given, strlen(given), i))
      bb_put_name(&name, given);
    else
      bb_put(&name, "&%u", i);
    w->tensor[i] = name.data;
  }
}

bb_writer bb_writer_begin(bb_buffer *out, const bb_program *program, const char *data_name) {
  bb_writer w = {.out = out, .program = program, .data_name = data_name};
  w.scratch = bb_scratch(program->ctx);
  name_tensors(&w);
  return w;
}

void bb_writer_end(bb_writer *w) {
  bb_scratch_end(w->scratch);
}

/* --- extents and types --- */

void bb_write_extent(bb_writer *w, const bb_extent *extent) {
  bool factor = extent->count == 0 || extent->factor != 1;
  if (factor) bb_put(w->out, "%lld", (long long)extent->factor);
  for (uint32_t i = 0; i < extent->count; i++) {
    if (factor || i) bb_put(w->out, "*");
    bb_put_name(w->out, w->program->symbol[extent->symbol[i]]);
  }
}

void bb_write_shape(bb_writer *w, bb_dtype dtype, uint32_t rank, const bb_extent *const *shape) {
  bb_put(w->out, "%s[", bb_dtype_name(dtype));
  for (uint32_t i = 0; i < rank; i++) {
    if (i) bb_put(w->out, ",");
    bb_write_extent(w, shape[i]);
  }
  bb_put(w->out, "]");
}

static void write_dim(bb_writer *w, bb_dim dim) {
  if (dim == BB_NO_DIM)
    bb_put(w->out, "_");
  else if (dim < w->program->dims)
    bb_put_name(w->out, w->program->dim[dim].name);
  else
    bb_put(w->out, "?"); /* only in a program that breaks the laws */
}

bb_axis bb_level_default_axis(bb_dim dim, const bb_item *item, uint32_t outer,
                              const bb_level *level) {
  bool row = false, col = false;
  for (uint32_t i = 0; i < outer; i++) {
    row |= level[i].axis == BB_AXIS_ROW;
    col |= level[i].axis == BB_AXIS_COL;
  }
  if (dim == item->row && !row) return BB_AXIS_ROW;
  if (dim == item->col && !col) return BB_AXIS_COL;
  return BB_AXIS_NONE;
}

static const char *axis_name(bb_axis axis) {
  return axis == BB_AXIS_ROW ? "row" : axis == BB_AXIS_COL ? "col" : "none";
}

void bb_write_type(bb_writer *w, const bb_type *type) {
  if (!type) {
    bb_put(w->out, "?");
    return;
  }
  for (uint32_t i = 0; i < type->rank; i++) {
    bb_level level = type->level[i];
    bb_put(w->out, "[");
    write_dim(w, level.dim);
    if (level.axis != bb_level_default_axis(level.dim, &type->item, i, type->level))
      bb_put(w->out, ":%s", axis_name(level.axis));
    bb_put(w->out, "]");
  }
  bb_put(w->out, "%s", bb_dtype_name(type->item.dtype));
  if (type->item.row == BB_NO_DIM && type->item.col == BB_NO_DIM) return;
  bb_put(w->out, "(");
  write_dim(w, type->item.row);
  bb_put(w->out, ",");
  write_dim(w, type->item.col);
  bb_put(w->out, ")");
}

/* --- accesses --- */

/* +K, +2*K or -K */
static void write_steps(bb_writer *w, int64_t step, bb_dim dim) {
  unsigned long long size = step < 0 ? 0 - (unsigned long long)step : (unsigned long long)step;
  bb_put(w->out, step < 0 ? "-" : "+");
  if (size != 1) bb_put(w->out, "%llu*", size);
  write_dim(w, dim);
}

/* M, 3, 4+K, 4+2*K, 7-K or 0+2*P+T */
static void write_index(bb_writer *w, const bb_index *index) {
  if (index->kind == BB_INDEX_DIM) {
    write_dim(w, index->dim);
    return;
  }
  bb_put(w->out, "%lld", (long long)index->start);
  if (index->kind != BB_INDEX_FIXED) write_steps(w, index->step, index->dim);
  if (index->kind == BB_INDEX_WINDOW) write_steps(w, index->by, index->tap);
}

static void write_piece(bb_writer *w, const bb_piece *piece, const char *const *operand) {
  bb_put(w->out, "%s[", operand[piece->source]);
  for (uint32_t i = 0; i < piece->rank; i++) {
    if (i) bb_put(w->out, ",");
    write_index(w, &piece->index[i]);
  }
  bb_put(w->out, "]");
  if (!piece->padded) return;
  bb_put(w->out, " else ");
  bb_put_number(w->out, piece->fill, BB_F64);
}

void bb_write_access(bb_writer *w, const bb_access *access, const char *const *operand) {
  if (!access) {
    bb_put(w->out, "none");
    return;
  }
  if (access->joined == BB_NO_DIM && access->count == 1) {
    write_piece(w, &access->piece[0], operand);
    return;
  }
  bb_put(w->out, "join ");
  write_dim(w, access->joined);
  bb_put(w->out, " (");
  for (uint32_t i = 0; i < access->count; i++) {
    const bb_piece *piece = &access->piece[i];
    if (i) bb_put(w->out, ", ");
    write_piece(w, piece, operand);
    bb_put(w->out, " at %lld to %lld", (long long)piece->first,
           (long long)(piece->first + piece->length));
  }
  bb_put(w->out, ")");
}

/* --- misc --- */

/* A float always has a point, an exponent or no digits, so that an attribute tells its kind. */
static void write_float(bb_writer *w, double value) {
  size_t start = w->out->length;
  bb_put_number(w->out, value, BB_F64);
  if (!strpbrk(w->out->data + start, ".eni")) bb_put(w->out, ".0");
}

static void write_attribute(bb_writer *w, const bb_attribute *attribute) {
  bb_put_label(w->out, attribute->name);
  bb_put(w->out, "=");
  switch (attribute->kind) {
  case BB_ATTR_INT: bb_put(w->out, "%lld", (long long)attribute->i); return;
  case BB_ATTR_FLOAT: write_float(w, attribute->f); return;
  case BB_ATTR_TEXT: bb_put_quoted(w->out, attribute->text ? attribute->text : ""); return;
  case BB_ATTR_INTS:
  case BB_ATTR_FLOATS: break;
  }
  bool floats = attribute->kind == BB_ATTR_FLOATS;
  bb_put(w->out, floats && attribute->count == 0 ? "float[" : "[");
  for (uint32_t i = 0; i < attribute->count; i++) {
    if (i) bb_put(w->out, ",");
    if (floats)
      write_float(w, attribute->floats[i]);
    else
      bb_put(w->out, "%lld", (long long)attribute->ints[i]);
  }
  bb_put(w->out, "]");
}

static void write_ports(bb_writer *w, uint32_t count, const bb_misc_port *port) {
  bb_put(w->out, "(");
  for (uint32_t i = 0; i < count; i++) {
    if (i) bb_put(w->out, ", ");
    if (port[i].absent) {
      bb_put(w->out, "absent");
      continue;
    }
    bb_write_shape(w, port[i].dtype, port[i].rank, port[i].shape);
    if (!port[i].axes) continue;
    bb_put(w->out, " dims [");
    for (uint32_t k = 0; k < port[i].axes; k++) {
      if (k) bb_put(w->out, ",");
      write_dim(w, port[i].axis[k]);
    }
    bb_put(w->out, "]");
  }
  bb_put(w->out, ")");
}

void bb_write_misc(bb_writer *w, const bb_misc *misc, uint32_t count, const char *const *operand) {
  static const bb_misc nothing = {.domain = "", .op = ""};
  if (!misc) misc = &nothing; /* only in a program that breaks the laws */
  bb_put(w->out, "misc ");
  if (*misc->domain) {
    bb_put_quoted(w->out, misc->domain);
    bb_put(w->out, ":");
  }
  bb_put_quoted(w->out, misc->op);
  bb_put(w->out, " %u(", misc->version);
  for (uint32_t i = 0; i < count; i++) bb_put(w->out, "%s%s", i ? ", " : "", operand[i]);
  bb_put(w->out, ")");
  if (misc->count) bb_put(w->out, " {");
  for (uint32_t i = 0; i < misc->count; i++) {
    if (i) bb_put(w->out, ", ");
    write_attribute(w, &misc->attribute[i]);
  }
  if (misc->count) bb_put(w->out, "}");
  if (!misc->in || !misc->out) return;
  bb_put(w->out, " of ");
  write_ports(w, misc->nin, misc->in);
  bb_put(w->out, " -> ");
  write_ports(w, misc->nout, misc->out);
}

/* --- elementwise --- */

/* Are the operands, read off the expression from left to right, 0, 1, 2 ... count - 1? */
static bool order_is_plain(bb_arena *scratch, const bb_expr *expr, uint32_t count,
                           const char *const *operand) {
  uint32_t nodes, seen = 0;
  if (expr->arg_count != count || !bb_expr_prints_whole(expr)) return false;
  const bb_expr **node = bb_expr_postorder(scratch, expr, &nodes);
  for (uint32_t i = 0; i < nodes; i++) {
    if (node[i]->op != BB_X_ARG || node[i]->index < seen) continue;
    if (node[i]->index != seen++) return false;
  }
  bb_table *names = bb_table_create(scratch);
  for (uint32_t i = 0; i < count; i++)
    if (!bb_table_add(names, operand[i], strlen(operand[i]), i)) return false;
  return seen == count;
}

void bb_write_elementwise(bb_writer *w, const bb_expr *expr, uint32_t count,
                          const char *const *operand, const bb_dtype *dtype) {
  bb_put(w->out, "elementwise ");
  bool plain = order_is_plain(w->scratch, expr, count, operand);
  if (!plain) {
    bb_put(w->out, "of (");
    for (uint32_t i = 0; i < count; i++) bb_put(w->out, "%s%s", i ? ", " : "", operand[i]);
    bb_put(w->out, ") ");
  }
  const char *const *name = plain ? operand : BB_NEW(w->scratch, const char *, count);
  bb_expr_print_typed(w->out, w->program, expr, BB_EXPR_TEXT, count, name, dtype);
}
