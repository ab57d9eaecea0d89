/* text_lex.c - the reader of the text form: tokens, places, messages, and tables of names. */
#include "intern.h"
#include "text_form.h"
#include "text_number.h"

#include <stdio.h>
#include <string.h>

/* --- messages --- */

static const char *place_text(bb_reader *r, const char *place) {
  unsigned line = 1;
  const char *start = r->text;
  if (place > r->end) place = r->end;
  for (const char *at = r->text; at < place; at++)
    if (*at == '\n') line++, start = at + 1;
  return bb_arena_printf(r->scratch, "%s:%u:%u", r->path, line, (unsigned)(place - start) + 1);
}

void bb_read_fail(bb_reader *r, const char *place, const char *format, ...) {
  bb_buffer message = {.arena = r->scratch};
  va_list arguments;
  va_start(arguments, format);
  bb_put_vprintf(&message, format, arguments);
  va_end(arguments);
  bb_fail(r->ctx, BB_ERROR_INPUT, "%s: %s", place_text(r, place), message.data);
}

void bb_read_protected(bb_reader *r, const char *place, bb_body *body, void *argument) {
  bb_status status = bb_protect(r->ctx, body, argument);
  if (status == BB_OK) return;
  if (status == BB_ERROR_MEMORY) bb_fail(r->ctx, status, "out of memory");
  bb_fail(r->ctx, status, "%s: %s", place_text(r, place), bb_context_message(r->ctx));
}

/* --- tokens --- */

static const char *skip_space(const char *at, const char *end) {
  for (; at < end; at++) {
    if (*at == '#')
      while (at + 1 < end && at[1] != '\n') at++;
    else if (*at != ' ' && *at != '\t' && *at != '\n' && *at != '\r')
      break;
  }
  return at;
}

static void take_word(bb_reader *r, bb_token_kind kind, const char *from) {
  while (r->at < r->end && bb_is_name_char(*r->at)) r->at++;
  r->token.kind = kind;
  r->token.length = (size_t)(r->at - from);
  r->token.name = bb_arena_text(r->scratch, from, r->token.length);
}

/* Digits and whatever clings to them; whoever wants a number looks closer. */
static void take_digits(bb_reader *r, bb_token_kind kind) {
  const char *from = r->at;
  bool hexadecimal = r->end - from > 1 && from[1] == 'x';
  for (; r->at < r->end; r->at++) {
    bool exponent = r->at > from && (r->at[-1] == 'e' || r->at[-1] == 'E') && !hexadecimal;
    bool sign = exponent && (*r->at == '-' || *r->at == '+');
    if (!bb_is_name_char(*r->at) && !sign) break;
  }
  r->token.kind = kind;
  r->token.digits = from;
  r->token.digits_end = r->at;
}

static void take_quoted(bb_reader *r, bb_token_kind kind) {
  const char *wrong = bb_scan_quoted(&r->at, r->end, r->scratch, &r->token.name, &r->token.length);
  if (wrong) bb_read_fail(r, r->token.start, "%s", wrong);
  r->token.kind = kind;
}

static void take_symbol(bb_reader *r) {
  char c = *r->at++;
  if (c <= ' ' || c > '~')
    bb_read_fail(r, r->token.start, "unexpected byte 0x%02x", (unsigned char)c);
  bool arrow = c == '-' && r->at < r->end && *r->at == '>';
  r->at += arrow;
  r->token.kind = BB_TOKEN_SYMBOL;
  r->token.symbol[0] = c;
  r->token.symbol[1] = arrow ? '>' : '\0';
  r->token.length = arrow ? 2 : 1;
}

void bb_read_next(bb_reader *r) {
  r->at = skip_space(r->at, r->end);
  r->token = (bb_token){.kind = BB_TOKEN_END, .start = r->at, .name = ""};
  if (r->at == r->end) return;
  char c = *r->at;
  if (bb_is_name_start(c)) {
    take_word(r, BB_TOKEN_NAME, r->at);
  } else if (c >= '0' && c <= '9') {
    take_digits(r, BB_TOKEN_NUMBER);
  } else if (c == '"') {
    take_quoted(r, BB_TOKEN_QUOTED);
  } else if (c == '%') {
    r->at++;
    take_word(r, BB_TOKEN_VALUE, r->token.start);
    if (r->token.length == 1) bb_read_fail(r, r->token.start, "a value without a name");
  } else if (c == '&') {
    r->at++;
    take_digits(r, BB_TOKEN_TENSOR);
  } else {
    take_symbol(r);
  }
}

