"""Whether functions are compiled in the background, while bytecode serves (tiers.py), or when they are made."""

from __future__ import annotations


class _Mode:
    background = False


def compile_in_background(on: bool) -> None:
    """Choose for the functions made from now on. All engines of a process share functions: the engine chosen last decides."""
    _Mode.background = on


def in_background() -> bool:
    return _Mode.background
