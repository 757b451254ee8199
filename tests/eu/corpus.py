"""Machine code to try things on: what comes with the tests, and all of ../shared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from softgen.eu import binary
from softgen.inspect.decode.kernels import kernels
from softgen.trace.file import open_trace
from tests.conftest import ROOT, SHARED

DATA = ROOT / "tests" / "data"
GENERATION = {"g45": 4.5, "ivb": 7.0, "hsw": 7.5, "bdw": 8.0, "kbl": 9.0, "icl": 11.0, "icllp": 11.0}
DATA_ONLY = (".const.dat", ".global.dat")  # constants of a program, no code

Code = tuple[str, float, bytes]  # where from, generation, code


@cache
def bundled() -> tuple[Code, ...]:
    """Small, of every generation: raw code, kernels of OpenCL programs, kernels of captures."""
    found = [(path.name, GENERATION[path.name.split(".")[1]], path.read_bytes()) for path in sorted((DATA / "kernels").glob("*.dat"))]
    for path in sorted((DATA / "kernels").glob("*.bin")):
        found += [(f"{path.name} {kernel.name}", GENERATION[path.name.split(".")[1]], kernel.code)
                  for kernel in binary.kernels(path.read_bytes())]
    for path in (DATA / "g45-gles-tri", DATA / "kbl-vk-compute"):
        found += of_trace(path)
    return tuple(found)


def of_trace(path: Path) -> list[Code]:
    trace = open_trace(path)
    return [(f"{path.name} {kernel.address:#x}", trace.device.generation.number, kernel.code) for kernel in kernels(trace) if kernel.code]


@cache
def captured() -> tuple[Code, ...]:
    """Every kernel of every capture and AUB file, those with the same code once."""
    traces = [*sorted(path for path in (SHARED / "traces").glob("*") if path.is_dir()), *sorted((SHARED / "aub").glob("*.aub"))]
    return tuple(distinct(code for path in traces for code in of_trace(path)))


@cache
def compiled() -> tuple[Code, ...]:
    """Every raw file and every kernel of every OpenCL program, those with the same code once."""
    return tuple(distinct(_compiled()))


def _compiled() -> Iterator[Code]:
    for path in sorted((SHARED / "kernels").glob("*/*/*")):
        gen = GENERATION.get(path.parent.name)
        if gen and path.suffix == ".dat" and not path.name.endswith(DATA_ONLY):
            yield f"{path.parent.name}/{path.name}", gen, path.read_bytes()
        elif gen and path.suffix == ".bin":
            yield from ((f"{path.parent.name}/{path.name} {kernel.name}", gen, kernel.code) for kernel in binary.kernels(path.read_bytes()))


def distinct(codes: Iterator[Code]) -> Iterator[Code]:
    seen = set()
    for name, gen, code in codes:
        if (gen, code) not in seen:
            seen.add((gen, code))
            yield name, gen, code
