/* emit_sm90_core.c - the loops of a role: the grid's, which the copier and the warps that compute go
 * through alike, and the core's serial loop in its stretches.
 */
#include "code.h"
#include "emit_sm90.h"
#include "infix.h"
#include "tile_edit.h"

#include <string.h>

/* --- the grid's loops --- */

/* How far the loop ends behind its begin, where it ends at so much more; NULL: it does not. */
static bb_tile_index span_of(const bb_tile_loop *loop) {
  bb_tile_index from = loop->stretch[0].from, to = loop->stretch[0].to;
  if (to->op != BB_X_ADD || from->op == BB_X_CONST) return NULL;
  return to->a[0] == from ? to->a[1] : to->a[1] == from ? to->a[0] : NULL;
}

const char *bb_cuda_trips(const bb_cuda *e, const bb_tile_loop *loop, const char *const *names) {
  bb_tile_index span = span_of(loop);
  if (span)
    return bb_infix_trips(e->arena, "0", bb_cuda_index(e, span, names),
                          bb_cuda_index(e, loop->step, names));
  return bb_infix_trips(e->arena, bb_cuda_index(e, loop->stretch[0].from, names),
                        bb_cuda_index(e, loop->stretch[0].to, names),
                        bb_cuda_index(e, loop->step, names));
}

/* The variable's value in the i-th iteration. */
static const char *value_at(const bb_cuda *e, const bb_tile_loop *loop, const char *const *names,
                            const char *i) {
  const char *from = bb_cuda_index(e, loop->stretch[0].from, names);
  if (loop->down) {
    const char *last = bb_infix(e->arena, bb_cuda_trips(e, loop, names), "-", "1");
    i = bb_infix(e->arena, last, "-", i);
  }
  return bb_infix(e->arena, from, "+",
                  bb_infix(e->arena, bb_cuda_index(e, loop->step, names), "*", i));
}

/* Iterations of the loops from k on. */
static const char *product_from(const bb_cuda *e, uint32_t k, const char **names) {
  const char *product = "1";
  for (; k < e->grids; k++) {
    product = bb_infix(e->arena, product, "*", bb_cuda_trips(e, e->grid[k], names));
    names[e->grid[k]->variable] = value_at(e, e->grid[k], names, "0");
  }
  return product;
}

const char *bb_cuda_reads(const bb_cuda *e, const bb_tile_stmt *load) {
  bool told[8] = {false}; /* by loop: what is loaded depends on where it stands */
  const char **names = BB_NEW(e->arena, const char *, e->p->variables + 1);
  const char *reads = "1";
  for (uint32_t k = e->grids; k-- > 0;) {
    uint32_t variable = e->grid[k]->variable;
    told[k] = bb_tile_load_varies(e->p, load, variable);
    for (uint32_t i = k + 1; i < e->grids; i++)
      told[k] |= told[i] && bb_expr_uses_arg(e->grid[i]->stretch[0].from, variable);
  }
  for (uint32_t i = 0; i < e->p->extents; i++) names[i] = e->p->variable[i];
  for (uint32_t k = 0; k < e->grids; k++) {
    if (!told[k]) reads = bb_infix(e->arena, reads, "*", bb_cuda_trips(e, e->grid[k], names));
    names[e->grid[k]->variable] = value_at(e, e->grid[k], names, "0");
  }
  return reads;
}

/* How many iterations loops within have may depend on the outermost only: their last round may be shorter. */
static void check_ragged(const bb_cuda *e) {
  for (uint32_t k = 1; k < e->grids; k++)
    for (uint32_t i = 1; i < k; i++) {
      const bb_tile_loop *loop = e->grid[k];
      bb_tile_index span = span_of(loop);
      bool bounds = span ? bb_expr_uses_arg(span, e->grid[i]->variable)
                         : bb_expr_uses_arg(loop->stretch[0].from, e->grid[i]->variable) ||
                               bb_expr_uses_arg(loop->stretch[0].to, e->grid[i]->variable);
      if (bounds || bb_expr_uses_arg(loop->step, e->grid[i]->variable))
        bb_cuda_refuse(e, NULL, "bounds of the grid that depend on an inner loop");
    }
}

