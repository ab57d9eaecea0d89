/* algebra_cases.c - the chains that the tests of fuse/algebra derive, and those it must refuse. */
#include "algebra_cases.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

const algebra_case good_cases[] = {
    {"figure 1", "x", "", ".", {{"m", "max", "x"}, {"s", "sum", "exp(x-m)"}}, NULL},
    {"softmax by a product",
     "x v",
     "",
     "..",
     {{"m", "max", "x"}, {"s", "sum", "exp(x-m)"}, {"o", "sum", "exp(x-m)/s*v"}},
     NULL},
    {"unsafe softmax by a product",
     "x v",
     "",
     "..",
     {{"s", "sum", "exp(x)"}, {"o", "sum", "exp(x)/s*v"}},
     NULL},
    {"softmax of a masked row",
     "x mask v",
     "",
     "...",
     {{"m", "max", "select(mask<0,x,-inf)"},
      {"s", "sum", "exp(select(mask<0,x,-inf)-m)"},
      {"o", "sum", "exp(select(mask<0,x,-inf)-m)*v"}},
     NULL},
    {"scaled scores with a bias",
     "q b v",
     "scale",
     "...+",
     {{"m", "max", "q*scale+b"},
      {"s", "sum", "exp(q*scale+b-m)"},
      {"o", "sum", "exp(q*scale+b-m)/s*v"}},
     NULL},
    {"soft cap",
     "q v",
     "",
     "..",
     {{"m", "max", "tanh(q/50)*50"},
      {"s", "sum", "exp(tanh(q/50)*50-m)"},
      {"o", "sum", "exp(tanh(q/50)*50-m)*v"}},
     NULL},
    {"sink logit",
     "x v",
     "sink",
     "...",
     {{"m", "max", "x"},
      {"s", "sum", "exp(x-max(m,sink))"},
      {"o", "sum", "exp(x-max(m,sink))/(s+exp(sink-max(m,sink)))*v"}},
     NULL},
    {"temperature from data",
     "x v",
     "T",
     "..+",
     {{"m", "max", "x/T"}, {"s", "sum", "exp(x/T-m)"}, {"o", "sum", "exp(x/T-m)/s*v"}},
     NULL},
    {"temperature after the maximum",
     "x v",
     "T",
     "..+",
     {{"m", "max", "x"}, {"s", "sum", "exp((x-m)/T)"}, {"o", "sum", "exp((x-m)/T)/s*v"}},
     NULL},
    {"variance", "x", "", ".", {{"S", "sum", "x"}, {"M", "sum", "(x-S/extent(N))**2"}}, NULL},
    {"variance by a reciprocal constant",
     "x",
     "",
     ".",
     {{"S", "sum", "x"}, {"M", "sum", "(x-S*0.125)**2"}},
     NULL},
    {"variance of a sum of two",
     "x y",
     "",
     "..",
     {{"S", "sum", "x+y"}, {"M", "sum", "((x-S/extent(N))+y)**2"}},
     NULL},
    {"layer norm into a product",
     "x w",
     "eps",
     "..+",
     {{"S", "sum", "x"},
      {"M", "sum", "(x-S/extent(N))**2"},
      {"o", "sum", "(x-S/extent(N))*(M/extent(N)+eps)**-0.5*w"}},
     NULL},
    {"skewness and kurtosis",
     "x",
     "",
     ".",
     {{"S", "sum", "x"},
      {"M", "sum", "(x-S/extent(N))**2"},
      {"T", "sum", "(x-S/extent(N))**3"},
      {"K", "sum", "(x-S/extent(N))**4"}},
     NULL},
    {"covariance",
     "x y",
     "",
     "..",
     {{"S", "sum", "x"}, {"R", "sum", "y"}, {"C", "sum", "(x-S/extent(N))*(y-R/extent(N))"}},
     NULL},
    {"moments about the maximum",
     "x",
     "",
     ".",
     {{"m", "max", "x"}, {"M", "sum", "(x-m)**2"}},
     NULL},
    {"entropy of a softmax",
     "x",
     "",
     ".",
     {{"m", "max", "x"}, {"s", "sum", "exp(x-m)"}, {"H", "sum", "exp(x-m)/s*log(exp(x-m)/s)"}},
     NULL},
    {"expectation and variance under a softmax",
     "x v",
     "",
     "..",
     {{"m", "max", "x"},
      {"s", "sum", "exp(x-m)"},
      {"E", "sum", "exp(x-m)/s*v"},
      {"V", "sum", "exp(x-m)/s*(v-E)**2"}},
     NULL},
    {"variance of the logits under their softmax",
     "x",
     "",
     ".",
     {{"m", "max", "x"},
      {"s", "sum", "exp(x-m)"},
      {"E", "sum", "exp(x-m)/s*x"},
      {"V", "sum", "exp(x-m)/s*(x-E)**2"}},
     NULL},
    {"weighted variance",
     "x w",
     "",
     ".+",
     {{"W", "sum", "w"}, {"S", "sum", "w*x"}, {"V", "sum", "w*(x-S/W)**2"}},
     NULL},
    {"scaling by the absolute maximum",
     "x w",
     "",
     "..",
     {{"a", "max", "abs(x)"}, {"o", "sum", "x/a*w"}},
     NULL},
    {"scaling by the norm",
     "x w",
     "",
     "..",
     {{"q", "sum", "x**2"}, {"o", "sum", "x/sqrt(q)*w"}},
     NULL},
    {"Sinkhorn half step",
     "x g",
     "",
     "..",
     {{"m", "max", "x+g"}, {"s", "sum", "exp(x+g-m)"}},
     NULL},
    {"top 1 with its probability",
     "x i",
     "",
     ".0",
     {{"t", "argmax", "x", "i"}, {"s", "sum", "exp(x-t)"}},
     NULL},
    {"logit-weighted argmax",
     "x v i",
     "",
     "..0",
     {{"m", "max", "x"}, {"s", "sum", "exp(x-m)"}, {"t", "argmax", "exp(x-m)/s*v", "i"}},
     NULL},
    {"argmin of a negative scale",
     "x i",
     "",
     "+0",
     {{"s", "sum", "x"}, {"t", "argmax", "-x/s", "i"}},
     NULL},
    {"minimum and range",
     "x",
     "",
     ".",
     {{"a", "min", "x"}, {"b", "max", "x-a"}, {"s", "sum", "exp(a-x)"}},
     NULL},
    {"product of scaled terms", "x", "", "+", {{"m", "max", "x"}, {"p", "prod", "x/m"}}, NULL},
    {"product of exps", "x", "", ".", {{"m", "max", "x"}, {"p", "prod", "exp(x-m)"}}, NULL},
    {"two softmaxes of one row",
     "x y v",
     "",
     "...",
     {{"m", "max", "x"},
      {"n1", "max", "y"},
      {"s", "sum", "exp(x-m)"},
      {"z", "sum", "exp(y-n1)"},
      {"o", "sum", "(exp(x-m)/s-exp(y-n1)/z)*v"}},
     NULL},
    {"maximum of a sum with a fold inside",
     "x y",
     "",
     "..",
     {{"m", "max", "x"}, {"t", "max", "exp(x-m)*2+exp(x-m)*y**2"}},
     NULL},
    {"masked by a select outside",
     "x mask v",
     "",
     "...",
     {{"m", "max", "x"}, {"s", "sum", "select(mask<0,exp(x-m),0)*v"}},
     NULL},
    {"power of a sum under a maximum",
     "x p",
     "",
     ".+",
     {{"s", "sum", "p"}, {"o", "max", "exp(x*s)"}},
     NULL},
    {"shifted power of a sum under a maximum",
     "x p",
     "k",
     ".+.",
     {{"s", "sum", "p"}, {"m", "max", "p"}, {"o", "max", "exp((x+m-s)*s/m)"}},
     NULL},
    {"turned power of a sum under a minimum",
     "x p",
     "",
     ".+",
     {{"s", "sum", "p"}, {"m", "max", "p"}, {"o", "min", "exp((m-x)/s)"}},
     NULL},
    {"sum of two scaled alike",
     "x y z",
     "",
     "...",
     {{"m", "max", "z"}, {"o", "sum", "(x+2*y*y)*m"}},
     NULL},
    {"sum of what a maximum is added to",
     "x",
     "",
     ".",
     {{"m", "max", "x"}, {"o", "sum", "x+m"}},
     NULL},
    {"scaled by where the maximum is",
     "x y i",
     "",
     "..0",
     {{"t", "argmax", "x", "i"}, {"o", "sum", "y*t_at"}},
     NULL},
    {"variance by weights once more as large",
     "x y",
     "",
     "..",
     {{"s", "sum", "2*exp(y)"}, {"t", "sum", "2*exp(y)*x"}, {"v", "sum", "exp(y)*(x-t/s)**2"}},
     NULL},
    {"softmax of a sum less its maximum",
     "x y b",
     "",
     "...",
     {{"m", "max", "x-y"}, {"s", "sum", "exp(-(m+y)+x-b)"}, {"o", "sum", "exp(x-y-m-b)*y/s"}},
     NULL},
    {"sum of what is the same for all",
     "x",
     "",
     ".",
     {{"m", "max", "x"}, {"o", "sum", "m**2"}},
     NULL},
    {"greatest of what a negative sum scales",
     "x p",
     "",
     ".+",
     {{"s", "sum", "p"}, {"o", "max", "-x*s"}},
     NULL},
    {"sum about a maximum beside sum and count",
     "x",
     "",
     ".",
     {{"m", "max", "x"}, {"n", "sum", "1"}, {"S", "sum", "x"}, {"o", "sum", "x+m"}},
     NULL},
};
const unsigned good_count = sizeof good_cases / sizeof *good_cases;

