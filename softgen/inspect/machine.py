"""What the machine under softgen offers: one finding per line of `softgen doctor`.

Status is `ok`, `low` (works, but a limit will bite), `missing` (something softgen needs) or `absent` (optional, not installed).
Every check reads; none changes anything. What a check cannot read it reports as unknown, it never raises.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from softgen.cache import default_folder

GIB = 1 << 30
LIBRARIES = ("numpy", "llvmlite", "zstandard", "pyelftools", "PyYAML", "pillow", "rich")
VECTOR_FLAGS = (("avx512f", "avx512dq", "avx512vl", "avx512bw"), ("avx2", "fma"), ("avx",), ("sse4_2",),
                ("asimd", "asimdhp", "sve", "sve2"), ("asimd", "asimdhp", "sve"), ("asimd", "asimdhp"), ("asimd",))
MAP_COUNT = 262_144         # each buffer of an address space is a mapping of its own; Linux allows 65,530 by default
OPEN_FILES = 65_536         # each buffer is a memfd
MEMORY = 4 * GIB
VIDEO = "VA-API"            # not simulated: a GPU does not lack its drivers
TRIAL = 30.0                # seconds a program may take that only opens the GPU

# Outside programs that long tests compare with: command, package, what for.
ORACLES = (
    ("iga64", "libigc-tools", "EU assembly, Gen7.5 and later"),
    ("ocloc", "intel-opencl-icd", "OpenCL kernels to machine code"),
    ("clinfo", "clinfo", "what an OpenCL driver reports"),
    ("ffmpeg", "ffmpeg", "video frames to compare with"),
)


@dataclass(frozen=True)
class MachineFinding:
    area: str
    name: str
    status: str
    detail: str
    advice: str = ""
    needed: bool = False


def examine() -> Iterator[MachineFinding]:
    """All findings, area by area."""
    yield from processor()
    yield from limits()
    yield from python()
    yield from build()
    yield from drivers()
    yield from gpus()
    yield from oracles()


def text(path: str) -> str:
    """A small file of /proc or /sys, empty where it cannot be read."""
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def number(path: str) -> int | None:
    found = text(path)
    return int(found) if found.lstrip("-").isdigit() else None


def processor() -> Iterator[MachineFinding]:
    cpuinfo = text("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    flags = set((re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpuinfo, re.MULTILINE) or [""])[0].split())
    yield MachineFinding("processor", "model", "ok", f"{model[1] if model else 'unknown'} ({platform.machine()})")
    widest = next((group for group in VECTOR_FLAGS if flags.issuperset(group)), ())
    yield MachineFinding("processor", "vector instructions", "ok" if "avx2" in flags else "low", " ".join(widest) or "none known",
                  "" if "avx2" in flags else "works; code compiled for wide vectors will be slower here")
    yield MachineFinding("processor", "cores", "ok", str(len(os.sched_getaffinity(0))))
    memory = re.search(r"^MemTotal:\s*(\d+) kB", text("/proc/meminfo"), re.MULTILINE)
    size = int(memory[1]) * 1024 if memory else 0
    yield MachineFinding("processor", "memory", "ok" if size >= MEMORY else "low", f"{size / GIB:.1f} GiB" if size else "unknown",
                  "" if size >= MEMORY else "large captures may not fit")


def limits() -> Iterator[MachineFinding]:
    yield at_least("vm.max_map_count", number("/proc/sys/vm/max_map_count"), MAP_COUNT,
                   f"as root: sysctl vm.max_map_count={MAP_COUNT}")
    overcommit = number("/proc/sys/vm/overcommit_memory")
    meaning = {None: "unknown", 0: "heuristic", 1: "always", 2: "never"}.get(overcommit, "unknown")
    yield MachineFinding("kernel limits", "vm.overcommit_memory", "low" if overcommit == 2 else "ok", f"{overcommit} ({meaning})",
                  "as root: sysctl vm.overcommit_memory=0, or reserving 4 GiB arenas may fail" if overcommit == 2 else "")
    yield memfd()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        yield MachineFinding("kernel limits", "open files", "ok", "unlimited")
        return
    room = hard == resource.RLIM_INFINITY or hard >= OPEN_FILES
    finding = at_least("open files", soft, OPEN_FILES,
                       f"ulimit -n {OPEN_FILES}" if room else f"raise the hard limit ({hard}) in /etc/security/limits.conf")
    yield finding


def at_least(name: str, value: int | None, least: int, advice: str) -> MachineFinding:
    if value is None:
        return MachineFinding("kernel limits", name, "low", "unknown", f"want {least} or more")
    enough = value >= least
    return MachineFinding("kernel limits", name, "ok" if enough else "low", f"{value:,}" + ("" if enough else f", want {least:,}"),
                   "" if enough else advice)


def memfd() -> MachineFinding:
    """Buffers are sealed memfds: try one."""
    try:
        descriptor = os.memfd_create("softgen-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except (OSError, AttributeError) as error:
        return MachineFinding("kernel limits", "memfd_create", "missing", str(error), "softgen needs Linux 3.17 or later", needed=True)
    os.close(descriptor)
    return MachineFinding("kernel limits", "memfd_create", "ok", "with sealing", needed=True)


def python() -> Iterator[MachineFinding]:
    new = sys.version_info >= (3, 11)
    yield MachineFinding("python", "python", "ok" if new else "missing", f"{platform.python_version()} at {sys.executable}",
                  "" if new else "softgen needs Python 3.11 or later", needed=True)
    for name in LIBRARIES:
        try:
            yield MachineFinding("python", name, "ok", metadata.version(name), needed=True)
        except metadata.PackageNotFoundError:
            yield MachineFinding("python", name, "missing", "not installed", "make demo sets up .venv with it", needed=True)
    yield cache_folder()


def cache_folder() -> MachineFinding:
    """The object cache follows XDG and is optional: a read-only home only costs time."""
    folder = default_folder().parent
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return MachineFinding("python", "cache folder", "ok", f"{folder} (writable)")
    except OSError as error:
        return MachineFinding("python", "cache folder", "low", f"{folder}: {error.strerror}",
                              "set XDG_CACHE_HOME to a folder you can write")


def build() -> Iterator[MachineFinding]:
    compiler = shutil.which("gcc") or shutil.which("cc")
    yield MachineFinding("build", "C compiler", "ok" if compiler else "absent", compiler or "no gcc",
                  "" if compiler else "apt-get install gcc libc6-dev, if softgen is to be built here")
    yield guard()


def guard() -> MachineFinding:
    """The C guard turns an access to unmapped GPU memory into a fault instead of a crash."""
    found = library("memory/_guard*.so")
    advice = "make setup builds it (needs gcc)"
    if not found:
        return MachineFinding("build", "guard library", "missing", "not built", advice, needed=True)
    try:
        ctypes.CDLL(found)
    except OSError as error:
        return MachineFinding("build", "guard library", "missing", str(error), advice, needed=True)
    return MachineFinding("build", "guard library", "ok", found, needed=True)


def library(pattern: str) -> str:
    """A C library inside the package; '' where it is not built."""
    import softgen

    return next((str(path) for path in sorted(Path(softgen.__file__).parent.glob(pattern))), "")


def drivers() -> Iterator[MachineFinding]:
    """The distribution's drivers that `softgen run` can serve, and which GPUs each is for."""
    from softgen.driver.run.environment import installed
    from softgen.driver.uapi.kernel_tables import runtimes, x86_64_host

    area = "drivers (for softgen run)"
    for runtime in runtimes():
        found = installed(runtime)
        yield MachineFinding(area, f"{runtime.api} ({runtime.name})", "ok" if found else "absent",
                      f"{found or 'not installed'} (for {' '.join(runtime.gpus)})",
                      "" if found else f"apt-get install {runtime.debian_package}")
    yield shim()
    if not x86_64_host():
        yield second_shim()
    yield found_by_a_program()
    yield reachable_memory()


