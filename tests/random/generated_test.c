/* generated_test.c - kernels of random programs: the C that is made of them computes what the programs mean.
 *
 * For every seed the unfused program and each of its snapshots, made safe, become a tile program, whose loops have
 * blocks of one element, of sizes that divide nothing, larger than any extent or drawn loop by loop, and
 * then C.  Many seeds are compiled in one go: what takes time is starting the compiler.  With
 * --meaning nothing is compiled, and the tile programs are interpreted; with --hip they become kernels of plain threads,
 * for the GPU that the driver and the compiler of the environment have (tests/cuda/fake.c: the processor).
 *
 * usage: generated_test [--meaning | --hip] FIRST COUNT   (seeds FIRST ... FIRST + COUNT - 1)
 */
#include "random.h"

#include "../../fuse/fuse.h"
#include "../../fuse/safety.h"
#include "../../lower/emit_c.h"
#include "../../runtime/cpu/launch.h"
#include "../../runtime/gpu/launch.h"
#include "../../runtime/gpu/make.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 20, THREADS = 2 };

typedef struct made {
  const random_case *c;
  const bb_kernel *kernel;
  bb_simt_launch launch; /* --hip */
  const bb_interp_tensor *want;
  double seed;
  const char *what;
} made;

typedef struct batch {
  bb_context *ctx;
  bb_arena *arena;
  bool meaning, hip;
  uint64_t first, count, refused;
  uint32_t kernels, capacity;
  made *kernel;
  bb_buffer source;
} batch;

static const bb_interp_tensor *interpret(const random_case *c) {
  bb_program *p = c->program;
  bb_interp_options run = {.float64 = true, .symbol = c->symbol, .block = c->block};
  bb_interp_tensor *tensor = BB_NEW(p->arena, bb_interp_tensor, p->tensors);
  memcpy(tensor, c->tensor, p->tensors * sizeof *tensor);
  bb_interp_graph(p, p->root, &run, tensor, p->arena, NULL);
  return tensor;
}

/* --- kernels --- */

typedef struct scheduling {
  batch *b;
  const random_case *c;
  const bb_graph *graph;
  uint64_t way;
  const bb_kernel *kernel;
  bb_simt_launch launch;
} scheduling;

/* The ways take turns: the case's own blocks, of 1, of 3, of 200 (a GPU: 64, which its shared memory has room for), drawn for each loop; every other one with
 * loops spread that make some values alike. */
static bb_schedule_options way_of(const scheduling *s) {
  bb_program *p = s->c->program;
  const int64_t size[] = {1, 3, s->b->hip ? 64 : 200};
  if (s->way % 5 == 0) return (bb_schedule_options){.block = s->c->block};
  if (s->way % 5 == 4) return (bb_schedule_options){.loop_seed = (uint32_t)s->way + 1};
  int64_t *block = BB_NEW(p->arena, int64_t, p->dims + 1);
  for (uint32_t d = 0; d < p->dims; d++) block[d] = size[s->way % 5 - 1];
  return (bb_schedule_options){.block = block};
}

static void schedule(bb_context *ctx, void *argument) {
  scheduling *s = argument;
  bb_program *p = s->c->program;
  bb_schedule_options options = way_of(s);
  options.alike = s->way % 2;
  const bb_kernel *kernel = bb_schedule(p, s->graph, "k", &options);
  const char *broken = bb_tile_verify(kernel->tile, p->arena);
  if (broken) bb_fail(ctx, BB_ERROR_MISMATCH, "%s", broken);
  const char *name = bb_arena_printf(s->b->arena, "k%u", s->b->kernels);
  bb_buffer text = {.arena = s->b->arena};
  if (s->b->hip)
    bb_emit_simt(&text, kernel->tile, name, &(bb_emit_options){.exact = true}, &s->launch);
  else
    bb_emit_c(&text, kernel->tile, name, &(bb_emit_options){.exact = true});
  bb_put_bytes(&s->b->source, text.data, text.length);
  s->kernel = kernel;
}

