"""The Python interface: buffers and kernels on a software GPU, assembly, the spec, captures.

In    NumPy arrays, OpenCL binaries, EU machine code, captures.
Out   results in the same arrays; counts, traces, decoded commands, reports.

    with Gpu("kbl") as gpu:
        x = gpu.buffer(array)
        run = gpu.launch(load_kernels("saxpy.bin", "kbl")["saxpy"], x, y, 2.5, global_size=1 << 20)

`softgen` itself exports these names lazily; nothing below this package imports it.

gpu.py       Gpu: memory, launch, execute
checks.py    checks of arguments: mistakes raise UsageError
memory.py    Buffer, Image, Local, Sampler; the allocator of graphics addresses
kernels.py   Kernel and load_kernels; the values in a kernel's payload
state.py     surface states, samplers, descriptors and batches, packed by spec pages
machine.py   the one place that builds a device, chooses its engine and observes its threads
run.py       Run, Trace, TraceRow: what a launch did
assembly.py  assemble, disassemble
lookup.py    spec: a command, structure, register or message
captures.py  open, decode: captures, their commands, replay
farming.py   farm: many captures or commands in parallel, here or by an executor
html.py      tables for notebooks
"""

from softgen.api.assembly import ListedInstruction as Instruction
from softgen.api.assembly import Listing, assemble, disassemble
from softgen.api.captures import Capture, KernelCode, ReplayReport, State, decode, open
from softgen.api.captures import DecodedCommand as Command
from softgen.api.farming import FarmResult, farm
from softgen.api.gpu import Gpu, Prepared
from softgen.api.kernels import Kernel, load_kernels
from softgen.api.lookup import Field, Spec, spec
from softgen.api.memory import Buffer, Image, Local, Sampler
from softgen.api.run import Run, Trace, TraceRow
from softgen.inspect.profile.probe import Probe

__all__ = ["Buffer", "Capture", "Command", "FarmResult", "Field", "Gpu", "Image", "Instruction", "Kernel", "KernelCode", "Listing", "Local",
           "Prepared", "Probe", "ReplayReport", "Run", "Sampler", "Spec", "State", "Trace", "TraceRow", "assemble", "decode", "disassemble",
           "farm", "load_kernels", "open", "spec"]  # fmt: skip