def shim() -> MachineFinding:
    """The shim that `softgen run` preloads into programs."""
    area, advice = "drivers (for softgen run)", "make setup builds it (needs gcc)"
    found = library("driver/_shim*.so")
    if not found:
        return MachineFinding(area, "shim library", "missing", "not built", advice, needed=True)
    try:
        ctypes.CDLL(found)
    except OSError as error:
        return MachineFinding(area, "shim library", "missing", str(error), advice, needed=True)
    return MachineFinding(area, "shim library", "ok", found, needed=True)


def second_shim() -> MachineFinding:
    """The shim for x86-64 programs that QEMU runs: the drivers exist for x86-64 only."""
    area, name = "drivers (for softgen run)", "x86-64 programs"
    from softgen.driver.run.environment import BUILD, EMULATOR, x86_64_shim

    if not x86_64_shim():
        return MachineFinding(area, name, "absent", "no shim for them is built", f"apt-get install gcc-x86-64-linux-gnu, then {BUILD}")
    emulator = shutil.which(EMULATOR) or shutil.which(f"{EMULATOR}-static")
    return MachineFinding(area, name, "ok" if emulator else "absent", f"run by {emulator}" if emulator else "no QEMU to run them",
                   "" if emulator else "apt-get install qemu-user")


def found_by_a_program() -> MachineFinding:
    """Whether the parts work together: a small program, started by `softgen run`, opens the GPU."""
    area, name = "drivers (for softgen run)", "a program on the GPU"
    probe = "import os; os.close(os.open('/dev/dri/renderD128', os.O_RDWR))"
    command = [sys.executable, "-m", "softgen", "run", "--json", "--", sys.executable, "-c", probe]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=TRIAL, check=False)
        lines = ran.stderr.strip().splitlines() or ["it said nothing"]
        opened = ran.returncode == 0 and json.loads(lines[-1])["opened"]
    except subprocess.TimeoutExpired:
        return MachineFinding(area, name, "low", f"no end after {TRIAL:g} s", "try: softgen run --trace ioctls -- clinfo")
    except (OSError, ValueError, KeyError) as error:
        return MachineFinding(area, name, "missing", str(error), "softgen run does not work here", needed=True)
    if not opened:
        return MachineFinding(area, name, "missing", lines[0], "softgen run does not work here", needed=True)
    return MachineFinding(area, name, "ok", "one was started, and it opened /dev/dri/renderD128", needed=True)


