/* emit_sm90_dot.c - products: of warp groups by wgmma, begun and ended apart, and of single warps. */
#include "affine.h"
#include "code.h"
#include "emit_sm90.h"
#include "tile_edit.h"

/* --- products of a warp group --- */

/* Where step k of 16 along the contracted axis begins in a shared operand, as expressions of k: in units of 16 bytes, which an
 * operand's number counts in, so that a step is one addition. */
static const char *step_of(const bb_cuda *e, const bb_tile *t, bool along_cols) {
  if (!along_cols) return "k * 128";
  return t->cols <= 64 ? "k * 2"
                       : bb_arena_printf(e->arena, "(k / 4 * %u + k %% 4 * 2)", t->rows * 8);
}

/* A product's wrapper; `two`: of one that makes two. */
static const char *product_name(const bb_cuda *e, const bb_tile_stmt *s, bool two) {
  const bb_tile *a = bb_cuda_tile_of(e, s->operand[0]), *c = bb_cuda_tile_of(e, s->result);
  return bb_arena_printf(e->arena, "mma_%s%u_%s_%c%c_%s", two ? "2x" : "", c->cols,
                         a->place == BB_PLACE_SHARED ? "ss" : "rs", s->transposed[0] ? 't' : 'n',
                         s->transposed[1] ? 't' : 'n', bb_cuda_narrow(a->dtype));
}

/* `into`: the results, as arguments; `right`: the bytes to the next 64 columns of the right operand. */
static void put_steps(bb_cuda *e, const bb_tile_stmt *s, const char *name, const char *into,
                      uint32_t right) {
  const bb_tile *a = bb_cuda_tile_of(e, s->operand[0]), *b = bb_cuda_tile_of(e, s->operand[1]);
  const bb_cuda_tile *left = &e->tile[s->operand[0]];
  uint32_t depth = s->transposed[0] ? a->rows : a->cols;
  bb_cuda_line(e, "tl::mma_fence();");
  bb_cuda_line(e, "TL_UNROLL for (int k = 0; k < %u; k++)", depth / 16);
  bb_buffer left_text = {.arena = e->arena};
  if (a->place == BB_PLACE_LEFT)
    bb_put(&left_text, "%s[4 * k], %s[4 * k + 1], %s[4 * k + 2], %s[4 * k + 3]", left->name,
           left->name, left->name, left->name);
  else
    bb_put(&left_text, "tl::operand(%s + group * %u, %u) + %s", bb_cuda_buffer(e, s->operand[0]),
           s->transposed[0] ? a->rows * 128 : 64 * 128, s->transposed[0] ? a->rows * 128 : 16,
           step_of(e, a, !s->transposed[0]));
  bb_cuda_line(e, "  %s(%s, %s, tl::operand(%s, %u) + %s, %s);", name, into, left_text.data,
               bb_cuda_buffer(e, s->operand[1]), right, step_of(e, b, s->transposed[1]),
               s->accumulate ? "1" : "k > 0");
  bb_cuda_line(e, "tl::mma_commit();");
}

static uint32_t next_columns(const bb_cuda *e, const bb_tile_stmt *s) {
  return s->transposed[1] ? 16 : bb_cuda_tile_of(e, s->operand[1])->rows * 128;
}

/* Does the serial loop read the left operand in every iteration as it was before the loop?  In a loop without stages ptxas (13.0.88)
 * has given registers that such an operand holds to another product's, too, where it saw that nothing writes them in the loop.  In
 * loops with stages it has not, and to renew them there is not free. */
static bool is_held(const bb_cuda *e, const bb_tile_stmt *s) {
  uint32_t left = s->operand[0];
  if (!e->serial || e->stages || bb_cuda_tile_of(e, left)->place != BB_PLACE_LEFT) return false;
  for (uint32_t i = 0; i < e->serial->body.count; i++)
    if (bb_tile_writes(e->serial->body.stmt[i], left)) return false;
  return true;
}

