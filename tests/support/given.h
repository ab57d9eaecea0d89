/* given.h - numbers that a test's command line gives by name, as NAME=NUMBER. */
#ifndef BB_TESTS_GIVEN_H
#define BB_TESTS_GIVEN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The last one of that name in a list that ends with NULL. */
static inline int64_t given(char *const *argument, const char *name, int64_t otherwise) {
  size_t length = strlen(name);
  for (; *argument; argument++)
    if (strncmp(*argument, name, length) == 0 && (*argument)[length] == '=')
      otherwise = strtoll(*argument + length + 1, NULL, 10);
  return otherwise;
}

#endif
