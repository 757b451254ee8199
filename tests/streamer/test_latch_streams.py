"""Random batches: the same with state latched in bulk and one command at a time, and the state that a plain model of merging predicts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.catalogue import layout, names
from softgen.bits.field import BitField, Group
from softgen.bits.layout import Layout
from softgen.device.gpu import COMMANDS, GpuDevice
from softgen.errors import SoftgenError
from softgen.memory.store import MemfdBuffer
from softgen.streamer.latch_rules import longest
from softgen.trace.work import Work
from tests.streamer.bench import OTHER, Bench

GPUS = ("gm965", "g45", "ivb", "hsw", "bdw", "skl", "icl")
LARGE, LARGE_BYTES = 0x40_0000, 0x8000

# -- random commands -----------------------------------------------------------------------------------------------------


def state_pages(gen: float, engine: str) -> list[Layout]:
    """Commands of an engine that only set state and have no handler, and those whose handlers latch them."""
    pages = (layout(name, gen) for name in names("command", gen))
    found = [page for page in pages if page.effect is not None and page.effect.sets_state and engine in page.engines]
    return [page for page in found if page.name not in COMMANDS or page.name == "PIPELINE_SELECT"]


def random_command(page: Layout, bits: random.Random, length: int | None = None) -> list[int]:
    """A state command with random contents; indices are small, so that commands meet."""
    assert page.header is not None
    most = min(longest(page), page.dwords + 24)
    count = length or (bits.randint(page.dwords, most) if page.header.length is not None else page.dwords)
    if page.effect is not None and page.effect.rule == "gates" and length is None:
        count = bits.choice((page.dwords, longest(page)))  # not the middle of a field
    dwords = [bits.getrandbits(32) if bits.random() < 0.9 else 0 for _ in range(count)]
    dwords[0] = page.header.value | dwords[0] & ~page.header.claimed
    if page.header.length is not None:
        dwords[0] |= count - page.header.bias << page.header.length[1]
    assert page.effect is not None
    for field in page.fields:
        if field.name in page.effect.acts_when and field.low < 32 * count:
            dwords[field.low // 32] &= ~(field.mask >> 32 * (field.low // 32))
    for group in page.groups:
        for field in (item for item in group.fields if item.name in page.effect.by):
            for start in range(group.start, 32 * count - group.size + 1, group.size):
                at = start + field.low
                dwords[at // 32] &= ~(((1 << field.width) - 1 ^ 3) << at % 32)
    return dwords


# -- the model -------------------------------------------------------------------------------------------------------------


def value(bits: int, field: BitField) -> int:
    """A field's bits where they stand."""
    return bits & field.mask


def joined(dwords: Iterable[int]) -> int:
    return sum(dword << 32 * position for position, dword in enumerate(dwords))


class Model:
    """Latched state by command and by field, as the pages describe merging (bits/field.py, Effect): slow and plain."""

    def __init__(self) -> None:
        self.state: dict[str, dict[Any, dict[str, int]]] = {}  # command -> index -> field -> its bits

    def latch(self, page: Layout, dwords: list[int]) -> None:
        effect, items = page.effect, self.state.setdefault(page.name, {})
        assert effect is not None
        whole = joined(dwords)
        group = next((item for item in page.groups if any(field.name in effect.by for field in item.fields)), None)
        if effect.rule == "index" and group is not None:
            for number in range(group.times(32 * len(dwords))):
                element = whole >> group.start + number * group.size & (1 << group.size) - 1
                index = self.index(group.fields, effect.by, element)
                items[index] = self.gated(group.fields, items.get(index, {}), element, group.size)
        elif effect.rule == "index":
            items[self.index(page.fields, effect.by, whole)] = {field.name: value(whole, field) for field in page.fields}
        elif effect.rule == "gates":
            items[0] = self.gated(page.fields, items.get(0, {}), whole, 32 * len(dwords))
        elif effect.rule == "mask":
            items[0] = self.masked(page, items.get(0, {}), whole)
        elif effect.rule == "position":
            old, size = items.get(0, {"all": 0, "count": 0}), 32 * len(dwords)
            items[0] = {"all": old["all"] >> size << size | whole, "count": max(old["count"], len(dwords))}
        elif effect.rule == "":
            items[0] = {field.name: value(whole, field) for field in page.fields}

    def index(self, fields: tuple[BitField, ...], by: tuple[str, ...], bits: int) -> int:
        found, shift = 0, 0
        for name in by:
            field = next(item for item in fields if item.name == name)
            found |= value(bits, field) >> field.low << shift
            shift += field.width
        return found

    def gated(self, fields: tuple[BitField, ...], old: dict[str, int], bits: int, size: int) -> dict[str, int]:
        new, gates = dict(old), {name for field in fields for name in field.gates}
        said = {field.name: value(bits, field) for field in fields if field.low < size}
        for field in (item for item in fields if item.low < size):
            if field.gates and not any(said.get(name) for name in field.gates):
                new.setdefault(field.name, 0)
            elif field.name in gates:
                new[field.name] = said[field.name] | old.get(field.name, 0)
            else:
                new[field.name] = said[field.name]
        return new

    def masked(self, page: Layout, old: dict[str, int], bits: int) -> dict[str, int]:
        assert page.effect is not None
        (by,) = (field for field in page.fields if field.name in page.effect.by)
        base = by.low // 32 * 32
        changed = value(bits, by) >> by.low << base  # the low bits of its dword
        low = (1 << by.low) - (1 << base)
        before = sum(old.values())
        now = bits & ~low | bits & changed | before & low & ~changed
        found = {field.name: value(now, field) for field in page.fields}
        found[by.name] |= old.get(by.name, 0)
        return found


