/* pick.cuh - operators that pick elements by what they are: the first of each line in order, and the places of those that are not zero.
 *
 * An element is its word in memory, and has a rank: an unsigned number that is the greater the earlier the element comes.  A NaN is beyond
 * all numbers, zeros are equal, and of equals the first in the line comes first.  Results do not depend on which thread is first: what
 * threads add to one word is how many there are, and what they put where they find room is sorted afterwards.
 */
#pragma once
#include "misc.cuh"

enum { BB_PICK_EACH = 8, BB_PICK_FEW = 256, BB_PICK_THREADS = 256, BB_PICK_WARPS = BB_PICK_THREADS / BB_MISC_LANES };

/* A line: `extent` elements that are `inner` apart, of which `kept` come out. */
struct bb_misc_top_call {
  const void *data;
  const int64_t *many; /* how many are asked for: `kept`, or the fault is -1 */
  void *out;
  int64_t *place, *fault;
  int64_t lines, extent, inner, kept;
  uint64_t sign, infinity, ones, flip; /* of words: the sign's bit, or 0; of reals infinity, else 0; all bits; those to turn over at the end */
};

/* Launched once with `counting`, and then without; as one block without `counts` alone. */
struct bb_misc_places_call {
  const void *data;
  int64_t *out, *counts, *told;
  int64_t total, rank, span, most, counting; /* span: elements of a block; most: places that `out` has room for */
  uint64_t mask;                             /* bits that are 0 in a zero */
  int64_t shape[BB_MISC_AXES];
};

/* What threads before this one have, and all; part: a word for each warp. */
BB_DEVICE int64_t bb_pick_before(int64_t mine, int64_t *part, int64_t *all) {
  const int lane = bb_thread() % BB_MISC_LANES, warp = bb_thread() / BB_MISC_LANES;
  int64_t before = 0, together = mine;
  for (int half = 1; half < BB_MISC_LANES; half *= 2) {
    const int64_t other = bb_shuffle(together, half);
    if (lane & half) before += other;
    together += other;
  }
  bb_sync();
  if (lane == 0) part[warp] = together;
  bb_sync();
  *all = 0;
  for (int w = 0; w < BB_PICK_WARPS; w++) {
    if (w < warp) before += part[w];
    *all += part[w];
  }
  return before;
}

/* --- the first of each line --- */

template <class R> BB_DEVICE R bb_pick_rank(const bb_misc_top_call &call, R word) {
  const R sign = (R)call.sign, ones = (R)call.ones;
  R rank = word ^ sign;
  if (call.infinity) {
    if ((word & ~sign) > (R)call.infinity)
      rank = ones;
    else if (word & sign)
      rank = word == sign ? sign : ones ^ word;
  }
  return rank ^ (R)call.flip;
}

template <class R> struct bb_picked {
  R rank;
  int64_t place; /* -1: none */
  BB_DEVICE bool is_before(const bb_picked &other) const {
    if (place < 0 || other.place < 0) return place >= 0;
    return rank > other.rank || (rank == other.rank && place < other.place);
  }
};

/* Where a line begins, and where what comes out of it. */
template <class W, class R> struct bb_pick_line {
  const bb_misc_top_call &call;
  const W *from;
  W *to;
  int64_t *place;
  BB_DEVICE bb_pick_line(const bb_misc_top_call &of, int64_t line) : call(of) {
    int64_t outer = line, inner = bb_misc_last(&outer, call.inner);
    from = (const W *)call.data + outer * call.extent * call.inner + inner;
    to = (W *)call.out + outer * call.kept * call.inner + inner;
    place = call.place + outer * call.kept * call.inner + inner;
  }
  BB_DEVICE R rank(int64_t at) const {
    return bb_pick_rank(call, (R)from[at * call.inner]);
  }
  BB_DEVICE void put(int64_t at, int64_t picked) const {
    to[at * call.inner] = from[picked * call.inner];
    place[at * call.inner] = picked;
  }
};

