"""Draws in a walk over a batch leave what draws leave that Python executes one by one: memory, registers, counts, reports, remarks, faults.

A batch of many draws is executed by walks, and by handlers alone; between the draws come the commands that drivers send there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.bits.registers import place
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.memory.address_space import AddressSpace
from softgen.surface.image import SurfaceImage
from softgen.threads.compare.compare import ComparingDispatcher
from softgen.threads.dispatcher import EngineDispatcher
from softgen.three_d.draw.draw_actor import DrawActor
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work
from tests.conftest import SHARED, needs_shared
from tests.three_d.own_draw import BATCH, DATA, SIZE, VERTICES, OwnDraw, rectangle

GPUS = ["bdw", "kbl", "icl"]
MANY = 12  # draws
UNMAPPED = 0x7000_0000
Left = dict[str, Any]


def by_handlers(command: Any) -> Callable[[Any, Any], None]:
    """A handler that no actor stands for."""
    return lambda cs, cmd: command(cs, cmd)


class Run:
    """What a GPU has left of a batch."""

    def __init__(self, gpu: str, space: AddressSpace, walks: bool, dispatcher: Any = None, on_error: bool = False,
                 timed_out: Callable[[], bool] = lambda: False, seen: bool = True) -> None:  # fmt: skip
        self.errors, self.targets, self.space = list[str](), list[tuple[Any, ...]](), space
        self.dispatcher = dispatcher or EngineDispatcher("t0", threads=1)
        self.gpu = GpuDevice(device(gpu), itertools.count().__next__, timed_out=timed_out, dispatcher=self.dispatcher,
                             on_error=self.error if on_error else lambda error: False, drawn=self.drawn if seen else None)  # fmt: skip
        if not walks:
            commands = dict(self.gpu.interface.commands)
            acting = {name: by_handlers(commands[name]) for name in self.gpu.interface.actors}
            self.gpu.interface = replace(self.gpu.interface, commands={**commands, **acting})

    def error(self, error: SoftgenError) -> bool:
        self.errors.append(str(error))
        return True

    def drawn(self, space: Any, targets: Sequence[SurfaceImage]) -> None:
        self.targets.append(tuple(targets))

    def execute(self, address: int = BATCH, times: int = 1) -> Left:
        for _ in range(times):
            try:
                self.gpu.execute(Work("render", self.space, address))
            except SoftgenError as error:
                self.errors.append(str(error))
        return self.left()

    def left(self) -> Left:
        memory = {region.start: self.space.read(region.start, region.size) for region in self.space.regions()}
        ran = sorted((kept.dispatches, kept.threads, kept.instructions) for kept in getattr(self.dispatcher, "ran", {}).values())
        registers = {at: self.gpu.read_register(at) for at in (*range(0x2000, 0x2800, 4), *range(0x5200, 0x5290, 4))}
        return {"memory": memory, "registers": registers, "counters": vars(self.gpu.counters), "targets": self.targets, "ran": ran,
                "remarks": list(self.gpu.remarks), "errors": self.errors}  # fmt: skip


def both(draw: OwnDraw, monkeypatch: pytest.MonkeyPatch, times: int = 1, **more: Any) -> tuple[Left, int]:
    """What a batch leaves, the same by walks and by handlers; and how many draws walks have begun."""
    begun = list[int]()
    leave = DrawActor.leave

    def counted(actor: DrawActor, cs: Any) -> None:
        begun.append(actor.struct.draws)
        leave(actor, cs)

    monkeypatch.setattr(DrawActor, "leave", counted)
    made = [{name: value() if name in ("dispatcher", "timed_out") else value for name, value in more.items()} for _ in range(2)]
    found = Run(draw.gpu, draw.memory(), walks=True, **made[0]).execute(times=times)
    walked = sum(begun)
    assert Run(draw.gpu, draw.memory(), walks=False, **made[1]).execute(times=times) == found
    assert sum(begun) == walked
    return found, walked


def rectangles(count: int) -> list[bytes]:
    """Rectangles that lie partly on each other, each of another colour."""
    colours = [(n / 16, 1 - n / 16, n, 1) for n in range(count)]
    return [corner for n in range(count) for corner in rectangle(n % 5, n // 5, n % 5 + 7, n // 5 + 9, attribute=colours[n])]


def parts(count: int, **more: Any) -> list[dict[str, Any]]:
    """Draws of three vertices each."""
    return [{"vertex_count_per_instance": 3, "start_vertex_location": 3 * n, **more} for n in range(count)]


def blended(gpu: str, between: Sequence[Sequence[int]] = (), **more: Any) -> OwnDraw:
    """Draws whose order shows: each is blended with what there is."""
    entry = {"color_buffer_blend_enable": 1, "source_blend_factor": 3, "destination_blend_factor": 0x13, "source_alpha_blend_factor": 1,
             "destination_alpha_blend_factor": 0x11}  # fmt: skip
    state: dict[str, Any] = {"BLEND_STATE": {"render_target": [entry]},
                             "3DSTATE_PS_BLEND": {"has_writeable_rt": 1, "color_buffer_blend_enable": 1},
                             **more.pop("state", {})}  # fmt: skip
    return OwnDraw(gpu, rectangles(MANY), state, primitives=more.pop("primitives", parts(MANY)), between=between, **more)


@pytest.mark.covering(1)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("engine", ["t0", "t1", "auto"])
def test_draws_without_commands_between(gpu: str, engine: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left, walked = both(blended(gpu), monkeypatch, dispatcher=lambda: EngineDispatcher(engine, threads=threads))
    assert walked == MANY - 1 and left["counters"]["draws"] == MANY and len(left["targets"]) == MANY and not left["errors"]


@pytest.mark.parametrize("seen", [False, True])
def test_several_submissions(seen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those after the first find all records."""
    _, walked = both(blended("kbl"), monkeypatch, times=3, seen=seen)
    assert walked >= 3 * (MANY - 1) - 1


