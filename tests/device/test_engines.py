"""Engines: execlists, contexts saved and restored, status pages, waiting, rings."""

from __future__ import annotations

import pytest

from softgen.bits.catalogue import layout
from softgen.errors import SoftgenError, Unsupported
from tests.device.host import DATA, PAGE, RESTORE_INHIBIT, STATUS_PAGE, Context, Host

GPR, HWS_PGA, STATUS, RING_HEAD = 0x2600, 0x2080, 0x2234, 0x2034
CHIPS = ["bdw", "skl", "icl"]


def image_dword(host: Host, context: Context, dword: int) -> int:
    return host.dwords(context.address + PAGE + 4 * dword, 1)[0]


def load(host: Host, register: int, value: int) -> list[int]:
    return host.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": register, "data_dword": value}])


@pytest.mark.behaviour("KBL-CTX-01", "KBL-CTX-05", "KBL-CTX-06", "ICL-CS-02", shows="action")
@pytest.mark.parametrize("gpu", CHIPS)
def test_an_execlist_of_two_contexts(gpu: str) -> None:
    """They run one after the other; the status page says so, with the number of the entry written last; each event is an interrupt."""
    host = Host(gpu)
    host.gpu.write_register(HWS_PGA, STATUS_PAGE)
    first, second = host.context(7), host.context(8)
    host.say(first, host.store(0, 1), host.store(8, 1))
    host.say(second, host.store(4, 2), host.store(8, 2))
    host.submit(first, second)
    assert host.dwords(DATA, 3) == [1, 2, 2]
    assert host.events(3) == [{"idle_to_active": 1}, {"context_id": 7, "context_complete": 1, "element_switch": 1},
                              {"context_id": 8, "context_complete": 1, "active_to_idle": 1}]  # fmt: skip
    assert host.dwords(STATUS_PAGE + 4 * host.table.events["pointer"], 1) == [2]
    assert [event.cause for event in host.gpu.interrupts.events] == ["context_switch"] * 3
    done = host.table.done
    assert host.gpu.read_register(0x2000 + done["register"]) & done["mask"] == done["value"]


@pytest.mark.parametrize("gpu", CHIPS)
def test_an_engine_that_was_given_nothing_is_idle(gpu: str) -> None:
    host = Host(gpu)
    done = host.table.done
    assert host.gpu.read_register(0x2000 + done["register"]) & done["mask"] == done["value"]
    assert host.gpu.read_register(0x23A8) == 0  # the run time of a context


@pytest.mark.parametrize("gpu", CHIPS)
def test_a_sequence_of_register_writes_starts_one_context(gpu: str) -> None:
    """As writers of traces use it."""
    host = Host(gpu)
    host.say(context := host.context(1, engine="blitter"), host.store(0, 1))
    fields = {"privileged": 1, "addressing": 3, "valid": 1}
    low, high = host.pack("CONTEXT_DESCRIPTOR", context_id=1, context_address=context.address, **fields)
    for offset, value in host.gpu.port.sequence("blitter", low, high):
        assert host.dwords(DATA, 1) == [0]
        host.gpu.write_register(offset, value)
    assert host.dwords(DATA, 1) == [1] and {event.base for event in host.gpu.interrupts.events} == {0x22000}


def test_an_element_that_is_not_valid_is_not_run() -> None:
    host = Host()
    host.say(context := host.context(1), host.store(0, 1))
    for value in (0, 0, 1, context.address):  # valid is bit 0 of the last write
        host.gpu.write_register(0x2230, value)
    assert host.dwords(DATA, 1) == [0] and not host.gpu.interrupts.events


@pytest.mark.behaviour("KBL-CTX-02", shows="action")
def test_four_directories_give_a_context_32_bits() -> None:
    host = Host()
    context = host.context(1)
    pointers = host.memory.physical.read64(host.root) & ~0xFFF
    directory = host.memory.physical.read64(pointers) & ~0xFFF
    page = layout("CONTEXT_IMAGE", host.gen)
    for number, value in ((0, directory), (1, 0), (2, 0), (3, 0)):
        where = page.field(f"page_directory_{number}").pieces[-1][1] // 32  # the lower half
        host.put(context.address + PAGE + 4 * where, [value])
    host.say(context, host.store(0, 1))
    host.submit(context, addressing=1)
    assert host.dwords(DATA, 1) == [1]


