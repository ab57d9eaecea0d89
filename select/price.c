/* price.c - the price of a nest for given block sizes.
 */
#include "price.h"

#include "../lower/tile.h"

#include <math.h>
#include <string.h>

const char *bb_bound_name(bb_bound bound) {
  static const char *const names[] = {
      [BB_BOUND_MEMORY] = "memory", [BB_BOUND_CACHE] = "cache",   [BB_BOUND_LOCAL] = "local",
      [BB_BOUND_DOT] = "dot",       [BB_BOUND_VECTOR] = "vector", [BB_BOUND_SPECIAL] = "special",
      [BB_BOUND_START] = "start",
  };
  return names[bound];
}

/* Of numbers that are none of them NaN: without calls. */
static inline double most(double a, double b) {
  return a > b ? a : b;
}

static inline double least(double a, double b) {
  return a < b ? a : b;
}

enum { BLOCK = 256 }; /* a loop of at most so many elements is one block, and none */

static bool is_cut(const bb_pricing *p, uint32_t loop) {
  double most_once = p->nest->loop[loop].size == BB_NONE ? 1 : BLOCK;
  return p->loop_extent[loop] > most_once;
}

/* Does a loop that runs in turn load or store for itself, around another one with products? */
static bool has_loop_in_loop(const bb_pricing *p) {
  const bb_nest *nest = p->nest;
  bool own[BB_NEST_LOOPS] = {false};
  for (uint32_t i = 0; i < nest->terms; i++) {
    const bb_nest_term *t = &nest->term[i];
    if (t->loop != BB_NONE && (t->kind == BB_NEST_LOAD || t->kind == BB_NEST_STORE))
      own[t->loop] |= !nest->loop[t->loop].grid && is_cut(p, t->loop);
  }
  for (uint32_t i = 0; i < nest->terms; i++) {
    const bb_nest_term *t = &nest->term[i];
    bool within = false; /* of a loop inside of k */
    for (uint32_t k = t->kind == BB_NEST_DOT ? t->loop : BB_NONE; k != BB_NONE;
         k = nest->loop[k].parent) {
      if (own[k] && within) return true;
      within |= is_cut(p, k);
    }
  }
  return false;
}

/* Do two loops stand one behind the other, one of them with products? */
static bool has_loops_in_a_row(const bb_pricing *p) {
  const bb_nest *nest = p->nest;
  bool dot[BB_NEST_LOOPS] = {false}, cut[BB_NEST_LOOPS] = {false};
  for (uint32_t i = 0; i < nest->terms; i++)
    if (nest->term[i].kind == BB_NEST_DOT && nest->term[i].loop != BB_NONE)
      dot[nest->term[i].loop] = true;
  for (uint32_t i = nest->loops; i-- > 0;) { /* what is inside of a loop comes behind it */
    uint32_t parent = nest->loop[i].parent;
    cut[i] |= p->loop_extent[i] > BLOCK;
    if (parent == BB_NONE) continue;
    dot[parent] |= dot[i];
    cut[parent] |= cut[i];
  }
  for (uint32_t i = 0; i < nest->loops; i++)
    for (uint32_t k = 0; k < i; k++) {
      bool beside = nest->loop[i].parent == nest->loop[k].parent && nest->loop[i].parent != BB_NONE;
      if (beside && cut[i] && cut[k] && (dot[i] || dot[k])) return true;
    }
  return false;
}

/* Results on their side: what is read of the right operand beside has room. */
static bool has_few_rows(const bb_pricing *p, const bb_nest_term *dot) {
  enum { FEW = 64 };
  return dot->axis[0] == BB_NONE || p->size_extent[dot->axis[0]] <= FEW;
}

/* Units of their own make the products of one loop, of right operands that are loaded: what passes lists between loops, computes
 * such an operand or, but for few rows, something else of it, or has a loop behind another or within one is for plain threads. */
static bool is_for_plain_threads(const bb_pricing *p) {
  for (uint32_t i = 0; i < p->nest->terms; i++) {
    const bb_nest_term *term = &p->nest->term[i];
    if (term->kind == BB_NEST_LIST_STORE) return true;
    if (term->kind == BB_NEST_DOT && (term->made || (term->shared && !has_few_rows(p, term))))
      return true;
  }
  return has_loops_in_a_row(p) || has_loop_in_loop(p);
}

