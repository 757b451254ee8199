/* Functions with an address for bytecode programs: each calls the program of its number with its arguments, or what was compiled in place of it.
   Unused parameters have any value. */
#include "bytecode.h"

u64 bytecode_run(struct program_record *program, const u64 *arguments, u64 *record);

typedef u64 function(u64, u64, u64, u64, u64, u64);

static struct program_record *programs[0x800], *handled[0x800];

/* Seven arguments of which one is on the stack: less code than a frame in each function. */
static u64 __attribute__((noinline)) interpret(struct program_record *program, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
    const u64 arguments[ARGUMENTS] = {a, b, c, d, e, f};
    u64 record;
    return bytecode_run(program, arguments, &record);
}

static inline u64 call(struct program_record *program, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
    function *compiled = (function *)(uintptr_t)__atomic_load_n(&program->compiled, __ATOMIC_ACQUIRE);
    return __builtin_expect(compiled != 0, 1) ? compiled(a, b, c, d, e, f) : interpret(program, a, b, c, d, e, f);
}

/* -- handlers of the threaded engine (eu/threaded/record.py): the next record's handler runs in their place ----------- */

struct outcome {
    u64 record, number; /* what to continue with, or 0, and instructions executed so far or the status to return */
};
typedef u64 handler(u64 block, u64 record, u64 context, u64 executed);

static struct outcome __attribute__((noinline)) interpret_handler(struct program_record *program, u64 block, u64 record, u64 context, u64 executed) {
    const u64 arguments[ARGUMENTS] = {block, record, context, executed};
    struct outcome outcome;
    outcome.number = bytecode_run(program, arguments, &outcome.record);
    return outcome;
}

static inline u64 handle(struct program_record *program, u64 block, u64 record, u64 context, u64 executed) {
    handler *compiled = (handler *)(uintptr_t)__atomic_load_n(&program->compiled, __ATOMIC_ACQUIRE);
    if (compiled)
        return compiled(block, record, context, executed);
    struct outcome outcome = interpret_handler(program, block, record, context, executed);
    if (!outcome.record)
        return outcome.number;
    return (*(handler **)(uintptr_t)outcome.record)(block, outcome.record, context, outcome.number);
}

#define FUNCTION(n)                                                                                                                            \
    static u64 function_##n(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {                                                                        \
        return call(programs[0x##n], a, b, c, d, e, f);                                                                                        \
    }                                                                                                                                          \
    static u64 handler_##n(u64 block, u64 record, u64 context, u64 executed) { return handle(handled[0x##n], block, record, context, executed); }
#define DIGITS(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
#define TENS(X, n) \
    DIGITS(X, n##0) DIGITS(X, n##1) DIGITS(X, n##2) DIGITS(X, n##3) DIGITS(X, n##4) DIGITS(X, n##5) DIGITS(X, n##6) DIGITS(X, n##7)            \
    DIGITS(X, n##8) DIGITS(X, n##9) DIGITS(X, n##a) DIGITS(X, n##b) DIGITS(X, n##c) DIGITS(X, n##d) DIGITS(X, n##e) DIGITS(X, n##f)
#define ALL(X) \
    TENS(X, 0) TENS(X, 1) TENS(X, 2) TENS(X, 3) TENS(X, 4) TENS(X, 5) TENS(X, 6) TENS(X, 7)
ALL(FUNCTION)

#define ADDRESS(n) function_##n,
static function *const functions[] = {ALL(ADDRESS)};

#define HANDLER(n) handler_##n,
static handler *const handlers[] = {ALL(HANDLER)};

/* The handler of a number, for a program from now on; 0 where there is no such number. */
u64 bytecode_handler(u64 number, struct program_record *program) {
    if (number >= sizeof handlers / sizeof *handlers)
        return 0;
    __atomic_store_n(&handled[number], program, __ATOMIC_RELEASE);
    return (u64)(uintptr_t)handlers[number];
}

/* The function of a number, for a program from now on; 0 where there is no such number. */
u64 bytecode_function(u64 number, struct program_record *program) {
    if (number >= sizeof functions / sizeof *functions)
        return 0;
    __atomic_store_n(&programs[number], program, __ATOMIC_RELEASE);
    return (u64)(uintptr_t)functions[number];
}
