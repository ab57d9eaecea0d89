/* cover_sets.c - every kernel that a cover may hold: convex homes of nodes that belong together, and for each what it
 * computes again and what it stores.
 *
 * Connected sets are grown from their first node, each met once: a set grows by nodes next to it,
 * and a node passed over is not taken later on that branch.  A branch dies as soon as the convex
 * hull of its set is too large or holds a node that was passed over, since every convex set beyond
 * it would hold the hull.
 */
#include "cover.h"

#include <math.h>
#include <stdlib.h>

static uint32_t lowest(uint64_t set) {
  return (uint32_t)__builtin_ctzll(set);
}

static uint32_t size_of(uint64_t set) {
  return (uint32_t)__builtin_popcountll(set);
}

static void look(bb_cover_window *w, bb_cover_sets *sets, uint32_t low) {
  uint32_t left = sets->nodes - low;
  *w = (bb_cover_window){.sets = sets, .low = low, .home = w->home, .capacity = w->capacity};
  w->count = left < BB_COVER_WINDOW ? left : BB_COVER_WINDOW;
  for (uint32_t k = 0; k < w->count; k++) {
    const bb_cover_node *node = &sets->node[low + k];
    if (!node->fixed && node->group == sets->node[low].group) w->allowed |= (uint64_t)1 << k;
    for (uint32_t i = 0; i < node->reads; i++) {
      if (node->read[i] < low) continue;
      uint32_t from = node->read[i] - low;
      w->beside[k] |= (uint64_t)1 << from;
      w->beside[from] |= (uint64_t)1 << k;
      w->before[k] |= (uint64_t)1 << from | w->before[from];
      if (node->apart && node->apart[i]) {
        w->apart[k] |= (uint64_t)1 << from;
        w->apart[from] |= (uint64_t)1 << k;
      }
    }
    w->joined[k] |= w->beside[k];
    for (uint32_t i = 0; i < node->reads; i++)
      if (node->read[i] >= low) w->joined[node->read[i] - low] |= (uint64_t)1 << k;
    for (uint32_t i = 0; i < node->twins; i++) {
      if (node->twin[i] < low) continue;
      w->joined[k] |= (uint64_t)1 << (node->twin[i] - low);
      w->joined[node->twin[i] - low] |= (uint64_t)1 << k;
    }
    for (uint64_t rest = w->before[k]; rest; rest &= rest - 1)
      w->after[lowest(rest)] |= (uint64_t)1 << k;
  }
}

/* The set and every node on a path between two of its nodes. */
static uint64_t hull(const bb_cover_window *w, uint64_t set) {
  uint64_t before = 0, after = 0;
  for (uint64_t rest = set; rest; rest &= rest - 1) {
    before |= w->before[lowest(rest)];
    after |= w->after[lowest(rest)];
  }
  return set | (before & after);
}

/* Are there two nodes in the set that never share a kernel? */
static bool is_divided(const bb_cover_window *w, uint64_t set) {
  for (uint64_t rest = set; rest; rest &= rest - 1)
    if (w->apart[lowest(rest)] & set) return true;
  return false;
}

/* --- what a kernel computes again and stores --- */

/* Does a node outside the home read this one?  deep: or one that is computed again there and reads
 * it. */
static bool is_read_outside(const bb_cover_window *w, uint64_t home, uint32_t k, bool deep) {
  const bb_cover_sets *sets = w->sets;
  if (sets->last_reader[w->low + k] >= w->low + BB_COVER_WINDOW) return true;
  for (uint64_t rest = w->beside[k] & w->after[k]; rest; rest &= rest - 1) {
    uint32_t reader = lowest(rest);
    if (!(home >> reader & 1)) return true;
    if (deep && sets->again[w->low + reader] && is_read_outside(w, home, reader, true)) return true;
  }
  return false;
}

static bool holds(const bb_cover_window *w, bb_near set, uint32_t n) {
  return n + BB_COVER_WINDOW >= w->low && n < w->low + BB_COVER_WINDOW &&
         (set & BB_NEAR_BIT((int)(n - w->low)));
}

bb_cover_kernel bb_cover_describe(const bb_cover_choice *choice, bb_cover_room *room) {
  bb_near all = choice->again | (bb_near)choice->home << 64;
  uint32_t at = 0;
  for (bb_near rest = all; rest; rest &= rest - 1) {
    int k = bb_near_first(rest);
    room->node[at] = choice->low + (uint32_t)k;
    room->again[at] = (choice->again & BB_NEAR_BIT(k)) != 0;
    room->stored[at++] = (choice->stored & BB_NEAR_BIT(k)) != 0;
  }
  return (bb_cover_kernel){at, room->node, room->again, room->stored, choice->price};
}