/* Is nothing in blocks, but loops over single elements? */
static bool is_of_scalars(const bb_nest *nest) {
  for (uint32_t i = 0; i < nest->terms; i++)
    for (int a = 0; a < 3; a++)
      if (nest->term[i].axis[a] != BB_NONE) return false;
  return true;
}

static bool has_products(const bb_nest *nest) {
  for (uint32_t i = 0; i < nest->terms; i++)
    if (nest->term[i].kind == BB_NEST_DOT) return true;
  return false;
}

bb_pricing bb_pricing_bind(const bb_nest *nest, const bb_machine *machine, const double *extent,
                           bb_arena *arena) {
  bb_pricing p = {.nest = nest,
                  .machine = machine,
                  .size_extent = BB_NEW(arena, double, nest->sizes),
                  .loop_extent = BB_NEW(arena, double, nest->loops),
                  .room = BB_NEW(arena, double, nest->classes)};
  for (uint32_t i = 0; i < nest->loops; i++) p.grid |= (uint64_t)nest->loop[i].grid << i;
  p.stops = strcmp(machine->target, "cpu") == 0;
  p.stays = !has_products(nest);
  p.holds = machine->register_bytes > 0 && p.stays;
  for (uint32_t i = 0; i < nest->sizes; i++) p.size_extent[i] = extent[nest->size[i].dim];
  for (uint32_t i = 0; i < nest->loops; i++) p.loop_extent[i] = extent[nest->loop[i].dim];
  p.plain = machine->grain_wide > 0 && is_for_plain_threads(&p);
  p.scalars = machine->grain_wide > 0 && is_of_scalars(nest);
  return p;
}

/* One point: block sizes, and what follows from them for the loops. */
typedef struct point {
  const bb_pricing *pricing;
  const bb_nest *nest;
  const bb_machine *machine;
  const bb_tiling *tiling;
  bool brief;                  /* only how long it takes is asked */
  double block[BB_NEST_SIZES]; /* by size */
  double turns[BB_NEST_LOOPS]; /* by loop, of its own */
  double run[BB_NEST_LOOPS];   /* how often a loop's inside runs in all */
} point;

/* What one pass over the machine does. */
typedef struct pass {
  double instances;
  double memory, cache;                      /* bytes */
  double runs;                               /* of memory: bytes of short runs, each elsewhere */
  double dot, vector, special, local, start; /* seconds, if one unit did all of it */
  double narrow;                             /* of dot: in f16 and bf16 */
  double useful;                             /* of dot, vector and special: done once */
  bool any;
} pass;

static double grained(double extent, double grain) {
  return grain * ceil(extent / grain);
}

/* Of a block: all of it, or up to the vector that an extent ends in. */
static double computed(const point *p, double block, double extent) {
  double lanes = p->machine->vector_bytes / (double)sizeof(float);
  return p->pricing->stops ? most(1, least(block, grained(extent, lanes))) : block;
}

static void place(point *p) {
  const bb_nest *nest = p->nest;
  /* A block that is larger than the extent costs what the block costs: that is how it was compiled.  But for
   * kernels that stop where it ends. */
  for (uint32_t i = 0; i < nest->sizes; i++)
    p->block[i] = most(1, nest->size[i].whole ? p->pricing->size_extent[i] : p->tiling->block[i]);
  for (uint32_t i = 0; i < nest->loops; i++) {
    const bb_nest_loop *loop = &nest->loop[i];
    double turns = p->pricing->loop_extent[i];
    if (loop->size != BB_NONE) turns = ceil(turns / p->block[loop->size]);
    if (loop->part == BB_PART_FIRST) turns = least(turns, 1);
    if (loop->part == BB_PART_REST) turns = most(turns - 1, 0);
    if (loop->grid && loop->size != BB_NONE)
      p->block[loop->size] = computed(p, p->block[loop->size], p->pricing->loop_extent[i]);
    p->turns[i] = turns;
    p->run[i] = turns * (loop->parent == BB_NONE ? 1 : p->run[loop->parent]);
  }
}

static double turns_of(const point *p, uint64_t loops) {
  double turns = 1;
  for (; loops; loops &= loops - 1) turns *= p->turns[__builtin_ctzll(loops)];
  return turns;
}

