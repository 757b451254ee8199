"""Threaded execution: a handler for each shape of instruction, compiled once and for all programs; a program is a list of records.

    outcome = run(thread, Program(9, code))          # as interpreter.run; what has no handler, the reference does

shapes.py    what handlers have in common, and what differs       state.py, flow.py, stack_flow.py   registers and branches as code
handlers.py  shapes to code     library.py  handlers on disk      record.py, link.py, write.py  programs to records
ahead.py     handlers of the instructions in common/, before they are needed
streams.py   straight code once more, for threads whose channels are all on
counting.py  programs whose instructions are counted
"""

from __future__ import annotations

from softgen.eu.threaded.engine import ThreadedPrograms, run

__all__ = ["ThreadedPrograms", "run"]
