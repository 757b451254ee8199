"""A program that answers no questions in the middle of a submission: who shares its buffers does not wait for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from softgen.driver.run import protocol
from softgen.driver.run.process import read_ranges
from softgen.driver.shim import shim_h
from softgen.driver.uapi.i915_drm import I915_EXEC_FENCE_IN
from tests.driver.execbuffer import buffer, relocations, row, submit
from tests.driver.program import Gpu, Program, served
from tests.driver.test_hostile import Instant

PATIENCE = 20.0  # seconds; only a hang takes so long
NOWHERE = 0x10000  # no memory of the program: it is asked


@pytest.fixture
def gpu() -> Iterator[Gpu]:
    with served("kbl", Instant()) as gpu:
        yield gpu


class Stalling(Program):
    """Stops, in the middle of an ioctl, at the first question of a kind."""

    kind = 0  # of no question

    def __init__(self, gpu: Gpu) -> None:
        super().__init__(gpu.folder)
        gpu.programs.append(self)
        self.asked, self.on = threading.Event(), threading.Event()

    def _serve(self, kind: int, *rest: Any) -> None:
        if kind == self.kind:
            self.asked.set()
            assert self.on.wait(2 * PATIENCE)
        super()._serve(kind, *rest)


@pytest.mark.parametrize("kind, where, fields", [
    (shim_h.READ, NOWHERE, {}),
    (shim_h.GIVE, 0, {"flags": I915_EXEC_FENCE_IN, "fence": 0}),
    (shim_h.WRITE, 0, {}),
])  # fmt: skip
def test_a_shared_buffer_is_relocated(gpu: Gpu, kind: int, where: int, fields: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is asked for relocations, for a descriptor, or to take its relocations back."""
    other, program = gpu.program(), Stalling(gpu)
    if kind == shim_h.WRITE:
        monkeypatch.setattr(protocol, "write_range", lambda pid, address, data: False)
    monkeypatch.setattr(protocol, "read_ranges", lambda pid, ranges, into: ranges[0][0] != NOWHERE and read_ranges(pid, ranges, into))
    monkeypatch.setattr(protocol, "read_small", lambda pid, address, size: None)
    shared, target, own = buffer(other), buffer(other), buffer(program)
    descriptor = other.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=shared).fd
    imported = program.ioctl("DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=descriptor).handle
    entries = {**relocations(program, {"target": own, "offset": 8, "presumed": 1}), **({"relocations_at": where} if where else {})}

    def stall() -> None:
        program.kind = kind
        try:
            submit(program, [row(own), row(imported, **entries)], **fields)
        except OSError:
            pass  # it does not matter any more

    stalled = threading.Thread(target=stall, daemon=True)
    stalled.start()
    assert program.asked.wait(PATIENCE)
    second = threading.Thread(
        target=submit, args=(other, [row(target), row(shared, **relocations(other, {"target": target, "offset": 8}))]), daemon=True)
    second.start()
    second.join(PATIENCE / 4)
    waits = second.is_alive()
    program.on.set()
    for thread in (stalled, second):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not waits
