/* Bytecode of lane programs (program.py): operations over vectors in a frame.

   An operand is a byte offset into the frame, or, with CONSTANT set, into the constants. Truth is a byte, 0 or 1. */
#ifndef SOFTGEN_BYTECODE_H
#define SOFTGEN_BYTECODE_H
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

enum { CONSTANT_SHIFT = 31, ARGUMENTS = 6 };
enum { NO_OPERAND = 0xFFFFFFFF };
enum { WIDE_OFFSETS = 1 };              /* flag of an access: offsets have 64 bits */

/* An operation as the interpreter reads it. */
struct encoded_operation {
    u16 code, lanes;
    u32 result, a, b, c;
    u32 flags;                          /* WIDE_OFFSETS; bytes of an integer that masks come from or go to */
    u64 immediate;                      /* a displacement, a number of bytes, a function, or the operation to go to */
};

/* A program that can be called. */
struct program_record {
    const struct encoded_operation *operations;
    const u8 *constants;
    u64 frame;                          /* bytes */
    u64 context;                        /* the argument that points at the context */
    u64 table_at, note_at;              /* of the context: where the address of the table of graphics memory is, and the note of accesses */
    u64 address_mask;
    u64 result;                         /* offset of the result in the frame */
    u64 calls;                          /* so far, about */
    u64 hot;                            /* calls after which it is worth compiling; 0: never */
    u64 number;                         /* among the programs of the process */
    u64 compiled;                       /* function to call instead, once it is there */
};

/* What each operation computes for lane i, by name and type. */
#define UNSIGNED(X, name, ...) X(name, u8, u8, __VA_ARGS__) X(name, u16, u16, __VA_ARGS__) X(name, u32, u32, __VA_ARGS__) X(name, u64, u64, __VA_ARGS__)
#define SIGNED(X, name, ...) X(name, i8, i8, __VA_ARGS__) X(name, i16, i16, __VA_ARGS__) X(name, i32, i32, __VA_ARGS__) X(name, i64, i64, __VA_ARGS__)
#define INTEGERS(X, name, ...) UNSIGNED(X, name, __VA_ARGS__) SIGNED(X, name, __VA_ARGS__)
#define FLOATS(X, name, ...) X(name, f32, f32, __VA_ARGS__) X(name, f64, f64, __VA_ARGS__)
#define COMPARED(X, name, T, ...) X(name, T, u8, __VA_ARGS__)
#define COMPARISONS(X, name, ...)                                                                                                              \
    COMPARED(X, name, u8, __VA_ARGS__) COMPARED(X, name, u16, __VA_ARGS__) COMPARED(X, name, u32, __VA_ARGS__)                                   \
    COMPARED(X, name, u64, __VA_ARGS__) COMPARED(X, name, i8, __VA_ARGS__) COMPARED(X, name, i16, __VA_ARGS__)                                   \
    COMPARED(X, name, i32, __VA_ARGS__) COMPARED(X, name, i64, __VA_ARGS__) COMPARED(X, name, f32, __VA_ARGS__) COMPARED(X, name, f64, __VA_ARGS__)

#define UNARY(X)                                                                                                                               \
    UNSIGNED(X, negate, 0u - a[i]) UNSIGNED(X, bit_not, ~a[i]) X(bit_not, truth, truth, !a[i])                                                   \
    UNSIGNED(X, leading_zeros, leading(a[i], sizeof a[i])) UNSIGNED(X, trailing_zeros, trailing(a[i], sizeof a[i]))                             \
    UNSIGNED(X, count_ones, __builtin_popcountll(a[i])) UNSIGNED(X, reverse_bits, reversed(a[i], sizeof a[i]))                                  \
    FLOATS(X, sqrt, ROOT(a[i])) FLOATS(X, floor, FLOOR(a[i])) FLOATS(X, ceil, CEIL(a[i])) FLOATS(X, trunc, TRUNC(a[i]))                         \
    FLOATS(X, round_even, RINT(a[i])) FLOATS(X, negate, -a[i])
#define BINARY(X)                                                                                                                              \
    UNSIGNED(X, add, a[i] + b[i]) UNSIGNED(X, sub, a[i] - b[i]) UNSIGNED(X, mul, 1u * a[i] * b[i])                                              \
    UNSIGNED(X, bit_and, a[i] & b[i]) UNSIGNED(X, bit_or, a[i] | b[i]) UNSIGNED(X, bit_xor, a[i] ^ b[i])                                        \
    UNSIGNED(X, shift_left, 1u * a[i] << (b[i] & (8 * sizeof a[i] - 1))) INTEGERS(X, shift_right, a[i] >> (b[i] & (8 * sizeof a[i] - 1)))       \
    INTEGERS(X, divide_int, QUOTIENT(a[i], b[i])) INTEGERS(X, remainder_int, REMAINDER(a[i], b[i])) INTEGERS(X, mul_high, HIGH(a[i], b[i]))    \
    FLOATS(X, add, a[i] + b[i]) FLOATS(X, sub, a[i] - b[i]) FLOATS(X, mul, a[i] * b[i]) FLOATS(X, div, a[i] / b[i])                             \
    COMPARISONS(X, equal, a[i] == b[i]) COMPARISONS(X, not_equal, a[i] != b[i]) COMPARISONS(X, less, a[i] < b[i])                               \
    COMPARISONS(X, less_equal, a[i] <= b[i]) COMPARISONS(X, greater, a[i] > b[i]) COMPARISONS(X, greater_equal, a[i] >= b[i])
#define TERNARY(X) FLOATS(X, fma, FUSED(a[i], b[i], c[i]))
#define CONVERT_FROM(X, S)                                                                                                                     \
    X(convert, S, u8) X(convert, S, u16) X(convert, S, u32) X(convert, S, u64) X(convert, S, i8) X(convert, S, i16) X(convert, S, i32)          \
    X(convert, S, i64) X(convert, S, f32) X(convert, S, f64)
#define CONVERSIONS(X)                                                                                                                         \
    CONVERT_FROM(X, u8) CONVERT_FROM(X, u16) CONVERT_FROM(X, u32) CONVERT_FROM(X, u64) CONVERT_FROM(X, i8) CONVERT_FROM(X, i16)                 \
    CONVERT_FROM(X, i32) CONVERT_FROM(X, i64) CONVERT_FROM(X, f32) CONVERT_FROM(X, f64)
/* By the size of a lane. */
#define SIZED(X)                                                                                                                               \
    UNSIGNED(X, select) UNSIGNED(X, shuffle) UNSIGNED(X, broadcast) UNSIGNED(X, permute) UNSIGNED(X, gather) UNSIGNED(X, scatter)               \
    UNSIGNED(X, load_block) UNSIGNED(X, store_block) UNSIGNED(X, region_load) UNSIGNED(X, region_store) UNSIGNED(X, region_load_block)          \
    UNSIGNED(X, region_store_block)
#define OTHERS(X)                                                                                                                              \
    X(end) X(leave) X(address) X(call) X(jump) X(jump_unless) X(copy) X(any) X(mask_from_bits) X(bits_from_mask) X(call_host) X(float_from_half) X(half_from_float)              \
    X(half_from_float_rtz)

typedef u8 truth;
#endif
