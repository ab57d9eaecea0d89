/* emit_c_stmt.c - statements of a tile program in C. */
#include "emit_c_parts.h"
#include "tile_edit.h"

#include <inttypes.h>
#include <string.h>

static bb_arena *arena(const bb_c *c) {
  return c->out->arena;
}

const char *bb_c_pitch(const bb_c *c, uint32_t tile) {
  if (c->tile[tile].window) return bb_arena_printf(arena(c), "t%u_s", tile);
  return bb_arena_printf(arena(c), "%u", c->tile[tile].pitch);
}

/* --- loads and stores --- */

typedef struct place {
  const char *offset;      /* of element (0, 0) in the view */
  const char *row, *col;   /* strides */
  const char *rows, *cols; /* how many are inside the extents */
  const char *whole;       /* whether all are that anybody asks for, NULL: always */
  const char *other;       /* the same, along axes whose elements are all asked for */
  const char *first[2];    /* of a padded view: rows and columns before its begin */
  const char *there; /* of a padded view: whether its single indices are inside, NULL: always */
  /* Of rows that lie apart: this is where piece number y of so many lies, and rows of each; else 1. */
  uint32_t pieces, piece;
  const char *reached; /* of several: whether piece y is inside the extents */
} place;

static const char *join(bb_c *c, const char *a, const char *op, const char *b) {
  return a ? bb_arena_printf(arena(c), "%s%s%s", a, op, b) : b;
}

static uint32_t moved(const bb_tile_stmt *s) {
  return s->kind == BB_TILE_STORE ? s->operand[0] : s->result;
}

/* Of the tile's lines those are asked for that are there: all who read it stop where they end. */
static bool stops_at_lines(const bb_c *c, uint32_t tile, bb_axis axis) {
  const bb_tile *t = &c->p->tile[tile];
  const bb_c_tile *held = &c->tile[tile];
  bool line = t->rows && t->cols && axis == (held->turned ? BB_AXIS_COL : BB_AXIS_ROW);
  return line && !held->bundled && bb_c_is_live(c, tile, axis);
}

/* What a range of a padded view may have before the begin of its axis, and whether it has anything there. */
static void note_pad(bb_c *c, const bb_tile_range *r, const char *start, const char *extent,
                     const char *size, place *p) {
  if (r->size) {
    p->first[r->axis == BB_AXIS_COL] =
        bb_arena_printf(arena(c), "bb_clip(0, %s, -(%s))", size, start);
    p->whole = join(c, p->whole, " && ", bb_arena_printf(arena(c), "%s >= 0", start));
    return;
  }
  const char *inside = bb_arena_printf(arena(c), "%s >= 0 && %s < %s", start, start, extent);
  p->there = join(c, p->there, " && ", inside);
  p->whole = join(c, p->whole, " && ", inside);
}

/* Of a load or store with two ranges of rows: the first, and the second; BB_NONE: it has one. */
static void find_rows(const bb_c *c, const bb_tile_stmt *s, uint32_t *outer, uint32_t *inner) {
  const bb_tile_view *view = &c->p->view[s->view];
  *outer = *inner = BB_NONE;
  if (!bb_tile_has_two_rows(s, view->rank)) return;
  for (uint32_t i = 0; i < view->rank; i++)
    if (s->range[i].size && s->range[i].axis == BB_AXIS_ROW)
      *(*outer == BB_NONE ? outer : inner) = i;
}

static void find_strides(const bb_c *c, const bb_tile_view *view, bb_tile_index *stride) {
  bb_tile_index dense = bb_expr_const(c->p->home, BB_I64, 1);
  for (uint32_t i = view->rank; i-- > 0;) {
    stride[i] = view->strided ? view->stride[i] : dense;
    dense = bb_expr_make(c->p->home, BB_X_MUL, dense, view->extent[i], NULL);
  }
}

