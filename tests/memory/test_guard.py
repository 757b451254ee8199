"""Compiled code that touches nothing comes back as a GpuFault; any other crash stays a crash."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.memory import guard, host
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer, view_of

PAGE = 4096
GIB4 = 1 << 32
TAIL = 64 << 10  # bytes of the next arena that one shows at least


class Probe(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("value", ctypes.c_uint64), ("repeat", ctypes.c_uint64)]


def touch(space: AddressSpace, address: int, access: str = "read", value: int = 0) -> int:
    """One access of compiled code to a graphics address."""
    probe = Probe(space.table[address >> 32] + (address & 0xFFFFFFFF), value)
    function = ctypes.cast(getattr(guard.library(), f"guard_probe_{access}"), ctypes.c_void_p).value
    assert function
    guard.call(function, ctypes.addressof(probe), space)
    return int(probe.value)


@pytest.fixture
def space() -> AddressSpace:
    made = AddressSpace("context 3")
    made.map(0x10000, MemfdBuffer(PAGE, "data"))
    made.map(0x20000, MemfdBuffer(PAGE, "constants"), writable=False)
    made.map(GIB4 - PAGE, MemfdBuffer(PAGE, "edge"))
    return made


def test_good_accesses_go_through(space: AddressSpace) -> None:
    touch(space, 0x10008, "write", 0x1122334455667788)
    assert touch(space, 0x10008) == 0x1122334455667788 == space.read64(0x10008)
    assert touch(space, 0x20000) == 0


def test_a_mapping_across_the_border_ends_with_the_tail_of_the_first_arena() -> None:
    """The second part has an arena of its own; behind the first one's tail there is nothing."""
    space, buffer = AddressSpace("context 3"), MemfdBuffer(2 * TAIL + PAGE, "large")
    space.map(GIB4 - PAGE, buffer)
    assert touch(space, GIB4 - 8) == 0 and touch(space, GIB4 + TAIL) == 0  # now both arenas are there
    space.unmap(GIB4 - PAGE, buffer.size)
    space.map(GIB4 - PAGE, buffer)
    probe = Probe(space.table[0] + GIB4 + TAIL, 0)
    function = ctypes.cast(guard.library().guard_probe_read, ctypes.c_void_p).value
    with pytest.raises(SoftgenError):
        guard.call(function, ctypes.addressof(probe), space)  # type: ignore[arg-type]
    probe.address -= 8
    guard.call(function, ctypes.addressof(probe), space)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "address, access, words",
    [
        (0x11000, "read", "read at 0x11000 in context 3 by ip 0x10: not mapped"),
        (0xF000, "write", "write at 0xf000 in context 3 by ip 0x20: not mapped"),
        (0x0, "read", "read at 0x0 in context 3 by ip 0x10: not mapped"),
        (0x10FFC, "read", "read at 0x11000 in context 3 by ip 0x10: not mapped"),
        (0x20000, "write", "write at 0x20000 in context 3 by ip 0x20: 'constants' is mapped read-only"),
        (GIB4 - 4, "read", "read at 0x100000000 in context 3 by ip 0x10: not mapped"),
        (0x7_0000_1000, "read", "read at 0x1000 in context 3 by ip 0x10: low half of an address in a 4 GiB part where nothing is mapped"),
    ],
)
def test_wild_accesses_are_faults_with_a_place(space: AddressSpace, address: int, access: str, words: str) -> None:
    for _ in range(3):  # the same again: a signal left blocked would end the process the second time
        with pytest.raises(GpuFault) as fault:
            touch(space, address, access)
        assert str(fault.value) == words


def test_what_was_unmapped_faults_again(space: AddressSpace) -> None:
    assert touch(space, 0x10000) == 0
    space.unmap(0x10000, PAGE)
    with pytest.raises(GpuFault):
        touch(space, 0x10000)
    space.map(0x10000, MemfdBuffer(PAGE, "again"))
    assert touch(space, 0x10000) == 0


def test_signal_masks_are_as_before(space: AddressSpace) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        with pytest.raises(GpuFault):
            touch(space, 0)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before | {signal.SIGUSR1}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_guarded_calls_nest(space: AddressSpace) -> None:
    seen: list[int] = []

    def outer(argument: int, record: int) -> int:
        for address in (0x40000, 0x50000):
            try:
                touch(space, address)
            except GpuFault as fault:
                seen.append(fault.address)
        return 77

    native = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(outer)
    function = ctypes.cast(native, ctypes.c_void_p).value
    assert function and guard.call(function, 0) == 77 and seen == [0x40000, 0x50000]
    with pytest.raises(GpuFault):
        touch(space, 0x60000)


