/* safe_file.h - files whose code runs, or whose numbers are trusted: nobody but their owner may write them.
 */
#ifndef BB_MODEL_SAFE_FILE_H
#define BB_MODEL_SAFE_FILE_H

#include "../../graph/context.h"

#include <sys/stat.h>

typedef struct bb_file {
  const char *bytes; /* mapped */
  size_t size;
} bb_file;

/* NULL, or why it is not to be trusted: another owner than this user or root, or others may write. */
const char *bb_unsafe(const struct stat *status);
/* Opens a regular file, no link, that is safe.  -1, errno and *problem: it is not. */
int bb_file_open(const char *path, struct stat *status, const char **problem);
/* Maps such a file; NULL, or a phrase, with errno. */
const char *bb_file_map(const char *path, bb_file *file);
void bb_file_unmap(bb_file *file);

#endif
