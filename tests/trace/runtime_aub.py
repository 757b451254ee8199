"""Run by the system's Python: a kernel on Intel's runtime, which writes an AUB file; what its outputs must be goes in as expectations.

    runtime_aub.py CASE_DIR        with SetCommandStreamReceiver=1 and AUBDumpCaptureFileName in the environment

Shared memory has the same address on both sides, so that the runtime can be told what to expect where. Prints how many expectations.
"""

import ctypes
import json
import pathlib
import sys

import numpy as np
import pyopencl as cl

NAME = b"clEnqueueVerifyMemoryINTEL"


def verifier(platform):
    library = ctypes.CDLL("libOpenCL.so.1")
    library.clGetExtensionFunctionAddressForPlatform.restype = ctypes.c_void_p
    address = library.clGetExtensionFunctionAddressForPlatform(ctypes.c_void_p(platform.int_ptr), NAME)
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]
    return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)


def main(case):
    spec = json.loads((case / "case.json").read_text())
    platform = cl.get_platforms()[0]
    context = cl.Context(platform.get_devices()[:1])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, (case / f"{spec['name']}.cl").read_text()).build(spec["options"])
    kernel, kept = getattr(program, spec["kernel"]), []
    for arg in spec["args"]:
        if arg["kind"] == "scalar":
            kernel.set_arg(arg["index"], np.dtype(arg["dt"]).type(arg["v"]))
        elif arg["kind"] == "local":
            kernel.set_arg(arg["index"], cl.LocalMemory(arg["nbytes"]))
        else:
            data = np.load(case / arg["file"]) if arg.get("file") else np.zeros(arg["n"], np.dtype(arg["dt"]))
            held = cl.csvm_empty(context, data.shape, data.dtype)
            with cl.SVM(held).map_rw(queue) as mapped:
                mapped[...] = data
            kernel.set_arg(arg["index"], cl.SVM(held))
            kept.append((arg, held))
    cl.enqueue_nd_range_kernel(queue, kernel, spec["global"], spec["local"] or None, spec["offset"] or None)
    queue.finish()
    verify, count = verifier(platform), 0
    for arg, held in kept:
        if arg["kind"] in ("out", "io") and arg["cmp"] == "exact" and not arg.get("pad_mask"):
            want = np.ascontiguousarray(np.load(case / arg["ref"]))
            places = ctypes.c_void_p(held.ctypes.data), ctypes.c_void_p(want.ctypes.data)
            assert verify(ctypes.c_void_p(queue.int_ptr), *places, want.nbytes, 0) == 0
            count += 1
    print(count)


main(pathlib.Path(sys.argv[1]))
