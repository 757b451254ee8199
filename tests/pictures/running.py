"""The programs of this folder: built with the system's compiler, run on the processor (llvmpipe, lavapipe) and on a software GPU."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.driver.running import DRIVER_CHOICES, Softgen
from tests.pictures.compare import Picture, read_pam

SOURCES = Path(__file__).parent / "programs"
LAVAPIPE = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")
SOFTWARE_GL = Path("/usr/lib/x86_64-linux-gnu/dri/swrast_dri.so")
# program -> what must be installed: a file or a command, and the Debian package
NEEDS = {
    "gl_scene": [("gcc", "gcc"), ("/usr/include/EGL/egl.h", "libegl-dev"), ("/usr/include/GLES2/gl2.h", "libgles-dev"),
                 (str(SOFTWARE_GL), "libgl1-mesa-dri")],
    "gl_compressed": [("gcc", "gcc"), ("/usr/include/EGL/egl.h", "libegl-dev"), ("/usr/include/GLES3/gl32.h", "libgles-dev"),
                      (str(SOFTWARE_GL), "libgl1-mesa-dri")],
    "gl_geometry": [("gcc", "gcc"), ("/usr/include/EGL/egl.h", "libegl-dev"), ("/usr/include/GL/glext.h", "libgl-dev"),
                    (str(SOFTWARE_GL), "libgl1-mesa-dri")],
    "vulkan_scene": [("gcc", "gcc"), ("/usr/include/vulkan/vulkan.h", "libvulkan-dev"), ("glslangValidator", "glslang-tools"),
                     (str(LAVAPIPE), "mesa-vulkan-drivers")],
    "vulkan_geometry": [("gcc", "gcc"), ("/usr/include/vulkan/vulkan.h", "libvulkan-dev"), ("glslangValidator", "glslang-tools"),
                        (str(LAVAPIPE), "mesa-vulkan-drivers")],
    "vulkan_samples": [("gcc", "gcc"), ("/usr/include/vulkan/vulkan.h", "libvulkan-dev"), ("glslangValidator", "glslang-tools"),
                       (str(LAVAPIPE), "mesa-vulkan-drivers")],
    "vulkan_transfer": [("gcc", "gcc"), ("/usr/include/vulkan/vulkan.h", "libvulkan-dev"), (str(LAVAPIPE), "mesa-vulkan-drivers")],
}  # fmt: skip
LIBRARIES = {
    "gl_scene": ["-lEGL", "-lGLESv2", "-lm", "-ldl"],
    "gl_compressed": ["-lEGL", "-lGLESv2"],
    "gl_geometry": ["-lEGL", "-lGL"],
    "vulkan_scene": ["-lvulkan"],
    "vulkan_geometry": ["-lvulkan"],
    "vulkan_samples": ["-lvulkan"],
    "vulkan_transfer": ["-lvulkan", "-lm"],
}
SHADERS = {
    "vulkan_scene": {"VERTEX": "scene.vert", "FRAGMENT": "scene.frag"},
    "vulkan_geometry": {"VERTEX": "geometry.vert", "CONTROL": "geometry.tesc", "EVALUATION": "geometry.tese", "GEOMETRY": "geometry.geom",
                        "FRAGMENT": "scene.frag", "CAPTURED_VERTEX": "feedback.vert", "CAPTURED_FRAGMENT": "feedback.frag"},
    "vulkan_samples": {"VERTEX": "samples.vert", "FRAGMENT": "samples.frag", "SAMPLE_FRAGMENT": "sample_id.frag", "SCREEN": "fetch.vert",
                       "FETCH": "fetch.frag"},
}  # fmt: skip


def lacking(program: str) -> str:
    """What a program needs and this machine lacks, as Debian packages; '' for nothing."""
    missing = [package for name, package in NEEDS[program] if not (os.path.exists(name) if name.startswith("/") else shutil.which(name))]
    return " ".join(missing)


@cache
def folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="sg-pictures-"))
    atexit.register(shutil.rmtree, made, True)
    return made


@cache
def built(program: str) -> str:
    """The path of a program, compiled."""
    path, defines = folder() / program, []
    for name, source in SHADERS.get(program, {}).items():
        words = folder() / f"{source}.inc"
        subprocess.run(["glslangValidator", "-V", "-x", "-o", words, SOURCES / source], check=True, capture_output=True)
        defines.append(f'-D{name}="{words}"')
    command = ["gcc", "-O1", "-Wall", "-Werror", *defines, str(SOURCES / f"{program}.c"), "-o", str(path), *LIBRARIES[program]]
    subprocess.run(command, check=True)
    return str(path)


def needs(program: str) -> None:
    """Skips where a program cannot be built or run."""
    if packages := lacking(program):
        pytest.skip(f"not installed: {packages}")


def on_processor(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of a program with Mesa's own software renderers."""
    usual = {name: text for name, text in os.environ.items() if name not in DRIVER_CHOICES}
    told = {"LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe", "VK_ICD_FILENAMES": str(LAVAPIPE), "VK_DRIVER_FILES": str(LAVAPIPE)}
    ran = subprocess.run([built(program), *arguments], env={**usual, **told}, capture_output=True, text=True, check=True)
    assert "llvmpipe" in ran.stderr, ran.stderr
    return ran


@cache
def expected(program: str, *arguments: str) -> Picture:
    """The picture that Mesa's own software renderer draws."""
    scene, *given = arguments
    options = [option for option in given if not option.startswith("platform=")]  # llvmpipe has the surfaceless one
    file = Path(tempfile.mkstemp(suffix=".pam", dir=folder())[1])
    on_processor(program, scene, str(file), *options)
    return read_pam(file)


def drawn(gpu: str, program: str, *scenes: tuple[str, ...], options: tuple[str, ...] = (), seconds: float = 300,
          **environment: str) -> list[Picture]:  # fmt: skip
    """The pictures that a software GPU draws of scenes, each with its options, in one run; `options` are those of `softgen run`."""
    files = [Path(tempfile.mkstemp(suffix=".pam", dir=folder())[1]) for _ in scenes]
    commands = [[built(program), scene, str(file), *more] for (scene, *more), file in zip(scenes, files, strict=True)]
    script = " && ".join(shlex.join(command) for command in commands)
    run = Softgen("--gpu", gpu, *options, "--", "/bin/sh", "-c", script, **environment)
    assert run.finish(seconds=seconds) == 0, run.out + run.err
    assert "llvmpipe" not in run.err
    return [read_pam(file) for file in files]
