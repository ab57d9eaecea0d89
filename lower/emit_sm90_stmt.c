/* emit_sm90_stmt.c - the code of one statement, in the warps that compute. */
#include "emit_sm90.h"
#include "infix.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const fold_name[] = {[BB_MONOID_SUM] = "tl::Sum",
                                        [BB_MONOID_MAX] = "tl::Max",
                                        [BB_MONOID_MIN] = "tl::Min",
                                        [BB_MONOID_PROD] = "tl::Prod"};

void bb_cuda_line(bb_cuda *e, const char *format, ...) {
  bb_put(e->out, "%*s", (int)(2 * e->depth), "");
  va_list arguments;
  va_start(arguments, format);
  bb_put_vprintf(e->out, format, arguments);
  va_end(arguments);
  bb_put(e->out, "\n");
}

const char *bb_cuda_narrow(bb_dtype dtype) {
  return dtype == BB_BF16 ? "bf16" : "f16";
}

const char *bb_cuda_type(bb_dtype dtype) {
  switch (dtype) {
  case BB_F32: return "float";
  case BB_BOOL: return "unsigned char";
  case BB_I32: return "int";
  case BB_I64: return "long long";
  default: return "tl::u16";
  }
}

const char *bb_cuda_value_type(const bb_tile *tile) {
  if (tile->dtype == BB_BOOL) return "bool";
  return bb_dtype_is_float(tile->dtype) ? "float" : bb_cuda_type(tile->dtype);
}

const char *bb_cuda_buffer(const bb_cuda *e, uint32_t tile) {
  const bb_cuda_tile *plan = &e->tile[tile];
  if (!plan->ring) return bb_arena_printf(e->arena, "%s_at", plan->name);
  if (e->sm80 && !bb_cuda80_turns(e, tile)) return bb_arena_printf(e->arena, "%s_at", plan->name);
  if (e->sm80)
    return bb_arena_printf(e->arena, "(%s_at + turns.at * %u)", plan->name, plan->stride);
  return bb_arena_printf(e->arena, "(%s_at + %s_ring.at * %u)", plan->name, plan->name,
                         plan->stride);
}

/* --- maps --- */

/* The expression below a narrowing that the destination does by itself. */
static const bb_expr *below_cast(const bb_cuda *e, const bb_tile_stmt *s) {
  bb_dtype dtype = bb_cuda_tile_of(e, s->result)->dtype;
  return s->expr->op == BB_X_CAST && s->expr->dtype == dtype ? s->expr->a[0] : s->expr;
}

static bool asks_for(const bb_expr *x, bool row) {
  if (x->op == BB_X_COORD) return (x->index == BB_COORD_ROW) == row;
  for (uint32_t i = 0; x->coord && i < bb_expr_op_arity(x->op); i++)
    if (asks_for(x->a[i], row)) return true;
  return false;
}

static void put_place(bb_cuda *e, const char *name, bb_tile_index at, const char *mine) {
  bb_cuda_line(e, "const int %s = %s;", name,
               bb_infix(e->arena, bb_cuda_index(e, at, NULL), "+", mine));
}

static const char *at_pair(const bb_cuda *e, const char *first, uint32_t i) {
  return bb_infix(e->arena, first, "+", bb_arena_printf(e->arena, "%u", i));
}

/* The head of a loop over a thread's elements of a tile: all, or those of the part at hand. */
static const char *over_elements(const bb_cuda *e, const bb_cuda_tile *c) {
  uint32_t n = e->part;
  if (!n) return bb_arena_printf(e->arena, "for (int e = 0; e < %u; e++)", c->registers);
  return bb_arena_printf(e->arena, "for (int e = part * %u; e < part * %u + %u; e++)", n, n, n);
}

void bb_cuda_pairs(bb_cuda *e, const bb_tile_stmt *s, bb_buffer *out, const char *format,
                   uint32_t pairs, uint32_t ct) {
  const bb_expr *inner = below_cast(e, s);
  for (uint32_t i = 0; i < pairs; i++) {
    const char *lo = at_pair(e, format, 2 * i);
    const char *hi = at_pair(e, format, 2 * i + 1);
    bb_put(out, "%stl::pack_%s(%s, %s)", i ? ", " : "",
           bb_cuda_narrow(bb_cuda_tile_of(e, s->result)->dtype),
           bb_cuda_value(e, s, inner, lo, BB_LAYOUT_FRAGMENT, ct),
           bb_cuda_value(e, s, inner, hi, BB_LAYOUT_FRAGMENT, ct));
  }
}

