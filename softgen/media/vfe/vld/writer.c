/* Payloads of macroblock threads for a dispatch (threads_writer of threads.h): r0, constants, then what a slice has for each. */
#include <stdint.h>
#include <string.h>

#include "vld.h"

struct vld_payload {
    uint32_t number; /* the debug counter, in r0.6 */
    uint32_t bytes;
    const uint8_t *data;
};

struct vld_writer {
    uint8_t header[32];
    const uint8_t *constants;
    uint64_t constant_bytes;
    const struct vld_payload *payloads;
};

ENTRY void vld_write(const struct vld_writer *w, uint64_t first, uint64_t count, uint8_t *blocks, uint64_t stride, uint32_t *masks)
{
    (void)masks;
    for (uint64_t i = 0; i < count; i++, blocks += stride) {
        const struct vld_payload *p = &w->payloads[first + i];
        memcpy(blocks, w->header, sizeof w->header);
        memcpy(blocks + 24, &p->number, sizeof p->number);
        if (w->constant_bytes)
            memcpy(blocks + 32, w->constants, w->constant_bytes);
        memcpy(blocks + 32 + w->constant_bytes, p->data, p->bytes);
    }
}

ENTRY int vld_layout(uint64_t *numbers)
{
    const uint64_t sizes[] = {sizeof(struct vld_slice), sizeof(struct vld_thread), sizeof(struct vld_payload), sizeof(struct vld_writer)};
    int count = sizeof sizes / sizeof *sizes;
    for (int i = 0; i < count; i++)
        numbers[i] = sizes[i];
    return count;
}
