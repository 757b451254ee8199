"""Inputs of a farm: lists of tests, captures in folders, GPUs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from softgen.errors import UsageError


def read_lines(path: str) -> list[tuple[int, str]]:
    """The lines of a list with their numbers, without blank lines and comments (`#`)."""
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is no list: byte {error.start} is not text") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in lines if line and not line.startswith("#")]


def read_tests(path: str) -> list[str]:
    """The commands of a list, one a line. A line that a shell could not split is a usage error."""
    tests = [check_line(line, f"{path}:{number}") for number, line in read_lines(path)]
    if not tests:
        raise UsageError(f"{path}: has no tests; each line is a command, lines with # are comments")
    return list(dict.fromkeys(tests))


def check_line(line: str, place: str) -> str:
    """A command, if a shell could split it."""
    try:
        if not shlex.split(line):
            raise ValueError("no command")
    except ValueError as error:
        raise UsageError(f"{place}: cannot be split as a shell does: {error}") from None
    return line


def gpu_names(text: str) -> list[str]:
    """The GPUs of --gpu kbl,icl: names as softgen gpus lists them."""
    from softgen.inspect.cli.gpus import find

    names = [name for name in (part.strip() for part in text.split(",")) if name]
    if not names:
        raise UsageError("--gpu needs names with commas between them, such as kbl,icl")
    return list(dict.fromkeys(find(name).name for name in names))


def find_captures(paths: Iterable[str]) -> list[str]:
    """The captures that paths name: files, capture directories, and folders with such in them, in the order of their names."""
    found: dict[str, None] = {}
    for path in paths:
        if not os.path.lexists(path):
            raise UsageError(f"{path}: no such file or folder")
        captures = list(_below(path))
        if not captures:
            raise UsageError(f"{path}: no captures in it: neither capture directories nor AUB files, error states or hang dumps")
        found |= dict.fromkeys(captures)
    return list(found)


def _below(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, names, files in os.walk(path, onerror=_unreadable):
        names.sort()
        if is_capture_folder(files):
            names.clear()
            yield folder
            continue
        yield from (file for name in sorted(files) if is_trace(file := os.path.join(folder, name)))


def _unreadable(error: OSError) -> None:
    raise UsageError(f"{error.filename}: cannot be read: {error.strerror}")


def is_capture_folder(files: Iterable[str]) -> bool:
    from softgen.trace.capture import EXEC  # what opens captures takes time to load

    return any(EXEC.fullmatch(name) for name in files)


def is_trace(path: str) -> bool:
    """Whether a file in a folder is a trace by its content. A file that is named itself is always taken for one."""
    from softgen.trace.file import START, looks_like_trace

    try:
        with open(path, "rb") as file:
            return looks_like_trace(file.read(START))
    except OSError:
        return False


def own_gpu(capture: str) -> str:
    """The GPU that a capture is of; "unknown" where it does not say or cannot be read, which replaying it will tell."""
    from softgen.errors import SoftgenError
    from softgen.trace.file import open_trace

    try:
        return open_trace(capture).device.name
    except SoftgenError:
        return "unknown"
