"""State commands latched by compiled code: how each kind merges, and that nothing else changes by it."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from softgen.bits.catalogue import catalogue, layout, names
from softgen.bits.layout import GENERATIONS
from softgen.device.gpu import COMMANDS, GpuDevice
from softgen.errors import DecodeError, SoftgenError, SpecError, Unsupported
from softgen.memory.store import MemfdBuffer
from softgen.streamer import latch_rules
from softgen.streamer.latch import LatchedState
from softgen.streamer.latch_rules import LatchTable, latch_table, longest
from softgen.streamer.parser import Command
from softgen.trace.work import Work
from softgen.walk_h import WALK_AT_ONCE
from tests.streamer.bench import BATCH, DATA, Bench

LARGE = 0x40_0000


def state(bench: Bench, engine: str = "render") -> LatchedState:
    return bench.gpu.contexts[0, engine].latched


def buffers(*rows: tuple[int, int, int, int]) -> list[dict[str, int]]:
    """VERTEX_BUFFER_STATE: index, address, modify enable, pitch."""
    return [{"vertex_buffer_index": index, "buffer_starting_address": address, "address_modify_enable": modify, "buffer_pitch": pitch}
            for index, address, modify, pitch in rows]  # fmt: skip


# -- how commands merge ------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-VF-16", "BDW-CS-13", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "hsw", "bdw", "skl", "icl"])
def test_vertex_buffers_merge_by_index_and_keep_addresses_that_are_not_modified(gpu: str) -> None:
    """KBL 30187: without Address Modify Enable the previously programmed address is maintained."""
    bench = Bench(gpu)
    bench.run(bench.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=buffers((3, 0x3000, 1, 12), (0, 0x1000, 1, 16))),
              bench.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=buffers((1, 0x2000, 1, 20), (3, 0x9000, 0, 24))))  # fmt: skip
    found = state(bench).by_index("3DSTATE_VERTEX_BUFFERS")
    assert {index: (vb.buffer_starting_address, vb.buffer_pitch) for index, vb in found.items()} == {
        0: (0x1000, 16), 1: (0x2000, 20), 3: (0x3000, 24)}  # fmt: skip
    whole = state(bench)["3DSTATE_VERTEX_BUFFERS"]
    assert [vb.vertex_buffer_index for vb in whole.vertex_buffer] == [0, 1, 3]  # as if one command had said it
    place = state(bench).place("3DSTATE_VERTEX_BUFFERS")  # compiled code reads a buffer's state there, by its index
    assert place is not None and place.size == 4 * place.item_size
    page, dwords = layout("VERTEX_BUFFER_STATE", bench.device.generation.number), state(bench).raw(place.offset, place.size)
    assert [page.unpack(dwords[at:][: place.item_size]).buffer_pitch for at in range(0, place.size, place.item_size)] == [16, 20, 0, 24]


@pytest.mark.behaviour("BDW-VF-16", shows="action")
def test_there_are_33_vertex_buffers() -> None:
    bench = Bench("bdw")
    bench.run(bench.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=buffers(*((index, 0x1000 * (index + 1), 1, 4) for index in range(33)))))
    found = state(bench).by_index("3DSTATE_VERTEX_BUFFERS")
    assert {index: vb.buffer_starting_address for index, vb in found.items()} == {index: 0x1000 * (index + 1) for index in range(33)}


def test_gen45_vertex_buffers_have_no_modify_enable() -> None:
    bench = Bench("g45")
    for address in (0x1000, 0x2000):
        bench.run(bench.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{"vertex_buffer_index": 1, "buffer_starting_address": address}]))
    assert state(bench).by_index("3DSTATE_VERTEX_BUFFERS")[1].buffer_starting_address == 0x2000


@pytest.mark.parametrize("gpu", ["bdw", "skl", "icl"])
def test_instancing_merges_by_vertex_element(gpu: str) -> None:
    """BDW 12077: the index says which vertex element state is modified by the command."""
    bench = Bench(gpu)
    rows = [(5, 7), (0, 3), (5, 9)]
    bench.run(*(bench.pack("3DSTATE_VF_INSTANCING", vertex_element_index=index, instancing_enable=1, instance_data_step_rate=rate)
                for index, rate in rows))  # fmt: skip
    found = state(bench).by_index("3DSTATE_VF_INSTANCING")
    assert {index: element.instance_data_step_rate for index, element in found.items()} == {0: 3, 5: 9}
    assert state(bench)["3DSTATE_VF_INSTANCING"].vertex_element_index == 5  # the last one


@pytest.mark.parametrize("gpu", ["ivb", "skl"])
def test_stream_output_buffers_merge_by_index(gpu: str) -> None:
    bench = Bench(gpu)
    bench.run(*(bench.pack("3DSTATE_SO_BUFFER", so_buffer_index=index, surface_base_address=0x1000 * (index + 1)) for index in (2, 0)))
    found = state(bench).by_index("3DSTATE_SO_BUFFER")
    assert {index: element.surface_base_address for index, element in found.items()} == {0: 0x1000, 2: 0x3000}


def test_a_declaration_list_is_replaced_whole() -> None:
    """BDW 10667-10670: a list says of every stream how many declarations it has; inactive ones have none."""
    bench = Bench()
    entries = [{"stream": [{"register_index": n}]} for n in range(3)]
    bench.run(bench.pack("3DSTATE_SO_DECL_LIST", entry=entries), bench.pack("3DSTATE_SO_DECL_LIST", entry=entries[1:2]))
    (entry,) = state(bench)["3DSTATE_SO_DECL_LIST"].entry
    assert entry.stream[0].register_index == 1


@pytest.mark.parametrize("gpu", ["bdw", "icl"])
def test_pointers_that_are_not_valid_keep_the_last_ones(gpu: str) -> None:
    bench, name = Bench(gpu), "3DSTATE_BLEND_STATE_POINTERS"
    bench.run(bench.pack(name, blend_state_pointer=0x1000, blend_state_pointer_valid=1), bench.pack(name, blend_state_pointer=0x2000))
    assert state(bench)[name].blend_state_pointer == 0x1000 and state(bench)[name].blend_state_pointer_valid == 1
    bench.run(bench.pack(name, blend_state_pointer=0x3000, blend_state_pointer_valid=1))
    assert state(bench)[name].blend_state_pointer == 0x3000


@pytest.mark.parametrize("gpu", ["g45", "ivb", "bdw", "skl", "icl"])
def test_base_addresses_change_only_where_they_are_enabled(gpu: str) -> None:
    bench, name = Bench(gpu), "STATE_BASE_ADDRESS"
    bench.run(bench.pack(name, surface_state_base_address=0x5000, surface_state_base_address_modify_enable=1),
              bench.pack(name, surface_state_base_address=0x7000, general_state_base_address=0x6000,
                         general_state_base_address_modify_enable=1))  # fmt: skip
    assert state(bench).bases == {"surface": 0x5000, "general": 0x6000}


def test_a_shorter_base_address_command_keeps_the_rest() -> None:
    """Gen9 takes 16 dwords as well as 19 (public i965-va): what the short one does not have stays."""
    bench, name = Bench("skl"), "STATE_BASE_ADDRESS"
    bindless = {"bindless_surface_state_base_address": 0x8000, "bindless_surface_state_base_address_modify_enable": 1,
                "bindless_surface_state_size": 5}  # fmt: skip
    short = bench.pack(name, general_state_base_address=0x6000, general_state_base_address_modify_enable=1)
    assert len(bench.pack(name, **bindless)) == 19 and len(short) == 16
    bench.run(bench.pack(name, **bindless), short)
    assert state(bench).bases == {"bindless": 0x8000, "general": 0x6000}


def test_masked_bits_change_only_under_their_mask() -> None:
    bench, name = Bench("icl"), "3DSTATE_3D_MODE"
    bench.run(bench.pack(name, mask_bits=0xFFFF, cross_slice_hashing_mode=3, slice_hashing_table_enable=1),
              bench.pack(name, mask_bits=0x3, cross_slice_hashing_mode=1))  # fmt: skip
    found = state(bench)[name]
    assert (found.cross_slice_hashing_mode, found.slice_hashing_table_enable) == (1, 1)


def test_a_palette_keeps_entries_that_a_shorter_load_does_not_reach() -> None:
    bench, name = Bench(), "3DSTATE_SAMPLER_PALETTE_LOAD0"
    bench.run(bench.pack(name, palette_entry=[{"red": n} for n in (1, 2, 3)]), bench.pack(name, palette_entry=[{"red": 9}]))
    assert [entry.red for entry in state(bench)[name].palette_entry] == [9, 2, 3]


def test_matrices_merge_by_several_fields() -> None:
    bench, name = Bench(), "HCP_QM_STATE"
    keys = list(itertools.product(range(2), range(4), range(3)))
    bench.run(*(bench.pack(name, prediction_type=p, sizeid=s, color_component=c, dc_coefficient=16 * c + 4 * s + p) for p, s, c in keys),
              engine="video")  # fmt: skip
    found = state(bench, "video").by_index(name)
    assert {element.dc_coefficient for element in found.values()} == {16 * c + 4 * s + p for p, s, c in keys} and len(found) == len(keys)


def test_a_command_is_read_once_until_it_comes_again_and_decoded_where_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, read, dwords = Bench(), list[str](), LatchedState.dwords
    monkeypatch.setattr(LatchedState, "dwords", lambda self, name: (read.append(name), dwords(self, name))[1])
    latched, page, records = LatchedState(latch_table(9.0, "render")), layout("3DSTATE_SAMPLE_MASK", 9.0), []
    for mask in (2, 2, 3):
        latched.note(Command(0, 0, 1, page, bench.pack(page.name, sample_mask=mask)))
        records += [latched[page.name], latched.get(page.name), latched[page.name]]
    assert [record.sample_mask for record in records] == [2] * 6 + [3] * 3 and read == [page.name] * 3
    assert len({id(record) for record in records}) == 2


def test_parts_by_index_are_read_once_until_the_command_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, read, parts = Bench(), list[str](), LatchedState._parts
    monkeypatch.setattr(LatchedState, "_parts", lambda self, name: (read.append(name), parts(self, name))[1])
    latched, page = LatchedState(latch_table(9.0, "render")), layout("3DSTATE_VF_INSTANCING", 9.0)
    for rate in (2, 3):
        latched.note(Command(0, 0, 1, page, bench.pack(page.name, vertex_element_index=1, instance_data_step_rate=rate)))
        assert [latched.by_index(page.name)[1].instance_data_step_rate for _ in range(3)] == [rate] * 3
    assert len(read) == 2


def test_what_was_latched_between_two_marks() -> None:
    """Each command by its name, however many there are; nothing between a mark and itself."""
    bench = Bench()
    effects = {name: page.effect for name in names() if name.startswith("3DSTATE_") and (page := catalogue().get(name, 9)) is not None}
    page_names = [name for name, effect in effects.items()
                  if effect is not None and effect.sets_state and not effect.acts_when and name not in COMMANDS][:40]  # fmt: skip
    assert len(page_names) == 40
    bench.run(*(bench.pack(name) for name in page_names))
    latched = state(bench)
    assert len(latched) == len(list(latched)) == 40 and set(latched) == set(page_names)
    before = latched.marks()
    for name in page_names:
        bench.run(bench.pack(name))
        after = latched.marks()
        found = latched.changed(before, after)
        assert found == [name] and latched.changed(before, after) is found  # worked out once: several ask
        assert latched.changed(after, after) == []
        before = after


def test_all_that_is_latched_is_counted() -> None:
    """In compiled code, by a handler, a structure that a pointer leads to, and base addresses that are set as a whole."""
    bench = Bench()
    bench.run(bench.pack("3DSTATE_CLIP"), bench.pack("MI_NOOP"), bench.pack("3DSTATE_CLIP"))
    latched, counts = state(bench), [state(bench).latches]
    bench.run(bench.pack("PIPELINE_SELECT", pipeline_selection=2))
    counts.append(latched.latches)
    page = catalogue().layout("COLOR_CALC_STATE", 9)
    latched.note_structure(page, page.raw([0] * page.dwords))
    counts.append(latched.latches)
    latched.bases = {"dynamic": 0x1000}
    assert [*counts, latched.latches] == [2, 3, 4, 5]


def test_a_command_that_others_have_latched_has_a_place_of_its_own() -> None:
    """Rules and slots belong to the engine; whether something was latched to the context."""
    bench = Bench()
    bench.run(bench.pack("3DSTATE_SAMPLE_MASK", sample_mask=5))
    place = state(bench).place("3DSTATE_SAMPLE_MASK")
    assert place is not None and place.latched and state(bench).raw(place.offset, place.size)[1] == 5
    other = LatchedState(state(bench).table).place("3DSTATE_SAMPLE_MASK")
    assert other == place._replace(latched=False, size=0, length=0, present=0)
    assert state(bench).place("3DSTATE_NOTHING") is None


@pytest.mark.parametrize("selected, name", [(0, "3d"), (1, "media"), (2, "gpgpu"), (3, "")])
def test_the_selected_pipeline_has_a_name(selected: int, name: str) -> None:
    bench = Bench()
    bench.run(bench.pack("PIPELINE_SELECT", pipeline_selection=selected, mask_bits=3))
    assert state(bench).pipeline() == name


def test_bases_by_name() -> None:
    """Addresses that are relative to nothing have no base; one that no command has set is not known."""
    bench = Bench()
    bench.run(bench.pack("STATE_BASE_ADDRESS", dynamic_state_base_address=0x5000, dynamic_state_base_address_modify_enable=1))
    assert [state(bench).base(name) for name in ("", "dynamic", "surface")] == [0, 0x5000, None]


def test_a_copy_is_independent() -> None:
    bench, name = Bench(), "3DSTATE_SAMPLE_MASK"
    bench.run(bench.pack(name, sample_mask=1))
    copied = state(bench).copy()
    bench.run(bench.pack(name, sample_mask=2), bench.pack("3DSTATE_CLIP"))
    assert copied[name].sample_mask == 1 and state(bench)[name].sample_mask == 2
    assert "3DSTATE_CLIP" not in copied and list(copied) == [name] and len(copied) == 1
    with pytest.raises(KeyError):
        copied["3DSTATE_CLIP"]


# -- every page ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_command_page_says_what_the_command_does(gen: float) -> None:
    silent = [name for name in names("command", gen) if layout(name, gen).effect is None]
    assert not silent


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_state_command_has_a_slot_and_is_read_back(gen: float) -> None:
    """Random bits of every state command, met for the first time by a context: the record is that of the command itself."""
    random_bits = random.Random(gen)
    for name in names("command", gen):
        page = layout(name, gen)
        assert page.effect is not None and page.header is not None
        if not page.effect.sets_state:
            continue
        dwords = [random_bits.getrandbits(32) for _ in range(longest(page) if page.maximum is not None else page.dwords)]
        dwords[0] = page.pack()[0] | dwords[0] & page.header.claimed ^ dwords[0]
        for field in page.fields:  # gates open, masks full
            if page.effect.rule == "gates" and any(field.name in other.gates for other in page.fields):
                dwords[field.low // 32] |= 1 << field.low % 32
            if field.name in page.effect.by and page.effect.rule == "mask":
                dwords[field.low // 32] |= field.mask >> 32 * (field.low // 32)
        for group in page.groups:
            for gate in (field for field in group.fields if any(field.name in other.gates for other in group.fields)):
                dwords[(group.start + gate.low) // 32] |= 1 << gate.low % 32
        latched = LatchedState(latch_table(gen, page.engines[0]))
        latched.note(Command(0, 0, 1, page, dwords))
        assert latched[name] == page.raw(dwords), name


def test_what_sets_no_state_is_not_latched() -> None:
    """What no page describes, commands of which nobody says what they do, and commands that act."""
    latched, page = LatchedState(latch_table(9.0, "render")), layout("3DSTATE_VS", 9.0)
    for other in (None, dataclasses.replace(page, effect=None), layout("PIPE_CONTROL", 9.0)):
        latched.note(Command(0, 0, 1, other, page.pack()))
    assert latched.latches == 0
    latched.note(Command(0, 0, 1, page, page.pack(enable=1)))
    assert latched.latches == 1 and latched["3DSTATE_VS"].enable == 1


# -- what latching in bulk must not change ---------------------------------------------------------------------------------


def mixed(bench: Bench) -> list[list[int]]:
    return [bench.pack("3DSTATE_VS"), bench.pack("3DSTATE_CLIP"), bench.store(0, 7), bench.pack("3DSTATE_VS", enable=1),
            bench.pack("MI_NOOP"), bench.pack("3DSTATE_SAMPLE_MASK", sample_mask=3)]  # fmt: skip


def test_counters_and_registers_are_the_same_with_and_without_tracing() -> None:
    """Tracing takes the slow path, one command after another."""
    results = []
    for trace in (None, lambda topic, text: None):
        bench = Bench()
        bench.gpu = GpuDevice(bench.device, clock=itertools.count().__next__, trace=trace)
        bench.run(*mixed(bench))
        latched = {name: tuple(record) for name, record in state(bench).items()}
        results.append((vars(bench.gpu.counters), bench.gpu.registers.values, latched, state(bench).marks()))
    assert results[0] == results[1] and results[0][0]["commands"] == 7


def test_status_registers_name_the_last_command_latched() -> None:
    bench = Bench()
    words = [bench.pack("3DSTATE_VS"), bench.pack("3DSTATE_SAMPLE_MASK"), bench.pack("MI_LOAD_SCAN_LINES_INCL")]
    with pytest.raises(Unsupported, match="MI_LOAD_SCAN_LINES_INCL"):
        bench.run(*words)
    seen = []
    bench.gpu.registers.on_write(0x2068, seen.append)  # IPEHR
    with pytest.raises(Unsupported):
        bench.run(*words)
    assert seen == [words[1][0], words[2][0]]  # of a run of state commands the last


def test_a_malformed_state_command_is_an_error_with_its_place() -> None:
    bench = Bench()
    bench.put(0x13FF8, bench.pack("3DSTATE_VS")[:2])  # the last dwords that are mapped
    bench.put(BATCH, bench.start(0x13FF8))
    with pytest.raises(DecodeError, match=r"3DSTATE_VS at 0x13ff8 .*its length says 9 dwords, memory ends after 2"):
        bench.run()


@pytest.mark.parametrize("dwords", [2, 12])
def test_a_state_command_of_another_length_is_taken_with_what_it_has(dwords: int) -> None:
    bench = Bench()
    words = bench.pack("3DSTATE_VS", enable=1, kernel_start_pointer=0x4000)
    words = [words[0] & ~0xFF | dwords - 2, *words[1:], *[0] * 8][:dwords]
    bench.run(words, bench.store(0, 5))
    assert state(bench)["3DSTATE_VS"].kernel_start_pointer == (0x4000 if dwords > 2 else 0x4000 & 0xFFFFFFFF)
    assert bench.data(1) == [5]


def test_the_time_limit_ends_a_batch_of_state() -> None:
    looks = itertools.count()
    bench = Bench(timed_out=lambda: next(looks) >= 3)
    bench.space.map(LARGE, MemfdBuffer(1 << 16, "large"))
    dwords = bench.pack("3DSTATE_SAMPLE_MASK") * 2000 + bench.pack("MI_BATCH_BUFFER_END")
    bench.put(LARGE, dwords)
    with pytest.raises(SoftgenError, match="time is up at 0x40"):
        bench.gpu.execute(Work("render", bench.space, LARGE))
    assert bench.gpu.counters.commands == 3 * WALK_AT_ONCE


@pytest.mark.parametrize("count, stored", [(WALK_AT_ONCE - 1, 5), (WALK_AT_ONCE, 0), (WALK_AT_ONCE + 1, 0)])
def test_the_time_is_looked_at_after_256_state_commands_whatever_follows(count: int, stored: int) -> None:
    looks = itertools.count()
    bench = Bench(timed_out=lambda: next(looks) >= 1)
    bench.space.write(DATA + 16, b"\x05")
    copy = bench.pack("MI_COPY_MEM_MEM", source_memory_address=DATA + 16, destination_memory_address=DATA)
    with pytest.raises(SoftgenError, match="time is up"):
        bench.run(*[bench.pack("3DSTATE_SAMPLE_MASK")] * count, copy)
    assert WALK_AT_ONCE == 256 and bench.data(1) == [stored]


def test_predication_skips_state_too() -> None:
    bench = Bench()
    never, always = (bench.pack("MI_SET_PREDICATE", predicate_enable=value) for value in (0, 15))
    bench.run(always, bench.pack("3DSTATE_SAMPLE_MASK", sample_mask=1), never, bench.pack("3DSTATE_CLIP"))
    assert set(state(bench)) == {"3DSTATE_CLIP"}


def test_a_batch_that_overwrites_its_own_state_is_read_again() -> None:
    bench, mask = Bench(), bench_mask()
    store = bench.store(0, 0)
    at = BATCH + 4 * len(store) + 4
    bench.run(bench.store(at - DATA, 0x55), mask)
    assert state(bench)["3DSTATE_SAMPLE_MASK"].sample_mask == 0x55


def bench_mask() -> list[int]:
    return Bench().pack("3DSTATE_SAMPLE_MASK", sample_mask=1)


def test_contexts_made_before_a_command_was_first_met_have_room_for_it() -> None:
    """Slots are given out as commands are met: an older context's arrays grow."""
    table = LatchTable(9.0, "render")
    old, new = LatchedState(table), LatchedState(table)
    pages = [layout(name, 9.0) for name in ("3DSTATE_VS", "3DSTATE_CLIP", "3DSTATE_VERTEX_ELEMENTS")]
    old.note(Command(0, 0, 1, pages[0], pages[0].pack(enable=1)))
    for page in pages:
        new.note(Command(0, 0, 1, page, page.pack()))
    old.note(Command(0, 0, 1, pages[2], pages[2].pack(vertex_element=[{"valid": 1}])))
    assert old["3DSTATE_VS"].enable == 1 and old["3DSTATE_VERTEX_ELEMENTS"].vertex_element[0].valid == 1
    assert "3DSTATE_CLIP" not in old


def test_an_index_of_too_many_bits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latch_rules, "INDEX_BITS", 5)
    with pytest.raises(SpecError, match="3DSTATE_VF_INSTANCING merges by 6 bits"):
        LatchTable(9.0, "render").rule_of(catalogue().layout("3DSTATE_VF_INSTANCING", 9.0))


@pytest.mark.parametrize("gen", GENERATIONS)
def test_the_length_of_a_command_is_in_all_bits_of_its_field_and_no_others(gen: float) -> None:
    table = LatchTable(gen, "render")
    for header in range(0x6000, 0x8000):
        table.add(header << 16)
    for name, number in table.numbers.items():
        rule, header = table.rules[number], table.layouts[number].header
        assert header is not None
        bits = range(header.length[1], header.length[0] + 1) if header.length else range(0)
        assert rule.length_mask << rule.length_low == sum(1 << bit for bit in bits), name
