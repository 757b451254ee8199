"""Binding table entries for compiled messages: buffers by host address, images by the functions compiled for them."""

from __future__ import annotations

import ctypes
import mmap

SURFACES = 256  # binding table indices
KNOWN, TOLD = 1, 3  # values of Surface.known: resolved; resolved, and an access outside it has been reported


class Surface(ctypes.Structure):
    """A buffer. Without a host address its messages are side exits to the interpreter; so is the first message with a lane outside
    (`known`). Its first bytes are mapped for certain (`mapped`)."""

    _fields_ = [("host", ctypes.c_uint64), ("size", ctypes.c_uint64), ("mapped", ctypes.c_uint64), ("known", ctypes.c_uint64)]


SAMPLERS = 16  # sampler indices
# Samplers of other tables than that of the dispatch, and bindless surfaces, have entries of their own. Compiled code finds them by a key:
# the offset of their state from its base, plus USED.
KEYED = 16
USED = 1
LANES = (2, 8, 16)  # of texel operations: SIMD4x2, SIMD8, SIMD16
ATOMICS = ("and", "or", "xor", "mov", "inc", "dec", "predec", "add", "sub", "revsub", "imax", "imin", "umax", "umin", "cmpwr")
# Operations on the texels of a surface (texture/operations.py) that need no sampler state; "_offset": with texel offsets.
LOAD_SAMPLE, LOAD_CONTROL = "load_sample", "load_control"
PLAIN = ("read", "write", "load", "load_offset", "resinfo", LOAD_SAMPLE, LOAD_CONTROL, *(f"atomic_{name}" for name in ATOMICS))
SAMPLE_OPERATIONS = ("resinfo", LOAD_SAMPLE, LOAD_CONTROL)  # whose surface may have several samples
# Operations that sample, by where the level of detail comes from and what they return.
_SAMPLES = ("sample", "sample_b", "sample_l", "sample_d", "sample_mlod", "sample_b_mlod", "sample_d_mlod")  # mlod: a lowest level of detail
SAMPLING = (*_SAMPLES, *(f"{name}_c" for name in _SAMPLES), "gather4", "gather4_c", "lod")
BLOCK_SAMPLE = "sample_unorm"  # at level 0, of surfaces that are not rotated and have no integers
SAMPLING = (*SAMPLING, *(f"{name}_offset" for name in SAMPLING), BLOCK_SAMPLE)
NUMBERS = ("base", "width", "height", "depth", "pitch", "rows", "first", "across", "levels", "level")  # of an image, read at run time
TABLES = ("left", "top", "across", "down")  # of its LevelTable
CONTROL = ("base", "pitch", "rows", "clear_at")  # of its SampleControl
LEVELS = 16


def plain_slot(what: str, lanes: int) -> int:
    """The index of an operation's function in Picture.functions."""
    return PLAIN.index(what) * len(LANES) + LANES.index(lanes)


def sampling_slot(what: str, lanes: int) -> int:
    """The index of an operation's function in SampleFunctions."""
    return SAMPLING.index(what) * len(LANES) + LANES.index(lanes)


NAMED = 1 << 21  # among the indices that code names: an operation on the texels of a surface
OPERATIONS = (*PLAIN, *SAMPLING)


def named_texels(surface: int, what: str, lanes: int, sampler: int) -> int:
    """How code names an operation that it needs of an image, among the binding table entries it names."""
    return NAMED | ((OPERATIONS.index(what) * len(LANES) + LANES.index(lanes)) * SAMPLERS + sampler) * SURFACES + surface


def texels_named(number: int) -> tuple[int, str, int, int] | None:
    """Surface, operation, lanes and sampler of such a name; None of other entries."""
    if not number & NAMED:
        return None
    slot, surface = divmod(number - NAMED, SURFACES)
    slot, sampler = divmod(slot, SAMPLERS)
    return surface, OPERATIONS[slot // len(LANES)], LANES[slot % len(LANES)], sampler


NAMED_MEDIA = 1 << 22  # among the indices that code names: the surface of a media block


def media_named(number: int) -> int | None:
    """The surface of such a name; None of other entries."""
    return number - NAMED_MEDIA if number & NAMED_MEDIA else None


NAMED_SCALED = 1 << 23  # among the indices that code names: a surface of the video scaler, and its state


def named_scaled(surface: int, sampler: int) -> int:
    return NAMED_SCALED | sampler * SURFACES + surface


def scaled_named(number: int) -> tuple[int, int] | None:
    """Surface and scaler state of such a name; None of other entries."""
    return (number % SURFACES, (number - NAMED_SCALED) // SURFACES) if number & NAMED_SCALED else None


class SampleFunctions(ctypes.Structure):
    """The functions that sample a surface with one sampler, and the numbers of its state that they read."""

    _fields_ = [
        ("functions", ctypes.c_uint64 * (len(SAMPLING) * len(LANES))),
        ("lods", ctypes.c_float * 2),  # lowest and highest
        ("bias", ctypes.c_float),
        ("outside", ctypes.c_uint32 * 4),  # red, green, blue and alpha of the border, as bits
    ]


class Picture(ctypes.Structure):
    """An image. A function is `void f(context, picture, sampler, arguments, mask)`: `sampler` are the SampleFunctions, of functions that
    sample; arguments are vectors of 32-bit lanes one after another, and results replace them. Where there is no function, messages are
    side exits to the interpreter."""

    _fields_ = [
        ("functions", ctypes.c_uint64 * (len(PLAIN) * len(LANES))),
        ("samplers", ctypes.c_uint64 * (SAMPLERS + KEYED)),  # SampleFunctions by sampler index, then by key
        *((name, ctypes.c_uint64) for name in NUMBERS),
        ("at", ctypes.c_uint64 * 2),
        ("linear", ctypes.c_uint64),  # host address of texel.linear_table, for sRGB formats
        *((f"control_{name}", ctypes.c_uint64) for name in CONTROL),
        ("control_clear", ctypes.c_uint32 * 4),
        *((f"level_{name}", ctypes.c_uint32 * LEVELS) for name in TABLES),
    ]


class Bindings(ctypes.Structure):
    """What the context field `surfaces` points at."""

    _fields_ = [
        ("surfaces", Surface * (SURFACES + KEYED)),  # by binding table index, then by key
        ("pictures", Picture * (SURFACES + KEYED)),
        ("media", ctypes.c_uint64 * SURFACES),  # MediaSurface of media blocks by binding table index (dataport/bound_media.py)
        ("scalers", ctypes.c_uint64 * SURFACES),  # ScalerSurface of the video scaler by binding table index (avs/bound.py)
        ("sampler_keys", ctypes.c_uint32 * (SAMPLERS + KEYED)),
        ("surface_keys", ctypes.c_uint32 * KEYED),
    ]


def empty_bindings() -> Bindings:
    """Bindings in memory that is taken when it is first written: nearly all of it is for images, of which most kernels have few or none."""
    return Bindings.from_buffer(mmap.mmap(-1, ctypes.sizeof(Bindings), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def name_samplers(bindings: Bindings, table: int, size: int) -> None:
    """Enter the keys of the dispatch's sampler table; `size` is that of a sampler state."""
    for index in range(SAMPLERS):
        bindings.sampler_keys[index] = table + index * size + USED & 0xFFFFFFFF
