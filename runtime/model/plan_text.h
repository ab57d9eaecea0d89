/* plan_text.h - plans as text: plan.json of a compiled folder.
 */
#ifndef BB_MODEL_PLAN_TEXT_H
#define BB_MODEL_PLAN_TEXT_H

#include "json.h"
#include "plan.h"

enum { BB_PLAN_ROLES = BB_TENSOR_LOCAL + 1 };
extern const char *const bb_plan_role_name[BB_PLAN_ROLES];

/* Reads and verifies; fails the arena's context with BB_ERROR_INPUT.  Everything is in the arena. */
bb_plan *bb_plan_read(bb_arena *arena, const char *text, size_t length);

#endif