const algebra_case bad_cases[] = {
    {"a step of a median",
     "x",
     "",
     ".",
     {{"m", "max", "x"}, {"c", "sum", "select(x<m/2,1,0)"}},
     "compares elements with a fold"},
    {"absolute deviations",
     "x",
     "",
     ".",
     {{"S", "sum", "x"}, {"d", "sum", "abs(x-S/extent(N))"}},
     "changes its slope"},
    {"relu of a difference",
     "x",
     "",
     ".",
     {{"m", "max", "x"}, {"d", "sum", "max(x-m/2,0)"}},
     "changes its slope"},
    {"rounding",
     "x",
     "",
     ".",
     {{"m", "max", "abs(x)"}, {"d", "sum", "round(x/m)"}},
     "rounds to integers"},
    {"a share of a sum of both signs",
     "x w",
     "",
     "..",
     {{"S", "sum", "x"}, {"d", "sum", "x/S*w"}},
     "may be 0 for a part"},
    {"a greatest share of a sum of both signs",
     "x",
     "",
     ".",
     {{"S", "sum", "x"}, {"d", "max", "x/S"}},
     "sign of the factor"},
    {"softmax of a softmax",
     "x",
     "",
     ".",
     {{"m", "max", "x"},
      {"s", "sum", "exp(x-m)"},
      {"n", "max", "exp(x-m)/s"},
      {"z", "sum", "exp(exp(x-m)/s-n)"}},
     "exponent is no sum"},
    {"a fold in a denominator with an element",
     "x",
     "",
     "+",
     {{"S", "sum", "x"}, {"d", "sum", "1/(x+S)"}},
     "multiplies out to no finite sum"},
    {"hyperbolic tangent",
     "x",
     "",
     ".",
     {{"S", "sum", "x"}, {"d", "sum", "tanh(x-S)"}},
     "cannot be separated"},
    {"a maximum of two functions",
     "x y",
     "",
     "..",
     {{"m", "max", "x"}, {"d", "max", "x*exp(-m)+y"}},
     "more than one function"},
    {"an argmax of a scale that may be 0",
     "x i",
     "",
     "00",
     {{"S", "sum", "x"}, {"t", "argmax", "x*S", "i"}},
     "sign of the factor"},
    {"a temperature of the same fold",
     "x",
     "",
     ".",
     {{"m", "max", "x"}, {"s", "sum", "exp(x/(1+m**2))"}},
     "exponent is no sum"},
    {"a power of either sign under a maximum",
     "x y",
     "",
     "..",
     {{"s", "sum", "x"}, {"o", "max", "exp(y*s)"}},
     "the exponent is no sum"},
    {"a product of scaled terms of either sign",
     "x",
     "",
     ".",
     {{"m", "max", "x"}, {"p", "prod", "x*m"}},
     "not known to be positive"},
    {"a share of a variance by weights of either sign",
     "x y w",
     "",
     "...",
     {{"S", "sum", "w"}, {"T", "sum", "w*x"}, {"Q", "sum", "w*x*x"}, {"o", "sum", "y/(S*Q-T*T)"}},
     "may be 0 for a part"},
    {"a share of a variance less something",
     "x y w",
     "",
     "..+",
     {{"S", "sum", "w"}, {"T", "sum", "w*x"}, {"Q", "sum", "w*x*x"}, {"o", "sum", "y/(S*Q-T*T-S)"}},
     "may be 0 for a part"},
    {"a share of a variance of two elements",
     "x y w",
     "",
     "..+",
     {{"S", "sum", "w"}, {"T", "sum", "w*x"}, {"Q", "sum", "w*y*y"}, {"o", "sum", "y/(S*Q-T*T)"}},
     "may be 0 for a part"},
};
const unsigned bad_count = sizeof bad_cases / sizeof *bad_cases;

