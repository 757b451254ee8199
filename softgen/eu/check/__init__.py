"""Restrictions: encodings that are illegal on a generation. Rows are in `spec/eu/restrictions.table`.

restrictions.py  reads the table, checks an instruction
operand.py       types, modifiers, accumulators, flags, controls
region.py        regions, alignment, operand sizes
send.py          sends
"""
