/* kernel_cache.c - the disk cache of compiled kernels. */
#include "kernel_cache.h"

#include "../cpu/cpu.h"
#include "../model/safe_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { NAME = 33, DEFAULT_MEGABYTES = 512, WAIT_SECONDS = 120 };

/* Behind the shared object: the key's text, then this. */
typedef struct trailer {
  char magic[16];
  uint64_t key_bytes;
  XXH128_canonical_t sum; /* of all before it */
} trailer;

static const char magic[16] = "blockbuster so 1";

typedef struct cache {
  bb_context *ctx;
  bb_arena *arena;
  const char *folder;
  bb_buffer key;
  char name[NAME];
  const char *source;
  size_t length;
  bool quiet;
} cache;

static const char *path_of(cache *c, const char *name, const char *ending) {
  return bb_arena_printf(c->arena, "%s/%s%s", c->folder, name, ending);
}

/* --- the folder --- */

static const char *default_folder(bb_arena *arena) {
  const char *own = getenv("BLOCKBUSTER_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
  const char *home = getenv("HOME");
  if (own) return own;
  if (xdg && *xdg == '/') return bb_arena_printf(arena, "%s/blockbuster", xdg);
  return home && *home == '/' ? bb_arena_printf(arena, "%s/.cache/blockbuster", home) : "";
}

static bool make_folders(bb_arena *arena, const char *folder) {
  char *path = bb_arena_text(arena, folder, strlen(folder));
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(path, 0700) != 0 && errno != EEXIST && access(path, F_OK) != 0) return false;
    *slash = '/';
  }
  return mkdir(path, 0700) == 0 || errno == EEXIST || access(path, F_OK) == 0;
}

/* Whether entries may be read from the folder, and what is wrong if not. */
static bool folder_is_good(cache *c) {
  struct stat status;
  if (!*c->folder) return false;
  if (!make_folders(c->arena, c->folder) || stat(c->folder, &status) != 0) {
    if (!c->quiet)
      bb_log(c->ctx, BB_LOG_WARNING, "cache %s is not used: %s", c->folder, strerror(errno));
    return false;
  }
  const char *problem = S_ISDIR(status.st_mode) ? bb_unsafe(&status) : "it is no folder";
  if (problem && !c->quiet)
    bb_log(c->ctx, BB_LOG_WARNING, "cache %s is refused: %s", c->folder, problem);
  return !problem;
}

/* --- entries --- */

static void name_by_key(cache *c) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(c->key.data, c->key.length));
  for (size_t i = 0; i < sizeof canonical.digest; i++)
    snprintf(c->name + 2 * i, 3, "%02x", canonical.digest[i]);
}

static void make_key(cache *c) {
  bb_put(&c->key, "%s", bb_cpu_identity(c->ctx, c->arena));
  bb_put_bytes(&c->key, c->source, c->length);
  name_by_key(c);
}

static bool is_entry(const cache *c, const char *bytes, size_t size) {
  trailer end;
  if (size < sizeof end) return false;
  memcpy(&end, bytes + size - sizeof end, sizeof end);
  XXH128_canonical_t sum;
  size_t before = size - sizeof end;
  if (memcmp(end.magic, magic, sizeof magic) != 0 || end.key_bytes != c->key.length ||
      end.key_bytes > before)
    return false;
  XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes, before));
  return memcmp(&sum, &end.sum, sizeof sum) == 0 &&
         memcmp(bytes + before - c->key.length, c->key.data, c->key.length) == 0;
}

/* Maps a good entry and marks it as used now; a bad one is removed. */
static bool open_entry(cache *c, const char *ending, bb_file *file) {
  const char *path = path_of(c, c->name, ending);
  const char *problem = bb_file_map(path, file);
  if (problem) {
    if (errno != ENOENT) bb_log(c->ctx, BB_LOG_WARNING, "cache entry %s: %s", path, problem);
    return false;
  }
  bool good = is_entry(c, file->bytes, file->size);
  if (good) {
    utimensat(AT_FDCWD, path, NULL, 0);
    return true;
  }
  bb_file_unmap(file);
  if (unlink(path) == 0)
    bb_log(c->ctx, BB_LOG_WARNING, "cache entry %s was damaged: it is made anew", path);
  return false;
}

static bool find_entry(cache *c) {
  bb_file file;
  if (!open_entry(c, ".so", &file)) return false;
  bb_file_unmap(&file);
  return true;
}

