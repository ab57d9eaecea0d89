/* expr_text.c - printing scalar expressions in the paper's notation.  Parsing is in expr_parse.c.
 *
 * Operators from weakest to strongest; the left operand may be of the same strength:
 *   |   ^   &   < <= == !=   + -   * /   unary - and !   **   calls, names, numbers
 * As in the paper a power under * or / stands in parentheses and a negative exponent does only
 * when its base does: t3*(DD**-0.5), (t3/KK-t4**2)**(-0.5).
 *
 * A number has the type of the operand beside it where that makes sense (bb_expr_literal_dtype)
 * and prints bare then, else as i64(3).  An f32 constant that no float equals prints with a d:
 * 0.1d.  Expressions are graphs, not trees: a large one binds what is used more than once, or lies
 * deep: let @1=exp(x); @2=@1+@1 in @2*@2.
 */
#include "expr_text.h"
#include "program.h"
#include "text_name.h"
#include "text_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  PIECE_NODES = 1000, /* larger or deeper expressions are bound in pieces */
  PIECE_DEPTH = 150
};

typedef struct printer {
  bb_buffer *out;
  const bb_program *program;
  bb_expr_style style;
  uint32_t argc;
  const char *const *arg;
  const bb_dtype *arg_dtype; /* NULL: an argument's type need not be said */
  uint32_t count;            /* of a large expression: its nodes by id, and ... */
  const bb_expr **node;
  uint32_t *bound; /* ... 0, or the number of the @name that each is bound to */
} printer;

bb_dtype bb_expr_literal_dtype(double value, const bb_expr *beside) {
  if (!beside || beside->op == BB_X_CONST) return BB_F32;
  if (bb_dtype_is_float(beside->dtype)) return beside->dtype;
  bool exact =
      value == trunc(value) && fabs(value) <= 9007199254740992.0 && !(value == 0 && signbit(value));
  return beside->dtype != BB_BOOL && exact ? beside->dtype : BB_F32;
}

const bb_expr *bb_expr_beside(const bb_expr *expr, uint32_t operand) {
  if (expr->op == BB_X_SELECT) return operand == 0 ? NULL : expr->a[3 - operand];
  return bb_expr_op_arity(expr->op) == 2 ? expr->a[1 - operand] : NULL;
}

bb_expr_strength bb_expr_strength_of(bb_expr_op op) {
  switch (op) {
  case BB_X_OR: return BB_STRENGTH_OR;
  case BB_X_XOR: return BB_STRENGTH_XOR;
  case BB_X_AND: return BB_STRENGTH_AND;
  case BB_X_LT:
  case BB_X_LE:
  case BB_X_EQ:
  case BB_X_NE: return BB_STRENGTH_COMPARE;
  case BB_X_ADD:
  case BB_X_SUB: return BB_STRENGTH_SUM;
  case BB_X_MUL:
  case BB_X_DIV: return BB_STRENGTH_PRODUCT;
  case BB_X_NEG:
  case BB_X_NOT: return BB_STRENGTH_UNARY;
  case BB_X_POW: return BB_STRENGTH_POWER;
  default: return BB_STRENGTH_ATOM;
  }
}

/* --- pieces of a large expression --- */

static int by_id(const void *a, const void *b) {
  uint32_t left = (*(const bb_expr *const *)a)->id, right = (*(const bb_expr *const *)b)->id;
  return left < right ? -1 : left > right;
}

static uint32_t place_of(const printer *p, const bb_expr *expr) {
  const bb_expr **found = bsearch(&expr, p->node, p->count, sizeof *p->node, by_id);
  return (uint32_t)(found - p->node);
}

static uint32_t bound_to(const printer *p, const bb_expr *expr) {
  return p->count ? p->bound[place_of(p, expr)] : 0;
}

/* Counts down for every node of the tree; false once it exceeds the budget. */
static bool is_small(const bb_expr *expr, uint32_t *budget) {
  if (*budget == 0 || expr->depth > PIECE_DEPTH) return false;
  --*budget;
  for (uint32_t i = 0; i < bb_expr_op_arity(expr->op); i++)
    if (!is_small(expr->a[i], budget)) return false;
  return true;
}

bool bb_expr_prints_whole(const bb_expr *expr) {
  uint32_t budget = PIECE_NODES;
  return is_small(expr, &budget);
}

/* Decides what a large expression binds: shared nodes, and whatever would make a piece too large
 * or too deep. */
