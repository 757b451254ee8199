"""Rectangles of one colour: filled from one thread, with the bytes and statistics that threads of all pixels leave."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.errors import GpuFault
from softgen.threads.dispatcher import EngineDispatcher
from softgen.three_d.pixels import pixel_shader
from tests.three_d.own_draw import TARGET, TARGET_WRITE, TRIANGLES, Drawn, Fields, OwnDraw, rectangle, vertex

REPLICATED = 1 << 8
COLOR = (0.3, 0.7, 0.1, 0.9)
WIDE = {"8_pixel_dispatch_enable": 0, "16_pixel_dispatch_enable": 1}
X_MAJOR, Y_MAJOR = 2, 3
LEFT = ("memory", "targets", "counts", "remarks")


def shader(color: str = "mov(4) g114<1>UD g4.3<8,2,4>UD { align1 WE_all 1N };", write: int = REPLICATED) -> str:
    """A colour out of the object's attribute, as Mesa's clears have it, to all pixels."""
    descriptor = TARGET_WRITE | write | 1 << 25 | 1 << 31
    return f"{color}\nsendc(16) null<1>UW g114<0,1,0>F {descriptor:#010x} 5 MsgDesc: mlen 1 {{ align1 1H EOT }};"


def cleared(vertices: list[bytes], gpu: str = "kbl", ps: str = "", size: tuple[int, int] = (64, 32), format: str = "R8G8B8A8_UNORM",
            pitch: int = 0, **state: Fields) -> OwnDraw:  # fmt: skip
    return OwnDraw(gpu, vertices, {"3DSTATE_PS": WIDE, **state}, ps=ps or shader(), size=size, format=format, pitch=pitch)


def box(left: int, top: int, right: int, bottom: int, color: Any = COLOR, **more: Any) -> list[bytes]:
    return rectangle(left, top, right, bottom, attribute=color, **more)


def threads(drawn: Drawn) -> int:
    return int(drawn.left()["work"][0])


def plain(monkeypatch: pytest.MonkeyPatch, draw: OwnDraw, engine: str = "t0") -> Drawn:
    """Every pixel by a thread."""
    with monkeypatch.context() as here:
        here.setattr(pixel_shader, "writes_one_color", lambda *given: False)
        return draw.run(engine)


def same(found: Drawn, wanted: Drawn) -> bool:
    ours, theirs = found.left(), wanted.left()
    return all(ours[name] == theirs[name] for name in LEFT)


@pytest.mark.covering(1)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("engine", ["t0", "t1", "auto"])
@pytest.mark.parametrize("gpu", ["bdw", "skl", "kbl", "icl"])
@pytest.mark.parametrize(("tiling", "format"), [
    (0, "R8G8B8A8_UNORM"), (X_MAJOR, "B8G8R8X8_UNORM"), (Y_MAJOR, "R8G8B8A8_UNORM_SRGB"), (0, "R32G32B32A32_FLOAT"), (X_MAJOR, "R8_UNORM"),
    (Y_MAJOR, "R16G16B16A16_FLOAT"), (Y_MAJOR, "B5G6R5_UNORM"),
])  # fmt: skip
def test_a_filled_rectangle_has_the_bytes_of_its_threads(monkeypatch: pytest.MonkeyPatch, gpu: str, tiling: int, format: str, engine: str,
                                                         count: int) -> None:  # fmt: skip
    """Odd edges, and a part outside of the target."""
    draw = cleared(box(3, 5, 99, 31), gpu, format=format, pitch=1024, RENDER_SURFACE_STATE={"tile_mode": tiling})
    found = draw.run(engine, count)
    assert same(found, plain(monkeypatch, draw, engine)) and any(found.left()["memory"][TARGET])
    assert threads(found) == 1 and found.register("PS_INVOCATION_COUNT") == 61 * 26 * (4 if gpu == "bdw" else 1)


def test_the_reference_shades_all_of_it() -> None:
    draw = cleared(box(0, 0, 48, 32))
    assert not EngineDispatcher("reference").fills
    assert same(reference := draw.run("reference"), draw.run("t0")) and threads(reference) == 12 * 8


BLENDED = {"color_buffer_blend_enable": 1, "source_blend_factor": 3, "destination_blend_factor": 0x13}
NOT_FILLED: dict[str, dict[str, Any]] = {
    "blending": {"BLEND_STATE": {"render_target": [BLENDED]}},
    "a logic operation": {"BLEND_STATE": {"render_target": [{"logic_op_enable": 1, "logic_op_function": 6}]}},
    "dithering": {"BLEND_STATE": {"color_dither_enable": 1, "render_target": [{}]}, "format": "B5G6R5_UNORM"},
    "stipple": {"3DSTATE_WM": {"statistics_enable": 1, "polygon_stipple_enable": 1},
                "3DSTATE_POLY_STIPPLE_PATTERN": {"row": [{"pattern": 0xAAAAAAAA}] * 32}},
    "one channel's colour": {"ps": shader("mov(4) g114<1>UD g1.0<4,4,1>UD { align1 WE_all 1N };")},
    "a register that nothing was moved to": {"ps": shader("mov(4) g113<1>UD g4.3<8,2,4>UD { align1 WE_all 1N };")},
    "channels that may be off": {"ps": shader("mov(4) g114<1>UD g4.3<8,2,4>UD { align1 1N };")},
}  # fmt: skip


@pytest.mark.parametrize("why", NOT_FILLED)
def test_what_more_decides_about_is_not_filled(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    draw = cleared(box(0, 0, 64, 32), **NOT_FILLED[why])
    found = draw.run()
    assert same(found, plain(monkeypatch, draw)) and threads(found) == 16 * 8


def test_channels_that_are_not_written_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    disabled = {"render_target": [{"write_disable_red": 1, "write_disable_alpha": 1}]}
    draw = cleared(box(1, 1, 63, 31), BLEND_STATE=disabled)
    draw.patch = {TARGET: bytes([0xA5]) * 0x2000}
    found = draw.run()
    assert same(found, plain(monkeypatch, draw)) and threads(found) == 1
    assert found.texels("u1")[8, 8].tolist() == [0xA5, 178, 26, 0xA5]


@pytest.mark.parametrize(("vertices", "topology", "count"), [
    ([*box(0, 0, 64, 16), *box(16, 8, 64, 32, (1, 0, 0, 1))], 15, 16 * 4 + 12 * 6),  # two colours, one above the other
    ([*box(0, 0, 64, 16), *box(16, 8, 64, 32)], 15, 2),
    ([vertex(0, 0, attribute=COLOR), vertex(64, 0, attribute=COLOR), vertex(0, 32, attribute=COLOR)], TRIANGLES, 80),
    (box(0, 0, 31, 32), 15, 8 * 8),  # too few pixels
])  # fmt: skip
def test_rectangles_of_one_colour_are_filled_and_no_other_objects(monkeypatch: pytest.MonkeyPatch, vertices: list[bytes], topology: int,
                                                                  count: int) -> None:  # fmt: skip
    draw = cleared(vertices, **{"3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": topology}, "3DSTATE_RASTER": {"cull_mode": 1}})
    found = draw.run()
    assert same(found, plain(monkeypatch, draw))
    assert threads(found) == count if topology == 15 else count - 16 <= threads(found) <= count


@pytest.mark.parametrize(("layer", "filled"), [(1, 2), (5, 1)])
def test_a_slice_is_filled(monkeypatch: pytest.MonkeyPatch, layer: int, filled: int) -> None:
    """A slice that the target does not have counts as its first."""
    surface = {"surface_array": 1, "depth": 3, "minimum_array_element": 1, "render_target_view_extent": 1, "surface_qpitch": 8}
    draw = cleared(box(0, 0, 64, 32, layer=layer), RENDER_SURFACE_STATE=surface, **{"3DSTATE_CLIP": {"perspective_divide_disable": 1}})
    found = draw.run()
    assert same(found, plain(monkeypatch, draw)) and threads(found) == 1
    memory = found.left()["memory"][TARGET]
    assert [index for index in range(4) if any(memory[index * 0x2000 : (index + 1) * 0x2000])] == [filled]


def test_a_target_that_ends_in_memory_names_its_writes() -> None:
    draw = cleared(box(0, 0, 64, 4000), size=(64, 4000))
    with pytest.raises(GpuFault, match="render target write"):
        draw.run()


def test_shaders_that_are_looked_at_end() -> None:
    """A program of many moves is no clear."""
    many = "\n".join(["mov(4) g114<1>UD g4.3<8,2,4>UD { align1 WE_all 1N };"] * 9)
    assert threads(cleared(box(0, 0, 64, 32), ps=shader(many)).run()) == 16 * 8