/* Appends the key and the checksum to the shared object, then gives it its name. */
static bool keep_entry(cache *c, const char *folder) {
  const char *built = bb_arena_printf(c->arena, "%s/kernels.so", folder);
  bb_file file;
  if (chmod(built, 0600) != 0 || bb_file_map(built, &file)) return false; /* whatever the umask */
  trailer end = {.key_bytes = c->key.length};
  memcpy(end.magic, magic, sizeof magic);
  XXH3_state_t *state = XXH3_createState();
  if (state) {
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, file.bytes, file.size);
    XXH3_128bits_update(state, c->key.data, c->key.length);
    XXH128_canonicalFromHash(&end.sum, XXH3_128bits_digest(state));
  }
  bb_file_unmap(&file);
  bool good = state != NULL;
  XXH3_freeState(state);
  FILE *out = good ? fopen(built, "ab") : NULL;
  good = out && fwrite(c->key.data, 1, c->key.length, out) == c->key.length &&
         fwrite(&end, 1, sizeof end, out) == sizeof end;
  if (out) good &= fclose(out) == 0;
  return good && rename(built, path_of(c, c->name, ".so")) == 0;
}

/* --- the bound on its size --- */

typedef struct entry {
  char name[NAME + 4];
  off_t size;
  struct timespec used;
} entry;

