"""x86-64 programs on hosts that are not x86-64: QEMU runs them, with a shim of their own."""

import shutil
import subprocess
from pathlib import Path

import pytest

from softgen.bits.generation import device
from softgen.driver.run import environment
from softgen.driver.uapi.kernel_tables import x86_64_host
from tests.driver.running import PROGRAMS, Softgen, needs_shim, softgen_run

pytestmark = needs_shim

COMPILER = "x86_64-linux-gnu-gcc"
LIBRARIES = "/usr/x86_64-linux-gnu"  # of the cross compiler's package, its dynamic loader among them
QEMU = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A host that is not x86-64, with the second shim."""
    for module in ("run.environment", "uapi.kernel_tables"):
        monkeypatch.setattr(f"softgen.driver.{module}.x86_64_host", lambda: False)
    monkeypatch.setattr(environment, "x86_64_shim", lambda: "/there/shim-x86_64.so")
    monkeypatch.delenv("QEMU_LD_PREFIX", raising=False)
    return monkeypatch


def x86_64_program(path: Path) -> str:
    """The header of one, with one program header: a dynamic loader's."""
    head = bytearray(4096)
    head[:6], head[18:20], head[32], head[54:58], head[64] = b"\x7fELF\x02\x01", b"\x3e\0", 64, b"\x38\0\x01\0", 3
    path.write_bytes(head)
    path.chmod(0o755)
    return str(path)


def test_qemu_preloads_the_second_shim(arm: pytest.MonkeyPatch, tmp_path: Path) -> None:
    env = environment.environment(device("kbl"), tmp_path, {"QEMU_SET_ENV": "A=b"})
    assert env["QEMU_SET_ENV"] == "A=b,LD_PRELOAD=/there/shim-x86_64.so" and env["LD_PRELOAD"] == environment.shim()
    arm.setattr(environment, "x86_64_shim", lambda: "")
    assert "QEMU_SET_ENV" not in environment.environment(device("kbl"), tmp_path, {})


def test_an_x86_64_host_has_one_shim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environment, "x86_64_host", lambda: True)
    assert environment.x86_64_shim() == environment.shim()
    assert "QEMU_SET_ENV" not in environment.environment(device("kbl"), tmp_path, {})


def test_drivers_are_found_where_qemu_finds_libraries(arm: pytest.MonkeyPatch, tmp_path: Path) -> None:
    icd = tmp_path / "usr/share/vulkan/icd.d/intel_icd.x86_64.json"
    icd.parent.mkdir(parents=True)
    icd.write_text("{}")
    arm.setenv("QEMU_LD_PREFIX", str(tmp_path))
    assert environment.environment(device("kbl"), tmp_path, {})["VK_DRIVER_FILES"] == str(icd)
    assert environment.missing(device("kbl"), {"Vulkan"}) == []
    arm.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [])
    assert environment.missing(device("kbl"), {"Vulkan"}) == ["Vulkan: anv is not installed; apt-get install mesa-vulkan-drivers:amd64"]


def test_what_x86_64_programs_need_is_told(arm: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program, emulator = x86_64_program(tmp_path / "program"), x86_64_program(tmp_path / "qemu-x86_64-static")
    assert environment.unreachable(program) == environment.unreachable(emulator) == ""
    assert environment.advice(program) == f"; it is an x86-64 program: softgen run -- qemu-x86_64 {program} (docs/running.md)"
    arm.setattr(environment, "x86_64_shim", lambda: "")
    assert all("gcc-x86-64-linux-gnu" in environment.unreachable(path) for path in (program, emulator))
    assert environment.advice(__file__) == ""


@pytest.mark.parametrize("at, byte", [(18, 183), (19, 1), (4, 1), (0, ord("#"))], ids=["AArch64", "no processor", "32-bit", "no program"])
def test_other_programs_are_not_said_to_be_x86_64(arm: pytest.MonkeyPatch, tmp_path: Path, at: int, byte: int) -> None:
    program = Path(x86_64_program(tmp_path / "program"))
    head = bytearray(program.read_bytes())
    head[at] = byte
    program.write_bytes(head)
    assert environment.advice(str(program)) == ""
    arm.setattr(environment, "x86_64_shim", lambda: "")
    assert "x86-64" not in environment.unreachable(str(program))


def test_an_x86_64_host_starts_x86_64_programs_itself(arm: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arm.setattr(environment, "x86_64_host", lambda: True)
    assert environment.advice(x86_64_program(tmp_path / "program")) == ""


def test_an_x86_64_program_that_the_kernel_does_not_start(tmp_path: Path) -> None:
    if x86_64_host():
        pytest.skip("this host is x86-64")
    run = softgen_run("--", x86_64_program(tmp_path / "program"))
    if "cannot be started: Exec format error" not in run.err:
        pytest.skip("the kernel hands x86-64 programs to QEMU here (binfmt_misc)")
    assert run.process.returncode == 1 and "it is an x86-64 program: softgen run -- qemu-x86_64" in run.err


def run_under_qemu(program: Path, *arguments: str) -> Softgen:
    """Compiles the program of that name for x86-64 and runs it; skips where that is not possible."""
    if x86_64_host():
        pytest.skip("this host is x86-64")
    if not (QEMU and shutil.which(COMPILER) and environment.x86_64_shim()):
        pytest.skip("needs qemu-user, gcc-x86-64-linux-gnu, and the shim that setup.py builds with it")
    subprocess.run([COMPILER, "-O1", "-Wall", PROGRAMS / f"{program.name}.c", "-o", program], check=True)
    return softgen_run("--", QEMU, str(program), *arguments, QEMU_LD_PREFIX=LIBRARIES)


def test_an_x86_64_program_under_qemu(tmp_path: Path) -> None:
    """Buffers, lent memory, fork and a bad pointer; QEMU refuses userfaultfd and process_vm_readv."""
    run = run_under_qemu(tmp_path / "stores")
    assert run.out.splitlines() == ["parent 1234 5678", "child 1234 5678", "done"] and run.process.returncode == 0, run.out + run.err
    assert run.err == "" and run.all_gone()


@pytest.mark.parametrize("names", [["sys", "class", "drm"], ["sys", "dev", "char", "226:128"], ["dev", "dri"], ["lib"]], ids="/".join)
def test_folders_from_qemus_root_on(names: list[str], tmp_path: Path) -> None:
    """QEMU's / is the folder of libraries, which has no /sys; libudev opens folders by one name after another from there."""
    run = run_under_qemu(tmp_path / "walk", *names)
    assert run.out.split() == names and run.process.returncode == 0, run.out + run.err