void bb_cuda_async_dot(bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile *a = bb_cuda_tile_of(e, s->operand[0]), *b = bb_cuda_tile_of(e, s->operand[1]);
  const char *c = e->tile[s->result].name;
  if (b->place != BB_PLACE_SHARED)
    bb_cuda_refuse(e, s, "a right operand that is not in shared memory");
  if (a->place == BB_PLACE_REGISTERS) bb_cuda_refuse(e, s, "a left operand in plain registers");
  if (a->place == BB_PLACE_LEFT && s->transposed[0])
    bb_cuda_refuse(e, s, "a transposed operand in registers");
  if (e->sm80) {
    bb_cuda80_dot(e, s);
    return;
  }
  bb_cuda_line(e, "tl::pin(%s);", c);
  if (is_held(e, s))
    bb_cuda_line(e, "tl::renew(%s, p.tiles >> 31);", e->tile[s->operand[0]].name);
  else if (a->place == BB_PLACE_LEFT)
    bb_cuda_line(e, "tl::pin(%s);", e->tile[s->operand[0]].name);
  put_steps(e, s, product_name(e, s, false), c, next_columns(e, s));
}

void bb_cuda_both_dots(bb_cuda *e, const bb_tile_stmt *s, const bb_tile_stmt *second) {
  const char *c = e->tile[s->result].name, *d = e->tile[second->result].name;
  bb_buffer text = {.arena = e->arena}, with = {.arena = e->arena};
  bb_tile_print_head(&text, e->p, s);
  bb_tile_print_head(&with, e->p, second);
  bb_cuda_line(e, "// %s, and %s", text.data, with.data);
  bb_cuda_line(e, "tl::pin(%s);", c);
  bb_cuda_line(e, "tl::pin(%s);", d);
  put_steps(e, s, product_name(e, s, true), bb_arena_printf(e->arena, "%s, %s", c, d),
            next_columns(e, s));
  bb_cuda_line(e, "tl::mma_commit(); // as many as products");
}

static void put_product(bb_cuda *e, const bb_tile_stmt *s, bool two) {
  const bb_tile *a = bb_cuda_tile_of(e, s->operand[0]);
  uint32_t half = bb_cuda_tile_of(e, s->result)->cols / 2, shared = a->place == BB_PLACE_SHARED;
  uint32_t n = two ? 2 * half : half;
  bb_put(e->out, "// d[64 x %u]%s (+)= a[64 x 16] b[16 x %u]\n", 2 * half,
         two ? " and f, side by side," : "", 2 * n);
  bb_put(e->out, "static __device__ __forceinline__ void %s(float (&d)[%u], ",
         product_name(e, s, two), half);
  if (two) bb_put(e->out, "float (&f)[%u], ", half);
  bb_put(e->out, "%s, tl::u64 b, int keep) {\n",
         shared ? "tl::u64 a"
                : "const tl::u32 &a0, const tl::u32 &a1, const tl::u32 &a2, const tl::u32 &a3");
  bb_put(e->out, "#ifdef TL_HOST\n  tl::product<tl::%s, %s, %s>(d, %s%s, b, keep);\n#else\n",
         bb_cuda_narrow(a->dtype), s->transposed[0] ? "true" : "false",
         s->transposed[1] ? "false" : "true", two ? "f, " : "",
         shared ? "a" : "{&a0, &a1, &a2, &a3}");
  bb_put(e->out, "  asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %%%u, 0;\\n\"\n",
         n + (shared ? 2 : 5));
  bb_put(e->out, "      \"wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s {", 2 * n,
         bb_cuda_narrow(a->dtype), bb_cuda_narrow(a->dtype));
  for (uint32_t i = 0; i < n; i++) bb_put(e->out, i ? ",%%%u" : "%%%u", i);
  if (shared)
    bb_put(e->out, "}, %%%u, %%%u, p, 1, 1, %d, %d;\\n}\"\n      : ", n, n + 1, s->transposed[0],
           !s->transposed[1]);
  else
    bb_put(e->out, "}, {%%%u,%%%u,%%%u,%%%u}, %%%u, p, 1, 1, %d;\\n}\"\n      : ", n, n + 1, n + 2,
           n + 3, n + 4, !s->transposed[1]);
  for (uint32_t i = 0; i < n; i++)
    bb_put(e->out, "%s\"+f\"(%c[%u])",
           i == 0  ? ""
           : i % 8 ? ", "
                   : ",\n        ",
           i < half ? 'd' : 'f', i % half);
  bb_put(e->out, "\n      : %s, \"l\"(b), \"r\"(keep) : \"memory\");\n#endif\n}\n",
         shared ? "\"l\"(a)" : "\"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3)");
}

