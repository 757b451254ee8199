"""Real programs on the software GPU, and the pictures they make. `make demo` runs it after the tour.

    python examples/picture.py [GPU]

It builds mandelbrot.c (OpenCL) and triangle.c (OpenGL ES) with the system's compiler and starts them with `softgen run`; the drivers are
the distribution's own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softgen.driver.uapi.kernel_tables import runtimes_of
from softgen.inspect.cli.output import paint

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Example:
    """A program that writes a picture, and what it needs."""

    name: str  # of the source, the program and the picture
    api: str
    driver: str  # as a sentence has it
    suffix: str  # of the file that the program writes
    libraries: tuple[str, ...]
    headers: dict[str, str]  # and the packages that have them

    @property
    def source(self) -> Path:
        return ROOT / "examples" / f"{self.name}.c"

    @property
    def picture(self) -> Path:
        return ROOT / "build" / f"{self.name}.png"

    def lacking(self, gpu: str) -> list[str]:
        """Packages that are not installed and needed for the picture."""
        drivers = [one for one in runtimes_of(gpu) if one.api == self.api]
        packages = [] if any(one.found() for one in drivers) else [drivers[0].package]
        packages += [package for path, package in self.headers.items() if not os.path.exists(path)]
        return packages + ([] if shutil.which("cc") else ["gcc"])


MANDELBROT = Example("mandelbrot", "OpenCL", "Intel's own runtime", "png", ("-lOpenCL",), {"/usr/include/CL/cl.h": "ocl-icd-opencl-dev"})
TRIANGLE = Example("triangle", "OpenGL", "Mesa", "ppm", ("-lEGL", "-lGLESv2"),
                   {"/usr/include/EGL/egl.h": "libegl-dev", "/usr/include/GLES2/gl2.h": "libgles-dev"})  # fmt: skip
EXAMPLES = (MANDELBROT, TRIANGLE)


def draw(example: Example, gpu: str, folder: Path) -> dict[str, Any] | None:
    """Build and run a program; the report of `softgen run`, or None after a failure, which has been reported."""
    program, report, made = folder / example.name, folder / "report.json", folder / f"{example.name}.{example.suffix}"
    build = ["cc", "-O2", "-o", str(program), str(example.source), *example.libraries]
    run = [sys.executable, "-m", "softgen", "run", "--gpu", gpu, "--report", str(report), "--", str(program), str(made)]
    for command in (build, run):
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            return None
    example.picture.parent.mkdir(exist_ok=True)
    convert(made, example.picture)
    found: dict[str, Any] = json.loads(report.read_text("utf-8"))
    return found


def convert(made: Path, picture: Path) -> None:
    """A program's file as PNG."""
    if made.suffix == ".png":
        shutil.copy(made, picture)
    else:
        from PIL import Image

        Image.open(made).save(picture)


def show(example: Example, gpu: str) -> int:
    colour = paint()
    print(f"\n{colour(f'A picture, by {example.api}', 'heading')}", flush=True)
    if not any(one.api == example.api for one in runtimes_of(gpu)):
        print(f"No {example.api} driver supports {gpu}.")
        return 0
    if packages := example.lacking(gpu):
        print(f"Here an {example.api} program would make one with the stock driver. That is not installed.")
        print(f"To get it (Debian 12, Ubuntu 22.04 and 24.04): apt-get install {' '.join(packages)}, then make demo again.")
        return 0
    with tempfile.TemporaryDirectory(prefix="softgen-demo-") as folder:
        print(f"{example.source.name}, a plain {example.api} program, on {example.driver}, finds a GPU that is not there:", flush=True)
        began = time.monotonic()
        report = draw(example, gpu, Path(folder))
        seconds = time.monotonic() - began
    if report is None:
        print("picture: the program did not end well", file=sys.stderr)
        return 1
    print(f"It ran {report['threads']} threads and {report['instructions']} instructions of machine code; all in all {seconds:.1f} s.")
    print(f"The picture is in {colour(os.path.relpath(example.picture), 'name')}.")
    return 0


def main(arguments: list[str]) -> int:
    gpu = (arguments or ["kbl"])[0]
    codes = [show(example, gpu) for example in EXAMPLES]
    print("\nAny other program goes the same way: softgen run -- PROGRAM")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
