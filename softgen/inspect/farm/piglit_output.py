"""What piglit's programs print: lines of `PIGLIT: {…}` with a result, or with that of a part."""

from __future__ import annotations

import json
import time

from softgen.inspect.farm.deqp_output import CaseResult

START = "PIGLIT: "
WORDS = {"pass": "pass", "warn": "pass", "skip": "skip", "fail": "fail", "crash": "crash", "timeout": "timeout"}
PARTS = 3  # failing parts that a message names


class PiglitOutput:
    """Reads the output of a piglit program line by line."""

    def __init__(self) -> None:
        self.word = ""  # piglit's, of the whole program
        self.parts: list[CaseResult] = []
        self.began = time.monotonic()

    def line(self, text: str) -> None:
        if not text.startswith(START):
            return
        try:
            found = json.loads(text.removeprefix(START))
        except ValueError:
            return
        if isinstance(found, dict):
            if (word := str(found.get("result"))) in WORDS:
                self.word = word
            if isinstance(parts := found.get("subtest"), dict):
                self._parts({str(name): str(word) for name, word in parts.items()})

    def _parts(self, parts: dict[str, str]) -> None:
        now = time.monotonic()
        self.parts += [CaseResult(name, WORDS[word], word, now - self.began) for name, word in parts.items() if word in WORDS]
        self.began = now

    @property
    def result(self) -> str:
        """The result in the farm's words; "" if it has said none."""
        return WORDS[self.word] if self.word else ""

    @property
    def message(self) -> str:
        """The failing parts, or piglit's word where it is not the farm's."""
        bad = [part.case for part in self.parts if part.result not in ("pass", "skip")]
        if not bad:
            return "" if self.word in ("", "pass", "fail", "skip") else self.word
        more = f" and {len(bad) - PARTS} more" if len(bad) > PARTS else ""
        return f"{', '.join(bad[:PARTS])}{more}"