/* What the kernel calls, once. */
static void put_product_once(bb_cuda *e, const bb_tile_stmt *s, bool two, const bb_buffer *kernel,
                             bb_buffer *known) {
  const char *name = product_name(e, s, two);
  if (!bb_code_names(kernel, name) || bb_code_names(known, name)) return;
  put_product(e, s, two);
  bb_put(known, " %s ", name);
}

static void find_products(bb_cuda *e, const bb_tile_body *body, const bb_buffer *kernel,
                          bb_buffer *known) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (bb_cuda_is_async(e, s)) put_product_once(e, s, false, kernel, known);
    if (bb_cuda_second(e, s)) put_product_once(e, s, true, kernel, known);
    find_products(e, &s->body, kernel, known);
    if (s->loop) find_products(e, &s->loop->body, kernel, known);
  }
}

void bb_cuda_products(bb_cuda *e, const bb_buffer *kernel) {
  if (e->sm80) return; /* the device library's */
  bb_buffer known = {.arena = e->arena};
  find_products(e, &e->p->body, kernel, &known);
}

/* --- products of a warp --- */

static bool is_even(const bb_cuda *e, bb_tile_index x) {
  return bb_affine_is_multiple(x, 2, e->grid, e->grids);
}

/* Are elements 2 i and 2 i + 1 of a load's columns, both in the array or both beyond, a word of memory wherever its view begins at
 * one? */
static bool has_words(const bb_cuda *e, const bb_tile_stmt *s) {
  const bb_tile_view *view = &e->p->view[s->view];
  uint32_t last = view->rank - 1;
  const bb_tile_range *cols = &s->range[last];
  if (!cols->size || cols->axis != BB_AXIS_COL) return false;
  if (!is_even(e, view->extent[last]) || !is_even(e, cols->start)) return false;
  if (!view->strided) return true;
  for (uint32_t i = 0; i < last; i++)
    if (!is_even(e, view->stride[i])) return false;
  return bb_expr_is_number(view->stride[last], 1);
}

/* A thread's pairs along what is contracted, as words of memory or one element after the other. */
static void put_right(bb_cuda *e, const bb_tile_stmt *s, bool words) {
  const bb_cuda_tile *c = &e->tile[s->result];
  const bb_tile *t = bb_cuda_tile_of(e, s->result);
  const char *view = bb_cuda_view_name(e, s->view), *inside, *behind;
  uint32_t eights = (c->flipped ? t->cols : t->rows) / 8;
  const char *at = bb_cuda_offset(e, s, "row", "col", &inside);
  const char *next =
      bb_cuda_offset(e, s, c->flipped ? "row" : "row + 1", c->flipped ? "col + 1" : "col", &behind);
  bb_cuda_line(e, "TL_UNROLL for (int i = 0; i < %u; i++) {", c->registers);
  bb_cuda_line(e, "  const int %s = i / %u * 8 + tl::lane() / 4, %s = i %% %u * 8 + my_col;",
               c->flipped ? "row" : "col", eights, c->flipped ? "col" : "row", eights);
  if (words) {
    bb_cuda_line(e, "  %s[i] = %s ? __ldg((const tl::u32 *)(p.%s + %s)) : 0;", c->name, inside,
                 view, at);
  } else {
    bb_cuda_line(e, "  %s[i] = %s ? __ldg(p.%s + %s) : 0;", c->name, inside, view, at);
    bb_cuda_line(e, "  %s[i] |= %s ? (tl::u32)__ldg(p.%s + %s) << 16 : 0;", c->name, behind, view,
                 next);
  }
  bb_cuda_line(e, "}");
}

void bb_cuda_load_right(bb_cuda *e, const bb_tile_stmt *s) {
  bool words = e->tile[s->result].flipped && has_words(e, s);
  if (!words) {
    put_right(e, s, false);
    return;
  }
  bb_cuda_line(e, "if (((tl::u64)p.%s & 3) == 0) { // a part of an array may begin anywhere",
               bb_cuda_view_name(e, s->view));
  e->depth++;
  put_right(e, s, true);
  e->depth--;
  bb_cuda_line(e, "} else {");
  e->depth++;
  put_right(e, s, false);
  e->depth--;
  bb_cuda_line(e, "}");
}

