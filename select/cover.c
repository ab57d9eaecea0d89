/* cover.c - the dynamic program over down-sets.
 *
 * A state says which nodes have run, by its first node that has not and a bit for each of the 63
 * after it, and which cheap values near there were not stored.  A kernel can run if its home is
 * free, all that it reads is stored, and all that it computes again has been computed once.
 *
 * The kernels of a cover can run in many orders, and one is enough: the next is the home of the first
 * node that has not run, or, where that has to wait, of the first node that it waits for; and so
 * on, for the home of that may wait in turn.  Kernels that wait are part of the state, innermost first.
 * So two chains side by side run one after the other but where a kernel holds both, and the states
 * are those that kernels leave behind, not all down-sets.
 *
 * Every kernel adds a node, so states are followed in the order of how many nodes have run, and each
 * is final when its turn comes.
 */
#include "cover.h"
#include "../graph/intern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct state {
  uint32_t base;    /* the first node that has not run */
  uint64_t done;    /* bit k: node base + k has run; bit 0 is clear but at the end */
  bb_near unstored; /* near base: has run, was not stored, and may be asked for */
  double cost;
  uint32_t waiting;   /* kernels whose operands are being made; NONE: none is */
  uint32_t from, via; /* the state before, the choice taken */
  uint32_t next;      /* among those of its size */
} state;

/* A kernel that waits for its operands, and the one that waits for it. */
typedef struct wait {
  uint32_t choice, outer, number;
} wait;

typedef struct search {
  bb_cover_sets sets;
  bb_arena *scratch;
  uint32_t states, capacity;
  state *state;
  /* By nodes run: the states, open-addressed by what they are.  A table for each size, since only those
   * a kernel ahead are asked for at a time. */
  struct table {
    uint32_t slots, states;
    struct slot {
      uint32_t state; /* EMPTY: free */
      uint32_t hash;  /* states lie far apart: others are told from the wanted one without a look */
    } * slot;
    uint32_t first; /* state; EMPTY: none */
  } * of_size;
  bb_intern *waiting; /* of `wait` */
  uint32_t waits, wait_capacity;
  const wait **wait;    /* by number */
  uint64_t work, began; /* kernels tried: in all, and before the state at hand */
  uint64_t enough;      /* much work for the nodes that have run */
  bool far, many;       /* the window, or bounds on states and on work, cut something off */
} search;

enum { EMPTY = UINT32_MAX, NONE = UINT32_MAX };

static uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 32) * UINT64_C(0xD6E8FEB86659FD93);
  return x ^ x >> 32;
}

static uint64_t hash_of(const state *s) {
  uint64_t unstored = (uint64_t)s->unstored ^ mixed((uint64_t)(s->unstored >> 64));
  return mixed(mixed(s->done ^ (uint64_t)s->base << 32) ^ mixed(unstored ^ s->waiting));
}

static bool same(const state *a, const state *b) {
  return a->base == b->base && a->done == b->done && a->unstored == b->unstored &&
         a->waiting == b->waiting;
}

static uint64_t hash_of_waiting(const void *object) {
  const wait *w = object;
  return mixed((uint64_t)w->choice << 32 | w->outer);
}

static bool same_waiting(const void *left, const void *right) {
  const wait *a = left, *b = right;
  return a->choice == b->choice && a->outer == b->outer;
}

static struct slot *slot_of(const search *s, const struct table *table, const state *wanted,
                            uint32_t hash) {
  uint32_t mask = table->slots - 1, at = hash & mask;
  for (; table->slot[at].state != EMPTY; at = (at + 1) & mask)
    if (table->slot[at].hash == hash && same(&s->state[table->slot[at].state], wanted)) break;
  return &table->slot[at];
}

static void widen(search *s, struct table *table) {
  const struct table narrow = *table;
  if (table->slots == 0) table->first = EMPTY;
  table->slots = table->slots ? 2 * table->slots : 16;
  table->slot = BB_NEW(s->scratch, struct slot, table->slots);
  memset(table->slot, 0xFF, table->slots * sizeof *table->slot);
  uint32_t mask = table->slots - 1;
  for (uint32_t i = 0; i < narrow.slots; i++) {
    if (narrow.slot[i].state == EMPTY) continue;
    uint32_t at = narrow.slot[i].hash & mask;
    while (table->slot[at].state != EMPTY) at = (at + 1) & mask;
    table->slot[at] = narrow.slot[i];
  }
}

