/* Patches on their way through HS, TE and DS.
 *
 *   hull_shader.c      ► tessellation.c                        ► domain_shader.c
 *   patch entries        domain points and objects of a chunk    the chunk's entries
 *
 * HS puts its entries behind those of the vertices that it reads. TE copies an entry in front of the chunk that its points go to, where DS
 * threads read it: their handles are below PATCH_ROWS, as kernels of Gen7 use 13 bits of them (public: Mesa brw_vec4_generator.cpp). */
#ifndef SOFTGEN_TESSELLATION_H
#define SOFTGEN_TESSELLATION_H

#include "../three_d.h"
#include "tessellator.h"

enum { PATCH_ROWS = 8192, PATCH_BATCH = 64, POINT_GROUP = 8, HEADER_DWORDS = 8 }; /* PATCH_BATCH: threads; POINT_GROUP: points of one */

/* What payloads of a stage's threads have in common. */
struct patch_header {
    const uint8_t *constants;
    uint32_t constant_offset, constant_bytes; /* in a payload */
    uint32_t data_offset; /* of what comes after them */
    uint32_t scratch_step, thread_mask; /* scratch space of a thread; bits of its number in the header */
    uint32_t reserved;
    uint32_t header[HEADER_DWORDS]; /* r0 */
};

/* Patch entries, and the PrimitiveIDs of their patches. */
struct patch_array {
    uint8_t *entries;
    uint64_t stride;
    uint32_t *primitives;
    uint32_t count, capacity;
};

/* HS threads: a group of `instances` for each patch, or for eight. */
struct hull_shader {
    struct stage_loop head;
    struct patch_header common;
    const struct stage_chunk *chunk; /* objects are patches */
    struct patch_array *patches;
    uint64_t *next; /* of them, shared by all loops */
    uint64_t first; /* object of the chunk that is the first of them */
    uint32_t vertex_row, patch_row; /* handles of the chunk's first vertex and of the first patch entry */
    uint32_t corners; /* vertices of a patch */
    uint32_t instances, groups; /* threads of a group; groups that run at the same time */
    uint32_t lanes; /* patches of a thread: 1 or POINT_GROUP */
    uint32_t instance_shift, barrier_shift, barriers; /* in r0.2; how many barriers there are */
    uint32_t handle_offset; /* of vertices in a payload, or 0 */
    uint32_t primitive_offset; /* of the PrimitiveIDs of several patches, or 0 */
    uint32_t read_offset, read_bytes; /* of each vertex, after the constants */
    uint32_t masks[PATCH_BATCH];
};

/* What the HS stage reads. */
struct hull_input {
    struct stage_chunk chunk;
    uint64_t counts; /* statistics are wanted */
};

/* Points of one patch, for one DS thread. */
struct point_group { uint32_t patch, primitive, first, count; }; /* the handle of the patch's entry; the vertices that points become */

/* What TE puts out besides objects. */
struct domain_points {
    float (*points)[2]; /* u and v of each vertex of the chunk */
    struct point_group *groups;
    uint64_t group_count;
};

/* Points and indices by factors; those used longest ago make room. */
enum { CACHE_SETS = 16, CACHE_WAYS = 4 };

struct cached_factors {
    struct tess_plan plan;
    struct tess_factors factors;
    struct tess_result result;
    uint64_t stamp; /* 0: nothing is held */
};

struct tess_cache {
    uint64_t stamp, made; /* results that were computed */
    struct cached_factors held[CACHE_SETS * CACHE_WAYS];
};

/* TE as a stage of a draw. */
struct tessellation {
    struct tess_plan plan;
    uint32_t outer[4], inner[2]; /* bytes of the factors in a patch header */
    uint32_t corners, flags; /* of objects */
    uint32_t uncached; /* each index of a point is a vertex of its own */
    uint32_t per_thread; /* points */
    uint32_t software; /* points are in memory */
    uint32_t count_offset, address_offset; /* where the patch header says how many, and where */
    struct tess_cache *cache;
    const struct patch_array *patches;
    struct stage_chunk chunk; /* that it fills */
    struct patch_array copies; /* of entries, for DS threads */
    struct domain_points *out;
    const uint64_t *memory;
    uint32_t patch, index; /* the next patch, and what of it the chunk before had */
};

/* DS threads: each has up to `lanes` points of a patch. */
struct domain_shader {
    struct stage_loop head;
    struct patch_header common;
    const struct domain_points *work;
    uint64_t *next; /* of its groups, shared by all loops */
    uint64_t counts; /* statistics are wanted */
    uint8_t *entries;
    uint64_t stride;
    const uint8_t *patches; /* entries, from handle 0 on */
    uint64_t patch_stride;
    uint32_t vertex_row; /* handle of the first vertex */
    uint32_t lanes, simd8; /* points that payloads have room for; they are arranged for SIMD8 threads */
    uint32_t compute_w;
    uint32_t patch_offset, primitive_offset, u_offset, v_offset, w_offset, handle_offset; /* in a payload */
    uint32_t read_offset, read_bytes; /* of the patch entry, after the constants */
    uint32_t masks[PATCH_BATCH];
};

#define HIDDEN __attribute__((visibility("hidden")))

/* patch_header.c */
HIDDEN void write_patch_header(const struct patch_header *h, uint8_t *payload, uint32_t slot);
HIDDEN int patch_header_fits(const struct patch_header *h, uint64_t fixed, uint64_t data);
HIDDEN void read_entry(uint8_t *into, const uint8_t *entry, uint64_t stride, uint32_t offset, uint32_t bytes);

#endif
