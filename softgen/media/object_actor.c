/* Media objects in a walk over a batch: their inline data is put aside, so that all their threads start together (object_actor.py). */
#include "object_actor.h"

#include <string.h>

#include "../walk.h"

#define EXPORT __attribute__((visibility("default")))

static int same(const uint32_t *a, const uint32_t *b, uint32_t count)
{
    return !memcmp(a, b, count * sizeof *a);
}

EXPORT int64_t object_act(void *state, struct walk *w, const uint32_t *dwords, uint32_t count)
{
    struct walked_objects *o = state;
    if (count != o->fixed_count + o->inline_count || !same(dwords, o->fixed, o->fixed_count))
        return ACTOR_REFUSES;
    memcpy(o->data + o->objects++ * o->row, dwords + o->fixed_count, o->inline_count * sizeof *dwords);
    o->used = w->collected = 1;
    w->in_a_row = 0;
    return o->objects == o->room ? ACTOR_TIME : ACTOR_DONE;
}

EXPORT int64_t object_flush_act(void *state, struct walk *w, const uint32_t *dwords, uint32_t count)
{
    struct walked_objects *o = state;
    if (count != 2 || !same(dwords, o->flush, 2))
        return ACTOR_REFUSES;
    o->flushes++;
    o->used = 0;
    return ++w->in_a_row >= WALK_AT_ONCE ? ACTOR_TIME : ACTOR_DONE;
}

EXPORT void object_write(const struct object_writer *w, uint64_t first, uint64_t count, uint8_t *blocks, uint64_t stride, uint32_t *masks)
{
    (void)masks;
    const uint8_t *data = w->data + first * w->data_bytes;
    for (uint64_t i = 0; i < count; i++, blocks += stride, data += w->data_bytes) {
        memcpy(blocks, w->header, sizeof w->header);
        if (w->constant_bytes)
            memcpy(blocks + sizeof w->header, w->constants, w->constant_bytes);
        memcpy(blocks + sizeof w->header + w->constant_bytes, data, w->data_bytes);
    }
}
