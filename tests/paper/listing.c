/* listing.c - comparing listings: every name is replaced by a hash of what it stands for, and the
 * statements of a body are added up, so that neither names nor the order of independent statements
 * matter; the nesting of the loops does.
 */
#include "listing.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 256, LINE = 256 };

typedef struct reader {
  const char *at;
  struct {
    char text[16];
    uint64_t hash;
  } name[NAMES];
  uint32_t names;
  char wrong[LINE];
} reader;

static uint64_t mix(uint64_t hash, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
  return hash;
}

static uint64_t mix_number(uint64_t hash, uint64_t number) {
  hash = (hash ^ number) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

char *listing_strip(const char *text) {
  char *copy = malloc(strlen(text) + 2), *to = copy;
  while (copy && *text) {
    const char *end = strchr(text, '\n'), *stop = memchr(text, '#', (size_t)(end - text));
    if (!stop) stop = end;
    while (stop > text && stop[-1] == ' ') stop--;
    if (stop > text) {
      memcpy(to, text, (size_t)(stop - text));
      to += stop - text;
      *to++ = '\n';
    }
    text = end + 1;
  }
  if (copy) *to = 0;
  return copy;
}

/* --- names --- */

/* t1, t12b, I3: names that a listing chooses. */
static bool is_chosen(const char *name, size_t length) {
  return length > 1 && (name[0] == 't' || name[0] == 'I') && isdigit((unsigned char)name[1]);
}

static uint64_t *find(reader *r, const char *name, size_t length) {
  for (uint32_t i = 0; i < r->names; i++)
    if (strlen(r->name[i].text) == length && memcmp(r->name[i].text, name, length) == 0)
      return &r->name[i].hash;
  return NULL;
}

static void define(reader *r, const char *name, size_t length, uint64_t hash) {
  uint64_t *old = find(r, name, length);
  if (old) {
    *old = hash;
  } else if (r->names < NAMES && length < sizeof r->name[0].text) {
    memcpy(r->name[r->names].text, name, length);
    r->name[r->names++].hash = hash;
  }
}

/* The hash of a text in which chosen names count as what they stand for. */
static uint64_t hash_text(reader *r, const char *text, const char *end) {
  uint64_t hash = 0xcbf29ce484222325ull;
  while (text < end) {
    size_t length = 1;
    if (isalpha((unsigned char)*text))
      while (text + length < end && isalnum((unsigned char)text[length])) length++;
    if (is_chosen(text, length)) {
      const uint64_t *known = find(r, text, length);
      if (!known && !*r->wrong)
        snprintf(r->wrong, sizeof r->wrong, "%.*s is used before it is made", (int)length, text);
      hash = mix_number(hash, known ? *known : 0);
    } else if (*text != ' ') {
      hash = mix(hash, text, length);
    }
    text += length;
  }
  return hash;
}

/* --- statements and bodies --- */

static uint64_t store(reader *r, const char *text, const char *end) {
  const char *place = memchr(text, ',', (size_t)(end - text)) + 1, *index = strchr(place, '[');
  uint64_t value = hash_text(r, text, place);
  if (index && index < end && is_chosen(place, (size_t)(index - place)))
    define(r, place, (size_t)(index - place), mix_number(value, hash_text(r, index, end)));
  return mix_number(value, hash_text(r, place, end));
}

/* name = expression, or name += expression inside the loop whose header is hashed in `loop`. */
static uint64_t assign(reader *r, const char *text, const char *end, uint64_t loop) {
  size_t name = strcspn(text, " ");
  const char *op = text + name + 1, *value = op + strcspn(op, " ") + 1;
  uint64_t hash = mix_number(hash_text(r, value, end), mix(1, op, (size_t)(value - op)));
  if (op[0] != '=') hash = mix_number(hash, loop);
  define(r, text, name, hash);
  return hash;
}

static size_t depth_of(const char *line) {
  return strspn(line, " ");
}

static uint64_t body(reader *r, size_t depth, uint64_t loop) {
  uint64_t sum = 0;
  while (*r->at && depth_of(r->at) == depth) {
    const char *text = r->at + depth, *end = strchr(text, '\n');
    r->at = end + 1;
    if (strncmp(text, "for", 3) == 0) {
      uint64_t header = mix(7, text, (size_t)(end - text));
      sum += mix_number(header, body(r, depth_of(r->at), header));
    } else {
      bool stores = strncmp(text, "store(", 6) == 0;
      sum += mix_number(3, stores ? store(r, text, end) : assign(r, text, end, loop));
    }
  }
  return sum;
}

uint64_t listing_canon(const char *text, const char **wrong) {
  static reader r;
  char *bare = listing_strip(text);
  r = (reader){.at = bare};
  uint64_t hash = bare ? body(&r, 0, 0) : 0;
  if (bare && *r.at && !*r.wrong) snprintf(r.wrong, sizeof r.wrong, "the lines are indented badly");
  free(bare);
  *wrong = *r.wrong ? r.wrong : NULL;
  return *wrong ? 0 : hash;
}
