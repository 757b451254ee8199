"""Memory of the program as a buffer: which of its mappings are swapped for the server's, which are copied, and which are none."""

from __future__ import annotations

import ctypes
import errno
import gc
import mmap
import os
import platform
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.ioctl import userptr
from softgen.driver.objects.budget import Budget
from softgen.driver.objects.node import OBJECT_BYTES
from softgen.driver.shim import shim_h
from tests.conftest import ROOT
from tests.driver.ioctl.test_gem import refused, submit
from tests.driver.program import Gpu, Held, Program, served

MIB = 1 << 20
BASE, PAGE = 0x7000_0000_0000, 4096
END = 1 << (47 if platform.machine() == "x86_64" else 48)  # of a program's addresses


def asked(program: Program, swaps: bool = False) -> list[int]:
    """Kinds of the questions that the server asks the program from now on; `swaps`: it says that it has replaced memory."""
    found: list[int] = []
    serve = program._serve

    def noted(kind: int, *rest: Any) -> None:
        found.append(kind)
        if kind == shim_h.SWAP and swaps:
            program._send(shim_h.REPLY, 0, 0, 0, b"")
        else:
            serve(kind, *rest)

    program._serve = noted  # type: ignore[method-assign]
    return found


def lines(*mappings: tuple[int, int, str, str]) -> bytes:
    """/proc/PID/maps with some mappings: pages of start and end, mode, name."""
    return "".join(f"{BASE + PAGE * start:x}-{BASE + PAGE * end:x} {mode} 00000000 00:01 77 {name}\n"
                   for start, end, mode, name in mappings).encode()  # fmt: skip


@pytest.mark.parametrize("start, end, found", [
    (0x7000, 0x9000, [0, 1]), (0x8FFF, 0x9000, [1]), (0x9000, 0xA000, []), (0x7FFF, 0x8000, [0]), (0x6000, 0x7000, []),
    (0x7000, 0x7001, [0]), (0, 1 << 48, [0, 1, 2]),
])  # fmt: skip
def test_the_lines_of_a_range(start: int, end: int, found: list[int]) -> None:
    """As in proc(5): addresses, mode, offset, device and inode in decimal, name; lines that are none are left out."""
    text = ("7000-8000 r-xp 00012000 fd:1a 1234567                    /usr/lib/a name.so\n"
            "8000-9000 rw-s 00000000 00:05 42                         /memfd:softgen userptr (deleted)\n"
            "no line\n7fff00000000-7fff00010000 ---p ab000 00:00 0 \n")  # fmt: skip
    expected = [userptr.Mapping(0x7000, 0x8000, "r-xp", 0x12000, (os.makedev(0xFD, 0x1A), 1234567), "/usr/lib/a name.so"),
                userptr.Mapping(0x8000, 0x9000, "rw-s", 0, (os.makedev(0, 5), 42), "/memfd:softgen userptr (deleted)"),
                userptr.Mapping(0x7FFF_0000_0000, 0x7FFF_0001_0000, "---p", 0xAB000, (0, 0), "")]  # fmt: skip
    assert userptr.mappings(text, start, end) == [expected[number] for number in found]


@pytest.fixture(scope="module")
def shim_memory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The part of the shim that knows the program's memory, with its functions."""
    built, folder = tmp_path_factory.mktemp("shim") / "memory.so", ROOT / "softgen" / "driver" / "shim"
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", folder / "shim_memory.c", "-o", built], check=True)
    found = ctypes.CDLL(str(built))
    found.maps_of_range.argtypes = (ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_size_t))
    found.maps_of_range.restype = ctypes.c_void_p
    return found


def told(shim_memory: Any, start: int, end: int) -> str:
    """What the shim says of a range of this process."""
    size = ctypes.c_size_t()
    text = shim_memory.maps_of_range(start, end, size)
    try:
        return ctypes.string_at(text, size.value).decode()
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


