"""Clip: the plan of the clip test and of clipping (clip.c, clip_object.c).

Reads   3DSTATE_CLIP 3DSTATE_RASTER 3DSTATE_VS 3DSTATE_DS 3DSTATE_GS 3DSTATE_STREAMOUT 3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP
        SF_CLIP_VIEWPORT CLIP_STATE CLIP_VIEWPORT 3DSTATE_PIPELINED_POINTERS
Writes  ClipPlan
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from softgen.bits.generation import Generation
from softgen.bits.record import Record, to_float
from softgen.errors import DecodeError
from softgen.three_d.clip_setup.geometry_h import ClipPlan, ClipStagePlan, Limits
from softgen.three_d.draw.draw_structures import DrawReason, StageStruct
from softgen.three_d.draw.stage import BuiltRecord, Stage, WalkedDraw
from softgen.three_d.state.fields import UnitFields, structures, unit_fields
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.stream_out.stream_output import stops

VIEWPORTS = 16
LAST_STAGES = ("3DSTATE_GS", "3DSTATE_DS", "3DSTATE_VS")  # the one whose vertices CLIP gets is the first that is enabled
REJECT_ALL, ACCEPT_ALL = 3, 4  # clip_mode
DISCARD, PASS, MUST = range(3)  # enum clip_action
COUNTS = {"messages": 0, "objects": 1, "threads": 2}  # clip_invocations -> enum clip_statistics; messages count by themselves


class ClipStage(Stage):
    """Which objects are accepted, rejected, or to be clipped."""

    name, run = "CLIP", "stage_clip"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        geometry, keeper = record.geometry, record.keeper
        self._plan = ClipStagePlan(counts_objects=counts_objects(record.state))
        if keeper is not None and keeper.pointers is not None:  # of its viewports, the first is compared: it has plans of its own
            self._own = [type(plan).from_buffer_copy(plan) for plan in (geometry.clip, geometry.setup)]
            geometry.struct.clip, geometry.struct.setup = map(ctypes.addressof, self._own)
            self._plan.one_viewport = 1
        into.plan, into.loop = ctypes.addressof(self._plan), ctypes.addressof(geometry.struct)
        return True

    def answer(self, walk: WalkedDraw, why: int | None) -> None:
        if why != DrawReason.VIEWPORTS:
            super().answer(walk, why)
            return
        plans = walk.pipeline.plans.get(DrawState.of(walk.cs)).geometry
        for own, plan in zip(self._own, (plans.clip, plans.setup), strict=True):
            ctypes.memmove(ctypes.addressof(own), ctypes.addressof(plan), ctypes.sizeof(plan))
        walk.struct.viewports = 1


def counts_objects(state: DrawState) -> bool:
    """Whether GS_PRIMITIVES_COUNT counts the objects that CLIP gets (G45 4813)."""
    if not state.generation.unit_state or not state.command("3DSTATE_PIPELINED_POINTERS").clip_enable:
        return False
    return bool(unit_state(state, "CLIP").gs_output_object_statistics_enable)


def clip_viewports(state: DrawState, count: int) -> tuple[Record, ...]:
    """The first viewports of SF_CLIP_VIEWPORT, with matrices, guardbands and extents."""
    name = "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP"
    return structures(state, "SF_CLIP_VIEWPORT", state.block_address(state.command(name).sf_clip_viewport_pointer), count, name)


def guardband(viewport: Record) -> Limits:
    return Limits(to_float(viewport.x_min_clip_guardband), to_float(viewport.x_max_clip_guardband),
                  to_float(viewport.y_min_clip_guardband), to_float(viewport.y_max_clip_guardband))  # fmt: skip


def user_masks(state: DrawState, fields: UnitFields) -> tuple[int, int]:
    """User clip and cull distances that are tested: the unit's own masks, or the last shader stage's (BDW 1903-1970)."""
    clip, cull = fields.user_clip_distance_clip_test_enable_bitmask, fields.get("user_clip_distance_cull_test_enable_bitmask")
    stage = last_stage(state)
    if stage is not None and not fields.get("force_user_clip_distance_clip_test_enable_bitmask", 1):
        clip = stage.user_clip_distance_clip_test_enable_bitmask
    if stage is not None and not fields.get("force_user_clip_distance_cull_test_enable_bitmask", 1):
        cull = stage.user_clip_distance_cull_test_enable_bitmask
    return clip, cull


def last_stage(state: DrawState) -> Record | None:
    """The state of the last shader stage before CLIP that is enabled."""
    for name in LAST_STAGES:
        found = state.get(name)
        if found is not None and found.enable:
            return found
    return None


def viewport_count(state: DrawState) -> int:
    """Viewport indices that CLIP and SETUP accept. Where units read blocks, GS_STATE limits those of GS threads (G45 3264)."""
    if state.generation.unit_state:
        threads = state.command("3DSTATE_PIPELINED_POINTERS").gs_enable
        return int(unit_state(state, "GS").maximum_vpindex) + 1 if threads else VIEWPORTS
    clip = state.get("3DSTATE_CLIP")
    return VIEWPORTS if clip is None else int(clip.maximum_vp_index) + 1


def plan(state: DrawState) -> ClipPlan:
    """The plan of a draw's CLIP unit."""
    return _unit_plan(state) if state.generation.unit_state else _command_plan(state)


