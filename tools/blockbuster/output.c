/* output.c - files that appear only when complete, text for JSON, and Graphviz as a child process.
 */
#define _GNU_SOURCE
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool complain(const char *name) {
  fprintf(stderr, "blockbuster: %s: %s\n", name, strerror(errno));
  return false;
}

/* A file takes the place of what had its name, behind a link too; a device or a pipe, which must not
 * be replaced, is written to. */
static bool in_place(const char *name) {
  struct stat found;
  return stat(name, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

static bool open_temporary(output *out, const char *name) {
  out->name = realpath(name, NULL);
  if (!out->name) out->name = strdup(name); /* there is none yet */
  if (!out->name || asprintf(&out->temporary, "%s.XXXXXX", out->name) < 0) {
    out->temporary = NULL;
    return false;
  }
  int descriptor = mkstemp(out->temporary);
  if (descriptor < 0) return false;
  mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, 0666 & ~mask);
  out->file = fdopen(descriptor, "w");
  if (out->file) return true;
  close(descriptor);
  unlink(out->temporary);
  return false;
}

bool output_open(output *out, const char *name) {
  *out = (output){.file = stdout};
  if (!name) return true;
  if (in_place(name)) {
    out->name = strdup(name);
    out->file = fopen(name, "w");
  }
  if (out->name ? out->file != NULL : open_temporary(out, name)) return true;
  complain(name);
  free(out->temporary);
  free(out->name);
  return false;
}

bool output_close(output *out, bool good) {
  bool written = !ferror(out->file);
  written = (out->name ? fclose(out->file) : fflush(out->file)) == 0 && written;
  if (good && written && out->temporary && rename(out->temporary, out->name) != 0) written = false;
  if (!written && out->name) complain(out->name);
  if (out->temporary && !(good && written)) unlink(out->temporary);
  free(out->temporary);
  free(out->name);
  return good && written;
}

/* What fails is said once, by whoever closes the file, with its name. */
bool write_to_file(void *user, const char *bytes, size_t length) {
  fwrite(bytes, 1, length, user);
  return true;
}

bool has_ending(const char *name, const char *ending) {
  size_t length = strlen(name), tail = strlen(ending);
  return length > tail && strcmp(name + length - tail, ending) == 0;
}

char *with_ending(const char *name, const char *ending) {
  const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
  int length = dot && dot > (slash ? slash + 1 : name) ? (int)(dot - name) : (int)strlen(name);
  char *made;
  return asprintf(&made, "%.*s%s", length, name, ending) < 0 ? NULL : made;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The data file first, so that a text never names one that is not there; none if there are no data. */
static bb_status write_data(const bb_program *program, const char *name) {
  output out;
  if (!output_open(&out, name)) return BB_ERROR_IO;
  bb_status status = bb_program_write_data(program, write_to_file, out.file);
  bool wanted = status == BB_OK && (ferror(out.file) || ftell(out.file) > 0);
  bool kept = output_close(&out, wanted);
  return wanted && !kept ? BB_ERROR_IO : status;
}

bb_status write_program(const bb_program *program, const char *name) {
  output out;
  char *data = name ? with_ending(name, ".data") : NULL;
  bb_status status = name ? write_data(program, data) : BB_OK;
  if (status == BB_OK && !output_open(&out, name)) status = BB_ERROR_IO;
  if (status == BB_OK) {
    status = bb_program_write_text(program, data ? base_name(data) : NULL, write_to_file, out.file);
    if (!output_close(&out, status == BB_OK) && status == BB_OK) status = BB_ERROR_IO;
  }
  free(data);
  return status;
}

/* --- Graphviz --- */

static void become_graphviz(int from, const char *format, const char *name) {
  char type[16];
  snprintf(type, sizeof type, "-T%s", format);
  dup2(from, STDIN_FILENO);
  execlp("dot", "dot", type, "-o", name, (char *)NULL);
  fprintf(stderr, "blockbuster: Graphviz's dot could not be started: %s\n", strerror(errno));
  _exit(127);
}

/* dot reads a file, not a pipe: a child that dies early must not kill us. */
bool run_graphviz(const char *dot, size_t length, const char *format, const char *name) {
  FILE *text = tmpfile();
  char *temporary = NULL;
  bool good = false;
  int status;
  if (!text || asprintf(&temporary, "%s.part", name) < 0) {
    if (text) fclose(text);
    return complain(name);
  }
  if (fwrite(dot, 1, length, text) == length && fflush(text) == 0) {
    rewind(text);
    pid_t child = fork();
    if (child == 0) become_graphviz(fileno(text), format, temporary);
    if (child > 0 && waitpid(child, &status, 0) == child)
      good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  fclose(text);
  if (good && rename(temporary, name) != 0) good = complain(name);
  if (!good) {
    fprintf(stderr, "blockbuster: %s was not drawn\n", name);
    unlink(temporary);
  }
  free(temporary);
  return good;
}

void put_json_text(FILE *to, const char *text) {
  fputc('"', to);
  for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
    if (*s == '"' || *s == '\\')
      fprintf(to, "\\%c", *s);
    else if (*s < 0x20)
      fprintf(to, "\\u%04x", *s);
    else
      fputc(*s, to);
  }
  fputc('"', to);
}
