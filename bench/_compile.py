"""`python -m bench._compile`: compiles the OpenCL sources of bench/programs with Intel's ocloc to the binaries that the benchmarks load."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "programs"
GPU = "kbl"


def compiled(tool: str, source: Path, folder: Path) -> bytes:
    command = [tool, "compile", "--format", "zebin", "-file", str(source), "-device", GPU, "-output", "made", "-out_dir", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    made = sorted(folder.glob("made*.bin"))
    if ran.returncode or not made:
        raise SystemExit(f"{source}: {ran.stdout}{ran.stderr}")
    return made[0].read_bytes()


def main() -> int:
    tool = shutil.which("ocloc")
    if tool is None:
        print("ocloc is not installed: the programs stay as they are", file=sys.stderr)
        return 1
    sources = sorted(FOLDER.glob("*.cl"))
    for source in sources:
        with tempfile.TemporaryDirectory() as folder:
            data = compiled(tool, source, Path(folder))
        (FOLDER / f"{source.stem}.bin").write_bytes(data)
    print(f"{len(sources)} programs for {GPU}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
