/* kernel_cache.h - compiled kernels on disk, found by what they were made of.
 *
 * An entry is one file: the shared object, behind it the text of its key (what was compiled, by what,
 * for what) and a checksum.  It is written under another name and renamed, so it is whole or not there;
 * it is checked when it is read.  Processes that want the same entry at once wait for the first one.
 * The folder is its owner's alone.  What goes wrong with the cache never stops a compilation: it then
 * goes to a temporary folder, and the log says why.
 */
#ifndef BB_KERNEL_CACHE_H
#define BB_KERNEL_CACHE_H

#include "../../graph/context.h"

typedef struct bb_cached {
  const char *path; /* of the shared object, in `arena` */
  char *temporary;  /* its folder, to be removed with bb_cached_end() */
  bool hit;         /* nothing was compiled */
} bb_cached;

/* The shared object of a source.  folder: NULL: $BLOCKBUSTER_CACHE, $XDG_CACHE_HOME/blockbuster or
 * ~/.cache/blockbuster, the first that is set; "": none.  A result with a temporary folder is
 * deferred. */
void bb_cache_get(bb_context *ctx, bb_arena *arena, const char *folder, const char *source,
                  size_t length, bb_cached *cached);
void bb_cached_end(bb_context *ctx, bb_cached *cached);

/* --- what a device's driver loads from memory, in the same folder --- */

/* All that decides what the image is. */
typedef struct bb_cache_key {
  const char *text;
  size_t length;
  const char *folder; /* as of bb_cache_get() */
  bool quiet;         /* a folder that cannot be used is another's to report */
} bb_cache_key;

/* An image and its bytes; NULL: it is not there. */
const void *bb_cache_image(bb_context *ctx, bb_arena *arena, const bb_cache_key *key, size_t *size);
void bb_cache_keep_image(bb_context *ctx, bb_arena *arena, const bb_cache_key *key,
                         const void *image, size_t size);

#endif
