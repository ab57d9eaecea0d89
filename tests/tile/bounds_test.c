/* bounds_test.c - loops cut by masks: exactly the blocks in which the mask holds somewhere are visited, in order and once, and
 * those in which it holds everywhere run without it; by trying every element at many extents.
 *
 * usage: bounds_test             the masks below, with the bounds that they give
 *        bounds_test FIRST COUNT masks drawn from these seeds: nothing that matters is left out, and no mask that does not hold
 */
#include "lower/bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 512 };

typedef struct mask {
  const char *condition;
  uint32_t rows, cols;
  const char *bounds; /* of the loop over k, as printed; NULL: any */
  uint32_t more,
      masked; /* blocks that may be visited, and masked, beside those that have to be, of all extents together */
} mask;

/* Numbers are those of what four stretches have no room for. */
static const mask known[] = {
    {"coord(col) < N", 64, 64, "0 to N-63 then 64*(N/64) to N", 0, 0},
    {"coord(col) <= coord(row)", 64, 64, "0 to min(m,N-63) then min(64*(N/64),m) to min(m+64,N)", 0,
     0},
    {"coord(col) <= coord(row)", 64, 48,
     "0 to min(m-47,N-47) then min(48*(N/48),48*(m/48)) to min(N,m+49)", 0, 0},
    {"coord(col) <= coord(row) & coord(row) < coord(col) + 16", 64, 64,
     "max(0,m-64) to min(m+64,N-63) then max(64*(N/64),m-64) to min(N,m+64)", 2, 0},
    {"coord(col) <= coord(row) & coord(row) < coord(col) + 128", 16, 32,
     "max(32*((m-128)/32),0) to min(m-127,N) then max(32*((m-96)/32),0) to min(m-31,N-31) then "
     "min(max(32*(N/32),32*((m-96)/32)),32*(m/32)) to min(N,m+1)",
     1, 0},
    {"((coord(col) < 4 | coord(row) < coord(col) + 64) & coord(col) <= coord(row))", 16, 16,
     "0 to min(min(16,m-48),N) then max(max(m-64,0),16) to min(m-48,N) then max(0,m-48) to "
     "min(m,N-15) then min(max(m-48,16*(N/16)),m) to min(m+16,N)",
     0, 0},
    {"(coord(col) < 100 | coord(col) <= coord(row))", 32, 32,
     "0 to max(max(min(m,N-31),min(N-31,96)),min(min(min(m+32,16*(m/32)+33),N-31),128)) then "
     "max(max(min(m,32*(N/32)),min(32*(N/32),96)),min(min(min(m+32,32*((m+128)/64)),32*(N/"
     "32)),128)) to min(max(m+32,128),N)",
     0, 0},
    {"(coord(col) < 70 | coord(col) <= coord(row))", 64, 64,
     "0 to max(min(m,N-63),min(64,64*N-4032)) then max(min(m,64*(N/64)),min(64,64*N-4032)) to "
     "max(min(m+64,N),min(N,128))",
     0, 0},
    {"coord(col) <= coord(row) & ((coord(col) < 50 & coord(row) < 50) | (50 <= coord(col) & "
     "coord(col) < 121 & 50 <= coord(row) & coord(row) < 121) | (121 <= coord(col) & 121 <= "
     "coord(row)))",
     64, 64,
     "select(0<=m-128,i64(64),i64(0)) to "
     "min(select(0<=min(m,-m),m+64,select(0<=m-64,i64(128),i64(0))),N) then 128 to min(m,N-63) "
     "then "
     "select(0<=min(N-192,m-N-1),64*N-64*((63*N+63)/"
     "64),select(0<=min(m-128,-m+128),m,select(0<=min(m-192,N-m),m,select(0<=min(m-192,-N+191),i64("
     "128),i64(0))))) to min(select(0<=m-128,m+64,0),N)",
     1, 0},
    {"(bool(coord(row)) == bool(coord(col)))", 64, 64, NULL, 0, 32},
    {"(coord(row)/64 == coord(col)/64)", 32, 32,
     "64*(m/64) to min(N-31,64*(m/64)+64) then max(32*(N/32),64*(m/64)) to min(N,64*(m/64)+64)", 0,
     0},
    {"(coord(row)/64 == coord(col)/64)", 48, 64, "64*(m/64) to min(N,m+33)", 0, 13},
    {"(coord(row)/48 == coord(col)/48)", 16, 32, "32*(3*(m/48)/2) to min(N,48*(m/48)+33)", 3, 71},
    {"(coord(row)/48 == coord(col)/48)", 64, 64, NULL, 1, 0},
    {"(coord(col) <= coord(row) & (mod(coord(col), 96) < 9 | coord(row) < coord(col) + 7))", 64, 64,
     "0 to min(m+64,N-63) then 64*(N/64) to min(N,m+64)", 2, 0},
    {"(coord(row)/64 != coord(col)/64)", 32, 16,
     "0 to min(select(0<=min(m-64,N-m+14),64*(m/64),select(0<=min(m-64,-N+15),i64(16),i64(0))),N) "
     "then select(0<=min(min(64*(m/64)-m+32,m-64*(m/64)),64*(m/64)-N+79),64*(m/64)+64,0) to "
     "min(select(0<=min(min(64*(m/64)-m+32,m-64*(m/64)),64*(m/64)-N+79),64*(m/64)+80,0),N) then "
     "select(0<=min(min(64*(m/64)-m+32,m-64*(m/64)),N-64*(m/64)-80),64*(m/64)+64,0) to "
     "select(0<=min(min(min(min(N-16,m-N-15),64*(m/64)-m+32),m-64*(m/64)),64*(m/64)-N+15),16*(N/"
     "16),select(0<=min(min(64*(m/64)-m+32,m-64*(m/64)),N-64*(m/64)-80),16*(N/"
     "16),select(0<=min(min(min(min(64*((m+32)/64)-m-32,m-64*((m+32)/"
     "64)+32),m-96),N-m+16),m-N-15),64*(m/64),0))) then "
     "select(0<=min(min(min(min(N-16,m-N-15),64*(m/64)-m+32),m-64*(m/64)),64*(m/"
     "64)-N),16*N-16*((15*N+15)/16),select(0<=min(min(64*(m/64)-m+32,m-64*(m/64)),N-64*(m/"
     "64)-80),16*N-16*((15*N+15)/16),0)) to "
     "min(select(0<=min(min(min(min(N-16,m-N-15),64*(m/64)-m+32),m-64*(m/64)),64*(m/"
     "64)-N),N,select(0<=min(min(64*(m/64)-m+32,m-64*(m/64)),N-64*(m/64)-80),N,0)),N)",
     0, 171},
    {"mod(coord(col), 128) < 32", 64, 32,
     "0 to min(32,32*N-992) then max(0,min(32,32*N-992)) to 128*((N-1-mod(N-1,128))/128)+32", 93,
     25},
    {"(mod(coord(row) - coord(col), 3) == 0 & coord(col) <= coord(row))", 32, 32,
     "0 to min(m+32,N-31) then 32*(N/32) to min(N,m+32)", 0, 0},
    {"((coord(row) < 100 & coord(col) < 100) | (100 <= coord(row) & coord(row) < 200 & 100 <= "
     "coord(col) & coord(col) < 200) | (200 <= coord(row) & 200 <= coord(col)))",
     16, 16,
     "select(0<=m-208,192,select(0<=min(m-112,-m+192),i64(96),i64(0))) to "
     "min(select(0<=m-192,N,select(0<=min(m-96,-m+176),208,select(0<=-m+80,i64(112),i64(0)))),N)",
     0, 359},
    {"(coord(col) < 16 | (coord(row) <= coord(col) + 8 & coord(col) <= coord(row) + 8) | (100 <= "
     "coord(col) - coord(row) & coord(col) - coord(row) < 116))",
     16, 16, "0 to min(16,N) then max(16,m-16) to min(m+32,N) then m+96 to min(N,m+144)", 2, 81},
    {"!(coord(row) <= coord(col) + 40 & coord(col) <= coord(row) + 40)", 16, 16,
     "0 to min(m-16,N) then m+32 to min(N,m+64) then m+64 to N-15 then max(m+64,16*(N/16)) to N", 2,
     272},
    {"coord(col) + 100 <= coord(row)", 32, 32,
     "0 to min(m-128,N-31) then min(32*(N/32),max(0,m-128)) to min(m-64,N)", 0, 0},
    {"coord(col) <= coord(row) + 70", 32, 32,
     "0 to min(N-31,m+64) then min(m+64,32*(N/32)) to min(N,m+128)", 0, 0},
    {"(coord(row) <= 7 | 250 < coord(col))", 32, 32,
     "select(0<=m-32,i64(224),i64(0)) to min(256,N) then 256 to N-31 then max(256,32*(N/32)) to N",
     0, 0},
    {"coord(col) < 0", 32, 32, "0 to 0", 0, 0},
    {"coord(row) + coord(col) < 200", 32, 32,
     "0 to min(N-31,-m+160) then min(32*(N/32),max(0,-m+160)) to min(-m+224,N)", 0, 0},
    {"coord(col) < N/2", 32, 32, "0 to 32*(max(N,0)/64) then 32*(N/64) to 32*(max(N+62,0)/64)", 0,
     0},
    {"(coord(row)/16 == coord(col)/16 & coord(col) <= coord(row))", 64, 64, "m to min(m+64,N)", 0,
     0},
    {"mod(coord(row) - coord(col), 64) == 0", 16, 16,
     "m+64*((-m-16-mod(-m-16,64))/64)+64 to min(N-15,m+64*((N-m-1-mod(N-m-1,64))/64)+16) then "
     "max(m+64*((-m-16-mod(-m-16,64))/64)+64,min(16*(N/16),m+64*((N-m-1-mod(N-m-1,64))/64)+16)) to "
     "m+64*((N-m-1-mod(N-m-1,64))/64)+16",
     606, 0},
};

