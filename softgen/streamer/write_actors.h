/* The actors of flushes and of stores of immediate data in a walk over a batch (write_actors.c). */
#ifndef SOFTGEN_WRITE_ACTORS_H
#define SOFTGEN_WRITE_ACTORS_H

#include <stdint.h>

enum { FLUSH_KINDS = 64 };
enum { FLUSH_STALLS = 1, FLUSH_WRITES = 2, FLUSH_REREADS = 4 }; /* rereads: commands may have changed */

/* Where a command has an address and the data that it writes there. */
struct write_places {
    uint32_t address_dword, data_dword;
    uint64_t address_bits;
};

/* Flushes that differ in nothing but address and data, of which Python has executed one. */
struct flush_kind {
    uint32_t header, controls; /* their first dword, and the second one under the mask */
    uint32_t effects;          /* FLUSH_ bits */
    uint32_t allowed;          /* bit 2 * pipeline + unflushed: it breaks no rule */
    uint32_t earlier;          /* fields of rules that it has set, a bit each */
};

/* The kinds of one command on one engine. */
struct flush_kinds {
    uint32_t control_mask, count;
    struct write_places places;
    struct flush_kind kinds[FLUSH_KINDS];
};

/* Flushes of a streamer in a walk. */
struct walked_flushes {
    const struct flush_kinds *known;
    uint64_t address_mask;       /* bits of the space's addresses */
    uint32_t pipeline;           /* the selected one's number in `allowed` */
    uint32_t unflushed, earlier; /* of the context, as of the last flush; */
    uint64_t work;               /* draws that the walk had begun then */
    /* results */
    uint64_t flushes;
    uint32_t rereads; /* what was read ahead may have changed */
};

/* Stores of immediate data of a streamer in a walk. */
struct walked_stores {
    uint32_t refused; /* bits of the first dword that leave the command to Python */
    struct write_places places;
    uint64_t address_mask;
    /* results */
    uint64_t stores;
};

#endif
