"""MPEG-2 decoding through libva, as ffmpeg does it, and the frames as vaDeriveImage shows them:

    softgen run --gpu g45 -- python -m tests.media.vfe.va_mpeg2 clip.m2v frames.yuv

ffmpeg's own download finds no format in common with the driver of G45. Frames are written in the order in which they are shown, as three
planes; their types (1 I, 2 P, 3 B) are printed.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

NODE = "/dev/dri/renderD128"
MPEG2_MAIN, VLD, YUV420, PROGRESSIVE = 1, 1, 1, 1
PIXEL_FORMAT, SETTABLE, INTEGER = 1, 2, 1
I420 = int.from_bytes(b"I420", "little")
PICTURE_BUFFER, MATRIX_BUFFER, SLICE_BUFFER, DATA_BUFFER = 0, 1, 4, 5
NONE = 0xFFFFFFFF
P, B = 2, 3
PICTURE, FIRST_SLICE, LAST_SLICE, SEQUENCE, EXTENSION = 0x00, 0x01, 0xAF, 0xB3, 0xB5
ZIGZAG = [0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49,
          56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63]  # fmt: skip
INTRA_MATRIX = [8, 16, 19, 22, 26, 27, 29, 34, 16, 16, 22, 24, 27, 29, 34, 37, 19, 22, 26, 27, 29, 34, 34, 38, 22, 22, 26, 27, 29, 34, 37,
                40, 22, 26, 27, 29, 32, 35, 40, 48, 26, 27, 29, 32, 35, 40, 48, 58, 26, 27, 29, 34, 38, 46, 56, 69, 27, 29, 35, 38, 46, 56,
                69, 83]  # fmt: skip


class Bits:
    """A reader of big-endian bit fields."""

    def __init__(self, data: bytes) -> None:
        self.value, self.left, self.size = int.from_bytes(data, "big"), 8 * len(data), 8 * len(data)

    def take(self, count: int) -> int:
        self.left -= count
        return self.value >> self.left & (1 << count) - 1

    @property
    def position(self) -> int:
        return self.size - self.left


@dataclass
class Sequence:
    """What holds until the next sequence header."""

    width: int = 0
    height: int = 0
    intra: list[int] = field(default_factory=lambda: list(INTRA_MATRIX))
    other: list[int] = field(default_factory=lambda: [16] * 64)

    def header(self, data: bytes) -> None:
        bits = Bits(data)
        self.width, self.height = bits.take(12), bits.take(12)
        bits.take(38)
        self.matrices(bits)

    def matrices(self, bits: Bits) -> None:
        for held in (self.intra, self.other):
            if bits.take(1):
                for place in ZIGZAG:
                    held[place] = bits.take(8)


@dataclass
class Picture:
    """A coded picture: its parameters and its slices."""

    type: int
    f_code: int = 0
    extension: int = 0  # as libva has it
    slices: list[bytes] = field(default_factory=list)

    def coding(self, bits: Bits) -> None:
        """picture_coding_extension: libva's bits have the same order, from the least significant on."""
        self.f_code, at = bits.take(16), 0
        for width in (2, 2, 1, 1, 1, 1, 1, 1, 1):
            self.extension |= bits.take(width) << at
            at += width
        bits.take(1)
        self.extension |= bits.take(1) << at | 1 << at + 1  # progressive_frame, is_first_field

    def parameters(self, sequence: Sequence, forward: int, backward: int) -> bytes:
        return struct.pack("<2H2I2iI16x", sequence.width, sequence.height, forward, backward, self.type, self.f_code, self.extension)


