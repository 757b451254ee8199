"""Loops over threads that records of draws share, where threads read no surfaces: wherever their binding tables are, one loop does."""

from __future__ import annotations

from dataclasses import replace

from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.dispatcher_protocol import Dispatcher
from softgen.threads.workers.kept_loop import KeptLoop


class StageLoops:
    """The shared loops of one context, by their dispatches without binding tables and samplers."""

    def __init__(self) -> None:
        self._loops: dict[ThreadDispatch, KeptLoop] = {}
        self._readers: set[ThreadDispatch] = set()

    def clear(self) -> None:
        self._loops.clear()
        self._readers.clear()

    def get(self, dispatcher: Dispatcher, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop | None:
        """The loop for a dispatch; None for threads that read surfaces."""
        key = replace(dispatch, binding_table=0, samplers=0)
        if key in self._readers:
            return None
        made = self._loops.get(key)
        if made is None or not made.program.current(context):
            made = dispatcher.prepare(context, key)
            if _reads(made):
                self._readers.add(key)
                return None
            self._loops[key] = made
        return made

    def reads(self, loop: KeptLoop) -> bool:
        """Whether threads of a loop here have read a surface after all."""
        found = self._loops.get(loop.dispatch) is loop and _reads(loop)
        if found:
            self._readers.add(loop.dispatch)
            del self._loops[loop.dispatch]
        return found


def _reads(loop: KeptLoop) -> bool:
    found = loop.shared.bound.dispatch.resolved
    return bool(found.states or found.surfaces or found.entries or found.samplers or found.behind)
