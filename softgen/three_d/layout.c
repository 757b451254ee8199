/* Sizes and offsets of the structures, for a check against structures.py. */
#include "three_d.h"

#include <stddef.h>
#include <string.h>

EXPORT int64_t three_d_layout(uint64_t *into)
{
    uint64_t sizes[] = {sizeof(struct position), sizeof(struct vertex_array), sizeof(struct object), sizeof(struct object_array),
                        sizeof(struct setup_record), sizeof(struct record_array), sizeof(struct bins), sizeof(struct pixel_dispatch),
                        offsetof(struct setup_record, attributes), offsetof(struct pixel_dispatch, depth),
                        offsetof(struct pixel_dispatch, antialias)};
    memcpy(into, sizes, sizeof sizes);
    return sizeof sizes / sizeof *sizes;
}
