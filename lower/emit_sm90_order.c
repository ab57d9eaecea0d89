/* emit_sm90_order.c - the order of a list's statements, and where it waits.
 *
 * A list comes in the order that defines its meaning: statements of the iteration before, then those of
 * this one.  What conflicts (one writes a tile that the other reads or writes) keeps its order; within
 * that, products of the warp groups are begun as early as they can, those of early stages first and with
 * them what they wait for; then what needs no product in flight; and last what does, the oldest product first.
 * So the product of the next iteration stands before the vector work of this one by nothing but its
 * stage.  A ring's tile is waited for before its first reader and released after its last, unless it stands.  Where products are only
 * summed, those of an iteration are waited for behind the next one's, and their tiles released there.
 */
#include "emit_sm90.h"

#include <string.h>

typedef struct list {
  bb_cuda *e;
  uint32_t count;
  const bb_cuda_item *item;
  bool *conflict; /* [i * count + k], i before k */
  bool done[BB_CUDA_ITEMS];
  uint32_t flight[BB_CUDA_ITEMS], flights; /* products begun and not waited for, oldest first */
  uint32_t readers[BB_CUDA_ITEMS];         /* of a ring's load: how many have not finished */
  bool arrived[BB_CUDA_ITEMS];
  bb_cuda_act *act;
  uint32_t acts, capacity;
} list;

static void act(list *l, bb_cuda_act_kind kind, uint32_t item, uint32_t tile, uint32_t count) {
  BB_GROW(l->e->arena, l->act, l->capacity, l->acts + 1);
  l->act[l->acts++] = (bb_cuda_act){kind, item, tile, count};
}

/* --- conflicts --- */

static void touch(const bb_tile_stmt *s, bool *reads, bool *writes) {
  for (uint32_t i = 0; i < s->operands; i++) reads[s->operand[i]] = true;
  if (s->accumulate) reads[s->result] = true;
  if (s->result != BB_NONE) writes[s->result] = true;
  for (uint32_t i = 0; i < s->body.count; i++) touch(s->body.stmt[i], reads, writes);
}

static void find_conflicts(list *l) {
  uint32_t n = l->count, tiles = l->e->p->tiles;
  bool *reads = BB_NEW(l->e->arena, bool, (size_t)n *tiles + 1);
  bool *writes = BB_NEW(l->e->arena, bool, (size_t)n *tiles + 1);
  l->conflict = BB_NEW(l->e->arena, bool, (size_t)n *n + 1);
  for (uint32_t i = 0; i < n; i++)
    touch(l->item[i].stmt, reads + (size_t)i * tiles, writes + (size_t)i * tiles);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = i + 1; k < n; k++)
      for (uint32_t t = 0; t < tiles; t++) {
        size_t a = (size_t)i * tiles + t, b = (size_t)k * tiles + t;
        l->conflict[i * n + k] |= (writes[a] && (reads[b] || writes[b])) || (reads[a] && writes[b]);
      }
}

static bool is_ring_load(const list *l, uint32_t i) {
  const bb_tile_stmt *s = l->item[i].stmt;
  return s->kind == BB_TILE_LOAD && l->e->tile[s->result].ring;
}

static bool stands(const list *l, uint32_t load) {
  return l->e->tile[l->item[load].stmt->result].stands;
}

static bool reads_tile(const bb_tile_stmt *s, uint32_t tile) {
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->operand[i] == tile) return true;
  for (uint32_t i = 0; i < s->body.count; i++)
    if (reads_tile(s->body.stmt[i], tile)) return true;
  return false;
}

/* The load that item `i` reads `tile` from; BB_NONE: another's list has it, or it is no ring's. */
static uint32_t load_of(const list *l, uint32_t i, uint32_t tile) {
  for (uint32_t k = i; k-- > 0;)
    if (is_ring_load(l, k) && l->item[k].stmt->result == tile) return k;
  return BB_NONE;
}

static void count_readers(list *l) {
  for (uint32_t i = 0; i < l->count; i++)
    for (uint32_t t = 0; t < l->e->p->tiles; t++) {
      if (!l->e->tile[t].ring || !reads_tile(l->item[i].stmt, t)) continue;
      uint32_t load = load_of(l, i, t);
      if (l->e->tile[t].stands) continue;
      if (load == BB_NONE)
        bb_cuda_refuse(l->e, l->item[i].stmt, "a loaded tile is read in another stage");
      l->readers[load]++;
    }
  for (uint32_t i = 0; i < l->count; i++)
    if (is_ring_load(l, i) && !l->readers[i] && !stands(l, i))
      bb_cuda_refuse(l->e, l->item[i].stmt, "a loaded tile that nothing reads in its stage");
}

/* --- waiting --- */

static bool continues(const list *l, uint32_t first, uint32_t next) {
  const bb_tile_stmt *a = l->item[first].stmt, *b = l->item[next].stmt;
  return bb_cuda_is_async(l->e, b) && b->accumulate && a->result == b->result;
}

/* 1 + the place in flight of the youngest product that item i has to wait for; 0: none. */
static uint32_t waits_for(const list *l, uint32_t i) {
  if (is_ring_load(l, i)) return 0;
  for (uint32_t k = l->flights; k-- > 0;)
    if (l->conflict[l->flight[k] * l->count + i] && !continues(l, l->flight[k], i)) return k + 1;
  return 0;
}