static bb_cover_choice priced(const bb_cover_window *w, uint64_t home, bb_near again,
                              bb_near stored) {
  bb_cover_sets *sets = w->sets;
  bb_near all = again | (bb_near)home << 64;
  bb_cover_choice choice = {.low = w->low, .home = home, .again = again, .stored = stored};
  for (bb_near rest = all; rest; rest &= rest - 1) {
    int k = bb_near_first(rest);
    const bb_cover_node *node = &sets->node[w->low + (uint32_t)k];
    for (uint32_t i = 0; i < node->reads; i++) {
      uint32_t n = node->read[i];
      /* Farther back everything has been computed and stored. */
      if (n + BB_COVER_WINDOW >= w->low && !holds(w, all, n))
        choice.reads |= BB_NEAR_BIT((int)(n - w->low));
    }
  }
  bb_cover_room room;
  bb_cover_kernel kernel = bb_cover_describe(&choice, &room);
  choice.price = sets->price(sets->user, &kernel);
  sets->priced++;
  return choice;
}

static void add_choice(bb_cover_window *w, uint64_t home, bb_near again, bb_near stored) {
  bb_cover_sets *sets = w->sets;
  bb_cover_choice choice = priced(w, home, again, stored);
  if (choice.price == INFINITY) return;
  BB_GROW(sets->arena, sets->choice, sets->capacity, (size_t)sets->choices + 1);
  sets->choice[sets->choices++] = choice;
}

/* The values of the home that must be stored; those that whoever wants them could compute again, or that
 * nobody wants but to compute something else again, are optional. */
static uint64_t must_store(const bb_cover_window *w, uint64_t home, uint64_t *optional) {
  const bb_cover_sets *sets = w->sets;
  uint64_t stored = 0;
  *optional = 0;
  for (uint64_t rest = home; rest; rest &= rest - 1) {
    uint32_t k = lowest(rest), n = w->low + k;
    bool outside = is_read_outside(w, home, k, false);
    if (sets->node[n].kept || (outside && (!sets->again[n] || sets->read_by_fixed[n])))
      stored |= (uint64_t)1 << k;
    else if (outside || is_read_outside(w, home, k, true))
      *optional |= (uint64_t)1 << k;
  }
  return stored;
}

/* Kernels priced that are many for the nodes so far. */
static uint64_t enough_priced(const bb_cover_window *w) {
  return BB_COVER_PRICED + (uint64_t)w->low * (BB_COVER_PRICED / 128);
}

/* Every way to leave values of the home unstored: twice as many for each value that whoever wants it
 * could compute again.  Where very many kernels were priced, and of homes that are regions, all are
 * stored, or all but one, or none. */
static void choose_stores(bb_cover_window *w, uint64_t home, bb_near again) {
  uint64_t optional, stored = must_store(w, home, &optional), chosen = optional;
  bool many =
      w->sets->priced >= 2 * enough_priced(w) || size_of(home) > w->sets->options.most_nodes;
  if (many && size_of(optional) > 2) {
    add_choice(w, home, again, (bb_near)(stored | optional) << 64);
    for (uint64_t rest = optional; rest; rest &= rest - 1)
      add_choice(w, home, again, (bb_near)(stored | (optional & ~(rest & -rest))) << 64);
    add_choice(w, home, again, (bb_near)stored << 64);
    return;
  }
  while (true) {
    add_choice(w, home, again, (bb_near)(stored | chosen) << 64);
    if (chosen == 0) break;
    chosen = (chosen - 1) & optional;
  }
}

/* What nodes of a set read and never share a kernel with. */
static bb_near read_apart(const bb_cover_window *w, bb_near set) {
  bb_near apart = 0;
  for (bb_near rest = set; rest; rest &= rest - 1) {
    int k = bb_near_first(rest);
    const bb_cover_node *node = &w->sets->node[w->low + (uint32_t)k];
    for (uint32_t i = 0; node->apart && i < node->reads; i++)
      if (node->apart[i] && node->read[i] + BB_COVER_WINDOW >= w->low)
        apart |= BB_NEAR_BIT((int)(node->read[i] - w->low));
  }
  return apart;
}

/* Cheap nodes outside that the home or what it computes again reads, from number `from` down: each is
 * taken or not. */
