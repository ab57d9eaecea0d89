/* emit_sm90_plan.c - what is settled before code is written: the nest of loops, how each tile lies in
 * registers, where in shared memory, which tensor maps load and store, and whether it all fits.
 */
#include "emit_sm90.h"

#include "tile_edit.h"

#include <string.h>

enum { REGISTER_LIMIT = 255, REGISTER_SLACK = 24 };

void bb_cuda_refuse(const bb_cuda *e, const bb_tile_stmt *stmt, const char *why) {
  bb_buffer text = {.arena = e->arena};
  if (stmt) bb_tile_print_head(&text, e->p, stmt);
  bb_fail(e->ctx, BB_ERROR_UNSUPPORTED, "kernel %s for %s: %s%s%s", e->p->name,
          e->sm80 ? "sm_80" : "sm_90a", why, stmt ? ": " : "", stmt ? text.data : "");
}

/* --- the nest --- */

static bool is_spread(const bb_tile_stmt *s, bb_tile_spread spread) {
  return s->kind == BB_TILE_LOOP && s->loop->parallel && s->loop->spread == spread;
}

/* Takes the loop of that spread that a body begins with; what follows it goes to `after`. */
static const bb_tile_body *enter(const bb_tile_body *body, bb_tile_spread spread,
                                 const bb_tile_loop **loop, bb_cuda_list *after) {
  if (!body->count || !is_spread(body->stmt[0], spread)) return body;
  *loop = body->stmt[0]->loop;
  *after = (bb_cuda_list){body->count - 1, body->stmt + 1};
  return &(*loop)->body;
}

static void find_nest(bb_cuda *e) {
  const bb_tile_body *body = &e->p->body;
  while (!e->split && body->count && is_spread(body->stmt[0], BB_SPREAD_GRID)) {
    const bb_tile_loop *loop = body->stmt[0]->loop;
    if (body->count > 1 && !loop->merge) break;
    if (e->grids == 8) bb_cuda_refuse(e, body->stmt[0], "more than 8 loops over the grid");
    if (loop->merge) {
      e->split = loop;
      e->after_split = (bb_cuda_list){body->count - 1, body->stmt + 1};
    }
    e->grid[e->grids++] = loop;
    body = &loop->body;
  }
  body = enter(body, BB_SPREAD_CLUSTER, &e->cluster, &e->after_cluster);
  body = enter(body, BB_SPREAD_WARPS, &e->warps, &e->after_warps);
  uint32_t i = 0;
  e->core = body;
  while (i < body->count && body->stmt[i]->kind != BB_TILE_LOOP) i++;
  e->before = (bb_cuda_list){i, body->stmt};
  if (i == body->count) return;
  e->serial = body->stmt[i]->loop;
  e->after = (bb_cuda_list){body->count - i - 1, body->stmt + i + 1};
  if (e->serial->parallel) bb_cuda_refuse(e, body->stmt[i], "a parallel loop that is not spread");
}

static void check_nest(bb_cuda *e) {
  const bb_cuda_list lists[] = {e->after, e->after_warps, e->after_cluster, e->after_split};
  for (uint32_t k = 0; k < 4; k++)
    for (uint32_t i = 0; i < lists[k].count; i++)
      if (lists[k].stmt[i]->kind == BB_TILE_LOOP)
        bb_cuda_refuse(e, lists[k].stmt[i], "a second loop");
  for (uint32_t i = 0; e->serial && i < e->serial->body.count; i++) {
    const bb_tile_stmt *s = e->serial->body.stmt[i];
    if (s->kind == BB_TILE_LOOP) bb_cuda_refuse(e, s, "a loop within the serial loop");
    if (s->stage > e->stages) e->stages = s->stage;
  }
  if (e->stages && e->serial->stretch[0].to)
    bb_cuda_refuse(e, NULL, "a loop with stages whose first iteration is not apart");
  if (e->grids && e->grid[0]->rotate && !e->stages)
    bb_cuda_refuse(e, NULL, "a rotated loop without stages");
}

