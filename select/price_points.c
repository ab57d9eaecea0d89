/* price_points.c - the price of a nest for given block sizes, several at once.
 *
 * A search prices many points that differ in a block size or two: each is a lane of vectors here.  Compiled once for
 * every instruction set that is tried; POINTS is the name of the result.  Lanes do not depend on one another, and no
 * multiplication is joined with an addition: prices are the same to the last bit whatever runs this.
 */
#include "price.h"
#include "price_lanes.h"

#include "../lower/tile.h"

_Static_assert(BB_PRICE_MANY % LANES == 0, "pricing->room has room for each lane");

/* Points: block sizes, and what follows from them for the loops. */
typedef struct point {
  const bb_pricing *pricing;
  const bb_nest *nest;
  const bb_machine *machine;
  uint32_t fold;
  double split;
  lanes together;             /* indices that the loop takes at once which may take several */
  bool brief;                 /* only how long they take is asked */
  lanes block[BB_NEST_SIZES]; /* by size */
  lanes turns[BB_NEST_LOOPS]; /* by loop, of its own */
  lanes run[BB_NEST_LOOPS];   /* how often a loop's inside runs in all */
} point;

/* What one pass over the machine does. */
typedef struct pass {
  lanes instances;
  lanes memory, cache;                      /* bytes */
  lanes runs;                               /* of memory: bytes of short runs, each elsewhere */
  lanes dot, vector, special, local, start; /* seconds, if one unit did all of it */
  lanes narrow;                             /* of dot: in f16 and bf16 */
  lanes useful;                             /* of dot, vector and special: done once */
} pass;

static inline lanes grained(lanes extent, double grain) {
  return grain * rounded_up(extent / grain);
}

/* Of a block: all of it, or up to the vector that an extent ends in. */
static lanes computed(const point *p, lanes block, double extent) {
  double wide = p->machine->vector_bytes / (double)sizeof(float);
  if (!p->pricing->stops) return block;
  return most(all(1), least(block, grained(all(extent), wide)));
}

static void place(point *p, const bb_tilings *tilings, uint32_t first) {
  const bb_nest *nest = p->nest;
  /* A block that is larger than the extent costs what the block costs: that is how it was compiled.  But for
   * kernels that stop where it ends. */
  for (uint32_t i = 0; i < nest->sizes; i++) {
    const double *given = &tilings->block[(size_t)i * tilings->stride];
    lanes block = all(nest->size[i].whole ? p->pricing->size_extent[i] : *given);
    if (!nest->size[i].whole && tilings->stride > 1) block = *(const kept *)&given[first];
    p->block[i] = most(all(1), block);
  }
  p->together = all(1);
  if (nest->joined != BB_NONE)
    p->together = pick(p->block[nest->rows] >= p->pricing->size_extent[nest->rows],
                       p->block[nest->together], all(1));
  for (uint32_t i = 0; i < nest->loops; i++) {
    const bb_nest_loop *loop = &nest->loop[i];
    lanes turns = all(p->pricing->loop_extent[i]);
    if (i == nest->joined) turns = rounded_up(turns / p->together);
    if (loop->size != BB_NONE) turns = rounded_up(turns / p->block[loop->size]);
    if (loop->part == BB_PART_FIRST) turns = least(turns, all(1));
    if (loop->part == BB_PART_REST) turns = most(turns - 1, all(0));
    if (loop->grid && loop->size != BB_NONE)
      p->block[loop->size] = computed(p, p->block[loop->size], p->pricing->loop_extent[i]);
    p->turns[i] = turns;
    p->run[i] = loop->parent == BB_NONE ? turns : turns * p->run[loop->parent];
  }
  if (nest->joined != BB_NONE) p->block[nest->rows] *= p->together;
}

static inline lanes turns_of(const point *p, uint64_t loops) {
  lanes turns = all(1);
  for (; loops; loops &= loops - 1) turns *= p->turns[__builtin_ctzll(loops)];
  return turns;
}

static inline lanes elements(const point *p, const uint32_t *axis, int axes) {
  lanes count = all(1);
  for (int i = 0; i < axes; i++)
    if (axis[i] != BB_NONE) count *= p->block[axis[i]];
  return count;
}

/* --- room --- */

