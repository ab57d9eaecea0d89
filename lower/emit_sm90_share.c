/* emit_sm90_share.c - behind loops that are spread over warps and over a cluster: parts of a tuple are
 * combined, and what follows is computed, by all threads together.
 *
 * All parts lie alike over the threads.  What combines them goes element by element, and so does what
 * follows if it only maps and stores; so each warp of each block takes some elements of the result,
 * loads what all parts have there, combines in a tree, and stores.  emit_sm90_merge.c does the rest: what
 * follows looks across elements, and one warp or block must have them all.
 */
#include "emit_sm90.h"

enum { BATCH = 8, AT_ONCE = 64 }; /* parts of blocks that are loaded at once; values, of a thread */

typedef struct sharing {
  bb_cuda *e;
  const bb_tile_monoid *monoid;
  const uint32_t *merged;                   /* tiles */
  uint32_t offset[BB_TILE_OPERANDS], count; /* of a thread's values, in a part */
  uint32_t lanes;                           /* threads that hold a part */
  uint32_t batch;                           /* parts of blocks that are loaded at once */
  const char *lane;                         /* this one of them */
} sharing;

/* --- what can be shared --- */

static bool is_block(const bb_tile *t) {
  return t->rows && t->cols;
}

/* The first tile that is stored: its elements are shared. */
static uint32_t stored(const bb_cuda_list *list) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->stmt[i]->kind == BB_TILE_STORE) return list->stmt[i]->operand[0];
  return BB_NONE;
}

/* Does the tile lie as the block `of` does, or as a vector beside it? */
static bool lies_beside(const bb_cuda *e, uint32_t tile, uint32_t of) {
  const bb_tile *t = &e->p->tile[tile], *block = &e->p->tile[of];
  return e->tile[tile].layout == BB_LAYOUT_FRAGMENT && !t->partial &&
         (!t->rows || t->rows == block->rows) && (!t->cols || t->cols == block->cols);
}

static bool is_elementwise(const bb_cuda *e, const bb_cuda_list *list) {
  uint32_t of = stored(list);
  if (of == BB_NONE || !is_block(&e->p->tile[of])) return false;
  for (uint32_t i = 0; i < list->count; i++) {
    const bb_tile_stmt *s = list->stmt[i];
    if (s->kind != BB_TILE_MAP && s->kind != BB_TILE_STORE) return false;
    if (s->kind == BB_TILE_STORE && !is_block(&e->p->tile[s->operand[0]])) return false;
    for (uint32_t k = 0; k < s->operands; k++)
      if (!lies_beside(e, s->operand[k], of)) return false;
    if (s->kind == BB_TILE_MAP && !lies_beside(e, s->result, of)) return false;
  }
  return true;
}

static bool is_merged(const bb_tile_loop *loop, uint32_t tile) {
  for (uint32_t i = 0; i < loop->merge->components; i++)
    if (loop->merged[i] == tile) return true;
  return false;
}

/* Every tile that the list reads is merged or made there. */
static bool is_closed(const bb_tile_loop *loop, const bb_cuda_list *list) {
  for (uint32_t i = 0; i < list->count; i++)
    for (uint32_t k = 0; k < list->stmt[i]->operands; k++) {
      bool known = is_merged(loop, list->stmt[i]->operand[k]);
      for (uint32_t j = 0; j < i; j++) known |= list->stmt[j]->result == list->stmt[i]->operand[k];
      if (!known) return false;
    }
  return true;
}

static bool is_same_merge(const bb_tile_loop *a, const bb_tile_loop *b) {
  if (a->merge != b->merge) return false;
  for (uint32_t i = 0; i < a->merge->components; i++)
    if (a->merged[i] != b->merged[i]) return false;
  return true;
}

/* The outermost loop whose iterations leave parts. */
static const bb_tile_loop *merging(const bb_cuda *e) {
  return e->split ? e->split : e->cluster ? e->cluster : e->warps;
}

