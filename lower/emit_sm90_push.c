/* emit_sm90_push.c - parts of a tuple that the blocks of a cluster have, pushed into each other's memory.
 *
 * Elements are dealt to the blocks, a few at a time, and each block sends what it has of an element to the one that combines it, with
 * the vectors beside the elements.  What is sent counts at a barrier of the receiver, as bytes of a copy do: nobody waits for more
 * than that, and who has sent its parts and combines none may end.  A barrier of the whole cluster before it asks only whether all have begun;
 * or, where the parts find no room beside the tiles, whether all have read theirs.
 */
#include "emit_sm90_share.h"
#include "infix.h"

/* Values of a thread that are combined at once; blocks of a cluster where no number is said; of two blocks on a processor. */
enum { AT_ONCE = 64, MOST_BLOCKS = 16, HALF_SHARED = 113 * 1024 };

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

/* Bytes that a block receives, of as many blocks as take most. */
static uint32_t room(const bb_sharing *s) {
  uint32_t most = 0;
  for (uint32_t blocks = 2; blocks <= most_blocks(s->e); blocks++) {
    uint32_t share = (hands(s) + blocks - 1) / blocks;
    uint32_t part = share * hand(s->e) * blocks_sent(s) * s->lanes + vectors_room(s);
    if (most < 4 * blocks * part) most = 4 * blocks * part;
  }
  return most;
}

void bb_cuda_place_inbox(bb_cuda *e) {
  if (!bb_cuda_pushes(e)) return;
  const bb_sharing s = bb_sharing_begin(e);
  uint32_t bytes = (room(&s) + 1023) & ~1023u;
  uint32_t most = e->shared + e->sync <= HALF_SHARED ? HALF_SHARED : e->most_shared;
  e->beside_tiles = e->shared + bytes + e->sync <= most;
  /* or where tiles were, behind what the warps leave there */
  e->inbox = e->beside_tiles ? e->shared : e->warps ? e->warp_count * bb_cuda_part_bytes(e) : 0;
  if (e->shared < e->inbox + bytes) e->shared = (e->inbox + bytes + 1023) & ~1023u;
}

void bb_cuda_init_inbox(bb_cuda *e) {
  const bb_sharing s = bb_sharing_begin(e);
  bb_cuda_line(e, "const int blocks = tl::cluster_size();");
  bb_cuda_line(e,
               "const int mine = blocks > 1 ? tl::dealt(%u, %u, tl::cluster_rank(), blocks) : 0;",
               elements(&s), hand(e));
  bb_cuda_line(e, "tl::barrier_expect(&sync.parts, mine ? 4 * blocks * (%s) : 0);",
               bb_infix(e->arena, bb_arena_printf(e->arena, "%u * mine", blocks_sent(&s) * s.lanes),
                        "+", bb_arena_printf(e->arena, "%u", vectors_sent(&s))));
}

/* --- sending --- */

/* Where a value of a block's component k is in a part; `at`: in which of the hands' elements, of all threads. */
static const char *element_at(const bb_sharing *s, uint32_t k, const char *at, const char *thread) {
  bb_arena *arena = s->e->arena;
  uint32_t before = 0;
  for (uint32_t i = 0; i < k; i++) before += s->needed[i] && bb_sharing_is_block(s, i);
  const char *first =
      bb_infix(arena, bb_arena_printf(arena, "%u", before * hand(s->e)), "*", "share");
  const char *lanes = bb_arena_printf(arena, "%u", s->lanes);
  return bb_infix(arena, bb_infix(arena, bb_infix(arena, first, "+", at), "*", lanes), "+", thread);
}

/* Where element `at` of vector k is. */
static const char *vector_at(const bb_sharing *s, uint32_t k, const char *at) {
  bb_arena *arena = s->e->arena;
  uint32_t before = 0;
  for (uint32_t i = 0; i < k; i++)
    if (s->needed[i] && !bb_sharing_is_block(s, i)) before += length_of(s, i);
  const char *elements =
      bb_arena_printf(arena, "%u * share", blocks_sent(s) * hand(s->e) * s->lanes);
  return bb_infix(arena, bb_infix(arena, elements, "+", bb_arena_printf(arena, "%u", before)), "+",
                  at);
}

