"""`python -m bench._compile`: OpenCL sources of bench/programs to what the benchmarks load, with Intel's ocloc.

A program is NAME.dat, its machine code, and an entry of programs.json: SIMD width, local memory, and where its arguments go.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from softgen.eu import binary

FOLDER = Path(__file__).parent / "programs"
GPU = "kbl"
LISTS = ("payload_arguments", "per_thread_payload_arguments", "binding_table_indices")


def information(data: bytes, name: str) -> dict[str, Any]:
    """What .ze_info says about a kernel; of its YAML only what stands there is read."""
    text = data[data.index(b"\nkernels:") :].split(b"\n...")[0].decode("latin-1")
    found: dict[str, Any] = {"simd": 0, "local": 0, "barrier": 0, **{one: [] for one in LISTS}}
    here = part = ""
    for line in text.split("\n"):
        match = re.match(r"( *)(- )?([a-z_]+): *(.*)$", line)
        if match is None:
            continue
        indent, dash, key, value = len(match[1]), match[2], match[3], match[4].strip("'")
        if key == "name" and dash:
            here = value if indent == 2 and not part.endswith("info") else ""
        elif key == "kernels_misc_info":
            break
        elif here == name and not value:
            part = key
        elif here == name and part in LISTS:
            if dash:
                found[part].append({})
            found[part][-1][key] = int(value) if value.isdigit() else value
        elif here == name and key in ("simd_size", "slm_size", "barrier_count"):
            found[{"simd_size": "simd", "slm_size": "local", "barrier_count": "barrier"}[key]] = int(value)
    return found


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
    entries = {}
    for source in sorted(FOLDER.glob("*.cl")):
        with tempfile.TemporaryDirectory() as folder:
            data = compiled(tool, source, Path(folder))
        kernel = next(one for one in binary.kernels(data) if one.name == source.stem)
        (FOLDER / f"{source.stem}.dat").write_bytes(kernel.code)
        entries[source.stem] = information(data, source.stem)
    (FOLDER / "programs.json").write_text(json.dumps(entries, indent=1) + "\n", "utf-8")
    print(f"{len(entries)} programs for {GPU}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