@pytest.mark.parametrize("addressing", [0, 2])
def test_page_tables_named_by_a_pasid_are_refused(addressing: int) -> None:
    """Advanced contexts (KBL 5324-5336)."""
    host = Host()
    host.say(context := host.context(1), host.store(0, 1))
    with pytest.raises(Unsupported, match=f"the context at {context.address:#x} names its page tables by a PASID"):
        host.submit(context, addressing=addressing)
    host.submit(context)
    assert host.dwords(DATA, 1) == [1]


def test_a_fault_of_a_context_with_four_directories_names_the_first() -> None:
    host = Host()
    context = host.context(1)
    page = layout("CONTEXT_IMAGE", host.gen)
    for number in range(4):
        where = page.field(f"page_directory_{number}").pieces[-1][1] // 32  # the lower half
        host.put(context.address + PAGE + 4 * where, [0x70_0000 + number * PAGE])
    host.say(context, host.store(0, 1))
    with pytest.raises(SoftgenError, match=r"context memory \(tables at 0x700000\)"):
        host.submit(context, addressing=1)


@pytest.mark.behaviour("ICL-CTX-05", "ICL-CTX-08", "ICL-CTX-09", shows="action")
@pytest.mark.parametrize("gpu", CHIPS)
def test_a_context_has_its_registers_back(gpu: str) -> None:
    """General registers, predicates and counters; the image holds them where the manual says, as registers to be loaded."""
    host = Host(gpu)
    first, other = host.context(1), host.context(2)
    host.say(first, load(host, GPR, 5), load(host, 0x2310, 77), load(host, 0x2418, 1))
    host.submit(first)
    assert image_dword(host, first, 0x51) == 0x11001057 and image_dword(host, first, 0x52) == 0x2028
    assert host.dwords(first.address + PAGE + 4 * 0x68, 4) == [GPR, 5, GPR + 4, 0]  # ICL 1960
    assert image_dword(host, first, 0xA8) == 0x2068  # IPEHR, ICL 1961
    host.say(other, load(host, GPR, 6), load(host, 0x2310, 1), load(host, 0x2418, 0))
    host.submit(other)
    read = [
        host.pack("MI_STORE_REGISTER_MEM", register_address=at, memory_address=DATA + 4 * i) for i, at in enumerate((GPR, 0x2310, 0x2418))
    ]
    host.say(first, *read)
    host.submit(first)
    assert host.dwords(DATA, 3) == [5, 77, 1]


# Vertices and primitives in, invocations of VS HS DS GS, primitives of GS, invocations and primitives of the clipper, PS, depth.
COUNTERS = (0x2310, 0x2318, 0x2320, 0x2300, 0x2308, 0x2328, 0x2330, 0x2338, 0x2340, 0x2348, 0x2350)


@pytest.mark.behaviour("ICL-REG-04", shows="action")
@pytest.mark.parametrize("gpu", CHIPS)
def test_statistics_are_a_contexts_own(gpu: str) -> None:
    """Both halves of each counter come back after another context had its own; and the image is where they were (ICL 1306-1314)."""
    host = Host(gpu)
    registers = [half for counter in COUNTERS for half in (counter, counter + 4)]
    first, other = host.context(1), host.context(2)
    host.say(first, *(load(host, at, 100 + n) for n, at in enumerate(registers)))
    host.submit(first)
    host.say(other, *(load(host, at, 7) for at in registers))
    host.submit(other)
    image = host.dwords(first.address + PAGE, 0x180)
    assert {at: image[image.index(at, 0xB1) + 1] for at in registers} == {at: 100 + n for n, at in enumerate(registers)}
    host.put(first.address + PAGE + 4 * (image.index(registers[0], 0xB1) + 1), [55])
    host.say(first,
             *(host.pack("MI_STORE_REGISTER_MEM", register_address=at, memory_address=DATA + 4 * n) for n, at in enumerate(registers)))
    host.submit(first)
    assert host.dwords(DATA, len(registers)) == [55, *range(101, 100 + len(registers))]