static uint32_t size_of(const state *s) {
  return s->base + (uint32_t)__builtin_popcountll(s->done);
}

/* Keeps the cheaper way to a state. */
static void reach(search *s, const state *reached) {
  struct table *table = &s->of_size[size_of(reached)];
  if (2 * (table->states + 1) > table->slots) widen(s, table);
  uint32_t hash = (uint32_t)hash_of(reached);
  struct slot *slot = slot_of(s, table, reached, hash);
  if (slot->state != EMPTY) {
    state *known = &s->state[slot->state];
    if (reached->cost < known->cost)
      known->cost = reached->cost, known->from = reached->from, known->via = reached->via;
    return;
  }
  BB_GROW(s->scratch, s->state, s->capacity, (size_t)s->states + 1);
  s->state[s->states] = *reached;
  s->state[s->states].next = table->first;
  *slot = (struct slot){s->states, hash};
  table->first = s->states++;
  table->states++;
}

/* A set near `low` as a set near `base`, base <= low < base + 64. */
static bb_near moved(bb_near set, uint32_t low, uint32_t base) {
  return set << (low - base);
}

static bool has_run(const state *s, uint32_t n) {
  return n < s->base || (n < s->base + BB_COVER_WINDOW && (s->done >> (n - s->base) & 1));
}

/* May somebody who has not run read node n, itself or to compute something again?  The last readers are those who
 * most likely have not. */
static bool is_awaited(const search *s, const state *at, uint32_t n) {
  const uint32_t *reader = s->sets.reader;
  for (uint32_t i = s->sets.readers[n + 1]; i-- > s->sets.readers[n];)
    if (!has_run(at, reader[i])) return true;
  for (uint32_t i = s->sets.readers[n + 1]; i-- > s->sets.readers[n];)
    if (s->sets.again[reader[i]] && is_awaited(s, at, reader[i])) return true;
  return false;
}

/* Moves the base past what has run, and forgets unstored values that nobody waits for. */
static void settle(const search *s, state *at) {
  uint32_t run = ~at->done ? (uint32_t)__builtin_ctzll(~at->done) : 64;
  at->base += run;
  at->done = run < 64 ? at->done >> run : 0;
  at->unstored = run < 128 ? at->unstored >> run : 0;
  for (bb_near rest = at->unstored; rest; rest &= rest - 1) {
    int k = bb_near_first(rest);
    if (!is_awaited(s, at, at->base + (uint32_t)k)) at->unstored &= ~BB_NEAR_BIT(k);
  }
}

/* Runs a kernel; those that wait after it are `waiting`. */
static void run(search *s, uint32_t index, uint32_t c, uint32_t waiting) {
  const bb_cover_choice *choice = &s->sets.choice[c];
  state at = s->state[index];
  uint32_t shift = choice->low - at.base;
  at.done |= choice->home << shift;
  /* Those that nobody will ask for are forgotten below. */
  at.unstored |=
      (bb_near)choice->home << (64 + shift) & ~moved(choice->stored, choice->low, at.base);
  at.cost += choice->price;
  at.from = index;
  at.via = c;
  at.waiting = waiting;
  settle(s, &at);
  reach(s, &at);
}

/* The kernels that wait, innermost first, as one number. */
static uint32_t wait_for_operands(search *s, uint32_t choice, uint32_t outer) {
  wait wanted = {choice, outer, s->waits};
  const wait *found = bb_intern_find(s->waiting, &wanted);
  if (found) return found->number;
  wait *made = BB_NEW(s->scratch, wait, 1);
  *made = wanted;
  bb_intern_add(s->waiting, made);
  BB_GROW(s->scratch, s->wait, s->wait_capacity, (size_t)s->waits + 1);
  s->wait[s->waits] = made;
  return s->waits++;
}

