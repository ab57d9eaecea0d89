/* device_library.c - a preprocessed library taken apart into declarations, and those that are used. */
#include "device_library.h"

#include "../../graph/graph.h"
#include "../../graph/intern.h"

#include <ctype.h>

/* A declaration, a function's definition, a pragma, or a macro's #define or #undef. */
typedef struct item {
  const char *text;
  size_t length;
  bool macro, kept;
} item;

/* One that declares a name, and the next that does. */
typedef struct declares {
  uint32_t item, next; /* BB_NONE: the last */
} declares;

typedef struct name {
  const char *text; /* NULL: an empty slot */
  size_t length;
  uint32_t first; /* in library.link */
} name;

typedef struct library {
  bb_arena *arena;
  item *item;
  uint32_t items, item_capacity;
  declares *link;
  uint32_t links, link_capacity;
  name *slot; /* open-addressed; their number is a power of two */
  uint32_t names, slots;
  uint32_t *pending; /* items that are kept, whose names are not yet */
  uint32_t waiting, pending_capacity;
  bool whole; /* all declarations */
} library;

/* --- tokens --- */

typedef enum token_kind { END, WORD, MARK, PRAGMA, OTHER } token_kind;

typedef struct token {
  token_kind kind;
  const char *text;
  size_t length;
} token;

static bool in_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Behind what a quote begins; on the same line, whatever is there. */
static const char *behind_quote(const char *at, const char *end) {
  const char quote = *at++;
  while (at < end && *at != quote && *at != '\n') at += *at == '\\' && at + 1 < end ? 2 : 1;
  return at < end ? at + 1 : end;
}

static const char *behind_line(const char *at, const char *end) {
  while (at < end && *at != '\n') at++;
  return at < end ? at + 1 : end;
}

static const char *behind_comment(const char *at, const char *end) {
  for (at += 2; at < end && !(at[-1] == '*' && *at == '/' && at[-2] != '/'); at++) continue;
  return at < end ? at + 1 : end;
}

/* Behind white space and comments. */
static const char *behind_space(const char *at, const char *end) {
  for (;; at++) {
    while (at + 1 < end && at[0] == '/' && (at[1] == '*' || at[1] == '/'))
      at = at[1] == '*' ? behind_comment(at, end) : behind_line(at, end);
    if (at >= end || !isspace((unsigned char)*at)) return at;
  }
}

/* The next from *at on.  `pragmas`: what begins with # is one token up to the end of its line. */
static token next_token(const char **at, const char *end, bool pragmas) {
  const char *from = behind_space(*at, end), *to = from;
  token_kind kind = MARK;
  if (from == end) {
    *at = end;
    return (token){.kind = END, .text = end};
  }
  if (*from == '#' && pragmas) {
    kind = PRAGMA, to = behind_line(from, end);
  } else if (*from == '"' || *from == '\'') {
    kind = OTHER, to = behind_quote(from, end);
  } else if (isdigit((unsigned char)*from)) {
    kind = OTHER;
    while (to < end && (in_word(*to) || *to == '.')) to++;
  } else if (in_word(*from)) {
    kind = WORD;
    while (to < end && in_word(*to)) to++;
  } else {
    to++;
  }
  *at = to;
  return (token){kind, from, (size_t)(to - from)};
}

static bool is_mark(const token *t, char mark) {
  return t->kind == MARK && *t->text == mark;
}

static bool is_one_of(const token *t, const char *const *words) {
  for (; t->kind == WORD && *words; words++)
    if (strlen(*words) == t->length && memcmp(*words, t->text, t->length) == 0) return true;
  return false;
}

/* --- names --- */

static name *slot_of(const library *l, const char *text, size_t length) {
  uint64_t at = bb_hash_bytes(text, length, 0);
  for (;; at++) {
    name *n = &l->slot[at & (l->slots - 1)];
    if (!n->text || (n->length == length && memcmp(n->text, text, length) == 0)) return n;
  }
}

