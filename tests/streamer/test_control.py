"""The road's branches: predicated starts, offsets, conditional ends, levels; where the engine is; privilege."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from softgen.bits.catalogue import catalogue, layout
from softgen.bits.generation import GENERATIONS
from softgen.device.gpu import COMMANDS
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.execute import POLL_COMMANDS
from softgen.streamer.parser import Command, CommandParser
from softgen.streamer.privilege import privileged
from softgen.trace.work import Work
from tests.streamer.bench import BATCH, DATA, GPR, OTHER, RING, Bench

BB_OFFSET, RESULT_1 = 0x2158, 0x241C
IPEHR, ACTHD, ACTHD_UDW, RING_HEAD, EIR, EMR, ESR = 0x2068, 0x2074, 0x205C, 0x2034, 0x20B0, 0x20B4, 0x20B8
SBB_ADDR, SBB_ADDR_UDW = 0x2114, 0x211C
THIRD = OTHER + 0x800


@pytest.mark.parametrize("gpu", ["hsw", "bdw", "icl"])
def test_a_predicated_start_is_taken_only_where_the_predicate_holds(gpu: str) -> None:
    bench = Bench(gpu)
    bench.put(OTHER, bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    start = bench.start(OTHER, predication_enable=1, second_level_batch_buffer=1)
    bench.run(bench.load({RESULT_1: 0}), start, bench.store(4, 2))
    assert bench.data(2) == [0, 2]
    bench.run(bench.load({RESULT_1: 1}), start)
    assert bench.data(1) == [1]


@pytest.mark.parametrize("gpu", ["hsw", "bdw", "skl"])
def test_a_start_may_add_an_offset(gpu: str) -> None:
    bench = Bench(gpu)
    for at, value in ((OTHER, 6), (OTHER + 0x40, 7)):
        bench.put(at, bench.store(0, value), bench.pack("MI_BATCH_BUFFER_END"))
    for enable, value in ((1, 7), (0, 6)):
        bench.run(bench.load({BB_OFFSET: 0x40}), bench.start(OTHER, add_offset_enable=enable))
        assert bench.data(1) == [value]


@pytest.mark.behaviour("ICL-CS-18", shows="action")
@pytest.mark.parametrize("gpu, comes_back", [("bdw", False), ("icl", True)])
def test_a_third_level_only_on_the_newest(gpu: str, comes_back: bool) -> None:
    """Elsewhere a call out of the second level is a chain; and what is chained stays at its level."""
    bench = Bench(gpu)
    bench.put(OTHER, bench.start(THIRD, second_level_batch_buffer=1), bench.store(4, 2), bench.pack("MI_BATCH_BUFFER_END"))
    bench.put(THIRD, bench.start(THIRD + 0x100))  # a chain at the third level
    bench.put(THIRD + 0x100, bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    bench.run(bench.start(OTHER, second_level_batch_buffer=1), bench.store(8, 3))
    assert bench.data(3) == [1, 2 if comes_back else 0, 3]


@pytest.mark.parametrize("gpu", ["ivb", "hsw", "bdw", "skl", "icl"])
def test_a_conditional_end(gpu: str) -> None:
    """Memory that holds more than the command goes on; otherwise the batch ends."""
    bench = Bench(gpu)
    bench.put(DATA + 8, [5])
    for data, goes_on in ((4, True), (5, False), (6, False)):
        bench.put(DATA, [0])
        end = bench.pack("MI_CONDITIONAL_BATCH_BUFFER_END", compare_semaphore=1, compare_data_dword=data, compare_address=DATA + 8)
        bench.run(end, bench.store(0, 1))
        assert bench.data(1) == [int(goes_on)]
    bench.run(bench.pack("MI_CONDITIONAL_BATCH_BUFFER_END", compare_data_dword=9, compare_address=DATA + 8), bench.store(0, 2))
    assert bench.data(1) == [2]  # nothing is compared


def test_a_conditional_end_of_the_second_level_ends_the_first_too() -> None:
    bench = Bench()
    end = bench.pack("MI_CONDITIONAL_BATCH_BUFFER_END", compare_semaphore=1, compare_data_dword=9, compare_address=DATA + 8)
    bench.put(THIRD, end, bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    bench.put(OTHER, bench.start(THIRD, second_level_batch_buffer=1), bench.store(0, 2), bench.pack("MI_BATCH_BUFFER_END"))
    bench.ring(bench.start(OTHER), bench.store(4, 3))
    assert bench.data(2) == [0, 3]


def test_a_conditional_end_may_mask_what_it_compares() -> None:
    bench = Bench()
    bench.put(DATA + 8, [0xF0, 0x15])
    end = bench.pack(
        "MI_CONDITIONAL_BATCH_BUFFER_END", compare_semaphore=1, compare_mask_mode=1, compare_data_dword=0xF, compare_address=DATA + 8
    )
    bench.run(end, bench.store(0, 1))
    assert bench.data(1) == [1]  # 0x10 is more than 0xf
    bench.put(DATA + 8, [0xF0, 0x05])
    bench.run(end, bench.store(0, 2))
    assert bench.data(1) == [1]  # nothing of 5 is left behind the mask


@pytest.mark.parametrize("masked, second, goes_on", [(0, 0xF000_0000, True), (1, 0xF000_0000, False), (1, 0xFF00_0000, True)])
def test_a_conditional_end_reads_all_that_it_compares_and_no_more(masked: int, second: int, goes_on: bool) -> None:
    """One dword, or two with a mask: nothing is mapped after them."""
    bench, last = Bench(), RING + 0x1000 - 8
    bench.put(last, [0x1500_0000, second])
    end = bench.pack("MI_CONDITIONAL_BATCH_BUFFER_END", compare_semaphore=1, compare_data_dword=0x1400_0000, compare_address=last,
                     compare_mask_mode=masked)  # fmt: skip
    bench.run(end, bench.store(0, 1))
    assert bench.data(1) == [int(goes_on)]


@pytest.mark.parametrize("gpu", ["ivb", "bdw", "kbl", "icl"])
def test_the_state_register_says_in_which_space_a_batch_is(gpu: str) -> None:
    """BB_STATE and, for a second level, SBB_STATE: bit 5 where it is the context's (address space indicator)."""
    for indicator in (1, 0):
        bench = Bench(gpu)
        bench.put(THIRD, bench.pack("MI_BATCH_BUFFER_END"))
        inner = [] if gpu == "ivb" else [bench.start(THIRD, second_level_batch_buffer=1, address_space_indicator=indicator)]
        bench.put(OTHER, *inner, bench.pack("MI_BATCH_BUFFER_END"))
        bench.ring(bench.start(OTHER, address_space_indicator=indicator))
        for register in (0x2110, *([0x2118] if inner else [])):
            assert bench.gpu.registers.read(register) == indicator << 5


