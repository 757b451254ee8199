"""The position-only streamer beside the render engine's: contexts, which batches it executes, waiting, rules."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from softgen.errors import DecodeError, GpuFault, SoftgenError
from softgen.streamer.position_only import forbidden
from tests.device.host import DATA, INHIBIT_SWITCH, PAGE, Host

POCS = 0x18000
MOST_POLLS = 2000  # of the time limit: a streamer that runs into unwritten memory ends soon, with an error
POLLS = {"wait_mode": 1, "compare_operation": 1}


class Batches:
    """A context with POSH, and batches in memory. Stores of the position-only streamer are seen by where they go."""

    def __init__(self, enable: int = 1, **fields: Any) -> None:
        polls = itertools.count()
        self.host = Host("icl", timed_out=lambda: next(polls) >= MOST_POLLS)
        self.context = self.host.posh_context(7, enable=enable, **fields)

    def batch(self, *commands: list[int], end: bool = True) -> int:
        at = self.host.pages(1)
        self.host.put(at, *commands, *([self.host.pack("MI_BATCH_BUFFER_END")] if end else []))
        return at

    def start(self, address: int, **fields: int) -> list[int]:
        return self.host.pack("MI_BATCH_BUFFER_START", batch_buffer_start_address=address, address_space_indicator=1, **fields)

    def call(self, address: int, **fields: int) -> list[int]:
        """A batch of the next level."""
        return self.start(address, second_level_batch_buffer=1, **fields)

    def store(self, number: int) -> list[int]:
        """A mark: 1 more each time is not told apart, who executed it is told by `marks`."""
        return self.host.store(4 * number, 1)

    def marks(self, count: int = 10) -> list[int]:
        return [number for number, value in enumerate(self.host.dwords(DATA, count)) if value]

    def run(self, *commands: list[int]) -> Batches:
        self.host.say(self.context, *commands)
        self.host.submit(self.context)
        return self

    @property
    def remarks(self) -> list[str]:
        return list(self.host.gpu.remarks)


def image(host: Host, address: int, dword: int) -> int:
    return host.dwords(address + PAGE + 4 * dword, 1)[0]


# -- contexts ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-POSH-02", "ICL-POSH-04", "ICL-POSH-06", "ICL-POSH-10", "ICL-POSH-11", "ICL-POSH-12", shows="action")
def test_both_streamers_work_on_one_ring() -> None:
    """The render engine loads the context into POCS, which starts at the head of its own image, samples the tail, uses the same tables,
    and leaves the head in its image (ICL 303-362). It executes its batch, and the render engine the rest."""
    made = Batches()
    host, context = made.host, made.context
    inner = made.batch(made.store(1), host.pack("MI_STORE_REGISTER_MEM", register_address=0x18034, memory_address=DATA + 0x40))
    made.run(made.start(inner, posh_start=1), made.store(0))
    assert made.marks() == [0, 1] and not made.remarks
    tail = context.tail
    assert image(host, context.address, 5) == tail == image(host, context.second, 5)  # heads
    assert image(host, context.second, 9) == context.ring and image(host, context.second, 4) == 0x18034
    assert host.gpu.engines[0x2000].position_only._left[7].streamer.context_id == 7
    made.run(made.start(inner, posh_start=1))
    assert image(host, context.second, 5) == context.tail > tail


@pytest.mark.behaviour("ICL-POSH-08", "ICL-POSH-31", shows="action")
@pytest.mark.parametrize("enable", [0, 1])
def test_posh_is_enabled_by_the_context(enable: int) -> None:
    """CTX_SR_CTL, as the image has it (ICL 331-334, 820-826); without it the batch is nobody's."""
    made = Batches(enable)
    made.run(made.start(made.batch(made.store(1)), posh_start=1), made.store(0))
    assert made.marks() == [0, 1][: 1 + enable] and made.host.gpu.read_register(0x2244) >> 5 & 1 == enable


@pytest.mark.behaviour("ICL-POSH-12", shows="action")
@pytest.mark.parametrize(("dword", "value", "says"), [
    (9, 0, "has a ring with start"), (5, 8, "begins at head 0x8"), (11, 0x1001, "has a ring with ring_bytes 0x2000"),
    (11, 0, "has a ring with enable 0x0"),
])  # fmt: skip
def test_both_images_have_the_same_ring(dword: int, value: int, says: str) -> None:
    """Software keeps start, control and head of POCS's image in step (ICL 358-362)."""
    made = Batches()
    host, context = made.host, made.context
    host.put(context.second + PAGE + 4 * dword, [value or (host.pages(1) if dword == 9 else 0)])
    made.run(made.store(0), made.store(2))
    assert made.marks() == [0, 2] and [says in text for text in made.remarks] == [True]