const char *bb_cuda_tiles(bb_cuda *e, const char **names) {
  check_ragged(e);
  if (!e->grids) return "1";
  const bb_tile_loop *outer = e->grid[0];
  const char *count = bb_cuda_trips(e, outer, names);
  names[outer->variable] = value_at(e, outer, names, "0");
  const char *first = product_from(e, 1, names);
  names[outer->variable] =
      value_at(e, outer, names, bb_arena_printf(e->arena, "max(%s - 1, 0)", count));
  const char *last = product_from(e, 1, names);
  if (strcmp(first, last) == 0) return bb_infix(e->arena, count, "*", first);
  const char *before = bb_infix(e->arena, bb_infix(e->arena, count, "-", "1"), "*", first);
  return bb_infix(e->arena, before, "+", last);
}

/* Neighbours of the grid's numbers are neighbours along the pairs' loop where those within it have one iteration; and all are
 * pairs where it always has an even number of them, in the outermost loop's last round, too. */
const char *bb_cuda_pair_size(bb_cuda *e, const char **names) {
  const char *size = "1";
  uint32_t at = 0;
  while (at < e->grids && e->grid[at] != e->pair) at++;
  if (at == e->grids) return size;
  for (uint32_t last = 0; last < 2; last++) {
    const char *count = bb_cuda_trips(e, e->grid[0], names), *trips = count, *inner = "1";
    const char **here = BB_NEW(e->arena, const char *, e->p->variables + 1);
    memcpy(here, names, e->p->variables * sizeof *here);
    if (last) count = bb_arena_printf(e->arena, "max(%s - 1, 0)", count);
    here[e->grid[0]->variable] = value_at(e, e->grid[0], here, last ? count : "0");
    for (uint32_t k = 1; k < e->grids; k++) {
      if (k == at) trips = bb_cuda_trips(e, e->grid[k], here);
      if (k > at) inner = bb_infix(e->arena, inner, "*", bb_cuda_trips(e, e->grid[k], here));
      here[e->grid[k]->variable] = value_at(e, e->grid[k], here, "0");
    }
    const char *even = bb_arena_printf(e->arena, "(1 - ((%s) - (%s) / 2 * 2))", trips, trips);
    size = bb_infix(e->arena, size, "*", even);
    if (at + 1 < e->grids)
      size = bb_infix(e->arena, size, "*", bb_arena_printf(e->arena, "max(2 - %s, 0)", inner));
  }
  return bb_infix(e->arena, size, "+", "1");
}

static bool follows_grid(const bb_cuda *e, bb_tile_index index) {
  for (uint32_t k = 0; k < e->grids; k++)
    if (bb_expr_uses_arg(index, e->grid[k]->variable)) return true;
  return false;
}

