/* safety_map.c - loops whose values are pairs: exponents come in and go out beside significands, and
 * folded pairs share a tuple.
 */
#include "safety_pair.h"

/* An out-port of the old map while the new one is made. */
typedef struct port {
  bb_value inner; /* of the old inner level */
  bb_pair *pair;  /* of the new one */
  bool grouped;
  bool renewed; /* FOLD: its exponent changes from iteration to iteration */
  uint32_t fixed, varying;
  bb_exponent fix[BB_PAIR_EXPONENTS], vary[BB_PAIR_EXPONENTS];
} port;

typedef struct mapping {
  bb_safe_level *level; /* around */
  bb_safe_level *in;
  const bb_node *node; /* the old map */
  uint32_t map;        /* the new one */
  port *port;
  bb_pair *out;
} mapping;

/* --- lists --- */

/* --- ins --- */

/* What an in-port brings: a significand, and exponents at the lists of their own. */
static bb_pair pair_inside(mapping *m, uint32_t in) {
  const bb_in *old = &m->node->in[in];
  const bb_pair *pair = &m->level->pair[old->src.node][old->src.port];
  bb_pair inside = {.ones = pair->ones, .logarithm = pair->logarithm, .count = pair->count};
  if (!pair->ones)
    inside.significand = bb_map_in(m->level->graph, m->map, pair->significand, old->level);
  for (uint32_t i = 0; i < pair->count; i++) {
    const bb_exponent *e = &pair->exponent[i];
    uint32_t level = BB_WHOLE, lists = e->lists;
    if (old->level != BB_WHOLE) {
      if (lists >> old->level & 1) level = bb_lists_before(lists, old->level);
      lists = bb_lists_without(lists, old->level);
    }
    bb_value value = bb_map_in(m->level->graph, m->map, e->value, level);
    inside.exponent[i] = (bb_exponent){e->weight, value, lists};
  }
  return inside;
}

static void bring_in(mapping *m) {
  for (uint32_t p = 0; p < m->node->nin; p++) {
    uint32_t input = m->node->inner->input[p];
    m->in->pair[input] = BB_NEW(m->level->safety->arena, bb_pair, 1);
    *m->in->pair[input] = pair_inside(m, p);
  }
}

/* The value around the map that an inner one is in every iteration; false: it is none. */
static bool is_from_outside(const mapping *m, bb_value inner, bb_value *outer) {
  const bb_node *map = bb_node_get(m->level->graph, m->map);
  for (uint32_t p = 0; p < map->nin; p++) {
    if (map->inner->input[p] != inner.node || map->in[p].level != BB_WHOLE) continue;
    *outer = map->in[p].src;
    return true;
  }
  return false;
}

/* --- collected and invariant outs --- */

static bb_axis axis_of(const mapping *m, bb_value inner, bb_axis axis) {
  bb_item item = bb_type_of(m->in->graph, inner)->item;
  bool has = axis == BB_AXIS_ROW ? item.row != BB_NO_DIM : item.col != BB_NO_DIM;
  return axis == BB_AXIS_NONE || has ? axis : BB_AXIS_NONE;
}

static bb_value put_out(mapping *m, uint32_t p, bb_value inner) {
  const bb_out *out = &m->node->out[p];
  bb_graph *graph = m->level->graph;
  const bb_node *map = bb_node_get(graph, m->map);
  bool collect = out->mode == BB_OUT_COLLECT;
  bb_axis axis = collect ? axis_of(m, inner, out->axis) : BB_AXIS_NONE;
  for (uint32_t i = 0; i < map->nout && map->part == BB_PART_ALL; i++) /* an equal port is shared */
    if (map->out[i].mode == out->mode && map->out[i].axis == axis &&
        bb_value_equal(bb_src(map->inner, map->inner->output[i], 0), inner))
      return (bb_value){m->map, i};
  return collect ? bb_map_collect(graph, m->map, inner, axis)
                 : bb_map_invariant(graph, m->map, inner);
}

static bb_exponent exponent_out(mapping *m, uint32_t p, const bb_exponent *e) {
  bool collect = m->node->out[p].mode == BB_OUT_COLLECT;
  bb_exponent out = {.weight = e->weight, .lists = e->lists};
  if (is_from_outside(m, e->value, &out.value)) {
    if (collect) out.lists <<= 1;
    return out;
  }
  out.value = put_out(m, p, e->value);
  if (collect) out.lists = e->lists << 1 | 1;
  return out;
}

