"""Profiles: what each instruction, kernel and draw of a capture does, counted exactly; and differences between two profiles.

In    a capture. Out: JSON, a table, CSV, speedscope's format.

measure.py   executes the capture on counting engines
probe.py     Probe: a user's own analysis in NumPy; probing.py runs it
counts.py    Profile and its parts: draws, kernels, instructions
bound.py     the time that arithmetic takes at least
text.py      a profile as lines of a terminal
export.py    CSV, and stacks for speedscope
compare.py   two profiles side by side
"""
