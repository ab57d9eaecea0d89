/* emit_sm90_merge.c - what is left by warps, or by the blocks of a cluster, combined as one tuple.
 *
 * All parts lie alike over the threads, so that each thread combines what its fellows at the same place
 * left in shared memory; nothing depends on which layout that is.
 */
#include "emit_sm90.h"

/* Parts of other blocks that are asked for together, and the registers that they may take. */
enum { MOST_PARTS = 7, MOST_AHEAD = 56 };

static uint32_t count_of(const bb_cuda *e, const bb_tile_loop *loop) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < loop->merge->components; k++)
    count += e->tile[loop->merged[k]].registers;
  return count;
}

static void put_leave(bb_cuda *e, const bb_tile_loop *loop, const char *at, uint32_t threads) {
  uint32_t offset = 0;
  for (uint32_t k = 0; k < loop->merge->components; k++) {
    const bb_cuda_tile *t = &e->tile[loop->merged[k]];
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) parts[%s + (%u + e) * %u] = %s[e];",
                 t->registers, at, offset, threads, t->name);
    offset += t->registers;
  }
}

/* Parts that are combined in turn, of which `ahead` are asked for before any is. */
typedef struct taking {
  const bb_tile_loop *loop;
  const char *load; /* of a part; %s: the place in it */
  uint32_t threads, ahead;
} taking;

/* The part at hand of a tile. */
static const char *right_of(const bb_cuda *e, const taking *t, const char *name) {
  return bb_arena_printf(e->arena, t->ahead > 1 ? "right_%s[r]" : "right_%s", name);
}

/* How the left parts' values and then the right parts' are called at element e of component k. */
static const char **arguments_of(const bb_cuda *e, const taking *take, uint32_t k) {
  const bb_tile_loop *loop = take->loop;
  uint32_t n = loop->merge->components;
  const bb_tile *whole = &e->p->tile[loop->merged[k]];
  const char **text = BB_NEW(e->arena, const char *, 2 * n);
  for (uint32_t i = 0; i < n; i++) {
    const bb_tile *t = &e->p->tile[loop->merged[i]];
    const char *at = "e", *name = e->tile[loop->merged[i]].name;
    if (!t->rows && !t->cols)
      at = "0";
    else if (t->rows != whole->rows || t->cols != whole->cols)
      at = bb_arena_printf(e->arena, "tl::%s_of<%u>(e)", t->rows ? "row" : "col",
                           e->tile[loop->merged[k]].ct);
    text[i] = bb_arena_printf(e->arena, "%s[%s]", name, at);
    text[n + i] = bb_arena_printf(e->arena, "%s[%s]", right_of(e, take, name), at);
  }
  return text;
}

static void put_room(bb_cuda *e, const taking *take) {
  const bb_tile_loop *loop = take->loop;
  for (uint32_t k = 0; k < loop->merge->components; k++) {
    const bb_cuda_tile *t = &e->tile[loop->merged[k]];
    const char *each = take->ahead > 1 ? bb_arena_printf(e->arena, "[%u]", take->ahead) : "";
    bb_cuda_line(e, "float right_%s%s[%u];", t->name, each, t->registers);
  }
}

static void put_loads(bb_cuda *e, const taking *take) {
  const bb_tile_loop *loop = take->loop;
  uint32_t offset = 0;
  for (uint32_t k = 0; k < loop->merge->components; k++) {
    const bb_cuda_tile *t = &e->tile[loop->merged[k]];
    const char *at = bb_arena_printf(e->arena, "(%u + e) * %u", offset, take->threads);
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) %s[e] = %s;", t->registers,
                 right_of(e, take, t->name), bb_arena_printf(e->arena, take->load, at));
    offset += t->registers;
  }
}