/* Blocks count who is last by where the grid's loops stand: all have as many parts. */
static void check_split(const bb_cuda *e) {
  if (!e->split) return;
  if (e->cluster || e->grid[0]->persistent)
    bb_cuda_refuse(e, NULL, "parts of a persistent grid, or of clusters");
  for (uint32_t i = 0; i + 1 < e->grids; i++)
    if (bb_expr_uses_arg(e->split->stretch[0].from, e->grid[i]->variable) ||
        bb_expr_uses_arg(e->split->stretch[0].to, e->grid[i]->variable) ||
        bb_expr_uses_arg(e->split->step, e->grid[i]->variable))
      bb_cuda_refuse(e, NULL, "as many parts as an outer loop says");
}

/* --- layouts --- */

typedef void visit(bb_cuda *e, const bb_tile_stmt *stmt);

static void walk(bb_cuda *e, const bb_tile_body *body, visit *f) {
  for (uint32_t i = 0; i < body->count; i++) {
    f(e, body->stmt[i]);
    walk(e, &body->stmt[i]->body, f);
    if (body->stmt[i]->loop) walk(e, &body->stmt[i]->loop->body, f);
  }
}

bool bb_cuda_is_async(const bb_cuda *e, const bb_tile_stmt *stmt) {
  return stmt->kind == BB_TILE_DOT && !e->warps;
}

/* What only some pass through has no part in the order of products and copies. */
static void check_body(bb_cuda *e, const bb_tile_stmt *s) {
  for (uint32_t i = 0; i < s->body.count; i++) {
    const bb_tile_stmt *inner = s->body.stmt[i];
    if (bb_cuda_is_async(e, inner) || inner->kind == BB_TILE_LOOP ||
        (inner->kind == BB_TILE_LOAD && e->p->tile[inner->result].place == BB_PLACE_SHARED))
      bb_cuda_refuse(e, inner, "a product, a copy or a loop under a condition");
  }
}

/* A right operand in registers lies as its products read it: all of them the same way round. */
static void lay_right(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *t = &e->p->tile[s->operand[1]];
  bb_cuda_tile *right = &e->tile[s->operand[1]];
  bool flipped = s->transposed[1];
  if (right->layout == BB_LAYOUT_RIGHT && right->flipped != flipped)
    bb_cuda_refuse(e, s, "a right operand in registers that products read both ways round");
  if ((flipped ? t->cols : t->rows) % 16 || (flipped ? t->rows : t->cols) % 8)
    bb_cuda_refuse(e, s, "a right operand in registers of other than sixteens by eights");
  right->layout = BB_LAYOUT_RIGHT;
  right->flipped = flipped;
}

static void lay_by_use(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *tile = e->p->tile;
  if (s->kind == BB_TILE_DOT && tile[s->operand[1]].place != BB_PLACE_SHARED) lay_right(e, s);
  if (s->kind != BB_TILE_MAP || tile[s->result].place != BB_PLACE_REGISTERS) return;
  if (!bb_tile_is_block(&tile[s->result]) || s->operands != 1) return;
  /* the groups' own rows lie as a product has them, others are spread */
  bool own = !e->warps && tile[s->operand[0]].rows == e->group * e->groups;
  if (tile[s->operand[0]].place == BB_PLACE_SHARED && !own)
    e->tile[s->result].layout = BB_LAYOUT_SPREAD;
}

/* Vectors beside a spread block are spread. */
static void lay_beside(bb_cuda *e, const bb_tile_stmt *s) {
  if (s->result == BB_NONE || (s->kind != BB_TILE_MAP && s->kind != BB_TILE_FOLD)) return;
  if (e->p->tile[s->result].place != BB_PLACE_REGISTERS) return;
  for (uint32_t i = 0; i < s->operands; i++)
    if (e->tile[s->operand[i]].layout == BB_LAYOUT_SPREAD)
      e->tile[s->result].layout = BB_LAYOUT_SPREAD;
}

