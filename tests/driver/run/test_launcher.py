"""`softgen run` from outside: exit codes, signals, output, work that fails; and its parts."""

import json
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from softgen.bits.generation import device, devices
from softgen.driver.run.environment import environment, missing, unreachable
from softgen.driver.run.sysfs_tree import build
from softgen.eu.engine import NAMES
from softgen.inspect.cli import engine as cli_engine
from tests.driver.running import PROGRAMS, Softgen, needs_shim, softgen_run

pytestmark = needs_shim


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_the_exit_code_is_the_programs(script: str, code: int) -> None:
    run = softgen_run("--", "sh", "-c", script)
    assert run.process.returncode == code, run.err
    assert run.all_gone()


def test_input_output_and_errors_pass_through() -> None:
    run = softgen_run("--gpu", "icl", "--", "sh", "-c", "cat; echo problem >&2; echo $LIBVA_DRIVER_NAME$SOFTGEN_RUN >&2", text="hello\n")
    assert run.out == "hello\n" and run.err.startswith("problem\n") and "softgen-" in run.err


def test_input_and_output_are_the_programs_alone() -> None:
    """The server does not hold the output open, nor does it read the input."""
    run = Softgen("--", "sh", "-c", "echo ready; read line; echo $line")
    assert run.process.stdout is not None and run.process.stdout.readline() == "ready\n"
    server = run.children()[0]
    assert os.readlink(f"/proc/{server}/fd/0") == os.readlink(f"/proc/{server}/fd/1") == os.devnull
    assert run.finish("for the program\n") == 0 and run.out == "for the program\n"


def test_wrong_use_is_told() -> None:
    for arguments, told in (((), "no program"), (("--", "no-such-program"), "no program 'no-such-program'"),
                            (("--gpu", "voodoo", "--", "true"), "no GPU is called 'voodoo'"),
                            (("--time-limit", "-1", "--", "true"), "a time limit is a number"),
                            (("--memory-limit", "5", "--", "true"), "a memory limit is a size of at least 64M")):  # fmt: skip
        run = softgen_run(*arguments)
        assert run.process.returncode == 2 and told in run.err and run.err.count("\n") == 1
        assert run.all_gone()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_signals_are_passed_on(number: signal.Signals) -> None:
    script = f"import signal, sys, time\nsignal.signal({int(number)}, lambda *_: sys.exit(42))\nprint('ready', flush=True)\ntime.sleep(30)"
    run = Softgen("--", sys.executable, "-c", script)
    assert run.process.stdout is not None and run.process.stdout.readline() == "ready\n"
    run.process.send_signal(number)
    assert run.finish() == 42 and run.all_gone()


def test_a_program_works_while_nobody_reads_what_is_said_about_it() -> None:
    """The reader of standard error has gone (`2>&1 | head`), and every ioctl is reported there."""
    run = Softgen("--trace", "ioctls", "--", sys.executable, "-c", f"import sys; sys.path.insert(0, {str(PROGRAMS)!r})\n"
                  "from node import *\nprint(works(open_node()))\nsys.exit(3)")  # fmt: skip
    assert run.process.stderr is not None
    run.process.stderr.close()
    assert run.finish() == 3 and run.out == "True\n" and run.all_gone()


def test_time_is_up() -> None:
    began = time.monotonic()
    run = softgen_run("--time-limit", "0.5", "--", "sleep", "30")
    assert run.process.returncode == 1 and "time is up after 0.5 s" in run.err and time.monotonic() - began < 28
    assert run.all_gone()


def test_what_the_program_leaves_running_is_ended() -> None:
    run = softgen_run("--", "sh", "-c", "(trap '' TERM; sleep 30) & sleep 30 & exit 3")
    assert run.process.returncode == 3 and run.all_gone()


def test_what_is_left_running_may_clean_up(tmp_path: Path) -> None:
    """It is told to terminate before it is killed."""
    ready = tmp_path / "ready"
    left = f"(trap 'echo told; exit' TERM; : > {ready}; sleep 30 & wait)"
    run = softgen_run("--", "sh", "-c", f"{left} & while ! test -e {ready}; do sleep 0.1; done")
    assert (run.process.returncode, run.out) == (0, "told\n") and run.all_gone()


def test_every_way_of_a_descriptor_and_a_process() -> None:
    run = softgen_run("--", sys.executable, str(PROGRAMS / "doors.py"))
    lines = run.out.splitlines()
    assert run.process.returncode == 0 and len(lines) == 20 and all(line.endswith(" ok") for line in lines), run.out + run.err
    assert run.err.count("\n") == 1 and "ioctl 0x9e (request 0xc010649e) is not known" in run.err
    assert run.all_gone()



