/* safety_list.c - pairs of lists: elementwise ops in loops of their own, and reductions.
 */
#include "safety_pair.h"

enum { OPERANDS = BB_PAIR_EXPONENTS + 2 };

/* --- loops --- */

bb_value bb_safe_in_loops(bb_safe_level *level, const bb_expr *expr, uint32_t count,
                          const bb_value *in, const uint32_t *lists, const bb_type *type) {
  bb_program *program = level->safety->program;
  if (!type->rank) return bb_safe_emit(level, expr, count, in, type->item);
  uint32_t map = bb_map_add(level->graph, type->level[0].dim), rest[OPERANDS];
  bb_value inside[OPERANDS];
  bb_safe_level inner = *level;
  inner.graph = bb_node_get(level->graph, map)->inner;
  for (uint32_t i = 0; i < count; i++) {
    inside[i] = bb_map_in(level->graph, map, in[i], lists[i] & 1 ? 0 : BB_WHOLE);
    rest[i] = lists[i] >> 1;
  }
  const bb_type *element = bb_type_element(program, type, 0);
  bb_value value = bb_safe_in_loops(&inner, expr, count, inside, rest, element);
  return bb_map_collect(level->graph, map, value, type->level[0].axis);
}

uint32_t bb_safe_all_lists(const bb_type *type) {
  return type->rank < 32 ? (1u << type->rank) - 1 : UINT32_MAX;
}

static bb_type with_dtype(const bb_type *type, bb_dtype dtype) {
  bb_type made = *type;
  made.item.dtype = dtype;
  return made;
}

static const bb_type *typed(const bb_safe_level *level, const bb_type *type, bb_dtype dtype) {
  bb_type made = with_dtype(type, dtype);
  return bb_type_make(level->safety->program, made.item, made.rank, made.level);
}

/* Operand 0 is the significand, those behind it the exponents. */
static void operands(const bb_pair *pair, uint32_t *lists, const bb_type *type) {
  lists[0] = bb_safe_all_lists(type);
  for (uint32_t i = 0; i < pair->count; i++) lists[i + 1] = pair->exponent[i].lists;
}

bb_value bb_safe_list_significand(bb_safe_level *level, bb_pair *pair, const bb_type *type) {
  if (!pair->ones) return pair->significand;
  if (!type->rank) return bb_safe_significand(level, pair, type->item);
  bb_value in[OPERANDS];
  uint32_t lists[OPERANDS];
  for (uint32_t i = 0; i < pair->count; i++) {
    in[i] = pair->exponent[i].value;
    lists[i] = pair->exponent[i].lists;
  }
  const bb_expr *one = bb_expr_const(level->safety->program, type->item.dtype, 1);
  pair->significand = bb_safe_in_loops(level, one, pair->count, in, lists, type);
  pair->ones = false;
  return pair->significand;
}

bb_value bb_safe_list_back(bb_safe_level *level, bb_pair *pair, const bb_type *type) {
  if (!pair->count) return pair->significand;
  if (pair->has_plain) return pair->plain;
  if (!type->rank) return bb_safe_multiply_back(level, pair, type->item);
  bb_program *p = level->safety->program;
  bb_value in[OPERANDS];
  uint32_t lists[OPERANDS];
  in[0] = bb_safe_list_significand(level, pair, type);
  operands(pair, lists, type);
  const bb_expr *sum = bb_safe_sum_expr(level, pair->count, pair->exponent, 1, in);
  const bb_expr *s = bb_expr_arg(p, type->item.dtype, 0);
  bb_dtype dtype = type->item.dtype;
  const bb_expr *product = bb_safe_product(p, s, bb_safe_half_power(p, dtype, sum));
  if (pair->logarithm)
    product =
        bb_expr_make(p, BB_X_ADD, s, sum->dtype == dtype ? sum : bb_expr_cast(p, dtype, sum), NULL);
  pair->plain = bb_safe_in_loops(level, product, pair->count + 1, in, lists, type);
  pair->has_plain = true;
  return pair->plain;
}