/* --- text to chains --- */

typedef struct names {
  bb_program *program;
  uint32_t count;
  const char *name[64];
} names;

static void add_words(names *n, const char *text) {
  while (*text) {
    size_t length = strcspn(text, " ");
    n->name[n->count++] = bb_arena_text(n->program->arena, text, length);
    text += length + strspn(text + length, " ");
  }
}

static const bb_expr *lookup(void *user, const char *name, size_t length) {
  names *n = user;
  for (uint32_t i = 0; i < n->count; i++)
    if (strlen(n->name[i]) == length && !memcmp(n->name[i], name, length))
      return bb_expr_arg(n->program, BB_F32, i);
  return NULL;
}

static const bb_expr *parse(names *n, const char *text) {
  const char *at = text, *error = NULL;
  const bb_expr *e = bb_expr_parse(n->program, &at, text + strlen(text), lookup, n, &error);
  if (!e || *at) fail_msg("%s: %s at '%s'", text, error ? error : "rest", at);
  return e;
}

static names outer_names(bb_program *program, const algebra_case *c) {
  names n = {.program = program};
  if (bb_dim_find(program, "N", 1) == BB_NO_DIM)
    bb_dim_add(program, "N", bb_extent_symbol(program, "N"), true);
  add_words(&n, c->elements);
  add_words(&n, c->fixed);
  return n;
}

