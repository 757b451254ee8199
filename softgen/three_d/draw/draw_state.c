/* State of draws: whether it is what a record was made from, and what of it is copied into the record. */
#include "draw.h"

#include "../vertices/assembly.h"

#include <stddef.h>
#include <string.h>

enum { POINTER_BITS = 0xffffffe0 }; /* of a binding table, in a payload's header */

/* -- comparing ----------------------------------------------------------------------------------------------------------------------- */

static int same_commands(const struct draw_record *p, const struct latches *l)
{
    for (const struct latched_command *c = p->commands; c < p->commands + p->command_count; c++) {
        uint32_t latched = c->slot < l->slot_count && l->counts[c->slot];
        if (latched != c->latched)
            return 0;
        if (latched && ((c->length && l->lengths[c->slot] != c->length) || l->present[c->slot] != c->present))
            return 0;
    }
    for (const struct latched_bits *b = p->bits; b < p->bits + p->bits_count; b++)
        if ((l->slots[b->offset] & b->mask) != b->value)
            return 0;
    for (const struct latched_dwords *r = p->dwords; r < p->dwords + p->dwords_count; r++)
        if (memcmp(l->slots + r->offset, r->data, 4 * (uint64_t)r->count))
            return 0;
    return 1;
}

/* Bytes that a binding table has moved by. */
static uint64_t moved_by(const struct stage_table *t, const struct latches *l)
{
    return ((uint64_t)(l->slots[t->offset] & t->mask) - t->pointer) * t->scale;
}

static int same_table(const struct stage_table *t, const struct draw *d)
{
    uint64_t base = d->bases[BASE_SURFACE], address = base + t->table + moved_by(t, d->latches);
    for (const struct table_entry *e = t->entries; e < t->entries + t->count; e++) {
        uint32_t value;
        memcpy(&value, graphics_memory(d->memory, (address + 4 * e->index) & d->wrap), sizeof value);
        uint64_t surface = (base + (value & t->surface_mask)) & d->wrap;
        if (e->size ? memcmp(graphics_memory(d->memory, surface), e->surface, e->size) : value != e->value)
            return 0;
    }
    return 1;
}

/* Bytes that a block of state has moved by. */
static uint32_t block_moved_by(const struct state_block *b, const struct latches *l)
{
    return (l->slots[b->offset] & b->mask) - b->pointer;
}

static int same_block(const struct state_block *b, const struct draw *d)
{
    uint64_t moved = d->bases[BASE_DYNAMIC] + (d->latches->slots[b->offset] & b->mask) - b->pointer;
    for (const struct memory_range *r = b->ranges; r < b->ranges + b->range_count; r++)
        if (memcmp(graphics_memory(d->memory, (r->address + moved) & d->wrap), r->data, r->size))
            return 0;
    return 1;
}

/* Whether all is the same but surfaces. */
static int same_shape(const struct draw_record *p, struct draw *d)
{
    if (p->topology != d->topology || p->indexed != d->indexed)
        return 0;
    if (p->fixed_start
        && (p->start_vertex != d->start_vertex || p->start_instance != d->start_instance || p->base_vertex != d->base_vertex))
        return 0;
    for (uint32_t base = 0; base < DRAW_BASES; base++)
        if (p->fixed_bases >> base & 1 && p->bases[base] != d->bases[base])
            return 0;
    if (!same_commands(p, d->latches))
        return 0;
    if (p->pointer_count && !same_pointed(p, d))
        return 0;
    for (uint32_t i = 0; i < p->host_count; i++)
        if ((uint64_t)graphics_memory(d->memory, p->hosts[i].address) != p->hosts[i].host)
            return 0;
    for (uint32_t i = 0; i < p->block_count; i++)
        if (!same_block(&p->blocks[i], d))
            return 0;
    for (uint32_t i = 0; i < p->program_count; i++)
        if (!same_memory(d->memory, p->programs[i]))
            return 0;
    for (uint32_t i = 0; i < p->memory_count; i++)
        if (!same_memory(d->memory, &p->memory[i]))
            return 0;
    return 1;
}

static int same_state(const struct draw_record *p, struct draw *d)
{
    if (!same_shape(p, d))
        return 0;
    for (uint32_t i = 0; i < p->table_count; i++)
        if (!same_table(&p->tables[i], d))
            return 0;
    return 1;
}

