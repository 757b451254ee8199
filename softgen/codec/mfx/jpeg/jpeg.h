/* JPEG scans, as state.py hands them to decode.c. */
#ifndef SOFTGEN_CODEC_JPEG_H
#define SOFTGEN_CODEC_JPEG_H

#include "../../bits/vlc.h"
#include "../../codec.h"

enum { JPEG_TABLE_ROOM = 4096 };

struct jpeg_component {
    uint32_t across, down; /* blocks of an MCU */
    uint32_t blocks_x, blocks_y; /* of a scan that has this component alone */
    uint32_t table, in_scan;
    uint16_t matrix[64];
};

struct jpeg_scan {
    struct picture *picture;
    const uint8_t *data;
    uint64_t size, at;
    uint8_t *segment; /* as long as the data, and STREAM_PADDING */
    struct vlc_entry *tables[2][2]; /* DC and AC, luma and chroma */
    struct jpeg_component component[PLANES];
    uint32_t mcu_count, next_mcu, restart_interval, interleaved;
    uint32_t mcus_across, reserved;
};

struct jpeg_table {
    struct vlc_entry *entries;
    uint8_t counts[16], values[256];
};

#endif
