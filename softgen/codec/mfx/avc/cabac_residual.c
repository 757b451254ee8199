/* Coefficients in arithmetic codes (7.3.5.3.3, 9.3.3.1.3). */
#include "cabac_contexts.h"

/* First contexts by ctxBlockCat (tables 9-34 and 9-40). */
const uint16_t avc_coded_first[6] = {85, 89, 93, 97, 101, 0};
const uint16_t avc_significant_first[2][6] = {{105, 120, 134, 149, 152, 402}, {277, 292, 306, 321, 324, 436}};
const uint16_t avc_last_first[2][6] = {{166, 181, 195, 210, 213, 417}, {338, 353, 367, 382, 385, 451}};
const uint16_t avc_level_first[6] = {227, 237, 247, 257, 266, 426};

static inline int bin(struct avc_decoder *d, struct cabac *c, int context)
{
    return cabac_bit(c, &d->contexts[context]);
}

/* coded_block_flag of the block at a place, for the context of the current one (9.3.3.1.1.9). */
static int coded(const struct avc_decoder *d, struct avc_place p, int category, int plane)
{
    if (!p.mb)
        return is_intra(d->mb);
    if (p.mb->kind == INTRA_PCM)
        return 1;
    if (category == LUMA_DC || category == CHROMA_DC)
        return p.mb->dc >> plane & 1;
    if (plane)
        return p.mb->count[12 + 4 * plane + (p.y >> 2) * 2 + (p.x >> 2)] != 0;
    return p.mb->count[(p.y >> 2) * 4 + (p.x >> 2)] != 0;
}

int avc_coded_nearby(const struct avc_decoder *d, int category, int plane, int block)
{
    int dc = category == LUMA_DC || category == CHROMA_DC, size = plane ? 8 : 16;
    int x = dc ? 0 : plane ? 4 * (block & 1) : 4 * avc_block_x[block], y = dc ? 0 : plane ? 4 * (block >> 1) : 4 * avc_block_y[block];
    int a = coded(d, avc_neighbour(d, x - 1, y, size, size), category, plane);
    int b = coded(d, avc_neighbour(d, x, y - 1, size, size), category, plane);
    return a + 2 * b;
}

/* Where coefficients are, in the order of the scan; how many. `category` is a constant of the caller, or one that has no tables. */
static inline __attribute__((always_inline)) int significant_in(struct avc_decoder *d, struct cabac *c, int category, int first, int last,
                                                                int most, uint8_t place[64])
{
    int count = 0;
    for (int i = 0; i < most - 1; i++) {
        int at = category == LUMA_8X8 ? avc_significant_8x8[d->field][i] : category == CHROMA_DC ? (i < 2 ? i : 2) : i;
        if (!bin(d, c, first + at))
            continue;
        place[count++] = (uint8_t)i;
        if (bin(d, c, last + (category == LUMA_8X8 ? avc_last_8x8[i] : at)))
            return count;
    }
    place[count++] = (uint8_t)(most - 1);
    return count;
}

static inline int significant(struct avc_decoder *d, struct cabac *c, int category, int most, uint8_t place[64])
{
    const int first = avc_significant_first[d->field][category], last = avc_last_first[d->field][category];
    if (category == LUMA_8X8)
        return significant_in(d, c, LUMA_8X8, first, last, 64, place);
    if (category == CHROMA_DC)
        return significant_in(d, c, CHROMA_DC, first, last, 4, place);
    return significant_in(d, c, LUMA_4X4, first, last, most, place);
}

/* coeff_abs_level_minus1 and the sign; `ones` and `more`: levels of 1 and above that came before. */
static inline int level(struct avc_decoder *d, struct cabac *c, int category, int ones, int more)
{
    int first = avc_level_first[category], value = 1, limit = category == CHROMA_DC ? 3 : 4;
    if (bin(d, c, first + (more ? 0 : ones < 3 ? ones + 1 : 4))) {
        int context = first + 5 + (more < limit ? more : limit);
        for (value = 2; value < 15 && bin(d, c, context); value++)
            continue;
        if (value == 15) {
            int k = 0;
            for (; k < 24 && cabac_bypass(c); k++)
                value += 1 << k;
            while (k--)
                value += cabac_bypass(c) << k;
        }
    }
    return cabac_bypass(c) ? -value : value;
}

/* A block of a plane; how many coefficients it has. `scan` null: they stand in their order. */
int cabac_block(struct avc_decoder *d, int category, int plane, int block, const uint8_t *scan, const uint32_t *scale, int shift, int first,
                int most, int32_t *out)
{
    uint8_t place[64];
    if (category != LUMA_8X8 && !bin(d, &d->cabac, avc_coded_first[category] + avc_coded_nearby(d, category, plane, block)))
        return 0;
    struct cabac c = d->cabac; /* a copy, which stays in registers */
    int count = significant(d, &c, category, most, place), ones = 0, more = 0;
    for (int i = count - 1; i >= 0; i--) {
        int value = level(d, &c, category, ones, more), at = scan ? scan[first + place[i]] : place[i];
        if (value == 1 || value == -1)
            ones++;
        else
            more++;
        out[at] = shift < 0 ? value : (value * (int)scale[at] + (shift ? 1 << (shift - 1) : 0)) >> shift;
    }
    d->cabac = c;
    return count;
}
