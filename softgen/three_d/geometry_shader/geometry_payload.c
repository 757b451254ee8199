/* Payloads of geometry shader threads (BDW 5761-5818; public: Mesa brw_fs_thread_payload.cpp, brw_vec4_gs_visitor.cpp). */
#include "geometry_payload.h"

#include <string.h>

enum { REGISTER = 32, HALF = 16, ROW = 64, DWORD_2 = 8, SCRATCH_DWORD = 5 };

/* What the lanes of a thread have: entries of each one's vertices. */
struct inputs {
    uint32_t lanes;
    uint32_t vertex[GEOMETRY_LANES][GEOMETRY_VERTICES];
};

static void exchange(uint32_t *a, uint32_t *b)
{
    uint32_t held = *a;
    *a = *b;
    *b = held;
}

static void find_vertices(const struct geometry_form *f, const struct stage_chunk *chunk, const struct object *o, uint32_t *vertex)
{
    if (chunk->list_vertices) {
        memcpy(vertex, chunk->lists + o->vertex[0] * chunk->list_vertices, f->vertices * sizeof *vertex);
        return;
    }
    memcpy(vertex, o->vertex, sizeof o->vertex);
    if (f->order != ORDER_AS_DRAWN && o->flags & OBJECT_INVERTED)
        exchange(&vertex[1], &vertex[f->order == ORDER_LEADING ? 2 : 0]);
}

static inline const uint8_t *entry(const struct stage_chunk *chunk, uint32_t vertex)
{
    return chunk->vertices->entries + vertex * chunk->vertices->stride;
}

static void write_header(const struct geometry_shader *g, uint8_t *payload, uint32_t slot)
{
    const struct geometry_form *f = g->form;
    uint32_t scratch = g->header[SCRATCH_DWORD] + slot * f->scratch_step + (slot & f->thread_mask);
    memcpy(payload, g->header, sizeof g->header);
    memcpy(payload + 4 * SCRATCH_DWORD, &scratch, sizeof scratch);
    memcpy(payload + DWORD_2, &f->topology_bits, sizeof f->topology_bits);
    if (f->constant_offset > sizeof g->header)
        memset(payload + sizeof g->header, 0, f->constant_offset - sizeof g->header);
    if (f->constant_bytes)
        memcpy(payload + f->constant_offset, g->constants, f->constant_bytes);
}

static inline void put(uint8_t *payload, uint32_t offset, uint32_t value)
{
    memcpy(payload + offset, &value, sizeof value);
}

/* Handles of the vertices, for kernels that read them by themselves. Instances of one object share them. */
static void write_handles(const struct geometry_shader *g, const struct inputs *in, uint8_t *payload)
{
    const struct geometry_form *f = g->form;
    for (uint32_t v = 0; v < f->vertices; v++)
        for (uint32_t lane = 0; lane < (f->one_object ? 1 : f->lanes); lane++)
            put(payload, f->input_offset + v * f->input_vertex + lane * f->input_lane,
                (uint32_t)((entry(g->input, in->vertex[lane][v]) - g->urb) / ROW));
}

/* Data of a vertex; past the end of its entry there are zeros. */
static void read_pushed(const struct geometry_shader *g, uint32_t vertex, uint32_t *into)
{
    const struct geometry_form *f = g->form;
    uint64_t stride = g->input->vertices->stride, there = stride > f->push_from ? stride - f->push_from : 0;
    if (there > f->push_bytes)
        there = f->push_bytes;
    memcpy(into, entry(g->input, vertex) + f->push_from, there);
    memset((uint8_t *)into + there, 0, f->push_bytes - there);
}