/* Steps from..to-1 of 16 along the contracted axis. */
static void put_warp_steps(bb_cuda *e, const bb_tile_stmt *s, uint32_t from, uint32_t to, bool two,
                           const char *then) {
  const bb_tile *a = bb_cuda_tile_of(e, s->operand[0]);
  const bb_cuda_tile *c = &e->tile[s->result];
  uint32_t steps = (s->transposed[0] ? a->rows : a->cols) / 16;
  const char *right = e->tile[s->operand[1]].name, *left = bb_cuda_buffer(e, s->operand[0]);
  const char *sum = two ? bb_arena_printf(e->arena, "(k & 1 ? odd : %s)", c->name) : c->name;
  const char *into = bb_arena_printf(e->arena, "a[k - %u][r]", from);
  const char *place = "16 * r + (tl::lane() & 15), 2 * k + (tl::lane() >> 4)";
  if (s->transposed[0])
    place = "16 * k + (tl::lane() >> 4) * 8 + (tl::lane() & 7), 2 * r + (tl::lane() >> 3 & 1)";
  bb_cuda_line(e, "{");
  e->depth++;
  bb_cuda_line(e, "tl::u32 a[%u][%u][4];", to - from, c->rt);
  bb_cuda_line(e, "TL_UNROLL for (int k = %u; k < %u; k++)", from, to);
  bb_cuda_line(e, "  TL_UNROLL for (int r = 0; r < %u; r++)", c->rt);
  bb_cuda_line(e, "    tl::load_matrix%s(%s + tl::piece(%u, %s), %s[0], %s[1], %s[2], %s[3]);",
               s->transposed[0] ? "_transposed" : "", left, a->rows, place, into, into, into, into);
  if (then && to == steps) bb_cuda_line(e, "%s", then);
  bb_cuda_line(e, "TL_UNROLL for (int k = %u; k < %u; k++)", from, to);
  bb_cuda_line(e, "  TL_UNROLL for (int r = 0; r < %u; r++)", c->rt);
  bb_cuda_line(e, "    TL_UNROLL for (int c = 0; c < %u; c++)", c->ct);
  bb_cuda_line(e,
               "      tl::mma_%s(%s + (r * %u + c) * 4, %s[0], %s[1], %s[2], %s[3], "
               "%s[(c * %u + k) * 2], %s[(c * %u + k) * 2 + 1]);",
               bb_cuda_narrow(a->dtype), sum, c->ct, into, into, into, into, right, steps, right,
               steps);
  e->depth--;
  bb_cuda_line(e, "}");
}

void bb_cuda_warp_dot(bb_cuda *e, const bb_tile_stmt *s, const char *then) {
  const bb_tile *a = bb_cuda_tile_of(e, s->operand[0]), *b = bb_cuda_tile_of(e, s->operand[1]);
  const bb_cuda_tile *c = &e->tile[s->result];
  uint32_t depth = s->transposed[0] ? a->rows : a->cols;
  if (a->place != BB_PLACE_SHARED || b->place == BB_PLACE_SHARED)
    bb_cuda_refuse(e, s, "a warp's product is of a shared tile and registers");
  /* all operands first, as many as a thread has room for: loads wait for nobody's arithmetic */
  uint32_t steps = depth / 16, each = 4 * c->rt,
           batch = BB_CUDA_OPERANDS / each < 1 ? 1 : BB_CUDA_OPERANDS / each;
  bool two = c->registers == 4 && steps >= 4; /* sums: one chain would wait for itself */
  bb_buffer text = {.arena = e->arena};
  bb_tile_print_head(&text, e->p, s);
  bb_cuda_line(e, "// %s", text.data);
  if (!s->accumulate)
    bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < %u; e++) %s[e] = 0.f;", c->registers, c->name);
  bb_cuda_line(e, "{");
  e->depth++;
  if (two) bb_cuda_line(e, "float odd[4] = {0.f, 0.f, 0.f, 0.f};");
  for (uint32_t first = 0; first < steps; first += batch)
    put_warp_steps(e, s, first, first + batch < steps ? first + batch : steps, two, then);
  if (two) bb_cuda_line(e, "TL_UNROLL for (int e = 0; e < 4; e++) %s[e] += odd[e];", c->name);
  e->depth--;
  bb_cuda_line(e, "}");
}