def test_noop_may_write_its_number() -> None:
    bench = Bench()
    bench.run(bench.pack("MI_NOOP", identification_number_register_write_enable=1, identification_number=0x1234), bench.pack("MI_NOOP"))
    assert bench.gpu.read_register(0x2094) == 0x1234


@pytest.mark.parametrize("disabled, value", [(0b0000, 0x0F1E2D3C), (0b0001, 0x0F1E2DC3), (0b0010, 0x0F1ED23C), (0b0100, 0x0FE12D3C),
                                             (0b1000, 0xF01E2D3C), (0b0101, 0x0FE12DC3), (0b1111, 0xF0E1D2C3)])  # fmt: skip
def test_load_register_imm_leaves_bytes_alone_that_it_is_told_to(disabled: int, value: int) -> None:
    """Of each register it loads."""
    bench = Bench()
    pairs = [{"register_offset": GPR + 4 * number, "data_dword": 0x0F1E2D3C} for number in range(2)]
    bench.run(bench.load64(GPR, 0xF0E1D2C3_F0E1D2C3), bench.pack("MI_LOAD_REGISTER_IMM", byte_write_disables=disabled, entry=pairs))
    assert bench.qword(GPR) == value << 32 | value


@pytest.mark.behaviour("ICL-CS-17", shows="layout")
def test_the_commands_the_manual_lists_for_the_render_engine() -> None:
    """ICL 197-246, 1477-1483: each is executed, or one of those of the display, which say that there is none."""
    listed = """NOOP ARB_CHECK ARB_ON_OFF BATCH_BUFFER_START BATCH_BUFFER_END CONDITIONAL_BATCH_BUFFER_END DISPLAY_FLIP LOAD_SCAN_LINES_EXCL
        LOAD_SCAN_LINES_INCL CLFLUSH MATH REPORT_HEAD STORE_DATA_IMM ATOMIC COPY_MEM_MEM LOAD_REGISTER_REG LOAD_REGISTER_MEM
        STORE_REGISTER_MEM SUSPEND_FLUSH USER_INTERRUPT WAIT_FOR_EVENT SEMAPHORE_SIGNAL SEMAPHORE_WAIT FORCE_WAKEUP SET_CONTEXT
        TOPOLOGY_FILTER LOAD_REGISTER_IMM REPORT_PERF_COUNT PREDICATE"""
    for name in listed.split():
        page = layout(f"MI_{name}", 11)
        assert "render" in page.engines
        assert page.name in COMMANDS or name.startswith(("BATCH_BUFFER", "DISPLAY", "LOAD_SCAN"))