void bb_cuda_place_function(bb_cuda *e) {
  const char **names = BB_NEW(e->arena, const char *, e->p->variables + 1);
  for (uint32_t i = 0; i < e->p->extents; i++)
    names[i] = bb_arena_printf(e->arena, "p.%s", e->p->variable[i]);
  bb_cuda_line(e, "// Where iteration t of the grid's loops stands.");
  bb_put(e->out, "struct Place { int %s", e->grids ? e->p->variable[e->grid[0]->variable] : "none");
  for (uint32_t k = 1; k < e->grids; k++)
    bb_put(e->out, ", %s", e->p->variable[e->grid[k]->variable]);
  bb_put(e->out, "; };\n");
  bb_cuda_line(e, "static __device__ __forceinline__ Place place_of(const Params &p, int t) {");
  bb_cuda_line(e, "  Place place;");
  for (uint32_t k = 0; k < e->grids; k++) {
    if (e->grid[k]->step->op == BB_X_CONST || follows_grid(e, e->grid[k]->step)) continue;
    const char *step = bb_arena_printf(e->arena, "step_%s", e->p->variable[e->grid[k]->variable]);
    bb_cuda_line(e, "  const int %s = %s;", step, bb_cuda_index(e, e->grid[k]->step, names));
    e->step_name[k] = step;
  }
  for (uint32_t k = 0; k < e->grids; k++) {
    const bb_tile_loop *loop = e->grid[k];
    const char *name = e->p->variable[loop->variable];
    const char *i = bb_arena_printf(e->arena, "i%u", k);
    if (k + 1 < e->grids) {
      const char *value = value_at(e, loop, names, i);
      names[loop->variable] = value_at(e, loop, names, "0");
      bb_cuda_line(e, "  const int per%u = %s, i%u = t / per%u;", k, product_from(e, k + 1, names),
                   k, k);
      bb_cuda_line(e, "  place.%s = %s, t -= i%u * per%u;", name, value, k, k);
    } else {
      bb_cuda_line(e, "  place.%s = %s;", name, value_at(e, loop, names, "t"));
    }
    names[loop->variable] = bb_arena_printf(e->arena, "place.%s", name);
  }
  for (uint32_t k = 0; k < e->grids; k++) e->step_name[k] = NULL;
  bb_cuda_line(e, "  return place;");
  bb_cuda_line(e, "}");
}

/* --- roles --- */

static void put_rings(bb_cuda *e) {
  for (uint32_t i = 0; i < e->p->tiles; i++)
    if (e->tile[i].ring && !e->sm80 && bb_cuda_copies(e, i))
      bb_cuda_line(e, "tl::Ring<%u> %s_ring;", e->p->tile[i].buffers, e->tile[i].name);
}

/* Of a queue: the copier tells the others which one it is; a pair's second block hears it of the first's. */
static void put_next_of_queue(bb_cuda *e, bool copier) {
  bb_cuda_line(e, "int round = 0%s;", copier ? ", t = blockIdx.x" : "");
  bb_cuda_line(e, "auto next = [&](Place &x) {");
  if (copier && e->pair)
    bb_cuda_line(e, "  if (mine) t = tl::mailbox_hear(sync.mailbox, round++);");
  if (copier)
    bb_cuda_line(e, "  %stl::mailbox_put(sync.mailbox, round++, t = t < p.tiles ? t : -1%s);",
                 e->pair ? "else " : "", e->pair ? ", mates" : "");
  else
    bb_cuda_line(e, "  const int t = tl::mailbox_get(sync.mailbox, round++%s);",
                 e->pair ? ", mates, mine" : "");
  bb_cuda_line(e, "  if (t >= 0) x = place_of(p, t);");
  bb_cuda_line(e, "  return t >= 0;");
  bb_cuda_line(e, "};");
}

/* next(place): the block's next iteration of the grid's loops, if there is one. */
static void put_next(bb_cuda *e, bool copier) {
  const bb_tile_loop *grid = e->grids ? e->grid[0] : NULL;
  if (grid && grid->queue) {
    put_next_of_queue(e, copier);
    return;
  }
  bb_cuda_line(e, "int t = blockIdx.x%s;", e->cluster ? " / tl::cluster_size()" : "");
  bb_cuda_line(e, "auto next = [&](Place &x) {");
  bb_cuda_line(e, "  if (t >= p.tiles) return false;");
  bb_cuda_line(e, "  x = place_of(p, t), t = %s;",
               grid && grid->persistent ? "t + gridDim.x" : "p.tiles");
  bb_cuda_line(e, "  return true;");
  bb_cuda_line(e, "};");
}

const char **bb_cuda_names_in(bb_cuda *e, const char *place, const char *serial) {
  const char **names = BB_NEW(e->arena, const char *, e->p->variables + 1);
  for (uint32_t i = 0; i < e->p->variables; i++) names[i] = e->p->variable[i];
  for (uint32_t i = 0; i < e->p->extents; i++)
    names[i] = bb_arena_printf(e->arena, "p.%s", e->p->variable[i]);
  for (uint32_t i = 0; i < e->grids; i++) {
    uint32_t v = e->grid[i]->variable;
    names[v] = bb_arena_printf(e->arena, "%s.%s", place, e->p->variable[v]);
  }
  if (e->serial) names[e->serial->variable] = serial;
  if (e->cluster)
    names[e->cluster->variable] = bb_infix(
        e->arena, bb_cuda_index(e, e->cluster->stretch[0].from, names), "+",
        bb_infix(e->arena, "tl::cluster_rank()", "*", bb_cuda_index(e, e->cluster->step, names)));
  return names;
}

