"""Gen4.5 against the map of its volume: every command, state block, thread payload, message and register named there has a page.

The map (`behaviours/G45.md`) lists them with their header words, sizes and lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from softgen.bits.catalogue import catalogue, find_command
from tests.conftest import SHARED, needs_shared

GEN = 4.5
MAP = SHARED / "behaviours" / "G45.md"
CALLED = {"3DSTATE_AA_LINE_PARAMS": "3DSTATE_AA_LINE_PARAMETERS", "INTERFACE_DESCRIPTOR": "INTERFACE_DESCRIPTOR_DATA",
          "Vertex Header": "VERTEX_HEADER", "PUE": "SETUP_COEFFICIENTS"}  # fmt: skip
SEVERAL = ("DCT / residue coefficient unit", "BINDING_TABLE_STATE, SURFACE_STATE, SAMPLER_STATE")  # two pages; other volumes
PAYLOADS = {
    "VS": ("VS_THREAD_PAYLOAD",), "GS": ("GS_THREAD_PAYLOAD",), "CLIP": ("CLIP_THREAD_PAYLOAD",),
    "SF": ("SF_THREAD_PAYLOAD", "SF_THREAD_OUTPUT"), "PS normal": ("PS_THREAD_PAYLOAD",),
    "PS optional (compacted)": ("PS_THREAD_DEPTH", "PS_THREAD_ALPHA_STENCIL", "PS_THREAD_UPPER_SUBSPANS"),
    "PS URB part": ("SETUP_COEFFICIENTS",), "PS contiguous 32/64 (CTG)": ("PS_CONTIGUOUS_THREAD_PAYLOAD",),
    "Media root, Generic": ("MEDIA_ROOT_THREAD_HEADER",),
    "Media root, IS": ("MEDIA_ROOT_THREAD_HEADER", "MEDIA_OBJECT_IS_INLINE_DATA", "MEDIA_OBJECT_IS_COEFFICIENT", "MEDIA_BLOCK"),
    "Media root, VLD": ("MEDIA_VLD_MACROBLOCK", "MEDIA_BLOCK"),
    "Media root, AVC-IT": ("MEDIA_AVC_MACROBLOCK", "MEDIA_AVC_MOTION_VECTOR", "MEDIA_AVC_WEIGHT_OFFSET", "MEDIA_AVC_COEFFICIENT"),
    "Media root, AVC-MC": ("MEDIA_AVC_MACROBLOCK",), "Media root, VC1-IT": ("MEDIA_OBJECT_EX_VC1_IT_INLINE_DATA", "MEDIA_BLOCK"),
    "Media child": ("MEDIA_CHILD_THREAD_HEADER",),
}  # fmt: skip
REGISTERS = {"TIMESTAMP", "VFSKPD", "ECOSKPD", "REGISTER_2124", "CACHE_MODE_0", "IMR", "IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT",
             "VS_INVOCATION_COUNT", "GS_INVOCATION_COUNT", "GS_PRIMITIVES_COUNT", "CL_INVOCATION_COUNT", "CL_PRIMITIVES_COUNT",
             "PS_INVOCATION_COUNT", "PS_DEPTH_COUNT", "SO_NUM_PRIMS_WRITTEN", "SO_PRIM_STORAGE_NEEDED"}  # fmt: skip

pytestmark = needs_shared("behaviours/G45.md")


def table(section: str) -> Iterator[list[str]]:
    """The rows of the table under a heading, without its head."""
    text = MAP.read_text("utf-8").partition(f"### {section}")[2].partition("\n### ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    yield from ([cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:])


def test_every_command_is_found_by_its_header_word() -> None:
    count = 0
    for name, word, length, *_ in table("2.1"):
        plain = re.sub(r" \(.*", "", name)
        high = int(re.findall(r"([0-9A-F]{4})h", word)[-1], 16)  # the later device's, where there are two
        found = find_command(high << 16, GEN, "render")
        assert found and found.name == CALLED.get(plain, plain), name
        dwords = [int(digits) for digits in re.findall(r"\b(\d+) \(", length)]
        assert not dwords or found.dwords in dwords or found.variable, (name, found.dwords, length)
        count += 1
    assert count == 20


def test_every_state_block_has_its_size() -> None:
    count = 0
    for name, size, *_ in table("2.2"):
        if name in SEVERAL:
            continue
        plain = re.sub(r" \(.*", "", name)
        found = catalogue().get(CALLED.get(plain, plain), GEN)
        stated = re.match(r"(\d+) DW", size)
        assert found and (not stated or found.dwords == int(stated[1])), name
        count += 1
    assert count >= 15


def test_every_payload_has_a_page() -> None:
    assert {row[0] for row in table("2.3")} == set(PAYLOADS)
    assert all(catalogue().get(name, GEN) for names in PAYLOADS.values() for name in names)


def test_messages_and_registers_have_pages() -> None:
    assert catalogue().get("MSD_THREAD_SPAWNER", GEN) and catalogue().get("THREAD_SPAWN_PAYLOAD", GEN)
    assert [name for name in REGISTERS if not catalogue().get(name, GEN)] == []
    named = {row[0].split(" ")[0].rstrip(",") for row in table("2.6") if re.match(r"[A-Z_]+_", row[0])}
    assert named <= REGISTERS
