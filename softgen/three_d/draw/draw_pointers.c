/* State that pointers lead to: whether it is what a record was made from, wherever it is now, and what of it is copied into the record. */
#include "draw.h"

#include <string.h>

enum { ADDRESS = 0xffffffff }; /* bits of an address, where state is in blocks that pointers lead to */

static uint64_t address_of(const struct state_pointer *p, const struct draw *d)
{
    uint32_t value;
    if (p->parent)
        memcpy(&value, graphics_memory(d->memory, (d->addresses[p->parent - 1] + p->offset) & ADDRESS), sizeof value);
    else
        value = d->latches->slots[p->offset];
    return (d->bases[p->base] + (value & p->mask)) & ADDRESS;
}

/* Pointers are followed in their order, and what they lead to is compared at once: one of another state may lead anywhere. */
int same_pointed(const struct draw_record *p, struct draw *d)
{
    const struct pointed_range *range = p->ranges, *ranges_end = p->ranges + p->range_count;
    const struct pointed_bits *bits = p->pointed_bits, *bits_end = p->pointed_bits + p->pointed_bits_count;
    if (p->part_count && !d->curbe)
        return 0;
    for (uint32_t i = 0; i < p->pointer_count; i++) {
        uint64_t address = d->addresses[i] = address_of(&p->pointers[i], d);
        for (; bits < bits_end && bits->pointer == i; bits++) {
            uint32_t value;
            memcpy(&value, graphics_memory(d->memory, (address + bits->offset) & ADDRESS), sizeof value);
            if ((value & bits->mask) != bits->value)
                return 0;
        }
        for (; range < ranges_end && range->pointer == i; range++)
            if (memcmp(graphics_memory(d->memory, (address + range->offset) & ADDRESS), range->data, range->size))
                return 0;
    }
    return 1;
}

static void copy_part(const struct curbe_part *part, const struct draw *d)
{
    uint64_t there = d->curbe_size > part->first ? d->curbe_size - part->first : 0;
    uint64_t size = there < part->size ? there : part->size; /* past the end is undefined (G45 1575): zero here */
    memcpy(part->into, d->curbe + part->first, size);
    memset(part->into + size, 0, part->size - size);
}

void apply_pointed(struct draw *d)
{
    const struct draw_record *p = d->found;
    for (const struct pointer_copy *c = p->copies; c < p->copies + p->copy_count; c++) {
        uint64_t offset = d->addresses[c->pointer] - d->bases[p->pointers[c->pointer].base];
        *c->into = ((uint32_t)offset & c->mask) + c->add;
    }
    for (const struct curbe_part *part = p->parts; part < p->parts + p->part_count; part++)
        copy_part(part, d);
}