def test_bad_pointers_are_refused_where_the_kernel_does_not_copy() -> None:
    doors = sys.executable, str(PROGRAMS / "doors.py"), "plainly", "refused", "own_memory"
    run = softgen_run("--", sys.executable, str(PROGRAMS / "without_process_vm.py"), *doors)
    if run.process.returncode == 77:
        pytest.skip(run.out.strip())
    assert run.out.splitlines() == ["plainly ok", "own_memory ok", "refused ok"], run.out + run.err


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_server_without_descriptors_refuses_waits_and_recovers() -> None:
    run = Softgen("--", sys.executable, str(PROGRAMS / "exhaust.py"), descriptors=200)
    assert run.process.stdout is not None and run.process.stdin is not None
    lines = [run.process.stdout.readline().strip() for _ in range(3)]
    assert lines == ["refused EMFILE EMFILE EMFILE EMFILE", "thread EMFILE", "full"]
    server = run.children()[0]
    busy = []  # processor seconds of intervals; what starts with the server may still be at work in the first ones
    while not busy or busy[-1] >= 0.2 and len(busy) < 10:
        before = processor_seconds(server)
        time.sleep(0.5)
        busy.append(processor_seconds(server) - before)
    assert busy[-1] < 0.2, f"the server spins: {busy}"
    assert run.finish("go on\n") == 0 and run.out.splitlines() == ["thread fine", "works True"], run.out + run.err
    assert run.err.count("descriptors of the server are in use") == 1 == run.err.count("\n") and run.all_gone()


# -- work that fails

FAULT = f"""import sys; sys.path.insert(0, {str(PROGRAMS)!r})
from node import *
node = open_node()
code = batch(node, (0x7654000, 1))
submit(node, (code, 0x10000))
wait(node, code)
print("went on", flush=True)
import time; time.sleep(float(sys.argv[1]))"""


HANG = f"""import sys; sys.path.insert(0, {str(PROGRAMS)!r})
from node import *
node = open_node()
code = create(node)
with view(node, code) as memory:
    memory[:12] = struct.pack("<3I", 0x18800101, 0x10000, 0)
submit(node, (code, 0x10000))
wait(node, code, -1)"""