# -- which batches -----------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-POSH-13", "ICL-POSH-15", "ICL-POSH-21", "ICL-POSH-23", "ICL-POSH-31", shows="action")
@pytest.mark.parametrize("both", [0, 1])
def test_posh_start_marks_what_pocs_executes(both: int) -> None:
    """The render engine reads such a start as MI_NOOP; POCS executes every command of the batch, and nothing else in the ring
    (ICL 443-471, 595-600). Start comes before Enable."""
    made = Batches()
    host = made.host
    load = host.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x18600, "data_dword": 0x55}])
    save = host.pack("MI_STORE_REGISTER_MEM", register_address=0x18600, memory_address=DATA + 16)
    inner = made.batch(made.store(1), load, save, host.pack("PIPE_CONTROL", post_sync_operation=1, address=DATA + 24, immediate_data=9))
    copy = host.pack("MI_COPY_MEM_MEM", source_memory_address=DATA, destination_memory_address=DATA + 32)
    plain = made.batch(made.store(0), copy)
    made.run(made.store(3), made.start(plain), made.start(inner, posh_start=1, posh_enable=both), made.store(2))
    assert made.marks() == [0, 1, 2, 3, 4, 6, 8] and host.dwords(DATA + 16, 1) == [0x55]
    assert host.dwords(DATA + 32, 1) == [1], "by the render engine: POCS had not executed the store before"


@pytest.mark.behaviour("ICL-POSH-14", shows="action")
def test_posh_start_is_inherited() -> None:
    """By batches that it chains to and those of the next level, until the level ends where it was set (ICL 446-464)."""
    made = Batches()
    third = made.batch(made.store(4))
    chained = made.batch(made.store(2), made.call(third), made.store(5))
    inner = made.batch(made.store(1), made.start(chained), made.store(9), end=False)
    outer = made.batch(made.call(inner, posh_start=1), mark_by(made, 6))
    made.run(made.start(outer, posh_enable=1))
    assert made.marks() == [1, 2, 4, 5, 6]
    assert made.host.dwords(DATA + 24, 1) == [1], "by the render engine alone"


def mark_by(made: Batches, number: int) -> list[int]:
    """A counter that each streamer that gets there advances."""
    return made.host.pack("MI_ATOMIC", memory_address=DATA + 4 * number, atomic_opcode=5)


@pytest.mark.behaviour("ICL-POSH-14", "ICL-POSH-22", shows="action")
@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("mode", ["posh_start", "posh_enable"])
def test_a_conditional_end_that_is_taken_ends_a_batch(mode: str, taken: bool) -> None:
    """Of a batch that is executed as of one that is traversed (ICL 448-464, 568-570)."""
    made = Batches()
    value = 5 if taken else 6
    made.host.put(DATA + 32, [value])
    end = made.host.pack("MI_CONDITIONAL_BATCH_BUFFER_END", compare_semaphore=1, compare_address=DATA + 32, compare_data_dword=5)
    inner = made.batch(made.store(1))
    first = made.batch(end, made.call(inner, posh_start=1))
    made.run(made.start(first, **{mode: 1}), made.store(0))
    assert made.marks() == ([0, 8] if taken else [0, 1, 8])


@pytest.mark.behaviour("ICL-POSH-19", "ICL-POSH-20", "ICL-POSH-22", shows="action")
@pytest.mark.parametrize(("ring", "chain", "inner", "found"), [
    (1, 0, 0, {"level", "chained"}), (1, 0, 1, {"level", "chained", "next"}), (0, 0, 1, set()), (0, 1, 1, set())])  # fmt: skip
def test_posh_enable_lets_pocs_look_for_batches(ring: int, chain: int, inner: int, found: set[str]) -> None:
    """It reads batches without executing them: that level and what chains from it; the next level has to say so itself. The render engine
    ignores it (ICL 559-591)."""
    made = Batches()
    names = {"level": 1, "chained": 2, "next": 3}
    batches = {name: made.batch(made.store(number)) for name, number in names.items()}
    below = made.batch(mark_by(made, 6), made.call(batches["next"], posh_start=1))
    chained = made.batch(mark_by(made, 5), made.call(batches["chained"], posh_start=1), made.call(below, posh_enable=inner))
    outer = made.batch(mark_by(made, 4), made.call(batches["level"], posh_start=1), made.start(chained, posh_enable=chain), end=False)
    made.run(made.start(outer, posh_enable=ring), made.store(0))
    assert made.marks() == sorted([0, 4, 5, 6, *(names[name] for name in found)])
    assert made.host.dwords(DATA + 16, 3) == [1, 1, 1], "the render engine alone executes what is traversed"


