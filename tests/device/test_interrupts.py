"""Interrupts in registers, and the watchdog."""

from __future__ import annotations

import itertools

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.trace.work import Work
from tests.device.host import STATUS_PAGE, Host
from tests.streamer.bench import BATCH, DATA, Bench

IMR, HWSTAM = 0xA8, 0x98
BITS = {"user": 0, "error": 3, "notify": 4, "timeout": 6, "page_fault": 7, "context_switch": 8, "semaphore": 11}
# engine's start -> (status, mask, identity, enable), lowest bit
PLACES = {0x2000: (0x44300, 0), 0x22000: (0x44300, 16), 0x12000: (0x44310, 0), 0x1C000: (0x44310, 16), 0x1A000: (0x44330, 0)}


def gpu(name: str = "kbl") -> GpuDevice:
    return GpuDevice(device(name), itertools.count(1).__next__)


@pytest.mark.behaviour("KBL-INT-02", "KBL-INT-03", shows="action")
@pytest.mark.parametrize("base", PLACES)
@pytest.mark.parametrize("cause", BITS)
def test_each_engine_has_its_bits(base: int, cause: str) -> None:
    made, (first, shift) = gpu(), PLACES[base]
    made.write_register(base + IMR, 0)
    made.write_register(first + 4, 0)
    made.interrupt(base, cause)
    assert made.read_register(first + 8) == 1 << BITS[cause] + shift


@pytest.mark.behaviour("KBL-INT-01", shows="action")
def test_status_mask_identity_enable() -> None:
    """Masked bits do not reach the identity register; ones clear it; one more event is remembered and comes back."""
    made = gpu()
    assert made.read_register(0x44304) == 0xFFFFFFFF
    made.write_register(0x2000 + IMR, 0)
    made.interrupt(0x2000, "user")
    assert made.read_register(0x44308) == 0
    made.write_register(0x44304, 0)
    made.interrupt(0x2000, "notify")
    assert made.read_register(0x44308) == 0x10 and not made.interrupts.asserted()
    made.write_register(0x4430C, 0x10)
    assert made.interrupts.asserted()
    for _ in range(3):
        made.interrupt(0x2000, "user")
    made.write_register(0x44308, 0x10)
    assert made.read_register(0x44308) == 1
    made.write_register(0x44308, 1)
    assert made.read_register(0x44308) == 1  # the second
    made.write_register(0x44308, 1)
    assert made.read_register(0x44308) == 0  # a third was not remembered


@pytest.mark.parametrize("ones", [0, 0x10, 0xFFFFFFFF])
def test_bits_that_are_cleared_before_anything_happened_stay_clear(ones: int) -> None:
    made = gpu()
    made.write_register(0x44308, ones)
    assert made.read_register(0x44308) == 0 and not made.interrupts.asserted()
    made.write_register(0x4430C, 0xFFFFFFFF)
    assert not made.interrupts.asserted()


def test_an_interrupt_that_came_once_does_not_come_back() -> None:
    made = gpu()
    made.write_register(0x2000 + IMR, 0)
    made.write_register(0x44304, 0)
    made.interrupt(0x2000, "user")
    assert made.read_register(0x44308) == 1
    made.write_register(0x44308, 1)
    assert made.read_register(0x44308) == 0


def test_the_last_4096_events_are_kept() -> None:
    made = gpu()
    for cause in ("error", *["user"] * 4095, "notify"):
        made.interrupt(0x2000, cause)
    causes = [event.cause for event in made.interrupts.events]
    assert causes == [*["user"] * 4095, "notify"]


def test_an_engines_own_mask() -> None:
    made = gpu()
    made.write_register(0x44304, 0)
    made.interrupt(0x2000, "user")
    assert made.read_register(0x44308) == 0 and [event.cause for event in made.interrupts.events] == ["user"]


@pytest.mark.behaviour("KBL-CTX-07", shows="action")
def test_the_status_page_gets_a_copy_of_what_its_mask_lets_through() -> None:
    host = Host("kbl")
    host.gpu.write_register(0x2080, STATUS_PAGE | 0xFFF)  # what is below bit 12 is no part of the address
    host.say(context := host.context(1), host.pack("MI_USER_INTERRUPT"), host.pack("MI_NOOP"))
    host.submit(context)
    assert host.dwords(STATUS_PAGE, 1) == [0]
    host.gpu.write_register(0x2000 + HWSTAM, 0xFFFFFFFE)
    host.say(context, host.pack("MI_REPORT_HEAD"), host.pack("MI_USER_INTERRUPT"))
    host.submit(context)
    assert host.dwords(STATUS_PAGE, 5) == [1, 0, 0, 0, 0]
    assert host.dwords(context.address, 5)[4] == 8  # the context's own page has the head


def test_a_device_without_global_memory_has_no_status_page() -> None:
    """Work that is handed to it brings its own memory; an address in HWS_PGA means nothing then."""
    made = gpu()
    made.write_register(0x2080, STATUS_PAGE)
    made.write_register(0x2000 + HWSTAM, 0)
    heard: list[object] = []
    made.interrupts.on_event = heard.append
    made.interrupt(0x2000, "user")
    assert [event.cause for event in made.interrupts.events] == ["user"] and heard == list(made.interrupts.events)