def test_code_may_leave_with_an_address_of_its_own(space: AddressSpace) -> None:
    leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
    assert leave
    library = compile_c("#include <stdint.h>\nint64_t f(void (*leave)(uint64_t, uint32_t)) { leave(0x5eadbeef0000, 1); return 0; }")
    function = ctypes.cast(library.f, ctypes.c_void_p).value
    assert function
    with pytest.raises(GpuFault, match=r"^write at 0x5eadbeef0000 in context 3: not mapped$"):
        guard.call(function, leave, space)
    library = compile_c("#include <stdint.h>\nint64_t f(void (*leave)(uint64_t, uint32_t)) { leave(0x8000000000000000, 0); return 0; }")
    function = ctypes.cast(library.f, ctypes.c_void_p).value
    with pytest.raises(GpuFault, match=r"^read at 0x8000000000000000 in context 3: not a canonical address$"):
        guard.call(function or 0, leave, space)


@pytest.mark.parametrize("address, canonical", [
    (0, True), ((1 << 47) - 1, True), (1 << 47, False), ((1 << 48) - 1, False), (1 << 48, False), (0xFFFF_7FFF_FFFF_FFFF, False),
    (0xFFFF_8000_0000_0000, True), ((1 << 64) - 1, True),
])  # fmt: skip
def test_bits_63_to_48_of_a_canonical_address_are_like_bit_47(address: int, canonical: bool) -> None:
    record = guard.FaultRecord(origin=guard.FROM_CODE, address=address, ip=guard.NO_IP)
    assert ("not a canonical address" in str(guard.fault(record, None))) is not canonical


class Loose:
    """A store nobody sealed."""

    name, capacity = "loose", 2 * PAGE

    def __init__(self) -> None:
        self.fd = os.memfd_create("loose")
        os.ftruncate(self.fd, self.capacity)

    def window(self, offset: int, size: int) -> memoryview:
        return view_of(host.map_file(self.fd, offset, size, writable=True), size)


def test_memory_that_was_truncated_away_is_a_fault_too(space: AddressSpace) -> None:
    loose = Loose()
    space.map(0x30000, loose)
    assert touch(space, 0x31000) == 0
    os.ftruncate(loose.fd, PAGE)
    for access in ("read", "write"):
        with pytest.raises(GpuFault) as fault:
            touch(space, 0x31000, access)
        assert (fault.value.address, fault.value.access, fault.value.why) == (0x31000, access, "the memory of 'loose' was released")
    assert touch(space, 0x30000) == 0
    os.close(loose.fd)


# A native function that reads and writes at given addresses, as a kernel would: ip first, then one look at the table.
WANDER = """
#include <stdint.h>
struct record { uint64_t ip; };
struct job { const uint64_t *table; const uint64_t *addresses; uint64_t count, write, sum; };
int64_t wander(struct job *job, struct record *record)
{
    for (uint64_t i = 0; i < job->count; i++) {
        uint64_t a = job->addresses[i];
        volatile uint32_t *at = (volatile uint32_t *)(job->table[a >> 32] + (uint32_t)a);
        record->ip = i * 16;
        if (job->write) *at = (uint32_t)a; else job->sum += *at;
    }
    return (int64_t)job->count;
}
"""


class Job(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("table", "addresses", "count", "write", "sum")]


def compile_c(source: str) -> ctypes.CDLL:
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/test.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=source.encode(), check=True)
        return ctypes.CDLL(path)


def test_native_code_wanders_through_wild_addresses_from_several_threads() -> None:
    function = ctypes.cast(compile_c(WANDER).wander, ctypes.c_void_p).value
    assert function
    spaces = [AddressSpace(f"space {i}") for i in range(3)]
    for space in spaces:
        for part in (0, 1, 0xFFFF):
            space.map(part * GIB4 + 0x100000, MemfdBuffer(16 * PAGE, "island"))
        assert space.table
    ready = threading.Barrier(4)

    def thread(seed: int) -> int:
        random, faults = Random(seed), 0
        ready.wait()
        for turn in range(150):
            space, write = random.choice(spaces), random.random() < 0.5
            good = [random.choice((0, 1, 0xFFFF)) * GIB4 + 0x100000 + random.randrange(0, 16 * PAGE, 4) for _ in range(5)]
            below, above = random.randrange(0, 0x100000, 4), random.randrange(0x110000, GIB4, 4)
            wild = random.choice((0, 1, 0xFFFF)) * GIB4 + random.choice((below, above))
            addresses = (ctypes.c_uint64 * 6)(*good, wild if turn % 3 else good[0])
            job = Job(ctypes.addressof(space.table), ctypes.addressof(addresses), 6, write)
            try:
                assert guard.call(function, ctypes.addressof(job)) == 6 and turn % 3 == 0
            except GpuFault as fault:
                expected = (wild, "write" if write else "read", space.name, "ip 0x50", "not mapped")
                assert (fault.address, fault.access, fault.space, fault.by, fault.why) == expected
                faults += 1
        return faults

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(thread, range(4))) == [100] * 4


