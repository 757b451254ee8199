"""Inspect: the command line, and what it shows. It owns no behaviour of the GPU.

In:  what a person types: a verb, options, files.
Out: text, JSON (`--json`) and an exit code: 0 fine, 1 the work failed, 2 usage error.

cli/             one module per verb; `main.py` finds it, `output.py` is the look they share, `source.py` reads their files
farm/            many programs or captures, on one machine or on many, and their results
spec/            the spec for people: names, differences, pages, behaviours
check/           races, uninitialised values, accesses outside of buffers: replays in several worlds
decode/          traces for people: commands, state, kernels, errors
frames/          presented frames: saved, filmed, shown live
report/          what a run did: statistics, pictures, recordings
view/            the page of a capture, served or as files
debug/           the debugger of EU threads, its terminal and its protocol for editors
diff/            what differs between two captures or pictures
profile/         exact counts by draw, kernel and instruction, and comparisons of them
session/         captures executed up to any command, and their threads stepped
pytest_plugin.py the fixture `softgen_run` for tests of other projects
snippet.py       a piece of EU assembly, run on a thread of its own; snippet_engine.py runs it on a compiling engine,
                 snippet_worlds.py in two worlds, to find registers that nothing has written
registers.py     register names, values and types as text
loading.py       what a server loads while its program starts
output_file.py   files that verbs write, whole or not at all
machine.py       what the host offers: CPU, limits, libraries, drivers, oracles
"""
