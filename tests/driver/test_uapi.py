"""Constants and ioctls of the driver interface against the kernel's own headers, where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from softgen.driver import drm, i915_drm, uapi

HEADERS = ("drm/drm.h", "drm/drm_mode.h", "drm/drm_fourcc.h", "drm/i915_drm.h", "linux/dma-buf.h", "linux/sync_file.h")
FOLDERS = [folder for folder in map(Path, ("/usr/include", "/usr/x86_64-linux-gnu/include", "/usr/aarch64-linux-gnu/include"))
           if all((folder / header).exists() for header in HEADERS)]  # fmt: skip
needs_headers = pytest.mark.skipif(not FOLDERS or not shutil.which("gcc"), reason="the kernel's headers, or gcc, are absent")
# Numbers of ioctls without their type and size: the kernel's headers have whole ones under these names.
NUMBERS = {"DMA_BUF_IOCTL_SYNC", "DMA_BUF_IOCTL_EXPORT_SYNC_FILE", "DMA_BUF_IOCTL_IMPORT_SYNC_FILE", "SYNC_IOC_MERGE", "SYNC_IOC_FILE_INFO"}

# Arguments that later kernels have more fields of.
GROWN = {"DRM_IOCTL_SYNCOBJ_WAIT", "DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT", "DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD", "DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE"}


def evaluated(expressions: dict[str, str], tmp_path: Path) -> dict[str, int]:
    """C expressions in the words of the kernel's headers, by name."""
    source, program = tmp_path / "values.c", tmp_path / "values"
    prints = "".join(f'printf("{name} %llu\\n", (unsigned long long)({text}));\n' for name, text in expressions.items())
    source.write_text("".join(f"#include <{header}>\n" for header in HEADERS) + f"#include <stdio.h>\nint main(void) {{ {prints} }}\n")
    subprocess.run(["gcc", "-w", f"-idirafter{FOLDERS[0]}", str(source), "-o", str(program)], check=True)
    shown = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in (line.split() for line in shown.splitlines())}


def declared() -> set[str]:
    """Names that the headers know."""
    return {word for header in HEADERS for word in re.findall(r"\b[A-Z][A-Z0-9_]+\b", (FOLDERS[0] / header).read_text())}


@needs_headers
def test_constants_have_the_kernels_values(tmp_path: Path) -> None:
    ours = {name: value for module in (drm, i915_drm) for name, value in vars(module).items() if isinstance(value, int)}
    known = {name: f"_IOC_NR({name})" if name in NUMBERS else name for name in sorted(set(ours) & declared())}
    found = evaluated(known, tmp_path)
    mask = {name: 0xFFFF if name.startswith("I915_ENGINE_CLASS_INVALID") else 0xFFFFFFFF for name in found}  # fields of 16 bits
    assert {name: ours[name] & mask[name] for name in found} == {name: value & mask[name] for name, value in found.items()}
    assert len(found) > 100


@needs_headers
def test_ioctls_have_the_kernels_numbers_and_sizes(tmp_path: Path) -> None:
    names, words = {name: number for number, name in (uapi.NAMES | uapi.DISPLAY_NAMES).items()}, declared()
    names = {name: number for name, number in names.items() if name in words}
    assert evaluated({name: f"_IOC_NR({name})" for name in names}, tmp_path) == names
    ours = {name: layout.size for name, layout in uapi.ARGUMENTS.items() if name in names and layout.size and name not in GROWN}
    whole = {name: f"{name}_EXT" if name == "DRM_IOCTL_I915_GEM_CONTEXT_CREATE" else name for name in ours}
    assert evaluated({name: f"_IOC_SIZE({text})" for name, text in whole.items()}, tmp_path) == ours
    assert len(ours) > 60


def test_ioctls_are_named_in_reports() -> None:
    known = {0x46: "DRM_IOCTL_I915_GETPARAM", 0xA0: "DRM_IOCTL_MODE_GETRESOURCES", 0xFF: "ioctl 0xff", **uapi.DISPLAY_NAMES}
    assert {number: uapi.name_of(number) for number in known} == known


@pytest.mark.parametrize("data, values", [
    (b"\1\0\0\0\2\0\3\0\0\0\0\0\0\0", (1, 2, 3)), (b"\1\0\0\0\2\0\3\0\0\0\0\0\0\0more", (1, 2, 3)),
    (b"\1\0\0\0\2\0", (1, 2, 0)), (b"\1", (1, 0, 0)), (b"", (0, 0, 0)),
])  # fmt: skip
def test_an_older_program_knows_fewer_fields_and_a_newer_one_more(data: bytes, values: tuple[int, ...]) -> None:
    layout = uapi.Structure("first:I second:H third:q")
    assert tuple(layout.unpack_row(data)) == tuple(vars(layout.unpack(data)).values()) == values
    assert layout.unpack_row(data)._fields == ("first", "second", "third") and layout.size == 14
    assert layout.offsets == {"first": 0, "second": 4, "third": 6} and layout.sizes == {"first": 4, "second": 2, "third": 8}
    whole = layout.pack(layout.unpack(data))
    assert whole == data[:14].ljust(14, b"\0") and [tuple(row) for row in layout.rows(whole * 2)] == [values] * 2
    assert [vars(row) for row in layout.unpack_all(whole * 2)] == [vars(layout.unpack(data))] * 2
