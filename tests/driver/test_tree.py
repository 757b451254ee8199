"""The tree of files that programs find for the GPU: its parts agree with each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgen.bits.generation import device
from softgen.driver.tree import PCI, build


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    build(tmp_path, device("kbl"))
    return tmp_path


def test_frequencies_are_in_order(tree: Path) -> None:
    """The hardware's range (RPn to RP0) is the one that is set, and what it runs at is inside."""
    found = {name: int((tree / PCI / f"drm/card0/gt_{name}_freq_mhz").read_text("ascii"))
             for name in ("act", "boost", "cur", "max", "min", "RP0", "RP1", "RPn")}  # fmt: skip
    assert found["RPn"] == found["min"] <= found["cur"] <= found["max"] == found["RP0"] == found["boost"]
    assert found["RPn"] <= found["RP1"] <= found["RP0"] and found["act"] == found["cur"]


def test_the_configuration_space_says_what_the_files_say(tree: Path) -> None:
    """A header of 64 bytes (PCI Local Bus 3.0, 6.1), which is what a process without privileges may read."""
    pci, config = tree / PCI, (tree / PCI / "config").read_bytes()
    assert len(config) == 64

    def number(name: str) -> int:
        return int((pci / name).read_text("ascii"), 16)

    assert [int.from_bytes(config[at : at + 2], "little") for at in (0, 2, 0x2C, 0x2E)] == [
        number(name) for name in ("vendor", "device", "subsystem_vendor", "subsystem_device")]  # fmt: skip
    assert config[8] == number("revision") and int.from_bytes(config[9:12], "little") == number("class")


def test_links_lead_to_what_is_there(tree: Path) -> None:
    links = [path for path in tree.rglob("*") if path.is_symlink() and not str(path.readlink()).startswith("/")]
    assert len(links) > 10 and all(path.exists() for path in links if path.name != "driver" or path.exists())
    assert {path.name for path in (tree / "sys/class/drm").iterdir()} >= {"card0", "renderD128", "version"}