static void put_map_shared(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  bb_buffer pairs = {.arena = e->arena};
  const char *at = bb_cuda_buffer(e, s->result);
  if (s->operands == 0) { /* one value: where it lies does not matter */
    const char *value = bb_cuda_value(e, s, below_cast(e, s), "0", BB_LAYOUT_FRAGMENT, 1);
    if (e->tile[s->result].late) bb_cuda_line(e, "tl::named_sync(7, %u);", 32 * e->warp_count);
    bb_cuda_line(e, "for (int i = my_thread * 4; i < %u; i += %u)", bb_tile_shared_bytes(t),
                 32 * e->warp_count * 4);
    bb_cuda_line(e, "  tl::store_word(%s + i, tl::pack_%s(%s, %s));", at, bb_cuda_narrow(t->dtype),
                 value, value);
    if (!e->sm80) bb_cuda_line(e, "tl::fence_copies();");
    bb_cuda_line(e, "tl::named_sync(7, %u);", 32 * e->warp_count);
    return;
  }
  uint32_t split = e->warps ? 16 : e->group * e->groups, rt = split / 16 / e->warp_count;
  if (t->rows != split || e->tile[s->result].ring)
    bb_cuda_refuse(e, s, "a shared tile that is not the groups' rows");
  if (e->tile[s->result].late) /* all have read what lay there */
    bb_cuda_line(e, "tl::named_sync(7, %u);", 32 * e->warp_count);
  if (!e->sm80) bb_cuda_line(e, "if (tl::lane() == 0) tl::put_read();");
  bb_cuda_line(e, "__syncwarp();");
  for (uint32_t r = 0; r < rt; r++) {
    const char *row = r ? bb_arena_printf(e->arena, "my_rows + %u", 16 * r) : "my_rows";
    const char *first = r ? bb_arena_printf(e->arena, "%u + 8 * k", r * t->cols / 2) : "8 * k";
    pairs.length = 0;
    bb_cuda_pairs(e, s, &pairs, first, 4, t->cols / 8);
    bb_cuda_line(e, "TL_UNROLL for (int k = 0; k < %u; k++)", t->cols / 16);
    bb_cuda_line(e,
                 "  tl::store_matrix(%s + tl::piece(%u, %s + (tl::lane() & 15), 2 * k + "
                 "(tl::lane() >> 4)), %s);",
                 at, t->rows, row, pairs.data);
  }
  if (!e->sm80) bb_cuda_line(e, "tl::fence_copies();");
  bb_cuda_line(e, "__syncwarp();");
}

/* A warp's rows of a shared tile, in so many parts, as a left operand. */
static void put_left(bb_cuda *e, const char *to, uint32_t tile, uint32_t parts) {
  const char *part = parts > 1 ? bb_arena_printf(e->arena, " %% %u", e->group) : "";
  const char *tiles = e->group > 64 ? bb_arena_printf(e->arena, "<%u>", e->group / 64) : "";
  bb_cuda_line(e, "tl::load_left%s(%s, %s, %u, my_rows%s);", tiles, to, bb_cuda_buffer(e, tile),
               bb_cuda_tile_of(e, tile)->rows / parts, part);
}

static bool reads_shared(const bb_cuda *e, const bb_tile_stmt *s) {
  for (uint32_t i = 0; i < s->operands; i++)
    if (bb_cuda_tile_of(e, s->operand[i])->place == BB_PLACE_SHARED) return true;
  return false;
}

/* 16 columns of a shared operand, as a left operand would have them. */
static void put_raw(bb_cuda *e, uint32_t tile, uint32_t row) {
  const char *name = e->tile[tile].name, *at = "my_rows";
  uint32_t parts = e->tile[tile].parts ? e->tile[tile].parts : 1;
  if (parts > 1) at = bb_arena_printf(e->arena, "my_rows %% %u", e->group);
  if (row) at = bb_arena_printf(e->arena, "%s + %u", at, row);
  bb_cuda_line(e, "  tl::u32 raw_%s[4];", name);
  bb_cuda_line(e,
               "  tl::load_matrix(%s + tl::piece(%u, %s + (tl::lane() & 15), 2 * k + (tl::lane() "
               ">> 4)), raw_%s[0], raw_%s[1], raw_%s[2], raw_%s[3]);",
               bb_cuda_buffer(e, tile), bb_cuda_tile_of(e, tile)->rows / parts, at, name, name,
               name, name);
}