@pytest.mark.behaviour("BDW-CS-05", shows="action")
def test_what_is_unknown_is_passed_over_by_its_length() -> None:
    bench = Bench("bdw")
    bench.put(OTHER, [0x7BFF0003, 1, 2, 3, 4], bench.pack("MI_NOOP"), bench.pack("MI_USER_INTERRUPT"), bench.pack("MI_BATCH_BUFFER_END"))
    walked = [command.name
              for command in CommandParser(bench.device.generation, "render", bench.space).batch(OTHER) if isinstance(command, Command)]
    assert walked == [None, "MI_NOOP", "MI_USER_INTERRUPT", "MI_BATCH_BUFFER_END"]


def test_there_is_no_display_to_wait_for() -> None:
    bench = Bench()
    bench.run(bench.pack("MI_WAIT_FOR_EVENT"))
    with pytest.raises(Unsupported, match=r"MI_WAIT_FOR_EVENT at 0x10000 .*no display"):
        bench.run(bench.pack("MI_WAIT_FOR_EVENT", display_pipe_a_vertical_blank_wait_enable=1))


# -- where it is, and what went wrong --------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-CS-08", "ICL-CS-09", shows="action")
@pytest.mark.parametrize("gpu", ["g45", "ivb", "bdw", "icl"])
def test_registers_follow_the_parser(gpu: str) -> None:
    """The head has passed what was executed, at the end it is the tail; header and address are of the last command."""
    bench = Bench(gpu)
    read = bench.pack("MI_STORE_REGISTER_MEM", register_address=RING_HEAD, memory_address=DATA)
    noop = bench.pack("MI_NOOP")
    bench.ring(noop, noop, read, noop)
    assert bench.data(1) == [8]
    registers = bench.gpu.registers
    assert registers.read(RING_HEAD) == 4 * (3 + len(read))
    assert (registers.read(IPEHR), registers.read(ACTHD)) == (0, RING + 4 * (2 + len(read)))


