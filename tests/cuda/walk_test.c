/* walk_test.c - whatever a session went through, a run gives what the same run of a new session gives: a decoder whose lengths, arrays,
 * caches and workspace change at random from run to run, in part or not at all.
 *
 *   walk_test TYPE RUNS [SEED]    TYPE: of elements, f32 or f16
 */
#include "gear.h"
#include "layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2, CACHES = 2 * LAYERS, ROOM = 40, MOST_ROWS = 6, COPIES = 2, WORKSPACE = 1 << 21 };
enum { X, WEIGHTS };
enum { HEAD = ROOM * LAYERS_SIZE, CACHE = LAYERS_HEADS * HEAD, ROWS = MOST_ROWS * LAYERS_WIDTH };
enum { WEIGHT = LAYERS_WIDTH * LAYERS_WIDTH, ELEMENT = 4 }; /* bytes at most */

/* Where arrays lie: copies of each to choose among. */
typedef struct arrays {
  gpu_pointer x[COPIES], y[COPIES], weight[COPIES][LAYERS_WEIGHTS], cache[COPIES][CACHES], room;
} arrays;

/* A run: which copies, how many rows, and how many before them. */
typedef struct drawn {
  int x, y, weight, cache[CACHES]; /* y == COPIES: the session's own */
  int64_t there, rows;
  bool lent, apart; /* apart: the first cache's ends lie in two arrays */
} drawn;

static const char *type;
static int runs = 30;
static unsigned state = 1;
static arrays all;
static void *stream;

static int draw(int most) {
  state = state * 1664525u + 1013904223u;
  return (int)((state >> 8) % (unsigned)most);
}

static size_t element(void) {
  return strcmp(type, "f16") ? sizeof(float) : sizeof(uint16_t);
}

/* Numbers of some size below one, as their bits. */
static void fill(gpu_pointer to, size_t count) {
  static char held[WEIGHT * ELEMENT];
  for (size_t i = 0; i < count; i++) {
    float number = (float)(draw(200) - 100) / 256;
    uint16_t half = (uint16_t)(0x2c00 + draw(0x400) + (draw(2) ? 0x8000 : 0)); /* 1/16 to 1/8 */
    if (element() == sizeof number)
      memcpy(held + i * sizeof number, &number, sizeof number);
    else
      memcpy(held + i * sizeof half, &half, sizeof half);
  }
  assert_int_equal(gpu.in(to, held, count * element(), stream), 0);
  assert_int_equal(gpu.wait(stream), 0);
}

static void take(gpu_pointer *memory, size_t count) {
  assert_int_equal(gpu.allocate(memory, count * element()), 0);
  fill(*memory, count);
}

static void take_all(void) {
  for (int i = 0; i < COPIES; i++) {
    take(&all.x[i], ROWS);
    take(&all.y[i], ROWS);
    for (int w = 0; w < LAYERS_WEIGHTS; w++) take(&all.weight[i][w], WEIGHT);
    for (int c = 0; c < CACHES; c++) take(&all.cache[i][c], CACHE);
  }
  assert_int_equal(gpu.allocate(&all.room, WORKSPACE), 0);
}

static void give_all(void) {
  for (int i = 0; i < COPIES; i++) {
    gpu.free(all.x[i]), gpu.free(all.y[i]);
    for (int w = 0; w < LAYERS_WEIGHTS; w++) gpu.free(all.weight[i][w]);
    for (int c = 0; c < CACHES; c++) gpu.free(all.cache[i][c]);
  }
  gpu.free(all.room);
}

/* --- binding --- */

static bb_tensor_view view(uint32_t rank, const int64_t *shape, const int64_t *stride,
                           gpu_pointer at) {
  bb_dtype dtype = element() == sizeof(float) ? BB_F32 : BB_F16;
  return (bb_tensor_view){dtype, rank, shape, stride, (void *)(uintptr_t)at};
}

static void bind(const gpu_world *w, bb_side side, const char *name, const bb_tensor_view *array) {
  uint32_t index = 0;
  assert_true(bb_model_find_tensor(w->model, side, name, &index));
  gpu_good(w, bb_session_bind(w->session, side, index, array));
}

static void bind_weights(const gpu_world *w, const drawn *d) {
  static const char *const name[] = {"wq", "wk", "wv", "wo"};
  static const int64_t in[] = {LAYERS_HEADS, LAYERS_SIZE, LAYERS_WIDTH},
                       out[] = {LAYERS_WIDTH, LAYERS_HEADS, LAYERS_SIZE};
  for (int i = 0; i < LAYERS_WEIGHTS; i++) {
    bb_tensor_view array = view(3, i < 3 ? in : out, NULL, all.weight[d->weight][i]);
    bind(w, BB_INPUT, name[i], &array);
  }
}

static void bind_rows(const gpu_world *w, const drawn *d) {
  int64_t shape[] = {d->rows, LAYERS_WIDTH};
  bb_tensor_view x = view(2, shape, NULL, all.x[d->x]);
  bb_tensor_view y = view(2, shape, NULL, d->y < COPIES ? all.y[d->y] : 0);
  bind(w, BB_INPUT, "x0", &x);
  bind(w, BB_OUTPUT, "y", d->y < COPIES ? &y : NULL);
}

/* The first one's two ends, in two arrays. */
static void bind_apart(const gpu_world *w, const drawn *d) {
  static const int64_t stride[] = {HEAD, LAYERS_SIZE, 1};
  int64_t past[] = {LAYERS_HEADS, d->there, LAYERS_SIZE};
  int64_t present[] = {LAYERS_HEADS, d->there + d->rows, LAYERS_SIZE};
  bb_tensor_view from = view(3, past, stride, all.cache[d->cache[0]][0]);
  bb_tensor_view to = view(3, present, stride, all.cache[!d->cache[0]][0]);
  bind(w, BB_INPUT, "past_k0", &from);
  bind(w, BB_OUTPUT, "present_k0", &to);
}

