"""The position-only pipe: visibility recorded by POCS, and what the render pipe leaves out for it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from tests.device.host import Host
from tests.device.test_position_only import Batches
from tests.three_d.own_draw import (
    CODE,
    DEPTH,
    DYNAMIC,
    SURFACES,
    TARGET,
    TRIANGLES,
    VERTICES,
    OwnDraw,
    vertex,
)
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER

MARK = 0x8000  # a semaphore, from DATA on
LIST, POOL = DEPTH, DEPTH + 0x4000
CLIP = {"clip_enable": 1, "clip_mode": 4, "perspective_divide_disable": 1, "clipper_statistics_enable": 1}  # everything is accepted
COUNTERS = {"IA_VERTICES_COUNT": 0x310, "IA_PRIMITIVES_COUNT": 0x318, "VS_INVOCATION_COUNT": 0x320, "CL_INVOCATION_COUNT": 0x338,
            "CL_PRIMITIVES_COUNT": 0x340, "PS_INVOCATION_COUNT": 0x348, "PS_DEPTH_COUNT": 0x350}  # fmt: skip
POCS, POOL_SIZE, PAGES = 0x18000, 0x18590, 0x18594


def triangle(x: float, y: float, size: float = 3, red: float = 1.0) -> list[bytes]:
    return [vertex(px, py, attribute=(red, 2, 3, 4)) for px, py in ((x + size, y + size), (x, y + size), (x, y))]


@dataclass
class Scene:
    """Objects drawn with visibility (or plainly): state goes to both streamers, `recorded` are more fields of POCS's commands."""

    objects: Sequence[list[bytes]]
    state: Mapping[str, Any] = field(default_factory=dict)
    recorded: Mapping[str, Any] = field(default_factory=dict)
    primitives: Sequence[Mapping[str, int]] = ({},)
    posh: bool = True
    records: bool = True  # POCS's batch is there
    pool: int = POOL
    render_list: int = LIST
    pool_pages: int = 0
    patch: Mapping[int, bytes] = field(default_factory=dict)

    def draw(self, more: Mapping[str, Any], posh: bool) -> OwnDraw:
        state: dict[str, Any] = {"3DSTATE_VS": VERTEX_SHADER, "3DSTATE_CLIP": CLIP,
                                 "3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": TRIANGLES}, **self.state}
        for name, fields in more.items():
            state[name] = {**state.get(name, {}), **fields}
        corners = [corner for made in self.objects for corner in made]
        draws = [{**primitive, **({"posh_enable": 1} if posh else {})} for primitive in self.primitives]
        return OwnDraw("icl", corners, state, vs=PASS_VERTICES, primitives=draws)

    def run(self) -> Ran:
        batches = Batches()
        host, plain, posh = batches.host, self.draw({}, self.posh), self.draw(self.recorded, True)
        for at, data in {DYNAMIC: plain._dynamic(), SURFACES: plain._surfaces(), CODE: plain._code(),
                         VERTICES: b"".join(plain.vertices), **self.patch}.items():  # fmt: skip
            host.space.write(at, data)
        lists = [host.pack("3DSTATE_PTBR_PAGE_POOL_BASE_ADDRESS", page_pool_base_address=self.pool),
                 host.pack("3DSTATE_PTBR_RENDER_LIST_BASE_ADDRESS", render_list_base_address=self.render_list)]  # fmt: skip
        limit = host.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": POOL_SIZE, "data_dword": self.pool_pages}])
        one = host.store(MARK, 1)
        count = len(self.primitives)
        inner = batches.batch(*(list(c) for c in [*posh.commands()[: -1 - count], *lists, limit, *posh.commands()[-1 - count : -1]]), one)
        wait = [host.wait(MARK, 1)] if self.posh and self.records else []
        commands = plain.commands()
        outer = batches.batch(*(list(c) for c in [*commands[: -1 - count], *lists, *wait, *commands[-1 - count : -1]]))
        start = [batches.start(inner, posh_start=1)] if self.posh and self.records else []
        batches.run(*start, batches.start(outer, posh_enable=1))
        return Ran(host, batches)


