/* inward_move.c - moves the nodes of a level into one of its maps.
 *
 * Values that the nodes take from outside enter the map whole; what an output of the level, or a node
 * that stays, needs of them leaves through an invariant port.
 */
#include "inward.h"

/* --- coordinates of what moves in: one more map stands around it --- */

typedef struct deeper {
  bb_program *program;
  uint32_t depth; /* maps between the op and the one that is put around */
} deeper;

static bool is_outside(const bb_expr *leaf, uint32_t depth) {
  return leaf->op == BB_X_COORD && leaf->index >= BB_COORD_MAP + depth;
}

static const bb_expr *one_deeper(void *user, const bb_expr *leaf) {
  const deeper *d = user;
  return is_outside(leaf, d->depth) ? bb_expr_coord(d->program, leaf->index + 1) : leaf;
}

static void put_deeper(bb_graph *graph, uint32_t index, uint32_t depth) {
  bb_node *node = bb_node_get(graph, index);
  deeper d = {graph->program, depth};
  if (node->kind == BB_NODE_FUNC && node->expr && bb_expr_uses_coord(node->expr))
    node->expr = bb_expr_map_leaves(graph->program, node->expr, one_deeper, &d);
  if (node->kind != BB_NODE_MAP) return;
  bb_graph *inner = bb_map_own(graph, index);
  for (uint32_t i = 0; i < inner->count; i++) put_deeper(inner, i, depth + 1);
}

static bool expr_names_outside(bb_program *program, const bb_expr *expr, uint32_t depth) {
  deeper d = {program, depth};
  return bb_expr_map_leaves(program, expr, one_deeper, &d) != expr;
}

/* Does an op in there name a map outside?  Levels are not copied for nothing. */
static bool names_outside(const bb_graph *graph, uint32_t index, uint32_t depth) {
  const bb_node *node = bb_node_get(graph, index);
  if (node->kind == BB_NODE_FUNC && node->expr && bb_expr_uses_coord(node->expr))
    return expr_names_outside(graph->program, node->expr, depth);
  if (node->kind != BB_NODE_MAP) return false;
  for (uint32_t i = 0; i < node->inner->count; i++)
    if (names_outside(node->inner, i, depth + 1)) return true;
  return false;
}

/* --- moving in --- */

typedef struct mover {
  uint32_t from, to;
  bb_value *src; /* of each in-port, in the level */
} mover;

typedef struct move {
  bb_graph *graph, *inner;
  uint32_t x;
  uint32_t count;
  mover *mover;
  bb_value *value; /* by node of the level: where it stands inside, node BB_NONE: it stays */
} move;

static void list_movers(const bb_inward *v, move *m) {
  m->mover = BB_NEW(v->scratch, mover, v->graph->live);
  m->value = BB_NEW(v->scratch, bb_value, v->graph->count);
  for (uint32_t i = 0; i < v->graph->count; i++) m->value[i].node = BB_NONE;
  for (uint32_t n = v->scope->first; n != BB_NONE; n = v->scope->place[n].next) {
    if (v->stays[n]) continue;
    const bb_node *node = bb_node_get(v->graph, n);
    mover *mv = &m->mover[m->count++];
    *mv = (mover){n, BB_NONE, BB_NEW(v->scratch, bb_value, node->nin)};
    for (uint32_t i = 0; i < node->nin; i++) mv->src[i] = node->in[i].src;
  }
}

static bb_value moved_to(const move *m, bb_value old) {
  return (bb_value){m->value[old.node].node, old.port};
}

static void move_nodes(move *m) {
  for (uint32_t i = 0; i < m->count; i++)
    for (uint32_t p = 0; p < bb_node_get(m->graph, m->mover[i].from)->nin; p++)
      bb_disconnect(m->graph, m->mover[i].from, p);
  for (uint32_t i = 0; i < m->count; i++) {
    mover *mv = &m->mover[i];
    mv->to = bb_node_move(m->inner, m->graph, mv->from);
    m->value[mv->from] = (bb_value){mv->to, 0};
    for (uint32_t p = 0; p < bb_node_get(m->inner, mv->to)->nin; p++) {
      bb_value src = m->value[mv->src[p].node].node != BB_NONE
                         ? moved_to(m, mv->src[p])
                         : bb_map_in(m->graph, m->x, mv->src[p], BB_WHOLE);
      bb_connect(m->inner, mv->to, p, src);
    }
    if (names_outside(m->inner, mv->to, 0)) put_deeper(m->inner, mv->to, 0);
  }
}

typedef struct boundary {
  uint32_t count, capacity;
  struct crossing {
    uint32_t node, port; /* of X, or an output of the level */
    bb_value src;
  } * at;
} boundary;

/* Edges from what moves to X and to outputs of the level: cut, and written down. */
static boundary cut_boundary(const bb_inward *v, const move *m, uint32_t x) {
  boundary b = {0};
  for (uint32_t i = 0; i < m->count; i++) {
    const bb_node *node = bb_node_get(v->graph, m->mover[i].from);
    for (uint32_t p = 0; p < node->nout; p++)
      for (bb_use u = node->out[p].first, next; u.node != BB_NONE; u = next) {
        next = bb_next_use(v->graph, u);
        if (!v->stays[u.node]) continue;
        BB_GROW(v->scratch, b.at, b.capacity, (size_t)b.count + 1);
        b.at[b.count++] = (struct crossing){u.node, u.port, {m->mover[i].from, p}};
        if (u.node != x) bb_disconnect(v->graph, u.node, u.port);
      }
  }
  for (uint32_t i = 0; i < b.count; i++)
    if (b.at[i].node == x) bb_disconnect(v->graph, x, b.at[i].port);
  return b;
}

/* X takes inside what it was fed; the level's outputs get what they were fed from X. */
static void reconnect(move *m, boundary *b) {
  for (uint32_t port = bb_node_get(m->graph, m->x)->nin; port-- > 0;)
    for (uint32_t i = 0; i < b->count; i++) {
      if (b->at[i].node != m->x || b->at[i].port != port) continue;
      bb_value input = {m->inner->input[port], 0};
      bb_replace_uses(m->inner, input, moved_to(m, b->at[i].src));
      bb_map_in_remove(m->graph, m->x, port);
    }
  for (uint32_t i = 0; i < b->count; i++) {
    if (b->at[i].node == m->x) continue;
    bb_value outer = {BB_NONE, 0};
    for (uint32_t k = 0; k < i && outer.node == BB_NONE; k++)
      if (b->at[k].node != m->x && bb_value_equal(b->at[k].src, b->at[i].src))
        outer = bb_src(m->graph, b->at[k].node, b->at[k].port);
    if (outer.node == BB_NONE) outer = bb_map_invariant(m->graph, m->x, moved_to(m, b->at[i].src));
    bb_connect(m->graph, b->at[i].node, b->at[i].port, outer);
  }
}

void bb_inward_move(bb_inward *v) {
  move m = {.graph = v->graph, .inner = v->inner, .x = v->x};
  list_movers(v, &m);
  boundary b = cut_boundary(v, &m, v->x);
  move_nodes(&m);
  reconnect(&m, &b);
}
