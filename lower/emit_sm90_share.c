/* emit_sm90_share.c - behind loops that are spread over warps and over a cluster: parts of a tuple are
 * combined, and what follows is computed, by all threads together.
 *
 * All parts lie alike over the threads.  What combines them goes element by element, and so does what follows if it only
 * loads, maps and stores; so each warp of each block takes some elements of the result, has what all parts have there,
 * combines in a tree, and stores.  Warps leave their parts in the block's memory, blocks of the grid in the device's;
 * those of a cluster push theirs to who combines them (emit_sm90_push.c).  emit_sm90_merge.c does the rest: what
 * follows looks across elements, and one warp or block must have them all.
 */
#include "emit_sm90_share.h"
#include "tile_edit.h"

enum { BATCH = 8 }; /* parts of blocks that are loaded at once */

/* --- what can be shared --- */

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
  if (of == BB_NONE || !bb_tile_is_block(&e->p->tile[of])) return false;
  for (uint32_t i = 0; i < list->count; i++) {
    const bb_tile_stmt *s = list->stmt[i];
    if (s->kind != BB_TILE_MAP && s->kind != BB_TILE_STORE && s->kind != BB_TILE_LOAD) return false;
    if (s->kind == BB_TILE_STORE && !bb_tile_is_block(&e->p->tile[s->operand[0]])) return false;
    for (uint32_t k = 0; k < s->operands; k++)
      if (!lies_beside(e, s->operand[k], of)) return false;
    if (s->kind != BB_TILE_STORE && !lies_beside(e, s->result, of)) return false;
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

/* Components that combining component k looks at. */
static void need(const bb_sharing *s, uint32_t k, bool *needed) {
  uint32_t n = s->monoid->components;
  if (needed[k]) return;
  needed[k] = true;
  for (uint32_t i = 0; i < n; i++)
    if (bb_expr_uses_arg(s->monoid->combine[k], i) ||
        bb_expr_uses_arg(s->monoid->combine[k], n + i))
      need(s, i, needed);
}

bb_sharing bb_sharing_begin(bb_cuda *e) {
  const bb_tile_loop *loop = merging(e);
  bb_sharing s = {.e = e, .monoid = loop->merge, .merged = loop->merged, .list = list_behind(e)};
  s.of = stored(s.list);
  s.lanes = e->warps ? 32 : 128 * e->groups;
  s.lane = e->warps ? "tl::lane()" : "my_thread";
  for (uint32_t i = 0; i < s.monoid->components; i++) {
    s.offset[i] = s.count;
    s.count += e->tile[s.merged[i]].registers;
  }
  for (uint32_t i = 0; i < s.list->count; i++)
    for (uint32_t k = 0; k < s.monoid->components; k++)
      if (bb_tile_reads(s.list->stmt[i], s.merged[k])) need(&s, k, s.needed);
  return s;
}

uint32_t bb_cuda_parts_in_memory(const bb_cuda *e) {
  uint32_t parts = e->warps ? e->warp_count : 1;
  return e->split && parts < BATCH ? BATCH : parts;
}

uint32_t bb_cuda_part_bytes(bb_cuda *e) {
  if (!merging(e) || !merging(e)->merge) return 0;
  bb_sharing s = bb_sharing_begin(e);
  return 4 * s.count * s.lanes;
}

const char *bb_sharing_name(const bb_sharing *s, uint32_t component) {
  return s->e->tile[s->merged[component]].name;
}

bool bb_sharing_is_block(const bb_sharing *s, uint32_t component) {
  return bb_tile_is_block(&s->e->p->tile[s->merged[component]]);
}

static void put_leave(const bb_sharing *s, const char *to) {
  for (uint32_t k = 0; k < s->monoid->components; k++)
    bb_cuda_line(s->e, "TL_UNROLL for (int e = 0; e < %u; e++) %s[%s + (%u + e) * %u] = %s[e];",
                 s->e->tile[s->merged[k]].registers, to, s->lane, s->offset[k], s->lanes,
                 bb_sharing_name(s, k));
}

const char *bb_sharing_value(const bb_sharing *s, uint32_t tile, uint32_t of) {
  const bb_tile *t = &s->e->p->tile[tile], *whole = &s->e->p->tile[of];
  if (t->rows == whole->rows && t->cols == whole->cols) return "e";
  if (!t->rows && !t->cols) return "0";
  return bb_arena_printf(s->e->arena, "tl::%s_of<%u>(e)", t->rows ? "row" : "col",
                         s->e->tile[of].ct);
}

void bb_sharing_put_combine(const bb_sharing *s, const bool *needed, const char *const left[2],
                            const char *const right[2]) {
  uint32_t n = s->monoid->components;
  const char *text[2 * BB_TILE_OPERANDS] = {NULL};
  for (uint32_t i = 0; i < n; i++) {
    text[i] = bb_arena_printf(s->e->arena, "%s%s%s", left[0], bb_sharing_name(s, i), left[1]);
    text[n + i] = bb_arena_printf(s->e->arena, "%s%s%s", right[0], bb_sharing_name(s, i), right[1]);
  }
  for (uint32_t k = 0; k < n; k++)
    if (needed[k])
      bb_cuda_line(s->e, "const float next_%s = %s;", bb_sharing_name(s, k),
                   bb_cuda_index(s->e, s->monoid->combine[k], text));
  for (uint32_t k = 0; k < n; k++)
    if (needed[k]) bb_cuda_line(s->e, "%s = next_%s;", text[k], bb_sharing_name(s, k));
}

void bb_sharing_put_tree(const bb_sharing *s, const bool *needed, uint32_t parts,
                         const char *there) {
  static const char *const left[2] = {"part_", "[round][i]"};
  static const char *const right[2] = {"part_", "[round][i + step]"};
  bb_cuda_line(s->e, "TL_UNROLL for (int step = 1; step < %u; step *= 2)", parts);
  bb_cuda_line(s->e, "  TL_UNROLL for (int i = 0; i + step < %u; i += 2 * step) {", parts);
  s->e->depth += 2;
  if (there) bb_cuda_line(s->e, "if (%s + step >= blocks) continue;", there);
  bb_sharing_put_combine(s, needed, left, right);
  s->e->depth -= 2;
  bb_cuda_line(s->e, "  }");
}

void bb_sharing_put_parts(const bb_sharing *s, const bool *needed, uint32_t rounds,
                          uint32_t parts) {
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (needed[k])
      bb_cuda_line(s->e, "float part_%s[%u][%u];", bb_sharing_name(s, k), rounds, parts);
}

void bb_sharing_begin_rounds(bb_cuda *e, bb_sharing_rounds *r) {
  r->out = e->out;
  r->code = (bb_buffer){.arena = e->arena};
  e->out = &r->code;
  e->depth++;
}

void bb_sharing_end_rounds(bb_cuda *e, bb_sharing_rounds *r) {
  e->depth--;
  e->out = r->out;
  bb_cuda_line(e, "TL_UNROLL for (int round = 0; round < %u; round++) {", r->count);
  bb_code_declare(&r->code, "e", e->depth + 1, "const int e = %s;", r->element);
  bb_put_bytes(e->out, r->code.data, r->code.length);
  bb_cuda_line(e, "}");
}

/* --- what follows, at one element --- */

/* What is looked at by statements that are not done gets a name, and what they make. */
static void put_names(const bb_sharing *s, bb_sharing_known *known, bb_sharing_done *done) {
  bb_cuda *e = s->e;
  bool *named = BB_NEW(e->arena, bool, e->p->tiles + 1);
  for (uint32_t i = 0; i < s->list->count; i++) {
    const bb_tile_stmt *stmt = s->list->stmt[i];
    if (done && done(s, stmt)) continue;
    for (uint32_t k = 0; k < stmt->operands; k++) {
      uint32_t tile = stmt->operand[k];
      const char *value = known(s, tile);
      if (!value || named[tile]) continue;
      bb_cuda_line(e, "%s one_%s = %s;", bb_cuda_value_type(&e->p->tile[tile]), e->tile[tile].name,
                   value);
      named[tile] = true;
    }
    if (stmt->result == BB_NONE || named[stmt->result]) continue;
    bb_cuda_line(e, "%s one_%s;", bb_cuda_value_type(&e->p->tile[stmt->result]),
                 e->tile[stmt->result].name);
    named[stmt->result] = true;
  }
}

void bb_sharing_put_following(const bb_sharing *s, bb_sharing_known *known, bb_sharing_done *done) {
  bb_cuda *e = s->e;
  put_names(s, known, done);
  e->single = e->tile[s->of].ct;
  for (uint32_t i = 0; i < s->list->count; i++)
    if (!done || !done(s, s->list->stmt[i])) bb_cuda_stmt(e, s->list->stmt[i]);
  e->single = 0;
}

bool bb_sharing_is_component(const bb_sharing *s, uint32_t tile) {
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (s->merged[k] == tile) return true;
  return false;
}

/* --- from the warps of a block --- */

/* Elements e below `count` that this warp takes, beginning with warp `first`. */
static bb_sharing_rounds of_warp(bb_cuda *e, uint32_t count, uint32_t first) {
  uint32_t warps = e->warp_count;
  const char *mine =
      first ? bb_arena_printf(e->arena, "(my_warp + %u) %% %u", warps - first, warps) : "my_warp";
  return (bb_sharing_rounds){(count + warps - 1) / warps,
                             bb_arena_printf(e->arena, "round * %u + %s", warps, mine),
                             NULL,
                             {0}};
}

/* Of rounds that have no element some end at once. */
static void begin_elements(bb_cuda *e, bb_sharing_rounds *r, uint32_t count, uint32_t workers) {
  bb_sharing_begin_rounds(e, r);
  if (count % workers) bb_cuda_line(e, "if (e >= %u) continue;", count);
}

/* Begins the same loop where what the warps left there is combined: part_X[round][0].  All loads come first: what is
 * written may lie where they read, for all that a compiler knows, and values that elements share are combined once. */
static void begin_warps(const bb_sharing *s, const bool *needed, uint32_t of, uint32_t first,
                        bb_sharing_rounds *rounds) {
  bb_cuda *e = s->e;
  uint32_t count = e->tile[of].registers, warps = e->warp_count;
  bb_sharing_rounds load = of_warp(e, count, first);
  *rounds = load;
  bb_sharing_put_parts(s, needed, load.count, warps);
  begin_elements(e, &load, count, warps);
  bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++) {", warps);
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (needed[k])
      bb_cuda_line(e, "  part_%s[round][i] = parts[(i * %u + %u + %s) * %u + %s];",
                   bb_sharing_name(s, k), s->count, s->offset[k],
                   bb_sharing_value(s, s->merged[k], of), s->lanes, s->lane);
  bb_cuda_line(e, "}");
  bb_sharing_end_rounds(e, &load);
  begin_elements(e, rounds, count, warps);
  bb_sharing_put_tree(s, needed, warps, NULL);
}

void bb_sharing_put_warps(const bb_sharing *s, bb_sharing_part *begin, bb_sharing_part *take) {
  bb_cuda *e = s->e;
  uint32_t first = 0;
  for (uint32_t k = 0; k < s->monoid->components; k++) {
    bool needed[BB_TILE_OPERANDS] = {false};
    uint32_t count = e->tile[s->merged[k]].registers;
    bb_sharing_rounds rounds;
    need(s, k, needed);
    bb_cuda_line(e, "{");
    e->depth++;
    if (begin) begin(s, k);
    begin_warps(s, needed, s->merged[k], first, &rounds);
    take(s, k);
    bb_sharing_end_rounds(e, &rounds);
    e->depth--;
    bb_cuda_line(e, "}");
    first = (first + count) % e->warp_count;
  }
}

static const char *known_of_warps(const bb_sharing *s, uint32_t tile) {
  if (!bb_sharing_is_component(s, tile)) return NULL;
  return bb_arena_printf(s->e->arena, "part_%s[round][0]", s->e->tile[tile].name);
}

/* The result from what the warps left, within this block. */
static void put_from_warps(const bb_sharing *s) {
  bb_sharing_rounds rounds;
  begin_warps(s, s->needed, s->of, 0, &rounds);
  bb_sharing_put_following(s, known_of_warps, NULL);
  bb_sharing_end_rounds(s->e, &rounds);
}

/* --- from the blocks of the grid --- */

/* Among how many the elements of a block are shared: warps, or all threads as one. */
static uint32_t workers(const bb_cuda *e) {
  return e->warps ? e->warp_count : 1;
}

/* All elements, those of this worker. */
static bb_sharing_rounds of_worker(const bb_sharing *s) {
  uint32_t count = s->e->tile[s->of].registers;
  if (s->e->warps) return of_warp(s->e, count, 0);
  return (bb_sharing_rounds){count, "round", NULL, {0}};
}

/* What `blocks` blocks left, combined, at this worker's elements: all_X[round].  All of a batch's loads are under way
 * together. */
static void put_blocks(const bb_sharing *s) {
  static const char *const all[2] = {"all_", "[round]"}, *const part[2] = {"part_", "[round][0]"};
  bb_cuda *e = s->e;
  bb_sharing_rounds load = of_worker(s), combine = load;
  uint32_t count = e->tile[s->of].registers;
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (s->needed[k]) bb_cuda_line(e, "float all_%s[%u];", bb_sharing_name(s, k), load.count);
  bb_cuda_line(e, "for (int first = 0; first < blocks; first += %u) {", BATCH);
  e->depth++;
  bb_cuda_line(e, "fetch(first);");
  bb_sharing_put_parts(s, s->needed, load.count, BATCH);
  begin_elements(e, &load, count, workers(e));
  bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++) {", BATCH);
  bb_cuda_line(e, "  if (first + i >= blocks) continue;");
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (s->needed[k])
      bb_cuda_line(e, "  part_%s[round][i] = parts[i * %u + (%u + %s) * %u + %s];",
                   bb_sharing_name(s, k), s->count * s->lanes, s->offset[k],
                   bb_sharing_value(s, s->merged[k], s->of), s->lanes, s->lane);
  bb_cuda_line(e, "}");
  bb_sharing_end_rounds(e, &load);
  begin_elements(e, &combine, count, workers(e));
  bb_sharing_put_tree(s, s->needed, BATCH, "first + i");
  bb_cuda_line(e, "if (first > 0) {");
  e->depth++;
  bb_sharing_put_combine(s, s->needed, all, part);
  e->depth--;
  bb_cuda_line(e, "} else {");
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (s->needed[k])
      bb_cuda_line(e, "  all_%s[round] = part_%s[round][0];", bb_sharing_name(s, k),
                   bb_sharing_name(s, k));
  bb_cuda_line(e, "}");
  bb_sharing_end_rounds(e, &combine);
  e->depth--;
  bb_cuda_line(e, "}");
}

/* whole[], the block's: every value by one warp. */
static void put_whole(const bb_sharing *s, uint32_t k) {
  bb_cuda_line(s->e, "whole[(%u + e) * %u + %s] = part_%s[round][0];", s->offset[k], s->lanes,
               s->lane, bb_sharing_name(s, k));
}

static const char *known_of_all(const bb_sharing *s, uint32_t tile) {
  if (!bb_sharing_is_component(s, tile)) return NULL;
  return bb_arena_printf(s->e->arena, "all_%s[round]", s->e->tile[tile].name);
}

/* The last to come takes all elements. */
static void put_last(const bb_sharing *s, const char *sync) {
  bb_cuda *e = s->e;
  const char *thread = e->copier ? "my_thread" : "threadIdx.x";
  bb_sharing_rounds rounds = of_worker(s);
  uint32_t count = e->tile[s->of].registers;
  bb_cuda_line(e, "tl::fence_device();");
  bb_cuda_line(e, "%s", sync);
  bb_cuda_line(e, "if (%s == 0) sync.last = tl::is_last(p.done + blockIdx.x / blocks, blocks);",
               thread);
  bb_cuda_line(e, "%s", sync);
  bb_cuda_line(e, "if (sync.last) {");
  e->depth++;
  bb_cuda_line(e, "tl::fence_device();");
  bb_cuda_line(e, "auto fetch = [&](int first) { // what some blocks left, all at once");
  bb_cuda_line(e, "  %s", sync);
  bb_cuda_line(
      e,
      "  tl::fetch<%u>(parts, p.parts + (long long)(blockIdx.x / blocks * blocks + first) * %u, "
      "min(blocks - first, %u) * %u, %s);",
      32 * e->warp_count, s->count * s->lanes, BATCH, s->count * s->lanes, thread);
  bb_cuda_line(e, "  %s", sync);
  bb_cuda_line(e, "};");
  put_blocks(s);
  begin_elements(e, &rounds, count, workers(e));
  bb_sharing_put_following(s, known_of_all, NULL);
  bb_sharing_end_rounds(e, &rounds);
  e->depth--;
  bb_cuda_line(e, "}");
}

/* --- all together --- */

static bool is_of_vectors(const bb_sharing *s, const bb_tile_stmt *stmt) {
  return stmt->result != BB_NONE && !bb_tile_is_block(&s->e->p->tile[stmt->result]);
}

/* Merged tiles are whole, and so is what is made of vectors alone. */
static const char *known_alone(const bb_sharing *s, uint32_t tile) {
  if (!bb_sharing_is_component(s, tile) && bb_tile_is_block(&s->e->p->tile[tile])) return NULL;
  return bb_arena_printf(s->e->arena, "%s[%s]", s->e->tile[tile].name,
                         bb_sharing_value(s, tile, s->of));
}

/* This block has the result already: what follows, of vectors first, which elements have in common. */
static void put_alone(const bb_sharing *s) {
  bb_cuda *e = s->e;
  for (uint32_t i = 0; i < s->list->count; i++) {
    const bb_tile_stmt *stmt = s->list->stmt[i];
    if (!is_of_vectors(s, stmt)) continue;
    bool declared = bb_sharing_is_component(s, stmt->result);
    for (uint32_t k = 0; k < i; k++) declared |= s->list->stmt[k]->result == stmt->result;
    if (!declared)
      bb_cuda_line(e, "float %s[%u];", e->tile[stmt->result].name, e->tile[stmt->result].registers);
    bb_cuda_stmt(e, stmt);
  }
  bb_sharing_rounds rounds = {e->tile[s->of].registers, "round", NULL, {0}};
  bb_sharing_begin_rounds(e, &rounds);
  bb_sharing_put_following(s, known_alone, is_of_vectors);
  bb_sharing_end_rounds(e, &rounds);
}

/* Parts of the grid or of a cluster, from what each block has. */
static void put_between(const bb_sharing *s, const char *sync) {
  bb_cuda *e = s->e;
  if (e->cluster) {
    bb_cuda_push(s);
    return;
  }
  bb_cuda_line(e, "float *const whole = p.parts + (long long)blockIdx.x * %u;",
               s->count * s->lanes);
  if (e->warps)
    bb_sharing_put_warps(s, NULL, put_whole);
  else
    put_leave(s, "whole");
  put_last(s, sync);
}

void bb_cuda_share(bb_cuda *e) {
  const bb_sharing s = bb_sharing_begin(e);
  const char *sync = e->copier
                         ? bb_arena_printf(e->arena, "tl::named_sync(7, %u);", 32 * e->warp_count)
                         : "__syncthreads();";
  bool between = e->split || e->cluster;
  bb_cuda_line(e, "{ // merge %s; each takes some elements of the result", s.monoid->name);
  e->depth++;
  bb_cuda_put_write(e);
  if (e->split)
    bb_cuda_line(e, "const int blocks = %s;", bb_cuda_trips(e, e->split, e->variable));
  else if (e->cluster)
    bb_cuda_line(e, "const int blocks = tl::cluster_size(), rank = tl::cluster_rank();");
  if (e->cluster) {
    if (!e->beside_tiles)
      bb_cuda_line(e, "tl::cluster_arrive(); // what lay where parts come was read");
    bb_cuda_line(e, "tl::cluster_wait();");
  }
  if (e->warps || e->split) {
    bb_cuda_line(e, "%s", sync);
    bb_cuda_line(e, "float *const parts = (float *)tile_memory;");
  }
  if (e->warps) {
    bb_cuda_line(e, "float *const mine = parts + my_warp * %u;", s.count * s.lanes);
    put_leave(&s, "mine");
    bb_cuda_line(e, "%s", sync);
  }
  if (between) {
    bb_cuda_line(e, "if (blocks == 1) {");
    e->depth++;
  }
  if (e->warps)
    put_from_warps(&s);
  else
    put_alone(&s);
  if (between) {
    e->depth--;
    bb_cuda_line(e, "} else {");
    e->depth++;
    put_between(&s, sync);
    e->depth--;
    bb_cuda_line(e, "}");
  }
  if (!between && e->grids && e->grid[0]->persistent) { /* copies write there again */
    bb_cuda_line(e, "tl::fence_copies();");
    bb_cuda_line(e, "%s", sync);
  }
  e->depth--;
  bb_cuda_line(e, "}");
}
