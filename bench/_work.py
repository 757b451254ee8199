"""What is measured: programs with their arguments, the same work as a call of C, and how far the results may be apart."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench._program import Argument, Dispatch

SOURCE = Path(__file__).parent / "peers.c"
COMPILERS = ("gcc", "clang")
FLAGS = ("-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-w", "-shared", "-fPIC")

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Work:
    """`result` is the number of the argument that holds the answer; `extra` is what the C function takes besides the arguments."""

    name: str
    arguments: Sequence[Argument]
    size: tuple[int, ...]
    group: tuple[int, ...]
    result: int
    call: Callable[[Sequence[Argument]], tuple[Argument, ...]]
    apart: Callable[[Array, Array], float]
    allowed: float
    alu: bool = False

    def dispatch(self, engine: str = "t1", threads: int = 1) -> Dispatch:
        return Dispatch(self.name, self.arguments, self.size, self.group, engine, threads)


def relative(a: Array, b: Array) -> float:
    return float(np.max(np.abs(a.astype(np.float64) - b)) / max(float(np.max(np.abs(b))), 1e-30))


def unequal(a: Array, b: Array) -> float:
    return float(np.mean(a != b))


def works(larger: int = 1) -> list[Work]:
    """The programs with their arguments; `larger`: a power of 4, times the work of each."""
    rng = np.random.default_rng(1)
    floats: Callable[..., Array] = lambda *shape: rng.random(shape, dtype=np.float32)  # noqa: E731
    u, f = np.uint32, np.float32
    longer = math.isqrt(larger)  # each side of what is two-dimensional
    n, side, wide, bodies, items = larger << 20, 256 * longer, 512 * longer, 2048 * longer, 4096 * larger
    pixels, loops, hashes = 1024 * longer, larger << 14, larger << 18
    most, turns = u(256), u(2048)
    mandel: list[Argument] = [np.zeros((wide, wide), u), u(wide), f(-2.0), f(-1.25), f(2.5 / wide), f(2.5 / wide), most]
    conv: list[Argument] = [floats(pixels, pixels), np.zeros((pixels, pixels), f), floats(16), u(pixels), u(pixels)]
    return [
        Work("saxpy", [floats(n), floats(n), f(2.5)], (n,), (256,), 1, more(n), relative, 1e-6),
        Work("matmul", [floats(side, side), floats(side, side), np.zeros((side, side), f), u(side)], (side, side), (16, 16), 2, tuple,
             relative, 1e-5),
        Work("mandel", mandel, (wide, wide), (16, 16), 0, lambda a: (a[0], a[1], a[1], *a[2:]), unequal, 0.005),
        Work("nbody", [floats(bodies, 4), np.zeros((bodies, 4), f), u(bodies), f(0.01)], (bodies,), (256,), 1, tuple, relative, 1e-5),
        Work("hist", [rng.integers(0, 1 << 32, items * 256, dtype=u), np.zeros(256, u), most, u(items)], (items,), (256,), 1,
             lambda a: (a[0], a[1], u(items * 256)), unequal, 0.0),
        Work("conv", conv, (pixels, pixels), (32, 8), 1, tuple, relative, 1e-6),
        Work("mandel_loop", [np.zeros(loops, f), f(0.0005), f(0.02), turns], (loops,), (256,), 0, more(loops), relative, 1e-3, True),
        Work("nbody_loop", [np.zeros(loops, f), f(0.01), f(0.01), turns], (loops,), (256,), 0, more(loops), relative, 1e-4, True),
        Work("sha", [np.zeros(hashes, u), u(7)], (hashes,), (256,), 0, more(hashes), unequal, 0.0, True),
        Work("hash_loop", [np.zeros(hashes, u), u(99), most], (hashes,), (256,), 0, more(hashes), unequal, 0.0, True),
    ]  # fmt: skip


def more(count: int) -> Callable[[Sequence[Argument]], tuple[Argument, ...]]:
    """The program's arguments, and how many items there are."""
    return lambda given: (*given, np.uint32(count))


# -- peers -------------------------------------------------------------------------------------------------------------


def peers() -> dict[str, ctypes.CDLL]:
    """peers.c by every compiler there is."""
    found = {}
    for name in COMPILERS:
        tool = shutil.which(name)
        if tool is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "peers.so"
            ran = subprocess.run([tool, *FLAGS, "-o", str(made), str(SOURCE), "-lm"], capture_output=True, text=True, check=False)
            if ran.returncode == 0:
                found[name] = ctypes.CDLL(str(made))
    return found


def peer(library: ctypes.CDLL, name: str, work: Work) -> tuple[Callable[[], object], Array] | None:
    """A call of one C function on arrays of its own, and where its answer will be."""
    if not hasattr(library, name):
        return None
    own = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in work.arguments]
    given = [_c(argument) for argument in work.call(own)]
    function = getattr(library, name)
    function.restype = None
    result = own[work.result]
    assert isinstance(result, np.ndarray)
    return lambda: function(*given), result


def _c(argument: Argument) -> object:
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data_as(ctypes.c_void_p)
    return ctypes.c_float(float(argument)) if argument.dtype == np.float32 else ctypes.c_uint32(int(argument))