bb_value bb_safe_list_wide(bb_safe_level *level, bb_pair *pair, const bb_type *type) {
  if (pair->has_wide) return pair->wide;
  if (!type->rank) return bb_safe_widen(level, pair, type->item);
  bb_value in[OPERANDS];
  uint32_t lists[OPERANDS];
  uint32_t first = pair->ones ? 0 : 1;
  if (first) in[0] = pair->significand;
  operands(pair, lists, type);
  const bb_expr *sum = bb_safe_sum_expr(level, pair->count, pair->exponent, first, in);
  if (!sum) sum = bb_expr_const(level->safety->program, BB_F32, 0);
  pair->wide = bb_safe_in_loops(level, sum, first + pair->count, in, lists + 1 - first,
                                typed(level, type, sum->dtype));
  pair->has_wide = true;
  return pair->wide;
}

/* --- reductions --- */

/* The type of a sum of exponents: the lists and axes that any of them has. */
static const bb_type *type_of_sum(bb_safe_level *level, uint32_t count, const bb_exponent *e,
                                  const bb_type *type, uint32_t *lists) {
  bb_item item = {BB_F32, BB_NO_DIM, BB_NO_DIM};
  bb_level kept[BB_PAIR_LISTS];
  uint32_t rank = 0;
  *lists = 0;
  for (uint32_t i = 0; i < count; i++) {
    bb_item own = bb_type_of(level->graph, e[i].value)->item;
    if (own.row != BB_NO_DIM) item.row = own.row;
    if (own.col != BB_NO_DIM) item.col = own.col;
    item.dtype = own.dtype;
    *lists |= e[i].lists;
  }
  for (uint32_t i = 0; i < type->rank && i < BB_PAIR_LISTS; i++) {
    if (!(*lists >> i & 1)) continue;
    kept[rank] = type->level[i];
    if ((kept[rank].axis == BB_AXIS_ROW && item.row == BB_NO_DIM) ||
        (kept[rank].axis == BB_AXIS_COL && item.col == BB_NO_DIM))
      kept[rank].axis = BB_AXIS_NONE;
    rank++;
  }
  return bb_type_make(level->safety->program, item, rank, kept);
}

/* The lists that an exponent has, as bits of those that the sum has. */
static uint32_t within(uint32_t lists, uint32_t all) {
  uint32_t bits = 0;
  for (uint32_t i = 0, at = 0; i < 32; i++) {
    if (!(all >> i & 1)) continue;
    bits |= (lists >> i & 1) << at++;
  }
  return bits;
}

bb_exponent bb_safe_list_sum(bb_safe_level *level, uint32_t count, const bb_exponent *e,
                             const bb_type *type) {
  if (count == 1 && e[0].weight > 0) return e[0];
  uint32_t all, lists[OPERANDS];
  bb_value in[OPERANDS];
  const bb_type *sum_type = type_of_sum(level, count, e, type, &all);
  const bb_expr *sum = bb_safe_sum_expr(level, count, e, 0, in);
  for (uint32_t i = 0; i < count; i++) lists[i] = within(e[i].lists, all);
  bb_value value = bb_safe_in_loops(level, sum, count, in, lists, sum_type);
  return (bb_exponent){1, value, all};
}

static void set_reduced(bb_safe_level *level, bb_node *made, uint32_t port, uint32_t at) {
  const bb_type *type = bb_type_of(level->graph, made->in[port].src);
  made->in[port].level = at;
  made->out[port].type =
      made->reduce == BB_REDUCE_FOLD ? bb_type_element(level->safety->program, type, at) : type;
}

bool bb_safe_has_lists(const bb_type *whole, uint32_t at, const bb_type *part, uint32_t skip) {
  uint32_t i = 0;
  for (uint32_t k = 0; k < part->rank; k++) {
    if (k == skip) continue;
    while (i < whole->rank && (i == at || whole->level[i].dim != part->level[k].dim ||
                               whole->level[i].axis != part->level[k].axis))
      i++;
    if (i++ == whole->rank) return false;
  }
  return true;
}