typedef struct job {
  const mask *mask;
  const char *name;
  uint32_t more, masked, wrong;
  double seconds;
} job;

static const int64_t sizes[][2] = {{1, 1},     {5, 300},   {300, 5},   {63, 65},
                                   {64, 64},   {65, 63},   {100, 257}, {300, 300},
                                   {129, 191}, {211, 130}, {17, 128},  {256, 320}};

/* The loop over k. */
static bb_tile_loop *inner_of(const bb_tile_program *p) {
  for (uint32_t i = 0; i < p->body.count; i++)
    for (uint32_t k = 0; p->body.stmt[i]->loop && k < p->body.stmt[i]->loop->body.count; k++)
      if (p->body.stmt[i]->loop->body.stmt[k]->loop)
        return p->body.stmt[i]->loop->body.stmt[k]->loop;
  abort();
}

/* Is the condition asked in a stretch? */
static bool is_asked(const bb_tile_loop *l, uint32_t stretch, const bb_expr *condition) {
  for (uint32_t i = 0; i < l->body.count; i++) {
    const bb_tile_stmt *s = l->body.stmt[i];
    if (s->kind != BB_TILE_MAP || (s->stretches && !(s->stretches >> stretch & 1))) continue;
    for (const bb_expr *e = s->expr; e->op == BB_X_SELECT; e = e->a[1])
      if (e->a[0] == condition) return true;
  }
  return false;
}

