"""The folder of a recording with the OpenCL programs that were compiled meanwhile."""

from __future__ import annotations

import os

FOLDER = "programs"


def compiled_programs(capture: str | os.PathLike[str]) -> list[str]:
    """Files of the programs, which may have debug information."""
    folder = os.path.join(capture, FOLDER)
    return sorted(entry.path for entry in os.scandir(folder) if entry.is_file()) if os.path.isdir(folder) else []