/* Value e of vector k, which this thread may have as others do, to all who combine elements. */
static void push_vector(const bb_sharing *s, uint32_t k, const char *value) {
  const bb_tile *t = &s->e->p->tile[s->merged[k]];
  const char *one = t->rows   ? "(tl::lane() & 3) == 0"
                    : t->cols ? "my_rows == 0 && tl::lane() < 4"
                              : "my_rows == 0 && tl::lane() == 0";
  const char *at = t->rows ? "my_row + 8 * e" : t->cols ? "my_col + 4 * e - 3 * (e & 1)" : "0";
  bb_cuda_line(s->e, "if (%s)", one);
  bb_cuda_line(s->e, "  for (int to = 0; to < min(blocks, %u); to++)", hands(s));
  bb_cuda_line(s->e, "    tl::push(slot + %s, %s, &sync.parts, to);", vector_at(s, k, at), value);
}

/* What the warps left of value e of component k is combined. */
static void push_of_warps(const bb_sharing *s, uint32_t k) {
  bb_arena *arena = s->e->arena;
  const char *value = bb_arena_printf(arena, "part_%s[round][0]", bb_sharing_name(s, k));
  const char *at = bb_arena_printf(arena, "round / blocks * %u + e %% %u", hand(s->e), hand(s->e));
  if (!s->needed[k]) return;
  if (bb_sharing_is_block(s, k))
    bb_cuda_line(s->e, "tl::push(slot + %s, %s, &sync.parts, round %% blocks);",
                 element_at(s, k, at, s->lane), value);
  else
    push_vector(s, k, value);
}

/* Fours of a thread lie side by side. */
static void push_of_threads(const bb_sharing *s) {
  bb_cuda *e = s->e;
  const char *thread = bb_infix(e->arena, "4", "*", s->lane);
  for (uint32_t k = 0; k < s->monoid->components; k++) {
    const char *name = bb_sharing_name(s, k);
    if (!s->needed[k]) continue;
    if (bb_sharing_is_block(s, k)) {
      bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++)", hands(s));
      bb_cuda_line(e,
                   "  tl::push(slot + %s, %s[4 * i], %s[4 * i + 1], %s[4 * i + 2], %s[4 * i + 3], "
                   "&sync.parts, i %% blocks);",
                   element_at(s, k, "i / blocks * 4", thread), name, name, name, name);
    } else {
      bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++)", registers_of(s, k));
      e->depth++;
      push_vector(s, k, bb_arena_printf(e->arena, "%s[e]", name));
      e->depth--;
    }
  }
}

/* --- combining --- */

/* Rounds of elements that a thread combines at once. */
static uint32_t rounds_of(const bb_sharing *s) {
  return s->e->warps ? 1 : hand(s->e);
}

static uint32_t batch_of(const bb_sharing *s) {
  uint32_t values = 0, batch = 1;
  for (uint32_t k = 0; k < s->monoid->components; k++) values += s->needed[k] ? rounds_of(s) : 0;
  while (batch < most_blocks(s->e) && 2 * batch * values <= AT_ONCE) batch *= 2;
  return batch;
}

static void open_rounds(const bb_sharing *s) {
  bb_cuda_line(s->e, "TL_UNROLL for (int round = 0; round < %u; round++) {", rounds_of(s));
  s->e->depth++;
  bb_cuda_line(s->e, "const int e = start + round;");
}

static void close(const bb_sharing *s) {
  s->e->depth--;
  bb_cuda_line(s->e, "}");
}

/* What the list loads is asked for before the parts are waited for. */
static void put_loads(const bb_sharing *s) {
  bb_cuda *e = s->e;
  for (uint32_t i = 0; i < s->list->count; i++) {
    const bb_tile_stmt *load = s->list->stmt[i];
    if (load->kind != BB_TILE_LOAD) continue;
    const char *name = e->tile[load->result].name;
    bb_cuda_line(e, "float loaded_%s[%u];", name, rounds_of(s));
    open_rounds(s);
    bb_cuda_line(e, "float one_%s;", name);
    e->single = e->tile[s->of].ct;
    bb_cuda_stmt(e, load);
    e->single = 0;
    bb_cuda_line(e, "loaded_%s[round] = one_%s;", name, name);
    close(s);
  }
}