static void cut(printer *p, bb_arena *scratch, const bb_expr *expr) {
  p->node = bb_expr_postorder(scratch, expr, &p->count);
  qsort(p->node, p->count, sizeof *p->node, by_id); /* children have smaller ids: still first */
  p->bound = BB_NEW(scratch, uint32_t, p->count);
  uint32_t *uses = BB_NEW(scratch, uint32_t, p->count);
  uint32_t *nodes = BB_NEW(scratch, uint32_t, p->count);
  uint32_t *depth = BB_NEW(scratch, uint32_t, p->count);
  for (uint32_t i = 0; i < p->count; i++)
    for (uint32_t k = 0; k < bb_expr_op_arity(p->node[i]->op); k++)
      uses[place_of(p, p->node[i]->a[k])]++;
  uint32_t bound = 0;
  for (uint32_t i = 0; i + 1 < p->count; i++) {
    uint32_t arity = bb_expr_op_arity(p->node[i]->op);
    nodes[i] = depth[i] = 1;
    for (uint32_t k = 0; k < arity; k++) {
      uint32_t a = place_of(p, p->node[i]->a[k]);
      nodes[i] += p->bound[a] ? 1 : nodes[a];
      if (!p->bound[a] && depth[a] >= depth[i]) depth[i] = depth[a] + 1;
    }
    bool large = nodes[i] >= PIECE_NODES || depth[i] >= PIECE_DEPTH;
    if (arity && (uses[i] > 1 || large)) p->bound[i] = ++bound;
  }
}

/* --- printing --- */

static void print(printer *p, const bb_expr *expr, bb_expr_strength least);

static void print_constant(printer *p, const bb_expr *expr, bb_dtype bare, bb_expr_strength least) {
  bool typed = expr->dtype != bare && p->style == BB_EXPR_TEXT;
  bool is_float = bb_dtype_is_float(expr->dtype) && expr->dtype != BB_F64;
  bool exact = !is_float || isnan(expr->number) || (double)(float)expr->number == expr->number;
  bool wrap = !typed && signbit(expr->number) && !isnan(expr->number) && least > BB_STRENGTH_SUM;
  if (typed) bb_put(p->out, "%s", bb_dtype_name(expr->dtype));
  if (typed || wrap) bb_put(p->out, "(");
  bb_put_number(p->out, expr->number, is_float && exact ? BB_F32 : BB_F64);
  if (!exact && p->style == BB_EXPR_TEXT) bb_put(p->out, "d");
  if (typed || wrap) bb_put(p->out, ")");
}

static void print_operand(printer *p, const bb_expr *expr, uint32_t i, bb_expr_strength least) {
  const bb_expr *a = expr->a[i];
  if (a->op == BB_X_CONST)
    print_constant(p, a, bb_expr_literal_dtype(a->number, bb_expr_beside(expr, i)), least);
  else
    print(p, a, least);
}

/* Would the operand stand in parentheses as the base of a power? */
static bool is_atom(const printer *p, const bb_expr *expr) {
  if (expr->op == BB_X_CONST) return !signbit(expr->number);
  return bound_to(p, expr) || bb_expr_strength_of(expr->op) == BB_STRENGTH_ATOM;
}

static void print_infix(printer *p, const bb_expr *expr) {
  bb_expr_strength own = bb_expr_strength_of(expr->op), left = own, right = own + 1;
  if (own == BB_STRENGTH_COMPARE) left = own + 1;
  if (own == BB_STRENGTH_SUM || own == BB_STRENGTH_PRODUCT) {
    /* -t2/KK and t3*(DD**-0.5); on the right also x*(-y). */
    if (expr->a[0]->op == BB_X_POW && own == BB_STRENGTH_PRODUCT) left = BB_STRENGTH_ATOM;
    if (expr->a[1]->op == BB_X_POW && own == BB_STRENGTH_PRODUCT) right = BB_STRENGTH_ATOM;
    if (expr->a[1]->op == BB_X_NEG) right = BB_STRENGTH_ATOM;
  }
  if (own == BB_STRENGTH_POWER) {
    left = BB_STRENGTH_ATOM;
    bool bare = expr->a[1]->op == BB_X_CONST && is_atom(p, expr->a[0]);
    right = bare ? BB_STRENGTH_OR : BB_STRENGTH_ATOM;
  }
  bool left_number = expr->a[0]->op == BB_X_CONST && own <= BB_STRENGTH_PRODUCT;
  print_operand(p, expr, 0, left_number ? BB_STRENGTH_OR : left);
  bb_put(p->out, "%s", bb_expr_op_name(expr->op));
  print_operand(p, expr, 1, right);
}