# Threads that are all inside a guarded call before the first of them faults.
TOGETHER = """
#include <stdatomic.h>
#include <stdint.h>
struct job { volatile uint32_t *wild; atomic_int *inside; int64_t threads; void (*callback)(void); };
int64_t together(struct job *job)
{
    atomic_fetch_add(job->inside, 1);
    for (uint64_t spins = 0; atomic_load(job->inside) < job->threads; spins++)
        if (spins > 4000000000u) return -1;
    return *job->wild;
}
int64_t around(struct job *job)
{
    job->callback();
    return *job->wild;
}
"""


class Meeting(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("wild", "inside", "threads", "callback")]


def test_each_thread_returns_to_its_own_call() -> None:
    function = ctypes.cast(compile_c(TOGETHER).together, ctypes.c_void_p).value
    space, threads = AddressSpace("s"), 3
    space.map(0, MemfdBuffer(PAGE, "b"))
    base = space.table[0]
    assert function
    with ThreadPoolExecutor(threads) as pool:
        for turn in range(1, 20):
            inside = ctypes.c_int(0)

            def thread(i: int, turn: int = turn, inside: ctypes.c_int = inside) -> int:
                job = Meeting(base + turn * 0x100000 + i * PAGE, ctypes.addressof(inside), threads)
                with pytest.raises(GpuFault) as fault:
                    guard.call(function, ctypes.addressof(job))
                return fault.value.address

            assert list(pool.map(thread, range(threads))) == [turn * 0x100000 + i * PAGE for i in range(threads)]


def test_the_outer_call_is_still_guarded_after_an_inner_fault(space: AddressSpace) -> None:
    def inner() -> None:
        with pytest.raises(GpuFault):
            touch(space, 0x40000)

    callback = ctypes.CFUNCTYPE(None)(inner)
    job = Meeting(space.table[0] + 0x50000, 0, 0, ctypes.cast(callback, ctypes.c_void_p).value)
    function = ctypes.cast(compile_c(TOGETHER).around, ctypes.c_void_p).value
    assert function
    with pytest.raises(GpuFault, match=r"^read at 0x50000 in context 3: not mapped$"):
        guard.call(function, ctypes.addressof(job))


CRASH = """
import ctypes, faulthandler, sys
from softgen.memory import guard
from softgen.memory.address_space import AddressSpace
from tests.memory.test_guard import Probe, touch
from softgen.errors import GpuFault
{before}
space = AddressSpace("s")
try: touch(space, 0x1000)
except GpuFault: print("fault", flush=True)
{after}
try: touch(space, 0x1000)
except GpuFault: print("fault", flush=True)
{crash}
print("alive", flush=True)
"""
OUTSIDE = 'guard.call(ctypes.cast(guard.library().guard_probe_read, ctypes.c_void_p).value, ctypes.addressof(Probe(0x10)))'


@pytest.mark.parametrize(
    "before, after, crash, says",
    [
        ("", "", OUTSIDE, ""),
        ("", "", "ctypes.string_at(space.table[0] + 0x1000, 4)", ""),  # inside an arena, but nobody guards it
        ("", "", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", ""),
        ("faulthandler.enable()", "", OUTSIDE, "Segmentation fault"),
        ("", "faulthandler.enable()", OUTSIDE, "Segmentation fault"),
    ],
    ids=["outside", "unguarded", "sent", "faulthandler before", "faulthandler after"],
)
def test_a_real_crash_stays_a_crash(before: str, after: str, crash: str, says: str) -> None:
    program = CRASH.format(before=before, after=after, crash=crash)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=20)
    assert done.returncode == -signal.SIGSEGV and done.stdout == "fault\nfault\n", (done.stdout, done.stderr)
    assert says in done.stderr


def test_a_missing_library_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    guard._load.cache_clear()
    with pytest.raises(SoftgenError, match=r"softgen.memory._guard is not built; run .*build_ext --inplace"):
        guard.library()
    monkeypatch.undo()
    guard._load.cache_clear()
    assert guard.library()
