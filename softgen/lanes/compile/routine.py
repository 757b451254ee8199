"""Compiled lane programs, called with NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from softgen.cache import Cache
from softgen.errors import GpuFault
from softgen.lanes.compile import jit
from softgen.lanes.compile.signature import Bytes, Lanes, Signature, build
from softgen.lanes.llvm.memory import FAULT_WORDS, FAULTS
from softgen.lanes.numpy.machine import DTYPES

Array = np.ndarray[Any, Any]


class Routine:
    """`routine(*arrays)` gives a list of arrays. A fault is raised as GpuFault after the program has ended."""

    def __init__(self, program: Callable[..., Any], signature: Signature, cache: Cache | None = None,
                 target: jit.Target | None = None) -> None:
        self.signature = signature
        self.ir = build(program, signature, target)
        self._code = jit.load(self.ir, (signature.name,), cache, target)
        self.address = self._code.address(signature.name)
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(self.address)

    def __call__(self, *inputs: Any) -> list[Array]:
        if len(inputs) != len(self.signature.inputs):
            raise TypeError(f"{self.signature.name} must have {len(self.signature.inputs)} inputs, not {len(inputs)}")
        arrays = [self._input(shape, value) for shape, value in zip(self.signature.inputs, inputs, strict=True)]
        outputs = [np.zeros(output.lanes, DTYPES[output.type]) for output in self.signature.outputs]
        words = [0] * FAULT_WORDS
        for shape, array in zip(self.signature.inputs, arrays, strict=True):
            words += [array.ctypes.data, array.nbytes] if isinstance(shape, Bytes) and shape.checked else [array.ctypes.data]
        arguments = np.array(words + [output.ctypes.data for output in outputs], np.uint64)
        if self._function(arguments.ctypes.data, None):
            raise self.fault(arguments)
        return outputs

    def _input(self, shape: Lanes | Bytes, value: Any) -> Array:
        if isinstance(shape, Bytes):
            memory: Array = value
            if not memory.flags.c_contiguous:
                raise TypeError(f"{shape.name} must be one contiguous array")
            return memory
        lanes = np.ascontiguousarray(value, DTYPES[shape.type])
        if lanes.shape != (shape.lanes,):
            raise TypeError(f"an input must have {shape.lanes} lanes of {shape.type}, not shape {lanes.shape}")
        return lanes

    def fault(self, arguments: Array) -> GpuFault:
        """The fault words as the error that the NumPy machine raises."""
        kind, offset, number = (int(argument) for argument in arguments[:FAULT_WORDS])
        name = getattr(self.signature.inputs[number], "name", "memory")
        access = "atomic" if FAULTS[kind] == "misaligned" else FAULTS[kind]
        return GpuFault(offset, access, name, why="not a multiple of its size" if FAULTS[kind] == "misaligned" else "outside its bytes")
