"""Decoding a trace: commands with what they point to, kernels of a trace, and memory that the GPU was to write."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest

from softgen import assemble
from softgen.bits.catalogue import layout
from softgen.inspect.decode import decoding, kernels
from softgen.inspect.decode.decoding import Decoder
from softgen.inspect.decode.indirect_state import IndirectState
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.parser import Command, Remark
from softgen.trace.work import Work
from tests.trace.test_capture import Made


def test_a_kernel_of_several_stages_is_one_kernel() -> None:
    """By its code, whatever addresses it has; the stages in the order in which they name it."""
    space, buffer = AddressSpace("batch"), MemfdBuffer(0x10000)
    space.map(0, buffer)
    batch = layout("STATE_BASE_ADDRESS", 9).pack(instruction_base_address=0x4000, instruction_base_address_modify_enable=1)
    for name, start in (("3DSTATE_VS", 0x1000), ("3DSTATE_GS", 0x2000), ("3DSTATE_VS", 0x2000), ("3DSTATE_GS", 0x3000)):
        batch += layout(name, 9).pack(kernel_start_pointer=start, enable=1)
    batch += layout("MI_BATCH_BUFFER_END", 9).pack()
    buffer.view[: 4 * len(batch)] = struct.pack(f"<{len(batch)}I", *batch)
    end = assemble("(W) send (8|M0) null r127 0x27 0x02000010 {EOT}", "kbl")
    for start in (0x1000, 0x2000):
        buffer.view[0x4000 + start : 0x4000 + start + len(end)] = end
    found = kernels.kernels(Made(Work("render", space, 0)))
    assert [(kernel.address, kernel.stages, kernel.code == end, kernel.ended) for kernel in found] == [
        (0x5000, ["vs", "gs"], True, True), (0x7000, ["gs"], False, False)]  # fmt: skip


def test_counts_are_those_that_hold_when_the_draw_starts() -> None:
    """A pointer to a binding table may stand before the state that says how many entries it has."""
    space, buffer = AddressSpace("batch"), MemfdBuffer(0x10000)
    space.map(0, buffer)
    batch = []
    for name, values in (("STATE_BASE_ADDRESS", {"surface_state_base_address": 0x4000, "surface_state_base_address_modify_enable": 1}),
                         ("3DSTATE_BINDING_TABLE_POINTERS_PS", {"pointer_to_binding_table": 0x80}), ("3DSTATE_PS", {}),
                         ("3DSTATE_PS", {"binding_table_entry_count": 1}), ("3DPRIMITIVE", {}),
                         ("3DSTATE_PS", {"binding_table_entry_count": 2}), ("MI_BATCH_BUFFER_END", {})):  # fmt: skip
        batch += layout(name, 9).pack(**values)
    buffer.view[: 4 * len(batch)] = struct.pack(f"<{len(batch)}I", *batch)
    buffer.view[0x4080:0x4088] = struct.pack("<2I", 0x400, 0x440)
    ((_, items),) = Decoder(Made(Work("render", space, 0))).work()
    shown = [item.what.name if isinstance(item.what, Command) else (item.what.layout.name, item.what.certain)  # type: ignore[union-attr]
             for item in items]  # fmt: skip
    assert shown == ["STATE_BASE_ADDRESS", "3DSTATE_BINDING_TABLE_POINTERS_PS", ("BINDING_TABLE_STATE", True),
                     ("RENDER_SURFACE_STATE", True), "3DSTATE_PS", "3DSTATE_PS", "3DPRIMITIVE", "3DSTATE_PS",
                     "MI_BATCH_BUFFER_END"]  # fmt: skip


def test_the_state_that_is_shown_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a command, and of a submission: what is left out is said once."""
    space, buffer = AddressSpace("batch"), MemfdBuffer(0x10000)
    space.map(0, buffer)
    viewports = "3DSTATE_VIEWPORT_STATE_POINTERS_CC"
    pointer = next(field.name for field in layout(viewports, 9).fields)
    batch = layout("STATE_BASE_ADDRESS", 9).pack(dynamic_state_base_address=0x4000, dynamic_state_base_address_modify_enable=1)
    batch += layout("3DSTATE_CLIP", 9).pack(maximum_vp_index=2) + layout(viewports, 9).pack(**{pointer: 0x40}) * 2
    batch += layout("MI_BATCH_BUFFER_END", 9).pack()
    buffer.view[: 4 * len(batch)] = struct.pack(f"<{len(batch)}I", *batch)

    def shown(command: int, submission: int) -> list[str]:
        monkeypatch.setattr(decoding, "MOST_FOUND", command)
        monkeypatch.setattr(decoding, "MOST_FOUND_IN_ALL", submission)
        ((_, items),) = Decoder(Made(Work("render", space, 0))).work()
        return ["viewport" if isinstance(item.what, IndirectState) else item.what.text.partition(" structures")[0]
                for item in items if isinstance(item.what, IndirectState | Remark)]  # fmt: skip

    assert shown(3, 6) == ["viewport"] * 6
    assert shown(2, 6) == ["viewport", "viewport", f"{viewports} leads to more than 2"] * 2
    assert shown(3, 5) == ["viewport"] * 5 + ["this submission leads to more than 5"]
    assert shown(3, 3) == ["viewport"] * 3 + ["this submission leads to more than 3"]
    assert shown(3, 2) == ["viewport"] * 2 + ["this submission leads to more than 2"]


