"""What a launch did: counts, faults, and on request one row per instruction and thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

from softgen.api.html import table
from softgen.errors import SoftgenError
from softgen.inspect.registers import RegisterLanes


@dataclass(frozen=True)
class TraceRow:
    """An instruction that a thread executed."""

    group: tuple[int, int, int]
    thread: int  # number in the group
    offset: int  # of the instruction in the kernel
    text: str
    channels: int  # execution mask
    changes: tuple[RegisterLanes, ...]  # registers that differ afterwards

    @property
    def registers(self) -> dict[str, tuple[int | float, ...]]:
        """The new values of changed registers, by name: {"r10:d": (0, 1, 2, …)}."""
        return {lanes.name: lanes.after for lanes in self.changes}

    def changed(self) -> list[str]:
        """The changed registers as text: "r10:d = 0 1 2 …"."""
        return [f"{name} = {' '.join(map(str, values))}" for name, values in self.registers.items()]

    def __str__(self) -> str:
        changed = "".join(f"\n          {text}" for text in self.changed())
        return f"{self.group} {self.thread}  {self.offset:#06x}  {self.text}{changed}"


class Trace(Sequence[TraceRow]):
    """Rows in the order of execution. `thread(number, group)` picks one thread's."""

    def __init__(self, rows: Sequence[TraceRow] = ()) -> None:
        self._rows = list(rows)

    def append(self, row: TraceRow) -> None:
        self._rows.append(row)

    def thread(self, number: int = 0, group: tuple[int, int, int] = (0, 0, 0)) -> Trace:
        return Trace([row for row in self._rows if (row.thread, row.group) == (number, group)])

    @overload
    def __getitem__(self, index: int) -> TraceRow: ...
    @overload
    def __getitem__(self, index: slice) -> Trace: ...
    def __getitem__(self, index: int | slice) -> TraceRow | Trace:
        return Trace(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Trace({len(self._rows)} rows)"

    def __str__(self) -> str:
        return "\n".join(map(str, self._rows))

    def _repr_html_(self) -> str:
        rows = ((row.group, row.thread, f"{row.offset:#06x}", row.text, f"{row.channels:#x}", "; ".join(row.changed()))
                for row in self._rows)  # fmt: skip
        return table(f"{len(self._rows)} instructions", ("group", "thread", "offset", "instruction", "channels", "changed"), rows)


@dataclass
class Run:
    """A launch that has ended."""

    threads: int = 0
    instructions: int = 0
    seconds: float = 0.0
    faults: list[SoftgenError] = field(default_factory=list)  # with on_fault="collect"
    remarks: list[str] = field(default_factory=list)  # no errors, but what software should not do; each once for a Gpu
    trace: Trace = field(default_factory=Trace, repr=False)

    def _repr_html_(self) -> str:
        rows = [("threads", f"{self.threads:,}"), ("instructions", f"{self.instructions:,}"), ("seconds", f"{self.seconds:.6f}")]
        rows += [("fault", str(fault)) for fault in self.faults] + [("remark", text) for text in self.remarks]
        return table("run", ("", ""), rows)
