"""Children, synchronised roots, fences, scoreboards and gateways from Gen7 on: threads that wait for one another."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.errors import DecodeError, SoftgenError
from softgen.eu.text import dialect
from tests.gpgpu.job import DYNAMIC, TABLE, Job, Ran, dwords
from tests.media.root_threads import data

DONE, KEEPS, CHILD_DONE = 0x00, 0x10, 0x12  # what the last message of a thread says: root; root that keeps its entry; child
CHILD, SPAWN, SPAWN_ROOT = 1, 0x02000001, 0x02000011
CHILDREN = {"children_present": 1}
FRONT = {"number_of_urb_entries": 2, "urb_entry_allocation_size": 8, "maximum_number_of_threads": 3, "curbe_allocation_size": 2}
BEGIN = "(W) mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud\n"
KEY = 0x1212


def end(how: int) -> str:
    return f"(W) send (8|M0) null r127 0x27 {0x02000000 | how:#010x} {{EOT}}\n"


def put(register: str, value: Any) -> str:
    return f"(W) mov (1|M0) {register}<1>:ud {f'{value:#x}:ud' if isinstance(value, int) else value}\n"


def store(value: str, at: int) -> str:
    """A dword of surface 0."""
    return f"""(W) mov (8|M0) r10.0<1>:ud {at:#x}:ud
(W) mov (8|M0) r11.0<1>:ud {value}
(W) send (1|M0) null r10 0xC 0x04026E00
"""


TICKET = """(W) mov (8|M0) r120.0<1>:ud 0x0:ud
(W) mov (8|M0) r121.0<1>:ud 0x1:ud
(W) send (1|M0) r112 r120 0xC 0x0410B700
"""  # r112.0: dword 0 of surface 0 before it is one more
# A child's r0, with 0x77 in the last dword, and a register of data, two registers into the entry.
BUILDS = f"""{BEGIN}(W) mov (8|M0) r20.0<1>:ud r0.0<8;8,1>:ud
{put('r20.5', 0xFF00)}(W) mov (8|M0) r21.0<1>:ud r0.0<8;8,1>:ud
{put('r21.7', 0x77)}(W) mov (8|M0) r22.0<1>:ud 0x2222:ud
(W) send (8|M0) null r20 0x6 0x06080020
"""


def spawn(length: int = 1, message: int = SPAWN, descriptor: int = CHILD) -> str:
    return f"""(W) mov (8|M0) r30.0<1>:ud r0.0<8;8,1>:ud
{put('r30.2', descriptor << 4)}{put('r30.4', length << 10 | 2)}(W) send (8|M0) null r30 0x7 {message:#010x}
"""


def waiting_loop(count: int) -> str:
    return f"""{put('r50.0', 0)}again:
(W) add (1|M0) r50.0<1>:d r50.0<0;1,0>:d 1:d
(W) cmp (1|M0) (lt)f0.0 null<1>:d r50.0<0;1,0>:d {count}:d
(W&f0.0) jmpi again
"""


def aligned(kernel: str, gpu: str) -> str:
    """A kernel behind which another one may begin."""
    return kernel + "nop\n" * (-len(dialect.read(kernel, device(gpu).generation.number)) % 64 // 16)


def run(*kernels: str, objects: Any, gpu: str = "skl", front: Any = None, constants: int = 0, limit: int = 1000) -> Ran:
    """Objects are commands or, alone, fields of MEDIA_OBJECT. Interface descriptor n has kernel n. `limit`: looks at the time limit until
    it has passed."""
    kernels = tuple(aligned(kernel, gpu) for kernel in kernels)
    made = Job("".join(kernels), [bytes(64)], gpu, fetched=False, front={**FRONT, **(front or {})}, shared=dwords(*[0x99] * 8 * constants))
    starts = [sum(len(dialect.read(kernel, made.gen)) for kernel in kernels[:number]) for number in range(len(kernels))]
    described = [made.pack("INTERFACE_DESCRIPTOR_DATA", kernel_start_pointer=start, binding_table_pointer=TABLE,
                           cross_thread_constant_data_read_length=constants) for start in starts]  # fmt: skip
    made.buffers = [*made.buffers, b"".join(dwords(*words) for words in described)]
    made.before = [made.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=32 * len(kernels),
                             interface_descriptor_data_start_address=made.address(1) - DYNAMIC)]  # fmt: skip
    commands = [one if isinstance(one, tuple) else ("MEDIA_OBJECT", {"inline_data": data(0), **one}) for one in objects]
    made.starts_threads = [made.pack(name, **fields) for name, fields in commands]
    looks = iter(range(limit))
    return made.run(GpuDevice(made.device, clock=lambda: 0, timed_out=lambda: next(looks, None) is None))


def warned(ran: Ran) -> list[str]:
    return list(ran.gpu.remarks)


SHOWS = f"{BEGIN}{store('r0.7<0;1,0>:ud', 0)}{store('r1.0<0;1,0>:ud', 4)}{store('r2.0<0;1,0>:ud', 8)}{end(CHILD_DONE)}"


@pytest.mark.behaviour("KBL-MEDIA-19", "BDW-MEDIA-07", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
def test_a_child_finds_what_its_parent_put_into_the_urb(gpu: str) -> None:
    """r0, then constants of its descriptor, then as many registers as the message says. The root has ended by then."""
    texts = f"{BUILDS}{spawn()}{end(DONE)}", SHOWS
    ran = run(*texts, objects=[CHILDREN], gpu=gpu, constants=1)
    assert ran.buffer(0)[:3] == (0x77, 0x99, 0x2222) and ran.gpu.counters.threads == 2 and not warned(ran)
    assert run(f"{BUILDS}{spawn(0)}{end(DONE)}", SHOWS, objects=[CHILDREN], gpu=gpu).buffer(0)[:3] == (0x77, 0, 0)


@pytest.mark.behaviour("BDW-MEDIA-07", "KBL-MEDIA-19", shows="action")
def test_an_entry_is_taken_until_a_message_releases_it() -> None:
    """Two entries of four rows: the third root has the first one's handle, which is free with the message that ends that one."""
    shows = f"{BEGIN}{TICKET}(W) shl (1|M0) r10.0<1>:ud r112.0<0;1,0>:ud 2:w\n(W) add (1|M0) r10.0<1>:ud r10.0<0;1,0>:ud 4:w\n"
    shows += "(W) mov (8|M0) r11.0<1>:ud r0.0<0;1,0>:ud\n(W) send (1|M0) null r10 0xC 0x04026E00\n"
    assert run(f"{shows}{end(DONE)}", objects=[CHILDREN] * 3).buffer(0)[:4] == (3, 0, 4, 0)
    with pytest.raises(SoftgenError, match=r"deadlock: 0 threads wait, 1 root threads are queued, .* 2 entries of the URB are not rel"):
        run(f"{shows}{end(KEEPS)}", objects=[CHILDREN] * 3)
    assert run(f"{shows}{end(KEEPS)}", objects=[CHILDREN, {}]).buffer(0)[0] == 2
    twice = f"{BEGIN}(W) send (8|M0) null r127 0x7 0x02000000\n{end(DONE)}"
    assert any("it can be released once" in text for text in warned(run(twice, objects=[CHILDREN])))


@pytest.mark.behaviour("BDW-MEDIA-08", "KBL-MEDIA-19", shows="action")
def test_synchronised_roots_wait_for_a_message() -> None:
    """The second root starts when the first has written, and finds the data of the message before its own."""
    first = f"{BUILDS}{waiting_loop(600)}{store('0x5:ud', 0)}{spawn(1, SPAWN_ROOT)}{end(DONE)}"
    load = "(W) mov (8|M0) r10.0<1>:ud 0x0:ud\n(W) send (1|M0) r12 r10 0xC 0x02106E00\n"
    second = f"{BEGIN}{load}{store('r12.0<0;1,0>:ud', 4)}{store('r1.7<0;1,0>:ud', 8)}{store('r2.0<0;1,0>:ud', 12)}{end(DONE)}"
    waits = {"thread_synchronization": 1, "interface_descriptor_offset": 1, "inline_data": data(0x31)}
    assert run(first, second, objects=[CHILDREN, waits]).buffer(0)[:4] == (5, 5, 0x77, 0x31)
    with pytest.raises(SoftgenError, match=r"deadlock: .* 1 of them synchronised"):
        run(f"{BUILDS}{end(DONE)}", second, objects=[CHILDREN, waits])


@pytest.mark.behaviour("BDW-MEDIA-13", "KBL-MEDIA-19", shows="action")
@pytest.mark.parametrize("fence", [{"prt_fence_needed": 1}, {"prt_fence_needed": 1, "prt_fencetype": 1}, {}])
def test_roots_behind_a_fence_wait_for_a_message(fence: dict[str, int]) -> None:
    """The persistent thread takes the first ticket, then has a child; the root behind it has that ticket only without the fence."""
    takes = f"{TICKET}(W) mov (8|M0) r110.0<1>:ud r112.0<0;1,0>:ud\n"
    persistent = f"{BUILDS}{waiting_loop(600)}{takes}{store('r110.0<0;1,0>:ud', 4)}{spawn()}{end(DONE)}"
    other, child = (f"{BEGIN}{takes}{store('r110.0<0;1,0>:ud', at)}{end(how)}" for at, how in ((8, DONE), (12, CHILD_DONE)))
    prt = "MEDIA_OBJECT_PRT", {**CHILDREN, **fence}
    found = run(persistent, child, other, objects=[prt, {"interface_descriptor_offset": 2}]).buffer(0)
    assert found[0] == 3 and (found[1] < found[2]) is bool(fence)
    if fence:
        with pytest.raises(SoftgenError, match="deadlock"):
            run(f"{BEGIN}{end(DONE)}", objects=[prt, {}])


@pytest.mark.behaviour("BDW-MEDIA-10", shows="action")
@pytest.mark.parametrize("mask, expected", [(1, 5), (0, 0)])
def test_a_root_with_children_waits_for_its_scoreboard(mask: int, expected: int) -> None:
    """The thread at (1, 0) waits for the one at (0, 0), which writes late."""
    first = f"{BEGIN}{waiting_loop(600)}{store('0x5:ud', 0)}{end(DONE)}"
    load = "(W) mov (8|M0) r10.0<1>:ud 0x0:ud\n(W) send (1|M0) r12 r10 0xC 0x02106E00\n"
    second = f"{BEGIN}{load}{store('r12.0<0;1,0>:ud', 4)}{end(DONE)}"
    objects = [{**CHILDREN, "use_scoreboard": 1, "scoreboard_mask": 1, "scoreboard_x": x, "interface_descriptor_offset": x} for x in (0, 1)]
    front = {"scoreboard_enable": 1, "scoreboard_mask": mask, "scoreboard_0_delta_x": -1}
    assert run(first, second, objects=objects, front=front).buffer(0)[:2] == (5, expected)


@pytest.mark.behaviour("BDW-MEDIA-03", shows="action")
@pytest.mark.parametrize("bypass", [0, 1])
def test_a_child_writes_to_registers_of_its_parent(bypass: int) -> None:
    """Four bytes at offset 4 of r6, which the root has opened; with the protocol bypassed none need be open, and offsets count from r0."""
    opens = f"(W) mov (8|M0) r40.0<1>:ud 0x0:ud\n{put('r40.4', KEY)}{put('r40.5', 6 << 21)}(W) send (8|M0) null r40 0x3 0x02000000\n"
    where = 6 * 32 + 4 if bypass else 4
    builds = BUILDS.replace("(W) send", f"{put('r21.6', 'sr0.0<0;1,0>:ud')}(W) send")
    waits = f"(W) wait n0.0<0;1,0>:ud\n{store('r6.1<0;1,0>:ud', 0)}"
    root = f"{builds}{'' if bypass else opens}{spawn()}{waits}{end(DONE)}"
    child = f"""{BEGIN}(W) mov (8|M0) r40.0<1>:ud 0x0:ud
{put('r40.0', 0xABCD)}(W) shl (1|M0) r40.4<1>:ud r0.6<0;1,0>:ud 16:w
{'' if bypass else f'(W) or (1|M0) r40.4<1>:ud r40.4<0;1,0>:ud {KEY:#x}:ud'}
{put('r40.5', where << 16 | 2 << 8)}(W) send (8|M0) null r40 0x3 0x02008002
{end(CHILD_DONE)}"""
    assert run(root, child, objects=[CHILDREN], front={"bypass_gateway_control": bypass}, gpu="bdw").buffer(0)[0] == 0xABCD


@pytest.mark.behaviour("BDW-MEDIA-01", shows="action")
@pytest.mark.parametrize("roots", [1, 2])
def test_roots_have_what_the_state_of_the_front_end_gives(roots: int) -> None:
    """Scratch space of 4 KiB each from 0x4000 on, one or two threads at a time, entries of five registers."""
    shows = f"{BEGIN}{TICKET}(W) shl (1|M0) r10.0<1>:ud r112.0<0;1,0>:ud 4:w\n(W) add (1|M0) r10.0<1>:ud r10.0<0;1,0>:ud 4:w\n"
    for number in (0, 3, 5):
        shows += f"(W) mov (8|M0) r11.0<1>:ud r0.{number}<0;1,0>:ud\n(W) send (1|M0) null r10 0xC 0x04026E00\n"
        shows += "(W) add (1|M0) r10.0<1>:ud r10.0<0;1,0>:ud 4:w\n"
    front = {"scratch_space_base_pointer": 0x4000, "per_thread_scratch_space": 2, "stack_size": 2, "urb_entry_allocation_size": 5,
             "maximum_number_of_threads": roots - 1}  # fmt: skip
    ran = run(f"{shows}{waiting_loop(600)}{end(DONE)}", objects=[CHILDREN] * 2, front=front)
    found = tuple(value & ~0x3FF if number % 4 == 3 else value for number, value in enumerate(ran.buffer(0)))  # without ids
    assert found[0] == 2 and not warned(ran)
    assert (found[1:4], found[5:8]) == ((0, 2, 0x4000), (3, 2, 0x5000 if roots == 2 else 0x4000))


@pytest.mark.behaviour("BDW-MEDIA-01", shows="action")
def test_broken_rules_of_the_front_end_are_remarked() -> None:
    """The stack is part of the scratch space; entries, constants and descriptors fit into the URB (BDW 23828, 23934)."""
    rules = {"stack_size": 3}, {"urb_entry_allocation_size": 64, "number_of_urb_entries": 200}, {"curbe_allocation_size": 0x4000}
    for front, text in zip(rules, ("a stack of size 3", "bytes of the URB's", "bytes of the URB's"), strict=True):
        [warning] = warned(run(f"{BEGIN}{end(DONE)}", objects=[{}], front=front))
        assert text in warning
    ran = run(f"{BEGIN}{end(DONE)}", objects=[{}], front={"curbe_allocation_size": 0}, constants=1)
    assert "32 bytes of constants, 0 are allocated for them" in warned(ran)[0]


def test_a_front_end_without_entries_is_an_error() -> None:
    large = {"urb_entry_allocation_size": 0xFFFF}
    for front, text in (({"number_of_urb_entries": 0}, "MEDIA_VFE_STATE gives none"), (large, "bytes, it has")):
        with pytest.raises(DecodeError, match=text):
            run(f"{BEGIN}{end(DONE)}", objects=[CHILDREN], front=front)


# Sends what its inline data has as the messages of threads: opens a gateway, writes to another thread, releases an entry, spawns.
ANYTHING = f"""{BEGIN}(W) mov (8|M0) r30.0<1>:ud r1.0<8;8,1>:ud
(W) send (8|M0) null r30 0x3 0x02000000
(W) send (8|M0) null r30 0x3 0x02008002
(W) send (8|M0) null r30 0x7 0x02000000
(W) send (8|M0) null r30 0x7 {SPAWN:#010x}
"""
LIKELY = np.array([0x3, -1, 0x0, -1, 0x10C01, 0x0FFFFFFF, -1, -1])  # bits of messages that often mean something
REFUSED = r"deadlock: |a spawn message names \d+ registers|interface descriptor \d+ is asked for"


@pytest.mark.parametrize("seed", range(8))
def test_random_messages_of_threads_end_in_order_or_with_a_clear_error(seed: int) -> None:
    """Roots with random data; in every other run some are synchronised, and each may release one. A dword may be anything."""
    waits, random = seed % 2, np.random.default_rng(seed)
    words = random.integers(1 << 32, size=(3, 8)) & LIKELY
    if seed > 3:
        words[random.integers(3), random.integers(8)] = random.integers(1 << 32)
    objects = [{**CHILDREN, "interface_descriptor_offset": 1, "inline_data": data(*map(int, row)),
                "thread_synchronization": int(random.integers(1 + waits))} for row in words]  # fmt: skip
    root = f"{ANYTHING}{'(W) send (8|M0) null r30 0x7 0x02000011' * waits}\n{end(DONE)}"
    try:
        ran = run(f"{BEGIN}{end(CHILD_DONE)}", root, objects=objects, gpu=("bdw", "kbl", "icl")[seed % 3])
    except SoftgenError as error:
        assert re.search(REFUSED, str(error)), error
    else:
        assert 4 <= ran.gpu.counters.threads <= 6


def test_children_without_end_end_with_the_time_limit() -> None:
    """Each spawns the next."""
    child = f"{BEGIN}(W) mov (8|M0) r30.0<1>:ud r0.0<8;8,1>:ud\n(W) send (8|M0) null r30 0x7 {SPAWN:#010x}\n{end(CHILD_DONE)}"
    builds = BUILDS.replace("(W) send", f"{put('r21.2', CHILD << 4)}{put('r21.4', 2)}(W) send")
    with pytest.raises(SoftgenError, match=r"MEDIA_OBJECT .*time is up: "):
        run(f"{builds}{spawn()}{end(DONE)}", child, objects=[CHILDREN], limit=50)


def test_a_storm_of_children_is_a_deadlock() -> None:
    """Each child spawns two: all threads wait for room in the queue, which has an end (G45 9260)."""
    child = f"{BEGIN}(W) mov (8|M0) r30.0<1>:ud r0.0<8;8,1>:ud\n" + f"(W) send (8|M0) null r30 0x7 {SPAWN:#010x}\n" * 2 + end(CHILD_DONE)
    builds = BUILDS.replace("(W) send", f"{put('r21.2', CHILD << 4)}{put('r21.4', 2)}(W) send")
    with pytest.raises(SoftgenError, match=r"deadlock: 50 threads wait, 0 root threads are queued, .*; thread \d+, kernel"):
        run(f"{builds}{spawn()}{end(DONE)}", child, objects=[CHILDREN])
