/* Codes of annex B of ISO/IEC 13818-2, {code, length, value} by length; its alternate scan; tables to read them with. */
#include "mpeg2_codes.h"

/* B.1: macroblock_address_increment. */
static const struct vlc_code mpeg2_address_increment[35] = {
    {0x1, 1, 1}, {0x2, 3, 3}, {0x3, 3, 2}, {0x2, 4, 5}, {0x3, 4, 4}, {0x2, 5, 7}, {0x3, 5, 6}, {0x6, 7, 9}, {0x7, 7, 8}, {0x6, 8, 15},
    {0x7, 8, 14}, {0x8, 8, 13}, {0x9, 8, 12}, {0xa, 8, 11}, {0xb, 8, 10}, {0x12, 10, 21}, {0x13, 10, 20}, {0x14, 10, 19}, {0x15, 10, 18},
    {0x16, 10, 17}, {0x17, 10, 16}, {0x8, 11, ADDRESS_ESCAPE}, {0xf, 11, ADDRESS_STUFFING}, {0x18, 11, 33}, {0x19, 11, 32},
    {0x1a, 11, 31}, {0x1b, 11, 30}, {0x1c, 11, 29}, {0x1d, 11, 28}, {0x1e, 11, 27}, {0x1f, 11, 26}, {0x20, 11, 25}, {0x21, 11, 24},
    {0x22, 11, 23}, {0x23, 11, 22},
};

/* B.9: coded_block_pattern_420. */
static const struct vlc_code mpeg2_pattern[64] = {
    {0x7, 3, 60}, {0xa, 4, 32}, {0xb, 4, 16}, {0xc, 4, 8}, {0xd, 4, 4}, {0x8, 5, 62}, {0x9, 5, 2}, {0xa, 5, 61}, {0xb, 5, 1},
    {0xc, 5, 56}, {0xd, 5, 52}, {0xe, 5, 44}, {0xf, 5, 28}, {0x10, 5, 40}, {0x11, 5, 20}, {0x12, 5, 48}, {0x13, 5, 12}, {0xc, 6, 63},
    {0xd, 6, 3}, {0xe, 6, 36}, {0xf, 6, 24}, {0x10, 7, 34}, {0x11, 7, 18}, {0x12, 7, 10}, {0x13, 7, 6}, {0x14, 7, 33}, {0x15, 7, 17},
    {0x16, 7, 9}, {0x17, 7, 5}, {0x4, 8, 58}, {0x5, 8, 54}, {0x6, 8, 46}, {0x7, 8, 30}, {0x8, 8, 57}, {0x9, 8, 53}, {0xa, 8, 45},
    {0xb, 8, 29}, {0xc, 8, 38}, {0xd, 8, 26}, {0xe, 8, 37}, {0xf, 8, 25}, {0x10, 8, 43}, {0x11, 8, 23}, {0x12, 8, 51}, {0x13, 8, 15},
    {0x14, 8, 42}, {0x15, 8, 22}, {0x16, 8, 50}, {0x17, 8, 14}, {0x18, 8, 41}, {0x19, 8, 21}, {0x1a, 8, 49}, {0x1b, 8, 13}, {0x1c, 8, 35},
    {0x1d, 8, 19}, {0x1e, 8, 11}, {0x1f, 8, 7}, {0x1, 9, 0}, {0x2, 9, 39}, {0x3, 9, 27}, {0x4, 9, 59}, {0x5, 9, 55}, {0x6, 9, 47},
    {0x7, 9, 31},
};

/* B.10: motion_code without its sign. */
static const struct vlc_code mpeg2_motion[17] = {
    {0x1, 1, 0}, {0x1, 2, 1}, {0x1, 3, 2}, {0x1, 4, 3}, {0x3, 6, 4}, {0x3, 7, 7}, {0x4, 7, 6}, {0x5, 7, 5}, {0x9, 9, 10}, {0xa, 9, 9},
    {0xb, 9, 8}, {0xc, 10, 16}, {0xd, 10, 15}, {0xe, 10, 14}, {0xf, 10, 13}, {0x10, 10, 12}, {0x11, 10, 11},
};

