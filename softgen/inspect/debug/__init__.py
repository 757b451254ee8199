"""The debugger of EU threads: breakpoints, steps both ways, watches, over a session. A terminal and editors are its clients.

debugger.py     Debugger: where execution stands, and what moves it
breakpoints.py  places and conditions at which it stops
sources.py      the lines of kernels: disassembly, assembly files, OpenCL source by DWARF
dwarf.py        line tables of OpenCL binaries; named_variables.py  variables by name, and their values
commands.py     the commands of the terminal
dap.py          the Debug Adapter Protocol, for editors
variables.py    registers, masks and messages as an editor shows them
"""
