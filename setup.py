"""The C parts, built with the package. They use no Python API: ctypes loads them by path."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("softgen.memory._guard", ["softgen/memory/guard.c"], extra_compile_args=["-O2", "-Wall"])])
