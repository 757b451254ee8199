"""Rings that their registers describe: head and tail, page tables of Gen7, waiting, contexts that a ring loads."""

from __future__ import annotations

import pytest

from softgen.errors import SoftgenError
from tests.device.host import DATA, PAGE, STATUS_PAGE, Host
from tests.device.test_engines import load


@pytest.mark.behaviour("ICL-CS-05", "ICL-CS-07", shows="action")
@pytest.mark.parametrize(
    "gpu, engine, base",
    [("gm965", "render", 0x2000), ("g45", "render", 0x2000), ("ivb", "render", 0x2000),
     ("ivb", "blitter", 0x22000), ("hsw", "video_enhance", 0x1A000)],
)
def test_a_ring_runs_from_its_head_to_the_tail_that_is_written(gpu: str, engine: str, base: int) -> None:
    host = Host(gpu)
    ring = host.pages(1)
    store = host.store(0, 1)
    store += [0] * (len(store) % 2)
    host.put(ring + 8, store)
    for offset, value in ((0x38, ring), (0x34, 8), (0x3C, 1), (0x30, 8 + 4 * len(store))):
        host.gpu.write_register(base + offset, value)
    assert host.dwords(DATA, 1) == [1] and host.gpu.read_register(base + 0x34) == 8 + 4 * len(store)
    more = host.store(4, 2)
    more += [0] * (len(more) % 2)
    host.put(ring + 8 + 4 * len(store), more)
    host.put(DATA, [0])
    host.gpu.write_register(base + 0x30, 8 + 4 * len(store) + 4 * len(more))
    assert host.dwords(DATA, 2) == [0, 2]


@pytest.mark.parametrize("gpu", ["ivb", "hsw"])
@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("base", [0x2000, 0x22000])
def test_a_rings_commands_use_the_tables_that_its_registers_name(gpu: str, enabled: bool, base: int) -> None:
    """Where GFX_MODE enables per-process tables; PP_DIR_BASE counts cachelines of the global table, from bit 16 on."""
    host = Host(gpu)
    ring, table, directory = host.pages(1), host.pages(1), 0x800  # entries of the global table
    host.memory.write_entry(directory + 1, table | 1)
    number = (DATA - 0x40_0000) // PAGE
    host.memory.physical.write(table + 4 * number, (DATA + PAGE | 3).to_bytes(4, "little"))
    store = host.store(0, 1)
    host.put(ring, store, [0] * (len(store) % 2))
    tail = 4 * (len(store) + len(store) % 2)
    mode = 0x0200_0200 if enabled else 0x0200_0000
    for offset, value in ((0x29C, mode), (0x228, directory * 4 << 10), (0x220, 0xFFFFFFFF), (0x38, ring), (0x3C, 1), (0x30, tail)):
        host.gpu.write_register(base + offset, value)
    assert (host.dwords(DATA, 1), host.dwords(DATA + PAGE, 1)) == (([0], [1]) if enabled else ([1], [0]))


@pytest.mark.parametrize(("valid", "fine"), [(0xFFFFFFFF, True), (1, True), (0, True), (2, False), (0xFFFFFFFE, False)])
def test_cachelines_of_a_directory_that_are_valid(valid: int, fine: bool) -> None:
    """PP_DIR_DCLV has a bit for sixteen entries of the directory; one that was never written leaves all valid."""
    host = Host("ivb")
    ring, table, directory = host.pages(1), host.pages(1), 0x800
    host.memory.write_entry(directory + 1, table | 1)
    host.memory.physical.write(table, (DATA + PAGE | 3).to_bytes(4, "little"))
    store = host.store(0, 1)
    host.put(ring, store, [0] * (len(store) % 2))
    for offset, value in ((0x29C, 0x0200_0200), (0x228, directory * 4 << 10), (0x220, valid), (0x38, ring), (0x3C, 1)):
        host.gpu.write_register(0x2000 + offset, value)
    tail = 4 * (len(store) + len(store) % 2)
    if fine:
        host.gpu.write_register(0x2030, tail)
        assert host.dwords(DATA + PAGE, 1) == [1]
        return
    with pytest.raises(SoftgenError, match="page directory entry 1 is not valid in PP_DIR_DCLV"):
        host.gpu.write_register(0x2030, tail)
    assert not host.gpu.engines[0x2000].busy()


def test_a_ring_that_is_not_enabled_does_not_run() -> None:
    host = Host("ivb")
    store = host.store(0, 1)
    store += [0] * (len(store) % 2)
    host.put(ring := host.pages(1), store)
    for offset, value in ((0x38, ring), (0x3C, 0), (0x30, 4 * len(store))):
        host.gpu.write_register(0x2000 + offset, value)
    assert host.dwords(DATA, 1) == [0] and not host.gpu.engines[0x2000].busy()
    for offset, value in ((0x3C, 1), (0x30, 4 * len(store))):
        host.gpu.write_register(0x2000 + offset, value)
    assert host.dwords(DATA, 1) == [1]


