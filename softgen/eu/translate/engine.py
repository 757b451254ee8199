"""Translations compiled and kept: in memory by kernel, on disk by the bytes of its code (store.py)."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from softgen.errors import SoftgenError
from softgen.eu import native
from softgen.eu.engine_protocol import AffineRange, CompiledFunction
from softgen.eu.interpreter import KernelProgram
from softgen.eu.threaded.engine import ThreadedEngine
from softgen.eu.translate.key import NAME, Key
from softgen.eu.translate.store import TranslationStore
from softgen.lanes.compile import jit

NARROWEST = 8  # channels of a mask


class Translator:
    name = "t1"

    def __init__(self, observe: bool = False, loops: bool = True, messages: bool = True, anywhere: bool = False,
                 store: TranslationStore | None = None) -> None:  # fmt: skip
        """Options as in Key."""
        self.options, self.messages, self.store = (observe, loops, messages, anywhere), messages, store or TranslationStore()
        self._known: WeakKeyDictionary[KernelProgram, dict[Key, CompiledFunction | None]] = WeakKeyDictionary()
        self._looked: WeakKeyDictionary[KernelProgram, set[Key]] = WeakKeyDictionary()
        self._making = threading.Lock()

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        found = self.translated(program, control, simd, full, payload)
        return found or ThreadedEngine(self.messages).function(program, control, simd, full, entry)

    def translated(self, program: KernelProgram, control: int, simd: int, full: bool,
                   payload: tuple[AffineRange, ...] = ()) -> CompiledFunction | None:  # fmt: skip
        """The kernel as a function; None where it cannot be one."""
        key, known = self._key(control, simd, full, payload), self._known.setdefault(program, {})
        if key not in known:
            with self._making:
                if key not in known:
                    known[key] = self._kept(program, key) or self._make(program, key)
        return known[key]

    def lookup_cached(self, program: KernelProgram, control: int, simd: int, full: bool,
                      payload: tuple[AffineRange, ...] = ()) -> CompiledFunction | None:  # fmt: skip
        """The kernel as a function that needs no compilation, from memory or disk; None where there is none. The disk is asked once:
        every dispatch comes here."""
        key, known = self._key(control, simd, full, payload), self._known.setdefault(program, {})
        looked = self._looked.setdefault(program, set())
        if key not in known and key not in looked:
            looked.add(key)
            if found := self._kept(program, key):
                known[key] = found
        return known.get(key)

    def ran(self, program: KernelProgram, instructions: int) -> None:
        """Ignored: t1 does not profile."""

    def holds(self, program: KernelProgram, chosen: CompiledFunction) -> bool:
        return not chosen.program

    def settled(self, chosen: CompiledFunction) -> bool:
        """Translations are; other kernels run on t0."""
        return not chosen.program

    def yield_to_foreground(self) -> None:
        """Kernels are translated before they run."""

    def _key(self, control: int, simd: int, full: bool, payload: tuple[AffineRange, ...]) -> Key:
        return Key(control, max(simd, NARROWEST), full and simd >= NARROWEST, *self.options, payload)

    def _kept(self, program: KernelProgram, key: Key) -> CompiledFunction | None:
        kept = self.store.load(program, key)
        if kept is None:
            return None
        try:
            code = jit.LoadedCode(kept.data, (NAME,), native.imports())
        except SoftgenError:
            return None  # whole, but of no use: make it again
        program.reach = max(program.reach, kept.size)
        needs = kept.facts["needs"] and tuple((start, size) for start, size in kept.facts["needs"])
        indices, in_order = frozenset(kept.facts["indices"]), kept.facts["in_order"]
        return CompiledFunction(code.address(NAME), 0, kept.facts["clean"], True, True, needs, code, indices, in_order)

    def _make(self, program: KernelProgram, key: Key) -> CompiledFunction | None:
        from softgen.eu.translate.control_flow import Untranslatable  # kernels that were translated before need no translator
        from softgen.eu.translate.kernel import translate

        try:
            made = translate(program, key)
        except Untranslatable:
            return None
        data = jit.compile_object(made.ir, jit.host())
        jit.check(data, (NAME,), native.imports())
        code = jit.LoadedCode(data, (NAME,), native.imports())
        facts = {"clean": made.clean, "indices": sorted(made.indices), "needs": made.needs, "in_order": made.in_order}
        self.store.save(program, key, made.size, data, facts)
        return CompiledFunction(code.address(NAME), 0, made.clean, True, True, made.needs, code, made.indices, made.in_order)
