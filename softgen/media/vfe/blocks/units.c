/* Coefficient units: value in bits 31:16, raster index in 6:1, end of block in 0; and inverse scan mode, which only places them. */
#include <string.h>

#include "blocks.h"

int read_units(struct units *u, int32_t *block, unsigned size)
{
    memset(block, 0, size * sizeof *block);
    for (;;) {
        if (u->at >= u->count)
            return UNITS_END;
        uint32_t unit = u->data[u->at++], index = unit >> 1 & 63;
        if (index >= size)
            return BAD_INDEX;
        block[index] = (int16_t)(unit >> 16);
        if (unit & 1)
            return FINE;
    }
}

ENTRY int64_t scan_blocks(struct scan_macroblock *m)
{
    int32_t block[SAMPLES];
    for (unsigned number = 0; number < BLOCKS; number++) {
        if (!(m->pattern >> (5 - number) & 1))
            continue;
        int wrong = read_units(&m->units, block, SAMPLES);
        if (wrong)
            return wrong;
        for (int i = 0; i < SAMPLES; i++)
            m->out[SAMPLES * m->written + (unsigned)i] = (int16_t)block[i];
        m->written++;
    }
    return FINE;
}

ENTRY int blocks_layout(uint64_t *numbers)
{
    const uint64_t sizes[] = {sizeof(struct scan_macroblock), sizeof(struct avc_macroblock), sizeof(struct vc1_macroblock)};
    int count = sizeof sizes / sizeof *sizes;
    for (int i = 0; i < count; i++)
        numbers[i] = sizes[i];
    return count;
}
