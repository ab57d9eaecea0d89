/* compilers.c - the system's C compiler as child processes, several at once. */
#include "compilers.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
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
#include <unistd.h>

extern char **environ;

/* The compiler's first lines. */
static const char *what_it_said(bb_arena *arena, const char *path) {
  char text[2000];
  FILE *file = fopen(path, "rb");
  size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  while (length && text[length - 1] == '\n') length--;
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

static _Noreturn void refuse_room(bb_context *ctx, const char *folder, const char *room) {
  struct rlimit limit;
  const char *cc = compiler();
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bb_fail(ctx, BB_ERROR_IO,
            "the compiler \"%s\" could not write the kernels in %s: %s (files that this process "
            "makes are limited to %llu bytes: ulimit -f)",
            cc, folder, room, (unsigned long long)limit.rlim_cur);
  bb_fail(ctx, BB_ERROR_IO, "the compiler \"%s\" could not write the kernels in %s: %s", cc, folder,
          room);
}

/* --- how they end --- */

/* What is wrong with one that has ended, in words; NULL: nothing. */
static const char *fault_of(bb_compilers *c, uint32_t which, bool ended, int status) {
  struct stat made;
  if (ended && WIFSIGNALED(status))
    return bb_arena_printf(c->arena, "was ended by signal %d (%s)", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
  if (ended && WEXITSTATUS(status))
    return bb_arena_printf(c->arena, "exited with status %d", WEXITSTATUS(status));
  if (stat(c->output[which], &made) == 0 && made.st_size) return NULL;
  return "wrote no file, or an empty one";
}

/* The last to be started that failed. */
typedef struct failure {
  const char *call, *fault; /* NULL: none failed */
  bool absent;              /* the compiler is not there */
} failure;

/* Waits for all.  In a program that ignores SIGCHLD, or waits for any child itself, their exit status is lost: there what
 * they wrote has to tell, as compilers take away what is not whole. */
static failure wait_for(bb_compilers *c) {
  failure f = {0};
  while (c->count) {
    int status = 0;
    uint32_t which = --c->count;
    pid_t ended = waitpid(c->pid[which], &status, 0);
    while (ended < 0 && errno == EINTR) ended = waitpid(c->pid[which], &status, 0);
    const char *fault = fault_of(c, which, ended >= 0, status);
    if (ended >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127) f.absent = true;
    if (fault && !f.fault) f.call = c->call[which], f.fault = fault;
  }
  return f;
}

/* Nobody writes into a folder that is being taken away. */
static void abandon(void *of) {
  wait_for(of);
}

bb_compilers *bb_compilers_begin(bb_context *ctx, bb_arena *arena, const char *folder) {
  bb_compilers *c = BB_NEW(arena, bb_compilers, 1);
  *c = (bb_compilers){.ctx = ctx, .arena = arena, .folder = folder};
  c->log = bb_arena_printf(arena, "%s/compiler.txt", folder);
  unlink(c->log);
  bb_defer(ctx, abandon, c);
  return c;
}

void bb_compilers_start(bb_compilers *c, const char *const *words) {
  const char *cc = compiler();
  uint32_t count = 0;
  for (; words[count]; count++)
    if (strcmp(words[count], "-o") == 0) c->output[c->count] = words[count + 1];
  unlink(c->output[c->count]);
  const char **arguments = BB_NEW(c->arena, const char *, FLAGS + count + 2), **more = arguments;
  *more++ = cc;
  for (size_t i = 0; i < FLAGS; i++) *more++ = flags[i];
  for (uint32_t i = 0; i < count; i++) *more++ = words[i];
  bb_buffer call = {.arena = c->arena};
  for (more = arguments; *more; more++) bb_put(&call, more == arguments ? "%s" : " %s", *more);
  c->call[c->count] = call.data;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, c->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  int error =
      posix_spawnp(&c->pid[c->count], cc, &actions, NULL, (char *const *)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error)
    c->error = error;
  else
    c->count++;
}

/* Can it make an object of next to nothing, called in the same way?  Else it is no fault of the kernels. */
static bool works(bb_compilers *c) {
  const char *source = bb_arena_printf(c->arena, "%s/trial.c", c->folder),
             *made = bb_arena_printf(c->arena, "%s/trial.so", c->folder);
  FILE *file = fopen(source, "w");
  if (!file) return false;
  fputs("int bb_trial;\n", file);
  fclose(file);
  bb_compilers_start(c, (const char *const[]){"-shared", "-o", made, source, "-lm", NULL});
  bool good = !wait_for(c).fault && !c->error;
  unlink(source);
  unlink(made);
  return good;
}

void bb_compilers_finish(bb_compilers *c) {
  failure f = wait_for(c);
  if (c->error || f.absent) refuse_compiler(c->ctx, compiler(), c->error ? c->error : ENOENT);
  if (!f.fault) return;
  const char *said = what_it_said(c->arena, c->log), *room = lacking_room(said);
  if (!room) room = lacking_room(f.fault);
  if (room) refuse_room(c->ctx, c->folder, room);
  if (!*said) said = "it said nothing";
  if (works(c))
    bb_fail(c->ctx, BB_ERROR_INTERNAL, "the compiler \"%s\" refuses the kernels: it %s\n%s\n%s",
            compiler(), f.fault, f.call, said);
  bb_fail(
      c->ctx, BB_ERROR_UNSUPPORTED,
      "the compiler \"%s\" (cc, or what BLOCKBUSTER_CC names) compiles nothing here: it %s\n%s\n%s",
      compiler(), f.fault, f.call, said);
}

/* --- what decides what they make --- */

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

void bb_compilers_identify(bb_context *ctx, bb_buffer *out) {
  struct stat file;
  char path[4096];
  const char *cc = compiler();
  if (!find_compiler(cc, path, sizeof path, &file)) refuse_compiler(ctx, cc, ENOENT);
  bb_put(out, "compiler %s %lld %lld.%09ld\nflags", path, (long long)file.st_size,
         (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  for (size_t i = 0; i < FLAGS; i++) bb_put(out, " %s", flags[i]);
  bb_put(out, "\n");
  put_processor(out);
}
