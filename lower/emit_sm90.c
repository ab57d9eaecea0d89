/* emit_sm90.c - a tile program as CUDA for sm_90a: the frame of a kernel, and what its launch needs. */
#include "code.h"
#include "emit_sm90.h"

#include <string.h>

/* --- arguments --- */

static bool is_pointed_at(const bb_cuda *e, uint32_t view, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    uint32_t tile = s->kind == BB_TILE_STORE ? s->operand[0] : s->result;
    if (s->view == view && (e->sm80 || e->p->tile[tile].place != BB_PLACE_SHARED)) return true;
    if (is_pointed_at(e, view, &s->body) || (s->loop && is_pointed_at(e, view, &s->loop->body)))
      return true;
  }
  return false;
}

/* Is a view loaded (BB_TILE_LOAD) or stored (BB_TILE_STORE) anywhere in a body? */
static bool is_moved(bb_tile_kind kind, uint32_t view, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if ((s->kind == kind && s->view == view) || is_moved(kind, view, &s->body) ||
        (s->loop && is_moved(kind, view, &s->loop->body)))
      return true;
  }
  return false;
}

static bool is_stored(uint32_t view, const bb_tile_body *body) {
  return is_moved(BB_TILE_STORE, view, body);
}

static bool is_argument(const bb_cuda *e, uint32_t view) {
  return is_pointed_at(e, view, &e->p->body) || (e->marks && e->serial->marks == view);
}

static bool has_queue(const bb_cuda *e) {
  return e->grids && e->grid[0]->queue;
}

static void put_params(bb_cuda *e) {
  bb_cuda_line(e, "struct Params {");
  for (uint32_t i = 0; i < e->maps; i++) bb_cuda_line(e, "  tl::tensor_map %s;", e->map[i].name);
  for (uint32_t i = 0; i < e->p->views; i++) {
    const bb_tile_view *v = &e->p->view[i];
    if (is_argument(e, i))
      bb_cuda_line(e, "  %s%s *%s;", v->written ? "" : "const ", bb_cuda_type(v->dtype),
                   bb_cuda_view_name(e, i));
  }
  if (e->split)
    bb_cuda_line(e, "  float *parts; unsigned *done; // of blocks; 0 between launches, they wrap");
  if (has_queue(e))
    bb_cuda_line(e, "  unsigned *counter; // 0 between launches: it wraps by itself");
  for (uint32_t i = 0; i < e->p->extents; i++) bb_cuda_line(e, "  int %s;", e->p->variable[i]);
  bb_cuda_line(e, "  int tiles; // iterations of the grid's loops");
  bb_cuda_line(e,
               "  unsigned early; // a bit for each view: earlier launches that run do not write "
               "there%s",
               e->ahead ? "; the last one: it runs ahead" : "");
  bb_cuda_line(e, "};");
}

/* As bb_sm90_map has it. */
static uint32_t edge_of(const bb_cuda *e, const bb_cuda_map *m) {
  for (uint32_t k = 0; m->edge && k < e->p->view[m->view].rank; k++)
    if (m->axis[k] == BB_AXIS_ROW) return k + 1;
  return 0;
}