static void find_rings(bb_cuda *e, const bb_tile_stmt *s) {
  if (s->kind == BB_TILE_LOAD && e->p->tile[s->result].place == BB_PLACE_SHARED)
    e->tile[s->result].ring = s != e->added;
}

static bool is_reader(const bb_tile_stmt *s, uint32_t tile) {
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->operand[i] == tile) return true;
  return false;
}

/* Is a statement that reads the tile other than a group's copy of its own rows to registers? */
static bool is_shared_by_groups(const bb_cuda *e, const bb_tile_body *body, uint32_t tile) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool own = s->kind == BB_TILE_MAP && e->p->tile[s->result].place == BB_PLACE_LEFT;
    if ((is_reader(s, tile) && !own) || is_shared_by_groups(e, &s->body, tile) ||
        (s->loop && is_shared_by_groups(e, &s->loop->body, tile)))
      return true;
  }
  return false;
}

/* A group that has its rows need not wait for those of others: it begins, and they overlap. */
static void find_parts(bb_cuda *e) {
  for (uint32_t i = 0; i < e->p->tiles; i++) {
    bool own = e->tile[i].ring && !e->warps && !e->sm80 &&
               e->p->tile[i].rows == e->group * e->groups &&
               !is_shared_by_groups(e, &e->p->body, i);
    e->tile[i].parts = own ? e->groups : 1;
  }
}

static bool loads(bb_tile_stmt *const *stmt, uint32_t count, uint32_t tile) {
  for (uint32_t i = 0; i < count; i++)
    if (stmt[i]->kind == BB_TILE_LOAD && stmt[i]->result == tile) return true;
  return false;
}

/* What the serial loop reads where it was copied before the loop stays: nothing is copied there again, as a block has
 * no other iteration of the grid's loops.  Where the loop copies it anew it reads that. */
static void find_standing(bb_cuda *e) {
  for (uint32_t i = 0; e->serial && i < e->before.count; i++) {
    const bb_tile_stmt *load = e->before.stmt[i];
    if (load->kind != BB_TILE_LOAD || !e->tile[load->result].ring) continue;
    bool read = false;
    for (uint32_t k = 0; k < e->serial->body.count; k++)
      read |= bb_tile_reads(e->serial->body.stmt[k], load->result);
    if (!read || loads(e->serial->body.stmt, e->serial->body.count, load->result)) continue;
    if (e->grids && e->grid[0]->persistent)
      bb_cuda_refuse(e, load, "a copy that a persistent block reads all the time");
    if (loads(e->after.stmt, e->after.count, load->result))
      bb_cuda_refuse(e, load, "a copy that the loop reads all the time, made anew behind it");
    e->tile[load->result].stands = true;
  }
}

/* Copies are made by the copier, along with the core; by a warp of its own in its loop only. */
static void check_copies(const bb_cuda *e) {
  const bb_cuda_list lists[] = {e->after_warps, e->after_cluster, e->after_split, e->before,
                                e->after};
  for (uint32_t k = 0; k < (e->warps ? 5 : 3); k++)
    for (uint32_t i = 0; i < lists[k].count; i++) {
      const bb_tile_stmt *s = lists[k].stmt[i];
      if (s->kind == BB_TILE_LOAD && e->tile[s->result].ring)
        bb_cuda_refuse(e, s, "a copy to shared memory outside of the core");
    }
}

static bool is_copied_in(const bb_cuda *e, const bb_tile_body *body, uint32_t tile) {
  for (uint32_t i = 0; i < body->count; i++)
    if (body->stmt[i]->result == tile)
      return e->tile[tile].ring && e->tile[tile].parts == 1 && !body->stmt[i]->stretches;
  return false;
}

