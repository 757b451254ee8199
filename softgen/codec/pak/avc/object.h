/* MFC_AVC_PAK_OBJECT, as state.py hands a slice of them to object.c. */
#ifndef SOFTGEN_CODEC_AVC_OBJECT_H
#define SOFTGEN_CODEC_AVC_OBJECT_H

#include "avc_pak.h"

enum pak_error { PAK_FINE, PAK_BAD_TYPE, PAK_BAD_MODE, PAK_BAD_QP, PAK_NO_VECTORS, PAK_NO_REFERENCE };

struct pak_object {
    uint32_t length, offset; /* of its vectors */
    uint32_t dwords[12]; /* the command's, from the first on */
};

struct pak_objects {
    struct avc_encoder *encoder;
    const struct pak_object *objects;
    struct graphics memory;
    uint64_t vectors; /* where offsets count from */
    uint32_t count, next, error, reserved; /* error: enum pak_error, of object `next` */
};

#endif