/* What runs is safe; a snapshot that cannot be made so does not run. */
static void add(batch *b, const random_case *c, bb_graph *graph, uint64_t seed, uint64_t at,
                const bb_interp_tensor *want) {
  graph = bb_safety_alone(c->program, graph);
  if (!graph) return;
  scheduling s = {.b = b, .c = c, .graph = graph, .way = seed + at};
  bb_status status = bb_protect(b->ctx, schedule, &s);
  if (status == BB_ERROR_UNSUPPORTED) {
    printf("seed %llu: %s\n", (unsigned long long)seed, bb_context_message(b->ctx));
    b->ctx->status = BB_OK;
    b->refused++;
    return;
  }
  if (status != BB_OK) {
    const char *why = bb_context_message(b->ctx);
    why = bb_arena_text(b->arena, why, strlen(why));
    bb_fail(b->ctx, status, "seed %llu: %s", (unsigned long long)seed, why);
  }
  BB_GROW(b->arena, b->kernel, b->capacity, b->kernels + 1u);
  b->kernel[b->kernels++] =
      (made){c, s.kernel, s.launch, want, (double)seed, at ? "snapshot" : "unfused"};
}

static void add_seed(batch *b, uint64_t seed) {
  random_case *c = BB_NEW(b->arena, random_case, 1);
  *c = random_case_make(b->ctx, seed, 1 + (uint32_t)(seed % 7));
  const bb_interp_tensor *want = interpret(c);
  bb_snapshot *snapshot;
  add(b, c, c->program->root, seed, 0, want);
  uint32_t count = bb_fuse(c->program, &c->program->root, &(bb_fuse_options){0}, &snapshot);
  for (uint32_t i = 0; i < count; i++) add(b, c, snapshot[i].graph, seed, i + 1, want);
}

/* --- runs --- */

static bb_interp_tensor *fresh_tensors(batch *b, const made *m) {
  const bb_program *p = m->c->program;
  bb_interp_tensor *tensor = BB_NEW(b->arena, bb_interp_tensor, p->tensors);
  for (uint32_t t = 0; t < p->tensors; t++) {
    tensor[t] = m->c->tensor[t];
    if (p->tensor[t].role != BB_TENSOR_OUTPUT) continue;
    tensor[t].count = m->want[t].count;
    tensor[t].data = BB_NEW(b->arena, double, tensor[t].count + 1);
  }
  return tensor;
}

/* Where each tensor's numbers lie: floats are doubles; whole numbers as their type says. */
static void **lay_down(batch *b, const bb_program *p, const bb_interp_tensor *tensor) {
  void **data = BB_NEW(b->arena, void *, p->tensors + 1);
  for (uint32_t t = 0; t < p->tensors; t++) {
    data[t] = tensor[t].data;
    if (!tensor[t].data || bb_dtype_is_float(p->tensor[t].dtype)) continue;
    data[t] = BB_NEW(b->arena, double, tensor[t].count + 1);
    bb_interp_store(p->tensor[t].dtype, tensor[t].data, tensor[t].count, data[t]);
  }
  return data;
}

static void take_up(const bb_program *p, void *const *data, const bb_interp_tensor *tensor) {
  for (uint32_t t = 0; t < p->tensors; t++)
    if (p->tensor[t].role == BB_TENSOR_OUTPUT && data[t] != tensor[t].data)
      bb_interp_load(p->tensor[t].dtype, data[t], tensor[t].count, tensor[t].data);
}