static const bb_cuda_list *list_behind(const bb_cuda *e) {
  return e->split ? &e->after_split : e->cluster ? &e->after_cluster : &e->after_warps;
}

bool bb_cuda_is_shared(const bb_cuda *e) {
  const bb_tile_loop *loop = merging(e);
  const bb_cuda_list *list = list_behind(e);
  if (!loop || !loop->merge || !is_elementwise(e, list) || !is_closed(loop, list)) return false;
  if (loop != e->warps && e->warps &&
      (e->after_warps.count || !e->warps->merge || !is_same_merge(loop, e->warps)))
    return false;
  for (uint32_t i = 0; i < loop->merge->components; i++)
    if (!lies_beside(e, loop->merged[i], stored(list))) return false;
  return true;
}

/* --- the parts --- */

/* As many parts as there are, where a number of them is said. */
static uint32_t batch_of(const bb_cuda *e) {
  bb_tile_index to = e->cluster && !e->split ? e->cluster->stretch[0].to : NULL;
  for (uint32_t i = 0; to && to->op == BB_X_MIN && i < 2; i++)
    if (to->a[i]->op == BB_X_CONST) to = to->a[i];
  return to && to->op == BB_X_CONST && to->number < BATCH ? (uint32_t)to->number : BATCH;
}

static sharing begin(bb_cuda *e, const bb_tile_loop *loop) {
  sharing s = {.e = e, .monoid = loop->merge, .merged = loop->merged};
  s.lanes = e->warps ? 32 : 128 * e->groups;
  s.batch = batch_of(e);
  s.lane = e->warps ? "tl::lane()" : "my_thread";
  for (uint32_t i = 0; i < s.monoid->components; i++) {
    s.offset[i] = s.count;
    s.count += e->tile[s.merged[i]].registers;
  }
  return s;
}

static uint32_t part_floats(bb_cuda *e) {
  sharing s = begin(e, merging(e));
  return s.count * s.lanes;
}

uint32_t bb_cuda_parts_in_memory(const bb_cuda *e) {
  uint32_t parts = e->warps ? e->warp_count + 1 : 1;
  return e->split && parts < BATCH ? BATCH : parts;
}

uint32_t bb_cuda_part_bytes(bb_cuda *e) {
  return merging(e) && merging(e)->merge ? 4 * part_floats(e) : 0;
}

/* Among how many the elements of a block are shared: warps, or all threads as one. */
static uint32_t workers(const bb_cuda *e) {
  return e->warps ? e->warp_count : 1;
}

static const char *name_of(const sharing *s, uint32_t component) {
  return s->e->tile[s->merged[component]].name;
}

static void put_leave(const sharing *s, const char *to) {
  for (uint32_t k = 0; k < s->monoid->components; k++)
    bb_cuda_line(s->e, "TL_UNROLL for (int e = 0; e < %u; e++) %s[%s + (%u + e) * %u] = %s[e];",
                 s->e->tile[s->merged[k]].registers, to, s->lane, s->offset[k], s->lanes,
                 name_of(s, k));
}

/* Which of a thread's values of component i belongs to element e of tile `of`. */
static const char *value_of(const sharing *s, uint32_t i, uint32_t of) {
  const bb_tile *t = &s->e->p->tile[s->merged[i]], *whole = &s->e->p->tile[of];
  if (t->rows == whole->rows && t->cols == whole->cols) return "e";
  if (!t->rows && !t->cols) return "0";
  return bb_arena_printf(s->e->arena, "tl::%s_of<%u>(e)", t->rows ? "row" : "col",
                         s->e->tile[of].ct);
}

/* Components that combining component k looks at. */
static void need(const sharing *s, uint32_t k, bool *needed) {
  uint32_t n = s->monoid->components;
  if (needed[k]) return;
  needed[k] = true;
  for (uint32_t i = 0; i < n; i++)
    if (bb_cuda_depends(s->monoid->combine[k], i) || bb_cuda_depends(s->monoid->combine[k], n + i))
      need(s, i, needed);
}

