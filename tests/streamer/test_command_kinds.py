"""Kinds of commands: which of them a handler alone may execute."""

import pytest

from softgen.bits import catalogue
from softgen.device.gpu import COMMANDS
from softgen.streamer.command_kinds import SimpleCommands, simple_command

GEN, RULES = 9.0, "none"


def header(name: str, gen: float = GEN) -> int:
    layout = catalogue.layout(name, gen)
    return layout.pack()[0]


@pytest.mark.parametrize("name", ["GPGPU_WALKER", "MEDIA_STATE_FLUSH", "PIPE_CONTROL", "MI_SEMAPHORE_WAIT", "MI_LOAD_REGISTER_IMM",
                                  "MI_LOAD_REGISTER_MEM"])  # fmt: skip
def test_commands_that_only_need_their_handler(name: str) -> None:
    found = simple_command(header(name), GEN, "render", RULES, COMMANDS)
    assert found is not None
    assert found.layout.name == name and found.length == found.layout.length(header(name))
    assert found.reads_registers == name.startswith("MI_") and found.guarded == name.startswith("MI_LOAD")


@pytest.mark.parametrize("name", ["MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_END", "MI_UPDATE_GTT"])
def test_commands_that_need_more(name: str) -> None:
    """They move the fetch pointer, or batches that are not privileged may not hold them."""
    assert simple_command(header(name), GEN, "render", RULES, COMMANDS) is None


def test_what_is_no_command_or_has_a_wrong_length_is_not_simple() -> None:
    assert simple_command(0xFFFFFFFF, GEN, "render", RULES, COMMANDS) is None
    assert simple_command(header("GPGPU_WALKER") & ~0xFF, GEN, "render", RULES, COMMANDS) is None


def test_rules_are_known() -> None:
    ruled, unruled = (simple_command(header("PIPE_CONTROL"), GEN, "render", rules, COMMANDS) for rules in ("icl", "none"))
    assert ruled is not None and ruled.ruled and unruled is not None and not unruled.ruled


def test_simple_commands_have_a_handler() -> None:
    """A command that no handler executes is not among them; neither is one that needs more than a handler."""

    def flush(cs: object, cmd: object) -> None: ...

    commands = SimpleCommands(GEN, "render", RULES, {"PIPE_CONTROL": flush, "MI_BATCH_BUFFER_END": flush})
    found = commands[header("PIPE_CONTROL")]
    assert found is not None and found.handler is flush
    assert commands[header("GPGPU_WALKER")] is None and commands[header("MI_BATCH_BUFFER_END")] is None


def test_headers_that_are_kept_are_limited() -> None:
    """A batch may hold any number of different dwords."""
    commands = SimpleCommands(GEN, "render", RULES, {})
    for number in range(4096):
        assert commands[0xFF00_0000 + number] is None
    assert len(commands) == 4096
    assert commands[0xFF00_0000 + 4096] is None and len(commands) == 1
