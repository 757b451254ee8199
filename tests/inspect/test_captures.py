"""Every capture and AUB file at hand decodes: no unknown command, no unexplained reserved bit, no broken road."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from softgen.bits import describe
from softgen.inspect.decode.decoding import Decoder
from softgen.inspect.decode.indirect_state import IndirectData, IndirectKernel, IndirectState
from softgen.streamer.parser import Command, Remark
from softgen.trace.file import open_trace
from tests.conftest import SHARED, needs_shared

CAPTURES = sorted(p for p in (SHARED / "traces").glob("*") if p.is_dir())
AUBS = sorted((SHARED / "aub").glob("*.aub"))
EXPLAINED = Path(__file__).parent / "explained_reserved.txt"
# Kernels were to write these batches, whole or in part, and did not: captured while nothing executed.
GPU_WRITTEN = {"ivb-i965-enc": 5, "hsw-i965-enc": 5}
DATA = Path(__file__).parents[1] / "data" / "drivers"
# Captures that come with the tests -> what each is there for: names met, names that must not be met, batches HuC was to write.
BUNDLED: dict[str, tuple[str, str, int]] = {
    "hsw-i965-decode-jpeg": ("MFD_JPEG_BSD_OBJECT MFX_JPEG_HUFF_TABLE_STATE MFX_IND_OBJ_BASE_ADDR_STATE", "", 0),
    "hsw-i965-deinterlace": ("VEB_DI_IECP VEBOX_DNDI_STATE", "VEBOX_IECP_STATE", 0),
    "hsw-vk-tessellation": ("3DSTATE_HS 3DSTATE_TE 3DSTATE_DS 3DSTATE_GS MI_MATH MI_PREDICATE SAMPLER_BORDER_COLOR_STATE", "", 0),
    "icl-gl-compute-indirect": ("3DSTATE_BINDING_TABLE_POOL_ALLOC INTERFACE_DESCRIPTOR_DATA RENDER_SURFACE_STATE GPGPU_WALKER", "", 0),
    "icl-iHD-decode-vp9": ("HCP_VP9_PIC_STATE HCP_VP9_SEGMENT_STATE HCP_BSD_OBJECT", "", 0),
    "icl-iHD-encode-hevc": ("VDENC_WALKER_STATE HCP_PAK_INSERT_OBJECT HEVC_VP9_RDOQ_STATE", "VDENC_IMG_STATE", 1),
    "icl-iHD-sharpen": ("SFC_STATE SFC_AVS_STATE SFC_IEF_STATE VEB_DI_IECP", "", 0),
    "icl-vk-transform-feedback": ("3DSTATE_STREAMOUT 3DSTATE_SO_DECL_LIST 3DSTATE_SO_BUFFER 3DSTATE_GS CLEAR_COLOR", "", 0),
    "ivb-i965-blit": ("XY_COLOR_BLT", "", 0),
    "kbl-i965-colour": ("VEBOX_STATE VEBOX_IECP_STATE", "VEBOX_DNDI_STATE VEBOX_GAMUT_STATE VEBOX_VERTEX_TABLE", 0),
    "kbl-i965-decode-vc1": ("MFD_VC1_LONG_PIC_STATE MFX_VC1_DIRECTMODE_STATE MFD_VC1_BSD_OBJECT", "", 0),
    "kbl-i965-sharpen": ("STATE_BASE_ADDRESS INTERFACE_DESCRIPTOR_DATA MEDIA_SURFACE_STATE", "", 0),
    "kbl-iHD-decode-hevc": ("HCP_PIC_STATE HCP_WEIGHTOFFSET_STATE HCP_BSD_OBJECT", "", 0),
    "kbl-iHD-encode-h264": ("HUC_STREAM_OBJECT VDENC_CONST_QPT_STATE VDENC_WALKER_STATE MFX_PAK_INSERT_OBJECT MI_ATOMIC", "", 2),
}


@cache
def explained() -> dict[tuple[str, str, str], str]:
    """(name, generation, bits) -> reason."""
    found = {}
    for line in EXPLAINED.read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text:
            m = re.match(r"(\S+)\s+(\S+)\s+(\d+:\d+)\s+(\S.*)$", text)
            assert m, f"cannot read {text!r}"
            found.update({(m[1], gen, m[3]): m[4] for gen in m[2].split(",")})
    return found


class Seen:
    """What a whole decode came to."""

    def __init__(self, path: Path) -> None:
        self.unknown: list[str] = []
        self.reserved: Counter[tuple[str, str, str]] = Counter()
        self.remarks: Counter[str] = Counter()
        self.problems: list[str] = []
        self.kinds: Counter[str] = Counter()
        self.names: Counter[str] = Counter()
        decoder = Decoder(open_trace(path))
        self.gen = f"{decoder.generation.number:g}"
        for _, items in decoder.work():
            for item in items:
                self.see(item.what)

    def see(self, what: object) -> None:
        self.kinds[type(what).__name__] += 1
        match what:
            case Command(layout=None) as c:
                self.unknown.append(f"{c.dwords[0]:#010x} at {c.address:#x}")
            case Command() as c:
                self.problems += [f"{c.name} at {c.address:#x}: {p}" for p in c.problems]
            case Remark() as r:
                self.remarks[r.kind] += 1
            case IndirectState() | IndirectKernel() | IndirectData() if what.problem:
                self.problems.append(f"{type(what).__name__} of the command at {what.by:#x}: {what.problem}")
            case _:
                pass
        layout = what.layout if isinstance(what, Command | IndirectState) else None
        if layout and isinstance(what, Command | IndirectState):
            self.names[layout.name] += 1
            sure = isinstance(what, Command) or what.certain and not what.problem
            for wrong in describe.reserved(layout, what.dwords) if sure else ():
                self.reserved[layout.name, self.gen, f"{wrong.high}:{wrong.low}"] += 1


@cache
def decoded(path: Path) -> Seen:
    return Seen(path)


@needs_shared("traces")
@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.name)
def test_captures_decode(path: Path) -> None:
    seen = decoded(path)
    assert not seen.unknown
    assert not seen.problems
    assert {k: n for k, n in seen.reserved.items() if k not in explained()} == {}
    assert dict(seen.remarks) == ({"gpu_written": GPU_WRITTEN[path.name]} if path.name in GPU_WRITTEN else {})


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_captures_decode(name: str) -> None:
    """Work of drivers that the captures above lack: each stage of the geometry pipeline, codecs both ways, filters, blits."""
    seen = decoded(DATA / name)
    met, unmet, written = BUNDLED[name]
    assert not seen.unknown and not seen.problems and not seen.reserved
    assert dict(seen.remarks) == ({"gpu_written": written} if written else {})
    assert set(met.split()) <= set(seen.names) and not set(unmet.split()) & set(seen.names)


@needs_shared("aub")
@pytest.mark.parametrize("path", AUBS, ids=lambda p: p.name)
def test_aub_files_decode(path: Path) -> None:
    seen = decoded(path)
    assert not seen.unknown and not seen.problems and not seen.remarks
    assert {k: n for k, n in seen.reserved.items() if k not in explained()} == {}
    assert seen.kinds["IndirectKernel"] >= 1 and seen.kinds["Command"] > 10


@needs_shared("traces")
def test_state_is_followed_on_every_gpu() -> None:
    """Kernels, binding tables, surfaces, samplers, viewports and vertex data are found in the triangle of each generation."""
    for path in CAPTURES:
        if path.name.endswith("gles-tri"):
            assert decoded(path).kinds["IndirectKernel"] >= 2, path.name
            assert decoded(path).kinds["IndirectState"] >= 20, path.name
            assert decoded(path).kinds["IndirectData"] >= 2, path.name


@needs_shared("traces")
def test_no_explanation_stands_in_vain() -> None:
    met = {key for path in (*CAPTURES, *AUBS) for key in decoded(path).reserved}
    assert sorted(set(explained()) - met) == []