static void finish_reader(list *l, uint32_t i) {
  for (uint32_t t = 0; t < l->e->p->tiles; t++) {
    if (!l->e->tile[t].ring || l->e->tile[t].stands || !reads_tile(l->item[i].stmt, t)) continue;
    uint32_t load = load_of(l, i, t);
    if (--l->readers[load] == 0) act(l, BB_ACT_RELEASE, load, t, 0);
  }
}

static void wait_until(list *l, uint32_t first) {
  act(l, BB_ACT_WAIT, 0, 0, l->flights - first);
  for (uint32_t k = 0; k < first; k++) act(l, BB_ACT_PIN, l->flight[k], 0, 0);
  for (uint32_t k = 0; k < first; k++) finish_reader(l, l->flight[k]);
  l->flights -= first;
  memmove(l->flight, l->flight + first, l->flights * sizeof *l->flight);
}

/* --- choosing --- */

static bool is_ready(const list *l, uint32_t i) {
  for (uint32_t k = 0; k < i; k++)
    if (!l->done[k] && l->conflict[k * l->count + i]) return false;
  return true;
}

/* Marks what product i still waits for; false if some of it has to wait for a product in flight. */
static bool gather(const list *l, uint32_t i, bool *needed) {
  needed[i] = true;
  for (uint32_t k = i + 1; k-- > 0;) {
    if (!needed[k] || l->done[k]) continue;
    if (waits_for(l, k)) return false;
    for (uint32_t j = 0; j < k; j++)
      if (!l->done[j] && l->conflict[j * l->count + k]) {
        if (bb_cuda_is_async(l->e, l->item[j].stmt) && !continues(l, j, k)) return false;
        needed[j] = true;
      }
  }
  return true;
}

static uint32_t rank_of(const list *l, uint32_t i) {
  uint32_t best = 10, waits = waits_for(l, i);
  for (uint32_t k = i; k < l->count; k++) {
    const bb_tile_stmt *s = l->item[k].stmt;
    if (l->done[k] || !bb_cuda_is_async(l->e, s) || s->stage >= best) continue;
    bool needed[BB_CUDA_ITEMS] = {false};
    if (gather(l, k, needed) && needed[i]) best = s->stage;
  }
  return waits && best == 10 ? 20 + waits : best;
}

/* Of those alike, what depends on a condition comes last: a compiler moves nothing across it, and what precedes runs into each
 * other. */
static uint32_t choose(const list *l) {
  uint32_t best = BB_NONE, best_rank = 0;
  for (uint32_t i = 0; i < l->count; i++) {
    if (l->done[i] || !is_ready(l, i)) continue;
    uint32_t rank = 2 * rank_of(l, i) + (l->item[i].when || l->item[i].stmt->kind == BB_TILE_IF);
    if (best == BB_NONE || rank < best_rank) best = i, best_rank = rank;
  }
  return best;
}

static void arrive(list *l, uint32_t i) {
  for (uint32_t t = 0; t < l->e->p->tiles; t++) {
    if (!l->e->tile[t].ring || !reads_tile(l->item[i].stmt, t)) continue;
    uint32_t load = load_of(l, i, t);
    if (load == BB_NONE) continue; /* it stands since another list */
    if (!l->arrived[load]) act(l, BB_ACT_ARRIVED, load, t, 0);
    l->arrived[load] = true;
  }
}

/* The iteration before has ended when as many products are in flight as this one began; what these read is released
 * by the next. */
static void leave_in_flight(list *l) {
  act(l, BB_ACT_WAIT, 0, 0, l->flights);
  for (uint32_t k = 0; k < l->flights; k++)
    for (uint32_t t = 0; t < l->e->p->tiles; t++) {
      if (!l->e->tile[t].ring || !reads_tile(l->item[l->flight[k]].stmt, t)) continue;
      uint32_t load = load_of(l, l->flight[k], t);
      if (--l->readers[load] == 0) act(l, BB_ACT_BEHIND, load, t, 0);
    }
}

bb_cuda_act *bb_cuda_order(bb_cuda *e, uint32_t count, const bb_cuda_item *item, bool turns,
                           bool lags, uint32_t *acts) {
  list l = {.e = e, .count = count, .item = item};
  uint32_t products = 0, begun = 0;
  if (count > BB_CUDA_ITEMS) bb_cuda_refuse(e, item[0].stmt, "a list too long");
  find_conflicts(&l);
  count_readers(&l);
  for (uint32_t i = 0; i < count; i++) products += bb_cuda_is_async(e, item[i].stmt);
  for (uint32_t left = count; left > 0; left--) {
    uint32_t i = choose(&l);
    if (waits_for(&l, i)) wait_until(&l, waits_for(&l, i));
    bool async = bb_cuda_is_async(e, item[i].stmt);
    arrive(&l, i);
    if (async && turns && begun == 0) act(&l, BB_ACT_TAKE, 0, 0, 0);
    act(&l, BB_ACT_RUN, i, 0, 0);
    begun += async;
    if (async && turns && begun == products) act(&l, BB_ACT_PASS, 0, 0, 0);
    if (async)
      l.flight[l.flights++] = i;
    else
      finish_reader(&l, i);
    l.done[i] = true;
  }
  for (uint32_t i = 0; i < count; i++)
    if (is_ring_load(&l, i) && !l.arrived[i]) act(&l, BB_ACT_ARRIVED, i, item[i].stmt->result, 0);
  if (l.flights && lags)
    leave_in_flight(&l);
  else if (l.flights)
    wait_until(&l, l.flights);
  *acts = l.acts;
  return l.act;
}
