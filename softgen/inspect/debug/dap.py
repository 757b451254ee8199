"""The Debug Adapter Protocol on two streams: an editor's requests in, answers and events out.

One EU thread is a thread of the protocol: the one that execution stands in. `launch` takes `capture`, and optionally `gpu`, `sources` and
`at`, a POSITION. Breakpoints are lines of disassembly or of sources, or, as function breakpoints, what `break` of the terminal takes.
`evaluate` takes registers (r12:f), and the terminal's commands after a `>`.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.cli.output import Paint
from softgen.inspect.cli.recorded import RecordedCapture
from softgen.inspect.debug.commands import Commands
from softgen.inspect.debug.debugger import Debugger, DebuggerStop
from softgen.inspect.debug.sources import KernelSource
from softgen.inspect.debug.variables import Variables
from softgen.inspect.session.session import Session

THREAD = 1
FRAME = 1
LARGEST = 1 << 24  # bytes of a message
MOST_MEMORY = 1 << 20
Arguments = dict[str, Any]


def serve(stream: IO[bytes], out: IO[bytes], args: argparse.Namespace) -> int:
    """Answer requests until the editor disconnects; the exit code."""
    return Adapter(stream, out, args.capture, args.gpu, args.source).run()


class Adapter:
    """A debug session of an editor."""

    def __init__(self, stream: IO[bytes], out: IO[bytes], capture: str | None = None, gpu: str | None = None,
                 sources: list[str] | None = None) -> None:  # fmt: skip
        self.stream, self.out, self.capture, self.gpu, self.sources = stream, out, capture, gpu, sources or []
        self._sequence = 0
        self._ended = False
        self._debugger: Debugger | None = None
        self._variables: Variables | None = None
        self._after: Callable[[], None] | None = None  # what is done once the answer has been sent
        self._at = ""  # where it begins
        self._lines: dict[str, list[int]] = {}  # numbers of breakpoints by source
        self._functions: list[int] = []
        self._instructions: list[int] = []
        self._data: list[int] = []

    # -- messages ------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        while not self._ended:
            request = self.read()
            if request is None:
                break
            self.answer(request)
        if self._debugger is not None:
            self._debugger.close()
        return 0

    def read(self) -> dict[str, Any] | None:
        """The next message; None at the end of the stream."""
        length = None
        while (line := self.stream.readline(1 << 12)) not in (b"\r\n", b"\n"):
            if not line:
                return None
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
        if length is None or length > LARGEST:
            raise UsageError("a message of the Debug Adapter Protocol has a Content-Length of 16 MiB at most")
        try:
            found = json.loads(self.stream.read(length))
        except ValueError as error:
            raise UsageError(f"a message of the Debug Adapter Protocol is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise UsageError("a message of the Debug Adapter Protocol is an object")
        return found

    def send(self, message: dict[str, Any]) -> None:
        self._sequence += 1
        data = json.dumps({"seq": self._sequence} | message).encode()
        self.out.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.out.flush()

    def event(self, name: str, **body: Any) -> None:
        self.send({"type": "event", "event": name, "body": body})

    def answer(self, request: dict[str, Any]) -> None:
        """Execute a request; its answer, then what follows from it."""
        command = str(request.get("command"))
        made: dict[str, Any] = {"type": "response", "request_seq": request.get("seq", 0), "command": command, "success": True}
        handler = getattr(self, f"on_{command}", None)
        try:
            if handler is None:
                raise UsageError(f"there is no request {command!r}")
            arguments = request.get("arguments")
            made["body"] = handler(arguments if isinstance(arguments, dict) else {}) or {}
        except (SoftgenError, KeyError, TypeError, ValueError) as error:
            text = f"{command} lacks {error}" if isinstance(error, KeyError) else str(error)
            made |= {"success": False, "message": text, "body": {"error": {"id": 1, "format": text}}}
            self._after = None
        self.send(made)
        after, self._after = self._after, None
        if after is not None:
            after()

    # -- beginning and end ---------------------------------------------------------------------------------------------

    def on_initialize(self, _: Arguments) -> Arguments:
        self._after = lambda: None
        names = ("ConfigurationDoneRequest", "FunctionBreakpoints", "StepBack", "SetVariable", "DisassembleRequest", "ReadMemoryRequest",
                 "InstructionBreakpoints", "DataBreakpoints", "EvaluateForHovers", "SteppingGranularity", "TerminateRequest",
                 "ConditionalBreakpoints")  # fmt: skip
        return {f"supports{name}": True for name in names}

    def on_launch(self, arguments: Arguments) -> None:
        capture = arguments.get("capture") or self.capture
        if not capture:
            raise UsageError("launch what? `capture` is the path of a capture")
        session = Session(capture, arguments.get("gpu") or self.gpu)
        compiled = RecordedCapture(capture, capture).binaries()
        self._debugger = Debugger(session, [*self.sources, *arguments.get("sources", [])], compiled)
        self._at = arguments.get("at", "")
        self._after = lambda: self.event("initialized")

    on_attach = on_launch

    def on_configurationDone(self, _: Arguments) -> None:
        self._after = lambda: self._stopped(self._begin())

    def _begin(self) -> DebuggerStop:
        debugger = self.debugger
        if self._at:
            return debugger.go_to(self._at)
        return debugger.cont()

    def on_disconnect(self, _: Arguments) -> None:
        self._ended = True

    def on_terminate(self, _: Arguments) -> None:
        self._after = lambda: self.event("terminated")

    @property
    def debugger(self) -> Debugger:
        if self._debugger is None:
            raise UsageError("nothing was launched")
        return self._debugger

    # -- moving --------------------------------------------------------------------------------------------------------

    def on_continue(self, _: Arguments) -> Arguments:
        self._move(lambda: self.debugger.cont())
        return {"allThreadsContinued": True}

    def on_reverseContinue(self, _: Arguments) -> None:
        self._move(lambda: self.debugger.cont_back())

    def on_next(self, arguments: Arguments) -> None:
        instruction = arguments.get("granularity") == "instruction"
        self._move(lambda: self.debugger.step() if instruction else self.debugger.line())

    on_stepIn = on_next

    def on_stepBack(self, arguments: Arguments) -> None:
        instruction = arguments.get("granularity") == "instruction"
        self._move(lambda: self.debugger.back() if instruction else self.debugger.line_back())

    def on_stepOut(self, _: Arguments) -> None:
        self._move(lambda: self.debugger.cont())

    def on_pause(self, _: Arguments) -> None:
        """Execution always stands while requests are answered."""

    def _move(self, move: Callable[[], DebuggerStop]) -> None:
        _ = self.debugger
        self._after = lambda: self._stopped(self._safely(move))

    def _safely(self, move: Callable[[], DebuggerStop]) -> DebuggerStop:
        try:
            return move()
        except SoftgenError as error:
            return DebuggerStop("error", None, str(error))

    def _stopped(self, stop: DebuggerStop) -> None:
        self._variables = None
        if stop.position is None:
            if stop.text:
                self.event("output", category="stderr" if stop.reason == "error" else "console", output=f"{stop.text}\n")
            self.event("terminated")
            return
        kind = {"step": "step", "start": "entry"}.get(stop.reason, "step")
        kind = "data breakpoint" if stop.reason.startswith("watch") else "breakpoint" if stop.numbers else kind
        self.event("stopped", reason=kind, description=stop.reason, text=str(stop.position), threadId=THREAD, allThreadsStopped=True,
                   hitBreakpointIds=list(stop.numbers))  # fmt: skip

    # -- where it stands -----------------------------------------------------------------------------------------------

    def on_threads(self, _: Arguments) -> Arguments:
        cursor = self._debugger.cursor if self._debugger is not None else None
        return {"threads": [{"id": THREAD, "name": str(cursor.offered.position) if cursor is not None else "no thread"}]}

    def on_stackTrace(self, _: Arguments) -> Arguments:
        cursor = self.debugger.cursor
        if cursor is None:
            return {"stackFrames": [], "totalFrames": 0}
        kernel = self.debugger.source()
        file, line = self.debugger.where()
        frame = {"id": FRAME, "name": f"{kernel.name} {cursor.position}", "line": line, "column": 1, "source": self._source(kernel, file),
                 "instructionPointerReference": self._reference(kernel, cursor.position.offset or 0)}  # fmt: skip
        return {"stackFrames": [frame], "totalFrames": 1}

    def _source(self, kernel: KernelSource, file: str) -> Arguments:
        path = Path(file)
        if file != kernel.path and path.is_file():
            return {"name": path.name, "path": str(path.resolve())}
        return {"name": kernel.path, "path": kernel.path, "sourceReference": int(kernel.digest[:7], 16) + 1}

    def on_source(self, arguments: Arguments) -> Arguments:
        wanted = arguments.get("sourceReference") or arguments.get("source", {}).get("sourceReference")
        for kernel in self.debugger.sources.known():
            if int(kernel.digest[:7], 16) + 1 == wanted:
                return {"content": kernel.text}
        raise UsageError("there is no such source")

    def on_scopes(self, _: Arguments) -> Arguments:
        cursor = self.debugger.cursor
        if cursor is None:
            return {"scopes": []}
        self._variables = Variables(cursor, self.debugger.named_values())
        return {"scopes": self._variables.scopes()}

    def on_variables(self, arguments: Arguments) -> Arguments:
        number = int(arguments["variablesReference"])
        return {"variables": self._variables.of(number) if self._variables is not None else []}

    def on_setVariable(self, arguments: Arguments) -> Arguments:
        self.debugger._standing().write(f"{arguments['name']}={arguments['value'].replace(' ', ',')}")
        return self.on_evaluate({"expression": arguments["name"]}) | {"value": arguments["value"]}

    def on_evaluate(self, arguments: Arguments) -> Arguments:
        text = str(arguments["expression"]).strip()
        if text.startswith(">"):
            before = self.debugger.cursor.position if self.debugger.cursor is not None else None
            lines = list(Commands(self.debugger, Paint(False)).run(text[1:]))
            cursor = self.debugger.cursor
            if cursor is not None and cursor.position != before:
                self._after = lambda: self._stopped(DebuggerStop("step", cursor.position, cursor.text))
            return {"result": "\n".join(lines), "variablesReference": 0}
        variables = self._variables or Variables(self.debugger._standing())
        self._variables = variables
        row = variables.lanes(text, self.debugger.values(text))
        return {"result": row["value"], "variablesReference": row["variablesReference"]}

    # -- breakpoints ---------------------------------------------------------------------------------------------------

    def on_setBreakpoints(self, arguments: Arguments) -> Arguments:
        source = arguments["source"]
        file = str(source.get("path") or source.get("name") or "")
        for number in self._lines.pop(file, []):
            self.debugger.breakpoints.pop(number, None)
        answers, numbers = [], []
        for wanted in arguments.get("breakpoints", []):
            condition = f" if {wanted['condition']}" if wanted.get("condition") else ""
            made = self.debugger.add(f"{file}:{int(wanted['line'])}{condition}")
            numbers.append(made.number)
            answers.append({"id": made.number, "verified": True, "line": int(wanted["line"]), "source": source})
        self._lines[file] = numbers
        return {"breakpoints": answers}

    def on_setFunctionBreakpoints(self, arguments: Arguments) -> Arguments:
        conditions = [f" if {point['condition']}" if point.get("condition") else "" for point in arguments["breakpoints"]]
        texts = [point["name"] + condition for point, condition in zip(arguments["breakpoints"], conditions, strict=True)]
        return {"breakpoints": self._replace(self._functions, texts)}

    def on_setInstructionBreakpoints(self, arguments: Arguments) -> Arguments:
        texts = []
        for point in arguments["breakpoints"]:
            kernel, offset = self._place(point["instructionReference"], int(point.get("offset", 0)))
            texts.append(f"{kernel.path}:{kernel.listing.get(offset, 0)}")
        return {"breakpoints": self._replace(self._instructions, texts)}

    def _replace(self, numbers: list[int], texts: list[str]) -> list[Arguments]:
        for number in numbers:
            self.debugger.breakpoints.pop(number, None)
        numbers.clear()
        answers: list[Arguments] = []
        for text in texts:
            try:
                made = self.debugger.add(text)
                numbers.append(made.number)
                answers.append({"id": made.number, "verified": True})
            except UsageError as error:
                answers.append({"verified": False, "message": str(error)})
        return answers

    def on_setExceptionBreakpoints(self, _: Arguments) -> Arguments:
        return {"breakpoints": []}

    def on_dataBreakpointInfo(self, arguments: Arguments) -> Arguments:
        name = str(arguments["name"])
        return {"dataId": name, "description": f"changes of {name} in this thread", "accessTypes": ["write"]}

    def on_setDataBreakpoints(self, arguments: Arguments) -> Arguments:
        for number in self._data:
            self.debugger.watches.pop(number, None)
        made = [self.debugger.watch(str(point["dataId"])) for point in arguments["breakpoints"]]
        self._data = [watch.number for watch in made]
        return {"breakpoints": [{"id": number, "verified": True} for number in self._data]}

    # -- code and memory -----------------------------------------------------------------------------------------------

    def _reference(self, kernel: KernelSource, offset: int) -> str:
        """An instruction as the protocol names it: the kernel's digest above the offset."""
        return f"{int(kernel.digest[:7], 16) << 24 | offset:#x}"

    def _place(self, reference: str, more: int = 0) -> tuple[KernelSource, int]:
        number = int(reference, 0) + more
        for kernel in self.debugger.sources.known():
            if int(kernel.digest[:7], 16) == number >> 24:
                return kernel, number & 0xFFFFFF
        raise UsageError(f"{reference} is no instruction of a kernel that ran")

    def on_disassemble(self, arguments: Arguments) -> Arguments:
        kernel, offset = self._place(arguments["memoryReference"], int(arguments.get("offset") or 0))
        lines, offsets = kernel.text.splitlines(), sorted(kernel.listing)
        at = next((number for number, known in enumerate(offsets) if known >= offset), len(offsets)) + int(
            arguments.get("instructionOffset") or 0
        )
        rows = []
        for number in range(at, at + int(arguments["instructionCount"])):
            if 0 <= number < len(offsets):
                line = kernel.listing[offsets[number]]
                row = {"address": self._reference(kernel, offsets[number]), "instruction": lines[line - 1].strip()}
                file, source_line = kernel.line(offsets[number])
                rows.append(row | {"location": self._source(kernel, file), "line": source_line})
            else:
                rows.append({"address": f"{max(number, 0):#x}", "instruction": "", "presentationHint": "invalid"})
        return {"instructions": rows}

    def on_readMemory(self, arguments: Arguments) -> Arguments:
        address, size = int(arguments["memoryReference"], 0) + int(arguments.get("offset") or 0), int(arguments["count"])
        if not 0 <= size <= MOST_MEMORY:
            raise UsageError(f"readMemory: at most {MOST_MEMORY} bytes")
        cursor = self.debugger._standing()
        data = cursor.space.read_mapped(address, size) if size else b""
        return {"address": f"{address:#x}", "data": base64.b64encode(data).decode(), "unreadableBytes": size - len(data)}
