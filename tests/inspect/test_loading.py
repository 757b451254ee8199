"""What a server loads while its program starts."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits import catalogue
from softgen.bits.generation import device
from softgen.inspect import loading
from tests.conftest import ROOT

AFTERWARDS = """
import pathlib, sys, tomllib
from softgen.bits import catalogue, formats, registers
from softgen.bits.catalogue import Catalogue
from softgen.bits.generation import device
from softgen.inspect.loading import warm

gpu = device({gpu!r})
gen = gpu.generation.number
warm(gpu, {engine!r})
from softgen.device.gpu import GpuDevice
from softgen.device.registers import shared_registers
from softgen.device.interrupts import places
from softgen.eu.isa import registers as architecture, rules
tomllib.loads = pathlib.Path.read_text = None
places(), architecture.table(), rules.table()
GpuDevice(gpu).new_context("render")
shared_registers()
made, kept, modules = [], Catalogue._kept, set(sys.modules)
Catalogue._kept = lambda self, gen, key, make: (made.append(key), kept(self, gen, key, make))[1]
assert catalogue.find_command(0, gen, "render").name == "MI_NOOP"
registers.place(0x2000, gen)
formats.surface_formats()
import softgen.driver.queue.execute, softgen.three_d.draw.draw
late = [name for name in {status!r} if (name, gen) not in catalogue.catalogue()._layouts]
late += [layout.name for name in {batch!r} if (layout := catalogue.catalogue()._layouts[name, gen]) and "raw" not in vars(layout)]
print([key for key in made if key.startswith(("commands", "registers"))], sorted(set(sys.modules) - modules), late)
"""
BATCH = ("PIPE_CONTROL", "STATE_BASE_ADDRESS", "MEDIA_INTERFACE_DESCRIPTOR_LOAD", "GPGPU_WALKER", "RENDER_SURFACE_STATE")
STATUS = ("ACTHD", "BB_ADDR", "IMR")


@pytest.mark.parametrize("gpu", ["g45", "kbl"])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_first_submission_makes_no_table_and_imports_nothing_that_was_loaded(gpu: str, engine: str) -> None:
    """Tables of all commands and registers, what a context begins with, layouts of a batch, and the modules that execute and draw."""
    command = [sys.executable, "-c", AFTERWARDS.format(gpu=gpu, engine=engine, batch=BATCH, status=STATUS)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout == "[] [] []\n", found.stderr


def test_what_batches_have_is_known_by_its_name() -> None:
    assert {*BATCH} < {*loading.COMPUTE} <= {*catalogue.names()} >= {*loading.STATUS}


def test_modules_are_imported_between_ioctls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while one came a moment ago; another thread, which answers it, never waits."""
    asked, now, slept = [100.0, 100.0015], 100.001, list[float]()

    def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds
        service.asked = asked.pop(0) if asked else service.asked

    service: Any = SimpleNamespace(asked=asked.pop(0))
    monkeypatch.setattr(loading, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    polite = loading.PoliteImports(service)
    answering = threading.Thread(target=polite.find_spec, args=("module",))
    answering.start()
    answering.join()
    assert not slept
    polite.find_spec("module")
    assert slept == pytest.approx([0.001, 0.0015]) and now == pytest.approx(100.0035), "until 2 ms after the last one"
    polite.find_spec("module")
    assert len(slept) == 2, "none since"


def test_a_program_that_always_makes_ioctls_does_not_keep_modules_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that answers one may wait for a module that the other thread has begun to import."""
    now = 100.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    class Busy:
        asked = property(lambda self: now)

    service: Any = Busy()
    monkeypatch.setattr(loading, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    polite = loading.PoliteImports(service)
    polite.find_spec("module")
    assert now == pytest.approx(100 + loading.POLITE)
    polite.find_spec("another")
    assert now == pytest.approx(100 + loading.POLITE)


@pytest.mark.parametrize("fails", [False, True])
def test_loading_leaves_imports_as_they_were(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is going through the list of finders, at any moment, sees each of them once."""
    unchanged, during = sys.meta_path, list[Any]()
    before, lists = list(unchanged), list[Any]()
    service: Any = SimpleNamespace(asked=0.0, loaded=threading.Event())
    answering = threading.Event()

    def warm(gpu: object, engine: str) -> None:
        lists.append(sys.meta_path)
        during.extend([sys.meta_path[0], answering.is_set(), service.loaded.is_set()])
        if fails:
            raise ImportError("no such module")

    monkeypatch.setattr(loading, "warm", warm)
    loading.load(device("kbl"), "auto", answering, service)
    assert isinstance(during[0], loading.PoliteImports) and during[1:] == [True, False]
    assert sys.meta_path == before and answering.is_set() and service.loaded.is_set()
    assert unchanged == before and lists == [[during[0], *before]]