static double elements(const point *p, const uint32_t *axis, int axes) {
  double count = 1;
  for (int i = 0; i < axes; i++)
    if (axis[i] != BB_NONE) count *= p->block[axis[i]];
  return count;
}

/* --- room --- */

/* The room of one item of each class; one that is larger than a tile may be never fits. */
static void measure_items(const point *p, double *room) {
  for (uint32_t c = 0; c < p->nest->classes; c++) {
    const bb_nest_class *class = &p->nest->class[c];
    double count = elements(p, class->axis, 2);
    room[c] = class->bytes * count * turns_of(p, class->times);
    if (count > BB_TILE_SIZE) room[c] += p->machine->local_bytes + p->machine->register_bytes;
    if (class->room == BB_NEST_STREAMED) room[c] *= p->machine->stages;
  }
}

static bool fits(const point *p, double local, double registers) {
  return local <= p->machine->local_bytes &&
         (p->machine->register_bytes == 0 || registers <= p->machine->register_bytes);
}

/* The most that is alive at once, in *price; does it fit in a unit?  *lists: with the lists that pass
 * between its loops; where blocks stream through registers, those lie in memory. */
static bool find_room(const point *p, bool *lists, bb_price *price) {
  const bb_nest *nest = p->nest;
  bool apart = p->machine->register_bytes > 0;
  double *room = p->pricing->room, local = 0, listed = 0, registers = 0;
  measure_items(p, room);
  for (uint32_t m = 0; m < nest->moments; m++) {
    const bb_nest_moment *moment = &nest->moment[m];
    double use[BB_NEST_ROOMS];
    uint32_t i = 0;
    for (bb_nest_room kind = 0; kind < BB_NEST_ROOMS; kind++) {
      double bytes = 0;
      for (; i < moment->until[kind]; i++)
        bytes += moment->alive[i].count * room[moment->alive[i].class];
      use[kind] = bytes;
    }
    double own = use[BB_NEST_LOADED] + use[BB_NEST_STREAMED];
    if (apart)
      registers = most(registers, use[BB_NEST_COMPUTED]);
    else
      own += use[BB_NEST_COMPUTED];
    local = most(local, own);
    listed = most(listed, own + use[BB_NEST_LISTED]);
  }
  *lists = !p->pricing->holds && fits(p, listed, registers);
  price->local = *lists ? listed : local;
  price->registers = registers;
  return *lists || fits(p, local, registers);
}

/* --- work --- */

/* Made by plain threads? */
static bool is_wide(const point *p, const bb_nest_term *term) {
  return p->pricing->plain || (term->dtype != BB_F16 && term->dtype != BB_BF16);
}

/* A wide product without a unit of its own loads only so much of what it contracts at once. */
static double turns_of_dot(const point *p, const bb_nest_term *term) {
  enum { DEPTH = 128 };
  return term->axis[2] == BB_NONE ? 1 : ceil(p->block[term->axis[2]] / DEPTH);
}

/* Multiply-adds of one block product, as many as the machine's least product makes of them. */
static double dot_operations(const point *p, const bb_nest_term *term) {
  const bb_machine *m = p->machine;
  double row = term->axis[0] == BB_NONE ? 1 : p->block[term->axis[0]];
  double col = term->axis[1] == BB_NONE ? 1 : p->block[term->axis[1]];
  double depth = term->axis[2] == BB_NONE ? 1 : p->block[term->axis[2]];
  if (is_wide(p, term) && m->grain_wide > 0)
    return term->amount * grained(row, m->grain_wide) * grained(col, m->grain_wide) * depth;
  double area = grained(row, m->grain_row) * grained(col, m->grain_col);
  if (m->swap > 0) area = least(area, grained(row, m->grain_col) * grained(col, m->grain_row));
  return term->amount * area * grained(depth, m->grain_depth);
}

static double operand_bytes(const point *p, const bb_nest_term *term) {
  uint32_t a[2] = {term->axis[0], term->axis[2]}, b[2] = {term->axis[1], term->axis[2]};
  return (elements(p, a, 2) + elements(p, b, 2)) * bb_dtype_bytes(term->dtype);
}

static bool is_grid(const point *p, uint32_t loop) {
  return loop == BB_NONE || p->nest->loop[loop].grid;
}

