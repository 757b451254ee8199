/* Pictures as the codecs' C code sees them: samples in host memory, surfaces in graphics memory (picture.py fills the structures).
 *
 * Graphics memory is touched only in surface_walk.c, surface_deep.c and mfx/mpeg2/walked_slices.c; everything else works on host arrays.
 * All of it runs under the guard (memory/guard.c) and may be left at any access to graphics memory: it owns nothing. */
#ifndef SOFTGEN_CODEC_H
#define SOFTGEN_CODEC_H

#include <stddef.h>
#include <stdint.h>

#ifndef ENTRY
#define ENTRY __attribute__((visibility("default"))) /* called by Python */
#endif

enum { PLANES = 3, MOST_REFERENCES = 16 };
enum surface_layout { PLANAR, INTERLEAVED_CHROMA, PACKED_YUYV, PACKED_UYVY, LUMA_ONLY };
enum reference_state { NO_REFERENCE, IN_MEMORY, LOADED };
enum { AREA_WIDTH = 256, AREA_HEIGHT = 64, AREA_MARGIN = 16 }; /* luma samples of an area of a reference; about a block, for interpolation */
enum macroblock_state { MISSING, DECODED, CONCEALED };

struct graphics {
    const uint64_t *table; /* memory/address_space.py */
    uint64_t address_mask;
};

/* A surface in graphics memory. The offset of a byte within a tile is column[x] + row[y] (surface/tile_table.py). */
struct surface {
    uint64_t base;
    int64_t pitch; /* bytes */
    const uint32_t *column, *row;
    uint32_t tile_columns, tile_rows; /* log2 of a tile's bytes and rows; linear: both 0 */
    uint64_t run; /* bytes of a row that are contiguous in a tile; linear: 0 */
    uint32_t layout; /* enum surface_layout */
    uint32_t chroma_row[2]; /* where Cb and Cr begin */
    uint32_t first_row, row_step; /* a field is every second row */
    uint32_t sample_bytes; /* 2: a sample is in the upper bits of 16 (P010); else 1 */
};

struct plane {
    uint8_t *samples; /* of deep pictures 16 bits each */
    uint32_t stride; /* samples */
    uint32_t width, height, reserved;
};

struct frame {
    struct plane plane[PLANES];
};

/* A part of a frame, in luma samples; of chroma, what belongs to them. */
struct rectangle {
    unsigned x, y, end_x, end_y;
};

static inline struct rectangle whole_frame(const struct frame *f)
{
    return (struct rectangle){0, 0, f->plane[0].width, f->plane[0].height};
}

/* Where a plane of samples that are 1 << shift luma samples apart begins or ends; all of it ends together. */
static inline unsigned plane_place(unsigned at, unsigned luma, unsigned size, unsigned shift)
{
    return at == luma ? size : at >> shift;
}

struct reference {
    uint64_t address;
    struct frame frame; /* of the whole frame, whatever the picture is */
    uint64_t *areas; /* which have been read: a bit for each AREA_WIDTH samples of AREA_HEIGHT rows; null: frames are read whole */
    uint32_t state; /* enum reference_state */
    uint32_t reserved;
};

struct picture {
    struct graphics memory;
    struct surface surfaces[2]; /* where it goes: before and after deblocking; base 0: nowhere */
    struct surface source; /* how references lie in memory, but for their base */
    struct frame frame;
    struct reference references[MOST_REFERENCES];
    uint8_t *state; /* of each macroblock: enum macroblock_state */
    uint32_t width, height; /* in macroblocks */
    uint32_t shift_x, shift_y; /* log2 of luma samples for a chroma sample */
    uint32_t block_width, block_height; /* luma samples of a macroblock */
    uint32_t errors; /* MFX_ERROR_FLAGS */
    uint32_t concealed; /* macroblocks */
    uint32_t next_row; /* progress of a call, in rows of macroblocks */
    uint32_t sample_bits; /* of deep pictures, whose samples have 16 bits in host memory; 0: a sample is a byte */
};

static inline int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

static inline uint8_t clamp_sample(int value)
{
    return (uint8_t)(value & ~255 ? ~value >> 31 : value);
}

/* surface_walk.c */
const struct frame *reference_frame(struct picture *picture, unsigned index);
const struct frame *reference_block(struct picture *picture, unsigned index, int x, int y, int width, int height);
void load_block(const struct picture *p, const struct surface *s, const struct frame *f, uint64_t *areas, int x, int y, int width, int height);
void store_rows(struct picture *picture, const struct surface *surface, unsigned first, unsigned end);
void write_surface_row(const struct graphics *memory, const struct surface *s, int64_t x, int64_t y, const uint8_t *from, int64_t count);
void read_surface_row(const struct graphics *memory, const struct surface *s, int64_t x, int64_t y, uint8_t *to, int64_t count);

/* conceal.c: of pictures with 4:2:0 and bytes as samples. */
void conceal_macroblock(struct picture *p, unsigned number, unsigned reference);

/* surface_deep.c: pictures whose samples have 16 bits in host memory, and surfaces with interleaved chroma */
void store_deep_rows(const struct picture *picture, const struct surface *surface, unsigned first, unsigned end);
void load_deep(const struct picture *picture, const struct surface *surface, const struct frame *frame, const struct rectangle *part);

#endif
