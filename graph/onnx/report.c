/* report.c - what the reader says when it refuses: the node, the place, and every operator it cannot
 * convert in one list.
 */
#include "import.h"
#include "../text_name.h"

#include <string.h>

enum { QUOTE_LIMIT = 120 };

const char *bb_onnx_quote(bb_arena *arena, const char *text) {
  bb_buffer out = {.arena = arena};
  size_t shown = 0;
  bb_put(&out, "\"");
  for (; text && text[shown] && shown < QUOTE_LIMIT; shown++) {
    unsigned char c = (unsigned char)text[shown];
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
      bb_put(&out, "\\x%02x", c);
    else
      bb_put_bytes(&out, &text[shown], 1);
  }
  bb_put(&out, text && text[shown] ? "...\"" : "\"");
  return out.data;
}

/* The node as the model has it. */
static const bb_onnx_node *written(const bb_onnx_node *n) {
  return n->written ? n->written : n;
}

/* What it is read as where that is another operator. */
static const char *other_name(const bb_onnx_node *n) {
  const char *as = n->proto->op_type;
  bool same = n == written(n) || strcmp(as, written(n)->proto->op_type) == 0;
  return same ? "" : bb_arena_printf(n->m->arena, ", read as %s", as);
}

static const char *operator_name(const bb_onnx_node *n) {
  const bb_onnx_node *w = written(n);
  const char *op = w->proto->op_type ? w->proto->op_type : "";
  const char *dot = w->domain[0] ? "." : "";
  return bb_arena_printf(n->m->arena, "%s%s%s%s", w->domain, dot, op, other_name(n));
}

void bb_onnx_refuse(const bb_onnx_node *n, const char *format, ...) {
  bb_buffer out = {.arena = n->m->arena};
  va_list arguments;
  va_start(arguments, format);
  bb_put_vprintf(&out, format, arguments);
  va_end(arguments);
  const char *op = bb_onnx_quote(n->m->arena, operator_name(n));
  bb_fail(n->m->ctx, BB_ERROR_INPUT, "node %s (%.*s): %s", bb_onnx_quote(n->m->arena, n->name),
          (int)strlen(op) - 2, op + 1, out.data);
}

/* An extent as people write it: 2*heads*sequence. */
static void put_extent(bb_buffer *out, const bb_onnx *m, const bb_extent *extent) {
  bool factor = extent->factor != 1 || !extent->count;
  if (factor) bb_put(out, "%lld", (long long)extent->factor);
  for (uint32_t i = 0; i < extent->count; i++) {
    const char *name = m->program->symbol[extent->symbol[i]];
    bool part = (factor || extent->count > 1) && strpbrk(name, "+-/");
    bb_put(out, "%s%s", i || factor ? "*" : "", part ? "(" : "");
    bb_put_extent_name(out, name);
    bb_put(out, part ? ")" : "");
  }
}

void bb_onnx_put_shape(bb_buffer *out, const bb_onnx *m, uint32_t rank,
                       const bb_extent *const *shape) {
  bb_put(out, "[");
  for (uint32_t i = 0; i < rank; i++) {
    if (i) bb_put(out, ",");
    if (shape[i])
      put_extent(out, m, shape[i]);
    else
      bb_put(out, "-1"); /* to be inferred */
  }
  bb_put(out, "]");
}

const char *bb_onnx_shape_text(const bb_onnx *m, const bb_onnx_value *v) {
  bb_buffer out = {.arena = m->arena};
  bb_onnx_put_shape(&out, m, v->rank, v->shape);
  return out.data;
}

static void put_operand(bb_buffer *out, const bb_onnx *m, const bb_onnx_value *v) {
  if (!v) {
    bb_put(out, "none");
  } else if (v->unsupported) {
    bb_put(out, "?");
  } else {
    bb_put(out, "%s", bb_dtype_name(v->stored));
    bb_onnx_put_shape(out, m, v->rank, v->shape);
  }
}

void bb_onnx_unsupported(bb_onnx_node *n, const char *format, ...) {
  bb_onnx *m = n->m;
  bb_buffer *out = &m->refusals;
  const bb_onnx_node *w = written(n);
  const char *op = bb_onnx_quote(m->arena, w->proto->op_type);
  bb_put(out, "\n  node %s: op %.*s, domain %s, opset %lld, inputs (",
         bb_onnx_quote(m->arena, n->name), (int)strlen(op) - 2, op + 1,
         w->domain[0] ? w->domain : "ai.onnx", (long long)w->version);
  for (uint32_t i = 0; i < w->nin; i++) {
    if (i) bb_put(out, ", ");
    put_operand(out, m, w->in[i]);
  }
  bb_put(out, ")%s", other_name(n));
  if (format) {
    va_list arguments;
    bb_put(out, ": ");
    va_start(arguments, format);
    bb_put_vprintf(out, format, arguments);
    va_end(arguments);
  }
  m->unsupported++;
  for (uint32_t i = 0; i < n->nout; i++) {
    n->out[i] = BB_NEW(m->arena, bb_onnx_value, 1);
    n->out[i]->unsupported = true;
    n->out[i]->id = BB_NONE;
  }
}
