"""What engines report about contexts: the status buffer in registers and in the status page, the context's own page, run time."""

from __future__ import annotations

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from tests.device.host import DATA, PAGE, STATUS_PAGE, Context, Host

HWS_PGA, EXECLIST_STATUS, STATUS_BUFFER, STATUS_POINTER, RUN_TIME = 0x80, 0x234, 0x370, 0x3A0, 0x3A8  # from an engine's base
CHIPS = ["bdw", "skl", "icl"]
STARTED = [1, 0]  # idle to active; no context


def ended(context: int) -> list[int]:
    return [0x18, context]  # complete, active to idle


def run_contexts(host: Host, count: int, engine: str = "render") -> None:
    """Contexts 1, 2, … one at a time: each is two events."""
    for number in range(1, count + 1):
        host.say(context := host.context(number, engine=engine), host.store(0, number))
        host.submit(context, engine=engine)


def buffer(host: Host, base: int) -> list[list[int]]:
    return [[host.gpu.read_register(base + STATUS_BUFFER + 8 * slot + 4 * dword) for dword in (0, 1)] for slot in range(6)]


# -- events --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gpu, contexts, pointer, entries",
    [
        ("skl", 1, 1, [STARTED, ended(1), [0, 0], [0, 0], [0, 0], [0, 0]]),
        ("skl", 3, 5, [STARTED, ended(1), STARTED, ended(2), STARTED, ended(3)]),
        ("skl", 4, 1, [STARTED, ended(4), STARTED, ended(2), STARTED, ended(3)]),  # six entries
        ("bdw", 5, 3, [STARTED, ended(4), STARTED, ended(5), STARTED, ended(3)]),
        ("icl", 4, 7, [STARTED, ended(1), STARTED, ended(2), STARTED, ended(3)]),  # twelve, of which registers have six
        ("icl", 5, 1, [STARTED, ended(1), STARTED, ended(2), STARTED, ended(3)]),  # entry 9, in three bits
        ("icl", 7, 1, [STARTED, ended(7), STARTED, ended(2), STARTED, ended(3)]),
    ],
)
@pytest.mark.parametrize("engine, base", [("render", 0x2000), ("blitter", 0x22000)])
def test_the_status_buffer_in_registers(gpu: str, contexts: int, pointer: int, entries: list[list[int]], engine: str, base: int) -> None:
    host = Host(gpu)
    run_contexts(host, contexts, engine)
    assert buffer(host, base) == entries
    assert host.gpu.read_register(base + STATUS_POINTER) == pointer


