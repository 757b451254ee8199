"""Encoding: 128-bit words and 64-bit compact ones to Instruction records and back.

decode.py         128 bits -> Instruction
encode.py         Instruction -> 128 bits
compact.py        64 bits <-> 128 bits
fields.py         instruction pages as decoder and encoder use them
controls.py       fields that are neither operand nor descriptor
operand.py        operands of the basic form
forms.py          basic form, branches, sends
three_source.py   three-source forms and split sends
program.py        bytes <-> streams of instructions
"""
