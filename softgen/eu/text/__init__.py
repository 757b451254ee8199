"""Assembly text: formatters and parsers of two dialects.

dialect.py   one interface for both dialects: programs to text, text to programs
lexer.py     scanner; errors name line and column
iga/         the dialect of Intel's IGA: `add (16|M0)  r4.0<1>:f …`
mesa/        the dialect of Mesa: `add(16)  g4<1>F …`
"""