/* In how many elements of a block the conditions hold; both[i]: condition i alone. */
static uint32_t held(const job *j, const bb_expr *const *condition, const double *variable,
                     int64_t m, int64_t k, uint32_t *both) {
  double arg[BB_TILE_VARIABLE + 8] = {0};
  memcpy(arg + BB_TILE_VARIABLE, variable, 4 * sizeof *arg);
  arg[BB_TILE_VARIABLE + 3] = (double)k;
  uint32_t count = both[0] = both[1] = 0;
  for (uint32_t r = 0; r < j->mask->rows; r++)
    for (uint32_t c = 0; c < j->mask->cols; c++) {
      bb_expr_env env = {.arg = arg, .coord_row = (double)(m + r), .coord_col = (double)(k + c)};
      bool one = bb_expr_eval(condition[0], &env) != 0, two = bb_expr_eval(condition[1], &env) != 0;
      both[0] += one, both[1] += two, count += one && two;
    }
  return count;
}

static void complain(job *j, const char *what, const double *variable, int64_t k) {
  if (j->wrong++ < 5)
    fprintf(stderr, "%s: %s at M=%g N=%g, row %g, column %" PRId64 "\n", j->name, what, variable[0],
            variable[1], variable[2], k);
}

/* The blocks of one row of blocks. */
static void check_row(job *j, const bb_tile_loop *l, const bb_expr *const *condition,
                      const double *variable) {
  uint8_t visited[BLOCKS] = {0}; /* from 1: the stretch */
  int64_t step = j->mask->cols, before = -1;
  for (uint32_t i = 0; i < l->stretches; i++) {
    int64_t from = bb_tile_index_value(l->stretch[i].from, variable);
    int64_t to = bb_tile_index_value(l->stretch[i].to, variable);
    for (int64_t k = from; k < to; k += step) {
      if (k < 0 || k % step || k <= before || k / step >= BLOCKS) {
        complain(j, "a block that is none", variable, k);
        return;
      }
      visited[k / step] = (uint8_t)(i + 1);
      before = k;
    }
  }
  for (int64_t k = 0; k < (int64_t)variable[1] || k <= before; k += step) {
    uint32_t both[2], all = j->mask->rows * j->mask->cols, stretch = visited[k / step];
    uint32_t count = held(j, condition, variable, (int64_t)variable[2], k, both);
    bool asked = false;
    if (count && !stretch) complain(j, "a block is left out", variable, k);
    if (k >= (int64_t)variable[1]) complain(j, "a block beyond the end", variable, k);
    if (!stretch) continue;
    for (uint32_t i = 0; i < 2; i++) {
      bool asks = is_asked(l, stretch - 1, condition[i]);
      if (!asks && both[i] < all) complain(j, "a mask is left off", variable, k);
      asked |= asks;
    }
    j->more += !count;
    j->masked += count == all && asked;
  }
}

