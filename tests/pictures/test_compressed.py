"""Textures of every compressed format that drivers expose: random blocks, texel by texel, as llvmpipe decodes them."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import witness
from tests.driver.running import DRIVER_CHOICES, Softgen
from tests.pictures.running import built, needs

SIZE = 64
SIZES = [(4, 4), (5, 4), (5, 5), (6, 5), (6, 6), (8, 5), (8, 6), (8, 8), (10, 5), (10, 6), (10, 8), (10, 10), (12, 10), (12, 12)]
# GL's number, bytes of a block, its width and height
FORMATS = {
    "bc7": (0x8E8C, 16, 4, 4), "bc7 srgb": (0x8E8D, 16, 4, 4), "bc6h signed": (0x8E8E, 16, 4, 4), "bc6h": (0x8E8F, 16, 4, 4),
    "r11": (0x9270, 8, 4, 4), "signed r11": (0x9271, 8, 4, 4), "rg11": (0x9272, 16, 4, 4), "signed rg11": (0x9273, 16, 4, 4),
    "etc2": (0x9274, 8, 4, 4), "etc2 srgb": (0x9275, 8, 4, 4), "etc2 with holes": (0x9276, 8, 4, 4), "srgb with holes": (0x9277, 8, 4, 4),
    "etc2 alpha": (0x9278, 16, 4, 4), "etc2 srgb alpha": (0x9279, 16, 4, 4),
    **{f"astc {wide}x{high}": (0x93B0 + number, 16, wide, high) for number, (wide, high) in enumerate(SIZES)},
    **{f"astc srgb {wide}x{high}": (0x93D0 + number, 16, wide, high) for number, (wide, high) in enumerate(SIZES)},
}  # fmt: skip
SOME_ASTC = ["astc 4x4", "astc 6x5", "astc srgb 12x10"]
# llvmpipe decodes some formats to 8 bits or to 16, and approximates sRGB.
NEAR = {"astc": 1 / 255, "srgb": 0.0013, "11": 4e-5}


def command(name: str, file: Path) -> list[str]:
    number, size, wide, high = FORMATS[name]
    return [built("gl_compressed"), hex(number), str(-(-SIZE // wide) * -(-SIZE // high) * size), str(file)]


def texels(file: Path) -> np.ndarray:
    return np.fromfile(file, np.float32).reshape(SIZE, SIZE, 4).astype(float)


@pytest.mark.parametrize(("gpu", "names"), [
    ("kbl", [name for name in FORMATS if "astc" not in name or name in SOME_ASTC]), witness(("kbl", list(FORMATS))),
    witness(("bdw", [name for name in FORMATS if "astc" not in name])),
])  # fmt: skip
def test_compressed_textures(gpu: str, names: list[str], tmp_path: Path) -> None:
    needs("gl_compressed")
    usual = {name: text for name, text in os.environ.items() if name not in DRIVER_CHOICES} | {"LIBGL_ALWAYS_SOFTWARE": "1"}
    ours = {name: tmp_path / f"{number}.gpu" for number, name in enumerate(names)}
    theirs = {name: tmp_path / f"{number}.cpu" for number, name in enumerate(names)}
    for name in names:
        ran = subprocess.run(command(name, theirs[name]), env=usual, capture_output=True, text=True, check=True)
        assert "llvmpipe" in ran.stderr
    script = " && ".join(shlex.join(command(name, ours[name])) for name in names)
    run = Softgen("--gpu", gpu, "--", "/bin/sh", "-c", script)
    assert run.finish(seconds=300) == 0 and "llvmpipe" not in run.err, run.out + run.err
    for name in names:
        found, wanted = texels(ours[name]), texels(theirs[name])
        near = max([1e-7, *(near for part, near in NEAR.items() if part in name)])
        same = (found == wanted) | np.isnan(found) & np.isnan(wanted) | (np.abs(found - wanted) <= near)
        assert same.all(), (name, np.argwhere(~same)[:3])
        assert len(np.unique(found.reshape(-1, 4), axis=0)) > 20, name
