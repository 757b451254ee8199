"""The driver libraries that programs load on a GPU, and the variables that drivers read: both decide what a program's result is."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from softgen.cache import Cache, default_folder
from softgen.driver.run.environment import installed
from softgen.driver.uapi.kernel_tables import Runtime, runtimes_of

# Variables that change what drivers do. Those of the farm's process are set for units on every worker.
PREFIXES = ("ANV_", "BRW_", "CROCUS_", "EGL_", "GALLIUM_", "GBM_", "IGC_", "INTEL_", "IRIS_", "LIBGL_", "LIBVA_", "MESA_", "NEO", "NIR_",
            "OCL_ICD_", "PIGLIT_", "SHADER_", "ST_DEBUG", "VK_", "WAFFLE_")  # fmt: skip
PATHS = ("LD_LIBRARY_PATH",)  # also set on workers; what it leads to counts, not its text
PLACES = ("LIBGL_DRIVERS_PATH", "GBM_BACKENDS_PATH", "LIBVA_DRIVERS_PATH", "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "OCL_ICD_VENDORS",
          "OCL_ICD_FILENAMES")  # fmt: skip
# Loaded by name when an API is first used, so that nothing lists them.
BY_NAME = {"OpenGL": ("libEGL_mesa.so.0", "libGLX_mesa.so.0", "libgbm.so.1"), "OpenCL": ("libigc.so.1", "libigdfcl.so.1"), "Vulkan": (),
           "VA-API": ()}  # fmt: skip
SMALL = 1 << 20  # bytes; the sums of larger files are kept
PAGE = 1 << 20


def driver_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that units get, wherever they run."""
    return {name: value for name, value in sorted(environment.items()) if name.startswith(PREFIXES) or name in PATHS}


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that count as options: not those that name places, which differ between machines."""
    return {name: value for name, value in driver_variables(environment).items() if name not in (*PLACES, *PATHS)}


def driver_sums(gpu: str, environment: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of each driver library for a GPU on this machine, by file name, with the libraries that they load."""
    return _driver_sums(gpu, tuple((name, environment[name]) for name in (*PLACES, *PATHS) if name in environment))


@lru_cache
def _driver_sums(gpu: str, places: tuple[tuple[str, str], ...]) -> dict[str, str]:
    files: dict[str, None] = {}
    for runtime in runtimes_of(gpu):
        for library in libraries(runtime, dict(places)):
            files |= dict.fromkeys([library, *needed(library, dict(places))])
    return {os.path.basename(path): sum for path in sorted(files) if (sum := file_sum(path))}


def libraries(runtime: Runtime, environment: Mapping[str, str]) -> Iterator[str]:
    """The files of a driver: where variables say, or where it is installed."""
    places = list(chosen(runtime, environment)) or ([found] if (found := installed(runtime)) else [])
    for place in places:
        if place.endswith(".json"):
            yield from _named(place, _icd_library(place), environment)
        elif place.endswith(".icd"):
            yield from _named(place, Path(place).read_text("utf-8", "replace").strip(), environment)
        else:
            yield place
    if places:
        yield from (path for name in BY_NAME[runtime.api] if (path := find_library(name, environment)))


def chosen(runtime: Runtime, environment: Mapping[str, str]) -> Iterator[str]:
    """Files of a driver that variables name, in place of the installed one."""
    match runtime.api:
        case "OpenGL":
            patterns = [f"{folder}/{runtime.name}_dri.so" for folder in _split(environment, "LIBGL_DRIVERS_PATH")]
        case "VA-API":
            patterns = [f"{folder}/{runtime.name}_drv_video.so" for folder in _split(environment, "LIBVA_DRIVERS_PATH")]
        case "Vulkan":
            patterns = _split(environment, "VK_DRIVER_FILES") or _split(environment, "VK_ICD_FILENAMES")
        case _:
            patterns = [f"{folder}/*.icd" for folder in _split(environment, "OCL_ICD_VENDORS")] + _split(environment, "OCL_ICD_FILENAMES")
    for pattern in patterns:
        yield from sorted(glob.glob(pattern))


def _split(environment: Mapping[str, str], name: str) -> list[str]:
    return [part for part in environment.get(name, "").split(":") if part]


def _icd_library(path: str) -> str:
    try:
        return str(json.loads(Path(path).read_text("utf-8"))["ICD"]["library_path"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # the loader will say so


def _named(place: str, library: str, environment: Mapping[str, str]) -> Iterator[str]:
    """The library that a loader's file names: a path, one beside the file, or a name that the dynamic loader finds."""
    yield place
    if not library:
        return
    beside = os.path.join(os.path.dirname(place), library)
    path = library if library.startswith("/") else beside if "/" in library else find_library(library, environment)
    if path:
        yield path


@lru_cache
def _loader_cache() -> dict[str, str]:
    """Where the dynamic loader finds libraries, by name."""
    tool = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        told = subprocess.run([tool, "-p"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return {}
    found: dict[str, str] = {}
    for name, path in re.findall(r"^\s+(\S+) \([^)]*\) => (\S+)$", told, re.MULTILINE):
        found.setdefault(name, path)
    return found


def find_library(name: str, environment: Mapping[str, str]) -> str:
    """The file that the dynamic loader takes for a name; "" for none."""
    for folder in _split(environment, "LD_LIBRARY_PATH"):
        if os.path.exists(path := os.path.join(folder, name)):
            return path
    return _loader_cache().get(name, "")


def needed(library: str, environment: Mapping[str, str]) -> list[str]:
    """The libraries that a library loads. Of another machine's code nothing is known: it counts by its own file alone."""
    try:
        told = subprocess.run(["ldd", library], capture_output=True, text=True, check=False, env={**os.environ, **environment}).stdout
    except OSError:
        return []
    return re.findall(r"=> (/\S+)", told)


def file_sum(path: str) -> str:
    """SHA-256 of a file; "" where it cannot be read. Sums of large files are kept for as long as the file does not change."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    if status.st_size < SMALL:
        return _sum(path)
    seen = f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
    cache, key = Cache(default_folder()), f"sum-{hashlib.sha256(seen.encode('utf-8', 'replace')).hexdigest()}"
    if kept := cache.load(key):
        return kept.decode("ascii")
    if found := _sum(path):
        cache.save(key, found.encode("ascii"))
    return found


def _sum(path: str) -> str:
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while data := file.read(PAGE):
                found.update(data)
    except OSError:
        return ""
    return found.hexdigest()


def digest(parts: Iterable[str]) -> str:
    """One sum of several texts."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode("utf-8", "surrogateescape") + b"\0")
    return found.hexdigest()
