"""The road through rings and batches, on batches made from pages."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.parser import Command, CommandParser, Remark, record

KBL, G45 = device("kbl").generation, device("g45").generation


def pack(name: str, gen: float = 9, **values: Any) -> list[int]:
    return layout(name, gen).pack(**values)


END = pack("MI_BATCH_BUFFER_END")
NOOP = pack("MI_NOOP")


def start(address: int, second: bool = False, gen: float = 9) -> list[int]:
    return pack("MI_BATCH_BUFFER_START", gen, batch_buffer_start_address=address, **({"second_level_batch_buffer": 1} if second else {}))


def space(pieces: dict[int, Iterable[int]], bits: int = 48) -> AddressSpace:
    made = AddressSpace("test", bits)
    for address, dwords in pieces.items():
        data = struct.pack(f"<{len(list(dwords))}I", *dwords)
        page = address & ~0xFFF
        buffer = MemfdBuffer((address - page + len(data) + 0xFFF) & ~0xFFF)
        buffer.view[address - page : address - page + len(data)] = data
        made.map(page, buffer)
    return made


def road(memory: AddressSpace, address: int = 0x10000, engine: str = "render") -> list[Any]:
    return list(CommandParser(KBL, engine, memory).batch(address))


def names(met: list[Any]) -> list[str | None]:
    return [m.name if isinstance(m, Command) else m.kind for m in met]


def test_a_batch_ends_with_its_end() -> None:
    met = road(space({0x10000: NOOP + END + NOOP}))
    assert names(met) == ["MI_NOOP", "MI_BATCH_BUFFER_END"]
    assert [m.address for m in met] == [0x10000, 0x10004] and met[0].batch == 0x10000


def test_a_chained_batch_does_not_come_back() -> None:
    met = road(space({0x10000: start(0x20000) + NOOP, 0x20000: END}))
    assert names(met) == ["MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_END"]
    assert met[1].batch == 0x20000 and met[1].level == 1


def test_a_second_level_batch_comes_back() -> None:
    met = road(space({0x10000: start(0x20000, second=True) + NOOP + END, 0x20000: NOOP + END}))
    assert names(met) == ["MI_BATCH_BUFFER_START", "MI_NOOP", "MI_BATCH_BUFFER_END", "MI_NOOP", "MI_BATCH_BUFFER_END"]
    assert [m.level for m in met] == [1, 2, 2, 1, 1]


def test_a_second_level_batch_that_chains_still_comes_back() -> None:
    met = road(space({0x10000: start(0x20000, second=True) + END, 0x20000: start(0x30000), 0x30000: NOOP + END}))
    assert names(met) == ["MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_START", "MI_NOOP", "MI_BATCH_BUFFER_END", "MI_BATCH_BUFFER_END"]
    assert [m.level for m in met] == [1, 2, 2, 2, 1]


def test_a_conditional_end_is_not_taken() -> None:
    met = road(space({0x10000: pack("MI_CONDITIONAL_BATCH_BUFFER_END", compare_address=0x4000) + END}))
    assert names(met) == ["MI_CONDITIONAL_BATCH_BUFFER_END", "MI_BATCH_BUFFER_END"]


def test_a_batch_that_jumps_to_itself_is_left() -> None:
    met = road(space({0x10000: start(0x10000)}))
    assert names(met) == ["MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_START", "loop"]


def test_the_same_second_level_batch_may_be_called_twice() -> None:
    met = road(space({0x10000: start(0x20000, True) + start(0x20000, True) + END, 0x20000: NOOP + END}))
    assert names(met).count("MI_NOOP") == 2


def test_a_ring_wraps_and_calls_batches() -> None:
    ring = [0] * 1024
    ring[-3:] = start(0x20000)
    ring[0:2] = NOOP + NOOP
    memory = space({0x10000: ring, 0x20000: END})
    met = list(CommandParser(KBL, "render", memory).ring(0x10000, 4096 - 12, 8, 4096))
    assert names(met) == ["MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_END", "MI_NOOP", "MI_NOOP"]
    assert [m.address for m in met] == [0x10FF4, 0x20000, 0x10000, 0x10004] and [m.level for m in met] == [0, 1, 0, 0]


def test_unmapped_memory_is_told_with_its_address() -> None:
    met = road(space({0x10FFC: NOOP}), 0x10FFC)
    assert names(met) == ["MI_NOOP", "unmapped"]
    assert met[1].text == "the batch leaves mapped memory at 0x11000 without an end"
    assert names(road(space({0x10000: END}), 0x50000)) == ["unmapped"]


def test_a_batch_wraps_at_the_end_of_the_space() -> None:
    memory = space({0: NOOP + END, 0xFFFF_F000: [0] * 1022 + pack("STATE_BASE_ADDRESS", 4.5)[:2]}, 32)
    met = list(CommandParser(G45, "render", memory).batch(0xFFFF_FFF4))
    assert [m.address for m in met[:2]] == [0xFFFF_FFF4, 0xFFFF_FFF8] and met[1].name == "STATE_BASE_ADDRESS"
    memory = space({0: NOOP + END, 0xFFFF_F000: [0] * 1024}, 32)
    met = list(CommandParser(G45, "render", memory).batch(0xFFFF_FFF8))
    assert [m.address for m in met] == [0xFFFF_FFF8, 0xFFFF_FFFC, 0, 4]


@pytest.mark.parametrize("indicator, where, found", [(0, "both", "own"), (0, "global", "global"), (0, "own", "own"), (1, "both", "own"),
                                                     (1, "global", None)])  # fmt: skip
def test_a_batch_is_in_the_global_space_where_its_start_says_so(indicator: int, where: str, found: str | None) -> None:
    """And the context's space has nothing there: captures name one of both."""
    pieces = {"own": (NOOP + END), "global": (END)}
    first = pack("MI_BATCH_BUFFER_START", batch_buffer_start_address=0x20000, address_space_indicator=indicator)
    own, other = (space({0x10000: first} | ({0x20000: pieces[name]} if where in (name, "both") else {})) for name in pieces)
    met = list(CommandParser(KBL, "render", own, other).batch(0x10000))
    ends = {"own": ["MI_NOOP", "MI_BATCH_BUFFER_END"], "global": ["MI_BATCH_BUFFER_END"], None: ["unmapped"]}
    assert names(met) == ["MI_BATCH_BUFFER_START", *ends[found]]


