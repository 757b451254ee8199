/* Graphics memory of bytecode programs: addresses through the table of an address space, and the note before an access. */
#ifndef SOFTGEN_BYTECODE_MEMORY_H
#define SOFTGEN_BYTECODE_MEMORY_H
#include "bytecode.h"

/* Bits of the first word of the note before an access, which has the mask of its lanes below them (lanes/llvm/access.py). */
enum {
    NOTE_WIDE = 32,  /* offsets have 64 bits */
    NOTE_TABLE,      /* addresses go through the table of an address space */
    NOTE_BLOCK,      /* without lanes */
    NOTE_ATOMIC,
    NOTE_CONTIGUOUS, /* lanes, from the base on */
    NOTE_UNIFORM,    /* all lanes at the base */
    SIZE_SHIFT = 40, /* bytes of a lane */
};

/* Graphics memory, as an operation accesses it. */
struct graphics_region {
    const u64 *table;
    u64 *note;
    u64 base, mask;
};

static inline u8 *host(const struct graphics_region *region, u64 address) {
    return (u8 *)(uintptr_t)(region->table[address >> 32] + (address & 0xFFFFFFFF));
}

static inline u64 offset_at(const u8 *offsets, unsigned lane, u32 flags) {
    return flags & WIDE_OFFSETS ? ((const u64 *)offsets)[lane] : ((const u32 *)offsets)[lane];
}

/* Write the note of an access, with the addresses of lanes; returns the lanes that are on. */
static inline u64 note_lanes(const struct graphics_region *region, const u8 *offsets, u32 flags, const u8 *mask, unsigned lanes, unsigned size) {
    u64 on = 0;
    for (unsigned i = 0; i < lanes; i++) {
        region->note[2 + i] = (region->base + offset_at(offsets, i, flags)) & region->mask;
        on |= (u64)(mask ? mask[i] : 1) << i;
    }
    region->note[0] = on | 1ull << NOTE_WIDE | 1ull << NOTE_TABLE | (u64)size << SIZE_SHIFT;
    region->note[1] = 0;
    __asm__ volatile("" ::: "memory"); /* an access may fault, and then the note is read */
    return on;
}

static inline u8 *note_block(const struct graphics_region *region, u64 offset, u64 size) {
    u64 address = (region->base + offset) & region->mask;
    region->note[0] = 1ull << NOTE_TABLE | 1ull << NOTE_BLOCK | size << SIZE_SHIFT;
    region->note[1] = address;
    __asm__ volatile("" ::: "memory");
    return host(region, address);
}
#endif
