/* Streams: what stands between their bytes and their bits (reader.h). */
#include "reader.h"

uint64_t remove_emulation(uint8_t *to, const uint8_t *from, uint64_t size)
{
    uint64_t done = 0;
    unsigned zeros = 0;
    for (uint64_t i = 0; i < size; i++) {
        if (zeros >= 2 && from[i] == 3) {
            zeros = 0;
            continue;
        }
        zeros = from[i] ? 0 : zeros + 1;
        to[done++] = from[i];
    }
    return done;
}