/* The share of a constant's block that a product has at hand: where blocks lie in memory, a panel along its longer side. */
static lanes panel_share(const point *p, const bb_nest_class *class) {
  lanes side = least(p->block[class->axis[0]], p->block[class->axis[1]]);
  return p->machine->register_bytes > 0 ? all(1) : least(all(1), p->machine->grain_col / side);
}

/* The room of one item of each class; one that is larger than a tile may be never fits. */
static void measure_items(const point *p, kept *room) {
  for (uint32_t c = 0; c < p->nest->classes; c++) {
    const bb_nest_class *class = &p->nest->class[c];
    lanes count = elements(p, class->axis, 2);
    lanes bytes = class->bytes * count * turns_of(p, class->times);
    if (class->room == BB_NEST_PANELS) bytes *= panel_share(p, class);
    double never = p->machine->local_bytes + p->machine->register_bytes;
    bytes += pick(count > BB_TILE_SIZE, all(never), all(0));
    if (class->room == BB_NEST_STREAMED || class->room == BB_NEST_PANELS)
      bytes *= p->machine->stages;
    room[c] = bytes;
  }
}

static mask fits(const point *p, lanes local, lanes registers) {
  mask good = local <= p->machine->local_bytes;
  if (p->machine->register_bytes != 0) good &= registers <= p->machine->register_bytes;
  return good;
}

/* The most that is alive at once. */
typedef struct room {
  lanes local, registers;
  mask lists; /* with the lists that pass between its loops */
  mask fits;  /* in a unit */
} room;

/* Where blocks stream through registers, lists lie in memory. */
static room find_room(const point *p) {
  const bb_nest *nest = p->nest;
  bool apart = p->machine->register_bytes > 0;
  kept *item = (kept *)p->pricing->room;
  lanes local = all(0), listed = all(0), registers = all(0);
  measure_items(p, item);
  for (uint32_t m = 0; m < nest->moments; m++) {
    const bb_nest_moment *moment = &nest->moment[m];
    lanes use[BB_NEST_ROOMS];
    uint32_t i = 0;
    for (bb_nest_room kind = 0; kind < BB_NEST_ROOMS; kind++) {
      lanes bytes = all(0);
      for (; i < moment->until[kind]; i++)
        bytes += moment->alive[i].count * item[moment->alive[i].class];
      use[kind] = bytes;
    }
    lanes own = use[BB_NEST_LOADED] + use[BB_NEST_STREAMED] + use[BB_NEST_PANELS];
    if (apart)
      registers = most(registers, use[BB_NEST_COMPUTED]);
    else
      own += use[BB_NEST_COMPUTED];
    local = most(local, own);
    listed = most(listed, own + use[BB_NEST_LISTED]);
  }
  room r = {.registers = registers};
  r.lists = everywhere(!p->pricing->holds) & fits(p, listed, registers);
  r.local = pick(r.lists, listed, local);
  r.fits = r.lists | fits(p, local, registers);
  return r;
}

/* --- work --- */

/* Made by plain threads? */
static bool is_wide(const point *p, const bb_nest_term *term) {
  return p->pricing->plain || (term->dtype != BB_F16 && term->dtype != BB_BF16);
}

/* A wide product without a unit of its own loads only so much of what it contracts at once. */
static lanes turns_of_dot(const point *p, const bb_nest_term *term) {
  enum { DEPTH = 128 };
  return term->axis[2] == BB_NONE ? all(1) : rounded_up(p->block[term->axis[2]] / DEPTH);
}

static lanes block_of(const point *p, uint32_t size) {
  return size == BB_NONE ? all(1) : p->block[size];
}

/* Multiply-adds of one block product, as many as the machine's least product makes of them. */
static lanes dot_operations(const point *p, const bb_nest_term *term) {
  const bb_machine *m = p->machine;
  lanes row = block_of(p, term->axis[0]), col = block_of(p, term->axis[1]);
  lanes depth = block_of(p, term->axis[2]);
  if (is_wide(p, term) && m->grain_wide > 0)
    return term->amount * grained(row, m->grain_wide) * grained(col, m->grain_wide) * depth;
  lanes area = grained(row, m->grain_row) * grained(col, m->grain_col);
  if (m->swap > 0) area = least(area, grained(row, m->grain_col) * grained(col, m->grain_row));
  return term->amount * area * grained(depth, m->grain_depth);
}

