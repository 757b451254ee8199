/* The interpreter of bytecode (bytecode.h), and functions with an address for programs (bytecode_functions.c). Results are those of the other machines,
   bit for bit: nothing is contracted or reassociated. */
#include "bytecode.h"
#include "memory.h"
#include <alloca.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum {
#define TYPED(name, T, R, ...) name##_##T,
#define CONVERTED(name, S, R) name##_##S##_##R,
#define NAMED(name) name,
    UNARY(TYPED) BINARY(TYPED) TERNARY(TYPED) CONVERSIONS(CONVERTED) SIZED(TYPED) OTHERS(NAMED) CODES
#undef TYPED
#undef CONVERTED
#undef NAMED
};

static const char *const names[] = {
#define TYPED(name, T, R, ...) #name "_" #T,
#define CONVERTED(name, S, R) #name "_" #S "_" #R,
#define NAMED(name) #name,
    UNARY(TYPED) BINARY(TYPED) TERNARY(TYPED) CONVERSIONS(CONVERTED) SIZED(TYPED) OTHERS(NAMED)
#undef TYPED
#undef CONVERTED
#undef NAMED
};

const char *bytecode_name(u64 code) { return code < CODES ? names[code] : 0; }

/* -- what operations are made of ----------------------------------------------------------------------------------- */

static inline u64 leading(u64 value, unsigned size) { return value ? (u64)__builtin_clzll(value) - (64 - 8 * size) : 8 * size; }
static inline u64 trailing(u64 value, unsigned size) { return value ? (u64)__builtin_ctzll(value) : 8 * size; }

static inline u64 reversed(u64 value, unsigned size) {
    u64 found = 0;
    for (unsigned bit = 0; bit < 8 * size; bit++)
        found |= (value >> bit & 1) << (8 * size - 1 - bit);
    return found;
}

#define IS_SIGNED(T) ((T)-1 < 0)
#define KIND(x) __typeof__(x)
/* Toward zero; by zero all ones; the lowest by -1 stays. */
#define QUOTIENT(x, y) ((y) == 0 ? (KIND(x))-1 : IS_SIGNED(KIND(x)) && (y) == (KIND(x))-1 ? (KIND(x))(0 - (u64)(x)) : (KIND(x))((x) / (y)))
#define REMAINDER(x, y) ((y) == 0 ? (x) : IS_SIGNED(KIND(x)) && (y) == (KIND(x))-1 ? 0 : (KIND(x))((x) % (y)))
#define HIGH(x, y) ((KIND(x))(IS_SIGNED(KIND(x)) ? (u64)((__int128)(x) * (y) >> 8 * sizeof(x)) : (u64)((unsigned __int128)(x) * (y) >> 8 * sizeof(x))))
#define CHOOSE(x, single, whole) _Generic((x), f32: single, f64: whole)
#define ROOT(x) CHOOSE(x, __builtin_sqrtf, __builtin_sqrt)(x)
#define FLOOR(x) CHOOSE(x, __builtin_floorf, __builtin_floor)(x)
#define CEIL(x) CHOOSE(x, __builtin_ceilf, __builtin_ceil)(x)
#define TRUNC(x) CHOOSE(x, __builtin_truncf, __builtin_trunc)(x)
#define RINT(x) CHOOSE(x, __builtin_rintf, __builtin_rint)(x)
#define FUSED(x, y, z) CHOOSE(x, __builtin_fmaf, __builtin_fma)(x, y, z)

