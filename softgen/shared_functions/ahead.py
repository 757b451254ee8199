"""Ahead-of-time compilation of the functions that copies of images call.

OpenCL's runtime copies between buffers and images with kernels of its own. They take a texel for one to four unsigned integers, whatever
it is, so that five formats serve all images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from softgen.bits.formats import surface_formats
from softgen.bits.generation import generation
from softgen.cache import Cache, default_folder
from softgen.lanes.compile import jit
from softgen.lanes.compile.source_fingerprint import source_fingerprint
from softgen.shared_functions import units  # noqa: F401  # operations of all messages
from softgen.shared_functions.texture.functions import TexelForm, compiled, is_cached
from softgen.surface.image import SurfaceImage

FORMATS = ("R8_UINT", "R16_UINT", "R32_UINT", "R32G32_UINT", "R32G32B32A32_UINT")
COPIES = (("write", 8), ("load", 16), ("load_offset", 16))  # messages of these kernels, and their lanes


def common(gen: float) -> Iterator[TexelForm]:
    """Functions for copies to and from images of two dimensions, which are Y-tiled."""
    named = {format.name: format for format in surface_formats().values()}
    for name in reversed(FORMATS):  # a float each for red, green, blue and alpha is what programs compute with
        image = SurfaceImage("2d", named[name], 0, 0, 0, 0, False, 0, "y_major", 0, 1, 0, 0, (1, 1), (0, 0), near=True)
        yield from (TexelForm(what, lanes, image, None, generation(gen).address_bits) for what, lanes in COPIES)


def compile_ahead(gen: float, stopped: Callable[[], bool]) -> None:
    """Compile what the cache lacks of them, until that is done, which is remembered, or `stopped`."""
    cache, done = Cache(default_folder()), f"copies-{gen:g}-{jit.key(source_fingerprint(), jit.host())}"
    if cache.load(done) is not None:
        return
    for form in common(gen):
        if stopped():
            return
        if not is_cached(form):
            compiled(form)
    cache.save(done, b"all")
