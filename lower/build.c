/* build.c - the scheduler's builder: indices, loops, tiles, and where statements stand. */
#include "build.h"

void bb_build_refuse(bb_build *b, const bb_node *node, const char *what) {
  const char *name = node && node->name ? node->name : "";
  bb_fail(b->ctx, BB_ERROR_UNSUPPORTED, "no kernel: node %u (%s): %s", node ? node->serial : 0,
          name, what);
}

/* --- integer expressions --- */

bb_tile_index bb_index_number(bb_build *b, int64_t value) {
  return bb_expr_const(b->program, BB_I64, (double)value);
}

bb_tile_index bb_index_variable(bb_build *b, uint32_t variable) {
  return bb_expr_arg(b->program, BB_I64, variable);
}

bb_tile_index bb_index_add(bb_build *b, bb_tile_index x, bb_tile_index y) {
  if (bb_expr_is_number(x, 0)) return y;
  if (bb_expr_is_number(y, 0)) return x;
  return bb_expr_make(b->program, BB_X_ADD, x, y, NULL);
}

bb_tile_index bb_index_times(bb_build *b, bb_tile_index x, bb_tile_index y) {
  if (bb_expr_is_number(x, 0)) return x;
  if (bb_expr_is_number(y, 0)) return y;
  return bb_expr_make(b->program, BB_X_MUL, x, y, NULL);
}

static bb_tile_index used_extent(bb_build *b, uint32_t i) {
  b->used[i] = true;
  return bb_index_variable(b, i);
}

bb_tile_index bb_index_size(bb_build *b, const bb_extent *extent) {
  int64_t value = bb_extent_value(extent);
  if (value >= 0) return bb_index_number(b, value);
  for (uint32_t i = 0; i < b->extents; i++)
    if (b->extent[i] == extent) return used_extent(b, i);
  bb_fail(b->ctx, BB_ERROR_INTERNAL, "an extent that is no argument of the kernel");
}

bb_tile_index bb_index_extent(bb_build *b, bb_dim dim) {
  return bb_index_size(b, bb_dim_get(b->program, dim)->extent);
}

bb_tile_index bb_index_symbol(bb_build *b, uint32_t symbol) {
  for (uint32_t i = 0; i < b->extents; i++)
    if (!b->extent[i] && b->symbol[i] == symbol) return used_extent(b, i);
  bb_fail(b->ctx, BB_ERROR_INTERNAL, "a scalar that is no argument of the kernel");
}

/* --- statements and where they stand --- */

uint32_t bb_build_place(const bb_build *b, uint32_t depth) {
  return depth < b->floor ? b->floor : depth;
}

static void push(bb_build *b, bb_tile_body *body, bb_tile_stmt *stmt) {
  bb_tile_append(b->tile, body, stmt->kind); /* grows the body */
  body->stmt[body->count - 1] = stmt;
}

bb_tile_stmt *bb_build_stmt(bb_build *b, uint32_t depth, bb_tile_kind kind) {
  return bb_tile_append(b->tile, &b->frame[bb_build_place(b, depth)].body, kind);
}

uint32_t bb_build_index_depth(const bb_build *b, bb_tile_index index) {
  for (uint32_t d = b->depth; d > 0; d--)
    if (bb_expr_uses_arg(index, b->frame[d].loop->variable)) return d;
  return 0;
}

const bb_expr *bb_build_element_is_there(bb_build *b, bb_tile_index index) {
  const bb_expr *there = NULL;
  for (uint32_t d = b->depth; d > 0; d--) {
    const bb_build_loop *loop = b->frame[d].loop;
    if (!loop->ghost || !bb_expr_uses_arg(index, loop->variable)) continue;
    const bb_expr *any =
        bb_expr_make(b->program, BB_X_LT, bb_index_number(b, 0), loop->limit, NULL);
    there = there ? bb_expr_make(b->program, BB_X_AND, there, any, NULL) : any;
  }
  return there;
}

/* --- loops --- */

