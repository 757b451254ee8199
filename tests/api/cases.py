"""Cases of `shared/kernels` through `Gpu.launch`: arguments from case.json, results compared by its rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import softgen
from tests.conftest import SHARED
from tests.eu.semantics.case import close

FOLDER = SHARED / "kernels"
CONTAINERS = {"patch tokens": "", "zebin": ".zebin"}


def names() -> list[str]:
    return sorted(path.parent.name for path in FOLDER.glob("*/case.json"))


def file(name: str, gpu: str, container: str) -> Path:
    return FOLDER / name / gpu / f"{name}{CONTAINERS[container]}.bin"


def argument(gpu: softgen.Gpu, folder: Path, arg: dict[str, Any]) -> Any:
    """An argument as the API takes it."""
    kind = arg["kind"]
    if kind == "scalar":
        return np.array(arg["v"], arg["dt"])[()]
    if kind == "local":
        return softgen.Local(arg["nbytes"])
    if kind.startswith("img"):
        width, height = arg["shape"]
        shape = (height, width, arg["ch"]) if arg["ch"] > 1 else (height, width)
        data = np.load(folder / arg["file"]).reshape(shape) if arg.get("file") else np.zeros(shape, arg["dt"])
        return gpu.image(data, normalized="NORM" in arg["ctype"])
    return gpu.buffer(np.load(folder / arg["file"]) if arg.get("file") else np.zeros(arg["n"], arg["dt"]))


def differences(name: str, gpu_name: str, container: str, engine: str) -> dict[str, int]:
    """How many elements of each output are wrong."""
    folder = FOLDER / name
    case = json.loads((folder / "case.json").read_text("utf-8"))
    kernel = softgen.load_kernels(file(name, gpu_name, container), gpu_name)[case["kernel"]]
    found = {}
    with softgen.Gpu(gpu_name, engine=engine, threads=1) as gpu:
        arguments = [argument(gpu, folder, arg) for arg in sorted(case["args"], key=lambda arg: arg["index"])]
        run = gpu.launch(kernel, *arguments, global_size=case["global"], local_size=case["local"] or None, offset=case["offset"] or 0)
        assert run.threads and run.instructions
        for arg in case["args"]:
            if "ref" not in arg:
                continue
            want = np.load(folder / arg["ref"])
            got = np.asarray(arguments[arg["index"]]).reshape(-1)[: want.size].view(want.dtype).reshape(want.shape)
            rule = arg.get("cmp", "exact").replace("lsb", "abs")
            fine = close(got, want, rule)
            if "ref2" in arg:
                fine |= close(got, np.load(folder / arg["ref2"]), rule)
            if str(arg.get("pad_mask", "")).endswith(".npy"):
                fine |= np.load(folder / arg["pad_mask"]).astype(bool)
            found[arg["name"]] = int((~fine).sum())
    return found