static void pass_out(mapping *m, uint32_t p) {
  bb_pair *inner = m->port[p].pair, *outer = &m->out[p];
  outer->ones = inner->ones;
  outer->logarithm = inner->logarithm;
  if (!inner->ones) outer->significand = put_out(m, p, inner->significand);
  for (uint32_t i = 0; i < inner->count; i++)
    outer->exponent[outer->count++] = exponent_out(m, p, &inner->exponent[i]);
}

/* What leaves the program is made where its items are. */
static void leave(mapping *m, uint32_t p) {
  bb_pair *inner = m->port[p].pair, *outer = &m->out[p];
  const bb_type *type = bb_type_of(m->node->inner, m->port[p].inner);
  uint32_t ways = inner->count || inner->has_wide ? bb_safe_leave(m->in, m->port[p].inner) : 0;
  if (ways && (ways & BB_LEAVE_PLAIN || inner->logarithm)) {
    outer->plain = put_out(m, p, bb_safe_list_back(m->in, inner, type));
    outer->has_plain = true;
  }
  if (ways & BB_LEAVE_WIDE && !inner->logarithm) {
    outer->wide = put_out(m, p, bb_safe_list_wide(m->in, inner, type));
    outer->has_wide = true;
  }
}

/* --- folds --- */

static void split_exponents(mapping *m, port *at) {
  for (uint32_t i = 0; i < at->pair->count; i++) {
    bb_exponent e = at->pair->exponent[i];
    bb_value outer;
    if (is_from_outside(m, e.value, &outer)) {
      e.value = outer;
      at->fix[at->fixed++] = e;
    } else {
      at->vary[at->varying++] = e;
    }
  }
}

/* Is `b` a positive multiple of `a`?  *by receives it. */
static bool is_multiple(const port *a, const port *b, double *by) {
  if (a->varying != b->varying) return false;
  for (uint32_t i = 0; i < a->varying; i++) {
    uint32_t k = 0;
    while (k < b->varying && !bb_value_equal(a->vary[i].value, b->vary[k].value)) k++;
    if (k == b->varying) return false;
    double ratio = b->vary[k].weight / a->vary[i].weight;
    if (ratio <= 0 || (i && ratio != *by)) return false;
    *by = ratio;
  }
  return true;
}

static bool is_positive(const mapping *m, bb_value significand) {
  const bb_node *node = bb_node_get(m->in->graph, significand.node);
  return node->kind == BB_NODE_FUNC && node->op == BB_OP_ROW_SUM;
}

/* Over which of a port's lists its exponent varies. */
static uint32_t lists_of(const port *at) {
  uint32_t lists = 0;
  for (uint32_t i = 0; i < at->varying; i++) lists |= at->vary[i].lists;
  return lists;
}

static bool is_scaled_by_exponents(bb_monoid_id fold) {
  return fold == BB_MONOID_SUM || fold == BB_MONOID_MAX || fold == BB_MONOID_MIN;
}

static void refuse(mapping *m, const char *why) {
  if (!m->level->safety->refused) m->level->safety->refused = why;
}

/* The exponent that a group shares, inside the map; or, alone: that of the port by itself, as wide as the
 * port. */
static bb_exponent group_exponent(mapping *m, port *at, bool *alone) {
  const bb_type *type = bb_type_of(m->node->inner, at->inner);
  bb_exponent e = bb_safe_list_sum(m->in, at->varying, at->vary, type);
  *alone = !bb_safe_has_lists(type, BB_NONE, bb_type_of(m->in->graph, e.value), BB_NONE);
  if (!*alone) return e;
  at->fixed = 0;
  return (bb_exponent){1, bb_safe_list_wide(m->in, at->pair, type), bb_safe_all_lists(type)};
}

/* Has port p the exponent e, that of another port `first`, *by times? */
static bool shares_exponent(const mapping *m, uint32_t first, uint32_t p, bb_exponent e,
                            double *by) {
  const port *at = &m->port[p];
  const bb_type *type = bb_type_of(m->node->inner, at->inner);
  if (!at->renewed || at->grouped) return false;
  return is_multiple(&m->port[first], at, by) &&
         bb_safe_has_lists(type, BB_NONE, bb_type_of(m->in->graph, e.value), BB_NONE);
}

