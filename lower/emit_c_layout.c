/* emit_c_layout.c - how tiles lie in the memory of a task: row after row or *turned*, column after column.
 *
 * A product holds vectors of its result in registers; along them lie the elements of one operand, its
 * *vector side*, while the elements of the other are repeated.  So the vector side has to be contiguous that
 * way, or is packed in every product anew, and the result comes out so.  Which operand it is decides the
 * layout of all that is computed from it, element by element.  Tiles that statements need alike form a class;
 * the layouts of classes are chosen to cost the least, by descent: what is packed, brought in or put
 * out across, folded across vectors, and how full the vectors of products are.
 *
 * A block that lies in memory as its tile would is used where it lies (a window), unless its rows are so far
 * apart that the caches would hold few of them.
 */
#include "emit_c_parts.h"

#include <math.h>
#include <string.h>

enum {
  VECTOR = 16,    /* columns that a product holds at once */
  STRIP = 6,      /* rows */
  FAR = 512,      /* elements between rows that map to few lines of a cache */
  AGAIN = 2,      /* panels at most for which such rows are read where they lie */
  AGAIN_WIDE = 8, /* of vectors of 64 bytes */
  DESCENTS = 8
};

/* A block of panels on the side of a product that does not take one. */
static const double NEVER = 1e30;

typedef struct layout {
  bb_c *c;
  uint32_t *parent; /* classes of tiles, united */
  uint32_t classes;
  uint32_t *class;               /* the tile that stands for each */
  bool *turned;                  /* by tile that stands for its class */
  bool *row_only;                /* likewise: a statement that knows rows only */
  bool *apart;                   /* by tile of one column: not to be read along its rows */
  bool *used;                    /* likewise: there is a statement, not for what went into others */
  const bb_tile_stmt **packable; /* by tile: the load of what may be packed once */
  double cost;
  bool marks; /* notes which loaded tiles are to be copied */
} layout;

/* --- classes --- */

static uint32_t find(layout *l, uint32_t tile) {
  while (l->parent[tile] != tile) tile = l->parent[tile] = l->parent[l->parent[tile]];
  return tile;
}

static bool lies_turned(layout *l, uint32_t tile) {
  return bb_c_may_turn(&l->c->p->tile[tile]) && l->turned[find(l, tile)];
}

typedef void visit(layout *l, const bb_tile_stmt *s, double times);

static void walk(layout *l, const bb_tile_body *body, double times, visit *function) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    function(l, s, times);
    if (s->kind == BB_TILE_LOOP) walk(l, &s->loop->body, times * bb_c_trips(s->loop), function);
    walk(l, &s->body, times, function);
  }
}

static void unite(layout *l, const bb_tile_stmt *s, double times) {
  (void)times;
  const bb_tile *tile = l->c->p->tile;
  if (s->result != BB_NONE) l->used[s->result] = true;
  for (uint32_t i = 0; i < s->operands; i++) l->used[s->operand[i]] = true;
  if (s->kind == BB_TILE_SCAN ||
      (s->kind == BB_TILE_FOLD &&
       (s->second != BB_NONE || !bb_dtype_is_float(tile[s->operand[0]].dtype))))
    l->row_only[s->operand[0]] = true;
  if (s->kind == BB_TILE_SCAN) l->row_only[s->result] = true;
  if (s->kind != BB_TILE_MAP && s->kind != BB_TILE_ANY) return;
  uint32_t with = s->kind == BB_TILE_MAP && bb_c_may_turn(&tile[s->result]) ? s->result : BB_NONE;
  for (uint32_t i = 0; i < s->operands; i++) {
    if (!bb_c_may_turn(&tile[s->operand[i]])) continue;
    if (with != BB_NONE) l->parent[find(l, s->operand[i])] = find(l, with);
    with = s->operand[i];
  }
}