static void verify(const bb_tile_program *p, bb_arena *arena) {
  const char *broken = bb_tile_verify(p, arena);
  if (broken) bb_fail(p->home->ctx, BB_ERROR_INTERNAL, "%s", broken);
  bb_buffer text = {.arena = arena}, again = {.arena = arena};
  bb_tile_print(&text, p);
  bb_tile_program *q = bb_tile_parse(p->home->ctx, "again", text.data, text.length);
  bb_tile_print(&again, q);
  if (strcmp(text.data, again.data) != 0) bb_fail(p->home->ctx, BB_ERROR_INTERNAL, "another text");
  bb_program_destroy(q->home);
}

/* `from to to then ...` of the loop over k. */
static const char *bounds_of(const bb_tile_program *p, bb_arena *arena) {
  bb_buffer text = {.arena = arena};
  bb_tile_print(&text, p);
  char *begin = strstr(text.data, "serial k = ") + strlen("serial k = "),
       *end = strstr(begin, " step");
  *end = 0;
  return begin;
}

static void check(bb_context *ctx, void *argument) {
  job *j = argument;
  const mask *m = j->mask;
  bb_arena *arena = bb_scratch(ctx);
  char *text = bb_arena_printf(
      arena,
      "tile t 1 extent M, N output Y : f32[M] tile s : f32[%u,%u] tile a : f32[%u,_] tile f : "
      "f32[%u,_]\n"
      "parallel m = 0 to M step %u {\n  a = 0\n  serial k = 0 to N step %u commutes {\n"
      "    s = select(coord(col) < N, select(%s, 1, 0), 0) at (m, k)\n    f = fold sum(s) over "
      "col\n    a = a + f\n  }\n"
      "  store Y[m:%u] = a\n}\n",
      m->rows, m->cols, m->rows, m->rows, m->rows, m->cols, m->condition, m->rows);
  bb_tile_program *p = bb_tile_parse(ctx, j->name, text, strlen(text));
  bb_tile_loop *l = inner_of(p);
  const bb_expr *select = l->body.stmt[0]->expr;
  const bb_expr *condition[] = {select->a[0], select->a[1]->a[0]};
  bb_tile_bound(p, true);
  verify(p, arena);
  if (!m->bounds || strcmp(m->bounds, bounds_of(p, arena)) != 0) {
    if (m->bounds) j->wrong++;
    printf("%s, %ux%u:\n    %s\n", m->condition, m->rows, m->cols, bounds_of(p, arena));
  }
  for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int64_t row = 0; row < sizes[i][0]; row += m->rows) {
      double variable[4] = {(double)sizes[i][0], (double)sizes[i][1], (double)row, 0};
      check_row(j, l, condition, variable);
    }
  bb_program_destroy(p->home);
  bb_scratch_end(arena);
}

/* --- drawn masks --- */

typedef struct drawing {
  uint64_t state;
  bb_arena *arena;
} drawing;

static uint32_t below(drawing *d, uint32_t limit) {
  d->state = d->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(d->state >> 33) % limit;
}

static const char *number(drawing *d) {
  static const int numbers[] = {0, 1, 2, 3, 7, 16, 31, 64, 65, 100, 128, 200};
  return bb_arena_printf(d->arena, "%d", numbers[below(d, sizeof numbers / sizeof *numbers)]);
}