static void print_call(printer *p, const bb_expr *expr) {
  bb_put(p->out, "%s(",
         expr->op == BB_X_CAST ? bb_dtype_name(expr->dtype) : bb_expr_op_name(expr->op));
  for (uint32_t i = 0; i < bb_expr_op_arity(expr->op); i++) {
    if (i) bb_put(p->out, ",");
    /* f16((2)) is a rounding of 2, f16(2) the constant. */
    bool rounding = expr->op == BB_X_CAST && expr->a[i]->op == BB_X_CONST;
    if (rounding) bb_put(p->out, "(");
    print_operand(p, expr, i, BB_STRENGTH_OR);
    if (rounding) bb_put(p->out, ")");
  }
  bb_put(p->out, ")");
}

static void print_arg(printer *p, const bb_expr *expr) {
  if (expr->index < p->argc && p->arg[expr->index])
    bb_put(p->out, "%s", p->arg[expr->index]);
  else
    bb_put(p->out, "$%u", expr->index);
  bool known = p->arg_dtype && expr->index < p->argc;
  if (known && p->arg_dtype[expr->index] != expr->dtype)
    bb_put(p->out, "'%s", bb_dtype_name(expr->dtype));
}

static void print_extent(printer *p, const char *what, const char *name) {
  if (p->style == BB_EXPR_LISTING && bb_name_is_plain(name)) {
    bb_put(p->out, "%s%s", name, name);
    return;
  }
  bb_put(p->out, "%s(", what);
  bb_put_name(p->out, name);
  bb_put(p->out, ")");
}

static void print_coord(printer *p, const bb_expr *expr) {
  uint32_t index = expr->index;
  if (index == BB_COORD_ROW || index == BB_COORD_COL)
    bb_put(p->out, "coord(%s)", index == BB_COORD_ROW ? "row" : "col");
  else if (index >= BB_COORD_AXIS)
    bb_put(p->out, "coord(axis %u)", index - BB_COORD_AXIS);
  else
    bb_put(p->out, "coord(map %u)", index - BB_COORD_MAP);
}

static void print_node(printer *p, const bb_expr *expr) {
  switch (expr->op) {
  case BB_X_CONST: print_constant(p, expr, BB_F32, BB_STRENGTH_OR); return;
  case BB_X_ARG: print_arg(p, expr); return;
  case BB_X_COORD: print_coord(p, expr); return;
  case BB_X_EXTENT: print_extent(p, "extent", p->program->dim[expr->dim].name); return;
  case BB_X_SYMBOL: print_extent(p, "symbol", p->program->symbol[expr->index]); return;
  case BB_X_NEG:
  case BB_X_NOT:
    bb_put(p->out, "%s", bb_expr_op_name(expr->op));
    print_operand(p, expr, 0, BB_STRENGTH_POWER);
    return;
  default: break;
  }
  if (bb_expr_strength_of(expr->op) == BB_STRENGTH_ATOM)
    print_call(p, expr);
  else
    print_infix(p, expr);
}

/* In parentheses if the expression binds less tightly than `least`. */
static void print(printer *p, const bb_expr *expr, bb_expr_strength least) {
  uint32_t bound = bound_to(p, expr);
  bool wrap = !bound && bb_expr_strength_of(expr->op) < least;
  if (wrap) bb_put(p->out, "(");
  if (bound)
    bb_put(p->out, "@%u", bound);
  else
    print_node(p, expr);
  if (wrap) bb_put(p->out, ")");
}

void bb_expr_print_typed(bb_buffer *out, const bb_program *program, const bb_expr *expr,
                         bb_expr_style style, uint32_t argc, const char *const *arg,
                         const bb_dtype *arg_dtype) {
  printer p = {out, program, style, argc, arg, arg_dtype, 0, NULL, NULL};
  if (bb_expr_prints_whole(expr)) {
    print(&p, expr, BB_STRENGTH_OR);
    return;
  }
  bb_arena *scratch = bb_scratch(program->ctx);
  cut(&p, scratch, expr);
  uint32_t printed = 0;
  for (uint32_t i = 0; i < p.count; i++) {
    if (!p.bound[i]) continue;
    bb_put(out, "%s@%u=", printed++ ? "; " : "let ", p.bound[i]);
    print_node(&p, p.node[i]);
  }
  bb_put(out, printed ? " in " : "");
  print(&p, expr, BB_STRENGTH_OR);
  bb_scratch_end(scratch);
}

void bb_expr_print(bb_buffer *out, const bb_program *program, const bb_expr *expr,
                   bb_expr_style style, uint32_t argc, const char *const *arg) {
  bb_expr_print_typed(out, program, expr, style, argc, arg, NULL);
}