/* B.12: dct_dc_size_luminance. */
static const struct vlc_code mpeg2_dc_luma[12] = {
    {0x0, 2, 1}, {0x1, 2, 2}, {0x4, 3, 0}, {0x5, 3, 3}, {0x6, 3, 4}, {0xe, 4, 5}, {0x1e, 5, 6}, {0x3e, 6, 7}, {0x7e, 7, 8}, {0xfe, 8, 9},
    {0x1fe, 9, 10}, {0x1ff, 9, 11},
};

/* B.13: dct_dc_size_chrominance. */
static const struct vlc_code mpeg2_dc_chroma[12] = {
    {0x0, 2, 0}, {0x1, 2, 1}, {0x2, 2, 2}, {0x6, 3, 3}, {0xe, 4, 4}, {0x1e, 5, 5}, {0x3e, 6, 6}, {0x7e, 7, 7}, {0xfe, 8, 8},
    {0x1fe, 9, 9}, {0x3fe, 10, 10}, {0x3ff, 10, 11},
};

/* B.14: 64 run + level of coefficients, but for the first of a block that is not intra. */
static const struct vlc_code mpeg2_coefficients[113] = {
    {0x2, 2, END_OF_BLOCK}, {0x3, 2, 1}, {0x3, 3, 65}, {0x4, 4, 2}, {0x5, 4, 129}, {0x5, 5, 3}, {0x6, 5, 257}, {0x7, 5, 193},
    {0x1, 6, COEFFICIENT_ESCAPE}, {0x4, 6, 449}, {0x5, 6, 385}, {0x6, 6, 66}, {0x7, 6, 321}, {0x4, 7, 130}, {0x5, 7, 577}, {0x6, 7, 4},
    {0x7, 7, 513}, {0x20, 8, 833}, {0x21, 8, 6}, {0x22, 8, 769}, {0x23, 8, 705}, {0x24, 8, 194}, {0x25, 8, 67}, {0x26, 8, 5},
    {0x27, 8, 641}, {0x8, 10, 1025}, {0x9, 10, 322}, {0xa, 10, 7}, {0xb, 10, 131}, {0xc, 10, 68}, {0xd, 10, 961}, {0xe, 10, 897},
    {0xf, 10, 258}, {0x10, 12, 11}, {0x11, 12, 514}, {0x12, 12, 259}, {0x13, 12, 10}, {0x14, 12, 132}, {0x15, 12, 450}, {0x16, 12, 1345},
    {0x17, 12, 1281}, {0x18, 12, 9}, {0x19, 12, 1217}, {0x1a, 12, 1153}, {0x1b, 12, 69}, {0x1c, 12, 195}, {0x1d, 12, 8}, {0x1e, 12, 386},
    {0x1f, 12, 1089}, {0x10, 13, 642}, {0x11, 13, 578}, {0x12, 13, 323}, {0x13, 13, 196}, {0x14, 13, 133}, {0x15, 13, 71}, {0x16, 13, 70},
    {0x17, 13, 15}, {0x18, 13, 14}, {0x19, 13, 13}, {0x1a, 13, 12}, {0x1b, 13, 1665}, {0x1c, 13, 1601}, {0x1d, 13, 1537},
    {0x1e, 13, 1473}, {0x1f, 13, 1409}, {0x10, 14, 31}, {0x11, 14, 30}, {0x12, 14, 29}, {0x13, 14, 28}, {0x14, 14, 27}, {0x15, 14, 26},
    {0x16, 14, 25}, {0x17, 14, 24}, {0x18, 14, 23}, {0x19, 14, 22}, {0x1a, 14, 21}, {0x1b, 14, 20}, {0x1c, 14, 19}, {0x1d, 14, 18},
    {0x1e, 14, 17}, {0x1f, 14, 16}, {0x10, 15, 40}, {0x11, 15, 39}, {0x12, 15, 38}, {0x13, 15, 37}, {0x14, 15, 36}, {0x15, 15, 35},
    {0x16, 15, 34}, {0x17, 15, 33}, {0x18, 15, 32}, {0x19, 15, 78}, {0x1a, 15, 77}, {0x1b, 15, 76}, {0x1c, 15, 75}, {0x1d, 15, 74},
    {0x1e, 15, 73}, {0x1f, 15, 72}, {0x10, 16, 82}, {0x11, 16, 81}, {0x12, 16, 80}, {0x13, 16, 79}, {0x14, 16, 387}, {0x15, 16, 1026},
    {0x16, 16, 962}, {0x17, 16, 898}, {0x18, 16, 834}, {0x19, 16, 770}, {0x1a, 16, 706}, {0x1b, 16, 1985}, {0x1c, 16, 1921},
    {0x1d, 16, 1857}, {0x1e, 16, 1793}, {0x1f, 16, 1729},
};

