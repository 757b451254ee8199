/* A depth_function (three_d.h) for tests: pixels nearer than a limit pass. It reads graphics memory first, as real ones do. */
#include "three_d.h"

#include "../eu/native.h" /* softgen/three_d is searched */

struct target { uint64_t address; float limit; };

uint32_t test_depth(void *context, void *target, struct depth_block *block)
{
    const struct context_head *c = context;
    const struct target *t = target;
    volatile const uint8_t *memory = graphics_memory((const uint64_t *)c->table, t->address);
    uint32_t passed = 0, read = *memory;
    for (uint32_t i = 0; i < 16; i++)
        passed |= (uint32_t)(block->z[i] < t->limit) << i;
    return read == 77 ? passed & block->mask : 0;
}