def test_the_last_bytes_of_memory_may_be_no_dword() -> None:
    """A dump may name any address as its batch."""
    met = road(space({0x10000: [0] * 1024}), 0x10FF7)
    assert names(met) == ["MI_NOOP", "MI_NOOP", "unmapped"] and met[-1].address == 0x10FFF


def test_a_command_cut_off_by_the_end_of_memory_says_so() -> None:
    met = road(space({0x10FFC: pack("STATE_BASE_ADDRESS")[:1]}), 0x10FFC)
    assert met[0].problems[0].startswith("its length says ") and met[0].problems[0].endswith("memory ends after 1")


def test_unknown_commands_are_stepped_over_by_their_length() -> None:
    met = road(space({0x10000: [0x7FFF0001, 1, 2, *END]}))
    assert names(met) == [None, "MI_BATCH_BUFFER_END"] and met[0].dwords == [0x7FFF0001, 1, 2]


def test_what_cannot_be_commands_is_left() -> None:
    assert names(road(space({0x10000: [0xFFFFFFFF, *END]}))) == [None, "no_batch"]
    many = road(space({0x10000: [0x7FFF0000, 0] * 20}))
    assert names(many) == [None] * 8 + ["no_batch"]


def test_engines_have_commands_of_their_own() -> None:
    batch = space({0x10000: pack("XY_COLOR_BLT") + END})
    assert names(road(batch, engine="blitter")) == ["XY_COLOR_BLT", "MI_BATCH_BUFFER_END"]
    assert road(batch, engine="video")[0].layout is None


@pytest.mark.behaviour("G45-CS-01", shows="action")
def test_the_gfxpipe_header_is_decoded_and_unknown_codes_are_rejected() -> None:
    draw = pack("3DPRIMITIVE", 4.5)
    memory = space({0x10000: [*draw, 0x7C000000, 0, *pack("MI_BATCH_BUFFER_END", 4.5)]}, 32)
    met = list(CommandParser(G45, "render", memory).batch(0x10000))
    assert [m.name for m in met] == ["3DPRIMITIVE", None, "MI_BATCH_BUFFER_END"]
    assert len(met[0].dwords) == (draw[0] & 0xFF) + 2


def test_memory_the_gpu_was_to_write_is_not_read_as_commands() -> None:
    memory = space({0x10000: start(0x20000, True) + END, 0x20000: [0xFFFFFFFF], 0x30000: NOOP + END})
    parser = CommandParser(KBL, "render", memory, stale=lambda space, address: "unwritten" if address >= 0x20000 else "")
    met = list(parser.batch(0x10000))
    assert names(met) == ["MI_BATCH_BUFFER_START", "gpu_written", "MI_BATCH_BUFFER_END"]
    assert met[1].text == "jumps to 0x20000, unwritten; what stands there is no batch"
    fine = CommandParser(KBL, "render", space({0x10000: start(0x30000), 0x30000: END}), stale=lambda space, address: "unwritten")
    met = list(fine.batch(0x10000))
    assert names(met) == ["MI_BATCH_BUFFER_START", "gpu_written", "MI_BATCH_BUFFER_END"]
    assert met[1].text == "jumps to 0x30000, unwritten; shown as it stands"


GPUS, ENGINES = ("gm965", "g45", "ivb", "hsw", "bdw", "kbl", "icl"), ("render", "blitter", "video", "video_enhance")


@given(st.lists(st.integers(0, 0xFFFFFFFF), max_size=200), st.sampled_from(GPUS), st.sampled_from(ENGINES))
def test_any_dwords_come_to_an_end(dwords: list[int], gpu: str, engine: str) -> None:
    memory = space({0x10000: [*dwords, 0]})
    met = list(CommandParser(device(gpu).generation, engine, memory).batch(0x10000))
    assert met and all(isinstance(m, (Command, Remark)) for m in met)


