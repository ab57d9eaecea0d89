/* compilers.h - the system's C compiler as child processes, several at once.
 *
 * It is `cc`, or what BLOCKBUSTER_CC names.
 */
#ifndef BB_CPU_COMPILERS_H
#define BB_CPU_COMPILERS_H

#include "../../graph/context.h"

#include <sys/types.h>

enum { BB_COMPILERS = 16 };

/* Those that run; what they say comes into one file of the folder, compiler.txt. */
typedef struct bb_compilers {
  bb_context *ctx;
  bb_arena *arena;
  const char *folder, *log;
  uint32_t count;
  pid_t pid[BB_COMPILERS];
  const char *output[BB_COMPILERS]; /* the file that each makes */
  const char *call[BB_COMPILERS];   /* its words */
  int error;                        /* of one that could not be started; 0: all were */
} bb_compilers;

/* None yet.  In `arena`, and deferred: the caller's bb_undefer() ends them. */
bb_compilers *bb_compilers_begin(bb_context *ctx, bb_arena *arena, const char *folder);
/* One more, at most BB_COMPILERS at once.  words: after the flags, up to a NULL; behind -o the file that it makes. */
void bb_compilers_start(bb_compilers *compilers, const char *const *words);
/* Waits for all.  Where one fails, the message says how it was called, how it ended and what it said: BB_ERROR_IO where there
 * is no compiler or no room for what it writes, _UNSUPPORTED where it compiles nothing at all, _INTERNAL where what it was
 * given is to blame. */
void bb_compilers_finish(bb_compilers *compilers);
/* What decides what they make of a source: the compiler and its state on disk, its flags, the processor.  Fails with
 * BB_ERROR_IO where there is no compiler. */
void bb_compilers_identify(bb_context *ctx, bb_buffer *out);

#endif
