/* JPEG scans: Huffman codes to blocks of samples (T.81 baseline; jpeg.h). */
#include <stddef.h>
#include <string.h>

#include "../../transform/transform.h"
#include "jpeg.h"

enum { FIRST_BITS = 9, DC_START = 1024 }; /* DC_START: the 128 that samples are raised by */
enum { MISSING_BLOCK = 1 << 2, INCONSISTENT_CODE = 1 << 4 }; /* error bits (KBL 12923-12942) */

/* Entry: the codes of a table: as many of each length as `counts` says, in rising order (T.81 annex C). */
ENTRY int64_t jpeg_build(struct jpeg_table *t, void *record)
{
    struct vlc_code codes[256];
    uint32_t code = 0;
    int count = 0;
    (void)record;
    for (int length = 1; length <= 16; length++, code <<= 1)
        for (int i = 0; i < t->counts[length - 1] && count < 256; i++, code++, count++)
            codes[count] = (struct vlc_code){code, (int16_t)length, t->values[count]};
    return vlc_build(t->entries, JPEG_TABLE_ROOM, FIRST_BITS, codes, count);
}

/* The bytes up to the next marker, without those that are stuffed behind FF; the marker is passed over. */
static struct bits next_segment(struct jpeg_scan *s)
{
    uint64_t size = 0;
    for (; s->at < s->size; s->at++) {
        uint8_t byte = s->data[s->at];
        if (byte == 0xff && s->at + 1 < s->size) {
            uint8_t after = s->data[s->at + 1];
            if (after == 0xff)
                continue; /* fill bytes before a marker */
            s->at++;
            if (after) {
                s->at++;
                break;
            }
        }
        s->segment[size++] = byte;
    }
    memset(s->segment + size, 0, STREAM_PADDING);
    return (struct bits){s->segment, size, 0};
}

static int extended(struct bits *b, int size)
{
    int value = (int)bits_read(b, (unsigned)size);
    return size && value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

static int block(struct jpeg_scan *s, struct bits *b, const struct jpeg_component *c, int *dc, int16_t out[64])
{
    int size = vlc_read(b, s->tables[0][c->table], FIRST_BITS);
    memset(out, 0, 64 * sizeof *out);
    if (size < 0 || size > 15)
        return 0;
    *dc += extended(b, size);
    out[0] = (int16_t)(*dc * c->matrix[0] + DC_START);
    for (int i = 1; i < 64; i++) {
        int code = vlc_read(b, s->tables[1][c->table], FIRST_BITS);
        if (code < 0)
            return 0;
        if (!code)
            break;
        i += code >> 4;
        if (i > 63)
            return 0;
        out[zigzag_scan[i]] = (int16_t)(extended(b, code & 15) * c->matrix[zigzag_scan[i]]);
    }
    return 1;
}

static int one_block(struct jpeg_scan *s, struct bits *b, int component, unsigned x, unsigned y, int dc[])
{
    struct plane *plane = &s->picture->frame.plane[component];
    int16_t coefficients[64];
    int fine = block(s, b, &s->component[component], &dc[component], coefficients);
    if (!fine || 8 * y + 8 > plane->height || 8 * x + 8 > plane->width)
        return fine;
    simple_idct(coefficients);
    put_block(plane->samples + (size_t)8 * y * plane->stride + 8 * x, plane->stride, coefficients);
    return 1;
}

static int mcu(struct jpeg_scan *s, struct bits *b, unsigned number, int dc[])
{
    for (int i = 0; i < PLANES; i++) {
        const struct jpeg_component *c = &s->component[i];
        if (!c->in_scan)
            continue;
        if (!s->interleaved)
            return one_block(s, b, i, number % c->blocks_x, number / c->blocks_x, dc);
        unsigned left = number % s->mcus_across * c->across, top = number / s->mcus_across * c->down;
        for (unsigned y = 0; y < c->down; y++)
            for (unsigned x = 0; x < c->across; x++)
                if (!one_block(s, b, i, left + x, top + y, dc))
                    return 0;
    }
    return 1;
}

/* Entry: MCUs up to the next restart marker; answers how many are left. */
ENTRY int64_t jpeg_decode(struct jpeg_scan *s, void *record)
{
    uint32_t left = s->mcu_count - s->next_mcu, count = s->restart_interval && s->restart_interval < left ? s->restart_interval : left;
    struct bits b = next_segment(s);
    int dc[PLANES] = {0};
    (void)record;
    for (uint32_t i = 0; i < count; i++) {
        int fine = mcu(s, &b, s->next_mcu + i, dc);
        if (!fine || bits_left(&b) < 0) {
            s->picture->errors |= fine ? MISSING_BLOCK : INCONSISTENT_CODE;
            s->picture->concealed += count - i;
            break;
        }
    }
    s->next_mcu += count;
    return s->mcu_count - s->next_mcu;
}