/* Are all products of the serial loop sums of what is copied in the same iteration, and looked at by nobody there?  Then
 * they need not end before the next ones begin. */
static bool may_lag(const bb_cuda *e) {
  uint32_t products = 0;
  const bb_tile_body *body = e->serial ? &e->serial->body : NULL;
  if (!body || e->warps || e->stages || e->sm80) return false;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_DOT) continue;
    if (!s->accumulate || s->stretches) return false;
    for (uint32_t k = 0; k < 2; k++)
      if (!is_copied_in(e, body, s->operand[k])) return false;
    for (uint32_t j = 0; j < body->count; j++)
      if (body->stmt[j]->kind != BB_TILE_DOT &&
          (bb_tile_reads(body->stmt[j], s->result) || bb_tile_writes(body->stmt[j], s->result)))
        return false;
    products++;
  }
  return products > 0;
}

static const char *safe_name(bb_cuda *e, const char *name) {
  static const char *const taken[] = {
      "auto",        "bool",     "break",   "case",  "char",    "const",      "do",    "double",
      "else",        "enum",     "float",   "for",   "goto",    "if",         "int",   "long",
      "new",         "p",        "e",       "r",     "c",       "short",      "this",  "struct",
      "switch",      "template", "tl",      "true",  "false",   "union",      "while", "using",
      "unsigned",    "void",     "rank",    "group", "at_row",  "at_col",     "old",   "t",
      "f",           "round",    "more",    "place", "shared",  "behind",     "mates", "mine",
      "half",        "turns",    "ahead",   "left",  "stretch", "blocks",     "inbox", "slot",
      "size",        "start",    "nth",     "from",  "to",      "first",      "last",  "parts",
      "whole",       "hands",    "vectors", "there", "my_hand", "my_vectors", "piece", "at",
      "added_phase", "odd",      "alone"};
  for (uint32_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (strcmp(taken[i], name) == 0) return bb_arena_printf(e->arena, "%s_", name);
  return name;
}

static void size_tile(bb_cuda *e, uint32_t i) {
  const bb_tile *t = &e->p->tile[i];
  bb_cuda_tile *plan = &e->tile[i];
  uint32_t all = e->group * e->groups, compute = e->warps ? 32 : 128 * e->groups;
  uint32_t split = e->warps ? 16 : 64 * e->groups;
  plan->name = safe_name(e, t->name);
  if (t->place == BB_PLACE_SHARED) {
    plan->layout = BB_LAYOUT_SHARED;
    if (bb_dtype_bytes(t->dtype) != 2 || t->cols % 16 || t->rows % 8 || t->rows > 256 || !t->rows)
      bb_cuda_refuse(e, NULL, "a shared tile is of 16-bit elements, 8k rows, 16l columns");
    return;
  }
  if (t->place == BB_PLACE_LEFT) plan->layout = BB_LAYOUT_LEFT;
  if (plan->layout == BB_LAYOUT_RIGHT) {
    plan->ct = t->rows * t->cols / 128; /* pairs of registers of a 16 x 8 tile */
    plan->registers = 2 * plan->ct;
    return;
  }
  if (plan->layout == BB_LAYOUT_SPREAD) {
    if (!t->rows || t->rows > compute || compute % t->rows ||
        (t->cols && t->cols % (8 * compute / t->rows)))
      bb_cuda_refuse(e, NULL, "a block that does not spread evenly over the threads");
    plan->registers = t->cols ? t->rows * t->cols / compute : 1;
    return;
  }
  if (t->rows % split && t->rows)
    bb_cuda_refuse(e, NULL, "rows that the warps do not share evenly");
  if (t->rows && !e->warps && t->rows != all)
    bb_cuda_refuse(e, NULL, "rows that are not those of the warp groups");
  if (t->cols % 8) bb_cuda_refuse(e, NULL, "columns in other than eights");
  plan->rt = t->rows / split;
  plan->ct = t->cols / 8;
  plan->registers = plan->rt && plan->ct ? 4 * plan->rt * plan->ct : 2 * (plan->rt + plan->ct);
  if (!plan->registers) plan->registers = 1;
  plan->wide = t->dtype == BB_I64;
  if (plan->layout == BB_LAYOUT_LEFT) plan->registers /= 2;
}

/* --- shared memory and tensor maps --- */

/* May all columns of a tile be one box? */
static bool is_folded(const bb_tile_view *view, const bb_tile_range *last, const bb_tile *tile) {
  bb_tile_index extent = view->extent[view->rank - 1], start = last->start;
  return tile->cols > 64 && view->rank < BB_SM90_RANK && extent->op == BB_X_CONST &&
         (int64_t)extent->number % 64 == 0 && start->op == BB_X_CONST &&
         (int64_t)start->number % 64 == 0;
}

static uint32_t add_map(bb_cuda *e, const bb_tile_stmt *s, uint32_t tile_at, bool put, bool edge) {
  const bb_tile_view *view = &e->p->view[s->view];
  const bb_tile *tile = &e->p->tile[tile_at];
  bb_cuda_map map = {.view = s->view, .rows = 16, .cols = 64, .put = put, .edge = edge, .fold = 1};
  if (!put) map.rows = tile->rows / (bb_cuda_halves_rows(e, tile_at) ? 2 : e->tile[tile_at].parts);
  if (view->rank < 2 || s->range[view->rank - 1].axis != BB_AXIS_COL)
    bb_cuda_refuse(e, s, "a tile whose columns are not the last axis of its view");
  if (s->pad != 0) bb_cuda_refuse(e, s, "a copied tile is padded with zeros");
  bb_tile_index last = view->strided ? view->stride[view->rank - 1] : NULL;
  if (last && (last->op != BB_X_CONST || last->number != 1))
    bb_cuda_refuse(e, s, "a tile whose columns do not lie side by side");
  bb_tile_index extent = view->extent[view->rank - 1];
  if (tile->cols % 64 && (!bb_expr_is_number(s->range[view->rank - 1].start, 0) ||
                          extent->op != BB_X_CONST || extent->number > tile->cols))
    bb_cuda_refuse(e, s, "a shared tile that ends within a line of 64 columns and an array");
  bool two = bb_tile_has_two_rows(s, view->rank);
  if (two && (put || map.rows != tile->rows)) bb_cuda_refuse(e, s, "two ranges of rows in pieces");
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &s->range[i];
    map.axis[i] = r->size ? r->axis : BB_AXIS_NONE;
    map.box[i] = !r->size ? 1 : r->axis == BB_AXIS_COL ? map.cols : two ? r->size : map.rows;
  }
  map.reads = put ? "1" : bb_cuda_reads(e, s);
  if (!put && !two && !e->tile[tile_at].mated && is_folded(view, &s->range[view->rank - 1], tile))
    map.fold = tile->cols / 64;
  map.name = bb_arena_printf(e->arena, "%s_%s", view->name, put ? "piece" : edge ? "edge" : "box");
  for (uint32_t i = 0; i < e->maps; i++) {
    bb_cuda_map *known = &e->map[i];
    if (known->view != map.view || known->put != put || known->edge != edge) continue;
    if (known->rows == map.rows && known->fold == map.fold &&
        memcmp(known->axis, map.axis, sizeof map.axis) == 0 &&
        memcmp(known->box, map.box, sizeof map.box) == 0)
      return i;
    map.name = bb_arena_printf(e->arena, "%s%u", map.name, e->maps);
  }
  if (e->maps == BB_SM90_MAPS) bb_cuda_refuse(e, s, "more than 16 tensor maps");
  e->map[e->maps] = map;
  return e->maps++;
}

