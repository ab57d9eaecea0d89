/* symbols.c - run-time extents that follow from others: those whose name is an expression.
 */
#include "interp.h"

#include "../../graph/text_name.h"

#include <string.h>

/* The extents that have a value, behind "where"; nothing where none has. */
const char *bb_known_symbols(const bb_program *program, const int64_t *symbol, uint32_t symbols,
                             bb_arena *arena) {
  bb_buffer known = {.arena = arena};
  for (uint32_t i = 0; i < symbols; i++) {
    if (symbol[i] < 0) continue;
    bb_put(&known, known.length ? ", " : " where ");
    bb_put_extent_name(&known, program->symbol[i]);
    bb_put(&known, " = %lld", (long long)symbol[i]);
  }
  return known.length ? known.data : "";
}

static const char *name_of(const bb_program *program, uint32_t symbol, bb_arena *arena) {
  bb_buffer name = {.arena = arena};
  bb_put_extent_name(&name, program->symbol[symbol]);
  return name.data;
}

/* Of the last of the expressions, which are in postorder: each once, as sizes share parts. */
static double value_of(const bb_expr *const *node, uint32_t count, const double *symbol,
                       bb_arena *arena) {
  const bb_expr_env env = {.symbol = symbol, .round = bb_round_to};
  double *made = BB_NEW(arena, double, count);
  for (uint32_t i = 0; i < count; i++) {
    double a[3] = {0, 0, 0};
    uint32_t arity = bb_expr_op_arity(node[i]->op);
    for (uint32_t k = 0; k < arity; k++) {
      uint32_t at = i;
      while (node[--at] != node[i]->a[k]) continue;
      a[k] = made[at];
    }
    made[i] = arity ? bb_round_to(node[i]->dtype, bb_expr_apply(node[i], a[0], a[1], a[2]))
                    : bb_expr_eval(node[i], &env);
  }
  return made[count - 1];
}

/* An extent that is no product of symbols is a symbol whose name says what it is; where an input's shape tells it, too, both
 * have to say the same. */
static bool derive(bb_program *program, uint32_t symbols, uint32_t which, int64_t *symbol,
                   bb_arena *arena) {
  const char *text = program->symbol[which], *end = text + strlen(text), *error;
  uint32_t count;
  const bb_expr *e = bb_expr_parse(program, &text, end, NULL, NULL, &error);
  if (!e || text != end) return false;
  const bb_expr **node = bb_expr_postorder(arena, e, &count);
  double *value = BB_NEW(arena, double, program->symbols);
  for (uint32_t i = 0; i < count; i++) {
    if (node[i]->op != BB_X_SYMBOL) continue;
    if (node[i]->index >= symbols || symbol[node[i]->index] < 0) return false;
    value[node[i]->index] = (double)symbol[node[i]->index];
  }
  double found = value_of(node, count, value, arena);
  if (!(found >= 0 && found < 9e15))
    bb_fail(program->ctx, BB_ERROR_INPUT,
            "an axis, or what is left of one, would have %s = %.0f elements%s",
            name_of(program, which, arena), found,
            bb_known_symbols(program, symbol, symbols, arena));
  int64_t given = symbol[which];
  symbol[which] = given >= 0 && given != (int64_t)found ? -1 : (int64_t)found;
  if (symbol[which] < 0)
    bb_fail(program->ctx, BB_ERROR_INPUT, "extent %s is %lld by an input's shape, and %.0f%s",
            name_of(program, which, arena), (long long)given, found,
            bb_known_symbols(program, symbol, symbols, arena));
  return given < 0;
}

/* Some expressions are of symbols that are expressions themselves. */
void bb_derive_symbols(bb_program *program, uint32_t symbols, int64_t *symbol, bb_arena *arena) {
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t i = 0; i < symbols; i++) progress |= derive(program, symbols, i, symbol, arena);
  }
}