/* Does one block hold all of the extent?  Outside all loops a loop stays: it is what tasks are made of. */
static bool is_single(const bb_build *b, bb_tile_index extent, const bb_loop_options *o) {
  return b->depth > 0 && !o->spread && !o->once && o->part == BB_PART_ALL &&
         extent->op == BB_X_CONST && extent->number >= 1 && extent->number <= (double)o->block;
}

static bb_build_loop *single_loop(bb_build *b, const bb_build_loop *like) {
  for (uint32_t i = 0; i < b->singles; i++) {
    const bb_build_loop *l = b->single[i];
    if (l->dim == like->dim && l->block == like->block && l->limit == like->limit)
      return b->single[i];
  }
  BB_GROW(b->arena, b->single, b->single_capacity, b->singles + 1u);
  bb_build_loop *made = BB_NEW(b->arena, bb_build_loop, 1);
  *made = *like;
  made->start = made->element = bb_index_number(b, 0);
  return b->single[b->singles++] = made;
}

bb_build_loop *bb_build_begin(bb_build *b, bb_dim dim, const bb_loop_options *o) {
  if (b->depth + 1 >= BB_BUILD_DEPTH)
    bb_fail(b->ctx, BB_ERROR_UNSUPPORTED, "no kernel: loops nested more than %d deep",
            BB_BUILD_DEPTH);
  bb_build_loop *loop = BB_NEW(b->arena, bb_build_loop, 1);
  const bb_dim_info *info = bb_dim_get(b->program, dim);
  bb_tile_index extent = o->length ? o->length : bb_index_extent(b, dim);
  *loop = (bb_build_loop){.dim = dim,
                          .blocked = info->blocked,
                          .block = o->block,
                          .variable = BB_NONE,
                          .limit = extent,
                          .ghost = o->once && !info->blocked,
                          .single = is_single(b, extent, o)};
  loop->clean =
      o->block == 1 || (extent->op == BB_X_CONST && (int64_t)extent->number % o->block == 0);
  if (loop->single) return single_loop(b, loop);
  const char *name = bb_arena_printf(b->arena, "i%u", b->tile->variables);
  loop->variable = bb_tile_add_variable(b->tile, name, false);
  loop->depth = b->depth + 1;
  loop->start = loop->element = bb_index_variable(b, loop->variable);
  if (o->counts)
    loop->start = bb_index_times(b, loop->start, bb_index_number(b, o->block));
  else if (o->block > 1)
    loop->element =
        bb_expr_make(b->program, BB_X_DIV, loop->start, bb_index_number(b, o->block), NULL);
  b->depth++;
  b->frame[b->depth] = (bb_build_frame){.loop = loop};
  return loop;
}

/* How many iterations there are, or where the last ends: a list of partial results has an element for
 * each block. */
static bb_tile_index blocks_of(bb_build *b, const bb_build_loop *loop) {
  bb_tile_index more = bb_index_add(b, loop->limit, bb_index_number(b, loop->block - 1));
  return bb_expr_make(b->program, BB_X_DIV, more, bb_index_number(b, loop->block), NULL);
}

/* The first element of chunk number `chunk`: chunks have whole blocks, as equal in number as can be. */
static bb_tile_index chunk_start(bb_build *b, const bb_build_loop *loop, const bb_loop_options *o,
                                 bb_tile_index chunk) {
  bb_tile_index blocks = bb_index_times(b, blocks_of(b, loop), chunk);
  bb_tile_index first =
      bb_expr_make(b->program, BB_X_DIV, blocks, bb_index_number(b, o->chunks), NULL);
  return bb_index_times(b, first, bb_index_number(b, loop->block));
}