static void put_launch(bb_cuda *e, bb_buffer *out) {
  const char **names = BB_NEW(e->arena, const char *, e->p->variables + 1);
  const char *comma = "";
  for (uint32_t i = 0; i < e->p->variables; i++) names[i] = e->p->variable[i];
  bb_put(out,
         "{\"kernel\": \"%s\", \"threads\": %u, \"shared\": %u, \"resident\": %u, \"persistent\": "
         "%s,\n",
         e->p->name, e->threads, e->shared, e->resident,
         e->grids && e->grid[0]->persistent ? "true" : "false");
  const char *mates = bb_cuda_pair_size(e, names), *tiles = bb_cuda_tiles(e, names);
  bb_put(out, " \"tiles\": \"%s\", \"cluster\": \"%s\", \"mates\": \"%s\",\n", tiles,
         e->cluster ? bb_cuda_trips(e, e->cluster, names) : "1", mates);
  bb_put(out, " \"maps\": [");
  for (uint32_t i = 0; i < e->maps; i++) {
    const bb_cuda_map *m = &e->map[i];
    const bb_tile_view *v = &e->p->view[m->view];
    bb_put(out, "%s\n  {\"view\": \"%s\", \"type\": \"%s\", \"extents\": [", i ? "," : "", v->name,
           bb_dtype_name(v->dtype));
    for (uint32_t k = 0; k < v->rank; k++)
      bb_put(out, "%s\"%s\"", k ? ", " : "", bb_cuda_index(e, v->extent[k], names));
    bb_put(out, "], \"box\": [");
    for (uint32_t k = 0; k < v->rank; k++) bb_put(out, "%s%u", k ? ", " : "", m->box[k]);
    if (v->strided) bb_put(out, "], \"strides\": [");
    for (uint32_t k = 0; v->strided && k < v->rank; k++)
      bb_put(out, "%s\"%s\"", k ? ", " : "", bb_cuda_index(e, v->stride[k], names));
    bb_put(out, "], \"fold\": %u, \"edge\": %u, \"reads\": \"%s\"}", m->fold, edge_of(e, m),
           m->reads);
  }
  bb_put(out, "],\n \"pointers\": [");
  for (uint32_t i = 0; i < e->p->views; i++) {
    if (!is_argument(e, i)) continue;
    bb_put(out, "%s\"%s\"", comma, e->p->view[i].name);
    comma = ", ";
  }
  bb_put(out, "],");
  for (uint32_t i = 0; i < e->p->extents; i++) names[i] = e->p->variable[i];
  if (e->split)
    bb_put(out, " \"part\": %u, \"splits\": \"%s\",", bb_cuda_part_bytes(e),
           bb_cuda_trips(e, e->split, names));
  bb_put(out, " \"counter\": %s, \"ints\": [", has_queue(e) ? "true" : "false");
  for (uint32_t i = 0; i < e->p->extents; i++)
    bb_put(out, "%s\"%s\"", i ? ", " : "", e->p->variable[i]);
  bb_put(out, "]}\n");
}

static void fill_plan(bb_cuda *e, bb_sm90_launch *plan) {
  bb_arena *arena = e->p->home->arena;
  const char **names = BB_NEW(e->arena, const char *, e->p->variables + 1);
  for (uint32_t i = 0; i < e->p->variables; i++) names[i] = e->p->variable[i];
  *plan = (bb_sm90_launch){.kernel = e->p->name, .threads = e->threads, .shared = e->shared};
  plan->rows = e->sm80 ? e->group / 4 : 0;
  plan->resident = e->resident;
  plan->persistent = e->grids && e->grid[0]->persistent;
  plan->counter = has_queue(e);
  plan->ahead = e->ahead;
  plan->mates = bb_arena_printf(arena, "%s", bb_cuda_pair_size(e, names));
  plan->tiles = bb_arena_printf(arena, "%s", bb_cuda_tiles(e, names));
  for (uint32_t i = 0; i < e->p->variables; i++) names[i] = e->p->variable[i];
  plan->cluster = "1";
  if (e->cluster) plan->cluster = bb_arena_printf(arena, "%s", bb_cuda_trips(e, e->cluster, names));
  if (e->split) {
    plan->splits = bb_arena_printf(arena, "%s", bb_cuda_trips(e, e->split, names));
    plan->part = bb_cuda_part_bytes(e);
  }
  plan->maps = e->maps;
  for (uint32_t i = 0; i < e->maps; i++) {
    const bb_cuda_map *m = &e->map[i];
    const bb_tile_view *v = &e->p->view[m->view];
    bb_sm90_map *to = &plan->map[i];
    *to = (bb_sm90_map){.view = m->view, .rank = v->rank, .fold = m->fold, .edge = edge_of(e, m)};
    to->reads = bb_arena_printf(arena, "%s", m->reads);
    bb_tile_index stride = bb_expr_const(e->p->home, BB_I64, 1);
    for (uint32_t k = v->rank; k-- > 0;) {
      to->extent[k] = v->extent[k];
      to->stride[k] = v->strided ? v->stride[k] : stride;
      stride = bb_expr_make(e->p->home, BB_X_MUL, stride, v->extent[k], NULL);
      to->box[k] = m->box[k];
    }
  }
  uint32_t *pointer = BB_NEW(arena, uint32_t, e->p->views + 1);
  for (uint32_t i = 0; i < e->p->views; i++)
    if (is_argument(e, i)) pointer[plan->pointers++] = i;
  plan->pointer = pointer;
}

