"""`softgen doctor`: every finding says ok, or what to do; a poor machine is reported and never breaks it."""

import errno
import json
import os
import resource
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from softgen.inspect import machine
from softgen.inspect.cli.main import main

# Without these nothing runs; all else is for some programs, or makes softgen faster.
NEEDED = {"memfd_create", "python", "guard library", "shim library", "a program on the GPU"}


def by_name() -> dict[str, machine.MachineFinding]:
    return {finding.name: finding for finding in machine.examine()}


def test_every_line_is_ok_or_says_what_to_do() -> None:
    findings = list(machine.examine())
    assert len({finding.name for finding in findings}) == len(findings) > 20
    for finding in findings:
        assert finding.status in ("ok", "low", "missing", "absent") and finding.detail
        assert (finding.status == "ok") == (finding.advice == ""), finding
    assert {finding.name for finding in findings if finding.needed} == NEEDED | set(machine.LIBRARIES)


def test_a_machine_with_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def no_memfd(*_: object) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")
    monkeypatch.setattr(machine, "text", lambda path: "")
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [])
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.x86_64_host", lambda: True)
    monkeypatch.setattr(machine, "library", lambda pattern: "")
    monkeypatch.setattr(machine, "LIBRARIES", ("no-such-library",))
    monkeypatch.setattr(os, "memfd_create", no_memfd)
    found = by_name()
    assert found["memfd_create"].status == found["no-such-library"].status == "missing"
    assert {finding.name for finding in found.values() if finding.needed} == NEEDED | {"no-such-library"}
    opengl = found["OpenGL (iris)"]
    assert opengl.advice == "apt-get install libgl1-mesa-dri" and opengl.status == "absent" and "bdw skl kbl icl" in opengl.detail
    assert found["shim library"].status == found["guard library"].status == "missing"
    assert found["kbl"].detail == "no driver is installed" and "apt-get install intel-opencl-icd" in found["kbl"].advice
    assert found["C compiler"].status == found["iga64"].status == "absent"
    assert found["vm.max_map_count"].detail == found["memory"].detail == "unknown"
    assert main(["doctor"]) == 1
    assert "something softgen needs is missing" in capsys.readouterr().out


@pytest.mark.parametrize("value, status", [(machine.MAP_COUNT - 1, "low"), (machine.MAP_COUNT, "ok")])
def test_limits_are_compared(value: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "number", lambda path: value)
    assert by_name()["vm.max_map_count"].status == status


def test_overcommit_never_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "number", lambda path: 2)
    assert by_name()["vm.overcommit_memory"].status == "low"


@pytest.mark.parametrize("value, status, shown", [(0, "ok", "0 (heuristic)"), (1, "ok", "1 (always)"), (2, "low", "2 (never)"),
                                                  (None, "ok", "None (unknown)"), (3, "ok", "3 (unknown)")])  # fmt: skip
def test_overcommit_by_its_numbers(value: int | None, status: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "number", lambda path: value)
    found = {finding.name: finding for finding in machine.limits()}["vm.overcommit_memory"]
    assert (found.status, found.detail, "sysctl" in found.advice) == (status, shown, status == "low")


