/* MFD_MPEG2_BSD_OBJECT in a walk over a batch: slices of the open picture, but for its first and last, which Python executes.
 *
 * A slice is left to Python as long as nothing of it is decoded, where its data is not all there. */
#include <time.h>

#include "../../../memory/graphics_memory.h"
#include "mpeg2.h"

static uint64_t field(const uint32_t *dwords, const struct mpeg2_place *place)
{
    uint64_t value = dwords[place->dword];
    if (place->mask > UINT32_MAX >> place->shift)
        value |= (uint64_t)dwords[place->dword + 1] << 32;
    return value >> place->shift & place->mask;
}

static uint64_t now_in_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Whether the object's data is in the room: all of it, as far as its bounds say. It may be left at memory that is not mapped. */
static int take_data(const struct mpeg2_walked *s, const uint32_t *bases, const uint32_t *dwords, struct bits *bits)
{
    const struct graphics *memory = &s->parameters->picture->memory;
    uint64_t start = (field(bases, &s->base) + field(dwords, &s->start)) & memory->address_mask, end = field(bases, &s->upper_bound);
    uint64_t length = field(dwords, &s->length);
    if (length > s->room_size || (end && start + length > end) || (start & UINT32_MAX) + length > UINT32_MAX)
        return 0;
    memcpy(s->room, graphics_memory(memory->table, start), length);
    memset(s->room + length, 0, STREAM_PADDING);
    *bits = (struct bits){s->room, length, field(dwords, &s->bit_offset)};
    return 1;
}

ENTRY int64_t mpeg2_act(void *state, struct walk *w, const uint32_t *dwords, uint32_t count)
{
    struct mpeg2_walked *s = state;
    struct mpeg2_slice slice = *s->parameters;
    uint64_t began = now_in_nanoseconds();
    (void)count;
    s->begun = 0;
    if (field(dwords, &s->last) || !take_data(s, w->latches->slots + s->bases, dwords, &slice.bits))
        return ACTOR_REFUSES;
    slice.row = (uint32_t)field(dwords, &s->row);
    slice.quantiser_code = (uint32_t)field(dwords, &s->quantiser);
    s->begun = 1;
    s->slices++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* that is in memory before the first reference is read */
    mpeg2_decode(&slice, w->record);
    uint64_t now = now_in_nanoseconds();
    s->nanoseconds += now - began;
    w->in_a_row = 0;
    return now >= w->deadline ? ACTOR_TIME : ACTOR_DONE;
}