bool bb_c_is_in_pieces(const bb_c *c, const bb_tile_stmt *move) {
  const bb_tile_view *view = &c->p->view[move->view];
  uint32_t outer, inner;
  find_rows(c, move, &outer, &inner);
  if (outer == BB_NONE) return false;
  bb_tile_index stride[BB_TILE_RANK], extent = view->extent[inner];
  find_strides(c, view, stride);
  bool known = stride[outer]->op == BB_X_CONST && stride[inner]->op == BB_X_CONST &&
               extent->op == BB_X_CONST && bb_expr_is_number(move->range[inner].start, 0) &&
               !view->padded;
  return !known || extent->number != move->range[inner].size ||
         stride[outer]->number != stride[inner]->number * extent->number;
}

/* The outer one of two ranges.  Where rows follow each other in memory, so many of them lie inside; else it is one at a time, y behind
 * the first. */
static bb_tile_range take_piece(bb_c *c, const bb_tile_stmt *s, uint32_t outer, uint32_t inner,
                                place *p) {
  bb_tile_range r = s->range[outer];
  if (c->p->tile[moved(s)].rows != r.size * s->range[inner].size)
    bb_c_refuse(c, "two ranges of rows that are not all of a tile's");
  if (!bb_c_is_in_pieces(c, s)) return r;
  p->pieces = r.size;
  p->piece = s->range[inner].size;
  r.size = 0;
  return r;
}

static place place_of(bb_c *c, const bb_tile_stmt *s, uint32_t tile) {
  const bb_tile_view *view = &c->p->view[s->view];
  place p = {.row = "0", .col = "1", .rows = "1", .cols = "1", .first = {"0", "0"}, .pieces = 1};
  bb_tile_index stride[BB_TILE_RANK];
  uint32_t outer, inner;
  find_strides(c, view, stride);
  find_rows(c, s, &outer, &inner);
  const char *times = NULL; /* rows that are inside of the outer range of two, or whether one is */
  for (uint32_t i = 0; i < view->rank; i++) {
    bb_tile_range range = s->range[i];
    const bb_tile_range *r = &range;
    if (i == outer) range = take_piece(c, s, outer, inner, &p);
    const char *start = bb_c_index(c, r->start), *by = bb_c_index(c, stride[i]);
    const char *extent = bb_c_index(c, view->extent[i]);
    bool counted = i == outer && p.pieces > 1;
    if (counted) start = bb_arena_printf(arena(c), "(%s + y)", start);
    if (counted || !bb_expr_is_number(r->start, 0))
      p.offset =
          join(c, p.offset, " + ",
               bb_expr_is_number(stride[i], 1) ? start
                                               : bb_arena_printf(arena(c), "%s * %s", start, by));
    if (counted && !view->padded)
      times = p.reached = bb_arena_printf(arena(c), "(%s < %s)", start, extent);
    bool live = r->size && bb_c_is_live(c, tile, r->axis);
    const char *size =
        live ? bb_c_count(c, tile, r->axis) : bb_arena_printf(arena(c), "%u", r->size);
    if (view->padded) note_pad(c, r, start, extent, size, &p);
    if (!r->size) continue;
    const char *inside = live && !view->padded ? size
                                               : bb_arena_printf(arena(c), "bb_clip(%s, %s, %s)",
                                                                 start, size, extent);
    if (i == outer) times = inside;
    if (i == inner && times) inside = bb_arena_printf(arena(c), "%s * %s", times, inside);
    const char *all = bb_arena_printf(arena(c), "%s + %u <= %s", start, r->size, extent);
    if (view->padded || !stops_at_lines(c, tile, r->axis)) p.whole = join(c, p.whole, " && ", all);
    if (view->padded || !live) p.other = join(c, p.other, " && ", all);
    if (r->axis == BB_AXIS_ROW)
      p.row = by, p.rows = inside; /* of two, the second's */
    else
      p.col = by, p.cols = inside;
  }
  if (!p.offset) p.offset = "0";
  return p;
}

