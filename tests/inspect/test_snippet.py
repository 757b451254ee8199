"""Types of register elements after a snippet: an element has that of the instruction that wrote it, whether its value changed or not."""

from __future__ import annotations

import pytest

from softgen.inspect import registers
from softgen.inspect.snippet import Snippet


def kinds(text: str, gen: float = 9.0, size: int = 4, simd: int | None = None) -> list[str]:
    """Types of r4, for each element of so many bytes; the snippet leaves its bytes zero."""
    snippet = Snippet(text, gen, simd=simd)
    ran = snippet.run()
    assert not ran.problem and not snippet.thread.grf[128:160].any()
    held = snippet.kinds.held["grf"][128:160]
    assert all(held[at : at + size] == held[at : at + 1] * size for at in range(0, 32, size))
    return held[::size]


@pytest.mark.parametrize("channels, found", [("xyzw", ["df"] * 4), ("xy", ["df", ""] * 2), ("zw", ["", "df"] * 2)])
def test_channels_of_doubles_are_pairs_of_bits(channels: str, found: list[str]) -> None:
    """In Align16 a double takes two bits of the channel enables."""
    assert kinds(f"mov(4) g4<1>.{channels}DF g2<4,4,1>.xyzwDF {{ align16 1Q }};\n", 7.5, 8) == found


@pytest.mark.parametrize("channels, found", [("xyzw", "ffff"), ("x", "f..."), ("y", ".f.."), ("zw", "..ff"), ("xw", "f..f")])
def test_channels_of_floats_have_a_bit_each(channels: str, found: str) -> None:
    assert kinds(f"mov(8) g4<1>.{channels}F g2<4,4,1>.xyzwF {{ align16 1Q }};\n", 7.0) == [kind.strip(".") for kind in found] * 2


def test_channels_that_are_off_write_nothing() -> None:
    move = "mov (8|M0) r4.0<1>:d r2.0<8;8,1>:d\n"
    assert kinds(move) == kinds(f"(W) {move}", simd=2) == ["d"] * 8
    assert kinds(move, simd=2) == ["d", "d"] + [""] * 6
    assert kinds(move.replace("M0", "M8"), simd=16) == ["d"] * 8 and kinds(move.replace("M0", "M8"), simd=10) == ["d", "d"] + [""] * 6


def test_what_a_predicate_left_is_not_known_to_be_written() -> None:
    """But a sel writes either way."""
    assert kinds("(f0.0) mov (8|M0) r4.0<1>:d r2.0<8;8,1>:d\n") == [""] * 8
    assert kinds("(f0.0) sel (8|M0) r4.0<1>:d r2.0<8;8,1>:d r3.0<8;8,1>:d\n") == ["d"] * 8


def test_the_last_instruction_counts() -> None:
    assert kinds("mov (8|M0) r4.0<1>:d r2.0<8;8,1>:d\nmov (4|M0) r4.0<1>:f r2.0<4;4,1>:f\n") == ["f"] * 4 + ["d"] * 4


@pytest.mark.parametrize("text, kind", [("mul (8|M0) r5.0<1>:d r2.0<8;8,1>:d r3.0<8;8,1>:d {AccWrEn}", "d"),
                                        ("add (8|M0) r5.0<1>:w r2.0<8;8,1>:w 3:w {AccWrEn}", "w"),
                                        ("add (8|M0) r5.0<1>:f r2.0<8;8,1>:f 1.5:f {AccWrEn}", "f")])  # fmt: skip
def test_accumulators_written_in_passing(text: str, kind: str) -> None:
    """Floats as they are computed, integers as dwords or words."""
    snippet = Snippet(text, 9.0)
    for setting in ("r2:f=2.5*8", "r3:d=3*8") if kind == "f" else ("r2:d=5*8", "r3:d=3*8"):
        snippet.set(setting)
    found = [lanes for lanes in snippet.run().changes if lanes.register == "acc0"]
    assert found and found[0].type == kind and found[0].after[0] == {"d": 15, "w": 8, "f": 4.0}[kind]


def test_integers_in_accumulators_are_read_one_by_one() -> None:
    """They are kept in full width, eight bytes each."""
    snippet = Snippet("mov (8|M0) r4.0<1>:d r2.0<8;8,1>:d\n", 9.0)
    snippet.set("acc0:d=1,-2,0x7fffffff,-4*5")
    now = registers.snapshot(snippet.thread)
    (lanes,) = snippet.kinds.lanes(registers.find("acc", "0", 9.0, snippet.thread), now, now)
    assert (lanes.type, lanes.after) == ("d", (1, -2, 0x7FFFFFFF, -4, -4, -4, -4, -4))


@pytest.mark.parametrize("text, problem", [("mov (16|M0) r127.0<1>:d r2.0<8;8,1>:d", "outside its 0x1000 bytes"),
                                           ("mov (16|M0) acc1.0<1>:d r2.0<8;8,1>:d", "")])  # fmt: skip
def test_what_is_written_behind_the_last_register_has_no_type(text: str, problem: str) -> None:
    snippet = Snippet(text, 9.0)
    before = {name: len(held) for name, held in snippet.kinds.held.items()}
    assert problem in snippet.run().problem and {name: len(held) for name, held in snippet.kinds.held.items()} == before
    assert snippet.kinds.held["acc" if "acc" in text else "grf"][-32:] == ["d"] * 32
