/* Latching of one command, for the walks of latch.c and walk.c. */
#ifndef SOFTGEN_LATCH_H
#define SOFTGEN_LATCH_H

#include "latch_rules.h"

#include "../latches.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* The rule for a header; 0: there is none yet. */
HIDDEN const struct latch_rule *rule_for(const struct rule_table *table, uint32_t header);

/* The dwords of a command that is latched, if there are no more than `most`; 0: Python has to see it. */
HIDDEN uint32_t latched_length(const struct latch_rule *rule, const struct latches *latches, uint32_t header, const uint32_t *dwords,
                               uint64_t most);

/* Latches a command by its rule; `count` is between the rule's least and most. */
HIDDEN void latch(const struct rule_table *table, const struct latch_rule *rule, struct latches *latches, const uint32_t *dwords, uint32_t count);

#endif