/* B.15: of intra blocks with intra_vlc_format. */
static const struct vlc_code mpeg2_intra_coefficients[113] = {
    {0x2, 2, 1}, {0x2, 3, 65}, {0x6, 3, 2}, {0x6, 4, END_OF_BLOCK}, {0x7, 4, 3}, {0x5, 5, 129}, {0x6, 5, 66}, {0x7, 5, 193}, {0x1c, 5, 4},
    {0x1d, 5, 5}, {0x1, 6, COEFFICIENT_ESCAPE}, {0x4, 6, 7}, {0x5, 6, 6}, {0x6, 6, 257}, {0x7, 6, 321}, {0x4, 7, 449}, {0x5, 7, 513},
    {0x6, 7, 385}, {0x7, 7, 130}, {0x78, 7, 577}, {0x79, 7, 67}, {0x7a, 7, 641}, {0x7b, 7, 8}, {0x7c, 7, 9}, {0x20, 8, 69},
    {0x21, 8, 705}, {0x22, 8, 11}, {0x23, 8, 10}, {0x24, 8, 833}, {0x25, 8, 769}, {0x26, 8, 194}, {0x27, 8, 68}, {0xfa, 8, 12},
    {0xfb, 8, 13}, {0xfc, 8, 131}, {0xfd, 8, 258}, {0xfe, 8, 14}, {0xff, 8, 15}, {0x4, 9, 322}, {0x5, 9, 897}, {0x7, 9, 961},
    {0xc, 10, 132}, {0xd, 10, 1025}, {0x11, 12, 514}, {0x12, 12, 259}, {0x15, 12, 450}, {0x16, 12, 1345}, {0x17, 12, 1281},
    {0x19, 12, 1217}, {0x1a, 12, 1153}, {0x1c, 12, 195}, {0x1e, 12, 386}, {0x1f, 12, 1089}, {0x10, 13, 642}, {0x11, 13, 578},
    {0x12, 13, 323}, {0x13, 13, 196}, {0x14, 13, 133}, {0x15, 13, 71}, {0x16, 13, 70}, {0x1b, 13, 1665}, {0x1c, 13, 1601},
    {0x1d, 13, 1537}, {0x1e, 13, 1473}, {0x1f, 13, 1409}, {0x10, 14, 31}, {0x11, 14, 30}, {0x12, 14, 29}, {0x13, 14, 28}, {0x14, 14, 27},
    {0x15, 14, 26}, {0x16, 14, 25}, {0x17, 14, 24}, {0x18, 14, 23}, {0x19, 14, 22}, {0x1a, 14, 21}, {0x1b, 14, 20}, {0x1c, 14, 19},
    {0x1d, 14, 18}, {0x1e, 14, 17}, {0x1f, 14, 16}, {0x10, 15, 40}, {0x11, 15, 39}, {0x12, 15, 38}, {0x13, 15, 37}, {0x14, 15, 36},
    {0x15, 15, 35}, {0x16, 15, 34}, {0x17, 15, 33}, {0x18, 15, 32}, {0x19, 15, 78}, {0x1a, 15, 77}, {0x1b, 15, 76}, {0x1c, 15, 75},
    {0x1d, 15, 74}, {0x1e, 15, 73}, {0x1f, 15, 72}, {0x10, 16, 82}, {0x11, 16, 81}, {0x12, 16, 80}, {0x13, 16, 79}, {0x14, 16, 387},
    {0x15, 16, 1026}, {0x16, 16, 962}, {0x17, 16, 898}, {0x18, 16, 834}, {0x19, 16, 770}, {0x1a, 16, 706}, {0x1b, 16, 1985},
    {0x1c, 16, 1921}, {0x1d, 16, 1857}, {0x1e, 16, 1793}, {0x1f, 16, 1729},
};