@dataclass
class Ran:
    host: Host
    batches: Batches

    @property
    def picture(self) -> Any:
        return np.frombuffer(self.host.space.read(TARGET, 16 * 16 * 16), np.float32).reshape(16, 16, 4)

    def count(self, name: str, base: int = 0x2000) -> int:
        return self.host.gpu.read_register(base + COUNTERS[name])

    def counts(self, base: int = 0x2000) -> dict[str, int]:
        return {name: self.count(name, base) for name in COUNTERS}

    def bits(self, objects: int, draw: int = 0) -> list[int]:
        first, found = struct.unpack("<2I", self.host.space.read(LIST + 8 * draw, 8))
        assert first & 1 and found == objects
        data = self.host.space.read(POOL + 4096 * (first >> 1), -(-objects // 8))
        return [data[n // 8] >> n % 8 & 1 for n in range(objects)]


EIGHT = [triangle(x, y) for x, y in ((0, 0), (20, 0), (4, 4), (0, 30), (-9, 0), (8, 8), (40, 40), (17, 2))]
VISIBLE = [1, 0, 1, 0, 0, 1, 0, 0]


@pytest.mark.behaviour("ICL-POSH-01", "ICL-POSH-31", "ICL-POSH-33", "ICL-POSH-34", shows="action")
def test_culled_objects_are_left_out() -> None:
    """VFR, VSR, CLR and SFR run ahead, OVR records what they leave, a bit for each object; VF skips the others (ICL 2769-2837)."""
    with_posh, plain = Scene(EIGHT).run(), Scene(EIGHT, posh=False).run()
    assert with_posh.bits(8) == VISIBLE
    np.testing.assert_array_equal(with_posh.picture, plain.picture)
    ours, theirs = with_posh.counts(), plain.counts()
    assert theirs["VS_INVOCATION_COUNT"] == 24 and theirs["CL_INVOCATION_COUNT"] == 8
    assert ours == {**theirs, "VS_INVOCATION_COUNT": 9, "CL_INVOCATION_COUNT": 3, "CL_PRIMITIVES_COUNT": ours["CL_PRIMITIVES_COUNT"]}
    recorded = with_posh.counts(POCS)
    assert [recorded[name] for name in ("IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT", "VS_INVOCATION_COUNT", "CL_INVOCATION_COUNT")] == [
        24, 8, 24, 8]  # fmt: skip
    assert with_posh.host.gpu.read_register(PAGES) == 1 and not with_posh.batches.remarks
    assert recorded["PS_INVOCATION_COUNT"] == 0


@pytest.mark.behaviour("ICL-POSH-01", "ICL-POSH-34", shows="action")
def test_a_thousand_objects() -> None:
    """Nine of ten outside of the view: the same picture, the same pixels, a tenth of the vertices and objects."""
    random = np.random.default_rng(5)
    made = []
    for number in range(1000):
        x, y = random.uniform(0, 13, 2)
        made.append(triangle(x + (20 if number % 10 else 0), y, float(random.uniform(1, 3)), red=number))
    with_posh, plain = Scene(made).run(), Scene(made, posh=False).run()
    np.testing.assert_array_equal(with_posh.picture, plain.picture)
    assert len(np.unique(plain.picture[..., 0])) > 20
    ours, theirs = with_posh.counts(), plain.counts()
    same = ("IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT", "PS_INVOCATION_COUNT", "PS_DEPTH_COUNT")
    assert [ours[name] for name in same] == [theirs[name] for name in same] and theirs["VS_INVOCATION_COUNT"] == 3000
    visible = sum(with_posh.bits(1000))
    assert 90 <= visible <= 100 and ours["VS_INVOCATION_COUNT"] == 3 * visible and ours["CL_INVOCATION_COUNT"] == visible


@pytest.mark.behaviour("ICL-POSH-31", shows="action")
def test_only_draws_with_visibility_are_recorded() -> None:
    """The third level of control is a bit of 3DPRIMITIVE: in POCS's batch, and in the render engine's (ICL 866-871)."""
    draws = [{"vertex_count_per_instance": 12}, {"vertex_count_per_instance": 12, "start_vertex_location": 12}]
    ran = Scene(EIGHT, primitives=draws).run()
    assert ran.bits(4) == VISIBLE[:4] and ran.bits(4, draw=1) == VISIBLE[4:] and ran.host.gpu.read_register(PAGES) == 2
    plain = Scene(EIGHT, posh=False).run()
    assert ran.host.gpu.read_register(POCS + 0x320) == 24 and plain.host.gpu.read_register(POCS + 0x320) == 0
    np.testing.assert_array_equal(ran.picture, plain.picture)


@pytest.mark.behaviour("ICL-POSH-17", shows="action")
@pytest.mark.parametrize(("change", "visible"), [
    ({}, [1, 0, 1, 0, 0, 1, 0, 0]),
    ({"3DSTATE_DRAWING_RECTANGLE": {"clipped_drawing_rectangle_x_max": 5}}, [1, 0, 1, 0, 0, 0, 0, 0]),
    ({"3DSTATE_DRAWING_RECTANGLE": {"clipped_drawing_rectangle_x_max": 31, "clipped_drawing_rectangle_y_max": 31}},
     [1, 1, 1, 1, 0, 1, 0, 1]),
    ({"3DSTATE_RASTER": {"cull_mode": 3, "front_winding": 0}}, None), ({"3DSTATE_RASTER": {"cull_mode": 0}}, [0] * 8),
    ({"3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": 1}}, "points"),
    ({"3DSTATE_VS": {"enable": 0}}, [1, 0, 1, 0, 0, 1, 0, 0]),
    ({"3DSTATE_SF": {"viewport_transform_enable": 1}}, [0] * 8),
    ({"3DSTATE_URB_VS": {"urb_starting_address": 4, "number_of_urb_entries": 128}}, [1, 0, 1, 0, 0, 1, 0, 0]),
])  # fmt: skip
def test_state_of_the_position_only_pipe(change: Mapping[str, Any], visible: Any) -> None:
    """Each command in POCS's batch has its effect there, and none on the render engine (ICL 502-557)."""
    ran = Scene(EIGHT, recorded=change).run()
    if visible == "points":
        corners = [corner for made in EIGHT for corner in made]
        inside = [int(0 <= x < 16 and 0 <= y < 16) for x, y in (struct.unpack_from("<2f", corner, 16) for corner in corners)]
        assert ran.bits(24) == inside
        return
    facing = {tuple(VISIBLE), (0,) * 8}
    assert ran.bits(8) == visible if visible is not None else tuple(ran.bits(8)) in facing
    assert ran.host.gpu.contexts[7, "render"].latched["3DSTATE_RASTER"].cull_mode == 1


@pytest.mark.behaviour("ICL-POSH-33", shows="action")
def test_the_pipe_has_no_other_stages() -> None:
    """HS, TE, DS, GS and stream output do not exist there, whatever commands say (ICL 2816-2825)."""
    ran = Scene(EIGHT, recorded={"3DSTATE_GS": {"enable": 1}, "3DSTATE_HS": {"enable": 1}, "3DSTATE_STREAMOUT": {"enable": 1}}).run()
    assert ran.bits(8) == VISIBLE
    assert not {"3DSTATE_GS", "3DSTATE_HS", "3DSTATE_STREAMOUT"} & set(ran.host.gpu.contexts[7, "position_only"].latched)


def test_instances_have_bits_of_their_own() -> None:
    ran, plain = (Scene(EIGHT, primitives=[{"instance_count": 3}], posh=posh).run() for posh in (True, False))
    assert ran.bits(24) == VISIBLE * 3 and ran.count("VS_INVOCATION_COUNT") == 27
    assert ran.count("IA_PRIMITIVES_COUNT") == plain.count("IA_PRIMITIVES_COUNT") == 24
    np.testing.assert_array_equal(ran.picture, plain.picture)


def test_strips_are_left_out_as_a_whole() -> None:
    """Parts of them have vertices in common, and an order: they are drawn where any object is visible."""
    for shift, shaded in ((0, 8), (30, 0)):
        strip = [[vertex(shift + 2 * (n // 2), 5 * (n % 2), attribute=(1, 1, 1, 1)) for n in range(8)]]
        state = {"3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": 5}}
        ran, plain = (Scene(strip, state, posh=posh).run() for posh in (True, False))
        assert ran.count("VS_INVOCATION_COUNT") == shaded and plain.count("VS_INVOCATION_COUNT") == 8
        np.testing.assert_array_equal(ran.picture, plain.picture)
        assert ran.count("IA_VERTICES_COUNT") == plain.count("IA_VERTICES_COUNT") == 8


def test_without_a_record_all_objects_are_drawn() -> None:
    ran, plain = Scene(EIGHT, records=False).run(), Scene(EIGHT, posh=False).run()
    assert ran.count("VS_INVOCATION_COUNT") == 24 and any("no record of the 8 objects" in text for text in ran.batches.remarks)
    np.testing.assert_array_equal(ran.picture, plain.picture)


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_token_buffers_that_are_too_small_or_not_mapped() -> None:
    many = [*EIGHT] * 2
    draws = [{"vertex_count_per_instance": 24}, {"vertex_count_per_instance": 24, "start_vertex_location": 24}]
    with pytest.raises(SoftgenError, match=rf"3DPRIMITIVE at .*: the page pool at {POOL:#x} has 1 pages .*, of which 1 are used"):
        Scene(many, primitives=draws, pool_pages=1).run()
    assert Scene(many, primitives=draws, pool_pages=2).run().host.gpu.read_register(PAGES) == 2
    with pytest.raises(GpuFault, match=r"write at 0x10000000 .*3DPRIMITIVE"):
        Scene(EIGHT, pool=0x10000000).run()
    with pytest.raises(GpuFault, match=r"write at 0x20000000 .*3DPRIMITIVE"):
        Scene(EIGHT, render_list=0x20000000).run()


def test_topologies_that_are_not_recorded_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="visibility of objects of topology 9 is not recorded"):
        Scene(EIGHT, {"3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": 9}}).run()


def test_a_draw_with_visibility_needs_a_render_list() -> None:
    batches = Batches()
    topology = batches.host.pack("3DSTATE_VF_TOPOLOGY", primitive_topology_type=TRIANGLES)
    inner = batches.batch(topology, batches.host.pack("3DPRIMITIVE", posh_enable=1, vertex_count_per_instance=3, instance_count=1))
    with pytest.raises(DecodeError, match=r"3DPRIMITIVE needs .*, which no command has set"):
        batches.run(batches.start(inner, posh_start=1))



# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-POSH-36", shows="action")
@pytest.mark.parametrize(("offset", "size", "start", "told"), [
    (0, 16, 8, ""), (16, 16, 8, ""), (0, 16, 6, ""), (0, 16, 5, "32 to 48 KiB; 3DSTATE_URB_VS has 40 to 44 KiB"),
    (16, 16, 7, "48 to 64 KiB; 3DSTATE_URB_VS has 56 to 60 KiB"), (16, 17, 9, "48 to 65 KiB; push constants have 64"),
])  # fmt: skip
def test_push_constants_of_the_position_only_pipe_follow_the_render_pipes(offset: int, size: int, start: int, told: str) -> None:
    """Its own 32 KiB, behind the first 32: 64 in all, behind which entries begin (ICL 2847-2849, 3274-3280)."""
    space = {"3DSTATE_PUSH_CONSTANT_ALLOC_VS": {"constant_buffer_offset": offset, "constant_buffer_size": size},
             "3DSTATE_URB_VS": {"urb_starting_address": start, "number_of_urb_entries": 64}}  # fmt: skip
    ran = Scene(EIGHT, recorded=space).run()
    about = [text for text in ran.batches.remarks if "PUSH_CONSTANT_ALLOC_VS" in text and "KiB" in text]
    assert len(about) == bool(told) and all(told in text for text in about) and ran.bits(8) == VISIBLE
    ours = Scene(EIGHT, {**space, "3DSTATE_URB_VS": {"urb_starting_address": 4, "number_of_urb_entries": 64}}, posh=False).run()
    assert any("PUSH_CONSTANT_ALLOC_VS" in text and "KiB" in text for text in ours.batches.remarks) == (offset + size > 32)


@pytest.mark.behaviour("ICL-POSH-35", shows="action")
@pytest.mark.parametrize(("start", "overlaps"), [(4, True), (5, False), (3, False), (12, False)])
def test_entries_of_both_pipes_are_apart(start: int, overlaps: bool) -> None:
    """VSR's are those of 3DSTATE_URB_VS in POCS's batch; software keeps them from the render pipe's (ICL 2839-2845)."""
    batch = {"3DSTATE_URB_VS": {"urb_starting_address": start, "number_of_urb_entries": 64}}
    made = Scene(EIGHT, recorded=batch)
    made.primitives = [{"vertex_count_per_instance": 24}]
    ran = made.run()
    again = ran.batches
    inner = again.batch(*(list(c) for c in made.draw(batch, True).commands()[:-2]),
                        again.host.pack("3DSTATE_PTBR_RENDER_LIST_BASE_ADDRESS", render_list_base_address=LIST),
                        list(made.draw(batch, True).commands()[-2]))  # fmt: skip
    again.run(again.start(inner, posh_start=1))  # now the render engine has state
    assert any("overlaps the render pipe's entries of VS" in text for text in again.remarks) == overlaps
    assert again.host.gpu.contexts[7, "position_only"].latched["3DSTATE_URB_VS"].urb_starting_address == start


@pytest.mark.behaviour("ICL-POSH-28", shows="action")
@pytest.mark.parametrize("ours", [0, 1])
@pytest.mark.parametrize("theirs", [0, 1])
def test_the_render_engines_pool_of_binding_tables_governs_both(ours: int, theirs: int) -> None:
    """Each streamer has a copy; where they differ software is told, and the render engine's is used (ICL 642-648)."""
    def pool(enable: int) -> dict[str, Any]:
        return {"3DSTATE_BINDING_TABLE_POOL_ALLOC": {"binding_table_pool_enable": enable, "binding_table_pool_base_address": SURFACES,
                                                     "binding_table_pool_buffer_size": 16}}  # fmt: skip

    made = Scene(EIGHT, pool(theirs), recorded=pool(ours))
    ran = made.run()
    again = ran.batches
    commands = [list(c) for c in made.draw(pool(ours), True).commands()]
    list_base = again.host.pack("3DSTATE_PTBR_RENDER_LIST_BASE_ADDRESS", render_list_base_address=LIST)
    before = len(again.remarks)
    again.run(again.start(again.batch(*commands[:-2], list_base, commands[-2]), posh_start=1))
    told = [text for text in again.remarks[before:] if "which both use" in text]
    assert len(told) == (ours != theirs)
    held = [again.host.gpu.contexts[7, name].latched["3DSTATE_BINDING_TABLE_POOL_ALLOC"].binding_table_pool_enable
            for name in ("position_only", "render")]  # fmt: skip
    assert held == [ours, theirs]
