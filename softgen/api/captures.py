"""Captures, AUB files, error states and raw batches: their commands, and what they do when executed again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgen.api.html import table
from softgen.bits import registers
from softgen.errors import UsageError
from softgen.trace.file import open_trace
from softgen.trace.replay import Report, replay
from softgen.trace.work import WorkTrace

if TYPE_CHECKING:
    import PIL.Image

    from softgen.inspect.profile.probe import Probe
    from softgen.inspect.session import Session


@dataclass(frozen=True, repr=False)
class State:
    """A structure that a command points to."""

    name: str
    address: int
    fields: dict[str, Any]
    dwords: tuple[int, ...] = ()
    certain: bool = True  # False: the number of structures is a guess

    def __repr__(self) -> str:
        return f"State({self.name} at {self.address:#x})"

    def _repr_html_(self) -> str:
        return table(f"{self.name} at {self.address:#x}", ("field", "value"), _rows(self.fields))


@dataclass(frozen=True)
class KernelCode:
    """A kernel that a command points to."""

    address: int
    stage: str


@dataclass(frozen=True, repr=False)
class DecodedCommand:
    """A command of a batch: fields by name, enumerated ones as {"value", "name"}, groups as lists."""

    name: str | None  # None: no page describes it
    address: int
    batch: int
    dwords: tuple[int, ...]
    fields: dict[str, Any]
    problems: tuple[str, ...] = ()
    states: list[State] = field(default_factory=list)
    kernels: list[KernelCode] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        """A field's value; the name of an enumerated one, where it has one."""
        found = self.fields[name]
        return _plain(found)

    def __repr__(self) -> str:
        return f"Command({self.name or 'unknown'} at {self.address:#x}, {len(self.dwords)} dwords)"

    def __str__(self) -> str:
        return f"{self.address:#014x}  {self.name or f'unknown command {self.dwords[0]:#010x}'}"

    def _repr_html_(self) -> str:
        shown = table(str(self), ("field", "value"), _rows(self.fields))
        return shown + "".join(state._repr_html_() for state in self.states)


@dataclass(repr=False)
class ReplayReport:
    """What a replay did."""

    report: Report
    images: list[PIL.Image.Image] = field(default_factory=list)  # render targets; empty until drawing is simulated

    @property
    def fine(self) -> bool:
        """Whether everything ran and every expectation was met."""
        return self.report.fine

    @property
    def submissions(self) -> int:
        return self.report.submissions

    @property
    def commands(self) -> int:
        return self.report.counters.commands

    @property
    def threads(self) -> int:
        return self.report.counters.threads

    @property
    def instructions(self) -> int:
        return self.report.counters.instructions

    @property
    def expectations(self) -> tuple[int, int]:
        """Met and not met."""
        return self.report.passed, len(self.report.failed)

    @property
    def faults(self) -> list[str]:
        return [str(trouble) for trouble in self.report.faults]

    @property
    def unsupported(self) -> list[str]:
        return [str(trouble) for trouble in self.report.unsupported]

    def __str__(self) -> str:
        met, failed = self.expectations
        return (f"{self.submissions} submissions, {self.commands} commands, {self.threads} threads, {self.instructions} instructions; "
                f"expectations: {met} met, {failed} not met; {len(self.faults)} faults, {len(self.unsupported)} unsupported")  # fmt: skip

    def __repr__(self) -> str:
        return f"ReplayReport({self})"

    def _repr_html_(self) -> str:
        met, failed = self.expectations
        rows: list[tuple[object, object]] = [
            ("submissions", self.submissions), ("commands", self.commands), ("threads", self.threads), ("instructions", self.instructions),
            ("expectations met", met), ("expectations not met", failed)]  # fmt: skip
        rows += [("fault", text) for text in self.faults] + [("unsupported", text) for text in self.unsupported]
        return table("replay", ("", ""), rows)


