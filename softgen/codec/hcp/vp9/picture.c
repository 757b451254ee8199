/* VP9 pictures (6.4): tiles, superblocks, partitions; then the loop filter and adaptation. */
#include "vp9.h"

enum { WHOLE, HORIZONTAL, VERTICAL, SPLIT }; /* partitions */
enum { DECODE, FILTER, ADAPT }; /* phases */

static const uint8_t sizes[4][4] = { /* by log2 of a square's units, and its partition */
    {BLOCK_8X8, BLOCK_8X4, BLOCK_4X8, BLOCK_4X4}, {6, 5, 4, BLOCK_8X8}, {9, 8, 7, 6}, {BLOCK_64X64, 11, 10, 9}};

static void decode_block(struct vp9_picture *p, unsigned x, unsigned y, unsigned size)
{
    struct vp9_place at = {.x = x, .y = y, .width = units_across(size), .height = units_down(size)};
    struct vp9_block **grid = p->grid + (size_t)y * p->columns + x;
    at.block = p->blocks + (size_t)y * p->columns + x;
    at.above = y ? grid[-(ptrdiff_t)p->columns] : NULL;
    at.left = x > p->tile->first_column ? grid[-1] : NULL;
    at.width = at.width < p->columns - x ? at.width : p->columns - x;
    at.height = at.height < p->rows - y ? at.height : p->rows - y;
    memset(at.block, 0, sizeof *at.block);
    at.block->size = (uint8_t)size;
    vp9_modes(p, &p->tile->bools, &at);
    for (unsigned i = 0; i < at.height; i++)
        for (unsigned k = 0; k < at.width; k++)
            grid[(size_t)i * p->columns + k] = at.block;
    vp9_reconstruct(p, &p->tile->bools, &at);
}

static unsigned read_partition(struct vp9_picture *p, unsigned x, unsigned y, unsigned level)
{
    struct bools *b = &p->tile->bools;
    unsigned half = 1u << level >> 1, above = p->above_partition[x] >> level & 1, left = p->left_partition[y & (SUPERBLOCK - 1)] >> level & 1;
    unsigned context = 4 * level + 2 * left + above, partition = SPLIT;
    const uint8_t *from = p->probabilities->partition[context];
    int has_rows = y + half < p->rows, has_columns = x + half < p->columns;
    if (has_rows && has_columns)
        partition = (unsigned)bools_tree(b, vp9_partition_tree, from);
    else if (has_columns)
        partition = bools_read(b, from[1]) ? SPLIT : HORIZONTAL;
    else if (has_rows)
        partition = bools_read(b, from[2]) ? SPLIT : VERTICAL;
    p->counts->partition[context][partition]++;
    return partition;
}

/* A square of 8 << level samples. */
static void decode_partition(struct vp9_picture *p, unsigned x, unsigned y, unsigned level)
{
    if (x >= p->columns || y >= p->rows || bools_overrun(&p->tile->bools))
        return;
    unsigned partition = read_partition(p, x, y, level), half = 1u << level >> 1, size = sizes[level][partition];
    if (partition == SPLIT && level) {
        for (unsigned i = 0; i < 4; i++)
            decode_partition(p, x + (i & 1) * half, y + (i >> 1) * half, level - 1);
        return;
    }
    decode_block(p, x, y, size);
    if (partition == HORIZONTAL && level && y + half < p->rows)
        decode_block(p, x, y + half, size);
    if (partition == VERTICAL && level && x + half < p->columns)
        decode_block(p, x + half, y, size);
    memset(p->above_partition + x, 15 << log2_width(size) & 15, 1u << level);
    memset(p->left_partition + (y & (SUPERBLOCK - 1)), 15 << log2_height(size) & 15, 1u << level);
}

/* -- tiles ---------------------------------------------------------------------------------------------------------- */

/* Where a tile begins, of 1 << `log2_count`. */
static unsigned tile_start(unsigned index, unsigned log2_count, unsigned units)
{
    unsigned superblocks = (units + SUPERBLOCK - 1) / SUPERBLOCK, start = (index * superblocks >> log2_count) * SUPERBLOCK;
    return start < units ? start : units;
}

/* The data of the tiles of a row: all but the last of the picture are behind their sizes. */
static int open_tiles(struct vp9_picture *p)
{
    unsigned columns = 1u << p->tile_columns;
    for (unsigned i = 0; i < columns; i++) {
        int is_last = i == columns - 1 && p->tile_row == (1u << p->tile_rows) - 1;
        uint64_t size = p->size;
        if (!is_last) {
            uint32_t word;
            if (p->size < 4)
                return 0;
            memcpy(&word, p->data, 4);
            size = __builtin_bswap32(word);
            p->data += 4;
            p->size -= 4;
        }
        if (size > p->size)
            return 0;
        struct vp9_tile *tile = &p->tiles[i];
        tile->first_column = tile_start(i, p->tile_columns, p->columns);
        tile->end_column = tile_start(i + 1, p->tile_columns, p->columns);
        bools_start(&tile->bools, p->data, size);
        if (bools_read(&tile->bools, 128)) /* the marker */
            return 0;
        p->data += size;
        p->size -= size;
    }
    return 1;
}

static void add_error(struct vp9_picture *p, uint32_t bit)
{
    __atomic_fetch_or(&p->picture->errors, bit, __ATOMIC_RELAXED);
}