static void put_map_over_shared(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_cuda_tile *c = &e->tile[s->result];
  bool left = c->layout == BB_LAYOUT_LEFT;
  e->raw = true;
  for (uint32_t r = 0; r < c->rt; r++) {
    bool *named = BB_NEW(e->arena, bool, e->p->tiles + 1);
    uint32_t before = r * 4 * c->ct; /* elements */
    const char *first = before ? bb_arena_printf(e->arena, "%u + 8 * k", before) : "8 * k";
    bb_buffer pair = {.arena = e->arena};
    bb_cuda_line(e, "TL_UNROLL for (int k = 0; k < %u; k++) {", c->ct / 2);
    for (uint32_t i = 0; i < s->operands; i++) {
      uint32_t tile = s->operand[i];
      if (e->tile[tile].layout == BB_LAYOUT_SHARED && !named[tile]) put_raw(e, tile, 16 * r);
      named[tile] = true;
    }
    if (left) {
      bb_cuda_pairs(e, s, &pair, "2 * i", 1, c->ct);
      bb_cuda_line(e, "  TL_UNROLL for (int i = (%s) / 2; i < (%s) / 2 + 4; i++) %s[i] = %s;",
                   first, first, c->name, pair.data);
    } else {
      bb_cuda_line(e, "  TL_UNROLL for (int e = %s; e < %s + 8; e++) %s[e] = %s;", first, first,
                   c->name, bb_cuda_value(e, s, s->expr, "e", c->layout, c->ct));
    }
    bb_cuda_line(e, "}");
  }
  e->raw = false;
  if (left) bb_cuda_line(e, "tl::pin(%s);", c->name);
}

static void put_map_registers(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *t = bb_cuda_tile_of(e, s->result),
                *from = s->operands ? bb_cuda_tile_of(e, s->operand[0]) : NULL;
  const bb_cuda_tile *c = &e->tile[s->result];
  bb_buffer pairs = {.arena = e->arena};
  bool left = c->layout == BB_LAYOUT_LEFT;
  if (left && s->expr->op != BB_X_ARG && reads_shared(e, s)) {
    put_map_over_shared(e, s);
  } else if (left && from && from->place == BB_PLACE_SHARED) {
    uint32_t parts = e->tile[s->operand[0]].parts;
    put_left(e, c->name, s->operand[0], parts);
    bb_cuda_line(e, "tl::pin(%s);", c->name);
  } else if (left) {
    bb_cuda_pairs(e, s, &pairs, "2 * i", 1, c->ct);
    bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++) %s[i] = %s;", c->registers, c->name,
                 pairs.data);
  } else if (c->layout == BB_LAYOUT_RIGHT) {
    if (t->cols != 8) bb_cuda_refuse(e, s, "a right operand of other than 8 columns");
    if (c->flipped) bb_cuda_refuse(e, s, "a right operand that is made the other way round");
    bb_cuda_pairs(e, s, &pairs, "2 * i", 1, 1);
    bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++) %s[i] = tl::transpose_8x8(%s);",
                 c->registers, c->name, pairs.data);
  } else if (c->layout == BB_LAYOUT_SPREAD && from && from->place == BB_PLACE_SHARED) {
    if (s->expr->op != BB_X_CAST || s->expr->a[0]->op != BB_X_ARG)
      bb_cuda_refuse(e, s, "a block that is spread over the threads is only widened");
    bb_cuda_line(e, "tl::load_spread_%s<%u, %u, %u>(%s, %s, my_thread);",
                 bb_cuda_narrow(from->dtype), t->rows, t->cols, 32 * e->warp_count, c->name,
                 bb_cuda_buffer(e, s->operand[0]));
  } else if (reads_shared(e, s)) {
    put_map_over_shared(e, s);
  } else if (bb_cuda_is_truth(t)) {
    bb_cuda_line(e, "%s = %s;", c->name, bb_cuda_value(e, s, s->expr, "0", c->layout, 1));
  } else {
    bb_cuda_line(e, "TL_UNROLL %s %s[e] = %s;", over_elements(e, c), c->name,
                 bb_cuda_value(e, s, s->expr, "e", c->layout, c->ct ? c->ct : 1));
  }
}