void bb_build_end(bb_build *b, const bb_build_loop *loop, const bb_loop_options *o) {
  if (loop->single) return;
  bb_tile_body holder = {0};
  bb_tile_stmt *stmt = bb_tile_append(b->tile, &holder, BB_TILE_LOOP);
  bb_tile_loop *made = stmt->loop;
  int64_t step = o->counts ? 1 : loop->block;
  bb_tile_index first = bb_index_number(b, 0), second = bb_index_number(b, step);
  bb_tile_index end = o->counts ? blocks_of(b, loop) : loop->limit;
  if (o->once) end = bb_expr_make(b->program, BB_X_MAX, end, bb_index_number(b, 1), NULL);
  made->variable = loop->variable;
  made->parallel = o->parallel;
  made->commutes = o->commutes && !o->parallel;
  made->spread = o->spread ? BB_SPREAD_GRID : BB_SPREAD_NONE;
  made->step = second;
  made->stretches = 1;
  made->stretch[0] = (bb_tile_stretch){first, end};
  if (o->part == BB_PART_REST) made->stretch[0].from = second;
  if (o->part == BB_PART_CHUNK) {
    bb_tile_index next = bb_index_add(b, o->chunk, bb_index_number(b, 1));
    made->stretch[0].from = chunk_start(b, loop, o, o->chunk);
    made->stretch[0].to = chunk_start(b, loop, o, next);
  }
  if (o->part == BB_PART_FIRST)
    made->stretch[0].to = bb_expr_make(b->program, BB_X_MIN, second, end, NULL);
  made->body = b->frame[b->depth].body;
  b->depth--;
  push(b, &b->frame[b->depth].body, stmt);
}

/* --- tiles --- */

void bb_tile_shape(bb_build *b, uint32_t tile, const bb_build_loop *row, const bb_build_loop *col) {
  int64_t rows = row ? row->block : 0, cols = col ? col->block : 0;
  int64_t size = (rows ? rows : 1) * (cols ? cols : 1);
  if (rows > BB_TILE_SIZE || cols > BB_TILE_SIZE || size > BB_TILE_SIZE)
    bb_fail(b->ctx, BB_ERROR_UNSUPPORTED, "no kernel: a tile of %lld elements", (long long)size);
  b->tile->tile[tile].rows = (uint32_t)rows;
  b->tile->tile[tile].cols = (uint32_t)cols;
  b->fact[tile].row = row;
  b->fact[tile].col = col;
}

uint32_t bb_build_tile(bb_build *b, bb_dtype dtype, const bb_build_loop *row,
                       const bb_build_loop *col, uint32_t depth) {
  bb_tile tile = {
      .name = bb_arena_printf(b->arena, "t%u", b->tile->tiles), .dtype = dtype, .buffers = 1};
  uint32_t made = bb_tile_add(b->tile, &tile);
  BB_GROW(b->arena, b->fact, b->fact_capacity, made + 1u);
  b->fact[made] = (bb_tile_fact){.depth = bb_build_place(b, depth)};
  bb_tile_shape(b, made, row, col);
  return made;
}

bb_dtype bb_build_sum_dtype(bb_dtype dtype) {
  return dtype == BB_F16 || dtype == BB_BF16 ? BB_F32 : dtype;
}

uint32_t bb_tile_as(bb_build *b, uint32_t tile, bb_dtype dtype) {
  bb_dtype own = b->tile->tile[tile].dtype;
  if (own == dtype) return tile;
  bb_tile_fact fact = b->fact[tile];
  uint32_t result = bb_build_tile(b, dtype, fact.row, fact.col, fact.depth);
  const bb_expr *expr = bb_expr_cast(b->program, dtype, bb_expr_arg(b->program, own, 0));
  bb_build_map_into(b, result, fact.depth, expr, 1, &tile);
  return result;
}

bb_tile_index bb_build_chunk(bb_build *b, const bb_node *node, int64_t *chunks) {
  const bb_numbering *chunk = node->chunk;
  bb_tile_index number = bb_index_number(b, 0);
  uint32_t around = b->map_depth, *place = BB_NEW(b->arena, uint32_t, chunk->count);
  *chunks = 1;
  for (uint32_t i = chunk->count; i-- > 0; place[i] = around)
    while (around-- > 0 && b->map[around]->dim != chunk->dim[i]) {
    }
  for (uint32_t i = 0; i < chunk->count; i++) {
    int64_t extent = bb_extent_value(bb_dim_get(b->program, chunk->dim[i])->extent);
    if (extent < 1 || *chunks > BB_FOLD_CHUNKS)
      bb_build_refuse(b, node, "a number of chunks that is not known");
    *chunks *= extent;
    number = bb_index_add(b, bb_index_times(b, number, bb_index_number(b, extent)),
                          b->map[place[i]]->element);
  }
  return number;
}
