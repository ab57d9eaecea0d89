/* emit_sm90_push.c - parts of a tuple that the blocks of a cluster have, pushed into each other's memory.
 *
 * Elements are dealt to the blocks, a hand of a few at a time, and each block sends what it has of an element to the
 * one that combines it, with the vectors beside the elements.  What is sent counts at a barrier of the receiver, as
 * bytes of a copy do: nobody waits for more than that, and who has sent its parts and combines none may end.  A barrier
 * of the whole cluster before it asks only whether all have begun; or, where the parts find no room beside the tiles,
 * whether all have read theirs.
 *
 * In the code that is written, `vectors` has room for those of every block, and `hands` for a hand of every block, then
 * for the next hand of every block.
 */
#include "emit_sm90_share.h"
#include "infix.h"
#include "tile_edit.h"

enum { MOST_BLOCKS = 16 }; /* of a cluster where no number is said */

bool bb_cuda_pushes(const bb_cuda *e) {
  return e->cluster && !e->split && bb_cuda_is_shared(e);
}

/* Blocks there are at most. */
static uint32_t most_blocks(const bb_cuda *e) {
  bb_tile_index to = e->cluster->stretch[0].to;
  for (uint32_t i = 0; to->op == BB_X_MIN && i < 2; i++)
    if (to->a[i]->op == BB_X_CONST) to = to->a[i];
  return to->op == BB_X_CONST && to->number < MOST_BLOCKS ? (uint32_t)to->number : MOST_BLOCKS;
}

/* Elements that are dealt together: one for each warp, or four of a thread, which are sent as one. */
static uint32_t hand(const bb_cuda *e) {
  return e->warps ? e->warp_count : 4;
}

static uint32_t registers_of(const bb_sharing *s, uint32_t component) {
  return s->e->tile[s->merged[component]].registers;
}

static uint32_t elements(const bb_sharing *s) {
  return s->e->tile[s->of].registers;
}

static uint32_t hands(const bb_sharing *s) {
  return (elements(s) + hand(s->e) - 1) / hand(s->e);
}

/* Values of an element that are sent. */
static uint32_t blocks_sent(const bb_sharing *s) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < s->monoid->components; k++)
    count += s->needed[k] && bb_sharing_is_block(s, k);
  return count;
}

/* How long a vector is, of which many threads have the same values: one of them sends each. */
static uint32_t length_of(const bb_sharing *s, uint32_t component) {
  const bb_tile *t = &s->e->p->tile[s->merged[component]];
  return t->rows ? t->rows : t->cols ? t->cols : 1;
}

static uint32_t vectors_sent(const bb_sharing *s) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (s->needed[k] && !bb_sharing_is_block(s, k)) count += length_of(s, k);
  return count;
}

/* As many values, and what makes fours of them. */
static uint32_t vectors_room(const bb_sharing *s) {
  return (vectors_sent(s) + 3) & ~3u;
}

/* --- room --- */

/* Values of an element of all threads, of all that are sent. */
static uint32_t hand_values(const bb_sharing *s) {
  return blocks_sent(s) * hand(s->e) * s->lanes;
}

/* Bytes that a block receives, of as many blocks as take most. */
static uint32_t room(const bb_sharing *s) {
  uint32_t most = 0;
  for (uint32_t blocks = 2; blocks <= most_blocks(s->e); blocks++) {
    uint32_t share = (hands(s) + blocks - 1) / blocks;
    if (most < share * blocks) most = share * blocks;
  }
  return 4 * (most * hand_values(s) + most_blocks(s->e) * vectors_room(s));
}

void bb_cuda_place_inbox(bb_cuda *e) {
  if (!bb_cuda_pushes(e)) return;
  const bb_sharing s = bb_sharing_begin(e);
  uint32_t bytes = (room(&s) + 1023) & ~1023u;
  uint32_t most = e->shared + e->sync <= BB_CUDA_HALF_SHARED ? BB_CUDA_HALF_SHARED : e->most_shared;
  e->beside_tiles = e->shared + bytes + e->sync <= most;
  /* or where tiles were, behind what the warps leave there */
  e->inbox = e->beside_tiles ? e->shared : e->warps ? e->warp_count * bb_cuda_part_bytes(e) : 0;
  if (e->shared < e->inbox + bytes) e->shared = (e->inbox + bytes + 1023) & ~1023u;
}

