/* json.c - reads JSON (RFC 8259), writes its strings. */
#include "json.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64 };

typedef struct reader {
  bb_arena *arena;
  const char *start, *at, *end;
  const char *error;
  uint32_t depth;
} reader;

static bool wrong(reader *r, const char *error) {
  if (!r->error) r->error = error;
  return false;
}

static void skip_space(reader *r) {
  while (r->at < r->end && memchr(" \t\r\n", *r->at, 4)) r->at++;
}

static bool take(reader *r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c) return false;
  r->at++;
  return true;
}

/* --- strings --- */

static bool read_hex(reader *r, uint32_t *code) {
  *code = 0;
  for (int i = 0; i < 4; i++) {
    if (r->at == r->end) return wrong(r, "a string without end");
    char c = *r->at++;
    uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                            : 16;
    if (digit == 16) return wrong(r, "no hexadecimal digit");
    *code = *code * 16 + digit;
  }
  return true;
}

static char *put_utf8(char *out, uint32_t code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xc0 | code >> 6);
    *out++ = (char)(0x80 | (code & 63));
  } else if (code < 0x10000) {
    *out++ = (char)(0xe0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 63));
    *out++ = (char)(0x80 | (code & 63));
  } else {
    *out++ = (char)(0xf0 | code >> 18);
    *out++ = (char)(0x80 | (code >> 12 & 63));
    *out++ = (char)(0x80 | (code >> 6 & 63));
    *out++ = (char)(0x80 | (code & 63));
  }
  return out;
}