/* Where piece number y of a tile begins. */
static const char *piece_at(bb_c *c, uint32_t tile, const char *at, const place *p) {
  if (p->pieces == 1) return at;
  return bb_arena_printf(arena(c), "%s + y * (%u * %s)", at, p->piece, bb_c_row_stride(c, tile));
}

static void begin_pieces(bb_c *c, const place *p) {
  if (p->pieces == 1) return;
  bb_c_line(c, "for (int64_t y = 0; y < %u; y++) {", p->pieces);
  c->indent++;
}

static void end_pieces(bb_c *c, const place *p) {
  if (p->pieces == 1) return;
  c->indent--;
  bb_c_line(c, "}");
}

/* Lines of a padded view, and its fill around them, to `to`, whose lines lie `pitch` apart; of so many of so many elements. */
static void put_padded(bb_c *c, const bb_tile_stmt *s, const place *p, bool turned,
                       const char *call, const char *to, const char *pitch, const char *size[2]) {
  const char *step = turned ? p->col : p->row, *by = turned ? p->row : p->col;
  const char *lines = turned ? p->cols : p->rows, *along = turned ? p->rows : p->cols;
  const char *pad = bb_c_expression(
      c, bb_expr_const(c->p->home, c->p->tile[s->result].dtype, s->pad), NULL, NULL, NULL);
  bb_c_line(c, "{");
  c->indent++;
  bb_c_line(c, "const int64_t r = bb_min(%s, %s), c = bb_min(%s, %s);", p->first[turned], size[0],
            p->first[!turned], size[1]);
  bb_c_line(c, "const int64_t rows = %sbb_min(%s, %s) - r, cols = bb_min(%s, %s) - c;",
            p->there ? bb_arena_printf(arena(c), "!(%s) ? 0 : ", p->there) : "", lines, size[0],
            along, size[1]);
  bb_c_line(c, "bb_fill_%s(%s, %s, %s, %s, r, c, rows, cols, %s);", call, to, pitch, size[0],
            size[1], pad);
  bb_c_line(c, "if (rows > 0 && cols > 0)");
  bb_c_line(c,
            "  bb_load_%s(%s + r * (%s) + c, %s, rows, cols, v%u + %s + r * (%s) + c * (%s), %s, "
            "%s, rows, cols, %s);",
            call, to, pitch, pitch, s->view, p->offset, step, by, step, by, pad);
  c->indent--;
  bb_c_line(c, "}");
}

/* The tile into memory of its own, line beside line, with its padding where nothing is. */
static void put_copy(bb_c *c, const bb_tile_stmt *s, const place *p) {
  const bb_tile *t = &c->p->tile[s->result];
  const bb_c_tile *held = &c->tile[s->result];
  const bb_tile_view *view = &c->p->view[s->view];
  bool turned = held->turned;
  const char *step = turned ? p->col : p->row, *by = turned ? p->row : p->col;
  const char *lines = turned ? p->cols : p->rows, *along = turned ? p->rows : p->cols;
  const char *pad =
      bb_c_expression(c, bb_expr_const(c->p->home, t->dtype, s->pad), NULL, NULL, NULL);
  const char *call = held->narrow ? "narrow" : bb_c_memory_suffix(c, view->dtype);
  const char *to = bb_arena_printf(arena(c), "t%u%s", s->result, held->window ? "_own" : "");
  const char *rows = p->pieces == 1 ? bb_c_count(c, s->result, BB_AXIS_ROW)
                                    : bb_arena_printf(arena(c), "%u", p->piece);
  const char *size[2] = {turned ? bb_c_count(c, s->result, BB_AXIS_COL) : rows,
                         turned ? rows : bb_c_count(c, s->result, BB_AXIS_COL)};
  to = piece_at(c, s->result, to, p);
  begin_pieces(c, p);
  if (view->padded)
    put_padded(c, s, p, turned, call, to, bb_arena_printf(arena(c), "%u", held->pitch), size);
  else
    bb_c_line(c, "bb_load_%s(%s, %u, %s, %s, v%u + %s, %s, %s, %s, %s, %s);", call, to, held->pitch,
              size[0], size[1], s->view, p->offset, step, by, lines, along, pad);
  end_pieces(c, p);
}

