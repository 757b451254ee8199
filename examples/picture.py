"""A real OpenCL program on the software GPU, and the picture it makes. `make demo` runs it after the tour.

    python examples/picture.py [GPU]

It builds mandelbrot.c with the system's compiler and starts it with `softgen run`; the driver is the distribution's own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from softgen.driver.facts import runtimes_of
from softgen.inspect.cli.output import paint

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "examples" / "mandelbrot.c"
PICTURE = ROOT / "build" / "mandelbrot.png"
HEADER = Path("/usr/include/CL/cl.h")
NO_DRAWING = "A GL program belongs here too. Drawing is not simulated yet: such programs find the GPU and stop at their first draw."


def lacking(gpu: str) -> list[str]:
    """Packages that are not installed and needed for the picture."""
    drivers = [one for one in runtimes_of(gpu) if one.api == "OpenCL"]
    if not drivers:
        raise SystemExit(f"picture: no OpenCL driver supports {gpu}")
    packages = [] if any(one.found() for one in drivers) else [drivers[0].package]
    return packages + ([] if HEADER.exists() else ["ocl-icd-opencl-dev"]) + ([] if shutil.which("cc") else ["gcc"])


def draw(gpu: str, folder: Path) -> dict[str, Any] | None:
    """Build and run the program; the report of `softgen run`, or None after a failure, which has been reported."""
    program, report = folder / "mandelbrot", folder / "report.json"
    PICTURE.parent.mkdir(exist_ok=True)
    build = ["cc", "-O2", "-o", str(program), str(SOURCE), "-lOpenCL"]
    run = [sys.executable, "-m", "softgen", "run", "--gpu", gpu, "--report", str(report), "--", str(program), str(PICTURE)]
    for command in (build, run):
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            return None
    found: dict[str, Any] = json.loads(report.read_text("utf-8"))
    return found


def main(arguments: list[str]) -> int:
    gpu, colour = (arguments or ["kbl"])[0], paint()
    print(f"\n{colour('A picture', 'heading')}", flush=True)
    if packages := lacking(gpu):
        print("Here an OpenCL program would make one with the stock driver. That is not installed, so a recorded job ran above instead.")
        print(f"To get it (Debian 12, Ubuntu 22.04 and 24.04): apt-get install {' '.join(packages)}, then make demo again.")
        print(NO_DRAWING)
        return 0
    with tempfile.TemporaryDirectory(prefix="softgen-demo-") as folder:
        print(f"{SOURCE.name}, a plain OpenCL program, on Intel's own runtime, which finds a GPU that is not there:", flush=True)
        began = time.monotonic()
        report = draw(gpu, Path(folder))
        seconds = time.monotonic() - began
    if report is None:
        print("picture: the program did not end well", file=sys.stderr)
        return 1
    print(f"It ran {report['threads']} threads and {report['instructions']} instructions of machine code; all in all {seconds:.1f} s.")
    print(f"The picture is in {colour(os.path.relpath(PICTURE), 'name')}. Any other program goes the same way: softgen run -- PROGRAM")
    print(NO_DRAWING)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
