/* compile.c - C source to a loaded shared object, by the system's compiler. */
#include "cpu.h"

#include "../../lower/emit_c.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *const files[] = {"kernels.c",     "bb_cpu.h",   "bb_cpu_call.h",
                                    "bb_cpu_real.h", "kernels.so", "compiler.txt"};

static const char *in_folder(bb_arena *arena, const char *folder, const char *name) {
  return bb_arena_printf(arena, "%s/%s", folder, name);
}

static void write_file(bb_context *ctx, const char *path, const char *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite(bytes, 1, length, file) == length;
  if (file) good &= fclose(file) == 0;
  if (!good) bb_fail(ctx, BB_ERROR_IO, "%s: %s", path, strerror(errno));
}

static void remove_folder(char *folder) {
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, files[i]);
    if (length > 0 && (size_t)length < sizeof path) unlink(path);
  }
  rmdir(folder);
}

static char *temporary_folder(bb_context *ctx) {
  const char *base = getenv("TMPDIR");
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/blockbuster-XXXXXX", base && *base ? base : "/tmp");
  if (length < 0 || (size_t)length >= sizeof path || !mkdtemp(path))
    bb_fail(ctx, BB_ERROR_IO, "no temporary folder in %s: %s", base && *base ? base : "/tmp",
            strerror(errno));
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

static void run_compiler(bb_context *ctx, bb_arena *arena, const char *folder) {
  const char *cc = getenv("BLOCKBUSTER_CC");
  if (!cc || !*cc) cc = "cc";
  const char *log = in_folder(arena, folder, "compiler.txt");
  const char *arguments[] = {cc,
                             "-std=gnu17",
                             "-O3",
                             "-march=native",
                             "-fno-math-errno",
                             "-fno-trapping-math",
                             "-fPIC",
                             "-shared",
                             "-w",
                             "-o",
                             in_folder(arena, folder, "kernels.so"),
                             in_folder(arena, folder, "kernels.c"),
                             "-lm",
                             NULL};
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
    bb_fail(ctx, BB_ERROR_IO,
            "kernels need a C compiler: cannot run \"%s\" (%s); install one, name it in "
            "BLOCKBUSTER_CC, or interpret",
            cc, strerror(error ? error : ENOENT));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    bb_fail(ctx, BB_ERROR_INTERNAL, "the compiler \"%s\" refuses the kernels in %s:\n%s", cc,
            folder, what_it_said(arena, log));
}

typedef struct job {
  const char *source, *folder;
  size_t length;
  bb_cpu_module *module;
} job;

static void compile(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_arena *arena = bb_scratch(ctx);
  write_file(ctx, in_folder(arena, j->folder, "bb_cpu.h"), bb_device_cpu, strlen(bb_device_cpu));
  write_file(ctx, in_folder(arena, j->folder, "bb_cpu_call.h"), bb_device_cpu_call,
             strlen(bb_device_cpu_call));
  write_file(ctx, in_folder(arena, j->folder, "bb_cpu_real.h"), bb_device_cpu_real,
             strlen(bb_device_cpu_real));
  write_file(ctx, in_folder(arena, j->folder, "kernels.c"), j->source, j->length);
  run_compiler(ctx, arena, j->folder);
  j->module->handle = dlopen(in_folder(arena, j->folder, "kernels.so"), RTLD_NOW | RTLD_LOCAL);
  if (!j->module->handle) bb_fail(ctx, BB_ERROR_IO, "kernels do not load: %s", dlerror());
}

static void unload(void *module) {
  bb_cpu_unload(module);
}

void bb_cpu_compile(bb_context *ctx, const char *source, size_t length, const char *folder,
                    bb_cpu_module *module) {
  bb_defer(ctx, unload, module);
  if (folder) {
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
      bb_fail(ctx, BB_ERROR_IO, "%s: %s", folder, strerror(errno));
  } else {
    module->folder = temporary_folder(ctx);
  }
  compile(ctx, &(job){source, folder ? folder : module->folder, length, module});
  bb_undefer(ctx, module);
}

void bb_cpu_unload(bb_cpu_module *module) {
  if (module->handle) dlclose(module->handle);
  if (module->folder) remove_folder(module->folder);
  free(module->folder);
  *module = (bb_cpu_module){0};
}