/* The phase does not end before this was said, whatever has come. */
void bb_cuda_expect_parts(bb_cuda *e) {
  const bb_sharing s = bb_sharing_begin(e);
  bb_cuda_line(e, "if (%s == 0) {", e->warps ? "threadIdx.x" : "my_thread");
  bb_cuda_line(e, "  const int blocks = tl::cluster_size();");
  bb_cuda_line(e,
               "  const int mine = blocks > 1 ? tl::dealt(%u, %u, tl::cluster_rank(), blocks) : 0;",
               elements(&s), hand(e));
  bb_cuda_line(e, "  tl::barrier_expect(&sync.parts, mine ? 4 * blocks * (%s) : 0);",
               bb_infix(e->arena, bb_arena_printf(e->arena, "%u * mine", blocks_sent(&s) * s.lanes),
                        "+", bb_arena_printf(e->arena, "%u", vectors_sent(&s))));
  bb_cuda_line(e, "}");
}

/* --- sending --- */

/* Where in a hand a value of component k is; `at`: which of its elements, of all threads. */
static const char *element_at(const bb_sharing *s, uint32_t k, const char *at, const char *thread) {
  bb_arena *arena = s->e->arena;
  uint32_t before = 0;
  for (uint32_t i = 0; i < k; i++) before += s->needed[i] && bb_sharing_is_block(s, i);
  const char *first = bb_arena_printf(arena, "%u", before * hand(s->e));
  const char *lanes = bb_arena_printf(arena, "%u", s->lanes);
  return bb_infix(arena, bb_infix(arena, bb_infix(arena, first, "+", at), "*", lanes), "+", thread);
}

/* Where among a block's vectors element `at` of component k is. */
static const char *vector_at(const bb_sharing *s, uint32_t k, const char *at) {
  uint32_t before = 0;
  for (uint32_t i = 0; i < k; i++)
    if (s->needed[i] && !bb_sharing_is_block(s, i)) before += length_of(s, i);
  return bb_infix(s->e->arena, bb_arena_printf(s->e->arena, "%u", before), "+", at);
}

/* Value e of vector k, by the one of the threads that have it that sends it. */
static void push_value(const bb_sharing *s, uint32_t k, const char *value) {
  const bb_tile *t = &s->e->p->tile[s->merged[k]];
  const char *one = t->rows   ? "(tl::lane() & 3) == 0"
                    : t->cols ? "my_rows == 0 && tl::lane() < 4"
                              : "my_rows == 0 && tl::lane() == 0";
  const char *at = t->rows ? "my_row + 8 * e" : t->cols ? "my_col + 4 * e - 3 * (e & 1)" : "0";
  bb_cuda_line(s->e, "if (%s) tl::push(my_vectors + %s, %s, &sync.parts, there);", one,
               vector_at(s, k, at), value);
}

static void open_receivers(const bb_sharing *s) {
  bb_cuda_line(s->e, "for (int to = 0; to < min(blocks, %u); to++) {", hands(s));
  s->e->depth++;
  bb_cuda_line(s->e, "const tl::u32 there = tl::away(hands, to);");
}

static void close(const bb_sharing *s) {
  s->e->depth--;
  bb_cuda_line(s->e, "}");
}

/* The hand at hand is another block's from here on. */
static void put_next_hand(const bb_sharing *s) {
  bb_cuda_line(s->e, "if (++to == blocks) to = 0, my_hand += blocks * %u;", hand_values(s));
}

/* What the warps left of value e of component k is combined; hands are gone through in order. */
static void push_of_warps(const bb_sharing *s, uint32_t k) {
  bb_arena *arena = s->e->arena;
  const char *value = bb_arena_printf(arena, "part_%s[round][0]", bb_sharing_name(s, k));
  const char *at = bb_arena_printf(arena, "e %% %u", hand(s->e));
  if (!s->needed[k]) return;
  if (bb_sharing_is_block(s, k)) {
    bb_cuda_line(s->e, "tl::push(my_hand + %s, %s, &sync.parts, tl::away(hands, to));",
                 element_at(s, k, at, s->lane), value);
    put_next_hand(s);
  } else {
    open_receivers(s);
    push_value(s, k, value);
    close(s);
  }
}

