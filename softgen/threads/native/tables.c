/* Binding tables of dispatches that come again: the surface states that they lead to, wherever those are. */
#include "tables.h"

/* Copies the surface states; 0 where the kernel is another one. Runs under the guard: it is left at a page that is not mapped. */
int64_t threads_read_table(const struct reader_record *r, void *record)
{
    (void)record;
    if (!same_memory(r->memory, r->program))
        return 0;
    for (uint64_t i = 0; i < r->count; i++) {
        uint32_t entry;
        memcpy(&entry, graphics_memory(r->memory, (r->base + r->table + 4 * (uint64_t)r->indices[i]) & r->address_bits), sizeof entry);
        memcpy(r->states + i * r->size, graphics_memory(r->memory, (r->base + (entry & r->pointer_bits)) & r->address_bits), r->size);
    }
    return 1;
}
