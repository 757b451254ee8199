"""Runs a script that expects pyopencl's create_image, which versions before 2024 do not have: any_pyopencl.py SCRIPT ARGUMENT …"""

import runpy
import sys

import pyopencl

if not hasattr(pyopencl, "create_image"):
    pyopencl.create_image = pyopencl.Image
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
