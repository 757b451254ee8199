"""The C parts, built with the package, and the Python modules made of their headers. They use no Python API: ctypes loads them by path."""

import compileall
import platform
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import ExecError

sys.path.insert(0, str(Path(__file__).parent / "tools"))
import structures


def files(package):
    """The C files of a package, at any depth."""
    return sorted(map(str, Path("softgen", package).rglob("*.c")))


def part(name, *flags, shared=(), **more):
    """The C library of a package: all C files in its folder, and `shared` ones of packages below it."""
    sources = [*files(name.partition(".")[0]), *(f"softgen/{path}" for path in shared)]
    return Extension(f"softgen.{name}", sources, extra_compile_args=list(flags), depends=structures.included(sources), **more)


FLAGS = ["-O2", "-Wall"]
# Results of the 3D pipeline's arithmetic are part of what it does: no contraction or reassociation beyond what the source says.
PIPELINE = ["-O3", "-Wall", "-ffp-contract=off", "-fvisibility=hidden"]
if platform.machine() == "x86_64":
    PIPELINE.append("-mprefer-vector-width=512")  # of functions that are compiled for several hosts: a block is 16 pixels
CODEC = [*PIPELINE, "-fwrapv", "-Wno-psabi"]  # sums of coefficients that no encoder writes wrap; functions that take vectors are inlined
FRONT_END = ("codec/bits/vlc.c", "codec/bits/mpeg2_codes.c", "codec/transform/simple_idct.c",
             "codec/transform/avc.c", "codec/transform/vc1.c")  # codes, scans and transforms of the media front end
SHIM_FLAGS = [*FLAGS, "-fvisibility=hidden"]
# Of the bytecode interpreter, likewise; loops over lanes become vectors where traps and errno do not count.
BYTECODE = ["-O3", "-Wall", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"]


class BuildParts(build_ext):
    """Builds the C parts, the modules made of their headers and, where the package is used in place, the bytecode that pip writes for one
    it installs: with PYTHONDONTWRITEBYTECODE, every start would compile all modules again."""

    def run(self):
        super().run()
        for header in structures.HEADERS:
            structures.write(Path.cwd(), Path(header), self.compiler.compiler_so[:1], Path("." if self.inplace else self.build_lib))
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
                self.spawn([compiler, *SHIM_FLAGS, "-fPIC", "-shared", "-o", str(folder / "shim-x86_64.so"), *files("driver"), "-ldl"])
            except ExecError as error:
                self.warn(f"x86-64 programs will not find the GPU: {error}")


setup(
    cmdclass={"build_ext": BuildParts},
    ext_modules=[
        part("memory._guard", *FLAGS),
        part("lanes._bytecode", *BYTECODE, libraries=["m"]),
        part("streamer._latch", *FLAGS),
        part("eu._native", *FLAGS),
        part("threads._scheduler", *FLAGS),
        part("three_d._pipeline", *PIPELINE, libraries=["m"]),
        part("surface._coded", *FLAGS),
        part("shared_functions._blocks", *FLAGS, "-O3", "-ffp-contract=off"),
        part("blitter._blit", *FLAGS, "-O3"),
        part("codec._codec", *CODEC),
        part("enhance._enhance", *CODEC, shared=["codec/surface_walk.c", "codec/surface_deep.c"]),
        part("media._front_end", *CODEC, shared=FRONT_END),
        part("driver._shim", *SHIM_FLAGS, libraries=["dl"]),
    ]
)
