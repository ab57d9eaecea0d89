/* compile.c - C source to a loaded shared object, by the system's compiler. */
#include "cpu.h"

#include "../../lower/emit.h"
#include "../../lower/emit_c.h"
#include "../compile/kernel_cache.h"
#include "../model/safe_file.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* The device tile library, as a kernel's source includes it. */
static const struct {
  const char *name, *text;
} header[] = {{"bb_cpu.h", bb_device_cpu},
              {"bb_cpu_call.h", bb_device_cpu_call},
              {"bb_cpu_real.h", bb_device_cpu_real},
              {"bb_cpu_product.h", bb_device_cpu_product},
              {"bb_cpu_narrow.h", bb_device_cpu_narrow},
              {"bb_cpu_narrow_product.h", bb_device_cpu_narrow_product},
              {"integer.h", bb_device_integer}};
enum { HEADERS = sizeof header / sizeof *header };

/* Products, which are compiled apart: the same object for all kernels of a processor. */
static const struct {
  const char *suffix[3]; /* of what they are called by */
  const char *object, *file, *text;
} product[] = {{{"_f32(", "_f16(", "_bf16("},
                "products_f32.o",
                "products_f32.c",
                "#define BB_PRODUCTS_F32\n#include \"bb_cpu.h\"\n"},
               {{"_f64("},
                "products_f64.o",
                "products_f64.c",
                "#define BB_PRODUCTS_F64\n#include \"bb_cpu.h\"\n"}};
enum { PRODUCTS = sizeof product / sizeof *product };

static const char *const files[] = {"kernels.c", "kernels.so",    "compiler.txt", "plan.json",
                                    "data.bin",  "launches.json", "kernels.bin"};

bool bb_cpu_folder_has(const char *name) {
  for (size_t i = 0; i < HEADERS; i++)
    if (strcmp(header[i].name, name) == 0) return true;
  for (size_t i = 0; i < PRODUCTS; i++)
    if (strcmp(product[i].object, name) == 0 || strcmp(product[i].file, name) == 0) return true;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (strcmp(files[i], name) == 0) return true;
  return false;
}

static const char *in_folder(bb_arena *arena, const char *folder, const char *name) {
  return bb_arena_printf(arena, "%s/%s", folder, name);
}

static void write_file(bb_context *ctx, const char *path, const char *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite(bytes, 1, length, file) == length;
  if (file) good &= fclose(file) == 0;
  if (!good) bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
}

static void remove_file(const char *folder, const char *name) {
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (length > 0 && (size_t)length < sizeof path) unlink(path);
}

void bb_cpu_tidy_folder(const char *folder) {
  for (size_t i = 0; i < HEADERS; i++) remove_file(folder, header[i].name);
  for (size_t i = 0; i < PRODUCTS; i++) {
    remove_file(folder, product[i].file);
    remove_file(folder, product[i].object);
  }
  remove_file(folder, "compiler.txt");
}

void bb_cpu_remove_folder(const char *folder) {
  bb_cpu_tidy_folder(folder);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) remove_file(folder, files[i]);
  rmdir(folder);
}

void bb_cpu_remove_stale(const char *path) {
  enum { STALE_SECONDS = 3600 };
  struct stat status;
  if (lstat(path, &status) != 0 || status.st_uid != geteuid() ||
      time(NULL) - status.st_mtime <= STALE_SECONDS)
    return;
  if (S_ISDIR(status.st_mode))
    bb_cpu_remove_folder(path);
  else
    unlink(path);
}

/* Temporary folders whose makers are gone. */
static void sweep(const char *base, const char *name) {
  char path[4096];
  size_t begin = strcspn(name, "X");
  DIR *dir = opendir(base);
  for (struct dirent *d; dir && (d = readdir(dir));) {
    if (strncmp(d->d_name, name, begin) != 0 || strlen(d->d_name) != strlen(name)) continue;
    int length = snprintf(path, sizeof path, "%s/%s", base, d->d_name);
    if (length > 0 && (size_t)length < sizeof path) bb_cpu_remove_stale(path);
  }
  if (dir) closedir(dir);
}

char *bb_cpu_temporary_folder(bb_context *ctx) {
  static const char name[] = "blockbuster-XXXXXX";
  const char *base = getenv("TMPDIR");
  char path[4096];
  if (!base || !*base) base = "/tmp";
  sweep(base, name);
  int length = snprintf(path, sizeof path, "%s/%s", base, name);
  if (length < 0 || (size_t)length >= sizeof path || !mkdtemp(path))
    bb_fail(ctx, BB_ERROR_IO, "no temporary folder in %s: %s", base, strerror(errno));
  char *copy = strdup(path);
  if (!copy) {
    rmdir(path);
    bb_fail(ctx, BB_ERROR_MEMORY, "out of memory");
  }
  return copy;
}

