/* Flushes with what they write afterwards, and MI_STORE_DATA_IMM, in a walk over a batch.
 *
 * A flush is executed here if Python has executed one that differs in address and data alone, and it breaks no rule in the state that the
 * context is in; Python looks at rules once for each kind (write_actors.py). Nothing is changed before the write, which may be to memory
 * that is not mapped: Python executes such a command again from its start. */
#include "write_actors.h"

#include "../memory/graphics_memory.h"
#include "../walk.h"

#define EXPORT __attribute__((visibility("default")))

enum { QWORD = 8 };

static uint8_t *written(const struct write_places *at, uint64_t mask, const struct walk *w, const uint32_t *dwords, uint32_t count)
{
    uint64_t address = dwords[at->address_dword];
    if (at->address_dword + 1 < count)
        address |= (uint64_t)dwords[at->address_dword + 1] << 32;
    return graphics_memory(w->memory, address & at->address_bits & mask);
}

/* Eight bytes, at once where they are aligned: programs wait for such values. */
static void write_qword(uint8_t *to, uint64_t value)
{
    if ((uintptr_t)to % QWORD)
        memcpy(to, &value, QWORD);
    else
        __atomic_store_n((uint64_t *)to, value, __ATOMIC_RELEASE);
}

static const struct flush_kind *kind_of(const struct flush_kinds *known, const uint32_t *dwords, uint32_t count)
{
    uint32_t controls = count > 1 ? dwords[1] & known->control_mask : 0;
    for (const struct flush_kind *kind = known->kinds; kind < known->kinds + known->count; kind++)
        if (kind->header == dwords[0] && kind->controls == controls)
            return kind;
    return 0;
}

EXPORT int64_t flush_act(void *state, struct walk *w, const uint32_t *dwords, uint32_t count)
{
    struct walked_flushes *f = state;
    const struct flush_kinds *known = f->known;
    const struct flush_kind *kind = kind_of(known, dwords, count);
    uint32_t unflushed = f->unflushed || w->work != f->work, data = known->places.data_dword;
    if (!kind || !(kind->allowed >> (2 * f->pipeline + unflushed) & 1))
        return ACTOR_REFUSES;
    if (kind->effects & FLUSH_WRITES) {
        uint64_t value = (data < count ? dwords[data] : 0) | (data + 1 < count ? (uint64_t)dwords[data + 1] << 32 : 0);
        write_qword(written(&known->places, f->address_mask, w, dwords, count), value);
        f->rereads = 1;
    }
    f->earlier = (w->work != f->work ? 0 : f->earlier) | kind->earlier;
    f->work = w->work;
    f->unflushed = unflushed;
    if (kind->effects & FLUSH_STALLS) {
        f->rereads |= unflushed;
        f->unflushed = 0;
    }
    if (kind->effects & FLUSH_REREADS)
        f->rereads = 1;
    f->flushes++;
    return ++w->in_a_row >= WALK_AT_ONCE ? ACTOR_TIME : ACTOR_DONE;
}

EXPORT int64_t store_act(void *state, struct walk *w, const uint32_t *dwords, uint32_t count)
{
    struct walked_stores *s = state;
    if (dwords[0] & s->refused || count <= s->places.data_dword)
        return ACTOR_REFUSES;
    const uint32_t *data = dwords + s->places.data_dword;
    memcpy(written(&s->places, s->address_mask, w, dwords, s->places.data_dword), data, 4 * (count - s->places.data_dword));
    s->stores++;
    return ++w->in_a_row >= WALK_AT_ONCE ? ACTOR_TIME : ACTOR_DONE;
}
