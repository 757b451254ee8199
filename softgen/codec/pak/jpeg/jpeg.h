/* JPEG scans to encode, as state.py hands them to encode.c. */
#ifndef SOFTGEN_CODEC_PAK_JPEG_H
#define SOFTGEN_CODEC_PAK_JPEG_H

#include "../../bits/writer.h"
#include "../../codec.h"

enum { JPEG_DC_CODES = 12, JPEG_AC_CODES = 162 };

struct jpeg_code {
    uint16_t code, length;
};

struct jpeg_codes {
    struct jpeg_code dc[JPEG_DC_CODES], ac[JPEG_AC_CODES]; /* by size; by run and size, with end of block first and ZRL at 151 */
};

struct jpeg_source {
    uint32_t across, down; /* blocks of an MCU */
    uint32_t width, height; /* samples; those beyond are the edge's */
    uint32_t dc_table, ac_table;
    uint16_t reciprocals[64]; /* 65536 over the quantiser, column by column */
};

struct jpeg_encoder {
    struct picture *picture; /* reference 0 is the source */
    struct writer *writer;
    struct jpeg_source component[PLANES];
    struct jpeg_codes codes[2];
    uint32_t components, mcu_count, next_mcu, mcus_across, restart_interval, next_restart;
    uint32_t last, reserved; /* end of image behind the scan */
    uint64_t bits; /* of entropy-coded data */
    int32_t dc[PLANES], reserved2;
};

#endif