static void open(bb_cuda *e, const char *text) {
  bb_cuda_line(e, "%s", text);
  e->depth++;
}

static void close(bb_cuda *e) {
  e->depth--;
  bb_cuda_line(e, "}");
}

/* The serial loop's variable, now and in the iteration before; no name of what the code counts with. */
static const char *serial_name(const bb_cuda *e) {
  return bb_arena_printf(e->arena, "%s_now", e->p->variable[e->serial->variable]);
}

static const char *old_name(const bb_cuda *e) {
  return bb_arena_printf(e->arena, "%s_old", e->p->variable[e->serial->variable]);
}

static void put_first(bb_cuda *e, const char *const *bounds) {
  if (e->begins) {
    bb_cuda_marked_begin(e);
    bb_cuda_line(e, "%s = %s;", serial_name(e), bb_cuda_begin_name(e));
    return;
  }
  bb_cuda_line(e, "%s = %s;", serial_name(e), bb_cuda_index(e, e->serial->stretch[0].from, bounds));
}

/* How variables are called in the serial loop's bounds. */
static const char *const *names_of_bounds(bb_cuda *e, bool copier) {
  return copier && e->leads ? bb_cuda_names_of_both(e) : NULL;
}

/* An iteration has ended. */
static void put_old(bb_cuda *e) {
  bb_cuda_line(e, "%s = %s;", old_name(e), serial_name(e));
}

/* How many stretches from i on are one loop in the code, as most of a compiler's time is by the body.  A copier's is short. */
static uint32_t alike_from(bb_cuda *e, uint32_t i, bool copier) {
  const bb_tile_stretch *s = e->serial->stretch;
  uint32_t next = i + 1;
  if (copier || !s[i].to) return 1;
  while (next < e->serial->stretches && s[next].to && bb_cuda_may_be_one(e, i, next)) next++;
  return next - i;
}

/* A bound of stretch i, or of the one of `alike` that is the loop's turn. */
static const char *bound_of(bb_cuda *e, uint32_t i, uint32_t alike, const char *part, bool end,
                            const char *const *names) {
  const bb_tile_stretch *s = &e->serial->stretch[i];
  const char *own = bb_cuda_index(e, end ? s->to : s->from, names);
  if (alike == 1) return own;
  return bb_arena_printf(e->arena, "%s == %u ? %s : %s", part, i, own,
                         bound_of(e, i + 1, alike - 1, part, end, names));
}