/* The compiler's first lines. */
static const char *what_it_said(bb_arena *arena, const char *path) {
  char text[2000];
  FILE *file = fopen(path, "rb");
  size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  return bb_arena_text(arena, text, length);
}

static const char *const flags[] = {
    "-std=gnu17",
    "-O2",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-w",
#ifdef __x86_64__
    "-mprefer-vector-width=512", /* compilers halve the widest vectors unless told not to */
#endif
};
enum { FLAGS = sizeof flags / sizeof *flags };

static const char *compiler(void) {
  const char *cc = getenv("BLOCKBUSTER_CC");
  return cc && *cc ? cc : "cc";
}

static _Noreturn void refuse_compiler(bb_context *ctx, const char *cc, int error) {
  bb_fail(ctx, BB_ERROR_IO,
          "kernels need a C compiler: cannot run \"%s\" (%s); install one, name it in "
          "BLOCKBUSTER_CC, or interpret",
          cc, strerror(error));
}

/* Its output had no room: the reason as the system words it; NULL: something else. */
static const char *lacking_room(const char *said) {
  static const int error[] = {ENOSPC, EFBIG, EDQUOT};
  for (size_t i = 0; i < sizeof error / sizeof *error; i++)
    if (strstr(said, strerror(error[i]))) return strerror(error[i]);
  return strstr(said, strsignal(SIGXFSZ)) ? strerror(EFBIG) : NULL;
}