/* What stands in the way of a kernel: near base, what has to run before. */
static bb_near missing(const state *at, const bb_cover_choice *choice) {
  bb_near run = (bb_near)at->done << 64 | (((bb_near)1 << 64) - 1);
  return moved(choice->reads | choice->again, choice->low, at->base) & ~run;
}

typedef struct turn {
  uint32_t index;   /* of the state */
  uint32_t waiting; /* the kernels whose operands are being made */
  uint64_t taken;   /* near base: what has run, and the homes of those that wait */
  bb_near wanted;   /* near base: what those that wait will read from memory */
} turn;

static void make(search *s, const turn *t, uint32_t n);

/* Kernels wait for one another in as many ways as there are: so many are tried from one state, and few
 * once there was much work in all. */
static bool is_patient(search *s) {
  uint64_t most = s->work < s->enough ? BB_COVER_WORK / 4 : BB_COVER_WORK / 2048;
  if (s->work - s->began < most) return true;
  s->many = true;
  return false;
}

/* A kernel that is to run: at once, or as soon as its operands are made. */
static void try_choice(search *s, const turn *t, uint32_t c) {
  const bb_cover_choice *choice = &s->sets.choice[c];
  const state *at = &s->state[t->index];
  s->work++;
  uint32_t base = at->base, shift = choice->low - base;
  if (shift && choice->home >> (64 - shift)) {
    s->far = true;
    return;
  }
  bb_near home = (bb_near)(choice->home << shift) << 64;
  bb_near reads = moved(choice->reads, choice->low, base), lacks = missing(at, choice);
  if ((uint64_t)(home >> 64) & t->taken) return;
  if (reads & at->unstored) return;
  if (t->wanted & home & ~moved(choice->stored, choice->low, base)) return;
  if (!lacks) {
    run(s, t->index, c, t->waiting);
    return;
  }
  if ((uint64_t)(lacks >> 64) & t->taken) return; /* it waits for what waits for it */
  if (!is_patient(s)) return;
  turn before = {t->index, wait_for_operands(s, c, t->waiting), t->taken | (uint64_t)(home >> 64),
                 t->wanted | reads};
  make(s, &before, base + (uint32_t)__builtin_ctzll((uint64_t)(lacks >> 64)));
}

/* Every kernel whose home node n may be. */
static void make(search *s, const turn *t, uint32_t n) {
  uint32_t base = s->state[t->index].base;
  if (n == base) {
    for (uint32_t c = s->sets.first[n]; c < s->sets.first[n + 1]; c++) try_choice(s, t, c);
    return;
  }
  for (uint32_t low = base; low <= n; low++) {
    if (t->taken >> (low - base) & 1) continue;
    for (uint32_t c = s->sets.first[low]; c < s->sets.first[low + 1]; c++)
      if (s->sets.choice[c].home >> (n - low) & 1) try_choice(s, t, c);
  }
}

static void follow(search *s, uint32_t index) {
  const state at = s->state[index];
  s->began = s->work;
  turn t = {.index = index, .waiting = at.waiting, .taken = at.done};
  if (at.waiting == NONE) {
    make(s, &t, at.base);
    return;
  }
  for (uint32_t i = at.waiting; i != NONE; i = s->wait[i]->outer) {
    const bb_cover_choice *choice = &s->sets.choice[s->wait[i]->choice];
    t.taken |= choice->home << (choice->low - at.base);
    t.wanted |= moved(choice->reads, choice->low, at.base);
  }
  const wait *inner = s->wait[at.waiting];
  bb_near lacks = missing(&at, &s->sets.choice[inner->choice]);
  if (lacks)
    make(s, &t, at.base + (uint32_t)__builtin_ctzll((uint64_t)(lacks >> 64)));
  else
    run(s, index, inner->choice, inner->outer);
}

typedef struct ranked {
  double cost;
  uint32_t state;
} ranked;

static int by_cost(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  if (a->cost != b->cost) return a->cost < b->cost ? -1 : 1;
  return (a->state > b->state) - (a->state < b->state);
}

/* Each node a kernel of its own and everything stored: from there it can always go on. */
static bool is_plain(const state *s) {
  return s->waiting == NONE && s->done == 0 && s->unstored == 0;
}

