/* OVR: which objects of a draw are visible. */
#ifndef SOFTGEN_RECORDING_H
#define SOFTGEN_RECORDING_H

#include <stdint.h>

/* A bit for each object of an instance, by its number. */
struct visibility_plan {
    uint8_t *bits;
    uint64_t count; /* of objects that there is room for */
};

#endif
