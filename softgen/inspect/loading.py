"""What a server loads while its program starts, so that the first submission need not wait for it."""

from __future__ import annotations

import gc
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softgen.bits.generation import Device
    from softgen.driver.run.service import Service

PAUSE = 0.002  # seconds without an ioctl, after which the next module is imported: programs make dozens when they look at a GPU
COMPUTE = (
    "PIPE_CONTROL", "MI_LOAD_REGISTER_IMM", "PIPELINE_SELECT", "STATE_BASE_ADDRESS", "STATE_SIP", "GPGPU_CSR_BASE_ADDRESS",
    "MEDIA_VFE_STATE", "MEDIA_CURBE_LOAD", "MEDIA_INTERFACE_DESCRIPTOR_LOAD", "INTERFACE_DESCRIPTOR_DATA", "GPGPU_WALKER",
    "MEDIA_STATE_FLUSH", "MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_END", "GPGPU_THREAD_HEADER", "BINDING_TABLE_STATE",
    "RENDER_SURFACE_STATE", "SAMPLER_STATE")  # what batches of OpenCL have; a generation lacks some  # fmt: skip
STATUS = (
    "IPEHR", "ACTHD", "ACTHD_UDW", "BB_ADDR", "BB_ADDR_UDW", "BB_STATE", "BB_START_ADDR", "BB_START_ADDR_UDW", "IMR", "ENGINE_INTERRUPT",
    "EU_CONTROL_REGISTER")  # registers that change with every batch  # fmt: skip
POLITE = 0.3  # seconds in which that is so: a program that always makes some needs the modules, too


class PoliteImports:
    """A finder on sys.meta_path that finds nothing: before each import of this thread it waits while the program makes ioctls, which other
    threads could not answer meanwhile for want of the GIL. It waits until PAUSE after the last ioctl, and in the first POLITE seconds only:
    an answer may need the module."""

    def __init__(self, service: Service) -> None:
        self.service, self.thread, self.until = service, threading.get_ident(), time.monotonic() + POLITE

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if threading.get_ident() == self.thread:
            while (left := min(self.service.asked + PAUSE, self.until) - time.monotonic()) > 0:
                time.sleep(left)


def load(gpu: Device, engine: str, answering: threading.Event, service: Service) -> None:
    """Import the modules that answer ioctls, then those that execute work, while the program starts."""
    gc.disable()  # nothing that is imported becomes garbage
    polite = PoliteImports(service)
    try:
        import softgen.driver.run.simulator  # noqa: F401

        answering.set()
        sys.meta_path = [polite, *sys.meta_path]  # another list: a thread that is going through this one would miss a finder
        warm(gpu, engine)
    except Exception:
        pass  # the code that needs the module raises the same error, and reports it
    finally:
        sys.meta_path = [finder for finder in sys.meta_path if finder is not polite]
        answering.set()
        service.loaded.set()
        gc.freeze()  # no later collection looks at modules
        gc.enable()


def warm(gpu: Device, engine: str) -> None:
    """Import what executes, and read the tables that are read once."""
    import softgen.driver.queue.execute
    from softgen.bits import catalogue, formats, registers
    from softgen.device import interrupts
    from softgen.device.gpu import GpuDevice
    from softgen.device.registers import shared_registers
    from softgen.eu.encoding.compact import compactor
    from softgen.eu.encoding.decode import decoder
    from softgen.eu.isa import registers as architecture
    from softgen.eu.isa import rules

    gen = gpu.generation.number
    registers.place(0, gen)
    catalogue.find_command(0, gen, "render")
    if engine != "reference":
        import softgen.eu.promotion
        import softgen.shared_functions.bound_surfaces
        import softgen.threads.workers.pool
        from softgen.eu.threaded.library import library
        from softgen.shared_functions.message_table import decision, shared_functions

        library(gen).open()
        library(gen).load_recent()
        for function in shared_functions(gen).values():
            decision(function, gen)
    decoder(gen)
    compactor(gen)
    formats.surface_formats()
    rules.rules(gen)
    architecture.table()
    interrupts.places()
    for layout in filter(None, (catalogue.catalogue().get(name, gen) for name in COMPUTE)):
        _ = layout.raw  # compiled now
    for name in STATUS:
        catalogue.catalogue().get(name, gen)
    GpuDevice(gpu).new_context("render")
    shared_registers()
    import softgen.three_d.draw.draw  # noqa: F401  # last: programs that compute need none of it
