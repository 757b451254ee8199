/* Trees of symbols (9.3.1): positive entries are the next pair of branches, others a leaf's number, negated. */
#include "vp9.h"

const int8_t vp9_mode_tree[] = {-DC_MODE, 2, -TM_MODE, 4, -V_MODE, 6, 8, 12, -H_MODE, 10, -D135_MODE, -D117_MODE, -D45_MODE, 14, -D63_MODE, 16, -D153_MODE, -D207_MODE};
const int8_t vp9_segment_tree[] = {2, 4, 6, 8, 10, 12, 0, -1, -2, -3, -4, -5, -6, -7};
const int8_t vp9_inter_mode_tree[] = {-(ZERO_MODE - NEAREST_MODE), 2, 0, 4, -(NEAR_MODE - NEAREST_MODE), -(NEW_MODE - NEAREST_MODE)};
const int8_t vp9_partition_tree[] = {0, 2, -1, 4, -2, -3};
const int8_t vp9_filter_tree[] = {-FILTER_REGULAR, 2, -FILTER_SMOOTH, -FILTER_SHARP};
const int8_t vp9_joint_tree[] = {0, 2, -1, 4, -2, -3};
const int8_t vp9_class_tree[] = {0, 2, -1, 4, 6, 8, -2, -3, 10, 12, -4, -5, -6, 14, 16, 18, -7, -8, -9, -10};
const int8_t vp9_fraction_tree[] = {0, 2, -1, 4, -2, -3};