uint32_t bb_cuda_add_edge(bb_cuda *e, const bb_tile_stmt *load) {
  return e->maps < BB_SM90_MAPS ? 1 + add_map(e, load, load->result, false, true) : 0;
}

static void map_stmt(bb_cuda *e, const bb_tile_stmt *s) {
  if (s->kind == BB_TILE_TRANSPOSE) e->exchange = true;
  if (e->sm80) return;
  if (s->kind == BB_TILE_LOAD && e->tile[s->result].ring)
    e->tile[s->result].map = add_map(e, s, s->result, false, false);
  if (s == e->added) e->tile[s->result].map = add_map(e, s, s->result, true, false);
  if (s->kind == BB_TILE_STORE && e->p->tile[s->operand[0]].place == BB_PLACE_SHARED) {
    e->tile[s->operand[0]].map = add_map(e, s, s->operand[0], true, false);
    e->puts = true;
  }
}

/* The first of the tiles that leave in pieces: all of them do so by its memory. */
static uint32_t first_of_pieces(const bb_cuda *e) {
  uint32_t i = 0;
  while (!e->tile[i].pieces) i++;
  return i;
}

static void place_tile(bb_cuda *e, uint32_t i) {
  const bb_tile *t = &e->p->tile[i];
  uint32_t bytes = bb_tile_shared_bytes(t);
  if (e->tile[i].behind) return; /* lies with the other */
  if (e->tile[i].pieces && first_of_pieces(e) < i) {
    e->tile[i].offset = e->tile[first_of_pieces(e)].offset;
    return;
  }
  e->tile[i].stride = e->tile[i].beside ? 2 * bytes : bytes;
  if (e->warps && e->tile[i].ring) bytes *= e->warp_count;
  if (e->tile[i].pieces) bytes = bb_cuda_pieces_bytes(t);
  e->tile[i].offset = e->shared;
  if (e->tile[i].beside) {
    bb_cuda_tile *behind = &e->tile[e->tile[i].beside - 1];
    behind->offset = e->shared + bytes;
    behind->stride = 2 * bytes;
    bytes *= 2;
  }
  e->shared += (t->buffers * bytes + 1023) & ~1023u;
}

