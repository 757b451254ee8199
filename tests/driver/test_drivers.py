"""The distribution's own drivers on the software GPU: what they report, and what they compute."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from softgen.driver.uapi.kernel_tables import runtimes
from tests.conftest import SHARED, every, in_ci, needs_shared
from tests.driver.running import PROGRAMS, Softgen, needs_driver, needs_shim, softgen_run

pytestmark = needs_shim
VULKAN = {"ivb": "IVB GT2", "hsw": "HSW GT2", "bdw": "BDW GT2", "skl": "SKL GT2", "kbl": "KBL GT2", "icl": "ICL GT2"}
EGL = {"gm965": "crocus", "g45": "crocus", "ivb": "crocus", "hsw": "crocus", "bdw": "iris", "skl": "iris", "kbl": "iris", "icl": "iris"}
# Entry points that each VA-API driver offers; none: it refuses the GPU.
VIDEO = [("g45", "i965", 2), ("ivb", "i965", 16), ("hsw", "i965", 19), ("bdw", "i965", 17), ("skl", "i965", 28), ("kbl", "i965", 28),
         ("icl", "i965", 0), ("g45", "iHD", 0), ("ivb", "iHD", 0), ("hsw", "iHD", 0), ("bdw", "iHD", 7),
         ("skl", "iHD", 12), ("kbl", "iHD", 15), ("icl", "iHD", 26)]  # fmt: skip
SYSTEM_PYTHON = "/usr/bin/python3"  # the distribution's: pyopencl is there
SMALL = ("i32_arith", "slm_reduce", "cf_uniform")


def needs_program(name: str, package: str) -> None:
    if not shutil.which(name):
        pytest.skip(f"{name} is absent (package {package})")


def needs_pyopencl() -> None:
    needs_driver("kbl", "OpenCL")
    look = [SYSTEM_PYTHON, "-c", "import pyopencl"]
    if not os.access(SYSTEM_PYTHON, os.X_OK) or subprocess.run(look, capture_output=True, check=False).returncode:
        pytest.skip("pyopencl is absent (package python3-pyopencl)")


@pytest.mark.parametrize("gpu", in_ci(["bdw", "skl", "kbl", "icl"], "icl"))
def test_clinfo(gpu: str) -> None:
    needs_program("clinfo", "clinfo")
    needs_driver(gpu, "OpenCL")
    run = softgen_run("--gpu", gpu, "--json", "--", "clinfo")
    assert run.process.returncode == 0 and len(re.findall(r"Device Name .*Intel", run.out)) >= 1, run.err
    assert "Number of platforms                               1" in run.out  # no other runtime is picked
    assert json.loads(run.err.splitlines()[-1])["unknown_ioctls"] == {} and run.all_gone()


@pytest.mark.parametrize("gpu", in_ci(["g45", "ivb", "hsw"], "hsw"))
def test_clinfo_finds_nothing_where_the_runtime_supports_nothing(gpu: str, tmp_path: Path) -> None:
    """Intel's runtime alone is looked at: others on this machine, such as pocl, may have devices of their own."""
    needs_program("clinfo", "clinfo")
    needs_driver("kbl", "OpenCL")
    [intel] = [runtime.found() for runtime in runtimes() if runtime.api == "OpenCL"]
    shutil.copy(intel, tmp_path)
    run = softgen_run("--gpu", gpu, "--", "clinfo", OCL_ICD_VENDORS=str(tmp_path))
    assert "Device Name" not in run.out and run.all_gone(), run.out + run.err


@pytest.mark.parametrize("gpu, name", every(3, VULKAN.items()))
def test_vulkaninfo(gpu: str, name: str) -> None:
    needs_program("vulkaninfo", "vulkan-tools")
    needs_driver(gpu, "Vulkan")
    run = softgen_run("--gpu", gpu, "--", "vulkaninfo", "--summary")
    assert run.process.returncode == 0 and name in run.out and "llvmpipe" not in run.out, run.err


@pytest.mark.parametrize("gpu, driver", every(3, EGL.items()))
def test_eglinfo(gpu: str, driver: str) -> None:
    needs_program("eglinfo", "mesa-utils-bin")
    needs_driver(gpu, "OpenGL")
    run = softgen_run("--gpu", gpu, "--", "eglinfo")
    assert run.out.count(f"EGL driver name: {driver}") == 3, run.err  # gbm, surfaceless, device


@pytest.mark.parametrize("gpu, driver, count", every(5, VIDEO))
def test_vainfo(gpu: str, driver: str, count: int) -> None:
    needs_program("vainfo", "vainfo")
    if not next(runtime for runtime in runtimes() if runtime.name == driver).found():
        pytest.skip(f"the VA-API driver {driver} is absent")
    run = softgen_run("--gpu", gpu, "--", "vainfo", "--display", "drm", "--device", "/dev/dri/renderD128", LIBVA_DRIVER_NAME=driver)
    assert run.out.count("VAEntrypoint") == count, run.err


