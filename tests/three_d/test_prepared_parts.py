"""Parts of prepared draws by themselves: what pays, bases that move, pointers in headers, and what is answered where no threads run."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits import catalogue
from softgen.bits.generation import generation
from softgen.command import MarkedLatched
from softgen.errors import SoftgenError
from softgen.eu.interpreter import KernelProgram
from softgen.memory import guard
from softgen.memory.address_space import AddressSpace
from softgen.shared_functions.bindings import USED
from softgen.threads.native.scheduler import ReturnReason
from softgen.threads.statistics import KernelStatistics
from softgen.three_d.draw import prepared_draws
from softgen.three_d.draw.draw_structures import Base, DrawStruct, PreparedStruct, Stage
from softgen.three_d.draw.prepared import PreparedDraw
from softgen.three_d.draw.prepared_draws import PreparedDraws
from softgen.three_d.draw.prepared_front import NO_STATISTICS
from softgen.three_d.pixels import fill
from softgen.three_d.pixels.pixel_shader import TESTS, loop_count
from softgen.three_d.pixels.render_target import extent
from softgen.three_d.stage_threads.setup_threads import SetupLoop
from softgen.three_d.stage_threads.stage_threads import ThreadStage
from softgen.three_d.state.latched_state import NotPrepared
from softgen.three_d.state.state_blocks import BLEND, CC, SAMPLERS, BlockPointer, StateBlocks
from softgen.three_d.structures import RecordArray, SetupRecord
from softgen.three_d.vertices.front import FrontDraw


@pytest.fixture
def draws() -> Any:
    return object.__new__(PreparedDraws)


@pytest.mark.parametrize("runs, pays", [([1] * 15, True), ([1] * 16, False), ([1] * 15 + [2], True), ([2] + [1] * 15, True)])
def test_preparing_pays_while_one_of_the_latest_draws_ran_twice(draws: Any, runs: list[int], pays: bool) -> None:
    """Of 16 draws; where none did, one in 16 is tried."""
    draws._latest, draws._unprepared = [SimpleNamespace(runs=count) for count in runs], 0
    assert [draws._pays() for _ in range(32)] == 2 * ([pays] * 15 + [True])


def test_workers_of_draws_make_room_in_the_order_they_were_given(draws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the first of a loop count, of loops that no other draw has; those of the draw itself stay."""
    monkeypatch.setattr(prepared_draws, "MOST_WORKERS", 4)
    said = list[str]()

    class Shared(SimpleNamespace):
        def share(self, stage: str, loops: int) -> None:
            said.append(f"{self.name} {stage} {loops}")

        def unshare(self, stage: str) -> None:
            said.append(f"{self.name} {stage} makes room")

    made: list[Any] = [Shared(struct=PreparedStruct(), name=name, own={"VS", "PS"}) for name in "abc"]
    draws._draws, draws._sharing = {ctypes.addressof(draw.struct): draw for draw in made}, {}

    def after(name: str, stage: str, loops: int) -> list[str]:
        said.clear()
        draws._share(made["abc".index(name)], stage, loops)
        return list(said)

    assert after("a", "SF", 100) == ["a SF 100"] and not draws._sharing  # which others have, too
    assert after("a", "PS", 3) == ["a PS 3"]
    assert after("b", "PS", 3) == ["b PS 3"]  # as many as there may be
    assert after("c", "VS", 2) == ["c VS 2", "a PS makes room"]
    assert after("c", "PS", 2) == ["c PS 2"]
    assert after("a", "PS", 5) == ["a PS 5", "b PS makes room", "c VS makes room", "c PS makes room"]
    assert after("a", "VS", 9) == ["a VS 9"]
    assert list(draws._sharing.values()) == [4, 8]


@pytest.mark.parametrize("name, moves", [("surface", True), ("dynamic", False), ("general", False), ("instruction", False)])
def test_only_the_surface_state_base_may_move(draws: Any, name: str, moves: bool) -> None:
    draws._bases, draws._now = {"surface": 0x1000, "dynamic": 0x2000, "general": 0x3000}, SimpleNamespace(bases={})
    assert draws._move_surfaces({**draws._bases, name: 0x9000}) is moves
    assert draws._now.bases == ({Base.SURFACE: 0x9000} if moves else {})
    left = {other: base for other, base in draws._bases.items() if other != name}
    if name in draws._bases:
        assert draws._move_surfaces(left) is moves and draws._now.bases == ({Base.SURFACE: 0} if moves else {})


