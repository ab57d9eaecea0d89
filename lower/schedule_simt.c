/* schedule_simt.c - block sizes for kernels whose tiles lie in the registers of plain threads. */
#include "schedule_simt.h"

#include "emit_c_parts.h"
#include "emit_simt.h"
#include "gpu.h"
#include "held.h"
#include "turn.h"
#include "vector.h"

#include <string.h>

/* Dims that two blocks hold are one where sums run over them.  The smaller a block, the longer the part of a sum that is
 * loaded at once: what a block waits for memory counts more, and room there is. */
enum { LEAST = 16, REGISTERS = 96, THREADS = 256, SIZES = 3, LONGEST = 128 };
/* Elements of a tile where rows stream, and where each block waits in loops; and its columns. */
enum {
  ELEMENTS = 8192,
  WAITING = 1024,
  WIDEST = 2048,
  NARROWEST = 128,
  MOST_ROWS = 64,
  FEW_ELEMENTS = 1 << 20
};
/* The least rows that selection gives a block, whatever it has. */
enum { CHOSEN_ROWS = 4 };
typedef struct sizes {
  int64_t size, folded;
} sizes;
static const sizes tried[SIZES] = {{64, 32}, {32, 64}, {16, 64}};

static int64_t padded(int64_t extent) {
  return (extent + LEAST - 1) / LEAST * LEAST;
}

/* Has selection chosen sizes? */
static bool has_sizes(const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind == BB_NODE_MAP && (node->block > 0 || has_sizes(node->inner))) return true;
  }
  return false;
}

static void find_folded(const bb_graph *graph, bool *folded) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind != BB_NODE_MAP) continue;
    for (uint32_t o = 0; o < node->nout; o++) folded[node->dim] |= node->out[o].mode == BB_OUT_FOLD;
    find_folded(node->inner, folded);
  }
}

static void size_blocks(const bb_program *program, const bool *folded, const int64_t *given,
                        const sizes *s, int64_t *block) {
  for (uint32_t d = 0; d < program->dims; d++) {
    int64_t extent = bb_extent_value(program->dim[d].extent);
    block[d] = folded[d] ? s->folded : s->size;
    if (extent > 0 && extent <= (folded[d] ? s->folded * 2 : block[d])) block[d] = padded(extent);
    if (given && given[d] > 0 && given[d] < block[d]) block[d] = given[d];
  }
}

/* --- what came of it --- */

typedef struct tally {
  const bb_tile_program *p;
  uint64_t elements; /* of tiles */
  bool dot;
} tally;

static void count(tally *t, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    t->dot |= s->kind == BB_TILE_DOT;
    if (s->result != BB_NONE) {
      const bb_tile *tile = &t->p->tile[s->result];
      t->elements += (uint64_t)(tile->rows ? tile->rows : 1) * (tile->cols ? tile->cols : 1);
    }
    count(t, &s->body);
    if (s->loop) count(t, &s->loop->body);
  }
}

/* Iterations of a loop, 0 where they are not known. */
static int64_t trips_of(const bb_tile_loop *l) {
  bb_tile_index from = l->stretch[0].from, to = l->stretch[0].to, step = l->step;
  if (!to || from->op != BB_X_CONST || to->op != BB_X_CONST || step->op != BB_X_CONST) return 0;
  double trips = (to->number - from->number + step->number - 1) / step->number;
  return trips < 1 ? 1 : (int64_t)trips;
}

/* Tasks of the nest that has fewest, of those with a product where there are any; 0: not known. */
static int64_t least_tasks(const bb_tile_program *p, bb_arena *arena) {
  bb_buffer none = {.arena = arena};
  bb_c c = {.out = &none, .p = p, .target = "a GPU"};
  bb_c_nest *nest;
  uint32_t nests = bb_c_nests(&c, &nest);
  int64_t least[2] = {0, 0};
  for (uint32_t i = 0; i < nests; i++) {
    bb_tile_body body = {nest[i].count, p->body.stmt + nest[i].first};
    tally t = {p, 0, false};
    int64_t tasks = 1;
    count(&t, &body);
    for (uint32_t k = 0; k < nest[i].loops; k++) {
      int64_t trips = trips_of(nest[i].loop[k]);
      if (!trips) return 0;
      tasks *= trips;
    }
    if (!least[t.dot] || tasks < least[t.dot]) least[t.dot] = tasks;
  }
  return least[1] ? least[1] : least[0];
}