/* A row of superblocks of this thread's tiles. */
static void decode_row(struct vp9_picture *p)
{
    for (; p->tile_row < 1u << p->tile_rows && p->row * SUPERBLOCK == tile_start(p->tile_row, p->tile_rows, p->rows); p->tile_row++)
        if (!open_tiles(p)) {
            add_error(p, VP9_HEADER_ERROR);
            p->broken = 1;
            return;
        }
    for (unsigned i = p->first_tile; i < p->end_tile; i++) {
        p->tile = &p->tiles[i];
        memset(p->left_nonzero, 0, sizeof p->left_nonzero);
        memset(p->left_partition, 0, sizeof p->left_partition);
        for (unsigned x = p->tile->first_column; x < p->tile->end_column; x += SUPERBLOCK)
            decode_partition(p, x, p->row * SUPERBLOCK, 3);
        if (bools_overrun(&p->tile->bools))
            add_error(p, VP9_PREMATURE_END);
    }
}

/* -- what is missing ------------------------------------------------------------------------------------------------ */

static void conceal_unit(struct vp9_picture *p, const struct frame *from, unsigned x, unsigned y)
{
    for (int plane = 0; plane < PLANES; plane++) {
        const struct plane *to = &p->picture->frame.plane[plane];
        unsigned size = plane ? 4 : 8;
        for (unsigned row = y * size; row < (y + 1) * size; row++)
            for (unsigned column = x * size; column < (x + 1) * size; column++) {
                const struct plane *f = from ? &from->plane[plane] : NULL;
                int is_there = f && row < f->height && column < f->width;
                *samples_at(to, column, row) = is_there ? *samples_at(f, column, row) : (uint16_t)(1u << (p->depth - 1));
            }
    }
    p->picture->concealed++;
}

/* 8x8 blocks that were not decoded are those of the last picture; without one they are grey. */
static void conceal(struct vp9_picture *p)
{
    const struct frame *from = NULL;
    for (unsigned y = 0; y < p->rows; y++)
        for (unsigned x = 0; x < p->columns; x++)
            if (!p->grid[(size_t)y * p->columns + x]) {
                from = from || p->intra_only ? from : vp9_reference(p, VP9_LAST);
                conceal_unit(p, from, x, y);
            }
}

/* -- a picture ------------------------------------------------------------------------------------------------------ */

static void start(struct vp9_picture *p)
{
    p->columns = (p->width + 7) / 8, p->rows = (p->height + 7) / 8;
    p->before = *p->probabilities;
    if (!vp9_header(p)) {
        p->picture->errors |= VP9_HEADER_ERROR;
        p->broken = 1;
        return;
    }
    p->data += p->header_bytes;
    p->size -= p->header_bytes;
}

static unsigned rows_of(const struct vp9_picture *p)
{
    return ((p->height + 7) / 8 + SUPERBLOCK - 1) / SUPERBLOCK;
}

/* Entry: a picture, a row of superblocks at a time, then the loop filter; answers how many steps are left. */
ENTRY int64_t vp9_decode(struct vp9_picture *p, void *record)
{
    unsigned rows = rows_of(p);
    (void)record;
    if (p->phase == DECODE) {
        if (!p->row)
            start(p);
        if (!p->broken)
            decode_row(p);
        p->row++;
        if (p->row < rows && !p->broken)
            return 2 * rows - p->row;
        conceal(p);
        p->phase = FILTER;
        p->row = p->level ? 0 : rows;
    }
    if (p->row < rows) {
        vp9_filter(p, p->row++);
        return 1 + rows - p->row;
    }
    if (p->adapt && !p->broken)
        vp9_adapt(p);
    return 0;
}

/* -- pictures that several host threads decode ----------------------------------------------------------------------- */

/* Entry: what comes before tiles. */
ENTRY int64_t vp9_open(struct vp9_picture *p, void *record)
{
    (void)record;
    start(p);
    return 0;
}

/* Entry: reads the samples of references, so that threads find them. */
ENTRY int64_t vp9_load(struct vp9_load *load, void *record)
{
    (void)record;
    for (uint32_t i = load->first; i < VP9_REFERENCES; i += load->step)
        vp9_reference(load->picture, VP9_LAST + (int)i);
    return 0;
}

/* Entry: a row of superblocks of the tiles of a copy; answers how many rows are left. */
ENTRY int64_t vp9_tiles(struct vp9_picture *p, void *record)
{
    (void)record;
    if (!p->broken)
        decode_row(p);
    p->row++;
    return p->broken || p->row >= rows_of(p) ? 0 : (int64_t)(rows_of(p) - p->row);
}

/* Entry: adds what a copy has counted. */
ENTRY int64_t vp9_join(struct vp9_join *join, void *record)
{
    uint32_t *to = (uint32_t *)(void *)join->picture->counts;
    const uint32_t *from = (const uint32_t *)(const void *)join->part->counts;
    (void)record;
    for (size_t i = 0; i < sizeof(struct vp9_counts) / sizeof *to && to != from; i++)
        to[i] += from[i];
    join->picture->broken |= join->part->broken;
    return 0;
}

/* Entry: conceals what is missing. */
ENTRY int64_t vp9_conceal(struct vp9_picture *p, void *record)
{
    (void)record;
    conceal(p);
    return 0;
}

/* Entry: the loop filter of rows of superblocks that no thread has begun; all threads share one picture. */
ENTRY int64_t vp9_filter_rows(struct vp9_picture *p, void *record)
{
    unsigned rows = rows_of(p);
    (void)record;
    for (unsigned row; p->level && (row = __atomic_fetch_add(&p->next_row, 1, __ATOMIC_RELAXED)) < rows;)
        vp9_filter(p, row);
    return 0;
}

/* Entry: what comes after the loop filter. */
ENTRY int64_t vp9_close(struct vp9_picture *p, void *record)
{
    (void)record;
    if (p->adapt && !p->broken)
        vp9_adapt(p);
    return 0;
}