static const char *divisor(drawing *d) {
  static const int numbers[] = {2, 3, 8, 16, 48, 64, 100, 128};
  return bb_arena_printf(d->arena, "%d", numbers[below(d, sizeof numbers / sizeof *numbers)]);
}

static const char *place(drawing *d) {
  static const char *const places[] = {"coord(row)", "coord(col)", "(coord(row) - coord(col))",
                                       "(coord(col) - coord(row))"};
  return places[below(d, 4)];
}

static const char *atom(drawing *d) {
  static const char *const compare[] = {"<", "<=", "==", "!="};
  const char *by = compare[below(d, 4)], *n;
  switch (below(d, 7)) {
  case 0:
    return bb_arena_printf(d->arena, "%s %s %s", place(d), below(d, 2) ? "<" : "<=", number(d));
  case 1: return bb_arena_printf(d->arena, "coord(col) <= coord(row) + %s", number(d));
  case 2: return bb_arena_printf(d->arena, "coord(row) < coord(col) + %s", number(d));
  case 3:
    n = divisor(d);
    return bb_arena_printf(d->arena, "coord(row)/%s %s coord(col)/%s", n, by, n);
  case 4:
    return bb_arena_printf(d->arena, "mod(%s, %s) %s %s", place(d), divisor(d), by, number(d));
  case 5: return bb_arena_printf(d->arena, "%s/%s %s %s", place(d), divisor(d), by, number(d));
  default:
    return bb_arena_printf(d->arena, "max(coord(col), %s) < min(N, coord(row) + %s)", number(d),
                           number(d));
  }
}

static const char *drawn(drawing *d, uint32_t depth) {
  uint32_t way = below(d, depth ? 6 : 1);
  if (way == 0) return bb_arena_printf(d->arena, "(%s)", atom(d));
  if (way == 1) return bb_arena_printf(d->arena, "!%s", drawn(d, depth - 1));
  const char *left = drawn(d, depth - 1);
  return bb_arena_printf(d->arena, "(%s %s %s)", left,
                         way < 4    ? "&"
                         : way == 4 ? "|"
                                    : "^",
                         drawn(d, depth - 1));
}

/* --- */

static bool run(bb_context *ctx, const mask *m, const char *name, bool exact, job *all) {
  job j = {.mask = m, .name = name};
  bb_status status = bb_protect(ctx, check, &j);
  if (status != BB_OK) fprintf(stderr, "%s: %s\n", name, bb_context_message(ctx));
  if (exact && (j.more != m->more || j.masked != m->masked)) {
    fprintf(stderr, "%s: %u blocks too many and %u masks, not %u and %u\n", name, j.more, j.masked,
            m->more, m->masked);
    j.wrong++;
  }
  all->more += j.more;
  all->masked += j.masked;
  return status == BB_OK && !j.wrong;
}

int main(int argc, char **argv) {
  bb_context *ctx;
  uint32_t failed = 0, count = 0;
  job all = {0};
  if (bb_context_create(&(bb_context_options){.version = BB_VERSION}, &ctx) != BB_OK) return 1;
  for (uint32_t i = 0; argc < 3 && i < sizeof known / sizeof *known; i++, count++)
    failed += !run(ctx, &known[i], known[i].condition, true, &all);
  uint64_t first = argc < 3 ? 0 : strtoull(argv[1], NULL, 10);
  for (uint64_t seed = first; argc >= 3 && seed < first + strtoull(argv[2], NULL, 10);
       seed++, count++) {
    static const uint32_t block[] = {1, 16, 32, 48, 64};
    drawing d = {seed * 0x9e3779b97f4a7c15u + 1, bb_arena_create(ctx)};
    for (uint32_t i = 0; i < 8; i++) below(&d, 2);
    mask m = {.rows = block[1 + below(&d, 4)], .cols = block[1 + below(&d, 4)]};
    m.condition = bb_arena_printf(d.arena, "%s", drawn(&d, 3));
    failed += !run(ctx, &m, bb_arena_printf(d.arena, "seed %" PRIu64 ": %s", seed, m.condition),
                   false, &all);
    bb_arena_destroy(d.arena);
  }
  bb_context_destroy(ctx);
  printf("%u masks, %u wrong; %u blocks too many, %u masks too many\n", count, failed, all.more,
         all.masked);
  return failed != 0;
}
