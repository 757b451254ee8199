"""Layouts kept on disk: found by later processes, never instead of an edited page, and never out of what is not ours."""

from __future__ import annotations

import os
import pickle
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from softgen.bits import page
from softgen.bits.catalogue import Catalogue
from softgen.bits.store import MISSING, SIZES, PageStore, joined
from softgen.cache import Cache
from tests.conftest import ROOT

PAGE = """
source BDW 1
command C  0.22  render
  gen 9  2 dwords
    1  7:0   value
       15:8  other
structure S
  gen 8  1 dwords
    0  31:0  value
register R  0x2000  render
  gen 9  2 dwords
    0  31:0  value
enum E
  1  one
"""


class Pages:
    """A folder with a page, and a cache."""

    def __init__(self, folder: Path) -> None:
        self.page, self.objects = folder / "spec" / "p.layout", folder / "objects"
        self.page.parent.mkdir()
        self.page.write_text(PAGE, "utf-8")
        self.reads = 0

    def texts(self) -> Iterator[tuple[str, str]]:
        self.reads += 1
        yield "p", self.page.read_text("utf-8")

    def catalogue(self) -> Catalogue:
        """As another process has it."""
        return Catalogue(self.texts(), PageStore(Cache(self.objects), (self.page.parent,)))

    def kept(self) -> Path:
        (found,) = self.objects.glob("pages-9-*")
        return found


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    found = Pages(tmp_path)
    ask(catalogue := found.catalogue())
    catalogue.save()
    assert found.reads == 1
    return found


def ask(catalogue: Catalogue) -> None:
    """Everything that is kept."""
    assert catalogue.layout("C", 9.0).raw([0, 0x1234])._asdict() == {"value": 0x34, "other": 0x12}
    assert catalogue.get("S", 9.0) is None
    assert catalogue.find_command(0x11000000, 9.0, "render") is catalogue.layout("C", 9.0)
    assert [name for name, _ in catalogue.registers(9.0)] == ["R"]
    assert catalogue.enumeration("E", 9.0) == {1: "one"}


def test_another_process_reads_no_page(pages: Pages) -> None:
    ask(pages.catalogue())
    assert pages.reads == 1


def test_an_edited_page_is_read(pages: Pages) -> None:
    pages.page.write_text(PAGE.replace("other", "third"), "utf-8")
    assert pages.catalogue().layout("C", 9.0).raw([0, 0x1234]).third == 0x12
    same_size = PAGE.replace("other", "fourt")
    os.utime(pages.page, ns=(1, 1))
    pages.page.write_text(same_size, "utf-8")
    assert pages.catalogue().layout("C", 9.0).raw([0, 0x1234]).fourt == 0x12


def test_a_new_page_is_read(pages: Pages) -> None:
    (pages.page.parent / "q.layout").write_text("", "utf-8")
    ask(pages.catalogue())
    assert pages.reads == 2


@pytest.mark.parametrize("name, reads", [("more", 2), ("__pycache__", 1)])
def test_a_page_in_a_folder_below_is_read(pages: Pages, name: str, reads: int) -> None:
    """Except where Python keeps bytecode, which changes while nobody edits anything."""
    folder = pages.page.parent / name
    folder.mkdir()
    (folder / "q.layout").write_text("", "utf-8")
    ask(pages.catalogue())
    assert pages.reads == reads


def test_what_was_compiled_later_is_kept_too(pages: Pages) -> None:
    later = pages.catalogue()
    later.layout("C", 9.0).unpack([0, 0])
    later.save()
    assert set(pages.catalogue().layout("C", 9.0).codes) == {True, False}
    before = pages.kept().stat().st_mtime_ns
    ask(again := pages.catalogue())
    os.utime(pages.kept(), ns=(before, before))
    again.save()
    assert pages.kept().stat().st_mtime_ns == before, "nothing new: nothing is written"


