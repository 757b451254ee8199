"""The C parts, built with the package. They use no Python API: ctypes loads them by path."""

import compileall
import platform
import shutil
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import ExecError

FLAGS = ["-O2", "-Wall"]
# Results of the 3D pipeline's arithmetic are part of what it does: no contraction or reassociation beyond what the source says.
PIPELINE = ["-O3", "-Wall", "-ffp-contract=off", "-fvisibility=hidden"]
if platform.machine() == "x86_64":
    PIPELINE.append("-mprefer-vector-width=512")  # of functions that are compiled for several hosts: a block is 16 pixels
SHIM = [f"softgen/driver/{name}.c" for name in ("shim", "shim_channel", "shim_memory", "shim_paths")]
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
                self.spawn([compiler, *SHIM_FLAGS, "-fPIC", "-shared", "-o", str(folder / "shim-x86_64.so"), *SHIM, "-ldl"])
            except ExecError as error:
                self.warn(f"x86-64 programs will not find the GPU: {error}")


setup(
    cmdclass={"build_ext": BuildParts},
    ext_modules=[
        Extension("softgen.memory._guard", ["softgen/memory/guard.c"], extra_compile_args=FLAGS),
        Extension("softgen.lanes._bytecode", sorted(glob("softgen/lanes/*.c")),
                  depends=glob("softgen/lanes/*.h"), extra_compile_args=BYTECODE, libraries=["m"]),
        Extension("softgen.streamer._latch", ["softgen/streamer/latch.c"], depends=["softgen/latches.h"], extra_compile_args=FLAGS),
        Extension("softgen.eu._native", ["softgen/eu/native.c"], depends=["softgen/eu/native.h"], extra_compile_args=FLAGS),
        Extension("softgen.threads._scheduler", sorted(glob("softgen/threads/*.c")), extra_compile_args=FLAGS,
                  depends=["softgen/eu/native.h", "softgen/memory/graphics_memory.h", "softgen/threads/scheduler.h",
                           "softgen/threads/threads.h"]),
        Extension("softgen.three_d._pipeline", sorted(glob("softgen/three_d/*.c")), extra_compile_args=PIPELINE,
                  depends=[*glob("softgen/three_d/*.h"), "softgen/eu/native.h", "softgen/latches.h", "softgen/memory/graphics_memory.h",
                           "softgen/threads/threads.h"],
                  libraries=["m"]),
        Extension("softgen.surface._coded", sorted(glob("softgen/surface/*.c")), depends=glob("softgen/surface/*.h"),
                  extra_compile_args=FLAGS),
        Extension("softgen.blitter._blit", ["softgen/blitter/blit.c"], extra_compile_args=[*FLAGS, "-O3"]),
        Extension("softgen.driver._shim", SHIM, depends=["softgen/driver/shim.h"], extra_compile_args=SHIM_FLAGS, libraries=["dl"]),
    ]
)
