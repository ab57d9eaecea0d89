/* program_key.c - what decides what a program becomes, as text. */
#define _GNU_SOURCE
#include "program_key.h"

#include "../../graph/text.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const size_t analysed = 1 << 20; /* bytes of a constant: more are not looked at */

/* The file that this code is in; a program's own name is as it was called, by a name alone where a path was searched for it. */
static const char *file_of_build(void) {
  Dl_info info;
  bool told = dladdr((void *)bb_key_put_build, &info) && info.dli_fname;
  return told && strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe";
}

void bb_key_put_build(bb_buffer *out, const char *what) {
  struct stat file;
  bb_put(out, "%s %u", what, bb_version());
  if (stat(file_of_build(), &file) == 0)
    bb_put(out, " %lld %lld.%09ld", (long long)file.st_size, (long long)file.st_mtim.tv_sec,
           file.st_mtim.tv_nsec);
  bb_put(out, "\n");
}

static void put_constants(bb_buffer *out, const bb_program *program) {
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_tensor *tensor = &program->tensor[t];
    if (tensor->role != BB_TENSOR_CONSTANT || !tensor->data || tensor->bytes > analysed) continue;
    XXH128_hash_t hash = XXH3_128bits(tensor->data, tensor->bytes);
    bb_put(out, "%u %llx%016llx\n", t, (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
  }
}

void bb_key_put_program(bb_buffer *out, const bb_program *program) {
  put_constants(out, program);
  bb_text_print_without_proofs(out, program, "data");
}