/* Folds port `first` and all that share its exponent. */
static void fold_group(mapping *m, uint32_t first) {
  bb_safe_member member[BB_MONOID_COMPONENTS];
  uint32_t of[BB_MONOID_COMPONENTS], count = 0;
  bb_value value[BB_MONOID_COMPONENTS];
  bool alone;
  bb_exponent e = group_exponent(m, &m->port[first], &alone);
  for (uint32_t p = first; p < m->node->nout && count + 4 <= BB_MONOID_COMPONENTS; p++) {
    port *at = &m->port[p];
    double by = 1;
    if (p != first && (alone || !shares_exponent(m, first, p, e, &by))) continue;
    bb_monoid_id fold = m->node->out[p].fold->id;
    const bb_type *type = bb_type_of(m->node->inner, at->inner);
    value[count] = bb_safe_list_significand(m->in, at->pair, type);
    bool positive = fold == BB_MONOID_SUM && is_positive(m, value[count]);
    member[count] = (bb_safe_member){fold, e.weight * by, type->item.dtype, positive};
    of[count++] = p;
    at->grouped = true;
  }
  bb_dtype dtype = bb_type_of(m->in->graph, e.value)->item.dtype;
  const bb_monoid *monoid = bb_safe_monoid(m->level->safety, dtype, count, member);
  if (!monoid) {
    refuse(m, "its folds and their exponents make no monoid");
    monoid = bb_monoid_get(BB_MONOID_SUM);
  }
  if (m->node->part != BB_PART_ALL) refuse(m, "a peeled loop folds a pair");
  bb_graph *graph = m->level->graph;
  bb_value top = bb_map_fold(graph, m->map, e.value, monoid, 0);
  for (uint32_t k = 0; k < count; k++) {
    port *at = &m->port[of[k]];
    bb_pair *out = &m->out[of[k]];
    out->significand = bb_map_fold(graph, m->map, value[k], monoid, k + 1);
    for (uint32_t i = 0; i < at->fixed; i++) out->exponent[out->count++] = at->fix[i];
    out->exponent[out->count++] =
        (bb_exponent){member[k].weight, top, of[k] == first ? e.lists : lists_of(at)};
  }
}

/* --- derived products --- */

static bool is_product(const bb_monoid *monoid) {
  bool derived = monoid->component != NULL;
  for (uint32_t k = 0; derived && k < monoid->components; k++)
    derived = monoid->component[k].repair != NULL;
  return derived;
}

/* The exponents of component k as one value. */
static bb_exponent component_exponent(mapping *m, const port *at, bool wide) {
  const bb_type *type = bb_type_of(m->node->inner, at->inner);
  if (!wide) return bb_safe_list_sum(m->in, at->pair->count, at->pair->exponent, type);
  return (bb_exponent){1, bb_safe_list_wide(m->in, at->pair, type), bb_safe_all_lists(type)};
}

/* A weight that is no part of the exponent's value goes into it. */
static bb_exponent weightless(mapping *m, const port *at, bb_exponent e) {
  if (e.weight == 1) return e;
  return component_exponent(m, at, true);
}

/* Folds the components of a derived product from port `first` on, of which some are pairs. */
static void fold_product(mapping *m, uint32_t first) {
  const bb_monoid *product = m->node->out[first].fold;
  bb_safe_scaled scaled = {.count = product->components};
  bb_exponent e[BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < scaled.count; k++) {
    port *at = &m->port[first + k];
    at->grouped = true;
    scaled.pair[k] = at->pair->count > 0;
    if (!scaled.pair[k]) continue;
    e[k] = weightless(m, at, component_exponent(m, at, false));
    scaled.dtype[k] = bb_type_of(m->in->graph, e[k].value)->item.dtype;
  }
  if (m->node->part != BB_PART_ALL) refuse(m, "a peeled loop folds a pair");
  bool made = bb_safe_scale_product(m->level->safety->program, product, &scaled);
  if (!made) refuse(m, "a product of folds has no form of pairs");
  bb_graph *graph = m->level->graph;
  for (uint32_t k = 0; k < scaled.count; k++) {
    port *at = &m->port[first + k];
    bb_pair *out = &m->out[first + k];
    const bb_type *type = bb_type_of(m->node->inner, at->inner);
    bb_value s = bb_safe_list_significand(m->in, at->pair, type);
    if (made && scaled.pair[k]) {
      if (scaled.wide[k]) e[k] = component_exponent(m, at, true);
      bb_value top = bb_map_fold(graph, m->map, e[k].value, scaled.monoid, scaled.exponent[k]);
      out->exponent[out->count++] = (bb_exponent){1, top, e[k].lists};
    }
    const bb_monoid *monoid = made ? scaled.monoid : product;
    out->significand = bb_map_fold(graph, m->map, s, monoid, made ? scaled.significand[k] : k);
  }
}

static bool folds_product_of_pairs(const mapping *m, uint32_t first) {
  const bb_out *out = &m->node->out[first];
  if (out->component || !is_product(out->fold)) return false;
  bool any = false;
  for (uint32_t k = 0; k < out->fold->components; k++) any |= m->port[first + k].pair->count > 0;
  return any;
}

/* --- any fold --- */