static void begin_hands(const bb_sharing *s, uint32_t k) {
  if (s->needed[k] && bb_sharing_is_block(s, k))
    bb_cuda_line(s->e, "int to = 0; float *my_hand = hands + rank * %u;", hand_values(s));
}

/* Fours of a thread lie side by side. */
static void push_of_threads(const bb_sharing *s) {
  bb_cuda *e = s->e;
  const char *thread = bb_infix(e->arena, "4", "*", s->lane);
  bb_cuda_line(e, "float *my_hand = hands + rank * %u;", hand_values(s));
  bb_cuda_line(e, "int to = 0;");
  bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++) {", hands(s));
  e->depth++;
  bb_cuda_line(e, "const tl::u32 there = tl::away(hands, to);");
  for (uint32_t k = 0; k < s->monoid->components; k++) {
    const char *name = bb_sharing_name(s, k);
    if (s->needed[k] && bb_sharing_is_block(s, k))
      bb_cuda_line(e,
                   "tl::push(my_hand + %s, %s[4 * i], %s[4 * i + 1], %s[4 * i + 2], %s[4 * i + 3], "
                   "&sync.parts, there);",
                   element_at(s, k, "0", thread), name, name, name, name);
  }
  put_next_hand(s);
  close(s);
  if (!vectors_sent(s)) return;
  open_receivers(s);
  for (uint32_t k = 0; k < s->monoid->components; k++) {
    if (!s->needed[k] || bb_sharing_is_block(s, k)) continue;
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++)", registers_of(s, k));
    e->depth++;
    push_value(s, k, bb_arena_printf(e->arena, "%s[e]", bb_sharing_name(s, k)));
    e->depth--;
  }
  close(s);
}

/* --- combining --- */

/* Values that a thread has of a tile among a hand's elements: one of its warp's element, or of its four elements those
 * of two rows and two columns. */
static uint32_t rounds_of(const bb_sharing *s, uint32_t tile) {
  const bb_tile *t = &s->e->p->tile[tile];
  if (s->e->warps) return 1;
  return t->rows && t->cols ? 4 : t->rows || t->cols ? 2 : 1;
}

/* One of the elements that the value of this round belongs to, as text. */
static const char *element_of_round(const bb_sharing *s, uint32_t tile) {
  const bb_tile *t = &s->e->p->tile[tile];
  if (rounds_of(s, tile) == 1) return "start";
  return t->rows && !t->cols ? "start + 2 * round" : "start + round";
}

/* Which value belongs to element start + round. */
static const char *round_of_element(const bb_sharing *s, uint32_t tile) {
  const bb_tile *t = &s->e->p->tile[tile];
  if (rounds_of(s, tile) == 1) return "0";
  return t->rows && t->cols ? "round" : t->rows ? "round >> 1" : "round & 1";
}

static bb_sharing_rounds rounds_over(const bb_sharing *s, uint32_t tile) {
  return (bb_sharing_rounds){rounds_of(s, tile), element_of_round(s, tile), NULL, {0}};
}

/* Does combining each component look at that one alone?  Vectors are then combined once for all elements. */
static bool is_apart(const bb_sharing *s) {
  uint32_t n = s->monoid->components;
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t i = 0; i < n; i++)
      if (i != k && (bb_expr_uses_arg(s->monoid->combine[k], i) ||
                     bb_expr_uses_arg(s->monoid->combine[k], n + i)))
        return false;
  return true;
}

/* The tile by whose values component k is combined. */
static uint32_t by_tile(const bb_sharing *s, uint32_t k) {
  return is_apart(s) ? s->merged[k] : s->of;
}

/* What is combined, loaded or made of vectors is known before the elements are gone through: but nothing overtakes what it
 * reads or writes again, or what reads it. */
static bool is_made_before(const bb_sharing *s, const bb_tile_stmt *stmt) {
  if (stmt->kind == BB_TILE_LOAD) return true;
  if (stmt->kind != BB_TILE_MAP || rounds_of(s, stmt->result) >= rounds_of(s, s->of)) return false;
  if (bb_sharing_is_component(s, stmt->result) && !is_apart(s)) return false;
  for (uint32_t i = 0; s->list->stmt[i] != stmt; i++) {
    const bb_tile_stmt *other = s->list->stmt[i];
    bool meets = other->result == stmt->result || bb_tile_reads(other, stmt->result) ||
                 (other->result != BB_NONE && bb_tile_reads(stmt, other->result));
    if (meets && !is_made_before(s, other)) return false;
  }
  return true;
}