/* Parts of a sum become whole. */
static void put_settle(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_cuda_tile *c = &e->tile[s->result], *from = &e->tile[s->operand[0]];
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) %s[e] = %s[e];", c->registers, c->name,
               from->name);
  if (c->layout == BB_LAYOUT_SPREAD)
    bb_cuda_line(e, "%s[0] = tl::fold_lanes<tl::Sum, 1, %u>(%s[0]);", c->name,
                 32 * e->warp_count / t->rows, c->name);
  else
    bb_cuda_line(e, "tl::fold_%s<tl::Sum>(%s);", t->rows ? "quads" : "octets", c->name);
}

static void put_map(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  bool row = s->at[0] && asks_for(s->expr, true), col = s->at[1] && asks_for(s->expr, false);
  bool block = row || col;
  if (block) {
    bb_cuda_line(e, "{");
    e->depth++;
  }
  if (row) put_place(e, "at_row", s->at[0], "my_row");
  if (col) put_place(e, "at_col", s->at[1], "my_col");
  if (e->single)
    bb_cuda_line(e, "one_%s = %s;", e->tile[s->result].name,
                 bb_cuda_value(e, s, s->expr, "e", BB_LAYOUT_FRAGMENT, e->single));
  else if (s->operands == 1 && bb_cuda_tile_of(e, s->operand[0])->partial && !t->partial)
    put_settle(e, s);
  else if (t->place == BB_PLACE_SHARED)
    put_map_shared(e, s);
  else
    put_map_registers(e, s);
  if (!block) return;
  e->depth--;
  bb_cuda_line(e, "}");
}

static void put_any(bb_cuda *e, const bb_tile_stmt *s) {
  uint32_t rt = 0, ct = 0;
  for (uint32_t i = 0; i < s->operands; i++) {
    if (e->tile[s->operand[i]].rt) rt = e->tile[s->operand[i]].rt;
    if (e->tile[s->operand[i]].ct) ct = e->tile[s->operand[i]].ct;
  }
  uint32_t count = rt && ct ? 4 * rt * ct : rt || ct ? 2 * (rt + ct) : 1;
  const char *name = e->tile[s->result].name;
  bb_cuda_line(e, "%s = false;", name);
  bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) %s |= %s;", count, name,
               bb_cuda_value(e, s, s->expr, "e", BB_LAYOUT_FRAGMENT, ct ? ct : 1));
  bb_cuda_line(e, "%s = __any_sync(~0u, %s);", name, name);
}

static void put_fold(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_cuda_tile *from = &e->tile[s->operand[0]], *c = &e->tile[s->result];
  const bb_tile *t = bb_cuda_tile_of(e, s->operand[0]);
  if (s->monoid->id > BB_MONOID_PROD || s->second != BB_NONE || !bb_dtype_is_float(t->dtype))
    bb_cuda_refuse(e, s, "a fold without a device form");
  const char *f = fold_name[s->monoid->id];
  if (from->layout == BB_LAYOUT_SPREAD) {
    if (s->axis != BB_AXIS_COL) bb_cuda_refuse(e, s, "a fold across threads' rows");
    bb_cuda_line(e, "%s[0] = %s[0];", c->name, from->name);
    bb_cuda_line(e, "TL_UNROLL for (int e = 1; e < %u; e++) %s[0] = %s::of(%s[0], %s[e]);",
                 from->registers, c->name, f, c->name, from->name);
    if (!bb_cuda_tile_of(e, s->result)->partial)
      bb_cuda_line(e, "%s[0] = tl::fold_lanes<%s, 1, %u>(%s[0]);", c->name, f,
                   32 * e->warp_count / t->rows, c->name);
    return;
  }
  if (from->layout != BB_LAYOUT_FRAGMENT || c->layout != BB_LAYOUT_FRAGMENT)
    bb_cuda_refuse(e, s, "a fold of what lies as an operand");
  bool rows = s->axis == BB_AXIS_ROW;
  if (rows && !e->warps) bb_cuda_refuse(e, s, "a fold across the rows of a warp group");
  bb_cuda_line(e, "tl::fold_%s<%s, %u, %u>(%s, %s);", rows ? "rows" : "cols", f, from->rt, from->ct,
               c->name, from->name);
  if (!bb_cuda_tile_of(e, s->result)->partial)
    bb_cuda_line(e, "tl::fold_%s<%s>(%s);", rows ? "octets" : "quads", f, c->name);
}