static bool uses(const bb_cuda_list *list, uint32_t tile) {
  for (uint32_t i = 0; i < list->count; i++)
    if (bb_tile_reads(list->stmt[i], tile) || bb_tile_writes(list->stmt[i], tile)) return true;
  return false;
}

/* Does a tile live behind the serial loop only, which no other iteration of the grid overlaps? */
static bool is_late(const bb_cuda *e, uint32_t tile) {
  if (!e->copier || !e->serial || (e->grids && e->grid[0]->persistent)) return false;
  const bb_cuda_list body = {e->serial->body.count, e->serial->body.stmt};
  return !e->tile[tile].ring && !uses(&e->before, tile) && !uses(&body, tile);
}

/* What the loop loads comes first; late tiles lie there again, as far as that is enough. */
static void place_shared(bb_cuda *e) {
  uint32_t turning = 0, late = 0;
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < e->p->tiles; i++) {
      if (e->p->tile[i].place != BB_PLACE_SHARED || e->tile[i].added) continue;
      bool turns = e->serial && is_copied_in(e, &e->serial->body, i);
      uint32_t bytes = (bb_tile_shared_bytes(&e->p->tile[i]) + 1023) & ~1023u;
      if (pass && !turns && is_late(e, i) && late + bytes <= turning) {
        e->tile[i].late = true;
        e->tile[i].offset = late;
        late += bytes;
      } else if (turns != (pass > 0)) {
        place_tile(e, i);
      }
    }
    if (!pass) turning = e->shared;
  }
  uint32_t parts = bb_cuda_part_bytes(e) * bb_cuda_parts_in_memory(e);
  if (e->shared < parts) e->shared = (parts + 1023) & ~1023u;
  e->sync = e->sm80 && !e->exchange && !e->split ? 0 : e->exchange || e->warps ? 2048 : 1024;
  bb_cuda_place_inbox(e);
  if (e->shared + e->sync > e->most_shared)
    bb_cuda_refuse(e, NULL, "more shared memory than a block has");
}

