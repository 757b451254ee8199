"""OpenCL kernels that ocloc compiled, dispatched as a driver would: walker, payload, surfaces, local memory, scratch, data port.

A few that use all of these in the quick run; `make witness` takes every case without images.
"""

from __future__ import annotations

import json

import pytest

from softgen.threads.dispatcher import EngineDispatcher
from tests.conftest import SHARED, needs_shared
from tests.eu.semantics.case import GENERATION
from tests.gpgpu.dispatched import Dispatched

QUICK = [("slm_reduce", "bdw"), ("slm_hist", "icllp"), ("atom_c11", "kbl"), ("wide_ldst", "bdw"), ("unaligned_vload", "icllp"),
         ("priv_indirect", "kbl"), ("ndrange_ids", "kbl")]  # fmt: skip
LONG = {"app_nqueens"}  # minutes


def cases() -> list[str]:
    found = []
    for path in sorted((SHARED / "kernels").glob("*/case.json")):
        kinds = [arg["kind"] for arg in json.loads(path.read_text("utf-8"))["args"]]
        if not any(kind.startswith("img") or kind == "sampler" for kind in kinds) and path.parent.name not in LONG:
            found.append(path.parent.name)
    return found


def check(name: str, gpu: str, engine: str = "reference") -> None:
    folder = SHARED / "kernels" / name
    if not (folder / gpu / f"{name}.zebin.bin").exists():
        pytest.skip(f"{name} was not built for {gpu}")
    case = Dispatched(folder, gpu)
    case.groups = groups = EngineDispatcher(engine)
    case.run()
    wrong = case.wrong()
    assert wrong and not any(wrong.values()), wrong
    assert not groups.notes and {item.engine for item in groups.ran.values()} == {engine}


@needs_shared("kernels")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize("name, gpu", QUICK)
def test_quick_kernels(name: str, gpu: str, engine: str) -> None:
    check(name, gpu, engine)


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize("gpu", GENERATION)
@pytest.mark.parametrize("name", cases())
def test_all_kernels(name: str, gpu: str, engine: str) -> None:
    check(name, gpu, engine)


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("gpu", GENERATION)
@pytest.mark.parametrize("name", sorted(LONG))
def test_long_kernels(name: str, gpu: str) -> None:
    check(name, gpu, "t1")
