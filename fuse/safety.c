/* safety.c - programs made safe: levels rebuilt with pairs, values handed from program to program,
 * and what became of each exp.
 */
#include "safety_pair.h"

#include <string.h>

/* --- exps --- */

static bool expr_is_exp(const bb_expr *expr) {
  bool base = expr->op == BB_X_POW && expr->a[0]->op == BB_X_CONST;
  return bb_is_exp(expr->op, expr->dtype, base, base ? expr->a[0]->number : 0);
}

typedef bool visit_exp(void *user, const bb_node *node, const bb_expr *exp);

/* Does `visit` hold for one of the exps of an expression? */
static bool any_exp(bb_program *program, const bb_node *node, const bb_expr *expr, visit_exp *visit,
                    void *user) {
  bb_arena *scratch = bb_scratch(program->ctx);
  uint32_t count;
  const bb_expr **at = bb_expr_postorder(scratch, expr, &count);
  bool any = false;
  for (uint32_t i = 0; i < count && !any; i++) any = expr_is_exp(at[i]) && visit(user, node, at[i]);
  bb_scratch_end(scratch);
  return any;
}

static bool any_exp_inside(bb_program *program, const bb_graph *graph, visit_exp *visit,
                           void *user) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_MAP && any_exp_inside(program, node->inner, visit, user)) return true;
    if (node->kind == BB_NODE_FUNC && node->op == BB_OP_ELEMENTWISE &&
        any_exp(program, node, node->expr, visit, user))
      return true;
  }
  return false;
}

static bool always(void *user, const bb_node *node, const bb_expr *exp) {
  (void)user, (void)node, (void)exp;
  return true;
}

bool bb_expr_has_exp(bb_program *program, const bb_expr *expr) {
  return any_exp(program, NULL, expr, always, NULL);
}

bool bb_graph_has_exp(bb_program *program, const bb_graph *graph) {
  return any_exp_inside(program, graph, always, NULL);
}

static bool is_unsafe(void *user, const bb_node *node, const bb_expr *expr) {
  const bb_safety *safety = user;
  const bb_exp *exp = bb_scalar_walk_exp(safety->walk, node, expr);
  return !exp || exp->unsafe;
}

bool bb_safe_is_mended(const bb_safety *safety, const bb_node *node, const bb_expr *expr) {
  const bb_exp *exp = bb_scalar_walk_exp(safety->walk, node, expr);
  return exp && exp->mended && !exp->unsafe;
}

bool bb_safe_has_unsafe(const bb_safety *safety, const bb_node *node) {
  return node->op == BB_OP_ELEMENTWISE &&
         any_exp(safety->program, node, node->expr, is_unsafe, (void *)safety);
}

bool bb_safe_graph_has_unsafe(const bb_safety *safety, const bb_graph *graph) {
  return any_exp_inside(safety->program, graph, is_unsafe, (void *)safety);
}

typedef struct explaining {
  const bb_safety *safety;
  bb_buffer *out;
} explaining;

static bool explain(void *user, const bb_node *node, const bb_expr *expr) {
  const explaining *e = user;
  const bb_exp *exp = bb_scalar_walk_exp(e->safety->walk, node, expr);
  const char *why = !exp || exp->mended ? "its place in the program is not known"
                    : exp->unsafe       ? exp->unsafe
                    : exp->bound        ? exp->bound
                                        : "its overflow reaches nothing but the right limit";
  bb_put(e->out, "exp of node %u: %s: %s\n", node->serial,
         !exp || exp->mended || exp->unsafe ? "a significand and an exponent" : "as it is", why);
  return false;
}

void bb_safety_explain(bb_safety *safety, const bb_graph *root, bb_buffer *out) {
  explaining e = {safety, out};
  any_exp_inside(safety->program, root, explain, &e);
}

/* --- levels --- */

static bb_pair *source(const bb_safe_level *level, const bb_node *node) {
  return &level->pair[node->in[0].src.node][node->in[0].src.port];
}

static void copy_terminal(bb_graph *graph, uint32_t made, const bb_node *node) {
  bb_node *copy = bb_node_get(graph, made);
  copy->serial = node->serial;
  copy->name = node->name;
  copy->tensor = node->tensor;
  copy->access = node->access;
}

/* The same access of other tensors. */
static const bb_access *access_of_wide(bb_safety *s, const bb_access *access) {
  bb_access made = *access;
  bb_piece *piece = BB_NEW(s->arena, bb_piece, access->count);
  for (uint32_t i = 0; i < access->count; i++) {
    piece[i] = access->piece[i];
    piece[i].source = s->wide[piece[i].source] - 1;
  }
  made.piece = piece;
  return bb_access_make(s->program, &made);
}

