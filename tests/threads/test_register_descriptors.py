"""Messages whose descriptors are in address registers: compiled code executes them, with indices of each thread's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from softgen.eu.encoding.program import instructions
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.semantics.descriptor_bits import AddressImmediates, known_bits
from softgen.eu.text import dialect
from softgen.threads.dispatcher import EngineDispatcher
from tests.gpgpu.engines import Choice, engines
from tests.gpgpu.job import END, Job, dwords, words

ITEMS = """
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
     shl (16|M0) r10.0<1>:d r0.1<0;1,0>:d 4:w
     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d r1.0<16;16,1>:uw
     shl (16|M0) r10.0<1>:d r10.0<8;8,1>:d 2:w
"""
# Each group reads the surface whose number is the group's, and writes surface 4.
READ = f"""{ITEMS}
(W)  or (1|M0)   a0.0<1>:ud r0.1<0;1,0>:ud 0x04205E00:ud
     send (16|M0) r12:w r10 0xC a0.0
     send (16|M0) null:w r10 0xC 0x08025E04
{END}
"""
# `or` of surface 0 with r2.1, as the immediate has it; with another bit from r2.0 it is `xor`.
ATOMIC = f"""{ITEMS}
     mov (16|M0) r12.0<1>:d r2.1<0;1,0>:d
(W)  or (1|M0)   a0.0<1>:ud r2.0<0;1,0>:ud 0x08008200:ud
     send (16|M0) null:w r10 0xC a0.0
{END}
"""


def job(kernel: str, buffers: list[bytes], *constants: int) -> Job:
    return Job(kernel, buffers, "skl", ends=(4, 1, 1), shared=dwords(*constants, *[0] * (8 - len(constants))), own=[words(*range(16))])


def fallbacks(dispatcher: EngineDispatcher) -> int:
    return sum(sum(item.program.fallbacks.values()) for item in dispatcher.ran.values())


@pytest.mark.parametrize("choice", engines(), ids=str)
def test_threads_choose_their_surfaces(choice: Choice) -> None:
    buffers = [dwords(*range(1000 * number, 1000 * number + 64)) for number in range(4)]
    dispatcher = choice.groups()
    found = job(READ, [*buffers, bytes(256)]).run(groups=dispatcher).buffer(4)
    assert found == tuple(1000 * (item // 16) + item for item in range(64))
    assert choice.name not in ("t0", "t1") or not fallbacks(dispatcher)


@pytest.mark.parametrize("choice", engines(), ids=str)
@pytest.mark.parametrize(("more", "meant"), [(0, lambda a: a | 5), (0x100, lambda a: a ^ 5)], ids=["or", "xor"])
def test_a_register_with_another_message_than_the_immediate(more: int, meant: Callable[[int], int], choice: Choice) -> None:
    dispatcher = choice.groups()
    found = job(ATOMIC, [dwords(*range(64))], more, 5).run(groups=dispatcher).buffer(0)
    assert found == tuple(meant(item) for item in range(64))
    assert choice.name not in ("t0", "t1") or bool(fallbacks(dispatcher)) == bool(more)


def described(*lines: str) -> Instruction:
    """The last of some instructions, with what those before it tell."""
    built = AddressImmediates()
    insts = [built.after(inst) for *_, inst in instructions(dialect.read("\n".join(lines), 9), 9)]
    return insts[-1]


SEND = "send (16|M0) r12:w r10 0xC a0.0"


@pytest.mark.parametrize(("before", "bits"), [
    ("(W) or (1|M0) a0.0<1>:ud r2.0<0;1,0>:ud 0x04205E00:ud", 0x04205E00),
    ("(W) mov (1|M0) a0.0<1>:ud 0x04205E07:ud", 0x04205E07),
    ("(W) mov (1|M0) a0.2<1>:ud 0x04205E07:ud", None),  # another register
    ("(W) mov (1|M0) a0.0<1>:ud r2.0<0;1,0>:ud", None),
    ("(W) mov (1|M0) a0.0<1>:ud 0x04205E07:ud\n(W) mov (1|M0) a0.1<1>:uw 3:uw", None),  # half of it is another number now
])  # fmt: skip
def test_what_is_known_of_a_descriptor(before: str, bits: int | None) -> None:
    assert known_bits(described(before, SEND).descriptor) == bits


def test_an_immediate_descriptor_is_known() -> None:
    plain = described("send (16|M0) r12:w r10 0xC 0x04205E00")
    assert known_bits(plain.descriptor) == 0x04205E00 and known_bits(None) is None
    assert known_bits(replace(plain, descriptor=Operand("arf", "ud", 0x10)).descriptor) is None