static void grow_names(library *l) {
  const name *old = l->slot;
  uint32_t count = l->slots;
  l->slots = count ? 2 * count : 4096;
  l->slot = BB_NEW(l->arena, name, l->slots);
  memset(l->slot, 0, l->slots * sizeof *l->slot);
  for (uint32_t i = 0; i < count; i++)
    if (old[i].text) *slot_of(l, old[i].text, old[i].length) = old[i];
}

/* Words of the language, which are no names. */
static const char *const keywords[] = {
    "void",          "char",       "short",  "int",    "long",          "float",    "double",
    "unsigned",      "signed",     "_Bool",  "const",  "volatile",      "restrict", "__restrict",
    "typedef",       "extern",     "static", "inline", "__extension__", "struct",   "union",
    "enum",          "sizeof",     "return", "unused", "vector_size",   "aligned",  "may_alias",
    "__attribute__", "__typeof__", NULL};

/* The last item declares it. */
static void declare(library *l, const token *word) {
  if (is_one_of(word, keywords)) return;
  if (2 * l->names >= l->slots) grow_names(l);
  name *n = slot_of(l, word->text, word->length);
  if (!n->text) {
    *n = (name){word->text, word->length, BB_NONE};
    l->names++;
  }
  if (n->first != BB_NONE && l->link[n->first].item == l->items - 1) return;
  BB_GROW(l->arena, l->link, l->link_capacity, l->links + 1u);
  l->link[l->links] = (declares){l->items - 1, n->first};
  n->first = l->links++;
}

static item *add_item(library *l, const char *from, const char *to) {
  BB_GROW(l->arena, l->item, l->item_capacity, l->items + 1u);
  l->item[l->items] = (item){.text = from, .length = (size_t)(to - from)};
  return &l->item[l->items++];
}

/* --- taking it apart --- */

/* Macros become items, whatever they stand in; gives the rest. */
static bb_buffer without_macros(library *l, const char *text, size_t length) {
  bb_buffer rest = {.arena = l->arena};
  for (const char *line = text, *end = text + length, *next; line < end; line = next) {
    next = behind_line(line, end);
    bool defined = end - line > 8 && memcmp(line, "#define ", 8) == 0;
    if (!defined && !(end - line > 7 && memcmp(line, "#undef ", 7) == 0)) {
      bb_put_bytes(&rest, line, (size_t)(next - line));
      continue;
    }
    const char *at = line + (defined ? 8 : 7);
    token word = next_token(&at, next, false);
    add_item(l, line, next)->macro = true;
    declare(l, &word);
  }
  return rest;
}

/* What is known of a declaration while it is read. */
typedef struct declaration {
  const char *from;
  uint32_t depth;        /* of brackets */
  token before;          /* the last token outside of brackets */
  token function;        /* the name of one, or of none */
  bool several;          /* two pairs of parentheses: what it declares is anybody's guess */
  bool type, value;      /* begins with typedef; there was a = */
  bool attribute, block; /* the last parentheses are an attribute's; braces are a function's */
} declaration;

/* A bracket outside of others. */
static void open_bracket(declaration *d, const token *mark) {
  static const char *const attributes[] = {"__attribute__", "__attribute", "__asm__",     "__asm",
                                           "asm",           "__typeof__",  "__typeof",    "typeof",
                                           "_Alignas",      "__declspec",  "__alignof__", NULL};
  if (*mark->text == '{')
    d->block = !d->value && !d->type && is_mark(&d->before, ')') && !d->attribute;
  if (*mark->text != '(') return;
  d->attribute = is_one_of(&d->before, attributes);
  if (d->attribute || d->value) return;
  d->several |= d->function.kind == WORD || d->before.kind != WORD;
  d->function = d->before;
}

