"""Checks: the same work in several worlds that the manuals allow, and what differs between them, with a witness.

In:  a capture. Out: findings, each with the kernel, a POSITION, the two worlds that differ, and how the difference came about.

worlds.py    which worlds: orders of threads, contents of what was never written
replays.py   replays side by side, one in each world; memory is compared after each submission
observed.py  a dispatcher of one world, which notes scratch space; captures executed for such a dispatcher
narrow.py    a submission again, dispatch by dispatch: which one differs, and which of its groups
accesses.py  one group on the interpreter: which threads touch the same bytes with nothing between them
undefined.py one group in two worlds: where a value was made that nothing has written, and where it is stored
stale.py     draws again on memory without what the render cache still holds: missing flushes
interleaved.py  threads that take turns after each message, on the interpreter: updates that are lost
turns.py     groups on the interpreter for so many instructions
lanes.py     lanes of one message that store to the same byte, on the interpreter
bounds.py    accesses outside of surfaces and local memory, on the interpreter
endless.py   the proof that a group never ends: its whole state returns
remarks.py   what a replay itself remarks: accesses outside buffers, rules of the manuals that commands break
source_lines.py  the lines of OpenCL sources, for instructions that findings name
finding.py   Finding, its levels, and which findings are allowed
outputs.py   findings as text, JSON, JUnit XML, SARIF and annotations
check.py     all of it, for one capture
"""
