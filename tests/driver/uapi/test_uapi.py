"""Constants and ioctls of the driver interface against the kernel's: as kernel_values.txt has them, and that against the kernel's own
headers where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from softgen.driver.uapi import drm, i915_drm, uapi

HEADERS = ("drm/drm.h", "drm/drm_mode.h", "drm/drm_fourcc.h", "drm/i915_drm.h", "linux/dma-buf.h", "linux/sync_file.h")
FOLDERS = [folder for folder in map(Path, ("/usr/include", "/usr/x86_64-linux-gnu/include", "/usr/aarch64-linux-gnu/include"))
           if all((folder / header).exists() for header in HEADERS)]  # fmt: skip
needs_headers = pytest.mark.skipif(not FOLDERS or not shutil.which("gcc"), reason="the kernel's headers, or gcc, are absent")
# Numbers of ioctls without their type and size: the kernel's headers have whole ones under these names.
NUMBERS = {"DMA_BUF_IOCTL_SYNC", "DMA_BUF_IOCTL_EXPORT_SYNC_FILE", "DMA_BUF_IOCTL_IMPORT_SYNC_FILE", "SYNC_IOC_MERGE", "SYNC_IOC_FILE_INFO"}

# Arguments that later kernels have more fields of, with their first sizes.
GROWN = {"DRM_IOCTL_SYNCOBJ_WAIT": 32, "DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT": 40, "DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD": 16,
         "DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE": 16}  # fmt: skip
HALVES = {"I915_ENGINE_CLASS_INVALID", "I915_ENGINE_CLASS_INVALID_NONE"}  # fields of 16 bits
# What the public headers do not have, or have otherwise.
OWN = {"DRM_MODE_CONNECTED": 1, "DRM_MODE_SUBPIXEL_UNKNOWN": 0, "DRM_PLANE_TYPE_OVERLAY": 0, "DRM_PLANE_TYPE_PRIMARY": 1,
       "DRM_PLANE_TYPE_CURSOR": 2, "I915_EXEC_UNKNOWN_FLAGS": -1 << 22,
       "EXEC_OBJECT_UNKNOWN_FLAGS": -1 << 8, **{f"sizeof({name})": size for name, size in GROWN.items()}}  # fmt: skip
STRUCTURES = {
    "drm_i915_gem_exec_object2": uapi.EXEC_OBJECT, "drm_i915_gem_relocation_entry": uapi.RELOCATION,
    "drm_i915_gem_exec_fence": uapi.EXEC_FENCE, "drm_i915_gem_context_param": uapi.CONTEXT_PARAM, "i915_user_extension": uapi.EXTENSION,
    "i915_engine_class_instance": uapi.ENGINE, "drm_i915_gem_context_param_sseu": uapi.SSEU, "drm_i915_query_item": uapi.QUERY_ITEM,
    "drm_i915_query_topology_info": uapi.TOPOLOGY, "drm_i915_engine_info": uapi.ENGINE_INFO,
    "drm_i915_query_engine_info": uapi.ENGINES_HEAD, "drm_i915_memory_region_info": uapi.REGION, "sync_merge_data": uapi.SYNC_MERGE,
    "sync_file_info": uapi.SYNC_INFO, "sync_fence_info": uapi.SYNC_FENCE, "dma_buf_export_sync_file": uapi.DMABUF_SYNC_FILE,
    "drm_mode_modeinfo": uapi.MODE, "drm_mode_property_enum": uapi.PROPERTY_ENUM, "drm_format_modifier_blob": uapi.FORMATS_HEAD,
    "drm_format_modifier": uapi.FORMAT_MODIFIER, "drm_event_vblank": uapi.VBLANK_EVENT, "drm_color_lut": uapi.COLOR_LUT,
    "drm_event_crtc_sequence": uapi.SEQUENCE_EVENT,
}  # fmt: skip


def constants() -> dict[str, int]:
    """Ours, by name."""
    ours = {name: value for module in (drm, i915_drm) for name, value in vars(module).items() if isinstance(value, int)}
    return {name: value & 0xFFFF if name in HALVES else value for name, value in ours.items()}


def ioctls() -> dict[str, int]:
    """Numbers of ioctls, ours, by name."""
    return {name: number for number, name in (uapi.NAMES | uapi.DISPLAY_NAMES).items()}


def sizes() -> dict[str, int]:
    """Bytes of arguments and other structures, ours, by name."""
    arguments = {name: layout.size for name, layout in uapi.ARGUMENTS.items() if layout.size}
    return {f"sizeof({name})": size for name, size in (arguments | {name: layout.size for name, layout in STRUCTURES.items()}).items()}


def kernel_values() -> dict[str, int]:
    """What the kernel's headers say."""
    lines = Path(__file__).with_name("kernel_values.txt").read_text("ascii").splitlines()
    return {name: int(value, 0) for name, value in (line.split() for line in lines if not line.startswith("#"))}


def expression(name: str) -> str:
    """A value of the table in C, in the words of the kernel's headers."""
    if name.startswith("sizeof("):
        inner = name[len("sizeof(") : -1]
        whole = f"{inner}_EXT" if inner == "DRM_IOCTL_I915_GEM_CONTEXT_CREATE" else inner
        return f"_IOC_SIZE({whole})" if inner.startswith("DRM_IOCTL_") else f"sizeof(struct {inner})"
    if name.startswith("DRM_IOCTL_") or name in NUMBERS:
        return f"_IOC_NR({name})"
    return f"(unsigned short)({name})" if name in HALVES else f"(unsigned)({name})"


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
    return {word for header in HEADERS for word in re.findall(r"\b[A-Za-z]\w+\b", (FOLDERS[0] / header).read_text())}


def test_constants_ioctls_and_sizes_are_the_kernels() -> None:
    assert {**constants(), **ioctls(), **sizes()} == kernel_values() | OWN


@needs_headers
def test_the_table_says_what_installed_headers_say(tmp_path: Path) -> None:
    """What they know of it: those of an older kernel lack some."""
    words, table = declared(), kernel_values()
    names = [name for name in table if re.sub(r"sizeof\((.*)\)", r"\1", name) in words]
    assert evaluated({name: expression(name) for name in names}, tmp_path) == {name: table[name] for name in names}
    assert len(names) > 200


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
