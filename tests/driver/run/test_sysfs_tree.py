"""The tree of files that programs find for the GPU: its parts agree with each other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from softgen.bits.generation import device
from softgen.driver.run.sysfs_tree import PCI, build


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
    command, status = int.from_bytes(config[4:6], "little"), int.from_bytes(config[6:8], "little")
    assert command == 1 | 2 | 4 | 1 << 10, "it answers for ports and memory, reads and writes memory itself, and has no interrupt line"
    assert status == 1 << 4 | 1 << 7, "it has a list of capabilities, and is fast back-to-back"
    assert config[8] == number("revision") and int.from_bytes(config[9:12], "little") == number("class")


def test_links_lead_to_what_is_there(tree: Path) -> None:
    links = [path for path in tree.rglob("*") if path.is_symlink() and not str(path.readlink()).startswith("/")]
    assert len(links) > 10 and all(path.exists() for path in links if path.name != "driver" or path.exists())
    assert {path.name for path in (tree / "sys/class/drm").iterdir()} >= {"card0", "renderD128", "version"}


TREE = """
dev/dri/by-path/pci-0000:00:02.0-card -> ../card0
dev/dri/by-path/pci-0000:00:02.0-render -> ../renderD128
dev/dri/card0
dev/dri/renderD128
run/udev/data/c226:0
run/udev/data/c226:128
sys/bus/pci/devices/0000:00:02.0 -> ../../../devices/pci0000:00/0000:00:02.0
sys/bus/pci/drivers/i915/uevent
sys/class/drm/card0 -> ../../devices/pci0000:00/0000:00:02.0/drm/card0
sys/class/drm/renderD128 -> ../../devices/pci0000:00/0000:00:02.0/drm/renderD128
sys/class/drm/version
sys/dev/char/226:0 -> ../../devices/pci0000:00/0000:00:02.0/drm/card0
sys/dev/char/226:128 -> ../../devices/pci0000:00/0000:00:02.0/drm/renderD128
sys/module/i915/parameters/enable_guc
""".split("\n")[1:-1]
PCI_FILES = {"boot_vga", "class", "config", "device", "enable", "irq", "local_cpulist", "numa_node", "resource", "revision",
             "subsystem_device", "subsystem_vendor", "uevent", "vendor", "driver", "subsystem", "drm"}  # fmt: skip

CARD_FILES = {"dev", "device", "error", "subsystem", "uevent", *(f"gt_{name}_freq_mhz" for name in (
    "act", "boost", "cur", "max", "min", "RP0", "RP1", "RPn"))}  # fmt: skip


def test_all_that_programs_look_for_is_there(tree: Path) -> None:
    """Where Linux has it; other classes of devices are the host's."""
    found = [path for path in tree.rglob("*") if path.is_symlink() or path.is_file()]
    shown = [f"{path.relative_to(tree)}" + (f" -> {path.readlink()}" if path.is_symlink() else "") for path in found
             if not path.is_relative_to(tree / PCI) and not (path.is_symlink() and path.readlink().is_absolute())]  # fmt: skip
    assert sorted(shown) == TREE and {path.name for path in (tree / PCI).iterdir()} == PCI_FILES
    assert {path.name for path in (tree / PCI / "drm/card0").iterdir()} == CARD_FILES
    assert {path.name for path in (tree / PCI / "drm/renderD128").iterdir()} == {"dev", "device", "subsystem", "uevent"}
    for node, minor in (("card0", 0), ("renderD128", 128)):
        drm = tree / PCI / "drm" / node
        assert (drm / "dev").read_text() == f"226:{minor}\n"
        assert (drm / "uevent").read_text() == f"MAJOR=226\nMINOR={minor}\nDEVNAME=dri/{node}\nDEVTYPE=drm_minor\n"
        assert (drm / "device").resolve() == tree / PCI and (drm / "subsystem").resolve() == tree / "sys/class/drm"


def class_links(tree: Path) -> dict[str, str]:
    return {path.name: str(path.readlink()) for path in (tree / "sys/class").iterdir() if path.is_symlink()}


@pytest.mark.parametrize("classes, linked", [(["block", "drm", "net"], ["block", "net"]), (["drm"], []), ([], []), (None, [])])
def test_other_classes_of_devices_are_the_hosts(classes: list[str] | None, linked: list[str], tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Those of graphics are the tree's own; a host without /sys (None) has none."""
    names, is_folder = os.listdir, os.path.isdir

    def listed(path: str | Path) -> list[str]:
        if str(path) != "/sys/class":
            return names(path)
        if classes is None:
            raise FileNotFoundError(path)
        return classes

    monkeypatch.setattr(os, "listdir", listed)
    monkeypatch.setattr(os.path, "isdir", lambda path: classes is not None if str(path) == "/sys/class" else is_folder(path))
    build(tmp_path, device("kbl"))
    monkeypatch.undo()
    assert class_links(tmp_path) == {name: f"/sys/class/{name}" for name in linked}


def test_what_the_files_say(tree: Path) -> None:
    """In the kernel's words: hexadecimal numbers with as many digits as they have there, and a line's end."""
    apart = {"config", "resource"}
    found = {path.name: path.read_text("ascii") for path in (tree / PCI).iterdir() if path.is_file() and path.name not in apart}
    assert found.pop("uevent").splitlines() == [
        "DRIVER=i915", "PCI_CLASS=30000", "PCI_ID=8086:5916", "PCI_SUBSYS_ID=8086:2212", "PCI_SLOT_NAME=0000:00:02.0",
        "MODALIAS=pci:v00008086d00005916sv00008086sd00002212bc03sc00i00"]  # fmt: skip
    assert found == {"vendor": "0x8086\n", "device": "0x5916\n", "revision": "0x02\n", "subsystem_vendor": "0x8086\n",
                     "subsystem_device": "0x2212\n", "class": "0x030000\n", "irq": "127\n", "enable": "1\n", "boot_vga": "1\n",
                     "numa_node": "-1\n", "local_cpulist": "0\n"}  # fmt: skip
    resources = [[int(number, 16) for number in line.split()] for line in (tree / PCI / "resource").read_text("ascii").splitlines()]
    assert [last - first + 1 for first, last, _ in resources if last] == [16 << 20, 256 << 20, 64, 128 << 10]
    texts = {"sys/class/drm/version": "drm 1.1.0 20060810\n", "sys/module/i915/parameters/enable_guc": "0\n",
             f"{PCI}/drm/card0/error": "No error state collected\n", "sys/bus/pci/drivers/i915/uevent": ""}  # fmt: skip
    assert {path: (tree / path).read_text("ascii") for path in texts} == texts
    for minor in (0, 128):
        assert (tree / f"run/udev/data/c226:{minor}").read_text("ascii") == "E:ID_PATH=pci-0000:00:02.0\nE:ID_SEAT=seat0\nG:seat\n"
