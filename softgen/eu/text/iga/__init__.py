"""IGA's dialect of assembly text.

format.py     instruction -> text           parse.py      text -> instructions, labels resolved
operand.py    text of operands              reader.py     registers, regions, immediates, descriptors from text
controls.py   text of controls              statement.py  one instruction from text
names.py      words by generation           plan.py       fields that the text omits, for both directions
"""
