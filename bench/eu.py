"""EU instructions decoded and turned into text, per second, beside iga64 on the same file.

Every figure is of a first pass over code that was not seen before: what is remembered is what repeats within the file, as for a user.
The code is every kernel of the folder `shared` beside the checkout where there is one, else the few that come with the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import Measurement, best_time
from softgen.eu import binary
from softgen.eu.encoding import program
from softgen.eu.text import dialect

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("SOFTGEN_SHARED", ROOT.parent / "shared"))
GENERATION = {"bdw": 8.0, "kbl": 9.0, "icllp": 11.0}
BUNDLED = {"bdw": "cf_collatz.bdw.bin", "kbl": "cf_calls_stack.kbl.zebin.bin", "icllp": "cf_collatz.icl.bin"}
PLATFORM = {"bdw": "8", "kbl": "9", "icllp": "11"}  # as iga64 calls them


def code(gpu: str) -> bytes:
    """Kernels one behind the other, those that are the same once."""
    files = sorted((SHARED / "kernels").glob(f"*/{gpu}/*.dat"))
    found = {path.read_bytes() for path in files if not path.name.endswith((".const.dat", ".global.dat", ".zebin.dat"))}
    if not found:
        found = {kernel.code for kernel in binary.kernels((ROOT / "tests" / "data" / "kernels" / BUNDLED[gpu]).read_bytes())}
    return b"".join(sorted(found))


def decoded(data: bytes, gen: float) -> int:
    return sum(1 for _ in program.instructions(data, gen))


def written(data: bytes, gen: float, syntax: str) -> int:
    items = list(program.instructions(data, gen))
    return sum(1 for _ in dialect.ListingWriter(syntax, gen).rows(items))


def once(work: Callable[[], int]) -> tuple[int, float]:
    start = time.perf_counter()
    amount = work()
    return amount, time.perf_counter() - start


def iga64(data: bytes, gpu: str) -> float | None:
    """Seconds iga64 takes to disassemble; None where there is none, or it does not take the file."""
    tool = shutil.which("iga64")
    if tool is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".krn") as file:
        file.write(data)
        file.flush()
        command = [tool, "-d", f"-p={PLATFORM[gpu]}", file.name, "-o", os.devnull]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        return best_time(lambda: subprocess.run(command, capture_output=True, check=False), least=0.2)


def measure() -> Iterator[Measurement]:
    for gpu in GENERATION:  # tables are read and first shapes are met
        for syntax in dialect.dialects_of(GENERATION[gpu]):
            dialect.text(code(gpu)[:16], GENERATION[gpu], syntax)
    amount, seconds = once(lambda: decoded(code("icllp"), GENERATION["icllp"]))
    yield Measurement("decoded", amount, "instructions", seconds)
    for gpu, syntax in (("kbl", "iga"), ("bdw", "mesa")):
        data = code(gpu)
        amount, seconds = once(lambda data=data, gpu=gpu, syntax=syntax: written(data, GENERATION[gpu], syntax))  # type: ignore[misc]
        peer = iga64(data, gpu)
        yield Measurement(f"decoded and to text, {syntax}", amount, "instructions", seconds, "iga64" if peer else "", peer or 0.0)