static void put_stretch(bb_cuda *e, uint32_t i, uint32_t alike, bb_cuda_place list, bool copier) {
  const bb_tile_stretch *s = &e->serial->stretch[i];
  const char *const *bounds = names_of_bounds(e, copier);
  const char *n = serial_name(e), *part = bb_arena_printf(e->arena, "%s_part", n);
  const char *from = bound_of(e, i, alike, part, false, bounds);
  const char *step = bb_cuda_index(e, e->serial->step, NULL);
  /* one thread that waits for buffers: repeated, its code takes a tenth of a compiler's time and no less of its own */
  /* and products that run on, of so many iterations as are known: repeated, they get other registers, which have to be waited for */
  bool known = s->to && s->to->op == BB_X_CONST && s->from->op == BB_X_CONST && alike == 1;
  const char *rolled = copier || (e->lags && known) ? "TL_ROLLED " : "";
  if (!s->to) {
    put_first(e, bounds);
    open(e, "{");
  } else {
    /* bounds once, however dear: the loop's barriers keep a compiler from moving them out */
    const char *first = bb_arena_printf(e->arena, "%s_first%u", n, i);
    const char *end = bb_arena_printf(e->arena, "%s_end%u", n, i);
    if (alike > 1)
      open(e, bb_arena_printf(e->arena, "TL_ROLLED for (int %s = %u; %s < %u; %s++) {", part, i,
                              part, i + alike, part));
    bb_cuda_line(e, "const int %s = %s;", end, bound_of(e, i, alike, part, true, bounds));
    if (alike == 1 && s->from->op == BB_X_CONST)
      first = from;
    else
      bb_cuda_line(e, "const int %s = %s;", first, from);
    const bb_cuda_stretch all = {n, first, end};
    if (e->marks) {
      open(e, "{");
      bb_cuda_put_marks(e);
      const char *begin = bb_cuda_marked_first(e, &all, e->begins ? bb_cuda_begin_name(e) : NULL);
      open(e, bb_arena_printf(e->arena, "%sfor (%s = %s; %s %s %s; %s = %s) {", rolled, n, begin, n,
                              e->serial->down ? ">=" : "<", e->serial->down ? first : end, n,
                              bb_cuda_marked_next(e, &all)));
    } else if (e->serial->down) {
      const char *trips = bb_infix_trips(e->arena, first, end, step);
      const char *last = bb_infix(e->arena, bb_infix(e->arena, trips, "-", "1"), "*", step);
      open(e, bb_arena_printf(e->arena, "%sfor (%s = %s; %s >= %s; %s -= %s) {", rolled, n,
                              bb_infix(e->arena, first, "+", last), n, first, n, step));
    } else {
      open(e, bb_arena_printf(e->arena, "%sfor (%s = %s; %s < %s; %s += %s) {", rolled, n, first, n,
                              end, n, step));
    }
  }
  bb_cuda_list_code(e, list, (bb_cuda_stretches){i, alike, part}, copier);
  if (e->stages) put_old(e);
  close(e);
  if (s->to && e->marks) close(e);
  if (alike > 1) close(e);
}

static void put_stretches(bb_cuda *e, uint32_t from, bb_cuda_place list, bool copier) {
  for (uint32_t i = from, alike; i < e->serial->stretches; i += alike) {
    alike = alike_from(e, i, copier);
    put_stretch(e, i, alike, list, copier);
  }
}

static const bb_cuda_stretches FIRST = {0, 1, NULL};

/* The loop's first iteration, alone or beside the end of the one before. */
static void put_begin(bb_cuda *e, bb_cuda_place list, bool copier) {
  put_first(e, names_of_bounds(e, copier));
  if (!copier) bb_cuda_pass_over(e, 0);
  bb_cuda_list_code(e, list, FIRST, copier);
  if (!copier) bb_cuda_pass_over(e, 1);
  put_old(e);
}

/* The core, once, for loops with stages: begin, the others, end. */
static void put_staged(bb_cuda *e, bool copier) {
  put_begin(e, BB_LIST_BEGIN, copier);
  put_stretches(e, 1, BB_LIST_STEADY, copier);
  bb_cuda_list_code(e, BB_LIST_END, FIRST, copier);
}

static void put_plain(bb_cuda *e, bool copier) {
  if (e->sm80) bb_cuda80_begin(e);
  bb_cuda_run_list(e, &e->before, copier);
  if (!e->serial) return;
  if (e->added && !copier) bb_cuda_ask_added(e);
  if (e->lags && !copier)
    bb_cuda_line(e, "bool behind = false; // an iteration whose products run");
  put_stretches(e, 0, BB_LIST_PLAIN, copier);
  if (e->lags && !copier) bb_cuda_end_lag(e);
  if (e->sm80) bb_cuda80_copies(e, &e->after);
  bb_cuda_run_list(e, &e->after, copier);
  if (!copier) bb_cuda_put_ending(e);
}