/* B.2 to B.4: macroblock_type by picture_coding_type. */
static const struct vlc_code type_codes[3][11] = {
    {{1, 1, MPEG2_INTRA}, {1, 2, MPEG2_INTRA | MPEG2_QUANT}},
    {{1, 1, MPEG2_FORWARD | MPEG2_PATTERN}, {1, 2, MPEG2_PATTERN}, {1, 3, MPEG2_FORWARD}, {3, 5, MPEG2_INTRA},
     {2, 5, MPEG2_FORWARD | MPEG2_PATTERN | MPEG2_QUANT}, {1, 5, MPEG2_PATTERN | MPEG2_QUANT}, {1, 6, MPEG2_INTRA | MPEG2_QUANT}},
    {{2, 2, MPEG2_FORWARD | MPEG2_BACKWARD}, {3, 2, MPEG2_FORWARD | MPEG2_BACKWARD | MPEG2_PATTERN}, {2, 3, MPEG2_BACKWARD},
     {3, 3, MPEG2_BACKWARD | MPEG2_PATTERN}, {2, 4, MPEG2_FORWARD}, {3, 4, MPEG2_FORWARD | MPEG2_PATTERN}, {3, 5, MPEG2_INTRA},
     {2, 5, MPEG2_FORWARD | MPEG2_BACKWARD | MPEG2_PATTERN | MPEG2_QUANT}, {3, 6, MPEG2_FORWARD | MPEG2_PATTERN | MPEG2_QUANT},
     {2, 6, MPEG2_BACKWARD | MPEG2_PATTERN | MPEG2_QUANT}, {1, 6, MPEG2_INTRA | MPEG2_QUANT}},
};

/* Figure 7-3: raster positions in the order of the alternate scan. */
const uint8_t mpeg2_alternate_scan[64] = {
    0, 8, 16, 24, 1, 9, 2, 10, 17, 25, 32, 40, 48, 56, 57, 49, 41, 33, 26, 18, 3, 11, 4, 12, 19, 27, 34, 42, 50, 58, 35, 43,
    51, 59, 20, 28, 5, 13, 6, 14, 21, 29, 36, 44, 52, 60, 37, 45, 53, 61, 22, 30, 7, 15, 23, 31, 38, 46, 54, 62, 39, 47, 55, 63,
};

struct vlc_entry mpeg2_coefficient_tables[2][MPEG2_COEFFICIENT_ROOM];
static struct vlc_entry addresses[512], patterns[512], types[3][1 << 6], dc_sizes[2][1 << 9 | 2], motions[256];
enum { ADDRESS_FIRST = 8, PATTERN_FIRST = 9, TYPE_FIRST = 6, DC_FIRST = 9, MOTION_FIRST = 7 };