void bb_read_from(bb_reader *r, const char *place) {
  r->at = place;
  bb_read_next(r);
}

bool bb_read_is(const bb_reader *r, const char *word) {
  if (r->token.kind == BB_TOKEN_SYMBOL) return strcmp(r->token.symbol, word) == 0;
  return r->token.kind == BB_TOKEN_NAME && strcmp(r->token.name, word) == 0;
}

bool bb_read_accept(bb_reader *r, const char *word) {
  if (!bb_read_is(r, word)) return false;
  bb_read_next(r);
  return true;
}

void bb_read_fail_expected(bb_reader *r, const char *what) {
  const bb_token *t = &r->token;
  if (t->kind == BB_TOKEN_END) bb_read_fail(r, t->start, "expected %s but the text ends", what);
  int length = r->at - t->start > 40 ? 40 : (int)(r->at - t->start);
  bb_read_fail(r, t->start, "expected %s but found %.*s", what, length, t->start);
}

void bb_read_expect(bb_reader *r, const char *word) {
  if (!bb_read_accept(r, word)) bb_read_fail_expected(r, word);
}

bool bb_read_is_name(const bb_reader *r) {
  return r->token.kind == BB_TOKEN_NAME || r->token.kind == BB_TOKEN_QUOTED;
}

const char *bb_read_name(bb_reader *r, const char *what) {
  if (!bb_read_is_name(r)) bb_read_fail_expected(r, what);
  if (strlen(r->token.name) != r->token.length)
    bb_read_fail(r, r->token.start, "a name with a NUL byte");
  const char *name = r->token.name;
  bb_read_next(r);
  return name;
}

/* --- numbers --- */

int64_t bb_read_integer(bb_reader *r) {
  const char *start = r->token.start;
  bool minus = bb_read_accept(r, "-");
  if (r->token.kind != BB_TOKEN_NUMBER) bb_read_fail_expected(r, "an integer");
  int64_t value = 0;
  for (const char *at = r->token.digits; at < r->token.digits_end; at++) {
    int digit = *at - '0';
    if (digit < 0 || digit > 9) bb_read_fail_expected(r, "an integer");
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, digit, &value))
      bb_read_fail(r, start, "an integer too large");
  }
  if (!minus && value == INT64_MIN) bb_read_fail(r, start, "an integer too large");
  bb_read_next(r);
  return minus ? value : -value;
}

uint32_t bb_read_index(bb_reader *r, uint32_t limit, const char *what) {
  const char *start = r->token.start;
  int64_t value = bb_read_integer(r);
  if (value < 0 || value >= (int64_t)limit) bb_read_fail(r, start, "%s is out of range", what);
  return (uint32_t)value;
}

double bb_read_double(bb_reader *r) {
  bool minus = bb_read_accept(r, "-"), integer;
  double value = 0;
  if (bb_read_accept(r, "inf")) {
    value = 1 / value;
  } else if (bb_read_accept(r, "nan")) {
    value = __builtin_nan("");
  } else {
    if (r->token.kind != BB_TOKEN_NUMBER) bb_read_fail_expected(r, "a number");
    const char *at = r->token.digits;
    const char *wrong = bb_scan_number(&at, r->token.digits_end, &value, &integer);
    if (wrong || at != r->token.digits_end) bb_read_fail_expected(r, "a decimal number");
    bb_read_next(r);
  }
  return minus ? -value : value;
}

/* --- tables of names --- */

typedef struct entry {
  const char *name;
  size_t length;
  uint32_t value;
} entry;

struct bb_table {
  bb_intern *set;
};

static uint64_t hash_entry(const void *object) {
  const entry *e = object;
  return bb_hash_bytes(e->name, e->length, 0);
}

static bool same_entry(const void *left, const void *right) {
  const entry *a = left, *b = right;
  return a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

bb_table *bb_table_create(bb_arena *arena) {
  bb_table *table = BB_NEW(arena, bb_table, 1);
  table->set = bb_intern_create(arena, hash_entry, same_entry);
  return table;
}

uint32_t bb_table_find(const bb_table *table, const char *name, size_t length) {
  const entry *found = bb_intern_find(table->set, &(entry){name, length, 0});
  return found ? found->value : BB_NONE;
}

bool bb_table_add(bb_table *table, const char *name, size_t length, uint32_t value) {
  if (bb_intern_find(table->set, &(entry){name, length, 0})) return false;
  entry *e = BB_NEW(table->set->arena, entry, 1);
  *e = (entry){bb_arena_text(table->set->arena, name, length), length, value};
  bb_intern_add(table->set, e);
  return true;
}
