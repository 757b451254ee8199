"""Mesa's dialect of assembly text.

format.py     instruction -> text           parse.py      text -> instructions, labels resolved
operand.py    text of operands              reader.py     operands from text
controls.py   text of controls              defaults.py   operands that the text omits
names.py      words by generation
"""
