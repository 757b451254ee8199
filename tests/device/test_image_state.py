"""State commands in the images of Ice Lake's render contexts: what is saved where, and what comes of an image that is restored."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from tests.device.host import DATA, INHIBIT_SWITCH, PAGE, Context, Host

SVG, SVL, VF, VFE, SUBSLICES = 0x5E0, 0x6A0, 0x2F0, 0xA40, 8
END = VFE + 64 + 1216 * SUBSLICES
STAGES = ("VS", "HS", "DS", "GS", "PS")


def constants(host: Host, stage: str, pointer: int, length: int) -> list[int]:
    return host.pack(f"3DSTATE_CONSTANT_{stage}", read_length=[{"length": 0}] * 3 + [{"length": length}],
                     constant_buffer=[{"pointer": 0}] * 3 + [{"pointer": pointer}])  # fmt: skip


def saved(host: Host, context: Context, dword: int, count: int) -> list[int]:
    return host.dwords(context.address + PAGE + 4 * dword, count)


def place(unit: str, name: str) -> tuple[int, int]:
    """First dword in the unit, and dwords, of a row of the list."""
    field = layout(f"CONTEXT_{unit}", 11).field(name)
    return field.low // 32, field.width // 32


class Contexts:
    """A context that has set state, another that runs in between, and the state that commands see in the first afterwards."""

    def __init__(self, gpu: str = "icl") -> None:
        self.host = Host(gpu)
        self.first, self.other = self.host.context(1), self.host.context(2)

    def say(self, *commands: list[int]) -> None:
        self.host.say(self.first, *commands)
        self.host.submit(self.first)

    def leave(self) -> None:
        self.host.say(self.other, self.host.store(0, 9))
        self.host.submit(self.other)

    def back(self) -> Any:
        self.say(self.host.store(4, 9))
        return self.host.gpu.contexts[1, "render"].latched


@pytest.mark.behaviour("ICL-CTX-10", shows="action")
def test_push_constants_are_saved_twice() -> None:
    """Committed, and not: of each stage its own (ICL 2224-2227, 2254-2257, 2262, 2285); both come back."""
    held = Contexts()
    commands = {stage: constants(held.host, stage, DATA + 0x40 * n, n + 1) for n, stage in enumerate(STAGES)}
    held.say(*commands.values())
    for stage, command in commands.items():
        unit, start = ("SVL", SVL) if stage == "PS" else ("SVG", SVG)
        for which in ("committed", "non_committed"):
            at, count = place(unit, f"3dstate_constant_{stage.lower()}_{which}")
            assert saved(held.host, held.first, start + at, count) == command
    held.leave()
    back = held.back()
    assert {stage: back.commands(f"3DSTATE_CONSTANT_{stage}") for stage in STAGES} == {name: [said] for name, said in commands.items()}


@pytest.mark.behaviour("ICL-CTX-02", "ICL-CTX-08", "ICL-CTX-09", shows="action")
def test_state_is_what_the_image_has() -> None:
    """Restoring executes the image: state that it no longer has is not set, other state is as it says; that software has written there is
    remarked (ICL 1706-1710). The ring's part may be written."""
    held = Contexts()
    host = held.host
    fetch = host.pack("3DSTATE_VF", cut_index=7, indexed_draw_cut_index_enable=1)
    key = host.pack("3DSTATE_WM_CHROMAKEY", chromakey_kill_enable=1)
    held.say(host.pack("3DSTATE_LINE_STIPPLE", line_stipple_pattern=0x1234), fetch, key)
    held.leave()
    assert held.back()["3DSTATE_VF"].cut_index == 7 and not host.gpu.remarks
    held.leave()
    at, count = place("VF", "3dstate_vf")
    assert saved(host, held.first, VF + at, count) == fetch
    host.put(held.first.address + PAGE + 4 * (VF + at), host.pack("3DSTATE_VF", cut_index=9))
    at, count = place("SVL", "3dstate_wm_chromakey")
    host.put(held.first.address + PAGE + 4 * (SVL + at), [0] * count)
    back = held.back()
    assert back["3DSTATE_VF"].cut_index == 9 and "3DSTATE_WM_CHROMAKEY" not in back
    assert back["3DSTATE_LINE_STIPPLE"].line_stipple_pattern == 0x1234
    (remark,) = host.gpu.remarks
    assert remark.startswith(f"the image of the context at {held.first.address:#x} is not as the engine has saved it")


@pytest.mark.behaviour("ICL-CTX-02", shows="action")
def test_the_format_of_an_image_is_the_device_s() -> None:
    """Gen9's has the ring's part and registers where Gen11's has them, and no section of state that a manual at hand lists."""
    for gpu, sections in (("skl", False), ("icl", True)):
        held = Contexts(gpu)
        held.say(constants(held.host, "VS", DATA, 1))
        assert bool(saved(held.host, held.first, SVG, 1)[0]) == sections
        held.leave()
        assert held.back()["3DSTATE_CONSTANT_VS"].read_length[3].length == 1


