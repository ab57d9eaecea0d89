/* tables.h - hash and equality of what a program interns; shared by program.c and the owners. */
#ifndef BB_GRAPH_TABLES_H
#define BB_GRAPH_TABLES_H

#include "context.h"

uint64_t bb_type_hash(const void *type);
bool bb_type_equal(const void *a, const void *b);
uint64_t bb_expr_hash(const void *expr);
bool bb_expr_equal(const void *a, const void *b);
uint64_t bb_extent_hash(const void *extent);
bool bb_extent_equal(const void *a, const void *b);
uint64_t bb_access_hash(const void *access);
bool bb_access_equal(const void *a, const void *b);
uint64_t bb_monoid_hash(const void *monoid);
bool bb_monoid_equal(const void *a, const void *b);
uint64_t bb_table_name_hash(const void *entry);
bool bb_table_name_equal(const void *a, const void *b);

#endif