static void count_uses(bb_cuda *e, const bb_tile_stmt *s) {
  if (s->result != BB_NONE) e->tile[s->result].uses++;
  for (uint32_t i = 0; i < s->operands; i++) e->tile[s->operand[i]].uses++;
}

/* What only the shared statements use is never whole. */
static void drop_shared(bb_cuda *e) {
  const bb_cuda_list lists[] = {e->after_warps, e->after_cluster, e->after_split};
  walk(e, &e->p->body, count_uses);
  for (uint32_t k = 0; bb_cuda_is_shared(e) && k < 3; k++)
    for (uint32_t i = 0; i < lists[k].count; i++) {
      const bb_tile_stmt *s = lists[k].stmt[i];
      if (s->result != BB_NONE) e->tile[s->result].uses--;
      for (uint32_t j = 0; j < s->operands; j++) e->tile[s->operand[j]].uses--;
    }
}

/* Is a vector needed only before the serial loop?  What runs behind the spread loops is no part of the core. */
static bool is_early_vector(const bb_cuda *e, uint32_t tile) {
  return e->serial && bb_tile_is_early_vector(e->p, e->core, e->before.count, tile) &&
         !uses(&e->after_warps, tile) && !uses(&e->after_cluster, tile) &&
         !uses(&e->after_split, tile);
}

/* With stages the end of one result runs beside the begin of the next; what is merged is needed beside what merges it. */
static void check_registers(const bb_cuda *e) {
  bool apart = !e->serial || e->stages || e->warps || e->cluster || e->split;
  uint32_t sum = 0, limit = e->p->registers ? e->p->registers : REGISTER_LIMIT;
  uint32_t *size = BB_NEW(e->arena, uint32_t, e->p->tiles + 1);
  for (uint32_t i = 0; i < e->p->tiles; i++) {
    if (e->tile[i].layout == BB_LAYOUT_SHARED || !e->tile[i].uses || is_early_vector(e, i))
      continue;
    size[i] = e->tile[i].registers << e->tile[i].wide;
    sum += size[i];
  }
  if (!apart) sum = bb_tile_most_live(e->p, e->core, size);
  if (e->warps) sum += BB_CUDA_OPERANDS;
  if (sum + REGISTER_SLACK > limit)
    bb_cuda_refuse(e, NULL, "tiles need more registers than a thread has");
}

/* A block's threads begin with as many registers each, and share these out anew: who asks for more than there are waits for ever. */
static void check_pool(const bb_cuda *e) {
  enum { REGISTERS = 64 << 10, UNIT = 8 };
  if (!e->p->registers || e->sm80 || !e->copier) return;
  uint32_t each = REGISTERS / e->threads / UNIT * UNIT, begun = e->threads / 128;
  if (e->groups * e->p->registers + e->p->copier_registers > begun * each)
    bb_cuda_refuse(e, NULL,
                   "more registers for groups and copier than a block's threads begin with");
}

/* Do the registers that threads of so many blocks begin with hold a product's sums, and what its instruction has beside
 * them?  The compiler refuses it otherwise, whatever a group asks for later. */
static bool holds_sums(const bb_cuda *e, uint32_t blocks) {
  enum { REGISTERS = 64 << 10, UNIT = 8, BESIDE = 26 };
  const uint32_t each = REGISTERS / (blocks * e->threads) / UNIT * UNIT;
  return e->sm80 || e->widest / 2 + BESIDE <= each;
}

/* For how many blocks of a processor its registers are to be enough.  Where they are not counted: for two which are part of a sum
 * each and hold few, so that the next launch's begin beside this one's. */
