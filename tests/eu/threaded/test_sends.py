"""Messages on t0: those to different surfaces share a handler, which finds the surface's index in its record."""

from __future__ import annotations

import pytest

from softgen.errors import GpuFault
from softgen.eu.encoding.program import instructions
from softgen.eu.interpreter import KernelProgram
from softgen.eu.semantics.send import surface_bits
from softgen.eu.text import dialect
from softgen.eu.threaded.engine import threaded
from softgen.eu.threaded.shapes import ShapeUse, sending
from softgen.shared_functions.bindings import named_texels
from tests.gpgpu.engines import Choice, engines
from tests.gpgpu.job import END, Job, dwords, words

LINES = "\n".join(READS := [f"send (16|M0) r{12 + 2 * index}:w r10 0xC 0x04205E{index:02X}" for index in range(4)])
SUM = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
     shl (16|M0) r10.0<1>:d r1.0<16;16,1>:uw 2:w
{LINES}
     add (16|M0) r12.0<1>:d r12.0<8;8,1>:d r14.0<8;8,1>:d
     add (16|M0) r16.0<1>:d r16.0<8;8,1>:d r18.0<8;8,1>:d
     add (16|M0) r12.0<1>:d r12.0<8;8,1>:d r16.0<8;8,1>:d
     send (16|M0) null:w r10 0xC 0x08025E04
{END}
"""


def use(line: str) -> ShapeUse:
    (found,) = instructions(dialect.read(line, 9), 9)
    return sending(found[-1])


@pytest.mark.parametrize("choice", engines(), ids=str)
def test_each_message_finds_its_surface(choice: Choice) -> None:
    buffers = [dwords(*range(1000**number, 1000**number + 16)) for number in range(4)]
    found = Job(SUM, [*buffers, bytes(64)], "skl", own=[words(*range(16))]).run(groups=choice.groups()).buffer(4)
    assert found == tuple((1 + 1000 + 1000**2 + 1000**3 + 4 * item) & 0xFFFFFFFF for item in range(16))


@pytest.mark.parametrize(("gpu", "payload", "address"), [("skl", "null", 0), ("bdw", "acc0", 0x400), ("icl", "a0", 0x200)])
@pytest.mark.parametrize("choice", engines(), ids=str)
def test_a_payload_in_architecture_registers_is_a_fault_of_its_instruction(choice: Choice, gpu: str, payload: str, address: int) -> None:
    """Whatever the number is, it is none of a general register."""
    line = f"send (16|M0) r12:w {payload} 0xC 0x04205E00"
    with pytest.raises(GpuFault, match=rf"message registers at {address:#x} .*\+0x10: send .* {payload} .*: a payload is in general reg"):
        Job(f"(W) mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud\n{line}\n{END}", [bytes(64)], gpu).run(groups=choice.groups())


def test_messages_to_other_surfaces_have_the_same_shape() -> None:
    first, second = use(READS[0]), use(READS[3])
    assert first.shape == second.shape and first.shape.indexed
    assert (first.immediate, second.immediate) == (0, 3)
    local, plain = use("send (16|M0) r12:w r10 0xC 0x04205EFE"), use("send (16|M0) r12:w r10 0xC 0x04205EFF")
    assert local.shape != plain.shape and not local.shape.indexed and not plain.shape.indexed  # other memory, other code


def test_a_program_names_the_entries_of_its_messages() -> None:
    """Those are resolved before it runs; also what it does to the texels of an image (`ld` of surface 5)."""
    text = SUM.replace(READS[2], "send (16|M0) r16:w r10 0x2 0x08447005")
    linked = threaded(9).link(KernelProgram(9, dialect.read(text, 9)))
    images = {index for index in linked.indices if index >= 256}
    assert linked.indices - images == {0, 1, 3, 4}
    assert images == {named_texels(5, "load", 16, 0)}


@pytest.mark.parametrize(("sfid", "descriptor", "bits"), [
    (0xC, 0x04205E01, 0xFF),  # untyped surface read
    (0xC, 0x04205EFE, 0),  # of local memory
    (0xC, 0x04205EFF, 0),  # stateless
    (0xC, 0x042450FF, 0),  # of 64-bit addresses
    (0xA, 0x02280301, 0xFF),  # oword block read
    (0xA, 0x021DC001, 0),  # of scratch space, where these bits are an offset
    (0x2, 0x02422001, 0xFF),  # sample_l
    (0x5, 0x140A0401, 0),  # render target write: its code knows the surface
    (0x3, 0x02000004, 0),  # barrier
    (0xF, 0x00000001, 0),  # no shared function
])  # fmt: skip
def test_which_bits_of_a_descriptor_are_an_index(sfid: int, descriptor: int, bits: int) -> None:
    assert surface_bits(sfid, descriptor, 9) == bits


@pytest.mark.parametrize(("line", "left"), [
    ("send (16|M0) r124:w r126 0xC 0x04405E00", 0), ("send (16|M0) r125:w r126 0xC 0x04405E00", 1),
    ("send (16|M0) r124:w r127 0xC 0x04405E00", 1), ("send (16|M0) null:w r122 0xC 0x0C025E00", 0),
    ("send (16|M0) null:w r123 0xC 0x0C025E00", 1), ("sends (16|M0) null:w r126 r124 0x10C 0x04025E00", 0),
    ("sends (16|M0) null:w r127 r124 0x10C 0x04025E00", 1), ("sends (16|M0) null:w r126 r125 0x10C 0x04025E00", 1),
])  # fmt: skip
def test_messages_past_the_last_register_are_left_to_the_interpreter(line: str, left: int) -> None:
    """All registers that a descriptor counts must be there, also those that the message does not use: the interpreter reports it."""
    plain, found = (threaded(9).link(KernelProgram(9, dialect.read(f"{text}\n{END}", 9))) for text in ("nop", line))
    assert found.escapes - plain.escapes == left