# The registers of a render context's own lists, by where the lists begin (ICL 1952-1961, and those of 1965-1993 that are there).
OWN_LISTS = {
    0x51: [0x2028, 0x209C, 0x20C0, 0x2178, 0x217C, 0x2358, 0x2170, 0x2150, 0x2154, 0x2158, 0x241C, *range(0x2600, 0x2680, 4), 0x2068],
    0xB1: [0x2310, 0x2314, 0x2318, 0x231C, 0x2320, 0x2324, 0x2300, 0x2304, 0x2308, 0x230C, 0x2328, 0x232C, 0x2330, 0x2334, 0x2338, 0x233C,
           0x2340, 0x2344, 0x2348, 0x234C, 0x2350, 0x2354, 0x2500, 0x2504, 0x2508, 0x2400, 0x2404, 0x2408, 0x240C, 0x2410, 0x2414, 0x2418,
           0x2420, 0x2430, 0x2434, 0x2438, 0x243C, 0x2440],
}  # fmt: skip


@pytest.mark.parametrize("gpu", CHIPS)
def test_every_register_of_a_contexts_own_lists(gpu: str) -> None:
    """A first save writes the lists: header, register and value in turn. All sixteen general registers have their values there."""
    host = Host(gpu)
    host.say(context := host.context(1), *(load(host, at, at - GPR) for at in range(GPR, GPR + 0x80, 4)))
    host.submit(context)
    for at, expected in OWN_LISTS.items():
        header, *pairs = host.dwords(context.address + PAGE + 4 * at, 1 + 2 * len(expected))
        assert header == 0x11001000 | 2 * len(expected) - 1 and pairs[::2] == expected
        assert image_dword(host, context, at + 1 + 2 * len(expected)) == 0
    assert host.dwords(context.address + PAGE + 4 * 0x68, 64)[1::2] == list(range(0, 0x80, 4))


def test_a_copy_engines_image_has_no_lists_of_its_own() -> None:
    host = Host()
    host.say(context := host.context(1, engine="blitter"), host.store(0, 1))
    host.submit(context, engine="blitter")
    assert host.dwords(DATA, 1) == [1] and not any(host.dwords(context.address + PAGE + 4 * 0x51, 0x100))


@pytest.mark.behaviour("ICL-CTX-12", shows="layout")
def test_the_header_of_a_list_of_registers() -> None:
    page = layout("MI_LOAD_REGISTER_IMM", 11)
    for count in (1, 9, 15, 44):
        entries = [{"register_offset": 0x2600}] * count
        assert page.pack(entry=entries)[0] == 0x11000000 | 2 * count - 1
        assert page.pack(entry=entries, force_posted=1, add_cs_mmio_start_offset=1)[0] == 0x11081000 | 2 * count - 1


@pytest.mark.behaviour("ICL-CTX-13", shows="action")
def test_the_ring_part_of_an_image_as_the_manual_has_it() -> None:
    """Fifteen registers, the last of them the context's own address (ICL 1910-1926)."""
    host = Host("icl")
    context = host.context(1)
    control, head, tail, start, size = (image_dword(host, context, 3 + 2 * i) for i in range(5))
    rest = (0x2168, 0x2140, 0x2110, 0x211C, 0x2114, 0x2118, 0x21C0, 0x21C4, 0x21C8, 0x2180)
    pairs = [*zip((0x2244, 0x2034, 0x2030, 0x2038, 0x203C), (control, head, tail, start, size), strict=True), *((item, 0) for item in rest)]
    host.put(context.address + PAGE + 4, [0x1100101D, *(value for pair in pairs for value in pair)])
    host.say(context, host.store(0, 1))
    host.submit(context)
    assert host.dwords(DATA, 1) == [1] and image_dword(host, context, 0x1F) == context.address | 1
    assert image_dword(host, context, 5) == image_dword(host, context, 7) == context.tail


def test_an_image_at_the_start_of_global_memory() -> None:
    """No page is mapped before the context's status page; lists of registers are written all the same."""
    host = Host()
    host.next, following = 0, host.next
    context = host.context(1)
    assert context.address == 0 and host.next < following
    host.say(context, load(host, GPR, 5))
    host.submit(context)
    assert host.dwords(context.address + PAGE + 4 * 0x68, 2) == [GPR, 5]


def test_what_follows_a_list_of_an_image_is_no_part_of_it() -> None:
    """Five registers, in eleven dwords; the twelfth and the next look like another."""
    host = Host()
    context = host.context(1)
    host.put(context.address + PAGE + 4 * 0x0C, [GPR, 7])
    host.say(context, load(host, GPR, 5))
    host.submit(context)
    assert host.dwords(context.address + PAGE + 4 * 0x0C, 2) == [GPR, 7]