def test_a_layout_is_made_once(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """From pages or from the store; that a generation has none is kept as well."""
    made, loaded, read, load = list[frozenset[float]](), list[str](), page.layouts, PageStore.load
    monkeypatch.setattr(page, "layouts", lambda section, find, gens: made.append(gens) or read(section, find, gens))
    monkeypatch.setattr(PageStore, "load", lambda store, gen, key: loaded.append(key) or load(store, gen, key))
    for catalogue, expected in ((Catalogue(pages.texts()), [frozenset([9.0])] * 2), (pages.catalogue(), [])):
        made.clear()
        first = catalogue.get("C", 9.0)
        assert first is not None and first is catalogue.get("C", 9.0) is catalogue.layout("C", 9.0)
        assert catalogue.get("S", 9.0) is catalogue.get("S", 9.0) is None
        assert made == expected
    assert loaded == ["layout C", "layout S"]


@pytest.mark.parametrize("data", [b"", b"garbage", os.urandom(5000)])
def test_garbage_is_replaced(pages: Pages, data: bytes) -> None:
    pages.kept().write_bytes(data)
    ask(catalogue := pages.catalogue())
    assert pages.reads == 2
    catalogue.save()
    ask(pages.catalogue())
    assert pages.reads == 2


@pytest.mark.parametrize("data", [b"", b"short", bytes(8), joined({"layout C": b"no pickle", "registers": pickle.dumps(int)[:5]}),
                                  joined({"registers": b"x"})[:-1], b"\xff" * 4000, SIZES.pack(2, 0) + b"\xff\xff"])  # fmt: skip
def test_an_entry_that_is_not_as_expected_is_a_miss(pages: Pages, data: bytes) -> None:
    Cache(pages.objects).save(pages.kept().name, data)
    ask(pages.catalogue())
    assert pages.reads == 2


@pytest.mark.parametrize("data", [b"(" + (3 << 29).to_bytes(4, "little"), b"[" + (3 << 29).to_bytes(4, "little") + bytes(100), b"\xff" * 8])
def test_no_size_in_an_entry_is_believed(pages: Pages, data: bytes) -> None:
    """The first two claim 12 GB, in Python's marshal format, which entries once had."""
    Cache(pages.objects).save(pages.kept().name, data)
    before, most = resource.getrlimit(resource.RLIMIT_AS), 4 << 30
    used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + most, before[1]))
    try:
        ask(pages.catalogue())
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert pages.reads == 2


def test_nothing_is_unpickled_that_others_could_have_written(pages: Pages) -> None:
    pages.objects.chmod(0o777)
    ask(pages.catalogue())
    assert pages.reads == 2


def test_without_a_cache(tmp_path: Path) -> None:
    pages = Pages(tmp_path)
    for folder in (None, tmp_path / "a file" / "below"):
        (tmp_path / "a file").write_bytes(b"")
        store = PageStore(Cache(folder), (pages.page.parent,))
        ask(catalogue := Catalogue(pages.texts(), store))
        catalogue.save()
        assert store.load(9.0, "registers") is MISSING


def test_a_catalogue_without_a_store_saves_nothing(tmp_path: Path) -> None:
    pages = Pages(tmp_path)
    ask(catalogue := Catalogue(pages.texts()))
    catalogue.save()
    ask(catalogue)
    assert pages.reads == 1 and not pages.objects.exists()


def test_processes_that_save_at_the_same_time(pages: Pages) -> None:
    catalogues = [pages.catalogue() for _ in range(8)]
    for catalogue in catalogues:
        catalogue.get("S", 8.0)
        catalogue.layout("C", 9.0).unpack([0, 0])
    threads = [threading.Thread(target=catalogue.save) for catalogue in catalogues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reads = pages.reads
    ask(last := pages.catalogue())
    assert last.get("S", 8.0) is not None and pages.reads == reads


def test_the_command_line_keeps_what_it_reads(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "softgen", "spec", "3DSTATE_VS"]
    first = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert list((tmp_path / "softgen" / "objects").glob("pages-9-*"))
    code = "import softgen.bits.catalogue as c; print(c.layout('3DSTATE_VS', 9.0).name, '_split' in vars(c.catalogue()))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == "3DSTATE_VS False\n"
    assert subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout == first.stdout


def test_what_is_kept_is_not_saved_again(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.page.write_text(PAGE + "\n", "utf-8")
    catalogue, saved = pages.catalogue(), []
    monkeypatch.setattr(Cache, "save", lambda self, key, data: saved.append(key))
    catalogue.layout("C", 9)
    for _ in range(2):
        catalogue.save()
    assert len(saved) == 1
