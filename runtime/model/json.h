/* json.h - JSON read into a tree, for plans: small, strict, and safe on any bytes.
 *
 * A byte that is not part of UTF-8 is written as \udc80 to \udcff (as Python's surrogateescape has it), and read
 * back as that byte, so that names of any bytes survive.
 */
#ifndef BB_MODEL_JSON_H
#define BB_MODEL_JSON_H

#include "../../graph/context.h"

typedef enum bb_json_kind {
  BB_JSON_NULL,
  BB_JSON_BOOL,
  BB_JSON_NUMBER,
  BB_JSON_TEXT,
  BB_JSON_LIST,
  BB_JSON_OBJECT
} bb_json_kind;

typedef struct bb_json {
  bb_json_kind kind;
  const char *name;                   /* a member of an object */
  const char *text;                   /* TEXT, without NULs inside; NUMBER: as it was written */
  double number;                      /* NUMBER; BOOL: 0 or 1 */
  uint32_t count;                     /* of a LIST or OBJECT */
  const struct bb_json *first, *next; /* its members; the next one of the same list */
} bb_json;

/* NULL with *error a phrase and *at the offset. */
const bb_json *bb_json_parse(bb_arena *arena, const char *text, size_t length, const char **error,
                             size_t *at);
/* A member by name; NULL: there is none, or this is no object. */
const bb_json *bb_json_get(const bb_json *object, const char *name);

/* --- members that have to be there --- */

/* Whose text is read.  What is missing or wrong in it fails the context with BB_ERROR_INPUT, by its name. */
typedef struct bb_json_source {
  bb_context *ctx;
  const char *what; /* the plan, say: first in messages */
} bb_json_source;

_Noreturn void bb_json_refuse(const bb_json_source *source, const char *name);
const bb_json *bb_json_member(const bb_json_source *source, const bb_json *object, const char *name,
                              bb_json_kind kind);
/* A whole number from `least` to `most`, both allowed; NULL is refused.  name: what it is in messages. */
int64_t bb_json_whole(const bb_json_source *source, const bb_json *number, const char *name,
                      int64_t least, int64_t most);
/* A member from 0 to count - 1: an index of as many. */
uint32_t bb_json_index(const bb_json_source *source, const bb_json *object, const char *name,
                       uint32_t count);

/* "text" with its quotes. */
void bb_json_put(bb_buffer *out, const char *text);

#endif
