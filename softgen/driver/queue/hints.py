"""Advice for programs whose work is not simulated yet.

Mesa's Vulkan drivers fill, copy and clear by drawing on a queue for graphics, and by compute shaders on a queue without. Their variable
ANV_QUEUE_OVERRIDE names the number of queues of each kind; with none for graphics, compute programs need no drawing at all.
"""

from __future__ import annotations

from pathlib import Path

from softgen.errors import Unsupported

DRAWING = "3DPRIMITIVE"
VULKAN = "/libvulkan_intel"  # the drivers anv (libvulkan_intel.so) and hasvk (libvulkan_intel_hasvk.so)
COMPUTE_ONLY = "what it draws is not all simulated yet; a Vulkan program that only computes may run with ANV_QUEUE_OVERRIDE=gc=0,c=1"


def hint(error: BaseException, pid: int) -> str:
    """What may help a program whose submission failed with `error`; '' where nothing is known to."""
    drew = isinstance(error, Unsupported) and str(error).startswith(DRAWING)
    return COMPUTE_ONLY if drew and VULKAN in _mappings(pid) else ""


def _mappings(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text("utf-8", "replace")
    except OSError:  # it has ended, or may not be read
        return ""
