"""Reading text with a finger on the place: patterns are taken one after the other, failures say file, line and column.

Shared by the dialects of assembly text, and knowing none of them. Blanks and comments (`//` to the end of the line, `/* … */`) may
stand before anything that is taken. One comment means something: `/* bits: 0x… */` behind an instruction is xored into its 128 bits;
`annotation` reads it, and anywhere else it is refused, since nobody would notice that it did nothing.
"""

from __future__ import annotations

import re

from softgen.errors import DecodeError

_BLANK = re.compile(r"(?:[ \t\r\n\f\v]+|//[^\n]*|/\*(?!\s*bits:)(?:[^*]|\*(?!/))*+\*/)*+")
_ANNOTATION = re.compile(r"[ \t]*/\*\s*bits:\s*0x([0-9a-fA-F]{1,32})\s*\*/")
_SEEN = re.compile(r"[A-Za-z_0-9]+|/\*|[^\s]")  # what a message shows of what stands there


class Scanner:
    """A text and a place in it."""

    __slots__ = ("at", "name", "text")

    def __init__(self, text: str, name: str = "text") -> None:
        self.text, self.name, self.at = text, name, 0

    def skip(self) -> int:
        """Goes over blanks and comments; the place after them."""
        first = self.text[self.at : self.at + 1]
        if first > " " and first != "/":
            return self.at
        self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]  # it also matches nothing
        return self.at

    def done(self) -> bool:
        return self.skip() == len(self.text)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What the pattern matches here, after blanks; None, and nothing taken but them, where it does not match."""
        found = pattern.match(self.text, self.skip())
        if found:
            self.at = found.end()
        return found

    def glued(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """As `take`, with no blank allowed before it."""
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def peek(self, pattern: re.Pattern[str]) -> bool:
        return pattern.match(self.text, self.skip()) is not None

    def expect(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        found = self.take(pattern)
        if found is None:
            raise self.wrong(what)
        return found

    def expect_glued(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        found = self.glued(pattern)
        if found is None:
            raise self.wrong(what)
        return found

    def annotation(self) -> int:
        """The bits that the annotation behind an instruction gives; 0 where there is none."""
        found = self.glued(_ANNOTATION)
        return int(found[1], 16) if found else 0

    def place(self, at: int | None = None) -> str:
        """name:line:column, counted from 1."""
        at = self.at if at is None else at
        line = self.text.count("\n", 0, at) + 1
        return f"{self.name}:{line}:{at - self.text.rfind(chr(10), 0, at)}"

    def wrong(self, expected: str, at: int | None = None) -> DecodeError:
        """The error to raise: what was expected at a place (default: here), and what stands there."""
        at = self.skip() if at is None else at
        seen = _SEEN.match(self.text, at)
        if seen and seen[0] == "/*":
            instead = "an annotation" if _ANNOTATION.match(self.text, at) else "a comment that does not end"
        else:
            instead = repr(seen[0][:40]) if seen else "the end of the line" if at < len(self.text) else "the end"
        return DecodeError(f"{self.place(at)}: expected {expected}, not {instead}")


def annotation_text(value: int) -> str:
    """The annotation that `Scanner.annotation` reads, as it stands at the end of a line; nothing for 0."""
    return f" /* bits: {value:#x} */" if value else ""
