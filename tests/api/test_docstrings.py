"""The examples in the docstrings of the Python interface run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
from types import ModuleType

import pytest

import softgen.api
from tests.conftest import ROOT

MODULES = [importlib.import_module(f"softgen.api.{module.name}") for module in pkgutil.iter_modules(softgen.api.__path__)]
SHOWN = ("Gpu", "Buffer", "Image", "load_kernels", "assemble", "disassemble", "spec", "open", "decode")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_run(module: ModuleType) -> None:
    before = os.getcwd()
    os.chdir(ROOT)  # examples name files of the repository
    try:
        assert doctest.testmod(module).failed == 0
    finally:
        os.chdir(before)


@pytest.mark.parametrize("name", SHOWN)
def test_each_entry_point_has_an_example(name: str) -> None:
    assert ">>> " in (getattr(softgen, name).__doc__ or ""), name


def test_launch_has_an_example() -> None:
    assert ">>> " in (softgen.Gpu.launch.__doc__ or "")
