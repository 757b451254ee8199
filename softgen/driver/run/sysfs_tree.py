"""The files that programs are shown for /dev/dri and the GPU's part of /sys: a directory tree that the shim redirects to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from softgen.driver.uapi.kernel_tables import kernel

if TYPE_CHECKING:
    from softgen.bits.generation import Device

PCI = "sys/devices/pci0000:00/0000:00:02.0"
NODES = {"card0": 0, "renderD128": 128}
INPUTS = {"event0": 64, "event1": 65}
INPUT = "sys/devices/virtual/input"
INPUT_KINDS = {"event0": "E:ID_INPUT=1\nE:ID_INPUT_KEY=1\nE:ID_INPUT_KEYBOARD=1\n", "event1": "E:ID_INPUT=1\nE:ID_INPUT_MOUSE=1\n"}
FREQUENCIES = {"act": 350, "boost": 1150, "cur": 350, "max": 1150, "min": 350, "RP0": 1150, "RP1": 350, "RPn": 350}
RESOURCES = """\
0x00000000f6000000 0x00000000f6ffffff 0x0000000000140204
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x00000000e0000000 0x00000000efffffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x000000000000f000 0x000000000000f03f 0x0000000000040101
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x00000000000c0000 0x00000000000dffff 0x0000000000000212
"""


def build(folder: Path, device: Device, inputs: bool = False) -> None:
    """Write the tree for a GPU, and with input devices: then they are the only ones of the machine."""
    _device(folder, device)
    for node, minor in NODES.items():
        _node(folder, node, minor)
    for name, value in FREQUENCIES.items():
        _file(folder, f"{PCI}/drm/card0/gt_{name}_freq_mhz", f"{value}\n")
    _file(folder, f"{PCI}/drm/card0/error", "No error state collected\n")
    for at, (node, minor) in enumerate(INPUTS.items() if inputs else ()):
        _input(folder, node, minor, f"input{at}")
    _file(folder, "sys/class/drm/version", "drm 1.1.0 20060810\n")
    _file(folder, "sys/module/i915/parameters/enable_guc", "0\n")
    own = os.listdir(folder / "sys/class")
    for name in sorted(os.listdir("/sys/class")) if os.path.isdir("/sys/class") else ():
        if name not in own:
            os.symlink(f"/sys/class/{name}", f"{folder}/sys/class/{name}")
    _link(folder, "dev/dri/by-path/pci-0000:00:02.0-card", "../card0")
    _link(folder, "dev/dri/by-path/pci-0000:00:02.0-render", "../renderD128")


def _device(folder: Path, device: Device) -> None:
    revision, pci_id = kernel(device.name).revision, device.pci_id
    texts = {
        "vendor": "0x8086", "device": f"{pci_id:#06x}", "revision": f"{revision:#04x}", "subsystem_vendor": "0x8086",
        "subsystem_device": "0x2212", "class": "0x030000", "irq": "127", "enable": "1", "boot_vga": "1", "numa_node": "-1",
        "local_cpulist": "0",
        "uevent": f"DRIVER=i915\nPCI_CLASS=30000\nPCI_ID=8086:{pci_id:04X}\nPCI_SUBSYS_ID=8086:2212\nPCI_SLOT_NAME=0000:00:02.0\n"
                  f"MODALIAS=pci:v00008086d0000{pci_id:04X}sv00008086sd00002212bc03sc00i00",
    }  # fmt: skip
    for name, text in texts.items():
        _file(folder, f"{PCI}/{name}", f"{text}\n")
    _file(folder, f"{PCI}/resource", RESOURCES)
    config = bytearray(64)
    config[:12] = (0x8086).to_bytes(2, "little") + pci_id.to_bytes(2, "little") + bytes([7, 4, 0x90, 0, revision, 0, 0, 3])
    config[0x2C:0x30] = bytes([0x86, 0x80, 0x12, 0x22])
    (folder / PCI / "config").write_bytes(bytes(config))
    _link(folder, f"{PCI}/subsystem", "../../../bus/pci")
    _link(folder, f"{PCI}/driver", "../../../bus/pci/drivers/i915")
    _file(folder, "sys/bus/pci/drivers/i915/uevent", "")
    _link(folder, "sys/bus/pci/devices/0000:00:02.0", "../../../devices/pci0000:00/0000:00:02.0")


def _node(folder: Path, node: str, minor: int) -> None:
    _file(folder, f"dev/dri/{node}", "")
    _file(folder, f"{PCI}/drm/{node}/dev", f"226:{minor}\n")
    _file(folder, f"{PCI}/drm/{node}/uevent", f"MAJOR=226\nMINOR={minor}\nDEVNAME=dri/{node}\nDEVTYPE=drm_minor\n")
    _link(folder, f"{PCI}/drm/{node}/device", "../../../0000:00:02.0")
    _link(folder, f"{PCI}/drm/{node}/subsystem", "../../../../../class/drm")
    _link(folder, f"sys/class/drm/{node}", f"../../devices/pci0000:00/0000:00:02.0/drm/{node}")
    _link(folder, f"sys/dev/char/226:{minor}", f"../../devices/pci0000:00/0000:00:02.0/drm/{node}")
    _file(folder, f"run/udev/data/c226:{minor}", "E:ID_PATH=pci-0000:00:02.0\nE:ID_SEAT=seat0\nG:seat\n")


def _input(folder: Path, node: str, minor: int, parent: str) -> None:
    """An input device as udev shows it to libinput."""
    _file(folder, f"dev/input/{node}", "")
    _file(folder, f"{INPUT}/{parent}/name", f"softgen {'keyboard' if node == 'event0' else 'pointer'}\n")
    _file(folder, f"{INPUT}/{parent}/uevent", f'NAME="softgen {parent}"\n')
    _link(folder, f"{INPUT}/{parent}/subsystem", "../../../../class/input")
    _file(folder, f"{INPUT}/{parent}/{node}/dev", f"13:{minor}\n")
    _file(folder, f"{INPUT}/{parent}/{node}/uevent", f"MAJOR=13\nMINOR={minor}\nDEVNAME=input/{node}\n")
    _link(folder, f"{INPUT}/{parent}/{node}/device", f"../../{parent}")
    _link(folder, f"{INPUT}/{parent}/{node}/subsystem", "../../../../../class/input")
    _link(folder, f"sys/class/input/{parent}", f"../../devices/virtual/input/{parent}")
    _link(folder, f"sys/class/input/{node}", f"../../devices/virtual/input/{parent}/{node}")
    _link(folder, f"sys/dev/char/13:{minor}", f"../../devices/virtual/input/{parent}/{node}")
    _file(folder, f"run/udev/data/c13:{minor}", f"I:1\n{INPUT_KINDS[node]}E:ID_SEAT=seat0\nG:seat\n")


def _file(folder: Path, path: str, text: str) -> None:
    with open(_place(folder, path), "w", encoding="utf-8") as file:
        file.write(text)


def _link(folder: Path, path: str, target: str) -> None:
    os.symlink(target, _place(folder, path))


def _place(folder: Path, path: str) -> str:
    """Where something of the tree is made; the folders around it are made now."""
    around, _, name = f"{folder}/{path}".rpartition("/")
    os.makedirs(around, exist_ok=True)
    return f"{around}/{name}"