static bool reads_pair(const bb_safety *s, const bb_node *node) {
  if (!node->access) return false;
  for (uint32_t i = 0; i < node->access->count; i++) {
    uint32_t tensor = node->access->piece[i].source;
    if (tensor >= s->tensors || !s->wide[tensor]) return false;
  }
  return node->access->count > 0;
}

static void input(bb_safe_level *level, const bb_node *node, bb_pair *out) {
  bb_safety *s = level->safety;
  const bb_type *type = node->out[0].type;
  bb_value stored = bb_input_add(level->graph, type);
  copy_terminal(level->graph, stored.node, node);
  if (reads_pair(s, node) && s->wide[node->tensor] - 1 == node->tensor) {
    out->ones = true;
    out->exponent[out->count++] = (bb_exponent){1, stored, bb_safe_all_lists(type)};
    return;
  }
  out->significand = stored;
  if (!reads_pair(s, node)) return;
  uint32_t tensor = s->wide[node->tensor] - 1;
  bb_item item = type->item;
  item.dtype = s->program->tensor[tensor].dtype;
  bb_value e = bb_input_add(level->graph, bb_type_make(s->program, item, type->rank, type->level));
  bb_node *made = bb_node_get(level->graph, e.node);
  made->tensor = tensor;
  made->access = access_of_wide(s, node->access);
  out->exponent[out->count++] = (bb_exponent){1, e, bb_safe_all_lists(type)};
}

/* The local tensor for the exponents of what is stored in another: a new one beside it, or, where `ones`, significands all being 1,
 * that one, if it has room for them. */
static uint32_t wide_tensor(bb_safety *s, uint32_t tensor, bool ones, bb_dtype dtype) {
  uint32_t known = s->wide[tensor] ? s->wide[tensor] - 1 : tensor;
  if (ones && s->program->tensor[tensor].dtype == dtype) return tensor;
  if (known != tensor) return known;
  bb_tensor made = s->program->tensor[tensor];
  made.name = bb_arena_printf(s->program->arena, "%s exponent", made.name);
  made.dtype = dtype;
  return bb_tensor_add(s->program, &made);
}

static void store(bb_safe_level *level, const bb_node *node, bb_value value) {
  copy_terminal(level->graph, bb_output_add(level->graph, value), node);
}

static void output(bb_safe_level *level, const bb_node *node) {
  bb_safety *s = level->safety;
  bb_pair *pair = source(level, node);
  const bb_type *type = bb_type_of(level->old, node->in[0].src);
  bool carried = node->tensor < s->tensors && s->carried[node->tensor];
  if (!carried || !pair->count || pair->logarithm) {
    if (carried) s->wide[node->tensor] = 0;
    store(level, node, bb_safe_list_back(level, pair, type));
    return;
  }
  bb_value e = bb_safe_list_wide(level, pair, type);
  bb_dtype dtype = bb_type_of(level->graph, e)->item.dtype;
  uint32_t tensor = wide_tensor(s, node->tensor, pair->ones, dtype);
  s->wide[node->tensor] = tensor + 1;
  if (tensor == node->tensor) {
    store(level, node, e);
    return;
  }
  store(level, node, bb_safe_list_significand(level, pair, type));
  uint32_t made = bb_output_add(level->graph, e);
  bb_node_get(level->graph, made)->tensor = tensor;
  bb_node_get(level->graph, made)->access = access_of_wide(s, node->access);
}

/* Views and misc nodes, of a whole program: of plain values. */
static void copy_node(bb_safe_level *level, const bb_node *node, bb_pair **out) {
  uint32_t made = bb_node_add_like(level->graph, node);
  for (uint32_t p = 0; p < node->nin; p++) {
    bb_value src = node->in[p].src;
    bb_pair *pair = &level->pair[src.node][src.port];
    bb_connect(level->graph, made, p, bb_safe_list_back(level, pair, bb_type_of(level->old, src)));
  }
  for (uint32_t p = 0; p < node->nout; p++) out[p] = bb_safe_plain(level, (bb_value){made, p});
}