@pytest.mark.parametrize("name", ["plain", "two\nlines", "n" * 200])
def test_a_program_tells_the_mappings_of_a_range_as_the_kernel_does(name: str, shim_memory: Any) -> None:
    """Six pages: private, of a file that is shared, nothing, read only, of the file again, none of its rights."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.argtypes, libc.mmap.restype = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long), ctypes.c_void_p
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    file = os.memfd_create(name)
    os.truncate(file, 4 * PAGE)
    base, anonymous, fixed = libc.mmap(None, 8 * PAGE, 0, 0x22, -1, 0), 0x32, 0x10
    for page, access, flags, descriptor, offset in ((1, 3, anonymous, -1, 0), (2, 3, fixed | 1, file, 2 * PAGE), (4, 1, anonymous, -1, 0),
                                                    (5, 5, fixed | 2, file, PAGE), (6, 0, 0x31, -1, 0)):  # fmt: skip
        assert libc.mmap(base + page * PAGE, PAGE, access, flags, descriptor, offset) == base + page * PAGE
    libc.munmap(base + 3 * PAGE, PAGE)
    try:
        for first, last in ((1, 7), (2, 3), (3, 4), (3, 5), (0, 2), (6, 6)):
            start, end = base + first * PAGE, base + last * PAGE
            with open("/proc/self/maps", encoding="utf-8") as maps:
                expected = userptr.mappings(maps.read(), start, end)
            text = told(shim_memory, start, end)
            assert userptr.mappings(text, start, end) == expected and (expected or first == last or first == 3)
            if "\n" not in name and tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 11):
                assert len(text.splitlines()) == len(expected), "nothing but these"
    finally:
        libc.munmap(base, 8 * PAGE)
        os.close(file)


def test_of_thousands_of_lines_few_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs ask for hundreds of buffers; names may have any character but the one at the end of a line."""
    text, read = "".join(f"{page:x}000-{page + 1:x}000 rw-p 00000000 00:00 0 {name}\n" for page in range(1, 4000)
                         for name in ["a\x0bb\x0c\x1c\u2028c" if page % 2 else ""]), list[str]()  # fmt: skip
    pattern = userptr.MAPS_LINE
    monkeypatch.setattr(userptr, "MAPS_LINE", SimpleNamespace(match=lambda line: (read.append(line), pattern.match(line))[1]))
    found = userptr.mappings(text, 0x801000, 0x803000)
    assert [(mapping.start, mapping.name) for mapping in found] == [(0x801000, "a\x0bb\x0c\x1c\u2028c"), (0x802000, "")] and len(read) == 3
    assert [mapping.start for mapping in userptr.mappings(text, 0x1FFF, 0x2000)] == [0x1000]
    assert userptr.mappings(text, 0, 0x1000) == userptr.mappings(text, 4000 << 12, 4001 << 12) == userptr.mappings("", 0, 0x1000) == []


@pytest.mark.parametrize("mode, name, swapped", [
    ("rw-p", "", True), ("rw-p", "[heap]", True), ("rw-p", "/tmp/file", True), ("rw-s", "/memfd:softgen userptr (deleted)", True),
    ("rw-s", "/dev/shm/file", False), ("rw-p", "[stack]", False), ("r-xp", "[vdso]", False),
])  # fmt: skip
def test_only_private_memory_of_the_program_is_swapped(gpu: Gpu, mode: str, name: str, swapped: bool) -> None:
    """Others see what is written to shared memory, and the kernel looks after a stack; the program is not asked to replace those."""
    program = gpu.program()
    program.maps = lines((0, 4, mode, name))
    kinds = asked(program)
    refused(errno.EFAULT, program, "DRM_IOCTL_I915_GEM_USERPTR", address=BASE, size=4 * PAGE)  # there is no such memory to copy
    assert (shim_h.SWAP in kinds) is swapped and shim_h.MAPS in kinds


PRIVATE = "rw-p", ""


@pytest.mark.parametrize("mappings, swaps", [
    ([(0, 4, *PRIVATE)], 1), ([(0, 2, *PRIVATE), (2, 4, *PRIVATE)], 2), ([(0, 2, *PRIVATE), (2, 9, "r--p", "/file")], 2),
])  # fmt: skip
def test_memory_may_be_in_several_mappings(gpu: Gpu, mappings: list[tuple[int, int, str, str]], swaps: int) -> None:
    program = gpu.program()
    program.maps = lines(*mappings)
    kinds = asked(program, swaps=True)
    assert program.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=BASE, size=4 * PAGE).handle and kinds.count(shim_h.SWAP) == swaps


@pytest.mark.parametrize("mappings", [
    [(0, 2, *PRIVATE), (3, 4, *PRIVATE)], [(0, 3, *PRIVATE)], [(1, 4, *PRIVATE)], [(0, 4, "---p", "")],
    [(0, 2, *PRIVATE), (2, 4, "-w-p", "")], [],
])  # fmt: skip
def test_memory_with_a_hole_is_none(gpu: Gpu, mappings: list[tuple[int, int, str, str]]) -> None:
    """Pages that are not mapped, or that the program may not read itself."""
    program = gpu.program()
    program.maps = lines((-9, -8, *PRIVATE), *mappings)
    asked(program, swaps=True)
    refused(errno.EFAULT, program, "DRM_IOCTL_I915_GEM_USERPTR", address=BASE, size=4 * PAGE)


def taken(gpu: Gpu, program: Program) -> int:
    """Bytes besides buffers, without those that were given back: after an answer, so before the next one."""
    program.ioctl("DRM_IOCTL_VERSION")
    gpu.shared.budget.check(0, 1, "settled")
    return gpu.shared.budget.other.total()


