"""`python -m bench._snippet FILE ENGINE`: runs a piece of assembly on an engine and prints a register. For timing a fresh process."""

from __future__ import annotations

import sys
from pathlib import Path

from softgen.eu.engine import run
from softgen.eu.interpreter import DEFAULT_BRANCH_BUDGET, KernelProgram
from softgen.eu.text import dialect
from softgen.eu.thread.state import ThreadState

GEN = 9.0
END = "(W) send (8|M0) null r127 0x27 0x02000010 {EOT}"


def main(file: str, name: str) -> int:
    code = dialect.read(f"{Path(file).read_text('utf-8')}\n{END}\n", GEN)
    thread = ThreadState(GEN, {7: lambda thread_state, sent: None}, dispatch_mask=0xFFFF)
    run(name, thread, KernelProgram(GEN, code), DEFAULT_BRANCH_BUDGET)
    print(thread.executed, thread.register(10).tolist())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