# -- commands between draws ------------------------------------------------------------------------------------------------------------


def pack(gpu: str, name: str, **fields: Any) -> list[int]:
    return OwnDraw(gpu, ()).pack(name, **fields)


def store(gpu: str, address: int, value: int) -> list[int]:
    return pack(gpu, "MI_STORE_DATA_IMM", address=address, data=[{"dword": value}])


def select(gpu: str, pipeline: int) -> list[int]:
    mask = {} if gpu == "bdw" else {"mask_bits": 3}
    return pack(gpu, "PIPELINE_SELECT", pipeline_selection=pipeline, **mask)


def vertex_buffer(gpu: str, start: int, size: int = 48 * 3 * MANY) -> list[int]:
    buffer = {"buffer_pitch": 48, "buffer_starting_address": start, "buffer_size": size, "address_modify_enable": 1}
    return pack(gpu, "3DSTATE_VERTEX_BUFFERS", vertex_buffer=[buffer])


def register(gpu: str, name: str) -> int:
    gen = device(gpu).generation.number
    return next(at for at in range(0x2000, 0x2800, 4) if (found := place(at, gen, "render")) is not None and found.layout.name == name)


def counts_stored(gpu: str) -> list[list[int]]:
    """Statistics registers, as commands see them between two draws."""
    names = "IA_VERTICES_COUNT", "PS_INVOCATION_COUNT", "PS_DEPTH_COUNT", "CL_PRIMITIVES_COUNT"
    return [pack(gpu, "MI_STORE_REGISTER_MEM", register_address=register(gpu, name), memory_address=DATA + 8 * n)
            for n, name in enumerate(names)]  # fmt: skip


def occlusion(gpu: str) -> list[list[int]]:
    """PS_DEPTH_COUNT, written by a flush."""
    return [pack(gpu, "PIPE_CONTROL", post_sync_operation=2, depth_stall_enable=1, address=DATA + 64)]


def moved_vertices(gpu: str) -> list[list[int]]:
    """Vertices from the second rectangle on, and a store into them."""
    return [store(gpu, VERTICES + 48 * 4 + 16, 0x41200000), vertex_buffer(gpu, VERTICES + 48 * 3)]


def waits(gpu: str) -> list[list[int]]:
    """A semaphore that a command before has set."""
    wait = pack(gpu, "MI_SEMAPHORE_WAIT", compare_operation=4, semaphore_data_dword=7, semaphore_address=DATA + 128, wait_mode=1)
    return [store(gpu, DATA + 128, 7), wait]


def other_state(gpu: str) -> list[list[int]]:
    """State that the draw before had, in other commands and in the same."""
    mask = pack(gpu, "3DSTATE_SAMPLE_MASK", sample_mask=0)
    return [mask, pack(gpu, "MI_NOOP"), pack(gpu, "3DSTATE_SAMPLE_MASK", sample_mask=1), select(gpu, 0)]


def bases_again(gpu: str) -> list[list[int]]:
    return [OwnDraw(gpu, rectangles(1)).commands()[0]]  # type: ignore[list-item]


BETWEEN = {made.__name__: made for made in (counts_stored, occlusion, moved_vertices, waits, other_state, bases_again)}