def units(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """Start codes, and the bytes from each of them to the next."""
    at = stream.find(b"\0\0\1")
    while at >= 0:
        following = stream.find(b"\0\0\1", at + 3)
        yield stream[at + 3], stream[at : following if following >= 0 else len(stream)]
        at = following


def pictures(stream: bytes, sequence: Sequence) -> Iterator[Picture]:
    picture: Picture | None = None
    for code, data in units(stream):
        if code == SEQUENCE:
            sequence.header(data[4:])
        elif code == EXTENSION:
            bits = Bits(data[4:])
            kind = bits.take(4)
            if kind == 3:  # quant_matrix_extension
                sequence.matrices(bits)
            elif kind == 8 and picture:
                picture.coding(bits)
        elif FIRST_SLICE <= code <= LAST_SLICE and picture:
            picture.slices.append(data)
            continue
        if code == PICTURE:
            if picture:
                yield picture
            picture = Picture(int.from_bytes(data[4:8], "big") >> 19 & 7)
    if picture:
        yield picture


class Decoder:
    """A context of a VA-API driver."""

    def __init__(self, width: int, height: int) -> None:
        self.va, drm = ctypes.CDLL("libva.so.2"), ctypes.CDLL("libva-drm.so.2")
        drm.vaGetDisplayDRM.restype = ctypes.c_void_p
        self.display = ctypes.c_void_p(drm.vaGetDisplayDRM(os.open(NODE, os.O_RDWR)))
        self.size, self.number = (width, height), ctypes.c_int()
        self.call("Initialize", ctypes.byref(self.number), ctypes.byref(self.number))
        config, self.context, self.surfaces = ctypes.c_uint(), ctypes.c_uint(), (ctypes.c_uint * 4)()
        self.call("CreateConfig", MPEG2_MAIN, VLD, None, 0, ctypes.byref(config))
        planar = struct.pack("<4iI4x", PIXEL_FORMAT, SETTABLE, INTEGER, 0, I420)  # else decoder and image disagree about the pitch
        self.call("CreateSurfaces", YUV420, width, height, self.surfaces, len(self.surfaces), planar, 1)
        self.call("CreateContext", config, width, height, PROGRESSIVE, self.surfaces, len(self.surfaces), ctypes.byref(self.context))

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.va, f"va{name}")(self.display, *arguments)
        if status:
            raise SystemExit(f"va{name}: status {status:#x}")

    def decode(self, target: int, sequence: Sequence, picture: Picture, forward: int, backward: int) -> None:
        matrix = struct.pack("<4i", 1, 1, 0, 0) + bytes(sequence.intra[place] for place in ZIGZAG)
        matrix += bytes(sequence.other[place] for place in ZIGZAG) + bytes(144)
        self.call("BeginPicture", self.context, target)
        self.render(PICTURE_BUFFER, picture.parameters(sequence, forward, backward))
        self.render(MATRIX_BUFFER, matrix)
        for data in picture.slices:
            self.render(SLICE_BUFFER, slice_parameters(data))
            self.render(DATA_BUFFER, data)
        self.call("EndPicture", self.context)

    def render(self, kind: int, data: bytes) -> None:
        made = ctypes.c_uint()
        self.call("CreateBuffer", self.context, kind, len(data), 1, data, ctypes.byref(made))
        self.call("RenderPicture", self.context, ctypes.byref(made), 1)

    def planes(self, surface: int) -> bytes:
        """The samples of a surface."""
        image, mapped = ctypes.create_string_buffer(120), ctypes.c_void_p()
        self.call("SyncSurface", surface)
        self.call("DeriveImage", surface, image)
        fourcc, handle = struct.unpack_from("<I", image, 4)[0], struct.unpack_from("<I", image, 52)[0]
        width, height, size, _, *layout = struct.unpack_from("<2H2I6I", image, 56)
        assert fourcc == I420
        self.call("MapBuffer", handle, ctypes.byref(mapped))
        held = np.frombuffer(ctypes.string_at(mapped, size), np.uint8)
        found = b"".join(
            held[offset:][: pitch * rows].reshape(rows, pitch)[:, :across].tobytes()
            for pitch, offset, across, rows in zip(layout[:3], layout[3:], (width, width // 2, width // 2),
                                                   (height, height // 2, height // 2), strict=True))  # fmt: skip
        self.call("UnmapBuffer", handle)
        self.call("DestroyImage", struct.unpack_from("<I", image)[0])
        return found


def slice_parameters(data: bytes) -> bytes:
    """VASliceParameterBufferMPEG2 of a whole slice with its start code."""
    bits = Bits(data[:64])
    row, code, intra = bits.take(32) & 0xFF, bits.take(5), bits.take(1)
    if intra:
        bits.take(8)
        while bits.take(1):
            bits.take(8)
    return struct.pack("<6I2i16x", len(data), 0, 0, bits.position, 0, row - 1, code, intra)


def decoded(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """Types and planes of the frames, as they are shown: a reference waits for the next one."""
    sequence, decoder, references, waiting = Sequence(), None, list[int](), list[tuple[int, bytes]]()
    for picture in pictures(stream, sequence):
        decoder = decoder or Decoder(sequence.width, sequence.height)
        target = next(surface for surface in decoder.surfaces if surface not in references[-2:])
        older, newer = (references[-2:] or [NONE]) * 2 if len(references) < 2 else references[-2:]
        decoder.decode(target, sequence, picture, *{P: (newer, NONE), B: (older, newer)}.get(picture.type, (NONE, NONE)))
        shown = picture.type, decoder.planes(target)
        if picture.type == B:
            yield shown
            continue
        yield from waiting
        references, waiting = [*references, target], [shown]
    yield from waiting


def main() -> None:
    frames = list(decoded(Path(sys.argv[1]).read_bytes()))
    Path(sys.argv[2]).write_bytes(b"".join(planes for _, planes in frames))
    print(*(kind for kind, _ in frames))


if __name__ == "__main__":
    main()