/* Operands, and sums that lie in memory: read and written for each block of what is contracted. */
static lanes dot_bytes(const point *p, const bb_nest_term *term) {
  uint32_t a[2] = {term->axis[0], term->axis[2]}, b[2] = {term->axis[1], term->axis[2]};
  lanes count = elements(p, a, 2) + elements(p, b, 2);
  if (p->machine->register_bytes == 0 && term->adds) count += 2 * elements(p, term->axis, 2);
  return count * bb_dtype_bytes(term->dtype);
}

static bool is_grid(const point *p, uint32_t loop) {
  return loop == BB_NONE || p->nest->loop[loop].grid;
}

/* How often a term is met: an instance meets what stands in the grid's loops once. */
static lanes times_of(const point *p, const bb_nest_term *term, lanes instances) {
  return is_grid(p, term->loop) ? instances : p->run[term->loop];
}

static lanes add_dot(const point *p, const bb_nest_term *term, lanes times, pass *to) {
  const bb_machine *m = p->machine;
  bool wide = is_wide(p, term);
  bool as_f32 = wide && term->dtype != BB_F64 && term->dtype != BB_I32;
  bb_dtype like = as_f32 ? BB_F32 : term->dtype;
  lanes seconds = times * dot_operations(p, term) / bb_machine_dot_rate(m, like);
  to->dot += seconds;
  if (wide)
    to->start += times * m->wait * turns_of_dot(p, term);
  else
    to->narrow += seconds;
  if (!wide && term->waits) to->start += times * m->wait; /* no copy engine brings it ahead */
  to->local += times * dot_bytes(p, term) / m->local_bandwidth;
  return seconds;
}

static lanes add_arithmetic(const point *p, const bb_nest_term *term, lanes times, pass *to) {
  const bb_machine *m = p->machine;
  double wide = m->vector_bytes / bb_dtype_bytes(term->dtype);
  int inner = term->axis[1] != BB_NONE;
  lanes count = block_of(p, term->axis[1 - inner]);
  if (term->axis[inner] != BB_NONE) count *= grained(p->block[term->axis[inner]], wide);
  if (term->axis[2] != BB_NONE) count *= p->block[term->axis[2]];
  lanes seconds = times * term->amount * count / bb_machine_vector_rate(m, term->dtype);
  to->vector += seconds;
  return seconds;
}

/* Is the block that the loop beside it loaded, stored or computed last the one that a load begins with, and ends with? */
static mask is_at_hand(const point *p, const bb_nest_term *term) {
  if (!p->pricing->stays || !term->before) return everywhere(false);
  const bb_nest_loop *loop = &p->nest->loop[term->loop];
  if (loop->parent == BB_NONE) return everywhere(false);
  return (p->turns[term->loop] <= 1) & (p->turns[term->before - 1] <= 1);
}

static void add_work(const point *p, const bb_nest_term *term, lanes times, pass *to) {
  lanes seconds;
  if (term->kind == BB_NEST_DOT) {
    seconds = add_dot(p, term, times, to);
  } else if (term->kind == BB_NEST_VECTOR) {
    seconds = add_arithmetic(p, term, times, to);
  } else {
    seconds = times * term->amount * elements(p, term->axis, 3) / p->machine->special;
    seconds = pick(is_at_hand(p, term), all(0), seconds);
    to->special += seconds;
  }
  if (!p->brief) to->useful += seconds / turns_of(p, term->apart);
}

/* Bytes that memory gives for a load that is met so often. */
static lanes memory_bytes(const point *p, const bb_nest_term *term, lanes bytes, lanes instances) {
  const bb_machine *m = p->machine;
  lanes again = turns_of(p, term->apart), unique = bytes / again;
  mask stays = unique <= m->cache_bytes / 2;
  if (!anywhere(~stays)) return unique;
  lanes together =
      least(turns_of(p, term->apart & p->pricing->grid), least(instances, all(m->units)));
  return pick(stays, unique, unique * most(all(1), again / together));
}