const char *bb_c_is_whole(bb_c *c, const bb_tile_stmt *move) {
  return place_of(c, move, moved(move)).whole;
}

const char *bb_c_is_whole_but_live(bb_c *c, const bb_tile_stmt *move) {
  return place_of(c, move, moved(move)).other;
}

const char *bb_c_rows_there(bb_c *c, const bb_tile_stmt *move) {
  return place_of(c, move, moved(move)).rows;
}

uint32_t bb_c_pieces(bb_c *c, const bb_tile_stmt *move) {
  return place_of(c, move, moved(move)).pieces;
}

const char *bb_c_is_reached(bb_c *c, const bb_tile_stmt *move) {
  return place_of(c, move, moved(move)).reached;
}

const char *bb_c_place(bb_c *c, const bb_tile_stmt *move, const char *r, const char *col) {
  place p = place_of(c, move, moved(move));
  if (p.pieces > 1) r = bb_arena_printf(arena(c), "(%s - y * %u)", r, p.piece);
  return bb_arena_printf(arena(c), "v%u + %s + %s * (%s) + %s * (%s)", move->view, p.offset, r,
                         p.row, col, p.col);
}

static void point(bb_c *c, const bb_tile_stmt *s, const place *p) {
  bool turned = c->tile[s->result].turned;
  bb_c_line(c, "t%u = v%u + %s;", s->result, s->view, p->offset);
  bb_c_line(c, "t%u_s = %s;", s->result,
            turned                       ? p->col
            : c->p->tile[s->result].rows ? p->row
                                         : "0");
}

void bb_c_point(bb_c *c, const bb_tile_stmt *load) {
  place p = place_of(c, load, load->result);
  point(c, load, &p);
}

static void copy_in(bb_c *c, const bb_tile_stmt *s) {
  const bb_tile *t = &c->p->tile[s->result];
  const bb_c_tile *held = &c->tile[s->result];
  place p = place_of(c, s, s->result);
  if (held->panels) {
    bb_c_line(c, "t%u = v%u + %s;", s->result, s->view, p.offset);
    return;
  }
  if (!held->window) {
    put_copy(c, s, &p);
    return;
  }
  bb_c_line(c, "if (%s) {", p.whole ? p.whole : "true");
  c->indent++;
  point(c, s, &p);
  c->indent--;
  bb_c_line(c, "} else {");
  c->indent++;
  put_copy(c, s, &p);
  bb_c_line(c, "t%u = t%u_own;", s->result, s->result);
  bb_c_line(c, "t%u_s = %u;", s->result, t->cols ? held->pitch : 1);
  c->indent--;
  bb_c_line(c, "}");
}

void bb_c_load(bb_c *c, const bb_tile_stmt *s) {
  const bb_tile *t = &c->p->tile[s->result];
  bool turned = c->tile[s->result].turned;
  copy_in(c, s);
  if (bb_c_is_ahead(c, s->result)) bb_c_pack_ahead(c, s->result);
  if (c->tile[s->result].bundled)
    bb_c_line(c, "bb_bundle_%s(t%u_in, t%u, %s, %s, %u);", bb_c_suffix(c, t->dtype), s->result,
              s->result, bb_c_pitch(c, s->result),
              bb_c_count(c, s->result, turned ? BB_AXIS_ROW : BB_AXIS_COL),
              turned ? t->cols : t->rows);
}

const char *bb_c_row_stride(const bb_c *c, uint32_t tile) {
  if (c->tile[tile].turned) return "1";
  return c->p->tile[tile].cols || c->tile[tile].window ? bb_c_pitch(c, tile) : "1";
}
const char *bb_c_col_stride(const bb_c *c, uint32_t tile) {
  return c->tile[tile].turned ? bb_c_pitch(c, tile) : "1";
}