@pytest.mark.parametrize("change, same", [({}, True), ({"register": 2}, False), ({"bases": {"surface": 0x1000}}, True),
                                          ({"bases": {"surface": 0x2000}}, False), ({"slots": 6}, False), ({"space": "other"}, False),
                                          ({"dispatcher": "other"}, False), ({"latched": None}, False)])  # fmt: skip
def test_draws_are_found_while_their_environment_is_the_same(draws: Any, change: dict[str, Any], same: bool) -> None:
    """Where units have no blocks of state that move. Registers are those that a prepared draw depends on."""
    latched = SimpleNamespace(slots=5)
    draws._latched, draws._space, draws._dispatcher, draws._slots, draws._moves = latched, "space", "dispatcher", 5, False
    draws._bases, draws._registers = {"surface": 0x1000}, {"INSTPM": 1}
    latched.slots = change.get("slots", 5)
    cs = SimpleNamespace(latched=change.get("latched", latched), bases=change.get("bases", draws._bases), dispatcher=change.get(
        "dispatcher", "dispatcher"), space=change.get("space", "space"), get=lambda name: change.get("register", 1))  # fmt: skip
    assert draws._same_environment(cs) is same


@pytest.mark.parametrize("stage, named", [(Stage.PIXELS, TESTS), (Stage.FILL, fill.CLEAR), (Stage.CLIP, "")])
def test_a_fault_where_no_threads_run_names_what_was_done(draws: Any, stage: Stage, named: str) -> None:
    draws._now, draws._draws = SimpleNamespace(stage=stage, prepared=1), {1: SimpleNamespace(loops={})}
    draws._record = guard.FaultRecord(origin=guard.FROM_CODE, address=0x5000, ip=guard.NO_IP)
    cs: Any = SimpleNamespace(space=None)
    with pytest.raises(SoftgenError, match="read at 0x5000") as fault:
        draws._answer(cs, None, None)
    assert [name for name in (TESTS, fill.CLEAR) if name in str(fault.value)] == [named] * bool(named)


@pytest.mark.parametrize("late", [True, False])
def test_the_deadline_of_tests_without_threads_is_that_of_the_draw(draws: Any, late: bool) -> None:
    draws._now, draws._draws = SimpleNamespace(stage=Stage.PIXELS, prepared=1), {1: SimpleNamespace(loops={})}
    draws._loop = SimpleNamespace(tile=7)
    cs: Any = SimpleNamespace(timed_out=lambda: late)
    if not late:
        return draws._answer(cs, None, ReturnReason.DEADLINE)
    with pytest.raises(SoftgenError, match=f"time is up: {TESTS}, tile 7"):
        draws._answer(cs, None, ReturnReason.DEADLINE)


HELPED, GOES_ON = (["follow now", "answered"], True), (["answered"], False)


