"""The unified return buffer (URB): messages of geometry threads that read and write its entries.

memory.py       UrbMemory: the bytes of a URB, handles, entry records and pools
messages.py     the lane programs of its messages
environment.py  what they need: UrbEnvironment, on the interpreter and in compiled code
unit.py         the declaration of the unit
"""
