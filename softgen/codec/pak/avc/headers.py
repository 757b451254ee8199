"""The length of H.264 slice headers, by the parameter sets that came before: Skylake's VDENC is given the header of the first slice alone.

In:  payloads of MFX_PAK_INSERT_OBJECT. Out: the length of a slice header. Programs append ones to it, up to the byte at which data of
     CABAC begin; the headers of later slices, with a longer first_mb_in_slice, end elsewhere in a byte.
"""

from __future__ import annotations

from dataclasses import dataclass

START_CODE = b"\0\0\1"
IDR, SEQUENCE, PICTURE = 5, 7, 8  # nal_unit_type
P_SLICE, I_SLICE = 0, 2  # slice_type % 5
WITH_CHROMA = (100, 110, 122, 244, 44, 83, 86, 118, 128)  # profile_idc of sets that name their chroma format
NO_FILTER = 1  # disable_deblocking_filter_idc
BYTE = 8


class Bits:
    """A reader of digits, zeros past their end."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, count: int) -> int:
        found, self.at = self.text[self.at : self.at + count], self.at + count
        return int(found.ljust(count, "0") or "0", 2)

    def ue(self) -> int:
        zeros = 0
        while self.at < len(self.text) and not self.take(1):
            zeros += 1
        return (1 << zeros) - 1 + self.take(zeros)


def to_text(data: bytes, bits: int) -> str:
    """The first bits of bytes as digits."""
    return f"{int.from_bytes(data, 'big'):0{BYTE * len(data)}b}"[:bits]


@dataclass(frozen=True)
class SequenceSet:
    """What a sequence parameter set says of slice headers (H.264 7.3.2.1)."""

    frame_num: int  # bits
    order: int  # pic_order_cnt_type
    order_lsb: int = 0  # bits
    deltas: bool = False  # not delta_pic_order_always_zero_flag
    fields: bool = False  # not frame_mbs_only_flag


@dataclass(frozen=True)
class PictureSet:
    """What a picture parameter set says of slice headers (H.264 7.3.2.2)."""

    cabac: bool
    order: bool  # bottom_field_pic_order_in_frame_present_flag
    weighted: bool
    filter: bool  # deblocking_filter_control_present_flag


@dataclass
class ParameterSets:
    """The parameter sets that a program has inserted last; None: no set, or one with slice groups, scaling lists or more planes."""

    sequence: SequenceSet | None = None
    picture: PictureSet | None = None

    def read(self, data: bytes) -> None:
        """Take note of the sets among the units of a payload."""
        for unit in data.split(START_CODE)[1:]:
            kind, bits = unit[0] & 31 if unit else 0, Bits(to_text(unit[1:].replace(b"\0\0\3", b"\0\0"), BYTE * len(unit)))
            if kind == SEQUENCE:
                self.sequence = _sequence(bits)
            elif kind == PICTURE:
                self.picture = _picture(bits)

    def header(self, text: str) -> str:
        """A slice header without what comes after its last element; all of it where the sets say too little."""
        unit = to_text(START_CODE, BYTE * len(START_CODE))
        start = next((at for at in range(0, len(text), BYTE) if text.startswith(unit, at)), None)
        if start is None or self.sequence is None or self.picture is None or not self.picture.cabac:
            return text
        bits = Bits(text)
        bits.at = start + len(unit)
        return text[: bits.at] if _slice(bits, self.sequence, self.picture) and bits.at <= len(text) else text


def _sequence(bits: Bits) -> SequenceSet | None:
    profile = bits.take(BYTE)
    bits.take(2 * BYTE)  # constraint flags, level_idc
    bits.ue()
    if profile in WITH_CHROMA and not (bits.ue() == 1 and bits.ue() == bits.ue() == 0 and bits.take(2) == 0):
        return None
    frame_num, order = 4 + bits.ue(), bits.ue()
    lsb, deltas = (4 + bits.ue() if order == 0 else 0), False
    if order == 1:
        deltas = not bits.take(1)
        bits.ue(), bits.ue()  # offset_for_non_ref_pic, offset_for_top_to_bottom_field
        for _ in range(min(bits.ue(), 255)):
            bits.ue()
    bits.ue(), bits.take(1), bits.ue(), bits.ue()  # references, gaps, size
    return SequenceSet(frame_num, order, lsb, deltas, not bits.take(1))


def _picture(bits: Bits) -> PictureSet | None:
    bits.ue(), bits.ue()
    cabac, order = bits.take(1), bits.take(1)
    if bits.ue():
        return None
    bits.ue(), bits.ue()
    weighted = bits.take(1)
    bits.take(2), bits.ue(), bits.ue(), bits.ue()  # weighted_bipred_idc, QPs, chroma_qp_index_offset
    return PictureSet(bool(cabac), bool(order), bool(weighted), bool(bits.take(1)))


def _slice(bits: Bits, sequence: SequenceSet, picture: PictureSet) -> bool:
    """Reads over a slice header (H.264 7.3.3) from its NAL byte on; whether its elements are those of I and P frames without weights."""
    bits.take(1)
    reference, kind = bits.take(2), bits.take(5)
    bits.ue()
    slice_type = bits.ue() % 5
    bits.ue(), bits.take(sequence.frame_num)
    if slice_type not in (P_SLICE, I_SLICE) or sequence.fields and bits.take(1):
        return False
    if kind == IDR:
        bits.ue()
    if sequence.order == 0:
        bits.take(sequence.order_lsb), picture.order and bits.ue()
    elif sequence.order == 1 and sequence.deltas:
        bits.ue(), picture.order and bits.ue()
    if slice_type == P_SLICE and not _references(bits, picture):
        return False
    if reference:
        _marking(bits, kind)
    if slice_type != I_SLICE:
        bits.ue()  # cabac_init_idc
    bits.ue()  # slice_qp_delta
    if picture.filter and bits.ue() != NO_FILTER:
        bits.ue(), bits.ue()
    return True


def _references(bits: Bits, picture: PictureSet) -> bool:
    """Reads over counts and changes of the reference list; whether no weights follow."""
    if bits.take(1):
        bits.ue()
    if bits.take(1):
        while bits.ue() != 3 and bits.at < len(bits.text):
            bits.ue()
    return not picture.weighted


def _marking(bits: Bits, kind: int) -> None:
    """Reads over dec_ref_pic_marking."""
    if kind == IDR:
        bits.take(2)
    elif bits.take(1):
        while (operation := bits.ue()) and bits.at < len(bits.text):
            for _ in range({3: 2, 5: 0}.get(operation, 1)):
                bits.ue()