static void find_classes(layout *l) {
  bb_arena *arena = l->c->out->arena;
  uint32_t tiles = l->c->p->tiles;
  l->parent = BB_NEW(arena, uint32_t, tiles + 1);
  l->class = BB_NEW(arena, uint32_t, tiles + 1);
  l->turned = BB_NEW(arena, bool, tiles + 1);
  l->row_only = BB_NEW(arena, bool, tiles + 1);
  l->apart = BB_NEW(arena, bool, tiles + 1);
  l->used = BB_NEW(arena, bool, tiles + 1);
  l->packable = BB_NEW(arena, const bb_tile_stmt *, tiles + 1);
  for (uint32_t i = 0; i < tiles; i++) l->parent[i] = i;
  walk(l, &l->c->p->body, 1, unite);
  for (uint32_t i = 0; i < tiles; i++) {
    if (l->row_only[i]) l->row_only[find(l, i)] = true;
    if (l->used[i]) l->used[find(l, i)] = true;
  }
  for (uint32_t i = 0; i < tiles; i++)
    if (find(l, i) == i && l->used[i] && !l->row_only[i] && bb_c_may_turn(&l->c->p->tile[i]))
      l->class[l->classes++] = i;
}

/* --- costs, in cycles or so --- */

typedef struct unit_axes {
  bool row, col; /* neighbours along that axis are neighbours in memory */
  double apart;  /* elements between neighbours along the other one; 0: not known */
} unit_axes;

static double stride_of(const bb_tile_view *view, uint32_t axis) {
  double stride = 1;
  if (view->strided) return view->stride[axis]->op == BB_X_CONST ? view->stride[axis]->number : 0;
  for (uint32_t i = axis + 1; i < view->rank; i++)
    stride *= view->extent[i]->op == BB_X_CONST ? view->extent[i]->number : 0;
  return stride;
}

static unit_axes units(const bb_c *c, const bb_tile_stmt *s, const bb_tile *t) {
  const bb_tile_view *view = &c->p->view[s->view];
  unit_axes u = {.col = !t->cols, .row = !t->rows};
  double row = 0, col = 0;
  for (uint32_t i = 0; i < view->rank; i++) {
    if (!s->range[i].size) continue;
    bool is_row = s->range[i].axis == BB_AXIS_ROW;
    *(is_row ? &u.row : &u.col) = bb_tile_is_unit(view, i);
    *(is_row ? &row : &col) = stride_of(view, i);
  }
  u.apart = u.col ? row : col;
  return u;
}

static double cost_of_move(layout *l, const bb_tile_stmt *s, uint32_t tile) {
  const bb_tile *t = &l->c->p->tile[tile];
  if (!bb_c_may_turn(t)) return 0;
  unit_axes u = units(l->c, s, t);
  bool across = lies_turned(l, tile) ? !u.row : !u.col;
  bool window = s->kind == BB_TILE_LOAD && !across && l->c->tile[tile].writers == 1 &&
                !bb_c_is_in_pieces(l->c, s);
  return bb_tile_elements(t) * (across ? 1.2 : window ? 0.02 : 0.25);
}

/* Panels come from memory as the product takes them. */
static double cost_of_load(layout *l, const bb_tile_stmt *s) {
  const bb_c_tile *held = &l->c->tile[s->result];
  return held->panels || held->packable ? 0 : cost_of_move(l, s, s->result);
}

static double product_cycles(uint32_t along, uint32_t across, uint32_t depth) {
  double panels = ceil((double)along / VECTOR), strips = across;
  if (across < 4) strips = 4;
  return panels * strips * depth;
}

static double cost_by_vectors(layout *l, const bb_tile_stmt *s) {
  const bb_tile *tile = l->c->p->tile, *to = &tile[s->result];
  bool turned = lies_turned(l, s->result);
  uint32_t m = to->rows ? to->rows : 1, n = to->cols ? to->cols : 1;
  uint32_t k = bb_c_depth(l->c->p, s), side = turned ? 0 : 1;
  const bb_tile *of = &tile[s->operand[side]];
  /* Contiguous along the vector: of a left operand its rows, of a right one its columns. */
  bool by_row = (side == 0) != s->transposed[side];
  const bb_c_tile *held = &l->c->tile[s->operand[side]];
  bool ready = !bb_c_may_turn(of) || held->panels || held->packable ||
               lies_turned(l, s->operand[side]) == by_row;
  double cost = product_cycles(turned ? m : n, turned ? n : m, k);
  uint32_t across = turned ? n : m, lies_along = by_row ? of->rows : of->cols;
  bool packs = !held->panels && !held->packable && across > STRIP && lies_along != VECTOR;
  if (bb_c_may_turn(of)) cost += bb_tile_elements(of) * (!ready ? 1 : packs ? 0.25 : 0);
  return cost;
}

