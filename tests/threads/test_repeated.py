"""One dispatch after another on the same host threads: what is kept from the first is used only where nothing changed.

A driver rewrites kernels, constants, surfaces and commands in place. Each case runs as it is, changed, and as it was; all three times it
must come to what an engine does that has seen nothing before.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.device.gpu import GpuDevice
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.store import TranslationStore
from softgen.lanes.compile import jit
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads.dispatch import never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.programs import load
from softgen.threads.workers import group_cache
from softgen.threads.workers.groups import GroupRun
from softgen.threads.workers.pool import WorkerSet
from softgen.threads.workers.shared import SharedDispatch
from softgen.trace.work import Work
from tests.gpgpu.engines import Choice, Recording, engines
from tests.gpgpu.job import ADD, BATCH, PAGE, SURFACES, TABLE, Job, dwords, local_dword, words
from tests.media.root_threads import TICKETS, data
from tests.media.root_threads import job as media_job

CONSTANTS = {"shared": dwords(1000, 7, *[0] * 6), "own": [words(*range(16)), words(*range(16, 32))]}
PLAIN = Job(ADD, [dwords(*range(1, 65)), bytes(256)], shape=(2, 1, 1), ends=(2, 1, 1), **CONSTANTS)  # type: ignore[arg-type]
HEADER = "r0.{}<0;1,0>:d"
LOCAL = local_dword(0x800)
SUM = "add (16|M0) r12.0<1>:d r20.0<8;8,1>:d r2.0<0;1,0>:d"
ROUNDED = replace(PLAIN, kernel=ADD.replace(SUM, "add (16|M0) r12.0<1>:f r1.0<0;1,0>:f 1.0:f"), shape=(1, 1, 1), shared=b"",
                  own=[np.array([2.0**-24] * 8, np.float32).tobytes()])  # fmt: skip

# Stores at addresses instead of offsets.
STATELESS = replace(PLAIN, kernel=ADD.replace("     send (16|M0) null:w r10 0xC 0x08025E01",
                                              f"     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d {PLAIN.address(1)}:d\n"
                                              "     send (16|M0) null:w r10 0xC 0x08025EFF"))  # fmt: skip


def media(gpu: str = "skl", **values: Any) -> Job:
    return media_job(gpu, TICKETS, [bytes(4), bytes(64)], ("MEDIA_OBJECT", {"inline_data": data(5), **values}))


def shown(dword: int) -> Job:
    """Adds a dword of r0 instead of a constant."""
    return replace(PLAIN, kernel=ADD.replace("r2.0<0;1,0>:d", HEADER.format(dword)), shape=(1, 1, 1), own=[words(*range(16))],
                   ends=(1, 1, 1), shared=b"")  # fmt: skip


CHANGES: dict[str, tuple[Job, Job]] = {
    "kernel": (PLAIN, replace(PLAIN, kernel=ADD.replace("add (16|M0) r12", "xor (16|M0) r12"))),
    "shared constants": (PLAIN, replace(PLAIN, shared=dwords(2000, 7, *[0] * 6))),
    "own constants": (PLAIN, replace(PLAIN, own=[words(*range(16)), words(*range(24, 40))])),
    "loaded constants": (replace(PLAIN, fetched=False, kernel=ADD.replace("r1.0<16", "r9.0<16").replace("r2.0<0", "r9.1<0")),
                         replace(PLAIN, fetched=False, kernel=ADD.replace("r1.0<16", "r9.0<16").replace("r2.0<0", "r9.1<0"),
                                 shared=dwords(*[0] * 64), own=[words(*range(2, 18)), words(*range(18, 34))])),
    "fetched or loaded": (PLAIN, replace(PLAIN, fetched=False)),
    "more constants": (PLAIN, replace(PLAIN, shared=dwords(*range(3000, 3016)))),
    "threads of a group": (PLAIN, replace(PLAIN, shape=(1, 1, 1), own=[words(*range(16))])),
    "threads with the same constants": (PLAIN, replace(PLAIN, shape=(1, 1, 1))),
    "rows and columns": (replace(PLAIN, right=0x0FF0), replace(PLAIN, right=0x0FF0, shape=(1, 2, 1))),
    "groups": (PLAIN, replace(PLAIN, ends=(1, 1, 1))),
    "the first group": (PLAIN, replace(PLAIN, starts=(1, 0, 0))),
    "channels": (PLAIN, replace(PLAIN, simd=8)),
    "mask": (PLAIN, replace(PLAIN, right=0x0FF0)),
    "bottom mask": (PLAIN, replace(PLAIN, bottom=0x7FFF)),
    "scratch space": (shown(5), replace(shown(5), front={"per_thread_scratch_space": 3, "scratch_space_base_pointer": 0x40000})),
    "where scratch space is": (replace(shown(5), front={"per_thread_scratch_space": 3, "scratch_space_base_pointer": 0x40000}),
                               replace(shown(5), front={"per_thread_scratch_space": 3, "scratch_space_base_pointer": 0x80000})),
    "sampler states": (shown(3), replace(shown(3), descriptor={"sampler_state_pointer": 0x40})),
    "local memory": (LOCAL, replace(LOCAL, local=4096)),
    "rounding": (ROUNDED, replace(ROUNDED, descriptor={"rounding_mode": 1})),
    "inline data": (media(), media(inline_data=data(6))),
    "shorter inline data": (media(inline_data=data(*[1] * 16)), media()),
    "position": (media(), media(scoreboard_x=3)),
}  # fmt: skip


class Kept:
    """Memory that is rewritten, and one device on it."""

    def __init__(self, groups: EngineDispatcher) -> None:
        self.groups, self.gpu = groups, GpuDevice(PLAIN.device, dispatcher=groups)
        self.space = AddressSpace("kept", PLAIN.device.generation.address_bits)
        self.there: set[int] = set()

    def write(self, pieces: dict[int, bytes]) -> None:
        for address, held in pieces.items():
            if address not in self.there:
                self.space.map(address, MemfdBuffer(PAGE, f"{address:#x}"))
                self.there.add(address)
            self.space.write(address, held.ljust(PAGE, b"\0"))

    def run(self, job: Job, changes: dict[int, bytes] | None = None) -> list[bytes]:
        """The buffers, afterwards. `changes` are made to memory when all is there."""
        self.write(job.pieces())
        for address, held in (changes or {}).items():
            self.space.write(address, held)
        self.gpu.execute(Work("render", self.space, BATCH))
        return [self.space.read(job.address(number), len(held)) for number, held in enumerate(job.buffers)]


def fresh(job: Job, changes: dict[int, bytes] | None = None) -> list[bytes]:
    return Kept(EngineDispatcher("reference")).run(job, changes)


COMPILED = [engine for engine in engines() if engine.name != "reference"]


@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", COMPILED, ids=str)
@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_counts(change: str, engine: Choice) -> None:
    before, after = CHANGES[change]
    assert fresh(before) != fresh(after)
    kept = Kept(engine.groups())
    for item in (before, after, after, before):
        assert kept.run(item) == fresh(item)
    assert not kept.groups.notes


def unreached(constant: int, value: int) -> Job:
    """Items get a value if a constant is not 0: otherwise threads do not reach the instruction that has it."""
    chosen = """
