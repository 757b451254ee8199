"""The process of a unit: `softgen …`, which the kernel ends when the worker that started it is gone.

`python -P child.py PARENT VERB …`; PARENT is the worker's process. The folder in which a unit runs is not where modules are looked for.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Have this process killed as soon as its parent ends, also where that is killed itself."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def own_package() -> None:
    """Have the softgen imported that this file is of."""
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    if root not in sys.path:
        sys.path.insert(0, root)


if __name__ == "__main__":
    end_with(int(sys.argv.pop(1)))
    own_package()
    from softgen.inspect.cli.main import command

    command()