/* Short lines: one to a warp, a few elements to a lane.  Of what is left the lanes find the first, time after time. */
template <class W, class R> BB_DEVICE void bb_pick_by_warps(const bb_misc_top_call &call) {
  const int warp = bb_thread() / BB_MISC_LANES, lane = bb_thread() % BB_MISC_LANES;
  const int64_t step = bb_blocks() * BB_PICK_WARPS;
  for (int64_t first = bb_block() * BB_PICK_WARPS; first < call.lines; first += step) {
    const bool is_line = first + warp < call.lines;
    const bb_pick_line<W, R> line(call, first + warp);
    R rank[BB_PICK_EACH];
    uint32_t left = 0;
    int held = 0;
    BB_EACH(e, BB_PICK_EACH) {
      const int place = lane + BB_MISC_LANES * e;
      const bool is_there = is_line && place < call.extent;
      rank[e] = is_there ? line.rank(place) : 0;
      left |= (uint32_t)is_there << e;
    }
    for (int k = 0; k < call.kept; k++) {
      bb_picked<R> best = {0, -1};
      BB_EACH(e, BB_PICK_EACH)
      if ((left >> e & 1) && (best.place < 0 || rank[e] > best.rank))
        best = {rank[e], lane + BB_MISC_LANES * e};
      for (int half = BB_MISC_LANES / 2; half > 0; half /= 2) {
        const bb_picked<R> other = {bb_shuffle(best.rank, half),
                                    bb_shuffle((int32_t)best.place, half)};
        if (other.is_before(best)) best = other;
      }
      const int place = (int)best.place, turn = k % BB_MISC_LANES;
      if (place >= 0 && place % BB_MISC_LANES == lane) left &= ~(1u << place / BB_MISC_LANES);
      if (turn == lane) held = place;
      const bool full = turn + 1 == BB_MISC_LANES || k + 1 == call.kept;
      if (full && is_line && lane <= turn) line.put(k - turn + lane, held);
    }
  }
}

/* What the threads of a block share. */
template <class R> struct bb_pick_shared {
  uint32_t bin[256];
  int64_t part[BB_PICK_WARPS];
  int64_t digit, before, count;
  uint32_t used;
  R rank[BB_PICK_FEW];
  int64_t place[BB_PICK_FEW];
};
enum { BB_PICK_SHARED = 5376 }; /* bytes, as the launch has them */
static_assert(sizeof(bb_pick_shared<uint64_t>) <= BB_PICK_SHARED, "a block's own memory");

/* Ranks and, behind them, places from the end of the line are one number, byte by byte.  The elements that are kept begin with at
 * least these bytes. */
template <class W, class R> struct bb_pick_bound {
  enum { RANK = sizeof(W) };
  int digits, all;
  R rank;
  int64_t rest;
  BB_DEVICE explicit bb_pick_bound(int64_t extent) : digits(0), all(RANK), rank(0), rest(0) {
    for (int64_t most = extent - 1; most > 0; most >>= 8) all++;
  }
  BB_DEVICE int next(R other, int64_t behind) const {
    if (digits < RANK) return (int)(other >> 8 * (RANK - 1 - digits) & 255);
    return (int)(behind >> 8 * (all - 1 - digits) & 255);
  }
  BB_DEVICE void add(int digit) {
    if (digits < RANK)
      rank |= (R)digit << 8 * (RANK - 1 - digits);
    else
      rest |= (int64_t)digit << 8 * (all - 1 - digits);
    digits++;
  }
  /* Less than 0, 0 or more: as the first bytes of an element are to those of the bound. */
  BB_DEVICE int compare(R other, int64_t behind) const {
    if (digits == 0) return 0;
    const int over = 8 * (RANK - digits), after = 8 * (all - digits);
    const R a = digits < RANK ? other >> over : other, b = digits < RANK ? rank >> over : rank;
    if (a != b || digits <= RANK) return (a > b) - (a < b);
    return (behind >> after > rest >> after) - (behind >> after < rest >> after);
  }
};

