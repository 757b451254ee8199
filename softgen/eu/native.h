/* A thread and its environment as compiled code sees them (eu/thread/block.py), and what the threaded engine runs (eu/native.py). */
#ifndef SOFTGEN_NATIVE_H
#define SOFTGEN_NATIVE_H

#include "../shared_functions/context.h"

#include <stdint.h>

enum { MASK_STACK_DEPTH = 16 }; /* masks of a mask stack */
enum { STEP = 8 };              /* bytes between places where an instruction may start */
enum { NOWHERE = 0xffffffff };  /* in an index: no instruction starts there */

/* Why compiled code returned from a thread. */
enum thread_status {
    RUNNING,
    ENDED,
    WAITING,       /* for a notification */
    OUT_OF_BUDGET, /* took as many backward branches as this turn allows; other threads run next */
    ESCAPE,        /* fallback: the interpreter executes the instruction at ip */
    CR0_CHANGED,   /* cr0 differs from the value that the code was compiled for */
};

/* The thread state outside registers: ip, status, masks and the ips of channels. */
struct control_block {
    uint32_t ip, status;
    uint32_t active;                /* channels whose ip is the thread's */
    uint32_t waiting;               /* 1 + the notification register that a wait instruction waits for, or 0 */
    uint64_t executed;
    uint32_t imask, lmask, cmask;   /* IMask, LMask, CMask and the depths of their stacks: generations with a mask stack */
    uint32_t imask_depth, loop_depth;
    uint32_t number;                /* of the thread in its thread group */
    uint32_t imask_stack[MASK_STACK_DEPTH], loop_stack[2 * MASK_STACK_DEPTH];
    uint32_t channel_ip[CHANNELS];  /* ips of the channels that are not at the thread's ip */
    uint32_t stray;                 /* 1: it returned to where no call was; facts of a translation do not hold any more */
};

typedef int64_t thread_function(uint8_t *block, struct context_head *context);

struct native_op;
typedef int64_t handler(uint8_t *block, struct native_op *op, struct context_head *context, uint64_t executed);

/* One operation of a threaded program, with what its handler needs to know beside its shape (eu/threaded/record.py). */
struct native_op {
    handler *function;
    uint32_t ip;
    uint32_t need;                  /* of a place where a stream can be taken: the channels that must be on */
    uint32_t dst, src0, src1, src2; /* where operands start in the block; of a branch, addresses */
    uint64_t immediate;
    uint32_t group, flag;
    uint64_t first, second;         /* of a branch, the records of src0 and src1; of a stream, the handler for when `need` is not on, and the
                                     * stream */
};

/* An operation whose executions are counted: `need` of its record is its number here. */
struct native_count {
    handler *function;              /* of the operation */
    uint64_t executed, lanes;       /* how often, and by how many channels in all */
    uint32_t channels;              /* that it may concern */
    uint32_t always;                /* how many execute it whatever the masks say; 0: those that are on */
    uint32_t waits, reserved;       /* 1: it is executed only once there is a notification, which its first slot counts */
};

/* A threaded program. */
struct native_program {
    struct native_op *ops;
    uint32_t *index; /* of the op to go on with at start + STEP * n, or NOWHERE */
    uint64_t start, count;
};

/* One thread on its own. */
struct single_thread {
    thread_function *function;
    uint8_t *block;
    struct context_head *context;
};

#endif