#define IS_FLOAT(T) ((T)0.5 != 0)
#define LIMIT(T) ((f64)((u64)1 << (8 * sizeof(T) - 1 - IS_SIGNED(T))) * 2) /* one more than the largest of an integer type */
/* A float to an integer ends at the type's limits, NaN is 0. */
#define CONVERTED_TO(R, S, x)                                                                                                                  \
    (!IS_FLOAT(S) || IS_FLOAT(R)             ? (R)(x)                                                                                          \
     : (x) != (x)                            ? (R)0                                                                                            \
     : (x) < (S)(IS_SIGNED(R) ? -LIMIT(R) : 0) ? (R)(IS_SIGNED(R) ? (u64)1 << (8 * sizeof(R) - 1) : 0)                                           \
     : (x) >= (S)LIMIT(R)                    ? (R)(IS_SIGNED(R) ? ((u64)1 << (8 * sizeof(R) - 1)) - 1 : ~(u64)0)                                  \
                                             : (R)(x))

static inline u16 half_toward_zero(f32 value) {
    u32 bits;
    memcpy(&bits, &value, 4);
    u32 sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000)
        return sign | 0x7E00 | (magnitude >> 13 & 0x3FF);
    if (magnitude == 0x7F800000)
        return sign | 0x7C00;
    i32 exponent = (i32)(magnitude >> 23) - 127 + 15;
    if (exponent >= 31)
        return sign | 0x7BFF;
    if (exponent > 0)
        return sign | exponent << 10 | (magnitude >> 13 & 0x3FF);
    u32 fraction = (magnitude & 0x7FFFFF) | 0x800000;
    return exponent < -10 ? sign : sign | fraction >> (14 - exponent);
}

/* Where the numbers of hot programs go; -1: nowhere. */
static int hot_programs = -1;

void bytecode_report_to(i32 descriptor) { hot_programs = descriptor; }

static void __attribute__((noinline)) report(const struct program_record *program) {
    if (hot_programs >= 0 && write(hot_programs, &program->number, sizeof program->number) < 0)
        return; /* a full pipe: the program stays as it is */
}

/* -- the interpreter --------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define HOST_FEATURES __attribute__((target("avx2,fma,f16c,bmi,lzcnt,popcnt")))
#include <immintrin.h>
static HOST_FEATURES inline f32 from_half(u16 bits) { return _cvtsh_ss(bits); }
static HOST_FEATURES inline u16 to_half(f32 value) { return _cvtss_sh(value, 0); }
#else
#define HOST_FEATURES
static inline f32 from_half(u16 bits) {
    __fp16 half;
    memcpy(&half, &bits, 2);
    return half;
}
static inline u16 to_half(f32 value) {
    __fp16 half = value;
    u16 bits;
    memcpy(&bits, &half, 2);
    return bits;
}
#endif

#define AT(T, operand) ((T *)(bases[(operand) >> CONSTANT_SHIFT] + ((operand) & ((1u << CONSTANT_SHIFT) - 1))))
#define MASK (op->c == NO_OPERAND ? (const u8 *)0 : AT(const u8, op->c))
/* Loops of 16 and 8 lanes are unrolled. */
#define EACH(...)                                                                                                                              \
    do {                                                                                                                                       \
        if (n == 16)                                                                                                                           \
            for (unsigned i = 0; i < 16; i++) {                                                                                                \
                __VA_ARGS__;                                                                                                                   \
            }                                                                                                                                  \
        else if (n == 1) {                                                                                                                     \
            enum { i = 0 };                                                                                                                    \
            __VA_ARGS__;                                                                                                                       \
        } else                                                                                                                                 \
            for (unsigned i = 0; i < n; i++) {                                                                                                 \
                __VA_ARGS__;                                                                                                                   \
            }                                                                                                                                  \
    } while (0)
#define REGION                                                                                                                                 \
    struct graphics_region region = {table, note, *AT(const u64, op->a) + op->immediate, program->address_mask};

