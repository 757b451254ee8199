"""What the page shows, by name: JSON for its script, PNG for its pictures.

outline                    the capture, its submissions and commands
counts                     of draws: i instructions, t threads, s seconds; and what went wrong
index                      both of these
commands-2                 fields of the commands of submission 2
event-2-124                state of a draw or dispatch, what changed, kernels, targets, textures
history-2-124-0-32-20      pixel (32, 20) of its target 0; history-2-124-0-32-20-3 sample 3 of it
mesh-2-124                 vertices in and out
kernel-010860b9bb0a        a kernel's instructions, with counts
picture-2-124-after-0.png  a target; before, after, difference; texture-2-124-3.png a surface
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from softgen.bits import describe
from softgen.errors import GpuFault, SoftgenError, UsageError
from softgen.eu.interpreter import KernelProgram
from softgen.inspect.debug.sources import KernelSource, KernelSources
from softgen.inspect.diff.pictures import difference
from softgen.inspect.profile.counts import KernelCounts, Profile
from softgen.inspect.profile.measure import measure
from softgen.inspect.report.pictures import picture, png
from softgen.inspect.session.events import DISPATCHES, DRAWS, Event
from softgen.inspect.session.session import Session
from softgen.inspect.view.history import PixelHistory
from softgen.inspect.view.mesh import mesh
from softgen.memory.space import Space
from softgen.position import Position
from softgen.surface.image import SurfaceImage, image_from_state

SURFACE = "RENDER_SURFACE_STATE"
LARGEST = 4096 * 4096  # pixels of a picture
NAME = re.compile(r"([a-z]+)-([\w-]+)", re.ASCII)


class ViewData:
    """The data of a capture's page. One request at a time works on the session."""

    def __init__(self, session: Session, count: bool = True) -> None:
        self.session, self._count = session, count
        self.gen = session._trace.device.generation.number
        self.sources = KernelSources(self.gen)
        self._lock, self._counting = threading.RLock(), threading.Lock()
        self._profile: Profile | None = None
        self._json: dict[str, Any] = {}
        self._pictures: dict[str, bytes] = {}
        self._kernels: dict[str, KernelSource] = {}

    # -- by name -------------------------------------------------------------------------------------------------------

    def json(self, name: str) -> Any:
        """JSON by name."""
        if name == "counts":
            return self.counts()  # beside other requests: counting has sessions of its own
        with self._lock:
            if name not in self._json:
                self._json[name] = self._make(name)
            return self._json[name]

    def picture(self, name: str) -> bytes:
        """A PNG by name."""
        with self._lock:
            if name not in self._pictures:
                kind, parts = self._split(name)
                event = self._event(parts)
                if kind == "picture" and len(parts) == 4:
                    self._draw_pictures(event)
                elif kind == "texture" and len(parts) == 3:
                    self._textures(event)
            if name not in self._pictures:
                raise UsageError(f"there is no picture {name}")
            return self._pictures[name]

    def _make(self, name: str) -> Any:
        if name in ("index", "outline"):
            return self.index() if name == "index" else self.outline()
        kind, parts = self._split(name)
        makers: dict[str, Callable[[], Any]] = {
            "commands": lambda: self.commands(int(parts[0])), "event": lambda: self.event(self._event(parts)),
            "mesh": lambda: self.mesh(self._event(parts)), "kernel": lambda: self.kernel(parts[0]),
            "history": lambda: self.history(self._event(parts), *map(int, parts[2:6]))}  # fmt: skip
        if kind not in makers:
            raise UsageError(f"there is nothing called {name}")
        try:
            return makers[kind]()
        except SoftgenError:
            raise
        except (ValueError, IndexError, TypeError):
            raise UsageError(f"there is nothing called {name}") from None

    def _split(self, name: str) -> tuple[str, list[str]]:
        found = NAME.fullmatch(name)
        if found is None:
            raise UsageError(f"there is nothing called {name}")
        return found[1], found[2].split("-")

    def _event(self, parts: list[str]) -> Event:
        try:
            return self.session.event(Position(int(parts[0]), int(parts[1])))
        except (ValueError, IndexError, StopIteration):
            raise UsageError(f"there is no command {'-'.join(parts[:2])}") from None

    # -- what there is -------------------------------------------------------------------------------------------------

    @property
    def profile(self) -> Profile | None:
        """Counts; None where they were not asked for, or the capture cannot be executed."""
        with self._counting:
            if self._count and self._profile is None:
                with suppress(SoftgenError):
                    self._profile = measure(self.session.path, self.session._gpu)
            self._count = self._count and self._profile is not None
            return self._profile

    def outline(self) -> dict[str, Any]:
        """What the page begins with: nothing has to be executed for it."""
        submissions = [
            {"number": submission.number, "engine": submission.engine, "label": submission.label,
             "events": [{"p": str(event.position), "n": event.name, "k": event.kind} for event in submission.events]}
            for submission in self.session.submissions
        ]  # fmt: skip
        return {"capture": str(self.session.path), "gpu": self.session.gpu, "submissions": submissions}

    def counts(self) -> dict[str, Any]:
        profile = self.profile
        if profile is None:
            return {"draws": {}, "problems": []}
        draws = {draw.position: {"i": draw.executed, "t": draw.threads, "s": draw.host_seconds} for draw in profile.draws}
        return {"draws": draws, "problems": profile.problems}

    def index(self) -> dict[str, Any]:
        counts, found = self.counts(), self.outline()
        for submission in found["submissions"]:
            for row in submission["events"]:
                row |= counts["draws"].get(row["p"], {})
        return found | {"problems": counts["problems"]}

    def commands(self, number: int) -> dict[str, Any]:
        """Fields of all commands of a submission."""
        submission = next(
            submission for submission in [*self.session.submissions, None] if submission is None or submission.number == number
        )
        if submission is None:
            raise UsageError(f"there is no submission {number}")
        return {
            str(event.position): {"address": event.address, "dwords": event.dwords, "fields": event.fields} for event in submission.events
        }

    def event(self, event: Event) -> dict[str, Any]:
        """A draw or dispatch: what it sees, and what it leaves."""
        if event.name not in DRAWS | DISPATCHES:
            raise UsageError(f"{event.position} is {event.name}: no draw and no dispatch")
        changes = self.session.changes(event.position)
        state = self.session.state(event.position)
        kernels = self._pointed(event)
        structures = [{"name": layout.name, "address": address, "fields": describe.to_json(layout, dwords)}
                      for layout, address, dwords in self._states(event)]  # fmt: skip
        return {
            "position": str(event.position),
            "name": event.name,
            "fields": event.fields,
            "state": state,
            "changes": changes,
            "structures": structures,
            "kernels": kernels,
            "textures": self._textures(event),  # as they are before, so that the run need not go back
            "targets": self._draw_pictures(event),
        }

    def _before(self, event: Event) -> list[Event]:
        """State commands since the work before, and the command itself."""
        found: list[Event] = []
        for other in self.session.events():
            found.append(other)
            if other.position == event.position:
                break
            if other.name in DRAWS | DISPATCHES:
                found = []
        return found

    def _states(self, event: Event) -> list[tuple[Any, int, list[int]]]:
        return [state for other in self._before(event) for state in other.states]

    def _pointed(self, event: Event) -> dict[str, str]:
        """The kernels that the last commands before have pointed to: stage and digest."""
        found: dict[str, str] = {}
        for other in self.session.events():
            for stage, code in other.code.items():
                if code:
                    found[stage] = self._kernel(code, f"{stage} at {other.kernels[stage]:#x}")
            if other.position == event.position:
                break
        wanted = ("cs", "media") if event.name in DISPATCHES else ("vs", "hs", "ds", "gs", "clip", "sf", "ps")
        return {stage: digest for stage, digest in found.items() if stage in wanted}

    def _kernel(self, code: bytes, title: str) -> str:
        source = self.sources.kernel(KernelProgram(self.gen, code, 0, title))
        self._kernels.setdefault(source.digest, source)
        return source.digest

    def kernel(self, digest: str) -> dict[str, Any]:
        """A kernel's lines with the counts of each instruction in the whole capture."""
        if digest not in self._kernels:
            for event in self.session.events():
                for stage, code in event.code.items():
                    if code:
                        self._kernel(code, f"{stage} at {event.kernels[stage]:#x}")
        source = self._kernels.get(digest)
        if source is None:
            raise UsageError(f"there is no kernel {digest}")
        counted: list[KernelCounts] = (
            [kernel for kernel in self.profile.kernels if kernel.code == digest] if self.profile is not None else []
        )
        counts: dict[int, list[int]] = {}
        for kernel in counted:
            for row in kernel.instructions:
                had = counts.get(row.offset, [0, 0])
                counts[row.offset] = [had[0] + row.executed, had[1] + row.lanes]
        offsets = {line: offset for offset, line in source.listing.items()}
        lines = [{"text": text, "offset": offsets.get(number), "counts": counts.get(offsets.get(number, -1))}
                 for number, text in enumerate(source.text.splitlines(), 1)]  # fmt: skip
        return {"name": source.name, "code": digest, "lines": lines, "threads": sum(kernel.threads for kernel in counted)}

    # -- pictures ------------------------------------------------------------------------------------------------------

    def _draw_pictures(self, event: Event) -> list[dict[str, Any]]:
        """The targets of a draw, with pictures before and after, and where these differ."""
        images = self._images(event)
        if not images:
            return []
        self.session.seek(event.position)
        space = self.session.run.space
        before = [self._shown(space, image) for image in images]
        self.session.next()
        found = []
        for number, (image, (old, why)) in enumerate(zip(images, before, strict=True)):
            new, _ = self._shown(space, image)
            stem = f"{event.position.submission}-{event.position.command}"
            for kind, made in (("before", old), ("after", new), ("difference", old and new and difference(old, new))):
                if made is not None:
                    self._pictures[f"picture-{stem}-{kind}-{number}"] = png(made)
            found.append(_target(number, image, why))
        return found

    def _images(self, event: Event) -> list[SurfaceImage]:
        """The render targets of a draw."""
        if event.name not in DRAWS:
            return []
        return list(self.session.drawn(event.position))

    def _shown(self, space: Space, image: SurfaceImage) -> tuple[Any, str]:
        if image.width * image.height > LARGEST:
            return None, f"pictures of {image.width} x {image.height} pixels are not shown"
        try:
            return picture(space, image), ""
        except (SoftgenError, GpuFault) as error:
            return None, str(error)

    def _textures(self, event: Event) -> list[dict[str, Any]]:
        """The surfaces that binding tables lead to, as they are before the command."""
        self.session.seek(event.position)
        space, found = self.session.run.space, []
        for number, (layout, address, dwords) in enumerate(state for state in self._states(event) if state[0].name == SURFACE):
            name = f"texture-{event.position.submission}-{event.position.command}-{number}"
            try:
                image = image_from_state(layout, layout.raw(dwords), f"surface at {address:#x}")
            except (SoftgenError, KeyError) as error:
                found.append({"number": number, "state": address, "why": str(error)})
                continue
            made, why = self._shown(space, image)
            if made is not None:
                self._pictures[name] = png(made)
            found.append(_target(number, image, why) | {"state": address})
        return found

    # -- pixels and vertices -------------------------------------------------------------------------------------------

    def history(self, event: Event, target: int, x: int, y: int, sample: int | None = None) -> list[dict[str, Any]]:
        """What happened to a pixel of a target, or one sample of it, in the whole capture."""
        images = self._images(event)
        if not 0 <= target < len(images):
            raise UsageError(f"{event.position} has {len(images)} target{'s' if len(images) != 1 else ''}")
        return [found.as_json() for found in PixelHistory(self.session, images[target], x, y, sample).events()]

    def mesh(self, event: Event) -> dict[str, Any]:
        return mesh(self.session, event)


def _target(number: int, image: SurfaceImage, why: str) -> dict[str, Any]:
    return {"number": number, "address": image.base, "format": str(image.format), "width": image.width, "height": image.height,
            "samples": image.samples, "why": why}  # fmt: skip
