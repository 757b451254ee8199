"""Bits: how a page of `spec/` becomes pack and unpack.

In    text pages (`spec/**/*.layout`), two tables (`generations.toml`, `devices.toml`).
Out   `Layout` objects: the position of each field of a command, structure, register, message or instruction,
      compiled to `unpack` (dwords -> record) and `pack` (values -> dwords); `Generation` and `Device` objects.

page/          reads a page, strictly; a complaint names page and line: section.py, lines.py, build.py
field.py       Field, Group, Header, Effect: the parts of a layout
field_type.py  what a field's bits mean: types, enumerations, conditions
expression.py  checks of derived values
layout.py      Layout: the positions, the reserved bits, the header key, what a command does
record.py      Record: a layout's values by name; numbers that dwords stand for
unpack.py      a layout compiled to a function dwords -> record
pack.py        values -> dwords
catalogue.py   (name, generation) -> layout; a header dword -> its command
store.py       layouts and tables that earlier processes read, in the user's cache
generation.py  a generation's capabilities by name, a GPU's limits
registers.py   an MMIO offset -> its register, those of an engine counted from where the engine's registers start
formats.py     the surface formats of formats.csv
units.py       sizes that every package shares: DWORD, GRF_BYTES, PAGE_SIZE
describe.py    record -> text and JSON: one look for errors, traces and the command line
"""
