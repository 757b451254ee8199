/* The rules by which state commands are latched: latch_rules.py makes them from the pages, latch.c latches by them. */
#ifndef SOFTGEN_LATCH_RULES_H
#define SOFTGEN_LATCH_RULES_H

#include <stdint.h>

enum { KEYS = 0x10000, UNKNOWN = 0xffff }; /* keys are header >> 16; UNKNOWN: no rule for the key yet */
enum { MOST_PARTS = 3 };                   /* fields that an index is made of */
enum { GATED = 64 };                       /* dwords of the longest command or element with gates */

enum { STOP, REPLACE, ELEMENTS, RECORDS, GATES, MASK, POSITION }; /* kinds of rules */

/* A field that is part of an item's index. */
struct index_part {
    uint32_t dword, low, width;
};

/* While none of `bits` is set, the bits of `mask` keep their latched values. */
struct gate {
    uint32_t bit_dword, bits, dword, mask;
};

/* The rule of a command. */
struct latch_rule {
    uint32_t mask, value;                     /* the headers it is for */
    uint32_t next;                            /* the rule to try when the header does not match; UNKNOWN: none */
    uint32_t kind, stops;                     /* stops: latch_run leaves the command to its handler */
    uint32_t actor;                           /* the number of its actor in a walk (walk.h); 0: it has none */
    uint32_t length_low, length_mask, bias;   /* dwords: (header >> low & mask) + bias */
    uint32_t least, most;                     /* dwords the page allows */
    uint32_t slot, offset, size;              /* its number, where its first dword is, dwords of an item */
    uint32_t first;                           /* ELEMENTS: dword of the first element */
    uint32_t parts;
    struct index_part part[MOST_PARTS];       /* ELEMENTS, RECORDS: the item's index, the lowest bits first */
    uint32_t acts_dword, acts_mask;           /* a bit set here makes the command act */
    uint32_t gates, gate_count;
    uint32_t mask_dword, mask_low, mask_bits; /* MASK: the field whose ones select the low bits of its dword that change */
};

/* The rules of one engine's commands. */
struct rule_table {
    const uint16_t *keys; /* the first rule by header >> 16 */
    const struct latch_rule *rules;
    const struct gate *gates;
};

#endif
