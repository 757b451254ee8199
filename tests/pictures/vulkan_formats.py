"""Every feature of every Vulkan format: the table and the shaders of programs/vulkan_formats.c, and its results beside lavapipe's.

python -m tests.pictures.vulkan_formats kbl [FORMAT…]      prints what fails on a software GPU and what differs
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.driver.running import DRIVER_CHOICES, Softgen
from tests.pictures.running import LAVAPIPE, SOURCES, folder

HEADER = Path("/usr/include/vulkan/vulkan_core.h")
LISTED = re.compile(r"VK_FORMAT_(\w+) = (\d+),")
COMPONENT = re.compile(r"([RGBAXDSE])(\d+)")
KINDS = {"f": ("", "rgba32f"), "i": ("i", "rgba32i"), "u": ("u", "rgba32ui")}
PLACES = {1: "x", 2: "xy", 3: "xyz"}
BLOCKS = {"BC1": 8, "BC4": 8, "ETC2_R8G8B8": 8, "ETC2_R8G8B8A1": 8, "EAC_R11": 8}
# Formats whose upper channels random bits would make infinite or not a number: the bits that stay
MASKS = {16: 0xBFFF_BFFF, 32: 0xBFFF_FFFF}
PACKED_FLOATS = {"B10G11R11_UFLOAT_PACK32": 0x7FDF_FBFF}

ROUNDED = 4e-3  # by which values may differ: one step of 8 bits
ROUNDED_BLOCKS = 0.02  # Mesa decodes blocks with 8 bits: two steps, of sRGB where they are widest
FILTERED = 0.02  # weights have 8 bits


class Format(NamedTuple):
    """A row of the table: bytes of a block and its size in texels, the kind of its values (f, i, u), a mask for each of its words."""

    name: str
    value: int
    bytes: int
    block: tuple[int, int]
    kind: str
    mask: int


def block_of(name: str) -> tuple[int, tuple[int, int]]:
    """Bytes of a block of a format, and its size in texels."""
    family = name.rsplit("_", 2)[0]
    if size := re.match(r"ASTC_(\d+)x(\d+)", name):
        return 16, (int(size[1]), int(size[2]))
    if name.startswith(("BC", "ETC2", "EAC")):
        return next((BLOCKS[key] for key in (family, family.split("_")[0]) if key in BLOCKS), 16), (4, 4)
    if re.match(r"(X8_)?D\d|S8", name):  # the plane of depth, or of stencil where there is no other
        return {"D16": 2, "S8_": 1}.get(name[:3], 4), (1, 1)
    bits = sum(int(width) for _, width in COMPONENT.findall(name.split("_PACK")[0].replace("_UINT", "")))
    return bits // 8, (2, 1) if "_422_" in name and "PLANE" not in name else (1, 1)


def kind_of(name: str) -> str:
    return "i" if "_SINT" in name else "u" if "_UINT" in name else "f"


@cache
def formats() -> tuple[Format, ...]:
    """Every format of the installed header that is one plane of colour, depth or stencil."""
    found = []
    for name, value in LISTED.findall(HEADER.read_text("utf-8")):
        if name == "UNDEFINED" or "PLANE" in name or "PVRTC" in name or name.endswith(("_KHR", "_EXT", "_NV")):
            continue
        size, block = block_of(name)
        wide = re.search(r"(\d+)_SFLOAT", name) if "SFLOAT" in name and block == (1, 1) else None
        mask = MASKS.get(int(wide[1]), 0xFFFF_FFFF) if wide else PACKED_FLOATS.get(name, 0xFFFF_FFFF)
        found.append(Format(name, int(value), size, block, kind_of(name), mask))
    return tuple(found)


def table() -> str:
    """The formats as rows of a C array."""
    rows = (f"\"{row.name}\", {row.value}, {row.bytes}, {row.block[0]}, {row.block[1]}, '{row.kind}', {row.mask:#x}" for row in formats())
    return "".join(f"{{{row}}},\n" for row in rows)


def shaders() -> dict[str, tuple[str, dict[str, str]]]:
    """Names of the shaders -> source and what is defined for it."""
    found: dict[str, tuple[str, dict[str, str]]] = {"draw.vert": ("formats.vert", {"VECTOR": "vec4"})}
    found["compare2f.comp"] = ("formats.comp", {"COMPARE": "1", "VECTOR": "vec4", "TYPE": "sampler2DShadow"})
    found["attributed.vert"] = ("formats.vert", {"ATTRIBUTE": "dvec4", "VECTOR": "vec4"})
    for kind, (prefix, format) in KINDS.items():
        usual = {"VECTOR": f"{prefix}vec4", "FORMAT": format}
        found[f"attribute{kind}.vert"] = ("formats.vert", {"ATTRIBUTE": f"{prefix}vec4", **usual})
        found[f"attribute{kind}.frag"] = ("formats.frag", {"ATTRIBUTE": "1", **usual})
        found[f"draw{kind}.frag"] = ("formats.frag", usual)
        found[f"fetch0{kind}.comp"] = ("formats.comp", {"FETCH": "1", "TYPE": f"{prefix}samplerBuffer", **usual})
        for what in ("load", "store"):
            found[f"{what}0{kind}.comp"] = ("formats.comp", {f"{what.upper()}_BUFFER": "1", "TYPE": f"{prefix}imageBuffer", **usual})
        for dimensions, place in PLACES.items():
            textures = {"TYPE": f"{prefix}sampler{dimensions}D", "PLACE": place, **usual}
            found[f"read{dimensions}{kind}.comp"] = ("formats.comp", {"READ": "1", **textures})
            images = {"TYPE": f"{prefix}image{dimensions}D", "PLACE": place, **usual}
            for what in ("load", "store"):
                found[f"{what}{dimensions}{kind}.comp"] = ("formats.comp", {what.upper(): "1", **images})
            if kind != "f":
                found[f"add{dimensions}{kind}.comp"] = ("formats.comp", {"ADD": "1", **images, "FORMAT": format.replace("rgba", "r")})
    return found


@cache
def built() -> str:
    """The path of the program, compiled; its shaders beside it."""
    for name, (source, defined) in shaders().items():
        words = [f"-D{key}={text}" for key, text in defined.items()]
        subprocess.run(["glslangValidator", "-V", *words, "-o", folder() / name, SOURCES / source], check=True, capture_output=True)
    (folder() / "vulkan_formats.inc").write_text(table())
    command = ["gcc", "-O1", "-Wall", "-Werror", f"-I{folder()}", str(SOURCES / "vulkan_formats.c"), "-o", str(folder() / "vulkan_formats")]
    subprocess.run([*command, "-lvulkan"], check=True)
    return str(folder() / "vulkan_formats")


class Result(NamedTuple):
    """What a check left: values of a kind (f, i, u), or bytes (b)."""

    kind: str
    data: bytes


Results = dict[tuple[str, ...], Result]  # by format, tiling, dimensions (of stencil: 8 more) and feature


def read_results(file: Path) -> Results:
    found: Results = {}
    with file.open("rb") as lines:
        while line := lines.readline():
            *name, kind, size = line.decode().rstrip("\n").split("\t")
            found[tuple(name)] = Result(kind, lines.read(int(size)))
    return found


def results_file() -> Path:
    return Path(tempfile.mkstemp(suffix=".results", dir=folder())[1])


@cache
def expected(*names: str) -> Results:
    """What lavapipe makes of formats; of all unless named."""
    file = results_file()
    usual = {name: text for name, text in os.environ.items() if name not in DRIVER_CHOICES}
    command = [built(), str(folder()), str(file), *names]
    ran = subprocess.run(command, env={**usual, "VK_ICD_FILENAMES": str(LAVAPIPE)}, capture_output=True, text=True, check=True)
    assert "llvmpipe" in ran.stderr, ran.stderr
    return read_results(file)


def found(gpu: str, *names: str, seconds: float = 3000) -> tuple[Results, str]:
    """What a software GPU makes of them, and what the program and softgen say of those that fail."""
    file = results_file()
    run = Softgen("--gpu", gpu, "--keep-going", "--", built(), str(folder()), str(file), *names)
    run.finish(seconds=seconds)
    assert "checks done" in run.out, run.out + run.err
    failures = [line for line in (*run.out.splitlines(), *run.err.splitlines()) if "failed at" in line or line.startswith("softgen:")]
    return read_results(file), "\n".join(failures)


def same(name: tuple[str, ...], result: Result, reference: Result) -> bool:
    """Whether two results agree as nearly as formats and filters let them."""
    if result.kind != reference.kind or len(result.data) != len(reference.data):
        return False
    if result.kind == "f":
        a, b = (np.frombuffer(data, np.float32).astype(np.float64) for data in (result.data, reference.data))
        apart = FILTERED if "linear" in name[3] else ROUNDED_BLOCKS if "_BLOCK" in name[0] else ROUNDED
        with np.errstate(invalid="ignore"):
            return bool(((np.abs(a - b) <= apart * np.maximum(1, np.abs(b))) | (a == b) | (np.isnan(a) & np.isnan(b))).all())
    if name[0] == "X8_D24_UNORM_PACK32" and result.kind == "b":  # X8 is nothing's
        return all(result.data[byte::4] == reference.data[byte::4] for byte in range(3))
    return result.data == reference.data


def different(results: Results, references: Results) -> list[str]:
    """The names of results that differ from lavapipe's."""
    return [" ".join(name) for name, result in results.items() if name in references and not same(name, result, references[name])]


def main() -> None:
    gpu, *names = sys.argv[1:]
    results, failures = found(gpu, *names)
    references = expected(*names)
    print(failures, *different(results, references), sep="\n")
    print(f"{len(results)} results, {sum(name in references for name in results)} of them beside lavapipe's")


if __name__ == "__main__":
    main()