static _Noreturn void refuse_kernels(bb_context *ctx, const char *folder, const char *said) {
  struct rlimit limit;
  const char *room = lacking_room(said), *cc = compiler();
  if (room && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bb_fail(ctx, BB_ERROR_IO,
            "the compiler \"%s\" could not write the kernels in %s: %s (files that this process "
            "makes are "
            "limited to %llu bytes: ulimit -f)",
            cc, folder, room, (unsigned long long)limit.rlim_cur);
  if (room)
    bb_fail(ctx, BB_ERROR_IO, "the compiler \"%s\" could not write the kernels in %s: %s", cc,
            folder, room);
  bb_fail(ctx, BB_ERROR_INTERNAL, "the compiler \"%s\" refuses the kernels in %s:\n%s", cc, folder,
          said);
}

/* how: "-c" or "-shared".  from: `count` files of the folder. */
static void run_compiler(bb_context *ctx, bb_arena *arena, const char *folder, const char *how,
                         const char *to, uint32_t count, const char *const *from) {
  const char *cc = compiler();
  const char *log = in_folder(arena, folder, "compiler.txt");
  const char **arguments = BB_NEW(arena, const char *, FLAGS + count + 6), **more = arguments;
  *more++ = cc;
  for (size_t i = 0; i < FLAGS; i++) *more++ = flags[i];
  *more++ = how;
  *more++ = "-o";
  *more++ = in_folder(arena, folder, to);
  for (uint32_t i = 0; i < count; i++) *more++ = in_folder(arena, folder, from[i]);
  *more = "-lm";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid;
  int error = posix_spawnp(&pid, cc, &actions, NULL, (char *const *)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error == 0)
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (error || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
    refuse_compiler(ctx, cc, error ? error : ENOENT);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    refuse_kernels(ctx, folder, what_it_said(arena, log));
}

/* --- what decides what is built --- */

/* The compiler's file: by its path, or found as the shell would. */
static bool find_compiler(const char *cc, char *path, size_t size, struct stat *file) {
  const char *at = getenv("PATH");
  if (strchr(cc, '/')) return snprintf(path, size, "%s", cc) > 0 && stat(path, file) == 0;
  for (at = at ? at : "/usr/bin:/bin"; *at;) {
    size_t length = strcspn(at, ":");
    int written = snprintf(path, size, "%.*s/%s", (int)length, at, cc);
    if (written > 0 && (size_t)written < size && access(path, X_OK) == 0 && stat(path, file) == 0 &&
        S_ISREG(file->st_mode))
      return true;
    at += length + (at[length] == ':');
  }
  return false;
}

/* Every word that says what instructions there are, but not which core this is. */
static void put_processor(bb_buffer *out) {
#if defined(__x86_64__)
  static const unsigned leaf[][2] = {{1, 0}, {7, 0}, {7, 1}, {13, 1}, {0x80000001, 0}};
  for (size_t i = 0; i < sizeof leaf / sizeof *leaf; i++) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    __get_cpuid_count(leaf[i][0], leaf[i][1], &a, &b, &c, &d);
    /* Leaf 1 names the core in b and says in a bit of c what the kernel has switched on. */
    bb_put(out, "cpuid %x.%x %x %x %x %x\n", leaf[i][0], leaf[i][1], a, leaf[i][0] == 1 ? 0 : b, c,
           d);
  }
#endif
  struct utsname name;
  if (uname(&name) == 0) bb_put(out, "machine %s\n", name.machine);
}

const char *bb_cpu_identity(bb_context *ctx, bb_arena *arena) {
  bb_buffer out = {.arena = arena};
  struct stat file;
  char path[4096];
  const char *cc = compiler();
  if (!find_compiler(cc, path, sizeof path, &file)) refuse_compiler(ctx, cc, ENOENT);
  bb_put(&out, "blockbuster %u\ncompiler %s %lld %lld.%09ld\nflags", bb_version(), path,
         (long long)file.st_size, (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  for (size_t i = 0; i < FLAGS; i++) bb_put(&out, " %s", flags[i]);
  bb_put(&out, "\n");
  put_processor(&out);
  for (size_t i = 0; i < HEADERS; i++) bb_put(&out, "%s", header[i].text);
  return out.data;
}

/* --- building and loading --- */

/* Whether kernels call products of an object. */
static bool calls(const char *source, size_t i) {
  static const char *const name[] = {"bb_dot", "bb_dot_panels", "bb_pack_block", "bb_bundle"};
  enum { NAMES = sizeof name / sizeof *name };
  char call[32];
  for (size_t k = 0; k < 3 && product[i].suffix[k]; k++)
    for (size_t n = 0; n < NAMES; n++) {
      snprintf(call, sizeof call, "%s%s", name[n], product[i].suffix[k]);
      if (strstr(source, call)) return true;
    }
  return false;
}

/* Their object comes into the folder: from the cache, or made, and kept there. */
static void bring_products(bb_context *ctx, bb_arena *arena, size_t i, const char *folder,
                           const char *cache) {
  const char *object = in_folder(arena, folder, product[i].object);
  const char *text = bb_arena_printf(arena, "%s\n%s", bb_cpu_identity(ctx, arena), product[i].text);
  const bb_cache_key key = {text, strlen(text), .folder = cache, .quiet = true};
  size_t size;
  const void *kept = bb_cache_image(ctx, arena, &key, &size);
  if (kept) {
    write_file(ctx, object, kept, size);
    return;
  }
  write_file(ctx, in_folder(arena, folder, product[i].file), product[i].text,
             strlen(product[i].text));
  run_compiler(ctx, arena, folder, "-c", product[i].object, 1, &product[i].file);
  bb_file made;
  if (bb_file_map(object, &made)) return;
  bb_cache_keep_image(ctx, arena, &key, made.bytes, made.size);
  bb_file_unmap(&made);
}

void bb_cpu_build(bb_context *ctx, const char *source, size_t length, const char *folder,
                  const char *cache) {
  bb_arena *arena = bb_scratch(ctx);
  const char *from[1 + PRODUCTS] = {"kernels.c"};
  uint32_t count = 1;
  for (size_t i = 0; i < HEADERS; i++)
    write_file(ctx, in_folder(arena, folder, header[i].name), header[i].text,
               strlen(header[i].text));
  write_file(ctx, in_folder(arena, folder, "kernels.c"), source, length);
  for (size_t i = 0; i < PRODUCTS; i++)
    if (calls(source, i)) {
      bring_products(ctx, arena, i, folder, cache);
      from[count++] = product[i].object;
    }
  run_compiler(ctx, arena, folder, "-shared", "kernels.so", count, from);
  bb_scratch_end(arena);
}

static void unload(void *module) {
  bb_cpu_unload(module);
}

void bb_cpu_compile(bb_context *ctx, const char *source, size_t length, const char *folder,
                    bb_cpu_module *module) {
  bb_arena *arena = bb_scratch(ctx);
  bb_cached code = {0};
  bb_defer(ctx, unload, module);
  if (folder) {
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
      bb_fail(ctx, BB_ERROR_IO, "%s: %s", folder, strerror(errno));
    bb_cpu_build(ctx, source, length, folder, NULL);
    code.path = in_folder(arena, folder, "kernels.so");
  } else {
    bb_cache_get(ctx, arena, NULL, source, length, &code);
  }
  module->handle = dlopen(code.path, RTLD_NOW | RTLD_LOCAL);
  if (!module->handle) bb_fail(ctx, BB_ERROR_IO, "kernels do not load: %s", dlerror());
  bb_cached_end(ctx, &code);
  bb_undefer(ctx, module);
  bb_scratch_end(arena);
}

void bb_cpu_unload(bb_cpu_module *module) {
  if (module->handle) dlclose(module->handle);
  *module = (bb_cpu_module){0};
}