/* Run a program; `record` is what a handler of the threaded engine continues with, or 0. */
HOST_FEATURES u64 bytecode_run(struct program_record *program, const u64 *arguments, u64 *record) {
    u8 *frame = alloca(program->frame + 64);
    frame += -(uintptr_t)frame & 63;
    u8 *const bases[2] = {frame, (u8 *)(uintptr_t)program->constants};
    const u64 *table = (const u64 *)(uintptr_t)*(const u64 *)(uintptr_t)(arguments[program->context] + program->table_at);
    u64 *note = (u64 *)(uintptr_t)(arguments[program->context] + program->note_at);
    memcpy(frame, arguments, ARGUMENTS * sizeof *arguments);
    if (++program->calls == program->hot)
        report(program);
    for (const struct encoded_operation *op = program->operations;; op++) {
        unsigned n = op->lanes;
        switch (op->code) {
#define CASE1(name, T, R, expression)                                                                                                          \
    case name##_##T: {                                                                                                                         \
        R *restrict result = AT(R, op->result);                                                                                                \
        const T *restrict a = AT(const T, op->a);                                                                                              \
        EACH(result[i] = expression);                                                                                                          \
    } break;
#define CASE2(name, T, R, expression)                                                                                                          \
    case name##_##T: {                                                                                                                         \
        R *restrict result = AT(R, op->result);                                                                                                \
        const T *restrict a = AT(const T, op->a), *restrict b = AT(const T, op->b);                                                            \
        EACH(result[i] = expression);                                                                                                          \
    } break;
#define CASE3(name, T, R, expression)                                                                                                          \
    case name##_##T: {                                                                                                                         \
        R *restrict result = AT(R, op->result);                                                                                                \
        const T *restrict a = AT(const T, op->a), *restrict b = AT(const T, op->b), *restrict c = AT(const T, op->c);                          \
        EACH(result[i] = expression);                                                                                                          \
    } break;
#define CONVERT(name, S, R)                                                                                                                    \
    case name##_##S##_##R: {                                                                                                                   \
        R *restrict result = AT(R, op->result);                                                                                                \
        const S *restrict a = AT(const S, op->a);                                                                                              \
        EACH(result[i] = CONVERTED_TO(R, S, a[i]));                                                                                            \
    } break;
            UNARY(CASE1)
            BINARY(CASE2)
            TERNARY(CASE3)
            CONVERSIONS(CONVERT)
#define SIZES(CASE) CASE(u8) CASE(u16) CASE(u32) CASE(u64)
#define SELECT(T)                                                                                                                              \
    case select_##T: {                                                                                                                         \
        T *restrict result = AT(T, op->result);                                                                                                \
        const u8 *restrict condition = AT(const u8, op->c);                                                                                    \
        const T *restrict a = AT(const T, op->a), *restrict b = AT(const T, op->b);                                                            \
        EACH(result[i] = condition[i] ? a[i] : b[i]);                                                                                          \
    } break;
#define SHUFFLE(T)                                                                                                                             \
    case shuffle_##T: {                                                                                                                        \
        T *restrict result = AT(T, op->result);                                                                                                \
        const T *restrict a = AT(const T, op->a);                                                                                              \
        const u8 *restrict lane = AT(const u8, op->b);                                                                                         \
        EACH(result[i] = a[lane[i]]);                                                                                                          \
    } break;
#define PERMUTE(T)                                                                                                                             \
    case permute_##T: {                                                                                                                        \
        T *restrict result = AT(T, op->result);                                                                                                \
        const T *restrict a = AT(const T, op->a);                                                                                              \
        const u32 *restrict lane = AT(const u32, op->b);                                                                                       \
        EACH(result[i] = a[lane[i]]);                                                                                                          \
    } break;
#define BROADCAST(T)                                                                                                                           \
    case broadcast_##T: {                                                                                                                      \
        T *restrict result = AT(T, op->result);                                                                                                \
        T value = *AT(const T, op->a);                                                                                                         \
        EACH(result[i] = value);                                                                                                               \
    } break;
