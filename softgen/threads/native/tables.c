/* Binding tables of dispatches that come again: the surface states that they lead to, wherever those are. */
#include "../../memory/graphics_memory.h"

#include "scheduler.h"

/* What is read, and where to (threads/native/tables.py has the same). */
struct table_reader {
    const uint64_t *memory; /* graphics_memory */
    const struct memory_range *program; /* the kernel, which has to be as it was */
    uint64_t table, base; /* where the table is, from the address on that its entries count from, too */
    uint64_t address_bits, pointer_bits; /* of the space; of an entry */
    const uint32_t *indices; /* of the entries */
    uint64_t count;
    uint64_t size; /* of a surface state */
    uint8_t *states;
};

uint64_t threads_table_layout(void)
{
    return sizeof(struct table_reader);
}

/* Copies the surface states; 0 where the kernel is another one. Runs under the guard: it is left at a page that is not mapped. */
int64_t threads_read_table(const struct table_reader *r, void *record)
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
