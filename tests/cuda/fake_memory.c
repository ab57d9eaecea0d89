/* fake_memory.c - memory of devices that are the tests': each allocation between pages that nobody may touch, and out of the
 * processor's reach itself but while the device works.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct block {
  struct block *next;
  int device;
  char *region, *memory;
  size_t length, bytes; /* length: of the pages that can be opened */
} block;

static block *blocks;
static long until_full = -1; /* allocations that work yet; -1: all */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((visibility("default"))) void fake_fill_after(long allocations);
void fake_fill_after(long allocations) {
  until_full = allocations;
}

__attribute__((visibility("default"))) long fake_allocations(void);
long fake_allocations(void) {
  long count = 0;
  pthread_mutex_lock(&lock);
  for (block *b = blocks; b; b = b->next) count++;
  pthread_mutex_unlock(&lock);
  return count;
}

static size_t page(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

void fake_reach(int device, int open) {
  pthread_mutex_lock(&lock);
  for (block *b = blocks; b; b = b->next)
    if (b->device == device)
      mprotect(b->region, b->length, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  pthread_mutex_unlock(&lock);
}

static block *find(const void *memory) {
  block *b = blocks;
  while (b && ((const char *)memory < b->memory || (const char *)memory >= b->memory + b->bytes))
    b = b->next;
  return b;
}

int fake_owner(const void *memory) {
  pthread_mutex_lock(&lock);
  block *b = find(memory);
  int device = b ? b->device : -1;
  pthread_mutex_unlock(&lock);
  return device;
}

/* The end of the allocation is that of its pages, as nearly as alignment lets it: what reads across is met by the next. */
BOTH(cuMemAlloc_v2, hipMalloc, (bb_gpu_pointer * memory, size_t bytes)) {
  enum { LINE = 256, OLD = 0xa5 };
  int device = fake_current();
  if (device < 0) return FAKE_CONTEXT;
  if (fake_capturing()) return FAKE_CAPTURED;
  if (fake_is("full") || !bytes || until_full == 0) return bytes ? FAKE_MEMORY : FAKE_INVALID;
  if (until_full > 0) until_full--;
  block *b = calloc(1, sizeof *b);
  size_t held = (bytes + LINE - 1) / LINE * LINE;
  b->length = (held + page() - 1) / page() * page();
  b->device = device;
  b->bytes = bytes;
  b->region = mmap(NULL, b->length + page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (b->region == MAP_FAILED) return free(b), FAKE_MEMORY;
  b->memory = b->region + b->length - held;
  mprotect(b->region, b->length, PROT_READ | PROT_WRITE);
  memset(b->region, OLD, b->length);
  mprotect(b->region, b->length, PROT_NONE);
  pthread_mutex_lock(&lock);
  b->next = blocks;
  blocks = b;
  pthread_mutex_unlock(&lock);
  *memory = (bb_gpu_pointer)(uintptr_t)b->memory;
  return 0;
}

BOTH(cuMemFree_v2, hipFree, (bb_gpu_pointer memory)) {
  int device = fake_owner((void *)(uintptr_t)memory);
  if (device < 0 || fake_current() < 0) return FAKE_INVALID;
  if (fake_capturing()) return FAKE_CAPTURED;
  int code = fake_finish(device);
  pthread_mutex_lock(&lock);
  block **link = &blocks;
  while ((uintptr_t)(*link)->memory != memory) link = &(*link)->next;
  block *gone = *link;
  *link = gone->next;
  pthread_mutex_unlock(&lock);
  munmap(gone->region, gone->length + page());
  free(gone);
  return code;
}

CALL cuPointerGetAttribute(void *value, int which, bb_gpu_pointer memory);
CALL cuPointerGetAttribute(void *value, int which, bb_gpu_pointer memory) {
  int device = fake_owner((void *)(uintptr_t)memory);
  if (device < 0 || (which != 2 && which != 9)) return FAKE_INVALID;
  *(int *)value = which == 2 ? 2 : device;
  return 0;
}