/* By how many elements begin with each next byte. */
template <class W, class R>
BB_DEVICE bb_pick_bound<W, R> bb_pick_find(const bb_pick_line<W, R> &line,
                                           bb_pick_shared<R> *shared) {
  const int64_t extent = line.call.extent;
  const int thread = bb_thread();
  bb_pick_bound<W, R> bound(extent);
  for (int64_t need = line.call.kept; need < extent;) {
    shared->bin[thread] = 0;
    bb_sync();
    for (int64_t at = thread; at < extent; at += BB_PICK_THREADS) {
      const R rank = line.rank(at);
      if (bound.compare(rank, extent - 1 - at) == 0)
        bb_add_to(&shared->bin[bound.next(rank, extent - 1 - at)], 1);
    }
    bb_sync();
    const int64_t count = shared->bin[255 - thread]; /* the first thread has what comes first */
    int64_t all, before = bb_pick_before(count, shared->part, &all);
    if (before < need && need <= before + count)
      shared->digit = 255 - thread, shared->before = before, shared->count = count;
    bb_sync();
    bound.add((int)shared->digit);
    need -= shared->before;
    if (shared->count == need) break;
  }
  return bound;
}

/* Where what is kept is put first: a few beside each other, many where they come out. */
template <class W, class R>
BB_DEVICE void bb_pick_collect(const bb_pick_line<W, R> &line, const bb_pick_bound<W, R> &bound,
                               bb_pick_shared<R> *shared) {
  const int64_t extent = line.call.extent;
  if (bb_thread() == 0) shared->used = 0;
  bb_sync();
  for (int64_t at = bb_thread(); at < extent; at += BB_PICK_THREADS) {
    const R rank = line.rank(at);
    if (bound.compare(rank, extent - 1 - at) < 0) continue;
    const uint32_t slot = bb_add_to(&shared->used, 1);
    if (line.call.kept <= BB_PICK_FEW)
      shared->rank[slot] = rank, shared->place[slot] = at;
    else
      line.put(slot, at);
  }
  bb_sync();
}

/* Each goes behind as many as come before it. */
template <class W, class R>
BB_DEVICE void bb_pick_sort_few(const bb_pick_line<W, R> &line, const bb_pick_shared<R> *shared) {
  const int mine = bb_thread(), kept = (int)line.call.kept;
  if (mine < kept) {
    const bb_picked<R> one = {shared->rank[mine], shared->place[mine]};
    int before = 0;
    for (int i = 0; i < kept; i++)
      before += bb_picked<R>{shared->rank[i], shared->place[i]}.is_before(one);
    line.put(before, one.place);
  }
  bb_sync();
}

/* Runs twice as long are merged of two, of which the second is read backwards at first: so what would be behind the end stays there. */
template <class W, class R> BB_DEVICE void bb_pick_sort_many(const bb_pick_line<W, R> &line) {
  const int64_t kept = line.call.kept, inner = line.call.inner;
  for (int64_t run = 1; run < kept; run *= 2)
    for (int64_t half = run; half > 0; half /= 2) {
      const int64_t pairs = (kept + 2 * half - 1) / (2 * half) * half;
      for (int64_t pair = bb_thread(); pair < pairs; pair += BB_PICK_THREADS) {
        const int64_t in = pair & (half - 1), a = 2 * pair - in;
        const int64_t b = half == run ? a - in + 2 * half - 1 - in : a + half;
        if (b >= kept) continue;
        const W word_a = line.to[a * inner], word_b = line.to[b * inner];
        const bb_picked<R> one = {bb_pick_rank(line.call, (R)word_a), line.place[a * inner]};
        const bb_picked<R> two = {bb_pick_rank(line.call, (R)word_b), line.place[b * inner]};
        if (one.is_before(two)) continue;
        line.to[a * inner] = word_b, line.place[a * inner] = two.place;
        line.to[b * inner] = word_a, line.place[b * inner] = one.place;
      }
      bb_sync();
    }
}

