/* compile.c - C source to a loaded shared object, by the system's compiler. */
#include "compilers.h"
#include "cpu.h"
#include "device_library.h"

#include "../../lower/emit.h"
#include "../../lower/emit_c.h"
#include "../compile/kernel_cache.h"
#include "../model/safe_file.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The device tile library: what it is preprocessed from, and products are compiled from. */
static const struct {
  const char *name, *text;
} header[] = {{"bb_cpu.h", bb_device_cpu},
              {"bb_cpu_call.h", bb_device_cpu_call},
              {"bb_cpu_real.h", bb_device_cpu_real},
              {"bb_cpu_product.h", bb_device_cpu_product},
              {"bb_cpu_narrow.h", bb_device_cpu_narrow},
              {"bb_cpu_narrow_product.h", bb_device_cpu_narrow_product},
              {"bb_cpu_integer_product.h", bb_device_cpu_integer_product},
              {"bb_cpu_byte_product.h", bb_device_cpu_byte_product},
              {"bb_cpu_math.h", bb_device_cpu_math},
              {"bb_cpu_memory.h", bb_device_cpu_memory},
              {"bb_cpu_tiles.h", bb_device_cpu_tiles},
              {"bb_cpu_lanes.h", bb_device_cpu_lanes},
              {"bb_cpu_beside.h", bb_device_cpu_beside},
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
                "#define BB_PRODUCTS_F64\n#include \"bb_cpu.h\"\n"},
               {{"_i32("},
                "products_i32.o",
                "products_i32.c",
                "#define BB_PRODUCTS_I32\n#include \"bb_cpu.h\"\n"}};
enum { PRODUCTS = sizeof product / sizeof *product };

/* The library as it is taken apart (device_library.h): the same for all kernels of a processor. */
static const char library_file[] = "library.c", library_made[] = "library.i",
                  library_text[] = "#include \"bb_cpu.h\"\n", library_used[] = BB_CPU_LIBRARY;

/* Of a long source, compiled apart. */
static const char *const part_object[] = {"kernels_0.o", "kernels_1.o", "kernels_2.o",
                                          "kernels_3.o", "kernels_4.o", "kernels_5.o",
                                          "kernels_6.o", "kernels_7.o"};
enum { PARTS = sizeof part_object / sizeof *part_object, PART_BYTES = 16384 };

static const char *const passing[] = {library_file, library_made, library_used, "compiler.txt"};
static const char *const files[] = {"kernels.c", "kernels.so",    "plan.json",
                                    "data.bin",  "launches.json", "kernels.bin"};

bool bb_cpu_folder_has(const char *name) {
  for (size_t i = 0; i < HEADERS; i++)
    if (strcmp(header[i].name, name) == 0) return true;
  for (size_t i = 0; i < PARTS; i++)
    if (strcmp(part_object[i], name) == 0) return true;
  for (size_t i = 0; i < PRODUCTS; i++)
    if (strcmp(product[i].object, name) == 0 || strcmp(product[i].file, name) == 0) return true;
  for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
    if (strcmp(passing[i], name) == 0) return true;
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
  for (size_t i = 0; i < PARTS; i++) remove_file(folder, part_object[i]);
  for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) remove_file(folder, passing[i]);
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

/* --- what decides what is built --- */

const char *bb_cpu_identity(bb_context *ctx, bb_arena *arena) {
  bb_buffer out = {.arena = arena};
  bb_put(&out, "blockbuster %u\nparts %d %d\n", bb_version(), PARTS, PART_BYTES);
  bb_compilers_identify(ctx, &out);
  for (size_t i = 0; i < HEADERS; i++) bb_put(&out, "%s", header[i].text);
  return out.data;
}

/* --- building and loading --- */

/* Whether kernels call products of an object. */
static bool calls(const char *source, size_t i) {
  static const char *const name[] = {"bb_dot",          "bb_dot_panels", "bb_tiles",
                                     "bb_tiles_panels", "bb_tiles_with", "bb_tiles_ahead",
                                     "bb_pack_block",   "bb_bundle",     "bb_dot_rising"};
  enum { NAMES = sizeof name / sizeof *name };
  char call[32];
  for (size_t k = 0; k < 3 && product[i].suffix[k]; k++)
    for (size_t n = 0; n < NAMES; n++) {
      snprintf(call, sizeof call, "%s%s", name[n], product[i].suffix[k]);
      if (strstr(source, call)) return true;
    }
  return false;
}

/* What all kernels share, and comes into the folder. */
typedef struct shared {
  const char *folder, *cache;
  bool headers;        /* are there */
  bool made[PRODUCTS]; /* objects that were not there before */
} shared;

static bb_cache_key key_of(bb_compilers *c, const shared *p, const char *text) {
  text = bb_arena_printf(c->arena, "%s\n%s", bb_cpu_identity(c->ctx, c->arena), text);
  return (bb_cache_key){text, strlen(text), .folder = p->cache, .quiet = true};
}

static void bring_headers(bb_compilers *c, shared *p) {
  for (size_t i = 0; i < HEADERS && !p->headers; i++)
    write_file(c->ctx, in_folder(c->arena, p->folder, header[i].name), header[i].text,
               strlen(header[i].text));
  p->headers = true;
}

