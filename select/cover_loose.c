/* cover_loose.c - homes that only values hold together which their readers could compute again.
 */
#include "cover.h"

static uint32_t lowest(uint64_t set) {
  return (uint32_t)__builtin_ctzll(set);
}

static uint32_t highest(uint64_t set) {
  return 63 - (uint32_t)__builtin_clzll(set);
}

static uint64_t readers(const bb_cover_window *w, uint32_t k) {
  return w->beside[k] & w->after[k];
}

static bool run_same_loops(const bb_cover_window *w, uint32_t a, uint32_t b) {
  return w->sets->node[w->low + a].loops == w->sets->node[w->low + b].loops;
}

/* Of the nodes of a set, `from` and those joined to it by reads within the set. */
static uint64_t joined_to(const bb_cover_window *w, uint64_t set, uint64_t from) {
  uint64_t reached = from;
  for (uint64_t rest = from; rest;) {
    uint64_t fresh = w->beside[lowest(rest)] & set & ~reached;
    reached |= fresh;
    rest = (rest & (rest - 1)) | fresh;
  }
  return reached;
}

/* Are the users of one value joined within a set, or by the loops that they run? */
static bool belong_together(const bb_cover_window *w, uint64_t set, uint64_t users) {
  uint64_t reached = users & -users, before;
  do {
    before = reached = joined_to(w, set, reached);
    for (uint64_t rest = users & ~reached; rest; rest &= rest - 1)
      for (uint64_t known = users & before; known; known &= known - 1)
        if (run_same_loops(w, lowest(rest), lowest(known))) reached |= rest & -rest;
  } while (reached != before);
  return (users & ~reached) == 0;
}

/* Takes from `shared` a value whose users in the home, also by way of other such values, belong together
 * without it. */
static bool settle_one(const bb_cover_window *w, uint64_t home, uint64_t *shared) {
  uint64_t users[BB_COVER_WINDOW];
  for (uint64_t left = *shared; left; left &= ~((uint64_t)1 << highest(left))) {
    uint32_t k = highest(left);
    users[k] = 0;
    for (uint64_t rest = readers(w, k) & home; rest; rest &= rest - 1)
      users[k] |= *shared & rest & -rest ? users[lowest(rest)] : rest & -rest;
    if (!belong_together(w, home & ~*shared, users[k])) continue;
    *shared &= ~((uint64_t)1 << k);
    return true;
  }
  return false;
}

/* The part with the last node that no shared value is computed from, nor the home begins in. */
static uint64_t last_part(const bb_cover_window *w, uint64_t home, uint64_t shared) {
  for (uint64_t left = home & ~shared; left;) {
    uint64_t part = joined_to(w, home & ~shared, (uint64_t)1 << highest(left)), read = 0;
    for (uint64_t rest = part; rest; rest &= rest - 1) read |= readers(w, lowest(rest));
    if (!(read & shared) && !(part & 1)) return part;
    left &= ~part;
  }
  return 0;
}

/* The shared values that a part reads, also by way of others. */
static uint64_t read_by(const bb_cover_window *w, uint64_t part, uint64_t shared) {
  uint64_t read = 0;
  for (uint64_t left = shared; left; left &= ~((uint64_t)1 << highest(left)))
    if (readers(w, highest(left)) & (part | read)) read |= (uint64_t)1 << highest(left);
  return read;
}

bool bb_cover_is_loose(const bb_cover_window *w, uint64_t home, uint64_t *part, uint64_t *copy) {
  uint64_t shared = 0;
  for (uint64_t rest = home; rest; rest &= rest - 1) {
    uint64_t users = readers(w, lowest(rest)) & home;
    if (w->sets->again[w->low + lowest(rest)] && (users & (users - 1))) shared |= rest & -rest;
  }
  while (settle_one(w, home, &shared)) continue;
  if (shared == 0) return false;
  *part = last_part(w, home, shared);
  *copy = read_by(w, *part, shared);
  return true;
}