@pytest.mark.parametrize("gpu", ["gm965", "g45", "ivb", "hsw"])
def test_a_ring_that_has_run_to_its_tail_may_be_moved(gpu: str) -> None:
    """The engine is idle; the next tail starts the ring at its new place and head."""
    host = Host(gpu)
    for number, head in enumerate((0, 16)):
        store = host.store(4 * number, 7 + number)
        store += [0] * (len(store) % 2)
        host.put((ring := host.pages(1)) + head, store)
        for offset, value in ((0x38, ring), (0x34, head), (0x3C, 1), (0x30, head + 4 * len(store))):
            host.gpu.write_register(0x2000 + offset, value)
        assert not host.gpu.engines[0x2000].busy() and host.gpu.read_register(0x2034) == head + 4 * len(store)
    assert host.dwords(DATA, 3) == [7, 8, 0]


def test_two_rings_with_a_mailbox() -> None:
    host = Host("ivb")
    rings = {0x2000: host.pages(1), 0x22000: host.pages(1)}
    wait = host.pack("MI_SEMAPHORE_MBOX", compare_semaphore=1, compare_register=1, register_select=2, semaphore_data_dword=4)
    host.put(rings[0x2000], wait, host.store(0, 1), [0])
    host.put(rings[0x22000], load(host, 0x2044, 5), [0])
    for base, tail in ((0x2000, 32), (0x22000, 16)):
        for offset, value in ((0x38, rings[base]), (0x3C, 1), (0x30, tail)):
            host.gpu.write_register(base + offset, value)
        assert host.dwords(DATA, 1) == [int(base == 0x22000)]


@pytest.mark.parametrize("gpu", ["ivb", "hsw"])
@pytest.mark.parametrize("again", [True, False])
def test_a_context_stays_loaded_when_the_ring_runs_dry(gpu: str, again: bool) -> None:
    """Drivers switch contexts only when another one is to run; a switch to the one that is loaded does nothing."""
    host, base, image = Host(gpu), 0x2000, 0x40_0000
    ring = host.pages(1)
    switch = host.pack("MI_SET_CONTEXT", logical_context_address=image, restore_inhibit=1)
    first = [*switch, *host.pack("3DSTATE_SAMPLE_MASK", sample_mask=3)]
    then = [*(host.pack("MI_SET_CONTEXT", logical_context_address=image) if again else [0, 0]), *host.pack("3DSTATE_CLIP")]
    then += [0] * (len(then) % 2)
    host.put(ring, first, then)
    for offset, value in ((0x38, ring), (0x34, 0), (0x3C, 1), (0x30, 4 * len(first)), (0x30, 4 * len(first + then))):
        host.gpu.write_register(base + offset, value)
    assert set(host.gpu.contexts[image, "render"].latched) == {"3DSTATE_SAMPLE_MASK", "3DSTATE_CLIP"}
    assert not host.gpu.contexts[0, "render"].latched


@pytest.mark.parametrize("blitter_first", [False, True])
def test_a_ring_that_waits_goes_on_to_the_tail_that_was_written_meanwhile(blitter_first: bool) -> None:
    """The second tail is taken while the ring waits, and again when it does not: each command is executed once."""
    host = Host("ivb")
    rings = {0x2000: host.pages(1), 0x22000: host.pages(1)}
    wait = host.pack("MI_SEMAPHORE_MBOX", compare_semaphore=1, compare_register=1, register_select=2, semaphore_data_dword=4)
    host.put(rings[0x2000], wait, host.store(0, 1), [0], host.store(4, 2), host.store(8, 3))
    host.put(rings[0x22000], load(host, 0x2044, 5), [0])
    for base, ring in rings.items():
        for offset, value in ((0x38, ring), (0x3C, 1)):
            host.gpu.write_register(base + offset, value)
    writes = [(0x2030, 32), (0x2030, 48), (0x22030, 16), (0x2030, 64)]
    if blitter_first:
        writes = [writes[2], *writes[:2], writes[3]]
    seen = []
    for offset, value in writes:
        host.gpu.write_register(offset, value)
        seen.append(host.dwords(DATA, 3))
        host.put(DATA, [0, 0, 0])
    nothing = [0, 0, 0]
    assert seen == ([nothing, [1, 0, 0], [0, 2, 0], [0, 0, 3]] if blitter_first else [nothing, nothing, [1, 2, 0], [0, 0, 3]])


@pytest.mark.parametrize("gpu", ["gm965", "g45", "ivb", "hsw"])
def test_an_interrupt_of_a_ring_is_an_event(gpu: str) -> None:
    """Of these GPUs no page says where interrupts are collected: no line is asserted and no status page is written."""
    host = Host(gpu)
    host.gpu.write_register(0x2080, STATUS_PAGE)
    host.gpu.write_register(0x2098, 0)
    host.put(ring := host.pages(1), host.pack("MI_USER_INTERRUPT"), host.pack("MI_NOOP"))
    for offset, value in ((0x38, ring), (0x3C, 1), (0x30, 8)):
        host.gpu.write_register(0x2000 + offset, value)
    assert [(event.engine, event.cause) for event in host.gpu.interrupts.events] == [("render", "user")]
    assert not host.gpu.interrupts.asserted() and host.dwords(STATUS_PAGE, 32) == [0] * 32
