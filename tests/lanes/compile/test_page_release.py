"""Resident pages of libraries: given back when idle, and mapped again when they are used."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import llvmlite
import pytest

from softgen.lanes.compile import jit, page_release
from softgen.lanes.compile.page_release import LibraryPages

IR = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 5\n  ret i32 %y\n}\n"
SHOWN = """
import ctypes, re
from softgen.lanes.compile import jit
def mapped():
    return sum(map(int, re.findall(r"^RssFile:\\s+(\\d+) kB", open("/proc/self/status").read(), re.MULTILINE)))
data = jit.compile_object({ir!r}, jit.host())
code = jit.LoadedCode(data, ("f",))
before = mapped()
jit._pages.release()
print(before, mapped())
function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code.address("f"))
again = jit.LoadedCode(jit.compile_object({ir!r}, jit.host()), ("f",))
print(function(37), ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(again.address("f"))(1))
"""


def test_pages_of_llvm_are_given_back_and_llvm_still_works() -> None:
    """In a process of its own: others have loaded what they have loaded."""
    ran = subprocess.run([sys.executable, "-c", SHOWN.format(ir=IR)], capture_output=True, text=True, check=True)
    sizes, results = ran.stdout.splitlines()
    before, after = map(int, sizes.split())
    assert after < before - 20_000  # kB
    assert results == "42 6"


def test_pages_are_those_of_the_file_where_the_library_is_behind_a_link(tmp_path: Path) -> None:
    """As in an environment that is a link to another: a process has the file's own name in its list of mappings."""
    (tmp_path / "linked").symlink_to(Path(llvmlite.__file__).resolve().parent.parent)
    script = "from softgen.lanes.compile import jit, page_release; jit.host(); print(len(page_release._unwritten(jit._pages.library)))"
    path = os.pathsep.join([str(tmp_path / "linked"), *sys.path])
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    assert int(ran.stdout) > 0


def test_what_is_not_loaded_has_no_pages() -> None:
    assert page_release.release("/no/such/library.so") == 0


def test_only_pages_up_to_the_code_are_named() -> None:
    """What follows may have been relocated: it is mapped from the part of the file that is written."""
    jit.host()
    ranges = page_release._unwritten(jit._pages.library)
    assert ranges
    with open("/proc/self/maps", encoding="utf-8") as maps:
        lines = [line.split() for line in maps if line.rstrip().endswith(jit._pages.library)]
    writable = [int(fields[0].split("-")[0], 16) for fields in lines if "w" in fields[1]]
    assert writable and max(end for _, end in ranges) <= min(writable)
    assert any("x" in fields[1] and (int(fields[0].split("-")[0], 16), int(fields[0].split("-")[1], 16)) in ranges for fields in lines)


def test_the_bytes_of_what_was_given_back_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges that the host refuses do not count."""
    jit.host()
    ranges = page_release._unwritten(jit._pages.library)
    assert page_release.release(jit._pages.library) == sum(end - start for start, end in ranges) > 0
    monkeypatch.setattr(page_release, "_unwritten", lambda library: [*ranges, (1, 2)])
    assert page_release.release("") == sum(end - start for start, end in ranges)


def test_pages_are_given_back_and_then_freed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[str]()
    monkeypatch.setattr(page_release, "release", lambda library: calls.append(library))
    monkeypatch.setattr(page_release, "trim_heap", lambda: calls.append("heap"))
    LibraryPages("/lib/first.so").release()
    assert calls == ["/lib/first.so", "heap"]


@pytest.mark.parametrize("found, calls", [({}, []), ({"malloc_trim": None}, [0])])
def test_memory_that_was_freed_is_given_back_where_the_c_library_can(
        found: dict[str, None], calls: list[int], monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    seen: list[int] = []
    library = SimpleNamespace(**dict.fromkeys(found, seen.append))
    monkeypatch.setattr(page_release.ctypes, "CDLL", lambda name: library)
    page_release.trim_heap()
    assert seen == calls


MAPS = """\
1000-2000 r--p 00000000 08:01 11 /lib/first.so
2000-5000 r-xp 00001000 08:01 11 /lib/first.so
5000-6000 r--p 00004000 08:01 11 /lib/first.so
6000-7000 rw-p 00005000 08:01 11 /lib/first.so
7000-8000 rw-p 00000000 00:00 0
8000-9000 r-xp 00000000 08:01 12 /lib/first.so.2
9000-a000 r--s 00000000 08:01 13 /lib/with a space.so
a000-b000 r-xp 00001000 08:01 13 /lib/with a space.so
"""


@pytest.mark.parametrize("library, ranges", [
    ("/lib/first.so", [(0x1000, 0x2000), (0x2000, 0x5000)]), ("/lib/with a space.so", [(0xA000, 0xB000)]), ("/lib/second.so", []),
])  # fmt: skip
def test_code_and_what_is_read_only_before_it_are_unwritten(
        library: str, ranges: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(page_release, "Path", lambda path: SimpleNamespace(read_text=lambda *how: MAPS))
    assert page_release._unwritten(library) == ranges


def test_pages_are_given_back_when_nothing_has_used_them_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_release, "IDLE", 0.5)  # a host that is busy sleeps longer than it was told
    released: list[float] = []
    pages = LibraryPages("none")
    monkeypatch.setattr(pages, "release", lambda: released.append(time.monotonic()))
    last = 0.0
    for _ in range(5):
        pages.used()
        last = time.monotonic()
        time.sleep(0.02)
    deadline = time.monotonic() + 20
    while not released and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(released) == 1 and released[0] >= last + 0.4
    pages.used()  # and again
    while len(released) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(released) == 2


def test_a_program_ends_without_waiting_until_pages_are_idle() -> None:
    script = "from softgen.lanes.compile import page_release; page_release.IDLE = 60.0; page_release.LibraryPages('none').used()"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