def test_a_memfd_is_tried_with_seals(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    create = os.memfd_create
    monkeypatch.setattr(os, "memfd_create", lambda name, flags: asked.append(flags) or create(name, flags))
    before = len(os.listdir("/proc/self/fd"))
    assert machine.memfd().status == "ok" and asked == [os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING]
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("host", [True, False])
def test_only_other_hosts_are_told_of_x86_64_programs(host: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.x86_64_host", lambda: host)
    monkeypatch.setattr(machine, "found_by_a_program", lambda: machine.MachineFinding("a", "b", "ok", "c"))
    assert ("x86-64 programs" in {finding.name for finding in machine.drivers()}) == (not host)


def test_vector_instructions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "text", lambda path: "model name\t: X\nflags\t\t: sse4_2 avx avx2 fma" if "cpuinfo" in path else "")
    assert by_name()["vector instructions"].detail == "avx2 fma"
    monkeypatch.setattr(machine, "text", lambda path: "Features\t: fp asimd crc32 fphp asimdhp" if "cpuinfo" in path else "")
    assert by_name()["vector instructions"].detail == "asimd asimdhp"


def test_a_cache_folder_that_cannot_be_written_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/softgen-test")
    assert machine.cache_folder().status == "low"


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert machine.cache_folder().detail == f"{tmp_path}/.cache/softgen (writable)"


@pytest.mark.parametrize("found, code", [
    ((("ok", True), ("ok", False)), 0), ((("ok", True), ("missing", False)), 0), ((("low", True), ("absent", False)), 0),
    ((("ok", True), ("missing", True)), 1), ((), 0),
])  # fmt: skip
def test_only_what_is_needed_and_missing_is_a_failure(found: tuple[tuple[str, bool], ...], code: int, monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    findings = [machine.MachineFinding("area", "name", status, "detail", needed=needed) for status, needed in found]
    monkeypatch.setattr(machine, "examine", lambda: iter(findings))
    assert main(["doctor"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == ("something softgen needs is missing" if code else "all that softgen needs is here")
    widest = max((len(status) for status, _ in found), default=0)
    assert lines[:-1] == ["area"] * bool(found) + [f"  {status:{widest}}  name  detail" for status, _ in found]
    assert main(["doctor", "--json"]) == code and json.loads(capsys.readouterr().out)["ok"] == (not code)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert shown["ok"] == (code == 0)
    assert {"area", "name", "status", "detail", "advice", "needed"} == set(shown["findings"][0])


def test_each_gpu_says_what_programs_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob",
                        lambda pattern: [pattern] if "intel.icd" in pattern or "anv" in pattern else [])
    found = {gpu.name: gpu for gpu in machine.gpus()}
    assert found["kbl"].detail == "OpenCL (neo)" and found["g45"].detail == "no driver is installed"
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [pattern])
    found = {gpu.name: gpu for gpu in machine.gpus()}
    assert found["kbl"].detail == "OpenGL (iris), Vulkan (anv), OpenCL (neo), VA-API (iHD)" and found["kbl"].status == "ok"
    assert found["g45"].detail == "OpenGL (crocus), VA-API (i965)" and found["g45"].status == "ok"


@pytest.mark.parametrize("there, status, advice", [
    (("iris", "anv", "intel.icd"), "ok", ""), (("iris", "intel.icd"), "low", "apt-get install mesa-vulkan-drivers"),
    (("iHD",), "low", "apt-get install libgl1-mesa-dri; apt-get install mesa-vulkan-drivers; apt-get install intel-opencl-icd"),
    ((), "absent", "apt-get install libgl1-mesa-dri; apt-get install mesa-vulkan-drivers; apt-get install intel-opencl-icd"),
])  # fmt: skip
def test_a_gpu_without_a_video_driver_is_fine(there: tuple[str, ...], status: str, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Video is not simulated, so its drivers, which have a line of their own, take nothing from a GPU."""
    files = {"iris": "iris_dri", "anv": "intel_icd", "intel.icd": "intel.icd", "iHD": "iHD"}
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob",
                        lambda pattern: [pattern] * any(files[each] in pattern for each in there))
    assert found_in(machine.gpus(), "kbl")[::2] == (status, advice)


@pytest.mark.parametrize("out, code, status", [('{"opened": 1}', 0, "ok"), ('{"opened": 0}', 0, "missing"), ("softgen: no", 1, "missing"),
                                               ("nonsense", 0, "missing"), ("", 0, "missing")])  # fmt: skip
def test_a_program_is_tried(out: str, code: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda command, **_: subprocess.CompletedProcess(command, code, "", out))
    assert machine.found_by_a_program().status == status


def test_a_program_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr("subprocess.run", forever)
    found = machine.found_by_a_program()
    assert (found.status, found.detail) == ("low", "no end after 30 s")


@pytest.mark.parametrize("kilobytes, status, size", [(4194304, "ok", "4.0 GiB"), (4194303, "low", "4.0 GiB"), (8388608, "ok", "8.0 GiB")])
def test_four_gibibytes_of_memory_are_enough(kilobytes: int, status: str, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "text", lambda path: f"MemTotal:  {kilobytes} kB" if "meminfo" in path else "")
    found = {finding.name: finding for finding in machine.processor()}["memory"]
    assert (found.status, found.detail, found.advice) == (status, size, "" if status == "ok" else "large captures may not fit")


def test_hosts_other_than_x86_64_need_a_second_shim_and_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.run.environment.x86_64_shim", lambda: "")
    assert machine.second_shim().status == "absent" and "apt-get install gcc-x86-64-linux-gnu" in machine.second_shim().advice
    monkeypatch.setattr("softgen.driver.run.environment.x86_64_shim", lambda: "shim-x86_64.so")
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert machine.second_shim().advice == "apt-get install qemu-user"
    monkeypatch.setattr("shutil.which", lambda name: "/bin/" + name if name == "qemu-x86_64-static" else None)
    assert machine.second_shim().status == "ok" and machine.second_shim().detail == "run by /bin/qemu-x86_64-static"


def test_a_program_that_cannot_be_started_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "false")
    found = machine.found_by_a_program()
    assert (found.status, found.detail) == ("missing", "it said nothing")


@pytest.mark.parametrize("host, number", [("x86_64", 323), ("aarch64", 282), ("riscv64", None)])
@pytest.mark.parametrize("allowed", [True, False])
def test_userfaultfd_is_tried_in_user_mode(host: str, number: int | None, allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call has another number on each host; UFFD_USER_MODE_ONLY is 1. What it opened is closed again."""
    calls, closed = list[tuple[int, ...]](), list[int]()

    class Library:
        def __init__(self, name: str | None, use_errno: bool) -> None:
            assert name is None

        def syscall(self, *given: int) -> int:
            calls.append(given)
            return 0 if allowed else -1

    monkeypatch.setattr("platform.machine", lambda: host)
    monkeypatch.setattr("ctypes.CDLL", Library)
    monkeypatch.setattr("os.close", closed.append)
    found = machine.reachable_memory()
    assert calls == ([] if number is None else [(number, os.O_CLOEXEC | os.O_NONBLOCK | 1)])
    works = allowed and number is not None
    assert closed == [0] * works and (found.name, found.status) == ("userfaultfd", "ok" if works else "low")
    assert ("may lose that write" in found.advice) == (not works)


def found_in(findings: Iterable[machine.MachineFinding], name: str) -> tuple[str, str, str]:
    return next((finding.status, finding.detail, finding.advice) for finding in findings if finding.name == name)


@pytest.mark.parametrize("value, expected", [
    (262_143, ("low", "262,143, want 262,144", "as root: sysctl vm.max_map_count=262144")), (262_144, ("ok", "262,144", "")),
    (None, ("low", "unknown", "want 262144 or more")),
])  # fmt: skip
def test_mappings_of_a_process(value: int | None, expected: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "number", lambda path: value if path == "/proc/sys/vm/max_map_count" else 0)
    assert found_in(machine.limits(), "vm.max_map_count") == expected


UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize("soft, hard, expected", [
    (UNLIMITED, UNLIMITED, ("ok", "unlimited", "")), (65_536, 65_536, ("ok", "65,536", "")),
    (65_535, 65_536, ("low", "65,535, want 65,536", "ulimit -n 65536")),
    (1024, UNLIMITED, ("low", "1,024, want 65,536", "ulimit -n 65536")),
    (1024, 65_535, ("low", "1,024, want 65,536", "raise the hard limit (65535) in /etc/security/limits.conf")),
])  # fmt: skip
def test_open_files(soft: int, hard: int, expected: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A person may raise the soft limit up to the hard one."""
    monkeypatch.setattr(resource, "getrlimit", lambda what: (soft, hard) if what == resource.RLIMIT_NOFILE else (0, 0))
    assert found_in(machine.limits(), "open files") == expected


@pytest.mark.parametrize("version, status", [((3, 10, 9), "missing"), ((3, 11, 0), "ok"), ((3, 13, 1), "ok"), ((4, 0, 0), "ok")])
def test_python_3_11_is_new_enough(version: tuple[int, int, int], status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.version_info", version)
    found = next(machine.python())
    assert (found.name, found.status, found.advice == "", found.needed) == ("python", status, status == "ok", True)


@pytest.mark.parametrize("check, pattern", [(machine.shim, "driver/_shim*.so"), (machine.guard, "memory/_guard*.so")])
def test_a_library_that_cannot_be_loaded_is_missing(check: Callable[[], machine.MachineFinding], pattern: str, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    assert (check().status, check().needed) == ("ok", True)
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    monkeypatch.setattr(machine, "library", lambda asked: str(broken) if asked == pattern else "")
    found = check()
    assert (found.status, found.advice, found.needed) == ("missing", "make setup builds it (needs gcc)", True)
    assert str(broken) in found.detail


@pytest.mark.parametrize("content, value", [("7\n", 7), ("-1\n", -1), ("max\n", None), ("", None), ("7 8", None)])
def test_numbers_of_proc(content: str, value: int | None, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(content)
    assert machine.number(str(tmp_path / "file")) == value and machine.number(str(tmp_path / "none")) is None


@pytest.mark.parametrize("flags, shown, status", [
    ("fpu sse4_2 avx avx2 fma avx512f avx512dq avx512vl avx512bw", "avx512f avx512dq avx512vl avx512bw", "ok"),
    ("fpu sse4_2 avx avx2 fma avx512f", "avx2 fma", "ok"), ("fpu sse4_2 avx", "avx", "low"), ("fpu sse4_2", "sse4_2", "low"),
    ("fpu", "none known", "low"),
])  # fmt: skip
def test_the_widest_vectors_are_named(flags: str, shown: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "text", lambda path: f"model name\t: A CPU\nflags\t\t: {flags}" if path == "/proc/cpuinfo" else "")
    monkeypatch.setattr("platform.machine", lambda: "host")
    assert found_in(machine.processor(), "model") == ("ok", "A CPU (host)", "")
    assert found_in(machine.processor(), "vector instructions")[:2] == (status, shown)
