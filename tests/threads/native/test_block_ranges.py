"""Which bytes of a thread's block are copied from its template, which are cleared, and which are left as they are."""

from __future__ import annotations

import ctypes
from itertools import pairwise

import pytest

from softgen.eu.thread.block import BLOCK_OFFSETS as AT
from softgen.eu.thread.block import ControlBlock
from softgen.threads.native.block_ranges import block_ranges

CONTROL_END = AT["control"] + ctypes.sizeof(ControlBlock)
COPY, ZERO = "copy", "zero"
ALWAYS = {(AT["sr"], AT["n"]): COPY, (AT["control"], CONTROL_END): COPY}
REGISTERS = {(AT["acc"], AT["sr"]): ZERO, (AT["ip"], AT["tdr"]): ZERO}  # n is cleared with the group
STACK_POINTER = {(AT["sp"], AT["fc"]): ZERO}
RARE = {(AT["mrf"], AT["acc"]): ZERO, (AT["tdr"], AT["control"]): ZERO}


def ranges(registers: int, flow: str = "channel", needs: tuple[tuple[int, int], ...] | None = None,
           copies_payload: bool = True) -> dict[tuple[int, int], str]:  # fmt: skip
    """Ranges, without empty ones: first byte and end, and what is done with them."""
    found = block_ranges(registers, flow, needs, copies_payload)
    made = {(span.start, span.start + span.size): ZERO if span.plain else COPY for span in found if span.size}
    edges = sorted(made)
    assert all(end <= start for (_, end), (start, _) in pairwise(edges)), "ranges overlap"
    return made


@pytest.mark.parametrize("registers, end", [(0, 0), (1, 64), (2, 64), (3, 128), (127, 4096), (128, 4096)])
def test_payloads_take_whole_lines_and_the_rest_of_the_registers_is_cleared(registers: int, end: int) -> None:
    payload = {(0, end): COPY} if end else {}
    rest = {(end, AT["mrf"]): ZERO} if end < AT["mrf"] else {}
    assert ranges(registers) == {**payload, **rest, **ALWAYS, **REGISTERS, **STACK_POINTER}


def test_a_payload_longer_than_the_registers_has_no_ranges() -> None:
    """What is left of the registers would be less than nothing."""
    with pytest.raises(AssertionError):
        block_ranges(129, "channel", None, True)


def test_generations_with_mask_stacks_have_more_to_clear() -> None:
    assert ranges(1, "stack") == {(0, 64): COPY, (64, AT["mrf"]): ZERO, **ALWAYS, **REGISTERS, **RARE}


@pytest.mark.parametrize("flow", ["channel", "stack"])
@pytest.mark.parametrize("needs, cleared", [
    ((), []), (((0, 64),), []), (((0, 96),), [(64, 96)]), (((64, 32),), [(64, 96)]), (((32, 32), (0x400, 64)), [(0x400, 0x440)]),
    (((AT["acc"], 32), (AT["sr"], 8), (AT["cr"], 4)), [(AT["acc"], AT["acc"] + 32)]), (((AT["control"], 4),), []),
    (((AT["sr"] - 4, 4), (AT["n"], 4)), [(AT["sr"] - 4, AT["sr"]), (AT["n"], AT["n"] + 4)]),
])  # fmt: skip
def test_only_what_code_reads_first_is_cleared(needs: tuple[tuple[int, int], ...], cleared: list[tuple[int, int]], flow: str) -> None:
    """The live-in bytes of the code; payload, sr, cr and the control block are copied in any case."""
    assert ranges(2, flow, needs) == {(0, 64): COPY, **ALWAYS, **dict.fromkeys(cleared, ZERO)}


@pytest.mark.parametrize("registers, cleared", [(1, {(32, 64): ZERO}), (2, {}), (3, {(96, 128): ZERO})])
def test_a_payload_that_is_written_is_not_copied(registers: int, cleared: dict[tuple[int, int], str]) -> None:
    """What follows it in its last line is zero."""
    end = -(-registers // 2) * 64
    assert ranges(registers, copies_payload=False) == {**cleared, (end, AT["mrf"]): ZERO, **ALWAYS, **REGISTERS, **STACK_POINTER}
    assert ranges(registers, needs=((end, 8),), copies_payload=False) == {**cleared, (end, end + 8): ZERO, **ALWAYS}
