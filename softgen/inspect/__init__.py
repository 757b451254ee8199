"""Inspect: where people meet softgen. It stands above every other room and owns no behaviour of the GPU.

In    what a person types: a verb, files, a GPU's name.
Out   text on a terminal, JSON for machines, an exit code.

cli/           main.py finds the verb; one file per verb, or a few; output.py is their shared look
decoding.py    a trace walked command by command, with what the commands point to
indirect_state.py  a command's pointers followed to state, kernels and data
stopped.py     where an engine stopped: the commands its registers point to
error_report.py  the registers and the memory of an error state
spec_names.py  names of the spec, however people write them; spec_diff.py what changed between two GPUs
bit_diagram.py the dwords of a layout as rows of cells, and as lines of text
spec_html.py   the browsable reference; spec_html_page.py its pages, spec_html_assets.py their look and their search
kernels.py     the kernels that the state of a trace points to
snippet.py     a piece of EU assembly, run on a thread of its own; snippet_engine.py is who runs it
recording.py   what `run` keeps: a whole run, or a submission that failed, as a capture
registers.py   registers as people write and read them
behaviours.py  the numbered behaviours of the manuals and the tests that show them
citations.py   citations of behaviours in tests, and what each shows
machine.py     what the host offers: CPU, limits, libraries, drivers, oracles
"""