static void cost_of_dot(layout *l, const bb_tile_stmt *s, double times) {
  bool turned = lies_turned(l, s->result);
  const bool lie[2] = {lies_turned(l, s->operand[0]), lies_turned(l, s->operand[1])};
  double by_tiles = bb_c_price_of_tiles(l->c, s, turned, lie) / VECTOR;
  l->cost += times * fmin(by_tiles, cost_by_vectors(l, s));
  uint32_t repeated = s->operand[turned ? 1 : 0];
  if (l->c->tile[repeated].panels) l->cost += NEVER;
  /* Panels are for the vector side: here the block is brought in each time. */
  if (l->packable[repeated]) l->cost += times * cost_of_move(l, l->packable[repeated], repeated);
}

static void cost_of(layout *l, const bb_tile_stmt *s, double times) {
  const bb_tile *tile = l->c->p->tile;
  switch (s->kind) {
  case BB_TILE_LOAD: l->cost += times * cost_of_load(l, s); return;
  case BB_TILE_STORE: l->cost += times * cost_of_move(l, s, s->operand[0]); return;
  case BB_TILE_DOT: cost_of_dot(l, s, times); return;
  case BB_TILE_MAP: { /* vectors that are not full */
    const bb_tile *t = &tile[s->result];
    uint32_t along = lies_turned(l, s->result) ? t->rows : t->cols;
    if (bb_c_may_turn(t)) l->cost += times * bb_tile_elements(t) / along * ceil(along / 8.0);
    return;
  }
  case BB_TILE_FOLD:
    if (bb_c_may_turn(&tile[s->operand[0]]) && !lies_turned(l, s->operand[0]))
      l->cost += times * 8 * tile[s->operand[0]].rows;
    return;
  case BB_TILE_TRANSPOSE:
    if (lies_turned(l, s->result) != lies_turned(l, s->operand[0])) return;
    l->cost += times * bb_tile_elements(&tile[s->result]);
    return;
  default: return;
  }
}

static double evaluate(layout *l) {
  l->cost = 0;
  walk(l, &l->c->p->body, 1, cost_of);
  return l->cost;
}

/* Single classes, then pairs: a product's operand and its result often only pay together. */
static bool descend(layout *l) {
  double best = evaluate(l), before = best;
  for (uint32_t i = 0; i < l->classes; i++) {
    for (uint32_t j = i; j < l->classes; j++) {
      bool *a = &l->turned[l->class[i]], *b = &l->turned[l->class[j]];
      *a = !*a;
      if (b != a) *b = !*b;
      double now = evaluate(l);
      if (now < best) {
        best = now;
        continue;
      }
      *a = !*a;
      if (b != a) *b = !*b;
    }
  }
  return best < before;
}

/* --- what follows from it --- */

static void count_uses(layout *l, const bb_tile_stmt *s, double times) {
  (void)times;
  for (uint32_t i = 0; i < s->operands; i++) l->c->tile[s->operand[i]].readers++;
  if (s->kind == BB_TILE_LOAD && l->c->p->view[s->view].panels) l->c->tile[s->result].panels = true;
  if (s->kind == BB_TILE_LOAD && l->c->tile[s->result].packable) l->packable[s->result] = s;
  if (s->result != BB_NONE) l->c->tile[s->result].writers++;
  if (s->second != BB_NONE) l->c->tile[s->second].writers++;
}

/* A tile of one column lies the same way, turned or not, and loops along its rows have whole vectors.  Statements that go element by
 * element and folds may take it so; others, and loads of rows that lie apart, may not. */
