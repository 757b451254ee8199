"""Buffers of stream output: their commands and registers, overflow, declarations, and draws that follow one another."""

from __future__ import annotations

import struct
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from softgen.errors import DecodeError, GpuFault
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.three_d.draw.draw_cache import RecordCache
from tests.three_d.own_draw import DATA, OwnDraw
from tests.three_d.stream_out.streaming import (
    FILL,
    GPUS,
    LATER,
    OFFSETS,
    Buffer,
    Declaration,
    Streaming,
    check,
    corners,
    words_of,
)

HEADER, POSITION, ATTRIBUTE = range(3)
POINTS = 1
ONE = {0: [Declaration(0, ATTRIBUTE, 0xF), Declaration(0, POSITION, 0x3)]}
TWO = {0: [Declaration(0, ATTRIBUTE, 0xF), Declaration(1, POSITION, 0x3)]}
LISTS = [(n, n + 1, n + 2) for n in range(0, 15, 3)]
SAVED = DATA + 0xF000  # where offsets are in memory
MASKS = [mask for mask in range(16) if mask in (0, 1, 2, 3, 4, 6, 7, 8, 12, 14, 15)]  # contiguous


# -- declarations ------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-SOL-09", "KBL-SOL-11", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", ["ivb", "kbl"])
@pytest.mark.parametrize("mask", MASKS)
def test_components_are_appended(gpu: str, mask: int) -> None:
    """One to four of a register; none are no operation, so that what follows stands in their place."""
    declarations = [Declaration(0, HEADER, 0x8), Declaration(0, ATTRIBUTE, mask), Declaration(0, POSITION, 0x2)]
    check(Streaming(gpu, {0: declarations}, {0: Buffer(28)}, corners(6)).run(), LISTS[:2])


