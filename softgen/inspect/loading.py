"""What a server loads while its program starts, so that the first submission need not wait for it."""

from __future__ import annotations

import gc
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softgen.bits.generation import Device

HURRY = 5  # the thread switch interval is divided by this while modules are imported


def load(gpu: Device, engine: str, answering: threading.Event, loaded: threading.Event) -> None:
    """Import the modules that answer ioctls, then those that execute work, while the program starts."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / HURRY)  # ioctls are answered first
    gc.disable()  # nothing that is imported becomes garbage
    try:
        import softgen.driver.server  # noqa: F401

        answering.set()
        warm(gpu.generation.number, engine)
    except Exception:
        pass  # the code that needs the module raises the same error, and reports it
    finally:
        answering.set()
        loaded.set()
        gc.freeze()  # no later collection looks at modules
        gc.enable()
        sys.setswitchinterval(usual)


def warm(gen: float, engine: str) -> None:
    """Import what executes, and read the tables that are read once."""
    import softgen.driver.execute
    from softgen.bits import catalogue, formats, registers
    from softgen.eu.encoding.compact import compactor
    from softgen.eu.encoding.decode import decoder

    registers.place(0, gen)
    catalogue.find_command(0, gen, "render")
    if engine != "reference":
        import softgen.eu.promotion
        import softgen.threads.pool
        from softgen.eu.threaded.library import library
        from softgen.shared_functions.message_table import decision, shared_functions

        library(gen).open()
        for function in shared_functions(gen).values():
            decision(function, gen)
    decoder(gen)
    compactor(gen)
    formats.surface_formats()
    import softgen.three_d.draw  # noqa: F401  # last: programs that compute need none of it
