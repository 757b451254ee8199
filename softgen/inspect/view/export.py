"""The page as files, for an artifact of CI: opened from a disk or any server, it needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.output_file import write_file
from softgen.inspect.view.data import ViewData
from softgen.inspect.view.server import FILES, page_file, script_of


def export(data: ViewData, folder: str | os.PathLike[str], pixels: Sequence[tuple[int, int]] = (),
           step: Callable[[], None] = lambda: None) -> int:  # fmt: skip
    """Write the page; how many files. `pixels` have their history in it, of the first target of each draw."""
    into = Path(folder)
    try:
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()):
            raise UsageError(f"--export {folder}: the folder has files in it already; the page goes into a new or empty one")
        (into / "data").mkdir()
    except OSError as error:
        raise UsageError(f"--export {folder}: {error.strerror}") from None
    for name in FILES:
        write_file(into / name, page_file(name))
    names = ["outline", "counts", *(f"commands-{submission.number}" for submission in data.session.submissions)]
    kernels: set[str] = set()
    pictures: list[str] = []
    for event in data.session.work():
        stem = f"{event.position.submission}-{event.position.command}"
        found = _json(data, f"event-{stem}")
        names += [f"event-{stem}", f"mesh-{stem}"]
        kernels |= set(found.get("kernels", {}).values())
        for target in found.get("targets", ()):
            pictures += [f"picture-{stem}-{kind}-{target['number']}" for kind in ("before", "after", "difference")]
        pictures += [f"texture-{stem}-{texture['number']}" for texture in found.get("textures", ())]
        names += [f"history-{stem}-0-{x}-{y}" for x, y in pixels if found.get("targets")]
        step()
    names += [f"kernel-{digest}" for digest in sorted(kernels)]
    for name in names:
        write_file(into / "data" / f"{name}.js", script_of(name, _json(data, name)))
    return len(FILES) + len(names) + sum(_picture(data, into, name) for name in pictures)


def _json(data: ViewData, name: str) -> dict[str, Any]:
    """Data, or why there is none."""
    try:
        found: dict[str, Any] = data.json(name)
    except SoftgenError as error:
        return {"error": str(error)}
    return found


def _picture(data: ViewData, into: Path, name: str) -> bool:
    """Write a picture, if there is one."""
    try:
        write_file(into / "data" / f"{name}.png", data.picture(name))
    except SoftgenError:
        return False
    return True