/* Where in vector k that is which belongs to element e. */
static const char *place_in(const bb_sharing *s, uint32_t k) {
  const bb_tile *t = &s->e->p->tile[s->merged[k]];
  uint32_t ct = s->e->tile[s->of].ct;
  if (t->rows) return bb_arena_printf(s->e->arena, "my_row + 8 * tl::row_of<%u>(e)", ct);
  return t->cols ? bb_arena_printf(s->e->arena, "my_col + tl::col_at<%u>(e)", ct) : "0";
}

/* part_X[round][i] of block first + i. */
static void put_received(const bb_sharing *s, uint32_t batch) {
  static const char *const member[] = {"x", "y", "z", "w"};
  bb_cuda *e = s->e;
  bb_sharing_put_parts(s, s->needed, rounds_of(s), batch);
  bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++) {", batch);
  e->depth++;
  bb_cuda_line(e, "if (first + i >= blocks) continue;");
  bb_cuda_line(e, "const float *const from = inbox + (first + i) * size;");
  for (uint32_t k = 0; k < s->monoid->components; k++) {
    const char *name = bb_sharing_name(s, k);
    if (!s->needed[k]) continue;
    if (!bb_sharing_is_block(s, k)) {
      open_rounds(s);
      bb_cuda_line(e, "part_%s[round][i] = from[%s];", name, vector_at(s, k, place_in(s, k)));
      close(s);
    } else if (e->warps) {
      const char *at = bb_arena_printf(e->arena, "nth * %u + my_warp", hand(e));
      bb_cuda_line(e, "part_%s[0][i] = from[%s];", name, element_at(s, k, at, s->lane));
    } else {
      bb_cuda_line(e, "const float4 four_%s = *(const float4 *)(from + %s);", name,
                   element_at(s, k, "nth * 4", bb_infix(e->arena, "4", "*", s->lane)));
      for (uint32_t r = 0; r < 4; r++)
        bb_cuda_line(e, "part_%s[%u][i] = four_%s.%s;", name, r, name, member[r]);
    }
  }
  close(s);
}

/* all_X[round] of all blocks' parts. */
static void put_combined(const bb_sharing *s) {
  static const char *const all[2] = {"all_", "[round]"}, *const part[2] = {"part_", "[round][0]"};
  bb_cuda *e = s->e;
  uint32_t batch = batch_of(s);
  for (uint32_t k = 0; k < s->monoid->components; k++)
    if (s->needed[k]) bb_cuda_line(e, "float all_%s[%u];", bb_sharing_name(s, k), rounds_of(s));
  bb_cuda_line(e, "for (int first = 0; first < blocks; first += %u) {", batch);
  e->depth++;
  put_received(s, batch);
  bb_cuda_line(e, "TL_UNROLL for (int round = 0; round < %u; round++) {", rounds_of(s));
  e->depth++;
  bb_sharing_put_tree(s, s->needed, batch, "first + i");
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
  close(s);
  close(s);
}

void bb_cuda_push(const bb_sharing *s) {
  static const char *const from[2] = {"all_", "[round]"};
  bb_cuda *e = s->e;
  uint32_t each = hand(e);
  const char *share =
      hands(s) > 1 ? bb_arena_printf(e->arena, "(%u + blocks) / blocks", hands(s) - 1) : "1";
  bb_cuda_line(e, "const int share = %s; // hands of %u elements that a block combines", share,
               each);
  bb_cuda_line(e, "const int size = %s;",
               bb_infix(e->arena,
                        bb_arena_printf(e->arena, "%u * share", each * blocks_sent(s) * s->lanes),
                        "+", bb_arena_printf(e->arena, "%u", vectors_room(s))));
  bb_cuda_line(
      e, "float *const inbox = (float *)(tile_memory + %u), *const slot = inbox + rank * size;",
      e->inbox);
  if (e->warps)
    bb_sharing_put_warps(s, push_of_warps);
  else
    push_of_threads(s);
  bb_cuda_line(e,
               "for (int start = rank * %u%s, nth = 0; start < %u; start += blocks * %u, nth++) {",
               each, e->warps ? " + my_warp" : "", elements(s), each);
  e->depth++;
  put_loads(s);
  bb_cuda_line(e, "tl::barrier_wait_cluster(&sync.parts, 0);");
  put_combined(s);
  open_rounds(s);
  bb_sharing_put_following(s, from, true);
  close(s);
  close(s);
}
