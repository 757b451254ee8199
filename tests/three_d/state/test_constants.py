"""Push constants, as threads of captured draws get them; and their rules on made-up state."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, GpuFault
from softgen.three_d.state.constants import _relative, push_constants
from softgen.three_d.state.state import DrawState
from tests.conftest import needs_shared
from tests.three_d.captured import walk
from tests.three_d.made import made_state

GPUS = ("g45", "ivb", "hsw", "bdw", "kbl", "icl")
DATA = bytes(range(256)) * 64


def made(gen: float, register: int = 0, dynamic: int = 0x10100, warn: Any = None, commands: Any = None, **more: Any) -> DrawState:
    """State of raw field values, with bytes 0, 1, 2 … from address 0x10000 on."""
    state = made_state(gen, {0x10000: DATA}, commands or {}, warn=warn or (lambda text: None), **more)
    state.bases, state.register = {"dynamic": dynamic}, lambda name: register
    return state


def buffers(*parts: tuple[int, int]) -> dict[str, Any]:
    return {"read_length": [{"length": length} for _, length in parts], "constant_buffer": [{"pointer": pointer} for pointer, _ in parts]}


@needs_shared("traces")
@pytest.mark.parametrize("gpu", GPUS)
def test_the_pixel_shader_of_a_captured_triangle_gets_its_colour(gpu: str) -> None:
    """gles-tri makes its uniform colour a little less blue with each frame."""
    seen = []

    def draw(cs: CommandStreamer, cmd: Record) -> None:
        constants = push_constants(DrawState.of(cs), "PS")
        if constants:
            seen.append(struct.unpack_from("<4f", constants))

    assert walk(f"{gpu}-gles-tri", draw) == []
    assert [tuple(round(value, 2) for value in colour) for colour in seen] == [(1, 1, 1, 1), (1, 1, 0.99, 1), (1, 1, 0.98, 1)]


@pytest.mark.behaviour("BDW-CONST-01", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
@pytest.mark.parametrize("stage", ["VS", "PS"])
def test_buffers_follow_each_other_in_registers(gen: float, stage: str) -> None:
    """Those without a length leave no gap; the first counts from the dynamic state base, the others are addresses."""
    state = made(gen, commands={f"3DSTATE_CONSTANT_{stage}": buffers((0x200, 1), (0, 0), (0x10040, 2), (0x10100, 1))})
    assert push_constants(state, stage) == DATA[0x300:0x320] + DATA[0x40:0x80] + DATA[0x100:0x120]


@pytest.mark.behaviour("KBL-CONST-02", shows="action")
@pytest.mark.parametrize("gen,bit", [(7, 1 << 6), (7.5, 1 << 6), (8, 1 << 6), (9, 1 << 4), (11, 1 << 4)])
def test_a_register_makes_the_first_buffer_absolute(gen: float, bit: int) -> None:
    state = made(gen, register=bit, commands={"3DSTATE_CONSTANT_VS": buffers((0x10020, 1), (0, 0), (0, 0), (0, 0))})
    assert push_constants(state, "VS") == DATA[0x20:0x40]


@pytest.mark.behaviour("KBL-CONST-02", shows="action")
@pytest.mark.parametrize("gen, bit", [(8, 1 << 6), (9, 1 << 4), (11, 1 << 4)])
def test_bits_above_an_address_do_not_count(gen: float, bit: int) -> None:
    """An absolute pointer, and an offset from the dynamic state base (KBL 667-680)."""
    for register, pointer in ((bit, 0x10020), (0, 0x20)):
        given = buffers((0xABCD << 48 | pointer, 1), (0, 0), (0, 0), (0, 0))
        state = made(gen, register, 0x10000, commands={"3DSTATE_CONSTANT_VS": given})
        assert push_constants(state, "VS") == DATA[0x20:0x40]


@pytest.mark.behaviour("BDW-CONST-01", shows="action")
def test_four_buffers_of_64_registers_in_all() -> None:
    state = made(8, commands={"3DSTATE_CONSTANT_PS": buffers((0, 16), (0x10000, 16), (0x10200, 16), (0x10400, 16))})
    assert push_constants(state, "PS") == DATA[0x100:0x300] + DATA[:0x200] + DATA[0x200:0x400] + DATA[0x400:0x600]


@pytest.mark.behaviour("BDW-CONST-05", shows="action")
def test_constants_are_those_of_the_moment_of_the_draw() -> None:
    state = made(8, commands={"3DSTATE_CONSTANT_PS": buffers((0, 0), (0x10000, 1), (0, 0), (0, 0))})
    first = push_constants(state, "PS")
    state.space.write(0x10000, bytes(32))
    assert first == DATA[:32] and push_constants(state, "PS") == bytes(32)


def test_a_pointer_that_is_an_address_alone_is_one() -> None:
    """In captures that begin in the middle of a run the register was never written."""
    remarks: list[str] = []
    state = made(7, 0, 0x10100, remarks.append, commands={"3DSTATE_CONSTANT_VS": buffers((0x10020, 1), (0, 0), (0, 0), (0, 0))})
    assert push_constants(state, "VS") == DATA[0x20:0x40]
    assert remarks == ["push constants at 0x10020: that is no offset in the memory at the dynamic state base; read as an address"]
    with pytest.raises(GpuFault):
        push_constants(made(7, commands={"3DSTATE_CONSTANT_VS": buffers((0x500020, 1), (0, 0), (0, 0), (0, 0))}), "VS")


@pytest.mark.parametrize(("pointer", "at", "remarked"), [
    (0x3EE0, 0x3FE0, 0), (0x13FE0, 0x3FE0, 1), (0x10000, 0, 1), (0x3F00, None, 0), (0x3EE8, None, 0), (0x13FE8, None, 0), (0xFFF0, None, 0),
])  # fmt: skip
def test_the_last_constants_of_the_memory_at_the_base(pointer: int, at: int | None, remarked: int) -> None:
    """A pointer is an address only where all of what is read is there, and not all of it at the base."""
    remarks: list[str] = []
    state = made(7, 0, 0x10100, remarks.append)
    if at is None:
        with pytest.raises(GpuFault):
            _relative(state, pointer, 32)
    else:
        assert _relative(state, pointer, 32) == DATA[at : at + 32]
    assert len(remarks) == remarked


def test_no_command_no_constants() -> None:
    assert push_constants(made(9), "VS") == b""


def curbe(valid: bool, offset: int, length: int) -> DrawState:
    unit = {"constant_urb_entry_read_offset": offset, "constant_urb_entry_read_length": length}
    state = made(4.5, commands={"3DSTATE_PIPELINED_POINTERS": {"pointer_to_vs_state": 0x12000}}, blocks={0x12000: ("VS_STATE", unit)})
    state.curbe = DATA[:128] if valid else None
    return state


def test_a_stage_reads_its_region_of_the_shared_buffer() -> None:
    """The buffer has 128 bytes; nothing was loaded behind them."""
    assert push_constants(curbe(True, 1, 2), "VS") == DATA[32:96]
    assert push_constants(curbe(True, 3, 2), "VS") == DATA[96:128] + bytes(32)
    assert push_constants(curbe(False, 0, 0), "VS") == b""


def test_constants_that_were_never_loaded_are_refused() -> None:
    with pytest.raises(DecodeError, match="VS: constant_urb_entry_read_length 1, but no CONSTANT_BUFFER is valid"):
        push_constants(curbe(False, 0, 1), "VS")
