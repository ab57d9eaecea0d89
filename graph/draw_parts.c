/* draw_parts.c - what pictures and JSON have in common: ids, marks, labels, escapes.
 */
#include "draw.h"
#include "intern.h"

#include <string.h>

/* --- ids --- */

typedef struct node_id {
  const bb_node *node;
  const char *name;
} node_id;

typedef struct serial_count {
  uint32_t serial, count;
} serial_count;

struct bb_ids {
  bb_arena *arena;
  bb_intern *names, *serials;
};

static uint64_t hash_node(const void *object) {
  const bb_node *node = ((const node_id *)object)->node;
  return bb_hash_bytes(&node, sizeof node, 0);
}

static bool same_node(const void *a, const void *b) {
  return ((const node_id *)a)->node == ((const node_id *)b)->node;
}

static uint64_t hash_serial(const void *object) {
  return bb_hash_bytes(&((const serial_count *)object)->serial, sizeof(uint32_t), 0);
}

static bool same_serial(const void *a, const void *b) {
  return ((const serial_count *)a)->serial == ((const serial_count *)b)->serial;
}

/* How many nodes with this serial came before. */
static uint32_t times_seen(bb_ids *ids, uint32_t serial) {
  serial_count key = {serial, 1};
  serial_count *found = (serial_count *)bb_intern_find(ids->serials, &key);
  if (found) return found->count++;
  found = BB_NEW(ids->arena, serial_count, 1);
  *found = key;
  bb_intern_add(ids->serials, found);
  return 0;
}

/* A level that several maps share is named once: it is drawn once for each of them. */
static void name_nodes(bb_ids *ids, const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REMOVED || bb_intern_find(ids->names, &(node_id){node, NULL}))
      continue;
    uint32_t copies = times_seen(ids, node->serial);
    node_id *id = BB_NEW(ids->arena, node_id, 1);
    id->node = node;
    id->name = copies ? bb_arena_printf(ids->arena, "n%u_%u", node->serial, copies + 1)
                      : bb_arena_printf(ids->arena, "n%u", node->serial);
    bb_intern_add(ids->names, id);
    if (node->kind == BB_NODE_MAP) name_nodes(ids, node->inner);
  }
}

bb_ids *bb_ids_create(bb_arena *arena, const bb_graph *graph) {
  bb_ids *ids = BB_NEW(arena, bb_ids, 1);
  *ids = (bb_ids){arena, bb_intern_create(arena, hash_node, same_node),
                  bb_intern_create(arena, hash_serial, same_serial)};
  name_nodes(ids, graph);
  return ids;
}

const char *bb_id_of(const bb_ids *ids, const bb_node *node) {
  return ((const node_id *)bb_intern_find(ids->names, &(node_id){node, NULL}))->name;
}

bool bb_is_marked(const bb_picture *picture, const bb_node *node) {
  if (node->serial >= picture->new_from) return true;
  for (uint32_t i = 0; i < picture->marks; i++)
    if (picture->marked[i] == node->serial) return true;
  return false;
}

/* --- labels --- */

static const char *dim_name(const bb_program *program, bb_dim dim) {
  return bb_dim_get(program, dim)->name;
}

static void put_steps(bb_buffer *out, int64_t step, const char *dim) {
  if (step == 1)
    bb_put(out, "+%s", dim);
  else
    bb_put(out, "%+lld*%s", (long long)step, dim);
}

static void put_index(bb_buffer *out, const bb_program *program, const bb_index *index) {
  if (index->kind == BB_INDEX_DIM) {
    bb_put(out, "%s", dim_name(program, index->dim));
    return;
  }
  bb_put(out, "%lld", (long long)index->start);
  for (uint32_t k = 0; k < bb_index_dims(index); k++)
    put_steps(out, k ? index->by : index->step, dim_name(program, bb_index_dim(index, k)));
}

static void put_piece(bb_buffer *out, const bb_program *program, const bb_piece *piece) {
  for (uint32_t i = 0; i < piece->rank; i++) {
    bb_put(out, i ? "," : "[");
    put_index(out, program, &piece->index[i]);
  }
  if (piece->rank) bb_put(out, "]");
  if (piece->padded) bb_put(out, " else %.9g", piece->fill);
}

