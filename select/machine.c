/* machine.c - machine descriptions: those that come with the library, and those in files.
 *
 *   text   machine NAME  target NAME  { FIELD NUMBER }   one a line; # begins a comment
 */
#include "machine.h"
#include "../graph/text_number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const bb_machine machines[] = {
#include "machines/cpu.def"
#include "machines/h200.def"
#include "machines/h100.def"
#include "machines/a100.def"
#include "machines/rtx4090.def"
#include "machines/mi300x.def"
#include "machines/mi250x.def"
};

static const struct field {
  const char *name, *unit, *description;
  size_t offset;
} fields[] = {
#define BB_FIELD(id, unit, description) {#id, unit, description, offsetof(bb_machine, id)},
#include "machine_field.def"
#undef BB_FIELD
};
enum { FIELDS = sizeof fields / sizeof *fields, MOST_TEXT = 1 << 16 };

const bb_machine *bb_machine_get(uint32_t index) {
  return index < sizeof machines / sizeof *machines ? &machines[index] : NULL;
}

static double *field_of(bb_machine *machine, const struct field *field) {
  return (double *)((char *)machine + field->offset);
}

/* --- text --- */

void bb_machine_print(bb_buffer *out, const bb_machine *machine) {
  bb_machine copy = *machine;
  bb_put(out, "machine %s\ntarget %s\n", machine->name, machine->target);
  for (uint32_t i = 0; i < FIELDS; i++) {
    bb_put(out, "%s ", fields[i].name);
    bb_put_number(out, *field_of(&copy, &fields[i]), BB_F64);
    bb_put(out, " # %s%s%s\n", fields[i].unit, *fields[i].unit ? ": " : "", fields[i].description);
  }
}

/* Names are printed into tables: plain words only. */
static bool is_word(const char *word) {
  if (!*word || strlen(word) > 60) return false;
  for (; *word; word++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", *word))
      return false;
  return true;
}

typedef struct reader {
  bb_arena *arena;
  const char *place;
  uint32_t line;
  bb_machine *machine;
  bool seen[FIELDS];
} reader;

static _Noreturn void refuse(const reader *r, const char *what, const char *which) {
  bb_fail(bb_arena_context(r->arena), BB_ERROR_INPUT, "%s:%u: %s%.60s", r->place, r->line, what,
          which);
}

static void read_field(reader *r, const char *name, const char *value) {
  for (uint32_t i = 0; i < FIELDS; i++) {
    if (strcmp(name, fields[i].name) != 0) continue;
    double number = 0;
    bool integer;
    const char *at = value, *end = value + strlen(value);
    if (bb_scan_number(&at, end, &number, &integer) || at != end || !isfinite(number))
      refuse(r, "expected a number, 0 or more, and got ", value);
    if (r->seen[i]) refuse(r, "this is said twice: ", name);
    r->seen[i] = true;
    *field_of(r->machine, &fields[i]) = number;
    return;
  }
  refuse(r, "a machine has no ", name);
}

static void read_line(reader *r, char *line) {
  char *end = strchr(line, '#'), *rest = NULL;
  if (end) *end = 0;
  char *name = strtok_r(line, " \t\r", &rest);
  if (!name) return;
  char *value = strtok_r(NULL, " \t\r", &rest);
  if (!value || strtok_r(NULL, " \t\r", &rest)) refuse(r, "expected a value after ", name);
  if (strcmp(name, "machine") != 0 && strcmp(name, "target") != 0) {
    read_field(r, name, value);
    return;
  }
  const char **word = name[0] == 'm' ? &r->machine->name : &r->machine->target;
  if (*word) refuse(r, "this is said twice: ", name);
  if (!is_word(value)) refuse(r, "expected a plain word after ", name);
  *word = bb_arena_text(r->arena, value, strlen(value));
}

/* What older descriptions do not tell. */
static bool may_be_missing(const char *name) {
  return strcmp(name, "dot_i32") == 0;
}

/* Everything is divided by, but what may be absent or is a yes or no. */
static bool may_be_zero(const char *name) {
  static const char *const names[] = {"register_bytes", "swap",   "overlap",
                                      "launch",         "begin",  "trip",
                                      "grain_wide",     "wait",   "memory_run_bandwidth",
                                      "line_bytes",     "dot_i32"};
  for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

const bb_machine *bb_machine_parse(bb_arena *arena, const char *place, const char *text) {
  reader r = {.arena = arena, .place = place, .machine = BB_NEW(arena, bb_machine, 1)};
  char *copy = bb_arena_text(arena, text, strlen(text));
  for (char *next, *line = copy; line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    r.line++;
    read_line(&r, line);
  }
  if (!r.machine->name || !r.machine->target)
    refuse(&r, "missing: the machine's ", "name or target");
  for (uint32_t i = 0; i < FIELDS; i++) {
    if (!r.seen[i] && !may_be_missing(fields[i].name)) refuse(&r, "missing: ", fields[i].name);
    if (*field_of(r.machine, &fields[i]) == 0 && !may_be_zero(fields[i].name))
      refuse(&r, "this cannot be 0: ", fields[i].name);
  }
  return r.machine;
}

/* --- finding one --- */

static void close_file(void *file) {
  fclose(file);
}

static const bb_machine *read_file(bb_arena *arena, const char *path) {
  bb_context *ctx = bb_arena_context(arena);
  FILE *file = fopen(path, "r");
  if (!file)
    bb_fail(ctx, errno == ENOENT ? BB_ERROR_ARGUMENT : BB_ERROR_IO,
            "there is no machine or target named %s, and no file: %s", path, strerror(errno));
  bb_defer(ctx, close_file, file);
  char *text = BB_NEW(arena, char, MOST_TEXT);
  size_t length = fread(text, 1, MOST_TEXT - 1, file);
  if (ferror(file)) bb_fail(ctx, BB_ERROR_IO, "%s could not be read", path);
  if (!feof(file) || strlen(text) != length)
    bb_fail(ctx, BB_ERROR_INPUT, "%s is no machine description", path);
  bb_undefer(ctx, file);
  fclose(file);
  return bb_machine_parse(arena, path, text);
}

const bb_machine *bb_machine_find(bb_arena *arena, const char *name_or_path) {
  if (!name_or_path || !*name_or_path) name_or_path = getenv("BLOCKBUSTER_MACHINE");
  if (!name_or_path || !*name_or_path || strcmp(name_or_path, "host") == 0)
    return bb_machine_host(arena);
  for (uint32_t i = 0; i < sizeof machines / sizeof *machines; i++)
    if (strcmp(machines[i].name, name_or_path) == 0) return &machines[i];
  return read_file(arena, name_or_path);
}

/* --- rates --- */

double bb_machine_dot_rate(const bb_machine *machine, bb_dtype dtype) {
  if (dtype == BB_F16 || dtype == BB_BF16) return machine->dot_f16;
  if (dtype == BB_I32 && machine->dot_i32 > 0) return machine->dot_i32;
  return dtype == BB_F64 ? machine->dot_f64 : machine->dot_f32;
}

double bb_machine_vector_rate(const bb_machine *machine, bb_dtype dtype) {
  if (dtype == BB_F16 || dtype == BB_BF16) return machine->vector_f16;
  return bb_dtype_bytes(dtype) == 8 ? machine->vector_f64 : machine->vector_f32;
}
