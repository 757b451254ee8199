/* The actor of 3DPRIMITIVE in a walk over a batch (draw_actor.c). */
#ifndef SOFTGEN_DRAW_ACTOR_H
#define SOFTGEN_DRAW_ACTOR_H

#include <stdint.h>

struct draw;
struct draw_record;

enum { ACTOR_COUNTS = 11 }; /* DRAW_COUNTS */
enum { REFUSED_BITS = 4 };

/* A field of the command, or of a state command: its dword, counted from the first slot on, and its bits. */
struct draw_field { uint32_t dword, low, mask; };

/* Bits of a dword of the command. */
struct draw_bits { uint32_t dword, mask; };

/* Draws of a context in a walk. */
struct walked_draws {
    struct draw *draw;
    /* the command */
    struct draw_field topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex;
    struct draw_bits refused[REFUSED_BITS]; /* bits that leave the command to Python when they are set */
    /* state commands: 1 + their slots; 0: there is none */
    uint32_t topology_slot; /* it has the topology, */
    uint32_t pipeline_slot; /* the selected pipeline, */
    uint32_t bases_slot, bases_count; /* base addresses; how often it had been latched when the walk began */
    struct draw_field pipeline;
    /* the address space: how often its mappings had changed when the walk began */
    const uint64_t *changes;
    uint64_t seen_changes;
    /* results */
    uint64_t draws; /* begun */
    uint64_t finished; /* and executed to their end */
    uint64_t counts[ACTOR_COUNTS];
    struct draw_record *touched; /* records of draws that Python has not counted */
    int64_t why; /* enum draw_reason of a draw that needs Python */
    struct draw_record **log; /* records of finished draws, in their order, where somebody sees each; */
    uint64_t log_room; /* as many; 0: nobody does */
};

#endif