@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("what", BETWEEN)
def test_commands_between_draws(gpu: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left, walked = both(blended(gpu, BETWEEN[what](gpu)), monkeypatch, times=2)
    assert walked >= MANY and left["counters"]["draws"] == 2 * MANY and not left["errors"]


@pytest.mark.parametrize("gpu", GPUS)
def test_a_draw_that_a_command_has_changed_is_read_as_it_is(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vertex count of the last draw; the walk reads the batch in memory."""
    draw = blended(gpu, before=[store(gpu, 0, 0)])
    last = BATCH + 4 * (sum(map(len, draw.commands())) - 1 - len(draw.pack("3DPRIMITIVE")))
    changed = blended(gpu, before=[store(gpu, last + 16, 0)])  # instance_count
    left, walked = both(changed, monkeypatch)
    assert walked == MANY - 2 and left["counters"]["draws"] == MANY and len(left["targets"]) == MANY - 1


def test_predicated_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second one is left out; the streamer decides."""
    off = pack("kbl", "MI_LOAD_REGISTER_IMM", entry=[{"register_offset": register("kbl", "MI_PREDICATE_RESULT"), "data_dword": 0}])
    made = [{**part, "predicate_enable": n % 2} for n, part in enumerate(parts(MANY))]
    left, walked = both(blended("kbl", [off], primitives=made), monkeypatch, times=2)
    assert left["counters"]["draws"] == MANY and walked >= MANY - 2


def test_indirect_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters come from registers."""
    values = {"3DPRIM_VERTEX_COUNT": 3, "3DPRIM_START_VERTEX": 6, "3DPRIM_INSTANCE_COUNT": 1}
    entries = [{"register_offset": register("kbl", name), "data_dword": value} for name, value in values.items()]
    made = [{**part, "indirect_parameter_enable": n % 2} for n, part in enumerate(parts(MANY))]
    left, _ = both(blended("kbl", [pack("kbl", "MI_LOAD_REGISTER_IMM", entry=entries)], primitives=made), monkeypatch, times=2)
    assert left["counters"]["draws"] == 2 * MANY


# -- errors and limits -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("going_on", [False, True])
@pytest.mark.parametrize("gpu", GPUS)
def test_faults(gpu: str, going_on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vertices that are not mapped: the error names the draw; those after it are executed where the submitter goes on."""
    left, walked = both(blended(gpu, [vertex_buffer(gpu, UNMAPPED)]), monkeypatch, on_error=going_on)
    assert walked and len(left["errors"]) == (MANY - 1 if going_on else 1) and "3DPRIMITIVE at 0x1" in left["errors"][0]


@pytest.mark.parametrize("gpu", GPUS)
def test_a_batch_that_leaves_mapped_memory(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All commands before its end are executed."""
    class Endless(OwnDraw):
        def commands(self) -> list[Sequence[int]]:
            made = super().commands()[:-1]
            return [*[[0]] * (SIZE // 4 - sum(map(len, made))), *made]

    plain = blended(gpu)
    left, walked = both(Endless(gpu, plain.vertices, plain.state, primitives=parts(MANY)), monkeypatch)
    assert walked == MANY - 1 and "without an end" in left["errors"][0]


@pytest.mark.parametrize("gpu", GPUS)
def test_draws_while_another_pipeline_is_selected(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left, _ = both(blended(gpu, [select(gpu, 2)]), monkeypatch, on_error=True)
    assert len(left["errors"]) == MANY - 1 and "PIPELINE_SELECT" in left["errors"][0]


@pytest.mark.parametrize("gpu", GPUS)
def test_a_draw_whose_time_is_over_is_gone_on_with(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blending shows a draw that is begun again."""
    monkeypatch.setattr("softgen.three_d.draw.draw_walk.SLICE", 1)
    monkeypatch.setattr("softgen.streamer.walk.WALK_TIME", -1)
    _, walked = both(blended(gpu), monkeypatch, times=2)
    assert walked >= 2 * (MANY - 1)


def test_the_time_limit_is_looked_at_between_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.streamer.walk.WALK_TIME", -1)
    looks = itertools.count()
    draw = blended("kbl")
    left = Run("kbl", draw.memory(), walks=True, timed_out=lambda: next(looks) > 6).execute()
    assert "time is up" in left["errors"][0] and 0 < left["counters"]["draws"] < MANY


def test_compared_draws_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    def comparing() -> ComparingDispatcher:
        return ComparingDispatcher(EngineDispatcher("t0", threads=1), EngineDispatcher("reference", threads=1))

    left, walked = both(blended("kbl"), monkeypatch, dispatcher=comparing)
    assert not walked and left["counters"]["draws"] == MANY and not left["errors"]


# -- captures ----------------------------------------------------------------------------------------------------------------------------


def replayed(path: Path, walks: bool) -> list[Left]:
    """What each submission of a capture leaves, each executed twice."""
    trace, found, run = open_trace(path), list[Left](), None
    for work in events(trace):
        if isinstance(work, Work):
            run = run or Run(path.name.partition("-")[0], work.space, walks)  # type: ignore[arg-type]
            run.space = work.space  # type: ignore[assignment]
            for _ in range(2):
                try:
                    run.gpu.execute(work)
                except SoftgenError as error:
                    run.errors.append(str(error))
            found.append(run.left())
    return found


@needs_shared("traces")
@pytest.mark.parametrize("gpu", ["g45", "ivb", "hsw", "bdw", "kbl", "icl"])
@pytest.mark.parametrize("scene", ["es2gears", "piglit-occlusion_query"])
def test_captures(gpu: str, scene: str) -> None:
    path = SHARED / "traces" / f"{gpu}-{scene}"
    if not path.exists():
        pytest.skip(f"there is no {path.name}")
    assert replayed(path, True) == replayed(path, False)
