/* The walk over a batch (streamer/walk.c), as actors of commands see it.
 *
 * An actor is compiled code that executes a command: that of 3DPRIMITIVE draws. This header is below the pipelines, as latches.h is. */
#ifndef SOFTGEN_WALK_H
#define SOFTGEN_WALK_H

#include "latches.h"

#include <stdint.h>

/* Why a walk returns to Python. */
enum walk_reason {
    WALK_COMMAND, /* the next command is not for the walk */
    WALK_ACTOR, /* the next command has an actor, which is not ready */
    WALK_TIME, /* it is time to look at the time limit */
    WALK_HALF_DONE, /* the actor of the last command has begun to execute it, and needs Python */
    WALK_ACTING, /* only after an access to memory that is not mapped: the actor of the last command made it */
};

enum { WALK_DWORDS = 64, WALK_ACTORS = 8 }; /* dwords of a command with an actor, at most; actors, counted from 1 */
enum { WALK_AT_ONCE = 256 }; /* state commands in a row, after which it is time to look at the time limit */

/* What an actor answers. */
enum walk_answer { ACTOR_DONE, ACTOR_TIME, ACTOR_REFUSES, ACTOR_NEEDS_PYTHON }; /* REFUSES: it has changed nothing */

struct walk;

/* Compiled code that executes a command; 0: it is not ready. */
struct walk_actor {
    int64_t (*act)(void *state, struct walk *w, const uint32_t *dwords, uint32_t count);
    void *state;
    uint64_t collects; /* it may collect work, which the commands of other actors have to come after */
};

/* A walk over consecutive commands of a batch. */
struct walk {
    const void *table; /* struct rule_table */
    struct latches *latches;
    const uint64_t *memory; /* graphics_memory: the space of the batch */
    uint64_t address, end; /* of the next command; where the walk ends at the latest */
    uint64_t deadline; /* when actors answer that it is time to look at the time limit; CLOCK_MONOTONIC in nanoseconds */
    void *record; /* struct fault_record of the guarded call */
    /* results */
    uint64_t commands; /* that were executed, or begun */
    uint64_t last; /* the address of the last one, */
    uint32_t last_header; /* and its first dword */
    uint32_t reason; /* enum walk_reason */
    uint64_t latched; /* state commands, */
    uint64_t in_a_row; /* and those and flushes since the last draw */
    uint64_t work; /* draws that were begun */
    uint64_t collected; /* an actor has work that Python has to start after the walk */
    struct walk_actor actors[WALK_ACTORS];
};

#endif
