"""The hash of a unit: changes with all that decides its result, and with nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from softgen.driver.uapi.kernel_tables import Runtime, runtimes_of
from softgen.inspect.farm import drivers, identity
from softgen.inspect.farm.plans import CommandPlan, UnitSettings
from softgen.inspect.farm.shards import Shard


@pytest.fixture(autouse=True)
def no_drivers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Drivers of this machine take time to read."""
    monkeypatch.setattr(drivers, "driver_sums", lambda gpu, environment: {"iris_dri.so": f"sum for {gpu}"})
    identity._context.cache_clear()
    yield
    identity._context.cache_clear()


def key(line: str, gpu: str = "kbl", environment: dict[str, str] | None = None, folder: str = "/", **given: object) -> str:
    settings = UnitSettings(folder=folder, environment=environment or {}, **given)  # type: ignore[arg-type]
    [unit] = CommandPlan([line], [gpu], settings).units()
    return unit.key


def test_the_same_unit_has_the_same_hash(tmp_path: Path) -> None:
    """Wherever it is run: the working folder may be another, and so may the places of drivers."""
    assert key("true x") == key("true x", folder=str(tmp_path)) != key("true  'x'")
    assert key("true x") == key("true x", environment={"LD_LIBRARY_PATH": "/a", "VK_ICD_FILENAMES": "/b", "LIBGL_DRIVERS_PATH": "/c"})
    assert len(key("true x")) == 40


def test_what_changes_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    first = key("true x")
    keys = [first, key("true y"), key("false x"), key("true x", "icl"), key("true x", seconds=5.0), key("true x", memory=1 << 30),
            key("true x", options=("--engine", "t1")), key("true x", environment={"INTEL_DEBUG": "nofc"}),
            key("true x", environment={"MESA_GL_VERSION_OVERRIDE": "3.3"})]  # fmt: skip
    monkeypatch.setattr(identity, "version", lambda: "0.2")
    keys.append(key("true x"))
    monkeypatch.setattr(drivers, "driver_sums", lambda gpu, environment: {"iris_dri.so": "another"})
    identity._context.cache_clear()
    keys.append(key("true x"))
    assert len(set(keys)) == len(keys)
    told = {"INTEL_DEBUG": "1", "LD_LIBRARY_PATH": "/y"}
    assert drivers.driver_variables({"HOME": "/x"} | told) == told


def test_contents_of_the_executable_and_of_files_count(tmp_path: Path) -> None:
    program, data = tmp_path / "program", tmp_path / "data.txt"
    shutil.copy("/bin/true", program)
    data.write_text("one")
    first = key("./program data.txt", folder=str(tmp_path))
    data.write_text("two")
    second = key("./program data.txt", folder=str(tmp_path))
    program.unlink()
    shutil.copy("/bin/false", program)
    third = key("./program data.txt", folder=str(tmp_path))
    assert len({first, second, third, key("./program data.txt"), key("./program", folder=str(tmp_path))}) == 5
    assert identity.program_parts(["./program", "data.txt", ".", "--x"], str(tmp_path))[2:] == ["", ""]


def test_softgen_counts_by_its_sources() -> None:
    assert identity.version().startswith("0.1.0+") and len(identity.version()) == len("0.1.0+") + 12


def test_a_folder_counts_with_the_names_of_its_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "bo").mkdir(parents=True)
        (tmp_path / name / "bo" / "one").write_text("x")
    assert identity.tree_sum(str(tmp_path / "a")) == identity.tree_sum(str(tmp_path / "b"))
    (tmp_path / "b" / "bo" / "one").rename(tmp_path / "b" / "bo" / "two")
    assert identity.tree_sum(str(tmp_path / "a")) != identity.tree_sum(str(tmp_path / "b"))
    assert identity.tree_sum(str(tmp_path / "a" / "bo" / "one")) != identity.tree_sum(str(tmp_path / "none")) == ""


def test_sums_of_large_files_are_kept_until_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(drivers, "SMALL", 10)
    large, read = tmp_path / "large", list[str]()
    real = drivers._sum

    def counted(path: str) -> str:
        read.append(path)
        return real(path)

    monkeypatch.setattr(drivers, "_sum", counted)
    large.write_bytes(b"x" * 100)
    assert drivers.file_sum(str(large)) == drivers.file_sum(str(large)) and len(read) == 1
    large.write_bytes(b"y" * 101)
    assert drivers.file_sum(str(large)) == real(str(large)) and len(read) == 2
    assert drivers.file_sum(str(tmp_path / "none")) == "" == drivers.file_sum(str(tmp_path))


def runtime(api: str) -> Runtime:
    return next(runtime for runtime in runtimes_of("kbl") if runtime.api == api)


def test_drivers_are_those_that_variables_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver developer's own build, in place of the installed one."""
    monkeypatch.setattr(drivers, "find_library", lambda name, environment: "")
    files = {name: tmp_path / name for name in ("iris_dri.so", "libvulkan.so", "icd.json", "own.icd", "ocl.so")}
    for file in files.values():
        file.write_text("")
    files["icd.json"].write_text('{"ICD": {"library_path": "./libvulkan.so"}}')
    files["own.icd"].write_text(f"{tmp_path}/ocl.so\n")
    told = {"LIBGL_DRIVERS_PATH": f"/nowhere:{tmp_path}", "VK_DRIVER_FILES": str(files["icd.json"]), "OCL_ICD_VENDORS": str(tmp_path)}
    assert list(drivers.libraries(runtime("OpenGL"), told)) == [str(files["iris_dri.so"])]
    found = [os.path.normpath(path) for path in drivers.libraries(runtime("Vulkan"), told)]
    assert found == [str(files["icd.json"]), str(files["libvulkan.so"])]
    assert list(drivers.libraries(runtime("OpenCL"), told)) == [str(files["own.icd"]), str(files["ocl.so"])]
    files["icd.json"].write_text("nonsense")
    assert list(drivers.libraries(runtime("Vulkan"), told)) == [str(files["icd.json"])]


def test_libraries_are_found_as_the_dynamic_loader_finds_them(tmp_path: Path) -> None:
    (tmp_path / "libc.so.6").write_text("own")
    assert drivers.find_library("libc.so.6", {"LD_LIBRARY_PATH": f"/none:{tmp_path}"}) == str(tmp_path / "libc.so.6")
    system = drivers.find_library("libc.so.6", {})
    assert system.endswith("libc.so.6") and drivers.find_library("no such library", {}) == ""
    assert any("libc.so" in path for path in drivers.needed("/bin/sh", {})) and drivers.needed(str(tmp_path / "libc.so.6"), {}) == []


def test_a_shard_has_the_hashes_of_the_whole() -> None:
    def plan(shard: Shard) -> CommandPlan:
        return CommandPlan(["true 1", "true 2", "true 3"], ["kbl", "icl"], UnitSettings(folder="/", environment={}, shard=shard))

    parts = [unit for index in (1, 2, 3, 4) for unit in plan(Shard(index, 4)).units()]
    assert sorted(parts, key=str) == sorted(plan(Shard(1, 1)).units(), key=str) and len(parts) == 6
