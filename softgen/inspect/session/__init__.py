"""Sessions: a capture that is executed as far as one likes, and everything that can be read there. Debugger, page and profiler are clients.

In    a capture directory, AUB file, error state or raw batch; a POSITION.
Out   events, decoded state, memory, render targets; threads of kernels, stepped forwards and back.

session.py     Session: events, seek, state, memory, targets, thread
events.py      the submissions and commands of a capture, numbered as they are executed
execution.py   CaptureExecution: a run on a device that pauses before any command
control.py     ThreadControl: hands threads of dispatches and draws to whoever wants to step them
thread.py      ThreadCursor: one EU thread; steps, steps back, registers by lane
edit.py        fields and kernels changed before a capture is executed
undo.py        what an instruction changed, to take it back
"""

from softgen.inspect.session.events import Event
from softgen.inspect.session.session import Session
from softgen.inspect.session.thread import ThreadCursor

__all__ = ["Event", "Session", "ThreadCursor"]