/* A fold whose exponent, if any, is the same in every iteration. */
static void fold_alone(mapping *m, uint32_t p) {
  const bb_out *old = &m->node->out[p];
  port *at = &m->port[p];
  const bb_type *type = bb_type_of(m->node->inner, at->inner);
  bool scaled = is_scaled_by_exponents(old->fold->id);
  bb_value inner = scaled ? bb_safe_list_significand(m->in, at->pair, type)
                          : bb_safe_list_back(m->in, at->pair, type);
  m->out[p].significand = bb_map_fold(m->level->graph, m->map, inner, old->fold, old->component);
  for (uint32_t i = 0; scaled && i < at->fixed; i++)
    m->out[p].exponent[m->out[p].count++] = at->fix[i];
}

/* --- peeled loops --- */

/* The in-port of the new map that resumes what the old one did. */
static void resume(mapping *m) {
  bb_node *map = bb_node_get(m->level->graph, m->map);
  for (uint32_t p = 0; p < m->node->nout; p++) {
    if (!m->node->out[p].resumes) continue;
    const bb_in *old = &m->node->in[m->node->out[p].resumes - 1];
    const bb_pair *first = &m->level->pair[old->src.node][old->src.port];
    if (first->count || m->out[p].count) {
      refuse(m, "a peeled loop hands on a pair");
      continue;
    }
    for (uint32_t i = 0; i < map->nin; i++)
      if (bb_value_equal(map->in[i].src, first->significand) && map->in[i].level == BB_WHOLE)
        map->out[m->out[p].significand.port].resumes = i + 1;
  }
}

/* --- the map --- */

static void make_outs(mapping *m) {
  for (uint32_t p = 0; p < m->node->nout; p++) {
    port *at = &m->port[p];
    at->inner = bb_src(m->node->inner, m->node->inner->output[p], 0);
    at->pair = &m->in->pair[at->inner.node][at->inner.port];
    if (m->node->out[p].mode != BB_OUT_FOLD) continue;
    if (at->pair->logarithm) {
      const bb_type *type = bb_type_of(m->node->inner, at->inner);
      at->pair = bb_safe_plain(m->in, bb_safe_list_back(m->in, at->pair, type));
    }
    split_exponents(m, at);
    at->renewed = at->varying && is_scaled_by_exponents(m->node->out[p].fold->id);
  }
  for (uint32_t p = 0; p < m->node->nout; p++) {
    if (m->node->out[p].mode != BB_OUT_FOLD) {
      leave(m, p);
      pass_out(m, p);
    } else if (m->port[p].grouped) {
      continue;
    } else if (folds_product_of_pairs(m, p)) {
      fold_product(m, p);
    } else if (m->port[p].renewed) {
      fold_group(m, p);
    } else {
      fold_alone(m, p);
    }
  }
}

/* A map that no pair enters and that has no unsafe exp: its level is shared. */
static void copy_map(bb_safe_level *level, const bb_node *node, bb_pair **out) {
  bb_graph *graph = level->graph;
  uint32_t map = bb_node_add_like(graph, node);
  for (uint32_t p = 0; p < node->nin; p++) {
    bb_value src = node->in[p].src;
    bb_connect(graph, map, p, level->pair[src.node][src.port].significand);
  }
  for (uint32_t p = 0; p < node->nout; p++) out[p] = bb_safe_plain(level, (bb_value){map, p});
}

static bool is_untouched(const bb_safe_level *level, const bb_node *node) {
  for (uint32_t p = 0; p < node->nin; p++)
    if (level->pair[node->in[p].src.node][node->in[p].src.port].count) return false;
  return !bb_safe_graph_has_unsafe(level->safety, node->inner);
}

void bb_safe_map(bb_safe_level *level, const bb_node *node, uint32_t index, bb_pair **out) {
  bb_arena *arena = level->safety->arena;
  if (is_untouched(level, node)) {
    copy_map(level, node, out);
    return;
  }
  bb_safe_level in = {.safety = level->safety, .parent = level, .map = index, .old = node->inner};
  mapping m = {.level = level, .in = &in, .node = node};
  m.map = bb_map_add(level->graph, node->dim);
  bb_node *made = bb_node_get(level->graph, m.map);
  made->part = node->part;
  made->block = node->block;
  made->serial = node->serial;
  made->name = node->name;
  in.graph = made->inner;
  in.pair = BB_NEW(arena, bb_pair *, node->inner->count);
  m.port = BB_NEW(arena, port, (size_t)node->nout + 1);
  m.out = BB_NEW(arena, bb_pair, (size_t)node->nout + 1);
  bring_in(&m);
  bb_safe_level_build(&in);
  make_outs(&m);
  resume(&m);
  for (uint32_t p = 0; p < node->nout; p++) out[p] = &m.out[p];
}
