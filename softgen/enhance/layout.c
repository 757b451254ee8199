/* The sizes of the structures that Python fills, for native.py to check. */
#include "enhance.h"

ENTRY int enhance_layout(uint64_t *numbers)
{
    const uint64_t sizes[] = {sizeof(struct enhance_surface), sizeof(struct enhance_frame), sizeof(struct transfer), sizeof(struct resampling),
                              sizeof(struct colour_matrix), sizeof(struct denoising), sizeof(struct deinterlacing),
                              sizeof(struct scaled_plane)};
    int count = sizeof sizes / sizeof *sizes;
    for (int i = 0; i < count; i++)
        numbers[i] = sizes[i];
    return count;
}