static bool fits(const bb_tile_program *p) {
  tally t = {p, 0, false};
  count(&t, &p->body);
  for (uint32_t i = 0; i < p->tiles; i++)
    if ((uint64_t)p->tile[i].rows * p->tile[i].cols > REGISTERS * THREADS / 2) return false;
  return t.elements <= (uint64_t)4 * REGISTERS * THREADS;
}

typedef struct attempt {
  bb_program *program;
  const bb_graph *graph;
  const char *name;
  const int64_t *block, *limit;
  const bb_room *room;
  const bb_kernel *kernel;
  bool turns; /* its rows lie side by side in memory */
} attempt;

/* Registers hold f32: what is computed from f16 is rounded where it goes to memory or into a product.  Sums of a loop are
 * those of a thread until it ends: threads meet once.  What loops behind one read again is at hand. */
static bool rewrite(bb_program *program, bb_tile_program *tile) {
  bb_gpu g = {.p = tile, .ctx = program->ctx, .strict = program->strict};
  bool narrow = false;
  bb_tile_vectors(tile);
  bool turns = bb_tile_turn(tile);
  for (uint32_t t = 0; t < tile->tiles; t++)
    narrow |= tile->tile[t].dtype == BB_F16 || tile->tile[t].dtype == BB_BF16;
  if (narrow) bb_tile_widen(tile, g.strict);
  bb_gpu_partials(&g);
  bb_tile_hold(tile);
  return turns;
}

static void try_blocks(bb_context *ctx, void *argument) {
  attempt *a = argument;
  (void)ctx;
  bb_schedule_options options = {
      .block = a->block, .limit = a->limit, .alike = true, .tasks = true, .room = a->room};
  a->kernel = bb_schedule(a->program, a->graph, a->name, &options);
  a->turns = rewrite(a->program, a->kernel->tile);
}

static bool schedules(bb_context *ctx, attempt *a, bool last) {
  bb_status status = bb_protect(ctx, try_blocks, a);
  if (status == BB_OK) return true;
  if (status != BB_ERROR_UNSUPPORTED || last) bb_fail_again(ctx, status);
  ctx->status = BB_OK;
  return false;
}

/* Sizes as selection chose them, but parts of sums no longer than can be loaded at once. */
static const bb_kernel *with_chosen(bb_context *ctx, attempt a, const bool *folded) {
  if (!has_sizes(a.graph)) return NULL;
  int64_t *limit = BB_NEW(a.program->arena, int64_t, a.program->dims + 1);
  a.block = NULL;
  a.limit = limit;
  for (int64_t longest = LONGEST; longest >= LEAST; longest /= 2) {
    for (uint32_t d = 0; d < a.program->dims; d++) limit[d] = folded[d] ? longest : 0;
    if (schedules(ctx, &a, false) && fits(a.kernel->tile)) return a.kernel;
  }
  return NULL;
}

/* --- kernels without products: they stream --- */

typedef struct streams {
  bool *row, *col; /* by dim: an axis of items */
  bool products, waits;
  int64_t told;  /* rows of a block where a run tells how many there are; 0: not known */
  int64_t loads; /* that a body has at once */
} streams;

static void note_item(streams *s, const bb_item *item) {
  if (item->row != BB_NO_DIM) s->row[item->row] = true;
  if (item->col != BB_NO_DIM) s->col[item->col] = true;
}

static void find_axes(const bb_graph *graph, streams *s) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    s->products |= node->kind == BB_NODE_FUNC && node->op == BB_OP_DOT;
    for (uint32_t o = 0; o < node->nout; o++) note_item(s, &node->out[o].type->item);
    if (node->kind == BB_NODE_MAP) find_axes(node->inner, s);
  }
}

