/* quote.c - the price of a kernel by its key. */
#include "quote.h"
#include "../graph/intern.h"

#include <string.h>

typedef struct priced {
  uint64_t hash;
  uint32_t words;
  const uint64_t *word;
  double *seconds;    /* by point; NULL: not asked for, but by those who knew */
  bool lowered;       /* as lowering has it */
  uint32_t selection; /* the last that asked */
  uint32_t confirmed; /* the last whose cover held it */
  double now;         /* what it got */
} priced;

static uint64_t priced_hash(const void *object) {
  return ((const priced *)object)->hash;
}

static bool priced_equal(const void *left, const void *right) {
  const priced *a = left, *b = right;
  return a->words == b->words && memcmp(a->word, b->word, a->words * sizeof *a->word) == 0;
}

bb_quotes *bb_quotes_create(bb_program *program, const bb_selection_options *options,
                            uint32_t points, const double *const *symbol, bb_arena *arena) {
  bb_quotes *q = BB_NEW(arena, bb_quotes, 1);
  *q = (bb_quotes){.program = program, .arena = arena, .points = points};
  q->pricer = bb_pricer_create(program, options->machine, points, symbol, arena);
  q->pricer.rolling = options->rolling;
  q->lowers = options->lowers;
  q->keys = bb_keys_create(program, options->lowers != NULL, arena);
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

uint32_t bb_quotes_find(const bb_quotes *quotes, const double *symbol) {
  size_t bytes = quotes->pricer.symbols * sizeof *symbol;
  for (uint32_t i = 0; i < quotes->points; i++)
    if (bytes == 0 || memcmp(quotes->pricer.point[i].symbol, symbol, bytes) == 0) return i;
  return BB_NONE;
}

bb_quoter *bb_quoter_create(bb_program *program, const bb_selection_options *options,
                            bb_arena *arena) {
  bb_quoter *q = BB_NEW(arena, bb_quoter, 1);
  *q = (bb_quoter){.program = program, .arena = arena};
  q->quotes = options->quotes;
  q->point = q->quotes ? bb_quotes_find(q->quotes, options->symbol) : BB_NONE;
  if (q->point == BB_NONE) {
    q->quotes = bb_quotes_create(program, options, 1, &options->symbol, arena);
    q->point = 0;
    q->known = options->known; /* known in order: not beside prices that were found otherwise */
  }
  q->number = ++q->quotes->selections;
  return q;
}

bb_pricer *bb_quoter_pricer(bb_quoter *quoter) {
  bb_pricer *pricer = &quoter->quotes->pricer;
  pricer->first = quoter->point;
  pricer->points = 1;
  return pricer;
}

void bb_quoter_begin(bb_quoter *quoter, const bb_pieces *pieces) {
  quoter->pieces = pieces;
  bb_keys_begin(quoter->quotes->keys, pieces);
}

static bool ask_lowering(void *user, const bb_graph *graph) {
  const bb_quotes *q = user;
  return q->lowers(q->program, graph);
}

/* At the points that the pricer is asked about; asks: as lowering has it. */
static void probe(bb_quoter *q, const bb_cover_kernel *kernel, bool asks, double *seconds,
                  bb_plan *plan) {
  bb_program *program = q->program;
  bb_quotes *quotes = q->quotes;
  bb_arena *scratch = program->levels = bb_scratch(program->ctx);
  bb_probe before = bb_probe_begin(program);
  bb_graph *graph = bb_probe_graph(q->pieces, kernel);
  quotes->pricer.plain = plan == NULL;
  quotes->pricer.lowers = asks && quotes->lowers ? ask_lowering : NULL;
  quotes->pricer.user = quotes;
  bb_choose_probe(program, &quotes->probe, graph, kernel->nodes == 1, scratch, seconds, plan);
  quotes->pricer.plain = false;
  quotes->pricer.lowers = NULL;
  bb_probe_end(program, before);
  program->levels = program->arena;
  bb_scratch_end(scratch);
}

static priced *find(bb_quotes *quotes, const bb_cover_kernel *kernel) {
  const bb_piece_key *key = bb_keys_make(quotes->keys, kernel);
  priced wanted = {.hash = bb_hash_bytes(key->word, key->words * sizeof *key->word, 0),
                   .words = key->words,
                   .word = key->word};
  priced *found = (priced *)bb_intern_find(quotes->prices, &wanted);
  if (found) return found;
  priced *made = BB_NEW(quotes->arena, priced, 1);
  uint64_t *word = BB_NEW(quotes->arena, uint64_t, wanted.words);
  memcpy(word, wanted.word, wanted.words * sizeof *word);
  *made = wanted;
  made->word = word;
  bb_intern_add(quotes->prices, made);
  return made;
}

static double price_at_all(bb_quoter *q, const bb_cover_kernel *kernel, bool asks, priced *entry) {
  bb_quotes *quotes = q->quotes;
  quotes->pricer.first = 0;
  quotes->pricer.points = quotes->points;
  if (!entry->seconds) entry->seconds = BB_NEW(quotes->arena, double, quotes->points);
  probe(q, kernel, asks, entry->seconds, NULL);
  return entry->seconds[q->point];
}

/* What an equal selection got here? */
static bool is_known(const bb_quoter *q) {
  return q->known && q->answers < q->known->count;
}

static double answer(bb_quoter *q, double seconds) {
  BB_GROW(q->arena, q->answer, q->answer_capacity, (size_t)q->answers + 1);
  return q->answer[q->answers++] = seconds;
}

double bb_quoter_price(void *user, const bb_cover_kernel *kernel) {
  bb_quoter *q = user;
  priced *entry = find(q->quotes, kernel);
  q->met++;
  if (entry->selection == q->number) return entry->now;
  entry->selection = q->number;
  q->priced++;
  if (entry->seconds)
    entry->now = entry->seconds[q->point];
  else if (is_known(q))
    entry->now = q->known->seconds[q->answers];
  else
    entry->now = price_at_all(q, kernel, false, entry);
  return answer(q, entry->now);
}

/* Does a kernel of a cover cost something else, as lowering has it? */
static bool is_mistaken(bb_quoter *q, const bb_cover_kernel *kernel) {
  priced *entry = find(q->quotes, kernel);
  if (entry->confirmed == q->number) return false;
  entry->confirmed = q->number;
  double looked = entry->now;
  if (is_known(q)) {
    entry->now = q->known->seconds[q->answers];
  } else {
    if (!entry->lowered) price_at_all(q, kernel, true, entry);
    entry->lowered = true;
    entry->now = entry->seconds[q->point];
  }
  return answer(q, entry->now) != looked;
}

bb_cover *bb_quoter_solve(bb_quoter *q, const bb_pieces *pieces, bb_arena *arena) {
  enum { TURNS = 12 };
  bb_cover *cover;
  bool mistaken = true;
  bb_quoter_begin(q, pieces);
  for (int turn = 0; turn < TURNS && mistaken; turn++) {
    cover = bb_cover_solve(arena, pieces->count, pieces->cover, NULL, bb_quoter_price, q);
    mistaken = false;
    for (uint32_t i = 0; q->quotes->lowers && i < cover->kernels; i++)
      mistaken |= is_mistaken(q, &cover->kernel[i]);
  }
  return cover;
}

static bool ask_or_know(void *user, const bb_graph *graph) {
  bb_quoter *q = user;
  return answer(q, is_known(q) ? q->known->seconds[q->answers]
                               : (double)q->quotes->lowers(q->program, graph)) != 0;
}

void bb_quoter_ask(bb_quoter *quoter, bool asks) {
  bb_pricer *pricer = &quoter->quotes->pricer;
  pricer->lowers = asks && quoter->quotes->lowers ? ask_or_know : NULL;
  pricer->user = quoter;
}

void bb_quoter_plan(bb_quoter *quoter, const bb_cover_kernel *kernel, bb_plan *plan) {
  double seconds;
  bb_quoter_pricer(quoter);
  probe(quoter, kernel, true, &seconds, plan);
}