@pytest.mark.behaviour("KBL-SOL-10", "KBL-SOL-11", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", ["hsw", "icl"])
@pytest.mark.parametrize("mask", [0, 1, 3, 7, 15])
def test_holes_stay_as_they_are(gpu: str, mask: int) -> None:
    """None to four dwords; the register of a hole does not matter, nor does what is left of the pitch."""
    declarations = [Declaration(0, HEADER, 0x8), Declaration(0, 63, mask, hole=True), Declaration(0, POSITION, 0x2)]
    streamed = Streaming(gpu, {0: declarations}, {0: Buffer(28)}, corners(6)).run()
    check(streamed, LISTS[:2])
    assert streamed.words(0)[1 : 1 + mask.bit_count()].tolist() == [FILL] * mask.bit_count() and not streamed.drawn.remarks


@pytest.mark.parametrize(("mask", "hole", "text"), [(0xD, False, "component_mask 0xd, which is not contiguous"),
                                                    (0x2, True, "hole_flag with component_mask 0x2")])  # fmt: skip
def test_masks_that_none_may_have(mask: int, hole: bool, text: str) -> None:
    streamed = Streaming("kbl", {0: [Declaration(0, ATTRIBUTE, mask, hole), Declaration(0, HEADER, 0x8)]}, {0: Buffer(16)}).run()
    check(streamed, LISTS[:2])
    assert any(text in remark for remark in streamed.drawn.remarks)


@pytest.mark.behaviour("BDW-SOL-08", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_a_stream_has_up_to_128_entries(gpu: str) -> None:
    """Entries of longer streams beside it are not its own."""
    whole = [Declaration(0, POSITION + n // 4 % 2, 1 << n % 4) for n in range(128)]
    check(Streaming(gpu, {0: whole}, {0: Buffer(512, 0xC00)}, corners(6)).run(), LISTS[:2])
    other = Streaming(gpu, {0: whole[:3], 1: [Declaration(1, HEADER, 0xF)] * 5}, {0: Buffer(12), 1: Buffer(80)}, corners(6)).run()
    assert set(other.words(1)) == {FILL} and other.counts(1) == (0, 0)
    assert other.words(0)[:3].tolist() == words_of(corners(1)[0])[4:7].tolist() and other.offset(0) == 72
    with patch.dict(other.streaming.list, {"num_entries": [{"count": 2}, {}, {}, {}]}):
        short = other.streaming.run()
    assert short.words(0)[:4].tolist() == [*words_of(corners(1)[0])[4:6], FILL, words_of(corners(2)[1])[4]]


@pytest.mark.behaviour("BDW-SOL-08", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_a_list_may_be_empty(gpu: str) -> None:
    streamed = Streaming(gpu, {0: []}, {0: Buffer(16)}).run()
    assert set(streamed.words(0)) == {FILL} and streamed.offset(0) == 0 and streamed.drawn.lit and not streamed.drawn.remarks


@pytest.mark.parametrize("count", [4, 129])
def test_more_entries_than_there_are(count: int) -> None:
    held = Streaming("kbl", {0: [Declaration(0, ATTRIBUTE, 1)] * (3 if count == 4 else count)}, {0: Buffer(16)})
    held.list = {"num_entries": [{"count": count}, {}, {}, {}]}
    with pytest.raises(DecodeError, match=f"3DSTATE_SO_DECL_LIST: num_entries {count} of stream 0"):
        held.run()


@pytest.mark.behaviour("BDW-SOL-12", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("offset", "length"), [(0, 1), (0, 2), (1, 1)])
def test_registers_count_from_the_read_offset(gpu: str, offset: int, length: int) -> None:
    """As many as the read length says; those past it hold zeros here, and somebody is told."""
    declarations = [Declaration(0, n, 0xF) for n in range(4)]
    unit = {"stream": [{"vertex_read_offset": offset, "vertex_read_length": length - 1}] * 4}
    streamed = Streaming(gpu, {0: declarations}, {0: Buffer(64)}, corners(3), unit=unit).run()
    for n, entry in enumerate(corners(3)):
        read = words_of(entry)[8 * offset : 8 * (offset + length)].tolist()
        assert streamed.words(0)[16 * n : 16 * n + 16].tolist() == [*read, *[0] * (16 - len(read))]
    assert any("register_index" in remark for remark in streamed.drawn.remarks) is (length < 2)


# -- overflow ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-SOL-04", "BDW-SOL-05", "BDW-SOL-14", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("sizes", [(0x100, 24 * 8), (16 * 9, 0x100), (16 * 9 - 4, 0x100), (16 * 6 + 8, 24 * 9 - 4), (16 * 2, 0x100)])
def test_objects_are_written_whole_or_not_at_all(gpu: str, sizes: tuple[int, int]) -> None:
    """To all buffers of their stream: one without room for all vertices keeps them from the other, too."""
    buffers = {0: Buffer(16, sizes[0], address=DATA + 4), 1: Buffer(24, sizes[1], address=DATA + 0x1004)}
    check(Streaming(gpu, TWO, buffers, corners(15), more={"patch": {DATA: struct.pack("<I", FILL) * 0x800}}).run(), LISTS)


@pytest.mark.behaviour("BDW-SOL-04", "BDW-SOL-06", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("unbound", ["disabled", "without a pitch", "never set"])
def test_buffers_that_are_not_bound_have_no_room(gpu: str, unbound: str) -> None:
    """Nothing is written to the other buffer of the stream, and primitives count as ones that need room."""
    buffers = {0: Buffer(16), 1: Buffer(0 if unbound == "without a pitch" else 8, enable=unbound != "disabled", address=0x100)}
    streaming = Streaming(gpu, TWO, buffers, corners(6))
    if unbound == "never set":
        streaming.buffers = {0: Buffer(16)}
    streamed = streaming.run()
    assert set(streamed.words(0)) == {FILL} and streamed.counts(0) == (0, 2) and streamed.offset(0) == 0
    streaming.declarations, streaming.buffers = ONE, {**streaming.buffers, 0: Buffer(24)}
    assert streaming.run().counts(0) == (2, 2), "a buffer that no stream selects does not matter"


@pytest.mark.behaviour("BDW-SOL-14", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_counters_stand_still_without_statistics(gpu: str) -> None:
    streamed = Streaming(gpu, ONE, {0: Buffer(24, 24 * 4)}, unit={"statistics_enable": 0}).run()
    assert streamed.counts(0) == (0, 0) and streamed.offset(0) == 72


def test_nothing_is_written_past_the_end_by_a_pitch_that_is_too_small() -> None:
    """What a vertex writes counts, where that is more."""
    streamed = Streaming("kbl", ONE, {0: Buffer(16, 16 * 6 + 4)}, corners(6)).run()
    assert streamed.counts(0) == (1, 2) and set(streamed.words(0)[16 * 2 + 24 >> 2 :]) == {FILL}


def test_a_buffer_that_no_select_names() -> None:
    selects = {"stream_to_buffer_selects": [{"buffer_mask": 1}, {}, {}, {}]}
    streamed = Streaming("kbl", TWO, {0: Buffer(16), 1: Buffer(8)}, list=selects).run()
    check(streamed, LISTS[:2])
    assert any("stream_to_buffer_selects 0x1 of stream 0, which writes to buffer 1" in remark for remark in streamed.drawn.remarks)


# -- offsets -----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-SOL-07", shows="action")
@pytest.mark.covering(2)
@pytest.mark.parametrize("gpu", LATER)
@pytest.mark.parametrize("enable", [True, False])
@pytest.mark.parametrize(("fields", "start"), [
    ({}, 24), ({"stream_offset": 72}, 24), ({"stream_offset_write_enable": 1, "stream_offset": 72}, 72),
    ({"stream_offset_write_enable": 1, "stream_offset": 0}, 0),
    ({"stream_offset_write_enable": 1, "stream_offset": 0xFFFFFFFF, "stream_output_buffer_offset_address_enable": 1}, 48),
])  # fmt: skip
def test_offsets_come_from_the_command_or_memory(gpu: str, enable: bool, fields: dict[str, Any], start: int) -> None:
    """Whether the buffer is enabled or not; after the draw it is where the command says, if it says so."""
    streaming = Streaming(gpu, ONE, {0: Buffer(24, enable=enable, offset=24)}, corners(3))
    draw = streaming.draw()
    patched = {**draw.patch, SAVED: struct.pack("<2I", 48, 7)}
    offsets = streaming.offsets(draw)
    fields = {**fields, "stream_output_buffer_offset_address": SAVED}
    draw.patch, draw.before = patched, [offsets, streaming.buffer(draw, 0, **fields), *draw.before[2:]]
    drawn = draw.run()
    end = start + 72 * enable
    assert drawn.gpu.read_register(OFFSETS) == end
    saved = end if "stream_output_buffer_offset_address_enable" in fields else 48
    assert struct.unpack("<2I", drawn.space.read(SAVED, 8)) == (saved, 7)
    if enable:
        assert np.frombuffer(drawn.space.read(DATA + start, 16), np.uint32).tolist() == words_of(corners(1)[0])[8:12].tolist()


def test_an_offset_from_memory_without_an_address() -> None:
    streaming = Streaming("kbl", ONE, {0: Buffer(24, offset=24, more={"stream_offset_write_enable": 1, "stream_offset": 0xFFFFFFFF})})
    streamed = streaming.run()
    check(streamed, LISTS[:2])
    assert any("stream_output_buffer_offset_address_enable 0" in remark for remark in streamed.drawn.remarks)


@pytest.mark.parametrize("gpu", GPUS)
def test_a_draw_ends_where_the_buffer_does(gpu: str) -> None:
    """Auto-draw: what was written is drawn, as many vertices as the write offset says."""
    streaming = Streaming(gpu, {0: [Declaration(0, n, 0xF) for n in range(3)]}, {0: Buffer(48), 1: Buffer(48)}, corners(7),
                          primitives=[{}, {"end_offset_enable": 1, "vertex_count_per_instance": 0}])  # fmt: skip
    draw = streaming.draw()
    buffer = {"buffer_pitch": 48, "buffer_starting_address": DATA, "buffer_size": 0x200, "address_modify_enable": 1}
    draw.between = [
        draw.pack("MI_STORE_REGISTER_MEM", register_address=OFFSETS, memory_address=SAVED),
        draw.pack("MI_LOAD_REGISTER_MEM", register_address=0x2420, memory_address=SAVED),  # 3DPRIM_END_OFFSET
        streaming.offsets(draw), streaming.buffer(draw, 0, surface_base_address=DATA + 0x1000, surface_end_address=DATA + 0x1200)
        if streaming.early else streaming.buffer(draw, 0, surface_base_address=DATA + 0x1000),
        draw.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[buffer]),
    ]  # fmt: skip
    drawn = draw.run()
    first, second = (drawn.space.read(DATA + at, 0x140) for at in (0, 0x1000))
    assert first == second and first[: 6 * 48] == b"".join(corners(6)) and drawn.gpu.read_register(OFFSETS) == 6 * 48


# -- one draw after another --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", GPUS)
def test_a_record_follows_buffers(gpu: str) -> None:
    """Draws go on where the one before ended; with other addresses, sizes and offsets the record is the same."""
    streaming = Streaming(gpu, ONE, {0: Buffer(24, 24 * 6 + 4)}, corners(3), primitives=[{}] * 3)
    draw = streaming.draw()
    plain = draw.run()
    assert plain.gpu.read_register(OFFSETS) == 24 * 6 and plain.gpu.read_register(0x5200) == 2
    moved = {"surface_base_address": DATA + 0x1100, **({"surface_end_address": DATA + 0x1200} if streaming.early else {})}
    draw.between = [draw.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": OFFSETS, "data_dword": 12}]),
                    streaming.buffer(draw, 0, **moved)]  # fmt: skip
    made: list[Any] = []

    def add(cache: RecordCache, *given: Any) -> Any:
        made.append(held := added(cache, *given))
        return held

    added = RecordCache.add
    with patch.object(RecordCache, "add", add):
        drawn = draw.run()
    assert len(made) == 1 and made[0] is not None
    wanted = words_of(corners(1)[0])[[8, 9, 10, 11, 4, 5]].tobytes()
    assert all(drawn.space.read(at, 24) == wanted for at in (DATA, DATA + 0x110C))
    assert drawn.gpu.read_register(OFFSETS) == 12 + 72 and drawn.gpu.read_register(0x5200) == 3


@pytest.mark.parametrize("change", ["hole", "pitch", "reorder"])
def test_other_declarations_make_another_record(change: str) -> None:
    topology = 5
    streaming = Streaming("kbl", ONE, {0: Buffer(24)}, corners(4), topology, primitives=[{}, {}])
    draw = streaming.draw()
    declarations = {0: [Declaration(0, 0, 0x1, True), *ONE[0]]} if change == "hole" else ONE
    other = Streaming("kbl", declarations, {0: Buffer(28 if change == "pitch" else 24)}, corners(4), topology,
                      {"reorder_mode": change == "reorder"})  # fmt: skip
    own = other.draw()
    draw.between = [*own.before, own.pack("3DSTATE_STREAMOUT", **own.fields("3DSTATE_STREAMOUT"))]
    drawn = draw.run()
    assert drawn.space.read(DATA, 0x200) != streaming.run().drawn.space.read(DATA, 0x200)
    alone = other.run()
    again = np.frombuffer(drawn.space.read(DATA, 0x200), np.uint32)
    differ = alone.words(0)[: 0x200 // 4] != FILL
    assert (again[differ] == alone.words(0)[: 0x200 // 4][differ]).all()


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", ["ivb", "kbl"])
def test_a_buffer_that_is_not_mapped(gpu: str) -> None:
    with pytest.raises(GpuFault, match="stream output") as found:
        Streaming(gpu, ONE, {0: Buffer(24, address=0x7000_0000)}, more={"patch": {}}).run()
    assert found.value.address == 0x7000_0000


def test_a_buffer_across_four_gigabytes() -> None:
    """Parts of the address space are elsewhere in host memory."""
    start, plain = (1 << 32) - 0x28, OwnDraw.memory

    def mapped(draw: OwnDraw) -> AddressSpace:
        space = plain(draw)
        for at in ((1 << 32) - 0x1000, 1 << 32):
            space.map(at, MemfdBuffer(0x1000))
        return space

    streaming = Streaming("kbl", {0: [Declaration(0, ATTRIBUTE, 0xF), Declaration(0, POSITION, 0xF)]}, {0: Buffer(32, address=start)},
                          corners(3), POINTS, more={"patch": {}})  # fmt: skip
    with patch.object(OwnDraw, "memory", mapped):
        drawn = streaming.run()
    wanted = [dword for entry in corners(3) for dword in (*words_of(entry)[8:12], *words_of(entry)[4:8])]
    assert np.frombuffer(drawn.drawn.space.read(start, 96), np.uint32).tolist() == wanted