def test_what_is_no_list_of_registers_is_not_restored_and_replaced_by_one() -> None:
    """Another command may have the length of a list: PIPE_CONTROL."""
    host = Host()
    context = host.context(1, 0)
    host.put(context.address + PAGE + 4 * 0x51, [0x7A000004, GPR, 7, GPR + 8, 9])
    host.say(context, *(host.pack("MI_STORE_REGISTER_MEM", register_address=GPR + at, memory_address=DATA + at) for at in (0, 8)))
    host.submit(context)
    assert host.dwords(DATA, 4) == [0] * 4
    assert host.dwords(context.address + PAGE + 4 * 0x51, 2) == [0x11001000 | 2 * len(OWN_LISTS[0x51]) - 1, OWN_LISTS[0x51][0]]


@pytest.mark.parametrize("named", [GPR, GPR | 1, GPR | 2, GPR | 1 << 23, GPR | 0xFF800003])
def test_a_register_of_a_list_is_named_by_bits_22_to_2(named: int) -> None:
    host = Host()
    context = host.context(1, 0)
    host.put(context.address + PAGE + 4 * 0x51, [0x11001001, named, 7])
    host.say(context, host.pack("MI_STORE_REGISTER_MEM", register_address=GPR, memory_address=DATA))
    host.submit(context)
    assert host.dwords(DATA, 1) == [7]


def test_a_list_may_have_128_registers() -> None:
    """As many as the eight bits of its length can say."""
    host = Host()
    context = host.context(1, 0)
    host.put(context.address + PAGE + 4 * 0x51, [0x110010FF, *(dword for number in range(128) for dword in (0x7FF00 + 4 * number, number))])
    host.say(context, host.pack("MI_STORE_REGISTER_MEM", register_address=0x7FF00 + 4 * 127, memory_address=DATA))
    host.submit(context)
    assert host.dwords(DATA, 1) == [127]


@pytest.mark.parametrize("gpu", CHIPS)
def test_head_and_tail_in_the_image(gpu: str) -> None:
    """The head is where the tail was; what was executed is not executed again."""
    host = Host(gpu)
    context = host.context(1)
    host.say(context, host.store(0, 1))
    host.submit(context)
    assert image_dword(host, context, 5) == context.tail
    host.put(DATA, [0])
    host.say(context, host.store(4, 2))
    host.submit(context)
    assert host.dwords(DATA, 2) == [0, 2] and image_dword(host, context, 5) == context.tail


@pytest.mark.parametrize("control, kept", [(RESTORE_INHIBIT, 9), (0x00010000, 5)])
def test_an_image_may_inhibit_that_the_engine_part_is_restored(control: int, kept: int) -> None:
    """The ring part always is. What was inhibited once is restored the next time: the bit is not saved."""
    host = Host()
    context = host.context(1)
    host.say(context, load(host, GPR, 5))
    host.submit(context)
    assert image_dword(host, context, 3) & 1 == 0
    host.say(other := host.context(2), load(host, GPR, 9))
    host.submit(other)
    host.put(context.address + PAGE + 12, [control])
    host.say(context, host.pack("MI_STORE_REGISTER_MEM", register_address=GPR, memory_address=DATA))
    host.submit(context)
    assert host.dwords(DATA, 1) == [kept]


@pytest.mark.behaviour("KBL-CTX-04", shows="action")
def test_the_same_context_again_keeps_its_registers_unless_forced() -> None:
    host = Host()
    context = host.context(1)
    host.say(context, load(host, GPR, 5))
    host.submit(context)
    read = host.pack("MI_STORE_REGISTER_MEM", register_address=GPR, memory_address=DATA)
    for flags, expected in (({}, 5), ({"force_restore": 1}, 33)):
        host.put(context.address + PAGE + 4 * 0x69, [33])  # the saved general register
        host.say(context, read)
        host.submit(context, **flags)
        assert host.dwords(DATA, 1) == [expected]
        host.put(context.address + PAGE + 4 * 0x69, [5])