/* left = left * right, for names made of the components' by two prefixes and suffixes. */
static void put_combine(const sharing *s, const bool *needed, const char *const left[2],
                        const char *const right[2]) {
  uint32_t n = s->monoid->components;
  const char *text[2 * BB_TILE_OPERANDS] = {NULL};
  for (uint32_t i = 0; i < n; i++) {
    text[i] = bb_arena_printf(s->e->arena, "%s%s%s", left[0], name_of(s, i), left[1]);
    text[n + i] = bb_arena_printf(s->e->arena, "%s%s%s", right[0], name_of(s, i), right[1]);
  }
  for (uint32_t k = 0; k < n; k++)
    if (needed[k])
      bb_cuda_line(s->e, "const float next_%s = %s;", name_of(s, k),
                   bb_cuda_index(s->e, s->monoid->combine[k], text));
  for (uint32_t k = 0; k < n; k++)
    if (needed[k]) bb_cuda_line(s->e, "%s = next_%s;", text[k], name_of(s, k));
}

/* part_X[round][0] = all of part_X[round][0], part_X[round][1], ...; `there`: which of them are, of part i, or NULL. */
static void put_tree(const sharing *s, const bool *needed, uint32_t parts, const char *there) {
  static const char *const left[2] = {"part_", "[round][i]"};
  static const char *const right[2] = {"part_", "[round][i + step]"};
  bb_cuda_line(s->e, "TL_UNROLL for (int step = 1; step < %u; step *= 2)", parts);
  bb_cuda_line(s->e, "  TL_UNROLL for (int i = 0; i + step < %u; i += 2 * step) {", parts);
  s->e->depth += 2;
  if (there) bb_cuda_line(s->e, "if (%s + step >= blocks) continue;", there);
  put_combine(s, needed, left, right);
  s->e->depth -= 2;
  bb_cuda_line(s->e, "  }");
}

static void put_parts(const sharing *s, const bool *needed, uint32_t rounds, uint32_t parts) {
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (needed[k]) bb_cuda_line(s->e, "float part_%s[%u][%u];", name_of(s, k), rounds, parts);
}

/* Element e of round `round`, if there is one. */
static void put_element(bb_cuda *e, uint32_t of) {
  bb_cuda_line(e, "const int e = start + round * %u;", workers(e));
  if (e->tile[of].registers % workers(e))
    bb_cuda_line(e, "if (e >= %u) continue;", e->tile[of].registers);
}

/* What `blocks` blocks left, combined, at `rounds` elements: all_X[round].  All of a batch's loads are under way
 * together. */
static void put_blocks(const sharing *s, const bool *needed, uint32_t of, uint32_t rounds) {
  static const char *const all[2] = {"all_", "[round]"}, *const part[2] = {"part_", "[round][0]"};
  bb_cuda *e = s->e;
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (needed[k]) bb_cuda_line(e, "float all_%s[%u];", name_of(s, k), rounds);
  bb_cuda_line(e, "for (int first = 0; first < blocks; first += %u) {", s->batch);
  e->depth++;
  if (e->split) bb_cuda_line(e, "fetch(first);");
  put_parts(s, needed, rounds, s->batch);
  bb_cuda_line(e, "TL_UNROLL for (int round = 0; round < %u; round++) {", rounds);
  e->depth++;
  put_element(e, of);
  bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++) {", s->batch);
  bb_cuda_line(e, "  if (first + i >= blocks) continue;");
  bb_cuda_line(e, "  const float *const from = block_part(i, first);");
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (needed[k])
      bb_cuda_line(e, "  part_%s[round][i] = from[(%u + %s) * %u + %s];", name_of(s, k),
                   s->offset[k], value_of(s, k, of), s->lanes, s->lane);
  bb_cuda_line(e, "}");
  e->depth--;
  bb_cuda_line(e, "}");
  bb_cuda_line(e, "TL_UNROLL for (int round = 0; round < %u; round++) {", rounds);
  e->depth++;
  put_element(e, of);
  put_tree(s, needed, s->batch, "first + i");
  bb_cuda_line(e, "if (first > 0) {");
  e->depth++;
  put_combine(s, needed, all, part);
  e->depth--;
  bb_cuda_line(e, "} else {");
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (needed[k])
      bb_cuda_line(e, "  all_%s[round] = part_%s[round][0];", name_of(s, k), name_of(s, k));
  bb_cuda_line(e, "}");
  for (uint32_t i = 0; i < 2; i++) {
    e->depth--;
    bb_cuda_line(e, "}");
  }
}