static const char *known_of_element(const bb_sharing *s, uint32_t tile) {
  bool component = bb_sharing_is_component(s, tile), known = component;
  for (uint32_t i = 0; i < s->list->count; i++)
    known |= s->list->stmt[i]->result == tile && is_made_before(s, s->list->stmt[i]);
  if (!known) return NULL;
  return bb_arena_printf(s->e->arena, "all_%s[%s]", s->e->tile[tile].name,
                         round_of_element(s, component && !is_apart(s) ? s->of : tile));
}

/* all_X of what a statement makes that is made before: of a load, or of vectors. */
static void put_before(const bb_sharing *s, const bb_tile_stmt *stmt) {
  bb_cuda *e = s->e;
  const char *name = e->tile[stmt->result].name;
  bool declared = bb_sharing_is_component(s, stmt->result), named = false;
  for (uint32_t i = 0; s->list->stmt[i] != stmt; i++)
    declared |= s->list->stmt[i]->result == stmt->result;
  if (!declared) bb_cuda_line(e, "float all_%s[%u];", name, rounds_of(s, stmt->result));
  bb_sharing_rounds rounds = rounds_over(s, stmt->result);
  bb_sharing_begin_rounds(e, &rounds);
  for (uint32_t i = 0; i < stmt->operands; i++) {
    uint32_t tile = stmt->operand[i];
    bool again = false;
    for (uint32_t k = 0; k < i; k++) again |= stmt->operand[k] == tile;
    bool whole = bb_sharing_is_component(s, tile) && !is_apart(s);
    const char *round = rounds_of(s, whole ? s->of : tile) == 1  ? "0"
                        : whole && e->p->tile[stmt->result].rows ? "2 * round"
                                                                 : "round";
    if (again) continue;
    bb_cuda_line(e, "float one_%s = all_%s[%s];", e->tile[tile].name, e->tile[tile].name, round);
    named |= tile == stmt->result;
  }
  if (!named) bb_cuda_line(e, "float one_%s;", name);
  e->single = e->tile[s->of].ct;
  bb_cuda_stmt(e, stmt);
  e->single = 0;
  bb_cuda_line(e, "all_%s[round] = one_%s;", name, name);
  bb_sharing_end_rounds(e, &rounds);
}

/* Where in vector k that is which belongs to element e. */
static const char *place_in(const bb_sharing *s, uint32_t k) {
  const bb_tile *t = &s->e->p->tile[s->merged[k]];
  uint32_t ct = s->e->tile[s->of].ct;
  if (t->rows) return bb_arena_printf(s->e->arena, "my_row + 8 * tl::row_of<%u>(e)", ct);
  return t->cols ? bb_arena_printf(s->e->arena, "my_col + tl::col_at<%u>(e)", ct) : "0";
}

/* part_X[round] of block i. */
static void put_received(const bb_sharing *s) {
  static const char *const member[] = {"x", "y", "z", "w"};
  bb_cuda *e = s->e;
  for (uint32_t k = 0; k < s->monoid->components; k++) {
    const char *name = bb_sharing_name(s, k);
    if (!s->needed[k]) continue;
    bb_cuda_line(e, "float part_%s[%u];", name, rounds_of(s, by_tile(s, k)));
    if (!bb_sharing_is_block(s, k)) {
      bb_sharing_rounds rounds = rounds_over(s, by_tile(s, k));
      bb_sharing_begin_rounds(e, &rounds);
      bb_cuda_line(e, "part_%s[round] = vectors[i * %u + %s];", name, vectors_room(s),
                   vector_at(s, k, place_in(s, k)));
      bb_sharing_end_rounds(e, &rounds);
    } else if (e->warps) {
      bb_cuda_line(e, "part_%s[0] = from[%s];", name, element_at(s, k, "my_warp", s->lane));
    } else {
      bb_cuda_line(e, "const float4 four_%s = *(const float4 *)(from + %s);", name,
                   element_at(s, k, "0", bb_infix(e->arena, "4", "*", s->lane)));
      for (uint32_t r = 0; r < 4; r++)
        bb_cuda_line(e, "part_%s[%u] = four_%s.%s;", name, r, name, member[r]);
    }
  }
}