static void run_code(batch *b, const made *m, const bb_cpu_kernel *code, bb_pool *pool,
                     const int64_t *extent, bb_interp_tensor *tensor) {
  const bb_program *p = m->c->program;
  void **data = lay_down(b, p, tensor);
  bb_launch_memory memory;
  size_t local, shared;
  bb_launch_need(code, extent, &local, &shared);
  memory.each = (local + 127) / 64 * 64;
  char *room = bb_arena_alloc(b->arena, memory.each * THREADS + shared + 128);
  memory.local = (char *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
  memory.shared = memory.local + memory.each * THREADS;
  bb_launch(pool, p, m->kernel, code, extent, data, true, &memory);
  take_up(p, data, tensor);
}

/* --- by the runtime of a GPU whose memory is the processor's --- */

static void run_plain(batch *b, const bb_gpu_machine *machine, void *module, void *stream,
                      uint32_t number) {
  const made *m = &b->kernel[number];
  bb_program *p = m->c->program;
  const bb_tile_program *tile = m->kernel->tile;
  const int64_t *extent = bb_launch_extents(p, m->kernel, m->c->symbol, p->arena);
  bb_interp_tensor *got = fresh_tensors(b, m);
  void **data = lay_down(b, p, got);
  bb_gpu_calls calls = {0};
  bb_gpu_way k =
      bb_gpu_describe_plain(b->arena, tile, &m->launch, bb_arena_printf(b->arena, "k%u", number));
  bb_gpu_pointer *view = BB_NEW(b->arena, bb_gpu_pointer, tile->views + 1);
  double *variable = BB_NEW(b->arena, double, tile->extents + 1);
  for (uint32_t n = 0; n < m->launch.nests; n++)
    bb_gpu_must(b->ctx, machine->driver,
                machine->driver->function(&k.plain.nest[n].function, module, k.plain.nest[n].name),
                "a function");
  for (uint32_t i = 0; i < tile->extents; i++) variable[i] = (double)extent[i];
  for (uint32_t i = 0; i < tile->views; i++) {
    uint32_t t = m->kernel->argument[i].tensor;
    if (t == BB_NONE) continue;
    size_t each = bb_dtype_is_float(p->tensor[t].dtype) ? 8 : bb_dtype_bytes(p->tensor[t].dtype);
    int64_t first = bb_tile_index_value(m->kernel->argument[i].offset, variable);
    view[i] = (bb_gpu_pointer)(uintptr_t)data[t] + (uint64_t)first * each;
  }
  bb_gpu_machine own = *machine;
  const bb_gpu_ways ways = {1, &k};
  bb_gpu_cut cut;
  bb_gpu_cut_begin(b->ctx, &ways, &cut);
  cut.way = &k;
  memcpy(cut.extent, extent, k.extents * sizeof *cut.extent);
  bb_gpu_cut_work_out(&own, &cut);
  uintptr_t room = (uintptr_t)bb_arena_alloc(b->arena, cut.scratch + 512);
  own.scratch = (room + 255) / 256 * 256;
  bb_gpu_cut_call(&own, &cut, view, NULL, &calls);
  bb_gpu_issue(b->ctx, own.driver, &calls, stream, "a launch");
  bb_gpu_must(b->ctx, own.driver, own.driver->stream_wait(stream), "a run");
  bb_gpu_calls_end(b->ctx, &calls);
  bb_gpu_cut_end(b->ctx, &cut);
  take_up(p, data, got);
  random_compare(p, got, m->want, m->what, m->seed);
}

static void compile_plain(batch *b) {
  enum { PROCESSORS = 3 };
  bb_gpu_driver driver;
  bb_gpu_compiler compiler = {.toolchain = &bb_gpu_hiprtc};
  bb_gpu_machine machine = {.ctx = b->ctx, .driver = &driver, .processors = PROCESSORS};
  void *module, *stream, *context;
  bb_gpu_driver_open(b->ctx, &bb_gpu_hip, &driver);
  const void *image = bb_gpu_compile(b->ctx, &compiler, "gfx90a", b->source.data, b->arena);
  bb_gpu_must(b->ctx, &driver, driver.retain(&context, 0), "a context");
  bb_gpu_must(b->ctx, &driver, driver.push(context), "a context");
  bb_gpu_must(b->ctx, &driver, driver.load(&module, image), "loading kernels");
  bb_gpu_must(b->ctx, &driver, driver.stream_create(&stream, 0), "a stream");
  for (uint32_t i = 0; i < b->kernels; i++) run_plain(b, &machine, module, stream, i);
  driver.stream_destroy(stream);
  driver.unload(module);
  driver.pop(&context);
  driver.release(0);
  bb_gpu_library_close(compiler.library);
  bb_gpu_library_close(driver.library);
}

static void check(batch *b, const bb_cpu_kernel *const *code, bb_pool *pool) {
  for (uint32_t i = 0; i < b->kernels; i++) {
    const made *m = &b->kernel[i];
    bb_program *p = m->c->program;
    const int64_t *extent = bb_launch_extents(p, m->kernel, m->c->symbol, p->arena);
    bb_interp_tensor *got = fresh_tensors(b, m);
    if (code)
      run_code(b, m, code[i], pool, extent, got);
    else
      bb_launch_meaning(p, m->kernel, extent, got, true);
    random_compare(p, got, m->want, m->what, m->seed);
  }
}

static void unload(void *module) {
  bb_cpu_unload(module);
}

static void destroy_pool(void *pool) {
  bb_pool_destroy(pool);
}

static void compile(batch *b) {
  bb_cpu_module *module = BB_NEW(b->arena, bb_cpu_module, 1); /* unload() may run later than this */
  bb_put(&b->source,
         "__attribute__((visibility(\"default\"))) const bb_cpu_kernel *const bb_kernels[] = {");
  for (uint32_t i = 0; i < b->kernels; i++) bb_put(&b->source, "&k%u, ", i);
  bb_put(&b->source, "0};\n");
  bb_cpu_compile(b->ctx, b->source.data, b->source.length, NULL, module);
  bb_defer(b->ctx, unload, module);
  bb_pool *pool = bb_pool_create(b->ctx, THREADS);
  bb_defer(b->ctx, destroy_pool, pool);
  check(b, dlsym(module->handle, "bb_kernels"), pool);
  bb_undefer(b->ctx, pool);
  bb_pool_destroy(pool);
  bb_undefer(b->ctx, module);
  bb_cpu_unload(module);
}

static void body(bb_context *ctx, void *argument) {
  batch *b = argument;
  b->ctx = ctx;
  b->arena = b->source.arena = bb_scratch(ctx);
  bb_put(&b->source, "#include \"%s\"\n\n", b->hip ? "simt.cuh" : BB_CPU_LIBRARY);
  for (uint64_t i = 0; i < b->count; i++) add_seed(b, b->first + i);
  if (b->meaning)
    check(b, NULL, NULL);
  else if (b->hip)
    compile_plain(b);
  else
    compile(b);
}

int main(int argc, char **argv) {
  bool meaning = argc == 4 && strcmp(argv[1], "--meaning") == 0;
  bool hip = argc == 4 && strcmp(argv[1], "--hip") == 0;
  if (argc != 3 + (meaning || hip)) {
    fprintf(stderr, "usage: generated_test [--meaning | --hip] FIRST COUNT\n");
    return 2;
  }
  uint64_t first = strtoull(argv[argc - 2], NULL, 10), kernels = 0, refused = 0;
  uint64_t end = first + strtoull(argv[argc - 1], NULL, 10);
  int failed = 0;
  for (; first < end && failed < 5; first += BATCH) {
    batch b = {.meaning = meaning,
               .hip = hip,
               .first = first,
               .count = end - first < BATCH ? end - first : BATCH};
    bb_context *ctx;
    if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
    if (bb_protect(ctx, body, &b) != BB_OK) {
      printf("seeds from %llu: %s\n", (unsigned long long)first, bb_context_message(ctx));
      failed++;
    }
    kernels += b.kernels;
    refused += b.refused;
    bb_context_destroy(ctx);
  }
  printf("%llu kernels, %llu refused\n", (unsigned long long)kernels, (unsigned long long)refused);
  return failed != 0 || refused * 50 > kernels;
}