/* How often a term is met: an instance meets what stands in the grid's loops once. */
static double times_of(const point *p, const bb_nest_term *term, double instances) {
  return is_grid(p, term->loop) ? instances : p->run[term->loop];
}

/* Is the block that the loop beside it loaded, stored or computed last the one that a load begins with, and ends with? */
static bool is_at_hand(const point *p, const bb_nest_term *term) {
  if (!p->pricing->stays || !term->before) return false;
  const bb_nest_loop *loop = &p->nest->loop[term->loop];
  return loop->parent != BB_NONE && p->turns[term->loop] <= 1 && p->turns[term->before - 1] <= 1;
}

static void add_work(const point *p, const bb_nest_term *term, double times, pass *to) {
  const bb_machine *m = p->machine;
  double seconds = 0;
  if (term->kind == BB_NEST_DOT) {
    bool wide = is_wide(p, term);
    bool as_f32 = wide && term->dtype != BB_F64 && term->dtype != BB_I32;
    bb_dtype like = as_f32 ? BB_F32 : term->dtype;
    seconds = times * dot_operations(p, term) / bb_machine_dot_rate(m, like);
    to->dot += seconds;
    if (wide)
      to->start += times * m->wait * turns_of_dot(p, term);
    else
      to->narrow += seconds;
    if (!wide && term->waits) to->start += times * m->wait; /* no copy engine brings it ahead */
    to->local += times * operand_bytes(p, term) / m->local_bandwidth;
  } else if (term->kind == BB_NEST_VECTOR) {
    double wide = m->vector_bytes / bb_dtype_bytes(term->dtype), count = 1;
    int inner = term->axis[1] != BB_NONE;
    if (term->axis[1 - inner] != BB_NONE) count = p->block[term->axis[1 - inner]];
    if (term->axis[inner] != BB_NONE) count *= grained(p->block[term->axis[inner]], wide);
    if (term->axis[2] != BB_NONE) count *= p->block[term->axis[2]];
    seconds = times * term->amount * count / bb_machine_vector_rate(m, term->dtype);
    to->vector += seconds;
  } else if (!is_at_hand(p, term)) {
    seconds = times * term->amount * elements(p, term->axis, 3) / m->special;
    to->special += seconds;
  }
  if (!p->brief) to->useful += seconds / turns_of(p, term->apart);
}

/* Bytes that memory gives for a load that is met so often. */
static double memory_bytes(const point *p, const bb_nest_term *term, double bytes,
                           double instances) {
  const bb_machine *m = p->machine;
  double again = turns_of(p, term->apart), unique = bytes / again;
  if (unique <= m->cache_bytes / 2) return unique;
  double together = least(turns_of(p, term->apart & p->pricing->grid), least(instances, m->units));
  return unique * most(1, again / together);
}

/* How many elements of a block that is loaded lie side by side in memory, before the next ones lie elsewhere. */
static double run_length(const point *p, const bb_nest_term *term) {
  if (term->run == BB_RUN_NONE) return 1;
  int along = term->run == BB_RUN_COL;
  uint32_t inner = term->axis[along], outer = term->axis[!along];
  double length = inner == BB_NONE ? 1 : p->block[inner];
  double others = outer == BB_NONE ? 1 : p->block[outer];
  bool whole = inner == BB_NONE || length >= p->pricing->size_extent[inner];
  return others == 1 ? INFINITY : whole && term->follows ? length * others : length;
}

/* What comes in runs, of so many bytes from memory: whole lines, and all that is asked for ahead beyond the end of a
 * run is in vain, which a page ends. */
static void add_load(const point *p, const bb_nest_term *term, double bytes, double instances,
                     pass *to) {
  enum { PAGE = 4096 };
  const bb_machine *m = p->machine;
  double memory = memory_bytes(p, term, bytes, instances), run = PAGE;
  if (m->line_bytes > 0 && term->run != BB_RUN_ANY)
    run = run_length(p, term) * bb_dtype_bytes(term->dtype);
  if (run < m->line_bytes) bytes *= m->line_bytes / run;
  if (run < PAGE && m->memory_run_bandwidth > 0) to->runs += memory;
  to->memory += memory;
  to->cache += bytes;
}

/* Of what all instances have in a list, the bytes that are wanted again: where blocks stream, those of the instances at work. */
static double list_lies(const point *p, double bytes, double instances) {
  return p->pricing->holds ? bytes * least(1, p->machine->units / instances) : bytes;
}

