/* infix.c - arithmetic in emitted source as a person would write it. */
#include "infix.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* How tight operators bind; those of one level follow each other from left to right. */
typedef enum level { SELECT, LOGIC, COMPARISON, SUM, PRODUCT, ATOM } level;

static const struct {
  const char *op;
  level level;
} operators[] = {{"?", SELECT},      {":", SELECT},      {"&&", LOGIC},      {"||", LOGIC},
                 {"&", LOGIC},       {"|", LOGIC},       {"^", LOGIC},       {"<", COMPARISON},
                 {">", COMPARISON},  {"<=", COMPARISON}, {">=", COMPARISON}, {"==", COMPARISON},
                 {"!=", COMPARISON}, {"<<", LOGIC},      {">>", LOGIC},      {"+", SUM},
                 {"-", SUM},         {"*", PRODUCT},     {"/", PRODUCT},     {"%", PRODUCT}};

static level level_of_operator(const char *op, size_t length) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (strlen(operators[i].op) == length && memcmp(operators[i].op, op, length) == 0)
      return operators[i].level;
  return ATOM;
}

/* The loosest operator that stands outside parentheses. */
static level level_of(const char *text) {
  level least = ATOM;
  int depth = 0;
  for (const char *at = text; *at; at++) {
    depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
    if (depth || *at != ' ') continue;
    level here = level_of_operator(at + 1, strcspn(at + 1, " "));
    if (here < least) least = here;
  }
  return least;
}

static const char *within(bb_arena *arena, const char *text, bool parentheses) {
  return parentheses ? bb_arena_printf(arena, "(%s)", text) : text;
}

/* Of at most nine digits: sums and products of two are far from overflow. */
static bool is_whole(const char *text, int64_t *value) {
  size_t digits = strspn(text, "0123456789");
  if (!digits || digits > 9 || text[digits]) return false;
  *value = strtoll(text, NULL, 10);
  return true;
}

/* Of two whole numbers; false: none that may stand for it. */
static bool is_computed(int64_t x, char op, int64_t y, int64_t *value) {
  switch (op) {
  case '+': *value = x + y; break;
  case '-': *value = x - y; break;
  case '*': *value = x * y; break;
  case '/':
    if (!y) return false;
    *value = x / y;
    break;
  default: return false;
  }
  return *value >= 0 && *value <= INT32_MAX;
}

const char *bb_infix(bb_arena *arena, const char *a, const char *op, const char *b) {
  level own = level_of_operator(op, strlen(op));
  int64_t x = -1, y = -1, value;
  bool left = is_whole(a, &x), right = is_whole(b, &y), arithmetic = own >= SUM;
  if (left && right && arithmetic && is_computed(x, *op, y, &value))
    return bb_arena_printf(arena, "%" PRId64, value);
  if (*op == '*' && ((left && x == 0) || (right && y == 0))) return "0";
  if (left && ((x == 0 && *op == '+') || (x == 1 && *op == '*'))) return b;
  if (right && ((y == 0 && own == SUM) || (y == 1 && (*op == '*' || *op == '/')))) return a;
  level loosest_left = arithmetic ? own : SUM, loosest_right = arithmetic ? own + 1 : SUM;
  return bb_arena_printf(arena, "%s %s %s", within(arena, a, level_of(a) < loosest_left), op,
                         within(arena, b, level_of(b) < loosest_right));
}

const char *bb_infix_trips(bb_arena *arena, const char *from, const char *to, const char *step) {
  const char *length = bb_infix(arena, to, "-", from);
  int64_t whole;
  if (is_whole(step, &whole))
    length = bb_infix(arena, length, "+", bb_arena_printf(arena, "%" PRId64, whole - 1));
  else
    length = bb_infix(arena, bb_infix(arena, length, "+", step), "-", "1");
  return bb_infix(arena, length, "/", step);
}