static bool read_unicode(reader *r, char **out) {
  uint32_t code, low;
  if (!read_hex(r, &code)) return false;
  if (code >= 0xdc80 && code <= 0xdcff) { /* a byte that stands for itself */
    *(*out)++ = (char)(code - 0xdc00);
    return true;
  }
  if (code >= 0xd800 && code < 0xdc00) {
    if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
      return wrong(r, "half of a surrogate pair");
    r->at += 2;
    if (!read_hex(r, &low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return wrong(r, "half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    return wrong(r, "half of a surrogate pair");
  }
  if (code == 0) return wrong(r, "a NUL in a string");
  *out = put_utf8(*out, code);
  return true;
}

static bool read_escape(reader *r, char **out) {
  static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
  if (r->at == r->end) return wrong(r, "a string without end");
  char c = *r->at++;
  if (c == 'u') return read_unicode(r, out);
  const char *found = c ? strchr(letters, c) : NULL;
  if (!found) return wrong(r, "no such escape");
  *(*out)++ = bytes[found - letters];
  return true;
}

/* No escape is shorter than what it stands for. */
static const char *read_string(reader *r) {
  const char *close = r->at;
  while (close < r->end && *close != '"') close += 1 + (*close == '\\');
  if (close >= r->end) {
    wrong(r, "a string without end");
    return NULL;
  }
  char *text = bb_arena_alloc(r->arena, (size_t)(close - r->at) + 1), *out = text;
  while (r->at < close) {
    unsigned char c = (unsigned char)*r->at++;
    if (c < 32) {
      wrong(r, "a control character in a string");
      return NULL;
    }
    if (c != '\\')
      *out++ = (char)c;
    else if (!read_escape(r, &out))
      return NULL;
  }
  *out = 0;
  r->at++;
  return text;
}

/* --- values --- */

static bool read_value(reader *r, bb_json *value);

static bool read_members(reader *r, bb_json *value, char close) {
  const bb_json **link = &value->first;
  if (++r->depth > DEPTH) return wrong(r, "too many levels");
  if (!take(r, close)) {
    do {
      bb_json *member = BB_NEW(r->arena, bb_json, 1);
      if (value->kind == BB_JSON_OBJECT) {
        if (!take(r, '"')) return wrong(r, "a name is missing");
        member->name = read_string(r);
        if (!member->name) return false;
        if (!take(r, ':')) return wrong(r, "a colon is missing");
      }
      if (!read_value(r, member)) return false;
      *link = member;
      link = &member->next;
      value->count++;
    } while (take(r, ','));
    if (!take(r, close)) return wrong(r, "a comma or a closing bracket is missing");
  }
  r->depth--;
  return true;
}

static bool read_number(reader *r, bb_json *value) {
  size_t length = 0;
  while (r->at + length < r->end && strchr("+-.0123456789eE", r->at[length]) && r->at[length])
    length++;
  char *end;
  value->kind = BB_JSON_NUMBER;
  value->text = bb_arena_text(r->arena, r->at, length);
  value->number = strtod(value->text, &end);
  if (!length || *end) return wrong(r, "no value");
  r->at += length;
  return true;
}

static bool read_word(reader *r, const char *word, bb_json_kind kind, double number,
                      bb_json *value) {
  size_t length = strlen(word);
  if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
  r->at += length;
  value->kind = kind;
  value->number = number;
  return true;
}

static bool read_value(reader *r, bb_json *value) {
  if (take(r, '{')) {
    value->kind = BB_JSON_OBJECT;
    return read_members(r, value, '}');
  }
  if (take(r, '[')) {
    value->kind = BB_JSON_LIST;
    return read_members(r, value, ']');
  }
  if (take(r, '"')) {
    value->kind = BB_JSON_TEXT;
    value->text = read_string(r);
    return value->text != NULL;
  }
  return read_word(r, "null", BB_JSON_NULL, 0, value) ||
         read_word(r, "true", BB_JSON_BOOL, 1, value) ||
         read_word(r, "false", BB_JSON_BOOL, 0, value) || read_number(r, value);
}

const bb_json *bb_json_parse(bb_arena *arena, const char *text, size_t length, const char **error,
                             size_t *at) {
  reader r = {.arena = arena, .start = text, .at = text, .end = text + length};
  bb_json *value = BB_NEW(arena, bb_json, 1);
  bool good = read_value(&r, value);
  skip_space(&r);
  if (good && r.at != r.end) good = wrong(&r, "more after the end");
  *error = r.error;
  *at = (size_t)(r.at - r.start);
  return good ? value : NULL;
}

const bb_json *bb_json_get(const bb_json *object, const char *name) {
  if (!object || object->kind != BB_JSON_OBJECT) return NULL;
  for (const bb_json *member = object->first; member; member = member->next)
    if (strcmp(member->name, name) == 0) return member;
  return NULL;
}

/* --- members that have to be there --- */

_Noreturn void bb_json_refuse(const bb_json_source *source, const char *name) {
  bb_fail(source->ctx, BB_ERROR_INPUT, "%s: \"%s\" is missing or wrong", source->what, name);
}

const bb_json *bb_json_member(const bb_json_source *source, const bb_json *object, const char *name,
                              bb_json_kind kind) {
  const bb_json *found = bb_json_get(object, name);
  if (!found || found->kind != kind) bb_json_refuse(source, name);
  return found;
}

int64_t bb_json_whole(const bb_json_source *source, const bb_json *number, const char *name,
                      int64_t least, int64_t most) {
  if (number && number->kind == BB_JSON_NUMBER) {
    char *end;
    long long value = strtoll(number->text, &end, 10);
    if (!*end && value >= least && value <= most) return value;
  }
  bb_json_refuse(source, name);
}

uint32_t bb_json_index(const bb_json_source *source, const bb_json *object, const char *name,
                       uint32_t count) {
  return (uint32_t)bb_json_whole(source, bb_json_get(object, name), name, 0, (int64_t)count - 1);
}

/* --- writing --- */

/* The length of the well-formed UTF-8 sequence at `s`; 0: there is none. */
static size_t sequence(const unsigned char *s) {
  size_t length = s[0] < 0x80                    ? 1
                  : s[0] >= 0xc2 && s[0] <= 0xdf ? 2
                  : s[0] >= 0xe0 && s[0] <= 0xef ? 3
                  : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                                 : 0;
  for (size_t i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
      (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
    return 0;
  return length;
}

void bb_json_put(bb_buffer *out, const char *text) {
  bb_put(out, "\"");
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    size_t length = sequence(s);
    if (*s == '"' || *s == '\\')
      bb_put(out, "\\%c", *s);
    else if (*s == '\n')
      bb_put(out, "\\n");
    else if (*s < 32 || *s == 127)
      bb_put(out, "\\u%04x", *s);
    else if (length)
      bb_put_bytes(out, (const char *)s, length);
    else
      bb_put(out, "\\u%04x", 0xdc00u + *s);
    s += length ? length : 1;
  }
  bb_put(out, "\"");
}
