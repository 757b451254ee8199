"""The instruction set as data: the decoded instruction, and what its opcode, registers and types mean on each generation.

instruction.py       Operand and Instruction, the records that all other modules work on
opcodes.py           opcodes by generation: layout, operands, types, controls
registers.py         architecture registers
types.py             operand types and their codes
labels.py            branch targets: encoded distances and byte offsets
rules.py             rules of execution by generation
control_register.py  fields of cr0
table.py             reader of the tables in spec/eu
"""
