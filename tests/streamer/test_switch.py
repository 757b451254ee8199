"""MI_SET_CONTEXT: what belongs to a context when a ring's commands switch it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from softgen.command import CommandStreamer, ConstantUrbEntry
from softgen.device.gpu import COMMANDS
from softgen.streamer.execute import Streamer
from tests.streamer.bench import DATA, GPR, RING, Bench, count_draw


def test_a_context_that_a_ring_switches_keeps_its_state() -> None:
    bench = Bench("hsw")
    base = bench.pack("STATE_BASE_ADDRESS", dynamic_state_base_address=0x5000, dynamic_state_base_address_modify_enable=1)
    here, there = (bench.pack("MI_SET_CONTEXT", logical_context_address=at) for at in (0x7000, 0x9000))
    bench.ring(here, bench.load({GPR: 5}), base, there, bench.load({GPR: 6}))
    assert bench.gpu.contexts[0x7000, "render"].latched.bases == {"dynamic": 0x5000}
    assert bench.gpu.contexts[0x9000, "render"].latched.bases == {} and bench.gpu.read_register(GPR) == 6
    assert bench.gpu.read_register(0x2180) == 0x9001  # CCID, whose lowest bit says that it is valid
    bench.ring(here)
    assert bench.gpu.read_register(GPR) == 5
    bench.ring(there, bench.pack("MI_SET_CONTEXT", logical_context_address=0x7000, restore_inhibit=1))
    assert bench.gpu.contexts[0x7000, "render"].latched.bases == {}


@pytest.mark.parametrize("contexts", [(), (0x7000,), (0x7000, 0x9000), (0x7000, 0x9000, 0x7000)])
def test_a_flush_waits_for_work_of_any_context(contexts: tuple[int, ...]) -> None:
    """Commands that a draw wrote are executed after a flush that stalls, with and without switches in between, state and all."""
    def draw(cs: Streamer, cmd: object) -> None:
        cs.counters.draws += 1
        cs.space.write32(end, bench.pack("MI_NOOP")[0])

    bench = Bench("hsw")
    bench.gpu.interface = replace(bench.gpu.interface, commands={**COMMANDS, "3DPRIMITIVE": draw})
    first, flush = bench.pack("3DPRIMITIVE"), bench.pack("PIPE_CONTROL", command_streamer_stall_enable=1)
    base = bench.pack("STATE_BASE_ADDRESS", dynamic_state_base_address=0x5000, dynamic_state_base_address_modify_enable=1)
    switches = [command for at in contexts for command in (bench.pack("MI_SET_CONTEXT", logical_context_address=at), base)]
    end = RING + 4 * sum(map(len, [first, *switches, flush]))
    bench.ring(first, *switches, flush, bench.pack("MI_USER_INTERRUPT"))
    assert not bench.causes() and not any(context.unflushed for context in bench.gpu.contexts.values())
    bench.ring(first, *switches)
    assert {at for (at, _), context in bench.gpu.contexts.items() if context.unflushed} == {contexts[-1] if contexts else 0}


@pytest.mark.parametrize("forced", [0, 1])
def test_a_context_that_is_restored_again_has_its_work_unflushed(forced: int) -> None:
    bench = Bench("hsw")
    bench.gpu.interface = replace(bench.gpu.interface, commands={**COMMANDS, "3DPRIMITIVE": count_draw})
    here = bench.pack("MI_SET_CONTEXT", logical_context_address=0x7000, force_restore=forced)
    bench.ring(here, bench.pack("3DPRIMITIVE"), here)
    assert {at for (at, _), context in bench.gpu.contexts.items() if context.unflushed} == {0x7000}


class Collecting:
    """A pipeline that notes in which context it completes its work."""

    def __init__(self) -> None:
        self.COMMANDS = {"3DPRIMITIVE": lambda cs, cmd: cs.collected()}
        self.completed: list[int] = []

    def new_state(self) -> object:
        return object()

    def finish(self, cs: CommandStreamer) -> None:
        self.completed.append(cs.get("CCID"))


@pytest.mark.parametrize("forced", [0, 1])
def test_a_switch_completes_what_its_context_has_collected(forced: int) -> None:
    """Before the state is saved; the context that is current already is switched to only where it is forced."""
    bench, pipeline = Bench("hsw"), Collecting()
    bench.gpu.interface = replace(bench.gpu.interface, commands={**COMMANDS, **pipeline.COMMANDS}, pipelines=(pipeline,))
    here, there = (bench.pack("MI_SET_CONTEXT", logical_context_address=at, force_restore=forced) for at in (0x7000, 0x9000))
    draw = bench.pack("3DPRIMITIVE")
    bench.ring(here, draw, here, bench.load({GPR: 1}), draw, there)
    assert pipeline.completed == [0x7001] * (1 + forced)
    assert not any(context.unfinished for context in bench.gpu.contexts.values())


PREDICATES, COUNTS = (0x2400, 0x2404, 0x240C, 0x2410, 0x2414, 0x2418), (0x2310, 0x2314, 0x2344, 0x2354)
COUNTS_7 = (*COUNTS, 0x2304, 0x230C, 0x2290, 0x2294)


@pytest.mark.parametrize("gpu, registers", [
    ("g45", COUNTS), ("ivb", (*PREDICATES, *COUNTS_7)), ("hsw", (GPR, GPR + 4, GPR + 8, GPR + 124, *PREDICATES, *COUNTS_7)),
])  # fmt: skip
def test_an_engine_that_is_driven_through_registers_keeps_those_of_its_contexts(gpu: str, registers: tuple[int, ...]) -> None:
    """Both dwords of each, and all of a row; a context that is new finds what the one before it left."""
    bench = Bench(gpu)
    streamer = bench.gpu.streamer("render", bench.space, bench.space, bench.gpu.saved_context(0, "render"), 0x2000)

    def run(*commands: list[int]) -> None:
        dwords = list(itertools.chain(*commands))
        bench.put(RING, dwords)
        streamer.start_ring(RING, 0, 4 * len(dwords), 0x1000)
        streamer.run_to_end()

    def values() -> list[int]:
        return [bench.gpu.registers.read(register) for register in registers]

    here, there = (bench.pack("MI_SET_CONTEXT", logical_context_address=at) for at in (0x7000, 0x9000))
    first, second = ([start + number for number in range(len(registers))] for start in (100, 200))
    run(here)
    for register, value in zip(registers, first, strict=True):
        bench.gpu.registers.write(register, value)
    run(there)
    assert values() == first
    for register, value in zip(registers, second, strict=True):
        bench.gpu.registers.write(register, value)
    run(here)
    assert values() == first
    run(there)
    assert values() == second


@pytest.mark.behaviour("G45-CS-13", shows="action")
@pytest.mark.parametrize("again", ["", "3DSTATE_PIPELINED_POINTERS", "MEDIA_STATE_POINTERS", "CONSTANT_BUFFER"])
@pytest.mark.parametrize("gpu", ["gm965", "g45"])
def test_pointers_that_are_invalid_are_not_restored(gpu: str, again: str) -> None:
    """A PIPE_CONTROL marks those to pipeline and media state and the constant buffer; one that comes again before the switch is kept
    (G45 1747-1751, 1834-1835). G965 and GM965 have no such field."""
    bench = Bench(gpu)
    bench.put(DATA, [0x11223344] * 16)
    here, there = (bench.pack("MI_SET_CONTEXT", logical_context_address=at) for at in (0x7000, 0x9000))
    set_state = {"3DSTATE_PIPELINED_POINTERS": bench.pack("3DSTATE_PIPELINED_POINTERS", pointer_to_vs_state=0x20),
                 "MEDIA_STATE_POINTERS": bench.pack("MEDIA_STATE_POINTERS", vfe_state_pointer=0x40),
                 "CONSTANT_BUFFER": bench.pack("CONSTANT_BUFFER", valid=1, buffer_starting_address=DATA, buffer_length=0),
                 "3DSTATE_LINE_STIPPLE": bench.pack("3DSTATE_LINE_STIPPLE", line_stipple_pattern=3)}  # fmt: skip
    flush = bench.pack("PIPE_CONTROL", **({"indirect_state_pointers_disable": 1} if gpu == "g45" else {}))
    bench.ring(here, *set_state.values(), flush, *([set_state[again]] if again else []), there, here)
    context = bench.gpu.contexts[0x7000, "render"]
    held = {name for name in set_state if name in context.latched}
    held |= {"CONSTANT_BUFFER"} if context.pipelines[ConstantUrbEntry].data == bytes.fromhex("44332211") * 16 else set()
    assert held == (set(set_state) if gpu == "gm965" else {"3DSTATE_LINE_STIPPLE", again} - {""})
