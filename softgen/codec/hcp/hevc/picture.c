/* HEVC pictures from their first slice to their last: tiles, scaling factors, blocks that are missing, in-loop filters, motion to keep. */
#include <string.h>

#include "hevc.h"

/* -- room ----------------------------------------------------------------------------------------------------------- */

static uint8_t *take(uint8_t **next, size_t size)
{
    uint8_t *at = *next;
    *next += (size + 63) & ~(size_t)63;
    return at;
}

/* Divides the room; answers how many bytes it has. */
static size_t divide(struct hevc_picture *p)
{
    uint8_t *next = p->room;
    size_t size = (size_t)1 << p->log2_ctb, mask = size - 1, width = (p->width + mask) & ~mask, height = (p->height + mask) & ~mask;
    size_t ctbs = (width >> p->log2_ctb) * (height >> p->log2_ctb), blocks = (width >> 2) * (height >> 2);
    p->across = (uint32_t)(width >> p->log2_ctb);
    p->down = (uint32_t)(height >> p->log2_ctb);
    p->cus_across = (uint32_t)(width >> 3);
    p->blocks_across = (uint32_t)(width >> 2);
    p->ctbs = (void *)take(&next, ctbs * sizeof *p->ctbs);
    p->cus = (void *)take(&next, (width >> 3) * (height >> 3) * sizeof *p->cus);
    p->motions = (void *)take(&next, blocks * sizeof *p->motions);
    p->modes = take(&next, blocks);
    p->marks = take(&next, blocks);
    p->to_scan = (void *)take(&next, ctbs * sizeof *p->to_scan);
    p->to_raster = (void *)take(&next, ctbs * sizeof *p->to_raster);
    p->tiles = (void *)take(&next, ctbs * sizeof *p->tiles);
    p->copy = (void *)take(&next, width * height * sizeof *p->copy);
    return (size_t)(next - p->room);
}

/* How much room a picture needs. */
ENTRY uint64_t hevc_room(struct hevc_picture *p)
{
    return divide(p);
}

/* -- tiles and scaling factors -------------------------------------------------------------------------------------- */

/* 6.5.1. */
static void order_tiles(struct hevc_picture *p)
{
    int32_t scan = 0;
    for (unsigned tile = 0; tile < p->rows * p->columns; tile++) {
        unsigned row = tile / p->columns, column = tile % p->columns;
        for (unsigned y = p->row_start[row]; y < p->row_start[row + 1]; y++)
            for (unsigned x = p->column_start[column]; x < p->column_start[column + 1]; x++) {
                size_t address = (size_t)y * p->across + x;
                p->to_scan[address] = scan;
                p->to_raster[scan++] = (int32_t)address;
                p->tiles[address] = (uint16_t)tile;
            }
    }
}

/* 7.4.5: matrices of 8x8 are stretched to 16x16 and 32x32, whose DC has a value of its own. */
static void make_scales(struct hevc_picture *p)
{
    for (int kind = 0; kind < 6; kind++) {
        uint8_t *to = p->scale[kind];
        memcpy(to, p->matrix[0][kind], 16);
        to += 16;
        for (int log2 = 3; log2 <= 5; to += 1 << (2 * log2), log2++) {
            for (int i = 0; i < 1 << (2 * log2); i++)
                to[i] = p->matrix[log2 - 2][kind][(i >> log2 >> (log2 - 3)) * 8 + ((i & ((1 << log2) - 1)) >> (log2 - 3))];
            if (log2 > 3)
                to[0] = p->dc[log2 - 4][kind];
        }
    }
}

/* Entry: a picture begins. */
ENTRY int64_t hevc_open(struct hevc_picture *p, void *record)
{
    (void)record;
    divide(p);
    order_tiles(p);
    for (unsigned i = 0; i < p->across * p->down; i++)
        p->ctbs[i].slice = -1;
    if (p->has_scales)
        make_scales(p);
    return 0;
}

/* -- what is missing ------------------------------------------------------------------------------------------------ */

static void conceal_ctb(const struct hevc_picture *p, const struct frame *from, unsigned ctb_x, unsigned ctb_y)
{
    for (int i = 0; i < PLANES; i++) {
        const struct plane *to = &p->picture->frame.plane[i];
        unsigned size = (1u << p->log2_ctb) >> (i > 0), x = ctb_x * size, end = x + size < to->width ? x + size : to->width;
        for (unsigned y = ctb_y * size; y < (ctb_y + 1) * size && y < to->height; y++) {
            uint16_t *row = hevc_samples(to, 0, (int)y);
            for (unsigned j = x; j < end; j++)
                row[j] = from ? hevc_samples(&from->plane[i], 0, (int)y)[j] : (uint16_t)(1 << (hevc_depth(p, i) - 1));
        }
    }
}

/* Blocks that no slice has are copied from the first reference; without one they are grey. Filters leave them alone. */
static void conceal(struct hevc_picture *p)
{
    const struct frame *from = NULL;
    unsigned size = 1u << p->log2_ctb;
    for (unsigned i = 0; i < p->across * p->down; i++) {
        if (p->ctbs[i].slice >= 0)
            continue;
        for (unsigned r = 0; r < HEVC_STORES && !from; r++)
            from = reference_frame(p->picture, r);
        unsigned x = i % p->across, y = i / p->across;
        conceal_ctb(p, from, x, y);
        for (unsigned j = 0; j < size && y * size + j < p->height; j += 8)
            for (unsigned k = 0; k < size && x * size + k < p->width; k += 8)
                *hevc_cu_at(p, (int)(x * size + k), (int)(y * size + j)) = (struct hevc_cu){.kind = CU_NONE, .exact = 1};
        for (unsigned j = 0; j < size && y * size + j < p->height; j += 4)
            memset(p->marks + hevc_block_at(p, (int)(x * size), (int)(y * size + j)), 0, size >> 2);
        memset(&p->ctbs[i].sao, 0, sizeof p->ctbs[i].sao);
        p->picture->errors |= HEVC_CONCEALED;
        p->picture->concealed++;
    }
}

/* Entry: the picture's last slice has been decoded. */
ENTRY int64_t hevc_close(struct hevc_picture *p, void *record)
{
    (void)record;
    conceal(p);
    hevc_keep_motion(p);
    if (p->filtered)
        hevc_deblock(p);
    if (p->uses_sao)
        hevc_sao(p);
    return 0;
}