/* The next iteration of a queue: its counter may still be an earlier launch's. */
static void put_take(bb_cuda *e) {
  bb_cuda_put_write(e);
  if (e->pair)
    bb_cuda_line(e,
                 "if (!mine) t = gridDim.x + mates * atomicInc(p.counter, p.tiles / mates - 1);");
  else
    bb_cuda_line(e, "t = gridDim.x + atomicInc(p.counter, p.tiles - 1);");
}

/* The end of an iteration of the grid's loops overlaps the begin of the next. */
static void put_rotated(bb_cuda *e, bool copier) {
  bb_cuda_line(e, "bool more = next(place);");
  open(e, "if (more) {");
  put_begin(e, BB_LIST_BEGIN, copier);
  close(e);
  open(e, "while (more) {");
  put_stretches(e, 1, BB_LIST_STEADY, copier);
  bb_cuda_line(e, "const Place old = place;");
  const char **plain = e->old_variable;
  e->old_variable = bb_cuda_names_in(e, "old", old_name(e));
  /* asked for only now: sooner, a block with a long iteration would take as many as others */
  if (copier && e->grid[0]->queue) put_take(e);
  bb_cuda_line(e, "more = next(place);");
  open(e, "if (more) {");
  put_begin(e, BB_LIST_JOIN, copier);
  e->depth--;
  open(e, "} else {");
  bb_cuda_list_code(e, BB_LIST_END, FIRST, copier);
  close(e);
  e->old_variable = plain;
  close(e);
}

static void put_tail(bb_cuda *e) {
  if (bb_cuda_is_shared(e)) {
    bb_cuda_share(e);
    return;
  }
  if (e->warps) {
    bb_cuda_merge(e, e->warps);
    open(e, "if (my_warp == 0) {");
    bb_cuda_run_list(e, &e->after_warps, false);
    if (!e->cluster) bb_cuda_run_list(e, &e->after_cluster, false);
    close(e);
  }
  if (e->cluster) {
    bb_cuda_merge(e, e->cluster);
    open(e, bb_arena_printf(e->arena, "if (tl::cluster_rank() == 0%s) {",
                            e->warps ? " && my_warp == 0" : ""));
    bb_cuda_run_list(e, &e->after_cluster, false);
    close(e);
  }
}

/* What comes to registers is asked for before anything else: it wants no barrier. */
static void put_first_loads(bb_cuda *e) {
  while (e->before.count && e->before.stmt[0]->kind == BB_TILE_LOAD) {
    bb_cuda_stmt(e, e->before.stmt[0]);
    e->before.stmt++, e->before.count--;
  }
}

/* A warp that copies for itself: its first buffers, and a buffer again when it was read. */
static void put_own_copies(bb_cuda *e) {
  const bb_tile_stretch *s = &e->serial->stretch[0];
  const char *step = bb_cuda_index(e, e->serial->step, NULL);
  if (e->serial->stretches != 1 || !s->to || e->serial->down)
    bb_cuda_refuse(e, NULL, "a warp's loop of several stretches");
  bb_cuda_line(e, "const int first = %s, last = %s;", bb_cuda_index(e, s->from, NULL),
               bb_cuda_index(e, s->to, NULL));
  const char **now = e->variable;
  e->variable = bb_cuda_names_in(e, "place", "ahead");
  e->variable[e->warps->variable] = "my_warp";
  for (uint32_t i = 0; i < e->serial->body.count; i++) {
    const bb_tile_stmt *load = e->serial->body.stmt[i];
    if (load->kind != BB_TILE_LOAD || !e->tile[load->result].ring) continue;
    const bb_tile *t = &e->p->tile[load->result];
    const char *name = e->tile[load->result].name;
    uint32_t bytes = bb_tile_shared_bytes(t);
    open(e, bb_arena_printf(e->arena, "auto fetch_%s = [&](int buffer, int ahead) {", name));
    bb_cuda_line(e, "tl::barrier_expect(&sync.%s[my_warp].full[buffer], %u);", name, bytes);
    bb_cuda_load(e, load, 0,
                 bb_arena_printf(e->arena, "tile_memory + %u + (my_warp * %u + buffer) * %u",
                                 e->tile[load->result].offset, t->buffers, bytes),
                 bb_arena_printf(e->arena, "&sync.%s[my_warp].full[buffer]", name));
    e->depth--;
    bb_cuda_line(e, "};");
    bb_cuda_line(e, "if (tl::lane() == 0)");
    bb_cuda_line(e,
                 "  for (int i = 0, ahead = first; i < %u && ahead < last; i++, ahead += %s) "
                 "fetch_%s(i, ahead);",
                 t->buffers, step, name);
    open(e, bb_arena_printf(e->arena, "auto refill_%s = [&]() {", name));
    /* what the warp reads there has to have come: copies keep no order with its loads */
    bb_cuda_line(e, "tl::fence_copies();");
    bb_cuda_line(e, "__syncwarp();");
    bb_cuda_line(e, "const int ahead = %s + %u * (%s);", serial_name(e), t->buffers, step);
    bb_cuda_line(e, "if (tl::lane() == 0 && ahead < last) fetch_%s(%s_ring.at, ahead);", name,
                 name);
    bb_cuda_line(e, "%s_ring.next();", name);
    e->depth--;
    bb_cuda_line(e, "};");
  }
  e->variable = now;
}

