"""Messages between the shim and the server: both sides mean the same by them."""

from __future__ import annotations

import re
from pathlib import Path

from softgen.driver import protocol

SHIM = Path(protocol.__file__).with_name("shim.h")


def test_kinds_of_messages_are_those_of_the_shim() -> None:
    lines = [line for line in SHIM.read_text("utf-8").splitlines() if re.search(r"/\* (to the server|from it) \*/$", line)]
    shim = {name: int(number) for line in lines for name, number in re.findall(r"\b([A-Z_]+) = (\d+)", line)}
    assert {"IOCTL", "REPLY", "DONE", "WELCOME"} <= set(shim)
    assert {name: getattr(protocol, name) for name in shim} == shim