/* --- shared memory --- */

static void put_sync(bb_cuda *e) {
  bb_cuda_line(e, "struct Sync {");
  for (uint32_t i = 0; i < e->p->tiles; i++) {
    const bb_cuda_tile *t = &e->tile[i];
    if (!t->ring || e->sm80) continue;
    const char *each = e->warps       ? bb_arena_printf(e->arena, "[%u]", e->warp_count)
                       : t->parts > 1 ? bb_arena_printf(e->arena, "[%u]", t->parts)
                                      : "";
    bb_cuda_line(e, "  tl::%s<%u> %s%s;", e->warps ? "Arrivals" : "Barriers", e->p->tile[i].buffers,
                 t->name, each);
  }
  if (has_queue(e)) bb_cuda_line(e, "  tl::Mailbox mailbox;");
  if (bb_cuda_pushes(e)) bb_cuda_line(e, "  tl::u64 parts;");
  if (e->added) bb_cuda_line(e, "  tl::u64 added[%u][2];", e->warp_count);
  if (e->exchange) bb_cuda_line(e, "  float exchange[256];");
  if (e->split) bb_cuda_line(e, "  int last;");
  bb_cuda_line(e, "  int none;");
  bb_cuda_line(e, "};");
  if (e->sync)
    bb_cuda_line(e, "static_assert(sizeof(Sync) <= %u, \"there is no more room\");", e->sync);
}

/* Who copies makes the barriers and goes on: a warp that copies for itself its own, the copier all. */
static void put_init(bb_cuda *e) {
  bb_cuda_line(e, "if (threadIdx.x == 0) {");
  for (uint32_t i = 0; i < e->maps; i++)
    bb_cuda_line(e, "  tl::prefetch_map(&p.%s);", e->map[i].name);
  bb_cuda_line(e, "}");
  bb_cuda_line(e, e->copier ? "if (tl::warp() == 0) {" : "{");
  bb_cuda_line(e, "  if (tl::lane() == 0) {");
  for (uint32_t i = 0; i < e->p->tiles; i++) {
    const bb_cuda_tile *t = &e->tile[i];
    if (t->ring && e->warps)
      bb_cuda_line(e, "    tl::ring_init(sync.%s[threadIdx.x / 32]);", t->name);
    else if (t->ring && t->parts > 1)
      bb_cuda_line(e, "    for (int i = 0; i < %u; i++) tl::ring_init(sync.%s[i], %u);", t->parts,
                   t->name, e->warp_count / t->parts);
    else if (t->ring)
      bb_cuda_line(e, "    tl::ring_init(sync.%s, %u%s);", t->name, e->warp_count,
                   t->mated ? " * mates" : "");
  }
  if (has_queue(e))
    bb_cuda_line(e, "    tl::mailbox_init(sync.mailbox, %u%s);", e->warp_count,
                 e->pair ? " * mates + mates - 1" : "");
  if (bb_cuda_pushes(e))
    bb_cuda_line(e, "    if (threadIdx.x == 0) tl::barrier_init(&sync.parts, 1);");
  if (e->added)
    bb_cuda_line(
        e, "    for (int i = 0; i < %u; i++) tl::barrier_init(&sync.added[i / 2][i %% 2], 1);",
        2 * e->warp_count);
  bb_cuda_line(e, "    tl::barrier_init_done();");
  bb_cuda_line(e, "  }");
  bb_cuda_line(e, "  __syncwarp();");
  if (e->copier) {
    uint32_t threads = 32 * (e->copiers + e->warp_count);
    const char *waits = "tl::warp() >= 4"; /* and other copiers */
    if (e->copiers > 1)
      waits = bb_arena_printf(e->arena, "(tl::warp() < %u || tl::warp() >= 4)", e->copiers);
    bb_cuda_line(e, "  %stl::named_arrive(3, %u);", e->pair ? "if (mates == 1) " : "", threads);
    bb_cuda_line(e, "} else if (%s%s) {", e->pair ? "mates == 1 && " : "", waits);
    bb_cuda_line(e, "  tl::named_sync(3, %u);", threads);
  }
  bb_cuda_line(e, "}");
  if (e->pair) bb_cuda_line(e, "if (mates > 1) tl::cluster_sync(); // the mate's barriers, too");
  if (bb_cuda_pushes(e) && e->beside_tiles)
    bb_cuda_line(e, "tl::cluster_arrive(); // others may send their parts");
}