void bb_c_store(bb_c *c, const bb_tile_stmt *s) {
  uint32_t from = s->operand[0];
  const bb_tile *t = &c->p->tile[from];
  place p = place_of(c, s, from);
  bool turned = c->tile[from].turned;
  if (c->p->view[s->view].panels) {
    const bb_tile_range *depth = &s->range[c->p->view[s->view].rank - 2];
    bool by_row = depth->axis == BB_AXIS_COL;
    const char *row = bb_c_row_stride(c, from), *col = bb_c_col_stride(c, from);
    bb_c_line(c, "bb_pack_block_%s(v%u + %s, t%u, %s, %s, %u, %u);",
              bb_c_memory_suffix(c, t->dtype), s->view, p.offset, from, by_row ? row : col,
              by_row ? col : row, by_row ? bb_tile_rows(t) : bb_tile_cols(t), depth->size);
    return;
  }
  /* A vector lies as a row does, or, from a view, with a stride. */
  const char *pitch = t->cols || c->tile[from].window ? bb_c_pitch(c, from) : "1";
  begin_pieces(c, &p);
  bb_c_line(c, "bb_store_%s(v%u + %s, %s, %s, %s, %s, %s, %s);",
            bb_c_memory_suffix(c, c->p->view[s->view].dtype), s->view, p.offset,
            turned ? p.col : p.row, turned ? p.row : p.col,
            piece_at(c, from, bb_arena_printf(arena(c), "t%u", from), &p), pitch,
            turned ? p.cols : p.rows, turned ? p.rows : p.cols);
  end_pieces(c, &p);
}

/* A padded array of f32 is brought together where it goes, not by way of a tile: a load and the store behind it are one.  False: they
 * are no such pair. */
static bool copies_padded(bb_c *c, const bb_tile_stmt *load, const bb_tile_stmt *store) {
  const bb_tile_program *p = c->p;
  bool pair = load->kind == BB_TILE_LOAD && store->kind == BB_TILE_STORE &&
              store->operand[0] == load->result && store->stretches == load->stretches;
  if (!pair || c->exact || !p->view[load->view].padded || p->view[store->view].panels ||
      bb_c_is_in_pieces(c, load) || bb_c_is_in_pieces(c, store))
    return false;
  const bb_c_tile *held = &c->tile[load->result];
  bool plain = p->view[load->view].dtype == BB_F32 && p->view[store->view].dtype == BB_F32 &&
               p->tile[load->result].dtype == BB_F32;
  if (!plain || held->writers != 1 || held->readers != 1) return false;
  place from = place_of(c, load, load->result), to = place_of(c, store, load->result);
  bool turned = strcmp(to.col, "1") != 0;
  if (turned && strcmp(to.row, "1") != 0) return false;
  const char *size[2] = {turned ? to.cols : to.rows, turned ? to.rows : to.cols};
  put_padded(c, load, &from, turned, "f32",
             bb_arena_printf(arena(c), "v%u + %s", store->view, to.offset),
             turned ? to.col : to.row, size);
  return true;
}

/* --- folds, scans --- */

static void fold(bb_c *c, const bb_tile_stmt *s) {
  uint32_t from = s->operand[0];
  const bb_tile *t = &c->p->tile[from];
  const char *suffix = bb_c_suffix(c, t->dtype);
  if (s->axis != BB_AXIS_COL) bb_c_refuse(c, "a fold along the rows of a tile");
  if (s->second == BB_NONE) {
    bb_c_line(c, "bb_fold_%s%s_%s(t%u, t%u, %s, %s, %s);", c->tile[from].turned ? "down_" : "",
              bb_c_monoid(c, s->monoid), suffix, s->result, from, bb_c_pitch(c, from),
              bb_c_count(c, from, BB_AXIS_ROW), bb_c_count(c, from, BB_AXIS_COL));
    return;
  }
  bb_monoid_id id = s->monoid->id;
  bool largest = id == BB_MONOID_ARGMAX || id == BB_MONOID_ARGMAX_LAST;
  bool last = id == BB_MONOID_ARGMAX_LAST || id == BB_MONOID_ARGMIN_LAST;
  bb_c_line(c, "bb_place_%s(t%u, t%u, t%u, %s, %u, %u, %s, %s, %s, %s);", suffix, s->result,
            s->second, from, bb_c_pitch(c, from), bb_tile_rows(t), bb_tile_cols(t),
            largest ? "true" : "false", last ? "true" : "false", bb_c_index(c, s->at[1]),
            bb_c_index(c, s->limit));
}