/* The record for the state as it is now; 0 if there is none. Pointers of a record for another state may lead anywhere: after a fault,
 * d->compared says with which record to go on. */
int find_draw(struct draw *d)
{
    struct draw_record *before = d->previous, *expected = !d->compared && before ? before->after : NULL;
    d->compared += !d->compared;
    d->found = NULL;
    if (expected && same_state(expected, d)) /* frames repeat the order of their draws */
        d->found = expected;
    else {
        uint64_t i;
        do {
            i = d->compared - 1;
            if (i == d->draw_count)
                return 0;
            d->compared++;
        } while (!same_state(d->draws[i], d));
        d->found = d->draws[i];
        memmove(d->draws + 1, d->draws, i * sizeof *d->draws); /* those used last come first */
        d->draws[0] = d->found;
    }
    if (before)
        before->after = d->found;
    d->previous = d->found;
    return 1;
}

/* Finds the next record, from d->compared on, that is for the state as it is now but for its surfaces: one that follows them, or else any.
 * 0 if there is none. Runs under the guard, as find_draw. */
EXPORT int64_t draw_shape(struct draw *d, void *record)
{
    (void)record;
    d->found = NULL;
    while (d->compared < d->draw_count && !(d->found && d->found->follows)) {
        struct draw_record *p = d->draws[d->compared++];
        if ((p->follows || !d->found) && same_shape(p, d))
            d->found = p;
    }
    return d->found != NULL;
}

/* -- values that change from draw to draw -------------------------------------------------------------------------------------------- */

static uint64_t pointer_in(const struct latched_pointer *p, const struct latches *l)
{
    uint64_t value = l->slots[p->offset];
    if (p->dwords > 1)
        value |= (uint64_t)l->slots[p->offset + 1] << 32;
    return p->base + (value & p->mask);
}

/* Bytes of a buffer up to its last one; none where that is before its first. */
static uint64_t size_to(uint64_t last, uint64_t address)
{
    return last + 1 > address ? last + 1 - address : 0;
}

static void begin_assembly(struct draw *d)
{
    const struct draw_record *p = d->found;
    struct assembly *a = d->assembly;
    memcpy(a, p->assembly_plan, offsetof(struct assembly, ids));
    memset(&a->position, 0, offsetof(struct assembly, stamp) - offsetof(struct assembly, position)); /* not the cache: stamps go on */
    a->held.valid = 0;
    a->vertices_seen = a->objects_made = 0;
    a->vertices = d->vertices;
    a->instances = d->instances;
    a->first_index = d->start_vertex;
    a->next = a->minimum;
    if (p->index_source) {
        a->index_address = pointer_in(&p->index_pointer, d->latches);
        uint64_t end = d->latches->slots[p->index_size_offset];
        a->index_size = !p->index_end ? end : !end ? UINT64_MAX : size_to(end, a->index_address); /* G45 2028 */
    }
}

/* Copies values of commands and constants into the plans of the record. */
void apply_state(struct draw *d)
{
    const struct draw_record *p = d->found;
    const struct latches *l = d->latches;
    begin_assembly(d);
    p->fetch->bias = d->indexed ? d->base_vertex : d->start_vertex;
    p->fetch->start_instance = d->start_instance;
    for (const struct vertex_source *s = p->sources; s < p->sources + p->source_count; s++) {
        s->element->address = pointer_in(&s->pointer, l);
        if (s->index_offset)
            s->element->max_index = l->slots[s->index_offset] ? l->slots[s->index_offset] : UINT32_MAX; /* 0: no check (G45 2141-2143) */
        else
            s->element->size = s->end_offset ? size_to(l->slots[s->end_offset], s->element->address) : l->slots[s->size_offset];
    }
    for (const struct stage_table *t = p->tables; t < p->tables + p->table_count; t++)
        *t->header = (uint32_t)(t->table + moved_by(t, l)) & POINTER_BITS;
    for (const struct state_block *b = p->blocks; b < p->blocks + p->block_count; b++)
        for (const struct moved_value *v = b->values; v < b->values + b->value_count; v++)
            *v->place = v->value + block_moved_by(b, l);
    for (const struct constant_range *c = p->constants; c < p->constants + p->constant_count; c++)
        memcpy(c->into, graphics_memory(d->memory, pointer_in(&c->pointer, l)), c->size);
    apply_pointed(d);
}