/* all_X[round] and part_X[round], combined, of components `which`, by the values of a tile. */
static void put_both(const bb_sharing *s, const bool *which, uint32_t tile) {
  static const char *const all[2] = {"all_", "[round]"}, *const part[2] = {"part_", "[round]"};
  bb_sharing_rounds rounds = rounds_over(s, tile);
  bb_sharing_begin_rounds(s->e, &rounds);
  bb_sharing_put_combine(s, which, all, part);
  bb_sharing_end_rounds(s->e, &rounds);
}

/* all_X of all blocks' parts, one after the other.  Code that runs once takes longer to fetch than a loop to go round;
 * but where parts are scaled before they are added, that of a few at a time is done together. */
static void put_combined(const bb_sharing *s) {
  bb_cuda *e = s->e;
  bool one[BB_TILE_OPERANDS] = {false};
  for (uint32_t k = 0; k < s->monoid->components; k++) {
    uint32_t rounds = s->needed[k] ? rounds_of(s, by_tile(s, k)) : 0;
    const bb_expr *empty = bb_expr_const(e->p->home, BB_F32, s->monoid->empty[k]);
    if (!rounds) continue;
    bb_cuda_line(e, "float all_%s[%u];", bb_sharing_name(s, k), rounds);
    bb_cuda_line(e, "TL_UNROLL for (int round = 0; round < %u; round++) all_%s[round] = %s;",
                 rounds, bb_sharing_name(s, k), bb_cuda_index(e, empty, NULL));
  }
  bb_cuda_line(e, "%s for (int i = 0; i < blocks; i++, from += %u) {",
               is_apart(s) ? "TL_ROLLED" : "TL_UNROLL_FOURS", hand_values(s));
  e->depth++;
  put_received(s);
  if (!is_apart(s)) put_both(s, s->needed, s->of);
  for (uint32_t k = 0; is_apart(s) && k < s->monoid->components; k++) {
    if (!s->needed[k]) continue;
    one[k] = true;
    put_both(s, one, s->merged[k]);
    one[k] = false;
  }
  close(s);
}

void bb_cuda_push(const bb_sharing *s) {
  bb_cuda *e = s->e;
  uint32_t each = hand(e);
  if (vectors_sent(s)) {
    bb_cuda_line(e, "float *const vectors = (float *)(tile_memory + %u);", e->inbox);
    bb_cuda_line(e, "float *const my_vectors = vectors + rank * %u;", vectors_room(s));
  }
  bb_cuda_line(e,
               "float *const hands = (float *)(tile_memory + %u); // of %u elements of a thread%s",
               e->inbox + 4 * most_blocks(e) * vectors_room(s), e->warps ? 1 : each,
               e->warps ? " of each warp" : "");
  if (e->warps)
    bb_sharing_put_warps(s, begin_hands, push_of_warps);
  else
    push_of_threads(s);
  bb_cuda_line(e, "const float *from = hands;");
  bb_cuda_line(e, "for (int start = rank * %u%s; start < %u; start += blocks * %u) {", each,
               e->warps ? " + my_warp" : "", elements(s), each);
  e->depth++;
  for (uint32_t i = 0; i < s->list->count; i++) /* asked for before the parts are waited for */
    if (s->list->stmt[i]->kind == BB_TILE_LOAD) put_before(s, s->list->stmt[i]);
  bb_cuda_line(e, "tl::barrier_wait_cluster(&sync.parts, 0);");
  put_combined(s);
  for (uint32_t i = 0; i < s->list->count; i++)
    if (s->list->stmt[i]->kind == BB_TILE_MAP && is_made_before(s, s->list->stmt[i]))
      put_before(s, s->list->stmt[i]);
  bb_sharing_rounds rounds = rounds_over(s, s->of);
  bb_sharing_begin_rounds(e, &rounds);
  bb_sharing_put_following(s, known_of_element, is_made_before);
  bb_sharing_end_rounds(e, &rounds);
  close(s);
}
