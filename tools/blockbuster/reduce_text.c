/* reduce_text.c - an array program as lines of text that can be taken away.
 */
#include "reduce.h"

#include <stdlib.h>
#include <string.h>

static char *copy_of(const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) return NULL;
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

/* The length of the name at `s`, quoted or plain; 0: there is none. */
static size_t name_length(const char *s) {
  size_t n = 0;
  if (*s == '"') {
    for (n = 1; s[n] && s[n] != '"'; n++)
      if (s[n] == '\\' && s[n + 1]) n++;
    return s[n] ? n + 1 : 0;
  }
  while (s[n] == '_' || s[n] == '%' || s[n] == '.' || (s[n] >= '0' && s[n] <= '9') ||
         (s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z'))
    n++;
  return n;
}

static bool starts(const char *text, const char *word) {
  return strncmp(text, word, strlen(word)) == 0;
}

static bool mentions(const char *text, const char *name) {
  size_t wanted = strlen(name);
  while (*text) {
    size_t length = name_length(text);
    if (length == wanted && memcmp(text, name, length) == 0) return true;
    text += length ? length : 1;
  }
  return false;
}

/* What of a statement the program's own text reads: its operands, not its results, names and types. */
static const char *body_of(const line *l) {
  const char *equals = strstr(l->text, " = ");
  return l->kind == STATEMENT && equals ? equals + 3 : "";
}

/* `input X : TYPE` of a statement or constant with one result; NULL: it has several. */
static char *as_input(const line *l) {
  const char *type = NULL, *end = l->text + strlen(l->text);
  if (l->kind == CONSTANT) {
    type = strstr(l->text, " : ");
    end = type ? strstr(type, " = ") : NULL;
  } else {
    for (const char *at = l->text; (at = strstr(at, " : ")) != NULL; at++) type = at;
    const char *note = type ? strstr(type, " @ ") : NULL;
    if (note) end = note;
  }
  if (!type || !end || !l->name || memchr(type, ',', (size_t)(strcspn(type, "[")))) return NULL;
  size_t size = strlen(l->name) + (size_t)(end - type) + 8;
  char *text = malloc(size);
  if (text) snprintf(text, size, "input %s%.*s", l->name, (int)(end - type), type);
  return text;
}

static bool add_line(lines *all, const char *text, size_t length) {
  if (all->count == all->capacity) {
    uint32_t capacity = all->capacity ? 2 * all->capacity : 64;
    line *grown = realloc(all->line, capacity * sizeof *grown);
    if (!grown) return false;
    all->line = grown;
    all->capacity = capacity;
  }
  line *l = &all->line[all->count++];
  *l = (line){.text = copy_of(text, length)};
  if (!l->text) return false;
  const char *name = l->text;
  l->kind = starts(name, "input ")      ? INPUT
            : starts(name, "constant ") ? CONSTANT
            : starts(name, "output ")   ? OUTPUT
            : strstr(name, " = ")       ? STATEMENT
                                        : HEAD;
  if (l->kind == HEAD) return true;
  if (l->kind != STATEMENT) name += strcspn(name, " ") + 1;
  size_t end = name_length(name);
  bool several = l->kind == STATEMENT && name[end] == ',';
  if (end && !several) l->name = copy_of(name, end);
  return several || l->name;
}

bool lines_read(lines *all, const char *text) {
  *all = (lines){0};
  while (*text) {
    size_t length = strcspn(text, "\n");
    while (text[length] == '\n' && text[length + 1] == ' ') /* a constant goes on */
      length += 1 + strcspn(text + length + 1, "\n");
    if (!add_line(all, text, length)) return false;
    text += length + (text[length] == '\n');
  }
  return true;
}

void lines_free(lines *all) {
  for (uint32_t i = 0; i < all->count; i++) {
    free(all->line[i].text);
    free(all->line[i].name);
  }
  free(all->line);
  *all = (lines){0};
}

bool lines_copy(lines *to, const lines *from) {
  *to = (lines){0};
  bool good = true;
  for (uint32_t i = 0; i < from->count && good; i++)
    good = add_line(to, from->line[i].text, strlen(from->line[i].text));
  return good;
}

/* Takes away what no output needs; uses stand behind what they use. */
void lines_prune(lines *all) {
  uint32_t kept = all->count;
  bool *needed = calloc(all->count + 1, sizeof *needed);
  if (!needed) return;
  for (uint32_t i = all->count; i-- > 0;) {
    const line *l = &all->line[i];
    needed[i] = l->kind == HEAD || l->kind == OUTPUT || !l->name;
    for (uint32_t k = i + 1; k < all->count && !needed[i]; k++) {
      const line *use = &all->line[k];
      if (!needed[k]) continue;
      needed[i] =
          use->kind == OUTPUT ? strcmp(use->name, l->name) == 0 : mentions(body_of(use), l->name);
    }
  }
  kept = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    if (needed[i]) {
      all->line[kept++] = all->line[i];
      continue;
    }
    free(all->line[i].text);
    free(all->line[i].name);
  }
  all->count = kept;
  free(needed);
}

bool lines_cut(lines *all, uint32_t index) {
  line *l = &all->line[index];
  char *text = as_input(l);
  if (!text) return false;
  free(l->text);
  l->text = text;
  l->kind = INPUT;
  return true;
}

/* Outputs have names of their own: a value that is only numbered gets one, which nothing else that is
 * left will mention. */
static bool give_name(line *l) {
  const char *equals = strstr(l->text, " = ");
  if (l->name[0] != '%') return true;
  if (!equals) return false;
  size_t size = strlen(l->name) + strlen(equals) + 8;
  char *text = malloc(size), *name = malloc(size);
  if (!text || !name) {
    free(text);
    free(name);
    return false;
  }
  snprintf(name, size, "end_%s", l->name + 1);
  snprintf(text, size, "%s%s", name, equals);
  free(l->text);
  free(l->name);
  l->text = text;
  l->name = name;
  return true;
}

/* `output NAME` in the place of all outputs. */
bool lines_end_at(lines *all, uint32_t index) {
  if (!give_name(&all->line[index])) return false;
  char *name = copy_of(all->line[index].name, strlen(all->line[index].name));
  if (!name) return false;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    if (all->line[i].kind != OUTPUT) {
      all->line[kept++] = all->line[i];
      continue;
    }
    free(all->line[i].text);
    free(all->line[i].name);
  }
  all->count = kept;
  size_t size = strlen(name) + 8;
  char *text = malloc(size);
  bool good =
      text && snprintf(text, size, "output %s", name) > 0 && add_line(all, text, strlen(text));
  free(text);
  free(name);
  return good;
}

uint32_t lines_statements(const lines *all) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < all->count; i++) count += all->line[i].kind == STATEMENT;
  return count;
}