@pytest.mark.behaviour("ICL-CTX-11", shows="action")
def test_the_video_front_end_s_section() -> None:
    """64 dwords and 1,216 for each subslice, behind which the list ends (ICL 2351-2354); its state is saved and comes back."""
    held = Contexts()
    host = held.host
    state = host.pack("MEDIA_VFE_STATE", maximum_number_of_threads=447, urb_entry_allocation_size=2, number_of_urb_entries=2)
    held.say(host.pack("PIPELINE_SELECT", pipeline_selection=2, mask_bits=3), state)
    assert saved(host, held.first, VFE, 10) == [*state, 0]
    assert saved(host, held.first, END, 2) == [0x05000000, 0] and not any(saved(host, held.first, VFE + 64, END - VFE - 64))
    assert 4 * (END + 128) <= 13 * PAGE < 4 * (END + 128 + 1216), "with the status page as large as drivers allocate it"
    held.leave()
    assert held.back().commands("MEDIA_VFE_STATE") == [state] and held.back().pipeline() == "gpgpu"


def test_commands_that_merge_are_saved_whole() -> None:
    """Buffers that several commands have set, as one command; what the image has no room for in this form is kept beside it."""
    held = Contexts()
    host = held.host
    buffers = [{"vertex_buffer_index": n, "buffer_pitch": 16 + n} for n in (5, 2)]
    whole = host.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=buffers[::-1])
    step = host.pack("3DSTATE_VF_INSTANCING", vertex_element_index=3, instancing_enable=1, instance_data_step_rate=4)
    held.say(*(host.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[buffer]) for buffer in buffers), step)
    held.leave()
    at, _ = place("VF", "3dstate_vertex_buffers")
    back = held.back()
    assert saved(host, held.first, VF + at, 10) == [*whole, 0] and back.commands("3DSTATE_VERTEX_BUFFERS") == [whole]
    assert back.commands("3DSTATE_VF_INSTANCING") == [step]


def flush(host: Host, **fields: int) -> list[int]:
    return host.pack("PIPE_CONTROL", command_streamer_stall_enable=1, **fields)


@pytest.mark.behaviour("ICL-PC-04", shows="action")
def test_invalid_pointers_are_not_restored() -> None:
    """A PIPE_CONTROL marks push constants, or media state, as invalid: the next switch does not restore them, but for those that came
    again meanwhile (ICL 1042-1049). Until the switch they are as they were."""
    held = Contexts()
    host = held.host
    vs, ps, media = constants(host, "VS", DATA, 1), constants(host, "PS", DATA, 2), host.pack("MEDIA_VFE_STATE", number_of_urb_entries=3)
    held.say(vs, ps, media, flush(host, indirect_state_pointers_disable=1), ps)
    held.leave()
    back = held.back()
    assert "3DSTATE_CONSTANT_VS" not in back and back.commands("3DSTATE_CONSTANT_PS") == [ps] and "MEDIA_VFE_STATE" in back
    held.say(vs, flush(host, generic_media_state_clear=1))
    assert "MEDIA_VFE_STATE" not in host.gpu.contexts[1, "render"].latched, "the context has left the engine"
    held.leave()
    back = held.back()
    assert "MEDIA_VFE_STATE" not in back and back.commands("3DSTATE_CONSTANT_VS") == [vs]


def test_invalid_pointers_serve_until_the_switch() -> None:
    """The context waits at a semaphore in the engine meanwhile."""
    held = Contexts()
    host = held.host
    held.first = host.context(1, 0x00010001 | INHIBIT_SWITCH)
    held.say(constants(host, "VS", DATA, 1), flush(host, indirect_state_pointers_disable=1), host.wait(0x10, 4))
    assert "3DSTATE_CONSTANT_VS" in host.gpu.contexts[1, "render"].latched
    host.put(DATA + 0x10, [5])
    host.gpu.poll()
    assert "3DSTATE_CONSTANT_VS" not in host.gpu.contexts[1, "render"].latched


@pytest.mark.behaviour("ICL-PC-05", shows="action")
@pytest.mark.parametrize("state, field", [
    ("3DSTATE_CONSTANT_GS", "indirect_state_pointers_disable"), ("MEDIA_VFE_STATE", "generic_media_state_clear"),
])  # fmt: skip
@pytest.mark.parametrize("done", [False, True])
def test_memory_that_is_freed_while_pointers_to_it_are_restored(state: str, field: str, done: bool) -> None:
    """They have to be invalid first (ICL 1051-1057)."""
    held, gone = Contexts(), 0x7F_0000
    host = held.host
    fields = {"scratch_space_base_pointer": gone} if state == "MEDIA_VFE_STATE" else {}
    command = host.pack(state, **fields) if fields else constants(host, "GS", gone, 1)
    held.say(command, *([flush(host, **{field: 1})] if done else []))
    held.leave()
    held.back()
    assert not host.gpu.remarks
    held.leave()
    pointers = host.memory.physical.read64(host.root) & ~0xFFF
    directory = host.memory.physical.read64(pointers) & ~0xFFF
    table = host.memory.physical.read64(directory + 8 * (gone >> 21)) & ~0xFFF
    host.memory.physical.write(table + 8 * (gone >> 12 & 511), struct.pack("<Q", 0))
    held.back()
    assert [f"restored with {state}, whose memory at {gone:#x} is not mapped: before it is freed a PIPE_CONTROL with {field}" in remark
            for remark in host.gpu.remarks] == [True] * (not done)  # fmt: skip
