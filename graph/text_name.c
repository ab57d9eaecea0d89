/* text_name.c - plain and quoted names. */
#include "text_name.h"
#include "type.h"

#include <string.h>

bool bb_is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool bb_is_name_char(char c) {
  return bb_is_name_start(c) || (c >= '0' && c <= '9') || c == '.';
}

/* The words of the text form.  A tensor of such a name is quoted, so that a word never is one. */
static bool is_word(const char *name) {
  static const char *const words[] = {
      "_",         "blockbuster", "program",     "stage",    "serial",   "symbol",    "dim",
      "input",     "constant",    "local",       "output",   "root",     "graph",     "candidate",
      "snapshot",  "step",        "run",         "misc",     "map",      "collect",   "fold",
      "invariant", "reduce",      "argreduce",   "scan",     "view",     "join",      "file",
      "none",      "axis",        "coord",       "extent",   "let",      "in",        "nan",
      "inf",       "as",          "at",          "once",     "chosen",   "array",     "block",
      "partition", "fused",       "elementwise", "contract", "reshape",  "transpose", "broadcast",
      "slice",     "concat",      "level",       "row",      "col",      "yield",     "exclusive",
      "reverse",   "absent",      "monoid",      "safe",     "exps",     "axes",      "keep",
      "perm",      "by",          "length",      "start",    "dilation", "taps",      "windows",
      "fill",      "pad",
#define BB_EXPR(id, name, arity, cost, text) name,
#include "expr.def"
#undef BB_EXPR
#define BB_DTYPE(id, name, bytes, kind) name,
#include "dtype.def"
#undef BB_DTYPE
  };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i][0] == name[0] && strcmp(words[i], name) == 0) return true;
  return false;
}

static bool has_plain_letters(const char *name) {
  if (!bb_is_name_start(name[0])) return false;
  for (const char *at = name; *at; at++)
    if (!bb_is_name_char(*at)) return false;
  return true;
}

bool bb_name_is_plain(const char *name) {
  return has_plain_letters(name) && !is_word(name);
}

void bb_put_name(bb_buffer *out, const char *name) {
  if (bb_name_is_plain(name))
    bb_put_bytes(out, name, strlen(name));
  else
    bb_put_quoted(out, name);
}

void bb_put_label(bb_buffer *out, const char *name) {
  if (has_plain_letters(name))
    bb_put_bytes(out, name, strlen(name));
  else
    bb_put_quoted(out, name);
}

/* The bytes of the well-formed UTF-8 character at text, 0 if there is none. */
static size_t utf8_length(const unsigned char *text) {
  size_t length = text[0] >= 0xC2 && text[0] < 0xE0   ? 2
                  : text[0] >= 0xE0 && text[0] < 0xF0 ? 3
                  : text[0] >= 0xF0 && text[0] < 0xF5 ? 4
                                                      : 0;
  for (size_t i = 1; i < length; i++)
    if ((text[i] & 0xC0) != 0x80) return 0;
  bool overlong = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xF0 && text[1] < 0x90);
  bool surrogate = text[0] == 0xED && text[1] >= 0xA0;
  bool too_large = text[0] == 0xF4 && text[1] >= 0x90;
  bool control = text[0] == 0xC2 && text[1] < 0xA0;
  return overlong || surrogate || too_large || control ? 0 : length;
}

void bb_put_quoted(bb_buffer *out, const char *name) {
  bb_put(out, "\"");
  for (const unsigned char *at = (const unsigned char *)name; *at;) {
    size_t length = *at >= 0x20 && *at < 0x7F ? 1 : utf8_length(at);
    if (*at == '"' || *at == '\\')
      bb_put(out, "\\%c", *at);
    else if (*at == '\n' || *at == '\t')
      bb_put(out, *at == '\n' ? "\\n" : "\\t");
    else if (length)
      bb_put_bytes(out, (const char *)at, length);
    else
      bb_put(out, "\\x%02x", *at);
    at += length ? length : 1;
  }
  bb_put(out, "\"");
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* One escape after its backslash; the character, or -1. */
static int scan_escape(const char **at, const char *end) {
  if (*at == end) return -1;
  char c = *(*at)++;
  if (c == '"' || c == '\\') return c;
  if (c == 'n' || c == 't') return c == 'n' ? '\n' : '\t';
  if (c != 'x' || end - *at < 2) return -1;
  int high = hex_digit((*at)[0]), low = hex_digit((*at)[1]);
  *at += 2;
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

const char *bb_scan_quoted(const char **text, const char *end, bb_arena *arena, const char **name,
                           size_t *length) {
  const char *close = *text + 1;
  while (close < end && *close != '"' && *close != '\n') close += *close == '\\' ? 2 : 1;
  if (close >= end || *close != '"') return "a quoted name without its closing quote";
  char *copy = bb_arena_alloc(arena, (size_t)(close - *text));
  size_t n = 0;
  for (const char *at = *text + 1; at < close;) {
    int c = (unsigned char)*at++;
    if (c == '\\') c = scan_escape(&at, close);
    if (c < 0) return "an escape that is none of \\\" \\\\ \\n \\t \\xHH";
    if (c == 0) return "a name with a NUL byte";
    copy[n++] = (char)c;
  }
  copy[n] = '\0';
  *name = copy;
  *length = n;
  *text = close + 1;
  return NULL;
}

void bb_put_extent_name(bb_buffer *out, const char *name) {
  static const char word[] = "symbol(";
  for (const char *p = name; *p; p++) {
    const char *from = p + sizeof word - 1;
    bool called = (p == name || !bb_is_name_char(p[-1])) && strncmp(p, word, sizeof word - 1) == 0;
    size_t length = 0;
    while (called && bb_is_name_char(from[length])) length++;
    size_t less = strncmp(p, "+(-", 3) == 0 ? strspn(p + 3, "0123456789") : 0;
    if (length && from[length] == ')') {
      bb_put_bytes(out, from, length);
      p = from + length;
    } else if (less && p[3 + less] == ')') {
      bb_put_bytes(out, p + 2, less + 1);
      p += 3 + less;
    } else {
      bb_put_bytes(out, p, 1);
    }
  }
}