#define GATHER(T)                                                                                                                              \
    case gather_##T: {                                                                                                                         \
        T *restrict result = AT(T, op->result);                                                                                                \
        const u8 *mask = MASK, *offsets = AT(const u8, op->b), *memory = (const u8 *)(uintptr_t)*AT(const u64, op->a);                         \
        for (unsigned i = 0; i < n; i++) {                                                                                                     \
            result[i] = 0;                                                                                                                     \
            if (!mask || mask[i])                                                                                                              \
                memcpy(&result[i], memory + offset_at(offsets, i, op->flags), sizeof(T));                                                      \
        }                                                                                                                                      \
    } break;
#define SCATTER(T)                                                                                                                             \
    case scatter_##T: {                                                                                                                        \
        const T *value = AT(const T, op->result);                                                                                              \
        const u8 *mask = MASK, *offsets = AT(const u8, op->b);                                                                                 \
        u8 *memory = (u8 *)(uintptr_t)*AT(const u64, op->a);                                                                                   \
        for (unsigned i = 0; i < n; i++)                                                                                                       \
            if (!mask || mask[i])                                                                                                              \
                memcpy(memory + offset_at(offsets, i, op->flags), &value[i], sizeof(T));                                                       \
    } break;
#define LOAD_BLOCK(T)                                                                                                                          \
    case load_block_##T: {                                                                                                                     \
        T *result = AT(T, op->result);                                                                                                         \
        const u8 *mask = MASK, *from = (const u8 *)(uintptr_t)*AT(const u64, op->a) + offset_at(AT(const u8, op->b), 0, op->flags);            \
        for (unsigned i = 0; i < n; i++) {                                                                                                     \
            result[i] = 0;                                                                                                                     \
            if (!mask || mask[i])                                                                                                              \
                memcpy(&result[i], from + i * sizeof(T), sizeof(T));                                                                           \
        }                                                                                                                                      \
    } break;
#define STORE_BLOCK(T)                                                                                                                         \
    case store_block_##T: {                                                                                                                    \
        const T *value = AT(const T, op->result);                                                                                              \
        const u8 *mask = MASK;                                                                                                                 \
        u8 *to = (u8 *)(uintptr_t)*AT(const u64, op->a) + offset_at(AT(const u8, op->b), 0, op->flags);                                        \
        for (unsigned i = 0; i < n; i++)                                                                                                       \
            if (!mask || mask[i])                                                                                                              \
                memcpy(to + i * sizeof(T), &value[i], sizeof(T));                                                                              \
    } break;
#define REGION_LOAD(T)                                                                                                                         \
    case region_load_##T: {                                                                                                                    \
        T *result = AT(T, op->result);                                                                                                         \
        REGION                                                                                                                                 \
        memset(result, 0, n * sizeof(T));                                                                                                      \
        for (u64 on = note_lanes(&region, AT(const u8, op->b), op->flags, MASK, n, sizeof(T)); on; on &= on - 1) {                             \
            unsigned i = __builtin_ctzll(on);                                                                                                  \
            memcpy(&result[i], host(&region, note[2 + i]), sizeof(T));                                                                         \
        }                                                                                                                                      \
    } break;
#define REGION_STORE(T)                                                                                                                        \
    case region_store_##T: {                                                                                                                   \
        const T *value = AT(const T, op->result);                                                                                              \
        REGION                                                                                                                                 \
        for (u64 on = note_lanes(&region, AT(const u8, op->b), op->flags, MASK, n, sizeof(T)); on; on &= on - 1) {                             \
            unsigned i = __builtin_ctzll(on);                                                                                                  \
            memcpy(host(&region, note[2 + i]), &value[i], sizeof(T));                                                                          \
        }                                                                                                                                      \
    } break;