@pytest.mark.parametrize("gpu", ["bdw", "icl"])
def test_a_commands_address_has_two_halves(gpu: str) -> None:
    bench, high = Bench(gpu), 0x7_0000_0000
    bench.space.map(high, bench.buffer)
    bench.put(BATCH, bench.pack("MI_NOOP"), bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.execute(Work("render", bench.space, high))
    assert (bench.gpu.read_register(ACTHD), bench.gpu.read_register(ACTHD_UDW)) == (4, 7)
    bench.put(OTHER, bench.pack("MI_BATCH_BUFFER_END"))
    bench.run(bench.start(high + OTHER - BATCH, second_level_batch_buffer=1))
    assert (bench.gpu.read_register(SBB_ADDR), bench.gpu.read_register(SBB_ADDR_UDW)) == (OTHER - BATCH, 7)


def test_the_head_is_the_engines_own() -> None:
    """A batch that loads it finds it where the ring is, after its next command."""
    bench = Bench()
    read = bench.pack("MI_STORE_REGISTER_MEM", register_address=RING_HEAD, memory_address=DATA)
    bench.put(OTHER, bench.load({RING_HEAD: 0x40}), bench.pack("MI_NOOP"), read, bench.pack("MI_BATCH_BUFFER_END"))
    start = bench.start(OTHER, address_space_indicator=0)
    bench.ring(bench.pack("MI_NOOP"), start, bench.pack("MI_NOOP"))
    assert bench.data(1) == [4 * (1 + len(start))]


@pytest.mark.behaviour("KBL-CS-14", "KBL-CS-16", shows="action")
@pytest.mark.parametrize("engine, base", [("render", 0x2000), ("blitter", 0x22000), ("video", 0x12000), ("video_enhance", 0x1A000)])
def test_what_is_no_command_is_a_fatal_error_of_its_engine(engine: str, base: int) -> None:
    """The mask keeps it from the identity register and from being an interrupt; ones do not clear it."""
    bench = Bench()
    with pytest.raises(DecodeError, match="is no command"):
        bench.run([0x3F800000 | 0x80000000], engine=engine)
    registers = bench.gpu.registers
    assert registers.read(base + 0xB8) == 1 and registers.read(base + 0xB0) == 0 and not bench.causes()
    registers.write(base + 0xB4, 0)
    with pytest.raises(DecodeError):
        bench.run([0x3F800000 | 0x80000000], engine=engine)
    assert registers.read(base + 0xB0) == 1 and registers.read(base + 0x68) == 0xBF800000 and bench.causes() == ["error"]
    registers.write(base + 0xB0, 0xFFFFFFFF)
    assert registers.read(base + 0xB0) == 1
    assert not any(registers.read(other + 0xB8) for other in (0x2000, 0x22000, 0x12000, 0x1A000) if other != base)


def test_the_watchdog_sees_what_is_no_command() -> None:
    bench = Bench("icl")
    with pytest.raises(DecodeError):
        bench.run(bench.load({0x217C: 1}), bench.load({0x2178: 0xFFFFFFFF}), [0xBF800000])
    assert bench.causes() == ["timeout"]


@pytest.mark.behaviour("KBL-CS-15", shows="action")
@pytest.mark.parametrize(
    "denied",
    [
        {"name": "MI_ARB_ON_OFF"},
        {"name": "MI_LOAD_REGISTER_IMM", "entry": [{"register_offset": 0x2030, "data_dword": 8}]},
        {"name": "MI_LOAD_REGISTER_IMM", "entry": [{"register_offset": at, "data_dword": 8} for at in (GPR, 0x2030)]},
        {"name": "MI_LOAD_REGISTER_MEM", "register_address": 0x2080, "memory_address": DATA},
    ],
)
def test_a_privileged_command_in_a_batch_that_is_not_is_a_noop(denied: dict) -> None:  # type: ignore[type-arg]
    bench = Bench()
    bench.gpu.registers.write(EMR, 0)
    bench.put(DATA, [0x5000])
    bench.put(OTHER, bench.pack(**denied), bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    bench.ring(bench.start(OTHER, address_space_indicator=1))
    registers = bench.gpu.registers
    assert bench.data(1) == [1] and registers.read(0x2030) == registers.read(0x2080) == 0
    assert registers.read(EIR) == registers.read(ESR) == 4 and bench.causes() == ["error"]
    assert any("read as MI_NOOP" in remark for remark in bench.gpu.remarks)
    registers.write(EIR, 4)
    assert registers.read(EIR) == 0
    bench.ring(bench.start(OTHER, address_space_indicator=0))
    assert registers.read(EIR) == 0  # from the global space it may


def test_a_batch_that_is_not_privileged_cannot_reach_the_global_space() -> None:
    """Its bits that ask for it are taken as clear."""
    bench, other, page = Bench(), AddressSpace("global", 48), MemfdBuffer(0x2000, "global pages")
    other.map(DATA, page)
    bench.put(OTHER, bench.pack("MI_STORE_DATA_IMM", address=DATA, immediate_data=1 << 33 | 9, use_global_gtt=1),
              bench.pack("PIPE_CONTROL", post_sync_operation=1, address=DATA + 8, immediate_data=7, destination_address_type=1),
              bench.pack("MI_BATCH_BUFFER_END"))  # fmt: skip
    ring = bench.start(OTHER, address_space_indicator=1)
    page.view[0x1000 : 0x1000 + 4 * len(ring)] = struct.pack(f"<{len(ring)}I", *ring)
    bench.gpu.execute(Work("render", bench.space, RING, "ring", tail=4 * len(ring), size=0x1000, global_space=other))
    assert not page.array[:16].any() and bench.data(3)[::2] == [9, 7]


@pytest.mark.behaviour("ICL-CS-13", shows="action")
@pytest.mark.parametrize("slot, value, given", [(11, 0x20A8, True), (0, 0x20AB, True), (11, 0x20AC, False), (11, 0x20A4, False)])
def test_a_register_may_be_given_to_batches_that_are_not_privileged(slot: int, value: int, given: bool) -> None:
    """Bits 1:0 are no part of its offset."""
    bench = Bench("icl")
    load = bench.load({0x20A8: 5})
    bench.put(OTHER, load, bench.pack("MI_BATCH_BUFFER_END"))
    bench.ring(bench.start(OTHER, address_space_indicator=1))
    assert bench.gpu.read_register(0x20A8) == 0xFFFFFFFF
    bench.ring(bench.load({0x24D0 + 4 * slot: value}), bench.start(OTHER, address_space_indicator=1))
    assert bench.gpu.read_register(0x20A8) == (5 if given else 0xFFFFFFFF)


@pytest.mark.parametrize("kind", ["registers", "context_registers"])
def test_privileged_registers_have_pages(kind: str) -> None:
    known = {name for gen in GENERATIONS for name in privileged(kind) if catalogue().get(name, gen) is not None}
    assert known == privileged(kind)


@pytest.mark.parametrize("gpu, register, kept", [
    *(("icl", 0x2000 + at, False) for at in (0x30, 0x34, 0x38, 0x3C, 0x9C, 0xA8, 0x1C0, 0x1C4, 0x244, 0x270, 0x29C)),
    ("kbl", 0x44300, False), ("icl", 0xC800, False), ("hsw", 0x2228, False), ("hsw", 0x2220, False), ("hsw", 0x209C, False),
    *(("icl", 0x2000 + at, True) for at in (0x178, 0x17C, 0xC0, 0x410, 0x500, 0x600)),
    *(("icl", at, True) for at in (0x5280, 0x7008, 0x7034, 0xE18C, 0xE194, 0xE5F4, 0xB0A4)),
    ("kbl", 0x7004, True), ("kbl", 0x20D8, True), ("kbl", 0x2580, True), ("bdw", 0x2248, True), ("hsw", 0xB010, True),
    ("hsw", 0xB020, True), ("hsw", 0xB038, True), ("hsw", 0xE49C, True), ("hsw", 0x2440, True), ("ivb", 0xB024, True),
    ("ivb", 0x20C0, True),
])  # fmt: skip
def test_what_a_batch_that_is_not_privileged_may_load(gpu: str, register: int, kept: bool) -> None:
    """Registers of rings, contexts, page tables and interrupts are the kernel driver's; what batches of Mesa's and Intel's drivers load
    (all captures at hand), the media driver's watchdog among it, is theirs."""
    bench = Bench(gpu)
    before = bench.gpu.read_register(register)
    bench.put(BATCH, bench.load({register: before ^ 0x0001_0001}), bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.execute(Work("render", bench.space, BATCH, privileged=False))
    assert (bench.gpu.read_register(register) != before) is kept
    assert any("read as MI_NOOP" in remark for remark in bench.gpu.remarks) is not kept


def test_registers_show_the_last_command_that_only_needed_its_handler() -> None:
    """Its address and header are not written while nothing can look at them."""
    bench = Bench()
    flush = bench.pack("MEDIA_STATE_FLUSH")
    with pytest.raises(DecodeError, match="GPGPU_WALKER at"):
        bench.run(flush, bench.pack("GPGPU_WALKER", **dict.fromkeys((f"thread_group_id_{axis}_dimension" for axis in "xyz"), 1)))
    assert bench.gpu.registers.read(ACTHD) == BATCH + 4 * len(flush) and bench.gpu.registers.read(IPEHR) >> 16 == 0x7105


def test_a_command_that_reads_registers_finds_itself_there() -> None:
    bench = Bench()
    flush, read = bench.pack("MEDIA_STATE_FLUSH"), bench.pack("MI_STORE_REGISTER_MEM", register_address=ACTHD, memory_address=DATA)
    bench.run(flush, flush, read)
    assert bench.space.read32(DATA) == BATCH + 4 * 2 * len(flush)


def test_the_time_is_looked_at_after_a_command_that_changed_memory() -> None:
    """It may have taken long."""
    bench = Bench("kbl", timed_out=lambda: bench.data(1) == [1])
    bench.space.write(DATA + 16, b"\x01")
    with pytest.raises(SoftgenError, match="time is up"):
        bench.run(*(bench.pack("MI_COPY_MEM_MEM", source_memory_address=DATA + 16, destination_memory_address=DATA + at) for at in (0, 4)))
    assert bench.data(2) == [1, 0]


@pytest.mark.parametrize("times", [1, 2])
def test_the_time_is_looked_at_in_a_long_row_of_commands(times: int) -> None:
    """That need no more than their handlers: every so many of them."""
    polls = iter([False] * times)
    bench = Bench("kbl", timed_out=lambda: next(polls, True))
    with pytest.raises(SoftgenError, match="time is up"):
        bench.run(*[bench.pack("MI_ARB_CHECK")] * (3 * POLL_COMMANDS))
    assert bench.gpu.counters.commands == times * POLL_COMMANDS


def test_state_commands_up_to_the_last_byte_that_is_mapped() -> None:
    bench = Bench("kbl")
    state = bench.pack("3DSTATE_VF_TOPOLOGY", primitive_topology_type=4)
    end = BATCH + 0x4000
    start = end - 4 * 20 * len(state)
    bench.put(start, *[state] * 20)
    with pytest.raises(GpuFault, match=f"command fetch at {end:#x}"):
        bench.gpu.execute(Work("render", bench.space, start))


@pytest.mark.parametrize("gpu", ["hsw", "bdw", "kbl"])
def test_the_global_table_is_changed_by_its_owner(gpu: str) -> None:
    """The device gets the address and all entries; without a table that can be changed the command is refused."""
    bench, seen = Bench(gpu), list[tuple[int, list[int]]]()
    update = bench.pack("MI_UPDATE_GTT", entry_address=0xA0_0000, entry=[{"entry_data": 0x1001}, {"entry_data": 0x2001}])
    with pytest.raises(Unsupported, match="no global table"):
        bench.run(update)
    bench.gpu.interface = replace(bench.gpu.interface, update_table=lambda address, entries: seen.append((address, entries)))
    bench.run(update)
    assert seen == [(0xA0_0000, [0x1001, 0x2001])]


@pytest.mark.parametrize("gpu", ["hsw", "bdw", "skl", "icl"])
def test_the_resource_streamer_stores_a_dword(gpu: str) -> None:
    bench = Bench(gpu)
    bench.put(DATA, [1, 2, 3])
    bench.run(bench.pack("MI_RS_STORE_DATA_IMM", destination_address=DATA + 4, data_dword_0=0x89AB_CDEF))
    assert bench.data(3) == [1, 0x89AB_CDEF, 3]


@pytest.mark.parametrize("gpu", ["ivb", "hsw", "bdw", "skl", "icl"])
def test_the_last_topology_filter_is_state(gpu: str) -> None:
    bench = Bench(gpu)
    bench.run(*(bench.pack("MI_TOPOLOGY_FILTER", topology_filter_value=value) for value in (4, 5)))
    assert bench.gpu.contexts[0, "render"].latched["MI_TOPOLOGY_FILTER"].topology_filter_value == 5


def test_commands_after_a_change_of_the_global_table_are_those_it_maps_now() -> None:
    """None that was read ahead is executed."""
    bench = Bench()
    update = bench.pack("MI_UPDATE_GTT", entry_address=0xA0_0000, entry=[{"entry_data": 1}])

    def remap(address: int, entries: list[int]) -> None:
        bench.put(BATCH + 4 * len(update), bench.store(0, 2))

    bench.gpu.interface = replace(bench.gpu.interface, update_table=remap)
    bench.run(update, bench.store(0, 1))
    assert bench.data(1) == [2]