static void scan(bb_c *c, const bb_tile_stmt *s) {
  uint32_t from = s->operand[0];
  const bb_tile *t = &c->p->tile[from];
  if (s->axis != BB_AXIS_COL || s->monoid->id != BB_MONOID_SUM)
    bb_c_refuse(c, "a scan of a tile by this monoid");
  bb_c_line(c, "bb_prefix_%s_%s(t%u, %s, t%u, %s, %s, %u);", s->before ? "before" : "sum",
            bb_c_suffix(c, t->dtype), s->result, bb_c_pitch(c, s->result), from,
            bb_c_pitch(c, from), bb_c_count(c, from, BB_AXIS_ROW), bb_tile_cols(t));
}

/* Between a tile and a turned one nothing moves across. */
static void transpose(bb_c *c, const bb_tile_stmt *s) {
  uint32_t from = s->operand[0];
  const bb_tile *t = &c->p->tile[from], *to = &c->p->tile[s->result];
  bool turned = c->tile[from].turned, across = turned == c->tile[s->result].turned;
  uint32_t lines = turned ? bb_tile_cols(t) : bb_tile_rows(t),
           along = turned ? bb_tile_rows(t) : bb_tile_cols(t);
  const char *pitch = to->cols ? bb_c_pitch(c, s->result) : "1";
  bb_c_line(c, "bb_store_%s(t%u, %s, %s, t%u, %s, %u, %u);", bb_c_suffix(c, t->dtype), s->result,
            across ? "1" : pitch, across ? pitch : "1", from,
            t->cols || c->tile[from].window ? bb_c_pitch(c, from) : "1", lines, along);
}

/* --- loops --- */

static void statement(bb_c *c, const bb_tile_stmt *s, uint32_t stretch);

bool bb_c_runs_in(const bb_tile_stmt *s, uint32_t stretch) {
  return !s->stretches || stretch == BB_NONE || s->stretches >> stretch & 1;
}

static bool is_nothing(const bb_tile_stmt *s) {
  return s->kind == BB_TILE_MAP && s->expr->op == BB_X_CONST && s->expr->number == 0;
}

/* A product that is the next to touch a tile set to zero gives it its first value. */
static const bb_tile_stmt *fills(const bb_tile_body *b, uint32_t at, uint32_t stretch) {
  const bb_tile_stmt *zero = b->stmt[at];
  if (!is_nothing(zero)) return NULL;
  for (uint32_t i = at + 1; i < b->count; i++) {
    const bb_tile_stmt *s = b->stmt[i];
    if (!bb_c_runs_in(s, stretch) || !bb_tile_touches(s, zero->result)) continue;
    bool first = s->kind == BB_TILE_DOT && s->accumulate && s->result == zero->result &&
                 s->operand[0] != s->result && s->operand[1] != s->result;
    return first && s->stretches == zero->stretches ? s : NULL;
  }
  return NULL;
}