/* How many elements of a block that is loaded lie side by side in memory, before the next ones lie elsewhere. */
static lanes run_length(const point *p, const bb_nest_term *term) {
  if (term->run == BB_RUN_NONE) return all(1);
  int along = term->run == BB_RUN_COL;
  uint32_t inner = term->axis[along];
  lanes length = block_of(p, inner), others = block_of(p, term->axis[!along]);
  mask whole = everywhere(term->follows);
  if (inner != BB_NONE) whole &= length >= p->pricing->size_extent[inner];
  return pick(others == 1, all(INFINITY), pick(whole, length * others, length));
}

/* What comes in runs, of so many bytes from memory: whole lines, and all that is asked for ahead beyond the end of a
 * run is in vain, which a page ends. */
static void add_load(const point *p, const bb_nest_term *term, lanes bytes, lanes instances,
                     mask from, pass *to) {
  enum { PAGE = 4096 };
  const bb_machine *m = p->machine;
  lanes memory = memory_bytes(p, term, bytes, instances);
  if (m->line_bytes > 0 && term->run != BB_RUN_ANY) {
    lanes run = run_length(p, term) * bb_dtype_bytes(term->dtype);
    bytes = pick(run < m->line_bytes, bytes * (m->line_bytes / run), bytes);
    if (m->memory_run_bandwidth > 0) to->runs += pick(from & (run < PAGE), memory, all(0));
  }
  to->memory += pick(from, memory, all(0));
  to->cache += pick(from, bytes, all(0));
}

/* Of what all instances have in a list, the bytes that are wanted again: where blocks stream, those of the instances at work. */
static lanes list_lies(const point *p, lanes bytes, lanes instances) {
  return p->pricing->holds ? bytes * least(all(1), p->machine->units / instances) : bytes;
}

static void add_list(const point *p, lanes bytes, lanes instances, mask lists, mask lies,
                     pass *to) {
  const bb_machine *m = p->machine;
  to->local += pick(lies & lists, bytes / m->local_bandwidth, all(0));
  lies &= ~lists;
  mask far = list_lies(p, bytes, instances) > m->cache_bytes / 2;
  to->memory += pick(lies & far, bytes, all(0));
  to->cache += pick(lies, bytes, all(0));
}

static void add_traffic(const point *p, const bb_nest_term *term, lanes times, lanes instances,
                        mask lists, pass *to) {
  lanes bytes = times * term->amount * elements(p, term->axis, 2);
  switch (term->kind) {
  case BB_NEST_LOAD:
    add_load(p, term, bytes, instances, ~is_at_hand(p, term), to);
    if (p->nest->joined != BB_NONE &&
        term->axis[0] == p->nest->rows) /* they are brought together */
      to->local += pick(p->together > 1, 2 * bytes / p->machine->local_bandwidth, all(0));
    if (!p->pricing->holds)
      to->local += pick(is_at_hand(p, term), bytes / p->machine->local_bandwidth, all(0));
    return;
  case BB_NEST_STORE:
    to->memory += bytes / turns_of(p, term->apart);
    to->cache += bytes;
    return;
  default:
    if (p->pricing->holds && term->kept) return;
    add_list(p, bytes, instances, lists,
             p->pricing->holds ? ~is_at_hand(p, term) : everywhere(true), to);
  }
}

static bool inside(const point *p, uint32_t loop, uint32_t outer) {
  for (; loop != BB_NONE; loop = p->nest->loop[loop].parent)
    if (loop == outer) return true;
  return false;
}

static void add_term(const point *p, const bb_nest_term *term, lanes instances, mask lists,
                     pass *to) {
  lanes times = times_of(p, term, instances);
  if (term->kind <= BB_NEST_SPECIAL)
    add_work(p, term, times, to);
  else
    add_traffic(p, term, times, instances, lists, to);
}

/* --- seconds --- */

/* Work and traffic hide behind one another, but for this share of the shorter one: tiles wait for one
 * another at both ends of a loop. */
static const double SHOWS = 0.125;

/* Threads that take tasks as they come do not end at once: what the last task takes is half in vain but for one of them, or so
 * much of all if that is less. */
static const double UNEVEN = 0.02;

static lanes uneven(const point *p, lanes units, lanes waves) {
  if (!p->pricing->stops) return all(0);
  return (1 - 1 / units) * least(all(UNEVEN), 0.5 / waves);
}

