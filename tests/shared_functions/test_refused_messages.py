"""Messages that are refused, each with its reason: reserved values, surfaces a message cannot use, what is not simulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, SoftgenError, Unsupported
from softgen.shared_functions.pixel_backend import BackendState, depth
from softgen.shared_functions.pixel_backend.state import DepthState
from tests.shared_functions.rendering import Target
from tests.shared_functions.sending import SLM, STATELESS, Bench, header, lanes
from tests.shared_functions.test_pixel_backend_depth import target_of
from tests.shared_functions.test_typed import picture, regs
from tests.shared_functions.texture import Texture

BOUND = {"binding_table_index": 0}
COLORS = np.zeros((16, 4), np.float32)


def refused(bench: Bench, error: type[SoftgenError], why: str, name: str, *parts: Any, **fields: Any) -> None:
    """The message is refused, and memory is as it was."""
    before = bench.snapshot()
    with pytest.raises(error, match=why):
        bench.send(name, *parts, **fields)
    assert all((held == was).all() for held, was in zip(bench.snapshot(), before, strict=True)) and not bench.compiled


# -- reserved values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["oword_block_read", "oword_block_write"])
def test_a_reserved_count_is_refused(name: str) -> None:
    data = [np.zeros(64, np.uint8)] if name.endswith("write") else []
    refused(Bench(), DecodeError, f"{name}: data_blocks has the value 7, which is reserved", name, header(), *data, answer=2 - len(data),
            data_blocks=7, **BOUND)  # fmt: skip


@pytest.mark.parametrize("gen", [7, 7.5, 8, 9])
def test_bytes_of_a_lane_are_one_two_or_four(gen: float) -> None:
    bench = Bench(gen=gen)
    refused(bench, DecodeError, "byte_scattered_read has 1, 2 or 4 bytes a lane", "byte_scattered_read", lanes(8, 4), answer=1,
            simd_mode="simd8", data_size=3, **BOUND)  # fmt: skip
    refused(bench, DecodeError, "byte_scattered_write has 1, 2 or 4 bytes a lane", "byte_scattered_write", lanes(8, 4), lanes(8, 1),
            simd_mode="simd8", data_size=3, **BOUND)  # fmt: skip


# -- surfaces ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [250, 251, 252])
def test_surfaces_of_haswells_coherence_are_not_simulated(index: int) -> None:
    why = f"untyped_surface_read to hsw_coherence_{index} surfaces: not yet simulated"
    refused(Bench(gen=7.5), Unsupported, why, "untyped_surface_read", lanes(8, 4), answer=1, simd_mode="simd8", channel_mask="r",
            binding_table_index=index)  # fmt: skip


@pytest.mark.parametrize(("index", "name"), [(SLM, "slm"), (STATELESS, "stateless"), (253, "stateless_non_coherent")])
def test_memory_without_a_surface_has_no_texels(index: int, name: str) -> None:
    fields = {"slot_group": "low_8", "channel_mask": "r", "binding_table_index": index}
    refused(picture(), Unsupported, f"typed_surface_read to {name}: no surface with a format", "typed_surface_read", regs(0, 0), answer=1,
            **fields)  # fmt: skip
    refused(picture(), Unsupported, f"typed_surface_write to {name}: no surface with a format", "typed_surface_write", regs(0, 0), regs(1),
            **fields)  # fmt: skip


@pytest.mark.parametrize("format", ["R8_UINT", "R16_UINT", "R32G32_UINT"])
def test_typed_atomics_are_of_dwords(format: str) -> None:
    refused(picture(format=format), Unsupported, f"typed atomics on texels of format {format}", "typed_atomic", regs(0, 0), regs(1),
            answer=1, operation="add", return_data=1, slot_group="low_8", **BOUND)  # fmt: skip


@pytest.mark.parametrize("select", [2, 3])
def test_reserved_channel_selects_of_a_texture(select: int) -> None:
    texture = Texture(surface={"shader_channel_select_green": select})
    with pytest.raises(Unsupported, match=r"a surface with channel select .*: not yet simulated"):
        texture.ask("sample_lz", np.zeros(16, np.float32), np.zeros(16, np.float32))


@pytest.mark.parametrize(("surface", "why"), [
    ({"surface_type": 4}, "surface 0 .* is a buffer: not yet simulated for render targets"),
    ({"vertical_line_stride": 1}, "surface 0 .* has vertical_line_stride 1: not yet simulated for render targets"),
    ({"surface_type": 2, "tile_mode": 3, "tiled_resource_mode": 2, "mip_tail_start_lod": 15},
     "surface 0 .* has tiling tileys_3d_32: not yet simulated for render targets"),
])  # fmt: skip
def test_surfaces_that_are_no_render_targets(surface: dict[str, int], why: str) -> None:
    bench = Target(surface=surface)
    before = bench.data.array.copy()
    with pytest.raises(Unsupported, match=why):
        bench.write(COLORS)
    assert (bench.data.array == before).all()


def test_depth_formats_that_are_not_simulated() -> None:
    state = DepthState("d8_unorm", test="less")
    with pytest.raises(Unsupported, match="depth buffers of format d8_unorm: not yet simulated"):
        depth.check(state)
    bench = Target(state_of_backend=BackendState(late=target_of(state)))
    before = bench.data.array.copy()
    with pytest.raises(Unsupported, match="depth buffers of format d8_unorm: not yet simulated"):
        bench.write(COLORS)
    assert (bench.data.array == before).all()
    depth.check(DepthState("", test="less"))


# -- units ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "parts", "answer"), [("render_target_write", (np.zeros(64, np.uint32),), 0),
                                                       ("render_target_read", (), 8)])  # fmt: skip
def test_threads_without_a_pixel_backend_have_no_render_targets(name: str, parts: tuple[Any, ...], answer: int) -> None:
    refused(Bench(), Unsupported, f"{name} of a thread that has no render targets: its dispatch has no pixel backend", name, *parts,
            answer=answer, message_subtype="simd16" if answer else "simd8", **BOUND)  # fmt: skip


def test_subtypes_of_writes_that_are_not_simulated_are_named() -> None:
    bench = Target(gen=7)
    with pytest.raises(Unsupported, match="render_target_write with message subtype simd8_image_write: not yet simulated"):
        bench.send("render_target_write", np.zeros(64, np.uint32), message_subtype="simd8_image_write", **BOUND)