def compare(gpu: GpuDevice, engine: str, model: Model, gen: float) -> None:
    latched = gpu.contexts[0, engine].latched
    for name, items in model.state.items():
        page = layout(name, gen)
        assert page.effect is not None
        group = next((item for item in page.groups if any(field.name in page.effect.by for field in item.fields)), None)
        _, dwords = latched.dwords(name)
        if page.effect.rule == "position":
            assert dwords == unjoined(items[0]["all"], len(dwords)) and len(dwords) == items[0]["count"], name
        elif group is not None and page.effect.rule == "index":
            compare_elements(name, group, items, joined(dwords))
        elif page.effect.rule == "index":
            found = latched.by_index(name)
            assert set(found) == set(items), name
            for index, record in found.items():
                expected = page.raw(unjoined(sum_of(page.fields, items[index]), longest(page)))
                assert [getattr(record, f.name) for f in page.fields] == [getattr(expected, f.name) for f in page.fields], name
        else:
            whole, fields = joined(dwords), page.fields
            assert {f.name: value(whole, f) for f in fields} == {f.name: items[0].get(f.name, 0) for f in fields}, name


def unjoined(bits: int, count: int) -> list[int]:
    return [bits >> 32 * position & 0xFFFFFFFF for position in range(count)]


def sum_of(fields: tuple[BitField, ...], bits: dict[str, int]) -> int:
    found = 0
    for field in fields:
        found |= bits[field.name]
    return found


def compare_elements(name: str, group: Group, items: dict[int, dict[str, int]], whole: int) -> None:
    for position, index in enumerate(sorted(items)):
        element = whole >> group.start + position * group.size & (1 << group.size) - 1
        assert {field.name: value(element, field) for field in group.fields} == items[index], (name, index)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("engine", ["render", "video", "video_enhance"])