static int by_age(const void *a, const void *b) {
  const struct timespec *x = &((const entry *)a)->used, *y = &((const entry *)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static off_t bound(void) {
  const char *text = getenv("BLOCKBUSTER_CACHE_MB");
  char *end;
  long megabytes = text ? strtol(text, &end, 10) : 0;
  return (off_t)(text && *text && !*end && megabytes >= 0 ? megabytes : DEFAULT_MEGABYTES) << 20;
}

static bool ends_with(const char *name, const char *ending) {
  size_t length = strlen(name), tail = strlen(ending);
  return length >= tail && strcmp(name + length - tail, ending) == 0;
}

/* Removes the entries that were used least lately until the rest is within the bound; the one that
 * was just made stays. */
static void limit_size(cache *c) {
  uint32_t count = 0, capacity = 0;
  entry *list = NULL;
  off_t total = 0, most = bound();
  DIR *dir = opendir(c->folder);
  for (struct dirent *d; dir && (d = readdir(dir));) {
    struct stat status;
    if (strncmp(d->d_name, "making-", 7) == 0) bb_cpu_remove_stale(path_of(c, d->d_name, ""));
    if (!(ends_with(d->d_name, ".so") || ends_with(d->d_name, ".bin")) ||
        strlen(d->d_name) >= sizeof list->name ||
        fstatat(dirfd(dir), d->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    BB_GROW(c->arena, list, capacity, count + 1u);
    list[count] = (entry){.size = status.st_size, .used = status.st_mtim};
    memcpy(list[count++].name, d->d_name, strlen(d->d_name) + 1);
    total += status.st_size;
  }
  if (count) qsort(list, count, sizeof *list, by_age);
  for (uint32_t i = 0; i < count && total > most; i++) {
    if (strncmp(list[i].name, c->name, NAME - 1) == 0) continue;
    if (unlinkat(dirfd(dir), list[i].name, 0) == 0) total -= list[i].size;
  }
  if (dir) closedir(dir);
}

/* --- one compilation for all who want it --- */

static bool same_file(int file, const char *path) {
  struct stat held, named;
  return fstat(file, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

/* -1: the folder cannot be written, or the one that has the lock takes too long.  A process that
 * dies loses its lock; one that is done removes the file, so that who waited looks again. */
static int lock(cache *c, const char *path) {
  for (uint32_t waited = 0; waited < WAIT_SECONDS * 100;) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return -1;
    while (flock(file, LOCK_EX | LOCK_NB) != 0 && waited < WAIT_SECONDS * 100) {
      nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
      waited++;
    }
    if (same_file(file, path)) return file;
    close(file);
  }
  bb_log(c->ctx, BB_LOG_WARNING, "%s: another process takes long to compile", path);
  return -1;
}

typedef struct lock_held {
  const char *path;
  int file;
} lock_held;

static void unlock(void *argument) {
  lock_held *held = argument;
  unlink(held->path);
  close(held->file);
}

static void remove_cleanup(void *folder) {
  bb_cpu_remove_folder(folder);
  free(folder);
}

typedef struct building {
  cache *c;
  bool kept;
} building;

/* In a folder inside the cache, which is taken away whatever happens. */
static void build_entry(bb_context *ctx, void *argument) {
  building *b = argument;
  char *folder = strdup(path_of(b->c, "making-XXXXXX", ""));
  if (!folder || !mkdtemp(folder)) {
    free(folder);
    bb_fail(ctx, BB_ERROR_IO, "%s: %s", b->c->folder, strerror(errno));
  }
  bb_defer(ctx, remove_cleanup, folder);
  bb_cpu_build(ctx, b->c->source, b->c->length, folder, b->c->folder);
  b->kept = keep_entry(b->c, folder);
  if (!b->kept) bb_fail(ctx, BB_ERROR_IO, "%s: %s", b->c->folder, strerror(errno));
  bb_undefer(ctx, folder);
  remove_cleanup(folder);
  limit_size(b->c);
}

/* False: nothing could be kept. */
static bool make_entry(cache *c, bool *hit) {
  building b = {.c = c};
  lock_held held = {.path = path_of(c, c->name, ".lock")};
  held.file = lock(c, held.path);
  if (held.file < 0) {
    bb_log(c->ctx, BB_LOG_WARNING, "cache %s is not used: %s", c->folder, strerror(errno));
    return false;
  }
  *hit = find_entry(c);
  if (!*hit) {
    bb_status status = bb_protect(c->ctx, build_entry, &b);
    if (status != BB_OK && status != BB_ERROR_IO) { /* elsewhere it would fail as well */
      unlock(&held);
      if (status == BB_ERROR_MEMORY) bb_fail(c->ctx, status, "out of memory");
      bb_fail_again(c->ctx, status);
    }
    if (status != BB_OK) {
      bb_log(c->ctx, BB_LOG_WARNING, "cache %s is not used: %s", c->folder,
             bb_context_message(c->ctx));
      c->ctx->status = BB_OK;
    }
  }
  unlock(&held);
  return *hit || b.kept;
}

void bb_cache_get(bb_context *ctx, bb_arena *arena, const char *folder, const char *source,
                  size_t length, bb_cached *cached) {
  cache c = {.ctx = ctx, .arena = arena, .source = source, .length = length};
  c.key.arena = arena;
  c.folder = folder ? folder : default_folder(arena);
  *cached = (bb_cached){0};
  make_key(&c);
  if (folder_is_good(&c)) {
    cached->hit = find_entry(&c);
    if (cached->hit || make_entry(&c, &cached->hit)) {
      cached->path = path_of(&c, c.name, ".so");
      return;
    }
  }
  cached->temporary = bb_cpu_temporary_folder(ctx);
  bb_defer(ctx, remove_cleanup, cached->temporary);
  bb_cpu_build(ctx, source, length, cached->temporary, c.folder);
  cached->path = bb_arena_printf(arena, "%s/kernels.so", cached->temporary);
}

/* --- images: bytes that need no file to be loaded from --- */

static bool begin_image(cache *c, bb_context *ctx, bb_arena *arena, const bb_cache_key *key) {
  *c = (cache){.ctx = ctx, .arena = arena, .key = {.arena = arena}, .quiet = key->quiet};
  bb_put_bytes(&c->key, key->text, key->length);
  c->folder = key->folder ? key->folder : default_folder(arena);
  name_by_key(c);
  return folder_is_good(c);
}

const void *bb_cache_image(bb_context *ctx, bb_arena *arena, const bb_cache_key *key,
                           size_t *size) {
  cache c;
  bb_file file;
  if (!begin_image(&c, ctx, arena, key) || !open_entry(&c, ".bin", &file)) return NULL;
  *size = file.size - sizeof(trailer) - c.key.length;
  char *image = bb_arena_alloc(arena, *size + 1);
  memcpy(image, file.bytes, *size);
  bb_file_unmap(&file);
  return image;
}

/* Under a name of its own first, so that nobody sees a part. */
void bb_cache_keep_image(bb_context *ctx, bb_arena *arena, const bb_cache_key *key,
                         const void *image, size_t size) {
  cache c;
  if (!begin_image(&c, ctx, arena, key)) return;
  bb_buffer all = {.arena = arena};
  trailer end = {.key_bytes = c.key.length};
  bb_put_bytes(&all, image, size);
  bb_put_bytes(&all, c.key.data, c.key.length);
  memcpy(end.magic, magic, sizeof magic);
  XXH128_canonicalFromHash(&end.sum, XXH3_128bits(all.data, all.length));
  bb_put_bytes(&all, (const char *)&end, sizeof end);
  char *path = bb_arena_printf(arena, "%s/making-XXXXXX", c.folder);
  int file = mkstemp(path);
  FILE *out = file < 0 ? NULL : fdopen(file, "wb");
  if (file >= 0 && !out) close(file);
  bool good = out && fwrite(all.data, 1, all.length, out) == all.length;
  if (out) good &= fclose(out) == 0;
  if (!good || rename(path, path_of(&c, c.name, ".bin")) != 0) {
    if (!c.quiet)
      bb_log(ctx, BB_LOG_WARNING, "cache %s is not used: %s", c.folder, strerror(errno));
    if (file >= 0) unlink(path);
    return;
  }
  limit_size(&c);
}

void bb_cached_end(bb_context *ctx, bb_cached *cached) {
  if (!cached->temporary) return;
  bb_undefer(ctx, cached->temporary);
  remove_cleanup(cached->temporary);
  cached->temporary = NULL;
}
