"""Host functions: C functions over lanes that lane programs call on any machine.

    DECODE = HostFunction("surface_bc7", lambda: address)
    red, green, blue, alpha = DECODE(m, [*words, x, y], 4)

A function is `void f(const uint32_t *in, uint32_t *out, uint32_t lanes)`: vectors of 32-bit lanes one after another. It touches nothing
else, so that the same lanes give the same results on every machine. Compiled code imports it by name, whose address the loader looks up
here (jit.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from softgen.lanes.machine import Machine
from softgen.lanes.types import u32
from softgen.lanes.value import Value

_known: dict[str, HostFunction] = {}


class HostFunction:
    """A C function by the name of its symbol; `find` returns its address when it is first needed."""

    def __init__(self, name: str, find: Callable[[], int]) -> None:
        self.name, self._find, self._address = name, find, 0
        _known[name] = self

    @property
    def address(self) -> int:
        self._address = self._address or self._find()
        return self._address

    def __call__(self, m: Machine, arguments: list[Value], results: int) -> list[Value]:
        if any(value.type is not u32 or value.lanes != arguments[0].lanes for value in arguments):
            raise TypeError(f"{self.name} takes vectors of u32, all of as many lanes")
        return [m._value(u32, arguments[0].lanes, held) for held in m._host(self, [value.payload for value in arguments],
                                                                            arguments[0].lanes, results)]  # fmt: skip


def addresses(names: Iterable[str]) -> dict[str, int]:
    """The addresses of those names that are host functions."""
    return {name: _known[name].address for name in names if name in _known}