@pytest.mark.behaviour("ICL-POSH-24", shows="action")
@pytest.mark.parametrize("enable", [0, 1])
def test_the_ring_says_that_there_are_batches_of_pocs(enable: int) -> None:
    made = Batches()
    outer = made.batch(made.call(made.batch(made.store(1)), posh_start=1))
    made.run(made.start(outer, posh_enable=enable))
    assert made.marks() == [1] * enable and any("the batch start in the ring has no posh_enable" in text for text in made.remarks) != enable


@pytest.mark.behaviour("ICL-POSH-18", shows="action")
def test_state_that_pocs_does_not_have_is_left_out() -> None:
    """Commands of other stages are read as MI_NOOP (ICL 499-500)."""
    made = Batches()
    pack = made.host.pack
    others = [pack(name) for name in ("3DSTATE_HS", "3DSTATE_GS", "3DSTATE_PS", "3DSTATE_STREAMOUT", "3DSTATE_WM", "3DSTATE_URB_GS")]
    inner = made.batch(*others, pack("3DSTATE_CLIP", clip_enable=1), made.store(1))
    made.run(made.start(inner, posh_start=1))
    assert made.marks() == [1] and set(made.host.gpu.contexts[7, "position_only"].latched) == {"3DSTATE_CLIP"}
    assert not made.host.gpu.contexts[7, "render"].latched


NO_PAGES = {"MI_DISPLAY_FLIP", "MI_LOAD_SCAN_LINES_EXCL", "MI_LOAD_SCAN_LINES_INCL"}
SUPPORTED = """3DSTATE_VF 3DSTATE_INDEX_BUFFER 3DSTATE_VERTEX_BUFFERS 3DSTATE_VERTEX_ELEMENTS 3DSTATE_VF_COMPONENT_PACKING
3DSTATE_VF_INSTANCING
3DSTATE_VF_SGVS 3DSTATE_VF_TOPOLOGY 3DSTATE_VF_STATISTICS 3DSTATE_VS 3DSTATE_PUSH_CONSTANT_ALLOC_VS 3DSTATE_CONSTANT_VS
3DSTATE_BINDING_TABLE_POOL_ALLOC 3DSTATE_BINDING_TABLE_POINTERS_VS 3DSTATE_SAMPLER_STATE_POINTERS_VS 3DSTATE_URB_VS 3DSTATE_CLIP 3DSTATE_SF
3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP 3DSTATE_SCISSOR_STATE_POINTERS 3DSTATE_MULTISAMPLE 3DSTATE_RASTER 3DSTATE_DRAWING_RECTANGLE
3DSTATE_SBE 3DSTATE_SAMPLE_PATTERN STATE_BASE_ADDRESS""".split()


@pytest.mark.parametrize("name", SUPPORTED)
def test_state_that_pocs_has(name: str) -> None:
    made = Batches()
    fields: dict[str, Any] = {"3DSTATE_VERTEX_BUFFERS": {"vertex_buffer": [{}]}, "3DSTATE_VERTEX_ELEMENTS": {"vertex_element": [{}]}}
    made.run(made.start(made.batch(made.host.pack(name, **fields.get(name, {}))), posh_start=1))
    assert set(made.host.gpu.contexts[7, "position_only"].latched) == {name}


# -- bad batches -------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-POSH-16", shows="action")
@pytest.mark.parametrize("name", sorted({*forbidden(), "GPGPU_WALKER"} - NO_PAGES))
def test_commands_that_pocs_may_not_be_given(name: str) -> None:
    """They are refused with their name and place (ICL 473-495)."""
    made = Batches()
    inner = made.batch(made.store(1), made.host.pack(name))
    with pytest.raises(DecodeError, match=f"{name} at {inner + 16:#x} .*: {name} is not for the position-only streamer"):
        made.run(made.start(inner, posh_start=1))
    assert made.marks() == [1] and not made.host.gpu.engines[0x2000].busy()


def test_a_batch_of_pocs_that_is_not_mapped() -> None:
    made = Batches()
    with pytest.raises(GpuFault, match=r"command fetch at 0x1000000 .*leaves mapped memory"):
        made.run(made.start(0x1000000, posh_start=1))
    assert not made.host.gpu.engines[0x2000].busy()


def test_a_batch_of_pocs_without_an_end_is_named_when_time_is_up() -> None:
    made = Batches()
    inner = made.batch(made.store(1), end=False)
    with pytest.raises(SoftgenError, match=rf"position_only: time is up at 0x\w+ \(batch {inner:#x}\)"):
        made.run(made.start(inner, posh_start=1))
    assert made.marks() == [1] and not made.host.gpu.engines[0x2000].busy()