/* A fold, or a scan, of pairs whose exponent varies along the list that is folded. */
static void reduce_pairs(bb_safe_level *level, const bb_node *node, bb_pair *pair, bb_exponent top,
                         bb_pair *out) {
  const bb_type *type = bb_type_of(level->old, node->in[0].src);
  uint32_t at = node->in[0].level;
  bb_value in[2] = {top.value, bb_safe_list_significand(level, pair, type)};
  bb_safe_member member = {node->monoid->id, top.weight, type->item.dtype, false};
  bb_dtype dtype = bb_type_of(level->graph, top.value)->item.dtype;
  const bb_monoid *monoid = bb_safe_monoid(level->safety, dtype, 1, &member);
  if (!monoid) {
    level->safety->refused = "a reduction and its exponent make no monoid";
    monoid = node->monoid;
  }
  uint32_t at_top = bb_lists_before(top.lists, at);
  uint32_t made = bb_node_add(level->graph, BB_NODE_REDUCE, 2, 2);
  bb_node *reduce = bb_node_get(level->graph, made);
  reduce->monoid = monoid;
  reduce->reduce = node->reduce;
  reduce->serial = node->serial;
  for (uint32_t i = 0; i < 2; i++) bb_connect(level->graph, made, i, in[i]);
  set_reduced(level, reduce, 0, at_top);
  set_reduced(level, reduce, 1, at);
  bool fold = node->reduce == BB_REDUCE_FOLD;
  out->significand = (bb_value){made, 1};
  out->exponent[out->count++] =
      (bb_exponent){top.weight, {made, 0}, fold ? bb_lists_without(top.lists, at) : top.lists};
}

static bb_pair *reduce_plain(bb_safe_level *level, const bb_node *node, const bb_value *in,
                             uint32_t *made) {
  bb_value value =
      bb_reduce_add(level->graph, node->monoid, node->reduce, node->in[0].level, node->nin, in);
  bb_node *reduce = bb_node_get(level->graph, value.node);
  reduce->serial = node->serial;
  reduce->name = node->name;
  for (uint32_t i = 0; i < node->nin; i++) set_reduced(level, reduce, i, node->in[i].level);
  *made = value.node;
  return bb_safe_plain(level, value);
}

void bb_safe_reduce(bb_safe_level *level, const bb_node *node, bb_pair **out) {
  bb_arena *arena = level->safety->arena;
  bb_value *in = BB_NEW(arena, bb_value, (size_t)node->nin + 1);
  bb_exponent varying[BB_PAIR_EXPONENTS], fixed[BB_PAIR_EXPONENTS];
  uint32_t count = 0, fixes = 0, made, at = node->in[0].level;
  bool single =
      node->nin == 1 && (node->monoid->id == BB_MONOID_SUM || node->monoid->id == BB_MONOID_MAX ||
                         node->monoid->id == BB_MONOID_MIN);
  bb_pair *pair = &level->pair[node->in[0].src.node][node->in[0].src.port];
  single &= !pair->logarithm;
  for (uint32_t i = 0; single && i < pair->count; i++)
    if (pair->exponent[i].lists >> at & 1)
      varying[count++] = pair->exponent[i];
    else
      fixed[fixes++] = pair->exponent[i];
  if (count) {
    out[0] = bb_safe_plain(level, pair->significand);
    const bb_type *type = bb_type_of(level->old, node->in[0].src);
    bb_exponent top = bb_safe_list_sum(level, count, varying, type);
    if (!bb_safe_has_lists(type, at, bb_type_of(level->graph, top.value),
                           bb_lists_before(top.lists, at))) {
      top = (bb_exponent){1, bb_safe_list_wide(level, pair, type), bb_safe_all_lists(type)};
      fixes = 0;
    }
    reduce_pairs(level, node, pair, top, out[0]);
  } else {
    for (uint32_t p = 0; p < node->nin; p++) {
      bb_pair *a = &level->pair[node->in[p].src.node][node->in[p].src.port];
      const bb_type *type = bb_type_of(level->old, node->in[p].src);
      in[p] = single ? bb_safe_list_significand(level, a, type) : bb_safe_list_back(level, a, type);
    }
    out[0] = reduce_plain(level, node, in, &made);
    for (uint32_t p = 1; p < node->nout; p++) out[p] = bb_safe_plain(level, (bb_value){made, p});
  }
  for (uint32_t i = 0; i < fixes; i++) {
    bb_exponent e = fixed[i];
    if (node->reduce == BB_REDUCE_FOLD) e.lists = bb_lists_without(e.lists, at);
    out[0]->exponent[out[0]->count++] = e;
  }
}