static void put_transpose(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *t = bb_cuda_tile_of(e, s->operand[0]);
  const bb_cuda_tile *from = &e->tile[s->operand[0]], *c = &e->tile[s->result];
  bool fragment = from->layout == BB_LAYOUT_FRAGMENT && !e->warps;
  if ((from->layout != BB_LAYOUT_SPREAD && !fragment) || t->cols || t->rows > 256)
    bb_cuda_refuse(e, s, "a transposition of this layout");
  uint32_t threads = 32 * e->warp_count;
  bb_cuda_line(e, "tl::named_sync(7, %u);", threads);
  if (fragment)
    bb_cuda_line(
        e,
        "if ((tl::lane() & 3) == 0) TL_UNROLL for (int e = 0; e < %u; e++) exchange[my_row + "
        "8 * e] = %s[e];",
        from->registers, from->name);
  else
    bb_cuda_line(e, "if (my_thread %% %u == 0) exchange[my_thread / %u] = %s[0];",
                 threads / t->rows, threads / t->rows, from->name);
  bb_cuda_line(e, "tl::named_sync(7, %u);", threads);
  bb_cuda_line(
      e, "TL_UNROLL for (int e = 0; e < %u; e++) %s[e] = exchange[my_col + 4 * e - 3 * (e & 1)];",
      c->registers, c->name);
}

/* --- memory --- */

/* The coordinates of a box, innermost first; `row` and `col` are added along the tile's axes. */
const char *bb_cuda_box_at(bb_cuda *e, const bb_tile_stmt *s, const char *row, const char *col) {
  bb_buffer out = {.arena = e->arena};
  for (uint32_t i = e->p->view[s->view].rank; i-- > 0;) {
    const bb_tile_range *r = &s->range[i];
    const char *start = bb_cuda_index(e, r->start, NULL);
    const char *more = !r->size ? "0" : r->axis == BB_AXIS_ROW ? row : col;
    bb_put(&out, ", %s", bb_infix(e->arena, start, "+", more));
  }
  return out.data;
}

void bb_cuda_load(bb_cuda *e, const bb_tile_stmt *s, uint32_t row, const char *buffer,
                  const char *barrier) {
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  const bb_cuda_map *map = &e->map[e->tile[s->result].map];
  const char *first = bb_arena_printf(e->arena, "%u", row);
  if (e->tile[s->result].mated) {
    bb_cuda_load_half(e, s, buffer, barrier);
    return;
  }
  const char *box = bb_cuda_box(e, s, row);
  if (map->fold > 1) {
    int start = (int)s->range[e->p->view[s->view].rank - 1].start->number;
    bb_cuda_line(e, "tl::copy_box(%s, %s, %s%s, %d);", buffer, box, barrier,
                 bb_cuda_box_at(e, s, first, bb_arena_printf(e->arena, "%d", -start)), start / 64);
  } else if (t->cols <= 64) {
    bb_cuda_line(e, "tl::copy_box(%s, %s, %s%s);", buffer, box, barrier,
                 bb_cuda_box_at(e, s, first, "0"));
  } else {
    bb_cuda_line(e, "TL_UNROLL for (int c = 0; c < %u; c += 64)", t->cols);
    bb_cuda_line(e, "  tl::copy_box(%s + c * %u, %s, %s%s);", buffer, map->rows * 2, box, barrier,
                 bb_cuda_box_at(e, s, first, "c"));
  }
}

/* Which element of one of two ranges along the rows a row is in; `within`: it is in one at all. */
static const char *row_of_range(bb_cuda *e, const bb_tile_stmt *s, uint32_t range, const char *row,
                                const char **within) {
  uint32_t inner = 1;
  bool first = true;
  for (uint32_t i = 0; i < e->p->view[s->view].rank; i++) {
    bool is_row = s->range[i].size && s->range[i].axis == BB_AXIS_ROW;
    if (is_row && i < range) first = false;
    if (is_row && i > range) inner *= s->range[i].size;
  }
  const char *all = bb_arena_printf(e->arena, "%u", inner * s->range[range].size);
  if (first) *within = bb_infix(e->arena, row, "<", all);
  if (first) return bb_infix(e->arena, row, "/", bb_arena_printf(e->arena, "%u", inner));
  return bb_infix(e->arena, row, "%", all);
}