static void find_columns(layout *l, const bb_tile_stmt *s, double times) {
  (void)times;
  const bb_tile *tile = l->c->p->tile;
  bool fits = s->kind == BB_TILE_MAP || s->kind == BB_TILE_ANY || s->kind == BB_TILE_STORE;
  if (s->kind == BB_TILE_FOLD)
    fits = s->second == BB_NONE && bb_dtype_is_float(tile[s->operand[0]].dtype);
  if (s->kind == BB_TILE_LOAD) fits = units(l->c, s, &tile[s->result]).row;
  if (fits) return;
  for (uint32_t i = 0; i < s->operands; i++) l->apart[s->operand[i]] = true;
  if (s->result != BB_NONE) l->apart[s->result] = true;
  if (s->second != BB_NONE) l->apart[s->second] = true;
}

static bool lies_along_rows(layout *l, uint32_t tile) {
  const bb_tile *t = &l->c->p->tile[tile];
  return lies_turned(l, tile) || (t->rows > 1 && t->cols == 1 && !l->apart[tile]);
}

/* Elements that are repeated are read row by row, again for every panel of the other side: a few
 * times is no reason to copy them, and the widest vectors take so long for a panel that rows come from the shared
 * cache meanwhile; products by tiles do not. */
static void find_far(layout *l, const bb_tile_stmt *s, double times) {
  (void)times;
  if (s->kind != BB_TILE_DOT) return;
  bool turned = lies_turned(l, s->result);
  const bb_tile *to = &l->c->p->tile[s->result];
  uint32_t along = turned ? to->rows : to->cols;
  bool wide = l->c->vector_bytes == 64 && !bb_c_is_by_tiles(l->c, s);
  uint32_t panels = wide ? AGAIN_WIDE : AGAIN;
  if (along > panels * bb_c_panel(l->c->vector_bytes))
    l->c->tile[s->operand[turned ? 1 : 0]].reused = true;
}

/* A product reads it on its vector side, and there alone. */
static void find_wide(layout *l, const bb_tile_stmt *s, double times) {
  (void)times;
  for (uint32_t i = 0; i < s->operands; i++) {
    bb_c_tile *held = &l->c->tile[s->operand[i]];
    bool turned = s->result != BB_NONE && l->c->tile[s->result].turned;
    held->narrow &=
        s->kind == BB_TILE_DOT && i == (turned ? 0 : 1) && s->operand[0] != s->operand[1];
  }
  if (s->kind != BB_TILE_LOAD && s->result != BB_NONE) l->c->tile[s->result].narrow = false;
}

/* Blocks that are loaded once and go to products alone may stay as they are stored. */
static void choose_narrow(layout *l) {
  bb_c *c = l->c;
  for (uint32_t t = 0; t < c->p->tiles; t++) {
    bb_dtype dtype = c->p->tile[t].dtype;
    c->tile[t].narrow = bb_c_is_narrow(c, dtype) && c->tile[t].writers == 1 && c->tile[t].readers &&
                        bb_c_may_turn(&c->p->tile[t]) && !c->tile[t].panels && !bb_c_passes(c, t);
  }
  walk(l, &c->p->body, 1, find_wide);
}

static void find_pads(layout *l, const bb_tile_stmt *s, double times) {
  (void)times;
  if (s->kind == BB_TILE_LOAD)
    l->c->tile[s->result].narrow &=
        s->pad == 0 && l->c->p->view[s->view].dtype == l->c->p->tile[s->result].dtype;
}

static void choose_window(layout *l, const bb_tile_stmt *s, double times) {
  (void)times;
  if (s->kind != BB_TILE_LOAD || l->c->tile[s->result].panels) return;
  const bb_tile *t = &l->c->p->tile[s->result];
  const bb_tile_view *view = &l->c->p->view[s->view];
  bb_c_tile *held = &l->c->tile[s->result];
  bool converts =
      !held->narrow && strcmp(bb_c_stored(l->c, view->dtype), bb_c_element(l->c, view->dtype)) != 0;
  unit_axes u = units(l->c, s, t);
  bool far = held->reused && bb_c_may_turn(t) && (u.apart == 0 || u.apart >= FAR);
  held->window = held->writers == 1 && !bb_c_passes(l->c, s->result) && !converts && !far &&
                 !bb_c_is_in_pieces(l->c, s) && (held->turned ? u.row : u.col);
}

