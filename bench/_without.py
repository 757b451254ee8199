"""`python -m bench._without PART run …`: the command line with a part of the cold-start machinery switched off, for bench/starts.py.

A part is switched off in its module as that is imported, in the launcher or in the server, which is forked from it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import ModuleType
from typing import Any


def _nothing(*given: Any) -> None:
    """In the place of a function or method that only saves time."""


def _replace(path: str, value: Any) -> Callable[[ModuleType], None]:
    """A change of a module: another value of an attribute, or of one of a class."""
    *owners, name = path.split(".")

    def change(module: ModuleType) -> None:
        owner: Any = module
        for part in owners:
            owner = getattr(owner, part)
        if not hasattr(owner, name):
            raise AttributeError(f"{module.__name__} has no {path}")
        setattr(owner, name, value)

    return change


def _no_pages(module: ModuleType) -> None:
    module.PageStore.load = lambda store, gen, key: module.MISSING
    module.PageStore.save = _nothing


Change = tuple[str, Callable[[ModuleType], None]]  # of a module, when it was imported
PARTS: dict[str, Change] = {
    "pages": ("softgen.bits.store", _no_pages),
    "loading": ("softgen.inspect.loading", _replace("warm", _nothing)),
    "polite imports": ("softgen.inspect.loading", _replace("PoliteImports.find_spec", _nothing)),
    "frozen modules": ("softgen.inspect.loading", _replace("gc", type("gc", (), dict.fromkeys(("disable", "enable", "freeze"), _nothing)))),
    "collector": ("softgen.driver.run.collector", _replace("Collector.executed", _nothing)),
    "recent handlers": ("softgen.eu.threaded.library", _replace("Library.load_recent", _nothing)),
    "compiled ahead": ("softgen.driver.run.simulator", _replace("Simulator.compile_ahead", _nothing)),
    "bytecode first": ("softgen.lanes.compile.compile_policy", _replace("in_background", lambda: False)),
    "kept bytecode": ("softgen.lanes.bytecode.kept_programs", _replace("load", _nothing)),
    "uncollected": ("softgen.lanes.compile.tiers", _replace("uncollected", nullcontext)),
    "pages of LLVM": ("softgen.lanes.compile.page_release", _replace("LibraryPages", type("LibraryPages", (), {
        "__init__": _nothing, "used": _nothing, "release": _nothing}))),
    "foreground": ("softgen.lanes.compile.foreground", _replace("yield_to_foreground", _nothing)),
    "short switches": ("softgen.driver.run.service", _replace("SWITCH", 0.005)),
}  # fmt: skip


class Switch(importlib.abc.MetaPathFinder):
    """Finds one module, and changes it as soon as it was executed."""

    def __init__(self, part: str) -> None:
        self.name, self.change = PARTS[part]

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None and isinstance(spec.loader, importlib.abc.Loader)
        execute = spec.loader.exec_module

        def changed(module: ModuleType) -> None:
            execute(module)
            self.change(module)

        spec.loader.exec_module = changed  # type: ignore[method-assign]
        return spec


def main(part: str, arguments: list[str]) -> int:
    if part != "nothing":
        sys.meta_path.insert(0, Switch(part))
    from softgen.inspect.cli.main import main as command

    return command(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
