/* Vertex fetch: source elements from vertex buffers, converted to 32-bit components (G45 2495-2640; KBL 30173-30410). */
#include "vertex_fetch.h"

#include <string.h>

static const uint8_t zeros[32]; /* what is read outside a buffer; no element is longer */

/* -- conversion ---------------------------------------------------------------------------------------------------------------------- */

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t load(const uint8_t *from, uint8_t bytes)
{
    uint64_t found = 0;
    switch (bytes) {
    case 1: return *from;
    case 2: memcpy(&found, from, 2); return found;
    case 4: memcpy(&found, from, 4); return found;
    default: memcpy(&found, from, 8); return found;
    }
}

/* A float of `mantissa` bits below 5 bits of exponent, without a sign: exact in 32 bits. */
static uint32_t small_float(uint32_t bits, unsigned mantissa)
{
    uint32_t exponent = bits >> mantissa & 31, fraction = bits & ((1u << mantissa) - 1);
    if (exponent == 31)
        return 0x7f800000u | fraction << (23 - mantissa);
    if (exponent)
        return (exponent + 112) << 23 | fraction << (23 - mantissa);
    return float_bits((float)fraction / (float)(1u << (14 + mantissa)));
}

static uint32_t from_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return float_bits((float)value);
}

/* n-bit x stands for x / (2^n - 1): one rounding up to 24 bits, where both are floats. */
static uint32_t unorm(uint32_t x, unsigned width)
{
    uint32_t most = width == 32 ? 0xffffffffu : (1u << width) - 1;
    return float_bits(width <= 24 ? (float)x / (float)most : (float)((double)x / (double)most));
}

/* x / (2^(n-1) - 1), not below -1. */
static uint32_t snorm(int32_t x, unsigned width)
{
    int32_t most = (int32_t)((1u << (width - 1)) - 1);
    float value = width <= 24 ? (float)x / (float)most : (float)((double)x / (double)most);
    return float_bits(value < -1.0f ? -1.0f : value);
}

static uint32_t converted(const struct fetch_store *s, const uint8_t *from)
{
    uint64_t raw = load(from + s->start, s->load) >> s->shift;
    if (s->kind == FETCH_FLOAT64)
        return from_double(raw);
    uint32_t bits = (uint32_t)raw & (s->width == 32 ? 0xffffffffu : (1u << s->width) - 1);
    int32_t value = (int32_t)(bits << (32 - s->width)) >> (32 - s->width);
    switch (s->kind) {
    case FETCH_SINT: return (uint32_t)value;
    case FETCH_UNORM: return unorm(bits, s->width);
    case FETCH_SNORM: return snorm(value, s->width);
    case FETCH_USCALED: return float_bits((float)bits);
    case FETCH_SSCALED: return float_bits((float)value);
    case FETCH_FLOAT16: return small_float(bits & 0x7fff, 10) | (bits & 0x8000) << 16;
    case FETCH_UFLOAT: return small_float(bits, s->width - 5);
    case FETCH_SFIXED: return float_bits((float)((double)value / 65536.0));
    default: return bits;
    }
}

/* -- vertices ------------------------------------------------------------------------------------------------------------------------ */

/* Where a vertex's source element is. Indices wrap as 32-bit numbers do, and are compared as unsigned ones (KBL 30232). */
static inline const uint8_t *source(const struct vertex_fetch *f, const struct fetch_element *e, uint32_t vertex, uint32_t instance)
{
    uint32_t index = e->instanced ? f->start_instance + (e->step ? instance / e->step : 0) : vertex + f->bias;
    uint64_t at = (uint64_t)index * e->pitch + e->offset;
    if (index > e->max_index || at + e->bytes > e->size)
        return zeros;
    return graphics_memory(f->memory, e->address + at);
}

static inline void store(uint8_t *into, uint32_t value)
{
    memcpy(into, &value, sizeof value);
}

static void store_converted(const struct fetch_store *s, const uint8_t *const *from, unsigned count, uint8_t *into, uint64_t stride)
{
    into += s->offset;
    if (s->kind == FETCH_RAW)
        for (unsigned i = 0; i < count; i++)
            memcpy(into + i * stride, from[i] + s->start, 4);
    else
        for (unsigned i = 0; i < count; i++)
            store(into + i * stride, converted(s, from[i]));
}

static void store_generated(const struct fetch_store *s, struct vertex_ids ids, unsigned count, uint8_t *into, uint64_t stride)
{
    into += s->offset;
    if (s->kind == FETCH_CONSTANT)
        for (unsigned i = 0; i < count; i++)
            store(into + i * stride, s->value);
    else if (s->kind == FETCH_PRIMITIVE_ID)
        for (unsigned i = 0; i < count; i++)
            store(into + i * stride, ids.primitive[i]);
    else
        for (unsigned i = 0; i < count; i++)
            store(into + i * stride, s->kind == FETCH_VERTEX_ID ? ids.vertex[i] + s->value : ids.instance[i]);
}

/* Where the source elements of vertices are. The host address of the buffer is looked up once, and holds up to the end of its 4 GiB part:
   a buffer may go on behind that, and one whose index is not checked has no end. */
static void find_sources(const struct vertex_fetch *f, const struct fetch_element *e, struct vertex_ids ids, unsigned count,
                         const uint8_t **from)
{
    uint64_t part = (UINT64_C(1) << 32) - (e->address & 0xffffffff), near = e->size < part ? e->size : part;
    if (e->instanced || near < e->bytes) {
        for (unsigned i = 0; i < count; i++)
            from[i] = source(f, e, ids.vertex[i], ids.instance[i]);
        return;
    }
    const uint8_t *base = graphics_memory(f->memory, e->address);
    uint64_t last = near - e->bytes;
    for (unsigned i = 0; i < count; i++) {
        uint32_t index = ids.vertex[i] + f->bias;
        uint64_t at = (uint64_t)index * e->pitch + e->offset;
        from[i] = index > e->max_index || at > last ? source(f, e, ids.vertex[i], ids.instance[i]) : base + at;
    }
}