/* Long pieces of a few rows: `wide` columns, and so many rows that each thread has a few loads on their way; as many as selection
 * told, half of them where it is not known how many there are.  Where a block waits again and again, it is small: others run meanwhile. */
static void size_rows(const bb_program *program, const streams *s, int64_t wide, int64_t rows,
                      int64_t *block) {
  int64_t widest = 0;
  for (uint32_t d = 0; d < program->dims; d++) {
    int64_t extent = bb_extent_value(program->dim[d].extent);
    block[d] = 0;
    if (!s->col[d]) continue;
    block[d] = extent > 0 && extent <= wide ? padded(extent) : wide;
    if (block[d] > widest) widest = block[d];
  }
  for (uint32_t d = 0; d < program->dims; d++) {
    int64_t extent = bb_extent_value(program->dim[d].extent),
            most = (s->waits ? WAITING : ELEMENTS) / (widest + !widest);
    if (s->told > 0) most /= s->loads;
    if (!s->row[d]) continue;
    if (extent <= 0 && s->told > 0 && most > s->told) most = s->told;
    if (extent <= 0 && s->told <= 0) most /= 2;
    if (most > rows) most = rows;
    block[d] = 1;
    while (block[d] <= most / 2) block[d] *= 2; /* threads lie in rows of a power of two */
    while (extent > 0 && block[d] / 2 >= extent) block[d] /= 2;
  }
}

/* The most elements in blocks that selection chose along axes whose extents a run tells; as they were where there are none. */
static void find_chosen(const bb_program *program, const bb_graph *graph, const streams *s,
                        int64_t *rows, int64_t *cols) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind != BB_NODE_MAP) continue;
    int64_t *of = s->row[node->dim] ? rows : s->col[node->dim] ? cols : NULL;
    bool open = bb_extent_value(program->dim[node->dim].extent) <= 0;
    if (of && open && node->block > *of) *of = node->block;
    find_chosen(program, node->inner, s, rows, cols);
  }
}

static bool holds(const bb_tile_program *p) {
  for (uint32_t t = 0; t < p->tiles; t++)
    if (bb_tile_is_held(p, t)) return true;
  return false;
}

/* The most blocks of rows and columns that are loaded together, one at least; in `bytes`: of an element of each. */
static int64_t most_loads(const bb_tile_program *p, bool bytes) {
  uint32_t *size = BB_NEW(p->home->arena, uint32_t, p->tiles + 1);
  for (uint32_t t = 0; t < p->tiles; t++)
    if (bb_tile_is_block(&p->tile[t])) size[t] = bytes ? bb_dtype_bytes(p->tile[t].dtype) : 1;
  uint32_t most = bb_tile_most_loaded(&p->body, size);
  return most ? most : 1;
}

/* Is a long row worth being whole: is it at hand again, and can all that is loaded of it be on its way at once? */
static bool has_room(const bb_tile_program *p, int64_t whole) {
  return holds(p) && whole * most_loads(p, true) <= (int64_t)BB_SIMT_ASKED * THREADS;
}

static bool has_loops(const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_loop *l = body->stmt[i]->loop;
    if (l && (!l->parallel || has_loops(&l->body))) return true;
  }
  return false;
}

/* Columns of a block that has whole rows, so that what reads a row again has it at hand, and all that a block loads is on its way at
 * once: as many as there are or, where a run tells, as selection chose.  0: that is not known, or no block has room. */
static int64_t whole_row(const bb_program *program, const bb_graph *graph, const streams *s,
                         int64_t *rows) {
  int64_t cols = 0, whole = 2 * NARROWEST; /* threads of a row load 16 bytes each */
  *rows = 0;
  find_chosen(program, graph, s, rows, &cols);
  for (uint32_t d = 0; d < program->dims; d++) {
    int64_t extent = bb_extent_value(program->dim[d].extent);
    if (!s->col[d]) continue;
    if (extent <= 0 && !cols) return 0;
    if (extent > cols) cols = extent;
  }
  while (whole < cols) whole *= 2;
  return whole <= ELEMENTS ? whole : 0;
}

