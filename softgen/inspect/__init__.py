"""Inspect: the command line, and what it shows. It owns no behaviour of the GPU.

In:  what a person types: a verb, options, files.
Out: text, JSON (`--json`) and an exit code: 0 fine, 1 the work failed, 2 usage error.

cli/             one module per verb; `main.py` finds it, `output.py` is the look they share, `source.py` reads their files
decoding.py      a trace's submissions as commands, each followed by the state it points to
indirect_state.py  a command's pointers, followed to state, kernels and data
kernels.py       the EU kernels that a trace's commands point to
error_report.py  an error state for people: when, which GPU, what the kernel said; stopped.py  where its engines stopped
spec_names.py    search of the spec's names; spec_diff.py  differences between two generations
bit_diagram.py   dwords as rows of cells; spec_html.py spec_html_page.py spec_html_assets.py  the spec as HTML pages
report.py        the end-of-run report: how exactly, and which kernels took the time; kernel_names.py  names kernels from OpenCL binaries
snippet.py       a piece of EU assembly, run on a thread of its own; snippet_engine.py runs it on a compiling engine
loading.py       what a server loads while its program starts
recording.py     what `run` records: a whole run, or a submission that failed, as a capture
output_file.py   files that verbs write, whole or not at all
pictures.py      render targets as image files; frames.py  what the display presents
registers.py     register names, values and types as text
behaviours.py    the numbered behaviours of the manuals and the tests that show them
citations.py     citations of behaviours in tests, and what each shows
machine.py       what the host offers: CPU, limits, libraries, drivers, oracles
"""