/* --- the warps that compute --- */

static void put_tiles(bb_cuda *e) {
  for (uint32_t i = 0; i < e->p->tiles; i++) {
    const bb_cuda_tile *t = &e->tile[i];
    if (!t->uses) continue;
    bool operand = t->layout == BB_LAYOUT_LEFT || t->layout == BB_LAYOUT_RIGHT;
    uint32_t bytes = bb_tile_shared_bytes(&e->p->tile[i]);
    const char *own = "";
    if (e->warps && t->ring)
      own = bb_arena_printf(e->arena, " + my_warp * %u", e->p->tile[i].buffers * bytes);
    else if (t->ring && t->parts > 1)
      own = bb_arena_printf(e->arena, " + group * %u", bytes / t->parts);
    if (t->layout == BB_LAYOUT_SHARED)
      bb_cuda_line(e, "const tl::u32 %s_at = tl::address(tile_memory) + %u%s;", t->name, t->offset,
                   own);
    else if (bb_cuda_is_truth(&e->p->tile[i]))
      bb_cuda_line(e, "bool %s = false;", t->name);
    else
      bb_cuda_line(e, "%s %s[%u];", operand ? "tl::u32" : bb_cuda_value_type(&e->p->tile[i]),
                   t->name, t->registers);
  }
}

/* Who a thread is, and where in tiles its elements begin, as far as its code asks. */
static void declare_thread(const bb_cuda *e, bb_buffer *code) {
  const char *rows = "(tl::warp() - 4) * 16";
  if (e->warps) rows = "0";
  if (e->sm80) rows = bb_arena_printf(e->arena, "tl::warp() * %u", e->group / 4);
  bb_code_declare(code, "my_col", e->depth, "const int my_col = 2 * (tl::lane() & 3);");
  bb_code_declare(code, "my_row", e->depth, "const int my_row = my_rows + tl::lane() / 4;");
  bb_code_declare(code, "my_rows", e->depth, "const int my_rows = %s;", rows);
  bb_code_declare(code, "group", e->depth, "const int group = tl::warp() / 4%s;",
                  e->sm80 ? "" : " - 1");
  bb_code_declare(code, "my_thread", e->depth, "const int my_thread = threadIdx.x%s;",
                  e->sm80 ? "" : " - 128");
  bb_code_declare(code, "my_warp", e->depth, "const int my_warp = tl::warp();");
}

static void put_compute(bb_cuda *e) {
  bb_buffer *out = e->out, code = {.arena = e->arena};
  e->out = &code;
  if (e->exchange) bb_cuda_line(e, "float *const exchange = sync.exchange;");
  put_tiles(e);
  if (!e->sm80) bb_cuda_put_begin(e);
  if (e->p->turns) bb_cuda_line(e, "if (group == 1) tl::named_arrive(1, 256);");
  if (bb_cuda_pushes(e)) bb_cuda_expect_parts(e);
  bb_cuda_role(e, false);
  e->out = out;
  declare_thread(e, &code);
  bb_put_bytes(out, code.data, code.length);
}

static void put_roles(bb_cuda *e) {
  if (!e->copier || e->sm80) {
    put_compute(e);
    return;
  }
  bb_cuda_line(e, "if (tl::warp() < 4) { // the copier");
  e->depth++;
  if (e->p->registers) bb_cuda_line(e, "tl::fewer_registers<%u>();", e->p->copier_registers);
  bb_cuda_put_copiers(e);
  if (e->cluster || e->pair) bb_cuda_line(e, "__syncwarp();");
  if (bb_cuda_pushes(e)) {
    if (!e->beside_tiles) bb_cuda_line(e, "tl::cluster_arrive();");
    bb_cuda_line(e, "tl::cluster_wait(); // as those who compute");
  } else if (e->cluster) {
    bb_cuda_line(e, "tl::cluster_sync(); // as those who compute");
    bb_cuda_line(e, "tl::cluster_sync();");
  }
  if (e->pair) bb_cuda_line(e, "tl::cluster_leave();");
  e->depth--;
  bb_cuda_line(e, "} else {");
  e->depth++;
  if (e->p->registers) bb_cuda_line(e, "tl::more_registers<%u>();", e->p->registers);
  put_compute(e);
  e->depth--;
  bb_cuda_line(e, "}");
}

