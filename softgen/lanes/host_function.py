"""Host functions: C functions over lanes that lane programs call on any machine.

    DECODE = HostFunction("surface_bc7", lambda: address)
    red, green, blue, alpha = m.host(DECODE, [*words, x, y], 4)

A function is `void f(const uint32_t *in, uint32_t *out, uint32_t lanes)`: vectors of 32-bit lanes one after another. It touches nothing
else, so that the same lanes give the same results on every machine. Compiled code imports it by name, whose address the loader looks up
here (jit.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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


def addresses(names: Iterable[str]) -> dict[str, int]:
    """The addresses of those names that are host functions."""
    return {name: _known[name].address for name in names if name in _known}


def known() -> dict[str, int]:
    """The addresses of those host functions that programs have had until now."""
    return {name: function._address for name, function in _known.items() if function._address}
