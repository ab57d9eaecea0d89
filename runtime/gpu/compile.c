/* compile.c - kernels' source to images: by the vendor's compiler at run time, several at once, or from the disk cache.
 */
#include "toolchain.h"

#include "../../lower/emit.h"
#include "../../lower/emit_simt.h"
#include "../../select/machine.h"
#include "../compile/kernel_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const bb_gpu_toolchain *bb_gpu_toolchain_of(const bb_gpu_api *api) {
  return api == &bb_gpu_hip ? &bb_gpu_hiprtc : &bb_gpu_nvrtc;
}

void bb_gpu_compiler_open(bb_context *ctx, bb_gpu_compiler *c) {
  const bb_gpu_toolchain *t = c->toolchain;
  c->library = bb_gpu_library_open(ctx, &t->library);
#define X(name, cuda, hip, arguments)                                                              \
  bb_gpu_library_find(ctx, c->library, &t->library, t->symbol[BB_GPU_COMPILER_CALL_##name],        \
                      &c->name);
  BB_GPU_COMPILER(X)
#undef X
  void *symbol;
  memcpy(&symbol, &c->create, sizeof symbol);
  if (t->opened) t->opened(symbol);
}

static const char *log_of(const bb_gpu_compiler *c, void *program, bb_arena *arena) {
  size_t size = 0;
  if (c->log_size(program, &size) != 0) return "";
  char *log = bb_arena_alloc(arena, size + 1);
  log[0] = '\0';
  c->log(program, log);
  return log;
}

enum { OPTIONS = 2 };
static const char standard[] = "--std=c++17";

bb_gpu_headers bb_gpu_headers_of(const bb_gpu_toolchain *t) {
  bb_gpu_headers h = {
      6,
      {"simt.cuh", "misc.cuh", "pick.cuh", "integer.h", "fragment.h", "product.cuh"},
      {bb_device_simt, bb_device_misc, bb_device_pick, bb_device_integer, bb_device_fragment,
       bb_device_product}};
  for (int i = 0; i < BB_GPU_OWN_HEADERS && t->header[i]; i++, h.count++)
    h.name[h.count] = t->header_name[i], h.text[h.count] = t->header[i];
  return h;
}

typedef struct job {
  const char *source;
  size_t work;    /* that compiling it is, beside others */
  uint32_t image; /* that it becomes */
  void *program;
  int code;
} job;

/* What threads share: they call the compiler, and nothing of the context's. */
typedef struct jobs {
  const bb_gpu_compiler *compiler;
  bb_gpu_headers header;
  const char *const *option;
  uint32_t count;
  _Atomic uint32_t next;
  job *job;
} jobs;

static void *run_jobs(void *argument) {
  jobs *all = argument;
  for (uint32_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;) {
    job *j = &all->job[i];
    j->code = all->compiler->create(&j->program, j->source, "kernel.cu", all->header.count,
                                    all->header.text, all->header.name);
    if (j->code == 0) j->code = all->compiler->compile(j->program, OPTIONS, all->option);
  }
  return NULL;
}

/* Kernels of plain threads are templates: text of them takes six times as long. */
static size_t work_of(const char *source) {
  bool plain = strstr(source, "#include \"misc.cuh\"") || strstr(source, "#include \"pick.cuh\"");
  return strlen(source) * (plain ? 6 : 1);
}

/* The longest first: at the end threads wait for each other the least. */
static int by_work(const void *a, const void *b) {
  const job *x = a, *y = b;
  if (x->work != y->work) return x->work > y->work ? -1 : 1;
  return x->image < y->image ? -1 : 1;
}

static void run_all(jobs *all) {
  enum { THREADS = 16 };
  pthread_t thread[THREADS];
  uint32_t wanted = all->count < bb_host_units() ? all->count : bb_host_units(), started = 0;
  if (all->compiler->toolchain->alone) wanted = 1;
  while (started + 1 < wanted && started < THREADS &&
         pthread_create(&thread[started], NULL, run_jobs, all) == 0)
    started++;
  run_jobs(all);
  for (uint32_t i = 0; i < started; i++) pthread_join(thread[i], NULL);
}

/* Ends the job; NULL: *why says why there is no image. */
static const char *image_of(const bb_gpu_compiler *c, job *j, bb_arena *arena, size_t *size,
                            const char **why) {
  char *image = NULL;
  if (j->code) *why = j->program ? log_of(c, j->program, arena) : "it makes no program of it";
  if (j->code == 0 && c->image_size(j->program, size) == 0) {
    image = bb_arena_alloc(arena, *size + 1);
    if (c->image(j->program, image) != 0) image = NULL;
  }
  if (j->program) c->destroy(&j->program);
  return image;
}

/* The compiler's version is no part of it: to ask for it takes longer than to load what there is. */
static bb_cache_key key_of(const bb_gpu_compiler *c, const char *target, const char *source,
                           bb_arena *arena) {
  const bb_gpu_toolchain *t = c->toolchain;
  bb_buffer key = {.arena = arena};
  const char *own = getenv(t->library.variable);
  bb_gpu_headers header = bb_gpu_headers_of(t);
  bb_put(&key, "blockbuster %u\n%s %s\n%s\n", bb_version(), target, standard, own ? own : "");
  for (int i = 0; i < header.count; i++) bb_put_bytes(&key, header.text[i], strlen(header.text[i]));
  bb_put_bytes(&key, source, strlen(source));
  return (bb_cache_key){key.data, key.length, .folder = c->cache};
}

static bool knows_target(const bb_gpu_compiler *c, const char *target) {
  static const char nothing[] = "extern \"C\" __global__ void nothing() {}\n";
  void *program = NULL;
  if (!c->toolchain->knows || c->create(&program, nothing, "nothing", 0, NULL, NULL) != 0)
    return true;
  bool knows = c->toolchain->knows(target);
  c->destroy(&program);
  return knows;
}

const bb_gpu_image *bb_gpu_compile_all(bb_context *ctx, bb_gpu_compiler *c, const char *target,
                                       uint32_t count, const char *const *source, bb_arena *arena) {
  const char *option[OPTIONS] = {bb_arena_printf(arena, "%s%s", c->toolchain->option, target),
                                 standard};
  bb_gpu_image *image = BB_NEW(arena, bb_gpu_image, count + 1);
  jobs all = {.compiler = c,
              .header = bb_gpu_headers_of(c->toolchain),
              .option = option,
              .job = BB_NEW(arena, job, count + 1)};
  const char *bad = NULL, *why = "";
  for (uint32_t i = 0; i < count; i++) {
    bb_cache_key key = key_of(c, target, source[i], arena);
    image[i].data = bb_cache_image(ctx, arena, &key, &image[i].size);
    if (!image[i].data) all.job[all.count++] = (job){source[i], work_of(source[i]), i, NULL, 0};
  }
  qsort(all.job, all.count, sizeof *all.job, by_work);
  if (all.count && !c->library) bb_gpu_compiler_open(ctx, c);
  if (all.count && !knows_target(c, target))
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "the %s that is here does not compile for %s",
            c->toolchain->library.title, target);
  if (all.count) run_all(&all);
  for (uint32_t k = 0; k < all.count; k++) {
    size_t size = 0;
    const char *made = image_of(c, &all.job[k], arena, &size, &why);
    bb_cache_key key = key_of(c, target, all.job[k].source, arena);
    image[all.job[k].image] = (bb_gpu_image){made, size};
    if (!made) bad = why;
    if (made) bb_cache_keep_image(ctx, arena, &key, made, size);
  }
  if (bad) bb_fail(ctx, BB_ERROR_INTERNAL, "a kernel does not compile for %s:\n%s", target, bad);
  return image;
}

const void *bb_gpu_compile(bb_context *ctx, bb_gpu_compiler *c, const char *target,
                           const char *source, bb_arena *arena) {
  return bb_gpu_compile_all(ctx, c, target, 1, &source, arena)->data;
}
