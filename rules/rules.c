/* rules.c - the table of rules. */
#include "rule.h"

#define BB_RULE(id) extern const bb_rule bb_rule_##id;
#include "rules.def"
#undef BB_RULE

const bb_rule *const bb_rules[] = {
#define BB_RULE(id) &bb_rule_##id,
#include "rules.def"
#undef BB_RULE
};

const uint32_t bb_rule_count = sizeof bb_rules / sizeof *bb_rules;

_Static_assert(sizeof bb_rules / sizeof *bb_rules <= BB_SCOPE_RULES, "one heap for each rule");