static void follow_size(search *s, uint32_t size) {
  uint32_t most = s->sets.options.most_states, few = BB_COVER_STATES / 64;
  uint32_t count = s->of_size[size].states, at = 0;
  if (count == 0) return;
  ranked *list = BB_NEW(s->scratch, ranked, count);
  for (uint32_t i = s->of_size[size].first; i != EMPTY; i = s->state[i].next)
    list[at++] = (ranked){s->state[i].cost, i};
  s->enough = BB_COVER_WORK + (uint64_t)size * (BB_COVER_WORK / 256);
  if (s->work >= s->enough && most > few) most = few;
  if (count > most) {
    qsort(list, count, sizeof *list, by_cost);
    s->many = true;
  }
  for (uint32_t i = 0; i < count; i++)
    if (i < most || is_plain(&s->state[list[i].state])) follow(s, list[i].state);
}

static bb_cover *retrace(const search *s, bb_arena *arena, uint32_t last) {
  bb_cover *cover = BB_NEW(arena, bb_cover, 1);
  for (uint32_t i = last; i != 0; i = s->state[i].from) cover->kernels++;
  bb_cover_kernel *kernel = BB_NEW(arena, bb_cover_kernel, cover->kernels);
  uint32_t at = cover->kernels;
  for (uint32_t i = last; i != 0; i = s->state[i].from) {
    bb_cover_room room;
    bb_cover_kernel found = bb_cover_describe(&s->sets.choice[s->state[i].via], &room);
    uint32_t *node = BB_NEW(arena, uint32_t, found.nodes);
    bool *again = BB_NEW(arena, bool, found.nodes), *stored = BB_NEW(arena, bool, found.nodes);
    memcpy(node, found.node, found.nodes * sizeof *node);
    memcpy(again, found.again, found.nodes * sizeof *again);
    memcpy(stored, found.stored, found.nodes * sizeof *stored);
    kernel[--at] = (bb_cover_kernel){found.nodes, node, again, stored, found.price};
  }
  cover->kernel = kernel;
  cover->cost = s->state[last].cost;
  cover->exact = !s->far && !s->many && !s->sets.cut;
  if (s->sets.cut) cover->why = "more homes begin at one node than are tried";
  if (s->many) cover->why = "more sets of nodes can have run than are followed";
  if (s->far) cover->why = "nodes that could run side by side lie too far apart";
  cover->states = s->states;
  cover->priced = s->sets.priced;
  return cover;
}

static uint32_t or_default(uint32_t given, uint32_t fallback) {
  return given ? given : fallback;
}

bb_cover *bb_cover_solve(bb_arena *arena, uint32_t nodes, const bb_cover_node *node,
                         const bb_cover_options *options, bb_cover_price *price, void *user) {
  static const bb_cover_options none;
  bb_context *ctx = bb_arena_context(arena);
  if (!options) options = &none;
  search s = {.scratch = bb_scratch(ctx)};
  s.sets = (bb_cover_sets){.arena = s.scratch,
                           .nodes = nodes,
                           .node = node,
                           .options = {or_default(options->most_nodes, BB_COVER_NODES),
                                       or_default(options->most_again, BB_COVER_AGAIN),
                                       or_default(options->most_sets, BB_COVER_SETS),
                                       or_default(options->most_states, BB_COVER_STATES)},
                           .price = price,
                           .user = user};
  bb_cover_enumerate(&s.sets);
  s.waiting = bb_intern_create(s.scratch, hash_of_waiting, same_waiting);
  s.of_size = BB_NEW(s.scratch, struct table, (size_t)nodes + 1);
  reach(&s, &(state){.waiting = NONE, .from = EMPTY, .via = EMPTY});
  for (uint32_t size = 0; size < nodes; size++) follow_size(&s, size);
  if (s.of_size[nodes].states == 0)
    bb_fail(ctx, BB_ERROR_INTERNAL, "no cover: a node has no kernel of its own");
  bb_cover *cover = retrace(&s, arena, s.of_size[nodes].first);
  bb_scratch_end(s.scratch);
  return cover;
}
