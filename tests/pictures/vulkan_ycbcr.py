"""YCbCr formats of Vulkan: the table of programs/vulkan_ycbcr.c, and the values that samplers must give of their planes.

python -m tests.pictures.vulkan_ycbcr kbl      prints what fails on a software GPU and what differs
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tests.driver.running import Softgen
from tests.pictures import vulkan_formats
from tests.pictures.running import SOURCES, folder
from tests.pictures.vulkan_formats import HEADER, LISTED, Results, read_results, results_file

COMPONENT = re.compile(r"([GBR])(\d+)(?:X\d+)?")
ACROSS, DOWN = 12, 8
CHANNELS = "RGB"  # R is Cr, G is Y and B is Cb, where a conversion leaves values as they are


class Format(NamedTuple):
    """Components of the planes in the order of memory, the bits of each, and texels that share a value of chroma."""

    name: str
    value: int
    planes: tuple[str, ...]
    bits: int
    shared: tuple[int, int]

    @property
    def component_bytes(self) -> int:
        return 1 if self.bits == 8 else 2

    def row(self) -> str:
        """The format in the table of the program; two texels of a packed one share a block of four components, of which each has half."""
        packed = len(self.planes) == 1
        sizes = [2 * self.component_bytes if packed else len(plane) * self.component_bytes for plane in self.planes]
        sizes += [0] * (3 - len(sizes))
        across, down = self.shared
        return f'{{"{self.name}", {self.value}, {len(self.planes)}, {{{", ".join(map(str, sizes))}}}, {across}, {down}}},\n'


@cache
def formats() -> dict[str, Format]:
    """The YCbCr formats of the installed header."""
    found = {}
    for name, value in LISTED.findall(HEADER.read_text("utf-8")):
        if kind := re.search(r"_(420|422|444)_", name):
            described = re.split(r"_\dPLANE_|_42", name)[0].split("_")
            planes = tuple("".join(component for component, _ in COMPONENT.findall(plane)) for plane in described)
            shared = {"420": (2, 2), "422": (2, 1), "444": (1, 1)}[kind[1]]
            found[name] = Format(name, int(value), planes, int(COMPONENT.findall(name)[0][1]), shared)
    return found


@cache
def built() -> str:
    """The path of the program, compiled; its shader is one of vulkan_formats."""
    vulkan_formats.built()
    (folder() / "vulkan_ycbcr.inc").write_text("".join(format.row() for format in formats().values()))
    command = ["gcc", "-O1", "-Wall", "-Werror", f"-I{folder()}", str(SOURCES / "vulkan_ycbcr.c"), "-o", str(folder() / "vulkan_ycbcr")]
    subprocess.run([*command, "-lvulkan"], check=True)
    return str(folder() / "vulkan_ycbcr")


def found(gpu: str) -> tuple[Results, str]:
    """What a software GPU samples, and what the program and softgen say of formats that fail."""
    file = results_file()
    run = Softgen("--gpu", gpu, "--keep-going", "--", built(), str(folder()), str(file))
    run.finish(seconds=600)
    assert "checks done" in run.out, run.out + run.err
    failures = [line for line in (*run.out.splitlines(), *run.err.splitlines()) if "failed at" in line or line.startswith("softgen:")]
    return read_results(file), "\n".join(failures)


def channels(format: Format, planes: list[bytes]) -> npt.NDArray[np.float64]:
    """The values of all texels, by channel: those of a plane's components, of chroma for all texels that share them."""
    made = np.zeros((3, DOWN, ACROSS))
    for order, data in zip(format.planes, planes, strict=True):
        numbers = np.frombuffer(data, np.uint8 if format.bits == 8 else np.dtype("<u2")).astype(np.int64)
        values = (numbers >> (8 * format.component_bytes - format.bits)) / ((1 << format.bits) - 1)
        rows = values.reshape(-1, len(values) // (DOWN // format.shared[1] if "G" not in order else DOWN))
        for channel in dict.fromkeys(order):
            places = [number for number, component in enumerate(order) if component == channel]
            part = np.stack([rows[:, place :: len(order)] for place in places], axis=-1).reshape(len(rows), -1)
            made[CHANNELS.index(channel)] = np.repeat(np.repeat(part, DOWN // len(part), axis=0), ACROSS // part.shape[1], axis=1)
    return made


def different(results: Results) -> list[str]:
    """The names of formats whose texels are not those of their planes."""
    wrong = []
    for (name, tiling, _, what), result in results.items():
        if what == "texels":
            format = formats()[name]
            planes = [results[name, tiling, "2", f"plane {number}"].data for number in range(len(format.planes))]
            texels = np.frombuffer(result.data, np.float32).reshape(DOWN, ACROSS, 4)
            if np.abs(np.moveaxis(texels[:, :, :3], -1, 0) - channels(format, planes)).max() > 1 / 255:
                wrong.append(f"{name} {tiling}")
    return wrong


def main() -> None:
    results, failures = found(sys.argv[1])
    print(failures, *different(results), sep="\n")
    print(f"{sum(name[3] == 'texels' for name in results)} images")


if __name__ == "__main__":
    main()
