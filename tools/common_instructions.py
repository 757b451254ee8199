"""Write the list of instructions whose handlers are compiled ahead (softgen/eu/threaded/common).

    python tools/common_instructions.py kbl KERNELS... > softgen/eu/threaded/common/9.asm

KERNELS are compiled OpenCL programs. An instruction is listed if two kernels and one in ninety have one with the same handler; a message if
two have, since kernels wait for those, while the rest is bytecode. Most often comes first. Registers and numbers are those of the first
instruction that was found, and branches lead to the next one. A file *.code is the code of a kernel of the runtime itself, as it is in
memory: many programs run it, and it counts for thirty.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import softgen
from softgen.bits.generation import device
from softgen.eu.interpreter import KernelProgram
from softgen.eu.text import dialect
from softgen.eu.threaded.handlers import HandlerKind
from softgen.eu.threaded.library import library
from softgen.eu.threaded.link import Linker

RARE = 90  # in so many kernels there is one with it
OWN = 30  # kernels that one of the runtime counts for
PLACES = ("before", "mode", "after", "end")  # of cr0's change, and of the thread
WHATS = ("compute", "send", "branch", "wait", "mode")  # handlers of instructions
TARGET = re.compile(r"(?<= )(L\d+|\.[+-]\d+)(?= |$)")  # of a branch
AROUND = re.compile(r"/\*.*?\*/|//.*|\{[^}]*\}")  # what stands around an instruction: its bits, comments, options


class Example(NamedTuple):
    """An instruction for a handler."""

    text: str
    place: str


def examples(code: bytes, gen: float) -> Iterator[tuple[HandlerKind, Example]]:
    """The instructions of a kernel by their handlers."""
    linker = Linker(KernelProgram(gen, code), 0, library(gen))
    linker.explore_modes(frozenset({0}))
    for mode in (linker, linker.other):
        for op in mode.ops() if mode else ():
            if op.kind is not None and op.kind.what in WHATS and op.ip in mode.lines:
                line = mode.lines[op.ip]
                lines = AROUND.sub("", dialect.text(code[op.ip : op.ip + line.size], gen)).splitlines()
                text = " ".join(line.strip() for line in lines if not line.endswith(":")).strip()
                place = "mode" if op.kind.what == "mode" else "end" if line.instruction.eot else "before" if mode is linker else "after"
                yield op.kind, Example(re.sub(r"  +", " ", text), place)


def main() -> None:
    gpu, *files = sys.argv[1:]
    gen = device(gpu).generation.number
    own = {Path(file).read_bytes() for file in files if file.endswith(".code")}
    programs = [softgen.load_kernels(file, gpu) for file in files if not file.endswith(".code")]
    kernels = {bytes(kernel.code) for program in programs for kernel in program.values()} | own
    count: Counter[HandlerKind] = Counter()
    found: dict[HandlerKind, Example] = {}
    for code in sorted(kernels):
        of_kernel = dict(examples(code, gen))
        count.update(dict.fromkeys(of_kernel, OWN if code in own else 1))
        found = of_kernel | found
    kept = [kind for kind, number in count.most_common() if number > 1 and (kind.what == "send" or number * RARE >= len(kernels))]
    order = sorted((found[kind] for kind in kept), key=lambda example: PLACES.index(example.place))
    print(f"// Instructions of {len(kernels)} OpenCL kernels for {gpu} (tools/common_instructions.py).")
    for number, example in enumerate(order):
        text, targets = TARGET.subn(f"L{number}", example.text)
        print(text + f"\nL{number}:" * bool(targets))


if __name__ == "__main__":
    main()