def rejects_all(plan: ClipPlan) -> bool:
    """Whether no object passes."""
    return bool(plan.enabled and plan.mode == REJECT_ALL)


def _command_plan(state: DrawState) -> ClipPlan:
    fields = unit_fields(state, "3DSTATE_CLIP", "3DSTATE_RASTER")
    discard = stops(state)
    needed = fields.clip_enable and fields.guardband_clip_test_enable
    viewports = clip_viewports(state, viewport_count(state)) if needed else ()
    return _make(state.generation, fields, bool(fields.clip_enable), discard, user_masks(state, fields), viewport_count(state), viewports)


def _unit_plan(state: DrawState) -> ClipPlan:
    if not state.command("3DSTATE_PIPELINED_POINTERS").clip_enable:
        return ClipPlan(0)
    fields = unit_fields(state, "CLIP_STATE")
    viewports: tuple[Record, ...] = ()
    if fields.guardband_clip_test_enable:
        viewports = structures(state, "CLIP_VIEWPORT", state.address("general", fields.clip_viewport_pointer), VIEWPORTS)
    masks = fields.user_clip_distance_clip_test_enable_bitmask, 0
    return _make(state.generation, fields, True, False, masks, viewport_count(state), viewports)


@lru_cache(512)
def _make(generation: Generation, fields: UnitFields, enabled: bool, discard: bool, masks: tuple[int, int], count: int,
          viewports: tuple[Record, ...]) -> ClipPlan:  # fmt: skip
    """A plan from state; discard: stream output has turned rendering off."""
    clip_space = generation.vertex_position == "clip"
    mode = REJECT_ALL if discard and not fields.get("force_clip_mode") else fields.clip_mode
    if fields.get("perspective_divide_disable") and enabled and mode not in (REJECT_ALL, ACCEPT_ALL):
        raise DecodeError(f"3DSTATE_CLIP: perspective_divide_disable needs clip_mode accept_all, not {mode} (BDW 2081-2095)")
    screen = fields.get("vertex_position_space")
    plan = ClipPlan(
        enabled=enabled or discard, mode=mode, clip_space=clip_space and not fields.get("perspective_divide_disable"),
        test_xy=fields.viewport_xy_clip_test_enable, test_guardband=fields.guardband_clip_test_enable,
        test_z_min=fields.viewport_z_near_clip_test_enable, test_z_max=fields.viewport_z_far_clip_test_enable,
        test_negative_w=fields.get("negative_w_clip_test_enable", 1), user_clip=masks[0], user_cull=masks[1], user_flags=not clip_space,
        w_flag=generation.negative_w == "flag", user_must_clip=fields.get("user_clip_flags_must_clip_enable", 1), viewports=count,
        statistics=COUNTS[generation.clip_invocations] if fields.clipper_statistics_enable else 0, z_min=0.0 if fields.api_mode else -1.0,
        viewport=Limits(-1, 1, -1, 1),
    )  # fmt: skip
    if screen:
        plan.viewport = Limits(fields.real("screen_space_viewport_x_min"), fields.real("screen_space_viewport_x_max"),
                               fields.real("screen_space_viewport_y_min"), fields.real("screen_space_viewport_y_max"))  # fmt: skip
    for i, viewport in enumerate(viewports):
        plan.guardband[i] = guardband(viewport)
    return plan