#define REGION_LOAD_BLOCK(T)                                                                                                                   \
    case region_load_block_##T: {                                                                                                              \
        T *result = AT(T, op->result);                                                                                                         \
        REGION                                                                                                                                 \
        const u8 *mask = MASK, *from = note_block(&region, offset_at(AT(const u8, op->b), 0, op->flags), n * sizeof(T));                       \
        for (unsigned i = 0; i < n; i++) {                                                                                                     \
            result[i] = 0;                                                                                                                     \
            if (!mask || mask[i])                                                                                                              \
                memcpy(&result[i], from + i * sizeof(T), sizeof(T));                                                                           \
        }                                                                                                                                      \
    } break;
#define REGION_STORE_BLOCK(T)                                                                                                                  \
    case region_store_block_##T: {                                                                                                             \
        const T *value = AT(const T, op->result);                                                                                              \
        REGION                                                                                                                                 \
        const u8 *mask = MASK;                                                                                                                 \
        u8 *to = note_block(&region, offset_at(AT(const u8, op->b), 0, op->flags), n * sizeof(T));                                             \
        for (unsigned i = 0; i < n; i++)                                                                                                       \
            if (!mask || mask[i])                                                                                                              \
                memcpy(to + i * sizeof(T), &value[i], sizeof(T));                                                                              \
    } break;
            SIZES(SELECT)
            SIZES(SHUFFLE)
            SIZES(PERMUTE)
            SIZES(BROADCAST)
            SIZES(GATHER)
            SIZES(SCATTER)
            SIZES(LOAD_BLOCK)
            SIZES(STORE_BLOCK)
            SIZES(REGION_LOAD)
            SIZES(REGION_STORE)
            SIZES(REGION_LOAD_BLOCK)
            SIZES(REGION_STORE_BLOCK)
        case jump_unless:
            if (*AT(const u8, op->a))
                break;
            /* fall through */
        case jump:
            op = program->operations + op->immediate - 1;
            break;
        case copy:
            memcpy(AT(u8, op->result), AT(const u8, op->a), op->immediate);
            break;
        case any: {
            const u8 *a = AT(const u8, op->a);
            u8 found = 0;
            EACH(found |= a[i]);
            *AT(u8, op->result) = found;
        } break;
        case mask_from_bits: {
            u64 bits = 0;
            u8 *result = AT(u8, op->result);
            memcpy(&bits, AT(const u8, op->a), op->flags);
            EACH(result[i] = bits >> i & 1);
        } break;
        case bits_from_mask: {
            const u8 *a = AT(const u8, op->a);
            u64 bits = 0;
            EACH(bits |= (u64)a[i] << i);
            memcpy(AT(u8, op->result), &bits, op->flags);
        } break;
        case call_host:
            ((void (*)(const u32 *, u32 *, u32))(uintptr_t)op->immediate)(AT(const u32, op->a), AT(u32, op->result), n);
            break;
        case address:
            *AT(u64, op->result) = (u64)(uintptr_t)AT(u8, op->a);
            break;
        case call: {
            const u64 *a = AT(const u64, op->b);
            ((void (*)(u64, u64, u64, u64, u64, u64))(uintptr_t)*AT(const u64, op->a))(a[0], a[1], a[2], a[3], a[4], a[5]);
        } break;
        case leave:
            *record = op->a == NO_OPERAND ? 0 : *AT(const u64, op->a);
            return *AT(const u64, op->b);
        case float_from_half: {
            f32 *restrict result = AT(f32, op->result);
            const u16 *restrict a = AT(const u16, op->a);
            EACH(result[i] = from_half(a[i]));
        } break;
        case half_from_float: {
            u16 *restrict result = AT(u16, op->result);
            const f32 *restrict a = AT(const f32, op->a);
            EACH(result[i] = to_half(a[i]));
        } break;
        case half_from_float_rtz: {
            u16 *restrict result = AT(u16, op->result);
            const f32 *restrict a = AT(const f32, op->a);
            EACH(result[i] = half_toward_zero(a[i]));
        } break;
        case end:
        default: {
            u64 result;
            memcpy(&result, frame + program->result, sizeof result);
            *record = 0;
            return result;
        }
        }
    }
}