/* --- bundles --- */

/* A block on the repeated side of products in a loop over strips, loaded right before it: each strip reads all
 * of it. */
typedef struct bundling {
  layout *l;
  const bb_tile_body **loaded; /* by tile: where a load of it stands */
  bool *wanted, *other;        /* such products read it; something else does */
} bundling;

/* Neighbours in memory are those that a strip of the product repeats side by side. */
static bool reads_down(const bb_c *c, const bb_tile_stmt *dot, uint32_t side) {
  bool swapped = dot->transposed[side] != (side == 1);
  return c->tile[dot->operand[side]].turned != swapped;
}

/* before: the body that the loop over strips around the statement stands in; NULL: there is none. */
static void note_bundle(bundling *b, const bb_tile_stmt *s, const bb_tile_body *before) {
  const bb_c *c = b->l->c;
  for (uint32_t i = 0; i < s->operands; i++) {
    uint32_t tile = s->operand[i];
    const bb_tile *t = &c->p->tile[tile];
    bool fits = before && b->loaded[tile] == before && s->kind == BB_TILE_DOT &&
                s->operand[0] != s->operand[1] && !c->tile[s->operand[1 - i]].panels &&
                !c->tile[s->operand[1 - i]].narrow && bb_dtype_is_float(t->dtype) &&
                bb_c_may_turn(t) && !bb_c_is_by_tiles(c, s) &&
                i == (c->tile[s->result].turned ? 1 : 0) && reads_down(c, s, i);
    *(fits ? &b->wanted[tile] : &b->other[tile]) = true;
  }
}

static void find_bundles(bundling *b, const bb_tile_body *body, const bb_tile_body *before) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind == BB_TILE_LOAD) b->loaded[s->result] = body;
    note_bundle(b, s, before);
    find_bundles(b, &s->body, before);
    if (!s->loop) continue;
    bool strips = s->loop->variable == b->l->c->strips.variable;
    find_bundles(b, &s->loop->body, strips ? body : before);
  }
}

static void choose_bundles(layout *l) {
  bb_c *c = l->c;
  bb_arena *arena = c->out->arena;
  if (c->strips.variable == BB_NONE) return;
  bundling b = {l, BB_NEW(arena, const bb_tile_body *, c->p->tiles + 1),
                BB_NEW(arena, bool, c->p->tiles + 1), BB_NEW(arena, bool, c->p->tiles + 1)};
  find_bundles(&b, &c->p->body, NULL);
  for (uint32_t t = 0; t < c->p->tiles; t++)
    c->tile[t].bundled =
        b.wanted[t] && !b.other[t] && c->tile[t].writers == 1 && !c->tile[t].panels;
}

/* Rows that begin a multiple of 256 bytes apart share few sets of a cache.  A strip is read as a panel is, one row
 * after the other. */
static uint32_t pitch(const bb_c *c, const bb_tile *t, bool turned) {
  uint32_t along = turned ? t->rows : t->cols;
  if (!bb_c_may_turn(t)) return turned ? bb_c_whole(along) : along ? along : 1;
  if (c->strips.variable != BB_NONE && along == c->strips.size) return along;
  return along >= 64 && along % 64 == 0 ? along + 16 : bb_c_whole(along);
}

void bb_c_lay_out(bb_c *c) {
  layout l = {.c = c};
  find_classes(&l);
  walk(&l, &c->p->body, 1, count_uses);
  bb_c_count_packs(c);
  for (int i = 0; i < DESCENTS && descend(&l); i++) continue;
  walk(&l, &c->p->body, 1, find_columns);
  for (uint32_t i = 0; i < c->p->tiles; i++) {
    c->tile[i].turned = lies_along_rows(&l, i);
    c->tile[i].pitch = pitch(c, &c->p->tile[i], c->tile[i].turned);
  }
  walk(&l, &c->p->body, 1, find_far);
  choose_narrow(&l);
  walk(&l, &c->p->body, 1, find_pads);
  walk(&l, &c->p->body, 1, choose_window);
  bb_c_choose_ahead(c);
  choose_bundles(&l);
}