static void put_head(bb_cuda *e) {
  const char *name = e->p->name;
  bb_put(e->out, "%sTL_KERNEL(%s, %u", e->sm80 ? "" : "\n", name, e->threads);
  if (e->sm80 || e->p->registers || e->resident > 1) bb_put(e->out, ", %u", e->resident);
  bb_put(e->out, ") {\n");
}

static void put_body(bb_cuda *e) {
  e->depth = 1;
  bb_cuda_line(e, "TL_SHARED(tile_memory);");
  if (e->sync) bb_cuda_line(e, "Sync &sync = *(Sync *)(tile_memory + %u);", e->shared);
  if (e->pair) bb_cuda_line(e, "const int mates = tl::cluster_size(), mine = tl::cluster_rank();");
  bb_cuda_put_ahead(e);
  if (!e->sm80) put_init(e);
  put_roles(e);
  e->depth = 0;
}

static void emit(bb_cuda *e, bb_buffer *launch, bb_sm90_launch *plan) {
  const bb_tile_program *program = e->p;
  bb_buffer *source = e->out, body = {.arena = e->arena};
  bb_tile_program own = bb_tile_part(program, bb_tile_nests_before(program), program->body.count);
  e->p = &own;
  for (uint32_t i = 0; i < program->views; i++)
    if (program->view[i].rank > BB_SM90_RANK) bb_cuda_refuse(e, NULL, "more than five axes");
  bb_cuda_plan(e);
  e->ahead = bb_cuda_may_run_ahead(e, program);
  for (uint32_t i = 0; i < program->views; i++)
    if (program->view[i].scratch && is_argument(e, i) &&
        (is_stored(i, &own.body) || !is_stored(i, &program->body)))
      bb_cuda_refuse(e, NULL, "scratch memory, but what nests before it leave there");
  /* Threads read what was there when the launch began, and do so as early as they can. */
  for (uint32_t i = 0; i < program->views; i++)
    if (is_stored(i, &own.body) && is_moved(BB_TILE_LOAD, i, &own.body))
      bb_cuda_refuse(e, NULL, "an array that it writes, and reads again");
  if (e->cluster && e->grids && e->grid[0]->persistent)
    bb_cuda_refuse(e, NULL, "a cluster that is persistent");
  if (e->p->turns && e->groups != 2) bb_cuda_refuse(e, NULL, "turns of other than two groups");
  bb_put(source, "// %s: emitted from this tile program.\n//\n", program->name);
  bb_buffer text = {.arena = e->arena};
  bb_tile_print(&text, program);
  for (const char *line = text.data, *end; *line; line = end + 1) {
    end = strchr(line, '\n');
    bb_put(source, "//   %.*s\n", (int)(end - line), line);
  }
  bb_put(source, "#include \"%s.cuh\"\n\n", e->sm80 ? "sm80" : "sm90");
  put_params(e);
  bb_put(source, "\n");
  bb_cuda_place_function(e);
  bb_put(source, "\n");
  put_sync(e);
  bb_put(source, "\n");
  e->out = &body;
  put_body(e);
  e->out = source;
  bb_cuda_products(e, &body);
  put_head(e);
  bb_put_bytes(source, body.data, body.length);
  bb_put(source, "}\n");
  e->shared += e->sync;
  put_launch(e, launch);
  if (plan) fill_plan(e, plan);
}

void bb_emit_sm90(const bb_tile_program *program, bb_buffer *source, bb_buffer *launch,
                  bb_sm90_launch *plan) {
  bb_context *ctx = program->home->ctx;
  enum { SHARED = 227 * 1024 };
  bb_cuda e = {.p = program, .ctx = ctx, .arena = bb_scratch(ctx), .out = source};
  e.most_shared = SHARED;
  emit(&e, launch, plan);
  bb_scratch_end(e.arena);
}

void bb_emit_sm80(const bb_tile_program *program, uint32_t shared, bb_buffer *source,
                  bb_buffer *launch, bb_sm90_launch *plan) {
  bb_context *ctx = program->home->ctx;
  bb_cuda e = {.p = program, .ctx = ctx, .arena = bb_scratch(ctx), .out = source};
  e.sm80 = true;
  e.most_shared = shared;
  emit(&e, launch, plan);
  bb_scratch_end(e.arena);
}
