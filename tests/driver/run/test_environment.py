"""The environment of programs: which drivers their loaders are told about, and which programs cannot be reached."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import pytest

from softgen.bits.generation import device, devices
from softgen.driver.run import environment
from softgen.driver.uapi import kernel_tables
from softgen.errors import SoftgenError

SHIM = "/there/_shim.so"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """An x86-64 host: files of drivers that are installed there."""
    present: set[str] = set()
    monkeypatch.setattr(environment, "shim", lambda: SHIM)
    monkeypatch.setattr(environment, "x86_64_host", lambda: True)
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.x86_64_host", lambda: True)
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [pattern] if pattern in present else [])
    return present


def files(*names: str) -> set[str]:
    return {runtime.files[0] for runtime in kernel_tables.runtimes() if runtime.name in names}


# -- variables


@pytest.mark.parametrize("given, preloaded", [
    (None, SHIM), ("", SHIM), ("/a.so", f"{SHIM} /a.so"), ("/a.so:/b.so /c.so", f"{SHIM} /a.so /b.so /c.so"),
    (f"/a.so:{SHIM}", f"{SHIM} /a.so"), (f"{SHIM} {SHIM}.1", f"{SHIM} {SHIM}.1"),
])  # fmt: skip
def test_the_shim_is_preloaded_first_and_once(host: set[str], tmp_path: Path, given: str | None, preloaded: str) -> None:
    """Names are separated by colons or blanks (ld.so(8))."""
    before = {"HOME": "/root"} | ({} if given is None else {"LD_PRELOAD": given})
    kept = dict(before)
    env = environment.environment(device("kbl"), tmp_path, before)
    assert env == {"HOME": "/root", "SOFTGEN_RUN": str(tmp_path), "LD_PRELOAD": preloaded} and before == kept


def test_loaders_are_told_of_what_is_installed(host: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the driver that is preferred for the GPU; without it of the other one, and without both of none."""
    monkeypatch.setattr(environment, "vendors", lambda folder, runtime: f"{folder}/{runtime.name}")
    own = {"SOFTGEN_RUN", "LD_PRELOAD"}
    host |= files("anv", "hasvk", "neo", "iHD", "i965", "iris", "crocus")
    found = environment.environment(device("kbl"), tmp_path, {})
    icd = "/usr/share/vulkan/icd.d/intel_icd.x86_64.json"
    assert (found["VK_ICD_FILENAMES"], found["VK_DRIVER_FILES"], found["LIBVA_DRIVER_NAME"]) == (icd, icd, "iHD")
    assert found["OCL_ICD_VENDORS"] == f"{tmp_path}/neo" and "GALLIUM_THREAD" not in found
    host -= files("iHD", "anv", "neo")
    found = environment.environment(device("kbl"), tmp_path, {})
    assert found["LIBVA_DRIVER_NAME"] == "i965" and set(found) == own | {"LIBVA_DRIVER_NAME"}
    host -= files("i965")
    assert set(environment.environment(device("kbl"), tmp_path, {})) == own


def test_what_the_user_has_set_stays(host: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "vendors", lambda folder, runtime: str(folder))
    host |= files("anv", "neo", "iHD")
    set_before = {"VK_ICD_FILENAMES": "mine", "OCL_ICD_VENDORS": "mine", "LIBVA_DRIVER_NAME": "mine", "OverrideEnableKmdNotify": "0"}
    found = environment.environment(device("kbl"), tmp_path, set_before)
    assert {name: found[name] for name in set_before} == set_before and found["VK_DRIVER_FILES"].endswith("intel_icd.x86_64.json")
    assert found["NEOReadDebugKeys"] == "1"


def test_the_folder_of_opencl_drivers_has_one_in_it(tmp_path: Path) -> None:
    icd = tmp_path / "there" / "intel.icd"
    icd.parent.mkdir()
    icd.write_text("/usr/lib/libigdrcl.so\n")
    (icd.parent / "other.icd").write_text("other")
    runtime = kernel_tables.Runtime("neo", "OpenCL", "package", ("kbl",), (str(tmp_path / "absent"), str(icd.parent / "int*")))
    for _ in range(2):  # also where it is there already
        folder = Path(environment.vendors(tmp_path, runtime))
        assert folder.parent == tmp_path and [path.name for path in folder.iterdir()] == ["intel.icd"]
        assert (folder / "intel.icd").read_text() == "/usr/lib/libigdrcl.so\n"


def test_a_shim_that_is_not_built_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in (None, type("Spec", (), {"origin": None})):
        monkeypatch.setattr("softgen.driver.run.environment.importlib.util.find_spec", lambda name, found=found: found)
        with pytest.raises(SoftgenError, match="_shim is not built; run `make`"):
            environment.shim()


@pytest.mark.parametrize("present", [True, False])
def test_other_hosts_have_a_second_shim_beside_the_first(present: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "x86_64_host", lambda: False)
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "run" / "environment.py"))
    second = tmp_path / "shim-x86_64.so"
    if present:
        second.touch()
    assert environment.x86_64_shim() == (str(second) if present else "")