/* A register of all lanes for each dword; instances of one object have the same. */
static void push_transposed(const struct geometry_shader *g, const struct inputs *in, uint8_t *payload)
{
    const struct geometry_form *f = g->form;
    uint32_t data[GEOMETRY_LANES][THREADS_PAYLOAD / REGISTER], dwords = f->push_bytes / 4;
    uint32_t *into = (uint32_t *)(payload + f->push_offset);
    for (uint32_t v = 0; v < f->vertices; v++, into += dwords * GEOMETRY_LANES) {
        for (uint32_t lane = 0; lane < (f->one_object ? 1 : GEOMETRY_LANES); lane++)
            read_pushed(g, in->vertex[lane][v], data[lane]);
        for (uint32_t i = 0; i < dwords; i++)
            for (uint32_t lane = 0; lane < GEOMETRY_LANES; lane++)
                into[i * GEOMETRY_LANES + lane] = data[f->one_object ? 0 : lane][i];
    }
}

/* Slots of one object one after another, or those of two in the halves of registers. */
static void push_slots(const struct geometry_shader *g, const struct inputs *in, uint8_t *payload)
{
    const struct geometry_form *f = g->form;
    uint32_t data[THREADS_PAYLOAD / 4];
    uint8_t *into = payload + f->push_offset;
    for (uint32_t v = 0; v < f->vertices; v++)
        for (uint32_t lane = 0; lane < (f->one_object ? 1 : f->lanes); lane++) {
            read_pushed(g, in->vertex[lane][v], data);
            if (f->one_object) {
                memcpy(into + v * f->push_bytes, data, f->push_bytes);
                continue;
            }
            for (uint32_t slot = 0; slot < f->push_bytes / HALF; slot++)
                memcpy(into + v * 2 * f->push_bytes + slot * REGISTER + lane * HALF, data + slot * 4, HALF);
        }
}

/* A thread that has fewer objects or instances than lanes has its last one again in the others, which are off. Returns the dispatch mask. */
uint32_t write_geometry_payload(const struct geometry_shader *g, uint8_t *payload, uint32_t slot, uint64_t thread)
{
    const struct geometry_form *f = g->form;
    const struct object_array *objects = g->input->objects;
    uint64_t object;
    uint32_t instance, row = (uint32_t)((g->room - g->urb) / ROW + (thread - g->first) * f->lanes * (f->entry_bytes / ROW));
    struct inputs in = {.lanes = lanes_of(f, thread, objects->count, &object, &instance)};
    write_header(g, payload, slot);
    for (uint32_t lane = 0; lane < f->lanes; lane++) {
        uint32_t own = lane < in.lanes ? lane : in.lanes - 1;
        const struct object *o = &objects->objects[f->one_object ? object : object + own];
        if (!lane || !f->one_object)
            find_vertices(f, g->input, o, in.vertex[lane]);
        put(payload, f->handle_offset + 4 * lane,
            (row + own * (f->entry_bytes / ROW)) | (f->one_object ? (instance + own) << f->instance_shift : 0));
        if (f->primitive_offset)
            put(payload, f->primitive_offset + lane * f->primitive_stride, o->primitive);
    }
    if (f->input_offset)
        write_handles(g, &in, payload);
    if (f->push_bytes && f->transposed)
        push_transposed(g, &in, payload);
    else if (f->push_bytes)
        push_slots(g, &in, payload);
    return (1u << in.lanes * f->lane_channels) - 1;
}

/* Whether all that is written is in a thread's registers. */
int geometry_payload_fits(const struct geometry_form *f)
{
    uint32_t wide = f->transposed ? GEOMETRY_LANES : f->one_object ? 1 : 2, most = THREADS_PAYLOAD;
    return f->lanes <= GEOMETRY_LANES && f->vertices <= GEOMETRY_VERTICES && f->handle_offset + 4 * f->lanes <= most &&
           f->primitive_offset + f->lanes * f->primitive_stride + 4 <= most &&
           f->input_offset + f->vertices * f->input_vertex + f->lanes * f->input_lane <= most && f->push_bytes <= most / wide &&
           f->constant_offset <= most && f->constant_bytes <= most - f->constant_offset && f->push_offset <= most &&
           f->vertices * f->push_bytes * wide <= most - f->push_offset;
}
