/* fake_nvrtc.c - a compiler of kernels for the processor: what NVRTC's and hipRTC's calls do, by the system's C++ compiler.
 *
 * Kernels over simt.cuh become a shared object (host.hpp says what threads are), whose bytes are the
 * image.  FAKE_HOST names host.hpp, whose library is beside this one; FAKE_CXX the compiler, "c++" where it is not set.  What a process
 * has compiled it does not compile again.
 * FAKE_EDIT is a script of sed's that changes kernels over sm90.cuh before they are compiled: what is planted there has to be found out.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL __attribute__((visibility("default"))) int
/* One function, under the names that it has in NVRTC and in hipRTC. */
#define BOTH(cuda, hip, arguments)                                                                 \
  CALL cuda arguments;                                                                             \
  CALL hip arguments __attribute__((alias(#cuda)));                                                \
  CALL cuda arguments

/* A product and a sum are one instruction, rounded once, as compilers for GPUs have it, where the processor has such. */
#if defined __x86_64__
#define CONTRACTED "-mfma -ffp-contract=fast -fexpensive-optimizations"
#else
#define CONTRACTED "-ffp-contract=fast -fexpensive-optimizations"
#endif

typedef struct program {
  char folder[64];
  char *source, *image;
  size_t size;
} program;

/* Images, by what they were made from; those of this process. */
typedef struct made_image {
  struct made_image *next;
  char *source, *image;
  size_t size;
  bool wide;
} made_image;
static made_image *made_images;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *copy_of(const void *from, size_t size) {
  void *to = malloc(size + 1);
  if (to) memcpy(to, from, size);
  return to;
}
static int take_made(program *p, bool wide) {
  pthread_mutex_lock(&lock);
  made_image *m = made_images;
  while (m && (m->wide != wide || strcmp(m->source, p->source) != 0)) m = m->next;
  pthread_mutex_unlock(&lock);
  if (!m) return 0;
  p->image = copy_of(m->image, m->size);
  p->size = m->size;
  return p->image != NULL;
}
static void keep_made(const program *p, bool wide) {
  made_image *m = malloc(sizeof *m);
  if (!m) return;
  *m = (made_image){.source = copy_of(p->source, strlen(p->source) + 1),
                    .image = copy_of(p->image, p->size),
                    .size = p->size,
                    .wide = wide};
  pthread_mutex_lock(&lock);
  m->next = made_images;
  made_images = m;
  pthread_mutex_unlock(&lock);
}
static __attribute__((destructor)) void forget_made(void) {
  for (made_image *m = made_images, *next; m; m = next) {
    next = m->next;
    free(m->source);
    free(m->image);
    free(m);
  }
}

static int put(const program *p, const char *name, const char *text) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", p->folder, name);
  FILE *file = fopen(path, "w");
  if (!file) return 1;
  int bad = fputs(text, file) < 0;
  return fclose(file) != 0 || bad;
}

CALL nvrtcVersion(int *major, int *minor);
CALL nvrtcVersion(int *major, int *minor) {
  *major = *minor = 0;
  return 0;
}

BOTH(nvrtcCreateProgram, hiprtcCreateProgram,
     (void **made, const char *source, const char *name, int headers, const char *const *header,
      const char *const *header_name)) {
  program *p = calloc(1, sizeof *p);
  (void)name;
  if (!p) return 1;
  p->source = copy_of(source, strlen(source) + 1);
  strcpy(p->folder, "/tmp/fake-nvrtc-XXXXXX");
  int bad = !mkdtemp(p->folder) || put(p, "kernel.cpp", source);
  for (int i = 0; i < headers && !bad; i++) bad = put(p, header_name[i], header[i]);
  *made = p;
  return bad;
}

static void remove_all(const program *p) {
  char command[200];
  snprintf(command, sizeof command, "rm -rf %s", p->folder);
  if (system(command) != 0) fprintf(stderr, "%s stays\n", p->folder);
}

BOTH(nvrtcDestroyProgram, hiprtcDestroyProgram, (void **made)) {
  program *p = *made;
  if (!getenv("FAKE_KEEP")) remove_all(p);
  free(p->source);
  free(p->image);
  free(p);
  *made = NULL;
  return 0;
}

static int edit(const program *p) {
  const char *script = getenv("FAKE_EDIT");
  char command[1000];
  if (!script || !strstr(p->source, "\"sm90.cuh\"")) return 0;
  snprintf(command, sizeof command,
           "cd %s && sed -E -e '%s' kernel.cpp > edited && ! cmp -s kernel.cpp edited && mv edited "
           "kernel.cpp",
           p->folder, script);
  if (system(command) == 0) return 0;
  fprintf(stderr, "fake_nvrtc.c: %s changes nothing\n", script);
  return 1;
}

BOTH(nvrtcCompileProgram, hiprtcCompileProgram,
     (void *made, int options, const char *const *option)) {
  program *p = made;
  char command[1000], path[160];
  const char *cxx = getenv("FAKE_CXX"), *host = getenv("FAKE_HOST");
  bool wide = false; /* wavefronts of 64 */
  for (int i = 0; i < options; i++) wide |= strncmp(option[i], "--offload-arch=gfx9", 19) == 0;
  if (cxx == NULL && take_made(p, wide)) return 0;
  if (edit(p)) return 6;
  snprintf(command, sizeof command,
           "%s -std=c++17 -O1 " CONTRACTED
           " -w -fPIC -fvisibility=hidden -shared -I%s -DBB_LANES=%d "
           "-DBB_HOST_DEVICE='\"%s\"' -o %s/k.so %s/kernel.cpp " HOST_FOLDER "/libhost.a 2> %s/log",
           cxx ? cxx : "c++", p->folder, wide ? 64 : 32, host ? host : "host.hpp", p->folder,
           p->folder, p->folder);
  if (system(command) != 0) return 6;
  snprintf(path, sizeof path, "%s/k.so", p->folder);
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0) return 1;
  p->size = (size_t)ftell(file);
  rewind(file);
  p->image = malloc(p->size + 1);
  int good = p->image && fread(p->image, 1, p->size, file) == p->size;
  fclose(file);
  if (good) keep_made(p, wide);
  return !good;
}

static size_t log_of(const program *p, char *to, size_t most) {
  char path[160];
  snprintf(path, sizeof path, "%s/log", p->folder);
  FILE *file = fopen(path, "rb");
  size_t length = file ? fread(to, 1, most - 1, file) : 0;
  if (file) fclose(file);
  to[length] = '\0';
  return length + 1;
}

enum { LOG = 4000 };
BOTH(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize, (void *made, size_t *size)) {
  char log[LOG];
  *size = log_of(made, log, LOG);
  return 0;
}
BOTH(nvrtcGetProgramLog, hiprtcGetProgramLog, (void *made, char *log)) {
  char text[LOG];
  size_t size = log_of(made, text, LOG);
  memcpy(log, text, size);
  return 0;
}
BOTH(nvrtcGetCUBINSize, hiprtcGetCodeSize, (void *made, size_t *size)) {
  *size = ((program *)made)->size;
  return 0;
}
BOTH(nvrtcGetCUBIN, hiprtcGetCode, (void *made, char *image)) {
  memcpy(image, ((program *)made)->image, ((program *)made)->size);
  return 0;
}