@pytest.mark.parametrize("gpu, entries, first, pointer", [("bdw", 6, 16, 31), ("skl", 6, 16, 31), ("icl", 12, 16, 47)])
def test_the_status_buffer_in_the_status_page(gpu: str, entries: int, first: int, pointer: int) -> None:
    """Entries are written round and round; the pointer is the number of the last one (KBL 11516-11522)."""
    host = Host(gpu)
    host.gpu.write_register(0x2000 + HWS_PGA, STATUS_PAGE)
    run_contexts(host, entries // 2 + 1)
    page = host.dwords(STATUS_PAGE, 64)
    contexts = [entries // 2 + 1, *range(2, entries // 2 + 1)]
    assert page[first : first + 2 * entries] == [dword for number in contexts for dword in (*STARTED, *ended(number))]
    assert page[pointer] == 1 and sum(map(bool, page)) == 3 * entries // 2 + 1


def test_without_a_status_page_nothing_is_written_to_memory() -> None:
    host = Host()
    run_contexts(host, 1)
    assert host.dwords(0, 64) == [0] * 64 and not host.gpu.remarks


def test_a_status_page_that_is_not_mapped_is_told() -> None:
    """The contexts run all the same, and registers say so."""
    host = Host()
    host.gpu.write_register(0x2000 + HWS_PGA, 0x900_0000)
    run_contexts(host, 1)
    assert host.dwords(DATA, 1) == [1] and buffer(host, 0x2000)[:2] == [STARTED, ended(1)]
    said = "the render engine's status page at 0x9000000 cannot be written: "
    assert host.gpu.remarks and all(remark.startswith(said) for remark in host.gpu.remarks)


def test_a_thousand_remarks_are_kept_each_once() -> None:
    gpu = GpuDevice(device("skl"))
    for number in [*range(500), *range(1001)]:
        gpu.warn(f"remark {number}")
    assert list(gpu.remarks) == [f"remark {number}" for number in range(1000)]


# -- the context's own page ------------------------------------------------------------------------------------------------


def own_page(host: Host, context: Context) -> dict[str, int]:
    page = host.dwords(context.address, 28)
    return {"run time": page[16], "first": page[17], "restored": page[20] | page[21] << 32, "saved": page[22] | page[23] << 32}


@pytest.mark.parametrize("gpu", CHIPS)
def test_only_the_first_element_of_an_execlist_is_said_to_be_first(gpu: str) -> None:
    """KBL 18226-18235; a context may be the first of one execlist and the second of another."""
    host = Host(gpu)
    first, second = host.context(7), host.context(8)
    for context in (first, second):
        host.say(context, host.store(0, 1))
    host.submit(first, second)
    assert (own_page(host, first)["first"], own_page(host, second)["first"]) == (1, 0)
    for context in (first, second):
        host.say(context, host.store(0, 1))
    host.submit(second, first)
    assert (own_page(host, first)["first"], own_page(host, second)["first"]) == (0, 1)


@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
def test_a_performance_report_names_the_context_that_asked_for_it(gpu: str) -> None:
    host = Host(gpu)
    for number in (5, 9):
        host.say(context := host.context(number), host.pack("MI_REPORT_PERF_COUNT", memory_address=DATA, report_id=number + 1))
        host.submit(context)
        assert host.dwords(DATA, 3)[::2] == [number + 1, number]


class Timed:
    """A host whose clock stands still unless it is set, with one context that runs while it waits."""

    def __init__(self, gpu: str) -> None:
        self.host, self.now = Host(gpu), 5 << 32
        self.host.gpu.clock = lambda: self.now
        self.context, self.done = self.host.context(1), 0

    def run(self, ticks: int, *commands: list[int]) -> dict[str, int]:
        """The context waits for some ticks, then executes the commands; its page after that."""
        self.done += 1
        self.host.say(self.context, self.host.wait(0, self.done), *commands)
        self.host.submit(self.context)
        self.now += ticks
        self.host.put(DATA, [self.done])
        self.host.gpu.poll()
        return own_page(self.host, self.context)

    def run_time(self) -> int:
        return self.host.gpu.read_register(0x2000 + RUN_TIME)

    def image(self) -> int:
        return self.host.dwords(self.context.address + PAGE + 4 * 0x23, 1)[0]


@pytest.mark.behaviour("KBL-CTX-08", "ICL-REG-06", shows="action")
@pytest.mark.parametrize("gpu", CHIPS)
def test_run_time_and_timestamps_to_the_tick(gpu: str) -> None:
    """Each spell adds to the run time, time between them does not; register, image and page agree."""
    timed, base = Timed(gpu), 5 << 32
    assert timed.run(100) == {"run time": 100, "first": 1, "restored": base, "saved": base + 100}
    assert (timed.run_time(), timed.image()) == (100, 100)
    timed.now += 1000
    assert timed.run_time() == 100
    assert timed.run(50) == {"run time": 150, "first": 1, "restored": base + 1100, "saved": base + 1150}
    assert (timed.run_time(), timed.image()) == (150, 150)
    run_contexts(timed.host, 1)  # another one, with a run time of its own
    timed.now += 1000
    assert timed.run(7)["run time"] == 157 and (timed.run_time(), timed.image()) == (157, 157)


@pytest.mark.parametrize("gpu", CHIPS)
def test_a_running_context_reads_and_writes_its_run_time(gpu: str) -> None:
    timed = Timed(gpu)
    host = timed.host
    read = host.pack("MI_STORE_REGISTER_MEM", register_address=0x2000 + RUN_TIME, memory_address=DATA + 4)
    timed.run(30, read)
    assert host.dwords(DATA + 4, 1) == [30]
    load = host.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x2000 + RUN_TIME, "data_dword": 0xFFFFFFFE}])
    assert timed.run(20, load, read)["run time"] == 0xFFFFFFFE  # counts from there
    assert host.dwords(DATA + 4, 1) == [0xFFFFFFFE]
    assert timed.run(5)["run time"] == 3 and timed.run_time() == 3  # 32 bits


def test_the_page_has_the_semaphore_only_of_a_context_that_waits_at_one() -> None:
    """KBL 18246-18250: dwords 24 to 27 are valid for a switch at a semaphore."""
    host = Host()
    host.say(context := host.context(1), host.store(0, 1))
    host.submit(context)
    assert host.dwords(context.address + 4 * 24, 8) == [0] * 8
    assert layout("MI_SEMAPHORE_WAIT", host.gen).dwords == 4


@pytest.mark.parametrize("gpu, idle, active", [("bdw", 0x100, 0x10), ("skl", 0x100, 0x10), ("icl", 0x8001, 0x80)])
def test_an_engine_answers_whether_it_is_active(gpu: str, idle: int, active: int) -> None:
    """EXECLIST_STATUS: while a context waits, and after it was completed."""
    host, answers = Host(gpu), list[int]()
    host.put(DATA, [0])
    answers.append(host.gpu.read_register(0x2000 + EXECLIST_STATUS))
    host.say(context := host.context(3), host.wait(0, 5))
    host.submit(context)
    answers.append(host.gpu.read_register(0x2000 + EXECLIST_STATUS))
    host.put(DATA, [6])
    host.gpu.poll()
    answers.append(host.gpu.read_register(0x2000 + EXECLIST_STATUS))
    assert answers == [idle, active, idle]