# -- waiting -----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-POSH-05", "ICL-POSH-25", shows="action")
def test_streamers_wait_for_each_other() -> None:
    """POCS runs ahead as far as it can, to a semaphore that the render engine's commands end, and the other way round; a wait does not
    switch the context (ICL 315-319, 604-627)."""
    made = Batches()
    host = made.host
    inner = made.batch(made.store(1), host.wait(0, 1), host.pack("MI_COPY_MEM_MEM", source_memory_address=DATA,
                                                                 destination_memory_address=DATA + 16), made.store(3))  # fmt: skip
    copies = [host.pack("MI_COPY_MEM_MEM", source_memory_address=DATA + at, destination_memory_address=DATA + 16 + at) for at in (4, 12)]
    made.run(made.start(inner, posh_start=1), *copies, made.store(0), host.wait(12, 1), made.store(2))
    assert made.marks() == [0, 1, 2, 3, 4, 5] and host.dwords(DATA + 28, 1) == [0], "it had waited when the render engine was there"
    assert [event.cause for event in host.gpu.interrupts.events if event.base == POCS] == []


@pytest.mark.behaviour("ICL-POSH-25", "ICL-POSH-07", "ICL-POSH-02", shows="action")
def test_a_wait_of_pocs_goes_on_when_the_context_comes_again() -> None:
    """The render engine has come to its tail and leaves; while another context runs POCS is preempted where it was, even if what it
    waited for has come, and goes on there later (ICL 308-327, 604-609)."""
    made = Batches()
    host, other = made.host, made.host.context(8)
    inner = made.batch(made.store(1), host.wait(0, 1), made.store(3))
    made.run(made.start(inner, posh_start=1), made.store(2))
    assert made.marks() == [1, 2] and not host.gpu.engines[0x2000].busy()
    head = image(host, made.context.second, 5)
    host.say(other, made.store(0), made.store(5))
    host.submit(other)
    assert made.marks() == [0, 1, 2, 5] and image(host, made.context.second, 5) == head
    made.run(made.store(4))
    assert made.marks() == [0, 1, 2, 3, 4, 5]


def test_streamers_that_wait_for_ever_say_where() -> None:
    made = Batches(control=INHIBIT_SWITCH)
    inner = made.batch(made.host.wait(0, 1), made.store(1))
    made.run(made.start(inner, posh_start=1), made.host.wait(4, 1))
    engine = made.host.gpu.engines[0x2000]
    assert engine.busy() and f"position_only: {DATA:#x} holds 0x0" in engine.waits_for() and f"{DATA + 4:#x} holds" in engine.waits_for()


@pytest.mark.behaviour("ICL-POSH-27", shows="action")
@pytest.mark.parametrize("waits", [True, False])
def test_other_pipelines_run_when_pocs_is_done(waits: bool) -> None:
    made = Batches()
    host = made.host
    inner = made.batch(*([host.wait(0, 1)] if waits else []), made.store(1))
    made.run(made.start(inner, posh_start=1), host.pack("PIPELINE_SELECT", pipeline_selection=2, mask_bits=3), [0], made.store(0))
    assert any("while the position-only streamer is in a batch" in text for text in made.remarks) == waits and made.marks() == [0, 1]


@pytest.mark.behaviour("ICL-POSH-32", shows="action")
def test_pocs_raises_no_interrupts() -> None:
    """Neither a flush that would notify, nor a wait (ICL 873-875)."""
    made = Batches()
    flush = made.host.pack("PIPE_CONTROL", notify_enable=1, command_streamer_stall_enable=1)
    inner = made.batch(made.host.wait(0, 1), flush, made.store(1))
    made.run(made.start(inner, posh_start=1), made.store(0))
    assert made.marks() == [0, 1]
    assert {event.cause for event in made.host.gpu.interrupts.events} == {"context_switch"}
    assert {event.base for event in made.host.gpu.interrupts.events} == {0x2000}


@pytest.mark.behaviour("ICL-POSH-30", shows="action")
def test_pocs_has_the_registers_that_are_listed() -> None:
    """Others of its range keep nothing (ICL 658-807)."""
    made = Batches()
    host = made.host
    there, absent = (0x94, 0x340, 0x600, 0x67C, 0x420), (0x348, 0xFF0, 0x1FFC)
    every = (*there, *absent)
    load = host.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": POCS + at, "data_dword": 0x11 + n} for n, at in enumerate(every)])
    saves = [host.pack("MI_STORE_REGISTER_MEM", register_address=POCS + at, memory_address=DATA + 4 * n) for n, at in enumerate(every)]
    made.run(made.start(made.batch(load, *saves), posh_start=1))
    assert host.dwords(DATA, len(every)) == [0x11 + n if at in there else 0 for n, at in enumerate(every)]
