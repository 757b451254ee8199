"""The exceptions of softgen. Each message names the place, what was found and what was expected."""

from __future__ import annotations

from typing import Any


class SoftgenError(Exception):
    """Base class of softgen's errors; the command line prints the message without a traceback."""

    position: Any = None  # the Position (position.py) of what failed, as far as it is known
    names_command = False  # a command streamer has said which command failed, and asked whether to go on


class SpecError(SoftgenError):
    """An invalid spec page, or a name that no page describes. The message starts with page:line."""


class DecodeError(SoftgenError):
    """Bytes that are no valid command, record or file."""


class Unsupported(SoftgenError):
    """Something real that is not simulated yet; the message names generation, thing and address."""


class DriverError(SoftgenError):
    """A request that the kernel driver would refuse."""


class UsageError(SoftgenError, ValueError):
    """A call that makes no sense: a missing argument, a size out of range, a GPU that cannot do it."""


class GpuFault(SoftgenError):
    """An access to nothing: the address, what kind of access, in which space, and who did it."""

    def __init__(self, address: int, access: str, space: str = "", by: str = "", why: str = "not mapped") -> None:
        self.address, self.access, self.space, self.by, self.why = address, access, space, by, why
        where = f" in {space}" if space else ""
        by_whom = f" by {by}" if by else ""
        super().__init__(f"{access} at {address:#x}{where}{by_whom}: {why}")