static void choose_again(bb_cover_window *w, uint64_t home, bb_near again, int from,
                         uint32_t left) {
  const bb_cover_sets *sets = w->sets;
  bb_near all = again | (bb_near)home << 64, read = 0;
  for (bb_near rest = all; rest; rest &= rest - 1) {
    int k = bb_near_first(rest);
    const bb_cover_node *node = &sets->node[w->low + (uint32_t)k];
    for (uint32_t i = 0; i < node->reads; i++)
      if (node->read[i] + BB_COVER_WINDOW >= w->low)
        read |= BB_NEAR_BIT((int)(node->read[i] - w->low));
  }
  choose_stores(w, home, again);
  if (left == 0) return;
  read &= ~all & ~read_apart(w, all);
  for (int k = from; k >= -64; k--) {
    if (!(read & BB_NEAR_BIT(k))) continue;
    const bb_cover_node *node = &sets->node[w->low + (uint32_t)k];
    if (!sets->again[w->low + (uint32_t)k] || node->group != sets->node[w->low].group) continue;
    choose_again(w, home, again | BB_NEAR_BIT(k), k - 1, left - 1);
  }
}

/* --- homes --- */

static void add_home(bb_cover_window *w, uint64_t home) {
  BB_GROW(w->sets->arena, w->home, w->capacity, (size_t)w->homes + 1);
  w->home[w->homes++] = (struct bb_cover_home){home, INFINITY};
}

static int smaller_first(const void *left, const void *right) {
  uint64_t a = ((const struct bb_cover_home *)left)->set;
  uint64_t b = ((const struct bb_cover_home *)right)->set;
  if (size_of(a) != size_of(b)) return size_of(a) < size_of(b) ? -1 : 1;
  return (a > b) - (a < b);
}

static double price_of(const bb_cover_window *w, uint64_t home, uint64_t again) {
  uint64_t optional, stored = must_store(w, home, &optional);
  return priced(w, home, (bb_near)again << 64, (bb_near)stored << 64).price;
}

/* A loose home is one if the home without its last part is, and the part had better join it. */
static bool is_worthwhile(const bb_cover_window *w, const struct bb_cover_home *home) {
  uint64_t part, copy;
  if (!bb_cover_is_loose(w, home->set, &part, &copy)) return true;
  struct bb_cover_home rest = {home->set & ~part, 0};
  const struct bb_cover_home *known = bsearch(&rest, w->home, w->homes, sizeof rest, smaller_first);
  if (part == 0 || !known || known->price == INFINITY) return false;
  double apart = known->price + price_of(w, part, copy);
  return price_of(w, home->set, 0) < apart * (1 - BB_COVER_SAVING);
}

static void choose_homes(bb_cover_window *w) {
  const bb_cover_sets *sets = w->sets;
  uint32_t most = sets->node[w->low].fixed ? 0 : sets->options.most_again;
  qsort(w->home, w->homes, sizeof *w->home, smaller_first);
  for (uint32_t i = 0; i < w->homes; i++) {
    if (!is_worthwhile(w, &w->home[i])) continue;
    w->home[i].price = price_of(w, w->home[i].set, 0);
    if (sets->priced >= enough_priced(w) && most > 1) most = 1;
    if (sets->priced >= 4 * enough_priced(w)) most = 0;
    choose_again(w, w->home[i].set, 0, 63, most);
  }
}

/* Fewer where the nodes so far had very many kernels: each is priced. */
static uint32_t most_homes(const bb_cover_window *w) {
  uint32_t most = w->sets->options.most_sets, few = BB_COVER_SETS / 32;
  return w->sets->priced < enough_priced(w) || most < few ? most : few;
}

/* `open`: nodes beside the set that may still join it; `met`: all that were ever beside it. */
static void grow(bb_cover_window *w, uint64_t set, uint64_t open, uint64_t met) {
  if (hull(w, set) == set) add_home(w, set);
  while (open) {
    if (w->homes >= most_homes(w)) {
      w->sets->cut = true;
      return;
    }
    uint32_t k = lowest(open);
    open &= open - 1;
    uint64_t larger = set | (uint64_t)1 << k, whole = hull(w, larger);
    uint64_t passed_over = met & ~larger & ~open;
    if (size_of(whole) > w->sets->options.most_nodes || (whole & passed_over) ||
        (whole & ~w->allowed) || is_divided(w, whole))
      continue;
    grow(w, larger, open | (w->joined[k] & ~met & w->allowed), met | w->joined[k]);
  }
}

/* Homes too large to be grown: from the first node to a later one, all nodes between them, if nothing
 * enters or leaves the region but there. */
