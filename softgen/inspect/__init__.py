"""Inspect: the command line, and what it shows. It owns no behaviour of the GPU.

In:  what a person types: a verb, options, files.
Out: text, JSON (`--json`) and an exit code: 0 fine, 1 the work failed, 2 usage error.

cli/             one module per verb; `main.py` finds it, `output.py` is the look they share, `source.py` reads their files
farm/            many programs or captures, on one machine or on many, and their results
spec/            the spec for people: names, differences, pages, behaviours
decode/          traces for people: commands, state, kernels, errors
report/          what a run did: statistics, pictures, recordings
pytest_plugin.py the fixture `softgen_run` for tests of other projects
snippet.py       a piece of EU assembly, run on a thread of its own; snippet_engine.py runs it on a compiling engine
registers.py     register names, values and types as text
loading.py       what a server loads while its program starts
output_file.py   files that verbs write, whole or not at all
machine.py       what the host offers: CPU, limits, libraries, drivers, oracles
"""