/* So few elements that what counts is how many blocks there are: the sizes that selection chose. */
static bool is_small(const bb_program *program, const streams *s) {
  int64_t elements = 1;
  for (uint32_t d = 0; d < program->dims; d++) {
    int64_t extent = bb_extent_value(program->dim[d].extent);
    if (!s->row[d] && !s->col[d]) continue;
    if (extent <= 0 || elements > FEW_ELEMENTS) return false;
    elements *= extent;
  }
  return elements <= FEW_ELEMENTS;
}

/* Rows in pieces that fill the lines of memory; fewer rows in a piece where there are not enough of them.  NULL: a
 * product, or an axis that runs both ways. */
static const bb_kernel *by_rows(bb_context *ctx, attempt a, uint32_t processors) {
  bb_program *p = a.program;
  streams s = {
      BB_NEW(p->arena, bool, p->dims + 1), BB_NEW(p->arena, bool, p->dims + 1), false, false, 0, 1};
  int64_t *block = BB_NEW(p->arena, int64_t, p->dims + 1);
  const bb_kernel *best = NULL;
  find_axes(a.graph, &s);
  for (uint32_t d = 0; d < p->dims; d++)
    if (s.row[d] && s.col[d]) return NULL;
  if (s.products) return NULL;
  a.block = block;
  size_rows(p, &s, NARROWEST, 1, block);
  if (!schedules(ctx, &a, false)) return NULL;
  s.waits = bb_tile_waits(&a.kernel->tile->body);
  if (!s.waits && is_small(p, &s)) return NULL;
  if (a.turns) {
    bool *row = s.row;
    s.row = s.col;
    s.col = row;
  }
  int64_t chosen, whole = has_loops(&a.kernel->tile->body) ? whole_row(p, a.graph, &s, &chosen) : 0;
  if (whole > WIDEST && !has_room(a.kernel->tile, whole)) whole = 0;
  if (whole) s.told = chosen / CHOSEN_ROWS;
  s.loads = most_loads(a.kernel->tile, false);
  for (int64_t wide = whole ? whole : WIDEST; wide >= NARROWEST; wide /= 2) {
    if (wide < whole && wide > WIDEST) continue; /* a row that is not whole is in pieces */
    if (wide < whole) s.told = 0;
    for (int64_t rows = MOST_ROWS; rows >= 1; rows /= 2) {
      size_rows(p, &s, wide, rows, block);
      if (!schedules(ctx, &a, false)) return NULL;
      if (!fits(a.kernel->tile)) continue;
      best = a.kernel;
      int64_t tasks = least_tasks(best->tile, p->arena);
      if (!tasks || tasks >= 2 * (int64_t)processors || rows == 1) return best;
    }
  }
  return best;
}

const bb_kernel *bb_schedule_simt(bb_program *program, const bb_graph *graph, const char *name,
                                  const int64_t *given, uint32_t processors, const bb_room *room) {
  bb_context *ctx = program->ctx;
  bool *folded = BB_NEW(program->arena, bool, program->dims + 1);
  int64_t *block = BB_NEW(program->arena, int64_t, program->dims + 1);
  attempt a = {.program = program, .graph = graph, .name = name, .block = block, .room = room};
  const bb_kernel *best = NULL;
  find_folded(graph, folded);
  if (!given) best = by_rows(ctx, a, processors);
  if (best) return best;
  if (!given) best = with_chosen(ctx, a, folded);
  if (best) return best;
  for (uint32_t i = 0; i < SIZES; i++) {
    size_blocks(program, folded, given, &tried[i], block);
    if (!schedules(ctx, &a, !best && i + 1 == SIZES)) continue;
    best = a.kernel;
    int64_t tasks = least_tasks(best->tile, program->arena);
    if (fits(best->tile) && (!tasks || tasks >= processors)) break;
  }
  return best;
}
