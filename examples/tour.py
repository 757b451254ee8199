"""A guided tour of one capture: what a driver sent to the GPU, in the terminal. `make demo` runs it.

    python examples/tour.py [CAPTURE]

It is also an example of using `softgen decode --json` from a program: one JSON object per line, commands and what they point to.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from softgen.inspect.cli.output import Paint, paint, table

ROOT = Path(__file__).resolve().parent.parent
Record = dict[str, Any]

# What the commands a newcomer meets first are for, by the start of the name; the longest start that fits counts.
MEANING = {
    "MI_": "memory interface: move data, wait, jump",
    "MI_BATCH_BUFFER_START": "go on in another batch",
    "MI_BATCH_BUFFER_END": "the batch ends here",
    "MI_LOAD_REGISTER": "set a hardware register",
    "MI_STORE": "write to memory",
    "MI_NOOP": "nothing, on purpose",
    "MI_FLUSH": "wait for the pipeline, flush caches",
    "MI_SEMAPHORE": "wait for another engine, or wake it",
    "PIPELINE_SELECT": "choose 3D or compute",
    "STATE_SIP": "where the exception handler is",
    "STATE_BASE_ADDRESS": "where state, surfaces and kernels live",
    "PIPE_CONTROL": "wait for the pipeline, flush or invalidate caches",
    "3DSTATE_": "state of the 3D pipeline",
    "3DSTATE_VERTEX": "where vertices are and what they look like",
    "3DSTATE_VS": "the vertex shader",
    "3DSTATE_GS": "the geometry shader",
    "3DSTATE_PS": "the pixel shader",
    "3DSTATE_WM": "pixel dispatch",
    "3DSTATE_SF": "setup of triangles",
    "3DSTATE_CLIP": "clipping",
    "3DSTATE_DRAWING_RECTANGLE": "the part of the picture that may be drawn on",
    "3DSTATE_INDEX": "indices into the vertices",
    "3DSTATE_URB": "shares of the on-chip vertex memory",
    "3DSTATE_CONSTANT": "uniforms for a shader",
    "3DSTATE_CONSTANT_COLOR": "a colour for blending",
    "CONSTANT_BUFFER": "uniforms for shaders",
    "CS_URB_STATE": "room for those uniforms",
    "3DSTATE_BINDING_TABLE": "which surfaces a shader sees",
    "3DSTATE_SAMPLER": "how textures are filtered",
    "3DSTATE_VIEWPORT": "where on the picture it lands",
    "3DSTATE_DEPTH": "the depth buffer",
    "3DSTATE_PIPELINED_POINTERS": "where each unit's state block is",
    "3DPRIMITIVE": "draw",
    "GPGPU_WALKER": "run compute threads",
    "MEDIA_": "compute and media set-up",
    "URB_FENCE": "shares of the on-chip vertex memory",
    "XY_": "2D: fill or copy a rectangle",
    "MFX_": "video decoding and encoding",
}
COMPUTE = ROOT / "tests" / "data" / "kbl-vk-compute"
LIST = 32                   # rows of a list that fit a screen
ACTS = ("3DPRIMITIVE", "GPGPU_WALKER", "MEDIA_OBJECT")      # commands that start work, best first


def captures(folder: Path = ROOT / "tests" / "data") -> list[Path]:
    """Capture directories that come with softgen, those made for a first look before the rest."""
    return sorted({path.parent for path in folder.rglob("exec-*.json")}, key=lambda path: (len(path.parts), path))


def decode(path: Path) -> tuple[list[Record], int]:
    """What `softgen decode --json` says, and its exit code; its own complaint goes straight to the terminal."""
    verb = [sys.executable, "-m", "softgen", "decode", "--json", str(path)]
    found = subprocess.run(verb, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    return [json.loads(line) for line in found.stdout.splitlines() if line.strip()], found.returncode


def meaning(name: str) -> str:
    fitting = [start for start in MEANING if name.startswith(start)]
    return MEANING[max(fitting, key=len)] if fitting else ""


def commands(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if "name" in record and "address" in record]


def plain(value: Any) -> str:
    """A field's value as people read it."""
    if isinstance(value, dict) and "name" in value:
        return f"{value['name'] or value.get('value')}"
    if isinstance(value, int) and not isinstance(value, bool) and value > 0xffff:
        return f"{value:#x}"
    if isinstance(value, list):
        return f"{len(value)} of them" if len(value) > 4 or any(isinstance(one, dict) for one in value) else ", ".join(map(plain, value))
    return str(value)