const char *bb_cuda_offset(bb_cuda *e, const bb_tile_stmt *s, const char *row, const char *col,
                           const char **inside) {
  const bb_tile_view *view = &e->p->view[s->view];
  const char *offset = "0", *limit = NULL;
  bool two = bb_tile_has_two_rows(s, view->rank);
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &s->range[i];
    const char *extent = bb_cuda_index(e, view->extent[i], NULL);
    const char *more = !r->size ? "0" : r->axis == BB_AXIS_ROW ? row : col, *taken = NULL;
    if (two && r->size && r->axis == BB_AXIS_ROW) more = row_of_range(e, s, i, row, &taken);
    if (taken) limit = limit ? bb_arena_printf(e->arena, "%s && %s", limit, taken) : taken;
    const char *at = bb_infix(e->arena, bb_cuda_index(e, r->start, NULL), "+", more);
    const char *within = r->size || view->padded ? bb_infix(e->arena, at, "<", extent) : NULL;
    if (view->padded)
      within = bb_arena_printf(e->arena, "%s && %s", bb_infix(e->arena, "0", "<=", at), within);
    if (within) limit = limit ? bb_arena_printf(e->arena, "%s && %s", limit, within) : within;
    if (view->strided || i == 0) at = bb_arena_printf(e->arena, "(long long)(%s)", at);
    const char *by = view->strided ? bb_cuda_index(e, view->stride[i], NULL) : extent;
    if (view->strided)
      at = bb_infix(e->arena, at, "*", by);
    else if (i)
      offset = bb_infix(e->arena, offset, "*", by);
    offset = bb_infix(e->arena, offset, "+", at);
  }
  *inside = limit ? limit : "true";
  return offset;
}

/* The row and column of element e of a thread's share of a tile, or of the element that is worked at (e->single). */
static void put_places(bb_cuda *e, const bb_tile *t, uint32_t ct) {
  if (e->single) ct = e->single;
  if (e->single || (t->rows && t->cols))
    bb_cuda_line(
        e, "  const int row = my_row + 8 * tl::row_of<%u>(e), col = my_col + tl::col_at<%u>(e);",
        ct, ct);
  else if (t->rows)
    bb_cuda_line(e, "  const int row = my_row + 8 * e;");
  else if (t->cols)
    bb_cuda_line(e, "  const int col = my_col + 4 * e - 3 * (e & 1);");
}

static bool has_registers(bb_dtype dtype) {
  return dtype == BB_F16 || dtype == BB_BF16 || dtype == BB_F32 || dtype == BB_I32 ||
         dtype == BB_I64 || dtype == BB_BOOL;
}

/* Each thread its own elements. */
static void put_fragment_load(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_cuda_tile *c = &e->tile[s->result];
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  const char *inside, *at = bb_cuda_offset(e, s, "row", "col", &inside);
  if (e->single)
    bb_cuda_line(e, "{");
  else
    bb_cuda_line(e, "TL_UNROLL %s {", over_elements(e, c));
  put_places(e, t, c->ct);
  const char *value =
      bb_arena_printf(e->arena, "__ldg(p.%s + %s)", bb_cuda_view_name(e, s->view), at);
  if (t->dtype == BB_F16 || t->dtype == BB_BF16)
    value = bb_arena_printf(e->arena, "tl::float_%s(%s)", bb_cuda_narrow(t->dtype), value);
  bb_dtype dtype = bb_dtype_is_float(t->dtype) ? BB_F32 : t->dtype;
  const char *pad = bb_cuda_index(e, bb_expr_const(e->p->home, dtype, s->pad), NULL);
  const char *to = e->single             ? bb_arena_printf(e->arena, "one_%s", c->name)
                   : bb_cuda_is_truth(t) ? c->name
                                         : bb_arena_printf(e->arena, "%s[e]", c->name);
  if (strcmp(inside, "true") == 0)
    bb_cuda_line(e, "  %s = %s;", to, value);
  else
    bb_cuda_line(e, "  %s = %s ? %s : %s;", to, inside, value, pad);
  bb_cuda_line(e, "}");
}

