/* driver.c - the CUDA driver and NVRTC: found, loaded, and asked. */
#define _GNU_SOURCE /* dladdr */
#include "driver.h"

#include "../../lower/emit.h"
#include "../../lower/emit_simt.h"
#include "../../select/machine.h"
#include "../compile/kernel_cache.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_DEVICE = 100, OUT_OF_MEMORY = 2 };

void bb_cuda_library_close(void *library) {
  if (library) dlclose(library);
}

static void find(bb_context *ctx, void *library, const char *what, const char *name, void *to) {
  void *symbol = dlsym(library, name);
  if (!symbol) {
    dlclose(library);
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%s is too old: it has no %s", what, name);
  }
  memcpy(to, &symbol, sizeof symbol);
}

/* A driver or a compiler that was loaded stays: what it allocates once for the process would be lost
 * with it, and again with the next. */
static void *open_first(const char *variable, const char *const *names) {
  const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  const char *own = getenv(variable);
  if (own && *own) return dlopen(own, how);
  void *library = NULL;
  for (; *names && !library; names++) library = dlopen(*names, how);
  return library;
}

void bb_cuda_driver_open(bb_context *ctx, bb_cuda_driver *d) {
  static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
  *d = (bb_cuda_driver){.library = open_first("BLOCKBUSTER_CUDA", names)};
  if (!d->library)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "no CUDA driver: libcuda.so.1 does not load (%s)",
            dlerror());
#define X(name, symbol, arguments) find(ctx, d->library, "the CUDA driver", #symbol, &d->name);
  BB_CUDA_DRIVER(X)
#undef X
  int code = d->init(0), count = 0;
  if (code == 0) code = d->count(&count);
  if (code == 0 && count > 0) return;
  const char *text = NULL;
  if (code) d->error(code, &text);
  char why[160];
  snprintf(why, sizeof why, "%s", text ? text : "it sees none");
  dlclose(d->library);
  d->library = NULL;
  bb_fail(ctx, BB_ERROR_UNSUPPORTED, "no CUDA device: %s", why);
}

/* NVRTC opens its builtins by name alone, which finds them only where CUDA is installed system-wide;
 * those that lie beside it (as in Python's packages) are loaded here, and then found by that name.
 * Where there are none NVRTC says so itself. */
static void open_builtins(void *symbol) {
  static const char stem[] = "libnvrtc-builtins.so";
  Dl_info at;
  const char *slash = dladdr(symbol, &at) ? strrchr(at.dli_fname, '/') : NULL;
  if (!slash) return;
  char path[4096];
  int folder = (int)(slash - at.dli_fname);
  if (snprintf(path, sizeof path, "%.*s", folder, at.dli_fname) >= (int)sizeof path) return;
  DIR *list = opendir(path);
  for (struct dirent *file; list && (file = readdir(list));) {
    if (strncmp(file->d_name, stem, sizeof stem - 1) != 0) continue;
    int length = snprintf(path, sizeof path, "%.*s/%s", folder, at.dli_fname, file->d_name);
    if (length < (int)sizeof path) dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  }
  if (list) closedir(list);
}

void bb_cuda_compiler_open(bb_context *ctx, bb_cuda_compiler *c) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
  *c = (bb_cuda_compiler){.library = open_first("BLOCKBUSTER_NVRTC", names)};
  if (!c->library)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED,
            "no compiler for CUDA: libnvrtc does not load (%s); BLOCKBUSTER_NVRTC may name it",
            dlerror());
#define X(name, symbol, arguments) find(ctx, c->library, "NVRTC", #symbol, &c->name);
  BB_CUDA_COMPILER(X)
#undef X
  void *symbol;
  memcpy(&symbol, &c->create, sizeof symbol);
  open_builtins(symbol);
}

void bb_cuda_must(bb_context *ctx, const bb_cuda_driver *d, int code, const char *what) {
  const char *text = NULL;
  if (code == 0) return;
  d->error(code, &text);
  bb_fail(ctx, code == OUT_OF_MEMORY ? BB_ERROR_MEMORY : BB_ERROR_IO, "CUDA, %s: %s (%d)", what,
          text ? text : "unknown error", code);
}

/* --- compilation --- */

static const char *log_of(const bb_cuda_compiler *c, void *program, bb_arena *arena) {
  size_t size = 0;
  if (c->log_size(program, &size) != 0) return "";
  char *log = bb_arena_alloc(arena, size + 1);
  log[0] = '\0';
  c->log(program, log);
  return log;
}