/* A function declares its name; of anything else every word may be what is declared. */
static void end_declaration(library *l, declaration *d, const char *to) {
  const char *at = d->from;
  add_item(l, d->from, to);
  if (d->function.kind == WORD && !d->several && !d->type && !is_one_of(&d->function, keywords)) {
    declare(l, &d->function);
  } else {
    for (token t; t = next_token(&at, to, true), t.kind != END;)
      if (t.kind == WORD) declare(l, &t);
  }
  *d = (declaration){.from = to};
}

static bool read_mark(library *l, declaration *d, const token *t) {
  const char c = *t->text;
  if (c == '(' || c == '[' || c == '{') {
    if (d->depth++ == 0) open_bracket(d, t);
  } else if (c == ')' || c == ']' || c == '}') {
    if (d->depth-- == 0) return false;
  } else if (c == '=' && d->depth == 0) {
    d->value = true;
  }
  if (d->depth) return true;
  d->before = *t;
  if (c == ';' || (c == '}' && d->block)) end_declaration(l, d, t->text + 1);
  return true;
}

/* False: this is not C as it is known here. */
static bool take_apart(library *l, const char *text, size_t length) {
  static const char *const typedefs[] = {"typedef", NULL};
  const char *at = text, *end = text + length;
  declaration d = {.from = text};
  for (token t; t = next_token(&at, end, true), t.kind != END;) {
    if (t.kind == MARK) {
      if (!read_mark(l, &d, &t)) return false;
    } else if (t.kind == PRAGMA && d.before.kind == END && !d.depth) {
      add_item(l, t.text, at)->kept = true;
      d = (declaration){.from = at};
    } else if (!d.depth) {
      d.type |= is_one_of(&t, typedefs);
      d.before = t;
    }
  }
  return d.depth == 0 && d.before.kind == END;
}

/* --- what is used --- */

static bool pastes(const item *i) {
  for (size_t k = 1; k < i->length; k++)
    if (i->text[k - 1] == '#' && i->text[k] == '#') return true;
  return false;
}

static void keep(library *l, uint32_t which) {
  item *i = &l->item[which];
  if (i->kept) return;
  i->kept = true;
  l->whole |= i->macro && pastes(i);
  BB_GROW(l->arena, l->pending, l->pending_capacity, l->waiting + 1u);
  l->pending[l->waiting++] = which;
}

/* Keeps what declares a name of the text: declarations name no macros any more. */
static void use_names(library *l, const char *text, size_t length, bool macros) {
  const char *at = text, *end = text + length;
  for (token t; t = next_token(&at, end, false), t.kind != END;) {
    if (t.kind != WORD || !l->slots) continue;
    const name *n = slot_of(l, t.text, t.length);
    for (uint32_t k = n->text ? n->first : BB_NONE; k != BB_NONE; k = l->link[k].next)
      if (macros || !l->item[l->link[k].item].macro) keep(l, l->link[k].item);
  }
}

static void use_all(library *l, const char *source) {
  use_names(l, source, strlen(source), true);
  while (l->waiting) {
    const item *i = &l->item[l->pending[--l->waiting]];
    use_names(l, i->text, i->length, i->macro);
  }
}

static void put_items(const library *l, bb_buffer *out, bool macros) {
  for (uint32_t i = 0; i < l->items; i++) {
    const item *it = &l->item[i];
    if (it->macro != macros || !(it->kept || (l->whole && !macros))) continue;
    bb_put_bytes(out, it->text, it->length);
    bb_put(out, "\n");
  }
}

/* Macros come last: what stands before them is expanded, and is not to be again. */
const char *bb_cpu_library_for(bb_arena *arena, const char *library_text, size_t length,
                               const char *source) {
  library l = {.arena = arena};
  bb_buffer rest = without_macros(&l, library_text, length), out = {.arena = arena};
  bb_put(&out, "/* What kernels use of the device tile library, preprocessed. */\n");
  bool apart = take_apart(&l, rest.data, rest.length);
  use_all(&l, source);
  if (apart)
    put_items(&l, &out, false);
  else
    bb_put_bytes(&out, rest.data, rest.length);
  put_items(&l, &out, true);
  return out.data;
}