# -- drivers that are missing


def test_a_line_for_each_api_whose_driver_is_missing(host: set[str]) -> None:
    host |= files("iris", "i965")
    lines = environment.missing(device("kbl"))
    assert lines == ["Vulkan: anv is not installed; apt-get install mesa-vulkan-drivers",
                     "OpenCL: neo is not installed; apt-get install intel-opencl-icd"]  # fmt: skip
    assert environment.missing(device("kbl"), ["OpenCL", "VA-API"]) == lines[1:] and environment.missing(device("kbl"), []) == []
    assert environment.missing(device("gm965"), {"VA-API"}) == [f"VA-API: no driver supports {device('gm965').title}"]


@pytest.mark.parametrize("name", devices())
def test_every_gpu_has_a_driver_of_opengl(name: str) -> None:
    assert [runtime.api for runtime in kernel_tables.runtimes_of(name)].count("OpenGL") == 1


# -- programs that the shim does not reach


def elf(path: Path, kinds: tuple[int, ...] = (1, 3), size: int = 56, where: int = 64) -> Path:
    """An x86-64 program with these program headers; what else its header has are ones."""
    head = bytearray(b"\xff" * 64)
    head[:6], head[18:20], head[32:40] = b"\x7fELF\x02\x01", b"\x3e\0", struct.pack("<Q", where)
    head[54:58] = struct.pack("<2H", size, len(kinds))
    between = bytes(where - 64 if where < 1 << 20 else 0)
    path.write_bytes(bytes(head) + between + b"".join(struct.pack("<I", kind).ljust(size, b"\xff") for kind in kinds))
    return path


@pytest.mark.parametrize("where, kinds, why", [
    (64, (0x01000003,), "is linked statically"), (64, (0x300,), "is linked statically"),
    (65, (3,), ""), (5000, (1, 3), ""), (70000, (3,), ""), (5000, (1,), "is linked statically"), (1 << 63, (1,), ""),
])  # fmt: skip
def test_where_a_program_has_its_headers(host: set[str], tmp_path: Path, where: int, kinds: tuple[int, ...], why: str) -> None:
    """Anywhere in its file; where no file can have them, the kernel says what is wrong."""
    assert environment.unreachable(str(elf(tmp_path / "program", kinds, where=where))) == why


def test_a_program_whose_shim_is_not_built(host: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "x86_64_shim", lambda: "")
    program = elf(tmp_path / "program")
    assert environment.unreachable(str(program)).startswith("runs x86-64 code, and the shim for it is not built")
    head = bytearray(program.read_bytes())
    head[18] = 183  # AArch64
    program.write_bytes(head)
    assert environment.unreachable(str(program)) == ""


@pytest.mark.parametrize("kinds, size, why", [
    ((1, 3), 56, ""), ((3, 1, 1), 64, ""), ((1,), 56, "is linked statically"), ((), 56, "is linked statically"),
    ((1,) * 9 + (3,), 56, ""), ((1,) * 1171 + (3,), 56, "is linked statically"), ((1,) * 1169 + (3,), 56, ""),
])  # fmt: skip
def test_a_dynamic_program_names_its_loader(host: set[str], tmp_path: Path, kinds: tuple[int, ...], size: int, why: str) -> None:
    """Anywhere in the 64 KiB of program headers that the kernel looks at."""
    assert environment.unreachable(str(elf(tmp_path / "program", kinds, size))) == why


@pytest.mark.parametrize("mode, user, told", [
    (0o755, 1000, False), (stat.S_ISUID | 0o755, 1000, True), (stat.S_ISGID | 0o755, 1000, True), (stat.S_ISVTX | 0o755, 1000, False),
    (stat.S_ISUID | 0o755, 0, False),
])  # fmt: skip
def test_a_program_that_changes_its_user(
    host: set[str], tmp_path: Path, mode: int, user: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dynamic loader preloads nothing into it; into those of root it does."""
    program = elf(tmp_path / "program")
    program.chmod(mode)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert environment.unreachable(str(program)) == ("changes its user when it starts (set-uid)" if told else "")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"#!/bin/sh\n", None])
def test_what_is_no_program_is_left_to_the_kernel(host: set[str], tmp_path: Path, data: bytes | None) -> None:
    program = tmp_path / "program"
    if data is not None:
        program.write_bytes(data)
    assert environment.unreachable(str(program)) == ""


def test_neither_is_a_part_of_a_header_nor_a_pipe(host: set[str], tmp_path: Path) -> None:
    program = elf(tmp_path / "program", ())
    program.write_bytes(program.read_bytes()[:63])
    os.mkfifo(tmp_path / "pipe")
    assert environment.unreachable(str(program)) == environment.unreachable(str(tmp_path / "pipe")) == ""


def test_an_emulator_may_be_linked_statically(host: set[str], tmp_path: Path) -> None:
    """QEMU itself is not what draws."""
    assert environment.unreachable(str(elf(tmp_path / "qemu-x86_64-static", ()))) == ""
    assert environment.unreachable(str(elf(tmp_path / "my-qemu-x86_64", ()))) == "is linked statically"