typedef uint32_t dwords __attribute__((vector_size(16), aligned(4), may_alias));

/* Whether four stores copy consecutive dwords. */
static int copies_four(const struct fetch_store *s)
{
    for (unsigned i = 0; i < 4; i++)
        if (s[i].kind != FETCH_RAW || s[i].start != s->start + 4 * i)
            return 0;
    return 1;
}

/* Four dwords of each of four vertices, a vector for each dword. */
static inline void transpose_four(const uint8_t *const *from, uint64_t offset, dwords into[4])
{
    dwords a = *(const dwords *)(from[0] + offset), b = *(const dwords *)(from[1] + offset);
    dwords c = *(const dwords *)(from[2] + offset), d = *(const dwords *)(from[3] + offset);
    dwords ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    dwords cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    into[0] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    into[1] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    into[2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    into[3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

static void store_four(const struct fetch_store *s, const uint8_t *const *from, uint8_t *into)
{
    dwords low[4], high[4];
    transpose_four(from, s->start, low);
    transpose_four(from + 4, s->start, high);
    for (unsigned i = 0; i < 4; i++) {
        memcpy(into + s[i].offset, &low[i], sizeof low[i]);
        memcpy(into + s[i].offset + sizeof low[i], &high[i], sizeof high[i]);
    }
}

/* The same as below, of eight vertices whose components are registers: most dwords are copied. */
static void fetch_registers(const struct vertex_fetch *f, struct vertex_ids ids, uint8_t *into)
{
    const uint8_t *from[FETCH_GROUP];
    for (const struct fetch_element *e = f->elements; e < f->elements + f->count; e++) {
        find_sources(f, e, ids, FETCH_GROUP, from);
        for (const struct fetch_store *s = f->stores + e->first, *end = s + e->stores; s < end; s++) {
            uint32_t value[FETCH_GROUP];
            if (end - s >= 4 && copies_four(s)) {
                store_four(s, from, into);
                s += 3;
                continue;
            }
            if (s->kind == FETCH_RAW)
                for (unsigned i = 0; i < FETCH_GROUP; i++)
                    memcpy(&value[i], from[i] + s->start, sizeof *value);
            else
                for (unsigned i = 0; i < FETCH_GROUP; i++)
                    value[i] = converted(s, from[i]);
            memcpy(into + s->offset, value, sizeof value);
        }
    }
    for (const struct fetch_store *s = f->stores + f->first; s < f->stores + f->first + f->others; s++)
        store_generated(s, ids, FETCH_GROUP, into, sizeof(uint32_t));
}

void fetch_group(const struct vertex_fetch *f, struct vertex_ids ids, unsigned count, uint8_t *into, uint64_t stride)
{
    const uint8_t *from[FETCH_GROUP];
    if (count == FETCH_GROUP && stride == sizeof(uint32_t)) {
        fetch_registers(f, ids, into);
        return;
    }
    for (const struct fetch_element *e = f->elements; e < f->elements + f->count; e++) {
        for (unsigned i = 0; i < count; i++)
            from[i] = source(f, e, ids.vertex[i], ids.instance[i]);
        for (const struct fetch_store *s = f->stores + e->first; s < f->stores + e->first + e->stores; s++)
            store_converted(s, from, count, into, stride);
    }
    for (const struct fetch_store *s = f->stores + f->first; s < f->stores + f->first + f->others; s++)
        store_generated(s, ids, count, into, stride);
}

/* Dwords of elements come first, and those without source data right after them. */
uint64_t fetch_extent(const struct vertex_fetch *f, unsigned count, uint64_t stride)
{
    uint64_t last = 0;
    for (const struct fetch_store *s = f->stores; s < f->stores + f->first + f->others; s++)
        last = s->offset > last ? s->offset : last;
    return f->first + f->others ? last + (count - 1) * stride + sizeof(uint32_t) : 0;
}

EXPORT int64_t fetch_vertices(struct fetch_run *run, void *record)
{
    (void)record;
    for (uint64_t i = 0; i < run->count; i += FETCH_GROUP) {
        struct vertex_ids ids = {run->ids.vertex + i, run->ids.instance + i, run->ids.primitive ? run->ids.primitive + i : NULL};
        uint64_t left = run->count - i;
        fetch_group(run->fetch, ids, left < FETCH_GROUP ? (unsigned)left : FETCH_GROUP, run->into + i * run->stride, run->stride);
    }
    return 0;
}

/* A vertex's edge flag belongs to the edge that begins there (KBL 30328-30360): clears the edges of objects whose flag is zero. */
int64_t mark_edges(const struct fetch_run *run)
{
    const struct vertex_fetch *f = run->fetch;
    const struct fetch_element *e = &f->edge_flag;
    for (uint64_t i = 0; i < run->count; i++)
        run->edge_flags[i] = converted(f->stores + e->first, source(f, e, run->ids.vertex[i], run->ids.instance[i])) != 0;
    for (struct object *o = run->objects->objects; o < run->objects->objects + run->objects->count; o++)
        for (unsigned i = 0; i < (o->flags & OBJECT_VERTICES); i++)
            if (!run->edge_flags[o->vertex[i]])
                o->flags &= ~(1u << (OBJECT_EDGES_SHIFT + i));
    return 0;
}