@pytest.mark.behaviour("KBL-CTX-08", shows="action")
@pytest.mark.parametrize("gpu", CHIPS)
def test_the_contexts_own_status_page(gpu: str) -> None:
    """Run time, whether it was first, when it was restored and saved, and the semaphore it left at."""
    host = Host(gpu)
    context = host.context(1, RESTORE_INHIBIT)
    wait = host.wait(0, 5)
    host.say(context, host.pack("MI_NOOP"), wait)
    host.submit(context)
    page = host.dwords(context.address, 32)
    assert page[16] > 0 and page[17] == 1 and 0 < page[20] < page[22] and page[24:28] == wait
    again = page[16]
    host.put(DATA, [5])
    host.submit(context)
    assert host.dwords(context.address + 64, 1)[0] > again


@pytest.mark.behaviour("ICL-REG-06", shows="action")
def test_the_run_time_of_a_context_counts_only_while_it_runs() -> None:
    host = Host("icl")
    primary, other = host.context(1), host.context(2)
    read = host.pack("MI_STORE_REGISTER_MEM", register_address=0x23A8, memory_address=DATA)
    for _ in range(1000):
        host.gpu.clock()
    host.say(primary, read)
    host.submit(primary)
    first, saved = host.dwords(DATA, 1)[0], image_dword(host, primary, 0x23)
    assert 0 < first <= saved < 50
    host.say(other, *[host.pack("MI_NOOP")] * 50, load(host, 0x23A8, 100_000))
    host.submit(other)
    for _ in range(1000):
        host.gpu.clock()
    host.say(primary, read)
    host.submit(primary)
    assert saved <= host.dwords(DATA, 1)[0] < saved + 50


# -- waiting -------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-INT-06", shows="action")
@pytest.mark.parametrize("gpu", CHIPS)
def test_a_context_that_may_not_be_switched_stays_at_its_semaphore(gpu: str) -> None:
    host = Host(gpu)
    host.gpu.write_register(HWS_PGA, STATUS_PAGE)
    host.say(context := host.context(3), host.wait(0, 5), host.store(4, 1))
    host.submit(context)
    assert host.dwords(DATA, 2) == [0, 0] and host.gpu.engines[0x2000].busy()
    assert "holds 0x0" in host.gpu.engines[0x2000].waits_for()
    assert [event.cause for event in host.gpu.interrupts.events] == ["context_switch", "semaphore"]
    status, done = host.gpu.read_register(STATUS), host.table.done
    assert status & done["mask"] != done["value"]
    host.put(DATA, [5])
    host.gpu.poll()
    assert host.dwords(DATA, 2) == [5, 1] and not host.gpu.engines[0x2000].busy()
    assert host.events(2)[1] == {"context_id": 3, "context_complete": 1, "active_to_idle": 1}


@pytest.mark.behaviour("KBL-INT-06", shows="action")
@pytest.mark.parametrize("gpu", CHIPS)
def test_any_other_context_is_switched_out_and_submitted_again(gpu: str) -> None:
    host = Host(gpu)
    host.gpu.write_register(HWS_PGA, STATUS_PAGE)
    waiting, other = host.context(3, RESTORE_INHIBIT), host.context(4)
    host.say(waiting, host.store(8, 9), host.wait(0, 5), host.store(4, 1))
    host.say(other, host.store(0, 5))
    host.submit(waiting, other)
    assert host.dwords(DATA, 3) == [5, 0, 9] and not host.gpu.engines[0x2000].busy()
    assert host.events(3)[1] == {"context_id": 3, "wait_on_semaphore": 1, "semaphore_wait_mode": 1, "element_switch": 1}
    assert "semaphore" not in [event.cause for event in host.gpu.interrupts.events]
    host.put(DATA + 8, [0])
    host.submit(waiting)
    assert host.dwords(DATA, 3) == [5, 1, 0]  # on from the semaphore


@pytest.mark.behaviour("ICL-CS-12", shows="action")
def test_engines_synchronise_with_semaphores() -> None:
    """A waits for B, which waits for A."""
    host = Host("icl")
    render, copy = host.context(1), host.context(2, engine="blitter")
    host.say(render, host.wait(0, 1), host.store(4, 1), host.wait(8, 1), host.store(12, 7))
    host.submit(render)
    host.say(copy, host.store(0, 1), host.wait(4, 1), host.store(8, 1))
    host.submit(copy, engine="blitter")
    assert host.dwords(DATA, 4) == [1, 1, 1, 7] and not any(engine.busy() for engine in host.gpu.engines.values())


