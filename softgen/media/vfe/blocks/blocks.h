/* Blocks of a macroblock from coefficient units: inverse scan, and the inverse transforms of H.264 and VC-1 (G45 9825-9837, 10706-10723). */
#ifndef SOFTGEN_MEDIA_BLOCKS_H
#define SOFTGEN_MEDIA_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#ifndef ENTRY
#define ENTRY __attribute__((visibility("default"))) /* called by Python */
#endif

enum { BLOCKS = 6, SAMPLES = 64 };
enum { FINE, UNITS_END, BAD_INDEX }; /* results; otherwise how many blocks were written */

struct units {
    const uint32_t *data;
    uint64_t count, at;
};

/* An IS macroblock: its coded blocks back to back. Answers FINE or what is wrong; `written` says how many blocks there are. */
struct scan_macroblock {
    struct units units;
    uint32_t pattern, written; /* Y0 highest of 6 bits */
    int16_t *out;
};

struct avc_macroblock {
    struct units units;
    uint32_t pattern_y, pattern_cb, pattern_cr; /* block 0 highest, of 16, 4 and 4 bits */
    uint32_t dc_y, dc_cb, dc_cr, transform_8x8;
    uint32_t qp_y, qp_cb, qp_cr, scale_y, scale_cb, scale_cr;
    int16_t *out; /* 6 blocks */
};

struct vc1_macroblock {
    struct units units;
    uint32_t pattern; /* Y0 highest of 6 bits */
    uint32_t overlap, edges; /* left edges: bits 0 to 3 of luma blocks, bit 4 of both chroma blocks */
    uint8_t subblocks[8]; /* Y0 Y1 Y2 Y3 Cb Cr: partitioning in bits 1:0, which are present in 5:2 */
    int16_t *out, *left; /* 6 blocks; those of the macroblock to the left, or NULL */
};

/* units.c: a transform block of `size` coefficients. */
int read_units(struct units *u, int32_t *block, unsigned size);

#endif
