"""The C parts, built with the package. They use no Python API: ctypes loads them by path."""

import compileall
import platform
import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import ExecError


def files(package, suffix):
    """The files of a package that end so, at any depth."""
    return sorted(map(str, Path("softgen", package).rglob(f"*.{suffix}")))


def part(name, *flags, headers=(), **more):
    """The C library of a package: all C files in its folder."""
    package = name.partition(".")[0]
    return Extension(f"softgen.{name}", files(package, "c"), extra_compile_args=list(flags),
                     depends=[*files(package, "h"), *(f"softgen/{path}" for path in headers)], **more)


FLAGS = ["-O2", "-Wall"]
# Results of the 3D pipeline's arithmetic are part of what it does: no contraction or reassociation beyond what the source says.
PIPELINE = ["-O3", "-Wall", "-ffp-contract=off", "-fvisibility=hidden"]
if platform.machine() == "x86_64":
    PIPELINE.append("-mprefer-vector-width=512")  # of functions that are compiled for several hosts: a block is 16 pixels
CODEC = [*PIPELINE, "-fwrapv"]  # sums of coefficients that no encoder writes wrap
SHIM_FLAGS = [*FLAGS, "-fvisibility=hidden"]
# Of the bytecode interpreter, likewise; loops over lanes become vectors where traps and errno do not count.
BYTECODE = ["-O3", "-Wall", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"]


class BuildParts(build_ext):
    """Builds the C parts and, where the package is used in place, the bytecode that pip writes for one it installs: with
    PYTHONDONTWRITEBYTECODE, every start would compile all modules again."""

    def run(self):
        super().run()
        if platform.machine() != "x86_64":
            self.build_second_shim()
        if self.inplace:
            compileall.compile_dir("softgen", quiet=1)

    def build_second_shim(self):
        """The shim for x86-64 programs that QEMU runs on this host, where a compiler for them is installed."""
        compiler = shutil.which("x86_64-linux-gnu-gcc")
        folder = Path("." if self.inplace else self.build_lib, "softgen/driver")
        if compiler:
            try:
                self.spawn([compiler, *SHIM_FLAGS, "-fPIC", "-shared", "-o", str(folder / "shim-x86_64.so"), *files("driver", "c"), "-ldl"])
            except ExecError as error:
                self.warn(f"x86-64 programs will not find the GPU: {error}")


setup(
    cmdclass={"build_ext": BuildParts},
    ext_modules=[
        part("memory._guard", *FLAGS),
        part("lanes._bytecode", *BYTECODE, libraries=["m"]),
        part("streamer._latch", *FLAGS, headers=["latches.h"]),
        part("eu._native", *FLAGS),
        part("threads._scheduler", *FLAGS, headers=["eu/native.h", "memory/graphics_memory.h"]),
        part("three_d._pipeline", *PIPELINE, libraries=["m"],
             headers=["eu/native.h", "latches.h", "memory/graphics_memory.h", "threads/native/threads.h"]),
        part("surface._coded", *FLAGS),
        part("blitter._blit", *FLAGS, "-O3"),
        part("codec._codec", *CODEC, headers=["memory/graphics_memory.h"]),
        part("driver._shim", *SHIM_FLAGS, libraries=["dl"]),
    ]
)
