/* State commands latched: their dwords go into the slots of a hardware context.
 *
 * latch_run goes over consecutive commands that were read ahead and stops at the first that is not plain state: one that acts, has a length
 * the page does not allow, is not complete in the window, or has no rule yet. walk.c does that in a batch where it is. latch_one latches one
 * command by its rule. Rules are in latch_rules.h; latch_rules.py builds them from the pages. */

#include "latch.h"

#include <string.h>

static uint32_t index_of(const struct latch_rule *rule, const uint32_t *item)
{
    uint32_t index = 0, shift = 0;
    for (uint32_t i = 0; i < rule->parts; i++) {
        const struct index_part *part = &rule->part[i];
        index |= (item[part->dword] >> part->low & ((1u << part->width) - 1)) << shift;
        shift += part->width;
    }
    return index;
}

/* Copies `count` dwords; bits behind closed gates keep their values, and a gate that was ever open reads as open. */
static void copy_gated(uint32_t *to, const uint32_t *from, uint32_t count, const struct gate *gates, uint32_t gate_count)
{
    uint32_t old[GATED];
    if (!gate_count || count > GATED) { /* latch_rules.py makes no gates for longer ones */
        memcpy(to, from, 4 * count);
        return;
    }
    memcpy(old, to, 4 * count);
    memcpy(to, from, 4 * count);
    for (uint32_t i = 0; i < gate_count; i++) {
        const struct gate *gate = &gates[i];
        if (gate->dword < count && gate->bit_dword < count && !(from[gate->bit_dword] & gate->bits))
            to[gate->dword] = (to[gate->dword] & ~gate->mask) | (old[gate->dword] & gate->mask);
    }
    for (uint32_t i = 0; i < gate_count; i++)
        if (gates[i].bit_dword < count)
            to[gates[i].bit_dword] |= old[gates[i].bit_dword] & gates[i].bits;
}

void latch(const struct rule_table *table, const struct latch_rule *rule, struct latches *latches, const uint32_t *dwords, uint32_t count)
{
    uint32_t *slot = latches->slots + rule->offset, *length = &latches->lengths[rule->slot];
    const struct gate *gates = table->gates + rule->gates;
    uint32_t index;
    switch (rule->kind) {
    case REPLACE:
        memcpy(slot, dwords, 4 * count);
        *length = count;
        break;
    case ELEMENTS:
        slot[0] = dwords[0];
        for (uint32_t at = rule->first; at + rule->size <= count; at += rule->size) {
            index = index_of(rule, dwords + at);
            copy_gated(slot + 1 + index * rule->size, dwords + at, rule->size, gates, rule->gate_count);
            latches->present[rule->slot] |= 1ull << index;
        }
        *length = count;
        break;
    case RECORDS:
        index = index_of(rule, dwords);
        memset(slot + index * rule->size, 0, 4 * rule->size);
        memcpy(slot + index * rule->size, dwords, 4 * count);
        latches->present[rule->slot] |= 1ull << index;
        *length = index + 1;
        break;
    case GATES:
        copy_gated(slot, dwords, count, gates, rule->gate_count);
        *length = *length > count ? *length : count;
        break;
    case MASK: {
        uint32_t at = rule->mask_dword, low = (1u << rule->mask_low) - 1;
        uint32_t changed = dwords[at] >> rule->mask_low & rule->mask_bits, old = slot[at];
        memcpy(slot, dwords, 4 * count);
        slot[at] = (dwords[at] & (~low | changed)) | (old & low & ~changed) | (old & rule->mask_bits << rule->mask_low);
        *length = count;
        break;
    }
    case POSITION:
        memcpy(slot, dwords, 4 * count);
        *length = *length > count ? *length : count;
        break;
    }
    latches->counts[rule->slot]++;
}

/* One command by its rule; `count` is between the rule's least and most. */
void latch_one(const struct rule_table *table, uint32_t rule, struct latches *latches, const uint32_t *dwords, uint32_t count)
{
    latch(table, &table->rules[rule], latches, dwords, count);
}

const struct latch_rule *rule_for(const struct rule_table *table, uint32_t header)
{
    for (uint32_t number = table->keys[header >> 16]; number != UNKNOWN; number = table->rules[number].next)
        if ((header & table->rules[number].mask) == table->rules[number].value)
            return &table->rules[number];
    return 0;
}

uint32_t latched_length(const struct latch_rule *rule, const struct latches *latches, uint32_t header, const uint32_t *dwords, uint64_t most)
{
    uint32_t length = (header >> rule->length_low & rule->length_mask) + rule->bias;
    if (rule->stops || rule->slot >= latches->slot_count || length < rule->least || length > rule->most || length > most)
        return 0;
    return rule->acts_mask && dwords[rule->acts_dword] & rule->acts_mask ? 0 : length;
}

/* Consecutive state commands, `limit` at most. Returns how many. */
uint32_t latch_run(const struct rule_table *table, struct latches *latches, const uint32_t *dwords, uint32_t count, uint32_t limit)
{
    uint32_t at = 0, done = 0, last = 0;
    while (done < limit && at < count) {
        const struct latch_rule *rule = rule_for(table, dwords[at]);
        uint32_t length = rule ? latched_length(rule, latches, dwords[at], dwords + at, count - at) : 0;
        if (!length)
            break;
        latch(table, rule, latches, dwords + at, length);
        last = at;
        at += length;
        done++;
    }
    latches->consumed = at;
    latches->last = last;
    return done;
}
