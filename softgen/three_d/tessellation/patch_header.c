/* What payloads of HS and DS threads have in common: r0, constants, and data of entries after them. */
#include "tessellation.h"

#include "../../threads/native/threads.h"

#include <string.h>

enum { SCRATCH_DWORD = 5 };

/* r0 and constants; registers between them are zero. */
void write_patch_header(const struct patch_header *h, uint8_t *payload, uint32_t slot)
{
    uint32_t scratch = h->header[SCRATCH_DWORD] + slot * h->scratch_step + (slot & h->thread_mask);
    memcpy(payload, h->header, sizeof h->header);
    memcpy(payload + 4 * SCRATCH_DWORD, &scratch, sizeof scratch);
    if (h->constant_offset > sizeof h->header)
        memset(payload + sizeof h->header, 0, h->constant_offset - sizeof h->header);
    if (h->constant_bytes)
        memcpy(payload + h->constant_offset, h->constants, h->constant_bytes);
}

/* Whether a payload with a fixed part and data of so many bytes is in a thread's registers. */
int patch_header_fits(const struct patch_header *h, uint64_t fixed, uint64_t data)
{
    uint64_t constants = (uint64_t)h->constant_offset + h->constant_bytes;
    return fixed <= THREADS_PAYLOAD && constants <= THREADS_PAYLOAD && h->data_offset + data <= THREADS_PAYLOAD;
}

/* Bytes of an entry; past its end they are undefined: zero here. */
void read_entry(uint8_t *into, const uint8_t *entry, uint64_t stride, uint32_t offset, uint32_t bytes)
{
    uint64_t there = stride > offset ? stride - offset : 0;
    uint64_t size = there < bytes ? there : bytes;
    memcpy(into, entry + offset, size);
    memset(into + size, 0, bytes - size);
}