def gpus() -> Iterator[MachineFinding]:
    """What programs find on each GPU, with the drivers that are installed."""
    from softgen.bits.generation import devices
    from softgen.driver.run.environment import installed, missing
    from softgen.driver.uapi.kernel_tables import runtimes_of

    for device in devices().values():
        there = {driver.api: driver.name for driver in reversed(runtimes_of(device.name)) if installed(driver)}
        needed = {driver.api for driver in runtimes_of(device.name)} - {VIDEO}
        lacking = [line.partition("; ")[2] for line in missing(device, needed)]
        status = "ok" if not lacking else "low" if there else "absent"
        detail = ", ".join(f"{api} ({name})" for api, name in reversed(there.items())) or "no driver is installed"
        yield MachineFinding("GPUs (softgen run --gpu …)", device.name, status, detail, "; ".join(dict.fromkeys(lacking)))
    yield MachineFinding("GPUs (softgen run --gpu …)", "video", "low", "not simulated yet",
                  "OpenCL, OpenGL and Vulkan programs run; video programs find the GPU and stop at their first picture")


def reachable_memory() -> MachineFinding:
    """Programs lend their own memory to the GPU (USERPTR); swapping pages under other threads is safest with userfaultfd."""
    number_ = {"x86_64": 323, "aarch64": 282}.get(platform.machine())
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(number_, os.O_CLOEXEC | os.O_NONBLOCK | 1) if number_ else -1
    if descriptor >= 0:
        os.close(descriptor)
        return MachineFinding("drivers (for softgen run)", "userfaultfd", "ok", "threads of a program wait while its memory is taken over")
    return MachineFinding("drivers (for softgen run)", "userfaultfd", "low", "not allowed here",
                   "a thread that writes to memory in the moment it is lent to the GPU may lose that write")


def oracles() -> Iterator[MachineFinding]:
    for command, package, purpose in ORACLES:
        path = shutil.which(command)
        yield MachineFinding("oracles (for make witness)", command, "ok" if path else "absent", path or f"not installed ({purpose})",
                      "" if path else f"apt-get install {package}")