def test_the_tail_of_a_ring_ends_its_last_command() -> None:
    """A length that runs past the tail must not lead once around the ring."""
    memory = space({0x10000: [*NOOP, *start(0x20000), *[0] * 1020], 0x20000: END})
    met = list(CommandParser(KBL, "render", memory).ring(0x10000, 0, 8, 4096))
    assert names(met)[:2] == ["MI_NOOP", "MI_BATCH_BUFFER_START"] and len(met) <= 4
    assert met[1].dwords == start(0x20000)[:1] and met[1].problems == ("its length says 3 dwords, the ring ends after 1",)


@pytest.mark.parametrize("head", [0x100, 4096 - 40, 4096 - 16, 4096 - 4])
@pytest.mark.parametrize("left", range(1, 17))
def test_a_command_has_the_dwords_before_the_tail(head: int, left: int) -> None:
    """Also where the ring begins again in between."""
    ring, command = list(range(1024)), pack("STATE_BASE_ADDRESS", general_state_base_address=0x5000, bindless_surface_state_size=3)
    first = head // 4
    for number, dword in enumerate(command):
        ring[(first + number) % 1024] = dword
    met, *_ = CommandParser(KBL, "render", space({0x10000: ring})).ring(0x10000, head, (head + 4 * left) % 4096, 4096)
    assert isinstance(met, Command) and met.dwords == command[:left]
    assert met.problems == (f"its length says {len(command)} dwords, the ring ends after {left}",)


@pytest.mark.parametrize("name, dwords, said", [
    ("MI_BATCH_BUFFER_START", 2, "2 dwords, not 3"), ("MI_BATCH_BUFFER_START", 4, "4 dwords, not 3"),
    ("MI_ATOMIC", 2, "2 dwords, not 3 to 11"), ("MI_ATOMIC", 12, "12 dwords, not 3 to 11"),
    ("MI_STORE_DATA_IMM", 2, "2 dwords, not 4 or more"), ("MI_LOAD_REGISTER_IMM", 2, "2 dwords, not 3 or more"),
])  # fmt: skip
def test_a_length_that_a_command_never_has_is_told_with_those_that_it_has(name: str, dwords: int, said: str) -> None:
    header = pack(name)[0] & ~0xFF | dwords - 2
    met = road(space({0x10000: [header, *[0] * 11, *END]}))
    assert met[0].problems == (f"its length says {said}",)


def test_memory_full_of_zeros_is_left_early() -> None:
    """After 64 Ki dwords in a row; as many between other commands are MI_NOOPs."""
    met = road(space({0x10000: [0] * 0x20000}))
    assert len(met) == 0x10001 and met[-1].kind == "limit" and met[-1].address == 0x50000
    assert met[-1].text == "stopped after 65536 zero dwords in a row: unwritten memory"
    met = road(space({0x10000: [*[0] * 0xFFFF, *[0x01000000, *[0] * 0xFFFF] * 2, 0x05000000]}))
    assert len(met) == 3 * 0x10000 and met[-1].name == "MI_BATCH_BUFFER_END"


def test_a_submission_is_left_after_half_a_million_commands() -> None:
    numbered = pack("MI_NOOP", identification_number_register_write_enable=1)
    walk = enumerate(CommandParser(KBL, "render", space({0x10000: numbered * 500_001})).batch(0x10000))
    ((count, last),) = deque(walk, maxlen=1)
    assert (count, last) == (500_000, Remark(0x10000, 0x10000 + 4 * count, "limit", "stopped after 500000 commands"))


def test_batches_that_call_each_other_over_and_over_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is another road; their number is what grows, so the commands met again are counted."""
    monkeypatch.setattr("softgen.streamer.parser.MOST_AGAIN", 1000)
    met = road(space({0x10000: [d for _ in range(100) for d in start(0x20000, second=True)] + END, 0x20000: NOOP * 100 + END}))
    assert met[-1].kind == "limit" and "met before" in met[-1].text and 1100 <= len(met) <= 1300


def test_a_long_batch_that_meets_no_command_twice_is_walked_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.streamer.parser.MOST_AGAIN", 10)
    assert names(road(space({0x10000: NOOP * 100 + END}))) == ["MI_NOOP"] * 100 + ["MI_BATCH_BUFFER_END"]


def test_records_of_short_commands_are_made_once() -> None:
    """The same dwords come again and again; long commands are mostly data."""
    page = layout("STATE_BASE_ADDRESS", 9)
    short, long = pack("STATE_BASE_ADDRESS", general_state_base_address=0x5000), pack("STATE_BASE_ADDRESS", bindless_surface_state_size=3)
    assert (len(short), len(long)) == (16, 19)
    assert record(page, short) is record(page, list(short)) and record(page, long) is not record(page, list(long))
    assert record(page, short) == page.raw(short) and record(page, long) == page.raw(long)
