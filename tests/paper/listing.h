/* listing.h - comparing listings in the paper's notation. */
#ifndef BB_TESTS_LISTING_H
#define BB_TESTS_LISTING_H

#include <stdbool.h>
#include <stdint.h>

/* A number that two listings share exactly when they are equal up to the names of temporaries and
 * buffers (t1, I1) and the order of independent statements.  Comments (# to the end of the line) do not
 * count.  On a name that is used before it is made, 0, and *wrong says which line. */
uint64_t listing_canon(const char *text, const char **wrong);

/* Copies text without its comments and the empty lines they leave; freed by the caller. */
char *listing_strip(const char *text);

#endif
