/* Whether memory still holds what plans were made from (plan_cache.py). */
#include <stdint.h>
#include <string.h>

#include "three_d.h"

struct memory_range {
    uint64_t address, size;
    const void *data; /* what was there */
};

struct memory_check {
    const uint64_t *table; /* host bases of the address space's 4 GiB parts */
    const struct memory_range *ranges;
    uint64_t count;
};

/* 1 if all ranges hold what they did. Runs under the guard: it is left at a page that is no longer mapped. */
EXPORT int64_t memory_same(const struct memory_check *check, void *record)
{
    (void)record;
    for (uint64_t i = 0; i < check->count; i++) {
        const struct memory_range *range = &check->ranges[i];
        const uint8_t *host = (const uint8_t *)check->table[range->address >> 32] + (uint32_t)range->address;
        if (memcmp(host, range->data, range->size))
            return 0;
    }
    return 1;
}