/* What is told of the first point beside its seconds: of the longest pass, and of all. */
static void report_pass(const pass *w, lanes waves, lanes seconds, const lanes *part,
                        bb_price *price, double *longest) {
  price->launches++;
  price->memory += w->memory[0];
  price->cache += w->cache[0];
  if (seconds[0] <= *longest) return;
  *longest = seconds[0];
  price->instances = w->instances[0];
  price->waves = waves[0];
  price->bound = BB_BOUND_MEMORY;
  for (bb_bound b = BB_BOUND_MEMORY; b <= BB_BOUND_START; b++)
    if (part[b][0] > part[price->bound][0]) price->bound = b;
}

static lanes pass_seconds(const point *p, const pass *w, bb_price *price, double *longest) {
  const bb_machine *m = p->machine;
  lanes units = least(w->instances, all(m->units));
  lanes waves = rounded_up(w->instances / m->units), each = waves / w->instances;
  lanes memory =
      (w->memory - w->runs) / least(all(m->memory_bandwidth), units * m->memory_unit_bandwidth);
  lanes runs = w->runs / least(all(m->memory_bandwidth), units * m->memory_run_bandwidth);
  memory += pick(w->runs > 0, runs, all(0));
  lanes cache = w->cache / least(all(m->cache_bandwidth), units * m->cache_unit_bandwidth);
  /* The first tile of several indices is there when each's is. */
  lanes part[] = {[BB_BOUND_MEMORY] = memory,
                  [BB_BOUND_CACHE] = cache,
                  [BB_BOUND_LOCAL] = w->local * each,
                  [BB_BOUND_DOT] = w->dot * each,
                  [BB_BOUND_VECTOR] = w->vector * each,
                  [BB_BOUND_SPECIAL] = w->special * each,
                  [BB_BOUND_START] = m->launch + m->begin * waves * p->together + w->start * each};
  lanes work = part[BB_BOUND_DOT] + part[BB_BOUND_VECTOR] + part[BB_BOUND_SPECIAL];
  if (m->overlap >
      0) /* else operands are brought together for a product, and nothing runs meanwhile */
    work = most(most(part[BB_BOUND_DOT], part[BB_BOUND_LOCAL]),
                most(part[BB_BOUND_VECTOR], part[BB_BOUND_SPECIAL]));
  else
    work += part[BB_BOUND_LOCAL];
  lanes moving = most(memory, cache);
  lanes busy = most(work, moving) + SHOWS * least(work, moving);
  lanes seconds = part[BB_BOUND_START] + busy * (1 + uneven(p, units, waves));
  if (m->overlap > 0) { /* beside products by units of their own, other work gets few turns */
    lanes narrow = pick(w->narrow > 0, most(w->narrow * each, moving), all(0));
    seconds += (1 - m->overlap) * least(narrow, part[BB_BOUND_VECTOR] + part[BB_BOUND_SPECIAL]);
  }
  if (price) report_pass(w, waves, seconds, part, price, longest);
  return seconds;
}

static void count_operations(const point *p, const bb_nest_term *term, lanes times,
                             bb_price *price) {
  double count = (times * term->amount * elements(p, term->axis, 3))[0];
  if (term->kind == BB_NEST_DOT) price->dot += count;
  if (term->kind == BB_NEST_VECTOR) price->vector += count;
  if (term->kind == BB_NEST_SPECIAL) price->special += count;
}

/* Both sides of a split: the parts, and what combines them and goes on. */
static void add_parts(const point *p, lanes instances, lanes parts, pass *first, pass *last) {
  const bb_nest *nest = p->nest;
  for (uint32_t i = 0; i < nest->folds; i++) {
    if (nest->fold[i].loop != p->fold) continue;
    lanes count = instances * parts * elements(p, nest->fold[i].axis, 2);
    lanes bytes = count * nest->fold[i].bytes;
    lanes far = pick(bytes > p->machine->cache_bytes / 2, bytes, all(0));
    first->memory += far;
    last->memory += far;
    first->cache += bytes;
    last->cache += bytes;
    last->vector += 2 * count / p->machine->vector_f32;
  }
}

