/* price_cache.h - prices that a selection asked for, kept on disk for the next equal one.
 *
 * What takes the time of a selection is fusing and pricing every kernel that a cover could hold.  An equal program
 * (its text, and the data of constants that analyses look at) on an equal machine with equal options asks for
 * the same prices in the same order, and the same of lowering, whose answers stand behind them.  Prices decide nothing but what is fast.
 */
#ifndef BB_PRICE_CACHE_H
#define BB_PRICE_CACHE_H

#include "../../select/select.h"

/* All that prices of a program depend on, in `arena`.  Requires: stage PARTITION. */
typedef struct bb_price_key {
  const char *text;
  size_t length;
} bb_price_key;
bb_price_key bb_price_key_of(const bb_program *program, const bb_selection_options *options,
                             bb_arena *arena);

/* NULL: they are not there. */
const bb_prices *bb_prices_recall(bb_context *ctx, bb_arena *arena, const bb_price_key *key);
void bb_prices_keep(bb_context *ctx, bb_arena *arena, const bb_price_key *key,
                    const bb_prices *prices);

#endif
