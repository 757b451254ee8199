"""VideoImage: the surface of a decoded picture as an image of luma, with its chroma beside it, for those that show render targets.

In:  the open picture, MFX_SURFACE_STATE for what of it is visible. Out: images of planes. Fields are shown with the frame around them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from softgen.bits.formats import Format, surface_formats
from softgen.bits.record import Record
from softgen.codec.picture import VideoPicture
from softgen.codec.structures import SurfaceLayout, VideoSurface
from softgen.surface.image import SurfaceImage

TILE_NAMES = {0: "linear", 9: "x_major", 7: "y_major"}  # by log2 of a tile's bytes across
PAIR = "R8G8B8A8_UNORM"  # two pixels of a packed picture
PACKED = (SurfaceLayout.PACKED_YUYV, SurfaceLayout.PACKED_UYVY)
TEXELS = {1: ("R8_UNORM", "R8G8_UNORM"), 2: ("R16_UNORM", "R16G16_UNORM")}  # of one and of two components, by bytes of a sample


@dataclass(frozen=True)
class VideoImage(SurfaceImage):
    """A picture: its luma, and all of its planes. Packed pictures have all in one image: texels of two pixels."""

    planes: tuple[SurfaceImage, ...] = ()  # luma; Cb and Cr in one, or each in its own
    packed: SurfaceLayout | None = None
    full_range: bool = False  # black is 0, not 16


def picture_images(picture: VideoPicture, state: Record | None, full_range: bool) -> list[VideoImage]:
    """Where a picture was written to: before deblocking, after it, or both. `state`: MFX_SURFACE_STATE, which knows what is visible."""
    record, written = picture.record, [surface for surface in picture.record.surfaces if surface.base]
    plane = record.frame.plane[0]
    size = plane.width, plane.height * written[0].row_step
    if state is not None:
        size = min(size[0], state.width + 1), min(size[1], state.height + 1)
    return [_image(surface, size, (record.shift_x, record.shift_y), full_range) for surface in written]


def _image(surface: VideoSurface, size: tuple[int, int], shift: tuple[int, int], full_range: bool) -> VideoImage:
    layout, (one, two) = SurfaceLayout(surface.layout), TEXELS[surface.sample_bytes]
    if layout in PACKED:
        planes = [_plane(surface, PAIR, 0, (-(-size[0] // 2), size[1]))]
    else:
        planes, small = [_plane(surface, one, 0, size)], (-(-size[0] >> shift[0]), -(-size[1] >> shift[1]))
        if layout == SurfaceLayout.INTERLEAVED_CHROMA:
            planes += [_plane(surface, two, surface.chroma_row[0], small)]
        elif layout == SurfaceLayout.PLANAR:
            planes += [_plane(surface, one, row, small) for row in surface.chroma_row]
    own = {field.name: getattr(planes[0], field.name) for field in fields(SurfaceImage)}
    return VideoImage(**own, planes=tuple(planes), packed=layout if layout in PACKED else None, full_range=full_range)


def _plane(surface: VideoSurface, texel: str, row: int, size: tuple[int, int]) -> SurfaceImage:
    """Rows of a surface from one on."""
    tiling = TILE_NAMES[surface.tile_columns]
    return SurfaceImage("2d", _named(texel), surface.base, *size, 1, False, surface.pitch, tiling, 0, 1, 0, 0, (1, 1), (0, row))


@cache
def _named(name: str) -> Format:
    return next(format for format in surface_formats().values() if format.name == name)