def overview(records: list[Record], colour: Paint) -> Iterator[str]:
    named = commands(records)
    batches = sum(record["name"] == "MI_BATCH_BUFFER_END" for record in named)
    unknown = sum(record["name"] is None for record in named)
    yield f"{len(named)} commands in {batches} {'batch' if batches == 1 else 'batches'}, {unknown} of them unknown. As they first appear:"
    counts = Counter(record["name"] for record in named if record["name"])
    shown = list(counts.items())[:LIST]
    yield from table([(f"  {count} ×", colour(name, "name"), colour(meaning(name), "note")) for name, count in shown])
    if len(counts) > LIST:
        yield f"  … and {len(counts) - LIST} other commands"


def one_command(records: list[Record], colour: Paint) -> Iterator[str]:
    """The last command that starts work, dword by dword and field by field: the first ones often only clear."""
    found = next((record for act in ACTS for record in reversed(commands(records)) if (record["name"] or "").startswith(act)), None)
    if found is None:
        yield "Nothing in this capture draws or computes: it only sets state."
        return
    yield f"{colour(found['name'], 'name')} at {colour(format(found['address'], '#x'), 'address')} starts the work. It is these dwords:"
    yield "  " + " ".join(f"{dword:08x}" for dword in found.get("dwords", []))
    yield "which say:"
    yield from table([(f"  {name}", colour(plain(value), "value")) for name, value in found.get("fields", {}).items()])


def behind_pointers(records: list[Record], colour: Paint) -> Iterator[str]:
    states = Counter(record["state"] for record in records if record.get("state"))
    kernels = Counter(record.get("stage") or "?" for record in records if "kernel" in record)
    yield "Commands point to state in memory, and softgen follows the pointers:"
    yield from table([(f"  {count} ×", colour(name, "name")) for name, count in states.most_common(10)] or [("  none here",)])
    if kernels:
        stages = ", ".join(f"{count} × {stage}" for stage, count in kernels.most_common())
        yield f"Kernels (machine code for the GPU's threads) start for: {stages}."


def executed(path: Path) -> Iterator[str]:
    """A compute job carried out, by `softgen replay`."""
    verb = [sys.executable, "-m", "softgen", "replay", "--json", str(path)]
    found = subprocess.run(verb, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    if found.returncode:
        raise SystemExit(found.returncode)
    ran = json.loads(found.stdout)
    yield f"{path.relative_to(ROOT)} was recorded while a Vulkan program computed. softgen carries it out: {ran['commands']} commands"
    threads, instructions = ran["threads"], ran["instructions"]
    yield f"start {ran['dispatches']} dispatch of {threads} threads, which execute {instructions} instructions of real machine code."


def tour(path: Path, records: list[Record], colour: Paint) -> Iterator[str]:
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    steps: list[tuple[str, Callable[[list[Record], Paint], Iterator[str]]]] = [
        ("What the driver sent", overview), ("One command", one_command), ("Behind the pointers", behind_pointers)]
    yield f"A real graphics driver ran a real program; what it submitted to the GPU was recorded in {colour(shown, 'name')}."
    for number, (title, part) in enumerate(steps, 1):
        yield ""
        yield colour(f"{number}. {title}", "heading")
        yield from part(records, colour)
    yield ""
    yield colour("Your turn", "heading")
    yield f"  .venv/bin/softgen decode {shown} | less"
    yield "  .venv/bin/softgen spec 3DSTATE_VS --gpu kbl"
    yield "  .venv/bin/softgen --help"
    yield f"  .venv/bin/softgen replay {shown} --images build/pictures      what it drew, as PNG files"


def main(arguments: list[str]) -> int:
    paths = [Path(argument).resolve() for argument in arguments] or captures()[:1]
    if not paths:
        print("tour: no capture under tests/data; name one: python examples/tour.py CAPTURE", file=sys.stderr)
        return 1
    records, code = decode(paths[0])
    if records:
        print("\n".join(tour(paths[0], records, paint())))
    if not arguments and COMPUTE.is_dir():
        print("\n".join(("", paint()("And one that runs", "heading"), *executed(COMPUTE))))
    if code:
        print("tour: the decode did not end well, so the above is not all of it", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