static void add_regions(bb_cover_window *w) {
  for (uint32_t last = 1; last < w->count; last++) {
    if (!(w->before[last] & 1)) continue;
    uint64_t end = (uint64_t)1 << last, set = (w->after[0] & w->before[last]) | 1 | end;
    if (size_of(set) <= w->sets->options.most_nodes || (set & ~w->allowed)) continue;
    bool closed = !is_divided(w, set);
    for (uint64_t rest = set; rest && closed; rest &= rest - 1) {
      uint32_t k = lowest(rest);
      const bb_cover_node *node = &w->sets->node[w->low + k];
      for (uint32_t i = 0; k > 0 && i < node->reads; i++)
        closed &= node->read[i] >= w->low && (set >> (node->read[i] - w->low) & 1);
      closed &= k == last || (!node->kept && !is_read_outside(w, set, k, false));
    }
    if (closed) add_home(w, set);
  }
}

/* A small graph as one kernel. */
static void add_all(bb_cover_window *w) {
  uint64_t all = w->count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << w->count) - 1, reached = 1;
  if (w->low != 0 || w->count != w->sets->nodes || (all & ~w->allowed) ||
      w->count <= w->sets->options.most_nodes || is_divided(w, all))
    return;
  for (uint64_t rest = 1; rest;) {
    uint32_t k = lowest(rest);
    uint64_t fresh = w->joined[k] & ~reached;
    reached |= fresh;
    rest = (rest & (rest - 1)) | fresh;
  }
  if (reached == all) add_home(w, all);
}

/* Who reads what last, and what may be computed again: cheap nodes that are wanted in two places, with operands that are still near where they are wanted. */
static void look_back(bb_cover_sets *sets) {
  sets->last_reader = BB_NEW(sets->arena, uint32_t, sets->nodes);
  sets->read_by_fixed = BB_NEW(sets->arena, bool, sets->nodes);
  sets->again = BB_NEW(sets->arena, bool, sets->nodes);
  for (uint32_t n = 0; n < sets->nodes; n++) sets->last_reader[n] = n;
  uint32_t *wanted = BB_NEW(sets->arena, uint32_t, sets->nodes);
  for (uint32_t n = 0; n < sets->nodes; n++) {
    wanted[n] += sets->node[n].kept;
    for (uint32_t i = 0; i < sets->node[n].reads; i++) wanted[sets->node[n].read[i]]++;
  }
  for (uint32_t n = sets->nodes; n-- > 0;) {
    const bb_cover_node *node = &sets->node[n];
    uint32_t first = n, last = sets->last_reader[n];
    for (uint32_t i = 0; i < node->reads; i++)
      if (node->read[i] < first) first = node->read[i];
    sets->again[n] = node->cheap && !node->fixed && sets->options.most_again > 0 && wanted[n] > 1 &&
                     last - first < BB_COVER_WINDOW;
    for (uint32_t i = 0; i < node->reads; i++) {
      uint32_t *seen = &sets->last_reader[node->read[i]], mine = sets->again[n] ? last : n;
      if (mine > *seen) *seen = mine;
      if (node->fixed || node->group != sets->node[node->read[i]].group)
        sets->read_by_fixed[node->read[i]] = true;
    }
  }
}

static void list_readers(bb_cover_sets *sets) {
  uint32_t reads = 0;
  sets->readers = BB_NEW(sets->arena, uint32_t, (size_t)sets->nodes + 2);
  for (uint32_t n = 0; n < sets->nodes; n++) {
    reads += sets->node[n].reads;
    for (uint32_t i = 0; i < sets->node[n].reads; i++) sets->readers[sets->node[n].read[i] + 2]++;
  }
  for (uint32_t n = 0; n < sets->nodes; n++) sets->readers[n + 1] += sets->readers[n];
  sets->reader = BB_NEW(sets->arena, uint32_t, (size_t)reads + 1);
  /* readers[n + 1] is where the next reader of n goes, and in the end where those of n + 1 begin */
  for (uint32_t n = 0; n < sets->nodes; n++)
    for (uint32_t i = 0; i < sets->node[n].reads; i++)
      sets->reader[sets->readers[sets->node[n].read[i] + 1]++] = n;
}

void bb_cover_enumerate(bb_cover_sets *sets) {
  sets->first = BB_NEW(sets->arena, uint32_t, (size_t)sets->nodes + 1);
  bb_cover_window w = {0};
  look_back(sets);
  list_readers(sets);
  for (uint32_t low = 0; low < sets->nodes; low++) {
    sets->first[low] = sets->choices;
    look(&w, sets, low);
    if (sets->node[low].fixed) {
      add_home(&w, 1);
    } else {
      grow(&w, 1, w.joined[0] & w.allowed, 1 | w.joined[0]);
      add_regions(&w);
      add_all(&w);
    }
    choose_homes(&w);
  }
  sets->first[sets->nodes] = sets->choices;
}