static void add_traffic(const point *p, const bb_nest_term *term, double times, double instances,
                        bool lists, pass *to) {
  double bytes = times * term->amount * elements(p, term->axis, 2);
  switch (term->kind) {
  case BB_NEST_LOAD:
    if (!is_at_hand(p, term))
      add_load(p, term, bytes, instances, to);
    else if (!p->pricing->holds)
      to->local += bytes / p->machine->local_bandwidth;
    return;
  case BB_NEST_STORE: to->memory += bytes / turns_of(p, term->apart); break;
  default:
    if (p->pricing->holds && (is_at_hand(p, term) || term->kept)) return;
    if (lists) {
      to->local += bytes / p->machine->local_bandwidth;
      return;
    }
    to->memory += list_lies(p, bytes, instances) > p->machine->cache_bytes / 2 ? bytes : 0;
  }
  to->cache += bytes;
}

static bool inside(const point *p, uint32_t loop, uint32_t outer) {
  for (; loop != BB_NONE; loop = p->nest->loop[loop].parent)
    if (loop == outer) return true;
  return false;
}

static void add_term(const point *p, const bb_nest_term *term, double instances, bool lists,
                     pass *to) {
  double times = times_of(p, term, instances);
  to->any = true;
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

static double uneven(const point *p, double units, double waves) {
  return p->pricing->stops ? (1 - 1 / units) * least(UNEVEN, 0.5 / waves) : 0;
}

static double pass_seconds(const point *p, const pass *w, bb_price *price, double *longest) {
  const bb_machine *m = p->machine;
  double units = least(w->instances, m->units);
  double waves = ceil(w->instances / m->units), each = waves / w->instances;
  double memory =
      (w->memory - w->runs) / least(m->memory_bandwidth, units * m->memory_unit_bandwidth);
  if (w->runs > 0) memory += w->runs / least(m->memory_bandwidth, units * m->memory_run_bandwidth);
  double cache = w->cache / least(m->cache_bandwidth, units * m->cache_unit_bandwidth);
  double part[] = {[BB_BOUND_MEMORY] = memory,
                   [BB_BOUND_CACHE] = cache,
                   [BB_BOUND_LOCAL] = w->local * each,
                   [BB_BOUND_DOT] = w->dot * each,
                   [BB_BOUND_VECTOR] = w->vector * each,
                   [BB_BOUND_SPECIAL] = w->special * each,
                   [BB_BOUND_START] = m->launch + m->begin * waves + w->start * each};
  double work = part[BB_BOUND_DOT] + part[BB_BOUND_VECTOR] + part[BB_BOUND_SPECIAL];
  if (m->overlap >
      0) /* else operands are brought together for a product, and nothing runs meanwhile */
    work = most(most(part[BB_BOUND_DOT], part[BB_BOUND_LOCAL]),
                most(part[BB_BOUND_VECTOR], part[BB_BOUND_SPECIAL]));
  else
    work += part[BB_BOUND_LOCAL];
  double moving = most(memory, cache);
  double busy = most(work, moving) + SHOWS * least(work, moving);
  double seconds = part[BB_BOUND_START] + busy * (1 + uneven(p, units, waves));
  if (m->overlap > 0) /* beside products by units of their own, other work gets few turns */
    seconds += (1 - m->overlap) * least(w->narrow > 0 ? most(w->narrow * each, moving) : 0,
                                        part[BB_BOUND_VECTOR] + part[BB_BOUND_SPECIAL]);
  price->launches++;
  price->memory += w->memory;
  price->cache += w->cache;
  if (seconds <= *longest) return seconds;
  *longest = seconds;
  price->instances = w->instances;
  price->waves = waves;
  price->bound = BB_BOUND_MEMORY;
  for (bb_bound b = BB_BOUND_MEMORY; b <= BB_BOUND_START; b++)
    if (part[b] > part[price->bound]) price->bound = b;
  return seconds;
}

static void count_operations(const point *p, const bb_nest_term *term, double times,
                             bb_price *price) {
  double count = times * term->amount * elements(p, term->axis, 3);
  if (term->kind == BB_NEST_DOT) price->dot += count;
  if (term->kind == BB_NEST_VECTOR) price->vector += count;
  if (term->kind == BB_NEST_SPECIAL) price->special += count;
}

/* Both sides of a split: the parts, and what combines them and goes on. */
static void add_parts(const point *p, double instances, double parts, pass *first, pass *last) {
  const bb_nest *nest = p->nest;
  for (uint32_t i = 0; i < nest->folds; i++) {
    if (nest->fold[i].loop != p->tiling->fold) continue;
    double count = instances * parts * elements(p, nest->fold[i].axis, 2);
    double bytes = count * nest->fold[i].bytes;
    first->memory += bytes > p->machine->cache_bytes / 2 ? bytes : 0;
    last->memory += bytes > p->machine->cache_bytes / 2 ? bytes : 0;
    first->cache += bytes;
    last->cache += bytes;
    last->vector += 2 * count / p->machine->vector_f32;
  }
}

static void add_turns(const point *p, uint32_t phase, pass *first, pass *last) {
  for (uint32_t i = 0; i < p->nest->loops; i++) {
    const bb_nest_loop *loop = &p->nest->loop[i];
    if (loop->phase != phase || loop->grid) continue;
    pass *to = p->tiling->split > 1 && !inside(p, i, p->tiling->fold) ? last : first;
    to->start += p->machine->trip * p->run[i];
  }
}

enum { SCALARS = 128 }; /* that a block takes at a time, where all are */

static double phase_seconds(const point *p, uint32_t phase, bool lists, bb_price *price,
                            double *work, double *useful, double *longest) {
  const bb_nest *nest = p->nest;
  double instances = 1, parts = 1;
  bool splits = p->tiling->split > 1 && nest->loop[p->tiling->fold].phase == phase;
  for (uint32_t i = 0; i < nest->loops; i++)
    if (nest->loop[i].phase == phase && nest->loop[i].grid) instances *= p->turns[i];
  if (splits) parts = least(p->tiling->split, p->turns[p->tiling->fold]);
  double together = p->pricing->scalars ? SCALARS : 1;
  pass first = {.instances = most(1, ceil(instances / together) * parts)},
       last = {.instances = most(1, instances)};
  for (uint32_t i = 0; i < nest->terms; i++) {
    const bb_nest_term *term = &nest->term[i];
    uint32_t of = term->loop == BB_NONE ? nest->phases - 1 : nest->loop[term->loop].phase;
    if (of != phase) continue;
    add_term(p, term, instances, lists,
             splits && !inside(p, term->loop, p->tiling->fold) ? &last : &first);
    if (!p->brief) count_operations(p, term, times_of(p, term, instances), price);
  }
  add_turns(p, phase, &first, &last);
  if (splits) add_parts(p, instances, parts, &first, &last);
  *work += first.dot + first.vector + first.special + last.dot + last.vector + last.special;
  *useful += first.useful + last.useful;
  double seconds = pass_seconds(p, &first, price, longest);
  return splits ? seconds + pass_seconds(p, &last, price, longest) : seconds;
}

static void price_point(const bb_pricing *pricing, const bb_tiling *tiling, bool force, bool brief,
                        bb_price *price) {
  point p;
  p.pricing = pricing;
  p.nest = pricing->nest;
  p.machine = pricing->machine;
  p.tiling = tiling;
  p.brief = brief;
  double work = 0, useful = 0, longest = 0;
  *price = (bb_price){.seconds = INFINITY};
  place(&p);
  bool lists, good = find_room(&p, &lists, price);
  if (!good && !force) return;
  price->seconds = 0;
  for (uint32_t phase = 0; phase < p.nest->phases || phase == 0; phase++)
    price->seconds += phase_seconds(&p, phase, lists, price, &work, &useful, &longest);
  price->repeated = work > 0 && useful < work * (1 - 1e-9) ? 1 - useful / work : 0;
  if (!good)
    price->seconds *=
        most(price->local / p.machine->local_bytes,
             p.machine->register_bytes > 0 ? price->registers / p.machine->register_bytes : 1);
}

void bb_price_tiling(const bb_pricing *pricing, const bb_tiling *tiling, bool force,
                     bb_price *price) {
  price_point(pricing, tiling, force, false, price);
}

double bb_price_seconds(const bb_pricing *pricing, const bb_tiling *tiling, bool force) {
  bb_price price;
  price_point(pricing, tiling, force, true, &price);
  return price.seconds;
}