void bb_c_body_in(bb_c *c, const bb_tile_body *b, uint32_t stretch) {
  const bb_tile_stmt **fresh = BB_NEW(arena(c), const bb_tile_stmt *, b->count + 1);
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->count; i++) {
    const bb_tile_stmt *s = b->stmt[i], *product;
    bool is_fresh = false;
    if (!bb_c_runs_in(s, stretch)) continue;
    c->here = (bb_c_here){b, i, stretch};
    if ((product = fills(b, i, stretch)) != NULL) {
      fresh[count++] = product;
      continue;
    }
    uint32_t taken = bb_c_lanes(c, b, i);
    if (taken || bb_c_starts_lanes(c, b, i)) {
      i += taken ? taken - 1 : 0;
      continue;
    }
    for (uint32_t k = 0; k < count; k++) is_fresh |= fresh[k] == s;
    uint32_t next = i + 1;
    while (next < b->count && !bb_c_runs_in(b->stmt[next], stretch)) next++;
    if (next < b->count && bb_c_map_and_fold(c, s, b->stmt[next])) {
      i = next;
      continue;
    }
    if (next < b->count &&
        (copies_padded(c, s, b->stmt[next]) || bb_c_map_and_store(c, s, b->stmt[next]))) {
      i = next;
      continue;
    }
    if (s->kind == BB_TILE_DOT && (next = bb_c_dot_and_sweeps(c, b, i, stretch, is_fresh)) > i)
      i = next;
    else if (s->kind == BB_TILE_DOT)
      bb_c_dot(c, s, is_fresh);
    else
      statement(c, s, stretch);
  }
}

static void branch(bb_c *c, const bb_tile_stmt *s, const char *condition, uint32_t stretch) {
  bb_c_line(c, "if (%s) {", condition);
  c->indent++;
  bb_c_body_in(c, &s->body, stretch);
  c->indent--;
  bb_c_line(c, "}");
}

const char *bb_c_condition(bb_c *c, const bb_tile_stmt *s) {
  return bb_c_expression(c, bb_tile_index_in_map(c->p, s->expr), NULL, "0", "0");
}

void bb_c_loop_head(bb_c *c, const bb_tile_loop *l, uint32_t stretch) {
  bb_tile_index end = l->stretch[stretch].to;
  const char *from = bb_c_index(c, l->stretch[stretch].from);
  const char *to = end ? bb_c_index(c, end) : bb_arena_printf(arena(c), "%s + 1", from);
  const char *step = bb_c_index(c, l->step);
  if (l->down)
    bb_c_line(c, "for (int64_t i%u = %s + (%s - %s - 1) / %s * %s; i%u >= %s; i%u -= %s) {",
              l->variable, from, to, from, step, step, l->variable, from, l->variable, step);
  else
    bb_c_line(c, "for (int64_t i%u = %s; i%u < %s; i%u += %s) {", l->variable, from, l->variable,
              to, l->variable, step);
}

void bb_c_loop(bb_c *c, const bb_tile_loop *l) {
  if (l->merge) bb_c_refuse(c, "a loop whose iterations are merged");
  for (uint32_t k = 0; k < l->stretches; k++) {
    bb_c_loop_head(c, l, k);
    c->indent++;
    bb_c_body_in(c, &l->body, l->stretches > 1 ? k : BB_NONE);
    c->indent--;
    bb_c_line(c, "}");
  }
}

static void statement(bb_c *c, const bb_tile_stmt *s, uint32_t stretch) {
  switch (s->kind) {
  case BB_TILE_LOAD: bb_c_load(c, s); return;
  case BB_TILE_STORE: bb_c_store(c, s); return;
  case BB_TILE_MAP:
  case BB_TILE_ANY: bb_c_map(c, s); return;
  case BB_TILE_DOT: bb_c_dot(c, s, false); return;
  case BB_TILE_FOLD: fold(c, s); return;
  case BB_TILE_SCAN: scan(c, s); return;
  case BB_TILE_TRANSPOSE: transpose(c, s); return;
  case BB_TILE_LOOP:
    if (s->loop->variable == c->strips.variable)
      bb_c_loop_over_strips(c, s->loop, stretch);
    else
      bb_c_loop(c, s->loop);
    return;
  case BB_TILE_IF: branch(c, s, bb_c_at(c, s->operand[0], "0", "0"), stretch); return;
  case BB_TILE_WHEN: branch(c, s, bb_c_condition(c, s), stretch); return;
  }
}

void bb_c_body(bb_c *c, const bb_tile_body *b) {
  bb_c_body_in(c, b, BB_NONE);
}
