"""Exceptions of dispatched threads lead to the routine that STATE_SIP names, whatever engine runs them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from softgen.errors import GpuFault, Unsupported
from softgen.eu.text import dialect
from softgen.eu.thread.exceptions import BREAKPOINT, ILLEGAL, MASTER, SOFTWARE, SUPPRESS
from tests.gpgpu.engines import Choice, engines
from tests.gpgpu.job import ADD, CODE, Job, dwords, words

ROUTINE = 0x8000  # from the instruction base: far from the kernel
MISSING = 0xA000  # nothing is mapped there
SUM = "     add (16|M0) r12.0<1>:d r20.0<8;8,1>:d r2.0<0;1,0>:d"
# Adds 1 to the constant that the kernel adds, and returns; {leaves} says what it changes in cr0 before.
HANDLER = """
(W)  add (1|M0) r2.0<1>:d r2.0<0;1,0>:d 1:d
{leaves}
(W)  and (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud %#x:ud {Switch}
""" % (~MASTER & 0xFFFFFFFF)
SKIP = "(W)  add (1|M0) cr0.2<1>:ud cr0.2<0;1,0>:ud 16:ud {Switch}"
RAISES = {
    "illegal opcode": ("     illegal", SKIP, {"illegal_opcode_exception_enable": 1}),
    "software exception": (f"(W)  or (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud {SOFTWARE.status:#x}:ud {{Switch}}",
                           f"(W)  and (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud {~SOFTWARE.status & 0xFFFFFFFF:#x}:ud {{Switch}}",
                           {"software_exception_enable": 1}),
    "breakpoint": (f"(W)  or (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud {BREAKPOINT.enable:#x}:ud {{Switch}}\n"
                   "     mov (16|M0) r90.0<1>:d r90.0<8;8,1>:d {Breakpoint}",
                   f"(W)  or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud {SUPPRESS:#x}:ud {{Switch}}", {}),
}  # fmt: skip


@dataclass
class Handled(Job):
    """A job whose exceptions have a handler in memory."""

    handler: str = ""

    def pieces(self) -> dict[int, bytes]:
        found = super().pieces()
        return found | {CODE + ROUTINE: dialect.read(self.handler, self.gen)} if self.handler else found


def raising(kind: str, sip: int | None = ROUTINE) -> Handled:
    raises, leaves, descriptor = RAISES[kind]
    made = Handled(ADD.replace(SUM, f"{raises}\n{SUM}"), [dwords(*range(64)), bytes(256)], ends=(4, 1, 1), shared=dwords(1000, *[0] * 7),
                   own=[words(*range(16))], descriptor=descriptor, handler=HANDLER.replace("{leaves}", leaves))  # fmt: skip
    if sip is not None:
        made.before = [made.pack("STATE_SIP", system_instruction_pointer=sip)]
    return made


@pytest.mark.behaviour("EU-206", shows="action")
@pytest.mark.parametrize("choice", engines(), ids=str)
@pytest.mark.parametrize("kind", RAISES)
def test_the_routine_runs_once_in_each_thread_and_returns(kind: str, choice: Choice) -> None:
    ran = raising(kind).run(groups=choice.groups())
    assert ran.buffer(1) == tuple(range(1001, 1065))


@pytest.mark.parametrize("choice", engines(), ids=str)
def test_without_state_sip_an_enabled_exception_is_not_simulated(choice: Choice) -> None:
    with pytest.raises(Unsupported, match="illegal opcode: the exception is enabled, but no STATE_SIP has set a system routine"):
        raising("illegal opcode", sip=None).run(groups=choice.groups())


@pytest.mark.parametrize("choice", engines(), ids=str)
def test_a_routine_that_is_not_there_faults(choice: Choice) -> None:
    with pytest.raises(GpuFault, match=f"instruction fetch at {CODE + MISSING:#x}"):
        raising("illegal opcode", sip=MISSING).run(groups=choice.groups())


def test_the_routine_of_the_next_dispatch_is_read_again() -> None:
    """The bytes of the handler change between two dispatches of the same kernel on the same engine."""
    groups = Choice("t1").groups()
    for step in (1, 5):
        made = raising("illegal opcode")
        made.handler = made.handler.replace(" 1:d", f" {step}:d")
        assert made.run(groups=groups).buffer(1)[0] == 1000 + step


def test_a_routine_that_is_no_longer_there_matters_only_to_exceptions() -> None:
    """The exception is enabled in the first dispatch, not in the second."""
    groups = Choice("t1").groups()
    made = raising("software exception")
    assert made.run(groups=groups).buffer(1)[0] == 1001
    made.descriptor, made.handler = {}, ""
    assert made.run(groups=groups).buffer(1) == tuple(range(1000, 1064))


def test_exceptions_that_are_not_enabled_go_nowhere() -> None:
    made = raising("software exception")
    made.descriptor = {}
    assert made.run().buffer(1) == tuple(range(1000, 1064))


@pytest.mark.parametrize("choice", engines(), ids=str)
def test_padding_whose_exception_is_off_is_passed(choice: Choice) -> None:
    """Eight zeros, as iHD's linked kernels have them; the constant is added to what cr0.1 says afterwards, the illegal opcode's status."""
    padded = ADD.replace(SUM, "\n".join(["     illegal"] * 8) + f"\n(W)  add (1|M0) r2.0<1>:ud r2.0<0;1,0>:ud cr0.1<0;1,0>:ud\n{SUM}")
    made = Job(padded, [dwords(*range(64)), bytes(256)], ends=(4, 1, 1), shared=dwords(1000, *[0] * 7), own=[words(*range(16))])
    ran = made.run(groups=(dispatcher := choice.groups()))
    assert list(ran.buffer(1)) == [1000 + ILLEGAL.status + number for number in range(64)]
    if choice.name in ("t0", "t1"):
        assert not dispatcher.notes