@given(seed=st.integers(0, 1 << 32))
def test_random_state_is_what_a_plain_model_of_merging_says(gpu: str, engine: str, seed: int) -> None:
    bits, bench = random.Random(seed), Bench(gpu)
    gen = bench.device.generation.number
    pages = state_pages(gen, engine)
    if not pages:
        pytest.skip(f"{gpu} has no {engine} engine")
    merging = [page for page in pages if page.effect is not None and page.effect.rule] or pages
    chosen = bits.choices(merging, k=4) + bits.choices(pages, k=2)
    bench.space.map(LARGE, MemfdBuffer(LARGE_BYTES, "large"))
    model, commands = Model(), []
    for page in bits.choices(chosen, k=30):
        dwords = random_command(page, bits)
        commands.append(dwords)
        model.latch(page, dwords)
    bench.put(LARGE, *commands, bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.execute(Work(engine, bench.space, LARGE))
    compare(bench.gpu, engine, model, gen)


# -- in bulk and one by one ----------------------------------------------------------------------------------------------------


class Stream:
    """A random batch at the end of mapped memory, of state and whatever may happen between state commands."""

    def __init__(self, gpu: str, engine: str, seed: int) -> None:
        self.gpu, self.engine, self.bits = gpu, engine, random.Random(seed)
        self.bench = Bench(gpu)
        self.pages = state_pages(self.bench.device.generation.number, engine)
        self.always = self.top("MI_SET_PREDICATE", "predicate_enable")
        self.chosen = self.bits.sample(self.pages, min(6, len(self.pages)))
        self.goes_on = self.bits.random() < 0.5  # after errors
        self.second = [self.command() for _ in range(self.bits.randint(0, 12))]
        self.first = [self.command(True) for _ in range(self.bits.randint(1, 60))]
        self.cut = self.bits.random() < 0.3  # memory ends before the batch does
        self.start = LARGE + (self.bits.randrange(0x1000) & ~3)
        if self.cut:
            size = 4 * sum(map(len, self.first))
            self.start = LARGE + LARGE_BYTES - self.bits.randrange(4, size + 1, 4)

    def command(self, calls: bool = False) -> list[int]:
        bench, bits = self.bench, self.bits
        match bits.choices(("state", "length", "act", "store", "noop", "load", "skip", "call", "garbage", "privileged"),
                           (60, 3, 1, 6, 3, 3, 4, 3 if calls else 0, 0.3, 1))[0]:  # fmt: skip
            case "length":
                page = bits.choice(self.chosen)
                if page.header is None or page.header.length is None:
                    return [0]
                return random_command(page, bits, bits.randint(max(page.header.bias, 1), 40))
            case "act":
                return [dword | 0xF8000000 for dword in bench.pack("3DSTATE_WM_HZ_OP")] if self.has("3DSTATE_WM_HZ_OP") else [0]
            case "store":
                at = bits.randrange(0, 0x2000, 4)
                return bench.store(at, random_command(bits.choice(self.chosen), bits)[0], LARGE)
            case "load":
                return bench.load({0x2600: bits.getrandbits(32)})
            case "skip" if self.has("MI_SET_PREDICATE"):
                return bench.pack("MI_SET_PREDICATE", predicate_enable=bits.choice((0, self.always)))
            case "call" if self.has("MI_BATCH_BUFFER_START"):
                return bench.start(OTHER, **self.level())
            case "garbage":
                return [bits.getrandbits(32)]
            case "privileged" if self.has("MI_ARB_ON_OFF"):
                return bench.pack("MI_ARB_ON_OFF")
            case "state":
                return random_command(bits.choice(self.chosen), bits)
        return [0]

    def level(self) -> dict[str, int]:
        fields = {field.name for field in layout("MI_BATCH_BUFFER_START", self.bench.device.generation.number).fields}
        privilege = ("non_privileged", "address_space_indicator")
        wanted = {"second_level_batch_buffer": 1, **{name: self.bits.randint(0, 1) for name in privilege}}
        return {name: number for name, number in wanted.items() if name in fields}

    def top(self, name: str, field: str) -> int:
        """The largest value of a field, 0 where a generation does not have the command."""
        return (1 << layout(name, self.bench.device.generation.number).field(field).width) - 1 if self.has(name) else 0

    def has(self, name: str) -> bool:
        return name in names("command", self.bench.device.generation.number)

    def run(self, trace: Any) -> dict[str, Any]:
        bench, polls, errors = Bench(self.gpu), itertools.count(), []
        end = bench.pack("MI_BATCH_BUFFER_END")

        def on_error(error: SoftgenError) -> bool:
            errors.append(f"{type(error).__name__}: {error}")
            return self.goes_on

        bench.gpu = GpuDevice(bench.device, clock=lambda: 7, timed_out=lambda: next(polls) > 5000, on_error=on_error, trace=trace)
        bench.space.map(LARGE, MemfdBuffer(LARGE_BYTES, "large"))
        bench.put(OTHER, *self.second, end)
        dwords = [*itertools.chain(*self.first), *end]
        bench.put(self.start, dwords[: (LARGE + LARGE_BYTES - self.start) // 4])
        try:
            bench.gpu.execute(Work(self.engine, bench.space, self.start))
        except SoftgenError as error:
            errors.append(f"{type(error).__name__}: {error}")
        context = bench.gpu.contexts[0, self.engine]
        latched = context.latched
        return {"errors": errors, "counters": vars(bench.gpu.counters), "registers": bench.gpu.registers.values, "own": context.registers,
                "remarks": list(bench.gpu.remarks), "marks": latched.marks().rstrip(b"\0"),
                "state": {name: latched.dwords(name)[1] for name in latched},
                "bases": latched.bases, "records": {name: tuple(record) for name, record in latched.items()},
                "items": {name: {index: tuple(item) for index, item in latched.by_index(name).items()} for name in latched
                          if (layout(name, bench.device.generation.number).effect or page_less()).rule == "index"},
                "data": bench.data(8), "unflushed": context.unflushed}  # fmt: skip


def page_less() -> Any:
    raise AssertionError("a latched command without an effect")


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("engine", ["render", "video"])
@given(seed=st.integers(0, 1 << 32))
def test_random_batches_are_the_same_in_bulk_and_one_by_one(gpu: str, engine: str, seed: int) -> None:
    """Tracing takes the slow path, one command after another."""
    if not state_pages(Bench(gpu).device.generation.number, engine):
        pytest.skip(f"{gpu} has no {engine} engine")
    stream = Stream(gpu, engine, seed)
    fast, slow = stream.run(None), stream.run(lambda topic, text: None)
    if not any("time is up" in error for error in slow["errors"] + fast["errors"]):
        assert fast == slow
