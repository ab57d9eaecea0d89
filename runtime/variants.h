/* variants.h - programs chosen for several regions of run-time extents, as a fused program holds them.
 */
#ifndef BB_VARIANTS_H
#define BB_VARIANTS_H

#include "driver.h"

/* What stage FUSED has made of a program: its kernels, and the order in which they run. */
typedef struct bb_choice {
  uint32_t candidates, steps;
  bb_candidate *candidate;
  bb_step *step;
  const bb_selection_report *selection;
} bb_choice;

/* Of bb_program.variants.  They were partitioned once: what passes between candidates lies in the same tensors. */
struct bb_variants {
  const bb_regions *regions;
  const bb_region_info *region; /* by cell of the regions */
  bb_choice *choice; /* by program of the regions; the first is what the bb_program itself has */
};

/* What bb_program.step and the rest are now. */
bb_choice bb_choice_of(const bb_program *program);
void bb_choice_install(bb_program *program, const bb_choice *choice);

/* Which program runs where, as numbers in a row: as it is kept on disk.  In `arena`. */
bb_prices bb_regions_written(const bb_regions *regions, uint32_t symbols, bb_arena *arena);

/* Takes a program from stage BLOCK or PARTITION to FUSED, as bb_drive() does, once for each region of the extents
 * that options->dim does not name; options->programs of them at most. */
void bb_api_drive_variants(bb_program *program, const bb_advance_options *options,
                           bb_drive_options *drive);

#endif
