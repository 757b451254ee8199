/* Assembly of bytecode programs (program.py): leaves out operations whose results are not read, gives values places in the frame, and encodes
   operands. */
#include "assembly.h"
#include <stdlib.h>
#include <string.h>

enum { SIZES = 64, WORD = 8, LINE = 64, SMALLEST = 16 };
enum { ASSEMBLED, NO_MEMORY };

struct place {
    i64 at;                             /* in the frame; -1: none yet */
    i64 last;                           /* operation that reads it last; -1: none does */
    u64 next;                           /* place that dies at the same operation, or is free and as large; 0: none */
};

struct work {
    struct place *places;
    u64 *dying;                         /* by operation: the first place that is free after it */
    u64 *following;                     /* by operation as written: the first one from it on that is used */
    u64 free[SIZES];                    /* by the logarithm of a size */
};

static u64 place_of(u64 slot) { return slot >> SLOT_SHIFT; }

static void read_at(struct work *work, u64 slot, i64 number) {
    struct place *place = &work->places[place_of(slot)];
    if (place->last < 0)
        place->last = number;
}

/* Find the operations whose results are read or that act otherwise, and where each place is last read. */
static void mark_used(const struct assembly_record *assembly, struct work *work) {
    for (i64 number = (i64)assembly->operations - 1; number >= 0; number--) {
        const struct written_operation *op = &assembly->written[number];
        u64 result = place_of(op->result);
        if (result && work->places[result].last < 0) {
            if (op->how & PURE)
                continue;
            work->places[result].last = number;
        }
        work->following[number] = 1;
        read_at(work, op->a, number), read_at(work, op->b, number), read_at(work, op->c, number);
        if (op->how & READS_RESULT)
            read_at(work, op->result, number);
    }
}

/* Number the used operations. */
static void number_used(struct assembly_record *assembly, struct work *work) {
    u64 used = 0;
    for (u64 number = 0; number < assembly->operations; number++)
        used += work->following[number];
    assembly->used = used;
    work->following[assembly->operations] = used;
    for (u64 number = assembly->operations; number-- > 0;)
        work->following[number] = used -= work->following[number];
}

static int is_used(const struct work *work, u64 number) { return work->following[number] != work->following[number + 1]; }

/* The operation after which a place is free: not before the end of a loop that the value comes from outside of. */
static i64 end_of(const struct assembly_record *assembly, i64 born, i64 last) {
    for (u64 i = 0; i < assembly->loop_count; i++) {
        i64 first = (i64)assembly->loops[i].first, after = (i64)assembly->loops[i].after;
        if (born < first && first <= last && last < after)
            last = after - 1;
    }
    return last;
}

static unsigned size_class(u64 size) { return size <= SMALLEST ? 4 : 64 - (unsigned)__builtin_clzll(size - 1); }

static void give_place(struct assembly_record *assembly, struct work *work, u64 number, u64 index) {
    struct place *place = &work->places[index];
    unsigned size = size_class(assembly->sizes[index]);
    u64 free = work->free[size];
    if (free) {
        place->at = work->places[free].at;
        work->free[size] = work->places[free].next;
    } else {
        place->at = (i64)assembly->frame;
        assembly->frame += 1ull << size;
    }
    u64 *dying = &work->dying[end_of(assembly, (i64)number, place->last)];
    place->next = *dying;
    *dying = index;
}

static void release_places(const struct assembly_record *assembly, struct work *work, u64 number) {
    for (u64 index = work->dying[number], next; index; index = next) {
        unsigned size = size_class(assembly->sizes[index]);
        next = work->places[index].next;
        work->places[index].next = work->free[size];
        work->free[size] = index;
    }
}

/* Give each value a place in the frame, which others have before and after it. */
static void give_places(struct assembly_record *assembly, struct work *work) {
    assembly->frame = 0;
    for (u64 i = 0; i < assembly->kept_places; i++) {
        u64 index = assembly->kept[i];
        work->places[index].at = (i64)assembly->frame;
        assembly->frame += (assembly->sizes[index] + WORD - 1) / WORD * WORD;
    }
    assembly->frame = (assembly->frame + LINE - 1) / LINE * LINE;
    for (u64 number = 0; number < assembly->operations; number++) {
        u64 index = is_used(work, number) ? place_of(assembly->written[number].result) : 0;
        if (index && work->places[index].at < 0)
            give_place(assembly, work, number, index);
        release_places(assembly, work, number);
    }
}

static u32 operand(const struct work *work, u64 slot) {
    u64 index = place_of(slot);
    return index ? (u32)(work->places[index].at + (i64)(u32)slot) : (u32)slot;
}

static void encode(const struct assembly_record *assembly, const struct work *work) {
    struct encoded_operation *next = assembly->encoded;
    for (u64 number = 0; number < assembly->operations; number++) {
        if (!is_used(work, number))
            continue;
        const struct written_operation *op = &assembly->written[number];
        *next++ = (struct encoded_operation){
            .code = (u16)op->code, .lanes = (u16)op->lanes, .flags = (u32)op->flags,
            .result = operand(work, op->result), .a = operand(work, op->a), .b = operand(work, op->b), .c = operand(work, op->c),
            .immediate = op->how & JUMPS ? work->following[assembly->labels[op->immediate]] : op->immediate};
    }
}

/* Fills in `encoded`, `used` and `frame`; returns ASSEMBLED or NO_MEMORY. Places and labels that operations name are in the arrays. */
u64 bytecode_assemble(struct assembly_record *assembly) {
    struct work work = {calloc(assembly->places, sizeof *work.places), calloc(assembly->operations + 1, sizeof *work.dying),
                        calloc(assembly->operations + 1, sizeof *work.following), {0}};
    u64 outcome = NO_MEMORY;
    if (work.places && work.dying && work.following) {
        for (u64 i = 0; i < assembly->places; i++)
            work.places[i].at = work.places[i].last = -1;
        mark_used(assembly, &work);
        number_used(assembly, &work);
        give_places(assembly, &work);
        encode(assembly, &work);
        outcome = ASSEMBLED;
    }
    free(work.places), free(work.dying), free(work.following);
    return outcome;
}
