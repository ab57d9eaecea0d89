/* text_form.h - what the files of the text form share: the reader's tokens, the writer's names.
 */
#ifndef BB_GRAPH_TEXT_FORM_H
#define BB_GRAPH_TEXT_FORM_H

#include "array/array.h"
#include "program.h"
#include "text.h"
#include "text_name.h"

#include <string.h>

/* --- writing --- */

typedef struct bb_writer {
  bb_buffer *out;
  const bb_program *program;
  bb_arena *scratch;
  const char **tensor;   /* how each program tensor is named: plain, quoted, or &3 */
  const char *data_name; /* large constants refer to this file; NULL: none do */
  uint64_t data_offset;  /* where the next one lies in it */
  bool proofs;           /* of tuples: they are written */
} bb_writer;

bb_writer bb_writer_begin(bb_buffer *out, const bb_program *program, const char *data_name);
void bb_writer_end(bb_writer *w);

void bb_write_indent(bb_writer *w, uint32_t depth);
void bb_write_extent(bb_writer *w, const bb_extent *extent);
void bb_write_shape(bb_writer *w, bb_dtype dtype, uint32_t rank, const bb_extent *const *shape);
void bb_write_type(bb_writer *w, const bb_type *type); /* NULL prints as ? */
/* operand: how source k of the access is called. */
void bb_write_access(bb_writer *w, const bb_access *access, const char *const *operand);
void bb_write_misc(bb_writer *w, const bb_misc *misc, uint32_t count, const char *const *operand);
void bb_write_data(bb_writer *w, bb_dtype dtype, const void *data, size_t bytes);
/* An elementwise op: "elementwise expr", its operands listed first where the expression alone does
 * not tell their order. */
void bb_write_elementwise(bb_writer *w, const bb_expr *expr, uint32_t count,
                          const char *const *operand, const bb_dtype *dtype);
void bb_write_graph(bb_writer *w, const bb_graph *graph, uint32_t depth);
void bb_write_stages(bb_writer *w); /* candidates and steps */
enum { BB_TEXT_SERIALS = 1 << 30 }; /* serials in text are below */
void bb_write_array(bb_writer *w);
void bb_write_monoids(bb_writer *w); /* the tuples that the program uses */
/* By value: does the array program use it at all?  In scratch memory; array may be NULL. */
const bool *bb_array_used(const bb_array *array, bb_arena *scratch);

/* The axis that a level over dim has by default, under an item and the levels further out. */
bb_axis bb_level_default_axis(bb_dim dim, const bb_item *item, uint32_t outer,
                              const bb_level *level);

/* Is a constant of so many bytes kept in the data file? */
bool bb_data_is_large(size_t bytes);
enum { BB_DATA_ALIGN = 64 };

/* One element: number, or its bits in hexadecimal where no number gives them. */
void bb_data_print(bb_buffer *out, bb_dtype dtype, const void *element);

/* --- reading --- */

typedef enum bb_token_kind {
  BB_TOKEN_END,
  BB_TOKEN_NAME,   /* plain */
  BB_TOKEN_QUOTED, /* "text", decoded */
  BB_TOKEN_VALUE,  /* %17.1 or %name: with the percent sign */
  BB_TOKEN_TENSOR, /* &3 */
  BB_TOKEN_NUMBER,
  BB_TOKEN_SYMBOL /* punctuation: one character, or -> */
} bb_token_kind;

typedef struct bb_token {
  bb_token_kind kind;
  const char *start; /* in the text */
  const char *name;  /* NUL-terminated: of NAME, QUOTED and VALUE */
  size_t length;
  char symbol[3];                  /* of SYMBOL */
  const char *digits, *digits_end; /* NUMBER, TENSOR */
} bb_token;

/* Names to numbers. */
typedef struct bb_table bb_table;
bb_table *bb_table_create(bb_arena *arena);
uint32_t bb_table_find(const bb_table *table, const char *name, size_t length); /* or BB_NONE */
/* False if the name is there already. */
bool bb_table_add(bb_table *table, const char *name, size_t length, uint32_t value);

typedef struct bb_read_list {
  uint32_t count, capacity;
  uint32_t *item;
} bb_read_list;

typedef struct bb_fresh {
  bb_node *node;
  uint32_t graph; /* the root graph that it stands in */
} bb_fresh;

