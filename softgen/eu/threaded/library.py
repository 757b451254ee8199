"""The handlers of this process, by what they are made from: compiled together when they are first needed, and kept on disk.

The cache has one object for each lot that was compiled together, and per generation an index: which lot has a handler, and how far it
reaches from where its operands start. Both go by a stamp of everything handlers are made from.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Iterable
from functools import cache, partial
from typing import Any, NamedTuple

from softgen.cache import Cache, default_folder
from softgen.errors import SoftgenError
from softgen.eu import native
from softgen.eu.threaded.handlers import HandlerKind, Reach, write, write_bytecode
from softgen.eu.threaded.shapes import text
from softgen.eu.threaded.state import Escape
from softgen.lanes.bytecode.program import BytecodeProgram
from softgen.lanes.compile import jit
from softgen.lanes.compile.compile_policy import in_background
from softgen.lanes.compile.source_fingerprint import source_fingerprint
from softgen.lanes.compile.tiers import in_turn, uncollected
from softgen.lanes.llvm.text import LlvmModule

MOST = 256  # handlers compiled at a time, which takes about a second: no program keeps its threads waiting longer
AHEAD = 8  # the same of handlers that nobody has asked for: between two lots one can stop
RECENT = 16  # lots that are loaded before a program asks for them, which takes 2 ms each


Index = dict[str, tuple[str, Reach]]


class Handler(NamedTuple):
    address: int  # 0: the reference does it
    reach: Reach = Reach((), ())
    lot: str = ""  # which one of the cache has it


REFERENCE = Handler(0)


class HandlerBatch(NamedTuple):
    """Handlers that were compiled together: the names of all, what those reach that are not the reference's, the lot's name and code."""

    names: dict[HandlerKind, str]
    reaches: dict[HandlerKind, Reach]
    name: str = ""
    code: jit.LoadedCode | None = None


@cache
def stamp() -> str:
    """Names what handlers are made from."""
    return jit.key(source_fingerprint(), jit.host())


def name_of(kind: HandlerKind) -> str:
    mode, parts = kind.mode, [name_of(part) for part in kind.parts]
    identity = (kind.what, text(kind.shape), mode.rounding, mode.alt, sorted(mode.flushes), kind.accumulates, kind.single, kind.vector,
                parts, kind.makers)  # fmt: skip
    return "h" + hashlib.sha256(repr(identity).encode()).hexdigest()[:24]


@jit.in_flight
def compile_quickly(ir: str, target: jit.Target) -> bytes:
    """Handlers are short: what O1 does for them beyond these passes takes as long as the rest of the compiler and gains nothing. Nor need
    each clear the upper halves of vector registers for the next."""
    llvm = jit._llvm()
    if target.has("avx"):
        target = target._replace(features=f"{target.features},-vzeroupper")
    module, machine = jit.parse(ir), jit._target_machine(target)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=jit.OPTIMIZE))
    return jit.generate(module, passes, builder, machine)


def recent_of(loaded: Any) -> list[str]:
    """A list of lots out of the cache, checked; a ValueError where it is anything else."""
    if type(loaded) is not list or {*map(type, loaded)} - {str}:
        raise ValueError("no list of lots")
    return loaded


def index_of(loaded: Any) -> Index:
    """An index out of the cache, checked; a ValueError, TypeError or AttributeError where it is anything else."""
    index = {name: (lot, Reach(tuple(extents), tuple(indices))) for name, (lot, extents, indices) in loaded.items()}
    for lot, reach in index.values():
        if type(lot) is not str or not {*map(type, reach.extents), *map(type, reach.indices)} <= {int}:
            raise ValueError("no index")
    return index


class Library:
    """Handlers of one generation."""

    def __init__(self, gen: float, cache: Cache | None = None) -> None:
        self.gen = gen
        self.cache = Cache(default_folder()) if cache is None else cache
        self.handlers: dict[HandlerKind, Handler] = {}
        self.codes: dict[str, jit.LoadedCode] = {}
        self.index: Index | None = None
        self.lots: dict[str, list[str]] = {}
        self.used: dict[str, None] = {}  # lots that programs had handlers of
        self.lock = threading.Lock()
        self.programs: dict[HandlerKind, BytecodeProgram] = {}  # of handlers that are bytecode
        self.compiling: set[HandlerKind] = set()  # in the background

    def get(self, kinds: Iterable[HandlerKind], needed: bool = True) -> dict[HandlerKind, Handler]:
        """Handlers of these, made now where there are none; of more than MOST new ones at a time, the rest is left out.

        Where functions are compiled in the background, handlers are bytecode until then, and those that are not `needed` are left out."""
        wanted = dict.fromkeys(kinds)
        with self.lock:
            missing = {kind: name_of(kind) for kind in wanted if kind not in self.handlers}
            if missing:
                missing = self._from_cache(missing)
            if missing and in_background():
                missing = self._interpret(missing, needed)
            if missing:
                self._enter(self._compile(dict(itertools.islice(missing.items(), MOST))))
            found = {kind: self.handlers[kind] for kind in wanted if kind in self.handlers}
            self.used |= {handler.lot: None for handler in found.values() if handler.lot}
        return found

    # -- bytecode --------------------------------------------------------------------------------------------------------

    def _interpret(self, missing: dict[HandlerKind, str], needed: bool) -> dict[HandlerKind, str]:
        """Handlers as bytecode, as far as there is some; what must be compiled now. All are compiled in the background, those that are not
        `needed` when a processor is free."""
        later: dict[HandlerKind, str] = {}
        for kind, name in missing.items():
            if not needed:
                later[kind] = name
                continue
            try:
                with uncollected():
                    program, reach = write_bytecode(kind)
            except (Escape, SoftgenError):
                continue
            self.handlers[kind], self.programs[kind], later[kind] = Handler(program.address, reach), program, name
        asked = {kind: name for kind, name in later.items() if kind not in self.compiling}
        self.compiling.update(asked)
        lots = [dict(itertools.islice(asked.items(), first, first + MOST)) for first in range(0, len(asked), MOST)]
        for lot in lots:
            in_turn(partial(self._promote, lot), later=not needed)
        return {kind: name for kind, name in missing.items() if kind not in later}

    def _promote(self, lot: dict[HandlerKind, str]) -> None:
        """Compile handlers that are bytecode, or wanted for the next program; on a host thread that no program waits for."""
        made = self._compile(lot)
        with self.lock:
            self._enter(made)
            for kind in lot:
                program, handler = self.programs.pop(kind, None), self.handlers[kind]
                if program is not None and handler.address:
                    program.become(handler.address)
                    self.used[made.name] = None
            self.compiling.difference_update(lot)

    # -- ahead of need ---------------------------------------------------------------------------------------------------

    def compile_next(self, names: dict[HandlerKind, str]) -> bool:
        """Compile the next of these that are neither here nor in the cache; False where none is left, which is remembered."""
        with self.lock:
            index, here = self._open(), self.handlers.keys() | self.compiling
            missing = ((kind, name) for kind, name in names.items() if kind not in here and name not in index)
            lot = dict(itertools.islice(missing, AHEAD))
            self.compiling.update(lot)
        if lot:
            self._promote(lot)
        else:
            self.cache.save(self._complete, b"all")
        return bool(lot)

    def is_complete(self) -> bool:
        """Whether `compile_next` has come to its end, in this process or before."""
        return self.cache.load(self._complete) is not None

    @property
    def _complete(self) -> str:
        return f"{self._key}-ahead"

    # -- on disk -------------------------------------------------------------------------------------------------------

    @property
    def _key(self) -> str:
        return f"threaded-{self.gen:g}-{stamp()}"

    def open(self) -> None:
        """Read the index of what is on disk, which `get` does otherwise."""
        with self.lock:
            self._open()

    def _open(self) -> Index:
        if self.index is None:
            self.index = self.cache.load_json(self._key, index_of) or {}
            for name, (lot, _) in self.index.items():
                self.lots.setdefault(lot, []).append(name)
        return self.index

    def load_recent(self) -> None:
        """Load what the processes before had from the cache: most programs are run again."""
        for lot in self._recent():
            with self.lock:
                self._open()
                self._has(lot)

    def keep_recent(self) -> None:
        """Note what programs had from the cache, for the processes to come."""
        before, used = self._recent(), list(self.used)[-RECENT:]
        if not set(used) <= set(before):
            others = [lot for lot in before if lot not in used]
            self.cache.save(f"{self._key}-recent", json.dumps([*used, *others][:RECENT]).encode())

    def _recent(self) -> list[str]:
        return (self.cache.load_json(f"{self._key}-recent", recent_of) or [])[:RECENT]

    def _has(self, lot: str) -> bool:
        """Whether a lot is loaded, from the cache if it has it."""
        return lot in self.codes or lot in self.lots and (data := self.cache.load(lot)) is not None and self._load(lot, data)

    def _from_cache(self, missing: dict[HandlerKind, str]) -> dict[HandlerKind, str]:
        """Loads what the cache has; what is still missing after that."""
        index = self._open()
        lots: dict[str, list[HandlerKind]] = {}
        for kind, name in missing.items():
            if name in index:
                lots.setdefault(index[name][0], []).append(kind)
        for lot, kinds in lots.items():
            if not lot:
                self.handlers.update(dict.fromkeys(kinds, REFERENCE))
            elif self._has(lot):
                for kind in kinds:
                    name, code = missing[kind], self.codes[lot]
                    self.handlers[kind] = Handler(code.address(name), index[name][1], lot)
        return {kind: name for kind, name in missing.items() if kind not in self.handlers}

    def _load(self, lot: str, data: bytes) -> bool:
        try:
            self.codes[lot] = jit.LoadedCode(data, tuple(self.lots[lot]), native.imports())
        except SoftgenError:
            return False  # whole, but of no use: make it again
        return True

    # -- made now ------------------------------------------------------------------------------------------------------

    def _compile(self, missing: dict[HandlerKind, str]) -> HandlerBatch:
        """Compile handlers together."""
        module = LlvmModule()
        made: dict[HandlerKind, Reach] = {}
        for kind, name in missing.items():
            reach = write(kind, name, module)
            if reach is not None:
                made[kind] = reach
        if not made:
            return HandlerBatch(missing, made)
        names = tuple(missing[kind] for kind in made)
        data = compile_quickly(module.text(), jit.host())
        jit.check(data, names, native.imports())
        lot = hashlib.sha256((self._key + " ".join(names)).encode()).hexdigest()
        code = jit.LoadedCode(data, names, native.imports())
        self.cache.save(lot, data)
        return HandlerBatch(missing, made, lot, code)

    def _enter(self, compiled: HandlerBatch) -> None:
        """Keep what was compiled, in memory and in the index on disk."""
        missing, made, lot, code = compiled
        assert self.index is not None
        if code is not None:
            code = self.codes.setdefault(lot, code)  # programs may be linked to what another host thread compiled meanwhile
        for kind, name in missing.items():
            self.handlers[kind] = Handler(code.address(name), made[kind], lot) if code is not None and kind in made else REFERENCE
        # Another process may have written an index meanwhile: what is lost from it costs a compilation.
        self.index |= {name: (lot if kind in made else "", made.get(kind, REFERENCE.reach)) for kind, name in missing.items()}
        kept = {name: (lot, *reach) for name, (lot, reach) in self.index.items()}
        self.cache.save(self._key, json.dumps(kept, separators=(",", ":")).encode())


@cache
def library(gen: float) -> Library:
    return Library(gen)
