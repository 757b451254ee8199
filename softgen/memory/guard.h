/* What a guarded call leaves behind (guard.c, guard.py). */
#ifndef SOFTGEN_GUARD_H
#define SOFTGEN_GUARD_H

#include <stdint.h>

enum { READ, WRITE, FETCH, UNKNOWN }; /* accesses that fault */
enum { FROM_HOST, FROM_CODE };        /* who says so: the host, by a signal; or the code, with guard_leave() */

/* The fault that ended a guarded call, or what the function returned. */
struct fault_record {
    uint64_t ip;      /* written by the guarded code before each access */
    uint64_t address; /* a host address, or what guard_leave() was given */
    uint32_t access;
    uint32_t origin;
    int64_t result; /* what the function returned */
};

#endif