static uint32_t resident_blocks(const bb_cuda *e) {
  enum { REGISTERS = 64 << 10, SUMS = 32, THREADS = 256 };
  const bb_tile_program *p = e->p;
  uint32_t held = 128 * (p->registers * e->groups + p->copier_registers), sums = 0;
  if (e->sm80) held = p->registers * e->threads;
  bool fits = e->sm80 || e->shared + e->sync <= BB_CUDA_HALF_SHARED;
  uint32_t most = e->sm80 ? REGISTERS : 2; /* `fits` is about half of the memory */
  fits &= holds_sums(e, 2);
  if (p->registers && fits && held < REGISTERS)
    return REGISTERS / held < most ? REGISTERS / held : most;
  if (p->registers) return 1;
  if (!fits || !e->cluster || !e->cluster->merge || e->threads > THREADS) return 1;
  for (uint32_t k = 0; k < e->cluster->merge->components; k++)
    sums += e->tile[e->cluster->merged[k]].registers;
  return sums <= SUMS ? 2 : 1;
}

/* Rows of a group: those of the products, of sm_90a 64; and the widest product. */
static void find_group(bb_cuda *e, const bb_tile_stmt *s) {
  uint32_t rows = s->kind == BB_TILE_DOT ? e->p->tile[s->result].rows / e->groups : 0;
  if (e->sm80 && rows % 64 == 0 && rows > e->group) e->group = rows;
  if (s->kind == BB_TILE_DOT && e->p->tile[s->result].cols > e->widest)
    e->widest = e->p->tile[s->result].cols;
}

void bb_cuda_plan(bb_cuda *e) {
  find_nest(e);
  check_nest(e);
  e->groups = e->p->groups ? e->p->groups : 1;
  e->group = 64;
  walk(e, &e->p->body, find_group);
  e->copier = e->warps == NULL;
  e->tile = BB_NEW(e->arena, bb_cuda_tile, e->p->tiles + 1);
  if (e->warps) {
    const bb_tile_stretch *s = &e->warps->stretch[0];
    bool constant = s->from->op == BB_X_CONST && s->from->number == 0 && s->to->op == BB_X_CONST &&
                    e->warps->step->op == BB_X_CONST && e->warps->step->number == 1;
    if (!constant || s->to->number < 1 || s->to->number > 16)
      bb_cuda_refuse(e, NULL, "warps are counted from 0 to at most 16");
    e->warp_count = (uint32_t)s->to->number;
    if (e->stages) bb_cuda_refuse(e, NULL, "stages within a warp");
  } else {
    e->warp_count = 4 * e->groups;
  }
  e->threads = 32 * e->warp_count + (e->copier && !e->sm80 ? 128 : 0);
  walk(e, &e->p->body, check_body);
  bb_cuda_find_added(e);
  walk(e, &e->p->body, find_rings);
  check_copies(e);
  if (e->sm80) bb_cuda80_check(e);
  find_parts(e);
  find_standing(e);
  e->lags = may_lag(e);
  bb_cuda_find_copiers(e);
  bb_cuda_find_mates(e);
  bb_cuda_find_marks(e);
  if (!e->sm80) bb_cuda_find_beside(e);
  walk(e, &e->p->body, lay_by_use);
  for (uint32_t i = 0; i < 8; i++) walk(e, &e->p->body, lay_beside);
  for (uint32_t i = 0; i < e->p->tiles; i++) size_tile(e, i);
  check_split(e);
  if (e->split && !bb_cuda_is_shared(e))
    bb_cuda_refuse(e, NULL, "what follows parts of the grid does more than map and store");
  walk(e, &e->p->body, map_stmt);
  bb_cuda_find_edges(e);
  bb_cuda_find_pieces(e);
  bb_cuda_find_ending(e);
  place_shared(e);
  drop_shared(e);
  check_registers(e);
  check_pool(e);
  e->resident = resident_blocks(e);
}