__attribute__((constructor)) static void build(void)
{
    static const int counts[3] = {2, 7, 11};
    vlc_build(addresses, 512, ADDRESS_FIRST, mpeg2_address_increment, 35);
    vlc_build(patterns, 512, PATTERN_FIRST, mpeg2_pattern, 64);
    for (int i = 0; i < 3; i++)
        vlc_build(types[i], 1 << TYPE_FIRST, TYPE_FIRST, type_codes[i], counts[i]);
    vlc_build(dc_sizes[0], 1 << DC_FIRST | 2, DC_FIRST, mpeg2_dc_luma, 12);
    vlc_build(dc_sizes[1], 1 << DC_FIRST | 2, DC_FIRST, mpeg2_dc_chroma, 12);
    vlc_build(motions, 256, MOTION_FIRST, mpeg2_motion, 17);
    vlc_build(mpeg2_coefficient_tables[0], MPEG2_COEFFICIENT_ROOM, MPEG2_COEFFICIENT_FIRST, mpeg2_coefficients, 113);
    vlc_build(mpeg2_coefficient_tables[1], MPEG2_COEFFICIENT_ROOM, MPEG2_COEFFICIENT_FIRST, mpeg2_intra_coefficients, 113);
}

unsigned mpeg2_read_increment(struct bits *b)
{
    for (unsigned sum = 0; bits_left(b) > 0;) {
        int value = vlc_read(b, addresses, ADDRESS_FIRST);
        if (value == NO_CODE)
            return 0;
        if (value == ADDRESS_ESCAPE)
            sum += 33;
        else if (value != ADDRESS_STUFFING)
            return sum + (unsigned)value;
    }
    return 0;
}

int mpeg2_read_type(struct bits *b, unsigned picture_coding_type)
{
    return vlc_read(b, types[picture_coding_type - 1], TYPE_FIRST);
}

int mpeg2_read_pattern(struct bits *b)
{
    return vlc_read(b, patterns, PATTERN_FIRST);
}

int mpeg2_read_dc(struct bits *b, int chroma, int *difference)
{
    int size = vlc_read(b, dc_sizes[chroma], DC_FIRST);
    if (size < 0)
        return 0;
    *difference = (int)bits_read(b, (unsigned)size);
    if (size && *difference < 1 << (size - 1))
        *difference -= (1 << size) - 1;
    return 1;
}

/* motion_code and motion_residual; 0 where there is no such code. */
static int read_motion(struct bits *b, int f_code, int *difference)
{
    int code = vlc_read(b, motions, MOTION_FIRST), size = f_code - 1;
    if (code == NO_CODE)
        return 0;
    *difference = 0;
    if (code) {
        int negative = (int)bits_read(b, 1);
        *difference = ((code - 1) << size) + (int)bits_read(b, (unsigned)size) + 1;
        *difference = negative ? -*difference : *difference;
    }
    return 1;
}

/* dmvector */
static int read_dual(struct bits *b)
{
    return !bits_read(b, 1) ? 0 : bits_read(b, 1) ? -1 : 1;
}

int mpeg2_read_vector(struct bits *b, const uint8_t f_code[2], int halved, int predictor[2], int vector[2], int *dual)
{
    for (int t = 0; t < 2; t++) {
        int change, scaled = halved && t;
        if (f_code[t] < 1 || f_code[t] > 9 || !read_motion(b, f_code[t], &change))
            return 0;
        int limit = 16 << (f_code[t] - 1), value = (scaled ? predictor[t] >> 1 : predictor[t]) + change;
        value = value < -limit ? value + 2 * limit : value >= limit ? value - 2 * limit : value;
        predictor[t] = scaled ? 2 * value : value;
        vector[t] = value;
        if (dual)
            dual[t] = read_dual(b);
    }
    return 1;
}

struct vlc_code mpeg2_code_of(enum mpeg2_table table, int value)
{
    static const struct {
        const struct vlc_code *codes;
        int count;
    } all[] = {
        {mpeg2_address_increment, 35}, {mpeg2_pattern, 64}, {mpeg2_motion, 17}, {mpeg2_dc_luma, 12}, {mpeg2_dc_chroma, 12},
        {mpeg2_coefficients, 113}, {mpeg2_intra_coefficients, 113}, {type_codes[0], 2}, {type_codes[1], 7}, {type_codes[2], 11},
    };
    for (int i = 0; i < all[table].count; i++)
        if (all[table].codes[i].value == value)
            return all[table].codes[i];
    return (struct vlc_code){0};
}
