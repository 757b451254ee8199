"""What dEQP prints: which case begins, and its status. Facts of the format: dEQP's own output (framework/common/tcuTestSessionExecutor)."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

BEGIN = re.compile(r"Test case '([^']+)'\.\.")
STATUS = re.compile(r"  ([A-Z]\w+) \((.*)\)$")
WORDS = {"Pass": "pass", "QualityWarning": "pass", "CompatibilityWarning": "pass", "NotSupported": "skip", "Waiver": "skip", "Fail": "fail",
         "InternalError": "fail", "ResourceError": "fail", "Crash": "crash", "Timeout": "timeout", "Pending": "fail"}  # fmt: skip


class CaseResult(NamedTuple):
    """What a suite says of a case."""

    case: str
    result: str
    message: str
    seconds: float


class DeqpOutput:
    """Reads dEQP's output line by line."""

    def __init__(self) -> None:
        self.results: list[CaseResult] = []
        self.running = ""  # the case that has begun and not ended
        self.complete = False
        self.began = time.monotonic()

    def line(self, text: str) -> None:
        if begin := BEGIN.match(text):
            self.running, self.began = begin[1], time.monotonic()
        elif self.running and (status := STATUS.match(text)) and status[1] in WORDS:
            seconds = time.monotonic() - self.began
            self.results.append(CaseResult(self.running, WORDS[status[1]], case_message(status[1], status[2]), seconds))
            self.running = ""
        elif text == "DONE!":
            self.complete = True


def case_message(status: str, detail: str) -> str:
    """The message of a case's result; none where all is said."""
    if status == "Pass":
        return ""
    return status if detail in ("", status) else f"{status}: {detail}"
