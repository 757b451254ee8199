"""Pointers followed to structures, kernels and data, on memory made from pages."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.bits.catalogue import catalogue, layout
from softgen.bits.generation import device, generations
from softgen.inspect.decode import kernels
from softgen.inspect.decode.indirect_state import (
    CommandRegister,
    Found,
    IndirectData,
    IndirectKernel,
    IndirectPointer,
    IndirectState,
    IndirectStateDecoder,
    count,
    data_size,
    in_use,
    pointers,
)
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.latch import LatchedState
from softgen.streamer.latch_rules import latch_table
from softgen.streamer.parser import Command

GENERAL, SURFACE, DYNAMIC, INSTRUCTION = 0, 0x100000, 0x200000, 0x300000


class Bench:
    """A space with one heap of 64 KiB at each base, and a context that was told where they are."""

    def __init__(self, gpu: str = "kbl") -> None:
        self.generation = device(gpu).generation
        self.space = AddressSpace("test", self.generation.address_bits)
        for base in (SURFACE, DYNAMIC, INSTRUCTION):
            self.space.map(base, MemfdBuffer(0x10000))
        self.context = LatchedState(latch_table(self.generation.number, "render"))
        self.context.bases = {"general": GENERAL, "surface": SURFACE, "dynamic": DYNAMIC, "instruction": INSTRUCTION}

    def put(self, address: int, name: str, **values: Any) -> None:
        dwords = layout(name, self.generation.number).pack(**values)
        for i, dword in enumerate(dwords):
            self.space.write32(address + 4 * i, dword)

    def command(self, name: str, address: int = 0x40, **values: Any) -> Command:
        page = layout(name, self.generation.number)
        return Command(0, address, 1, page, page.pack(**values))

    def follow(self, name: str, **values: Any) -> list[Found]:
        command = self.command(name, **values)
        self.context.note(command)
        return list(IndirectStateDecoder(self.generation, "render", self.space).follow(command, self.context))


@pytest.mark.parametrize("gen", generations())
def test_no_structure_leads_to_another_of_its_kind(gen: float) -> None:
    """Pointers are followed as far as they lead."""
    pages = {name: catalogue().layout(name, gen) for name in catalogue().names(gen=gen)}
    leads = {name: {pointer.field.type.target for pointer in pointers(page)} for name, page in pages.items()}
    leads["RENDER_SURFACE_STATE"] |= leads.get("MEDIA_SURFACE_STATE", set())  # another form of it
    while ends := [name for name, targets in leads.items() if not targets & set(leads)]:
        for name in ends:
            del leads[name]
    assert not leads


def test_a_kernel_counts_from_the_instruction_base() -> None:
    (found,) = Bench().follow("3DSTATE_VS", kernel_start_pointer=0x1000, enable=1)
    assert isinstance(found, IndirectKernel)
    assert (found.address, found.stage, found.by, found.problem) == (INSTRUCTION + 0x1000, "vs", 0x40, "")


def test_addresses_wrap_at_the_end_of_the_space() -> None:
    bench = Bench()
    bench.context.bases["instruction"] = (1 << 48) - 0x1000
    (found,) = bench.follow("3DSTATE_VS", kernel_start_pointer=INSTRUCTION + 0x2000, enable=1)
    assert isinstance(found, IndirectKernel) and (found.address, found.problem) == (INSTRUCTION + 0x1000, "")


def test_a_unit_that_is_off_has_no_kernel() -> None:
    assert Bench().follow("3DSTATE_VS", kernel_start_pointer=0x1000) == []


def test_a_kernel_nowhere_is_told() -> None:
    (found,) = Bench().follow("3DSTATE_VS", kernel_start_pointer=0x800000, enable=1)
    assert isinstance(found, IndirectKernel) and found.problem == "points to 0xb00000, which is not mapped"


WIDTHS = [((8,), [0]), ((16,), [0]), ((8, 16), [0, 2]), ((8, 16, 32), [0, 1, 2]), ((16, 32), [1, 2]), ((), [])]


@pytest.mark.parametrize("widths, kernels", WIDTHS)
def test_pixel_kernels_by_dispatch_width(widths: tuple[int, ...], kernels: list[int]) -> None:
    on = {f"{width}_pixel_dispatch_enable": 1 for width in widths}
    starts = {f"kernel_start_pointer_{i}": 0x1000 * (i + 1) for i in range(3)}
    names = [f.name for f in layout("3DSTATE_PS", 9).fields]
    starts = {name if name in names else name.removesuffix("_0"): value for name, value in starts.items()}
    found = Bench().follow("3DSTATE_PS", **on, **starts)
    assert [f.address - INSTRUCTION for f in found if isinstance(f, IndirectKernel)] == [0x1000 * (i + 1) for i in kernels]


def test_a_binding_table_leads_to_surfaces() -> None:
    bench = Bench()
    for i, at in enumerate((0x400, 0x440)):
        bench.put(SURFACE + 0x80 + 4 * i, "BINDING_TABLE_STATE", surface_state_pointer=at)
        bench.put(SURFACE + at, "RENDER_SURFACE_STATE", width=i + 10)
    bench.context.note(bench.command("3DSTATE_PS", binding_table_entry_count=2))
    found = bench.follow("3DSTATE_BINDING_TABLE_POINTERS_PS", pointer_to_binding_table=0x80)
    shown = [(f.layout.name, f.address - SURFACE, f.certain) for f in found if isinstance(f, IndirectState)]
    assert shown == [("BINDING_TABLE_STATE", 0x80, True), ("RENDER_SURFACE_STATE", 0x400, True),
                     ("BINDING_TABLE_STATE", 0x84, True), ("RENDER_SURFACE_STATE", 0x440, True)]  # fmt: skip


def test_entries_of_a_table_nobody_counted_are_guessed_while_they_lead_to_surfaces() -> None:
    bench = Bench()
    for i, at in enumerate((0x400, 0x440, 0x80000)):  # the last one leads out of the heap
        bench.put(SURFACE + 0x80 + 4 * i, "BINDING_TABLE_STATE", surface_state_pointer=at)
    for at in (0x400, 0x440):
        bench.put(SURFACE + at, "RENDER_SURFACE_STATE", width=10)
    found = bench.follow("3DSTATE_BINDING_TABLE_POINTERS_PS", pointer_to_binding_table=0x80)
    shown = [(f.address - SURFACE, f.certain) for f in found if isinstance(f, IndirectState)]
    assert shown == [(0x80, False), (0x400, False), (0x84, False), (0x440, False)]


def test_a_binding_table_in_the_pool_counts_from_the_pool() -> None:
    bench = Bench("icl")
    bench.put(SURFACE + 0x2000 + 0x100, "BINDING_TABLE_STATE", surface_state_pointer=0x400)
    bench.context.note(bench.command("3DSTATE_PS", binding_table_entry_count=1))
    pool = bench.command("3DSTATE_BINDING_TABLE_POOL_ALLOC", binding_table_pool_base_address=SURFACE + 0x2000, binding_table_pool_enable=1)
    bench.context.note(pool)
    found = bench.follow("3DSTATE_BINDING_TABLE_POINTERS_PS", pointer_to_binding_table=0x20)
    assert found[0].address == SURFACE + 0x2100  # type: ignore[union-attr]


@pytest.mark.parametrize("counted, number", [(0, 1), (1, 4), (2, 8), (3, 12), (4, 16), (5, 16), (7, 16)])
def test_samplers_are_counted_in_fours_up_to_sixteen(counted: int, number: int) -> None:
    """Sampler Count: how many to prefetch, from 1-4 to 13-16; larger ones are reserved."""
    bench = Bench()
    for index in range(20):
        bench.put(DYNAMIC + 0x80 + 16 * index, "SAMPLER_STATE", mag_mode_filter=1)
    bench.context.note(bench.command("3DSTATE_PS", sampler_count=counted))
    found = bench.follow("3DSTATE_SAMPLER_STATE_POINTERS_PS", pointer_to_sampler_state=0x80)
    assert [(f.layout.name, f.address - DYNAMIC, f.certain) for f in found if isinstance(f, IndirectState)] == [
        ("SAMPLER_STATE", 0x80 + 16 * index, False) for index in range(number)]  # fmt: skip


@pytest.mark.parametrize("name, field, values, before, expected", [
    ("3DSTATE_CC_STATE_POINTERS", "color_calc_state_pointer", {}, {}, (1, 1)),
    ("3DSTATE_SAMPLER_STATE_POINTERS_PS", "pointer_to_sampler_state", {}, {}, (1, 0)),
    ("3DSTATE_SAMPLER_STATE_POINTERS_PS", "pointer_to_sampler_state", {}, {"3DSTATE_PS": {"sampler_count": 3}}, (12, 0)),
    ("3DSTATE_SAMPLER_STATE_POINTERS_VS", "pointer_to_sampler_state", {}, {"3DSTATE_PS": {"sampler_count": 3}}, (1, 0)),
    ("3DSTATE_BINDING_TABLE_POINTERS_PS", "pointer_to_binding_table", {}, {}, (32, 0)),
    ("3DSTATE_BINDING_TABLE_POINTERS_PS", "pointer_to_binding_table", {}, {"3DSTATE_PS": {"binding_table_entry_count": 5}}, (5, 5)),
    ("3DSTATE_BINDING_TABLE_POINTERS_PS", "pointer_to_binding_table", {}, {"3DSTATE_PS": {"binding_table_entry_count": 255}}, (255, 255)),
    ("INTERFACE_DESCRIPTOR_DATA", "binding_table_pointer", {"binding_table_entry_count": 5}, {}, (32, 5)),
    ("INTERFACE_DESCRIPTOR_DATA", "sampler_state_pointer", {"sampler_count": 2}, {}, (8, 0)),
    ("3DSTATE_SCISSOR_STATE_POINTERS", "scissor_rect_pointer", {}, {}, (1, 1)),
    ("3DSTATE_SCISSOR_STATE_POINTERS", "scissor_rect_pointer", {}, {"3DSTATE_CLIP": {"maximum_vp_index": 15}}, (16, 16)),
    *(("MEDIA_INTERFACE_DESCRIPTOR_LOAD", "interface_descriptor_data_start_address",
       {"interface_descriptor_total_length": length}, {}, found)
      for length, found in ((0, (1, 0)), (31, (1, 0)), (32, (1, 1)), (96, (3, 1)))),
])  # fmt: skip
def test_structures_that_may_and_that_must_be_there(name: str, field: str, values: dict[str, int],
                                                    before: dict[str, dict[str, int]], expected: tuple[int, int]) -> None:  # fmt: skip
    bench, page = Bench(), layout(name, 9)
    for command, fields in before.items():
        bench.context.note(bench.command(command, **fields))
    record = page.raw(page.pack(**values))
    assert count(IndirectPointer(page, page.field(field), record, record, 0, 0), bench.context) == expected


def test_viewports_are_as_many_as_clip_says() -> None:
    bench = Bench()
    bench.context.note(bench.command("3DSTATE_CLIP", maximum_vp_index=2))
    name = next(f.name for f in layout("3DSTATE_VIEWPORT_STATE_POINTERS_CC", 9).fields)
    found = bench.follow("3DSTATE_VIEWPORT_STATE_POINTERS_CC", **{name: 0x100})
    assert [f.layout.name for f in found if isinstance(f, IndirectState)] == ["CC_VIEWPORT"] * 3


def test_vertex_data_and_its_size() -> None:
    buffers = [{"buffer_starting_address": DYNAMIC, "buffer_size": 48, "address_modify_enable": 1}]
    (found,) = Bench().follow("3DSTATE_VERTEX_BUFFERS", vertex_buffer=buffers)
    assert isinstance(found, IndirectData) and (found.size, len(found.dwords)) == (48, 12)


def test_constants_by_their_read_length() -> None:
    lengths, pointers = [{"length": 2}, {"length": 0}], [{"pointer": DYNAMIC + 0x40}, {"pointer": DYNAMIC}]
    (found,) = Bench().follow("3DSTATE_CONSTANT_VS", read_length=lengths, constant_buffer=pointers)
    assert isinstance(found, IndirectData) and (found.address, found.size) == (DYNAMIC + 0x40, 64)


def test_data_whose_size_nobody_says_is_not_shown() -> None:
    page = layout("MI_STORE_DATA_IMM", 9)
    record = page.raw(page.pack())
    assert data_size(IndirectPointer(page, page.fields[0], record, record, 0, 0)) == 0


def test_constant_buffer_0_may_count_from_the_dynamic_base() -> None:
    (found,) = Bench().follow("3DSTATE_CONSTANT_VS", read_length=[{"length": 1}], constant_buffer=[{"pointer": 0x40}])
    assert isinstance(found, IndirectData) and found.address == DYNAMIC + 0x40


def test_interface_descriptors_lead_to_kernels_and_tables() -> None:
    bench = Bench()
    bench.put(DYNAMIC + 0x40, "INTERFACE_DESCRIPTOR_DATA", kernel_start_pointer=0x2000)
    load = {"interface_descriptor_total_length": 32, "interface_descriptor_data_start_address": 0x40}
    found = bench.follow("MEDIA_INTERFACE_DESCRIPTOR_LOAD", **load)
    assert [f.layout.name for f in found if isinstance(f, IndirectState)][:1] == ["INTERFACE_DESCRIPTOR_DATA"]
    assert [f.address for f in found if isinstance(f, IndirectKernel)] == [INSTRUCTION + 0x2000]


def test_interface_descriptors_are_as_many_as_their_length_says() -> None:
    """The first is there; drivers load the whole heap, filled or not."""
    bench = Bench()
    for number in range(3):
        bench.put(DYNAMIC + 0x40 + 32 * number, "INTERFACE_DESCRIPTOR_DATA", kernel_start_pointer=0x2000 + 0x100 * number)
    load = {"interface_descriptor_total_length": 64, "interface_descriptor_data_start_address": 0x40}
    found = [f for f in bench.follow("MEDIA_INTERFACE_DESCRIPTOR_LOAD", **load) if isinstance(f, IndirectState)]
    descriptors = [f for f in found if f.layout.name == "INTERFACE_DESCRIPTOR_DATA"]
    assert [(f.address - DYNAMIC, f.certain) for f in descriptors] == [(0x40, True), (0x60, False)]


def test_what_is_no_code_is_a_kernel_without_instructions() -> None:
    bench = Bench()
    (kernel,) = bench.follow("3DSTATE_VS", kernel_start_pointer=0x1000, enable=1)
    assert isinstance(kernel, IndirectKernel)
    found = kernels.read(bench.space, kernel, 9.0)
    assert (found.code, found.ended, found.problem) == (b"", False, "there is no instruction at its start")


def test_gen45_unit_state() -> None:
    bench = Bench("g45")
    bench.context.bases = {"general": DYNAMIC, "surface": SURFACE}
    bench.put(DYNAMIC + 0x40, "VS_STATE", kernel_start_pointer=0x2000, enable=1)
    found = bench.follow("3DSTATE_PIPELINED_POINTERS", pointer_to_vs_state=0x40)
    assert [f.layout.name for f in found if isinstance(f, IndirectState)][:1] == ["VS_STATE"]
    assert [(f.address, f.stage) for f in found if isinstance(f, IndirectKernel)][:1] == [(DYNAMIC + 0x2000, "vs")]


def test_a_base_nobody_told_is_guessed_only_when_one_part_fits() -> None:
    bench = Bench()
    bench.context.bases = {}
    nop = 0x7E
    bench.space.write32(INSTRUCTION, nop)
    assert [f.address for f in bench.follow("3DSTATE_VS", kernel_start_pointer=INSTRUCTION, enable=1)] == [INSTRUCTION]  # type: ignore[union-attr]
    bench.space.map(0x5_0000_0000 + INSTRUCTION, MemfdBuffer(0x1000))  # zeros are no code
    assert len(bench.follow("3DSTATE_VS", kernel_start_pointer=INSTRUCTION, enable=1)) == 1
    bench.space.write32(0x5_0000_0000 + INSTRUCTION, nop)
    assert bench.follow("3DSTATE_VS", kernel_start_pointer=INSTRUCTION, enable=1) == []


def test_an_empty_entry_of_a_binding_table_is_not_taken_for_a_surface() -> None:
    bench = Bench()
    bench.put(SURFACE + 0x84, "BINDING_TABLE_STATE", surface_state_pointer=0x400)
    bench.space.write64(SURFACE + 8, 1 << 63 | 1 << 30)  # what stands at offset 0 is no surface of either form: reserved bits are set
    bench.context.note(bench.command("3DSTATE_PS", binding_table_entry_count=2))
    found = bench.follow("3DSTATE_BINDING_TABLE_POINTERS_PS", pointer_to_binding_table=0x80)
    assert [f.address - SURFACE for f in found if isinstance(f, IndirectState)] == [0x80, 0x84, 0x400]


def test_registers_are_named_and_their_values_taken_apart() -> None:
    (found,) = Bench().follow("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x20D8, "data_dword": 0x100010}])
    assert isinstance(found, CommandRegister) and found.label == "CS_DEBUG_MODE2"
    assert found.layout.raw(found.dwords).constant_buffer_address_offset_disable == 1
    relative = Bench("icl").follow("MI_LOAD_REGISTER_IMM", add_cs_mmio_start_offset=1, entry=[{"register_offset": 0x608, "data_dword": 1}])
    assert [f.label for f in relative if isinstance(f, CommandRegister)] == ["CS_GPR[1]"]


def test_state_base_address_sets_only_what_it_enables() -> None:
    bench = Bench()
    dynamic = {"dynamic_state_base_address": 0x5000, "dynamic_state_base_address_modify_enable": 1}
    bench.follow("STATE_BASE_ADDRESS", **dynamic, instruction_base_address=0x9000)
    assert bench.context.bases["dynamic"] == 0x5000 and bench.context.bases["instruction"] == INSTRUCTION


@pytest.mark.parametrize("gen, name, field, switch", [
    (9, "3DSTATE_VS", "kernel_start_pointer", "enable"), (9, "3DSTATE_GS", "scratch_space_base_pointer", "enable"),
    (4.5, "3DSTATE_PIPELINED_POINTERS", "pointer_to_gs_state", "gs_enable"),
    (4.5, "3DPRIMITIVE", "vertex_count_address", "indirect_vertex_count"),
])  # fmt: skip
@pytest.mark.parametrize("on", [0, 1])
def test_pointers_of_what_is_off_lead_nowhere(gen: float, name: str, field: str, switch: str, on: int) -> None:
    page = layout(name, gen)
    values = page.raw(page.pack(**{switch: on}))
    assert in_use(page, page.field(field), values, values) is bool(on)
