"""SurfaceMoves: records that are made fit for other surfaces, instead of a record for each.

    moves.found(cs, records, crowded)       # whether one of the records is now for the state as it is

Reads   3DSTATE_BINDING_TABLE_POINTERS_PS BINDING_TABLE_STATE RENDER_SURFACE_STATE

Programs draw to, and sample, many surfaces of the same kind with otherwise the same state: Mesa uploads each texture, and makes each mip
level, by such a draw. Code is made for kinds of surfaces; addresses, sizes and pitches are numbers that it reads when it runs (Picture,
TargetRecord). So a record for a surface of the kind is right for another, once it has the numbers of that: a tenth of the work of a record.

The first record of a state stays as it is; the second follows the surfaces of draws, which are each seen once. What is seen again gets a
record of its own, as draws of every frame should.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from softgen.bits.units import DWORD
from softgen.command import CommandStreamer
from softgen.errors import SoftgenError
from softgen.memory import guard
from softgen.surface.image import SurfaceImage
from softgen.surface.resized import image_of_bits, numbers_mask, placed
from softgen.threads.bindings import BoundUnits, MovedSurface
from softgen.three_d.clip_setup import setup
from softgen.three_d.clip_setup.bins import BinStage
from softgen.three_d.clip_setup.geometry_h import SetupPlan
from softgen.three_d.draw.draw_structures import DrawStruct, TableEntry, function
from softgen.three_d.pixels.pixel_shader import PixelStage
from softgen.three_d.pixels.render_target import as_target, extent
from softgen.three_d.state.state import DrawState

if TYPE_CHECKING:
    from softgen.three_d.draw.draw_record import DrawRecord

STAGE = "PS"  # whose surfaces records follow
TARGET = 0  # the binding table entry that plans read, of the first render target
MOST_SEEN = 1024  # sets of surfaces
MOST_SIZES = 64  # of render targets, that a record keeps plans for


class FoundEntry(NamedTuple):
    """An entry of a binding table as it is now: where a record has it, its value, and the surface state that it leads to."""

    entry: TableEntry
    value: int
    address: int
    surface: bytes

    @property
    def held(self) -> bytes:
        """The surface state that the record is for."""
        entry = self.entry
        return ctypes.string_at(ctypes.c_uint64.from_address(ctypes.addressof(entry) + TableEntry.surface.offset).value, entry.size)

    @property
    def changed(self) -> bool:
        return self.surface != self.held if self.entry.size else self.value != int(self.entry.value)


def differ_elsewhere(gen: float, held: bytes, found: bytes) -> bool:
    """Whether two surface states differ in more than the numbers of plain images."""
    return bool((int.from_bytes(held, "little") ^ int.from_bytes(found, "little")) & ~numbers_mask(gen))


class SurfaceMoves:
    """The records of one context that follow surfaces. `now`: the draw under way."""

    def __init__(self, now: DrawStruct) -> None:
        self._now, self._fault = now, guard.FaultRecord()
        self._address, self._function, self._call = ctypes.addressof(now), function("draw_shape"), guard.library().guard_call
        self._seen: dict[int, None] = {}
        self.follows_next = False  # a record that is made for the draw follows surfaces

    def _candidate(self, records: Mapping[int, DrawRecord]) -> DrawRecord | None:
        """The next record for the state of the draw under way but for surfaces, of those that follow them, or else any."""
        self._fault.ip = guard.NO_IP
        failed = self._call(self._function, self._address, self._fault)
        return records[self._now.found] if not failed and self._fault.result else None

    def found(self, cs: CommandStreamer, records: Mapping[int, DrawRecord], crowded: bool) -> bool:
        """Whether a record is now for the draw under way; `crowded`: there is no room for one of its own."""
        self._now.compared, self.follows_next, new = 0, False, None
        while (record := self._candidate(records)) is not None:
            entries = self._entries(cs, record)
            if entries is None:
                break
            new = self._is_new(entries) if new is None else new
            if not record.struct.follows or not new and not crowded:
                break
            if self._move(cs, record, entries):
                return True
        self.follows_next = bool(new)
        return False

    def _is_new(self, entries: list[FoundEntry]) -> bool:
        """Whether no draw had these surfaces before; they are known from now on."""
        key = hash(tuple(held.surface for held in entries))
        new = key not in self._seen
        self._seen.pop(key, None)
        self._seen[key] = None  # the last one comes last
        if len(self._seen) > MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return new

    def _move(self, cs: CommandStreamer, record: DrawRecord, entries: list[FoundEntry]) -> bool:
        """Makes a record fit for the surfaces of the draw under way; False where it is for others only, and as it was."""
        keeper, plans = record.keeper, record.plans
        if keeper is None or plans.clear is not None or plans.draws_nothing:
            return False
        bound = keeper.bound[STAGE]
        changed = [held for held in entries if held.changed]
        indices = {held.entry.index for held in changed}
        if not indices <= bound.dispatch.resolved.surfaces.keys() or (keeper.tables.read_by_plans(STAGE) - {TARGET}) & indices:
            return False
        if self._renumber(cs, record, bound, changed):
            return True
        keeper.follow(cs)
        bound.forget_surfaces()
        try:
            target, plan = self._resized(cs, record, bound) if TARGET in indices else (None, None)
        except SoftgenError:
            return False
        if not bound.replaced(indices):
            return False
        if target is not None:
            self._draw_to(record, DrawState.of(cs), target, plan)
        self._compare_with(changed)
        return True

    def _renumber(self, cs: CommandStreamer, record: DrawRecord, bound: BoundUnits, changed: list[FoundEntry]) -> bool:
        """The same for plain images that differ from those before in numbers only, as the bits of their states say."""
        gen, plans, moved = cs.generation.number, record.plans, dict[int, MovedSurface]()
        if any(not found.entry.size or differ_elsewhere(gen, found.held, found.surface) for found in changed):
            return False
        for entry, value, address, surface in changed:
            image = image_of_bits(gen, surface)
            if image is None:
                return False
            moved[entry.index] = MovedSurface(value.to_bytes(DWORD, "little"), address, surface, image)
        target = plan = None
        if plans.target is not None and (drawn := moved.get(TARGET)) is not None:
            image = drawn.image
            target = placed(image, base=image.base & (1 << cs.space.bits) - 1, level=image.levels - 1, levels=1)
            try:
                plan = self._plan_for(cs, record, size) if (size := extent(target)) != plans.extent else None
            except SoftgenError:
                return False
        if not bound.renumbered(moved):
            return False
        if target is not None:
            self._draw_to(record, DrawState.of(cs), target, plan)
        self._compare_with(changed)
        return True

    @staticmethod
    def _plan_for(cs: CommandStreamer, record: DrawRecord, size: tuple[int, int]) -> SetupPlan:
        """SETUP's plan for a render target of another size; all else that it depends on is the same in all draws with the record."""
        found = record.sized.get(size)
        if found is None:
            if len(record.sized) >= MOST_SIZES:
                record.sized.clear()
            found = record.sized[size] = setup.plan(DrawState.of(cs), size)
        return found

    @staticmethod
    def _compare_with(changed: list[FoundEntry]) -> None:
        """What the record is compared with from now on."""
        for entry, value, _, surface in changed:
            entry.value, entry.surface = value, surface

    # -- parts of it ---------------------------------------------------------------------------------------------------------------

    @staticmethod
    def _entries(cs: CommandStreamer, record: DrawRecord) -> list[FoundEntry] | None:
        """The binding table of the stage, as far as it is compared; None where another stage has other surfaces, or memory ends."""
        keeper, found = record.keeper, list[FoundEntry]()
        if keeper is None or keeper.pointers is not None or STAGE not in keeper.bound:
            return None
        base, wrap, read = cs.bases.get("surface", 0), keeper.latches.wrap, cs.space.read
        try:
            for stage, offset, table, entries in keeper.tables.now_compared():
                for entry in entries:
                    value = int.from_bytes(read(base + offset + 4 * entry.index & wrap, 4), "little")
                    address = base + (value & table.surface_mask) & wrap
                    held = FoundEntry(entry, value, address, read(address, entry.size) if entry.size else b"")
                    if stage == STAGE:
                        found.append(held)
                    elif held.changed:
                        return None
        except SoftgenError:
            return None
        return found

    @staticmethod
    def _resized(cs: CommandStreamer, record: DrawRecord, bound: BoundUnits) -> tuple[SurfaceImage | None, SetupPlan | None]:
        """The first render target as it is now, and a plan of SETUP for its size, if that is another one."""
        if record.plans.target is None:
            return None, None
        state = DrawState.of(cs)
        target = as_target(state, bound.surface(TARGET))
        size = extent(target)
        return target, setup.plan(state, size) if size != record.plans.extent else None

    @staticmethod
    def _draw_to(record: DrawRecord, state: DrawState, target: SurfaceImage, plan: SetupPlan | None) -> None:
        plans = record.plans = copy.copy(record.plans)  # others have them, too
        plans.target, plans.targets = target, [target]
        for stage in record.stages:
            if isinstance(stage, PixelStage):
                stage.draw_to(state)
        if plan is not None:
            plans.extent = extent(target)
            record.geometry.resize(plan)
            for stage in record.stages:
                if isinstance(stage, BinStage):
                    stage.resize(record.pipeline.memory.bins, plans.extent)
