/* scope.c - converts nodes where they stand: what they read by name, which operator or function they
 * call, and what they define.  Functions of the model are converted in place of their calls, with
 * names and opsets of their own.
 */
#include "scope.h"

#include <string.h>

enum { INLINE_DEPTH = 64, NODE_LIMIT = 1 << 19 };

static const char *domain_of(const char *domain) {
  domain = bb_onnx_text_of(domain);
  return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* --- functions --- */

typedef struct function_entry {
  const char *domain, *name, *overload;
  const Onnx__FunctionProto *function;
} function_entry;

/* Fields that the installed schema may not know are kept as bytes: a string one, or NULL. */
static const char *unknown_text(bb_onnx *m, const ProtobufCMessage *message, uint32_t tag) {
  for (unsigned i = 0; i < message->n_unknown_fields; i++) {
    const ProtobufCMessageUnknownField *field = &message->unknown_fields[i];
    if (field->tag != tag || field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) continue;
    size_t skip = 0; /* the length stands in front of the text */
    while (skip < field->len && field->data[skip] & 0x80) skip++;
    skip += skip < field->len;
    return bb_arena_text(m->arena, (const char *)field->data + skip, field->len - skip);
  }
  return "";
}

enum { NODE_OVERLOAD = 8, FUNCTION_OVERLOAD = 13, FUNCTION_DEFAULTS = 11 };

static uint64_t hash_function(const void *object) {
  const function_entry *f = object;
  uint64_t hash = bb_hash_bytes(f->domain, strlen(f->domain), 0);
  hash = bb_hash_bytes(f->name, strlen(f->name), hash);
  return bb_hash_bytes(f->overload, strlen(f->overload), hash);
}

static bool same_function(const void *left, const void *right) {
  const function_entry *a = left, *b = right;
  return strcmp(a->domain, b->domain) == 0 && strcmp(a->name, b->name) == 0 &&
         strcmp(a->overload, b->overload) == 0;
}

void bb_onnx_note_functions(bb_onnx *m) {
  m->functions = bb_intern_create(m->arena, hash_function, same_function);
  for (size_t i = 0; i < m->model->n_functions; i++) {
    const Onnx__FunctionProto *f = m->model->functions[i];
    function_entry *entry = BB_NEW(m->arena, function_entry, 1);
    *entry = (function_entry){domain_of(f->domain), bb_onnx_text_of(f->name),
                              unknown_text(m, &f->base, FUNCTION_OVERLOAD), f};
    if (bb_intern_find(m->functions, entry))
      bb_fail(m->ctx, BB_ERROR_INPUT, "function %s is defined twice",
              bb_onnx_quote(m->arena, entry->name));
    bb_intern_add(m->functions, entry);
  }
}

static const Onnx__FunctionProto *function_of(bb_onnx *m, const bb_onnx_node *n) {
  function_entry key = {n->domain, bb_onnx_text_of(n->proto->op_type),
                        unknown_text(m, &n->proto->base, NODE_OVERLOAD), NULL};
  const function_entry *found = bb_intern_find(m->functions, &key);
  return found ? found->function : NULL;
}

/* Attributes with a default are a field that older schemas keep as bytes. */
static void note_defaults(bb_onnx *m, bb_onnx_frame *frame) {
  const ProtobufCMessage *base = &frame->function->base;
  frame->fallback = BB_NEW(m->arena, Onnx__AttributeProto *, base->n_unknown_fields);
  for (unsigned i = 0; i < base->n_unknown_fields; i++) {
    const ProtobufCMessageUnknownField *field = &base->unknown_fields[i];
    bool ours =
        field->tag == FUNCTION_DEFAULTS && field->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    if (!ours) continue;
    size_t skip = 0;
    while (skip < field->len && field->data[skip] & 0x80) skip++;
    skip += skip < field->len;
    frame->fallback[frame->defaults++] =
        bb_onnx_unpack(m->program->arena, field->data + skip, field->len - skip,
                       &onnx__attribute_proto__descriptor);
  }
}

static void check_recursion(const bb_onnx_node *n, const Onnx__FunctionProto *function) {
  if (n->frame->depth >= INLINE_DEPTH) bb_onnx_refuse(n, "calls are nested too deeply");
  for (const bb_onnx_frame *f = n->frame; f; f = f->call ? f->call->frame : f->outer)
    if (f->function == function) bb_onnx_refuse(n, "the function calls itself");
}

static void inline_function(bb_onnx_node *n, const Onnx__FunctionProto *f) {
  bb_onnx *m = n->m;
  check_recursion(n, f);
  bb_onnx_frame *frame = BB_NEW(m->arena, bb_onnx_frame, 1);
  *frame = (bb_onnx_frame){.call = n,
                           .function = f,
                           .imports = f->n_opset_import,
                           .import = f->opset_import,
                           .names = bb_onnx_names(m),
                           .depth = n->frame->depth + 1};
  note_defaults(m, frame);
  if (n->nin > f->n_input || n->nout > f->n_output)
    bb_onnx_refuse(n, "has more inputs or outputs than its function");
  for (uint32_t i = 0; i < f->n_input; i++)
    bb_onnx_define(m, frame, f->input[i], i < n->nin ? n->in[i] : NULL);
  bb_onnx_convert_nodes(m, frame, f->node, f->n_node, n->nout, (const char *const *)f->output);
  for (uint32_t i = 0; i < n->nout; i++) {
    const bb_onnx_name *found = bb_onnx_lookup(frame, f->output[i]);
    if (!found || !found->value)
      bb_onnx_refuse(n, "its function does not define output %s",
                     bb_onnx_quote(m->arena, f->output[i]));
    n->out[i] = found->value;
  }
}

/* --- nodes --- */

static int64_t domain_version(const bb_onnx_frame *frame, const char *domain) {
  for (size_t i = 0; i < frame->imports; i++)
    if (strcmp(domain_of(frame->import[i]->domain), domain) == 0) return frame->import[i]->version;
  /* Exporters leave this one out; it has had one version ever since. */
  return strcmp(domain, "com.microsoft") == 0 ? 1 : -1;
}

static void bind_inputs(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  const Onnx__NodeProto *proto = n->proto;
  n->nin = (uint32_t)proto->n_input;
  while (n->nin && !proto->input[n->nin - 1][0]) n->nin--;
  n->in = BB_NEW(m->arena, bb_onnx_value *, n->nin);
  for (uint32_t i = 0; i < n->nin; i++) {
    if (!proto->input[i][0]) continue;
    const bb_onnx_name *found = bb_onnx_lookup(n->frame, proto->input[i]);
    if (!found)
      bb_onnx_refuse(n, "input %s is defined nowhere", bb_onnx_quote(m->arena, proto->input[i]));
    n->in[i] = found->value;
  }
  while (n->nin && !n->in[n->nin - 1]) n->nin--; /* absent arguments of a function */
}

static bool inputs_known(const bb_onnx_node *n) {
  for (uint32_t i = 0; i < n->nin; i++)
    if (n->in[i] && n->in[i]->unsupported) return false;
  return true;
}

static void check_arity(const bb_onnx_node *n) {
  const bb_onnx_row *row = n->row;
  if (n->nin > row->max_in)
    bb_onnx_refuse(n, "has %u inputs; it takes at most %u", n->nin, row->max_in);
  for (uint32_t i = 0; i < row->min_in; i++)
    if (i >= n->nin || !n->in[i]) bb_onnx_refuse(n, "input %u is missing", i);
  if (n->nout > row->max_out)
    bb_onnx_refuse(n, "has %u outputs; it gives at most %u", n->nout, row->max_out);
}

static void convert_known(bb_onnx_node *n) {
  n->row = bb_onnx_row_find(n->domain, bb_onnx_text_of(n->proto->op_type), n->version);
  if (!n->row) {
    bb_onnx_unsupported(n, NULL);
    return;
  }
  if (inputs_known(n)) {
    check_arity(n);
    bb_onnx_check_few(n);
    n->row->convert(n);
    bb_onnx_keep_types(n);
    return;
  }
  for (uint32_t i = 0; i < n->nout; i++) {
    n->out[i] = BB_NEW(n->m->arena, bb_onnx_value, 1);
    *n->out[i] = (bb_onnx_value){.unsupported = true, .id = BB_NONE};
  }
}

void bb_onnx_convert_as(const bb_onnx_node *n, const char *op, int64_t version, uint32_t nin,
                        bb_onnx_value **in, uint32_t nout, bb_onnx_value **out) {
  Onnx__NodeProto *proto = BB_NEW(n->m->arena, Onnx__NodeProto, 1);
  bb_onnx_node *other = BB_NEW(n->m->arena, bb_onnx_node, 1);
  *proto = *n->proto; /* its attributes */
  proto->op_type = bb_arena_text(n->m->program->arena, op, strlen(op));
  *other = *n;
  other->proto = proto;
  other->written = n->written ? n->written : n;
  other->domain = "";
  other->version = version;
  other->nin = nin;
  other->in = in;
  other->nout = nout;
  other->out = out;
  convert_known(other);
}

static void define_outputs(bb_onnx_node *n) {
  for (uint32_t i = 0; i < n->nout; i++) {
    const char *name = n->proto->output[i];
    bb_onnx_value *v = n->out[i];
    if (!name[0]) continue;
    if (!v)
      bb_onnx_refuse(n, "output %u (%s) is not given by this operator here", i,
                     bb_onnx_quote(n->m->arena, name));
    if (!v->name) v->name = name;
    if (v->id != BB_NONE) {
      const char *label = bb_onnx_quote(n->m->arena, n->name);
      bb_onnx_check_shape(n->m, bb_arena_printf(n->m->arena, "node %s", label), v->dtype, v->rank,
                          v->shape);
      bb_array_value *made = &n->m->array->value[v->id];
      if (made->producer != BB_NONE && v->name == name) made->name = name;
    }
    bb_onnx_define(n->m, n->frame, name, v);
  }
}

void bb_onnx_count_node(const bb_onnx_node *n) {
  if (++n->m->nodes > NODE_LIMIT)
    bb_onnx_refuse(n, "the model has too many nodes once functions and steps of loops are inlined");
}

static void convert_node(bb_onnx *m, const bb_onnx_frame *frame, const Onnx__NodeProto *proto) {
  bb_onnx_node *n = BB_NEW(m->arena, bb_onnx_node, 1);
  *n = (bb_onnx_node){.m = m, .proto = proto, .frame = frame};
  n->name = bb_onnx_node_label(m, proto);
  n->domain = domain_of(proto->domain);
  n->version = domain_version(frame, n->domain);
  bb_onnx_count_node(n);
  bind_inputs(n);
  n->nout = (uint32_t)proto->n_output;
  while (n->nout && !proto->output[n->nout - 1][0]) n->nout--;
  n->out = BB_NEW(m->arena, bb_onnx_value *, n->nout);
  const Onnx__FunctionProto *function = function_of(m, n);
  if (function) {
    inline_function(n, function);
  } else {
    if (n->version < 0) bb_onnx_refuse(n, "the model imports no opset of domain \"%s\"", n->domain);
    convert_known(n);
  }
  define_outputs(n);
}

void bb_onnx_convert_nodes(bb_onnx *m, const bb_onnx_frame *frame, bb_onnx_nodes node, size_t count,
                           size_t wanted, const char *const *want) {
  uint32_t *sorted;
  uint32_t needed = bb_onnx_sort(m, frame, node, count, wanted, want, &sorted);
  for (uint32_t i = 0; i < needed; i++) convert_node(m, frame, node[sorted[i]]);
}
