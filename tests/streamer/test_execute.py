"""Commands executed: the road through rings and batches, MI commands, synchronisation, and what is refused."""

from __future__ import annotations

import dataclasses
import re

import pytest

from softgen.bits.catalogue import layout, names
from softgen.bits.generation import device
from softgen.command import CommandStreamer
from softgen.device.gpu import COMMANDS
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.context import SavedContext
from softgen.streamer.execute import Streamer
from softgen.streamer.interface import Parked, SubmissionHooks, Wait
from softgen.streamer.latch import LatchedState
from softgen.streamer.latch_rules import latch_table
from softgen.streamer.parser import Command, FetchPointer
from softgen.trace.work import Work
from tests.streamer.bench import BATCH, DATA, OTHER, RING, Bench

# -- the road ------------------------------------------------------------------------------------------------------


def test_a_chained_batch_does_not_come_back_and_a_second_level_one_does() -> None:
    bench = Bench()
    bench.put(OTHER, bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    bench.run(bench.start(OTHER), bench.store(4, 2))
    assert bench.data(2) == [1, 0]
    bench.run(bench.start(OTHER, second_level_batch_buffer=1), bench.store(4, 2))
    assert bench.data(2) == [1, 2]
    assert bench.gpu.counters.batches == 4 and bench.gpu.counters.commands == 8


def test_a_ring_comes_back_from_its_batch_and_wraps() -> None:
    bench = Bench()
    bench.put(OTHER, bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    start, store = bench.start(OTHER), bench.store(4, 2)
    size, head = 64, 48
    ring = (start + store)[:4], (start + store)[4:]  # what does not fit before the end stands at the beginning
    bench.put(RING + head, ring[0])
    bench.put(RING, ring[1])
    bench.gpu.execute(Work("render", bench.space, RING, "ring", head=head, tail=4 * len(ring[1]), size=size))
    assert bench.data(2) == [1, 2]


def test_batches_in_the_upper_half_of_the_space() -> None:
    """Their addresses may have copies of bit 47 above it; registers show where a batch that was called began."""
    bench, upper = Bench(), MemfdBuffer(0x1000, "upper half")
    bench.space.map(0x8123_4567_8000, upper)
    bench.put(0x8123_4567_8000, bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.execute(Work("render", bench.space, 0xFFFF_8123_4567_8000))
    assert bench.data(1) == [1]
    bench.put(DATA, [0])
    bench.run(bench.start(0x8123_4567_8000))
    assert bench.data(1) == [1]
    start = layout("BB_START_ADDR", 9), layout("BB_START_ADDR_UDW", 9)
    assert [bench.gpu.read_register((page.offset or 0) + 0x2000 * page.relative) for page in start] == [0x4567_8000, 0x8123]


@pytest.mark.parametrize("start", [0, 4, 0x400, 0xF00])
def test_batches_near_the_beginning_of_the_space(start: int) -> None:
    """Dwords are counted from where reading ahead began."""
    bench = Bench()
    bench.space.map(0, MemfdBuffer(0x2000, "low"))
    bench.put(start, *(bench.store(4 * number, number + 5) for number in range(4)), bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.execute(Work("render", bench.space, start))
    assert bench.data(4) == [5, 6, 7, 8] and bench.gpu.counters.commands == 5


def test_what_a_command_writes_the_next_ones_are_read_from() -> None:
    """The batch overwrites the value of its own second store."""
    bench = Bench()
    store = bench.store(0, 1)
    bench.run(bench.store(4 * (len(store) + 3), 7, BATCH), store)
    assert bench.data(1) == [7]


def test_a_loop_goes_round_until_time_is_up() -> None:
    left = iter(range(100))
    bench = Bench(timed_out=lambda: next(left, None) is None)
    with pytest.raises(SoftgenError, match=r"time is up at 0x1000\d \(batch 0x10000\)"):
        bench.run(bench.pack("MI_NOOP"), bench.start(BATCH))
    assert bench.gpu.counters.commands == 100


@pytest.mark.behaviour("BDW-CS-11", "KBL-MEM-01", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
@pytest.mark.parametrize("upper", [0xFFFF, 0x0001, 0])
def test_addresses_are_what_bit_47_says(upper: int, gpu: str) -> None:
    """Canonical ones and others: bits above it are ignored (BDW 2818, 5426)."""
    bench = Bench(gpu)
    bench.space.map(0x8000_0000_0000, bench.buffer)
    bench.put(OTHER, bench.store(0, 5), bench.pack("MI_BATCH_BUFFER_END"))
    bench.run(bench.start(upper << 48 | 0x8000_0000_1000))
    assert bench.data(1) == [5]


# -- what is wrong or missing ----------------------------------------------------------------------------------------


def test_a_batch_that_leaves_memory_faults() -> None:
    bench = Bench()
    with pytest.raises(GpuFault, match="command fetch at 0x14000 in bench: the batch leaves mapped memory"):
        bench.run(bench.start(RING))


def test_a_dword_that_is_no_command_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"0x3f800000 at 0x10000 \(batch 0x10000, gen 9\) is no command"):
        Bench().run([0x3F800000])


def test_a_command_without_function_is_refused_with_its_place() -> None:
    bench = Bench()
    with pytest.raises(Unsupported, match=r"MI_LOAD_SCAN_LINES_INCL at 0x10004 \(batch 0x10000, gen 9\): not yet simulated"):
        bench.run(bench.pack("MI_NOOP"), bench.pack("MI_LOAD_SCAN_LINES_INCL"))


# What of MI is not simulated, exactly: the display, the URB, contexts that commands switch.
DISPLAY = {"MI_DISPLAY_FLIP", "MI_LOAD_SCAN_LINES_INCL", "MI_LOAD_SCAN_LINES_EXCL"}
URB = {"MI_URB_CLEAR", "MI_LOAD_URB_MEM", "MI_STORE_URB_MEM", "MI_URB_ATOMIC_ALLOC"}
MISSING = {
    "gm965": DISPLAY | {"MI_OVERLAY_FLIP"},
    "g45": DISPLAY | {"MI_OVERLAY_FLIP"},
    "ivb": DISPLAY | {"MI_URB_CLEAR"},
    "hsw": DISPLAY | URB,
    "bdw": DISPLAY | URB,
    "skl": DISPLAY | URB - {"MI_URB_CLEAR"},
    "icl": DISPLAY,
}


@pytest.mark.parametrize("gpu", MISSING)
def test_every_mi_command_is_executed_but_these(gpu: str) -> None:
    known = {name for name in names("command", device(gpu).generation.number) if name.startswith("MI_")}
    road = {"MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_END"}  # the streamer's own
    assert known - set(COMMANDS) - road == MISSING[gpu]
    bench = Bench(gpu)
    for name in MISSING[gpu]:
        with pytest.raises(Unsupported, match=f"{name} at 0x10000"):
            bench.run(bench.pack(name))


def test_a_fault_names_the_command() -> None:
    bench = Bench()
    with pytest.raises(GpuFault, match=r"write at 0x900000 in bench by MI_STORE_DATA_IMM at 0x10000 \(batch 0x10000, gen 9\)"):
        bench.run(bench.pack("MI_STORE_DATA_IMM", address=0x900000))


@pytest.mark.parametrize("gpu", ["gm965", "g45", "ivb", "hsw", "bdw", "skl", "icl"])
def test_every_command_is_executed_latched_or_refused(gpu: str) -> None:
    """Nothing that acts is taken for state: draws, objects and copies are refused until they are built."""
    gen = device(gpu).generation.number
    effects = {name: layout(name, gen).effect for name in names("command", gen)}
    latched = {name for name, effect in effects.items() if effect and effect.sets_state}
    acting = set(effects) - latched
    assert {"3DPRIMITIVE", "MI_BATCH_BUFFER_START", "MI_DISPLAY_FLIP"} <= acting
    assert not any(word in name for name in latched - {"MI_TOPOLOGY_FILTER"} for word in ("OBJECT", "WALKER", "MI_", "PRIMITIVE"))
    state = {name for name in acting if name.startswith(("3DSTATE", "STATE_"))}
    assert all(re.match("3DSTATE_(BINDING_TABLE_EDIT|GATHER_CONSTANT|RS_CONSTANT|DX9|URB_CLEAR)", name) for name in state)


@pytest.mark.parametrize("gpu", ["gm965", "g45", "ivb", "hsw", "bdw", "skl", "icl"])
def test_a_command_without_handler_is_latched_or_refused_as_its_page_says(gpu: str) -> None:
    """Every command of every engine is met in a batch of its own: state passes, what acts or starts is refused by name."""
    gen = device(gpu).generation.number
    for name in set(names("command", gen)) - set(COMMANDS) - {"MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_END"}:
        page, bench = layout(name, gen), Bench(gpu)
        assert page.effect is not None, f"{name} on gen {gen:g}: its page does not say what it does"
        engine = page.engines[0]
        if page.effect.sets_state:
            bench.run(bench.pack(name), engine=engine)
            assert name in bench.gpu.contexts[0, engine].latched
        else:
            with pytest.raises(Unsupported, match=f"{name} at 0x10000"):
                bench.run(bench.pack(name), engine=engine)


def test_state_is_latched_under_its_name_and_outlives_the_submission() -> None:
    bench = Bench()
    bench.run(bench.pack("PIPELINE_SELECT", pipeline_selection=2, mask_bits=3))
    bench.run(bench.pack("STATE_BASE_ADDRESS", dynamic_state_base_address=0x5000, dynamic_state_base_address_modify_enable=1))
    context = bench.gpu.contexts[0, "render"].latched
    assert context["PIPELINE_SELECT"].pipeline_selection == 2 and context.bases == {"dynamic": 0x5000}


@pytest.mark.behaviour("ICL-CMD-05", shows="action")
@pytest.mark.parametrize("gpu", ["g45", "bdw", "icl"])
def test_the_pipeline_is_selected_per_context(gpu: str) -> None:
    bench = Bench(gpu)
    masked = {"mask_bits": 3} if gpu == "icl" else {}
    bench.run(bench.pack("PIPELINE_SELECT", pipeline_selection=1, **masked))
    bench.put(OTHER, bench.pack("PIPELINE_SELECT", pipeline_selection=0, **masked), bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.execute(Work("render", bench.space, OTHER, context=5))
    selected = [bench.gpu.contexts[number, "render"].latched["PIPELINE_SELECT"].pipeline_selection for number in (0, 5)]
    assert selected == [1, 0]


def test_a_pipeline_selection_that_its_mask_leaves_out_stays() -> None:
    bench = Bench()
    bench.run(bench.pack("PIPELINE_SELECT", pipeline_selection=2, mask_bits=3),
              bench.pack("PIPELINE_SELECT", pipeline_selection=0, force_media_awake=1, mask_bits=0x20))
    selected = bench.gpu.contexts[0, "render"].latched["PIPELINE_SELECT"]
    assert selected.pipeline_selection == 2 and selected.force_media_awake == 1


@pytest.mark.behaviour("G45-CS-14", "ICL-CMD-01", shows="action")
@pytest.mark.parametrize("gpu", ["g45", "bdw", "icl"])
def test_a_prefetch_does_nothing(gpu: str) -> None:
    """Not even fault."""
    bench = Bench(gpu)
    bench.run(bench.pack("STATE_PREFETCH", prefetch_pointer=0x7F000000, prefetch_count=3), bench.store(0, 1))
    assert bench.data(1) == [1]


def test_a_base_that_is_not_modified_stays() -> None:
    bench = Bench("icl")
    both = {"dynamic_state_base_address": 0x9000, "surface_state_base_address": 0x6000, "surface_state_base_address_modify_enable": 1}
    for values in ({"dynamic_state_base_address": 0x5000, "dynamic_state_base_address_modify_enable": 1}, both):
        bench.run(bench.pack("STATE_BASE_ADDRESS", **values))
    assert bench.gpu.contexts[0, "render"].latched.bases == {"dynamic": 0x5000, "surface": 0x6000}


def test_state_that_acts_is_executed() -> None:
    bench = Bench()
    bench.run(bench.pack("3DSTATE_WM_HZ_OP"))
    with pytest.raises(DecodeError, match=r"3DSTATE_WM_HZ_OP at 0x10000.*without a depth buffer"):
        bench.run(bench.pack("3DSTATE_WM_HZ_OP", depth_buffer_clear_enable=1, sample_mask=1))


# -- MI ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", ["g45", "ivb", "bdw", "icl"])
def test_store_data_imm_of_a_dword_and_of_a_qword(gpu: str) -> None:
    bench = Bench(gpu)
    bench.put(DATA, [9, 9, 9])
    bench.run(bench.store(0, 0x11223344))
    assert bench.data(3) == [0x11223344, 9, 9]
    bench.run(bench.store(0, 0x1111111122222222))
    assert bench.data(3) == [0x22222222, 0x11111111, 9]


def test_store_data_imm_of_many_dwords() -> None:
    bench = Bench()
    bench.run(bench.pack("MI_STORE_DATA_IMM", address=DATA, data=[{"dword": value} for value in (1, 2, 3)]))
    assert bench.data(4) == [1, 2, 3, 0]


@pytest.mark.behaviour("KBL-CS-17", shows="action")
def test_registers_move_between_commands_memory_and_each_other() -> None:
    bench = Bench()
    gpr = 0x2600
    bench.run(
        bench.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": gpr + 4 * n, "data_dword": 5 + n} for n in range(2)]),
        bench.pack("MI_LOAD_REGISTER_REG", source_register_address=gpr + 4, destination_register_address=gpr + 8),
        bench.pack("MI_STORE_REGISTER_MEM", register_address=gpr + 8, memory_address=DATA),
        bench.pack("MI_LOAD_REGISTER_MEM", register_address=gpr, memory_address=DATA),
        bench.pack("MI_STORE_REGISTER_MEM", register_address=gpr, memory_address=DATA + 4),
        bench.pack("MI_COPY_MEM_MEM", source_memory_address=DATA, destination_memory_address=DATA + 8),
    )
    assert bench.data(4) == [6, 6, 6, 0]


def test_registers_may_count_from_where_the_engine_starts() -> None:
    bench = Bench("icl")
    pair = {"register_offset": 0x600, "data_dword": 9}
    bench.run(bench.pack("MI_LOAD_REGISTER_IMM", add_cs_mmio_start_offset=1, entry=[pair]), engine="blitter")
    assert bench.gpu.read_register(0x22600) == 9


# -- synchronisation -----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-SYNC-10", "G45-SYNC-01", "ICL-PC-34", shows="action")
@pytest.mark.parametrize("gpu", ["gm965", "g45", "ivb", "hsw", "bdw", "skl", "icl"])
def test_what_pipe_control_writes(gpu: str) -> None:
    """Eight bytes: an immediate, the depth count, the timestamp, or nothing."""
    bench = Bench(gpu)
    for half, count in enumerate((0x77, 0x88)):
        bench.gpu.registers.write(0x2350 + 4 * half, count)
    value = 0x1_0000_0002
    bench.run(*(bench.pack("PIPE_CONTROL", post_sync_operation=kind, address=DATA + 8 * kind, immediate_data=value) for kind in range(4)))
    assert bench.data(8) == [0, 0, 2, 1, 0x77, 0x88, 0, 0xA]


def test_pipe_control_writes_a_register() -> None:
    bench = Bench()
    bench.run(bench.pack("PIPE_CONTROL", lri_post_sync_operation=1, address=0x2600, immediate_data=3))
    assert bench.gpu.read_register(0x2600) == 3


@pytest.mark.parametrize("gpu, flush, fields", [
    ("g45", "MI_FLUSH", {}), *((gpu, "PIPE_CONTROL", {"command_streamer_stall_enable": 1}) for gpu in ("ivb", "bdw", "kbl", "icl")),
])  # fmt: skip
def test_commands_that_a_draw_wrote_are_executed_after_a_flush(gpu: str, flush: str, fields: dict[str, int]) -> None:
    """Threads of a draw write to memory without the streamer, which has read commands ahead."""
    def draw(cs: Streamer, cmd: object) -> None:
        cs.counters.draws += 1
        cs.space.write32(end, bench.pack("MI_BATCH_BUFFER_END")[0])

    bench = Bench(gpu)
    bench.gpu.interface = dataclasses.replace(bench.gpu.interface, commands={**COMMANDS, "3DPRIMITIVE": draw})
    first = [bench.pack("3DPRIMITIVE"), bench.pack(flush, **fields)]
    end = BATCH + 4 * sum(map(len, first))
    bench.run(*first, bench.pack("MI_NOOP"), bench.store(0, 1))
    assert bench.data(1) == [0]


def test_a_submitter_that_decides_nothing_has_work_end_with_its_first_error() -> None:
    bench, hooks = Bench(), SubmissionHooks()
    bench.put(BATCH, bench.store(0, 3), bench.pack("MI_LOAD_SCAN_LINES_INCL"), bench.store(4, 3), bench.pack("MI_BATCH_BUFFER_END"))
    with pytest.raises(Unsupported, match="MI_LOAD_SCAN_LINES_INCL"):
        bench.gpu.begin(Work("render", bench.space, BATCH), hooks=hooks).run()
    assert bench.data(2) == [3, 0] and not hooks.timed_out()


def test_a_parked_command_says_what_it_waits_for() -> None:
    assert str(Parked(Wait("the mailbox holds 1"))) == "the mailbox holds 1"


def test_commands_after_state_need_only_their_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """State commands are latched together; the flush that follows them is not looked at more closely than others."""
    bench, stepped = Bench(), list[str | None]()
    step = Streamer._step

    def noted(self: Streamer, place: FetchPointer, command: Command) -> None:
        stepped.append(command.name)
        step(self, place, command)

    monkeypatch.setattr(Streamer, "_step", noted)
    state, flush = bench.pack("3DSTATE_SAMPLE_MASK"), bench.pack("PIPE_CONTROL", post_sync_operation=1, address=DATA, immediate_data=5)
    bench.run(state, state, flush, state, flush)
    assert bench.data(1) == [5] and stepped == ["MI_BATCH_BUFFER_END"]


def test_flush_dw_writes_too() -> None:
    bench = Bench()
    bench.run(bench.pack("MI_FLUSH_DW", post_sync_operation=1, address=DATA, immediate_data=4), engine="blitter")
    assert bench.data(2) == [4, 0]


@pytest.mark.behaviour("G45-SYNC-03", shows="action")
@pytest.mark.parametrize("gpu", ["g45", "kbl"])
def test_global_writes_go_to_the_global_space(gpu: str) -> None:
    bench = Bench(gpu)
    other = AddressSpace("global", 48)
    page = MemfdBuffer(0x1000, "global page")
    other.map(DATA, page)
    bench.put(BATCH, bench.pack("PIPE_CONTROL", post_sync_operation=1, address=DATA, immediate_data=8, destination_address_type=1),
              bench.pack("MI_STORE_DATA_IMM", address=DATA + 8, immediate_data=9, use_global_gtt=1), bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.execute(Work("render", bench.space, BATCH, global_space=other))
    assert bench.data(4) == [0, 0, 0, 0] and page.array[0] == 8 and page.array[8] == 9


@pytest.mark.parametrize("operation, value, passes", [(0, 4, True), (0, 5, False), (1, 5, True), (2, 6, True), (3, 5, True), (4, 5, True),
                                                      (4, 4, False), (5, 4, True)])  # fmt: skip
def test_a_semaphore_lets_pass_or_says_that_it_never_will(operation: int, value: int, passes: bool) -> None:
    bench = Bench()
    bench.put(DATA, [5])
    wait = bench.pack("MI_SEMAPHORE_WAIT", compare_operation=operation, semaphore_data_dword=value, semaphore_address=DATA, wait_mode=1)
    if passes:
        bench.run(wait)
    else:
        with pytest.raises(SoftgenError, match=r"MI_SEMAPHORE_WAIT at 0x10000 .*waits for ever: 0x12000 holds 0x5"):
            bench.run(wait)


class Collected:
    """A pipeline's state: what its command has collected and what finish() has completed."""

    def __init__(self) -> None:
        self.pending, self.done = 0, 0


class Collecting:
    """A pipeline whose MI_SET_APPID collects work that finish() completes."""

    def __init__(self) -> None:
        self.COMMANDS = {"MI_SET_APPID": lambda cs, cmd: self.collect(cs)}

    def new_state(self) -> Collected:
        return Collected()

    def collect(self, cs: CommandStreamer) -> None:
        cs.state(Collected).pending += 1
        cs.collected()

    def finish(self, cs: CommandStreamer) -> None:
        state = cs.state(Collected)
        state.pending, state.done = 0, state.done + state.pending


@pytest.mark.parametrize(("command", "engine"), [("PIPE_CONTROL", "render"), ("PIPELINE_SELECT", "render"), ("MI_FLUSH_DW", "blitter")])
def test_flushes_and_pipeline_switches_finish_what_a_pipeline_collects(command: str, engine: str) -> None:
    bench, pipeline = Bench(), Collecting()
    commands = {**COMMANDS, **pipeline.COMMANDS}
    interface = dataclasses.replace(bench.gpu.interface, commands=commands, pipelines=(pipeline,))
    saved = SavedContext(LatchedState(latch_table(9.0, engine, frozenset(commands))))
    streamer = Streamer(interface, engine, bench.space, None, saved, bench.gpu.counters, SubmissionHooks())
    bench.put(BATCH, bench.pack("MI_SET_APPID"), bench.pack(command), bench.pack("MI_SET_APPID"), bench.pack("MI_SEMAPHORE_WAIT",
              semaphore_address=DATA, semaphore_data_dword=1, compare_operation=4), bench.pack("MI_BATCH_BUFFER_END"))  # fmt: skip
    streamer.start_batch(BATCH)
    for _ in range(2):
        assert not streamer.run()  # waits for DATA to hold 1
        assert bench.gpu.counters.commands == 3  # those that were executed
    state = saved.state(Collected, (pipeline,))
    assert (state.done, state.pending) == (1, 1)
    copied = saved.copy().state(Collected, (pipeline,))
    assert copied is not state and (copied.done, copied.pending) == (1, 1)
    bench.put(DATA, [1])
    assert streamer.run() and (state.done, state.pending) == (2, 0)  # at the end of the submission
    assert bench.gpu.counters.commands == 5
    assert (copied.done, copied.pending) == (1, 1)


@pytest.mark.parametrize("gpu", ["g45", "ivb", "hsw"])
def test_the_next_part_of_a_ring_goes_on_with_the_context_that_is_loaded(gpu: str) -> None:
    """Drivers switch only to another context: state and registers of the one that is loaded stay, in parts of the ring that follow."""
    bench, image, register = Bench(gpu), 0x40_0000, 0x7FF4
    bench.ring(bench.load({register: 1}), bench.pack("MI_SET_CONTEXT", logical_context_address=image, restore_inhibit=1),
               bench.load({register: 2}), bench.pack("3DSTATE_LINE_STIPPLE"))  # fmt: skip
    bench.ring(bench.pack("3DSTATE_CHROMA_KEY"), bench.pack("MI_STORE_REGISTER_MEM", register_address=register, memory_address=DATA))
    bench.ring(bench.pack("MI_SET_CONTEXT", logical_context_address=image), bench.pack("3DSTATE_DRAWING_RECTANGLE"))
    assert set(bench.gpu.contexts[image, "render"].latched) == {"3DSTATE_LINE_STIPPLE", "3DSTATE_CHROMA_KEY", "3DSTATE_DRAWING_RECTANGLE"}
    assert bench.data(1) == [2] and not bench.gpu.contexts[0, "render"].latched
