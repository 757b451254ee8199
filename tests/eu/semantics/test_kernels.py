"""Kernels that real compilers made, run whole: what comes out of memory is what other implementations gave.

The quick run takes a few that are short; `make witness` takes all. The data port is a small one of the tests' own.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tests.conftest import SHARED, every, needs_shared
from tests.eu.semantics.case import GENERATION, Case

QUICK = ["bitrev_loop", "const_table", "conv_i64_fp", "conv_int_sat", "conv_round", "f32_arith", "f32_ieee_div", "f64_divsqrt",
         "half_vec_dot", "i32_arith", "sg_reduce_scan", "slm_reduce"]
LONG = {"app_nqueens"}  # minutes


def kernels() -> list[str]:
    folder = SHARED / "kernels"
    found = []
    for path in sorted(folder.glob("*/case.json")) if folder.is_dir() else []:
        if not any(arg["kind"].startswith("img") or arg["kind"] == "sampler" for arg in json.loads(path.read_text())["args"]):
            found.append(path.parent.name)
    return found


def check(name: str, gpu: str) -> None:
    folder = SHARED / "kernels" / name
    if not Path(folder / gpu / f"{name}.zebin.bin").exists():
        pytest.skip(f"{name} was not built for {gpu}")
    case = Case(folder, gpu)
    case.run()
    wrong = case.wrong()
    assert wrong and not any(wrong.values()), wrong


@needs_shared("kernels")
@pytest.mark.parametrize("name, gpu", every(4, itertools.product(QUICK, GENERATION)))
def test_quick_kernels(name: str, gpu: str) -> None:
    check(name, gpu)


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("gpu", GENERATION)
@pytest.mark.parametrize("name", [name for name in kernels() if name not in LONG])
def test_all_kernels(name: str, gpu: str) -> None:
    check(name, gpu)
