"""Random legal EU programs, and two engines compared on them.

operands.py      kinds of operands, random operands of a kind, numbers that go wrong first
instructions.py  random legal instructions from the opcode table
cells.py         what coverage counts
flow.py          random control flow that ends
cases.py         whole programs with their threads, by generation and number
engines.py       the engines, comparing them, shrinking what differs
coverage.py      which cells programs reach, and why the others are not

    python -m tests.eu.random_programs --programs 300 --gen 9        coverage, as a table
    python -m tests.eu.random_programs --compare reference,t1        the engines on the same programs
"""