typedef struct bb_reader {
  bb_context *ctx;
  bb_program *program;
  bb_arena *scratch;
  const char *path, *text, *end;
  const char *at; /* behind the token */
  bb_token token;
  uint32_t depth;   /* of nested levels */
  bb_table *monoid; /* tuples by their names in the text; NULL: by their own */
  bb_table *tensor; /* by name; tensors of one name: only the first */
  uint32_t graphs;  /* root graphs begun: the program's, candidates' and snapshots' */
  uint32_t fresh_count, fresh_capacity;
  bb_fresh *fresh;      /* nodes that wait for a serial */
  bool serial_told;     /* by `serial N` */
  bb_read_list told;    /* then: the serials of nodes */
  uint32_t next_serial; /* N, and above every serial that the text tells */
  uint32_t candidate_capacity, step_capacity;
} bb_reader;

enum { BB_TEXT_DEPTH = 100 }; /* maps within maps */

_Noreturn void bb_read_fail(bb_reader *r, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "expected WHAT but found ..." at the token. */
_Noreturn void bb_read_fail_expected(bb_reader *r, const char *what);
void bb_read_next(bb_reader *r);
void bb_read_from(bb_reader *r, const char *place); /* continues there */
bool bb_read_is(const bb_reader *r, const char *word_or_symbol);
bool bb_read_accept(bb_reader *r, const char *word_or_symbol);
void bb_read_expect(bb_reader *r, const char *word_or_symbol);
/* A plain or quoted name; `what` is for the message. */
const char *bb_read_name(bb_reader *r, const char *what);
/* A text of the reader's scratch memory, in the program's. */
static inline const char *bb_read_kept(bb_reader *r, const char *text) {
  return bb_arena_text(r->program->arena, text, strlen(text));
}
bool bb_read_is_name(const bb_reader *r);
int64_t bb_read_integer(bb_reader *r);                                  /* with sign */
uint32_t bb_read_index(bb_reader *r, uint32_t limit, const char *what); /* below limit */
double bb_read_double(bb_reader *r);
/* Runs body(argument), adding the place to the message of what fails in it. */
void bb_read_protected(bb_reader *r, const char *place, bb_body *body, void *argument);

const bb_extent *bb_read_extent(bb_reader *r);
bb_dim bb_read_dim(bb_reader *r);
bb_dtype bb_read_dtype(bb_reader *r);
/* f32[M,4*D]; the shape is in the program's arena. */
typedef struct bb_shape {
  bb_dtype dtype;
  uint32_t rank;
  const bb_extent **extent;
} bb_shape;
bb_shape bb_read_shape(bb_reader *r);
/* [dim, ...] in the program's arena. */
const bb_dim *bb_read_dim_list(bb_reader *r, uint32_t *count);
const bb_type *bb_read_type(bb_reader *r); /* NULL for ? */
bb_axis bb_read_axis(bb_reader *r);
/* operand(user, r) reads the name of a source and gives its number. */
typedef uint32_t bb_read_source(void *user, bb_reader *r);
const bb_access *bb_read_index_access(bb_reader *r, bb_read_source *source, void *user);
uint32_t bb_read_tensor(bb_reader *r);
uint32_t bb_read_tensor_source(void *user, bb_reader *r);
/* misc Op version (operands) {attributes}; operands are read by operand(), BB_NONE is absent. */
void bb_read_list_add(bb_reader *r, bb_read_list *list, uint32_t item);
const bb_misc *bb_read_misc(bb_reader *r, bb_read_source *operand, void *user,
                            bb_read_list *operands);
const void *bb_read_data(bb_reader *r, bb_dtype dtype, uint32_t rank, const bb_extent *const *shape,
                         size_t *bytes);
const bb_expr *bb_read_expr(bb_reader *r, bb_expr_lookup *lookup, void *user);
/* By bb_expr_parse_index(). */
const bb_expr *bb_read_index_expr(bb_reader *r, bb_expr_lookup *lookup, void *user);
const bb_monoid *bb_read_monoid(bb_reader *r);

/* Statements, behind their first word. */
void bb_read_symbols(bb_reader *r);
void bb_read_dims(bb_reader *r);
void bb_read_monoid_statement(bb_reader *r);
void bb_read_tensor_statement(bb_reader *r); /* with it */
void bb_read_root(bb_reader *r);             /* with it */
void bb_read_candidate(bb_reader *r);
void bb_read_step(bb_reader *r);
bb_graph *bb_read_graph(bb_reader *r); /* { nodes } */

/* The number that a label such as %17 is; false: it is a name. */
bool bb_label_serial(const char *label, uint32_t *serial);
void bb_read_serial(bb_reader *r); /* behind its word */
/* A node's serial is that of its label, if that is a number; else it waits for one. */
void bb_read_give_serial(bb_reader *r, bb_node *node, const char *label);
void bb_read_settle_serials(bb_reader *r);

typedef struct bb_array_reader bb_array_reader;
bb_array_reader *bb_array_reader_begin(bb_reader *r);
void bb_array_read_statement(bb_array_reader *a);

#endif
