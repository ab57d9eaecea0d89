/* quote.h - inside select/: the price of a kernel made of any set of pieces, equal sets asked once.
 *
 * What fusion makes of a kernel does not depend on run-time extents, and takes as long as its
 * price: a kernel that is asked for at one of several points is priced at all of them.
 */
#ifndef BB_SELECT_QUOTE_H
#define BB_SELECT_QUOTE_H

#include "choose.h"
#include "pieces.h"

/* What was priced so far. */
typedef struct bb_quotes {
  bb_program *program;
  bb_arena *arena;
  bb_choose_options probe; /* fuses without anybody watching */
  bb_fuse_options fuse;
  bb_pricer pricer;
  bb_keys *keys;
  struct bb_intern *prices;                                   /* by key */
  bool (*lowers)(bb_program *program, const bb_graph *graph); /* as in bb_selection_options */
  uint32_t points, selections;
} bb_quotes;

/* symbol: by point, what run-time extents count as; of the options, those alone do not matter. */
bb_quotes *bb_quotes_create(bb_program *program, const bb_selection_options *options,
                            uint32_t points, const double *const *symbol, bb_arena *arena);
/* The point where symbols have these values; BB_NONE: there is none. */
uint32_t bb_quotes_find(const bb_quotes *quotes, const double *symbol);

/* One selection's. */
typedef struct bb_quoter {
  bb_program *program;
  bb_arena *arena;
  bb_quotes *quotes;
  uint32_t point, number;
  const bb_pieces *pieces;
  uint32_t met, priced;   /* kernels asked for; those that differ in more than names */
  const bb_prices *known; /* the answers of an equal selection before, in this order; NULL: none */
  uint32_t answers, answer_capacity;
  /* What kernels cost as they look, and of those that a cover holds, as lowering has them; then, of each snapshot that could
   * run, whether lowering has more than plain threads for it. */
  double *answer;
} bb_quoter;

/* At options->symbol: by options->quotes, where these have that point. */
bb_quoter *bb_quoter_create(bb_program *program, const bb_selection_options *options,
                            bb_arena *arena);
/* The pricer, asked about the quoter's point alone. */
bb_pricer *bb_quoter_pricer(bb_quoter *quoter);
/* From here on it asks lowering, as the equal selection before has it, until told to stop. */
void bb_quoter_ask(bb_quoter *quoter, bool asks);
/* Kernels asked for from here on are of these pieces. */
void bb_quoter_begin(bb_quoter *quoter, const bb_pieces *pieces);
/* A bb_cover_price; user: a bb_quoter. */
double bb_quoter_price(void *user, const bb_cover_kernel *kernel);
/* The cheapest cover of the pieces by kernels that lowering has as they were priced: those of a cover that it has by
 * plain threads alone are priced anew, and the cover is looked for again, a few times.  In `arena`. */
bb_cover *bb_quoter_solve(bb_quoter *quoter, const bb_pieces *pieces, bb_arena *arena);
/* Adds the loop nests that the kernel becomes, each in its cheapest way. */
void bb_quoter_plan(bb_quoter *quoter, const bb_cover_kernel *kernel, bb_plan *plan);

#endif
