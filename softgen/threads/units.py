"""Shared functions connected to the threads of a group: message handlers by shared-function ID."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softgen.shared_functions.dataport import DataPort, LocalMemory, Surfaces
from softgen.shared_functions.gateway import Gateway
from softgen.shared_functions.sampler import SamplerPort, Samplers
from softgen.shared_functions.spawner import Spawner
from softgen.threads.dispatch import DispatchContext, ThreadDispatch

Handlers = dict[int, Any]


def surfaces(context: DispatchContext, dispatch: ThreadDispatch) -> Surfaces:
    return Surfaces(context.generation, context.space, context.bases, dispatch.binding_table)


def samplers(context: DispatchContext, dispatch: ThreadDispatch) -> Samplers:
    return Samplers(context.generation, context.space, context.bases, dispatch.samplers)


def handlers(gen: float, units: tuple[str, ...], surfaces: Surfaces, samplers: Samplers, local: LocalMemory, threads: int,
             notify: Callable[[], None]) -> Handlers:  # fmt: skip
    """Handlers of the units that a dispatch has. `notify` is called when `threads` threads have reached the barrier."""
    made: dict[str, Callable[[], Handlers]] = {
        "data port": lambda: DataPort(surfaces, local).handlers(),
        "sampler": lambda: SamplerPort(surfaces, samplers).handlers(),
        "gateway": lambda: Gateway(gen, threads, notify).handlers(),
        "spawner": lambda: Spawner(gen).handlers(),
    }
    found: Handlers = {}
    for unit in units:
        found |= made[unit]()
    return found
