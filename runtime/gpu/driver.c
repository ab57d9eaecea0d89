/* driver.c - a vendor's driver: found, loaded, and asked. */
#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 2 };

static const bb_gpu_api *const all[] = {&bb_gpu_cuda, &bb_gpu_hip};
enum { APIS = sizeof all / sizeof *all };

const bb_gpu_api *bb_gpu_find(const char *name) {
  for (uint32_t i = 0; name && i < APIS; i++)
    if (strcmp(all[i]->name, name) == 0) return all[i];
  return NULL;
}

const bb_gpu_api *bb_gpu_find_numbered(const char *name, uint32_t *number) {
  char *end;
  *number = 0;
  for (uint32_t i = 0; name && i < APIS; i++) {
    size_t length = strlen(all[i]->name);
    if (strncmp(name, all[i]->name, length) != 0) continue;
    if (name[length] == '\0') return all[i];
    if (name[length] != ':' || name[length + 1] < '0' || name[length + 1] > '9') continue;
    unsigned long told = strtoul(name + length + 1, &end, 10);
    if (*end || told > INT32_MAX) continue;
    *number = (uint32_t)told;
    return all[i];
  }
  return NULL;
}

const bb_gpu_api *bb_gpu_find_target(const char *target) {
  for (uint32_t i = 0; target && i < APIS; i++)
    if (all[i]->is_target(target)) return all[i];
  return NULL;
}

void bb_gpu_library_close(void *library) {
  if (library) dlclose(library);
}

void bb_gpu_library_find(bb_context *ctx, void *library, const bb_gpu_library *what,
                         const char *symbol, void *to) {
  bool optional = symbol && *symbol == '?';
  void *found = symbol ? dlsym(library, symbol + optional) : NULL;
  if (symbol && !found && !optional) {
    dlclose(library);
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%s is too old: it has no %s", what->title, symbol);
  }
  memcpy(to, &found, sizeof found);
}

/* A driver or a compiler that was loaded stays: what it allocates once for the process would be lost
 * with it, and again with the next. */
void *bb_gpu_library_open(bb_context *ctx, const bb_gpu_library *what) {
  const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  const char *own = getenv(what->variable);
  void *library = NULL;
  if (own && *own) library = dlopen(own, how);
  for (uint32_t i = 0; !(own && *own) && what->file[i] && !library; i++)
    library = dlopen(what->file[i], how);
  if (!library)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%s does not load (%s); %s may name it", what->missing,
            dlerror(), what->variable);
  return library;
}

void bb_gpu_driver_open(bb_context *ctx, const bb_gpu_api *api, bb_gpu_driver *d) {
  *d = (bb_gpu_driver){.api = api, .library = bb_gpu_library_open(ctx, &api->driver)};
#define X(name, cuda, hip, arguments)                                                              \
  bb_gpu_library_find(ctx, d->library, &api->driver, api->symbol[BB_GPU_CALL_##name], &d->name);
  BB_GPU_DRIVER(X)
#undef X
  int code = d->init(0), count = 0;
  if (code == 0) code = d->count(&count);
  if (code == 0 && count > 0) return;
  const char *text = code ? api->explain(d, code) : "it sees none";
  bb_arena *scratch = bb_scratch(ctx);
  const char *why = bb_arena_printf(scratch, "%s", text ? text : "unknown error");
  dlclose(d->library);
  d->library = NULL;
  bb_fail(ctx, BB_ERROR_UNSUPPORTED, "no %s device: %s", api->title, why);
}

bb_gpu_units bb_gpu_units_of(const bb_gpu_api *api, const char *target) {
  return api->units ? api->units(target) : BB_UNITS_NONE;
}

int bb_gpu_device(bb_context *ctx, const bb_gpu_driver *d, uint32_t number) {
  int count = 0, device = 0;
  bb_gpu_must(ctx, d, d->count(&count), "the number of devices");
  if (number >= (uint32_t)count)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no %s device %u: there are %d", d->api->title, number,
            count);
  bb_gpu_must(ctx, d, d->device(&device, (int)number), "a device");
  return device;
}

int bb_gpu_ask(const bb_gpu_driver *d, bb_gpu_fact fact, int device) {
  int value = 0, id = d->api->fact[fact];
  return id >= 0 && d->attribute(&value, id, device) == 0 ? value : 0;
}

void bb_gpu_must(bb_context *ctx, const bb_gpu_driver *d, int code, const char *what) {
  if (code == 0) return;
  const char *text = d->api->explain(d, code);
  bb_fail(ctx, code == OUT_OF_MEMORY ? BB_ERROR_MEMORY : BB_ERROR_IO, "%s, %s: %s (%d)",
          d->api->title, what, text ? text : "unknown error", code);
}
