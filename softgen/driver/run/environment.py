"""Environment variables that make each runtime pick the Intel driver, and messages about missing drivers."""

from __future__ import annotations

import importlib.util
import os
import stat
import struct
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from softgen.driver.uapi.kernel_tables import Runtime, runtimes, runtimes_of, x86_64_host
from softgen.errors import SoftgenError

if TYPE_CHECKING:
    from softgen.bits.generation import Device

ELF_HEADER = 64  # bytes, of 64-bit programs; of 32-bit ones 52
ELF_HEADERS = 1 << 16  # bytes of all program headers at most: with more, the kernel does not start a program
ELF_64_BIT = 2  # the class in the header of 64-bit programs
INTERPRETER = 3  # the program header of programs that a dynamic loader starts
EM_X86_64 = 62  # the machine in the header of x86-64 programs
EMULATOR = "qemu-x86_64"  # QEMU's user mode; linked statically its name is longer
BUILD = "run `make` or `python setup.py build_ext --inplace` at the repository's root"


def shim() -> str:
    """Path of the library to preload."""
    found = importlib.util.find_spec("softgen.driver._shim")
    if found is None or found.origin is None:
        raise SoftgenError(f"softgen.driver._shim is not built; {BUILD}")
    return found.origin


def x86_64_shim() -> str:
    """Path of the shim for x86-64 programs; '' where none is built. On other hosts it is a second one, for programs that QEMU runs."""
    second = Path(__file__).parents[1] / "shim-x86_64.so"
    return shim() if x86_64_host() else str(second) if second.exists() else ""


def environment(device: Device, folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """The program's environment. What the user set about drivers stays as it is."""
    env = dict(given)
    env["SOFTGEN_RUN"] = str(folder)
    others = [library for library in given.get("LD_PRELOAD", "").replace(":", " ").split() if library != shim()]
    env["LD_PRELOAD"] = " ".join([shim(), *others])
    if not x86_64_host() and (second := x86_64_shim()):  # QEMU sets it for the program it runs, whatever its own is
        env["QEMU_SET_ENV"] = ",".join(filter(None, [given.get("QEMU_SET_ENV"), f"LD_PRELOAD={second}"]))
    of_api = {runtime.api: runtime for runtime in reversed(runtimes_of(device.name)) if installed(runtime)}
    if vulkan := of_api.get("Vulkan"):
        for name in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
            env.setdefault(name, installed(vulkan))
    if opencl := of_api.get("OpenCL"):
        env.setdefault("OCL_ICD_VENDORS", vendors(folder, opencl))
    for runtime in of_api.values():
        for name, value in runtime.environment.items():
            env.setdefault(name, value)
    if video := of_api.get("VA-API"):
        env.setdefault("LIBVA_DRIVER_NAME", video.name)
    return env


def installed(runtime: Runtime) -> str:
    """The file that shows that a driver is installed: on this host, or where QEMU looks for the files of x86-64 programs."""
    prefix = "" if x86_64_host() else os.environ.get("QEMU_LD_PREFIX", "")
    return prefix and runtime.found(prefix) or runtime.found()


def vendors(folder: Path, runtime: Runtime) -> str:
    """A folder with this one OpenCL driver in it, so that no other is picked."""
    own = folder / "vendors"
    own.mkdir(exist_ok=True)
    icd = Path(installed(runtime))
    (own / icd.name).write_text(icd.read_text("utf-8"), "utf-8")
    return str(own)


def unreachable(program: str) -> str:
    """Why the shim cannot be preloaded into a program; '' where it can."""
    try:
        with os.fdopen(os.open(program, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a pipe has nothing to read
            head = file.read(ELF_HEADER) or b""
            elf = head[:4] == b"\x7fELF" and len(head) == ELF_HEADER
            kinds = segments(file, head) if elf and head[4] == ELF_64_BIT else []
        if os.stat(program).st_mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid():
            return "changes its user when it starts (set-uid)"
    except (OSError, ValueError):  # ValueError: an offset that no file has
        return ""  # starting it reports the error
    if not elf:
        return ""
    if head[4] != ELF_64_BIT:
        return "is a 32-bit program"
    emulator = os.path.basename(program).startswith(EMULATOR)
    if (emulator or machine(head) == EM_X86_64) and not x86_64_shim():
        return f"runs x86-64 code, and the shim for it is not built (install gcc-x86-64-linux-gnu, then {BUILD})"
    if emulator:
        return ""
    return "" if INTERPRETER in kinds else "is linked statically"


def segments(file: BinaryIO, head: bytes) -> list[int]:
    """The types in the program headers of a 64-bit ELF file, wherever in the file they are."""
    where, size, count = int.from_bytes(head[32:40], "little"), *struct.unpack_from("<HH", head, 54)
    file.seek(where)
    table = file.read(min(size * count, ELF_HEADERS))
    return [int.from_bytes(table[size * i :][:4], "little") for i in range(count)]


def machine(head: bytes) -> int:
    """Which processor an ELF file's header names."""
    return int.from_bytes(head[18:20], "little")


def advice(program: str) -> str:
    """What to do about a program that the kernel does not start; '' where nothing is known."""
    with open(program, "rb") as file:
        head = file.read(20)
    x86_64 = head[:5] == b"\x7fELF\x02" and machine(head) == EM_X86_64
    return f"; it is an x86-64 program: softgen run -- {EMULATOR} {program} (docs/running.md)" if x86_64 and not x86_64_host() else ""


def missing(device: Device, apis: Collection[str] | None = None) -> list[str]:
    """A line for each API (of these) whose driver for this GPU is not installed, or does not exist."""
    lines = []
    for api in dict.fromkeys(runtime.api for runtime in runtimes() if apis is None or runtime.api in apis):
        serving = [runtime for runtime in runtimes_of(device.name) if runtime.api == api]
        if not serving:
            lines.append(f"{api}: no driver supports {device.title}")
        elif not any(installed(runtime) for runtime in serving):
            packages = " or ".join(dict.fromkeys(runtime.debian_package for runtime in serving))
            lines.append(f"{api}: {serving[0].name} is not installed; apt-get install {packages}")
    return lines
