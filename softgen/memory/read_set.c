/* Comparison of a read set with memory. */
#include "read_set.h"

#include "graphics_memory.h"

/* 1 if all ranges hold what they did, at the bases as they are now. Runs under the guard: it is left at a page that is not mapped, which a
 * pointer of other state may lead to. */
int64_t read_set_same(struct memory_reads *s, void *record)
{
    (void)record;
    for (uint32_t i = 0; i < s->pointer_count; i++) {
        const struct based_pointer *p = &s->pointers[i];
        uint64_t address = s->bases[p->parent] + p->offset;
        uint32_t value = 0;
        if (address + sizeof value <= s->end)
            memcpy(&value, graphics_memory(s->table, address & s->wrap), sizeof value);
        s->bases[s->base_count + i] = (s->bases[p->base] + (value & p->mask)) & s->wrap;
    }
    for (const struct based_range *r = s->ranges; r < s->ranges + s->range_count; r++)
        if (memcmp(graphics_memory(s->table, (s->bases[r->base] + r->offset) & s->wrap), r->data, r->size))
            return 0;
    return 1;
}