def test_a_copy_counts_twice_and_is_given_back() -> None:
    """The buffer and what it held when it was last the same as the program's memory."""
    size = 120 * MIB
    with served("kbl", Held(), memory_limit=256 * MIB) as gpu:
        program = gpu.program()
        shared = mmap.mmap(-1, size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(shared))
        program.lent.append((address, size))
        refused(errno.ENOMEM, program, "DRM_IOCTL_I915_GEM_USERPTR", address=address, size=size)
        before = taken(gpu, program)
        handle = program.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=address, size=size // 2).handle
        assert taken(gpu, program) == before + size // 2 + OBJECT_BYTES
        program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
        gc.collect()
        assert taken(gpu, program) == before


def test_memory_that_cannot_be_swapped_is_copied_and_only_changes_come_back(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    shared = mmap.mmap(-1, 8192)  # shared, so nobody may swap it
    shared[:] = b"a" * 8192
    view = memoryview(shared)
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    program.lent.append((address, 8192))
    handle = program.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=address, size=8192).handle
    shared[10] = ord("b")
    submit(program, handle)
    bo = held.submissions[0].bound[0].bo
    assert bo.copied is not None and bo.read(8, 4) == b"aaba"
    bo.views(4096, 3)[0][:] = b"GPU"
    shared[0] = ord("P")  # the program writes beside it meanwhile
    bo.copied.give_back()
    assert shared[4095:4100] == b"aGPUa" and shared[0] == ord("P")


@pytest.mark.parametrize("whose", ["own", "another"])
def test_a_buffer_that_is_mapped_is_memory_of_the_program_too(gpu: Gpu, whose: str) -> None:
    """The last two pages of it: both are the same memory, if the buffer is of the same node. Of another one it is copied."""
    program, other = gpu.program(), gpu.program()
    owner = program if whose == "own" else other
    handle = owner.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4 * PAGE).handle
    descriptor, at = owner.mmap(owner.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=2).offset, 4 * PAGE)
    view = mmap.mmap(descriptor, 4 * PAGE, offset=at)
    os.close(descriptor)
    start = ctypes.addressof(ctypes.c_char.from_buffer(view))
    program.lent.append((start, 4 * PAGE))
    user = program.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=start + 2 * PAGE, size=2 * PAGE).handle
    for place in (0, 2 * PAGE - 1):
        program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=user, offset=place, size=1, data=program.memory(b"x").address)
    same = [at for at, byte in enumerate(view[:]) if byte]
    assert same == ([2 * PAGE, 4 * PAGE - 1] if whose == "own" else [])


@pytest.mark.parametrize("address, size, number", [
    (4096, 100, errno.EINVAL), (100, 4096, errno.EINVAL), (1 << 46, 4096, errno.EFAULT), (END - (1 << 30), 1 << 30, errno.EFAULT),
    (END - (1 << 30), (1 << 30) + 4096, errno.EINVAL), (END, 4096, errno.EINVAL), (END - 4096, 0, errno.EINVAL)])  # fmt: skip
def test_memory_that_is_not_there_is_refused(gpu: Gpu, address: int, size: int, number: int) -> None:
    refused(number, gpu.program(), "DRM_IOCTL_I915_GEM_USERPTR", address=address, size=size)


@pytest.mark.parametrize("mode, protection", [("r--p", 1), ("rw-p", 3), ("r-xp", 5), ("rwxp", 7), ("---p", 0)])
def test_pages_that_are_swapped_stay_as_protected_as_they_were(mode: str, protection: int) -> None:
    """PROT_READ, PROT_WRITE and PROT_EXEC; all of the new memory is the range's."""
    swaps = list[tuple[int, ...]]()
    gpu: Any = SimpleNamespace(budget=Budget(1 << 30), swapped={})
    call: Any = SimpleNamespace(channel=SimpleNamespace(pid=5), swap=lambda *arguments: swaps.append(arguments))
    mapping = userptr.Mapping(0x10000, 0x30000, mode, 0, (0, 0), "[heap]")
    found = userptr.swapped(gpu, call, mapping, 0x12000, 0x15000)
    assert found is not None
    buffer, offset, size = found
    assert (offset, size, buffer.capacity) == (0, 0x3000, 0x3000) and swaps == [(0x12000, 0x3000, protection, buffer.fd)]
    assert gpu.swapped == {(5, buffer.identity): buffer} and dict(gpu.budget.buffers) == {buffer: 5}


def test_lines_that_are_none_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may make up millions of them; the shortest that the kernel writes are looked at."""
    line = "00400000-00401000 r--p 00000000 00:00 0 \n"
    assert len(userptr.mappings(line * 3, 0, 1 << 47)) == 3
    looked = list[str]()
    monkeypatch.setattr(userptr, "MAPS_LINE", SimpleNamespace(match=looked.append))
    for text in ("\n" * 100, "00400000-00401000 r--p\n" * 100, line + "\n" * 100):
        assert userptr.mappings(text, 0, 1 << 47) == []
    assert not looked