def test_a_jump_to_memory_that_a_kernel_may_have_written_is_remarked() -> None:
    """A surface of an earlier submission: captures are taken while nothing executes. One in no memory is not taken for the memory below
    it."""
    space, buffer, target = AddressSpace("batch"), MemfdBuffer(0x10000), MemfdBuffer(0x2000)
    space.map(0, buffer)
    space.map(0x20000, target)
    bind = layout("STATE_BASE_ADDRESS", 9).pack(surface_state_base_address=0x4000, surface_state_base_address_modify_enable=1)
    bind += layout("3DSTATE_PS", 9).pack(binding_table_entry_count=1)
    bind += layout("3DSTATE_BINDING_TABLE_POINTERS_PS", 9).pack(pointer_to_binding_table=0x80)
    bind += layout("MI_BATCH_BUFFER_END", 9).pack()
    jump = layout("MI_BATCH_BUFFER_START", 9).pack(batch_buffer_start_address=0x21000, address_space_indicator=1)
    for at, dwords in ((0, bind), (0x1000, jump), (0x4080, [0x400])):
        buffer.view[at : at + 4 * len(dwords)] = struct.pack(f"<{len(dwords)}I", *dwords)
    target.view[0x1000:0x1004] = struct.pack("<I", 0x05000000)
    first, second = Work("render", space, 0, sequence=0, label="first"), Work("render", space, 0x1000, sequence=1, label="second")
    why = "jumps to 0x21000, memory that kernels of first may have been about to fill; shown as it stands"
    for works, surface, expected in (((first, second), 0x20100, [why]), ((first, second), 0x21FFF, [why]), ((second,), 0x20100, []),
                                     ((first, second), 0x22000, []), ((first, second), 0x1F000, []),
                                     ((first, second), 0x8000, [])):  # fmt: skip
        dwords = layout("RENDER_SURFACE_STATE", 9).pack(surface_base_address=surface)
        buffer.view[0x4400 : 0x4400 + 4 * len(dwords)] = struct.pack(f"<{len(dwords)}I", *dwords)
        items = [item.what for _, found in Decoder(Made(*works)).work() for item in found]
        assert [what.text for what in items if isinstance(what, Remark)] == expected, hex(surface)


@pytest.mark.parametrize("region, expected", [(0x20100, True), (0x22000, False), (0, False)])
def test_a_call_of_a_batch_that_huc_may_have_written_is_remarked(region: int, expected: bool) -> None:
    """In the same submission; a region without an address is none, though there is memory at 0."""
    space, buffer, target = AddressSpace("batch"), MemfdBuffer(0x10000), MemfdBuffer(0x2000)
    space.map(0, buffer)
    space.map(0x20000, target)
    regions = [{"address": address} for address in (0, region)]
    batch = layout("HUC_VIRTUAL_ADDR_STATE", 9).pack(huc_virtual_address_region=regions)
    batch += layout("MI_BATCH_BUFFER_START", 9).pack(batch_buffer_start_address=0x21000, address_space_indicator=1)
    buffer.view[: 4 * len(batch)] = struct.pack(f"<{len(batch)}I", *batch)
    target.view[0x1000:0x1004] = struct.pack("<I", 0x05000000)
    why = "jumps to 0x21000, memory that HuC in first may have been about to fill; shown as it stands"
    ((_, items),) = Decoder(Made(Work("video", space, 0, label="first"))).work()
    assert [item.what.text for item in items if isinstance(item.what, Remark)] == [why] * expected
    jump = layout("MI_BATCH_BUFFER_START", 9).pack(batch_buffer_start_address=0x100, address_space_indicator=1)
    at = 4 * (len(batch) - len(jump))
    buffer.view[at : at + 4 * len(jump)] = struct.pack(f"<{len(jump)}I", *jump)
    buffer.view[0x100:0x104] = struct.pack("<I", 0x05000000)
    ((_, items),) = Decoder(Made(Work("video", space, 0))).work()
    assert not [item for item in items if isinstance(item.what, Remark)]


def test_a_submission_leads_to_100_000_structures_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each of its commands to 4096: 24 of them whole, and a part of the next."""
    found = object()
    monkeypatch.setattr(decoding, "IndirectStateDecoder", lambda *of: SimpleNamespace(follow=lambda command, ahead: [found] * 4096))
    space, buffer = AddressSpace("batch"), MemfdBuffer(0x1000)
    space.map(0, buffer)
    buffer.view[: 4 * 30] = struct.pack("<30I", *[0] * 29, 0x05000000)
    ((_, items),) = Decoder(Made(Work("render", space, 0))).work()
    shown = [item.what for item in items if not isinstance(item.what, Command)]
    assert shown.count(found) == 100_000 and [what.text for what in shown if isinstance(what, Remark)] == [
        "this submission leads to more than 100000 structures; the rest is left out"]  # fmt: skip


@pytest.mark.parametrize("wait, known", [(1, False), (2, False), (3, True), (4096, True)])
def test_commands_wait_for_a_draw_up_to_a_limit(wait: int, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of a binding table is in the second command after its pointer; a batch without draws is not held in memory."""
    monkeypatch.setattr(decoding, "LONGEST_WAIT", wait)
    space, buffer = AddressSpace("batch"), MemfdBuffer(0x10000)
    space.map(0, buffer)
    batch = layout("3DSTATE_BINDING_TABLE_POINTERS_PS", 9).pack(pointer_to_binding_table=0x80) + layout("MI_NOOP", 9).pack()
    batch += layout("3DSTATE_PS", 9).pack(binding_table_entry_count=1) + layout("MI_BATCH_BUFFER_END", 9).pack()
    buffer.view[: 4 * len(batch)] = struct.pack(f"<{len(batch)}I", *batch)
    buffer.view[0x80:0x84] = struct.pack("<I", 0x400)
    ((_, items),) = Decoder(Made(Work("render", space, 0))).work()
    assert [item.what.certain for item in items if isinstance(item.what, IndirectState)] == [known] * 2