@pytest.mark.parametrize("why, expected", [
    (ReturnReason.DEADLINE, GOES_ON), (ReturnReason.ESCAPED, HELPED), (ReturnReason.OTHER_MODE, HELPED), (None, HELPED),
])  # fmt: skip
def test_a_draw_whose_threads_needed_python_is_renewed(draws: Any, why: int | None, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one that only looked at its deadline."""
    monkeypatch.setattr(prepared_draws, "DrawState", SimpleNamespace(of=lambda cs: cs))
    monkeypatch.setattr(prepared_draws, "dispatch_context", lambda cs: cs)
    said = list[str]()
    loop = SimpleNamespace(answer=lambda *given: said.append("answered"))
    draw = SimpleNamespace(loops={"PS": loop}, follow=lambda state: said.append(f"follow {state}"))
    draws._now, draws._draws = SimpleNamespace(stage=Stage.PIXELS, prepared=1), {1: draw}
    draws._helped, draws._record = False, None
    draws._answer("now", None, why)
    assert (said, draws._helped) == expected


@pytest.mark.parametrize("parts, expected", [
    ([(0, ReturnReason.DEADLINE)], GOES_ON), ([(0, ReturnReason.DEADLINE)] * 3, GOES_ON), ([(0, ReturnReason.ESCAPED)], HELPED),
    ([(0, ReturnReason.DEADLINE), (0, ReturnReason.OTHER_MODE)], HELPED), ([(11, ReturnReason.DEADLINE)], HELPED),
])  # fmt: skip
def test_so_is_one_of_whose_loops_one_did(draws: Any, parts: list[tuple[int, int]], expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or came to an access that failed. Loops that do not run are not looked at."""
    monkeypatch.setattr(prepared_draws, "DrawState", SimpleNamespace(of=lambda cs: cs))
    monkeypatch.setattr(prepared_draws, "dispatch_context", lambda cs: cs)
    said, given = list[str](), list[Any]()

    def answer_parts(context: str, parts: Any, late: Any) -> None:
        said.append("answered")
        given.extend(parts)

    loops = {"VS": SimpleNamespace(answer_parts=answer_parts)}
    draw: Any = SimpleNamespace(loops=loops, follow=lambda state: said.append(f"follow {state}"))
    running = [SimpleNamespace(signal=signal, result=result) for signal, result in (*parts, (11, ReturnReason.ESCAPED))]
    draws._now, draws._running = SimpleNamespace(stage=Stage.VERTICES, running_count=len(parts)), running
    draws._helped = False
    draws._answer_loops("now", draw)
    assert (said, draws._helped) == expected and given == running[:-1]


@pytest.mark.parametrize("helped, settled, renewed", [(False, True, 0), (True, True, 1), (False, False, 1)])
def test_what_each_stage_of_a_draw_did_is_counted(draws: Any, helped: bool, settled: bool, renewed: int) -> None:
    """Threads, instructions and time. Where the code is not the best yet, the instructions of each are what makes better code pay."""
    now, counted, renewals = DrawStruct(), list[Any](), list[Any]()
    now.counts[:], now.works[:] = range(1, len(now.counts) + 1), [4, 40, 4000, 0, 5, 5000, 3, 30, 3000, 1, 10, 1000]
    statistics = [KernelStatistics(KernelProgram(0x40, b""), "t0") for _ in range(4)]
    plans = SimpleNamespace(targets=["target"])
    draw: Any = SimpleNamespace(runs=7, statistics=statistics, settled=settled, plans=plans)
    memory = SimpleNamespace(user="draw")
    draws.pipeline = SimpleNamespace(memory=memory, front=SimpleNamespace(memory=SimpleNamespace(topology=4)))
    draws._now, draws._draws, draws._shared, draws._moves, draws._helped = now, {0: draw}, prepared_draws.NOTHING, False, helped
    draws._renew = lambda cs, draw, instructions: renewals.append(instructions)
    counters = SimpleNamespace(threads=100, instructions=1000)
    cs: Any = SimpleNamespace(counters=counters, count=lambda names, found: counted.extend(found), drawn=counted.append)
    draws._finish(cs)
    assert counted == [*range(1, len(now.counts) + 1), ["target"]] and draw.runs == 8 and memory.user is None
    assert [(each.dispatches, each.threads, each.instructions) for each in statistics] == [(1, 4, 40), (0, 0, 0), (1, 3, 30), (1, 1, 10)]
    assert [round(each.seconds * 1e9) for each in statistics] == [4000, 0, 3000, 1000]
    assert (counters.threads, counters.instructions) == (108, 1080) and renewals == [(40, 5, 30, 10)] * renewed


@pytest.mark.parametrize("helped, settled, ran, done", [
    (True, True, False, ["follow now", "renew"]), (False, False, False, ["ran (1, 2)"]),
    (False, False, True, ["ran (1, 2)", "follow now", "look"]),
    (True, False, True, ["follow now", "renew", "ran (1, 2)", "follow now", "look"]),
])  # fmt: skip
def test_what_a_draw_has_resolved_is_noted_where_commands_lead_now(draws: Any, helped: bool, settled: bool, ran: bool, done: list[str],
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Other draws may have moved what they share with this one. A draw of which something cannot be compared is forgotten."""
    monkeypatch.setattr(prepared_draws, "DrawState", SimpleNamespace(of=lambda cs: cs))
    said, forgotten = list[str](), list[Any]()
    draw: Any = SimpleNamespace(settled=settled, follow=lambda state: said.append(f"follow {state}"), renew=lambda: said.append("renew"),
                                look=lambda: said.append("look"), ran=lambda counts: said.append(f"ran {counts}") or ran)  # fmt: skip
    draws._helped, draws._forget = helped, forgotten.append
    draws._renew("now", draw, (1, 2))
    assert said == done and not forgotten and not draws._helped

    def refuse() -> None:
        raise NotPrepared("moved")

    draw.renew = draw.look = refuse
    draws._helped = helped
    draws._renew("now", draw, (1, 2))
    assert forgotten == [draw] * (helped or ran)


@pytest.mark.parametrize("gen", [4.5, 7, 8, 9, 11])
def test_pointers_that_move_are_copied_into_headers(gen: float) -> None:
    """Of a pixel shader: binding table, samplers and colour calculator; other bits of their dwords stay."""
    made: Any = object.__new__(PreparedDraw)
    header, page = (ctypes.c_uint32 * 8)(*[0xFFFFFFFF] * 8), catalogue.layout("PS_THREAD_PAYLOAD", gen)
    made.latches, made._headers = SimpleNamespace(layout=lambda name: page), {"PS": ctypes.addressof(header)}
    made._bound = {"PS": SimpleNamespace(sampler_keys=list)}
    fields = {"table PS": "binding_table_pointer", "samplers PS": "sampler_state_pointer", "CC": "color_calculator_state_pointer"}
    for names in ({}, {"CC": 5}, {"table PS": 3, "samplers PS": 4, "CC": 5}):
        made.pointers = SimpleNamespace(names=names)
        wanted = [(number, page.field(fields[name]).low) for name, number in names.items()]
        assert [(copy.pointer, copy.mask, copy.add, copy.into - ctypes.addressof(header)) for copy in made._copies()] == [
            (number, 0xFFFFFFFF & -1 << low % 32, (1 << low % 32) - 1, low // 32 * 4) for number, low in wanted]  # fmt: skip
    made._bound = {"PS": SimpleNamespace(sampler_keys=lambda: [(0x5000, 0x1001), (0x5010, 0x1041), (0x5020, 0xFC1)])}
    made.pointers = SimpleNamespace(names={"samplers PS": 4})
    found = [(copy.pointer, copy.mask, copy.add - USED & 0xFFFFFFFF, copy.into) for copy in made._copies()[1:]]
    expected = [(4, 0xFFFFFFFF, 0, 0x5000), (4, 0xFFFFFFFF, 0x40, 0x5010), (4, 0xFFFFFFFF, 0xFFFFFFC0, 0x5020)]
    assert found == expected, "samplers that messages name are as far from the first as they were"


@pytest.mark.parametrize("name", ["GS", "CLIP", "SF"])
def test_headers_of_stages_have_samplers_where_there_is_a_field_for_them(name: str) -> None:
    unit, fields = SimpleNamespace(per_thread_scratch_space=3), {"scratch": None, "binding_table": 0x47}
    stage: Any = SimpleNamespace(name=name, state=SimpleNamespace(gen=4.5), unit=unit, fields=fields)
    page = catalogue.layout(f"{name}_THREAD_PAYLOAD", 4.5)
    held = page.raw(ThreadStage._header(stage, 0x1234)[0])
    assert (held.binding_table_pointer, held.per_thread_scratch_space) == (0x40, 3)
    assert getattr(held, "sampler_state_pointer", None) == (0x1220 if name == "GS" else None)


@pytest.mark.parametrize("scratch", [None, SimpleNamespace(size=2048)])
def test_what_threads_of_a_stage_have_in_common(scratch: Any) -> None:
    """C code gets header, constants and what is read of entries in bytes."""
    stage: Any = SimpleNamespace(fields={"scratch": scratch}, header=list(range(101, 117)), constants=b"c" * 96, constant_offset=64,
                                 vertex_offset=160, read_bytes=128, unit=SimpleNamespace(vertex_urb_entry_read_offset=3),
                                 thread_mask=0xFF)  # fmt: skip
    loop = SetupLoop()
    ThreadStage.fill(stage, loop, 0x5000, 192, 7)
    found = loop.stage
    assert (found.entries, found.stride, ctypes.string_at(found.constants, 96)) == (0x5000, 192, b"c" * 96)
    assert list(found.header) == [*range(101, 117), *[0] * 8] and found.header_bytes == 64
    assert (found.constant_offset, found.constant_bytes, found.vertex_offset) == (64, 96, 160)
    assert (found.read_offset, found.read_bytes, found.first_slot, found.thread_mask) == (96, 128, 7, 0xFF)
    assert found.scratch_step == (2048 if scratch else 0)
    ThreadStage.fill(stage, loop, 0x5000, 192)
    assert found.first_slot == 0, "the threads of a stage's only loop count from 0"


class NoCommands(MarkedLatched):
    address, slots = 0x7000, 5

    def place(self, name: str) -> None:
        return None

    def raw(self, offset: int, count: int) -> list[int]:
        return []

    def marks(self) -> bytes:
        return b""

    def changed(self, before: bytes, after: bytes) -> list[str]:
        return []


@pytest.mark.parametrize("bases", [{}, {"general": 0x3000}, {"surface": 0x1000}, {"general": 0x3000, "surface": 0x1000}])
@pytest.mark.parametrize("prepares", [True, False])
def test_draws_that_were_prepared_for_another_environment_are_forgotten(draws: Any, bases: dict[str, int], prepares: bool) -> None:
    """Another address space, dispatcher or context; base addresses that no command has set yet are 0."""
    loops = dict.fromkeys("abc")
    draws._draws, draws._sharing, draws._latest, draws._registers = {1: "draw"}, {(1, "PS"): 2}, ["draw"], {"A": 1}
    draws.pipeline, draws._now = SimpleNamespace(stage_loops=loops), DrawStruct(draw_count=1, previous=3)
    dispatcher, latched = SimpleNamespace(prepares=prepares, threads=2), NoCommands()
    cs: Any = SimpleNamespace(latched=latched, dispatcher=dispatcher, space=AddressSpace("s"), bases=bases, generation=generation(4.5))
    assert draws._enter(cs) is prepares
    assert not (draws._draws or draws._sharing or draws._latest or draws._registers or loops)
    now = draws._now
    assert (now.draw_count, now.previous) == (0, 0)
    if prepares:
        assert (now.latches, now.memory, now.host_threads) == (0x7000, ctypes.addressof(cs.space.table), 2)
        assert (now.bases[Base.GENERAL], now.bases[Base.SURFACE]) == (bases.get("general", 0), bases.get("surface", 0))
        assert (draws._latched, draws._space, draws._dispatcher, draws._bases, draws._slots) == (latched, cs.space, dispatcher, bases, 5)
        assert draws._moves and len(draws._running) == 2 and now.running == ctypes.addressof(draws._running)


@pytest.mark.parametrize("latched", [NoCommands(), {}])
@pytest.mark.parametrize("space", [AddressSpace("s"), object()])
def test_draws_are_prepared_where_c_code_finds_commands_and_memory(draws: Any, latched: Any, space: Any) -> None:
    draws._draws, draws._sharing, draws._latest, draws._registers = {}, {}, [], {}
    draws.pipeline, draws._now = SimpleNamespace(stage_loops={}), DrawStruct()
    cs: Any = SimpleNamespace(latched=latched, dispatcher=SimpleNamespace(prepares=True, threads=1), space=space, bases={},
                              generation=generation(9))  # fmt: skip
    assert draws._enter(cs) is (isinstance(latched, NoCommands) and isinstance(space, AddressSpace))


def test_draws_are_kept_in_the_order_of_their_use(draws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest first; one that is too many makes room, with workers of its own and what leads to it."""
    monkeypatch.setattr(prepared_draws, "MOST_DRAWS", 3)
    made: list[Any] = [SimpleNamespace(struct=PreparedStruct(), name=name) for name in "abcd"]
    places = [ctypes.addressof(draw.struct) for draw in made]
    draws._pointers, draws._now = (ctypes.c_uint64 * 3)(), DrawStruct(previous=9)
    draws._draws, draws._sharing = {}, {(place, stage): 1 for place in places for stage in ("VS", "PS")}

    def kept() -> str:
        held = draws._pointers[: draws._now.draw_count]
        assert sorted(held) == sorted(draws._draws)
        return "".join(draws._draws[place].name for place in held)

    found = []
    for draw in made[:3]:
        draws._remember(draw)
        found.append(kept())
    made[1].struct.after, made[2].struct.after = places[0], places[1]
    draws._remember(made[3])
    assert [*found, kept()] == ["a", "ba", "cba", "dcb"] and draws._now.previous == 0
    assert (made[1].struct.after, made[2].struct.after) == (0, places[1])
    assert sorted(draws._sharing) == sorted((place, stage) for place in places[1:] for stage in ("VS", "PS"))
    draws._forget(made[2])
    assert kept() == "db" and made[1].struct.after == 0


@pytest.mark.parametrize("most", range(5))
@pytest.mark.parametrize(("sides", "loops"), [([], 1), ([(128, 127)], 1), ([(128, 128)], 1), ([(128, 255)], 1), ([(128, 256)], 2),
                                              ([(128, 100), (128, 156)], 2), ([(512, 512)], 16), ([(128, 256), (-5, -9)], 2)])  # fmt: skip
def test_host_threads_that_pixels_are_worth(sides: list[tuple[int, int]], loops: int, most: int) -> None:
    """One for each 16384 pixels of the boxes around objects, if there are so many, and one in any case."""
    held = (SetupRecord * 4)(*(SetupRecord(x0=8, y0=16, x1=8 + wide, y1=16 + high) for wide, high in sides))
    assert loop_count(RecordArray(records=ctypes.addressof(held), count=len(sides), capacity=4), most) == max(min(loops, most), 1)


@pytest.mark.parametrize("flags", [True, False])
def test_edges_are_marked_where_vertices_have_edge_flags(flags: bool) -> None:
    marked, chunk = list[tuple[Any, ...]](), SimpleNamespace(vertices=SimpleNamespace(count=6, entries=0, stride=16))
    draw: Any = object.__new__(FrontDraw)
    draw.shader = SimpleNamespace(enabled=False)
    draw.assembly = SimpleNamespace(fill=lambda chunk: None, vertex_ids=1, instance_ids=2, primitive_ids=3, objects_address=4)
    draw.fetch = SimpleNamespace(run=lambda *given: None, structure=SimpleNamespace(has_edge_flag=flags),
                                 mark_edges=lambda *given: marked.append(given[:4]))  # fmt: skip
    draw.fill(None, chunk)
    assert marked == [(1, 2, 6, 4)] * flags


def test_blocks_of_state_keep_the_memory_of_the_last_comparison() -> None:
    """What C code compares is collected again each time: the arrays of the time before are freed."""
    blocks: Any = object.__new__(StateBlocks)
    blocks._pointers, blocks._notes, blocks._kept = {BLEND: BlockPointer(5, 0xFFFFFFC0, 0x400)}, SimpleNamespace(blocks={}), []
    blocks._bound, blocks._values = {}, {BLEND: [(0x1000, 7)]}
    for _ in range(3):
        (found,) = blocks.compared()
        (arrays, ranges) = blocks._kept
        assert (ctypes.addressof(arrays[0]), ctypes.addressof(arrays[1]), ranges) == (found.ranges, found.values, [])
        assert (found.offset, found.mask, found.pointer, found.range_count, found.value_count) == (5, 0xFFFFFFC0, 0x400, 0, 1)


def test_what_units_have_read_of_blocks_of_state() -> None:
    """Sampler states are counted from where they were when plans were made, and addresses wrap; blend state is that of all stages."""
    blend = {"PS": {(0x900, 8): b"colours1"}, "VS": {}, "GS": {(0x910, 8): b"colours2"}}
    samplers = {"PS": {0: b"first samplers..", 0x30: b"last"}, "VS": {0x10: b"one"}, "GS": {}}
    blocks: Any = object.__new__(StateBlocks)
    blocks._dispatches = {"PS": SimpleNamespace(samplers=0x220), "VS": SimpleNamespace(samplers=0xFFE0), "GS": SimpleNamespace(samplers=0)}
    blocks._bound = {stage: SimpleNamespace(dispatch=SimpleNamespace(
        space=AddressSpace("s", 32), resolved=SimpleNamespace(sampler_base=base, samplers=samplers[stage], blend=blend[stage])))
        for stage, base in (("PS", 0x10001), ("VS", 0xFFFF0031), ("GS", 0x5000))}  # fmt: skip
    found = {name: blocks._read_by_units(name) for name in (SAMPLERS + "PS", SAMPLERS + "VS", SAMPLERS + "GS", BLEND, CC)}
    assert found == {SAMPLERS + "PS": {(0x10221, 16): b"first samplers..", (0x10251, 4): b"last"}, SAMPLERS + "VS": {(0x21, 3): b"one"},
                     SAMPLERS + "GS": {}, BLEND: {(0x900, 8): b"colours1", (0x910, 8): b"colours2"}, CC: {}}  # fmt: skip


def test_units_follow_samplers_and_blend_state_of_their_stages() -> None:
    """By as much as the pointers have moved since plans were made; bits beside a pointer do not count, and stages without one stay."""
    slots, moves = {3: 0x11F, 4: 0x20, 5: 0x400}, list[tuple[str, int]]()

    class Unit:
        def __init__(self, stage: str, samplers: int) -> None:
            self.stage, self.dispatch = stage, SimpleNamespace(samplers=samplers, blend_moved=None)

        def move_samplers(self, samplers: int) -> None:
            moves.append((self.stage, samplers))
            self.dispatch.samplers = samplers

    blocks: Any = object.__new__(StateBlocks)
    blocks._latches = SimpleNamespace(latched=SimpleNamespace(raw=lambda offset, count: [slots[offset]][:count]))
    blocks._pointers = {SAMPLERS + "PS": BlockPointer(3, 0xFFFFFFE0, 0x100), SAMPLERS + "VS": BlockPointer(4, 0xFFFFFFE0, 0x20),
                        BLEND: BlockPointer(5, 0xFFFFFFC0, 0x400)}  # fmt: skip
    blocks._bound = {stage: Unit(stage, at) for stage, at in (("PS", 0x2100), ("VS", 0x5020), ("GS", 0x60))}
    blocks._dispatches = {stage: SimpleNamespace(samplers=unit.dispatch.samplers) for stage, unit in blocks._bound.items()}

    def followed(**changes: int) -> tuple[list[tuple[str, int]], set[int]]:
        slots.update({int(name[1:]): value for name, value in changes.items()})
        moves.clear()
        blocks.follow()
        return list(moves), {unit.dispatch.blend_moved for unit in blocks._bound.values()}

    assert followed() == ([], {0})
    assert followed(_3=0x165) == ([("PS", 0x2160)], {0})
    assert followed() == ([], {0})
    assert followed(_4=0, _5=0x4C7) == ([("VS", 0x5000)], {0xC0})
    assert followed(_3=0xE0, _5=0x300) == ([("PS", 0x20E0)], {-0x100})


def test_the_work_of_a_stage_goes_to_the_statistics_of_its_kernel() -> None:
    """Where the engine keeps some; others go where nobody looks."""
    made, kept = object.__new__(PreparedDraw), KernelStatistics(KernelProgram(0x40, b""), "t0")
    loops: Any = {"VS": SimpleNamespace(statistics=kept), "PS": SimpleNamespace(statistics=None)}
    made.loops = loops
    assert [made._statistics(stage) for stage in ("VS", "SF", "PS")] == [kept, NO_STATISTICS, NO_STATISTICS] and kept != NO_STATISTICS


def test_without_a_render_target_a_draw_may_cover_the_largest_surface() -> None:
    assert extent(None) == (1 << 14, 1 << 14)