/* told: they are bound as they are, but for how much is there. */
static void bind_caches(const gpu_world *w, const drawn *d, bool told) {
  static const int64_t shape[] = {LAYERS_HEADS, ROOM, LAYERS_SIZE};
  if (told) gpu_good(w, bb_session_set_caches(w->session, d->there));
  if (told) return;
  for (uint32_t c = d->apart; c < CACHES; c++) {
    bb_tensor_view room = view(3, shape, NULL, all.cache[d->cache[c]][c]);
    gpu_good(w, bb_session_bind_cache(w->session, c, &room, d->there));
  }
  if (d->apart) bind_apart(w, d);
}

static void bind_all(const gpu_world *w, const drawn *d, bool told) {
  bind_weights(w, d);
  bind_rows(w, d);
  bind_caches(w, d, told);
  bb_session_use_workspace(w->session, d->lent ? (void *)(uintptr_t)all.room : NULL, WORKSPACE);
}

/* --- runs --- */

/* What a run wrote: the caches, and y. */
typedef struct result {
  char cache[COPIES][CACHES][CACHE * ELEMENT], y[ROWS * ELEMENT];
} result;

static void run(const gpu_world *w, const drawn *d, result *r) {
  gpu_good(w, bb_session_run(w->session, draw(2) ? stream : NULL));
  gpu_good(w, bb_session_wait(w->session));
  for (int i = 0; i < COPIES; i++)
    for (int c = 0; c < CACHES; c++)
      assert_int_equal(gpu.out(r->cache[i][c], all.cache[i][c], CACHE * element(), stream), 0);
  assert_int_equal(gpu.wait(stream), 0);
  uint32_t y = 0;
  assert_true(bb_model_find_tensor(w->model, BB_OUTPUT, "y", &y));
  gpu_good(w, bb_session_read(w->session, BB_OUTPUT, y, r->y,
                              (size_t)d->rows * LAYERS_WIDTH * element()));
}

/* Some of it, all, or nothing, from the run before.  True: caches are where they were, and each one array. */
static bool change(drawn *d) {
  const drawn was = *d;
  if (draw(3)) d->there = d->there + d->rows <= ROOM - MOST_ROWS ? d->there + d->rows : 0;
  if (!draw(3)) d->there = draw(ROOM - MOST_ROWS);
  if (!draw(3)) d->rows = draw(2) ? 1 : 1 + draw(MOST_ROWS);
  if (!draw(3)) d->x = draw(COPIES);
  if (!draw(3)) d->y = draw(COPIES + 1);
  if (!draw(6)) d->weight = draw(COPIES);
  if (!draw(4)) d->cache[draw(CACHES)] = draw(COPIES);
  if (!draw(5)) d->lent = !d->lent;
  if (!draw(5)) d->apart = !d->apart;
  return !d->apart && !was.apart && memcmp(d->cache, was.cache, sizeof was.cache) == 0;
}

/* What is refused leaves nothing behind. */
static void refuse(const gpu_world *w) {
  static const int64_t shape[] = {LAYERS_HEADS, ROOM, LAYERS_SIZE};
  bb_tensor_view room = view(3, shape, NULL, all.cache[0][1]);
  gpu_good(w, bb_session_bind_cache(w->session, 1, &room, ROOM));
  assert_int_not_equal(bb_session_run(w->session, stream), BB_OK);
}

static void reserve(const gpu_world *w) {
  bb_setting most[] = {{"P", draw(ROOM)}, {"S", 1 + draw(MOST_ROWS)}};
  gpu_good(w, bb_session_reserve(w->session, 2, most));
}

static void walk(void **unused) {
  static char text[LAYERS_TEXT];
  static result got, want;
  (void)unused;
  layers_text(text, LAYERS, type);
  gpu_world w = gpu_make(text, "cuda"), fresh = w;
  void *context;
  assert_int_equal(gpu.retain(&context, 0), 0);
  assert_int_equal(gpu.push(context), 0);
  assert_int_equal(gpu.stream(&stream, 1), 0);
  take_all();
  drawn d = {.rows = MOST_ROWS};
  bool told = false;
  for (int i = 0; i < runs; i++) {
    fill(all.x[d.x], ROWS);
    bind_all(&w, &d, told);
    if (!draw(8)) reserve(&w);
    if (!draw(4)) gpu_good(&w, bb_session_prepare(w.session));
    run(&w, &d, &got);
    gpu_good(&fresh, bb_session_create(w.context, w.model, NULL, &fresh.session));
    bind_all(&fresh, &d, false);
    run(&fresh, &d, &want);
    bb_session_destroy(fresh.session);
    if (memcmp(got.cache, want.cache, sizeof got.cache) != 0) fail_msg("run %d: caches", i);
    if (memcmp(got.y, want.y, (size_t)d.rows * LAYERS_WIDTH * element()) != 0)
      fail_msg("run %d: y", i);
    bool refused = !draw(8);
    if (refused) refuse(&w);
    told = change(&d) && !refused && draw(2);
  }
  gpu_end(&w);
  give_all();
  gpu.end(stream);
  assert_int_equal(gpu.pop(&context), 0);
  gpu.release(0);
  assert_int_equal(gpu_allocations(), 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(walk)};
  type = argc > 1 ? argv[1] : "f32";
  if (argc > 2) runs = atoi(argv[2]);
  if (argc > 3) state = (unsigned)atoi(argv[3]);
  return cmocka_run_group_tests(tests, gpu_open, NULL);
}