static void add_result(names *n, const case_fold *f) {
  n->name[n->count++] = f->name;
  if (f->payload) n->name[n->count++] = bb_arena_printf(n->program->arena, "%s_at", f->name);
}

const bb_expr *case_expr(bb_program *program, const algebra_case *c, const char *text) {
  names n = outer_names(program, c);
  for (const case_fold *f = c->fold; f->name; f++) add_result(&n, f);
  return parse(&n, text);
}

bb_chain case_chain(bb_program *program, const algebra_case *c) {
  names n = outer_names(program, c);
  bb_chain chain = {0};
  names e = {.program = program};
  add_words(&e, c->elements);
  chain.elements = e.count;
  chain.fixed = n.count - e.count;
  const char **name = BB_NEW(program->arena, const char *, n.count);
  bb_range *range = BB_NEW(program->arena, bb_range, n.count);
  for (uint32_t i = 0; i < n.count; i++) {
    name[i] = n.name[i];
    range[i] = BB_RANGE_ANY;
    if (c->facts[i] != '.') range[i].lo = 0;
    range[i].nonzero = c->facts[i] == '+';
  }
  bb_chain_fold *fold = BB_NEW(program->arena, bb_chain_fold, 8);
  for (const case_fold *f = c->fold; f->name; f++) {
    const bb_monoid *monoid = bb_monoid_find(f->fold, strlen(f->fold));
    assert_non_null(monoid);
    fold[chain.folds++] = (bb_chain_fold){.name = f->name,
                                          .fold = monoid->id,
                                          .term = parse(&n, f->term),
                                          .payload = f->payload ? parse(&n, f->payload) : NULL};
    add_result(&n, f);
  }
  chain.name = name;
  chain.range = range;
  chain.fold = fold;
  chain.length = bb_expr_extent(program, bb_dim_find(program, "N", 1));
  return chain;
}