static void build_node(bb_safe_level *level, uint32_t n) {
  const bb_node *node = level->old->node[n];
  bb_arena *arena = level->safety->arena;
  if (level->pair[n]) return; /* an input of the level inside a map */
  level->pair[n] = BB_NEW(arena, bb_pair, (size_t)node->nout + 1);
  bb_pair **out = BB_NEW(arena, bb_pair *, (size_t)node->nout + 1);
  switch (node->kind) {
  case BB_NODE_INPUT: input(level, node, level->pair[n]); return;
  case BB_NODE_OUTPUT: return;
  case BB_NODE_FUNC: bb_safe_func(level, node, n, out); break;
  case BB_NODE_MAP: bb_safe_map(level, node, n, out); break;
  case BB_NODE_REDUCE: bb_safe_reduce(level, node, out); break;
  default: copy_node(level, node, out);
  }
  for (uint32_t p = 0; p < node->nout; p++) level->pair[n][p] = *out[p];
}

/* Inputs in the order of the ports, then the nodes, then, at the root, the outputs: inside a map the
 * map makes them. */
void bb_safe_level_build(bb_safe_level *level) {
  bb_arena *scratch = bb_scratch(level->safety->program->ctx);
  uint32_t *order = BB_NEW(scratch, uint32_t, (size_t)level->old->live + 1);
  uint32_t count = bb_topological_order(level->old, scratch, order);
  for (uint32_t i = 0; i < level->old->ninputs; i++) build_node(level, level->old->input[i]);
  for (uint32_t i = 0; i < count; i++) build_node(level, order[i]);
  for (uint32_t i = 0; i < level->old->noutputs && !level->parent; i++)
    output(level, level->old->node[level->old->output[i]]);
  bb_scratch_end(scratch);
}

/* --- programs --- */

bb_safety *bb_safety_create(bb_program *program, bb_arena *arena) {
  bb_safety *s = BB_NEW(arena, bb_safety, 1);
  *s = (bb_safety){.program = program, .arena = arena, .tensors = program->tensors};
  s->walk = bb_scalar_walk_create(program, arena);
  s->wide = BB_NEW(arena, uint32_t, s->tensors);
  s->carried = BB_NEW(arena, bool, s->tensors);
  s->reader = BB_NEW(arena, bb_safe_reader *, s->tensors);
  return s;
}

void bb_safety_carry(bb_safety *s, uint32_t tensor) {
  s->carried[tensor] = true;
}

static void note_readers(bb_safety *s, const bb_graph *root) {
  for (uint32_t i = 0; i < root->ninputs; i++) {
    const bb_access *access = root->node[root->input[i]]->access;
    for (uint32_t k = 0; access && k < access->count; k++) {
      uint32_t tensor = access->piece[k].source;
      if (tensor >= s->tensors || !s->carried[tensor]) continue;
      bb_safe_reader *made = BB_NEW(s->arena, bb_safe_reader, 1);
      *made = (bb_safe_reader){root, root->input[i], s->reader[tensor]};
      s->reader[tensor] = made;
    }
  }
}

void bb_safety_learn(bb_safety *s, const bb_graph *root) {
  note_readers(s, root);
  if (bb_scalar_walk_concerns(s->walk, root, bb_graph_has_exp(s->program, root)))
    bb_scalar_walk_graph(s->walk, root);
}

static bool reads_any_pair(const bb_safety *s, const bb_graph *root) {
  for (uint32_t i = 0; i < root->ninputs; i++)
    if (reads_pair(s, root->node[root->input[i]])) return true;
  return false;
}

static bb_graph *make(bb_safety *s, bb_graph *root) {
  bb_safe_level level = {.safety = s, .old = root, .graph = bb_graph_create(s->program)};
  s->refused = NULL;
  level.pair = BB_NEW(s->arena, bb_pair *, root->count);
  bb_safe_level_build(&level);
  if (s->refused) {
    bb_log(s->program->ctx, BB_LOG_INFO, "no safe form: %s", s->refused);
    return NULL;
  }
  bb_graph_prune(level.graph);
  return level.graph;
}

bb_graph *bb_safety_make(bb_safety *s, bb_graph *root) {
  if (!bb_safe_graph_has_unsafe(s, root) && !reads_any_pair(s, root)) return root;
  bb_arena *kept = s->arena;
  s->arena = bb_scratch(s->program->ctx); /* the pairs of one program are nothing to the next */
  bb_graph *made = make(s, root);
  bb_scratch_end(s->arena);
  s->arena = kept;
  if (made) bb_safe_plain_products(s->program, made);
  return made;
}

bb_graph *bb_safety_alone(bb_program *program, bb_graph *root) {
  if (!bb_graph_has_exp(program, root)) return root;
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_safety *s = bb_safety_create(program, scratch);
  bb_safety_learn(s, root);
  bb_graph *made = bb_safety_make(s, root);
  bb_scratch_end(scratch);
  return made;
}