def test_a_fault_ends_the_program_and_is_kept(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    run = Softgen("--report", str(report), "--", sys.executable, "-c", FAULT, "60", state=tmp_path)
    assert run.finish() == 1
    assert "0x7654000" in run.err and "MI_STORE_DATA_IMM at 0x10000" in run.err and "--keep-going" in run.err
    told = json.loads(report.read_text("utf-8"))
    assert told["exit_code"] == 1 and len(told["faults"]) == 1 and told["submissions"] == 1
    [capture] = told["captures"]
    assert Path(capture).parent == tmp_path / "softgen" / "failures" and "0x7654000" in (Path(capture) / "message.txt").read_text("utf-8")
    for path in (Path(capture), Path(capture).parent):  # buffers hold what the program computes with
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
    again = subprocess.run([sys.executable, "-m", "softgen", "replay", capture, "--json"], capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "0x7654000" in again.stdout
    assert run.all_gone()


def test_a_program_that_never_opens_the_gpu_ends_with_its_report_and_recording(tmp_path: Path) -> None:
    run = Softgen("--json", "--report", "-", "--record", str(tmp_path / "capture"), "--", "true")
    assert run.finish(seconds=60) == 0, run.err
    report = json.loads(next(line for line in run.err.splitlines() if line.startswith("{")))
    assert report["opened"] == report["submissions"] == 0 and report["trouble"] == "" and "0 commands" in run.err
    assert (tmp_path / "capture").is_dir() and not (tmp_path / "capture" / "incomplete").exists()
    assert run.all_gone()


def test_keep_going(tmp_path: Path) -> None:
    run = Softgen("--keep-going", "--", sys.executable, "-c", FAULT, "0", state=tmp_path)
    assert run.finish() == 0 and run.out == "went on\n" and "0x7654000" in run.err


def test_one_program_hangs_and_another_goes_on() -> None:
    run = softgen_run("--", sys.executable, str(PROGRAMS / "hang.py"))
    assert run.process.returncode == 5 and sorted(run.out.split()) == ["hangs", "works"], run.out + run.err
    assert run.all_gone()


def test_time_is_up_for_work_that_never_ends() -> None:
    run = softgen_run("--time-limit", "2", "--", sys.executable, "-c", HANG)
    assert run.process.returncode == 1 and "time is up" in run.err and run.all_gone()
    told = re.search(r"the run ended while work was running: submission 1 of .*: time is up at 0x10000 .*; kept in (\S+)", run.err)
    assert told is not None and Path(told[1]).is_dir() and re.search(r"; position 1:\d+; kept in", run.err), run.err


def test_a_recording_is_replayed_with_the_same_results(tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    program = (sys.executable, str(PROGRAMS / "doors.py"), "plainly", "own_memory")
    run = softgen_run("--gpu", "skl", "--record", str(folder), "--json", "--", *program)
    assert run.process.returncode == 0, run.err
    told = json.loads(run.err.splitlines()[-1])
    assert told["gpu"] == "skl" and told["submissions"] == 4 == len(list(folder.glob("exec-*.json")))
    again = subprocess.run([sys.executable, "-m", "softgen", "replay", str(folder), "--json"], capture_output=True, text=True, check=False)
    found = json.loads(again.stdout)
    assert again.returncode == 0 and found["expectations"] == {"passed": 8, "failed": 0}, again.stdout
    second = softgen_run("--record", str(folder), "--", "true")
    assert second.process.returncode == 1 and "already exists" in second.err
    assert sorted(os.listdir(tmp_path)) == ["capture"]


# -- parts


def test_the_launcher_loads_nothing_that_simulates() -> None:
    code = ("import sys; import softgen.inspect.cli.run, softgen.driver.run.launcher, softgen.bits.generation as g; g.device('kbl')\n"
            "packages = tuple(f'softgen.{name}' for name in ('eu', 'device', 'gpgpu', 'streamer', 'memory'))\n"
            "print([m for m in sys.modules if m in ('numpy', 'llvmlite') or m.startswith(packages)])")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_ioctls_are_answered_without_what_simulates() -> None:
    """The server answers a program's first ioctls while the engines are still being imported."""
    code = ("import sys; import softgen.driver.run.server\n"
            "names = ('eu', 'lanes', 'shared_functions', 'surface', 'threads', 'streamer', 'command')\n"
            "packages = tuple(f'softgen.{name}' for name in names)\n"
            "print([m for m in sys.modules if m in ('numpy', 'llvmlite') or m.startswith(packages)])")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_command_line_names_every_engine() -> None:
    assert cli_engine.NAMES == NAMES


@pytest.mark.parametrize("name", devices())
def test_the_tree_of_each_gpu(tmp_path: Path, name: str) -> None:
    build(tmp_path, device(name))
    pci = (tmp_path / "sys/bus/pci/devices/0000:00:02.0").resolve()
    assert (pci / "device").read_text("ascii") == f"{device(name).pci_id:#06x}\n"
    assert (tmp_path / "sys/dev/char/226:128/device").resolve() == pci
    assert (pci / "config").read_bytes()[:4] == b"\x86\x80" + device(name).pci_id.to_bytes(2, "little")
    assert {link.resolve().name for link in (tmp_path / "dev/dri/by-path").iterdir()} == {"card0", "renderD128"}


def test_programs_the_shim_cannot_reach(tmp_path: Path) -> None:
    assert unreachable("/bin/sh") == "" and unreachable(str(tmp_path / "absent")) == ""
    head = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    head[4], flags = 1, head[36:40]
    for byte in (0, 255):  # of its flags, which are where a 64-bit program says at which offset its headers are
        head[36:40] = bytes([byte]) * 4
        (tmp_path / "old").write_bytes(bytes(head))
        assert unreachable(str(tmp_path / "old")) == "is a 32-bit program"
    head[36:40] = flags
    head[4], head[56:58] = 2, bytes(2)  # no program headers, so no interpreter among them
    (tmp_path / "static").write_bytes(bytes(head))
    assert unreachable(str(tmp_path / "static")) == "is linked statically"
    for kinds, why in (((1, 6, 3), ""), ((3,), ""), ((1, 2, 0x70000003, 0x300), "is linked statically")):  # PT_INTERP is 3
        rows = b"".join(struct.pack("<I", kind).ljust(56, b"\0") for kind in kinds)
        struct.pack_into("<Q", head, 32, 64)
        struct.pack_into("<2H", head, 54, 56, len(kinds))
        (tmp_path / "made").write_bytes(bytes(head[:64]) + rows)
        assert unreachable(str(tmp_path / "made")) == why, kinds
    for where, why in ((64, "is linked statically"), (100, ""), (1 << 16, ""), (1 << 40, "is linked statically"), (1 << 63, "")):
        struct.pack_into("<Q", head, 32, where)  # tools that edit programs put their headers at the end
        struct.pack_into("<2H", head, 54, 56, 1)
        (tmp_path / "made").write_bytes(bytes(head[:64]) + (bytes(max(where - 64, 1)) + b"\3" if where < 1 << 20 else b""))
        assert unreachable(str(tmp_path / "made")) == why, where
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert unreachable(str(tmp_path / "script")) == ""
    os.mkfifo(tmp_path / "pipe")
    assert unreachable(str(tmp_path / "pipe")) == ""


@pytest.mark.parametrize("size", [4, 5, 40, 55, 60, 63])
def test_a_program_shorter_than_its_header_is_left_to_the_kernel(tmp_path: Path, size: int) -> None:
    program = tmp_path / "short"
    program.write_bytes(Path(sys.executable).resolve().read_bytes()[:size])
    program.chmod(0o700)
    assert unreachable(str(program)) == ""
    run = softgen_run("--", str(program))
    # the server may say that the launcher has ended, too
    assert run.process.returncode == 1 and f"softgen: {program}: cannot be started: Exec format error\n" in run.err


def test_missing_drivers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [])
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.x86_64_host", lambda: True)
    told = missing(device("kbl"))
    assert "OpenCL: neo is not installed; apt-get install intel-opencl-icd" in told
    assert "VA-API: iHD is not installed; apt-get install intel-media-va-driver or i965-va-driver" in told
    assert "OpenCL: no driver supports G45" in missing(device("g45"))


def test_a_program_that_finds_no_driver_is_told_which() -> None:
    """It looks where a loader looks that was not told of a driver; its exit code does not matter."""
    look = "import os\ntry: os.listdir('/etc/OpenCL/vendors')\nexcept OSError: pass"
    run = softgen_run("--gpu", "g45", "--", sys.executable, "-c", look)
    assert run.process.returncode == 0 and run.err == "softgen: OpenCL: no driver supports G45\n"
    assert softgen_run("--gpu", "g45", "--", "sh", "-c", "exit 3").err == ""


def test_ioctls_are_shown_on_request() -> None:
    run = softgen_run("--trace", "ioctls", "--", sys.executable, str(PROGRAMS / "doors.py"), "refused")
    lines = run.err.splitlines()
    assert any("DRM_IOCTL_I915_GETPARAM param=0x4" in line and "EFAULT" not in line for line in lines)
    assert any("DRM_IOCTL_I915_GEM_EXECBUFFER2 buffers=0x8 count=0x1 EFAULT" in line for line in lines), run.err
    refused = "DRM_IOCTL_MODE_GETRESOURCES is not allowed on a render node"
    assert any(line.count("DRM_IOCTL_MODE_GETRESOURCES") >= 2 and refused in line for line in lines)
    wrong = softgen_run("--trace", "weather", "--", "true")
    assert wrong.process.returncode == 2 and "topics are ioctls" in wrong.err


@needs_shim
def test_intels_runtime_waits_in_the_kernel_unless_the_user_says_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would poll a tag on a core that the simulator needs."""
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [pattern])
    monkeypatch.setattr("softgen.driver.run.environment.vendors", lambda folder, runtime: str(folder))
    found = environment(device("kbl"), tmp_path, {})
    assert found["NEOReadDebugKeys"] == found["OverrideEnableKmdNotify"] == "1"
    assert 0 < int(found["OverrideKmdNotifyDelayMicroseconds"]) < 1000
    assert environment(device("kbl"), tmp_path, {"OverrideEnableKmdNotify": "0"})["OverrideEnableKmdNotify"] == "0"
    assert "NEOReadDebugKeys" not in environment(device("g45"), tmp_path, {})


@needs_shim
def test_crocus_compiles_in_one_thread_unless_the_user_says_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads of Mesa would enlarge its program cache, which has no lock, at once."""
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [pattern])
    monkeypatch.setattr("softgen.driver.run.environment.vendors", lambda folder, runtime: str(folder))
    assert environment(device("g45"), tmp_path, {})["GALLIUM_THREAD"] == "0"
    assert environment(device("g45"), tmp_path, {"GALLIUM_THREAD": "1"})["GALLIUM_THREAD"] == "1"
    assert "GALLIUM_THREAD" not in environment(device("kbl"), tmp_path, {})