static const char *const header_name[] = {"sm90.cuh", "simt.cuh", "misc.cuh", "integer.h"};
static const char *const header[] = {bb_device_sm90, bb_device_simt, bb_device_misc,
                                     bb_device_integer};
static const char standard[] = "--std=c++17";
enum { HEADERS = 4, OPTIONS = 2 };

typedef struct job {
  const char *source;
  void *program;
  int code;
} job;

/* What threads share: they call the compiler, and nothing of the context's. */
typedef struct jobs {
  const bb_cuda_compiler *compiler;
  const char *const *option;
  uint32_t count;
  _Atomic uint32_t next;
  job *job;
} jobs;

static void *run_jobs(void *argument) {
  jobs *all = argument;
  for (uint32_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;) {
    job *j = &all->job[i];
    j->code =
        all->compiler->create(&j->program, j->source, "kernel.cu", HEADERS, header, header_name);
    if (j->code == 0) j->code = all->compiler->compile(j->program, OPTIONS, all->option);
  }
  return NULL;
}

static void run_all(jobs *all) {
  enum { THREADS = 16 };
  pthread_t thread[THREADS];
  uint32_t wanted = all->count < bb_host_units() ? all->count : bb_host_units(), started = 0;
  while (started + 1 < wanted && started < THREADS &&
         pthread_create(&thread[started], NULL, run_jobs, all) == 0)
    started++;
  run_jobs(all);
  for (uint32_t i = 0; i < started; i++) pthread_join(thread[i], NULL);
}

/* Ends the job; NULL: *why says why there is no image. */
static const char *image_of(const bb_cuda_compiler *c, job *j, bb_arena *arena, size_t *size,
                            const char **why) {
  char *image = NULL;
  if (j->code) *why = j->program ? log_of(c, j->program, arena) : "NVRTC makes no program";
  if (j->code == 0 && c->cubin_size(j->program, size) == 0) {
    image = bb_arena_alloc(arena, *size + 1);
    if (c->cubin(j->program, image) != 0) image = NULL;
  }
  if (j->program) c->destroy(&j->program);
  return image;
}

/* The compiler's version is no part of it: to ask for it takes longer than to load what there is. */
static bb_cache_key key_of(const char *target, const char *source, bb_arena *arena) {
  bb_buffer key = {.arena = arena};
  const char *own = getenv("BLOCKBUSTER_NVRTC");
  bb_put(&key, "blockbuster %u\n%s %s\n%s\n", bb_version(), target, standard, own ? own : "");
  for (uint32_t i = 0; i < HEADERS; i++) bb_put_bytes(&key, header[i], strlen(header[i]));
  bb_put_bytes(&key, source, strlen(source));
  return (bb_cache_key){key.data, key.length};
}

const void **bb_cuda_compile_all(bb_context *ctx, bb_cuda_compiler *c, const char *target,
                                 uint32_t count, const char *const *source, bb_arena *arena) {
  const char *option[OPTIONS] = {bb_arena_printf(arena, "--gpu-architecture=%s", target), standard};
  const void **image = BB_NEW(arena, const void *, count + 1);
  uint32_t *of = BB_NEW(arena, uint32_t, count + 1);
  jobs all = {.compiler = c, .option = option, .job = BB_NEW(arena, job, count + 1)};
  const char *bad = NULL, *why = "";
  for (uint32_t i = 0; i < count; i++) {
    bb_cache_key key = key_of(target, source[i], arena);
    size_t size;
    image[i] = bb_cache_image(ctx, arena, &key, &size);
    of[all.count] = i;
    if (!image[i]) all.job[all.count++].source = source[i];
  }
  if (all.count && !c->library) bb_cuda_compiler_open(ctx, c);
  if (all.count) run_all(&all);
  for (uint32_t k = 0; k < all.count; k++) {
    size_t size = 0;
    const char *made = image_of(c, &all.job[k], arena, &size, &why);
    bb_cache_key key = key_of(target, source[of[k]], arena);
    image[of[k]] = made;
    if (!made) bad = why;
    if (made) bb_cache_keep_image(ctx, arena, &key, made, size);
  }
  if (bad) bb_fail(ctx, BB_ERROR_INTERNAL, "a kernel does not compile for %s:\n%s", target, bad);
  return image;
}

const void *bb_cuda_compile(bb_context *ctx, bb_cuda_compiler *c, const char *target,
                            const char *source, bb_arena *arena) {
  return bb_cuda_compile_all(ctx, c, target, 1, &source, arena)[0];
}