static void put_load(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_cuda_tile *c = &e->tile[s->result];
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  if (c->ring || c->added) return; /* the copier's, or in pieces */
  if (c->layout == BB_LAYOUT_FRAGMENT && has_registers(t->dtype)) {
    put_fragment_load(e, s);
    return;
  }
  if (c->layout != BB_LAYOUT_RIGHT || e->p->view[s->view].padded || s->pad != 0)
    bb_cuda_refuse(e, s, "a load to registers that are no right operand");
  bb_cuda_load_right(e, s);
}

static void put_store(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_cuda_tile *c = &e->tile[s->operand[0]];
  const bb_tile *t = bb_cuda_tile_of(e, s->operand[0]);
  if (t->place == BB_PLACE_SHARED && e->sm80) {
    bb_cuda80_put(e, s);
    return;
  }
  if (t->place == BB_PLACE_SHARED) {
    bb_cuda_line(e, "if (tl::lane() == 0) {");
    bb_cuda_line(e, "  TL_UNROLL for (int c = 0; c < %u; c += 64)", t->cols);
    bb_cuda_line(e, "    tl::put_box(&p.%s, tile_memory + %u + c * %u + my_rows * 128%s);",
                 e->map[c->map].name, c->offset, t->rows * 2, bb_cuda_box_at(e, s, "my_rows", "c"));
    bb_cuda_line(e, "  tl::put_commit();");
    bb_cuda_line(e, "}");
    return;
  }
  if (c->layout != BB_LAYOUT_FRAGMENT || (!t->rows && !t->cols) || !bb_dtype_is_float(t->dtype))
    bb_cuda_refuse(e, s, "a store of this layout");
  const char *inside, *at = bb_cuda_offset(e, s, "row", "col", &inside);
  bool wide = t->dtype == BB_F32;
  const char *value = bb_arena_printf(e->arena, e->single ? "one_%s" : "%s[e]", c->name);
  if (e->single)
    bb_cuda_line(e, "{");
  else
    bb_cuda_line(e, "TL_UNROLL %s {", over_elements(e, c));
  put_places(e, t, c->ct);
  if (wide)
    bb_cuda_line(e, "  if (%s) p.%s[%s] = %s;", inside, bb_cuda_view_name(e, s->view), at, value);
  else
    bb_cuda_line(e, "  if (%s) p.%s[%s] = (tl::u16)tl::pack_%s(%s, 0.f);", inside,
                 bb_cuda_view_name(e, s->view), at, bb_cuda_narrow(t->dtype), value);
  bb_cuda_line(e, "}");
}

void bb_cuda_stmt(bb_cuda *e, const bb_tile_stmt *s) {
  bb_buffer text = {.arena = e->arena};
  bb_tile_print_head(&text, e->p, s);
  bool elsewhere = s->kind == BB_TILE_LOAD && e->tile[s->result].ring;
  if (!elsewhere && (s->kind != BB_TILE_DOT || bb_cuda_is_async(e, s)))
    bb_cuda_line(e, "// %s", text.data);
  switch (s->kind) {
  case BB_TILE_LOAD: put_load(e, s); break;
  case BB_TILE_STORE:
    if (!e->single) bb_cuda_put_write(e); /* else before them all */
    e->tile[s->operand[0]].pieces ? bb_cuda_put_pieces(e, s) : put_store(e, s);
    break;
  case BB_TILE_MAP:
    if (!e->tile[s->result].pieces) put_map(e, s);
    break;
  case BB_TILE_ANY: put_any(e, s); break;
  case BB_TILE_DOT:
    bb_cuda_is_async(e, s) ? bb_cuda_async_dot(e, s) : bb_cuda_warp_dot(e, s, NULL);
    break;
  case BB_TILE_TRANSPOSE: put_transpose(e, s); break;
  case BB_TILE_FOLD: put_fold(e, s); break;
  case BB_TILE_SCAN: bb_cuda_refuse(e, s, "a scan");
  case BB_TILE_IF:
  case BB_TILE_WHEN:
    bb_cuda_line(e, "if (%s) {",
                 s->kind == BB_TILE_IF ? e->tile[s->operand[0]].name
                                       : bb_cuda_index(e, s->expr, NULL));
    e->depth++;
    for (uint32_t i = 0; i < s->body.count; i++) bb_cuda_stmt(e, s->body.stmt[i]);
    e->depth--;
    bb_cuda_line(e, "}");
    break;
  case BB_TILE_LOOP: bb_cuda_refuse(e, s, "a loop in this place");
  }
}
