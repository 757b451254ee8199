"""What a server loads while its program starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT

AFTERWARDS = """
import sys
from softgen.bits import catalogue, formats, registers
from softgen.bits.catalogue import Catalogue
from softgen.inspect.loading import warm

warm({gen}, {engine!r})
made, kept, modules = [], Catalogue._kept, set(sys.modules)
Catalogue._kept = lambda self, gen, key, make: (made.append(key), kept(self, gen, key, make))[1]
assert catalogue.find_command(0, {gen}, "render").name == "MI_NOOP"
registers.place(0x2000, {gen})
formats.surface_formats()
import softgen.driver.execute, softgen.three_d.draw
print([key for key in made if key.startswith(("commands", "registers"))], sorted(set(sys.modules) - modules))
"""


@pytest.mark.parametrize("gen", [4.5, 9.0])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_first_submission_makes_no_table_and_imports_nothing_that_was_loaded(gen: float, engine: str) -> None:
    """Tables of all commands and registers, and the modules that execute and draw."""
    command = [sys.executable, "-c", AFTERWARDS.format(gen=gen, engine=engine)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout == "[] []\n", found.stderr
