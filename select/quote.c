/* quote.c - the price of a kernel by its key. */
#include "quote.h"
#include "../graph/intern.h"

#include <string.h>

typedef struct priced {
  uint64_t hash;
  uint32_t words;
  const uint64_t *word;
  double seconds;
} priced;

static uint64_t priced_hash(const void *object) {
  return ((const priced *)object)->hash;
}

static bool priced_equal(const void *left, const void *right) {
  const priced *a = left, *b = right;
  return a->words == b->words && memcmp(a->word, b->word, a->words * sizeof *a->word) == 0;
}

bb_quoter *bb_quoter_create(bb_program *program, const bb_selection_options *options,
                            bb_arena *arena) {
  bb_quoter *q = BB_NEW(arena, bb_quoter, 1);
  *q = (bb_quoter){.program = program, .arena = arena};
  q->pricer = bb_pricer_create(program, options->machine, options->symbol, arena);
  q->pricer.rolling = options->rolling;
  q->known = options->known;
  q->keys = bb_keys_create(program, arena);
  q->prices = bb_intern_create(arena, priced_hash, priced_equal);
  const bb_fuse_options *given = options->choose ? options->choose->fuse : NULL;
  if (given)
    q->fuse = (bb_fuse_options){.no_extend = given->no_extend,
                                .peel = given->peel,
                                .naive = given->naive,
                                .disabled = given->disabled};
  q->probe = (bb_choose_options){.fuse = &q->fuse, .pricer = &q->pricer};
  return q;
}

void bb_quoter_begin(bb_quoter *quoter, const bb_pieces *pieces) {
  quoter->pieces = pieces;
  bb_keys_begin(quoter->keys, pieces);
}

static double probe(bb_quoter *q, const bb_cover_kernel *kernel, bb_plan *plan) {
  bb_program *program = q->program;
  bb_arena *scratch = program->levels = bb_scratch(program->ctx);
  bb_probe before = bb_probe_begin(program);
  bb_graph *graph = bb_probe_graph(q->pieces, kernel);
  q->pricer.plain = plan == NULL;
  double seconds = bb_choose_probe(program, &q->probe, graph, kernel->nodes == 1, scratch, plan);
  q->pricer.plain = false;
  bb_probe_end(program, before);
  program->levels = program->arena;
  bb_scratch_end(scratch);
  return seconds;
}

double bb_quoter_price(void *user, const bb_cover_kernel *kernel) {
  bb_quoter *q = user;
  const bb_piece_key *key = bb_keys_make(q->keys, kernel);
  priced wanted = {bb_hash_bytes(key->word, key->words * sizeof *key->word, 0), key->words,
                   key->word, 0};
  q->met++;
  const priced *found = bb_intern_find(q->prices, &wanted);
  if (found) return found->seconds;
  bool known = q->known && q->priced < q->known->count;
  double seconds = known ? q->known->seconds[q->priced] : probe(q, kernel, NULL);
  priced *made = BB_NEW(q->arena, priced, 1);
  uint64_t *word = BB_NEW(q->arena, uint64_t, wanted.words);
  memcpy(word, wanted.word, wanted.words * sizeof *word);
  *made = (priced){wanted.hash, wanted.words, word, seconds};
  bb_intern_add(q->prices, made);
  BB_GROW(q->arena, q->asked, q->asked_capacity, (size_t)q->priced + 1);
  q->asked[q->priced++] = seconds;
  return made->seconds;
}

void bb_quoter_plan(bb_quoter *quoter, const bb_cover_kernel *kernel, bb_plan *plan) {
  probe(quoter, kernel, plan);
}