static void put_combine(bb_cuda *e, const taking *take) {
  const bb_tile_loop *loop = take->loop;
  for (uint32_t k = 0; k < loop->merge->components; k++) {
    const bb_cuda_tile *t = &e->tile[loop->merged[k]];
    const char **text = arguments_of(e, take, k);
    bb_cuda_line(e, "float next_%s[%u];", t->name, t->registers);
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) next_%s[e] = %s;", t->registers,
                 t->name, bb_cuda_index(e, loop->merge->combine[k], text));
  }
  for (uint32_t k = 0; k < loop->merge->components; k++) {
    const bb_cuda_tile *t = &e->tile[loop->merged[k]];
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) %s[e] = next_%s[e];", t->registers,
                 t->name, t->name);
  }
}

static void put_warps(bb_cuda *e, const bb_tile_loop *loop, uint32_t count) {
  const char *load = bb_arena_printf(e->arena, "parts[w * %u + tl::lane() + %%s]", count * 32);
  taking take = {loop, load, 32, 1};
  put_leave(e, loop, bb_arena_printf(e->arena, "my_warp * %u + tl::lane()", count * 32), 32);
  bb_cuda_line(e, "__syncthreads();");
  bb_cuda_line(e, "if (my_warp == 0)");
  bb_cuda_line(e, "  TL_UNROLL for (int w = 1; w < %u; w++) {", e->warp_count);
  e->depth += 2;
  put_room(e, &take);
  put_loads(e, &take);
  put_combine(e, &take);
  e->depth -= 2;
  bb_cuda_line(e, "  }");
}

/* What another block's memory has takes long to come: as many parts are asked for at a time as registers hold. */
static void put_blocks(bb_cuda *e, const bb_tile_loop *loop, uint32_t count) {
  const char *thread = e->warps ? "tl::lane()" : "my_thread";
  const char *load = bb_arena_printf(e->arena, "tl::peer(parts + %s + %%s, first + r)[0]", thread);
  uint32_t ahead = count < MOST_AHEAD / 2 ? MOST_AHEAD / count : 2;
  taking take = {loop, load, e->warps ? 32 : 128 * e->groups,
                 ahead < MOST_PARTS ? ahead : MOST_PARTS};
  if (e->warps) bb_cuda_line(e, "if (my_warp == 0) {");
  put_leave(e, loop, thread, take.threads);
  if (e->warps) bb_cuda_line(e, "}");
  bb_cuda_line(e, "tl::cluster_sync();");
  bb_cuda_line(e, "if (tl::cluster_rank() == 0%s)", e->warps ? " && my_warp == 0" : "");
  bb_cuda_line(e, "  for (int first = 1; first < tl::cluster_size(); first += %u) {", take.ahead);
  e->depth += 2;
  put_room(e, &take);
  bb_cuda_line(e, "TL_UNROLL for (int r = 0; r < %u; r++)", take.ahead);
  bb_cuda_line(e, "  if (first + r < tl::cluster_size()) {");
  e->depth += 2;
  put_loads(e, &take);
  e->depth -= 2;
  bb_cuda_line(e, "  }");
  bb_cuda_line(e, "TL_UNROLL for (int r = 0; r < %u; r++)", take.ahead);
  bb_cuda_line(e, "  if (first + r < tl::cluster_size()) {");
  e->depth += 2;
  put_combine(e, &take);
  e->depth -= 4;
  bb_cuda_line(e, "    }");
  bb_cuda_line(e, "  }");
  bb_cuda_line(e, "tl::cluster_sync();");
}

void bb_cuda_merge(bb_cuda *e, const bb_tile_loop *loop) {
  uint32_t count = count_of(e, loop);
  if (!loop->merge) return;
  bb_cuda_line(e, "{ // merge %s", loop->merge->name);
  e->depth++;
  bb_cuda_line(e, "float *parts = (float *)tile_memory;");
  bb_cuda_line(e, e->copier ? "tl::named_sync(7, %u);" : "__syncthreads();", 32 * e->warp_count);
  if (loop->spread == BB_SPREAD_WARPS)
    put_warps(e, loop, count);
  else
    put_blocks(e, loop, count);
  e->depth--;
  bb_cuda_line(e, "}");
}
