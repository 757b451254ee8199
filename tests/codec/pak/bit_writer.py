"""Bits of H.264 headers, written by hand (7.3)."""

from __future__ import annotations


class BitWriter:
    """Bits as text, most significant first."""

    def __init__(self) -> None:
        self.text = ""

    def u(self, count: int, value: int) -> BitWriter:
        self.text += f"{value:0{count}b}"[-count:] if count else ""
        return self

    def ue(self, value: int) -> BitWriter:
        number = f"{value + 1:b}"
        self.text += "0" * (len(number) - 1) + number
        return self

    def se(self, value: int) -> BitWriter:
        return self.ue(2 * value - 1 if value > 0 else -2 * value)

    def trailing(self) -> BitWriter:
        self.text += "1"
        self.text += "0" * (-len(self.text) % 8)
        return self

    def data(self) -> bytes:
        padded = self.text.ljust(-(-len(self.text) // 8) * 8, "0")
        return int(padded, 2).to_bytes(len(padded) // 8, "big")


def escaped(payload: bytes) -> bytes:
    """A NAL unit's payload with emulation prevention bytes."""
    out, zeros = bytearray(), 0
    for byte in payload:
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = 0 if byte else zeros + 1
    return bytes(out)


def unit(header: int, payload: bytes) -> bytes:
    return b"\0\0\0\1" + bytes([header]) + escaped(payload)


def parameter_sets(width: int, height: int, cabac: bool, transform8: bool, fields: bool = False, implicit: bool = False) -> bytes:
    """A sequence and a picture parameter set for frames of so many macroblocks; `fields`: pictures may be fields."""
    sps = BitWriter().u(8, 100).u(8, 0).u(8, 40).ue(0).ue(1).ue(0).ue(0).u(1, 0).u(1, 0)  # High, 4.0, 4:2:0, 8 bits
    sps.ue(0).ue(0).ue(4).ue(4).u(1, 0).ue(width - 1).ue((height >> fields) - 1).u(1, not fields)  # frame_num and POC of 4 and 8 bits
    sps.text += "0" * fields  # mb_adaptive_frame_field_flag
    sps.u(1, 1).u(1, 0)
    sps.u(1, 1).u(8, 0).u(1, 1).u(1, 1).ue(0).ue(0).ue(16).ue(16).ue(1).ue(4).trailing()  # VUI: one frame of reordering
    pps = BitWriter().ue(0).ue(0).u(1, cabac).u(1, 0).ue(0).ue(0).ue(0).u(1, 0).u(2, 2 * implicit).se(0).se(0).se(2).u(1, 1).u(1, 0).u(1, 0)
    pps.u(1, transform8).u(1, 0).se(-3).trailing()
    return unit(0x67, sps.data()) + unit(0x68, pps.data())
