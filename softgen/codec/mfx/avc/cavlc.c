/* Coefficients in variable-length codes (9.2). */
#include "avc.h"

enum { TOKEN_FIRST = 8, ZERO_FIRST = 5, TOKEN_ROOM = 1024, ZERO_ROOM = 64, RUN_FIRST = 3, RUN_ROOM = 300 };
enum { CHROMA_DC = 3, MOST_PREFIX = 25 };

static struct vlc_entry tokens[4][TOKEN_ROOM], zeros[15][1 << ZERO_FIRST | ZERO_ROOM], chroma_zeros[3][1 << 3], runs[7][RUN_ROOM];

__attribute__((constructor)) static void build(void)
{
    for (int i = 0; i < 4; i++)
        vlc_build(tokens[i], TOKEN_ROOM, TOKEN_FIRST, avc_coeff_token[i], 62);
    for (int i = 0; i < 15; i++)
        vlc_build(zeros[i], 1 << ZERO_FIRST | ZERO_ROOM, ZERO_FIRST, avc_total_zeros[i], 16);
    for (int i = 0; i < 3; i++)
        vlc_build(chroma_zeros[i], 1 << 3, 3, avc_chroma_zeros[i], 4);
    for (int i = 0; i < 7; i++)
        vlc_build(runs[i], RUN_ROOM, RUN_FIRST, avc_run_before[i], 15);
}

/* coeff_token for a number of coefficients nearby; -1: of chroma DC. */
static int token(struct bits *b, int nearby)
{
    if (nearby < 0)
        return vlc_read(b, tokens[CHROMA_DC], TOKEN_FIRST);
    if (nearby < 8)
        return vlc_read(b, tokens[nearby < 2 ? 0 : nearby < 4 ? 1 : 2], TOKEN_FIRST);
    int code = (int)bits_read(b, 6); /* four bits less one, and trailing ones; 3: none */
    return code == 3 ? 0 : code + 4;
}

/* level_prefix and level_suffix (9.2.2.1). */
static int level_code(struct bits *b, int suffix_length, int first)
{
    uint32_t word = bits_peek32(b);
    int prefix = word ? __builtin_clz(word) : 32, size = suffix_length;
    if (prefix > MOST_PREFIX)
        return NO_CODE;
    bits_skip(b, (unsigned)prefix + 1);
    int code = (prefix < 15 ? prefix : 15) << suffix_length;
    if (prefix == 14 && !suffix_length)
        size = 4;
    if (prefix >= 15)
        size = prefix - 3;
    code += (int)bits_read(b, (unsigned)size);
    if (prefix >= 15 && !suffix_length)
        code += 15;
    if (prefix >= 16)
        code += (1 << (prefix - 3)) - 4096;
    return code + (first ? 2 : 0);
}

static int levels(struct bits *b, int total, int ones, int32_t *level)
{
    int suffix_length = total > 10 && ones < 3;
    for (int i = 0; i < ones; i++)
        level[i] = bits_read(b, 1) ? -1 : 1;
    for (int i = ones; i < total; i++) {
        int code = level_code(b, suffix_length, i == ones && ones < 3);
        if (code == NO_CODE)
            return 0;
        level[i] = code & 1 ? (-code - 1) >> 1 : (code + 2) >> 1;
        if (!suffix_length)
            suffix_length = 1;
        if ((level[i] < 0 ? -level[i] : level[i]) > 3 << (suffix_length - 1) && suffix_length < 6)
            suffix_length++;
    }
    return 1;
}

/* A block's levels, the one of the highest frequency first, and where each is. Answers how many there are, or -1. */
static int residual_block(struct bits *b, int nearby, int most, int32_t *level, int *place)
{
    int code = token(b, nearby), total = code >> 2, left = 0;
    if (code == NO_CODE || total > most)
        return -1;
    if (!total)
        return 0;
    if (!levels(b, total, code & 3, level))
        return -1;
    if (total < most) {
        left = nearby < 0 ? vlc_read(b, chroma_zeros[total - 1], 3) : vlc_read(b, zeros[total - 1], ZERO_FIRST);
        if (left < 0 || left + total > most)
            return -1;
    }
    int at = left + total - 1;
    for (int i = 0; i < total; i++) {
        place[i] = at--;
        if (left && i < total - 1) {
            int run = vlc_read(b, runs[(left < 7 ? left : 7) - 1], RUN_FIRST);
            if (run < 0 || run > left)
                return -1;
            left -= run;
            at -= run;
        }
    }
    return total;
}

static int count_at(struct avc_place place, int plane, int shift)
{
    int first = plane ? 12 + 4 * plane : 0, across = plane ? 2 : 4;
    return place.mb->count[first + (place.y >> shift) * across + (place.x >> shift)];
}

/* nC: coefficients of the blocks at the left and above (9.2.1). */
int avc_nearby_count(const struct avc_decoder *d, int plane, int x, int y)
{
    int size = plane ? 8 : 16;
    struct avc_place a = avc_neighbour(d, x - 1, y, size, size), b = avc_neighbour(d, x, y - 1, size, size);
    if (a.mb && b.mb)
        return (count_at(a, plane, 2) + count_at(b, plane, 2) + 1) >> 1;
    return a.mb ? count_at(a, plane, 2) : b.mb ? count_at(b, plane, 2) : 0;
}

/* A block of a plane at (x, y), scaled as `scale` and `shift` say, from coefficient `first` on; how many it has, or -1. */
int cavlc_block(struct avc_decoder *d, int plane, int block, const uint8_t *scan, const uint32_t *scale, int shift, int first, int most,
                int32_t *out)
{
    int32_t level[16];
    int place[16], x = plane ? 4 * (block & 1) : 4 * avc_block_x[block], y = plane ? 4 * (block >> 1) : 4 * avc_block_y[block];
    int total = residual_block(&d->bits, avc_nearby_count(d, plane, x, y), most, level, place);
    for (int i = 0; i < total; i++) {
        int at = scan[first + place[i]];
        out[at] = shift < 0 ? level[i] : (level[i] * (int)scale[at] + (shift ? 1 << (shift - 1) : 0)) >> shift;
    }
    return total;
}

/* The DC coefficients of a plane: 16 of luma in raster order of their blocks, 4 of chroma. */
int cavlc_dc(struct avc_decoder *d, int plane)
{
    int32_t level[16];
    int place[16], total = residual_block(&d->bits, plane ? -1 : avc_nearby_count(d, 0, 0, 0), plane ? 4 : 16, level, place);
    for (int i = 0; i < total; i++)
        d->dc[plane][plane ? place[i] : avc_scan4[d->field][place[i]]] = level[i];
    return total;
}