def test_a_semaphore_in_signal_mode_is_looked_at_when_signalled() -> None:
    host = Host("icl")
    render, copy = host.context(1), host.context(2, engine="blitter")
    host.say(render, host.wait(0, 5, wait_mode=0), host.store(4, 1))
    host.submit(render)
    host.put(DATA, [5])
    host.gpu.poll()
    assert host.dwords(DATA, 2) == [5, 0]
    host.say(copy, host.pack("MI_SEMAPHORE_SIGNAL", target_engine_select=0, target_context_id=9))
    host.submit(copy, engine="blitter")
    assert host.dwords(DATA, 2) == [5, 0]  # another context's
    host.say(copy, host.pack("MI_SEMAPHORE_SIGNAL", target_engine_select=0, target_context_id=1))
    host.submit(copy, engine="blitter")
    assert host.dwords(DATA, 2) == [5, 1]


@pytest.mark.behaviour("KBL-CTX-05", shows="action")
def test_a_new_execlist_preempts_what_waits() -> None:
    host = Host()
    host.gpu.write_register(HWS_PGA, STATUS_PAGE)
    waiting, other = host.context(3), host.context(4)
    host.say(waiting, host.wait(0, 5), host.store(4, 1))
    host.submit(waiting)
    host.say(other, host.store(0, 5))
    host.submit(other)
    assert host.dwords(DATA, 2) == [5, 0] and host.events(2)[1] == {"context_id": 3, "preempted": 1}
    host.submit(waiting)
    assert host.dwords(DATA, 2) == [5, 1]


@pytest.mark.behaviour("KBL-CTX-04", "KBL-CTX-05", shows="action")
def test_a_waiting_context_submitted_again_goes_on_with_its_new_tail() -> None:
    host = Host()
    host.gpu.write_register(HWS_PGA, STATUS_PAGE)
    host.say(context := host.context(3), host.wait(0, 5), host.store(4, 1))
    host.submit(context)
    host.say(context, host.store(8, 2))
    host.put(DATA, [5])
    host.submit(context)
    assert host.dwords(DATA, 3) == [5, 1, 2]
    assert host.events(3)[1:] == [
        {"context_id": 3, "preempted": 1, "lite_restore": 1},
        {"context_id": 3, "context_complete": 1, "active_to_idle": 1},
    ]


# -- what goes wrong -----------------------------------------------------------------------------------------------


def test_a_context_that_fails_leaves_the_engine_usable() -> None:
    host = Host()
    bad, good = host.context(1), host.context(2)
    host.say(bad, [0x3F800000 | 0x80000000, 0])
    host.say(good, host.store(0, 1))
    with pytest.raises(SoftgenError, match="is no command"):
        host.submit(bad)
    assert image_dword(host, bad, 5) == bad.tail  # it is not tried again
    host.submit(good)
    assert host.dwords(DATA, 1) == [1]


def test_a_failed_command_may_be_excused() -> None:
    failures: list[str] = []
    host = Host(on_error=lambda error: failures.append(str(error)) is None)
    host.say(context := host.context(1), host.pack("MI_STORE_DATA_IMM", address=0x900_0000, immediate_data=1 << 33), host.store(0, 1))
    host.submit(context)
    assert host.dwords(DATA, 1) == [1] and len(failures) == 1 and "MI_STORE_DATA_IMM at" in failures[0]


def test_an_image_with_an_impossible_ring_is_refused() -> None:
    host = Host()
    context = host.context(1)
    host.put(context.address + PAGE + 4 * 7, [0x8000])
    with pytest.raises(SoftgenError, match="has a ring of 0x1000 bytes with head 0x0 and tail 0x8000"):
        host.submit(context)


def test_update_gtt_changes_the_global_table() -> None:
    host = Host("skl")
    entry = host.pack("GLOBAL_TABLE_ENTRY", page=DATA, present=1)
    host.say(
        context := host.context(1),
        host.pack("MI_UPDATE_GTT", entry_address=0xA0_0000, entry=[{"entry_data": entry[0] | entry[1] << 32}]),
        host.store(0, 6),
    )
    host.submit(context)
    assert host.dwords(0xA0_0000, 1) == [6]