@pytest.mark.parametrize("gpu, driver", [("kbl", "i965"), ("kbl", "iHD"), ("icl", "iHD")])
def test_pictures_go_to_the_gpu_and_come_back(gpu: str, driver: str) -> None:
    """i965 writes a tiled picture through the aperture and reads it with a kernel that copies media blocks; iHD maps it."""
    needs_program("ffmpeg", "ffmpeg")
    if not next(runtime for runtime in runtimes() if runtime.name == driver).found():
        pytest.skip(f"the VA-API driver {driver} is absent")
    source = ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=5:duration=0.2"]
    sums = ["-f", "md5", "-"]
    plain = subprocess.run(["ffmpeg", *source, "-vf", "format=nv12", *sums], capture_output=True, text=True, check=True)
    device = ["-init_hw_device", "vaapi=va:/dev/dri/renderD128", "-filter_hw_device", "va"]
    there_and_back = ["-vf", "format=nv12,hwupload,hwdownload,format=nv12"]
    run = softgen_run("--gpu", gpu, "--", "ffmpeg", *source, *device, *there_and_back, *sums, LIBVA_DRIVER_NAME=driver)
    assert run.process.returncode == 0 and run.out == plain.stdout != "" and run.all_gone(), run.err


@pytest.fixture
def vulkan_add(tmp_path: Path) -> str:
    """vulkan_add.c, compiled."""
    needs_program("gcc", "gcc")
    needs_program("glslangValidator", "glslang-tools")
    if not Path("/usr/include/vulkan/vulkan.h").exists():
        pytest.skip("Vulkan's headers are absent (package libvulkan-dev)")
    words, program = tmp_path / "add.inc", tmp_path / "vulkan_add"
    subprocess.run(["glslangValidator", "-V", "-x", "-o", words, PROGRAMS / "add.comp"], check=True, capture_output=True)
    subprocess.run(["gcc", "-O1", f'-DSPIRV="{words}"', PROGRAMS / "vulkan_add.c", "-o", program, "-lvulkan"], check=True)
    return str(program)


@pytest.mark.parametrize("gpu", in_ci(VULKAN, "ivb", "bdw", "icl"))
def test_a_vulkan_program_computes(gpu: str, vulkan_add: str) -> None:
    """hasvk with relocations and copied memory (ivb, hsw), hasvk softpinned (bdw), anv."""
    needs_driver(gpu, "Vulkan")
    run = softgen_run("--gpu", gpu, "--", vulkan_add)
    assert run.process.returncode == 0 and VULKAN[gpu] in run.out and "right: 64 of 64" in run.out, run.out + run.err


@pytest.mark.parametrize("gpu", in_ci(VULKAN, "hsw", "skl"))
def test_a_vulkan_program_fills_and_copies_on_a_queue_without_graphics(gpu: str, vulkan_add: str) -> None:
    """There the drivers use compute shaders, where they draw otherwise."""
    needs_driver(gpu, "Vulkan")
    run = softgen_run("--gpu", gpu, "--", vulkan_add, "copies", ANV_QUEUE_OVERRIDE="gc=0,c=1")
    assert run.process.returncode == 0 and "right: 64 of 64" in run.out, run.out + run.err


@pytest.mark.parametrize("gpu", in_ci(["hsw", "kbl"], "kbl"))
def test_a_vulkan_program_that_draws_is_told_how_it_may_run(gpu: str, vulkan_add: str) -> None:
    needs_driver(gpu, "Vulkan")
    run = softgen_run("--gpu", gpu, "--", vulkan_add, "copies")
    if run.process.returncode:  # drawing is not simulated
        assert "3DPRIMITIVE" in run.err and "may run with ANV_QUEUE_OVERRIDE=gc=0,c=1\n" in run.err, run.out + run.err
    else:
        assert "right: 64 of 64" in run.out


@needs_shared("kernels")
@pytest.mark.parametrize("gpu", in_ci(["bdw", "skl", "kbl", "icl"], "skl"))
def test_opencl_kernels(gpu: str) -> None:
    """Compiled by the runtime itself, from source."""
    needs_pyopencl()
    cases = [str(SHARED / "kernels" / name) for name in SMALL]
    run = softgen_run("--gpu", gpu, "--", SYSTEM_PYTHON, str(SHARED / "kernels" / "run_case.py"), *cases)
    assert run.process.returncode == 0 and f"{len(SMALL)} passed, 0 failed" in run.out, run.out + run.err
    assert run.all_gone()


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("gpu", ["bdw", "skl", "kbl", "icl"])
def test_all_opencl_kernels(gpu: str) -> None:
    needs_pyopencl()
    cases = sorted(str(file.parent) for file in (SHARED / "kernels").glob("*/case.json"))
    script = [str(PROGRAMS / "any_pyopencl.py"), str(SHARED / "kernels" / "run_case.py")]
    run = Softgen("--gpu", gpu, "--keep-going", "--", SYSTEM_PYTHON, *script, *cases)
    run.finish(seconds=1800)
    assert " 0 failed" in run.out and len(cases) == 57, run.out + run.err


def test_an_opencl_example_checked_with_numpy() -> None:
    needs_pyopencl()
    run = softgen_run("--", SYSTEM_PYTHON, str(PROGRAMS.parents[2] / "examples" / "opencl_saxpy.py"), "64")
    assert run.process.returncode == 0 and "right" in run.out, run.out + run.err