(W)  cmp (1|M0) (ne)f0.0 null<1>:d r2.0<0;1,0>:d 0:d
     mov (16|M0) r12.0<1>:d 0:d
(W&f0.0) jmpi later
back:
     mov (16|M0) r12.0<1>:d r12.0<8;8,1>:d"""
    kernel = ADD.replace("     " + SUM, chosen) + f"later:\n     mov (16|M0) r12.0<1>:d {value}:d\n(W)  jmpi back\n"
    return replace(PLAIN, kernel=kernel, shared=dwords(constant, *[0] * 7))


@pytest.mark.parametrize("engine", engines(), ids=str)
def test_instructions_that_are_reached_later_are_those_that_are_there_then(engine: Choice) -> None:
    kept = Kept(engine.groups())
    for item in (unreached(0, 5), unreached(0, 6), unreached(1, 7), unreached(1, 8), unreached(0, 9), unreached(1, 5)):
        assert kept.run(item) == fresh(item)


def states(job: Job, *numbers: int) -> dict[int, bytes]:
    """The binding table with the states of other buffers in it."""
    return {SURFACES + TABLE: dwords(*(64 * number for number in numbers))}


SMALLER = {SURFACES: PLAIN.surface(0, bytes(64))}
NULL = {SURFACES: dwords(*PLAIN.pack("RENDER_SURFACE_STATE", surface_type=7))}
ELSEWHERE = {SURFACES: dwords(*PLAIN.pack("RENDER_SURFACE_STATE", surface_type=4, surface_format=0x1FF, width=127, height=1,
                                          surface_base_address=PLAIN.address(2)))}  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", COMPILED, ids=str)
@pytest.mark.parametrize("changes", [states(PLAIN, 1, 0), states(PLAIN, 2, 1), SMALLER, NULL, ELSEWHERE],
                         ids=["other way round", "another buffer", "smaller", "null", "elsewhere"])  # fmt: skip
def test_surfaces_are_looked_at_again(changes: dict[int, bytes], engine: Choice) -> None:
    job = replace(PLAIN, buffers=[*PLAIN.buffers, dwords(*range(500, 564))])
    assert fresh(job) != fresh(job, changes)
    kept = Kept(engine.groups())
    for item in ({}, changes, changes, {}):
        assert kept.run(job, item) == fresh(job, item)


def moved(first: int, second: int) -> tuple[Job, dict[int, bytes]]:
    """A dispatch that shows where its binding table is, and that table elsewhere, with copies of the states of these buffers."""
    table, copies = 0x600, 0x800
    job = replace(shown(4), buffers=[*PLAIN.buffers, dwords(*range(500, 564))], descriptor={"binding_table_pointer": table})
    states = b"".join(job.surface(number, bytes(256)) for number in (first, second))
    return job, {SURFACES + table: dwords(copies, copies + 64), SURFACES + copies: states}


@pytest.mark.parametrize("engine", COMPILED, ids=str)
def test_a_binding_table_elsewhere_with_the_same_surfaces(engine: Choice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers write it anew for each dispatch: workers are kept all the same. Other surfaces in it are other surfaces."""
    made: list[GroupRun] = []

    class Counted(GroupRun):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(group_cache, "GroupRun", Counted)
    here, kept = replace(moved(0, 1)[0], descriptor={}), Kept(engine.groups())
    assert fresh(here) != fresh(*moved(0, 1)) != fresh(*moved(2, 1))
    for item in ((here, {}), moved(0, 1), moved(0, 1), (here, {})):
        assert kept.run(*item) == fresh(*item)
    assert len(made) == 1
    for item in (moved(2, 1), moved(0, 1), moved(0, 2), (here, {})):
        assert kept.run(*item) == fresh(*item)


