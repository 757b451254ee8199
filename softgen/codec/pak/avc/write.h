/* The writers of syntax elements, in either kind of codes: write_cabac.c and write_cavlc.c. */
#ifndef SOFTGEN_CODEC_AVC_WRITE_H
#define SOFTGEN_CODEC_AVC_WRITE_H

#include "avc_pak.h"

void cabac_put_skip(struct avc_encoder *e, int skip);
void cabac_put_type(struct avc_encoder *e, int type);
void cabac_put_sub_type(struct avc_encoder *e, int type);
void cabac_put_index(struct avc_encoder *e, int list, int quarter, int index);
void cabac_put_change(struct avc_encoder *e, int list, int x, int y, int axis, int value);
void cabac_put_intra_mode(struct avc_encoder *e, int rest); /* rem_intra_pred_mode; negative: as predicted */
void cabac_put_chroma_mode(struct avc_encoder *e, int mode);
void cabac_put_pattern(struct avc_encoder *e, int pattern);
void cabac_put_qp_delta(struct avc_encoder *e, int delta);
void cabac_put_transform8(struct avc_encoder *e, int transform8);
void cabac_put_block(struct avc_encoder *e, int category, int plane, int block, const int32_t *levels, int most);

/* Levels in the order of the scan; nearby: nC, negative for chroma DC. */
void cavlc_put_block(struct avc_encoder *e, int nearby, const int32_t *levels, int most);
void cavlc_put_pattern(struct avc_encoder *e, int pattern);

/* motion.c */
void avc_set_motion(struct avc_encoder *e, const struct avc_choice *c);
void avc_put_indices(struct avc_encoder *e, int list);
void avc_put_changes(struct avc_encoder *e, int list);

#endif