/* Long lines: one to a block. */
template <class W, class R> BB_DEVICE void bb_pick_by_blocks(const bb_misc_top_call &call) {
  bb_pick_shared<R> *shared = (bb_pick_shared<R> *)bb_shared;
  for (int64_t at = bb_block(); at < call.lines; at += bb_blocks()) {
    const bb_pick_line<W, R> line(call, at);
    bb_pick_collect(line, bb_pick_find(line, shared), shared);
    if (call.kept <= BB_PICK_FEW)
      bb_pick_sort_few(line, shared);
    else
      bb_pick_sort_many(line);
  }
}

/* W: a word in memory; R: a rank. */
template <class W, class R> BB_DEVICE void bb_misc_top(const bb_misc_top_call &call) {
  if (bb_block() == 0 && bb_thread() == 0 && *call.many != call.kept) *call.fault = -1;
  if (call.kept == 0) return;
  if (call.extent <= BB_PICK_EACH * BB_MISC_LANES)
    bb_pick_by_warps<W, R>(call);
  else
    bb_pick_by_blocks<W, R>(call);
}

/* --- places of elements that are not zero --- */

/* How many a block has. */
template <class W>
BB_DEVICE int64_t bb_pick_count(const bb_misc_places_call &call, int64_t from, int64_t to,
                                int64_t *part) {
  const W *data = (const W *)call.data;
  int64_t mine = 0, all;
  for (int64_t at = from + bb_thread(); at < to; at += BB_PICK_THREADS)
    mine += (data[at] & (W)call.mask) != 0;
  bb_pick_before(mine, part, &all);
  return all;
}

BB_DEVICE void bb_pick_put_place(const bb_misc_places_call &call, int64_t found, int64_t at,
                                 int64_t place) {
  for (int64_t axis = call.rank - 1; axis >= 0; axis--)
    call.out[axis * found + at] = axis ? bb_misc_last(&place, call.shape[axis]) : place;
}

/* In order: each thread has neighbours.  at: of the first of the block. */
template <class W>
BB_DEVICE void bb_pick_put(const bb_misc_places_call &call, int64_t from, int64_t to, int64_t at,
                           int64_t found, int64_t *part) {
  const W *data = (const W *)call.data;
  for (; from < to; from += BB_PICK_THREADS * BB_PICK_EACH) {
    const int64_t first = from + bb_thread() * BB_PICK_EACH;
    uint32_t set = 0;
    int64_t count = 0, all;
    BB_EACH(e, BB_PICK_EACH) {
      const bool is = first + e < to && (data[first + e] & (W)call.mask) != 0;
      set |= (uint32_t)is << e;
      count += is;
    }
    int64_t next = at + bb_pick_before(count, part, &all);
    for (int e = 0; e < BB_PICK_EACH; e++)
      if (set >> e & 1) bb_pick_put_place(call, found, next++, first + e);
    at += all;
  }
}

/* Where there are more than there is room for, none is put. */
template <class W> BB_DEVICE void bb_misc_places(const bb_misc_places_call &call) {
  int64_t *part = (int64_t *)bb_shared;
  const int64_t from = bb_block() * call.span, end = from + call.span;
  const int64_t to = end < call.total ? end : call.total;
  int64_t found, before = 0;
  if (call.counting || !call.counts) {
    found = bb_pick_count<W>(call, from, to, part);
    if (call.counting) {
      if (bb_thread() == 0) call.counts[bb_block()] = found;
      return;
    }
  } else {
    int64_t all = 0, mine = 0;
    for (int64_t b = bb_thread(); b < bb_blocks(); b += BB_PICK_THREADS) {
      all += call.counts[b];
      if (b < bb_block()) mine += call.counts[b];
    }
    bb_pick_before(all, part, &found);
    bb_pick_before(mine, part, &before);
  }
  if (bb_block() == 0 && bb_thread() == 0) *call.told = found;
  if (found <= call.most) bb_pick_put<W>(call, from, to, before, found, part);
}
