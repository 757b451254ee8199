/* The sizes of the structures that Python fills, for native.py to check. */
#include "codec.h"
#include "hcp/hevc/hevc.h"
#include "hcp/vp9/vp9.h"
#include "mfx/avc/avc.h"
#include "mfx/jpeg/jpeg.h"
#include "mfx/mpeg2/mpeg2.h"
#include "mfx/vc1/vc1.h"
#include "mfx/vp8/vp8.h"
#include "pak/avc/object.h"
#include "pak/jpeg/jpeg.h"
#include "pak/mpeg2/mpeg2_pak.h"
#include "vdenc/vdenc.h"

ENTRY int codec_layout(uint64_t *numbers)
{
    const uint64_t sizes[] = {sizeof(struct picture), sizeof(struct jpeg_table), sizeof(struct jpeg_scan), sizeof(struct mpeg2_slice),
                              sizeof(struct avc_picture), sizeof(struct avc_slice), sizeof(struct vp8_picture), sizeof(struct vp9_picture),
                              sizeof(struct hevc_picture), sizeof(struct hevc_slice), JPEG_TABLE_ROOM,
                              sizeof(struct avc_mb), sizeof(struct avc_decoder), AVC_MOTION, sizeof(struct vp8_mb), VP8_ABOVE_BYTES,
                              sizeof(struct vc1_picture), sizeof(struct vc1_slice), sizeof(struct vc1_mb),
                              sizeof(struct vp9_probabilities), sizeof(struct vp9_counts), sizeof(struct vp9_block), sizeof(struct vp9_motion),
                              sizeof(struct hevc_decoder), HEVC_MOTION_BYTES,
                              sizeof(struct writer), sizeof(struct insertion), sizeof(struct jpeg_encoder),
                              sizeof(struct avc_encoder), sizeof(struct vdenc), sizeof(struct vdenc_scaling), sizeof(struct mpeg2_encoder),
                              sizeof(struct avc_choice), sizeof(struct pak_object), sizeof(struct pak_objects),
                              sizeof(struct mpeg2_walked)};
    int count = sizeof sizes / sizeof *sizes;
    for (int i = 0; i < count; i++)
        numbers[i] = sizes[i];
    return count;
}
