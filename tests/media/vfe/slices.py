"""Slices of MPEG-2 written by hand: macroblocks as their syntax elements (ISO/IEC 13818-2, 6.2.5), codes from the tables of annex B."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.codec.mpeg2_writer import COEFFICIENTS, DC_CHROMA, DC_LUMA, INCREMENT, MOTION, PATTERN, table
from tests.media.vfe.batch import Media, dump, media_object, pack

INTRA_COEFFICIENTS = table("mpeg2_intra_coefficients")
INTRA, P, B = 1, 2, 3
TOP, BOTTOM, FRAME = 1, 2, 3
TYPES = {
    INTRA: {"intra": "1", "intra quant": "01"},
    P: {"forward pattern": "1", "pattern": "01", "forward": "001", "intra": "00011", "forward pattern quant": "00010",
        "pattern quant": "00001", "intra quant": "000001"},
    B: {"both": "10", "both pattern": "11", "backward": "010", "backward pattern": "011", "forward": "0010", "forward pattern": "0011",
        "intra": "00011", "both pattern quant": "00010", "forward pattern quant": "000011", "backward pattern quant": "000010",
        "intra quant": "000001"},
}  # fmt: skip


class Slice:
    """Bits of a slice, from the first macroblock on."""

    def __init__(self, type: int = INTRA) -> None:
        self.type, self.bits = type, ""

    def put(self, value: int, width: int) -> Slice:
        self.bits += f"{value:0{width}b}" if width else ""
        return self

    def begin(self, kind: str, increment: int = 1) -> Slice:
        """Address increment and macroblock_type."""
        while increment > 33:
            self.bits, increment = self.bits + INCREMENT["ADDRESS_ESCAPE"], increment - 33
        self.bits += INCREMENT[str(increment)] + TYPES[self.type][kind]
        return self

    def vector(self, *changes: int, f_code: int = 1, dual: Sequence[int] = ()) -> Slice:
        """The differences of a vector's two components, each with its dmvector."""
        for axis, change in enumerate(changes):
            scale = 1 << f_code - 1
            code = (abs(change) + scale - 1) // scale
            self.bits += MOTION[str(code)]
            if code:
                self.put(int(change < 0), 1).put((abs(change) - 1) % scale, f_code - 1)
            if dual:
                self.bits += {0: "0", 1: "10", -1: "11"}[dual[axis]]
        return self

    def pattern(self, coded: int) -> Slice:
        self.bits += PATTERN[str(coded)]
        return self

    def intra_block(self, difference: int, *pairs: tuple[int, int], chroma: bool = False, format: int = 0) -> Slice:
        size = abs(difference).bit_length()
        self.bits += (DC_CHROMA if chroma else DC_LUMA)[str(size)]
        self.put(difference if difference > 0 else difference + (1 << size) - 1, size)
        return self.coefficients(pairs, INTRA_COEFFICIENTS if format else COEFFICIENTS)

    def block(self, *pairs: tuple[int, int]) -> Slice:
        """A block that is not intra; its first coefficient may have the short code."""
        (run, level), *rest = pairs
        if run == 0 and abs(level) == 1:
            self.bits += "1" + str(int(level < 0))
            return self.coefficients(rest, COEFFICIENTS)
        return self.coefficients(pairs, COEFFICIENTS)

    def coefficients(self, pairs: Sequence[tuple[int, int]], codes: dict[str, str]) -> Slice:
        for run, level in pairs:
            code = codes.get(str(64 * run + abs(level)))
            if code is not None:
                self.bits += code + str(int(level < 0))
            else:
                self.bits += codes["COEFFICIENT_ESCAPE"]
                self.put(run, 6).put(level & 0xFFF, 12)
        self.bits += codes["END_OF_BLOCK"]
        return self

    def grey(self) -> Slice:
        """Six intra blocks without anything."""
        for number in range(6):
            self.intra_block(0, chroma=number > 3)
        return self

    def data(self, offset: int = 0) -> bytes:
        """Bytes in which the slice begins at a bit; the bits before it are ones."""
        bits = "1" * offset + self.bits
        bits += "0" * (-len(bits) % 8)
        return int(bits, 2).to_bytes(len(bits) // 8, "big")


def slice_object(data: bytes, x: int = 0, y: int = 0, count: int = 127, quantiser: int = 1, offset: int = 0, start: int = 0,
                 **more: Any) -> list[int]:  # fmt: skip
    inline = [x << 24 | y << 16 | count << 8 | offset, quantiser << 24]
    return media_object(inline=inline, indirect_data_length=len(data), indirect_data_start_address=start, **more)


def decoded(made: Slice, commands: Sequence[Sequence[int]] = (), vfe: Any = None, offset: int = 0, data: bytes | None = None,
            **vld: Any) -> Any:
    """What the threads of a slice find; `vld` are fields of VLD_STATE."""
    bits = made.data(offset) if data is None else data
    codes = {f"f_code_{s}_{t}": 1 for s in range(2) for t in range(2)}
    state = {"picture_coding_type": made.type, "picture_structure": FRAME, "frame_prediction_frame_dct": 1,
             "interface_descriptor_remap_table_0_7": 0x76543210, "interface_descriptor_remap_table_8_15": 0xFEDCBA98, **codes, **vld}
    objects = commands or [slice_object(bits, offset=offset)]
    media = Media(objects, kernels=[dump(26)], mode="vld", extension=("VLD_STATE", state), indirect=bits, vfe=vfe or {})
    return media.run()


__all__ = ["BOTTOM", "FRAME", "INTRA", "TOP", "B", "P", "Slice", "decoded", "pack", "slice_object"]
