"""Rules of geometry shaders and tessellation since Gen8: what breaks one is remarked, what drivers do is not."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.three_d.rules.geometry_rules import check_geometry
from tests.three_d.geometry_shader.shading import DUAL_INSTANCE, DUAL_OBJECT, EVERY, MODES, SIMD8, SINGLE, Shading
from tests.three_d.made import made_state
from tests.three_d.own_draw import TRIANGLES
from tests.three_d.stream_out.streaming import corners

SHADER = {"enable": 1, "dispatch_mode": SIMD8, "output_vertex_size": 3, "vertex_urb_entry_read_length": 1, "maximum_number_of_threads": 200}
FINE: dict[str, dict[str, int]] = {
    "3DSTATE_GS": SHADER, "3DSTATE_HS": {"enable": 1}, "3DSTATE_STREAMOUT": {}, "3DSTATE_URB_VS": {"number_of_urb_entries": 192},
    "3DSTATE_URB_HS": {"number_of_urb_entries": 8}, "3DSTATE_URB_DS": {"number_of_urb_entries": 40},
    "3DSTATE_URB_GS": {"number_of_urb_entries": 8},
}  # fmt: skip


def remarks(gen: float = 8, **changes: dict[str, int]) -> list[str]:
    found: list[str] = []
    commands: dict[str, Any] = {name: {**fields, **changes.get(name.removeprefix("3DSTATE_"), {})} for name, fields in FINE.items()}
    check_geometry(made_state(gen, {}, commands, warn=found.append))
    return found


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_state_that_keeps_all_rules(gen: float) -> None:
    assert remarks(gen) == []


@pytest.mark.behaviour("BDW-URB-05", shows="action")
@pytest.mark.parametrize(("stage", "least", "unit"), [
    ("VS", 192, {}), ("DS", 34, {}), ("HS", 1, {}), ("GS", 8, {}), ("GS", 2, {"dispatch_mode": DUAL_INSTANCE}),
    ("GS", 2, {"dispatch_mode": DUAL_OBJECT}), ("GS", 1, {"dispatch_mode": SINGLE}),
])  # fmt: skip
def test_stages_need_entries(stage: str, least: int, unit: dict[str, int]) -> None:
    """Those that are off do not."""
    few = {f"URB_{stage}": {"number_of_urb_entries": least - 1}}
    assert not remarks(**{f"URB_{stage}": {"number_of_urb_entries": least}}, GS=unit)
    assert remarks(**few, GS=unit) == [f"3DSTATE_URB_{stage}: number_of_urb_entries {least - 1}; it must be at least {least} here"]
    assert not remarks(**few, GS={"enable": 0}, HS={"enable": 0})


@pytest.mark.behaviour("ICL-URB-04", shows="action")
@pytest.mark.parametrize("stage", ["VS", "HS", "DS", "GS"])
def test_ice_lakes_stages_need_entries(stage: str) -> None:
    none = {f"URB_{stage}": {"number_of_urb_entries": 0}}
    said = [f"3DSTATE_URB_{stage}: number_of_urb_entries 0; it must be at least {8 if stage == 'GS' else 1} here"]
    assert remarks(11, **none) == said
    assert remarks(11, **none, GS={"enable": 0}, HS={"enable": 0}) == (said if stage == "VS" else [])


@pytest.mark.behaviour("BDW-GS-07", shows="action")
@pytest.mark.parametrize(("stream", "says"), [({}, 1), ({"rendering_disable": 1}, 0), ({"force_rendering": 2}, 0)])
def test_rendered_vertices_have_even_sizes(stream: dict[str, int], says: int) -> None:
    found = remarks(GS={"output_vertex_size": 2}, STREAMOUT=stream)
    assert found == ["3DSTATE_GS: output_vertex_size 2, an odd number of units, and vertices are rendered (BDW 5725-5737)"][:says]


@pytest.mark.behaviour("BDW-GS-09", shows="action")
def test_the_control_data_header_has_eight_units_at_most() -> None:
    assert not remarks(GS={"control_data_header_size": 8})
    assert remarks(GS={"control_data_header_size": 9}) == ["3DSTATE_GS: control_data_header_size 9; it must be 8 at most (BDW 5843-5855)"]


@pytest.mark.behaviour("BDW-GS-12", shows="action")
def test_threads_get_data_or_handles() -> None:
    without = {"vertex_urb_entry_read_length": 0}
    assert not remarks(GS={**without, "include_vertex_handles": 1})
    assert remarks(GS=without) == ["3DSTATE_GS: vertex_urb_entry_read_length 0 and include_vertex_handles 0 (BDW 5756-5775)"]


@pytest.mark.behaviour("BDW-GS-17", shows="action")
@pytest.mark.parametrize(("threads", "says"), [(2, 1), (3, 0), (251, 0), (252, 1)])
def test_the_limit_of_threads(threads: int, says: int) -> None:
    """It counts pairs on Broadwell, and threads later."""
    said = [f"3DSTATE_GS: maximum_number_of_threads {threads}; it must be from 3 to 251"]
    assert remarks(GS={"maximum_number_of_threads": threads}) == said[:says] and not remarks(9, GS={"maximum_number_of_threads": threads})


@pytest.mark.behaviour("BDW-GS-17", shows="action")
@pytest.mark.parametrize(("gpu", "limit", "threads"), [("bdw", 3, 8), ("skl", 3, 4), ("ivb", 3, 4)])
def test_as_many_scratch_spaces_as_threads(gpu: str, limit: int, threads: int) -> None:
    """Twelve objects: each thread at work has a space of its own."""
    unit = {"maximum_number_of_threads": limit, "scratch_space_base_pointer": 1 << 20, "per_thread_scratch_space": 1}
    shown = Scratching(gpu, SINGLE, TRIANGLES, vertices=corners(36), put=(0,), unit=unit).run()
    assert {row[3] & ~0x3FF for row in shown.rows()} == {(1 << 20) + 2048 * n for n in range(threads)}


class Scratching(Shading):
    """A draw whose stamp has R0.5 in the place of R0.2."""

    def stamps(self) -> tuple[list[str], Any]:
        lines, slot = super().stamps()
        return [line.replace("g0.2<", "g0.5<") for line in lines], slot


@pytest.mark.parametrize(("gpu", "mode"), EVERY)
def test_draws_of_tests_keep_the_rules(gpu: str, mode: int) -> None:
    assert mode in MODES[gpu] and not Shading(gpu, mode).run().remarks
