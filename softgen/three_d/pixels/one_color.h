/* Rectangles whose pixels all get the same colour, filled from one block that a thread has shaded (one_color.c; one_color.py has the same
 * structure). */
#ifndef SOFTGEN_ONE_COLOR_H
#define SOFTGEN_ONE_COLOR_H

#include "fill.h"

struct draw;
struct payload_plan;

enum { MOST_BOXES = 16, LEAST_PIXELS = 1024 }; /* records of a draw that are looked at; pixels of a box that is worth it */

struct one_color {
    struct fill fill; /* of the render target; its value is what the first pixel of a box has */
    uint32_t on; /* the target is one that can be filled */
    uint32_t filling; /* memory is being filled */
    uint64_t count, pixels; /* boxes; their pixels that have no thread */
    struct { uint32_t record; int32_t x1, y1; } box[MOST_BOXES];
};

/* Makes the boxes of records that cover all of their pixels as small as a block, before the draw's threads are started; and fills what was
 * cut off, once they are done. */
void begin_boxes(struct draw *d, struct one_color *o, const struct payload_plan *payload);
void fill_boxes(struct draw *d, struct one_color *o);

#endif
