/* fake_nvrtc.c - a compiler of kernels for the processor: what NVRTC's and hipRTC's calls do, by the system's C++ compiler.
 *
 * Kernels over simt.cuh become a shared object (host.hpp says what threads are), whose bytes are the
 * image.  FAKE_HOST names host.hpp; FAKE_CXX the compiler, "c++" where it is not set.
 */
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

typedef struct program {
  char folder[64];
  char *image;
  size_t size;
} program;

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
  free(p->image);
  free(p);
  *made = NULL;
  return 0;
}

BOTH(nvrtcCompileProgram, hiprtcCompileProgram,
     (void *made, int options, const char *const *option)) {
  program *p = made;
  char command[1000], path[160];
  const char *cxx = getenv("FAKE_CXX"), *host = getenv("FAKE_HOST");
  bool wide = false; /* wavefronts of 64 */
  for (int i = 0; i < options; i++) wide |= strncmp(option[i], "--offload-arch=gfx9", 19) == 0;
  snprintf(command, sizeof command,
           "%s -x c++ -std=c++17 -O1 -w -fPIC -shared -I%s -DBB_LANES=%d -DBB_HOST_DEVICE='\"%s\"' "
           "-o %s/k.so "
           "%s/kernel.cpp "
           "2> %s/log",
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