@pytest.mark.parametrize("engine", COMPILED, ids=str)
def test_memory_may_move(engine: Choice) -> None:
    """The same addresses, other pages behind them; and another address space."""
    kept = Kept(engine.groups())
    for job in (PLAIN, STATELESS):
        assert kept.run(job) == fresh(job)
        for address in (job.address(0), job.address(1)):
            kept.space.unmap(address, PAGE)
            kept.there.remove(address)
        assert kept.run(job) == fresh(job)
        kept.space, kept.there = AddressSpace("another", kept.space.bits), set()
        assert kept.run(job) == fresh(job)


@pytest.mark.parametrize("engine", COMPILED, ids=str)
def test_a_dispatch_that_failed_leaves_nothing_behind(engine: Choice) -> None:
    """It stops in the middle of a group, at a message that reaches nothing. r100 is shown before it is set."""
    kernel = ADD.replace(SUM, "add (16|M0) r12.0<1>:d r20.0<8;8,1>:d r100.0<0;1,0>:d\n(W) mov (8|M0) r100.0<1>:d 77:d")
    broken = replace(PLAIN, kernel=kernel.replace("0x08025E01", "0x08025EFF"))  # stateless: nothing is mapped at 0
    kept = Kept(engine.groups())
    for _ in range(2):
        with pytest.raises(Exception, match="write at 0x"):
            kept.run(broken)
        assert kept.run(replace(PLAIN, kernel=kernel)) == fresh(replace(PLAIN, kernel=kernel))


@pytest.mark.parametrize("engine", COMPILED, ids=str)
def test_a_host_thread_may_begin_where_it_stopped_in_another_dispatch(engine: Choice) -> None:
    """It has run group 0 of one, and is given group 1 of the next, whose numbers begin elsewhere."""
    kept, recorder, workers = Kept(engine.groups()), Recording(), WorkerSet(1, strips=True)
    kept.gpu = GpuDevice(PLAIN.device, dispatcher=recorder)
    for first, job in enumerate((replace(PLAIN, ends=(4, 1, 1)), replace(PLAIN, starts=(1, 0, 0), ends=(3, 1, 1)))):
        kept.run(job)
        context, dispatch = recorder.seen[-1]
        made = kept.groups._make(kept.groups.name)
        shared = SharedDispatch(context, dispatch, load(context, dispatch), made)
        run = GroupRun(shared, workers.__getitem__, 1)
        run.share.next, run.share.end = first, first + 1
        list(run.run(never))
    written = np.frombuffer(kept.space.read(PLAIN.address(1), 256), np.uint32)
    assert written.nonzero()[0].tolist() == list(range(32, 64))


@pytest.mark.parametrize("engine", COMPILED, ids=str)
def test_an_access_outside_is_told_again_in_the_next_dispatch(engine: Choice) -> None:
    short = replace(PLAIN, buffers=[dwords(*range(16)), bytes(256)])
    kept = Kept(engine.groups())
    for number in range(2):
        kept.gpu.remarks.clear()
        assert kept.run(short) == fresh(short)
        assert sum("out of bounds" in remark for remark in kept.gpu.remarks) == 1, number


def test_a_stored_translation_is_linked_once_while_its_code_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was decoded of a kernel whose translation came from disk; its bytes are compared all the same."""
    linked: list[object] = []
    link = jit.LoadedCode

    def counted(*args: Any) -> jit.LoadedCode:
        linked.append(args)
        return link(*args)

    before, after = CHANGES["kernel"]
    Kept(EngineDispatcher("t1", 1, lambda name: Translator(store=TranslationStore(tmp_path)))).run(before)
    kept = Kept(EngineDispatcher("t1", 1, lambda name: Translator(store=TranslationStore(tmp_path))))
    monkeypatch.setattr(jit, "LoadedCode", counted)
    for _ in range(3):
        assert kept.run(before) == fresh(before)
    assert len(linked) == 1
    assert kept.run(after) == fresh(after) and len(linked) == 2
