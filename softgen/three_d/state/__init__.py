"""State of the 3D pipeline: what commands and the blocks of memory behind them say.

state.py            the state of a draw
unit_state.py       the state of a shader stage: a command, or a block in memory
fields.py           the state of a fixed function, from several commands or blocks
constants.py        push constants; resource_streamer.py what gathers them, constant_registers.py what it keeps
plan_cache.py       plans kept from draw to draw, and what of state and memory they were made from
latched_state.py    what of commands is compared before plans are used again, and what is copied into them
state_pointers.py   what pointers lead to on Gen4.5; state_blocks.py the same of later generations
stream_offsets.py   write offsets of stream output buffers, in registers and memory
"""
