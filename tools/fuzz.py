#!/usr/bin/env python3
"""Fuzzes softgen for a number of minutes: `make fuzz MINUTES=5`. Exit code 1 and the inputs, in build/fuzz, where something was found.

Parts, each in processes of its own, with an equal share of the time:
    decode, replay, draws, sends, ioctls, tbx, media, mpeg2, jpeg, h264, vp8, hevc, vp9, vc1
                    tests/fuzz/targets.py, guided by coverage (atheris) where it is installed, otherwise by mutation
    c               every C part of setup.py, built with ASan and UBSan in build/sanitized: replay, draws, sends and video by mutation, the
                    tests of the C parts, and a program whose calls go through the shim

An input that was found goes to tests/fuzz/found/TARGET with the fix; `make test` runs it from then on.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FINDS = ROOT / "build" / "fuzz"
SANITIZED = ROOT / "build" / "sanitized"
VIDEO = ("mpeg2", "jpeg", "h264", "vp8", "hevc", "vp9", "vc1")
TARGETS = ("decode", "replay", "draws", "sends", "ioctls", "tbx", "media", *VIDEO)
CHECKED = ("replay", "draws", "sends", "media", *VIDEO)  # targets that reach the C parts
PARTS = (*TARGETS, "c")
CHECKED_TESTS = ("tests/memory/test_guard.py", "tests/memory/test_store.py", "tests/eu/test_native.py",
                 "tests/threads/native/test_scheduler.py", "tests/streamer/test_latch.py")  # fmt: skip
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g"
# guard.c handles SIGSEGV and brings alternate stacks of its own; CPython leaks on purpose; the shim is preloaded before the runtime.
ASAN = "detect_leaks=0:handle_segv=0:handle_sigbus=0:allow_user_segv_handler=1:use_sigaltstack=0:abort_on_error=1:verify_asan_link_order=0"
LATE = 90.0  # seconds a part may go on after its time: the last input, and what starts and ends the process
REPORT = ("ERROR: AddressSanitizer", "runtime error:")


def run(command: list[str], seconds: float, environment: dict[str, str], folder: Path = ROOT) -> tuple[int, str]:
    """A process and what it said; the exit code is negative where a signal ended it, or it was still there long after its time."""
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            output, _ = process.communicate(timeout=seconds + LATE)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            return -14, output.decode("utf-8", "replace") + "\nthe process did not end"
    return process.returncode, output.decode("utf-8", "replace")


def environment(root: Path = ROOT) -> dict[str, str]:
    """For a process that runs the package in `root`, with an object cache of its own."""
    return {**os.environ, "PYTHONPATH": str(root), "XDG_CACHE_HOME": str(FINDS / "cache"), "XDG_STATE_HOME": str(FINDS / "state"),
            "SOFTGEN_SHARED": os.environ.get("SOFTGEN_SHARED", str(ROOT.parent / "shared"))}  # fmt: skip


# -- the parts -----------------------------------------------------------------------------------------------------


def fuzz(target: str, seconds: float, coverage: bool) -> bool:
    """One target; False where something was found."""
    finds = FINDS / target
    finds.mkdir(parents=True, exist_ok=True)
    before = set(finds.iterdir())
    command = [sys.executable, "-m", "tests.fuzz.engine", target, "--seconds", f"{seconds:.0f}", "--finds", str(finds),
               "--engine", "coverage" if coverage else "mutation"]  # fmt: skip
    code, output = run(command, seconds, environment())
    lines = [line for line in output.splitlines() if not line.startswith(("INFO: Instrumenting", '"', "#", "stat::"))]
    executed = [line.split()[-1] for line in output.splitlines() if line.startswith("stat::number_of_executed_units")]
    if code:
        print("\n".join(lines[-40:]))
    new = sorted(path for path in set(finds.iterdir()) - before if path.is_file())
    inputs = f"{int(executed[0]):,} inputs guided by coverage" if executed else lines[-1] if lines else "nothing"
    print(f"{target}: {inputs}" + "".join(f"\n  found: {path}" for path in new), flush=True)
    return code == 0


def build() -> Path | None:
    """The package with its C parts sanitized; None where the compiler cannot."""
    shutil.rmtree(SANITIZED, ignore_errors=True)
    for name in ("softgen", "tests", "tools"):
        shutil.copytree(ROOT / name, SANITIZED / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, SANITIZED)
    flags = {"CFLAGS": SANITIZE, "LDFLAGS": SANITIZE.split()[0]}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=SANITIZED, env={**os.environ, **flags}, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"c: cannot be built with sanitizers: {done.stderr.strip()[-300:]}")
        return None
    return SANITIZED


def sanitized_environment(root: Path) -> dict[str, str]:
    compiler = subprocess.run([os.environ.get("CC", "cc"), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return environment(root) | {"LD_PRELOAD": compiler.stdout.strip(), "ASAN_OPTIONS": ASAN, "UBSAN_OPTIONS": "print_stacktrace=1"}


def c_parts(seconds: float) -> bool:
    """The C parts under the sanitizers; False where something was found."""
    root = build()
    if root is None:
        return False
    finds, variables = FINDS / "c", sanitized_environment(root)
    finds.mkdir(parents=True, exist_ok=True)
    python, each = sys.executable, max(seconds / (len(CHECKED) + 2), 1)
    calls = [python, str(root / "tests" / "fuzz" / "shim_calls.py"), f"{each:.0f}", str(random.randrange(1 << 30))]
    commands = {
        "tests": [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CHECKED_TESTS],
        **{name: [python, "-m", "tests.fuzz.engine", name, "--seconds", f"{each:.0f}", "--finds", str(finds)] for name in CHECKED},
        "shim": [python, "-m", "softgen", "run", "--gpu", "kbl", "--", *calls],
    }
    fine = True
    for name, command in commands.items():
        code, output = run(command, each, variables, root)
        wrong = code != 0 or any(mark in output for mark in REPORT)
        fine = fine and not wrong
        lines = [line for line in output.splitlines() if "is not known" not in line]
        print("\n".join(lines[-60:]) if wrong else f"c, {name}: {lines[-1] if lines else 'nothing'}", flush=True)
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description="fuzz softgen for a number of minutes")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be given more than once")
    given = parser.parse_args()
    parts, began = given.part or list(PARTS), time.monotonic()
    share, coverage = 60 * given.minutes / len(parts), importlib.util.find_spec("atheris") is not None
    if not coverage and set(parts) != {"c"}:
        print("atheris is not installed (pip install .[fuzz]): inputs are mutations of the corpus, without guidance by coverage")
    FINDS.mkdir(parents=True, exist_ok=True)
    fine = [c_parts(share) if part == "c" else fuzz(part, share, coverage) for part in parts]
    print(f"{time.monotonic() - began:.0f} s; {'nothing found' if all(fine) else f'see {FINDS}'}")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
