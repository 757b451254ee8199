"""The spec: fields of a command, structure, register, message or instruction, as the manuals define them."""

from __future__ import annotations

import dataclasses

from softgen.api.html import table
from softgen.bits.catalogue import catalogue
from softgen.bits.describe import values_of
from softgen.bits.generation import device
from softgen.bits.layout import Layout
from softgen.errors import SpecError, UsageError
from softgen.inspect.cli.output import counted


@dataclasses.dataclass(frozen=True)
class Field:
    """A field; `high` and `low` count from bit 0 of dword 0."""

    name: str
    high: int
    low: int
    type: str
    values: dict[int, str]
    group: str = ""  # the repeated group that it belongs to
    source: str = ""  # volume and line

    @property
    def dword(self) -> int:
        return self.low // 32

    @property
    def bits(self) -> str:
        """Bits in the dword, as manuals write them."""
        base = 32 * self.dword
        return f"{self.high - base}:{self.low - base}" if self.high > self.low else f"{self.low - base}"


@dataclasses.dataclass(frozen=True, repr=False)
class Spec:
    """A command, structure, register, message or instruction of one GPU."""

    name: str
    kind: str
    gpu: str
    key: str
    dwords: int
    fields: tuple[Field, ...]
    page: str
    layout: Layout

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name!r}; it has {', '.join(field.name for field in self.fields)}")

    def __repr__(self) -> str:
        return f"Spec({self.name}: {self._facts}, {counted(len(self.fields), 'field')})"

    @property
    def _facts(self) -> str:
        return f"{self.kind}, {self.gpu}, {counted(self.dwords, 'dword')}"

    def __str__(self) -> str:
        return "\n".join([f"{self.name}  {self._facts}", *(f"  {field.dword:3}  {field.bits:7} {field.name}" for field in self.fields)])

    def _repr_html_(self) -> str:
        rows = ((field.dword, field.bits, f"{field.group}.{field.name}" if field.group else field.name,
                 " | ".join(field.values.values()) or field.type, field.source) for field in self.fields)  # fmt: skip
        return table(f"{self.name}: {self._facts}", ("dword", "bits", "name", "type", "source"), rows)


def spec(name: str, gpu: str) -> Spec:
    """Look a command, structure, register, message or instruction up by its name in the manual.

    >>> import softgen
    >>> vs = softgen.spec("3DSTATE_VS", "kbl")
    >>> vs.kind, vs.dwords, vs["kernel_start_pointer"].dword
    ('command', 9, 1)
    """
    gen = device(gpu).generation.number
    if not isinstance(name, str):
        raise UsageError(f"a name is text (str), not {type(name).__name__}")
    if name not in catalogue().sections:
        from softgen.inspect.spec.spec_names import close

        meant = close(name)
        raise SpecError(f"no page describes {name!r}" + (f"; did you mean {' or '.join(meant)}?" if meant else ""))
    layout = catalogue().layout(name, gen)
    fields = []
    for field, groups in layout.walk():
        start = sum(group.start for group in groups)
        low = min(low for _, low in field.pieces)
        fields.append(Field(field.name, start + field.high, start + low, str(field.type), values_of(field.type, gen),
                            ".".join(group.name for group in groups), field.source))  # fmt: skip
    return Spec(layout.name, layout.kind, gpu, layout.key, layout.dwords, tuple(fields), f"{layout.page}:{layout.line}", layout)