/* Opens a loop over elements e below `count` that this warp takes, beginning with warp `first`. */
static void open_elements(bb_cuda *e, uint32_t count, uint32_t first) {
  uint32_t warps = e->warp_count;
  bb_cuda_line(e, "TL_UNROLL for (int round = 0; round < %u; round++) {",
               (count + warps - 1) / warps);
  e->depth++;
  if (first)
    bb_cuda_line(e, "const int e = round * %u + (my_warp + %u) %% %u;", warps, warps - first,
                 warps);
  else
    bb_cuda_line(e, "const int e = round * %u + my_warp;", warps);
  if (count % warps) bb_cuda_line(e, "if (e >= %u) continue;", count);
}

/* Opens the same loop where what the warps left there is combined: part_X[round][0].  All loads come first: what is
 * written may lie where they read, for all that a compiler knows, and values that elements share are combined once. */
static void open_warps(const sharing *s, const bool *needed, uint32_t of, uint32_t first) {
  bb_cuda *e = s->e;
  uint32_t count = e->tile[of].registers, warps = e->warp_count;
  put_parts(s, needed, (count + warps - 1) / warps, warps);
  open_elements(e, count, first);
  bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++) {", warps);
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (needed[k])
      bb_cuda_line(e, "  part_%s[round][i] = parts[(i * %u + %u + %s) * %u + %s];", name_of(s, k),
                   s->count, s->offset[k], value_of(s, k, of), s->lanes, s->lane);
  bb_cuda_line(e, "}");
  e->depth--;
  bb_cuda_line(e, "}");
  open_elements(e, count, first);
  put_tree(s, needed, warps, NULL);
}

/* What the warps left becomes the block's: whole[], every value by one warp. */
static void put_whole(const sharing *s) {
  bb_cuda *e = s->e;
  uint32_t first = 0;
  for (uint32_t k = 0; k < s->monoid->components; k++) {
    bool needed[BB_TILE_OPERANDS] = {false};
    uint32_t count = e->tile[s->merged[k]].registers;
    need(s, k, needed);
    bb_cuda_line(e, "{");
    e->depth++;
    open_warps(s, needed, s->merged[k], first);
    bb_cuda_line(e, "whole[(%u + e) * %u + %s] = part_%s[round][0];", s->offset[k], s->lanes,
                 s->lane, name_of(s, k));
    for (uint32_t i = 0; i < 2; i++) {
      e->depth--;
      bb_cuda_line(e, "}");
    }
    first = (first + count) % e->warp_count;
  }
}

/* --- what follows, at one element --- */

