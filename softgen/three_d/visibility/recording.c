/* OVR: which objects SETUP has left anything of. */
#include "recording.h"

#include "../clip_setup/geometry.h"
#include "../draw/draw.h"

/* Sets the bits of the objects that have records. */
EXPORT int64_t stage_record_visibility(struct draw *d, struct stage *s, void *record)
{
    struct visibility_plan *into = s->plan;
    const struct record_array *array = d->records;
    (void)record;
    for (uint64_t i = 0; i < array->count; i++) {
        uint32_t number = array->records[i].primitive;
        if (number < into->count)
            into->bits[number / 8] |= (uint8_t)(1u << number % 8);
    }
    return STAGE_EMPTY;
}