static void add_turns(const point *p, uint32_t phase, pass *first, pass *last) {
  for (uint32_t i = 0; i < p->nest->loops; i++) {
    const bb_nest_loop *loop = &p->nest->loop[i];
    if (loop->phase != phase || loop->grid) continue;
    pass *to = p->split > 1 && !inside(p, i, p->fold) ? last : first;
    to->start += p->machine->trip * p->run[i];
  }
}

enum { SCALARS = 128 }; /* that a block takes at a time, where all are */

/* As an initialiser does, but in vectors. */
static void clear(pass *w, lanes instances) {
  w->instances = instances;
  w->memory = w->cache = w->runs = all(0);
  w->dot = w->vector = w->special = w->local = w->start = all(0);
  w->narrow = w->useful = all(0);
}

/* Seconds of work: all of it, and what of it is done once. */
typedef struct done {
  double work, useful;
} done;

static lanes phase_seconds(const point *p, uint32_t phase, mask lists, bb_price *price, done *sum,
                           double *longest) {
  const bb_nest *nest = p->nest;
  lanes instances = all(1), parts = all(1);
  bool splits = p->split > 1 && nest->loop[p->fold].phase == phase;
  for (uint32_t i = 0; i < nest->loops; i++)
    if (nest->loop[i].phase == phase && nest->loop[i].grid) instances *= p->turns[i];
  if (splits) parts = least(all(p->split), p->turns[p->fold]);
  double together = p->pricing->scalars ? SCALARS : 1;
  pass first, last;
  clear(&first, most(all(1), rounded_up(instances / together) * parts));
  clear(&last, most(all(1), instances));
  for (uint32_t i = 0; i < nest->terms; i++) {
    const bb_nest_term *term = &nest->term[i];
    uint32_t of = term->loop == BB_NONE ? nest->phases - 1 : nest->loop[term->loop].phase;
    if (of != phase) continue;
    add_term(p, term, instances, lists, splits && !inside(p, term->loop, p->fold) ? &last : &first);
    if (price) count_operations(p, term, times_of(p, term, instances), price);
  }
  add_turns(p, phase, &first, &last);
  if (splits) add_parts(p, instances, parts, &first, &last);
  sum->work +=
      (first.dot + first.vector + first.special + last.dot + last.vector + last.special)[0];
  sum->useful += (first.useful + last.useful)[0];
  lanes seconds = pass_seconds(p, &first, price, longest);
  return splits ? seconds + pass_seconds(p, &last, price, longest) : seconds;
}

/* By how much the room is too small, if anybody asks. */
static lanes excess(const point *p, const room *r) {
  const bb_machine *m = p->machine;
  lanes registers = m->register_bytes > 0 ? r->registers / m->register_bytes : all(1);
  return most(r->local / m->local_bytes, registers);
}

static lanes price_point(const point *p, bool force, bb_price *price) {
  double longest = 0;
  done sum = {0};
  room r = find_room(p);
  lanes seconds = all(0);
  if (price)
    *price = (bb_price){.seconds = INFINITY, .local = r.local[0], .registers = r.registers[0]};
  if (!force && !anywhere(r.fits)) return all(INFINITY);
  for (uint32_t phase = 0; phase < p->nest->phases || phase == 0; phase++)
    seconds += phase_seconds(p, phase, r.lists, price, &sum, &longest);
  seconds = pick(r.fits, seconds, force ? seconds * excess(p, &r) : all(INFINITY));
  if (!price) return seconds;
  price->seconds = seconds[0];
  price->repeated =
      sum.work > 0 && sum.useful < sum.work * (1 - 1e-9) ? 1 - sum.useful / sum.work : 0;
  return seconds;
}

void POINTS(const bb_pricing *pricing, const bb_tilings *tilings, bool force, double *seconds,
            bb_price *price) {
  point p;
  p.pricing = pricing;
  p.nest = pricing->nest;
  p.machine = pricing->machine;
  p.fold = tilings->fold;
  p.split = tilings->split;
  p.brief = !price;
  for (uint32_t first = 0; first < tilings->count; first += LANES) {
    place(&p, tilings, first);
    lanes found = price_point(&p, force, first ? NULL : price);
    for (uint32_t k = 0; k < LANES && first + k < tilings->count; k++)
      seconds[first + k] = found[k];
  }
}