static void put_following(const sharing *s, const bool *needed, const bb_cuda_list *list,
                          bool from_blocks) {
  bb_cuda *e = s->e;
  bool *declared = BB_NEW(e->arena, bool, e->p->tiles + 1);
  for (uint32_t k = 0; k < s->monoid->components; k++) {
    if (!needed[k]) continue;
    bb_cuda_line(e, "float one_%s = %s_%s[%s];", name_of(s, k), from_blocks ? "all" : "part",
                 name_of(s, k), from_blocks ? "round" : "round][0");
    declared[s->merged[k]] = true;
  }
  for (uint32_t i = 0; i < list->count; i++) {
    uint32_t result = list->stmt[i]->result;
    if (result == BB_NONE || declared[result]) continue;
    bb_cuda_line(e, "%s one_%s;", e->p->tile[result].dtype == BB_BOOL ? "bool" : "float",
                 e->tile[result].name);
    declared[result] = true;
  }
  e->single = e->tile[stored(list)].ct;
  for (uint32_t i = 0; i < list->count; i++) bb_cuda_stmt(e, list->stmt[i]);
  e->single = 0;
}

/* Components that the list reads, and what these need. */
static void need_for(const sharing *s, const bb_cuda_list *list, bool *needed) {
  for (uint32_t i = 0; i < list->count; i++)
    for (uint32_t k = 0; k < s->monoid->components; k++)
      for (uint32_t j = 0; j < list->stmt[i]->operands; j++)
        if (list->stmt[i]->operand[j] == s->merged[k]) need(s, k, needed);
}

/* The result from what the warps left, within this block. */
static void put_from_warps(const sharing *s, const bb_cuda_list *list) {
  bb_cuda *e = s->e;
  bool needed[BB_TILE_OPERANDS] = {false};
  need_for(s, list, needed);
  open_warps(s, needed, stored(list), 0);
  put_following(s, needed, list, false);
  e->depth--;
  bb_cuda_line(e, "}");
}

/* The result from what `blocks` blocks left where block_part() says; elements start, start + workers, ... */
static void put_from_blocks(const sharing *s, const bb_cuda_list *list, uint32_t rounds) {
  bb_cuda *e = s->e;
  bool needed[BB_TILE_OPERANDS] = {false};
  need_for(s, list, needed);
  put_blocks(s, needed, stored(list), rounds);
  bb_cuda_line(e, "TL_UNROLL for (int round = 0; round < %u; round++) {", rounds);
  e->depth++;
  put_element(e, stored(list));
  put_following(s, needed, list, true);
  e->depth--;
  bb_cuda_line(e, "}");
}

/* How many elements a thread takes at once: their loads are under way together. */
static uint32_t rounds_of(const sharing *s, const bb_cuda_list *list) {
  bool needed[BB_TILE_OPERANDS] = {false};
  uint32_t values = 0, rounds = 1, all = s->e->tile[stored(list)].registers;
  need_for(s, list, needed);
  for (uint32_t k = 0; k < s->monoid->components; k++) values += needed[k] ? s->batch : 0;
  while (2 * rounds * values <= AT_ONCE && all % (2 * rounds * s->batch) == 0) rounds *= 2;
  return rounds;
}

/* Blocks of a cluster: each takes some elements. */
static void put_cluster(const sharing *s, const bb_cuda_list *list) {
  bb_cuda *e = s->e;
  uint32_t of = stored(list), each = workers(e);
  bb_cuda_line(e, "tl::cluster_sync();");
  bb_cuda_line(e, "const int blocks = tl::cluster_size();");
  bb_cuda_line(e,
               "auto block_part = [&](int i, int first) { return tl::peer(whole, first + i); };");
  uint32_t rounds = e->warps ? 1 : rounds_of(s, list);
  bb_cuda_line(e,
               "for (int start = tl::cluster_rank() * %u + %s; start < %u; start += blocks * %u) {",
               each * rounds, e->warps ? "my_warp" : "0", e->tile[of].registers, each * rounds);
  e->depth++;
  put_from_blocks(s, list, rounds);
  e->depth--;
  bb_cuda_line(e, "}");
  bb_cuda_line(e, "tl::cluster_leave();");
}