/* Preprocessed: from the cache, or made. */
static const char *bring_library(bb_compilers *c, shared *p, size_t *length) {
  const bb_cache_key key = key_of(c, p, library_text);
  const char *kept = bb_cache_image(c->ctx, c->arena, &key, length);
  if (kept) return kept;
  const char *file = in_folder(c->arena, p->folder, library_file);
  const char *made = in_folder(c->arena, p->folder, library_made);
  bb_file text;
  bring_headers(c, p);
  write_file(c->ctx, file, library_text, strlen(library_text));
  bb_compilers_start(c, (const char *const[]){"-E", "-dD", "-P", "-o", made, file, NULL});
  bb_compilers_finish(c);
  const char *problem = chmod(made, 0600) == 0 ? bb_file_map(made, &text) : strerror(errno);
  if (problem) bb_fail(c->ctx, BB_ERROR_IO, "%s: %s", made, problem);
  kept = bb_arena_text(c->arena, text.bytes, *length = text.size);
  bb_file_unmap(&text);
  bb_cache_keep_image(c->ctx, c->arena, &key, kept, *length);
  return kept;
}

/* From the cache, or made. */
static void bring_products(bb_compilers *c, shared *p, size_t i) {
  const char *object = in_folder(c->arena, p->folder, product[i].object);
  const bb_cache_key key = key_of(c, p, product[i].text);
  size_t size;
  const void *kept = bb_cache_image(c->ctx, c->arena, &key, &size);
  if (kept) {
    write_file(c->ctx, object, kept, size);
    return;
  }
  const char *file = in_folder(c->arena, p->folder, product[i].file);
  bring_headers(c, p);
  write_file(c->ctx, file, product[i].text, strlen(product[i].text));
  p->made[i] = true;
  bb_compilers_start(c, (const char *const[]){"-c", "-o", object, file, NULL});
}

static void keep_products(bb_compilers *c, const shared *p, size_t i) {
  const bb_cache_key key = key_of(c, p, product[i].text);
  bb_file made;
  if (bb_file_map(in_folder(c->arena, p->folder, product[i].object), &made)) return;
  bb_cache_keep_image(c->ctx, c->arena, &key, made.bytes, made.size);
  bb_file_unmap(&made);
}

/* The kernels with which parts begin, `begin[0]` = 0; gives how many parts there are. */
static uint32_t find_parts(const char *source, size_t length, uint32_t *begin) {
  size_t bytes = length / PARTS > PART_BYTES ? length / PARTS : PART_BYTES;
  const char *from = source, *at = source;
  uint32_t parts = 1, kernel = 0;
  begin[0] = 0;
  for (; (at = strstr(at, BB_CPU_PART)) != NULL; at += strlen(BB_CPU_PART), kernel++) {
    bool last = !strstr(at + 1, BB_CPU_PART); /* the table, which goes with the first */
    if (last || parts == PARTS || (size_t)(at - from) < bytes) continue;
    begin[parts++] = kernel;
    from = at;
  }
  return parts;
}

/* What is linked, in *linked: the source, or objects of its parts.  It is one where nothing else is being compiled. */
static uint32_t start_kernels(bb_compilers *c, const char *source, size_t length,
                              const char **linked) {
  uint32_t begin[PARTS], parts = find_parts(source, length, begin);
  const char *file = in_folder(c->arena, c->folder, "kernels.c");
  if (parts == 1 && c->count == 0) {
    linked[0] = file;
    return 1;
  }
  for (uint32_t i = 0; i < parts; i++) {
    const char *from = bb_arena_printf(c->arena, "-DBB_FROM=%u", begin[i]);
    const char *to =
        i + 1 < parts ? bb_arena_printf(c->arena, "-DBB_TO=%u", begin[i + 1]) : "-DBB_TO=INT32_MAX";
    linked[i] = in_folder(c->arena, c->folder, part_object[i]);
    bb_compilers_start(c, (const char *const[]){"-c", "-o", linked[i], from, to, file, NULL});
  }
  return parts;
}

void bb_cpu_build(bb_context *ctx, const char *source, size_t length, const char *folder,
                  const char *cache) {
  bb_arena *arena = bb_scratch(ctx);
  shared p = {.folder = folder, .cache = cache};
  const char *words[5 + PARTS + PRODUCTS] = {"-shared", "-o",
                                             in_folder(arena, folder, "kernels.so")};
  uint32_t count = 3;
  bb_compilers *c = bb_compilers_begin(ctx, arena, folder);
  size_t bytes;
  const char *library = bring_library(c, &p, &bytes);
  library = bb_cpu_library_for(arena, library, bytes, source);
  write_file(ctx, in_folder(arena, folder, library_used), library, strlen(library));
  write_file(ctx, in_folder(arena, folder, "kernels.c"), source, length);
  for (size_t i = 0; i < PRODUCTS; i++)
    if (calls(source, i)) bring_products(c, &p, i);
  count += start_kernels(c, source, length, words + count);
  for (size_t i = 0; i < PRODUCTS; i++)
    if (calls(source, i)) words[count++] = in_folder(arena, folder, product[i].object);
  bb_compilers_finish(c);
  for (size_t i = 0; i < PRODUCTS; i++)
    if (p.made[i]) keep_products(c, &p, i);
  words[count++] = "-lm";
  bb_compilers_start(c, words);
  bb_compilers_finish(c);
  bb_undefer(ctx, c);
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