static void put_terminal(bb_buffer *out, const bb_program *program, const bb_node *node) {
  if (node->tensor == BB_NONE || !node->access) {
    bb_put(out, node->kind == BB_NODE_INPUT ? "in" : "out");
    return;
  }
  for (uint32_t p = 0; p < node->access->count; p++) {
    const bb_piece *piece = &node->access->piece[p];
    bb_put(out, "%s%s", p ? " | " : "", program->tensor[piece->source].name);
    put_piece(out, program, piece);
  }
}

static void put_view(bb_buffer *out, const bb_program *program, const bb_node *node) {
  bb_put(out, "view ");
  for (uint32_t p = 0; p < node->access->count; p++) {
    const bb_piece *piece = &node->access->piece[p];
    bb_put(out, "%s%c", p ? " | " : "", (char)('a' + piece->source % 26));
    put_piece(out, program, piece);
  }
}

static void put_expr(bb_buffer *out, const bb_program *program, const bb_node *node) {
  static const char *const letters[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  const char **name = BB_NEW(out->arena, const char *, node->nin);
  for (uint32_t i = 0; i < node->nin; i++)
    name[i] = i < 8 ? letters[i] : bb_arena_printf(out->arena, "x%u", i);
  bb_expr_print(out, program, node->expr, BB_EXPR_LISTING, node->nin, name);
}

void bb_put_node_label(bb_buffer *out, const bb_program *program, const bb_node *node) {
  static const char *const part[] = {"", " first", " rest", " chunk"};
  switch (node->kind) {
  case BB_NODE_INPUT:
  case BB_NODE_OUTPUT: put_terminal(out, program, node); break;
  case BB_NODE_MAP: bb_put(out, "%s%s", dim_name(program, node->dim), part[node->part]); break;
  case BB_NODE_REDUCE:
    bb_put(out, node->reduce == BB_REDUCE_FOLD ? "reduce %s" : "scan %s", node->monoid->name);
    break;
  case BB_NODE_VIEW: put_view(out, program, node); break;
  case BB_NODE_MISC: bb_put(out, "%s", node->misc->op); break;
  case BB_NODE_FUNC:
    if (node->op == BB_OP_ELEMENTWISE)
      put_expr(out, program, node);
    else
      bb_put(out, "%s%s%s", bb_op_get(node->op)->name, bb_op_has_monoid(node->op) ? " " : "",
             bb_op_has_monoid(node->op) ? node->rows->name : "");
    break;
  default: break;
  }
}

void bb_put_type(bb_buffer *out, const bb_program *program, const bb_type *type) {
  for (uint32_t i = 0; i < type->rank; i++)
    bb_put(out, "[%s]", dim_name(program, type->level[i].dim));
  const bb_item *item = &type->item;
  bb_put(out, "%s%s", type->rank ? " " : "", bb_dtype_name(item->dtype));
  if (item->row == BB_NO_DIM && item->col == BB_NO_DIM) return;
  bb_put(out, " (%s,%s)", item->row == BB_NO_DIM ? "" : dim_name(program, item->row),
         item->col == BB_NO_DIM ? "" : dim_name(program, item->col));
}

/* --- escapes --- */

/* The length of the UTF-8 sequence at `s`, 0 if there is none. */
static uint32_t utf8_length(const unsigned char *s) {
  if (s[0] < 0x80) return 1;
  uint32_t length = s[0] >= 0xF0 && s[0] <= 0xF4  ? 4
                    : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                    : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                                                  : 0;
  for (uint32_t i = 1; i < length; i++)
    if ((s[i] & 0xC0) != 0x80) return 0;
  if (length == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))) return 0;
  if (length == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))) return 0;
  return length;
}

void bb_put_picture_text(bb_buffer *out, const char *text, bool json) {
  bb_put(out, "\"");
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    uint32_t length = utf8_length(s);
    if (*s == '"' || *s == '\\')
      bb_put(out, "\\%c", *s);
    else if (*s == '\n')
      bb_put(out, "\\n");
    else if (*s < 0x20 && json)
      bb_put(out, "\\u%04x", *s);
    else if (*s < 0x20 || length == 0)
      bb_put(out, "\xEF\xBF\xBD"); /* the replacement character */
    else
      bb_put_bytes(out, (const char *)s, length);
    s += length ? length : 1;
  }
  bb_put(out, "\"");
}