/* Blocks of the grid: the last to come takes all elements. */
static void put_last(const sharing *s, const bb_cuda_list *list, const char *sync) {
  bb_cuda *e = s->e;
  uint32_t of = stored(list), each = workers(e);
  bb_cuda_line(e, "tl::fence_device();");
  bb_cuda_line(e, "%s", sync);
  bb_cuda_line(e, "if (%s == 0) sync.last = tl::is_last(p.done + blockIdx.x / blocks, blocks);",
               e->copier ? "my_thread" : "threadIdx.x");
  bb_cuda_line(e, "%s", sync);
  bb_cuda_line(e, "if (sync.last) {");
  e->depth++;
  bb_cuda_line(e, "tl::fence_device();");
  bb_cuda_line(e, "const int start = %s;", e->warps ? "my_warp" : "0");
  bb_cuda_line(e, "auto fetch = [&](int first) { // what some blocks left, all at once");
  bb_cuda_line(e, "  %s", sync);
  bb_cuda_line(
      e,
      "  tl::fetch<%u>(parts, p.parts + (long long)(blockIdx.x / blocks * blocks + first) * %u, "
      "min(blocks - first, %u) * %u, %s);",
      32 * e->warp_count, s->count * s->lanes, BATCH, s->count * s->lanes,
      e->copier ? "my_thread" : "threadIdx.x");
  bb_cuda_line(e, "  %s", sync);
  bb_cuda_line(e, "};");
  bb_cuda_line(e, "auto block_part = [&](int i, int) { return parts + i * %u; };",
               s->count * s->lanes);
  put_from_blocks(s, list, (e->tile[of].registers + each - 1) / each);
  e->depth--;
  bb_cuda_line(e, "}");
}

void bb_cuda_share(bb_cuda *e) {
  const bb_cuda_list *list = list_behind(e);
  sharing s = begin(e, merging(e));
  const char *sync = e->copier
                         ? bb_arena_printf(e->arena, "tl::named_sync(7, %u);", 32 * e->warp_count)
                         : "__syncthreads();";
  bb_cuda_line(e, "{ // merge %s; each takes some elements of the result", s.monoid->name);
  e->depth++;
  if (e->split) {
    bb_cuda_line(e, "const int blocks = %s;", bb_cuda_trips(e, e->split, e->variable));
    bb_cuda_line(e, "float *const whole = p.parts + (long long)blockIdx.x * %u;",
                 s.count * s.lanes);
  } else if (e->cluster) {
    bb_cuda_line(e, "float *const whole = (float *)tile_memory + %u;",
                 e->warps ? e->warp_count * s.count * s.lanes : 0);
  }
  bb_cuda_line(e, "%s", sync);
  if (e->warps || e->split) bb_cuda_line(e, "float *const parts = (float *)tile_memory;");
  if (e->warps) {
    bb_cuda_line(e, "float *const mine = parts + my_warp * %u;", s.count * s.lanes);
    put_leave(&s, "mine");
    bb_cuda_line(e, "%s", sync);
    if (e->split || e->cluster) {
      bb_cuda_line(e, "if (%s == 1) {", e->split ? "blocks" : "tl::cluster_size()");
      e->depth++;
      put_from_warps(&s, list);
      e->depth--;
      bb_cuda_line(e, "} else {");
      e->depth++;
    }
    if (e->split || e->cluster)
      put_whole(&s);
    else
      put_from_warps(&s, list);
  } else {
    put_leave(&s, "whole");
  }
  if (e->split)
    put_last(&s, list, sync);
  else if (e->cluster)
    put_cluster(&s, list);
  if ((e->split || e->cluster) && e->warps) {
    e->depth--;
    bb_cuda_line(e, "}");
  }
  if (!e->split && !e->cluster && e->grids &&
      e->grid[0]->persistent) { /* copies write there again */
    bb_cuda_line(e, "tl::fence_copies();");
    bb_cuda_line(e, "%s", sync);
  }
  e->depth--;
  bb_cuda_line(e, "}");
}