class Capture:
    """A capture directory, AUB file, error state, hang dump or raw batch. Iterating gives its commands."""

    def __init__(self, path: str | os.PathLike[str], gpu: str | None = None, engine: str = "render") -> None:
        if not isinstance(path, str | os.PathLike):
            raise UsageError(f"a capture is opened by its path, not from {type(path).__name__}; softgen.decode takes bytes")
        self.path, self._gpu, self._engine = Path(path), gpu, engine
        self._trace: WorkTrace = open_trace(path, gpu, engine)
        if engine not in (engines := registers.bases(self._trace.device.generation.number)):
            raise UsageError(f"{self.gpu} has no engine {engine!r}; it has {', '.join(engines)}")

    @property
    def gpu(self) -> str:
        return self._trace.device.name

    @property
    def notes(self) -> Sequence[str]:
        """What is odd about the file, as far as it has been read."""
        return self._trace.notes

    def __iter__(self) -> Iterator[DecodedCommand]:
        return _commands(self._trace)

    def replay(self, engine: str = "auto", threads: int | None = None, time_limit: float | None = None) -> ReplayReport:
        """Execute it on the GPU it was recorded for, and check what it expects."""
        from softgen.api.machine import deadline, dispatcher

        trace = open_trace(self.path, self._gpu, self._engine)
        return ReplayReport(replay(trace, timed_out=deadline(time_limit), groups=dispatcher(engine, threads)))

    def probe(self, *probes: Probe) -> None:
        """Execute it while probes are told what its kernels do.

        >>> import softgen
        >>> class Bytes(softgen.Probe):
        ...     def accesses(self, rows):
        ...         print(int(rows["size"].sum()), "bytes,", int(rows["write"].sum()), "writes")
        >>> softgen.open("tests/data/kbl-vk-compute").probe(Bytes())
        768 bytes, 64 writes
        """
        from softgen.inspect.profile.probing import ProbeRun
        from softgen.inspect.session import Session

        ProbeRun(Session(self.path, self._gpu), probes).run()

    def session(self, engine: str = "auto", threads: int | None = None) -> Session:
        """An execution that pauses where one likes: before commands, and within the threads of draws and dispatches.

        >>> import softgen
        >>> thread = softgen.open("tests/data/kbl-vk-compute").session().thread("2:17/cs/g1.t0#3")
        >>> step = thread.step()
        >>> step.text, step.changes[0].after[:2]
        ('add (16|M0) r3.0<1>:d r17.0<8;8,1>:d r1.6<0;1,0>:d {Compacted}', (1, 1))
        >>> str(thread.back())
        '2:17/cs/g1.t0+0x28#3'
        """
        from softgen.inspect.session import Session

        return Session(self.path, self._gpu, engine, threads)

    def __repr__(self) -> str:
        return f"Capture({os.fspath(self.path)!r}, {self.gpu})"


def open(path: str | os.PathLike[str], gpu: str | None = None, engine: str = "render") -> Capture:
    """Open a capture directory, AUB file, error state or hang dump; for a raw batch, `gpu` and `engine` say what it is for.

    >>> import softgen
    >>> capture = softgen.open("tests/data/kbl-vk-compute")
    >>> capture.gpu
    'kbl'
    >>> report = capture.replay()
    >>> report.fine, report.threads
    (True, 4)
    """
    return Capture(path, gpu, engine)


def decode(source: str | os.PathLike[str] | bytes | bytearray | memoryview, gpu: str | None = None,
           engine: str = "render") -> Iterator[DecodedCommand]:  # fmt: skip
    """The commands of a capture, or of a raw batch in bytes, each with the state and kernels it points to.

    >>> import softgen
    >>> walker = next(c for c in softgen.decode("tests/data/kbl-vk-compute") if c.name == "GPGPU_WALKER")
    >>> walker["simd_size"], walker["thread_group_id_x_dimension"]
    ('simd16', 4)
    >>> [command.name for command in softgen.decode(bytes.fromhex("0000000000000005"), gpu="kbl")]
    ['MI_NOOP', 'MI_BATCH_BUFFER_END']
    """
    if not isinstance(source, bytes | bytearray | memoryview):
        return iter(Capture(source, gpu, engine))
    if gpu is None:
        raise UsageError("bytes do not say which GPU they are for; name it with gpu=")
    data = bytes(source)
    if not data or len(data) % 4:
        raise UsageError(f"a batch is whole dwords, not {len(data)} bytes")
    return _decode_bytes(data, gpu, engine)


def _decode_bytes(data: bytes, gpu: str, engine: str) -> Iterator[DecodedCommand]:
    descriptor = os.memfd_create("batch", os.MFD_CLOEXEC)  # no folder has to be writable, and nothing stays if the rest is not asked for
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(data)
        yield from Capture(f"/proc/self/fd/{descriptor}", gpu, engine)
    finally:
        os.close(descriptor)


def _commands(trace: WorkTrace) -> Iterator[DecodedCommand]:
    """Commands with what follows each of them, from the records of `softgen decode --json`."""
    from softgen.inspect.cli.decode import Tally, json_object
    from softgen.inspect.decode.decoding import Decoder

    tally, command = Tally(), None
    for _, items in Decoder(trace).work():
        for item in items:
            found = json_object(item, tally)
            if "batch" in found and "name" in found:
                if command is not None:
                    yield command
                command = DecodedCommand(found["name"], found["address"], found["batch"], tuple(found["dwords"]), found["fields"],
                                  tuple(found.get("problems", ())))  # fmt: skip
            elif command is not None and "state" in found:
                command.states.append(State(found["state"], found["address"], found["fields"], tuple(found["dwords"]),
                                            found.get("certain", True)))  # fmt: skip
            elif command is not None and "kernel" in found:
                command.kernels.append(KernelCode(found["kernel"], found["stage"]))
        if command is not None:
            yield command
            command = None


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"value", "name"}:
        return value["name"] if value["name"] is not None else value["value"]
    return value


def _rows(fields: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        if isinstance(value, list):
            for index, element in enumerate(value):
                yield from _rows(element, f"{prefix}{name}[{index}].")
        else:
            plain = _plain(value)
            yield f"{prefix}{name}", f"{plain:#x}" if isinstance(plain, int) and plain > 0xFFFF else str(plain)