/* The grid's loops, in them the core. */
static void put_loops(bb_cuda *e, bool copier) {
  if (e->grids && e->grid[0]->rotate) {
    put_rotated(e, copier);
  } else {
    open(e, "while (next(place)) {");
    if (e->warps && e->serial) {
      put_first_loads(e);
      put_own_copies(e);
    }
    if (e->stages)
      put_staged(e, copier);
    else
      put_plain(e, copier);
    if (!copier) put_tail(e);
    if (copier && e->grids && e->grid[0]->queue) put_take(e);
    close(e);
  }
}

/* The serial loop's variable, and what it was, where the code of the loops asks for it. */
static void declare_serial(bb_cuda *e, bb_buffer *loops) {
  const char *name[2] = {old_name(e), serial_name(e)}; /* the first is set to the second */
  for (uint32_t i = 0; i < 2; i++)
    if (bb_code_reads(loops, name[i]))
      bb_code_declare(loops, name[i], e->depth, "int %s = 0;", name[i]);
  if (e->begins)
    bb_code_declare(loops, bb_cuda_begin_name(e), e->depth, "int %s;", bb_cuda_begin_name(e));
}

void bb_cuda_role(bb_cuda *e, bool copier) {
  e->variable = bb_cuda_names_in(e, "place", e->serial ? serial_name(e) : "");
  e->old_variable = bb_cuda_names_in(e, "place", e->serial ? old_name(e) : "");
  if (e->warps) e->variable[e->warps->variable] = "my_warp";
  put_rings(e);
  if (e->added && !copier) bb_cuda_line(e, "tl::u32 added_phase = 0; // a bit for each piece");
  if (bb_cuda_is_odd(e) && !copier)
    bb_cuda_line(e, "int odd = 0; // the piece's memory that is next");
  /* said to be uniform here: else places in rings are none, and products' operands are computed by every thread */
  if (e->leads && !copier) bb_cuda_line(e, "const int alone = tl::uniform(mates - 1 - mine);");
  put_next(e, copier);
  if (copier && !e->sm80) bb_cuda_early(e);
  bb_cuda_line(e, "Place place;");
  bb_buffer *out = e->out, loops = {.arena = e->arena};
  e->out = &loops;
  put_loops(e, copier);
  e->out = out;
  if (e->serial) declare_serial(e, &loops);
  bb_put_bytes(out, loops.data, loops.length);
  /* until the memory may go: that writes are there is what the kernel's end means */
  if (!copier) bb_cuda_put_write(e); /* whoever follows waits for this launch alone */
  if (!copier && e->puts) bb_cuda_line(e, "if (tl::lane() == 0) tl::put_read();");
  if (!copier && e->pair) {
    bb_cuda_line(e, "__syncwarp();");
    bb_cuda_line(e, "tl::cluster_leave(); // the mate's barriers are there until this");
  }
}
