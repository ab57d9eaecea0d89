/* emit_sm90_merge.c - what is left by warps, or by the blocks of a cluster, combined as one tuple.
 *
 * All parts lie alike over the threads, so that each thread combines what its fellows at the same place
 * left in shared memory; nothing depends on which layout that is.
 */
#include "emit_sm90.h"

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

/* How the left parts' values and then the right parts' are called at element e of component k. */
static const char **arguments_of(const bb_cuda *e, const bb_tile_loop *loop, uint32_t k) {
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
    text[n + i] = bb_arena_printf(e->arena, "right_%s[%s]", name, at);
  }
  return text;
}

static void put_combine(bb_cuda *e, const bb_tile_loop *loop, const char *load, uint32_t threads) {
  uint32_t offset = 0;
  for (uint32_t k = 0; k < loop->merge->components; k++) {
    const bb_cuda_tile *t = &e->tile[loop->merged[k]];
    bb_cuda_line(e, "float right_%s[%u], next_%s[%u];", t->name, t->registers, t->name,
                 t->registers);
    const char *at = bb_arena_printf(e->arena, "(%u + e) * %u", offset, threads);
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) right_%s[e] = %s;", t->registers,
                 t->name, bb_arena_printf(e->arena, load, at));
    offset += t->registers;
  }
  for (uint32_t k = 0; k < loop->merge->components; k++) {
    const bb_cuda_tile *t = &e->tile[loop->merged[k]];
    const char **text = arguments_of(e, loop, k);
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) next_%s[e] = %s;", t->registers,
                 t->name, bb_cuda_index(e, loop->merge->combine[k], text));
  }
  for (uint32_t k = 0; k < loop->merge->components; k++) {
    const bb_cuda_tile *t = &e->tile[loop->merged[k]];
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) %s[e] = next_%s[e];", t->registers,
                 t->name, t->name);
  }
}

void bb_cuda_merge(bb_cuda *e, const bb_tile_loop *loop) {
  bool warps = loop->spread == BB_SPREAD_WARPS;
  uint32_t count = count_of(e, loop), threads = e->warps ? 32 : 128 * e->groups;
  if (!loop->merge) return;
  bb_cuda_line(e, "{ // merge %s", loop->merge->name);
  e->depth++;
  bb_cuda_line(e, "float *parts = (float *)tile_memory;");
  bb_cuda_line(e, e->copier ? "tl::named_sync(7, %u);" : "__syncthreads();", 32 * e->warp_count);
  if (warps) {
    put_leave(e, loop, bb_arena_printf(e->arena, "my_warp * %u + tl::lane()", count * 32), 32);
    bb_cuda_line(e, "__syncthreads();");
    bb_cuda_line(e, "if (my_warp == 0)");
    bb_cuda_line(e, "  TL_UNROLL for (int w = 1; w < %u; w++) {", e->warp_count);
    e->depth += 2;
    put_combine(e, loop, bb_arena_printf(e->arena, "parts[w * %u + tl::lane() + %%s]", count * 32),
                32);
    e->depth -= 2;
    bb_cuda_line(e, "  }");
  } else {
    const char *thread = e->warps ? "tl::lane()" : "my_thread";
    if (e->warps) bb_cuda_line(e, "if (my_warp == 0) {");
    put_leave(e, loop, thread, threads);
    if (e->warps) bb_cuda_line(e, "}");
    bb_cuda_line(e, "tl::cluster_sync();");
    bb_cuda_line(e, "if (tl::cluster_rank() == 0%s)", e->warps ? " && my_warp == 0" : "");
    bb_cuda_line(e, "  for (int r = 1; r < tl::cluster_size(); r++) {");
    e->depth += 2;
    put_combine(e, loop, bb_arena_printf(e->arena, "tl::peer(parts + %s + %%s, r)[0]", thread),
                threads);
    e->depth -= 2;
    bb_cuda_line(e, "  }");
    bb_cuda_line(e, "tl::cluster_sync();");
  }
  e->depth--;
  bb_cuda_line(e, "}");
}
