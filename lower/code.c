/* code.c - emitted source as text: what it names. */
#include "code.h"

#include <stdarg.h>
#include <string.h>

static bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static const char *line_of(const bb_buffer *code, const char *at) {
  while (at > code->data && at[-1] != '\n') at--;
  return at;
}

static bool is_in_comment(const bb_buffer *code, const char *at) {
  for (const char *c = line_of(code, at); c + 1 < at; c++)
    if (c[0] == '/' && c[1] == '/') return true;
  return false;
}

/* Where the name stands next, from `at` on; NULL: nowhere. */
static const char *find(const bb_buffer *code, const char *at, const char *name) {
  size_t length = strlen(name);
  for (; at && (at = strstr(at, name)) != NULL; at += length) {
    char before = at > code->data ? at[-1] : '\n';
    if (is_of_word(before) || before == '.' || is_of_word(at[length])) continue;
    if (!is_in_comment(code, at)) return at;
  }
  return NULL;
}

bool bb_code_names(const bb_buffer *code, const char *name) {
  return code->length && find(code, code->data, name);
}

/* Does the line do nothing but set the name that stands there? */
static bool only_sets(const bb_buffer *code, const char *at, size_t length) {
  const char *line = line_of(code, at);
  return line + strspn(line, " ") == at && strncmp(at + length, " = ", 3) == 0;
}

bool bb_code_reads(bb_buffer *code, const char *name) {
  const char *at = code->length ? code->data : NULL;
  size_t length = strlen(name);
  while (at && (at = find(code, at, name)) != NULL) {
    if (!only_sets(code, at, length)) return true;
    at += length;
  }
  for (at = code->data; at && (at = find(code, at, name)) != NULL;) {
    char *line = (char *)line_of(code, at);
    const char *next = strchr(at, '\n') + 1;
    code->length -= (size_t)(next - line);
    memmove(line, next, strlen(next) + 1);
    at = line;
  }
  return false;
}

void bb_code_declare(bb_buffer *code, const char *name, uint32_t indent, const char *format, ...) {
  if (!bb_code_names(code, name)) return;
  bb_buffer with = {.arena = code->arena};
  va_list arguments;
  bb_put(&with, "%*s", (int)(2 * indent), "");
  va_start(arguments, format);
  bb_put_vprintf(&with, format, arguments);
  va_end(arguments);
  bb_put(&with, "\n");
  bb_put_bytes(&with, code->data, code->length);
  *code = with;
}
