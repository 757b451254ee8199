"""Walks of MEDIA_OBJECT_WALKER, their groups, and the scoreboard: which threads run, in which order, and what they start with."""


from __future__ import annotations

import struct
from itertools import islice
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError, Unsupported
from softgen.media import objects
from softgen.media import walk as walks
from softgen.media.front_end import FrontEnd
from softgen.media.walk import BlockPosition
from softgen.threads.payload import PayloadList
from tests.gpgpu.engines import Choice, engines
from tests.gpgpu.job import Job
from tests.gpgpu.test_walker import context
from tests.media.root_threads import GPUS, HANDS_ON, SUM, TICKETS, data, header, job, listed, walk

# -- MEDIA_OBJECT_WALKER -------------------------------------------------------------------------------------------------


def walked(gen: float = 9, **values: Any) -> list[tuple[int, int]]:
    page = layout("MEDIA_OBJECT_WALKER", gen)
    return [(x, y) for x, y, _ in walks.positions(page.raw(page.pack(**values)), lambda: None)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_a_walk_goes_through_its_loops(gen: float) -> None:
    assert walked(gen, **walk(3, 2)) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    columns = walk(3, 2, local_outer_loop_stride_x=1, local_outer_loop_stride_y=0, local_inner_loop_unit_x=0, local_inner_loop_unit_y=1)
    assert walked(gen, **columns) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_steps_may_go_backwards_and_starts_may_be_anywhere() -> None:
    back = walk(3, 2, local_start_x=2, local_start_y=1, local_outer_loop_stride_y=-1, local_inner_loop_unit_x=-2)
    assert walked(**back) == [(2, 1), (0, 1), (2, 0), (0, 0)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_rays_may_begin_outside_and_come_in() -> None:
    """From below the block up its first column, from its right to the left along its first row, and from its left."""
    up = {"local_inner_loop_unit_x": 0, "local_inner_loop_unit_y": -1, "local_start_y": 4, "local_loop_exec_count": 0}
    assert walked(**walk(3, 2, **up)) == [(0, 1), (0, 0)]
    left = {"local_inner_loop_unit_x": -1, "local_start_x": 4, "local_loop_exec_count": 0}
    assert walked(**walk(3, 2, **left)) == [(2, 0), (1, 0), (0, 0)]
    slanted = {"local_outer_loop_stride_x": -2, "local_loop_exec_count": 1}  # the second row begins two to the left of the block
    assert walked(**walk(3, 2, **slanted)) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_a_step_of_nothing_is_one_thread() -> None:
    page = layout("MEDIA_OBJECT_WALKER", 9)
    still = walks.positions(page.raw(page.pack(**walk(3, 2, local_inner_loop_unit_x=0))), lambda: None)
    assert [(x, y) for x, y, _ in islice(still, 9)] == [(0, 0), (0, 1)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_a_diagonal_walk_comes_in_from_outside() -> None:
    """26 degrees: each thread behind its left, upper left, upper and upper right neighbours."""
    steps = {"local_outer_loop_stride_x": 1, "local_outer_loop_stride_y": 0, "local_inner_loop_unit_x": -2, "local_inner_loop_unit_y": 1}
    found = walked(**walk(4, 3, **steps, local_loop_exec_count=4 + 2 * 2 - 1, global_loop_exec_count=0))
    assert found == [(0, 0), (1, 0), (2, 0), (0, 1), (3, 0), (1, 1), (2, 1), (0, 2), (3, 1), (1, 2), (2, 2), (3, 2)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_counts_end_loops_early_and_the_middle_loop_has_extra_steps() -> None:
    assert walked(**walk(2, 9, local_loop_exec_count=1)) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    middle = walk(2, 4, local_outer_loop_stride_y=2, middle_loop_extra_steps=1, local_mid_loop_unit_y=1, local_loop_exec_count=0)
    assert walked(**middle) == [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_blocks_are_walked_one_after_another_and_end_where_everything_does() -> None:
    blocks = {"block_resolution_x": 2, "block_resolution_y": 2, "global_outer_loop_stride_x": 0, "global_outer_loop_stride_y": 2,
              "global_inner_loop_unit_x": 2, "global_inner_loop_unit_y": 0}  # fmt: skip
    found = walked(**walk(3, 3, **blocks))
    assert found == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1), (0, 2), (1, 2), (2, 2)]
    assert walked(**walk(3, 3, **blocks, global_loop_exec_count=0)) == found[:6]  # one row of blocks


@pytest.mark.behaviour("BDW-MEDIA-14", "BDW-MEDIA-15", "BDW-MEDIA-17", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", engines(), ids=str)
@pytest.mark.parametrize("gpu", GPUS)
def test_walked_threads_have_their_place_and_common_data(gpu: str, engine: Choice) -> None:
    values = walk(3, 2, color_count_minus_one=1, inline_data=data(77))
    ran = job(gpu, TICKETS, [bytes(4), bytes(256)], ("MEDIA_OBJECT_WALKER", values)).run(groups=engine.groups())
    found = listed(ran)
    assert [header(ran, *row[:2])[:3] for row in found] == [(x, y, color) for y in (0, 1) for x in (0, 1, 2) for color in (0, 1)]
    assert {row[2] for row in found} == {77} and ran.gpu.counters.threads == 12 and ran.gpu.counters.dispatches == 1


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_headers_have_room_for_the_last_position_of_any_walk(gen: float) -> None:
    """The largest resolution and the largest local start, one thread in the corner."""
    page, made = layout("MEDIA_OBJECT_WALKER", gen), job({8: "bdw", 9: "skl", 11: "icl"}[gen], TICKETS, [])
    most = (1 << page.field("global_resolution_x").width) - 1
    values = walk(most, most, local_start_x=most - 1, local_start_y=most - 1, local_loop_exec_count=0, global_loop_exec_count=0)
    (found,) = objects.walked(context(made), FrontEnd(descriptors=made.dynamic()[:32]), page.raw(page.pack(**values)), lambda: None)
    assert isinstance(found.payload, PayloadList)
    held = layout("MEDIA_THREAD_HEADER", gen).raw(struct.unpack_from("<8I", found.payload.of(0)))
    assert (held.x_position, held.y_position) == (most - 1, most - 1)


@pytest.mark.behaviour("BDW-MEDIA-16", shows="action")
@pytest.mark.parametrize("level, sizes", [(1, [2] * 12), (2, [6] * 4), (3, [6] * 4), (4, [12] * 2), (5, [12] * 2)])
def test_a_loop_makes_groups(level: int, sizes: list[int]) -> None:
    """2 blocks of 3 x 2, two colours."""
    page = layout("MEDIA_OBJECT_WALKER", 9)
    blocks = {"block_resolution_y": 2, "global_outer_loop_stride_x": 0, "global_outer_loop_stride_y": 2, "global_inner_loop_unit_x": 3,
              "global_inner_loop_unit_y": 0}  # fmt: skip
    values = walk(3, 4, **blocks, color_count_minus_one=1)
    assert [len(group) for group in walks.groups(page.raw(page.pack(**values)), level, lambda: None)] == sizes


@pytest.mark.behaviour("BDW-MEDIA-16", shows="action")
@pytest.mark.parametrize("engine", engines(), ids=str)
def test_groups_of_a_walk_share_barrier_and_local_memory(engine: Choice) -> None:
    """Each row is a group; a thread's number is its column, and one more."""
    kernel = SUM.replace(
        "(W)  mov (8|M0) r10.0<1>:ud 0x0:ud",
        """(W)  and (1|M0) r1.0<1>:ud r0.1<0;1,0>:ud 0xFF:ud
(W)  add (1|M0) r1.0<1>:ud r1.0<0;1,0>:ud 1:ud
(W)  mov (8|M0) r10.0<1>:ud 0x0:ud""",
    )
    said = {"number_of_threads_in_gpgpu_thread_group": 3, "barrier_enable": 1, "shared_local_memory_size": 3}
    made = job("skl", kernel, [bytes(64)], ("MEDIA_OBJECT_WALKER", walk(3, 2, group_id_loop_select=2)), descriptor=said)
    assert made.run(groups=engine.groups()).buffer(0)[1:4] == (6, 6, 6)


@pytest.mark.behaviour("BDW-MEDIA-16", shows="action")
@pytest.mark.parametrize("barrier, local, groups", [(0, 0, 1), (1, 0, 2), (0, 3, 2), (1, 3, 2)])
def test_threads_of_a_walk_are_in_groups_where_they_share_something(barrier: int, local: int, groups: int) -> None:
    """Rows of three threads: a barrier or local memory makes each of them a group."""
    said = {"number_of_threads_in_gpgpu_thread_group": 3, "barrier_enable": barrier, "shared_local_memory_size": local}
    made, page = job("skl", TICKETS, [], descriptor=said), layout("MEDIA_OBJECT_WALKER", 9)
    command = page.raw(page.pack(**walk(3, 2, group_id_loop_select=2)))
    found = list(objects.walked(context(made), FrontEnd(descriptors=made.dynamic()[:32]), command, lambda: None))
    assert [dispatch.threads for dispatch in found] == [6 // groups] * groups
    assert {dispatch.local_bytes for dispatch in found} == {4096 if local else 0}


def test_modes_of_the_walker_that_are_not_built_are_refused_by_name() -> None:
    for gpu, name in (("skl", "masked_dispatch"), ("hsw", "dual_mode")):
        page = layout("MEDIA_OBJECT_WALKER", device(gpu).generation.number)
        made = Job("", [], gpu)
        with pytest.raises(Unsupported, match=f"{name} is not yet simulated"):
            next(objects.walked(context(made), FrontEnd(), page.raw(page.pack(**{name: 1})), lambda: None))


# -- the scoreboard ------------------------------------------------------------------------------------------------------

LEFT = {"scoreboard_enable": 1, "scoreboard_mask": 0x05, "scoreboard_0_delta_x": -1, "scoreboard_2_delta_y": -1}


@pytest.mark.behaviour("BDW-MEDIA-10", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", engines(), ids=str)
@pytest.mark.parametrize("use, mask, found", [(1, 0x01, 7), (1, 0x02, 0), (0, 0x01, 0)])
def test_a_thread_waits_for_those_the_scoreboard_names(use: int, mask: int, found: int, engine: Choice) -> None:
    """State and command must both name a distance, and the command must use the scoreboard. The thread on the right reads what
    the left one says after a while; it is in time for that only if it waits."""
    values = walk(2, 1, use_scoreboard=use, scoreboard_mask=mask)
    made = job("skl", HANDS_ON, [bytes(8)], ("MEDIA_OBJECT_WALKER", values), front=LEFT)
    ran = made.run(groups=engine.groups())
    assert ran.buffer(0)[0] == 7
    if found or engine.name == "reference":  # who does not wait is early, or lucky
        assert ran.buffer(0)[1] == found


@pytest.mark.behaviour("BDW-MEDIA-10", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9])
def test_there_are_eight_scoreboard_distances(gen: float) -> None:
    """A distance of (0, 0) is that of a thread to itself: nothing is waited for."""
    page, walker = layout("MEDIA_VFE_STATE", gen), layout("MEDIA_OBJECT_WALKER", gen)
    wanted = [(1, 0), (0, 1), (-1, 0), (0, -1), (2, 3), (0, 0), (-8, 7), (7, -8)]
    held = {f"scoreboard_{n}_delta_{axis}": value for n, each in enumerate(wanted) for axis, value in zip("xy", each, strict=True)}
    front = FrontEnd(page.raw(page.pack(scoreboard_enable=1, scoreboard_mask=0xFF, **held)))

    def found(mask: int) -> list[tuple[int, int]]:
        return objects.distances(front, walker.raw(walker.pack(use_scoreboard=1, scoreboard_mask=mask)))

    assert found(0xFF) == [each for each in wanted if each != (0, 0)]
    assert [found(1 << n) for n in range(8)] == [[each] if each != (0, 0) else [] for each in wanted]


@pytest.mark.behaviour("BDW-MEDIA-10", shows="action")
def test_only_threads_of_the_same_colour_that_were_dispatched_before_are_waited_for() -> None:
    def cut(*places: tuple[int, int, int]) -> list[int]:
        return [len(item) for item in objects.independent((BlockPosition(*place) for place in places), [(-1, 0), (0, 1)])]

    assert cut((0, 0, 0), (2, 0, 0), (1, 0, 1)) == [3]
    assert cut((0, 0, 0), (2, 0, 0), (1, 0, 0)) == [2, 1]
    assert cut((0, 1, 0), (1, 1, 0), (3, 0, 0)) == [1, 2]
    assert cut((5, 5, 0), (4, 5, 0)) == cut((7, 5, 0), (7, 6, 0)) == [2]  # distances have a direction
    assert cut((4, 5, 0), (5, 5, 0)) == cut((7, 6, 0), (7, 5, 0)) == [1, 1]
    assert cut(*[(5, 5, 0)] * 130) == [64, 64, 2]


def test_the_time_limit_is_polled_now_and_then() -> None:
    """At intervals of some thousand steps, not at each."""
    page, polls = layout("MEDIA_OBJECT_WALKER", 9), []
    found = walks.positions(page.raw(page.pack(**walk(100, 100))), lambda: polls.append(1))
    assert len(list(found)) == 10_000 and 1 <= len(polls) <= 5


def test_an_endless_walk_is_stopped() -> None:
    """Nothing is ever inside."""
    values = walk(1, 1, local_start_x=1, local_inner_loop_unit_x=1, middle_loop_extra_steps=31, local_loop_exec_count=0xFFF,
                  global_loop_exec_count=0xFFF, global_outer_loop_stride_x=0)  # fmt: skip
    made = job("skl", TICKETS, [bytes(4)], ("MEDIA_OBJECT_WALKER", values))
    calls = iter(range(1000))
    with pytest.raises(SoftgenError, match=r"MEDIA_OBJECT_WALKER at .*: time is up before the walk has ended"):
        made.run(GpuDevice(made.device, timed_out=lambda: next(calls) > 20))
