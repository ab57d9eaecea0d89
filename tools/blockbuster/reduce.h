/* reduce.h - array programs as lines of text that can be taken away.
 */
#ifndef BLOCKBUSTER_REDUCE_H
#define BLOCKBUSTER_REDUCE_H

#include "tool.h"

typedef enum line_kind { HEAD, INPUT, CONSTANT, STATEMENT, OUTPUT } line_kind;

typedef struct line {
  line_kind kind;
  char *text, *name; /* name: what it defines, or an output gives; NULL: nothing, or several */
} line;

typedef struct lines {
  uint32_t count, capacity;
  line *line;
} lines;

/* Each that gives a bool fails for lack of memory, or because the line cannot be changed so. */
bool lines_read(lines *all, const char *text);
bool lines_copy(lines *to, const lines *from);
void lines_free(lines *all);
void lines_prune(lines *all);                  /* what no output needs goes */
bool lines_cut(lines *all, uint32_t index);    /* a value becomes an input */
bool lines_end_at(lines *all, uint32_t index); /* a value becomes the only output */
uint32_t lines_statements(const lines *all);

#endif