@pytest.mark.behaviour("ICL-WD-01", "ICL-WD-02", "ICL-WD-03", shows="action")
def test_the_watchdog() -> None:
    """All ones start it, zeros stop it; at the threshold there is an interrupt and it starts again. Nobody can read the counter."""
    bench = Bench("icl")
    noops = [bench.pack("MI_NOOP")] * 100
    control, threshold = 0x2178, 0x217C
    bench.run(*noops)
    assert not bench.causes()
    bench.run(bench.load({threshold: 30}), bench.load({control: 0xFFFFFFFF}), *noops, bench.load({control: 0}), *noops)
    assert bench.causes() == ["timeout"] * 3
    assert bench.gpu.read_register(control) == 0 and bench.gpu.read_register(threshold) == 30
    reads = [bench.pack("MI_STORE_REGISTER_MEM", register_address=at, memory_address=DATA + 4 * n)
             for n, at in enumerate((control, threshold, control, threshold))]  # fmt: skip
    bench.run(bench.load({control: 0xFFFFFFFF}), *noops[:9], *reads[:2], *noops[:5], *reads[2:], bench.load({control: 0}))
    assert bench.data(4) == [0xFFFFFFFF, 30, 0xFFFFFFFF, 30]  # what was written, and no count


def test_each_context_has_a_watchdog_of_its_own() -> None:
    """Also where its commands let it run on: those of other contexts are not counted, and it goes on with the context's next ones."""
    bench = Bench("icl")
    contexts = [bench.gpu.new_context("render") for _ in range(2)]

    def run(number: int, *commands: list[int]) -> int:
        bench.put(BATCH, *commands, *[bench.pack("MI_NOOP")] * 50, bench.pack("MI_BATCH_BUFFER_END"))
        before, execution = len(bench.causes()), bench.gpu.begin(Work("render", bench.space, BATCH, privileged=False), contexts[number])
        execution.run_to_end()
        return len(bench.causes()) - before

    assert run(0, bench.load({0x217C: 30}), bench.load({0x2178: 0xFFFFFFFF})) == 1
    assert run(1) == 0 and run(1, bench.load({0x217C: 5})) == 0
    assert run(0) == 1 and run(0, bench.load({0x2178: 0})) == run(0) == run(1) == 0


@pytest.mark.behaviour("ICL-WD-04", shows="action")
def test_a_watchdog_without_a_threshold_is_told() -> None:
    bench = Bench("icl")
    bench.run(bench.load({0x2178: 0xFFFFFFFF}), *[bench.pack("MI_NOOP")] * 3, bench.load({0x2178: 0}))
    assert len(bench.causes()) >= 3 and any("started without a threshold" in remark for remark in bench.gpu.remarks)


@pytest.mark.behaviour("ICL-CTX-06", "ICL-CTX-07", shows="action")
def test_a_host_that_touches_a_contexts_registers() -> None:
    """It stops the engine from idling first, and waits until the engine says so. Bits whose mask bit is clear stay (ICL 1881-1892)."""
    made = gpu("icl")
    made.write_register(0x2600, 5)
    assert list(made.remarks) == ["CS_GPR[0] at 0x2600 belongs to contexts; hosts may write it only while idle messages are disabled"]
    assert made.read_register(0x22A4) & 0x7F == 0
    made.write_register(0x2050, 0x0000_0001)
    assert made.read_register(0x22A4) & 0x7F == 0
    made.write_register(0x2050, 0x0001_0001)
    assert made.read_register(0x22A4) & 0x7F == 0x30
    made.write_register(0x2050, 0x0000_0000)
    assert made.read_register(0x22A4) & 0x7F == 0x30
    made.write_register(0x2608, 5)
    made.write_register(0x2050, 0x0001_0000)
    assert len(made.remarks) == 1 and made.read_register(0x22A4) & 0x7F == 0


@pytest.mark.parametrize("name, cause, bit", [
    ("kbl", "user", 1), ("kbl", "page_fault", 0x80), ("icl", "context_switch", 0x100), ("icl", "page_fault", 0), ("ivb", "notify", 0x10),
    ("ivb", "context_switch", 0), ("g45", "user", 0),
])  # fmt: skip
def test_what_has_no_bit_on_a_gpu_is_an_event_all_the_same(name: str, cause: str, bit: int) -> None:
    made = gpu(name)
    assert made.interrupts.raised(0x2000, cause) == bit and [event.cause for event in made.interrupts.events] == [cause]


def test_the_page_of_interrupt_bits() -> None:
    fields = {field.name: field.low for field in layout("ENGINE_INTERRUPT", 9).fields}
    assert fields == BITS


@pytest.mark.behaviour("ICL-WD-05", shows="action")
@pytest.mark.parametrize("disabled", [True, False])
def test_the_watchdog_is_disabled_before_waits_and_in_its_batch(disabled: bool) -> None:
    """While it counts the engine does not idle: software disables it around semaphores, in the batch that enabled it (ICL 257-260)."""
    bench = Bench("icl")
    enable, disable = bench.load({0x217C: 1 << 30, 0x2178: 0xFFFFFFFF}), bench.load({0x2178: 0})
    wait = bench.pack("MI_SEMAPHORE_WAIT", wait_mode=1, compare_operation=4, semaphore_data_dword=5, semaphore_address=0x12000)
    with pytest.raises(SoftgenError, match="waits for ever"):
        bench.run(enable, *([disable] if disabled else []), wait)
    assert any("the watchdog runs while a semaphore is waited for" in text for text in bench.gpu.remarks) != disabled
    other = Bench("icl")
    other.run(enable, *([disable] if disabled else []))
    assert any("the watchdog runs at the end of a batch" in text for text in other.gpu.remarks) != disabled
